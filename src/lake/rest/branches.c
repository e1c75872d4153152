/* Calls about branches: making and deleting them, and discarding changes. */
#include "lake/rest/web.h"

static rest_fn branch_page, branch_make, branch_show, branch_drop, branch_reset, branch_move;

static const struct rest_row branch_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/branches", REST_USER, "The branches, by name.",
     branch_page, WEB_OP("listBranches"), WEB_IN_REPO,
     .query = REST_FIELDS(WEB_PREFIX, {"show_hidden", "Hidden branches too.", REST_BOOLEAN}),
     .list = "results", .by_source = true, .items = web_ref_fields},
    {HTTP_POST, "/api/v1/repositories/{repository}/branches", REST_USER,
     "Makes a branch. The answer is the id of its head.", branch_make, WEB_OP("createBranch"),
     WEB_IN_REPO, .status = 201,
     .body = REST_FIELDS({"name", "The branch's name.", .required = true},
                         {"source", "The ref that the branch begins with.", .required = true},
                         {"force", "Also in a read-only repository.", REST_BOOLEAN},
                         {"hidden", "Leave the branch out of lists.", REST_BOOLEAN}),
     .media = "text/html"},
    {HTTP_GET, "/api/v1/repositories/{repository}/branches/{branch}", REST_USER, "One branch.",
     branch_show, WEB_OP("getBranch"), WEB_IN_BRANCH, .answer = web_ref_fields},
    {HTTP_DELETE, "/api/v1/repositories/{repository}/branches/{branch}", REST_USER,
     "Deletes a branch, with its changes that are not committed.", branch_drop,
     WEB_OP("deleteBranch"), WEB_IN_BRANCH, .query = REST_FIELDS(WEB_FORCE), .status = 204},
    {HTTP_PUT, "/api/v1/repositories/{repository}/branches/{branch}", REST_USER,
     "Throws away changes that are not committed: all, those of a path, or those below a prefix.",
     branch_reset, WEB_OP("resetBranch"), WEB_IN_BRANCH, .status = 204,
     .body = REST_FIELDS({"type", "What to reset.", .required = true,
                          .choices = REST_CHOICES("object", "common_prefix", "reset")},
                         {"path", "The path or prefix."},
                         {"force", "Also in a read-only repository.", REST_BOOLEAN})},
    {HTTP_PUT, "/api/v1/repositories/{repository}/branches/{branch}/hard_reset", REST_USER,
     "Moves a branch without uncommitted changes to another commit.", branch_move,
     WEB_OP("hardResetBranch"), WEB_IN_BRANCH, .status = 204,
     .query = REST_FIELDS({"ref", "The commit.", .required = true}, WEB_FORCE)},
};
const struct rest_table web_branch_rows = WEB_ROWS(branch_rows);

static int branch_page(struct rest_call *c, struct err *err)
{
    struct lake_page page = web_page(c);
    struct lake_branch *branches = NULL;
    struct lake_repo repo;
    size_t count = 0;
    bool more = false;
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, STR_EMPTY, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_branch_list(web_of(c)->lake, c->arena, &repo, &page,
                                rest_bool(c, "show_hidden"), &branches, &count, &more, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        web_write_ref(c->w, branches[i].id, branches[i].commit_id);
        rest_item_end(c);
    }
    rest_page_end(c, more, count ? branches[count - 1].id : STR_EMPTY);
    return 0;
}

static int branch_make(struct rest_call *c, struct err *err)
{
    struct lake_branch_options o = {
        .name = rest_text(c, "name"),
        .source = rest_text(c, "source"),
        .hidden = rest_bool(c, "hidden"),
        .force = rest_bool(c, "force"),
    };
    struct lake_branch branch;
    struct lake_repo repo;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_take(c, &repo, o.source, o.name, err);
    if (code == 0)
        code = lake_branch_create(web_of(c)->lake, c->arena, &repo, &o, &branch, err);
    return code == 0 ? rest_send(c, branch.commit_id) : code;
}

static int branch_show(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "branch");
    struct lake_branch branch;
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, name, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_branch_get(web_of(c)->lake, c->arena, &repo, name, &branch, err);
    if (code == 0)
        web_write_ref(c->w, branch.id, branch.commit_id);
    return code;
}

static int branch_drop(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "branch");
    struct lake_repo repo;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_below_ref(c, &repo,
                                  (struct web_ask){S3_ACTION_DELETE_OBJECT, name, STR_EMPTY}, err);
    return code == 0 ? lake_branch_delete(web_of(c)->lake, c->arena, &repo, name,
                                          rest_bool(c, "force"), err)
                     : code;
}

static enum lake_reset_kind reset_kind(struct str type)
{
    return str_eq(type, STR("object"))          ? LAKE_RESET_PATH
           : str_eq(type, STR("common_prefix")) ? LAKE_RESET_PREFIX
                                                : LAKE_RESET_ALL;
}

static int branch_reset(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "branch"), path = rest_text(c, "path");
    enum lake_reset_kind kind = reset_kind(rest_text(c, "type"));
    struct web_ask ask = {S3_ACTION_PUT_OBJECT, name, kind == LAKE_RESET_ALL ? STR_EMPTY : path};
    struct lake_repo repo;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = kind == LAKE_RESET_PATH ? web_need(c, &repo, ask, err)
                                       : web_need_below_ref(c, &repo, ask, err);
    if (code == 0 && kind != LAKE_RESET_ALL && !path.len)
        code = err_set(err, ERR_INVALID, "path is required");
    return code == 0 ? lake_reset(web_of(c)->lake, c->arena, &repo, name, kind, path,
                                  rest_bool(c, "force"), err)
                     : code;
}

static int branch_move(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "branch"), ref = rest_text(c, "ref");
    struct lake_repo repo;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_take(c, &repo, ref, name, err);
    return code == 0 ? lake_hard_reset(web_of(c)->lake, c->arena, &repo, name, ref,
                                       rest_bool(c, "force"), err)
                     : code;
}
