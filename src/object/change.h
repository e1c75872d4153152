/* The names of the things that a change can change. All of weir uses them, from the table of S3
 * operations down to rows on disk.
 *
 * A *thing* is a part of a bucket that is compared and copied by itself; each has a version vector
 * of its own (coord/version.h). There are six kinds of things. A *change* is a set of bits: the
 * things that the change has changed and, where a reader needs it, how. Stored tasks and journals
 * hold the numbers below CHANGE_PUT, so those numbers never change. */
#ifndef OBJECT_CHANGE_H
#define OBJECT_CHANGE_H

enum thing_kind {
    THING_OBJECT = 1, /* an object's bytes, headers and lock: all but its tags and access list */
    THING_OBJECT_TAGS = 2,
    THING_OBJECT_ACL = 4,
    THING_BUCKET = 8, /* a bucket's settings: all but its tags and access list */
    THING_BUCKET_TAGS = 16,
    THING_BUCKET_ACL = 32,
    THINGS_OF_OBJECT = THING_OBJECT | THING_OBJECT_TAGS | THING_OBJECT_ACL,
    THINGS_OF_BUCKET = THING_BUCKET | THING_BUCKET_TAGS | THING_BUCKET_ACL,

    /* How a bucket changed. Each of these bits implies a change of THING_BUCKET, whose own bit is
     * not set. */
    CHANGE_BUCKET_MADE = 64,
    CHANGE_BUCKET_GONE = 128,

    /* How an object changed, in addition to the bits of its things. Only storages with
     * STORAGE_TELLS_CHANGES report this. None of these three bits: the meta of a version was
     * changed. */
    CHANGE_PUT = 256,     /* a version was made */
    CHANGE_MARKER = 512,  /* a delete marker was made */
    CHANGE_REMOVED = 1024 /* a version or a marker was removed for good */
};

#endif
