/* The refs of a git repository, as a server lists them.
 *
 * A server may be hostile: if the name of a ref had a newline, it would write a further line into
 * the header of a bundle. So every name is checked by git's own rules. Names that break the rules,
 * and refs that a forge makes for itself (merges of pull requests, pipelines), are left out and
 * counted. A git_refs belongs to one thread. */
#ifndef ARCHIVE_REFS_H
#define ARCHIVE_REFS_H

#include "archive/large.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

enum {
    GIT_ID_MAX = 32, /* bytes of an object's id: 20 with SHA-1, 32 with SHA-256 */
    GIT_REF_NAME_MAX = 1024,
    GIT_REFS_MAX = 1000 * 1000,
    /* Most memory for all refs of a server; enough for 400,000 usual names. */
    GIT_REFS_BYTES_MAX = 20 * 1024 * 1024,
    GIT_DIGEST_LEN = 64, /* hex digits of a digest */
};

/* A ref in memory: two bytes with the length of its name, the name, and the id. The bytes belong to
 * a git_refs and never move. */
struct git_ref {
    const unsigned char *at;
};

struct git_refs {
    bool is_sha256;           /* must not change after the first ref was stored */
    VEC(struct git_ref) list; /* without HEAD; in the server's order until git_refs_sort() */
    bool has_head;
    unsigned char head[GIT_ID_MAX]; /* id that HEAD leads to, if has_head */
    /* The ref that HEAD names; empty: HEAD names no ref, or it is not known. */
    struct str head_target;
    uint64_t left_out;       /* refs that were left out */
    uint64_t seen;           /* refs that the server has sent */
    struct large_hold *hold; /* pays for the memory; borrowed; may be NULL */
    size_t reached;          /* bytes that the hold has paid for */
    size_t max;              /* most bytes of memory: GIT_REFS_BYTES_MAX unless it is changed */
    unsigned char *text;     /* memory of names and ids; its size is `max` */
    size_t text_len;
    size_t listed;   /* bytes of the lists that have the stored refs */
    char *head_text; /* memory of head_target; NULL: head_target is borrowed */
};

void git_refs_init(struct git_refs *r, bool is_sha256);
void git_refs_release(struct git_refs *r);

/* Frees the list, but keeps HEAD and its target. */
void git_refs_forget(struct git_refs *r);

static inline size_t git_id_len(bool is_sha256)
{
    return is_sha256 ? 32 : 20;
}

/* Borrowed from the git_refs. */
static inline struct str git_ref_name(const struct git_ref *ref)
{
    return str_n((const char *)ref->at + 2, (size_t)ref->at[0] << 8 | ref->at[1]);
}

static inline const unsigned char *git_ref_id(const struct git_ref *ref)
{
    return ref->at + 2 + ((size_t)ref->at[0] << 8 | ref->at[1]);
}

/* Stores a ref, but does not add it to the list. `id` has git_id_len() bytes. `item` is the size of
 * the item that the ref gets in the caller's list; it is counted too. ERR_TOO_LARGE: the refs
 * take too much memory. Errors of large_take(). */
int git_refs_store(struct git_ref *out, struct git_refs *r, const unsigned char *id,
                   struct str name, size_t item, struct err *err) MUST_CHECK;

/* Whether git accepts the name for a ref below `refs/` (git-check-ref-format). */
bool git_ref_name_ok(struct str name);
/* Whether the archive keeps the ref. It does not keep refs that a forge or weir makes for
 * itself. */
bool git_ref_is_kept(struct str name);

/* Adds a ref, or HEAD, as a server has sent it: `id` in hex. Refs that are not kept are only
 * counted. ERR_PARSE: `id` is not an id. ERR_TOO_LARGE: there are too many refs. */
int git_refs_add(struct git_refs *r, struct str id, struct str name, struct err *err) MUST_CHECK;
/* Notes the target of HEAD, of which it keeps a copy. A target whose name is invalid is ignored. */
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
