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

/* A diff as it is shown. */
struct diff_view {
    struct check check;
    struct str user; /* the user's name */
    struct str locations[CHECK_LOCATIONS_MAX];
    const struct str *location_list; /* `locations` */
    struct str source;
    const char *state;
    bool consistent;
    double rate;
    struct rest_known left_s;
};

/* A diff that is asked for. */
struct diff_form {
    struct str *locations;
    size_t count;
    struct str user;
    bool ignore_sizes, ignore_etags, contents, last_only;
};

#define FORM(member) REST_AT(struct diff_form, member)
#define VIEW(member) REST_AT(struct diff_view, member)
#define VIEW_LOCATIONS                                                                             \
    {                                                                                              \
        "locations", "What is compared: STORAGE:BUCKET each.", REST_STRINGS,                       \
            REST_ITEMS(struct diff_view, location_list, check.count)                               \
    }

static const struct rest_field diff_fields[] = {
    {"id", "The diff's id.", VIEW(check.id)},
    {"user", "The user's name; empty: the user was removed.", VIEW(user)},
    VIEW_LOCATIONS,
    {"state", "Where the diff is.", VIEW(state)},
    {"consistent", "Is it ready, and has found no difference?", REST_BOOLEAN, VIEW(consistent)},
    {"versioned", "Are all versions compared, since all buckets keep versions?", REST_BOOLEAN,
     VIEW(check.versioned)},
    {"ignore_sizes", "Do sizes not matter?", REST_BOOLEAN, VIEW(check.ignore_sizes)},
    {"ignore_etags", "Do ETags not matter?", REST_BOOLEAN, VIEW(check.ignore_etags)},
    {"contents", "Are bodies read and compared?", REST_BOOLEAN, VIEW(check.contents)},
    {"last_versions_only", "Are only the latest versions compared?", REST_BOOLEAN,
     VIEW(check.last_only)},
    {"created", "When it was first asked for.", REST_TIME, VIEW(check.created_ms)},
    {"started", "When the comparison began.", REST_TIME, VIEW(check.started_ms)},
    {"done", "When it ended.", REST_TIME, VIEW(check.done_ms)},
    {"keys", "Keys that were compared so far.", REST_INTEGER, VIEW(check.keys)},
    {"total", "Keys to compare, as far as it is known; 0: not known.", REST_INTEGER,
     VIEW(check.total)},
    {"keys_per_s", "Keys compared a second, from the beginning on.", REST_NUMBER, VIEW(rate)},
    {"left_s", "Seconds until it is done; null: not known, or it does not compare now.",
     REST_INTEGER, .nullable = true, VIEW(left_s)},
    {"differences", "Keys that differ.", REST_INTEGER, VIEW(check.differences)},
    {"kept", "Differences that are kept and can be shown.", REST_INTEGER, VIEW(check.kept)},
    {"bytes", "Bytes of bodies that were read.", REST_INTEGER, VIEW(check.bytes)},
    {"error", "Why it failed; empty: it did not.", VIEW(check.error)},
    {"source", "The location that the others were last made equal to; empty: none.", VIEW(source)},
    {"fix_queued", "Keys to be fixed.", REST_INTEGER, VIEW(check.fix_queued)},
    {"fix_done", "Keys that are fixed.", REST_INTEGER, VIEW(check.fix_done)},
    {"fix_failed", "Keys that could not be fixed.", REST_INTEGER, VIEW(check.fix_failed)},
    {"fixed", "When the fix ended.", REST_TIME, VIEW(check.fixed_ms)},
    {0},
};

static const struct rest_row diff_rows[] = {
    {HTTP_GET, "/api/v1/diffs", REST_ADMIN, "Comparisons of buckets, and how far each is.",
     diff_list, .needs = replica_needs, .list = "diffs", .item = sizeof(struct diff_view),
     .items = diff_fields},
    {HTTP_POST, "/api/v1/diffs", REST_ADMIN,
     "Compare buckets. A diff of the same locations is replaced, unless it is running.", diff_start,
     .status = 201, .needs = replica_needs, .in = sizeof(struct diff_form),
     .body = REST_FIELDS(
         {"locations", "What to compare: STORAGE:BUCKET each, two to eight.", REST_STRINGS,
          .required = true, .min = 2, .max = CHECK_LOCATIONS_MAX,
          REST_ITEMS(struct diff_form, locations, count)},
         {"user", "The user who has these buckets; left out: the only one who has.", FORM(user)},
         {"ignore_sizes", "Do sizes not matter?", REST_BOOLEAN, FORM(ignore_sizes)},
         {"ignore_etags", "Do ETags not matter?", REST_BOOLEAN, FORM(ignore_etags)},
         {"contents", "Read and compare bodies?", REST_BOOLEAN, FORM(contents)},
         {"last_versions_only", "Compare only the latest versions?", REST_BOOLEAN,
          FORM(last_only)}),
     .out = sizeof(struct diff_view), .answer = diff_fields},
    {HTTP_GET, "/api/v1/diffs/{id}", REST_ADMIN, "One diff, with what it counted.", diff_show,
     .needs = replica_needs, .in_path = diff_path, .out = sizeof(struct diff_view),
     .answer = diff_fields},
    {HTTP_GET, "/api/v1/diffs/{id}/entries", REST_ADMIN,
     "The differences; the first 10,000 are kept. docs/diff.md describes an entry.", diff_entries,
     .needs = replica_needs, .in_path = diff_path, .out = sizeof(struct diff_view),
     .answer = REST_FIELDS(
         VIEW_LOCATIONS,
         {"differences", "Keys that differ.", REST_INTEGER, VIEW(check.differences)},
         {"kept", "Differences that are kept and can be shown.", REST_INTEGER, VIEW(check.kept)}),
     .list = "entries", .by_place = true, .page_usual = ENTRIES_USUAL, .page_max = ENTRIES_MAX,
     .items = REST_FIELDS(
         {"object", "The key that differs."}, {"kind", "How it differs."},
         {"version_index",
          "The number of the version that differs; 0: the oldest. Absent: versions are not "
          "compared.",
          REST_INTEGER, .sometimes = true},
         {"why", "Why the key cannot be compared; absent: it was.", .sometimes = true},
         {"sides",
          "A list with an item for each location, in the order of `locations`: null, or an object "
          "with `size`, `etag`, `version_id`, and perhaps `marker` (true) and `sha256`.",
          REST_ANY})},
    {HTTP_POST, "/api/v1/diffs/{id}/fix", REST_ADMIN,
     "Make all locations equal to one of them, then compare again.", diff_fix, .status = 202,
     .needs = replica_needs, .in_path = diff_path,
     .body = REST_FIELDS({"source", "The location to make the others equal to.", .required = true}),
     .out = sizeof(struct diff_view), .answer = diff_fields},
    {HTTP_POST, "/api/v1/diffs/{id}/restart", REST_ADMIN,
     "Compare again from the beginning, whatever the diff is doing.", diff_restart, .status = 202,
     .needs = replica_needs, .in_path = diff_path, .out = sizeof(struct diff_view),
     .answer = diff_fields},
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

/* --- showing --- */

/* Sets the keys per second since the beginning of the comparison, and the time left. */
static void diff_view_pace(struct diff_view *v)
{
    const struct check *c = &v->check;
    int64_t until_ms = c->done_ms ? c->done_ms : clock_wall_ms();
    double seconds = (double)(until_ms - c->started_ms) / MS_PER_S;

    v->rate = c->started_ms && seconds > 0 ? (double)c->keys / seconds : 0;
    if (c->state == CHECK_CHECKING && v->rate > 0 && c->total >= c->keys && c->total)
        v->left_s =
            (struct rest_known){true, (int64_t)((double)(c->total - c->keys) / v->rate + 0.5)};
}

/* Fills in the view of a diff. It must not move afterwards. */
static void diff_view_init(struct diff_view *v, const struct rest_call *c,
                           const struct check *check)
{
    const struct replica_room *room = c->ctx;
    struct user user = {0};

    *v = (struct diff_view){.check = *check, .location_list = v->locations};
    if (users_by_id(room->services->users, c->arena, check->user, &user, NULL) == 0)
        v->user = user.name;
    for (size_t i = 0; i < check->count; i++)
        v->locations[i] = location_text(c->arena, &check->locations[i]);
    if (check->source >= 0 && (size_t)check->source < check->count)
        v->source = v->locations[check->source];
    v->state = check_state_names[check->state];
    v->consistent = check->state == CHECK_READY && check->differences == 0;
    diff_view_pace(v);
}

static int diff_give(struct rest_call *c, const struct check *check)
{
    struct diff_view view;

    diff_view_init(&view, c, check);
    return rest_give(c, &view);
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
    return code < 0 ? code : diff_give(c, &check);
}

/* --- starting --- */

static int diff_read_locations(struct check *out, struct arena *a, const struct diff_form *in,
                               struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < in->count && code == 0; i++)
        code = location_read(&out->locations[i], a, in->locations[i], err);
    out->count = in->count;
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
    const struct diff_form *in = rest_in(c, struct diff_form);
    int code = diff_read_locations(out, c->arena, in, err);

    out->ignore_sizes = in->ignore_sizes;
    out->ignore_etags = in->ignore_etags;
    out->contents = in->contents;
    out->last_only = in->last_only;
    if (code == 0)
        code = diff_read_user(out, c->ctx, c->arena, in->user, err);
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

    for (size_t i = 0; code == 0 && i < count; i++) {
        struct diff_view view;
        diff_view_init(&view, c, &list[i]);
        rest_add(c, list[i].id, &view);
    }
    return code;
}

static int diff_show(struct rest_call *c, struct err *err)
{
    struct check check = {0};
    int code = diff_find(c, &check, err);

    return code < 0 ? code : diff_give(c, &check);
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
    return diff_give(c, &check);
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
