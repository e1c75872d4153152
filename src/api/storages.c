/* API calls for storages: listing, adding, testing, removing, and scrubbing them. */
#include "api/api_int.h"
#include "coord/replication.h"
#include "object/local/local.h"
#include "object/overlay.h"
#include "route/route.h"

enum { FINDINGS_MAX = 1000 /* limit on the findings that are listed; all are counted */ };

static rest_fn storage_list, storage_add, storage_remove, storage_set_limits, storage_test,
    storage_scrub;

/* A storage as it is shown. Texts that are NULL, numbers that are not known and the remote
 * storage's booleans do not concern the storage, and are left out. */
struct storage_view {
    struct str name;
    const char *kind, *state, *folder, *style, *framing;
    bool main;
    uint64_t requests_per_minute, bytes_per_second;
    struct str url, region, ca;
    struct rest_known insecure, timeouts[REMOTE_TIMEOUTS], fixed, users;
};

/* A member of the form, or of the view. */
#define FORM(member) REST_AT(struct storage_form, member)
#define VIEW(member) REST_AT(struct storage_view, member)

/* The members of a storage in an answer, including those that only a remote storage has. */
static const struct rest_field storage_fields[] = {
    {"name", "The storage's name.", VIEW(name)},
    {"kind", "\"local\" or \"remote\".", VIEW(kind)},
    {"state", "\"missing\": its folder is not there; else empty.", VIEW(state)},
    {"main", "Is it the main storage?", REST_BOOLEAN, VIEW(main)},
    {"folder", "The folder of a local storage.", .sometimes = true, VIEW(folder)},
    {"requests_per_minute", "Requests a minute that replication may make; 0: any number.",
     REST_INTEGER, VIEW(requests_per_minute)},
    {"bytes_per_second", "Bytes a second that replication may move; 0: any number.", REST_INTEGER,
     VIEW(bytes_per_second)},
    {"url", "Address of a remote storage.", .sometimes = true, VIEW(url)},
    {"region", "Region that requests are signed for.", .sometimes = true, VIEW(region)},
    {"style", "Where the bucket's name is: \"path\" or \"host\".", .sometimes = true, VIEW(style)},
    {"framing", "How uploads are sent: \"plain\" or \"trailer\".", .sometimes = true,
     VIEW(framing)},
    {"ca", "File of the certificates that are trusted.", .sometimes = true, VIEW(ca)},
    {"insecure", "Is the certificate not checked?", REST_BOOLEAN, .sometimes = true,
     VIEW(insecure)},
    {"connect_timeout", "Longest wait for a connection.", REST_DURATION, .sometimes = true,
     VIEW(timeouts[0])},
    {"response_timeout", "Longest wait for an answer.", REST_DURATION, .sometimes = true,
     VIEW(timeouts[1])},
    {"idle_timeout", "Longest pause in a body.", REST_DURATION, .sometimes = true,
     VIEW(timeouts[2])},
    {"fixed", "Is it in the configuration file?", REST_BOOLEAN, .sometimes = true, VIEW(fixed)},
    {"users", "Users with credentials there.", REST_INTEGER, .sometimes = true, VIEW(users)},
    {0},
};

#define LIMIT_FIELDS                                                                               \
    {"requests_per_minute", "Requests a minute that replication may make; 0: any number.",         \
     REST_INTEGER,          .min = 0,                                                              \
     .max = INT64_MAX,      FORM(requests_per_minute)},                                            \
    {                                                                                              \
        "bytes_per_second", "Bytes a second that replication may move; 0: any number.",            \
            REST_INTEGER, .min = 0, .max = INT64_MAX, FORM(bytes_per_second)                       \
    }

static const struct rest_field storage_path[] = {{"name", "The storage's name.", FORM(remote.name)},
                                                 {0}};

struct storage_test {
    struct str name;
    bool ok;
    const char *error;
};

static const struct rest_row storage_rows[] = {
    {HTTP_GET, "/api/v1/storages", REST_ADMIN, "All storages.", storage_list, .list = "storages",
     .by_place = true, .item = sizeof(struct storage_view), .items = storage_fields},
    {HTTP_POST, "/api/v1/storages", REST_ADMIN,
     "Add a storage: a folder of this machine, or an S3 service.", storage_add, .status = 201,
     .in = sizeof(struct storage_form), .out = sizeof(struct storage_view),
     .body = REST_FIELDS(
         {"name", "The storage's name.", .required = true, FORM(remote.name)},
         {"kind", "\"local\" when left out.", .choices = REST_CHOICES("local", "remote"),
          FORM(kind)},
         {"main", "Make it the main storage?", REST_BOOLEAN, FORM(main)}, LIMIT_FIELDS,
         {"folder", "Local: absolute path of the folder.", FORM(folder)},
         {"url", "Remote: http:// or https:// address of the S3 service.", FORM(remote.url)},
         {"region", "Remote: region that requests are signed for; us-east-1 when left out.",
          FORM(remote.region)},
         {"style", "Remote: where the bucket's name goes; \"path\" when left out.",
          .choices = REST_CHOICES("path", "host"), FORM(style)},
         {"framing", "Remote: how uploads are sent; \"plain\" when left out.",
          .choices = REST_CHOICES("plain", "trailer"), FORM(framing)},
         {"ca", "Remote: file of the certificates to trust.", FORM(remote.ca)},
         {"insecure", "Remote: do not check the certificate?", REST_BOOLEAN, FORM(remote.insecure)},
         {"connect_timeout", "Remote: longest wait for a connection, such as 500ms.", REST_DURATION,
          .min = 1, .max = INT64_MAX, FORM(remote.times.connect_ms)},
         {"response_timeout", "Remote: longest wait for an answer, such as 30s.", REST_DURATION,
          .min = 1, .max = INT64_MAX, FORM(remote.times.response_ms)},
         {"idle_timeout", "Remote: longest pause in a body, such as 5m.", REST_DURATION, .min = 1,
          .max = INT64_MAX, FORM(remote.times.idle_ms)},
         {"user", "Remote: a user of weir's, who gets these keys there.", FORM(keys.user)},
         {"access_key", "Remote: the user's access key there.", FORM(keys.access)},
         {"secret_key", "Remote: the user's secret key there.", .secret = true, FORM(keys.secret)}),
     .answer = storage_fields},
    {HTTP_DELETE, "/api/v1/storages/{name}", REST_ADMIN,
     "Forget a storage; what it holds stays there.", storage_remove, .status = 204,
     .in_path = storage_path,
     .query = REST_FIELDS({"force", "Also when it is in use?", REST_BOOLEAN})},
    {HTTP_POST, "/api/v1/storages/{name}/limits", REST_ADMIN,
     "Limit what replication asks of the storage, for all workers together. A limit that is left "
     "out stays as it was.",
     storage_set_limits, .in = sizeof(struct storage_form), .out = sizeof(struct storage_view),
     .in_path = storage_path, .body = REST_FIELDS(LIMIT_FIELDS), .answer = storage_fields},
    {HTTP_POST, "/api/v1/storages/{name}/test", REST_ADMIN,
     "Test whether the storage is there and writable.", storage_test, .in_path = storage_path,
     .out = sizeof(struct storage_test),
     .answer = REST_FIELDS(
         {"name", "The storage's name.", REST_AT(struct storage_test, name)},
         {"ok", "Does it work?", REST_BOOLEAN, REST_AT(struct storage_test, ok)},
         {"error", "Why it does not; empty: it does.", REST_AT(struct storage_test, error)})},
    {HTTP_POST, "/api/v1/storages/{name}/scrub", REST_ADMIN,
     "Read and verify every body of a local storage, and its counts.", storage_scrub,
     .in_path = storage_path,
     .answer = REST_FIELDS(
         {"damaged", "The first 1000 findings.", REST_OBJECTS,
          .members = REST_FIELDS({"damage", "What is wrong."}, {"bucket", "The bucket."},
                                 {"key", "The object's key."}, {"version", "Its version."},
                                 {"path", "The file."})},
         {"findings", "How many findings there are.", REST_INTEGER},
         {"objects", "Objects that were read.", REST_INTEGER},
         {"bytes", "Bytes that were read.", REST_INTEGER})},
};
const struct rest_table api_storage_rows = {REST_ROWS(storage_rows)};

static struct rest_known known_bool(bool value)
{
    return (struct rest_known){true, value};
}

static void storage_view_remote(struct storage_view *v, const struct remote_entry *e)
{
    struct remote_times times = e->times;

    v->url = e->url;
    v->region = e->region.len ? e->region : STR("us-east-1");
    v->style = e->virtual_host ? "host" : "path";
    v->framing = e->trailers ? "trailer" : "plain";
    v->ca = e->ca.len ? e->ca : STR("");
    v->insecure = known_bool(e->insecure);
    v->fixed = known_bool(e->fixed);
    v->users = (struct rest_known){true, (int64_t)e->user_count};
    for (size_t i = 0; i < REMOTE_TIMEOUTS; i++) {
        uint64_t ms = *remote_time(&times, i);
        v->timeouts[i] =
            (struct rest_known){true, (int64_t)(ms ? ms : remote_timeouts[i].usual_ms)};
    }
}

/* Returns the view of a storage. `remotes` has the entries of all remote storages. */
static struct storage_view storage_view(struct storage *s, bool is_main,
                                        const struct remote_entry *remotes, size_t count)
{
    struct storage_view v = {
        .name = s->name,
        .kind = s->ops->kind,
        .state = local_is_missing(s) ? "missing" : "",
        .main = is_main,
        .folder = storage_can(s, STORAGE_FOLDER) ? local_folder(s) : NULL,
        .requests_per_minute = atomic_load(&s->requests_per_minute),
        .bytes_per_second = atomic_load(&s->bytes_per_second),
    };

    for (size_t i = 0; i < count; i++)
        if (str_eq(remotes[i].name, s->name))
            storage_view_remote(&v, &remotes[i]);
    return v;
}

static int storage_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct storage *all[ROUTES_STORAGES_MAX];
    const struct storage *main_storage = routes_main(api->o.routes);
    struct remote_entry *remotes;
    size_t remote_count;
    int code = remotes_list(api->o.remotes, c->arena, &remotes, &remote_count, err);
    size_t count = code == 0 ? routes_storages(api->o.routes, all, ARRAY_SIZE(all)) : 0;

    for (size_t i = 0; i < count; i++) {
        struct storage_view view =
            storage_view(all[i], all[i] == main_storage, remotes, remote_count);
        rest_add(c, STR_EMPTY, &view);
    }
    return code;
}

/* Answers with the storage that the call names. */
static int storage_show(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct storage *s = routes_storage(api->o.routes, rest_text(c, "name"));
    struct remote_entry *remotes = NULL;
    size_t count = 0;

    if (!s)
        return err_set(err, ERR_CONFLICT, "somebody else has just removed the storage");
    int code = remotes_list(api->o.remotes, c->arena, &remotes, &count, err);
    if (code < 0)
        return code;
    struct storage_view view = storage_view(s, s == routes_main(api->o.routes), remotes, count);
    return rest_give(c, &view);
}

/* --- adding --- */

/* Refuses members of the body that only a remote storage has. They are not ignored, so that the
 * caller notices the mistake. */
static int storage_check_local(const struct rest_call *c, struct err *err)
{
    static const char *const remote_only[] = {
        "url",          "region",   "style",           "framing",
        "ca",           "insecure", "connect_timeout", "response_timeout",
        "idle_timeout", "user",     "access_key",      "secret_key"};

    for (size_t i = 0; i < ARRAY_SIZE(remote_only); i++)
        if (rest_given(c, remote_only[i]))
            return err_set(err, ERR_INVALID, "a local storage takes no \"%s\"", remote_only[i]);
    return 0;
}

static int storage_add_local(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct storage_form *in = rest_in(c, struct storage_form);
    struct local_options o = {.db = api->o.db,
                              .log = api->o.log,
                              .name = arena_z(c->arena, in->remote.name),
                              .folder = arena_z(c->arena, in->folder)};
    int code = o.name && o.folder ? storage_check_local(c, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = remotes_check_new(api->o.remotes, NULL, in->main, err);
    if (code == 0)
        code = routes_add_local(api->o.routes, &o, err);
    if (code == 0 && in->main)
        code = remotes_set_main(api->o.remotes, in->remote.name, err);
    return code;
}

/* Sets the limits that the body has in *out. */
static int storage_read_limits(struct remote_limits *out, const struct storage_form *in,
                               struct err *err)
{
    if (in->requests_per_minute.known)
        out->requests_per_minute = (uint64_t)in->requests_per_minute.value;
    if (in->bytes_per_second.known)
        out->bytes_per_second = (uint64_t)in->bytes_per_second.value;
    return remotes_check_limits(out, err);
}

static int storage_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    const struct storage_form *in = rest_in(c, struct storage_form);
    struct str name = in->remote.name;
    struct remote_limits limits = {0};
    int code = storage_read_limits(&limits, in, err);

    if (code == 0)
        code = in->kind == STORAGE_FORM_REMOTE ? api_add_remote(c, in, err)
                                               : storage_add_local(c, err);
    if (code == 0 && (limits.requests_per_minute || limits.bytes_per_second))
        code = remotes_set_limits(api->o.remotes, name, &limits, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "storage.added", log_s("storage", name));
    return storage_show(c, err);
}

static int storage_set_limits(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    struct remote_limits limits = {0};
    const struct storage *s = routes_storage(api->o.routes, name);

    if (s)
        limits = (struct remote_limits){atomic_load(&s->requests_per_minute),
                                        atomic_load(&s->bytes_per_second)};
    int code = storage_read_limits(&limits, rest_in(c, struct storage_form), err);
    if (code == 0)
        code = remotes_set_limits(api->o.remotes, name, &limits, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "storage.limits", log_s("storage", name),
             log_u("requests_per_minute", limits.requests_per_minute),
             log_u("bytes_per_second", limits.bytes_per_second));
    return storage_show(c, err);
}

/* --- removing --- */

static int storage_check_policies(struct api *api, struct arena *a, struct str name,
                                  struct err *err)
{
    struct route_policy *list;
    size_t count;
    int code = route_list(api->o.routes, a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (!list[i].blocked && str_eq(list[i].storage, name))
            code = err_set(err, ERR_IN_USE, "a routing policy of the %s " STR_FMT " leads there",
                           list[i].bucket.len ? "bucket" : "user",
                           STR_ARG(list[i].bucket.len ? list[i].bucket : list[i].user));
    return code;
}

static int storage_check_replications(struct api *api, struct str name, struct err *err)
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

/* Checks that a local storage has no buckets. Removing it would make weir forget its buckets for
 * good, because a local storage cannot be added again. A remote storage can be added again. */
static int storage_check_buckets(struct storage *s, struct arena *a, struct err *err)
{
    struct bucket_info *list;
    size_t count = 0;
    int code = storage_list_buckets(s, a, STR_EMPTY, STR_EMPTY, 1, &list, &count, err);

    if (code == 0 && count > 0)
        code = err_set(err, ERR_IN_USE, "it has buckets, " STR_FMT " among them",
                       STR_ARG(list[0].name));
    return code;
}

static int storage_check_unused(struct api *api, struct arena *a, struct storage *s,
                                struct err *err)
{
    int code = storage_check_replications(api, s->name, err);

    /* Another process may have set a policy a moment ago, so they are checked again. */
    if (code == 0)
        code = routes_reload(api->o.routes, err);
    if (code == 0)
        code = storage_check_policies(api, a, s->name, err);
    if (code == 0 && storage_can(s, STORAGE_FOLDER))
        code = storage_check_buckets(s, a, err);
    return code == ERR_IN_USE
               ? err_wrap(err, code, "the storage is in use (force removes it all the same)")
               : code;
}

/* Checks whether the removal of the storage must be refused even with `force`. */
static int storage_check_removal(struct api *api, struct storage *s, struct err *err)
{
    return storage_can(s, STORAGE_FOLDER)
               ? routes_check_removal(api->o.routes, api->o.db, s->name, err)
               : remotes_check_removal(api->o.remotes, s->name, err);
}

static struct storage *storage_find(const struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    struct storage *s = routes_storage(api->o.routes, name);

    if (!s)
        err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
    return s;
}

static int storage_remove(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    struct storage *s = storage_find(c, err);
    int code = s ? storage_check_removal(api, s, err) : ERR_NOT_FOUND;

    if (code == 0 && !rest_bool(c, "force"))
        code = storage_check_unused(api, c->arena, s, err);
    if (code < 0)
        return code;
    code = storage_can(s, STORAGE_FOLDER) ? routes_remove_local(api->o.routes, api->o.db, name, err)
                                          : remotes_remove(api->o.remotes, name, err);
    if (code == 0)
        log_info(http_request_log(c->req), "storage.removed", log_s("storage", name));
    return code;
}

static int storage_test(struct rest_call *c, struct err *err)
{
    struct storage *s = storage_find(c, err);
    struct err why = {0};

    if (!s)
        return ERR_NOT_FOUND;
    int code = s->ops->check(s, &why);
    return rest_give(c, (&(struct storage_test){s->name, code == 0, code == 0 ? "" : why.text}));
}

/* --- scrub --- */

struct scrub {
    struct json_out *w; /* its array of findings is open */
    uint64_t findings, objects, bytes;
};

static int scrub_on_finding(void *ctx, const struct local_finding *f, struct err *err)
{
    struct scrub *s = ctx;

    (void)err;
    if (s->findings++ >= FINDINGS_MAX)
        return 0;
    json_out_open(s->w, '{');
    json_out_member_str(s->w, "damage", str_z(local_damage_text(f->damage)));
    json_out_member_str(s->w, "bucket", f->bucket);
    json_out_member_str(s->w, "key", f->key);
    json_out_member_str(s->w, "version", f->version);
    json_out_member_str(s->w, "path", f->path);
    json_out_close(s->w, '}');
    return 0;
}

static int scrub_on_progress(void *ctx, struct str cursor, uint64_t objects, uint64_t bytes,
                             struct err *err)
{
    struct scrub *s = ctx;

    (void)cursor, (void)err;
    s->objects = objects;
    s->bytes = bytes;
    return 0;
}

static int storage_scrub(struct rest_call *c, struct err *err)
{
    struct scrub scrub = {.w = c->w};
    struct storage *s = storage_find(c, err);

    if (!s)
        return ERR_NOT_FOUND;
    if (!storage_can(s, STORAGE_FOLDER))
        return err_set(err, ERR_UNSUPPORTED, "only a local storage can be scrubbed");
    json_out_key(c->w, "damaged");
    json_out_open(c->w, '[');
    int code =
        local_scrub(s,
                    &(struct local_scrub){
                        .finding = scrub_on_finding, .progress = scrub_on_progress, .ctx = &scrub},
                    err);
    json_out_close(c->w, ']');
    json_out_member_u64(c->w, "findings", scrub.findings);
    json_out_member_u64(c->w, "objects", scrub.objects);
    json_out_member_u64(c->w, "bytes", scrub.bytes);
    return code;
}
