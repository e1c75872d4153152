/* One suite over both engines: the files of conformance/ hold what Redis 7 answers, those of
 * regressions/ what the differential fuzz once found. Each file begins in an empty database. */
#include "tests_folder.h"
#include "unit/store/play.h"
#include "unit/store/redis_test.h"

#include "db/db.h"
#include "os/file.h"
#include "os/thread.h"

#include <dirent.h>
#include <stdio.h>

/* A store to test, and how it is ended. */
struct subject {
    struct store *store;
    struct redis_server server; /* of the redis engine */
    struct db *db;              /* of the embedded engine */
};

static void open_embedded(struct subject *t)
{
    char path[256];
    struct db_options o = {.path = path, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", test_dir());
    CHECK_OK(db_open(&t->db, &o, &err));
    CHECK_OK(store_open_embedded(&t->store, t->db, 0, STORE_VOLATILE, NULL, &err));
}

static void open_redis(struct subject *t)
{
    need_redis_server(&t->server);
    t->store = store_at(t->server.unix_url);
}

static void close_subject(struct subject *t)
{
    store_close(t->store);
    redis_server_kill(&t->server);
    if (t->db)
        db_close(t->db);
}

static size_t play_file(struct store *s, const char *folder, const char *name)
{
    char path[512];
    struct buf text = {0};
    struct play play;
    struct err err = {0};
    size_t failed;

    snprintf(path, sizeof(path), "%s/unit/store/%s/%s", tests_folder, folder, name);
    CHECK_OK(file_read(path, &text, &err));
    CHECK_OK(play_parse(&play, buf_str(&text), &err));
    CHECK(play.steps.len > 0);
    check_reply(s, "FLUSHDB", "OK");
    failed = play_run(&play, s, name);
    play_release(&play);
    buf_release(&text);
    return failed;
}

static void check_file(void (*open_subject)(struct subject *t), const char *name)
{
    struct subject t = {0};

    open_subject(&t);
    size_t failed = play_file(t.store, "conformance", name);
    close_subject(&t);
    CHECK_INT(failed, 0);
}

static void check_folder(void (*open_subject)(struct subject *t), const char *folder)
{
    char path[512];
    struct subject t = {0};
    struct dirent *entry;
    size_t failed = 0;

    snprintf(path, sizeof(path), "%s/unit/store/%s", tests_folder, folder);
    DIR *dir = opendir(path);
    CHECK(dir);
    open_subject(&t);
    while ((entry = readdir(dir)))
        if (str_ends(str_z(entry->d_name), STR(".txt")))
            failed += play_file(t.store, folder, entry->d_name);
    closedir(dir);
    close_subject(&t);
    CHECK_INT(failed, 0);
}

static void check_eval(struct store *s)
{
    struct script script = {.name = "test/swap",
                            .source =
                                STR("local old = redis.call('GET', KEYS[1])"
                                    "redis.call('SET', KEYS[1], ARGV[1])"
                                    "return {old, #KEYS, #ARGV, redis.call('GET', KEYS[1])}")};
    struct script readonly = {
        .name = "test/peek", .source = STR("return redis.call('GET', 'k')"), .readonly = true};
    struct arena arena = {0};
    struct str key = STR("k"), args[] = {STR("new"), STR("")};
    struct buf got = {0};
    struct reply *reply;
    struct err err = {0};

    script_init(&script);
    script_init(&readonly);
    for (int i = 0; i < 2; i++)
        CHECK_OK(store_eval(s, &arena, &reply, &(struct script_run){&script, {&key, 1}, {args, 2}},
                            &err));
    reply_print(&got, reply);
    CHECK_STR(buf_str(&got), STR("[\"new\", 1, 2, \"new\"]"));
    CHECK_OK(store_eval(s, &arena, &reply, &(struct script_run){.script = &readonly}, &err));
    CHECK_STR(reply->str, STR("new"));
    buf_release(&got);
    arena_release(&arena);
}

/* A time that passes, not one that is set in the past: gone to every kind of read at once. */
static void check_passing_time(struct store *s)
{
    const char *got = "";

    check_reply(s, "SET k v PX 50", "OK");
    check_reply(s, "RPUSH l a b c", "3");
    check_reply(s, "PEXPIRE l 50", "1");
    check_reply(s, "SADD other x", "1");
    while (ask(s, "EXISTS k l", &got) == 0 && strcmp(got, "0") != 0)
        ;
    check_reply(s, "GET k", "nil");
    check_reply(s, "TYPE l", "none");
    check_reply(s, "LRANGE l 0 -1", "[]");
    check_reply(s, "KEYS *", "[\"other\"]");
    check_reply(s, "RPUSH l d", "1");
    check_reply(s, "LRANGE l 0 -1", "[\"d\"]");
    check_reply(s, "TTL l", "-1");
    check_reply(s, "SET k w NX", "OK");
    check_reply(s, "TTL k", "-1");
}

static void check_remaining_time(struct store *s)
{
    const char *got = "";
    int64_t left;

    check_reply(s, "SET k v EX 1000", "OK");
    CHECK_INT(ask(s, "TTL k", &got), 0);
    CHECK_INT(str_i64(str_z(got), &left), 0);
    CHECK(left > 900 && left <= 1000);
    check_reply(s, "PEXPIRE k 2000000", "1");
    CHECK_INT(ask(s, "PTTL k", &got), 0);
    CHECK_INT(str_i64(str_z(got), &left), 0);
    CHECK(left > 1900000 && left <= 2000000);
}

/* What a subscriber heard: "channel=message ". */
struct ear {
    struct mutex lock;
    struct cond changed;
    struct buf heard;
    size_t count;
};

static void hear(void *ctx, struct str channel, struct str message)
{
    struct ear *e = ctx;

    mutex_lock(&e->lock);
    buf_appendf(&e->heard, STR_FMT "=" STR_FMT " ", STR_ARG(channel), STR_ARG(message));
    e->count++;
    cond_signal(&e->changed);
    mutex_unlock(&e->lock);
}

static void check_messages(struct store *s)
{
    struct ear e = {0};
    struct store_subscription *a, *b;
    struct err err = {0};

    mutex_init(&e.lock, "test.ear");
    cond_init(&e.changed);
    check_reply(s, "PUBLISH a 0", "0");
    CHECK_OK(store_subscribe(&a, s, STR("a"), hear, &e, &err));
    CHECK_OK(store_subscribe(&b, s, STR("b"), hear, &e, &err));
    check_reply(s, "PUBLISH a 1", "1");
    check_reply(s, "PUBLISH b 2", "1");
    check_reply(s, "EVAL return{redis.call('PUBLISH','a','3'),redis.call('PUBLISH','c','4')} 0",
                "[1, 0]");
    check_reply(s, "PUBLISH b 5", "1");
    mutex_lock(&e.lock);
    while (e.count < 4)
        cond_wait(&e.changed, &e.lock);
    CHECK_STR(buf_str(&e.heard), STR("a=1 b=2 a=3 b=5 "));
    mutex_unlock(&e.lock);
    store_unsubscribe(a);
    store_unsubscribe(b);
    buf_release(&e.heard);
    cond_release(&e.changed);
    mutex_release(&e.lock);
}

static void check_subject(void (*open_subject)(struct subject *t), void (*check)(struct store *s))
{
    struct subject t = {0};

    open_subject(&t);
    check(t.store);
    close_subject(&t);
}

#define CONFORMS(file)                                                                             \
    TEST(conformance_embedded, file)                                                               \
    {                                                                                              \
        check_file(open_embedded, #file ".txt");                                                   \
    }                                                                                              \
    TEST(conformance_redis, file)                                                                  \
    {                                                                                              \
        check_file(open_redis, #file ".txt");                                                      \
    }

#define BEHAVES(name, check)                                                                       \
    TEST(conformance_embedded, name)                                                               \
    {                                                                                              \
        check_subject(open_embedded, check);                                                       \
    }                                                                                              \
    TEST(conformance_redis, name)                                                                  \
    {                                                                                              \
        check_subject(open_redis, check);                                                          \
    }

CONFORMS(arity)
CONFORMS(batches)
CONFORMS(hashes)
CONFORMS(keys)
CONFORMS(lists)
CONFORMS(scan)
CONFORMS(scripts)
CONFORMS(sets)
CONFORMS(strings)
CONFORMS(zsets)
BEHAVES(a_key_past_its_time_is_gone_to_every_reader, check_passing_time)
BEHAVES(messages_arrive_in_order_also_from_scripts, check_messages)
BEHAVES(scripts_run_by_digest, check_eval)
BEHAVES(the_time_left_counts_down, check_remaining_time)

TEST(conformance_embedded, what_the_differential_fuzz_found_stays_fixed)
{
    check_folder(open_embedded, "regressions");
}

TEST(conformance_redis, what_the_differential_fuzz_found_stays_fixed)
{
    check_folder(open_redis, "regressions");
}
