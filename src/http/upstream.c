/* The sending side of an exchange: writes head and body, notices an early answer, and makes the one
 * retry that is safe. R1, R2 and so on are rules of docs/upstream.md. */
#include "http/upstream_int.h"
#include "http/wire_int.h"
#include "os/sock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PIECE = 64 * 1024, CHUNK_OVERHEAD = 24, HEAD_MAX = 64 * 1024, USUAL_HEAD = 1000 };

/* One call of upstream_send(), with all its attempts. */
struct sending {
    struct upstream *u;
    const struct upstream_request *r;
    struct buf out; /* the head, and a small body behind it */
    uint64_t left;  /* bytes of the body that are not in `out`; UINT64_MAX: chunked */
    bool expects;   /* the request has Expect: 100-continue */
    /* Bytes of the body were read and not kept in `out`, so they cannot be sent again. */
    bool body_taken;
    bool any_sent; /* bytes were sent in this attempt */
    bool cut;      /* the peer answered before the whole request was sent */
    bool reader_failed;
    /* This attempt failed, but perhaps only because the peer had closed the reused connection while
     * it was idle. */
    bool stale;
};

static bool is_own_field(struct str name)
{
    static const struct str own[] = {
        {"content-length", 14}, {"transfer-encoding", 17}, {"connection", 10}, {"expect", 6}};
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (str_ieq(name, own[i]))
            return true;
    return false;
}

static bool line_is_fine(const struct upstream_request *r)
{
    bool fine = r->method.len > 0 && r->target.len > 0;
    for (size_t i = 0; i < r->method.len && fine; i++)
        fine = http_token_char[(unsigned char)r->method.p[i]];
    for (size_t i = 0; i < r->target.len && fine; i++)
        fine = r->target.p[i] > 0x20 && r->target.p[i] < 0x7f && r->target.p[i] != '#';
    return fine;
}

static void head_add_field(struct buf *out, struct str name, struct str value)
{
    buf_append_str(out, name);
    buf_append(out, ": ", 2);
    buf_append_str(out, value);
    buf_append(out, "\r\n", 2);
}

static void add_framing(struct sending *s)
{
    enum http_method m = http_method(s->r->method);

    if (s->left == UINT64_MAX)
        buf_append_z(&s->out, "Transfer-Encoding: chunked\r\n");
    else if (s->left || m == HTTP_PUT || m == HTTP_POST || m == HTTP_PATCH || s->r->body) {
        buf_append_z(&s->out, "Content-Length: ");
        buf_append_u64(&s->out, s->left);
        buf_append(&s->out, "\r\n", 2);
    }
    if (s->expects)
        buf_append_z(&s->out, "Expect: 100-continue\r\n");
    buf_append(&s->out, "\r\n", 2);
}

static int write_head(struct sending *s, struct err *err)
{
    const struct upstream_request *r = s->r;
    bool has_host = false;

    if (!line_is_fine(r))
        return err_set(err, ERR_INVALID, "upstream: a malformed method or target");
    buf_append_str(&s->out, r->method);
    buf_append_char(&s->out, ' ');
    buf_append_str(&s->out, r->target);
    buf_append_z(&s->out, " HTTP/1.1\r\n");
    for (size_t i = 0; i < r->header_count; i++) {
        struct http_header h = r->headers[i];
        if (!http_field_is_valid(h.name, h.value) || is_own_field(h.name))
            return err_set(err, ERR_INVALID, "upstream: header '" STR_FMT "' may not be sent",
                           STR_ARG(str_head(h.name, 64)));
        head_add_field(&s->out, h.name, h.value);
        has_host |= str_ieq(h.name, STR("host"));
    }
    if (!has_host)
        head_add_field(&s->out, STR("Host"), buf_str(&s->u->host_header));
    add_framing(s);
    if (s->out.failed)
        return err_set(err, ERR_TOO_LARGE, "upstream: the request's head is too large");
    return 0;
}

/* Reads a small body into `out` before a connection is taken. So head and body are sent together,
 * and both can be sent again. */
static int read_small_body(struct sending *s, struct err *err)
{
    if (s->left == 0 || s->left > UPSTREAM_SMALL_BODY || s->expects)
        return 0;
    size_t len = (size_t)s->left;
    char *to = buf_reserve(&s->out, len);
    int rc = reader_read_full(s->r->body, to, len, err);
    if (rc == 0) {
        buf_commit(&s->out, len);
        s->left = 0;
    }
    return rc;
}

/* Waits until TLS can send more, or the peer has sent something. */
static int wait_tls(struct sending *s, struct exchange *e, struct err *err)
{
    int rc = sock_wait(e->conn->fd, POLLIN | POLLOUT, upstream_deadline(s->u->timeout_ms), err);
    return rc < 0 ? rc : exchange_look(e, err);
}

/* Sends all of `bytes` over TLS, but stops when the peer answers. */
static int push_tls(struct sending *s, struct exchange *e, struct str bytes, struct err *err)
{
    int rc = 0;

    s->any_sent |= bytes.len > 0; /* even bytes that OpenSSL only accepted may have been sent */
    while (rc == 0 && bytes.len && !e->answered) {
        size_t sent = 0;
        rc = tls_send_now(e->conn->tls, bytes.p, bytes.len, &sent, err);
        bytes = str_skip(bytes, sent);
        if (rc == ERR_AGAIN)
            rc = wait_tls(s, e, err);
    }
    s->cut |= bytes.len > 0;
    if (rc == 0)
        rc = exchange_look(e, err);
    if (rc < 0 && rc != ERR_TIMEOUT && rc != ERR_PEER)
        rc = err_wrap(err, ERR_CLOSED, "upstream");
    return rc;
}

/* Sends a part of the body by mover_step(), and then checks for an early answer. */
static int sending_step(struct sending *s, struct exchange *e, struct mover *m, uint64_t max,
                        uint64_t *moved, struct err *err)
{
    int rc = mover_step(m, max, moved, err);

    s->any_sent |= *moved > 0;
    s->reader_failed |= m->reader_failed;
    if (rc == 0 && *moved == 0) {
        s->reader_failed = true;
        return err_set(err, ERR_CLOSED, "the request's body ended early");
    }
    if (rc == 0 || (rc == ERR_AGAIN && !m->reader_failed))
        rc = exchange_look(e, err);
    return rc;
}

static int sending_push(struct sending *s, struct exchange *e, struct str bytes, struct err *err)
{
    struct mover m;
    int rc = 0;

    if (e->conn->tls)
        return push_tls(s, e, bytes, err);
    mover_init(&m, NULL, e->conn->fd, s->u->timeout_ms);
    m.watch = true;
    m.pending = bytes;
    while (rc == 0 && m.pending.len && !e->answered) {
        uint64_t moved;
        rc = mover_step(&m, 0, &moved, err);
        s->any_sent |= moved > 0;
        if (rc == ERR_AGAIN)
            rc = exchange_look(e, err);
    }
    s->cut |= m.pending.len > 0;
    mover_release(&m);
    return rc;
}

/* Sends a body of known length to a plain socket. */
static int move_body(struct sending *s, struct exchange *e, struct err *err)
{
    struct mover m;
    int rc = 0;

    mover_init(&m, s->r->body, e->conn->fd, s->u->timeout_ms);
    m.watch = true;
    while (rc == 0 && s->left && !e->answered) {
        uint64_t moved = 0;
        rc = sending_step(s, e, &m, s->left, &moved, err);
        s->left -= moved;
    }
    mover_release(&m);
    return rc;
}

/* Reads the next piece of the body into `piece`; *got = 0 at the end. */
static int sending_read_piece(struct sending *s, char *piece, size_t *got, struct err *err)
{
    size_t want = s->left < PIECE ? (size_t)s->left : PIECE;
    int rc = 0;

    *got = 0;
    if (want)
        rc = reader_read(s->r->body, piece, want, got, err);
    if (rc == 0 && *got == 0 && want && s->left != UINT64_MAX)
        rc = err_set(err, ERR_CLOSED, "the request's body ended early");
    s->reader_failed |= rc < 0;
    if (rc == 0 && s->left != UINT64_MAX)
        s->left -= *got;
    return rc;
}

/* Sends the body in pieces that are copied through memory. Used for TLS, and for chunked bodies,
 * where each piece and its framing are written into the same buffer. */
static int copy_body(struct sending *s, struct exchange *e, struct err *err)
{
    bool chunked = s->left == UINT64_MAX;
    char *room = xrealloc(NULL, PIECE + CHUNK_OVERHEAD), *piece = room + CHUNK_OVERHEAD / 2;
    size_t got = 1;
    int rc = 0;

    while (rc == 0 && got && !e->answered) {
        rc = sending_read_piece(s, piece, &got, err);
        if (rc < 0)
            break;
        struct str bytes = str_n(piece, got);
        if (chunked) {
            char line[CHUNK_OVERHEAD];
            int n = snprintf(line, sizeof(line), "%zx\r\n", got);
            memcpy(piece - n, line, (size_t)n);
            memcpy(piece + got, "\r\n", 2);
            bytes = str_n(piece - n, got + (size_t)n + 2);
        }
        rc = sending_push(s, e, bytes, err);
    }
    if (rc == 0 && got == 0)
        s->left = 0;
    free(room);
    return rc;
}

/* Sends head and body. Returns 0 when everything is sent, or when the peer answered before that. */
static int transmit(struct sending *s, struct exchange *e, struct err *err)
{
    int rc = sending_push(s, e, buf_str(&s->out), err);

    if (rc == 0 && s->expects && !e->answered)
        rc = exchange_await_continue(e, err);
    if (rc == 0 && s->left && !e->answered) {
        s->body_taken = true;
        rc = e->conn->tls || s->left == UINT64_MAX ? copy_body(s, e, err) : move_body(s, e, err);
    }
    s->cut |= rc < 0 || s->left > 0;
    return rc;
}

/* Called when the peer has closed while we sent. Looks for an answer that the peer sent before it
 * closed (rule R3 of docs/upstream.md). Returns `rc` when there is none. */
static int last_words(struct exchange *e, int rc)
{
    return exchange_read_head(e, upstream_deadline(UPSTREAM_CONTINUE_MS), NULL) == 0 ? 0 : rc;
}

static int sending_attempt(struct exchange **out, struct sending *s, bool fresh, struct err *err)
{
    struct upstream_conn *c;
    int rc = upstream_take(&c, s->u, fresh, err);

    if (rc < 0)
        return rc;
    struct exchange *e = exchange_new(s->u, c, str_eq(s->r->method, STR("HEAD")));
    s->any_sent = s->cut = false;
    if (s->r->may)
        rc = s->r->may(s->r->may_ctx, err);
    if (rc == 0)
        rc = transmit(s, e, err);
    if (rc == ERR_CLOSED && !s->reader_failed && !e->answered)
        rc = last_words(e, rc);
    if (rc == 0 && !e->answered)
        rc = exchange_read_head(e, upstream_deadline(s->u->head_timeout_ms), err);
    if (rc == 0) {
        e->early = s->cut;
        e->reusable &= !s->cut;
        *out = e;
        return 0;
    }
    s->stale = rc == ERR_CLOSED && c->reused && e->received == 0 && !s->reader_failed;
    e->reusable = false;
    exchange_close(e);
    return rc;
}

/* Whether the request may be sent once more on a new connection (rule R4 of docs/upstream.md). */
static bool may_retry(const struct sending *s)
{
    return s->stale && !s->body_taken && (s->r->idempotent || !s->any_sent);
}

int upstream_send_now(struct exchange **out, struct upstream *u, const struct upstream_request *r,
                      struct err *err)
{
    struct sending s = {.u = u, .r = r, .out = BUF_INIT(HEAD_MAX)};
    struct upstream_conn *c = NULL;

    if (u->tls || r->body)
        return err_code(err, ERR_AGAIN);
    buf_reserve(&s.out, USUAL_HEAD);
    int rc = write_head(&s, err);
    if (rc == 0)
        rc = upstream_take_now(&c, u, err);
    if (rc == 0) {
        ssize_t n = send(c->fd, s.out.p, s.out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n != (ssize_t)s.out.len) {
            upstream_give(u, c, false);
            rc = err_code(err, ERR_AGAIN);
        }
    }
    buf_release(&s.out);
    if (rc < 0)
        return rc;
    upstream_count(&u->requests);
    upstream_count(&u->reused);
    *out = exchange_new(u, c, str_eq(r->method, STR("HEAD")));
    return 0;
}

int upstream_send(struct exchange **out, struct upstream *u, const struct upstream_request *r,
                  struct err *err)
{
    struct sending s = {.u = u, .r = r, .out = BUF_INIT(HEAD_MAX + UPSTREAM_SMALL_BODY)};

    s.left = r->body ? r->body_len : 0;
    s.expects = r->expect_continue && s.left;
    upstream_count(&u->requests);
    int rc = write_head(&s, err);
    if (rc == 0)
        rc = read_small_body(&s, err);
    if (rc == 0)
        rc = sending_attempt(out, &s, false, err);
    if (rc < 0 && may_retry(&s)) {
        upstream_count(&u->retries);
        rc = sending_attempt(out, &s, true, err);
    }
    if (rc < 0)
        upstream_count(&u->failed);
    buf_release(&s.out);
    return rc;
}
