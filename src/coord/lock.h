/* Locks in the store. A lock is a key with a random token as its value and with a time to live,
 * which is renewed while the lock is held (docs/replication.md, C1 and C2). The locks of
 * replication are in lockDB, and the names of their keys are those of Chorus, a replication proxy
 * for S3. A room may have locks of its own in another database. Any thread may call these
 * functions; a struct lock is used by one thread at a time, except that any thread may call
 * lock_held(). */
#ifndef COORD_LOCK_H
#define COORD_LOCK_H

#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

struct locks;

struct locks_options {
    struct store *store; /* the database of the locks; borrowed */
    uint64_t ttl_ms;     /* time to live of a lock; 0: 10,000 */
    const struct log *log;
};
/* Starts a thread that renews all held locks, every third of their time to live. */
int locks_open(struct locks **out, const struct locks_options *o, struct err *err) MUST_CHECK;
void locks_close(struct locks *l); /* no lock may be held */

/* These functions append the key of a lock to `out`, with the parts of the key escaped. */
void lock_key_object(struct buf *out, struct str storage, struct str bucket, struct str object);
void lock_key_bucket(struct buf *out, struct str storage, struct str bucket);
void lock_key_user(struct buf *out, struct str storage, struct str user);

struct lock;
/* Takes the lock `key`. ERR_BUSY: another holder has the lock. */
int lock_take(struct lock **out, struct locks *l, struct str key, struct err *err) MUST_CHECK;
/* Like lock_take(), but waits up to `wait_ms` for the lock. */
int lock_wait(struct lock **out, struct locks *l, struct str key, uint64_t wait_ms,
              struct err *err) MUST_CHECK;
/* Takes several locks in one step. out[i] is NULL where another holder has the lock. */
enum { LOCKS_MAX = 64 };
int lock_take_many(struct lock **out, struct locks *l, const struct str *keys, size_t count,
                   struct err *err) MUST_CHECK;
/* Makes a struct lock for a key that a script has just set to `token`, with the time to live of
 * these locks. From now on the key is renewed like the keys of other held locks. `since_ns` is
 * clock_mono_ns() of the moment before the script was sent. ERR_INVALID: the token is empty or
 * longer than LOCK_TOKEN_MAX. */
enum { LOCK_TOKEN_MAX = 79 };
int lock_adopt(struct lock **out, struct locks *l, struct str key, struct str token,
               uint64_t since_ns, struct err *err) MUST_CHECK;
/* Returns whether the lock is still held. False: nine tenths of its time to live have passed, by
 * this process's clock, since the call was sent that took the lock or last renewed it; or a renewal
 * found another token in the store. Then the work under the lock must stop. The last tenth is for
 * clocks that do not run alike (C1). A single renewal that fails does not lose the lock. */
bool lock_held(const struct lock *lock);
struct str lock_key(const struct lock *lock);
/* Returns the lock's token, for scripts that check that the lock is held (C2). */
struct str lock_token(const struct lock *lock);
/* Releases and frees the lock. The key is removed from the store only if its value is this lock's
 * token. NULL is fine. */
void lock_release(struct lock *lock);
/* Frees the lock without touching its key: the key is not renewed any more and expires by itself.
 * NULL is fine. */
void lock_leave(struct lock *lock);
void lock_release_many(struct lock **locks, size_t count); /* at most LOCKS_MAX; some may be NULL */

#endif
