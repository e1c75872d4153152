/* Reads all that a node file holds, as weir does, and checks what readers rely on. */
#ifndef FUZZ_LAKE_READ_NODE_H
#define FUZZ_LAKE_READ_NODE_H

#include "lake/node.h"

#include <zstd.h>

static inline void read_record(const struct node *n, const struct block_cursor *c)
{
    struct tree_record r;
    struct node_child child;
    const char *end = c->value.p + c->value.len;

    if (node_record_read(&r, block_cursor_key(c), c->value) == 0)
        BUG_ON(r.data.p + r.data.len != end || r.identity.len + r.data.len > c->value.len);
    if (node_child_read(&child, c->value) == 0)
        BUG_ON(child.min.p < c->value.p || child.min.p + child.min.len >= end);
    if (node_child_read_foreign(&child, c->value) == 0)
        BUG_ON(child.min.p < c->value.p || child.min.p + child.min.len > end);
}

/* Keys ascend in a block, and a search for each key finds it. */
static inline void read_block(const struct node *n, struct str raw)
{
    static struct block_cursor c, found;
    unsigned trailer = n->foreign ? 8 : 0;

    if (block_cursor_open(&c, raw, trailer))
        return;
    for (size_t seeks = 0; block_cursor_next(&c) == 0; seeks++) {
        struct str key = block_cursor_key(&c);
        BUG_ON(key.len > NODE_KEY_MAX);
        read_record(n, &c);
        if (seeks < 64 && block_cursor_open(&found, raw, trailer) == 0 &&
            block_cursor_seek(&found, key) == 0)
            BUG_ON(str_cmp(block_cursor_key(&found), key) < 0);
    }
}

static inline void read_node(struct str bytes, const struct node_id *id)
{
    struct buf file = BUF_INIT(NODE_FILE_MAX), raw = {0};
    struct node *n = NULL;
    ZSTD_DCtx *zstd = ZSTD_createDCtx();

    buf_append_str(&file, bytes);
    if (node_open(&n, id, &file, zstd, NULL) == 0) {
        BUG_ON(n->blocks.len == 0 || n->blocks.len > bytes.len);
        BUG_ON(node_block_find(n, STR_EMPTY) > n->blocks.len);
        for (size_t i = 0; i < n->blocks.len; i++) {
            buf_reset(&raw);
            if (node_block_read(n, i, zstd, &raw, NULL) == 0)
                read_block(n, buf_str(&raw));
        }
        node_free(n);
    }
    ZSTD_freeDCtx(zstd);
    buf_release(&file);
    buf_release(&raw);
}

#endif
