/* An overlay (object/overlay.h) whose logical buckets lie over two storages, split by key: keys
 * before the bound are in the part on the home, under the bucket's own name; the others in the part
 * "<name>-far" on the second storage. */
#ifndef TESTS_UNIT_OBJECT_FAKE_OVERLAY_H
#define TESTS_UNIT_OBJECT_FAKE_OVERLAY_H

#include "object/overlay.h"
#include "unit/object/fake_space.h"

/* Buckets whose names begin so are made as plain buckets. */
#define FAKE_OVERLAY_PLAIN "plain"

struct fake_overlay {
    struct overlay overlay; /* for routes_set_overlay() */
    struct storage *home, *second;
    const char *bound;
    struct fake_names names; /* of logical buckets */
};

/* Every bucket that is made on `home` from now on is a logical one, but for the plain ones. Both
 * storages are borrowed; they may be the same. */
void fake_overlay_open(struct fake_overlay *o, struct storage *home, struct storage *second,
                       const char *bound);
void fake_overlay_close(struct fake_overlay *o);

#endif
