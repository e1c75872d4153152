/* The space of the lake (route/space.h): a set of buckets, each of which is a repository.
 *
 * The names of all repositories are in memory, because every S3 request looks up a name. They are
 * loaded at the start. If this process makes or deletes a repository, its names change at once. If
 * other processes can write to the key-value store, the names are also loaded every half minute,
 * and when another process announces a change by a message in the store.
 *
 * A repository and a bucket never have the same name. A request that makes one of them writes
 * first, then looks whether the other kind has the name, and undoes its own write if it does. So if
 * both are made at the same time, at least one of the two requests notices the other.
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
    struct store *store; /* through it, messages are sent to other processes and received */
    const struct log *log;
};

/* Opens the space, and keeps its names up to date from then on. If the key-value store does not
 * answer, the opening succeeds, and the names are loaded later. */
int lake_space_open(struct lake_space **out, const struct lake_space_options *o,
                    struct err *err) MUST_CHECK;
/* Closes the space. No bucket of the space may be open. NULL is fine. */
void lake_space_close(struct lake_space *s);

/* Returns the argument for routes_add_space(). It is valid until the space is closed. */
const struct bucket_space *lake_space_buckets(struct lake_space *s);

/* Opens one ref of a repository as a bucket: its keys are the paths at that ref. `ref` is any ref
 * expression. ERR_NO_BUCKET: there is no such repository. */
int lake_space_open_ref(struct bucket **out, struct lake_space *s, struct str repo, struct str ref,
                        struct err *err) MUST_CHECK;

#endif
