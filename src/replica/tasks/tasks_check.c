/* Runs checks and their fixes (docs/diff.md). Both go through the keys of all compared buckets in
 * parallel, in the order of the keys; this is called a *walk*. A check keeps the differences in its
 * report. A fix queues a task for each key and each location that differs from the source. */
#include "replica/tasks/tasks_int.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"
#include "copy/compare.h"

enum {
    FIX_OPEN_MAX = 2000, /* a fix's walk waits while it has more open tasks than this */
    FIX_WAIT_S = 2,
    SWITCH_WAIT_S = 10,
    REQUESTS = 4, /* number of requests to each side for one key that is fixed */
    ENTRY_MAX = 16 * 1024,
    STEP_MS = 5 * MS_PER_S, /* ms between two steps; a step has at least one key */
    /* Longest time, in ms, that one task spends on its part of a walk (docs/diff.md, D9). */
    PIECE_MS = MS_PER_MINUTE,
    PIECE_STEPS = 100,
};

/* A walk over all keys of the locations that are compared. */
struct walk {
    struct job j; /* used for the limits, and to end the task */
    struct checks checks;
    struct check check;
    struct place_open places[CHECK_LOCATIONS_MAX];
    struct bucket *buckets[CHECK_LOCATIONS_MAX];
    struct compare_options o;
    struct buf after; /* the cursor: keys up to and with this key are done */
    uint64_t bytes;
    uint64_t steps; /* number of steps that this task has done */
    /* When the task and its present step began, by clock_mono_ms(). */
    uint64_t began_ms, step_ms;
    /* The members below are the results since the last step. Their strings are in `a`. */
    struct arena a;
    uint64_t differences;
    VEC(struct str) entries;
    VEC(struct check_fix_item) items;
};

/* --- payloads --- */

struct check_payload {
    struct str id, round, key;
    int64_t piece;
    int64_t to; /* index of the location to fix */
    bool contents;
};

static int check_payload_read(struct check_payload *out, struct task_run *run, struct err *err)
{
    json_t *root = NULL;
    struct err why = {0};

    if (json_read(&root, run->task->payload, &why) < 0)
        return err_set(err, ERR_INVALID, "the payload cannot be read: %s", why.text);
    *out = (struct check_payload){
        .id = arena_str(run->arena, json_get_str(root, "ID", STR_EMPTY)),
        .round = arena_str(run->arena, json_get_str(root, "Round", STR_EMPTY)),
        .key = arena_str(run->arena, json_get_str(root, "Name", STR_EMPTY)),
        .piece = json_get_i64(root, "Piece", 0),
        .to = json_get_i64(root, "To", -1),
        .contents = json_get_bool(root, "Contents", false),
    };
    json_decref(root);
    if (!out->id.len || !out->round.len)
        return err_set(err, ERR_INVALID, "the payload names no check");
    return 0;
}

/* Reads the check that the task belongs to. ERR_END: the task belongs to an earlier round or state
 * of the check, or the check was removed. */
static int check_task_read(struct check *out, const struct checks *cs, struct task_run *run,
                           const struct check_payload *p, enum check_state state, struct err *err)
{
    int code = check_read(cs, run->arena, p->id, out, err);

    if (code == ERR_NOT_FOUND)
        return ERR_END;
    return code < 0 ? code : out->state == state && str_eq(out->round, p->round) ? 0 : ERR_END;
}

static struct checks tasks_checks(const struct tasks *t)
{
    return (struct checks){.app = t->o.app, .queue = t->o.queue};
}

/* --- pieces of a walk (docs/diff.md, D9) --- */

static bool is_due(void *ctx)
{
    const struct walk *x = ctx;

    return clock_mono_ms() - x->step_ms >= STEP_MS;
}

/* Counts a step that was done. Returns whether it was the last step of this task. */
static bool piece_ends(struct walk *x, struct str last)
{
    uint64_t most = x->j.t->o.check_steps ? x->j.t->o.check_steps : PIECE_STEPS;

    x->steps++;
    x->step_ms = clock_mono_ms();
    return last.len && (x->steps >= most || x->step_ms - x->began_ms >= PIECE_MS);
}

/* --- differences that a check keeps --- */

static void difference_write_side(struct json_out *w, const struct difference_side *s)
{
    if (!s->found) {
        json_out_null(w);
        return;
    }
    json_out_open(w, '{');
    json_out_member_u64(w, "size", s->size);
    json_out_member_str(w, "etag", s->etag);
    json_out_member_str(w, "version_id", s->version);
    if (s->is_marker)
        json_out_member_bool(w, "marker", true);
    if (s->digest.len)
        json_out_member_str(w, "sha256", s->digest);
    json_out_close(w, '}');
}

static struct str difference_entry(struct walk *x, const struct difference *d)
{
    struct buf text = BUF_INIT(ENTRY_MAX);
    struct json_out w;

    json_out_init(&w, &text);
    json_out_open(&w, '{');
    json_out_member_str(&w, "object", d->key);
    json_out_member_str(&w, "kind", str_z(difference_name(d->kind)));
    if (d->versioned)
        json_out_member_u64(&w, "version_index", d->index);
    if (d->why)
        json_out_member_str(&w, "why", str_z(d->why));
    json_out_key(&w, "sides");
    json_out_open(&w, '[');
    for (size_t i = 0; i < x->check.count; i++)
        difference_write_side(&w, &d->sides[i]);
    json_out_close(&w, ']');
    json_out_close(&w, '}');
    struct str out = buf_error(&text) == 0 ? arena_str(&x->a, buf_str(&text)) : STR_EMPTY;
    buf_release(&text);
    return out;
}

static int keep_difference(void *ctx, const struct difference *d, struct err *err)
{
    struct walk *x = ctx;

    x->differences++;
    if (x->check.kept + (int64_t)x->entries.len >= CHECK_KEPT)
        return 0;
    struct str entry = difference_entry(x, d);
    if (!entry.len)
        return err_code(err, ERR_NO_MEMORY);
    vec_push(&x->entries, entry);
    return 0;
}

static int keep_page(void *ctx, struct str last, uint64_t keys, struct err *err)
{
    struct walk *x = ctx;
    struct check_page p = {.check = &x->check,
                           .after = buf_str(&x->after),
                           .last = last,
                           .keys = keys,
                           .differences = x->differences,
                           .bytes = x->bytes,
                           .entries = x->entries.items,
                           .count = x->entries.len,
                           .hand_over = piece_ends(x, last)};
    int code = check_page(&x->checks, &p, err);

    x->check.kept += (int64_t)x->entries.len;
    x->differences = x->bytes = x->entries.len = 0;
    buf_reset(&x->after);
    buf_append_str(&x->after, last);
    arena_reset(&x->a);
    return code == 0 && p.hand_over ? ERR_END : code;
}

/* --- differences that a fix repairs --- */

/* Returns whether the location differs from the source, as far as the walk can tell. */
static bool side_is_other(const struct difference *d, const struct difference_side *s,
                          const struct difference_side *to)
{
    if (s->found != to->found || s->is_marker != to->is_marker || s->size != to->size ||
        !str_eq(s->etag, to->etag))
        return true;
    return d->kind == DIFFERENCE_UNKNOWN || !str_eq(s->digest, to->digest);
}

static struct str fix_payload(struct walk *x, const struct difference *d, size_t to)
{
    struct buf text = BUF_INIT(TASK_PAYLOAD_MAX);
    struct json_out w;

    json_out_init(&w, &text);
    json_out_open(&w, '{');
    json_out_member_str(&w, "ID", x->check.id);
    json_out_member_str(&w, "Round", x->check.round);
    json_out_member_u64(&w, "To", to);
    json_out_member_str(&w, "Name", d->key);
    json_out_member_bool(&w, "Contents", x->check.contents);
    json_out_close(&w, '}');
    struct str out = arena_str(&x->a, buf_str(&text));
    buf_release(&text);
    return out;
}

static struct str fix_member(struct arena *a, struct str key, size_t to)
{
    return arena_fmt(a, "%zu:" STR_FMT, to, STR_ARG(key));
}

static void queue_fix(struct walk *x, const struct difference *d, size_t to)
{
    struct str member = fix_member(&x->a, d->key, to);
    struct check_fix_item item = {
        .member = member,
        .task = {.type = STR(CHECK_FIX_OBJECT_TYPE),
                 .payload = fix_payload(x, d, to),
                 .id = arena_fmt(&x->a, "ccf:" STR_FMT ":" STR_FMT ":" STR_FMT,
                                 STR_ARG(x->check.id), STR_ARG(x->check.round), STR_ARG(member)),
                 .queue = CHECK_QUEUE,
                 .retry_max = CHECK_TRIES}};

    vec_push(&x->items, item);
}

/* Returns whether the key's task for this location is queued already. One task fixes all versions
 * of a key. */
static bool is_queued(const struct walk *x, struct str key, size_t to)
{
    for (size_t i = x->items.len; i-- > 0 && x->items.len - i <= x->check.count;) {
        struct str rest;
        struct str number = x->items.items[i].member;
        uint64_t n = 0;
        (void)str_cut(number, ':', &number, &rest);
        if (str_u64(number, &n) == 0 && n == to && str_eq(rest, key))
            return true;
    }
    return false;
}

static int fix_difference(void *ctx, const struct difference *d, struct err *err)
{
    struct walk *x = ctx;
    size_t source = (size_t)x->check.source;

    for (size_t i = 0; i < x->check.count; i++)
        if (i != source && side_is_other(d, &d->sides[source], &d->sides[i]) &&
            !is_queued(x, d->key, i))
            queue_fix(x, d, i);
    return arena_error(&x->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Checks how many tasks of the fix are open. ERR_AGAIN: too many are open, so the walk waits. */
static int check_open(struct walk *x, struct err *err)
{
    struct check now;
    int code = check_read(&x->checks, &x->a, x->check.id, &now, err);

    if (code == 0 && now.fix_queued - now.fix_done - now.fix_failed > FIX_OPEN_MAX) {
        x->j.run->put_back_s = FIX_WAIT_S;
        code = err_set(err, ERR_AGAIN, "too many fixes are open");
    }
    return code;
}

static int fix_page(void *ctx, struct str last, uint64_t keys, struct err *err)
{
    struct walk *x = ctx;
    struct check_fix_page p = {.check = &x->check,
                               .after = buf_str(&x->after),
                               .last = last,
                               .items = x->items.items,
                               .count = x->items.len,
                               .hand_over = piece_ends(x, last)};
    int code = check_fix_page(&x->checks, &p, err);

    (void)keys;
    x->items.len = 0;
    buf_reset(&x->after);
    buf_append_str(&x->after, last);
    arena_reset(&x->a);
    if (code == 0 && p.hand_over)
        return ERR_END;
    return code < 0 || !last.len ? code : check_open(x, err);
}

/* --- the walk --- */

static int check_watch_task(void *ctx, size_t side, uint64_t bytes, struct err *err)
{
    struct walk *x = ctx;
    struct str storage = x->check.locations[side].storage;

    if (task_ended(x->j.run))
        return err_set(err, ERR_CANCELED, "the task has ended");
    x->bytes += bytes;
    return bytes ? job_take(&x->j, storage, LIMIT_BYTES, bytes, err)
                 : job_take(&x->j, storage, LIMIT_REQUESTS, 1, err);
}

static int open_places(struct walk *x, struct err *err)
{
    bool versioned = !x->check.last_only;
    int code = 0;

    for (size_t i = 0; code == 0 && i < x->check.count; i++) {
        const struct check_location *l = &x->check.locations[i];
        struct storage *s = NULL;
        code = job_find(&x->j, l->storage, &s, err);
        if (code == 0)
            code = place_open(&x->places[i], x->j.t, s, x->check.user, l->bucket, true, err);
        if (code == ERR_NO_BUCKET)
            return err_set(err, code, "there is no bucket " STR_FMT " on storage " STR_FMT,
                           STR_ARG(l->bucket), STR_ARG(l->storage));
        versioned = versioned && x->places[i].versioned;
        x->buckets[i] = x->places[i].bucket;
    }
    x->check.versioned = versioned;
    return code;
}

/* Returns an estimate of the number of keys, which is the largest count that a side knows; 0: no
 * side knows. */
static int64_t difference_keys(const struct walk *x)
{
    uint64_t most = 0;

    for (size_t i = 0; i < x->check.count; i++) {
        struct bucket_usage usage = {0};
        struct bucket *b = x->buckets[i];
        if (b->ops->usage && b->ops->usage(b, &usage, NULL) == 0 && usage.objects > most)
            most = usage.objects;
    }
    return (int64_t)most;
}

static int check_walk(struct walk *x, struct err *err)
{
    struct compare_result out;
    struct str after = STR_EMPTY;
    x->began_ms = x->step_ms = clock_mono_ms();
    int code = open_places(x, err);

    if (code == 0)
        code = check_cursor(&x->checks, x->j.run->arena, x->check.id, &after, err);
    if (code < 0)
        return code;
    if (!after.len) {
        x->check.kept = 0;
        x->check.total = difference_keys(x);
    }
    buf_append_str(&x->after, after);
    x->o.buckets = x->buckets;
    x->o.count = x->check.count;
    x->o.ignore_sizes = x->check.ignore_sizes;
    x->o.ignore_etags = x->check.ignore_etags;
    x->o.contents = x->check.contents;
    x->o.versions = x->check.versioned;
    x->o.after = after;
    x->o.keys = x->j.t->o.keys;
    x->o.watch = check_watch_task;
    x->o.due = is_due;
    x->o.ctx = x;
    return compare_buckets(&out, &x->o, err);
}

static void walk_release(struct walk *x)
{
    for (size_t i = 0; i < CHECK_LOCATIONS_MAX; i++)
        place_release(&x->places[i]);
    buf_release(&x->after);
    vec_release(&x->entries);
    vec_release(&x->items);
    arena_release(&x->a);
}

static bool is_last_try(const struct task_run *run)
{
    return run->task->retried >= run->task->retry_max;
}

/* Handles the failure of a walk. Stores the error in the check, for people, and returns the code
 * for the queue. */
static int walk_failed(struct walk *x, int code, struct err *err)
{
    struct task_run *run = x->j.run;
    bool ends = code == ERR_NO_BUCKET || code == ERR_UNSUPPORTED;

    if (code == ERR_NOT_FOUND ||
        code == ERR_END) /* the round has ended, or this task's part of it */
        return 0;
    if (code == ERR_AGAIN || code == ERR_CANCELED || code == ERR_CONFLICT || code == ERR_BUSY) {
        if (!run->put_back_s)
            run->put_back_s = BUSY_S;
        return ERR_AGAIN;
    }
    (void)!check_note(&x->checks, &x->check, str_z(err->text), ends || is_last_try(run), NULL);
    return ends ? 0 : code == ERR_INVALID ? ERR_PEER : code;
}

static int run_walk(struct task_run *run, enum check_state state,
                    const struct compare_options *calls, struct err *err)
{
    struct tasks *t = run->ctx;
    struct check_payload p;
    struct walk x = {.j = {.t = t, .run = run}, .checks = tasks_checks(t), .o = *calls};
    int code = check_payload_read(&p, run, err);

    if (code < 0)
        return code;
    code = check_task_read(&x.check, &x.checks, run, &p, state, err);
    if (code < 0 || x.check.piece != p.piece)
        return code < 0 && code != ERR_END ? code : 0;
    code = check_walk(&x, err);
    if (code < 0)
        code = walk_failed(&x, code, err);
    walk_release(&x);
    return code;
}

int task_check(struct task_run *run, struct err *err)
{
    static const struct compare_options calls = {.tell = keep_difference, .reached = keep_page};

    return run_walk(run, CHECK_CHECKING, &calls, err);
}

int task_check_fix(struct task_run *run, struct err *err)
{
    static const struct compare_options calls = {.tell = fix_difference, .reached = fix_page};

    return run_walk(run, CHECK_FIXING, &calls, err);
}

/* --- fixing one key at one location --- */

/* Makes a fix wait while a location is in a switch. Clients may then write to either side, and the
 * version vectors decide which side is newer (docs/replication.md, S4). */
static int check_switches(struct job *j, const struct check *c, struct err *err)
{
    struct replication_view *view = NULL;
    int code = replications_view(j->t->o.replications, &view, err);

    for (size_t i = 0; code == 0 && i < c->count; i++)
        if (replication_view_switch(view, c->locations[i].storage, c->locations[i].bucket)) {
            j->run->put_back_s = SWITCH_WAIT_S;
            code = err_set(err, ERR_AGAIN, "bucket " STR_FMT " is being switched",
                           STR_ARG(c->locations[i].bucket));
        }
    replication_view_unref(view);
    return code;
}

/* Records the fix as a change if the location is the source of a replication: the fix is a worker's
 * write, and the tap captures only changes by clients. The change is recorded even if this run had
 * nothing to fix, because an earlier run may have died before the record. */
static int record_change(struct job *j, struct err *err)
{
    const struct replication *const *list;
    struct replications *r = j->t->o.replications;
    struct replication_view *view = NULL;
    struct change c = {.thing = {THING_OBJECT, job_to_bucket(j), j->p.object, STR_EMPTY},
                       .place = {.storage = j->p.id.to},
                       .type = STR("object:sync")};
    struct record rec = {.changes = &c, .count = 1};
    int code = replications_view(r, &view, err);
    bool needed =
        code == 0 && (replication_view_from(view, j->p.id.to, job_to_bucket(j), &list) > 0 ||
                      replication_view_switch(view, j->p.id.to, job_to_bucket(j)) != NULL);

    replication_view_unref(view);
    if (!needed)
        return code;
    return replication_record(r, &rec, err);
}

static int fix_object(struct job *j, const struct check *c, const struct check_payload *p,
                      struct err *err)
{
    const struct check_location *from = &c->locations[c->source], *to = &c->locations[p->to];
    int code;

    j->p.id = (struct replication_id){.user = c->user,
                                      .bucket = from->bucket,
                                      .from = from->storage,
                                      .to = to->storage,
                                      .to_bucket = to->bucket};
    j->p.object = p->key;
    code = check_switches(j, c, err);
    if (code == 0)
        code = job_find(j, from->storage, &j->from, err);
    if (code == 0)
        code = job_find(j, to->storage, &j->to, err);
    if (code == 0)
        code = job_take(j, from->storage, LIMIT_REQUESTS, REQUESTS, err);
    if (code == 0)
        code = job_take(j, to->storage, LIMIT_REQUESTS, REQUESTS, err);
    if (code == 0)
        code = object_fix(j, p->contents, err);
    return code < 0 ? code : record_change(j, err);
}

static int end_fix(struct job *j, const struct check *c, const struct check_payload *p, int code,
                   struct err *err)
{
    struct checks cs = tasks_checks(j->t);
    struct str member = fix_member(j->run->arena, p->key, (size_t)p->to);
    bool ends = code == ERR_INVALID || (code < 0 && code != ERR_AGAIN && is_last_try(j->run));

    if (code < 0 && !ends)
        return code;
    struct str why = STR_EMPTY;
    if (code < 0)
        why = arena_fmt(j->run->arena, STR_FMT ": %s", STR_ARG(p->key),
                        err->text[0] ? err->text : err_text(code));
    struct err own = {0};
    int noted = check_fixed(&cs, c, member, why, &own);
    if (noted < 0 && noted != ERR_NOT_FOUND && code == 0)
        return err_set(err, noted, "%s", own.text);
    return code;
}

int task_check_fix_object(struct task_run *run, struct err *err)
{
    struct job j = {.t = run->ctx, .run = run, .memory_key = BUF_INIT(16 * KIB)};
    struct checks cs = tasks_checks(j.t);
    struct check_payload p;
    struct check c;
    int code = check_payload_read(&p, run, err);

    if (code == 0)
        code = check_task_read(&c, &cs, run, &p, CHECK_FIXING, err);
    if (code < 0)
        return code == ERR_END ? 0 : code;
    if (c.source < 0 || (size_t)c.source >= c.count || p.to < 0 || (size_t)p.to >= c.count ||
        p.to == c.source || !p.key.len || p.key.len > OBJECT_KEY_MAX)
        return err_set(err, ERR_INVALID, "the payload names nothing that can be fixed");
    code = fix_object(&j, &c, &p, err);
    code = job_end(&j, code, err);
    return end_fix(&j, &c, &p, code, err);
}
