/* Writes, reads and removes the records of hook runs. */
#include "lake/actions_int.h"

#include "base/clock.h"
#include "base/ids.h"

#include <stdio.h>

static const struct proto_field run_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_run, id),
    PROTO_FIELD(2, PROTO_STR, struct lake_run, branch),
    PROTO_FIELD(3, PROTO_STR, struct lake_run, commit_id),
    PROTO_FIELD(4, PROTO_STR, struct lake_run, event),
    PROTO_FIELD(5, PROTO_TIME, struct lake_run, started_ms),
    PROTO_FIELD(6, PROTO_TIME, struct lake_run, ended_ms),
    PROTO_FIELD(7, PROTO_BOOL, struct lake_run, passed),
    {0},
};

static const struct proto_field hook_run_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_hook_run, run),
    PROTO_FIELD(2, PROTO_STR, struct lake_hook_run, id),
    PROTO_FIELD(3, PROTO_STR, struct lake_hook_run, hook),
    PROTO_FIELD(4, PROTO_STR, struct lake_hook_run, action),
    PROTO_FIELD(5, PROTO_TIME, struct lake_hook_run, started_ms),
    PROTO_FIELD(6, PROTO_TIME, struct lake_hook_run, ended_ms),
    PROTO_FIELD(7, PROTO_BOOL, struct lake_hook_run, passed),
    PROTO_FIELD(8, PROTO_BOOL, struct lake_hook_run, skipped),
    PROTO_FIELD(9, PROTO_STR, struct lake_hook_run, output),
    {0},
};

void action_run_write(struct buf *out, const struct lake_run *run)
{
    proto_write(out, run_fields, run);
}

void action_hook_run_write(struct buf *out, const struct lake_hook_run *h)
{
    proto_write(out, hook_run_fields, h);
}

int action_run_read(struct lake_run *out, struct str in, struct err *err)
{
    *out = (struct lake_run){0};
    return proto_read(out, run_fields, NULL, in, NULL) < 0
               ? err_set(err, ERR_CORRUPT, "the record of a run is damaged")
               : 0;
}

int action_hook_run_read(struct lake_hook_run *out, struct str in, struct err *err)
{
    *out = (struct lake_hook_run){0};
    return proto_read(out, hook_run_fields, NULL, in, NULL) < 0
               ? err_set(err, ERR_CORRUPT, "the record of a hook is damaged")
               : 0;
}

/* Makes the id of a run. Newer ids are smaller, so that a scan gives the newest run first. */
void action_run_id(char out[32 + 1])
{
    snprintf(out, 33, "%016llx%016llx",
             (unsigned long long)(UINT64_MAX - (uint64_t)clock_wall_ms()),
             (unsigned long long)random_u64());
}

/* Returns "<partition>/runs", the kind of the rows that record runs (lake_key_in()). */
static const char *run_kind(struct arena *a, const struct lake_repo *r)
{
    return arena_fmt(a, STR_FMT "/runs", STR_ARG(r->partition)).p;
}

static const char *hook_run_kind(struct arena *a, const struct lake_repo *r, struct str run)
{
    return arena_fmt(a, STR_FMT "/tasks/" STR_FMT, STR_ARG(r->partition), STR_ARG(run)).p;
}

/* --- writing --- */

/* Puts a row, on the condition that the repository still exists. Releases `value`. */
static int action_put(struct action_call *c, const char *kind, struct str id, struct buf *value,
                      struct err *err)
{
    struct lake_repo now = *c->repo;
    struct lake_tx tx;
    int code;

    do {
        lake_tx_init(&tx, c->arena);
        lake_tx_check_repo(&tx, &now);
        lake_tx_put(&tx, lake_key_in(c->arena, LAKE_ACTIONS, kind, id),
                    arena_str(c->arena, buf_str(value)));
        code = lake_tx_write(c->lake, &tx, NULL, err);
        if (code != ERR_PRECONDITION)
            break;
        code = lake_repo_again(c->lake, c->arena, c->repo, &now, err);
    } while (code == 0);
    buf_release(value);
    return code;
}

int action_put_run(struct action_call *c, const struct lake_run *run, struct err *err)
{
    struct buf value = BUF_INIT(KV_VALUE_MAX);

    action_run_write(&value, run);
    return action_put(c, run_kind(c->arena, c->repo), run->id, &value, err);
}

int action_put_hook_run(struct action_call *c, const struct lake_hook_run *h, struct err *err)
{
    struct buf value = BUF_INIT(KV_VALUE_MAX);

    action_hook_run_write(&value, h);
    return action_put(c, hook_run_kind(c->arena, c->repo, h->run), h->id, &value, err);
}

static int action_remove_rows(struct action_call *c, struct str prefix, struct err *err)
{
    struct kv_range range = {.prefix = prefix};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, c->lake->kv, NULL, LAKE_ACTIONS, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0)
        code = kv_remove(c->lake->kv, (struct kv_name){LAKE_ACTIONS, key}, err);
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

int action_forget_runs(struct action_call *c, struct err *err)
{
    struct str prefix = arena_fmt(c->arena, STR_FMT "/runs/", STR_ARG(c->repo->partition));
    struct kv_range range = {.prefix = prefix};
    struct kv_scan *scan = NULL;
    struct str key, value;
    size_t seen = 0;
    int code = kv_scan_open(&scan, c->lake->kv, NULL, LAKE_ACTIONS, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        if (++seen <= ACTION_RUNS_KEPT)
            continue;
        struct str id = arena_str(c->arena, str_skip(key, prefix.len));
        struct str tasks = arena_fmt(c->arena, "%s/", hook_run_kind(c->arena, c->repo, id));
        code = action_remove_rows(c, tasks, err);
        if (code == 0)
            code = kv_remove(c->lake->kv, (struct kv_name){LAKE_ACTIONS, key}, err);
    }
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

/* --- reading --- */

static int run_row(void *item, void *ctx, struct arena *a, struct str record, struct err *err)
{
    const struct lake_run_filter *f = ctx;
    struct lake_run *run = item;
    int code = action_run_read(run, record, err);

    if (code < 0)
        return code;
    return f && ((f->branch.len && !str_eq(f->branch, run->branch)) ||
                 (f->commit_id.len && !str_eq(f->commit_id, run->commit_id)))
               ? ERR_AGAIN
               : 0;
}

static int hook_run_row(void *item, void *ctx, struct arena *a, struct str record, struct err *err)
{
    return action_hook_run_read(item, record, err);
}

int lake_run_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_page *page, const struct lake_run_filter *filter,
                  struct lake_run **out, size_t *count, bool *more, struct err *err)
{
    struct lake_run_filter f = *filter;
    struct lake_rows rows = {r, LAKE_ACTIONS, run_kind(a, r), sizeof(**out), run_row, &f};
    void *items = NULL;
    int code = lake_rows_page(l, a, &rows, page, &items, count, more, err);

    *out = items;
    return code;
}

int lake_hook_run_list(struct lake *l, struct arena *a, const struct lake_repo *r, struct str run,
                       const struct lake_page *page, struct lake_hook_run **out, size_t *count,
                       bool *more, struct err *err)
{
    struct lake_rows rows = {
        r, LAKE_ACTIONS, hook_run_kind(a, r, run), sizeof(**out), hook_run_row, NULL};
    void *items = NULL;
    int code = lake_rows_page(l, a, &rows, page, &items, count, more, err);

    *out = items;
    return code;
}

/* Reads one row. */
static int run_read(struct lake *l, struct arena *a, const struct lake_repo *r, const char *kind,
                    struct str id, struct kv_value *row, struct err *err)
{
    return lake_row_get(l, a, r, lake_key_in(a, LAKE_ACTIONS, kind, id), "run not found", row, err);
}

int lake_run_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                 struct lake_run *out, struct err *err)
{
    struct kv_value row;
    int code = run_read(l, a, r, run_kind(a, r), id, &row, err);

    return code < 0 ? code : run_row(out, NULL, a, row.bytes, err);
}

int lake_hook_run_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str run,
                      struct str id, struct lake_hook_run *out, struct err *err)
{
    struct kv_value row;
    int code = run_read(l, a, r, hook_run_kind(a, r, run), id, &row, err);

    return code < 0 ? code : hook_run_row(out, NULL, a, row.bytes, err);
}
