/* Declarations that the files about satellites and shelves share. A *site* is the archive's bucket
 * on a satellite. */
#ifndef ARCHIVE_SATELLITES_INT_H
#define ARCHIVE_SATELLITES_INT_H

#include "archive/satellites.h"
#include "os/loop.h"

enum {
    /* How many times a change is computed again when another change was decided first. */
    SATELLITES_TRIES = 8,
    /* Tables of this many epochs before the newest one stay on a satellite. */
    SATELLITES_KEEP = 16,
    SATELLITES_PRUNE = 8,      /* old tables are removed once in this many epochs */
    SATELLITES_MAPS_MAX = 4096 /* most tables that one listing of a satellite reads */
};

struct satellites {
    struct satellites_options o;
    char *first;        /* owned copy of o.first */
    struct loop prober; /* asks satellites that did not answer */
    bool probed;        /* used only by the prober: it has asked all satellites once */
    struct mutex lock;  /* lock class "archive.table"; guards the members below */
    struct slots table;
    bool up[SATELLITES_MAX]; /* whether each satellite of the table is up */
    struct err fault;        /* error of the last time when the tables were read; code 0: none */
    /* Slots whose old satellite has no object of them any more, while the table still says that
     * they move. One thread changes the table for all of them. */
    bool arrived[SLOT_COUNT];
    bool arriving;           /* a thread is changing the table for them */
    struct cond settled;     /* signaled when `arriving` has become false */
    struct move_stats moved; /* atomics, which need no lock */
};

/* A bucket on a satellite. Its strings are in the arena of the call that found it. */
struct satellite_site {
    struct str name, user, bucket;
};
/* Finds the site of a host on a satellite. The bucket need not exist. ERR_UNAVAILABLE: the
 * satellite has no user, and counts as down now. */
int satellite_site_find(struct satellite_site *out, struct satellites *s, struct arena *a,
                        struct str name, struct str bucket, struct err *err) MUST_CHECK;
/* Opens the place of a key in the site's bucket, like object_place_open(). ERR_NO_BUCKET: the
 * satellite has no such bucket, or the bucket belongs to another user. */
int satellite_site_open(struct object_place *p, struct satellites *s, struct arena *a,
                        const struct satellite_site *site, struct str key, enum place_use use,
                        struct err *err) MUST_CHECK;
/* Like satellite_site_open() for a put, but makes the bucket if it is missing. */
int satellite_site_open_put(struct object_place *p, struct satellites *s, struct arena *a,
                            const struct satellite_site *site, struct str key,
                            struct err *err) MUST_CHECK;

/* --- the tables on one satellite (satellites_map.c) --- */

/* Reads the newest table of a satellite; its epoch is 0 if the satellite has none. ERR_CORRUPT: the
 * table is damaged. */
int satellite_map_newest(struct satellites *s, struct str name, struct slots *out,
                         struct err *err) MUST_CHECK;
/* Creates a table on a satellite. *made (may be NULL) is false if the satellite already had the
 * same table. ERR_EXISTS: the satellite has a different table of this epoch. */
int satellite_map_put(struct satellites *s, struct str name, const struct slots *t, bool *made,
                      struct err *err) MUST_CHECK;
/* Removes tables that are much older than the epoch. A failure is logged. */
void satellite_map_prune(struct satellites *s, struct str name, uint32_t epoch);
bool slots_same(const struct slots *a, const struct slots *b);

/* --- agreement (satellites_agree.c) --- */

/* Reads all tables, and finishes a change that was begun but not copied to all satellites. Fills
 * *out with the table on which the satellites agree; its epoch is 0 if they have none. If `all` is
 * set, every satellite of the table must answer. */
int satellites_agree(struct satellites *s, bool all, struct slots *out, struct err *err) MUST_CHECK;
/* Puts the table on its own satellites and on those of `before`, first on the satellite that
 * decides (M2), and then begins to use it. ERR_CONFLICT: another change was decided first. */
int satellites_decide(struct satellites *s, const struct slots *next, const struct slots *before,
                      struct err *err) MUST_CHECK;
/* Begins to use a table: writes its epoch to the store, and then uses it in this process. */
int satellites_adopt(struct satellites *s, const struct slots *t, struct err *err) MUST_CHECK;

/* --- users, policies and buckets of satellites (satellites_prepare.c) --- */

/* Checks that the storages can become satellites, and makes nothing. The errors are those of
 * satellites_add(). */
int satellites_check(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                     size_t count, struct err *err) MUST_CHECK;
/* What a satellite has, and which parts of it satellites_prepare() has made. */
struct satellite_prepared {
    struct satellite_made made;
    struct {
        bool user, credential, policy, bucket;
    } has_made;
};
/* Finds or makes users, their keys and policies, and the buckets for the tables. After an error
 * out[] says what was made. A satellite that is prepared again keeps what an earlier call noted, so
 * out[] is {0} before the first call. */
int satellites_prepare(struct satellites *s, struct arena *a, const struct satellite_wanted *w,
                       size_t count, struct satellite_prepared *out, struct err *err) MUST_CHECK;
/* Removes what satellites_prepare() has made, except objects that are not tables of slots. A
 * failure is logged. */
void satellite_undo(struct satellites *s, const struct satellite_prepared *p);
/* Removes the policy of a satellite that has left the table. If weir has made its user, two things
 * more are removed: on a storage in a folder, the archive's buckets that have neither objects nor
 * settings; and the user, if it owns no bucket. A failure is logged; then the rest stays. */
void satellite_leave(struct satellites *s, struct str name);
/* Whether weir has made a user of this name whose policy leads to the storage. If the table does
 * not have the storage, it has left the table, and its policy was not removed. */
bool satellite_has_left(struct satellites *s, struct str name);
/* Whether the satellite's user is missing and the policy of that user still leads to the
 * storage. */
bool satellite_lost_user(struct satellites *s, struct arena *a, struct str name);

/* --- changes (satellites_change.c) --- */

/* Makes the first table, with the configured satellites or the main storage. */
int satellites_begin(struct satellites *s, struct err *err) MUST_CHECK;
/* Lists the hosts of all forges with their buckets. */
int satellites_forge_hosts(struct satellites *s, struct arena *a, struct satellite_host **out,
                           size_t *count, struct err *err) MUST_CHECK;
/* Notes from the code of a call whether a satellite is up. */
void satellites_note(struct satellites *s, struct str name, int code);

#endif
