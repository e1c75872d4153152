/* One question to a forge's API: takes a seat and a token (quota.h), sends the request, and
 * interprets the answer.
 *
 * A question may take several requests. weir asks again in these cases:
 * - the token was refused or must rest: with another token, or after a pause;
 * - the server failed: until its third failure;
 * - a redirect stays on the API's origin: up to three times.
 *
 * Every other answer ends the question. */
#include "archive/forge_int.h"
#include "archive/link.h"

#include "base/clock.h"
#include "base/ids.h"
#include "http/hosts.h"

#include <stdio.h>
#include <time.h>

enum {
    FORGE_TRIES = 3,
    FORGE_REDIRECTS = 3,
    FORGE_HEADERS_MAX = 6,
    /* The longest rest of a token or host for whose end a question waits. */
    FORGE_PAUSE_MAX_MS = 10 * MS_PER_S,
    FORGE_WAITS_MAX_MS = 60 * MS_PER_S, /* most time that one question waits in all */
    FORGE_SLICE_MS = 50,                /* how often `cancel` is checked during a wait */
    FORGE_WORDS_MAX = 256,
};

/* One question, and the state of its requests so far. */
struct forge_trip {
    struct forge_session *session;
    struct arena *arena;
    const struct forge_ask *ask;
    struct forge_fault *fault;
    struct buf url;
    struct quota_take take;
    const struct forge_token *token; /* NULL: the request is sent without a token */
    struct client_response response;
    unsigned faults, redirects;
    uint64_t waited_ms;
};

/* --- faults --- */

static const struct {
    enum archive_code code;
    int err;
} forge_errors[] = {
    {ARCHIVE_GONE, ERR_NOT_FOUND}, {ARCHIVE_DMCA, ERR_DENIED},    {ARCHIVE_TOS, ERR_DENIED},
    {ARCHIVE_AUTH, ERR_DENIED},    {ARCHIVE_RATE, ERR_BUSY},      {ARCHIVE_TIMEOUT, ERR_TIMEOUT},
    {ARCHIVE_HTTP_5XX, ERR_PEER},  {ARCHIVE_PROTOCOL, ERR_PARSE}, {ARCHIVE_REDIRECT, ERR_DENIED},
};

int forge_fail(struct forge_fault *fault, enum archive_code code, struct err *err, const char *fmt,
               ...)
{
    char text[FORGE_WORDS_MAX + 64];
    int result = ERR_PEER;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fault->code = code;
    for (size_t i = 0; i < ARRAY_SIZE(forge_errors); i++)
        if (forge_errors[i].code == code)
            result = forge_errors[i].err;
    return err_set(err, result, "%s", text);
}

int forge_malformed(struct forge_fault *fault, int code, struct err *err)
{
    fault->code = ARCHIVE_PROTOCOL;
    return err_wrap(err, code, "the forge's answer");
}

/* --- waiting --- */

/* Waits, and meanwhile checks the session's `cancel`. ERR_BUSY: the question has waited too long in
 * all. */
static int forge_wait(struct forge_trip *t, uint64_t ms, struct err *err)
{
    const _Atomic(bool) *cancel = t->session->cancel;

    t->waited_ms += ms;
    if (t->waited_ms > FORGE_WAITS_MAX_MS)
        return ERR_BUSY;
    for (uint64_t end = clock_mono_ms() + ms, now; (now = clock_mono_ms()) < end;) {
        uint64_t left = end - now < FORGE_SLICE_MS ? end - now : FORGE_SLICE_MS;
        if (cancel && atomic_load(cancel))
            return err_code(err, ERR_CANCELED);
        nanosleep(&(struct timespec){.tv_nsec = (long)(left * NS_PER_MS)}, NULL);
    }
    return 0;
}

/* --- seat and token --- */

/* Fills the fault for a host that rests. */
static int forge_resting(struct forge_trip *t, int64_t until_ms, struct err *err)
{
    t->fault->rests_until_ms = until_ms;
    return forge_fail(t->fault, ARCHIVE_RATE, err,
                      STR_FMT " takes no request before %lld s from now",
                      STR_ARG(t->session->entry->forge.host),
                      (long long)((until_ms - clock_wall_ms()) / MS_PER_S));
}

/* Asks the quota once for a seat and a token. If every token is dead, requests are sent without a
 * token. */
static int forge_take_once(struct forge_trip *t, struct err *err)
{
    struct forge_session *s = t->session;
    const struct str none[] = {QUOTA_NO_TOKEN};
    size_t count = s->entry->tokens.len;
    int code;

    t->token = NULL;
    t->take = (struct quota_take){.all_dead = true};
    if (count) {
        code = quota_take(s->forges->quota, s->entry->forge.host, QUOTA_API, s->token_ids, count,
                          &t->take, err);
        if (code < 0)
            return code;
        if (!t->take.all_dead)
            t->token = &s->entry->tokens.items[t->take.token];
    }
    if (!t->take.all_dead)
        return 0;
    return quota_take(s->forges->quota, s->entry->forge.host, QUOTA_API, none, 1, &t->take, err);
}

/* Takes a seat and a token for the question, and waits for them if the wait is short. */
static int forge_take(struct forge_trip *t, struct err *err)
{
    for (;;) {
        int code = forge_take_once(t, err);
        if (code < 0) {
            t->fault->code = ARCHIVE_STORAGE;
            return code;
        }
        int64_t rest = t->take.until_ms ? t->take.until_ms - clock_wall_ms() : 0;
        if (t->take.until_ms && rest > FORGE_PAUSE_MAX_MS)
            return forge_resting(t, t->take.until_ms, err);
        if (!t->take.until_ms && !t->take.wait_ms)
            return 0;
        uint64_t ms = t->take.wait_ms + (rest > 0 ? (uint64_t)rest : 0);
        code = forge_wait(t, ms + random_below(FORGE_SLICE_MS), err);
        if (code == ERR_BUSY)
            return forge_resting(t, clock_wall_ms() + (int64_t)ms, err);
        if (code < 0)
            return code;
    }
}

/* --- sending --- */

static int forge_take_body(void *ctx, struct str piece, struct err *err)
{
    struct forge_trip *t = ctx;

    int code = large_reach(t->session->hold, &t->session->page_reached,
                           t->ask->body->len + piece.len, err);

    if (code < 0)
        return code;
    buf_append_str(t->ask->body, piece);
    if (buf_error(t->ask->body) < 0)
        return err_set(err, ERR_TOO_LARGE, "the answer is larger than %zu bytes",
                       t->ask->body->max);
    return 0;
}

static bool forge_may_connect(void *ctx, const struct sock_addr *addr)
{
    struct forge_trip *t = ctx;
    uint8_t ip[IP_LEN];

    return t->session->entry->forge.allow_private || (ip_of(ip, addr) && ip_is_public(ip));
}

/* Writes the headers of a request. `value` holds the text of the token's header, and must live
 * until the request is sent. */
static size_t forge_headers(const struct forge_trip *t, struct buf *value,
                            struct http_header out[FORGE_HEADERS_MAX])
{
    const struct forge_kind_row *row = t->session->row;
    const char *accept = t->ask->accept ? t->ask->accept : row->accept;
    size_t n = 0;

    out[n++] = (struct http_header){STR("Accept"), str_z(accept)};
    if (row->version_header)
        out[n++] = (struct http_header){str_z(row->version_header), str_z(row->version)};
    if (t->ask->etag.len)
        out[n++] = (struct http_header){STR("If-None-Match"), t->ask->etag};
    if (t->token) {
        buf_append_z(value, row->token_before);
        buf_append_str(value, t->token->secret);
        out[n++] = (struct http_header){str_z(row->token_header), buf_str(value)};
    }
    return n;
}

/* Sends one request to a URL of the API's origin, without retries. */
static int forge_send(struct forge_trip *t, const char *url, struct err *err)
{
    struct http_header headers[FORGE_HEADERS_MAX];
    struct buf value = {0};
    struct client_request r = {.method = "GET",
                               .url = url,
                               .headers = headers,
                               .header_count = forge_headers(t, &value, headers),
                               .on_body = forge_take_body,
                               .may_connect = forge_may_connect,
                               .ctx = t,
                               .no_retry = true,
                               .no_redirect = true,
                               .cancel = t->session->cancel};
    buf_reset(t->ask->body);
    t->session->requests++;
    int code = client_call(t->session->forges->client, t->arena, &t->response, &r, err);
    if (value.p)
        secure_zero(value.p, value.cap);
    buf_release(&value);
    return code;
}

/* --- what an answer says --- */

static int64_t forge_header_number(const struct forge_trip *t, const char *prefix, const char *name)
{
    char header[64];
    int64_t value;

    snprintf(header, sizeof(header), "%s%s", prefix, name);
    struct str text = client_header(&t->response, header);
    return text.p && str_i64(text, &value) == 0 && value >= 0 ? value : -1;
}

/* The server's time, or the local time if the answer has no date. */
static int64_t forge_date_ms(const struct forge_trip *t)
{
    int64_t date;

    return clock_parse_http(client_header(&t->response, "Date"), &date) == 0 ? date
                                                                             : clock_wall_ms();
}

/* Reads the quota from the answer's headers. Only the quota of ordinary requests counts; other
 * kinds are ignored. */
static struct quota_note forge_read_quota(const struct forge_trip *t)
{
    const char *prefix = t->session->row->quota_prefix;
    struct quota_note n = {-1, -1, -1};
    int64_t date = forge_date_ms(t), reset;

    if (!prefix)
        return n;
    char header[64];
    snprintf(header, sizeof(header), "%sresource", prefix);
    struct str resource = client_header(&t->response, header);
    if (resource.len && !str_ieq(resource, STR("core")))
        return n;
    n.limit = forge_header_number(t, prefix, "limit");
    n.remaining = forge_header_number(t, prefix, "remaining");
    reset = forge_header_number(t, prefix, "reset");
    if (reset >= 0)
        n.reset_in_s = reset > date / MS_PER_S ? reset - date / MS_PER_S : 0;
    return n;
}

/* A copy of the server's message on one line; empty if it contains the token. */
static struct str forge_words(const struct forge_trip *t, struct str text)
{
    struct buf out = BUF_INIT(FORGE_WORDS_MAX + 1);

    if (t->token && str_find(text, t->token->secret) >= 0)
        return STR("(the server's words hold the token, so they are not shown)");
    while (text.len && out.len < FORGE_WORDS_MAX) {
        size_t len = str_utf8_len(text);
        if (len == 0 || str_utf8_is_control(text))
            buf_append_char(&out, ' ');
        else
            buf_append(&out, text.p, len);
        text = str_skip(text, len ? len : 1);
    }
    struct str words = arena_str(t->arena, buf_str(&out));
    buf_release(&out);
    return words;
}

struct forge_message {
    struct str message, error, reason;
};
static const struct forge_field forge_message_rows[] = {
    {"message", FORGE_FIELD_TEXT, offsetof(struct forge_message, message)},
    {"error", FORGE_FIELD_TEXT, offsetof(struct forge_message, error)},
    {"block.reason", FORGE_FIELD_TEXT, offsetof(struct forge_message, reason)},
};
static const struct forge_fields forge_message_fields = FORGE_FIELDS(forge_message_rows);

/* Reads the message of an answer that reports an error. An answer that is not JSON has no
 * message. */
static void forge_read_message(struct forge_trip *t)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct forge_message m = {0};
    struct scan s;

    t->fault->http_status = t->response.status;
    t->fault->request_id = forge_words(t, client_header(&t->response, "X-GitHub-Request-Id"));
    if (!t->fault->request_id.len)
        t->fault->request_id = forge_words(t, client_header(&t->response, "X-Request-Id"));
    int64_t after = client_retry_after_s(&t->response, QUOTA_REST_MAX_S);
    t->fault->retry_after_s = after > 0 ? after : 0;
    scan_init(&s, buf_str(t->ask->body));
    if (scan_peek(&s) == SCAN_OBJECT)
        forge_read_object(&s, &a, &forge_message_fields, &m);
    t->fault->words = forge_words(t, m.message.len ? m.message : m.error);
    t->fault->block_reason = forge_words(t, m.reason);
    arena_release(&a);
}

static bool forge_words_have(const struct forge_trip *t, const char *part)
{
    struct str words = arena_lower(t->arena, t->fault->words);

    return str_find(words, str_z(part)) >= 0;
}

/* --- the judgement --- */

/* The forge asks for a pause: the token rests, and the question is asked again with another
 * token. */
static int forge_judge_rate(struct forge_trip *t, struct err *err)
{
    struct forge_session *s = t->session;
    struct str id = t->token ? t->token->id : QUOTA_NO_TOKEN;
    int64_t until_ms;
    int code = quota_rest(s->forges->quota, s->entry->forge.host, id, t->fault->retry_after_s,
                          t->fault->words, &until_ms, err);

    if (code < 0) {
        t->fault->code = ARCHIVE_STORAGE;
        return code;
    }
    log_info(s->forges->log, "archive.token_rests", log_s("host", s->entry->forge.host),
             log_s("token_id", id), log_i("until_ms", until_ms), log_s("words", t->fault->words));
    return ERR_AGAIN;
}

/* The forge refuses the token. A token that is refused at another URL too is marked as dead. */
static int forge_judge_401(struct forge_trip *t, struct err *err)
{
    struct forge_session *s = t->session;
    struct str words = t->fault->words;
    struct buf url = {0};
    int code;

    if (!t->token)
        return forge_fail(t->fault, ARCHIVE_AUTH, err, "the forge wants a token: " STR_FMT,
                          STR_ARG(words));
    forge_url(s, str_z(s->row->probe), &url);
    code = forge_send(t, url.p, err);
    buf_release(&url);
    if (code == ERR_CANCELED)
        return code;
    if (code < 0 || t->response.status != 401)
        return forge_fail(t->fault, ARCHIVE_AUTH, err, "the forge refuses the token: " STR_FMT,
                          STR_ARG(words));
    code = quota_set_dead(s->forges->quota, s->entry->forge.host, t->token->id,
                          words.len ? words : STR("401"), err);
    if (code < 0) {
        t->fault->code = ARCHIVE_STORAGE;
        return code;
    }
    log_warn(s->forges->log, "archive.token_dead", log_s("host", s->entry->forge.host),
             log_s("token_id", t->token->id), log_s("words", words));
    return ERR_AGAIN;
}

static int forge_judge_blocked(struct forge_trip *t, struct err *err)
{
    bool dmca = !t->fault->block_reason.len || str_ieq(t->fault->block_reason, STR("dmca"));

    return forge_fail(t->fault, dmca ? ARCHIVE_DMCA : ARCHIVE_TOS, err,
                      "blocked by the forge: " STR_FMT, STR_ARG(t->fault->words));
}

static int forge_judge_403(struct forge_trip *t, const struct quota_note *quota, struct err *err)
{
    if (t->fault->block_reason.len)
        return forge_judge_blocked(t, err);
    if (quota->remaining == 0 || t->fault->retry_after_s || forge_words_have(t, "rate limit") ||
        forge_words_have(t, "abuse detection"))
        return forge_judge_rate(t, err);
    return forge_fail(t->fault, ARCHIVE_AUTH, err, "the forge refuses: " STR_FMT,
                      STR_ARG(t->fault->words));
}

/* The server failed, or did not answer. `code` is returned if this was the last request of the
 * question. */
static int forge_judge_fault(struct forge_trip *t, int code, struct err *err)
{
    uint64_t pause = (uint64_t)t->fault->retry_after_s * MS_PER_S;
    int waited;

    if (++t->faults >= FORGE_TRIES || pause > FORGE_PAUSE_MAX_MS)
        return code;
    if (!pause)
        pause = (200u << (2 * t->faults)) + random_below(400);
    waited = forge_wait(t, pause, err);
    if (waited == ERR_CANCELED)
        return waited;
    return waited < 0 ? code : ERR_AGAIN;
}

static int forge_judge_redirect(struct forge_trip *t, struct err *err)
{
    struct buf next = BUF_INIT(FORGE_URL_MAX);
    struct str location = client_header(&t->response, "Location");
    int code = link_redirect(&next, buf_str(&t->url), location);

    if (code < 0 || !link_same_origin(buf_str(&next), t->session->entry->forge.api))
        code = forge_fail(t->fault, ARCHIVE_REDIRECT, err, "a redirect leads off the API's host");
    else if (++t->redirects > FORGE_REDIRECTS)
        code =
            forge_fail(t->fault, ARCHIVE_REDIRECT, err, "more than %d redirects", FORGE_REDIRECTS);
    if (code == 0) {
        buf_release(&t->url);
        t->url = next;
        return ERR_AGAIN;
    }
    buf_release(&next);
    return code;
}

/* The forge does not show the thing. If all tokens of the host are dead, the request had no token.
 * Forges hide private things from anonymous clients, so such an answer does not prove that the
 * thing is gone. */
static int forge_judge_404(struct forge_trip *t, struct err *err)
{
    if (!t->token && t->session->entry->tokens.len)
        return forge_fail(t->fault, ARCHIVE_AUTH, err, "not found without a live token: " STR_FMT,
                          STR_ARG(t->fault->words));
    return forge_fail(t->fault, ARCHIVE_GONE, err, "not found at the forge: " STR_FMT,
                      STR_ARG(t->fault->words));
}

/* Handles an answer that is not 200 or 304. Returns ERR_AGAIN when the question is to be asked
 * again. */
static int forge_judge(struct forge_trip *t, const struct quota_note *quota, struct err *err)
{
    int status = t->response.status;

    forge_read_message(t);
    if (status == 401)
        return forge_judge_401(t, err);
    if (status == 403)
        return forge_judge_403(t, quota, err);
    if (status == 429)
        return forge_judge_rate(t, err);
    if (status == 451)
        return forge_judge_blocked(t, err);
    if (status == 404 || status == 410)
        return forge_judge_404(t, err);
    if (status >= 300 && status < 400)
        return forge_judge_redirect(t, err);
    if (status >= 500)
        return forge_judge_fault(t,
                                 forge_fail(t->fault, ARCHIVE_HTTP_5XX, err,
                                            "the forge answers %d " STR_FMT, status,
                                            STR_ARG(t->fault->words)),
                                 err);
    return forge_fail(t->fault, ARCHIVE_PROTOCOL, err, "the forge answers %d " STR_FMT, status,
                      STR_ARG(t->fault->words));
}

/* Handles a request that got no complete answer. */
static int forge_judge_call(struct forge_trip *t, int code, struct err *err)
{
    struct err why = *err;

    if (code == ERR_CANCELED)
        return code;
    if (code == ERR_DENIED)
        return forge_fail(t->fault, ARCHIVE_REDIRECT, err,
                          "the host's address is not a public one: %s", why.text);
    if (code == ERR_TOO_LARGE || code == ERR_PARSE || code == ERR_NO_MEMORY)
        return forge_fail(t->fault, ARCHIVE_PROTOCOL, err, "%s", why.text);
    enum archive_code outcome = code == ERR_TIMEOUT ? ARCHIVE_TIMEOUT : ARCHIVE_HTTP_5XX;
    return forge_judge_fault(t, forge_fail(t->fault, outcome, err, "%s", why.text), err);
}

/* --- the question --- */

/* Sends one request of the question. ERR_AGAIN: the question is to be asked again. */
static int forge_try(struct forge_trip *t, struct err *err)
{
    struct forge_session *s = t->session;
    int code = forge_take(t, err);

    if (code < 0)
        return code;
    code = forge_send(t, t->url.p, err);
    quota_give(s->forges->quota, s->entry->forge.host, QUOTA_API, t->take.seat);
    struct quota_note quota = {-1, -1, -1};
    if (code == 0) {
        struct err ignored = {0};
        quota = forge_read_quota(t);
        if (quota_note(s->forges->quota, s->entry->forge.host,
                       t->token ? t->token->id : QUOTA_NO_TOKEN, &quota, &ignored) < 0)
            log_warn(s->forges->log, "archive.quota_not_noted", log_z("error", ignored.text));
    }
    if (code < 0)
        code = forge_judge_call(t, code, err);
    else if (t->response.status != 200 && t->response.status != 304)
        code = forge_judge(t, &quota, err);
    return code;
}

void forge_url(const struct forge_session *s, struct str path, struct buf *out)
{
    if (path.len && path.p[0] == '/')
        buf_append_str(out, s->entry->forge.api);
    buf_append_str(out, path);
}

int forge_ask(struct forge_session *s, struct arena *a, const struct forge_ask *q,
              struct forge_answer *out, struct forge_fault *fault, struct err *err)
{
    struct forge_trip t = {.session = s, .arena = a, .ask = q, .fault = fault};
    int code;

    *fault = (struct forge_fault){0};
    buf_init(&t.url, FORGE_URL_MAX);
    forge_url(s, q->url, &t.url);
    if (buf_error(&t.url) < 0)
        code = forge_fail(fault, ARCHIVE_PROTOCOL, err, "a URL is longer than %d bytes",
                          FORGE_URL_MAX);
    else if (!link_same_origin(buf_str(&t.url), s->entry->forge.api))
        code = forge_fail(fault, ARCHIVE_REDIRECT, err, "a URL leads off the API's host");
    else
        do
            code = forge_try(&t, err);
        while (code == ERR_AGAIN);
    if (code == 0 && t.response.status == 304 && !q->etag.len)
        code = forge_fail(fault, ARCHIVE_PROTOCOL, err, "an answer 304 that nobody asked for");
    if (code == 0) {
        *out = (struct forge_answer){.status = t.response.status,
                                     .etag = client_header(&t.response, "ETag"),
                                     .link = client_header(&t.response, "Link"),
                                     .url = arena_str(a, buf_str(&t.url)),
                                     .date_ms = forge_date_ms(&t)};
        *fault = (struct forge_fault){.http_status = t.response.status};
        code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    }
    buf_release(&t.url);
    return code;
}
