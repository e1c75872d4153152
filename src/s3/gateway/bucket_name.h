/* Which names S3 gives to buckets, and which keys to objects. */
#ifndef S3_GATEWAY_BUCKET_NAME_H
#define S3_GATEWAY_BUCKET_NAME_H

#include "meta/error.h"

enum { S3_KEY_MAX = 1024, S3_BUCKET_MAX = 255 /* bytes; of a name that is asked for */ };

/* InvalidBucketName: 3 to 63 of a-z, 0-9, '.' and '-'; letter or digit at both ends; no two dots
 * and no dot beside a dash; not an IPv4 address; none of the prefixes and suffixes that S3 keeps
 * for itself. */
int bucket_name_check(struct str name, struct err *err) MUST_CHECK;

/* The bucket that a request asks for: in its path or host, or as the source of a copy. `text` is
 * decoded. Storages have buckets that S3 would not make today, so this takes more than
 * bucket_name_check(): 1 to S3_BUCKET_MAX of A-Z, a-z, 0-9, '.', '-' and '_'; not "." and "..",
 * which are steps in a path. Everything else is InvalidBucketName: a storage might read another
 * bucket, or a key, out of it (docs/forward.md, F13). Ceph's ":name" is `name`: weir's names have
 * no tenants. */
int bucket_name_read(struct str *out, struct str text, struct err *err) MUST_CHECK;
bool bucket_name_fits(struct str name); /* can it be asked for? */

/* 1 to S3_KEY_MAX bytes of UTF-8 without NUL: KeyTooLongError, InvalidURI, or InvalidArgument for
 * the empty key. */
int object_key_check(struct str key, struct err *err) MUST_CHECK;

#endif
