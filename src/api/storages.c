/* Storages: which there are, adding one, whether it works, whether what it holds is whole. */
#include "api/replications.h"
#include "object/overlay.h"
#include "object/local/local.h"
#include "replica/tap/tap.h"
#include "route/route.h"

enum { FINDINGS_MAX = 1000 /* listed; all are counted */ };

/* `remotes`: those that are remote. */
static void write_storage(struct json_out *w, struct storage *s, bool is_main,
                          const struct remote_entry *remotes, size_t count)
{
    json_out_member_str(w, "name", s->name);
    json_out_member_str(w, "kind", str_z(s->ops->kind));
    json_out_member_str(w, "state", local_is_missing(s) ? STR("missing") : STR_EMPTY);
    json_out_member_bool(w, "main", is_main);
    if (storage_can(s, STORAGE_FOLDER))
        json_out_member_str(w, "folder", str_z(local_folder(s)));
    json_out_member_u64(w, "requests_per_minute", atomic_load(&s->requests_per_minute));
    json_out_member_u64(w, "bytes_per_second", atomic_load(&s->bytes_per_second));
    for (size_t i = 0; i < count; i++)
        if (str_eq(remotes[i].name, s->name))
            api_write_remote(w, &remotes[i]);
}

int api_get_storages(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct storage *all[ROUTES_STORAGES_MAX];
    const struct storage *main_storage = routes_main(api->o.routes);
    struct remote_entry *remotes;
    struct err err = {0};
    struct api_json j;
    size_t count, remote_count;
    int code;

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    code = remotes_list(api->o.remotes, http_request_arena(req), &remotes, &remote_count, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    count = routes_storages(api->o.routes, all, ARRAY_SIZE(all));
    api_json_begin(&j);
    json_out_key(&j.w, "storages");
    json_out_open(&j.w, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_open(&j.w, '{');
        write_storage(&j.w, all[i], all[i] == main_storage, remotes, remote_count);
        json_out_close(&j.w, '}');
    }
    json_out_close(&j.w, ']');
    return api_json_send(req, 200, &j);
}

/* What only a remote storage has is refused, not ignored. */
static int check_local(const json_t *object, struct err *err)
{
    static const char *const takes[] = {
        "kind", "name", "folder", "main", "requests_per_minute", "bytes_per_second"};
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        bool known = false;
        for (size_t i = 0; i < ARRAY_SIZE(takes) && !known; i++)
            known = strcmp(name, takes[i]) == 0;
        if (!known)
            return err_set(err, ERR_INVALID, "a local storage takes no \"%.64s\"", name);
    }
    return 0;
}

static int add_local(struct api *api, const json_t *object, struct str *name, struct arena *a,
                     struct err *err)
{
    struct local_options o = {.db = api->o.db,
                              .log = api->o.log,
                              .name = arena_z(a, json_get_str(object, "name", STR_EMPTY)),
                              .folder = arena_z(a, json_get_str(object, "folder", STR_EMPTY))};
    bool as_main = json_get_bool(object, "main", false);
    int code = o.name && o.folder ? check_local(object, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = remotes_check_new(api->o.remotes, NULL, as_main, err);
    if (code == 0)
        code = routes_add_local(api->o.routes, &o, err);
    if (code == 0 && as_main)
        code = remotes_set_main(api->o.remotes, str_z(o.name), err);
    *name = o.name ? str_z(o.name) : STR_EMPTY;
    return code;
}

/* Members that are there change *out. */
static int read_limits(const json_t *object, struct remote_limits *out, struct err *err)
{
    const struct {
        const char *name;
        uint64_t *to;
    } members[] = {{"requests_per_minute", &out->requests_per_minute},
                   {"bytes_per_second", &out->bytes_per_second}};

    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        const json_t *value = json_object_get(object, members[i].name);
        if (!value)
            continue;
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return err_set(err, ERR_INVALID, "%s must be a number from 0 on", members[i].name);
        *members[i].to = (uint64_t)json_integer_value(value);
    }
    return remotes_check_limits(out, err);
}

static int add_kind(struct api *api, const json_t *object, struct str *name, struct arena *a,
                    struct err *err)
{
    struct str kind = json_get_str(object, "kind", STR("local"));

    if (str_eq(kind, STR("remote"))) {
        *name = arena_str(a, json_get_str(object, "name", STR_EMPTY));
        return api_add_remote(api, object, a, err);
    }
    if (!str_eq(kind, STR("local")))
        return err_set(err, ERR_INVALID, "kind must be \"local\" or \"remote\"");
    return add_local(api, object, name, a, err);
}

static int add_storage(struct api *api, const json_t *object, struct str *name, struct arena *a,
                       struct err *err)
{
    struct remote_limits limits = {0};
    int code = read_limits(object, &limits, err);

    if (code == 0)
        code = add_kind(api, object, name, a, err);
    if (code == 0 && (limits.requests_per_minute || limits.bytes_per_second))
        code = remotes_set_limits(api->o.remotes, *name, &limits, err);
    return code;
}

static int send_storage(struct http_request *req, struct api *api, int status, struct str name)
{
    struct storage *s = routes_storage(api->o.routes, name);
    struct remote_entry *remotes = NULL;
    struct err err = {0};
    struct api_json j;
    size_t count = 0;

    if (!s)
        return api_send_error(req, 409, "conflict", "it was removed by somebody else");
    int code = remotes_list(api->o.remotes, http_request_arena(req), &remotes, &count, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    api_json_begin(&j);
    write_storage(&j.w, s, s == routes_main(api->o.routes), remotes, count);
    return api_json_send(req, status, &j);
}

int api_post_storage(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct err err = {0};
    struct str name = STR_EMPTY;
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    code = add_storage(api, object, &name, http_request_arena(req), &err);
    json_decref(object);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "storage.added", log_s("storage", name));
    return send_storage(req, api, 201, name);
}

int api_post_claim(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct storage *s = routes_storage(api->o.routes, name);
    struct err err = {0};

    if (!http_may_block(req))
        return ERR_AGAIN;
    int code = api_replications_on(api, &err);
    if (code == 0 && !storage_can(s, STORAGE_FOLDER))
        code =
            err_set(&err, ERR_NOT_FOUND, "this weir has no local storage " STR_FMT, STR_ARG(name));
    if (code == 0)
        code = taps_claim(api->taps, s, true, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_warn(http_request_log(req), "storage.claimed", log_s("storage", name));
    return api_send_done(req);
}

int api_post_limits(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct str name = route_param(params, "name");
    struct remote_limits limits = {0};
    struct err err = {0};
    json_t *object = NULL;
    int code;

    if (!api_read_json(req, &object, &code))
        return code;
    const struct storage *s = routes_storage(api->o.routes, name);
    if (s)
        limits = (struct remote_limits){atomic_load(&s->requests_per_minute),
                                        atomic_load(&s->bytes_per_second)};
    code = read_limits(object, &limits, &err);
    json_decref(object);
    if (code == 0)
        code = remotes_set_limits(api->o.remotes, name, &limits, &err);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "storage.limits", log_s("storage", name),
             log_u("requests_per_minute", limits.requests_per_minute),
             log_u("bytes_per_second", limits.bytes_per_second));
    return send_storage(req, api, 200, name);
}

/* --- removing --- */

static int check_policies(struct api *api, struct arena *a, struct str name, struct err *err)
{
    struct route_policy *list;
    size_t count;
    int code = route_list(api->o.routes, a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (!list[i].blocked && str_eq(list[i].storage, name))
            code = err_set(err, ERR_IN_USE, "a routing policy leads there, of the %s " STR_FMT,
                           list[i].bucket.len ? "bucket" : "user",
                           STR_ARG(list[i].bucket.len ? list[i].bucket : list[i].user));
    return code;
}

static int check_replications(struct api *api, struct str name, struct err *err)
{
    struct replication_view *view = NULL;
    const struct replication *const *all;
    int code = api->o.replications ? replications_view(api->o.replications, &view, err) : 0;
    size_t count = view ? replication_view_all(view, &all) : 0;

    for (size_t i = 0; code == 0 && i < count; i++)
        if (str_eq(all[i]->id.from, name) || str_eq(all[i]->id.to, name))
            code = err_set(err, ERR_IN_USE, "a replication of the %s " STR_FMT " uses it",
                           all[i]->id.bucket.len ? "bucket" : "user",
                           STR_ARG(all[i]->id.bucket.len ? all[i]->id.bucket : all[i]->id.user));
    replication_view_unref(view);
    return code;
}

/* Buckets go with a local storage alone: those of a remote one stay where they are. */
static int check_buckets(struct storage *s, struct arena *a, struct err *err)
{
    struct bucket_info *list;
    size_t count = 0;
    int code = storage_list_buckets(s, a, STR_EMPTY, STR_EMPTY, 1, &list, &count, err);

    if (code == 0 && count > 0)
        code = err_set(err, ERR_IN_USE, "it has buckets, " STR_FMT " among them",
                       STR_ARG(list[0].name));
    return code;
}

static int check_unused(struct api *api, struct arena *a, struct storage *s, struct err *err)
{
    int code = check_replications(api, s->name, err);

    if (code == 0) /* another weir may have set one a moment ago */
        code = routes_reload(api->o.routes, err);
    if (code == 0)
        code = check_policies(api, a, s->name, err);
    if (code == 0 && storage_can(s, STORAGE_FOLDER))
        code = check_buckets(s, a, err);
    return code == ERR_IN_USE ? err_wrap(err, code, "not without force") : code;
}

/* Before what force helps against. */
static int check_removal(struct api *api, struct storage *s, struct err *err)
{
    return storage_can(s, STORAGE_FOLDER)
               ? routes_check_removal(api->o.routes, api->o.db, s->name, err)
               : remotes_check_removal(api->o.remotes, s->name, err);
}

int api_remove_storage(struct http_request *req, struct api *api, struct str name, struct err *err)
{
    struct storage *s = routes_storage(api->o.routes, name);
    struct str force = STR_EMPTY;
    int code = api_query(req, "force", &force, err);

    if (code == 0 && !s)
        code = err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    if (code == 0)
        code = check_removal(api, s, err);
    if (code == 0 && !str_eq(force, STR("true")))
        code = check_unused(api, http_request_arena(req), s, err);
    if (code < 0)
        return code;
    return storage_can(s, STORAGE_FOLDER) ? routes_remove_local(api->o.routes, api->o.db, name, err)
                                          : remotes_remove(api->o.remotes, name, err);
}

static struct storage *find(struct api *api, const struct route_params *params, struct err *err)
{
    struct str name = route_param(params, "name");
    struct storage *s = routes_storage(api->o.routes, name);

    if (!s)
        err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    return s;
}

int api_post_test(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct err err = {0};
    struct api_json j;
    struct storage *s;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    s = find(ctx, params, &err);
    if (!s)
        return api_send_failure(req, ERR_NOT_FOUND, &err);
    code = s->ops->check(s, &err);
    api_json_begin(&j);
    json_out_member_str(&j.w, "name", s->name);
    json_out_member_bool(&j.w, "ok", code == 0);
    json_out_member_str(&j.w, "error", code == 0 ? STR_EMPTY : str_z(err.text));
    return api_json_send(req, 200, &j);
}

/* --- scrub --- */

struct scrub {
    struct api_json j; /* inside the array of findings */
    uint64_t findings, objects, bytes;
};

static int on_finding(void *ctx, const struct local_finding *f, struct err *err)
{
    struct scrub *s = ctx;

    (void)err;
    if (s->findings++ >= FINDINGS_MAX)
        return 0;
    json_out_open(&s->j.w, '{');
    json_out_member_str(&s->j.w, "damage", str_z(local_damage_text(f->damage)));
    json_out_member_str(&s->j.w, "bucket", f->bucket);
    json_out_member_str(&s->j.w, "key", f->key);
    json_out_member_str(&s->j.w, "version", f->version);
    json_out_member_str(&s->j.w, "path", f->path);
    json_out_close(&s->j.w, '}');
    return 0;
}

static int on_progress(void *ctx, struct str cursor, uint64_t objects, uint64_t bytes,
                       struct err *err)
{
    struct scrub *s = ctx;

    (void)cursor, (void)err;
    s->objects = objects;
    s->bytes = bytes;
    return 0;
}

int api_post_scrub(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct scrub scrub = {0};
    struct err err = {0};
    struct storage *s;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    s = find(ctx, params, &err);
    if (!s)
        return api_send_failure(req, ERR_NOT_FOUND, &err);
    if (!storage_can(s, STORAGE_FOLDER))
        return api_send_error(req, 501, "unsupported", "only a local storage can be scrubbed");
    api_json_begin(&scrub.j);
    json_out_key(&scrub.j.w, "damaged");
    json_out_open(&scrub.j.w, '[');
    code = local_scrub(
        s, &(struct local_scrub){.finding = on_finding, .progress = on_progress, .ctx = &scrub},
        &err);
    json_out_close(&scrub.j.w, ']');
    json_out_member_u64(&scrub.j.w, "findings", scrub.findings);
    json_out_member_u64(&scrub.j.w, "objects", scrub.objects);
    json_out_member_u64(&scrub.j.w, "bytes", scrub.bytes);
    if (code == 0)
        return api_json_send(req, 200, &scrub.j);
    api_json_drop(&scrub.j);
    return api_send_failure(req, code, &err);
}
