/* Runs the function of a request's row and sends the answer. */
#include "rest/rest_int.h"

#include <stdio.h>

#define NO_HEADER ((struct http_header){0})

/* --- weir's own dialect --- */

static void own_error(struct json_out *w, const char *code, const char *message, const char *id)
{
    json_out_key(w, "error");
    json_out_open(w, '{');
    json_out_member_str(w, "code", str_z(code));
    json_out_member_str(w, "message", str_z(message));
    json_out_member_str(w, "request_id", str_z(id));
    json_out_close(w, '}');
}

static void own_page(struct json_out *w, const struct rest_page *page, struct str next)
{
    (void)page;
    json_out_member_str(w, "next", next);
}

static const struct rest_field own_paging[] = {
    {"after", "The `next` of the page before; left out: the first page."},
    {"limit", "How many items to answer at most.", REST_INTEGER},
    {0},
};

const struct rest_dialect rest_own = {
    .write_error = own_error,
    .paging = own_paging,
    .page_usual = REST_PAGE_USUAL,
    .page_max = REST_PAGE_MAX,
    .write_page = own_page,
    .body_max = 64 * KIB,
};

/* --- errors --- */

static int error_send(const struct rest_dialect *d, struct http_request *req, int status,
                      const char *code, const char *message, struct http_header extra)
{
    struct buf body = BUF_INIT(8192);
    struct json_out w;
    int result;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    d->write_error(&w, code, message, http_request_id(req));
    json_out_close(&w, '}');
    http_respond(req, status);
    http_respond_header(req, STR("Content-Type"), STR("application/json"));
    if (extra.name.len)
        http_respond_header(req, extra.name, extra.value);
    result = http_send(req, buf_str(&body));
    buf_release(&body);
    return result;
}

/* --- answers --- */

void rest_known_i64(struct json_out *w, const char *name, bool known, int64_t value)
{
    json_out_key(w, name);
    if (known)
        json_out_i64(w, value);
    else
        json_out_null(w);
}

int rest_give_struct(struct rest_call *c, const void *thing, size_t size)
{
    BUG_ON(size != c->row->out);
    rest_fields_write(c->w, c->row->answer, thing);
    return 0;
}

void rest_status(struct rest_call *c, int status)
{
    BUG_ON(status != c->row->status && status != c->row->other_status);
    c->status = status;
}

int rest_refuse(struct rest_call *c, int status, const char *code, const char *message,
                struct http_header extra)
{
    BUG_ON(c->sent);
    c->sent = c->refused = true;
    c->refusal = error_send(c->dialect, c->req, status, code, message, extra);
    return c->refusal;
}

void rest_header(struct rest_call *c, struct str name, struct str value)
{
    BUG_ON(c->header_count == REST_HEADERS_MAX);
    c->headers[c->header_count++] =
        (struct http_header){arena_str(c->arena, name), arena_str(c->arena, value)};
}

/* Gives the request the answer's status, and the headers that rest_header() added. */
static void answer_head(struct rest_call *c, int status)
{
    http_respond(c->req, status);
    for (size_t i = 0; i < c->header_count; i++)
        http_respond_header(c->req, c->headers[i].name, c->headers[i].value);
}

struct http_request *rest_take_answer(struct rest_call *c, int status)
{
    BUG_ON(c->sent);
    c->sent = true;
    answer_head(c, status);
    return c->req;
}

int rest_send(struct rest_call *c, struct str body)
{
    BUG_ON(!c->row->media || c->sent);
    c->sent = true;
    answer_head(c, c->status);
    http_respond_header(c->req, STR("Content-Type"), str_z(c->row->media));
    return http_send(c->req, body);
}

int rest_send_error(struct http_request *req, int status, const char *code, const char *message,
                    struct http_header extra)
{
    return error_send(&rest_own, req, status, code, message, extra);
}

static int failure_send(const struct rest_dialect *d, struct http_request *req, int code,
                        const struct err *err)
{
    static const struct {
        int code, status;
        const char *name;
    } rows[] = {
        {ERR_INVALID, 400, "invalid"},
        {ERR_PARSE, 400, "malformed"},
        {ERR_TYPE, 400, "invalid"},
        {ERR_NOT_FOUND, 404, "not_found"},
        {ERR_NO_BUCKET, 404, "not_found"},
        {ERR_EXISTS, 409, "exists"},
        {ERR_CONFLICT, 409, "conflict"},
        {ERR_TOO_LARGE, 413, "too_large"},
        {ERR_BUSY, 503, "busy"},
        {ERR_SHUTDOWN, 503, "shutting_down"},
        {ERR_NO_SPACE, 507, "no_space"},
        {ERR_DENIED, 403, "not_allowed"},
        {ERR_UNSUPPORTED, 501, "unsupported"},
        {ERR_UNAVAILABLE, 503, "unavailable"},
        {ERR_OFFLINE, 503, "unavailable"},
        {ERR_STORE, 503, "unavailable"},
        /* ERR_CLOSED and ERR_TIMEOUT come from the store. The store may have made the change in
         * spite of the error. */
        {ERR_CLOSED, 503, "unavailable"},
        {ERR_TIMEOUT, 503, "unavailable"},
        {ERR_IN_USE, 409, "in_use"},
    };
    const char *text = err && *err->text ? err->text : err_text(code), *name = "internal";
    int status = d->status ? d->status(code) : 0;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].code == code) {
            name = rows[i].name;
            status = status ? status : rows[i].status;
        }
    if (status)
        return error_send(d, req, status, name, text, NO_HEADER);
    log_error(http_request_log(req), "api.failed", log_z("code", err_name(code)),
              log_z("error", text));
    return error_send(d, req, 500, name, text, NO_HEADER);
}

int rest_send_failure(struct http_request *req, int code, const struct err *err)
{
    return failure_send(&rest_own, req, code, err);
}

static const struct rest_dialect *match_dialect(const struct rest_match *match)
{
    return match->dialect ? match->dialect : &rest_own;
}

int rest_match_refuse(const struct rest_match *match, struct http_request *req, int status,
                      const char *code, const char *message)
{
    return error_send(match_dialect(match), req, status, code, message, NO_HEADER);
}

int rest_match_fail(const struct rest_match *match, struct http_request *req, int code,
                    const struct err *err)
{
    return failure_send(match_dialect(match), req, code, err);
}

/* --- lists --- */

bool rest_full(const struct rest_call *c)
{
    return c->page.more;
}

size_t rest_wanted(const struct rest_call *c)
{
    return c->page.limit + 1;
}

struct str rest_after(const struct rest_call *c)
{
    BUG_ON(c->row->by_place);
    return c->page.after;
}

size_t rest_skip(struct rest_call *c)
{
    BUG_ON(!c->row->by_place);
    c->page.offered = c->page.skip;
    return c->page.skip;
}

size_t rest_limit(const struct rest_call *c)
{
    BUG_ON(!c->row->by_source);
    return c->page.limit;
}

void rest_row_begin(struct rest_call *c)
{
    BUG_ON(!c->list_open || !c->row->by_source || c->page.written == c->page.limit);
    c->page.written++;
    json_out_open(c->w, '{');
}

void rest_page_end(struct rest_call *c, bool more, struct str next)
{
    BUG_ON(!c->row->by_source);
    c->page.more = more;
    c->page.last = next;
}

static bool is_before_page(const struct rest_call *c, struct str key)
{
    const struct rest_page *p = &c->page;

    if (c->row->by_place)
        return p->offered < p->skip;
    return p->after.len && str_cmp(key, p->after) <= 0;
}

bool rest_takes(struct rest_call *c, struct str key)
{
    struct rest_page *p = &c->page;
    bool before = is_before_page(c, key);

    BUG_ON(!c->list_open || c->row->by_place == (key.len > 0));
    if (!before && p->written == p->limit)
        p->more = true;
    if (before || p->more) {
        p->offered += before;
        return false;
    }
    p->offered++;
    if (++p->written == p->limit)
        p->last = arena_str(c->arena, key);
    return true;
}

bool rest_item(struct rest_call *c, struct str key)
{
    bool takes = rest_takes(c, key);

    if (takes)
        json_out_open(c->w, '{');
    return takes;
}

void rest_add_struct(struct rest_call *c, struct str key, const void *thing, size_t size)
{
    BUG_ON(size != c->row->item);
    if (!rest_item(c, key))
        return;
    rest_fields_write(c->w, c->row->items, thing);
    rest_item_end(c);
}

void rest_item_end(struct rest_call *c)
{
    json_out_close(c->w, '}');
}

void rest_list_end(struct rest_call *c)
{
    if (c->list_open)
        json_out_close(c->w, ']');
    c->list_open = false;
}

static void write_next(struct rest_call *c)
{
    const struct rest_page *p = &c->page;
    char place[32] = "";

    if (p->more && c->row->by_place)
        snprintf(place, sizeof(place), "%zu", p->offered);
    c->dialect->write_page(c->w, p,
                           c->row->by_place ? str_z(place)
                           : p->more        ? p->last
                                            : STR_EMPTY);
}

/* --- running --- */

static void answer_begin(struct rest_call *c)
{
    json_out_init(&c->writer, &c->text);
    c->w = &c->writer;
    json_out_open(c->w, '{');
    if (c->row->list) {
        json_out_key(c->w, c->row->list);
        json_out_open(c->w, '[');
        c->list_open = true;
    }
}

/* Frees the answer's text, and overwrites it first, because it may contain a secret. */
static void answer_release(struct rest_call *c)
{
    if (c->text.p)
        secure_zero(c->text.p, c->text.cap);
    buf_release(&c->text);
}

static int answer_send(struct rest_call *c)
{
    BUG_ON(c->row->media); /* a row with `media` must have answered with rest_send() */
    if (c->status == 204) {
        answer_head(c, 204);
        return http_send(c->req, STR_EMPTY);
    }
    if (c->row->list) {
        rest_list_end(c);
        write_next(c);
    }
    json_out_close(c->w, '}');
    if (buf_error(&c->text) < 0)
        return failure_send(c->dialect, c->req, buf_error(&c->text), NULL);
    answer_head(c, c->status);
    http_respond_header(c->req, STR("Content-Type"), STR("application/json"));
    http_respond_header(c->req, STR("Cache-Control"), STR("no-store"));
    return http_send(c->req, buf_str(&c->text));
}

static int rest_answer(struct rest_call *c)
{
    struct err err = {0};

    answer_begin(c);
    int code = c->row->run(c, &err);
    if (c->sent || code == ERR_AGAIN)
        return c->refused ? c->refusal : code;
    if (code == 0)
        return answer_send(c);
    if (code == ERR_NOT_FOUND && c->row->missing)
        err_set(&err, code, "%s", c->row->missing);
    return failure_send(c->dialect, c->req, code, &err);
}

/* Prepares the call of the row's function: checks the caller (in a dialect), reads the values and
 * calls row->needs. Sets *from_peer to true if the peer closed the connection, or was too slow,
 * while the body was read. */
static int rest_prepare(struct rest_call *c, const struct rest_path *path, bool *from_peer,
                        struct err *err)
{
    int code = c->dialect->admit ? c->dialect->admit(c, err) : 0;

    if (code == 0 && !c->sent)
        code = rest_read(c, path, err);
    if (code == 0 && !c->sent && c->row->needs)
        code = c->row->needs(c, err);
    if (code < 0 || c->sent)
        return code;
    code = rest_read_body(c, err);
    *from_peer = code == ERR_CLOSED || code == ERR_TIMEOUT;
    return code;
}

int rest_run(const struct rest_match *match, struct http_request *req)
{
    const struct rest_row *row = match->row;
    struct rest_call c = {.ctx = match->ctx,
                          .req = req,
                          .row = row,
                          .dialect = match_dialect(match),
                          .arena = http_request_arena(req),
                          .status = row->status ? row->status : 200};
    bool from_peer = false;
    struct err err = {0};

    if (!row->quick && !http_may_block(req))
        return ERR_AGAIN;
    int code = rest_prepare(&c, &match->path, &from_peer, &err);
    /* If the peer closed the connection or was too slow, nothing is sent here; the HTTP server
     * handles that. */
    if (c.refused)
        code = c.refusal;
    else if (code < 0 && !from_peer && !c.sent)
        code = failure_send(c.dialect, req, code, &err);
    else if (code == 0 && !c.sent)
        code = rest_answer(&c);
    answer_release(&c);
    json_decref(c.body);
    json_decref(c.lists);
    return code;
}
