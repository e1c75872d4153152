/* Restores to git servers that the server does: they are asked for, followed, listed, canceled. */
#include "archive/commands/restores.h"

#include "archive/room.h"
#include "http/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

bool restores_can(const char *url)
{
    return str_starts(str_z(url), STR("https://")) || str_starts(str_z(url), STR("http://"));
}

/* --- asking --- */

/* Splits user and password off a URL. *bare and *credentials are in the arena; *credentials is
 * empty if the URL has none. */
static int order_split(struct arena *a, const char *text, struct str *bare, struct str *credentials,
                       struct err *err)
{
    struct buf user = {0}, password = {0};
    struct url url;
    int code = url_parse(&url, str_z(text), err);

    *bare = str_z(text);
    *credentials = STR_EMPTY;
    if (code < 0 || (url.user.len == 0 && url.password.len == 0))
        return code;
    const char *at = url.host.p;
    struct str rest = str_n(at, (size_t)(text + strlen(text) - at));
    if (at > text && at[-1] == '[')
        rest = str_n(at - 1, rest.len + 1);
    *bare = arena_fmt(a, STR_FMT "://" STR_FMT, STR_ARG(url.scheme), STR_ARG(rest));
    if (url_decode(&user, url.user, false) < 0 || url_decode(&password, url.password, false) < 0)
        code = err_set(err, ERR_INVALID, "the user name or the password in the URL is malformed");
    else
        *credentials =
            arena_fmt(a, STR_FMT ":" STR_FMT, STR_ARG(buf_str(&user)), STR_ARG(buf_str(&password)));
    buf_release(&user);
    buf_release(&password);
    return code;
}

static int order_fill(struct buf *body, struct arena *a, const struct restore_order *o,
                      struct err *err)
{
    struct str bare, credentials;
    struct json_out w;
    int code = order_split(a, o->url, &bare, &credentials, err);

    json_out_init(&w, body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "url", bare);
    if (o->name.len)
        json_out_member_str(&w, "name", o->name);
    if (credentials.len)
        json_out_member_str(&w, "credentials", credentials);
    if (o->has_at)
        json_out_member_i64(&w, "at", o->at_s);
    json_out_member_bool(&w, "all", o->all);
    json_out_close(&w, '}');
    return code;
}

/* Queues the restore. *path becomes the path of the restore in the API. */
static int order_send(struct api_client *r, const struct restore_order *o, const char **path,
                      struct err *err)
{
    struct buf body = {0}, to = BUF_INIT(8 * KIB);
    json_t *answer = NULL;
    int code = order_fill(&body, &r->arena, o, err);

    buf_append_z(&to, "/api/v1/archive/accounts/");
    url_encode(&to, o->account, false);
    buf_append_z(&to, "/restores");
    if (code == 0)
        code = api_client_send(r, "POST", to.p, body.p, &answer, err);
    *path = arena_z(&r->arena, arena_fmt(&r->arena, "/api/v1/archive/restores/" STR_FMT,
                                         STR_ARG(json_get_str(answer, "id", STR_EMPTY))));
    json_decref(answer);
    buf_release(&body);
    buf_release(&to);
    return code;
}

/* --- following --- */

static void follow_show(const json_t *p)
{
    struct str now = json_get_str(p, "now", STR_EMPTY);

    fprintf(stderr,
            "\r%" PRId64 " of %" PRId64 " repositories, %" PRId64 " failed, %" PRId64 " of %" PRId64
            " MiB, %" PRId64 " KiB/s, %" PRId64 " s left " STR_FMT "\033[K",
            json_get_i64(p, "done", 0), json_get_i64(p, "total", 0), json_get_i64(p, "failed", 0),
            json_get_i64(p, "bytes", 0) / MIB, json_get_i64(p, "total_bytes", 0) / MIB,
            json_get_i64(p, "rate", 0) / KIB, json_get_i64(p, "left_s", 0), STR_ARG(now));
}

static bool follow_ended(const json_t *p)
{
    return json_get_str(p, "ended", STR_EMPTY).len > 0 ||
           str_eq(json_get_str(p, "state", STR_EMPTY), STR("failed"));
}

static int follow_poll(struct api_client *r, const char *path, bool detach, json_t **out,
                       struct err *err)
{
    bool shows = isatty(STDERR_FILENO);
    int code = api_client_send(r, "GET", path, NULL, out, err);

    while (code == 0 && !detach && !follow_ended(*out)) {
        if (shows)
            follow_show(*out);
        json_decref(*out);
        *out = NULL;
        manage_poll_wait();
        code = api_client_send(r, "GET", path, NULL, out, err);
    }
    if (shows)
        fprintf(stderr, "\r\033[K");
    return code;
}

static int follow_judge(const json_t *p, struct err *err)
{
    struct str state = json_get_str(p, "state", STR_EMPTY);
    struct str why = json_get_str(p, "error", STR_EMPTY);
    int64_t failed = json_get_i64(p, "failed", 0), total = json_get_i64(p, "total", 0);

    if (str_eq(state, STR("canceled")))
        return err_set(err, ERR_CANCELED, "the restore was canceled");
    if (!str_eq(state, STR("failed")))
        return 0;
    if (total > 1 && failed)
        return err_set(err, ERR_PEER,
                       "%" PRId64 " of %" PRId64
                       " repositories were not restored; the last: " STR_FMT,
                       failed, total, STR_ARG(why));
    return err_set(err, ERR_PEER, STR_FMT, STR_ARG(why));
}

static void follow_row(struct output *table, const struct restore_order *o, const json_t *p)
{
    struct str state = json_get_str(p, "state", STR_EMPTY);

    output_cell(table, o->name.len ? o->name : o->account);
    output_cell(table, json_get_str(p, "url", STR_EMPTY));
    output_cellf(table, "%" PRId64, json_get_i64(p, "refs", 0));
    output_cellf(table, "%" PRId64, json_get_i64(p, "bytes", 0));
    output_cell(table, str_eq(state, STR("done")) ? STR("pushed") : state);
}

int restores_follow(struct api_client *r, const struct restore_order *o, struct output *table,
                    struct err *err)
{
    const char *path;
    json_t *answer = NULL;
    int code = order_send(r, o, &path, err);

    if (code == 0)
        code = follow_poll(r, path, o->detach, &answer, err);
    if (code == 0) {
        follow_row(table, o, answer);
        code = follow_judge(answer, err);
    }
    json_decref(answer);
    return code;
}

/* --- listing and canceling --- */

static const struct flag restores_flags[] = {CLIENT_FLAGS, {0}};

static const struct output_column restores_columns[] = {{"id"},
                                                        {"account"},
                                                        {"name"},
                                                        {"url"},
                                                        {"state"},
                                                        {"done", .number = true},
                                                        {"failed", .number = true},
                                                        {"total", .number = true},
                                                        {"bytes", .number = true},
                                                        {"total_bytes", .number = true},
                                                        {"rate", .number = true},
                                                        {"left_s", .number = true},
                                                        {"error"}};

static const struct manage_call list_restores = {"GET", "/api/v1/archive/restores",
                                                 MANAGE_COLUMNS(restores_columns),
                                                 .rows = "restores", .pages = true};
static const struct manage_call cancel_restore = {"DELETE", "/api/v1/archive/restores/{0}"};

const struct command archive_restore_commands[] = {
    {.name = "archive restores list",
     .flags = restores_flags,
     .configured = true,
     .summary = "Show the restores to other git servers",
     .help =
         "Shows the restores that `weir archive restore ACCOUNT URL` has queued: those that run "
         "now, with their progress, and those that ended in the last week.",
     .examples = "weir archive restores list",
     .call = &list_restores},
    {.name = "archive restores cancel",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = restores_flags,
     .configured = true,
     .summary = "End a restore to another git server",
     .help = "The worker ends the restore. Repositories that were pushed stay.",
     .examples = "weir archive restores cancel 51c7c1d8f1a2b3c4",
     .call = &cancel_restore},
    {0},
};
