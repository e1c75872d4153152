/* The tap captures changes of replicated buckets (docs/replication.md, "Capture", R1 to R6). It
 * notes every change before the change takes effect, or in the same commit. Then it records the
 * change in the store: it raises the object's number in its version vector, and queues a task for
 * every destination.
 *
 * A local storage has commits, and captures changes by itself: it writes a row in the commit of
 * each change. One thread for each such storage reads the rows in order, records them and deletes
 * them (tap_drain.c). So capture costs a put only the row.
 *
 * A remote storage can fail after it has made a change and before it has answered. So the tap
 * writes an *intent* before the request is sent: a note that certain things may change. When the
 * storage has answered, the change is recorded and the intent is removed, in one step. If weir is
 * killed, or the connection breaks, the intent is still there. The process that finds the intent
 * records the change as one whose outcome is not known. This does no harm if nothing changed,
 * because workers compare both sides anyway (R2, R4).
 *
 * There are three kinds of intent. The first kind serves every write. The other two are cheaper,
 * and serve the most common write, which changes one object:
 *
 * 1. A task in the queue `intents` (tap_intent.c) is the general form. It holds many keys, or
 * changes of a bucket, and it is on disk, or in Redis, before the request is sent. It comes due a
 * minute later, on any worker, and is postponed while the request lasts. It costs one call of the
 * store for each request: a sync of the embedded store, or a round trip to Redis. This kind is used
 * where the other two kinds cannot be: for several keys, for a bucket, and for a bucket that is
 * being switched. In a switch each request must hold the locks of its keys, and must be recorded
 * before it is answered.
 *
 * 2. A shared intent (tap_shared.c) is such a task for several requests to one bucket, each of one
 * object. Requests that begin while an intent is being written wait, and share the next intent. So
 * 64 clients cost a few calls instead of 64. The task ends when all its requests are recorded; the
 * task stays if the outcome of one request is not known. A shared intent is used for single objects
 * with Redis, and with the embedded store where the journal cannot be used.
 *
 * 3. An entry of the journal (tap_note.c, tap_journal.c) costs no call at all: it is some bytes in
 * a file that is mapped into memory. The kernel keeps them when weir is killed, so the next start
 * finds them. A crash of the machine may lose them. So the bucket is marked on disk before its
 * first entry, and after such a crash the marked buckets are compared as a whole (tap_marks.c, R6).
 * The journal is used for single objects, and only with the embedded store: if several processes
 * share a store, no other process would find the entries of a process that was killed. The journal
 * is not used for a bucket that has a switch, because a switch must see every intent in the queue
 * (S4, S8). It is also not used when the entry does not fit, or when no slot is free.
 *
 * begin_replicated() in tap_intent.c chooses the kind. Requests with an intent of the last two
 * kinds are answered first and recorded a moment later, many at once (tap_recorder.c).
 *
 * A table of bits, the *filter*, says which buckets are replicated, so changes of other buckets
 * cost almost nothing. A bit may be set although its bucket is not replicated; then the change is
 * recorded for no destination. The bit of a replicated bucket is always set: until the policies
 * were read once, every bucket counts as replicated. */
#ifndef REPLICA_TAP_TAP_H
#define REPLICA_TAP_TAP_H

#include "base/log.h"
#include "coord/lease.h"
#include "coord/replication.h"
#include "coord/worker.h"
#include "object/local/local.h"
#include "s3/gateway/capture.h"

struct routes;
struct taps;

enum { INTENT_DELAY_S = 60, INTENT_AGAIN_S = 600 };
#define INTENT_QUEUE STR("intents")
#define INTENT_TYPE  "intent"

struct taps_options {
    struct replications *replications; /* borrowed, like the other pointers */
    struct queue *queue;
    /* Makes the first task of a replication that a user's policy gives to a new bucket. NULL: such
     * a replication gets no task. */
    struct task (*first)(struct arena *a, const struct replication_id *id, int priority);
    struct locks *locks; /* for changes during a switch (S10); NULL: no locks are used */
    /* Changes of all storages of these routes are captured, also of storages that are added
     * later. */
    struct routes *routes;
    /* configDB. This process writes there up to which time its changes are recorded, for the other
     * processes. NULL: there are no other processes. */
    struct store *config;
    /* Id of the present start of the machine. A journal with another id may have lost entries (R6).
     * Empty: the store is not embedded, and there is no journal. */
    struct str boot;
    /* Path of the journal's file; used only if `boot` is set. NULL: every intent is a task. */
    const char *journal;
    /* The process's lease. No client's change is made without a lease (E1). taps_open() gives the
     * lease two functions. Before each new lease begins, the first one brings the taps up to date
     * with the policies (lease_read_first()). The second one returns taps_epoch(), which the lease
     * tells to other processes (lease_tell_epoch()). lease_start() is called after taps_open(), and
     * lease_stop() before taps_close(). NULL: this process needs no lease. */
    struct lease *lease;
    uint64_t postpone_ms; /* time in ms between two postponements of open intents; 0: 15 s */
    /* A bucket's mark is removed after this time without an intent; 0: a minute. */
    uint64_t mark_idle_ms;
    const struct log *log; /* NULL: silent */
    int (*record)(struct replications *r, const struct record *rec,
                  struct err *err); /* for tests; NULL: replication_record() */
};
/* Starts to capture changes. The function must be called before anything is written. When it
 * returns, every local storage of the routes has a tap: a thread that records its changes. */
int taps_open(struct taps **out, const struct taps_options *o, struct err *err) MUST_CHECK;
/* Stops capturing. The function must be called when nothing is written any more. Rows that are not
 * recorded yet stay, and the next start records them. */
void taps_close(struct taps *t); /* NULL is fine */

/* Returns the functions for gateway_options.capture; borrowed from `t`. */
const struct change_capture *taps_capture(struct taps *t);

/* Runs a task of type INTENT_TYPE; its ctx is the taps. The task records the changes of an intent
 * that its request has not ended (R4). */
int taps_intent_run(struct task_run *run, struct err *err);
/* Runs a task of type USER_TYPE (replica/first.h); its ctx is the taps. Once every gateway knows a
 * new user policy, the task gives the user's existing buckets the replications of the policy.
 * Buckets that are made later get their replications when their creation is recorded (P3). */
int taps_user_run(struct task_run *run, struct err *err);

/* Sets *out to whether a bucket of a remote storage has intents in the queue. Such intents are for
 * changes that are under way, or whose outcome is not known. *out is also true while intents may
 * have been lost (taps_suspect()). `due_s` > 0 (seconds since 1970): only intents count that were
 * not recorded yet and come due by that time. So intents of later requests, and intents that are
 * still being postponed, do not count. */
int taps_intents_open(struct queue *q, struct str storage, struct str bucket, int64_t due_s,
                      bool *out, struct err *err) MUST_CHECK;

/* Sets *out to whether a crash of the machine may have lost intents of the bucket, and the bucket's
 * initial copy has not begun again since then (R6). */
int taps_suspect(struct queue *q, struct str storage, struct str bucket, bool *out,
                 struct err *err) MUST_CHECK;

/* Returns whether a local storage's changes can be recorded. While they cannot, writes to its
 * replicated buckets are refused (R5). */
bool taps_ready(struct taps *t, struct storage *s);
/* Waits until the row `number` of a local storage's outbox has been recorded. ERR_UNAVAILABLE:
 * changes cannot be recorded at present. ERR_TIMEOUT: the row was not recorded by `deadline_ns`
 * (clock_mono_ns()). During a switch without downtime every change waits in this way before its
 * call returns, because version vectors decide which storage a read goes to. */
int taps_flush(struct taps *t, struct storage *s, uint64_t number, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;

/* Waits until everything that was written to a local storage before the call has been recorded.
 * Does nothing for other storages. Errors are those of taps_flush(). */
int taps_settle(struct taps *t, struct storage *s, uint64_t deadline_ns,
                struct err *err) MUST_CHECK;

/* Waits until all changes have been recorded for which clients got an answer before the call. `s`
 * is a local storage. `s` NULL: the changes of all remote storages; after the call each of them is
 * recorded or still has an intent. The call causes no sync to disk. Errors are those of
 * taps_flush(). */
int taps_await(struct taps *t, const struct storage *s, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;

/* Several processes may each have a local storage of one name. Returns whether a policy or a task
 * with this name means the storage of this process (docs/replication.md, N1 to N5). That is so in
 * these cases: the storage is remote; no other process uses the store; the storage's folder has
 * claimed the name; or nobody has claimed the name, and the storage has a bucket. The call may ask
 * the store, and returns false when the store does not answer. `t` NULL: true, because nothing is
 * replicated. */
bool taps_owns(struct taps *t, struct storage *s);
/* Claims the storage's name for its folder. The function is called before a replication or a check
 * names the storage. ERR_CONFLICT: another folder has the name. `force` true: the other folder
 * loses the name. */
int taps_claim(struct taps *t, struct storage *s, bool force, struct err *err) MUST_CHECK;

/* taps_switching() points to a flag that says whether any bucket is in a switch without downtime.
 * taps_may_switch() returns whether a bucket of this name may be in such a switch. A switch that is
 * announced and has not begun counts too. Until the policies were read once, the flag and the
 * result are true. */
const _Atomic(bool) *taps_switching(const struct taps *t);
bool taps_may_switch(const struct taps *t, struct str bucket);
/* Records that a client removed an object at this storage, although the storage did not have the
 * object (D6). */
int taps_record_removal(struct taps *t, const struct storage *s, struct str bucket, struct str key,
                        struct err *err) MUST_CHECK;

/* Returns the epoch that this process has reached; -1: none yet. Changes that are under way, or
 * begin from now on, are captured and routed by the policies of that epoch or a later one. Earlier
 * changes are recorded, or are found by a listing (P3). */
int64_t taps_epoch(struct taps *t);

struct taps_stats {
    uint64_t recorded; /* number of rows of local storages that were recorded since the start */
    uint64_t intents;  /* number of intents that were begun since the start */
    size_t open;       /* number of intents whose requests are under way */
    uint64_t ended;    /* writes to remote storages that were answered and are not recorded yet */
};
void taps_stats(struct taps *t, struct taps_stats *out);

#endif
