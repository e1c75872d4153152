/* Names of local storages, each claimed by one folder: `w:storages` in configDB
 * (docs/replication.md, "Names of folders", N1 to N5). Any thread. Calls fail with the store's
 * codes, else as said. */
#ifndef COORD_CLAIM_H
#define COORD_CLAIM_H

#include "coord/replication.h"

struct claim {
    struct str storage; /* its name */
    struct str folder;  /* the folder's id, without blanks */
    struct str where;   /* "<host>:<path>", for people */
};

/* The name is the folder's from now on. ERR_CONFLICT: another has it, the text says which; `force`:
 * that one loses it, and the number up to which its outbox was recorded. */
int claim_take(struct replications *r, const struct claim *c, bool force,
               struct err *err) MUST_CHECK;
/* ERR_NOT_FOUND: nobody has it. ERR_CONFLICT: another folder has it, as above. */
int claim_check(struct replications *r, const struct claim *c, struct err *err) MUST_CHECK;

#endif
