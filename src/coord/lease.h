/* The lease of a process: how long it may act on the policies and routes that it has read.
 *
 * Several processes may share one store. Each keeps policies and routes in memory, and writes a
 * *word* to the store every second: that it lives, and how new its policies are (coord/gateways.h).
 * A process that changes a policy waits until every process whose word is younger than
 * GATEWAY_LIFE_S holds the change. It does not wait for a process whose last word is older. A
 * process that was stopped, or was cut off from the store, does not notice that its last word gets
 * too old. So it must stop acting earlier, by itself: its lease ends LEASE_MS after it *sent* the
 * last word that the store accepted.
 *
 * Words that follow each other within that time prolong the lease. After a gap the lease is not
 * prolonged, because other processes may not have waited. A new lease, with a new number, begins
 * once the store has accepted a word again and every function given to lease_read_first() has then
 * read its data.
 *
 * Each change compares the time itself (lease_check()), because no thread of the process runs while
 * the process is stopped or the machine sleeps. The clock goes on during that time.
 * docs/replication.md has the invariants, E1 to E5. A process that does not share its store needs
 * no lease, but sends words all the same.
 *
 * Any thread may call these functions, except where a comment says otherwise. A `struct lease *`
 * that may be NULL stands for a process that needs no lease. */
#ifndef COORD_LEASE_H
#define COORD_LEASE_H

#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

struct installation;
struct lease;

enum { LEASE_MS = 8 * MS_PER_S };

struct lease_options {
    struct store *config; /* configDB; borrowed, like `installation` */
    /* Borrowed; sends the words. NULL: the caller sends them, and calls lease_heard() and
     * lease_refused(). */
    struct installation *installation;
    bool needed;           /* a lease is needed: other processes use the store too */
    const struct log *log; /* NULL: silent */
};
struct lease *lease_new(const struct lease_options *o);
void lease_free(struct lease *l); /* to be called after lease_stop(); NULL is fine */

/* --- before the start --- */

/* Adds a function that reads data which must be read from the store before a lease begins. The
 * lease's own thread calls these functions in the order in which they were added. After a failure
 * the thread calls them again soon. */
typedef int lease_read_fn(void *ctx, struct err *err);
void lease_read_first(struct lease *l, lease_read_fn *fn, void *ctx);
/* Makes each word also say an epoch of the policies. `fn` returns the newest epoch whose policies
 * every change of this process obeys; -1: there is no such epoch yet. `fn` is called ten times a
 * second. Without `fn` the words say only that the process lives, and other processes do not wait
 * for it. */
typedef int64_t lease_epoch_fn(void *ctx);
void lease_tell_epoch(struct lease *l, lease_epoch_fn *fn, void *ctx);

/* Starts the thread that sends words and the thread that reads data before a lease begins. */
int lease_start(struct lease *l, struct err *err) MUST_CHECK;
/* Ends the threads, and tells other processes that they need not wait for this process any more.
 * lease_check() may still be called. NULL is fine, as is a lease that was not started. */
void lease_stop(struct lease *l);

/* --- asking --- */

/* Checks that the present lease has not ended. *number is its number; 0: no lease is needed. Errors
 * are those of lease_check(); *number is set all the same. `l` may be NULL. */
int lease_take(const struct lease *l, uint64_t *number, struct err *err) MUST_CHECK;
/* Checks that the lease with this number has not ended. ERR_STORE, with a text for clients: it has
 * ended. Never waits. `l` may be NULL. */
int lease_check(const struct lease *l, uint64_t number, struct err *err) MUST_CHECK;
/* Waits until a lease has begun; returns true at once when no lease is needed. Returns false when
 * no lease has begun by `deadline_ns` (clock_mono_ns()). */
bool lease_await(struct lease *l, uint64_t deadline_ns);
/* Returns 0 when other processes do not wait for this one any more, because its last word is too
 * old. Otherwise, also before the first word, returns a number that changes after each gap in which
 * other processes may not have waited. A caller that asks the store what every process knows calls
 * this before and after the question. If the two numbers differ, the word of this process may have
 * been too old to count (docs/replication.md, E5). `l` may be NULL. */
uint64_t lease_contact(struct lease *l);

/* Returns the error code, such as "OOM", with which Redis refused the last word of this process
 * (see store_refusal()). NULL: Redis did not refuse it. Callers pass the result to store_cannot().
 * `l` may be NULL. */
const char *lease_trouble(const struct lease *l);

/* --- the store's answer to a word --- */

/* Records that the store accepted the word that was sent at `sent_ns` (clock_boot_ns()). */
void lease_heard(struct lease *l, uint64_t sent_ns);
/* Records that the store did not accept the word. Clients whose changes are refused are given the
 * reason `why`. `halted` true: the store is not the one that was known (coord/installation.h), so
 * the lease ends at once. */
void lease_refused(struct lease *l, const struct err *why, bool halted);

#endif
