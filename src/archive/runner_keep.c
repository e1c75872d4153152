/* The keeper: checks the schedule once a second, and corrects it (archive/runner.h;
 * docs/archive.md, U5 and U6). */
#include "archive/runner_int.h"

#include "base/clock.h"

enum {
    KEEP_MS = MS_PER_S,
    MEND_WHOLE_MS = 10 * MS_PER_MINUTE, /* a whole pass begins this long after the last one */
    /* Least pause between two passes of all processes when counts disagree. */
    MEND_TURN_MS = MS_PER_S,
    /* Longest pause while passes do not make the counts agree. */
    MEND_PAUSE_MAX_MS = MS_PER_MINUTE,
    REBUILD_PAUSE_MS = 10 * MS_PER_S, /* pause between two searches for slots that are not built */
};

/* Writes the table of slots to the store if the store has none, or an older one. *epoch becomes the
 * epoch of the table; 0: there is no table, because the archive was never used. */
static int keep_map(struct runner *r, const struct schedule_counts *c, uint32_t *epoch,
                    struct err *err)
{
    struct slots table = {0};

    r->o.table(r->o.ctx, &table);
    *epoch = table.epoch;
    if (table.epoch <= c->map_epoch)
        return 0;
    int code = schedule_map(r->o.schedule, &table, err);
    if (code == 0)
        r->mend_whole = true;
    return code;
}

/* Adds the tasks of slots that are not built. Without a table of slots there is nothing to list, so
 * an archive that was never used costs nothing. */
static int keep_rebuild(struct runner *r, const struct schedule_counts *c, uint32_t epoch,
                        struct err *err)
{
    uint64_t now_ns = clock_mono_ns();

    if (!r->o.rebuild || epoch == 0 || c->built == SLOT_COUNT || now_ns < r->rebuild_ns)
        return 0;
    r->rebuild_ns = now_ns + REBUILD_PAUSE_MS * NS_PER_MS;
    return rebuild_missing(r->o.rebuild, NULL, err);
}

static bool keep_counts_agree(const struct schedule_counts *c)
{
    return c->tracked == c->ready + c->leased + c->held + c->odd;
}

static int keep_mend(struct runner *r, bool whole, struct err *err)
{
    struct schedule_mend m = {
        .found = r->o.found, .ctx = r->o.ctx, .whole = whole, .cancel = &r->stopping};
    int code = schedule_mend(r->o.schedule, &m, err);

    mutex_lock(&r->lock);
    r->numbers.mends++;
    r->numbers.found += m.found_count;
    r->numbers.dropped += m.dropped;
    mutex_unlock(&r->lock);
    if (m.found_count || m.dropped || m.future)
        log_info(r->o.log, "archive.mended", log_u("found", m.found_count),
                 log_u("dropped", m.dropped), log_u("moved", m.moved), log_u("future", m.future));
    return code;
}

/* Mends the indexes when the counts disagree, when the table has changed, and every ten minutes.
 * One process mends for all. If passes do not help, for example because a satellite is down, the
 * pauses between them grow. */
static int keep_look(struct runner *r, const struct schedule_counts *c, struct err *err)
{
    bool agree = keep_counts_agree(c), mine = false;
    uint64_t now_ns = clock_mono_ns();
    int code;

    if (agree)
        r->mend_pause_ms = 0;
    if (r->mend_whole) {
        r->mend_whole = false;
        return keep_mend(r, true, err);
    }
    if (!agree && now_ns < r->mend_ns)
        return 0;
    code = agree ? schedule_turn(r->o.schedule, STR("whole"), MEND_WHOLE_MS, &mine, err)
                 : schedule_turn(r->o.schedule, STR("mend"), MEND_TURN_MS, &mine, err);
    if (code < 0 || !mine)
        return code;
    if (!agree) {
        r->mend_pause_ms = r->mend_pause_ms ? 2 * r->mend_pause_ms : KEEP_MS;
        if (r->mend_pause_ms > MEND_PAUSE_MAX_MS)
            r->mend_pause_ms = MEND_PAUSE_MAX_MS;
        r->mend_ns = now_ns + r->mend_pause_ms * NS_PER_MS;
    }
    return keep_mend(r, agree, err);
}

struct loop_sleep runner_keep(void *ctx)
{
    struct runner *r = ctx;
    struct schedule_counts counts = {0};
    uint32_t epoch = 0;
    struct err err = {0};
    int code = schedule_counts(r->o.schedule, false, 0, &counts, &err);

    if (code == 0) {
        mutex_lock(&r->lock);
        r->numbers.counts = counts;
        mutex_unlock(&r->lock);
        code = keep_map(r, &counts, &epoch, &err);
    }
    if (code == 0)
        code = keep_rebuild(r, &counts, epoch, &err);
    if (code == 0 && counts.map_epoch > 0)
        code = keep_look(r, &counts, &err);
    if (code < 0 && code != ERR_SHUTDOWN)
        log_warn(r->o.log, "archive.keeper", log_z("error", err.text));
    return loop_sleep_ms(KEEP_MS);
}
