/* The redis engine against a real redis-server: logins, transports, batches, scripts, refusals. */
#include "unit/store/redis_test.h"

#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>

static struct store *store_as(const struct redis_server *server, const char *login)
{
    char url[256];

    snprintf(url, sizeof(url), "redis://%s127.0.0.1:%d", login, server->port);
    return store_at(url);
}

static void check_login(const struct redis_server *server, const char *login, int code)
{
    struct store *s = store_as(server, login);

    if (code)
        check_code(s, "GET k", code);
    else
        check_reply(s, "GET k", "nil");
    store_close(s);
}

TEST(redis, logs_in_with_a_password)
{
    const char *extra[] = {"--requirepass", "secret", NULL};
    struct redis_server server = {.extra = extra};

    need_redis_server(&server);
    check_login(&server, ":secret@", 0);
    check_login(&server, "default:secret@", 0);
    check_login(&server, ":wrong@", ERR_DENIED);
    check_login(&server, "", ERR_DENIED);
    redis_server_kill(&server);
}

TEST(redis, logs_in_as_an_acl_user)
{
    const char *extra[] = {"--user", "alice", "on",      ">secret", "~*",
                           "+@all",  "-set",  "-client", "-select", NULL};
    struct redis_server server = {.extra = extra};
    struct store *s;

    need_redis_server(&server);
    check_login(&server, "alice:secret@", 0);
    check_login(&server, "alice:wrong@", ERR_DENIED);
    check_login(&server, "nobody:secret@", ERR_DENIED);
    s = store_as(&server, "alice:secret@");
    check_code(s, "SET k v", ERR_DENIED);
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis, selects_the_database_of_the_url_or_the_options)
{
    struct redis_server server = {0};
    char url[256];

    need_redis_server(&server);
    struct store *zero = store_at(server.url);
    struct store *two =
        store_with((struct store_redis_options){.url = str_z(server.url), .number = 2});
    snprintf(url, sizeof(url), "%s?db=2", server.unix_url);
    struct store *two_again = store_at(url);
    snprintf(url, sizeof(url), "%s/99", server.url);
    struct store *wrong = store_at(url);

    check_reply(two, "SET k v", "OK");
    check_reply(zero, "GET k", "nil");
    check_reply(two_again, "GET k", "\"v\"");
    check_code(wrong, "GET k", ERR_INVALID);
    store_close(zero);
    store_close(two);
    store_close(two_again);
    store_close(wrong);
    redis_server_kill(&server);
}

TEST(redis, speaks_tls_and_checks_the_certificate)
{
    struct redis_server server = {.tls = true, .dir = test_dir()};
    char ca[256];
    struct err err = {0};

    CHECK(redis_server_make_certificate(&server));
    need_redis_server(&server);
    snprintf(ca, sizeof(ca), "%s/cert.pem", test_dir());
    struct store_redis_options o = {.url = str_z(server.tls_url)};
    struct store *stranger = store_with(o);
    o.tls_insecure = true;
    struct store *trusting = store_with(o);
    o.tls_insecure = false;
    o.ca_file = ca;
    struct store *known = store_with(o);

    CHECK_ERR(store_ping(stranger, &err), ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "certificate"));
    check_reply(known, "SET k v", "OK");
    check_reply(trusting, "GET k", "\"v\"");
    CHECK_OK(store_ping(known, &err));
    redis_server_kill(&server);
    CHECK(redis_server_start(&server));
    check_reply(known, "GET k", "nil"); /* the stale connection was noticed */
    store_close(stranger);
    store_close(trusting);
    store_close(known);
    redis_server_kill(&server);
}

TEST(redis, carries_large_values_and_refuses_replies_past_the_arena)
{
    enum { SIZE = 20 * 1024 * 1024 };
    struct redis_server server = {0};
    struct arena arena = {0}, small = ARENA_INIT(1 * MIB);
    struct reply *reply;
    struct err err = {0};
    char *value = xzalloc(SIZE);

    for (size_t i = 0; i < SIZE; i++)
        value[i] = (char)(i * 31 >> 3);
    need_redis_server(&server);
    struct store *s = store_at(server.url);
    CHECK_OK(store_call(s, &arena, &reply, &err, STR("SET"), STR("big"), str_n(value, SIZE)));
    CHECK_OK(store_call(s, &arena, &reply, &err, STR("GET"), STR("big")));
    CHECK(str_eq(reply->str, str_n(value, SIZE)));
    CHECK_ERR(store_call(s, &small, &reply, &err, STR("GET"), STR("big")), ERR_NO_MEMORY);
    check_reply(s, "STRLEN big", "20971520");
    arena_release(&arena);
    arena_release(&small);
    free(value);
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis, refuses_commands_that_would_change_a_pooled_connection)
{
    struct store *s = store_at("redis://127.0.0.1:1");

    check_code(s, "SELECT 3", ERR_UNSUPPORTED);
    check_code(s, "multi", ERR_UNSUPPORTED);
    check_code(s, "Subscribe c", ERR_UNSUPPORTED);
    check_code(s, "BLPOP l 0", ERR_UNSUPPORTED);
    store_close(s);
}

/* Prints what a batch of command lines answers, or its code. */
static void check_batch(struct store *s, bool atomic, const char *const *lines, const char *want)
{
    struct arena arena = {0};
    struct store_args commands[8];
    struct reply *reply;
    struct buf got = {0};
    size_t count = 0;
    int rc;

    for (; lines[count]; count++) {
        struct str *words = arena_array(&arena, 8, sizeof(*words)), rest = str_z(lines[count]);
        size_t n = 0;
        while (n < 8 && str_token(&rest, " ", &words[n]))
            n++;
        commands[count] = (struct store_args){words, n};
    }
    rc = atomic ? store_atomic(s, &arena, &reply, commands, count, NULL)
                : store_pipeline(s, &arena, &reply, commands, count, NULL);
    if (rc == 0)
        reply_print(&got, reply);
    else
        buf_append_z(&got, err_name(rc));
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
    arena_release(&arena);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(redis, a_batch_answers_each_command_in_its_place)
{
    struct redis_server server = {0};

    need_redis_server(&server);
    struct store *s = store_at(server.unix_url);
    for (int atomic = 0; atomic < 2; atomic++) {
        check_reply(s, "FLUSHALL", "OK");
        check_batch(s, atomic, LINES("SET k v", "INCR k", "GET k", "LPUSH l a b"),
                    "[OK, (error) ERR value is not an integer or out of range, \"v\", 2]");
    }
    check_batch(s, true, LINES("SET k w", "NOSUCH x", "GET", "GET k"),
                "[(error) EXECABORT Transaction discarded because of previous errors., "
                "(error) ERR unknown command 'NOSUCH', with args beginning with: 'x' , "
                "(error) ERR wrong number of arguments for 'get' command, "
                "(error) EXECABORT Transaction discarded because of previous errors.]");
    check_reply(s, "GET k", "\"v\"");
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis, a_redis_that_is_out_of_memory_gives_a_code)
{
    struct redis_server server = {0};

    need_redis_server(&server);
    struct store *s = store_at(server.unix_url);
    check_reply(s, "SET k v", "OK");
    check_reply(s, "CONFIG SET maxmemory 1", "OK");
    check_code(s, "SET k w", ERR_NO_SPACE);
    check_batch(s, false, LINES("GET k", "SET k w"), "NO_SPACE");
    check_batch(s, true, LINES("DEL k", "SET k w"), "NO_SPACE");
    check_reply(s, "GET k", "\"v\"");
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis, a_replica_takes_no_writes_and_gives_a_code)
{
    struct redis_server server = {0};

    need_redis_server(&server);
    struct store *s = store_at(server.unix_url);
    check_reply(s, "SET k v", "OK");
    check_reply(s, "REPLICAOF 127.0.0.1 1", "OK");
    check_code(s, "SET k w", ERR_UNAVAILABLE);
    check_batch(s, false, LINES("GET k", "SET k w"), "PEER");
    check_batch(s, false, LINES("SET k w", "SET k x"), "UNAVAILABLE");
    check_batch(s, true, LINES("GET k", "SET k w"), "UNAVAILABLE");
    check_reply(s, "CONFIG SET replica-serve-stale-data no", "OK");
    check_code(s, "GET k", ERR_UNAVAILABLE);
    store_close(s);
    redis_server_kill(&server);
}

static void check_eval(struct store *s, const struct script *script, struct str key, struct str arg,
                       const char *want)
{
    struct arena arena = {0};
    struct reply *reply;
    struct buf got = {0};
    struct err err = {0};

    CHECK_OK(
        store_eval(s, &arena, &reply, &(struct script_run){script, {&key, 1}, {&arg, 1}}, &err));
    reply_print(&got, reply);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
    arena_release(&arena);
}

static void load_scripts(bool grouped)
{
    struct script append = {.name = "test/append",
                            .source = STR("redis.call('APPEND', KEYS[1], ARGV[1])"
                                          "return redis.call('GET', KEYS[1])")};
    struct script broken = {.name = "test/broken", .source = STR("return (")};
    struct redis_server server = {0};

    script_init(&append);
    script_init(&broken);
    append.grouped = broken.grouped = grouped;
    need_redis_server(&server);
    struct store *s = store_at(server.url);
    check_eval(s, &append, STR("k"), STR("a"), "\"a\"");
    check_eval(s, &append, STR("k"), STR("b"), "\"ab\"");
    check_reply(s, "SCRIPT FLUSH", "OK");
    check_eval(s, &append, STR("k"), STR("c"), "\"abc\"");
    redis_server_kill(&server);
    CHECK(redis_server_start(&server));
    check_eval(s, &append, STR("k"), STR("d"), "\"d\"");
    check_eval(s, &broken, STR("k"), STR("d"),
               "(error) ERR Error compiling script (new function): user_script:1: unexpected "
               "symbol near '<eof>'");
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis, scripts_are_loaded_when_redis_does_not_know_them)
{
    load_scripts(false);
}

TEST(redis, scripts_of_groups_are_loaded_when_redis_does_not_know_them)
{
    load_scripts(true);
}

struct spin {
    struct store *store;
    struct thread thread;
    int code;
    _Atomic(bool) over;
};

static void spin(void *ctx)
{
    struct spin *p = ctx;
    struct script script = {.name = "test/spin",
                            .source = STR("while true do redis.call('GET', 'k') end")};
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};

    script_init(&script);
    p->code = store_eval(p->store, &arena, &reply, &(struct script_run){.script = &script}, &err);
    if (p->code == 0)
        p->code = reply_expect(reply, REPLY_STATUS, &err);
    arena_release(&arena);
    atomic_store(&p->over, true);
}

TEST(redis, a_redis_busy_with_a_script_gives_a_code)
{
    const char *extra[] = {"--busy-reply-threshold", "1", NULL};
    struct redis_server server = {.extra = extra};
    struct spin p = {0};
    struct err err = {0};
    const char *got;

    need_redis_server(&server);
    p.store =
        store_with((struct store_redis_options){.url = str_z(server.url), .timeout_ms = 50 * 1000});
    CHECK_OK(thread_start(&p.thread, "spin", 0, spin, &p, &err));
    while (ask(p.store, "GET k", &got) == 0)
        ;
    check_code(p.store, "GET k", ERR_UNAVAILABLE);
    while (!atomic_load(&p.over)) /* it may be too busy to take the first one */
        ask(p.store, "SCRIPT KILL", &got);
    thread_join(&p.thread);
    CHECK_ERR(p.code, ERR_INVALID); /* the error reply of a killed script */
    check_reply(p.store, "GET k", "nil");
    store_close(p.store);
    redis_server_kill(&server);
}

struct increments {
    struct store *store;
    struct thread thread;
};

static void increment(void *ctx)
{
    struct increments *p = ctx;
    const char *got;

    for (int i = 0; i < 100; i++)
        CHECK_INT(ask(p->store, "INCR n", &got), 0);
}

TEST(redis, callers_past_the_bound_wait_for_a_connection)
{
    struct redis_server server = {0};
    struct increments threads[8] = {0};
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};

    need_redis_server(&server);
    struct store *s = store_with((struct store_redis_options){
        .url = str_z(server.url), .max_connections = 2, .timeout_ms = 30 * 1000});
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        threads[i].store = s;
        CHECK_OK(thread_start(&threads[i].thread, "incr", 0, increment, &threads[i], &err));
    }
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        thread_join(&threads[i].thread);
    check_reply(s, "GET n", "\"800\"");
    CHECK_OK(store_call(s, &arena, &reply, &err, STR("INFO"), STR("stats")));
    CHECK(str_find(reply->str, STR("total_connections_received:2\r")) >= 0 ||
          str_find(reply->str, STR("total_connections_received:1\r")) >= 0);
    arena_release(&arena);
    store_close(s);
    redis_server_kill(&server);
}
