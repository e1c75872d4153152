/* Serves requests for a website, whose host is <bucket>.<website domain> (docs/website.md). Such
 * requests count as anonymous GetObject and HeadObject requests, and errors are answered with pages
 * for people. */
#include "s3/gateway/gateway_int.h"

#include "s3/documents/website.h"

static const struct operation *website_operation(enum http_method method)
{
    enum s3_operation id = method == HTTP_HEAD ? S3_OP_HeadObject : S3_OP_GetObject;

    for (size_t i = 0; i < operation_count; i++)
        if (operations[i].id == id)
            return &operations[i];
    BUG_ON(true);
    return NULL;
}

/* --- answers --- */

static void website_write_line(struct buf *out, const char *name, struct str value)
{
    if (value.len == 0)
        return;
    buf_appendf(out, "<li>%s: ", name);
    xml_text(out, value);
    buf_append_z(out, "</li>\n");
}

static void write_title(struct buf *out, int status)
{
    buf_appendf(out, "<html>\n<head><title>%d %s</title></head>\n<body>\n<h1>%d %s</h1>\n", status,
                http_reason(status), status, http_reason(status));
}

static int respond_page(struct call *c, struct buf *html)
{
    respond_header(c, "Content-Type", STR("text/html; charset=utf-8"));
    buf_append_z(html, "</body>\n</html>\n");
    int code = http_send(c->http, buf_str(html));
    c->begun = code != ERR_AGAIN;
    buf_release(html);
    return code;
}

int website_error(struct call *c, int code, const struct err *err)
{
    struct buf html = BUF_INIT(CALL_OUT_MAX);
    struct str id = str_z(http_request_id(c->http));
    struct str message =
        str_z(code <= S3_FIRST_CODE && *err->text ? err->text : s3_code_message(code));
    int status = s3_code_status(code);

    if (c->begun)
        return code;
    call_log_failure(c, code, err);
    write_title(&html, status);
    buf_append_z(&html, "<ul>\n");
    website_write_line(&html, "Code", str_z(s3_code_name(code)));
    website_write_line(&html, "Message", message);
    website_write_line(&html, status == 404 && !c->target.bucket ? "BucketName" : "Key",
                       c->target.bucket ? c->key : c->bucket_name);
    website_write_line(&html, "RequestId", id);
    website_write_line(&html, "HostId", id);
    buf_append_z(&html, "</ul>\n<hr/>\n");
    respond_begin(c, status);
    respond_header(c, "x-amz-error-code", str_z(s3_code_name(code)));
    respond_header(c, "x-amz-error-message", message);
    if (status == 405)
        respond_header(c, "Allow", STR("GET, HEAD"));
    return respond_page(c, &html);
}

static int respond_redirect(struct call *c, int status, struct str location)
{
    struct buf html = BUF_INIT(CALL_OUT_MAX);

    write_title(&html, status);
    respond_begin(c, status);
    respond_header(c, "Location", location);
    return respond_page(c, &html);
}

static int website_follow(struct call *c, const struct website_redirect *redirect,
                          struct str prefix, struct str key)
{
    struct buf location = BUF_INIT(HTTP_MAX_HEAD);
    struct str protocol = http_request_is_tls(c->http) ? STR("https") : STR("http");
    int code;

    website_location(&location, redirect, prefix, key, protocol, http_header(c->head, "host"));
    code = buf_error(&location);
    if (code == 0)
        code = respond_redirect(c, redirect->status ? redirect->status : 301, buf_str(&location));
    buf_release(&location);
    return code;
}

/* --- reading --- */

static struct str redirect_of(const struct object_info *info)
{
    for (size_t i = 0; i < info->meta.header_count; i++)
        if (str_ieq(info->meta.headers[i].name, STR("x-amz-website-redirect-location")))
            return info->meta.headers[i].value;
    return STR_EMPTY;
}

/* May everybody read the key? *code is the result of looking for the object. */
static bool is_readable(struct call *c, struct str key, struct get_result *got, int *code)
{
    static const struct object_conditions none;
    struct err ignored = {0};

    *code = call_turn(c, key, &ignored);
    if (*code < 0)
        return false;
    struct bucket *b = c->target.bucket;
    *code = b->ops->head(b, c->a, key, STR_EMPTY, &none, got, &ignored);
    return *code == 0 && call_may(c, &c->target, S3_ACTION_GET_OBJECT, key, &got->info);
}

/* Answers with the object c->key, or with the redirection that is kept with the object. */
static int website_read_page(struct call *c, bool *is_there, struct err *err)
{
    struct get_result got = {0};
    int code;
    bool readable = is_readable(c, c->key, &got, &code);
    struct str elsewhere = readable ? redirect_of(&got.info) : STR_EMPTY;

    *is_there = code != ERR_NOT_FOUND;
    if (code == ERR_UNAVAILABLE)
        return err_code(err, code);
    if (elsewhere.len)
        return respond_redirect(c, 301, elsewhere);
    return c->op->fn(c, err);
}

/* Is `asked` the name of a folder without its slash, and has the folder an index page? AWS
 * redirects to the folder with 302. */
static bool is_folder(struct call *c, const struct website *site, struct str asked)
{
    struct get_result got = {0};
    int code;

    if (asked.len == 0 || asked.p[asked.len - 1] == '/')
        return false;
    struct str index = arena_fmt(c->a, STR_FMT "/" STR_FMT, STR_ARG(asked), STR_ARG(site->index));
    return index.len && index.len <= OBJECT_KEY_MAX && is_readable(c, index, &got, &code);
}

static int redirect_to_folder(struct call *c, struct str asked)
{
    struct buf location = BUF_INIT(HTTP_MAX_HEAD);

    buf_append_char(&location, '/');
    url_encode(&location, asked, true);
    buf_append_char(&location, '/');
    int code = respond_redirect(c, 302, buf_str(&location));
    buf_release(&location);
    return code;
}

/* Answers with the site's own page for errors, and the error's status. Returns the error when there
 * is no such page. */
static int error_page(struct call *c, const struct website *site, int error)
{
    struct str failed = c->key;
    struct err ignored = {0};
    int code;

    if (site->error.len == 0 || s3_code_status(error) / 100 != 4)
        return error;
    c->key = site->error;
    c->status = s3_code_status(error);
    code = call_turn(c, c->key, &ignored);
    if (code == 0)
        code = c->op->fn(c, &ignored);
    if (code < 0 && code != ERR_AGAIN && !c->begun) {
        c->key = failed;
        c->status = 0;
        return error;
    }
    return code;
}

static int website_serve(struct call *c, const struct website *site, struct err *err)
{
    const struct website_rule *rule = website_rule(site, c->key, 0);
    struct str asked = c->key;
    bool is_there = true;
    int code;

    if (rule)
        return website_follow(c, &rule->redirect, rule->key_prefix, asked);
    c->key = website_key(site, c->a, asked);
    code = website_read_page(c, &is_there, err);
    if (code >= 0 || code == ERR_AGAIN || c->begun)
        return code;
    if (!is_there && is_folder(c, site, asked))
        return redirect_to_folder(c, asked);
    rule = website_rule(site, asked, s3_code_status(code));
    if (rule)
        return website_follow(c, &rule->redirect, rule->key_prefix, asked);
    return error_page(c, site, code);
}

static int website_load(struct call *c, struct website *site, struct err *err)
{
    struct str text;
    int code;

    if (!http_may_block(c->http) && routes_any_remote(c->g->o.routes))
        return ERR_AGAIN;
    code = call_resolve(c, NULL, err);
    if (code == 0 && target_is_foreign(&c->target.at)) /* weir cannot decide about access there */
        code = err_set(err, S3_NOT_IMPLEMENTED, "Websites of remote storages are not implemented");
    if (code == 0)
        code = call_open(c, &c->target, c->bucket_name, err);
    if (code == 0)
        code = call_document(c, c->target.bucket, "website", &text, err);
    if (code == 0 && text.len == 0)
        return s3_fail(err, S3_NO_SUCH_WEBSITE_CONFIGURATION);
    if (code == 0)
        code = website_read(site, c->a, text, err);
    return code;
}

int website_run(struct call *c, struct err *err)
{
    struct website site = {0};
    int code = website_load(c, &site, err);

    if (code < 0)
        return code;
    if (c->head->method != HTTP_GET && c->head->method != HTTP_HEAD)
        return s3_fail(err, S3_METHOD_NOT_ALLOWED);
    c->op = website_operation(c->head->method);
    if (site.redirect_all.host.len)
        return website_follow(c, &site.redirect_all, STR_EMPTY, c->key);
    return website_serve(c, &site, err);
}
