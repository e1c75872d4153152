/* Intents of single objects in a file that is mapped into memory, so that one costs some stores and
 * no system call, and outlives the process (docs/replication.md, "The journal", R6). Every function
 * may be called by any thread. */
#ifndef REPLICA_TAP_TAP_JOURNAL_H
#define REPLICA_TAP_TAP_JOURNAL_H

#include "base/err.h"
#include "base/str.h"

struct journal;

struct journal_entry {
    struct str storage, bucket, key;
    unsigned changes; /* a set of enum thing_kind */
};

/* *kept: the file is of this start of the machine, and has what was in it when the last process
 * ended; else it is empty now, and stays nobody's until journal_begin(): who must do something
 * about what was in it does so before. */
int journal_open(struct journal **out, const char *path, struct str boot, bool *kept,
                 struct err *err) MUST_CHECK;
/* Before the first entry. */
void journal_begin(struct journal *j, struct str boot);
void journal_close(struct journal *j); /* entries stay in the file; NULL is fine */

/* Its slot; -1: it does not fit, or there is no room. */
int journal_add(struct journal *j, const struct journal_entry *e);
/* Strings in the file, until it is removed. */
void journal_read(const struct journal *j, int slot, struct journal_entry *out);
void journal_remove(struct journal *j, int slot);

/* Those of one moment. `fn` must not use the journal. */
void journal_each(struct journal *j, void (*fn)(void *ctx, int slot, const struct journal_entry *e),
                  void *ctx);

#endif
