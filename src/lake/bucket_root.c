/* Lists a repository's keys over all its refs, one ref after the other, in the order of keys. If
 * the delimiter occurs in `<ref>/` itself, each ref becomes one common prefix, even a ref without
 * objects, and its objects are not read. */
#include "lake/bucket_int.h"
#include "lake/page.h"
#include "lake/ref_names.h"

struct root_walk {
    struct lake_bucket *b;
    struct arena *a;
    struct lake_list_options o; /* options for whole keys: prefix, delimiter, after and limit */
    struct ref_names *names;
    struct str ref;  /* the ref whose paths are walked now; empty: go on to the next ref */
    struct str from; /* the first path of the ref that the walk has not given yet */
    bool begun;      /* `page` holds a page of the ref */
    struct lake_objects page;
    size_t at;                /* index of the next item of the page */
    struct lake_object *item; /* the item that was given last; NULL: a ref without its objects */
    struct err *err;          /* for seek, which cannot return an error */
    int failed;
    struct list_result *out;
};

/* Returns a string that is greater than every path before `from`, and smaller than `from`. It ends
 * with 0xff, which no UTF-8 text contains. With this string as its `after`, a listing begins at
 * `from` itself. */
static struct str root_just_before(struct arena *a, struct str from)
{
    char *copy = arena_z(a, from);
    size_t last = from.len - 1;

    if (!copy || from.len == 0)
        return STR_EMPTY;
    if (copy[last] == 0)
        return str_n(copy, last);
    copy[last]--;
    copy[last + 1] = '\xff'; /* overwrites the NUL of arena_z() */
    return str_n(copy, from.len + 1);
}

/* Whether the whole ref becomes one common prefix. */
static bool root_is_folded(const struct root_walk *w)
{
    struct str key = arena_fmt(w->a, STR_FMT "/", STR_ARG(w->ref));

    return w->o.delimiter.len && str_find(str_skip(key, w->o.prefix.len), w->o.delimiter) >= 0;
}

static int root_read_page(struct root_walk *w, struct err *err)
{
    struct lake_list_options o = {.limit = w->o.limit + 1,
                                  .after =
                                      w->begun ? w->page.next : root_just_before(w->a, w->from)};
    int code = lake_list(w->b->lake, w->a, &w->b->repo, w->ref, &o, &w->page, err);

    w->begun = true;
    w->at = 0;
    if (code != ERR_NOT_FOUND)
        return code;
    w->page = (struct lake_objects){0}; /* the ref was deleted meanwhile */
    return 0;
}

/* Gives the next object of the ref. ERR_END: there are no more. */
static int root_next_object(struct root_walk *w, struct str *key, struct err *err)
{
    int code = 0;

    if (!w->begun || (w->at == w->page.count && w->page.more))
        code = root_read_page(w, err);
    if (code < 0)
        return code;
    if (w->at == w->page.count)
        return ERR_END;
    w->item = &w->page.items[w->at++];
    *key = lake_bucket_key(w->b, w->a, w->ref, w->item->path);
    return arena_error(w->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static void root_begin_ref(struct root_walk *w, struct str ref, struct str from)
{
    w->ref = ref;
    w->from = from;
    w->begun = false;
    w->page = (struct lake_objects){0};
    w->at = 0;
}

static int root_next(void *ctx, struct str *key, struct err *err)
{
    struct root_walk *w = ctx;
    int code = w->failed;

    while (code == 0) {
        if (w->ref.len) {
            code = root_next_object(w, key, err);
            if (code != ERR_END)
                return code;
        }
        struct str ref;
        code = ref_names_next(w->names, &ref, err);
        if (code < 0)
            return code;
        root_begin_ref(w, ref, STR_EMPTY);
        if (root_is_folded(w)) {
            w->item = NULL;
            *key = lake_bucket_key(w->b, w->a, ref, STR_EMPTY);
            w->ref = STR_EMPTY;
            return arena_error(w->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
        }
    }
    return code;
}

/* Moves to the first key at or after `key`. If `key` is inside a ref, the walk begins in the
 * middle of that ref. */
static void root_seek(void *ctx, struct str key)
{
    struct root_walk *w = ctx;
    struct str ref, from, name;
    bool inside = str_cut(key, '/', &ref, &from) && from.len;
    struct str start = inside ? str_head(key, ref.len + 1) : key;

    root_begin_ref(w, STR_EMPTY, STR_EMPTY);
    w->failed = ref_names_seek(w->names, start, w->err);
    if (w->failed < 0 || !inside)
        return;
    int code = ref_names_next(w->names, &name, w->err);
    if (code == 0 && str_eq(name, ref))
        root_begin_ref(w, name, arena_str(w->a, from));
    /* the ref does not exist, and `name` is the next ref: moves back, so that the walk reads it
     * again */
    else if (code == 0)
        w->failed = ref_names_seek(w->names, arena_fmt(w->a, STR_FMT "/", STR_ARG(name)), w->err);
    else if (code != ERR_END)
        w->failed = code;
}

static int root_add(void *ctx, struct str key, bool is_prefix, struct err *err)
{
    struct root_walk *w = ctx;
    struct list_entry *e = &w->out->entries[w->out->count++];

    *e = (struct list_entry){.is_prefix = is_prefix, .info.key = key};
    return is_prefix ? 0 : lake_entry_info(&w->item->entry, w->a, key, true, &e->info, err);
}

static int root_fill(struct root_walk *w, struct err *err)
{
    struct page_source source = {root_next, root_seek, root_add, w};
    struct str from;
    int code = page_start(w->a, &w->o, &from, err);

    if (code == 0 && from.len)
        root_seek(w, from);
    if (code == 0)
        code = page_fill(w->a, &w->o, &source, &w->out->more, &w->out->next, err);
    return code == ERR_END ? 0 : code;
}

int lake_bucket_list_root(struct lake_bucket *b, struct arena *a, const struct list_options *o,
                          struct list_result *out, struct err *err)
{
    struct root_walk w = {
        .b = b, .a = a, .o = {o->prefix, o->delimiter, o->after, o->limit}, .err = err, .out = out};
    int code = ref_names_open(&w.names, b->lake, a, &b->repo, o->prefix, err);

    if (code == 0)
        code = root_fill(&w, err);
    ref_names_close(w.names);
    return code < 0 ? code : lake_bucket_check_there(b, a, err);
}
