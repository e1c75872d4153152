/* Reads tables of lakeFS: RocksDB's block-based table of format version 1 or 2, as the library
 * pebble writes it. docs/lake-trees.md, "lakeFS's tables", has the layout.
 *
 * A *handle* is the offset and the size of a block. Handles must ascend through the whole index, so
 * a file cannot name more blocks than it has room for. */
#include "lake/node.h"

#include "lake/sst_unpack.h"

enum {
    TABLE_FOOTER = 53,
    TABLE_HANDLES = 1, /* offset in the footer of two handles: of the metaindex and of the index */
    TABLE_VERSION = 41,
    TABLE_MAGIC = 45,
    TABLE_BLOCK_END = 5, /* bytes after each block: its type and its CRC */
    TABLE_BLOCK_MAX = 16 << 20,
    TABLE_CRC32C = 1, /* the only kind of checksum that weir reads */
    TABLE_KEY_TRAILER = 8,
    TABLE_TWO_LEVELS = 2, /* the type of an index whose blocks have an index of their own */
};
static const uint64_t table_magic = UINT64_C(0x88e241b785f4cff7);

bool node_is_table(struct str file)
{
    return file.len >= TABLE_FOOTER && le64_read(file.p + file.len - 8) == table_magic;
}

/* --- blocks --- */

/* Computes a CRC in the form that RocksDB stores: rotated, and with a constant added. (A plain CRC
 * over bytes that contain CRCs would detect fewer errors.) */
static uint32_t table_crc(const char *p, size_t len)
{
    uint32_t crc = node_crc(0, p, len);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

const char *node_block_read_table(const struct node *n, const struct node_block *b, struct buf *out)
{
    enum { PLAIN = 0, SNAPPY = 1 };
    const char *p = n->file + b->offset;
    size_t len = b->stored - TABLE_BLOCK_END;

    if (!node_crc_is(le32_read(p + len + 1), table_crc(p, len + 1)))
        return "is damaged: the checksum of a block is wrong";
    if (p[len] == SNAPPY)
        return sst_unpack(out, str_n(p, len), TABLE_BLOCK_MAX)
                   ? NULL
                   : "is damaged: a block cannot be unpacked";
    if (p[len] != PLAIN)
        return "has a block of a compression that weir does not read";
    buf_append(out, p, len);
    return out->failed ? "does not fit into memory" : NULL;
}

/* Reads a handle from `in`, and checks that its block ends before the footer. */
static bool table_handle(const struct node *n, struct str *in, struct node_block *out)
{
    size_t end = n->file_len - TABLE_FOOTER;
    uint64_t offset, size;

    if (!varint_take(in, &offset) || !varint_take(in, &size) || offset > end ||
        end - offset < TABLE_BLOCK_END || size > end - offset - TABLE_BLOCK_END)
        return false;
    *out =
        (struct node_block){.offset = (uint32_t)offset, .stored = (uint32_t)size + TABLE_BLOCK_END};
    return true;
}

/* Decodes a block into a buf, and opens a cursor on it. */
static const char *table_open_block(const struct node *n, const struct node_block *b,
                                    unsigned trailer, struct buf *raw, struct block_cursor *c)
{
    buf_reset(raw);
    const char *why = node_block_read_table(n, b, raw);
    if (!why && block_cursor_open(c, buf_str(raw), trailer))
        why = "is damaged: a block is malformed";
    return why;
}

/* --- properties --- */

struct table_properties {
    unsigned level;
    bool two_levels;
    uint64_t records;
};

static const char bad_properties[] = "is damaged: its properties are malformed";

static const char *table_property(struct table_properties *p, struct str key, struct str value)
{
    if (str_eq(key, STR("type"))) {
        if (!str_eq(value, STR("ranges")) && !str_eq(value, STR("metaranges")))
            return "is a table of an unknown type";
        p->level = str_eq(value, STR("metaranges"));
    } else if (str_eq(key, STR("rocksdb.num.entries"))) {
        if (!varint_take(&value, &p->records))
            return bad_properties;
    } else if (str_eq(key, STR("rocksdb.block.based.table.index.type"))) {
        if (value.len != 4 || le32_read(value.p) > TABLE_TWO_LEVELS)
            return "has an index of a type that weir does not read";
        p->two_levels = le32_read(value.p) == TABLE_TWO_LEVELS;
    }
    return NULL;
}

/* Reads the records in the block of properties. */
static const char *table_read_properties(const struct node *n, const struct node_block *b,
                                         struct table_properties *out)
{
    struct buf raw = {0};
    struct block_cursor c;
    const char *why = table_open_block(n, b, 0, &raw, &c);
    int code = 0;

    *out = (struct table_properties){.level = NODE_LEVEL_MAX};
    while (!why && (code = block_cursor_next(&c)) == 0)
        why = table_property(out, block_cursor_key(&c), c.value);
    if (!why && code != ERR_END)
        why = bad_properties;
    if (!why && out->level == NODE_LEVEL_MAX)
        why = "is a table without a type";
    buf_release(&raw);
    return why;
}

/* Finds the block of properties, whose handle is in the metaindex. */
static const char *table_find_properties(const struct node *n, const struct node_block *metaindex,
                                         struct node_block *out)
{
    struct buf raw = {0};
    struct block_cursor c;
    const char *why = table_open_block(n, metaindex, 0, &raw, &c);
    struct str name = STR("rocksdb.properties"), value;

    if (!why) {
        int code = block_cursor_seek(&c, name);
        value = c.value;
        if (code || !str_eq(block_cursor_key(&c), name) || !table_handle(n, &value, out))
            why = bad_properties;
    }
    buf_release(&raw);
    return why;
}

/* --- the index --- */

static const char bad_index[] = "is damaged: its index of blocks is wrong";

/* Reads the next handle of an index block. Its block must begin at or after the offset *end. Then
 * *end is set to the end of that block. */
static const char *table_next_handle(const struct node *n, struct block_cursor *c, uint32_t *end,
                                     struct node_block *out)
{
    struct str value = c->value;

    if (!table_handle(n, &value, out) || out->offset < *end)
        return bad_index;
    *end = out->offset + out->stored;
    return NULL;
}

/* Adds to the node the blocks that an index block names. */
static const char *table_read_index(struct node *n, const struct node_block *index, uint32_t *end)
{
    struct buf raw = {0};
    struct block_cursor c;
    struct node_block b;
    const char *why = table_open_block(n, index, TABLE_KEY_TRAILER, &raw, &c);
    int code = 0;

    while (!why && (code = block_cursor_next(&c)) == 0)
        if (!(why = table_next_handle(n, &c, end, &b)))
            node_block_add(n, &b, block_cursor_key(&c));
    if (!why && (code != ERR_END || n->keys.failed))
        why = bad_index;
    buf_release(&raw);
    return why;
}

/* Adds the blocks of an index with two levels: the top index names the index blocks. */
static const char *table_read_top(struct node *n, const struct node_block *top)
{
    struct buf raw = {0};
    struct block_cursor c;
    struct node_block index;
    uint32_t index_end = 0, data_end = 0;
    const char *why = table_open_block(n, top, TABLE_KEY_TRAILER, &raw, &c);
    int code = 0;

    while (!why && (code = block_cursor_next(&c)) == 0)
        if (!(why = table_next_handle(n, &c, &index_end, &index)))
            why = table_read_index(n, &index, &data_end);
    if (!why && code != ERR_END)
        why = bad_index;
    buf_release(&raw);
    return why;
}

const char *node_open_table(struct node *n)
{
    const char *footer = n->file + n->file_len - TABLE_FOOTER;
    struct str handles = str_n(footer + TABLE_HANDLES, TABLE_VERSION - TABLE_HANDLES);
    uint32_t version = le32_read(footer + TABLE_VERSION), end = 0;
    struct node_block metaindex, index, properties;
    struct table_properties p;

    if (n->file_len > NODE_FILE_MAX)
        return "is too large";
    if (footer[0] != TABLE_CRC32C || version < 1 || version > 2)
        return "is a table of a version that weir does not read";
    if (!table_handle(n, &handles, &metaindex) || !table_handle(n, &handles, &index))
        return "is damaged: its footer is wrong";
    const char *why = table_find_properties(n, &metaindex, &properties);
    if (!why)
        why = table_read_properties(n, &properties, &p);
    if (why)
        return why;
    n->foreign = true;
    n->level = p.level;
    n->records = p.records;
    why = p.two_levels ? table_read_top(n, &index) : table_read_index(n, &index, &end);
    return !why && n->blocks.len == 0 ? bad_index : why;
}
