/* The items of lists by position, for cmd_list.c and cmd_list_edit.c. */
#ifndef STORE_LIST_ROWS_H
#define STORE_LIST_ROWS_H

#include "store/embedded_int.h"

bool list_want(struct call *c, struct str key, struct object *o);

/* These functions read and write the item at a position. Positions count from 0; the row of the
 * item has the index `head` plus position. list_get() returns false as run_get() does. */
bool list_get(struct call *c, const struct object *o, int64_t position, struct str *value);
void list_put(struct call *c, struct object *o, int64_t position, struct str value);

/* Adds an item at the left or the right end. Creates the list if it does not exist; the caller
 * saves the object. */
void list_push_item(struct call *c, struct object *o, bool left, struct str value);
/* Removes the item at the left or the right end and returns a copy of it, in the arena. The list
 * must not be empty. */
struct str list_pop_item(struct call *c, struct object *o, bool left);

/* A walk over the items at the positions [from, to) of a list, or over all items in reverse. The
 * struct must not move while the walk is open, because `w` borrows `from` and `to`. */
struct list_walk {
    struct walk w;
    struct row from, to;
};
void list_walk_open(struct list_walk *lw, struct call *c, const struct object *o, int64_t from,
                    int64_t to);
void list_walk_open_reverse(struct list_walk *lw, struct call *c, const struct object *o);

/* Returns copies of the items at the positions [from, to), as bulk replies in the arena. */
struct items list_read(struct call *c, const struct object *o, int64_t from, int64_t to);

#endif
