/* Calls about differences between a branch and its head, and between two refs. */
#include "lake/rest/web.h"

static rest_fn diff_branch_page, diff_ref_page;

#define DIFF_QUERY                                                                                 \
    WEB_PREFIX,                                                                                    \
    {                                                                                              \
        "delimiter", "Show paths up to this behind the prefix only."                               \
    }

static const struct rest_field diff_fields[] = {
    {"type", "\"added\", \"removed\", \"changed\", \"conflict\" or \"prefix_changed\"."},
    {"path", "The path, or a common prefix."},
    {"path_type", "\"object\" or \"common_prefix\"."},
    {"size_bytes", "The size of the object, in bytes.", REST_INTEGER, .sometimes = true},
    {"right", "The object on the right side.", REST_OBJECT, .sometimes = true,
     .members = REST_FIELDS({"checksum", "Its ETag."},
                            {"mtime", "When it was written, in seconds since 1970.", REST_INTEGER},
                            {"content_type", "Its media type."},
                            {"metadata", "Its user metadata.", REST_MAP})},
    {0},
};

static const struct rest_row diff_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/branches/{branch}/diff", REST_USER,
     "The changes of a branch that are not committed.", diff_branch_page, WEB_OP("diffBranch"),
     WEB_IN_BRANCH, .query = REST_FIELDS(DIFF_QUERY), .list = "results", .by_source = true,
     .items = diff_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{leftRef}/diff/{rightRef}", REST_USER,
     "What differs between two refs (two_dot), or what the right one has changed since their "
     "common ancestor (three_dot).",
     diff_ref_page, WEB_OP("diffRefs"),
     .in_path = REST_FIELDS(WEB_REPO, {"leftRef", "The left ref."}, {"rightRef", "The right ref."}),
     .query =
         REST_FIELDS(DIFF_QUERY,
                     {"type", "The kind of comparison; default: three_dot.",
                      .choices = REST_CHOICES("two_dot", "three_dot")},
                     {"include_right_stats", "Show the objects of the right side.", REST_BOOLEAN}),
     .list = "results", .by_source = true, .items = diff_fields},
};
const struct rest_table web_diff_rows = WEB_ROWS(diff_rows);

static void diff_write_right(struct json_out *w, const struct lake_entry *e)
{
    json_out_key(w, "right");
    json_out_open(w, '{');
    json_out_member_str(w, "checksum", e->etag);
    json_out_member_i64(w, "mtime", e->modified_ms / MS_PER_S);
    json_out_member_str(w, "content_type", e->content_type);
    web_write_pairs(w, "metadata", &e->metadata);
    json_out_close(w, '}');
}

/* Which optional members an answer has for each difference. */
struct diff_shows {
    bool right; /* the object on the right side */
    /* the size of a removed object; false: the size is shown as 0, as lakeFS does for a branch */
    bool left_size;
};

static uint64_t diff_size(const struct lake_difference *d, const struct diff_shows *shows)
{
    if (d->type != LAKE_REMOVED)
        return d->right.entry.size;
    return shows->left_size ? d->left.entry.size : 0;
}

static void diff_write_one(struct json_out *w, const struct lake_difference *d,
                           const struct diff_shows *shows)
{
    static const char *const types[] = {
        [LAKE_ADDED] = "added",
        [LAKE_REMOVED] = "removed",
        [LAKE_CHANGED] = "changed",
        [LAKE_CONFLICT] = "conflict",
        [LAKE_PREFIX_CHANGED] = "prefix_changed",
    };

    json_out_member_str(w, "type", str_z(types[d->type]));
    json_out_member_str(w, "path", d->path);
    json_out_member_str(w, "path_type", d->is_prefix ? STR("common_prefix") : STR("object"));
    if (d->is_prefix)
        return;
    json_out_member_u64(w, "size_bytes", diff_size(d, shows));
    if (shows->right && d->type != LAKE_REMOVED)
        diff_write_right(w, &d->right.entry);
}

static void diff_write_page(struct rest_call *c, const struct lake_differences *d,
                            const struct diff_shows *shows)
{
    for (size_t i = 0; i < d->count; i++) {
        rest_row_begin(c);
        diff_write_one(c->w, &d->items[i], shows);
        rest_item_end(c);
    }
    rest_page_end(c, d->more, d->next);
}

static struct lake_list_options diff_options(const struct rest_call *c)
{
    return (struct lake_list_options){rest_text(c, "prefix"), rest_text(c, "delimiter"),
                                      rest_after(c), rest_limit(c)};
}

static int diff_branch_page(struct rest_call *c, struct err *err)
{
    struct str branch = rest_text(c, "branch");
    struct lake_list_options o = diff_options(c);
    struct lake_differences found = {0};
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, branch, o.prefix}, &repo, err);

    if (code == 0)
        code = lake_diff_branch(web_of(c)->lake, c->arena, &repo, branch, &o, &found, err);
    if (code == 0)
        diff_write_page(c, &found, &(struct diff_shows){0});
    return code;
}

static int diff_ref_page(struct rest_call *c, struct err *err)
{
    struct str left = rest_text(c, "leftRef"), right = rest_text(c, "rightRef");
    bool three_dot = !str_eq(rest_text(c, "type"), STR("two_dot"));
    struct lake_list_options o = diff_options(c);
    struct lake_differences found = {0};
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, left, o.prefix}, &repo, err);

    if (code == 0)
        code = web_need(c, &repo, (struct web_ask){S3_ACTION_LIST_BUCKET, right, o.prefix}, err);
    if (code == 0)
        code = lake_diff_refs(web_of(c)->lake, c->arena, &repo, left, right, three_dot, &o, &found,
                              err);
    if (code == 0)
        diff_write_page(c, &found, &(struct diff_shows){rest_bool(c, "include_right_stats"), true});
    return code;
}
