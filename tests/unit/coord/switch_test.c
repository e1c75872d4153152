/* Switches over both engines: planning, every transition, every refusal (docs/replication.md,
 * "Switch"). */
#include "unit/coord/switch_lab.h"

#include <stdio.h>

static const struct replication *view_switch(struct repl_lab *l, const char *storage,
                                             struct replication *out)
{
    struct replication_view *view;
    struct err err = {0};

    CHECK_OK(replications_view(l->r, &view, &err));
    const struct replication *r = replication_view_switch(view, str_z(storage), STR("photos"));
    if (r)
        *out = *r; /* of its strings only those of the lab are looked at */
    replication_view_unref(view);
    return r ? out : NULL;
}

static void check_refused(struct repl_lab *l, struct switch_options o, int code, const char *text)
{
    struct err err = {0};

    CHECK_ERR(switch_try_plan(l, o, &err), code);
    if (str_find(str_z(err.text), str_z(text)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.text, text);
}

/* --- without downtime --- */

TEST_FOUR(switch, without_downtime_it_is_announced_before_the_route_changes)
{
    struct replication r;
    struct repl_lab l;
    struct task t;

    switch_open(&l, f);
    switch_planned(&l, SWITCH_LIVE);
    check_switch(&l, "not_started");
    check_history(&l, " -> not_started: planned");
    check_reply(l.config, "GET p:route:u:photos", "\"main\"");
    check_reply(l.config,
                "HMGET p:switch:u:photos replicationID multipartTTL replPriority startedAt",
                "[\"u:photos:main:backup\", \"3600000000000\", \"0\", nil]");
    CHECK(repl_take(&l, "api", &t));
    CHECK(view_switch(&l, "main", &r) && r.switching && r.announced && !r.aborted && !r.archived);
    CHECK(view_switch(&l, "backup", &r) && r.announced);
    CHECK_INT(repl_from(&l, "main", "photos"), 1);
    CHECK(switch_now(&l).epoch > 0);
    repl_close(&l);
}

TEST_FOUR(switch, without_downtime_the_route_and_the_reverse_replication_are_one_step)
{
    struct replication r;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_LIVE);
    check_reply(l.app, "SADD s:up:u:photos left:over", "1");
    CHECK_OK(switch_try_begin(&l, &err));
    check_switch(&l, "in_progress");
    check_history(&l, "not_started -> in_progress: the route leads to backup");
    check_reply(l.config, "GET p:route:u:photos", "\"backup\"");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"backup:main\"]");
    check_reply(l.config, "HMGET p:repl_st:u:photos:main:backup archived paused", "[\"1\", \"0\"]");
    check_reply(l.config, "HMGET p:repl_st:u:photos:backup:main archived paused listing_started",
                "[\"0\", \"1\", \"1\"]");
    check_reply(l.app, "EXISTS s:up:u:photos", "0");
    CHECK(view_switch(&l, "main", &r) && r.switching && r.archived && !r.announced && !r.aborted);
    CHECK(switch_now(&l).started_ms > 0);
    CHECK_INT(repl_from(&l, "main", "photos"), 1);
    CHECK_INT(repl_from(&l, "backup", "photos"), 1);
    repl_close(&l);
}

/* S7 */
TEST_FOUR(switch, without_downtime_it_is_done_when_no_event_is_left)
{
    struct replication r;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_LIVE);
    CHECK_OK(switch_try_begin(&l, &err));
    repl_record(&l, "main", "photos", "late");
    CHECK_ERR(switch_try_done(&l, &err), ERR_AGAIN);
    check_switch(&l, "in_progress");
    CHECK_INT(repl_drain(&l, "events1"), 1);
    CHECK_OK(switch_try_done(&l, &err));
    check_switch(&l, "done");
    check_history(&l, "in_progress -> done: the route leads to backup");
    CHECK(switch_now(&l).done_ms > 0);
    CHECK(!view_switch(&l, "main", &r) && !view_switch(&l, "backup", &r));
    check_reply(l.config, "EXISTS p:repl:u:photos p:repl_st:u:photos:backup:main", "0");
    check_reply(l.config, "HGET p:repl_st:u:photos:main:backup archived", "\"1\"");
    check_reply(l.queue, "HGET asynq:{api}:t:clean:photos state", "\"pending\"");
    repl_close(&l);
}

TEST_FOUR(switch, afterwards_what_was_written_goes_back_if_it_is_to_continue)
{
    struct switch_options o = SWITCH_LIVE;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    o.continue_replication = true;
    switch_planned(&l, o);
    CHECK_OK(switch_try_begin(&l, &err));
    repl_record(&l, "backup", "photos", "new"); /* waits, as its replication is paused */
    CHECK_INT(repl_status(&l, "u photos backup main").events, 1);
    CHECK_OK(switch_try_done(&l, &err));
    check_reply(l.config, "HMGET p:repl_st:u:photos:backup:main paused archived events",
                "[\"0\", \"0\", \"1\"]");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"backup:main\"]");
    repl_close(&l);
}

/* S8 */
TEST_FOUR(switch, given_up_without_downtime_it_turns_round)
{
    struct replication r;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_LIVE);
    CHECK_OK(switch_try_begin(&l, &err));
    repl_record(&l, "backup", "photos", "new");
    CHECK_OK(switch_try_abort(&l, &err));
    check_switch(&l, "in_progress");
    check_history(&l, "in_progress -> in_progress: given up: the route leads to main");
    check_reply(l.config, "GET p:route:u:photos", "\"main\"");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"main:backup\"]");
    check_reply(l.config, "HMGET p:repl_st:u:photos:main:backup archived paused archived_at",
                "[\"0\", \"0\", nil]");
    check_reply(l.config, "HMGET p:repl_st:u:photos:backup:main archived paused", "[\"1\", \"0\"]");
    struct bucket_switch s = switch_now(&l);
    CHECK_STR(s.id.from, STR("backup"));
    CHECK_STR(s.id.to, STR("main"));
    CHECK(s.aborted_ms > 0);
    CHECK(view_switch(&l, "main", &r) && r.aborted && r.switching && !r.announced);
    CHECK_ERR(switch_try_abort(&l, &err), ERR_CONFLICT);
    CHECK_ERR(switch_try_done(&l, &err), ERR_AGAIN);
    repl_record(&l, "backup", "photos", "upload");
    CHECK_INT(repl_drain(&l, "events1"), 2);
    CHECK_OK(switch_try_done(&l, &err));
    check_switch(&l, "");
    check_history(&l,
                  "in_progress -> deleted: the route leads to main again, which has everything");
    check_reply(l.config, "EXISTS p:repl_st:u:photos:backup:main", "0");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"main:backup\"]");
    CHECK(!view_switch(&l, "main", &r));
    CHECK_INT(repl_from(&l, "backup", "photos"), 0);
    repl_close(&l);
}

TEST_FOUR(switch, what_was_switched_can_be_switched_back)
{
    struct switch_options o = SWITCH_LIVE;
    struct replication_id back;
    struct repl_lab l;
    struct err err = {0};
    struct task t = {.type = STR("api:switch"), .id = STR("sw:back"), .queue = STR("api")};

    switch_open(&l, f);
    o.continue_replication = true;
    switch_planned(&l, o);
    CHECK_OK(switch_try_begin(&l, &err));
    CHECK_OK(switch_try_done(&l, &err));
    back = repl_id(&l, "u photos backup main");
    CHECK_OK(switch_plan(l.r, &back, &o, &t, STR("main"), &err));
    CHECK_OK(switch_try_begin(&l, &err));
    CHECK_OK(switch_try_done(&l, &err));
    check_reply(l.config, "GET p:route:u:photos", "\"main\"");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"main:backup\"]");
    repl_close(&l);
}

/* --- with downtime --- */

/* S1 to S3 */
TEST_FOUR(switch, with_downtime_the_bucket_is_blocked_until_it_is_done)
{
    struct replication r;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_DOWN);
    check_reply(l.config, "EXISTS p:route_block:main p:route_block:backup", "0");
    CHECK_OK(switch_try_begin(&l, &err));
    check_history(&l, "not_started -> in_progress: blocked");
    check_reply(l.config, "SMEMBERS p:route_block:main", "[\"photos\"]");
    check_reply(l.config, "SMEMBERS p:route_block:backup", "[\"photos\"]");
    CHECK(!view_switch(&l, "main", &r));
    struct replication_view *view;
    CHECK_OK(replications_view(l.r, &view, &err));
    CHECK(replication_view_blocked(view, STR("backup"), STR("photos")));
    CHECK(!replication_view_blocked(view, STR("main"), STR("photos")));
    replication_view_unref(view);
    repl_record(&l, "main", "photos", "last");
    CHECK_ERR(switch_try_step(&l, SWITCH_CHECK, &err), ERR_AGAIN);
    CHECK_INT(repl_drain(&l, "events1"), 1);
    CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
    check_switch(&l, "check_in_progress");
    check_reply(l.config, "GET p:route:u:photos", "\"main\"");
    CHECK_OK(switch_try_done(&l, &err));
    check_switch(&l, "done");
    check_reply(l.config, "EXISTS p:route_block:main p:route_block:backup p:repl:u:photos", "0");
    check_reply(l.config, "GET p:route:u:photos", "\"backup\"");
    check_reply(l.config, "HGET p:repl_st:u:photos:main:backup archived", "\"1\"");
    CHECK_INT(repl_from(&l, "main", "photos"), 0);
    repl_close(&l);
}

TEST_FOUR(switch, with_downtime_it_may_continue_in_reverse)
{
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, (struct switch_options){.continue_replication = true});
    CHECK_OK(switch_try_begin(&l, &err));
    CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
    CHECK_OK(switch_try_done(&l, &err));
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"backup:main\"]");
    struct replication_status s = repl_status(&l, "u photos backup main");
    CHECK(replication_init_done(&s) && !s.paused);
    repl_record(&l, "backup", "photos", "next");
    CHECK_INT(repl_drain(&l, "events1"), 1);
    repl_close(&l);
}

static int try_follow(struct repl_lab *l, struct err *err)
{
    struct task t = {.type = STR("api:live"), .id = STR("live:photos"), .queue = STR("api")};
    struct bucket_switch s = switch_now(l);

    return switch_follow(l->r, &s, &t, STR("uploads are open"), err);
}

static int try_unblock(struct repl_lab *l, struct err *err)
{
    struct bucket_switch s = switch_now(l);

    return switch_unblock(l->r, &s, err);
}

/* S11 */
TEST_FOUR(switch, with_downtime_it_goes_on_for_uploads_and_is_blocked_until_all_know)
{
    struct replication r;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, (struct switch_options){.uploads_ttl_ns = 7});
    CHECK_OK(switch_try_begin(&l, &err));
    CHECK_ERR(try_follow(&l, &err), ERR_CONFLICT);
    CHECK_ERR(try_unblock(&l, &err), ERR_CONFLICT);
    CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
    CHECK_OK(try_follow(&l, &err));
    check_history(&l, "check_in_progress -> in_progress: uploads are open");
    struct bucket_switch s = switch_now(&l);
    CHECK(s.blocked && switch_is_live(&s));
    CHECK_INT(s.o.multipart_ttl_ns, 7);
    check_reply(l.config, "EXISTS p:route_block:main p:route_block:backup", "2");
    check_reply(l.config, "GET p:route:u:photos", "\"backup\"");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"backup:main\"]");
    check_reply(l.queue, "HGET asynq:{api}:t:live:photos state", "\"pending\"");
    CHECK(view_switch(&l, "main", &r)); /* both sides are captured before anybody writes */
    CHECK_ERR(try_follow(&l, &err), ERR_CONFLICT);
    CHECK_ERR(switch_try_done(&l, &err), ERR_CONFLICT);
    CHECK_OK(try_unblock(&l, &err));
    CHECK_ERR(try_unblock(&l, &err), ERR_CONFLICT);
    check_reply(l.config, "EXISTS p:route_block:main p:route_block:backup", "0");
    CHECK_OK(switch_try_done(&l, &err));
    check_switch(&l, "done");
    repl_close(&l);
}

TEST_FOUR(switch, without_a_time_for_uploads_it_does_not_go_on_for_them)
{
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_DOWN);
    CHECK_OK(switch_try_begin(&l, &err));
    CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
    CHECK_ERR(try_follow(&l, &err), ERR_CONFLICT);
    CHECK_OK(switch_try_done(&l, &err));
    repl_close(&l);
}

static int try_set_ttl(struct repl_lab *l, int64_t ttl_ns, struct err *err)
{
    return switch_set_ttl(l->r, STR("u"), STR("photos"), ttl_ns, err);
}

/* S11; 0 does not make one of the other kind of it. */
TEST_FOUR(switch, how_long_uploads_are_waited_for_is_changed_at_any_time_before_it_is_done)
{
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    CHECK_ERR(try_set_ttl(&l, 9, &err), ERR_NOT_FOUND);
    switch_planned(&l, (struct switch_options){.uploads_ttl_ns = 7});
    CHECK_OK(try_set_ttl(&l, 0, &err));
    CHECK_INT(switch_now(&l).o.uploads_ttl_ns, 0);
    CHECK_OK(try_set_ttl(&l, 300000000000, &err));
    check_history(
        &l, "not_started -> not_started: open uploads are waited for 300 s from its start on");
    struct bucket_switch s = switch_now(&l);
    CHECK(!switch_is_live(&s));
    CHECK_INT(s.o.uploads_ttl_ns, 300000000000);
    CHECK_OK(switch_try_begin(&l, &err));
    CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
    CHECK_OK(try_follow(&l, &err));
    CHECK_OK(try_set_ttl(&l, 0, &err));
    s = switch_now(&l);
    CHECK(switch_is_live(&s) && s.blocked);
    CHECK_INT(s.o.multipart_ttl_ns, 1);
    CHECK_INT(s.o.uploads_ttl_ns, 1);
    CHECK_OK(try_unblock(&l, &err));
    CHECK_OK(switch_try_done(&l, &err));
    CHECK_ERR(try_set_ttl(&l, 9, &err), ERR_CONFLICT);
    CHECK_ERR(try_set_ttl(&l, -1, &err), ERR_INVALID);
    repl_close(&l);
}

TEST_FOUR(switch, an_error_takes_the_block_away_and_leaves_the_route)
{
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    for (int checked = 0; checked < 2; checked++) {
        switch_planned(&l, SWITCH_DOWN);
        CHECK_OK(switch_try_begin(&l, &err));
        if (checked)
            CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
        CHECK_OK(switch_try_step(&l, SWITCH_ERROR, &err));
        check_switch(&l, "error");
        check_reply(l.config, "EXISTS p:route_block:main p:route_block:backup", "0");
        check_reply(l.config, "GET p:route:u:photos", "\"main\"");
        check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"main:backup\"]");
    }
    check_history(&l, "check_in_progress -> error: because");
    repl_close(&l);
}

TEST_FOUR(switch, options_are_kept_as_the_seed_has_them)
{
    struct repl_lab l;

    switch_open(&l, f);
    switch_planned(&l, (struct switch_options){.on_init_done = true,
                                               .start_at_ms = 2000000000000,
                                               .max_duration_ns = 60000000000,
                                               .max_event_lag = 7,
                                               .skip_check = true,
                                               .continue_replication = true});
    check_reply(l.config,
                "HMGET p:switch:u:photos lastStatus multipartTTL onInitDone cron startAt "
                "maxDuration maxEventLag skipBucketCheck continueReplication",
                "[\"not_started\", \"0\", \"1\", nil, \"2033-05-18T03:33:20.000Z\", "
                "\"60000000000\", \"7\", \"1\", \"1\"]");
    struct bucket_switch s = switch_now(&l);
    CHECK(s.o.on_init_done && s.o.skip_check && s.o.continue_replication && !switch_is_live(&s));
    CHECK_INT(s.o.start_at_ms, 2000000000000);
    CHECK_INT(s.o.max_duration_ns, 60000000000);
    CHECK_INT(s.o.max_event_lag, 7);
    switch_planned(&l, (struct switch_options){.cron = STR("0 3 * * 6")});
    s = switch_now(&l);
    CHECK_STR(s.o.cron, STR("0 3 * * 6"));
    CHECK(!s.o.start_at_ms && !s.o.on_init_done);
    check_history(&l, "not_started -> not_started: planned again");
    repl_close(&l);
}

/* --- what is refused --- */

TEST_FOUR(switch, options_that_contradict_each_other_are_refused)
{
    struct replication_id other;
    struct switch_options live = SWITCH_LIVE;
    struct repl_lab l;
    struct err err = {0};
    struct task t = {.type = STR("x"), .queue = STR("api")};

    switch_open(&l, f);
    check_refused(&l, (struct switch_options){.cron = STR("* * * * *"), .start_at_ms = 1},
                  ERR_INVALID, "exclude");
    check_refused(&l, (struct switch_options){.max_event_lag = -1}, ERR_INVALID, "below zero");
    live.skip_check = true;
    check_refused(&l, live, ERR_INVALID, "downtime");
    live = SWITCH_LIVE;
    live.on_init_done = true;
    check_refused(&l, live, ERR_INVALID, "downtime");
    other = repl_id(&l, "u photos main backup album");
    CHECK_ERR(switch_plan(l.r, &other, &SWITCH_DOWN, &t, STR("main"), &err), ERR_CONFLICT);
    other = repl_id(&l, "u - main backup");
    CHECK_ERR(switch_plan(l.r, &other, &SWITCH_DOWN, &t, STR("main"), &err), ERR_INVALID);
    other = repl_id(&l, "u other main backup");
    CHECK_ERR(switch_plan(l.r, &other, &SWITCH_DOWN, &t, STR("main"), &err), ERR_NOT_FOUND);
    check_switch(&l, "");
    repl_close(&l);
}

/* A command that spoils it, the words of the refusal, and the one that mends it. `live`: it is only
 * in the way of what begins at once. */
static const struct {
    const char *spoil, *why, *mend;
    bool at_once;
} refusals[] = {
    {"HSET p:repl_st:u:photos:main:backup agent_url http://agent", "notifications",
     "HDEL p:repl_st:u:photos:main:backup agent_url", false},
    {"ZADD p:repl:u:photos 0 main:cold", "more than one destination",
     "ZREM p:repl:u:photos main:cold", false},
    {"SET p:route:u:photos cold", "route leads: cold", "SET p:route:u:photos main", false},
    {"SADD p:route_block:backup photos", "blocked on: backup", "DEL p:route_block:backup", false},
    {"SADD p:route_block:main photos", "blocked on: main", "DEL p:route_block:main", false},
    {"HSET p:repl_st:u:photos:main:backup archived 1", "archived",
     "HSET p:repl_st:u:photos:main:backup archived 0", false},
    {"ZREM p:repl:u:photos main:backup", "archived", "ZADD p:repl:u:photos 0 main:backup", false},
    {"HSET p:repl_st:u:photos:main:backup obj_listed 1", "initial copy",
     "HSET p:repl_st:u:photos:main:backup obj_listed 0", true},
    {"HSET p:repl_st:u:photos:main:backup obj_listed 1 obj_failed 1", "could not be copied: 1",
     "HSET p:repl_st:u:photos:main:backup obj_listed 0 obj_failed 0", true},
    {"HSET p:repl_st:u:photos:main:backup paused 1", "paused",
     "HSET p:repl_st:u:photos:main:backup paused 0", true},
};

static void play(struct repl_lab *l, const char *command)
{
    struct str argv[8], rest = str_z(command);
    struct reply *reply;
    struct err err = {0};
    size_t n = 0;

    while (n < ARRAY_SIZE(argv) && str_token(&rest, " ", &argv[n]))
        n++;
    CHECK_OK(store_command(l->config, &l->a, &reply, argv, n, &err));
    CHECK(reply->type != REPLY_ERROR);
}

TEST_FOUR(switch, what_cannot_be_switched_is_told_when_it_is_planned)
{
    struct repl_lab l;

    switch_open(&l, f);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        play(&l, refusals[i].spoil);
        check_refused(&l, SWITCH_LIVE, ERR_CONFLICT, refusals[i].why);
        check_refused(&l, SWITCH_DOWN, ERR_CONFLICT, refusals[i].why);
        check_switch(&l, "");
        struct switch_options later = {.start_at_ms = 2000000000000};
        if (!refusals[i].at_once) {
            check_refused(&l, later, ERR_CONFLICT, refusals[i].why);
        } else {
            struct err err = {0};
            switch_planned(&l, later);
            CHECK_OK(switch_try_abort(&l, &err));
        }
        play(&l, refusals[i].mend);
    }
    switch_planned(&l, SWITCH_LIVE);
    repl_close(&l);
}

TEST_FOUR(switch, what_cannot_be_switched_any_more_does_not_begin)
{
    struct repl_lab l;

    switch_open(&l, f);
    for (int live = 0; live < 2; live++) {
        struct err err = {0};
        switch_planned(&l, live ? SWITCH_LIVE : SWITCH_DOWN);
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
            play(&l, refusals[i].spoil);
            CHECK_ERR(switch_try_begin(&l, &err), ERR_CONFLICT);
            CHECK(str_find(str_z(err.text), str_z(refusals[i].why)) >= 0);
            check_switch(&l, "not_started");
            play(&l, refusals[i].mend);
        }
        CHECK_OK(switch_try_begin(&l, &err));
        if (!live)
            CHECK_OK(switch_try_abort(&l, &err));
    }
    repl_close(&l);
}

TEST_FOUR(switch, a_bucket_has_one_switch)
{
    struct replication_id other;
    struct repl_lab l;
    struct err err = {0};
    struct task t = {.type = STR("x"), .queue = STR("api")};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_DOWN);
    check_refused(&l, SWITCH_LIVE, ERR_CONFLICT, "switch that is not done");
    other = repl_id(&l, "u photos main cold");
    CHECK_ERR(switch_plan(l.r, &other, &SWITCH_DOWN, &t, STR("main"), &err), ERR_CONFLICT);
    CHECK_OK(switch_try_begin(&l, &err));
    check_refused(&l, SWITCH_DOWN, ERR_CONFLICT, "in progress");
    CHECK_OK(switch_try_step(&l, SWITCH_CHECK, &err));
    check_refused(&l, SWITCH_DOWN, ERR_CONFLICT, "in progress");
    repl_close(&l);
}

TEST_FOUR(switch, options_change_unless_it_is_in_progress)
{
    static const struct {
        enum switch_status status;
        bool may;
    } rows[] = {{SWITCH_NOT_STARTED, true},  {SWITCH_ERROR, true},  {SWITCH_SKIPPED, true},
                {SWITCH_IN_PROGRESS, false}, {SWITCH_CHECK, false}, {SWITCH_DONE, true}};
    struct repl_lab l;

    switch_open(&l, f);
    switch_planned(&l, SWITCH_DOWN);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err err = {0};
        switch_force(&l, rows[i].status);
        int code =
            switch_try_plan(&l, (struct switch_options){.max_event_lag = 1 + (int64_t)i}, &err);
        CHECK_INT(code, rows[i].may ? 0 : ERR_CONFLICT);
        struct bucket_switch s = switch_now(&l);
        CHECK_INT(s.status, rows[i].may ? SWITCH_NOT_STARTED : rows[i].status);
        CHECK((s.o.max_event_lag == 1 + (int64_t)i) == rows[i].may);
    }
    repl_close(&l);
}

/* --- transitions --- */

static int try_move(struct repl_lab *l, enum switch_status to, struct err *err)
{
    if (to == SWITCH_IN_PROGRESS)
        return switch_try_begin(l, err);
    return to == SWITCH_DONE ? switch_try_done(l, err) : switch_try_step(l, to, err);
}

/* As rows of one string each: from, then those that it may move to. */
static const char *const legal_down[SWITCH_STATUSES] = {
    [SWITCH_NOT_STARTED] = "in_progress error skipped",
    [SWITCH_IN_PROGRESS] = "check_in_progress error",
    [SWITCH_CHECK] = "done error",
    [SWITCH_DONE] = "",
    [SWITCH_ERROR] = "in_progress error skipped",
    [SWITCH_SKIPPED] = "in_progress error skipped",
};
static const char *const legal_live[SWITCH_STATUSES] = {
    [SWITCH_NOT_STARTED] = "in_progress error",
    [SWITCH_IN_PROGRESS] = "done",
    [SWITCH_CHECK] = "",
    [SWITCH_DONE] = "",
    [SWITCH_ERROR] = "error",
    [SWITCH_SKIPPED] = "error",
};

static bool has_word(const char *words, const char *word)
{
    struct str rest = str_z(words), token;

    while (str_token(&rest, " ", &token))
        if (str_eq(token, str_z(word)))
            return true;
    return false;
}

static void try_all(struct four *f, struct switch_options o, const char *const *legal)
{
    for (int from = 0; from < SWITCH_STATUSES; from++)
        for (int to = SWITCH_IN_PROGRESS; to < SWITCH_STATUSES; to++) {
            struct repl_lab l;
            struct err err = {0};
            switch_open(&l, f);
            switch_planned(&l, o);
            switch_force(&l, (enum switch_status)from);
            bool may = has_word(legal[from], switch_status_names[to]);
            int code = try_move(&l, (enum switch_status)to, &err);
            if (code != (may ? 0 : ERR_CONFLICT))
                test_fail(__FILE__, __LINE__, "%s -> %s: %d %s", switch_status_names[from],
                          switch_status_names[to], code, err.text);
            check_switch(&l, switch_status_names[may ? to : from]);
            for (int db = 0; db < STORE_DATABASES; db++)
                check_reply(f->stores[db], "FLUSHDB", "OK");
            repl_close(&l);
        }
}

TEST_FOUR(switch, with_downtime_only_legal_transitions_are_made)
{
    try_all(f, SWITCH_DOWN, legal_down);
}

TEST_FOUR(switch, without_downtime_only_legal_transitions_are_made)
{
    try_all(f, SWITCH_LIVE, legal_live);
}

TEST_FOUR(switch, a_transition_of_one_that_was_planned_anew_is_refused)
{
    struct bucket_switch old;
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_DOWN);
    old = switch_now(&l);
    CHECK_OK(switch_try_abort(&l, &err));
    CHECK_ERR(switch_begin(l.r, &old, STR("main"), &err), ERR_NOT_FOUND);
    CHECK_ERR(switch_try_abort(&l, &err), ERR_NOT_FOUND);
    switch_planned(&l, SWITCH_DOWN);
    CHECK_ERR(switch_begin(l.r, &old, STR("main"), &err), ERR_NOT_FOUND);
    CHECK_ERR(switch_step(l.r, &old, SWITCH_ERROR, STR("x"), &err), ERR_NOT_FOUND);
    check_switch(&l, "not_started");
    repl_close(&l);
}

TEST_FOUR(switch, given_up_with_downtime_or_before_it_began_only_the_metadata_goes)
{
    static const enum switch_status states[] = {SWITCH_NOT_STARTED, SWITCH_ERROR, SWITCH_SKIPPED,
                                                SWITCH_IN_PROGRESS, SWITCH_CHECK, SWITCH_DONE};
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        switch_planned(&l, SWITCH_DOWN);
        if (states[i] == SWITCH_IN_PROGRESS || states[i] == SWITCH_CHECK)
            CHECK_OK(switch_try_begin(&l, &err));
        switch_force(&l, states[i]);
        CHECK_OK(switch_try_abort(&l, &err));
        check_switch(&l, "");
        check_reply(l.config, "EXISTS p:route_block:main p:route_block:backup", "0");
        check_reply(l.config, "GET p:route:u:photos", "\"main\"");
        check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1", "[\"main:backup\"]");
    }
    switch_planned(&l, SWITCH_LIVE);
    CHECK_OK(switch_try_abort(&l, &err));
    check_history(&l, "not_started -> deleted: forgotten");
    struct replication r;
    CHECK(!view_switch(&l, "main", &r));
    repl_close(&l);
}

/* --- looking --- */

TEST_FOUR(switch, all_are_listed_by_user_and_bucket)
{
    struct bucket_switch *list;
    struct repl_lab l;
    struct err err = {0};
    size_t count = 0;

    switch_open(&l, f);
    CHECK_OK(switch_list(l.r, &l.a, &list, &count, &err));
    CHECK_INT(count, 0);
    static const char *const ids[] = {"u zebra main backup", "a:b z%x main backup"};
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct replication_id id = repl_id(&l, ids[i]);
        struct task t = {.type = STR("x"), .queue = STR("api")};
        repl_add(&l, ids[i]);
        repl_drain(&l, "events1");
        CHECK_OK(switch_plan(l.r, &id, &SWITCH_DOWN, &t, STR("main"), &err));
    }
    switch_planned(&l, SWITCH_LIVE);
    check_reply(l.config, "HSET p:switch:u:old IsDone 1 OldMain main", "2");
    CHECK_OK(switch_list(l.r, &l.a, &list, &count, &err));
    CHECK_INT(count, 3);
    CHECK_STR(list[0].id.user, STR("a:b"));
    CHECK_STR(list[0].id.bucket, STR("z%x"));
    CHECK_STR(list[1].id.bucket, STR("photos"));
    CHECK(switch_is_live(&list[1]) && !switch_is_open(&list[1]));
    CHECK_STR(list[2].id.bucket, STR("zebra"));
    repl_close(&l);
}

TEST_FOUR(switch, a_name_with_separators_is_blocked_and_routed_as_it_is)
{
    struct replication_id id;
    struct bucket_switch s;
    struct repl_lab l;
    struct err err = {0};
    struct task t = {.type = STR("x"), .id = STR("x"), .queue = STR("api")};

    switch_open(&l, f);
    repl_add(&l, "a:b z%x main new:one");
    repl_drain(&l, "events1");
    id = repl_id(&l, "a:b z%x main new:one");
    CHECK_OK(switch_plan(l.r, &id, &SWITCH_DOWN, &t, STR("main"), &err));
    CHECK_OK(switch_read(l.r, &l.a, id.user, id.bucket, &s, &err));
    CHECK_OK(switch_begin(l.r, &s, STR("main"), &err));
    check_reply(l.config, "SMEMBERS p:route_block:new%3Aone", "[\"z%x\"]");
    CHECK_OK(switch_step(l.r, &s, SWITCH_CHECK, STR(""), &err));
    CHECK_OK(switch_done(l.r, &s, &t, &err));
    check_reply(l.config, "GET p:route:a%3Ab:z%25x", "\"new:one\"");
    repl_close(&l);
}

TEST_FOUR(switch, the_history_is_cut_at_a_thousand_lines)
{
    struct repl_lab l;
    struct err err = {0};

    switch_open(&l, f);
    switch_planned(&l, SWITCH_DOWN);
    for (int i = 0; i < 1010; i++)
        play(&l, "RPUSH p:switch-hist:u:photos x");
    CHECK_OK(switch_try_step(&l, SWITCH_SKIPPED, &err));
    check_reply(l.config, "LLEN p:switch-hist:u:photos", "1000");
    check_history(&l, "not_started -> skipped: because");
    repl_close(&l);
}
