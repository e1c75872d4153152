/* The cache of gaps between rows: a sorted array of chunks of sorted gaps. The least recently used
 * chunk is dropped when memory runs out. */
#include "db/gaps.h"

#include "base/vec.h"
#include "os/thread.h"

#include <stdlib.h>

enum {
    CHUNK = 128,        /* gaps in a chunk */
    PENDING_MAX = 2048, /* keys that are recorded for one batch */
    /* Keys that are recorded for one reader, which compares each of them with the gap that it
     * found. */
    WRITTEN_MAX = 256,
};

struct gap {
    uint32_t from_len, to_len;
    char bytes[];
};

struct chunk {
    uint64_t used; /* gaps.clock when a gap was last found in the chunk */
    size_t count;  /* never 0 */
    struct gap *gaps[CHUNK];
};

struct gaps {
    /* class "db.gaps"; guards all members; no other lock is taken inside */
    struct mutex lock;
    VEC(struct chunk *) chunks; /* ordered by the ends of their gaps */
    size_t bytes, max_bytes;
    uint64_t clock;
    struct list readers;
    /* For each batch that is neither committed nor failed: the keys that its changes wrote. */
    struct gaps_keys pending[GAPS_BATCHES];
    unsigned ranges; /* number of range deletes that are running */
};

/* The place of a gap, or the place where a new gap would be put. */
struct place {
    size_t chunk, at;
};

/* --- keys --- */

static void keys_add(struct gaps_keys *k, size_t max, struct str key)
{
    if (k->count == max)
        k->lost = true;
    if (k->lost)
        return;
    buf_append(&k->bytes, &key.len, sizeof(key.len));
    buf_append_str(&k->bytes, key);
    k->count++;
}

/* Reads the key at the offset *at and moves *at past it. Start with *at = 0. Returns false when
 * there are no more keys. */
static bool gaps_keys_next(const struct gaps_keys *k, size_t *at, struct str *key)
{
    if (*at == k->bytes.len)
        return false;
    memcpy(&key->len, k->bytes.p + *at, sizeof(key->len));
    key->p = k->bytes.p + *at + sizeof(key->len);
    *at += sizeof(key->len) + key->len;
    return true;
}

static bool keys_touch(const struct gaps_keys *k, struct str from, struct str row)
{
    struct str key;

    if (k->lost)
        return true;
    for (size_t at = 0; gaps_keys_next(k, &at, &key);)
        if (str_cmp(key, from) >= 0 && str_cmp(key, row) <= 0)
            return true;
    return false;
}

static void reader_told(struct gaps_reader *r, struct str key)
{
    if (str_cmp(key, r->from) >= 0 && (r->to.len == 0 || str_cmp(key, r->to) < 0))
        keys_add(&r->written, WRITTEN_MAX, key);
}

/* --- gaps --- */

static struct str gap_from(const struct gap *gap)
{
    return str_n(gap->bytes, gap->from_len);
}

static struct str gap_to(const struct gap *gap)
{
    return str_n(gap->bytes + gap->from_len, gap->to_len);
}

static size_t gap_size(const struct gap *gap)
{
    return sizeof(*gap) + gap->from_len + gap->to_len;
}

static struct gap *gap_new(struct str from, struct str to)
{
    struct gap *gap = xzalloc(sizeof(*gap) + from.len + to.len);

    gap->from_len = (uint32_t)from.len;
    gap->to_len = (uint32_t)to.len;
    if (from.len)
        memcpy(gap->bytes, from.p, from.len);
    if (to.len)
        memcpy(gap->bytes + from.len, to.p, to.len);
    return gap;
}

/* Returns the index of the chunk's first gap whose end is the key or greater, or c->count when
 * there is none. */
static size_t chunk_search(const struct chunk *c, struct str key)
{
    size_t low = 0, high = c->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (str_cmp(gap_to(c->gaps[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the first gap whose end is the key or greater, and sets *p to its place. Returns NULL
 * when there is none; *p is then after the last gap. */
static struct gap *gaps_search(const struct gaps *g, struct str key, struct place *p)
{
    size_t low = 0, high = g->chunks.len;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct chunk *c = g->chunks.items[middle];
        if (str_cmp(gap_to(c->gaps[c->count - 1]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    p->chunk = low;
    p->at = low < g->chunks.len ? chunk_search(g->chunks.items[low], key) : 0;
    return low < g->chunks.len ? g->chunks.items[low]->gaps[p->at] : NULL;
}

static void chunk_drop(struct gaps *g, size_t i)
{
    struct chunk *c = g->chunks.items[i];

    for (size_t at = 0; at < c->count; at++) {
        g->bytes -= gap_size(c->gaps[at]);
        free(c->gaps[at]);
    }
    g->bytes -= sizeof(*c);
    free(c);
    vec_remove(&g->chunks, i);
}

static void chunk_insert(struct gaps *g, size_t i, struct chunk *c)
{
    vec_grow(&g->chunks, 1);
    memmove(&g->chunks.items[i + 1], &g->chunks.items[i],
            (g->chunks.len - i) * sizeof(*g->chunks.items));
    g->chunks.items[i] = c;
    g->chunks.len++;
    g->bytes += sizeof(*c);
}

static void gaps_clear(struct gaps *g)
{
    while (g->chunks.len)
        chunk_drop(g, g->chunks.len - 1);
}

static void gap_drop(struct gaps *g, struct place p)
{
    struct chunk *c = g->chunks.items[p.chunk];

    if (c->count == 1) {
        chunk_drop(g, p.chunk);
        return;
    }
    g->bytes -= gap_size(c->gaps[p.at]);
    free(c->gaps[p.at]);
    c->count--;
    memmove(&c->gaps[p.at], &c->gaps[p.at + 1], (c->count - p.at) * sizeof(*c->gaps));
}

/* Moves the upper half of a full chunk into a new chunk. */
static void chunk_split(struct gaps *g, size_t i)
{
    struct chunk *c = g->chunks.items[i], *upper = xcalloc(1, sizeof(*upper));

    c->count = CHUNK / 2;
    upper->used = c->used;
    upper->count = CHUNK - CHUNK / 2;
    memcpy(upper->gaps, c->gaps + c->count, upper->count * sizeof(*c->gaps));
    chunk_insert(g, i + 1, upper);
}

/* Returns a chunk with room for a gap at the place *p. *p is updated when the gap belongs into
 * another chunk than *p named. */
static struct chunk *chunk_for(struct gaps *g, struct place *p)
{
    if (g->chunks.len == 0)
        chunk_insert(g, 0, xcalloc(1, sizeof(struct chunk)));
    if (p->chunk == g->chunks.len) {
        p->chunk--;
        p->at = g->chunks.items[p->chunk]->count;
    }
    if (g->chunks.items[p->chunk]->count == CHUNK) {
        chunk_split(g, p->chunk);
        if (p->at > CHUNK / 2) {
            p->chunk++;
            p->at -= CHUNK / 2;
        }
    }
    return g->chunks.items[p->chunk];
}

static void gaps_make_room(struct gaps *g)
{
    while (g->bytes > g->max_bytes && g->chunks.len) {
        size_t least = 0;
        for (size_t i = 1; i < g->chunks.len; i++)
            if (g->chunks.items[i]->used < g->chunks.items[least]->used)
                least = i;
        chunk_drop(g, least);
    }
}

static void gap_add(struct gaps *g, struct gap *gap, struct place p)
{
    struct chunk *c = chunk_for(g, &p);

    memmove(&c->gaps[p.at + 1], &c->gaps[p.at], (c->count - p.at) * sizeof(*c->gaps));
    c->gaps[p.at] = gap;
    c->count++;
    c->used = ++g->clock;
    g->bytes += gap_size(gap);
}

/* --- the interface --- */

struct gaps *gaps_new(size_t bytes)
{
    struct gaps *g = xcalloc(1, sizeof(*g));

    mutex_init(&g->lock, "db.gaps");
    list_init(&g->readers);
    g->max_bytes = bytes;
    return g;
}

void gaps_free(struct gaps *g)
{
    if (!g)
        return;
    BUG_ON(!list_empty(&g->readers));
    gaps_clear(g);
    vec_release(&g->chunks);
    for (size_t i = 0; i < GAPS_BATCHES; i++)
        buf_release(&g->pending[i].bytes);
    mutex_release(&g->lock);
    free(g);
}

size_t gaps_bytes(struct gaps *g)
{
    mutex_lock(&g->lock);
    size_t bytes = sizeof(*g) + g->bytes;
    mutex_unlock(&g->lock);
    return bytes;
}

void gaps_enter(struct gaps *g, struct gaps_reader *r, struct str from, struct str to)
{
    struct str key;

    *r = (struct gaps_reader){.from = from, .to = to};
    mutex_lock(&g->lock);
    r->written.lost = g->ranges > 0;
    for (size_t i = 0; i < GAPS_BATCHES; i++) {
        r->written.lost = r->written.lost || g->pending[i].lost;
        for (size_t at = 0; gaps_keys_next(&g->pending[i], &at, &key);)
            reader_told(r, key);
    }
    list_push(&g->readers, &r->node);
    mutex_unlock(&g->lock);
}

void gaps_leave(struct gaps *g, struct gaps_reader *r)
{
    mutex_lock(&g->lock);
    list_remove(&r->node);
    mutex_unlock(&g->lock);
    buf_release(&r->written.bytes);
}

bool gaps_find(struct gaps *g, struct str from, struct buf *row)
{
    struct place p;

    mutex_lock(&g->lock);
    const struct gap *gap = gaps_search(g, from, &p);
    bool found = gap && str_cmp(gap_from(gap), from) <= 0;
    if (found) {
        g->chunks.items[p.chunk]->used = ++g->clock;
        buf_reset(row);
        buf_append_str(row, gap_to(gap));
    }
    mutex_unlock(&g->lock);
    return found;
}

void gaps_keep(struct gaps *g, const struct gaps_reader *r, struct str from, struct str row)
{
    struct place p;

    mutex_lock(&g->lock);
    if (!keys_touch(&r->written, from, row)) {
        gaps_make_room(g);
        const struct gap *next = gaps_search(g, from, &p);
        bool same = next && str_eq(gap_to(next), row);
        BUG_ON(next && !same && str_cmp(gap_from(next), row) <= 0); /* gaps do not overlap (G4) */
        if (same && str_cmp(gap_from(next), from) > 0) {
            gap_drop(g, p);
            gaps_search(g, from, &p);
            same = false;
        }
        if (!same)
            gap_add(g, gap_new(from, row), p);
    }
    mutex_unlock(&g->lock);
}

void gaps_write(struct gaps *g, size_t batch, struct str key, enum gaps_writing what)
{
    struct place p;

    mutex_lock(&g->lock);
    const struct gap *gap = gaps_search(g, key, &p);
    if (gap && str_cmp(gap_from(gap), key) <= 0 &&
        (what == GAPS_DELETE || !str_eq(gap_to(gap), key)))
        gap_drop(g, p);
    keys_add(&g->pending[batch], PENDING_MAX, key);
    list_each (&g->readers, struct gaps_reader, node, r)
        reader_told(r, key);
    mutex_unlock(&g->lock);
}

void gaps_settled(struct gaps *g, size_t batch)
{
    mutex_lock(&g->lock);
    buf_reset(&g->pending[batch].bytes);
    g->pending[batch].count = 0;
    g->pending[batch].lost = false;
    mutex_unlock(&g->lock);
}

void gaps_range_begin(struct gaps *g)
{
    mutex_lock(&g->lock);
    g->ranges++;
    gaps_clear(g);
    list_each (&g->readers, struct gaps_reader, node, r)
        r->written.lost = true;
    mutex_unlock(&g->lock);
}

void gaps_range_end(struct gaps *g)
{
    mutex_lock(&g->lock);
    g->ranges--;
    mutex_unlock(&g->lock);
}
