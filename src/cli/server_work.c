/* The parts of the server that do background work: the queue, locks, the worker. */
#include "cli/server_int.h"

enum {
    GRACE_MS = 1000, /* what is not done by then runs again after the next start */
};

int server_start_queue(struct server *s, struct err *err)
{
    s->queue = queue_new(s->stores[QUEUE_DB]);
    int code = locks_open(
        &s->locks, &(struct locks_options){.store = s->stores[LOCK_DB], .log = &s->log}, err);
    if (code < 0)
        queue_free(s->queue);
    return code < 0 ? err_wrap(err, code, "locks") : 0;
}

void server_stop_queue(struct server *s)
{
    locks_close(s->locks);
    queue_free(s->queue);
}

/* Of tasks that wait for a remote storage. */
static void end_waits(void *ctx)
{
    routes_abort(ctx);
}

int server_start_worker(struct server *s, struct err *err)
{
    static const struct task_handler handlers[1] = {0}; /* every task that this weir can run */
    struct worker_options options = {
        .queue = s->queue,
        .handlers = handlers,
        .handler_count = 0,
        .threads = s->conf->worker.threads,
        .grace_ms = GRACE_MS,
        .on_end = end_waits,
        .end_ctx = s->routes,
        .log = &s->log,
    };

    if (!(s->roles & ROLE_WORKER))
        return 0;
    int code = worker_start(&s->worker, &options, err);
    return code < 0 ? err_wrap(err, code, "worker") : 0;
}

void server_stop_worker(struct server *s)
{
    worker_stop(s->worker);
}
