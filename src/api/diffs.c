/* Diffs: checks of buckets, their reports and fixes (docs/diff.md). */
#include "api/owners.h"
#include "object/overlay.h"
#include "api/replications.h"
#include "base/clock.h"
#include "coord/check.h"
#include "object/bucket.h"
#include "replica/tap/tap.h"
#include "route/route.h"

enum { ENTRIES_DEFAULT = 100, ENTRIES_MAX = 1000 };

static struct checks checks_of(const struct api *api)
{
    return (struct checks){.app = api->o.app, .queue = api->o.queue};
}

/* --- locations: "<storage>:<bucket>"; buckets have no colons --- */

static int read_location(struct arena *a, struct str text, struct check_location *out,
                         struct err *err)
{
    size_t at = text.len;

    while (at > 0 && text.p[at - 1] != ':')
        at--;
    if (at < 2 || at == text.len)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no location: STORAGE:BUCKET is one",
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

static void write_time(struct json_out *w, const char *name, int64_t ms)
{
    char text[CLOCK_ISO_LEN + 1] = "";

    if (ms)
        clock_iso(ms, text);
    json_out_member_str(w, name, str_z(text));
}

static void write_locations(struct json_out *w, struct arena *a, const struct check *c)
{
    json_out_key(w, "locations");
    json_out_open(w, '[');
    for (size_t i = 0; i < c->count; i++)
        json_out_str(w, location_text(a, &c->locations[i]));
    json_out_close(w, ']');
}

static void write_fix(struct json_out *w, struct arena *a, const struct check *c)
{
    bool any = c->source >= 0 && (size_t)c->source < c->count;

    json_out_member_str(w, "source", any ? location_text(a, &c->locations[c->source]) : STR_EMPTY);
    json_out_member_i64(w, "fix_queued", c->fix_queued);
    json_out_member_i64(w, "fix_done", c->fix_done);
    json_out_member_i64(w, "fix_failed", c->fix_failed);
    write_time(w, "fixed", c->fixed_ms);
}

/* From the beginning on. null: how much there is is not known, or it is not being compared. */
static void write_pace(struct json_out *w, const struct check *c)
{
    int64_t until_ms = c->done_ms ? c->done_ms : clock_wall_ms();
    double seconds = (double)(until_ms - c->started_ms) / MS_PER_S;
    double rate = c->started_ms && seconds > 0 ? (double)c->keys / seconds : 0;

    json_out_member_i64(w, "total", c->total);
    json_out_key(w, "keys_per_s");
    json_out_f64(w, rate);
    json_out_key(w, "left_s");
    if (c->state == CHECK_CHECKING && rate > 0 && c->total >= c->keys && c->total)
        json_out_i64(w, (int64_t)((double)(c->total - c->keys) / rate + 0.5));
    else
        json_out_null(w);
}

static void write_check(struct json_out *w, struct api *api, struct arena *a, const struct check *c)
{
    struct user user = {0};

    if (users_by_id(api->o.users, a, c->user, &user, NULL) < 0)
        user.name = STR_EMPTY;
    json_out_member_str(w, "id", c->id);
    json_out_member_str(w, "user", user.name);
    write_locations(w, a, c);
    json_out_member_str(w, "state", str_z(check_state_names[c->state]));
    json_out_member_bool(w, "consistent", c->state == CHECK_READY && c->differences == 0);
    json_out_member_bool(w, "versioned", c->versioned);
    json_out_member_bool(w, "ignore_sizes", c->ignore_sizes);
    json_out_member_bool(w, "ignore_etags", c->ignore_etags);
    json_out_member_bool(w, "contents", c->contents);
    json_out_member_bool(w, "last_versions_only", c->last_only);
    write_time(w, "created", c->created_ms);
    write_time(w, "started", c->started_ms);
    write_time(w, "done", c->done_ms);
    json_out_member_i64(w, "keys", c->keys);
    write_pace(w, c);
    json_out_member_i64(w, "differences", c->differences);
    json_out_member_i64(w, "kept", c->kept);
    json_out_member_i64(w, "bytes", c->bytes);
    json_out_member_str(w, "error", c->error);
    write_fix(w, a, c);
}

/* --- finding --- */

static int find(struct api *api, struct arena *a, const struct route_params *params,
                struct check *out, struct err *err)
{
    struct checks cs = checks_of(api);
    struct str id = route_param(params, "id");
    int code = api_replications_on(api, err);
    bool could_be = id.len == CHECK_ID_LEN;

    for (size_t i = 0; could_be && i < id.len; i++)
        could_be = (id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f');
    if (code < 0)
        return code;
    return could_be ? check_read(&cs, a, id, out, err)
                    : err_set(err, ERR_NOT_FOUND, "there is no check " STR_FMT, STR_ARG(id));
}

/* Its present state, after `code` of what was done to it. */
static int answer(struct http_request *req, struct api *api, struct str id, int status, int code,
                  struct err *err)
{
    struct arena *a = http_request_arena(req);
    struct checks cs = checks_of(api);
    struct check c = {0};
    struct api_json j;

    if (code == 0)
        code = check_read(&cs, a, id, &c, err);
    if (code < 0)
        return api_send_failure(req, code, err);
    api_json_begin(&j);
    write_check(&j.w, api, a, &c);
    return api_json_send(req, status, &j);
}

/* --- starting --- */

static int read_locations(struct check *c, struct arena *a, const json_t *object, struct err *err)
{
    const json_t *list = json_object_get(object, "locations"), *item;
    size_t i;
    int code = 0;

    if (!json_is_array(list) || json_array_size(list) > CHECK_LOCATIONS_MAX)
        return err_set(err, ERR_INVALID, "locations must be a list of 2 to %d of STORAGE:BUCKET",
                       CHECK_LOCATIONS_MAX);
    json_array_foreach(list, i, item)
    {
        if (code == 0 && !json_is_string(item))
            code = err_set(err, ERR_INVALID, "a location must be a string");
        if (code == 0)
            code = read_location(a, str_z(json_string_value(item)), &c->locations[i], err);
        c->count = i + 1;
    }
    return code;
}

static int read_options(struct check *c, const json_t *object, struct err *err)
{
    const struct {
        const char *name;
        bool *out;
    } options[] = {{"ignore_sizes", &c->ignore_sizes},
                   {"ignore_etags", &c->ignore_etags},
                   {"contents", &c->contents},
                   {"last_versions_only", &c->last_only}};

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        const json_t *value = json_object_get(object, options[i].name);
        if (value && !json_is_boolean(value))
            return err_set(err, ERR_INVALID, "%s must be true or false", options[i].name);
        *options[i].out = json_is_true(value);
    }
    return 0;
}

static int no_storage(const struct check_location *l, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "there is no storage " STR_FMT "; weir storage list shows those that there are",
                   STR_ARG(l->storage));
}

static int no_bucket(const struct check_location *l, struct err *err)
{
    return err_set(err, ERR_NO_BUCKET, "there is no bucket " STR_FMT " on storage " STR_FMT,
                   STR_ARG(l->bucket), STR_ARG(l->storage));
}

static int check_location(struct api *api, struct arena *a, struct str user,
                          const struct check_location *l, struct err *err)
{
    struct storage *s = routes_storage(api->o.routes, l->storage);
    struct bucket_info info = {0};
    struct bucket *b = NULL;

    if (!s)
        return no_storage(l, err);
    int code = storage_open_bucket(&b, s, user, l->bucket, err);
    if (code == 0)
        code = b->ops->info(b, a, &info, err);
    if (b)
        b->ops->unref(b);
    if (code == ERR_NO_BUCKET)
        return no_bucket(l, err);
    if (code == 0 && info.owner.len && !str_eq(info.owner, user))
        return err_set(
            err, ERR_CONFLICT,
            "bucket " STR_FMT " on storage " STR_FMT " belongs to another user than " STR_FMT,
            STR_ARG(l->bucket), STR_ARG(l->storage), STR_ARG(api_user_name(api, a, user)));
    if (code == 0)
        code = taps_claim(api->taps, s, false, err);
    return code < 0 ? err_wrap(err, code,
                               "storage " STR_FMT " cannot be asked for bucket " STR_FMT
                               " with the keys of user " STR_FMT,
                               STR_ARG(l->storage), STR_ARG(l->bucket),
                               STR_ARG(api_user_name(api, a, user)))
                    : 0;
}

/* Without a name it is the only user who has all of these buckets. */
static int read_user(struct api *api, struct arena *a, struct str name, struct check *c,
                     struct err *err)
{
    const struct check_location *first = &c->locations[0];
    struct owners owners = {0}, others = {0};
    int code = 0;

    if (name.len)
        return api_user_id(api, a, name, NULL, &c->user, err);
    for (size_t i = 0; i < c->count && code == 0; i++) {
        const struct check_location *l = &c->locations[i];
        if (!routes_storage(api->o.routes, l->storage))
            return no_storage(l, err);
        code = api_owners(api, a, &(struct owner_of){.bucket = l->bucket, .storage = l->storage},
                          &others, err);
        if (code == 0 && others.count == 0)
            return no_bucket(l, err);
        if (i == 0)
            owners = others;
        else
            api_owners_meet(&owners, &others);
    }
    if (code == 0 && owners.count == 0)
        return err_set(err, ERR_CONFLICT, "no user has all of these buckets; name the user");
    return code < 0 ? code : api_owners_one(api, a, first->bucket, &owners, &c->user, err);
}

static int read_check(struct api *api, struct arena *a, const json_t *object, struct check *c,
                      struct err *err)
{
    static const char *const strings[] = {"user", NULL};
    int code = api_check_strings(object, strings, err);

    if (code == 0)
        code = read_locations(c, a, object, err);
    if (code == 0)
        code = read_options(c, object, err);
    if (code == 0)
        code = c->count ? read_user(api, a, json_get_str(object, "user", STR_EMPTY), c, err)
                        : err_set(err, ERR_INVALID, "name two locations at least");
    if (code == 0)
        code = check_name(c, a, err);
    for (size_t i = 0; code == 0 && i < c->count; i++)
        code = check_location(api, a, c->user, &c->locations[i], err);
    return code;
}

int api_post_diff(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct checks cs = checks_of(api);
    struct arena *a = http_request_arena(req);
    struct check c = {0};
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    code = api_replications_on(api, &err);
    if (code == 0)
        code = read_check(api, a, object, &c, &err);
    json_decref(object);
    if (code == 0)
        code = check_start(&cs, &c, &err);
    if (code == 0)
        log_info(http_request_log(req), "diff.started", log_s("diff", c.id));
    return answer(req, api, c.id, 201, code, &err);
}

/* --- looking --- */

int api_get_diffs(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct checks cs = checks_of(api);
    struct arena *a = http_request_arena(req);
    struct check *list = NULL;
    size_t count = 0;
    struct api_json j;
    struct err err = {0};

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_replications_on(api, &err);
    if (code == 0)
        code = check_list(&cs, a, &list, &count, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    json_out_key(&j.w, "diffs");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&j.w, '{');
        write_check(&j.w, api, a, &list[i]);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

int api_get_diff(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct check c = {0};
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = find(ctx, http_request_arena(req), params, &c, &err);
    return answer(req, ctx, c.id, 200, code, &err);
}

int api_get_diff_entries(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct checks cs = checks_of(ctx);
    struct arena *a = http_request_arena(req);
    struct check c = {0};
    struct store_args entries = {0};
    size_t skip = 0, limit = 0;
    struct api_json j;
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = find(ctx, a, params, &c, &err);
    if (code == 0)
        code = api_query_number(req, "skip", 0, CHECK_KEPT, &skip, &err);
    if (code == 0)
        code = api_query_number(req, "limit", ENTRIES_DEFAULT, ENTRIES_MAX, &limit, &err);
    if (code == 0 && limit)
        code = check_entries(&cs, a, c.id, skip, limit, &entries, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    write_locations(&j.w, a, &c);
    json_out_member_i64(&j.w, "differences", c.differences);
    json_out_member_i64(&j.w, "kept", c.kept);
    json_out_key(&j.w, "entries");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < entries.argc; i++)
        json_out_raw(&j.w, entries.argv[i]);
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

/* --- changing --- */

static int find_source(const struct check *c, struct arena *a, struct str text, size_t *out,
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

int api_post_diff_fix(struct http_request *req, const struct route_params *params, void *ctx)
{
    static const char *const strings[] = {"source", NULL};
    struct checks cs = checks_of(ctx);
    struct arena *a = http_request_arena(req);
    struct check c = {0};
    size_t source = 0;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    code = find(ctx, a, params, &c, &err);
    if (code == 0)
        code = api_check_strings(object, strings, &err);
    if (code == 0)
        code = find_source(&c, a, json_get_str(object, "source", STR_EMPTY), &source, &err);
    json_decref(object);
    if (code == 0)
        code = check_fix(&cs, c.id, source, &err);
    if (code == 0)
        log_info(http_request_log(req), "diff.fix", log_s("diff", c.id),
                 log_s("source", location_text(a, &c.locations[source])));
    return answer(req, ctx, c.id, 202, code, &err);
}

int api_post_diff_restart(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct checks cs = checks_of(ctx);
    struct check c = {0};
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    json_decref(object);
    code = find(ctx, http_request_arena(req), params, &c, &err);
    if (code == 0)
        code = check_restart(&cs, c.id, &err);
    return answer(req, ctx, c.id, 202, code, &err);
}

int api_delete_diff(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct checks cs = checks_of(ctx);
    struct check c = {0};
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = find(ctx, http_request_arena(req), params, &c, &err);
    if (code == 0)
        code = check_remove(&cs, c.id, &err);
    return code < 0 ? api_send_failure(req, code, &err) : api_send_done(req);
}
