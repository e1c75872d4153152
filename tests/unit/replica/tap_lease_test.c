/* Capture under a lease: nothing is changed while others may take this process for dead
 * (docs/replication.md, E1 to E5). A word that was sent long ago stands for a process that has
 * slept since. */
#include "base/clock.h"
#include "unit/object/bucket_conformance.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>

static const uint64_t LONG_NS = 3600 * NS_PER_S;
static const struct str key = {"k", 1};

static struct intended far_away(struct tap_lab *l, const char *bucket)
{
    return (struct intended){.storage = &l->far,
                             .bucket = str_z(bucket),
                             .user = STR("alice"),
                             .changes = THINGS_OF_OBJECT,
                             .keys = &key,
                             .key_count = 1};
}

static int begin(struct tap_lab *l, const char *bucket, struct capture *out)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct intended i = far_away(l, bucket);

    return c->begin(c->ctx, &i, out, NULL);
}

static int begin_here(struct tap_lab *l, struct capture *out)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct intended i = far_away(l, "box");

    i.storage = l->local;
    return c->begin(c->ctx, &i, out, NULL);
}

static int check(struct tap_lab *l, const struct capture *c)
{
    return taps_capture(l->taps)->check(taps_capture(l->taps)->ctx, c, NULL);
}

static int end(struct tap_lab *l, struct capture *c, enum outcome outcome)
{
    struct taps_stats stats;
    int code = taps_capture(l->taps)->end(taps_capture(l->taps)->ctx, c, outcome, NULL);

    do
        taps_stats(l->taps, &stats);
    while (stats.ended);
    return code;
}

static int put_here(struct tap_lab *l)
{
    struct put_result out;
    struct str_reader body;
    struct put_options o = {0};

    str_reader_init(&body, STR("hello"));
    return l->box->ops->put(l->box, &l->a, key, &body.reader, 5, &o, &out, NULL);
}

static void hear(struct tap_lab *l)
{
    lease_heard(l->lease, clock_boot_ns());
    CHECK(lease_await(l->lease, clock_mono_ns() + LONG_NS));
}

/* Makes the last word as old as the start of the machine. */
static void sleep_long(struct tap_lab *l)
{
    lease_heard(l->lease, 0);
}

static void open_lab(struct tap_lab *l)
{
    tap_lab_open(l);
    tap_lab_taps_close(l);
    l->shared = true;
    tap_lab_taps_open(l);
}

static size_t intents(struct tap_lab *l)
{
    return tap_lab_tasks(l, "intents", TASK_SCHEDULED, "intent");
}

/* Waits for the intent that the keeper announces. */
static void await_intent(struct tap_lab *l)
{
    while (intents(l) == 0)
        sched_yield();
    CHECK_INT(intents(l), 1);
}

TEST(tap_lease, nothing_is_changed_before_others_know_of_us)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", &c), ERR_STORE);
    CHECK_INT(begin_here(&l, &c), ERR_STORE);
    CHECK_INT(put_here(&l), ERR_STORE);
    hear(&l);
    CHECK_INT(begin(&l, "box", &c), 0);
    CHECK_INT(end(&l, &c, OUTCOME_DONE), 0);
    CHECK_INT(put_here(&l), 0);
    CHECK_INT(intents(&l), 0);
    tap_lab_close(&l);
}

/* There are no replications here, but one may have been made meanwhile. */
TEST(tap_lease, nothing_is_changed_after_a_sleep_until_policies_were_read)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    hear(&l);
    sleep_long(&l);
    CHECK(!lease_contact(l.lease));
    CHECK_INT(begin(&l, "box", &c), ERR_STORE);
    CHECK_INT(begin_here(&l, &c), ERR_STORE);
    CHECK_INT(put_here(&l), ERR_STORE);
    hear(&l);
    CHECK(lease_contact(l.lease));
    CHECK_INT(begin_here(&l, &c), 0);
    CHECK_INT(end(&l, &c, OUTCOME_DONE), 0);
    CHECK_INT(put_here(&l), 0);
    tap_lab_close(&l);
}

/* A word that is taken after the lease has ended does not prolong it. */
TEST(tap_lease, what_began_before_a_sleep_is_not_sent_after_it)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    hear(&l);
    CHECK_INT(begin(&l, "box", &c), 0);
    CHECK_INT(check(&l, &c), 0);
    sleep_long(&l);
    CHECK_INT(check(&l, &c), ERR_STORE);
    hear(&l);
    CHECK_INT(check(&l, &c), ERR_STORE);
    CHECK_INT(end(&l, &c, OUTCOME_REFUSED), 0);
    CHECK_INT(intents(&l), 0);
    tap_lab_close(&l);
}

TEST(tap_lease, words_that_follow_each_other_keep_it)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    hear(&l);
    CHECK_INT(begin(&l, "box", &c), 0);
    for (int i = 0; i < 3; i++)
        hear(&l);
    CHECK_INT(check(&l, &c), 0);
    CHECK_INT(end(&l, &c, OUTCOME_DONE), 0);
    tap_lab_close(&l);
}

static void run_intent(struct tap_lab *l)
{
    struct queue_page page = {.queue = INTENT_QUEUE, .state = TASK_SCHEDULED, .limit = 10};
    struct task_info *found;
    size_t count;
    struct err err = {0};

    CHECK_OK(queue_tasks(l->queue, &l->a, &page, &found, &count, &err));
    CHECK(count > 0);
    struct task_run run = {.task = &found[0].task, .arena = &l->a, .ctx = l->taps};
    CHECK_OK(taps_intent_run(&run, &err));
    CHECK_OK(queue_delete(l->queue, INTENT_QUEUE, found[0].task.id, &err));
}

/* The write was at the storage during the sleep, and had no intent: the replication was made
 * meanwhile. */
TEST(tap_lease, what_was_made_during_a_sleep_is_looked_at_and_not_answered)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    hear(&l);
    CHECK_INT(begin(&l, "box", &c), 0);
    CHECK(!c.intent);
    sleep_long(&l);
    CHECK_INT(end(&l, &c, OUTCOME_DONE), ERR_STORE);
    await_intent(&l);
    hear(&l);
    tap_lab_replicate(&l, "far", "box");
    run_intent(&l);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "object:sync"), 1);
    tap_lab_close(&l);
}

/* No policy concerns the bucket: no vector is made. */
TEST(tap_lease, what_was_made_during_a_sleep_may_concern_nobody)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    hear(&l);
    CHECK_INT(begin(&l, "box", &c), 0);
    sleep_long(&l);
    CHECK_INT(end(&l, &c, OUTCOME_UNKNOWN), ERR_STORE);
    await_intent(&l);
    run_intent(&l);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 0);
    tap_lab_close(&l);
}

/* The intent stays: the outcome counts as not known. */
TEST(tap_lease, what_was_announced_before_a_sleep_stays_so)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    hear(&l);
    tap_lab_replicate(&l, "far", "box");
    CHECK_INT(begin(&l, "box", &c), 0);
    CHECK(c.intent);
    sleep_long(&l);
    CHECK_INT(end(&l, &c, OUTCOME_DONE), ERR_STORE);
    CHECK_INT(intents(&l), 1);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "object:sync"), 1);
    tap_lab_close(&l);
}

/* Other processes have gone on, and the object was written at the other storage. */
TEST(tap_lease, what_was_announced_before_a_sleep_does_not_outrank_what_was_written_elsewhere)
{
    struct tap_lab l;
    struct capture c;
    struct change there = {.thing = {THING_OBJECT, STR("box"), key},
                           .place = {.storage = STR("other")},
                           .type = STR("object:sync")};
    struct record rec = {.changes = &there, .count = 1};
    struct err err = {0};

    open_lab(&l);
    hear(&l);
    tap_lab_replicate(&l, "far", "box");
    CHECK_INT(begin(&l, "box", &c), 0);
    CHECK(c.intent);
    sleep_long(&l);
    CHECK_OK(replication_record(l.replications, &rec, &err));
    CHECK_INT(end(&l, &c, OUTCOME_DONE), ERR_STORE);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "other"), 1);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 0);
    tap_lab_close(&l);
}

/* A process that is alone needs no lease, even after a laptop's lid was closed. */
TEST(tap_lease, a_process_alone_needs_none)
{
    struct tap_lab l;
    struct capture c;

    tap_lab_open(&l);
    sleep_long(&l);
    CHECK(!lease_contact(l.lease)); /* questions about every process wait for the next word */
    CHECK_INT(begin(&l, "box", &c), 0);
    CHECK_INT(check(&l, &c), 0);
    CHECK_INT(end(&l, &c, OUTCOME_DONE), 0);
    CHECK_INT(put_here(&l), 0);
    tap_lab_close(&l);
}
