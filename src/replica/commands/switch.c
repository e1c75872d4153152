/* weir switch: the storage that a bucket's clients use becomes another one. */
#include "replica/room.h"
#include "base/clock.h"
#include "command/manage.h"

#include <stdlib.h>
#include <time.h>

enum { POLL_MS = 500 };

#define SELECT_FLAGS                                                                               \
    {"user", FLAG_TEXT, "NAME", NULL, "Whose bucket; default: the only one of that name."},        \
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
        "watch", FLAG_SWITCH, NULL, NULL, "Show where it is until it is done or has failed."       \
    }

static const struct flag switch_start_flags[] = {
    SELECT_FLAGS,
    {"multipart-ttl", FLAG_TEXT, "DURATION", NULL,
     "How long uploads begun on the old storage are waited for; default: 1h."},
    CONTINUE_FLAG,
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag switch_plan_flags[] = {
    SELECT_FLAGS,
    {"start-at", FLAG_TEXT, "TIME", NULL, "When it begins, such as 2026-01-31T03:00:00Z."},
    {"cron", FLAG_TEXT, "LINE", NULL,
     "When it may begin, in UTC, again each time until it is done: \"0 3 * * 6\"."},
    {"on-init-done", FLAG_SWITCH, NULL, NULL, "Wait until everything has been copied once."},
    {"max-duration", FLAG_TEXT, "DURATION", NULL,
     "Give it up when the bucket has been blocked for that long. The wait for uploads is not part "
     "of that, as clients are not held up by it."},
    {"max-event-lag", FLAG_TEXT, "N", NULL,
     "Skip it when more changes have not gone over as it begins."},
    {"multipart-ttl", FLAG_TEXT, "DURATION", NULL,
     "How long uploads that are open on the old storage at its end are waited for, without "
     "downtime; 0s: they are left; default: 1h, or --max-duration if that is shorter."},
    {"skip-check", FLAG_SWITCH, NULL, NULL, "Do not compare both buckets before it is done."},
    CONTINUE_FLAG,
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag switch_list_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL, "Of this user."}, CLIENT_FLAGS, {0}};
static const struct flag switch_select_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL, "Whose bucket; default: the only one of that name."},
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0}};

static const struct flag switch_set_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL, "Whose bucket; default: the only one of that name."},
    {"multipart-ttl", FLAG_TEXT, "DURATION", NULL,
     "How long open uploads are waited for, counted from when the wait began; 0s: no longer."},
    CLIENT_FLAGS,
    {0}};

static const struct output_column list_columns[] = {
    {"user"},
    {"bucket"},
    {"from"},
    {"to"},
    {"downtime"},
    {"state"},
    {"lag", .number = true},
    {"start_at"},
    {"cron"},
    {"started"},
    {"last"},
};

/* Of one that was just made: with what clients have open. */
static const struct output_column made_columns[] = {
    {"user"},
    {"bucket"},
    {"from"},
    {"to"},
    {"downtime"},
    {"state"},
    {"lag", .number = true},
    {"uploads", .number = true},
    {"start_at"},
    {"cron"},
    {"started"},
    {"last"},
};

static const struct output_column show_columns[] = {
    {"user"},
    {"bucket"},
    {"from"},
    {"to"},
    {"downtime"},
    {"state"},
    {"lag", .number = true},
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

static void add_query(struct buf *path, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    buf_appendf(path, "%c%s=", strchr(path->p, '?') ? '&' : '?', name);
    url_encode(path, str_z(value), false);
}

static const char *select_path(struct api_client *r, const struct invocation *inv, const char *what,
                               const char *to)
{
    struct buf path = BUF_INIT(64 * KIB);

    buf_appendf(&path, "/api/v1/%s", what);
    add_query(&path, "bucket", inv->args.len ? inv->args.items[0] : NULL);
    add_query(&path, "user", invocation_flag(inv, "user"));
    add_query(&path, "to", to);
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

/* The only row of the answer that may be meant: its id. */
static int only_one(struct api_client *r, const json_t *rows, const char **id, struct err *err)
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
    return found ? err_set(err, ERR_CONFLICT, "there are %zu of them; --user or --to choose one",
                           found)
                 : err_set(err, ERR_NOT_FOUND, "there is none");
}

static int select_replication(struct api_client *r, const struct invocation *inv, const char **id,
                              struct err *err)
{
    json_t *answer = NULL;
    const char *path = select_path(r, inv, "replications", invocation_flag(inv, "to"));
    int code = api_client_send(r, &answer, "GET", path, NULL, err);

    if (code == 0)
        code = only_one(r, json_object_get(answer, "replications"), id, err);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, code,
                       "the bucket has no such replication; weir replicate add makes the copy that "
                       "it is switched to");
    json_decref(answer);
    return code;
}

static int select_switch(struct api_client *r, const struct invocation *inv, const char **id,
                         struct err *err)
{
    json_t *answer = NULL;
    int code = api_client_send(r, &answer, "GET", select_path(r, inv, "switches", NULL), NULL, err);

    if (code == 0)
        code = only_one(r, json_object_get(answer, "switches"), id, err);
    if (code == ERR_NOT_FOUND)
        code = err_set(err, code,
                       "the bucket has no switch; weir switch list shows those there "
                       "are");
    json_decref(answer);
    return code;
}

/* --- watching --- */

/* The row of people: what is not known says so. */
static void name_unknown(json_t *row)
{
    if (json_is_null(json_object_get(row, "uploads")))
        json_object_set_new(row, "uploads", json_string("unknown"));
}

/* Hours, minutes and seconds. */
static void append_left(struct buf *out, const json_t *row)
{
    long long s = (json_get_i64(row, "waits_left_ms", 0) + MS_PER_S - 1) / MS_PER_S;

    buf_appendf(out, "%lld:%02lld:%02lld", s / S_PER_HOUR, s / S_PER_MINUTE % 60, s % 60);
}

static bool waits_for_uploads(const json_t *row)
{
    return json_is_integer(json_object_get(row, "waits_left_ms")) &&
           json_get_i64(row, "uploads", 0) > 0;
}

static void append_uploads(struct buf *line, const json_t *row)
{
    const json_t *open = json_object_get(row, "uploads");

    if (json_is_integer(open))
        buf_appendf(line, "uploads %lld  ", (long long)json_integer_value(open));
    else
        buf_append_z(line, "uploads unknown  ");
    if (waits_for_uploads(row)) {
        buf_append_z(line, "waited for until ");
        buf_append_str(line, json_get_str(row, "waits_until", STR_EMPTY));
        buf_append_z(line, "  ");
    }
}

/* Whether it goes on by itself. */
static bool is_busy(const json_t *row)
{
    struct str state = json_get_str(row, "state", STR_EMPTY);

    if (str_eq(state, STR("error")) || str_eq(state, STR("skipped")))
        return json_get_str(row, "cron", STR_EMPTY).len > 0;
    return !str_eq(state, STR("done"));
}

static void show_line(const json_t *row, bool json, struct buf *last)
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
        append_uploads(&line, row);
        buf_append_str(&line, json_get_str(row, "last", STR_EMPTY));
    }
    if (!str_eq(buf_str(&line), buf_str(last))) {
        printf("%s\n", line.p);
        fflush(stdout);
    }
    buf_release(last);
    *last = line;
}

/* ERR_NOT_FOUND: it is gone. */
static int look(struct api_client *r, const char *path, json_t **out, struct err *err)
{
    struct client_response response = {0};

    arena_reset(&r->arena);
    int code = api_client_call(r, &response, path, NULL, err);
    if (code == 0 && response.status == 404)
        return ERR_NOT_FOUND;
    if (code == 0 && response.status / 100 != 2)
        code = api_client_error(r, &response, err);
    return code == 0 ? json_read(out, response.body, err) : code;
}

/* One that is gone has gone back, or was forgotten. */
static int watch(struct api_client *r, const struct invocation *inv, const char *id,
                 struct err *err)
{
    const struct timespec pause = {0, POLL_MS * (long)NS_PER_MS};
    char *path = str_dup(str_z(manage_path(r, "/api/v1/switches/", id, "")));
    struct buf last = {0};
    bool busy = true, failed = false;
    int code = 0;

    while (code == 0 && busy) {
        json_t *row = NULL;
        code = look(r, path, &row, err);
        if (code == 0) {
            json_object_del(row, "history");
            show_line(row, invocation_flag(inv, "json"), &last);
            busy = is_busy(row);
            failed = !str_eq(json_get_str(row, "state", STR_EMPTY), STR("done"));
        }
        json_decref(row);
        if (code == 0 && busy)
            nanosleep(&pause, NULL);
    }
    buf_release(&last);
    free(path);
    if (code == ERR_NOT_FOUND)
        return 0;
    return code == 0 && failed
               ? err_set(err, ERR_PEER, "it was not switched; weir switch show tells why")
               : code;
}

/* --- start and plan --- */

static int fill_duration(struct json_out *w, const struct invocation *inv, const char *flag,
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

static int fill(struct json_out *w, const struct invocation *inv, bool downtime, struct err *err)
{
    const char *lag = invocation_flag(inv, "max-event-lag");
    uint64_t number = 0;
    int code = fill_duration(w, inv, "multipart-ttl", "multipart_ttl_ms", err);

    if (code == 0)
        code = fill_duration(w, inv, "max-duration", "max_duration_ms", err);
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

static int make(struct api_client *r, const struct invocation *inv, struct output *table,
                bool downtime, struct err *err)
{
    const char *replication = NULL;
    struct buf body = {0};
    struct json_out w;
    json_t *made = NULL;
    int code = select_replication(r, inv, &replication, err);

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    if (code == 0)
        code = fill(&w, inv, downtime, err);
    if (code == 0)
        json_out_member_str(&w, "replication", str_z(replication));
    json_out_close(&w, '}');
    if (code == 0)
        code = api_client_send(r, &made, "POST", "/api/v1/switches", body.p, err);
    buf_release(&body);
    if (code == 0 && invocation_flag(inv, "watch"))
        code = watch(r, inv, arena_z(&r->arena, json_get_str(made, "id", STR_EMPTY)), err);
    else if (code == 0) {
        name_unknown(made);
        manage_row(table, made);
    }
    json_decref(made);
    return code;
}

static int run_start(struct api_client *r, const struct invocation *inv, struct output *table,
                     struct err *err)
{
    return make(r, inv, table, false, err);
}

static int run_plan(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    return make(r, inv, table, true, err);
}

/* --- list, show, abort --- */

static int run_list(struct api_client *r, const struct invocation *inv, struct output *table,
                    struct err *err)
{
    json_t *answer = NULL, *row;
    size_t i;
    int code = api_client_send(r, &answer, "GET", select_path(r, inv, "switches", NULL), NULL, err);

    if (code == 0)
        json_array_foreach(json_object_get(answer, "switches"), i, row) manage_row(table, row);
    json_decref(answer);
    return code;
}

/* Which uploads are open, how long they are waited for, and what ends that. */
static void print_uploads(const json_t *answer)
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
    if (waits_for_uploads(answer))
        printf("\nIt waits until their clients have completed or aborted them, until " STR_FMT
               " at most. weir switch set " STR_FMT " --multipart-ttl changes that; uploads that "
               "are open then are left, and their clients get 404 NoSuchUpload.\n",
               STR_ARG(json_get_str(answer, "waits_until", STR_EMPTY)),
               STR_ARG(json_get_str(answer, "bucket", STR_EMPTY)));
}

/* For the row of people. */
static void name_left(json_t *row)
{
    struct buf left = {0};

    if (waits_for_uploads(row))
        append_left(&left, row);
    json_object_set_new(row, "waits_left", json_string(left.len ? left.p : ""));
    buf_release(&left);
}

/* People get uploads and history on their own lines; JSON has them as members. */
static void print_show(json_t *answer, bool json)
{
    const json_t *line;
    struct output table;
    size_t i;

    if (json) {
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        return;
    }
    output_init(&table, show_columns, ARRAY_SIZE(show_columns));
    name_left(answer);
    name_unknown(answer);
    manage_row(&table, answer);
    output_print(&table, stdout);
    output_release(&table);
    print_uploads(answer);
    printf("\nhistory:\n");
    json_array_foreach(json_object_get(answer, "history"), i, line)
        printf("%s\n", json_string_value(line));
}

static int run_show(struct api_client *r, const struct invocation *inv, struct output *none,
                    struct err *err)
{
    const char *id = NULL;
    json_t *answer = NULL;
    int code = select_switch(r, inv, &id, err);

    (void)none;
    if (code == 0 && invocation_flag(inv, "watch"))
        return watch(r, inv, id, err);
    if (code == 0)
        code = api_client_send(r, &answer, "GET", manage_path(r, "/api/v1/switches/", id, ""), NULL,
                               err);
    if (code == 0)
        print_show(answer, invocation_flag(inv, "json"));
    json_decref(answer);
    return code;
}

static int run_set(struct api_client *r, const struct invocation *inv, struct output *none,
                   struct err *err)
{
    const char *id = NULL;
    struct buf body = {0};
    struct json_out w;
    int code = invocation_flag(inv, "multipart-ttl")
                   ? select_switch(r, inv, &id, err)
                   : err_set(err, ERR_INVALID, "say what to change: --multipart-ttl DURATION");

    (void)none;
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    if (code == 0)
        code = fill_duration(&w, inv, "multipart-ttl", "multipart_ttl_ms", err);
    json_out_close(&w, '}');
    if (code == 0)
        code = api_client_send(r, NULL, "PUT", manage_path(r, "/api/v1/switches/", id, ""), body.p,
                               err);
    buf_release(&body);
    return code;
}

static int run_abort(struct api_client *r, const struct invocation *inv, struct output *none,
                     struct err *err)
{
    const char *id = NULL;
    int code = select_switch(r, inv, &id, err);

    (void)none;
    if (code == 0)
        code = api_client_send(r, NULL, "DELETE", manage_path(r, "/api/v1/switches/", id, ""), NULL,
                               err);
    if (code == 0 && invocation_flag(inv, "watch"))
        code = watch(r, inv, id, err);
    return code;
}

/* What --watch prints is all there is. */
static int call(struct invocation *inv, const struct manage_call *shown,
                const struct manage_call *watched)
{
    return manage(inv, invocation_flag(inv, "watch") ? watched : shown);
}

static int command_switch_start(struct invocation *inv)
{
    static const struct manage_call shown = {MANAGE_COLUMNS(made_columns), .run = run_start};
    static const struct manage_call watched = {.run = run_start};

    return call(inv, &shown, &watched);
}

static int command_switch_plan(struct invocation *inv)
{
    static const struct manage_call shown = {MANAGE_COLUMNS(made_columns), .run = run_plan};
    static const struct manage_call watched = {.run = run_plan};

    return call(inv, &shown, &watched);
}

static int command_switch_list(struct invocation *inv)
{
    static const struct manage_call list = {MANAGE_COLUMNS(list_columns), .run = run_list};

    return manage(inv, &list);
}

static int command_switch_show(struct invocation *inv)
{
    static const struct manage_call show = {.run = run_show};

    return manage(inv, &show);
}

static int command_switch_set(struct invocation *inv)
{
    static const struct manage_call set = {.run = run_set};

    return manage(inv, &set);
}

static int command_switch_abort(struct invocation *inv)
{
    static const struct manage_call give_up = {.run = run_abort};

    return manage(inv, &give_up);
}

const struct command switch_commands[] = {
    {.name = "switch start",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_start_flags,
     .configured = true,
     .summary = "Switch a bucket to the storage that it is replicated to, without downtime",
     .help = "Clients go on all the time: what they write goes to the new storage, what they read "
             "comes from the one that has it, uploads that were begun are finished where they were "
             "begun and copied over. It is done when nothing is left to copy.\n\nThe bucket has "
             "one replication, under the same name, whose first copy is done. weir switch abort "
             "goes back at any time and loses nothing.",
     .examples = "weir switch start photos --watch\nweir switch start photos --continue "
                 "--multipart-ttl 6h",
     .run = command_switch_start},
    {.name = "switch plan",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_plan_flags,
     .configured = true,
     .summary = "Switch a bucket to the storage that it is replicated to, with downtime",
     .help =
         "When it begins the bucket is blocked for all clients (503), until every change has "
         "gone over and both buckets have been compared. If they differ, or it takes too long "
         "(--max-duration), everything is as before, and weir switch show tells why.\n\nWithout "
         "--start-at, --cron and --on-init-done it begins at once. A plan that has not begun, "
         "has failed or was skipped is changed by planning again. Uploads: open on the old side.",
     .examples = "weir switch plan photos --watch\nweir switch plan photos --cron \"0 3 * * 6\" "
                 "--max-duration 30m --max-event-lag 1000 --continue",
     .run = command_switch_plan},
    {.name = "switch list",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = switch_list_flags,
     .configured = true,
     .summary = "List the switches and where they are",
     .help =
         "States: not_started, in_progress, check_in_progress (both buckets are compared), done, "
         "error, skipped (not everything was there at its time), going_back (it was given up). "
         "Lag is how many changes have not gone over.",
     .examples = "weir switch list\nweir switch list --json",
     .run = command_switch_list},
    {.name = "switch show",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_select_flags,
     .configured = true,
     .summary = "Show a switch and its history",
     .help = "Shows the switch of a bucket, what it waits for, which uploads are open on the old "
             "storage, how long they are still waited for and what ends that, and its history.",
     .examples = "weir switch show photos\nweir switch show photos --watch",
     .run = command_switch_show},
    {.name = "switch set",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_set_flags,
     .configured = true,
     .summary = "Change how long a switch waits for uploads",
     .help = "Works at any time before the switch is done, also while it waits. Uploads that are "
             "open on the old storage when the time is over are left there: their clients get 404 "
             "NoSuchUpload and begin anew.",
     .examples = "weir switch set photos --multipart-ttl 10m\nweir switch set photos "
                 "--multipart-ttl 0s",
     .run = command_switch_set},
    {.name = "switch abort",
     .arguments = "BUCKET",
     .min_args = 1,
     .max_args = 1,
     .flags = switch_select_flags,
     .configured = true,
     .summary = "Give a switch up",
     .help =
         "Without downtime it goes back: clients use the old storage again, and what was written "
         "to the new one is copied there. With downtime the block is taken away. One that has "
         "not begun or has ended is forgotten, and nothing else happens.",
     .examples = "weir switch abort photos --watch",
     .run = command_switch_abort},
    {0},
};
