/* Node files: ids, the format, and damage. */
#include "lake/node.h"
#include "base/hex.h"
#include "unit/test.h"

#include <stdio.h>
#include <zstd.h>

TEST(lake_node, the_id_of_a_file_is_that_of_lakefs)
{
    struct node_hash h;
    struct node_id id;
    char text[LAKE_ID_LEN + 1];

    node_hash_init(&h);
    node_hash_begin(&h);
    node_hash_record(&h, STR("key"), STR("value"));
    node_hash_end(&h, STR_EMPTY, &id);
    node_id_text(text, &id);
    CHECK_STR(str_z(text), STR("1f60902cb44890618d61597673a62e44cf526f5991d9db687141218985fe60b8"));
    node_hash_release(&h);
}

TEST(lake_node, large_values_are_hashed_like_small_ones)
{
    static char big[100 << 10];
    struct node_hash h;
    struct node_id id;
    char text[LAKE_ID_LEN + 1];

    memset(big, 'x', sizeof(big));
    node_hash_init(&h);
    node_hash_begin(&h);
    node_hash_record(&h, STR("k"), str_n(big, sizeof(big)));
    node_hash_record(&h, STR("l"), str_n(big, 8192));
    node_hash_end(&h, node_hash_type(0), &id);
    node_id_text(text, &id);
    CHECK_STR(str_z(text), STR("5b81151b06fab9ec8141806fbf4dc9393b8e60a45991f85ffd76dc05aa5431dc"));
    node_hash_release(&h);
}

struct built {
    struct node_draft draft;
    struct node_encoder encoder;
    void *zstd;
    size_t records;
};

static void built_key(char room[64], size_t n)
{
    snprintf(room, 64, "some/shared/prefix/%06zu", n * 3);
}

static void built_init(struct built *b, size_t records, size_t data)
{
    char key[64], value[64 << 10];
    struct err err = {0};

    *b = (struct built){.zstd = ZSTD_createDCtx(), .records = records};
    node_encoder_init(&b->encoder);
    node_draft_reset(&b->draft, 0, 1 << 20);
    for (size_t n = 0; n < records; n++) {
        built_key(key, n);
        for (size_t i = 0; i < data; i++)
            value[i] = (char)(i * n + i / 7);
        struct tree_record r = {str_z(key), STR("identity"), str_n(value, data)};
        node_draft_record(&b->draft, &r);
    }
    CHECK_OK(node_encode(&b->encoder, &b->draft, &err));
}

static void built_release(struct built *b)
{
    node_encoder_release(&b->encoder);
    node_draft_release(&b->draft);
    ZSTD_freeDCtx(b->zstd);
}

/* Opens the bytes and reads all of them; the keys and values go to `seen`. */
static int built_read(struct built *b, struct str bytes, struct buf *seen, struct err *err)
{
    struct buf file = BUF_INIT(NODE_FILE_MAX), raw = {0};
    struct block_cursor *c = xzalloc(sizeof(*c));
    struct node *n = NULL;
    int code;

    buf_append_str(&file, bytes);
    code = node_open(&n, &b->encoder.id, &file, b->zstd, err);
    for (size_t i = 0; code == 0 && i < n->blocks.len; i++) {
        buf_reset(&raw);
        code = node_block_read(n, i, b->zstd, &raw, err);
        if (code == 0)
            code = block_cursor_open(c, buf_str(&raw), 0);
        while (code == 0 && (code = block_cursor_next(c)) == 0) {
            buf_append_str(seen, block_cursor_key(c));
            buf_append_str(seen, c->value);
        }
        code = code == ERR_END ? 0 : code;
    }
    node_free(n);
    free(c);
    buf_release(&raw);
    buf_release(&file);
    return code;
}

TEST(lake_node, a_file_is_read_back_and_a_search_finds_every_key)
{
    static const size_t sizes[][2] = {{1, 0}, {1, 40000}, {15, 10}, {16, 10}, {17, 10}, {700, 90}};

    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
        struct buf file = BUF_INIT(NODE_FILE_MAX), raw = {0};
        struct block_cursor c;
        struct node *n = NULL;
        struct built b;
        struct err err = {0};
        char key[64];

        built_init(&b, sizes[s][0], sizes[s][1]);
        buf_append_str(&file, buf_str(&b.encoder.file));
        CHECK_OK(node_open(&n, &b.encoder.id, &file, b.zstd, &err));
        CHECK_INT(n->records, b.records);
        CHECK(b.records < 700 || n->blocks.len > 4);
        for (size_t i = 0; i < b.records; i++) {
            built_key(key, i);
            buf_reset(&raw);
            CHECK_OK(node_block_read(n, node_block_find(n, str_z(key)), b.zstd, &raw, &err));
            CHECK_OK(block_cursor_open(&c, buf_str(&raw), 0));
            CHECK_OK(block_cursor_seek(&c, str_z(key)));
            CHECK_STR(block_cursor_key(&c), str_z(key));
        }
        CHECK_INT(node_block_find(n, STR("zzz")), n->blocks.len);
        node_free(n);
        buf_release(&raw);
        buf_release(&file);
        built_release(&b);
    }
}

TEST(lake_node, every_flipped_byte_is_noticed)
{
    struct buf good = {0}, seen = {0}, bytes = {0};
    struct err err = {0};
    struct built b;

    built_init(&b, 40, 30);
    CHECK_OK(built_read(&b, buf_str(&b.encoder.file), &good, &err));
    buf_append_str(&bytes, buf_str(&b.encoder.file));
    for (size_t at = 0; at < bytes.len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.p[at] ^= (char)(1 << bit);
            buf_reset(&seen);
            CHECK_ERR(built_read(&b, buf_str(&bytes), &seen, &err), ERR_CORRUPT);
            bytes.p[at] ^= (char)(1 << bit);
        }
    buf_reset(&seen);
    CHECK_OK(built_read(&b, buf_str(&bytes), &seen, &err));
    CHECK_STR(buf_str(&seen), buf_str(&good));
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_ERR(built_read(&b, str_n(bytes.p, len), &seen, &err), ERR_CORRUPT);
    buf_release(&good);
    buf_release(&seen);
    buf_release(&bytes);
    built_release(&b);
}

TEST(lake_node, the_file_of_another_node_is_refused)
{
    struct built a, b;
    struct buf seen = {0};
    struct err err = {0};

    built_init(&a, 3, 10);
    built_init(&b, 4, 10);
    CHECK_ERR(built_read(&a, buf_str(&b.encoder.file), &seen, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), STR("another node")) >= 0);
    buf_release(&seen);
    built_release(&a);
    built_release(&b);
}

TEST(lake_node, values_are_read_as_they_were_written_and_cut_ones_are_refused)
{
    struct node_child child = {.min = STR("min"), .count = 300, .bytes = 1 << 20, .foreign = true},
                      got;
    struct tree_record record;
    struct buf out = {0};

    memset(child.id.bytes, 7, NODE_ID_LEN);
    node_child_write(&out, &child);
    CHECK_INT(node_child_read(&got, buf_str(&out)), 0);
    CHECK(node_id_eq(&got.id, &child.id) && got.foreign);
    CHECK_STR(got.min, child.min);
    CHECK_INT(got.count, 300);
    CHECK_INT(got.bytes, 1 << 20);
    for (size_t len = 0; len < out.len; len++)
        CHECK_INT(node_child_read(&got, str_n(out.p, len)), ERR_CORRUPT);
    buf_reset(&out);
    node_record_write(&out, STR("identity"), STR("data"));
    CHECK_INT(out.len, node_record_size(STR("identity"), STR("data")));
    CHECK_INT(node_record_read(&record, STR("k"), buf_str(&out)), 0);
    CHECK_STR(record.identity, STR("identity"));
    CHECK_STR(record.data, STR("data"));
    for (size_t len = 0; len < out.len; len++)
        CHECK_INT(node_record_read(&record, STR("k"), str_n(out.p, len)), ERR_CORRUPT);
    buf_append_char(&out, 'x');
    CHECK_INT(node_record_read(&record, STR("k"), buf_str(&out)), ERR_CORRUPT);
    buf_release(&out);
}

TEST(lake_node, keys_that_do_not_ascend_are_refused)
{
    struct block_writer w = {0};
    struct block_cursor c;

    block_writer_add(&w, STR("b"), STR("1"));
    block_writer_add(&w, STR("a"), STR("2"));
    block_writer_end(&w);
    CHECK_INT(block_cursor_open(&c, buf_str(&w.bytes), 0), 0);
    CHECK_INT(block_cursor_next(&c), 0);
    CHECK_INT(block_cursor_next(&c), ERR_CORRUPT);
    block_writer_release(&w);
}
