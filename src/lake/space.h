/* Repositories as buckets: the space (route/space.h) of the lake, whose buckets are repositories.
 *
 * The names of all repositories are in memory, because every S3 request looks up a name. They are
 * loaded at the start, when another process announces (by a message in the store) that it has made
 * or deleted a repository, and every half minute if other processes can write to the key-value
 * store. A change by this process is seen at once.
 *
 * A repository and a bucket never share a name. The maker of either writes first, then looks at the
 * other side, and undoes its own work if it finds the name there. So when both are made at the same
 * time, at least one of them sees the other.
 *
 * Any thread may call these functions. */
#ifndef LAKE_SPACE_H
#define LAKE_SPACE_H

#include "lake/lake.h"
#include "route/space.h"

struct lake_space;
struct store;

/* All pointers are borrowed until the space is closed. */
struct lake_space_options {
    struct lake *lake;
    struct store *store; /* its messages tell other processes of changes */
    const struct log *log;
};

/* Opens the space and watches the repositories of the lake. If the key-value store does not answer,
 * that is no error: the names are loaded later. */
int lake_space_open(struct lake_space **out, const struct lake_space_options *o,
                    struct err *err) MUST_CHECK;
/* No bucket of the space may be open. NULL is fine. */
void lake_space_close(struct lake_space *s);

/* Returns the space for routes_add_space(); it lives as long as the space. */
const struct bucket_space *lake_space_buckets(struct lake_space *s);

/* Opens one ref of a repository as a bucket: its keys are the paths at that ref. `ref` is any ref
 * expression. ERR_NO_BUCKET: there is no such repository. */
int lake_space_open_ref(struct bucket **out, struct lake_space *s, struct str repo, struct str ref,
                        struct err *err) MUST_CHECK;

#endif
