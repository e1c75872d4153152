/* lifecycle_worker: when it sweeps, what it remembers, and that it stops. */
#include "s3/lifecycle/lifecycle_worker.h"

#include "base/clock.h"
#include "unit/s3/gateway_lab.h"

#include <sched.h>

static struct bucket *open_box(struct gate *g)
{
    struct bucket *b = NULL;
    struct err err = {0};

    CHECK_OK(route_bucket(g->routes, STR("alice-id"), STR("box"), &b, &err));
    return b;
}

/* A worker until it has swept everything once. */
static struct lifecycle_stats sweep_once(struct gate *g)
{
    struct lifecycle_worker *w = NULL;
    struct lifecycle_stats stats;
    struct err err = {0};

    CHECK_OK(lifecycle_worker_start(
        &w,
        &(struct lifecycle_worker_options){
            .routes = g->routes, .day_ms = MS_PER_HOUR, .interval_ms = 24 * MS_PER_HOUR},
        &err));
    do {
        sched_yield();
        lifecycle_worker_stats(w, &stats);
    } while (stats.sweeps == 0);
    lifecycle_worker_stop(w);
    return stats;
}

static struct lifecycle_progress progress(struct gate *g, struct arena *a)
{
    struct bucket *b = open_box(g);
    struct lifecycle_progress p;
    struct err err = {0};

    CHECK_OK(lifecycle_progress_read(&p, b, a, &err));
    b->ops->unref(b);
    return p;
}

static void expire_all(struct gate *g)
{
    gate_ask(g, ALICE, "PUT /box?lifecycle", NULL,
             STR("<LifecycleConfiguration><Rule><Status>Enabled</Status><Prefix/><Expiration><Date>"
                 "2020-01-01T00:00:00Z</Date></Expiration></Rule></LifecycleConfiguration>"),
             200);
}

TEST(lifecycle_worker, intervals_begin_at_midnight)
{
    CHECK_INT(lifecycle_slot(INT64_C(1000) * MS_PER_DAY + 5, MS_PER_DAY),
              INT64_C(1000) * MS_PER_DAY);
    CHECK_INT(lifecycle_slot(12345, 1000), 12000);
}

GATE_TEST(a_worker_sweeps_each_bucket_once_an_interval)
{
    struct arena a = ARENA_INIT(0);

    gate_do(g, "PUT /other", 200);
    gate_ask(g, ALICE, "PUT /other/k", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/k", NULL, STR("x"), 200);
    expire_all(g);
    struct lifecycle_stats stats = sweep_once(g);
    CHECK_INT(stats.counts.expired, 1);
    CHECK_INT(stats.buckets, 1);
    CHECK_INT(stats.failures, 0);
    gate_do(g, "GET /box/k", 404);
    gate_do(g, "GET /other/k", 200);
    struct lifecycle_progress p = progress(g, &a);
    CHECK(p.done && p.finished_ms > 0 && p.slot_ms > 0);
    CHECK_INT(p.last.expired, 1);
    gate_ask(g, ALICE, "PUT /box/k", NULL, STR("x"), 200);
    CHECK_INT(sweep_once(g).buckets, 0); /* a new start in the same interval */
    gate_do(g, "GET /box/k", 200);
    arena_release(&a);
}

GATE_TEST(a_worker_ends_what_an_earlier_interval_began_and_begins_anew)
{
    struct arena a = ARENA_INIT(0);
    struct lifecycle_progress before = {.slot_ms = 5, .cursor = STR("m"), .counts.expired = 7};
    struct bucket *b = open_box(g);
    struct err err = {0};

    gate_ask(g, ALICE, "PUT /box/a", NULL, STR("x"), 200);
    gate_ask(g, ALICE, "PUT /box/z", NULL, STR("x"), 200);
    expire_all(g);
    CHECK_OK(lifecycle_progress_keep(&before, b, &err));
    struct lifecycle_stats stats = sweep_once(g);
    CHECK_INT(stats.buckets, 2);
    CHECK_INT(stats.counts.expired, 2);
    struct lifecycle_progress p = progress(g, &a);
    CHECK(p.done && p.slot_ms > 5);
    CHECK_INT(p.last.expired, 1); /* "a", which was before the cursor */
    b->ops->unref(b);
    arena_release(&a);
}
