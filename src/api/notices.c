/* POST /notify/<storage>, by which storages report changes (docs/replication.md, "By
 * notification"). */
#include "api/api_int.h"
#include "base/clock.h"
#include "replica/notice.h"
#include "route/route.h"

enum { ARENA_MAX = 64 * 1024 * 1024 };

static rest_fn notice_take, notice_check_token, notice_show;

struct notice_counts {
    uint64_t records, recorded;
};

struct notice_address {
    struct str name, path, token;
};

static const struct rest_row notice_rows[] = {
    {HTTP_POST, "/notify/{storage}", REST_TOKEN,
     "S3 event notifications of a storage: changes of replicated buckets there. The storage shows "
     "its token as a Bearer token, as the password of HTTP Basic, or in the query. 200 when the "
     "changes are recorded.",
     notice_take, .needs = notice_check_token,
     .in_path = REST_FIELDS({"storage", "The name of the storage that reports."}),
     .query = REST_FIELDS({"token", "The storage's token.", .secret = true}),
     .raw_body = "An S3 event notification: a JSON object with Records.",
     .raw_max = NOTICE_BODY_MAX, .out = sizeof(struct notice_counts),
     .answer = REST_FIELDS({"records", "Records in the notification.", REST_INTEGER,
                            REST_AT(struct notice_counts, records)},
                           {"recorded", "Changes recorded for replications.", REST_INTEGER,
                            REST_AT(struct notice_counts, recorded)})},
    {HTTP_GET, "/api/v1/storages/{name}/notify", REST_ADMIN,
     "Where the storage must send notifications, and the token that it must show.", notice_show,
     .quick = true, .in_path = REST_FIELDS({"name", "The storage's name."}),
     .out = sizeof(struct notice_address),
     .answer = REST_FIELDS(
         {"name", "The storage's name.", REST_AT(struct notice_address, name)},
         {"path", "The path of this API to send notifications to.",
          REST_AT(struct notice_address, path)},
         {"token", "The token to show.", .secret = true, REST_AT(struct notice_address, token)})},
};
const struct rest_table api_notice_rows = {REST_ROWS(notice_rows)};

/* --- the token --- */

static int notice_check_token(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct buf real = BUF_INIT(256);

    remotes_notify_token(api->o.remotes, rest_text(c, "storage"), &real);
    int code = auth_check_token(&api->auth, buf_str(&real),
                                http_header(http_request_head(c->req), "Authorization"),
                                rest_text(c, "token"), http_request_peer(c->req), clock_mono_ms());
    secure_zero(real.p, real.cap);
    buf_release(&real);
    if (code < 0) {
        c->sent = true;
        return api_send_denied(c->req, code);
    }
    return services_need_replication(api->o.services, err);
}

static int notice_show(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    struct buf path = BUF_INIT(1024), token = BUF_INIT(256);

    if (!routes_storage(api->o.routes, name))
        return err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    buf_append_z(&path, "/notify/");
    url_encode(&path, name, false);
    remotes_notify_token(api->o.remotes, name, &token);
    int code = rest_give(c, (&(struct notice_address){name, buf_str(&path), buf_str(&token)}));
    secure_zero(token.p, token.cap);
    buf_release(&token);
    buf_release(&path);
    return code;
}

/* --- notices --- */

/* Accepts a storage's notice of a change. A storage that weir does not know gets the same answer as
 * a storage without replications: after an error the storage would send the notice again and
 * again. */
static int notice_take(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str storage = rest_text(c, "storage");
    struct arena a = ARENA_INIT(ARENA_MAX);
    struct notices n = {0};
    struct notice_counts counts = {0};
    int code = notices_read(&n, &a, rest_raw(c), err);

    if (code == 0)
        code = notices_record(api->o.replications, storage, &n, &counts.recorded, err);
    arena_release(&a);
    if (code < 0)
        return code;
    if (n.unclear)
        log_warn(http_request_log(c->req), "notify.unclear", log_s("storage", storage),
                 log_u("records", n.unclear));
    counts.records = n.count + n.other + n.unclear;
    return rest_give(c, &counts);
}
