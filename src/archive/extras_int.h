/* Declarations that the files about options share. */
#ifndef ARCHIVE_EXTRAS_INT_H
#define ARCHIVE_EXTRAS_INT_H

#include "archive/extras.h"
#include "archive/forge_int.h"

/* The key `<h>/<login>/<repo>@<what>`. */
struct str extras_key(const struct extras *x, struct str what);
/* Fills in the placeholders of a path. */
struct str extras_path(const struct extras *x, const char *path, struct str id);
/* Notes that the satellite or the scratch file failed, and returns `code`. */
int extras_storage(struct forge_fault *fault, int code, struct err *err);
/* Counts memory for a text of `len` bytes; small texts are not counted. Errors of large_take(). */
int extras_text(struct extras *x, size_t len, struct err *err) MUST_CHECK;
/* Whether the fault means that the forge does not have the feature. */
bool extras_is_absent(const struct forge_fault *fault);

/* The outcome for an HTTP status that is neither a success nor means that a thing is absent. */
enum archive_code extras_status_code(int status);

enum { EXTRAS_FILE_ARENA = 1024 * 1024 }; /* bytes of memory for the work on one file */

/* A file to fetch and store. */
struct extras_file {
    struct str url;
    struct str key;
    uint64_t size;               /* the size that it must have */
    bool any_size;               /* `size` is not known: a stored file of any size is kept */
    const unsigned char *sha256; /* the SHA-256 that it must have; NULL: not checked */
    const struct http_header *headers;
    size_t header_count;
};
/* Fetches a file and stores it while it is received, unless a file of that size is stored already.
 * No token is sent. Requests go to the forge's own origin, or by https to public addresses. A file
 * of more than x->file_max bytes is left out: it is not asked for, and the call succeeds.
 * ERR_NOT_FOUND: the server does not have the file. */
int extras_fetch_file(struct extras *x, const struct extras_file *f, struct forge_fault *fault,
                      struct err *err) MUST_CHECK;

/* A file of a release. Strings are borrowed for the call. */
struct extras_asset {
    struct str id, name, url;
    uint64_t size;
    bool is_link; /* a link of GitLab, whose size is not known, and which may lead anywhere */
};
typedef int extras_asset_fn(void *ctx, const struct extras_asset *asset, struct err *err);
/* Calls each() for every file of a release, whose JSON is `release`. The arena is reset for each
 * file. *malformed is set if the JSON is; the result is ERR_PARSE then. */
int extras_each_asset(struct str release, struct arena *a, extras_asset_fn *each, void *ctx,
                      bool *malformed, struct err *err) MUST_CHECK;

/* An object in the answer of an LFS server. Strings are borrowed for the call. */
enum { LFS_HEADERS_MAX = 8 };
struct lfs_item {
    struct str oid, href;
    int64_t error; /* HTTP status that the server names for this object; 0: none */
    struct http_header headers[LFS_HEADERS_MAX];
    size_t header_count;
};
typedef int lfs_item_fn(void *ctx, const struct lfs_item *item, struct err *err);
/* Calls each() for every object of an answer, as extras_each_asset() does for files. */
int lfs_each_item(struct str answer, struct arena *a, lfs_item_fn *each, void *ctx, bool *malformed,
                  struct err *err) MUST_CHECK;

/* Stores the files of a release, whose JSON is `release`. */
int extras_assets(struct extras *x, struct str release, struct forge_fault *fault,
                  struct err *err) MUST_CHECK;

#endif
