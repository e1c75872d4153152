/* Lists the names of visible refs in the order of `<name>/`. */
#include "lake/ref_names.h"

#include "base/vec.h"

#include <stdlib.h>

/* The scan of one kind of ref, and the name that it returned last. */
struct ref_scan {
    const char *kind; /* "branches" or "tags" */
    struct kv_scan *scan;
    struct str name; /* empty: the scan has ended */
    bool hidden;
};

enum { BRANCHES, TAGS, SCANS };

struct ref_names {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *repo;
    struct str prefix;
    struct ref_scan scans[SCANS];
    /* Names that wait until the longer names that come before them were returned. Each name is a
     * prefix of the names above it on the stack. */
    VEC(struct str) stack;
};

/* --- one kind of ref --- */

/* Reads the record of a branch to find out whether the branch is hidden. */
static int ref_scan_read(struct ref_names *n, struct ref_scan *s, struct str value, struct err *err)
{
    struct lake_branch branch = {0};
    int code = 0;

    if (s == &n->scans[BRANCHES])
        code = lake_branch_read(&branch, n->arena, value, err);
    s->hidden = branch.hidden;
    return code;
}

static int ref_scan_next(struct ref_names *n, struct ref_scan *s, struct err *err)
{
    struct str key, value;
    int code = kv_scan_next(s->scan, &key, &value, err);

    s->name = STR_EMPTY;
    if (code < 0)
        return code == ERR_END ? 0 : code;
    s->name = arena_str(n->arena, str_skip(key, strlen(s->kind) + 1));
    code = arena_error(n->arena);
    return code < 0 ? err_code(err, code) : ref_scan_read(n, s, value, err);
}

/* --- both kinds, in the order of names --- */

/* Returns the scan whose current name is smaller. NULL: both scans have ended. If a branch and a
 * tag have the same name, returns the scan of branches, because the name means the branch. */
static struct ref_scan *ref_scans_least(struct ref_names *n)
{
    struct ref_scan *branch = &n->scans[BRANCHES], *tag = &n->scans[TAGS];

    if (!branch->name.len)
        return tag->name.len ? tag : NULL;
    return tag->name.len && str_cmp(tag->name, branch->name) < 0 ? tag : branch;
}

/* Moves each scan whose current name is that of `least` to its next name. */
static int ref_scans_pass(struct ref_names *n, struct ref_scan *least, struct err *err)
{
    struct str name = least->name;
    int code = 0;

    for (int i = 0; i < SCANS && code == 0; i++)
        if (str_eq(n->scans[i].name, name))
            code = ref_scan_next(n, &n->scans[i], err);
    return code;
}

/* Finds the next visible name. *out is empty at the end. */
static int ref_scans_peek(struct ref_names *n, struct str *out, struct err *err)
{
    struct ref_scan *least;
    int code = 0;

    while (code == 0 && (least = ref_scans_least(n)) && least->hidden)
        code = ref_scans_pass(n, least, err);
    *out = code == 0 && least ? least->name : STR_EMPTY;
    return code;
}

/* --- the order of `<name>/` --- */

/* Whether `of` is a proper prefix of `name`, and `name/` comes before `of/`. */
static bool ref_name_precedes(struct str name, struct str of)
{
    return name.len > of.len && str_starts(name, of) && (unsigned char)name.p[of.len] < '/';
}

int ref_names_next(struct ref_names *n, struct str *name, struct err *err)
{
    struct str next;
    int code;

    for (;;) {
        code = ref_scans_peek(n, &next, err);
        if (code < 0)
            return code;
        struct str *top = n->stack.len ? &n->stack.items[n->stack.len - 1] : NULL;
        if (!next.len && !top)
            return ERR_END;
        if (top && !(next.len && ref_name_precedes(next, *top))) {
            *name = *top;
            n->stack.len--;
            return 0;
        }
        vec_push(&n->stack, next);
        code = ref_scans_pass(n, ref_scans_least(n), err);
        if (code < 0)
            return code;
    }
}

/* --- seeking --- */

/* Whether a name is visible. `rows` are the row of the branch and the row of the tag with this
 * name. */
static int ref_rows_visible(struct ref_names *n, const struct kv_value *rows, bool *out,
                            struct err *err)
{
    struct lake_branch branch = {0};
    int code = 0;

    if (kv_is_there(&rows[BRANCHES]))
        code = lake_branch_read(&branch, n->arena, rows[BRANCHES].bytes, err);
    *out = kv_is_there(&rows[BRANCHES]) ? !branch.hidden : kv_is_there(&rows[TAGS]);
    return code;
}

/* Whether `name/` is equal to or greater than `from`. `name` is a prefix of `from`. */
static bool ref_name_is_behind(struct str name, struct str from)
{
    return ref_name_precedes(from, name) || (from.len == name.len + 1 && from.p[name.len] == '/');
}

/* Puts refs on the stack that the scans do not find. The scans begin at `from`, so they miss a name
 * that is a prefix of `from`, even if `<name>/` is equal to or greater than `from`. */
static int ref_names_stack_up(struct ref_names *n, struct str from, struct err *err)
{
    size_t most = size_min(from.len, LAKE_NAME_MAX + 2), count = 0;
    struct kv_name *names = arena_array(n->arena, SCANS * (most + 1), sizeof(*names));
    struct kv_value *rows = arena_array(n->arena, SCANS * (most + 1), sizeof(*rows));
    size_t *lengths = arena_array(n->arena, most + 1, sizeof(*lengths));
    bool visible;

    if (!names || !rows || !lengths)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t len = 1; len < most; len++) {
        struct str name = str_head(from, len);
        if (!ref_name_is_behind(name, from) || !str_starts(name, n->prefix))
            continue;
        for (int i = 0; i < SCANS; i++)
            names[SCANS * count + (size_t)i] =
                lake_key_in(n->arena, n->repo->partition, n->scans[i].kind, name);
        lengths[count++] = len;
    }
    int code =
        count ? kv_get_many(n->lake->kv, NULL, n->arena, names, SCANS * count, rows, err) : 0;
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = ref_rows_visible(n, &rows[SCANS * i], &visible, err);
        if (code == 0 && visible)
            vec_push(&n->stack, str_head(from, lengths[i]));
    }
    return code;
}

int ref_names_seek(struct ref_names *n, struct str from, struct err *err)
{
    int code = 0;

    from = arena_str(n->arena, from);
    n->stack.len = 0;
    if (from.len)
        code = ref_names_stack_up(n, from, err);
    for (int i = 0; i < SCANS && code == 0; i++) {
        struct str key = lake_key_in(n->arena, n->repo->partition, n->scans[i].kind, from).key;
        kv_scan_seek(n->scans[i].scan, key);
        code = ref_scan_next(n, &n->scans[i], err);
    }
    return code;
}

/* --- opening and closing --- */

int ref_names_open(struct ref_names **out, struct lake *l, struct arena *a,
                   const struct lake_repo *r, struct str prefix, struct err *err)
{
    struct ref_names *n = xzalloc(sizeof(*n));
    struct lake_page page = {.prefix = prefix, .limit = LAKE_LIST_MAX};
    int code = 0;

    *n = (struct ref_names){.lake = l, .arena = a, .repo = r, .prefix = prefix};
    n->scans[BRANCHES].kind = "branches";
    n->scans[TAGS].kind = "tags";
    for (int i = 0; i < SCANS && code == 0; i++)
        code = lake_rows_open(&n->scans[i].scan, l, NULL, a, r->partition, n->scans[i].kind, &page,
                              err);
    for (int i = 0; i < SCANS && code == 0; i++)
        code = ref_scan_next(n, &n->scans[i], err);
    if (code < 0) {
        ref_names_close(n);
        return code;
    }
    *out = n;
    return 0;
}

void ref_names_close(struct ref_names *n)
{
    if (!n)
        return;
    for (int i = 0; i < SCANS; i++)
        kv_scan_free(n->scans[i].scan);
    vec_release(&n->stack);
    free(n);
}
