/* Listings of a bucket that is on two storages (its *sides*) during a switch without downtime.
 * Clients see one bucket (docs/replication.md, "Reads during a switch", D1 to D4).
 *
 * A key is listed from the side that a read of the key would go to, if that side has the key.
 * Listings write nothing, and any thread may call them. Errors are those of the sides and of the
 * store. */
#ifndef REPLICA_SWITCH_SIDE_LIST_H
#define REPLICA_SWITCH_SIDE_LIST_H

#include "coord/version.h"
#include "object/bucket.h"

enum side { SIDE_ROUTE, SIDE_OTHER, SIDE_EITHER /* the thing has no version vector */ };
enum { SIDES = 2 };

/* Returns the side that a read of a thing goes to: the other side if it has the higher number in
 * the thing's version vector, else the route's side. `route` and `other` are names of storages. */
enum side side_of(const struct vector *v, struct str route, struct str other);

struct side_list {
    struct bucket *sides[SIDES]; /* indexed by enum side; borrowed */
    struct str storages[SIDES];  /* names of the storages */
    /* About keys without a version vector. True: they are listed from the route's side alone.
     * False: a key that the route's side does not have is listed from the other side. */
    bool route_only;
    struct store *app; /* the database that has the version vectors */
    struct str bucket;
    size_t page; /* entries that a side is asked for at once; 0: as many as fit */
};

/* These list objects and uploads as merge_list() and merge_uploads() of object/merge.h do. */
int side_list(const struct side_list *l, struct arena *a, const struct list_options *o,
              bool versions, struct list_result *out, struct err *err) MUST_CHECK;
int side_list_uploads(const struct side_list *l, struct arena *a, const struct list_options *o,
                      struct upload_list *out, struct err *err) MUST_CHECK;

#endif
