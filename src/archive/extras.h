/* Options of the archive: things of a repository that are saved beside its bundle.
 *
 *   <repo>@issues.ndjson, @pulls.ndjson, @releases.ndjson   lists of the forge, as JSON lines
 *   <repo>@assets/<id>/<name>                               files of releases
 *   <repo>@lfs/ab/cd/<oid>                                  LFS objects of the default branch
 *
 * A line is {"type":"issue","data":{…}}, with the forge's own object. Lines are only ever added: an
 * item that has changed gets another line, and the last line of an item counts. How far a list was
 * read (its checkpoint) is in the repository's line of the record, so that the next sync asks only
 * for later changes. A feature that is switched off at the forge (404, 410) is no error
 * (docs/archive.md, "Options", O1 to O7).
 *
 * Wikis and gists are git repositories and are synced as such (repo.h).
 *
 * A struct extras belongs to one thread. Calls block. */
#ifndef ARCHIVE_EXTRAS_H
#define ARCHIVE_EXTRAS_H

#include "archive/forge.h"
#include "archive/names.h"
#include "archive/shelf.h"

struct client;
struct git_remote;

enum {
    EXTRA_LINE_MAX = 1024 * 1024, /* most bytes of an item; larger items are left out and counted */
    EXTRA_STATE_MAX = 4096,       /* most bytes of a repository's state in the record */
    EXTRA_LFS_BATCH = 100,        /* LFS objects that one request asks for */
    EXTRA_POINTER_MAX = 1024,     /* most bytes of an LFS pointer */
    EXTRA_TOO_BIG_MAX = 400,      /* most bytes of the text about a file that is too large */
};

/* One repository whose options are saved. Everything is borrowed. */
struct extras {
    struct forge_session *session; /* used by this thread alone */
    struct shelf *shelf;
    const struct archive_account *account;
    struct client *client; /* for files of releases and LFS objects */
    struct arena *arena;   /* memory of the call */
    const char *scratch;   /* folder of scratch files */
    uint64_t scratch_max;  /* most bytes of a scratch file */
    uint64_t file_max;     /* most bytes of an LFS object or of a file of a release */
    /* Limit for one of these files, from the request to the last byte. */
    uint64_t timeout_ms;
    /* Names as the forge spells them; the repository's number at the forge. */
    struct str owner, repo, id;
    int64_t now_ms;              /* when the sync began */
    const _Atomic(bool) *cancel; /* may be NULL */
    struct large_hold *hold;     /* pays for lists; may be NULL */
    size_t text_reached;         /* bytes of texts that the hold has paid for */
    const struct log *log;

    /* The calls add to these counts. */
    uint64_t lines, files, bytes; /* stored lines, stored files, bytes of both */
    uint64_t left_out; /* items that were too large, and files that the server does not have */
    /* A file could not be fetched now. That is no failure, but the next sync looks again. */
    bool tries_again;
    /* A text about the first file that is larger than file_max; empty if there was none. Files that
     * are too large are left out, and the others are saved. */
    char too_big[EXTRA_TOO_BIG_MAX + 1];
};

/* The checkpoints of a repository's options: how far each list was read. The texts are in an
 * arena. */
struct extras_state {
    struct str issues,
        /* For each of these two lists: the next request asks for changes since this time, which is
         * written as the forge writes it. */
        pulls;
    struct str releases; /* digest of the releases that were seen last */
    struct str lfs;      /* id of the commit whose LFS objects are stored */
};
/* Reads the member `extra` of a repository's line; an empty or damaged text becomes an empty
 * state. */
void extras_state_read(struct extras_state *out, struct arena *a, struct str text);
void extras_state_write(struct buf *out, const struct extras_state *s);

/* Saves the lists and the files of releases that `wants` names, and updates the state. The errors
 * are those of forge.h, and these outcomes in the fault: ARCHIVE_STORAGE: the satellite failed;
 * ARCHIVE_TOO_BIG: a list is larger than scratch_max. */
int extras_lists(struct extras *x, const struct forge_wants *wants, struct extras_state *state,
                 struct forge_fault *fault, struct err *err) MUST_CHECK;

/* Saves the LFS objects that the tree of HEAD names. Does nothing if this commit's objects are
 * stored already. */
int extras_lfs(struct extras *x, struct git_remote *remote, struct extras_state *state,
               struct forge_fault *fault, struct err *err) MUST_CHECK;

/* A pointer to an LFS object: the text of a small blob in git. lfs_pointer_read() returns false
 * when the text is not a pointer. */
struct lfs_pointer {
    char oid[65]; /* SHA-256 in hex */
    uint64_t size;
};
bool lfs_pointer_read(struct lfs_pointer *out, struct str text);

/* --- for the tables of kinds --- */

/* One list to ask the forge for. The path may have the placeholders {owner}, {repo} and {id}. */
struct extra_source {
    const char *type; /* value of `type` in the saved lines */
    const char *path;
    /* The query parameter that asks only for changes since the checkpoint; NULL: the list has no
     * such parameter. */
    const char *since;
    bool newest_first; /* sorted by time of change, so that reading ends at the checkpoint */
};
struct extra_list {
    const char *name; /* `issues`, `pulls` or `releases` */
    struct extra_source sources[3];
};

#endif
