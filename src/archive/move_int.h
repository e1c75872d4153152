/* Declarations that the files of the moves share: one object that moves. */
#ifndef ARCHIVE_MOVE_INT_H
#define ARCHIVE_MOVE_INT_H

#include "archive/shelf_int.h"

/* An object on the side that the slot leaves. */
struct move_object {
    struct shelf *shelf;
    struct arena *arena;
    struct object_info source; /* with its key */
    enum archive_kind kind;
};

/* How an object compares with the new side. */
enum move_state {
    MOVE_MISSING, /* the new side has no object of this key */
    MOVE_SAME,    /* both sides have the same object */
    MOVE_OTHER,   /* the new side has a different object, which is newer */
};

/* Compares both sides. If the ETags cannot be compared, the bytes of both objects are compared. */
int move_compare(const struct move_object *m, struct str to, enum move_state *out,
                 struct err *err) MUST_CHECK;
/* Copies the object to this key of the new side, which must be free, and checks the bytes on the
 * way. ERR_CORRUPT: the stored bundle is damaged. ERR_CONFLICT: the object changed meanwhile, or
 * the key is not free any more. */
int move_copy(const struct move_object *m, struct str to, bool check_pack,
              struct err *err) MUST_CHECK;

#endif
