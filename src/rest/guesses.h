/* Keys that a request sends by HTTP Basic (RFC 7617), and a limit on guessing them.
 *
 * Guessing is limited by token buckets. Wrong keys remove a token from the bucket of the caller's
 * address. While the bucket is empty, requests from the address are refused without checking their
 * keys. So an attacker has GUESSES_BURST tries and then one a second, and no thread waits. Any
 * thread may call these functions. */
#ifndef REST_GUESSES_H
#define REST_GUESSES_H

#include "base/hash.h"
#include "base/str.h"
#include "os/sock.h"

#include <stdatomic.h>

enum { GUESSES_BURST = 10, GUESSES_REFILL_MS = 1000, GUESSES_BUCKETS = 4096 };

struct guesses {
    struct hash_key key;
    /* For each token bucket: when it will be full again, by clock_mono_ms(). A hash of the caller's
     * address, with a secret key, chooses the bucket. So memory is bounded, and an attacker cannot
     * find an address that shares a bucket with a chosen address. */
    _Atomic(uint64_t) full_at[GUESSES_BUCKETS];
    _Atomic(uint64_t) failures; /* wrong guesses */
};

void guesses_init(struct guesses *g);
/* Whether keys from this address may be checked. */
bool guesses_allowed(struct guesses *g, const struct sock_addr *peer, uint64_t now_mono_ms);
/* Counts wrong keys that came from this address. */
void guesses_count(struct guesses *g, const struct sock_addr *peer, uint64_t now_mono_ms);

/* Compares secrets. The time depends only on the length of `real`, even if `given` is empty. */
bool guesses_same(struct str real, struct str given);

enum { BASIC_MAX = 512 };
/* The keys of a header "Basic <base64>". They are secret, so basic_release() overwrites them. */
struct basic {
    char text[BASIC_MAX];
    struct str user, password; /* point into `text` */
};
/* Returns false when the header has another form. */
bool basic_read(struct basic *out, struct str header);
void basic_release(struct basic *b);

#endif
