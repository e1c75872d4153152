/* Changes while a bucket is being switched: where they may go, what they hold, and when an epoch is
 * told. */
#include "coord/switch.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>

static int begin(struct tap_lab *l, bool ends_upload, struct capture *out, struct err *err)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct str key = STR("k");
    struct intended i = {.storage = l->local,
                         .bucket = STR("box"),
                         .user = STR("alice"),
                         .changes = THINGS_OF_OBJECT,
                         .keys = &key,
                         .key_count = 1,
                         .ends_upload = ends_upload};

    return c->begin(c->ctx, &i, out, err);
}

static void end(struct tap_lab *l, struct capture *c)
{
    CHECK(taps_capture(l->taps)->end(taps_capture(l->taps)->ctx, c, OUTCOME_DONE, NULL) == 0);
}

static struct bucket_switch now(struct tap_lab *l)
{
    struct bucket_switch s = {0};
    struct err err = {0};

    CHECK_OK(switch_read(l->replications, &l->a, STR("alice"), STR("box"), &s, &err));
    return s;
}

static void plan(struct tap_lab *l, int64_t ttl_ns)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("local"), STR("other"), STR_EMPTY};
    struct switch_options o = {.multipart_ttl_ns = ttl_ns};
    struct task t = {.type = STR("x"), .id = STR("x"), .queue = STR("api")};
    struct err err = {0};

    tap_lab_replicate(l, "local", "box");
    CHECK_OK(switch_plan(l->replications, &id, &o, &t, STR("local"), &err));
    tap_lab_await_epoch(l);
}

static void begin_switch(struct tap_lab *l)
{
    struct bucket_switch s = now(l);
    struct err err = {0};

    CHECK_OK(switch_begin(l->replications, &s, STR("local"), &err));
}

static bool is_locked(struct tap_lab *l)
{
    struct lock *lock = NULL;
    struct buf key = {0};
    struct err err = {0};

    lock_key_object(&key, STR("local"), STR("box"), STR("k"));
    int code = lock_take(&lock, l->locks, buf_str(&key), &err);
    CHECK(code == 0 || code == ERR_BUSY);
    lock_release(lock);
    buf_release(&key);
    return code == ERR_BUSY;
}

/* S5 */
TEST(tap_switch, a_write_that_older_routes_sent_to_the_old_side_is_refused)
{
    struct capture c = {0};
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    plan(&l, 3600000000000);
    CHECK_OK(begin(&l, false, &c, &err));
    end(&l, &c);
    begin_switch(&l);
    CHECK_OK(routes_reload(l.routes, &err));
    CHECK_ERR(begin(&l, false, &c, &err), ERR_BUSY);
    CHECK_OK(begin(&l, true, &c, &err)); /* S7 */
    end(&l, &c);
    CHECK_OK(switch_abort(l.replications, STR("alice"), STR("box"), &err));
    CHECK_OK(routes_reload(l.routes, &err));
    CHECK_OK(begin(&l, false, &c, &err));
    end(&l, &c);
    tap_lab_close(&l);
}

/* S1 */
TEST(tap_switch, a_write_to_a_bucket_that_is_blocked_is_refused)
{
    struct capture c = {0};
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    plan(&l, 0);
    CHECK_OK(begin(&l, false, &c, &err));
    end(&l, &c);
    begin_switch(&l);
    tap_lab_await_epoch(&l); /* routes are read with it */
    CHECK_ERR(begin(&l, false, &c, &err), ERR_BUSY);
    CHECK_ERR(begin(&l, true, &c, &err), ERR_BUSY);
    struct bucket *b = NULL;
    CHECK_ERR(route_bucket(l.routes, STR("alice"), STR("box"), &b, &err), ERR_BUSY);
    CHECK_ERR(route_bucket(l.routes, STR("bob"), STR("box"), &b, &err), ERR_BUSY);
    CHECK_OK(switch_abort(l.replications, STR("alice"), STR("box"), &err));
    tap_lab_await_epoch(&l);
    CHECK_OK(begin(&l, false, &c, &err));
    end(&l, &c);
    tap_lab_close(&l);
}

/* S10 */
TEST(tap_switch, a_change_holds_the_lock_that_workers_take_and_shares_it)
{
    struct capture one = {0}, two = {0};
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "other-box");
    CHECK_OK(begin(&l, false, &one, &err));
    CHECK(!is_locked(&l));
    end(&l, &one);
    plan(&l, 3600000000000);
    CHECK_OK(begin(&l, false, &one, &err));
    CHECK(is_locked(&l));
    CHECK_OK(begin(&l, false, &two, &err));
    end(&l, &one);
    CHECK(is_locked(&l));
    end(&l, &two);
    CHECK(!is_locked(&l));
    tap_lab_close(&l);
}

/* Changes that are under way, or not recorded, belong to an earlier epoch. */
TEST(tap_switch, an_epoch_is_told_when_all_before_it_has_ended_and_is_recorded)
{
    struct capture c = {0};
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    plan(&l, 0);
    CHECK_OK(begin(&l, false, &c, &err));
    int64_t before = taps_epoch(l.taps);
    begin_switch(&l);
    struct bucket_switch s = now(&l);
    CHECK(s.epoch > before);
    tap_lab_fault(FAULT_REFUSE);
    tap_lab_put(&l, "k");
    end(&l, &c);
    size_t attempts = tap_lab_records();
    while (tap_lab_records() < attempts + 3) /* the keeper has looked meanwhile */
        sched_yield();
    CHECK(taps_epoch(l.taps) < s.epoch);
    tap_lab_fault(FAULT_NONE);
    while (taps_epoch(l.taps) < s.epoch)
        sched_yield();
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 1);
    tap_lab_close(&l);
}

TEST(tap_switch, settling_waits_for_what_is_not_recorded)
{
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    for (int i = 1; i <= 5; i++) {
        tap_lab_put(&l, "k");
        CHECK_OK(taps_settle(l.taps, l.local, UINT64_MAX, &err));
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), i);
    }
    CHECK_OK(taps_settle(l.taps, &l.far, UINT64_MAX, &err));
    tap_lab_close(&l);
}
