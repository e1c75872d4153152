/* The maps of sharded buckets in the store, and the agreement of several processes on them
 * (docs/sharding.md, "Several processes").
 *
 * The truth about a bucket's map is in the log of the bucket (shard/log.h). The store has copies
 * and answers alone, so all of it may be lost at any moment:
 *
 *     a process writes map n to the log
 *       └─ shard_entry_publish() ──► w:shards, w:shard:<bucket>, a message on `weir:shards`
 *     every process installs n, ends the requests that n holds back
 *       └─ shard_hold_tell() ──► w:shard:held:<bucket>
 *     the writer asks until everybody holds n
 *       └─ shard_hold_ask() ──► HOLD_ALL
 *
 * A message may be lost. So each process also reads shard_entry_numbers() every second. The keys
 * are in configDB. Each call is one command or one script; any thread may call. */
#ifndef COORD_SHARDS_H
#define COORD_SHARDS_H

#include "coord/shards_memory.h"
#include "store/store.h"

/* Messages on this channel are "<storage>:<bucket>:<number>", escaped by store_key_part(). */
#define SHARDS_CHANNEL STR("weir:shards")

enum { SHARD_ENTRY_TEXT_MAX = 1024 * 1024 }; /* a larger map is published without its text */

/* The newest map of a bucket, as the store has it. */
struct shard_entry {
    struct str storage, bucket; /* the bucket and its home */
    struct str owner;
    uint64_t number; /* below 2^53, because scripts compute with it */
    struct str text; /* the map; empty: readers read the log */
};

/* Stores the map and tells every process of it, unless the store has a newer one. The map must be
 * in the log already (H3). *newest is the number that the store has now. */
int shard_entry_publish(struct store *config, const struct shard_entry *e, uint64_t *newest,
                        struct err *err) MUST_CHECK;
/* Reads the number and the text of the newest map. ERR_NOT_FOUND: the store has none, which says
 * nothing about the bucket. out->owner is not set. */
int shard_entry_read(struct store *config, struct arena *a, struct str storage, struct str bucket,
                     struct shard_entry *out, struct err *err) MUST_CHECK;
/* Reads numbers and owners of all sharded buckets; texts are not set. */
int shard_entry_numbers(struct store *config, struct arena *a, struct shard_entry **out,
                        size_t *count, struct err *err) MUST_CHECK;
/* Forgets a bucket that is not sharded any more. `number` is that of its last map. */
int shard_entry_forget(struct store *config, struct str storage, struct str bucket, uint64_t number,
                       struct err *err) MUST_CHECK;
/* Reads a message of the channel. Names are in the arena. ERR_PARSE: it is malformed. */
int shard_entry_parse(struct shard_entry *out, struct arena *a, struct str message) MUST_CHECK;

/* Whether every sharded bucket of the storage is in `w:shards`. While it is not known, a name that
 * is not there may be that of a sharded bucket all the same. */
int shards_known_set(struct store *config, struct str storage, struct err *err) MUST_CHECK;
int shards_known(struct store *config, struct str storage, bool *out, struct err *err) MUST_CHECK;

/* --- who holds which map --- */

/* What a process says about a bucket. */
struct shard_hold {
    struct str storage, bucket;
    struct str process; /* its id in `w:gateways` */
    uint64_t number;
    /* The smallest key of a request that keeps the process from holding the map. Empty: the process
     * holds it. */
    struct str busy;
};
int shard_hold_tell(struct store *config, const struct shard_hold *h, struct err *err) MUST_CHECK;

enum shard_held {
    HOLD_WAITS, /* a process does not hold the map yet */
    HOLD_ALL,
    /* The store does not have the asker's last word. So it may have lost words of other processes
     * too, and cannot tell whether everybody holds the map. */
    HOLD_FORGOTTEN,
};
struct shard_hold_question {
    struct str storage, bucket;
    uint64_t number;
    struct str process;             /* the asker */
    const struct shards_word *word; /* the asker's last word */
    uint64_t life_s;                /* GATEWAY_LIFE_S */
};
/* Asks whether each process whose word is younger than life_s holds the map. The answer HOLD_ALL
 * counts only if the store has remembered the asker for long enough before (shards_memory.h; H7).
 * *busy is the smallest key of a request for which a process waits, in the arena; empty: there is
 * none. */
int shard_hold_ask(struct store *config, struct arena *a, const struct shard_hold_question *q,
                   enum shard_held *out, struct str *busy, struct err *err) MUST_CHECK;

#endif
