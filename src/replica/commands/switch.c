/* weir switch: moves the clients of a bucket to another storage. */
#include "replica/room.h"
#include "base/clock.h"
#include "command/manage.h"

#include <stdlib.h>

#define USER_FLAG                                                                                  \
    {                                                                                              \
        "user", FLAG_TEXT, "NAME", NULL,                                                           \
            "The user whose bucket it is; default: the only bucket of that name."                  \
    }
#define SELECT_FLAGS                                                                               \
    USER_FLAG,                                                                                     \
    {                                                                                              \
        "to", FLAG_TEXT, "STORAGE", NULL, "The new storage; default: the replication's."           \
    }
#define CONTINUE_FLAG                                                                              \
    {                                                                                              \
        "continue", FLAG_SWITCH, NULL, NULL,                                                       \
            "Replicate in reverse afterwards, so that the old storage follows."                    \
    }
#define WATCH_FLAG                                                                                 \
    {                                                                                              \
        "watch", FLAG_SWITCH, NULL, NULL, "Show the progress until the switch has ended."          \
    }

static const struct flag switch_start_flags[] = {
    SELECT_FLAGS,
    {"multipart-ttl", FLAG_TEXT, "DURATION", NULL,
     "How long to wait for uploads that were begun on the old storage; default: 1h."},
    CONTINUE_FLAG,
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag switch_plan_flags[] = {
    SELECT_FLAGS,
    {"start-at", FLAG_TEXT, "TIME", NULL, "When to begin, such as 2026-01-31T03:00:00Z."},
    {"cron", FLAG_TEXT, "LINE", NULL,
     "When the switch may begin, as a cron line in UTC such as \"0 3 * * 6\"; it is tried each "
     "time until it is done."},
    {"on-init-done", FLAG_SWITCH, NULL, NULL, "Begin when everything has been copied once."},
    {"max-duration", FLAG_TEXT, "DURATION", NULL,
     "Give up when the bucket has been blocked for that long. The wait for uploads does not "
     "count, as it does not hold up clients."},
    {"max-event-lag", FLAG_TEXT, "N", NULL,
     "Skip the switch when more than N changes are not copied at its beginning."},
    {"multipart-ttl", FLAG_TEXT, "DURATION", NULL,
     "How long to wait, without downtime, for uploads that are still open on the old storage at "
     "the end; 0s: not at all; default: 1h, or --max-duration if that is shorter."},
    {"skip-check", FLAG_SWITCH, NULL, NULL,
     "Do not compare both buckets before the switch is done."},
    CONTINUE_FLAG,
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag switch_list_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL, "Only switches of this user."}, CLIENT_FLAGS, {0}};
static const struct flag switch_select_flags[] = {USER_FLAG, WATCH_FLAG, CLIENT_FLAGS, {0}};

static const struct flag switch_set_flags[] = {
    USER_FLAG,
    {"multipart-ttl", FLAG_TEXT, "DURATION", NULL,
     "How long to wait for open uploads, counted from the beginning of the wait; 0s: end it."},
    CLIENT_FLAGS,
    {0}};

/* clang-format off */
#define SWITCH_COLUMNS                                                                             \
    {"user"}, {"bucket"}, {"from"}, {"to"}, {"downtime"}, {"state"}, {"lag", .number = true}
#define TIME_COLUMNS {"start_at"}, {"cron"}, {"started"}, {"last"}
/* clang-format on */

static const struct output_column list_columns[] = {
    SWITCH_COLUMNS,
    TIME_COLUMNS,
};

/* Columns of the table for a switch that was just planned. They include the number of uploads that
 * clients have open. */
static const struct output_column made_columns[] = {
    SWITCH_COLUMNS,
    {"uploads", .number = true},
    TIME_COLUMNS,
};

static const struct output_column show_columns[] = {
    SWITCH_COLUMNS,
    {"uploads", .number = true},
    {"created"},
    {"started"},
    {"done"},
    {"aborted"},
    {"start_at"},
    {"cron"},
    {"on_init_done"},
    {"max_duration_ms", .number = true},
    {"max_event_lag", .number = true},
    {"skip_check"},
    {"continue"},
    {"multipart_ttl_ms", .number = true},
    {"waits_until"},
    {"waits_left"},
    {"waits_for"},
};

static const struct output_column upload_columns[] = {
    {"key"}, {"upload_id"}, {"initiated"}, {"initiator"}};

/* --- choosing --- */

static const char *switch_path(struct api_client *r, const struct invocation *inv, const char *what,
                               const char *to)
{
    struct buf path = BUF_INIT(64 * KIB);

    buf_appendf(&path, "/api/v1/%s", what);
    manage_query(&path, "bucket", inv->args.len ? inv->args.items[0] : NULL);
    manage_query(&path, "user", invocation_flag(inv, "user"));
    manage_query(&path, "to", to);
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

/* Sets *id to the id of the only row. Archived replications are not counted. ERR_NOT_FOUND: there
 * is no row. ERR_CONFLICT: there are several. */
static int switch_only_row(struct api_client *r, const json_t *rows, const char **id,
                           struct err *err)
{
    const json_t *row;
    size_t i, found = 0;

    json_array_foreach(rows, i, row)
    {
        if (json_get_bool(row, "archived", false))
            continue;
        *id = arena_z(&r->arena, json_get_str(row, "id", STR_EMPTY));
        found++;
    }
    if (found == 1)
        return 0;
    return found ? err_set(err, ERR_CONFLICT,
                           "there are %zu of them; choose one with --user or --to", found)
                 : err_set(err, ERR_NOT_FOUND, "there is none");
}

/* Sets *id to the id of the only item of a list. ERR_NOT_FOUND: the list is empty. ERR_CONFLICT: it
 * has several items. */
static int switch_select_from(struct api_client *r, struct manage_list *list, const char **id,
                              struct err *err)
{
    json_t *rows = NULL;
    int code = manage_pages(r, list, &rows, err);

    if (code == 0)
        code = switch_only_row(r, rows, id, err);
    json_decref(rows);
    return code;
}

static int switch_select_replication(struct api_client *r, const struct invocation *inv,
                                     const char **id, struct err *err)
{
    const char *to = invocation_flag(inv, "to");
    struct manage_list list = {.path = switch_path(r, inv, "replications", to),
                               .name = "replications"};
    int code = switch_select_from(r, &list, id, err);

    return code == ERR_NOT_FOUND
               ? err_set(err, code,
                         "the bucket %s is not replicated to %s%s; weir replicate add makes the "
                         "copy to "
                         "switch to",
                         inv->args.items[0], to ? "storage " : "another storage", to ? to : "")
               : code;
}

static int switch_select(struct api_client *r, const struct invocation *inv, const char **id,
                         struct err *err)
{
    struct manage_list list = {.path = switch_path(r, inv, "switches", NULL), .name = "switches"};
    int code = switch_select_from(r, &list, id, err);

    return code == ERR_NOT_FOUND
               ? err_set(err, code, "the bucket has no switch; weir switch list shows all switches")
               : code;
}

/* --- watching --- */

/* Replaces the number of uploads by the word "unknown" if it is null. */
static void switch_name_unknown(json_t *row)
{
    if (json_is_null(json_object_get(row, "uploads")))
        json_object_set_new(row, "uploads", json_string("unknown"));
}

/* Appends the time for which the switch still waits for uploads, as hours, minutes and seconds. */
static void switch_append_left(struct buf *out, const json_t *row)
{
    long long s = (json_get_i64(row, "waits_left_ms", 0) + MS_PER_S - 1) / MS_PER_S;

    buf_appendf(out, "%lld:%02lld:%02lld", s / S_PER_HOUR, s / S_PER_MINUTE % 60, s % 60);
}

static bool switch_waits_for_uploads(const json_t *row)
{
    return json_is_integer(json_object_get(row, "waits_left_ms")) &&
           json_get_i64(row, "uploads", 0) > 0;
}

static void switch_append_uploads(struct buf *line, const json_t *row)
{
    const json_t *open = json_object_get(row, "uploads");

    if (json_is_integer(open))
        buf_appendf(line, "uploads %lld  ", (long long)json_integer_value(open));
    else
        buf_append_z(line, "uploads unknown  ");
    if (switch_waits_for_uploads(row)) {
        buf_append_z(line, "waited for until ");
        buf_append_str(line, json_get_str(row, "waits_until", STR_EMPTY));
        buf_append_z(line, "  ");
    }
}

/* Returns whether the switch goes on by itself, so that it is worth watching. */
static bool switch_is_busy(const json_t *row)
{
    struct str state = json_get_str(row, "state", STR_EMPTY);

    if (str_eq(state, STR("error")) || str_eq(state, STR("skipped")))
        return json_get_str(row, "cron", STR_EMPTY).len > 0;
    return !str_eq(state, STR("done"));
}

static void switch_show_line(const json_t *row, bool json, struct buf *last)
{
    struct buf line = {0};

    if (json) {
        char *text = json_dumps(row, JSON_COMPACT);
        buf_append_z(&line, text ? text : "");
        free(text);
    } else {
        buf_appendf(&line, STR_FMT "  " STR_FMT " -> " STR_FMT "  " STR_FMT "  lag %lld  ",
                    STR_ARG(json_get_str(row, "bucket", STR_EMPTY)),
                    STR_ARG(json_get_str(row, "from", STR_EMPTY)),
                    STR_ARG(json_get_str(row, "to", STR_EMPTY)),
                    STR_ARG(json_get_str(row, "state", STR_EMPTY)),
                    (long long)json_get_i64(row, "lag", 0));
        switch_append_uploads(&line, row);
        buf_append_str(&line, json_get_str(row, "last", STR_EMPTY));
    }
    if (!str_eq(buf_str(&line), buf_str(last))) {
        printf("%s\n", line.p);
        fflush(stdout);
    }
    buf_release(last);
    *last = line;
}

/* Reads the state of a switch. ERR_NOT_FOUND: the switch does not exist any more. */
static int switch_ask(struct api_client *r, const char *path, json_t **out, struct err *err)
{
    struct client_response response = {0};

    arena_reset(&r->arena);
    int code = api_client_call(r, path, NULL, &response, err);
    if (code == 0 && response.status == 404)
        return ERR_NOT_FOUND;
    if (code == 0 && response.status / 100 != 2)
        code = api_client_error(r, &response, err);
    return code == 0 ? json_read(out, response.body, err) : code;
}

/* Shows the switch's progress until it ends. It is no error if the switch does not exist any more,
 * because it was aborted or removed. */
static int switch_watch(struct api_client *r, const struct invocation *inv, const char *id,
                        struct err *err)
{
    char *path = str_dup(str_z(manage_path(r, "/api/v1/switches/", id, "")));
    struct buf last = {0};
    bool busy = true, failed = false;
    int code = 0;

    while (code == 0 && busy) {
        json_t *row = NULL;
        code = switch_ask(r, path, &row, err);
        if (code == 0) {
            json_object_del(row, "history");
            switch_show_line(row, invocation_flag(inv, "json"), &last);
            busy = switch_is_busy(row);
            failed = !str_eq(json_get_str(row, "state", STR_EMPTY), STR("done"));
        }
        json_decref(row);
        if (code == 0 && busy)
            manage_poll_wait();
    }
    buf_release(&last);
    free(path);
    if (code == ERR_NOT_FOUND)
        return 0;
    return code == 0 && failed
               ? err_set(err, ERR_PEER, "the bucket was not switched; weir switch show says why")
               : code;
}

/* --- start and plan --- */

static int switch_fill_duration(struct json_out *w, const struct invocation *inv, const char *flag,
                                const char *name, struct err *err)
{
    const char *text = invocation_flag(inv, flag);
    uint64_t ms = 0;

    if (!text)
        return 0;
    if (str_duration_ms(str_z(text), &ms) < 0)
        return err_set(err, ERR_INVALID, "--%s takes a duration such as 30m, not '%s'", flag, text);
    json_out_member_u64(w, name, ms);
    return 0;
}

static int switch_fill(struct json_out *w, const struct invocation *inv, bool downtime,
                       struct err *err)
{
    const char *lag = invocation_flag(inv, "max-event-lag");
    uint64_t number = 0;
    int code = switch_fill_duration(w, inv, "multipart-ttl", "multipart_ttl_ms", err);

    if (code == 0)
        code = switch_fill_duration(w, inv, "max-duration", "max_duration_ms", err);
    if (code == 0 && lag && str_u64(str_z(lag), &number) < 0)
        code = err_set(err, ERR_INVALID, "--max-event-lag takes a number, not '%s'", lag);
    if (lag)
        json_out_member_u64(w, "max_event_lag", number);
    json_out_member_bool(w, "downtime", downtime);
    json_out_member_bool(w, "on_init_done", invocation_flag(inv, "on-init-done"));
    json_out_member_bool(w, "skip_check", invocation_flag(inv, "skip-check"));
    json_out_member_bool(w, "continue", invocation_flag(inv, "continue"));
    manage_flag(w, inv, "start-at", "start_at");
    manage_flag(w, inv, "cron", "cron");
    return code;
}

static int switch_make(struct api_client *r, const struct invocation *inv, struct output *table,
                       bool downtime, struct err *err)
{
    const char *replication = NULL;
    struct buf body = {0};
    struct json_out w;
    json_t *made = NULL;
    int code = switch_select_replication(r, inv, &replication, err);

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    if (code == 0)
        code = switch_fill(&w, inv, downtime, err);
    if (code == 0)
        json_out_member_str(&w, "replication", str_z(replication));
    json_out_close(&w, '}');
    if (code == 0)
        code = api_client_send(r, "POST", "/api/v1/switches", body.p, &made, err);
    buf_release(&body);
    if (code == 0 && invocation_flag(inv, "watch"))
        code = switch_watch(r, inv, arena_z(&r->arena, json_get_str(made, "id", STR_EMPTY)), err);
    else if (code == 0) {
        switch_name_unknown(made);
        manage_row(table, made);
    }
    json_decref(made);
    return code;
}

static int switch_start_command(struct api_client *r, const struct invocation *inv,
                                struct output *table, struct err *err)
{
    return switch_make(r, inv, table, false, err);
}

static int switch_plan_command(struct api_client *r, const struct invocation *inv,
                               struct output *table, struct err *err)
{
    return switch_make(r, inv, table, true, err);
}

/* --- list, show, abort --- */

static int switch_list_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    struct manage_list list = {.path = switch_path(r, inv, "switches", NULL), .name = "switches"};
    json_t *all = NULL, *row;
    size_t i;
    int code = manage_pages(r, &list, &all, err);

    json_array_foreach(all, i, row) manage_row(table, row);
    json_decref(all);
    return code;
}

/* Shows which uploads are open, how long the switch waits for them, and what ends the wait. */
static void switch_print_uploads(const json_t *answer)
{
    const json_t *open = json_object_get(answer, "open_uploads"), *row;
    struct output table;
    size_t i;

    if (!json_array_size(open))
        return;
    printf("\nopen uploads on " STR_FMT "%s:\n", STR_ARG(json_get_str(answer, "from", STR_EMPTY)),
           json_get_i64(answer, "uploads", 0) > (int64_t)json_array_size(open) ? " (the first ones)"
                                                                               : "");
    output_init(&table, upload_columns, ARRAY_SIZE(upload_columns));
    json_array_foreach(open, i, row) manage_row(&table, row);
    output_print(&table, stdout);
    output_release(&table);
    if (switch_waits_for_uploads(answer))
        printf("\nThe switch waits until clients have completed or aborted these uploads, at most "
               "until " STR_FMT ". Change that with weir switch set " STR_FMT " --multipart-ttl. "
               "Uploads that are still open then are left behind, and their clients get 404 "
               "NoSuchUpload.\n",
               STR_ARG(json_get_str(answer, "waits_until", STR_EMPTY)),
               STR_ARG(json_get_str(answer, "bucket", STR_EMPTY)));
}

/* Adds the member "waits_left" for people: the time for which the switch still waits for
 * uploads. */
static void switch_name_left(json_t *row)
{
    struct buf left = {0};

    if (switch_waits_for_uploads(row))
        switch_append_left(&left, row);
    json_object_set_new(row, "waits_left", json_string(left.len ? left.p : ""));
    buf_release(&left);
}

/* Prints one switch. Without --json, uploads and history follow on their own lines; JSON has them
 * as members. */
static void switch_print(json_t *answer, bool json)
{
    const json_t *line;
    struct output table;
    size_t i;

    if (json) {
        manage_print_json(answer);
        return;
    }
    output_init(&table, show_columns, ARRAY_SIZE(show_columns));
    switch_name_left(answer);
    switch_name_unknown(answer);
    manage_row(&table, answer);
    output_print(&table, stdout);
    output_release(&table);
    switch_print_uploads(answer);
    printf("\nhistory:\n");
    json_array_foreach(json_object_get(answer, "history"), i, line)
        printf("%s\n", json_string_value(line));
}

static int switch_show_run(struct api_client *r, const struct invocation *inv, struct output *none,
                           struct err *err)
{
    const char *id = NULL;
    json_t *answer = NULL;
    int code = switch_select(r, inv, &id, err);

    (void)none;
    if (code == 0 && invocation_flag(inv, "watch"))
        return switch_watch(r, inv, id, err);
    if (code == 0)
        code = api_client_send(r, "GET", manage_path(r, "/api/v1/switches/", id, ""), NULL, &answer,
                               err);
    if (code == 0)
        switch_print(answer, invocation_flag(inv, "json"));
    json_decref(answer);
    return code;
}

static int switch_fill_set(struct json_out *w, const struct invocation *inv, struct err *err)
{
    return switch_fill_duration(w, inv, "multipart-ttl", "multipart_ttl_ms", err);
}

static int switch_set_run(struct api_client *r, const struct invocation *inv, struct output *none,
                          struct err *err)
{
    const char *id = NULL;
    int code = invocation_flag(inv, "multipart-ttl")
                   ? switch_select(r, inv, &id, err)
                   : err_set(err, ERR_INVALID, "say what to change: --multipart-ttl DURATION");

    (void)none;
    if (code < 0)
        return code;
    struct manage_call call = {"PUT", manage_path(r, "/api/v1/switches/", id, ""),
                               .fill = switch_fill_set};
    return manage_send(r, inv, &call, NULL, err);
}

static int switch_abort_run(struct api_client *r, const struct invocation *inv, struct output *none,
                            struct err *err)
{
    const char *id = NULL;
    int code = switch_select(r, inv, &id, err);

    (void)none;
    if (code == 0)
        code = api_client_send(r, "DELETE", manage_path(r, "/api/v1/switches/", id, ""), NULL, NULL,
                               err);
    if (code == 0 && invocation_flag(inv, "watch"))
        code = switch_watch(r, inv, id, err);
    return code;
}

static const struct manage_call switch_list_call = {MANAGE_COLUMNS(list_columns),
                                                    .run = switch_list_run};
static const struct manage_call switch_show_call = {.run = switch_show_run};
static const struct manage_call switch_set_call = {.run = switch_set_run};
static const struct manage_call switch_abort_call = {.run = switch_abort_run};
static const struct manage_call switch_start_call = {MANAGE_COLUMNS(made_columns),
                                                     .run = switch_start_command};
static const struct manage_call switch_plan_call = {MANAGE_COLUMNS(made_columns),
                                                    .run = switch_plan_command};

const struct command switch_commands[] = {
    {.name = "switch start",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_start_flags,
     .configured = true,
     .summary = "Switch a bucket to the storage that it is replicated to, without downtime",
     .help =
         "Switches the bucket's clients to the storage to which the bucket is replicated, without "
         "downtime. Clients are served all the time. They write to the new storage, and read from "
         "the storage that has the object. Uploads that were begun are finished where they"
         " were begun, and then copied. The switch is done when nothing is left to "
         "copy.\n\nThe bucket must have one replication, under the same name, whose first "
         "copy is done. weir switch abort goes back at any time and loses nothing.",
     .examples = "weir switch start photos --watch\nweir switch start photos --continue "
                 "--multipart-ttl 6h",
     .call = &switch_start_call},
    {.name = "switch plan",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_plan_flags,
     .configured = true,
     .summary = "Switch a bucket to the storage that it is replicated to, with downtime",
     .help =
         "Plans a switch of the bucket's clients to the storage to which the bucket is replicated, "
         "with downtime. When the switch begins, the bucket is blocked for all clients (503) until "
         "every "
         "change is copied and both buckets have been compared. If the buckets differ, or if the "
         "switch takes too long (--max-duration), the bucket stays on the old storage, and weir "
         "switch show says why.\n\nWithout --start-at, --cron and --on-init-done the "
         "switch begins at once. To change a plan that has not begun, has failed or was "
         "skipped, plan again. The column uploads shows the uploads that are open on the "
         "old storage.",
     .examples = "weir switch plan photos --watch\nweir switch plan photos --cron \"0 3 * * 6\" "
                 "--max-duration 30m --max-event-lag 1000 --continue",
     .call = &switch_plan_call},
    {.name = "switch list",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = switch_list_flags,
     .configured = true,
     .summary = "List the switches and where they are",
     .help = "Lists the switches. The states are not_started, in_progress, check_in_progress (both "
             "buckets are compared),"
             " done, error, skipped (its conditions were not met when it was to begin), and "
             "going_back (it was given up). Lag is the number of changes that are not copied yet.",
     .examples = "weir switch list\nweir switch list --json",
     .call = &switch_list_call},
    {.name = "switch show",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_select_flags,
     .configured = true,
     .summary = "Show a switch and its history",
     .help = "Shows the switch of a bucket: what it waits for, the uploads that are open on "
             "the old storage, how long it still waits for them and what ends the wait, and "
             "its history.",
     .examples = "weir switch show photos\nweir switch show photos --watch",
     .call = &switch_show_call},
    {.name = "switch set",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_set_flags,
     .configured = true,
     .summary = "Change how long a switch waits for uploads",
     .help = "Changes how long a switch waits for open uploads. The command works at any time "
             "before the switch is done, also during the wait. Uploads that "
             "are still open on the old storage when the time is over stay there: their "
             "clients get 404 NoSuchUpload and must begin anew.",
     .examples = "weir switch set photos --multipart-ttl 10m\nweir switch set photos "
                 "--multipart-ttl 0s",
     .call = &switch_set_call},
    {.name = "switch abort",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_select_flags,
     .configured = true,
     .summary = "Give up a switch",
     .help = "Gives up the switch of a bucket. A switch without downtime goes back: clients use "
             "the old storage again, and objects that they wrote to the new storage are copied "
             "there. A switch with downtime ends its "
             "block of the bucket. A switch that has not begun or has ended is forgotten.",
     .examples = "weir switch abort photos --watch",
     .call = &switch_abort_call},
    {0},
};
