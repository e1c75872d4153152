/* Lists from inside: items by position, shared by cmd_list.c and cmd_list_edit.c. */
#ifndef STORE_LIST_ROWS_H
#define STORE_LIST_ROWS_H

#include "store/embedded_int.h"

bool list_want(struct call *c, struct str key, struct object *o);

/* Positions count from 0; an item is at index head + position. */
bool list_get(struct call *c, const struct object *o, int64_t position, struct str *value);
void list_put(struct call *c, struct object *o, int64_t position, struct str value);

/* One more item at an end; the object is created if need be, not saved. */
void list_push_item(struct call *c, struct object *o, bool left, struct str value);
/* The item is removed and its copy returned; the list is not empty. */
struct str list_pop_item(struct call *c, struct object *o, bool left);

/* Items [from, to) of the list, forward or in reverse. The rows are borrowed by the walk. */
struct list_walk {
    struct walk w;
    struct row from, to;
};
void list_walk_open(struct list_walk *lw, struct call *c, const struct object *o, int64_t from,
                    int64_t to);
void list_walk_open_reverse(struct list_walk *lw, struct call *c, const struct object *o);

/* All values of [from, to) copied to the arena, as bulks. NULL p when empty or failed. */
struct items list_read(struct call *c, const struct object *o, int64_t from, int64_t to);

#endif
