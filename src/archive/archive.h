/* The state that the parts of the archive share in a running weir. The room (room.h) opens the
 * members in this order and closes them in the reverse order; code that gets a struct archive
 * borrows its members. The header of each member's type says which threads may use it. */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include "archive/large.h"
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

/* Counts of the work that the archive has done since weir started, for metrics and the status. */
struct archive_numbers {
    _Atomic(uint64_t) repos[ARCHIVE_CODES]; /* repositories, by the outcome of their syncs */
    /* Finished syncs of accounts, by outcome. ARCHIVE_OK counts the full syncs. */
    _Atomic(uint64_t) accounts[ARCHIVE_CODES];
    _Atomic(uint64_t) fetched_bytes; /* bytes of packs that git servers sent */
    _Atomic(uint64_t) written_bytes; /* bytes that satellites had to write */
    _Atomic(uint64_t) copied_bytes;  /* bytes of bundles that satellites copied by themselves */
    _Atomic(uint64_t) fetches, appends,
        /* Counts of repositories: those that were stored with a whole pack, those to which a pack
         * was appended, and those of which only the header was written. */
        headers;
    _Atomic(uint64_t) zips;
};

struct archive {
    const struct services *services;
    const struct log *log;
    struct place_env places; /* how the objects of the archive are found in the storages */
    struct keyring *keys;    /* keys of encrypted objects; owned by the room */
    struct client *client;   /* for git servers and forges */
    struct store *app;       /* appDB */
    struct queue *queue;
    struct forges *forges;
    struct satellites *satellites;
    struct schedule *schedule;
    struct moves *moves; /* moves of slots (parts of the archive) between satellites (storages) */
    struct rebuild *rebuild;
    struct runner *runner; /* NULL: this process does not archive (`weir serve --only`) */

    struct pack_options check; /* how packs are checked: archive.check, archive.max_pack */
    uint64_t timeout_ms;       /* the most that one fetch may take: archive.timeout */
    uint64_t scratch_max;      /* most bytes of a scratch file: archive.scratch */
    uint64_t resync_after_ms;  /* archive.resync_after */
    uint64_t lock_ms;          /* archive.lock */
    uint64_t look_ms;          /* refs are compared at least this often: archive.look */
    size_t repos_at_once;      /* the most repositories of one account that are worked on at once */
    char *scratch;             /* the folder of scratch files; owned by the room */
    char worker[80];           /* names this process in `.error` objects */
    struct large_room large;   /* memory for lists whose length strangers decide */

    struct archive_numbers numbers;
};

#endif
