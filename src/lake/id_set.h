/* A set of commit ids or node ids, for walks over very many of them. Each id takes 16 bytes and a
 * share of free slots. Ids are SHA-256 in hex; the set keeps the first half of each, because two
 * different ids never share it in practice. A set belongs to one thread. */
#ifndef LAKE_ID_SET_H
#define LAKE_ID_SET_H

#include "base/str.h"

struct id_set_slot {
    uint64_t halves[2]; /* both 0: the slot is empty */
};

/* {0} is the empty set. */
struct id_set {
    struct id_set_slot *slots;
    size_t mask, count; /* number of slots - 1; number of ids */
};

void id_set_release(struct id_set *s);
/* Adds the id, which has LAKE_ID_LEN hex digits. An id that was read from outside must be checked
 * first, with lake_is_commit_id(). Returns false if the set already has it. */
bool id_set_add(struct id_set *s, struct str id);
bool id_set_has(const struct id_set *s, struct str id);

#endif
