/* Calls that read objects: their bytes, their stats, and listings. */
#include "lake/address.h"
#include "lake/body.h"
#include "lake/rest/web.h"
#include "object/condition.h"
#include "object/range.h"

static rest_fn object_get, object_head, object_stat, object_page, object_properties;

static const struct rest_field object_query[] = {
    WEB_PATH, {"presign", "Answer with a presigned URL.", REST_BOOLEAN}, {0}};

static const struct rest_row object_rows[] = {
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{ref}/objects", REST_USER,
     "The bytes of an object, or of a range of it; with presign a redirect to them.", object_get,
     WEB_OP("getObject"), WEB_IN_REF, .query = object_query, .media = "application/octet-stream"},
    {HTTP_HEAD, "/api/v1/repositories/{repository}/refs/{ref}/objects", REST_USER,
     "The headers of an object.", object_head, WEB_OP("headObject"), WEB_IN_REF,
     .query = REST_FIELDS(WEB_PATH), .media = "application/octet-stream"},
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{ref}/objects/stat", REST_USER,
     "What is known about an object.", object_stat, WEB_OP("statObject"), WEB_IN_REF,
     .query =
         REST_FIELDS(WEB_PATH, {"user_metadata", "With its metadata; default: true.", REST_BOOLEAN},
                     {"presign", "With a presigned URL as its address.", REST_BOOLEAN}),
     .answer = web_stats_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{ref}/objects/ls", REST_USER,
     "Objects and common prefixes, by path.", object_page, WEB_OP("listObjects"), WEB_IN_REF,
     .query =
         REST_FIELDS(WEB_PREFIX, {"delimiter", "Show paths up to this behind the prefix only."},
                     {"user_metadata", "With their metadata; default: true.", REST_BOOLEAN},
                     {"presign", "With presigned URLs as addresses.", REST_BOOLEAN}),
     .list = "results", .by_source = true, .items = web_stats_fields},
    {HTTP_GET, "/api/v1/repositories/{repository}/refs/{ref}/objects/underlyingProperties",
     REST_USER, "The storage class of an object.", object_properties,
     WEB_OP("getUnderlyingProperties"), WEB_IN_REF, .query = REST_FIELDS(WEB_PATH),
     .answer = REST_FIELDS({"storage_class", "The storage class."})},
};
const struct rest_table web_object_rows = WEB_ROWS(object_rows);

/* --- one object --- */

/* Finds the object that the call names. Checks that the caller may read it. */
static int object_find(struct rest_call *c, struct lake_repo *repo, struct lake_object *out,
                       struct err *err)
{
    int code = web_find_repo(c, repo, err);

    return code == 0 ? web_object(c, repo, rest_text(c, "ref"), rest_text(c, "path"), out, err)
                     : code;
}

/* Adds the ETag header, unless the ETag has bytes that are not allowed in a header. (Entries that
 * other programs wrote may have such ETags.) */
static void object_add_etag(struct rest_call *c, struct str etag)
{
    if (http_field_is_valid(STR("ETag"), etag))
        rest_header(c, STR("ETag"), arena_fmt(c->arena, "\"" STR_FMT "\"", STR_ARG(etag)));
}

static void object_add_headers(struct rest_call *c, const struct lake_entry *e)
{
    char modified[CLOCK_HTTP_LEN + 1];

    clock_http(e->modified_ms, modified);
    object_add_etag(c, e->etag);
    rest_header(c, STR("Last-Modified"), str_z(modified));
    rest_header(c, STR("Accept-Ranges"), STR("bytes"));
    rest_header(c, STR("Cache-Control"), STR("private, max-age=0"));
    /* A browser must not run an object as a page of this server, because the browser may have
     * stored a password for this server. */
    rest_header(c, STR("Content-Security-Policy"), STR("default-src 'none'; sandbox"));
    rest_header(c, STR("X-Content-Type-Options"), STR("nosniff"));
    rest_header(c, STR("Content-Type"),
                e->content_type.len && http_field_is_valid(STR("Content-Type"), e->content_type)
                    ? e->content_type
                    : STR("application/octet-stream"));
}

static int object_send_unsatisfiable(struct rest_call *c, uint64_t size)
{
    struct str range = arena_fmt(c->arena, "bytes */%llu", (unsigned long long)size);

    return rest_refuse(c, 416, "range", "requested range not satisfiable",
                       (struct http_header){STR("Content-Range"), range});
}

/* Sends the bytes that were opened; for a HEAD only the headers. */
static int object_send(struct rest_call *c, struct get_result *got, uint64_t size)
{
    if (got->partial)
        rest_header(c, STR("Content-Range"),
                    arena_fmt(c->arena, "bytes %llu-%llu/%llu", (unsigned long long)got->first,
                              (unsigned long long)(got->first + got->len - 1),
                              (unsigned long long)size));
    struct http_request *req = rest_take_answer(c, got->partial ? 206 : 200);
    if (got->body)
        return http_send_reader(req, got->body, got->len);
    http_respond_header_u64(req, STR("Content-Length"), got->len);
    return http_send(req, STR_EMPTY);
}

/* Parses the header Range. Returns NULL if there is no such header, or if it cannot be parsed. */
static const struct object_range *object_range(struct rest_call *c, struct object_range *out)
{
    struct str text = http_header(http_request_head(c->req), "Range");

    return text.len && object_range_parse(text, out) ? out : NULL;
}

/* Computes the first byte and the length of a range, without opening the object's bytes. */
static int object_cut(const struct object_range *range, uint64_t size, struct get_result *out)
{
    uint64_t first = 0, last = size - 1;

    out->len = size;
    if (!range)
        return 0;
    if (range->kind == RANGE_SUFFIX) {
        if (range->first == 0 || size == 0)
            return ERR_RANGE;
        first = range->first < size ? size - range->first : 0;
    } else {
        first = range->first;
        last = range->last < size ? range->last : size - 1;
    }
    if (first >= size)
        return ERR_RANGE;
    out->partial = true;
    out->first = first;
    out->len = last - first + 1;
    return 0;
}

static int object_check_conditions(struct rest_call *c, const struct lake_entry *e, struct err *err)
{
    const struct http_head *head = http_request_head(c->req);
    struct object_conditions conditions = {.if_match = http_header(head, "If-Match"),
                                           .if_none_match = http_header(head, "If-None-Match")};
    struct condition_state state = {true, e->etag, e->modified_ms, e->size};

    return conditions_judge_read(&conditions, &state, err);
}

/* --- presigned URLs --- */

/* Whether a condition with this ETag can mean no other one: the ETag is neither a list nor "*". */
static bool object_etag_is_single(struct str etag)
{
    for (size_t i = 0; i < etag.len; i++)
        if (etag.p[i] == ',' || etag.p[i] == '*' || etag.p[i] == '"')
            return false;
    return etag.len > 0;
}

/* Makes the query by which a presigned URL reads only the object that the entry describes. An entry
 * without a usable ETag is checked now, and the query has the ETag that the object has now. */
static int object_same_query(struct rest_call *c, const struct lake_repo *repo,
                             const struct lake_entry *e, struct str *out, struct err *err)
{
    struct buf text = BUF_INIT(8 * KIB);
    struct str etag = e->etag;
    int code = 0;

    if (!object_etag_is_single(etag))
        code = lake_body_etag(web_of(c)->lake, c->arena, repo, e, &etag, err);
    if (code == 0 && !object_etag_is_single(etag))
        code =
            err_set(err, ERR_UNSUPPORTED, "the object has no ETag that a presigned URL could name");
    if (code == 0) {
        buf_append_z(&text, "x-weir-if-match=%22");
        url_encode(&text, etag, false);
        buf_append_z(&text, "%22");
        code = buf_error(&text) < 0 ? err_code(err, ERR_TOO_LARGE) : 0;
    }
    *out = arena_str(c->arena, buf_str(&text));
    buf_release(&text);
    return code;
}

/* Makes a presigned URL of the object's bytes. The bytes of an object outside of the namespace may
 * be overwritten, so the URL of such an object has a condition (docs/security.md, P7). */
static int object_presign(struct rest_call *c, const struct lake_repo *repo,
                          const struct lake_entry *e, struct web_presigned *out, struct err *err)
{
    struct str query = STR_EMPTY;
    int code = lake_address_is_relative(e) ? 0 : object_same_query(c, repo, e, &query, err);

    return code < 0
               ? code
               : web_presign_query(c, repo, "GET", web_address(c->arena, repo, e), query, out, err);
}

static int object_redirect(struct rest_call *c, const struct lake_repo *repo,
                           const struct lake_entry *e, struct err *err)
{
    struct web_presigned url;
    int code = object_presign(c, repo, e, &url, err);

    if (code < 0)
        return code;
    rest_header(c, STR("Location"), url.url);
    return http_send(rest_take_answer(c, 302), STR_EMPTY);
}

static int object_stream(struct rest_call *c, const struct lake_repo *repo,
                         const struct lake_entry *e, struct err *err)
{
    struct get_result got = {0};
    struct object_range range;
    int code =
        lake_body_get(web_of(c)->lake, c->arena, repo, e, object_range(c, &range), &got, err);

    if (code == ERR_RANGE)
        return object_send_unsatisfiable(c, e->size);
    if (code == 0)
        code = object_send(c, &got, e->size);
    reader_close(got.body);
    return code;
}

static int object_get(struct rest_call *c, struct err *err)
{
    struct lake_object object = {0};
    struct lake_repo repo;
    int code = object_find(c, &repo, &object, err);

    if (code < 0)
        return code;
    if (rest_bool(c, "presign"))
        return object_redirect(c, &repo, &object.entry, err);
    code = object_check_conditions(c, &object.entry, err);
    object_add_headers(c, &object.entry);
    if (code == ERR_NOT_MODIFIED)
        return http_send(rest_take_answer(c, 304), STR_EMPTY);
    return code < 0 ? code : object_stream(c, &repo, &object.entry, err);
}

static int object_head(struct rest_call *c, struct err *err)
{
    struct get_result got = {0};
    struct object_range range;
    struct lake_object object = {0};
    struct lake_repo repo;
    int code = object_find(c, &repo, &object, err);

    if (code < 0)
        return code;
    object_add_headers(c, &object.entry);
    if (object_cut(object_range(c, &range), object.entry.size, &got) < 0)
        return object_send_unsatisfiable(c, object.entry.size);
    return object_send(c, &got, object.entry.size);
}

/* --- stats --- */

/* Writes the stats of an object. If `presign` is set, its address is a presigned URL, unless the
 * object's bytes are known to be gone. */
static int object_write(struct rest_call *c, const struct lake_repo *repo,
                        const struct lake_object *o, bool presign, struct err *err)
{
    struct web_stats_options how = {.metadata = !rest_given(c, "user_metadata") ||
                                                rest_bool(c, "user_metadata")};
    struct web_presigned url;

    if (presign && !o->is_prefix) {
        int code = object_presign(c, repo, &o->entry, &url, err);
        if (code < 0 && code != ERR_GONE)
            return code;
        if (code == 0) {
            how.address = url.url;
            how.expires_ms = url.expires_ms;
        }
    }
    web_write_stats(c, repo, o, &how);
    return 0;
}

static int object_stat(struct rest_call *c, struct err *err)
{
    struct lake_object object = {0};
    struct lake_repo repo;
    int code = object_find(c, &repo, &object, err);

    return code == 0 ? object_write(c, &repo, &object, rest_bool(c, "presign"), err) : code;
}

/* Writes the objects of a page. Anybody who has a presigned URL can read the object. So only
 * objects that the caller may read get such a URL; the others are shown with their plain address
 * (docs/security.md, P4). */
static int object_write_page(struct rest_call *c, const struct lake_repo *repo,
                             const struct lake_objects *found, struct err *err)
{
    struct web_ask ask = {.action = S3_ACTION_GET_OBJECT, .ref = rest_text(c, "ref")};
    bool presign = rest_bool(c, "presign");
    struct web_bucket *gate = NULL;
    int code = presign ? web_gate_open(&gate, c, repo, err) : 0;

    for (size_t i = 0; code == 0 && i < found->count; i++) {
        ask.path = found->items[i].path;
        ask.tags = found->items[i].entry.tags;
        rest_row_begin(c);
        code = object_write(c, repo, &found->items[i], presign && web_gate_may(c, gate, ask), err);
        rest_item_end(c);
    }
    web_gate_close(gate);
    return code;
}

static int object_page(struct rest_call *c, struct err *err)
{
    struct str ref = rest_text(c, "ref");
    struct lake_list_options o = {rest_text(c, "prefix"), rest_text(c, "delimiter"), rest_after(c),
                                  rest_limit(c)};
    struct lake_objects found = {0};
    struct lake_repo repo;
    int code = web_repo(c, (struct web_ask){S3_ACTION_LIST_BUCKET, ref, o.prefix}, &repo, err);

    if (code == 0)
        code = lake_list(web_of(c)->lake, c->arena, &repo, ref, &o, &found, err);
    if (code == 0)
        code = object_write_page(c, &repo, &found, err);
    rest_page_end(c, found.more, found.next);
    return code;
}

static int object_properties(struct rest_call *c, struct err *err)
{
    struct lake_object object = {0};
    struct lake_repo repo;
    int code = object_find(c, &repo, &object, err);

    if (code == 0)
        json_out_member_str(c->w, "storage_class",
                            object.entry.storage_class.len ? object.entry.storage_class
                                                           : STR("STANDARD"));
    return code;
}
