/* Calls that change objects of a branch: upload, remove, and change metadata. */
#include "lake/amend.h"
#include "lake/body.h"
#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/overlap.h"
#include "lake/rest/web.h"
#include "route/space.h"
#include "s3/gateway/form.h"

static rest_fn upload_object, upload_preflight, path_remove, paths_remove, object_stage_address,
    object_set_metadata;

#define STAGE_FIELDS                                                                               \
    {"physical_address", "Where its bytes lie: s3://bucket/key.", .required = true},               \
        {"checksum", "Its ETag.", .required = true},                                               \
        {"size_bytes", "Its size in bytes.", REST_INTEGER, .required = true,                       \
         .min = 0,     .max = INT64_MAX},                                                          \
        {"mtime", "When it was written, in seconds since 1970; default: now.", REST_INTEGER,       \
         .min = 0, .max = WEB_TIME_MAX},                                                           \
        {"metadata", "Its user metadata.", REST_MAP}, {"content_type", "Its media type."},         \
    {                                                                                              \
        "force", "Also in a read-only repository.", REST_BOOLEAN                                   \
    }

static const struct rest_row upload_rows[] = {
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/objects", REST_USER,
     "Uploads an object. Headers x-lakefs-meta-* become its metadata.", upload_object,
     WEB_OP("uploadObject"), WEB_IN_BRANCH, .status = 201,
     .query = REST_FIELDS(WEB_PATH, {"storageClass", "Its storage class."}, WEB_FORCE),
     .stream_body = "The bytes, or a form (multipart/form-data) whose part `content` is the bytes.",
     .answer = web_stats_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/branches/{branch}/objects/stage_allowed",
     REST_USER, "204 when the caller may write to the path.", upload_preflight,
     WEB_OP("uploadObjectPreflight"), WEB_IN_BRANCH, .query = REST_FIELDS(WEB_PATH), .status = 204},
    {HTTP_DELETE, "/api/v1/repositories/{repository}/branches/{branch}/objects", REST_USER,
     "Removes an object.", path_remove, WEB_OP("deleteObject"), WEB_IN_BRANCH, .status = 204,
     .query = REST_FIELDS(
         WEB_PATH, WEB_FORCE,
         {"no_tombstone", "Has no effect: weir leaves none that is not needed.", REST_BOOLEAN})},
    {HTTP_POST, "/api/v1/repositories/{repository}/branches/{branch}/objects/delete", REST_USER,
     "Removes up to 1000 objects.", paths_remove, WEB_OP("deleteObjects"), WEB_IN_BRANCH,
     .query = REST_FIELDS(
         WEB_FORCE,
         {"no_tombstone", "Has no effect: weir leaves none that is not needed.", REST_BOOLEAN}),
     .body = REST_FIELDS(
         {"paths", "The paths.", REST_STRINGS, .required = true, .max = LAKE_BATCH_MAX}),
     .answer = REST_FIELDS(
         {"errors", "The paths that were not removed.", REST_OBJECTS,
          .members = REST_FIELDS({"path", "The path."}, {"status_code", "A status.", REST_INTEGER},
                                 {"message", "Why it was not removed."})})},
    {HTTP_PUT, "/api/v1/repositories/{repository}/branches/{branch}/objects", REST_USER,
     "Makes an object of bytes that lie somewhere already. The caller must be allowed to read "
     "them, unless they are in the repository's namespace.",
     object_stage_address, WEB_OP("stageObject"), WEB_IN_BRANCH, .status = 201,
     .query = REST_FIELDS(WEB_PATH), .body = REST_FIELDS(STAGE_FIELDS), .answer = web_stats_fields},
    {HTTP_PUT, "/api/v1/repositories/{repository}/branches/{branch}/objects/stat/user_metadata",
     REST_USER, "Replaces the user metadata of an object.", object_set_metadata,
     WEB_OP("updateObjectUserMetadata"), WEB_IN_BRANCH, .status = 201,
     .query = REST_FIELDS(WEB_PATH),
     .body = REST_FIELDS({"set", "The metadata.", REST_MAP, .required = true}),
     .answer = REST_FIELDS({"*", "Nothing.", .sometimes = true})},
};
const struct rest_table web_upload_rows = WEB_ROWS(upload_rows);

/* --- upload --- */

#define META_HEADER     "x-lakefs-meta-"
#define INTERNAL_HEADER "x-lakefs-internal-"
#define INTERNAL_KEY    "::lakefs::"

/* Gets the metadata key that a header sets. Returns false if the header sets no metadata. */
static bool meta_key_of(struct arena *a, struct str header, struct str *out)
{
    struct str name = arena_lower(a, header);

    if (str_starts(name, STR(META_HEADER)))
        *out = str_skip(name, sizeof(META_HEADER) - 1);
    else if (str_starts(name, STR(INTERNAL_HEADER)))
        *out = arena_fmt(a, INTERNAL_KEY STR_FMT,
                         STR_ARG(str_skip(name, sizeof(INTERNAL_HEADER) - 1)));
    else
        return false;
    return out->len > 0;
}

static int upload_read_metadata(struct rest_call *c, struct str_pairs *out, struct err *err)
{
    const struct http_head *head = http_request_head(c->req);
    json_t *map = json_object();
    struct str key;
    int code = 0;

    for (size_t i = 0; i < head->header_count && code == 0; i++)
        if (meta_key_of(c->arena, head->headers[i].name, &key) &&
            json_object_set_new(
                map, key.p, json_stringn(head->headers[i].value.p, head->headers[i].value.len)) < 0)
            code = err_set(err, ERR_INVALID, "metadata must be UTF-8");
    if (code == 0)
        code = web_pairs(c, map, out, err);
    for (size_t i = 0; code == 0 && i < out->count; i++)
        out->pairs[i] = (struct str_pair){arena_str(c->arena, out->pairs[i].key),
                                          arena_str(c->arena, out->pairs[i].value)};
    json_decref(map);
    return code == 0 ? lake_check_metadata(out, err) : code;
}

/* The body of an upload: the body of the request, or the part `content` of a form. */
struct upload_body {
    struct reader *reader;
    uint64_t size; /* UINT64_MAX: the size is not known */
    struct str type;
    bool is_form;
    struct form form;
};

static int upload_open(struct upload_body *out, struct rest_call *c, struct err *err)
{
    struct str type = http_header(http_request_head(c->req), "Content-Type");

    out->is_form = form_is_type(type);
    out->reader = http_request_body(c->req);
    out->size = http_request_length(c->req);
    out->type = type;
    if (!out->is_form)
        return 0;
    int code = form_open_part(&out->form, c->arena, out->reader, type, "content", err);
    out->is_form = code == 0;
    out->reader = &out->form.file;
    out->size = UINT64_MAX;
    out->type = out->form.file_type;
    return code;
}

static void upload_close(struct upload_body *b)
{
    if (b->is_form)
        form_close(&b->form);
}

/* Puts the bytes at a new address, and stages an entry with this address. */
static int upload_store(struct rest_call *c, const struct lake_repo *repo, struct lake_object *out,
                        struct err *err)
{
    struct http_header type = {STR("Content-Type"), STR_EMPTY};
    struct put_options put = {.meta = {.headers = &type,
                                       .header_count = 1,
                                       .owner = web_user(c)->id,
                                       .storage_class = rest_text(c, "storageClass")}};
    struct upload_body *body = arena_new(c->arena, struct upload_body);
    int code = body ? upload_open(body, c, err) : err_code(err, ERR_NO_MEMORY);

    if (code < 0)
        return code;
    type.value = body->type;
    out->entry.content_type = body->type;
    code = lake_body_put(web_of(c)->lake, c->arena, repo, body->reader, body->size, &put,
                         &out->entry, err);
    upload_close(body);
    if (code < 0)
        return code;
    bool may_be_there = false;
    struct lake_stage_options how = {.force = rest_bool(c, "force"), .may_be_there = &may_be_there};
    code = web_stage(c, repo, out, how, err);
    if (lake_body_is_free(code, may_be_there))
        lake_body_remove(web_of(c)->lake, c->arena, repo, &out->entry);
    return code;
}

static int upload_object(struct rest_call *c, struct err *err)
{
    struct lake_object object = {.path = rest_text(c, "path")};
    struct lake_repo repo;
    int code = web_writable(c, object.path, rest_bool(c, "force"), &repo, err);

    if (code == 0)
        code = web_check_value("storageClass", rest_text(c, "storageClass"), err);
    if (code == 0)
        code = upload_read_metadata(c, &object.entry.metadata, err);
    if (code == 0)
        code = upload_store(c, &repo, &object, err);
    if (code == 0)
        web_write_stats(c, &repo, &object, &(struct web_stats_options){.metadata = true});
    return code;
}

static int upload_preflight(struct rest_call *c, struct err *err)
{
    struct lake_repo repo;

    return web_writable(c, rest_text(c, "path"), false, &repo, err);
}

/* --- removal --- */

static int path_remove(struct rest_call *c, struct err *err)
{
    struct str branch = rest_text(c, "branch");
    struct lake_put put = {.path = rest_text(c, "path")};
    struct lake_stage_options o = {.force = rest_bool(c, "force")};
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_DELETE_OBJECT, branch, put.path}, &repo, err);

    if (code == 0)
        code = lake_check_path(put.path, err);
    return code == 0 ? lake_stage(web_of(c)->lake, c->arena, &repo, branch, &put, 1, &o, err)
                     : code;
}

static void drop_write_error(struct json_out *w, struct str path, int status, const char *message)
{
    json_out_open(w, '{');
    json_out_member_str(w, "path", path);
    json_out_member_i64(w, "status_code", status);
    json_out_member_str(w, "message", str_z(message));
    json_out_close(w, '}');
}

static bool drop_is_there(const struct lake_put *puts, size_t count, struct str path)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(puts[i].path, path))
            return true;
    return false;
}

/* Chooses the paths that the caller may remove. For each other path, writes an error into the
 * answer. An empty path is skipped without an error, as in lakeFS. */
static size_t drop_choose(struct rest_call *c, const struct web_bucket *gate,
                          const struct str *paths, size_t count, struct lake_put *out)
{
    struct str branch = rest_text(c, "branch");
    size_t chosen = 0;

    for (size_t i = 0; i < count; i++) {
        struct err err = {0};
        if (!paths[i].len || drop_is_there(out, chosen, paths[i]))
            continue;
        if (!web_gate_may(c, gate, (struct web_ask){S3_ACTION_DELETE_OBJECT, branch, paths[i]}))
            drop_write_error(c->w, paths[i], 401, "insufficient permissions");
        else if (lake_check_path(paths[i], &err) < 0)
            drop_write_error(c->w, paths[i], 400, err.text);
        else
            out[chosen++] = (struct lake_put){.path = paths[i]};
    }
    return chosen;
}

static int paths_remove(struct rest_call *c, struct err *err)
{
    struct lake_stage_options o = {.force = rest_bool(c, "force")};
    struct str branch = rest_text(c, "branch");
    struct web_bucket *gate = NULL;
    struct lake_put *puts = NULL;
    const struct str *paths;
    struct lake_repo repo;
    size_t count;
    int code = web_strs(c, rest_strings(c, "paths"), &paths, &count, err);

    if (code == 0)
        code = web_find_repo(c, &repo, err);
    if (code == 0)
        code = web_gate_open(&gate, c, &repo, err);
    if (code < 0)
        return code;
    puts = arena_array(c->arena, count + 1, sizeof(*puts));
    json_out_key(c->w, "errors");
    json_out_open(c->w, '[');
    count = puts ? drop_choose(c, gate, paths, count, puts) : 0;
    json_out_close(c->w, ']');
    web_gate_close(gate);
    if (!puts)
        return err_code(err, ERR_NO_MEMORY);
    return count ? lake_stage(web_of(c)->lake, c->arena, &repo, branch, puts, count, &o, err) : 0;
}

/* --- objects whose bytes are stored already --- */

/* New metadata for an object, and the conditions of the call. */
struct metadata_change {
    struct str_pairs metadata;
    struct object_conditions conditions;
};

static int metadata_change_set(void *ctx, struct lake_entry *e, struct err *err)
{
    e->metadata = ((struct metadata_change *)ctx)->metadata;
    return 0;
}

static int metadata_change_judge(void *ctx, struct str path, const struct lake_object *present,
                                 struct err *err)
{
    return web_judge_write(&((struct metadata_change *)ctx)->conditions, path, present, err);
}

static int object_set_metadata(struct rest_call *c, struct err *err)
{
    struct metadata_change change = {.conditions = web_conditions(c)};
    struct lake_amendment m = {
        .change = metadata_change_set, .judge = metadata_change_judge, .ctx = &change};
    struct str path = rest_text(c, "path");
    struct lake_repo repo;
    int code = web_writable(c, path, false, &repo, err);

    if (code == 0)
        code = web_pairs(c, rest_json(c, "set"), &change.metadata, err);
    if (code == 0)
        code = lake_check_metadata(&change.metadata, err);
    return code == 0
               ? lake_amend(web_of(c)->lake, c->arena, &repo, rest_text(c, "branch"), path, &m, err)
               : code;
}

/* Checks an address inside the namespace. Either weir gave it to a client for the call's path, or
 * it is in the folder of bodies and the caller may read the whole repository. */
static int stage_check_inside(struct rest_call *c, const struct lake_repo *repo, struct str address,
                              struct err *err)
{
    struct err ignored = {0};
    struct str key;

    if (web_link_key(c, repo, address, &key, &ignored) == 0)
        return 0;
    if (!str_starts(str_skip(address, repo->space.len), STR("/" LAKE_BODIES "/")))
        return err_set(err, ERR_INVALID, "objects of the namespace begin with " LAKE_BODIES "/");
    return web_need_whole(c, repo, err);
}

/* Sets the entry's address to the one in the call. If the address is outside of the namespace, the
 * caller must be allowed to read the object there. */
static int stage_set_address(struct rest_call *c, const struct lake_repo *repo,
                             struct lake_entry *e, struct err *err)
{
    struct str address = rest_text(c, "physical_address"), bucket, key;
    struct str space = arena_fmt(c->arena, STR_FMT "/", STR_ARG(repo->space));

    if (str_starts(address, space)) {
        e->address = str_skip(address, space.len);
        e->address_type = LAKE_RELATIVE;
        return stage_check_inside(c, repo, address, err);
    }
    if (!str_starts(address, STR("s3://")) || !str_cut(str_skip(address, 5), '/', &bucket, &key) ||
        !key.len)
        return err_set(err, ERR_INVALID, "physical_address must be s3://bucket/key");
    e->address = address;
    e->address_type = LAKE_FULL;
    struct web_key_ask ask = {S3_ACTION_GET_OBJECT, bucket, key, repo->owner};
    int code = routes_space_of(web_of(c)->services->routes, bucket)
                   ? err_set(err, ERR_INVALID, "physical_address names a repository's bucket")
                   : web_need_key(c, &ask, err);
    if (code == 0)
        code = lake_check_source(web_of(c)->lake, repo, address, false, err);
    return code == ERR_NO_BUCKET ? err_set(err, ERR_INVALID, "there is no such bucket") : code;
}

static int object_stage_address(struct rest_call *c, struct err *err)
{
    struct lake_object object = {.path = rest_text(c, "path")};
    struct lake_entry *e = &object.entry;
    bool force = rest_bool(c, "force");
    struct lake_keep keep;
    struct lake_repo repo;
    int code = web_writable(c, object.path, force, &repo, err);

    if (code == 0)
        code = web_check_value("checksum", rest_text(c, "checksum"), err);
    if (code == 0)
        code = web_check_value("content_type", rest_text(c, "content_type"), err);
    if (code == 0)
        code = stage_set_address(c, &repo, e, err);
    if (code == 0)
        code = lake_keep_begin(&keep, web_of(c)->lake, c->arena, &repo, err);
    if (code == 0)
        code = lake_keep_check_file(&keep, &repo, e, 0, err);
    if (code == 0)
        code = web_pairs(c, rest_json(c, "metadata"), &e->metadata, err);
    if (code == 0)
        code = lake_check_metadata(&e->metadata, err);
    if (code < 0)
        return code;
    e->etag = web_bare_etag(rest_text(c, "checksum"));
    e->size = (uint64_t)rest_integer(c, "size_bytes");
    e->content_type = rest_text(c, "content_type");
    e->modified_ms = rest_given(c, "mtime") ? rest_integer(c, "mtime") * MS_PER_S : clock_wall_ms();
    code = web_stage(c, &repo, &object, (struct lake_stage_options){.keep = &keep, .force = force},
                     err);
    if (code == 0)
        web_write_stats(c, &repo, &object, &(struct web_stats_options){.metadata = true});
    return code;
}
