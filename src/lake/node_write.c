/* Makes node files. Records are collected in a draft, and then written as blocks, an index of the
 * blocks, and a footer. The id is computed while the records are written. */
#include "lake/node.h"
#include "lake/node_file.h"

#include <zstd.h>

enum { DRAFT_LENGTHS = 8, ZSTD_LEVEL = -1 };

/* --- drafts --- */

void node_draft_reset(struct node_draft *d, unsigned level, size_t target)
{
    buf_reset(&d->raw);
    buf_reset(&d->packed);
    d->runs.len = 0;
    d->level = level;
    d->target = target;
    d->records = 0;
    d->count = d->bytes = 0;
    d->weight = d->last_at = 0;
    d->run.node = NULL;
}

void node_draft_release(struct node_draft *d)
{
    buf_release(&d->raw);
    buf_release(&d->packed);
    vec_release(&d->runs);
}

/* Writes the lengths and the key of a record; the caller then appends the value. */
static void draft_begin(struct node_draft *d, struct str key, size_t value_len)
{
    d->last_at = d->raw.len;
    buf_append_le32(&d->raw, (uint32_t)key.len);
    buf_append_le32(&d->raw, (uint32_t)value_len);
    buf_append_str(&d->raw, key);
    d->records++;
}

static size_t draft_leaf_weight(struct node_draft *d, size_t weight)
{
    d->weight += weight;
    d->bytes += weight;
    d->count++;
    return weight;
}

size_t node_draft_raw(struct node_draft *d, struct str key, struct str value)
{
    draft_begin(d, key, value.len);
    buf_append_str(&d->raw, value);
    return draft_leaf_weight(d, key.len + value.len);
}

size_t node_draft_record(struct node_draft *d, const struct tree_record *r)
{
    size_t size = node_record_size(r->identity, r->data);

    draft_begin(d, r->key, size);
    node_record_write(&d->raw, r->identity, r->data);
    return draft_leaf_weight(d, r->key.len + size);
}

size_t node_draft_child(struct node_draft *d, struct str max, const struct node_child *c)
{
    draft_begin(d, max, 0);
    size_t value_at = d->raw.len;
    node_child_write(&d->raw, c);
    size_t value_len = d->raw.len - value_at;
    if (d->raw.failed)
        return 0;
    le32_write(d->raw.p + d->last_at + 4, (uint32_t)value_len);
    size_t weight = max.len + value_len - NODE_CHILD_HINT;
    d->weight += weight;
    d->bytes += c->bytes;
    d->count += c->count;
    return weight;
}

/* Ends a run: all records of a stored block were added, so its stored bytes are copied to
 * `packed`. */
static void draft_end_run(struct node_draft *d)
{
    const struct node *n = d->run.node;
    const struct node_block *b = &n->blocks.items[d->run.block];
    struct draft_run run = {d->run.at, d->raw.len, d->packed.len, b->stored, b->raw};

    buf_append(&d->packed, n->file + b->offset, b->stored);
    if (!d->packed.failed)
        vec_push(&d->runs, run);
}

void node_draft_from(struct node_draft *d, const struct node_origin *o)
{
    if (o->node->foreign || d->raw.failed)
        return;
    bool goes_on = d->run.node == o->node && d->run.block == o->block && d->run.to == o->from &&
                   d->run.next == d->last_at;
    if (o->from == 0) {
        d->run.node = o->node;
        d->run.block = o->block;
        d->run.at = d->last_at;
    } else if (!goes_on) {
        d->run.node = NULL;
    }
    d->run.to = o->to;
    d->run.next = d->raw.len;
    if (d->run.node && o->is_last)
        draft_end_run(d);
}

struct draft_record {
    struct str key, value;
};

/* Reads the record at offset *at of the draft, and sets *at to the offset of the next record. */
static struct draft_record draft_at(const struct node_draft *d, size_t *at)
{
    const char *p = d->raw.p + *at;
    struct str key = str_n(p + DRAFT_LENGTHS, le32_read(p));
    struct str value = str_n(key.p + key.len, le32_read(p + 4));

    *at += DRAFT_LENGTHS + key.len + value.len;
    return (struct draft_record){key, value};
}

struct str node_draft_min(const struct node_draft *d)
{
    size_t at = 0;
    struct draft_record first = draft_at(d, &at);
    struct node_child child;

    if (d->level == 0)
        return first.key;
    BUG_ON(node_child_read(&child, first.value));
    return child.min;
}

struct str node_draft_last(const struct node_draft *d)
{
    size_t at = d->last_at;
    return draft_at(d, &at).key;
}

struct str node_draft_value(const struct node_draft *d)
{
    size_t at = d->last_at;
    return draft_at(d, &at).value;
}

size_t node_draft_id_at(const struct node_draft *d)
{
    return d->last_at + DRAFT_LENGTHS + node_draft_last(d).len;
}

/* --- the encoder --- */

void node_encoder_init(struct node_encoder *e)
{
    *e = (struct node_encoder){.zstd = ZSTD_createCCtx()};
    BUG_ON(!e->zstd);
    node_hash_init(&e->hash);
}

void node_encoder_release(struct node_encoder *e)
{
    ZSTD_freeCCtx(e->zstd);
    node_hash_release(&e->hash);
    block_writer_release(&e->block);
    block_writer_release(&e->index);
    buf_release(&e->entry);
    buf_release(&e->file);
}

/* Appends the block to the file, compressed if that makes it smaller, and then its type and CRC.
 * Returns the number of bytes that were appended. */
static size_t encoder_store(struct node_encoder *e, struct block_writer *w)
{
    block_writer_end(w);
    size_t bound = ZSTD_compressBound(w->bytes.len);
    char *room = buf_reserve(&e->file, bound + NODE_BLOCK_END);
    if (!room || w->bytes.failed)
        return 0;
    size_t len = ZSTD_compressCCtx(e->zstd, room, bound, w->bytes.p, w->bytes.len, ZSTD_LEVEL);
    if (ZSTD_isError(len) || len >= w->bytes.len) {
        len = w->bytes.len;
        memcpy(room, w->bytes.p, len);
        room[len] = NODE_BLOCK_RAW;
    } else {
        room[len] = NODE_BLOCK_ZSTD;
    }
    le32_write(room + len + 1, node_crc(0, room, len + 1));
    buf_commit(&e->file, len + NODE_BLOCK_END);
    return len + NODE_BLOCK_END;
}

/* Adds a block to the index. */
static void encoder_index(struct node_encoder *e, struct str last, size_t offset, size_t stored,
                          size_t raw)
{
    buf_reset(&e->entry);
    varint_append(&e->entry, offset);
    varint_append(&e->entry, stored);
    varint_append(&e->entry, raw);
    block_writer_add(&e->index, last, buf_str(&e->entry));
}

/* Ends the block that is open. */
static void encoder_end_block(struct node_encoder *e)
{
    struct str last = e->block.last;
    size_t offset = e->file.len, stored = encoder_store(e, &e->block);

    encoder_index(e, last, offset, stored, e->block.bytes.len);
    block_writer_reset(&e->block);
}

static void encoder_hash(struct node_encoder *e, unsigned level, const struct draft_record *r)
{
    struct str hashed = level ? str_head(r->value, r->value.len - NODE_CHILD_HINT) : r->value;

    node_hash_record(&e->hash, r->key, hashed);
}

/* Copies the stored block of the run that begins at *at to the file, and sets *at to the end of the
 * run. The block that is being filled ends before it. If that block is still too small to end,
 * returns false and copies nothing. */
static bool encoder_take_run(struct node_encoder *e, const struct node_draft *d,
                             const struct draft_run *run, size_t *at)
{
    struct draft_record r = {0};

    if (e->block.bytes.len && block_writer_size(&e->block) < NODE_BLOCK / 2)
        return false;
    if (e->block.bytes.len)
        encoder_end_block(e);
    while (*at < run->end) {
        r = draft_at(d, at);
        encoder_hash(e, d->level, &r);
    }
    encoder_index(e, r.key, e->file.len, run->stored, run->raw);
    buf_append(&e->file, d->packed.p + run->packed_at, run->stored);
    return true;
}

static void encoder_record(struct node_encoder *e, unsigned level, const struct draft_record *r)
{
    enum { ENTRY_MAX = 3 * 5 + 4 }; /* three lengths and a restart */

    encoder_hash(e, level, r);
    if (e->block.bytes.len &&
        block_writer_size(&e->block) + r->key.len + r->value.len + ENTRY_MAX > NODE_BLOCK)
        encoder_end_block(e);
    block_writer_add(&e->block, r->key, r->value);
}

static void encoder_footer(struct node_encoder *e, const struct node_draft *d, size_t index_at)
{
    char footer[NODE_FOOTER];

    memcpy(footer + FOOTER_ID, e->id.bytes, NODE_ID_LEN);
    le32_write(footer + FOOTER_INDEX_AT, (uint32_t)index_at);
    le32_write(footer + FOOTER_INDEX_STORED, (uint32_t)(e->file.len - index_at));
    le32_write(footer + FOOTER_INDEX_RAW, (uint32_t)e->index.bytes.len);
    le32_write(footer + FOOTER_RECORDS, d->records);
    le32_write(footer + FOOTER_BYTES, (uint32_t)d->weight);
    uint32_t crc = node_crc(node_crc(0, e->file.p, NODE_HEADER), footer, FOOTER_CRC);
    le32_write(footer + FOOTER_CRC, crc);
    memcpy(footer + FOOTER_MAGIC, NODE_MAGIC, NODE_MAGIC_LEN);
    buf_append(&e->file, footer, sizeof(footer));
}

static void encoder_records(struct node_encoder *e, const struct node_draft *d)
{
    size_t run = 0;

    for (size_t at = 0; at < d->raw.len;) {
        while (run < d->runs.len && d->runs.items[run].at < at)
            run++;
        if (run < d->runs.len && d->runs.items[run].at == at &&
            encoder_take_run(e, d, &d->runs.items[run], &at))
            continue;
        struct draft_record r = draft_at(d, &at);
        encoder_record(e, d->level, &r);
    }
    if (e->block.bytes.len)
        encoder_end_block(e);
}

int node_encode(struct node_encoder *e, const struct node_draft *d, struct err *err)
{
    char header[NODE_HEADER] = NODE_MAGIC;

    header[NODE_HEADER_LEVEL] = (char)d->level;
    buf_reset(&e->file);
    buf_append(&e->file, header, sizeof(header));
    block_writer_reset(&e->block);
    block_writer_reset(&e->index);
    node_hash_begin(&e->hash);
    encoder_records(e, d);
    node_hash_end(&e->hash, node_hash_type(d->level), &e->id);
    size_t index_at = e->file.len;
    encoder_store(e, &e->index);
    if (d->raw.failed || e->file.failed || e->index.bytes.failed)
        return err_set(err, ERR_NO_MEMORY, "there is no memory for a node of a tree");
    encoder_footer(e, d, index_at);
    return buf_error(&e->file) ? err_code(err, buf_error(&e->file)) : 0;
}
