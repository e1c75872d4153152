/* The tasks of switches. Each run of a task finds out the next step of its switch and does it. The
 * codes E5, R6 and S1 to S12 are those of docs/replication.md. */
#include "replica/switch/switch_int.h"
#include "object/overlay.h"
#include "base/clock.h"
#include "coord/gateways.h"
#include "replica/cron.h"
#include "replica/first.h"
#include "replica/tap/tap.h"

enum {
    POLL_S = 2,
    /* If the time of a switch has not come, its task runs again after at most this many seconds. */
    POLL_MAX_S = 30,
};

/* --- steps of both kinds of switches --- */

static struct str main_of(const struct switch_run *x)
{
    return x->o->main(x->o->ctx);
}

int switch_clock(struct switch_run *x, int64_t *out, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct reply *reply;
    int64_t seconds = 0, micros = 0;
    int code = store_call(x->o->config, &a, &reply, err, STR("TIME"));

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && (reply->count != 2 || str_i64(reply->items[0].str, &seconds) < 0 ||
                      str_i64(reply->items[1].str, &micros) < 0))
        code = err_set(err, ERR_TYPE, "the store's time cannot be read");
    if (code == 0)
        *out = seconds * MS_PER_S + micros / 1000;
    arena_release(&a);
    return code;
}

int switch_moved(int code)
{
    return code == ERR_CONFLICT || code == ERR_NOT_FOUND ? ERR_AGAIN : code;
}

static int switch_wait_for(struct err *err, const char *what)
{
    return err_set(err, ERR_AGAIN, "%s", what);
}

static uint64_t contact_of(const struct switch_run *x)
{
    return x->o->contact ? x->o->contact(x->o->ctx) : 1;
}

/* Returns 0 if every gateway has reached the epoch of the switch's last change. ERR_AGAIN: the step
 * must wait. */
static int switch_reached(struct switch_run *x, struct err *err)
{
    bool all = false;
    uint64_t contact = contact_of(x);
    int code = gateways_reached(x->o->config, x->s.epoch, &all, err);

    /* If the word of this process was too old meanwhile, other processes may not have waited for
     * it, so the answer does not count (E5; see lease_contact()). */
    if (code == 0 && (!contact || contact_of(x) != contact))
        return switch_wait_for(err, "this process was not heard of for a while");
    if (code == 0 && x->o->unsure && x->o->unsure(x->o->ctx))
        return switch_wait_for(err, "the store may have lost changes, and is being looked into");
    return code == 0 && !all ? switch_wait_for(err, "not every gateway knows of it yet") : code;
}

/* Whether keys of the bucket are moving between shards at this storage. */
static bool switch_moves_at(const struct switch_run *x, struct str storage, struct str bucket)
{
    const struct storage *s = x->o->moves ? x->o->find(x->o->ctx, storage) : NULL;

    return s && x->o->moves(x->o->ctx, s, bucket);
}

/* Begins the switch. If the bucket cannot be switched, ends the switch in error, with the
 * reason. */
static int switch_run_begin(struct switch_run *x, struct err *err)
{
    const struct replication_id *id = &x->s.id;
    struct err why = {0};

    if (switch_moves_at(x, id->from, id->bucket) ||
        switch_moves_at(x, id->to, id->to_bucket.len ? id->to_bucket : id->bucket))
        return switch_wait_for(err, "keys of the bucket are moving between its shards");
    int code = switch_begin(x->o->replications, &x->s, main_of(x), &why);

    if (code != ERR_CONFLICT)
        return code < 0 ? err_set(err, switch_moved(code), "%s", why.text) : 0;
    return switch_moved(switch_step(x->o->replications, &x->s, SWITCH_ERROR, str_z(why.text), err));
}

int switch_settled(struct switch_run *x, struct err *err)
{
    struct storage *from = x->o->find(x->o->ctx, x->s.id.from);
    bool open = false;

    if (!from)
        return switch_wait_for(err, "the old storage is not here");
    int code = switch_reached(x, err);
    if (code == 0 && x->o->settle)
        code = x->o->settle(x->o->ctx, from, err);
    if (code == 0 && !storage_can(from, STORAGE_TELLS_CHANGES))
        code = taps_intents_open(x->o->queue, x->s.id.from, x->s.id.bucket, 0, &open, err);
    return code == 0 && open ? switch_wait_for(err, "the outcome of a write is not known yet")
                             : code;
}

int switch_finish(struct switch_run *x, struct err *err)
{
    const struct replication_id *id = &x->s.id;
    struct replication_id gone = *id;

    if (!x->s.aborted_ms) {
        gone.from = id->to;
        gone.to = id->from;
    }
    struct task clean = first_task_clean(x->run->arena, &gone);
    if (arena_error(x->run->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return switch_moved(switch_done(x->o->replications, &x->s, &clean, err));
}

/* --- without downtime --- */

int switch_uploads(struct storage *s, struct arena *a, struct str user, struct str bucket,
                   struct upload_list *out, struct err *err)
{
    struct list_options first = {.limit = SWITCH_UPLOADS_MAX};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, user, bucket, err);

    *out = (struct upload_list){0};
    if (code == 0)
        code = b->ops->list_uploads(b, a, &first, out, err);
    if (b)
        b->ops->unref(b);
    return code == ERR_NO_BUCKET ? 0 : code;
}

int switch_uploads_left(struct switch_run *x, struct upload_list *out, struct err *err)
{
    struct storage *from = x->o->find(x->o->ctx, x->s.id.from);

    return from ? switch_uploads(from, x->run->arena, x->s.id.user, x->s.id.bucket, out, err)
                : switch_wait_for(err, "the old storage is not here");
}

int64_t switch_uploads_until(const struct bucket_switch *s)
{
    int64_t since = s->aborted_ms ? s->aborted_ms : s->started_ms;

    return switch_is_live(s) && s->status == SWITCH_IN_PROGRESS
               ? since + s->o.multipart_ttl_ns / NS_PER_MS
               : 0;
}

/* Returns 0 when the switch need not wait for uploads: no upload is open on the storage that the
 * switch leaves, or the time to wait has passed (S7, S8). ERR_AGAIN: it must wait. */
static int check_uploads(struct switch_run *x, struct err *err)
{
    int64_t until = switch_uploads_until(&x->s);
    struct upload_list open = {0};
    char time[CLOCK_ISO_LEN + 1];

    if (x->now_ms >= until)
        return 0;
    int code = switch_uploads_left(x, &open, err);
    if (code < 0 || !open.count)
        return code;
    clock_iso(until, time);
    return err_set(err, ERR_AGAIN,
                   "uploads open on storage " STR_FMT ": %zu%s, of key " STR_FMT
                   " first; they are waited for until %s",
                   STR_ARG(x->s.id.from), open.count, open.more ? " or more" : "",
                   STR_ARG(open.uploads[0].key), time);
}

/* Returns whether the switch must wait for a copy that was begun again after the switch was
 * planned, because the machine crashed meanwhile (R6), and that is not done. */
static bool is_copied_anew(const struct switch_run *x)
{
    return x->status.resynced_ms >= x->s.created_ms && !replication_init_done(&x->status);
}

/* Begins a switch without downtime when all earlier writes are recorded. Since the switch was
 * announced, gateways record a write before they answer it. But a gateway that was killed may have
 * answered an earlier write without recording it. Such a write has only an intent. Until the intent
 * comes due, reads by the version vectors would miss the write, so the switch waits for it (S4). A
 * gateway that did not know of the switch stopped writing at most GATEWAY_LIFE_S after the switch
 * was planned, so later intents do not count. */
static int begin_live(struct switch_run *x, struct err *err)
{
    struct storage *from = x->o->find(x->o->ctx, x->s.id.from);
    int64_t due_s = x->s.created_ms / MS_PER_S + 1 + GATEWAY_LIFE_S + INTENT_DELAY_S;
    bool open = false;

    if (!from)
        return switch_wait_for(err, "the old storage is not here");
    int code = switch_reached(x, err);
    if (code == 0 && !storage_can(from, STORAGE_TELLS_CHANGES))
        code = taps_intents_open(x->o->queue, x->s.id.from, x->s.id.bucket, due_s, &open, err);
    if (code < 0)
        return code;
    if (is_copied_anew(x))
        return switch_wait_for(err, "changes may have been lost, and the bucket is copied anew");
    return open ? switch_wait_for(err, "the outcome of a write is not known yet")
                : switch_run_begin(x, err);
}

/* Removes the bucket's block, once every gateway knows both sides of the switch (S11). */
static int step_unblock(struct switch_run *x, struct err *err)
{
    int code = switch_reached(x, err);

    return code == 0 ? switch_moved(switch_unblock(x->o->replications, &x->s, err)) : code;
}

static int step_live(struct switch_run *x, struct err *err)
{
    int code;

    if (x->s.status == SWITCH_NOT_STARTED)
        return begin_live(x, err);
    if (x->s.status != SWITCH_IN_PROGRESS)
        return ERR_END;
    if (x->s.blocked)
        return step_unblock(x, err);
    /* Uploads are checked first, because the end of an upload is a change that is recorded only
     * afterwards. */
    code = check_uploads(x, err);
    if (code == 0)
        code = switch_settled(x, err);
    return code == 0 ? switch_finish(x, err) : code;
}

/* --- with downtime --- */

/* Sets *out to the time at which the switch is to begin. A time in the past means now. */
static int switch_due(const struct switch_run *x, int64_t *out, struct err *err)
{
    const struct switch_options *o = &x->s.o;
    struct cron cron;

    *out = o->start_at_ms;
    if (!o->cron.len)
        return 0;
    int code = cron_parse(&cron, o->cron, err);
    if (code == 0)
        code = cron_next(&cron, x->s.started_ms ? x->s.started_ms + 1000 : x->s.created_ms, out);
    return code;
}

static int switch_skip(struct switch_run *x, struct str why, struct err *err)
{
    return switch_moved(switch_step(x->o->replications, &x->s, SWITCH_SKIPPED, why, err));
}

/* Checks, before the bucket is blocked, that a crash of the machine can lose none of its intents
 * (R6). If a crash has lost intents before, the bucket's copy must have begun again. ERR_AGAIN: the
 * switch must wait. */
static int check_marks(struct switch_run *x, struct err *err)
{
    struct storage *from = x->o->find(x->o->ctx, x->s.id.from);
    bool suspect = false;

    if (!from || storage_can(from, STORAGE_TELLS_CHANGES))
        return 0;
    int code = switch_reached(x, err);
    if (code == 0)
        code = taps_suspect(x->o->queue, x->s.id.from, x->s.id.bucket, &suspect, err);
    return code == 0 && suspect
               ? switch_wait_for(err, "the machine was down, and the bucket is to be copied anew")
               : code;
}

/* Begins a switch with downtime whose time has come. */
static int begin_down(struct switch_run *x, struct err *err)
{
    int64_t lag = x->status.events - x->status.events_done, most = x->s.o.max_event_lag;
    bool ready = replication_init_done(&x->status);
    bool at_once = !x->s.o.cron.len && !x->s.o.start_at_ms;
    int code = check_marks(x, err);

    if (code < 0)
        return code;
    if (!ready && x->s.o.on_init_done)
        return switch_wait_for(err, "the initial copy is not done");
    if (at_once && is_copied_anew(x))
        return switch_wait_for(err, "changes may have been lost, and the bucket is copied anew");
    if (!ready)
        return switch_skip(x, STR("the initial copy is not done"), err);
    if (most && lag > most)
        return switch_skip(x,
                           arena_fmt(x->run->arena,
                                     "%lld changes are not copied yet, which is more than %lld",
                                     (long long)lag, (long long)most),
                           err);
    return switch_run_begin(x, err);
}

static int step_waiting(struct switch_run *x, struct err *err)
{
    int64_t at = 0;

    if (x->s.status != SWITCH_NOT_STARTED && !x->s.o.cron.len)
        return ERR_END;
    int code = switch_due(x, &at, err);
    if (code < 0) /* unlikely, because the API has checked the cron line */
        return switch_moved(switch_step(x->o->replications, &x->s, SWITCH_ERROR,
                                        STR("the cron line names a time that never comes"), err));
    if (at > x->now_ms) {
        int64_t seconds = (at - x->now_ms + MS_PER_S - 1) / MS_PER_S;
        x->run->put_back_s = seconds < POLL_MAX_S ? seconds : POLL_MAX_S;
        return switch_wait_for(err, "the time to begin has not come");
    }
    return begin_down(x, err);
}

static int step_blocked(struct switch_run *x, struct err *err)
{
    if (switch_is_late(x, x->now_ms))
        return switch_run_give_up(x, err);
    int code = switch_settled(x, err);
    return code == 0 ? switch_moved(switch_step(x->o->replications, &x->s, SWITCH_CHECK,
                                                STR("everything has been copied"), err))
                     : code;
}

static int step_down(struct switch_run *x, struct err *err)
{
    switch (x->s.status) {
    case SWITCH_IN_PROGRESS:
        return step_blocked(x, err);
    case SWITCH_CHECK:
        return switch_check(x, err);
    case SWITCH_DONE:
        return ERR_END;
    default:
        return step_waiting(x, err);
    }
}

/* --- a run of a task --- */

static int switch_task_look(struct switch_run *x, const struct replication_id *id, bool live,
                            struct err *err)
{
    struct replications *r = x->o->replications;
    int code = switch_read(r, x->run->arena, id->user, id->bucket, &x->s, err);

    if (code == 0 && switch_is_live(&x->s) != live)
        code = ERR_NOT_FOUND; /* the switch is of the other kind, and has another task */
    if (code == 0)
        code = replication_read(r, x->run->arena, &x->s.id, &x->status, err);
    if (code == ERR_NOT_FOUND)
        return ERR_END;
    if (code == 0 && x->status.paused && !switch_is_open(&x->s))
        return switch_wait_for(err, "the replication is paused");
    return code == 0 ? switch_clock(x, &x->now_ms, err) : code;
}

static int run_steps(struct switch_run *x, const struct replication_id *id, bool live,
                     struct err *err)
{
    int code = 0;

    while (code == 0) {
        if (task_ended(x->run) || !lock_held(x->lock))
            return err_set(err, ERR_AGAIN, "the task has ended");
        code = switch_task_look(x, id, live, err);
        if (code == 0)
            code = live ? step_live(x, err) : step_down(x, err);
    }
    return code;
}

static int switch_lock(struct switch_run *x, const struct replication_id *id, struct err *err)
{
    struct buf key = {0};

    buf_append_z(&key, "lks:");
    const struct str parts[] = {id->user, id->bucket, id->from, id->to};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (i)
            buf_append_char(&key, ':');
        store_key_part(&key, parts[i]);
    }
    int code = lock_take(&x->lock, x->o->locks, buf_str(&key), err);
    buf_release(&key);
    return code;
}

/* Runs the task of a switch. Every failure is tried again, so no switch stays half done. */
static int switch_handle(struct task_run *run, bool live, struct err *err)
{
    struct switch_run x = {.o = run->ctx, .run = run};
    struct task_payload p;
    int code = task_payload_read(&p, run->arena, run->task->payload, PAYLOAD_BUCKET, err);

    if (code < 0)
        return code;
    code = switch_lock(&x, &p.id, err);
    if (code == 0)
        code = run_steps(&x, &p.id, live, err);
    lock_release(x.lock);
    if (code == ERR_END)
        return 0;
    if (err_kind(code) == ERR_KIND_FAILURE && code != ERR_BUSY)
        log_warn(&run->log, "switch.delayed", log_s("bucket", p.id.bucket),
                 log_z("error", err->text));
    if (!run->put_back_s)
        run->put_back_s = x.o->poll_s ? x.o->poll_s : POLL_S;
    return ERR_AGAIN;
}

int switch_live_handle(struct task_run *run, struct err *err)
{
    return switch_handle(run, true, err);
}

int switch_down_handle(struct task_run *run, struct err *err)
{
    return switch_handle(run, false, err);
}

struct task switch_task(struct arena *a, const struct replication_id *id, bool live)
{
    const struct str parts[] = {id->user, id->bucket, id->from, id->to};
    const struct task_payload p = {.id = *id};
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX), name = {0};

    task_payload_write(&payload, &p, PAYLOAD_BUCKET);
    buf_append_z(&name, live ? "api:zdrs" : "api:sd");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        buf_append_char(&name, ':');
        store_key_part(&name, parts[i]);
    }
    struct task t = {.type = live ? STR(SWITCH_LIVE_TYPE) : STR(SWITCH_DOWN_TYPE),
                     .payload = arena_str(a, buf_str(&payload)),
                     .id = arena_str(a, buf_str(&name)),
                     .queue = STR("api")};
    buf_release(&payload);
    buf_release(&name);
    return t;
}
