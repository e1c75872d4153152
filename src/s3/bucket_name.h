/* Which names S3 gives to buckets, and which keys to objects. */
#ifndef S3_BUCKET_NAME_H
#define S3_BUCKET_NAME_H

#include "s3/error.h"

enum { S3_KEY_MAX = 1024 /* bytes */ };

/* InvalidBucketName: 3 to 63 of a-z, 0-9, '.' and '-'; letter or digit at both ends; no two dots
 * and no dot beside a dash; not an IPv4 address; none of the prefixes and suffixes that S3 keeps
 * for itself. */
int bucket_name_check(struct str name, struct err *err) MUST_CHECK;

/* 1 to S3_KEY_MAX bytes of UTF-8 without NUL: KeyTooLongError, InvalidURI, or InvalidArgument for
 * the empty key. */
int object_key_check(struct str key, struct err *err) MUST_CHECK;

#endif
