/* Calls that dump the refs of a repository into its namespace, and restore refs from there into a
 * bare repository (docs/lake-moving.md). */
#include "lake/manifest.h"
#include "lake/refs_task.h"
#include "lake/rest/web.h"
#include "lake/tasks.h"

static rest_fn refs_dump, refs_restore, refs_dump_begin, refs_dump_show, refs_restore_begin,
    refs_restore_show;

static const struct rest_field refs_dump_fields[] = {
    {"commits_meta_range_id", "The id of the tree of commits."},
    {"tags_meta_range_id", "The id of the tree of tags."},
    {"branches_meta_range_id", "The id of the tree of branches."},
    {0},
};
static const struct rest_field refs_restore_body[] = {
    {"commits_meta_range_id",
     "The id of the tree of commits. Without the three ids, the last dump in the namespace is "
     "restored."},
    {"tags_meta_range_id", "The id of the tree of tags."},
    {"branches_meta_range_id", "The id of the tree of branches."},
    {"force",
     "Also in a read-only repository, and with branches and tags whose trees cannot be read.",
     REST_BOOLEAN},
    {0},
};

#define REFS_STATUS_FIELDS                                                                         \
    {"id", "The task's id."}, {"done", "Has it ended?", REST_BOOLEAN},                             \
        {"update_time", "When the status was written.", REST_TIME},                                \
        {"rows", "Commits, tags and branches that were moved so far; weir's own member.",          \
         REST_INTEGER},                                                                            \
        {"error", "Why it failed.", .sometimes = true},                                            \
    {                                                                                              \
        "last_error", "Why the last try failed. The task is tried again; weir's own member.",      \
            .sometimes = true                                                                      \
    }

static const struct rest_field refs_task_query[] = {{"task_id", "The task's id.", .required = true},
                                                    {0}};

#define REFS_REPO "/api/v1/repositories/{repository}"

static const struct rest_row refs_rows[] = {
    {HTTP_PUT, REFS_REPO "/refs/dump", REST_USER,
     "Writes all commits, tags and branches into the namespace.", refs_dump, WEB_OP("dumpRefs"),
     WEB_IN_REPO, .status = 201, .answer = refs_dump_fields},
    {HTTP_PUT, REFS_REPO "/refs/restore", REST_USER,
     "Restores commits, tags and branches from the namespace into a bare repository.", refs_restore,
     WEB_OP("restoreRefs"), WEB_IN_REPO, .body = refs_restore_body,
     .answer =
         REST_FIELDS({"rows", "Commits, tags and branches that were restored.", REST_INTEGER})},
    {HTTP_POST, REFS_REPO "/dump", REST_USER, "Begins a dump, which a worker carries out.",
     refs_dump_begin, WEB_OP("dumpSubmit"), WEB_IN_REPO, .status = 202,
     .answer = REST_FIELDS({"id", "The task's id."})},
    {HTTP_GET, REFS_REPO "/dump", REST_USER, "How far a dump is.", refs_dump_show,
     WEB_OP("dumpStatus"), WEB_IN_REPO, .query = refs_task_query,
     .answer = REST_FIELDS(REFS_STATUS_FIELDS, {"refs", "The dump, once it has ended.", REST_OBJECT,
                                                .sometimes = true, .members = refs_dump_fields})},
    {HTTP_POST, REFS_REPO "/restore", REST_USER, "Begins a restore, which a worker carries out.",
     refs_restore_begin, WEB_OP("restoreSubmit"), WEB_IN_REPO, .status = 202,
     .body = refs_restore_body, .answer = REST_FIELDS({"id", "The task's id."})},
    {HTTP_GET, REFS_REPO "/restore", REST_USER, "How far a restore is.", refs_restore_show,
     WEB_OP("restoreStatus"), WEB_IN_REPO, .query = refs_task_query,
     .answer = REST_FIELDS(REFS_STATUS_FIELDS)},
};
const struct rest_table web_refs_rows = WEB_ROWS(refs_rows);

/* Reads the repository's record and checks the caller's rights. A dump has every ref, and a restore
 * may name any tree in the namespace. So the caller must be allowed to manage the repository and to
 * read the whole of it. */
static int refs_repo(struct rest_call *c, struct lake_repo *out, struct err *err)
{
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_PUT_BUCKET_POLICY, STR_EMPTY, STR_EMPTY}, out, err);

    return code < 0 ? code : web_need_whole(c, out, err);
}

/* Reads the ids of the dump that is to be restored: from the call's body or, if it has none, from
 * the manifest in the namespace. */
static int refs_wanted(struct rest_call *c, const struct lake_repo *repo, struct lake_refs *out,
                       struct err *err)
{
    *out = (struct lake_refs){.commits = rest_text(c, "commits_meta_range_id"),
                              .tags = rest_text(c, "tags_meta_range_id"),
                              .branches = rest_text(c, "branches_meta_range_id")};
    int given = rest_given(c, "commits_meta_range_id") + rest_given(c, "tags_meta_range_id") +
                rest_given(c, "branches_meta_range_id");
    if (given == 0)
        return lake_manifest_read(web_of(c)->lake, c->arena, repo, out, err);
    return given == 3 ? 0
                      : err_set(err, ERR_INVALID,
                                "a dump has three ids: commits_meta_range_id, "
                                "tags_meta_range_id and branches_meta_range_id");
}

/* --- at once --- */

static int refs_dump(struct rest_call *c, struct err *err)
{
    struct lake_refs refs;
    struct lake_repo repo;
    int code = refs_repo(c, &repo, err);

    if (code == 0)
        code = lake_dump(web_of(c)->lake, c->arena, &repo, NULL, &refs, err);
    if (code == 0)
        lake_refs_json(c->w, &refs);
    return code;
}

static bool refs_count(void *ctx, uint64_t rows)
{
    uint64_t *count = ctx;

    *count = rows;
    return true;
}

static int refs_restore(struct rest_call *c, struct err *err)
{
    uint64_t rows = 0;
    struct lake_progress p = {refs_count, &rows};
    struct lake_refs refs;
    struct lake_repo repo;
    int code = refs_repo(c, &repo, err);

    if (code == 0)
        code = refs_wanted(c, &repo, &refs, err);
    if (code == 0)
        code = lake_restore(web_of(c)->lake, &repo, &refs, rest_bool(c, "force"), &p, err);
    if (code == 0)
        json_out_member_u64(c->w, "rows", rows);
    return code;
}

/* --- as tasks --- */

static int refs_begin(struct rest_call *c, const struct lake_repo *repo,
                      const struct lake_refs_task *task, struct err *err)
{
    struct str id;
    int code = lake_refs_task_start(web_of(c)->lake, c->arena, repo, task, &id, err);

    if (code == 0)
        code = lake_task_add_refs(web_of(c)->services->queue, repo, id, err);
    if (code == 0)
        json_out_member_str(c->w, "id", id);
    return code;
}

static int refs_dump_begin(struct rest_call *c, struct err *err)
{
    struct lake_refs_task task = {.kind = LAKE_REFS_DUMP};
    struct lake_repo repo;
    int code = refs_repo(c, &repo, err);

    return code < 0 ? code : refs_begin(c, &repo, &task, err);
}

static int refs_restore_begin(struct rest_call *c, struct err *err)
{
    struct lake_refs_task task = {.kind = LAKE_REFS_RESTORE, .force = rest_bool(c, "force")};
    struct lake_repo repo;
    int code = refs_repo(c, &repo, err);

    if (code == 0)
        code = refs_wanted(c, &repo, &task.refs, err);
    return code < 0 ? code : refs_begin(c, &repo, &task, err);
}

/* Shows a task. If it has not ended, it is added to the queue again, because the queue may have
 * lost or archived it. */
static int refs_show(struct rest_call *c, enum lake_refs_kind kind, struct lake_refs_task *task,
                     struct err *err)
{
    struct lake_repo repo;
    int code = refs_repo(c, &repo, err);

    if (code == 0)
        code = lake_refs_task_get(web_of(c)->lake, c->arena, &repo, kind, rest_text(c, "task_id"),
                                  task, err);
    if (code == 0 && !task->done)
        code = lake_task_add_refs(web_of(c)->services->queue, &repo, task->id, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "id", task->id);
    json_out_member_bool(c->w, "done", task->done);
    rest_time(c->w, "update_time", task->updated_ms);
    json_out_member_u64(c->w, "rows", task->rows);
    if (task->error.len)
        json_out_member_str(c->w, "error", task->error);
    if (!task->done && task->last_error.len)
        json_out_member_str(c->w, "last_error", task->last_error);
    return 0;
}

static int refs_dump_show(struct rest_call *c, struct err *err)
{
    struct lake_refs_task task = {0};
    int code = refs_show(c, LAKE_REFS_DUMP, &task, err);

    if (code < 0 || !task.done || task.error.len)
        return code;
    json_out_key(c->w, "refs");
    json_out_open(c->w, '{');
    lake_refs_json(c->w, &task.refs);
    json_out_close(c->w, '}');
    return 0;
}

static int refs_restore_show(struct rest_call *c, struct err *err)
{
    struct lake_refs_task task = {0};

    return refs_show(c, LAKE_REFS_RESTORE, &task, err);
}
