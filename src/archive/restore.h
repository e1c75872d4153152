/* Restores: makes a bare git repository in a folder from a bundle, or pushes the repository to
 * another git server.
 *
 * The bundle is read while it is downloaded: its header gives the refs, and its pack is the input
 * of `git index-pack`. A restore makes its folder under another name and renames it when all
 * objects are there and connected. So a folder with the final name is a whole repository
 * (docs/archive.md, R1). The calls block, and run git as a child process (git.h). */
#ifndef ARCHIVE_RESTORE_H
#define ARCHIVE_RESTORE_H

#include "archive/header.h"

struct restore_options {
    const char *folder; /* the repository to make; must not exist */
    bool has_at;        /* restore the refs as the last sync at or before `at_s` found them */
    int64_t at_s;       /* seconds since 1970 */
    bool history;       /* keep the lines of history as refs/weir/... */
    /* Called with the number of bytes that were read so far. May be NULL. */
    void (*progress)(void *ctx, uint64_t bytes);
    bool (*stop)(void *ctx); /* when it returns true, the restore ends; may be NULL */
    void *ctx;
};

struct restore_result {
    uint64_t refs, bytes; /* refs that were written; bytes of the bundle */
    /* With `has_at`: the header has a line of history of that time or before, so the first sync was
     * before that time. */
    bool is_past;
};

/* Makes the repository. ERR_EXISTS: the folder exists. ERR_CORRUPT: the bundle is damaged.
 * ERR_UNSUPPORTED: git is not installed. ERR_PEER: git refuses the bundle; the text has git's
 * message. */
int restore_bundle(struct restore_result *out, struct reader *bundle,
                   const struct restore_options *o, struct err *err) MUST_CHECK;

struct restore_push {
    const char *folder, *url;
    /* git works for a user's command: it gets the environment of this process, and with it the
     * user's credentials and settings. Otherwise it uses only http and https, follows no redirect,
     * and has the members below. */
    bool is_users;
    struct str credentials;  /* USER:PASSWORD; empty: none */
    const char *ca_file;     /* certificates to trust; NULL: the system's */
    uint64_t timeout_ms;     /* 0: no limit */
    bool (*stop)(void *ctx); /* when it returns true, the push ends; may be NULL */
    void *ctx;
};
/* Pushes branches, tags and notes of a repository to a git server. ERR_PEER: git or the server
 * refuses; the text has git's message. */
int restore_push(const struct restore_push *p, struct err *err) MUST_CHECK;

/* Appends the target of one bundle of an account below a folder or a URL. A wiki becomes
 * `<repository>.wiki.git` beside its repository, as on a forge, and a gist becomes
 * `gists/<id>.git`. */
void restore_target_append(struct buf *out, struct str base, struct str name);

/* Whether a target is the URL of a git server (`scheme://…` or `user@host:path`) and not a
 * folder. */
bool restore_is_url(struct str target);
/* Reads a time in the form of RFC 3339, or in seconds since 1970. ERR_PARSE: the text is
 * neither. */
int restore_read_time(struct str text, int64_t *out) MUST_CHECK;

#endif
