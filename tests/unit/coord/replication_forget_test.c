/* What is left of replications that are gone, over both engines: P7 and V3. */
#include "unit/coord/replication_lab.h"

static int try_end(struct repl_lab *l, const char *words, struct err *err)
{
    struct replication_end e = {
        .id = repl_id(l, words),
        .number = 2,
        .route = STR("main"),
        .then = {{.type = STR("clean"), .id = STR("clean"), .queue = STR("api")},
                 {.type = STR("look"), .id = STR("look"), .queue = STR("api")}},
    };

    *err = (struct err){0};
    return replication_end(l->r, &e, err);
}

TEST_FOUR(replication_end, it_goes_in_one_step_with_what_comes_after)
{
    struct repl_lab l;
    struct err err;

    repl_open(&l, f);
    repl_add(&l, "u - main backup -");
    repl_add(&l, "u photos main backup -");
    check_reply(l.app, "HSET b:photos main 2 backup 2", "2");
    CHECK_OK(try_end(&l, "u photos main backup -", &err));
    check_reply(l.config, "EXISTS p:repl:u:photos p:repl_st:u:photos:main:backup", "0");
    check_reply(l.config, "ZRANGE w:forget 0 -1", "[\"photos\"]");
    check_reply(l.config, "EXISTS w:copies p:route:u:photos", "0");
    check_reply(l.queue, "LRANGE asynq:{api}:pending 0 -1", "[\"look\", \"clean\"]");
    CHECK_INT(repl_from(&l, "main", "photos"), 0);
    CHECK_ERR(try_end(&l, "u photos main backup -", &err), ERR_CONFLICT);
    repl_add(&l, "u photos main backup -"); /* of a bucket that is made again */
    CHECK_INT(repl_from(&l, "main", "photos"), 1);
    repl_close(&l);
}

/* What keeps it, each alone: the command, before and after. */
TEST_FOUR(replication_end, it_stays_where_something_counts_on_it)
{
    static const char *const rows[][3] = {
        {"ZREM p:repl:u main:backup", "1", "ZADD p:repl:u 0 main:backup"},
        {"ZADD p:repl:u XX 3 main:backup", "0", "ZADD p:repl:u XX 0 main:backup"},
        {"HSET p:repl_st:u:photos:main:backup agent_url http://x", "1",
         "HDEL p:repl_st:u:photos:main:backup agent_url"},
        {"HSET p:switch:u:photos lastStatus not_started", "1", "DEL p:switch:u:photos"},
    };
    struct repl_lab l;
    const char *got;
    struct err err;

    repl_open(&l, f);
    repl_add(&l, "u - main backup -");
    repl_add(&l, "u photos main backup -");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_reply(l.config, rows[i][0], rows[i][1]);
        CHECK_ERR(try_end(&l, "u photos main backup -", &err), ERR_CONFLICT);
        CHECK_INT(ask(l.config, rows[i][2], &got), 0);
    }
    CHECK_ERR(try_end(&l, "u photos main backup -", &err), ERR_CONFLICT);
    check_reply(l.app, "HSET b:photos main 3 backup 2", "2"); /* made again, and recorded */
    CHECK_ERR(try_end(&l, "u photos main backup -", &err), ERR_CONFLICT);
    check_reply(l.app, "HSET b:photos main 2", "0");
    CHECK_OK(try_end(&l, "u photos main backup -", &err));
    repl_add(&l, "u photos main backup copy");
    CHECK_ERR(try_end(&l, "u photos main backup copy", &err), ERR_CONFLICT);
    repl_close(&l);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static size_t forget(struct repl_lab *l)
{
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(replication_forget_unused(l->r, never, NULL, &count, &err));
    return count;
}

TEST_FOUR(replication_forget, vectors_go_a_day_after_the_last_replication)
{
    struct repl_lab l;
    struct err err = {0};
    bool removed = true;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup -");
    repl_add(&l, "u photos main cold -");
    CHECK_OK(replication_any_removed(l.r, STR("photos"), &removed, &err));
    CHECK(!removed);
    for (int i = 0; i < 1200; i++)
        repl_record(&l, "main", "photos", arena_z(&l.a, arena_fmt(&l.a, "k:%d", i)));
    check_reply(l.app, "HSET b:photos main 1", "1");
    check_reply(l.app, "HSET b:photos:t main 1", "1");
    check_reply(l.app, "HSET photos2:k main 1", "1");
    check_reply(l.app, "SET w:tap:main 7", "OK");
    repl_remove(&l, "u photos main cold -");
    CHECK_OK(replication_any_removed(l.r, STR("photos"), &removed, &err));
    CHECK(removed);
    CHECK_INT(forget(&l), 0);
    check_reply(l.config, "ZADD w:forget XX 1 photos", "0"); /* a day goes by */
    CHECK_INT(forget(&l), 0);                                /* one is left */
    check_reply(l.app, "EXISTS photos:k%3A7 b:photos", "2");
    check_reply(l.config, "ZCOUNT w:forget 2 +inf", "1"); /* and looked at again another day */
    repl_remove(&l, "u photos main backup -");
    CHECK_INT(forget(&l), 0);
    check_reply(l.config, "ZADD w:forget XX 1 photos", "0");
    CHECK_INT(forget(&l), 1);
    check_reply(l.app, "DBSIZE", "2");
    check_reply(l.app, "EXISTS photos2:k w:tap:main", "2");
    check_reply(l.config, "EXISTS w:forget", "0");
    repl_close(&l);
}

TEST_FOUR(replication_forget, of_another_user_with_a_bucket_of_the_name_they_stay)
{
    struct repl_lab l;

    repl_open(&l, f);
    repl_add(&l, "u photos main backup -");
    repl_add(&l, "v photos far backup2 -");
    repl_record(&l, "far", "photos", "k");
    repl_remove(&l, "u photos main backup -");
    check_reply(l.config, "ZADD w:forget XX 1 photos", "0");
    CHECK_INT(forget(&l), 0);
    check_reply(l.app, "HGET photos:k far", "\"1\"");
    repl_close(&l);
}
