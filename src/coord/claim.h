/* Claims: a claim says which data folder owns the name of a local storage. Processes that share a
 * store may each have a local storage of the same name. For all of them the name means the folder
 * that has claimed it. Claims are in the hash `w:storages` in configDB (docs/replication.md, "Names
 * of folders", N1 to N5).
 *
 * Calls fail with the store's codes (store/store.h), and with the codes that are named below. Any
 * thread may call these functions. */
#ifndef COORD_CLAIM_H
#define COORD_CLAIM_H

#include "coord/replication.h"

struct claim {
    struct str storage; /* the storage name that is claimed */
    struct str folder;  /* the folder's id; has no blanks */
    struct str where;   /* "<host>:<path>" of the folder, for messages */
};

/* Gives the storage name to the folder. ERR_CONFLICT: another folder has the name; the error's text
 * says which folder. `force` true: the other folder loses the name. The store then also forgets
 * which row of that folder's outbox (its log of changes) was recorded last. */
int claim_take(struct replications *r, const struct claim *c, bool force,
               struct err *err) MUST_CHECK;
/* Checks that the folder has claimed the storage name. ERR_NOT_FOUND: no folder has claimed it.
 * ERR_CONFLICT: another folder has claimed it; the error's text says which folder. */
int claim_check(struct replications *r, const struct claim *c, struct err *err) MUST_CHECK;

#endif
