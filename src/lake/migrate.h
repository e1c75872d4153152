/* Migration from a lakeFS before 0.80, which kept its records in five tables of PostgreSQL. All
 * repositories of the source are read at one moment, and become repositories of this lake. The
 * source is not changed. docs/lake-moving.md describes the migration.
 *
 * Repositories are moved one after the other. First a repository is copied into a partition that no
 * other row refers to yet. Then every row is read again from the source and from the copy, and
 * compared. The repository's own record is written last, so the repository appears whole or not at
 * all (D7).
 *
 * A row `repos/<name>` in the partition `lake-migrate`, the *mark*, records how far the migration
 * of the repository has come. It is written with every batch of rows, so a migration that was
 * stopped can continue from there. */
#ifndef LAKE_MIGRATE_H
#define LAKE_MIGRATE_H

#include "lake/lake.h"
#include "lake/progress.h"

#include <stdatomic.h>

/* How far the migration of one repository has come. */
enum lake_migrate_state {
    LAKE_MIGRATE_COPYING,
    LAKE_MIGRATE_COMPARING,
    LAKE_MIGRATE_DONE,    /* this run has moved the repository */
    LAKE_MIGRATE_PRESENT, /* an earlier run has moved the repository */
    LAKE_MIGRATE_FAILED,
};

struct lake_migrate_repo {
    struct str id;
    enum lake_migrate_state state;
    uint64_t commits, tags, branches, staged; /* rows in the source, as far as they were counted */
    /* staged rows that were not moved, because their path is empty or too long */
    uint64_t left;
    struct str error; /* why the repository could not be moved; empty: no error */
};

/* Rows of the source that are not part of any repository. */
struct lake_migrate_totals {
    uint64_t uploads; /* rows of gateway_multiparts */
    /* staged rows whose token belongs to no branch, and the number of these tokens; not moved */
    uint64_t orphan_tokens, orphan_rows;
    uint64_t homeless; /* commits, branches and tags without a repository; not moved */
};

struct lake_migrate_options {
    const char *url;                      /* postgres://user:password@host/database */
    struct str owner;                     /* id of the user who will own the repositories */
    const struct lake_progress *progress; /* NULL: none */
    /* set to true by the caller to stop the migration soon, even while the source does not answer;
     * may be NULL */
    const _Atomic(bool) *canceled;
    uint64_t timeout_ms; /* longest time of a statement of the source; 0: 10 minutes */
    /* Called at each change of a repository's state. The strings are valid during the call. */
    void (*told)(void *ctx, const struct lake_migrate_repo *r);
    void *ctx;
};

/* Moves all repositories. A repository that cannot be moved is reported as failed by told(), and
 * the others are still moved. The call itself fails only if the migration cannot go on: ERR_INVALID
 * (the source has no tables of lakeFS), ERR_DENIED, ERR_UNAVAILABLE (the source cannot be reached,
 * or does not answer), ERR_CANCELED and the errors of kv/kv.h. After an error the next call
 * continues where this call ended (D8). */
int lake_migrate(struct lake *l, const struct lake_migrate_options *o,
                 struct lake_migrate_totals *out, struct err *err) MUST_CHECK;

#endif
