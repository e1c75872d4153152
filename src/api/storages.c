/* API calls for storages: listing, adding, testing, removing, and scrubbing them. */
#include "api/api_int.h"
#include "coord/replication.h"
#include "object/local/local.h"
#include "object/overlay.h"
#include "route/route.h"

enum { FINDINGS_MAX = 1000 /* limit on the findings that are listed; all are counted */ };

static rest_fn storage_list, storage_add, storage_remove, storage_set_limits, storage_test,
    storage_scrub;

#define LIMIT_FIELDS                                                                               \
    {"requests_per_minute", "Requests a minute that replication may make; 0: any number.",         \
     REST_INTEGER, .min = 0, .max = INT64_MAX},                                                    \
    {                                                                                              \
        "bytes_per_second", "Bytes a second that replication may move; 0: any number.",            \
            REST_INTEGER, .min = 0, .max = INT64_MAX                                               \
    }
/* The members of a storage in an answer, including those that only a remote storage has
 * (remotes.c). */
#define STORAGE_FIELDS                                                                             \
    {"name", "The storage's name."}, {"kind", "\"local\" or \"remote\"."},                         \
        {"state", "\"missing\": its folder is not there; else empty."},                            \
        {"main", "Is it the main storage?", REST_BOOLEAN},                                         \
        {"folder", "The folder of a local storage.", .sometimes = true}, LIMIT_FIELDS,             \
        {"url", "Address of a remote storage.", .sometimes = true},                                \
        {"region", "Region that requests are signed for.", .sometimes = true},                     \
        {"style", "Where the bucket's name is: \"path\" or \"host\".", .sometimes = true},         \
        {"framing", "How uploads are sent: \"plain\" or \"trailer\".", .sometimes = true},         \
        {"ca", "File of the certificates that are trusted.", .sometimes = true},                   \
        {"insecure", "Is the certificate not checked?", REST_BOOLEAN, .sometimes = true},          \
        {"connect_timeout", "Longest wait for a connection.", .sometimes = true},                  \
        {"response_timeout", "Longest wait for an answer.", .sometimes = true},                    \
        {"idle_timeout", "Longest pause in a body.", .sometimes = true},                           \
        {"fixed", "Is it in the configuration file?", REST_BOOLEAN, .sometimes = true},            \
    {                                                                                              \
        "users", "Users with credentials there.", REST_INTEGER, .sometimes = true                  \
    }

static const struct rest_field storage_path[] = {{"name", "The storage's name."}, {0}};
static const struct rest_field storage_fields[] = {STORAGE_FIELDS, {0}};

static const struct rest_row storage_rows[] = {
    {HTTP_GET, "/api/v1/storages", REST_ADMIN, "All storages.", storage_list, .list = "storages",
     .by_place = true, .items = storage_fields},
    {HTTP_POST, "/api/v1/storages", REST_ADMIN,
     "Add a storage: a folder of this machine, or an S3 service.", storage_add, .status = 201,
     .body = REST_FIELDS(
         {"name", "The storage's name.", .required = true},
         {"kind", "\"local\" when left out.", .choices = REST_CHOICES("local", "remote")},
         {"main", "Make it the main storage?", REST_BOOLEAN}, LIMIT_FIELDS,
         {"folder", "Local: absolute path of the folder."},
         {"url", "Remote: http:// or https:// address of the S3 service."},
         {"region", "Remote: region that requests are signed for; us-east-1 when left out."},
         {"style", "Remote: where the bucket's name goes; \"path\" when left out.",
          .choices = REST_CHOICES("path", "host")},
         {"framing", "Remote: how uploads are sent; \"plain\" when left out.",
          .choices = REST_CHOICES("plain", "trailer")},
         {"ca", "Remote: file of the certificates to trust."},
         {"insecure", "Remote: do not check the certificate?", REST_BOOLEAN},
         {"connect_timeout", "Remote: longest wait for a connection, such as 500ms."},
         {"response_timeout", "Remote: longest wait for an answer, such as 30s."},
         {"idle_timeout", "Remote: longest pause in a body, such as 5m."},
         {"user", "Remote: a user of weir's, who gets these keys there."},
         {"access_key", "Remote: the user's access key there."},
         {"secret_key", "Remote: the user's secret key there.", .secret = true}),
     .answer = storage_fields},
    {HTTP_DELETE, "/api/v1/storages/{name}", REST_ADMIN,
     "Forget a storage; what it holds stays there.", storage_remove, .status = 204,
     .in_path = storage_path,
     .query = REST_FIELDS({"force", "Also when it is in use?", REST_BOOLEAN})},
    {HTTP_POST, "/api/v1/storages/{name}/limits", REST_ADMIN,
     "Limit what replication asks of the storage, for all workers together. A limit that is left "
     "out stays as it was.",
     storage_set_limits, .in_path = storage_path, .body = REST_FIELDS(LIMIT_FIELDS),
     .answer = storage_fields},
    {HTTP_POST, "/api/v1/storages/{name}/test", REST_ADMIN,
     "Test whether the storage is there and writable.", storage_test, .in_path = storage_path,
     .answer = REST_FIELDS({"name", "The storage's name."}, {"ok", "Does it work?", REST_BOOLEAN},
                           {"error", "Why it does not; empty: it does."})},
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

/* Writes the members of a storage. `remotes` has the entries of all remote storages. */
static void storage_write(struct json_out *w, struct storage *s, bool is_main,
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

static int storage_list(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct storage *all[ROUTES_STORAGES_MAX];
    const struct storage *main_storage = routes_main(api->o.routes);
    struct remote_entry *remotes;
    size_t remote_count;
    int code = remotes_list(api->o.remotes, c->arena, &remotes, &remote_count, err);
    size_t count = code == 0 ? routes_storages(api->o.routes, all, ARRAY_SIZE(all)) : 0;

    for (size_t i = 0; i < count; i++)
        if (rest_item(c, STR_EMPTY)) {
            storage_write(c->w, all[i], all[i] == main_storage, remotes, remote_count);
            rest_item_end(c);
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
    if (code == 0)
        storage_write(c->w, s, s == routes_main(api->o.routes), remotes, count);
    return code;
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
    struct local_options o = {.db = api->o.db,
                              .log = api->o.log,
                              .name = rest_text_z(c, "name"),
                              .folder = rest_text_z(c, "folder")};
    bool as_main = rest_bool(c, "main");
    int code = o.name && o.folder ? storage_check_local(c, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = remotes_check_new(api->o.remotes, NULL, as_main, err);
    if (code == 0)
        code = routes_add_local(api->o.routes, &o, err);
    if (code == 0 && as_main)
        code = remotes_set_main(api->o.remotes, str_z(o.name), err);
    return code;
}

/* Sets the limits that the body has in *out. */
static int storage_read_limits(struct remote_limits *out, const struct rest_call *c,
                               struct err *err)
{
    if (rest_given(c, "requests_per_minute"))
        out->requests_per_minute = (uint64_t)rest_integer(c, "requests_per_minute");
    if (rest_given(c, "bytes_per_second"))
        out->bytes_per_second = (uint64_t)rest_integer(c, "bytes_per_second");
    return remotes_check_limits(out, err);
}

static int storage_add(struct rest_call *c, struct err *err)
{
    struct api *api = c->ctx;
    struct str name = rest_text(c, "name");
    struct remote_limits limits = {0};
    bool remote = str_eq(rest_text(c, "kind"), STR("remote"));
    int code = storage_read_limits(&limits, c, err);

    if (code == 0)
        code = remote ? api_add_remote(c, err) : storage_add_local(c, err);
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
    int code = storage_read_limits(&limits, c, err);
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
    json_out_member_str(c->w, "name", s->name);
    json_out_member_bool(c->w, "ok", code == 0);
    json_out_member_str(c->w, "error", code == 0 ? STR_EMPTY : str_z(why.text));
    return 0;
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
