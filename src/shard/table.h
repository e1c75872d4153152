/* The requests of one process that are under way in a sharded bucket, and the map that they obey.
 *
 * A request takes a *pass* for its key (a call of a listing takes one for a window of keys) before
 * it looks up the owner of the key, and gives the pass back when it has ended (H4). A pass names
 * the shard to ask. A request whose key is closed waits for it to open.
 *
 *     request          pass_take ──► the shard's bucket ──► pass_head ──► pass_leave
 *     mover            table_install(closed map) ──► table_drained() ──► compare, hand over, commit
 *                      ──► table_install(next map): those who wait go on
 *
 * A process *holds* map n when it has installed n, and no pass is left that was taken under an
 * older map and overlaps n's closed window (H5). The pass of a write counts until the write has
 * ended, the pass of a read until pass_head().
 *
 * Passes are in stripes by the hash of their key, so that taking one is a lock, a link and an
 * unlock. Each stripe has the map that its passes obey, guarded by the stripe's lock, and a pass
 * borrows that map: no counter is shared by all requests. table_install() changes the map of one
 * stripe after the other.
 *
 *   T1  A pass is linked in its stripe in the same step in which it gets the stripe's map. So when
 *       a map was installed in a stripe, every pass under an older map is in the stripe's list, and
 *       every later pass obeys the new map.
 *   T2  A thread that waits for a closed key has no pass. A caller that holds a pass and takes
 *       another one may hold up the mover until PASS_PATIENCE_MS; pass_take_all() does not.
 *
 * Any thread may call these functions. A pass may be left by another thread than took it. */
#ifndef SHARD_TABLE_H
#define SHARD_TABLE_H

#include "base/list.h"
#include "shard/map.h"

#include <stdatomic.h>

enum {
    PASS_WAIT_MS = 10000,    /* how long a request waits for a closed key before it fails with
                                ERR_BUSY */
    PASS_PATIENCE_MS = 2000, /* how long a request waits before it opens the window itself (H11) */
    PASS_KEYS_MAX = 1000,
};

struct shard_table;
struct table_map;

enum pass_use { PASS_READ, PASS_WRITE };

/* One request under way. The caller provides the memory, but only the table uses the members. */
struct pass {
    struct list node;
    struct shard_table *table;
    const struct shard_map *map; /* the map under which the pass was taken; borrowed until
                                    pass_leave() */
    struct table_map *held;
    struct shard_window window; /* for a key only `upto` is set, which is the key */
    size_t segment;             /* index of the map's segment that has the key or the window */
    uint64_t since_ns;          /* clock_mono_ns() time at which the pass was taken */
    enum pass_use use;
    bool is_window;
    _Atomic(bool) has_head;
    unsigned stripe;
};

/* Opens a closed window, if `number` is still the number of the newest map. Called without a
 * lock, by a thread that has waited PASS_PATIENCE_MS for the window; by one thread at a time. If
 * the call opened nothing, it is repeated PASS_PATIENCE_MS later. NULL: no thread opens windows
 * in this way. */
typedef void table_open_fn(void *ctx, uint64_t number);

struct shard_table *table_new(struct shard_map *first, table_open_fn *open, void *ctx);
void table_free(struct shard_table *t); /* no pass may be left */

/* Returns a reference to the newest installed map. Requests use the map of their pass instead,
 * because that is cheaper. */
struct shard_map *table_map(struct shard_table *t);
/* Replaces PASS_WAIT_MS and PASS_PATIENCE_MS, for tests. Called before the table is used. */
void table_set_times(struct shard_table *t, uint64_t wait_ms, uint64_t patience_ms);
/* Returns how many threads wait for a closed key. */
unsigned table_waiting(struct shard_table *t);

/* Returns how many requests have waited for a closed key, and how many of them were refused because
 * the key stayed closed. */
void table_waits(struct shard_table *t, uint64_t *waits, uint64_t *refusals);

/* --- requests --- */

/* Takes a pass for a key. The key must stay valid until the pass is given back. `may_wait` false:
 * the call fails with ERR_AGAIN where it would wait. ERR_BUSY: the key stayed closed. ERR_CONFLICT:
 * the bucket is being deleted (SHARD_DELETING). ERR_NO_BUCKET: the bucket is not sharded any more
 * (SHARD_PLAIN), and the caller opens it under its name again. */
int pass_take(struct shard_table *t, struct str key, enum pass_use use, bool may_wait,
              struct pass *out, struct err *err) MUST_CHECK;
/* Takes passes for several keys (at most PASS_KEYS_MAX) in one step: all under the same map, and
 * none while one of the keys is closed. */
int pass_take_all(struct shard_table *t, const struct str *keys, size_t count, enum pass_use use,
                  struct pass *out, struct err *err) MUST_CHECK;
/* Takes a read pass for the first key above `after` and all keys that follow it in its segment.
 * out->window says which keys these are. `after` must stay valid until the pass is given back. */
int pass_take_after(struct shard_table *t, struct str after, struct pass *out,
                    struct err *err) MUST_CHECK;
/* Says that the answer of a read has begun, so that later changes cannot affect its result. */
void pass_head(struct pass *p);
void pass_leave(struct pass *p); /* also for a pass that was not taken, or was given back already */
static inline const struct shard_place *pass_place(const struct pass *p)
{
    return map_place_at(p->map, p->segment);
}

/* --- for the mover, and for code that reads the log --- */

/* Installs the map, if its number is above that of the current map, and wakes waiting threads.
 * Later passes obey the new map. Takes a reference of its own. Returns whether the map was
 * installed. */
bool table_install(struct shard_table *t, struct shard_map *m);
/* Whether this process holds map `number` (see above). False if another map is the current one. */
bool table_drained(struct shard_table *t, uint64_t number);
/* Waits until table_drained() would return true, or another map is the current one, or the deadline
 * (clock_mono_ns()) has passed. Returns what table_drained() would return then. */
bool table_drain(struct shard_table *t, uint64_t number, uint64_t deadline_ns);
/* Waits until a map other than map `number` is the current one, or until the deadline. */
void table_await(struct shard_table *t, uint64_t number, uint64_t deadline_ns);
/* Returns the smallest key of the window for which a pass older than `age_ns` exists: that of a
 * write, or that of a read before pass_head(). For the pass of a listing, this is the first key
 * that the listing may return. The key is in the arena; empty: there is none. The mover ends its
 * window below that key. */
struct str table_smallest_busy(struct shard_table *t, const struct shard_window *w, uint64_t age_ns,
                               struct arena *a);

#endif
