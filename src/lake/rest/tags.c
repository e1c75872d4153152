/* Calls about tags. */
#include "lake/rest/web.h"

static rest_fn tag_page, tag_make, tag_show, tag_drop;

static const struct rest_field tag_path[] = {WEB_REPO, {"tag", "The tag's name."}, {0}};

static const struct rest_row tag_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/tags", REST_USER, "The tags, by name.", tag_page,
     WEB_OP("listTags"), WEB_IN_REPO, .query = REST_FIELDS(WEB_PREFIX), .list = "results",
     .by_source = true, .items = web_ref_fields},
    {HTTP_POST, "/api/v1/repositories/{repository}/tags", REST_USER, "Makes a tag.", tag_make,
     WEB_OP("createTag"), WEB_IN_REPO, .status = 201,
     .body = REST_FIELDS({"id", "The tag's name.", .required = true},
                         {"ref", "The commit that the tag names.", .required = true},
                         {"force", "Also in a read-only repository.", REST_BOOLEAN}),
     .answer = web_ref_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/tags/{tag}", REST_USER, "One tag.", tag_show,
     WEB_OP("getTag"), .in_path = tag_path, .answer = web_ref_fields},
    {HTTP_DELETE, "/api/v1/repositories/{repository}/tags/{tag}", REST_USER, "Deletes a tag.",
     tag_drop, WEB_OP("deleteTag"), .in_path = tag_path, .query = REST_FIELDS(WEB_FORCE),
     .status = 204},
};
const struct rest_table web_tag_rows = WEB_ROWS(tag_rows);

static int tag_page(struct rest_call *c, struct err *err)
{
    struct lake_page page = web_page(c);
    struct lake_tag *tags = NULL;
    struct lake_repo repo;
    size_t count = 0;
    bool more = false;
    int code =
        web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, STR_EMPTY, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_tag_list(web_of(c)->lake, c->arena, &repo, &page, &tags, &count, &more, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        rest_row_begin(c);
        web_write_ref(c->w, tags[i].id, tags[i].commit_id);
        rest_item_end(c);
    }
    rest_page_end(c, more, count ? tags[count - 1].id : STR_EMPTY);
    return 0;
}

static int tag_make(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "id"), ref = rest_text(c, "ref");
    struct lake_repo repo;
    struct lake_tag tag;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_take(c, &repo, ref, name, err);
    if (code == 0)
        code = lake_tag_create(web_of(c)->lake, c->arena, &repo, name, ref, rest_bool(c, "force"),
                               &tag, err);
    if (code == 0)
        web_write_ref(c->w, tag.id, tag.commit_id);
    return code;
}

static int tag_show(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "tag");
    struct lake_repo repo;
    struct lake_tag tag;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, name, STR_EMPTY}, &repo, err);

    if (code == 0)
        code = lake_tag_get(web_of(c)->lake, c->arena, &repo, name, &tag, err);
    if (code == 0)
        web_write_ref(c->w, tag.id, tag.commit_id);
    return code;
}

static int tag_drop(struct rest_call *c, struct err *err)
{
    struct str name = rest_text(c, "tag");
    struct lake_repo repo;
    int code = web_find_repo(c, &repo, err);

    if (code == 0)
        code = web_need_below_ref(c, &repo,
                                  (struct web_ask){S3_ACTION_DELETE_OBJECT, name, STR_EMPTY}, err);
    return code == 0
               ? lake_tag_delete(web_of(c)->lake, c->arena, &repo, name, rest_bool(c, "force"), err)
               : code;
}
