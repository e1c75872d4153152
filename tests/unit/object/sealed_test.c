/* Sealed bodies: every border, every range, every kind of damage. */
#include "unit/object/local_lab.h"

#include "os/file.h"

#include <fcntl.h>
#include <unistd.h>

enum { R = SEALED_RECORD };

struct vault {
    struct local_lab l;
    struct bucket *b;
    struct arena a;
};

static int give_key(void *ctx, const struct object_meta *meta, struct put_seal *out,
                    struct err *err)
{
    CHECK(meta->encryption.len);
    *out = *(const struct put_seal *)ctx;
    return 0;
}

static struct put_seal seal = {.key = {.bytes = "0123456789abcdef0123456789abcde"}};
static struct put_seal hidden = {.key = {.bytes = "0123456789abcdef0123456789abcde"},
                                 .hide_md5 = true};
static const struct sealed_key other = {.bytes = "1123456789abcdef0123456789abcde"};

static struct put_options sealed_options(struct put_seal *with)
{
    return (struct put_options){
        .meta = {.encryption = STR("envelope")}, .seal = give_key, .seal_ctx = with};
}

static void vault_open(struct vault *v)
{
    *v = (struct vault){.a = ARENA_INIT(0)};
    local_lab_open(&v->l, NULL);
    v->b = lab_bucket(v->l.lab.storage, "vault");
}

static void vault_close(struct vault *v)
{
    local_lab_expect_whole(&v->l);
    v->b->ops->unref(v->b);
    arena_release(&v->a);
    local_lab_close(&v->l);
}

static struct put_result put_sealed(struct vault *v, const char *key, struct str body,
                                    struct put_seal *with)
{
    struct err err = {0};
    struct put_options o = sealed_options(with);
    struct put_result out = {0};
    struct str_reader r;

    str_reader_init(&r, body);
    CHECK_OK(v->b->ops->put(v->b, &v->a, str_z(key), &r.reader, body.len, &o, &out, &err));
    return out;
}

/* What reading a range with this key comes to: 0, or the first error. */
static int read_range(struct vault *v, const char *key, const struct object_range *range,
                      const struct sealed_key *with, struct buf *out)
{
    struct arena a = ARENA_INIT(0);
    struct get_result got;
    struct err err = {0};

    buf_reset(out);
    CHECK_OK(v->b->ops->get(v->b, &a, str_z(key), STR_EMPTY, NULL, range, &got, &err));
    CHECK(got.unlock);
    int code = got.unlock(got.body, with, &err);
    if (code == 0)
        code = reader_read_all(got.body, out, &err);
    if (code == 0)
        CHECK_INT(out->len, got.len);
    reader_close(got.body);
    arena_release(&a);
    return code;
}

static void expect_range(struct vault *v, const char *key, struct str whole, uint64_t first,
                         uint64_t last)
{
    struct err err = {0};
    struct object_range range = {RANGE_FROM_TO, first, last};
    struct buf got = BUF_INIT(0);

    CHECK_OK(read_range(v, key, &range, &seal.key, &got));
    if (last >= whole.len)
        last = whole.len - 1;
    CHECK(str_eq(buf_str(&got), str_n(whole.p + first, last - first + 1)));
    buf_release(&got);
}

static void expect_whole(struct vault *v, const char *key, struct str want)
{
    struct err err = {0};
    struct buf got = BUF_INIT(0);

    CHECK_OK(read_range(v, key, NULL, &seal.key, &got));
    CHECK_INT(got.len, want.len);
    CHECK(str_eq(buf_str(&got), want));
    buf_release(&got);
}

static void expect_damaged(struct vault *v, const char *key, const struct object_range *range)
{
    struct buf got = BUF_INIT(0);

    CHECK_ERR(read_range(v, key, range, &seal.key, &got), ERR_CORRUPT);
    buf_release(&got);
}

static void path_of(struct vault *v, const char *key, size_t part, struct buf *out)
{
    struct err err = {0};
    struct local *l = local_of(v->l.lab.storage);
    struct stored found = {0};
    struct piece piece;
    struct row row;

    buf_reset(out);
    CHECK_OK(stored_get(&found, db_latest(v->l.db), l,
                        row_key(&row, local_bucket_of(v->b), TAG_OBJECT, str_z(key)), &err));
    piece.blob = found.r.id;
    for (size_t i = 0; i < part; i++)
        CHECK_OK(piece_next(&found.r.parts, &piece, &err));
    blob_path(out, l, piece.blob);
    stored_release(&found);
}

static void file_bytes(const char *path, struct buf *out)
{
    struct err err = {0};

    buf_reset(out);
    CHECK_OK(file_read(path, out, &err));
}

static void set_bytes(const char *path, struct str bytes)
{
    struct err err = {0};

    CHECK_OK(file_write_durable(path, bytes, 0600, &err));
}

static struct str md5_text(struct str body, char out[33])
{
    struct digest_value md5;
    struct buf hex = BUF_INIT(0);

    digest_of(DIGEST_MD5, body, &md5);
    buf_append_hex(&hex, md5.bytes, md5.len);
    memcpy(out, hex.p, 33);
    buf_release(&hex);
    return str_z(out);
}

static const size_t sizes[] = {0,         1,     15,        16,    17,        R - 49, R - 48,
                               R - 47,    R - 1, R,         R + 1, 2 * R - 1, 2 * R,  2 * R + 1,
                               4 * R - 1, 4 * R, 4 * R + 1, 5 * R, 9 * R + 7};

TEST(sealed, the_stored_size_follows_from_the_plain_one)
{
    CHECK_INT(sealed_size(0), 48);
    CHECK_INT(sealed_size(1), 49);
    CHECK_INT(sealed_size(R), R + 48);
    CHECK_INT(sealed_size(R + 1), R + 1 + 64);
    CHECK(sealed_size(UINT64_MAX) == UINT64_MAX);
}

TEST(sealed, bodies_of_every_size_come_back)
{
    struct err err = {0};
    struct vault v;
    char md5[33];

    vault_open(&v);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = lab_bytes(sizes[i], i);
        struct put_result put = put_sealed(&v, "k", body, &seal);
        struct get_result got;

        CHECK_INT(put.size, body.len);
        CHECK_STR(put.etag, md5_text(body, md5));
        CHECK_OK(v.b->ops->head(v.b, &v.a, STR("k"), STR_EMPTY, NULL, &got, &err));
        CHECK_INT(got.info.size, body.len);
        expect_whole(&v, "k", body);
    }
    vault_close(&v);
}

TEST(sealed, a_body_of_unknown_size_comes_back)
{
    struct err err = {0};
    struct put_options o = sealed_options(&seal);
    struct vault v;

    vault_open(&v);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = lab_bytes(sizes[i], i);
        struct put_result out;
        struct str_reader r;
        str_reader_init(&r, body);
        CHECK_OK(v.b->ops->put(v.b, &v.a, STR("k"), &r.reader, UINT64_MAX, &o, &out, &err));
        expect_whole(&v, "k", body);
    }
    vault_close(&v);
}

TEST(sealed, a_body_of_another_size_than_said_leaves_nothing)
{
    struct err err = {0};
    struct put_options o = sealed_options(&seal);
    struct put_result out;
    struct str_reader r;
    struct vault v;

    vault_open(&v);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct str body = lab_bytes(sizes[i], i);
        str_reader_init(&r, body);
        CHECK_ERR(v.b->ops->put(v.b, &v.a, STR("k"), &r.reader, body.len + 1, &o, &out, &err),
                  ERR_CLOSED);
        str_reader_init(&r, body);
        if (body.len > 0)
            CHECK_ERR(v.b->ops->put(v.b, &v.a, STR("k"), &r.reader, body.len - 1, &o, &out, &err),
                      ERR_INVALID);
    }
    lab_expect(v.b, "k", STR_EMPTY, STR_EMPTY);
    CHECK_INT(local_lab_files(&v.l), 0);
    vault_close(&v);
}

TEST(sealed, an_etag_can_hide_the_md5)
{
    char md5[33];
    struct vault v;

    vault_open(&v);
    struct str one = put_sealed(&v, "k", STR("body"), &hidden).etag;
    struct str two = put_sealed(&v, "k", STR("bodz"), &hidden).etag;
    CHECK_INT(one.len, 34);
    CHECK(str_ends(one, STR("-0")));
    CHECK(!str_eq(one, two));
    CHECK_STR(put_sealed(&v, "k", STR("body"), &hidden).etag, one);
    CHECK(!str_starts(one, md5_text(STR("body"), md5)));
    expect_whole(&v, "k", STR("body"));
    vault_close(&v);
}

TEST(sealed, ranges_are_opened_without_what_is_before_them)
{
    struct err err = {0};
    static const size_t edges[] = {0, 1, R - 1, R, R + 1, 2 * R - 1, 2 * R, 3 * R + 3, 3 * R + 4};
    struct str body = lab_bytes(3 * R + 5, 1);
    struct buf got = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    put_sealed(&v, "k", body, &seal);
    put_sealed(&v, "small", str_head(body, 1000), &seal);
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
        for (size_t j = i; j < ARRAY_SIZE(edges); j++)
            expect_range(&v, "k", body, edges[i], edges[j]);
    expect_range(&v, "k", body, R, UINT64_MAX);
    expect_range(&v, "small", str_head(body, 1000), 10, 20);
    CHECK_OK(read_range(&v, "k", &(struct object_range){RANGE_SUFFIX, 7, 0}, &seal.key, &got));
    CHECK(str_eq(buf_str(&got), str_skip(body, body.len - 7)));
    CHECK_OK(read_range(&v, "k", &(struct object_range){RANGE_PART, 1, 0}, &seal.key, &got));
    CHECK_INT(got.len, body.len);
    buf_release(&got);
    vault_close(&v);
}

static struct upload_info begin_sealed(struct vault *v, const char *key)
{
    struct err err = {0};
    struct upload_info u = {.key = str_z(key)};
    struct object_meta meta = {.encryption = STR("envelope")};

    CHECK_OK(v->b->ops->upload_begin(v->b, &v->a, u.key, &meta, &u.id, &err));
    return u;
}

static struct upload_part part_sealed(struct vault *v, const struct upload_info *u, uint32_t number,
                                      struct str body)
{
    struct err err = {0};
    struct put_options o = sealed_options(&seal);
    struct upload_part part = {0};
    struct str_reader r;

    str_reader_init(&r, body);
    CHECK_OK(v->b->ops->upload_part(v->b, &v->a, u, number, &r.reader, body.len, &o, &part, &err));
    CHECK_INT(part.size, body.len);
    return part;
}

/* Parts 2, 5 and 7 of an object, of these sizes. */
static struct str upload_sealed(struct vault *v, const char *key, const size_t len[3])
{
    struct err err = {0};
    static const uint32_t numbers[] = {2, 5, 7};
    struct str body = lab_bytes(len[0] + len[1] + len[2], 3), rest = body;
    struct upload_info u = begin_sealed(v, key);
    struct upload_part parts[3];
    struct put_result out;

    for (size_t i = 0; i < 3; i++) {
        parts[i] = part_sealed(v, &u, numbers[i], str_head(rest, len[i]));
        rest = str_skip(rest, len[i]);
    }
    CHECK_OK(
        v->b->ops->upload_finish(v->b, &v->a, &u, parts, 3, &(struct put_options){0}, &out, &err));
    CHECK_INT(out.size, body.len);
    return body;
}

TEST(sealed, parts_become_an_object_of_which_any_range_is_read)
{
    struct err err = {0};
    static const size_t len[3] = {R + 1, 2 * R, 17};
    static const size_t edges[] = {0, R - 1, R, R + 1, R + 2, 2 * R, 3 * R, 3 * R + 1, 3 * R + 17};
    struct buf got = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    struct str body = upload_sealed(&v, "k", len);
    expect_whole(&v, "k", body);
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
        for (size_t j = i; j < ARRAY_SIZE(edges); j++)
            expect_range(&v, "k", body, edges[i], edges[j]);
    CHECK_OK(read_range(&v, "k", &(struct object_range){RANGE_PART, 5, 0}, &seal.key, &got));
    CHECK(str_eq(buf_str(&got), str_head(str_skip(body, R + 1), 2 * R)));
    CHECK_OK(read_range(&v, "k", &(struct object_range){RANGE_PART, 7, 0}, &seal.key, &got));
    CHECK(str_eq(buf_str(&got), str_skip(body, 3 * R + 1)));
    buf_release(&got);
    vault_close(&v);
}

TEST(sealed, nothing_is_read_without_the_key)
{
    struct err err = {0};
    struct get_result got;
    struct buf out = BUF_INIT(0);
    char byte;
    size_t n;
    struct vault v;

    vault_open(&v);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        put_sealed(&v, "k", lab_bytes(sizes[i], i), &seal);
        CHECK_OK(v.b->ops->get(v.b, &v.a, STR("k"), STR_EMPTY, NULL, NULL, &got, &err));
        CHECK_ERR(reader_read(got.body, &byte, 1, &n, &err), ERR_DENIED);
        CHECK_ERR(got.unlock(got.body, &other, &err), ERR_CORRUPT);
        CHECK_ERR(reader_read(got.body, &byte, 1, &n, &err), ERR_DENIED);
        reader_close(got.body);
    }
    buf_release(&out);
    vault_close(&v);
}

TEST(sealed, what_is_stored_does_not_hold_the_body_nor_repeat)
{
    struct str body = lab_bytes(2 * R, 1);
    struct buf path = BUF_INIT(0), one = BUF_INIT(0), two = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    put_sealed(&v, "k", body, &seal);
    path_of(&v, "k", 0, &path);
    file_bytes(path.p, &one);
    CHECK_INT(one.len, sealed_size(body.len));
    for (size_t at = 0; at < 4096; at += 16)
        CHECK(!memmem(one.p, one.len, body.p + at, 16));
    put_sealed(&v, "k", body, &seal); /* the same key and body: E2 */
    path_of(&v, "k", 0, &path);
    file_bytes(path.p, &two);
    CHECK(memcmp(one.p, two.p, SEALED_SALT_LEN) != 0);
    CHECK(memcmp(one.p + SEALED_SALT_LEN, two.p + SEALED_SALT_LEN, R) != 0);
    buf_release(&path);
    buf_release(&one);
    buf_release(&two);
    vault_close(&v);
}

TEST(sealed, any_changed_byte_is_found)
{
    struct str body = lab_bytes(2 * R + 100, 1);
    const size_t places[] = {0,          31,          32,          32 + R - 1,
                             32 + R,     32 + R + 15, 32 + R + 16, 2 * R + 63,
                             2 * R + 64, 2 * R + 163, 2 * R + 164, 2 * R + 179};
    struct buf path = BUF_INIT(0), bytes = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    put_sealed(&v, "k", body, &seal);
    path_of(&v, "k", 0, &path);
    file_bytes(path.p, &bytes);
    CHECK_INT(bytes.len, 2 * R + 180);
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        bytes.p[places[i]] ^= 1;
        set_bytes(path.p, buf_str(&bytes));
        expect_damaged(&v, "k", NULL);
        bytes.p[places[i]] ^= 1;
    }
    /* Damage behind a range is not in the way of it. */
    bytes.p[2 * R + 100] ^= 1;
    set_bytes(path.p, buf_str(&bytes));
    expect_range(&v, "k", body, 0, 2 * R - 1);
    expect_damaged(&v, "k", &(struct object_range){RANGE_FROM_TO, 2 * R, 2 * R});
    bytes.p[2 * R + 100] ^= 1;
    set_bytes(path.p, buf_str(&bytes));
    expect_whole(&v, "k", body);
    buf_release(&path);
    buf_release(&bytes);
    vault_close(&v);
}

TEST(sealed, a_body_that_was_cut_is_found)
{
    struct buf path = BUF_INIT(0), bytes = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    put_sealed(&v, "k", lab_bytes(3 * R, 1), &seal);
    path_of(&v, "k", 0, &path);
    file_bytes(path.p, &bytes);
    set_bytes(path.p, str_head(buf_str(&bytes), 32 + 2 * SEALED_STORED));
    expect_damaged(&v, "k", NULL);
    set_bytes(path.p, str_head(buf_str(&bytes), bytes.len - 1));
    expect_damaged(&v, "k", NULL);
    set_bytes(path.p, buf_str(&bytes));
    buf_release(&path);
    buf_release(&bytes);
    vault_close(&v);
}

/* The index shortened with the file: the record that is now the last was not sealed as one. */
TEST(sealed, a_record_knows_whether_it_is_the_last)
{
    unsigned char salt[SEALED_SALT_LEN] = {1}, record[16 + SEALED_TAG_LEN];
    struct sealed_cipher c;
    struct err err = {0};

    sealed_cipher_init(&c, &seal.key, salt, 0);
    sealed_put(&c, 3, false, STR("sixteen bytes ok"), record);
    CHECK_ERR(sealed_get(&c, 3, true, record, sizeof(record), &err), ERR_CORRUPT);
    sealed_put(&c, 3, false, STR("sixteen bytes ok"), record);
    CHECK_ERR(sealed_get(&c, 2, false, record, sizeof(record), &err), ERR_CORRUPT);
    sealed_put(&c, 3, false, STR("sixteen bytes ok"), record);
    CHECK_OK(sealed_get(&c, 3, false, record, sizeof(record), &err));
    CHECK_STR(str_n(record, 16), STR("sixteen bytes ok"));
    CHECK_ERR(sealed_get(&c, 3, false, record, 15, &err), ERR_CORRUPT);
    sealed_cipher_release(&c);
}

TEST(sealed, records_in_another_order_are_found)
{
    struct buf path = BUF_INIT(0), bytes = BUF_INIT(0), swapped = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    put_sealed(&v, "k", lab_bytes(3 * R, 1), &seal);
    path_of(&v, "k", 0, &path);
    file_bytes(path.p, &bytes);
    struct str rest = str_skip(buf_str(&bytes), 32);
    buf_append(&swapped, bytes.p, 32);
    buf_append(&swapped, rest.p + SEALED_STORED, SEALED_STORED);
    buf_append(&swapped, rest.p, SEALED_STORED);
    buf_append(&swapped, rest.p + 2 * (size_t)SEALED_STORED, SEALED_STORED);
    set_bytes(path.p, buf_str(&swapped));
    expect_damaged(&v, "k", NULL);
    expect_damaged(&v, "k", &(struct object_range){RANGE_FROM_TO, R, R});
    set_bytes(path.p, buf_str(&bytes));
    buf_release(&path);
    buf_release(&bytes);
    buf_release(&swapped);
    vault_close(&v);
}

TEST(sealed, swapped_parts_are_found)
{
    static const size_t len[3] = {R + 1, R + 1, 17};
    struct buf first = BUF_INIT(0), second = BUF_INIT(0), one = BUF_INIT(0), two = BUF_INIT(0);
    struct vault v;

    vault_open(&v);
    upload_sealed(&v, "k", len);
    path_of(&v, "k", 1, &first);
    path_of(&v, "k", 2, &second);
    file_bytes(first.p, &one);
    file_bytes(second.p, &two);
    set_bytes(first.p, buf_str(&two));
    set_bytes(second.p, buf_str(&one));
    expect_damaged(&v, "k", NULL);
    expect_damaged(&v, "k", &(struct object_range){RANGE_PART, 5, 0});
    set_bytes(first.p, buf_str(&one));
    set_bytes(second.p, buf_str(&two));
    buf_release(&first);
    buf_release(&second);
    buf_release(&one);
    buf_release(&two);
    vault_close(&v);
}

TEST(sealed, an_encryption_without_a_key_is_refused)
{
    struct err err = {0};
    struct put_options o = {.meta = {.encryption = STR("envelope")}};
    struct upload_part part;
    struct put_result out;
    struct str_reader r;
    struct vault v;

    vault_open(&v);
    str_reader_init(&r, STR("x"));
    CHECK_ERR(v.b->ops->put(v.b, &v.a, STR("k"), &r.reader, 1, &o, &out, &err), ERR_INVALID);
    struct upload_info u = begin_sealed(&v, "k");
    CHECK_ERR(v.b->ops->upload_part(v.b, &v.a, &u, 1, &r.reader, 1, &(struct put_options){0}, &part,
                                    &err),
              ERR_INVALID);
    CHECK_OK(v.b->ops->upload_abort(v.b, &u, &err));
    vault_close(&v);
}

TEST(sealed, a_copy_keeps_the_bytes_and_takes_another_envelope)
{
    struct err err = {0};
    static const size_t len[3] = {R + 1, R + 1, 17};
    struct put_options o = sealed_options(&seal), plain = {0};
    struct get_result source;
    struct put_result out;
    struct vault v;

    vault_open(&v);
    struct str parts = upload_sealed(&v, "parts", len);
    put_sealed(&v, "inline", STR("small"), &seal);
    put_sealed(&v, "file", lab_bytes(R, 1), &seal);
    o.meta.encryption = STR("another");
    const char *keys[] = {"parts", "inline", "file"};
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(v.b->ops->head(v.b, &v.a, str_z(keys[i]), STR_EMPTY, NULL, &source, &err));
        CHECK_OK(v.b->ops->copy(v.b, &v.a, STR("copy"), v.b, &source.info, &o, &out, &err));
        expect_whole(&v, "copy", i == 0 ? parts : i == 1 ? STR("small") : lab_bytes(R, 1));
        CHECK_ERR(v.b->ops->copy(v.b, &v.a, STR("x"), v.b, &source.info, &plain, &out, &err),
                  ERR_UNSUPPORTED);
    }
    CHECK_OK(v.b->ops->head(v.b, &v.a, STR("copy"), STR_EMPTY, NULL, &source, &err));
    CHECK_STR(source.info.meta.encryption, STR("another"));
    source.info.meta.encryption = STR("envelope"); /* as if replaced after the look */
    CHECK_ERR(v.b->ops->copy(v.b, &v.a, STR("x"), v.b, &source.info, &o, &out, &err), ERR_CONFLICT);
    vault_close(&v);
}

TEST(sealed, sealed_bytes_are_not_shared_with_parts)
{
    struct err err = {0};
    struct object_range all = {.kind = RANGE_ALL};
    struct get_result source;
    struct upload_part part = {0};
    struct vault v;

    vault_open(&v);
    put_sealed(&v, "sealed", lab_bytes(R, 1), &seal);
    lab_put(v.b, &v.a, "plain", lab_bytes(R, 1));
    struct upload_info sealed = begin_sealed(&v, "k"), plain = lab_upload(v.b, &v.a, "k");
    CHECK_OK(v.b->ops->head(v.b, &v.a, STR("sealed"), STR_EMPTY, NULL, &source, &err));
    CHECK_ERR(
        v.b->ops->upload_part_copy(v.b, &v.a, &plain, 1, v.b, &source.info, &all, &part, &err),
        ERR_UNSUPPORTED);
    CHECK_OK(v.b->ops->head(v.b, &v.a, STR("plain"), STR_EMPTY, NULL, &source, &err));
    CHECK_ERR(
        v.b->ops->upload_part_copy(v.b, &v.a, &sealed, 1, v.b, &source.info, &all, &part, &err),
        ERR_UNSUPPORTED);
    CHECK_OK(v.b->ops->upload_abort(v.b, &sealed, &err));
    CHECK_OK(v.b->ops->upload_abort(v.b, &plain, &err));
    vault_close(&v);
}

static int no_finding(void *ctx, const struct local_finding *f, struct err *err)
{
    return err_set(err, ERR_CORRUPT, "%s", local_damage_text(f->damage));
}

TEST(sealed, a_scrub_of_sealed_bytes_needs_no_key)
{
    struct err err = {0};
    static const size_t len[3] = {R + 1, R + 1, 17};
    struct local_scrub scrub = {.finding = no_finding};
    struct vault v;

    vault_open(&v);
    upload_sealed(&v, "parts", len);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        put_sealed(&v, i % 2 ? "a" : "b", lab_bytes(sizes[i], i), &seal);
    put_sealed(&v, "empty", STR_EMPTY, &seal);
    CHECK_OK(local_scrub(v.l.lab.storage, &scrub, &err));
    vault_close(&v);
}
