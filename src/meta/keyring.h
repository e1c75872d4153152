/* The key file: the keys with which data keys are wrapped, one on each line (docs/encryption.md,
 * "Keys").
 *
 * The keys stay in memory until the file changes. Keys are added to the file, never removed. Any
 * thread may call. */
#ifndef META_KEYRING_H
#define META_KEYRING_H

#include "object/sealed.h"

enum {
    KEYRING_NAME_MAX = 200,
    KEYRING_ID_MAX = 32,
    KEYRING_MAX = 4096, /* most keys in one file */
    KEYRING_FILE_MAX = 2 * 1024 * 1024,
};

#define KEYRING_MASTER  STR("sse-s3") /* the key for SSE-S3 */
#define KEYRING_DEFAULT STR("aws/s3") /* the key for SSE-KMS when the request names none */

struct ring_key {
    char id[KEYRING_ID_MAX + 1];
    struct sealed_key key; /* overwrite it after use */
};

struct keyring;

/* Makes a keyring without reading the file yet. A file that does not exist holds no keys. */
struct keyring *keyring_new(const char *path);
void keyring_free(struct keyring *k); /* overwrites the keys; NULL is fine */

/* Copies the newest key of this name in the file to *out, for new objects. With `make` a missing
 * key is made, and is durable on return (docs/encryption.md, E4). ERR_NOT_FOUND: there is no such
 * key. ERR_DENIED: users other than the file's owner may read the file. ERR_CORRUPT: a line cannot
 * be understood. Waits for the disk. */
int keyring_current(struct keyring *k, struct str name, bool make, struct ring_key *out,
                    struct err *err) MUST_CHECK;

/* Copies the key of this name and id to *out, to open a data key that it wrapped. ERR_CORRUPT: the
 * file does not have the key; the message names key and file. ERR_AGAIN: the file must be read, and
 * `may_wait` is false. */
int keyring_find(struct keyring *k, struct str name, struct str id, bool may_wait,
                 struct ring_key *out, struct err *err) MUST_CHECK;

#endif
