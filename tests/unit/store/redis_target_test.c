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
    if (t.master)
        buf_appendf(&got, " master %s", t.master);
    for (size_t i = 0; i < t.sentinel_count; i++) {
        const struct redis_target *s = &t.sentinels[i];
        buf_appendf(&got, " %s:%u %s:%s%s%s", s->host, s->port, s->user ? s->user : "-",
                    s->password ? s->password : "-", s->try_login ? "?" : "", s->tls ? " tls" : "");
    }
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

TEST(redis_target, sentinels_are_a_list_of_hosts_before_the_name_of_the_master)
{
    check_target("redis+sentinel://a/main", "-:0 - -:- 3 master main a:26379 -:-?");
    check_target("redis+sentinel://a:1,b,[::1]:3/main/7",
                 "-:0 - -:- 7 master main a:1 -:-? b:26379 -:-? ::1:3 -:-?");
    check_target("rediss+sentinel://:p%2C@a,b/m%20n?db=2",
                 "-:0 - -:p, 2 tls master m n a:26379 -:p,? tls b:26379 -:p,? tls");
    check_target("redis+sentinel://u,:p,@a,b/main/", "-:0 - u,:p, 3 master main a:26379 u,:p,? "
                                                     "b:26379 u,:p,?");
    check_target("redis+sentinel://u:p@a/main?sentinel_user=s&sentinel_password=q%26",
                 "-:0 - u:p 3 master main a:26379 s:q&");
    check_target("redis+sentinel://:p@a/main?sentinel_password=",
                 "-:0 - -:p 3 master main a:26379 -:-");
}

static bool is_same_server(const char *one, const char *other)
{
    struct redis_target a, b;
    struct err err = {0};
    bool same;

    CHECK_OK(redis_target_parse(&a, str_z(one), 0, &err));
    CHECK_OK(redis_target_parse(&b, str_z(other), 1, &err));
    same = redis_target_is_same(&a, &b);
    CHECK_INT(same, redis_target_is_same(&b, &a));
    redis_target_release(&a);
    redis_target_release(&b);
    return same;
}

TEST(redis_target, databases_are_on_one_server_when_address_or_master_and_sentinels_are_the_same)
{
    CHECK(is_same_server("redis://h", "redis://:p@h:6379/4"));
    CHECK(is_same_server("unix:///r", "unix:///r?db=4"));
    CHECK(is_same_server("redis+sentinel://a,b/m/1", "redis+sentinel://:p@b:26379,a/m/2"));
    CHECK(!is_same_server("redis://h", "redis://h:1"));
    CHECK(!is_same_server("redis://h", "unix:///h"));
    CHECK(!is_same_server("redis://a:26379", "redis+sentinel://a/m"));
    CHECK(!is_same_server("redis+sentinel://a,b/m", "redis+sentinel://a,b/n"));
    CHECK(!is_same_server("redis+sentinel://a,b/m", "redis+sentinel://a/m"));
    CHECK(!is_same_server("redis+sentinel://a,b/m", "redis+sentinel://a,a:1/m"));
    CHECK(!is_same_server("redis+sentinel://a/m", "rediss+sentinel://a/m"));
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
        "redis+sentinel://:hunter2@a,b",
        "redis+sentinel://:hunter2@a,b/",
        "redis+sentinel://:hunter2@a,b/?sentinel_password=hunter2",
        "redis+sentinel://:hunter2@/main",
        "redis+sentinel://:hunter2@a,/main",
        "redis+sentinel://:hunter2@,a/main",
        "redis+sentinel://:hunter2@a,,b/main",
        "redis+sentinel://:hunter2@a,b:0/main",
        "redis+sentinel://:hunter2@a,b:70000/main",
        "redis+sentinel://:hunter2@a,[::1/main",
        "redis+sentinel://:hunter2@a,b/main/x",
        "redis+sentinel://:hunter2@a,b/main/1/2",
        "redis+sentinel://:hunter2@a,b/main?password=hunter2",
        "redis+sentinel://:hunter2@a/main?sentinel_user=u",
        "redis+sentinel://:hunter2@a/main?sentinel_password=hunter2%00",
        "redis://h?sentinel_password=hunter2",
        "redis+sentinel://:hunter2@a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/main",
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
