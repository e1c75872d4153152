/* git as a child process, in folders of its own. weir needs git only for audits, for tidying, and
 * for restores; if git is missing they fail with "git is not installed", and everything else works.
 *
 * A git that reads a bundle reads data that a stranger made. So it gets no configuration of the
 * machine, no prompts, no hooks and no lazy fetches, and runs in a folder that is removed
 * afterwards. */
#ifndef ARCHIVE_GIT_H
#define ARCHIVE_GIT_H

#include "archive/header.h"

#include <stdatomic.h>

struct git_call {
    const char *folder;      /* the working folder */
    const char *const *argv; /* NULL-terminated; argv[0] is "git" */
    struct str in;           /* bytes for its stdin */
    struct reader *more;     /* further bytes for its stdin; NULL: none */
    uint64_t timeout_ms;     /* 0: none */
    /* Asked from time to time; git is ended when it returns true. May be NULL. */
    bool (*stop)(void *ctx);
    void *ctx;
    /* Git gets the environment of this process, because a user runs it by a command. */
    bool is_users;
};

enum { GIT_SAID_MAX = 64 * 1024 };

/* Exit status and output of git; each buf is cut at GIT_SAID_MAX bytes. */
struct git_said {
    int status;
    struct buf out, err;
};
void git_said_release(struct git_said *s);

/* Runs git. Any status is a success. ERR_UNSUPPORTED: git is not installed. ERR_CANCELED,
 * ERR_TIMEOUT: git was ended before it was done. Errors of the reader are returned unchanged.
 * `said` is initialised with {0}, and emptied at each call. */
int git_run(struct git_said *said, const struct git_call *c, struct err *err) MUST_CHECK;
/* Runs git like git_run(), but a status other than 0 is ERR_PEER with git's message. */
int git_run_well(struct git_said *said, const struct git_call *c, struct err *err) MUST_CHECK;
/* The last line of git's stderr, cleaned for use in a message; borrowed from `room`. */
struct str git_last_words(const struct git_said *said, struct buf *room);

/* Makes an empty bare repository in the folder, which must not exist. */
int git_make_bare(const char *folder, bool is_sha256, struct err *err) MUST_CHECK;

/* Which lines of a header become refs. */
enum git_refs_kind { GIT_REFS_PLAIN, GIT_REFS_WITH_POINTS };
/* Writes the refs into a new bare repository, as packed refs, and HEAD. git_ref_name_ok() has
 * accepted every name before. Points (lines of history, header.h) become `refs/weir/...`. A point
 * becomes `refs/weir/kept/<number>` if its name is too long for git, or if another point has the
 * same name and another id. */
int git_write_refs(const char *folder, const struct git_refs *refs, const struct bundle_header *h,
                   enum git_refs_kind kind, struct err *err) MUST_CHECK;

#endif
