/* A bucket that lies over others (its parts), split by key range: what the fakes of a space and of
 * an overlay give. Its `storage` is NULL. */
#ifndef TESTS_UNIT_OBJECT_FAKE_BUCKET_H
#define TESTS_UNIT_OBJECT_FAKE_BUCKET_H

#include "object/bucket.h"

enum { FAKE_PARTS_MAX = 2 };

struct fake_parts {
    struct bucket *buckets[FAKE_PARTS_MAX]; /* references that the fake takes over */
    size_t count;
    struct str bound;     /* keys from this one on are in the second part */
    struct storage *home; /* of the fake */
    unsigned can;         /* capabilities of the fake */
    bool tells;           /* change_notes are passed on to the parts */
};

/* A reference. */
struct bucket *fake_bucket_new(struct str name, const struct fake_parts *parts);
/* The part of a fake bucket that holds the key; any other bucket is its own part. Borrowed. */
struct bucket *fake_bucket_part(struct bucket *b, struct str key);

#endif
