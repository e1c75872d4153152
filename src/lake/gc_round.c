/* Rounds: collections that start by themselves, one repository after the other
 * (docs/lake-keeping.md, "Rounds").
 *
 * The row `gc-round` names the repository whose turn it is. Every change of the row is made on the
 * condition that the row is as it was read. So if two processes want to take the same step, one of
 * them wins. */
#include "lake/gc_int.h"

#include "base/clock.h"

enum {
    ROUND_LOOK_MS = MS_PER_S, /* time between two checks whether a run has ended */
    ROUND_PATIENCE_MS = 6 * MS_PER_HOUR,
    ROUND_PAGE = 100,
};

static const struct proto_field round_fields[] = {
    PROTO_FIELD(1, PROTO_TIME, struct gc_round, started_ms),
    PROTO_FIELD(2, PROTO_TIME, struct gc_round, ended_ms),
    PROTO_FIELD(3, PROTO_STR, struct gc_round, turn),
    PROTO_FIELD(4, PROTO_TIME, struct gc_round, asked_ms),
    {0},
};

/* --- the row --- */

static struct kv_name round_key(void)
{
    return (struct kv_name){LAKE_PARTITION, STR("gc-round")};
}

void gc_round_write(struct buf *out, const struct gc_round *round)
{
    proto_write(out, round_fields, round);
}

int gc_round_read(struct gc_round *out, const struct kv_value *row, struct err *err)
{
    *out = (struct gc_round){.stamp = row->stamp};
    return proto_read(out, round_fields, NULL, row->bytes, NULL) < 0
               ? err_set(err, ERR_CORRUPT, "the record of the round of collections is damaged")
               : 0;
}

/* Reads the row. A lake without the row counts as one whose last round ended long ago. */
static int round_load(struct lake *l, struct arena *a, struct gc_round *out, struct err *err)
{
    struct kv_value row;
    int code = kv_get(l->kv, NULL, a, round_key(), &row, err);

    *out = (struct gc_round){.is_new = code == ERR_NOT_FOUND, .ended_ms = 1};
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    return gc_round_read(out, &row, err);
}

/* Writes the row. ERR_AGAIN: another process has changed the row since it was read, and nothing was
 * written. */
static int round_save(struct lake *l, struct arena *a, const struct gc_round *old,
                      const struct gc_round *next, struct err *err)
{
    struct buf record = {0};
    struct lake_tx tx;

    gc_round_write(&record, next);
    lake_tx_init(&tx, a);
    lake_tx_put_if(&tx, round_key(), buf_str(&record), old->is_new ? KV_ABSENT : KV_SAME,
                   old->stamp);
    int code = lake_tx_write(l, &tx, NULL, err);
    buf_release(&record);
    return code == ERR_PRECONDITION ? ERR_AGAIN : code;
}

/* --- the next repository --- */

/* Finds the first repository of the page that has rules. */
static int round_page(struct lake *l, struct arena *a, struct lake_page *page, bool *more,
                      struct lake_repo *out, struct err *err)
{
    struct lake_repo *repos;
    struct lake_gc_rules rules;
    size_t count = 0;
    int code = lake_repo_list(l, a, page, &repos, &count, more, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        struct arena work = {0};
        page->after = repos[i].id;
        code = lake_gc_rules_get(l, &work, &repos[i], &rules, err);
        arena_release(&work);
        /* A repository whose rules cannot be read gets a turn too: its run fails, and the report
         * has the error. */
        if (code == 0 || code == ERR_CORRUPT) {
            *out = repos[i];
            return 0;
        }
        code = code == ERR_NOT_FOUND ? 0 : code;
    }
    return code < 0 ? code : ERR_NOT_FOUND;
}

/* Finds the next repository with rules. ERR_END: no repository whose name is greater than `after`
 * has rules. */
static int round_next(struct lake *l, struct arena *a, struct str after, struct lake_repo *out,
                      struct err *err)
{
    struct lake_page page = {.after = after, .limit = ROUND_PAGE};
    bool more = true;
    int code = ERR_NOT_FOUND;

    while (code == ERR_NOT_FOUND && more)
        code = round_page(l, a, &page, &more, out, err);
    return code == ERR_NOT_FOUND ? ERR_END : code;
}

/* --- a turn --- */

/* Asks for the run of a turn. ERR_BUSY, ERR_NOT_FOUND: the repository cannot be collected now, and
 * the caller ends its turn. */
static int turn_ask(struct lake *l, struct arena *a, const struct lake_gc_round_options *o,
                    const struct lake_repo *repo, struct err *err)
{
    struct lake_gc_report report;
    int code = lake_gc_ask(l, a, repo, false, &report, err);

    return code < 0 ? code : o->begin(o->ctx, repo, err);
}

/* Sets *out to whether the turn goes on. If the process that began the turn died before it asked
 * for the run, this function asks for the run. A turn whose run takes too long ends, so that other
 * repositories need not wait. */
static int turn_goes_on(struct lake *l, struct arena *a, const struct lake_gc_round_options *o,
                        const struct gc_round *round, bool *out, struct err *err)
{
    struct lake_gc_report report = {0};
    struct lake_repo repo;
    int code = lake_repo_get(l, a, round->turn, &repo, err);

    *out = false;
    if (code == 0)
        code = lake_gc_report(l, a, &repo, &report, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    bool is_active = report.stage >= LAKE_GC_ASKED && report.stage <= LAKE_GC_REMOVING;
    bool is_late = clock_wall_ms() > round->asked_ms + ROUND_PATIENCE_MS;
    if (is_late || (!is_active && report.started_ms >= round->asked_ms))
        return 0;
    code = is_active ? o->begin(o->ctx, &repo, err) : turn_ask(l, a, o, &repo, err);
    *out = code == 0;
    return code == ERR_BUSY || code == ERR_NOT_FOUND ? 0 : code;
}

/* Begins the turn of the next repository, or ends the round. */
static int turn_begin(struct lake *l, struct arena *a, const struct lake_gc_round_options *o,
                      const struct gc_round *round, struct err *err)
{
    struct gc_round next = *round;
    struct lake_repo repo;
    int code = round_next(l, a, round->turn, &repo, err);
    bool is_over = code == ERR_END;

    if (code < 0 && !is_over)
        return code;
    if (is_over)
        next.ended_ms = clock_wall_ms();
    else
        next.turn = repo.id;
    next.asked_ms = clock_wall_ms();
    code = round_save(l, a, round, &next, err);
    if (code == 0 && !is_over)
        code = turn_ask(l, a, o, &repo, err);
    /* the next call gives the turn to the next repository */
    return code == ERR_BUSY || code == ERR_NOT_FOUND ? 0 : code;
}

/* --- a step --- */

static int round_begin(struct lake *l, struct arena *a, const struct gc_round *round,
                       struct err *err)
{
    struct gc_round next = {.started_ms = clock_wall_ms()};

    return round_save(l, a, round, &next, err);
}

static int round_step(struct lake *l, struct arena *a, const struct lake_gc_round_options *o,
                      uint64_t *wait_ms, struct err *err)
{
    struct gc_round round = {0};
    bool goes_on = false;
    int code = round_load(l, a, &round, err);
    int64_t left = round.started_ms + (int64_t)o->every_ms - clock_wall_ms();

    *wait_ms = ROUND_LOOK_MS;
    if (code == 0 && round.ended_ms && left > 0) {
        *wait_ms = (uint64_t)left;
        return 0;
    }
    if (code == 0 && round.ended_ms) {
        *wait_ms = 0;
        return round_begin(l, a, &round, err);
    }
    if (code == 0 && round.turn.len)
        code = turn_goes_on(l, a, o, &round, &goes_on, err);
    if (code == 0 && !goes_on)
        code = turn_begin(l, a, o, &round, err);
    return code;
}

int lake_gc_round(struct lake *l, const struct lake_gc_round_options *o, uint64_t *wait_ms,
                  struct err *err)
{
    struct arena a = {0};
    int code = round_step(l, &a, o, wait_ms, err);

    arena_release(&a);
    return code == ERR_AGAIN ? 0 : code;
}
