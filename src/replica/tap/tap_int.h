/* Declarations that the files of the tap share. */
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
    TAP_PER_CHANGE = 2, /* most changes that one row makes (V5) */
    TAP_PER_BUCKET = 3, /* most changes that a request to a bucket makes */
    TAP_BATCH = QUEUE_BATCH_MAX / TAP_PER_CHANGE, /* rows recorded at once */
};

/* Which buckets and users have replications from which storages. Each has a bit, chosen by a hash;
 * if the bit is not set, there surely is no replication. An update never clears a bit that stays
 * set, not even for a moment, so readers need no lock. */
struct filter {
    _Atomic(bool) any; /* false: no bit is set */
    _Atomic(uint64_t) words[FILTER_BITS / 64];
};

/* Which folder had the name of a local storage when the store was last asked. */
enum name_state { NAME_UNKNOWN, NAME_FREE, NAME_OURS, NAME_OTHERS };

/* One local storage. */
struct tap {
    struct taps *taps;
    struct storage *storage;
    struct change_tap hooks;
    struct thread thread;
    struct mutex lock; /* class "replica.tap" */
    struct cond wake, moved;
    _Atomic(uint64_t) told;  /* highest number of a committed row */
    _Atomic(bool) asleep;    /* the thread waits for `wake` */
    _Atomic(bool) ready;     /* the last attempt to record succeeded */
    _Atomic(int) name;       /* enum name_state */
    _Atomic(bool) caught_up; /* the rows that the start found have been recorded */
    /* Only the keeper uses these two: */
    uint64_t goal;     /* row that must be recorded before an epoch is reached: keep_epoch() */
    uint64_t settling; /* highest row at the time `settling_ms`: keep_settled() */
    /* Only the thread uses these three: */
    size_t batch;     /* most rows that it records at once */
    bool begun;       /* `recorded` was read from the store */
    size_t undropped; /* rows that are recorded and not deleted yet; 0 if there are few */
    /* Under the lock: */
    uint64_t recorded; /* number of the last row that was recorded */
    size_t waiters;    /* calls of taps_flush() that wait */
    bool stop;
};

/* An intent that is a task. A request of many keys has several. */
struct intent {
    struct list node;
    char id[ID_HEX_LEN + 1];
    struct arena a;
    struct intended what; /* strings in the arena; its `storage` is not set */
    struct str storage;   /* name of the storage */
    struct intent *next;  /* the next intent of the same request; NULL: none */
    bool again;           /* its task is the second one, which looks once more later (R4); set by
                             intent_read() */
    bool shared;          /* several requests share it: each has one of the keys */
    /* Only for a shared intent, under the lock: */
    bool left;      /* its task stays, because one outcome is not known */
    size_t members; /* requests that are not recorded yet */
};

/* A request that is handed to the recorder when it has ended: its intent is shared, or is an entry
 * of the journal. */
struct ended {
    struct list node;
    struct intent *in; /* shared; NULL: the intent is in the journal */
    /* Only if the intent is in the journal: */
    int slot;          /* the entry's slot */
    struct mark *mark; /* the bucket's mark; held until the entry is removed */
    bool left;         /* a task was made for the request, as it could not be recorded */

    struct journal_entry what; /* strings are borrowed from the intent, or from the entry */
    unsigned phase; /* the phase in which the request began; left when the request is recorded */
    enum outcome outcome;
    bool last; /* the last member of a shared intent: its task ends with this record */
};

struct taps {
    struct taps_options o;
    struct change_capture capture;
    struct filter filter;
    _Atomic(bool) switching; /* some bucket is in a switch without downtime, or one is announced */
    _Atomic(uint64_t) switch_words[SWITCH_BITS / 64]; /* which buckets, by a hash of the name */
    _Atomic(int64_t) held;                            /* taps_epoch() */
    _Atomic(unsigned) phase;                          /* the present phase: see keep_epoch() */
    /* Writes to remote storages that are under way, by the phase in which they began. */
    _Atomic(uint64_t) under_way[2];
    _Atomic(uint64_t) count_recorded, count_intents;
    _Atomic(size_t) tap_count; /* taps[] only grows */
    struct tap *taps[ROUTES_STORAGES_MAX];
    struct mutex lock;  /* class "replica.intents" */
    struct list open;   /* struct intent: the keeper postpones them */
    struct list astray; /* struct intent: yet to be announced (E4) */
    size_t astray_count;
    struct list joining;     /* struct joining: requests that wait for a shared intent */
    bool announcing;         /* a thread has the role of the announcer: tap_shared.c, tap_marks.c */
    struct cond announced;   /* the role is free again, or some requests were announced */
    struct map marks;        /* struct mark; only the announcer adds and removes: tap_marks.c */
    struct journal *journal; /* NULL: there is none */
    _Atomic(size_t) noted;   /* entries of the journal that requests of this process made */
    _Atomic(bool) stuck;     /* the store takes no records at present */
    struct list over;        /* struct ended: to be recorded, in order */
    uint64_t over_count, over_recorded; /* requests that were handed over, and that are done */
    size_t hurry;                       /* callers that wait for the recorder */
    bool recorder_asleep, recorder_stop;
    struct cond over_wake, over_moved;
    struct thread recorder;
    struct list held_locks; /* struct shared_lock; tap_lock.c */
    struct cond lock_moved;
    /* Rounds of the keeper that the lease asked for (E3), and rounds that have ended. */
    uint64_t rounds_asked, rounds_done;
    int round_code; /* result of the last round */
    struct err round_err;
    struct cond round_ended;
    struct loop keeper;
    /* Only the keeper uses these: */
    bool marks_began; /* marks_keep() ran once */
    int64_t applied;  /* epoch of the filter; -1: none */
    int64_t pending;  /* epoch that is reached when the writes of the last phase ended; -1: none */
    bool ended;       /* the writes that `pending` waits for have ended */
    int64_t settling_ms; /* when the taps' `settling` was read, by the store's clock; 0: not yet */
    uint64_t postponed_ns, settled_ns, named_ns;
};

/* --- tap.c --- */

bool filter_has(const struct filter *f, struct str storage, struct str bucket);
bool filter_has_user(const struct filter *f, struct str storage, struct str user);
int taps_record(struct taps *t, const struct record *rec, struct err *err) MUST_CHECK;
/* Returns the tap of a local storage; NULL: it has none. */
struct tap *taps_find(struct taps *t, const struct storage *s);

/* --- tap_change.c --- */

/* Collects the changes that one record takes. */
struct changes_out {
    struct arena *a;
    struct change *items; /* room for QUEUE_BATCH_MAX */
    size_t count;
};
int changes_out_init(struct changes_out *out, struct arena *a, struct err *err) MUST_CHECK;
/* Adds the changes of one key, or of the bucket when the key is empty. `changes` is a set of enum
 * thing_kind, `row` is as in struct change. */
void changes_add(struct changes_out *out, unsigned changes, struct str storage, struct str bucket,
                 struct str key, uint64_t row);
/* Makes the replications of a new bucket, by the user's policies. Replications that exist stay. */
int changes_new_bucket(struct taps *t, struct arena *a, struct str storage, struct str bucket,
                       struct str user, struct err *err) MUST_CHECK;

/* --- tap_drain.c --- */

int tap_start(struct tap **out, struct taps *t, struct storage *s, struct err *err) MUST_CHECK;
void tap_stop(struct tap *tap);
int tap_wait(struct tap *tap, uint64_t number, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- tap_lock.c --- */

/* Takes the locks of the keys at the storage (S10), and shares them with other changes of this
 * process. ERR_BUSY: a worker of another process holds one of them for too long. */
int tap_locks_take(struct taps *t, const struct intended *i, void **out,
                   struct err *err) MUST_CHECK;
void tap_locks_release(struct taps *t, void *locks); /* NULL is fine */

/* --- tap_intent.c --- */

/* The three calls of struct change_capture; `ctx` is the taps. */
int intent_begin(void *ctx, const struct intended *i, struct capture *out, struct err *err);
int intent_check(void *ctx, const struct capture *c, struct err *err);
int intent_end(void *ctx, struct capture *c, enum outcome outcome, struct err *err);
/* Queues the intent's task, which runs `delay_s` from now unless it is postponed. */
int intent_announce(struct taps *t, struct intent *in, int64_t delay_s, struct err *err) MUST_CHECK;
/* Makes an intent of `keys`, with the storage, bucket and changes of `like`. The caller owns it. */
struct intent *intent_new(const struct intended *like, const struct str *keys, size_t count);
void intent_free(struct intent *in);
/* Reads the payload of an intent's task; strings are in in->a, which the caller has initialised.
 * ERR_INVALID: it is no such payload. */
int intent_read(struct intent *in, struct str payload, struct err *err) MUST_CHECK;
/* From now on the keeper postpones the intent. */
void intent_keep(struct taps *t, struct intent *in);
void intent_let_go(struct taps *t, struct intent *in);
unsigned phase_enter(struct taps *t);
void phase_leave(struct taps *t, unsigned phase);
/* Returns the most bytes that the key takes in a payload. */
size_t intent_key_len(struct str key);
/* The most bytes of one intent; more keys go into another intent. */
enum { INTENT_PAYLOAD_MAX = TASK_PAYLOAD_MAX / 2 };

/* Postpones all open intents. */
void intents_postpone(struct taps *t);
/* Announces the intents that leave_intent() put into `astray`. */
int intents_announce_astray(struct taps *t, struct err *err) MUST_CHECK;
/* As intents_announce_astray(), when weir stops: logs and frees those that cannot be announced. */
void intents_forget_astray(struct taps *t);

/* --- tap_marks.c --- */

/* Loads the marks that earlier starts left. A mark is a durable note that a bucket may have intents
 * in the journal. A bucket whose mark was made before the last start of the machine becomes
 * suspect: it must be copied anew. Unless the journal was `kept`, every marked bucket becomes
 * suspect. */
int marks_load(struct taps *t, bool kept, struct err *err) MUST_CHECK;
void marks_release(struct taps *t);
/* Holds the bucket's mark. Call it before an entry of the bucket is written to the journal. When it
 * returns, the mark is on disk, and it stays until marks_drop(). */
int marks_hold(struct taps *t, struct str storage, struct str bucket, struct mark **out,
               struct err *err) MUST_CHECK;
void marks_drop(struct taps *t, struct mark *m);
/* The keeper's round: begins the copies of suspect buckets anew, and removes the marks of buckets
 * that are idle. */
void marks_keep(struct taps *t);
/* Removes the marks of buckets that had no intent for `idle_ns`. ERR_BUSY: one of them is held. */
int marks_clear_idle(struct taps *t, uint64_t idle_ns, struct err *err) MUST_CHECK;
/* Removes the marks of buckets that have a switch, as their intents are tasks. ERR_BUSY: one of
 * them is held. */
int marks_clear_switched(struct taps *t, struct err *err) MUST_CHECK;

/* Whether a replication of the bucket from that storage has a switch that is not done. */
bool marks_has_switch(const struct replication_view *view, struct str storage, struct str bucket);

/* --- tap_names.c --- */

/* Returns 0 if the storage's name belongs to its folder. ERR_NOT_FOUND: nobody has claimed the
 * name. ERR_CONFLICT: another folder has it. */
int tap_name_check(struct tap *tap, struct err *err) MUST_CHECK;
/* As tap_name_check(), but claims a name that nobody has. */
int tap_name_take(struct tap *tap, struct err *err) MUST_CHECK;
/* Whether another folder had the name when the store was last asked. */
bool tap_name_lost(const struct tap *tap);
/* The keeper's round: asks the store again which folders have the names. */
void names_keep(struct taps *t);

/* --- tap_look.c --- */

/* Calls `fn` for every intent that is in the queue from the beginning of the call to its end. An
 * intent that changes its state meanwhile may be seen twice. `fn` returns false to stop. */
typedef bool intent_fn(void *ctx, const struct task_info *t, const struct intent *in);
int intents_each(struct queue *q, intent_fn *fn, void *ctx, struct err *err) MUST_CHECK;

/* --- tap_shared.c --- */

/* Announces an intent that this request, which changes one object, shares with other requests that
 * begin now. */
int shared_begin(struct taps *t, const struct intended *i, struct capture *out,
                 struct err *err) MUST_CHECK;
/* Hands the request to the recorder, which leaves the request's phase once it is recorded. Requests
 * whose intent is in the journal end here too. */
void shared_end(struct taps *t, const struct capture *c, enum outcome outcome);

/* --- tap_note.c --- */

/* Opens the journal. *kept: the journal was made since the last start of the machine, so no entry
 * was lost. */
void notes_open(struct taps *t, bool *kept);
/* Hands the entries that the last process left to the recorder. Call it after marks_load(). */
int notes_take_left(struct taps *t, struct err *err) MUST_CHECK;
/* Writes an intent of one object to the journal. False: it needs an intent of another kind. */
bool note_begin(struct taps *t, const struct intended *i, struct capture *out);
/* Makes a task for the journal's entry. The task is due at once, and a switch that waits for
 * intents sees it in the queue (S4). */
int note_leave(struct taps *t, const struct ended *n, struct err *err) MUST_CHECK;
/* Removes the entry if it is `safe` to do so: the change is recorded, or has a task, or nothing
 * happened. Else the entry stays for the next start. */
void note_end(struct taps *t, const struct ended *n, bool safe);

/* --- tap_recorder.c --- */

/* Hands `e` to the recorder, which owns it from now on. `answers`: the client gets its answer next,
 * so during a switch the call waits until the change is recorded. */
void recorder_take(struct taps *t, struct ended *e, bool answers);
int recorder_start(struct taps *t, struct err *err) MUST_CHECK;
void recorder_stop(struct taps *t); /* first records the requests that were handed over */
/* Waits until the recorder has tried to record everything that was handed over before the call. */
int recorder_wait(struct taps *t, uint64_t deadline_ns, struct err *err) MUST_CHECK;

#endif
