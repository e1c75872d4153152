/* Change capture: every change of a replicated bucket is known before, or in the same commit as,
 * its effect (docs/replication.md, "Capture", R1 to R5).
 *
 * Changes of local storages are rows of the storages' own (object/local.h); a thread for each
 * records them in the store, in order, and forgets them. Changes of remote storages are announced
 * by a task in the queue `intents` before they are made (s3/capture.h).
 *
 * Which buckets are replicated is held as a table of bits, so that the others cost a load or two.
 * It is never too small: until the policies were read once everything counts as replicated, and
 * what a bit takes for replicated that is not, is recorded for no destination. */
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
    struct replications *replications; /* borrowed, as all of these */
    struct queue *queue;
    /* The first task of a new replication, for buckets under a user's policy; NULL: none. */
    struct task (*first)(struct arena *a, const struct replication_id *id, int priority);
    struct locks *locks;   /* held by changes during a switch (S10); NULL: none are */
    struct routes *routes; /* whose storages are tapped, also those that come */
    struct store
        *config; /* where other processes are told what is recorded; NULL: there are none */
    /* Which start of the machine this is, by which the journal is told to be whole (R6). Empty: the
     * store is no part of this process, and keeps what it is given. */
    struct str boot;
    const char *journal; /* its file, with a boot; NULL: every intent is a task */
    /* Nothing is changed without it (E1). taps_open() adds what it must read before a lease begins,
     * and the epoch of taps_epoch() to its words; lease_start() comes afterwards, lease_stop()
     * before taps_close(). NULL: this process needs none. */
    struct lease *lease;
    uint64_t postpone_ms; /* how often open intents are pushed back, and marks looked at; 0: 15 s */
    uint64_t mark_idle_ms; /* after which a bucket's mark goes; 0: a minute */
    const struct log *log; /* NULL: silent */
    int (*record)(struct replications *r, const struct record *rec,
                  struct err *err); /* for tests; NULL: replication_record() */
};
/* Before anything is written: local storages of the routes have their tap when it returns. */
int taps_open(struct taps **out, const struct taps_options *o, struct err *err) MUST_CHECK;
/* Nothing is written any more. Rows that are left are recorded by the next start. */
void taps_close(struct taps *t); /* NULL is fine */

/* For gateway_options.capture; borrowed. */
const struct change_capture *taps_capture(struct taps *t);

/* Handler of tasks of type INTENT_TYPE; its ctx is the taps. R4. */
int taps_intent_run(struct task_run *run, struct err *err);
/* Handler of tasks of type USER_TYPE (replica/first.h); its ctx is the taps. P3 for a user's
 * policy: once every gateway knows it, so that a bucket that is made is replicated by whoever
 * records it, those that are there get their replications. */
int taps_user_run(struct task_run *run, struct err *err);

/* Whether there are changes of a remote storage's bucket that are under way or whose outcome is not
 * known. `due_s` > 0: only those that come due by then (s since 1970) and were not recorded yet:
 * what began later, or is under way and pushed back, comes due later. */
int taps_intents_open(struct queue *q, struct str storage, struct str bucket, int64_t due_s,
                      bool *out, struct err *err) MUST_CHECK;

/* Whether the machine went down and may have lost intents of the bucket, and its copy was not begun
 * anew since (R6). */
int taps_suspect(struct queue *q, struct str storage, struct str bucket, bool *out,
                 struct err *err) MUST_CHECK;

/* False while a local storage's changes cannot be recorded: writes to its replicated buckets are
 * refused (R5). */
bool taps_ready(struct taps *t, struct storage *s);
/* Waits until this row of a local storage has been recorded. ERR_UNAVAILABLE: the store cannot be
 * asked. ERR_TIMEOUT: at `deadline_ns` (clock_mono_ns). During a switch without downtime every
 * change waits so by itself before its call returns, as reads go by the vectors. */
int taps_flush(struct taps *t, struct storage *s, uint64_t number, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;

/* Waits until everything that was written to a local storage before the call has been recorded;
 * nothing for others. Errors as taps_flush(). */
int taps_settle(struct taps *t, struct storage *s, uint64_t deadline_ns,
                struct err *err) MUST_CHECK;

/* Waits until all changes that clients were told of before the call have been recorded: of this
 * local storage, or, for NULL, of remote ones, which then are recorded or announced still. Costs no
 * sync. Errors as taps_flush(). */
int taps_await(struct taps *t, const struct storage *s, uint64_t deadline_ns,
               struct err *err) MUST_CHECK;

/* Names of folders (N1 to N5). Whether what names this storage means it: it is remote, or the store
 * is this process's alone, or its folder has the name; of one that nobody has claimed, whether it
 * has a bucket. Asks the store unless the name is known to be its own; false when it cannot. `t`
 * may be NULL: nothing is replicated. */
bool taps_owns(struct taps *t, struct storage *s);
/* Before a replication, or a check, names the storage. ERR_CONFLICT: another folder has the name;
 * `force`: that one loses it. */
int taps_claim(struct taps *t, struct storage *s, bool force, struct err *err) MUST_CHECK;

/* Of switches without downtime, also announced ones: whether there is any, and whether the bucket
 * of that name may be in one. True until the policies were read once. */
const _Atomic(bool) *taps_switching(const struct taps *t);
bool taps_may_switch(const struct taps *t, struct str bucket);
/* Records that an object was removed at this storage, though the storage had nothing to remove
 * (docs/replication.md, D6). */
int taps_record_removal(struct taps *t, const struct storage *s, struct str bucket, struct str key,
                        struct err *err) MUST_CHECK;

/* The policies' epoch that every change follows which is under way or begins from now on: what is
 * written is captured as that epoch's policies say and goes where its routes lead, and what was
 * written before is recorded, and found by a listing (P3). -1: none yet. */
int64_t taps_epoch(struct taps *t);

struct taps_stats {
    uint64_t recorded; /* rows of local storages */
    uint64_t intents;  /* begun */
    size_t open;       /* of those, under way */
    uint64_t ended;    /* writes to remote storages that are not recorded yet, though answered */
};
void taps_stats(struct taps *t, struct taps_stats *out);

#endif
