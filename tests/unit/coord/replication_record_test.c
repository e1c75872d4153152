/* Recording of changes, over both engines (docs/replication.md R2, R3, V1). */
#include "base/json.h"
#include "unit/coord/replication_lab.h"

#include <stdio.h>

TEST_FOUR(replication_record, a_change_bumps_the_vector_and_queues_a_task_for_each_destination)
{
    struct repl_lab l;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_add(&l, "u photos main cold archive");
    CHECK_INT(repl_drain(&l, "events1"), 2); /* the first tasks */
    repl_record(&l, "main", "photos", "a.jpg");
    check_reply(l.app, "HGETALL photos:a.jpg", "[\"main\", \"1\"]");
    check_reply(l.queue, "LLEN asynq:{events1}:pending", "2");
    CHECK_INT(repl_status(&l, "u photos main backup").events, 1);
    CHECK_INT(repl_status(&l, "u photos main cold archive").events, 1);
    CHECK(repl_status(&l, "u photos main backup").emitted_ms > 0);
    repl_record(&l, "main", "other", "a.jpg"); /* nobody wants it; still a bump */
    check_reply(l.app, "HGETALL other:a.jpg", "[\"main\", \"1\"]");
    check_reply(l.queue, "LLEN asynq:{events1}:pending", "2");
    repl_close(&l);
}

/* V5 */
TEST_FOUR(replication_record, a_whole_object_bumps_its_tags_and_list_only_where_they_are_known)
{
    struct repl_lab l;
    struct change c = repl_change("main", "photos", "a");
    struct record rec = {.changes = &c, .count = 1};
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    c.whole = true;
    CHECK_OK(replication_record(l.r, &rec, &err));
    check_reply(l.app, "EXISTS photos:a:t photos:a:a", "0");
    check_reply(l.app, "HSET photos:a:t main 3 backup 7", "2");
    CHECK_OK(replication_record(l.r, &rec, &err));
    check_reply(l.app, "HGET photos:a main", "\"2\"");
    check_reply(l.app, "HGET photos:a:t main", "\"8\"");
    check_reply(l.app, "EXISTS photos:a:a", "0");
    check_reply(l.queue, "LLEN asynq:{events1}:pending", "1");
    c = repl_change("main", "photos", "b");
    c.thing.kind = THING_OBJECT_TAGS;
    CHECK_OK(replication_record(l.r, &rec, &err));
    check_reply(l.app, "HGETALL photos:b:t", "[\"main\", \"1\"]");
    check_reply(l.app, "HGETALL photos:b", "[\"main\", \"0\"]"); /* tags have never one alone */
    repl_close(&l);
}

/* Changes that are recorded at once go together, each counted. */
TEST_FOUR(replication_record, changes_that_may_go_together_share_a_task)
{
    struct repl_lab l;
    struct change c[4];
    struct record rec = {.changes = c, .count = 4, .log = STR("main"), .log_last = 4};
    struct task t;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    for (int i = 0; i < 4; i++) {
        c[i] = repl_change("main", "photos", i == 3 ? "0" : (const char *[]){"0", "1", "2"}[i]);
        c[i].together = true;
        c[i].row = (uint64_t)i + 1;
        c[i].whole = true;
    }
    CHECK_OK(replication_record(l.r, &rec, &err));
    CHECK_OK(replication_record(l.r, &rec, &err)); /* was recorded */
    CHECK_INT(repl_status(&l, "u photos main backup").events, 3);
    check_reply(l.app, "HGET photos:0 main", "\"1\"");
    CHECK(repl_take(&l, "events1", &t));
    CHECK_STR(t.type, RECORD_TOGETHER);
    CHECK(str_find(t.payload, STR("\"Bucket\":\"photos\",\"Objs\":[{\"Name\":\"0\"},"
                                  "{\"Name\":\"1\"},{\"Name\":\"2\"}]")) > 0);
    CHECK_OK(queue_done(l.tasks, &t, &err));
    CHECK_INT(repl_status(&l, "u photos main backup").events_done, 3);
    CHECK(!repl_take(&l, "events1", &t));
    for (int i = 0; i < 4; i++) /* without rows no task stands in for another */
        c[i].row = 0;
    rec.log = STR_EMPTY;
    CHECK_OK(replication_record(l.r, &rec, &err));
    CHECK_OK(replication_record(l.r, &rec, &err));
    CHECK_INT(repl_drain(&l, "events1"), 2);
    repl_close(&l);
}

/* The first time may have been recorded though nobody heard of it. */
TEST_FOUR(replication_record, a_batch_that_is_recorded_again_has_tasks_for_what_changed_since)
{
    static const char *const names[] = {"0", "1", "0", "2", "1"};
    struct repl_lab l;
    struct change c[ARRAY_SIZE(names)];
    struct record rec = {.changes = c, .log = STR("main")};
    struct task t;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        c[i] = repl_change("main", "photos", names[i]);
        c[i].together = true;
        c[i].row = i + 1;
    }
    for (size_t n = 1; n <= ARRAY_SIZE(names); n++) {
        rec.count = rec.log_last = n;
        CHECK_OK(replication_record(l.r, &rec, &err));
        CHECK(repl_take(&l, "events1", &t)); /* and has looked at what was there */
        CHECK(str_find(t.payload, arena_fmt(&l.a, "\"Name\":\"%s\"", names[n - 1])) > 0);
        CHECK_OK(queue_done(l.tasks, &t, &err));
        CHECK(!repl_take(&l, "events1", &t));
        CHECK_OK(replication_record(l.r, &rec, &err)); /* nothing is new */
        CHECK(!repl_take(&l, "events1", &t));
    }
    check_reply(l.app, "HGET photos:0 main", "\"2\"");
    check_reply(l.app, "HGET photos:1 main", "\"2\"");
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK_INT(s.events, s.events_done);
    repl_close(&l);
}

TEST_FOUR(replication_record, payloads_have_the_fields_of_chorus)
{
    struct repl_lab l;
    struct task t;
    json_t *json;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main cold archive");
    repl_drain(&l, "events1");
    repl_record(&l, "main", "photos", "a.jpg");
    CHECK(repl_take(&l, "events1", &t));
    CHECK_STR(t.type, STR("object:sync"));
    CHECK_OK(json_read(&json, t.payload, &err));
    CHECK_STR(json_get_str(json, "FromStorage", STR("")), STR("main"));
    CHECK_STR(json_get_str(json, "ToStorage", STR("")), STR("cold"));
    CHECK_STR(json_get_str(json, "ToBucket", STR("")), STR("archive"));
    CHECK_STR(json_get_str(json, "User", STR("")), STR("u"));
    CHECK(json_object_get(json, "CreatedAt") && json_object_get(json, "Object"));
    json_decref(json);
    repl_close(&l);
}

TEST_FOUR(replication_record, a_priority_is_a_queue)
{
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    CHECK_OK(replication_add(
        l.r, &(struct replication_new){.id = repl_id(&l, "u photos main backup"), .priority = 5},
        STR("main"), &err));
    repl_record(&l, "main", "photos", "a");
    check_reply(l.queue, "LLEN asynq:{events6}:pending", "1");
    repl_close(&l);
}

/* At least once: what waits has not looked yet, what runs may have. */
TEST_FOUR(replication_record, a_task_that_waits_takes_a_change_on_and_one_that_runs_does_not)
{
    struct repl_lab l;
    struct task first, second, third;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    repl_record(&l, "main", "photos", "a");
    repl_record(&l, "main", "photos", "a");
    check_reply(l.queue, "LLEN asynq:{events1}:pending", "1");
    check_reply(l.app, "HGET photos:a main", "\"2\"");
    CHECK_INT(repl_status(&l, "u photos main backup").events, 1);
    CHECK(repl_take(&l, "events1", &first));
    repl_record(&l, "main", "photos", "a"); /* while it runs */
    CHECK(repl_take(&l, "events1", &second));
    CHECK(!str_eq(first.id, second.id));
    repl_record(&l, "main", "photos", "a"); /* while both run */
    repl_record(&l, "main", "photos", "a");
    CHECK_INT(repl_status(&l, "u photos main backup").events, 3);
    CHECK_OK(queue_done(l.tasks, &first, &err));
    repl_record(&l, "main", "photos", "a"); /* a place is free again: one more is harmless */
    CHECK_INT(repl_drain(&l, "events1"), 2);
    CHECK_OK(queue_done(l.tasks, &second, &err));
    repl_record(&l, "main", "photos", "a");
    CHECK(repl_take(&l, "events1", &third));
    CHECK_OK(queue_retry(l.tasks, &third, 1000, true, STR("no"), &err));
    repl_record(&l, "main", "photos", "a"); /* does not wait for the one that failed */
    check_reply(l.queue, "LLEN asynq:{events1}:pending", "1");
    for (int i = 0; i < 10; i++) { /* nor are there more and more of them */
        struct task t;
        repl_record(&l, "main", "photos", "a");
        if (repl_take(&l, "events1", &t))
            CHECK_OK(queue_retry(l.tasks, &t, 1000, true, STR("no"), &err));
    }
    check_reply(l.queue, "ZCARD asynq:{events1}:retry", "4");
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK_INT(s.events - s.events_done, 4);
    repl_close(&l);
}

TEST_FOUR(replication_record, events_are_counted_by_whatever_ends_them)
{
    struct repl_lab l;
    struct task t;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    for (int i = 0; i < 4; i++)
        repl_record(&l, "main", "photos", (const char *[]){"a", "b", "c", "d"}[i]);
    CHECK(repl_take(&l, "events1", &t));
    CHECK_OK(queue_done(l.tasks, &t, &err));
    CHECK_ERR(queue_done(l.tasks, &t, &err), ERR_NOT_FOUND);
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK_INT(s.events_done, 1);
    CHECK(s.processed_ms > 0);
    CHECK(repl_take(&l, "events1", &t)); /* fails for good: it is still behind, and in the list */
    CHECK_OK(queue_archive(l.tasks, &t, STR("no"), &err));
    CHECK_INT(repl_status(&l, "u photos main backup").events_done, 1);
    CHECK_OK(queue_run_now(l.tasks, STR("events1"), t.id, &err));
    CHECK_INT(repl_drain(&l, "events1"), 3);
    CHECK_INT(repl_status(&l, "u photos main backup").events_done, 4);
    repl_record(&l, "main", "photos", "e");
    CHECK(repl_take(&l, "events1", &t));
    CHECK_OK(queue_archive(l.tasks, &t, STR("no"), &err));
    repl_record(&l, "main", "photos", "e"); /* takes the place of the failed one */
    CHECK_INT(repl_status(&l, "u photos main backup").events, 5);
    CHECK_OK(queue_delete(l.tasks, STR("events1"), t.id, &err));
    CHECK_INT(repl_status(&l, "u photos main backup").events_done, 5);
    repl_close(&l);
}

/* Counters belong to the replication that the task was made for. */
TEST_FOUR(replication_record, tasks_of_one_that_is_gone_count_for_nobody)
{
    struct repl_lab l;
    struct task t;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    repl_record(&l, "main", "photos", "a");
    repl_record(&l, "main", "photos", "b");
    CHECK(repl_take(&l, "events1", &t));
    repl_remove(&l, "u photos main backup");
    repl_record(&l, "main", "photos", "c");
    check_reply(l.app, "HGETALL photos:c", "[\"main\", \"1\"]");
    CHECK_OK(queue_done(l.tasks, &t, &err));
    check_reply(l.config, "KEYS p:repl*", "[]"); /* the counter did not bring it back */
    repl_add(&l, "u photos main backup");
    repl_record(&l, "main", "photos", "b"); /* the task of the old one waits, and is ours now */
    CHECK_INT(repl_status(&l, "u photos main backup").events, 1);
    CHECK_INT(repl_drain(&l, "events1"), 2); /* b and the first task */
    CHECK_INT(repl_status(&l, "u photos main backup").events_done, 1);
    repl_close(&l);
}

TEST_FOUR(replication_record, an_intent_ends_with_its_record)
{
    struct repl_lab l;
    struct change c = repl_change("main", "photos", "a");
    struct task intent = {.type = STR("intent"), .id = STR("i1"), .queue = STR("intents")}, t;
    const struct str id = STR("i1");
    struct err err = {0};

    repl_open(&l, f);
    CHECK_OK(queue_add(l.tasks, &intent, 60, &err));
    CHECK_OK(replication_record(
        l.r, &(struct record){.changes = &c, .count = 1, .intents = &id, .intent_count = 1}, &err));
    check_reply(l.queue, "EXISTS asynq:{intents}:t:i1 asynq:{intents}:scheduled", "0");
    check_reply(l.app, "HGET photos:a main", "\"1\"");
    CHECK_OK(queue_add(l.tasks, &intent, 60, &err));
    CHECK_OK(replication_record(l.r, &(struct record){.intents = &id, .intent_count = 1},
                                &err)); /* refused */
    check_reply(l.queue, "EXISTS asynq:{intents}:t:i1", "0");
    CHECK_OK(queue_add(l.tasks, &intent, 0, &err)); /* it came due: its handler has it */
    CHECK(repl_take(&l, "intents", &t));
    CHECK_OK(replication_record(
        l.r, &(struct record){.changes = &c, .count = 1, .intents = &id, .intent_count = 1}, &err));
    CHECK_OK(queue_done(l.tasks, &t, &err));
    repl_close(&l);
}

TEST_FOUR(replication_record, rows_of_an_outbox_are_recorded_once)
{
    struct change c[3] = {repl_change("main", "photos", "a"), repl_change("main", "photos", "b"),
                          repl_change("main", "photos", "c")};
    struct record rec = {.changes = c, .count = 2, .log = STR("main"), .log_last = 11};
    struct repl_lab l;
    struct err err = {0};
    uint64_t last;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    CHECK_OK(replication_recorded(l.r, STR("main"), &last, &err));
    CHECK_INT(last, 0);
    for (size_t i = 0; i < 3; i++)
        c[i].row = 10 + i;
    CHECK_OK(replication_record(l.r, &rec, &err));
    rec.count = 3, rec.log_last = 12; /* the batch overlaps what was recorded */
    CHECK_OK(replication_record(l.r, &rec, &err));
    rec.count = 2, rec.log_last = 11;
    CHECK_OK(replication_record(l.r, &rec, &err));
    check_reply(l.app, "HGET photos:a main", "\"1\"");
    check_reply(l.app, "HGET photos:b main", "\"1\"");
    check_reply(l.app, "HGET photos:c main", "\"1\"");
    CHECK_INT(repl_status(&l, "u photos main backup").events, 3);
    CHECK_OK(replication_recorded(l.r, STR("main"), &last, &err));
    CHECK_INT(last, 12);
    repl_close(&l);
}

TEST_FOUR(replication_record, a_thousand_changes_are_one_step)
{
    static struct change changes[QUEUE_BATCH_MAX];
    static char names[QUEUE_BATCH_MAX][16];
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main cold");
    for (size_t i = 0; i < QUEUE_BATCH_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "o%zu", i / 2); /* each twice */
        changes[i] = repl_change("main", "photos", names[i]);
        if (i % 2)
            changes[i].thing.kind = THING_OBJECT_TAGS, changes[i].type = STR("object:sync:tags");
    }
    CHECK_OK(replication_record(
        l.r, &(struct record){.changes = changes, .count = QUEUE_BATCH_MAX, .relaxed = true},
        &err));
    CHECK_INT(repl_status(&l, "u photos main cold").events, QUEUE_BATCH_MAX);
    check_reply(l.app, "HGET photos:o499:t main", "\"1\"");
    check_reply(l.app, "HGET photos:o499 main", "\"1\"");
    CHECK_INT(repl_drain(&l, "events1"), QUEUE_BATCH_MAX + 1);
    CHECK_INT(repl_status(&l, "u photos main cold").events_done, QUEUE_BATCH_MAX);
    repl_close(&l);
}

TEST_FOUR(replication_record, a_thing_that_changed_twice_in_a_batch_is_bumped_once)
{
    struct change c[2] = {repl_change("main", "photos", "a"), repl_change("main", "photos", "a")};
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    CHECK_OK(replication_record(l.r, &(struct record){.changes = c, .count = 2}, &err));
    check_reply(l.app, "HGET photos:a main", "\"1\"");
    CHECK_INT(repl_status(&l, "u photos main backup").events, 1);
    repl_close(&l);
}

/* The message that tells of a policy may be late; the record is not. */
TEST_FOUR(replication_record, a_view_that_is_old_records_for_the_policies_of_the_moment)
{
    struct repl_lab one, two;

    repl_open(&one, f);
    repl_open(&two, f);
    for (int i = 0; i < 20; i++) {
        repl_add(&one, "u photos main backup");
        repl_record(&two, "main", "photos", "a");
        CHECK_INT(repl_status(&one, "u photos main backup").events, 1);
        repl_remove(&one, "u photos main backup");
        repl_record(&two, "main", "photos", "b");
        repl_drain(&one, "events1");
        check_reply(one.config, "KEYS p:repl*", "[]");
    }
    repl_close(&one);
    repl_close(&two);
}

/* An id of more than 127 bytes has a length of two in the message. */
TEST_FOUR(replication_record, long_names_have_a_second_task_too)
{
    static char name[1025];
    struct repl_lab l;
    struct task first, second;
    struct err err = {0};

    memset(name, ':', sizeof(name) - 1);
    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    repl_record(&l, "main", "photos", name);
    CHECK(repl_take(&l, "events1", &first));
    repl_record(&l, "main", "photos", name);
    CHECK(repl_take(&l, "events1", &second));
    CHECK(str_starts(second.id, first.id) && str_ends(second.id, STR("|2")));
    CHECK_OK(queue_done(l.tasks, &first, &err));
    CHECK_OK(queue_done(l.tasks, &second, &err));
    CHECK_INT(repl_status(&l, "u photos main backup").events_done, 2);
    repl_close(&l);
}

TEST_FOUR(replication_record, what_is_found_late_does_not_outrank_what_was_written_elsewhere_since)
{
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "alice photos main backup -");
    struct change late = repl_change("main", "photos", "a");
    late.late = true;
    CHECK_OK(replication_record(l.r, &(struct record){.changes = &late, .count = 1}, &err));
    check_reply(l.app, "HGET photos:a main", "\"1\""); /* nobody was first */
    check_reply(l.app, "HSET photos:a backup 2", "1"); /* a switch leads writes there */
    CHECK_OK(replication_record(l.r, &(struct record){.changes = &late, .count = 1}, &err));
    check_reply(l.app, "HGET photos:a main", "\"1\"");
    struct change both[2] = {late, late}; /* nor does it hide one that was answered */
    both[1].late = false;
    CHECK_OK(replication_record(l.r, &(struct record){.changes = both, .count = 2}, &err));
    check_reply(l.app, "HGET photos:a main", "\"3\"");
    repl_close(&l);
}

/* R4: the bucket was switched away from there, and clients write elsewhere. */
TEST_FOUR(replication_record, what_is_found_late_where_the_bucket_was_is_nobody_s)
{
    struct repl_lab l;
    struct change late = repl_change("main", "photos", "a");
    struct record rec = {.changes = &late, .count = 1};
    struct replication_id id;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_drain(&l, "events1");
    id = repl_id(&l, "u photos main backup");
    CHECK_OK(replication_archive(l.r, &id, &err));
    late.late = true;
    CHECK_OK(replication_record(l.r, &rec, &err));
    CHECK_INT(repl_status(&l, "u photos main backup").events, 0);
    CHECK_INT(repl_drain(&l, "events1"), 0);
    repl_close(&l);
}
