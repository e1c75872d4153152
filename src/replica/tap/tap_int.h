/* Declarations that the files of the tap share (replica/tap/tap.h; the codes E3, E4, R4, R6, S4,
 * S10 and V5 are those of docs/replication.md).
 *
 * The *keeper* is the thread that follows the policies, postpones open intents and removes marks.
 * The *recorder* is the thread that records ended requests to remote storages. To *announce* an
 * intent is to queue its task; one thread at a time has the role of the *announcer*
 * (taps.announcing). Each captured write counts in the *phase* in which it began, until it has
 * ended, so that keep_epoch() knows when all writes with older policies have ended. A *mark* says
 * on disk that a bucket may have entries in the journal (tap_marks.c). */
#ifndef REPLICA_TAP_TAP_INT_H
#define REPLICA_TAP_TAP_INT_H

#include "base/hash.h"
#include "base/ids.h"
#include "base/list.h"
#include "base/map.h"
#include "os/loop.h"
#include "replica/tap/tap.h"
#include "replica/tap/tap_journal.h"
#include "route/route.h"

enum {
    FILTER_BITS = 64 * 1024,
    SWITCH_BITS = 1024,
    TAP_PER_CHANGE = 2, /* most changes that one row makes (docs/replication.md, V5) */
    TAP_PER_BUCKET = 3, /* most changes that a request to a bucket makes */
    TAP_BATCH = QUEUE_BATCH_MAX / TAP_PER_CHANGE, /* most rows that are recorded at once */
};

/* Which buckets and users have replications. Each pair of a storage and a bucket or user has a bit,
 * chosen by a hash. If the bit is not set, there surely is no replication. An update changes only
 * bits whose value differs, so a bit that stays set is never cleared for a moment, and readers need
 * no lock. */
struct filter {
    _Atomic(bool) any; /* false: no bit is set */
    _Atomic(uint64_t) words[FILTER_BITS / 64];
};

/* Which folder owned the name of a local storage when the store was last asked. */
enum name_state { NAME_UNKNOWN, NAME_FREE, NAME_OURS, NAME_OTHERS };

/* The tap of one local storage, with the thread that records its rows. */
struct tap {
    struct taps *taps;
    struct storage *storage;
    struct change_tap hooks;
    struct thread thread;
    struct mutex lock; /* class "replica.tap" */
    struct cond wake, moved;
    _Atomic(uint64_t) told;  /* number of the last row that was committed */
    _Atomic(bool) asleep;    /* the tap's thread waits for `wake` */
    _Atomic(bool) ready;     /* the last attempt to record succeeded */
    _Atomic(int) name;       /* enum name_state */
    _Atomic(bool) caught_up; /* the rows that the start found have been recorded */
    /* Only the keeper uses the next two members. */
    uint64_t goal;     /* row that must be recorded before an epoch is reached (see keep_epoch()) */
    uint64_t settling; /* highest row at the time taps.settling_ms (see keep_settled()) */
    /* Only the tap's thread uses the next three members. */
    size_t batch; /* most rows that are recorded at once */
    bool begun;   /* `recorded` was read from the store */
    /* Number of rows that are recorded and not deleted yet. A small batch is deleted immediately
     * and is not counted, unless other rows are left. After the start the number is 1 if rows of
     * the last process may be left. */
    size_t undropped;
    /* The lock guards the next three members. */
    uint64_t recorded; /* number of the last row that was recorded */
    size_t waiters;    /* number of calls of taps_flush() that wait */
    bool stop;
};

/* An intent that is a task in the queue. A request of many keys has several such intents. */
struct intent {
    struct list node;
    char id[ID_HEX_LEN + 1];
    struct arena a;
    /* The changes; strings are in the arena, and what.storage is not set. */
    struct intended what;
    struct str storage;  /* name of the storage */
    struct intent *next; /* the next intent of the same request; NULL: none */
    /* Set by intent_read(): the task is the intent's second task, which records the change once
     * more later (R4). */
    bool again;
    bool shared; /* several requests share the intent; each of them changes one of its keys */
    /* The next two members are for a shared intent; taps.lock guards them. */
    /* The intent's task stays, because the outcome of one request is not known, or one request
     * could not be recorded. */
    bool left;
    size_t members; /* number of the intent's requests that are not recorded yet */
};

/* An ended request to a remote storage, which is handed to the recorder. Its intent is shared, or
 * is an entry of the journal. */
struct ended {
    struct list node;
    struct intent *in; /* the shared intent; NULL: the intent is in the journal */
    /* The next three members are set only if the intent is in the journal. */
    int slot;          /* the entry's slot */
    struct mark *mark; /* the bucket's mark; held until the entry is removed */
    /* A task was made, because the outcome is not known or the request could not be recorded. */
    bool left;

    struct journal_entry what; /* the changes; strings are borrowed from the intent or the entry */
    unsigned phase;            /* phase in which the request began */
    enum outcome outcome;
    /* The request is the last member of its shared intent, whose task ends with this record. */
    bool last;
};

struct taps {
    struct taps_options o;
    struct change_capture capture;
    struct filter filter;
    /* Some bucket is in a switch without downtime, or such a switch is announced. */
    _Atomic(bool) switching;
    /* Bits of the buckets in such a switch, chosen by a hash of the name. */
    _Atomic(uint64_t) switch_words[SWITCH_BITS / 64];
    _Atomic(int64_t) held;   /* result of taps_epoch() */
    _Atomic(unsigned) phase; /* the present phase (see keep_epoch()) */
    /* Number of captured writes that began in each phase (index: phase % 2) and have not ended yet.
     * A write to a remote storage ends when it is recorded, or is left to a task. */
    _Atomic(uint64_t) under_way[2];
    _Atomic(uint64_t) count_recorded, count_intents;
    _Atomic(size_t) tap_count; /* taps[] only grows */
    struct tap *taps[ROUTES_STORAGES_MAX];
    struct mutex lock; /* class "replica.intents" */
    struct list open;  /* list of struct intent: open intents, which the keeper postpones */
    /* List of struct intent: intents of changes that ended after the lease. They are yet to be
     * announced (E4). */
    struct list astray;
    size_t astray_count;
    struct list joining;   /* list of struct joining: requests that wait for a shared intent */
    bool announcing;       /* a thread has the role of the announcer (tap_shared.c, tap_marks.c) */
    struct cond announced; /* signalled when the role is free or requests were announced */
    struct map marks; /* maps to struct mark; only the announcer adds and removes (tap_marks.c) */
    struct journal *journal; /* NULL: there is no journal */
    /* Number of journal entries, also of the last process, that the recorder is not done with. */
    _Atomic(size_t) noted;
    _Atomic(bool) stuck; /* the store accepts no records at present */
    struct list over;    /* list of struct ended: requests to be recorded, in order */
    /* Number of requests that were handed to the recorder, and of those that the recorder is done
     * with. */
    uint64_t over_count, over_recorded;
    size_t hurry; /* number of callers that wait for the recorder */
    bool recorder_asleep, recorder_stop;
    struct cond over_wake, over_moved;
    struct thread recorder;
    struct list held_locks; /* list of struct shared_lock (tap_lock.c) */
    struct cond lock_moved;
    /* Number of the keeper's rounds that the lease asked for (E3), and number of these rounds that
     * have ended. */
    uint64_t rounds_asked, rounds_done;
    int round_code; /* result of the last round */
    struct err round_err;
    struct cond round_ended;
    struct loop keeper;
    /* Only the keeper uses the members below. */
    bool marks_began; /* marks_keep() has run at least once */
    int64_t applied;  /* epoch of the policies that the filter was set from; -1: none */
    /* Epoch that is reached when all writes that began in the phase before the present one have
     * ended and are recorded (keep_epoch()); -1: none. */
    int64_t pending;
    bool ended; /* the writes that `pending` waits for have ended */
    /* When tap.settling of all taps was read, by the store's clock (ms since 1970); 0: not yet. */
    int64_t settling_ms;
    uint64_t postponed_ns, settled_ns, named_ns;
};

/* --- tap.c --- */

/* A change, for the question whether a policy may ask for it (filter_has()). */
struct filtered {
    struct str storage, bucket;
    struct str user;  /* owner of a bucket that is made */
    unsigned changes; /* a set of enum thing_kind */
};
/* Returns whether a policy may ask that the change be replicated. For a new bucket the policies of
 * its owner count too. False: certainly no policy asks for that. */
bool filter_has(const struct filter *f, const struct filtered *what);
int taps_record(struct taps *t, const struct record *rec, struct err *err) MUST_CHECK;
/* Returns the tap of a local storage; NULL: the storage has no tap. */
struct tap *taps_find(struct taps *t, const struct storage *s);

/* --- tap_change.c --- */

/* Collects the changes that go into one record. */
struct changes_out {
    struct arena *a;
    struct change *items; /* array with room for QUEUE_BATCH_MAX changes */
    size_t count;
};
int changes_out_init(struct changes_out *out, struct arena *a, struct err *err) MUST_CHECK;
/* Adds the changes of one key, or of the bucket when the key is empty. `changes` is a set of enum
 * thing_kind; `row` is the number of the change's row in the outbox; 0: the change has no row. */
void changes_add(struct changes_out *out, unsigned changes, struct str storage, struct str bucket,
                 struct str key, uint64_t row);
/* Makes the replications of a new bucket that the user's policies ask for. Replications that exist
 * stay as they are. */
int changes_new_bucket(struct taps *t, struct arena *a, struct str storage, struct str bucket,
                       struct str user, struct err *err) MUST_CHECK;

/* --- tap_drain.c --- */

int tap_start(struct tap **out, struct taps *t, struct storage *s, struct err *err) MUST_CHECK;
void tap_stop(struct tap *tap);
int tap_wait(struct tap *tap, uint64_t number, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- tap_lock.c --- */

/* Takes the locks of the keys at the storage (S10). Several changes of this process share one lock
 * of a key. ERR_BUSY: a worker has held one of the locks for too long. */
int tap_locks_take(struct taps *t, const struct intended *i, void **out,
                   struct err *err) MUST_CHECK;
void tap_locks_release(struct taps *t, void *locks); /* NULL is fine */

/* --- tap_intent.c --- */

/* These are the three functions of struct change_capture; `ctx` is the taps. */
int intent_begin(void *ctx, const struct intended *i, struct capture *out, struct err *err);
int intent_check(void *ctx, const struct capture *c, struct err *err);
int intent_end(void *ctx, struct capture *c, enum outcome outcome, struct err *err);
/* Queues the intent's task, which runs in `delay_s` seconds unless it is postponed. */
int intent_announce(struct taps *t, struct intent *in, int64_t delay_s, struct err *err) MUST_CHECK;
/* Makes an intent for `keys`, with the storage, bucket and changes of `like`. The caller owns
 * it. */
struct intent *intent_new(const struct intended *like, const struct str *keys, size_t count);
void intent_free(struct intent *in);
/* Reads the payload of an intent's task. Strings are in in->a, which the caller has initialised.
 * ERR_INVALID: the payload is malformed. */
int intent_read(struct intent *in, struct str payload, struct err *err) MUST_CHECK;
/* intent_keep() makes the keeper postpone the intent from now on; intent_let_go() ends that. */
void intent_keep(struct taps *t, struct intent *in);
void intent_let_go(struct taps *t, struct intent *in);
unsigned phase_enter(struct taps *t);
void phase_leave(struct taps *t, unsigned phase);
/* Returns an upper bound of the bytes that the key takes in a payload. */
size_t intent_key_len(struct str key);
/* Most bytes of the payload of one intent. Further keys go into another intent. */
enum { INTENT_PAYLOAD_MAX = TASK_PAYLOAD_MAX / 2 };

/* Postpones the tasks of all open intents. */
void intents_postpone(struct taps *t);
/* Announces the intents in taps.astray, where leave_intent() has put them (E4). */
int intents_announce_astray(struct taps *t, struct err *err) MUST_CHECK;
/* Like intents_announce_astray(), but for the stop of weir: logs and frees the intents that cannot
 * be announced. */
void intents_forget_astray(struct taps *t);

/* --- tap_marks.c --- */

/* Loads the marks that earlier starts left. A mark is a durable note that a bucket may have intents
 * in the journal. A bucket whose mark was made before the last start of the machine becomes
 * suspect, which means that it must be copied again. `kept` false: the journal was lost, so every
 * marked bucket becomes suspect. */
int marks_load(struct taps *t, bool kept, struct err *err) MUST_CHECK;
void marks_release(struct taps *t);
/* Holds the bucket's mark. The function is called before an entry of the bucket is written to the
 * journal. When it returns, the mark is on disk; the mark stays until marks_drop(). */
int marks_hold(struct taps *t, struct str storage, struct str bucket, struct mark **out,
               struct err *err) MUST_CHECK;
void marks_drop(struct taps *t, struct mark *m);
/* Does the keeper's regular work: begins the copies of suspect buckets again, and removes the marks
 * of idle buckets. */
void marks_keep(struct taps *t);
/* Removes the marks of buckets that had no intent for `idle_ns`. ERR_BUSY: some of these marks are
 * held. */
int marks_clear_idle(struct taps *t, uint64_t idle_ns, struct err *err) MUST_CHECK;
/* Removes the marks of buckets that have a switch, because intents of such buckets are tasks.
 * ERR_BUSY: some of these marks are held. */
int marks_clear_switched(struct taps *t, struct err *err) MUST_CHECK;

/* --- tap_names.c --- */

/* Returns 0 if the storage's name belongs to its folder. ERR_NOT_FOUND: no folder has claimed the
 * name. ERR_CONFLICT: another folder has it. */
int tap_name_check(struct tap *tap, struct err *err) MUST_CHECK;
/* Like tap_name_check(), but claims a name that no folder has. */
int tap_name_take(struct tap *tap, struct err *err) MUST_CHECK;
/* Returns whether another folder had the storage's name when the store was last asked. */
static inline bool tap_name_lost(const struct tap *tap)
{
    return atomic_load(&tap->name) == NAME_OTHERS;
}
/* Does the keeper's regular work: asks the store again which folders have the storage names. */
void names_keep(struct taps *t);

/* --- tap_look.c --- */

/* Calls `fn` for every intent that is in the queue from the beginning of the call to its end. An
 * intent that changes its state meanwhile may be seen twice. `fn` returns false to stop. */
typedef bool intent_fn(void *ctx, const struct task_info *t, const struct intent *in);
int intents_each(struct queue *q, intent_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* --- tap_shared.c --- */

/* Announces an intent for this request, which changes one object. Other requests that begin at the
 * same time share the intent. */
int shared_begin(struct taps *t, const struct intended *i, struct capture *out,
                 struct err *err) MUST_CHECK;
/* Ends a request whose intent is shared or is in the journal, by handing the request to the
 * recorder. The request counts in its phase until the recorder is done with it. */
void shared_end(struct taps *t, const struct capture *c, enum outcome outcome);

/* --- tap_note.c --- */

/* Opens the journal. *kept is set to whether the journal was made since the last start of the
 * machine, so that no entry was lost. */
void notes_open(struct taps *t, bool *kept);
/* Hands the entries that the last process left to the recorder. Called after marks_load(). */
int notes_take_left(struct taps *t, struct err *err) MUST_CHECK;
/* Writes an intent of one object to the journal. Returns false when the request needs an intent of
 * another kind. */
bool note_begin(struct taps *t, const struct intended *i, struct capture *out);
/* Makes a task for the journal's entry. The task is due at once, and a switch that waits for
 * intents sees the task in the queue (S4). */
int note_leave(struct taps *t, const struct ended *n, struct err *err) MUST_CHECK;
/* Removes the entry from the journal if `safe` is true: the change is recorded, or has a task, or
 * did not happen. Otherwise the entry stays for the next start. */
void note_end(struct taps *t, const struct ended *n, bool safe);

/* --- tap_recorder.c --- */

/* Hands `e` to the recorder, which owns it from now on. `answers` true: the client gets its answer
 * after this call, so during a switch the call waits, for some seconds at most, until the change is
 * recorded. */
void recorder_take(struct taps *t, struct ended *e, bool answers);
int recorder_start(struct taps *t, struct err *err) MUST_CHECK;
void recorder_stop(struct taps *t); /* the requests that were handed over are recorded first */
/* Waits until the recorder has tried to record everything that was handed over before the call. */
int recorder_wait(struct taps *t, uint64_t deadline_ns, struct err *err) MUST_CHECK;

#endif
