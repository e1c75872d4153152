/* The server as a whole: start and stop, the fast workers, the sweeper, the counters. */
#include "http/server_int.h"
#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,
    WORKER_STACK = 512 * 1024,
    MAX_WORKERS = 256,
    ARENA_MAX = 8 * 1024 * 1024,
    MAX_TICK_MS = 500,
    MIN_TICK_MS = 5,
    DROP_MS = 1000, /* time for handlers to notice that their peers were disconnected */
};

/* The fast worker that runs on this thread; NULL: this thread is no fast worker. */
static _Thread_local struct worker *this_worker;

static struct worker *worker_of(struct http_server *s)
{
    return this_worker && this_worker->server == s ? this_worker : NULL;
}

struct counters *counters_mine(struct http_server *s)
{
    struct worker *w = worker_of(s);
    return &s->counters[w ? (size_t)(w - s->workers) : s->worker_count];
}

bool server_stopping(struct http_server *s)
{
    return atomic_load(&s->stopping);
}

static struct http_request *request_new(void)
{
    struct http_request *req = malloc(sizeof(*req));

    if (!req)
        return NULL;
    /* The members from `head` on are always written before they are read. */
    memset(req, 0, offsetof(struct http_request, head));
    arena_init(&req->arena, ARENA_MAX);
    buf_init(&req->body.trailers, 2 * HTTP_MAX_HEAD);
    req->file.fd = -1;
    return req;
}

void request_free(struct http_request *req)
{
    if (!req)
        return;
    fd_close(&req->file.fd);
    arena_release(&req->arena);
    buf_release(&req->out);
    buf_release(&req->body.trailers);
    free(req);
}

/* Takes an unused struct http_request. Each fast worker keeps one such struct for itself, which is
 * still in the CPU's cache. Most fast workers never need a second struct. */
struct http_request *request_take(struct http_server *s)
{
    struct worker *w = worker_of(s);
    struct list *node = NULL;

    if (w && w->spare) {
        struct http_request *req = w->spare;
        w->spare = NULL;
        return req;
    }
    mutex_lock(&s->lock);
    node = list_shift(&s->spares);
    s->spare_count -= node != NULL;
    mutex_unlock(&s->lock);
    return node ? list_entry(node, struct http_request, node) : request_new();
}

void request_give(struct http_server *s, struct http_request *req)
{
    struct worker *w = worker_of(s);

    req->body.at = req->in_len;
    if (req->in_len || req->stage != STAGE_NONE)
        request_reset(req);
    req->conn = NULL;
    if (w && !w->spare) {
        w->spare = req;
        return;
    }
    mutex_lock(&s->lock);
    if (s->spare_count < SPARE_REQUESTS) {
        list_push_front(&s->spares, &req->node);
        s->spare_count++;
        req = NULL;
    }
    mutex_unlock(&s->lock);
    request_free(req);
}

static void worker_main(void *ctx)
{
    struct worker *w = ctx;
    struct http_server *s = w->server;
    struct epoll_event events[EVENTS];
    bool ending = false;

    this_worker = w;
    while (!ending) {
        int n = epoll_wait(s->epoll, events, EVENTS, -1);
        BUG_ON(n < 0 && errno != EINTR);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &s->listener)
                accept_some(s);
            else if (events[i].data.ptr == &s->wake)
                ending = true;
            else
                conn_on_event(events[i].data.ptr);
        }
    }
    request_free(w->spare);
    this_worker = NULL;
}

static void tick(struct http_server *s)
{
    atomic_store_explicit(&s->now_ms, clock_mono_ms(), memory_order_relaxed);
    atomic_store_explicit(&s->wall_ms, clock_wall_ms(), memory_order_relaxed);
}

static void server_sweep(struct http_server *s)
{
    uint64_t now = atomic_load_explicit(&s->now_ms, memory_order_relaxed);

    for (size_t i = 0; i < STRIPES; i++) {
        mutex_lock(&s->stripes[i].lock);
        list_each (&s->stripes[i].conns, struct conn, node, c)
            conn_sweep(c, now);
        mutex_unlock(&s->stripes[i].lock);
    }
}

static struct loop_sleep sweeper_step(void *ctx)
{
    struct http_server *s = ctx;

    tick(s);
    server_sweep(s);
    if (atomic_exchange(&s->accept_stalled, false))
        accept_some(s);
    return loop_sleep_ms(s->tick_ms);
}

static uint64_t server_or_default(uint64_t value, uint64_t fallback)
{
    return value ? value : fallback;
}

static void set_timeouts(struct http_server *s, const struct http_server_options *o)
{
    uint64_t head = server_or_default(o->head_timeout_ms, 10000), least;

    s->window_ms = server_or_default(o->rate_window_ms, 10000);
    s->timeout_ms[PHASE_HELLO] = head;
    s->timeout_ms[PHASE_HEAD] = head;
    s->timeout_ms[PHASE_READY] = head;
    s->timeout_ms[PHASE_SKIP] = head;
    s->timeout_ms[PHASE_IDLE] = server_or_default(o->idle_timeout_ms, 75000);
    s->timeout_ms[PHASE_LINGER] = 5000;
    least = size_min(size_min(head, s->timeout_ms[PHASE_IDLE]), s->window_ms);
    s->tick_ms = size_min(size_max(least / 8, MIN_TICK_MS), MAX_TICK_MS);
}

static struct http_server *server_new(const struct http_server_options *o)
{
    struct http_server *s = xzalloc(sizeof(*s));
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *header = o->server_header ? o->server_header : "weir";
    size_t len = strlen(header) + sizeof("Server: \r\n");
    char *line = xzalloc(len);

    s->handler = o->handler;
    s->ctx = o->ctx;
    s->log = o->log;
    s->name = o->name ? o->name : "http";
    s->pool = o->pool;
    s->log_path = o->log_path;
    s->on_drop = o->on_drop;
    s->drop_ctx = o->drop_ctx;
    s->max_connections = server_or_default(o->max_connections, 20000);
    s->max_per_address = server_or_default(o->max_per_address, s->max_connections);
    s->proxies = o->proxies;
    s->max_body = o->max_body;
    s->body_min_rate = server_or_default(o->body_min_rate, 1024);
    s->worker_count = size_min(
        server_or_default(o->fast_workers, 2 * (size_t)(cores > 0 ? cores : 1)), MAX_WORKERS);
    snprintf(line, len, "Server: %s\r\n", header);
    s->server_line = str_n(line, len - 1);
    s->epoll = s->listener = s->wake = -1;
    s->workers = xcalloc(s->worker_count, sizeof(*s->workers));
    s->counters = aligned_alloc(64, (s->worker_count + 1) * sizeof(*s->counters));
    BUG_ON(!s->counters);
    memset(s->counters, 0, (s->worker_count + 1) * sizeof(*s->counters));
    s->is_tls = o->tls != NULL;
    s->tls = o->tls ? tls_context_ref(o->tls) : NULL;
    mutex_init(&s->lock, "http.server");
    cond_init(&s->changed);
    list_init(&s->spares);
    map_init(&s->addresses);
    for (size_t i = 0; i < STRIPES; i++) {
        mutex_init(&s->stripes[i].lock, "http.stripe");
        list_init(&s->stripes[i].conns);
    }
    set_timeouts(s, o);
    seats_init(s);
    tick(s);
    return s;
}

static int open_sockets(struct http_server *s, const struct sock_addr *listen, struct err *err)
{
    struct epoll_event listener = {.events = EPOLLIN | EPOLLET, .data.ptr = &s->listener};
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = &s->wake};
    int code = sock_listen(&s->listener, listen, BACKLOG, err);

    if (code == 0)
        code = sock_local(s->listener, &s->address, err);
    if (code < 0)
        return code;
    sock_nodelay(s->listener); /* accepted sockets inherit both options */
    sock_limit_unsent(s->listener, UNSENT_MAX);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->epoll < 0 || s->wake < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &wake) < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &listener) < 0)
        return err_errno(err, errno, "preparing to wait for connections");
    return 0;
}

static int server_start_threads(struct http_server *s, struct err *err)
{
    char name[16];
    int code = 0;

    snprintf(name, sizeof(name), "%.8s-sweep", s->name);
    code = loop_start(&s->sweeper,
                      &(struct loop_options){.name = name,
                                             .step = sweeper_step,
                                             .ctx = s,
                                             .first = loop_sleep_ms(s->tick_ms),
                                             .stack_size = WORKER_STACK},
                      err);
    for (size_t i = 0; code == 0 && i < s->worker_count; i++) {
        s->workers[i].server = s;
        snprintf(name, sizeof(name), "%.8s-%zu", s->name, i % 1000);
        code = thread_start(&s->workers[i].thread, name, WORKER_STACK, worker_main, &s->workers[i],
                            err);
    }
    return code;
}

int http_server_start(struct http_server **out, const struct http_server_options *o,
                      struct err *err)
{
    struct http_server *s = server_new(o);
    int code = open_sockets(s, &o->listen, err);

    if (code == 0)
        code = server_start_threads(s, err);
    if (code < 0)
        http_server_free(s);
    else
        *out = s;
    return code;
}

void http_server_address(struct http_server *s, struct sock_addr *out)
{
    *out = s->address;
}

void http_server_tls(struct http_server *s, struct tls_context *tls)
{
    struct tls_context *old;

    BUG_ON(!s->is_tls || !tls);
    tls_context_ref(tls);
    mutex_lock(&s->lock);
    old = s->tls;
    s->tls = tls;
    mutex_unlock(&s->lock);
    tls_context_unref(old);
}

static void hang_up(struct http_server *s, bool only_idle)
{
    for (size_t i = 0; i < STRIPES; i++) {
        mutex_lock(&s->stripes[i].lock);
        list_each (&s->stripes[i].conns, struct conn, node, c)
            conn_hang_up(c, only_idle);
        mutex_unlock(&s->stripes[i].lock);
    }
}

/* Waits until no connection is left. Returns false when some are left at the deadline. */
static bool wait_empty(struct http_server *s, uint64_t deadline_ns)
{
    bool empty;

    mutex_lock(&s->lock);
    while (atomic_load(&s->connections) &&
           (cond_wait_until(&s->changed, &s->lock, deadline_ns) || clock_mono_ns() < deadline_ns))
        ;
    empty = atomic_load(&s->connections) == 0;
    mutex_unlock(&s->lock);
    return empty;
}

bool http_server_stop(struct http_server *s, uint64_t deadline_ns)
{
    bool empty;

    atomic_store(&s->stopping, true);
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->listener, NULL);
    shutdown(s->listener, SHUT_RDWR);
    hang_up(s, true);
    empty = wait_empty(s, deadline_ns);
    atomic_store(&s->dropping, true);
    hang_up(s, false);
    if (!empty && s->on_drop)
        s->on_drop(s->drop_ctx);
    return empty || wait_empty(s, clock_mono_ns() + DROP_MS * NS_PER_MS);
}

/* Waits until all connections are closed, because their handlers use memory that the caller will
 * free. Then ends the threads. */
static void end_threads(struct http_server *s)
{
    uint64_t one = 1;

    mutex_lock(&s->lock);
    while (atomic_load(&s->connections))
        cond_wait(&s->changed, &s->lock);
    mutex_unlock(&s->lock);
    if (s->wake >= 0)
        (void)!write(s->wake, &one, sizeof(one));
    loop_stop(&s->sweeper);
    for (size_t i = 0; i < s->worker_count; i++)
        thread_join(&s->workers[i].thread);
}

void http_server_free(struct http_server *s)
{
    struct list *node;

    if (!s)
        return;
    if (s->listener >= 0 && !atomic_load(&s->dropping))
        http_server_stop(s, 0);
    end_threads(s);
    while ((node = list_shift(&s->spares)))
        request_free(list_entry(node, struct http_request, node));
    fd_close(&s->listener);
    fd_close(&s->wake);
    fd_close(&s->epoll);
    tls_context_unref(s->tls);
    addresses_release(s);
    for (size_t i = 0; i < STRIPES; i++)
        mutex_release(&s->stripes[i].lock);
    cond_release(&s->changed);
    mutex_release(&s->lock);
    free((char *)s->server_line.p);
    free(s->counters);
    free(s->workers);
    free(s);
}

void http_server_stats(struct http_server *s, struct http_server_stats *out)
{
    *out = (struct http_server_stats){.connections = atomic_load(&s->connections)};
    for (size_t i = 0; i <= s->worker_count; i++) {
        struct counters *c = &s->counters[i];
        out->accepted += c->accepted;
        out->refused += c->refused;
        out->requests += c->requests;
        out->bad_requests += c->bad_requests;
        out->timeouts += c->timeouts;
        out->bytes_in += c->bytes_in;
        out->bytes_out += c->bytes_out;
        for (size_t k = 0; k < ARRAY_SIZE(c->status); k++)
            out->status[k] += c->status[k];
    }
}
