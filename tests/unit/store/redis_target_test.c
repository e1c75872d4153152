/* The redis url: every form, and what is refused. */
#include "store/redis_int.h"
#include "unit/test.h"

static void check_target(const char *url, const char *want)
{
    struct redis_target t;
    struct buf got = {0};
    struct err err = {0};

    CHECK_OK(redis_target_parse(&t, str_z(url), 3, &err));
    buf_appendf(&got, "%s:%u %s %s:%s %d%s", t.host ? t.host : "-", t.port, t.path ? t.path : "-",
                t.user ? t.user : "-", t.password ? t.password : "-", t.database,
                t.tls ? " tls" : "");
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
    redis_target_release(&t);
}

TEST(redis_target, every_part_of_the_url_is_read)
{
    check_target("redis://localhost", "localhost:6379 - -:- 3");
    check_target("redis://localhost:7000/5", "localhost:7000 - -:- 5");
    check_target("redis://localhost/", "localhost:6379 - -:- 3");
    check_target("redis://localhost?db=7", "localhost:6379 - -:- 7");
    check_target("rediss://h:1/0", "h:1 - -:- 0 tls");
    check_target("redis://:secret@h", "h:6379 - -:secret 3");
    check_target("redis://alice:p%40ss%3A@h/2", "h:6379 - alice:p@ss: 2");
    check_target("redis://[::1]:7000", "::1:7000 - -:- 3");
    check_target("unix:///run/redis.sock", "-:0 /run/redis.sock -:- 3");
    check_target("unix:///run/a%20b?db=1", "-:0 /run/a b -:- 1");
    check_target("unix://alice:pw@/run/r.sock?db=1", "-:0 /run/r.sock alice:pw 1");
}

TEST(redis_target, a_wrong_url_is_refused_without_showing_its_password)
{
    static const char *const wrong[] = {
        "",
        "localhost:6379",
        "http://:hunter2@localhost",
        "redis://",
        "redis://:hunter2@h/x",
        "redis://:hunter2@h/-1",
        "redis://:hunter2@h/99999999",
        "redis://:hunter2@h?database=1",
        "redis://alice@h",
        "redis://:hunter2%00@h",
        "redis://:hunter2%zz@h",
        "redis://h:70000",
        "unix://run/redis.sock",
        "unix://",
        "unix:///r?db=x",
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct redis_target t;
        struct err err = {0};
        int rc = redis_target_parse(&t, str_z(wrong[i]), 0, &err);
        if (rc != ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' is %s", wrong[i], err_name(rc));
        CHECK(!strstr(err.text, "hunter2"));
        CHECK(err.text[0]);
    }
}

TEST(redis_target, refusals_are_told_from_error_replies_by_their_first_word)
{
    CHECK_INT(redis_refusal(STR("LOADING Redis is loading the dataset in memory")),
              ERR_UNAVAILABLE);
    CHECK_INT(redis_refusal(STR("MISCONF Redis is configured to save RDB snapshots")),
              ERR_UNAVAILABLE);
    CHECK_INT(redis_refusal(STR("MASTERDOWN Link with MASTER is down")), ERR_UNAVAILABLE);
    CHECK_INT(redis_refusal(STR("CLUSTERDOWN The cluster is down")), ERR_UNAVAILABLE);
    CHECK_INT(redis_refusal(STR("MOVED 1 127.0.0.1:1")), ERR_UNSUPPORTED);
    CHECK_INT(redis_refusal(STR("NOAUTH Authentication required.")), ERR_DENIED);
    CHECK_INT(redis_refusal(STR("OOM")), ERR_NO_SPACE);
    CHECK_INT(redis_refusal(STR("WRONGTYPE Operation")), 0);
    CHECK_INT(redis_refusal(STR("ERR LOADING")), 0);
    CHECK_INT(redis_refusal(STR("LOADINGX")), 0);
    CHECK_INT(redis_refusal(STR("")), 0);
}
