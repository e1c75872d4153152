/* A request to a remote storage, and its answer back. */
#include "s3/forward.h"

struct forward {
    struct forward_body body;
    struct forward_request request;
    struct http_header headers[FORWARD_HEADERS_MAX];
};

/* A storage that broke off may have acted: that is no "try again" (F6). */
static int judge(const struct storage *s, int code, struct err *err)
{
    if (code == ERR_DENIED)
        return err_set(err, S3_ACCESS_DENIED,
                       "You have no credentials on the storage that holds this bucket.");
    if (code == ERR_CLOSED)
        code = ERR_PEER;
    return err_wrap(err, code, "storage " STR_FMT, STR_ARG(s->name)), code;
}

int forward_send(struct storage *s, const struct forward_request *r, const struct forward_body *b,
                 struct exchange **out, struct err *err)
{
    int code;

    BUG_ON(!s->ops->forward);
    code = s->ops->forward(s, r, out, err);
    if (code == 0)
        return 0;
    return b->failed ? b->failed : judge(s, code, err);
}

static bool is_passed(const struct http_head *head, struct str name)
{
    if (head->status == 204 && str_ieq(name, STR("content-length")))
        return false;
    return !str_ieq(name, STR("server")) && !forward_is_hop(head, name);
}

static void answer_headers(struct call *c, const struct http_head *head)
{
    struct str id = str_z(http_request_id(c->http));

    for (size_t i = 0; i < head->header_count; i++)
        if (is_passed(head, head->headers[i].name))
            http_respond_header(c->http, head->headers[i].name, head->headers[i].value);
    if (!http_header(head, "x-amz-request-id").p)
        http_respond_header(c->http, STR("x-amz-request-id"), id);
    http_respond_header(c->http, STR("x-weir-request-id"), id);
}

int forward_answer(struct call *c, struct exchange *e, struct err *err)
{
    const struct http_head *head = exchange_head(e);
    bool to_head = c->head->method == HTTP_HEAD;

    if (head->status < 200 || head->status > 599)
        return err_set(err, ERR_PEER, "a storage answered with status %d", head->status);
    http_respond(c->http, head->status);
    answer_headers(c, head);
    c->begun = true;
    if (!http_response_has_body(head, to_head) &&
        (!to_head || head->has_length || head->status == 204 || head->status == 304))
        return http_send(c->http, STR_EMPTY);
    return http_send_reader(c->http, exchange_body(e),
                            head->has_length ? head->content_length : UINT64_MAX);
}

int forward_call(struct call *c, struct storage *s, struct err *err)
{
    struct exchange *e = NULL;
    struct forward *f;
    int code;

    if (!http_may_block(c->http))
        return ERR_AGAIN;
    f = arena_new(c->a, struct forward);
    if (!f)
        return err_code(err, ERR_NO_MEMORY);
    code = forward_body_open(c, &f->body, s->takes_trailers, err);
    if (code == 0)
        code = forward_describe(c, &f->body, &f->request, f->headers, err);
    if (code == 0)
        code = forward_send(s, &f->request, &f->body, &e, err);
    if (code == 0)
        code = forward_answer(c, e, err);
    exchange_close(e);
    forward_body_close(&f->body);
    return code;
}
