/* Reads single paths of a ref. Opens a *moment*: the state of a branch that a reader sees. */
#include "lake/read.h"
#include "lake/keep.h"
#include "lake/names.h"

#include "base/clock.h"

/* --- the tree of a commit --- */

int lake_commit_tree(struct lake *l, struct arena *a, const struct lake_repo *r,
                     struct str commit_id, struct str *root, struct err *err)
{
    struct lake_commit c;

    *root = STR_EMPTY;
    if (commit_id.len == 0 || commit_cache_tree(l->commits, a, r->partition, commit_id, root))
        return 0;
    int code = lake_commit_get(l, a, r, commit_id, &c, err);
    if (code == ERR_NOT_FOUND) /* a branch or a tag has this commit, so it must exist */
        return err_set(err, ERR_CORRUPT, "commit " STR_FMT " is missing", STR_ARG(commit_id));
    if (code == 0)
        *root = c.tree;
    return code;
}

/* Opens the tree of the commit to look up the path. If the path is to be read without waiting, the
 * store can read only nodes that are in memory, so it need not know where the node files are. */
static int path_open_tree(struct head_tree *out, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str commit_id, struct lake_path *p,
                          struct err *err)
{
    bool is_known = p->commit.len && str_eq(p->commit, commit_id);
    int code = is_known ? 0 : lake_commit_tree(l, a, r, commit_id, &p->tree, err);

    p->commit = code == 0 ? commit_id : STR_EMPTY;
    *out = (struct head_tree){.root = p->tree};
    if (code == 0 && p->now)
        out->store = (struct tree_store){.cache = l->cache, .scope = r->partition, .now = true};
    else if (code == 0)
        code = lake_tree_store(l, r, &out->store, err);
    out->is_open = code == 0 && !p->now;
    return code;
}

int head_tree_open(struct head_tree *out, struct lake *l, struct arena *a,
                   const struct lake_repo *r, struct str commit_id, struct err *err)
{
    struct lake_path any = {0};

    return path_open_tree(out, l, a, r, commit_id, &any, err);
}

void head_tree_release(struct head_tree *t, struct lake *l)
{
    if (t->is_open)
        lake_tree_store_release(l, &t->store);
    t->is_open = false;
}

int lake_check_tree(struct lake *l, struct arena *a, const struct lake_repo *r,
                    struct str commit_id, struct err *err)
{
    struct tree_stats stats;
    struct head_tree tree;
    int code = head_tree_open(&tree, l, a, r, commit_id, err);

    if (code == 0 && tree.root.len)
        code = tree_stats(&tree.store, tree.root, &stats, err);
    head_tree_release(&tree, l);
    return code == ERR_CORRUPT
               ? err_wrap(err, ERR_GONE, "the content of '" STR_FMT "' cannot be read",
                          STR_ARG(commit_id))
               : code;
}

/* --- single paths --- */

int lake_object_read(struct lake_object *out, struct arena *a, struct str path, struct str identity,
                     struct str data, struct err *err)
{
    *out = (struct lake_object){.path = path, .identity = identity};
    return lake_entry_read(&out->entry, a, data, err);
}

bool lake_object_is_same(const struct lake_object *a, const struct lake_object *b)
{
    return str_eq(a->identity, b->identity) && str_eq(a->entry.address, b->entry.address);
}

/* Finds out from the rows of one path, the newest first, what the branch has at the path. Returns
 * whether the tree must be read, too. */
static int path_judge_rows(struct lake_path *p, const struct kv_value *rows, size_t count,
                           bool *asks_tree, struct err *err)
{
    bool is_decided = false, is_below_decided = false;

    p->staged = rows[0];
    p->is_there = p->is_below = false;
    for (size_t i = 0; i < count && !is_below_decided; i++) {
        struct lake_staged staged;
        if (!kv_is_there(&rows[i]))
            continue;
        int code = lake_staged_read(&staged, rows[i].bytes, err);
        if (code < 0)
            return code;
        if (!is_decided) {
            p->is_there = staged.identity.len > 0;
            p->identity = staged.identity;
            p->data = staged.data;
        }
        is_decided = true;
        is_below_decided = i > 0;
        p->is_below = i > 0 && staged.identity.len > 0;
    }
    *asks_tree = !is_decided || (p->asks_below && !is_below_decided);
    return 0;
}

/* Reads the path from the tree, because no token has a row of the path. */
static int path_ask_tree(struct lake_path *p, struct arena *a, struct head_tree *t, struct err *err)
{
    struct tree_record record;
    int code = t->root.len ? tree_get(&t->store, a, t->root, p->path, &record, err) : ERR_NOT_FOUND;
    if (code == ERR_NOT_FOUND)
        return 0;
    if (code < 0)
        return code;
    p->is_below = true;
    if (!kv_is_there(&p->staged)) {
        p->is_there = true;
        p->identity = record.identity;
        p->data = record.data;
    }
    return 0;
}

/* Checks that the branch is still *b. `values` are the records of the repository and the branch,
 * which were read after the rows of the paths. If their bytes are the same as before, they need not
 * be decoded. ERR_AGAIN: the branch has changed. */
static int paths_check_branch(struct arena *a, const struct lake_repo *r,
                              const struct lake_branch *b, const struct kv_value *values,
                              struct err *err)
{
    struct lake_branch now;
    struct lake_repo repo;
    bool is_same = kv_is_there(&values[1]) && str_eq(values[1].stamp, b->stamp);

    if (is_same && kv_is_there(&values[0]) && str_eq(values[0].stamp, r->stamp))
        return 0;
    int code = lake_decode_branch(a, r, values, &repo, &now, err);
    return code == 0 && !is_same ? ERR_AGAIN : code;
}

/* Reads the rows of some paths in all tokens of the branch, and then the branch. Sets asks[i] if
 * path i must also be read from the tree. */
static int paths_read_rows(struct lake *l, struct arena *a, const struct lake_repo *r,
                           const struct lake_branch *b, struct lake_path *paths, size_t count,
                           bool *asks, struct err *err)
{
    size_t layers = 1 + b->sealed_count, total = count * layers;
    struct kv_name *names = arena_array(a, total + 2, sizeof(*names));
    struct kv_value *values = arena_array(a, total + 2, sizeof(*values));

    if (!names || !values)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < layers; k++)
            names[i * layers + k] =
                lake_key_staged(a, k ? b->sealed[k - 1] : b->staging, paths[i].path);
    names[total] = lake_key_repo(a, r->id);
    names[total + 1] = lake_key_branch(a, r->partition, b->id);
    int code = arena_error(a);
    if (code == 0)
        code = kv_get_many(l->kv, NULL, a, names, total + 2, values, err);
    if (code == 0)
        code = paths_check_branch(a, r, b, &values[total], err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = path_judge_rows(&paths[i], &values[i * layers], layers, &asks[i], err);
    return code;
}

static int paths_ask_tree(struct lake *l, struct arena *a, const struct lake_repo *r,
                          const struct lake_branch *b, struct lake_path *paths, size_t count,
                          const bool *asks, struct err *err)
{
    struct head_tree tree = {0};
    bool is_open = false;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        if (!asks[i])
            continue;
        if (!is_open)
            code = path_open_tree(&tree, l, a, r, b->commit_id, &paths[i], err);
        is_open = true;
        if (code == 0)
            code = path_ask_tree(&paths[i], a, &tree, err);
    }
    head_tree_release(&tree, l);
    return code;
}

int lake_read_paths(struct lake *l, struct arena *a, const struct lake_repo *r,
                    const struct lake_branch *b, struct lake_path *paths, size_t count,
                    struct err *err)
{
    size_t slice = (KV_GETS_MAX - 2) / (1 + b->sealed_count);
    bool *asks = arena_array(a, count, sizeof(*asks));
    int code = asks ? 0 : err_code(err, ERR_NO_MEMORY);

    for (size_t i = 0; i < count && code == 0; i += slice)
        code = paths_read_rows(l, a, r, b, paths + i, size_min(slice, count - i), asks + i, err);
    return code < 0 ? code : paths_ask_tree(l, a, r, b, paths, count, asks, err);
}

/* --- reading one path of a ref --- */

enum { LOOK_SEALED_MAX = 16 }; /* most sealed tokens that a thread that must not wait reads */

/* A look-up of one path at a ref. */
struct look {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *repo;
    struct str ref;
    struct lake_path path;
};

static int look_at_commit(struct look *k, const struct lake_ref *ref, struct err *err)
{
    struct head_tree tree = {0};
    int code = lake_check_expired(k->lake, k->arena, k->repo, ref, err);

    if (code == 0)
        code = path_open_tree(&tree, k->lake, k->arena, k->repo, ref->commit_id, &k->path, err);
    if (code == 0)
        code = path_ask_tree(&k->path, k->arena, &tree, err);
    head_tree_release(&tree, k->lake);
    return code;
}

static int look_at_branch(struct look *k, const struct lake_branch *b, struct err *err)
{
    if (k->path.now && b->sealed_count > LOOK_SEALED_MAX)
        return ERR_AGAIN;
    return lake_read_paths(k->lake, k->arena, k->repo, b, &k->path, 1, err);
}

/* Keeps the branch for later reads, with the tree of its head if it was read. */
static void look_keep(struct look *k, const struct lake_branch *b)
{
    bool is_known = b->commit_id.len && str_eq(k->path.commit, b->commit_id);

    branch_cache_put(k->lake->branches, k->repo->partition, b, STR_EMPTY,
                     is_known ? k->path.tree : STR_EMPTY);
}

/* Reads the path, and then the branch. If the branch has changed meanwhile, reads both again. A
 * thread that must not wait tries only once. */
static int look_until_same(struct look *k, struct lake_branch *b, struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    struct str name = b->id;
    struct lake_repo now;
    int code;

    while ((code = look_at_branch(k, b, err)) == ERR_AGAIN && !k->path.now) {
        code = clock_mono_ms() > deadline
                   ? err_code(err, ERR_BUSY)
                   : lake_read_branch(k->lake, NULL, k->arena, k->repo, name, &now, b, err);
        if (code < 0)
            return code;
    }
    if (code == 0)
        look_keep(k, b);
    return code;
}

/* Resolves the ref and reads the path there. ERR_AGAIN: the thread must not wait, and the ref names
 * an ancestor of a commit, which may take long to find. */
static int look_by_ref(struct look *k, struct err *err)
{
    struct lake_ref at;

    if (k->path.now && (str_chr(k->ref, '~') >= 0 || str_chr(k->ref, '^') >= 0))
        return ERR_AGAIN;
    int code = lake_ref_resolve(k->lake, k->arena, k->repo, k->ref, &at, err);
    if (code < 0)
        return code;
    return at.staged ? look_until_same(k, &at.branch, err) : look_at_commit(k, &at, err);
}

/* Reads the path of a branch that is in the cache (docs/lake-s3.md, S7). Returns false if the ref
 * must be resolved instead: the cache has no branch of this name, or the branch has changed or was
 * deleted. A ref that could be a commit id is always resolved, because a commit is preferred to a
 * branch of the same name. */
static bool look_by_cache(struct look *k, int *code, struct err *err)
{
    struct cached_branch *b = lake_is_commit_id(k->ref)
                                  ? NULL
                                  : branch_cache_get(k->lake->branches, k->repo->partition, k->ref);

    if (!b)
        return false;
    k->path.commit = b->tree.p ? b->branch.commit_id : STR_EMPTY;
    k->path.tree = b->tree;
    *code = look_at_branch(k, &b->branch, err);
    if (*code == 0 && !b->tree.p && k->path.commit.len)
        look_keep(k, &b->branch);
    k->path.commit = STR_EMPTY; /* it is the cache's */
    cached_branch_unref(b);
    return *code != ERR_NOT_FOUND && (*code != ERR_AGAIN || k->path.now);
}

static int look_run(struct look *k, struct lake_object *out, struct err *err)
{
    struct lake_path *p = &k->path;
    int code = lake_check_path(p->path, err);

    if (code == 0 && !look_by_cache(k, &code, err))
        code = look_by_ref(k, err);
    if (code == 0 && !p->is_there)
        code = err_set(err, ERR_NOT_FOUND, "path not found");
    return code < 0 ? code : lake_object_read(out, k->arena, p->path, p->identity, p->data, err);
}

int lake_stat(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
              struct str path, struct lake_object *out, struct err *err)
{
    struct look k = {.lake = l, .arena = a, .repo = r, .ref = ref, .path.path = path};

    return look_run(&k, out, err);
}

int lake_stat_now(struct lake *l, struct arena *a, const struct lake_repo *r, struct str ref,
                  struct str path, struct lake_object *out, struct err *err)
{
    struct look k = {
        .lake = l, .arena = a, .repo = r, .ref = ref, .path = {.path = path, .now = true}};

    return kv_is_at_hand(l->kv) ? look_run(&k, out, err) : ERR_AGAIN;
}

/* --- a moment of a branch --- */

int moment_open(struct lake_moment *out, struct lake *l, struct arena *a, const struct lake_repo *r,
                struct str branch, struct err *err)
{
    int code = 0;

    *out = (struct lake_moment){0};
    if (l->kv->can & KV_MOMENTS)
        code = kv_view_open(&out->view, l->kv, err);
    if (code == 0)
        code = lake_read_branch(l, out->view, a, r, branch, &out->repo, &out->branch, err);
    if (code < 0)
        moment_close(out, l);
    return code;
}

int moment_check(struct lake_moment *m, struct lake *l, struct arena *a, struct err *err)
{
    struct lake_branch now;
    struct lake_repo repo;

    if (m->view)
        return 0;
    int code = lake_read_branch(l, NULL, a, &m->repo, m->branch.id, &repo, &now, err);
    return code == 0 && !str_eq(now.stamp, m->branch.stamp) ? ERR_AGAIN : code;
}

void moment_close(struct lake_moment *m, struct lake *l)
{
    kv_view_close(l->kv, m->view);
    m->view = NULL;
}
