/* A streaming call: the head of a response, and its body as a reader.
 *
 * A stream is one attempt (client_attempt.c). Its transfer belongs to a multi handle of libcurl,
 * and each read() lets the transfer advance a little. The write function copies bytes directly to
 * the buffer of read(). Bytes that do not fit there are held. When CLIENT_STREAM_HELD bytes are
 * held, libcurl pauses the transfer, and TCP slows down the peer. */
#include "base/clock.h"
#include "http/client_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* Time between two checks of the limits and of `cancel` while waiting. */
enum { STREAM_LOOK_MS = 100 };

struct client_stream {
    struct reader reader;
    struct client *client;
    struct client_request request;
    struct client_limits limits;
    struct attempt attempt;
    struct client_line line;
    bool is_added;  /* the easy handle is in the multi handle */
    bool is_over;   /* the transfer has ended with `result` */
    bool is_paused; /* the write function has paused the transfer */
    CURLcode result;
    struct err stop; /* why the write function has ended the transfer */
    int failed;      /* the code of the first failure; `failure` has its text */
    struct err failure;

    struct buf held; /* bytes that have arrived; those from held_at on were not read yet */
    size_t held_at;
    char *to; /* the caller's buffer during a read() */
    size_t to_len, to_got;

    uint64_t began_ns;
    uint64_t body;      /* bytes of the body so far */
    uint64_t refusal;   /* bytes of a redirect's or a refusal's body so far */
    uint64_t moved;     /* bytes sent and received at the last check of the limits */
    uint64_t idle_ns;   /* time waited since `moved` last grew */
    uint64_t slow_ns;   /* time waited in the present window of the speed limit */
    uint64_t slow_from; /* value of `moved` when the window began */
};

/* --- handles --- */

static struct client_line client_line_take(struct client *c)
{
    struct client_line line = {0};

    mutex_lock(&c->lock);
    if (c->lines.len)
        line = vec_pop(&c->lines);
    mutex_unlock(&c->lock);
    if (!line.easy) {
        line = (struct client_line){curl_easy_init(), curl_multi_init()};
        BUG_ON(!line.easy || !line.multi);
        curl_multi_setopt(line.multi, CURLMOPT_MAXCONNECTS, 4L);
    }
    return line;
}

static void client_line_give(struct client *c, struct client_line line)
{
    curl_easy_reset(line.easy); /* drops all pointers to our memory; connections are in the multi */
    mutex_lock(&c->lock);
    bool full = c->lines.len >= CLIENT_MAX_IDLE;
    if (!full)
        vec_push(&c->lines, line);
    mutex_unlock(&c->lock);
    if (full) {
        curl_easy_cleanup(line.easy);
        curl_multi_cleanup(line.multi);
    }
}

/* --- bytes --- */

static size_t stream_stop(struct client_stream *s, int code)
{
    s->attempt.stopped = code;
    return 0; /* accepting fewer bytes than libcurl offered ends the transfer */
}

size_t client_stream_take(struct client_stream *s, struct str piece)
{
    struct attempt *a = &s->attempt;
    struct str rest = piece;

    if (a->dropped) {
        a->received += piece.len;
        s->refusal += piece.len;
        return s->refusal <= CLIENT_REFUSAL_MAX
                   ? piece.len
                   : stream_stop(s, err_set(a->err, ERR_PEER, "a redirect with a large body"));
    }
    if (s->held.len - s->held_at >= CLIENT_STREAM_HELD) {
        s->is_paused = true;
        return CURL_WRITEFUNC_PAUSE; /* libcurl offers the same piece later */
    }
    a->received += piece.len;
    s->body += piece.len;
    if (s->limits.body_max && s->body > s->limits.body_max)
        return stream_stop(s, err_set(a->err, ERR_TOO_LARGE,
                                      "the answer has more than %" PRIu64 " bytes",
                                      s->limits.body_max));
    if (s->held.len == s->held_at) {
        size_t n = size_min(s->to_len - s->to_got, piece.len);
        if (n)
            memcpy(s->to + s->to_got, piece.p, n);
        s->to_got += n;
        rest = str_skip(piece, n);
    }
    buf_append_str(&s->held, rest);
    if (s->held.failed)
        return stream_stop(s, err_code(a->err, ERR_NO_MEMORY));
    return piece.len;
}

/* Copies held bytes to the buffer of read(). */
static size_t stream_give(struct client_stream *s, char *to, size_t len)
{
    size_t n = size_min(len, s->held.len - s->held_at);

    if (n)
        memcpy(to, s->held.p + s->held_at, n);
    s->held_at += n;
    if (s->held_at == s->held.len) {
        buf_reset(&s->held);
        s->held_at = 0;
    }
    return n;
}

/* --- limits --- */

static void stream_window_begin(struct client_stream *s)
{
    s->slow_ns = 0;
    s->slow_from = s->moved;
}

static int stream_check_slow(struct client_stream *s, struct err *err)
{
    const struct client_limits *l = &s->limits;

    if (l->slow_ms == 0 || s->slow_ns < l->slow_ms * NS_PER_MS)
        return 0;
    uint64_t least = l->slow_bytes_per_s * l->slow_ms / MS_PER_S;
    bool is_slow = s->moved - s->slow_from < least;

    stream_window_begin(s);
    return is_slow ? err_set(err, ERR_TIMEOUT,
                             "the peer sent less than %" PRIu64 " bytes/s for %" PRIu64 " s",
                             l->slow_bytes_per_s, l->slow_ms / MS_PER_S)
                   : 0;
}

static int stream_check(struct client_stream *s, struct err *err)
{
    const struct client_limits *l = &s->limits;

    if (s->request.cancel && atomic_load_explicit(s->request.cancel, memory_order_relaxed))
        return err_code(err, ERR_CANCELED);
    if (l->total_ms && clock_mono_ns() - s->began_ns > l->total_ms * NS_PER_MS)
        return err_set(err, ERR_TIMEOUT, "the answer took longer than %" PRIu64 " s",
                       l->total_ms / MS_PER_S);
    if (s->idle_ns > l->idle_ms * NS_PER_MS)
        return err_set(err, ERR_TIMEOUT, "the peer sent nothing for %" PRIu64 " ms", l->idle_ms);
    return stream_check_slow(s, err);
}

/* --- the transfer --- */

static void stream_note_end(struct client_stream *s)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(s->line.multi, &left)))
        if (message->msg == CURLMSG_DONE) {
            s->is_over = true;
            s->result = message->data.result;
        }
}

static void stream_wait(struct client_stream *s)
{
    uint64_t from = clock_mono_ns();

    curl_multi_poll(s->line.multi, NULL, 0, STREAM_LOOK_MS, NULL);
    uint64_t waited = clock_mono_ns() - from;
    s->idle_ns += waited;
    s->slow_ns += waited;
}

/* Lets libcurl do all work that it can do without waiting. If no bytes have moved, waits for a
 * moment. */
static int stream_step(struct client_stream *s, struct err *err)
{
    curl_off_t sent = 0;
    int running;

    if (s->is_paused) {
        s->is_paused = false;
        curl_easy_pause(s->line.easy, CURLPAUSE_CONT);
    }
    BUG_ON(curl_multi_perform(s->line.multi, &running) != CURLM_OK);
    stream_note_end(s);
    curl_easy_getinfo(s->line.easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    uint64_t moved = s->attempt.received + (uint64_t)sent;
    if (moved != s->moved) {
        s->moved = moved;
        s->idle_ns = 0;
    } else if (!s->is_over && !s->is_paused) {
        stream_wait(s);
    }
    return s->is_over ? 0 : stream_check(s, err);
}

static void stream_remove(struct client_stream *s)
{
    if (s->is_added)
        curl_multi_remove_handle(s->line.multi, s->line.easy);
    s->is_added = false;
}

/* Handles the end of a transfer. */
static int stream_end(struct client_stream *s, bool *next, struct err *err)
{
    int rc = attempt_hop_end(&s->attempt, s->result, next, err);

    return rc < 0 && rc == s->attempt.stopped ? err_set(err, rc, "%s", s->stop.text) : rc;
}

/* Makes one transfer: up to the end of its head, or up to its end if its body is dropped. */
static int stream_hop(struct client_stream *s, bool *next, struct err *err)
{
    struct attempt *a = &s->attempt;

    *next = s->is_over = s->is_paused = false;
    s->moved = a->received;
    s->idle_ns = s->refusal = 0;
    stream_window_begin(s);
    curl_easy_reset(s->line.easy);
    int rc = attempt_hop_begin(a, s->line.easy, err);
    if (rc < 0)
        return rc;
    a->err = &s->stop;
    BUG_ON(curl_multi_add_handle(s->line.multi, s->line.easy) != CURLM_OK);
    s->is_added = true;
    while (rc == 0 && !s->is_over && !attempt_has_answer(a))
        rc = stream_step(s, err);
    if (rc == 0 && !attempt_has_answer(a)) /* otherwise read() reports how the body ends */
        rc = stream_end(s, next, err);
    if (*next)
        stream_remove(s);
    return rc;
}

int client_stream_begin(struct client_stream *s, uint64_t began_ns, struct err *err)
{
    bool next = true;
    int rc = attempt_check_url(&s->attempt, err);

    s->began_ns = began_ns;
    while (rc == 0 && next)
        rc = stream_hop(s, &next, err);
    if (rc == ERR_TIMEOUT && s->attempt.again == AGAIN_NEVER)
        s->attempt.again = AGAIN_IF_REPEATABLE;
    stream_window_begin(s);
    return rc;
}

static int stream_fail(struct client_stream *s, int code, struct err *err)
{
    if (s->failed == 0) {
        s->failed = code;
        s->failure = err ? *err : (struct err){.code = code};
    }
    return err_set(err, s->failed, "%s", s->failure.text);
}

static int stream_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct client_stream *s = (struct client_stream *)reader;
    bool next;
    int rc = 0;

    *got = 0;
    if (s->failed)
        return stream_fail(s, s->failed, err);
    *got = stream_give(s, to, len);
    if (*got || len == 0)
        return 0;
    s->to = to;
    s->to_len = len;
    s->to_got = 0;
    while (rc == 0 && s->to_got == 0 && !s->is_over)
        rc = stream_step(s, err);
    *got = s->to_got;
    s->to_len = s->to_got = 0;
    if (rc == 0 && s->is_over && *got == 0)
        rc = stream_end(s, &next, err);
    return rc == 0 ? 0 : stream_fail(s, rc, err);
}

/* --- the stream --- */

struct client_stream *client_stream_new(struct client *c, const struct client_request *r,
                                        const struct client_limits *l)
{
    static const struct reader_ops ops = {.read = stream_read};
    struct client_stream *s = xcalloc(1, sizeof(*s));

    s->reader.ops = &ops;
    s->client = c;
    s->request = *r;
    if (l)
        s->limits = *l;
    if (s->limits.idle_ms == 0)
        s->limits.idle_ms = c->timeout_ms;
    attempt_init(&s->attempt, c, &s->request);
    s->attempt.stream = s;
    if (s->limits.redirects_max)
        s->attempt.redirects_max = s->limits.redirects_max;
    s->line = client_line_take(c);
    return s;
}

struct attempt *client_stream_attempt(struct client_stream *s)
{
    return &s->attempt;
}

struct reader *client_stream_reader(struct client_stream *s)
{
    return &s->reader;
}

void client_stream_expect(struct client_stream *s, uint64_t slow_bytes_per_s, uint64_t slow_ms)
{
    s->limits.slow_bytes_per_s = slow_bytes_per_s;
    s->limits.slow_ms = slow_ms;
    stream_window_begin(s);
}

void client_stream_close(struct client_stream *s)
{
    if (!s)
        return;
    stream_remove(s);
    client_line_give(s->client, s->line);
    attempt_release(&s->attempt);
    buf_release(&s->held);
    free(s);
}
