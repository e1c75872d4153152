/* Calls with which clients upload directly to the storage. weir gives the client a signed
 * address, and the client puts the object there. Then the client asks weir to link the object to
 * its path. */
#include "lake/address.h"
#include "lake/keep.h"
#include "lake/names.h"
#include "lake/rest/web.h"

static rest_fn staging_give, staging_link;

static const struct rest_field location_fields[] = {
    {"physical_address", "The signed address: s3://bucket/key."},
    {"presigned_url", "A URL to put the object to.", .sometimes = true},
    {"presigned_url_expiry", "When the URL ends, in seconds since 1970.", REST_INTEGER,
     .sometimes = true},
    {0},
};

static const struct rest_row staging_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/branches/{branch}/staging/backing", REST_USER,
     "Gives an address to upload an object to. It is good for a day.", staging_give,
     WEB_OP("getPhysicalAddress"), WEB_IN_BRANCH,
     .query = REST_FIELDS(WEB_PATH, {"presign", "With a presigned URL.", REST_BOOLEAN}),
     .answer = location_fields},
    {HTTP_PUT, "/api/v1/repositories/{repository}/branches/{branch}/staging/backing", REST_USER,
     "Links an object that was uploaded to such an address to its path.", staging_link,
     WEB_OP("linkPhysicalAddress"), WEB_IN_BRANCH, .query = REST_FIELDS(WEB_PATH),
     .body =
         REST_FIELDS({"staging", "The answer that gave the address.", REST_OBJECT, .required = true,
                      .members = REST_FIELDS({"physical_address", "The address."})},
                     {"checksum", "The object's ETag.", .required = true},
                     {"size_bytes", "The object's size.", REST_INTEGER, .required = true, .min = 0,
                      .max = INT64_MAX},
                     {"user_metadata", "The object's metadata.", REST_MAP},
                     {"content_type", "The object's media type."},
                     {"mtime", "When it was written, in seconds since 1970.", REST_INTEGER,
                      .min = 0, .max = WEB_TIME_MAX},
                     {"force", "Also in a read-only repository.", REST_BOOLEAN}),
     .answer = web_stats_fields},
};
const struct rest_table web_staging_rows = WEB_ROWS(staging_rows);

static struct web_link link_of(const struct rest_call *c, const struct lake_repo *repo)
{
    return (struct web_link){repo, rest_text(c, "branch"), rest_text(c, "path"), STR_EMPTY};
}

struct str web_new_link(struct rest_call *c, const struct lake_repo *repo)
{
    struct web_link link = link_of(c, repo);

    link.address = lake_new_address(c->arena);
    return web_link_sign(web_of(c), c->arena, &link, clock_wall_ms());
}

/* Presigns the upload. The signed query has the condition that the object must not exist, so the
 * URL works for one upload only. Once the object exists, nobody can replace it with this URL, not
 * even after it was linked. */
static int staging_presign(struct rest_call *c, const struct lake_repo *repo, struct str address,
                           struct web_presigned *out, struct err *err)
{
    return web_presign_query(c, repo, "PUT", address, STR("x-weir-if-none-match=%2A"), out, err);
}

static int staging_give(struct rest_call *c, struct err *err)
{
    struct web_presigned url = {0};
    struct lake_repo repo;
    int code = web_writable(c, rest_text(c, "path"), false, &repo, err);

    if (code < 0)
        return code;
    struct str key = web_new_link(c, &repo);
    struct str address =
        arena_fmt(c->arena, STR_FMT "/" STR_FMT, STR_ARG(repo.space), STR_ARG(key));
    if (arena_error(c->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    if (rest_bool(c, "presign"))
        code = staging_presign(c, &repo, address, &url, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "physical_address", address);
    if (url.url.len) {
        json_out_member_str(c->w, "presigned_url", url.url);
        json_out_member_i64(c->w, "presigned_url_expiry", url.expires_ms / MS_PER_S);
    }
    return 0;
}

int web_link_key(struct rest_call *c, const struct lake_repo *repo, struct str address,
                 struct str *key, struct err *err)
{
    struct web_link link = link_of(c, repo);
    struct str space = arena_fmt(c->arena, STR_FMT "/", STR_ARG(repo->space));

    if (!str_starts(address, space))
        return err_set(err, ERR_INVALID, "link address invalid: it is not in the namespace");
    *key = str_skip(address, space.len);
    return web_link_check(web_of(c), &link, *key, clock_wall_ms(), err);
}

/* Reads size, ETag and time of the object at a key below the namespace. */
static int staging_head(struct rest_call *c, const struct lake_repo *repo, struct str key,
                        struct object_info *out, struct err *err)
{
    static const struct object_conditions none;
    struct get_result head = {0};
    struct object_place place;
    int code = lake_place_open_below(&place, web_of(c)->lake, c->arena, repo, key, PLACE_READ, err);

    if (code == 0) {
        code = place.bucket->ops->head(place.bucket, c->arena, place.key, STR_EMPTY, &none, &head,
                                       err);
        code = object_place_end(&place, code, err);
    }
    *out = head.info;
    return code == ERR_NOT_FOUND
               ? err_set(err, ERR_INVALID, "nothing was uploaded to the physical address")
               : code;
}

/* Checks that the uploaded object has the size and the ETag that the client says. */
static int staging_compare(struct rest_call *c, const struct object_info *stored, struct err *err)
{
    if ((uint64_t)rest_integer(c, "size_bytes") != stored->size)
        return err_set(err, ERR_INVALID, "the uploaded object has %llu bytes",
                       (unsigned long long)stored->size);
    return str_eq(web_bare_etag(rest_text(c, "checksum")), stored->etag)
               ? 0
               : err_set(err, ERR_INVALID, "the uploaded object has the checksum " STR_FMT,
                         STR_ARG(stored->etag));
}

static int staging_link(struct rest_call *c, struct err *err)
{
    struct str address = json_get_str(rest_json(c, "staging"), "physical_address", STR_EMPTY);
    struct lake_object object = {.path = rest_text(c, "path")};
    bool force = rest_bool(c, "force");
    struct object_info stored = {0};
    struct lake_keep keep;
    struct lake_repo repo;
    struct str key;
    int code = web_writable(c, object.path, force, &repo, err);

    if (code == 0)
        code = web_check_value("content_type", rest_text(c, "content_type"), err);
    if (code == 0)
        code = web_link_key(c, &repo, address, &key, err);
    if (code == 0)
        code = lake_keep_begin(&keep, web_of(c)->lake, c->arena, &repo, err);
    if (code == 0)
        code = staging_head(c, &repo, key, &stored, err);
    if (code == 0)
        code = staging_compare(c, &stored, err);
    if (code == 0)
        code = web_pairs(c, rest_json(c, "user_metadata"), &object.entry.metadata, err);
    if (code == 0)
        code = lake_check_metadata(&object.entry.metadata, err);
    if (code < 0)
        return code;
    object.entry.address = key;
    object.entry.address_type = LAKE_RELATIVE;
    object.entry.size = stored.size;
    object.entry.etag = stored.etag;
    object.entry.content_type = rest_text(c, "content_type");
    object.entry.owner = web_user(c)->id;
    object.entry.modified_ms =
        rest_given(c, "mtime") ? rest_integer(c, "mtime") * MS_PER_S : clock_wall_ms();
    code = lake_keep_check_file(&keep, &repo, &object.entry, stored.modified_ms, err);
    if (code == 0)
        code = web_stage(c, &repo, &object,
                         (struct lake_stage_options){.keep = &keep, .force = force}, err);
    if (code == 0)
        web_write_stats(c, &repo, &object, &(struct web_stats_options){.metadata = true});
    return code;
}
