/* Limits the calls of a key-value store per second. */
#include "kv/limiter.h"
#include "base/clock.h"
#include "kv/kv_int.h"
#include "os/thread.h"

#include <stdlib.h>
#include <time.h>

struct kv_limiter {
    struct kv kv;
    struct kv *under;     /* borrowed */
    uint64_t interval_ns; /* time between two calls */
    struct mutex lock;    /* class "kv.limiter"; guards next_ns */
    uint64_t next_ns;     /* when the next call may begin, clock_mono_ns() */
};

/* Waits until the limit allows the call, and returns the kv to call. */
static struct kv *limiter_wait(struct kv *kv)
{
    struct kv_limiter *l = container_of(kv, struct kv_limiter, kv);
    uint64_t now = clock_mono_ns();

    mutex_lock(&l->lock);
    uint64_t turn = l->next_ns > now ? l->next_ns : now;
    l->next_ns = turn + l->interval_ns;
    mutex_unlock(&l->lock);
    if (turn > now)
        nanosleep(&(struct timespec){.tv_sec = (time_t)((turn - now) / NS_PER_S),
                                     .tv_nsec = (long)((turn - now) % NS_PER_S)},
                  NULL);
    return l->under;
}

static int limiter_prepare(struct kv *kv, struct err *err)
{
    return kv_prepare(container_of(kv, struct kv_limiter, kv)->under, err);
}

static int limiter_view_open(struct kv_view **out, struct kv *kv, struct err *err)
{
    struct kv *under = limiter_wait(kv);

    return under->ops->view_open(out, under, err);
}

static void limiter_view_close(struct kv *kv, struct kv_view *view)
{
    kv_view_close(container_of(kv, struct kv_limiter, kv)->under, view);
}

static int limiter_get(struct kv *kv, struct kv_view *view, struct arena *a,
                       const struct kv_name *names, size_t count, struct kv_value *out,
                       struct err *err)
{
    return kv_get_run(limiter_wait(kv), view, a, names, count, out, err);
}

static int limiter_write(struct kv *kv, const struct kv_change *changes, size_t count,
                         size_t *failed, struct arena *a, const struct kv_name *names,
                         size_t name_count, struct kv_value *out, struct err *err)
{
    struct kv_write_call call = {changes, count, failed, a, names, name_count, out, err};

    return kv_write_run(limiter_wait(kv), &call);
}

/* Opens the scan in `under`. The scan then belongs to `under`, so its other calls are not
 * limited. */
static int limiter_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                             struct str partition, const struct kv_range *range, struct err *err)
{
    struct kv *under = limiter_wait(kv);

    return under->ops->scan_open(out, under, view, partition, range, err);
}

static int limiter_drop(struct kv *kv, struct str partition, struct err *err)
{
    return kv_drop_run(limiter_wait(kv), partition, err);
}

static int limiter_probe(struct kv *kv, struct err *err)
{
    return kv_probe(container_of(kv, struct kv_limiter, kv)->under, err);
}

static void limiter_close(struct kv *kv)
{
    struct kv_limiter *l = container_of(kv, struct kv_limiter, kv);

    mutex_release(&l->lock);
    free(l);
}

static const struct kv_ops limiter_ops = {
    .prepare = limiter_prepare,
    .view_open = limiter_view_open,
    .view_close = limiter_view_close,
    .get = limiter_get,
    .write = limiter_write,
    .scan_open = limiter_scan_open,
    .drop = limiter_drop,
    .probe = limiter_probe,
    .close = limiter_close,
};

void kv_limiter_open(struct kv **out, struct kv *under, uint64_t per_second)
{
    struct kv_limiter *l = xzalloc(sizeof(*l));

    l->kv.ops = &limiter_ops;
    l->kv.driver = under->driver;
    l->kv.can = under->can;
    l->under = under;
    l->interval_ns = per_second ? NS_PER_S / per_second : 0;
    mutex_init(&l->lock, "kv.limiter");
    *out = &l->kv;
}
