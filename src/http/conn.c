/* The life of a connection: its phases, the thread that owns it, and its reactions to events.
 * docs/http.md draws the phases; a number such as [1] is an invariant of that page. */
#include "http/server_int.h"
#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINGER_BYTES = 32 * 1024 * 1024, LINGER_TURN = 16 };

static const char slow_down[] = "SlowDown: too many requests at once, try again later\n";

static void conn_close(struct conn *c)
{
    struct http_server *s = c->server;

    conn_forget(c);
    if (c->req)
        request_give(s, c->req);
    free(c->saved);
    tls_close(c->tls);
    fd_close(&c->fd);
    free(c);
    /* The count is lowered under the lock, because the server may be freed once its last connection
     * is closed (docs/http.md [9]). */
    mutex_lock(&s->lock);
    if (atomic_fetch_sub(&s->connections, 1) == 1)
        cond_broadcast(&s->changed);
    mutex_unlock(&s->lock);
}

static uint64_t deadline_in(struct http_server *s, uint64_t ms)
{
    return atomic_load_explicit(&s->now_ms, memory_order_relaxed) + s->tick_ms + ms;
}

/* Arms a descriptor for one event. The direct system call hides EPOLL_CTL_MOD from ThreadSanitizer,
 * which would report a race between this use of the descriptor and its close by the next owner.
 * ThreadSanitizer has no such problem with EPOLL_CTL_ADD. */
static int arm(int epoll, int op, int fd, struct epoll_event *event)
{
#if defined(__SANITIZE_THREAD__)
    if (op == EPOLL_CTL_MOD)
        return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
#endif
    return epoll_ctl(epoll, op, fd, event);
}

/* Lets epoll wait for an event on the connection. After arm() another thread may own the
 * connection. So nothing of the connection or the server is read after `due` is set (docs/http.md
 * [1]). */
void conn_park(struct conn *c, enum phase phase, uint32_t events)
{
    struct http_server *s = c->server;
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = c};
    uint64_t deadline = phase == PHASE_IDLE || phase == PHASE_READY
                            ? deadline_in(s, s->timeout_ms[phase])
                            : c->phase_end;
    int op = c->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd = c->fd, epoll = s->epoll;

    if (phase == PHASE_IDLE && server_stopping(s)) {
        conn_close(c);
        return;
    }
    if (events & EPOLLIN && c->tls && tls_pending(c->tls))
        /* epoll does not know of bytes that OpenSSL has already read. EPOLLOUT makes epoll report
         * the connection at once. */
        event.events |= EPOLLOUT;
    c->registered = true;
    atomic_store(&c->due, deadline << DUE_SHIFT | phase);
    if (arm(epoll, op, fd, &event) < 0) {
        atomic_store(&c->due, PHASE_RUNNING);
        conn_close(c);
    }
}

/* Like conn_park(), but epoll waits for the socket that the handler named with http_await().
 * Returns false when epoll cannot wait for that socket; the calling thread then still owns the
 * connection. */
static bool park_await(struct conn *c)
{
    struct http_server *s = c->server;
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = c};
    int epoll = s->epoll, fd = c->req->await.fd;
    uint64_t deadline = deadline_in(s, c->req->await.timeout_ms);

    atomic_store(&c->due, deadline << DUE_SHIFT | PHASE_AWAIT);
    /* A pooled socket may already be in the epoll set from an earlier request, so EPOLL_CTL_MOD is
     * tried first. */
    if (arm(epoll, EPOLL_CTL_MOD, fd, &event) == 0 ||
        (errno == ENOENT && arm(epoll, EPOLL_CTL_ADD, fd, &event) == 0))
        return true;
    atomic_store(&c->due, PHASE_RUNNING);
    return false;
}

/* Whether the peer received the response at the minimum rate during this window. Begins the next
 * window. */
static bool still_taking(struct conn *c)
{
    struct http_server *s = c->server;
    uint64_t moved = conn_acknowledged(c), mark = atomic_load(&c->window_mark);

    atomic_store(&c->window_mark, moved);
    return (moved - mark) * MS_PER_S >= s->body_min_rate * s->window_ms;
}

/* Whether a peer that missed the deadline of this phase gets an answer before the connection is
 * closed. */
static bool is_answered_late(enum phase phase)
{
    return phase == PHASE_IDLE || phase == PHASE_HEAD || phase == PHASE_BODY;
}

void conn_sweep(struct conn *c, uint64_t now_ms)
{
    uint64_t due = atomic_load(&c->due), next;
    enum phase phase = due & DUE_PHASE;

    /* If http_server_stop() ran before the connection was parked, it has not seen the
     * connection. */
    if (server_stopping(c->server))
        conn_hang_up(c, !atomic_load(&c->server->dropping));
    if (phase == PHASE_RUNNING || due & DUE_EXPIRED || due >> DUE_SHIFT > now_ms)
        return;
    if (phase == PHASE_SENDING && still_taking(c)) {
        next = (now_ms + c->server->window_ms) << DUE_SHIFT | phase;
        atomic_compare_exchange_strong(&c->due, &due, next);
        return;
    }
    /* The connection is marked as expired before the shutdown. If a thread has just taken the
     * connection, marking fails, that thread keeps the connection, and the socket is not shut down
     * (docs/http.md [3]). */
    if (!atomic_compare_exchange_strong(&c->due, &due, due | DUE_EXPIRED))
        return;
    count(&counters_mine(c->server)->timeouts, 1);
    /* In PHASE_AWAIT the sweeper holds the lock of the stripe here, and the thread that gets the
     * event waits for that lock. So the descriptor is still open (docs/http.md [10]). */
    if (phase == PHASE_AWAIT)
        shutdown(c->req->await.fd, SHUT_RDWR);
    else
        shutdown(c->fd, is_answered_late(phase) ? SHUT_RD : SHUT_RDWR);
}

void conn_hang_up(struct conn *c, bool only_idle)
{
    uint64_t due = atomic_load(&c->due);
    enum phase ends = only_idle ? PHASE_IDLE : PHASE_AWAIT;

    if (!only_idle)
        shutdown(c->fd, SHUT_RDWR);
    if ((due & DUE_PHASE) != ends || due & DUE_EXPIRED ||
        !atomic_compare_exchange_strong(&c->due, &due, due | DUE_EXPIRED))
        return;
    if (only_idle)
        shutdown(c->fd, SHUT_RD);
    else /* epoll watches only the awaited socket (docs/http.md [10]) */
        shutdown(c->req->await.fd, SHUT_RDWR);
}

static void to_idle(struct conn *c)
{
    request_give(c->server, c->req);
    c->req = NULL;
    conn_park(c, PHASE_IDLE, EPOLLIN);
}

static void linger_on(struct conn *c)
{
    char scratch[16 * 1024];

    for (int i = 0; i < LINGER_TURN; i++) {
        size_t got;
        int code = conn_recv_now(c, scratch, sizeof(scratch), &got);
        if (code == ERR_AGAIN)
            break;
        if (code < 0 || got == 0 || got >= c->linger_left) {
            conn_close(c);
            return;
        }
        c->linger_left -= got;
    }
    conn_park(c, PHASE_LINGER, EPOLLIN);
}

/* Closes a connection whose peer may still be sending. A close with unread bytes would make the
 * kernel reset the connection, and the reset may overtake our answer. So only our direction is shut
 * down, and for a while all bytes that arrive are read and dropped. */
static void conn_linger(struct conn *c)
{
    struct http_server *s = c->server;

    request_give(s, c->req);
    c->req = NULL;
    tls_close(c->tls);
    c->tls = NULL;
    shutdown(c->fd, SHUT_WR);
    c->linger_left = LINGER_BYTES;
    c->phase_end = deadline_in(s, s->timeout_ms[PHASE_LINGER]);
    linger_on(c);
}

/* Returns the path for the log. It has no query, because a query may contain a signature or a
 * token. */
static struct str logged_path(const struct http_request *req)
{
    const struct http_server *s = req->conn->server;

    return s->log_path ? s->log_path(&req->head) : req->head.path;
}

static void log_request(struct http_request *req)
{
    const struct http_head *head = &req->head;

    log_debug(http_request_log(req), "http.request", log_s("method", head->method_text),
              log_s("path", logged_path(req)), log_i("status", req->status),
              log_u("sent", req->sent),
              log_u("us", (clock_mono_ns() - req->started_ns) / NS_PER_US));
}

static void count_response(struct http_request *req)
{
    struct counters *mine = counters_mine(req->conn->server);

    count(&mine->requests, 1);
    count(&mine->status[req->status / 100], 1);
    if (req->started_ns)
        log_request(req);
}

/* Ends a response that was sent. Returns true when the connection is free for its next request. */
static bool response_done(struct conn *c)
{
    struct http_request *req = c->req;
    int rest;

    count_response(req);
    rest = req->body.done ? 0 : body_skip(req);
    if (req->close) {
        if (rest == 0 && !req->linger)
            conn_close(c);
        else
            conn_linger(c);
        return false;
    }
    if (rest == ERR_AGAIN && !req->head.chunked && req->body.left <= SKIP_MAX &&
        !req->body.wants_continue) {
        c->phase_end = deadline_in(c->server, c->server->timeout_ms[PHASE_SKIP]);
        conn_park(c, PHASE_SKIP, EPOLLIN);
        return false;
    }
    if (rest < 0) {
        conn_linger(c);
        return false;
    }
    request_reset(req);
    return true;
}

static bool to_pool(struct conn *c, enum work work);

static void park_sending(struct conn *c)
{
    if (c->phase_end == 0) {
        c->phase_end = deadline_in(c->server, c->server->window_ms);
        atomic_store(&c->window_mark, conn_acknowledged(c));
    }
    conn_park(c, PHASE_SENDING, EPOLLOUT);
}

/* Sends the rest of the response. Returns true when the connection is free for its next request,
 * and false when this thread no longer owns the connection. */
static bool send_on(struct conn *c, bool may_read_disk)
{
    struct http_request *req = c->req;
    enum pump result = PUMP_DONE;

    if (c->broken)
        result = PUMP_BROKEN;
    else if (req->file.len || req->out_at < req->out.len)
        result = pump_response(req, may_read_disk);
    if (result == PUMP_COLD) {
        if (to_pool(c, WORK_PUMP))
            return false;
        /* The pool is full: reading the disk here delays other connections, but the response is
         * sent. */
        result = pump_response(req, true);
    }
    if (result == PUMP_DONE) {
        c->phase_end = 0;
        return response_done(c);
    }
    if (result == PUMP_BROKEN)
        conn_close(c);
    else
        park_sending(c);
    return false;
}

/* Returns the status that answers a handler's error, or 0 for no answer. An error that came from
 * the body's reader is the peer's fault. */
static int failure_status(const struct http_request *req, int code)
{
    if (code == ERR_BUSY)
        return 503;
    if (code != req->body.failed)
        return 500;
    return code == ERR_TIMEOUT ? 408 : code == ERR_TOO_LARGE ? 413 : code == ERR_PARSE ? 400 : 0;
}

static void handler_failed(struct http_request *req, int code)
{
    int status = failure_status(req, code);

    if (req->conn->broken)
        return; /* the peer has closed the connection or is too slow, which is no failure of weir */
    if (status == 500)
        log_error(http_request_log(req), "http.handler_failed", log_z("error", err_name(code)),
                  log_s("method", req->head.method_text), log_s("path", logged_path(req)));
    else
        count(&counters_mine(req->conn->server)->bad_requests, 1);
    if (status == 0 || req->stage > STAGE_HEAD) {
        req->conn->broken = true;
        return;
    }
    req->linger = true;
    response_refuse(req, status, status == 503 ? slow_down : http_reason(status));
}

static bool conn_resume(struct conn *c, bool may_block);

/* Continues after the handler has returned `code`: the handler has answered, has failed, or waits
 * for a socket. The result is that of send_on(). */
static bool handled(struct conn *c, int code)
{
    struct http_request *req = c->req;

    if (code == 0 && req->await.fn) {
        if (park_await(c))
            return false;
        req->await.in_time = false;
        return conn_resume(c, false);
    }
    if (code < 0 || req->stage == STAGE_STREAM) {
        handler_failed(req, code);
    } else if (req->stage <= STAGE_HEAD) {
        if (req->stage == STAGE_NONE)
            http_respond(req, 204);
        if (http_send(req, STR_EMPTY) < 0)
            c->broken = true;
    }
    return send_on(c, req->may_block);
}

/* Parks the connection until the bytes for which the handler waits have arrived; then the handler
 * is called again. The deadline is the time that the bytes need at the minimum rate, plus one
 * window. */
static void park_body(struct conn *c)
{
    struct http_server *s = c->server;
    uint64_t ms = s->window_ms + body_missing(c->req) * MS_PER_S / s->body_min_rate;

    request_rewind(c->req);
    if (body_ask(c->req) < 0) {
        conn_close(c);
        return;
    }
    c->phase_end = deadline_in(s, ms);
    conn_park(c, PHASE_BODY, EPOLLIN);
}

/* Lets the pool call `w.fn`. When the pool has no thread, `w.fn` is called here with in_time false,
 * so that it gives up. The result is that of send_on(). */
static bool go_on_where_it_may_wait(struct conn *c, struct await w)
{
    c->req->await = w;
    if (to_pool(c, WORK_RESUME))
        return false;
    c->req->await.fn = NULL;
    return handled(c, w.fn(c->req, w.ctx, false));
}

/* Runs the handler. The result is that of send_on(). */
static bool conn_handle(struct conn *c, bool may_block)
{
    struct http_server *s = c->server;
    struct http_request *req = c->req;
    int code;

    req->may_block = may_block;
    code = s->handler(req, s->ctx);
    seat_leave(req);
    if (code == ERR_AGAIN && req->await_body) {
        park_body(c);
        return false;
    }
    if (code == ERR_AGAIN && !may_block && req->await.fn)
        return go_on_where_it_may_wait(c, req->await);
    if (code == ERR_AGAIN && !may_block && req->stage <= STAGE_HEAD) {
        request_rewind(req);
        if (to_pool(c, WORK_HANDLER))
            return false;
        req->linger = true;
        response_refuse(req, 503, slow_down);
        return send_on(c, false);
    }
    return handled(c, code);
}

/* Continues a handler that waited. The result is that of send_on(). */
static bool conn_resume(struct conn *c, bool may_block)
{
    struct http_request *req = c->req;
    struct await w = req->await;
    int code;

    req->may_block = may_block;
    req->await.fn = NULL;
    code = w.fn(req, w.ctx, w.in_time);
    seat_leave(req);
    if (code == ERR_AGAIN && req->await_body) {
        park_body(c);
        return false;
    }
    if (code == ERR_AGAIN && !may_block && req->stage == STAGE_NONE)
        return go_on_where_it_may_wait(c, w);
    return handled(c, code);
}

/* Answers a request with an error status without calling a handler. */
static void conn_refuse(struct conn *c, int status, const char *text)
{
    struct http_request *req = c->req;

    count(&counters_mine(c->server)->bad_requests, 1);
    req->head.method = HTTP_METHOD_OTHER;
    req->head.method_text = req->head.target = STR_EMPTY;
    req->head.minor = 1;
    req->head.keep_alive = req->head.chunked = req->head.expect_continue = false;
    req->head.content_length = 0;
    req->head.size = req->in_len;
    request_begin(req);
    req->linger = true;
    response_refuse(req, status, text);
    send_on(c, false);
}

static int refusal_status(const struct http_request *req, int code)
{
    size_t line = size_min(req->in_len, HTTP_MAX_LINE + 2);

    switch (code) {
    case ERR_TOO_LARGE:
        return memchr(req->in, '\n', line) ? 431 : 414;
    case ERR_UNSUPPORTED:
        return 501;
    case ERR_VERSION:
        return 505;
    default:
        return 400;
    }
}

/* Attaches a struct http_request to the connection. Returns false when there is no memory. */
static bool attach_request(struct conn *c)
{
    struct http_request *req = request_take(c->server);

    if (!req)
        return false;
    req->conn = c;
    c->req = req;
    if (c->saved) {
        memcpy(req->in, c->saved, c->saved_len);
        req->in_len = c->saved_len;
        free(c->saved);
        c->saved = NULL;
        c->saved_len = 0;
    }
    return true;
}

/* Waits for the rest of a head. The bytes that have arrived are kept in a block of exactly their
 * size, so that a slow sender costs no more memory than the bytes that it sent (docs/http.md [4]).
 */
static void wait_for_head(struct conn *c)
{
    struct http_request *req = c->req;
    struct http_server *s = c->server;

    if (req->in_len == 0) {
        to_idle(c);
        return;
    }
    if (c->phase_end == 0)
        c->phase_end = deadline_in(s, s->timeout_ms[PHASE_HEAD]);
    c->saved = malloc(req->in_len);
    if (!c->saved) {
        conn_close(c);
        return;
    }
    c->saved_len = req->in_len;
    memcpy(c->saved, req->in, req->in_len);
    request_give(s, req);
    c->req = NULL;
    conn_park(c, PHASE_HEAD, EPOLLIN);
}

static int conn_receive(struct conn *c)
{
    struct http_request *req = c->req;
    size_t got;
    int code;

    do {
        code = conn_recv_now(c, req->in + req->in_len, READ_BUFFER - req->in_len, &got);
        if (code < 0)
            return code;
        req->in_len += got;
        if (got == 0)
            return ERR_CLOSED;
    } while (c->tls && req->in_len < READ_BUFFER && tls_pending(c->tls));
    return 0;
}

static int conn_parse(struct conn *c, struct err *err)
{
    struct http_request *req = c->req;
    return http_parse_request(&req->head, str_n(req->in, req->in_len), &c->seen, err);
}

/* Reads a whole head into c->req. With `leftover` the bytes in the buffer are tried first, before
 * more are received from the socket. */
static int next_head(struct conn *c, bool leftover, struct err *err)
{
    int code = leftover && c->req->in_len ? conn_parse(c, err) : ERR_AGAIN;

    if (code == ERR_AGAIN) {
        code = conn_receive(c);
        if (code == 0)
            code = conn_parse(c, err);
    }
    if (code != ERR_AGAIN)
        c->seen = 0;
    return code;
}

/* Begins a request whose head is complete. The result is that of send_on(). */
static bool conn_begin_request(struct conn *c)
{
    struct http_server *s = c->server;
    struct http_request *req = c->req;

    c->phase_end = 0;
    request_begin(req);
    req->started_ns = log_enabled(s->log, LOG_DEBUG) ? clock_mono_ns() : 0;
    if (s->max_body && req->head.has_length && req->head.content_length > s->max_body) {
        count(&counters_mine(s)->bad_requests, 1);
        req->linger = true;
        response_refuse(req, 413, http_reason(413));
        return send_on(c, false);
    }
    return conn_handle(c, false);
}

/* Serves requests as long as the buffer has complete requests, but at most TURN_REQUESTS
 * requests. */
static void conn_serve(struct conn *c, bool leftover)
{
    struct err err;

    if (!c->req && !attach_request(c)) {
        conn_close(c);
        return;
    }
    for (int i = 0; i < TURN_REQUESTS; i++) {
        int code = next_head(c, leftover, &err);
        if (code == ERR_AGAIN) {
            wait_for_head(c);
            return;
        }
        if (code == ERR_CLOSED) {
            conn_close(c);
            return;
        }
        if (code < 0) {
            conn_refuse(c, refusal_status(c->req, code), err.text);
            return;
        }
        if (!conn_begin_request(c))
            return;
        if (c->req->in_len == 0 && !(c->tls && tls_pending(c->tls))) {
            to_idle(c);
            return;
        }
        leftover = true;
    }
    conn_park(c, PHASE_READY, EPOLLIN | EPOLLOUT);
}

/* Continues a connection that is ready for its next request. It waits with epoll instead of trying
 * a read: usually no byte of the next request has arrived yet, and such a read would find
 * nothing. */
static void conn_go_on(struct conn *c)
{
    if (c->req->in_len)
        conn_serve(c, true);
    else
        to_idle(c);
}

/* Like conn_go_on(), but leaves the next request to a fast worker. */
static void go_on_later(struct conn *c)
{
    if (c->req->in_len)
        conn_park(c, PHASE_READY, EPOLLIN | EPOLLOUT);
    else
        to_idle(c);
}

/* Receives more of a body that a handler waits for. */
static void body_on(struct conn *c)
{
    int code = conn_receive(c);

    if (code == ERR_AGAIN || (code == 0 && body_missing(c->req))) {
        conn_park(c, PHASE_BODY, EPOLLIN);
    } else if (code < 0) {
        conn_close(c);
    } else {
        c->phase_end = 0;
        c->req->await_body = 0;
        if (conn_handle(c, false))
            conn_go_on(c);
    }
}

static void skip_on(struct conn *c)
{
    struct http_request *req = c->req;
    size_t got;
    int code;

    req->body.at = req->in_len = req->head.size;
    code = conn_recv_now(c, req->in + req->in_len, READ_BUFFER - req->in_len, &got);
    if (code == 0 && got == 0)
        code = ERR_CLOSED;
    if (code == 0) {
        req->in_len += got;
        code = body_skip(req);
    }
    if (code == ERR_AGAIN) {
        conn_park(c, PHASE_SKIP, EPOLLIN);
    } else if (code < 0) {
        conn_close(c);
    } else {
        c->phase_end = 0;
        request_reset(req);
        conn_serve(c, true);
    }
}

/* Makes one step of a TLS handshake. A step needs too much CPU time for a fast worker, so it runs
 * on the pool. Between two steps epoll waits for the peer, and no thread does. */
static void shake_hands(struct conn *c)
{
    struct http_server *s = c->server;
    struct tls_context *tls;
    bool to_write = false;
    int code;

    mutex_lock(&s->lock);
    tls = tls_context_ref(s->tls);
    mutex_unlock(&s->lock);
    code = tls_accept_now(&c->tls, tls, c->fd, &to_write, NULL);
    tls_context_unref(tls);
    if (code == ERR_AGAIN) {
        conn_park(c, PHASE_HELLO, to_write ? EPOLLOUT : EPOLLIN);
    } else if (code < 0) {
        conn_close(c);
    } else {
        c->phase_end = 0;
        conn_park(c, PHASE_IDLE, EPOLLIN);
    }
}

static void on_pool(void *ctx)
{
    struct conn *c = ctx;

    switch (c->work) {
    case WORK_HANDSHAKE:
        shake_hands(c);
        return;
    case WORK_HANDLER:
        if (conn_handle(c, true))
            go_on_later(c);
        return;
    case WORK_RESUME:
        if (conn_resume(c, true))
            go_on_later(c);
        return;
    case WORK_PUMP:
        if (send_on(c, true))
            go_on_later(c);
        return;
    }
}

/* Hands the connection to the pool. Returns false when the pool is full; this thread then still
 * owns the connection. */
static bool to_pool(struct conn *c, enum work work)
{
    c->work = work;
    c->job = (struct pool_job){.fn = on_pool, .ctx = c};
    return pool_submit(c->server->pool, &c->job) == 0;
}

static void on_expired(struct conn *c, enum phase phase)
{
    if (phase == PHASE_IDLE) {
        conn_serve(c, false); /* a request that arrived at the same moment is still answered */
    } else if (phase == PHASE_AWAIT) {
        conn_await_sweep(c);
        c->req->await.in_time = false;
        if (conn_resume(c, false))
            conn_go_on(c);
    } else if (phase == PHASE_BODY || (phase == PHASE_HEAD && attach_request(c))) {
        conn_refuse(c, 408, http_reason(408));
    } else {
        conn_close(c);
    }
}

void conn_on_event(struct conn *c)
{
    uint64_t due = atomic_exchange(&c->due, PHASE_RUNNING);
    enum phase phase = due & DUE_PHASE;

    if (due & DUE_EXPIRED) {
        on_expired(c, phase);
        return;
    }
    switch (phase) {
    case PHASE_HELLO:
        if (!to_pool(c, WORK_HANDSHAKE)) {
            count(&counters_mine(c->server)->refused, 1);
            conn_close(c);
        }
        return;
    case PHASE_IDLE:
    case PHASE_HEAD:
        conn_serve(c, false);
        return;
    case PHASE_READY:
        conn_serve(c, true);
        return;
    case PHASE_BODY:
        body_on(c);
        return;
    case PHASE_SKIP:
        skip_on(c);
        return;
    case PHASE_SENDING:
        if (send_on(c, false))
            conn_go_on(c);
        return;
    case PHASE_AWAIT:
        if (conn_resume(c, false))
            conn_go_on(c);
        return;
    case PHASE_LINGER:
        linger_on(c);
        return;
    case PHASE_RUNNING:
    case PHASE_COUNT:
        break;
    }
    BUG_ON(true); /* a connection with an owner gets no events (docs/http.md [1]) */
}
