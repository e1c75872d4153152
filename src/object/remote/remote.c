/* A remote storage: opening, closing, and the thread that finds out when the peer is back. */
#include "object/remote/remote.h"
#include "base/clock.h"
#include "object/remote/remote_int.h"

#include <stdlib.h>

enum { PROBE_MS = 1000, SWEEP_MS = 10 * MS_PER_S };

/* clang-format off */
const struct remote_timeout remote_timeouts[REMOTE_TIMEOUTS] = {
    {"connect_timeout",   3 * MS_PER_S,  100, MS_PER_MINUTE,      offsetof(struct remote_times, connect_ms)},
    {"response_timeout", MS_PER_MINUTE, 1000, MS_PER_HOUR, offsetof(struct remote_times, response_ms)},
    {"idle_timeout",     30 * MS_PER_S, 1000, MS_PER_HOUR, offsetof(struct remote_times, idle_ms)},
};
/* clang-format on */

uint64_t *remote_time(struct remote_times *times, size_t i)
{
    BUG_ON(i >= REMOTE_TIMEOUTS);
    return (uint64_t *)((char *)times + remote_timeouts[i].offset);
}

int remote_times_check(const struct remote_times *times, struct err *err)
{
    struct remote_times copy = *times;

    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        const struct remote_timeout *row = &remote_timeouts[i];
        uint64_t ms = *remote_time(&copy, i);
        if (ms && (ms < row->min_ms || ms > row->max_ms))
            return err_set(err, ERR_INVALID, "%s must be from %llu ms to %llu s", row->name,
                           (unsigned long long)row->min_ms,
                           (unsigned long long)row->max_ms / MS_PER_S);
    }
    return 0;
}

static struct remote_times times_or_usual(struct remote_times times)
{
    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++)
        if (*remote_time(&times, i) == 0)
            *remote_time(&times, i) = remote_timeouts[i].usual_ms;
    return times;
}

/* --- opening and closing --- */

/* Sets r->host from the URL in the same way as upstream.c: without the port if it is the scheme's
 * default (RFC 9110 section 7.2). */
static int set_host(struct remote *r, struct str text, struct err *err)
{
    struct url url;
    int code = url_parse(&url, text, err);

    if (code < 0)
        return err_wrap(err, ERR_INVALID, "storage " STR_FMT, STR_ARG(r->storage.name));
    if (url.user.len || url.query.len || (url.path.len && !str_eq(url.path, STR("/"))))
        return err_set(err, ERR_INVALID,
                       "storage " STR_FMT ": the URL has only a scheme, a host and a port",
                       STR_ARG(r->storage.name));
    uint16_t usual = str_ieq(url.scheme, STR("https")) ? 443 : 80;
    bool literal6 = str_chr(url.host, ':') >= 0;
    buf_appendf(&r->host, literal6 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(url.host));
    if (url.port && url.port != usual)
        buf_appendf(&r->host, ":%u", url.port);
    return 0;
}

/* Returns when the thread runs next. While the peer is down, it runs each second and tries to
 * connect (docs/remote-storage.md, M6). At other times it only closes connections that were idle
 * for long. */
static struct loop_sleep probe_later(const struct remote *r)
{
    return loop_sleep_ms(upstream_is_up(r->upstream) ? SWEEP_MS : PROBE_MS);
}

static struct loop_sleep probe(void *ctx)
{
    struct remote *r = ctx;

    upstream_sweep(r->upstream);
    upstream_probe(r->upstream);
    return probe_later(r);
}

void remote_wake_prober(struct remote *r)
{
    loop_wake(&r->prober);
}

static void remote_abort(struct storage *s)
{
    upstream_abort(remote_of(s)->upstream);
}

static void remote_close(struct storage *s)
{
    struct remote *r = remote_of(s);

    if (r->upstream)
        upstream_abort(r->upstream); /* the prober may be waiting for a connection */
    loop_stop(&r->prober);
    upstream_free(r->upstream);
    credential_table_release(&r->credentials);
    sign_keys_free(r->keys);
    buf_release(&r->name);
    buf_release(&r->host);
    buf_release(&r->region);
    free(r);
}

int remote_open(struct storage **out, const struct remote_options *o, struct err *err)
{
    struct remote *r = xcalloc(1, sizeof(*r));
    struct remote_times times = times_or_usual(o->times);
    struct upstream_options u = {.url = o->url,
                                 .connect_timeout_ms = times.connect_ms,
                                 .head_timeout_ms = times.response_ms,
                                 .timeout_ms = times.idle_ms,
                                 .ca_file = o->ca_file,
                                 .tls_insecure = o->tls_insecure,
                                 .log = o->log};
    int code;

    buf_append_str(&r->name, o->name);
    buf_append_str(&r->region, o->region.len ? o->region : STR("us-east-1"));
    r->storage = (struct storage){&remote_storage_ops, buf_str(&r->name)};
    r->virtual_host = o->virtual_host;
    r->put_max = REMOTE_PUT_MAX;
    r->part_size = REMOTE_PART_SIZE;
    r->keys = sign_keys_new();
    credential_table_init(&r->credentials);
    code = set_host(r, o->url, err);
    if (code == 0)
        code = upstream_new(&r->upstream, &u, err);
    if (code == 0)
        code = loop_start(
            &r->prober,
            &(struct loop_options){
                .name = "remote-prober", .step = probe, .ctx = r, .first = probe_later(r)},
            err);
    if (code < 0)
        remote_close(&r->storage);
    else
        *out = &r->storage;
    return code;
}

const struct storage_ops remote_storage_ops = {
    .kind = "remote",
    .can = STORAGE_FORWARDS | STORAGE_NOTIFIES | STORAGE_CREDENTIALS,
    .create_bucket = remote_create_bucket,
    .remove_bucket = remote_remove_bucket,
    .open_bucket = remote_open_bucket,
    .list_buckets = remote_list_buckets,
    .forward = remote_forward,
    .check = remote_check,
    .abort = remote_abort,
    .close = remote_close,
};
