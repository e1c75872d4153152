/* A set of ids of commits or nodes. Ids are SHA-256, so their first bytes are their hash. */
#include "lake/gc_int.h"

#include "base/bytes.h"
#include "base/hex.h"

#include <stdlib.h>

enum { IDS_FIRST = 1024 };

void gc_ids_release(struct gc_ids *s)
{
    free(s->slots);
    free(s->used);
    *s = (struct gc_ids){0};
}

static bool ids_parse(unsigned char out[LAKE_IDENTITY_LEN], struct str id)
{
    return id.len == LAKE_ID_LEN && hex_parse(id, out, LAKE_IDENTITY_LEN);
}

/* Finds the slot of the id, or the free slot where it belongs. */
static size_t ids_slot(const struct gc_ids *s, const unsigned char *id)
{
    uint64_t hash;

    memcpy(&hash, id, sizeof(hash));
    size_t i = (size_t)hash & s->mask;
    while (s->used[i] && memcmp(s->slots[i], id, LAKE_IDENTITY_LEN) != 0)
        i = (i + 1) & s->mask;
    return i;
}

static void ids_grow(struct gc_ids *s)
{
    struct gc_ids old = *s;
    size_t room = s->slots ? 2 * (s->mask + 1) : IDS_FIRST;

    s->slots = xzalloc(room * sizeof(*s->slots));
    s->used = xzalloc(room * sizeof(*s->used));
    s->mask = room - 1;
    for (size_t i = 0; old.slots && i <= old.mask; i++)
        if (old.used[i]) {
            size_t to = ids_slot(s, old.slots[i]);
            memcpy(s->slots[to], old.slots[i], LAKE_IDENTITY_LEN);
            s->used[to] = true;
        }
    free(old.slots);
    free(old.used);
}

bool gc_ids_add(struct gc_ids *s, struct str text)
{
    unsigned char id[LAKE_IDENTITY_LEN];

    if (!ids_parse(id, text))
        return false;
    if (!s->slots || s->count * 4 >= (s->mask + 1) * 3)
        ids_grow(s);
    size_t at = ids_slot(s, id);
    if (s->used[at])
        return false;
    memcpy(s->slots[at], id, LAKE_IDENTITY_LEN);
    s->used[at] = true;
    s->count++;
    return true;
}

bool gc_ids_has(const struct gc_ids *s, struct str text)
{
    unsigned char id[LAKE_IDENTITY_LEN];

    return s->slots && ids_parse(id, text) && s->used[ids_slot(s, id)];
}
