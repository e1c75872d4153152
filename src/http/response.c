/* The functions with which a handler makes its response: status, headers, then one of the calls for
 * the body. */
#include "http/server_int.h"
#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL_FILE = 32 * 1024, GATHER = 16 * 1024, PIPE_SIZE = 256 * 1024 };

static const struct str crlf = {"\r\n", 2};

void response_reset(struct http_request *req)
{
    fd_close(&req->file.fd);
    req->file.len = 0;
    if (req->out.cap > KEEP_OUT)
        buf_release(&req->out);
    else
        buf_reset(&req->out);
    req->out_at = 0;
    req->stage = STAGE_NONE;
    req->status = 0;
    req->no_body = req->framed = req->copy_file = false;
    req->own_date = req->own_length = req->streamed = false;
}

static void response_status_line(struct buf *out, int status)
{
    if (status == 200) {
        buf_append_str(out, STR("HTTP/1.1 200 OK\r\n"));
        return;
    }
    buf_append_str(out, STR("HTTP/1.1 "));
    buf_append_u64(out, (uint64_t)status);
    buf_append_char(out, ' ');
    buf_append_z(out, http_reason(status));
    buf_append_str(out, crlf);
}

/* Whether the peer expects 100-continue although its body is empty. By RFC 9110 §10.1.1 such a
 * request needs no 100. But if botocore gets a final answer without a 100 before it, it also uses
 * that answer as the answer to its next request. */
static bool expects_for_nothing(const struct http_request *req)
{
    return req->head.expect_continue && !req->head.chunked && req->head.content_length == 0;
}

void http_respond(struct http_request *req, int status)
{
    BUG_ON(req->stage > STAGE_HEAD || status < 200 || status > 599);
    buf_reset(&req->out);
    req->own_date = req->own_length = false;
    req->stage = STAGE_HEAD;
    req->status = status;
    req->no_body = req->head.method == HTTP_HEAD || status == 204 || status == 304;
    if (expects_for_nothing(req))
        buf_append_str(&req->out, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    response_status_line(&req->out, status);
}

/* Whether only the server sets this header. If a handler sets a header about framing or the
 * connection, the header is dropped. There is one exception: in the answer to HEAD, a handler may
 * set the length of the body that is not sent. */
static bool is_ours(struct http_request *req, struct str name)
{
    switch (name.len) {
    case 4:
        req->own_date |= str_ieq(name, STR("date"));
        return false;
    case 10:
        return str_ieq(name, STR("connection")) || str_ieq(name, STR("keep-alive"));
    case 14:
        if (!str_ieq(name, STR("content-length")))
            return false;
        req->own_length |= req->no_body;
        return !req->no_body;
    case 17:
        return str_ieq(name, STR("transfer-encoding"));
    default:
        return false;
    }
}

void http_respond_header(struct http_request *req, struct str name, struct str value)
{
    char *to;

    BUG_ON(req->stage != STAGE_HEAD || !http_field_is_valid(name, value));
    if (is_ours(req, name))
        return;
    to = buf_reserve(&req->out, name.len + value.len + 4);
    BUG_ON(!to); /* headers are far smaller than a buf's limit */
    memcpy(to, name.p, name.len);
    memcpy(to + name.len, ": ", 2);
    if (value.len)
        memcpy(to + name.len + 2, value.p, value.len);
    memcpy(to + name.len + 2 + value.len, "\r\n", 2);
    buf_commit(&req->out, name.len + value.len + 4);
}

void http_respond_header_u64(struct http_request *req, struct str name, uint64_t value)
{
    char text[20];
    size_t at = sizeof(text);

    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    http_respond_header(req, name, str_n(text + at, sizeof(text) - at));
}

/* Appends the Date header. Each thread has its own copy of the text, which it renews once a second.
 */
static void date_line(struct http_request *req)
{
    static _Thread_local int64_t second = -1;
    static _Thread_local char line[6 + CLOCK_HTTP_LEN + 2 + 1] = "Date: ";
    int64_t now_ms = atomic_load_explicit(&req->conn->server->wall_ms, memory_order_relaxed);

    if (now_ms / MS_PER_S != second) {
        second = now_ms / MS_PER_S;
        clock_http(now_ms, line + 6);
        memcpy(line + 6 + CLOCK_HTTP_LEN, "\r\n", 2);
    }
    buf_append(&req->out, line, 6 + CLOCK_HTTP_LEN + 2);
}

/* Whether the connection must be closed after the response because the rest of the request's body
 * is unread. This is called when the response begins. A handler that streams its response may still
 * read the body, so for such a response response_done() decides at its end. */
static bool body_is_in_the_way(struct http_request *req)
{
    struct body *body = &req->body;

    if (body->done || req->streamed)
        return false;
    if (body->wants_continue || body->failed || body_skip(req) != ERR_AGAIN)
        return !body->done;
    return req->head.chunked || body->left > SKIP_MAX;
}

/* Ends the head. `len` is the length of the body in bytes; UINT64_MAX means that it is not known.
 */
static void end_head(struct http_request *req, uint64_t len)
{
    struct buf *out = &req->out;
    struct http_server *s = req->conn->server;

    /* Responses 204 and 304 have neither Content-Length nor Transfer-Encoding (RFC 9112 §6.1). */
    bool bodyless = req->status == 204 || req->status == 304;

    req->framed = len == UINT64_MAX && req->head.minor > 0 && !bodyless;
    if (len == UINT64_MAX && !req->framed && !req->no_body)
        req->close = true; /* in HTTP/1.0 the end of the connection ends the body */
    if (server_stopping(s) || body_is_in_the_way(req))
        req->close = true;
    buf_append_str(out, s->server_line);
    if (!req->own_date)
        date_line(req);
    if (req->framed) {
        buf_append_str(out, STR("Transfer-Encoding: chunked\r\n"));
    } else if (len != UINT64_MAX && !bodyless && !req->own_length) {
        buf_append_str(out, STR("Content-Length: "));
        buf_append_u64(out, len);
        buf_append_str(out, crlf);
    }
    if (req->close)
        buf_append_str(out, STR("Connection: close\r\n"));
    else if (req->head.minor == 0)
        buf_append_str(out, STR("Connection: keep-alive\r\n"));
    buf_append_str(out, crlf);
}

/* Stores in `out` the bytes of head and body that did not fit into the socket. */
static void keep_rest(struct http_request *req, struct str body, size_t sent)
{
    if (sent < req->out.len) {
        req->out_at = sent;
        buf_append_str(&req->out, body);
        return;
    }
    body = str_skip(body, sent - req->out.len);
    buf_reset(&req->out);
    buf_append_str(&req->out, body);
}

int http_send(struct http_request *req, struct str body)
{
    size_t sent = 0;
    int code;

    if (body.len > INLINE_MAX && !req->may_block)
        return ERR_AGAIN;
    if (req->stage == STAGE_NONE)
        http_respond(req, 200);
    BUG_ON(req->stage != STAGE_HEAD);
    end_head(req, body.len);
    req->stage = STAGE_DONE;
    if (req->no_body)
        body = STR_EMPTY;
    req->sent = body.len;
    if (req->conn->tls && body.len <= GATHER) {
        buf_append_str(&req->out, body);
        body = STR_EMPTY;
    }
    struct iovec parts[2] = {{req->out.p, req->out.len}, {(void *)body.p, body.len}};
    code = conn_send_now(req->conn, parts, body.len ? 2 : 1, false, &sent);
    if (code < 0 && code != ERR_AGAIN)
        return code;
    if (body.len <= INLINE_MAX || sent + INLINE_MAX >= req->out.len + body.len) {
        keep_rest(req, body, sent);
        return buf_error(&req->out);
    }
    if (sent < req->out.len)
        code = conn_send_all(req, str_skip(buf_str(&req->out), sent), true);
    else
        code = 0, body = str_skip(body, sent - req->out.len);
    buf_reset(&req->out);
    return code < 0 ? code : conn_send_all(req, body, false);
}

int http_send_text(struct http_request *req, int status, struct str type, struct str body)
{
    http_respond(req, status);
    http_respond_header(req, STR("Content-Type"), type);
    return http_send(req, body);
}

int http_send_file(struct http_request *req, struct file_range range)
{
    if (req->stage == STAGE_NONE)
        http_respond(req, 200);
    BUG_ON(req->stage != STAGE_HEAD);
    end_head(req, range.len);
    req->stage = STAGE_DONE;
    req->file = range;
    if (req->no_body || range.len == 0) {
        fd_close(&req->file.fd);
        req->file.len = 0;
    }
    req->copy_file = req->conn->tls || range.len <= SMALL_FILE;
    return 0;
}

uint64_t http_response_bytes(struct http_request *req)
{
    return req->sent + (req->file.fd >= 0 ? req->file.len : 0);
}

/* Begins a streamed response. The head is sent at once, so that the peer sees it even if the first
 * piece takes long. */
static int begin_stream(struct http_request *req, uint64_t len)
{
    int code;

    if (req->stage == STAGE_NONE)
        http_respond(req, 200);
    BUG_ON(req->stage != STAGE_HEAD);
    req->streamed = true;
    end_head(req, len);
    code = conn_send_all(req, buf_str(&req->out), true);
    buf_reset(&req->out);
    req->stage = STAGE_STREAM;
    return code;
}

static int end_stream(struct http_request *req)
{
    int code = 0;

    if (req->framed && !req->no_body)
        code = conn_send_all(req, STR("0\r\n\r\n"), false);
    req->stage = STAGE_DONE;
    return code;
}

int http_send_begin(struct http_request *req)
{
    return req->may_block ? begin_stream(req, UINT64_MAX) : ERR_AGAIN;
}

static void append_chunk_size(struct buf *out, size_t len)
{
    char text[16];
    size_t at = sizeof(text);

    do
        text[--at] = "0123456789abcdef"[len & 15];
    while (len >>= 4);
    buf_append(out, text + at, sizeof(text) - at);
    buf_append_str(out, crlf);
}

/* Sends a piece of the body. A small piece is copied, so that one send takes it and its chunk
 * framing; a large piece is not copied. */
static int response_send_piece(struct http_request *req, struct str piece)
{
    struct buf *out = &req->out;
    bool gather = piece.len <= GATHER;
    int code;

    if (req->framed)
        append_chunk_size(out, piece.len);
    if (gather)
        buf_append_str(out, piece);
    if (gather && req->framed)
        buf_append_str(out, crlf);
    code = conn_send_all(req, buf_str(out), !gather);
    buf_reset(out);
    if (code == 0 && !gather)
        code = conn_send_all(req, piece, req->framed);
    if (code == 0 && !gather && req->framed)
        code = conn_send_all(req, crlf, false);
    return code;
}

int http_send_write(struct http_request *req, struct str piece)
{
    BUG_ON(req->stage != STAGE_STREAM);
    if (req->no_body || piece.len == 0)
        return 0;
    req->sent += piece.len;
    return response_send_piece(req, piece);
}

int http_send_end(struct http_request *req)
{
    BUG_ON(req->stage != STAGE_STREAM);
    return end_stream(req);
}

/* Moves bytes from the socket `from` to the peer's socket through a pipe. Stops when `from` has no
 * more bytes at the moment. */
static int splice_some(struct http_request *req, struct reader *r, int from, uint64_t len,
                       int pipe_fd[2], uint64_t *moved)
{
    unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

    *moved = 0;
    while (*moved < len) {
        ssize_t in = splice(from, NULL, pipe_fd[1], NULL, size_min(len - *moved, PIPE_SIZE), flags);
        if (in < 0 && errno == EINTR)
            continue;
        if (in <= 0)
            return 0;
        reader_skip(r, (uint64_t)in);
        *moved += (uint64_t)in;
        while (in > 0) {
            ssize_t out = splice(pipe_fd[0], NULL, req->conn->fd, NULL, (size_t)in,
                                 flags | (*moved < len ? SPLICE_F_MORE : 0));
            if (out < 0 && errno == EAGAIN) {
                int code = conn_wait(req, POLLOUT);
                if (code < 0)
                    return code;
            } else if (out < 0 && errno != EINTR) {
                req->conn->broken = true;
                return ERR_CLOSED;
            } else if (out > 0) {
                conn_pushed(req->conn, (size_t)out);
                in -= out;
            }
        }
    }
    return 0;
}

/* Reads one piece into memory and sends it. *got = 0 at the reader's end. */
static int response_copy_some(struct http_request *req, struct reader *r, uint64_t len, char *piece,
                              size_t *got)
{
    int code = reader_read(r, piece, size_min(len, COPY_PIECE), got, NULL);

    if (code == 0 && *got)
        code = response_send_piece(req, str_n(piece, *got));
    return code;
}

/* Sends a body of known length. Bytes that have arrived at the reader's socket are spliced. When
 * none have arrived, the reader's read function waits, with a deadline of its own. */
static int send_known(struct http_request *req, struct reader *r, uint64_t len, char *piece)
{
    int pipe_fd[2] = {-1, -1}, code = 0;

    while (code == 0 && len) {
        uint64_t moved = 0, there;
        size_t got = 0;
        int from;

        if (!req->conn->tls && len > COPY_PIECE && reader_as_socket(r, &from, &there) &&
            (pipe_fd[0] >= 0 || pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK) == 0)) {
            fcntl(pipe_fd[1], F_SETPIPE_SZ, PIPE_SIZE);
            code = splice_some(req, r, from, size_min(there, len), pipe_fd, &moved);
        }
        len -= moved;
        if (code == 0 && moved == 0) {
            code = response_copy_some(req, r, len, piece, &got);
            if (code == 0 && got == 0)
                code = ERR_CLOSED;
            len -= got;
        }
        req->sent += moved + got;
    }
    fd_close(&pipe_fd[0]);
    fd_close(&pipe_fd[1]);
    return code;
}

static int send_unknown(struct http_request *req, struct reader *r, char *piece)
{
    size_t got;
    int code;

    while ((code = response_copy_some(req, r, UINT64_MAX, piece, &got)) == 0 && got)
        req->sent += got;
    return code;
}

/* Sends the file range of a reader as http_send_file() does, so that the thread is free at once. */
static int send_as_file(struct http_request *req, struct reader *r, struct file_range range,
                        uint64_t len)
{
    range.fd = fcntl(range.fd, F_DUPFD_CLOEXEC, 0);
    if (range.fd < 0)
        return err_from_errno(errno);
    range.len = len;
    reader_skip(r, len);
    return http_send_file(req, range);
}

int http_send_reader(struct http_request *req, struct reader *r, uint64_t len)
{
    struct file_range range;
    char *piece;
    int code;

    if (reader_as_file(r, &range) && (len == UINT64_MAX || len <= range.len))
        return send_as_file(req, r, range, size_min(len, range.len));
    if (!req->may_block)
        return ERR_AGAIN;
    if (len > COPY_PIECE && !req->no_body && seat_take(req) < 0)
        return ERR_BUSY;
    code = begin_stream(req, len);
    if (code < 0 || req->no_body) {
        req->stage = STAGE_DONE;
        return code;
    }
    piece = malloc(COPY_PIECE);
    if (!piece)
        return ERR_NO_MEMORY;
    code = len == UINT64_MAX ? send_unknown(req, r, piece) : send_known(req, r, len, piece);
    free(piece);
    return code < 0 ? code : end_stream(req);
}

void response_refuse(struct http_request *req, int status, const char *text)
{
    response_reset(req);
    req->close = true;
    http_respond(req, status);
    http_respond_header(req, STR("Content-Type"), STR("text/plain"));
    if (status == 503)
        http_respond_header(req, STR("Retry-After"), STR("1"));
    if (http_send(req, str_z(text)) < 0)
        req->conn->broken = true;
}
