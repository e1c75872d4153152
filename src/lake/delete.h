/* Removing the remains of deleted repositories.
 *
 * Deleting a repository removes its record and adds a row to the to-delete list, in one write
 * (lake_repo_delete()). From then on nothing leads to the repository's other rows and files.
 * lake_delete_work() removes them, one repository after the other. A repository that is *purged*
 * loses its files too; otherwise they stay. The steps:
 *
 * 1. For each branch, one write removes the branch and puts its tokens on the cleanup list.
 * 2. Unfinished uploads in parts are aborted.
 * 3. If the repository is purged, the objects of its namespace are removed.
 * 4. The partition is dropped.
 * 5. If the repository is purged, its objects are removed a second time after lake.drop.again, and
 *    the claim last.
 * 6. The row is removed from the list.
 *
 * Every step can be repeated. If the process dies, the row stays, and the next call goes on. */
#ifndef LAKE_DELETE_H
#define LAKE_DELETE_H

#include "lake/lake.h"

/* A row of the to-delete list, `to-delete/<partition>`. */
struct deleted_row {
    struct str id, space, owner; /* of the repository */
    int64_t since_ms;
    bool purge;
    int64_t purged_ms; /* when the files were removed for the first time; 0: not yet */
};
void deleted_row_write(struct buf *out, const struct deleted_row *row);
/* Reads a row; the strings point into `record`. */
int deleted_row_read(struct deleted_row *out, struct str record, struct err *err) MUST_CHECK;

/* Removes the remains of every repository on the list. If the removal of one repository fails, the
 * failure is logged, the repository stays on the list, and the work goes on with the next. `ended`
 * is called between the steps, and returns whether the work is to stop; NULL: the work never stops
 * early. Returns the code of the first failure. */
int lake_delete_work(struct lake *l, bool (*ended)(void *ctx), void *ctx,
                     struct err *err) MUST_CHECK;
/* Whether a row of the list has work to do now. */
int lake_delete_is_due(struct lake *l, bool *out, struct err *err) MUST_CHECK;

#endif
