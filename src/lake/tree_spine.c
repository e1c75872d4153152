/* Moves spines, which are positions in trees. */
#include "lake/tree_spine.h"

/* Returns the cursor of the lowest node that the spine has entered. It is at the spine's item. */
static struct node_cursor *spine_cursor(const struct tree_spine *s)
{
    return s->levels[s->item.level];
}

static bool spine_is_tail(const struct tree_spine *s)
{
    for (unsigned level = s->item.level; level <= s->top; level++)
        if (!node_cursor_is_last(s->levels[level]))
            return false;
    return true;
}

/* Reads the item at the position of the cursor. */
static int spine_read(struct tree_spine *s, struct err *err)
{
    const struct node_cursor *c = spine_cursor(s);
    struct tree_item *item = &s->item;
    int code;

    item->min = item->max = block_cursor_key(&c->at);
    item->value = c->at.value;
    item->origin =
        (struct node_origin){c->node, c->block, c->from, c->at.at, c->at.at >= c->at.len};
    if (item->level == 0) {
        if (node_record_read(&item->record, item->max, item->value))
            return node_corrupt(&c->node->id, "is damaged: a record is malformed", err);
        return 0;
    }
    if ((code = node_cursor_child(c, &item->child, err)))
        return code;
    item->min = item->child.min;
    item->tail = spine_is_tail(s);
    return 0;
}

/* Opens a node as the one that the spine has entered at `level`. */
static int spine_open_level(struct tree_spine *s, unsigned level, const struct node_id *id,
                            struct err *err)
{
    if (!s->levels[level])
        s->levels[level] = xzalloc(sizeof(struct node_cursor));
    node_cursor_close(s->levels[level]);
    int code = node_cursor_open(s->levels[level], s->store, id, err);
    if (code)
        return code;
    s->entered[level] = *id;
    s->has_entered[level] = true;
    return 0;
}

/* Opens the root. Its level is not known before, so its cursor is opened first and then stored at
 * that level. */
static int spine_open_root(struct tree_spine *s, const struct node_id *id, struct err *err)
{
    struct node_cursor *root = xzalloc(sizeof(*root));
    int code = node_cursor_open(root, s->store, id, err);

    if (code) {
        free(root);
        return code;
    }
    s->top = root->node->level;
    s->item.level = s->top;
    s->levels[s->top] = root;
    s->entered[s->top] = *id;
    s->has_entered[s->top] = true;
    return 0;
}

int tree_spine_open(struct tree_spine *s, struct tree_store *t, struct str root, struct err *err)
{
    struct node_id id;
    int code;

    *s = (struct tree_spine){.store = t, .end = root.len == 0};
    if (s->end)
        return 0;
    code = node_id_parse(&id, root, err);
    if (code == 0)
        code = spine_open_root(s, &id, err);
    if (code == 0)
        code = tree_spine_next(s, err);
    if (code)
        tree_spine_close(s);
    return code;
}

void tree_spine_close(struct tree_spine *s)
{
    for (unsigned level = 0; level <= NODE_LEVEL_MAX; level++)
        if (s->levels[level]) {
            node_cursor_release(s->levels[level]);
            free(s->levels[level]);
        }
    *s = (struct tree_spine){.end = true};
}

/* Moves to the next child of a node, and checks that its keys are greater than those of the child
 * before it. */
static int spine_next_child(struct tree_spine *s, struct err *err)
{
    struct node_cursor *c = spine_cursor(s);
    bool is_first = c->block == SIZE_MAX || c->at.key_len == 0;
    struct str before = is_first ? STR_EMPTY : block_cursor_key(&c->at);
    char last[NODE_KEY_MAX];

    if (!is_first)
        memcpy(last, before.p, before.len);
    int code = node_cursor_next(c, err);
    if (code == 0)
        code = spine_read(s, err);
    if (code == 0 && !is_first && str_cmp(s->item.min, str_n(last, before.len)) <= 0)
        code = node_corrupt(&c->node->id, "is damaged: its children overlap", err);
    return code;
}

static int spine_step(struct tree_spine *s, struct err *err)
{
    if (s->item.level > 0)
        return spine_next_child(s, err);
    int code = node_cursor_next(spine_cursor(s), err);
    return code ? code : spine_read(s, err);
}

int tree_spine_next(struct tree_spine *s, struct err *err)
{
    int code;

    while ((code = spine_step(s, err)) == ERR_END) {
        const struct node_cursor *done = spine_cursor(s);
        if (s->item.level == s->top) {
            s->end = true;
            return 0;
        }
        s->item.level++;
        if (!str_eq(block_cursor_key(&done->at), block_cursor_key(&spine_cursor(s)->at)))
            return node_corrupt(&done->node->id, "does not end with the key that its parent says",
                                err);
    }
    return code;
}

/* Opens the node at the spine's position, and checks that it has the level that its parent's record
 * says. */
static int spine_down(struct tree_spine *s, struct err *err)
{
    unsigned level = s->item.level - 1;
    int code = spine_open_level(s, level, &s->item.child.id, err);

    if (code)
        return code;
    if (s->levels[level]->node->level != level)
        return node_corrupt(&s->item.child.id, "is not of the level that its parent says", err);
    return 0;
}

int tree_spine_enter(struct tree_spine *s, struct err *err)
{
    struct str min = s->item.min; /* still valid below, because the parent's cursor does not move */
    struct node_id id = s->item.child.id;
    int code = spine_down(s, err);

    if (code)
        return code;
    s->item.level--;
    code = node_cursor_next(spine_cursor(s), err);
    if (code == 0)
        code = spine_read(s, err);
    if (code == ERR_END || (code == 0 && !str_eq(s->item.min, min)))
        return node_corrupt(&id, "does not begin with the key that its parent says", err);
    return code;
}

/* Enters the node and moves to its first item at or after `key`. The caller has checked that the
 * node's smallest key is less than `key`, and that its greatest key is not. */
static int spine_enter_at(struct tree_spine *s, struct str key, struct err *err)
{
    struct node_id id = s->item.child.id;
    int code = spine_down(s, err);

    if (code)
        return code;
    s->item.level--;
    code = node_cursor_seek(spine_cursor(s), key, err);
    if (code == ERR_END)
        return node_corrupt(&id, "does not end with the key that its parent says", err);
    return code ? code : spine_read(s, err);
}

int tree_spine_seek(struct tree_spine *s, struct str key, struct err *err)
{
    if (!s->levels[s->top]) /* the empty tree */
        return 0;
    s->item.level = s->top;
    s->end = false;
    int code = node_cursor_seek(spine_cursor(s), key, err);
    if (code == ERR_END) {
        s->end = true;
        return 0;
    }
    if (code == 0)
        code = spine_read(s, err);
    while (code == 0 && s->item.level > 0 && str_cmp(s->item.min, key) < 0)
        code = spine_enter_at(s, key, err);
    return code;
}

int tree_spine_record(struct tree_spine *s, struct err *err)
{
    int code = 0;

    while (code == 0 && !s->end && s->item.level > 0)
        code = tree_spine_enter(s, err);
    return code;
}
