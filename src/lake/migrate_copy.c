/* Copies the rows of one repository. Every batch of rows is written together with the mark, which
 * records the last row that was copied. So a copy that was stopped continues after the last batch
 * (D8). */
#include "lake/migrate_int.h"

enum { COPY_BATCH = 500, COPY_BATCH_BYTES = 8 << 20 };

/* --- marks --- */

static const struct proto_field mark_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct migrate_mark, token),
    PROTO_FIELD(2, PROTO_U32, struct migrate_mark, stage),
    PROTO_FIELD(3, PROTO_STR, struct migrate_mark, last),
    PROTO_FIELD(4, PROTO_STR, struct migrate_mark, branch),
    {0},
};

void migrate_mark_write(struct buf *out, const struct migrate_mark *mark)
{
    proto_write(out, mark_fields, mark);
}

int migrate_mark_read(struct migrate_mark *out, const struct kv_value *row, struct err *err)
{
    *out = (struct migrate_mark){0};
    if (proto_read(out, mark_fields, NULL, row->bytes, NULL) < 0 || out->stage > MIGRATE_ENDED)
        return err_set(err, ERR_CORRUPT, "the mark of the migration is damaged");
    out->stamp = row->stamp;
    return 0;
}

static struct kv_name mark_key(struct migrate_repo *m)
{
    return lake_key_in(&m->arena, MIGRATE_PARTITION, "repos", m->repo.id);
}

int migrate_mark_load(struct migrate_repo *m, struct err *err)
{
    struct kv_name name = mark_key(m);
    struct kv_value row = {0};
    int code = kv_get_many(m->lake->kv, NULL, &m->arena, &name, 1, &row, err);

    m->mark = (struct migrate_mark){0};
    return code < 0 || !kv_is_there(&row) ? code : migrate_mark_read(&m->mark, &row, err);
}

void migrate_mark_put(struct migrate_repo *m, struct lake_tx *tx)
{
    struct buf record = {0};

    migrate_mark_write(&record, &m->mark);
    lake_tx_put_if(tx, mark_key(m), arena_str(tx->arena, buf_str(&record)),
                   m->mark.stamp.p ? KV_SAME : KV_ABSENT, m->mark.stamp);
    buf_release(&record);
}

/* Sets the mark's stamp to the value that was written. The stamp is copied into the arena of the
 * migration, because the arena of the write is emptied for the next batch. */
void migrate_mark_written(struct migrate_repo *m)
{
    struct buf record = {0};

    migrate_mark_write(&record, &m->mark);
    m->mark.stamp = arena_str(&m->arena, buf_str(&record));
    buf_release(&record);
}

/* --- batches --- */

static void copy_begin(struct migrate_repo *m)
{
    arena_reset(&m->batch);
    lake_tx_init(&m->tx, &m->batch);
}

/* Writes the rows of the batch and the mark. */
static int copy_write(struct migrate_repo *m, struct err *err)
{
    size_t failed = 0, mark_at = m->tx.count;

    migrate_mark_put(m, &m->tx);
    lake_step_begin("lake.migrate_row");
    int code = lake_tx_write(m->lake, &m->tx, &failed, err);
    lake_step_end("lake.migrate_row");
    if (code == ERR_PRECONDITION)
        return failed == mark_at
                   ? err_set(err, ERR_BUSY, "another process migrates the repository")
                   : err_set(err, ERR_EXISTS, "the row " STR_FMT " of " STR_FMT " is there already",
                             STR_ARG(m->tx.changes[failed].name.key),
                             STR_ARG(m->tx.changes[failed].name.partition));
    if (code == 0)
        migrate_mark_written(m);
    copy_begin(m);
    return code;
}

int migrate_mark_save(struct migrate_repo *m, struct err *err)
{
    copy_begin(m);
    return copy_write(m, err);
}

/* --- rows --- */

struct copy {
    const struct migrate_table *table;
    struct str partition;
};

static int copy_row(struct migrate_repo *m, struct arena *a, const struct source_row *from,
                    void *ctx, struct err *err)
{
    const struct copy *c = ctx;
    struct migrate_row row = {0};
    int code = c->table->read(m, a, from, STR_EMPTY, &row, err);

    if (code < 0 || row.left)
        return code;
    struct kv_name name = lake_key_in(&m->batch, c->partition, c->table->kind, row.name);
    lake_tx_put_if(&m->tx, name, arena_str(&m->batch, row.value), KV_ABSENT, STR_EMPTY);
    if (row.is_first)
        lake_tx_put(&m->tx, lake_key_first(&m->batch, c->partition, row.name), STR(""));
    m->mark.last = str_skip(name.key, strlen(c->table->kind) + 1);
    return m->tx.count < COPY_BATCH && m->batch.used < COPY_BATCH_BYTES ? 0 : copy_write(m, err);
}

static struct copy copy_stage(struct migrate_repo *m, enum migrate_stage stage,
                              struct str partition)
{
    copy_begin(m);
    m->mark.stage = stage;
    return (struct copy){&migrate_tables[stage], partition};
}

/* Copies the rows of a table of the repository whose keys are greater than `after`. */
static int copy_table(struct migrate_repo *m, enum migrate_stage stage, struct str after,
                      struct err *err)
{
    struct copy c = copy_stage(m, stage, m->repo.partition);
    int code = migrate_each(m, c.table->select, m->repo.id, after, copy_row, &c, err);

    return code == 0 && m->tx.count ? copy_write(m, err) : code;
}

static int copy_staged(struct migrate_repo *m, const struct lake_branch *b, struct err *err)
{
    struct str after =
        str_eq(m->mark.branch, b->id) ? arena_str(&m->arena, m->mark.last) : STR_EMPTY;

    struct copy c = copy_stage(m, MIGRATE_STAGED, arena_str(&m->arena, b->staging));

    m->mark.branch = arena_str(&m->arena, b->id);
    int code = migrate_each_staged(m, b, after, copy_row, &c, err);
    return code == 0 && m->tx.count ? copy_write(m, err) : code;
}

int migrate_copy(struct migrate_repo *m, struct err *err)
{
    enum migrate_stage first = m->mark.stage;
    struct str last = arena_str(&m->arena, m->mark.last);
    int code = 0;

    for (enum migrate_stage stage = first; code == 0 && stage < MIGRATE_STAGED; stage++)
        code = copy_table(m, stage, stage == first ? last : STR_EMPTY, err);
    if (code == 0 && first <= MIGRATE_STAGED) {
        if (first < MIGRATE_STAGED)
            m->mark.branch = m->mark.last = STR_EMPTY;
        code = migrate_each_branch(m, m->mark.branch, copy_staged, err);
    }
    if (code < 0 || first >= MIGRATE_COPIED)
        return code;
    m->mark.stage = MIGRATE_COPIED;
    m->mark.last = m->mark.branch = STR_EMPTY;
    return migrate_mark_save(m, err);
}
