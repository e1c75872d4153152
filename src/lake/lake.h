/* The lake: repositories of objects with branches, commits, tags and merges, on a key-value store
 * with compare-and-set. docs/lake.md explains it, and numbers its promises (L1) and the steps of
 * its protocol (K1, C1).
 *
 * A repository has a partition in the key-value store (kv/kv.h) and a namespace, a place in an
 * ordinary bucket where its objects and its trees are stored. A branch has a head, which is a
 * commit, and changes that are not committed yet, which are *staged*. Staged changes are rows in
 * partitions that are called tokens: new changes go to the branch's staging token, and a commit
 * begins by sealing that token and giving the branch a new one.
 *
 * No call takes a lock that another process could wait for. Every change of a branch is one atomic
 * write that checks the branch's record; a call that loses the race reads again and tries again.
 *
 * `a` is the arena of the request; results are stored there. Any thread may call these functions,
 * and they may block. They check names, protection and the read-only flag. They do not check who
 * the caller is; the code for S3 and REST does that before it calls.
 *
 * Errors, beside those of kv/kv.h and object/bucket.h:
 *
 * - ERR_NOT_FOUND: the text names the missing thing, such as "branch not found". An error of the
 *   key-value store or of a storage is never reported like this (L9).
 * - ERR_EXISTS: "branch already exists: not unique".
 * - ERR_INVALID: a bad name or value; "uncommitted changes (dirty branch)".
 * - ERR_NOT_MODIFIED: "no changes".
 * - ERR_CONFLICT: "conflict found".
 * - ERR_DENIED: "protected branch", "read-only repository", the default branch.
 * - ERR_PRECONDITION: a condition failed, or a hook refused the change.
 * - ERR_GONE: a commit or an object that was collected.
 * - ERR_BUSY: other changes of the branch won every race. */
#ifndef LAKE_LAKE_H
#define LAKE_LAKE_H

#include "kv/kv.h"
#include "lake/record.h"
#include "lake/tree.h"

enum {
    LAKE_NAME_MAX = 255,  /* length of a branch's or a tag's name, in bytes */
    LAKE_PATH_MAX = 1024, /* length of a path, in bytes */
    /* Length of a key "<ref>/<path>" of a repository's bucket, in bytes. A ref may be longer than a
     * name, as main~1 is. */
    LAKE_KEY_MAX = LAKE_PATH_MAX + 2 * LAKE_NAME_MAX,
    LAKE_MESSAGE_MAX = 64 << 10,
    LAKE_META_BYTES = 2048, /* size of metadata in bytes, keys and values together */
    LAKE_BATCH_MAX = 1000,  /* number of paths in one stage or removal */
    LAKE_LIST_MAX = 1000,   /* number of results on a page */
};

struct lake;
struct bucket_sides;
struct change_capture;
struct keyring;
struct routes;
struct users;
struct queue;

struct lake_hooks; /* lake/hooks.h */
struct lake_keep;  /* lake/keep.h */

struct lake_options {
    struct kv *kv; /* borrowed */
    /* finds the buckets of namespaces; borrowed. NULL in tests that set `place` */
    struct routes *routes;
    /* `capture` announces changes of replicated buckets (s3/gateway/capture.h); `sides` finds
     * objects whose bucket is being switched to another storage (route/sides.h). Both are borrowed;
     * NULL: nothing is replicated. */
    const struct change_capture *capture;
    const struct bucket_sides *sides;
    struct users *users; /* borrowed; NULL in tests: users have only ids, and none is an admin */
    /* keys of encrypted objects; borrowed; NULL: encrypted objects cannot be read */
    struct keyring *keys;
    /* For tests: gives the place of a repository's nodes, and namespaces are not claimed. NULL:
     * `routes` gives the place. */
    int (*place)(void *ctx, const struct lake_repo *r, struct node_place *out, struct err *err);
    void *place_ctx;
    struct tree_cache_options cache;
    uint64_t drop_again_ms; /* lake.drop.again: tokens are dropped a second time after this time */
    /* Time after which the cleaner looks at the list of tokens to drop, even if nothing has woken
     * it; 0: a minute. */
    uint64_t clean_every_ms;
    unsigned writers;               /* node files that a commit writes at the same time; 0: 16 */
    const struct lake_hooks *hooks; /* borrowed; NULL: none */
    /* How many changes of branches may wait for changes whose hooks have not answered yet; 0: any
     * number. */
    size_t hook_waiters_max;
    const char *folder;   /* folder in which collections sort lists; NULL: nothing is collected */
    uint64_t gc_grace_ms; /* lake.gc.grace: younger files are not collected; 0: 24 h */
    uint64_t gc_day_ms;   /* lake.gc.day: a day of the rules of retention; 0: 24 h */
    /* For tests: memory of each list that a collection sorts, in bytes. 0: the usual sizes. */
    size_t gc_bytes;
    /* Time between two readings of each claim (lake/claim.h). 0, for tests: files may be removed
     * although the claim has just changed. */
    uint64_t claim_every_ms;
    const struct log *log;
};
int lake_open(struct lake **out, const struct lake_options *o, struct err *err) MUST_CHECK;
void lake_close(struct lake *l); /* stops the cleaner; NULL is fine */
struct kv *lake_kv(struct lake *l);

/* --- repositories --- */

struct lake_repo_options {
    struct str id, space, default_branch, owner, storage_id; /* default_branch empty: "main" */
    bool read_only;
    bool bare;    /* make no first commit and no branch; for restore */
    bool claimed; /* the caller has claimed the namespace already */
    /* For a repository whose partition was filled before (lake/migrate.h). An empty token: a new
     * token; a time of 0: the present time. */
    struct str token;
    int64_t created_ms;
};
/* Calls fn() with the name of a repository whenever this process has made or deleted it, or may
 * have done so. fn() may wait. Set once, before the first change. */
void lake_watch_repos(struct lake *l, void (*fn)(void *ctx, struct str id), void *ctx);

/* Claims the namespace, then writes the record, the first commit and the default branch in one
 * atomic step. ERR_EXISTS: the name is that of a repository or a bucket. ERR_IN_USE: the namespace
 * belongs to a repository. */
int lake_repo_create(struct lake *l, struct arena *a, const struct lake_repo_options *o,
                     struct lake_repo *out, struct err *err) MUST_CHECK;
/* Reads the record, never a cached one. */
int lake_repo_get(struct lake *l, struct arena *a, struct str id, struct lake_repo *out,
                  struct err *err) MUST_CHECK;
/* Removes the record and puts the partition on the to-delete list in one atomic step: the name is
 * free at once. lake_delete_work() removes the rest later. */
int lake_repo_delete(struct lake *l, struct arena *a, struct str id, bool force, bool purge,
                     struct err *err) MUST_CHECK;

/* A request for a page of names: the names that begin with `prefix` and are greater than
 * `after`. */
struct lake_page {
    struct str prefix, after;
    size_t limit; /* at most LAKE_LIST_MAX */
};
int lake_repo_list(struct lake *l, struct arena *a, const struct lake_page *p,
                   struct lake_repo **out, size_t *count, bool *more, struct err *err) MUST_CHECK;

/* --- branches and tags --- */

struct lake_branch_options {
    struct str name, source; /* source: any ref expression except `branch$` */
    bool hidden, force;      /* force: change a read-only repository too */
};
int lake_branch_create(struct lake *l, struct arena *a, const struct lake_repo *r,
                       const struct lake_branch_options *o, struct lake_branch *out,
                       struct err *err) MUST_CHECK;
int lake_branch_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    struct lake_branch *out, struct err *err) MUST_CHECK;
int lake_branch_delete(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                       bool force, struct err *err) MUST_CHECK;
int lake_branch_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct lake_page *p, bool show_hidden, struct lake_branch **out,
                     size_t *count, bool *more, struct err *err) MUST_CHECK;

int lake_tag_create(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    struct str ref, bool force, struct lake_tag *out, struct err *err) MUST_CHECK;
int lake_tag_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                 struct lake_tag *out, struct err *err) MUST_CHECK;
int lake_tag_delete(struct lake *l, struct arena *a, const struct lake_repo *r, struct str name,
                    bool force, struct err *err) MUST_CHECK;
int lake_tag_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_page *p, struct lake_tag **out, size_t *count, bool *more,
                  struct err *err) MUST_CHECK;

/* --- refs --- */

/* The thing that a ref expression means: a branch with its staged changes, or a commit. An
 * expression is a name or an id (or a unique prefix of an id, in hex), then `~n`, `^n`, `@` or
 * `$`. */
struct lake_ref {
    enum {
        LAKE_BRANCH,
        LAKE_TAG,
        LAKE_COMMIT
    } kind;                    /* kind of the name that the expression begins with */
    bool staged;               /* the ref is a branch with its uncommitted changes */
    bool explicit_staged;      /* the expression is written as `branch$` */
    struct lake_branch branch; /* when kind is LAKE_BRANCH */
    struct str commit_id;      /* the commit; empty: the branch has none (a bare repository) */
};
int lake_ref_resolve(struct lake *l, struct arena *a, const struct lake_repo *r, struct str expr,
                     struct lake_ref *out, struct err *err) MUST_CHECK;
/* Reads a commit, from memory if it was read before. Commits never change, so this function does
 * not read the repository's record (docs/lake.md, "The repository's record"). */
int lake_commit_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    struct lake_commit *out, struct err *err) MUST_CHECK;
/* Finds the best common ancestor of two commits. ERR_NOT_FOUND: there is none. */
int lake_merge_base(struct lake *l, struct arena *a, const struct lake_repo *r, struct str left,
                    struct str right, struct lake_commit *out, struct err *err) MUST_CHECK;

/* --- objects --- */

struct lake_object {
    struct str path;
    bool is_prefix; /* the item is a common prefix; its other members are empty */
    struct str identity;
    struct lake_entry entry;
};

/* Reads the entry of a path at a ref, with every write that was acknowledged before the call (L1).
 * ERR_NOT_FOUND: the ref does not have it. */
int lake_stat(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
              struct str path, struct lake_object *out, struct err *err) MUST_CHECK;
/* As lake_stat(), without waiting (docs/lake-s3.md, S7). ERR_AGAIN: the answer needs something that
 * is not in memory, or the branch is changing; the caller uses lake_stat() then. */
int lake_stat_now(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
                  struct str path, struct lake_object *out, struct err *err) MUST_CHECK;

struct lake_list_options {
    struct str prefix, delimiter, after; /* the listing has paths that are greater than `after` */
    size_t limit;
};
struct lake_objects {
    struct lake_object *items;
    size_t count;
    bool more;
    struct str next; /* `after` of the next page */
};
int lake_list(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
              const struct lake_list_options *o, struct lake_objects *out,
              struct err *err) MUST_CHECK;

/* A change to stage: an entry under a path, or the removal of the path. */
struct lake_put {
    struct str path;
    const struct lake_entry *entry; /* NULL: remove the path */
};
/* Judges a write by the present entry of the path (NULL: there is none), in the same step as the
 * write. May be called more than once. */
typedef int lake_judge_fn(void *ctx, struct str path, const struct lake_object *present,
                          struct err *err);
struct lake_stage_options {
    lake_judge_fn *judge; /* NULL: no condition */
    void *ctx;
    bool force;
    /* Set if the bodies of the entries existed before, so that a collection does not remove them
     * (lake/keep.h). ERR_BUSY: a collection began or ended meanwhile; the caller must read the
     * entries again and stage them again. NULL: every body was put just now. */
    const struct lake_keep *keep;
    size_t *removed; /* out: the number of removed paths that existed; may be NULL */
    /* Set also after an error: whether the rows of a refused stage may have become part of a
     * commit. Without fences, rows are put before it is known that the branch is unchanged (K4).
     * May be NULL. */
    bool *may_be_there;
};
/* Stages up to LAKE_BATCH_MAX changes on a branch, all or none. If a path occurs twice, only its
 * last change is made. When it returns 0 the changes are durable, and every later read sees them
 * (L1, L4). If several calls stage one path at the same time, one of them wins (L5). */
int lake_stage(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               const struct lake_put *puts, size_t count, const struct lake_stage_options *o,
               struct err *err) MUST_CHECK; /* o NULL: no options */

/* --- commits --- */

struct lake_commit_options {
    struct str message, committer;
    struct str_pairs metadata;
    int64_t created_ms; /* 0: now */
    bool allow_empty, force;
    /* commit only these paths; a path that ends with '/' is a prefix. NULL: all paths */
    const struct str *paths;
    size_t path_count;
    struct str source_tree; /* commit this tree as it is; the branch must be clean */
};
/* Commits the branch as it is at one moment after the call began (L3). No other commit of the
 * branch that is made at the same time is lost (L7). */
int lake_commit(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                const struct lake_commit_options *o, struct lake_commit *out,
                struct err *err) MUST_CHECK;

struct lake_merge_options {
    struct str message, committer;
    struct str_pairs metadata;
    enum tree_strategy strategy;
    enum tree_strategy (*choose)(void *ctx, struct str path);
    void *ctx;
    bool squash, allow_empty, force;
};
struct lake_conflicts {
    struct str *paths; /* at most LAKE_LIST_MAX paths */
    size_t count;
    bool more;
};
/* Merges the ref `source` into the branch `dest`. ERR_CONFLICT: *conflicts has the paths. After any
 * error the branch is as it was (L6). */
int lake_merge(struct lake *l, struct arena *a, const struct lake_repo *r, struct str source,
               struct str dest, const struct lake_merge_options *o, struct lake_commit *out,
               struct lake_conflicts *conflicts, struct err *err) MUST_CHECK;

struct lake_pick_options {
    struct str ref;
    int parent;                    /* number of the parent, from 1; 0: the commit has one parent */
    struct str committer, message; /* message empty: made from the commit's message */
    struct str_pairs metadata;
    bool allow_empty, force;
};
int lake_revert(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                const struct lake_pick_options *o, struct lake_commit *out,
                struct lake_conflicts *conflicts, struct err *err) MUST_CHECK;
int lake_cherry_pick(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                     const struct lake_pick_options *o, struct lake_commit *out,
                     struct lake_conflicts *conflicts, struct err *err) MUST_CHECK;

/* Which staged changes to discard: all, those of one path, or those below a prefix. */
enum lake_reset_kind { LAKE_RESET_ALL, LAKE_RESET_PATH, LAKE_RESET_PREFIX };
int lake_reset(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               enum lake_reset_kind kind, struct str path, bool force, struct err *err) MUST_CHECK;
/* Moves a clean branch to another commit. */
int lake_hard_reset(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                    struct str ref, bool force, struct err *err) MUST_CHECK;

/* --- differences and history --- */

struct lake_difference {
    enum { LAKE_ADDED, LAKE_REMOVED, LAKE_CHANGED, LAKE_CONFLICT, LAKE_PREFIX_CHANGED } type;
    struct str path;
    bool is_prefix;
    struct lake_object left, right; /* empty where that side does not have the path */
};
struct lake_differences {
    struct lake_difference *items;
    size_t count;
    bool more;
    struct str next;
};
/* Lists the branch's changes that are not committed. */
int lake_diff_branch(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                     const struct lake_list_options *o, struct lake_differences *out,
                     struct err *err) MUST_CHECK;
/* Two-dot: lists the differences between two refs. Three-dot: lists the changes of `right` since
 * its merge base with `left`; paths that both changed differently are conflicts. */
int lake_diff_refs(struct lake *l, struct arena *a, const struct lake_repo *r, struct str left,
                   struct str right, bool three_dot, const struct lake_list_options *o,
                   struct lake_differences *out, struct err *err) MUST_CHECK;

struct lake_log_options {
    struct str after; /* a commit id: the page begins after this commit */
    size_t limit;
    bool first_parent;
    int64_t since_ms; /* leave out older commits; 0: none */
    /* the walk ends with this commit; empty: it ends with the oldest commit */
    struct str stop_at;
    /* only commits that changed one of these paths or prefixes */
    const struct str *objects, *prefixes;
    size_t object_count, prefix_count;
};
int lake_log(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
             const struct lake_log_options *o, struct lake_commit **out, size_t *count, bool *more,
             struct err *err) MUST_CHECK;

#endif
