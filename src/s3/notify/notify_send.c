/* The thread of a webhook. It sends the first waiting row again and again until the webhook accepts
 * the row or the row is dropped, and then the next. */
#include "s3/notify/notify_int.h"

#include "base/clock.h"
#include "base/ids.h"
#include "sign/hmac.h"

#include <stdlib.h>

enum { STACK = 512 * 1024, MOST_DOUBLINGS = 7, ANSWER_MAX = 64 * 1024 };

/* The row that is being sent. */
struct waiting {
    struct progress at;
    struct buf place, value;
};

/* --- rows --- */

static struct row_log webhook_log(const struct webhook *w)
{
    return (struct row_log){w->n->o.db, w->n->outbox, str_n(w->name, strlen(w->name) + 1)};
}

static int first_between(struct webhook *w, struct str from, struct str to, struct waiting *out,
                         struct err *err)
{
    struct row_log log = webhook_log(w);
    struct row_log_span span = {.from = from, .to = to, .limit = 1};
    struct arena a = {0};
    struct logged_row row;
    size_t count = 0;
    int code = row_log_read(&log, &a, &span, &row, &count, err);

    if (code == 0 && count) {
        buf_reset(&out->place);
        buf_reset(&out->value);
        buf_append_str(&out->place, row.place);
        buf_append_str(&out->value, row.value);
        if (!outbox_parse(&out->at, row.place))
            code = err_set(err, ERR_CORRUPT, "a row of the outbox cannot be read");
    }
    arena_release(&a);
    return code < 0 ? code : count ? 0 : ERR_END;
}

/* Sets `out` to a place that is before all rows of the storage. */
static void storage_place(struct buf *out, uint64_t storage)
{
    buf_reset(out);
    buf_append_be64(out, storage);
}

/* Finds the first row that waits. In each storage that had rows the search begins behind the last
 * deleted row, so that deleted rows are not read again (docs/notifications.md, N3). */
static int first_row(struct webhook *w, struct waiting *out, struct err *err)
{
    struct buf from = BUF_INIT(0), to = BUF_INIT(0);
    int code = ERR_END;

    vec_each (&w->progress, struct progress *, p) {
        storage_place(&to, p->storage);
        code = first_between(w, buf_str(&from), buf_str(&to), out, err);
        if (code != ERR_END)
            goto out;
        buf_reset(&from);
        outbox_place(&from, p);
        buf_append_char(&from, '\0'); /* the first place behind that row */
        storage_place(&to, (uint64_t)p->storage + 1);
        code = first_between(w, buf_str(&from), buf_str(&to), out, err);
        if (code != ERR_END)
            goto out;
        storage_place(&from, (uint64_t)p->storage + 1);
    }
    code = first_between(w, buf_str(&from), STR_EMPTY, out, err);
out:
    buf_release(&from);
    buf_release(&to);
    return code;
}

static void sender_remember(struct webhook *w, const struct progress *at)
{
    size_t i = 0;

    while (i < w->progress.len && w->progress.items[i].storage < at->storage)
        i++;
    if (i == w->progress.len || w->progress.items[i].storage != at->storage) {
        vec_push(&w->progress, *at);
        memmove(&w->progress.items[i + 1], &w->progress.items[i],
                (w->progress.len - 1 - i) * sizeof(*at));
    }
    w->progress.items[i] = *at;
}

/* Deletes a row, without a sync. If a crash brings the row back, it is sent again, which is
 * allowed. */
static int outbox_delete(struct webhook *w, const struct waiting *row, struct err *err)
{
    struct row_log log = webhook_log(w);
    struct str place = buf_str(&row->place);
    int code = row_log_drop(&log, &place, 1, err);

    if (code == 0) {
        sender_remember(w, &row->at);
        atomic_fetch_sub(&w->pending, 1);
    }
    return code;
}

int sender_count(struct webhook *w, int64_t *out, struct err *err)
{
    struct row_log log = webhook_log(w);
    uint64_t count = 0;
    int code = row_log_count(&log, &count, err);

    if (code == 0)
        *out = (int64_t)count;
    return code;
}

void sender_forget(struct webhook *w)
{
    struct row_log log = webhook_log(w);
    struct err err = {0};
    uint64_t count = 0;
    int code = row_log_count(&log, &count, &err);

    if (code == 0 && count)
        code = row_log_drop_before(&log, STR_EMPTY, &err);
    if (code < 0)
        log_warn(w->n->o.log, "notify.not_forgotten", log_z("webhook", w->name),
                 log_z("error", err.text));
    else if (count)
        log_warn(w->n->o.log, "notify.dropped", log_z("webhook", w->name),
                 log_z("why", "the webhook was removed"), log_u("events", count));
    if (code == 0)
        atomic_fetch_add(&w->n->dropped, count);
}

/* --- one call --- */

static void sender_sign(struct arena *a, struct str secret, struct str body,
                        struct http_header *out)
{
    unsigned char sum[HMAC_SHA256_LEN];
    struct buf text = BUF_INIT(0), header = BUF_INIT(0);
    long long now = (long long)(clock_wall_ms() / MS_PER_S);

    buf_appendf(&text, "%lld.", now);
    buf_append_str(&text, body);
    hmac_sha256(secret, buf_str(&text), sum);
    buf_appendf(&header, "t=%lld,v1=", now);
    buf_append_hex(&header, sum, sizeof(sum));
    *out = (struct http_header){STR("X-Weir-Signature"), arena_str(a, buf_str(&header))};
    buf_release(&text);
    buf_release(&header);
}

static void write_body(struct buf *out, struct str value)
{
    bool record = str_starts(value, STR("R"));

    if (record)
        buf_append_z(out, "{\"Records\":[");
    buf_append_str(out, str_skip(value, 1));
    if (record)
        buf_append_z(out, "]}");
}

/* Ignores the body of a webhook's answer. A body over the limit is an error, because it may be
 * endless. */
static int ignore_body(void *ctx, struct str piece, struct err *err)
{
    size_t *left = ctx;

    if (piece.len > *left)
        return err_set(err, ERR_TOO_LARGE, "the answer is too long");
    *left -= piece.len;
    return 0;
}

static int sender_call(struct webhook *w, struct arena *a, struct str body, struct err *err)
{
    struct http_header headers[2] = {{STR("Content-Type"), STR("application/json")}};
    size_t left = ANSWER_MAX;
    struct client_request r = {.method = "POST",
                               .headers = headers,
                               .header_count = 1,
                               .body = body,
                               .on_body = ignore_body,
                               .ctx = &left,
                               .no_retry = true,
                               .no_redirect = true,
                               .cancel = &w->stop};
    struct client_response answer = {0};
    struct str secret;

    mutex_lock(&w->n->lock);
    r.url = arena_z(a, str_z(w->url));
    secret = arena_str(a, str_z(w->secret));
    mutex_unlock(&w->n->lock);
    if (secret.len)
        sender_sign(a, secret, body, &headers[r.header_count++]);
    if (secret.len)
        secure_zero((char *)secret.p, secret.len);
    int code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY)
                                  : client_call(w->n->client, a, &answer, &r, err);
    if (code == 0 && (answer.status < 200 || answer.status > 299))
        return err_set(err, ERR_PEER, "it answered %d", answer.status);
    return code;
}

static int send_row(struct webhook *w, const struct waiting *row, struct err *err)
{
    struct arena a = {0};
    struct buf body = BUF_INIT(0);

    write_body(&body, buf_str(&row->value));
    int code = sender_call(w, &a, buf_str(&body), err);
    buf_release(&body);
    arena_release(&a);
    return code;
}

/* --- the thread --- */

/* Waits until the thread is woken, is asked to end, or `deadline_ns` is reached; 0: no deadline. */
static void rest(struct webhook *w, uint64_t deadline_ns)
{
    struct notify *n = w->n;

    mutex_lock(&n->lock);
    while (!w->woken && !atomic_load(&w->stop)) {
        if (deadline_ns == 0)
            cond_wait(&w->wake, &n->lock);
        else if (!cond_wait_until(&w->wake, &n->lock, deadline_ns))
            break;
    }
    w->woken = false;
    mutex_unlock(&n->lock);
}

/* Returns the reason why the row must be dropped; NULL: the row stays. A row that is too old is
 * dropped only after a failed call: it may be old only because weir was stopped. */
static const char *too_much(const struct webhook *w, const struct waiting *row, unsigned failures)
{
    int64_t age = clock_wall_ms() - (int64_t)(row->at.sequence / US_PER_MS);

    if (failures && age > 0 && (uint64_t)age > w->n->o.max_age_ms)
        return "too old";
    return atomic_load(&w->pending) > (int64_t)w->n->o.max_pending ? "too many" : NULL;
}

static int sender_give_up(struct webhook *w, const struct waiting *row, const char *why,
                          struct err *err)
{
    int code = outbox_delete(w, row, err);

    if (code < 0)
        return code;
    atomic_fetch_add(&w->n->dropped, 1);
    log_warn(w->n->o.log, "notify.dropped", log_z("webhook", w->name), log_z("why", why),
             log_s("event", str_head(str_skip(buf_str(&row->value), 1), KIB)));
    return 0;
}

/* Returns when to call again, as clock_mono_ns(). The wait is random, so that many webhooks with
 * one receiver do not call at the same time. */
static uint64_t sender_back_off(const struct webhook *w, unsigned failures)
{
    unsigned doublings = failures - 1 < MOST_DOUBLINGS ? failures - 1 : MOST_DOUBLINGS;
    uint64_t most = w->n->o.retry_ms << doublings;

    return clock_mono_ns() + (most / 2 + random_below(most / 2 + 1)) * NS_PER_MS;
}

static int send_first(struct webhook *w, const struct waiting *row, struct err *err)
{
    int code = send_row(w, row, err);

    if (code < 0)
        return code;
    code = outbox_delete(w, row, err);
    if (code == 0)
        atomic_fetch_add(&w->delivered, 1);
    return code;
}

static void log_failure(const struct webhook *w, unsigned failures, const struct err *err)
{
    log_warn(w->n->o.log, "notify.failed", log_z("webhook", w->name), log_u("times", failures),
             log_z("error", err->text));
}

static void run(void *ctx)
{
    struct webhook *w = ctx;
    struct waiting row = {.place = BUF_INIT(0), .value = BUF_INIT(0)};
    uint64_t due_ns = 0; /* after a failure: the time of the next call */
    unsigned failures = 0;

    while (!atomic_load(&w->stop)) {
        struct err err = {0};
        int code = first_row(w, &row, &err);
        const char *why = code == 0 ? too_much(w, &row, failures) : NULL;
        atomic_store(&w->oldest_ms, code == 0 ? (int64_t)(row.at.sequence / US_PER_MS) : 0);
        if (code == ERR_END) {
            rest(w, 0);
            continue;
        }
        if (why) {
            code = sender_give_up(w, &row, why, &err);
        } else if (code == 0 && clock_mono_ns() < due_ns) {
            rest(w, due_ns);
            continue;
        } else if (code == 0) {
            code = send_first(w, &row, &err);
        }
        failures = code < 0 ? failures + 1 : why ? failures : 0;
        if (code < 0 && !atomic_load(&w->stop)) {
            atomic_fetch_add(&w->failed, 1);
            due_ns = sender_back_off(w, failures);
            log_failure(w, failures, &err);
            rest(w, due_ns);
        }
    }
    buf_release(&row.place);
    buf_release(&row.value);
}

int sender_start(struct webhook *w, struct err *err)
{
    return thread_start(&w->thread, "webhook", STACK, run, w, err);
}

void sender_stop(struct webhook *w)
{
    mutex_lock(&w->n->lock);
    atomic_store(&w->stop, true);
    cond_signal(&w->wake);
    mutex_unlock(&w->n->lock);
    thread_join(&w->thread);
}
