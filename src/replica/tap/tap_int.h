/* What the files of the tap share. */
#ifndef REPLICA_TAP_TAP_INT_H
#define REPLICA_TAP_TAP_INT_H

#include "base/hash.h"
#include "base/ids.h"
#include "base/list.h"
#include "base/map.h"
#include "os/thread.h"
#include "replica/tap/tap.h"
#include "replica/tap/tap_journal.h"
#include "route/route.h"

enum {
    FILTER_BITS = 64 * 1024,
    SWITCH_BITS = 1024,
    TAP_PER_CHANGE = 2,                           /* changes that one row makes, at most (V5) */
    TAP_PER_BUCKET = 3,                           /* of a request to a bucket */
    TAP_BATCH = QUEUE_BATCH_MAX / TAP_PER_CHANGE, /* rows recorded at once */
};

/* Which buckets and users of which storages have replications, by a hash: a bit that is not set
 * says surely not. Words change one at a time and a bit that stays is never away, so nobody waits
 * and nothing is freed. */
struct filter {
    _Atomic(bool) any; /* false: no bit is set */
    _Atomic(uint64_t) words[FILTER_BITS / 64];
};

/* Whose the name of a local storage is, as it was last heard. */
enum name_state { NAME_UNKNOWN, NAME_FREE, NAME_OURS, NAME_OTHERS };

/* One local storage. */
struct tap {
    struct taps *taps;
    struct storage *storage;
    struct change_tap hooks;
    struct thread thread;
    struct mutex lock; /* class "replica.tap" */
    struct cond wake, moved;
    _Atomic(uint64_t) told;  /* the highest number that was committed */
    _Atomic(bool) asleep;    /* the thread waits for `wake` */
    _Atomic(bool) ready;     /* the last attempt to record succeeded */
    _Atomic(int) name;       /* enum name_state */
    _Atomic(bool) caught_up; /* rows of before the start have been recorded */
    uint64_t goal;           /* of the keeper alone, as what follows: see keep_epoch() */
    uint64_t settling;       /* all that was told of by `settling_ms`: see keep_settled() */
    size_t batch;            /* of the thread alone: rows that it records at once */
    bool begun;              /* also, as what follows: `recorded` is where the last process ended */
    size_t undropped;        /* rows that are recorded and still there, if many */
    uint64_t recorded;       /* under the lock, as what follows */
    size_t waiters;          /* of taps_flush() */
    bool stop;
};

/* One announced change, or some keys of one (struct intended is the whole). */
struct intent {
    struct list node;
    char id[ID_HEX_LEN + 1];
    struct arena a;
    struct intended what; /* strings in the arena; storage is not set */
    struct str storage;
    struct intent *next; /* of the same capture */
    /* Shared by requests that began at once: each has one of the keys. Under the lock: */
    bool shared;
    bool left;      /* its task stays, since an outcome is not known */
    size_t members; /* that have not been recorded */
};

/* A request that has ended, or whose intent is an entry of the journal. */
struct ended {
    struct list node;
    struct intent *in; /* NULL: of the journal, and then: */
    int slot;
    struct mark *mark;         /* that is held */
    bool left;                 /* there is a task for it */
    struct journal_entry what; /* strings of the intent, or of the entry */
    unsigned phase;
    enum outcome outcome;
    bool last; /* all that share the intent are recorded with it */
};

struct taps {
    struct taps_options o;
    struct change_capture capture;
    struct filter filter;
    _Atomic(bool) switching; /* a switch without downtime is at work, or announced, somewhere */
    _Atomic(uint64_t) switch_words[SWITCH_BITS / 64]; /* of which buckets, by a hash of the name */
    _Atomic(int64_t) held;                            /* taps_epoch() */
    _Atomic(unsigned) phase; /* writes to remote storages that are under way, by the phase in */
    _Atomic(uint64_t) under_way[2]; /* which they began: see keep_epoch() */
    _Atomic(uint64_t) count_recorded, count_intents;
    _Atomic(size_t) tap_count; /* taps[] only grows */
    struct tap *taps[ROUTES_STORAGES_MAX];
    struct mutex lock; /* class "replica.intents" */
    struct cond wake;
    struct list open;   /* struct intent, that the keeper pushes back */
    struct list astray; /* struct intent, that is yet to be announced (E4) */
    size_t astray_count;
    struct list joining;     /* struct joining: requests whose intents are to be announced */
    bool announcing;         /* some of them, by one of them; or the keeper has the role */
    struct cond announced;   /* some were */
    struct map marks;        /* struct mark, changed by who has that role; tap_marks.c */
    struct journal *journal; /* NULL: none */
    _Atomic(size_t) noted;   /* its entries of requests of this process */
    _Atomic(bool) stuck;     /* what ended cannot be recorded at present */
    struct list over;        /* struct ended: to be recorded, in order */
    uint64_t over_count, over_recorded; /* that there were, and that the recorder is done with */
    size_t hurry;                       /* who waits for them */
    bool recorder_asleep, recorder_stop;
    struct cond over_wake, over_moved;
    struct thread recorder;
    struct list held_locks; /* struct shared_lock; tap_lock.c */
    struct cond lock_moved;
    /* Rounds of the keeper that the lease asked for (E3), that have ended, and how the last of them
     * ended. */
    uint64_t rounds_asked, rounds_done;
    int round_code;
    struct err round_err;
    struct cond round_ended;
    bool stop;
    struct thread keeper;
    /* of the keeper alone: */
    int64_t applied, pending; /* epochs of the filter, and that the phase waits for; -1: none */
    bool ended;               /* of `pending`: what was under way has ended */
    int64_t settling_ms;      /* the store's; 0: none yet */
    uint64_t postponed_ns, settled_ns, named_ns;
};

/* --- tap.c --- */

bool filter_has(const struct filter *f, struct str storage, struct str bucket);
bool filter_has_user(const struct filter *f, struct str storage, struct str user);
int taps_record(struct taps *t, const struct record *rec, struct err *err) MUST_CHECK;
/* A local storage's; NULL: it has none. */
struct tap *taps_find(struct taps *t, const struct storage *s);

/* --- tap_change.c --- */

/* A place for the changes of one record. */
struct changes_out {
    struct arena *a;
    struct change *items; /* room for QUEUE_BATCH_MAX */
    size_t count;
};
int changes_out_init(struct changes_out *out, struct arena *a, struct err *err) MUST_CHECK;
/* Those of one key, or of the bucket when it is empty. `row` as in struct change. */
void changes_add(struct changes_out *out, unsigned changes, struct str storage, struct str bucket,
                 struct str key, uint64_t row);
/* Makes the replications of a bucket that is new, by its owner's policies; those that are there
 * stay. */
int changes_new_bucket(struct taps *t, struct arena *a, struct str storage, struct str bucket,
                       struct str user, struct err *err) MUST_CHECK;

/* --- tap_drain.c --- */

int tap_start(struct tap **out, struct taps *t, struct storage *s, struct err *err) MUST_CHECK;
void tap_stop(struct tap *tap);
int tap_wait(struct tap *tap, uint64_t number, uint64_t deadline_ns, struct err *err) MUST_CHECK;

/* --- tap_lock.c --- */

/* S10: the locks of the keys there, shared with other changes of this process. ERR_BUSY: a worker
 * of another one has one of them for too long. */
int tap_locks_take(struct taps *t, const struct intended *i, void **out,
                   struct err *err) MUST_CHECK;
void tap_locks_release(struct taps *t, void *locks); /* NULL is fine */

/* --- tap_intent.c --- */

int intent_begin(void *ctx, const struct intended *i, struct capture *out, struct err *err);
int intent_check(void *ctx, const struct capture *c, struct err *err);
int intent_end(void *ctx, struct capture *c, enum outcome outcome, struct err *err);
/* Its task runs `delay_s` from now, unless it is pushed back. */
int intent_announce(struct taps *t, struct intent *in, int64_t delay_s, struct err *err) MUST_CHECK;
/* `keys` of the same storage, bucket and changes as `like`. Owned by the caller. */
struct intent *intent_new(const struct intended *like, const struct str *keys, size_t count);
void intent_free(struct intent *in);
void intent_keep(struct taps *t, struct intent *in); /* among the open ones */
void intent_let_go(struct taps *t, struct intent *in);
unsigned phase_enter(struct taps *t);
void phase_leave(struct taps *t, unsigned phase);
/* Bytes that a key takes in a payload, at most. */
size_t intent_key_len(struct str key);
enum { INTENT_PAYLOAD_MAX = TASK_PAYLOAD_MAX / 2 }; /* more keys are another intent */

/* Pushes all open ones back. */
void intents_postpone(struct taps *t);
/* Those that were left by leave_intent(). */
int intents_announce_astray(struct taps *t, struct err *err) MUST_CHECK;
void intents_forget_astray(struct taps *t); /* at the end; what cannot be announced is logged */

/* --- tap_marks.c --- */

/* Those of the starts before; a bucket of another start of the machine is to be copied anew, and so
 * is every one unless the journal was `kept`. */
int marks_load(struct taps *t, bool kept, struct err *err) MUST_CHECK;
void marks_release(struct taps *t);
/* Before an entry of the bucket is in the journal: the mark is on disk, and stays until it is
 * dropped. */
int marks_hold(struct taps *t, struct str storage, struct str bucket, struct mark **out,
               struct err *err) MUST_CHECK;
void marks_drop(struct taps *t, struct mark *m);
/* For the keeper: copies begin anew, and marks of buckets that are quiet go. */
void marks_keep(struct taps *t);
/* Those of buckets without an intent for so long. ERR_BUSY: one is held still. */
int marks_clear_idle(struct taps *t, uint64_t idle_ns, struct err *err) MUST_CHECK;
/* Those of buckets that have a switch, whose intents are tasks. ERR_BUSY: one is held still. */
int marks_clear_switched(struct taps *t, struct err *err) MUST_CHECK;

/* Whether a replication of the bucket from there has a switch that is not done. */
bool marks_has_switch(const struct replication_view *view, struct str storage, struct str bucket);

/* --- tap_names.c --- */

/* Whether the name is this folder's. ERR_NOT_FOUND: nobody's. ERR_CONFLICT: another's. */
int tap_name_check(struct tap *tap, struct err *err) MUST_CHECK;
/* The same, but takes one that is nobody's. */
int tap_name_take(struct tap *tap, struct err *err) MUST_CHECK;
bool tap_name_lost(const struct tap *tap); /* it was another's when it was last looked at */
/* For the keeper. */
void names_keep(struct taps *t);

/* --- tap_look.c --- */

/* Every intent that is there all the time; one that moves meanwhile may be seen twice. `fn` answers
 * false for no more. */
int intents_each(struct queue *q, bool (*fn)(void *ctx, const struct task_info *t), void *ctx,
                 struct err *err) MUST_CHECK;

/* --- tap_shared.c --- */

/* An intent that requests share which begin at once, announced. Of one object. */
int shared_begin(struct taps *t, const struct intended *i, struct capture *out,
                 struct err *err) MUST_CHECK;
/* Also of one in the journal. Leaves the request's phase once it is recorded. */
void shared_end(struct taps *t, const struct capture *c, enum outcome outcome);

/* --- tap_note.c --- */

/* *kept: nothing of what the last process left there can be lost. */
void notes_open(struct taps *t, bool *kept);
/* That is handed to the recorder; marks are loaded. */
int notes_take_left(struct taps *t, struct err *err) MUST_CHECK;
/* An intent of one object in the journal. False: it must be announced otherwise. */
bool note_begin(struct taps *t, const struct intended *i, struct capture *out);
/* A task of it that stays, and runs at once: who waits for intents sees it (S4). */
int note_leave(struct taps *t, const struct ended *n, struct err *err) MUST_CHECK;
/* `safe`: recorded, or a task is there, or nothing happened; else the entry stays for the next
 * start. */
void note_end(struct taps *t, const struct ended *n, bool safe);

/* --- tap_recorder.c --- */

/* Moved. `answers`: a client is answered next, who waits for it during a switch. */
void recorder_take(struct taps *t, struct ended *e, bool answers);
int recorder_start(struct taps *t, struct err *err) MUST_CHECK;
void recorder_stop(struct taps *t); /* all that ended is recorded */
/* Waits until what has ended by now was tried to be recorded. */
int recorder_wait(struct taps *t, uint64_t deadline_ns, struct err *err) MUST_CHECK;

#endif
