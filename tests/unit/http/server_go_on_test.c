/* Handlers that go on where they may wait, with what they have found out. */
#include "unit/http/server_lab.h"

#include <stdatomic.h>
#include <unistd.h>

#define GET "GET /word HTTP/1.1\r\nHost: x\r\n\r\n"

/* What a handler hands on to itself, in the arena of the request. */
struct found {
    struct str path;
    bool moved;
};

static _Atomic(unsigned) begun, moved;
static _Atomic(bool) held; /* the pool's threads stay where they are */

static int answer(struct http_request *req, void *ctx, bool in_time)
{
    struct found *f = ctx;

    if (!in_time)
        return http_send_text(req, 503, STR("text/plain"), STR("full"));
    CHECK(http_may_block(req));
    f->moved = true;
    moved++;
    LAB_UNTIL(!held);
    return http_send_text(req, 200, STR("text/plain"), f->path);
}

static int go_on(struct http_request *req, void *ctx)
{
    struct found *f = arena_new(http_request_arena(req), struct found);

    (void)ctx;
    CHECK(!http_may_block(req));
    begun++;
    f->path = arena_str(http_request_arena(req), http_request_head(req)->path);
    return http_go_on(req, answer, f);
}

TEST(http_go_on, a_handler_goes_on_with_what_it_has_found)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.handler = go_on});
    int fd = lab_dial(&lab);
    for (unsigned i = 1; i <= 20; i++) {
        lab_ask(fd, &a, STR(GET), 200);
        CHECK_STR(buf_str(&a.body), STR("/word"));
        CHECK_INT(begun, i);
        CHECK_INT(moved, i);
    }
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}

TEST(http_go_on, without_a_thread_the_handler_gives_up)
{
    struct pool *pool = pool_new("one", 1, 1, 128 * 1024);
    struct lab lab = {0};
    struct answer a = {0};
    int fds[3];

    held = true;
    lab_start(&lab, (struct http_server_options){.handler = go_on, .pool = pool});
    for (unsigned i = 0; i < 2; i++) { /* one on the thread, one in its queue */
        fds[i] = lab_dial(&lab);
        lab_say(fds[i], STR(GET));
        LAB_UNTIL(moved == 1 && pool_stats(pool).waiting == i); /* else the queue might be full */
    }
    fds[2] = lab_dial(&lab);
    lab_ask(fds[2], &a, STR(GET), 503);
    CHECK_STR(buf_str(&a.body), STR("full"));
    held = false;
    for (unsigned i = 0; i < 2; i++) {
        lab_read(fds[i], &a, false);
        CHECK_INT(a.status, 200);
    }
    answer_release(&a);
    for (unsigned i = 0; i < 3; i++)
        close(fds[i]);
    lab_end(&lab);
    pool_free(pool);
}

/* The whole body must be there before the handler goes on a second time. */
static int with_body(struct http_request *req, void *ctx, bool in_time)
{
    char bytes[8];
    struct err err = {0};
    int code = http_await_body(req, sizeof(bytes));

    (void)ctx;
    CHECK(in_time);
    moved++;
    if (code < 0)
        return code;
    CHECK_OK(reader_read_full(http_request_body(req), bytes, sizeof(bytes), &err));
    return http_send_text(req, 200, STR("text/plain"), str_n(bytes, sizeof(bytes)));
}

static int go_on_with_body(struct http_request *req, void *ctx)
{
    begun++;
    return http_may_block(req) ? with_body(req, ctx, true) : http_go_on(req, with_body, ctx);
}

TEST(http_go_on, a_body_may_be_waited_for_afterwards)
{
    struct lab lab = {0};
    struct answer a = {0};

    lab_start(&lab, (struct http_server_options){.handler = go_on_with_body});
    int fd = lab_dial(&lab);
    lab_say(fd, STR("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n"));
    LAB_UNTIL(moved == 1);
    lab_ask(fd, &a, STR("12345678"), 200);
    CHECK_STR(buf_str(&a.body), STR("12345678"));
    CHECK_INT(begun, 2);
    answer_release(&a);
    close(fd);
    lab_end(&lab);
}
