/* Listings of a bucket that is on two sides, in a switch without downtime: one bucket to who lists
 * it (docs/replication.md, "Reads during a switch", D1 to D4).
 *
 * A key is listed from the side that a read of it would go to, if that side has it. Nothing is
 * written; any thread. Errors are those of the sides and of the store. */
#ifndef REPLICA_SWITCH_MERGE_H
#define REPLICA_SWITCH_MERGE_H

#include "coord/version.h"
#include "object/bucket.h"

enum side { SIDE_ROUTE, SIDE_OTHER, SIDE_EITHER /* nothing is known of the thing */ };
enum { SIDES = 2 };

/* Where a read of a thing goes: the other side if that has the higher number. `route` and `other`
 * are names of storages. */
enum side side_of(const struct vector *v, struct str route, struct str other);

struct merge {
    struct bucket *sides[SIDES]; /* by enum side; borrowed */
    struct str storages[SIDES];  /* names */
    /* What no vector is of is read from the route's side alone, else from the other where that one
     * has it not. */
    bool route_only;
    struct store *app; /* of vectors */
    struct str bucket;
    size_t page; /* entries that are asked for at once; 0: as many as fit */
};

/* As list and list_versions of object/bucket.h; also the common prefixes are exact. */
int merge_list(const struct merge *m, struct arena *a, const struct list_options *o, bool versions,
               struct list_result *out, struct err *err) MUST_CHECK;
/* As list_uploads: those of both sides, by key and id. */
int merge_uploads(const struct merge *m, struct arena *a, const struct list_options *o,
                  struct upload_list *out, struct err *err) MUST_CHECK;

#endif
