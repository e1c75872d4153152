/* Handlers that wait for a socket of their own without a thread. */
#include "base/clock.h"
#include "unit/http/server_lab.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 8, ROUNDS = 50 };

/* One waiting handler for each value of the path's last digit. */
struct waiter {
    int ours, theirs; /* a pair of sockets: the handler's, the test's */
    _Atomic(unsigned) waiting;
};

static struct waiter waiters[CLIENTS];
static uint64_t timeout_ms = MS_PER_MINUTE,
                late_ms = 50; /* the second of paths that begin with /late */
static _Atomic(unsigned) on_pool;
static _Atomic(bool) held; /* handlers come in, but do not wait yet */
static _Atomic(unsigned) came;

static struct waiter *waiter_of(struct http_request *req)
{
    struct str path = http_request_head(req)->path;

    return &waiters[(path.p[path.len - 1] - '0') % CLIENTS];
}

/* A byte 'a' asks for one more, 'p' for a thread, any other is the answer. */
static int resumed(struct http_request *req, void *ctx, bool in_time)
{
    struct waiter *w = ctx;
    char byte = 0;

    if (!in_time)
        return http_send_text(req, 504, STR("text/plain"), STR("late"));
    if (recv(w->ours, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
        return http_send_text(req, 502, STR("text/plain"), STR("ended"));
    if (byte == 'p' && !http_may_block(req))
        return ERR_AGAIN;
    on_pool += http_may_block(req);
    CHECK_INT(recv(w->ours, &byte, 1, 0), 1);
    if (byte == 'a') {
        http_await(req, w->ours, timeout_ms, resumed, w);
        w->waiting++;
        return 0;
    }
    return http_send_text(req, 200, STR("text/plain"), str_n(&byte, 1));
}

static int handler(struct http_request *req, void *ctx)
{
    struct waiter *w = waiter_of(req);

    (void)ctx;
    came++;
    LAB_UNTIL(!held);
    bool late = str_starts(http_request_head(req)->path, STR("/late"));
    http_await(req, w->ours, late ? late_ms : timeout_ms, resumed, w);
    w->waiting++;
    return 0;
}

static void begin(struct lab *lab)
{
    for (int i = 0; i < CLIENTS; i++) {
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        waiters[i] = (struct waiter){pair[0], pair[1], 0};
    }
    lab_start(lab, (struct http_server_options){.handler = handler, .rate_window_ms = 100});
}

static void end(struct lab *lab)
{
    lab_end(lab);
    for (int i = 0; i < CLIENTS; i++) {
        close(waiters[i].ours);
        close(waiters[i].theirs);
    }
}

static void tell(int i, const char *bytes)
{
    CHECK_INT(send(waiters[i].theirs, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
}

TEST(http_await, a_handler_goes_on_when_its_socket_has_something)
{
    struct lab lab;
    struct answer a = {0};

    begin(&lab);
    int fd = lab_dial(&lab);
    for (unsigned i = 0; i < ROUNDS; i++) {
        lab_say(fd, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"));
        LAB_UNTIL(waiters[0].waiting == 2 * i + 1);
        tell(0, "a");
        LAB_UNTIL(waiters[0].waiting == 2 * i + 2);
        tell(0, "x");
        lab_read(fd, &a, false);
        CHECK_INT(a.status, 200);
        CHECK_STR(buf_str(&a.body), STR("x"));
    }
    answer_release(&a);
    close(fd);
    end(&lab);
}

TEST(http_await, what_was_sent_meanwhile_is_served_afterwards)
{
    struct lab lab;
    struct answer a = {0};

    begin(&lab);
    int fd = lab_dial(&lab);
    lab_say(fd, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\nGET /1 HTTP/1.1\r\nHost: x\r\n\r\n"));
    tell(1, "y");
    LAB_UNTIL(waiters[0].waiting == 1);
    CHECK_INT(waiters[1].waiting, 0);
    tell(0, "x");
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("x"));
    lab_read(fd, &a, false);
    CHECK_STR(buf_str(&a.body), STR("y"));
    answer_release(&a);
    close(fd);
    end(&lab);
}

TEST(http_await, a_handler_may_go_on_where_it_may_wait)
{
    struct lab lab;
    struct answer a = {0};

    begin(&lab);
    int fd = lab_dial(&lab);
    tell(0, "p");
    lab_ask(fd, &a, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    CHECK_INT(on_pool, 1);
    answer_release(&a);
    close(fd);
    end(&lab);
}

TEST(http_await, the_end_of_the_socket_is_told)
{
    struct lab lab;
    struct answer a = {0};

    begin(&lab);
    int fd = lab_dial(&lab);
    shutdown(waiters[0].theirs, SHUT_RDWR);
    lab_ask(fd, &a, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"), 502);
    answer_release(&a);
    close(fd);
    end(&lab);
}

TEST(http_await, a_socket_that_stays_silent_is_given_up)
{
    struct lab lab;
    struct answer a = {0};

    timeout_ms = 20;
    begin(&lab);
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"), 504);
    CHECK_INT(lab_stats(&lab).timeouts, 1);
    answer_release(&a);
    close(fd);
    end(&lab);
}

TEST(http_await, a_descriptor_that_cannot_be_waited_for_is_given_up)
{
    struct lab lab;
    struct answer a = {0};

    begin(&lab);
    close(waiters[0].ours);
    waiters[0].ours = -1;
    int fd = lab_dial(&lab);
    lab_ask(fd, &a, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"), 504);
    answer_release(&a);
    close(fd);
    waiters[0].ours = dup(waiters[0].theirs); /* for the end */
    end(&lab);
}

TEST(http_await, a_stop_ends_handlers_whose_sockets_stay_silent)
{
    struct lab lab;
    struct answer a = {0};
    int fds[CLIENTS];

    begin(&lab);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = lab_dial(&lab);
        lab_sayf(fds[i], "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
        LAB_UNTIL(waiters[i].waiting == 1);
    }
    CHECK(http_server_stop(lab.server, clock_mono_ns()));
    CHECK_INT(lab_stats(&lab).connections, 0);
    CHECK_INT(lab_stats(&lab).timeouts, 0);
    for (int i = 0; i < CLIENTS; i++) {
        CHECK(lab_is_closed(fds[i], &a));
        close(fds[i]);
    }
    answer_release(&a);
    end(&lab);
}

static void stop_now(void *ctx)
{
    struct lab *lab = ctx;
    (void)http_server_stop(lab->server, clock_mono_ns());
}

TEST(http_await, a_handler_that_begins_to_wait_after_the_drop_is_ended_too)
{
    struct lab lab;
    struct answer a = {0};
    struct thread stopper;
    struct err err = {0};

    timeout_ms = MS_PER_HOUR; /* past the test's own limit */
    held = true;
    begin(&lab);
    int fd = lab_dial(&lab);
    lab_say(fd, STR("GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"));
    LAB_UNTIL(came == 1);
    CHECK_OK(thread_start(&stopper, "stopper", 0, stop_now, &lab, &err));
    CHECK(lab_is_closed(fd, &a)); /* the stop has passed it, while a thread had it */
    held = false;
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    CHECK_INT(waiters[0].waiting, 1);
    thread_join(&stopper);
    answer_release(&a);
    close(fd);
    end(&lab);
}

struct client {
    struct thread thread;
    struct lab *lab;
    int index, wrong;
};

/* Some are answered, some time out: each must get its own. */
static void ask_on(void *ctx)
{
    struct client *c = ctx;
    struct answer a = {0};
    int fd = lab_dial(c->lab);

    for (int i = 0; i < ROUNDS; i++) {
        char byte = (char)('A' + i % 26), told[2] = {byte, 0};
        lab_sayf(fd, "GET /%s%d HTTP/1.1\r\nHost: x\r\n\r\n", i % 10 ? "" : "late", c->index);
        if (i % 10)
            tell(c->index, told);
        lab_read(fd, &a, false);
        c->wrong += i % 10 ? a.status != 200 || a.body.p[0] != byte : a.status != 504;
        if (a.status == 504) { /* its socket was shut: a new one */
            int pair[2];
            CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
            close(waiters[c->index].ours);
            close(waiters[c->index].theirs);
            waiters[c->index].ours = pair[0];
            waiters[c->index].theirs = pair[1];
        }
    }
    answer_release(&a);
    close(fd);
}

TEST(http_await, answers_and_time_outs_of_many_do_not_mix)
{
    struct client clients[CLIENTS] = {0};
    struct lab lab;
    struct err err = {0};

    begin(&lab);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.lab = &lab, .index = i};
        CHECK_OK(thread_start(&clients[i].thread, "client", 0, ask_on, &clients[i], &err));
    }
    for (int i = 0; i < CLIENTS; i++) {
        thread_join(&clients[i].thread);
        CHECK_INT(clients[i].wrong, 0);
    }
    end(&lab);
}
