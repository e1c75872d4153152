/* Comparing a log with its buckets, and making a map from the keys in the shards. */
#ifndef SHARD_VERIFY_H
#define SHARD_VERIFY_H

#include "shard/shards.h"

enum verify_finding_kind {
    VERIFY_NO_MAP,    /* the log cannot be read, or has no map */
    VERIFY_MAP_MOVED, /* this process does not obey the newest map of the log */
    VERIFY_NO_BUCKET, /* a shard that the map names is missing */
    VERIFY_STRAY,     /* a bucket has the name of a shard, and the map does not name it */
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
    struct shard_window window; /* of garbage, or the closed window */
    uint64_t keys;              /* garbage: how many keys */
    struct str key;             /* the first of them */
    bool known;                 /* the map knows of the garbage */
    struct str text;            /* a sentence */
};

typedef void verify_fn(void *ctx, const struct verify_finding *f);

/* Calls fn for each finding. May take long: windows that a shard does not own are listed. */
int shard_verify(struct shards *s, struct storage *home, struct str name, verify_fn *fn, void *ctx,
                 struct err *err) MUST_CHECK;

/* Removes the garbage that a verify finds: says in the map where it is, removes it, and says that
 * the shards are clean. *removed is the number of versions that were removed, also after an error.
 * ERR_BUSY: keys are being moved. ERR_DENIED: an object is locked. Waits for nothing else. */
int shard_clean(struct shards *s, struct storage *home, struct str name, uint64_t *removed,
                struct err *err) MUST_CHECK;

/* Reads the log of a bucket anew, and serves the bucket by its newest map. Tries again what the
 * recovery at the start could not repair. ERR_NOT_FOUND: there is no map. */
int shard_reload(struct shards *s, struct storage *home, struct str name,
                 struct err *err) MUST_CHECK;

struct rebuild_options {
    bool newest; /* of two shards that have a key, the one whose version is newer has it */
    /* Called for each key that two shards have. May be NULL. */
    void (*twice)(void *ctx, struct str key, struct str one, struct str other);
    void *ctx;
};
struct rebuild_result {
    uint64_t keys, twice;
    size_t shards, segments;
};
/* Makes a map from the keys in the shards and serves the bucket by it: its log was destroyed, or
 * the newest map is damaged. If the bucket is served in spite of that, the map in memory is written
 * anew; then `out` has no keys. ERR_EXISTS: there is a map. ERR_NOT_FOUND: there are no shards, or
 * the bucket is not sharded. ERR_CONFLICT: keys are in two shards, and o->newest is false. */
int shard_rebuild(struct shards *s, struct storage *home, struct str name,
                  const struct rebuild_options *o, struct rebuild_result *out,
                  struct err *err) MUST_CHECK;

#endif
