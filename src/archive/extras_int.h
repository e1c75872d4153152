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

/* Stores the files of a release, whose JSON is `release`. */
int extras_assets(struct extras *x, struct str release, struct forge_fault *fault,
                  struct err *err) MUST_CHECK;

#endif
