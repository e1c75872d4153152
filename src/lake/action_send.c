/* Calling a webhook, on hosts that may be called (docs/lake-keeping.md, H7). */
#include "lake/actions_int.h"

#include "base/json.h"
#include "http/client.h"

#include <stdlib.h>

enum { SECRETS_MAX = 256 };

/* A request that is under way. The values of its variables are secrets (H8), and no record has
 * them. */
struct webhook_call {
    struct action_call *call;
    const struct action_hook *hook;
    struct str url;
    struct http_header *headers;
    size_t header_count;
    struct str secrets[SECRETS_MAX];
    size_t secret_count;
    struct str host; /* host of the URL; set by webhook_judge_name() */
    /* the configuration lists the host's name, so the host may be called at any address */
    bool has_listed_name;
};

/* --- variables --- */

/* Takes the next item, NAME or NAME@HOST, off the list of lake.hooks.variables. *host is empty if
 * the item has no host. Returns false at the end of the list. */
static bool variable_next(struct str *list, struct str *name, struct str *host)
{
    struct str item;

    if (!str_token(list, ", ", &item))
        return false;
    str_cut(item, '@', name, host);
    return true;
}

int lake_actions_check_variables(struct str list, struct err *err)
{
    struct str name, host;

    while (variable_next(&list, &name, &host))
        if (!str_starts(name, STR("LAKEFSACTION_")) ||
            (host.len == 0 && host.p == name.p + name.len + 1))
            return err_set(err, ERR_INVALID,
                           "'" STR_FMT "' is not LAKEFSACTION_NAME or LAKEFSACTION_NAME@HOST",
                           STR_ARG(str_n(name.p, name.len + host.len)));
    return 0;
}

/* Whether the configuration lets a hook send this variable to the host of its URL. */
static bool webhook_may_send(const struct webhook_call *w, struct str variable)
{
    struct str list = w->call->actions->o.variables, name, host;

    while (variable_next(&list, &name, &host))
        if (str_eq(name, variable) && (host.len == 0 || str_ieq(host, w->host)))
            return true;
    return false;
}

/* Gives the value of a variable, and remembers it as a secret. */
static const char *webhook_variable(void *ctx, const char *name)
{
    struct webhook_call *w = ctx;
    const char *(*lookup)(const char *name) = w->call->actions->o.lookup;
    const char *value = lookup ? lookup(name) : getenv(name);

    if (w->secret_count == SECRETS_MAX || !webhook_may_send(w, str_z(name)))
        return NULL;
    if (value && *value)
        w->secrets[w->secret_count++] = str_z(value);
    return value;
}

/* --- the request --- */

/* Replaces variables in a value. */
static int webhook_expand(struct webhook_call *w, struct str text, struct str *out, struct err *err)
{
    struct buf value = BUF_INIT(ACTION_BYTES_MAX);
    int code = action_expand(&value, text, webhook_variable, w, err);

    if (code == 0) {
        *out = arena_str(w->call->arena, buf_str(&value));
        for (size_t i = 0; i < out->len && code == 0; i++)
            if ((unsigned char)out->p[i] < ' ' || out->p[i] == 0x7f)
                code = err_set(err, ERR_INVALID, "the value of a variable has a control character");
    }
    buf_release(&value);
    return code;
}

/* Appends one part of a query string and percent-encodes all bytes but letters, digits and -._~ */
static void webhook_encode(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr("-._~", c));
        if (is_plain)
            buf_append_char(out, (char)c);
        else
            buf_appendf(out, "%%%02X", c);
    }
}

static int webhook_set_url(struct webhook_call *w, struct err *err)
{
    const struct str_pairs *query = &w->hook->query;
    struct buf url = BUF_INIT(ACTION_BYTES_MAX);
    int code = 0;

    buf_append_str(&url, w->hook->url);
    for (size_t i = 0; i < query->count && code == 0; i++) {
        struct str value;
        code = webhook_expand(w, query->pairs[i].value, &value, err);
        if (code < 0)
            break;
        buf_append_char(&url, str_chr(buf_str(&url), '?') < 0 ? '?' : '&');
        webhook_encode(&url, query->pairs[i].key);
        buf_append_char(&url, '=');
        webhook_encode(&url, value);
    }
    if (code == 0)
        code = buf_error(&url);
    w->url = arena_str(w->call->arena, buf_str(&url));
    buf_release(&url);
    return code;
}

static int webhook_set_headers(struct webhook_call *w, struct err *err)
{
    const struct str_pairs *given = &w->hook->headers;
    int code = 0;

    w->headers = arena_array(w->call->arena, given->count + 1, sizeof(*w->headers));
    if (!w->headers)
        return err_code(err, ERR_NO_MEMORY);
    w->headers[w->header_count++] =
        (struct http_header){STR("Content-Type"), STR("application/json")};
    for (size_t i = 0; i < given->count && code == 0; i++) {
        struct http_header *h = &w->headers[w->header_count++];
        h->name = given->pairs[i].key;
        code = webhook_expand(w, given->pairs[i].value, &h->value, err);
    }
    return code;
}

static void webhook_write_commit(struct json_out *w, const struct lake_commit *c)
{
    json_out_member_str(w, "commit_message", c->message);
    json_out_member_str(w, "committer", c->committer);
    json_out_key(w, "commit_metadata");
    json_out_open(w, '{');
    for (size_t i = 0; i < c->metadata.count; i++) {
        json_out_key_str(w, c->metadata.pairs[i].key);
        json_out_str(w, c->metadata.pairs[i].value);
    }
    json_out_close(w, '}');
}

/* Writes the request's body, a JSON object with the members that lakeFS sends. */
static void webhook_write_body(struct buf *out, const struct action_call *c,
                               const struct action *act, const struct action_hook *h)
{
    char time[CLOCK_ISO_LEN + 1];
    struct json_out w;
    bool is_tag = action_event_is_tag(c->event);

    clock_iso(clock_wall_ms(), time);
    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "event_type", action_event_name(c->arena, c->event, c->is_pre));
    json_out_member_str(&w, "event_time", str_z(time));
    json_out_member_str(&w, "action_name", act->name);
    json_out_member_str(&w, "hook_id", h->id);
    json_out_member_str(&w, "repository_id", c->repo->id);
    json_out_member_str(&w, is_tag ? "tag_id" : "branch_id", c->ref);
    json_out_member_str(&w, "source_ref", c->source);
    if (c->event == LAKE_ON_MERGE)
        json_out_member_str(&w, "merge_source", c->source);
    if (c->commit_id.len)
        json_out_member_str(&w, "commit_id", c->commit_id);
    if (c->commit)
        webhook_write_commit(&w, c->commit);
    json_out_close(&w, '}');
}

/* --- the answer --- */

/* Appends the text and replaces every secret in it by a mask. */
static void webhook_append_public(struct buf *out, const struct webhook_call *w, struct str text)
{
    while (text.len) {
        size_t hidden = 0;
        for (size_t i = 0; i < w->secret_count; i++)
            if (w->secrets[i].len > hidden && str_starts(text, w->secrets[i]))
                hidden = w->secrets[i].len;
        if (hidden)
            buf_append_z(out, "[REDACTED]");
        else
            buf_append_char(out, text.p[0]);
        text = str_skip(text, hidden ? hidden : 1);
    }
}

static struct str webhook_output(const struct webhook_call *w, int status, struct str answer)
{
    struct buf text = BUF_INIT(4 * ACTION_OUTPUT_MAX);

    buf_appendf(&text, "POST " STR_FMT "\n", STR_ARG(w->hook->url));
    if (status)
        buf_appendf(&text, "status code: %d\n", status);
    webhook_append_public(&text, w, str_head(answer, ACTION_OUTPUT_MAX));
    struct str out = arena_str(w->call->arena, str_head(buf_str(&text), ACTION_OUTPUT_MAX));
    buf_release(&text);
    return out;
}

/* --- the host --- */

static bool webhook_may_connect(void *ctx, const struct sock_addr *addr)
{
    const struct webhook_call *w = ctx;

    return w->has_listed_name || hosts_have_address(&w->call->actions->hosts, addr);
}

/* Sets `has_listed_name`. Refuses a URL that weir and the HTTP client could parse differently. */
static int webhook_judge_name(struct webhook_call *w, struct err *err)
{
    struct url url;
    int code = url_parse(&url, w->hook->url, err);

    if (code == 0 && (url.host.len == 0 || url.user.len || url.password.len))
        code = err_set(err, ERR_INVALID, "the URL of a webhook has a host and no user");
    for (size_t i = 0; code == 0 && i < url.host.len; i++)
        if (strchr("%\\ ", url.host.p[i]))
            code = err_set(err, ERR_INVALID, "the host of the webhook is malformed");
    w->host = code == 0 ? url.host : STR_EMPTY;
    w->has_listed_name = code == 0 && hosts_have_name(&w->call->actions->hosts, url.host);
    return code;
}

static struct str webhook_failure(struct webhook_call *w, const struct err *failure)
{
    return failure->code == ERR_DENIED
               ? STR("the host may not be called; lake.hooks.hosts names the hosts that may")
               : arena_str(w->call->arena, str_z(failure->text));
}

/* Sends the request. Redirects are not followed, because they could lead the request and its
 * secrets anywhere. No proxy is used, because it would resolve the name of the host itself. */
static int webhook_ask(struct webhook_call *w, struct str body, struct lake_hook_run *out,
                       struct err *err)
{
    struct client_options o = {
        .timeout_ms = w->hook->timeout_ms, .max_attempts = 1, .direct = true};
    struct client_request r = {.method = "POST",
                               .url = w->url.p,
                               .headers = w->headers,
                               .header_count = w->header_count,
                               .body = body,
                               .no_retry = true,
                               .no_redirect = true,
                               .may_connect = webhook_may_connect,
                               .ctx = w,
                               .cancel = &w->call->actions->is_ending};
    struct client *client = client_new(&o);
    struct client_response answer = {0};
    struct err failure = {0};
    int code = client_call(client, w->call->arena, &answer, &r, &failure);

    client_free(client);
    if (code < 0) {
        struct str why = webhook_failure(w, &failure);
        out->output = webhook_output(w, 0, why);
        return err_set(err, ERR_PRECONDITION, "webhook request failed: " STR_FMT, STR_ARG(why));
    }
    out->output = webhook_output(w, answer.status, answer.body);
    return answer.status / 100 == 2
               ? 0
               : err_set(err, ERR_PRECONDITION, "webhook request failed (status code: %d)",
                         answer.status);
}

int action_send(struct action_call *c, const struct action *act, const struct action_hook *h,
                struct lake_hook_run *out, struct err *err)
{
    struct webhook_call w = {.call = c, .hook = h};
    struct buf body = {0};
    int code;

    if (!str_eq(h->type, STR("webhook"))) {
        out->output = arena_fmt(c->arena, "hooks of type '" STR_FMT "' are not served\n",
                                STR_ARG(str_head(h->type, 100)));
        return err_set(err, ERR_PRECONDITION, "hooks of type '" STR_FMT "' are not served",
                       STR_ARG(str_head(h->type, 100)));
    }
    code = webhook_judge_name(&w, err);
    if (code == 0)
        code = webhook_set_headers(&w, err);
    if (code == 0)
        code = webhook_set_url(&w, err);
    if (code < 0) {
        out->output = arena_str(c->arena, str_z(err->text));
        return err_wrap(err, ERR_PRECONDITION, "the webhook cannot be called");
    }
    webhook_write_body(&body, c, act, h);
    code = webhook_ask(&w, buf_str(&body), out, err);
    buf_release(&body);
    return code;
}
