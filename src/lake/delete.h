/* What is left of deleted repositories, and its removal.
 *
 * Deleting a repository removes its record and adds a row to the to-delete list, in one write
 * (lake_repo_delete()). From then on nothing leads to the repository's other rows and files. The
 * work below removes them, one repository after the other:
 *
 *     branch by branch: one write removes the branch and puts its tokens on the cleanup list
 *     uploads in parts that were not finished are aborted
 *     purge: the objects of the namespace are removed
 *     the partition is dropped
 *     purge: the objects are removed a second time after lake.drop.again, and the claim last
 *     the row is removed from the list
 *
 * Every step can be repeated, so a process that dies leaves the row, and the next work goes on. */
#ifndef LAKE_DELETE_H
#define LAKE_DELETE_H

#include "lake/lake.h"

/* Removes what is left of every repository on the list. A repository whose removal fails is logged,
 * stays on the list, and does not hold up the others. `ended` (NULL: never) is asked between the
 * steps whether the caller wants to stop. The code is the error of the first failure. */
int lake_delete_work(struct lake *l, bool (*ended)(void *ctx), void *ctx,
                     struct err *err) MUST_CHECK;
/* Whether a row of the list has work to do now. */
int lake_delete_is_due(struct lake *l, bool *out, struct err *err) MUST_CHECK;

#endif
