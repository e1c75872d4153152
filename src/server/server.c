/* Starts, stops and reloads the server's parts, in the order of a table. */
#include "server/server_int.h"
#include "base/clock.h"
#include "os/tls.h"

#include <unistd.h>

/* Least time that the part of a room has for its stop. */
enum { PART_END_MS = 1000 };

struct server_part {
    server_start_fn *start;
    server_stop_fn *stop;
    bool is_stage; /* this row represents all parts that the rooms have in `stage` */
    enum room_stage stage;
};

#define ROOMS(at) .is_stage = true, .stage = (at)

/* The parts in the order of their start. Credentials are made early, because the API needs them,
 * and stored last. So a start that fails, for example because a port is in use, does not leave keys
 * on the disk that were never shown. */
static const struct server_part parts[] = {
    {server_try_ports_first, NULL},
    {server_start_folder, server_stop_folder},
    {server_try_ports, NULL},
    {server_start_credentials, server_stop_credentials},
    {server_start_db, server_stop_db},
    {server_start_stores, server_stop_stores},
    {server_start_installation, server_stop_installation},
    {server_start_kv, server_stop_kv},
    {server_start_queue, server_stop_queue},
    {server_start_users, server_stop_users},
    {server_start_routes, server_stop_routes},
    {server_start_remotes, server_stop_remotes},
    {server_make_lease, server_free_lease},
    {ROOMS(ROOM_STORAGES)},
    {server_start_lease, server_stop_lease},
    {server_start_notify, server_stop_notify},
    {server_start_lifecycle, server_stop_lifecycle},
    {server_start_access_log, server_stop_access_log},
    {ROOMS(ROOM_WORK)},
    {server_start_worker, server_stop_worker},
    {server_start_pool, server_stop_pool},
    {ROOMS(ROOM_LISTEN)},
    {server_start_s3, server_stop_s3},
    {server_start_api, server_stop_api},
    {server_keep_credentials, NULL},
};

/* --- start and stop --- */

static void enter_rooms(struct server *s, const struct server_options *o)
{
    for (size_t i = 0; i < o->room_count; i++) {
        const struct room *room = o->rooms[i];
        void *state = xcalloc(1, room->state_size);
        vec_push(&s->rooms, ((struct room_instance){room, state}));
        for (size_t k = 0; k < room->queue_count; k++)
            vec_push(&s->queues, room->queues[k]);
    }
}

static void leave_rooms(struct server *s)
{
    vec_each (&s->rooms, struct room_instance *, r)
        free(r->state);
    vec_release(&s->rooms);
    vec_release(&s->queues);
    vec_release(&s->steps);
}

static void add_stage(struct server *s, enum room_stage stage)
{
    vec_each (&s->rooms, const struct room_instance *, r)
        for (size_t i = 0; i < r->room->part_count; i++)
            if (r->room->parts[i].stage == stage)
                vec_push(&s->steps, ((struct server_step){NULL, &r->room->parts[i], r->state}));
}

static void list_steps(struct server *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (parts[i].is_stage)
            add_stage(s, parts[i].stage);
        else
            vec_push(&s->steps, ((struct server_step){.own = &parts[i]}));
}

static int start_step(struct server *s, const struct server_step *step, struct err *err)
{
    return step->own ? step->own->start(s, err)
                     : step->foreign->start(step->state, &s->services, err);
}

/* Stops the part of a room. The part gets at least PART_END_MS, even if earlier parts have used up
 * the time of the stop: its threads need a moment to end. */
static void stop_foreign(struct server *s, const struct server_step *step)
{
    uint64_t deadline_ns = s->services.deadline_ns;
    uint64_t soon_ns = clock_mono_ns() + PART_END_MS * NS_PER_MS;

    if (soon_ns > deadline_ns)
        s->services.deadline_ns = soon_ns;
    if (!step->foreign->stop(step->state, &s->services))
        server_stop_by_force(s);
    s->services.deadline_ns = deadline_ns;
}

static void stop_step(struct server *s, const struct server_step *step)
{
    if (step->own && step->own->stop)
        step->own->stop(s);
    if (step->foreign && step->foreign->stop)
        stop_foreign(s, step);
}

int server_start(struct server *s, const struct server_options *o, struct err *err)
{
    struct conf *conf = o->conf;
    int code = 0;

    *s = (struct server){.conf = conf, .start = conf_ref(conf), .lock_fd = -1};
    s->sink = log_sink_new(STDERR_FILENO, (enum log_level)conf->log.level,
                           (enum log_format)conf->log.format);
    s->log.sink = s->sink;
    ready_init(&s->ready);
    s->services =
        (struct services){.conf = s->start, .only = o->only, .log = &s->log, .ready = &s->ready};
    enter_rooms(s, o);
    list_steps(s);
    while (s->started < s->steps.len && code == 0) {
        code = start_step(s, &s->steps.items[s->started], err);
        if (code == 0)
            s->started++;
    }
    if (code < 0)
        server_stop(s);
    return code;
}

void server_stop(struct server *s)
{
    s->services.deadline_ns = clock_mono_ns() + s->conf->shutdown_timeout_ms * NS_PER_MS;
    while (s->started > 0)
        stop_step(s, &s->steps.items[--s->started]);
    leave_rooms(s);
    ready_release(&s->ready);
    log_sink_free(s->sink);
    conf_unref(s->conf);
    conf_unref(s->start);
}

void server_stop_by_force(struct server *s)
{
    log_warn(&s->log, "server.stop_forced", log_u("busy", pool_stats(s->services.pool).busy));
    _exit(1);
}

/* --- reload --- */

static int check_rooms(struct server *s, const struct conf *next, struct err *err)
{
    int code = 0;

    vec_each (&s->rooms, const struct room_instance *, r)
        if (code == 0 && r->room->check)
            code = r->room->check(r->state, next, err);
    return code;
}

static void take_over(struct server *s, struct conf *next, struct tls_context *api,
                      struct tls_context *s3)
{
    vec_each (&s->rooms, const struct room_instance *, r)
        if (r->room->reload)
            r->room->reload(r->state, next);
    log_sink_set(s->sink, (enum log_level)next->log.level, (enum log_format)next->log.format);
    if (api && s->api)
        api_tls(s->api, api);
    if (s3 && s->services.s3)
        http_server_tls(s->services.s3, s3);
    conf_unref(s->conf);
    s->conf = next;
}

int server_reload(struct server *s, struct conf *next, struct err *err)
{
    struct buf kept = {0};
    struct tls_context *api = NULL, *s3 = NULL;
    int code = server_reload_tls(&api, "the API", &s->start->api.tls, &next->api.tls, err);

    if (code == 0)
        code = server_reload_tls(&s3, "S3", &s->start->s3.tls, &next->s3.tls, err);
    if (code == 0) {
        conf_keep_fixed(next, s->conf, &kept);
        code = check_rooms(s, next, err);
    }
    if (code < 0) {
        conf_unref(next);
        goto out;
    }
    take_over(s, next, api, s3);
    if (kept.len)
        log_warn(&s->log, "config.needs_restart", log_s("keys", buf_str(&kept)));
    log_info(&s->log, "config.reloaded");
out:
    tls_context_unref(api);
    tls_context_unref(s3);
    buf_release(&kept);
    return code;
}
