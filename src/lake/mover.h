/* A migration that runs on a thread of its own beside everything else (lake/migrate.h). There is at
 * most one in a process. The url of the source, which has a password, stays in memory only: after a
 * restart the migration is begun again by its command, and goes on where it was. Any thread may
 * call these functions. */
#ifndef LAKE_MOVER_H
#define LAKE_MOVER_H

#include "lake/migrate.h"

struct lake_mover;

struct lake_mover *lake_mover_new(struct lake *l); /* the lake is borrowed */
/* Stops the migration, waits for its end and frees the mover; NULL is fine. */
void lake_mover_free(struct lake_mover *m);

/* Begins a migration. `owner` is the id of the user who will own the repositories. ERR_BUSY: one is
 * under way. */
int lake_mover_start(struct lake_mover *m, struct str url, struct str owner,
                     struct err *err) MUST_CHECK;
/* Stops the migration soon. What was copied is kept. */
void lake_mover_stop(struct lake_mover *m);

/* The migration that is under way, or the last one. */
struct lake_mover_status {
    bool is_running;
    uint64_t rows;                     /* rows of the source that were read */
    struct str error;                  /* of the whole; empty: none */
    struct lake_migrate_totals totals; /* once it has ended */
    struct lake_migrate_repo *repos;
    size_t count;
};
/* Copies the status to the arena. */
int lake_mover_status(struct lake_mover *m, struct arena *a, struct lake_mover_status *out,
                      struct err *err) MUST_CHECK;

#endif
