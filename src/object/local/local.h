/* A storage in a folder: blobs as files, everything else as rows of the process's database.
 * docs/local-storage.md has the mechanism, its invariants and the crash points.
 *
 * Any thread. The database must outlive the storage. */
#ifndef OBJECT_LOCAL_LOCAL_H
#define OBJECT_LOCAL_LOCAL_H

#include "db/db.h"
#include "object/bucket.h"

enum { LOCAL_FAMILIES = 5 };

/* The family of the row logs that change notes write (struct outbox). */
#define LOCAL_OUTBOX "outbox"
/* The family of the rows of taps (below). */
#define LOCAL_CHANGES "changes"
/* The family of access log records that wait (s3/access_log.h); nothing of a storage's is in it. */
#define LOCAL_ACCESS_LOG "accesslog"

/* The families that db_open must be given; shared by all local storages of the process. */
const struct db_cf_spec *local_cf_specs(void); /* LOCAL_FAMILIES of them */

struct local_options {
    const char *name;
    const char *folder; /* made if absent, mode 0700 */
    struct db *db;
    uint32_t id;            /* in all its rows: unique in the database, never given anew */
    size_t inline_max;      /* bodies up to this are rows; 0: 16 KiB */
    uint64_t reserve_bytes; /* with less free in the folder puts are refused; 0: 256 MiB */
    uint64_t part_min;      /* of all parts but the last; 0: 5 MiB */
    /* One whose folder is not there, or is another's, or cannot be used, is open all the same: its
     * buckets are ERR_OFFLINE until the folder is back, which is looked for every few seconds. */
    bool may_be_missing;
    const struct log *log; /* NULL: silent */
};

/* ERR_CORRUPT: the folder is not the one that the database's rows are about. ERR_IN_USE: a storage
 * is open on it, here or in another process. The storage's close waits for its collector; every
 * bucket and body must be gone. */
int local_open(struct storage **out, const struct local_options *o, struct err *err) MUST_CHECK;

/* The folder's id, in hex: given when it was made, and its own wherever it is moved to. Appended.
 */
void local_identity(struct storage *s, struct buf *out);
const char *local_folder(struct storage *s); /* lives as long as the storage */

/* ERR_IO, with the reason, when its disk failed to write a file and has not been found to work
 * since, which the storage's check does. Never waits. */
int local_trouble(struct storage *s, struct err *err) MUST_CHECK;

/* Its folder was not found yet; of another kind of storage: false. */
bool local_is_missing(const struct storage *s);
/* Looks for it no more. */
void local_give_up(struct storage *s);

/* Returns when all that was garbage at the call is gone, but for what readers still hold. */
void local_collect(struct storage *s);

/* --- backup --- */

/* Between these no file that is there goes away, so a copy of the files made under a hold is whole
 * for every state that the database had since it began. local_collect() waits for the end of it. */
void local_hold(struct storage *s);
void local_unhold(struct storage *s);
/* All files into the new folder `to`, durable: by hard links, or copied where those cannot be. What
 * is written meanwhile may come along; the copy's first start removes what its rows do not name. */
int local_copy_files(struct storage *s, const char *to, struct err *err) MUST_CHECK;

/* --- the tap: a log of all changes, kept in their commits --- */

/* One change, whoever made it. */
struct tapped {
    unsigned changes;         /* a set of enum thing_kind */
    struct str bucket, owner; /* of the bucket */
    struct str key, version;  /* of an object; no version where they were never kept */
    struct str document;      /* of a bucket, that was put, replaced or removed: its name */
    enum meta_set set;        /* of an object whose bytes stay: what was set beside them */
    uint64_t size;            /* of the object */
    uint64_t number;          /* later changes of the storage have higher ones, over restarts too */
};

struct change_tap {
    /* Inside the commit, on any thread, one at a time: is a row to be kept? `number` and `version`
     * are not yet known. Must not wait. Maybe again when the commit is tried again. */
    bool (*wants)(void *ctx, const struct tapped *t);
    /* Asked before it, there too: may anything be changed now? Else the change fails with this
     * error. NULL: always. */
    int (*may)(void *ctx, struct err *err);
    /* A row with this number is committed; after the commit, on the thread that made the change,
     * before its call returns. Not in order. */
    void (*committed)(void *ctx, uint64_t number);
    void *ctx;
};

/* One at a time, before what is to be captured is written; NULL takes it away, when no call that
 * changes something is under way. Borrowed. Without a tap a change costs one load more; rows of one
 * that was there before stay. */
void local_set_tap(struct storage *s, const struct change_tap *tap);
/* Changes by way of this reference to a bucket are not told: for what replication itself writes,
 * which must not count as a change at the destination. Before other threads have it; of a bucket on
 * another kind of storage: nothing. */
void local_untap(struct bucket *b);
/* The same for making and removing one; on another kind of storage as its own calls. */
int local_create_untapped(struct storage *s, const struct bucket_info *info,
                          struct err *err) MUST_CHECK;
int local_remove_untapped(struct storage *s, struct str user, struct str name,
                          struct err *err) MUST_CHECK;
/* Returns when every change that was asked for before the call, by whatever answer of wants(), is
 * there or has failed. */
int local_tap_settle(struct storage *s, struct err *err) MUST_CHECK;
/* Rows with a number above `after`, in order, at most `limit`. Every one that will ever have a
 * number below the last one's is among them. */
int local_tap_read(struct storage *s, struct arena *a, uint64_t after, size_t limit,
                   struct tapped **out, size_t *count, struct err *err) MUST_CHECK;
/* Forgets these rows; volatile: a crash of the machine may bring them back. */
int local_tap_drop(struct storage *s, const struct tapped *rows, size_t count,
                   struct err *err) MUST_CHECK;
/* All up to this number, at the cost of one durable write however many they are. */
int local_tap_drop_until(struct storage *s, uint64_t last, struct err *err) MUST_CHECK;

struct local_stats {
    uint64_t list_steps; /* rows that listings looked at */
    uint64_t collected;  /* files removed by the collector */
    uint64_t swept;      /* of those, what a crash had left */
};
void local_stats(struct storage *s, struct local_stats *out);

/* --- scrub --- */

enum local_damage {
    LOCAL_DAMAGE_MISSING, /* the file or the row of the bytes is not there */
    LOCAL_DAMAGE_SIZE,
    LOCAL_DAMAGE_CHECKSUM,
    LOCAL_DAMAGE_RECORD, /* the index row cannot be read */
    LOCAL_DAMAGE_STRAY,  /* a file that no row names; `path` alone is set */
    LOCAL_DAMAGE_COUNT,  /* what the bucket holds was counted wrong; `bucket` alone is set */
};

struct local_finding {
    enum local_damage damage;
    struct str bucket, key, version; /* of a part not yet finished: version is empty */
    struct str path;                 /* of the file, empty for a row */
};

struct local_scrub {
    /* Called for each finding. Return an error to stop the scrub with it. */
    int (*finding)(void *ctx, const struct local_finding *f, struct err *err);
    /* After every object, with the place to resume from; may be NULL. Return an error to stop. */
    int (*progress)(void *ctx, struct str cursor, uint64_t objects, uint64_t bytes,
                    struct err *err);
    void *ctx;
    struct str cursor;         /* where an earlier scrub was; empty: from the beginning */
    uint64_t bytes_per_second; /* 0: as fast as it goes */
};

const char *local_damage_text(enum local_damage damage);

/* Reads every body and verifies size and checksum, then looks for files that nothing names. What is
 * written meanwhile may or may not be looked at. A blob that several objects share is named for
 * each of them. Counts of what buckets hold are compared with the index, and put right. */
int local_scrub(struct storage *s, const struct local_scrub *scrub, struct err *err) MUST_CHECK;

#endif
