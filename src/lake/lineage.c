/* Collects commits that come from another lake, and computes their generations. */
#include "lake/lineage.h"

#include "base/hex.h"

/* Values of `generation` before it is computed. A commit is *settled* once its generation is
 * computed; it is open while its parents are being settled. */
enum { LINEAGE_UNKNOWN = 0, LINEAGE_OPEN = -1 };

void lineage_release(struct lineage *g)
{
    vec_release(&g->commits);
    vec_release(&g->parents);
}

static bool lineage_id_parse(struct lineage_id *out, struct str text)
{
    unsigned char whole[LAKE_ID_LEN / 2];

    if (!hex_parse(text, whole, sizeof(whole)))
        return false;
    memcpy(out->bytes, whole, LINEAGE_ID_LEN);
    return true;
}

static int lineage_id_cmp(const struct lineage_id *a, const struct lineage_id *b)
{
    return memcmp(a->bytes, b->bytes, LINEAGE_ID_LEN);
}

/* --- adding --- */

static int lineage_check(const struct lineage *g, const struct lake_commit *c,
                         struct lineage_id *id, struct err *err)
{
    char text[LAKE_ID_LEN + 1];

    lake_commit_id(text, c);
    if (!str_eq(str_z(text), c->id) || !lineage_id_parse(id, c->id))
        return err_set(err, ERR_INVALID,
                       "the commit " STR_FMT " is not what its id says; the id would be %s",
                       STR_ARG(str_head(c->id, LAKE_ID_LEN)), text);
    if (c->version != 0 && c->version != 1)
        return err_set(err, ERR_INVALID, "the commit %s has an unknown version", text);
    if (g->commits.len && lineage_id_cmp(&vec_last(&g->commits)->id, id) >= 0)
        return err_set(err, ERR_INVALID, "the commits are not in the order of their ids");
    if (g->commits.len >= INT32_MAX || g->parents.len >= INT32_MAX)
        return err_set(err, ERR_TOO_LARGE, "there are too many commits");
    return 0;
}

static int lineage_add_parent(struct lineage *g, const struct lake_commit *c, struct str parent,
                              struct err *err)
{
    struct lineage_id id;

    if (!lineage_id_parse(&id, parent))
        return err_set(err, ERR_INVALID, "a parent of the commit " STR_FMT " is not a commit id",
                       STR_ARG(c->id));
    vec_push(&g->parents, id);
    return 0;
}

int lineage_add(struct lineage *g, const struct lake_commit *c, struct err *err)
{
    struct lineage_commit added = {.parents_at = (uint32_t)g->parents.len,
                                   .parent_count = (uint32_t)c->parent_count & INT32_MAX};
    int code = lineage_check(g, c, &added.id, err);

    for (size_t i = 0; code == 0 && i < c->parent_count; i++) {
        size_t at = c->version == 0 ? c->parent_count - 1 - i : i;
        code = lineage_add_parent(g, c, c->parents[at], err);
    }
    if (code == 0)
        vec_push(&g->commits, added);
    return code;
}

/* --- generations --- */

static struct lineage_commit *lineage_search(const struct lineage *g, const struct lineage_id *id)
{
    size_t low = 0, high = g->commits.len; /* commits before `low` have smaller ids */

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lineage_id_cmp(&g->commits.items[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->commits.len && lineage_id_cmp(&g->commits.items[low].id, id) == 0
               ? &g->commits.items[low]
               : NULL;
}

static int lineage_fail(const struct lineage_commit *c, const char *why, struct err *err)
{
    char text[2 * LINEAGE_ID_LEN + 1] = {0};

    hex_write(text, c->id.bytes, LINEAGE_ID_LEN);
    return err_set(err, ERR_INVALID, "the commit that begins with %s %s", text, why);
}

typedef VEC(struct lineage_commit *) lineage_stack;

/* Settles the commit if its parents are settled. Otherwise puts the parents on the stack above the
 * commit. */
static int lineage_step(struct lineage *g, lineage_stack *stack, struct err *err)
{
    struct lineage_commit *c = *vec_last(stack);
    int32_t most = 0;
    bool waits = false;

    for (uint32_t i = 0; i < c->parent_count; i++) {
        struct lineage_commit *p = lineage_search(g, &g->parents.items[c->parents_at + i]);
        if (!p)
            return lineage_fail(c, "has a parent that is missing", err);
        if (p->generation == LINEAGE_OPEN)
            return lineage_fail(c, "is an ancestor of itself", err);
        p->is_first = p->is_first || i == 0;
        most = p->generation > most ? p->generation : most;
        if (p->generation == LINEAGE_UNKNOWN) {
            vec_push(stack, p);
            waits = true;
        }
    }
    c->generation = waits ? LINEAGE_OPEN : most + 1;
    return 0;
}

int lineage_settle(struct lineage *g, struct err *err)
{
    lineage_stack stack = {0};
    int code = 0;

    vec_each (&g->commits, struct lineage_commit *, c) {
        vec_push(&stack, c);
        while (code == 0 && stack.len) {
            if ((*vec_last(&stack))->generation > 0)
                stack.len--;
            else
                code = lineage_step(g, &stack, err);
        }
        if (code < 0)
            break;
    }
    vec_release(&stack);
    return code;
}

const struct lineage_commit *lineage_find(const struct lineage *g, struct str id)
{
    struct lineage_id half;

    return lineage_id_parse(&half, id) ? lineage_search(g, &half) : NULL;
}
