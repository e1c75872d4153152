/* Calls about repositories and their metadata. */
#include "lake/names.h"
#include "lake/repo_meta.h"
#include "lake/rest/web.h"
#include "lake/tasks.h"

static rest_fn repo_page, repo_begin, repo_show, repo_drop, repo_meta_show, repo_meta_add,
    repo_meta_drop;

static const struct rest_row repo_rows[] = {
    {HTTP_GET, "/api/v1/repositories", REST_USER,
     "The repositories that the caller may list, by name.", repo_page, WEB_OP("listRepositories"),
     .query = REST_FIELDS(WEB_PREFIX, {"search", "Only names that contain this."}),
     .list = "results", .by_source = true, .items = web_repo_fields},
    {HTTP_POST, "/api/v1/repositories", REST_USER,
     "Makes a repository, which belongs to the caller. The caller must be allowed to read, write "
     "and remove everything in the namespace.",
     repo_begin, WEB_OP("createRepository"), .status = 201,
     .query =
         REST_FIELDS({"bare", "Make no first commit and no branch, for a restore.", REST_BOOLEAN}),
     .body = REST_FIELDS({"name", "The repository's name.", .required = true},
                         {"storage_namespace", "Where its objects are to lie: s3://bucket/prefix.",
                          .required = true},
                         {"storage_id", "Empty: there is one kind of storage."},
                         {"default_branch", "The name of the first branch; default: main."},
                         {"sample_data", "Refused when true.", REST_BOOLEAN},
                         {"read_only", "Refuse changes that are not forced.", REST_BOOLEAN}),
     .answer = web_repo_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}", REST_USER, "One repository.", repo_show,
     WEB_OP("getRepository"), WEB_IN_REPO, .answer = web_repo_fields},
    {HTTP_DELETE, "/api/v1/repositories/{repository}", REST_USER,
     "Deletes the repository. Its name is free at once; its objects stay in the namespace.",
     repo_drop, WEB_OP("deleteRepository"), WEB_IN_REPO,
     .query = REST_FIELDS(
         WEB_FORCE, {"purge", "Remove the namespace's objects too, a while later.", REST_BOOLEAN}),
     .status = 204},
    {HTTP_GET, "/api/v1/repositories/{repository}/metadata", REST_USER,
     "The repository's metadata.", repo_meta_show, WEB_OP("getRepositoryMetadata"), WEB_IN_REPO,
     .answer = REST_FIELDS({"*", "A value.", .sometimes = true})},
    {HTTP_POST, "/api/v1/repositories/{repository}/metadata", REST_USER,
     "Sets some of the repository's metadata; other keys stay.", repo_meta_add,
     WEB_OP("setRepositoryMetadata"), WEB_IN_REPO, .status = 204,
     .body = REST_FIELDS({"metadata", "Keys and values.", REST_MAP, .required = true})},
    {HTTP_DELETE, "/api/v1/repositories/{repository}/metadata", REST_USER,
     "Removes keys of the repository's metadata.", repo_meta_drop,
     WEB_OP("deleteRepositoryMetadata"), WEB_IN_REPO, .status = 204,
     .body =
         REST_FIELDS({"keys", "The keys.", REST_STRINGS, .required = true, .max = LAKE_BATCH_MAX})},
};
const struct rest_table web_repo_rows = WEB_ROWS(repo_rows);

/* --- lists --- */

/* Whether the caller may see the repository in a list. A repository that never had a policy or
 * another document is visible only to its owner, so its documents need not be read. */
static bool repo_is_shown(struct rest_call *c, const struct lake_repo *r)
{
    if (r->documents == 0 && !web_user(c)->admin)
        return str_eq(r->owner, web_user(c)->id);
    return web_may(c, r, (struct web_ask){S3_ACTION_LIST_BUCKET, STR_EMPTY, STR_EMPTY});
}

static bool repo_is_asked_for(struct rest_call *c, const struct lake_repo *r)
{
    struct str search = rest_text(c, "search");

    return (!search.len || str_find(r->id, search) >= 0) && repo_is_shown(c, r);
}

/* Writes those repositories of a page that the caller may see. Returns true if the answer is full
 * and there is one more that the caller may see. */
static bool repo_write_page(struct rest_call *c, const struct lake_repo *repos, size_t count,
                            size_t *written, struct str *last)
{
    for (size_t i = 0; i < count; i++) {
        if (!repo_is_asked_for(c, &repos[i]))
            continue;
        if (*written == rest_limit(c))
            return true;
        rest_row_begin(c);
        web_write_repo(c->w, &repos[i]);
        rest_item_end(c);
        *last = repos[i].id;
        (*written)++;
    }
    return false;
}

/* Lists a page of repositories. It looks at about LAKE_LIST_MAX repositories at most, however few
 * of them the caller may see. So the page may have fewer repositories than the call asked for, or
 * none, although another page follows. */
static int repo_page(struct rest_call *c, struct err *err)
{
    struct lake_page page = {rest_text(c, "prefix"), rest_after(c), rest_limit(c)};
    struct lake_repo *repos = NULL;
    size_t count, seen = 0, written = 0;
    struct str last = STR_EMPTY;
    bool more = true, full = false;
    int code = 0;

    while (more && !full && seen < LAKE_LIST_MAX) {
        code = lake_repo_list(web_of(c)->lake, c->arena, &page, &repos, &count, &more, err);
        if (code < 0)
            return code;
        full = repo_write_page(c, repos, count, &written, &last);
        if (count)
            page.after = repos[count - 1].id;
        seen += count;
    }
    rest_page_end(c, full || more, full ? last : page.after);
    return 0;
}

/* --- one repository --- */

/* Checks the options of the call. If the name is in use, that error is reported before all others:
 * clients rely on it when they make a repository only if it does not exist. */
static int repo_check_wanted(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "name");
    struct lake_repo there;
    int code = lake_check_repo(name, err);

    if (code == 0)
        code = lake_repo_get(web_of(c)->lake, c->arena, name, &there, err);
    if (code == 0)
        return err_set(err, ERR_EXISTS, "repository already exists: not unique");
    if (code != ERR_NOT_FOUND)
        return code;
    if (rest_text(c, "storage_id").len)
        return err_set(err, ERR_INVALID, "unknown storage_id; leave it empty");
    return rest_bool(c, "sample_data") ? err_set(err, ERR_UNSUPPORTED, "weir has no sample data")
                                       : 0;
}

/* Checks that the caller may read, put and remove objects in the namespace, because the repository
 * will do so in the name of its owner. */
static int repo_check_space(struct rest_call *c, struct err *err)
{
    struct str bucket, prefix;
    int code = lake_check_space(rest_text(c, "storage_namespace"), &bucket, &prefix, err);

    if (code < 0)
        return code;
    struct str begin = prefix.len ? arena_fmt(c->arena, STR_FMT "/", STR_ARG(prefix)) : STR("");
    code = web_need_space(c, bucket, begin, err);
    return code == ERR_NO_BUCKET
               ? err_set(err, ERR_INVALID, "the namespace's bucket '" STR_FMT "' is not there",
                         STR_ARG(str_head(bucket, 64)))
               : code;
}

static int repo_begin(struct rest_call *c, struct err *err)
{
    struct lake_repo_options o = {
        .id = rest_text(c, "name"),
        .space = rest_text(c, "storage_namespace"),
        .default_branch = rest_text(c, "default_branch"),
        .owner = web_user(c)->id,
        .read_only = rest_bool(c, "read_only"),
        .bare = rest_bool(c, "bare"),
    };
    struct lake_repo repo;
    int code = repo_check_wanted(c, err);

    if (code == 0)
        code = repo_check_space(c, err);
    if (code == 0)
        code = lake_repo_create(web_of(c)->lake, c->arena, &o, &repo, err);
    if (code == 0)
        web_write_repo(c->w, &repo);
    return code;
}

static int repo_show(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, STR_EMPTY, STR_EMPTY}, &repo, err);

    if (code == 0)
        web_write_repo(c->w, &repo);
    return code;
}

/* Deletes the repository. A task then removes its remains. If the task cannot be added now, it is
 * added later, because the list of deleted repositories has the repository. */
static int repo_drop(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    struct err ignored = {0};
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_DELETE_BUCKET, STR_EMPTY, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_repo_delete(web_of(c)->lake, c->arena, repo.id, rest_bool(c, "force"),
                                rest_bool(c, "purge"), err);
    if (code == 0 && lake_task_add_delete(web_of(c)->services->queue, &ignored) < 0)
        log_info(http_request_log(c->req), "lake.delete_later", log_z("error", ignored.text));
    return code;
}

/* --- metadata --- */

static int repo_meta_show(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    struct str_pairs pairs = {0};
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, STR_EMPTY, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_repo_meta_get(web_of(c)->lake, c->arena, &repo, &pairs, err);
    for (size_t i = 0; code == 0 && i < pairs.count; i++) {
        json_out_key_str(c->w, pairs.pairs[i].key);
        json_out_str(c->w, pairs.pairs[i].value);
    }
    return code;
}

static int repo_meta_change(struct rest_call *c, const struct str_pairs *set,
                            const struct str *removed, size_t count, struct err *err)
{
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_PUT_BUCKET_TAGGING, STR_EMPTY, STR_EMPTY},
                        &repo, err);

    return code == 0
               ? lake_repo_meta_change(web_of(c)->lake, c->arena, &repo, set, removed, count, err)
               : code;
}

static int repo_meta_add(struct rest_call *c, struct err *err)
{
    struct str_pairs set;
    int code = web_pairs(c, rest_json(c, "metadata"), &set, err);

    return code == 0 ? repo_meta_change(c, &set, NULL, 0, err) : code;
}

static int repo_meta_drop(struct rest_call *c, struct err *err)
{
    static const struct str_pairs none;
    const struct str *keys;
    size_t count;
    int code = web_strs(c, rest_strings(c, "keys"), &keys, &count, err);

    return code == 0 ? repo_meta_change(c, &none, keys, count, err) : code;
}
