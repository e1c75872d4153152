/* The lease of a process: how long it may act on the policies and routes that it has read.
 *
 * Several processes may share one store. Each keeps policies and routes in memory, and writes a
 * *word* to the store every second: that it lives, and how new its policies are
 * (coord/gateways.h). Whoever changes a policy waits until every process whose word is younger than
 * GATEWAY_LIFE_S holds the change, and goes on without the others. A process that was stopped, or
 * was cut off from the store, is among those others and does not know it. So it stops by itself,
 * earlier: its lease ends LEASE_MS after it *sent* the last word that the store took.
 *
 * Words that follow each other within that time prolong the lease. After a gap the lease is not
 * prolonged: the others may have gone on. A new lease, with a new number, begins once everything
 * that lease_read_first() names was read after the first word that the store took.
 *
 * The time is compared by each change itself (lease_check()), by a clock that goes on while the
 * process is stopped and the machine sleeps, since no thread of the process runs in such a time.
 * docs/replication.md has the invariants, E1 to E5. A process that does not share its store needs
 * no lease, but sends words all the same.
 *
 * Functions are called by any thread, except where it is said. A `struct lease *` that may be NULL
 * stands for a process that needs no lease. */
#ifndef COORD_LEASE_H
#define COORD_LEASE_H

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

struct installation;
struct lease;

enum { LEASE_MS = 8 * MS_PER_S };

struct lease_options {
    struct store *config;              /* configDB; borrowed, as the next */
    struct installation *installation; /* sends the words. NULL: the caller does so by itself, and
                                          calls lease_heard() and lease_refused() */
    bool needed;                       /* other processes use the store too */
    const struct log *log;             /* NULL: silent */
};
struct lease *lease_new(const struct lease_options *o);
void lease_free(struct lease *l); /* stopped first; NULL is fine */

/* --- before the start --- */

/* Adds something that must be read from the store before a lease begins. All `fn` are called by the
 * lease's own thread, in the order in which they were added; a failure is tried again soon. */
typedef int lease_read_fn(void *ctx, struct err *err);
void lease_read_first(struct lease *l, lease_read_fn *fn, void *ctx);
/* Adds an epoch of the policies to the words: the newest one that every change of this process
 * follows; -1: none yet. `fn` is called ten times a second. Without it the words say only that the
 * process lives, and nobody waits for it. */
typedef int64_t lease_epoch_fn(void *ctx);
void lease_tell_epoch(struct lease *l, lease_epoch_fn *fn, void *ctx);

/* Starts the threads: the one that sends words, and the one that reads. */
int lease_start(struct lease *l, struct err *err) MUST_CHECK;
/* Ends the threads, and tells the others not to wait for this process any more. lease_check() may
 * still be called. NULL is fine, as is one that was not started. */
void lease_stop(struct lease *l);

/* --- asking --- */

/* The number of the present lease; 0: none is needed. `l` may be NULL. */
uint64_t lease_number(const struct lease *l);
/* ERR_STORE, with words for a client: the lease of this number is over. Never waits. `l` may be
 * NULL. */
int lease_check(const struct lease *l, uint64_t number, struct err *err) MUST_CHECK;
/* Waits until there is a lease, or none is needed. False: there was none by `deadline_ns`
 * (clock_mono_ns()). */
bool lease_await(struct lease *l, uint64_t deadline_ns);
/* Whether others wait for this process: 0: no, its last word is too old. Else a number, another one
 * after each gap in which they may not have waited. Whoever asks the store what every process knows
 * compares this number before and afterwards, as its own word may have been too old to count
 * (E5). `l` may be NULL. */
uint64_t lease_contact(struct lease *l);

/* How the store refused the last word, as store_refusal() says it; NULL: it did not. For
 * store_cannot(). `l` may be NULL. */
const char *lease_trouble(const struct lease *l);

/* --- what became of a word --- */

/* The store took the word that was sent at `sent_ns` (clock_boot_ns()). */
void lease_heard(struct lease *l, uint64_t sent_ns);
/* The store did not take the word; `why` is said to clients whose changes are refused. `halted`:
 * the store is not the one that was known (coord/installation.h), so the lease ends at once. */
void lease_refused(struct lease *l, const struct err *why, bool halted);

#endif
