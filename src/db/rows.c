/* The cache of rows: a hash table in stripes. When memory runs out, it evicts rows that were not
 * used since they were last considered for eviction (second chance). */
#include "db/rows.h"

#include "base/hash.h"
#include "base/list.h"
#include "os/thread.h"

#include <stdlib.h>

enum {
    STRIPES = 64,
    /* The limit of a row's key and value together, in bytes. Larger rows are not cached, because
     * they would push out many other rows. */
    ROW_MAX = 8 * 1024,
    ROW_TYPICAL = 256, /* a guess of a row's bytes, from which the tables get their size */
};

struct row {
    struct row *next; /* the next row in the same slot */
    struct list use;  /* in the stripe's list `use`, newest first */
    uint64_t hash;
    struct db_cf *cf;
    uint32_t key_len, value_len;
    bool used;   /* the row was used since it was last considered for eviction */
    bool absent; /* there is no row of this key */
    char bytes[];
};

struct row_stripe {
    /* class "db.rows"; guards the stripe; no other lock is taken inside */
    struct mutex lock;
    struct row **slots;
    struct list use;
    size_t bytes;
    unsigned writing;    /* running writes that may change a row of this stripe (R1) */
    uint64_t generation; /* counts the writes that have ended (R2) */
};

struct rows {
    struct row_stripe stripes[STRIPES];
    size_t slot_mask, stripe_bytes;
    uint64_t seed;
    /* How many writes have begun and ended. Both start at 1, because 0 is ROWS_STALE. */
    _Atomic(uint64_t) begun, ended;
};

struct rows *rows_new(size_t bytes)
{
    struct rows *r = xcalloc(1, sizeof(*r));
    struct hash_key key;
    size_t slots = 16;

    while (slots < bytes / STRIPES / ROW_TYPICAL)
        slots *= 2;
    hash_key_random(&key);
    r->seed = key.k0;
    r->slot_mask = slots - 1;
    r->stripe_bytes = bytes / STRIPES;
    atomic_init(&r->begun, 1);
    atomic_init(&r->ended, 1);
    for (int i = 0; i < STRIPES; i++) {
        mutex_init(&r->stripes[i].lock, "db.rows");
        list_init(&r->stripes[i].use);
        r->stripes[i].slots = xcalloc(slots, sizeof(struct row *));
    }
    return r;
}

static struct row_stripe *row_stripe_of(struct rows *r, uint64_t hash)
{
    return &r->stripes[hash % STRIPES];
}

static struct row **row_slot(struct rows *r, struct row_stripe *s, uint64_t hash)
{
    return &s->slots[hash / STRIPES & r->slot_mask];
}

static size_t row_size(const struct row *row)
{
    return sizeof(*row) + row->key_len + row->value_len;
}

static void row_drop(struct row_stripe *s, struct row **at)
{
    struct row *row = *at;

    *at = row->next;
    list_remove(&row->use);
    s->bytes -= row_size(row);
    free(row);
}

static void drop_hash(struct rows *r, struct row_stripe *s, uint64_t hash)
{
    struct row **at = row_slot(r, s, hash);

    while (*at)
        if ((*at)->hash == hash)
            row_drop(s, at);
        else
            at = &(*at)->next;
}

static void drop_range(struct row_stripe *s, struct row **at, struct db_cf *cf,
                       const struct str range[2])
{
    while (*at) {
        struct str key = str_n((*at)->bytes, (*at)->key_len);
        if ((*at)->cf == cf && str_cmp(key, range[0]) >= 0 && str_cmp(key, range[1]) < 0)
            row_drop(s, at);
        else
            at = &(*at)->next;
    }
}

static void drop_all(struct rows *r, struct row_stripe *s)
{
    while (!list_empty(&s->use))
        drop_hash(r, s, list_entry(s->use.next, struct row, use)->hash);
}

void rows_free(struct rows *r)
{
    if (!r)
        return;
    for (int i = 0; i < STRIPES; i++) {
        drop_all(r, &r->stripes[i]);
        free(r->stripes[i].slots);
        mutex_release(&r->stripes[i].lock);
    }
    free(r);
}

size_t rows_bytes(struct rows *r)
{
    size_t sum = sizeof(*r) + STRIPES * (r->slot_mask + 1) * sizeof(struct row *);

    for (int i = 0; i < STRIPES; i++) {
        mutex_lock(&r->stripes[i].lock);
        sum += r->stripes[i].bytes;
        mutex_unlock(&r->stripes[i].lock);
    }
    return sum;
}

uint64_t rows_now(struct rows *r)
{
    uint64_t ended = atomic_load(&r->ended), begun = atomic_load(&r->begun);
    return ended == begun ? begun : ROWS_STALE;
}

uint64_t rows_hash(struct rows *r, struct db_cf *cf, struct str key)
{
    return hash_xxh3(key, r->seed ^ (uintptr_t)cf);
}

static struct row *row_find(struct rows *r, struct row_stripe *s, const struct rows_look *look)
{
    for (struct row *row = *row_slot(r, s, look->hash); row; row = row->next)
        if (row->hash == look->hash && row->cf == look->cf &&
            str_eq(str_n(row->bytes, row->key_len), look->key))
            return row;
    return NULL;
}

enum rows_answer rows_get(struct rows *r, struct rows_look *look, const uint64_t *now,
                          struct buf *out)
{
    enum rows_answer answer = ROWS_MISS;

    look->hash = rows_hash(r, look->cf, look->key);
    look->may_keep = false;
    struct row_stripe *s = row_stripe_of(r, look->hash);
    struct row *row = NULL;

    if (now && *now == ROWS_STALE)
        return answer;
    mutex_lock(&s->lock);
    /* A write that begins now has to take this lock before it changes the row. */
    if (!now || atomic_load(&r->begun) == *now) {
        row = row_find(r, s, look);
        look->may_keep = !row && s->writing == 0;
        look->generation = s->generation;
    }
    if (row) {
        if (!row->used) /* so that a row that is read often is not written each time */
            row->used = true;
        answer = row->absent ? ROWS_ABSENT : ROWS_HIT;
        buf_append(out, row->bytes + row->key_len, row->value_len);
    }
    mutex_unlock(&s->lock);
    return answer;
}

static void rows_make_room(struct rows *r, struct row_stripe *s, size_t bytes)
{
    while (s->bytes + bytes > r->stripe_bytes && !list_empty(&s->use)) {
        struct row *oldest = list_entry(s->use.prev, struct row, use);
        if (oldest->used) {
            oldest->used = false;
            list_remove(&oldest->use);
            list_push_front(&s->use, &oldest->use);
            continue;
        }
        drop_hash(r, s, oldest->hash);
    }
}

static struct row *row_new(const struct rows_look *look, struct str value)
{
    struct row *row = xzalloc(sizeof(*row) + look->key.len + value.len);

    *row = (struct row){.hash = look->hash, .cf = look->cf};
    row->key_len = (uint32_t)look->key.len;
    row->value_len = (uint32_t)value.len;
    if (look->key.len)
        memcpy(row->bytes, look->key.p, look->key.len);
    if (value.len)
        memcpy(row->bytes + look->key.len, value.p, value.len);
    return row;
}

/* Adds the row to the cache, or frees it if it may not enter. */
static void row_enter(struct rows *r, const struct rows_look *look, struct row *row)
{
    struct row_stripe *s = row_stripe_of(r, look->hash);

    mutex_lock(&s->lock);
    if (s->writing == 0 && s->generation == look->generation && !row_find(r, s, look)) {
        rows_make_room(r, s, row_size(row));
        struct row **slot = row_slot(r, s, row->hash);
        row->next = *slot;
        *slot = row;
        list_push_front(&s->use, &row->use);
        s->bytes += row_size(row);
        row = NULL;
    }
    mutex_unlock(&s->lock);
    free(row);
}

void rows_keep(struct rows *r, const struct rows_look *look, struct str value)
{
    if (look->may_keep && look->key.len + value.len <= ROW_MAX)
        row_enter(r, look, row_new(look, value));
}

void rows_keep_absent(struct rows *r, const struct rows_look *look)
{
    if (!look->may_keep || look->key.len > ROW_MAX)
        return;
    struct row *row = row_new(look, STR_EMPTY);
    row->absent = true;
    row_enter(r, look, row);
}

static void stripe_begin(struct row_stripe *s)
{
    mutex_lock(&s->lock);
    s->writing++;
}

static void stripe_end(struct row_stripe *s)
{
    mutex_lock(&s->lock);
    s->writing--;
    s->generation++;
    mutex_unlock(&s->lock);
}

void rows_write_begin(struct rows *r, const uint64_t *hashes, size_t count)
{
    atomic_fetch_add(&r->begun, 1);
    for (size_t i = 0; i < count; i++) {
        struct row_stripe *s = row_stripe_of(r, hashes[i]);
        stripe_begin(s);
        drop_hash(r, s, hashes[i]);
        mutex_unlock(&s->lock);
    }
}

void rows_write_end(struct rows *r, const uint64_t *hashes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stripe_end(row_stripe_of(r, hashes[i]));
    atomic_fetch_add(&r->ended, 1);
}

void rows_range_begin(struct rows *r, struct db_cf *cf, struct str from, struct str to)
{
    atomic_fetch_add(&r->begun, 1);
    for (int i = 0; i < STRIPES; i++) {
        struct row_stripe *s = &r->stripes[i];
        stripe_begin(s);
        for (size_t slot = 0; slot <= r->slot_mask; slot++)
            drop_range(s, &s->slots[slot], cf, (struct str[2]){from, to});
        mutex_unlock(&s->lock);
    }
}

void rows_range_end(struct rows *r)
{
    for (int i = 0; i < STRIPES; i++)
        stripe_end(&r->stripes[i]);
    atomic_fetch_add(&r->ended, 1);
}
