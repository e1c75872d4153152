/* Makes, lists, changes and merges pull requests. */
#include "lake/pulls.h"

#include "base/clock.h"
#include "base/ids.h"
#include "lake/lake_int.h"

static const struct proto_field pull_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_pull, id),
    PROTO_FIELD(2, PROTO_U32, struct lake_pull, status),
    PROTO_FIELD(3, PROTO_TIME, struct lake_pull, created_ms),
    PROTO_FIELD(4, PROTO_STR, struct lake_pull, title),
    PROTO_FIELD(5, PROTO_STR, struct lake_pull, author),
    PROTO_FIELD(6, PROTO_STR, struct lake_pull, description),
    PROTO_FIELD(7, PROTO_STR, struct lake_pull, source),
    PROTO_FIELD(8, PROTO_STR, struct lake_pull, destination),
    PROTO_FIELD(9, PROTO_STR, struct lake_pull, commit_id),
    PROTO_FIELD(10, PROTO_TIME, struct lake_pull, closed_ms),
    {0},
};

static struct kv_name pull_key(struct arena *a, const struct lake_repo *r, struct str id)
{
    return lake_key_in(a, r->partition, "pulls", id);
}

void lake_pull_write(struct buf *out, const struct lake_pull *p)
{
    proto_write(out, pull_fields, p);
}

int lake_pull_read(struct lake_pull *out, struct str in, struct err *err)
{
    *out = (struct lake_pull){0};
    if (proto_read(out, pull_fields, NULL, in, err) < 0 || out->status >= LAKE_PULL_STATUSES)
        return err_set(err, ERR_CORRUPT, "a pull request cannot be read");
    return 0;
}

/* Puts the record. The write fails if the row has changed since p->stamp was read; an empty stamp
 * means that there must be no row. */
static int pull_save(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct lake_pull *p, struct err *err)
{
    struct buf record = {0};
    struct lake_tx tx;
    size_t failed = 0;

    lake_pull_write(&record, p);
    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_put_if(&tx, pull_key(a, r, p->id), lake_tx_record(&tx, &record),
                   p->stamp.len ? KV_SAME : KV_ABSENT, p->stamp);
    int code = lake_tx_write(l, &tx, &failed, err);
    return code == ERR_PRECONDITION && failed == 0
               ? err_set(err, ERR_NOT_FOUND, "repository not found")
               : code;
}

static int pull_check_texts(const struct lake_pull *p, struct err *err)
{
    if (!p->title.len || p->title.len > LAKE_PULL_TITLE_MAX)
        return err_set(err, ERR_INVALID, "a title has 1 to %d bytes", LAKE_PULL_TITLE_MAX);
    return p->description.len <= LAKE_PULL_TEXT_MAX
               ? 0
               : err_set(err, ERR_INVALID, "a description has at most %d bytes",
                         LAKE_PULL_TEXT_MAX);
}

int lake_pull_create(struct lake *l, struct arena *a, const struct lake_repo *r,
                     const struct lake_pull *wanted, struct lake_pull *out, struct err *err)
{
    struct lake_branch branch;
    char id[ID_TIME_LEN + 1];
    int code = pull_check_texts(wanted, err);

    if (code == 0 && str_eq(wanted->source, wanted->destination))
        code = err_set(err, ERR_INVALID, "source and destination are the same branch");
    if (code == 0)
        code = lake_branch_get(l, a, r, wanted->source, &branch, err);
    if (code == 0)
        code = lake_branch_get(l, a, r, wanted->destination, &branch, err);
    if (code < 0)
        return code;
    id_time(id);
    *out = *wanted;
    out->id = arena_lower(a, str_z(id));
    out->status = LAKE_PULL_OPEN;
    out->created_ms = clock_wall_ms();
    out->commit_id = out->stamp = STR_EMPTY;
    out->closed_ms = 0;
    return pull_save(l, a, r, out, err);
}

int lake_pull_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                  struct lake_pull *out, struct err *err)
{
    struct kv_value value;
    int code = lake_row_get(l, a, r, pull_key(a, r, id), "pull request not found", &value, err);

    if (code == 0)
        code = lake_pull_read(out, value.bytes, err);
    if (code == 0)
        out->stamp = value.stamp;
    return code;
}

/* Reads a row of a list. ERR_AGAIN: the caller did not ask for pull requests with this status; the
 * row is skipped. */
static int pull_read_row(void *item, void *ctx, struct arena *a, struct str record, struct err *err)
{
    const unsigned *statuses = ctx;
    struct lake_pull *p = item;
    int code = lake_pull_read(p, record, err);

    (void)a;
    return code == 0 && !(*statuses & 1u << p->status) ? ERR_AGAIN : code;
}

int lake_pull_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                   const struct lake_page *p, unsigned statuses, struct lake_pull **out,
                   size_t *count, bool *more, struct err *err)
{
    struct lake_rows rows = {.repo = r,
                             .partition = r->partition,
                             .kind = "pulls",
                             .item_size = sizeof(struct lake_pull),
                             .read = pull_read_row,
                             .ctx = &statuses};
    void *items = NULL;
    int code = lake_rows_page(l, a, &rows, p, &items, count, more, err);

    *out = items;
    return code;
}

static int pull_apply(struct lake_pull *p, const struct lake_pull_change *change, struct err *err)
{
    bool sets = change->status != LAKE_PULL_STATUSES;

    if (sets && p->status == LAKE_PULL_MERGED)
        return err_set(err, ERR_CONFLICT, "the pull request was merged");
    if (change->title)
        p->title = *change->title;
    if (change->description)
        p->description = *change->description;
    if (sets && change->status != p->status) {
        p->status = change->status;
        p->closed_ms = change->status == LAKE_PULL_CLOSED ? clock_wall_ms() : 0;
    }
    return pull_check_texts(p, err);
}

int lake_pull_update(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                     const struct lake_pull_change *change, struct err *err)
{
    struct lake_pull p;
    int code = ERR_PRECONDITION;

    for (int i = 0; i < LAKE_HEAD_TRIES && code == ERR_PRECONDITION; i++) {
        code = lake_pull_get(l, a, r, id, &p, err);
        if (code == 0)
            code = pull_apply(&p, change, err);
        if (code == 0)
            code = pull_save(l, a, r, &p, err);
    }
    return code == ERR_PRECONDITION ? err_code(err, ERR_BUSY) : code;
}

/* Records the merge in the pull request's record. If the record was changed meanwhile, reads it
 * again and tries once more. */
static int pull_note_merge(struct lake *l, struct arena *a, const struct lake_repo *r,
                           struct lake_pull *p, struct str commit_id, struct err *err)
{
    int code = ERR_PRECONDITION;

    for (int i = 0; i < LAKE_HEAD_TRIES && code == ERR_PRECONDITION; i++) {
        if (i > 0 && (code = lake_pull_get(l, a, r, p->id, p, err)) < 0)
            return code;
        p->status = LAKE_PULL_MERGED;
        p->commit_id = commit_id;
        p->closed_ms = clock_wall_ms();
        code = pull_save(l, a, r, p, err);
    }
    return code == ERR_PRECONDITION ? err_code(err, ERR_BUSY) : code;
}

int lake_pull_merge(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    const struct lake_merge_options *o, struct lake_pull *out,
                    struct lake_conflicts *conflicts, struct err *err)
{
    struct lake_merge_options how = *o;
    struct lake_commit commit;
    int code = lake_pull_get(l, a, r, id, out, err);

    if (code == 0 && out->status != LAKE_PULL_OPEN)
        code = err_set(err, ERR_CONFLICT, "the pull request is not open");
    if (code < 0)
        return code;
    if (!how.message.len)
        how.message = out->title;
    code = lake_merge(l, a, r, out->source, out->destination, &how, &commit, conflicts, err);
    return code == 0 ? pull_note_merge(l, a, r, out, commit.id, err) : code;
}
