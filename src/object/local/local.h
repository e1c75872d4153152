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

/* The column families that db_open() must be given. All local storages of the process share them.
 */
const struct db_cf_spec *local_cf_specs(void); /* LOCAL_FAMILIES of them */

struct local_options {
    const char *name;
    const char *folder; /* made if absent, mode 0700 */
    struct db *db;
    uint32_t id;            /* begins the key of each of its rows; unique in the database, and never
                               used again */
    size_t inline_max;      /* bytes; smaller bodies are rows, not files; 0: 16 KiB */
    uint64_t reserve_bytes; /* puts are refused with less free space in the folder; 0: 256 MiB */
    uint64_t part_min;      /* smallest size of all parts but the last; 0: 5 MiB */
    /* The storage opens although its folder is not there, is another storage's, or cannot be used.
     * Its buckets are then ERR_OFFLINE, and every few seconds it looks whether the folder is back.
     */
    bool may_be_missing;
    const struct log *log; /* NULL: silent */
};

/* ERR_CORRUPT: the rows of the database are about another folder. ERR_IN_USE: a storage is open on
 * the folder, here or in another process. Before the storage is closed, every bucket must be
 * released and every body closed. close() waits for the collector. */
int local_open(struct storage **out, const struct local_options *o, struct err *err) MUST_CHECK;

/* Appends the folder's identity in hex. The folder gets it when it is made, and keeps it when it is
 * moved. */
void local_identity(struct storage *s, struct buf *out);
const char *local_folder(struct storage *s); /* lives as long as the storage */

/* ERR_IO, with the reason: the disk failed to write a file, and no check() of the storage has
 * succeeded since. Never waits. */
int local_trouble(struct storage *s, struct err *err) MUST_CHECK;

/* Whether the storage's folder was not found yet. False for other kinds of storage. */
bool local_is_missing(const struct storage *s);
/* The storage no longer looks for its folder. */
void local_give_up(struct storage *s);

/* Collects garbage, and returns when all garbage of before the call is gone, except bytes that
 * readers still hold. */
void local_collect(struct storage *s);

/* --- backup --- */

/* Between these two calls (a *hold*) no file is removed. So a copy of the files that is made under
 * a hold is complete for every state that the database has had since the hold began.
 * local_collect() waits for its end. */
void local_hold(struct storage *s);
void local_unhold(struct storage *s);
/* Copies all files, durably, into the new folder `to`: by hard links where possible. Files that are
 * written meanwhile may be among them; the first start on the copy removes files without a row. */
int local_copy_files(struct storage *s, const char *to, struct err *err) MUST_CHECK;

/* --- the tap: a log of all changes, kept in their commits --- */

/* One change, by whatever caller. */
struct tapped {
    unsigned changes;         /* a set of enum thing_kind */
    struct str bucket, owner; /* the bucket and its owner */
    struct str key, version;  /* the object; no version where versions were never kept */
    struct str document;      /* name of the bucket's document that was set or removed */
    enum meta_set set;        /* the meta that was set, when the object's bytes stay */
    uint64_t size;            /* bytes of the object */
    uint64_t number;          /* higher for later changes of the storage, over restarts too */
};

struct change_tap {
    /* Whether to keep a row. Called inside the commit, on any thread, one call at a time, and again
     * when the commit is tried again. `number` and `version` are not yet known. Must not wait. */
    bool (*wants)(void *ctx, const struct tapped *t);
    /* Called before wants(), inside the commit too: an error refuses the change. NULL: nothing is
     * refused. */
    int (*may)(void *ctx, struct err *err);
    /* A row with this number is committed. Called after the commit, on the thread that made the
     * change, before its call returns; not in the order of the numbers. */
    void (*committed)(void *ctx, uint64_t number);
    void *ctx;
};

/* Sets the storage's tap (borrowed). It learns of changes that begin after the call. NULL removes
 * it; no change may be under way then. Rows of an earlier tap stay. Without a tap a change costs
 * one more load. */
void local_set_tap(struct storage *s, const struct change_tap *tap);
/* The tap does not learn of changes through this reference to a bucket. For what replication itself
 * writes, which must not count as a change at the destination. Call it before other threads have
 * the reference. It does nothing for a bucket on another kind of storage. */
void local_untap(struct bucket *b);
/* Makes or removes a bucket without the tap; on another kind of storage, as its own calls do. */
int local_create_untapped(struct storage *s, const struct bucket_info *info,
                          struct err *err) MUST_CHECK;
int local_remove_untapped(struct storage *s, struct str user, struct str name,
                          struct err *err) MUST_CHECK;
/* Returns when every change that began before the call is committed or has failed. */
int local_tap_settle(struct storage *s, struct err *err) MUST_CHECK;
/* At most `limit` rows with numbers above `after`, in order. No row with a number below the last
 * one's can appear later. */
int local_tap_read(struct storage *s, struct arena *a, uint64_t after, size_t limit,
                   struct tapped **out, size_t *count, struct err *err) MUST_CHECK;
/* Removes these rows. Not durable: a crash of the machine may bring them back. */
int local_tap_drop(struct storage *s, const struct tapped *rows, size_t count,
                   struct err *err) MUST_CHECK;
/* Removes all rows up to this number, by one durable write however many there are. */
int local_tap_drop_until(struct storage *s, uint64_t last, struct err *err) MUST_CHECK;

struct local_stats {
    uint64_t list_steps; /* rows that listings have read */
    uint64_t collected;  /* files that the collector has removed */
    uint64_t swept;      /* those of them that a crash had left */
};
void local_stats(struct storage *s, struct local_stats *out);

/* --- scrub --- */

enum local_damage {
    LOCAL_DAMAGE_MISSING, /* the bytes have no file or row */
    LOCAL_DAMAGE_SIZE,
    LOCAL_DAMAGE_CHECKSUM,
    LOCAL_DAMAGE_RECORD, /* the index row cannot be read */
    LOCAL_DAMAGE_STRAY,  /* a file that no row names; `path` alone is set */
    LOCAL_DAMAGE_COUNT,  /* the bucket's usage was wrong; `bucket` alone is set */
};

struct local_finding {
    enum local_damage damage;
    struct str bucket, key, version; /* no version for a part of an unfinished upload */
    struct str path;                 /* the file; empty for a row */
};

struct local_scrub {
    /* Called for each finding. Return an error to stop the scrub with it. */
    int (*finding)(void *ctx, const struct local_finding *f, struct err *err);
    /* Called after every object, with the place to resume from; an error stops the scrub. May be
     * NULL. */
    int (*progress)(void *ctx, struct str cursor, uint64_t objects, uint64_t bytes,
                    struct err *err);
    void *ctx;
    struct str cursor;         /* where to resume; empty: at the beginning */
    uint64_t bytes_per_second; /* limit of reading; 0: none */
};

const char *local_damage_text(enum local_damage damage);

/* Reads every body and verifies its size and checksum, then looks for files without a row. Bodies
 * that are written meanwhile may be left out. A damaged blob that several objects share is a
 * finding for each of them. The usage of every bucket is compared with the index, and corrected. */
int local_scrub(struct storage *s, const struct local_scrub *scrub, struct err *err) MUST_CHECK;

#endif
