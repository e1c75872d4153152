/* Which names buckets and which keys objects may have. */
#ifndef S3_GATEWAY_BUCKET_NAME_H
#define S3_GATEWAY_BUCKET_NAME_H

#include "meta/error.h"

enum { S3_KEY_MAX = 1024, S3_BUCKET_MAX = 255 /* bytes of a name in a request */ };

/* Whether a new bucket may have the name. It needs 3 to 63 characters of a-z, 0-9, '.' and '-', a
 * letter or digit at both ends, no two dots in a row and no dot beside a dash. It must not be an
 * IPv4 address, and must have none of the prefixes and suffixes that S3 reserves.
 * InvalidBucketName. */
int bucket_name_check(struct str name, struct err *err) MUST_CHECK;

/* The bucket that a request names in its path or host, or as the source of a copy. `text` is
 * decoded. Storages have buckets that S3 would not make today, so more is allowed than by
 * bucket_name_check(): 1 to S3_BUCKET_MAX characters of A-Z, a-z, 0-9, '.', '-' and '_', but not
 * "." and "..", which are steps in a path. Everything else is InvalidBucketName, because a storage
 * might read another bucket, or a key, out of it (docs/forward.md, F13). Ceph's ":name" is `name`,
 * since weir's names have no tenants. */
int bucket_name_read(struct str *out, struct str text, struct err *err) MUST_CHECK;
bool bucket_name_fits(struct str name); /* can a request name it? */

/* Whether an object may have the key: 1 to S3_KEY_MAX bytes of UTF-8 without NUL. KeyTooLongError;
 * InvalidURI; InvalidArgument: the key is empty. */
int object_key_check(struct str key, struct err *err) MUST_CHECK;

#endif
