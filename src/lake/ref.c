/* Ref expressions: a name or an id, and steps to ancestors (docs/lake.md, "Names and limits"). */
#include "lake/lake_int.h"
#include "lake/names.h"

enum { REF_STEPS_MAX = 100000 }; /* most commits over which one expression may walk */

static int ref_unknown(struct str name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "ref '" STR_FMT "' not found", STR_ARG(str_head(name, 255)));
}

/* --- the name --- */

/* Finds the only commit whose id begins with `prefix`. If two commits match, the prefix counts as
 * unknown. */
static int ref_find_prefix(struct lake *l, struct kv_view *view, struct arena *a,
                           const struct lake_repo *r, struct str prefix, struct str *id,
                           struct err *err)
{
    struct lake_page page = {.prefix = prefix, .limit = 1};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = lake_rows_open(&scan, l, view, a, r->partition, "commits", &page, err);

    if (code == 0)
        code = kv_scan_next(scan, &key, &value, err);
    if (code == 0) {
        *id = arena_str(a, str_skip(key, sizeof("commits/") - 1));
        code = kv_scan_next(scan, &key, &value, err);
        code = code == ERR_END ? arena_error(a) : code == 0 ? ERR_END : code;
    }
    kv_scan_free(scan);
    return code == ERR_END ? ref_unknown(prefix, err) : code;
}

/* Whether the name is the id of a commit that was read before. Such a commit still exists, because
 * commits are removed only together with their repository. */
static bool ref_is_known(struct lake *l, const struct lake_repo *r, struct str name)
{
    return lake_is_commit_id(name) && commit_cache_has(l->commits, r->partition, name);
}

/* Reads in one round trip the repository's record, and the three rows that the name may mean: a
 * commit, a branch and a tag. If the name is the id of a commit that was read before, reads only
 * the repository's record. */
static int ref_find_name(struct lake *l, struct kv_view *view, struct arena *a,
                         const struct lake_repo *r, struct str name, struct lake_ref *out,
                         struct err *err)
{
    struct kv_name names[] = {lake_key_repo(a, r->id), lake_key_commit(a, r->partition, name),
                              lake_key_branch(a, r->partition, name),
                              lake_key_tag(a, r->partition, name)};
    struct kv_value values[ARRAY_SIZE(names)] = {0};
    bool is_known = ref_is_known(l, r, name);
    struct lake_tag tag;
    int code = kv_get_many(l->kv, view, a, names, is_known ? 1 : ARRAY_SIZE(names), values, err);

    if (code == 0)
        code = lake_check_repo_row(a, r, &values[0], err);
    *out = (struct lake_ref){.kind = LAKE_COMMIT, .commit_id = name};
    if (code < 0 || is_known || (lake_is_commit_id(name) && kv_is_there(&values[1])))
        return code;
    if (kv_is_there(&values[2])) {
        code = lake_branch_read(&out->branch, a, values[2].bytes, err);
        out->branch.stamp = values[2].stamp;
        out->kind = LAKE_BRANCH;
        out->staged = true;
        out->commit_id = out->branch.commit_id;
        return code;
    }
    if (kv_is_there(&values[3])) {
        code = lake_tag_read(&tag, values[3].bytes, err);
        out->kind = LAKE_TAG;
        out->commit_id = tag.commit_id;
        return code;
    }
    return lake_is_id_prefix(name) ? ref_find_prefix(l, view, a, r, name, &out->commit_id, err)
                                   : ref_unknown(name, err);
}

/* --- the steps --- */

/* Replaces the commit's id by the id of its n-th parent, counted from 1. */
static int ref_to_parent(struct lake *l, struct arena *work, const struct lake_repo *r,
                         char id[LAKE_ID_LEN], size_t n, struct err *err)
{
    struct lake_commit c;
    int code = lake_commit_get(l, work, r, str_n(id, LAKE_ID_LEN), &c, err);

    if (code < 0 || n == 0)
        return code;
    if (n > c.parent_count)
        return err_set(err, ERR_NOT_FOUND, "commit " STR_FMT " has no parent %zu", STR_ARG(c.id),
                       n);
    struct str parent = c.parents[c.version == 0 ? c.parent_count - n : n - 1];
    if (parent.len != LAKE_ID_LEN)
        return err_set(err, ERR_CORRUPT, "commit " STR_FMT " has a malformed parent",
                       STR_ARG(c.id));
    memcpy(id, parent.p, LAKE_ID_LEN);
    return 0;
}

/* Reads the number after `~` or `^`; 1 if there is no number. */
static int ref_take_number(struct str *rest, uint64_t *n, struct err *err)
{
    size_t digits = 0;

    while (digits < rest->len && rest->p[digits] >= '0' && rest->p[digits] <= '9')
        digits++;
    *n = 1;
    if (digits > 0 && (digits > 9 || str_u64(str_head(*rest, digits), n) < 0))
        return err_set(err, ERR_INVALID, "the number in a ref is too large");
    *rest = str_skip(*rest, digits);
    return 0;
}

/* Moves from the commit to its n-th parent, and repeats this `times` times. */
static int ref_walk(struct lake *l, struct arena *a, const struct lake_repo *r,
                    struct lake_ref *ref, uint64_t times, size_t n, struct err *err)
{
    struct arena work = {0};
    char id[LAKE_ID_LEN];
    int code = 0;

    if (ref->commit_id.len != sizeof(id))
        return err_set(err, ERR_NOT_FOUND, "commit not found");
    memcpy(id, ref->commit_id.p, sizeof(id));
    for (uint64_t i = 0; code == 0 && i < times; i++) {
        code = ref_to_parent(l, &work, r, id, n, err);
        arena_reset(&work);
    }
    arena_release(&work);
    ref->commit_id = arena_str(a, str_n(id, sizeof(id)));
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

/* Applies one step: `~n` moves n times to the first parent, `^n` moves once to the n-th parent.
 * `left` is the number of commits over which the expression may still walk. */
static int ref_step(struct lake *l, struct arena *a, const struct lake_repo *r,
                    struct lake_ref *ref, struct str *rest, uint64_t *left, struct err *err)
{
    bool is_parent = rest->p[0] == '^';
    uint64_t n;

    *rest = str_skip(*rest, 1);
    int code = ref_take_number(rest, &n, err);
    uint64_t times = is_parent ? 1 : n;
    if (code == 0 && times > *left)
        code = err_set(err, ERR_INVALID, "a ref goes back at most %d commits", REF_STEPS_MAX);
    if (code < 0)
        return code;
    *left -= times;
    ref->staged = false;
    return ref_walk(l, a, r, ref, times, is_parent ? (size_t)n : 1, err);
}

/* Applies the mark `@` (the head of a branch) or `$` (the branch with its staged changes). The mark
 * must stand directly after the name of a branch, without other steps. */
static int ref_mark(struct lake_ref *ref, struct str marks, struct err *err)
{
    if (marks.len != 1 || ref->kind != LAKE_BRANCH)
        return err_set(err, ERR_INVALID, "'@' and '$' stand alone, directly behind a branch");
    ref->staged = ref->explicit_staged = marks.p[0] == '$';
    return 0;
}

int lake_ref_resolve_in(struct lake *l, struct kv_view *view, struct arena *a,
                        const struct lake_repo *r, struct str expr, struct lake_ref *out,
                        struct err *err)
{
    uint64_t left = REF_STEPS_MAX;
    size_t len = 0;

    while (len < expr.len && !memchr("~^@$", expr.p[len], 4))
        len++;
    struct str name = str_head(expr, len), rest = str_skip(expr, len);
    if (name.len == 0 || name.len > LAKE_NAME_MAX)
        return ref_unknown(expr, err);
    int code = ref_find_name(l, view, a, r, name, out, err);
    if (code == 0 && rest.len && (rest.p[0] == '@' || rest.p[0] == '$'))
        return ref_mark(out, rest, err);
    while (code == 0 && rest.len) {
        if (rest.p[0] != '~' && rest.p[0] != '^')
            return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a ref",
                           STR_ARG(str_head(expr, 255)));
        code = ref_step(l, a, r, out, &rest, &left, err);
    }
    return code;
}

int lake_ref_resolve(struct lake *l, struct arena *a, const struct lake_repo *r, struct str expr,
                     struct lake_ref *out, struct err *err)
{
    struct kv_view *view = NULL;
    /* A commit id is looked up by one row, so no view of one moment is needed. */
    int code = lake_is_commit_id(expr) ? 0 : kv_view_open(&view, l->kv, err);

    if (code == 0)
        code = lake_ref_resolve_in(l, view, a, r, expr, out, err);
    kv_view_close(l->kv, view);
    return code;
}

int lake_ref_commit(struct lake *l, struct arena *a, const struct lake_repo *r, struct str expr,
                    struct str *id, struct err *err)
{
    struct lake_commit c;
    struct lake_ref ref = {0};
    int code = lake_is_commit_id(expr) ? lake_commit_get(l, a, r, expr, &c, err) : ERR_NOT_FOUND;

    *id = expr;
    if (code != ERR_NOT_FOUND)
        return code;
    code = lake_ref_resolve(l, a, r, expr, &ref, err);
    if (code == 0 && (ref.explicit_staged || ref.commit_id.len == 0))
        code = err_set(err, ERR_INVALID, "'" STR_FMT "' is not a commit",
                       STR_ARG(str_head(expr, LAKE_NAME_MAX)));
    *id = ref.commit_id;
    return code;
}
