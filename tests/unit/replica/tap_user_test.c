/* A user's policy and the buckets that are there when it is made. */
#include "coord/gateways.h"
#include "coord/worker_int.h"
#include "replica/first.h"
#include "unit/coord/tell.h"
#include "unit/replica/tap_lab.h"

static int run_of(struct tap_lab *l, const char *bucket, const char *to, struct err *err)
{
    const struct replication_id id = {STR("alice"), str_z(bucket), STR("local"), str_z(to),
                                      STR_EMPTY};
    struct task t = first_task_user(&l->a, &id);
    struct running r = {.run = {.task = &t, .arena = &l->a, .ctx = l->taps}};

    atomic_init(&r.lease_until_ns, UINT64_MAX);
    *err = (struct err){0};
    return taps_user_run(&r.run, err);
}

static int run_task(struct tap_lab *l, const char *to, struct err *err)
{
    return run_of(l, "", to, err);
}

static size_t replications_of(struct tap_lab *l, const char *bucket)
{
    const struct replication *const *found;
    struct replication_view *view = NULL;
    struct err err = {0};

    CHECK_OK(replications_view(l->replications, &view, &err));
    size_t count = replication_view_from(view, STR("local"), str_z(bucket), &found);
    replication_view_unref(view);
    return count;
}

TEST(tap_user, buckets_that_are_there_are_replicated_once_everybody_knows_the_policy)
{
    struct tap_lab l;
    struct err err;

    tap_lab_open(&l);
    tell_epoch(l.stores[3], STR("slow"), 1);
    tap_lab_replicate(&l, "local", "");
    CHECK_INT(run_task(&l, "other", &err), ERR_AGAIN);
    CHECK_INT(replications_of(&l, "box"), 0);
    tell_epoch(l.stores[3], STR("slow"), INT64_MAX / 2);
    CHECK_OK(run_task(&l, "other", &err));
    CHECK_INT(replications_of(&l, "box"), 1);
    CHECK_OK(run_task(&l, "other", &err)); /* at least once */
    CHECK_INT(replications_of(&l, "box"), 1);
    tap_lab_close(&l);
}

TEST(tap_user, a_policy_that_is_gone_makes_nothing)
{
    struct tap_lab l;
    struct err err;

    tap_lab_open(&l);
    CHECK_OK(run_task(&l, "other", &err));
    CHECK_INT(replications_of(&l, "box"), 0);
    tap_lab_close(&l);
}

/* P7: that the bucket was made was recorded before the old replication ended, and found that one.
 */
TEST(tap_user, a_bucket_that_was_made_again_gets_a_replication_and_no_other_does)
{
    struct tap_lab l;
    struct err err;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "");
    while (run_of(&l, "none", "other", &err) == ERR_AGAIN)
        ;
    CHECK_INT(replications_of(&l, "none"), 0);
    CHECK_INT(replications_of(&l, "box"), 0);
    CHECK_OK(run_of(&l, "box", "other", &err));
    CHECK_INT(replications_of(&l, "box"), 1);
    CHECK_OK(run_of(&l, "box", "other", &err));
    CHECK_INT(replications_of(&l, "box"), 1);
    tap_lab_close(&l);
}
