/* Who may call the API: HTTP Basic with any administrator's keys, the secret compared in constant
 * time, also when there is nothing to compare it with. Wrong keys cost the caller's address a token
 * of a bucket; without tokens it is refused unheard. So a guesser gets AUTH_BURST tries and then
 * one a second, and no thread waits for that. Any thread. */
#ifndef API_AUTH_H
#define API_AUTH_H

#include "conf/credentials.h"
#include "base/hash.h"
#include "os/sock.h"

#include <stdatomic.h>

struct users;

enum { AUTH_BURST = 10, AUTH_REFILL_MS = 1000, AUTH_BUCKETS = 4096 };

struct auth {
    const struct credentials *admin; /* the first one; borrowed */
    struct users *users;             /* the others; borrowed */
    struct hash_key key;
    /* When the bucket will be full again, in clock_mono_ms(). Addresses share a bucket by a keyed
     * hash: memory is bounded, and nobody can choose whose bucket to empty. */
    _Atomic(uint64_t) full_at[AUTH_BUCKETS];
    _Atomic(uint64_t) failures;
};

/* `users` NULL: the first administrator alone. */
void auth_init(struct auth *a, const struct credentials *admin, struct users *users);

/* `header` is the Authorization header, empty when there was none. 0; ERR_DENIED: no keys, wrong
 * ones, or those of a user who is no administrator; ERR_BUSY: too many wrong ones from this
 * address; ERR_UNAVAILABLE: the users could not be loaded yet. Does not wait. */
int auth_check(struct auth *a, struct str header, const struct sock_addr *peer,
               uint64_t now_mono_ms) MUST_CHECK;

/* The same for a token that a storage shows: in the header as "Bearer <token>" or as the password
 * of "Basic ...", or elsewhere (`shown`; empty: nowhere). 0, ERR_DENIED, ERR_BUSY. */
int auth_check_token(struct auth *a, struct str real, struct str header, struct str shown,
                     const struct sock_addr *peer, uint64_t now_mono_ms) MUST_CHECK;

#endif
