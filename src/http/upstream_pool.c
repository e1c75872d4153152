/* The pool of an upstream's connections. It decides which caller may open a connection, which idle
 * connection is reused, and whether the peer is up. */
#include "http/upstream_int.h"
#include "base/clock.h"

#include <stdlib.h>
#include <sys/socket.h>

static uint64_t upstream_or_default(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

/* Reads host and port from the URL, and makes the value of the Host header, which omits a default
 * port (RFC 9110 section 7.2). */
static int set_endpoint(struct upstream *u, struct str text, bool *https, struct err *err)
{
    struct url url;
    int rc = url_parse(&url, text, err);

    if (rc < 0)
        return err_wrap(err, ERR_INVALID, "upstream");
    *https = str_ieq(url.scheme, STR("https"));
    if (!*https && !str_ieq(url.scheme, STR("http")))
        return err_set(err, ERR_INVALID, "upstream: a URL begins with http:// or https://");
    if (url.host.len == 0)
        return err_set(err, ERR_INVALID, "upstream: the URL has no host");
    bool literal6 = str_chr(url.host, ':') >= 0;
    u->host = str_dup(url.host);
    u->port = url.port ? url.port : (*https ? 443 : 80);
    buf_appendf(&u->host_header, literal6 ? "[%s]" : "%s", u->host);
    if (u->port != (*https ? 443 : 80))
        buf_appendf(&u->host_header, ":%u", u->port);
    return 0;
}

int upstream_new(struct upstream **out, const struct upstream_options *o, struct err *err)
{
    struct upstream *u = xcalloc(1, sizeof(*u));
    bool https = false;

    u->max_connections = upstream_or_default(o->max_connections, 256);
    u->max_idle = upstream_or_default(o->max_idle, 64);
    u->idle_timeout_ms = upstream_or_default(o->idle_timeout_ms, 30 * MS_PER_S);
    u->connect_timeout_ms = upstream_or_default(o->connect_timeout_ms, 3 * MS_PER_S);
    u->timeout_ms = upstream_or_default(o->timeout_ms, 30 * MS_PER_S);
    u->head_timeout_ms = upstream_or_default(o->head_timeout_ms, MS_PER_MINUTE);
    u->log = o->log;
    mutex_init(&u->lock, "upstream");
    cond_init(&u->room);
    list_init(&u->idle);
    list_init(&u->busy);
    int rc = set_endpoint(u, o->url, &https, err);
    if (rc == 0 && https) {
        struct tls_client_options t = {.ca_file = o->ca_file, .insecure = o->tls_insecure};
        rc = tls_client_context(&u->tls, &t, err);
    }
    if (rc < 0)
        upstream_free(u);
    else
        *out = u;
    return rc;
}

static void close_all(struct list *conns)
{
    list_each_safe (conns, struct upstream_conn, node, c)
        upstream_conn_close(c);
}

void upstream_free(struct upstream *u)
{
    if (!u)
        return;
    BUG_ON(u->open != u->idle_count);
    close_all(&u->idle);
    cond_release(&u->room);
    mutex_release(&u->lock);
    tls_context_unref(u->tls);
    buf_release(&u->host_header);
    free(u->host);
    free(u);
}

/* Moves a connection from the idle list to `dead` and lowers the counts. The caller closes the
 * connections in `dead` after it has released the lock. */
static void retire(struct upstream *u, struct upstream_conn *c, struct list *dead)
{
    list_remove(&c->node);
    list_push(dead, &c->node);
    u->idle_count--;
    u->open--;
    cond_signal(&u->room);
}

/* Moves connections that were idle for too long to `dead`. The oldest are at the end of the list.
 */
static void retire_aged(struct upstream *u, struct list *dead)
{
    uint64_t now = clock_mono_ns();

    mutex_assert_held(&u->lock);
    while (!list_empty(&u->idle)) {
        struct upstream_conn *oldest = list_entry(u->idle.prev, struct upstream_conn, node);
        if (now - oldest->idle_since_ns < u->idle_timeout_ms * NS_PER_MS)
            return;
        retire(u, oldest, dead);
    }
}

void upstream_sweep(struct upstream *u)
{
    struct list dead;

    list_init(&dead);
    mutex_lock(&u->lock);
    retire_aged(u, &dead);
    mutex_unlock(&u->lock);
    close_all(&dead);
}

static bool is_down(const struct upstream *u)
{
    return atomic_load_explicit(&u->failures, memory_order_relaxed) >= UPSTREAM_DOWN_AFTER;
}

bool upstream_is_up(struct upstream *u)
{
    return !is_down(u);
}

/* Whether a caller may use the upstream. While the upstream is down, only one caller per
 * UPSTREAM_PROBE_MS may use it. */
static bool upstream_admits(struct upstream *u)
{
    uint64_t now = clock_mono_ns();

    if (!is_down(u))
        return true;
    if (now < u->next_probe)
        return false;
    u->next_probe = now + UPSTREAM_PROBE_MS * NS_PER_MS;
    return true;
}

static struct upstream_conn *take_idle(struct upstream *u)
{
    struct upstream_conn *c = list_entry(list_shift(&u->idle), struct upstream_conn, node);

    list_push(&u->busy, &c->node);
    u->idle_count--;
    return c;
}

enum choice { USE_IDLE, USE_NEW, REFUSED, NO_ROOM };

/* Sets *conn to an idle connection, or allows the caller to open a new one. When all connections
 * are in use, waits for one until the deadline. */
static enum choice upstream_choose(struct upstream *u, bool fresh, uint64_t deadline,
                                   struct upstream_conn **conn, struct list *dead)
{
    mutex_assert_held(&u->lock);
    for (;;) {
        if (u->aborted || !upstream_admits(u))
            return REFUSED;
        retire_aged(u, dead);
        if (!list_empty(&u->idle) && !fresh) {
            *conn = take_idle(u);
            return USE_IDLE;
        }
        if (u->open >= u->max_connections && !list_empty(&u->idle))
            retire(u, list_entry(u->idle.prev, struct upstream_conn, node), dead);
        if (u->open < u->max_connections) {
            u->open++;
            return USE_NEW;
        }
        if (!cond_wait_until(&u->room, &u->lock, deadline))
            return NO_ROOM;
    }
}

static void log_up(struct upstream *u)
{
    log_info(u->log, "upstream.up", log_s("host", buf_str(&u->host_header)));
}

/* Updates the upstream's health and counts after an attempt to connect. */
static void connected(struct upstream *u, int rc, const struct err *why)
{
    struct list dead;

    list_init(&dead);
    mutex_lock(&u->lock);
    bool was_down = is_down(u);
    u->connects += rc == 0;
    if (rc == 0) {
        u->failures = 0;
    } else {
        u->open--;
        cond_signal(&u->room);
        if (rc != ERR_BUSY && !u->aborted && u->failures < UPSTREAM_DOWN_AFTER)
            u->failures++;
        u->next_probe = upstream_deadline(UPSTREAM_PROBE_MS);
    }
    bool down = is_down(u);
    if (down && !was_down) {
        cond_broadcast(&u->room); /* callers that wait for room get ERR_UNAVAILABLE now */
        while (!list_empty(&u->idle))
            retire(u, list_entry(u->idle.prev, struct upstream_conn, node), &dead);
    }
    mutex_unlock(&u->lock);
    close_all(&dead);
    if (down && !was_down)
        log_warn(u->log, "upstream.down", log_s("host", buf_str(&u->host_header)),
                 log_z("reason", why->text));
    if (!down && was_down)
        log_up(u);
}

/* Adds a new connection to the busy list. If upstream_abort() was called before, it did not see
 * this connection, so the connection is shut down here. */
static void make_busy(struct upstream *u, struct upstream_conn *c)
{
    mutex_lock(&u->lock);
    list_push(&u->busy, &c->node);
    if (u->aborted)
        shutdown(c->fd, SHUT_RDWR);
    mutex_unlock(&u->lock);
}

static void drop_new(struct upstream *u, struct upstream_conn *c)
{
    mutex_lock(&u->lock);
    list_remove(&c->node);
    mutex_unlock(&u->lock);
    upstream_conn_close(c);
}

static int upstream_open_conn(struct upstream_conn **out, struct upstream *u, struct err *err)
{
    uint64_t deadline = upstream_deadline(u->connect_timeout_ms);
    struct err why = {0};
    int rc = upstream_conn_open(out, u, deadline, &why);

    if (rc == 0) {
        make_busy(u, *out);
        rc = upstream_conn_secure(*out, u, deadline, &why);
        if (rc < 0)
            drop_new(u, *out);
    }
    connected(u, rc, &why);
    return rc < 0 ? err_set(err, rc, "%s", why.text) : 0;
}

int upstream_take(struct upstream_conn **out, struct upstream *u, bool fresh, struct err *err)
{
    uint64_t deadline = upstream_deadline(u->connect_timeout_ms);

    for (;;) {
        struct upstream_conn *c = NULL;
        struct list dead;

        list_init(&dead);
        mutex_lock(&u->lock);
        enum choice choice = upstream_choose(u, fresh, deadline, &c, &dead);
        mutex_unlock(&u->lock);
        close_all(&dead);
        if (choice == USE_NEW)
            return upstream_open_conn(out, u, err);
        if (choice == REFUSED)
            return err_set(err, ERR_UNAVAILABLE, "upstream " STR_FMT ": %s",
                           STR_ARG(buf_str(&u->host_header)),
                           u->aborted ? "it is being closed" : "is down");
        if (choice == NO_ROOM)
            return err_set(err, ERR_BUSY, "upstream " STR_FMT ": all %zu connections are busy",
                           STR_ARG(buf_str(&u->host_header)), u->max_connections);
        if (upstream_conn_is_quiet(c)) {
            upstream_count(&u->reused);
            *out = c;
            return 0;
        }
        upstream_give(u, c, false);
    }
}

int upstream_take_now(struct upstream_conn **out, struct upstream *u, struct err *err)
{
    for (;;) {
        struct upstream_conn *c = NULL;
        struct list dead;

        list_init(&dead);
        mutex_lock(&u->lock);
        retire_aged(u, &dead);
        if (!is_down(u) && !list_empty(&u->idle))
            c = take_idle(u);
        mutex_unlock(&u->lock);
        close_all(&dead);
        if (!c)
            return err_code(err, ERR_AGAIN);
        if (upstream_conn_is_quiet(c)) {
            *out = c;
            return 0;
        }
        upstream_give(u, c, false);
    }
}

void upstream_give(struct upstream *u, struct upstream_conn *c, bool reusable)
{
    struct list dead;

    list_init(&dead);
    mutex_lock(&u->lock);
    bool was_down = is_down(u);
    list_remove(&c->node);
    /* A response proves that the peer is up, even after failed connects. */
    if (reusable && u->failures)
        u->failures = 0;
    if (reusable && !u->aborted && u->idle_count < u->max_idle) {
        c->reused = true;
        c->idle_since_ns = clock_mono_ns();
        list_push_front(&u->idle, &c->node);
        u->idle_count++;
    } else {
        list_push(&dead, &c->node);
        u->open--;
    }
    cond_signal(&u->room);
    mutex_unlock(&u->lock);
    close_all(&dead);
    if (was_down && reusable)
        log_up(u);
}

void upstream_abort(struct upstream *u)
{
    struct list dead;

    list_init(&dead);
    mutex_lock(&u->lock);
    u->aborted = true;
    while (!list_empty(&u->idle))
        retire(u, list_entry(u->idle.prev, struct upstream_conn, node), &dead);
    list_each (&u->busy, struct upstream_conn, node, c)
        /* The exchange that owns `c` notices the shutdown and closes the connection. */
        shutdown(c->fd, SHUT_RDWR);
    cond_broadcast(&u->room);
    mutex_unlock(&u->lock);
    close_all(&dead);
}

void upstream_probe(struct upstream *u)
{
    struct upstream_conn *c;

    if (!upstream_is_up(u) && upstream_take(&c, u, true, NULL) == 0)
        upstream_give(u, c, true);
}

void upstream_stats(struct upstream *u, struct upstream_stats *out)
{
    mutex_lock(&u->lock);
    *out = (struct upstream_stats){.requests = atomic_load(&u->requests),
                                   .failures = atomic_load(&u->failed),
                                   .connects = u->connects,
                                   .reused = atomic_load(&u->reused),
                                   .retries = atomic_load(&u->retries),
                                   .open = u->open,
                                   .idle = u->idle_count};
    mutex_unlock(&u->lock);
}
