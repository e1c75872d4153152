/* Routes: restores to other git servers, which are tasks of the queue. */
#include "archive/rest/rest.h"

#include "archive/restores.h"

static rest_fn restore_post, restore_get, restore_list, restore_delete;

/* The members of a restore in answers. */
#define RESTORE_MEMBERS                                                                            \
    {"id", "The id of the restore."}, {"account", "The account."},                                 \
        {"name", "The name of the bundle; empty: all bundles of the account."},                    \
        {"url", "The server that the repositories are pushed to."},                                \
        {"state", "What the task does.",                                                           \
         .choices = REST_CHOICES("queued", "running", "retry", "done", "failed", "canceled")},     \
        {"total", "How many bundles it restores; 0: it has not counted them.", REST_INTEGER},      \
        {"total_bytes", "Their bytes.", REST_INTEGER},                                             \
        {"done", "Bundles that were restored.", REST_INTEGER},                                     \
        {"failed", "Bundles that could not be restored.", REST_INTEGER},                           \
        {"refs", "Refs that were pushed.", REST_INTEGER},                                          \
        {"bytes", "Bytes of bundles that were read.", REST_INTEGER},                               \
        {"rate", "Bytes a second in the present run of the task.", REST_INTEGER},                  \
        {"left_s", "Seconds until the end at this rate; 0: not known.", REST_INTEGER},             \
        {"now", "The bundle that is restored now."},                                               \
        {"asked", "When it was asked for.", REST_TIME}, {"ended", "When it ended.", REST_TIME},    \
    {                                                                                              \
        "error", "Why the last bundle that failed, or the last try of the task, has failed."       \
    }

#define RESTORE_ID                                                                                 \
    {                                                                                              \
        "id", "The id of the restore."                                                             \
    }

static const struct rest_row restore_rows[] = {
    {HTTP_POST, "/api/v1/archive/accounts/{account}/restores", REST_ADMIN,
     "Restore a bundle of an account, or all of them, to another git server, as a task of the "
     "queue archive. Branches, tags and notes are pushed; the repositories must exist there. If "
     "the same restore is queued or runs, the answer is about that one.",
     restore_post,
     .in_path = REST_FIELDS({"account", "The account, such as github.com%2Foctocat."}),
     .body = REST_FIELDS(
         {"url", "The server: https://host/path. For a whole account, NAME.git is appended.",
          .required = true, .min = 1, .max = RESTORE_URL_MAX},
         {"name", "The name of one bundle; absent: all of the account."},
         {"credentials", "USER:PASSWORD for the server.", .secret = true,
          .max = RESTORE_CREDENTIALS_MAX},
         {"at",
          "The refs as the last sync at or before this time found them, in seconds since "
          "1970; absent: the present ones.",
          REST_INTEGER, .usual = -1, .min = -1, .max = INT64_MAX / 2000},
         {"all", "Of a whole account, restore copies too (NAME@damaged-TIME, NAME@moved-TIME).",
          REST_BOOLEAN}),
     .status = 202, .answer = REST_FIELDS({"id", "The id of the restore."}),
     .missing = "there is no such account"},
    {HTTP_GET, "/api/v1/archive/restores", REST_ADMIN,
     "The restores to other git servers that run or ended in the last week.", restore_list,
     .list = "restores", .by_place = true, .items = REST_FIELDS(RESTORE_MEMBERS)},
    {HTTP_GET, "/api/v1/archive/restores/{id}", REST_ADMIN, "How far a restore has come.",
     restore_get, .in_path = REST_FIELDS(RESTORE_ID), .answer = REST_FIELDS(RESTORE_MEMBERS),
     .missing = "there is no such restore"},
    {HTTP_DELETE, "/api/v1/archive/restores/{id}", REST_ADMIN,
     "End a restore. What was pushed stays.", restore_delete, .in_path = REST_FIELDS(RESTORE_ID),
     .status = 204, .missing = "there is no such restore"},
};
const struct rest_table archive_restore_routes = {REST_ROWS(restore_rows)};

static int restore_post(struct rest_call *c, struct err *err)
{
    struct restore_wish w = {.name = rest_text(c, "name"),
                             .url = rest_text(c, "url"),
                             .credentials = rest_text(c, "credentials"),
                             .at_s = rest_integer(c, "at"),
                             .all = rest_bool(c, "all")};
    struct str id = STR_EMPTY;
    int code = rest_account(c, &w.account, err);

    w.has_at = w.at_s >= 0;
    if (code == 0)
        code = restores_begin(rest_archive(c), c->arena, &w, &id, err);
    if (code == 0)
        json_out_member_str(c->w, "id", id);
    return code;
}

static void restore_write(struct json_out *w, const struct restore_progress *p)
{
    uint64_t left = p->total_bytes > p->bytes ? p->total_bytes - p->bytes : 0;
    bool runs = p->state == RESTORE_RUNNING;

    json_out_member_str(w, "id", p->id);
    json_out_member_str(w, "account", p->account);
    json_out_member_str(w, "name", p->name);
    json_out_member_str(w, "url", p->url);
    json_out_member_str(w, "state", str_z(restore_state_names[p->state]));
    json_out_member_u64(w, "total", p->total);
    json_out_member_u64(w, "total_bytes", p->total_bytes);
    json_out_member_u64(w, "done", p->done);
    json_out_member_u64(w, "failed", p->failed);
    json_out_member_u64(w, "refs", p->refs);
    json_out_member_u64(w, "bytes", p->bytes);
    json_out_member_u64(w, "rate", p->rate);
    json_out_member_u64(w, "left_s", runs && p->rate ? left / p->rate : 0);
    json_out_member_str(w, "now", runs ? p->now : STR_EMPTY);
    rest_time(w, "asked", p->asked_ms);
    rest_time(w, "ended", p->ended_ms);
    json_out_member_str(w, "error", p->error);
}

static int restore_get(struct rest_call *c, struct err *err)
{
    struct restore_progress p;
    int code = restores_find(rest_archive(c), c->arena, rest_text(c, "id"), &p, err);

    if (code == 0)
        restore_write(c->w, &p);
    return code;
}

static int restore_list(struct rest_call *c, struct err *err)
{
    struct restore_progress *all = NULL;
    size_t count = 0;
    int code = restores_list(rest_archive(c), c->arena, &all, &count, err);

    for (size_t i = rest_skip(c); i < count && code == 0; i++)
        if (rest_item(c, STR_EMPTY)) {
            restore_write(c->w, &all[i]);
            rest_item_end(c);
        }
    return code;
}

static int restore_delete(struct rest_call *c, struct err *err)
{
    return restores_cancel(rest_archive(c), rest_text(c, "id"), err);
}
