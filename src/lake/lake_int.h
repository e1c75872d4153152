/* Declarations that the files of src/lake/ share: the struct, the names of rows, and the list of
 * changes that one atomic write makes. */
#ifndef LAKE_LAKE_INT_H
#define LAKE_LAKE_INT_H

#include "lake/branch_cache.h"
#include "lake/commit_cache.h"
#include "lake/commit_queue.h"
#include "lake/lake.h"
#include "lake/notes.h"
#include "lake/protect.h"
#include "lake/step.h"
#include "os/loop.h"

enum {
    /* how often a commit may begin again because other changes of the branch came first (R4 of C5
     * in docs/lake.md). Every other change of a head has the same limit on its tries */
    LAKE_HEAD_TRIES = 10,
    /* a change of a branch is tried again for at most this time */
    LAKE_DEADLINE_MS = 5 * MS_PER_MINUTE,
    LAKE_CLAIM_FRESH_MS = MS_PER_MINUTE,
    LAKE_CLAIM_ASK_MS = MS_PER_S,
    LAKE_NODE_WAIT_MS = 30 * MS_PER_S,
    /* a draft whose row is older than this gets a new row (draft.c). The cleaner gives up drafts
     * whose row is older than an hour (clean.c) */
    LAKE_DRAFT_RENEW_MS = 10 * MS_PER_MINUTE,
    /* most commits that the walks in log_pauses.h together may have returned; each commit costs
     * about 50 bytes of memory */
    LAKE_PAUSED_COMMITS = 200000,
    LAKE_COMMITS_BYTES = 16 << 20, /* memory of the cache of commits */
    /* most bytes of the nodes in memory when merge bases are merged (base_tree.c) */
    LAKE_BASE_BYTES = 256 << 20,
    /* least time between two writes of the progress of a dump or a restore */
    LAKE_REFS_NOTE_MS = MS_PER_S,
};

struct lake {
    struct lake_options o;
    struct kv *kv;
    struct tree_cache *cache;
    struct loop cleaner;        /* clean.c: drops the tokens on the cleanup list */
    struct commit_queue *queue; /* commit_queue.c: commits of one branch wait for each other */
    struct commit_cache *commits;
    struct branch_cache *branches;
    struct lake_claims *claims; /* claim_hold.c: the claims that this process has read */
    struct lake_rights *rights; /* right.c: answers whether owners may use their namespaces */
    struct lake_notes *notes;   /* notes.c: operations that were slow or failed */
    struct log_pauses *logs;    /* log_pauses.c: walks that wait for their next page */
    /* While a claim is younger than this, its repository may still be under construction, so the
     * claim is not replaced (claim.c). Tests set this time. */
    int64_t claim_fresh_ms;
    /* how old the last reading of a claim may be when a file is removed (N5). Tests set it */
    uint64_t claim_ask_ms;
    uint64_t node_wait_ms;   /* how long a commit waits for a node to be removed. Tests set it */
    uint64_t draft_renew_ms; /* LAKE_DRAFT_RENEW_MS. Tests set it */
    uint64_t refs_note_ms;   /* LAKE_REFS_NOTE_MS. Tests set it */
    size_t base_bytes_max;   /* LAKE_BASE_BYTES. Tests set it */
    size_t heads_bytes;      /* memory of an iterator over heads; LAKE_HEADS_BYTES. Tests set it */
    struct compactions *compactions; /* compact.c: branches that the cleaner's thread compacts */
    void (*repo_changed)(void *ctx, struct str id); /* set by lake_watch_repos() */
    void *repo_changed_ctx;
};

/* --- names of rows (keys.c); the strings are in the arena --- */

/* partition of the repositories and the to-delete list */
#define LAKE_PARTITION  STR("graveler")
#define LAKE_CLEANUP    STR("cleanup-tokens") /* partition of the tokens to drop */
#define LAKE_STAGED_KEY "key/"                /* beginning of the keys in a token's partition */
#define LAKE_NODES      "_lakefs"             /* the folder of nodes below a namespace */
#define LAKE_CLAIM      LAKE_NODES "/dummy"   /* the object that claims a namespace */
#define LAKE_ACTIONS    STR("actions")        /* partition of hook runs */
#define LAKE_BODIES     "data"                /* the folder of objects' bodies below a namespace */

struct kv_name lake_key_repo(struct arena *a, struct str id);
struct kv_name lake_key_to_delete(struct arena *a, struct str partition);
struct kv_name lake_key_branch(struct arena *a, struct str partition, struct str name);
struct kv_name lake_key_commit(struct arena *a, struct str partition, struct str id);
struct kv_name lake_key_first(struct arena *a, struct str partition, struct str id);
struct kv_name lake_key_tag(struct arena *a, struct str partition, struct str name);
struct kv_name lake_key_staged(struct arena *a, struct str token, struct str path);
struct kv_name lake_key_cleanup(struct arena *a, struct str token);
/* Returns the name of the row "<kind>/<name>" in a repository's partition, for settings, imports,
 * uploads and the like. */
struct kv_name lake_key_in(struct arena *a, struct str partition, const char *kind,
                           struct str name);

/* Makes a new staging token, "<repository>-<branch>:<uuid>". */
struct str lake_new_token(struct arena *a, const struct lake_repo *r, struct str branch);
/* Returns a random first epoch for a branch. So a commit that began on an earlier branch of the
 * same name sees another epoch, and does not mistake the new branch for the old one (C5). */
uint64_t lake_new_epoch(void);

/* --- one atomic write --- */

/* Changes that are written together. Values are encoded into the arena. If the list grows past the
 * limit of kv_write(), it fails, and lake_tx_write() returns the error. */
struct lake_tx {
    struct arena *arena;
    struct kv_change *changes;
    size_t count, room;
    bool frees;  /* the puts that are added are parts of a removal (kv_change.frees) */
    bool later;  /* a later write makes the changes durable (kv_change.later) */
    bool failed; /* too many changes, a record past a limit, or the arena is full */
};
void lake_tx_init(struct lake_tx *tx, struct arena *a);
/* Moves an encoded record into the arena and releases the buf. If the record is one that a reader
 * would refuse, its buf has failed (base/proto.h), and the list fails too. */
struct str lake_tx_record(struct lake_tx *tx, struct buf *record);
void lake_tx_put(struct lake_tx *tx, struct kv_name name, struct str value);
void lake_tx_put_if(struct lake_tx *tx, struct kv_name name, struct str value, enum kv_when when,
                    struct str stamp);
void lake_tx_remove(struct lake_tx *tx, struct kv_name name, enum kv_when when, struct str stamp);
void lake_tx_check(struct lake_tx *tx, struct kv_name name, struct str stamp);
/* Like lake_tx_check(), but the caller chooses KV_CHECK or KV_GLANCE. */
void lake_tx_look(struct lake_tx *tx, struct kv_name name, struct str stamp, enum kv_what how);
/* Every write into a repository carries this check: the repository's record is the one that was
 * read, so the repository was not deleted or made again meanwhile. */
void lake_tx_check_repo(struct lake_tx *tx, const struct lake_repo *r);
/* Puts the changed record of the repository, on the condition that the stored record is still as it
 * was read (r->stamp). */
void lake_tx_put_repo(struct lake_tx *tx, const struct lake_repo *r);
/* Puts the branch's record with its revision one higher, on the condition that the stored record is
 * still as it was read (b->stamp). */
void lake_tx_put_branch(struct lake_tx *tx, const struct lake_repo *r, struct lake_branch *b);
/* Puts the commit's record, and the mark of its first parent. */
void lake_tx_put_commit(struct lake_tx *tx, const struct lake_repo *r, const struct lake_commit *c);
/* Puts the token on the cleanup list. */
void lake_tx_drop_token(struct lake_tx *tx, struct str token);
/* Makes the changes. ERR_PRECONDITION: *failed (unless NULL) is the index of the change whose
 * condition failed. */
int lake_tx_write(struct lake *l, struct lake_tx *tx, size_t *failed, struct err *err) MUST_CHECK;
/* Does what lake_tx_write() does, and also reads the rows `names` in the same round trip, after the
 * changes are made. */
int lake_tx_write_get(struct lake *l, struct lake_tx *tx, const struct kv_name *names, size_t count,
                      struct kv_value *out, struct err *err) MUST_CHECK;

/* Puts a new row of the repository. ERR_EXISTS: the row exists already. ERR_NOT_FOUND: the
 * repository was deleted. */
int lake_put_new(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                 struct str record, struct err *err) MUST_CHECK;
/* Puts a row of the repository that exists already, if it still has the stamp with which it was
 * read. ERR_PRECONDITION: the row has changed. ERR_NOT_FOUND: the repository was deleted. */
int lake_put_same(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                  struct str record, struct str stamp, struct err *err) MUST_CHECK;
/* Removes a row of the repository. ERR_NOT_FOUND: the repository was deleted. */
int lake_row_remove(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                    struct err *err) MUST_CHECK;
/* Puts the record of a new branch or tag, which refers to the commit `commit_id`; an empty id: it
 * refers to no commit. Errors: those of lake_put_new(), and ERR_GONE: the commit has expired. */
int lake_put_ref(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                 struct str record, struct str commit_id, struct err *err) MUST_CHECK;

/* --- reading records --- */

/* Reads the records of the repository and of the branch in one round trip, into *repo_now and *out.
 * `repo_now` must not be `r`, because their tokens are compared. ERR_NOT_FOUND: one of the records
 * is missing, and the text says which, or the repository was made again since `r` was read. */
int lake_read_branch(struct lake *l, struct kv_view *view, struct arena *a,
                     const struct lake_repo *r, struct str name, struct lake_repo *repo_now,
                     struct lake_branch *out, struct err *err) MUST_CHECK;

/* Reads a row of the repository, and the repository's record in the same round trip. ERR_NOT_FOUND:
 * the repository was deleted, or made again since `r` was read; or the row is missing, and the text
 * is `missing`. If `missing` is NULL, a missing row is no error: kv_is_there() is false for it. */
int lake_row_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                 const char *missing, struct kv_value *out, struct err *err) MUST_CHECK;

/* Checks that the repository exists as it was when `r` was read. `value` is the row of its record,
 * which was read again. ERR_NOT_FOUND: the repository was deleted, or made again. */
int lake_check_repo_row(struct arena *a, const struct lake_repo *r, const struct kv_value *value,
                        struct err *err) MUST_CHECK;

/* Decodes the repository's record, which was read again. ERR_NOT_FOUND: the repository was deleted,
 * or made again. */
int lake_decode_repo(struct arena *a, const struct lake_repo *r, const struct kv_value *value,
                     struct lake_repo *repo_now, struct err *err) MUST_CHECK;

/* Decodes the two values that lake_read_branch() reads, the repository's record and then the
 * branch's. For callers that read more rows in the same round trip. */
int lake_decode_branch(struct arena *a, const struct lake_repo *r, const struct kv_value *values,
                       struct lake_repo *repo_now, struct lake_branch *out,
                       struct err *err) MUST_CHECK;

/* Like lake_ref_resolve(), but reads in a view. */
int lake_ref_resolve_in(struct lake *l, struct kv_view *view, struct arena *a,
                        const struct lake_repo *r, struct str expr, struct lake_ref *out,
                        struct err *err) MUST_CHECK;

/* Finds the commit that a ref expression means. ERR_INVALID: there is no such commit, or the
 * expression is `branch$`. If the expression is a commit id, as it mostly is, branches and tags are
 * not read. */
int lake_ref_commit(struct lake *l, struct arena *a, const struct lake_repo *r, struct str expr,
                    struct str *id, struct err *err) MUST_CHECK;

/* Reads the repository's record again, after a write found it changed. ERR_NOT_FOUND: the
 * repository was deleted, or made again. */
int lake_repo_again(struct lake *l, struct arena *a, const struct lake_repo *r,
                    struct lake_repo *out, struct err *err) MUST_CHECK;

/* Fills the store of the repository's nodes (nodes.c). lake_tree_store_release() ends its use; `r`
 * is borrowed until then. */
int lake_tree_store(struct lake *l, const struct lake_repo *r, struct tree_store *out,
                    struct err *err) MUST_CHECK;
/* Makes the store check every node that it puts against `keep`, the state of the collector
 * (lake_keep_node()). `keep` is borrowed until the release. */
void lake_tree_store_keep(struct tree_store *t, const struct lake_keep *keep);
void lake_tree_store_release(struct lake *l, struct tree_store *t);

/* Refuses a change of a read-only repository ("read-only repository"), unless `force` is set. */
int lake_check_writable(const struct lake_repo *r, bool force, struct err *err) MUST_CHECK;

/* --- pages of names (rows.c) --- */

/* Opens a scan of the rows "<kind>/<name>" of a partition whose names begin with the page's prefix
 * and are greater than its `after`. */
int lake_rows_open(struct kv_scan **out, struct lake *l, struct kv_view *view, struct arena *a,
                   struct str partition, const char *kind, const struct lake_page *p,
                   struct err *err) MUST_CHECK;

/* Reads the record of a row into an item; its bytes stay in the arena. ERR_AGAIN: the row is left
 * out of the page. */
typedef int lake_row_fn(void *item, void *ctx, struct arena *a, struct str record, struct err *err);

/* A kind of rows of which a page is read into an array. */
struct lake_rows {
    /* The repository to which the rows belong. NULL: the rows belong to no repository, or to one
     * that is being removed. */
    const struct lake_repo *repo;
    struct str partition;
    const char *kind;
    size_t item_size; /* size of an item in bytes */
    lake_row_fn *read;
    void *ctx;
};
/* Reads a page of at most LAKE_LIST_MAX items. *items is an array in the arena. After the rows the
 * repository's record is read, because a scan cannot read it in the same round trip. ERR_NOT_FOUND:
 * the repository was deleted, so rows may be missing from the page. */
int lake_rows_page(struct lake *l, struct arena *a, const struct lake_rows *rows,
                   const struct lake_page *p, void **items, size_t *count, bool *more,
                   struct err *err) MUST_CHECK;

/* --- the cleaner (clean.c) --- */

int lake_cleaner_start(struct lake *l, struct err *err) MUST_CHECK;
void lake_cleaner_wake(struct lake *l);
/* Drops all tokens of the cleanup list that may be dropped now; for tests and for the cleaner. */
int lake_clean(struct lake *l, struct err *err) MUST_CHECK;

#endif
