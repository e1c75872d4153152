/* One sharded bucket in this process. */
#include "shard/sharded.h"
#include "base/clock.h"
#include "route/route.h"
#include "shard/log.h"

#include <stdlib.h>

enum {
    COMMIT_MS = 30 * MS_PER_S, /* how long a commit tries to find out whether its map was written */
    PRUNE_EVERY = 8,           /* old maps are removed after each 8 new maps */
};

/* --- opening a window that a request has waited for (H11) --- */

static bool sharded_may_open(const struct shard_map *m, uint64_t number)
{
    return m->number == number &&
           (m->closed == SHARD_CLOSED_COPY || m->closed == SHARD_CLOSED_NONE);
}

/* Opens the window that map `number` has closed. An error needs no handling: the window stays
 * closed, and a waiting request tries again. */
static void sharded_open_window(void *ctx, uint64_t number)
{
    struct sharded *s = ctx;
    struct err err = {0};

    mutex_lock(&s->changes);
    struct shard_map *m = table_map(s->table);
    if (sharded_may_open(m, number)) {
        struct shard_map *next = map_draft(m);
        map_open(next);
        (void)!sharded_publish(s, next, &err);
        map_unref(next);
    }
    map_unref(m);
    mutex_unlock(&s->changes);
}

/* --- life --- */

static struct str sharded_keep(struct str s)
{
    return str_n(str_dup(s), s.len);
}

struct sharded *sharded_new(struct routes *routes, struct storage *home, struct bucket *log,
                            struct shard_map *head)
{
    struct sharded *s = xzalloc(sizeof(*s));

    s->home = home;
    s->place = place_of(home);
    BUG_ON(!s->place);
    s->name = sharded_keep(head->bucket);
    s->owner = sharded_keep(head->owner);
    s->house = sharded_keep(head->house);
    s->id = head->id;
    s->routes = routes;
    s->table = table_new(head, sharded_open_window, s);
    s->log = log;
    s->commit_ms = COMMIT_MS;
    mutex_init(&s->changes, "shard.changes");
    atomic_init(&s->refs, 1);
    map_unref(head);
    return s;
}

struct sharded *sharded_ref(struct sharded *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void sharded_unref(struct sharded *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
        return;
    table_free(s->table);
    s->log->ops->unref(s->log);
    mutex_release(&s->changes);
    free((char *)s->name.p);
    free((char *)s->owner.p);
    free((char *)s->house.p);
    free(s);
}

/* --- shards --- */

/* Opens a bucket whose id is that of this sharded bucket: the bucket itself, or a shard of it.
 * ERR_NO_BUCKET: there is no bucket of this name, or it belongs to another bucket. */
static int sharded_open_own(struct sharded *s, struct storage *storage, struct str name,
                            struct bucket **out, struct err *err)
{
    struct bucket *b = NULL;
    uint64_t id = 0;
    int code = storage->ops->open_bucket(&b, storage, s->owner, name, err);

    if (code == 0)
        code = place_id(b, &id, err);
    if (code == 0 && id != s->id)
        code = err_code(err, ERR_NO_BUCKET);
    if (code == 0)
        *out = b;
    else if (b)
        b->ops->unref(b);
    return code;
}

int sharded_open_home(struct sharded *s, struct bucket **out, struct err *err)
{
    return sharded_open_own(s, s->home, s->name, out, err);
}

int sharded_open_place(struct sharded *s, const struct shard_place *p, struct bucket **out,
                       struct err *err)
{
    struct storage *storage = s->home;

    if (!str_eq(p->storage, s->home->name))
        storage = s->routes ? routes_storage(s->routes, p->storage) : NULL;
    if (!storage)
        return err_set(err, ERR_OFFLINE, "storage '" STR_FMT "', which has shard %u, is not known",
                       STR_ARG(p->storage), p->number);
    int code = sharded_open_own(s, storage, p->bucket, out, err);
    if (code == ERR_NO_BUCKET)
        return err_set(err, ERR_CORRUPT,
                       "shard %u, bucket '" STR_FMT "' on storage '" STR_FMT "', is missing",
                       p->number, STR_ARG(p->bucket), STR_ARG(p->storage));
    return code;
}

int sharded_id_now(struct storage *home, struct str name, uint64_t *out, struct err *err)
{
    struct bucket *b = NULL;
    int code = home->ops->open_bucket(&b, home, STR_EMPTY, name, err);

    if (code == 0)
        code = place_id(b, out, err);
    if (b)
        b->ops->unref(b);
    return code;
}

/* --- maps --- */

/* Installs the newest map of the log after a commit that failed. */
static void sharded_catch_up(struct sharded *s)
{
    struct shard_map *head = NULL;
    struct err err = {0};

    if (log_head(s->log, &head, &err) < 0)
        return;
    table_install(s->table, head);
    map_unref(head);
}

int sharded_publish(struct sharded *s, struct shard_map *next, struct err *err)
{
    struct err ignored = {0};

    mutex_assert_held(&s->changes);
    BUG_ON(map_check(next, &ignored) < 0);
    int code = log_commit(s->log, next, clock_mono_ns() + s->commit_ms * NS_PER_MS, err);
    if (code == ERR_CONFLICT || code == ERR_TIMEOUT)
        sharded_catch_up(s);
    if (code < 0)
        return code;
    table_install(s->table, next);
    if (s->published)
        s->published(s->published_ctx, s, next);
    /* If this fails, a later call removes the old maps. */
    if (next->number % PRUNE_EVERY == 0)
        (void)!log_prune(s->log, next->number, &ignored);
    return 0;
}
