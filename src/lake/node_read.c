/* Opens node files and decodes their blocks. Every number in a file is checked before it is used,
 * and every byte is covered by a CRC. */
#include "lake/node.h"
#include "lake/node_file.h"

#include <zstd.h>

int node_corrupt(const struct node_id *id, const char *why, struct err *err)
{
    char text[LAKE_ID_LEN + 1];

    node_id_text(text, id);
    return err_set(err, ERR_CORRUPT, "the tree's node %s %s", text, why);
}

void node_free(struct node *n)
{
    if (!n)
        return;
    free(n->file);
    vec_release(&n->blocks);
    buf_release(&n->keys);
    free(n);
}

size_t node_memory(const struct node *n)
{
    return sizeof(*n) + n->file_len + n->blocks.cap * sizeof(n->blocks.items[0]) + n->keys.cap;
}

int node_open(struct node **out, const struct node_id *id, struct buf *file, void *zstd,
              struct err *err)
{
    struct node *n = xzalloc(sizeof(*n));
    const char *why;

    n->id = *id;
    n->file_len = file->len;
    n->file = xrealloc(buf_take(file), size_max(n->file_len, 1));
    n->keys = BUF_INIT(NODE_FILE_MAX);
    if (node_is_table(str_n(n->file, n->file_len)))
        why = node_open_table(n);
    else
        why = node_open_own(n, zstd);
    if (why) {
        node_free(n);
        return node_corrupt(id, why, err);
    }
    *out = n;
    return 0;
}

int node_block_read(const struct node *n, size_t block, void *zstd, struct buf *out,
                    struct err *err)
{
    const struct node_block *b = &n->blocks.items[block];
    const char *why =
        n->foreign ? node_block_read_table(n, b, out) : node_block_read_own(n, b, zstd, out);

    return why ? node_corrupt(&n->id, why, err) : 0;
}

void node_block_add(struct node *n, const struct node_block *b, struct str key)
{
    struct node_block added = *b;

    added.key_at = (uint32_t)n->keys.len;
    added.key_len = (uint32_t)key.len;
    buf_append_str(&n->keys, key);
    vec_push(&n->blocks, added);
}

size_t node_block_find(const struct node *n, struct str key)
{
    size_t low = 0, high = n->blocks.len; /* blocks before `low` have only smaller keys */

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct node_block *b = &n->blocks.items[middle];
        if (str_cmp(str_n(n->keys.p + b->key_at, b->key_len), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- weir's own format --- */

static const char *own_block_unpack(struct str packed, size_t raw, void *zstd, struct buf *out)
{
    char *room = buf_reserve(out, raw);
    if (!room)
        return "does not fit into memory";
    size_t len = ZSTD_decompressDCtx(zstd, room, raw, packed.p, packed.len);
    if (ZSTD_isError(len) || len != raw)
        return "is damaged: a block cannot be unpacked";
    buf_commit(out, raw);
    return NULL;
}

const char *node_block_read_own(const struct node *n, const struct node_block *b, void *zstd,
                                struct buf *out)
{
    const char *p = n->file + b->offset;
    size_t len = b->stored - NODE_BLOCK_END;

    if (!node_crc_is(le32_read(p + len + 1), node_crc(0, p, len + 1)))
        return "is damaged: the checksum of a block is wrong";
    if (p[len] == NODE_BLOCK_ZSTD)
        return own_block_unpack(str_n(p, len), b->raw, zstd, out);
    if (p[len] != NODE_BLOCK_RAW || len != b->raw)
        return "is damaged: a block is of no known type";
    buf_append(out, p, len);
    return out->failed ? "does not fit into memory" : NULL;
}

/* Reads an entry of the index. Blocks are stored without gaps from the header to the index, so the
 * offset of each block is known beforehand. */
static const char *own_index_entry(struct node *n, const struct block_cursor *c, size_t *at,
                                   size_t end)
{
    struct str value = c->value;
    uint64_t offset, stored, raw;

    if (!varint_take(&value, &offset) || !varint_take(&value, &stored) ||
        !varint_take(&value, &raw) || value.len || offset != *at || stored < NODE_BLOCK_END ||
        stored > end - *at || raw > NODE_BLOCK_MAX)
        return "is damaged: its index of blocks is wrong";
    struct node_block b = {(uint32_t)offset, (uint32_t)stored, (uint32_t)raw, 0, 0};
    node_block_add(n, &b, block_cursor_key(c));
    *at += stored;
    return NULL;
}

/* The keys in an index omit the bytes that successive keys share, so in memory they take more bytes
 * than the index. Memory of KEYS_PER_INDEX times the index's size is reserved at once, which is
 * enough for most nodes. */
enum { KEYS_PER_INDEX = 2 };

static const char *own_index(struct node *n, struct str raw, size_t end)
{
    struct block_cursor c;
    size_t at = NODE_HEADER;
    const char *why = NULL;
    int code = block_cursor_open(&c, raw, 0);

    buf_reserve(&n->keys, KEYS_PER_INDEX * raw.len);

    while (code == 0 && (code = block_cursor_next(&c)) == 0)
        if ((why = own_index_entry(n, &c, &at, end)))
            return why;
    if (code != ERR_END || at != end || n->blocks.len == 0)
        return "is damaged: its index of blocks is wrong";
    return NULL;
}

static const char *own_frame(const struct node *n)
{
    static const char zeros[NODE_HEADER - NODE_HEADER_LEVEL - 1];

    if (n->file_len < NODE_HEADER + NODE_FOOTER || n->file_len > NODE_FILE_MAX ||
        memcmp(n->file, NODE_MAGIC, NODE_MAGIC_LEN) != 0)
        return "is damaged: it does not begin like a node";
    const char *footer = n->file + n->file_len - NODE_FOOTER;
    if (memcmp(footer + FOOTER_MAGIC, NODE_MAGIC, NODE_MAGIC_LEN) != 0)
        return "is damaged: it does not end like a node";
    uint32_t crc = node_crc(node_crc(0, n->file, NODE_HEADER), footer, FOOTER_CRC);
    if (!node_crc_is(le32_read(footer + FOOTER_CRC), crc))
        return "is damaged: the checksum of its footer is wrong";
    if (memcmp(footer + FOOTER_ID, n->id.bytes, NODE_ID_LEN) != 0)
        return "is the file of another node";
    if ((unsigned char)n->file[NODE_HEADER_LEVEL] > NODE_LEVEL_MAX ||
        memcmp(n->file + NODE_HEADER_LEVEL + 1, zeros, sizeof(zeros)) != 0)
        return "is written by a newer weir";
    return NULL;
}

const char *node_open_own(struct node *n, void *zstd)
{
    struct buf raw = BUF_INIT(NODE_BLOCK_MAX);
    const char *why = own_frame(n);
    if (why)
        return why;
    const char *footer = n->file + n->file_len - NODE_FOOTER;
    size_t end = n->file_len - NODE_FOOTER;
    struct node_block index = {
        .offset = le32_read(footer + FOOTER_INDEX_AT),
        .stored = le32_read(footer + FOOTER_INDEX_STORED),
        .raw = le32_read(footer + FOOTER_INDEX_RAW),
    };

    if (index.offset < NODE_HEADER || index.offset > end || index.stored != end - index.offset ||
        index.stored < NODE_BLOCK_END || index.raw > NODE_BLOCK_MAX)
        return "is damaged: its footer is wrong";
    n->level = (unsigned char)n->file[NODE_HEADER_LEVEL];
    n->records = le32_read(footer + FOOTER_RECORDS);
    why = node_block_read_own(n, &index, zstd, &raw);
    if (!why)
        why = own_index(n, buf_str(&raw), index.offset);
    buf_release(&raw);
    return why;
}
