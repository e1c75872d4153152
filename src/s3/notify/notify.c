/* Opens and closes notifications, wakes the webhooks' threads, and counts events. */
#include "s3/notify/notify_int.h"

#include "base/clock.h"
#include "object/local/local.h"
#include "store/store.h"

#include <stdlib.h>

enum { CALL_MS = 10 * MS_PER_S, RETRY_MS = 500, PENDING_MAX = 1000 * 1000 };

static struct notify *notify_new(const struct notify_options *o)
{
    struct notify *n = xcalloc(1, sizeof(*n));

    n->o = *o;
    n->o.region = o->region.len ? o->region : STR("us-east-1");
    n->o.max_age_ms = o->max_age_ms ? o->max_age_ms : MS_PER_DAY;
    n->o.max_pending = o->max_pending ? o->max_pending : PENDING_MAX;
    n->o.retry_ms = o->retry_ms ? o->retry_ms : RETRY_MS;
    n->outbox = db_cf(o->db, LOCAL_OUTBOX);
    n->client = client_new(
        &(struct client_options){.timeout_ms = o->call_timeout_ms ? o->call_timeout_ms : CALL_MS,
                                 .max_attempts = 1,
                                 .direct = o->direct});
    mutex_init(&n->lock, "notify");
    cond_init(&n->loaded);
    return n;
}

int notify_open(struct notify **out, const struct notify_options *o, struct err *err)
{
    struct notify *n = notify_new(o);
    bool made;
    int code = seal_key_open(&n->key, o->key_file, &made, err);

    if (code == 0)
        code = reload_open(&n->reload,
                           &(struct reload_options){.store = o->config,
                                                    .channel = WEBHOOKS_CHANNEL,
                                                    .load = webhooks_load,
                                                    .ctx = n,
                                                    .log = o->log,
                                                    .failed = "notify.not_loaded",
                                                    .done = "notify.loaded",
                                                    .fatal = RELOAD_EXPECTED | RELOAD_CORRUPT},
                           err);
    if (code < 0)
        notify_close(n);
    else
        *out = n;
    return code;
}

void notify_close(struct notify *n)
{
    if (!n)
        return;
    reload_close(&n->reload);
    vec_each (&n->webhooks, struct webhook **, w)
        atomic_store(&(*w)->stop, true);
    while (n->webhooks.len) {
        struct webhook *w = vec_pop(&n->webhooks);
        sender_stop(w);
        webhook_free(w);
    }
    vec_release(&n->webhooks);
    client_free(n->client);
    seal_key_release(&n->key);
    cond_release(&n->loaded);
    mutex_release(&n->lock);
    free(n);
}

struct webhook *notify_find(struct notify *n, struct str name)
{
    mutex_assert_held(&n->lock);
    vec_each (&n->webhooks, struct webhook **, w)
        if (str_eq(str_z((*w)->name), name))
            return *w;
    return NULL;
}

void notify_wake(struct notify *n, struct str name)
{
    struct webhook *w;

    mutex_lock(&n->lock);
    w = notify_find(n, name);
    if (w) {
        atomic_fetch_add(&w->pending, 1);
        w->woken = true;
        cond_signal(&w->wake);
    }
    mutex_unlock(&n->lock);
}

/* --- numbers --- */

static void add_stats(const struct webhook *w, int64_t now_ms, struct notify_stats *out)
{
    int64_t pending = atomic_load(&w->pending), oldest = atomic_load(&w->oldest_ms);

    if (pending > 0)
        out->pending += (uint64_t)pending;
    out->delivered += atomic_load(&w->delivered);
    out->failed += atomic_load(&w->failed);
    if (oldest > 0 && now_ms > oldest && (uint64_t)(now_ms - oldest) > out->oldest_ms)
        out->oldest_ms = (uint64_t)(now_ms - oldest);
}

void notify_stats(struct notify *n, struct notify_stats *out)
{
    int64_t now_ms = clock_wall_ms();

    *out = (struct notify_stats){.dropped = atomic_load(&n->dropped)};
    mutex_lock(&n->lock);
    vec_each (&n->webhooks, struct webhook **, w)
        add_stats(*w, now_ms, out);
    mutex_unlock(&n->lock);
}

static int webhook_by_name(const void *a, const void *b)
{
    return str_cmp(((const struct webhook_info *)a)->name, ((const struct webhook_info *)b)->name);
}

int notify_webhooks(struct notify *n, struct arena *a, struct webhook_info **out, size_t *count,
                    struct err *err)
{
    int64_t now_ms = clock_wall_ms();
    struct webhook_info *infos;
    size_t i = 0;

    mutex_lock(&n->lock);
    infos = arena_array(a, n->webhooks.len + 1, sizeof(*infos));
    if (infos)
        vec_each (&n->webhooks, struct webhook **, w) {
            infos[i].name = arena_str(a, str_z((*w)->name));
            infos[i].url = arena_str(a, str_z((*w)->url));
            infos[i].is_signed = (*w)->secret[0] != '\0';
            add_stats(*w, now_ms, &infos[i++].stats);
        }
    bool known = n->is_known;
    mutex_unlock(&n->lock);
    if (!infos || arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (!known)
        return err_set(err, ERR_UNAVAILABLE, "the webhooks could not be loaded yet");
    qsort(infos, i, sizeof(*infos), webhook_by_name);
    *out = infos;
    *count = i;
    return 0;
}
