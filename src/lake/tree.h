/* Trees: immutable, sorted maps from paths to objects. They are made of node files that are named
 * by their content. docs/lake-trees.md has the file format, the rule of splitting and the numbered
 * invariants.
 *
 * The name of a tree is the id of its root, 64 hex digits (lakeFS calls it the commit's metarange
 * id). The name of the empty tree is the empty string. Equal records give an equal id, whatever the
 * history (T2). Nodes of level 0 are leaves (lakeFS: ranges) and have records; nodes above have the
 * ids of their children. Nodes that lakeFS has written (RocksDB tables) are read as they are.
 *
 * A struct tree_store is the place of one repository's nodes. Any thread may use it. An iterator
 * belongs to one thread.
 *
 * Errors: ERR_CORRUPT (a node is missing or damaged; the text names it, T7), ERR_NOT_FOUND (the
 * tree does not have the path), ERR_UNAVAILABLE and other errors of the storage. */
#ifndef LAKE_TREE_H
#define LAKE_TREE_H

#include "base/arena.h"
#include "base/err.h"
#include "lake/record.h"

/* A record of a leaf. */
struct tree_record {
    struct str key;
    struct str identity; /* weir writes LAKE_IDENTITY_LEN bytes; any length can be read */
    struct str data;     /* an encoded lake_entry */
};

/* --- where nodes are --- */

/* A node file that is to be written. */
struct node_bytes {
    struct str id, bytes;
};

/* Reads and writes whole node files. lake/nodes.c implements it by buckets, and tests implement it
 * in memory. */
struct node_place {
    /* Appends the file's bytes. ERR_NOT_FOUND: there is no such file. */
    int (*read)(void *ctx, struct str id, struct buf *out, struct err *err);
    /* Writes the file durably. An existing file is written again, because a collector may be about
     * to remove it (T4). */
    int (*write)(void *ctx, struct str id, struct str bytes, struct err *err);
    /* Writes several files as write() does, on one thread and with fewer syncs. After an error some
     * of the files may have been written. NULL: write() is called for each file, by several threads
     * at the same time. */
    int (*write_all)(void *ctx, const struct node_bytes *files, size_t count, struct err *err);
    void *ctx;
    bool is_far; /* reads wait for another host, so node files are also cached on disk */
};

struct tree_cache; /* a bounded cache of open nodes and decoded blocks, for all repositories */
struct tree_cache_options {
    size_t memory_bytes; /* lake.memory */
    /* folder in which nodes of remote storages are cached; NULL: they are not cached on disk */
    const char *folder;
    uint64_t disk_bytes; /* lake.disk */
    const struct log *log;
};
int tree_cache_open(struct tree_cache **out, const struct tree_cache_options *o,
                    struct err *err) MUST_CHECK;
void tree_cache_close(struct tree_cache *c); /* NULL is fine */
struct tree_cache_stats {
    uint64_t hits, misses, memory_bytes, disk_bytes, evicted;
};
void tree_cache_stats(struct tree_cache *c, struct tree_cache_stats *out);

struct tree_store {
    struct tree_cache *cache; /* borrowed */
    struct node_place place;
    /* The scope in which nodes are cached, which is the repository's partition. The cache finds a
     * node by its scope and its id. */
    struct str scope;
    /* The target sizes of nodes, in bytes; 0: those of docs/lake-trees.md. Trees with other target
     * sizes have other ids. Tests use small sizes to make deep trees of few records. */
    size_t leaf_bytes, index_bytes;
    /* If set, reads of the tree never wait: they return ERR_AGAIN if a node is not in memory. */
    bool now;
};

/* --- reading --- */

/* Finds the record of a path. Its strings are in the arena. ERR_NOT_FOUND: the tree does not have
 * the path. */
int tree_get(struct tree_store *t, struct arena *a, struct str root, struct str key,
             struct tree_record *out, struct err *err) MUST_CHECK;

struct tree_stats {
    uint64_t objects, bytes; /* number of records; sum of the sizes of their keys and values */
    unsigned height;         /* number of levels, including the leaves; 0: the empty tree */
};
/* Fills the counts. Only the root is read. */
int tree_stats(struct tree_store *t, struct str root, struct tree_stats *out,
               struct err *err) MUST_CHECK;

/* Iterates the records in the order of their keys. The root may also be any other node, such as a
 * leaf that tree_walk() has found. */
struct tree_iter;
int tree_iter_open(struct tree_iter **out, struct tree_store *t, struct str root,
                   struct err *err) MUST_CHECK;
/* Gives the next record. ERR_END: there are no more. The strings are borrowed until the next call
 * on the iterator. */
int tree_iter_next(struct tree_iter *it, struct tree_record *out, struct err *err) MUST_CHECK;
/* Moves the iterator: the next record is the first one at or after `key`. */
void tree_iter_seek(struct tree_iter *it, struct str key);
void tree_iter_close(struct tree_iter *it); /* NULL is fine */

/* Calls `fn` for the root and every node below it, once for each id. Leaves have level 0. If `skip`
 * returns true for a node, that node and the nodes below it are left out; `skip` may be NULL. Used
 * by collections and by the diagnosis. */
struct node_visit {
    struct str id;
    unsigned level;
    bool foreign; /* a RocksDB table of lakeFS */
    uint64_t objects;
};
int tree_walk(struct tree_store *t, struct str root,
              bool (*skip)(void *ctx, const struct node_visit *v),
              int (*fn)(void *ctx, const struct node_visit *v, struct err *err), void *ctx,
              struct err *err) MUST_CHECK;

/* --- making --- */

/* A source of changes in the order of their keys, with each key at most once. A record without
 * identity removes the key. ERR_END: there are no more changes. The strings are valid until the
 * next call. */
struct tree_changes {
    int (*next)(void *ctx, struct tree_record *out, struct err *err);
    void *ctx;
};

struct tree_result {
    char root[LAKE_ID_LEN + 1]; /* "" for the empty tree */
    /* Numbers of records that tree_apply() has added, changed and removed. If a record is
     * replaced by one with the same identity, that does not count (T9). After tree_merge() these
     * numbers are 0, because it takes over whole nodes without reading them. tree_diff() can
     * find the changes. */
    uint64_t added, changed, removed;
    uint64_t nodes; /* node files that were written */
};

/* Makes a tree that has the records of `base`, with the changes applied. A subtree that no change
 * touches becomes part of the result by its id, without being read (T5). All nodes are durable when
 * this returns (T3). Several nodes are written at the same time, on threads of low priority; if `o`
 * is NULL, the caller's thread writes all nodes. */
struct tree_write_options {
    unsigned writers; /* number of node files that are written at the same time; 0: 16 */
};
int tree_apply(struct tree_store *t, struct str base, const struct tree_changes *changes,
               const struct tree_write_options *o, struct tree_result *out,
               struct err *err) MUST_CHECK;

/* --- comparing --- */

enum tree_diff_type { TREE_ADDED, TREE_REMOVED, TREE_CHANGED };

struct tree_difference {
    enum tree_diff_type type;
    struct str key;
    struct tree_record left, right; /* empty where that side does not have the key */
};

/* Iterates the keys that differ between two trees, in their order. A key was added in `right`,
 * removed from `left`, or changed (it has another identity). Equal subtrees are skipped as a whole
 * (T8). */
struct tree_diff;
int tree_diff_open(struct tree_diff **out, struct tree_store *t, struct str left, struct str right,
                   struct str prefix, struct err *err) MUST_CHECK;
/* Gives the next difference. ERR_END: there are no more. The strings are borrowed until the next
 * call. */
int tree_diff_next(struct tree_diff *d, struct tree_difference *out, struct err *err) MUST_CHECK;
void tree_diff_seek(struct tree_diff *d, struct str key);
void tree_diff_close(struct tree_diff *d); /* NULL is fine */

enum tree_strategy { TREE_NO_STRATEGY, TREE_SOURCE_WINS, TREE_DEST_WINS };

struct tree_merge {
    struct str base, source, dest; /* ids of the three roots */
    enum tree_strategy strategy;
    /* Chooses a side for one conflicting path. If choose is NULL, or returns TREE_NO_STRATEGY,
     * `strategy` decides. */
    enum tree_strategy (*choose)(void *ctx, struct str key);
    /* Called for each conflict that neither choose() nor `strategy` decides, in the order of
     * keys. */
    void (*conflict)(void *ctx, struct str key);
    void *ctx;
};
/* Merges the changes from `base` to `source` into `dest`, by the table in docs/lake-trees.md. Keys
 * and identities are compared. ERR_CONFLICT: some conflicts were not decided; they were passed to
 * conflict(), and there is no result. All nodes are durable when this returns 0 (T3). */
int tree_merge(struct tree_store *t, const struct tree_merge *m, const struct tree_write_options *o,
               struct tree_result *out, struct err *err) MUST_CHECK;

#endif
