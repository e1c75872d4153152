/* Checks which names buckets may have, and which keys objects may have. */
#ifndef S3_GATEWAY_BUCKET_NAME_H
#define S3_GATEWAY_BUCKET_NAME_H

#include "meta/error.h"

struct routes;

/* Limits in bytes: on a key, and on a bucket's name in a request. */
enum { S3_KEY_MAX = 1024, S3_BUCKET_MAX = 255 };

/* Checks the name of a new bucket. The name needs 3 to 63 characters of a-z, 0-9, '.' and '-', a
 * letter or digit at both ends, no two dots in a row and no dot beside a dash. It must not be an
 * IPv4 address, must have none of the prefixes and suffixes that S3 reserves, and must not be the
 * name of a shard (object/part_names.h). InvalidBucketName: the name breaks a rule. */
int bucket_name_check(struct str name, struct err *err) MUST_CHECK;

/* Reads the bucket's name from the decoded text of a request's path or host, or of the source of a
 * copy. Storages have buckets that S3 would not make today, so more is allowed than by
 * bucket_name_check(): 1 to S3_BUCKET_MAX characters of A-Z, a-z, 0-9, '.', '-' and '_', but not
 * "." and "..", which are steps in a path. Any other text is InvalidBucketName, because a storage
 * might take it for another bucket or for a key (docs/forward.md, F13). Ceph's ":name" is read as
 * `name`, because weir has no tenants. */
int bucket_name_read(struct str *out, struct str text, struct err *err) MUST_CHECK;
bool bucket_name_fits(struct str name); /* whether bucket_name_read() accepts the name */

/* Checks that an object of the bucket may have the key: UTF-8 without NUL of 1 to S3_KEY_MAX bytes,
 * or as many as the bucket's space allows (route/space.h); `routes` NULL: the bucket is in no
 * space. KeyTooLongError: the key is too long. InvalidURI: the key is not UTF-8, or has a NUL.
 * InvalidArgument: the key is empty. */
int object_key_check(struct str key, struct routes *routes, struct str bucket,
                     struct err *err) MUST_CHECK;

#endif
