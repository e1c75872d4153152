/* Sends a request to a remote storage, and the storage's answer to the client. */
#include "s3/gateway/forward.h"
#include "s3/gateway/bucket_name.h"
#include "s3/documents/deletion.h"

struct forward {
    struct forward_body body;
    struct forward_request request;
    struct http_header headers[FORWARD_HEADERS_MAX];
};

/* Turns an error of sending into the error that the client gets. A storage that closed the
 * connection may have acted, so the client must not be asked to try again (docs/forward.md, F6). */
static int forward_judge(const struct storage *s, int code, struct err *err)
{
    if (code == ERR_DENIED)
        return err_set(err, S3_ACCESS_DENIED,
                       "You have no credentials on the storage that holds this bucket.");
    if (code == ERR_CLOSED)
        code = ERR_PEER;
    return err_wrap(err, code, "storage " STR_FMT, STR_ARG(s->name));
}

int forward_send(struct storage *s, const struct forward_request *r, const struct forward_body *b,
                 struct exchange **out, struct err *err)
{
    int code;

    BUG_ON(!storage_can(s, STORAGE_FORWARDS));
    code = s->ops->forward(s, r, out, err);
    if (code == 0 && exchange_is_early(*out) && exchange_head(*out)->status < 300) {
        exchange_close(*out);
        *out = NULL;
        code = err_set(err, ERR_PEER, "success before it has the body");
    }
    if (code == 0)
        return 0;
    return b->held.failed ? b->held.failed : forward_judge(s, code, err);
}

/* Returns how a change ended. After 404, 408 or 409 the outcome is unknown: if the request was sent
 * twice (docs/forward.md, F7), its first copy may have made or removed the object, so that only its
 * second copy was refused. */
enum outcome forward_outcome(int code, struct exchange *e)
{
    int status = code == 0 ? exchange_head(e)->status : 0;

    if (status >= 200 && status < 300)
        return OUTCOME_DONE;
    if (status < 400 || status >= 500 || status == 404 || status == 408 || status == 409)
        return OUTCOME_UNKNOWN;
    return OUTCOME_REFUSED;
}

static void answer_headers(struct call *c, const struct http_head *head)
{
    struct str id = str_z(http_request_id(c->http));

    for (size_t i = 0; i < head->header_count; i++) {
        struct str name = head->headers[i].name;
        bool has_no_body = head->status == 204 && str_ieq(name, STR("content-length"));
        if (!has_no_body && !str_ieq(name, STR("server")) && !forward_is_hop(head, name))
            http_respond_header(c->http, name, head->headers[i].value);
    }
    if (!http_header(head, "x-amz-request-id").p)
        http_respond_header(c->http, STR("x-amz-request-id"), id);
    http_respond_header(c->http, STR("x-weir-request-id"), id);
}

static int body_without_length(struct call *c, struct exchange *e, struct str *out, struct err *err)
{
    struct buf text = BUF_INIT(FORWARD_SMALL);
    int code = reader_read_all(exchange_body(e), &text, err);

    *out = arena_str(c->a, buf_str(&text));
    buf_release(&text);
    return code < 0 ? err_wrap(err, ERR_PEER, "a storage's answer") : 0;
}

/* Reads a small answer's body before anything is sent to the client, so that head and body are sent
 * together. */
static int small_body(struct call *c, struct exchange *e, struct str *out, struct err *err)
{
    size_t len = (size_t)exchange_head(e)->content_length;

    if (!exchange_head(e)->has_length)
        return body_without_length(c, e, out, err);
    if (reader_as_bytes(exchange_body(e), out)) {
        reader_skip(exchange_body(e), len);
        return 0;
    }
    char *p = arena_alloc(c->a, len + 1);
    *out = str_n(p, len);
    int code = p ? reader_read_full(exchange_body(e), p, len, err) : err_code(err, ERR_NO_MEMORY);
    return code == ERR_CLOSED ? err_wrap(err, ERR_PEER, "a storage's answer") : code;
}

/* Remembers the id of an upload that the storage has begun, before the client can use the id
 * (docs/replication.md, S7). */
static int note_upload(struct call *c, struct str body, struct err *err)
{
    struct xml_node *root = NULL;
    int code = xml_read(&root, c->a, body, err);
    struct str id = code == 0 ? xml_child_text(root, "UploadId", STR_EMPTY) : STR_EMPTY;

    if (code < 0 || !id.len)
        return err_set(err, ERR_PEER, "a storage began an upload without an id");
    return call_upload_begun(c, id, err);
}

static bool begins_upload(const struct call *c, struct exchange *e)
{
    return c->target.at.sides.route && c->op && c->op->id == S3_OP_CreateMultipartUpload &&
           exchange_head(e)->status == 200;
}

static int answer_small(struct call *c, struct exchange *e, struct err *err)
{
    struct str body = STR_EMPTY;
    int code = small_body(c, e, &body, err);

    if (code == 0 && begins_upload(c, e))
        code = note_upload(c, body, err);
    if (code == 0)
        code = call_captured(c, forward_outcome(0, e), err);
    if (code < 0)
        return code;
    http_respond(c->http, exchange_head(e)->status);
    answer_headers(c, exchange_head(e));
    c->begun = true;
    return http_send(c->http, body);
}

/* Reads the body of the answer to a change. Reports the outcome of the change before the client
 * gets the last byte. */
struct told_reader {
    struct reader reader;
    struct reader *from;
    struct call *c;
    enum outcome outcome;
    uint64_t left; /* bytes still to come; UINT64_MAX: not known */
};

static int told_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct told_reader *t = container_of(r, struct told_reader, reader);
    int code = reader_read(t->from, to, len, got, err);

    if (code == 0 && t->left != UINT64_MAX)
        t->left -= *got;
    if (code == 0 && (*got == 0 || t->left == 0))
        code = call_captured(t->c, t->outcome, err);
    return code;
}

static const struct reader_ops told_ops = {.read = told_read};

static int answer_large(struct call *c, struct exchange *e)
{
    const struct http_head *head = exchange_head(e);
    uint64_t len = head->has_length ? head->content_length : UINT64_MAX;
    struct told_reader told = {{&told_ops}, exchange_body(e), c, forward_outcome(0, e), len};

    return http_send_reader(c->http, c->capture.begun ? &told.reader : exchange_body(e), len);
}

int forward_answer(struct call *c, struct exchange *e, struct err *err)
{
    const struct http_head *head = exchange_head(e);
    bool to_head = c->head->method == HTTP_HEAD;
    bool small = (head->has_length && head->content_length <= FORWARD_SMALL) || begins_upload(c, e);

    if (head->status < 200 || head->status > 599)
        return err_set(err, ERR_PEER, "a storage answered with status %d", head->status);
    if (http_response_has_body(head, to_head) && small)
        return answer_small(c, e, err);
    http_respond(c->http, head->status);
    answer_headers(c, head);
    if (!http_response_has_body(head, to_head) &&
        (!to_head || head->has_length || head->status == 204 || head->status == 304)) {
        c->begun = true;
        return http_send(c->http, STR_EMPTY);
    }
    int code = answer_large(c, e);
    c->begun = code != ERR_BUSY; /* after ERR_BUSY nothing was sent */
    return code;
}

/* --- on a fast worker (http/server.h): the answer is waited for without a thread --- */

static http_resume_fn forward_resume;

static void wait_for_answer(struct call *c)
{
    c->waits = true;
    http_await(c->http, exchange_fd(c->exchange), exchange_head_ms(c->exchange), forward_resume, c);
}

/* Sends a request without a body, if a connection is idle. ERR_AGAIN: a thread of the pool has to
 * send the request. */
static int forward_start(struct call *c, struct err *err)
{
    struct storage *s = c->target.at.storage;
    static const struct forward_body none;
    bool asks = c->head->method == HTTP_GET || c->head->method == HTTP_HEAD;
    struct forward_request r;
    struct http_header headers[FORWARD_HEADERS_MAX];

    if (!asks || http_request_length(c->http) != 0 || c->auth.payload >= AUTH_PAYLOAD_CHUNKS)
        return ERR_AGAIN;
    int code = forward_describe(c, &none, &r, headers, err);
    r.now = true;
    if (code == 0)
        code = s->ops->forward(s, &r, &c->exchange, err);
    if (code < 0)
        return ERR_AGAIN; /* the pool will try again and report the error */
    wait_for_answer(c);
    return 0;
}

/* Is the answer complete, so that it can be sent without waiting? */
static bool answer_is_whole(const struct call *c)
{
    const struct http_head *head = exchange_head(c->exchange);
    bool to_head = c->head->method == HTTP_HEAD;
    struct str bytes;

    if (!http_response_has_body(head, to_head))
        return !to_head || head->has_length || head->status == 204 || head->status == 304;
    return head->has_length && head->content_length <= FORWARD_SMALL &&
           reader_as_bytes(exchange_body(c->exchange), &bytes);
}

static void drop_exchange(struct call *c)
{
    exchange_close(c->exchange);
    c->exchange = NULL;
}

/* Called when the answer is there, or when waiting for it ended. ERR_AGAIN: a thread of the pool
 * has to do the rest. */
static int forward_go_on(struct call *c, bool in_time, struct err *err)
{
    bool may_block = http_may_block(c->http);
    int code;

    if (!c->exchange)
        return may_block ? forward_call(c, err) : ERR_AGAIN;
    if (!in_time) {
        drop_exchange(c);
        return forward_judge(c->target.at.storage, err_code(err, ERR_TIMEOUT), err);
    }
    code = exchange_poll(c->exchange, err);
    if (code == ERR_AGAIN && !may_block) {
        wait_for_answer(c);
        return 0;
    }
    if (code == 0 && !may_block && !answer_is_whole(c))
        return ERR_AGAIN;
    bool again = code < 0 && exchange_is_stale(c->exchange);
    if (code == 0)
        code = forward_answer(c, c->exchange, err);
    else if (!again)
        code = forward_judge(c->target.at.storage, code, err);
    drop_exchange(c);
    return again ? ERR_AGAIN : code;
}

static int forward_resume(struct http_request *req, void *ctx, bool in_time)
{
    struct call *c = ctx;
    struct err err = {0};
    int code;

    (void)req;
    c->waits = false;
    if (!in_time && (!c->exchange || c->needs_thread)) {
        drop_exchange(c); /* no thread of the pool is free; the storage is not to blame */
        code = err_set(&err, ERR_BUSY, "too many requests at once");
    } else {
        code = forward_go_on(c, in_time, &err);
    }
    c->needs_thread = code == ERR_AGAIN;
    return c->waits || code == ERR_AGAIN ? code : call_finish(c, code, &err);
}

/* Reads the keys of a DeleteObjects request and writes the list anew, so that the storage reads the
 * same keys as weir (docs/forward.md, F13). */
static int take_batch(struct call *c, struct forward_body *b, struct deletion *batch,
                      struct err *err)
{
    struct buf text = BUF_INIT(2 * CALL_LIST_MAX); /* escaping the client's CDATA makes it longer */
    int code = deletion_read(batch, c->a, b->text, err);

    for (size_t i = 0; code == 0 && i < batch->count; i++)
        code = object_key_check(batch->keys[i], NULL, c->bucket_name, err);
    if (code == 0) {
        deletion_write(&text, batch);
        code = buf_error(&text);
    }
    if (code == 0)
        code = forward_body_replace(b, c, &text, err);
    buf_release(&text);
    return code;
}

/* Announces the change before anything of it is sent (docs/replication.md, R1). */
static int forward_announce(struct call *c, const struct deletion *batch, struct err *err)
{
    int code = 0;

    if (batch->keys)
        code = call_before_removals(c, batch->keys, batch->count, false, err);
    return code < 0 ? code : call_capture(c, batch->keys, batch->count, err);
}

/* Reports the outcome of the change. Returns `code` if it is an error, else the error of
 * reporting. */
static int captured(struct call *c, int code, enum outcome outcome, struct err *err)
{
    struct err late = {0};
    int told = call_captured(c, outcome, code < 0 ? &late : err);

    return code < 0 ? code : told;
}

/* Called when the storage has answered. A bucket that was made is removed again if a space
 * (route/space.h) has taken its name meanwhile. */
static int forward_settle(struct call *c, struct exchange *e, struct err *err)
{
    bool made = c->op && c->op->flags & OP_MAKES && !c->beyond && exchange_head(e)->status == 200;

    return made ? call_yield_bucket(c, c->target.at.storage, err) : 0;
}

static int send_and_answer(struct call *c, struct forward *f, struct err *err)
{
    struct exchange *e = NULL;
    int code = forward_send(c->target.at.storage, &f->request, &f->body, &e, err);
    enum outcome outcome = forward_outcome(code, e);

    if (!(c->op && c->op->flags & OP_EARLY))
        code = captured(c, code, outcome, err);
    if (code == 0)
        code = forward_settle(c, e, err);
    if (code == 0)
        code = forward_answer(c, e, err);
    code = captured(c, code, code == 0 ? outcome : OUTCOME_UNKNOWN, err);
    exchange_close(e);
    return code;
}

int forward_call(struct call *c, struct err *err)
{
    struct deletion batch = {0};
    struct forward *f;
    int code;

    if (!http_may_block(c->http))
        return forward_start(c, err);
    f = arena_new(c->a, struct forward);
    if (!f)
        return err_code(err, ERR_NO_MEMORY);
    f->body.whole = c->op && c->op->id == S3_OP_DeleteObjects;
    code = forward_body_open(&f->body, c, c->target.at.storage->takes_trailers, err);
    if (code == 0 && f->body.whole)
        code = take_batch(c, &f->body, &batch, err);
    if (code == 0)
        code = forward_describe(c, &f->body, &f->request, f->headers, err);
    if (code == 0)
        code = forward_announce(c, &batch, err);
    if (code == 0)
        code = send_and_answer(c, f, err);
    forward_body_close(&f->body);
    return code;
}
