/* Storages: which there are, adding one, whether it works, whether what it holds is whole. */
#include "api/api_int.h"
#include "object/local.h"
#include "route/route.h"

enum { FINDINGS_MAX = 1000 /* listed; all are counted */ };

static void write_storage(struct json_out *w, const struct storage *s, bool is_main)
{
    json_out_open(w, '{');
    json_out_member_str(w, "name", s->name);
    json_out_member_str(w, "kind", str_z(s->ops->kind));
    json_out_member_bool(w, "main", is_main);
    json_out_close(w, '}');
}

int api_get_storages(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(api->o.routes, all, ARRAY_SIZE(all));
    const struct storage *main_storage = routes_main(api->o.routes);
    struct buf body = {0};
    struct json_out w;
    int code;

    (void)params;
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_key(&w, "storages");
    json_out_open(&w, '[');
    for (size_t i = 0; i < count; i++)
        write_storage(&w, all[i], all[i] == main_storage);
    json_out_close(&w, ']');
    json_out_close(&w, '}');
    code = api_send_json(req, 200, &body);
    buf_release(&body);
    return code;
}

static int add_storage(struct api *api, const json_t *object, struct str *name, struct arena *a,
                       struct err *err)
{
    struct local_options o = {.db = api->o.db, .log = api->o.log};

    if (!str_eq(json_get_str(object, "kind", STR("local")), STR("local")))
        return err_set(err, ERR_INVALID, "kind must be \"local\"");
    o.name = arena_z(a, json_get_str(object, "name", STR_EMPTY));
    o.folder = arena_z(a, json_get_str(object, "folder", STR_EMPTY));
    if (!o.name || !o.folder)
        return err_code(err, ERR_NO_MEMORY);
    *name = str_z(o.name);
    return routes_add_local(api->o.routes, &o, err);
}

int api_post_storage(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct api *api = ctx;
    struct err err = {0};
    struct str name = STR_EMPTY;
    struct buf body = {0};
    struct json_out w;
    json_t *object = NULL;
    int code;

    (void)params;
    if (!http_may_block(req))
        return ERR_AGAIN;
    code = api_read_json(req, &object, &err);
    if (code == ERR_CLOSED || code == ERR_TIMEOUT)
        return code; /* the peer's doing */
    if (code == 0)
        code = add_storage(api, object, &name, http_request_arena(req), &err);
    json_decref(object);
    if (code < 0)
        return api_send_failure(req, code, &err);
    log_info(http_request_log(req), "storage.added", log_s("storage", name));
    json_out_init(&w, &body);
    write_storage(&w, routes_storage(api->o.routes, name), false);
    code = api_send_json(req, 201, &body);
    buf_release(&body);
    return code;
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
    struct buf body = {0};
    struct json_out w;
    struct storage *s;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    s = find(ctx, params, &err);
    if (!s)
        return api_send_failure(req, ERR_NOT_FOUND, &err);
    code = s->ops->check(s, &err);
    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "name", s->name);
    json_out_member_bool(&w, "ok", code == 0);
    json_out_member_str(&w, "error", code == 0 ? STR_EMPTY : str_z(err.text));
    json_out_close(&w, '}');
    code = api_send_json(req, 200, &body);
    buf_release(&body);
    return code;
}

/* --- scrub --- */

struct scrub {
    struct json_out w; /* inside the array of findings */
    uint64_t findings, objects, bytes;
};

static int on_finding(void *ctx, const struct local_finding *f, struct err *err)
{
    struct scrub *s = ctx;

    (void)err;
    if (s->findings++ >= FINDINGS_MAX)
        return 0;
    json_out_open(&s->w, '{');
    json_out_member_str(&s->w, "damage", str_z(local_damage_text(f->damage)));
    json_out_member_str(&s->w, "bucket", f->bucket);
    json_out_member_str(&s->w, "key", f->key);
    json_out_member_str(&s->w, "version", f->version);
    json_out_member_str(&s->w, "path", f->path);
    json_out_close(&s->w, '}');
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
    struct buf body = {0};
    struct storage *s;
    int code;

    if (!http_may_block(req))
        return ERR_AGAIN;
    s = find(ctx, params, &err);
    if (!s)
        return api_send_failure(req, ERR_NOT_FOUND, &err);
    if (strcmp(s->ops->kind, "local") != 0)
        return api_send_error(req, 501, "unsupported", "only a local storage can be scrubbed");
    json_out_init(&scrub.w, &body);
    json_out_open(&scrub.w, '{');
    json_out_key(&scrub.w, "damaged");
    json_out_open(&scrub.w, '[');
    code = local_scrub(
        s, &(struct local_scrub){.finding = on_finding, .progress = on_progress, .ctx = &scrub},
        &err);
    json_out_close(&scrub.w, ']');
    json_out_member_u64(&scrub.w, "findings", scrub.findings);
    json_out_member_u64(&scrub.w, "objects", scrub.objects);
    json_out_member_u64(&scrub.w, "bytes", scrub.bytes);
    json_out_close(&scrub.w, '}');
    code = code < 0 ? api_send_failure(req, code, &err) : api_send_json(req, 200, &body);
    buf_release(&body);
    return code;
}
