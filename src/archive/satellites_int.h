/* Declarations that the files of the satellites and of the shelves share: a satellite's bucket as a
 * *site*, and the tables on one satellite. */
#ifndef ARCHIVE_SATELLITES_INT_H
#define ARCHIVE_SATELLITES_INT_H

#include "archive/satellites.h"
#include "os/loop.h"

enum {
    /* How often a change is tried again when another change was decided first. */
    SATELLITES_TRIES = 8,
    SATELLITES_KEEP = 16,      /* how many epochs behind the newest one stay on a satellite */
    SATELLITES_PRUNE = 8,      /* old tables are removed once in this many epochs */
    SATELLITES_MAPS_MAX = 4096 /* most tables that are read in a listing of one satellite */
};

struct satellites {
    struct satellites_options o;
    char *first;        /* owned copy of o.first */
    struct loop prober; /* asks satellites that did not answer */
    bool probed;        /* only for the prober: it has asked all satellites once */
    struct mutex lock;  /* lock class "archive.table"; guards the members below */
    struct slots table;
    bool up[SATELLITES_MAX]; /* for the satellites of the table */
    struct err fault;        /* error of the last reading of the tables; code 0: none */
    /* Slots that are empty on the satellite they leave, while the table still says that they move.
     * One thread changes the table for all of them. */
    bool arrived[SLOT_COUNT];
    bool arriving;           /* a thread changes the table now */
    struct cond settled;     /* signaled when `arriving` has become false */
    struct move_stats moved; /* atomics, which need no lock */
};

/* A bucket on a satellite. Its strings are in the arena of the call that found it. */
struct satellite_site {
    struct str name, user, bucket;
};
/* Finds the site of a host's bucket on a satellite. It need not exist. ERR_NOT_FOUND: the satellite
 * has no user. */
int satellite_site_find(struct satellite_site *out, struct satellites *s, struct arena *a,
                        struct str name, struct str bucket, struct err *err) MUST_CHECK;
/* Opens the place of a key in the site's bucket, as object_place_open() does. ERR_NO_BUCKET: the
 * satellite has no such bucket. A bucket of that name with another owner counts as missing. */
int satellite_site_open(struct object_place *p, struct satellites *s, struct arena *a,
                        const struct satellite_site *site, struct str key, enum place_use use,
                        struct err *err) MUST_CHECK;
/* As satellite_site_open() to put, and makes the bucket where it is missing. */
int satellite_site_open_put(struct object_place *p, struct satellites *s, struct arena *a,
                            const struct satellite_site *site, struct str key,
                            struct err *err) MUST_CHECK;

/* --- the tables on one satellite (satellites_map.c) --- */

/* Reads the newest table of a satellite; its epoch is 0 where the satellite has none. ERR_CORRUPT:
 * the table is damaged. */
int satellite_map_newest(struct satellites *s, struct str name, struct slots *out,
                         struct err *err) MUST_CHECK;
/* Creates a table on a satellite. ERR_EXISTS: the satellite has another table of this epoch. *made
 * (may be NULL) is false if the satellite already had this same table. */
int satellite_map_put(struct satellites *s, struct str name, const struct slots *t, bool *made,
                      struct err *err) MUST_CHECK;
/* Removes tables that are much older than the epoch. A failure is logged. */
void satellite_map_prune(struct satellites *s, struct str name, uint32_t epoch);
bool slots_same(const struct slots *a, const struct slots *b);

/* --- agreement (satellites_agree.c) --- */

/* Reads all tables, finishes a change that was begun, and fills *out with the table that the
 * satellites agree on; epoch 0: they have none. `all`: every satellite of the table must answer. */
int satellites_agree(struct satellites *s, bool all, struct slots *out, struct err *err) MUST_CHECK;
/* Puts the table on all satellites of it and of `before`, first on the one that decides (M2), then
 * begins to use it. ERR_CONFLICT: another change was decided first. */
int satellites_decide(struct satellites *s, const struct slots *next, const struct slots *before,
                      struct err *err) MUST_CHECK;
/* Begins to use a table: first in the store, then in this process. */
int satellites_adopt(struct satellites *s, const struct slots *t, struct err *err) MUST_CHECK;

/* Finds or makes the user of a satellite, and gives the user a policy that leads to the storage. */
int satellite_prepare(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                      struct satellite_made *out, struct err *err) MUST_CHECK;
/* Makes the first table: of the configured satellites, or of the main storage. */
int satellites_begin(struct satellites *s, struct err *err) MUST_CHECK;
/* Notes whether a satellite answered. */
void satellites_note(struct satellites *s, struct str name, int code);

#endif
