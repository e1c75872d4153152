/* POST /notify/<storage>: what storages tell of changes. docs/replication.md, "By notification". */
#include "api/replications.h"
#include "base/clock.h"
#include "replica/notice.h"
#include "route/route.h"

enum { ARENA_MAX = 64 * 1024 * 1024 };

/* --- the token --- */

static int check_token(struct api *api, struct http_request *req, struct str storage,
                       struct err *err)
{
    struct buf real = BUF_INIT(256);
    struct str shown = STR_EMPTY;
    int code = api_query(req, "token", &shown, err);

    if (code < 0)
        return ERR_DENIED;
    remotes_notify_token(api->o.remotes, storage, &real);
    code = auth_check_token(&api->auth, buf_str(&real),
                            http_header(http_request_head(req), "Authorization"), shown,
                            http_request_peer(req), clock_mono_ms());
    secure_zero(real.p, real.cap);
    buf_release(&real);
    return code;
}

int api_get_notify(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct buf path = BUF_INIT(1024), token = BUF_INIT(256);
    struct api_json j;

    if (!routes_storage(api->o.routes, name))
        return api_send_error(req, 404, "not_found", "there is no such storage");
    buf_append_z(&path, "/notify/");
    url_encode(&path, name, false);
    remotes_notify_token(api->o.remotes, name, &token);
    api_json_begin(&j);
    json_out_member_str(&j.w, "name", name);
    json_out_member_str(&j.w, "path", buf_str(&path));
    json_out_member_str(&j.w, "token", buf_str(&token));
    secure_zero(token.p, token.cap);
    buf_release(&token);
    buf_release(&path);
    return api_json_send(req, 200, &j);
}

/* --- notices --- */

struct heard {
    size_t records, recorded, unclear;
};

static int take(struct api *api, struct str storage, struct str body, struct heard *out,
                struct err *err)
{
    struct arena a = ARENA_INIT(ARENA_MAX);
    struct notices n;
    int code = notices_read(&n, &a, body, err);

    if (code == 0) {
        out->records = n.count + n.other + n.unclear;
        out->unclear = n.unclear;
        code = notices_record(api->o.replications, storage, &n, &out->recorded, err);
    }
    arena_release(&a);
    return code;
}

/* A storage that is not known is answered as one without replications: it would tell for ever. */
static int hear(struct api *api, struct http_request *req, struct str storage, struct heard *out,
                struct err *err)
{
    struct str body;
    int code = api_replications_on(api, err);

    if (code == 0)
        code = http_request_read_all(req, NOTICE_BODY_MAX, &body, err);
    if (code == 0)
        code = take(api, storage, body, out, err);
    return code;
}

int api_post_notify(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct str storage = route_param(params, "storage");
    struct heard heard = {0};
    struct api_json j;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = check_token(ctx, req, storage, &err);
    if (code < 0)
        return api_send_denied(req, code);
    code = hear(ctx, req, storage, &heard, &err);
    if (code == ERR_AGAIN || code == ERR_CLOSED || code == ERR_TIMEOUT)
        return code; /* as in api_read_json() */
    if (code < 0)
        return api_send_failure(req, code, &err);
    if (heard.unclear)
        log_warn(http_request_log(req), "notify.unclear", log_s("storage", storage),
                 log_u("records", heard.unclear));
    api_json_begin(&j);
    json_out_member_u64(&j.w, "records", heard.records);
    json_out_member_u64(&j.w, "recorded", heard.recorded);
    return api_json_send(req, 200, &j);
}
