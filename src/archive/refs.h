/* The refs of a git repository, as a server lists them.
 *
 * A server may be hostile: if the name of a ref had a newline, it would write a further line into
 * the header of a bundle. So every name is checked by git's own rules. Names that break the rules,
 * and refs that a forge makes for itself (merges of pull requests, pipelines), are left out and
 * counted. A git_refs belongs to one thread. */
#ifndef ARCHIVE_REFS_H
#define ARCHIVE_REFS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

enum {
    GIT_ID_MAX = 32, /* bytes of an object's id: 20 with SHA-1, 32 with SHA-256 */
    GIT_REF_NAME_MAX = 1024,
    GIT_REFS_MAX = 1000 * 1000,
    /* Most memory for all refs; enough for 400,000 usual names. */
    GIT_REFS_BYTES_MAX = 32 * 1024 * 1024,
    GIT_REFS_SMALL = 4 * 1024 * 1024, /* a list that takes more bytes than this counts as large */
    GIT_DIGEST_LEN = 64,              /* hex digits of a digest */
};

struct git_ref {
    struct str name;
    unsigned char id[GIT_ID_MAX];
};

struct git_refs {
    bool is_sha256;
    VEC(struct git_ref) list; /* without HEAD; in the server's order until git_refs_sort() */
    bool has_head;
    unsigned char head[GIT_ID_MAX]; /* id that HEAD leads to, if has_head */
    /* The ref that HEAD names; empty: HEAD names no ref, or it is not known. */
    struct str head_target;
    uint64_t left_out;  /* refs that were left out */
    uint64_t seen;      /* refs that the server has sent */
    struct arena arena; /* memory of the names */
    /* Called once, when the list becomes large (GIT_REFS_SMALL). If it fails, reading the list
     * fails with the same error. May be NULL. */
    int (*may_grow)(void *ctx, struct err *err);
    void *ctx;
};

void git_refs_init(struct git_refs *r, bool is_sha256);
void git_refs_release(struct git_refs *r);

static inline size_t git_id_len(bool is_sha256)
{
    return is_sha256 ? 32 : 20;
}

/* Whether git accepts the name for a ref below `refs/` (git-check-ref-format). */
bool git_ref_name_ok(struct str name);
/* Whether the archive keeps the ref. It does not keep refs that a forge or weir makes for
 * itself. */
bool git_ref_is_kept(struct str name);

/* Adds a ref, or HEAD, as a server has sent it: `id` in hex. Refs that are not kept are only
 * counted. ERR_PARSE: `id` is not an id. ERR_TOO_LARGE: there are too many refs. */
int git_refs_add(struct git_refs *r, struct str id, struct str name, struct err *err) MUST_CHECK;
/* Notes the target of HEAD. A target whose name is invalid is ignored. */
void git_refs_set_head_target(struct git_refs *r, struct str target);

/* Sorts the list by name. ERR_PARSE: the server has sent a name twice. */
int git_refs_sort(struct git_refs *r, struct err *err) MUST_CHECK;
/* Leaves out every ref of a sorted list that is a folder of other refs too, such as `refs/heads/a`
 * beside `refs/heads/a/b`. No git repository can have both, so git would refuse the bundle. */
void git_refs_leave_folders(struct git_refs *r);
/* Finds a ref in a sorted list, or NULL. */
const struct git_ref *git_refs_find(const struct git_refs *r, struct str name);

/* The digest of a sorted list: the SHA-256, in hex, of a line `<id> <name>` for each ref, then
 * `HEAD <target>`. Equal refs have equal digests. */
void git_refs_digest(char out[GIT_DIGEST_LEN + 1], const struct git_refs *r);

#endif
