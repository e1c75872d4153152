/* Smart HTTP: sends requests to a git server, and reads its answers while they arrive. G1 to G7 are
 * rules of docs/archive.md. */
#include "archive/fetch.h"

#include "base/clock.h"
#include "http/hosts.h"
#include "sign/base64.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>

#define INFO_REFS        "/info/refs?service=git-upload-pack"
#define ADVERT_TYPE      "application/x-git-upload-pack-advertisement"
#define REQUEST_TYPE     "application/x-git-upload-pack-request"
#define WORDS_WITH_TOKEN "(the server's words hold the token, so they are not shown)"
#define RESULT_TYPE      "application/x-git-upload-pack-result"

enum {
    FETCH_GZIP_FROM = 1024,             /* a request of at least this many bytes is compressed */
    FETCH_REFUSAL_MAX = 4096,           /* most bytes of a refusal's body that are read */
    FETCH_REFUSAL_MS = 10 * MS_PER_S,   /* longest time for reading that body */
    FETCH_REFS_MAX = 512 * 1024 * 1024, /* most bytes of an answer that lists refs */
    FETCH_HEADERS_MAX = 8,
    FETCH_URL_MAX = 2048,
};

struct git_remote {
    struct git_remote_options o;
    char *url;  /* URL that was asked for; owned */
    char *base; /* URL that has answered; owned */
    char *auth; /* the value of Authorization, or NULL; owned */
    struct git_advert advert;
    struct git_refs refs;
    uint64_t began_ms;

    /* The current exchange (one request and its answer): */
    struct arena arena; /* memory of the response's head */
    struct client_response head;
    char address[FETCH_URL_MAX + sizeof(INFO_REFS)];
    struct buf request;
    struct client_stream *stream;
    struct reader wire; /* reads the stream, and keeps the code of its errors */
    int wire_code;      /* error of the connection while the answer was read; 0: none */
    struct pkt_in in;

    /* The pack, which the caller reads: */
    struct reader pack;
    struct band_reader band;
    bool is_open, has_ended;
    uint64_t pack_bytes;
    int pack_code; /* error of the pack; 0: none */
    struct fetch_fault fault;
};

#define REMOTE_OF(reader_, member)                                                                 \
    ((struct git_remote *)(void *)((char *)(reader_)-offsetof(struct git_remote, member)))

/* --- where requests may go --- */

static bool remote_may_connect(void *ctx, const struct sock_addr *addr)
{
    const struct git_remote *r = ctx;

    return r->o.allow_private || sock_addr_is_public(addr);
}

/* Whether a URL has the same host as another one, and https instead of http. */
static bool url_is_upgrade(const struct url *from, const struct url *to)
{
    return str_ieq(from->scheme, STR("http")) && str_ieq(to->scheme, STR("https")) &&
           str_ieq(from->host, to->host) && url_port(from) == 80 && url_port(to) == 443;
}

/* G2: a redirect must stay on the host of the first request, or lead to the other host that is
 * configured. It never leads from https to http. */
static bool remote_may_redirect(void *ctx, const char *from_url, const char *to_url)
{
    const struct git_remote *r = ctx;
    struct url home, from, to;
    char other[FETCH_URL_MAX];

    if (url_parse(&home, str_z(r->url), NULL) < 0 || url_parse(&from, str_z(from_url), NULL) < 0 ||
        url_parse(&to, str_z(to_url), NULL) < 0 || to.user.len || to.password.len ||
        strlen(to_url) > FETCH_URL_MAX)
        return false;
    if (str_ieq(from.scheme, STR("https")) && !str_ieq(to.scheme, STR("https")))
        return false;
    snprintf(other, sizeof(other), STR_FMT "://" STR_FMT "/", STR_ARG(to.scheme),
             STR_ARG(r->o.same_host));
    return url_same_origin(str_z(r->url), str_z(to_url)) || url_is_upgrade(&home, &to) ||
           (r->o.same_host.len && url_same_origin(str_z(other), str_z(to_url)));
}

/* --- one exchange --- */

static int wire_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct git_remote *r = REMOTE_OF(reader, wire);
    int code = reader_read(client_stream_reader(r->stream), to, len, got, err);

    if (code < 0)
        r->wire_code = code;
    return code;
}

static void remote_hang_up(struct git_remote *r)
{
    client_stream_close(r->stream);
    r->stream = NULL;
    pkt_in_release(&r->in);
    buf_release(&r->request);
    arena_reset(&r->arena);
}

/* The time that is left for all exchanges together, in ms; at least 1. */
static uint64_t remote_time_left(const struct git_remote *r)
{
    uint64_t spent = clock_mono_ms() - r->began_ms;

    return spent < r->o.limits.total_ms ? r->o.limits.total_ms - spent : 1;
}

static size_t remote_headers(struct git_remote *r, struct http_header out[FETCH_HEADERS_MAX],
                             bool is_gzip)
{
    bool is_post = r->request.len > 0;
    size_t n = 0;

    out[n++] = (struct http_header){STR("User-Agent"), STR("git/2.40 (weir)")};
    if (!is_post || r->advert.is_v2)
        out[n++] = (struct http_header){STR("Git-Protocol"), STR("version=2")};
    out[n++] =
        (struct http_header){STR("Accept"), is_post ? STR(RESULT_TYPE) : STR(ADVERT_TYPE ", */*")};
    if (is_post)
        out[n++] = (struct http_header){STR("Content-Type"), STR(REQUEST_TYPE)};
    if (is_gzip)
        out[n++] = (struct http_header){STR("Content-Encoding"), STR("gzip")};
    /* G3: a redirect may have led to another host, and the token is not for that host. */
    if (r->auth && url_same_origin(str_z(r->url), str_z(r->address)))
        out[n++] = (struct http_header){STR("Authorization"), str_z(r->auth)};
    return n;
}

/* Compresses the request. Returns false when the request stays uncompressed. */
static bool remote_gzip(struct git_remote *r)
{
    struct isal_zstream *z;
    struct buf out = {0};
    size_t room = r->request.len + KIB;

    if (r->request.len <= FETCH_GZIP_FROM)
        return false;
    z = xcalloc(1, sizeof(*z));
    isal_deflate_stateless_init(z);
    z->level = 1;
    z->level_buf_size = ISAL_DEF_LVL1_DEFAULT;
    z->level_buf = xzalloc(z->level_buf_size);
    z->gzip_flag = IGZIP_GZIP;
    z->end_of_stream = 1;
    z->next_in = (uint8_t *)r->request.p;
    z->avail_in = (uint32_t)r->request.len;
    z->next_out = (uint8_t *)buf_reserve(&out, room);
    z->avail_out = (uint32_t)room;
    bool is_done = z->next_out && isal_deflate_stateless(z) == COMP_OK;
    if (is_done) {
        buf_commit(&out, room - z->avail_out);
        buf_release(&r->request);
        r->request = out;
    } else {
        buf_release(&out);
    }
    free(z->level_buf);
    free(z);
    return is_done;
}

/* Whether the server's message contains the token, in plain form or as HTTP Basic encodes it. */
static bool remote_is_told(const struct git_remote *r, struct str words)
{
    return r->auth && (str_find(words, r->o.token) >= 0 ||
                       str_find(words, str_skip(str_z(r->auth), sizeof("Basic ") - 1)) >= 0);
}

/* Reads the beginning of a refusal's body, which may have the server's message. If the body cannot
 * be read, the message stays empty. */
static int remote_refused(struct git_remote *r, struct fetch_fault *fault, struct err *err)
{
    uint64_t until = clock_mono_ms() + FETCH_REFUSAL_MS;
    char body[FETCH_REFUSAL_MAX];
    size_t len = 0, got = 1;

    while (len < sizeof(body) && got && clock_mono_ms() < until &&
           reader_read(client_stream_reader(r->stream), body + len, sizeof(body) - len, &got,
                       NULL) == 0)
        len += got;
    fetch_fault_answer(fault, &r->head, str_n(body, len));
    if (remote_is_told(r, str_n(body, len)))
        snprintf(fault->words, sizeof(fault->words), WORDS_WITH_TOKEN);
    return err_set(err, ERR_PEER, "the git server answers %d%s%s", r->head.status,
                   fault->words[0] ? ": " : "", fault->words);
}

/* Checks the status and the content type of an answer. */
static int remote_judge(struct git_remote *r, struct str type, struct fetch_fault *fault,
                        struct err *err)
{
    struct str got, rest;

    if (r->head.status != 200)
        return remote_refused(r, fault, err);
    str_cut(client_header(&r->head, "content-type"), ';', &got, &rest);
    if (str_ieq(str_trim(got), type))
        return 0;
    *fault = (struct fetch_fault){
        .code = ARCHIVE_PROTOCOL, .http_status = r->head.status, .retry_after_s = -1};
    return err_set(err, ERR_PEER,
                   "the server does not speak git's smart HTTP: the answer is '%.64s'",
                   got.len ? arena_z(&r->arena, got) : "");
}

/* Sends a request to r->address. Afterwards the packets of the answer can be read from r->in. A
 * request with a body is a POST, which follows no redirects. */
static int remote_ask(struct git_remote *r, uint64_t body_max, struct fetch_fault *fault,
                      struct err *err)
{
    static const struct reader_ops ops = {.read = wire_read};
    bool is_post = r->request.len > 0, is_gzip = remote_gzip(r);
    struct http_header headers[FETCH_HEADERS_MAX];
    struct client_request q = {.method = is_post ? "POST" : "GET",
                               .url = r->address,
                               .headers = headers,
                               .header_count = remote_headers(r, headers, is_gzip),
                               .body = buf_str(&r->request),
                               .may_connect = remote_may_connect,
                               .may_redirect = remote_may_redirect,
                               .ctx = r,
                               .repeatable = true,
                               .no_retry = true,
                               .no_redirect = is_post,
                               .cancel = r->o.cancel};
    struct client_limits l = {.idle_ms = r->o.limits.idle_ms,
                              .slow_bytes_per_s = r->o.limits.slow_bytes_per_s,
                              .slow_ms = r->o.limits.slow_ms,
                              .total_ms = remote_time_left(r),
                              .body_max = body_max,
                              .redirects_max = GIT_REDIRECTS_MAX};

    r->wire_code = 0;
    r->wire.ops = &ops;
    r->head = (struct client_response){0};
    int code = client_open(&r->stream, r->o.client, &r->arena, &r->head, &q, &l, err);
    if (code < 0) {
        r->wire_code = code;
        return code;
    }
    code = remote_judge(r, is_post ? STR(RESULT_TYPE) : STR(ADVERT_TYPE), fault, err);
    if (code == 0)
        pkt_in_init(&r->in, &r->wire);
    return code;
}

/* Fills *fault for a failure that has no fault yet. `text` is the text of the error. */
static void remote_find_fault(const struct git_remote *r, int code, struct str text,
                              struct fetch_fault *fault)
{
    if (code == ERR_PEER && str_starts(text, STR(PEER_SAYS)))
        fetch_fault_words(fault, str_skip(text, sizeof(PEER_SAYS) - 1));
    else if (r->wire_code)
        fetch_fault_network(fault, r->wire_code);
    else
        *fault = (struct fetch_fault){
            .code = code == ERR_TIMEOUT ? ARCHIVE_TIMEOUT : ARCHIVE_PROTOCOL, .retry_after_s = -1};
    fault->http_status = r->head.status;
}

/* Fills *fault for a failure that has no fault yet, and returns the code. A message that contains
 * the token is replaced. */
static int remote_fail(struct git_remote *r, int code, struct fetch_fault *fault, struct err *err)
{
    struct str text = str_z(err ? err->text : NULL);

    if (code == ERR_CANCELED || r->wire_code == ERR_CANCELED) {
        *fault = (struct fetch_fault){.code = ARCHIVE_OK, .retry_after_s = -1};
        return code;
    }
    bool is_told = remote_is_told(r, text);
    if (fault->code == ARCHIVE_OK)
        remote_find_fault(r, code, text, fault);
    if (is_told) {
        snprintf(fault->words, sizeof(fault->words), WORDS_WITH_TOKEN);
        err_set(err, code, WORDS_WITH_TOKEN);
    }
    return code;
}

/* Reads to the end of an answer whose last packet has come, so that its connection can be used
 * again. ERR_PARSE: bytes follow the last packet. */
static int remote_drain(struct git_remote *r, struct err *err)
{
    char byte;
    size_t got = r->in.end - r->in.at;
    int code = got ? 0 : wire_read(&r->wire, &byte, 1, &got, err);

    return code == 0 && got ? err_set(err, ERR_PARSE, "the answer goes on behind its last packet")
                            : code;
}

/* --- refs --- */

static int remote_ls_refs(struct git_remote *r, struct fetch_fault *fault, struct err *err)
{
    snprintf(r->address, sizeof(r->address), "%s/git-upload-pack", r->base);
    git_ls_refs_ask(&r->request, &r->advert);
    int code = remote_ask(r, FETCH_REFS_MAX, fault, err);

    if (code == 0)
        code = git_ls_refs_read(&r->refs, &r->in, err);
    return code == 0 ? remote_drain(r, err) : code;
}

/* Takes the URL that has answered, after redirects, as the URL of all later requests. */
static int remote_settle(struct git_remote *r, struct fetch_fault *fault, struct err *err)
{
    struct str url = r->head.url;

    if (!str_ends(url, STR(INFO_REFS)) || url.len > FETCH_URL_MAX) {
        *fault = (struct fetch_fault){.code = ARCHIVE_REDIRECT, .retry_after_s = -1};
        return err_set(err, ERR_DENIED, "a redirect leads away from info/refs");
    }
    free(r->base);
    r->base = str_dup(str_head(url, url.len - (sizeof(INFO_REFS) - 1)));
    return 0;
}

static int remote_info_refs(struct git_remote *r, struct fetch_fault *fault, struct err *err)
{
    snprintf(r->address, sizeof(r->address), "%s%s", r->base, INFO_REFS);
    int code = remote_ask(r, FETCH_REFS_MAX, fault, err);

    if (code == 0)
        code = remote_settle(r, fault, err);
    if (code == 0)
        code = git_advert_read(&r->advert, &r->in, &r->refs, err);
    return code == 0 ? remote_drain(r, err) : code;
}

/* Reads the refs. With version 2 this takes a second request. */
static int remote_read_refs(struct git_remote *r, bool know_v2, struct fetch_fault *fault,
                            struct err *err)
{
    bool is_sha256 = r->advert.is_sha256;
    int code = 0;

    *fault = (struct fetch_fault){.code = ARCHIVE_OK, .retry_after_s = -1};
    git_refs_release(&r->refs);
    git_refs_init(&r->refs, is_sha256);
    r->refs.hold = r->o.hold;
    if (!know_v2) {
        code = remote_info_refs(r, fault, err);
        if (code < 0)
            remote_fail(r, code, fault, err);
        remote_hang_up(r);
    }
    if (code == 0 && r->advert.is_v2) {
        code = remote_ls_refs(r, fault, err);
        if (code < 0)
            remote_fail(r, code, fault, err);
        remote_hang_up(r);
    }
    return code;
}

/* --- the pack --- */

/* Fills *fault for a failure inside the pack. */
static int pack_fail(struct git_remote *r, int code, struct err *err)
{
    r->pack_code = code;
    if (r->pack_bytes > r->o.limits.pack_max)
        r->fault.code = ARCHIVE_TOO_BIG;
    return remote_fail(r, code, &r->fault, err);
}

static int pack_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct git_remote *r = REMOTE_OF(reader, pack);
    const struct fetch_limits *l = &r->o.limits;

    *got = 0;
    if (r->pack_code)
        return err_code(err, r->pack_code);
    if (r->has_ended)
        return 0;
    int code = reader_read(&r->band.reader, to, len, got, err);
    if (code == 0 && *got == 0 && len) {
        r->has_ended = true;
        code = remote_drain(r, err);
    }
    if (code == 0 && r->pack_bytes == 0 && *got) /* G6 */
        client_stream_expect(r->stream, l->slow_bytes_per_s, l->slow_ms);
    r->pack_bytes += *got;
    if (code == 0 && r->pack_bytes > l->pack_max)
        code = err_set(err, ERR_TOO_LARGE, "the pack has more than %" PRIu64 " bytes", l->pack_max);
    return code < 0 ? pack_fail(r, code, err) : 0;
}

static void pack_close(struct reader *reader)
{
    struct git_remote *r = REMOTE_OF(reader, pack);

    remote_hang_up(r);
    r->is_open = false;
}

static bool is_not_our_ref(int code, const struct fetch_fault *fault)
{
    return code == ERR_PEER && str_find(str_z(fault->words), STR("not our ref")) >= 0;
}

int git_remote_fetch(struct git_remote *r, const struct git_fetch *f, struct reader **pack,
                     struct fetch_fault *fault, struct err *err)
{
    static const struct reader_ops ops = {.read = pack_read, .close = pack_close};
    struct git_fetch part = *f;

    BUG_ON(r->is_open || f->want_count > GIT_WANTS_MAX);
    *fault = (struct fetch_fault){.code = ARCHIVE_OK, .retry_after_s = -1};
    part.have_count = size_min(f->have_count, GIT_HAVES_MAX);
    snprintf(r->address, sizeof(r->address), "%s/git-upload-pack", r->base);
    git_fetch_ask(&r->request, &r->advert, &part);
    int code = remote_ask(r, 0, fault, err);
    if (code == 0)
        code = git_fetch_begin(&r->in, &r->advert, &part, err);
    if (code < 0) {
        remote_fail(r, code, fault, err);
        remote_hang_up(r);
        return is_not_our_ref(code, fault) ? err_wrap(err, ERR_CONFLICT, "a ref has moved") : code;
    }
    client_stream_expect(r->stream, 0, 0); /* G6: a server may need long before its pack begins */
    band_reader_init(&r->band, &r->in, r->o.limits.pack_idle_ms);
    r->pack.ops = &ops;
    r->is_open = true;
    r->has_ended = false;
    r->pack_bytes = 0;
    r->pack_code = 0;
    r->fault = *fault;
    *pack = &r->pack;
    return 0;
}

const struct fetch_fault *git_remote_fault(const struct git_remote *r)
{
    return r->pack_code ? &r->fault : NULL;
}

/* --- the remote --- */

static uint64_t limit_or(uint64_t given, uint64_t otherwise)
{
    return given ? given : otherwise;
}

static void remote_set_limits(struct fetch_limits *l)
{
    l->idle_ms = limit_or(l->idle_ms, MS_PER_MINUTE);
    l->pack_idle_ms = limit_or(l->pack_idle_ms, 15 * MS_PER_MINUTE);
    l->slow_bytes_per_s = limit_or(l->slow_bytes_per_s, KIB);
    l->slow_ms = limit_or(l->slow_ms, 5 * MS_PER_MINUTE);
    l->total_ms = limit_or(l->total_ms, 12 * MS_PER_HOUR);
    l->pack_max = limit_or(l->pack_max, 64 * GIB);
}

static char *remote_auth(struct str user, struct str token)
{
    struct buf plain = {0}, out = {0};

    if (token.len == 0)
        return NULL;
    buf_appendf(&plain, STR_FMT ":" STR_FMT, STR_ARG(user), STR_ARG(token));
    buf_append_z(&out, "Basic ");
    base64_encode(&out, buf_str(&plain));
    if (plain.p)
        secure_zero(plain.p, plain.cap);
    buf_release(&plain);
    return buf_take(&out);
}

/* Whether weir and libcurl parse the URL in the same way. */
static int remote_check_url(struct str text, struct err *err)
{
    struct url u;
    int code = url_parse(&u, text, err);

    if (code == 0 && (u.host.len == 0 || u.user.len || u.password.len || u.query.len ||
                      text.len > FETCH_URL_MAX))
        code =
            err_set(err, ERR_INVALID, "the URL of a repository has a host, and no user or query");
    return code;
}

int git_remote_open(struct git_remote **out, const struct git_remote_options *o,
                    struct fetch_fault *fault, struct err *err)
{
    struct str url = str_z(o->url);

    while (url.len && url.p[url.len - 1] == '/')
        url.len--;
    int code = remote_check_url(url, err);
    if (code < 0) {
        *fault = (struct fetch_fault){.code = ARCHIVE_PROTOCOL, .retry_after_s = -1};
        return code;
    }
    struct git_remote *r = xcalloc(1, sizeof(*r));
    r->o = *o;
    r->url = str_dup(url);
    r->base = str_dup(url);
    r->auth = remote_auth(o->token_user, o->token);
    r->began_ms = clock_mono_ms();
    r->request.max = BUF_DEFAULT_MAX;
    remote_set_limits(&r->o.limits);
    code = remote_read_refs(r, false, fault, err);
    if (code < 0)
        git_remote_close(r);
    else
        *out = r;
    return code;
}

int git_remote_refresh(struct git_remote *r, struct fetch_fault *fault, struct err *err)
{
    BUG_ON(r->is_open);
    return remote_read_refs(r, r->advert.is_v2, fault, err);
}

void git_remote_close(struct git_remote *r)
{
    if (!r)
        return;
    remote_hang_up(r);
    arena_release(&r->arena);
    git_refs_release(&r->refs);
    free(r->url);
    free(r->base);
    if (r->auth)
        secure_zero(r->auth, strlen(r->auth));
    free(r->auth);
    free(r);
}

const struct git_refs *git_remote_refs(const struct git_remote *r)
{
    return &r->refs;
}

void git_remote_forget_refs(struct git_remote *r)
{
    git_refs_forget(&r->refs);
}

struct str git_remote_url(const struct git_remote *r)
{
    return str_z(r->base);
}

bool git_remote_is_v2(const struct git_remote *r)
{
    return r->advert.is_v2;
}
