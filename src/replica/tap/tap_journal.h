/* The journal: intents of single objects in a file that is mapped into memory. Adding an entry
 * takes a few writes to memory and no system call, and the entry outlives the process
 * (docs/replication.md, "The journal", R6). Any thread may call these functions. */
#ifndef REPLICA_TAP_TAP_JOURNAL_H
#define REPLICA_TAP_TAP_JOURNAL_H

#include "base/err.h"
#include "base/str.h"

struct journal;

struct journal_entry {
    struct str storage, bucket, key;
    unsigned changes; /* a set of enum thing_kind */
};

/* Opens the journal's file. *kept is set to whether the file was made since the last start of the
 * machine (`boot`) and holds the entries of the last process. If not, entries were lost, and the
 * file is now empty and without a head. The caller then handles the loss, and calls
 * journal_begin(), which writes the head. */
int journal_open(struct journal **out, const char *path, struct str boot, bool *kept,
                 struct err *err) MUST_CHECK;
/* Writes the head. Called before the first entry is added. */
void journal_begin(struct journal *j, struct str boot);
void journal_close(struct journal *j); /* entries stay in the file; NULL is fine */

/* Adds an entry. Returns its slot; -1: the entry does not fit, or no slot is free. */
int journal_add(struct journal *j, const struct journal_entry *e);
/* Reads the entry in a slot. Its strings point into the file, and are valid until the entry is
 * removed. */
void journal_read(const struct journal *j, int slot, struct journal_entry *out);
void journal_remove(struct journal *j, int slot);

/* Calls `fn` for each entry, under the journal's lock, so `fn` must not add or remove entries.
 * Meanwhile no slot is used again. But an entry that is being added may be left out, and an entry
 * that is being removed may still be given. */
void journal_each(struct journal *j, void (*fn)(void *ctx, int slot, const struct journal_entry *e),
                  void *ctx);

#endif
