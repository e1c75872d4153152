/* The keys that data keys are wrapped with: one file, a line a key (docs/encryption.md, "Keys").
 *
 * What was read stays in memory until the file changes; keys are only ever added. Any thread. */
#ifndef META_KEYRING_H
#define META_KEYRING_H

#include "object/sealed.h"

enum {
    KEYRING_NAME_MAX = 200,
    KEYRING_ID_MAX = 32,
    KEYRING_MAX = 4096, /* keys of one file */
    KEYRING_FILE_MAX = 2 * 1024 * 1024,
};

#define KEYRING_MASTER  STR("sse-s3") /* wraps for SSE-S3 */
#define KEYRING_DEFAULT STR("aws/s3") /* for SSE-KMS when no key is named */

struct ring_key {
    char id[KEYRING_ID_MAX + 1];
    struct sealed_key key; /* wipe it after use */
};

struct keyring;

/* Nothing is read yet; a file that is not there holds no keys. */
struct keyring *keyring_new(const char *path);
void keyring_free(struct keyring *k); /* overwrites the keys; NULL is fine */

/* The key of this name for new objects, as the file is now. With `make` one that is not there is
 * made, durable on return (E4). ERR_NOT_FOUND. ERR_DENIED: others than its owner may read the file.
 * ERR_CORRUPT: a line that cannot be understood. Waits for the disk. */
int keyring_current(struct keyring *k, struct str name, bool make, struct ring_key *out,
                    struct err *err) MUST_CHECK;

/* The key that something was wrapped with. ERR_CORRUPT, with words that name key and file: it is
 * not there. ERR_AGAIN: the file would have to be read, and `may_wait` is not set. */
int keyring_find(struct keyring *k, struct str name, struct str id, bool may_wait,
                 struct ring_key *out, struct err *err) MUST_CHECK;

#endif
