/* The satellites: storages that hold the archive, and the table that gives each slot to one of
 * them.
 *
 * A satellite is a storage together with the user of the same name. The user owns the archive's
 * buckets on the storage, and the user's policy leads to it. So `rclone lsl
 * asia-east-1:github.com/…` works with that user's keys, both through weir's endpoint and directly
 * on the storage. There is one bucket for each host of a forge; weir makes it when it is first
 * needed.
 *
 * The table (archive/slots.h) is an object `_map/<epoch>.json` in the bucket of github.com on every
 * satellite. docs/archive.md has the rules (M1 to M6). A change of the table is decided when the
 * table of the next epoch is created on the satellite whose name sorts first; then it is copied to
 * all others. The store also has the newest epoch that is in use (`w:archive:epoch`), so that a
 * process notices cheaply that its table is old.
 *
 * An archive gets its first table when it is first needed. Its satellites are those of the
 * configuration file, or otherwise the main storage alone.
 *
 * Any thread may call these functions. They block. They return the errors of the storages, and
 * these:
 *     ERR_CORRUPT      the satellites disagree about the table, or one of the tables is damaged;
 *                      the text says which
 *     ERR_UNAVAILABLE  a satellite that is needed for the answer is down */
#ifndef ARCHIVE_SATELLITES_H
#define ARCHIVE_SATELLITES_H

#include "archive/names.h"
#include "archive/slots.h"
#include "route/users.h"
#include "s3/place/place.h"

struct remotes;
struct satellites;
struct store;

#define SATELLITES_MAP_HOST STR("github.com") /* the bucket of this host has the tables */

struct satellites_options {
    struct users *users;
    struct remotes *remotes; /* NULL: no storage is remote */
    struct place_env env;
    struct store *app; /* appDB */
    /* Returns the name of the bucket for a forge's host (forges.NAME.bucket). If it is NULL, the
     * bucket has the name of the host, with '-' for ':'. */
    int (*bucket)(void *ctx, struct arena *a, struct str host, struct str *out, struct err *err);
    /* Lists the hosts of all forges. NULL: github.com alone. */
    int (*hosts)(void *ctx, struct arena *a, struct str **out, size_t *count, struct err *err);
    /* Called when this process has begun to use another table. May be NULL. */
    void (*changed)(void *ctx, const struct slots *table);
    void *ctx;         /* argument of these functions */
    const char *first; /* names of the first satellites, with commas between them; NULL or "": the
                          main storage */
    const struct log *log;
};

/* Opens the satellites and reads their tables. A storage that is down is not an error; its table is
 * read when it is needed. */
int satellites_open(struct satellites **out, const struct satellites_options *o,
                    struct err *err) MUST_CHECK;
void satellites_close(struct satellites *s); /* NULL is fine */

/* Copies the table that this process uses. Its epoch is 0 if there is no table. Never blocks. */
void satellites_table(struct satellites *s, struct slots *out);
/* Like satellites_table(), but asks the store whether the table is still current, and reads the
 * satellites' tables again if it is not. With `make`, an archive without a table gets its first
 * table. */
int satellites_current(struct satellites *s, struct slots *out, bool make,
                       struct err *err) MUST_CHECK;
/* Reads the tables of all satellites again, finishes a change that was begun, and checks that the
 * satellites agree. */
int satellites_reload(struct satellites *s, struct err *err) MUST_CHECK;
/* Whether the archive can be used, for /readyz. Returns the error of the last time when the tables
 * were read, or ERR_UNAVAILABLE if a satellite has no user. Never blocks. */
int satellites_ready(struct satellites *s, struct err *err) MUST_CHECK;
/* Whether the satellite answered when this process last used it. weir asks a satellite that is down
 * every 5 s. Never blocks. */
bool satellites_is_up(struct satellites *s, struct str name);

/* The id of the user of a satellite, in the arena. ERR_UNAVAILABLE: there is no such user, or the
 * users are not known yet; the satellite then counts as down. */
int satellites_user(struct satellites *s, struct arena *a, struct str name, struct str *id,
                    struct err *err) MUST_CHECK;
/* Checks that a user who is to be removed is not the user of a satellite. ERR_CONFLICT: it is.
 * ERR_UNAVAILABLE: that is not known, because the tables cannot be read. */
int satellites_user_needed(struct satellites *s, const struct user *user,
                           struct err *err) MUST_CHECK;
/* The name of the bucket for a forge's host, in the arena. ERR_INVALID: the name is not valid for a
 * bucket; the text names the setting that chooses another name. */
int satellites_bucket(struct satellites *s, struct arena *a, struct str host, struct str *out,
                      struct err *err) MUST_CHECK;
/* Sets *used if a satellite has objects in the bucket. Every satellite must answer. */
int satellites_bucket_used(struct satellites *s, struct arena *a, struct str bucket, bool *used,
                           struct err *err) MUST_CHECK;
/* A host of a forge and its bucket. */
struct satellite_host {
    struct str host, bucket;
    bool is_known; /* weir knows the forge; otherwise `host` is the name of the bucket */
};
/* Lists the buckets of the archive on a satellite: those that its user owns there. If no forge
 * belongs to a bucket any more, the bucket's own name is used as the host. */
int satellites_hosts(struct satellites *s, struct arena *a, struct str name,
                     struct satellite_host **out, size_t *count, struct err *err) MUST_CHECK;
/* Makes the bucket on the satellite for the satellite's user, unless it exists. *made (may be NULL)
 * is set if it was made. ERR_EXISTS: it belongs to somebody else. */
int satellites_make_bucket(struct satellites *s, struct str name, struct str bucket, bool *made,
                           struct err *err) MUST_CHECK;

/* --- changes of the table --- */

/* A satellite to add. `access` and `secret` are the keys of its user on a remote storage. They are
 * empty if the user already has keys there, or if the storage is local. */
struct satellite_wanted {
    struct str name, access, secret;
};
/* The user of a satellite that was added. `key` is the user's new access key. It is empty if the
 * user existed before, because the secret is shown only once. Strings are in the arena of the
 * call. */
struct satellite_made {
    struct str name, user;
    struct user_key key;
};

/* Adds satellites. If there is no table yet, the first table is made. If the archive is empty, the
 * slots are split equally again. Otherwise only one satellite can be added, and its share of the
 * slots begins to move to it. made[i] is the result for wanted[i]. Adding a satellite that exists
 * already repairs its user, its policy and its bucket. When the call fails, nothing that it has
 * made stays, unless the newcomers are in the table all the same. ERR_NOT_FOUND: there is no such
 * storage. ERR_BUSY: slots are still moving, or
 * another change of the satellites runs. */
int satellites_add(struct satellites *s, struct arena *a, const struct satellite_wanted *wanted,
                   size_t count, struct satellite_made *made, struct err *err) MUST_CHECK;
/* Begins to move the slots of a satellite to the other satellites. When they have moved, the
 * satellite is removed from the table. Then weir removes the policy of its user. If weir has made
 * the user, it also removes the archive's buckets there, unless they have other objects or
 * settings, and the user, unless it owns a bucket. Buckets of a remote storage stay. For a storage
 * that has left the table, the call does only the latter. ERR_NOT_FOUND: it is no satellite. */
int satellites_drain(struct satellites *s, struct str name, struct err *err) MUST_CHECK;
/* Ends the move of a slot; the satellite that it leaves must have no object of it. When no slot
 * moves any more, drained satellites are removed from the table. */
int satellites_arrive(struct satellites *s, unsigned slot, struct err *err) MUST_CHECK;
/* Removes drained satellites from the table when no slot moves any more, as satellites_arrive()
 * does, which may have been cut off. ERR_BUSY: another change of the satellites runs. */
int satellites_settle(struct satellites *s, struct err *err) MUST_CHECK;

/* --- counts --- */

/* Counts of the moves that this process has made since its start. */
struct move_stats {
    _Atomic(uint64_t) accounts, objects, bytes;
    /* Objects that were kept aside because the new satellite had a different object of the same
     * key. */
    _Atomic(uint64_t) aside;
    _Atomic(uint64_t) damaged; /* bundles that were damaged before they moved */
    _Atomic(uint64_t) strays;  /* objects that changed on the old satellite while they moved */
};
const struct move_stats *satellites_moves(const struct satellites *s);

/* --- listing --- */

/* The arguments of satellites_list_slot(), which lists the keys of one slot of a forge's host on
 * one satellite. The keys come in order, without a delimiter, beginning after the key `after`. A
 * bucket that does not exist has no keys. */
struct slot_ask {
    struct str satellite, host, after;
    struct str bucket; /* empty: that of the host's forge */
    unsigned slot;
    size_t limit; /* 0: OBJECT_LIST_MAX */
};
int satellites_list_slot(struct satellites *s, struct arena *a, const struct slot_ask *ask,
                         struct list_result *out, struct err *err) MUST_CHECK;
/* Lists the open uploads of a bucket on a satellite, as bucket->list_uploads() does. A bucket that
 * does not exist has none. */
int satellites_list_uploads(struct satellites *s, struct arena *a, struct str name,
                            struct str bucket, const struct list_options *o,
                            struct upload_list *out, struct err *err) MUST_CHECK;

#endif
