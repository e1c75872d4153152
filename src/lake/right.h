/* Rights of a repository's owner in the buckets that the repository uses. weir uses these buckets
 * in the owner's name, whoever sends the request, and also in the background. The gateway checks
 * only who sends a request, so the lake must check the owner's rights (docs/security.md, P6, P8).
 *
 * Any thread may call these functions. lake_right_read() and lake_right_judge_space() read the
 * rules of the bucket each time, and may wait for the storage. */
#ifndef LAKE_RIGHT_H
#define LAKE_RIGHT_H

#include "lake/place.h"

/* Whether the owner may read the object of the place, by the rules that the gateway applies to
 * GetObject. */
int lake_right_read(const struct object_place *p, const struct object_info *info, bool *may,
                    struct err *err) MUST_CHECK;

/* Whether the user certainly may read, put and remove every object of the bucket whose key begins
 * with `begin`. If users have credentials of their own on the bucket's storage, the answer is
 * always yes, because that storage checks each request by itself. */
int lake_right_judge_space(struct lake *l, struct arena *a, struct str user, struct bucket *b,
                           struct str begin, bool *may, struct err *err) MUST_CHECK;

/* A cache of answers: for each repository, whether its owner may use its namespace. */
struct lake_rights;
struct lake_rights *lake_rights_new(void);
void lake_rights_free(struct lake_rights *x); /* NULL is fine */

/* Checks that the owner of the repository may still use its namespace, whose keys begin with
 * `begin`. The place must be open, in that namespace. An answer is used for LAKE_RIGHT_MS.
 * ERR_DENIED: the owner may not use it. ERR_AGAIN: the place was opened with PLACE_READ_NOW, which
 * forbids waiting, and no answer is in memory; the caller tries again in a way that may wait. */
enum { LAKE_RIGHT_MS = 1000 };
int lake_right_check_space(const struct object_place *p, struct lake *l, const struct lake_repo *r,
                           struct str begin, struct err *err) MUST_CHECK;

#endif
