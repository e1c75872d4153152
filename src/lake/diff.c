/* Compares two trees: both are walked side by side, and equal nodes are skipped. */
#include "lake/tree_spine.h"

struct tree_diff {
    struct tree_spine left, right;
    /* the next call moves this side: its item was returned, or is equal on both sides */
    bool step_left, step_right;
    int code; /* the error that ended the iteration */
    struct err err;
    struct buf prefix;
};

int tree_diff_open(struct tree_diff **out, struct tree_store *t, struct str left, struct str right,
                   struct str prefix, struct err *err)
{
    struct tree_diff *d = xzalloc(sizeof(*d));
    bool equal = str_eq(left, right);
    int code = tree_spine_open(&d->left, t, equal ? STR_EMPTY : left, err);

    if (code == 0)
        code = tree_spine_open(&d->right, t, equal ? STR_EMPTY : right, err);
    if (code) {
        tree_diff_close(d);
        return code;
    }
    buf_append_str(&d->prefix, prefix);
    if (prefix.len)
        tree_diff_seek(d, prefix);
    *out = d;
    return 0;
}

void tree_diff_close(struct tree_diff *d)
{
    if (!d)
        return;
    tree_spine_close(&d->left);
    tree_spine_close(&d->right);
    buf_release(&d->prefix);
    free(d);
}

void tree_diff_seek(struct tree_diff *d, struct str key)
{
    struct str prefix = buf_str(&d->prefix);

    if (str_cmp(key, prefix) < 0)
        key = prefix;
    d->step_left = d->step_right = false;
    d->code = tree_spine_seek(&d->left, key, &d->err);
    if (d->code == 0)
        d->code = tree_spine_seek(&d->right, key, &d->err);
}

/* Whether all remaining keys of the side are greater than the keys with the prefix. (The seek at
 * the beginning has skipped the keys that are smaller.) */
static bool diff_is_past(const struct tree_diff *d, const struct tree_spine *s)
{
    return s->end || (d->prefix.len && !str_starts(s->item.min, buf_str(&d->prefix)) &&
                      str_cmp(s->item.min, buf_str(&d->prefix)) > 0);
}

/* The next step, which follows from the items of the two sides. */
enum diff_action {
    DIFF_END,
    DIFF_SKIP, /* both sides have equal items */
    DIFF_ENTER_LEFT,
    DIFF_ENTER_RIGHT,
    DIFF_LEFT, /* the left side's record is not in the right tree */
    DIFF_RIGHT,
    DIFF_BOTH, /* both trees have the record, with different values */
};

static enum diff_action diff_alone(const struct tree_spine *s, enum diff_action enter,
                                   enum diff_action give)
{
    return s->item.level > 0 ? enter : give;
}

/* Decides the next step for two items that overlap. Two records have the same key, so their
 * identities are compared. Otherwise the item of the higher level is entered, so that nodes of the
 * same level are compared with each other. */
static enum diff_action diff_overlap(const struct tree_item *l, const struct tree_item *r)
{
    if (l->level == 0 && r->level == 0)
        return str_eq(l->record.identity, r->record.identity) ? DIFF_SKIP : DIFF_BOTH;
    if (l->level > 0 && l->level == r->level && node_id_eq(&l->child.id, &r->child.id))
        return DIFF_SKIP;
    return l->level >= r->level ? DIFF_ENTER_LEFT : DIFF_ENTER_RIGHT;
}

static enum diff_action diff_action(const struct tree_diff *d)
{
    bool no_left = diff_is_past(d, &d->left), no_right = diff_is_past(d, &d->right);

    if (no_left && no_right)
        return DIFF_END;
    if (no_right || (!no_left && str_cmp(d->left.item.max, d->right.item.min) < 0))
        return diff_alone(&d->left, DIFF_ENTER_LEFT, DIFF_LEFT);
    if (no_left || str_cmp(d->right.item.max, d->left.item.min) < 0)
        return diff_alone(&d->right, DIFF_ENTER_RIGHT, DIFF_RIGHT);
    return diff_overlap(&d->left.item, &d->right.item);
}

/* Moves the sides that step_left and step_right name to their next items. */
static int diff_advance(struct tree_diff *d)
{
    int code = 0;

    if (d->step_left)
        code = tree_spine_next(&d->left, &d->err);
    if (code == 0 && d->step_right)
        code = tree_spine_next(&d->right, &d->err);
    d->step_left = d->step_right = false;
    return code;
}

/* Moves until a difference or the end is found. */
static int tree_diff_find(struct tree_diff *d, enum diff_action *found)
{
    int code = diff_advance(d);

    while (code == 0) {
        *found = diff_action(d);
        if (*found == DIFF_ENTER_LEFT) {
            code = tree_spine_enter(&d->left, &d->err);
        } else if (*found == DIFF_ENTER_RIGHT) {
            code = tree_spine_enter(&d->right, &d->err);
        } else if (*found == DIFF_SKIP) {
            d->step_left = d->step_right = true;
            code = diff_advance(d);
        } else {
            break;
        }
    }
    return code;
}

static void diff_give(struct tree_diff *d, enum diff_action found, struct tree_difference *out)
{
    *out = (struct tree_difference){.type = TREE_CHANGED};
    d->step_left = found != DIFF_RIGHT;
    d->step_right = found != DIFF_LEFT;
    if (d->step_left)
        out->left = d->left.item.record;
    if (d->step_right)
        out->right = d->right.item.record;
    if (found == DIFF_LEFT)
        out->type = TREE_REMOVED;
    if (found == DIFF_RIGHT)
        out->type = TREE_ADDED;
    out->key = d->step_left ? out->left.key : out->right.key;
}

int tree_diff_next(struct tree_diff *d, struct tree_difference *out, struct err *err)
{
    enum diff_action found = DIFF_END;

    if (d->code == 0)
        d->code = tree_diff_find(d, &found);
    if (d->code)
        return err_set(err, d->code, "%s", d->err.text);
    if (found == DIFF_END)
        return ERR_END;
    diff_give(d, found, out);
    return 0;
}
