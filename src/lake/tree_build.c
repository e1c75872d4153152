/* Builds a tree. Each level has one open node, to which records are added until the rule of
 * splitting (lake/split.h) ends it. A node that has ended becomes a record of the level above. */
#include "lake/tree_build.h"

#include "lake/split.h"

void tree_builder_init(struct tree_builder *b, struct tree_store *t,
                       const struct tree_write_options *o)
{
    *b = (struct tree_builder){.store = t, .options = o};
    mutex_init(&b->lock, "lake.build");
    cond_init(&b->changed);
    list_init(&b->idle);
    list_init(&b->failed);
}

void tree_builder_release(struct tree_builder *b)
{
    tree_jobs_give_up(b); /* jobs are still held here only if the builder was not finished */
    int code = tree_jobs_wait(b, NULL);

    (void)code; /* tree_builder_finish() has already returned the error */
    for (unsigned level = 0; level <= NODE_LEVEL_MAX; level++)
        tree_job_drop(b->levels[level].open);
    tree_jobs_release(b);
    cond_release(&b->changed);
    mutex_release(&b->lock);
}

static struct node_draft *build_draft(struct tree_builder *b, unsigned level)
{
    struct build_level *l = &b->levels[level];

    if (!l->open)
        l->open = tree_job_new(b, level);
    return &l->open->draft;
}

/* Lists in the job the existing nodes of this level to which the new node may be equal. A new node
 * that equals one of them is not written. */
static void build_known(const struct tree_builder *b, struct tree_job *j, unsigned level)
{
    for (int i = 0; i < BUILD_SOURCES; i++)
        if (b->sources[i] && b->sources[i]->has_entered[level])
            j->known[j->known_count++] = b->sources[i]->entered[level];
}

static int build_close(struct tree_builder *b, unsigned level, struct err *err);

/* Called after a record was added, whose weight is `weight`: ends the open node of the level if the
 * rule of splitting says so. */
static int build_added(struct tree_builder *b, unsigned level, size_t weight, struct err *err)
{
    struct node_draft *d = &b->levels[level].open->draft;

    if (d->raw.failed)
        return err_set(err, ERR_NO_MEMORY, "there is no memory for a node of a tree");
    return split_after(d, weight) ? build_close(b, level, err) : 0;
}

/* Ends the open node of the level in three steps. First its record is added to the level above,
 * because the job may change the draft. Then its job starts. Last, the node above may end, because
 * the job of a parent must start after the jobs of its children. */
static int build_close(struct tree_builder *b, unsigned level, struct err *err)
{
    struct build_level *l = &b->levels[level];
    struct tree_job *j = l->open;

    if (level == NODE_LEVEL_MAX)
        return err_set(err, ERR_TOO_LARGE, "the tree would have more than %d levels", level);
    struct node_child child = {
        .min = node_draft_min(&j->draft), .count = j->draft.count, .bytes = j->draft.bytes};
    struct node_draft *above = build_draft(b, level + 1);
    size_t weight = node_draft_child(above, node_draft_last(&j->draft), &child);
    struct job_child slot = {node_draft_id_at(above), j->promise};
    vec_push(&b->levels[level + 1].open->children, slot);
    build_known(b, j, level);
    if (l->nodes++ == 0)
        l->promise = j->promise;
    l->open = NULL;
    int code = tree_job_start(j, false, err);
    return code ? code : build_added(b, level + 1, weight, err);
}

int tree_builder_record(struct tree_builder *b, const struct tree_record *r, struct err *err)
{
    return build_added(b, 0, node_draft_record(build_draft(b, 0), r), err);
}

bool tree_builder_can_take(const struct tree_builder *b, const struct tree_item *item, bool is_last)
{
    unsigned level = item->level - 1; /* the level of the item's node */

    /* A leaf that lakeFS has written is always taken over whole, and ends the open leaf before
     * it. */
    if (item->child.foreign)
        return level == 0;
    /* A tail is the last node of its level. It may have ended only because the tree had no more
     * records, so it can be taken over only as the last node of the result. Above the leaves, it
     * also must not be the only node of its level: if it has a single child, that child has to be
     * the root instead. */
    if (item->tail && (!is_last || (level > 0 && b->levels[level].nodes == 0)))
        return false;
    for (unsigned below = 0; below <= level; below++)
        if (b->levels[below].open)
            return false;
    return true;
}

/* Adds an existing node to the tree by its id. */
static int build_take_node(struct tree_builder *b, const struct tree_item *item, struct err *err)
{
    unsigned level = item->level - 1;
    struct build_level *l = &b->levels[level];
    int code = 0;

    if (l->open) /* only a leaf of lakeFS may follow an open leaf */
        code = build_close(b, level, err);
    if (code)
        return code;
    for (unsigned below = 0; below < level; below++)
        b->levels[below].nodes += 2;
    if (l->nodes++ == 0)
        l->id = item->child.id;
    struct node_draft *above = build_draft(b, item->level);
    size_t weight = node_draft_child(above, item->max, &item->child);
    if (str_eq(node_draft_value(above), item->value))
        node_draft_from(above, &item->origin);
    return build_added(b, item->level, weight, err);
}

int tree_builder_item(struct tree_builder *b, const struct tree_item *item, struct err *err)
{
    if (item->level > 0)
        return build_take_node(b, item, err);
    struct node_draft *d = build_draft(b, 0);
    size_t weight = node_draft_raw(d, item->max, item->value);
    node_draft_from(d, &item->origin);
    return build_added(b, 0, weight, err);
}

int tree_builder_take(struct tree_builder *b, struct tree_spine *s, bool is_last, struct err *err)
{
    if (s->item.level > 0 && !tree_builder_can_take(b, &s->item, is_last))
        return tree_spine_enter(s, err);
    int code = tree_builder_item(b, &s->item, err);
    return code ? code : tree_spine_next(s, err);
}

/* --- the root --- */

/* Writes the open node of the level as the root. It is the only node of that level. */
static int build_root_open(struct tree_builder *b, unsigned level, struct node_id *id,
                           struct err *err)
{
    struct tree_job *j = b->levels[level].open;
    struct tree_promise *promise = j->promise;

    b->levels[level].open = NULL;
    build_known(b, j, level);
    int code = tree_job_start(j, true, err), ended = tree_jobs_wait(b, code ? NULL : err);
    code = code ? code : ended;
    if (code == 0)
        *id = promise->id;
    free(promise);
    return code;
}

/* Gives the id of the level's only node. That node has already ended, or was taken over by id. */
static int build_root_closed(struct tree_builder *b, unsigned level, struct node_id *id,
                             struct err *err)
{
    const struct build_level *l = &b->levels[level];
    int code = tree_jobs_wait(b, err);

    if (code == 0)
        *id = l->promise ? l->promise->id : l->id;
    return code;
}

/* Finds the root: the only node of the lowest level that has exactly one node. */
static int build_root(struct tree_builder *b, struct node_id *id, bool *empty, struct err *err)
{
    int code = 0;

    *empty = false;
    if (b->levels[0].open)
        code = build_close(b, 0, err);
    for (unsigned level = 1; code == 0 && level <= NODE_LEVEL_MAX; level++) {
        struct build_level *l = &b->levels[level];
        if (l->open && l->nodes == 0)
            return build_root_open(b, level, id, err);
        if (!l->open && l->nodes == 1)
            return build_root_closed(b, level, id, err);
        if (l->open)
            code = build_close(b, level, err);
    }
    *empty = true;
    return code ? code : tree_jobs_wait(b, err);
}

int tree_builder_finish(struct tree_builder *b, char root[LAKE_ID_LEN + 1], struct err *err)
{
    struct node_id id;
    bool empty;
    int code = build_root(b, &id, &empty, err);

    if (code)
        return code;
    if (empty)
        root[0] = 0;
    else
        node_id_text(root, &id);
    return 0;
}
