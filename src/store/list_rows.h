/* The items of lists by position, for cmd_list.c and cmd_list_edit.c. */
#ifndef STORE_LIST_ROWS_H
#define STORE_LIST_ROWS_H

#include "store/embedded_int.h"

bool list_want(struct call *c, struct str key, struct object *o);

/* Positions count from 0; an item is at index head + position. */
bool list_get(struct call *c, const struct object *o, int64_t position, struct str *value);
void list_put(struct call *c, struct object *o, int64_t position, struct str value);

/* Adds an item at an end. Creates the list if it does not exist; the caller saves the object. */
void list_push_item(struct call *c, struct object *o, bool left, struct str value);
/* Removes the item at an end and returns a copy. The list must not be empty. */
struct str list_pop_item(struct call *c, struct object *o, bool left);

/* Items [from, to) of the list, forward or in reverse. The rows are borrowed by the walk. */
struct list_walk {
    struct walk w;
    struct row from, to;
};
void list_walk_open(struct list_walk *lw, struct call *c, const struct object *o, int64_t from,
                    int64_t to);
void list_walk_open_reverse(struct list_walk *lw, struct call *c, const struct object *o);

/* Copies of the values of [from, to), as bulk replies in the arena. */
struct items list_read(struct call *c, const struct object *o, int64_t from, int64_t to);

#endif
