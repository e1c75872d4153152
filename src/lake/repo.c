/* Makes, finds, lists and deletes repositories. */
#include "lake/claim.h"
#include "lake/gc_int.h"
#include "lake/lake_int.h"
#include "lake/names.h"

#include "base/clock.h"
#include "base/ids.h"
#include "route/space.h"

int lake_repo_get(struct lake *l, struct arena *a, struct str id, struct lake_repo *out,
                  struct err *err)
{
    struct kv_value value;
    int code = lake_check_repo(id, err);

    if (code == 0)
        code = kv_get(l->kv, NULL, a, lake_key_repo(a, id), &value, err);
    if (code == ERR_NOT_FOUND || code == ERR_INVALID)
        return err_set(err, ERR_NOT_FOUND, "repository not found");
    if (code == 0)
        code = lake_repo_read(out, a, value.bytes, err);
    if (code == 0)
        out->stamp = value.stamp;
    return code;
}

int lake_repo_again(struct lake *l, struct arena *a, const struct lake_repo *r,
                    struct lake_repo *out, struct err *err)
{
    int code = lake_repo_get(l, a, r->id, out, err);

    return code == 0 && !str_eq(out->token, r->token)
               ? err_set(err, ERR_NOT_FOUND, "repository not found")
               : code;
}

/* --- making --- */

static int repo_check_options(const struct lake_repo_options *o, struct err *err)
{
    struct str bucket, prefix;
    int code = lake_check_repo(o->id, err);

    if (code == 0)
        code = lake_check_branch(o->default_branch, err);
    if (code == 0)
        code = lake_check_space(o->space, &bucket, &prefix, err);
    return code;
}

/* Fills the record of a new repository. Its token makes the partition's name unique, so rows of an
 * older repository with the same name cannot be reached (L8). */
static int repo_make(struct arena *a, const struct lake_repo_options *o, struct lake_repo *out)
{
    char token[ID_TIME_LEN + 1];
    struct str space = o->space;

    while (str_ends(space, STR("/")))
        space.len--;
    id_time(token);
    *out = (struct lake_repo){.id = o->id,
                              .space = space,
                              .default_branch = o->default_branch,
                              .created_ms = o->created_ms ? o->created_ms : clock_wall_ms(),
                              .token = o->token.len ? o->token : arena_lower(a, str_z(token)),
                              .read_only = o->read_only,
                              .storage_id = o->storage_id,
                              .owner = o->owner};
    out->partition = arena_fmt(a, STR_FMT "-" STR_FMT, STR_ARG(out->id), STR_ARG(out->token));
    return arena_error(a);
}

/* Adds the first commit, whose tree is empty, and the default branch. */
static void repo_add_first(struct lake_tx *tx, const struct lake_repo *r)
{
    struct arena *a = tx->arena;
    char id[LAKE_ID_LEN + 1];
    struct buf record = {0};
    struct lake_commit c = {.committer = r->owner,
                            .message = STR("Repository created"),
                            .created_ms = r->created_ms,
                            .version = 1,
                            .generation = 1};
    struct lake_branch b = {.id = r->default_branch, .revision = 1, .epoch = lake_new_epoch()};

    lake_commit_id(id, &c);
    c.id = arena_str(a, str_z(id));
    lake_tx_put_commit(tx, r, &c);
    b.commit_id = c.id;
    b.staging = lake_new_token(a, r, b.id);
    lake_branch_write(&record, &b);
    lake_tx_put(tx, lake_key_branch(a, r->partition, b.id), lake_tx_record(tx, &record));
}

static int repo_write_new(struct lake *l, struct arena *a, const struct lake_repo_options *o,
                          struct lake_repo *r, struct err *err)
{
    struct lake_tx tx;
    struct buf record = {0};
    size_t failed = 0;

    lake_tx_init(&tx, a);
    lake_repo_write(&record, r);
    r->stamp = lake_tx_record(&tx, &record);
    lake_tx_put_if(&tx, lake_key_repo(a, r->id), r->stamp, KV_ABSENT, STR_EMPTY);
    if (!o->claimed && !l->o.place)
        lake_tx_remove(&tx, lake_key_claim(a, r->partition), KV_EXISTS, STR_EMPTY);
    /* No collection may run in a bare repository: its namespace may have files already, to which no
     * ref leads yet. */
    lake_tx_put(&tx, gc_key_state(a, r->partition), gc_state_new(a, o->bare ? GC_HELD : GC_IDLE));
    if (!o->bare)
        repo_add_first(&tx, r);
    int code = lake_tx_write(l, &tx, &failed, err);
    if (code != ERR_PRECONDITION)
        return code;
    return failed == 0 ? err_set(err, ERR_EXISTS, "repository already exists: not unique")
                       : err_set(err, ERR_IN_USE, "storage namespace already in use: " STR_FMT,
                                 STR_ARG(r->space));
}

static void repo_tell(struct lake *l, struct str id)
{
    if (l->repo_changed)
        l->repo_changed(l->repo_changed_ctx, id);
}

/* Checks that no storage has a bucket with the repository's name. */
static int repo_check_buckets(struct lake *l, const struct lake_repo_options *o, struct err *err)
{
    bool has = false;
    int code = l->o.routes ? routes_storage_has(l->o.routes, o->owner, o->id, &has, err) : 0;

    return has ? err_set(err, ERR_EXISTS, "a bucket has the repository's name: not unique") : code;
}

/* Checks that the name is free. This is done before the namespace is claimed. */
static int repo_check_name(struct lake *l, struct arena *a, const struct lake_repo_options *o,
                           struct err *err)
{
    struct lake_repo present;
    int code = lake_repo_get(l, a, o->id, &present, err);

    if (code == 0)
        return err_set(err, ERR_EXISTS, "repository already exists: not unique");
    return code == ERR_NOT_FOUND ? repo_check_buckets(l, o, err) : code;
}

/* Writes the records of the repository. Another request may make a bucket with the same name at the
 * same time. So both requests first write, then look for the other kind, and undo their own write
 * if they find the name there.
 *
 * If this function fails, *may_stay says whether the repository's record may exist nevertheless.
 * Then the claim of the namespace must stay, because it belongs to that repository. */
static int repo_establish(struct lake *l, struct arena *a, const struct lake_repo_options *o,
                          struct lake_repo *r, bool *may_stay, struct err *err)
{
    struct err late = {0};
    int code = repo_write_new(l, a, o, r, err);

    *may_stay = code == ERR_TIMEOUT;
    if (code == 0 || code == ERR_TIMEOUT)
        repo_tell(l, r->id);
    if (code < 0)
        return code;
    code = repo_check_buckets(l, o, err);
    if (code < 0 && lake_repo_delete(l, a, r->id, true, false, &late) < 0) {
        *may_stay = true;
        log_warn(l->o.log, "lake.repository_left", log_s("repository", r->id),
                 log_z("error", late.text));
    }
    return code;
}

int lake_repo_create(struct lake *l, struct arena *a, const struct lake_repo_options *options,
                     struct lake_repo *out, struct err *err)
{
    struct lake_repo_options o = *options;
    bool may_stay;
    int code;

    if (o.default_branch.len == 0)
        o.default_branch = STR("main");
    code = repo_check_options(&o, err);
    if (code == 0)
        code = repo_check_name(l, a, &o, err);
    if (code == 0)
        code = repo_make(a, &o, out);
    if (code == 0 && !o.claimed)
        code = lake_claim_space(l, out, o.bare, err);
    if (code < 0)
        return code;
    code = repo_establish(l, a, &o, out, &may_stay, err);
    if (code < 0 && !may_stay && !o.claimed)
        lake_release_space(l, out);
    return code;
}

void lake_watch_repos(struct lake *l, void (*fn)(void *ctx, struct str id), void *ctx)
{
    l->repo_changed = fn;
    l->repo_changed_ctx = ctx;
}

/* --- listing --- */

static int repo_row(void *item, void *ctx, struct arena *a, struct str record, struct err *err)
{
    struct lake_repo *r = item;
    int code = lake_repo_read(r, a, record, err);

    r->stamp = record;
    return code;
}

int lake_repo_list(struct lake *l, struct arena *a, const struct lake_page *p,
                   struct lake_repo **out, size_t *count, bool *more, struct err *err)
{
    struct lake_rows rows = {NULL, LAKE_PARTITION, "repos", sizeof(**out), repo_row, NULL};
    void *items = NULL;
    int code = lake_rows_page(l, a, &rows, p, &items, count, more, err);

    *out = items;
    return code;
}

/* --- deleting --- */

static struct str repo_deleted_row(struct arena *a, const struct lake_repo *r, bool purge)
{
    struct buf row = {0};

    proto_put_bytes(&row, 1, r->id);
    proto_put_time(&row, 2, clock_wall_ms());
    proto_put_number(&row, 3, purge);
    proto_put_bytes(&row, 4, r->space);
    proto_put_bytes(&row, 5, r->owner);
    struct str value = arena_str(a, buf_str(&row));
    buf_release(&row);
    return value;
}

/* Removes the record and adds a row to the list of repositories whose remains must be removed, in
 * one step (L8). */
int lake_repo_delete(struct lake *l, struct arena *a, struct str id, bool force, bool purge,
                     struct err *err)
{
    struct lake_repo r = {0};
    struct lake_tx tx;
    int code;

    do {
        code = lake_repo_get(l, a, id, &r, err);
        if (code == 0)
            code = lake_check_writable(&r, force, err);
        if (code < 0)
            return code;
        lake_tx_init(&tx, a);
        lake_tx_remove(&tx, lake_key_repo(a, r.id), KV_SAME, r.stamp);
        tx.frees = true;
        lake_tx_put(&tx, lake_key_to_delete(a, r.partition), repo_deleted_row(a, &r, purge));
        lake_step_begin("lake.delete_repo");
        code = lake_tx_write(l, &tx, NULL, err);
        lake_step_end("lake.delete_repo");
    } while (code == ERR_PRECONDITION);
    if (code == 0 || code == ERR_TIMEOUT)
        repo_tell(l, id);
    return code;
}
