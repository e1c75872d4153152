/* The cleaner: drops the tokens of the cleanup list (docs/lake.md, C6). */
#include "lake/change.h"
#include "lake/clean.h"

#include "base/log.h"

enum {
    CLEAN_EVERY_MS = MS_PER_MINUTE,
    CLEAN_RETRY_MS = 5 * MS_PER_S,
    /* Pause after a pass that had work, so that many commits share one pass. */
    CLEAN_PAUSE_MS = MS_PER_S,
    CLEAN_BATCH = 256,            /* rows that one write removes */
    CLEAN_DRAFT_MS = MS_PER_HOUR, /* a draft of this age belongs to a process that ended */
};

/* Fields of a row. */
enum { ROW_SINCE = 1, ROW_PASSES = 2, ROW_IS_DRAFT = 3 };

struct cleanup_row {
    int64_t since_ms;
    uint64_t passes;
    bool is_draft;
};

static const struct proto_field cleanup_fields[] = {
    PROTO_FIELD(ROW_SINCE, PROTO_TIME, struct cleanup_row, since_ms),
    PROTO_FIELD(ROW_PASSES, PROTO_U64, struct cleanup_row, passes),
    PROTO_FIELD(ROW_IS_DRAFT, PROTO_BOOL, struct cleanup_row, is_draft),
    {0},
};

struct str cleanup_row_new(struct arena *a, enum cleanup_state state)
{
    struct cleanup_row row = {.since_ms = clock_wall_ms(),
                              .passes = state == CLEANUP_DROPPED,
                              .is_draft = state == CLEANUP_DRAFT};
    struct buf record = {0};

    proto_write(&record, cleanup_fields, &row);
    struct str value = arena_str(a, buf_str(&record));
    buf_release(&record);
    return value;
}

int cleanup_row_set(struct lake *l, struct arena *a, struct str token, enum cleanup_state state,
                    struct str stamp, struct err *err)
{
    struct lake_tx tx;

    lake_tx_init(&tx, a);
    tx.frees = true;
    lake_tx_put_if(&tx, lake_key_cleanup(a, token), cleanup_row_new(a, state), KV_SAME, stamp);
    return lake_tx_write(l, &tx, NULL, err);
}

/* --- one token --- */

static int token_drop(struct lake *l, struct str token, struct err *err)
{
    lake_step_begin("lake.drop");
    int code = kv_drop(l->kv, token, err);
    lake_step_end("lake.drop");
    return code;
}

/* Changes the row if it is still as it was read. The row is left alone if another cleaner has
 * changed it, or if a write has removed it because its draft is now a token of a branch. */
static int token_change_row(struct lake *l, struct arena *a, struct str token, struct str value,
                            enum cleanup_state state, struct err *err)
{
    struct kv_name name = lake_key_cleanup(a, token);
    struct kv_value now;
    int code = kv_get(l->kv, NULL, a, name, &now, err);

    if (code == 0 && str_eq(now.bytes, value))
        code = cleanup_row_set(l, a, token, state, now.stamp, err);
    return code == ERR_NOT_FOUND || code == ERR_PRECONDITION ? 0 : code;
}

/* A pass over the list. Rows of dropped tokens are removed from the list in batches. If a crash
 * comes first, the next pass drops these tokens again. */
struct clean_pass {
    struct lake *lake;
    bool waits; /* a row on the list needs another pass soon */
    size_t dropped;
    struct arena arena; /* memory of `removals` */
    struct lake_tx removals;
};

static int pass_flush(struct clean_pass *p, struct err *err)
{
    int code = p->removals.count ? lake_tx_write(p->lake, &p->removals, NULL, err) : 0;

    arena_reset(&p->arena);
    lake_tx_init(&p->removals, &p->arena);
    return code;
}

static int pass_remove_row(struct clean_pass *p, struct str token, struct err *err)
{
    struct kv_name name = lake_key_cleanup(&p->arena, arena_str(&p->arena, token));

    lake_tx_remove(&p->removals, name, KV_ALWAYS, STR_EMPTY);
    return p->removals.count == CLEAN_BATCH ? pass_flush(p, err) : 0;
}

/* Drops the token if it is time to do so. Of an old draft it changes only the row, to that of a
 * token to drop. From then on the write that would put the draft on a branch fails, and the next
 * pass drops the token. */
static int token_clean(struct clean_pass *p, struct arena *a, struct str token, struct str value,
                       struct err *err)
{
    struct lake *l = p->lake;
    struct cleanup_row row = {0};
    int code = proto_read(&row, cleanup_fields, a, value, err);
    int64_t age_ms = clock_wall_ms() - row.since_ms;

    if (code == ERR_PARSE) {
        log_error(l->o.log, "lake.cleaner.damaged_row", log_s("token", token));
        return 0;
    }
    if (code < 0 || (row.is_draft && age_ms < CLEAN_DRAFT_MS))
        return code;
    p->waits |= row.is_draft || !(l->kv->can & KV_FENCES);
    if (row.is_draft)
        return token_change_row(l, a, token, value, CLEANUP_DROP, err);
    if (row.passes > 0 && age_ms < (int64_t)l->o.drop_again_ms)
        return 0;
    code = token_drop(l, token, err);
    if (code < 0)
        return code;
    p->dropped++;
    return (l->kv->can & KV_FENCES) || row.passes > 0
               ? pass_remove_row(p, token, err)
               : token_change_row(l, a, token, value, CLEANUP_DROPPED, err);
}

/* --- the list --- */

/* Makes one pass over the list. If the loop `until` (unless NULL) is stopped, the pass ends
 * early. */
static int clean_list(struct clean_pass *p, const struct loop *until, struct err *err)
{
    struct kv_scan *scan = NULL;
    struct arena work = {0};
    struct str key, value;
    int code = kv_scan_open(&scan, p->lake->kv, NULL, LAKE_CLEANUP, &(struct kv_range){0}, err);

    lake_tx_init(&p->removals, &p->arena);
    while (code == 0 && !(until && loop_is_stopping(until)) &&
           (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        struct str token = arena_str(&work, key), row = arena_str(&work, value);
        code = token_clean(p, &work, token, row, err);
        arena_reset(&work);
    }
    if (code == 0 || code == ERR_END)
        code = pass_flush(p, err);
    arena_release(&p->arena);
    arena_release(&work);
    kv_scan_free(scan);
    return code;
}

int lake_clean(struct lake *l, struct err *err)
{
    struct clean_pass p = {.lake = l};

    return clean_list(&p, NULL, err);
}

/* --- the loop --- */

static struct loop_sleep cleaner_step(void *ctx)
{
    struct lake *l = ctx;
    struct clean_pass p = {.lake = l};
    struct err err = {0};

    lake_compact_work(l);
    int code = clean_list(&p, &l->cleaner, &err);
    if (code < 0) {
        log_warn(l->o.log, "lake.cleaner.failed", log_z("error", err.text));
        return loop_retry_ms(CLEAN_RETRY_MS);
    }
    uint64_t every_ms = l->o.clean_every_ms ? l->o.clean_every_ms : CLEAN_EVERY_MS;
    uint64_t again_ms = l->o.drop_again_ms < every_ms ? l->o.drop_again_ms : every_ms;
    if (p.dropped) /* a wake of the cleaner does not end this pause */
        return loop_retry_ms(p.waits && again_ms < CLEAN_PAUSE_MS ? again_ms : CLEAN_PAUSE_MS);
    return loop_sleep_ms(p.waits ? again_ms : every_ms);
}

int lake_cleaner_start(struct lake *l, struct err *err)
{
    struct loop_options o = {.name = "lake-cleaner", .step = cleaner_step, .ctx = l};

    return loop_start(&l->cleaner, &o, err);
}

void lake_cleaner_wake(struct lake *l)
{
    loop_wake(&l->cleaner);
}
