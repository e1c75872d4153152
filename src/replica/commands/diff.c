/* weir diff: comparisons of buckets by a running weir. */
#include "replica/room.h"
#include "base/clock.h"
#include "command/manage.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 500, ENTRIES_DEFAULT = 100, ENTRIES_PAGE = 1000 };

#define WATCH_FLAG                                                                                 \
    {                                                                                              \
        "watch", FLAG_SWITCH, NULL, NULL, "Show the progress until it is done; differences fail."  \
    }

static const struct flag diff_check_flags[] = {
    {"user", FLAG_TEXT, "NAME", NULL, "Whose buckets; default: the only user who has all of them."},
    {"ignore-etags", FLAG_SWITCH, NULL, NULL, "Compare names and sizes."},
    {"ignore-sizes", FLAG_SWITCH, NULL, NULL, "With --ignore-etags: compare names alone."},
    {"contents", FLAG_SWITCH, NULL, NULL, "Read and compare all bytes."},
    {"last-versions", FLAG_SWITCH, NULL, NULL, "Compare the current versions alone."},
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
    {"limit", FLAG_TEXT, "N", NULL, "Show so many differences; default: 100."},
    {"skip", FLAG_TEXT, "N", NULL, "Begin behind so many."},
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

/* Of one that is being compared: of how many, where that is known, and how fast. */
static void print_keys(const json_t *check, const char *state)
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

/* Whether anything has happened; the pace of one that stands still changes too. */
static bool is_news(json_t *shown, json_t *check)
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

static void print_progress(const json_t *check, bool json, bool again)
{
    const char *state = json_string_value(json_object_get(check, "state"));

    if (json) {
        json_dumpf(check, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (state && strcmp(state, "fixing") == 0) {
        printf("%sfixing: %jd of %jd done, %jd failed\n", again ? "\033[1A\033[2K" : "",
               (intmax_t)json_get_i64(check, "fix_done", 0),
               (intmax_t)json_get_i64(check, "fix_queued", 0),
               (intmax_t)json_get_i64(check, "fix_failed", 0));
    } else {
        fputs(again ? "\033[1A\033[2K" : "", stdout);
        print_keys(check, state ? state : "");
    }
    fflush(stdout);
}

static int judge(const json_t *check, struct err *err)
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

static bool at_work(const json_t *check)
{
    struct str state = json_get_str(check, "state", STR_EMPTY);

    return str_eq(state, STR("checking")) || str_eq(state, STR("fixing"));
}

/* Takes the check over. */
static int watch(struct api_client *r, const struct invocation *inv, json_t *check, struct err *err)
{
    const struct timespec pause = {0, POLL_MS * (long)NS_PER_MS};
    bool json = invocation_flag(inv, "json") != NULL, terminal = !json && isatty(STDOUT_FILENO);
    char *path = xstrdup(
        manage_path(r, "/api/v1/diffs/", json_string_value(json_object_get(check, "id")), ""));
    json_t *shown = NULL;
    int code = 0;

    for (;;) {
        if (is_news(shown, check))
            print_progress(check, json, terminal && shown);
        json_decref(shown);
        shown = check;
        check = NULL;
        if (!at_work(shown))
            break;
        nanosleep(&pause, NULL);
        arena_reset(&r->arena);
        code = api_client_send(r, &check, "GET", path, NULL, err);
        if (code < 0)
            break;
    }
    if (code == 0)
        code = judge(shown, err);
    json_decref(shown);
    free(path);
    return code;
}

/* The answer of a call that began something. */
static int show(struct api_client *r, const struct invocation *inv, struct output *table,
                json_t *check, struct err *err)
{
    if (invocation_flag(inv, "watch"))
        return watch(r, inv, check, err);
    manage_row(table, check);
    json_decref(check);
    return 0;
}

static int call(struct invocation *inv,
                int (*run)(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err))
{
    struct manage_call shown = {MANAGE_COLUMNS(list_columns), .run = run}, watched = {.run = run};

    return manage(inv, invocation_flag(inv, "watch") ? &watched : &shown);
}

/* --- check --- */

static void fill_check(struct json_out *w, const struct invocation *inv)
{
    static const struct {
        const char *flag, *name;
    } switches[] = {{"ignore-etags", "ignore_etags"},
                    {"ignore-sizes", "ignore_sizes"},
                    {"contents", "contents"},
                    {"last-versions", "last_versions_only"}};

    json_out_key(w, "locations");
    json_out_open(w, '[');
    for (size_t i = 0; i < inv->args.len; i++)
        json_out_str(w, str_z(inv->args.items[i]));
    json_out_close(w, ']');
    manage_flag(w, inv, "user", "user");
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
        json_out_member_bool(w, switches[i].name, invocation_flag(inv, switches[i].flag) != NULL);
}

static int run_check(struct api_client *r, const struct invocation *inv, struct output *table,
                     struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    json_t *check = NULL;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    fill_check(&w, inv);
    json_out_close(&w, '}');
    int code = api_client_send(r, &check, "POST", "/api/v1/diffs", body.p, err);
    buf_release(&body);
    return code < 0 ? code : show(r, inv, table, check, err);
}

static int command_diff_check(struct invocation *inv)
{
    return call(inv, run_check);
}

/* --- fix and recheck --- */

static int run_fix(struct api_client *r, const struct invocation *inv, struct output *table,
                   struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    json_t *check = NULL;

    if (!invocation_flag(inv, "source"))
        return err_set(err, ERR_INVALID, "--source STORAGE:BUCKET says which location is right");
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    manage_flag(&w, inv, "source", "source");
    json_out_close(&w, '}');
    int code =
        api_client_send(r, &check, "POST",
                        manage_path(r, "/api/v1/diffs/", inv->args.items[0], "/fix"), body.p, err);
    buf_release(&body);
    return code < 0 ? code : show(r, inv, table, check, err);
}

static int command_diff_fix(struct invocation *inv)
{
    return call(inv, run_fix);
}

static int run_recheck(struct api_client *r, const struct invocation *inv, struct output *table,
                       struct err *err)
{
    json_t *check = NULL;
    int code = api_client_send(r, &check, "POST",
                               manage_path(r, "/api/v1/diffs/", inv->args.items[0], "/restart"),
                               "{}", err);

    return code < 0 ? code : show(r, inv, table, check, err);
}

static int command_diff_recheck(struct invocation *inv)
{
    return call(inv, run_recheck);
}

/* --- report --- */

static void append_side(struct buf *out, const json_t *location, const json_t *side)
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

/* For people: what each location has, in one cell. */
static void describe(json_t *entry, const json_t *locations)
{
    const json_t *sides = json_object_get(entry, "sides"), *location;
    struct buf text = {0};
    size_t i;

    json_array_foreach(locations, i, location)
    {
        buf_append_z(&text, i ? "; " : "");
        append_side(&text, location, json_array_get(sides, i));
    }
    json_object_set_new(entry, "sides", json_string(text.p ? text.p : ""));
    buf_release(&text);
}

static int read_number(const struct invocation *inv, const char *name, uint64_t fallback,
                       uint64_t *out, struct err *err)
{
    const char *text = invocation_flag(inv, name);

    *out = fallback;
    if (text && str_u64(str_z(text), out) < 0)
        return err_set(err, ERR_INVALID, "--%s takes a number, not '%s'", name, text);
    return 0;
}

/* All that were asked for, page by page, into the list of `report`. */
static int add_entries(struct api_client *r, const struct invocation *inv, json_t *report,
                       struct err *err)
{
    json_t *all = json_array(), *page = NULL;
    uint64_t skip, limit;
    size_t got = 1;
    int code = read_number(inv, "skip", 0, &skip, err);

    if (code == 0)
        code = read_number(inv, "limit", ENTRIES_DEFAULT, &limit, err);
    while (code == 0 && got && limit) {
        uint64_t now = limit < ENTRIES_PAGE ? limit : ENTRIES_PAGE;
        struct buf tail = {0};
        buf_appendf(&tail, "/entries?skip=%ju&limit=%ju", (uintmax_t)skip, (uintmax_t)now);
        code = api_client_send(r, &page, "GET",
                               manage_path(r, "/api/v1/diffs/", inv->args.items[0], tail.p), NULL,
                               err);
        buf_release(&tail);
        got = code == 0 ? json_array_size(json_object_get(page, "entries")) : 0;
        if (got)
            json_array_extend(all, json_object_get(page, "entries"));
        json_decref(page);
        page = NULL;
        skip += got;
        limit -= got;
        if (got < now)
            break;
    }
    json_object_set_new(report, "entries", all);
    return code;
}

static void print_report(json_t *report)
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
        describe(entry, json_object_get(report, "locations"));
        manage_row(&table, entry);
    }
    output_print(&table, stdout);
    output_release(&table);
}

static int run_report(struct api_client *r, const struct invocation *inv, struct output *none,
                      struct err *err)
{
    json_t *report = NULL;
    int code = api_client_send(r, &report, "GET",
                               manage_path(r, "/api/v1/diffs/", inv->args.items[0], ""), NULL, err);

    (void)none;
    if (code == 0)
        code = add_entries(r, inv, report, err);
    if (code == 0 && invocation_flag(inv, "json")) {
        json_dumpf(report, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (code == 0) {
        print_report(report);
    }
    json_decref(report);
    return code;
}

static int command_diff_report(struct invocation *inv)
{
    static const struct manage_call report = {.run = run_report};

    return manage(inv, &report);
}

static int command_diff_list(struct invocation *inv)
{
    static const struct manage_call list = {
        .method = "GET", .path = "/api/v1/diffs", MANAGE_COLUMNS(list_columns), .rows = "diffs"};

    return manage(inv, &list);
}

static int command_diff_purge(struct invocation *inv)
{
    static const struct manage_call purge = {.method = "DELETE", .path = "/api/v1/diffs/{0}"};

    return manage(inv, &purge);
}

const struct command diff_commands[] = {
    {.name = "diff check",
     .arguments = "STORAGE:BUCKET STORAGE:BUCKET...",
     .min_args = 2,
     .max_args = 8,
     .flags = diff_check_flags,
     .configured = true,
     .summary = "Compare two or more buckets",
     .help =
         "Compares names, sizes and ETags, and of buckets that all keep versions every version. "
         "ETags of objects that were made of parts say nothing of each other: then checksums "
         "decide, or the bytes. Runs in the background; weir diff report shows what was found. "
         "The same locations are the same check.",
     .examples = "weir diff check local:photos disk2:photos --watch\nweir diff check local:photos "
                 "ceph:photos-copy --contents",
     .run = command_diff_check},
    {.name = "diff list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the checks and how far they are",
     .help = "States: checking, ready, fixing, failed.",
     .examples = "weir diff list",
     .run = command_diff_list},
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
     .run = command_diff_report},
    {.name = "diff fix",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_fix_flags,
     .configured = true,
     .summary = "Make all locations of a check equal to one of them",
     .help = "Copies what the others lack or have otherwise, and removes what only they have; each "
             "object is looked at again before. Then checks again.",
     .examples = "weir diff fix 5f0c1d2e3a4b5c6d --source local:photos --watch",
     .run = command_diff_fix},
    {.name = "diff recheck",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = diff_watch_flags,
     .configured = true,
     .summary = "Check again",
     .help = "Begins the check again from the beginning, whatever it is doing.",
     .examples = "weir diff recheck 5f0c1d2e3a4b5c6d --watch",
     .run = command_diff_recheck},
    {.name = "diff purge",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Forget a check",
     .help =
         "Removes the report; what is at work for it ends. Reports that nobody touches go after "
         "30 days by themselves.",
     .examples = "weir diff purge 5f0c1d2e3a4b5c6d",
     .run = command_diff_purge},
    {0},
};
