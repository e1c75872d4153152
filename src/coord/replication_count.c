/* Compares the counters of replications with their tasks (docs/replication.md, P8).
 *
 * People and switches read the counters; weir's own scripts change tasks and counters in one step.
 * Asynq's tools change only the tasks: a task that they delete stays open in the counters for ever.
 * Such a gap must be distinguished from a task that is just changing its state. So the status is
 * read first, then all tasks are counted. Then one script mends the counters, if every field of the
 * status is still the same. Each of weir's steps that adds or ends a task changes the status, and a
 * task keeps its key in all states. So if the status is the same, the tasks that were counted are
 * all that exist. */
#include "base/clock.h"
#include "coord/replication_int.h"
#include "store/fields.h"

#include <stdlib.h>

enum {
    ARENA_MAX = 256 * 1024 * 1024,
    PAGE = 500,             /* number of keys that one script looks at */
    SEEN_MAX = 1000 * 1000, /* most tasks that are counted; with more, the comparison is given up */
    MEND_ARGS = 9,          /* number of the script's arguments before the status */
};

enum tally_kind { COPIES, LISTINGS, EVENTS, KINDS };

struct suspect {
    struct replication_id id;
    /* Key of the replication's status, and the round (start of the copy) that its counters
     * count. */
    struct str key, round;
    struct reply *status; /* answer of HGETALL for `key` */
    int64_t open[KINDS];  /* number of open tasks according to the counters */
    int64_t there[KINDS]; /* number of open tasks that were found in the queue */
};

struct recount {
    struct replications *r;
    const struct replication_recount *o;
    struct arena a;
    struct map suspects; /* maps the key of a status to its struct suspect */
    struct map seen;     /* keys of the tasks that were counted */
};

/* --- replications that are compared --- */

static struct str status_field(const struct reply *status, const char *name)
{
    const struct reply *value = fields_find(status, str_z(name));

    return value ? value->str : STR_EMPTY;
}

static int64_t status_number(const struct reply *status, const char *name)
{
    int64_t n = 0;

    return str_i64(status_field(status, name), &n) == 0 ? n : 0;
}

static bool status_is_idle(const struct reply *status, int64_t before_ms)
{
    static const char *const times[] = {"created_at", "resynced_at", "last_emitted_at",
                                        "last_processed_at"};
    int64_t at;

    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (clock_parse_iso(status_field(status, times[i]), &at) == 0 && at > before_ms)
            return false;
    return true;
}

static void suspect_count(struct suspect *s)
{
    const struct reply *st = s->status;

    s->open[COPIES] = status_number(st, "obj_listed") - status_number(st, "obj_done") -
                      status_number(st, "obj_failed");
    s->open[LISTINGS] = status_number(st, "listings");
    s->open[EVENTS] = status_number(st, "events") - status_number(st, "events_done");
}

static int suspect_read(struct recount *c, const struct replication *p, int64_t before_ms,
                        struct err *err)
{
    struct suspect *s = arena_new(&c->a, struct suspect);
    struct id_parts parts;
    int code = s ? replication_parts(&c->a, &p->id, &parts, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    s->key = replication_status_key(&c->a, &parts);
    code = store_call(c->r->o.config, &c->a, &s->status, err, STR("HGETALL"), s->key);
    if (code == 0)
        code = reply_expect(s->status, REPLY_ARRAY, err);
    if (code < 0 || s->status->count == 0)
        return code;
    const struct replication_id *id = &p->id;
    s->id = (struct replication_id){arena_str(&c->a, id->user), arena_str(&c->a, id->bucket),
                                    arena_str(&c->a, id->from), arena_str(&c->a, id->to),
                                    arena_str(&c->a, id->to_bucket)};
    s->round = status_field(s->status, "resynced_at");
    if (!s->round.len)
        s->round = status_field(s->status, "created_at");
    suspect_count(s);
    if ((s->open[COPIES] || s->open[LISTINGS] || s->open[EVENTS]) &&
        status_is_idle(s->status, before_ms))
        map_put(&c->suspects, s->key, s);
    return arena_error(&c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int recount_find(struct recount *c, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    struct reply *time;
    int64_t now_s = 0;
    int code = store_call(c->r->o.config, &c->a, &time, err, STR("TIME"));

    if (code == 0)
        code = reply_expect(time, REPLY_ARRAY, err);
    if (code == 0 && (time->count != 2 || str_i64(time->items[0].str, &now_s) < 0))
        code = err_set(err, ERR_TYPE, "the store's time cannot be read");
    if (code == 0)
        code = replications_view(c->r, &view, err);
    size_t count = code == 0 ? replication_view_all(view, &all) : 0;
    for (size_t i = 0; i < count && code == 0 && !c->o->ended(c->o->ctx); i++)
        if (all[i]->id.bucket.len)
            code = suspect_read(c, all[i], now_s * MS_PER_S - c->o->idle_ms, err);
    replication_view_unref(view);
    return code;
}

/* --- counting tasks --- */

/* Splits a tally, the field of a task's hash that says which counters count the task: '<database>
 * <database> <kind> <bytes>[/<objects>] <round> <key of the status>' (lua/part_tally.lua). */
static bool tally_read(struct str tally, char *kind, int64_t *objects, struct str *round,
                       struct str *key)
{
    struct str parts[4], size, count; /* two databases, kind, size */

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (!str_cut(tally, ' ', &parts[i], &tally))
            return false;
    if (parts[2].len != 1 || !str_cut(tally, ' ', round, key))
        return false;
    size = parts[3];
    *kind = parts[2].p[0];
    *objects = 1;
    return !str_cut(size, '/', &size, &count) || str_i64(count, objects) == 0;
}

static int recount_task(struct recount *c, struct str key, struct str state, struct str tally,
                        struct err *err)
{
    static const char kinds[KINDS] = {[COPIES] = 'c', [LISTINGS] = 'l', [EVENTS] = 'e'};
    struct str round, status;
    int64_t objects;
    char kind;

    if (!tally_read(tally, &kind, &objects, &round, &status))
        return 0;
    struct suspect *s = map_get(&c->suspects, status);
    if (!s || !str_eq(s->round, round) || map_get(&c->seen, key))
        return 0;
    if (c->seen.len == SEEN_MAX)
        return err_set(err, ERR_TOO_LARGE, "there are more than %d tasks", SEEN_MAX);
    map_put(&c->seen, arena_str(&c->a, key), s);
    /* A copy that was archived counts as failed; an archived task of another kind counts as open.
     */
    bool failed = str_eq(state, STR("archived"));
    for (int i = 0; i < KINDS; i++)
        if (kinds[i] == kind && !(i == COPIES && failed))
            s->there[i] += objects;
    return arena_error(&c->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int recount_page(struct recount *c, uint64_t *cursor, struct err *err)
{
    struct arena a = ARENA_INIT(64 * MIB);
    const struct str args[] = {arena_fmt(&a, "%llu", (unsigned long long)*cursor),
                               queue_number(&a, PAGE)};
    struct reply *reply;
    int code = coord_eval(c->r->o.queue, &a, &reply, SCRIPT_queue_tallies, args, 2, err);

    if (code == 0)
        code = reply_expect(reply, REPLY_ARRAY, err);
    if (code == 0 && (reply->count == 0 || str_u64(reply->items[0].str, cursor) < 0))
        code = err_set(err, ERR_TYPE, "the store gave no cursor");
    for (size_t i = 1; code == 0 && i + 2 < reply->count; i += 3)
        code = recount_task(c, reply->items[i].str, reply->items[i + 1].str,
                            reply->items[i + 2].str, err);
    arena_release(&a);
    return code;
}

static int recount_tasks(struct recount *c, struct err *err)
{
    uint64_t cursor = 0;
    int code;

    do {
        code = recount_page(c, &cursor, err);
        if (code == 0 && c->o->ended(c->o->ctx))
            code = err_set(err, ERR_SHUTDOWN, "broken off");
    } while (code == 0 && cursor != 0);
    return code;
}

/* --- mending --- */

static int suspect_mend(struct recount *c, const struct suspect *s, int64_t surplus,
                        struct err *err)
{
    struct task first = c->o->first(&c->a, &s->id);
    size_t n = MEND_ARGS, fields = s->status->count;
    struct str *args = arena_array(&c->a, MEND_ARGS + fields, sizeof(*args));
    struct id_parts p;
    int code = args ? replication_parts(&c->a, &s->id, &p, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = queue_task_args(&c->a, &first, 0, args + 6, err);
    if (code < 0)
        return code;
    args[0] = queue_number(&c->a, store_number(c->r->o.queue));
    args[1] = queue_number(&c->a, store_number(c->r->o.config));
    args[2] = s->key;
    args[3] = p.user;
    args[4] = p.bucket;
    args[5] = queue_number(&c->a, surplus);
    for (size_t i = 0; i < fields; i++)
        args[n++] = s->status->items[i].str;
    if (arena_error(&c->a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    code =
        replications_run(c->r, &c->a, SCRIPT_replication_mend, &(struct store_args){args, n}, err);
    replications_wake(c->r, &c->a);
    return code;
}

/* Mends the counters of a replication if they differ from its tasks. If the only difference is that
 * there are too many copy tasks, somebody has run failed copies again without weir. Then these
 * copies are subtracted from the failures. With any other difference the copy of the replication
 * begins again. */
static int suspect_judge(struct recount *c, const struct suspect *s, struct err *err)
{
    struct replication_gap gap = {.id = s->id,
                                  .copies = s->open[COPIES] - s->there[COPIES],
                                  .listings = s->open[LISTINGS] - s->there[LISTINGS],
                                  .events = s->open[EVENTS] - s->there[EVENTS]};

    if (!gap.copies && !gap.listings && !gap.events)
        return 0;
    bool only_surplus = gap.copies < 0 && !gap.listings && !gap.events &&
                        status_number(s->status, "obj_failed") >= -gap.copies;
    struct err why = {0};
    gap.outcome = suspect_mend(c, s, only_surplus ? -gap.copies : 0, &why);
    if (gap.outcome < 0 && gap.outcome != ERR_CONFLICT && gap.outcome != ERR_NOT_FOUND)
        return err_set(err, gap.outcome, "%s", why.text);
    c->o->told(c->o->ctx, &gap);
    return 0;
}

int replication_recount(struct replications *r, const struct replication_recount *o, size_t *looked,
                        struct err *err)
{
    struct recount c = {.r = r, .o = o, .a = ARENA_INIT(ARENA_MAX)};
    struct str key;
    void *value;

    map_init(&c.suspects);
    map_init(&c.seen);
    int code = recount_find(&c, err);
    *looked = c.suspects.len;
    if (code == 0 && c.suspects.len)
        code = recount_tasks(&c, err);
    for (size_t at = 0; code == 0 && map_next(&c.suspects, &at, &key, &value);)
        code = suspect_judge(&c, value, err);
    map_release(&c.seen);
    map_release(&c.suspects);
    arena_release(&c.a);
    return code;
}
