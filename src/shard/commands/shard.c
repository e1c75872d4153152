/* `weir shard`: shows and changes the sharded buckets of a running weir. */
#include "shard/room.h"

#include "command/manage.h"

#include <stdlib.h>

#define STORAGE_FLAG                                                                               \
    {                                                                                              \
        "storage", FLAG_TEXT, "NAME", NULL,                                                        \
            "The storage that has the bucket; default: the only local storage that does."          \
    }

#define SPEED_FLAG                                                                                 \
    {                                                                                              \
        "full-speed", FLAG_SWITCH, NULL, NULL,                                                     \
            "Work without pauses, at the expense of clients; default: for an eighth of the time."  \
    }

static const struct flag shard_flags[] = {STORAGE_FLAG, CLIENT_FLAGS, {0}};
static const struct flag shard_disable_flags[] = {SPEED_FLAG, STORAGE_FLAG, CLIENT_FLAGS, {0}};
static const struct flag shard_enable_flags[] = {
    {"threshold", FLAG_TEXT, "N", NULL,
     "Objects of a shard beyond which it is split, at least 10; default: shard.threshold."},
    STORAGE_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag shard_move_flags[] = {
    {"at", FLAG_TEXT, "KEY", NULL,
     "The boundary: the last key of the lower part; default: weir chooses it."},
    SPEED_FLAG,
    STORAGE_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag shard_verify_flags[] = {
    {"clean", FLAG_SWITCH, NULL, NULL, "Remove garbage first."},
    STORAGE_FLAG,
    CLIENT_FLAGS,
    {0},
};
static const struct flag shard_rebuild_flags[] = {
    {"from-contents", FLAG_SWITCH, NULL, NULL,
     "Make a map from the keys in the shards; the map bucket must be destroyed."},
    {"newest", FLAG_SWITCH, NULL, NULL,
     "With --from-contents: a key that two shards have belongs to the one with the newer version."},
    {"remove", FLAG_SWITCH, NULL, NULL,
     "Remove the map and the shards, with the keys in them, of a bucket that itself does not exist "
     "any more."},
    {"take-over", FLAG_SWITCH, NULL, NULL,
     "Take over a bucket whose map another installation of weir has written; none but this one may "
     "use the storage any more."},
    STORAGE_FLAG,
    CLIENT_FLAGS,
    {0},
};

static const struct output_column shard_list_columns[] = {{"bucket"},
                                                          {"storage"},
                                                          {"state"},
                                                          {"shard_count", .number = true},
                                                          {"segment_count", .number = true},
                                                          {"objects", .number = true},
                                                          {"bytes", .number = true},
                                                          {"threshold", .number = true},
                                                          {"moving"},
                                                          {"error"}};
static const struct output_column segment_columns[] = {
    {"shard", .number = true}, {"bucket"}, {"after"}, {"upto"}};
static const struct output_column place_columns[] = {
    {"shard", .number = true},    {"bucket"},
    {"segments", .number = true}, {"objects", .number = true},
    {"bytes", .number = true},    {"old_versions", .number = true},
    {"unclean", .number = true}};
static const struct output_column finding_columns[] = {
    {"finding"}, {"shard"}, {"keys", .number = true}, {"key"}, {"known"}, {"text"}};

/* --- printing --- */

static void print_rows(const json_t *answer, const char *member,
                       const struct output_column *columns, size_t count)
{
    const json_t *row;
    struct output table;
    size_t i;

    output_init(&table, columns, count);
    json_array_foreach(json_object_get(answer, member), i, row) manage_row(&table, row);
    output_print(&table, stdout);
    output_release(&table);
}

static void print_move(const json_t *move)
{
    struct buf left = BUF_INIT(0);

    if (json_is_integer(json_object_get(move, "seconds_left")))
        manage_span(&left, json_get_i64(move, "seconds_left", 0));
    printf("\n" STR_FMT " (" STR_FMT "): from shard %jd to shard %jd, %jd of %jd keys moved, "
           "%jd keys/s"
           "%s" STR_FMT "\n",
           STR_ARG(json_get_str(move, "kind", STR_EMPTY)),
           STR_ARG(json_get_str(move, "phase", STR_EMPTY)), (intmax_t)json_get_i64(move, "from", 0),
           (intmax_t)json_get_i64(move, "to", 0), (intmax_t)json_get_i64(move, "keys_moved", 0),
           (intmax_t)json_get_i64(move, "keys", 0),
           (intmax_t)json_get_i64(move, "keys_per_second", 0), left.len ? ", done " : "",
           STR_ARG(buf_str(&left)));
    if (json_get_str(move, "waits", STR_EMPTY).len)
        printf("It waits: " STR_FMT "\n", STR_ARG(json_get_str(move, "waits", STR_EMPTY)));
    buf_release(&left);
}

static void print_last(const json_t *last)
{
    printf("\nThe last " STR_FMT " ended %s" STR_FMT ": %jd keys in %jd s\n",
           STR_ARG(json_get_str(last, "kind", STR_EMPTY)),
           json_is_true(json_object_get(last, "whole")) ? "" : "early ",
           STR_ARG(json_get_str(last, "ended", STR_EMPTY)),
           (intmax_t)json_get_i64(last, "keys_moved", 0),
           (intmax_t)json_get_i64(last, "seconds", 0));
}

/* Prints one bucket for people. */
static void print_bucket(const json_t *answer)
{
    struct str why = json_get_str(answer, "why", STR_EMPTY);
    struct str error = json_get_str(answer, "last_error", STR_EMPTY);
    struct output table;

    output_init(&table, shard_list_columns, ARRAY_SIZE(shard_list_columns));
    manage_row(&table, answer);
    output_print(&table, stdout);
    output_release(&table);
    printf("\n");
    print_rows(answer, "segments", segment_columns, ARRAY_SIZE(segment_columns));
    printf("\n");
    print_rows(answer, "shards", place_columns, ARRAY_SIZE(place_columns));
    if (json_is_object(json_object_get(answer, "move")))
        print_move(json_object_get(answer, "move"));
    else if (json_is_object(json_object_get(answer, "last_move")))
        print_last(json_object_get(answer, "last_move"));
    if (why.len)
        printf("\nIt is not split: " STR_FMT "\n", STR_ARG(why));
    if (error.len)
        printf("\nThe last move failed (" STR_FMT "): " STR_FMT "\n",
               STR_ARG(json_get_str(answer, "last_error_at", STR_EMPTY)), STR_ARG(error));
}

/* --- calling --- */

/* Makes a call without a body; the storage is in its query. */
static int send_by_query(struct api_client *r, const struct invocation *inv, const char *method,
                         json_t **out, struct err *err)
{
    struct buf path = BUF_INIT(0);

    buf_append_z(&path, "/api/v1/shards/{0}");
    manage_query(&path, "storage", invocation_flag(inv, "storage"));
    if (strcmp(method, "DELETE") == 0)
        manage_query(&path, "full_speed", invocation_flag(inv, "full-speed") ? "true" : NULL);
    struct manage_call call = {method, path.p};
    int code = manage_send(r, inv, &call, out, err);
    buf_release(&path);
    return code;
}

/* Prints the answer of a call, and releases it. Returns `code`, which is that of the call. */
static int show_answer(const struct invocation *inv, int code, json_t *answer)
{
    if (code == 0 && invocation_flag(inv, "json"))
        manage_print_json(answer);
    else if (code == 0)
        print_bucket(answer);
    json_decref(answer);
    return code;
}

static int shard_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    manage_flag(w, inv, "storage", "storage");
    return 0;
}

static int shard_fill_verify(struct json_out *w, const struct invocation *inv, struct err *err)
{
    json_out_member_bool(w, "clean", invocation_flag(inv, "clean") != NULL);
    return shard_fill(w, inv, err);
}

static int shard_fill_at(struct json_out *w, const struct invocation *inv, struct err *err)
{
    manage_flag(w, inv, "at", "at");
    json_out_member_bool(w, "full_speed", invocation_flag(inv, "full-speed"));
    return shard_fill(w, inv, err);
}

static int shard_fill_enable(struct json_out *w, const struct invocation *inv, struct err *err)
{
    const char *text = invocation_flag(inv, "threshold");
    uint64_t threshold = 0;

    if (text && (str_u64(str_z(text), &threshold) < 0 || threshold < SHARD_THRESHOLD_MIN))
        return err_set(err, ERR_INVALID, "--threshold is a number of objects, at least %d",
                       SHARD_THRESHOLD_MIN);
    json_out_member_str(w, "bucket", str_z(inv->args.items[0]));
    if (text)
        json_out_member_u64(w, "threshold", threshold);
    return shard_fill(w, inv, err);
}

static int shard_fill_rebuild(struct json_out *w, const struct invocation *inv, struct err *err)
{
    bool contents = invocation_flag(inv, "from-contents"), newest = invocation_flag(inv, "newest");
    bool remove = invocation_flag(inv, "remove"), take = invocation_flag(inv, "take-over");

    if (contents + remove + take > 1)
        return err_set(err, ERR_INVALID,
                       "--from-contents, --remove and --take-over exclude each other");
    if (newest && !contents)
        return err_set(err, ERR_INVALID, "--newest needs --from-contents");
    json_out_member_bool(w, "from_contents", contents);
    json_out_member_bool(w, "newest", newest);
    json_out_member_bool(w, "remove", remove);
    json_out_member_bool(w, "take_over", take);
    return shard_fill(w, inv, err);
}

static int shard_run_status(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    struct manage_list list = {.path = "/api/v1/shards", .name = "buckets"};
    json_t *answer = NULL, *row;
    size_t i;
    int code;

    if (inv->args.len) {
        code = send_by_query(r, inv, "GET", &answer, err);
        return show_answer(inv, code, answer);
    }
    code = manage_pages(r, &list, &answer, err);
    if (code == 0 && invocation_flag(inv, "json"))
        manage_print_json(answer);
    else if (code == 0) {
        struct output all;
        output_init(&all, shard_list_columns, ARRAY_SIZE(shard_list_columns));
        json_array_foreach(answer, i, row) manage_row(&all, row);
        output_print(&all, stdout);
        output_release(&all);
    }
    (void)table;
    json_decref(answer);
    return code;
}

static int shard_run_disable(struct api_client *r, const struct invocation *inv,
                             struct output *table, struct err *err)
{
    json_t *answer = NULL;
    int code = send_by_query(r, inv, "DELETE", &answer, err);

    (void)table;
    return show_answer(inv, code, answer);
}

static int shard_run_post(struct api_client *r, const struct invocation *inv,
                          const struct manage_call *call, struct err *err)
{
    json_t *answer = NULL;
    int code = manage_send(r, inv, call, &answer, err);

    return show_answer(inv, code, answer);
}

#define SHARD_POST(name, call_path, call_fill)                                                     \
    static int shard_run_##name(struct api_client *r, const struct invocation *inv,                \
                                struct output *table, struct err *err)                             \
    {                                                                                              \
        static const struct manage_call call = {"POST", call_path, .fill = call_fill};             \
                                                                                                   \
        (void)table;                                                                               \
        return shard_run_post(r, inv, &call, err);                                                 \
    }

SHARD_POST(enable, "/api/v1/shards", shard_fill_enable)
SHARD_POST(split, "/api/v1/shards/{0}/split", shard_fill_at)
SHARD_POST(merge, "/api/v1/shards/{0}/merge", shard_fill_at)
SHARD_POST(cancel, "/api/v1/shards/{0}/cancel", shard_fill)

static int shard_judge_findings(const json_t *answer, struct err *err)
{
    size_t count = json_array_size(json_object_get(answer, "findings"));

    return count ? err_set(err, ERR_CORRUPT, "%zu findings", count) : 0;
}

static const struct output_column rebuild_columns[] = {{"bucket"},
                                                       {"map", .number = true},
                                                       {"shard_count", .number = true},
                                                       {"segment_count", .number = true},
                                                       {"keys", .number = true},
                                                       {"twice", .number = true}};

static const struct manage_call shard_enable_call = {.run = shard_run_enable};
static const struct manage_call shard_disable_call = {.run = shard_run_disable};
static const struct manage_call shard_status_call = {.run = shard_run_status};
static const struct manage_call shard_split_call = {.run = shard_run_split};
static const struct manage_call shard_merge_call = {.run = shard_run_merge};
static const struct manage_call shard_cancel_call = {.run = shard_run_cancel};
static const struct manage_call shard_verify_call = {"POST",
                                                     "/api/v1/shards/{0}/verify",
                                                     MANAGE_COLUMNS(finding_columns),
                                                     .rows = "findings",
                                                     .fill = shard_fill_verify,
                                                     .judge = shard_judge_findings};
static const struct manage_call shard_rebuild_call = {"POST", "/api/v1/shards/{0}/rebuild",
                                                      MANAGE_COLUMNS(rebuild_columns),
                                                      .fill = shard_fill_rebuild};

#define SHARD_BUCKET .arguments = "BUCKET", .min_args = 1, .max_args = 1, .configured = true

const struct command shard_commands[] = {
    {.name = "shard enable",
     SHARD_BUCKET,
     .flags = shard_enable_flags,
     .summary = "Let a bucket be split when it grows too large",
     .help =
         "Makes a bucket on a local storage a sharded one. Its objects stay where they are. When "
         "a shard has more objects than the threshold, the upper half of its keys moves to a new "
         "bucket, which clients cannot see: to them it stays one bucket. Requests that are under "
         "way at this moment may get 503 once.\n\n"
         "On a bucket that is sharded already the command sets the threshold if --threshold is "
         "given. Objects are the newest versions; old versions and delete markers do not count.",
     .examples = "weir shard enable photos\nweir shard enable photos --threshold 1000000",
     .call = &shard_enable_call},
    {.name = "shard disable",
     SHARD_BUCKET,
     .flags = shard_disable_flags,
     .summary = "Make a sharded bucket a plain one again",
     .help = "Begins to move all objects back to the bucket itself, and removes its shards and its "
             "map. Clients notice nothing. `weir shard status` shows how far it is.",
     .examples = "weir shard disable photos",
     .call = &shard_disable_call},
    {.name = "shard status",
     .arguments = "[BUCKET]",
     .max_args = 1,
     .flags = shard_flags,
     .configured = true,
     .summary = "Show sharded buckets",
     .help =
         "Shows a bucket's segments, its shards with what they hold, the move that is under way, "
         "and why the bucket is not split. Without a BUCKET it lists all sharded buckets.",
     .examples = "weir shard status\nweir shard status photos --json",
     .call = &shard_status_call},
    {.name = "shard split",
     SHARD_BUCKET,
     .flags = shard_move_flags,
     .summary = "Split a shard now",
     .help = "Begins to move the keys above the boundary, up to the end of their segment, to a new "
             "shard. Without --at the boundary is the median of the greatest segment.",
     .examples = "weir shard split photos\nweir shard split photos --at 2024/",
     .call = &shard_split_call},
    {.name = "shard merge",
     SHARD_BUCKET,
     .flags = shard_move_flags,
     .summary = "Merge two neighbours now",
     .help =
         "Begins to move the keys of one segment to the shard of its neighbour. Without --at it "
         "merges the two neighbours that have the fewest keys.",
     .examples = "weir shard merge photos --at 2024/",
     .call = &shard_merge_call},
    {.name = "shard cancel",
     SHARD_BUCKET,
     .flags = shard_flags,
     .summary = "End the move that is under way",
     .help = "What was moved stays where it is, and the map is whole.",
     .examples = "weir shard cancel photos",
     .call = &shard_cancel_call},
    {.name = "shard verify",
     SHARD_BUCKET,
     .flags = shard_verify_flags,
     .summary = "Compare a bucket's map with its shards",
     .help =
         "Looks for shards that are missing, for buckets that no map names, and for keys that lie "
         "in a shard which does not own them (garbage). Garbage that the map knows of is removed "
         "by itself. The exit status is 1 when there is anything else.",
     .examples = "weir shard verify photos",
     .call = &shard_verify_call},
    {.name = "shard rebuild",
     SHARD_BUCKET,
     .flags = shard_rebuild_flags,
     .summary = "Read a bucket's map anew, or make one from its shards",
     .help =
         "Reads the log of maps anew. When the map bucket was destroyed, requests to the bucket "
         "fail; --from-contents then makes a map from the keys that are in the shards. A key in "
         "two shards is named, and nothing is done, unless --newest decides.\n\n"
         "When the bucket itself was removed by something other than weir, its name cannot be used "
         "until --remove has removed its map and its shards, with all keys that are in them.\n\n"
         "A bucket on a storage that was copied from another installation of weir is not served "
         "until --take-over says that none but this one uses the storage.",
     .examples = "weir shard rebuild photos --from-contents",
     .call = &shard_rebuild_call},
    {0},
};
