/* Runs git as a child process, in folders of weir's own. weir needs git only for audits, for
 * tidying, and for restores. If git is missing, these fail with "git is not installed", and
 * everything else works.
 *
 * A git process that reads a bundle reads data that a stranger made. So it runs without the
 * machine's configuration, prompts, hooks and lazy fetches, in a folder that weir removes
 * afterwards. */
#ifndef ARCHIVE_GIT_H
#define ARCHIVE_GIT_H

#include "archive/header.h"

#include <stdatomic.h>

struct git_call {
    const char *folder;      /* the working folder */
    const char *const *argv; /* NULL-terminated; argv[0] is "git" */
    struct str in;           /* bytes for git's stdin */
    struct reader *more;     /* further bytes for git's stdin; NULL: none */
    uint64_t timeout_ms;     /* limit for the run; 0: none */
    /* Called from time to time; when it returns true, git is killed. May be NULL. */
    bool (*stop)(void *ctx);
    void *ctx;
    /* git runs for a user's command, so it gets the environment of this process. */
    bool is_users;
    const char *const *env; /* further "K=V" for git, ended by NULL; NULL: none */
};

enum { GIT_SAID_MAX = 64 * 1024 };

/* Exit status and output of git; each buf is cut at GIT_SAID_MAX bytes. */
struct git_said {
    int status;
    struct buf out, err;
};
void git_said_release(struct git_said *s);

/* Runs git. The call succeeds whatever the exit status of git is. ERR_UNSUPPORTED: git is not
 * installed. ERR_CANCELED, ERR_TIMEOUT: git was killed before it was done. Errors of the reader are
 * returned unchanged. `said` is initialised with {0}, and emptied at each call. */
int git_run(struct git_said *said, const struct git_call *c, struct err *err) MUST_CHECK;
/* Runs git like git_run(), but an exit status other than 0 is ERR_PEER with git's message. */
int git_run_well(struct git_said *said, const struct git_call *c, struct err *err) MUST_CHECK;
/* The last line of git's stderr, cleaned for use in a message. It is borrowed from `room`. */
struct str git_last_words(const struct git_said *said, struct buf *room);

/* Makes an empty bare repository in the folder, which must not exist. */
int git_make_bare(const char *folder, bool is_sha256, struct err *err) MUST_CHECK;

/* Which lines of a header become refs. */
enum git_refs_kind { GIT_REFS_PLAIN, GIT_REFS_WITH_POINTS };
/* Writes the refs into a new bare repository, as packed refs, and writes HEAD. The names of `refs`
 * have passed git_ref_name_ok(). Points (lines of history, header.h) become `refs/weir/...`. A
 * point becomes `refs/weir/kept/<number>` if its name is too long for git, or if another point has
 * the same name but another id. */
int git_write_refs(const char *folder, const struct git_refs *refs, const struct bundle_header *h,
                   enum git_refs_kind kind, struct err *err) MUST_CHECK;

#endif
