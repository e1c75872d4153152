/* Who may call the API: HTTP Basic with an administrator's keys, compared in constant time. Wrong
 * keys cost the caller's address a token of a bucket; without tokens it is refused unheard. So a
 * guesser gets AUTH_BURST tries and then one a second, and no thread waits for that. Any thread. */
#ifndef API_AUTH_H
#define API_AUTH_H

#include "api/credentials.h"
#include "base/hash.h"
#include "os/sock.h"

#include <stdatomic.h>

enum { AUTH_BURST = 10, AUTH_REFILL_MS = 1000, AUTH_BUCKETS = 4096 };

struct auth {
    const struct credentials *admin; /* borrowed */
    struct hash_key key;
    /* When the bucket will be full again, in clock_mono_ms(). Addresses share a bucket by a keyed
     * hash: memory is bounded, and nobody can choose whose bucket to empty. */
    _Atomic(uint64_t) full_at[AUTH_BUCKETS];
    _Atomic(uint64_t) failures;
};

void auth_init(struct auth *a, const struct credentials *admin);

/* `header` is the Authorization header, empty when there was none. 0; ERR_DENIED: no or wrong keys;
 * ERR_BUSY: too many wrong ones from this address. */
int auth_check(struct auth *a, struct str header, const struct sock_addr *peer,
               uint64_t now_mono_ms) MUST_CHECK;

/* "Basic ..." for a client, appended. */
void auth_header(const struct credentials *c, struct buf *out);

#endif
