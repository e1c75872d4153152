/* A storage in a folder: blobs as files, everything else as rows of the process's database.
 * docs/local-storage.md has the mechanism, its invariants and the crash points.
 *
 * Any thread. The database must outlive the storage. */
#ifndef OBJECT_LOCAL_H
#define OBJECT_LOCAL_H

#include "db/db.h"
#include "object/bucket.h"

enum { LOCAL_FAMILIES = 4 };

/* The family of the rows that change notes keep (struct outbox). Their keys are their writers'. */
#define LOCAL_OUTBOX "outbox"
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
    const struct log *log;  /* NULL: silent */
};

/* ERR_CORRUPT: the folder is not the one that the database's rows are about. ERR_IN_USE: a storage
 * is open on it, here or in another process. The storage's close waits for its collector; every
 * bucket and body must be gone. */
int local_open(struct storage **out, const struct local_options *o, struct err *err) MUST_CHECK;

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
