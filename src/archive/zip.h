/* A ZIP file of a repository's default branch, made from a pack that has only the branch's tip and
 * the objects of its tree (a fetch of depth 1).
 *
 * The pack is written to a scratch file (object.h). Then weir goes through the tree in git's order
 * and makes the ZIP file while it is read. If the pack has a blob as a whole, its data are already
 * deflated, and weir copies the bytes without the frame of zlib. Other blobs are built from their
 * deltas and deflated.
 *
 * All entries are in a folder `<repository>-<branch>`. The time of every entry is that of the
 * commit, and the comment of the file is the id of the commit. Symbolic links and programs keep
 * their mode, and submodules are empty folders. Names in UTF-8 are marked as such. Files of more
 * than 4 GiB, and ZIP files of more than 65,535 entries, use Zip64. Attributes (export-ignore,
 * ident) are not applied. The same tree gives the same entries, with the same names, modes, sizes
 * and checksums.
 *
 * Names that would lead out of the folder are left out and counted (tree_name_ok()). */
#ifndef ARCHIVE_ZIP_H
#define ARCHIVE_ZIP_H

#include "archive/object.h"

enum { ZIP_DEPTH_MAX = 2048, ZIP_FILES_MAX = 1000 * 1000 };
#define ZIP_TREE_MAX  (UINT64_C(16) << 20)
#define ZIP_BYTES_MAX (UINT64_C(8) << 30)
#define ZIP_WORK_MAX  (UINT64_C(64) << 30) /* value for packed_options.work_max */

/* A function that is called for each small file while the ZIP file is made, for example to find LFS
 * pointers. `path` is relative to the top folder. Path and data are borrowed for the call. If the
 * function returns a value other than 0, making the ZIP file ends with that code. */
struct zip_watch {
    int (*file)(void *ctx, struct str path, struct str data, struct err *err);
    void *ctx;
    size_t max; /* size of the largest file for which the function is called, in bytes */
};

struct zip_limits {
    size_t depth;   /* most folders inside each other */
    uint64_t files; /* most files, links and folders */
    uint64_t bytes; /* most bytes of all files, before they are deflated */
    uint64_t tree;  /* most bytes of the tree object of one folder */
};
extern const struct zip_limits zip_usual_limits;

struct zip_options {
    bool is_sha256;
    unsigned char tip[GIT_ID_MAX]; /* id of the commit, or of a tag that leads to it */
    struct str repo, branch;       /* the branch without `refs/heads/`; slashes become '-' */
    const char *folder;            /* an existing folder for scratch files */
    struct pack_limits pack;       /* pack.pack is also the limit of the scratch file */
    struct zip_limits limits;
    const struct zip_watch *watch; /* NULL: no function is called */
    const _Atomic(bool) *cancel;   /* NULL: cannot be cancelled */
    struct large_hold *hold;       /* pays for tables and buffers; may be NULL */
    int64_t mtime_ms;              /* x-amz-meta-mtime of the object; 0: none */
};

struct zip_result {
    uint64_t files, links, folders, submodules;
    uint64_t bytes; /* of all files, before they were deflated */
    /* Entries whose names must not be unpacked; a folder with all its entries counts once. */
    uint64_t left_out;
    uint64_t size; /* bytes of the ZIP file so far */
};

struct zip;

/* Reads the pack to its end and finds the tree. All strings of the options are borrowed until the
 * close. ERR_PARSE: the pack is damaged or lacks an object. ERR_TOO_LARGE: the pack or the tree is
 * past a limit. */
int zip_open(struct zip **out, struct reader *pack, const struct zip_options *o,
             struct err *err) MUST_CHECK;
/* The bytes of the ZIP file; borrowed until the close. A read returns the same errors as
 * zip_open(). */
struct reader *zip_reader(struct zip *z);
void zip_count(const struct zip *z, struct zip_result *out);
void zip_close(struct zip *z); /* NULL is fine */

struct shelf;

/* Makes the ZIP file from the pack and puts it under the key. The object becomes visible only when
 * all of it was made. `out` may be NULL. */
int zip_put(struct shelf *s, struct arena *a, struct str key, struct reader *pack,
            const struct zip_options *o, struct zip_result *out, struct err *err) MUST_CHECK;

#endif
