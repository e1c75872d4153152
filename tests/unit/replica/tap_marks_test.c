/* Marks of buckets with intents in the journal (docs/replication.md, R6).
 * tests/crash/intent_crash.c has what a machine loses with its power. */
#include "replica/tap/tap_int.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>
#include <unistd.h>

static void put(struct tap_lab *l, const char *bucket)
{
    const struct change_capture *capture = taps_capture(l->taps);
    struct str key = STR("k");
    struct intended i = {.storage = &l->far,
                         .bucket = str_z(bucket),
                         .user = STR("alice"),
                         .changes = THINGS_OF_OBJECT,
                         .keys = &key,
                         .key_count = 1};
    struct capture c;
    struct err err = {0};

    CHECK_OK(capture->begin(capture->ctx, &i, &c, &err));
    CHECK(capture->end(capture->ctx, &c, OUTCOME_DONE, NULL) == 0);
}

static struct str mark_of(struct tap_lab *l, const char *field)
{
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(
        store_call(l->stores[1], &l->a, &reply, &err, STR("HGET"), STR("w:marks"), str_z(field)));
    return reply_is_nil(reply) ? STR("none") : reply->str;
}

static void set_mark(struct tap_lab *l, const char *field, const char *boot)
{
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(store_call(l->stores[1], &l->a, &reply, &err, STR("HSET"), STR("w:marks"),
                        str_z(field), str_z(boot)));
}

static struct replication_status status_of(struct tap_lab *l)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("far"), STR("other"), STR_EMPTY};
    struct replication_status s;
    struct err err = {0};

    CHECK_OK(replication_read(l->replications, &l->a, &id, &s, &err));
    return s;
}

TEST(marks, a_bucket_has_one_from_its_first_intent_to_the_end_of_the_process)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    CHECK_STR(mark_of(&l, "far:box"), STR("none"));
    put(&l, "box");
    CHECK_STR(mark_of(&l, "far:box"), STR("first"));
    put(&l, "box");
    tap_lab_taps_close(&l);
    CHECK_STR(mark_of(&l, "far:box"), STR("none"));
    tap_lab_taps_open(&l);
    CHECK_INT(status_of(&l).resynced_ms, 0);
    tap_lab_close(&l);
}

TEST(marks, of_the_same_start_of_the_machine_nothing_is_lost)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    tap_lab_taps_close(&l);
    set_mark(&l, "far:box", "first"); /* as a kill leaves it */
    tap_lab_taps_open(&l);
    tap_lab_await_epoch(&l);
    CHECK_INT(status_of(&l).resynced_ms, 0);
    CHECK_STR(mark_of(&l, "far:box"), STR("first"));
    tap_lab_close(&l);
}

TEST(marks, without_the_journal_of_this_start_the_bucket_is_copied_anew)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    tap_lab_taps_close(&l);
    set_mark(&l, "far:box", "first");
    CHECK(unlink(tap_lab_journal()) == 0);
    tap_lab_taps_open(&l);
    while (!str_eq(mark_of(&l, "far:box"), STR("none")))
        sched_yield();
    CHECK(status_of(&l).resynced_ms > 0);
    tap_lab_close(&l);
}

TEST(marks, of_another_start_of_the_machine_the_bucket_is_copied_anew)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    tap_lab_taps_close(&l);
    set_mark(&l, "far:box", "first");
    set_mark(&l, "far:gone", "first"); /* not replicated any more */
    l.boot = "second";
    tap_lab_taps_open(&l);
    while (!str_eq(mark_of(&l, "far:box"), STR("none")) ||
           !str_eq(mark_of(&l, "far:gone"), STR("none")))
        sched_yield();
    CHECK(status_of(&l).resynced_ms > 0);
    put(&l, "box");
    CHECK_STR(mark_of(&l, "far:box"), STR("second"));
    tap_lab_close(&l);
}

/* A suspect bucket stays suspect over starts and puts until it is copied anew. */
TEST(marks, a_suspect_bucket_stays_so_until_it_is_copied_anew)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("far"), STR("other"), STR_EMPTY};
    struct reply *reply;
    struct tap_lab l;
    bool open = false;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    tap_lab_taps_close(&l);
    set_mark(&l, "far:box", "zero");
    CHECK_OK(store_call(l.stores[3], &l.a, &reply, &err, STR("HSET"), STR("p:switch:alice:box"),
                        STR("replicationID"), STR("alice:box:far:other"), STR("lastStatus"),
                        STR("in_progress"), STR("multipartTTL"), STR("3600000000000"),
                        STR("replPriority"), STR("0")));
    CHECK_OK(replication_pause(l.replications, &id, false, &err)); /* the view has the switch */
    for (int i = 0; i < 2; i++) {
        tap_lab_taps_open(&l);
        tap_lab_await_epoch(&l);
        put(&l, "box");
        CHECK_STR(mark_of(&l, "far:box"), STR("suspect"));
        CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), 1, &open, &err));
        CHECK(open); /* a switch does not begin (S4) */
        CHECK_INT(status_of(&l).resynced_ms, 0);
        tap_lab_taps_close(&l);
    }
    CHECK_OK(store_call(l.stores[3], &l.a, &reply, &err, STR("DEL"), STR("p:switch:alice:box")));
    CHECK_OK(replication_pause(l.replications, &id, false, &err));
    tap_lab_taps_open(&l);
    while (!str_eq(mark_of(&l, "far:box"), STR("none")))
        sched_yield();
    CHECK(status_of(&l).resynced_ms > 0);
    tap_lab_close(&l);
}

/* The machine went down between the plan of a switch and its epoch: the switch has not begun. */
TEST(marks, a_switch_that_has_not_begun_does_not_keep_its_bucket_from_being_copied_anew)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("far"), STR("other"), STR_EMPTY};
    struct reply *reply;
    struct tap_lab l;
    bool suspect = true;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    tap_lab_taps_close(&l);
    set_mark(&l, "far:box", "zero");
    CHECK_OK(store_call(l.stores[3], &l.a, &reply, &err, STR("HSET"), STR("p:switch:alice:box"),
                        STR("replicationID"), STR("alice:box:far:other"), STR("lastStatus"),
                        STR("not_started"), STR("multipartTTL"), STR("3600000000000"),
                        STR("replPriority"), STR("0")));
    CHECK_OK(replication_pause(l.replications, &id, false, &err)); /* the view has the switch */
    tap_lab_taps_open(&l);
    while (suspect || !str_eq(mark_of(&l, "far:box"), STR("none")))
        CHECK_OK(taps_suspect(l.queue, STR("far"), STR("box"), &suspect, &err));
    CHECK(status_of(&l).resynced_ms > 0);
    tap_lab_close(&l);
}

/* From the plan on, so that no intent of before can be lost when the route changes. */
TEST(marks, a_bucket_with_a_switch_has_none)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("far"), STR("other"), STR_EMPTY};
    struct reply *reply;
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_with_journal(&l);
    tap_lab_replicate(&l, "far", "box");
    put(&l, "box");
    CHECK_OK(store_call(l.stores[3], &l.a, &reply, &err, STR("HSET"), STR("p:switch:alice:box"),
                        STR("replicationID"), STR("alice:box:far:other"), STR("lastStatus"),
                        STR("not_started"), STR("replPriority"), STR("0")));
    CHECK_OK(replication_pause(l.replications, &id, true, &err));
    tap_lab_await_epoch(&l);
    CHECK_STR(mark_of(&l, "far:box"), STR("none"));
    put(&l, "box");
    CHECK_STR(mark_of(&l, "far:box"), STR("none"));
    tap_lab_close(&l);
}
