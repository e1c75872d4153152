/* Secrets at rest: AES-256-GCM under the data folder's key file.
 *
 * A sealed text is a random nonce of 12 bytes, the ciphertext and a tag of 16 bytes, in hex. The
 * *owner*, which names the place that the secret belongs to, is authenticated with the secret: a
 * sealed secret that was moved to another place cannot be opened. Any thread may call these
 * functions. */
#ifndef ROUTE_SEAL_H
#define ROUTE_SEAL_H

#include "base/buf.h"
#include "base/err.h"

enum { SEAL_KEY_LEN = 32, SEAL_PLAIN_MAX = 512 };

struct seal_key {
    unsigned char bytes[SEAL_KEY_LEN];
};

/* Reads the key file. A missing file is made (mode 0600, durable), and *made is then true.
 * ERR_CORRUPT: the file does not hold 32 bytes. ERR_DENIED: users other than its owner may read the
 * file. */
int seal_key_open(struct seal_key *out, const char *path, bool *made, struct err *err) MUST_CHECK;
void seal_key_release(struct seal_key *key); /* overwrites the key */

/* Appends the sealed text to *out. */
void seal(const struct seal_key *key, struct str owner, struct str plain, struct buf *out);
/* Appends the plain text to *out. ERR_CORRUPT: the text was not sealed with this key for this
 * owner. */
int unseal(const struct seal_key *key, struct str owner, struct str sealed,
           struct buf *out) MUST_CHECK;

/* Like seal() and unseal(), but for texts of up to 2 GiB. The sealed form is raw bytes, not hex. */
void seal_whole(const struct seal_key *key, struct str owner, struct str plain, struct buf *out);
int unseal_whole(const struct seal_key *key, struct str owner, struct str sealed,
                 struct buf *out) MUST_CHECK;

#endif
