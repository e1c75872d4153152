/* The engine of the archive in a running weir: what its parts share. The room (room.h) opens the
 * members in this order and closes them in the reverse order; everything here is borrowed by those
 * who get a struct archive. Members say which threads may use them in their own headers. */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include "archive/outcome.h"
#include "archive/pack.h"
#include "base/log.h"
#include "os/thread.h"
#include "s3/place/place.h"

#include <stdatomic.h>

struct client;
struct forges;
struct moves;
struct queue;
struct rebuild;
struct runner;
struct satellites;
struct schedule;
struct services;
struct store;

/* What the archive has done since weir started, for metrics and the status. */
struct archive_numbers {
    _Atomic(uint64_t) repos[ARCHIVE_CODES];    /* repositories, by the outcome of their syncs */
    _Atomic(uint64_t) accounts[ARCHIVE_CODES]; /* accounts; ARCHIVE_OK: full syncs */
    _Atomic(uint64_t) fetched_bytes;           /* bytes of packs that git servers sent */
    _Atomic(uint64_t) written_bytes;           /* bytes that satellites had to write */
    _Atomic(uint64_t) copied_bytes; /* bytes of bundles that satellites copied by themselves */
    _Atomic(uint64_t) fetches, appends, headers; /* whole packs, appended packs, only headers */
    _Atomic(uint64_t) zips;
};

struct archive {
    const struct services *services;
    const struct log *log;
    struct place_env places; /* how objects of the archive are reached */
    struct keyring *keys;    /* keys of encrypted objects; owned by the room */
    struct client *client;   /* for git servers and forges */
    struct store *app;       /* appDB */
    struct queue *queue;
    struct forges *forges;
    struct satellites *satellites;
    struct schedule *schedule;
    struct moves *moves; /* of slots between satellites */
    struct rebuild *rebuild;
    struct runner *runner; /* NULL: this process does not archive (`weir serve --only`) */

    struct pack_options check; /* how packs are checked: archive.check, archive.max_pack */
    uint64_t timeout_ms;       /* the most that one fetch may take: archive.timeout */
    uint64_t scratch_max;      /* bytes of a scratch file: archive.scratch */
    uint64_t resync_after_ms;  /* archive.resync_after */
    uint64_t look_ms;          /* how often refs are compared anyway: archive.look */
    size_t repos_at_once;      /* of one account */
    char *scratch;             /* the folder of scratch files; owned by the room */
    char worker[80];           /* names this process in `.error` objects */
    _Atomic(bool) large_list;  /* a fetch has a large list of refs (fetch.h) */

    struct archive_numbers numbers;
};

#endif
