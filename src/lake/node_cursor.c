/* A position in one node. The node's blocks are decoded one after another. Blocks of nodes above
 * the leaves stay in the cache. Blocks of leaves stay in the cache only if look-ups of single keys
 * have asked for them twice, so that neither reading a whole tree nor look-ups of random keys evict
 * everything else. */
#include "lake/tree_spine.h"

int node_cursor_open(struct node_cursor *c, struct tree_store *t, const struct node_id *id,
                     struct err *err)
{
    c->store = t;
    c->block = SIZE_MAX;
    c->at.at = c->at.len = 0;
    return cache_node(t, id, &c->node_hold, &c->node, err);
}

void node_cursor_close(struct node_cursor *c)
{
    if (!c->store)
        return;
    cache_release(&c->block_hold);
    cache_release(&c->node_hold);
    c->node = NULL;
}

void node_cursor_release(struct node_cursor *c)
{
    node_cursor_close(c);
    buf_release(&c->own);
}

static int cursor_decode(struct node_cursor *c, size_t block, struct str *bytes, struct err *err)
{
    struct tree_cache *cache = c->store->cache;

    if (c->node->level > 0 || (c->keep && cache_node_asked(c->node_hold, block)))
        return cache_block(c->store, c->node, block, &c->block_hold, bytes, err);
    if (cache_block_peek(cache, c->node, block, &c->block_hold, bytes))
        return 0;
    buf_reset(&c->own);
    void *zstd = cache_zstd_take(cache);
    int code = node_block_read(c->node, block, zstd, &c->own, err);
    cache_zstd_give(cache, zstd);
    *bytes = buf_str(&c->own);
    return code;
}

/* Decodes a block of the node, and places the cursor before its first record. */
static int cursor_block(struct node_cursor *c, size_t block, struct err *err)
{
    enum { TABLE_TRAILER = 8 }; /* RocksDB stores a sequence number and a type after each key */
    struct str bytes = {0};

    cache_release(&c->block_hold);
    c->block = block;
    int code = cursor_decode(c, block, &bytes, err);
    if (code == 0 && block_cursor_open(&c->at, bytes, c->node->foreign ? TABLE_TRAILER : 0))
        code = node_corrupt(&c->node->id, "is damaged: a block is malformed", err);
    if (code)
        c->at.at = c->at.len = 0;
    return code;
}

static int cursor_code(const struct node_cursor *c, int code, struct err *err)
{
    if (code == ERR_CORRUPT)
        return node_corrupt(&c->node->id, "is damaged: a record is malformed", err);
    return code;
}

int node_cursor_next(struct node_cursor *c, struct err *err)
{
    int code = 0;

    while (c->block == SIZE_MAX || c->at.at >= c->at.len) {
        size_t next = c->block == SIZE_MAX ? 0 : c->block + 1;
        if (next >= c->node->blocks.len)
            return ERR_END;
        if ((code = cursor_block(c, next, err)))
            return code;
    }
    c->from = c->at.at;
    return cursor_code(c, block_cursor_next(&c->at), err);
}

int node_cursor_seek(struct node_cursor *c, struct str key, struct err *err)
{
    size_t block = node_block_find(c->node, key);
    int code;

    if (block >= c->node->blocks.len)
        return ERR_END;
    if (block != c->block && (code = cursor_block(c, block, err)))
        return code;
    c->from = SIZE_MAX;
    code = block_cursor_seek(&c->at, key);
    /* In the index of a lakeFS table, the key of a block may be greater than the block's last key.
     * Then the search ends behind the block, and the record is the first one of the next block. */
    return code == ERR_END ? node_cursor_next(c, err) : cursor_code(c, code, err);
}

bool node_cursor_is_last(const struct node_cursor *c)
{
    return c->block + 1 == c->node->blocks.len && c->at.at >= c->at.len;
}

int node_cursor_child(const struct node_cursor *c, struct node_child *out, struct err *err)
{
    int code = c->node->foreign ? node_child_read_foreign(out, c->at.value)
                                : node_child_read(out, c->at.value);

    if (code || str_cmp(out->min, block_cursor_key(&c->at)) > 0)
        return cursor_code(c, ERR_CORRUPT, err);
    return 0;
}
