/* The receiving side of an exchange: reads the head and the body, and decides whether the
 * connection is reused. */
#include "http/upstream_int.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static const struct reader_ops body_ops;

struct exchange *exchange_new(struct upstream *u, struct upstream_conn *c, bool to_head)
{
    struct exchange *e = c->spare ? c->spare : xzalloc(sizeof(*e));

    c->spare = NULL;
    /* The members from `head` on are not zeroed, because they include a buffer of 24 KiB. */
    memset(e, 0, offsetof(struct exchange, head));
    e->body.ops = &body_ops;
    e->upstream = u;
    e->conn = c;
    e->timeout_ms = u->timeout_ms;
    e->to_head = to_head;
    e->reusable = true;
    return e;
}

static enum framing framing_of(const struct exchange *e)
{
    if (!http_response_has_body(&e->head, e->to_head))
        return BODY_NONE;
    if (e->head.chunked)
        return BODY_CHUNKED;
    return e->head.has_length ? BODY_LENGTH : BODY_CLOSE;
}

static void head_complete(struct exchange *e)
{
    e->answered = true;
    e->start = e->head.size;
    e->framing = framing_of(e);
    e->left = e->framing == BODY_LENGTH ? e->head.content_length : 0;
    e->ended = e->framing == BODY_NONE || (e->framing == BODY_LENGTH && e->left == 0);
    e->reusable &= e->head.keep_alive && e->framing != BODY_CLOSE;
}

/* Parses the response's head. The heads of 1xx responses are dropped until the final head comes.
 * ERR_AGAIN: more bytes are needed. */
static int parse_head(struct exchange *e, struct err *err)
{
    for (;;) {
        int rc = http_parse_response(&e->head, str_n(e->in, e->end), &e->seen, err);
        if (rc == ERR_AGAIN)
            return rc;
        if (rc < 0)
            return err_wrap(err, ERR_PEER, "upstream");
        if (e->head.status >= 200) {
            head_complete(e);
            return 0;
        }
        if (e->head.status == 101 || ++e->interim > UPSTREAM_MAX_INTERIM)
            return err_set(err, ERR_PEER, "upstream: a 1xx response that makes no sense");
        e->continued |= e->head.status == 100;
        e->end -= e->head.size;
        memmove(e->in, e->in + e->head.size, e->end);
        e->seen = 0;
    }
}

static int exchange_received(struct exchange *e, size_t got, struct err *err)
{
    if (got == 0)
        return err_set(err, ERR_CLOSED, "upstream: closed without a response");
    e->received += got;
    e->end += got;
    return 0;
}

/* Counts the received bytes as exchange_received() does, then parses the head. Returns 0 also when
 * the head is not complete yet. */
static int received_answer(struct exchange *e, size_t got, struct err *err)
{
    int rc = exchange_received(e, got, err);

    if (rc == 0)
        rc = parse_head(e, err);
    return rc == ERR_AGAIN ? 0 : rc;
}

int exchange_read_head(struct exchange *e, uint64_t deadline_ns, struct err *err)
{
    int rc;

    while ((rc = parse_head(e, err)) == ERR_AGAIN) {
        size_t got;
        rc = upstream_conn_recv(e->conn, e->in + e->end, sizeof(e->in) - e->end, &got, deadline_ns,
                                err);
        if (rc == 0)
            rc = exchange_received(e, got, err);
        if (rc < 0)
            break;
    }
    return rc;
}

int exchange_look(struct exchange *e, struct err *err)
{
    while (!e->answered) {
        size_t got;
        int rc = upstream_conn_recv_now(e->conn, e->in + e->end, sizeof(e->in) - e->end, &got, err);
        if (rc == ERR_AGAIN)
            return 0;
        if (rc == 0)
            rc = received_answer(e, got, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int exchange_fd(const struct exchange *e)
{
    return e->conn->fd;
}

uint64_t exchange_head_ms(const struct exchange *e)
{
    return e->upstream->head_timeout_ms;
}

int exchange_poll(struct exchange *e, struct err *err)
{
    int rc = exchange_look(e, err);

    e->reusable &= rc == 0;
    return rc < 0 ? rc : e->answered ? 0 : err_code(err, ERR_AGAIN);
}

bool exchange_is_early(const struct exchange *e)
{
    return e->early;
}

bool exchange_is_stale(const struct exchange *e)
{
    return e->conn->reused && e->received == 0;
}

int exchange_await_continue(struct exchange *e, struct err *err)
{
    uint64_t deadline = upstream_deadline(UPSTREAM_CONTINUE_MS);

    while (!e->answered && !e->continued) {
        size_t got;
        int rc = upstream_conn_recv(e->conn, e->in + e->end, sizeof(e->in) - e->end, &got, deadline,
                                    err);
        if (rc == ERR_TIMEOUT)
            return 0;
        if (rc == 0)
            rc = received_answer(e, got, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

const struct http_head *exchange_head(struct exchange *e)
{
    return &e->head;
}

struct reader *exchange_body(struct exchange *e)
{
    return &e->body;
}

static int cut_short(struct err *err)
{
    return err_set(err, ERR_CLOSED, "upstream: closed in the middle of the body");
}

/* Reads bytes of the body: first bytes that came with the head, then bytes straight from the
 * connection. */
static int exchange_take(struct exchange *e, void *to, size_t len, size_t *got, struct err *err)
{
    if (e->start < e->end) {
        *got = size_min(len, e->end - e->start);
        memcpy(to, e->in + e->start, *got);
        e->start += *got;
        return 0;
    }
    return upstream_conn_recv(e->conn, to, len, got, upstream_deadline(e->timeout_ms), err);
}

static int read_length(struct exchange *e, void *to, size_t len, size_t *got, struct err *err)
{
    int rc = exchange_take(e, to, len < e->left ? len : (size_t)e->left, got, err);

    if (rc == 0 && *got == 0)
        return cut_short(err);
    if (rc == 0) {
        e->left -= *got;
        e->ended = e->left == 0;
    }
    return rc;
}

static int read_until_close(struct exchange *e, void *to, size_t len, size_t *got, struct err *err)
{
    int rc = exchange_take(e, to, len, got, err);

    if (rc == 0)
        e->ended = *got == 0;
    return rc;
}

/* Receives more bytes into the buffer, behind the head. */
static int refill(struct exchange *e, struct err *err)
{
    size_t got;

    e->start = e->end = e->head.size;
    int rc = upstream_conn_recv(e->conn, e->in + e->end, sizeof(e->in) - e->end, &got,
                                upstream_deadline(e->timeout_ms), err);
    if (rc == 0 && got == 0)
        return cut_short(err);
    if (rc == 0)
        e->end += got;
    return rc;
}

static int exchange_decode(struct exchange *e, struct str in, struct str *piece, size_t *used,
                           struct err *err)
{
    int rc = http_chunked_next(&e->chunked, in, piece, used, NULL, err);
    if (rc < 0)
        return err_wrap(err, ERR_PEER, "upstream");
    e->ended = e->chunked.done;
    return 0;
}

static int exchange_read_chunked(struct exchange *e, void *to, size_t len, size_t *got,
                                 struct err *err)
{
    uint64_t run = http_chunked_run(&e->chunked);
    struct str piece = STR_EMPTY;
    size_t used = 0;

    if (run && e->start == e->end) {
        int rc = exchange_take(e, to, len < run ? len : (size_t)run, got, err);
        if (rc == 0 && *got == 0)
            return cut_short(err);
        return rc < 0 ? rc : exchange_decode(e, str_n(to, *got), &piece, &used, err);
    }
    for (*got = 0; *got == 0 && !e->ended;) {
        int rc = e->start == e->end ? refill(e, err) : 0;
        if (rc == 0) /* decoding at most `len` bytes gives at most `len` body bytes */
            rc = exchange_decode(e, str_n(e->in + e->start, size_min(len, e->end - e->start)),
                                 &piece, &used, err);
        if (rc < 0)
            return rc;
        e->start += used;
        *got = piece.len;
        if (piece.len)
            memcpy(to, piece.p, piece.len);
    }
    return 0;
}

static int exchange_body_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct exchange *e = container_of(r, struct exchange, body);
    int rc;

    *got = 0;
    if (e->failed)
        return err_code(err, e->failed);
    if (e->ended || len == 0)
        return 0;
    if (e->framing == BODY_CHUNKED)
        rc = exchange_read_chunked(e, to, len, got, err);
    else if (e->framing == BODY_LENGTH)
        rc = read_length(e, to, len, got, err);
    else
        rc = read_until_close(e, to, len, got, err);
    e->failed = rc;
    return rc;
}

static bool exchange_body_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    struct exchange *e = container_of(r, struct exchange, body);

    if (e->conn->tls || e->framing != BODY_LENGTH || e->start < e->end || e->ended || e->failed)
        return false;
    *fd = e->conn->fd;
    *len = e->left;
    return true;
}

/* Sets *out to the rest of the body if all of it is in the buffer. A small body has often arrived
 * whole with the head. */
static bool body_as_bytes(struct reader *r, struct str *out)
{
    struct exchange *e = container_of(r, struct exchange, body);

    if (e->framing != BODY_LENGTH || e->failed || e->end - e->start < e->left)
        return false;
    *out = str_n(e->in + e->start, (size_t)e->left);
    return true;
}

/* Skips bytes that the caller has used: first bytes in the buffer, which it got from as_bytes, then
 * bytes that it took from the socket. */
static void exchange_body_skip(struct reader *r, uint64_t n)
{
    struct exchange *e = container_of(r, struct exchange, body);

    BUG_ON(e->framing != BODY_LENGTH || n > e->left);
    e->start += size_min(e->end - e->start, n);
    e->left -= n;
    e->ended = e->left == 0;
}

static const struct reader_ops body_ops = {
    .read = exchange_body_read,
    .as_socket = exchange_body_as_socket,
    .as_bytes = body_as_bytes,
    .skip = exchange_body_skip,
};

/* Reads and drops the rest of the body when it is short, which costs less than a new connection.
 * The function waits at most UPSTREAM_DRAIN_MS for that rest. */
static void exchange_drain(struct exchange *e)
{
    uint64_t deadline = upstream_deadline(UPSTREAM_DRAIN_MS);
    size_t total = 0, got = 0;
    char bin[4 * KIB];

    if (e->framing == BODY_LENGTH && e->left > UPSTREAM_DRAIN_MAX)
        return;
    e->timeout_ms = UPSTREAM_DRAIN_MS;
    while (!e->ended && total < UPSTREAM_DRAIN_MAX && clock_mono_ns() < deadline &&
           exchange_body_read(&e->body, bin, sizeof(bin), &got, NULL) == 0)
        total += got;
}

void exchange_close(struct exchange *e)
{
    if (!e)
        return;
    if (e->reusable && !e->ended)
        exchange_drain(e);
    /* If bytes follow the end of the body, they are not an answer to any request, so the connection
     * is not reused. */
    bool clean = e->answered && e->ended && e->start == e->end;
    e->conn->spare = e;
    upstream_give(e->upstream, e->conn, e->reusable && clean);
}
