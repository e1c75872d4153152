/* Claims of folders on storage names. The name of a local storage belongs to the folder that has
 * claimed it. Claims are in the hash `w:storages` in configDB (docs/replication.md, "Names of
 * folders", N1 to N5). Any thread. Calls fail with the store's codes, and with the codes that are
 * named below. */
#ifndef COORD_CLAIM_H
#define COORD_CLAIM_H

#include "coord/replication.h"

struct claim {
    struct str storage; /* the storage name that is claimed */
    struct str folder;  /* the folder's id; has no blanks */
    struct str where;   /* "<host>:<path>" of the folder, for messages */
};

/* Gives the name to the folder. ERR_CONFLICT: another folder has the name; the error's text says
 * which. `force`: the other folder loses the name, and the number of the last recorded row of its
 * outbox is forgotten. */
int claim_take(struct replications *r, const struct claim *c, bool force,
               struct err *err) MUST_CHECK;
/* Checks that the folder has the name. ERR_NOT_FOUND: no folder has it. ERR_CONFLICT: another
 * folder has it; the error's text says which. */
int claim_check(struct replications *r, const struct claim *c, struct err *err) MUST_CHECK;

#endif
