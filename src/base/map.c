/* The hash table, by open addressing with linear probing. A removed entry leaves a mark (tombstone)
 * in its slot, until a new entry uses the slot or the table grows. */
#include "base/map.h"

#include <stdlib.h>

struct map_slot {
    struct str key;
    uint64_t hash;
    void *value; /* NULL: the slot is free; &tomb: its entry was removed */
};

static char tomb;

void map_init(struct map *m)
{
    *m = (struct map){0};
    hash_key_random(&m->key);
}

void map_release(struct map *m)
{
    free(m->slots);
    m->slots = NULL;
    m->mask = m->len = m->tombs = 0;
}

static bool live(const struct map_slot *slot)
{
    return slot->value && slot->value != &tomb;
}

/* Returns the slot that holds the key, or NULL. */
static struct map_slot *map_find_slot(const struct map *m, struct str key, uint64_t hash)
{
    if (!m->slots)
        return NULL;
    for (size_t i = hash & m->mask;; i = (i + 1) & m->mask) {
        struct map_slot *slot = &m->slots[i];
        if (!slot->value)
            return NULL;
        if (slot->hash == hash && live(slot) && str_eq(slot->key, key))
            return slot;
    }
}

static void map_insert(struct map *m, struct map_slot entry)
{
    size_t i = entry.hash & m->mask;
    while (live(&m->slots[i]))
        i = (i + 1) & m->mask;
    if (m->slots[i].value == &tomb)
        m->tombs--;
    m->slots[i] = entry;
    m->len++;
}

static void map_grow(struct map *m)
{
    struct map old = *m;
    size_t count = 16;

    while (count < m->len * 3)
        count *= 2;
    m->slots = xcalloc(count, sizeof(*m->slots));
    m->mask = count - 1;
    m->len = m->tombs = 0;
    for (size_t i = 0; old.slots && i <= old.mask; i++)
        if (live(&old.slots[i]))
            map_insert(m, old.slots[i]);
    free(old.slots);
}

void *map_get(const struct map *m, struct str key)
{
    struct map_slot *slot = m->len ? map_find_slot(m, key, hash_sip(&m->key, key)) : NULL;
    return slot ? slot->value : NULL;
}

void *map_put(struct map *m, struct str key, void *value)
{
    uint64_t hash = hash_sip(&m->key, key);
    struct map_slot *slot = map_find_slot(m, key, hash);

    BUG_ON(!value);
    if (slot) {
        void *old = slot->value;
        slot->key = key;
        slot->value = value;
        return old;
    }
    if (!m->slots || (m->len + m->tombs + 1) * 4 > (m->mask + 1) * 3)
        map_grow(m);
    map_insert(m, (struct map_slot){key, hash, value});
    return NULL;
}

void *map_remove(struct map *m, struct str key)
{
    struct map_slot *slot = m->len ? map_find_slot(m, key, hash_sip(&m->key, key)) : NULL;
    void *old = slot ? slot->value : NULL;

    if (slot) {
        slot->value = &tomb;
        slot->key = STR_EMPTY;
        m->len--;
        m->tombs++;
    }
    return old;
}

bool map_next(const struct map *m, size_t *cursor, struct str *key, void **value)
{
    while (m->slots && *cursor <= m->mask) {
        struct map_slot *slot = &m->slots[(*cursor)++];
        if (live(slot)) {
            *key = slot->key;
            *value = slot->value;
            return true;
        }
    }
    return false;
}
