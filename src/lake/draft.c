/* Draft tokens: writes rows before a branch names their token. */
#include "lake/change.h"
#include "lake/clean.h"

#include "base/clock.h"

enum {
    DRAFT_ROWS = 1000, /* most rows of one write */
    /* when the names and values of a write have reached this size, the next row begins another
     * write */
    DRAFT_BYTES = 4 * MIB,
};

/* Rows that are written together. */
struct draft_batch {
    struct lake_draft *draft;
    struct lake *lake;
    struct arena *kept; /* lives as long as the draft */
    struct arena arena; /* memory of the rows; emptied after each write */
    struct lake_tx tx;
    size_t bytes;        /* size of the names and values of `tx` */
    uint64_t renewed_ms; /* when the row on the cleanup list was written, by clock_mono_ms() */
};

/* Puts the token on the cleanup list, marked as a draft. */
static int draft_announce(struct lake_draft *d, struct lake *l, struct arena *a, struct err *err)
{
    struct kv_name name = lake_key_cleanup(a, d->token);
    struct kv_change put = {KV_PUT,    name,      cleanup_row_new(a, CLEANUP_DRAFT),
                            KV_ABSENT, STR_EMPTY, d->frees};
    int code = arena_error(a);

    if (code == 0)
        code = kv_write_get(l->kv, &put, 1, NULL, a, &name, 1, &d->row, err);
    if (code == 0 && !kv_is_there(&d->row))
        code = err_set(err, ERR_CONFLICT, "the cleaner has taken a draft token");
    return code;
}

static void draft_batch_begin(struct draft_batch *b)
{
    lake_tx_init(&b->tx, &b->arena);
    b->tx.frees = b->draft->frees;
    b->bytes = 0;
}

static bool draft_is_old(const struct draft_batch *b)
{
    return clock_mono_ms() >= b->renewed_ms + b->lake->draft_renew_ms;
}

/* Adds the condition that the cleaner has not given the draft up. A row of a draft that was given
 * up would be in a partition that is on no list any more. If the draft's row on the cleanup list is
 * old, the write puts it anew, so that the cleaner leaves the draft alone. `row` gets the row as it
 * is after the write. */
static void draft_hold(struct draft_batch *b, struct kv_value *row)
{
    struct kv_name name = lake_key_cleanup(&b->arena, b->draft->token);
    struct str stamp = b->draft->row.stamp;

    *row = b->draft->row;
    if (!draft_is_old(b)) {
        lake_tx_check(&b->tx, name, stamp);
        return;
    }
    row->bytes = row->stamp = cleanup_row_new(b->kept, CLEANUP_DRAFT);
    lake_tx_put_if(&b->tx, name, row->bytes, KV_SAME, stamp);
    b->renewed_ms = clock_mono_ms();
}

/* Writes the rows of the batch. ERR_AGAIN: the cleaner has given the draft up. */
static int draft_flush(struct draft_batch *b, struct err *err)
{
    size_t count = b->tx.count;
    struct kv_value row;

    draft_hold(b, &row);
    int code = lake_tx_write(b->lake, &b->tx, NULL, err);
    if (code == 0) {
        b->draft->count += count;
        b->draft->row = row;
    }
    arena_reset(&b->arena);
    draft_batch_begin(b);
    return code == ERR_PRECONDITION ? ERR_AGAIN : code;
}

static int draft_add(struct draft_batch *b, const struct layers_row *row, struct err *err)
{
    struct lake_staged staged = {row->identity, row->data};
    struct buf record = BUF_INIT(KV_VALUE_MAX);

    lake_staged_write(&record, &staged);
    struct str value = record.len ? arena_str(&b->arena, buf_str(&record)) : STR("");
    int code = buf_error(&record);
    buf_release(&record);
    if (code == 0)
        code = arena_error(&b->arena);
    if (code < 0)
        return err_code(err, code);
    lake_tx_put(&b->tx, lake_key_staged(&b->arena, b->draft->token, row->path), value);
    b->bytes += b->draft->token.len + row->path.len + value.len;
    return b->tx.count == DRAFT_ROWS || b->bytes >= DRAFT_BYTES ? draft_flush(b, err) : 0;
}

/* Writes the rows of the walk that `fn` keeps. ERR_END from `fn` ends the walk. A walk that keeps
 * few rows writes seldom, so it also writes when the draft's row has become old. */
static int draft_fill(struct draft_batch *b, struct layers *walk, draft_row_fn *fn, void *ctx,
                      struct err *err)
{
    struct arena work = {0};
    struct layers_row row;
    bool keep = true;
    int code = 0;

    while (code == 0 && (code = layers_next(walk, &row, err)) == 0) {
        code = fn ? fn(ctx, &work, &row, &keep, err) : 0;
        if (code == 0 && keep)
            code = draft_add(b, &row, err);
        if (code == 0 && draft_is_old(b))
            code = draft_flush(b, err);
        arena_reset(&work);
    }
    arena_release(&work);
    if (code == ERR_END)
        code = b->tx.count ? draft_flush(b, err) : 0;
    return code;
}

int draft_make(struct lake_draft *out, struct lake *l, struct arena *a, const struct lake_repo *r,
               struct str branch, struct layers *walk, draft_row_fn *fn, void *ctx, struct err *err)
{
    *out = (struct lake_draft){.token = lake_new_token(a, r, branch), .frees = out->frees};
    int code = draft_announce(out, l, a, err);
    if (code < 0)
        return code;
    struct draft_batch batch = {.draft = out, .lake = l, .kept = a, .renewed_ms = clock_mono_ms()};
    draft_batch_begin(&batch);
    code = draft_fill(&batch, walk, fn, ctx, err);
    arena_release(&batch.arena);
    if (code < 0 || out->count == 0)
        draft_give_up(out, l, a);
    return code;
}

void draft_give_up(struct lake_draft *d, struct lake *l, struct arena *a)
{
    struct err ignored = {0};

    /* If the row cannot be changed now, it stays marked as a draft, and the cleaner drops the token
     * when the draft is old. */
    if (d->token.len && cleanup_row_set(l, a, d->token, CLEANUP_DROP, d->row.stamp, &ignored) == 0)
        lake_cleaner_wake(l);
    *d = (struct lake_draft){0};
}
