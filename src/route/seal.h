/* Secrets at rest: AES-256-GCM under the data folder's key file.
 *
 * A sealed text is hex of nonce (12 bytes, random), ciphertext and tag (16). What it belongs to is
 * authenticated with it, so that a sealed secret moved to another place does not open. Any thread.
 */
#ifndef ROUTE_SEAL_H
#define ROUTE_SEAL_H

#include "base/buf.h"
#include "base/err.h"

enum { SEAL_KEY_LEN = 32, SEAL_PLAIN_MAX = 512 };

struct seal_key {
    unsigned char bytes[SEAL_KEY_LEN];
};

/* Reads the key file; one that is absent is made (mode 0600, durable), *made says so. ERR_CORRUPT:
 * it does not hold 32 bytes; ERR_DENIED: others than its owner may read it. */
int seal_key_open(struct seal_key *out, const char *path, bool *made, struct err *err) MUST_CHECK;
void seal_key_release(struct seal_key *key); /* overwrites it */

/* Appends to *out. */
void seal(const struct seal_key *key, struct str owner, struct str plain, struct buf *out);
/* Appends to *out. ERR_CORRUPT: not sealed with this key for this owner. */
int unseal(const struct seal_key *key, struct str owner, struct str sealed,
           struct buf *out) MUST_CHECK;

/* The same of any length up to 2 GiB, and as bytes instead of hex. */
void seal_whole(const struct seal_key *key, struct str owner, struct str plain, struct buf *out);
int unseal_whole(const struct seal_key *key, struct str owner, struct str sealed,
                 struct buf *out) MUST_CHECK;

#endif
