/* Runs a migration (lake/migrate.h) on a thread of its own. A process runs at most one migration at
 * a time. The url of the source contains a password, so it is kept in memory only: after a restart
 * the user must give the command again, and the migration continues where it stopped. Any thread
 * may call these functions. */
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
/* Tells the migration to stop soon. Rows that were copied are kept. */
void lake_mover_stop(struct lake_mover *m);

/* The status of the running migration, or of the last one. */
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
