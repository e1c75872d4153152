/* Diffs: checks of buckets, their reports and fixes (docs/diff.md). */
#include "room/owners.h"
#include "object/overlay.h"
#include "replica/rest/rest.h"
#include "base/clock.h"
#include "coord/check.h"
#include "object/bucket.h"
#include "replica/tap/tap.h"
#include "route/route.h"

enum { ENTRIES_USUAL = 100, ENTRIES_MAX = 1000 };

static rest_fn diff_list, diff_start, diff_show, diff_entries, diff_fix, diff_restart, diff_remove;

static const struct rest_field diff_path[] = {{"id", "The diff's id."}, {0}};

static const struct rest_field diff_fields[] = {
    {"id", "The diff's id."},
    {"user", "The user's name; empty: the user was removed."},
    {"locations", "What is compared: STORAGE:BUCKET each.", REST_STRINGS},
    {"state", "Where the diff is."},
    {"consistent", "Is it ready, and has found no difference?", REST_BOOLEAN},
    {"versioned", "Are all versions compared, since all buckets keep versions?", REST_BOOLEAN},
    {"ignore_sizes", "Do sizes not matter?", REST_BOOLEAN},
    {"ignore_etags", "Do ETags not matter?", REST_BOOLEAN},
    {"contents", "Are bodies read and compared?", REST_BOOLEAN},
    {"last_versions_only", "Are only the latest versions compared?", REST_BOOLEAN},
    {"created", "When it was first asked for.", REST_TIME},
    {"started", "When the comparison began.", REST_TIME},
    {"done", "When it ended.", REST_TIME},
    {"keys", "Keys that were compared so far.", REST_INTEGER},
    {"total", "Keys to compare, as far as it is known; 0: not known.", REST_INTEGER},
    {"keys_per_s", "Keys compared a second, from the beginning on.", REST_NUMBER},
    {"left_s", "Seconds until it is done; null: not known, or it does not compare now.",
     REST_INTEGER, .nullable = true},
    {"differences", "Keys that differ.", REST_INTEGER},
    {"kept", "Differences that are kept and can be shown.", REST_INTEGER},
    {"bytes", "Bytes of bodies that were read.", REST_INTEGER},
    {"error", "Why it failed; empty: it did not."},
    {"source", "The location that the others were last made equal to; empty: none."},
    {"fix_queued", "Keys to be fixed.", REST_INTEGER},
    {"fix_done", "Keys that are fixed.", REST_INTEGER},
    {"fix_failed", "Keys that could not be fixed.", REST_INTEGER},
    {"fixed", "When the fix ended.", REST_TIME},
    {0},
};

static const struct rest_row diff_rows[] = {
    {HTTP_GET, "/api/v1/diffs", REST_ADMIN, "Comparisons of buckets, and how far each is.",
     diff_list, .needs = replica_needs, .list = "diffs", .items = diff_fields},
    {HTTP_POST, "/api/v1/diffs", REST_ADMIN,
     "Compare buckets. A diff of the same locations is replaced, unless it is running.", diff_start,
     .status = 201, .needs = replica_needs,
     .body =
         REST_FIELDS({"locations", "What to compare: STORAGE:BUCKET each, two to eight.",
                      REST_STRINGS, .required = true, .min = 2, .max = CHECK_LOCATIONS_MAX},
                     {"user", "The user who has these buckets; left out: the only one who has."},
                     {"ignore_sizes", "Do sizes not matter?", REST_BOOLEAN},
                     {"ignore_etags", "Do ETags not matter?", REST_BOOLEAN},
                     {"contents", "Read and compare bodies?", REST_BOOLEAN},
                     {"last_versions_only", "Compare only the latest versions?", REST_BOOLEAN}),
     .answer = diff_fields},
    {HTTP_GET, "/api/v1/diffs/{id}", REST_ADMIN, "One diff, with what it counted.", diff_show,
     .needs = replica_needs, .in_path = diff_path, .answer = diff_fields},
    {HTTP_GET, "/api/v1/diffs/{id}/entries", REST_ADMIN,
     "The differences; the first 10,000 are kept. docs/diff.md describes an entry.", diff_entries,
     .needs = replica_needs, .in_path = diff_path,
     .answer = REST_FIELDS({"locations", "What is compared: STORAGE:BUCKET each.", REST_STRINGS},
                           {"differences", "Keys that differ.", REST_INTEGER},
                           {"kept", "Differences that are kept and can be shown.", REST_INTEGER}),
     .list = "entries", .by_place = true, .page_usual = ENTRIES_USUAL, .page_max = ENTRIES_MAX,
     .items = REST_FIELDS({"*", "A member of an entry (docs/diff.md).", REST_ANY})},
    {HTTP_POST, "/api/v1/diffs/{id}/fix", REST_ADMIN,
     "Make all locations equal to one of them, then compare again.", diff_fix, .status = 202,
     .needs = replica_needs, .in_path = diff_path,
     .body = REST_FIELDS({"source", "The location to make the others equal to.", .required = true}),
     .answer = diff_fields},
    {HTTP_POST, "/api/v1/diffs/{id}/restart", REST_ADMIN,
     "Compare again from the beginning, whatever the diff is doing.", diff_restart, .status = 202,
     .needs = replica_needs, .in_path = diff_path, .answer = diff_fields},
    {HTTP_DELETE, "/api/v1/diffs/{id}", REST_ADMIN, "Forget the diff.", diff_remove, .status = 204,
     .needs = replica_needs, .in_path = diff_path},
};
const struct rest_table replica_diff_routes = {REST_ROWS(diff_rows)};

static struct checks checks_of(const struct replica_room *room)
{
    return (struct checks){.app = room->services->stores[APP_DB], .queue = room->services->queue};
}

/* --- locations: "<storage>:<bucket>"; buckets have no colons --- */

static int location_read(struct check_location *out, struct arena *a, struct str text,
                         struct err *err)
{
    size_t at = text.len;

    while (at > 0 && text.p[at - 1] != ':')
        at--;
    if (at < 2 || at == text.len)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a location; write STORAGE:BUCKET",
                       STR_ARG(text));
    out->storage = arena_str(a, str_head(text, at - 1));
    out->bucket = arena_str(a, str_skip(text, at));
    return 0;
}

static struct str location_text(struct arena *a, const struct check_location *l)
{
    return arena_fmt(a, STR_FMT ":" STR_FMT, STR_ARG(l->storage), STR_ARG(l->bucket));
}

/* --- writing --- */

static void diff_write_locations(struct json_out *w, struct arena *a, const struct check *c)
{
    json_out_key(w, "locations");
    json_out_open(w, '[');
    for (size_t i = 0; i < c->count; i++)
        json_out_str(w, location_text(a, &c->locations[i]));
    json_out_close(w, ']');
}

static void diff_write_fix(struct json_out *w, struct arena *a, const struct check *c)
{
    bool any = c->source >= 0 && (size_t)c->source < c->count;

    json_out_member_str(w, "source", any ? location_text(a, &c->locations[c->source]) : STR_EMPTY);
    json_out_member_i64(w, "fix_queued", c->fix_queued);
    json_out_member_i64(w, "fix_done", c->fix_done);
    json_out_member_i64(w, "fix_failed", c->fix_failed);
    rest_time(w, "fixed", c->fixed_ms);
}

/* Writes the total of keys, the keys per second since the beginning of the comparison, and the time
 * left. */
static void diff_write_pace(struct json_out *w, const struct check *c)
{
    int64_t until_ms = c->done_ms ? c->done_ms : clock_wall_ms();
    double seconds = (double)(until_ms - c->started_ms) / MS_PER_S;
    double rate = c->started_ms && seconds > 0 ? (double)c->keys / seconds : 0;

    json_out_member_i64(w, "total", c->total);
    json_out_member_f64(w, "keys_per_s", rate);
    bool known = c->state == CHECK_CHECKING && rate > 0 && c->total >= c->keys && c->total;
    rest_known_i64(w, "left_s", known,
                   known ? (int64_t)((double)(c->total - c->keys) / rate + 0.5) : 0);
}

static void diff_write(struct json_out *w, const struct replica_room *room, struct arena *a,
                       const struct check *c)
{
    struct user user = {0};

    if (users_by_id(room->services->users, a, c->user, &user, NULL) < 0)
        user.name = STR_EMPTY;
    json_out_member_str(w, "id", c->id);
    json_out_member_str(w, "user", user.name);
    diff_write_locations(w, a, c);
    json_out_member_str(w, "state", str_z(check_state_names[c->state]));
    json_out_member_bool(w, "consistent", c->state == CHECK_READY && c->differences == 0);
    json_out_member_bool(w, "versioned", c->versioned);
    json_out_member_bool(w, "ignore_sizes", c->ignore_sizes);
    json_out_member_bool(w, "ignore_etags", c->ignore_etags);
    json_out_member_bool(w, "contents", c->contents);
    json_out_member_bool(w, "last_versions_only", c->last_only);
    rest_time(w, "created", c->created_ms);
    rest_time(w, "started", c->started_ms);
    rest_time(w, "done", c->done_ms);
    json_out_member_i64(w, "keys", c->keys);
    diff_write_pace(w, c);
    json_out_member_i64(w, "differences", c->differences);
    json_out_member_i64(w, "kept", c->kept);
    json_out_member_i64(w, "bytes", c->bytes);
    json_out_member_str(w, "error", c->error);
    diff_write_fix(w, a, c);
}

/* --- finding --- */

static int diff_find(const struct rest_call *c, struct check *out, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct str id = rest_text(c, "id");
    bool could_be = id.len == CHECK_ID_LEN;

    for (size_t i = 0; could_be && i < id.len; i++)
        could_be = (id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f');
    return could_be ? check_read(&cs, c->arena, id, out, err)
                    : err_set(err, ERR_NOT_FOUND, "there is no diff " STR_FMT, STR_ARG(id));
}

/* Answers with the diff's present state. If `code` says that the change of the diff failed, returns
 * that error. */
static int diff_answer(struct rest_call *c, struct str id, int code, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check check = {0};

    if (code == 0)
        code = check_read(&cs, c->arena, id, &check, err);
    if (code == 0)
        diff_write(c->w, c->ctx, c->arena, &check);
    return code;
}

/* --- starting --- */

static int diff_read_locations(struct check *out, const struct rest_call *c, struct err *err)
{
    const json_t *list = rest_strings(c, "locations"), *item;
    size_t i;
    int code = 0;

    json_array_foreach(list, i, item)
    {
        if (code == 0)
            code = location_read(&out->locations[i], c->arena, str_z(json_string_value(item)), err);
        out->count = i + 1;
    }
    return code;
}

static int location_no_storage(const struct check_location *l, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "there is no storage " STR_FMT "; weir storage list shows all storages",
                   STR_ARG(l->storage));
}

static int location_no_bucket(const struct check_location *l, struct err *err)
{
    return err_set(err, ERR_NO_BUCKET, "there is no bucket " STR_FMT " on storage " STR_FMT,
                   STR_ARG(l->bucket), STR_ARG(l->storage));
}

static int location_check(const struct replica_room *room, struct arena *a, struct str user,
                          const struct check_location *l, struct err *err)
{
    struct storage *s = routes_storage(room->services->routes, l->storage);
    struct bucket_info info = {0};
    struct bucket *b = NULL;

    if (!s)
        return location_no_storage(l, err);
    int code = storage_open_bucket(&b, s, user, l->bucket, err);
    if (code == 0)
        code = b->ops->info(b, a, &info, err);
    if (b)
        b->ops->unref(b);
    if (code == ERR_NO_BUCKET)
        return location_no_bucket(l, err);
    if (code == 0 && info.owner.len && !str_eq(info.owner, user))
        return err_set(err, ERR_CONFLICT,
                       "bucket " STR_FMT " on storage " STR_FMT
                       " belongs to a user other than " STR_FMT,
                       STR_ARG(l->bucket), STR_ARG(l->storage),
                       STR_ARG(owners_user_name(room->services, a, user)));
    if (code == 0)
        code = taps_claim(room->taps, s, false, err);
    return code < 0 ? err_wrap(err, code,
                               "storage " STR_FMT " cannot be asked for bucket " STR_FMT
                               " with the keys of user " STR_FMT,
                               STR_ARG(l->storage), STR_ARG(l->bucket),
                               STR_ARG(owners_user_name(room->services, a, user)))
                    : 0;
}

/* Sets the diff's user to the user with this name. `name` empty: to the only user who has all
 * buckets of the diff. */
static int diff_read_user(struct check *c, const struct replica_room *room, struct arena *a,
                          struct str name, struct err *err)
{
    const struct check_location *first = &c->locations[0];
    struct owners owners = {0}, others = {0};
    int code = 0;

    if (name.len)
        return owners_user_id(room->services, a, name, NULL, &c->user, err);
    for (size_t i = 0; i < c->count && code == 0; i++) {
        const struct check_location *l = &c->locations[i];
        if (!routes_storage(room->services->routes, l->storage))
            return location_no_storage(l, err);
        code = owners_find(room->services, a,
                           &(struct owner_of){.bucket = l->bucket, .storage = l->storage}, &others,
                           err);
        if (code == 0 && others.count == 0)
            return location_no_bucket(l, err);
        if (i == 0)
            owners = others;
        else
            owners_meet(&owners, &others);
    }
    if (code == 0 && owners.count == 0)
        return err_set(err, ERR_CONFLICT, "no user has all of these buckets; name the user");
    return code < 0 ? code : owners_one(room->services, a, first->bucket, &owners, &c->user, err);
}

static int diff_read(struct check *out, const struct rest_call *c, struct err *err)
{
    int code = diff_read_locations(out, c, err);

    out->ignore_sizes = rest_bool(c, "ignore_sizes");
    out->ignore_etags = rest_bool(c, "ignore_etags");
    out->contents = rest_bool(c, "contents");
    out->last_only = rest_bool(c, "last_versions_only");
    if (code == 0)
        code = diff_read_user(out, c->ctx, c->arena, rest_text(c, "user"), err);
    if (code == 0)
        code = check_name(out, c->arena, err);
    for (size_t i = 0; code == 0 && i < out->count; i++)
        code = location_check(c->ctx, c->arena, out->user, &out->locations[i], err);
    return code;
}

static int diff_start(struct rest_call *c, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check check = {0};
    int code = diff_read(&check, c, err);

    if (code == 0)
        code = check_start(&cs, &check, err);
    if (code == 0)
        log_info(http_request_log(c->req), "diff.started", log_s("diff", check.id));
    return diff_answer(c, check.id, code, err);
}

/* --- listing and showing --- */

static int diff_list(struct rest_call *c, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check *list = NULL;
    size_t count = 0;
    int code = check_list(&cs, c->arena, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (rest_item(c, list[i].id)) {
            diff_write(c->w, c->ctx, c->arena, &list[i]);
            rest_item_end(c);
        }
    return code;
}

static int diff_show(struct rest_call *c, struct err *err)
{
    struct check check = {0};
    int code = diff_find(c, &check, err);

    if (code == 0)
        diff_write(c->w, c->ctx, c->arena, &check);
    return code;
}

static int diff_entries(struct rest_call *c, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check check = {0};
    struct store_args entries = {0};
    int code = diff_find(c, &check, err);

    if (code == 0)
        code = check_entries(&cs, c->arena, check.id, rest_skip(c), rest_wanted(c), &entries, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < entries.argc; i++)
        if (rest_takes(c, STR_EMPTY))
            json_out_raw(c->w, entries.argv[i]);
    rest_list_end(c);
    diff_write_locations(c->w, c->arena, &check);
    json_out_member_i64(c->w, "differences", check.differences);
    json_out_member_i64(c->w, "kept", check.kept);
    return 0;
}

/* --- changing --- */

static int diff_find_source(const struct check *c, struct arena *a, struct str text, size_t *out,
                            struct err *err)
{
    for (size_t i = 0; i < c->count; i++)
        if (str_eq(location_text(a, &c->locations[i]), text)) {
            *out = i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "source must be one of the locations, not '" STR_FMT "'",
                   STR_ARG(text));
}

static int diff_fix(struct rest_call *c, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check check = {0};
    size_t source = 0;
    int code = diff_find(c, &check, err);

    if (code == 0)
        code = diff_find_source(&check, c->arena, rest_text(c, "source"), &source, err);
    if (code == 0)
        code = check_fix(&cs, check.id, source, err);
    if (code == 0)
        log_info(http_request_log(c->req), "diff.fix", log_s("diff", check.id),
                 log_s("source", location_text(c->arena, &check.locations[source])));
    return diff_answer(c, check.id, code, err);
}

static int diff_restart(struct rest_call *c, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check check = {0};
    int code = diff_find(c, &check, err);

    if (code == 0)
        code = check_restart(&cs, check.id, err);
    return diff_answer(c, check.id, code, err);
}

static int diff_remove(struct rest_call *c, struct err *err)
{
    struct checks cs = checks_of(c->ctx);
    struct check check = {0};
    int code = diff_find(c, &check, err);

    return code < 0 ? code : check_remove(&cs, check.id, err);
}
