/* Sharded buckets on a local storage. */
#include "unit/shard/sharded_home.h"

#include "object/local/local_adopt.h"
#include "object/part_names.h"
#include "shard/move.h"
#include "shard/names.h"
#include "unit/test.h"

#define HOME_MARK "abcd"

static const struct overlay_ops home_overlay;

/* --- life --- */

void sharded_home_open(struct sharded_home *h, struct routes *routes,
                       const struct shard_layout *layout)
{
    *h = (struct sharded_home){
        .overlay = {&home_overlay}, .routes = routes, .storage = routes_main(routes)};
    if (layout)
        h->layout = *layout;
    mutex_init(&h->lock, "shard home");
    routes_set_overlay(routes, &h->overlay);
}

void sharded_home_close(struct sharded_home *h)
{
    vec_each (&h->all, struct sharded **, s)
        sharded_unref(*s);
    vec_release(&h->all);
    mutex_release(&h->lock);
}

/* --- sharded buckets --- */

struct sharded *sharded_home_find(struct sharded_home *h, struct str name)
{
    struct sharded *found = NULL;

    mutex_lock(&h->lock);
    vec_each (&h->all, struct sharded **, s)
        if (str_eq((*s)->name, name))
            found = *s;
    mutex_unlock(&h->lock);
    return found;
}

struct shard_map *sharded_home_map(struct sharded *s)
{
    return table_map(s->table);
}

struct bucket *sharded_home_place(struct sharded *s, uint32_t number)
{
    struct shard_map *m = table_map(s->table);
    const struct shard_place *p = map_place(m, number);
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK(p != NULL);
    CHECK_OK(s->home->ops->open_bucket(&b, s->home, s->owner, p->bucket, &err));
    map_unref(m);
    return b;
}

void sharded_home_install(struct sharded *s, struct shard_map *next)
{
    CHECK(table_install(s->table, next));
    map_unref(next);
}

/* Makes the bucket of shard `number`, and adds its place to the map. */
static void home_add_place(struct storage *home, struct str bucket, struct shard_map *m,
                           uint32_t number)
{
    struct arena a = ARENA_INIT(0);
    struct str name = shard_bucket_name(&a, bucket, STR(HOME_MARK), number);
    struct bucket *logical = NULL;
    struct err err = {0};

    CHECK_OK(home->ops->open_bucket(&logical, home, STR_EMPTY, bucket, &err));
    CHECK_OK(local_make_shard(logical, name, &err));
    logical->ops->unref(logical);
    map_add_place(m, number, home->name, name);
    arena_release(&a);
}

void sharded_home_add_place(struct sharded *s, struct shard_map *next, uint32_t number)
{
    home_add_place(s->home, s->name, next, number);
}

static uint32_t layout_place(const struct shard_layout *layout, size_t segment)
{
    return layout->places ? layout->places[segment] : (uint32_t)segment;
}

static bool layout_uses(const struct shard_layout *layout, uint32_t number)
{
    bool uses = false;

    for (size_t i = 0; i <= layout->count; i++)
        uses |= layout_place(layout, i) == number;
    return uses;
}

/* Returns the map of a new bucket, by the home's layout. */
static struct shard_map *home_cut(struct sharded_home *h, const struct bucket_info *info)
{
    const struct shard_layout *layout = &h->layout;
    struct storage *home = h->storage;
    struct shard_map *first =
        map_first(home->name, info->name, info->owner, STR("house"), STR(HOME_MARK), 1);
    struct shard_map *m = map_draft(first);
    struct shard_window w;
    struct err err = {0};

    map_unref(first);
    CHECK_OK(sharded_id_now(home, info->name, &m->id, &err));
    for (uint32_t number = 1; number <= SHARDED_HOME_PLACES; number++)
        if (layout_uses(layout, number))
            home_add_place(home, info->name, m, number);
    for (size_t i = 0; i <= layout->count; i++) {
        uint32_t number = layout_place(layout, i);
        w.after = i > 0 ? layout->bounds[i - 1] : STR_EMPTY;
        w.upto = i < layout->count ? layout->bounds[i] : STR_EMPTY;
        if (number != 0)
            map_give(m, &w, number);
    }
    return m;
}

static void home_shard(struct sharded_home *h, const struct bucket_info *info)
{
    struct arena a = ARENA_INIT(0);
    struct storage *home = h->storage;
    struct bucket_info log = {.name = shard_map_name(&a, info->name), .owner = info->owner};
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(home->ops->create_bucket(home, &log, &err));
    CHECK_OK(home->ops->open_bucket(&b, home, info->owner, log.name, &err));
    struct shard_map *m = home_cut(h, info);
    struct sharded *s = sharded_new(h->routes, home, b, m);
    mutex_lock(&h->lock);
    vec_push(&h->all, s);
    mutex_unlock(&h->lock);
    arena_release(&a);
}

/* --- the overlay --- */

static struct sharded_home *home_of(struct overlay *o)
{
    return container_of(o, struct sharded_home, overlay);
}

static bool home_has(struct overlay *o, const struct storage *home, struct str name)
{
    (void)home;
    return sharded_home_find(home_of(o), name) != NULL;
}

static int home_open(struct overlay *o, struct storage *home, struct str user, struct str name,
                     struct bucket **out, struct err *err)
{
    (void)home, (void)user, (void)err;
    *out = sharded_bucket(sharded_home_find(home_of(o), name));
    return 0;
}

/* ERR_CONFLICT: the bucket holds a version, a marker or an upload. */
static int home_check_empty(struct sharded *s, struct err *err)
{
    struct bucket *b = sharded_bucket(s);
    struct arena a = ARENA_INIT(0);
    struct list_options one = {.limit = 1};
    struct list_result objects;
    struct upload_list uploads;
    int code = b->ops->list_versions(b, &a, &one, &objects, err);

    if (code == 0)
        code = b->ops->list_uploads(b, &a, &one, &uploads, err);
    if (code == 0 && (objects.count || uploads.count))
        code = err_code(err, ERR_CONFLICT);
    b->ops->unref(b);
    arena_release(&a);
    return code;
}

void sharded_home_forget(struct sharded_home *h, struct sharded *s)
{
    mutex_lock(&h->lock);
    for (size_t i = 0; i < h->all.len; i++)
        if (h->all.items[i] == s)
            vec_remove(&h->all, i);
    mutex_unlock(&h->lock);
    sharded_unref(s);
}

static int home_remove(struct overlay *o, struct storage *home, struct str user, struct str name,
                       struct err *err)
{
    struct sharded *s = sharded_home_find(home_of(o), name);
    struct shard_map *m = table_map(s->table);
    struct bucket *first = NULL;
    int code = home_check_empty(s, err);

    for (size_t i = 1; i < m->place_count && code == 0; i++)
        code = local_remove_shard(home, m->places[i].bucket, err);
    if (code == 0)
        code = shard_remove_log(home, s->log, err);
    if (code == 0)
        code = sharded_open_home(s, &first, err);
    if (code == 0)
        code = local_remove_opened(first, err);
    map_unref(m);
    if (code == 0)
        sharded_home_forget(home_of(o), s);
    return code;
}

static int home_make(struct overlay *o, struct storage *home, const struct bucket_info *info,
                     struct err *err)
{
    int code = home->ops->create_bucket(home, info, err);

    if (code == 0 && !str_starts(info->name, STR(SHARDED_HOME_PLAIN)))
        home_shard(home_of(o), info);
    return code;
}

static int home_list(struct overlay *o, struct storage *home, struct arena *a, struct str owner,
                     struct str after, size_t limit, struct bucket_info **out, size_t *count,
                     struct err *err)
{
    struct bucket_info *page = NULL, *all = arena_array(a, limit + 1, sizeof(*all));
    size_t got = limit;
    int code = all ? 0 : err_code(err, ERR_NO_MEMORY);

    (void)o;
    *count = 0;
    while (code == 0 && got == limit && *count < limit) {
        code = home->ops->list_buckets(home, a, owner, after, limit, &page, &got, err);
        for (size_t i = 0; code == 0 && i < got && *count < limit; i++)
            if (!bucket_name_is_part(page[i].name))
                all[(*count)++] = page[i];
        if (code == 0 && got)
            after = page[got - 1].name;
    }
    *out = all;
    return code;
}

static const struct overlay_ops home_overlay = {.has = home_has,
                                                .open = home_open,
                                                .remove = home_remove,
                                                .make = home_make,
                                                .list = home_list};
