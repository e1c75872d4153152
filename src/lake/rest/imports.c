/* Calls about imports, which make objects of other buckets objects of a branch without copying
 * their bytes. */
#include "lake/import.h"
#include "lake/rest/web.h"
#include "lake/tasks.h"
#include "route/space.h"

static rest_fn import_begin, import_show, import_stop;

static const struct rest_field import_query[] = {{"id", "The import's id.", .required = true}, {0}};

static const struct rest_row import_rows[] = {
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/import", REST_USER,
     "Begins an import, which ends with a commit. The caller must be allowed to list the sources.",
     import_begin, WEB_OP("importStart"), WEB_IN_BRANCH, .status = 202,
     .body = REST_FIELDS(
         {"paths", "Sources and destinations.", REST_OBJECTS, .required = true, .min = 1,
          .max = LAKE_IMPORT_PATHS_MAX,
          .members = REST_FIELDS(
              {"type", "What the path names.", .required = true,
               .choices = REST_CHOICES("object", "common_prefix")},
              {"path", "The source, s3://bucket/key.", .required = true},
              {"destination", "Where it is imported to, in the branch.", .required = true})},
         {"commit", "The commit.", REST_OBJECT, .required = true,
          .members =
              REST_FIELDS({"message", "The message; empty: \"Import objects\".", .required = true},
                          {"metadata", "The commit's metadata.", REST_MAP})},
         {"force", "Also in a read-only repository.", REST_BOOLEAN},
         {"require_objects",
          "Fail if a prefix has no object; otherwise its destination is emptied.", REST_BOOLEAN}),
     .answer = REST_FIELDS({"id", "The import's id."})},
    {HTTP_GET, "/api/v1/repositories/{repository}/branches/{branch}/import", REST_USER,
     "How far an import is.", import_show, WEB_OP("importStatus"), WEB_IN_BRANCH,
     .query = import_query,
     .answer = REST_FIELDS(
         {"completed", "Has it ended?", REST_BOOLEAN},
         {"update_time", "When the status was written.", REST_TIME},
         {"ingested_objects", "How many objects were found.", REST_INTEGER},
         {"metarange_id", "The id of the tree.", .sometimes = true},
         {"commit", "The commit.", REST_OBJECT, .sometimes = true, .members = web_commit_fields},
         {"error", "Why it failed.", REST_OBJECT, .sometimes = true,
          .members = REST_FIELDS({"message", "What went wrong."})},
         {"last_error", "Why the last try failed. The import is tried again.", .sometimes = true})},
    {HTTP_DELETE, "/api/v1/repositories/{repository}/branches/{branch}/import", REST_USER,
     "Cancels an import.", import_stop, WEB_OP("importCancel"), WEB_IN_BRANCH,
     .query = import_query, .status = 204},
};
const struct rest_table web_import_rows = WEB_ROWS(import_rows);

/* Checks that the caller may read the objects that are to be imported: after the import other users
 * can read them through the repository, in the name of its owner. */
static int import_check_source(struct rest_call *c, const struct lake_repo *repo,
                               const struct lake_import_path *p, struct err *err)
{
    struct web_key_ask ask = {.action = S3_ACTION_GET_OBJECT, .user = repo->owner};

    if (!str_starts(p->source, STR("s3://")))
        return err_set(err, ERR_INVALID, "the path of a source must be s3://bucket/key");
    str_cut(str_skip(p->source, 5), '/', &ask.bucket, &ask.key);
    int code = routes_space_of(web_of(c)->services->routes, ask.bucket)
                   ? err_set(err, ERR_INVALID, "the source is a repository's bucket")
                   : 0;
    if (!p->is_object)
        ask.action = S3_ACTION_LIST_BUCKET;
    if (code == 0)
        code = web_need_key(c, &ask, err);
    if (code == 0 && !p->is_object)
        code = web_need_below(c, &ask, err);
    return code == ERR_NO_BUCKET ? err_set(err, ERR_INVALID, "there is no bucket '" STR_FMT "'",
                                           STR_ARG(str_head(ask.bucket, 64)))
                                 : code;
}

static int import_read_paths(struct rest_call *c, const struct lake_repo *repo,
                             struct lake_import_options *o, struct err *err)
{
    const json_t *list = rest_json(c, "paths"), *item;
    struct lake_import_path *paths =
        arena_array(c->arena, json_array_size(list) + 1, sizeof(*paths));
    size_t i;
    int code = paths ? 0 : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    json_array_foreach(list, i, item)
    {
        paths[i] = (struct lake_import_path){
            str_eq(json_get_str(item, "type", STR_EMPTY), STR("object")),
            json_get_str(item, "path", STR_EMPTY), json_get_str(item, "destination", STR_EMPTY)};
        code = import_check_source(c, repo, &paths[i], err);
        if (code < 0)
            return code;
    }
    o->paths = paths;
    o->count = json_array_size(list);
    return 0;
}

static int import_begin(struct rest_call *c, struct err *err)
{
    const json_t *commit = rest_json(c, "commit");
    struct lake_import_options o = {
        .branch = rest_text(c, "branch"),
        .message = json_get_str(commit, "message", STR_EMPTY),
        .committer = web_user(c)->name,
        .user = web_user(c)->id,
        .force = rest_bool(c, "force"),
        .needs_objects = rest_bool(c, "require_objects"),
    };
    const json_t *metadata = json_object_get(commit, "metadata");
    struct lake_repo repo;
    struct str id;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_below_ref(c, &repo,
                                  (struct web_ask){S3_ACTION_PUT_OBJECT, o.branch, STR_EMPTY}, err);
    if (code == 0)
        code = import_read_paths(c, &repo, &o, err);
    if (code == 0 && json_is_object(metadata)) /* the JSON value may also be null */
        code = web_pairs(c, metadata, &o.metadata, err);
    if (code == 0)
        code = lake_import_start(web_of(c)->lake, c->arena, &repo, &o, &id, err);
    if (code == 0)
        code = lake_task_add_import(web_of(c)->services->queue, &repo, id, err);
    if (code == 0)
        json_out_member_str(c->w, "id", id);
    return code;
}

static int import_write_commit(struct rest_call *c, const struct lake_repo *repo, struct str id,
                               struct err *err)
{
    struct lake_commit commit;
    int code = lake_commit_get(web_of(c)->lake, c->arena, repo, id, &commit, err);

    if (code < 0)
        return code;
    json_out_key(c->w, "commit");
    json_out_open(c->w, '{');
    web_write_commit(c->w, &commit);
    json_out_close(c->w, '}');
    return 0;
}

static int import_write(struct rest_call *c, const struct lake_repo *repo,
                        const struct lake_import_status *s, struct err *err)
{
    struct str error = s->error.len ? s->error : s->canceled ? STR("import canceled") : STR_EMPTY;

    json_out_member_bool(c->w, "completed", s->completed);
    rest_time(c->w, "update_time", s->updated_ms);
    json_out_member_u64(c->w, "ingested_objects", s->ingested);
    if (s->tree.len)
        json_out_member_str(c->w, "metarange_id", s->tree);
    if (error.len) {
        json_out_key(c->w, "error");
        json_out_open(c->w, '{');
        json_out_member_str(c->w, "message", error);
        json_out_close(c->w, '}');
    }
    if (!s->completed && s->last_error.len)
        json_out_member_str(c->w, "last_error", s->last_error);
    return s->commit_id.len ? import_write_commit(c, repo, s->commit_id, err) : 0;
}

/* Finds the import that the call names, and checks that the caller may do `action` on the branch in
 * the call's path. The right was checked only for that branch, so an import into another branch
 * counts as not found. */
static int import_find(struct rest_call *c, enum s3_action action, struct lake_repo *repo,
                       struct lake_import_status *out, struct err *err)
{
    struct str branch = rest_text(c, "branch");
    int code = web_repo(c, (struct web_ask){action, branch, STR_EMPTY}, repo, err);

    if (code == 0)
        code = lake_import_get(web_of(c)->lake, c->arena, repo, rest_text(c, "id"), out, err);
    if (code == 0 && !str_eq(out->branch, branch))
        code = err_set(err, ERR_NOT_FOUND, "import not found");
    return code;
}

/* Shows an import. If it has not ended, its task is added again, because the queue may have lost or
 * archived it. */
static int import_show(struct rest_call *c, struct err *err)
{
    struct lake_import_status status;
    struct lake_repo repo;
    int code = import_find(c, S3_ACTION_LIST_BUCKET, &repo, &status, err);

    if (code == 0 && !status.completed)
        code = lake_task_add_import(web_of(c)->services->queue, &repo, status.id, err);
    return code == 0 ? import_write(c, &repo, &status, err) : code;
}

static int import_stop(struct rest_call *c, struct err *err)
{
    struct lake_import_status status;
    struct lake_repo repo;
    int code = import_find(c, S3_ACTION_PUT_OBJECT, &repo, &status, err);

    return code == 0 ? lake_import_cancel(web_of(c)->lake, c->arena, &repo, status.id, err) : code;
}
