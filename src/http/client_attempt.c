/* One attempt: a libcurl transfer, and the further transfers to which its redirects lead.
 *
 * This file follows redirects itself. When a redirect leads to another host, libcurl would remove
 * Authorization and Cookie but send every other header. That is not safe, because forges accept
 * tokens in other headers too. */
#include "http/client_int.h"
#include "http/wire_int.h"

#include <stdio.h>
#include <stdlib.h>

/* weir's error codes for libcurl's error codes. A libcurl code that is not listed is ERR_PEER. */
static const struct {
    CURLcode curl;
    int code;
    enum again again;
} failures[] = {
    {CURLE_URL_MALFORMAT, ERR_INVALID, AGAIN_NEVER},
    {CURLE_COULDNT_RESOLVE_PROXY, ERR_UNAVAILABLE, AGAIN_ALWAYS},
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE, AGAIN_ALWAYS},
    {CURLE_COULDNT_CONNECT, ERR_UNAVAILABLE, AGAIN_ALWAYS},
    {CURLE_SSL_CONNECT_ERROR, ERR_UNAVAILABLE, AGAIN_ALWAYS},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_UNAVAILABLE, AGAIN_NEVER},
    {CURLE_SSL_CACERT_BADFILE, ERR_UNAVAILABLE, AGAIN_NEVER},
    {CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT, AGAIN_IF_REPEATABLE},
    {CURLE_GOT_NOTHING, ERR_CLOSED, AGAIN_IF_REPEATABLE},
    {CURLE_SEND_ERROR, ERR_CLOSED, AGAIN_IF_REPEATABLE},
    {CURLE_RECV_ERROR, ERR_CLOSED, AGAIN_IF_REPEATABLE},
    {CURLE_PARTIAL_FILE, ERR_CLOSED, AGAIN_IF_REPEATABLE},
    {CURLE_HTTP2, ERR_CLOSED, AGAIN_IF_REPEATABLE},
    {CURLE_HTTP2_STREAM, ERR_CLOSED, AGAIN_IF_REPEATABLE},
    {CURLE_ABORTED_BY_CALLBACK, ERR_CANCELED, AGAIN_NEVER},
    {CURLE_OUT_OF_MEMORY, ERR_NO_MEMORY, AGAIN_NEVER},
};

void attempt_init(struct attempt *a, struct client *c, const struct client_request *r)
{
    static const char *const idempotent[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};

    *a = (struct attempt){.client = c,
                          .request = r,
                          .repeatable = r->repeatable,
                          .redirects_max = CLIENT_MAX_REDIRECTS};
    a->hop = (struct hop){.url = xstrdup(r->url), .method = r->method, .with_body = true};
    a->head.max = CLIENT_MAX_HEAD;
    a->body.max = CLIENT_MAX_BODY;
    for (size_t i = 0; i < ARRAY_SIZE(idempotent); i++)
        a->repeatable |= strcmp(r->method, idempotent[i]) == 0;
}

void attempt_release(struct attempt *a)
{
    buf_release(&a->head);
    buf_release(&a->body);
    curl_slist_free_all(a->hop.headers);
    free(a->hop.url);
}

bool attempt_refused(const struct attempt *a)
{
    if (a->repeatable)
        return a->status == 429 || a->status >= 500;
    return (a->status == 429 || a->status == 503) && a->retry_after.p;
}

static bool is_redirect(const struct attempt *a)
{
    int status = a->status;

    if (a->request->no_redirect)
        return false;
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Returns the value of a header of the response. Its p is NULL when there is no such header. */
static struct str attempt_header(const struct attempt *a, struct str name)
{
    struct str rest = buf_str(&a->head), line, key, value;

    while (rest.len) {
        str_cut(rest, '\n', &line, &rest);
        if (str_cut(str_head(line, line.len - 1), ':', &key, &value) && str_ieq(key, name))
            return str_trim(value);
    }
    return STR_EMPTY;
}

static size_t attempt_stop(struct attempt *a, int code)
{
    a->stopped = code;
    return 0; /* accepting fewer bytes than libcurl offered ends the transfer */
}

/* Decides whether the body of a response is used or dropped. This is called at the end of the head,
 * at the first piece of the body, or at the end of a response without a body. */
static void attempt_judge(struct attempt *a)
{
    long status = 0;

    curl_easy_getinfo(a->handle, CURLINFO_RESPONSE_CODE, &status);
    a->status = (int)status;
    if (status / 100 == 1)
        return;
    a->retry_after = attempt_header(a, STR("retry-after"));
    a->dropped = (is_redirect(a) && attempt_header(a, STR("location")).p) ||
                 (!a->last && attempt_refused(a));
    a->body_begun = true;
}

bool attempt_has_answer(const struct attempt *a)
{
    return a->body_begun && !a->dropped;
}

/* libcurl calls this for each line of the head: the status line, a header or the empty line.
 * libcurl also calls this for trailers behind the body, which are ignored. */
static size_t on_header(char *p, size_t size, size_t count, void *ctx)
{
    struct attempt *a = ctx;
    struct str line = str_n(p, size * count);

    a->received += line.len;
    a->head_bytes += line.len;
    if (a->head_bytes > CLIENT_MAX_HEADS)
        return attempt_stop(a, err_set(a->err, ERR_PEER, "a response with heads without end"));
    if (a->body_begun)
        return line.len;
    /* This line begins a new head. An earlier head was that of a 1xx response or of a proxy. */
    if (str_starts(line, STR("HTTP/"))) {
        buf_reset(&a->head);
        a->header_count = 0;
        return line.len;
    }
    if (a->stream && (str_eq(line, STR("\r\n")) || str_eq(line, STR("\n"))))
        attempt_judge(a);
    if (str_chr(line, ':') <= 0 || !str_ends(line, STR("\n")))
        return line.len;
    struct str text = str_head(line, line.len - 1);
    if (str_ends(text, STR("\r")))
        text.len--;
    buf_append_str(&a->head, text);
    buf_append(&a->head, "\r\n", 2);
    if (a->head.failed || ++a->header_count > HTTP_MAX_HEADERS)
        return attempt_stop(a, err_set(a->err, ERR_PEER, "a response head that is too large"));
    return line.len;
}

static size_t on_body(char *p, size_t size, size_t count, void *ctx)
{
    struct attempt *a = ctx;
    struct str piece = str_n(p, size * count);

    if (!a->body_begun)
        attempt_judge(a);
    if (a->stream)
        return client_stream_take(a->stream, piece);
    a->received += piece.len;
    if (a->dropped || piece.len == 0)
        return piece.len;
    if (a->request->on_body && (!a->request->on_success_only || a->status / 100 == 2)) {
        a->delivered = true;
        int rc = a->request->on_body(a->request->ctx, piece, a->err);
        return rc ? attempt_stop(a, rc) : piece.len;
    }
    buf_append_str(&a->body, piece);
    if (a->body.failed)
        return attempt_stop(a, err_set(a->err, ERR_TOO_LARGE, "a response larger than %d MiB",
                                       CLIENT_MAX_BODY / (int)MIB));
    return piece.len;
}

static int attempt_progress(void *ctx, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                            curl_off_t up)
{
    const struct client_request *r = ctx;

    if (r->on_progress)
        r->on_progress(r->ctx, (uint64_t)up, (uint64_t)down);
    return r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed);
}

/* libcurl calls this when it has resolved the peer's name and needs a socket. */
static curl_socket_t attempt_open_socket(void *ctx, curlsocktype purpose,
                                         struct curl_sockaddr *address)
{
    struct attempt *a = ctx;
    struct sock_addr to = {.len = address->addrlen};

    if (address->addrlen > sizeof(to.sa))
        return CURL_SOCKET_BAD;
    memcpy(&to.sa, &address->addr, address->addrlen);
    if (!a->request->may_connect(a->request->ctx, &to)) {
        a->kept_out = true;
        return CURL_SOCKET_BAD;
    }
    int fd = sock_new(address->family, address->socktype, address->protocol);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* libcurl calls this before it sends a request. The address is checked here too, because a
 * connection that is used again was made for an earlier call, which may have allowed other
 * addresses. */
static int attempt_check_address(void *ctx, char *peer_ip, char *own_ip, int peer_port,
                                 int own_port)
{
    struct attempt *a = ctx;
    char text[SOCK_ADDR_TEXT];
    struct sock_addr to;

    if (a->client->unix_path)
        /* With a unix socket, every connection leads to the same place. */
        return CURL_PREREQFUNC_OK;
    snprintf(text, sizeof(text), strchr(peer_ip, ':') ? "[%s]:%d" : "%s:%d", peer_ip, peer_port);
    if (sock_addr_parse(&to, str_z(text), NULL) == 0 &&
        a->request->may_connect(a->request->ctx, &to))
        return CURL_PREREQFUNC_OK;
    a->kept_out = true;
    return CURL_PREREQFUNC_ABORT;
}

/* Whether a header may be sent to another origin after a redirect. */
static bool is_harmless(struct str name)
{
    static const struct str harmless[] = {
        {"accept", 6}, {"accept-encoding", 15}, {"accept-language", 15},   {"content-type", 12},
        {"range", 5},  {"if-none-match", 13},   {"if-modified-since", 17}, {"git-protocol", 12},
    };
    for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
        if (str_ieq(name, harmless[i]))
            return true;
    return false;
}

static void header_list_append(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);
    BUG_ON(!longer);
    *list = longer;
}

/* Adds a header to the list. For libcurl, "Name;" means a header with an empty value; "Name:" would
 * remove the header. */
static void add_line(struct curl_slist **list, struct str name, struct str value)
{
    struct buf line = BUF_INIT(0);

    buf_append_str(&line, name);
    buf_append_z(&line, value.len ? ": " : ";");
    buf_append_str(&line, value);
    header_list_append(list, line.p);
    buf_release(&line);
}

static int make_headers(struct hop *h, const struct client_request *r, struct err *err)
{
    bool has_type = false;

    for (size_t i = 0; i < r->header_count; i++) {
        struct http_header f = r->headers[i];
        if (!http_field_is_valid(f.name, f.value))
            return err_set(err, ERR_INVALID, "header '" STR_FMT "' may not be sent",
                           STR_ARG(str_head(f.name, 64)));
        if (h->foreign && !is_harmless(f.name))
            continue;
        has_type |= str_ieq(f.name, STR("content-type"));
        add_line(&h->headers, f.name, f.value);
    }
    header_list_append(&h->headers, "Expect:");
    if (!has_type)
        header_list_append(&h->headers, "Content-Type:");
    return 0;
}

static void set_method(CURL *handle, const struct attempt *a)
{
    const struct hop *h = &a->hop;
    struct str body = h->with_body ? a->request->body : STR_EMPTY;
    bool takes_body = strcmp(h->method, "POST") == 0 || strcmp(h->method, "PUT") == 0 ||
                      strcmp(h->method, "PATCH") == 0;

    if (strcmp(h->method, "HEAD") == 0)
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    else if (body.len || takes_body) {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.p ? body.p : "");
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    }
    if (strcmp(h->method, "HEAD") != 0)
        curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, h->method);
    /* libcurl itself repeats a request when a reused connection turns out to be closed. A request
     * that may arrive only once therefore gets a new connection. */
    if (!a->repeatable)
        curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, 1L);
}

/* Sets the options that differ between calls that return a whole answer and streaming calls. */
static void set_flow(CURL *handle, struct attempt *a)
{
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, a);
    if (a->stream) { /* the stream itself checks the time limits and `cancel` */
        curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, (long)CLIENT_STREAM_BUFFER);
        curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        return;
    }
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)a->client->timeout_ms);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, attempt_progress);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, (void *)(uintptr_t)a->request);
}

static void set_options(CURL *handle, struct attempt *a)
{
    struct client *c = a->client;

    curl_easy_setopt(handle, CURLOPT_URL, a->hop.url);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_timeout_ms);
    curl_easy_setopt(handle, CURLOPT_MAXCONNECTS, 4L);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, c->user_agent);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, a->reason);
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (c->ca_file)
        curl_easy_setopt(handle, CURLOPT_CAINFO, c->ca_file);
    if (c->unix_path)
        curl_easy_setopt(handle, CURLOPT_UNIX_SOCKET_PATH, c->unix_path);
    if (c->direct)
        curl_easy_setopt(handle, CURLOPT_PROXY, "");
    if (c->tls_insecure) {
        curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, a->hop.headers);
    if (a->request->may_connect) {
        curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, attempt_open_socket);
        curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, a);
        curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, attempt_check_address);
        curl_easy_setopt(handle, CURLOPT_PREREQDATA, a);
    }
    set_flow(handle, a);
    set_method(handle, a);
}

static CURL *take_handle(struct client *c)
{
    mutex_lock(&c->lock);
    CURL *handle = c->idle.len ? vec_pop(&c->idle) : NULL;
    mutex_unlock(&c->lock);
    if (!handle)
        handle = curl_easy_init();
    BUG_ON(!handle);
    return handle;
}

static void give_handle(struct client *c, CURL *handle)
{
    /* This keeps the handle's connections and drops all pointers to our memory. */
    curl_easy_reset(handle);
    mutex_lock(&c->lock);
    bool full = c->idle.len >= CLIENT_MAX_IDLE;
    if (!full)
        vec_push(&c->idle, handle);
    mutex_unlock(&c->lock);
    if (full)
        curl_easy_cleanup(handle);
}

static int failure(struct attempt *a, CURLcode rc, struct err *err)
{
    int code = ERR_PEER;
    long sent = 0;

    a->again = AGAIN_NEVER;
    if (a->stopped)
        return a->stopped; /* the callback that stopped the transfer has set the error's text */
    if (a->kept_out && (rc == CURLE_COULDNT_CONNECT || rc == CURLE_ABORTED_BY_CALLBACK))
        return err_set(err, ERR_DENIED, "connections to its address are not allowed");
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
        if (failures[i].curl == rc) {
            code = failures[i].code;
            a->again = failures[i].again;
        }
    }
    curl_easy_getinfo(a->handle, CURLINFO_REQUEST_SIZE, &sent);
    if (code == ERR_TIMEOUT && sent == 0) {
        code = ERR_UNAVAILABLE;
        a->again = AGAIN_ALWAYS;
    }
    return err_set(err, code, "%s", a->reason[0] ? a->reason : curl_easy_strerror(rc));
}

static bool is_web(const char *url)
{
    return str_starts(str_z(url), STR("http://")) || str_starts(str_z(url), STR("https://"));
}

int attempt_check_url(const struct attempt *a, struct err *err)
{
    return is_web(a->hop.url) ? 0
                              : err_set(err, ERR_INVALID, "a URL begins with http:// or https://");
}

/* Sets a->hop to the target of a redirect. After 303 the next request is a GET (RFC 9110 section
 * 15.4). After 301 and 302 a POST becomes a GET, as in all clients. */
static int redirect_follow(struct attempt *a, const char *url, struct err *err)
{
    const struct client_request *r = a->request;
    struct hop *h = &a->hop;
    bool head = strcmp(h->method, "HEAD") == 0;

    if (!is_web(url))
        return err_set(err, ERR_PEER, "a redirect to something other than http or https");
    if (++a->redirects > a->redirects_max)
        return err_set(err, ERR_PEER, "more than %u redirects", a->redirects_max);
    if (r->may_redirect && !r->may_redirect(r->ctx, h->url, url))
        return err_set(err, ERR_DENIED, "a redirect to %.200s is not allowed", url);
    if ((a->status == 303 && !head) || (a->status <= 302 && strcmp(h->method, "POST") == 0)) {
        h->method = "GET";
        h->with_body = false;
    }
    h->foreign |= !url_same_origin(str_z(h->url), str_z(url));
    free(h->url);
    h->url = xstrdup(url);
    return 0;
}

int attempt_hop_begin(struct attempt *a, CURL *handle, struct err *err)
{
    curl_slist_free_all(a->hop.headers);
    a->hop.headers = NULL;
    int rc = make_headers(&a->hop, a->request, err);

    if (rc < 0)
        return rc;
    buf_reset(&a->head);
    buf_reset(&a->body);
    a->header_count = a->head_bytes = 0;
    a->body_begun = a->dropped = false;
    a->reason[0] = '\0';
    a->err = err;
    a->handle = handle;
    set_options(handle, a);
    return 0;
}

int attempt_hop_end(struct attempt *a, CURLcode result, bool *next, struct err *err)
{
    char *url = NULL;

    *next = false;
    if (result != CURLE_OK)
        return failure(a, result, err);
    if (!a->body_begun)
        attempt_judge(a);
    curl_easy_getinfo(a->handle, CURLINFO_REDIRECT_URL, &url);
    *next = is_redirect(a) && url;
    return *next ? redirect_follow(a, url, err) : 0;
}

int attempt_run(struct attempt *a, struct err *err)
{
    bool next = true;
    int rc = attempt_check_url(a, err);

    while (rc == 0 && next) {
        CURL *handle = take_handle(a->client);
        rc = attempt_hop_begin(a, handle, err);
        if (rc == 0)
            rc = attempt_hop_end(a, curl_easy_perform(handle), &next, err);
        give_handle(a->client, handle);
    }
    return rc;
}
