/* Blocks: sequences of records in which each key omits the bytes that it shares with the key
 * before. Every 16th record is a restart: it has its whole key, so that a search can begin
 * there. */
#include "lake/node.h"

#include <isa-l/crc.h>

enum { RESTART_EVERY = 16, RESTART_SIZE = 4 };

uint32_t node_crc(uint32_t crc, const void *p, size_t len)
{
    enum { PIECE = 1 << 30 }; /* most bytes of one call; ISA-L takes the length as an int */
    const unsigned char *bytes = p;

    crc = ~crc;
    for (size_t n; len; bytes += n, len -= n) {
        n = size_min(len, PIECE);
        crc = crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)n, crc);
    }
    return ~crc;
}

/* --- writing --- */

void block_writer_release(struct block_writer *w)
{
    buf_release(&w->bytes);
    vec_release(&w->restarts);
    *w = (struct block_writer){0};
}

void block_writer_reset(struct block_writer *w)
{
    buf_reset(&w->bytes);
    w->restarts.len = 0;
    w->last = STR_EMPTY;
    w->since = 0;
}

static size_t block_shared(struct str a, struct str b)
{
    size_t n = size_min(a.len, b.len), i = 0;

    while (i < n && a.p[i] == b.p[i])
        i++;
    return i;
}

void block_writer_add(struct block_writer *w, struct str key, struct str value)
{
    size_t shared = 0;

    if (w->restarts.len == 0 || w->since == RESTART_EVERY) {
        vec_push(&w->restarts, (uint32_t)w->bytes.len);
        w->since = 0;
    } else {
        shared = block_shared(w->last, key);
    }
    varint_append(&w->bytes, shared);
    varint_append(&w->bytes, key.len - shared);
    varint_append(&w->bytes, value.len);
    buf_append_str(&w->bytes, str_skip(key, shared));
    buf_append_str(&w->bytes, value);
    w->last = key;
    w->since++;
}

size_t block_writer_size(const struct block_writer *w)
{
    return w->bytes.len + (w->restarts.len + 1) * RESTART_SIZE;
}

void block_writer_end(struct block_writer *w)
{
    vec_each (&w->restarts, uint32_t *, at)
        buf_append_le32(&w->bytes, *at);
    buf_append_le32(&w->bytes, (uint32_t)w->restarts.len);
}

/* --- reading --- */

int block_cursor_open(struct block_cursor *c, struct str bytes, unsigned trailer)
{
    if (bytes.len < RESTART_SIZE)
        return ERR_CORRUPT;
    size_t room = bytes.len - RESTART_SIZE;
    uint32_t count = le32_read(bytes.p + room);
    if (count > room / RESTART_SIZE)
        return ERR_CORRUPT;
    c->bytes = (const unsigned char *)bytes.p;
    c->len = room - (size_t)count * RESTART_SIZE;
    c->at = 0;
    c->restart_count = count;
    c->trailer = trailer;
    c->key_len = 0;
    c->value = STR_EMPTY;
    return 0;
}

struct block_entry {
    uint64_t shared, unshared, value;
    size_t at; /* offset of the bytes that the key does not share with the key before */
};

/* Reads the lengths before a record, and checks that the record ends inside the block. Most lengths
 * are below 128, and so have one byte each. */
static bool block_entry_read(const struct block_cursor *c, size_t at, struct block_entry *e)
{
    const unsigned char *p = c->bytes + at;
    struct str rest;

    if (c->len - at >= 3 && (p[0] | p[1] | p[2]) < 0x80) {
        *e = (struct block_entry){p[0], p[1], p[2], at + 3};
    } else {
        rest = str_n(p, c->len - at);
        if (!varint_take(&rest, &e->shared) || !varint_take(&rest, &e->unshared) ||
            !varint_take(&rest, &e->value))
            return false;
        e->at = c->len - rest.len;
    }
    return e->unshared <= c->len - e->at && e->value <= c->len - e->at - e->unshared;
}

/* Whether the record's key is greater than the cursor's key. If the shared bytes reach into a
 * trailer, one of the two keys (without trailers) is a prefix of the other, and the longer one is
 * greater. */
static bool block_ascends(const struct block_cursor *c, const struct block_entry *e)
{
    if (c->key_len == 0)
        return true;
    size_t old_len = c->key_len - c->trailer, new_len = e->shared + e->unshared - c->trailer;
    if (e->shared >= size_min(old_len, new_len))
        return new_len > old_len;
    return str_cmp(str_n(c->bytes + e->at, new_len - e->shared),
                   str_n(c->key + e->shared, old_len - e->shared)) > 0;
}

int block_cursor_next(struct block_cursor *c)
{
    struct block_entry e;

    if (c->at >= c->len)
        return ERR_END;
    if (!block_entry_read(c, c->at, &e) || e.shared > c->key_len ||
        e.shared + e.unshared > sizeof(c->key) || e.shared + e.unshared < c->trailer ||
        e.shared + e.unshared - c->trailer > NODE_KEY_MAX || !block_ascends(c, &e))
        return ERR_CORRUPT;
    memcpy(c->key + e.shared, c->bytes + e.at, e.unshared);
    c->key_len = e.shared + e.unshared;
    c->value = str_n(c->bytes + e.at + e.unshared, e.value);
    c->at = e.at + e.unshared + e.value;
    return 0;
}

/* Finds the i-th restart: its offset, and its whole key without the trailer. */
static int block_restart(const struct block_cursor *c, uint32_t i, size_t *at, struct str *key)
{
    struct block_entry e;

    *at = le32_read(c->bytes + c->len + (size_t)i * RESTART_SIZE);
    if (*at >= c->len || !block_entry_read(c, *at, &e) || e.shared || e.unshared < c->trailer)
        return ERR_CORRUPT;
    *key = str_n(c->bytes + e.at, e.unshared - c->trailer);
    return 0;
}

/* Places the cursor before the last restart whose key is smaller than `key`, or before the first
 * record if there is no such restart. */
static int block_cursor_jump(struct block_cursor *c, struct str key)
{
    uint32_t low = 0, high = c->restart_count; /* restarts before `low` have smaller keys */
    size_t at, found = 0;
    struct str here;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (block_restart(c, middle, &at, &here))
            return ERR_CORRUPT;
        if (str_cmp(here, key) < 0) {
            found = at;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    c->at = found;
    c->key_len = 0;
    return 0;
}

int block_cursor_seek(struct block_cursor *c, struct str key)
{
    int code = block_cursor_jump(c, key);

    while (code == 0 && (code = block_cursor_next(c)) == 0)
        if (str_cmp(block_cursor_key(c), key) >= 0)
            break;
    return code;
}
