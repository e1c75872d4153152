/* Policies and their view, over both engines (docs/replication.md P1 to P5). */
#include "base/clock.h"
#include "unit/coord/replication_lab.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static void check_refused(struct repl_lab *l, const char *words, int code, const char *text)
{
    struct err err = {0};

    CHECK_ERR(repl_try_add(l, words, &err), code);
    if (text && str_find(str_z(err.text), str_z(text)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.text, text);
}

TEST_FOUR(replication_policy, making_one_is_the_seeds_four_steps)
{
    struct repl_lab l;

    repl_open(&l, f);
    int64_t before = clock_wall_ms();
    repl_add(&l, "u photos main backup");
    check_reply(l.config, "ZRANGE p:repl:u:photos 0 -1 WITHSCORES", "[\"main:backup\", \"0\"]");
    check_reply(l.config,
                "HMGET p:repl_st:u:photos:main:backup paused archived obj_listed obj_done "
                "obj_failed bytes_listed bytes_done events events_done listing_started listings",
                "[\"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"1\"]");
    check_reply(l.config, "HLEN p:repl_st:u:photos:main:backup", "12");
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK(s.created_ms >= before - 1000 && s.created_ms <= clock_wall_ms() + 1000);
    struct task t;
    CHECK(repl_take(&l, "events1", &t));
    CHECK_STR(t.type, STR("bucket:create"));
    CHECK_INT(repl_from(&l, "main", "photos"), 1);
    repl_close(&l);
}

TEST_FOUR(replication_policy, times_are_rfc_3339_with_nanoseconds)
{
    struct repl_lab l;
    struct reply *reply;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    CHECK_OK(store_call(l.config, &l.a, &reply, &err, STR("HGET"),
                        STR("p:repl_st:u:photos:main:backup"), STR("created_at")));
    CHECK_INT(reply->str.len, 30); /* 2006-01-02T15:04:05.000000000Z */
    CHECK(reply->str.p[10] == 'T' && reply->str.p[19] == '.' && reply->str.p[29] == 'Z');
    repl_close(&l);
}

TEST_FOUR(replication_policy, the_source_is_where_the_route_leads)
{
    struct replication_new n;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    n = (struct replication_new){.id = repl_id(&l, "u photos other backup")};
    CHECK_ERR(replication_add(l.r, &n, STR("main"), &err), ERR_CONFLICT);
    check_reply(l.config, "SET p:route:u other", "OK");
    CHECK_OK(replication_add(l.r, &n, STR("main"), &err));
    check_reply(l.config, "SET p:route:u:docs main", "OK");
    n.id.bucket = STR("docs");
    CHECK_ERR(replication_add(l.r, &n, STR("other"), &err), ERR_CONFLICT);
    check_reply(l.config, "EXISTS p:repl:u:docs p:repl_st:u:docs:other:backup", "0");
    repl_close(&l);
}

TEST_FOUR(replication_policy, one_that_is_there_is_left_alone)
{
    struct repl_lab l;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    check_reply(l.config, "HSET p:repl_st:u:photos:main:backup events 7", "0");
    check_refused(&l, "u photos main backup", ERR_EXISTS, NULL);
    check_refused(&l, "u photos main backup photos", ERR_EXISTS, NULL);
    CHECK_INT(repl_status(&l, "u photos main backup").events, 7);
    check_reply(l.queue, "LLEN asynq:{events1}:pending", "1");
    repl_close(&l);
}

TEST_FOUR(replication_policy, a_bucket_has_one_source_and_many_destinations)
{
    struct repl_lab l;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    repl_add(&l, "u photos main cold");
    repl_add(&l, "u photos main cold archive");
    check_refused(&l, "other photos main backup", ERR_CONFLICT, "in use for something else");
    CHECK_INT(repl_from(&l, "main", "photos"), 3);
    check_refused(&l, "u photos backup cold", ERR_CONFLICT, "the route leads: main");
    check_refused(&l, "u photos main main", ERR_INVALID, NULL);
    check_refused(&l, "u photos main main photos", ERR_INVALID, NULL);
    repl_add(&l, "u photos main main copy");
    repl_close(&l);
}

/* P4 */
TEST_FOUR(replication_policy, a_destination_is_no_source_and_is_taken_once)
{
    struct repl_lab l;

    repl_open(&l, f);
    repl_add(&l, "u photos main cold archive");
    check_reply(l.config, "SMEMBERS p:route_block:cold", "[\"archive\"]");
    check_refused(&l, "u archive cold backup", ERR_CONFLICT, "blocked");
    check_refused(&l, "u other main cold archive", ERR_CONFLICT, "in use for something else");
    check_refused(&l, "x archive main cold", ERR_CONFLICT, "in use for something else");
    repl_add(&l, "u docs main backup");
    check_refused(&l, "u photos main backup docs", ERR_CONFLICT, "in use for something else");
    check_refused(&l, "u photos main main docs", ERR_CONFLICT, "in use for something else");
    check_refused(&l, "u docs backup main", ERR_CONFLICT, "the route leads: main");
    check_reply(l.config, "KEYS p:route_block:*", "[\"p:route_block:cold\"]");
    repl_close(&l);
}

TEST_FOUR(replication_policy, a_switch_that_is_not_done_holds_the_bucket)
{
    struct replication_id id;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    id = repl_id(&l, "u photos main backup");
    check_reply(l.config, "HSET p:switch:u:photos lastStatus not_started", "1");
    check_refused(&l, "u photos main cold", ERR_CONFLICT, "switch");
    CHECK_ERR(replication_remove(l.r, &id, &err), ERR_CONFLICT);
    check_reply(l.config, "HSET p:switch:u:photos lastStatus done", "0");
    repl_add(&l, "u photos main cold");
    CHECK_OK(replication_remove(l.r, &id, &err));
    repl_close(&l);
}

/* P5 */
TEST_FOUR(replication_policy, removing_leaves_nothing_of_it)
{
    struct replication_id id;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main cold archive");
    repl_remove(&l, "u photos main cold archive");
    check_reply(l.config, "KEYS p:repl*", "[]");
    CHECK_INT(repl_from(&l, "main", "photos"), 0);
    id = repl_id(&l, "u photos main cold archive");
    CHECK_ERR(replication_remove(l.r, &id, &err), ERR_NOT_FOUND);
    repl_add(&l, "u photos main cold archive");
    repl_close(&l);
}

static void count_message(void *ctx, struct str channel, struct str message)
{
    if (channel.p)
        atomic_fetch_add((_Atomic(int) *)ctx, 1);
}

TEST_FOUR(replication_policy, blocks_are_told_to_the_routes)
{
    struct store_subscription *sub;
    _Atomic(int) told = 0;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    CHECK_OK(store_subscribe(&sub, l.config, STR("weir:routes"), count_message, &told, &err));
    atomic_store(&told, 0);
    repl_add(&l, "u photos main cold archive");
    while (atomic_load(&told) == 0)
        sched_yield();
    store_unsubscribe(sub);
    repl_close(&l);
}

TEST_FOUR(replication_policy, pausing_and_archiving_are_seen_in_status_and_view)
{
    const struct replication *const *list;
    struct replication_view *view;
    struct replication_id id;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    id = repl_id(&l, "u photos main backup");
    CHECK_OK(replication_pause(l.r, &id, true, &err));
    CHECK(repl_status(&l, "u photos main backup").paused);
    CHECK_OK(replications_view(l.r, &view, &err));
    CHECK_INT(replication_view_all(view, &list), 1);
    CHECK(list[0]->paused);
    int64_t epoch = replication_view_epoch(view);
    replication_view_unref(view);
    CHECK_OK(replication_pause(l.r, &id, false, &err));
    const char *text;
    struct arena kept = {0};
    CHECK_INT(ask(l.config, "GET w:epoch", &text), 0);
    struct str was = arena_str(&kept, str_z(text));
    CHECK_OK(replication_pause(l.r, &id, false, &err)); /* changes nothing */
    CHECK_INT(ask(l.config, "GET w:epoch", &text), 0);
    CHECK_STR(str_z(text), was);
    arena_release(&kept);
    CHECK_OK(replication_archive(l.r, &id, &err));
    struct replication_status s = repl_status(&l, "u photos main backup");
    CHECK(s.archived && !s.paused && s.archived_ms > 0);
    CHECK_INT(repl_from(&l, "main", "photos"), 0);
    check_reply(l.config, "EXISTS p:repl:u:photos", "0");
    CHECK_OK(replications_view(l.r, &view, &err));
    CHECK(replication_view_epoch(view) > epoch);
    CHECK_INT(replication_view_all(view, &list), 1);
    CHECK(list[0]->archived && !list[0]->switching);
    replication_view_unref(view);
    /* The reverse is no cycle once the bucket is there, and the archived one may be made again. */
    check_reply(l.config, "SET p:route:u:photos backup", "OK");
    check_refused(&l, "u photos backup main", ERR_CONFLICT, "only a copy of it on: backup");
    check_reply(l.config, "HDEL w:copies backup:photos", "1");
    CHECK_OK(replication_add(
        l.r,
        &(struct replication_new){.id = repl_id(&l, "u photos backup main"), .init_done = true},
        STR("backup"), &err));
    s = repl_status(&l, "u photos backup main");
    CHECK(replication_init_done(&s));
    repl_remove(&l, "u photos backup main");
    check_reply(l.config, "SET p:route:u:photos main", "OK");
    check_reply(l.config, "DEL w:copies", "1");
    repl_add(&l, "u photos main backup");
    CHECK(!repl_status(&l, "u photos main backup").archived);
    repl_close(&l);
}

TEST_FOUR(replication_policy, an_archived_one_keeps_its_block_until_it_is_removed)
{
    struct replication_id id;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main cold archive");
    id = repl_id(&l, "u photos main cold archive");
    CHECK_OK(replication_archive(l.r, &id, &err));
    check_refused(&l, "u docs main cold archive", ERR_CONFLICT, "in use for something else");
    repl_add(&l, "u photos main cold archive");
    CHECK_OK(replication_archive(l.r, &id, &err));
    check_reply(l.config, "SMEMBERS p:route_block:cold", "[\"archive\"]");
    repl_remove(&l, "u photos main cold archive");
    check_reply(l.config, "KEYS p:repl*", "[]");
    repl_close(&l);
}

TEST_FOUR(replication_policy, what_is_not_there_cannot_be_changed)
{
    struct replication_id id, user;
    struct replication_status s;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    id = repl_id(&l, "u photos main backup");
    user = repl_id(&l, "u - main backup");
    CHECK_ERR(replication_pause(l.r, &id, true, &err), ERR_NOT_FOUND);
    CHECK_ERR(replication_archive(l.r, &id, &err), ERR_NOT_FOUND);
    CHECK_ERR(replication_remove(l.r, &id, &err), ERR_NOT_FOUND);
    CHECK_ERR(replication_read(l.r, &l.a, &id, &s, &err), ERR_NOT_FOUND);
    CHECK_ERR(replication_pause(l.r, &user, true, &err), ERR_INVALID);
    CHECK_ERR(
        replication_add(l.r, &(struct replication_new){.id = id, .priority = 6}, STR("main"), &err),
        ERR_INVALID);
    check_reply(l.config, "DBSIZE", "0");
    repl_close(&l);
}

TEST_FOUR(replication_policy, a_user_has_policies_for_buckets_to_come)
{
    const struct replication *const *list;
    struct replication_view *view;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    CHECK_OK(replication_add(
        l.r, &(struct replication_new){.id = repl_id(&l, "u - main backup"), .priority = 5},
        STR("main"), &err));
    repl_add(&l, "u - main cold");
    repl_add(&l, "v - main cold");
    check_refused(&l, "u - main cold", ERR_EXISTS, NULL);
    check_refused(&l, "u - cold main", ERR_CONFLICT, "another source");
    check_refused(&l, "u - main cold x", ERR_INVALID, NULL);
    check_reply(l.config, "ZRANGE p:repl:u 0 -1 WITHSCORES",
                "[\"main:cold\", \"0\", \"main:backup\", \"5\"]");
    check_reply(l.config, "KEYS p:repl_st:*", "[]");
    CHECK_OK(replications_view(l.r, &view, &err));
    CHECK_INT(replication_view_user(view, STR("u"), STR("main"), &list), 2);
    CHECK_STR(list[0]->id.to, STR("backup"));
    CHECK_INT(list[0]->priority, 5);
    CHECK_INT(replication_view_user(view, STR("u"), STR("cold"), &list), 0);
    CHECK_INT(replication_view_from(view, STR("main"), STR(""), &list), 0);
    replication_view_unref(view);
    repl_remove(&l, "u - main backup");
    check_reply(l.config, "ZCARD p:repl:u", "1");
    repl_close(&l);
}

TEST_FOUR(replication_policy, names_with_colons_and_percents_do_not_collide)
{
    const struct replication *const *list;
    struct replication_view *view;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "a:b c%d main x:y z%");
    check_reply(l.config, "ZRANGE p:repl:a%3Ab:c%25d 0 -1", "[\"main:x%3Ay:z%25\"]");
    check_reply(l.config, "EXISTS p:repl_st:a%3Ab:c%25d:main:x%3Ay:z%25", "1");
    check_reply(l.config, "SMEMBERS p:route_block:x%3Ay", "[\"z%\"]");
    CHECK_OK(replications_view(l.r, &view, &err));
    CHECK_INT(replication_view_from(view, STR("main"), STR("c%d"), &list), 1);
    CHECK_STR(list[0]->id.user, STR("a:b"));
    CHECK_STR(list[0]->id.to, STR("x:y"));
    CHECK_STR(list[0]->id.to_bucket, STR("z%"));
    replication_view_unref(view);
    repl_remove(&l, "a:b c%d main x:y z%");
    check_reply(l.config, "KEYS p:repl*", "[]");
    repl_close(&l);
}

TEST_FOUR(replication_policy, a_change_by_another_process_is_seen)
{
    struct repl_lab one, two;

    repl_open(&one, f);
    repl_open(&two, f);
    repl_add(&one, "u photos main backup");
    while (repl_from(&two, "main", "photos") != 1)
        sched_yield();
    repl_remove(&two, "u photos main backup");
    while (repl_from(&one, "main", "photos") != 0)
        sched_yield();
    repl_close(&one);
    repl_close(&two);
}

/* S4: what is still written to the old side of a switch is copied over. */
TEST_FOUR(replication_policy, a_switch_without_downtime_is_seen_in_the_view)
{
    const struct replication *const *list;
    struct replication_view *view;
    struct replication_id id;
    struct repl_lab l;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    id = repl_id(&l, "u photos main backup");
    check_reply(l.config,
                "HSET p:switch:u:photos replicationID u:photos:main:backup lastStatus in_progress "
                "multipartTTL 3600000000000 replPriority 3",
                "4");
    CHECK_OK(replication_archive(l.r, &id, &err));
    CHECK_OK(replications_view(l.r, &view, &err));
    CHECK_INT(replication_view_from(view, STR("main"), STR("photos"), &list), 1);
    CHECK(list[0]->switching && list[0]->archived);
    CHECK_INT(list[0]->priority, 3);
    CHECK(replication_view_switch(view, STR("main"), STR("photos")) == list[0]);
    CHECK(replication_view_switch(view, STR("backup"), STR("photos")) == list[0]);
    CHECK(!replication_view_switch(view, STR("cold"), STR("photos")));
    CHECK_INT(replication_view_from(view, STR("backup"), STR("photos"), &list), 0);
    replication_view_unref(view);
    repl_record(&l, "main", "photos", "late");
    repl_record(&l, "backup", "photos", "new");
    check_reply(l.queue, "LLEN asynq:{events4}:pending", "1");
    check_reply(l.app, "HGETALL photos:new", "[\"backup\", \"1\"]");
    repl_close(&l);
}

TEST_FOUR(replication_policy, a_flushed_store_is_noticed)
{
    struct repl_lab l;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup");
    check_reply(l.config, "FLUSHDB", "OK");
    repl_record(&l, "main", "photos", "a"); /* its epoch is none any more */
    CHECK_INT(repl_from(&l, "main", "photos"), 0);
    check_reply(l.queue, "EXISTS asynq:{events1}:t:object:sync|u:photos:main:backup|photos:a", "0");
    repl_add(&l, "u photos main cold");
    CHECK_INT(repl_from(&l, "main", "photos"), 1);
    repl_close(&l);
}

TEST_FOUR(replication_policy, many_in_a_row_are_seen_a_moment_later)
{
    struct repl_lab l;
    struct err err = {0};
    char name[16];

    repl_open(&l, f);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        struct replication_new n = {
            .id = {STR("u"), str_z(name), STR("main"), STR("backup"), STR("")}, .later = true};
        CHECK_OK(replication_add(l.r, &n, STR("main"), &err));
    }
    while (repl_from(&l, "main", "b99") != 1)
        sched_yield();
    CHECK_INT(repl_from(&l, "main", "b0"), 1);
    repl_close(&l);
}

/* --- what is read by and by is what is read at once --- */

static void print_view(struct repl_lab *l, struct buf *out)
{
    const struct replication *const *list;
    struct replication_view *view;
    struct err err = {0};

    CHECK_OK(replications_view(l->r, &view, &err));
    size_t n = replication_view_all(view, &list);
    for (size_t i = 0; i < n; i++) {
        const struct replication_id *id = &list[i]->id;
        const struct replication *const *from;
        buf_appendf(out,
                    STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT
                            " priority %d paused %d archived %d switching %d of %zu users %zu\n",
                    STR_ARG(id->user), STR_ARG(id->bucket), STR_ARG(id->from), STR_ARG(id->to),
                    STR_ARG(id->to_bucket), list[i]->priority, list[i]->paused, list[i]->archived,
                    list[i]->switching, replication_view_from(view, id->from, id->bucket, &from),
                    replication_view_user(view, id->user, id->from, &from));
    }
    replication_view_unref(view);
}

/* Any change; most make sense only now and then. */
static void change_something(struct repl_lab *l, uint64_t seed)
{
    static const char *const users[] = {"u", "v:"}, *const buckets[] = {"-", "photos", "docs"},
                             *const to[] = {"backup", "cold", "cold x%"};
    char words[64];
    struct err err = {0};

    snprintf(words, sizeof(words), "%s %s main %s", users[seed % 2], buckets[seed / 2 % 3],
             to[seed / 6 % 3]);
    struct replication_id id = repl_id(l, words);
    switch (seed / 18 % 5) {
    case 0:
    case 1:
        (void)!replication_add(
            l->r, &(struct replication_new){.id = id, .priority = (int)(seed / 90 % 6)},
            STR("main"), &err);
        break;
    case 2:
        (void)!replication_remove(l->r, &id, &err);
        break;
    case 3:
        (void)!replication_pause(l->r, &id, seed / 90 % 2, &err);
        break;
    case 4:
        (void)!replication_archive(l->r, &id, &err);
        break;
    }
    CHECK(err_kind(err.code ? err.code : ERR_EXISTS) == ERR_KIND_EXPECTED);
}

TEST_FOUR(replication_policy, a_view_that_was_kept_new_is_that_of_the_store)
{
    struct repl_lab kept, fresh;
    uint64_t seed = 7;

    repl_open(&kept, f);
    for (int round = 0; round < 12; round++) {
        struct buf one = {0}, two = {0};
        for (int i = 0; i < 12; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            change_something(&kept, seed >> 33);
        }
        repl_open(&fresh, f);
        print_view(&kept, &one);
        print_view(&fresh, &two);
        CHECK_STR(buf_str(&one), buf_str(&two));
        repl_close(&fresh);
        buf_release(&one);
        buf_release(&two);
    }
    repl_close(&kept);
}
