/* Names of local storages. A name belongs to the folder that has claimed it, which is written down
 * in `w:storages` in configDB (docs/replication.md, "Names of folders", N1 to N5). Any thread.
 * Calls fail with the store's codes, and with those that are named below. */
#ifndef COORD_CLAIM_H
#define COORD_CLAIM_H

#include "coord/replication.h"

struct claim {
    struct str storage; /* the name */
    struct str folder;  /* the folder's id, without blanks */
    struct str where;   /* "<host>:<path>" of the folder, for people */
};

/* Gives the name to the folder. ERR_CONFLICT: another folder has the name; the error's text says
 * which. `force`: the other folder loses the name, and with it the number up to which its outbox
 * was recorded. */
int claim_take(struct replications *r, const struct claim *c, bool force,
               struct err *err) MUST_CHECK;
/* 0: the folder has the name. ERR_NOT_FOUND: no folder has it. ERR_CONFLICT: as above. */
int claim_check(struct replications *r, const struct claim *c, struct err *err) MUST_CHECK;

#endif
