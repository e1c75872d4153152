/* Declarations that the files about moves share. The old side is the satellite that the slot
 * leaves, and the new side is the one that it goes to. */
#ifndef ARCHIVE_MOVE_INT_H
#define ARCHIVE_MOVE_INT_H

#include "archive/shelf_int.h"

/* An object on the old side. */
struct move_object {
    struct shelf *shelf;
    struct arena *arena;
    struct object_info source; /* with its key */
    enum archive_kind kind;
};

/* The result when an object of the old side is compared with the new side. */
enum move_state {
    MOVE_MISSING, /* the new side has no object of this key */
    MOVE_SAME,    /* both sides have the same object */
    MOVE_OTHER,   /* the new side has a different object, which is newer */
};

/* Compares the object with the object `to` on the new side. If the ETags cannot be compared, the
 * bytes of both objects are compared. */
int move_compare(const struct move_object *m, struct str to, enum move_state *out,
                 struct err *err) MUST_CHECK;
/* Copies the object to the key `to` on the new side, which must be free, and checks the bytes on
 * the way. ERR_CORRUPT: the stored bundle is damaged. ERR_CONFLICT: the object has changed
 * meanwhile, or the key is not free any more. */
int move_copy(const struct move_object *m, struct str to, bool check_pack,
              struct err *err) MUST_CHECK;

#endif
