/* Declarations that the files about shelves and moves share: the two sides of a shelf. */
#ifndef ARCHIVE_SHELF_INT_H
#define ARCHIVE_SHELF_INT_H

#include "archive/satellites_int.h"
#include "archive/shelf.h"

/* The sides of a shelf: SHELF_TO is the satellite to which changes are written, and SHELF_FROM is
 * the one that the slot leaves. */
enum shelf_side { SHELF_TO, SHELF_FROM, SHELF_SIDES };

struct satellite_site shelf_site(const struct shelf *s, enum shelf_side side);
/* Whether the shelf has this side. */
bool shelf_has(const struct shelf *s, enum shelf_side side);
/* Reads the table of slots again. With `make`, makes the first table if there is none. */
int shelf_look(struct shelf *s, bool make, struct err *err) MUST_CHECK;

/* These functions open the place of a key on one side: to read the object, or to change it. */
int shelf_open_read(struct object_place *p, struct shelf *s, struct arena *a, enum shelf_side side,
                    struct str key, struct err *err) MUST_CHECK;
int shelf_open_put(struct object_place *p, struct shelf *s, struct arena *a, struct str key,
                   struct err *err) MUST_CHECK;
/* Called before the last bytes of a change are sent. Checks that the lock is still held and that
 * the place still allows the change. */
int shelf_may(const struct shelf *s, const struct object_place *p, struct err *err) MUST_CHECK;

/* These functions are like those of shelf.h, but work on one side alone. A bucket that is missing
 * has no objects. */
int shelf_side_head(struct shelf *s, struct arena *a, enum shelf_side side, struct str key,
                    struct object_info *out, struct err *err) MUST_CHECK;
int shelf_side_get(struct shelf *s, struct arena *a, enum shelf_side side, struct str key,
                   struct str etag, const struct object_range *range, struct shelf_body *out,
                   struct err *err) MUST_CHECK;
int shelf_side_list(struct shelf *s, struct arena *a, enum shelf_side side,
                    const struct list_options *o, struct list_result *out,
                    struct err *err) MUST_CHECK;
int shelf_side_remove(struct shelf *s, struct arena *a, enum shelf_side side, struct str key,
                      const struct object_conditions *c, struct err *err) MUST_CHECK;

/* Moves all objects of the account away from the satellite that the slot leaves (archive/move.c).
 * The caller holds the account's lock. */
int shelf_move(struct shelf *s, struct err *err) MUST_CHECK;
/* Moves one object of the account from the old side to the new side. No lock is needed. An object
 * that is not on the old side is not an error. ERR_BUSY: the object changes at the same time. */
int shelf_move_object(struct shelf *s, struct str key, struct err *err) MUST_CHECK;

#endif
