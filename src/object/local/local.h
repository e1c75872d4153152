/* A storage in a folder: blobs as files, everything else as rows of the process's database.
 * docs/local-storage.md has the mechanism, its invariants and the crash points.
 *
 * Any thread may call these functions. The database must outlive the storage. */
#ifndef OBJECT_LOCAL_LOCAL_H
#define OBJECT_LOCAL_LOCAL_H

#include "db/db.h"
#include "object/bucket.h"

enum { LOCAL_FAMILIES = 5 };

/* The column family of the row logs that change notes write (struct outbox). */
#define LOCAL_OUTBOX "outbox"
/* The column family of the rows that taps keep (struct change_tap). */
#define LOCAL_CHANGES "changes"
/* The column family of access log records that wait for delivery (s3/log/access_log.h). It holds no
 * rows of a storage. */
#define LOCAL_ACCESS_LOG "accesslog"

/* Returns the column families to pass to db_open(). All local storages of the process share
 * them. */
const struct db_cf_spec *local_cf_specs(void); /* array of LOCAL_FAMILIES */

struct local_options {
    const char *name;
    const char *folder; /* made with mode 0700 if it does not exist */
    struct db *db;
    uint32_t id; /* the storage's number, which begins the keys of its rows; unique in the database,
                    never used again */
    size_t inline_max;      /* bytes; smaller bodies are stored as rows, not files; 0: 16 KiB */
    uint64_t reserve_bytes; /* puts are refused if the folder has less free space; 0: 256 MiB */
    uint64_t part_min;      /* smallest size of all parts but the last; 0: 5 MiB */
    /* The storage opens even if its folder is absent, belongs to another storage or cannot be used.
     * Opening its buckets then fails with ERR_OFFLINE, and the storage looks for the folder every
     * few seconds. */
    bool may_be_missing;
    const struct log *log; /* NULL: nothing is logged */
};

/* Opens the storage. ERR_CORRUPT: the rows of the database belong to another folder. ERR_IN_USE:
 * this process or another one has a storage open on the folder. close() waits for the collector;
 * before close(), every bucket must be released and every body closed. */
int local_open(struct storage **out, const struct local_options *o, struct err *err) MUST_CHECK;

/* Appends the folder's identity in hex. The identity is chosen when the folder is made, and stays
 * the same when the folder is moved. */
void local_identity(struct storage *s, struct buf *out);
const char *local_folder(struct storage *s); /* lives as long as the storage */

/* Returns ERR_IO with the reason if the disk failed to write a file and no check() of the storage
 * has succeeded after that. Never waits. */
int local_trouble(struct storage *s, struct err *err) MUST_CHECK;

/* Whether the storage has not found its folder yet. False for other kinds of storage. */
bool local_is_missing(const struct storage *s);
/* Makes the storage stop looking for its missing folder. */
void local_give_up(struct storage *s);

/* Removes all blobs that had lost their last reference before the call, except those that readers
 * still hold. */
void local_collect(struct storage *s);

/* --- backup of the files --- */

/* Begins a *hold*; the next function ends it. During a hold no file is removed. So a copy of the
 * files that is made under a hold is complete for every state that the database has had since the
 * hold began. local_collect() waits for the end of the hold. */
void local_hold(struct storage *s);
void local_unhold(struct storage *s);
/* Copies all files, durably, into the new folder `to`, by hard links where possible. Files that are
 * written meanwhile may be among them; the first start on the copy removes files without a row. */
int local_copy_files(struct storage *s, const char *to, struct err *err) MUST_CHECK;

/* --- the tap: a log of all changes, kept in their commits --- */

/* One change of the storage, as a tap sees it. */
struct tapped {
    unsigned changes;         /* bits of enum thing_kind */
    struct str bucket, owner; /* the bucket and its owner */
    struct str key, version;  /* the object; `version` is empty where versions were never kept */
    struct str document;      /* name of the bucket's document that was set or removed */
    enum meta_set set;        /* the meta that was set, if only meta changed */
    uint64_t size;            /* bytes of the object */
    uint64_t number;          /* higher for later changes of the storage, over restarts too */
};

struct change_tap {
    /* Whether to keep a row of this change (*out). An error refuses the change. Called inside the
     * commit, on any thread, one call at a time, and again when the commit is tried again. `number`
     * and `version` are not yet known. Must not wait. */
    int (*wants)(void *ctx, const struct tapped *t, bool *out, struct err *err);
    /* Called after the commit of a row with this number, on the thread that made the change, before
     * that change returns to its caller. The calls do not come in the order of the numbers. */
    void (*committed)(void *ctx, uint64_t number);
    void *ctx;
};

/* Sets the storage's tap (borrowed). The tap learns of changes that begin after the call. NULL
 * removes the tap; no change may be under way then. Rows of an earlier tap stay. Without a tap a
 * change costs one more load from memory. */
void local_set_tap(struct storage *s, const struct change_tap *tap);
/* Hides from the tap the changes that are made through this reference to a bucket. Replication
 * uses it for its own writes, which must not count as changes at the destination. Call it before
 * other threads have the reference. For a bucket with parts (object/overlay.h) it hides the
 * changes of every part that is on a local storage. It does nothing for a bucket on another kind
 * of storage. */
void local_untap(struct bucket *b);
/* These make or remove a bucket without telling the tap. On a storage of another kind, and for a
 * bucket with parts (object/overlay.h), they just make or remove the bucket. */
int local_create_untapped(struct storage *s, const struct bucket_info *info,
                          struct err *err) MUST_CHECK;
int local_remove_untapped(struct storage *s, struct str user, struct str name,
                          struct err *err) MUST_CHECK;
/* Fences the bucket: calls through references that were opened before this moment fail with
 * ERR_BUSY, also calls that are under way and have not taken effect yet. Also changes the bucket's
 * generation. Used when the bucket becomes the first shard of a sharded bucket. */
void local_fence(struct storage *s, struct str bucket);
/* Returns when every change that began before the call is committed or has failed. */
int local_tap_settle(struct storage *s, struct err *err) MUST_CHECK;
/* Reads at most `limit` rows with numbers above `after`, in order. No row with a number below that
 * of the last row can appear later. */
int local_tap_read(struct storage *s, struct arena *a, uint64_t after, size_t limit,
                   struct tapped **out, size_t *count, struct err *err) MUST_CHECK;
/* Removes these rows. The removal is not durable: a crash of the machine may bring them back. */
int local_tap_drop(struct storage *s, const struct tapped *rows, size_t count,
                   struct err *err) MUST_CHECK;
/* Removes all rows up to this number, by one durable write, however many rows there are. */
int local_tap_drop_until(struct storage *s, uint64_t last, struct err *err) MUST_CHECK;

struct local_stats {
    uint64_t list_steps; /* number of rows that listings have read */
    uint64_t collected;  /* number of files that the collector has removed */
    uint64_t swept;      /* number of collected files that a crash had left */
};
void local_stats(struct storage *s, struct local_stats *out);

/* --- the scrub: looking for damage --- */

enum local_damage {
    LOCAL_DAMAGE_MISSING, /* the file or row with the bytes is missing */
    LOCAL_DAMAGE_SIZE,
    LOCAL_DAMAGE_CHECKSUM,
    LOCAL_DAMAGE_RECORD, /* the index row cannot be read */
    LOCAL_DAMAGE_STRAY,  /* a file that no row names; only `path` is set */
    LOCAL_DAMAGE_COUNT,  /* the bucket's usage was wrong; only `bucket` is set */
};

struct local_finding {
    enum local_damage damage;
    struct str bucket, key, version; /* `version` is empty for a part of an unfinished upload */
    struct str path;                 /* the file; empty for a row */
};

struct local_scrub {
    /* Called for each finding. An error that the function returns ends the scrub with that
     * error. */
    int (*finding)(void *ctx, const struct local_finding *f, struct err *err);
    /* Called after every object, with the place to resume from; an error stops the scrub. May be
     * NULL. */
    int (*progress)(void *ctx, struct str cursor, uint64_t objects, uint64_t bytes,
                    struct err *err);
    void *ctx;
    struct str cursor;         /* where to resume; empty: at the beginning */
    uint64_t bytes_per_second; /* limit for reading; 0: no limit */
};

const char *local_damage_text(enum local_damage damage);

/* Reads every body and verifies its size and checksum, then looks for files without a row. Bodies
 * that are written meanwhile may be left out. A damaged blob that several objects share is a
 * finding for each of them. The usage of every bucket is compared with the index, and corrected. */
int local_scrub(struct storage *s, const struct local_scrub *scrub, struct err *err) MUST_CHECK;

#endif
