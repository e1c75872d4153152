/* A shelf as a struct bucket, for code that works on any bucket (archive/bundle.h).
 *
 * The bucket has the calls that bundles need: head, get, put, the calls of uploads, and the parts
 * of an object. All of them go through the shelf, which finds the satellite, encrypts, announces
 * changes to replication, and checks the lock. Bodies that are read are decrypted. A read may have
 * one condition, if_match with one ETag, and cannot name a version. Only one upload may be under
 * way at a time.
 *
 * A shelf_bucket belongs to one thread, and the shelf must outlive it. It needs no release. */
#ifndef ARCHIVE_SHELF_BUCKET_H
#define ARCHIVE_SHELF_BUCKET_H

#include "archive/shelf.h"

struct shelf_bucket {
    struct bucket bucket;
    struct shelf *shelf; /* borrowed */
    /* The upload that is under way, as shelf_upload_begin() described it. */
    struct upload_info upload;
};

/* Makes a bucket of the shelf. It has the capability STORAGE_ANY_LENGTH if the bucket on the
 * satellite exists and has it. The errors are those of a read of the shelf. */
int shelf_bucket_init(struct shelf_bucket *out, struct shelf *s, struct err *err) MUST_CHECK;

#endif
