/* Runs of the collector: starts them, carries them out and reports on them. */
#include "lake/gc_int.h"

#include "base/clock.h"
#include "base/ids.h"

static const struct proto_field report_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_gc_report, run),
    PROTO_FIELD(2, PROTO_U32, struct lake_gc_report, stage),
    PROTO_FIELD(3, PROTO_BOOL, struct lake_gc_report, mark_only),
    PROTO_FIELD(4, PROTO_TIME, struct lake_gc_report, started_ms),
    PROTO_FIELD(5, PROTO_TIME, struct lake_gc_report, updated_ms),
    PROTO_FIELD(6, PROTO_TIME, struct lake_gc_report, cutoff_ms),
    PROTO_FIELD(7, PROTO_U64, struct lake_gc_report, commits_expired),
    PROTO_FIELD(8, PROTO_U64, struct lake_gc_report, bodies_listed),
    PROTO_FIELD(9, PROTO_U64, struct lake_gc_report, bodies_dead),
    PROTO_FIELD(10, PROTO_U64, struct lake_gc_report, bodies_dead_bytes),
    PROTO_FIELD(11, PROTO_U64, struct lake_gc_report, bodies_removed),
    PROTO_FIELD(12, PROTO_U64, struct lake_gc_report, nodes_listed),
    PROTO_FIELD(13, PROTO_U64, struct lake_gc_report, nodes_dead),
    PROTO_FIELD(14, PROTO_U64, struct lake_gc_report, nodes_dead_bytes),
    PROTO_FIELD(15, PROTO_U64, struct lake_gc_report, nodes_removed),
    PROTO_FIELD(16, PROTO_STR, struct lake_gc_report, error),
    PROTO_FIELD(17, PROTO_U64, struct lake_gc_report, uploads_aborted),
    {0},
};

static struct kv_name report_key(struct arena *a, const struct lake_repo *r)
{
    return lake_key_in(a, r->partition, "gc", STR("report"));
}

static struct str report_encode(struct arena *a, const struct lake_gc_report *report)
{
    struct buf record = {0};

    proto_write(&record, report_fields, report);
    struct str value = record.len ? arena_str(a, buf_str(&record)) : STR("");
    buf_release(&record);
    return value;
}

int lake_gc_report(struct lake *l, struct arena *a, const struct lake_repo *r,
                   struct lake_gc_report *out, struct err *err)
{
    struct kv_value row;
    int code = lake_row_get(l, a, r, report_key(a, r), NULL, &row, err);

    *out = (struct lake_gc_report){0};
    if (code < 0 || !kv_is_there(&row))
        return code;
    return proto_read(out, report_fields, a, row.bytes, NULL) < 0
               ? err_set(err, ERR_CORRUPT, "the report of the collection is damaged")
               : 0;
}

/* --- asking --- */

/* Tries once to ask for a run. ERR_AGAIN: the repository's record or the state of the collector has
 * changed, and the caller tries again. */
static int ask_try(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_gc_report *report, struct err *err)
{
    struct gc_state state;
    struct lake_tx tx;
    int code = gc_state_load(l, a, r, &state, err);

    if (code < 0)
        return code;
    if (state.phase == GC_HELD)
        return err_set(err, ERR_BUSY, "the refs of the repository are being restored");
    if (state.phase != GC_IDLE)
        return err_set(err, ERR_BUSY, "a collection is under way");
    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_check(&tx, gc_key_state(a, r->partition), state.stamp);
    lake_tx_put(&tx, report_key(a, r), report_encode(a, report));
    code = lake_tx_write(l, &tx, NULL, err);
    return code == ERR_PRECONDITION ? ERR_AGAIN : code;
}

int lake_gc_ask(struct lake *l, struct arena *a, const struct lake_repo *r, bool mark_only,
                struct lake_gc_report *out, struct err *err)
{
    char run[ID_TIME_LEN + 1];
    struct lake_repo now = *r;
    int code = ERR_AGAIN;

    id_time(run);
    *out = (struct lake_gc_report){.run = arena_str(a, str_z(run)),
                                   .stage = LAKE_GC_ASKED,
                                   .mark_only = mark_only,
                                   .started_ms = clock_wall_ms()};
    out->updated_ms = out->started_ms;
    for (int i = 0; i < LAKE_HEAD_TRIES && code == ERR_AGAIN; i++) {
        code = i > 0 ? lake_repo_again(l, a, r, &now, err) : 0;
        if (code == 0)
            code = ask_try(l, a, &now, out, err);
    }
    return code == ERR_AGAIN ? err_code(err, ERR_BUSY) : code;
}

int lake_gc_allow(struct lake *l, struct arena *a, const struct lake_repo *r, struct err *err)
{
    struct gc_state state, next;
    struct lake_tx tx;
    int code = gc_state_load(l, a, r, &state, err);

    if (code < 0 || state.phase != GC_HELD)
        return code;
    next = state;
    next.phase = GC_IDLE;
    lake_tx_init(&tx, a);
    gc_state_change(&tx, r, &state, &next);
    code = lake_tx_write(l, &tx, NULL, err);
    return code == ERR_PRECONDITION ? 0 : code; /* another process has left the phase GC_HELD */
}

/* --- carrying out --- */

int gc_run_check(const struct gc_run *g, struct err *err)
{
    return g->ended && g->ended(g->ctx) ? err_code(err, ERR_CANCELED) : 0;
}

int gc_run_sorter(const struct gc_run *g, struct gc_sorter **out, size_t bytes, struct err *err)
{
    const struct lake_options *o = &g->lake->o;

    return gc_sorter_open(out, o->folder, o->gc_bytes ? o->gc_bytes : bytes, err);
}

int gc_run_ask_claim(struct gc_run *g, struct err *err)
{
    int code = lake_claim_may_remove(g->lake, g->repo, g->watch, err);

    /* Without a claim the files may be those of another lake. */
    return code == ERR_NOT_FOUND ? ERR_IN_USE : code;
}

static int run_lost(struct err *err)
{
    return err_set(err, ERR_BUSY, "another process goes on with the collection");
}

int gc_run_write(struct gc_run *g, struct lake_tx *tx, struct err *err)
{
    size_t failed = 0, check = tx->count;

    lake_tx_check(tx, gc_key_state(tx->arena, g->repo->partition), g->state.stamp);
    int code = lake_tx_write(g->lake, tx, &failed, err);
    if (code != ERR_PRECONDITION)
        return code;
    return failed == check ? run_lost(err) : ERR_AGAIN;
}

int gc_run_enter(struct gc_run *g, enum gc_phase phase, struct err *err)
{
    struct gc_state next = g->state;
    struct lake_tx tx;

    next.phase = phase;
    if (g->report.stage != LAKE_GC_FAILED)
        g->report.error = STR_EMPTY;
    g->report.updated_ms = clock_wall_ms();
    lake_tx_init(&tx, g->arena);
    gc_state_change(&tx, g->repo, &g->state, &next);
    lake_tx_put(&tx, report_key(g->arena, g->repo), report_encode(g->arena, &g->report));
    lake_step_begin("lake.gc_mark");
    int code = lake_tx_write(g->lake, &tx, NULL, err);
    lake_step_end("lake.gc_mark");
    return code == ERR_PRECONDITION ? run_lost(err) : code;
}

/* G1: begins the run that was asked for. If this lake may not remove files of the namespace, the
 * run does not begin, so that no commit is marked as expired. */
static int run_begin(struct gc_run *g, struct err *err)
{
    uint64_t grace = g->lake->o.gc_grace_ms ? g->lake->o.gc_grace_ms : MS_PER_DAY;
    int code = g->report.mark_only ? 0 : gc_run_ask_claim(g, err);

    if (code < 0)
        return code;
    g->state.run = g->report.run;
    g->state.mark_only = g->report.mark_only;
    g->state.cutoff_ms = clock_wall_ms() - (int64_t)grace;
    g->report.cutoff_ms = g->state.cutoff_ms;
    g->report.stage = LAKE_GC_MARKING;
    return gc_run_enter(g, GC_MARKING, err);
}

/* Does the marking. After a crash marking starts again, and files that an earlier try put on the
 * list may stay on it: a reference that was made to one of them since has left a mark. */
static int run_mark(struct gc_run *g, struct err *err)
{
    struct lake_gc_report *r = &g->report;

    r->bodies_listed = r->bodies_dead = r->bodies_dead_bytes = 0;
    r->nodes_listed = r->nodes_dead = r->nodes_dead_bytes = 0;
    int code = gc_remove_old_lists(g, err);
    if (code == 0)
        code = gc_mark(g, err);
    return code < 0 ? code : gc_run_enter(g, GC_CLOSED, err);
}

static int run_close(struct gc_run *g, struct err *err)
{
    int code = gc_exclude(g, err);

    if (code < 0)
        return code;
    if (!g->state.mark_only) {
        g->report.stage = LAKE_GC_REMOVING;
        return gc_run_enter(g, GC_REMOVING, err);
    }
    code = gc_remove_marks(g, err);
    g->report.stage = LAKE_GC_DONE;
    return code < 0 ? code : gc_run_enter(g, GC_IDLE, err);
}

static int run_remove(struct gc_run *g, struct err *err)
{
    int code = gc_remove(g, err);

    if (code == 0)
        code = gc_remove_uploads(g, err);
    if (code == 0)
        code = gc_remove_marks(g, err);
    g->report.stage = LAKE_GC_DONE;
    return code < 0 ? code : gc_run_enter(g, GC_IDLE, err);
}

/* Writes into the report why a try failed, unless another process has gone on with the run. */
static void run_note_error(struct lake *l, const struct lake_repo *r, const struct err *failed)
{
    struct arena a = {0};
    struct lake_gc_report report;
    struct gc_state state;
    struct err ignored = {0};
    struct lake_tx tx;
    int code = gc_state_load(l, &a, r, &state, &ignored);

    if (code == 0)
        code = lake_gc_report(l, &a, r, &report, &ignored);
    if (code == 0) {
        report.error = str_z(failed->text);
        report.updated_ms = clock_wall_ms();
        lake_tx_init(&tx, &a);
        lake_tx_check(&tx, gc_key_state(&a, r->partition), state.stamp);
        lake_tx_put(&tx, report_key(&a, r), report_encode(&a, &report));
        code = lake_tx_write(l, &tx, NULL, &ignored);
    }
    if (code < 0)
        log_warn(l->o.log, "lake.gc_report", log_z("error", failed->text));
    arena_release(&a);
}

/* Ends a run that may not remove files. The files stay, and the report has the reason. ERR_IN_USE:
 * the run has ended. */
static int run_refuse(struct gc_run *g, const struct err *why, struct err *err)
{
    int code = g->state.phase == GC_IDLE ? 0 : gc_abandon(g, err);

    if (code == ERR_BUSY)
        run_note_error(g->lake, g->repo, why);
    g->report.stage = LAKE_GC_FAILED;
    g->report.error = arena_str(g->arena, str_z(why->text));
    if (code == 0)
        code = gc_run_enter(g, GC_IDLE, err);
    return code < 0 ? code : err_set(err, ERR_IN_USE, "%s", why->text);
}

static int (*const run_phases[])(struct gc_run *g, struct err *err) = {
    [GC_IDLE] = run_begin,
    [GC_MARKING] = run_mark,
    [GC_CLOSED] = run_close,
    [GC_REMOVING] = run_remove,
};

static bool run_has_work(const struct gc_run *g)
{
    return g->state.phase == GC_IDLE ? g->report.stage == LAKE_GC_ASKED
                                     : g->state.phase < ARRAY_SIZE(run_phases);
}

static int run_phase(struct gc_run *g, struct err *err)
{
    int code = gc_state_load(g->lake, g->arena, g->repo, &g->state, err);

    if (code == 0)
        code = lake_gc_report(g->lake, g->arena, g->repo, &g->report, err);
    if (code < 0)
        return code;
    if (!run_has_work(g))
        return ERR_END;
    struct err why = {0};
    code = run_phases[g->state.phase](g, &why);
    if (code == ERR_IN_USE)
        code = run_refuse(g, &why, err);
    else if (code < 0)
        *err = why;
    gc_sorter_close(g->live);
    gc_sorter_close(g->safe);
    gc_sorter_close(g->expired);
    return code;
}

int lake_gc_work(struct lake *l, const struct lake_repo *r, bool (*ended)(void *ctx), void *ctx,
                 struct err *err)
{
    struct lake_claim_watch watch = {0};
    int code = 0;

    while (code == 0) {
        struct arena a = {0};
        struct gc_run g = {
            .lake = l, .repo = r, .arena = &a, .ended = ended, .ctx = ctx, .watch = &watch};
        code = run_phase(&g, err);
        arena_release(&a);
    }
    if (code < 0 && code != ERR_END && code != ERR_BUSY && code != ERR_CANCELED &&
        code != ERR_IN_USE)
        run_note_error(l, r, err);
    return code == ERR_END ? 0 : code;
}
