/* Comparing a log with the shards, and making a map from the keys in the shards. */
#ifndef SHARD_VERIFY_H
#define SHARD_VERIFY_H

#include "shard/shards.h"

enum verify_finding_kind {
    VERIFY_NO_MAP,    /* the log cannot be read, or has no map */
    VERIFY_MAP_MOVED, /* this process does not obey the newest map of the log */
    VERIFY_NO_BUCKET, /* a shard that the map names is missing */
    VERIFY_STRAY,     /* a bucket has the name of a shard, but is not in the map */
    VERIFY_GARBAGE,   /* a shard has keys in a window that is not its own */
    VERIFY_CLOSED,    /* a window is closed, and no move is under way */
    VERIFY_STATE,     /* versions or object lock of a shard differ from the bucket's */
    VERIFY_TROUBLE,   /* a map bucket is ignored, or a recovery could not repair everything */
};

const char *verify_kind_text(enum verify_finding_kind k);

/* The strings are valid during the call. */
struct verify_finding {
    enum verify_finding_kind kind;
    struct str shard;           /* the bucket of the shard */
    struct shard_window window; /* the window with the garbage, or the closed window */
    uint64_t keys;              /* garbage: number of keys */
    struct str key;             /* garbage: the first of these keys */
    bool known;                 /* garbage: the map has the window as unclean */
    struct str text;            /* a sentence that describes the finding */
};

typedef void verify_fn(void *ctx, const struct verify_finding *f);

/* Calls fn for each finding. The call may take long, because it lists all keys that shards have
 * outside of their segments. */
int shard_verify(struct shards *s, struct storage *home, struct str name, verify_fn *fn, void *ctx,
                 struct err *err) MUST_CHECK;

/* Removes the garbage that shard_verify() finds: notes its windows in the map, removes it, and
 * marks the windows as clean. *removed is the number of versions that were removed, also after
 * an error. Garbage is removed even under object lock. Does not wait for a move: ERR_BUSY: keys are
 * being moved. */
int shard_clean(struct shards *s, struct storage *home, struct str name, uint64_t *removed,
                struct err *err) MUST_CHECK;

/* Reads the log of a bucket again, and serves the bucket by its newest map. Also tries again to
 * repair what the recovery at the start could not repair. ERR_NOT_FOUND: there is no map. */
int shard_reload(struct shards *s, struct storage *home, struct str name,
                 struct err *err) MUST_CHECK;

/* Removes the map and the shards of a bucket that itself does not exist any more, with the keys
 * that are in the shards, so that the name is free. ERR_NOT_FOUND: the bucket is not broken.
 * ERR_EXISTS: the bucket exists. ERR_UNAVAILABLE: the name is free, but something is left. */
int shard_remove_left(struct shards *s, struct storage *home, struct str name,
                      struct err *err) MUST_CHECK;
/* Takes over a bucket whose newest map another installation of weir has written, and serves it by
 * that map. ERR_NOT_FOUND: the bucket is not broken. ERR_EXISTS: the map is of this installation.
 */
int shard_take_over(struct shards *s, struct storage *home, struct str name,
                    struct err *err) MUST_CHECK;

struct rebuild_options {
    bool newest; /* a key that two shards have goes to the shard whose version is newer */
    /* Called for each key that two shards have. May be NULL. */
    void (*twice)(void *ctx, struct str key, struct str one, struct str other);
    void *ctx;
};
struct rebuild_result {
    uint64_t keys, twice;
    size_t shards, segments;
};
/* Makes a map from the keys in the shards and serves the bucket by it. Called when the log was
 * destroyed or the newest map is damaged. If the bucket is still served, the map in memory is
 * written to the log instead, and `out` has no keys. ERR_EXISTS: the log has a map. ERR_NOT_FOUND:
 * there are no shards, or the bucket is not sharded. ERR_CONFLICT: two shards have the same key,
 * and o->newest is false. */
int shard_rebuild(struct shards *s, struct storage *home, struct str name,
                  const struct rebuild_options *o, struct rebuild_result *out,
                  struct err *err) MUST_CHECK;

#endif
