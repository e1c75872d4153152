/* The request that a handler gets: head, context, and the body, which is read from the
 * connection. */
#include "http/server_int.h"
#include "base/ids.h"

#include <poll.h>

static struct body *body_of(struct reader *reader)
{
    return container_of(reader, struct body, reader);
}

static struct http_request *reader_request(struct reader *reader)
{
    return container_of(body_of(reader), struct http_request, body);
}

static int body_fail(struct body *body, int code, struct err *err)
{
    body->failed = code;
    return err && err->code == code ? code : err_code(err, code);
}

/* Sends 100-continue. This is called when the handler's first read needs bytes that have not
 * arrived, and never earlier (docs/http.md [8]). */
static int send_continue(struct http_request *req)
{
    req->body.wants_continue = false;
    return conn_send_all(req, STR("HTTP/1.1 100 Continue\r\n\r\n"), false);
}

/* Receives some bytes into `to`. If none have arrived, it waits when the handler may block, and
 * otherwise returns ERR_AGAIN. */
static int request_receive(struct http_request *req, void *to, size_t len, size_t *got)
{
    int code = ERR_AGAIN;

    if (req->body.wants_continue) {
        if (!req->may_block)
            return ERR_AGAIN;
        code = send_continue(req);
        if (code < 0)
            return code;
    }
    while ((code = conn_recv_now(req->conn, to, len, got)) == ERR_AGAIN && req->may_block)
        if ((code = conn_wait(req, POLLIN)) < 0)
            break;
    return code == 0 && *got == 0 ? ERR_CLOSED : code;
}

/* Receives more bytes behind those in the buffer. On a fast worker all bytes stay in the buffer, so
 * that the handler can be called again from its start (docs/http.md [7]). */
static int request_fill(struct http_request *req)
{
    size_t got;
    int code;

    if (req->may_block && req->body.at == req->in_len)
        req->body.at = req->in_len = req->head.size;
    if (req->in_len == READ_BUFFER)
        return ERR_AGAIN;
    code = request_receive(req, req->in + req->in_len, READ_BUFFER - req->in_len, &got);
    if (code == 0)
        req->in_len += got;
    return code;
}

static int body_take(struct body *body, const void *from, void *to, size_t len)
{
    if (len)
        memcpy(to, from, len);
    body->at += len;
    body->taken += len;
    return 0;
}

static int read_plain(struct http_request *req, void *to, size_t len, size_t *got)
{
    struct body *body = &req->body;
    size_t here = req->in_len - body->at, want = size_min(len, body->left);
    int code = 0;

    if (here == 0 && !req->may_block) {
        code = request_fill(req);
        here = req->in_len - body->at;
    } else if (here == 0) {
        code = request_receive(req, to, want, got);
        body->taken += *got;
    }
    if (code == 0 && here)
        code = body_take(body, req->in + body->at, to, *got = size_min(here, want));
    body->left -= *got;
    body->done = body->left == 0;
    return code;
}

/* Decodes the next run of at most `len` body bytes in the buffer. */
static int chunked_run(struct http_request *req, size_t len, struct str *run, struct err *err)
{
    struct body *body = &req->body;
    struct str in = str_n(req->in + body->at, req->in_len - body->at);
    struct http_chunked before = body->chunked;
    size_t trailers = body->trailers.len, used = 0;
    int code = http_chunked_next(&body->chunked, in, run, &used, &body->trailers, err);

    if (code == 0 && run->len > len) {
        body->chunked = before;
        body->trailers.len = trailers;
        in.len = (size_t)(run->p - in.p) + len;
        code = http_chunked_next(&body->chunked, in, run, &used, &body->trailers, err);
    }
    if (code == 0) {
        body->at += used - run->len;
        body->done = body->chunked.done;
    }
    return code;
}

static int request_read_chunked(struct http_request *req, void *to, size_t len, size_t *got,
                                struct err *err)
{
    struct body *body = &req->body;
    uint64_t max = req->conn->server->max_body;
    struct str run = STR_EMPTY;
    int code = 0;

    while (code == 0 && run.len == 0 && !body->done) {
        if (body->at == req->in_len)
            code = request_fill(req);
        if (code == 0)
            code = chunked_run(req, len, &run, err);
    }
    if (code == 0 && max && body->taken + run.len > max)
        code = ERR_TOO_LARGE;
    if (code == 0)
        code = body_take(body, run.p, to, *got = run.len);
    return code;
}

static int request_body_read(struct reader *reader, void *to, size_t len, size_t *got,
                             struct err *err)
{
    struct body *body = body_of(reader);
    struct http_request *req = reader_request(reader);
    int code;

    *got = 0;
    if (body->failed)
        return err_code(err, body->failed);
    if (body->done || len == 0)
        return 0;
    code = req->head.chunked ? request_read_chunked(req, to, len, got, err)
                             : read_plain(req, to, len, got);
    if (code == ERR_AGAIN)
        return err_code(err, code);
    return code < 0 ? body_fail(body, code, err) : 0;
}

static bool request_body_as_socket(struct reader *reader, int *fd, uint64_t *len)
{
    struct body *body = body_of(reader);
    struct http_request *req = reader_request(reader);

    if (req->head.chunked || req->conn->tls || !req->may_block || body->failed || body->done ||
        body->at < req->in_len)
        return false;
    if (seat_take(req) < 0) /* without a seat, the reader fails when it has to wait */
        return false;
    if (body->wants_continue && send_continue(req) < 0)
        return false;
    *fd = req->conn->fd;
    *len = body->left;
    return true;
}

static void body_moved(struct reader *reader, uint64_t n)
{
    struct body *body = body_of(reader);
    struct http_request *req = reader_request(reader);

    BUG_ON(n > body->left);
    body->left -= n;
    body->taken += n;
    body->done = body->left == 0;
    req->conn->received += n;
    count(&counters_mine(req->conn->server)->bytes_in, n);
}

static const struct reader_ops body_ops = {
    .read = request_body_read,
    .as_socket = request_body_as_socket,
    .skip = body_moved,
};

static void body_begin(struct http_request *req)
{
    struct body *body = &req->body;

    body->reader.ops = &body_ops;
    body->at = req->head.size;
    body->left = req->head.content_length;
    body->taken = 0;
    body->chunked = (struct http_chunked){0};
    body->done = !req->head.chunked && body->left == 0;
    body->wants_continue = req->head.expect_continue && !body->done;
    body->failed = 0;
    if (body->trailers.len)
        buf_reset(&body->trailers);
}

int body_skip(struct http_request *req)
{
    struct body *body = &req->body;
    struct str run;
    int code = body->failed;

    while (code == 0 && !body->done && body->at < req->in_len) {
        size_t here = req->in_len - body->at;
        if (req->head.chunked) {
            code = chunked_run(req, here, &run, NULL);
            here = run.len;
        } else {
            here = size_min(here, body->left);
            body->left -= here;
            body->done = body->left == 0;
        }
        body->at += here;
        body->taken += here;
    }
    return code < 0 ? code : body->done ? 0 : ERR_AGAIN;
}

void request_begin(struct http_request *req)
{
    body_begin(req);
    req->in_pace = req->out_pace = (struct pace){0};
    req->close = !req->head.keep_alive;
    req->may_block = false;
    req->await.fn = NULL;
    req->await_body = 0;
    req->standing = STRANGER;
    req->id[0] = '\0';
    req->log_ready = false;
    req->peer.len = 0;
    req->sent = 0;
    req->started_ns = 0;
    req->linger = false;
    response_reset(req);
}

void request_rewind(struct http_request *req)
{
    arena_reset(&req->arena);
    body_begin(req);
    response_reset(req);
}

void request_reset(struct http_request *req)
{
    size_t rest = req->in_len - req->body.at;

    arena_reset(&req->arena);
    response_reset(req);
    if (req->body.trailers.p)
        buf_release(&req->body.trailers);
    if (rest)
        memmove(req->in, req->in + req->body.at, rest);
    req->in_len = rest;
    req->body.at = 0;
}

const struct http_head *http_request_head(struct http_request *req)
{
    return &req->head;
}

struct arena *http_request_arena(struct http_request *req)
{
    return &req->arena;
}

const char *http_request_id(struct http_request *req)
{
    if (!req->id[0])
        id_time(req->id);
    return req->id;
}

const struct log *http_request_log(struct http_request *req)
{
    const struct log *log = req->conn->server->log;

    if (log && !req->log_ready) {
        req->log = log_with(log, log_z("request", http_request_id(req)));
        req->log_ready = true;
    }
    return log ? &req->log : NULL;
}

struct http_server *http_request_server(struct http_request *req)
{
    return req->conn->server;
}

const struct sock_addr *http_request_peer(struct http_request *req)
{
    struct conn *c = req->conn;

    if (req->peer.len == 0) {
        req->peer.len = c->peer.any.sa_family == AF_INET    ? sizeof(c->peer.in4)
                        : c->peer.any.sa_family == AF_INET6 ? sizeof(c->peer.in6)
                                                            : sizeof(c->peer.any);
        memset(&req->peer.sa, 0, sizeof(req->peer.sa));
        memcpy(&req->peer.sa, &c->peer, req->peer.len);
    }
    return &req->peer;
}

bool http_request_is_tls(struct http_request *req)
{
    return req->conn->tls != NULL;
}

const char *http_request_cipher(struct http_request *req)
{
    return req->conn->tls ? tls_cipher(req->conn->tls) : "";
}

const char *http_request_tls_version(struct http_request *req)
{
    return req->conn->tls ? tls_version(req->conn->tls) : "";
}

bool http_may_block(struct http_request *req)
{
    return req->may_block;
}

void http_await(struct http_request *req, int fd, uint64_t timeout_ms, http_resume_fn *fn,
                void *ctx)
{
    BUG_ON(req->may_block || req->stage != STAGE_NONE || req->await.fn);
    req->await = (struct await){fn, ctx, fd, timeout_ms, true};
}

int http_go_on(struct http_request *req, http_resume_fn *fn, void *ctx)
{
    BUG_ON(req->may_block || req->stage != STAGE_NONE || req->await.fn);
    req->await = (struct await){.fn = fn, .ctx = ctx, .fd = -1, .in_time = true};
    return ERR_AGAIN;
}

void http_request_know(struct http_request *req)
{
    req->standing = KNOWN;
}

size_t body_missing(const struct http_request *req)
{
    size_t here = req->in_len - req->head.size;

    return here < req->await_body ? req->await_body - here : 0;
}

/* Sends 100-continue if the peer waits for it, and clears both flags that say that the peer
 * waits. */
int body_ask(struct http_request *req)
{
    struct str line = STR("HTTP/1.1 100 Continue\r\n\r\n");
    struct iovec part = {(void *)line.p, line.len};
    size_t sent = 0;

    if (!req->body.wants_continue)
        return 0;
    req->head.expect_continue = req->body.wants_continue = false;
    int code = conn_send_now(req->conn, &part, 1, false, &sent);
    return code == 0 && sent == line.len ? 0 : ERR_CLOSED;
}

int http_await_body(struct http_request *req, size_t want)
{
    struct body *body = &req->body;
    size_t most = READ_BUFFER - req->head.size;

    BUG_ON(body->taken || req->stage != STAGE_NONE);
    if (req->head.chunked || body->done || body->failed)
        return 0; /* the bytes of a chunked body cannot be counted before decoding */
    req->await_body = size_min(size_min(want, most), body->left);
    if (body_missing(req))
        return ERR_AGAIN;
    req->await_body = 0;
    return 0;
}

struct reader *http_request_body(struct http_request *req)
{
    return &req->body.reader;
}

uint64_t http_request_length(struct http_request *req)
{
    return req->head.chunked ? UINT64_MAX : req->head.content_length;
}

struct str http_request_trailers(struct http_request *req)
{
    return buf_str(&req->body.trailers);
}

/* Receives the rest of a body of `len` bytes into the buffer and returns it in place, without a
 * copy. */
static int read_in_place(struct http_request *req, size_t len, struct str *out, struct err *err)
{
    struct body *body = &req->body;

    while (req->in_len - body->at < len) {
        int code = request_fill(req);
        if (code == ERR_AGAIN)
            return err_code(err, code);
        if (code < 0)
            return body_fail(body, code, err);
    }
    *out = str_n(req->in + body->at, len);
    body->at += len;
    body->taken += len;
    body->left = 0;
    body->done = true;
    return 0;
}

int http_request_read_all(struct http_request *req, size_t max, struct str *out, struct err *err)
{
    struct body *body = &req->body;
    struct buf bytes = BUF_INIT(max ? max : 1);
    int code;

    *out = STR_EMPTY;
    if (body->failed)
        return err_code(err, body->failed);
    if (body->done)
        return 0;
    if (!req->head.chunked && body->left > max)
        return body_fail(body, ERR_TOO_LARGE, err);
    if (!req->head.chunked && body->left <= READ_BUFFER - req->body.at)
        return read_in_place(req, (size_t)body->left, out, err);
    if (!req->head.chunked && !req->may_block)
        return err_code(err, ERR_AGAIN);
    code = reader_read_all(&body->reader, &bytes, err);
    if (code == ERR_TOO_LARGE)
        body->failed = code;
    if (code == 0) {
        *out = arena_str(&req->arena, buf_str(&bytes));
        code = arena_error(&req->arena);
    }
    buf_release(&bytes);
    return code;
}
