/* A migration on a thread of its own (lake/migrate.h). A process has at most one. The url of the
 * source has a password, so it stays in memory only: after a restart the command must be given
 * again, and the migration goes on where it stopped. Any thread may call these functions. */
#ifndef LAKE_MOVER_H
#define LAKE_MOVER_H

#include "lake/migrate.h"

struct lake_mover;

struct lake_mover *lake_mover_new(struct lake *l); /* the lake is borrowed */
/* Stops the migration, waits for its end and frees the mover; NULL is fine. */
void lake_mover_free(struct lake_mover *m);

/* Starts a migration. `owner` is the id of the user who will own the repositories. ERR_BUSY: a
 * migration is under way. */
int lake_mover_start(struct lake_mover *m, struct str url, struct str owner,
                     struct err *err) MUST_CHECK;
/* Stops the migration soon. Rows that were copied are kept. */
void lake_mover_stop(struct lake_mover *m);

/* The migration under way, or the last one. */
struct lake_mover_status {
    bool is_running;
    uint64_t rows;                     /* rows of the source that were read */
    struct str error;                  /* error of the whole migration; empty: none */
    struct lake_migrate_totals totals; /* set once the migration has ended */
    struct lake_migrate_repo *repos;
    size_t count;
};
/* Copies the status to the arena. */
int lake_mover_status(struct lake_mover *m, struct arena *a, struct lake_mover_status *out,
                      struct err *err) MUST_CHECK;

#endif
