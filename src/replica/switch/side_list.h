/* Listings of a bucket that is on two storages during a switch without downtime. Clients see one
 * bucket (docs/replication.md, "Reads during a switch", D1 to D4).
 *
 * A key is listed from the side that a read of the key would go to, if that side has it. Nothing is
 * written; any thread. Errors are those of the sides and of the store. */
#ifndef REPLICA_SWITCH_SIDE_LIST_H
#define REPLICA_SWITCH_SIDE_LIST_H

#include "coord/version.h"
#include "object/bucket.h"

enum side { SIDE_ROUTE, SIDE_OTHER, SIDE_EITHER /* nothing is known of the thing */ };
enum { SIDES = 2 };

/* The side that a read of a thing goes to: the other one if it has the higher number in the thing's
 * version vector. `route` and `other` are names of storages. */
enum side side_of(const struct vector *v, struct str route, struct str other);

struct side_list {
    struct bucket *sides[SIDES]; /* by enum side; borrowed */
    struct str storages[SIDES];  /* names */
    /* Keys without a version vector are listed from the route's side alone; else from the other
     * side too, where the route's does not have them. */
    bool route_only;
    struct store *app; /* holds the version vectors */
    struct str bucket;
    size_t page; /* as in struct merge */
};

/* As merge_list() and merge_uploads() of object/merge.h. */
int side_list(const struct side_list *l, struct arena *a, const struct list_options *o,
              bool versions, struct list_result *out, struct err *err) MUST_CHECK;
int side_list_uploads(const struct side_list *l, struct arena *a, const struct list_options *o,
                      struct upload_list *out, struct err *err) MUST_CHECK;

#endif
