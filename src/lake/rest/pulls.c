/* Calls about pull requests. */
#include "lake/pulls.h"
#include "lake/rest/web.h"

static rest_fn pull_page, pull_make, pull_show, pull_change, pull_merge;

static const char *const pull_statuses[] = {
    [LAKE_PULL_OPEN] = "open",
    [LAKE_PULL_CLOSED] = "closed",
    [LAKE_PULL_MERGED] = "merged",
};

static const struct rest_field pull_path[] = {
    WEB_REPO, {"pull_request", "The id of the pull request."}, {0}};

static const struct rest_field pull_answer[] = {
    {"id", "The id of the pull request."},
    {"status", "\"open\", \"closed\" or \"merged\"."},
    {"title", "Its title."},
    {"description", "Its description."},
    {"author", "The user who made it."},
    {"creation_date", "When it was made.", REST_TIME},
    {"source_branch", "The branch to merge."},
    {"destination_branch", "The branch to merge into."},
    {"merged_commit_id", "The commit of the merge.", .sometimes = true},
    {"closed_date", "When it was closed or merged.", REST_TIME, .sometimes = true},
    {0},
};

#define PULLS "/api/v1/repositories/{repository}/pulls"

static const struct rest_row pull_rows[] = {
    {HTTP_GET, PULLS, REST_USER, "The pull requests, in the order of their making.", pull_page,
     WEB_OP("listPullRequests"), WEB_IN_REPO,
     .query = REST_FIELDS(WEB_PREFIX, {"status", "Only those that are open, or closed or merged.",
                                       .choices = REST_CHOICES("open", "closed", "all")}),
     .list = "results", .by_source = true, .items = pull_answer},
    {HTTP_POST, PULLS, REST_USER, "Asks that a branch be merged into another one.", pull_make,
     WEB_OP("createPullRequest"), WEB_IN_REPO, .status = 201,
     .body =
         REST_FIELDS({"title", "Its title.", .required = true}, {"description", "Its description."},
                     {"source_branch", "The branch to merge.", .required = true},
                     {"destination_branch", "The branch to merge into.", .required = true}),
     .answer = REST_FIELDS({"id", "The id of the pull request."})},
    {HTTP_GET, PULLS "/{pull_request}", REST_USER, "One pull request.", pull_show,
     WEB_OP("getPullRequest"), .in_path = pull_path, .answer = pull_answer},
    {HTTP_PATCH, PULLS "/{pull_request}", REST_USER,
     "Changes a pull request; only its author, or a caller who may write to its destination, may.",
     pull_change, WEB_OP("updatePullRequest"), .in_path = pull_path,
     .body = REST_FIELDS(
         {"status", "Open it again, or close it.", .choices = REST_CHOICES("open", "closed")},
         {"title", "A new title."}, {"description", "A new description."}),
     .answer = REST_FIELDS({"*", "Nothing.", .sometimes = true})},
    {HTTP_PUT, PULLS "/{pull_request}/merge", REST_USER, "Merges an open pull request.", pull_merge,
     WEB_OP("mergePullRequest"), .in_path = pull_path, .status = 200, .other_status = 409,
     .answer = web_merge_fields},
};
const struct rest_table web_pull_rows = WEB_ROWS(pull_rows);

static const struct web_ask may_list = {S3_ACTION_LIST_BUCKET, {0}, {0}};

static void pull_write_one(struct json_out *w, const struct lake_pull *p)
{
    json_out_member_str(w, "id", p->id);
    json_out_member_str(w, "status", str_z(pull_statuses[p->status]));
    json_out_member_str(w, "title", p->title);
    json_out_member_str(w, "description", p->description);
    json_out_member_str(w, "author", p->author);
    rest_time(w, "creation_date", p->created_ms);
    json_out_member_str(w, "source_branch", p->source);
    json_out_member_str(w, "destination_branch", p->destination);
    if (p->commit_id.len)
        json_out_member_str(w, "merged_commit_id", p->commit_id);
    if (p->closed_ms)
        rest_time(w, "closed_date", p->closed_ms);
}

/* Returns the statuses that the caller wants in a list, as bits. */
static unsigned pull_asked(const struct rest_call *c)
{
    enum { OPEN = 1u << LAKE_PULL_OPEN, ENDED = 1u << LAKE_PULL_CLOSED | 1u << LAKE_PULL_MERGED };
    struct str status = rest_text(c, "status");

    return str_eq(status, STR("open"))     ? OPEN
           : str_eq(status, STR("closed")) ? ENDED
                                           : OPEN | ENDED;
}

static int pull_page(struct rest_call *c, struct err *err)
{
    struct lake_page page = web_page(c);
    struct lake_pull *pulls = NULL;
    struct lake_repo repo;
    size_t count = 0;
    bool more = false;
    int code = web_repo(c, may_list, &repo, err);

    if (code == 0)
        code = lake_pull_list(web_of(c)->lake, c->arena, &repo, &page, pull_asked(c), &pulls,
                              &count, &more, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        pull_write_one(c->w, &pulls[i]);
        rest_item_end(c);
    }
    rest_page_end(c, more, count ? pulls[count - 1].id : STR_EMPTY);
    return 0;
}

static int pull_make(struct rest_call *c, struct err *err)
{
    struct lake_pull wanted = {
        .title = rest_text(c, "title"),
        .description = rest_text(c, "description"),
        .author = web_user(c)->name,
        .source = rest_text(c, "source_branch"),
        .destination = rest_text(c, "destination_branch"),
    };
    struct lake_pull made;
    struct lake_repo repo;
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_PUT_OBJECT, wanted.source, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_pull_create(web_of(c)->lake, c->arena, &repo, &wanted, &made, err);
    if (code == 0)
        json_out_member_str(c->w, "id", made.id);
    return code;
}

/* Finds the pull request that the call's path names. */
static int pull_find(struct rest_call *c, struct lake_repo *repo, struct lake_pull *out,
                     struct err *err)
{
    int code = web_repo(c, may_list, repo, err);

    return code == 0 ? lake_pull_get(web_of(c)->lake, c->arena, repo, rest_text(c, "pull_request"),
                                     out, err)
                     : code;
}

static int pull_show(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;
    struct lake_pull pull;
    int code = pull_find(c, &repo, &pull, err);

    if (code == 0)
        pull_write_one(c->w, &pull);
    return code;
}

static int pull_change(struct rest_call *c, struct err *err)
{
    struct str title = rest_text(c, "title"), description = rest_text(c, "description");
    struct lake_pull_change change = {
        .title = rest_given(c, "title") ? &title : NULL,
        .description = rest_given(c, "description") ? &description : NULL,
        .status = !rest_given(c, "status")                      ? LAKE_PULL_STATUSES
                  : str_eq(rest_text(c, "status"), STR("open")) ? LAKE_PULL_OPEN
                                                                : LAKE_PULL_CLOSED,
    };
    struct lake_repo repo;
    struct lake_pull pull;
    int code = pull_find(c, &repo, &pull, err);

    if (code == 0 && !str_eq(pull.author, web_user(c)->name))
        code = web_need(c, &repo,
                        (struct web_ask){S3_ACTION_PUT_OBJECT, pull.destination, STR_EMPTY}, err);
    return code == 0 ? lake_pull_update(web_of(c)->lake, c->arena, &repo, pull.id, &change, err)
                     : code;
}

static int pull_merge(struct rest_call *c, struct err *err)
{
    struct lake_merge_options o = {.committer = web_user(c)->name};
    struct lake_conflicts conflicts = {0};
    struct lake_repo repo;
    struct lake_pull pull;
    int code = pull_find(c, &repo, &pull, err);

    if (code == 0)
        code = web_need_take(c, &repo, pull.source, pull.destination, err);
    if (code == 0)
        code =
            lake_pull_merge(web_of(c)->lake, c->arena, &repo, pull.id, &o, &pull, &conflicts, err);
    if (code == ERR_CONFLICT)
        return web_merge_refuse(c, &conflicts, err);
    if (code == 0)
        json_out_member_str(c->w, "reference", pull.commit_id);
    return code;
}
