/* One request of a bucket that several processes serve: its pass, and the right to act under the
 * map that this process holds (docs/sharding.md, H6, H12).
 *
 *     read    access_begin ──► the shard ──► the answer begins: access_head ──► access_end
 *     write   access_begin ──► the shard ──► the answer: access_wrote ─────────► access_end
 *
 * A process may act under its map as long as it has the lease (coord/lease.h), because other
 * processes wait for it before they use a newer map. Without the lease no write begins. A read is
 * proved by the log instead (shard/proof.h).
 *
 * Any thread may call these functions. */
#ifndef SHARD_ACCESS_H
#define SHARD_ACCESS_H

#include "coord/lease.h"
#include "shard/proof.h"
#include "shard/sharded.h"

/* What the requests of one bucket share. Borrowed. */
struct access_rules {
    struct sharded *bucket;
    struct lease *lease; /* NULL: no other process serves the bucket */
    struct shard_proof *proof;
};

struct access {
    const struct access_rules *rules;
    struct pass pass;
    uint64_t lease; /* the number of the lease, if the request began under one: */
    bool leased;
};

/* Takes a pass for the key, and the lease. Errors are those of pass_take(); ERR_STORE: a write
 * cannot begin, because the process has no lease. */
int access_begin(struct access *out, const struct access_rules *r, struct str key,
                 enum pass_use use, struct err *err) MUST_CHECK;
/* The same for a call of a listing: a read of the first key above `after`, and of all keys that
 * follow it in its segment, which out->pass.window names. */
int access_begin_after(struct access *out, const struct access_rules *r, struct str after,
                       struct err *err) MUST_CHECK;
/* Called when the answer of a read has begun, and before anything of it is passed on. ERR_AGAIN:
 * the answer may be that of a shard that did not own the key any more; the caller calls
 * access_end() and does the request again. */
int access_head(struct access *x, struct err *err) MUST_CHECK;
/* Called when a write was answered. ERR_STORE: the lease has ended meanwhile. The write may be lost
 * then, and must not be acknowledged. */
int access_wrote(const struct access *x, struct err *err) MUST_CHECK;
void access_end(struct access *x); /* also after a failed access_begin() */

#endif
