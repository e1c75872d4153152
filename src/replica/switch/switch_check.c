/* The check at the end of a switch with downtime, which compares all objects of both buckets
 * (docs/replication.md, S2 and S11). */
#include "base/clock.h"
#include "object/overlay.h"
#include "copy/compare.h"
#include "replica/switch/switch_int.h"

enum {
    NAMES_MAX = 10,         /* most differing objects that the history names */
    DIFFERENCES_MAX = 1000, /* counting stops at this number of differences */
    WATCH_MS = 1000,        /* ms between two looks at the clock */
    TEXT_MAX = 2048,
};

struct check {
    struct switch_run *x;
    uint64_t count;
    struct buf names;
    uint64_t looked_ms; /* when the clock was last read */
};

bool switch_is_late(const struct switch_run *x, int64_t now_ms)
{
    int64_t most_ms = x->s.o.max_duration_ns / NS_PER_MS;

    return x->s.o.max_duration_ns && now_ms - x->s.started_ms > most_ms;
}

int switch_run_give_up(struct switch_run *x, struct err *err)
{
    int64_t lag = x->status.events - x->status.events_done;
    struct str why =
        arena_fmt(x->run->arena, "the maximal duration is over; %lld changes are not copied yet",
                  (long long)lag);

    return switch_moved(switch_step(x->o->replications, &x->s, SWITCH_ERROR, why, err));
}

/* --- callbacks of the comparison --- */

static int check_tell(void *ctx, const struct difference *d, struct err *err)
{
    struct check *c = ctx;

    if (c->count++ < NAMES_MAX)
        buf_appendf(&c->names, "%s" STR_FMT " (%s)", c->count > 1 ? ", " : "", STR_ARG(d->key),
                    difference_name(d->kind));
    return c->count < DIFFERENCES_MAX ? 0 : err_code(err, ERR_END);
}

static int check_watch(void *ctx, size_t side, uint64_t bytes, struct err *err)
{
    struct check *c = ctx;
    int64_t now = 0;

    (void)side, (void)bytes;
    if (task_ended(c->x->run) || !lock_held(c->x->lock))
        return err_set(err, ERR_AGAIN, "the task has ended");
    if (!c->x->s.o.max_duration_ns || clock_mono_ms() - c->looked_ms < WATCH_MS)
        return 0;
    c->looked_ms = clock_mono_ms();
    int code = switch_clock(c->x, &now, err);
    return code == 0 && switch_is_late(c->x, now) ? err_code(err, ERR_CANCELED) : code;
}

/* --- both buckets --- */

static int check_open_side(struct switch_run *x, struct str storage, struct bucket **out,
                           bool *versions, struct err *err)
{
    struct storage *s = x->o->find(x->o->ctx, storage);
    struct bucket_info info = {0};

    if (!s)
        return err_set(err, ERR_AGAIN, "the storage " STR_FMT " is not here", STR_ARG(storage));
    int code = storage_open_bucket(out, s, x->s.id.user, x->s.id.bucket, err);
    if (code == 0)
        code = (*out)->ops->info(*out, x->run->arena, &info, err);
    *versions = info.versions == VERSIONS_ON;
    return code;
}

static int check_compare(struct check *c, struct err *err)
{
    struct switch_run *x = c->x;
    struct bucket *sides[2] = {NULL, NULL};
    struct compare_result result = {0};
    bool versions[2] = {false, false};
    int code = check_open_side(x, x->s.id.from, &sides[0], &versions[0], err);

    if (code == 0)
        code = check_open_side(x, x->s.id.to, &sides[1], &versions[1], err);
    if (code == 0)
        code = compare_buckets(&result,
                               &(struct compare_options){.buckets = sides,
                                                         .count = 2,
                                                         .versions = versions[0] && versions[1],
                                                         .keys = x->o->keys,
                                                         .tell = check_tell,
                                                         .watch = check_watch,
                                                         .ctx = c},
                               err);
    for (size_t i = 0; i < ARRAY_SIZE(sides); i++)
        if (sides[i])
            sides[i]->ops->unref(sides[i]);
    return code == ERR_END && c->count ? 0 : code;
}

static int check_end_in_error(struct check *c, struct err *err)
{
    struct str why =
        arena_fmt(c->x->run->arena, "the buckets differ in %llu%s: " STR_FMT "%s",
                  (unsigned long long)c->count, c->count < DIFFERENCES_MAX ? "" : " or more",
                  STR_ARG(buf_str(&c->names)), c->count > NAMES_MAX ? ", …" : "");

    return switch_moved(switch_step(c->x->o->replications, &c->x->s, SWITCH_ERROR, why, err));
}

/* Ends the switch, unless clients have uploads open on the old storage for which the switch should
 * wait. Then the switch goes on without downtime (S11). */
static int check_leave(struct switch_run *x, struct err *err)
{
    struct task task = switch_task(x->run->arena, &x->s.id, true);
    struct upload_list open = {0};
    int code = x->s.o.uploads_ttl_ns ? switch_uploads_left(x, &open, err) : 0;

    if (code < 0 || !open.count)
        return code < 0 ? code : switch_finish(x, err);
    struct str text = arena_fmt(
        x->run->arena, "the route leads to " STR_FMT "; uploads open on " STR_FMT ": %zu%s",
        STR_ARG(x->s.id.to), STR_ARG(x->s.id.from), open.count,
        open.count < SWITCH_UPLOADS_MAX ? "" : " or more");
    if (arena_error(x->run->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return switch_moved(switch_follow(x->o->replications, &x->s, &task, text, err));
}

int switch_check(struct switch_run *x, struct err *err)
{
    struct check c = {.x = x, .names = BUF_INIT(TEXT_MAX)};
    int code = 0;

    if (switch_is_late(x, x->now_ms))
        return switch_run_give_up(x, err);
    if (!x->s.o.skip_check)
        code = check_compare(&c, err);
    if (code == ERR_CANCELED)
        code = switch_run_give_up(x, err);
    else if (code == ERR_NO_BUCKET)
        code = switch_moved(switch_step(x->o->replications, &x->s, SWITCH_ERROR,
                                        STR("one of the buckets is not there"), err));
    else if (code == 0)
        code = c.count ? check_end_in_error(&c, err) : check_leave(x, err);
    buf_release(&c.names);
    return code;
}
