/* Changes of remote storages: intents. */
#include "base/clock.h"
#include "os/thread.h"
#include "unit/replica/tap_lab.h"

#include <sched.h>
#include <stdio.h>

enum { MANY = 2500 };

static int begin(struct tap_lab *l, const char *bucket, unsigned changes, struct capture *out)
{
    const struct change_capture *c = taps_capture(l->taps);
    struct str key = STR("k");
    struct intended i = {.storage = &l->far,
                         .bucket = str_z(bucket),
                         .user = STR("alice"),
                         .changes = changes,
                         .keys = &key,
                         .key_count = changes & THINGS_OF_OBJECT ? 1 : 0};
    struct err err = {0};

    return c->begin(c->ctx, &i, out, &err);
}

static void end(struct tap_lab *l, struct capture *c, enum outcome outcome)
{
    struct taps_stats stats;

    CHECK(taps_capture(l->taps)->end(taps_capture(l->taps)->ctx, c, outcome, NULL) == 0);
    do
        taps_stats(l->taps, &stats);
    while (stats.ended);
}

static size_t intents(struct tap_lab *l)
{
    return tap_lab_tasks(l, "intents", TASK_SCHEDULED, "intent");
}

static size_t events(struct tap_lab *l)
{
    return tap_lab_tasks(l, "events1", TASK_PENDING, "");
}

/* Runs the first scheduled intent as a worker would. */
static void run_intent(struct tap_lab *l, size_t which)
{
    struct queue_page page = {.queue = INTENT_QUEUE, .state = TASK_SCHEDULED, .limit = 10};
    struct task_info *found;
    size_t count;
    struct err err = {0};

    CHECK_OK(queue_tasks(l->queue, &l->a, &page, &found, &count, &err));
    CHECK(count > which);
    struct task_run run = {.task = &found[which].task, .arena = &l->a, .ctx = l->taps};
    CHECK_OK(taps_intent_run(&run, &err));
    CHECK_OK(queue_delete(l->queue, INTENT_QUEUE, found[which].task.id, &err));
}

static void open_lab(struct tap_lab *l)
{
    tap_lab_open(l);
    tap_lab_replicate(l, "far", "box");
}

TEST(intent, is_there_before_the_change_and_gone_with_its_record)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THINGS_OF_OBJECT, &c), 0);
    CHECK_INT(intents(&l), 1);
    CHECK_INT(events(&l), 0);
    end(&l, &c, OUTCOME_DONE);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(events(&l), 1);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 1);
    tap_lab_close(&l);
}

TEST(intent, of_a_change_that_was_refused_only_goes)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THING_OBJECT, &c), 0);
    end(&l, &c, OUTCOME_REFUSED);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(events(&l), 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 0);
    tap_lab_close(&l);
}

/* R4: recorded at once, when the intent comes due, and once more. */
TEST(intent, of_an_unknown_outcome_is_recorded_and_stays)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THING_OBJECT, &c), 0);
    end(&l, &c, OUTCOME_UNKNOWN);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 1);
    CHECK_INT(intents(&l), 1);
    run_intent(&l, 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 2);
    CHECK_INT(intents(&l), 1);
    run_intent(&l, 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 3);
    CHECK_INT(intents(&l), 0);
    tap_lab_close(&l);
}

/* weir was killed after the intent, or after the effect: the task is all that is left. */
TEST(intent, of_a_weir_that_died_is_recorded_by_its_task)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THING_OBJECT, &c), 0);
    run_intent(&l, 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 1);
    CHECK_INT(intents(&l), 1); /* the second look */
    end(&l, &c, OUTCOME_DONE); /* it was only slow: counted again, which is fine (R2) */
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 2);
    tap_lab_close(&l);
}

TEST(intent, that_cannot_be_recorded_at_the_end_is_left_to_its_task)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THING_OBJECT, &c), 0);
    tap_lab_fault(FAULT_REFUSE);
    end(&l, &c, OUTCOME_DONE);
    CHECK_INT(intents(&l), 1);
    tap_lab_fault(FAULT_NONE);
    run_intent(&l, 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 1);
    tap_lab_close(&l);
}

TEST(intent, is_not_made_for_what_is_not_replicated)
{
    struct tap_lab l;
    struct taps_stats stats;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "another", THINGS_OF_OBJECT, &c), 0);
    CHECK(!c.intent);
    end(&l, &c, OUTCOME_DONE);
    taps_stats(l.taps, &stats);
    CHECK_INT(stats.intents, 0);
    CHECK_INT(events(&l), 0);
    tap_lab_close(&l);
}

TEST(intent, of_a_new_bucket_makes_the_replications_of_its_users_policy)
{
    struct tap_lab l;
    struct capture c;
    struct reply *reply;
    struct err err = {0};

    tap_lab_open(&l);
    CHECK_OK(
        store_call(l.stores[3], &l.a, &reply, &err, STR("SET"), STR("p:route:alice"), STR("far")));
    tap_lab_replicate(&l, "far", "");
    CHECK_INT(begin(&l, "fresh", CHANGE_BUCKET_MADE, &c), 0);
    CHECK_INT(intents(&l), 1);
    end(&l, &c, OUTCOME_DONE);
    CHECK_INT(intents(&l), 0);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "bucket:create"), 1);
    CHECK_INT(tap_lab_tasks(&l, "events1", TASK_PENDING, "first"), 1);
    tap_lab_close(&l);
}

TEST(intent, is_pushed_back_while_the_request_lasts)
{
    struct queue_page page = {.queue = INTENT_QUEUE, .state = TASK_SCHEDULED, .limit = 1};
    struct tap_lab l;
    struct capture c;
    struct task_info *found;
    size_t count;
    struct err err = {0};
    int64_t first;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THING_OBJECT, &c), 0);
    CHECK_OK(queue_tasks(l.queue, &l.a, &page, &found, &count, &err));
    first = found[0].due_s;
    int64_t due = first;
    while (due == first) {
        struct arena a = {0}; /* it is asked again and again */
        sched_yield();
        CHECK_OK(queue_tasks(l.queue, &a, &page, &found, &count, &err));
        due = found[0].due_s;
        arena_release(&a);
    }
    CHECK(due > first);
    end(&l, &c, OUTCOME_REFUSED);
    tap_lab_close(&l);
}

TEST(intent, of_many_keys_is_several)
{
    struct tap_lab l;
    struct str *keys;
    struct capture c;
    struct err err = {0};

    open_lab(&l);
    keys = arena_array(&l.a, MANY, sizeof(*keys));
    for (int i = 0; i < MANY; i++)
        keys[i] = arena_fmt(&l.a, "\"%0100d\n", i);
    struct intended i = {.storage = &l.far,
                         .bucket = STR("box"),
                         .user = STR("alice"),
                         .changes = THING_OBJECT,
                         .keys = keys,
                         .key_count = MANY};
    const struct change_capture *capture = taps_capture(l.taps);
    CHECK_OK(capture->begin(capture->ctx, &i, &c, &err));
    CHECK(intents(&l) >= MANY / QUEUE_BATCH_MAX);
    run_intent(&l, 0);
    CHECK_OK(capture->end(capture->ctx, &c, OUTCOME_DONE, &err));
    CHECK_INT(intents(&l), 1); /* the second look of the first */
    struct thing thing = {.kind = THING_OBJECT, .bucket = STR("box")};
    struct place far = {.storage = STR("far")};
    for (int k = 0; k < MANY; k++) {
        struct vector v;
        thing.object = keys[k];
        CHECK_OK(version_read(l.stores[0], &l.a, &thing, &v, &err));
        CHECK(vector_at(&v, &far) >= 1);
    }
    tap_lab_close(&l);
}

/* P3: an epoch is reached once everything that began before it has ended. */
TEST(intent, of_an_older_epoch_holds_the_next_one_back)
{
    struct replication_new n = {
        .id = {STR("alice"), STR("second"), STR("far"), STR("other"), STR_EMPTY},
        .init_done = true};
    struct tap_lab l;
    struct capture before, after;
    struct err err = {0};

    open_lab(&l);
    int64_t epoch = taps_epoch(l.taps);
    CHECK_INT(begin(&l, "second", THING_OBJECT, &before), 0);
    CHECK(!before.intent);
    CHECK_OK(replication_add(l.replications, &n, STR("far"), &err));
    do { /* until changes that begin now follow the policy */
        CHECK_INT(begin(&l, "second", THING_OBJECT, &after), 0);
        bool counts = after.intent;
        end(&l, &after, OUTCOME_REFUSED);
        if (counts)
            break;
        sched_yield();
    } while (true);
    CHECK_INT(taps_epoch(l.taps), epoch);
    end(&l, &before, OUTCOME_DONE);
    tap_lab_await_epoch(&l);
    tap_lab_close(&l);
}

TEST(intent, that_cannot_be_read_is_archived)
{
    struct tap_lab l;
    struct err err = {0};
    struct task task = {.type = STR("intent"), .payload = STR("{\"Bucket\":7}"), .id = STR("x")};

    open_lab(&l);
    struct task_run run = {.task = &task, .arena = &l.a, .ctx = l.taps};
    CHECK_ERR(taps_intent_run(&run, &err), ERR_INVALID);
    task.payload = STR("what");
    CHECK_ERR(taps_intent_run(&run, &err), ERR_INVALID);
    tap_lab_close(&l);
}

/* docs/replication.md, S8 */
TEST(intent, is_seen_by_who_waits_for_outcomes)
{
    struct capture c = {0};
    struct tap_lab l;
    bool open = true;
    struct err err = {0};

    open_lab(&l);
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), 0, &open, &err));
    CHECK(!open);
    CHECK_OK(begin(&l, "box", THINGS_OF_OBJECT, &c));
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), 0, &open, &err));
    CHECK(open);
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("bag"), 0, &open, &err));
    CHECK(!open);
    CHECK_OK(taps_intents_open(l.queue, STR("near"), STR("box"), 0, &open, &err));
    CHECK(!open);
    int64_t now_s = clock_wall_ms() / MS_PER_S; /* what began long before would be due by now */
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), now_s, &open, &err));
    CHECK(!open);
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), now_s + 2 * INTENT_DELAY_S, &open,
                               &err));
    CHECK(open);
    end(&l, &c, OUTCOME_DONE);
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), 0, &open, &err));
    CHECK(!open);
    tap_lab_close(&l);
}

/* Who waits for outcomes must not go on because a part of an intent cannot be read. */
TEST(intent, whose_objects_cannot_be_read_is_open)
{
    struct task task = {.type = STR(INTENT_TYPE),
                        .id = STR("odd"),
                        .queue = INTENT_QUEUE,
                        .payload = STR("{\"Storage\":\"far\",\"Bucket\":\"box\",\"Changes\":1,"
                                       "\"Objects\":[7]}")};
    struct tap_lab l;
    bool open = false;
    struct err err = {0};

    open_lab(&l);
    CHECK_OK(queue_add(l.queue, &task, INTENT_DELAY_S, &err));
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("box"), 0, &open, &err));
    CHECK(open);
    CHECK_OK(taps_intents_open(l.queue, STR("far"), STR("bag"), 0, &open, &err));
    CHECK(!open);
    tap_lab_close(&l);
}

/* --- many at once --- */

enum { REQUESTERS = 8, EACH = 40 };

struct requester {
    struct thread thread;
    struct tap_lab *l;
    unsigned index;
};

static void request_main(void *ctx)
{
    struct requester *r = ctx;
    const struct change_capture *c = taps_capture(r->l->taps);
    char name[32];

    for (unsigned n = 0; n < EACH; n++) {
        snprintf(name, sizeof(name), "%u/%u", r->index, n);
        struct str key = str_z(name);
        struct intended i = {.storage = &r->l->far,
                             .bucket = STR("box"),
                             .user = STR("alice"),
                             .changes = THINGS_OF_OBJECT,
                             .keys = &key,
                             .key_count = 1};
        struct capture capture;
        struct err err = {0};
        CHECK_OK(c->begin(c->ctx, &i, &capture, &err));
        enum outcome outcome = n % 4 == 3 ? OUTCOME_REFUSED : OUTCOME_DONE;
        CHECK_OK(c->end(c->ctx, &capture, outcome, &err));
    }
}

static void check_requests_at_once(bool journal)
{
    struct requester all[REQUESTERS];
    struct tap_lab l;
    struct taps_stats stats;
    struct err err = {0};
    char name[32];

    open_lab(&l);
    if (journal)
        tap_lab_with_journal(&l);
    for (unsigned i = 0; i < REQUESTERS; i++) {
        all[i] = (struct requester){.l = &l, .index = i};
        CHECK_OK(thread_start(&all[i].thread, "request", 0, request_main, &all[i], &err));
    }
    for (unsigned i = 0; i < REQUESTERS; i++)
        thread_join(&all[i].thread);
    do
        taps_stats(l.taps, &stats);
    while (stats.ended);
    CHECK_INT(stats.open, 0);
    CHECK(stats.intents <= REQUESTERS * EACH);
    CHECK_INT(intents(&l), 0);
    for (unsigned i = 0; i < REQUESTERS; i++) {
        for (unsigned n = 0; n < EACH; n++) {
            snprintf(name, sizeof(name), "%u/%u", i, n);
            CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", name, "far"), n % 4 != 3);
        }
    }
    tap_lab_close(&l);
}

TEST(intent, shared_by_requests_that_begin_at_once_each_is_recorded)
{
    check_requests_at_once(false);
}

TEST(intent, of_the_journal_each_is_recorded_of_requests_that_begin_at_once)
{
    check_requests_at_once(true);
}

/* A change that cannot be recorded is left to its intent, for all that share it. */
TEST(intent, that_a_thread_could_not_record_stays)
{
    struct tap_lab l;
    struct capture c;

    open_lab(&l);
    CHECK_INT(begin(&l, "box", THINGS_OF_OBJECT, &c), 0);
    tap_lab_fault(FAULT_REFUSE);
    end(&l, &c, OUTCOME_DONE);
    tap_lab_fault(FAULT_NONE);
    CHECK_INT(intents(&l), 1);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 0);
    run_intent(&l, 0);
    CHECK_INT(tap_lab_version(&l, THING_OBJECT, "box", "k", "far"), 1);
    tap_lab_close(&l);
}
