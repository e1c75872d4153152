/* Names of the archive: hosts, accounts and repositories, and the keys of their objects.
 *
 * An account is a user or an organisation of a forge. Its *member* is the text `<host>/<login>`,
 * which is the account's member of the sorted set `tracked`. Forges ignore the case of logins, but
 * hashes do not. So a login is changed to lower case before anything is computed from it
 * (docs/archive.md, N2). Repositories keep the forge's spelling.
 *
 * This file checks every name before it makes a key of the name. The key of a checked name cannot
 * lead out of the account's folder. Nothing in this file blocks, or allocates outside of the given
 * arena. */
#ifndef ARCHIVE_NAMES_H
#define ARCHIVE_NAMES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum {
    ARCHIVE_LOGIN_PART_MAX = 100, /* bytes of one part of a login */
    ARCHIVE_LOGIN_PARTS_MAX = 20, /* parts of a login; only GitLab's groups have more than one */
    ARCHIVE_REPO_MAX = 100,       /* most bytes of a repository's name */
    ARCHIVE_HOST_MAX = 253,       /* most bytes of a host, with the port */
    /* The first bytes of the SHA-256 of a login, which are its folders. */
    ARCHIVE_HASH_LEN = 4,
};

/* One account. The strings belong to the arena in which they were made. */
struct archive_account {
    struct str host;  /* lower case, such as `github.com` or `git.example:8443` */
    struct str login; /* in lower case */
    unsigned char hash[ARCHIVE_HASH_LEN];
};

/* Reads `<host>/<login>`. ERR_INVALID: the text is not a member; err says why. */
int archive_account_read(struct archive_account *out, struct arena *a, struct str member,
                         struct err *err) MUST_CHECK;
/* Makes an account from a host and a login; their case does not matter. The errors are those of
 * archive_account_read(). */
int archive_account_make(struct archive_account *out, struct arena *a, struct str host,
                         struct str login, struct err *err) MUST_CHECK;

/* The member of `tracked`. */
struct str archive_account_member(const struct archive_account *c, struct arena *a);
/* The key of the account's lock: `lock:<login>` on github.com, `lock:<host>/<login>` elsewhere. */
struct str archive_account_lock(const struct archive_account *c, struct arena *a);

/* The name of the bucket for a host, unless its forge sets another one: '-' replaces ':'. The
 * caller checks that the name is valid for a bucket. */
struct str archive_host_bucket(struct str host, struct arena *a);

/* Whether the name of a repository at the forge can become part of a key. */
bool archive_repo_ok(struct str name);

/* The kinds of objects in the archive. */
enum archive_kind {
    ARCHIVE_RECORD,        /* <h>/<login>.json */
    ARCHIVE_ACCOUNT_ERROR, /* <h>/<login>.error */
    ARCHIVE_ADDED,         /* <h>/<login>.new */
    ARCHIVE_REMOVED,       /* <h>/<login>.removed: no longer tracked, and its objects are kept */
    ARCHIVE_OPTIONS,       /* <h>/<login>.options: the account's own options */
    ARCHIVE_BUNDLE,        /* <h>/<login>/<repo>.bundle */
    ARCHIVE_ZIP,           /* <h>/<login>/<repo>.zip */
    ARCHIVE_REPO_ERROR,    /* <h>/<login>/<repo>.error */
    ARCHIVE_EXTRA,         /* <h>/<login>/[<repo>]@<extra> */
    ARCHIVE_KINDS
};

/* The key of an object of an account. `repo` is empty for an object of the account itself. For
 * ARCHIVE_EXTRA `repo` is the repository, or empty, followed by '@' and the rest of the key. */
struct str archive_key(const struct archive_account *c, struct arena *a, enum archive_kind kind,
                       struct str repo);
/* The beginning of the keys of all repositories of an account: `<h>/<login>/`. */
struct str archive_folder(const struct archive_account *c, struct arena *a);

/* The parts of a key. Strings are borrowed from the key. */
struct archive_object {
    enum archive_kind kind;
    struct str login;
    /* Empty for objects of the account itself, and for an extra without a repository. */
    struct str repo;
    struct str extra; /* the part of the key behind the '@' */
};

/* Splits a key into its parts. ERR_NOT_FOUND: no object of the archive has such a key, or the
 * folders do not match the login. */
int archive_key_read(struct archive_object *out, struct str key) MUST_CHECK;
/* The key behind which a listing goes on after the key `last`, for a caller that wants only the
 * account's own objects. If `last` is in the folder of an account, the rest of the folder is left
 * out. */
void archive_key_behind(struct buf *out, struct str last);

#endif
