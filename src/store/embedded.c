/* The embedded engine: opening, and running each step on the right view (docs/store.md). */
#include "store/embedded_int.h"

#include "base/clock.h"
#include "base/ids.h"

#include <stdlib.h>

enum {
    FORMAT = 2, /* format of the rows on disk; format 1 had no small hashes */
    /* Attempts to read a member without a snapshot (docs/store.md, invariant 8). */
    MEMBER_TRIES = 4,
    /* How long compaction keeps a string that has expired (docs/store.md, invariant 7). */
    FILTER_GRACE_MS = MS_PER_MINUTE,
};

/* One atomic step: calls that run one after another, or one script. */
struct step {
    struct run run;
    struct call *calls;
    size_t count;
    /* The script that calls[0] runs; NULL: the step is not a script. */
    const struct script_call *script;
    enum db_durability durability;
};

static bool row_expired(struct str key, struct str value, int64_t now_ms)
{
    struct meta m;

    return key.len && key.p[0] == ROW_META && meta_decode(&m, value) == 0 &&
           m.type == TYPE_STRING && m.expire_ms && m.expire_ms < now_ms - FILTER_GRACE_MS;
}

const struct db_cf_spec *store_cf_specs(void)
{
    static const struct db_cf_spec specs[STORE_DATABASES] = {
        {"store0", row_expired}, {"store1", row_expired}, {"store2", row_expired},
        {"store3", row_expired}, {"store4", row_expired},
    };
    return specs;
}

static void step_run(struct step *step)
{
    struct run *run = &step->run;

    for (size_t i = 0; i < step->count && run->code == 0; i++) {
        struct call *c = &step->calls[i];
        if (step->script)
            script_run(c, step->script);
        else
            c->command->fn(c);
        if (run->code == 0 && c->arena->failed)
            run_fail(run, err_code(run->err, ERR_NO_MEMORY));
    }
}

static int step_change(struct db_tx *tx, void *ctx, struct err *err)
{
    struct step *step = ctx;

    step->run.tx = tx;
    step->run.view = db_tx_view(tx);
    step->run.now_ms = db_tx_now_ms(tx) + atomic_load(&step->run.e->clock_shift);
    step_run(step);
    return step->run.code;
}

static int step_write(struct step *step)
{
    struct embedded *e = step->run.home;
    int rc = db_apply(e->db, step->durability, step_change, step, step->run.err);

    for (int i = 0; rc == 0 && i < STORE_DATABASES; i++)
        if (step->run.garbage[i])
            collector_wake((i == e->base.number ? e : e->joined[i])->collector);
    return rc;
}

static int step_on_snapshot(struct step *step)
{
    struct run *run = &step->run;
    int rc = db_snapshot(&run->view, run->e->db, run->err);

    if (rc < 0)
        return rc;
    step_run(step);
    db_snapshot_free(run->view);
    return run->code;
}

static int step_on_latest(struct step *step)
{
    step->run.view = db_latest(step->run.e->db);
    step_run(step);
    return step->run.code;
}

/* Runs a step that reads one member, without a snapshot. Reads again if the member's owner row has
 * changed meanwhile (docs/store.md, invariant 8). */
static int step_member(struct step *step)
{
    struct run *run = &step->run;
    struct call *c = step->calls;
    uint64_t version;
    struct object o;

    for (int i = 0; i < MEMBER_TRIES; i++) {
        run->missed = false;
        *c->reply = as_nil();
        if (step_on_latest(step) < 0 || !run->missed)
            return run->code;
        version = run->last_owner.version;
        if (!object_load(c, c->argv[c->command->first_key], &o) || o.m.version == version)
            return run->code;
    }
    *c->reply = as_nil();
    return step_on_snapshot(step);
}

static int step_read(struct step *step)
{
    struct embedded *e = step->run.e;
    unsigned flags = step->count == 1 && !step->script ? step->calls[0].command->flags : 0;

    step->run.now_ms = clock_wall_ms() + atomic_load(&e->clock_shift);
    if (flags & CMD_ROW)
        return step_on_latest(step);
    return flags & CMD_MEMBER ? step_member(step) : step_on_snapshot(step);
}

static int step_finish(struct step *step, int rc)
{
    struct run *run = &step->run;

    pubsub_settle(run->home->pubsub, run->published, rc == 0);
    buf_release(&run->row);
    return rc;
}

static void step_init(struct step *step, struct store *s, struct call *calls, size_t count,
                      struct err *err)
{
    struct embedded *e = embedded_of(s);

    *step = (struct step){.run = {.e = e, .home = e, .err = err},
                          .calls = calls,
                          .count = count,
                          .durability = e->durability};
    for (size_t i = 0; i < count; i++)
        calls[i].run = &step->run;
}

static int embedded_command(struct store *s, struct arena *arena, struct reply **out,
                            const struct str *argv, size_t argc, struct err *err)
{
    struct call c = {.argv = argv, .argc = argc, .arena = arena};
    struct step step;
    int rc = 0;

    c.reply = arena_new(arena, struct reply);
    if (!c.reply)
        return err_code(err, ERR_NO_MEMORY);
    step_init(&step, s, &c, 1, err);
    if (call_find(&c)) {
        rc = c.command->flags & CMD_WRITE ? step_write(&step) : step_read(&step);
        rc = step_finish(&step, rc);
    }
    if (rc == 0)
        *out = c.reply;
    return rc;
}

/* Looks up every command. Returns the number of commands that cannot run; each of these is answered
 * with its error. */
static size_t batch_prepare(struct call *calls, const struct store_args *commands, size_t count,
                            struct arena *arena, struct reply *items)
{
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        calls[i] = (struct call){
            .argv = commands[i].argv, .argc = commands[i].argc, .arena = arena, .reply = &items[i]};
        if (!call_find(&calls[i])) {
            calls[i].command = NULL;
            wrong++;
        }
    }
    return wrong;
}

/* Answers a batch in which a command cannot be queued, so that none of its commands runs. As in
 * Redis, that command gets its own error, and all other commands get EXECABORT. */
static void batch_abort(struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (calls[i].command)
            answer_error(&calls[i], "EXECABORT Transaction discarded because of previous errors.");
}

static size_t drop_wrong(struct call *calls, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (calls[i].command)
            calls[kept++] = calls[i];
    return kept;
}

static int embedded_batch(struct store *s, struct arena *arena, struct reply **out,
                          const struct batch *b, struct err *err)
{
    size_t count = b->count;
    struct call *calls = arena_array(arena, count, sizeof(*calls));
    struct reply *items = arena_array(arena, count, sizeof(*items));
    struct reply *reply = arena_new(arena, struct reply);
    struct step step;
    unsigned flags = 0;
    int rc = 0;

    if (arena_error(arena))
        return err_code(err, ERR_NO_MEMORY);
    *reply = (struct reply){.type = REPLY_ARRAY, .items = items, .count = count};
    if (batch_prepare(calls, b->commands, count, arena, items) && b->atomic)
        batch_abort(calls, count), count = 0;
    count = drop_wrong(calls, count);
    for (size_t i = 0; i < count; i++)
        flags |= calls[i].command->flags;
    if (count) {
        step_init(&step, s, calls, count, err);
        rc = flags & CMD_WRITE ? step_write(&step) : step_read(&step);
        rc = step_finish(&step, rc);
    }
    if (rc == 0)
        *out = reply;
    return rc;
}

static int embedded_eval(struct store *s, struct arena *arena, struct reply **out,
                         const struct script_run *run, struct err *err)
{
    const struct script *script = run->script;
    struct script_call sc = {.source = script->source,
                             .keys = run->keys.argv,
                             .key_count = run->keys.argc,
                             .args = run->args.argv,
                             .arg_count = run->args.argc,
                             .readonly = script->readonly};
    struct call c = {.arena = arena, .reply = arena_new(arena, struct reply)};
    struct step step;
    int rc;

    if (!c.reply)
        return err_code(err, ERR_NO_MEMORY);
    memcpy(sc.sha1, script->sha1, sizeof(sc.sha1));
    step_init(&step, s, &c, 1, err);
    step.script = &sc;
    if (run->relaxed || script->relaxed)
        step.durability = DB_VOLATILE;
    rc = script->readonly ? step_read(&step) : step_write(&step);
    rc = step_finish(&step, rc);
    if (rc == 0)
        *out = c.reply;
    return rc;
}

static void embedded_close(struct store *s)
{
    struct embedded *e = embedded_of(s);

    collector_free(e->collector);
    pubsub_free(e->pubsub);
    lua_pool_free(e->lua);
    free(e);
}

static int embedded_join(struct store *const *stores, size_t count, struct err *err)
{
    for (size_t i = 1; i < count; i++)
        if (embedded_of(stores[i])->db != embedded_of(stores[0])->db)
            return err_set(err, ERR_INVALID, "the databases are in two folders");
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            embedded_of(stores[i])->joined[stores[j]->number] = embedded_of(stores[j]);
    return 0;
}

void embedded_shift_clock(struct store *s, int64_t ms)
{
    atomic_store(&embedded_of(s)->clock_shift, ms);
}

void embedded_collect(struct store *s)
{
    collector_wait(embedded_of(s)->collector);
}

static const struct store_engine engine = {
    .name = "embedded",
    .command = embedded_command,
    .batch = embedded_batch,
    .eval = embedded_eval,
    .subscribe = embedded_subscribe,
    .unsubscribe = embedded_unsubscribe,
    .join = embedded_join,
    .close = embedded_close,
};

/* Reads the settings rows of the store: the format, which must not be newer than FORMAT, and the
 * seed. The first opening writes these rows. */
static int open_change(struct db_tx *tx, void *ctx, struct err *err)
{
    const char format = FORMAT;
    struct embedded *e = ctx;
    struct buf value = BUF_INIT(64);
    int rc = db_get(db_tx_view(tx), e->cf, STR("cformat"), &value, err);

    if (rc == 0 && (value.len != 1 || value.p[0] > FORMAT)) {
        rc = err_set(err, ERR_VERSION, "the store was written by a newer weir");
    } else if (rc == 0) {
        bool old = value.p[0] < FORMAT;
        buf_reset(&value);
        rc = db_get(db_tx_view(tx), e->cf, STR("cseed"), &value, err);
        if (rc == 0 && value.len != sizeof(e->seed))
            rc = err_set(err, ERR_CORRUPT, "the store's seed is damaged");
        if (rc == 0)
            memcpy(&e->seed, value.p, sizeof(e->seed));
        if (rc == 0 && old)
            db_tx_put(tx, e->cf, STR("cformat"), str_n(&format, 1));
    } else if (rc == ERR_NOT_FOUND) {
        e->seed = random_u64();
        db_tx_put(tx, e->cf, STR("cformat"), str_n(&format, 1));
        db_tx_put(tx, e->cf, STR("cseed"), str_n(&e->seed, sizeof(e->seed)));
        rc = 0;
    }
    buf_release(&value);
    return rc;
}

int store_open_embedded(struct store **out, struct db *db, int number, enum store_durability d,
                        const struct log *log, struct err *err)
{
    struct embedded *e = xcalloc(1, sizeof(*e));
    int rc;

    BUG_ON(number < 0 || number >= STORE_DATABASES);
    e->base.engine = &engine;
    e->base.number = number;
    e->db = db;
    e->cf = db_cf(db, store_cf_specs()[number].name);
    e->durability = d == STORE_DURABLE ? DB_DURABLE : DB_VOLATILE;
    e->log = log;
    rc = db_apply(db, e->durability, open_change, e, err);
    if (rc == 0)
        rc = pubsub_new(&e->pubsub, err);
    if (rc == 0) {
        e->lua = lua_pool_new();
        rc = collector_new(&e->collector, e, err);
    }
    if (rc < 0) {
        embedded_close(&e->base);
        return rc;
    }
    *out = &e->base;
    return 0;
}
