/* The redis engine when Redis is down, slow, strange, or killed under load: every call returns
 * within its timeout, and its code keeps the promise of docs/store-redis.md. */
#include "unit/store/redis_test.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/thread.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

TEST(redis_failure, down_at_start_is_a_code_and_it_comes_back_by_itself)
{
    struct redis_server server = {0};

    need_redis_server(&server);
    redis_server_kill(&server);
    struct store *s = store_at(server.url);
    for (int i = 0; i < 50; i++)
        check_code(s, "GET k", ERR_UNAVAILABLE);
    CHECK(redis_server_start(&server));
    wait_reply(s, "GET k", "nil");
    redis_server_kill(&server);
    check_code(s, "GET k", ERR_UNAVAILABLE);
    CHECK(redis_server_start(&server));
    wait_reply(s, "GET k", "nil");
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis_failure, an_absent_unix_socket_is_a_code)
{
    char url[256];

    snprintf(url, sizeof(url), "unix://%s/none.sock", test_dir());
    struct store *s = store_at(url);
    check_code(s, "GET k", ERR_UNAVAILABLE);
    store_close(s);
}

TEST(redis_failure, an_idle_connection_that_went_stale_is_replaced_before_use)
{
    struct redis_server server = {0};

    need_redis_server(&server);
    struct store *s = store_at(server.url);
    for (int i = 0; i < 5; i++) {
        check_reply(s, "INCR n", "1");
        redis_server_kill(&server);
        CHECK(redis_server_start(&server));
    }
    check_reply(s, "INCR n", "1");
    store_close(s);
    redis_server_kill(&server);
}

TEST(redis_failure, a_silent_server_times_out_and_its_late_answer_reaches_nobody)
{
    struct redis_server server = {0};

    need_redis_server(&server);
    struct store *s =
        store_with((struct store_redis_options){.url = str_z(server.url), .timeout_ms = 500});
    wait_reply(s, "SET a first", "OK");
    wait_reply(s, "SET b second", "OK");
    redis_server_signal(&server, SIGSTOP);
    check_code(s, "GET a", ERR_TIMEOUT);
    check_code(s, "GET a", ERR_UNAVAILABLE); /* a new connection, and no greeting back */
    redis_server_signal(&server, SIGCONT);
    wait_reply(s, "GET b", "\"second\"");
    wait_reply(s, "GET a", "\"first\"");
    store_close(s);
    redis_server_kill(&server);
}

/* A peer that plays a script on each connection: reads what comes, answers with the next line. */
struct peer {
    struct thread thread;
    int listener, wake;
    const char *const *answers; /* ended by NULL, then the connection is closed */
    char url[64];
};

static void play(struct peer *p, int fd)
{
    char bytes[4096];
    size_t got;

    for (const char *const *answer = p->answers; *answer; answer++) {
        uint64_t deadline = clock_mono_ns() + 30000000000u;
        if (sock_recv(fd, bytes, sizeof(bytes), &got, deadline, NULL) < 0 || got == 0)
            return;
        if (sock_send_all(fd, *answer, strlen(*answer), deadline, NULL) < 0)
            return;
    }
    /* The last command is read, so that closing is an end and not a reset. */
    (void)!sock_recv(fd, bytes, sizeof(bytes), &got, clock_mono_ns() + 30000000000u, NULL);
}

static void peer_thread(void *ctx)
{
    struct peer *p = ctx;
    struct pollfd fds[] = {{.fd = p->listener, .events = POLLIN},
                           {.fd = p->wake, .events = POLLIN}};

    while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
        int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            play(p, fd);
        fd_close(&fd);
    }
}

static void peer_start(struct peer *p, int fds[2])
{
    struct sock_addr addr;
    struct err err = {0};

    CHECK(pipe(fds) == 0);
    p->wake = fds[0];
    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&p->listener, &addr, 16, &err));
    CHECK_OK(sock_local(p->listener, &addr, &err));
    snprintf(p->url, sizeof(p->url), "redis://127.0.0.1:%d",
             ntohs(((struct sockaddr_in *)&addr.sa)->sin_port));
    CHECK_OK(thread_start(&p->thread, "peer", 0, peer_thread, p, &err));
}

/* The command against a peer that plays `answers`; the first answers the greeting. */
static void check_peer(const char *const *answers, const char *line, int code)
{
    struct peer p = {.answers = answers};
    int fds[2];

    peer_start(&p, fds);
    struct store *s = store_with((struct store_redis_options){
        .url = str_z(p.url), .timeout_ms = code == ERR_TIMEOUT ? 1000 : 30000});
    check_code(s, line, code);
    store_close(s);
    fd_close(&fds[1]);
    thread_join(&p.thread);
    fd_close(&fds[0]);
    fd_close(&p.listener);
}

#define ANSWERS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(redis_failure, a_connection_that_ends_after_the_command_may_have_run_it)
{
    check_peer(ANSWERS("+OK\r\n"), "INCR n", ERR_CLOSED);
}

TEST(redis_failure, an_answer_that_does_not_come_may_have_run)
{
    check_peer(ANSWERS("+OK\r\n", ""), "INCR n", ERR_TIMEOUT);
    check_peer(ANSWERS("+OK\r\n", "$5\r\nab"), "GET k", ERR_TIMEOUT);
}

TEST(redis_failure, a_peer_that_is_not_redis_is_found_out)
{
    check_peer(ANSWERS("HTTP/1.1 400 Bad Request\r\n"), "GET k", ERR_UNAVAILABLE);
    check_peer(ANSWERS("+OK\r\n", "what?\r\n"), "GET k", ERR_PEER);
    check_peer(ANSWERS("-ERR max number of clients reached\r\n"), "GET k", ERR_UNAVAILABLE);
    check_peer(ANSWERS("-DENIED Redis is running in protected mode\r\n"), "GET k", ERR_DENIED);
    check_peer(ANSWERS("+OK\r\n", "-LOADING Redis is loading\r\n"), "GET k", ERR_UNAVAILABLE);
    /* of a script: Redis 7, then 6 */
    check_peer(ANSWERS("+OK\r\n", "-OOM command not allowed. script: f, on @user_script:1.\r\n"),
               "GET k", ERR_NO_SPACE);
    check_peer(ANSWERS("+OK\r\n", "-ERR Error running script (call to f_0): @user_script:1: "
                                  "@user_script: 1: -OOM command not allowed\r\n"),
               "GET k", ERR_NO_SPACE);
    check_peer(ANSWERS("+OK\r\n", "-ERR Error running script (call to f_0): @user_script:1: "
                                  "@user_script: 1: -READONLY You can't write\r\n"),
               "GET k", ERR_UNAVAILABLE);
    check_peer(ANSWERS("+OK\r\n", "-ERR Error running script (call to f_0): @user_script:1: "
                                  "WRONGTYPE Operation\r\n"),
               "GET k", 0);
}

TEST(redis_failure, a_server_that_accepts_and_says_nothing_is_unavailable)
{
    struct sock_addr addr;
    struct err err = {0};
    char url[64];
    int fd;

    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&fd, &addr, 16, &err));
    CHECK_OK(sock_local(fd, &addr, &err));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d",
             ntohs(((struct sockaddr_in *)&addr.sa)->sin_port));
    struct store *s = store_with((struct store_redis_options){.url = str_z(url), .timeout_ms = 50});
    check_code(s, "GET k", ERR_UNAVAILABLE);
    store_close(s);
    fd_close(&fd);
}

/* Killed under load. Every worker appends ids of its own to one list and notes the code of each;
 * afterwards the list tells what really ran. */
enum { WORKERS = 16, ROUNDS = 4, STEPS = 150, TIMEOUT_MS = 3000 };

struct attempt {
    char id[32];
    int code;
    int found; /* times in the list afterwards */
};

struct load {
    struct store *store;
    const struct script *script; /* appends an id; NULL: by a command */
    struct mutex lock;
    struct cond changed;
    size_t acknowledged, failed; /* guarded by lock */
    _Atomic(bool) stop;
};

struct worker {
    struct load *load;
    struct thread thread;
    int number;
    VEC(struct attempt) attempts;
};

static int append_by_command(struct load *l, const char *id)
{
    char line[64];
    const char *got;

    snprintf(line, sizeof(line), "RPUSH ids %s", id);
    return ask(l->store, line, &got);
}

/* The script answers with the id, so an answer that reached another caller is found. */
static int append_by_script(struct load *l, const char *id)
{
    struct str keys[] = {STR("ids")}, args[] = {str_z(id)};
    struct script_run run = {.script = l->script, .keys = {keys, 1}, .args = {args, 1}};
    struct arena arena = {0};
    struct reply *reply;
    int code = store_eval(l->store, &arena, &reply, &run, NULL);

    if (code == 0)
        CHECK_STR(reply->str, str_z(id));
    arena_release(&arena);
    return code;
}

static void work(void *ctx)
{
    struct worker *w = ctx;

    for (int i = 0; !w->load->stop; i++) {
        struct attempt a = {0};
        snprintf(a.id, sizeof(a.id), "%d-%d", w->number, i);
        a.code = (w->load->script ? append_by_script : append_by_command)(w->load, a.id);
        vec_push(&w->attempts, a);
        mutex_lock(&w->load->lock);
        *(a.code ? &w->load->failed : &w->load->acknowledged) += 1;
        cond_signal(&w->load->changed);
        mutex_unlock(&w->load->lock);
    }
}

static void wait_for(struct load *l, const size_t *counter, size_t more)
{
    mutex_lock(&l->lock);
    size_t target = *counter + more;
    while (*counter < target)
        cond_wait(&l->changed, &l->lock);
    mutex_unlock(&l->lock);
}

static void count_found(struct load *l, struct worker *workers)
{
    struct arena arena = {0};
    struct reply *reply;
    struct map by_id;
    struct err err = {0};

    map_init(&by_id);
    for (int i = 0; i < WORKERS; i++)
        vec_each (&workers[i].attempts, struct attempt *, a)
            map_put(&by_id, str_z(a->id), a);
    CHECK_OK(
        store_call(l->store, &arena, &reply, &err, STR("LRANGE"), STR("ids"), STR("0"), STR("-1")));
    for (size_t i = 0; i < reply->count; i++) {
        struct attempt *a = map_get(&by_id, reply->items[i].str);
        CHECK(a);
        a->found++;
    }
    map_release(&by_id);
    arena_release(&arena);
}

static void check_attempt(const struct attempt *a)
{
    if (a->code == 0)
        CHECK_INT(a->found, 1);
    else if (a->code == ERR_UNAVAILABLE)
        CHECK_INT(a->found, 0);
    else if (a->code == ERR_CLOSED || a->code == ERR_TIMEOUT)
        CHECK(a->found <= 1);
    else
        test_fail(__FILE__, __LINE__, "a call ended with %s", err_name(a->code));
}

static void kill_under_load(const struct script *script)
{
    const char *extra[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};
    struct redis_server server = {.extra = extra};
    struct load load = {.script = script};
    struct worker workers[WORKERS] = {0};
    struct err err = {0};

    need_redis_server(&server);
    load.store = store_with((struct store_redis_options){
        .url = str_z(server.url), .max_connections = script ? 2 : 0, .timeout_ms = TIMEOUT_MS});
    mutex_init(&load.lock, "test.load");
    cond_init(&load.changed);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].load = &load;
        workers[i].number = i;
        CHECK_OK(thread_start(&workers[i].thread, "load", 0, work, &workers[i], &err));
    }
    for (int round = 0; round < ROUNDS; round++) {
        wait_for(&load, &load.acknowledged, STEPS);
        redis_server_kill(&server);
        wait_for(&load, &load.failed, WORKERS * 2);
        CHECK(redis_server_start(&server));
    }
    wait_for(&load, &load.acknowledged, STEPS);
    load.stop = true;
    for (int i = 0; i < WORKERS; i++)
        thread_join(&workers[i].thread);
    count_found(&load, workers);
    for (int i = 0; i < WORKERS; i++) {
        vec_each (&workers[i].attempts, struct attempt *, a)
            check_attempt(a);
        vec_release(&workers[i].attempts);
    }
    store_close(load.store);
    cond_release(&load.changed);
    mutex_release(&load.lock);
    redis_server_kill(&server);
}

TEST(redis_failure, killed_under_load_every_code_keeps_its_promise)
{
    kill_under_load(NULL);
}

TEST(redis_failure, killed_under_load_every_run_of_a_group_keeps_its_promise)
{
    struct script append = {.name = "test/append",
                            .source = STR("redis.call('RPUSH', KEYS[1], ARGV[1])"
                                          "return ARGV[1]"),
                            .grouped = true};

    script_init(&append);
    kill_under_load(&append);
}
