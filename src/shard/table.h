/* The requests of one process that are under way in a sharded bucket, and the map that they obey.
 *
 * A request takes a *pass* for its key (or for the window of a listing's call) before it looks up
 * who owns the key, and gives the pass back when it has ended (H4). A pass names the shard to ask.
 * A request whose key is closed waits for it to open.
 *
 *     request          pass_take ──► the shard's bucket ──► pass_head ──► pass_leave
 *     mover            table_install(closed map) ──► table_drained() ──► compare, hand over, commit
 *                      ──► table_install(next map): those who wait go on
 *
 * A process *holds* map n when it has installed n and nothing that overlaps n's closed window and
 * was taken under an older map is left (H5): writes until they have ended, reads until pass_head().
 *
 * Passes are in stripes by the hash of their key, so that taking one is a lock, a link and an
 * unlock. Each stripe has the map that its passes obey, guarded by the stripe's lock, and a pass
 * borrows that map: no counter is shared by all requests. table_install() changes the map of one
 * stripe after the other.
 *
 *   T1  A pass is linked in its stripe in the same step in which it gets the stripe's map. So when
 * a map was installed in a stripe, every pass under an older map is in the stripe's list, and every
 * later pass obeys the new map. T2  A thread that waits for a closed key has no pass. A caller that
 * holds a pass and takes another one may hold up the mover until PASS_PATIENCE_MS; pass_take_all()
 * does not.
 *
 * Any thread may call these functions. A pass may be left by another thread than took it. */
#ifndef SHARD_TABLE_H
#define SHARD_TABLE_H

#include "base/list.h"
#include "shard/map.h"

#include <stdatomic.h>

enum {
    PASS_WAIT_MS = 10000,    /* how long a request waits for a closed key, then it is ERR_BUSY */
    PASS_PATIENCE_MS = 2000, /* after that, its waiting opens the window (H11) */
    PASS_KEYS_MAX = 1000,
    NOTES_MAX = 4000, /* keys that are noted in an announced window */
};

struct shard_table;
struct table_map;

enum pass_use { PASS_READ, PASS_WRITE };

/* One request under way. The caller provides the memory; all members are the table's. */
struct pass {
    struct list node;
    struct shard_table *table;
    const struct shard_map *map; /* under which the pass was taken; borrowed until it is left */
    struct table_map *held;
    struct shard_window window; /* for a key: only upto, which is the key */
    size_t segment;             /* of the map, that has the key or the window */
    uint64_t since_ns;          /* clock_mono_ns() */
    enum pass_use use;
    bool is_window;
    _Atomic(bool) has_head;
    unsigned stripe;
};

/* Called, without a lock, by a thread that has waited PASS_PATIENCE_MS for a closed window: opens
 * the window if `number` is still the number of the newest map. One thread at a time calls it, and
 * after a call that opened nothing it is called again PASS_PATIENCE_MS later. NULL: nobody opens
 * the window. */
typedef void table_open_fn(void *ctx, uint64_t number);

struct shard_table *table_new(struct shard_map *first, table_open_fn *open, void *ctx);
void table_free(struct shard_table *t); /* no pass may be left */

/* Returns a reference to the newest installed map. Requests use the map of their pass instead,
 * which costs less. */
struct shard_map *table_map(struct shard_table *t);
/* Replaces PASS_WAIT_MS and PASS_PATIENCE_MS, for tests. Called before the table is used. */
void table_set_times(struct shard_table *t, uint64_t wait_ms, uint64_t patience_ms);
/* Returns how many threads wait for a closed key. */
unsigned table_waiting(struct shard_table *t);

/* Returns how often requests have waited for a closed key, and how many of them were refused
 * because it stayed closed. */
void table_waits(struct shard_table *t, uint64_t *waits, uint64_t *refusals);

/* --- requests --- */

/* Takes a pass for a key. The key must stay valid until the pass is left. `may_wait` false:
 * ERR_AGAIN instead of waiting. ERR_BUSY: the key stayed closed. ERR_CONFLICT: the bucket is
 * being deleted (SHARD_DELETING). ERR_NO_BUCKET: the bucket is not sharded any more (SHARD_PLAIN);
 * the caller looks its name up anew. */
int pass_take(struct shard_table *t, struct str key, enum pass_use use, bool may_wait,
              struct pass *out, struct err *err) MUST_CHECK;
/* Takes passes for several keys as one step: while one of them is closed, none is taken. All get
 * the same map. At most PASS_KEYS_MAX keys. */
int pass_take_all(struct shard_table *t, const struct str *keys, size_t count, enum pass_use use,
                  struct pass *out, struct err *err) MUST_CHECK;
/* Takes a read pass for the keys above `after`, up to the end of the segment that has the first of
 * them; out->window says which keys these are. `after` must stay valid until the pass is left. */
int pass_take_after(struct shard_table *t, struct str after, struct pass *out,
                    struct err *err) MUST_CHECK;
/* Says that a read's answer has begun: its result is fixed. */
void pass_head(struct pass *p);
void pass_leave(struct pass *p); /* a pass that was not taken, or was left, is fine */
static inline const struct shard_place *pass_place(const struct pass *p)
{
    return map_place_at(p->map, p->segment);
}

/* --- the mover, and whoever reads the log --- */

/* Makes this the map that later passes obey, if its number is above that of the present map, and
 * wakes those who wait. Takes a reference of its own. Returns whether it was installed. */
bool table_install(struct shard_table *t, struct shard_map *m);
/* Whether nothing is left that overlaps the present map's closed window and was taken under an
 * older map. If `number` is not that of the present map, false. */
bool table_drained(struct shard_table *t, uint64_t number);
/* Waits until table_drained(), at most until the deadline (clock_mono_ns()). */
bool table_drain(struct shard_table *t, uint64_t number, uint64_t deadline_ns);
/* Returns the smallest key in the window that a pass older than `age_ns` keeps busy: a write, or a
 * read without a head. Of a listing it is the first key that the listing may see. The key is in the
 * arena; empty: there is none. The mover ends its window below that key. */
struct str table_smallest_busy(struct shard_table *t, const struct shard_window *w, uint64_t age_ns,
                               struct arena *a);

#endif
