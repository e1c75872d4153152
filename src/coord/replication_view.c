/* All policies in memory: builds and indexes a view (coord/replication.h), and answers questions
 * about it. */
#include "coord/replication_int.h"

#include <stdlib.h>

enum {
    VIEW_MAX = 256 * 1024 * 1024, /* most bytes of a view */
    NAME_PARTS = 5,
};

struct replication_view *replication_view_new(int64_t epoch)
{
    struct replication_view *view = xcalloc(1, sizeof(*view));

    atomic_init(&view->refs, 1);
    view->epoch = epoch;
    arena_init(&view->arena, VIEW_MAX);
    map_init(&view->names);
    map_init(&view->sources);
    map_init(&view->users);
    map_init(&view->switches);
    map_init(&view->blocked);
    return view;
}

void replication_view_unref(struct replication_view *view)
{
    if (!view || atomic_fetch_sub(&view->refs, 1) != 1)
        return;
    map_release(&view->names);
    map_release(&view->sources);
    map_release(&view->users);
    map_release(&view->switches);
    map_release(&view->blocked);
    arena_release(&view->arena);
    free(view);
}

/* --- names --- */

/* Splits the name of a policy at ':' and unescapes the parts. Returns the number of parts; 0: the
 * name is malformed. */
static size_t replication_name_split(struct arena *a, struct str name, struct str *parts,
                                     size_t max)
{
    struct buf part = {0};
    size_t n = 0;
    bool more = true;

    while (more && n < max) {
        struct str head;
        more = str_cut(name, ':', &head, &name);
        buf_reset(&part);
        if (store_key_unescape(&part, head) < 0)
            break;
        parts[n++] = arena_str(a, buf_str(&part));
        if (!more) {
            buf_release(&part);
            return n;
        }
    }
    buf_release(&part);
    return 0;
}

struct policy *replication_view_named(struct replication_view *view, struct str name)
{
    struct policy *p = map_get(&view->names, name);
    struct str parts[NAME_PARTS] = {0};

    if (p)
        return p;
    if (replication_name_split(&view->arena, name, parts, NAME_PARTS) < NAME_PARTS - 1)
        return NULL;
    p = arena_new(&view->arena, struct policy);
    if (!p)
        return NULL;
    p->name = arena_str(&view->arena, name);
    p->r.id = (struct replication_id){parts[0], parts[1], parts[2], parts[3], parts[4]};
    map_put(&view->names, p->name, p);
    return p;
}

static void view_copy_policy(struct replication_view *view, const struct policy *from)
{
    struct policy *p = arena_new(&view->arena, struct policy);
    const struct replication_id *id = &from->r.id;
    struct arena *a = &view->arena;

    if (!p)
        return;
    *p = *from;
    p->r.id = (struct replication_id){arena_str(a, id->user), arena_str(a, id->bucket),
                                      arena_str(a, id->from), arena_str(a, id->to),
                                      arena_str(a, id->to_bucket)};
    p->r.agent_url = arena_str(a, from->r.agent_url);
    p->name = arena_str(a, from->name);
    p->created_at = arena_str(a, from->created_at);
    map_put(&view->names, p->name, p);
}

void replication_view_copy(struct replication_view *view, const struct replication_view *from,
                           const struct store_args *but)
{
    struct map without;
    struct str name;
    void *value;

    map_init(&without);
    for (size_t i = 0; i < but->argc; i++)
        map_put(&without, but->argv[i], &without);
    for (size_t at = 0; map_next(&from->names, &at, &name, &value);)
        if (!map_get(&without, name))
            view_copy_policy(view, value);
    map_release(&without);
}

void replication_source(struct buf *out, struct str one, struct str two)
{
    store_key_part(out, one);
    buf_append_char(out, ':');
    store_key_part(out, two);
}

static void *view_find(const struct map *map, struct str one, struct str two)
{
    struct buf key = {0};

    replication_source(&key, one, two);
    void *found = map_get(map, buf_str(&key));
    buf_release(&key);
    return found;
}

/* --- indexing --- */

static int replication_name_order(const void *one, const void *two)
{
    const struct replication_id *a = &(*(const struct replication *const *)one)->id;
    const struct replication_id *b = &(*(const struct replication *const *)two)->id;
    int order = str_cmp(a->user, b->user);

    order = order ? order : str_cmp(a->bucket, b->bucket);
    order = order ? order : str_cmp(a->to, b->to);
    order = order ? order : str_cmp(a->to_bucket, b->to_bucket);
    return order ? order : str_cmp(a->from, b->from);
}

static int replication_source_order(const void *one, const void *two)
{
    const struct replication_id *a = &(*(const struct replication *const *)one)->id;
    const struct replication_id *b = &(*(const struct replication *const *)two)->id;
    int order = str_cmp(a->from, b->from);

    order = order ? order : str_cmp(a->bucket, b->bucket);
    return order ? order : replication_name_order(one, two);
}

static void view_put(struct replication_view *view, struct map *map, struct str one, struct str two,
                     void *value)
{
    struct buf key = {0};

    replication_source(&key, one, two);
    map_put(map, arena_str(&view->arena, buf_str(&key)), value);
    buf_release(&key);
}

static void view_index_switch(struct replication_view *view, struct policy *p)
{
    const struct replication_id *id = &p->r.id;

    if (p->r.blocked) {
        view_put(view, &view->blocked, id->to, id->bucket, p);
        return;
    }
    view_put(view, &view->switches, id->from, id->bucket, p);
    view_put(view, &view->switches, id->to, id->to_bucket.len ? id->to_bucket : id->bucket, p);
}

static struct policies *view_begin_run(struct replication_view *view, const struct replication **at)
{
    struct policies *run = arena_new(&view->arena, struct policies);
    const struct replication_id *id = &(*at)->id;

    if (!run)
        return NULL;
    run->list = at;
    if (id->bucket.len)
        view_put(view, &view->sources, id->from, id->bucket, run);
    else
        view_put(view, &view->users, id->user, id->from, run);
    return run;
}

/* Indexes the policies of the sorted array: policies of users by user and storage, policies of
 * buckets by source. */
static void view_index_runs(struct replication_view *view, const struct replication **list,
                            size_t count)
{
    struct policies *run = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct replication_id *id = &list[i]->id, *last = i ? &list[i - 1]->id : NULL;
        bool same = last && str_eq(id->from, last->from) && str_eq(id->bucket, last->bucket) &&
                    (id->bucket.len || str_eq(id->user, last->user));
        if (!same)
            run = view_begin_run(view, &list[i]);
        if (!run)
            return;
        run->count++;
    }
}

int replication_view_order(struct replication_view *view, struct err *err)
{
    size_t max = view->names.len + 1, n = 0;
    const struct replication **sources = arena_array(&view->arena, max, sizeof(*sources));
    struct str name;
    void *value;

    view->all.list = arena_array(&view->arena, max, sizeof(*view->all.list));
    if (arena_error(&view->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t at = 0; map_next(&view->names, &at, &name, &value);) {
        struct policy *p = value;
        /* False for a bucket's policy without a status: it was made or removed during the read. */
        bool known = p->created_at.len || (p->member && p->r.id.bucket.len == 0);
        if (known)
            view->all.list[view->all.count++] = &p->r;
        if (known && (p->member || p->r.switching))
            sources[n++] = &p->r;
        if (known && (p->r.switching || p->r.blocked))
            view_index_switch(view, p);
    }
    if (view->all.count)
        qsort(view->all.list, view->all.count, sizeof(*view->all.list), replication_name_order);
    if (n)
        qsort(sources, n, sizeof(*sources), replication_source_order);
    view_index_runs(view, sources, n);
    return arena_error(&view->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* --- looking --- */

int replications_view(struct replications *r, struct replication_view **out, struct err *err)
{
    mutex_lock(&r->lock);
    struct replication_view *view = r->view;
    if (view)
        atomic_fetch_add(&view->refs, 1);
    mutex_unlock(&r->lock);
    if (!view)
        return err_set(err, ERR_UNAVAILABLE, "the replications could not be read yet");
    *out = view;
    return 0;
}

int64_t replication_view_epoch(const struct replication_view *view)
{
    return view->epoch;
}

static size_t policies_list(const struct policies *run, const struct replication *const **out)
{
    *out = run ? run->list : NULL;
    return run ? run->count : 0;
}

size_t replication_view_from(const struct replication_view *view, struct str storage,
                             struct str bucket, const struct replication *const **out)
{
    return policies_list(view_find(&view->sources, storage, bucket), out);
}

bool replication_view_any(const struct replication_view *view, struct str storage,
                          struct str bucket)
{
    return view_find(&view->sources, storage, bucket) ||
           view_find(&view->switches, storage, bucket) ||
           view_find(&view->blocked, storage, bucket);
}

const struct replication *replication_view_switch(const struct replication_view *view,
                                                  struct str storage, struct str bucket)
{
    const struct policy *p = view_find(&view->switches, storage, bucket);

    return p ? &p->r : NULL;
}

const struct replication *replication_view_blocked(const struct replication_view *view,
                                                   struct str storage, struct str bucket)
{
    const struct policy *p = view_find(&view->blocked, storage, bucket);

    return p ? &p->r : NULL;
}

size_t replication_view_user(const struct replication_view *view, struct str user,
                             struct str storage, const struct replication *const **out)
{
    return policies_list(view_find(&view->users, user, storage), out);
}

size_t replication_view_all(const struct replication_view *view,
                            const struct replication *const **out)
{
    return policies_list(&view->all, out);
}
