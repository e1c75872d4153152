/* The tables of torrents: one for each stripe. */
#include "swarm/swarms_int.h"

#include <stdlib.h>

enum { CAP_MIN = 8 };

struct words_hash words_hash(const struct words_key *key, const uint8_t bytes[20])
{
    uint64_t a = key->k[0][0], b = key->k[1][0];

    for (int i = 0; i < 5; i++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * i, 4);
        a += key->k[0][i + 1] * word;
        b += key->k[1][i + 1] * word;
    }
    return (struct words_hash){(uint32_t)(a >> 32), (uint32_t)(b >> 32)};
}

/* Maps a hash to a slot by scaling it. Tables grow by a quarter, so their sizes are not powers of
 * two. */
static uint32_t scale_hash(uint32_t hash, uint32_t cap)
{
    return (uint32_t)((uint64_t)hash * cap >> 32);
}

static uint8_t mark_of(struct words_hash h)
{
    uint8_t mark = (uint8_t)(h.b >> 10);

    return mark ? mark : 1;
}

struct stripe *swarms_stripe(struct swarms *s, const uint8_t *info_hash)
{
    return &s->stripes[words_hash(&s->key, info_hash).b % STRIPES];
}

/* A copy of struct table, read under the lock. */
struct view {
    uint8_t *marks;
    struct torrent_entry *entries;
    uint32_t cap, count;
};

static struct view table_view_of(const struct stripe *stripe)
{
    struct table *t = stripe->table;

    return (struct view){atomic_load_explicit(&t->marks, memory_order_relaxed),
                         atomic_load_explicit(&t->entries, memory_order_relaxed),
                         atomic_load_explicit(&t->cap, memory_order_relaxed),
                         atomic_load_explicit(&t->count, memory_order_relaxed)};
}

void table_prefetch(const struct swarms *s, const uint8_t *info_hash)
{
    struct words_hash h = words_hash(&s->key, info_hash);
    const struct table *t = &s->tables[h.b % STRIPES];
    uint32_t at = scale_hash(h.a, atomic_load_explicit(&t->cap, memory_order_relaxed));

    /* While the table grows, the three values may belong to different tables. Then the address is
     * wrong, which does no harm to a prefetch. */
    uintptr_t marks = (uintptr_t)atomic_load_explicit(&t->marks, memory_order_relaxed);
    uintptr_t entries = (uintptr_t)atomic_load_explicit(&t->entries, memory_order_relaxed);

    __builtin_prefetch(&s->stripes[h.b % STRIPES].lock, 1);
    __builtin_prefetch((const void *)(marks + at));
    /* Three of four entries are in the slot that their hash gives, or in the two slots behind it.
     */
    for (uint32_t i = 0; i < 3; i++)
        __builtin_prefetch((const void *)(entries + sizeof(struct torrent_entry) * (at + i)), 1);
}

struct torrent_entry *table_find(struct swarms *s, struct stripe *stripe, const uint8_t *info_hash)
{
    struct words_hash h = words_hash(&s->key, info_hash);
    struct view t = table_view_of(stripe);
    uint8_t mark = mark_of(h);

    if (!t.cap)
        return NULL;
    for (uint32_t i = scale_hash(h.a, t.cap); t.marks[i]; i = i + 1 == t.cap ? 0 : i + 1)
        if (t.marks[i] == mark && memcmp(t.entries[i].hash, info_hash, INFO_HASH_LEN) == 0)
            return t.entries + i;
    return NULL;
}

static uint32_t free_slot(const struct view *t, uint32_t i)
{
    while (t->marks[i])
        i = i + 1 == t->cap ? 0 : i + 1;
    return i;
}

/* Moves the stripe's entries into a table of `cap` slots. */
static void table_resize(struct swarms *s, struct stripe *stripe, uint32_t cap)
{
    struct view old = table_view_of(stripe), new = {xcalloc(cap, 1), NULL, cap, 0};
    size_t bytes = sizeof(struct torrent_entry) * cap;

    new.entries = aligned_alloc(sizeof(struct torrent_entry), bytes);
    BUG_ON(!new.entries);
    for (uint32_t i = 0; i < old.cap; i++) {
        if (!old.marks[i])
            continue;
        struct words_hash h = words_hash(&s->key, old.entries[i].hash);
        uint32_t to = free_slot(&new, scale_hash(h.a, cap));
        new.marks[to] = old.marks[i];
        new.entries[to] = old.entries[i];
    }
    atomic_store_explicit(&stripe->table->marks, new.marks, memory_order_relaxed);
    atomic_store_explicit(&stripe->table->entries, new.entries, memory_order_relaxed);
    atomic_store_explicit(&stripe->table->cap, cap, memory_order_relaxed);
    stripe->bytes += bytes + cap;
    stripe->bytes -= (sizeof(struct torrent_entry) + 1) * old.cap;
    stripe->hand = stripe->evict_hand = 0;
    free(old.marks);
    free(old.entries);
}

static void count_torrents(struct swarms *s, struct stripe *stripe, int by)
{
    atomic_store_explicit(&stripe->table->count, table_view_of(stripe).count + (uint32_t)by,
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&s->torrents, (uint64_t)by, memory_order_relaxed);
}

struct torrent_entry *table_insert(struct swarms *s, struct stripe *stripe,
                                   const uint8_t *info_hash)
{
    struct words_hash h = words_hash(&s->key, info_hash);
    struct view t = table_view_of(stripe);
    uint32_t at;

    if (t.count + 1 > t.cap - t.cap / 8) {
        table_resize(s, stripe, t.cap ? t.cap + t.cap / 4 : CAP_MIN);
        t = table_view_of(stripe);
    }
    at = free_slot(&t, scale_hash(h.a, t.cap));
    t.marks[at] = mark_of(h);
    memset(&t.entries[at], 0, sizeof(t.entries[at]));
    memcpy(t.entries[at].hash, info_hash, INFO_HASH_LEN);
    t.entries[at].touched = swarm_unit(s);
    t.entries[at].oldest = (uint8_t)t.entries[at].touched;
    count_torrents(s, stripe, 1);
    return t.entries + at;
}

/* Frees the slot `gap`. Searches begin at the slot that an entry's hash gives and end at a free
 * slot. So an entry behind the gap is moved into the gap if a search for it would pass the gap. */
static void close_gap(struct swarms *s, const struct view *t, uint32_t gap)
{
    for (uint32_t i = gap;;) {
        i = i + 1 == t->cap ? 0 : i + 1;
        if (!t->marks[i])
            break;
        uint32_t home = scale_hash(words_hash(&s->key, t->entries[i].hash).a, t->cap);
        uint32_t from_home = i >= home ? i - home : i + t->cap - home;
        uint32_t from_gap = i >= gap ? i - gap : i + t->cap - gap;
        if (from_home < from_gap)
            continue;
        t->marks[gap] = t->marks[i];
        t->entries[gap] = t->entries[i];
        gap = i;
    }
    t->marks[gap] = 0;
}

void table_remove(struct swarms *s, struct stripe *stripe, struct torrent_entry *e)
{
    struct view t = table_view_of(stripe);

    close_gap(s, &t, (uint32_t)(e - t.entries));
    count_torrents(s, stripe, -1);
    if (t.cap > 4 * CAP_MIN && t.count - 1 < t.cap / 4)
        table_resize(s, stripe, t.cap / 2);
}

uint32_t table_slots(struct stripe *stripe)
{
    return table_view_of(stripe).cap;
}

struct torrent_entry *table_at(struct stripe *stripe, uint32_t slot)
{
    struct view t = table_view_of(stripe);

    return t.marks[slot] ? &t.entries[slot] : NULL;
}

void table_release(struct stripe *stripe)
{
    struct view t = table_view_of(stripe);

    free(t.marks);
    free(t.entries);
}
