/* Changes that are answered and not recorded, for the answer to "in sync". */
#include "replica/tap/unrecorded.h"
#include "coord/gateways.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>

static uint64_t unrecorded_at(struct tap_lab *l, struct routes *routes, const char *storage)
{
    struct unrecorded_options o = {
        .taps = l->taps, .routes = routes, .queue = l->queue, .config = l->stores[3]};
    struct unrecorded u;
    uint64_t count = 0;
    struct err err = {0};

    CHECK_OK(unrecorded_read(&u, &o, &err));
    CHECK_OK(unrecorded_of(&u, str_z(storage), STR("box"), &count, &err));
    unrecorded_release(&u);
    return count;
}

static int begin(struct tap_lab *l, struct capture *out)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct str key = STR("k");
    struct intended i = {.storage = &l->far,
                         .bucket = STR("box"),
                         .user = STR("alice"),
                         .changes = THINGS_OF_OBJECT,
                         .keys = &key,
                         .key_count = 1};
    struct err err = {0};

    return c->begin(c->ctx, &i, out, &err);
}

static void end(struct tap_lab *l, struct capture *c)
{
    CHECK(taps_capture(l->taps)->end(taps_capture(l->taps)->ctx, c, OUTCOME_DONE, NULL) == 0);
}

/* Tells that the storage's changes are recorded, as the process that has it does. */
static void settle(struct tap_lab *l, const char *storage)
{
    struct str name = str_z(storage);
    int64_t now_ms;
    struct err err = {0};

    CHECK_OK(gateways_settle(l->stores[3], &name, 1, INT64_MAX / 4, &now_ms, &err));
}

TEST(unrecorded, a_change_of_a_local_storage_is_recorded_or_told_of)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    for (int i = 1; i <= 20; i++) {
        tap_lab_put(&l, "k");
        CHECK_INT(unrecorded_at(&l, l.routes, "local"), 0);
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), i);
    }
    tap_lab_fault(FAULT_REFUSE);
    tap_lab_put(&l, "k");
    CHECK_INT(unrecorded_at(&l, l.routes, "local"), 1);
    tap_lab_fault(FAULT_NONE);
    while (unrecorded_at(&l, l.routes, "local"))
        sched_yield();
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 21);
    tap_lab_close(&l);
}

TEST(unrecorded, a_change_of_a_remote_storage_is_recorded_or_told_of)
{
    struct taps_stats stats;
    struct tap_lab l;
    struct capture c;

    tap_lab_open(&l);
    settle(&l, "far");
    tap_lab_replicate(&l, "far", "box");
    for (int i = 1; i <= 20; i++) {
        CHECK_INT(begin(&l, &c), 0);
        CHECK_INT(unrecorded_at(&l, l.routes, "far"), 1); /* its outcome is not known */
        end(&l, &c);
        CHECK_INT(unrecorded_at(&l, l.routes, "far"), 0);
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), i);
    }
    CHECK_INT(begin(&l, &c), 0);
    tap_lab_fault(FAULT_REFUSE);
    end(&l, &c);
    do
        taps_stats(l.taps, &stats);
    while (stats.ended);
    tap_lab_fault(FAULT_NONE);
    CHECK_INT(unrecorded_at(&l, l.routes, "far"), 1); /* until its intent comes due */
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 20);
    tap_lab_close(&l);
}

/* A process is asked that does not have the storage. */
TEST(unrecorded, a_storage_of_another_process_is_clear_when_that_one_says_so)
{
    struct routes *none = NULL;
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    CHECK_OK(routes_open(&none, l.stores[3], NULL, &err));
    tap_lab_put(&l, "k");
    CHECK_INT(unrecorded_at(&l, none, "local"), 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 1);
    routes_close(none);
    tap_lab_close(&l);
}
