/* Calls about the node files of trees: where they are, and their bytes. */
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/place.h"
#include "lake/rest/web.h"

static rest_fn tree_root_place, tree_leaf_place, tree_file_get;

static const struct rest_field location_answer[] = {
    {"location", "Where the file lies: s3://bucket/key."}, {0}};

static const struct rest_row tree_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/metadata/meta_range/{meta_range}", REST_USER,
     "Where the root of a tree lies.", tree_root_place, WEB_OP("getMetaRange"),
     .in_path = REST_FIELDS(WEB_REPO, {"meta_range", "The id of the tree."}),
     .answer = location_answer},
    {HTTP_GET, "/api/v1/repositories/{repository}/metadata/range/{range}", REST_USER,
     "Where a file of a tree lies.", tree_leaf_place, WEB_OP("getRange"),
     .in_path = REST_FIELDS(WEB_REPO, {"range", "The id of the file."}), .answer = location_answer},
    {HTTP_GET, "/api/v1/repositories/{repository}/metadata/object/{type}/{object_id}", REST_USER,
     "The bytes of a file of a tree.", tree_file_get, WEB_OP("getMetadataObject"),
     .in_path = REST_FIELDS(
         WEB_REPO,
         {"type", "The kind of the file.", .choices = REST_CHOICES("range", "meta_range")},
         {"object_id", "The id of the file."}),
     .query = REST_FIELDS({"presign", "Answer with a presigned URL.", REST_BOOLEAN}),
     .media = "application/octet-stream"},
};
const struct rest_table web_tree_rows = WEB_ROWS(tree_rows);

/* Reads the repository's record and checks the id of the file. The file shows paths of every ref
 * whose tree has it, so the caller must be allowed to read the whole repository. */
static int tree_file_find(struct rest_call *c, struct str id, struct lake_repo *out,
                          struct err *err)
{
    int code = web_find_repo(c, out, err);

    if (code == 0)
        code = web_need_whole(c, out, err);
    if (code == 0 && !lake_is_commit_id(id))
        code = err_set(err, ERR_INVALID, "the id of a file has 64 hex digits");
    return code;
}

static struct str tree_file_address(struct rest_call *c, const struct lake_repo *r, struct str id)
{
    return arena_fmt(c->arena, STR_FMT "/" LAKE_NODES "/" STR_FMT, STR_ARG(r->space), STR_ARG(id));
}

static int tree_file_place(struct rest_call *c, const char *name, struct err *err)
{
    struct str id = rest_text(c, name);
    struct lake_repo repo;
    int code = tree_file_find(c, id, &repo, err);

    if (code == 0)
        json_out_member_str(c->w, "location", tree_file_address(c, &repo, id));
    return code;
}

static int tree_root_place(struct rest_call *c, struct err *err)
{
    return tree_file_place(c, "meta_range", err);
}

static int tree_leaf_place(struct rest_call *c, struct err *err)
{
    return tree_file_place(c, "range", err);
}

static int tree_file_redirect(struct rest_call *c, const struct lake_repo *r, struct str id,
                              struct err *err)
{
    struct web_presigned url;
    int code = web_presign(c, r, "GET", tree_file_address(c, r, id), &url, err);

    if (code < 0)
        return code;
    rest_header(c, STR("Location"), url.url);
    return http_send(rest_take_answer(c, 302), STR_EMPTY);
}

static int tree_file_get(struct rest_call *c, struct err *err)
{
    struct str id = rest_text(c, "object_id");
    struct buf bytes = {0};
    struct object_place place;
    struct lake_repo repo;
    int code = tree_file_find(c, id, &repo, err);

    if (code < 0 || rest_bool(c, "presign"))
        return code < 0 ? code : tree_file_redirect(c, &repo, id, err);
    struct str key = arena_fmt(c->arena, LAKE_NODES "/" STR_FMT, STR_ARG(id));
    code = lake_place_open_below(&place, web_of(c)->lake, c->arena, &repo, key, PLACE_READ, err);
    if (code < 0)
        return code;
    code = object_place_read(&place, &bytes, NULL, err);
    code = object_place_end(&place, code, err);
    if (code == 0)
        code = rest_send(c, buf_str(&bytes));
    else if (code == ERR_NOT_FOUND)
        err_set(err, code, "file not found");
    buf_release(&bytes);
    return code;
}
