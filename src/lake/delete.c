/* Removes the remains of deleted repositories. */
#include "lake/delete.h"
#include "lake/claim.h"
#include "lake/files.h"

#include "base/clock.h"

/* A row of the to-delete list. */
struct deleted_row {
    struct str id, space, owner;
    int64_t since_ms;
    bool purge;
    int64_t purged_ms; /* when the files were removed for the first time; 0: not yet */
};

static const struct proto_field deleted_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct deleted_row, id),
    PROTO_FIELD(2, PROTO_TIME, struct deleted_row, since_ms),
    PROTO_FIELD(3, PROTO_BOOL, struct deleted_row, purge),
    PROTO_FIELD(4, PROTO_STR, struct deleted_row, space),
    PROTO_FIELD(5, PROTO_STR, struct deleted_row, owner),
    PROTO_FIELD(6, PROTO_TIME, struct deleted_row, purged_ms),
    {0},
};

/* The removal of one repository. */
struct deletion {
    struct lake *lake;
    struct arena *arena; /* lives as long as the deletion */
    /* the repository, filled from the row because it has no record any more */
    struct lake_repo repo;
    struct deleted_row row;
    struct str record; /* the row as it was read */
    bool has_claim;    /* the deletion may remove files of the namespace */
    struct lake_claim_watch watch;
    bool (*ended)(void *ctx);
    void *ctx;
};

static int deletion_check(const struct deletion *d, struct err *err)
{
    return d->ended && d->ended(d->ctx) ? err_code(err, ERR_CANCELED) : 0;
}

/* --- branches --- */

/* Removes the branch's record and puts its tokens on the cleanup list (lake/clean.h), in one write.
 * The repository's record is gone, so no other request changes the branch. */
static int deletion_remove_branch(struct deletion *d, struct arena *a, const struct lake_branch *b,
                                  struct err *err)
{
    struct lake_tx tx;

    lake_tx_init(&tx, a);
    lake_tx_remove(&tx, lake_key_branch(a, d->repo.partition, b->id), KV_SAME, b->stamp);
    lake_tx_drop_token(&tx, b->staging);
    for (size_t i = 0; i < b->sealed_count; i++)
        lake_tx_drop_token(&tx, b->sealed[i]);
    lake_step_begin("lake.delete_branch");
    int code = lake_tx_write(d->lake, &tx, NULL, err);
    lake_step_end("lake.delete_branch");
    return code;
}

static int deletion_branch_row(void *item, void *ctx, struct arena *a, struct str record,
                               struct err *err)
{
    struct lake_branch *b = item;
    int code = lake_branch_read(b, a, record, err);

    (void)ctx;
    b->stamp = record;
    return code;
}

/* Removes a page of branches. lake_branch_list() would find nothing, because the repository has no
 * record any more. */
static int deletion_branch_page(struct deletion *d, bool *more, struct err *err)
{
    struct lake_rows rows = {
        NULL, d->repo.partition, "branches", sizeof(struct lake_branch), deletion_branch_row, NULL};
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct lake_branch *branches;
    struct arena a = {0};
    void *items = NULL;
    size_t count = 0;
    int code = lake_rows_page(d->lake, &a, &rows, &page, &items, &count, more, err);

    branches = items;
    for (size_t i = 0; i < count && code == 0; i++) {
        code = deletion_check(d, err);
        if (code == 0)
            code = deletion_remove_branch(d, &a, &branches[i], err);
    }
    arena_release(&a);
    return code;
}

/* Removes all branches. Another process may do the same work and removes the same branches. So if
 * the record of a branch has changed, the other process has removed the branch, and the page is
 * read again. */
static int deletion_branches(struct deletion *d, struct err *err)
{
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        code = deletion_branch_page(d, &more, err);
        if (code == ERR_PRECONDITION) {
            code = 0;
            more = true;
        }
    }
    if (code == 0)
        lake_cleaner_wake(d->lake);
    return code;
}

/* --- files --- */

static int deletion_file_page(struct deletion *d, struct str folder, struct buf *after, bool *more,
                              struct err *err)
{
    struct arena a = {0};
    struct lake_files files;
    int code = lake_files_list(d->lake, &a, &d->repo, folder, buf_str(after), &files, err);

    for (size_t i = 0; code == 0 && i < files.count; i++) {
        code = deletion_check(d, err);
        if (code == 0)
            code = lake_claim_may_remove(d->lake, &d->repo, &d->watch, err);
        if (code == 0 && !str_eq(files.items[i].key, STR(LAKE_CLAIM)))
            code = lake_files_remove(d->lake, &d->repo, files.items[i].key, NULL, err);
    }
    *more = files.more;
    buf_reset(after);
    buf_append_str(after, files.next);
    arena_release(&a);
    return code < 0 ? code : buf_error(after);
}

static int deletion_folder(struct deletion *d, struct str folder, struct err *err)
{
    struct buf after = {0};
    bool more = true;
    int code = 0;

    while (code == 0 && more)
        code = deletion_file_page(d, folder, &after, &more, err);
    buf_release(&after);
    return code;
}

/* Decides whether the deletion must wait, because the claim was changed lately. ERR_BUSY: it must
 * wait, because it has files or uploads to remove in the namespace. 0: it has none. */
static int deletion_need_wait(struct deletion *d, struct err *err)
{
    bool has = false;

    if (d->row.purge)
        return ERR_BUSY;
    int code = lake_files_has_uploads(d->lake, &d->repo, STR(LAKE_BODIES "/"), &has, err);
    return code == 0 && has ? ERR_BUSY : code;
}

/* Sets d->has_claim to whether this deletion may remove files of the namespace. As long as the
 * repository's claim is there, no other repository can have the namespace. If the claim is absent,
 * an earlier try has removed the files. If another lake uses the namespace too, a purge fails until
 * an administrator has decided which lake goes on (docs/lake-keeping.md, N6). */
static int deletion_ask_claim(struct deletion *d, struct err *err)
{
    int code = lake_claim_may_remove(d->lake, &d->repo, &d->watch, err);

    d->has_claim = code == 0;
    if (code == ERR_BUSY)
        code = deletion_need_wait(d, err);
    return code == ERR_NOT_FOUND || (code == ERR_IN_USE && !d->row.purge) ? 0 : code;
}

/* Aborts uploads and, if the repository is purged, removes its files. If the owner of the
 * repository has lost the right to use the namespace, the files stay, and the owner of the bucket
 * may remove them. */
static int deletion_files(struct deletion *d, struct err *err)
{
    int code = deletion_ask_claim(d, err);
    bool purges = d->has_claim && d->row.purge;

    if (code == 0 && d->has_claim)
        code = lake_files_abort_uploads(d->lake, &d->repo, STR(LAKE_BODIES "/"), err);
    if (code == 0 && purges)
        code = deletion_folder(d, STR(LAKE_BODIES "/"), err);
    if (code == 0 && purges)
        code = deletion_folder(d, STR(LAKE_NODES "/"), err);
    if (code == ERR_DENIED)
        log_warn(d->lake->o.log, "lake.delete_leaves_files", log_s("partition", d->repo.partition),
                 log_z("error", err->text));
    /* ERR_NO_BUCKET: the bucket of the namespace was deleted, and all files with it */
    return code == ERR_NO_BUCKET || code == ERR_DENIED ? 0 : code;
}

/* Keeps the row for a second removal of the files. A request that was under way when the repository
 * was deleted may put a file after the first removal. */
static int deletion_purge_again(struct deletion *d, struct err *err)
{
    struct deleted_row next = d->row;
    struct buf record = {0};
    struct lake_tx tx;

    next.purged_ms = clock_wall_ms();
    proto_write(&record, deleted_fields, &next);
    lake_tx_init(&tx, d->arena);
    tx.frees = true;
    lake_tx_put_if(&tx, lake_key_to_delete(d->arena, d->repo.partition), buf_str(&record), KV_SAME,
                   d->record);
    int code = lake_tx_write(d->lake, &tx, NULL, err);
    buf_release(&record);
    return code == ERR_PRECONDITION ? 0 : code; /* another process has just made this change */
}

static bool deletion_is_due(const struct lake *l, const struct deleted_row *row)
{
    return row->purged_ms == 0 || row->purged_ms + (int64_t)l->o.drop_again_ms <= clock_wall_ms();
}

/* --- rows --- */

/* Removes the records of hook runs, the rows "<partition>/…" of partition `actions`. */
static int deletion_runs(struct deletion *d, struct err *err)
{
    struct kv_range range = {.prefix =
                                 arena_fmt(d->arena, STR_FMT "/", STR_ARG(d->repo.partition))};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, d->lake->kv, NULL, LAKE_ACTIONS, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0)
        code = kv_remove(d->lake->kv, (struct kv_name){LAKE_ACTIONS, key}, err);
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

static int deletion_rows(struct deletion *d, struct err *err)
{
    int code = deletion_runs(d, err);

    lake_step_begin("lake.drop_repo");
    if (code == 0)
        code = kv_drop(d->lake->kv, d->repo.partition, err);
    lake_step_end("lake.drop_repo");
    return code;
}

/* --- the list --- */

static int deletion_is_alive(struct deletion *d, bool *out, struct err *err)
{
    struct lake_repo now;
    int code = lake_repo_get(d->lake, d->arena, d->repo.id, &now, err);

    *out = code == 0 && str_eq(now.partition, d->repo.partition);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Removes all remains of a repository. If the repository of the row still exists, nothing is
 * removed. */
static int deletion_remove(struct deletion *d, struct err *err)
{
    bool is_alive;
    int code = deletion_is_alive(d, &is_alive, err);

    if (code < 0 || is_alive)
        return code;
    code = deletion_branches(d, err);
    if (code == 0)
        code = deletion_files(d, err);
    return code < 0 ? code : deletion_rows(d, err);
}

static int deletion_run(struct deletion *d, struct err *err)
{
    if (!deletion_is_due(d->lake, &d->row))
        return 0;
    int code = deletion_remove(d, err);
    if (code == 0 && d->row.purge && d->has_claim && d->row.purged_ms == 0)
        return deletion_purge_again(d, err);
    if (code == 0 && d->row.purge && d->has_claim)
        lake_release_space(d->lake, &d->repo);
    return code < 0 ? code
                    : kv_remove(d->lake->kv, lake_key_to_delete(d->arena, d->repo.partition), err);
}

static int deletion_init(struct deletion *d, struct str partition, struct str record,
                         struct err *err)
{
    int code = proto_read(&d->row, deleted_fields, NULL, record, err);

    d->record = record;
    d->repo = (struct lake_repo){
        .id = d->row.id, .space = d->row.space, .owner = d->row.owner, .partition = partition};
    return code < 0 ? err_set(err, ERR_CORRUPT, "a row of the to-delete list is damaged") : 0;
}

static int deletion_of_row(const struct deletion *work, struct str partition, struct str record,
                           struct err *err)
{
    struct arena a = {0};
    struct deletion d = *work;

    d.arena = &a;
    int code = deletion_init(&d, arena_str(&a, partition), arena_str(&a, record), err);
    if (code == 0)
        code = deletion_run(&d, err);
    if (code < 0 && code != ERR_CANCELED && code != ERR_BUSY)
        log_warn(d.lake->o.log, "lake.delete_failed", log_s("partition", partition),
                 log_z("error", err->text));
    arena_release(&a);
    return code;
}

int lake_delete_is_due(struct lake *l, bool *out, struct err *err)
{
    struct kv_range range = {.prefix = STR("to-delete/")};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, l->kv, NULL, LAKE_PARTITION, &range, err);

    *out = false;
    while (code == 0 && !*out && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        struct deleted_row row = {0};
        /* A damaged row counts as due; lake_delete_work() reports what is wrong with it. */
        *out = proto_read(&row, deleted_fields, NULL, value, NULL) < 0 || deletion_is_due(l, &row);
    }
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

int lake_delete_work(struct lake *l, bool (*ended)(void *ctx), void *ctx, struct err *err)
{
    static const char list[] = "to-delete/";
    struct deletion work = {.lake = l, .ended = ended, .ctx = ctx};
    struct kv_range range = {.prefix = STR(list)};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int first = 0, code = kv_scan_open(&scan, l->kv, NULL, LAKE_PARTITION, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        struct err failure = {0};
        code = deletion_of_row(&work, str_skip(key, sizeof(list) - 1), value, &failure);
        if (code < 0 && first == 0) {
            first = code;
            *err = failure;
        }
        code = code == ERR_CANCELED ? code : 0;
    }
    kv_scan_free(scan);
    return code != 0 && code != ERR_END ? code : first;
}
