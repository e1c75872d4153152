/* Calls with which clients upload an object in parts directly to the storage. weir gives the client
 * a signed address and a presigned URL for each part. At the end weir stages an entry with the
 * address at the object's path. */
#include "lake/address.h"
#include "lake/body.h"
#include "lake/keep.h"
#include "lake/names.h"
#include "lake/rest/web.h"
#include "object/range.h"

static rest_fn multipart_begin, multipart_finish, multipart_abort, multipart_part,
    multipart_copy_part;

enum { MULTIPART_URLS_MAX = 1000 }; /* most presigned URLs in one answer */

#define PMPU "/api/v1/repositories/{repository}/branches/{branch}/staging/pmpu"
#define UPLOAD_FIELD                                                                               \
    {                                                                                              \
        "uploadId", "The upload's id."                                                             \
    }
#define PART_FIELD                                                                                 \
    {                                                                                              \
        "partNumber", "The part's number.", REST_INTEGER, .min = 1, .max = OBJECT_MAX_PARTS        \
    }
#define ADDRESS_FIELD                                                                              \
    {                                                                                              \
        "physical_address", "The address of the upload.", .required = true                         \
    }

static const struct rest_field part_path[] = {WEB_REPO, WEB_BRANCH, UPLOAD_FIELD, PART_FIELD, {0}};

static const struct rest_row multipart_rows[] = {
    {HTTP_POST, PMPU, REST_USER, "Begins an upload in parts, with presigned URLs for its parts.",
     multipart_begin, WEB_OP("createPresignMultipartUpload"), WEB_IN_BRANCH, .status = 201,
     .query = REST_FIELDS(WEB_PATH, {"parts", "How many presigned URLs to answer.", REST_INTEGER,
                                     .min = 0, .max = MULTIPART_URLS_MAX}),
     .answer = REST_FIELDS({"upload_id", "The upload's id."},
                           {"physical_address", "Where the object will lie."},
                           {"presigned_urls", "URLs to put the parts to.", REST_STRINGS})},
    {HTTP_PUT, PMPU "/{uploadId}", REST_USER,
     "Makes an object of the parts and links it to its path.", multipart_finish,
     WEB_OP("completePresignMultipartUpload"),
     .in_path = REST_FIELDS(WEB_REPO, WEB_BRANCH, UPLOAD_FIELD), .query = REST_FIELDS(WEB_PATH),
     .body = REST_FIELDS(
         ADDRESS_FIELD,
         {"parts", "The parts.", REST_OBJECTS, .required = true, .min = 1, .max = OBJECT_MAX_PARTS,
          .members = REST_FIELDS({"part_number", "Its number.", REST_INTEGER, .required = true,
                                  .min = 1, .max = OBJECT_MAX_PARTS},
                                 {"etag", "Its ETag.", .required = true})},
         {"user_metadata", "The object's metadata.", REST_MAP},
         {"content_type", "The object's media type."}),
     .answer = web_stats_fields},
    {HTTP_DELETE, PMPU "/{uploadId}", REST_USER, "Gives an upload up.", multipart_abort,
     WEB_OP("abortPresignMultipartUpload"),
     .in_path = REST_FIELDS(WEB_REPO, WEB_BRANCH, UPLOAD_FIELD), .query = REST_FIELDS(WEB_PATH),
     .body = REST_FIELDS(ADDRESS_FIELD), .status = 204},
    {HTTP_PUT, PMPU "/{uploadId}/parts/{partNumber}", REST_USER,
     "Gives a presigned URL for one part.", multipart_part, WEB_OP("uploadPart"),
     .in_path = part_path, .query = REST_FIELDS(WEB_PATH), .body = REST_FIELDS(ADDRESS_FIELD),
     .answer = REST_FIELDS({"presigned_url", "A URL to put the part to."})},
    {HTTP_PUT, PMPU "/{uploadId}/parts/{partNumber}/copy", REST_USER,
     "Makes a part of a range of an object. The header ETag of the answer is the part's.",
     multipart_copy_part, WEB_OP("uploadPartCopy"), .in_path = part_path,
     .query = REST_FIELDS(WEB_PATH),
     .body = REST_FIELDS(
         ADDRESS_FIELD,
         {"copy_source", "The object.", REST_OBJECT, .required = true,
          .members = REST_FIELDS({"repository", "Its repository.", .required = true},
                                 {"ref", "The ref that has it.", .required = true},
                                 {"path", "Its path.", .required = true},
                                 {"range", "The range, such as bytes=0-99; absent: everything."})}),
     .status = 204},
};
const struct rest_table web_multipart_rows = WEB_ROWS(multipart_rows);

/* --- the upload in the bucket of the namespace --- */

/* An upload that a call names: its repository, its key, and the place where its parts are
 * stored. */
struct multipart {
    struct lake_repo repo;
    struct str key; /* the signed key, below the namespace */
    struct object_place place;
    struct upload_info upload;
};

/* Checks that the caller may write to the path, and that weir gave the address for this path. */
static int multipart_find(struct multipart *m, struct rest_call *c, struct err *err)
{
    int code = web_writable(c, rest_text(c, "path"), false, &m->repo, err);

    return code == 0 ? web_link_key(c, &m->repo, rest_text(c, "physical_address"), &m->key, err)
                     : code;
}

static int multipart_open(struct multipart *m, struct rest_call *c, enum place_use use,
                          struct err *err)
{
    int code =
        lake_place_open_below(&m->place, web_of(c)->lake, c->arena, &m->repo, m->key, use, err);

    if (code == 0)
        m->upload = (struct upload_info){.key = m->place.key, .id = rest_text(c, "uploadId")};
    return code;
}

static struct str multipart_address(struct rest_call *c, const struct multipart *m)
{
    return arena_fmt(c->arena, STR_FMT "/" STR_FMT, STR_ARG(m->repo.space), STR_ARG(m->key));
}

static int multipart_missing(int code, struct err *err)
{
    return code == ERR_NOT_FOUND ? err_set(err, code, "upload not found") : code;
}

/* --- begin --- */

static int multipart_url(struct rest_call *c, const struct multipart *m, struct str id,
                         uint32_t number, struct str *out, struct err *err)
{
    struct buf query = BUF_INIT(4 * KIB);
    struct web_presigned url;

    buf_appendf(&query, "partNumber=%u&uploadId=", number);
    url_encode(&query, id, false);
    int code = web_presign_query(c, &m->repo, "PUT", multipart_address(c, m),
                                 arena_str(c->arena, buf_str(&query)), &url, err);
    buf_release(&query);
    if (code == 0)
        *out = url.url;
    return code;
}

static int multipart_write_urls(struct rest_call *c, const struct multipart *m, struct str id,
                                struct err *err)
{
    uint32_t count = (uint32_t)rest_integer(c, "parts");
    struct str url;
    int code = 0;

    json_out_key(c->w, "presigned_urls");
    json_out_open(c->w, '[');
    for (uint32_t i = 1; i <= count && code == 0; i++) {
        code = multipart_url(c, m, id, i, &url, err);
        if (code == 0)
            json_out_str(c->w, url);
    }
    json_out_close(c->w, ']');
    return code;
}

static int multipart_begin(struct rest_call *c, struct err *err)
{
    struct multipart m = {0};
    struct object_meta meta = {0};
    struct str id = STR_EMPTY;
    int code = web_writable(c, rest_text(c, "path"), false, &m.repo, err);

    if (code == 0 && !*web_of(c)->services->conf->s3.url)
        code = err_set(err, ERR_UNSUPPORTED, "presigned URLs need the configuration key s3.url");
    if (code < 0)
        return code;
    m.key = web_new_link(c, &m.repo);
    meta.owner = m.repo.owner;
    code =
        lake_place_open_below(&m.place, web_of(c)->lake, c->arena, &m.repo, m.key, PLACE_READ, err);
    if (code < 0)
        return code;
    code = object_place_seal(&m.place, &meta, err);
    if (code == 0)
        code = m.place.bucket->ops->upload_begin(m.place.bucket, c->arena, m.place.key, &meta, &id,
                                                 err);
    code = object_place_end(&m.place, code, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "upload_id", id);
    json_out_member_str(c->w, "physical_address", multipart_address(c, &m));
    return multipart_write_urls(c, &m, id, err);
}

static int multipart_part(struct rest_call *c, struct err *err)
{
    struct multipart m = {0};
    struct str url;
    int code = multipart_find(&m, c, err);

    if (code == 0)
        code = multipart_url(c, &m, rest_text(c, "uploadId"),
                             (uint32_t)rest_integer(c, "partNumber"), &url, err);
    if (code == 0)
        json_out_member_str(c->w, "presigned_url", url);
    return code;
}

static int multipart_abort(struct rest_call *c, struct err *err)
{
    struct multipart m = {0};
    int code = multipart_find(&m, c, err);

    if (code == 0)
        code = multipart_open(&m, c, PLACE_READ, err);
    if (code < 0)
        return code;
    code = m.place.bucket->ops->upload_abort(m.place.bucket, &m.upload, err);
    return multipart_missing(object_place_end(&m.place, code, err), err);
}

/* --- finish --- */

static int multipart_read_parts(struct rest_call *c, struct upload_part **out, size_t *count,
                                struct err *err)
{
    const json_t *list = rest_json(c, "parts"), *item;
    struct upload_part *parts = arena_array(c->arena, json_array_size(list), sizeof(*parts));
    size_t i;

    if (!parts)
        return err_code(err, ERR_NO_MEMORY);
    json_array_foreach(list, i, item)
    {
        parts[i] =
            (struct upload_part){.number = (uint32_t)json_get_i64(item, "part_number", 0),
                                 .etag = web_bare_etag(json_get_str(item, "etag", STR_EMPTY))};
    }
    *out = parts;
    *count = json_array_size(list);
    return 0;
}

/* Joins the parts into an object in the namespace's bucket, and reads the object's size and
 * ETag. */
static int multipart_join(struct multipart *m, struct rest_call *c, struct object_info *out,
                          struct err *err)
{
    static const struct put_options none;
    struct get_result head = {0};
    struct put_result put;
    struct upload_part *parts = NULL;
    size_t count = 0;
    int code = multipart_read_parts(c, &parts, &count, err);

    if (code == 0)
        code = multipart_open(m, c, PLACE_PUT, err);
    if (code < 0)
        return code;
    struct bucket *b = m->place.bucket;
    code = object_place_may(&m->place, err);
    if (code == 0)
        code = b->ops->upload_finish(b, c->arena, &m->upload, parts, count, &none, &put, err);
    if (code == 0)
        code = b->ops->head(b, c->arena, m->place.key, STR_EMPTY, NULL, &head, err);
    *out = head.info;
    return multipart_missing(object_place_end(&m->place, code, err), err);
}

static int multipart_finish(struct rest_call *c, struct err *err)
{
    struct lake_object object = {.path = rest_text(c, "path")};
    struct object_info stored = {0};
    struct multipart m = {0};
    struct lake_keep keep;
    int code = multipart_find(&m, c, err);

    if (code == 0)
        code = web_check_value("content_type", rest_text(c, "content_type"), err);
    if (code == 0)
        code = web_pairs(c, rest_json(c, "user_metadata"), &object.entry.metadata, err);
    if (code == 0)
        code = lake_check_metadata(&object.entry.metadata, err);
    if (code == 0)
        code = lake_keep_begin(&keep, web_of(c)->lake, c->arena, &m.repo, err);
    if (code == 0)
        code = multipart_join(&m, c, &stored, err);
    if (code < 0)
        return code;
    object.entry.address = m.key;
    object.entry.address_type = LAKE_RELATIVE;
    object.entry.size = stored.size;
    object.entry.etag = stored.etag;
    object.entry.content_type = rest_text(c, "content_type");
    object.entry.owner = web_user(c)->id;
    object.entry.modified_ms = clock_wall_ms();
    /* The call may be a repetition for an upload that was finished long ago. Then a collection may
     * be about to remove the object's file. */
    code = lake_keep_check_file(&keep, &m.repo, &object.entry, stored.modified_ms, err);
    if (code == 0)
        code = web_stage(c, &m.repo, &object, (struct lake_stage_options){.keep = &keep}, err);
    if (code == 0)
        web_write_stats(c, &m.repo, &object, &(struct web_stats_options){.metadata = true});
    return code;
}

/* --- a part of another object --- */

/* The source of a part that is copied: an object, or a range of it. */
struct part_source {
    struct lake_repo repo;
    struct lake_object object;
    struct object_range range;
    bool ranged;
};

static int part_source_find(struct part_source *s, struct rest_call *c, struct err *err)
{
    const json_t *from = rest_json(c, "copy_source");
    struct str ref = json_get_str(from, "ref", STR_EMPTY);
    struct str path = json_get_str(from, "path", STR_EMPTY);
    struct str range = json_get_str(from, "range", STR_EMPTY);
    struct str repo = json_get_str(from, "repository", STR_EMPTY);
    int code = lake_check_repo(repo, err);

    s->ranged = range.len > 0;
    if (code == 0 && s->ranged && !object_range_parse(range, &s->range))
        code = err_set(err, ERR_INVALID, "range must be such as bytes=0-99");
    if (code == 0)
        code = lake_repo_get(web_of(c)->lake, c->arena, repo, &s->repo, err);
    return code == 0 ? web_object(c, &s->repo, ref, path, &s->object, err) : code;
}

/* Reads the bytes of the source, and uploads them as a part. */
static int part_pass(struct multipart *m, struct rest_call *c, const struct part_source *s,
                     uint32_t number, struct upload_part *out, struct err *err)
{
    struct put_options o = {.seal = object_place_seal_key, .seal_ctx = &m->place};
    struct get_result got = {0};
    struct bucket *b = m->place.bucket;
    int code = lake_body_get(web_of(c)->lake, c->arena, &s->repo, &s->object.entry,
                             s->ranged ? &s->range : NULL, &got, err);

    if (code == 0)
        code =
            b->ops->upload_part(b, c->arena, &m->upload, number, got.body, got.len, &o, out, err);
    reader_close(got.body);
    return code;
}

static int multipart_copy_part(struct rest_call *c, struct err *err)
{
    struct upload_part part = {0};
    struct part_source source = {0};
    struct multipart m = {0};
    int code = multipart_find(&m, c, err);

    if (code == 0)
        code = part_source_find(&source, c, err);
    if (code == 0)
        code = multipart_open(&m, c, PLACE_READ, err);
    if (code < 0)
        return code;
    code = part_pass(&m, c, &source, (uint32_t)rest_integer(c, "partNumber"), &part, err);
    code = multipart_missing(object_place_end(&m.place, code, err), err);
    if (code == 0)
        rest_header(c, STR("ETag"), arena_fmt(c->arena, "\"" STR_FMT "\"", STR_ARG(part.etag)));
    return code;
}
