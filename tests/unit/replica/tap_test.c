/* Changes of local storages on their way to the store. */
#include "base/clock.h"
#include "unit/object/bucket_conformance.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>
#include <stdio.h>

static int ask(struct tap_lab *l, struct storage *s, const char *bucket)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct str key = STR("k");
    struct intended i = {.storage = s,
                         .bucket = str_z(bucket),
                         .user = STR("alice"),
                         .changes = THINGS_OF_OBJECT,
                         .keys = &key,
                         .key_count = 1};
    struct capture capture;
    struct err err = {0};
    int code = c->begin(c->ctx, &i, &capture, &err);

    if (code == 0)
        CHECK(c->end(c->ctx, &capture, OUTCOME_REFUSED, NULL) == 0);
    return code;
}

TEST(tap, a_change_of_a_replicated_bucket_becomes_tasks)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_put(&l, "k");
    tap_lab_await_tasks(&l, "object:sync", 1);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "object:sync:tags"), 0); /* V5 */
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "object:sync:acl"), 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 1);
    lab_remove(l.box, &l.a, "k", STR_EMPTY);
    while (tap_lab_version(&l, THING_OBJECT, "box", "k", "local") < 2)
        sched_yield();
    tap_lab_await_no_rows(&l);
    tap_lab_close(&l);
}

TEST(tap, a_bucket_that_is_not_replicated_leaves_nothing)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "another");
    size_t before = tap_lab_records();
    tap_lab_put(&l, "k");
    CHECK_INT(tap_lab_rows(&l), 0);
    CHECK_INT(tap_lab_records(), before);
    tap_lab_close(&l);
}

TEST(tap, settings_of_a_bucket_are_changes_too)
{
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    CHECK_OK(l.box->ops->set_document(l.box, "tagging", STR("t"), &err));
    tap_lab_await_tasks(&l, "bucket:sync:tags", 1);
    CHECK_OK(l.box->ops->set_document(l.box, "acl", STR("a"), &err));
    tap_lab_await_tasks(&l, "bucket:sync:acl", 1);
    CHECK_OK(l.box->ops->set_document(l.box, "lifecycle", STR("l"), &err));
    tap_lab_await_tasks(&l, "bucket:create", 1);
    CHECK_OK(l.box->ops->set_versions(l.box, true, &err));
    while (tap_lab_version(&l, THING_BUCKET, "box", "", "local") < 2)
        sched_yield();
    tap_lab_close(&l);
}

TEST(tap, a_new_bucket_under_a_users_policy_gets_its_replication)
{
    const struct replication *const *found;
    struct replication_view *view = NULL;
    struct bucket_info info = {.name = STR("fresh"), .owner = STR("alice")};
    struct bucket_info other = {.name = STR("others"), .owner = STR("bob")};
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "");
    CHECK_OK(l.local->ops->create_bucket(l.local, &other, &err));
    CHECK_OK(l.local->ops->create_bucket(l.local, &info, &err));
    tap_lab_await_tasks(&l, "bucket:create", 1);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "first"), 1);
    CHECK_OK(replications_view(l.replications, &view, &err));
    CHECK_INT(replication_view_from(view, STR("local"), STR("fresh"), &found), 1);
    CHECK_STR(found[0]->id.to, STR("other"));
    CHECK_INT(replication_view_from(view, STR("local"), STR("others"), &found), 0);
    replication_view_unref(view);
    tap_lab_close(&l);
}

/* R5: refused before anything happens, and only where it matters. */
TEST(tap, while_nothing_can_be_recorded_replicated_buckets_take_no_writes)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    CHECK_INT(ask(&l, l.local, "box"), 0);
    tap_lab_fault(FAULT_REFUSE);
    tap_lab_put(&l, "k"); /* the taps did not know yet: its row stays */
    while (taps_ready(l.taps, l.local))
        sched_yield();
    CHECK_ERR(ask(&l, l.local, "box"), ERR_STORE);
    CHECK_INT(ask(&l, l.local, "another"), 0);
    CHECK_INT(tap_lab_rows(&l), 1);
    tap_lab_fault(FAULT_NONE);
    tap_lab_await_tasks(&l, "object:sync", 1);
    while (!taps_ready(l.taps, l.local))
        sched_yield();
    CHECK_INT(ask(&l, l.local, "box"), 0);
    tap_lab_close(&l);
}

TEST(tap, rows_that_are_left_are_recorded_by_the_next_start)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_fault(FAULT_REFUSE);
    tap_lab_put(&l, "one");
    tap_lab_put(&l, "two");
    tap_lab_taps_close(&l);
    CHECK_INT(tap_lab_rows(&l), 2);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, ""), 0);
    tap_lab_fault(FAULT_NONE);
    tap_lab_taps_open(&l);
    tap_lab_await_tasks(&l, "objects:sync", 1);
    tap_lab_await_no_rows(&l);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "one", "local"), 1);
    tap_lab_close(&l);
}

/* Killed between the record and the deletion of the rows. */
TEST(tap, a_row_that_was_recorded_is_not_recorded_again)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_fault(FAULT_ANSWER);
    tap_lab_put(&l, "k");
    while (taps_ready(l.taps, l.local))
        sched_yield();
    tap_lab_taps_close(&l);
    CHECK_INT(tap_lab_rows(&l), 1);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 1);
    tap_lab_fault(FAULT_NONE);
    tap_lab_taps_open(&l);
    tap_lab_await_no_rows(&l);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 1);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "object:sync"), 1);
    tap_lab_close(&l);
}

/* A kill may leave rows that were recorded; the replications that they made may have been removed
 * since. */
TEST(tap, rows_that_were_recorded_by_another_process_are_not_looked_at)
{
    struct replication_id id = {STR("alice"), STR("new"), STR("local"), STR("other"), STR_EMPTY};
    struct bucket_info info = {.name = STR("new"), .owner = STR("alice")};
    struct replication_status status;
    struct tap_lab l;
    struct reply *reply;
    struct tapped *rows;
    size_t count;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "");
    tap_lab_fault(FAULT_ANSWER); /* it is recorded, and the row stays */
    CHECK_OK(l.local->ops->create_bucket(l.local, &info, &err));
    while (taps_ready(l.taps, l.local))
        sched_yield();
    tap_lab_taps_close(&l);
    CHECK_OK(local_tap_read(l.local, &l.a, 0, 10, &rows, &count, &err));
    CHECK_INT(count, 1);
    CHECK_OK(store_call(l.stores[0], &l.a, &reply, &err, STR("GET"), STR("w:tap:local")));
    CHECK_STR(reply->str, arena_fmt(&l.a, "%llu", (unsigned long long)rows[0].number));
    CHECK_OK(replication_remove(l.replications, &id, &err));
    tap_lab_fault(FAULT_NONE);
    tap_lab_taps_open(&l);
    tap_lab_await_no_rows(&l);
    CHECK_ERR(replication_read(l.replications, &l.a, &id, &status, &err), ERR_NOT_FOUND);
    tap_lab_close(&l);
}

/* By one deletion of all. tests/crash kills between their record and the deletion. */
TEST(tap, many_rows_are_forgotten_together)
{
    struct tap_lab l;
    char key[32];

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_fault(FAULT_REFUSE);
    for (int i = 0; i < 700; i++) {
        snprintf(key, sizeof(key), "%d", i);
        tap_lab_put(&l, key);
    }
    CHECK_INT(tap_lab_rows(&l), 700);
    tap_lab_fault(FAULT_NONE);
    tap_lab_await_no_rows(&l);
    tap_lab_put(&l, "0");
    tap_lab_await_no_rows(&l);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "0", "local"), 2);
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "699", "local"), 1);
        tap_lab_taps_close(&l);
        tap_lab_taps_open(&l);
    }
    tap_lab_close(&l);
}

TEST(tap, a_flush_waits_for_the_record)
{
    struct tap_lab l;
    struct tapped *rows;
    size_t count;
    struct err err = {0};

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_fault(FAULT_REFUSE);
    tap_lab_put(&l, "k");
    CHECK_OK(local_tap_read(l.local, &l.a, 0, 1, &rows, &count, &err));
    CHECK_INT(count, 1);
    while (taps_ready(l.taps, l.local))
        sched_yield();
    CHECK_ERR(taps_flush(l.taps, l.local, rows[0].number, UINT64_MAX / 2, &err), ERR_UNAVAILABLE);
    tap_lab_fault(FAULT_NONE);
    while (!taps_ready(l.taps, l.local))
        sched_yield();
    CHECK_OK(taps_flush(l.taps, l.local, rows[0].number, UINT64_MAX / 2, &err));
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 1);
    CHECK_ERR(taps_flush(l.taps, l.local, rows[0].number + 1, clock_mono_ns(), &err), ERR_TIMEOUT);
    tap_lab_close(&l);
}

/* A bit may be set without need; then nothing is recorded. */
TEST(tap, rows_of_a_bucket_that_is_not_replicated_are_only_forgotten)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_fault(FAULT_REFUSE);
    tap_lab_put(&l, "k");
    tap_lab_taps_close(&l);
    struct replication_id id = {STR("alice"), STR("box"), STR("local"), STR("other"), STR_EMPTY};
    struct err err = {0};
    CHECK_OK(replication_remove(l.replications, &id, &err));
    tap_lab_taps_open(&l);
    tap_lab_await_no_rows(&l);
    CHECK(taps_ready(l.taps, l.local));
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 0);
    tap_lab_close(&l);
}

/* With long names and several destinations, the record of all rows that wait may be too large. */
TEST(tap, rows_that_are_too_many_for_one_record_go_by_several)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g"};
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_replicate(&l, "local", "box");
    tap_lab_fault(FAULT_REFUSE);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        tap_lab_put(&l, keys[i]);
    tap_lab_fault(FAULT_MANY);
    tap_lab_await_no_rows(&l);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", keys[i], "local"), 1);
    tap_lab_close(&l);
}

/* S5: reads go by the vector, so a change is in it when its call has returned; on both sides, and
 * not when a worker made it. */
TEST(tap, during_a_switch_a_change_is_recorded_when_it_is_answered)
{
    struct replication_id id = {STR("alice"), STR("box"), STR("other"), STR("local"), STR_EMPTY};
    struct replication_new n = {.id = id, .init_done = true};
    struct bucket *worker = NULL;
    struct reply *reply;
    struct tap_lab l;
    struct err err = {0};

    tap_lab_open(&l);
    CHECK_OK(replication_add(l.replications, &n, STR("other"), &err));
    CHECK_OK(store_call(l.stores[3], &l.a, &reply, &err, STR("HSET"), STR("p:switch:alice:box"),
                        STR("replicationID"), STR("alice:box:other:local"), STR("lastStatus"),
                        STR("in_progress"), STR("multipartTTL"), STR("3600000000000"),
                        STR("replPriority"), STR("0")));
    CHECK_OK(replication_archive(l.replications, &id, &err));
    tap_lab_await_epoch(&l);
    for (int i = 1; i <= 3; i++) {
        tap_lab_put(&l, "k");
        CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), i);
    }
    CHECK_OK(l.local->ops->open_bucket(&worker, l.local, STR_EMPTY, STR("box"), &err));
    local_untap(worker);
    lab_put(worker, &l.a, "k", STR("copied"));
    worker->ops->unref(worker);
    tap_lab_await_no_rows(&l);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "local"), 3);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, ""), 0);
    tap_lab_close(&l);
}

/* Until the policies were read, every bucket counts as replicated. */
TEST(tap, what_was_written_before_a_replication_is_not_counted_but_found)
{
    struct tap_lab l;

    tap_lab_open(&l);
    tap_lab_await_epoch(&l);
    tap_lab_put(&l, "before");
    tap_lab_replicate(&l, "local", "box");
    tap_lab_put(&l, "after");
    tap_lab_await_tasks(&l, "object:sync", 1);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "before", "local"), 0);
    lab_expect(l.box, "before", STR_EMPTY, STR("hello"));
    tap_lab_close(&l);
}
