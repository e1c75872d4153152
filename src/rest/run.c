/* Runs the function of a request's row and sends the answer. */
#include "base/clock.h"
#include "rest/rest_int.h"

#include <stdio.h>

#define NO_HEADER ((struct http_header){0})

/* --- answers --- */

void rest_time(struct json_out *w, const char *name, int64_t wall_ms)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (wall_ms)
        clock_iso(wall_ms, text);
    json_out_member_str(w, name, str_z(text));
}

void rest_known_i64(struct json_out *w, const char *name, bool known, int64_t value)
{
    json_out_key(w, name);
    if (known)
        json_out_i64(w, value);
    else
        json_out_null(w);
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
    c->sent = true;
    return rest_send_error(c->req, status, code, message, extra);
}

int rest_send(struct rest_call *c, struct str body)
{
    BUG_ON(!c->row->media || c->sent);
    c->sent = true;
    http_respond(c->req, c->status);
    http_respond_header(c->req, STR("Content-Type"), str_z(c->row->media));
    return http_send(c->req, body);
}

static void write_error(struct buf *out, const char *code, const char *message, const char *id)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_key(&w, "error");
    json_out_open(&w, '{');
    json_out_member_str(&w, "code", str_z(code));
    json_out_member_str(&w, "message", str_z(message));
    json_out_member_str(&w, "request_id", str_z(id));
    json_out_close(&w, '}');
    json_out_close(&w, '}');
}

int rest_send_error(struct http_request *req, int status, const char *code, const char *message,
                    struct http_header extra)
{
    struct buf body = BUF_INIT(8192);
    int result;

    write_error(&body, code, message, http_request_id(req));
    http_respond(req, status);
    http_respond_header(req, STR("Content-Type"), STR("application/json"));
    if (extra.name.len)
        http_respond_header(req, extra.name, extra.value);
    result = http_send(req, buf_str(&body));
    buf_release(&body);
    return result;
}

int rest_send_failure(struct http_request *req, int code, const struct err *err)
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
        /* ERR_CLOSED and ERR_TIMEOUT come from the store, which may have made the change all the
           same. */
        {ERR_CLOSED, 503, "unavailable"},
        {ERR_TIMEOUT, 503, "unavailable"},
        {ERR_IN_USE, 409, "in_use"},
    };
    const char *text = err && *err->text ? err->text : err_text(code);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].code == code)
            return rest_send_error(req, rows[i].status, rows[i].name, text, NO_HEADER);
    log_error(http_request_log(req), "api.failed", log_z("code", err_name(code)),
              log_z("error", text));
    return rest_send_error(req, 500, "internal", text, NO_HEADER);
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
    json_out_member_str(c->w, "next",
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
        http_respond(c->req, 204);
        return http_send(c->req, STR_EMPTY);
    }
    if (c->row->list) {
        rest_list_end(c);
        write_next(c);
    }
    json_out_close(c->w, '}');
    if (buf_error(&c->text) < 0)
        return rest_send_failure(c->req, buf_error(&c->text), NULL);
    http_respond(c->req, c->status);
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
        return code;
    if (code == 0)
        return answer_send(c);
    if (code == ERR_NOT_FOUND && c->row->missing)
        err_set(&err, code, "%s", c->row->missing);
    return rest_send_failure(c->req, code, &err);
}

/* Prepares the call of the row's function: reads the values and calls row->needs. *from_peer is set
 * to true when the peer closed or was too slow while the body was read. */
static int rest_prepare(struct rest_call *c, const struct rest_path *path, bool *from_peer,
                        struct err *err)
{
    int code = rest_read(c, path, err);

    if (code == 0 && c->row->needs)
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
                          .arena = http_request_arena(req),
                          .status = row->status ? row->status : 200};
    bool from_peer = false;
    struct err err = {0};

    if (!row->quick && !http_may_block(req))
        return ERR_AGAIN;
    int code = rest_prepare(&c, &match->path, &from_peer, &err);
    /* The HTTP server handles a peer that closed the connection or is too slow. */
    if (code < 0 && !from_peer && !c.sent)
        code = rest_send_failure(req, code, &err);
    else if (code == 0 && !c.sent)
        code = rest_answer(&c);
    answer_release(&c);
    json_decref(c.body);
    return code;
}
