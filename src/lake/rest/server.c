/* Calls about the server: health, configuration, setup, statistics. lakectl and lakeFS's SDKs make
 * these calls first. */
#include "lake/rest/web.h"

static rest_fn server_healthy, server_config, server_lakefs_version, server_storage, server_gc,
    server_setup_state, server_setup, server_statistics;

#define STORAGE_CONFIG_FIELDS                                                                      \
    REST_FIELDS(                                                                                   \
        {"blockstore_type", "Always \"s3\"."},                                                     \
        {"blockstore_namespace_example", "How a namespace looks."},                                \
        {"blockstore_namespace_ValidityRegex", "What a namespace must match."},                    \
        {"default_namespace_prefix", "Where namespaces lie by default.", .sometimes = true},       \
        {"pre_sign_support", "Can clients ask for presigned URLs?", REST_BOOLEAN},                 \
        {"pre_sign_support_ui", "Always false.", REST_BOOLEAN},                                    \
        {"import_support", "Can objects be imported?", REST_BOOLEAN},                              \
        {"import_validity_regex", "What the source of an import must match."},                     \
        {"pre_sign_multipart_upload", "Can clients upload parts by presigned URLs?",               \
         REST_BOOLEAN},                                                                            \
        {"blockstore_id", "Always empty."}, {"blockstore_description", "Always empty."})

static const struct rest_field version_config_fields[] = {{"version", "The version of weir."}, {0}};

static const struct rest_row server_rows[] = {
    {HTTP_GET, "/api/v1/healthcheck", REST_ANYONE, "204 as long as the process lives.",
     server_healthy, WEB_OP("healthCheck"), .quick = true, .storeless = true, .status = 204},
    {HTTP_GET, "/api/v1/config", REST_USER, "Version, storage and capabilities.", server_config,
     WEB_OP("getConfig"), .quick = true,
     .answer = REST_FIELDS(
         {"version_config", "The version.", REST_OBJECT, .members = version_config_fields},
         {"storage_config", "The storage.", REST_OBJECT, .members = STORAGE_CONFIG_FIELDS},
         {"storage_config_list", "The same storage in a list.", REST_OBJECTS,
          .members = STORAGE_CONFIG_FIELDS},
         {"capabilities_config", "Always empty.", REST_OBJECT})},
    {HTTP_GET, "/api/v1/config/version", REST_USER, "The version.", server_lakefs_version,
     WEB_OP("getLakeFSVersion"), .quick = true, .answer = version_config_fields},
    {HTTP_GET, "/api/v1/config/storage", REST_USER, "The storage.", server_storage,
     WEB_OP("getStorageConfig"), .quick = true, .answer = STORAGE_CONFIG_FIELDS},
    {HTTP_GET, "/api/v1/config/garbage-collection", REST_USER, "How garbage is collected.",
     server_gc, WEB_OP("getGarbageCollectionConfig"), .quick = true,
     .answer =
         REST_FIELDS({"grace_period", "Objects that are younger, in seconds, are never collected.",
                      REST_INTEGER})},
    {HTTP_GET, "/api/v1/setup_lakefs", REST_ANYONE, "Is weir set up? It always is.",
     server_setup_state, WEB_OP("getSetupState"), .quick = true,
     .answer =
         REST_FIELDS({"state", "Always \"initialized\"."},
                     {"comm_prefs_missing", "Always false.", REST_BOOLEAN},
                     {"login_config", "How users log in.", REST_OBJECT,
                      .members = REST_FIELDS(
                          {"RBAC", "Always \"none\"."}, {"login_url", "Always empty."},
                          {"login_cookie_names", "Names of cookies with a token.", REST_STRINGS},
                          {"logout_url", "Always empty."})})},
    {HTTP_POST, "/api/v1/setup_lakefs", REST_ANYONE, "Always 409: weir is set up by its start.",
     server_setup, WEB_OP("setup"), .body = REST_FIELDS({"username", "A name."}),
     .answer = REST_FIELDS({"access_key_id", "Never answered."})},
    {HTTP_POST, "/api/v1/statistics", REST_USER, "Takes a client's counts and keeps nothing.",
     server_statistics, WEB_OP("postStatsEvents"), .status = 204,
     .body = REST_FIELDS({"events", "The counts.", REST_OBJECTS, .required = true})},
};
const struct rest_table web_server_rows = WEB_ROWS(server_rows);

static int server_healthy(struct rest_call *c, struct err *err)
{
    (void)c;
    (void)err;
    return 0;
}

static void write_storage_config(struct rest_call *c)
{
    const struct conf *conf = web_of(c)->services->conf;
    bool presigns = *conf->s3.url;
    struct json_out *w = c->w;

    json_out_member_str(w, "blockstore_type", STR("s3"));
    json_out_member_str(w, "blockstore_namespace_example", STR("s3://example-bucket/"));
    json_out_member_str(w, "blockstore_namespace_ValidityRegex", STR("^s3://"));
    json_out_member_str(w, "default_namespace_prefix", str_z(conf->lake.space));
    json_out_member_bool(w, "pre_sign_support", presigns);
    json_out_member_bool(w, "pre_sign_support_ui", false);
    json_out_member_bool(w, "import_support", true);
    json_out_member_str(w, "import_validity_regex", STR("^s3://"));
    json_out_member_bool(w, "pre_sign_multipart_upload", presigns);
    json_out_member_str(w, "blockstore_id", STR(""));
    json_out_member_str(w, "blockstore_description", STR(""));
}

static int server_lakefs_version(struct rest_call *c, struct err *err)
{
    (void)err;
    json_out_member_str(c->w, "version", STR(WEIR_VERSION));
    return 0;
}

static int server_storage(struct rest_call *c, struct err *err)
{
    (void)err;
    write_storage_config(c);
    return 0;
}

static int server_config(struct rest_call *c, struct err *err)
{
    struct json_out *w = c->w;
    int code;

    json_out_key(w, "version_config");
    json_out_open(w, '{');
    code = server_lakefs_version(c, err);
    json_out_close(w, '}');
    json_out_key(w, "storage_config");
    json_out_open(w, '{');
    write_storage_config(c);
    json_out_close(w, '}');
    json_out_key(w, "storage_config_list");
    json_out_open(w, '[');
    json_out_open(w, '{');
    write_storage_config(c);
    json_out_close(w, '}');
    json_out_close(w, ']');
    json_out_key(w, "capabilities_config");
    json_out_open(w, '{');
    json_out_close(w, '}');
    return code;
}

static int server_gc(struct rest_call *c, struct err *err)
{
    (void)err;
    json_out_member_u64(c->w, "grace_period",
                        web_of(c)->services->conf->lake.gc_grace_ms / MS_PER_S);
    return 0;
}

static int server_setup_state(struct rest_call *c, struct err *err)
{
    struct json_out *w = c->w;

    (void)err;
    json_out_member_str(w, "state", STR("initialized"));
    json_out_member_bool(w, "comm_prefs_missing", false);
    json_out_key(w, "login_config");
    json_out_open(w, '{');
    json_out_member_str(w, "RBAC", STR("none"));
    json_out_member_str(w, "login_url", STR(""));
    json_out_key(w, "login_cookie_names");
    json_out_open(w, '[');
    json_out_str(w, STR("internal_auth_session"));
    json_out_close(w, ']');
    json_out_member_str(w, "logout_url", STR(""));
    json_out_close(w, '}');
    return 0;
}

static int server_setup(struct rest_call *c, struct err *err)
{
    (void)c;
    return err_set(err, ERR_CONFLICT, "lakeFS already initialized");
}

static int server_statistics(struct rest_call *c, struct err *err)
{
    (void)c;
    (void)err;
    return 0;
}
