/* Decides who may call the API: a client that sends the keys of any administrator by HTTP Basic.
 * Secrets are compared in constant time, even if the access key does not exist. Guessing is limited
 * (rest/guesses.h). Any thread may call these functions. */
#ifndef API_AUTH_H
#define API_AUTH_H

#include "conf/credentials.h"
#include "rest/guesses.h"

struct users;

struct auth {
    const struct credentials *admin; /* keys of the first administrator; borrowed */
    /* Has the keys of other administrators; borrowed; may be NULL. */
    struct users *users;
    struct guesses guesses;
};

/* Sets up the check of keys. If `users` is NULL, only the first administrator may call the API. */
void auth_init(struct auth *a, const struct credentials *admin, struct users *users);

/* Checks that the request has an administrator's keys. `header` is the Authorization header; empty:
 * the request has none. ERR_DENIED: no keys, wrong keys, or keys of a user who is not an
 * administrator. ERR_BUSY: too many wrong keys from this address. ERR_UNAVAILABLE: the users have
 * not been loaded yet. Does not wait. */
int auth_check(struct auth *a, struct str header, const struct sock_addr *peer,
               uint64_t now_mono_ms) MUST_CHECK;

/* Checks the token in a storage's request, which must equal `real`. If the request has an
 * Authorization header, the token is in the header, as "Bearer <token>" or as the password of
 * "Basic ...". Otherwise the token is `shown`, which may be empty. Returns 0, ERR_DENIED or
 * ERR_BUSY, as auth_check() does. */
int auth_check_token(struct auth *a, struct str real, struct str header, struct str shown,
                     const struct sock_addr *peer, uint64_t now_mono_ms) MUST_CHECK;

#endif
