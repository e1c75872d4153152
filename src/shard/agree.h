/* The agreement of processes that serve the same sharded buckets: each learns of new maps, says
 * which map it holds, and can wait until every process holds a map (docs/sharding.md, H3, H5, H7).
 *
 *     weir:shards, every second ──► agree_look() ──► install, drain ──► "I hold n"
 *     agree_await(n) ──► does every process that was heard of lately hold n?
 *
 * A process that does not serve a bucket says at once that it holds every map of it, and remembers
 * the number: from then on it never serves the bucket under an older map, which a reading of the
 * log that is under way may still return.
 *
 * Any thread may call these functions. */
#ifndef SHARD_AGREE_H
#define SHARD_AGREE_H

#include "base/log.h"
#include "coord/shards.h"
#include "shard/sharded.h"

struct agree;

struct agree_options {
    struct store *config; /* configDB; borrowed */
    struct str process;   /* the process's id in its words (coord/lease.h); copied */
    /* Gives since when the store has remembered the words of this process, as
     * installation_memory() does. */
    void (*memory)(void *ctx, struct shards_memory *out);
    void *ctx;
    const struct log *log; /* NULL: silent */
};

struct agree *agree_new(const struct agree_options *o);
void agree_free(struct agree *a); /* after agree_stop(); NULL is fine */
/* Starts the thread that calls agree_look(), and the subscription that wakes it. */
int agree_start(struct agree *a, struct err *err) MUST_CHECK;
void agree_stop(struct agree *a);

/* Begins to take part for a bucket that is about to be served. Its newest installed map was read
 * from the log; the call reads the log once more (H3). ERR_AGAIN: this process has said that it
 * holds a newer one, so the caller reads the log again. */
int agree_add(struct agree *a, struct sharded *s, struct err *err) MUST_CHECK;
/* The bucket is not served any more, and no request of it is under way. */
void agree_remove(struct agree *a, struct sharded *s);

/* Reads the newest map of every bucket from the log and installs it. To be given to
 * lease_read_first(): while a process has no lease, others do not wait for it. */
int agree_read_heads(void *agree, struct err *err) MUST_CHECK;
/* Looks once for new maps, and says which maps this process holds. Returns whether a request keeps
 * it from holding one. */
bool agree_look(struct agree *a, struct err *err);

/* Waits until every process holds map `number`, which is the newest one of this process. ERR_BUSY:
 * a process did not until `deadline_ns` (clock_mono_ns()), or the store cannot tell. *busy is then
 * the smallest key of a request for which it waited, in the arena; empty: not known. ERR_CONFLICT:
 * there is a newer map. */
int agree_await(struct agree *a, struct sharded *s, uint64_t number, uint64_t deadline_ns,
                struct arena *arena, struct str *busy, struct err *err) MUST_CHECK;

#endif
