/* Reads the log of a ref: its history, filtered and in pages. */
#include "lake/iter_int.h"
#include "lake/log_pauses.h"

/* A log that is being read. */
struct log_walk {
    struct lake *lake;
    const struct lake_repo *repo;
    const struct lake_log_options *o;
    struct str from, stop_at; /* commit ids; empty: none */
    struct lake_iter *history;
    struct tree_store trees;
    bool has_trees;
    bool stopped; /* the commit `stop_at` was passed */
    /* the page begins with the commit `next`, which the iterator has already returned */
    bool has_next;
    char next[LAKE_ID_LEN];
    struct lake_commit first; /* the commit `next` */
    struct arena work;        /* emptied for every commit */
};

/* --- does a commit touch a path? --- */

/* Whether the identity of the path differs between two trees. */
static int log_object_differs(struct log_walk *w, struct str left, struct str right,
                              struct str path, bool *out, struct err *err)
{
    struct tree_record records[2] = {0};
    struct str roots[2] = {left, right};

    for (int i = 0; i < 2; i++) {
        int code = tree_get(&w->trees, &w->work, roots[i], path, &records[i], err);
        if (code < 0 && code != ERR_NOT_FOUND)
            return code;
        if (code == ERR_NOT_FOUND)
            records[i] = (struct tree_record){0};
    }
    *out = !str_eq(records[0].identity, records[1].identity);
    return 0;
}

static int log_prefix_differs(struct log_walk *w, struct str left, struct str right,
                              struct str prefix, bool *out, struct err *err)
{
    struct tree_difference difference;
    struct tree_diff *diff = NULL;
    int code = tree_diff_open(&diff, &w->trees, left, right, prefix, err);

    if (code == 0)
        code = tree_diff_next(diff, &difference, err);
    tree_diff_close(diff);
    *out = code == 0;
    return code == ERR_END ? 0 : code;
}

/* Finds the tree of the commit's first parent. If the commit has no parents, *out is the empty
 * tree. */
static int log_parent_tree(struct log_walk *w, const struct lake_commit *c, struct str *out,
                           struct err *err)
{
    struct str first = lake_commit_first_parent(c);
    struct lake_commit parent = {0};
    int code = first.len ? lake_commit_get(w->lake, &w->work, w->repo, first, &parent, err) : 0;

    *out = parent.tree;
    return code;
}

/* Sets *out to whether the commit is in the log. A log of paths leaves out merge commits: their
 * changes are in the commits that they merge. */
static int log_wants(struct log_walk *w, const struct lake_commit *c, bool *out, struct err *err)
{
    const struct lake_log_options *o = w->o;
    struct str left;
    bool touched = false;

    *out = true;
    if (!w->has_trees)
        return 0;
    *out = false;
    if (c->parent_count > 1)
        return 0;
    int code = log_parent_tree(w, c, &left, err);
    if (code < 0 || str_eq(left, c->tree))
        return code;
    for (size_t i = 0; i < o->object_count && code == 0 && !touched; i++)
        code = log_object_differs(w, left, c->tree, o->objects[i], &touched, err);
    for (size_t i = 0; i < o->prefix_count && code == 0 && !touched; i++)
        code = log_prefix_differs(w, left, c->tree, o->prefixes[i], &touched, err);
    *out = touched;
    return code;
}

/* --- the walk --- */

/* Gives the first commit of a page that continues a paused walk. */
static int log_take_next(struct log_walk *w, const struct lake_commit **out, struct err *err)
{
    struct str id = str_n(w->next, sizeof(w->next));

    w->has_next = false;
    w->stopped = str_eq(id, w->stop_at);
    *out = &w->first;
    return lake_commit_get(w->lake, &w->work, w->repo, id, &w->first, err);
}

/* Gives the next commit of the log; its strings are borrowed until the next call. */
static int log_next(struct log_walk *w, const struct lake_commit **out, struct err *err)
{
    struct lake_item item;
    bool wanted = false;
    int code = 0;

    if (w->has_next)
        return log_take_next(w, out, err);
    while (code == 0 && !wanted) {
        if (w->stopped)
            return ERR_END;
        arena_reset(&w->work);
        code = lake_iter_next(w->history, &item, err);
        if (code < 0)
            return code;
        w->stopped = str_eq(item.id, w->stop_at);
        code = log_wants(w, item.commit, &wanted, err);
        *out = item.commit;
    }
    return code;
}

/* --- pauses --- */

static void log_key_add(struct buf *key, struct str part)
{
    buf_appendf(key, "%zu:", part.len);
    buf_append_str(key, part);
}

/* Appends the key under which the walk for a page after the commit `after` is kept. The key
 * contains everything that the walk depends on. */
static void log_walk_key(const struct log_walk *w, struct str after, struct buf *key)
{
    const struct lake_log_options *o = w->o;

    buf_appendf(key, "%d %lld %zu ", o->first_parent, (long long)o->since_ms, o->object_count);
    log_key_add(key, w->repo->partition);
    log_key_add(key, w->from);
    log_key_add(key, w->stop_at);
    log_key_add(key, after);
    for (size_t i = 0; i < o->object_count; i++)
        log_key_add(key, o->objects[i]);
    for (size_t i = 0; i < o->prefix_count; i++)
        log_key_add(key, o->prefixes[i]);
}

/* Continues a walk that an earlier page has paused. Returns false when no such walk is kept. */
static bool log_resume(struct log_walk *w)
{
    struct log_pause pause;
    struct buf key = {0};

    log_walk_key(w, w->o->after, &key);
    w->has_next = log_pauses_take(w->lake->logs, buf_str(&key), &pause);
    if (w->has_next) {
        w->history = pause.history;
        memcpy(w->next, pause.next, sizeof(w->next));
    }
    buf_release(&key);
    return w->has_next;
}

/* Keeps the walk for the page after the commit `after`, whose first commit is `next`. */
static void log_keep_walk(struct log_walk *w, struct str after, struct str next)
{
    struct log_pause pause = {.history = w->history};
    struct buf key = {0};

    if (next.len != LAKE_ID_LEN)
        return;
    memcpy(pause.next, next.p, LAKE_ID_LEN);
    log_walk_key(w, after, &key);
    log_pauses_put(w->lake->logs, buf_str(&key), &pause, lake_history_commits(w->history));
    w->history = NULL;
    buf_release(&key);
}

/* --- a page --- */

/* Opens the history. If the page is not the first, the walk of an earlier page is continued, or the
 * history is walked from its beginning to `after`. The walk never begins with `after` itself, which
 * may be a commit of another history that the caller may not see. */
static int log_open_history(struct log_walk *w, struct err *err)
{
    struct lake_history h = {w->from, w->o->first_parent, w->o->since_ms};
    struct lake_item item;

    if (w->o->after.len && log_resume(w))
        return 0;
    int code = lake_iter_history(&w->history, w->lake, w->repo, &h, err);
    if (code < 0 || w->o->after.len == 0)
        return code;
    lake_iter_seek(w->history, w->o->after);
    code = lake_iter_next(w->history, &item, err);
    w->stopped = code == ERR_END || (code == 0 && str_eq(item.id, w->stop_at));
    return code == ERR_END ? 0 : code;
}

static int log_open(struct log_walk *w, struct arena *a, struct str ref, struct err *err)
{
    int code = lake_ref_commit(w->lake, a, w->repo, ref, &w->from, err);

    if (code == 0 && w->o->stop_at.len)
        code = lake_ref_commit(w->lake, a, w->repo, w->o->stop_at, &w->stop_at, err);
    if (code == 0 && w->o->object_count + w->o->prefix_count > 0) {
        code = lake_tree_store(w->lake, w->repo, &w->trees, err);
        w->has_trees = code == 0;
    }
    return code < 0 ? code : log_open_history(w, err);
}

static void log_close(struct log_walk *w)
{
    lake_iter_free(w->history);
    if (w->has_trees)
        lake_tree_store_release(w->lake, &w->trees);
    arena_release(&w->work);
}

/* Reads the commit again into the caller's arena. */
static int log_keep(struct log_walk *w, struct arena *a, const struct lake_commit *c,
                    struct lake_commit *out, struct err *err)
{
    struct str id = arena_str(a, c->id);

    return lake_commit_get(w->lake, a, w->repo, id, out, err);
}

int lake_log(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
             const struct lake_log_options *o, struct lake_commit **out, size_t *count, bool *more,
             struct err *err)
{
    struct log_walk w = {.lake = l, .repo = r, .o = o};
    size_t limit = size_min(o->limit, LAKE_LIST_MAX);
    const struct lake_commit *c = NULL;
    int code = log_open(&w, a, ref, err);

    *out = arena_array(a, limit + 1, sizeof(**out));
    *count = 0;
    *more = false;
    if (code == 0 && !*out)
        code = err_code(err, ERR_NO_MEMORY);
    while (code == 0 && (code = log_next(&w, &c, err)) == 0) {
        *more = *count == limit;
        if (*more)
            break;
        code = log_keep(&w, a, c, &(*out)[(*count)++], err);
    }
    if (code == 0 && *more && limit > 0)
        log_keep_walk(&w, (*out)[limit - 1].id, c->id);
    log_close(&w);
    return code == ERR_END ? 0 : code;
}
