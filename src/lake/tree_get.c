/* Looks up one path. It reads one block of one node on each level. */
#include "lake/tree_spine.h"

/* The cursor is at a record of a node above the leaves: opens the child that the record names. */
static int get_descend(struct node_cursor *c, struct str key, struct err *err)
{
    unsigned level = c->node->level;
    struct node_child child;
    int code = node_cursor_child(c, &child, err);

    if (code == 0 && str_cmp(child.min, key) > 0)
        return ERR_NOT_FOUND;
    if (code)
        return code;
    node_cursor_close(c);
    if ((code = node_cursor_open(c, c->store, &child.id, err)))
        return code;
    if (c->node->level != level - 1)
        return node_corrupt(&child.id, "is not of the level that its parent says", err);
    return 0;
}

/* Moves the cursor from the root down to the record of the key. */
static int get_find(struct node_cursor *c, struct str key, struct err *err)
{
    int code = node_cursor_seek(c, key, err);

    while (code == 0 && c->node->level > 0)
        if ((code = get_descend(c, key, err)) == 0)
            code = node_cursor_seek(c, key, err);
    if (code == ERR_END || (code == 0 && !str_eq(block_cursor_key(&c->at), key)))
        code = ERR_NOT_FOUND;
    return code == ERR_NOT_FOUND ? err_code(err, code) : code;
}

/* Copies the record into the arena. */
static int get_copy(struct node_cursor *c, struct arena *a, struct tree_record *out,
                    struct err *err)
{
    struct str key = arena_str(a, block_cursor_key(&c->at)), value = arena_str(a, c->at.value);

    if (arena_error(a))
        return err_code(err, ERR_NO_MEMORY);
    if (node_record_read(out, key, value))
        return node_corrupt(&c->node->id, "is damaged: a record is malformed", err);
    return 0;
}

int tree_get(struct tree_store *t, struct arena *a, struct str root, struct str key,
             struct tree_record *out, struct err *err)
{
    struct node_cursor c = {.keep = true};
    struct node_id id;
    int code;

    if (root.len == 0)
        return err_code(err, ERR_NOT_FOUND);
    code = node_id_parse(&id, root, err);
    if (code == 0)
        code = node_cursor_open(&c, t, &id, err);
    if (code == 0)
        code = get_find(&c, key, err);
    if (code == 0)
        code = get_copy(&c, a, out, err);
    node_cursor_release(&c);
    return code;
}
