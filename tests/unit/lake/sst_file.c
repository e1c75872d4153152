/* Making tables. RocksDB's C interface cannot add properties of one's own, so the table is written
 * by RocksDB, and then gets a new block of properties, a new metaindex and a new footer. */
#include "unit/lake/sst_file.h"

#include "base/proto.h"
#include "lake/node.h"
#include "os/file.h"

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOOTER = 53, TRAILER = 5 };

struct sst_file {
    struct sst_options o;
    char path[512];
    struct node_hash hash;
    rocksdb_options_t *options;
    rocksdb_envoptions_t *env;
    rocksdb_sstfilewriter_t *writer;
    rocksdb_block_based_table_options_t *table;
};

struct sst_file *sst_file_new(const struct sst_options *o)
{
    static unsigned number;
    struct sst_file *f = xzalloc(sizeof(*f));
    char *problem = NULL;

    f->o = *o;
    f->options = rocksdb_options_create();
    f->table = rocksdb_block_based_options_create();
    f->env = rocksdb_envoptions_create();
    rocksdb_block_based_options_set_format_version(f->table, 2);
    rocksdb_block_based_options_set_checksum(f->table, 1); /* CRC-32C */
    rocksdb_block_based_options_set_block_size(f->table, o->block ? o->block : 4096);
    if (o->two_levels) {
        rocksdb_block_based_options_set_index_type(
            f->table, rocksdb_block_based_table_index_type_two_level_index_search);
        rocksdb_block_based_options_set_metadata_block_size(f->table, 256);
    }
    rocksdb_options_set_block_based_table_factory(f->options, f->table);
    rocksdb_options_set_compression(f->options,
                                    o->plain ? rocksdb_no_compression : rocksdb_snappy_compression);
    f->writer = rocksdb_sstfilewriter_create(f->env, f->options);
    snprintf(f->path, sizeof(f->path), "%s/table-%u", test_dir(), number++);
    rocksdb_sstfilewriter_open(f->writer, f->path, &problem);
    CHECK(!problem);
    node_hash_init(&f->hash);
    node_hash_begin(&f->hash);
    return f;
}

void sst_file_add(struct sst_file *f, struct str key, struct str value)
{
    char *problem = NULL;

    rocksdb_sstfilewriter_put(f->writer, key.p, key.len, value.p, value.len, &problem);
    CHECK(!problem);
    node_hash_record(&f->hash, key, value);
}

/* Appends a block that is not packed, and gives its handle. */
static void sst_block(struct buf *file, struct block_writer *w, struct buf *handle)
{
    size_t at = file->len;

    block_writer_end(w);
    buf_append_str(file, buf_str(&w->bytes));
    buf_append_char(file, 0);
    uint32_t crc = node_crc(0, file->p + at, file->len - at);
    buf_append_le32(file, (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8));
    buf_reset(handle);
    varint_append(handle, at);
    varint_append(handle, w->bytes.len);
    block_writer_release(w);
}

static struct str sst_raw_block(struct str file, struct str *handle)
{
    uint64_t at, size;

    CHECK(varint_take(handle, &at) && varint_take(handle, &size));
    CHECK(at + size + TRAILER <= file.len && file.p[at + size] == 0); /* not packed */
    return str_n(file.p + at, size);
}

/* Copies RocksDB's properties and adds the type, in order. */
static void sst_properties(struct str file, struct str handle, const char *type,
                           struct block_writer *out)
{
    static char keys[64][128];
    struct block_cursor c;
    bool done = !type;
    size_t count = 0;

    CHECK_INT(block_cursor_open(&c, sst_raw_block(file, &handle), 0), 0);
    while (block_cursor_next(&c) == 0) {
        struct str key = block_cursor_key(&c);
        if (str_starts(key, STR("rocksdb.creating."))) /* the machine's name, and random ids */
            continue;
        if (!done && str_cmp(STR("type"), key) < 0)
            block_writer_add(out, STR("type"), str_z(type));
        done = done || str_cmp(STR("type"), key) < 0;
        CHECK(count < 64 && key.len < 128);
        memcpy(keys[count], key.p, key.len);
        block_writer_add(out, str_n(keys[count++], key.len), c.value);
    }
    if (!done)
        block_writer_add(out, STR("type"), str_z(type));
}

/* Where the block of a handle begins. */
static size_t sst_offset(struct str handle)
{
    uint64_t at;

    CHECK(varint_take(&handle, &at));
    return at;
}

/* Replaces what is behind the index: the properties, the metaindex and the footer. */
static void sst_retouch(struct buf *file, const char *type)
{
    struct str all = buf_str(file), footer = str_skip(all, all.len - FOOTER),
               handles = str_skip(footer, 1), index;
    struct block_writer properties = {0}, metaindex = {0};
    struct buf out = BUF_INIT(NODE_FILE_MAX), handle = {0};
    struct block_cursor c;
    char tail[FOOTER] = {0};

    CHECK_INT(block_cursor_open(&c, sst_raw_block(all, &handles), 0), 0);
    index = handles;
    CHECK_INT(block_cursor_seek(&c, STR("rocksdb.properties")), 0);
    sst_properties(all, c.value, type, &properties);
    CHECK(sst_offset(index) < sst_offset(c.value));
    buf_append(&out, all.p, sst_offset(c.value));
    sst_block(&out, &properties, &handle);
    block_writer_add(&metaindex, STR("rocksdb.properties"), buf_str(&handle));
    sst_block(&out, &metaindex, &handle);
    memcpy(tail, footer.p, 1);
    memcpy(tail + 1, handle.p, handle.len);
    memcpy(tail + 1 + handle.len, index.p, 41 - 1 - handle.len);
    memcpy(tail + 41, footer.p + 41, 12);
    buf_append(&out, tail, sizeof(tail));
    buf_reset(file);
    buf_append_str(file, buf_str(&out));
    buf_release(&out);
    buf_release(&handle);
}

void sst_file_end(struct sst_file *f, struct buf *out, char id[LAKE_ID_LEN + 1])
{
    struct node_id bytes;
    struct err err = {0};
    char *problem = NULL;

    rocksdb_sstfilewriter_finish(f->writer, &problem);
    CHECK(!problem);
    CHECK_OK(file_read(f->path, out, &err));
    sst_retouch(out, f->o.type);
    node_hash_end(&f->hash, str_z(f->o.type), &bytes);
    node_id_text(id, &bytes);
    node_hash_release(&f->hash);
    rocksdb_sstfilewriter_destroy(f->writer);
    rocksdb_envoptions_destroy(f->env);
    rocksdb_options_destroy(f->options);
    rocksdb_block_based_options_destroy(f->table);
    free(f);
}

void sst_file_empty(struct buf *out, const char *type, char id[LAKE_ID_LEN + 1])
{
    static const char separator[8] = {0}; /* RocksDB's trailer of a key */
    struct block_writer data = {0}, index = {0}, properties = {0}, metaindex = {0};
    struct buf handle = {0};
    struct node_hash hash;
    struct node_id bytes;
    char tail[FOOTER] = {1}; /* CRC-32C */

    vec_push(&data.restarts, 0);
    sst_block(out, &data, &handle);
    block_writer_add(&index, str_n(separator, sizeof(separator)), buf_str(&handle));
    struct buf index_handle = {0};
    sst_block(out, &index, &index_handle);
    block_writer_add(&properties, STR("rocksdb.num.entries"), str_n("", 1));
    block_writer_add(&properties, STR("type"), str_z(type));
    sst_block(out, &properties, &handle);
    block_writer_add(&metaindex, STR("rocksdb.properties"), buf_str(&handle));
    sst_block(out, &metaindex, &handle);
    memcpy(tail + 1, handle.p, handle.len);
    memcpy(tail + 1 + handle.len, index_handle.p, index_handle.len);
    le32_write(tail + 41, 2);
    le32_write(tail + 45, UINT32_C(0x85f4cff7)); /* the magic number of such tables */
    le32_write(tail + 49, UINT32_C(0x88e241b7));
    buf_append(out, tail, sizeof(tail));
    node_hash_init(&hash);
    node_hash_begin(&hash);
    node_hash_end(&hash, str_z(type), &bytes);
    node_id_text(id, &bytes);
    node_hash_release(&hash);
    buf_release(&handle);
    buf_release(&index_handle);
}

/* --- sets --- */

struct sst_range {
    unsigned first, last, count;
    char id[LAKE_ID_LEN + 1];
};

/* Writes the keys from `from` to before `to` as a range. */
static void sst_range(struct world *w, const struct set *s, unsigned from, unsigned to,
                      const struct sst_options *o, struct sst_range *out)
{
    struct sst_options options = *o;
    struct buf value = {0}, bytes = BUF_INIT(NODE_FILE_MAX);
    char room[SET_ROOM];

    *out = (struct sst_range){0};
    options.type = "ranges";
    struct sst_file *f = sst_file_new(&options);
    for (unsigned n = from; n < to; n++) {
        if (!s->versions[n])
            continue;
        struct tree_record r = set_record(room, n, s->versions[n]);
        buf_reset(&value);
        node_record_write(&value, r.identity, r.data);
        sst_file_add(f, r.key, buf_str(&value));
        if (out->count++ == 0)
            out->first = n;
        out->last = n;
    }
    CHECK(out->count > 0);
    sst_file_end(f, &bytes, out->id);
    world_put(w, str_z(out->id), buf_str(&bytes));
    buf_release(&value);
    buf_release(&bytes);
}

/* RangeData: min_key 1, max_key 2, estimated_size 3, count 4. */
static void sst_range_value(const struct sst_range *r, struct buf *out)
{
    struct buf data = {0};
    char room[64];

    proto_put_bytes(&data, 1, set_key(room, r->first));
    proto_put_bytes(&data, 2, set_key(room, r->last));
    proto_put_number(&data, 3, r->count * 100);
    proto_put_number(&data, 4, r->count);
    buf_reset(out);
    node_record_write(out, str_z(r->id), buf_str(&data));
    buf_release(&data);
}

void sst_ranges(struct world *w, const struct set *s, const unsigned bounds[][2], unsigned ranges,
                const struct sst_options *o, char root[LAKE_ID_LEN + 1])
{
    struct sst_options options = *o;
    struct buf value = {0}, bytes = BUF_INIT(NODE_FILE_MAX);
    struct sst_range r;
    char room[64];

    options.type = "metaranges";
    struct sst_file *f = sst_file_new(&options);
    for (unsigned i = 0; i < ranges; i++) {
        sst_range(w, s, bounds[i][0], bounds[i][1], o, &r);
        r.last += o->ends_late;
        sst_range_value(&r, &value);
        sst_file_add(f, set_key(room, r.last), buf_str(&value));
    }
    sst_file_end(f, &bytes, root);
    world_put(w, str_z(root), buf_str(&bytes));
    buf_release(&value);
    buf_release(&bytes);
}

void sst_set(struct world *w, const struct set *s, unsigned ranges, const struct sst_options *o,
             char root[LAKE_ID_LEN + 1])
{
    unsigned bounds[SET_KEYS][2];

    for (unsigned i = 0; i < ranges; i++) {
        bounds[i][0] = SET_KEYS * i / ranges;
        bounds[i][1] = SET_KEYS * (i + 1) / ranges;
    }
    sst_ranges(w, s, bounds, ranges, o, root);
}
