/* A spine is a position in a tree: the path from the root down to an *item*, which is a record, or
 * a node that was not entered. Readers of whole trees, diff, merge and apply all move spines. They
 * enter the nodes that they must read, and skip the other nodes.
 *
 * A spine belongs to one thread. The strings of its item are valid until the spine moves. */
#ifndef LAKE_TREE_SPINE_H
#define LAKE_TREE_SPINE_H

#include "lake/cache.h"

/* A position in one node. */
struct node_cursor {
    struct tree_store *store;
    struct cache_slot *node_hold, *block_hold;
    const struct node *node;
    size_t block; /* the block that is open */
    /* offset of the record in its block; SIZE_MAX: not known, because the cursor was moved by a
     * seek */
    size_t from;
    bool keep;      /* blocks of leaves that are asked for again are cached, too */
    struct buf own; /* the decoded block of a leaf, if it is not in the cache */
    struct block_cursor at;
};

/* Opens the node `id`, and places the cursor before its first record. */
int node_cursor_open(struct node_cursor *c, struct tree_store *t, const struct node_id *id,
                     struct err *err) MUST_CHECK;
void node_cursor_close(struct node_cursor *c); /* keeps the memory for the next opening */
void node_cursor_release(struct node_cursor *c);
/* Moves to the next record. ERR_END: there are no more. */
int node_cursor_next(struct node_cursor *c, struct err *err) MUST_CHECK;
int node_cursor_seek(struct node_cursor *c, struct str key, struct err *err) MUST_CHECK;
bool node_cursor_is_last(const struct node_cursor *c);
/* Decodes the cursor's record, which describes a child of the node. */
int node_cursor_child(const struct node_cursor *c, struct node_child *out,
                      struct err *err) MUST_CHECK;

/* The item at a spine's position: a record, or a node that was not entered. */
struct tree_item {
    unsigned level;      /* 0: a record; n: a node of level n - 1, not entered */
    struct str min, max; /* smallest and greatest key; for a record both are its key */
    struct str value;    /* the value of the item's record, as it is stored */
    struct node_origin origin;
    struct tree_record record;
    struct node_child child;
    /* The item is a node, and the last one of its level. It may have ended only because the tree
     * has no more records, and not by the rule of splitting. */
    bool tail;
};

struct tree_spine {
    struct tree_store *store;
    bool end;     /* the spine is after the last item */
    unsigned top; /* the level of the root */
    struct node_cursor *levels[NODE_LEVEL_MAX + 1];
    struct tree_item item;
    /* The node that the spine has entered last at each level, if `has_entered`. tree_build.h
     * compares new nodes with them. */
    struct node_id entered[NODE_LEVEL_MAX + 1];
    bool has_entered[NODE_LEVEL_MAX + 1];
};

/* Places the spine at the first item of the root. If `root` is "", which is the empty tree, the
 * spine is at the end. */
int tree_spine_open(struct tree_spine *s, struct tree_store *t, struct str root,
                    struct err *err) MUST_CHECK;
void tree_spine_close(struct tree_spine *s);
/* Enters the node at the spine's position and moves to its first item. */
int tree_spine_enter(struct tree_spine *s, struct err *err) MUST_CHECK;
/* Moves to the item after the present one, in the same node or a node above it. Nodes below the
 * present item are not read. */
int tree_spine_next(struct tree_spine *s, struct err *err) MUST_CHECK;
/* Moves to the first item that has no key before `key`. */
int tree_spine_seek(struct tree_spine *s, struct str key, struct err *err) MUST_CHECK;
/* Enters nodes until the spine is at a record or at the end. */
int tree_spine_record(struct tree_spine *s, struct err *err) MUST_CHECK;

#endif
