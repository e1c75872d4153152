/* A bucket in front of another one: it counts what goes through, plays a storage that wants to know
 * lengths or copies no parts, and fails at a chosen call. */
#ifndef TESTS_UNIT_ARCHIVE_WATCHED_BUCKET_H
#define TESTS_UNIT_ARCHIVE_WATCHED_BUCKET_H

#include "object/bucket.h"

enum watched_fault {
    WATCHED_FAILS,      /* the call does nothing, and fails with ERR_UNAVAILABLE */
    WATCHED_FAILS_LATE, /* the call does its work, and then fails */
    WATCHED_KILLS,      /* the process is killed before the call */
    WATCHED_KILLS_LATE, /* the process is killed behind the call */
};

struct watched_bucket {
    struct bucket bucket; /* what the code under test gets */
    struct bucket *inner; /* borrowed */
    bool copies_no_parts;
    unsigned fail_at; /* the call, from 1, that has the fault; 0: none */
    enum watched_fault fault;
    uint64_t cut_at;  /* the connection breaks when this many bytes were read; 0: never */
    unsigned calls;   /* calls that change something */
    uint64_t read;    /* bytes that were read */
    uint64_t written; /* bytes of puts and parts that came in */
    unsigned parts, copies;
};

/* `any_length`: bodies of unknown length are taken (STORAGE_ANY_LENGTH). */
void watched_bucket_init(struct watched_bucket *w, struct bucket *inner, bool any_length);

#endif
