/* A spine: a place in a tree, which is the way from the root down to a record, or to a node that
 * has not been entered. Readers of whole trees, diff, merge and apply all move spines: they enter
 * the nodes that they need to see and step over the others without reading them.
 *
 * A spine belongs to one thread. Strings of its item are borrowed until the spine moves. */
#ifndef LAKE_TREE_SPINE_H
#define LAKE_TREE_SPINE_H

#include "lake/cache.h"

/* A place in one node. */
struct node_cursor {
    struct tree_store *store;
    struct cache_slot *node_hold, *block_hold;
    const struct node *node;
    size_t block;   /* the block that is open */
    bool keep;      /* blocks of leaves are kept in the cache too */
    struct buf own; /* a leaf's block that is not kept in the cache */
    struct block_cursor at;
};

/* Opens the node `id`, before its first record. */
int node_cursor_open(struct node_cursor *c, struct tree_store *t, const struct node_id *id,
                     struct err *err) MUST_CHECK;
void node_cursor_close(struct node_cursor *c); /* keeps its memory for the next opening */
void node_cursor_release(struct node_cursor *c);
int node_cursor_next(struct node_cursor *c, struct err *err) MUST_CHECK; /* ERR_END */
int node_cursor_seek(struct node_cursor *c, struct str key, struct err *err) MUST_CHECK;
bool node_cursor_is_last(const struct node_cursor *c);
/* Reads the cursor's record as a child of the node. */
int node_cursor_child(const struct node_cursor *c, struct node_child *out,
                      struct err *err) MUST_CHECK;

/* What a spine is at. */
struct tree_item {
    unsigned level;      /* 0: a record; n: a node of level n - 1, not entered */
    struct str min, max; /* its keys; both are the record's key */
    struct str value;    /* of a record, as it is stored */
    struct tree_record record;
    struct node_child child;
    /* The node is the last of its level. It may have ended because the tree did, and not by the
     * rule of splitting. */
    bool tail;
};

struct tree_spine {
    struct tree_store *store;
    bool end;     /* there is no item */
    unsigned top; /* the root's level */
    struct node_cursor *levels[NODE_LEVEL_MAX + 1];
    struct tree_item item;
    /* The node of each level that was entered last, for tree_build.h. */
    struct node_id entered[NODE_LEVEL_MAX + 1];
    bool has_entered[NODE_LEVEL_MAX + 1];
};

/* Places the spine at the first item of the root. If `root` is "", which is the empty tree, the
 * spine is at the end. */
int tree_spine_open(struct tree_spine *s, struct tree_store *t, struct str root,
                    struct err *err) MUST_CHECK;
void tree_spine_close(struct tree_spine *s);
/* Moves into the node at which the spine is, to its first item. */
int tree_spine_enter(struct tree_spine *s, struct err *err) MUST_CHECK;
/* Moves behind the item, without reading what is below it. */
int tree_spine_next(struct tree_spine *s, struct err *err) MUST_CHECK;
/* Moves to the first item whose keys are all at or behind `key`. */
int tree_spine_seek(struct tree_spine *s, struct str key, struct err *err) MUST_CHECK;
/* Enters nodes until the spine is at a record or at the end. */
int tree_spine_record(struct tree_spine *s, struct err *err) MUST_CHECK;

#endif
