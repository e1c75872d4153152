/* Who may call the API: a caller that shows any administrator's keys by HTTP Basic. Secrets are
 * compared in constant time, also when the access key is not known.
 *
 * Guessing is limited by token buckets. Wrong keys take a token out of the bucket of the caller's
 * address; while the bucket is empty, the address is refused without a look at its keys. So a
 * guesser has AUTH_BURST tries and then one a second, and no thread waits for that. Any thread may
 * call. */
#ifndef API_AUTH_H
#define API_AUTH_H

#include "conf/credentials.h"
#include "base/hash.h"
#include "os/sock.h"

#include <stdatomic.h>

struct users;

enum { AUTH_BURST = 10, AUTH_REFILL_MS = 1000, AUTH_BUCKETS = 4096 };

struct auth {
    const struct credentials *admin; /* keys of the first administrator; borrowed */
    struct users *users;             /* for the keys of the others; borrowed */
    struct hash_key key;
    /* When each bucket will be full again, in clock_mono_ms(). A keyed hash of the address chooses
     * its bucket: memory is bounded, and nobody can choose whose bucket to empty. */
    _Atomic(uint64_t) full_at[AUTH_BUCKETS];
    _Atomic(uint64_t) failures;
};

/* `users` NULL: only the first administrator may call. */
void auth_init(struct auth *a, const struct credentials *admin, struct users *users);

/* `header` is the Authorization header; empty: the request has none. 0: an administrator's keys.
 * ERR_DENIED: no keys, wrong keys, or keys of a user who is no administrator. ERR_BUSY: too many
 * wrong keys from this address. ERR_UNAVAILABLE: the users have not been loaded yet. Does not wait.
 */
int auth_check(struct auth *a, struct str header, const struct sock_addr *peer,
               uint64_t now_mono_ms) MUST_CHECK;

/* As auth_check(), for a token that a storage sends, which must be `real`. The header has it as
 * "Bearer <token>" or as the password of "Basic ..."; `shown` is one from elsewhere, or empty. 0,
 * ERR_DENIED, ERR_BUSY. */
int auth_check_token(struct auth *a, struct str real, struct str header, struct str shown,
                     const struct sock_addr *peer, uint64_t now_mono_ms) MUST_CHECK;

#endif
