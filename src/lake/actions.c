/* Hooks of repositories: runs before and after events (docs/lake-keeping.md, H1 to H9). */
#include "lake/actions_int.h"
#include "lake/commit_queue.h"
#include "lake/tasks.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUN_FORGET_EVERY = 100 }; /* one run in this many, chosen by chance, removes old records */

/* A run under way: all hooks of one event. The hooks of one file run in their order; files run at
 * the same time (H6). */
struct action_run {
    struct action_call *call;
    struct lake_run record;
    struct err first; /* the error of the first file that failed, in the order of files */
    struct action *actions;
    struct action_outcome *outcomes; /* one for each action */
    size_t count;
    _Atomic(size_t) next; /* index of the file that the next free thread runs */
};

/* How the hooks of one file ended. */
struct action_outcome {
    int code;           /* result of writing the records */
    struct err err;     /* the error that belongs to `code` */
    struct err failure; /* the error of the first hook that failed */
};

/* --- seats (H9) --- */

/* A seat: the right of one run to wait for the answers of its webhooks. The number of seats is
 * limited. */
struct action_seat {
    struct list node;
    struct str owner;
};

static void seats_init(struct action_seats *s, size_t max)
{
    mutex_init(&s->lock, "lake.hooks");
    list_init(&s->taken);
    s->max = max;
}

static int seat_take(struct action_seats *s, struct action_seat *seat, struct str owner,
                     struct err *err)
{
    size_t all = 0, own = 0, share = s->max < 4 ? 1 : s->max / 4;

    seat->owner = owner;
    mutex_lock(&s->lock);
    list_each (&s->taken, struct action_seat, node, other) {
        all++;
        own += str_eq(other->owner, owner);
    }
    bool is_free = s->max == 0 || (all < s->max && own < share);
    if (is_free)
        list_push(&s->taken, &seat->node);
    mutex_unlock(&s->lock);
    return is_free ? 0 : err_set(err, ERR_BUSY, "too many hooks are under way; try again later");
}

static void seat_leave(struct action_seats *s, struct action_seat *seat)
{
    mutex_lock(&s->lock);
    list_remove(&seat->node);
    mutex_unlock(&s->lock);
}

/* --- one file --- */

static bool run_wants(const struct action_hook *h, bool has_failed)
{
    return h->when == ACTION_ALWAYS || (h->when == ACTION_ON_SUCCESS && !has_failed) ||
           (h->when == ACTION_ON_FAILURE && has_failed);
}

static int run_hook(struct action_run *run, struct action_call *c, size_t file, size_t index,
                    struct action_outcome *out)
{
    const struct action *act = &run->actions[file];
    const struct action_hook *h = &act->hooks[index];
    struct lake_hook_run record = {.run = run->record.id,
                                   .id = arena_fmt(c->arena, "%04zu_%04zu", file, index),
                                   .hook = h->id,
                                   .action = act->name,
                                   .started_ms = clock_wall_ms()};
    struct err failure = {0};

    record.skipped = !run_wants(h, out->failure.code < 0);
    int code = record.skipped ? 0 : action_send(c, act, h, &record, &failure);
    record.ended_ms = clock_wall_ms();
    record.passed = code == 0 && !record.skipped;
    if (code < 0 && out->failure.code == 0)
        err_set(&out->failure, ERR_PRECONDITION,
                "hook run id '" STR_FMT "' failed on action '" STR_FMT "' hook '" STR_FMT "': %s",
                STR_ARG(record.id), STR_ARG(act->name), STR_ARG(h->id), failure.text);
    return action_put_hook_run(c, &record, &out->err);
}

static void run_file(struct action_run *run, size_t file)
{
    struct action_outcome *out = &run->outcomes[file];
    struct action_call c = *run->call;
    struct arena a = {0};

    c.arena = &a; /* files run on several threads, and an arena belongs to one thread */
    for (size_t i = 0; i < run->actions[file].hook_count && out->code == 0; i++)
        out->code = run_hook(run, &c, file, i, out);
    arena_release(&a);
}

/* --- all files --- */

/* Runs the hooks of one file after another, until no file is left. Several threads run this
 * function for one event. */
static void run_thread(void *ctx)
{
    struct action_run *run = ctx;
    size_t file;

    while ((file = atomic_fetch_add(&run->next, 1)) < run->count)
        run_file(run, file);
}

/* Runs the hooks of all files on several threads, of which the caller is one. If a thread cannot be
 * started, the other threads do its work. */
static void run_files(struct action_run *run)
{
    struct thread threads[ACTION_FILES_AT_ONCE - 1] = {0};
    struct err ignored = {0};

    for (size_t i = 0; i < ARRAY_SIZE(threads) && i + 1 < run->count; i++)
        if (thread_start(&threads[i], "lake-hooks", 0, run_thread, run, &ignored) < 0)
            break;
    run_thread(run);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        thread_join(&threads[i]);
}

/* Gathers the outcomes in the order of the files. */
static int run_gather(struct action_run *run, struct err *err)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct action_outcome *out = &run->outcomes[i];
        if (out->code < 0) {
            *err = out->err;
            return out->code;
        }
        if (out->failure.code < 0 && run->record.passed) {
            run->record.passed = false;
            run->first = out->failure;
        }
    }
    return 0;
}

/* Runs the hooks of all action files of the event. An action file that cannot be read fails the run
 * (H2), since a mistake in a file must not switch its hooks off. */
static int run_actions(struct action_run *run, struct err *err)
{
    struct action_call *c = run->call;
    struct action_seats *seats = c->is_pre ? &c->actions->before : &c->actions->behind;
    struct action_seat seat;
    int code = action_find(c, &run->actions, &run->count, &run->first);

    if (code == ERR_INVALID || code == ERR_NOT_FOUND) {
        run->record.passed = false;
        return 0;
    }
    if (code < 0) {
        *err = run->first;
        return code;
    }
    if (run->count == 0)
        return ERR_END;
    run->outcomes = arena_array(c->arena, run->count, sizeof(*run->outcomes));
    if (!run->outcomes)
        return err_code(err, ERR_NO_MEMORY);
    code = seat_take(seats, &seat, c->repo->owner, err);
    if (code < 0)
        return code;
    if (c->turn)
        commit_turn_set_slow(c->lake->queue, c->turn, true);
    run_files(run);
    if (c->turn)
        commit_turn_set_slow(c->lake->queue, c->turn, false);
    seat_leave(seats, &seat);
    return run_gather(run, err);
}

/* Runs the hooks of the event and records the run (H5). ERR_END: the event has no hooks.
 * ERR_PRECONDITION: a hook failed. */
static int run_event(struct action_call *c, struct err *err)
{
    char id[32 + 1];
    struct action_run run = {.call = c};

    action_run_id(id);
    run.record = (struct lake_run){.id = arena_str(c->arena, str_z(id)),
                                   .event = action_event_name(c->arena, c->event, c->is_pre),
                                   .branch = action_event_is_tag(c->event) ? STR_EMPTY : c->ref,
                                   .commit_id = c->commit_id,
                                   .started_ms = clock_wall_ms(),
                                   .passed = true};
    int code = run_actions(&run, err);
    if (code < 0)
        return code;
    run.record.ended_ms = clock_wall_ms();
    code = action_put_run(c, &run.record, err);
    if (code == 0 && random_below(RUN_FORGET_EVERY) == 0)
        code = action_forget_runs(c, err);
    if (code < 0 || run.record.passed)
        return code;
    return err_set(err, ERR_PRECONDITION, STR_FMT " hook aborted, run id '%s': %s",
                   STR_ARG(run.record.event), id, run.first.text);
}

/* --- before events --- */

static struct action_call action_call_of(struct lake_actions *x, struct lake *l, struct arena *a,
                                         const struct lake_hook_call *c)
{
    return (struct action_call){.actions = x,
                                .lake = l,
                                .arena = a,
                                .repo = c->repo,
                                .event = c->event,
                                .ref = c->ref,
                                .source = c->source,
                                .commit = c->commit,
                                .turn = c->turn,
                                .commit_id = c->commit ? c->commit->id : c->commit_id};
}

static int actions_pre(void *ctx, struct lake *l, struct arena *a, const struct lake_hook_call *c,
                       struct err *err)
{
    struct action_call call = action_call_of(ctx, l, a, c);

    call.is_pre = true;
    int code = run_event(&call, err);
    return code == ERR_END ? 0 : code;
}

/* --- after events (H4) --- */

static void post_write(struct buf *out, const struct action_call *c)
{
    struct json_out w;

    json_out_init(&w, out);
    json_out_open(&w, '{');
    json_out_member_str(&w, "repository", c->repo->id);
    json_out_member_str(&w, "partition", c->repo->partition);
    json_out_member_i64(&w, "event", c->event);
    json_out_member_str(&w, "ref", c->ref);
    json_out_member_str(&w, "source", c->source);
    json_out_member_str(&w, "commit", c->commit_id);
    json_out_member_bool(&w, "makes_commit", c->commit != NULL);
    json_out_close(&w, '}');
}

static int post_add(struct action_call *c, struct err *err)
{
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX);
    bool any = false;
    int code = c->actions->o.queue ? action_any(c, &any, err) : 0;

    if (code == 0 && any) {
        post_write(&payload, c);
        code = buf_error(&payload);
    }
    if (code == 0 && any)
        code = lake_task_add_hooks(c->actions->o.queue, buf_str(&payload), err);
    buf_release(&payload);
    return code;
}

/* The change is published already. If the task cannot be added, the hooks are not called (H4). */
static void actions_post(void *ctx, struct lake *l, const struct lake_hook_call *c)
{
    struct lake_actions *x = ctx;
    struct arena a = {0};
    struct action_call call = action_call_of(x, l, &a, c);
    struct err err = {0};

    if (post_add(&call, &err) < 0)
        log_warn(x->o.log, "lake.hooks_lost", log_s("repository", c->repo->id),
                 log_s("ref", c->ref), log_z("error", err.text));
    arena_release(&a);
}

/* Fills the call from the payload. ERR_NOT_FOUND: the repository or the commit no longer exists. */
static int post_read(struct action_call *c, const json_t *root, struct lake_repo *repo,
                     struct lake_commit *commit, struct err *err)
{
    int64_t event = json_get_i64(root, "event", -1);
    int code = event < 0 || event > LAKE_ON_DELETE_TAG
                   ? err_set(err, ERR_INVALID, "the payload names no event")
                   : lake_repo_get(c->lake, c->arena, json_get_str(root, "repository", STR_EMPTY),
                                   repo, err);

    if (code == 0 && !str_eq(repo->partition, json_get_str(root, "partition", STR_EMPTY)))
        code = ERR_NOT_FOUND;
    if (code < 0)
        return code;
    c->repo = repo;
    c->event = (enum lake_event)event;
    c->ref = json_get_str(root, "ref", STR_EMPTY);
    c->source = json_get_str(root, "source", STR_EMPTY);
    c->commit_id = json_get_str(root, "commit", STR_EMPTY);
    if (!json_get_bool(root, "makes_commit", false))
        return 0;
    c->commit = commit;
    return lake_commit_get(c->lake, c->arena, repo, c->commit_id, commit, err);
}

int lake_actions_work(struct lake_actions *x, struct lake *l, struct str payload, struct err *err)
{
    struct arena a = {0};
    struct action_call c = {.actions = x, .lake = l, .arena = &a};
    struct lake_repo repo;
    struct lake_commit commit;
    json_t *root = NULL;
    int code = json_read(&root, payload, err);

    code = code < 0 ? err_code(err, ERR_INVALID) : post_read(&c, root, &repo, &commit, err);
    if (code == 0)
        code = run_event(&c, err);
    json_decref(root);
    arena_release(&a);
    return code == ERR_END || code == ERR_NOT_FOUND || code == ERR_PRECONDITION ? 0 : code;
}

/* --- life --- */

int lake_actions_new(struct lake_actions **out, const struct lake_actions_options *o,
                     struct err *err)
{
    struct lake_actions *x = xzalloc(sizeof(*x));
    int code = hosts_parse(&x->hosts, o->hosts, err);

    if (code < 0) {
        free(x);
        return code;
    }
    x->o = *o;
    seats_init(&x->before, o->before_max);
    seats_init(&x->behind, o->behind_max);
    x->hooks = (struct lake_hooks){.pre = actions_pre, .post = actions_post, .ctx = x};
    *out = x;
    return 0;
}

void lake_actions_free(struct lake_actions *x)
{
    if (!x)
        return;
    mutex_release(&x->before.lock);
    mutex_release(&x->behind.lock);
    free(x);
}

const struct lake_hooks *lake_actions_hooks(struct lake_actions *x)
{
    return &x->hooks;
}

void lake_actions_abort(struct lake_actions *x)
{
    x->is_ending = true;
}
