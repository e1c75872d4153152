/* Starts background work: notifications, lifecycle rules, access logs, and the worker that runs the
 * rooms' tasks. */
#include "server/server_int.h"

/* How long a stop waits for running tasks. A task that has not ended then runs again after the next
 * start. */
enum { GRACE_MS = 1000 };

/* --- notifications --- */

/* Starts notifications. They run in every process, because the API of any process may get requests
 * that change webhooks. Events come only from the gateway. */
int server_start_notify(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    struct notify_options options = {
        .db = s->db,
        .config = s->services.stores[CONFIG_DB],
        .region = str_z(s->start->s3.region),
        .max_age_ms = s->start->s3.notifications.max_age_ms,
        .max_pending = s->start->s3.notifications.max_pending,
        .log = &s->log,
    };
    int code;

    services_path(&s->services, "secrets.key", &path);
    options.key_file = path.p;
    code = notify_open(&s->services.notify, &options, err);
    buf_release(&path);
    return code < 0 ? err_wrap(err, code, "notifications") : 0;
}

void server_stop_notify(struct server *s)
{
    notify_close(s->services.notify);
}

/* --- the lifecycle worker --- */

int server_start_lifecycle(struct server *s, struct err *err)
{
    struct lifecycle_worker_options options = {
        .routes = s->services.routes,
        .notify = s->services.notify,
        .day_ms = (int64_t)s->conf->s3.lifecycle.day_ms,
        .interval_ms = (int64_t)s->conf->s3.lifecycle.interval_ms,
        .rests = s->services.hooks.rests,
        .ctx = s->services.hooks.rests_ctx,
        .log = &s->log,
    };

    if (!services_has_role(&s->services, "worker"))
        return 0;
    return lifecycle_worker_start(&s->lifecycle, &options, err);
}

void server_stop_lifecycle(struct server *s)
{
    lifecycle_worker_stop(s->lifecycle);
}

/* --- the access log --- */

/* Starts the access log. It runs in every process: without the gateway, a process delivers lines
 * that an earlier process has recorded. */
int server_start_access_log(struct server *s, struct err *err)
{
    struct access_log_options options = {
        .db = s->db,
        .routes = s->services.routes,
        .notify = s->services.notify,
        .region = str_z(s->start->s3.region),
        .interval_ms = s->conf->s3.logging.interval_ms,
        .log = &s->log,
    };
    int code = access_log_open(&s->services.access_log, &options, err);

    return code < 0 ? err_wrap(err, code, "access log") : 0;
}

void server_stop_access_log(struct server *s)
{
    access_log_close(s->services.access_log);
}

/* --- the worker --- */

/* Makes tasks stop waiting for remote storages. */
static void abort_task_waits(void *ctx)
{
    routes_abort(ctx);
}

int server_start_worker(struct server *s, struct err *err)
{
    room_tasks handlers = {0};

    if (!services_has_role(&s->services, "worker"))
        return 0;
    vec_each (&s->rooms, const struct room_instance *, r)
        if (r->room->tasks)
            r->room->tasks(r->state, &handlers);
    struct worker_options options = {
        .queue = s->services.queue,
        .queues = s->queues.items,
        .queue_count = s->queues.len,
        .handlers = handlers.items,
        .handler_count = handlers.len,
        .threads = s->conf->worker.threads,
        .grace_ms = GRACE_MS,
        .on_end = abort_task_waits,
        .end_ctx = s->services.routes,
        .log = &s->log,
    };
    int code = worker_start(&s->worker, &options, err);

    vec_release(&handlers);
    return code < 0 ? err_wrap(err, code, "worker") : 0;
}

void server_stop_worker(struct server *s)
{
    worker_stop(s->worker);
}
