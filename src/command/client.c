/* Calls the API of a running weir. */
#include "command/client.h"
#include "conf/credentials.h"

#include <stdio.h>

const struct flag client_flags[] = {CLIENT_FLAGS, {0}};

static const char *api_client_socket(const struct conf *conf)
{
    return str_starts(str_z(conf->api.listen), STR("unix:")) ? conf->api.listen + 5 : NULL;
}

/* Makes the URL of the API from the configuration. When the API listens on all interfaces, the URL
 * has the loopback address. When it listens on a unix socket, the client connects to
 * api_client_socket(), and the URL has the host localhost. */
static int api_client_url(struct buf *out, const struct conf *conf, struct err *err)
{
    const char *scheme = *conf->api.tls.cert ? "https" : "http";
    struct str listen = str_z(conf->api.listen), port;
    ptrdiff_t colon = -1;

    if (listen.len == 0)
        return err_set(err, ERR_INVALID, "api.listen is off; name the API with --url");
    if (api_client_socket(conf)) {
        buf_appendf(out, "%s://localhost", scheme);
        return 0;
    }
    for (size_t i = 0; i < listen.len; i++)
        if (listen.p[i] == ':')
            colon = (ptrdiff_t)i;
    port = str_skip(listen, (size_t)colon);
    if (colon == 0 || str_starts(listen, STR("0.0.0.0:")))
        buf_appendf(out, "%s://127.0.0.1" STR_FMT, scheme, STR_ARG(port));
    else if (str_starts(listen, STR("[::]:")))
        buf_appendf(out, "%s://[::1]" STR_FMT, scheme, STR_ARG(port));
    else
        buf_appendf(out, "%s://" STR_FMT, scheme, STR_ARG(listen));
    return 0;
}

int api_client_connect(struct api_client *r, const struct invocation *inv, const struct conf *conf,
                       uint64_t timeout_ms, struct err *err)
{
    const char *given = invocation_flag(inv, "url");
    struct buf url = BUF_INIT(4096);
    struct credentials keys = {0};
    int code = 0;

    *r = (struct api_client){0};
    if (given)
        buf_append_z(&url, given);
    else
        code = api_client_url(&url, conf, err);
    if (code == 0)
        code = buf_error(&url);
    if (code < 0) {
        buf_release(&url);
        return code;
    }
    while (url.len && url.p[url.len - 1] == '/')
        url.p[--url.len] = '\0';
    arena_init(&r->arena, 0);
    r->url = buf_take(&url);
    r->client = client_new(&(struct client_options){
        .unix_path = given ? NULL : api_client_socket(conf),
        .direct = !given,
        .ca_file = !given && *conf->api.tls.cert ? conf->api.tls.cert : NULL,
        .tls_insecure = invocation_flag(inv, "insecure") != NULL,
        .user_agent = "weir/" WEIR_VERSION,
        .timeout_ms = timeout_ms,
        .max_attempts = 1,
    });
    if (credentials_find(&keys, conf, &r->no_keys) == 0)
        credentials_basic(&r->authorization, &keys);
    credentials_release(&keys);
    return 0;
}

void api_client_close(struct api_client *r)
{
    if (r->authorization.p)
        secure_zero(r->authorization.p, r->authorization.cap);
    buf_release(&r->authorization);
    client_free(r->client);
    arena_release(&r->arena);
    free(r->url);
}

int api_client_exchange(struct api_client *r, const char *path, struct client_request *request,
                        const char *type, struct client_response *out, struct err *err)
{
    struct http_header headers[2];

    r->called = true;
    request->url = arena_fmt(&r->arena, "%s%s", r->url, path).p;
    request->headers = headers;
    request->header_count = 0;
    bool wants = str_starts(str_z(path), STR("/api/")) || str_eq(str_z(path), STR("/readyz"));
    if (r->authorization.len && wants) /* with keys, the answer of /readyz has more details */
        headers[request->header_count++] =
            (struct http_header){STR("Authorization"), buf_str(&r->authorization)};
    if (type)
        headers[request->header_count++] = (struct http_header){STR("Content-Type"), str_z(type)};
    int code = client_call(r->client, &r->arena, out, request, err);
    return code < 0 ? err_wrap(err, code, "no answer from the API at %s", r->url) : 0;
}

/* Collects the body of an error answer in memory, as client_call() would. */
static int api_client_gather(struct api_client *r, struct client_stream *s,
                             struct client_response *head, struct err *err)
{
    struct buf body = BUF_INIT(64 * KIB);
    int code = reader_read_all(client_stream_reader(s), &body, err);

    if (code == 0) {
        head->body = arena_str(&r->arena, buf_str(&body));
        code = api_client_error(r, head, err);
    }
    buf_release(&body);
    return code;
}

int api_client_open(struct api_client *r, const char *path, struct client_response *head,
                    struct client_stream **out, struct err *err)
{
    struct http_header *header = arena_new(&r->arena, struct http_header);
    struct client_request request = {.method = "GET", .no_retry = true, .headers = header};

    *head = (struct client_response){0};
    if (!header)
        return err_code(err, ERR_NO_MEMORY);
    r->called = true;
    request.url = arena_fmt(&r->arena, "%s%s", r->url, path).p;
    *header = (struct http_header){STR("Authorization"), buf_str(&r->authorization)};
    request.header_count = r->authorization.len > 0;
    int code = client_open(out, r->client, &r->arena, head, &request, NULL, err);
    if (code < 0)
        return err_wrap(err, code, "no answer from the API at %s", r->url);
    if (head->status / 100 == 2)
        return 0;
    code = api_client_gather(r, *out, head, err);
    client_stream_close(*out);
    *out = NULL;
    return code;
}

static int api_client_request(struct api_client *r, const char *method, const char *path,
                              const char *body, struct client_response *out, struct err *err)
{
    struct client_request request = {.method = method, .body = str_z(body), .no_retry = true};
    /* The API requires a Content-Type for every change. */
    bool typed = body || strcmp(method, "GET") != 0;

    return api_client_exchange(r, path, &request, typed ? "application/json" : NULL, out, err);
}

int api_client_call(struct api_client *r, const char *path, const char *body,
                    struct client_response *out, struct err *err)
{
    return api_client_request(r, body ? "POST" : "GET", path, body, out, err);
}

/* Sets the error for an answer that does not come from the API. Usually the URL is that of the S3
 * port. */
static int api_client_not_api(const struct api_client *r, const struct client_response *response,
                              struct err *err)
{
    return err_set(err, ERR_PEER, "%s is not weir's API (status %d); the API is on api.listen",
                   r->url, response->status);
}

int api_client_send(struct api_client *r, const char *method, const char *path, const char *body,
                    json_t **out, struct err *err)
{
    struct client_response response;
    int code = api_client_request(r, method, path, body, &response, err);

    if (code == 0 && response.status / 100 != 2)
        code = api_client_error(r, &response, err);
    if (code == 0 && out) {
        *out = NULL;
        if (response.body.len && json_read(out, response.body, NULL) < 0)
            code = api_client_not_api(r, &response, err);
    }
    return code;
}

int api_client_error(const struct api_client *r, const struct client_response *response,
                     struct err *err)
{
    json_t *object = NULL;
    struct str message = STR_EMPTY;

    /* An error of the lake's calls has lakeFS's form: only a message. */
    if (json_read(&object, response->body, NULL) == 0)
        message = json_get_str(json_object_get(object, "error"), "message",
                               json_get_str(object, "message", STR_EMPTY));
    if (!message.len)
        api_client_not_api(r, response, err);
    else if (response->status == 401 && !r->authorization.len)
        err_set(err, ERR_PEER,
                "an administrator's keys are needed, and there are none: %s; WEIR_ACCESS_KEY and "
                "WEIR_SECRET_KEY are not set",
                r->no_keys.text);
    else
        err_set(err, ERR_PEER, STR_FMT, STR_ARG(message));
    json_decref(object);
    return ERR_PEER;
}
