/* The data of objects: inflates them from the scratch file, builds them from their bases by deltas,
 * and keeps them in a cache.
 *
 * The cache grows while the buffers of the process (large.h) have room. When it is full, the data
 * that were used least recently are dropped. The data that were
 * added last always stay: the caller of packed_data() borrows them, or they are the base of the
 * object that is built next. */
#include "archive/object_int.h"

#include "archive/delta.h"
#include "os/file.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

enum { DATA_SMALL = 64 * 1024 }; /* the memory for objects up to this size is not counted */

/* --- the cache --- */

static struct cached **cache_place(struct packed *p, uint32_t index)
{
    struct cached **at = &p->buckets[index % CACHE_BUCKETS];

    while (*at && (*at)->index != index)
        at = &(*at)->next;
    return at;
}

static void cache_unlink(struct packed *p, struct cached *c)
{
    *(c->newer ? &c->newer->older : &p->newest) = c->older;
    *(c->older ? &c->older->newer : &p->oldest) = c->newer;
}

static void cache_link(struct packed *p, struct cached *c)
{
    c->newer = NULL;
    c->older = p->newest;
    *(c->older ? &c->older->newer : &p->oldest) = c;
    p->newest = c;
}

static void cache_drop(struct packed *p, struct cached *c)
{
    struct cached **at = cache_place(p, c->index);

    *at = c->next;
    cache_unlink(p, c);
    p->cached_bytes -= c->mem.size + sizeof(*c);
    scratch_mem_release(&c->mem);
    free(c);
}

static struct cached *cache_find(struct packed *p, uint32_t index)
{
    struct cached *c = *cache_place(p, index);

    if (c && c != p->newest) {
        cache_unlink(p, c);
        cache_link(p, c);
    }
    return c;
}

/* The cache takes ownership of the memory. */
static struct cached *cache_add(struct packed *p, uint32_t index, struct scratch_mem *mem)
{
    struct cached *c = xzalloc(sizeof(*c));

    c->mem = *mem;
    c->index = index;
    *cache_place(p, index) = c;
    cache_link(p, c);
    p->cached_bytes += c->mem.size + sizeof(*c);
    while (p->cached_bytes > p->cache_max && p->cache_max < PACKED_CACHE &&
           large_try(p->o.hold, PACKED_CACHE_MIN))
        p->cache_max += PACKED_CACHE_MIN;
    while (p->cached_bytes > p->cache_max && p->oldest != c)
        cache_drop(p, p->oldest);
    return c;
}

void packed_cache_release(struct packed *p)
{
    while (p->oldest)
        cache_drop(p, p->oldest);
}

/* --- inflating --- */

static int packed_damaged(struct err *err)
{
    return err_set(err, ERR_CORRUPT, "the scratch file has changed while it was read");
}

static int inflate_piece(struct packed *p, uint64_t *at, uint64_t end, struct err *err)
{
    size_t len = (size_t)(end - *at < INFLATE_IN ? end - *at : INFLATE_IN);
    int code = len ? file_pread_full(p->fd, p->in, len, (off_t)*at, err) : packed_damaged(err);

    p->inflate->next_in = p->in;
    p->inflate->avail_in = (uint32_t)len;
    *at += len;
    return code;
}

/* Inflates the `size` bytes of an entry's data. packed_open() has inflated the same data before
 * without an error. */
static int entry_inflate(struct packed *p, uint32_t index, size_t size, struct scratch_mem *out,
                         struct err *err)
{
    const struct entry *e = &p->entries.items[index];
    uint64_t at = e->at + e->head, end = entry_end(p, index);
    unsigned char none = 0;
    int code = scratch_mem_init(out, p->o.folder, size, err);

    if (code < 0)
        return code;
    isal_inflate_init(p->inflate);
    p->inflate->crc_flag = ISAL_ZLIB;
    p->inflate->next_out = size ? out->p : &none;
    p->inflate->avail_out = (uint32_t)size;
    for (size_t left = size; code == 0 && p->inflate->block_state != ISAL_BLOCK_FINISH;) {
        if (p->inflate->avail_in == 0)
            code = inflate_piece(p, &at, end, err);
        if (left - p->inflate->avail_out >= SCRATCH_STEP) {
            left = p->inflate->avail_out;
            scratch_mem_drop(out);
        }
        if (code == 0 && isal_inflate(p->inflate) != ISAL_DECOMP_OK)
            code = packed_damaged(err);
        if (p->inflate->avail_out == 0 && p->inflate->avail_in &&
            p->inflate->block_state != ISAL_BLOCK_FINISH)
            code = code == 0 ? packed_damaged(err) : code;
    }
    if (code == 0 && p->inflate->avail_out)
        code = packed_damaged(err);
    if (code < 0)
        scratch_mem_release(out);
    return code;
}

/* --- deltas --- */

/* Counts the bytes that are built from deltas. Without a limit, a small pack of deltas could keep
 * weir busy for days. */
static int packed_work(struct packed *p, uint64_t bytes, struct err *err)
{
    p->work += bytes;
    if (p->work > p->o.work_max)
        return err_set(err, ERR_TOO_LARGE, "reading the pack takes more than %" PRIu64 " bytes",
                       p->o.work_max);
    return packed_canceled(p, err);
}

/* Reads the sizes at the beginning of `delta`, and checks them. */
static int delta_begin(struct packed *p, struct str *delta, size_t base_size,
                       struct delta_sizes *out, struct err *err)
{
    int code = delta_sizes_read(out, delta, err);

    if (code < 0)
        return code;
    if (out->base != base_size)
        return err_set(err, ERR_PARSE, "a delta of the pack does not fit its base");
    if (out->result > PACKED_DELTA_MAX || out->result > p->o.limits.object)
        return err_set(err, ERR_TOO_LARGE, "the pack has a delta of an object of %" PRIu64 " bytes",
                       out->result);
    return packed_work(p, out->result, err);
}

static int delta_make(struct packed *p, const struct scratch_mem *from,
                      const struct scratch_mem *base, struct scratch_mem *out, struct err *err)
{
    struct str delta = str_n(from->p, from->size);
    struct delta_sizes sizes;
    bool done = false;
    int code = delta_begin(p, &delta, base->size, &sizes, err);

    if (code == 0)
        code = scratch_mem_init(out, p->o.folder, (size_t)sizes.result, err);
    if (code < 0)
        return code;
    struct delta_run run = {out->p, out->size, str_n(base->p, base->size), delta};
    while (code == 0 && !done) {
        code = delta_run_some(&run, SCRATCH_STEP, &done, err);
        scratch_mem_drop(out);
        scratch_mem_drop(base);
        scratch_mem_drop(from);
    }
    if (code < 0)
        scratch_mem_release(out);
    return code;
}

/* The size of the delta itself, read from the entry in the file. (When a delta is solved, its size
 * in the table is replaced by the size of the object.) */
static int delta_size(struct packed *p, const struct entry *e, uint64_t *out, struct err *err)
{
    unsigned char head[16] = {0};
    int code = file_pread_full(p->fd, head, size_min(e->head, sizeof(head)), (off_t)e->at, err);
    unsigned shift = 4;

    *out = head[0] & 15;
    for (size_t i = 0; i + 1 < sizeof(head) && head[i] & 128; shift += 7)
        *out |= (uint64_t)(head[++i] & 127) << shift;
    return code;
}

static int entry_make(struct packed *p, uint32_t index, const struct scratch_mem *base,
                      struct scratch_mem *out, struct err *err)
{
    const struct entry *e = &p->entries.items[index];
    struct scratch_mem delta = {0};
    uint64_t size;
    int code = delta_size(p, e, &size, err);

    if (code == 0 && size > PACKED_DELTA_MAX)
        code = err_set(err, ERR_TOO_LARGE, "the pack has a delta of %" PRIu64 " bytes", size);
    if (code == 0)
        code = entry_inflate(p, index, (size_t)size, &delta, err);
    if (code == 0)
        code = delta_make(p, &delta, base, out, err);
    scratch_mem_release(&delta);
    return code;
}

/* Inflates the entry at the end of a chain, which is not a delta. */
static int entry_whole(struct packed *p, uint32_t index, struct scratch_mem *out, struct err *err)
{
    const struct entry *e = &p->entries.items[index];

    if (e->size > PACKED_DELTA_MAX)
        return err_set(err, ERR_TOO_LARGE, "the base of a delta has %" PRIu64 " bytes",
                       (uint64_t)e->size);
    int code = packed_work(p, e->size, err);
    return code < 0 ? code : entry_inflate(p, index, (size_t)e->size, out, err);
}

/* Fills p->chain with the entries from `index` down to an entry that is not a delta, or whose data
 * are in the cache. */
static size_t chain_find(struct packed *p, uint32_t index, struct cached **base)
{
    size_t len = 0;

    while (!(*base = cache_find(p, index))) {
        BUG_ON(len > PACKED_CHAIN_MAX);
        p->chain[len++] = index;
        index = p->entries.items[index].base;
        if (index == ENTRY_NO_BASE)
            break;
    }
    return len;
}

/* Takes memory for building the object of an entry: a delta, its base and the result may lie on the
 * heap at the same time, each up to SCRATCH_HEAP_MAX bytes. The cache has room for small ones. */
static int data_take(struct packed *p, uint32_t index, struct err *err)
{
    size_t size = p->entries.items[index].size < SCRATCH_HEAP_MAX
                      ? (size_t)p->entries.items[index].size
                      : SCRATCH_HEAP_MAX;

    return size > DATA_SMALL ? large_reach(p->o.hold, &p->data_reached, 3 * size, err) : 0;
}

void packed_drop(struct packed *p)
{
    if (p->newest)
        scratch_mem_drop(&p->newest->mem);
}

int packed_data(struct packed *p, uint32_t index, struct str *data, struct err *err)
{
    struct cached *base;
    size_t left = chain_find(p, index, &base);
    int code = 0;

    while (left && code == 0) {
        struct scratch_mem mem = {0};
        uint32_t next = p->chain[--left];
        code = data_take(p, next, err);
        if (code < 0)
            break;
        if (base)
            code = entry_make(p, next, &base->mem, &mem, err);
        else
            code = entry_whole(p, next, &mem, err);
        if (code == 0)
            base = cache_add(p, next, &mem);
    }
    if (code == 0)
        *data = str_n(base->mem.p, base->mem.size);
    return code;
}
