/* Finds the repository to which a place in a bucket belongs. */
#include "lake/overlap.h"
#include "lake/lake_int.h"

bool lake_spaces_overlap(struct str a, struct str b)
{
    struct str inner = a.len < b.len ? b : a, outer = a.len < b.len ? a : b;

    return str_starts(inner, outer) && (inner.len == outer.len || inner.p[outer.len] == '/');
}

/* A search through the records of repositories. */
struct overlap_search {
    const struct lake_repo *own;
    struct str address;
    bool is_prefix;
    bool (*meets)(const struct overlap_search *s, struct str space);
};

/* Searches all repositories except s->own for the first one whose namespace passes s->meets().
 * ERR_NOT_FOUND: there is none. */
static int overlap_find(const struct overlap_search *s, struct lake *l, struct arena *a,
                        struct lake_repo *out, struct err *err)
{
    struct kv_range range = {.prefix = STR("repos/")};
    struct kv_scan *scan = NULL;
    struct str key, value;
    bool found = false;
    int code = kv_scan_open(&scan, l->kv, NULL, LAKE_PARTITION, &range, err);

    while (code == 0 && !found && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        arena_reset(a);
        code = lake_repo_read(out, a, arena_str(a, value), err);
        found = code == 0 && !str_eq(out->partition, s->own->partition) && s->meets(s, out->space);
    }
    kv_scan_free(scan);
    return code == ERR_END ? ERR_NOT_FOUND : code;
}

static bool overlap_meets_space(const struct overlap_search *s, struct str space)
{
    return lake_spaces_overlap(space, s->own->space);
}

int lake_check_spaces(struct lake *l, const struct lake_repo *r, struct err *err)
{
    struct overlap_search s = {.own = r, .meets = overlap_meets_space};
    struct arena a = {0};
    struct lake_repo other;
    int code = overlap_find(&s, l, &a, &other, err);

    if (code == 0)
        code = err_set(err, ERR_IN_USE,
                       "storage namespace already in use: " STR_FMT " overlaps with " STR_FMT
                       " of repository " STR_FMT,
                       STR_ARG(r->space), STR_ARG(other.space), STR_ARG(other.id));
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Whether the address is inside one of the namespace's own folders (`data/`, `_lakefs/`). If the
 * address is a prefix: whether addresses that begin with it may be there. */
static bool overlap_meets_folder(const struct overlap_search *s, struct str space,
                                 const char *folder)
{
    struct buf below = {0};

    buf_append_str(&below, space);
    buf_appendf(&below, "/%s/", folder);
    struct str text = buf_str(&below);
    bool meets = str_starts(s->address, text) || (s->is_prefix && str_starts(text, s->address));
    buf_release(&below);
    return meets;
}

static bool overlap_meets_address(const struct overlap_search *s, struct str space)
{
    return overlap_meets_folder(s, space, LAKE_BODIES) ||
           overlap_meets_folder(s, space, LAKE_NODES);
}

int lake_check_source(struct lake *l, const struct lake_repo *r, struct str address, bool is_prefix,
                      struct err *err)
{
    struct overlap_search s = {r, address, is_prefix, overlap_meets_address};
    struct arena a = {0};
    struct lake_repo other;
    int code = overlap_find(&s, l, &a, &other, err);

    if (code == 0)
        code = err_set(err, ERR_INVALID,
                       STR_FMT " lies in the namespace of repository " STR_FMT
                               ", whose collections would remove it",
                       STR_ARG(str_head(address, LAKE_NAME_MAX)), STR_ARG(other.id));
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code;
}
