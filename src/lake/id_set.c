/* A set of ids. */
#include "lake/id_set.h"

#include "base/hex.h"

#include <stdlib.h>

enum { ID_SET_FIRST = 64 }; /* slots of the smallest table */

/* Reads the first half of the id. Returns false for a text that is not an id. */
static bool id_set_slot_of(struct id_set_slot *out, struct str id)
{
    if (!hex_parse(str_head(id, 2 * sizeof(*out)), out, sizeof(*out)))
        return false;
    out->halves[1] |= out->halves[0] == 0; /* an empty slot has two zeros */
    return true;
}

/* Finds the slot of the id, or the empty slot where it belongs. */
static struct id_set_slot *id_set_find(const struct id_set *s, const struct id_set_slot *id)
{
    size_t at = id->halves[0] & s->mask;

    while ((s->slots[at].halves[0] | s->slots[at].halves[1]) &&
           memcmp(&s->slots[at], id, sizeof(*id)) != 0)
        at = (at + 1) & s->mask;
    return &s->slots[at];
}

static void id_set_grow(struct id_set *s)
{
    struct id_set old = *s;
    size_t slots = old.slots ? 2 * (old.mask + 1) : ID_SET_FIRST;

    s->slots = xcalloc(slots, sizeof(*s->slots));
    s->mask = slots - 1;
    for (size_t i = 0; old.slots && i <= old.mask; i++)
        if (old.slots[i].halves[0] | old.slots[i].halves[1])
            *id_set_find(s, &old.slots[i]) = old.slots[i];
    free(old.slots);
}

bool id_set_add(struct id_set *s, struct str id)
{
    struct id_set_slot slot;

    BUG_ON(!id_set_slot_of(&slot, id));
    if (!s->slots || s->count * 4 >= (s->mask + 1) * 3)
        id_set_grow(s);
    struct id_set_slot *at = id_set_find(s, &slot);
    if (at->halves[0] | at->halves[1])
        return false;
    *at = slot;
    s->count++;
    return true;
}

bool id_set_has(const struct id_set *s, struct str id)
{
    struct id_set_slot slot;

    if (!s->slots || !id_set_slot_of(&slot, id))
        return false;
    const struct id_set_slot *at = id_set_find(s, &slot);
    return at->halves[0] | at->halves[1];
}

void id_set_release(struct id_set *s)
{
    free(s->slots);
    *s = (struct id_set){0};
}
