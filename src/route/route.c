/* Opens and closes the routes, and finds their storages by name. */
#include "route/route.h"
#include "route/route_int.h"

#include <stdlib.h>

static reload_fn routes_load_now;

int routes_open(struct routes **out, struct store *config, const struct log *log, struct err *err)
{
    struct routes *r = xcalloc(1, sizeof(*r));
    int code;

    r->store = config;
    r->storages_known = true;
    mutex_init(&r->lock, "routes");
    cond_init(&r->loaded);
    hash_key_random(&r->absent_key);
    code = reload_open(&r->reload,
                       &(struct reload_options){.store = config,
                                                .channel = ROUTES_CHANNEL,
                                                .load = routes_load_now,
                                                .ctx = r,
                                                .log = log,
                                                .failed = "routes.not_loaded",
                                                .done = "routes.loaded",
                                                .fatal = RELOAD_EXPECTED},
                       err);
    if (code < 0)
        routes_close(r);
    else
        *out = r;
    return code;
}

void routes_close(struct routes *r)
{
    if (!r)
        return;
    reload_close(&r->reload);
    while (r->storages.len) {
        struct storage *s = vec_pop(&r->storages);
        s->ops->close(s);
    }
    while (r->retired.len) {
        struct storage *s = vec_pop(&r->retired);
        s->ops->close(s);
    }
    vec_release(&r->storages);
    vec_release(&r->retired);
    routes_view_free(r->view);
    cond_release(&r->loaded);
    mutex_release(&r->lock);
    free(r);
}

static void abort_storage(struct storage *s)
{
    if (s->ops->abort)
        s->ops->abort(s);
}

/* Aborts all storages, without holding the lock (docs/threads.md, T1). They stay open until the
 * routes are closed. */
void routes_abort(struct routes *r)
{
    VEC(struct storage *) all = {0};

    mutex_lock(&r->lock);
    r->aborted = true;
    vec_each (&r->storages, struct storage **, s)
        vec_push(&all, *s);
    vec_each (&r->retired, struct storage **, s)
        vec_push(&all, *s);
    mutex_unlock(&r->lock);
    vec_each (&all, struct storage **, s)
        abort_storage(*s);
    vec_release(&all);
}

static int routes_load_now(void *ctx, struct err *err)
{
    return routes_load(ctx, err);
}

int routes_reload(struct routes *r, struct err *err)
{
    return reload_now(&r->reload, err);
}

/* --- storages --- */

static struct storage *find_storage(struct routes *r, struct str name)
{
    mutex_assert_held(&r->lock);
    vec_each (&r->storages, struct storage **, s)
        if (str_eq((*s)->name, name))
            return *s;
    return NULL;
}

uint64_t routes_generation(const struct routes *r)
{
    return atomic_load(&r->generation);
}

/* Stores whether any storage is remote, and whether the main storage is remote, because every
 * request asks for that. Called whenever the storages or the main storage change. */
static void note_remotes(struct routes *r)
{
    bool any = false;

    vec_each (&r->storages, struct storage **, s)
        any |= storage_can(*s, STORAGE_FORWARDS);
    atomic_store(&r->any_remote, any);
    atomic_store(&r->main_is_remote, storage_can(atomic_load(&r->main), STORAGE_FORWARDS));
    atomic_fetch_add(&r->generation, 1);
}

int routes_add_storage(struct routes *r, struct storage *s, struct err *err)
{
    int code = 0;

    mutex_lock(&r->lock);
    if (find_storage(r, s->name))
        code = err_set(err, ERR_EXISTS, "there is a storage " STR_FMT " already", STR_ARG(s->name));
    else if (r->storages.len == ROUTES_STORAGES_MAX)
        code = err_set(err, ERR_TOO_LARGE, "there are %d storages already", ROUTES_STORAGES_MAX);
    else
        vec_push(&r->storages, s);
    atomic_store(&s->overlay, r->overlay);
    if (code == 0 && !atomic_load(&r->main))
        atomic_store(&r->main, s);
    bool aborted = r->aborted;
    note_remotes(r);
    mutex_unlock(&r->lock);
    if (code < 0)
        s->ops->close(s);
    else if (aborted)
        abort_storage(s);
    return code;
}

int routes_set_main(struct routes *r, struct str name, struct err *err)
{
    struct storage *s;

    mutex_lock(&r->lock);
    s = find_storage(r, name);
    atomic_store(&r->main, s);
    note_remotes(r);
    mutex_unlock(&r->lock);
    return s ? 0 : err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
}

void routes_retire_storage(struct routes *r, struct str name)
{
    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->storages.len; i++) {
        struct storage *s = r->storages.items[i];
        if (!str_eq(s->name, name))
            continue;
        vec_push(&r->retired, s);
        vec_remove(&r->storages, i);
        if (atomic_load(&r->main) == s)
            atomic_store(&r->main, r->storages.len ? r->storages.items[0] : NULL);
        break;
    }
    note_remotes(r);
    mutex_unlock(&r->lock);
}

void routes_know_storages(struct routes *r, bool known)
{
    atomic_store(&r->storages_known, known);
}

bool routes_any_remote(struct routes *r)
{
    return atomic_load_explicit(&r->any_remote, memory_order_relaxed);
}

bool routes_main_is_remote(struct routes *r)
{
    return atomic_load_explicit(&r->main_is_remote, memory_order_relaxed);
}

struct storage *routes_storage(struct routes *r, struct str name)
{
    struct storage *s;

    mutex_lock(&r->lock);
    s = find_storage(r, name);
    mutex_unlock(&r->lock);
    return s;
}

struct storage *routes_main(struct routes *r)
{
    return atomic_load(&r->main);
}

struct str routes_main_name(struct routes *r)
{
    const struct storage *s = routes_main(r);

    return s ? s->name : STR_EMPTY;
}

size_t routes_storages(struct routes *r, struct storage **out, size_t max)
{
    size_t count;

    mutex_lock(&r->lock);
    count = size_min(max, r->storages.len);
    if (count)
        memcpy(out, r->storages.items, count * sizeof(struct storage *));
    mutex_unlock(&r->lock);
    return count;
}
