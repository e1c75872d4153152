/* Calls about commits: making and reading them, and listing the history of a ref. */
#include "lake/commit_record.h"
#include "lake/rest/web.h"

static rest_fn commit_make, commit_show, commit_log, commit_add;

static const struct rest_row commit_rows[] = {
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/commits", REST_USER,
     "Commits the changes of a branch. A weir commits only some paths when the body names them.",
     commit_make, WEB_OP("commit"), WEB_IN_BRANCH, .status = 201,
     .query = REST_FIELDS({"source_metarange", "Commit this tree as it is."}),
     .body = REST_FIELDS({"message", "What the commit says.", .required = true},
                         {"metadata", "Metadata of the commit.", REST_MAP},
                         {"date", "The commit's time, in seconds since 1970; default: now.",
                          REST_INTEGER, .min = 0, .max = WEB_TIME_MAX},
                         {"allow_empty", "Commit also when nothing has changed.", REST_BOOLEAN},
                         {"force", "Also in a read-only repository.", REST_BOOLEAN},
                         {"paths", "Commit only these paths, or prefixes that end with '/'.",
                          REST_STRINGS, .max = LAKE_BATCH_MAX}),
     .answer = web_commit_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/commits/{commitId}", REST_USER,
     "One commit, by its id or by any ref.", commit_show, WEB_OP("getCommit"),
     .in_path = REST_FIELDS(WEB_REPO, {"commitId", "The commit's id, or a ref."}),
     .answer = web_commit_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{ref}/commits", REST_USER,
     "The history of a ref, the newest commit first.", commit_log, WEB_OP("logCommits"), WEB_IN_REF,
     .query = REST_FIELDS({"objects", "Only commits that changed one of these paths.", REST_STRINGS,
                           .max = LAKE_BATCH_MAX},
                          {"prefixes", "Only commits that changed a path below one of these.",
                           REST_STRINGS, .max = LAKE_BATCH_MAX},
                          {"limit", "Do not look for a further page.", REST_BOOLEAN},
                          {"first_parent", "Follow only first parents.", REST_BOOLEAN},
                          {"since", "Only commits since this time (RFC 3339)."},
                          {"stop_at", "The history ends with this commit."}),
     .list = "results", .by_source = true, .items = web_commit_fields},
    {HTTP_POST, "/api/v1/repositories/{repository}/commits", REST_USER,
     "Adds a commit by its record, for tools that move histories. No ref changes.", commit_add,
     WEB_OP("CreateCommitRecord"), WEB_IN_REPO, .status = 204,
     .body = REST_FIELDS({"commit_id", "The commit's id.", .required = true},
                         {"version", "The version of its form.", REST_INTEGER, .required = true,
                          .min = 0, .max = 1},
                         {"committer", "The name of the user who made it.", .required = true},
                         {"message", "What the commit says.", .required = true},
                         {"metarange_id", "The id of its tree.", .required = true},
                         {"creation_date", "When it was made, in seconds since 1970.", REST_INTEGER,
                          .required = true, .min = 0, .max = WEB_TIME_MAX},
                         {"parents", "The ids of its parents.", REST_STRINGS, .required = true,
                          .min = 0, .max = LAKE_PARENTS_MAX},
                         {"metadata", "Its metadata.", REST_MAP},
                         {"generation", "One more than the greatest generation of its parents.",
                          REST_INTEGER, .required = true, .min = 1, .max = INT32_MAX},
                         {"force", "Also in a read-only repository.", REST_BOOLEAN})},
};
const struct rest_table web_commit_rows = WEB_ROWS(commit_rows);

/* Checks that the caller may commit a tree by its id. This may be any tree of the repository, so
 * the caller must be allowed to read the whole repository and to write to the whole branch
 * (docs/security.md, P3). */
static int commit_need_tree(struct rest_call *c, const struct lake_repo *repo, struct str branch,
                            struct err *err)
{
    int code = web_need_whole(c, repo, err);

    return code == 0 ? web_need_below_ref(
                           c, repo, (struct web_ask){S3_ACTION_PUT_OBJECT, branch, STR_EMPTY}, err)
                     : code;
}

/* A commit changes no object that the branch shows, so the right on the branch itself is enough
 * (docs/security.md, P5). */
static int commit_make(struct rest_call *c, struct err *err)
{
    struct str branch = rest_text(c, "branch");
    struct lake_commit_options o = {
        .message = rest_text(c, "message"),
        .committer = web_user(c)->name,
        .created_ms = rest_integer(c, "date") * MS_PER_S,
        .allow_empty = rest_bool(c, "allow_empty"),
        .force = rest_bool(c, "force"),
        .source_tree = rest_text(c, "source_metarange"),
    };
    struct lake_commit commit;
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_PUT_OBJECT, branch, STR_EMPTY}, &repo, err);

    if (code == 0 && o.source_tree.len)
        code = commit_need_tree(c, &repo, branch, err);
    if (code == 0)
        code = web_pairs(c, rest_json(c, "metadata"), &o.metadata, err);
    if (code == 0 && rest_given(c, "paths"))
        code = web_strs(c, rest_strings(c, "paths"), &o.paths, &o.path_count, err);
    if (code == 0)
        code = lake_commit(web_of(c)->lake, c->arena, &repo, branch, &o, &commit, err);
    if (code == 0)
        web_write_commit(c->w, &commit);
    return code;
}

static int commit_show(struct rest_call *c, struct err *err)
{
    struct str expr = rest_text(c, "commitId");
    struct lake_commit commit;
    struct lake_repo repo;
    struct lake_ref ref;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, expr, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_ref_resolve(web_of(c)->lake, c->arena, &repo, expr, &ref, err);
    if (code == 0)
        code = lake_commit_get(web_of(c)->lake, c->arena, &repo, ref.commit_id, &commit, err);
    if (code == 0)
        web_write_commit(c->w, &commit);
    return code;
}

static int log_options(struct rest_call *c, struct lake_log_options *out, struct err *err)
{
    struct str since = rest_text(c, "since");
    int code = 0;

    *out = (struct lake_log_options){
        .after = rest_after(c),
        .limit = rest_limit(c),
        .first_parent = rest_bool(c, "first_parent"),
        .stop_at = rest_text(c, "stop_at"),
    };
    if (since.len && clock_parse_iso(since, &out->since_ms) < 0)
        code = err_set(err, ERR_INVALID, "since must be a time such as \"2026-01-31T03:00:00Z\"");
    if (code == 0)
        code = web_strs(c, rest_strings(c, "objects"), &out->objects, &out->object_count, err);
    if (code == 0)
        code = web_strs(c, rest_strings(c, "prefixes"), &out->prefixes, &out->prefix_count, err);
    return code;
}

static int commit_log(struct rest_call *c, struct err *err)
{
    struct str ref = rest_text(c, "ref");
    struct lake_commit *commits = NULL;
    struct lake_log_options o;
    struct lake_repo repo;
    size_t count = 0;
    bool more = false;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, ref, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = log_options(c, &o, err);
    if (code == 0)
        code = lake_log(web_of(c)->lake, c->arena, &repo, ref, &o, &commits, &count, &more, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        web_write_commit(c->w, &commits[i]);
        rest_item_end(c);
    }
    rest_page_end(c, more && !rest_bool(c, "limit"), count ? commits[count - 1].id : STR_EMPTY);
    return 0;
}

/* Adds a commit that was made elsewhere. It may name any tree of the repository, so the caller must
 * be allowed to read the whole repository. */
static int commit_add(struct rest_call *c, struct err *err)
{
    struct lake_commit commit = {
        .id = rest_text(c, "commit_id"),
        .committer = rest_text(c, "committer"),
        .message = rest_text(c, "message"),
        .created_ms = rest_integer(c, "creation_date") * MS_PER_S,
        .tree = rest_text(c, "metarange_id"),
        .version = (int32_t)rest_integer(c, "version"),
        .generation = (int32_t)rest_integer(c, "generation"),
    };
    const struct str *parents = NULL;
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_PUT_BUCKET_POLICY, STR_EMPTY, STR_EMPTY},
                        &repo, err);

    if (code == 0)
        code = web_need_whole(c, &repo, err);
    if (code == 0)
        code = web_pairs(c, rest_json(c, "metadata"), &commit.metadata, err);
    if (code == 0)
        code = web_strs(c, rest_strings(c, "parents"), &parents, &commit.parent_count, err);
    commit.parents = (struct str *)(uintptr_t)parents;
    return code == 0 ? lake_commit_add_record(web_of(c)->lake, c->arena, &repo, &commit,
                                              rest_bool(c, "force"), err)
                     : code;
}
