/* Declarations that the files of the tasks share. The codes C1, C2, P3, S10, V2 and V4 are those of
 * docs/replication.md. */
#ifndef REPLICA_TASKS_TASKS_INT_H
#define REPLICA_TASKS_TASKS_INT_H

#include "coord/check.h"
#include "coord/limit.h"
#include "os/thread.h"
#include "coord/payload.h"
#include "replica/tasks/tasks.h"

enum {
    PLACES_MAX = 64,
    PLACE_LIFE_MS = 10000,
    /* Seconds until a task runs again that was put back for one of these reasons: */
    PAUSED_S = 30,   /* its replication is paused */
    ELSEWHERE_S = 2, /* this worker does not have its storage */
    BUSY_S = 2,      /* its lock is taken, or its object changes */
    LISTING_S = 5,   /* it is a listing, and too many of its copies are open */
};

/* A bucket that a task has open. */
struct place_open {
    struct bucket *bucket; /* owned: a reference */
    bool versioned;        /* the bucket keeps versions now */
    bool foreign;          /* the storage says that the bucket belongs to another user */
};

/* A bucket of a remote storage that is kept open for a while, because opening it costs requests. */
struct place_kept {
    struct storage *storage;
    char *name; /* user's id, NUL, bucket's name */
    size_t len;
    struct place_open open;
    uint64_t until_ms;
};

struct tasks {
    struct tasks_options o;
    struct mutex lock; /* class "places"; guards the members below */
    struct place_kept kept[PLACES_MAX];
    size_t next; /* index in `kept` of the entry that is replaced next */
};

/* One run of a task's handler. */
struct job {
    struct tasks *t;
    struct task_run *run;
    struct task_payload p;
    struct replication_status status;
    struct storage *from, *to;
    struct place_open source, destination;
    struct lock *lock;
    bool moving; /* clients may write to the destination, during a switch without downtime */
    struct buf memory_key;
    struct copy_options copy;
};

/* Reads the payload and the replication's status, and finds the storages. Then waits until the
 * limits allow `requests` requests to each side, times the number of objects. ERR_END: there is
 * nothing to do, and the handler returns 0. job_end() must be called afterwards in any case. */
int job_begin(struct job *j, struct task_run *run, enum task_payload_kind kind, unsigned requests,
              struct err *err) MUST_CHECK;
/* Releases everything that the job holds, and turns `code` into the result for the queue. */
int job_end(struct job *j, int code, struct err *err);

int job_find(struct job *j, struct str name, struct storage **out, struct err *err) MUST_CHECK;
/* Waits until the storage's limit allows `wanted` requests or bytes. ERR_AGAIN: requests would wait
 * too long, and the task is put back until then. */
int job_take(struct job *j, struct str storage, enum limit_kind kind, uint64_t wanted,
             struct err *err) MUST_CHECK;
struct str job_to_bucket(const struct job *j); /* name of the destination's bucket */
/* These two take the lock of the object or of the bucket at the destination (C1). ERR_BUSY: another
 * worker has the lock. */
int job_lock_object(struct job *j, struct err *err) MUST_CHECK;
int job_lock_bucket(struct job *j, struct err *err) MUST_CHECK;
/* Opens both buckets, or neither. A bucket that the destination does not have is made.
 * ERR_NO_BUCKET: the source does not have the bucket. `anew` true: buckets that were kept open are
 * not used. */
int job_open(struct job *j, bool anew, struct err *err) MUST_CHECK;
/* Returns 0 when every gateway knows the replication (P3). Waits for a moment. ERR_AGAIN: some
 * gateway does not know it yet, and the task is put back. */
int job_need_known(struct job *j, struct err *err) MUST_CHECK;
/* Called by copies and other long work. Checks that the task has not ended and that its lock is
 * held, and waits until the limits allow `bytes`. With 0 bytes, before something is written, it
 * also checks that no client has written first (S10). ERR_CONFLICT: a client has written first. */
int job_watch(void *ctx, uint64_t bytes, struct err *err) MUST_CHECK;
struct copy job_copy(struct job *j);
struct copy_bucket job_copy_bucket(struct job *j);

/* Some things of one object or bucket: the object or bucket itself, its tags, its ACL (enum
 * thing_kind). The lowest of `kinds` is the main thing; the other things are copied with it. */
struct job_things {
    unsigned kinds;  /* a set of enum thing_kind */
    unsigned needed; /* the subset of `kinds` that the destination lacks (V4) */
    /* The source's numbers in the version vectors before the work began, in the order of the kinds;
     * 0: no number is known. */
    int64_t numbers[VERSION_THINGS_MAX];
};
/* Returns whether the destination lacks the main thing. */
bool job_lacks(const struct job_things *t);
int job_needed(struct job *j, struct job_things *t, struct err *err) MUST_CHECK;
/* Like job_needed(), but for several objects. The vectors of tags and ACL are read only if the
 * object's vector is known, because other changes have tasks of their own. */
int job_needed_many(struct job *j, const struct task_payload_object *objects, size_t count,
                    struct job_things *out, struct err *err) MUST_CHECK;
/* Confirms, for all things at once, that the destination has them (V2, C2). `gone` true: the source
 * does not have the object. */
int job_confirm(struct job *j, const struct job_things *t, bool gone, struct err *err) MUST_CHECK;

/* Copies the object with its tags and its ACL, if the destination needs it, and confirms the copy.
 * The caller holds the object's lock. `absent`: a listing of the destination did not have the key
 * (struct copy). */
int job_bring_object(struct job *j, const struct job_things *things, bool absent,
                     struct err *err) MUST_CHECK;

/* --- places.c --- */

/* Opens the bucket. `anew` false: the result may be a bucket that was kept open. */
int place_open(struct place_open *out, struct tasks *t, struct storage *s, struct str user,
               struct str bucket, bool anew, struct err *err) MUST_CHECK;
void place_release(struct place_open *p);
void places_release(struct tasks *t);

/* --- tasks_upload.c --- */

/* Appends the key `w:copy:<storage>:<bucket>:<object>`. Its value names the upload that a copy of
 * the object uses. */
void upload_memory_key(struct buf *out, struct str storage, struct str bucket, struct str object);
struct str upload_of_memory(struct str value);
/* Schedules the task that aborts the upload after `memory_s` seconds, when no copy remembers the
 * upload any more. Called before the upload is remembered. */
int upload_watch(const struct job *j, struct str upload, int64_t memory_s,
                 struct err *err) MUST_CHECK;
/* To be called when the upload has ended. */
void upload_unwatch(const struct job *j, struct str upload);

/* --- the handlers --- */

task_fn task_bucket_create, task_bucket_delete, task_bucket_tags, task_bucket_acl;
task_fn task_object_sync, task_object_tags, task_object_acl, task_object_copy;
task_fn task_objects_copy, task_objects_sync, task_list_objects, task_list_versions;
task_fn task_check, task_check_fix, task_check_fix_object;
task_fn task_upload_abort;

/* Makes the job's object at the destination equal to the source's object, under the object's lock,
 * whatever the version vectors say. `contents` true: also replaces an object of which only the
 * bytes differ. */
int object_fix(struct job *j, bool contents, struct err *err) MUST_CHECK;

/* Makes a task, in the arena, that copies one object. */
struct task task_of_copy(struct arena *a, const struct replication_id *id,
                         const struct task_payload_object *object, struct str queue);
/* Makes a task, in the arena, that lists the objects or the versions of a prefix. */
struct task task_of_listing(struct arena *a, const struct replication_id *id, struct str prefix,
                            bool versions);

#endif
