/* Scripts in the embedded engine: limits, the sandbox, isolation. */
#include "unit/store/embedded_test.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

TEST(embedded_script, one_that_runs_too_long_is_undone_even_if_it_catches_errors)
{
    struct fixture f = {0};

    fixture_open(&f);
    embedded_limit_scripts(f.s, 50);
    check_script(f.s, "redis.call('SET','k','v') while true do end", "!TIMEOUT");
    check_script(f.s,
                 "redis.call('SET','k','v') "
                 "while true do pcall(function() while true do end end) end",
                 "!TIMEOUT");
    check_script(f.s,
                 "redis.call('SET','k','v') "
                 "local co = coroutine.wrap(function() while true do end end) pcall(co) return 1",
                 "!TIMEOUT");
    check_reply(f.s, "GET k", "nil");
    check_script(f.s, "return 'still alive'", "\"still alive\"");
    fixture_close(&f);
}

TEST(embedded_script, one_that_takes_too_much_memory_is_undone)
{
    struct fixture f = {0};

    fixture_open(&f);
    embedded_limit_scripts(f.s,
                           MS_PER_MINUTE); /* a busy machine must not run into the other limit */
    check_script(f.s, "redis.call('SET','k','v') return string.rep('x', 100*1024*1024)",
                 "!NO_MEMORY");
    check_script(f.s,
                 "redis.call('SET','k','v') local t = {} "
                 "pcall(function() for i = 1, 1e9 do t[i] = i .. 'x' end end) return 1",
                 "!NO_MEMORY");
    check_reply(f.s, "GET k", "nil");
    check_script(f.s, "return 'still alive'", "\"still alive\"");
    fixture_close(&f);
}

/* The arguments stay in the state as ARGV until the next script sets its own. */
TEST(embedded_script, memory_of_the_one_before_does_not_count)
{
    struct fixture f = {0};
    struct script script = {.source = STR("return #ARGV[1]")};
    char *large = xcalloc(1, 40 * MIB);

    fixture_open(&f);
    script_init(&script);
    for (int i = 0; i < 3; i++) {
        struct arena arena = {0};
        struct str argument = str_n(large, 40 * MIB);
        struct reply *reply;
        struct err err = {0};
        large[0] = (char)i; /* Lua keeps equal strings once */
        CHECK_OK(store_eval(f.s, &arena, &reply,
                            &(struct script_run){.script = &script, .args = {&argument, 1}}, &err));
        CHECK_INT(reply->integer, 40 * MIB);
        arena_release(&arena);
    }
    free(large);
    fixture_close(&f);
}

TEST(embedded_script, what_it_did_before_an_error_stays)
{
    struct fixture f = {0};

    fixture_open(&f);
    check_script(f.s, "redis.call('SET','k','v') error({err='MY end'})",
                 "(error) MY end script: 565ab771aae1e2ece6b3c7ecf76af613d4c96593, on "
                 "@user_script:1.");
    check_reply(f.s, "GET k", "\"v\"");
    fixture_close(&f);
}

TEST(embedded_script, nothing_outside_can_be_reached_and_nothing_stays_behind)
{
    struct fixture f = {0};
    static const char *const absent[] = {"io",      "os",     "debug",    "package",
                                         "require", "dofile", "loadfile", "getfenv",
                                         "setfenv", "load",   "newproxy", "print"};
    char source[256];

    fixture_open(&f);
    for (size_t i = 0; i < ARRAY_SIZE(absent); i++) {
        snprintf(source, sizeof(source), "return {pcall(function() return %s end)}", absent[i]);
        char want[256];
        snprintf(want, sizeof(want),
                 "[nil, \"user_script:1: Script attempted to access nonexistent global variable "
                 "'%s'\"]",
                 absent[i]);
        check_script(f.s, source, want);
    }
    check_script(f.s, "return {pcall(function() leak = 1 end)}",
                 "[nil, \"user_script:1: Attempt to modify a readonly table\"]");
    check_script(f.s, "return {pcall(rawset, _G, 'leak', 1)}",
                 "[nil, \"Attempt to modify a readonly table\"]");
    check_script(f.s, "return {pcall(rawset, string, 'rep', 1)}",
                 "[nil, \"Attempt to modify a readonly table\"]");
    check_script(f.s, "return {pcall(setmetatable, redis, {})}",
                 "[nil, \"Attempt to modify a readonly table\"]");
    check_script(f.s, "return {pcall(function() string.rep = nil end)}",
                 "[nil, \"user_script:1: Attempt to modify a readonly table\"]");
    check_script(f.s, "return tostring(getmetatable('')) .. tostring(getmetatable(_G))",
                 "\"falsefalse\"");
    check_script(f.s, "return {loadstring(string.dump(function() return 1 end))}", "[]");
    check_script(f.s, "return select(2, loadstring(string.dump(function() return 1 end)))",
                 "\"bytecode is not allowed\"");
    check_script(f.s, "return ('x'):rep(3) .. string.rep('y', 2)", "\"xxxyy\"");
    fixture_close(&f);
}

TEST(embedded_script, digests_are_remembered_and_flushed)
{
    struct fixture f = {0};
    const char *sha = "930269f31393d0be681588b6ab08dccee7d6bb67", *got;
    char line[128], want[64];

    fixture_open(&f);
    snprintf(line, sizeof(line), "EVALSHA %s 0", sha);
    snprintf(want, sizeof(want), "\"%s\"", sha);
    check_reply(f.s, line, "(error) NOSCRIPT No matching script. Please use EVAL.");
    check_reply(f.s, "SCRIPT LOAD return(1)", want);
    check_reply(f.s, line, "1");
    check_reply(f.s, "EVALSHA 930269F31393D0BE681588B6AB08DCCEE7D6BB67 0", "1");
    snprintf(line, sizeof(line), "SCRIPT EXISTS %s nope", sha);
    check_reply(f.s, line, "[1, 0]");
    check_reply(f.s, "SCRIPT FLUSH", "OK");
    check_reply(f.s, line, "[0, 0]");
    CHECK_INT(ask(f.s, "EVAL return(1) 0", &got), 0);
    check_reply(f.s, line, "[1, 0]");
    fixture_close(&f);
}

/* Transfers between ten fields of two hashes: the sum never changes. */
enum { THREADS = 4, TRANSFERS = 150, FIELDS = 5 };

struct worker {
    struct thread thread;
    struct store *s;
    int number;
    struct script *transfer, *sum;
    int wrong_sums;
};

static void check_sum(struct worker *w)
{
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};

    CHECK_OK(store_eval(w->s, &arena, &reply, &(struct script_run){.script = w->sum}, &err));
    w->wrong_sums += reply->type != REPLY_INTEGER || reply->integer != 0;
    arena_release(&arena);
}

static void transfer_many(void *ctx)
{
    struct worker *w = ctx;
    struct arena arena = {0};
    struct reply *reply;
    struct err err = {0};
    char from[8], to[8], amount[8];

    for (int i = 0; i < TRANSFERS; i++) {
        snprintf(from, sizeof(from), "f%d", (i + w->number) % FIELDS);
        snprintf(to, sizeof(to), "f%d", (i * 3 + 1) % FIELDS);
        snprintf(amount, sizeof(amount), "%d", i % 9 + 1);
        struct str args[] = {str_z(from), str_z(to), str_z(amount)};
        CHECK_OK(store_eval(w->s, &arena, &reply,
                            &(struct script_run){.script = w->transfer, .args = {args, 3}}, &err));
        CHECK_INT(reply->type, REPLY_INTEGER);
        arena_reset(&arena);
        check_sum(w);
    }
    arena_release(&arena);
}

TEST(embedded_script, transfers_of_many_threads_keep_the_sum_for_every_reader)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    struct script transfer = {.name = "test/transfer",
                              .source = STR("redis.call('HINCRBY', 'a', ARGV[1], -ARGV[3]) "
                                            "return redis.call('HINCRBY', 'b', ARGV[2], ARGV[3])")};
    struct script sum = {
        .name = "test/sum",
        .source = STR("local sum = 0 for _, k in ipairs({'a', 'b'}) do "
                      "for _, v in ipairs(redis.call('HVALS', k)) do sum = sum + v end end "
                      "return sum"),
        .readonly = true};
    struct worker workers[THREADS];
    struct err err = {0};

    fixture_open(&f);
    script_init(&transfer);
    script_init(&sum);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.s = f.s, .number = i, .transfer = &transfer, .sum = &sum};
        CHECK_OK(thread_start(&workers[i].thread, "worker", 0, transfer_many, &workers[i], &err));
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(&workers[i].thread);
        CHECK_INT(workers[i].wrong_sums, 0);
    }
    fixture_check(&f);
    fixture_close(&f);
}

/* Replaces a hash by another one, small or with rows, over and over; a reader of one member must
 * never see it absent. */
static void replace_many(void *ctx)
{
    struct worker *w = ctx;

    for (int i = 0; i < TRANSFERS; i++)
        check_script(w->s,
                     i % 3 ? "redis.call('DEL','h') "
                             "return redis.call('HSET','h','f','v','g',string.rep('w',2000))"
                           : "redis.call('DEL','h') return redis.call('HSET','h','f','v','g','w')",
                     "2");
}

TEST(embedded_script, a_member_that_is_always_there_is_never_missed_while_its_hash_is_replaced)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    struct worker w;
    struct err err = {0};

    fixture_open(&f);
    check_reply(f.s, "HSET h f v", "1");
    w = (struct worker){.s = f.s};
    CHECK_OK(thread_start(&w.thread, "replacer", 0, replace_many, &w, &err));
    for (int i = 0; i < 2000; i++)
        check_reply(f.s, "HGET h f", "\"v\"");
    thread_join(&w.thread);
    fixture_close(&f);
}

static void publisher(void *ctx)
{
    struct worker *w = ctx;

    for (int i = 0; i < TRANSFERS; i++)
        check_script(w->s, "local n = redis.call('INCR','n') redis.call('PUBLISH','c',n) return 0",
                     "0");
}

struct listener {
    struct mutex lock;
    struct cond changed;
    uint64_t last;
    bool disorder;
};

static void listen_one(void *ctx, struct str channel, struct str message)
{
    struct listener *l = ctx;
    uint64_t n = 0;

    mutex_lock(&l->lock);
    l->disorder |= str_u64(message, &n) < 0 || n != l->last + 1;
    l->last = n;
    cond_signal(&l->changed);
    mutex_unlock(&l->lock);
}

TEST(embedded_script, messages_come_in_the_order_of_the_steps_and_none_from_one_undone)
{
    struct fixture f = {.durability = STORE_VOLATILE};
    struct listener l = {0};
    struct store_subscription *sub;
    struct worker workers[THREADS];
    struct err err = {0};

    fixture_open(&f);
    mutex_init(&l.lock, "test.listener");
    cond_init(&l.changed);
    CHECK_OK(store_subscribe(&sub, f.s, STR("c"), listen_one, &l, &err));
    embedded_limit_scripts(f.s, 50);
    check_script(f.s, "redis.call('PUBLISH','c','99') while true do end", "!TIMEOUT");
    embedded_limit_scripts(f.s, MS_PER_MINUTE);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.s = f.s};
        CHECK_OK(thread_start(&workers[i].thread, "publisher", 0, publisher, &workers[i], &err));
    }
    for (int i = 0; i < THREADS; i++)
        thread_join(&workers[i].thread);
    mutex_lock(&l.lock);
    while (l.last < THREADS * TRANSFERS && !l.disorder)
        cond_wait(&l.changed, &l.lock);
    CHECK(!l.disorder);
    mutex_unlock(&l.lock);
    store_unsubscribe(sub);
    check_reply(f.s, "PUBLISH c x", "0");
    cond_release(&l.changed);
    mutex_release(&l.lock);
    fixture_close(&f);
}
