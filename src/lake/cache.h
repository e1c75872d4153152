/* The cache of trees: open nodes and decoded blocks in a bounded part of memory, and whole node
 * files of remote storages on disk (docs/lake-trees.md, "Caches").
 *
 * Any thread may call these functions. A hold keeps a node or a block in memory until
 * cache_release(), even if the cache has dropped it meanwhile. */
#ifndef LAKE_CACHE_H
#define LAKE_CACHE_H

#include "lake/node.h"

struct pool;
struct cache_slot; /* a hold */

/* Gives the open node. If the node is not in memory, one caller reads it and all others wait for
 * that read. ERR_CORRUPT: the node is damaged or missing. ERR_AGAIN: t->now is set, which forbids
 * waiting, and the node is not in memory. */
int cache_node(struct tree_store *t, const struct node_id *id, struct cache_slot **hold,
               const struct node **out, struct err *err) MUST_CHECK;
/* Notes that a look-up asks for a block of the node, and returns whether probably another one has
 * done so before, since the node came into memory. */
bool cache_node_asked(struct cache_slot *node, size_t block);
/* Gives a decoded block of an open node, and caches it. ERR_AGAIN: t->now is set, and the call
 * would have to wait for another thread that is decoding the block. */
int cache_block(struct tree_store *t, const struct node *n, size_t block, struct cache_slot **hold,
                struct str *out, struct err *err) MUST_CHECK;
/* Gives the block if it is in memory; otherwise returns false. */
bool cache_block_peek(struct tree_cache *c, const struct node *n, size_t block,
                      struct cache_slot **hold, struct str *out);
void cache_release(struct cache_slot **hold); /* sets *hold to NULL */

/* Caches the file of a node that was just written, because the next change will read it. */
void cache_written(struct tree_store *t, const struct node_id *id, unsigned level, struct str file);

/* Lends a decompressor until cache_zstd_give(). */
void *cache_zstd_take(struct tree_cache *c);
void cache_zstd_give(struct tree_cache *c, void *zstd);

/* These two functions lend and keep jobs that no builder uses now (lake/tree_build.h), so that
 * their memory is used again. cache_job_take() returns NULL when no job is kept. cache_job_give()
 * returns false when enough jobs are kept; then the caller frees the job. */
struct tree_job;
struct tree_job *cache_job_take(struct tree_cache *c);
bool cache_job_give(struct tree_cache *c, struct tree_job *j);

struct pool *cache_pool(struct tree_cache *c); /* its threads write nodes */

/* --- the part on disk (cache_disk.c) --- */

struct cache_disk;
int cache_disk_open(struct cache_disk **out, const char *folder, uint64_t max_bytes,
                    const struct log *log, struct err *err) MUST_CHECK;
void cache_disk_close(struct cache_disk *d);
enum { CACHE_NAME_LEN = LAKE_ID_LEN + 1 + 16 };
void cache_disk_name(char out[CACHE_NAME_LEN + 1], struct str scope, const struct node_id *id);
/* Appends the file's bytes. Returns false when the cache does not have the whole file. */
bool cache_disk_get(struct cache_disk *d, const char *name, struct buf *out);
void cache_disk_put(struct cache_disk *d, const char *name, struct str bytes);
uint64_t cache_disk_bytes(struct cache_disk *d);

#endif
