/* weir diff: lets a running weir compare buckets. */
#include "replica/room.h"
#include "command/manage.h"

#include <stdlib.h>
#include <unistd.h>

enum { ENTRIES_DEFAULT = 100, ENTRIES_PAGE = 1000 };

#define WATCH_FLAG                                                                                 \
    {                                                                                              \
        "watch", FLAG_SWITCH, NULL, NULL,                                                          \
            "Show the progress until it is done. The exit status is 1 when there are differences." \
    }

static const struct flag diff_check_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL,
     "The user whose buckets they are; default: the only user who has all of them."},
    {"ignore-etags", FLAG_SWITCH, NULL, NULL, "Compare names and sizes, not ETags."},
    {"ignore-sizes", FLAG_SWITCH, NULL, NULL, "With --ignore-etags: compare only names."},
    {"contents", FLAG_SWITCH, NULL, NULL, "Read and compare all bytes."},
    {"last-versions", FLAG_SWITCH, NULL, NULL, "Compare only the current versions."},
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag diff_watch_flags[] = {WATCH_FLAG, CLIENT_FLAGS, {0}};
static const struct flag diff_fix_flags[] = {
    {"source", FLAG_TEXT, "STORAGE:BUCKET", NULL, "The location that is right; it is not changed."},
    WATCH_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag diff_report_flags[] = {
    {"limit", FLAG_TEXT, "N", NULL, "Show at most N differences; default: 100."},
    {"skip", FLAG_TEXT, "N", NULL, "Leave out the first N differences."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column list_columns[] = {
    {"id"},
    {"user"},
    {"locations"},
    {"state"},
    {"keys", .number = true},
    {"differences", .number = true},
    {"consistent"},
    {"done"},
    {"fix_queued", .number = true},
    {"fix_done", .number = true},
    {"fix_failed", .number = true},
    {"error"},
};

static const struct output_column entry_columns[] = {
    {"object"}, {"version_index", .number = true}, {"kind"}, {"sides"}, {"why"}};

/* --- watching --- */

/* Prints how many keys were compared. While the comparison runs, it also prints the total, if that
 * is known, and the keys per second. */
static void diff_print_keys(const json_t *check, const char *state)
{
    int64_t total = json_get_i64(check, "total", 0), left = json_get_i64(check, "left_s", -1);
    bool goes_on = strcmp(state, "checking") == 0;
    struct buf text = {0};

    buf_appendf(&text, "%s: %jd", state, (intmax_t)json_get_i64(check, "keys", 0));
    if (goes_on && total)
        buf_appendf(&text, " of %jd", (intmax_t)total);
    buf_append_z(&text, " keys");
    if (goes_on)
        buf_appendf(&text, " (%.0f/s)", json_number_value(json_object_get(check, "keys_per_s")));
    buf_appendf(&text, ", %jd differences", (intmax_t)json_get_i64(check, "differences", 0));
    if (goes_on && left > 0) {
        buf_append_z(&text, ", ready ");
        manage_span(&text, left);
    }
    printf("%s\n", text.p);
    buf_release(&text);
}

/* Returns whether anything has changed since `shown` was printed. The speed and the time left are
 * ignored, because they also change while nothing happens. */
static bool diff_is_news(json_t *shown, json_t *check)
{
    static const char *const pace[] = {"keys_per_s", "left_s"};
    json_t *before = shown ? json_copy(shown) : NULL, *now = json_copy(check);

    for (size_t i = 0; i < ARRAY_SIZE(pace); i++) {
        json_object_del(before, pace[i]);
        json_object_del(now, pace[i]);
    }
    bool news = !before || !json_equal(before, now);
    json_decref(before);
    json_decref(now);
    return news;
}

static void diff_print_progress(const json_t *check, bool json, bool again)
{
    const char *state = json_string_value(json_object_get(check, "state"));

    if (json) {
        manage_print_json(check);
    } else if (state && strcmp(state, "fixing") == 0) {
        printf("%sfixing: %jd of %jd done, %jd failed\n", again ? "\033[1A\033[2K" : "",
               (intmax_t)json_get_i64(check, "fix_done", 0),
               (intmax_t)json_get_i64(check, "fix_queued", 0),
               (intmax_t)json_get_i64(check, "fix_failed", 0));
    } else {
        fputs(again ? "\033[1A\033[2K" : "", stdout);
        diff_print_keys(check, state ? state : "");
    }
    fflush(stdout);
}

static int diff_judge(const json_t *check, struct err *err)
{
    struct str state = json_get_str(check, "state", STR_EMPTY);
    int64_t failed = json_get_i64(check, "fix_failed", 0);
    int64_t differences = json_get_i64(check, "differences", 0);

    if (str_eq(state, STR("failed")))
        return err_set(err, ERR_PEER, STR_FMT, STR_ARG(json_get_str(check, "error", STR_EMPTY)));
    if (differences)
        return err_set(err, ERR_PEER, "%jd differences%s; weir diff report " STR_FMT " shows them",
                       (intmax_t)differences, failed ? " (some could not be fixed)" : "",
                       STR_ARG(json_get_str(check, "id", STR_EMPTY)));
    return 0;
}

static bool diff_at_work(const json_t *check)
{
    struct str state = json_get_str(check, "state", STR_EMPTY);

    return str_eq(state, STR("checking")) || str_eq(state, STR("fixing"));
}

/* Shows the comparison's progress until it ends. Takes over the caller's reference to `check`. */
static int diff_watch(struct api_client *r, const struct invocation *inv, json_t *check,
                      struct err *err)
{
    bool json = invocation_flag(inv, "json") != NULL, terminal = !json && isatty(STDOUT_FILENO);
    char *path = xstrdup(
        manage_path(r, "/api/v1/diffs/", json_string_value(json_object_get(check, "id")), ""));
    json_t *shown = NULL;
    int code = 0;

    for (;;) {
        if (diff_is_news(shown, check))
            diff_print_progress(check, json, terminal && shown);
        json_decref(shown);
        shown = check;
        check = NULL;
        if (!diff_at_work(shown))
            break;
        manage_poll_wait();
        arena_reset(&r->arena);
        code = api_client_send(r, "GET", path, NULL, &check, err);
        if (code < 0)
            break;
    }
    if (code == 0)
        code = diff_judge(shown, err);
    json_decref(shown);
    free(path);
    return code;
}

/* Makes the call, which begins a comparison or a fix. Then shows the answer, or the progress if the
 * flags ask for it. */
static int diff_begin(struct api_client *r, const struct invocation *inv, struct output *table,
                      const struct manage_call *call, struct err *err)
{
    json_t *check = NULL;
    int code = manage_send(r, inv, call, &check, err);

    if (code < 0)
        return code;
    if (invocation_flag(inv, "watch"))
        return diff_watch(r, inv, check, err);
    manage_row(table, check);
    json_decref(check);
    return 0;
}

/* --- check --- */

static int diff_fill_check(struct json_out *w, const struct invocation *inv, struct err *err)
{
    static const struct {
        const char *flag, *name;
    } switches[] = {{"ignore-etags", "ignore_etags"},
                    {"ignore-sizes", "ignore_sizes"},
                    {"contents", "contents"},
                    {"last-versions", "last_versions_only"}};

    (void)err;
    json_out_key(w, "locations");
    json_out_open(w, '[');
    for (size_t i = 0; i < inv->args.len; i++)
        json_out_str(w, str_z(inv->args.items[i]));
    json_out_close(w, ']');
    manage_flag(w, inv, "user", "user");
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
        json_out_member_bool(w, switches[i].name, invocation_flag(inv, switches[i].flag) != NULL);
    return 0;
}

static int diff_check_run(struct api_client *r, const struct invocation *inv, struct output *table,
                          struct err *err)
{
    static const struct manage_call call = {"POST", "/api/v1/diffs", .fill = diff_fill_check};

    return diff_begin(r, inv, table, &call, err);
}

/* --- fix and recheck --- */

static int diff_fill_fix(struct json_out *w, const struct invocation *inv, struct err *err)
{
    if (!invocation_flag(inv, "source"))
        return err_set(err, ERR_INVALID, "say which location is right: --source STORAGE:BUCKET");
    manage_flag(w, inv, "source", "source");
    return 0;
}

static int diff_fix_run(struct api_client *r, const struct invocation *inv, struct output *table,
                        struct err *err)
{
    static const struct manage_call call = {"POST", "/api/v1/diffs/{0}/fix", .fill = diff_fill_fix};

    return diff_begin(r, inv, table, &call, err);
}

static int diff_recheck_run(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    static const struct manage_call call = {"POST", "/api/v1/diffs/{0}/restart"};

    return diff_begin(r, inv, table, &call, err);
}

/* --- report --- */

static void diff_append_side(struct buf *out, const json_t *location, const json_t *side)
{
    buf_appendf(out, "%s ", json_string_value(location));
    if (!json_is_object(side))
        buf_append_z(out, "-");
    else if (json_get_bool(side, "marker", false))
        buf_append_z(out, "deleted");
    else
        buf_appendf(out, "%jd " STR_FMT, (intmax_t)json_get_i64(side, "size", 0),
                    STR_ARG(json_get_str(side, "etag", STR_EMPTY)));
}

/* Adds the member "sides" to the entry: a text for people that says what each location has. */
static void diff_describe(json_t *entry, const json_t *locations)
{
    const json_t *sides = json_object_get(entry, "sides"), *location;
    struct buf text = {0};
    size_t i;

    json_array_foreach(locations, i, location)
    {
        buf_append_z(&text, i ? "; " : "");
        diff_append_side(&text, location, json_array_get(sides, i));
    }
    json_object_set_new(entry, "sides", json_string(text.p ? text.p : ""));
    buf_release(&text);
}

static int diff_read_number(const struct invocation *inv, const char *name, uint64_t fallback,
                            uint64_t *out, struct err *err)
{
    const char *text = invocation_flag(inv, name);

    *out = fallback;
    if (text && str_u64(str_z(text), out) < 0)
        return err_set(err, ERR_INVALID, "--%s takes a number, not '%s'", name, text);
    return 0;
}

/* Reads the differences that the flags ask for, and adds them to `report` as a member. */
static int diff_add_entries(struct api_client *r, const struct invocation *inv, json_t *report,
                            struct err *err)
{
    const char *skip = invocation_flag(inv, "skip"), *tail;
    json_t *all = NULL;
    uint64_t ignored, limit;
    int code = diff_read_number(inv, "skip", 0, &ignored, err);

    if (code == 0)
        code = diff_read_number(inv, "limit", ENTRIES_DEFAULT, &limit, err);
    if (code < 0)
        return code;
    tail = limit && limit < ENTRIES_PAGE
               ? arena_fmt(&r->arena, "/entries?limit=%ju", (uintmax_t)limit).p
               : "/entries?limit=1000";
    struct manage_list list = {.path = manage_path(r, "/api/v1/diffs/", inv->args.items[0], tail),
                               .name = "entries",
                               .after = skip, /* number of entries to leave out, not a key */
                               .max = limit};
    code = limit ? manage_pages(r, &list, &all, err) : 0;
    json_object_set_new(report, "entries", all ? all : json_array());
    return code;
}

static void diff_print_report(json_t *report)
{
    const json_t *entries = json_object_get(report, "entries");
    struct output table;
    json_t *entry;
    size_t i;

    output_init(&table, list_columns, ARRAY_SIZE(list_columns));
    manage_row(&table, report);
    output_print(&table, stdout);
    output_release(&table);
    if (!json_array_size(entries))
        return;
    putchar('\n');
    output_init(&table, entry_columns, ARRAY_SIZE(entry_columns));
    json_array_foreach(entries, i, entry)
    {
        diff_describe(entry, json_object_get(report, "locations"));
        manage_row(&table, entry);
    }
    output_print(&table, stdout);
    output_release(&table);
}

static int diff_report_run(struct api_client *r, const struct invocation *inv, struct output *none,
                           struct err *err)
{
    json_t *report = NULL;
    int code = api_client_send(r, "GET", manage_path(r, "/api/v1/diffs/", inv->args.items[0], ""),
                               NULL, &report, err);

    (void)none;
    if (code == 0)
        code = diff_add_entries(r, inv, report, err);
    if (code == 0 && invocation_flag(inv, "json")) {
        manage_print_json(report);
    } else if (code == 0) {
        diff_print_report(report);
    }
    json_decref(report);
    return code;
}

static const struct manage_call diff_check_call = {MANAGE_COLUMNS(list_columns),
                                                   .run = diff_check_run};
static const struct manage_call diff_fix_call = {MANAGE_COLUMNS(list_columns), .run = diff_fix_run};
static const struct manage_call diff_recheck_call = {MANAGE_COLUMNS(list_columns),
                                                     .run = diff_recheck_run};
static const struct manage_call diff_report_call = {.run = diff_report_run};
static const struct manage_call diff_list_call = {.method = "GET",
                                                  .path = "/api/v1/diffs",
                                                  MANAGE_COLUMNS(list_columns),
                                                  .rows = "diffs",
                                                  .pages = true};
static const struct manage_call diff_purge_call = {.method = "DELETE", .path = "/api/v1/diffs/{0}"};

const struct command diff_commands[] = {
    {.name = "diff check",
     .arguments = "STORAGE:BUCKET STORAGE:BUCKET...",
     .min_args = 2,
     .max_args = 8,
     .flags = diff_check_flags,
     .configured = true,
     .summary = "Compare two or more buckets",
     .help =
         "Compares the names, sizes and ETags of objects; where all buckets keep versions, it "
         "compares every version. "
         "ETags of objects that were uploaded in parts cannot be compared: then checksums decide, "
         "or the bytes. The check runs in the background; weir diff report shows what it found. "
         "A second check of the same locations replaces the first one, and is refused while the "
         "first one runs.",
     .examples = "weir diff check local:photos disk2:photos --watch\nweir diff check local:photos "
                 "ceph:photos-copy --contents",
     .call = &diff_check_call},
    {.name = "diff list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the checks and how far they are",
     .help = "Lists the checks. The states are checking, ready, fixing and failed.",
     .examples = "weir diff list",
     .call = &diff_list_call},
    {.name = "diff report",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_report_flags,
     .configured = true,
     .summary = "Show what a check has found",
     .help =
         "Shows the check and its differences: missing (not at every location), marker (deleted "
         "here, not there), size, etag, content, unknown (with the reason). The first 10,000 "
         "are kept, all are counted.",
     .examples = "weir diff report 5f0c1d2e3a4b5c6d\nweir diff report 5f0c1d2e3a4b5c6d --skip 100 "
                 "--json",
     .call = &diff_report_call},
    {.name = "diff fix",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_fix_flags,
     .configured = true,
     .summary = "Make all locations of a check equal to one of them",
     .help =
         "Copies the objects that the other locations lack or have in another form, and removes "
         "those that only the others have. Each object is compared again before it is changed. "
         "Then the check runs again.",
     .examples = "weir diff fix 5f0c1d2e3a4b5c6d --source local:photos --watch",
     .call = &diff_fix_call},
    {.name = "diff recheck",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_watch_flags,
     .configured = true,
     .summary = "Check again",
     .help = "Starts the check from the beginning, whatever it is doing.",
     .examples = "weir diff recheck 5f0c1d2e3a4b5c6d --watch",
     .call = &diff_recheck_call},
    {.name = "diff purge",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Forget a check",
     .help = "Removes the report and ends its work. A report that nobody has used for 30 days is "
             "removed by itself.",
     .examples = "weir diff purge 5f0c1d2e3a4b5c6d",
     .call = &diff_purge_call},
    {0},
};
