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
    EXTRA_LINE_MAX = 1024 * 1024, /* bytes of an item; larger ones are left out and counted */
    EXTRA_STATE_MAX = 4096,       /* bytes of the state in the record */
    EXTRA_LFS_BATCH = 100,        /* LFS objects of one question */
    EXTRA_POINTER_MAX = 1024,     /* bytes of an LFS pointer */
};

/* One repository whose options are saved. Everything is borrowed. */
struct extras {
    struct forge_session *session; /* used by this thread alone */
    struct shelf *shelf;
    const struct archive_account *account;
    struct client *client;       /* for files of releases and LFS objects */
    struct arena *arena;         /* of the call */
    const char *scratch;         /* folder of scratch files */
    uint64_t scratch_max;        /* bytes of a scratch file */
    struct str owner, repo, id;  /* the forge's spelling, and its number */
    int64_t now_ms;              /* when the sync began */
    const _Atomic(bool) *cancel; /* may be NULL */
    const struct log *log;

    /* Counted by the calls. */
    uint64_t lines, files, bytes; /* that were added */
    uint64_t left_out;            /* items that were too large, or files that are not there */
};

/* How far the options of a repository were read. The texts are in an arena. */
struct extras_state {
    struct str issues, pulls; /* the time from which the next question asks, as the forge has it */
    struct str releases;      /* digest of the releases that were seen last */
    struct str lfs;           /* id of the commit whose LFS objects are stored */
};
/* Reads the member `extra` of a repository's line; an empty or damaged text is a fresh state. */
void extras_state_read(struct extras_state *out, struct arena *a, struct str text);
void extras_state_write(struct buf *out, const struct extras_state *s);

/* Saves the lists and the files of releases that `wants` names, and moves the state on. The errors
 * are those of forge.h; ARCHIVE_STORAGE: the satellite failed; ARCHIVE_TOO_BIG: a list is larger
 * than scratch_max. */
int extras_lists(struct extras *x, const struct forge_wants *wants, struct extras_state *state,
                 struct forge_fault *fault, struct err *err) MUST_CHECK;

/* Saves the LFS objects that the tree of HEAD names, unless those of this commit are stored. */
int extras_lfs(struct extras *x, struct git_remote *remote, struct extras_state *state,
               struct forge_fault *fault, struct err *err) MUST_CHECK;

/* A pointer to an LFS object, as a blob of git has it. Returns false when the text is none. */
struct lfs_pointer {
    char oid[65]; /* SHA-256 in hex */
    uint64_t size;
};
bool lfs_pointer_read(struct lfs_pointer *out, struct str text);

/* --- for the tables of kinds --- */

/* A question of a list. Placeholders of the path: {owner}, {repo} and {id}. */
struct extra_source {
    const char *type; /* of its lines */
    const char *path;
    const char *since; /* query parameter with the checkpoint; NULL: there is none */
    bool newest_first; /* sorted by time of change, so that reading ends at the checkpoint */
};
struct extra_list {
    const char *name; /* `issues`, `pulls` or `releases` */
    struct extra_source sources[3];
};

#endif
