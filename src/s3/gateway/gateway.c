/* The steps of a request (docs/gateway.md), from top to bottom:
 *
 *     gateway_handle   call_parse            reads bucket, key and query
 *                      call_find_operation   finds the row of the table
 *       ── the rest runs on the pool, unless the operation never waits ──
 *     call_serve       call_authenticate     finds out who asks
 *                      call_resolve          finds where the bucket is
 *                      forward_call          passes the request on as it is, or:
 *                      call_prepare          opens the bucket, checks access, announces the change
 *                      op->fn                does the operation and answers
 *     call_finish      answers an error, writes the access log, releases everything */
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
    DOCUMENTS_MAX = 256 * 1024 * 1024, /* bytes of memory for documents, unless configured */
    STRANGERS_SHARE = 4, /* anonymous requests may use 1/STRANGERS_SHARE of that memory */
};

/* Parameters that ListBuckets knows. A request may have them without a value. */
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

/* --- requests that are passed on as they are --- */

/* Is the request a PostObject, whose body must be a form? A request with an unknown parameter
 * counts as one only if its Content-Type is that of a form. A form is never passed on as it is,
 * because only its body names the object. */
static bool is_form(const struct call *c)
{
    struct str type = STR("multipart/form-data");

    return c->op && c->op->id == S3_OP_PostObject &&
           (!c->beyond || str_ieq(str_head(http_header(c->head, "content-type"), type.len), type));
}

/* Whether a request that is for no bucket has a sub-resource: a parameter without a value, such as
 * Ceph's "?usage", that ListBuckets does not take. */
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

/* Whether the gateway must now find out where the request goes. For a form this is done once its
 * fields are read. A request that is for no bucket goes to a storage only if it is signed and is
 * not ListBuckets, because anonymous requests have no route. */
static bool has_target(const struct call *c)
{
    if (c->level == LEVEL_SERVICE)
        return c->user && routes_any_remote(c->g->o.routes) &&
               (!c->op || names_service_resource(c));
    return !is_form(c);
}

/* Does the request ask for a torrent? weir makes torrents itself, with the address of its own
 * tracker in them, wherever the object is. */
static bool makes_torrent(const struct call *c)
{
    return c->g->o.torrents && c->op &&
           (c->op->fn == op_torrent || (c->op->fn == op_http_seed && call_param(c, "piece").p));
}

/* Sets *out to whether the whole request is sent to the storage. Two kinds of requests are not: a
 * listing of a bucket on two storages, because neither storage knows all keys, and a copy from
 * another storage. */
static int is_passed_on(struct call *c, bool *out, struct err *err)
{
    const struct target *to = &c->target.at;
    bool merged = to->sides.route && c->op && c->op->flags & OP_MERGED;
    int code = 0;

    *out = to->kind == TARGET_RAW && !merged && !makes_torrent(c);
    if (*out && call_is_copy(c)) {
        code = copy_source_find(c, err);
        *out = code == 0 && c->source->target.at.kind == TARGET_RAW &&
               c->source->target.at.storage == to->storage;
    }
    return code;
}

/* --- requests that are served here --- */

/* Refuses an anonymous request that could not remove any key, before its body is read
 * (docs/gateway.md, G1). For other requests, access is decided for each key in the body, and the
 * answer has a result for each key, as on S3. */
static int need_any_removal(struct call *c, struct err *err)
{
    bool may = c->user || call_may_ever(c, &c->target, s3_operations[c->op->id].action) ||
               call_may_ever(c, &c->target, s3_operations[c->op->id].version_action);

    return may ? 0 : s3_fail(err, S3_ACCESS_DENIED);
}

/* Does the operation announce its change itself? A form does so when its fields are read, and
 * DeleteObjects in a bucket on two storages when its keys are read. */
static bool captures_itself(const struct call *c)
{
    return c->op->id == S3_OP_PostObject ||
           (c->target.at.sides.route && c->op->id == S3_OP_DeleteObjects);
}

static int call_prepare(struct call *c, struct err *err)
{
    unsigned flags = c->op->flags;
    bool captures = c->op->changes && !captures_itself(c);
    int code = 0;

    if (!c->op->fn)
        return err_set(err, S3_NOT_IMPLEMENTED, "%s is not implemented",
                       s3_operations[c->op->id].name);
    if (c->head->method == HTTP_PUT || c->head->method == HTTP_POST)
        code = checksum_check_names(c, err);
    if (code == 0 && !(flags & OP_NO_BUCKET))
        code = call_open(c, &c->target, c->bucket_name, err);
    if (code == 0 && c->op->id == S3_OP_DeleteObjects)
        code = need_any_removal(c, err);
    if (code == 0 && !(flags & OP_ASKS))
        code = call_need(c, &c->target, call_action(c), c->key, NULL, err);
    if (code == 0 && captures)
        code = call_capture(c, NULL, 0, err);
    if (code == 0 && flags & OP_XML && !(flags & OP_ASKS))
        code = call_read_body(c, err);
    return code;
}

static int call_operate(struct call *c, struct err *err)
{
    int code = call_prepare(c, err);

    if (code < 0) {
        call_not_captured(c);
        return code;
    }
    code = c->op->fn(c, err);
    /* The text of an error of reporting is not used: the answer is sent already. The change is not
     * lost, because the storage's commit has captured it. */
    struct err late = {0};
    int told = call_captured(c, code == 0 ? OUTCOME_DONE : OUTCOME_UNKNOWN, &late);
    return code < 0 ? code : told;
}

/* Answers OPTIONS, which browsers send before a request, without a signature. As on Ceph, a
 * signature is checked if there is one. */
static int call_preflight(struct call *c, struct err *err)
{
    struct cors_request ask = {http_header(c->head, "origin"),
                               http_header(c->head, "access-control-request-method"),
                               http_header(c->head, "access-control-request-headers")};
    struct http_header headers[CORS_MAX_HEADERS];
    struct cors_answer answer;
    struct err ignored = {0};
    const struct target *to = &c->target.at;

    if (!http_may_block(c->http))
        return ERR_AGAIN;
    if (c->level == LEVEL_SERVICE)
        return s3_fail(err, S3_ACCESS_FORBIDDEN);
    if (routes_any_remote(c->g->o.routes) && call_authenticate(c, &ignored) < 0)
        call_claim(c);
    int code = call_resolve(c, NULL, err);
    if (code == 0 && to->kind == TARGET_RAW) {
        if (c->claimed && !remote_has_credential(to->storage, c->user_id))
            call_be(c, NULL); /* a preflight may be anonymous */
        return forward_call(c, err);
    }
    if (code == 0)
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

/* --- the steps of a request --- */

static int call_refuse(const struct call *c, struct err *err)
{
    *err = *c->refusal;
    return err->code;
}

static int call_serve(struct call *c, struct err *err)
{
    struct storage *view = NULL;
    bool passed_on = false;
    int code = call_authenticate(c, err);

    c->auth_failed = code < 0;
    if (code == 0 && http_header(c->head, "x-weir-storage").p)
        code = call_view(c, &view, err);
    if (code == 0 && has_target(c))
        code = call_resolve(c, view, err);
    if (code == 0)
        code = is_passed_on(c, &passed_on, err);
    if (code < 0)
        return code;
    if (passed_on)
        return forward_call(c, err);
    return c->refusal ? call_refuse(c, err) : call_operate(c, err);
}

static int call_end(struct call *c, int code, const struct err *err)
{
    return c->waits ? code : call_finish(c, code, err);
}

/* Continues the request on a thread of the pool. `in_time` is false if no thread was free. */
static int serve_on_pool(struct http_request *req, void *ctx, bool in_time)
{
    struct call *c = ctx;
    struct err err = {0};

    (void)req;
    c->waits = false;
    int code = in_time ? call_serve(c, &err) : err_set(&err, ERR_BUSY, "too many requests at once");
    return call_end(c, code, &err);
}

/* Must the request move to the pool of threads, because its operation may wait? This is asked
 * before anything costly is done. */
static bool must_move(const struct call *c)
{
    return !http_may_block(c->http) && !(c->op && c->op->flags & OP_FAST);
}

static int call_begin(struct call *c, struct err *err)
{
    int code = call_parse(c, err);

    if (code == 0)
        code = store_may_serve(c->g->o.store, err);
    if (code < 0)
        return code;
    if (c->is_website)
        return website_run(c, err);
    if (c->head->method == HTTP_OPTIONS)
        return call_preflight(c, err);
    code = call_find_operation(c, err);
    if (code < 0)
        return code;
    if (!must_move(c))
        return call_serve(c, err);
    c->waits = true;
    return http_go_on(c->http, serve_on_pool, c);
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
    int code = call_begin(c, &err);
    return call_end(c, code, &err);
}

int call_finish(struct call *c, int code, const struct err *err)
{
    if (code < 0 && code != ERR_AGAIN)
        code = c->is_website ? website_error(c, code, err) : respond_error(c, code, err);
    if (code != ERR_AGAIN)
        call_log(c);
    call_close(&c->target);
    if (c->source)
        call_close(&c->source->target);
    auth_release(&c->auth);
    if (c->budget)
        call_drop_gathered(c->budget, &c->document);
    secure_zero(&c->encryption, sizeof(c->encryption));
    return code;
}
