/* A request's way: parsed, its operation found, who asks, whether they may, run, answered. */
#include "s3/gateway/gateway_int.h"

#include "base/clock.h"
#include "object/remote/remote.h"
#include "s3/documents/cors.h"
#include "s3/gateway/forward.h"
#include "s3/lifecycle/lifecycle.h"
#include "s3/documents/storage_class.h"
#include "store/store.h"

#include <stdlib.h>

enum {
    DOCUMENTS_MAX = 256 * 1024 * 1024, /* bytes */
    STRANGERS_SHARE = 4,               /* anonymous requests may have one in so many */
};

/* Parameters of ListBuckets, which may be empty. */
static const char *const list_buckets_takes[] = {
    "prefix",
    "continuation-token",
    "max-buckets",
    "bucket-region",
};

struct gateway *gateway_new(const struct gateway_options *o)
{
    struct gateway *g = xcalloc(1, sizeof(*g));

    g->o = *o;
    budget_init(&g->documents, o->document_memory ? o->document_memory : DOCUMENTS_MAX, NULL);
    budget_init(&g->strangers, g->documents.max / STRANGERS_SHARE, &g->documents);
    g->keys = sign_keys_new();
    g->facts = facts_table_new();
    g->ring = o->key_file ? keyring_new(o->key_file) : NULL;
    g->region = o->region.len ? o->region : STR("us-east-1");
    if (!o->storage_classes.len)
        g->o.storage_classes = STR(STORAGE_CLASSES);
    return g;
}

void gateway_free(struct gateway *g)
{
    if (!g)
        return;
    facts_table_free(g->facts);
    keyring_free(g->ring);
    sign_keys_free(g->keys);
    free(g);
}

/* On a fast worker nothing is done twice for an operation that will wait. */
static bool must_move(const struct call *c)
{
    if (http_may_block(c->http))
        return false;
    return !c->op || !(c->op->flags & OP_FAST);
}

/* --- buckets on remote storages --- */

/* What is a form, or none though it ought to be one, is taken or refused here: only the body of a
 * form says which object it is about. */
static bool is_form(const struct call *c)
{
    struct str type = STR("multipart/form-data");

    return c->op && c->op->id == S3_OP_PostObject &&
           (!c->beyond || str_ieq(str_head(call_header(c, "content-type"), type.len), type));
}

/* A copy from another storage is made here. */
static int copies_within(struct call *c, struct storage *s, bool *out, struct err *err)
{
    struct storage *from = NULL;
    struct str bucket;
    int code = copy_source_bucket(c, &bucket, err);

    if (code == 0)
        code = call_remote(c, &c->source_side, bucket, &from, err);
    *out = from == s;
    return code;
}

/* Does a request for no bucket name a sub-resource, a parameter without a value, such as Ceph's
 * "?usage"? */
static bool names_service_resource(const struct call *c)
{
    for (size_t i = 0; i < c->query_count; i++) {
        bool known = c->query[i].value.len > 0 || call_ignores(c->query[i].name);
        for (size_t k = 0; !known && k < ARRAY_SIZE(list_buckets_takes); k++)
            known = str_eq(c->query[i].name, str_z(list_buckets_takes[k]));
        if (!known)
            return true;
    }
    return false;
}

/* What is not ListBuckets goes where the user's buckets without a policy are. Nobody has none. */
static int find_service(struct call *c, struct storage **out, struct err *err)
{
    if (!c->user || (c->op && !names_service_resource(c)))
        return 0;
    return route_storage(c->g->o.routes, call_user_id(c), STR_EMPTY, out, err);
}

/* Of a bucket that is on two storages no single one knows what is in it. */
static bool is_merged(const struct call *c)
{
    enum s3_operation id = c->op ? c->op->id : S3_OPERATIONS;

    return c->pair.route && (id == S3_OP_ListObjects || id == S3_OP_ListObjectsV2 ||
                             id == S3_OP_ListObjectVersions || id == S3_OP_ListMultipartUploads);
}

/* Torrents are made here, with this tracker in them, wherever the object is. */
static bool makes_torrent(const struct call *c)
{
    return c->g->o.torrents && c->op &&
           (c->op->fn == op_torrent || (c->op->fn == op_http_seed && call_param(c, "piece").p));
}

/* Where a bucket is to be made. One on a remote storage that later requests would not find is not
 * made: the name is led to a bucket of somebody else, or is the user's on a local storage. */
static int find_new(struct call *c, struct storage **out, struct err *err)
{
    struct routes *routes = c->g->o.routes;
    struct storage *later = NULL;
    int code = route_storage(routes, call_user_id(c), c->bucket_name, out, err);

    if (code < 0 || !storage_can(*out, STORAGE_FORWARDS))
        return code;
    code = route_remote(routes, call_user_id(c), c->bucket_name, &later, err);
    return code == 0 && later != *out ? s3_fail(err, S3_BUCKET_ALREADY_EXISTS) : code;
}

/* *out: where the whole request is to be sent; NULL: it is done here. */
static int find_remote(struct call *c, struct storage **out, struct err *err)
{
    enum s3_operation id = c->op ? c->op->id : S3_OPERATIONS;
    bool within = true;
    int code;

    *out = NULL;
    if (is_form(c) || !routes_any_remote(c->g->o.routes))
        return 0;
    if (c->level == LEVEL_SERVICE)
        code = find_service(c, out, err);
    else if (id == S3_OP_CreateBucket && !c->beyond) /* else it may be of a bucket that is there */
        code = find_new(c, out, err);
    else if (!is_merged(c))
        code = call_remote(c, &c->side, c->bucket_name, out, err);
    else
        code = 0;
    if (code == 0 && *out && (!storage_can(*out, STORAGE_FORWARDS) || makes_torrent(c)))
        *out = NULL;
    if (code == 0 && *out && call_is_copy(c))
        code = copies_within(c, *out, &within, err);
    if (!within)
        *out = NULL;
    return code;
}

/* Where the operation's change would be; a form finds out by itself, and so does a batch whose keys
 * are to be known. */
static int capture_here(struct call *c, struct err *err)
{
    struct storage *s = c->target.remote;
    int code = 0;

    if (!c->g->o.capture || !c->op->changes || c->op->id == S3_OP_PostObject ||
        (c->pair.route && c->op->id == S3_OP_DeleteObjects))
        return 0;
    if (c->op->id == S3_OP_CreateBucket)
        code = route_storage(c->g->o.routes, call_user_id(c), c->bucket_name, &s, err);
    else if (!s)
        s = c->target.bucket->storage;
    return code < 0 ? code : call_capture(c, s, NULL, 0, err);
}

/* Access is asked for each key of the body. It is not even read for strangers who could not remove
 * any (G1); users are told of each key, as on S3. */
static int need_any_removal(struct call *c, struct err *err)
{
    bool may = c->user || call_may_ever(c, &c->target, s3_operation_action(c->op->id, false)) ||
               call_may_ever(c, &c->target, s3_operation_action(c->op->id, true));

    return may ? 0 : s3_fail(err, S3_ACCESS_DENIED);
}

static int prepare(struct call *c, struct err *err)
{
    unsigned flags = c->op->flags;
    int code = 0;

    if (!c->op->fn)
        return err_set(err, S3_NOT_IMPLEMENTED, "%s is not implemented",
                       s3_operation_name(c->op->id));
    if (c->head->method == HTTP_PUT || c->head->method == HTTP_POST)
        code = checksum_check_names(c, err);
    if (code == 0 && !(flags & OP_NO_BUCKET))
        code = call_open(c, &c->target, c->bucket_name, err);
    if (code == 0 && c->op->id == S3_OP_DeleteObjects)
        code = need_any_removal(c, err);
    if (code == 0 && !(flags & OP_ASKS))
        code = call_need(c, &c->target, s3_operation_action(c->op->id, c->version.len > 0), c->key,
                         NULL, err);
    if (code == 0)
        code = capture_here(c, err);
    if (code == 0 && flags & OP_XML && !(flags & OP_ASKS))
        code = call_read_body(c, err);
    return code;
}

/* OPTIONS asks before a request, and needs no signature; Ceph looks at one if there is any. */
static int preflight(struct call *c, struct err *err)
{
    struct cors_request ask = {call_header(c, "origin"),
                               call_header(c, "access-control-request-method"),
                               call_header(c, "access-control-request-headers")};
    struct http_header headers[CORS_MAX_HEADERS];
    struct cors_answer answer;
    struct storage *remote = NULL;
    struct err ignored = {0};
    int code;

    if (!http_may_block(c->http))
        return ERR_AGAIN;
    if (c->level == LEVEL_SERVICE)
        return s3_fail(err, S3_ACCESS_FORBIDDEN);
    if (routes_any_remote(c->g->o.routes) && call_authenticate(c, &ignored) < 0)
        call_claim(c);
    code = call_sides(c, err);
    if (code == 0)
        code = find_remote(c, &remote, err);
    if (code == 0 && remote && c->claimed && !remote_has_credential(remote, call_user_id(c)))
        c->user = NULL; /* it needs none */
    if (code < 0 || remote)
        return code < 0 ? code : forward_call(c, remote, err);
    code = call_open(c, &c->target, c->bucket_name, err);
    if (code == 0)
        code = cors_preflight(call_cors(c), &ask, &answer, err);
    if (code < 0)
        return code;
    size_t count = cors_headers(&answer, c->a, headers);
    respond_begin(c, 200);
    for (size_t i = 0; i < count; i++)
        respond_kept_header(c, &headers[i]);
    return http_send(c->http, STR_EMPTY);
}

static int run(struct call *c, struct err *err)
{
    struct storage *remote = NULL;
    struct err unknown = {0};
    int code = call_parse(c, err), found;

    if (code == 0)
        code = store_may_serve(c->g->o.store, err);
    if (code < 0)
        return code;
    if (c->is_website)
        return website_run(c, err);
    if (c->head->method == HTTP_OPTIONS)
        return preflight(c, err);
    code = call_check_query(c, err);
    if (code < 0)
        return code;
    found = call_find_operation(c, &unknown);
    if (found < 0 && !routes_any_remote(c->g->o.routes)) {
        *err = unknown;
        return found;
    }
    if (must_move(c))
        return ERR_AGAIN;
    c->routes_seen = routes_generation(c->g->o.routes);
    code = call_authenticate(c, err);
    c->auth_failed = code < 0;
    if (code == 0)
        code = call_view(c, err);
    if (code == 0 && !c->side.storage)
        code = call_sides(c, err);
    if (code == 0)
        code = find_remote(c, &remote, err);
    if (code < 0)
        return code;
    if (remote)
        return forward_call(c, remote, err);
    if (found < 0) { /* what we do not know, a remote storage might have known */
        *err = unknown;
        return found;
    }
    code = prepare(c, err);
    if (code < 0) {
        call_not_captured(c);
        return code;
    }
    code = c->op->fn(c, err);
    struct err late = {0}; /* it is answered; what is made here is captured in its commit */
    int told = call_captured(c, code == 0 ? OUTCOME_DONE : OUTCOME_UNKNOWN, &late);
    return code < 0 ? code : told;
}

int gateway_handle(struct http_request *req, void *ctx)
{
    struct arena *a = http_request_arena(req);
    struct call *c = arena_new(a, struct call);
    struct err err = {0};

    if (!c)
        return ERR_NO_MEMORY;
    c->g = ctx;
    c->http = req;
    c->head = http_request_head(req);
    c->a = a;
    c->now_ms = clock_wall_ms();
    int code = run(c, &err);
    return c->waits ? code : call_finish(c, code, &err);
}

int call_finish(struct call *c, int code, const struct err *err)
{
    if (code < 0 && code != ERR_AGAIN)
        code = c->is_website ? website_error(c, code, err) : respond_error(c, code, err);
    if (code != ERR_AGAIN)
        call_log(c);
    call_close(&c->target);
    call_close(&c->other);
    auth_release(&c->auth);
    call_drop_gathered(c->budget, &c->document);
    secure_zero(&c->encryption, sizeof(c->encryption));
    return code;
}
