/* The management calls: who may, what is refused, what they answer. */
#include "api/api_int.h"
#include "route/remotes.h"
#include "route/route.h"
#include "route/users.h"
#include "unit/api/api_lab.h"

#include <stdio.h>

/* --- who may --- */

static void forgive(struct api_lab *l)
{
    for (size_t i = 0; i < GUESSES_BUCKETS; i++)
        atomic_store(&l->api->auth.guesses.full_at[i], 0);
}

/* "POST /api/v1/users/x/keys" of a route's row. */
static const char *request_of(char out[256], const struct rest_row *route)
{
    size_t len = (size_t)snprintf(out, 256, "%s ", http_method_name(route->method));
    bool name = false;

    for (const char *p = route->path; *p; p++) {
        if (*p == '{')
            out[len++] = 'x';
        name = *p == '{' || (name && *p != '}');
        if (!name && *p != '}')
            out[len++] = *p;
    }
    out[len] = '\0';
    return out;
}

TEST(api_manage, every_call_needs_an_administrators_keys)
{
    static const char *const wrong[] = {NULL, "ROOTKEY:root-secret-123", "ROOTKEY:", ":",
                                        "PLAINKEY:plain-secret-1234"};
    struct api_lab l;
    char request[256];
    size_t closed = 0;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users",
             "{\"name\":\"plain\",\"access_key\":\"PLAINKEY\","
             "\"secret_key\":\"plain-secret-1234\"}",
             201);
    for (size_t t = 0; t < l.api->table_count; t++)
        for (size_t i = 0; i < l.api->tables[t].count; i++) {
            const struct rest_row *row = &l.api->tables[t].rows[i];
            for (size_t k = 0; row->access == REST_ADMIN && k < ARRAY_SIZE(wrong); k++) {
                const char *body = row->method == HTTP_POST ? "{}" : NULL;
                forgive(&l);
                api_call_as(&l, wrong[k], request_of(request, row), body, 401);
                CHECK_STR(api_error_code(&l), STR("unauthorized"));
                closed++;
            }
        }
    CHECK(closed > 50);
    forgive(&l);
    api_call_as(&l, NULL, "GET /api/v1/nothing/here", NULL, 401);
    api_call(&l, "GET /api/v1/nothing/here", NULL, 404);
    api_call(&l, "DELETE /api/v1/storages", NULL, 405);
    CHECK_STR(client_header(&l.answer, "Allow"), STR("GET, POST"));
    api_lab_stop(&l);
}

TEST(api_manage, any_administrator_is_let_in_with_any_of_its_keys)
{
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users",
             "{\"name\":\"ann\",\"admin\":true,\"access_key\":\"ANNKEY\","
             "\"secret_key\":\"ann-secret-1\"}",
             201);
    api_call_as(&l, "ANNKEY:ann-secret-1", "POST /api/v1/users/ann/keys",
                "{\"access_key\":\"ANNKEY2\",\"secret_key\":\"ann-secret-2\"}", 201);
    api_call_as(&l, "ANNKEY2:ann-secret-2", "GET /api/v1/users", NULL, 200);
    api_call_as(&l, "ANNKEY2:ann-secret-1", "GET /api/v1/users", NULL, 401);
    api_call_as(&l, "ANNKEY2:ann-secret-2", "DELETE /api/v1/users/ann/keys/ANNKEY", NULL, 204);
    api_call_as(&l, "ANNKEY:ann-secret-1", "GET /api/v1/users", NULL, 401);
    api_call(&l, "DELETE /api/v1/users/ann", NULL, 204);
    api_call_as(&l, "ANNKEY2:ann-secret-2", "GET /api/v1/users", NULL, 401);
    api_lab_stop(&l);
}

TEST(api_manage, wrong_keys_of_users_are_limited_as_the_first_administrators_are)
{
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users",
             "{\"name\":\"ann\",\"admin\":true,\"access_key\":\"ANNKEY\","
             "\"secret_key\":\"ann-secret-1\"}",
             201);
    /* Far in the future: no token comes back while this runs. */
    for (size_t i = 0; i < GUESSES_BUCKETS; i++)
        atomic_store(&l.api->auth.guesses.full_at[i], UINT64_MAX / 2);
    api_call_as(&l, "ANNKEY:ann-secret-1", "GET /api/v1/users", NULL, 429);
    CHECK_STR(client_header(&l.answer, "Retry-After"), STR("1"));
    forgive(&l);
    uint64_t failures = atomic_load(&l.api->auth.guesses.failures);
    api_call_as(&l, "ANNKEY:ann-secret-2", "GET /api/v1/users", NULL, 401);
    api_call_as(&l, "NOSUCH:ann-secret-2", "GET /api/v1/users", NULL, 401);
    CHECK_INT(atomic_load(&l.api->auth.guesses.failures), failures + 2);
    api_lab_stop(&l);
}

/* --- bodies --- */

TEST(api_manage, bodies_that_are_no_json_object_are_refused)
{
    static const char *const posts[] = {
        "POST /api/v1/users",    "POST /api/v1/users/root/keys", "POST /api/v1/users/root/route",
        "POST /api/v1/storages", "POST /api/v1/backup",          "POST /api/v1/buckets/b/route",
    };
    static const char *const bodies[] = {"", "{", "[]", "null", "{\"name\":}", "{}x", "\xff"};
    struct api_lab l;
    char *large = xcalloc(1, 70 * 1024), deep[600];

    api_lab_start(&l);
    memset(large, ' ', 70 * 1024 - 1);
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(posts); i++) {
        for (size_t b = 0; b < ARRAY_SIZE(bodies); b++)
            api_call(&l, posts[i], bodies[b], 400);
        api_call(&l, posts[i], deep, 413);
        api_call(&l, posts[i], large, 413);
        CHECK_STR(api_error_code(&l), STR("too_large"));
    }
    api_call(&l, "GET /api/v1/users", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "users")), 1);
    free(large);
    api_lab_stop(&l);
}

struct bad_body {
    const char *request, *body;
    int status;
    const char *code;
};

static void check_refusals(struct api_lab *l, const struct bad_body *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        api_call(l, rows[i].request, rows[i].body, rows[i].status);
        CHECK_STR(api_error_code(l), str_z(rows[i].code));
        CHECK(api_error_text(l).len > 0);
    }
}

/* --- users --- */

TEST(api_manage, users_are_added_shown_and_removed)
{
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users", "{\"name\":\"bob\",\"email\":\"b@example.org\"}", 201);
    CHECK_INT(api_text(&l, "access_key").len, 20);
    CHECK_INT(api_text(&l, "secret_key").len, 40);
    CHECK_STR(client_header(&l.answer, "Cache-Control"), STR("no-store"));
    api_call(&l, "GET /api/v1/users/bob", NULL, 200);
    CHECK_STR(api_text(&l, "email"), STR("b@example.org"));
    CHECK_INT(api_text(&l, "secret_key").len, 0);
    CHECK_INT(json_array_size(json_object_get(l.json, "keys")), 1);
    api_call(&l, "POST /api/v1/users/bob/keys", "{}", 201);
    CHECK_INT(api_text(&l, "secret_key").len, 40);
    api_call(&l, "GET /api/v1/users", NULL, 200);
    CHECK(str_find(l.answer.body, STR("secret")) < 0);
    api_call(&l, "DELETE /api/v1/users/bob", NULL, 204);
    CHECK_INT(l.answer.body.len, 0);
    api_call(&l, "GET /api/v1/users/bob", NULL, 404);
    api_lab_stop(&l);
}

TEST(api_manage, what_is_wrong_with_a_user_is_told)
{
    static const struct bad_body rows[] = {
        {"POST /api/v1/users", "{}", 400, "invalid"},
        {"POST /api/v1/users", "{\"name\":7}", 400, "invalid"},
        {"POST /api/v1/users", "{\"name\":\"a b\"}", 400, "invalid"},
        {"POST /api/v1/users", "{\"name\":\"eve\",\"access_key\":\"ABCDEF\"}", 400, "invalid"},
        {"POST /api/v1/users", "{\"name\":\"eve\",\"secret_key\":[]}", 400, "invalid"},
        {"POST /api/v1/users", "{\"name\":\"bob\"}", 409, "exists"},
        {"POST /api/v1/users", "{\"name\":\"root\"}", 409, "exists"},
        {"POST /api/v1/users/nobody/keys", "{}", 404, "not_found"},
        {"POST /api/v1/users/bob/keys", "{\"access_key\":1}", 400, "invalid"},
        {"POST /api/v1/users/root/keys", "{}", 403, "not_allowed"},
        {"DELETE /api/v1/users/nobody", NULL, 404, "not_found"},
        {"DELETE /api/v1/users/root", NULL, 403, "not_allowed"},
        {"DELETE /api/v1/users/bob/keys/NOSUCH", NULL, 404, "not_found"},
        {"DELETE /api/v1/users/nobody/keys/NOSUCH", NULL, 404, "not_found"},
        {"GET /api/v1/users/nobody", NULL, 404, "not_found"},
        {"POST /api/v1/users/nobody/route", "{\"storage\":\"local\"}", 404, "not_found"},
        {"POST /api/v1/users/bob/route", "{\"storage\":\"nowhere\"}", 404, "not_found"},
        {"POST /api/v1/users/bob/route", "{}", 400, "invalid"},
    };
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users", "{\"name\":\"bob\"}", 201);
    check_refusals(&l, rows, ARRAY_SIZE(rows));
    for (size_t i = 1; i < USER_KEYS_MAX; i++)
        api_call(&l, "POST /api/v1/users/bob/keys", "{}", 201);
    api_call(&l, "POST /api/v1/users/bob/keys", "{}", 413);
    api_lab_stop(&l);
}

/* --- storages --- */

TEST(api_manage, storages_are_added_tested_and_scrubbed)
{
    struct api_lab l;
    char body[400];

    api_lab_start(&l);
    snprintf(body, sizeof(body), "{\"name\":\"disk2\",\"folder\":\"%s/disk2\"}", test_dir());
    api_call(&l, "POST /api/v1/storages", body, 201);
    CHECK_STR(api_text(&l, "name"), STR("disk2"));
    CHECK(!json_get_bool(l.json, "main", true));
    api_call(&l, "GET /api/v1/storages", NULL, 200);
    json_t *all = json_object_get(l.json, "storages");
    CHECK_INT(json_array_size(all), 2);
    CHECK(str_ends(json_get_str(json_array_get(all, 1), "folder", STR_EMPTY), STR("/disk2")));
    api_call(&l, "POST /api/v1/storages/disk2/test", "{}", 200);
    CHECK(json_get_bool(l.json, "ok", false));
    api_call(&l, "POST /api/v1/storages/disk2/scrub", "{}", 200);
    CHECK_INT(json_get_i64(l.json, "findings", -1), 0);
    api_call(&l, "POST /api/v1/storages", body, 409);
    api_lab_stop(&l);
}

TEST(api_manage, what_is_wrong_with_a_storage_is_told)
{
    static const struct bad_body rows[] = {
        {"POST /api/v1/storages", "{}", 400, "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"UPPER\",\"folder\":\"/x\"}", 400, "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"a\",\"folder\":\"relative\"}", 400, "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"a\",\"folder\":\"/tmp/../x\"}", 400, "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"a\",\"folder\":\"/usr\"}", 400, "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"a\",\"kind\":\"tape\",\"folder\":\"/x\"}", 400,
         "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"local\",\"folder\":\"/x\"}", 409, "exists"},
        {"POST /api/v1/storages/nowhere/test", "{}", 404, "not_found"},
        {"POST /api/v1/storages/nowhere/scrub", "{}", 404, "not_found"},
        {"POST /api/v1/backup", "{}", 400, "invalid"},
        {"POST /api/v1/backup", "{\"dir\":\"/tmp/../x\"}", 400, "invalid"},
        {"POST /api/v1/backup", "{\"dir\":\"/tmp\"}", 409, "exists"},
    };
    struct api_lab l;

    api_lab_start(&l);
    check_refusals(&l, rows, ARRAY_SIZE(rows));
    api_lab_stop(&l);
}

#define FAR "{\"name\":\"far\",\"kind\":\"remote\",\"url\":\"http://127.0.0.1:1\","

TEST(api_manage, a_remote_storage_that_is_refused_leaves_nothing)
{
    static const struct bad_body rows[] = {
        {"POST /api/v1/storages", FAR "\"secret_key\":\"only-a-secret\"}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"access_key\":\"AK\",\"secret_key\":\"secret\"}", 400,
         "invalid"},
        {"POST /api/v1/storages", FAR "\"user\":\"root\",\"access_key\":\"AK\"}", 400, "invalid"},
        {"POST /api/v1/storages",
         FAR "\"user\":\"root\",\"access_key\":\"a b\",\"secret_key\":\"secret\"}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"main\":true}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"connect_timeout\":3}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"connect_timeout\":\"soon\"}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"idle_timeout\":\"0s\"}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"response_timeout\":\"2h\"}", 400, "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"disk\",\"folder\":\"/x\",\"user\":\"root\"}", 400,
         "invalid"},
        {"POST /api/v1/storages", "{\"name\":\"disk\",\"folder\":\"/x\",\"main\":true}", 400,
         "invalid"},
    };
    struct api_lab l;
    struct err err = {0};

    api_lab_start(&l);
    CHECK_OK(remotes_set_main_fixed(l.remotes, STR("local"), &err));
    check_refusals(&l, rows, ARRAY_SIZE(rows));
    api_call(&l, "GET /api/v1/storages", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "storages")), 1);
    api_lab_stop(&l);
}

static void make_bucket(struct api_lab *l, const char *name, const char *owner)
{
    struct storage *s = routes_main(l->routes);
    struct bucket_info info = {.name = str_z(name), .owner = str_z(owner)};
    struct err err = {0};

    CHECK_OK(s->ops->create_bucket(s, &info, &err));
}

TEST(api_manage, the_time_outs_of_a_remote_storage_are_shown)
{
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/storages",
             FAR "\"connect_timeout\":\"1500ms\",\"response_timeout\":\"2m\"}", 201);
    CHECK_STR(api_text(&l, "connect_timeout"), STR("1500ms"));
    CHECK_STR(api_text(&l, "response_timeout"), STR("120s"));
    CHECK_STR(api_text(&l, "idle_timeout"), STR("30s"));
    api_lab_stop(&l);
}

TEST(api_manage, a_storage_has_limits_that_can_be_changed)
{
    static const struct bad_body rows[] = {
        {"POST /api/v1/storages", FAR "\"requests_per_minute\":-1}", 400, "invalid"},
        {"POST /api/v1/storages", FAR "\"bytes_per_second\":\"much\"}", 400, "invalid"},
        {"POST /api/v1/storages/local/limits", "{\"requests_per_minute\":1e3}", 400, "invalid"},
        {"POST /api/v1/storages/nowhere/limits", "{}", 404, "not_found"},
    };
    struct api_lab l;

    api_lab_start(&l);
    check_refusals(&l, rows, ARRAY_SIZE(rows));
    api_call(&l, "POST /api/v1/storages", FAR "\"requests_per_minute\":600}", 201);
    CHECK_INT(json_get_i64(l.json, "requests_per_minute", -1), 600);
    CHECK_INT(json_get_i64(l.json, "bytes_per_second", -1), 0);
    api_call(&l, "POST /api/v1/storages/far/limits", "{\"bytes_per_second\":1000}", 200);
    CHECK_INT(json_get_i64(l.json, "requests_per_minute", -1), 600);
    CHECK_INT(json_get_i64(l.json, "bytes_per_second", -1), 1000);
    api_call(&l, "POST /api/v1/storages/far/limits", "{\"requests_per_minute\":0}", 200);
    CHECK_INT(json_get_i64(l.json, "requests_per_minute", -1), 0);
    api_call(&l, "POST /api/v1/storages/local/limits", "{\"requests_per_minute\":6}", 200);
    CHECK_INT(json_get_i64(l.json, "requests_per_minute", -1), 6);
    api_lab_stop(&l);
}

TEST(api_manage, a_bucket_is_shown_as_far_as_storages_can_be_asked)
{
    struct api_lab l;

    api_lab_start(&l);
    make_bucket(&l, "one", "root");
    api_call(&l, "POST /api/v1/storages",
             FAR "\"user\":\"root\",\"access_key\":\"AK\",\"secret_key\":\"secret\"}", 201);
    api_call(&l, "GET /api/v1/buckets/one", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "buckets")), 1);
    CHECK_INT(json_array_size(json_object_get(l.json, "unasked")), 1);
    api_call(&l, "GET /api/v1/buckets/two", NULL, 503); /* it may be there */
    CHECK(str_starts(api_error_text(&l), STR("storage far cannot be asked")));
    api_lab_stop(&l);
}

TEST(api_manage, the_keys_of_a_removed_user_on_remote_storages_are_removed_with_it)
{
    const char *key = "{\"user\":\"bob\",\"access_key\":\"AK\",\"secret_key\":\"secret\"}";
    const char *other = "{\"user\":\"root\",\"access_key\":\"AK\",\"secret_key\":\"secret\"}";
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users", "{\"name\":\"bob\",\"id\":\"id-of-bob\"}", 201);
    api_call(&l, "POST /api/v1/storages", FAR "\"region\":\"x\"}", 201);
    api_call(&l, "POST /api/v1/storages/far/credentials", key, 204);
    api_call(&l, "POST /api/v1/storages/far/credentials", other, 204);
    api_call(&l, "DELETE /api/v1/users/bob", NULL, 204);
    api_call(&l, "GET /api/v1/storages/far/credentials", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "users")), 1);
    CHECK(str_find(l.answer.body, STR("id-of-bob")) < 0);
    api_call(&l, "DELETE /api/v1/users/root", NULL, 403);
    api_call(&l, "GET /api/v1/storages/far/credentials", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "users")), 1);
    api_lab_stop(&l);
}

/* --- buckets and routes --- */

TEST(api_manage, buckets_are_listed_by_name_behind_a_name)
{
    struct api_lab l;

    api_lab_start(&l);
    make_bucket(&l, "one", "root");
    make_bucket(&l, "two", "root");
    api_call(&l, "GET /api/v1/buckets", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "buckets")), 2);
    CHECK_STR(api_text(&l, "next"), STR(""));
    api_call(&l, "GET /api/v1/buckets?limit=1", NULL, 200);
    CHECK_STR(api_text(&l, "next"), STR("one"));
    api_call(&l, "GET /api/v1/buckets?storage=local&after=one", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "buckets")), 1);
    api_call(&l, "GET /api/v1/buckets?storage=nowhere", NULL, 404);
    api_call(&l, "GET /api/v1/buckets?after=%zz", NULL, 400);
    api_call(&l, "GET /api/v1/buckets/one", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "buckets")), 1);
    json_t *one = json_array_get(json_object_get(l.json, "buckets"), 0);
    CHECK(json_is_integer(json_object_get(one, "objects")));
    CHECK(json_is_integer(json_object_get(one, "old_bytes")));
    api_call(&l, "GET /api/v1/buckets/three", NULL, 404);
    api_lab_stop(&l);
}

TEST(api_manage, what_is_wrong_with_a_route_is_told)
{
    static const struct bad_body rows[] = {
        {"POST /api/v1/buckets/one/route", "{}", 400, "invalid"},
        {"POST /api/v1/buckets/one/route", "{\"storage\":7}", 400, "invalid"},
        {"POST /api/v1/buckets/one/route", "{\"storage\":\"nowhere\"}", 404, "not_found"},
        {"POST /api/v1/buckets/new/route", "{\"storage\":\"local\"}", 404, "not_found"},
        {"POST /api/v1/buckets/one/route", "{\"storage\":\"local\",\"user\":\"nobody\"}", 404,
         "not_found"},
        {"POST /api/v1/buckets/one/route", "{\"storage\":\"local\",\"blocked\":1}", 400, "invalid"},
        {"POST /api/v1/buckets/one/route", "{\"storage\":\"nowhere\",\"blocked\":true}", 404,
         "not_found"},
    };
    struct api_lab l;

    api_lab_start(&l);
    make_bucket(&l, "one", "root");
    check_refusals(&l, rows, ARRAY_SIZE(rows));
    api_call(&l, "GET /api/v1/policies", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "policies")), 0);
    api_lab_stop(&l);
}

TEST(api_manage, a_bucket_that_is_here_is_not_routed_to_a_remote_storage)
{
    struct api_lab l;
    char body[400];

    api_lab_start(&l);
    make_bucket(&l, "one", "root");
    api_call(&l, "POST /api/v1/storages",
             "{\"name\":\"far\",\"kind\":\"remote\",\"url\":\"http://127.0.0.1:1\"}", 201);
    api_call(&l, "POST /api/v1/buckets/one/route", "{\"storage\":\"far\"}", 409);
    CHECK_STR(api_error_code(&l), STR("conflict"));
    CHECK(str_find(api_error_text(&l), STR("on storage local, and a policy does not move it")) >=
          0);
    api_call(&l, "GET /api/v1/policies", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "policies")), 0);
    snprintf(body, sizeof(body), "{\"name\":\"disk2\",\"folder\":\"%s/disk2\"}", test_dir());
    api_call(&l, "POST /api/v1/storages", body, 201);
    api_call(&l, "POST /api/v1/buckets/one/route", "{\"storage\":\"disk2\"}", 204);
    api_lab_stop(&l);
}

static void check_policy(struct api_lab *l, size_t i, const char *user, const char *bucket,
                         bool blocked)
{
    const json_t *p = json_array_get(json_object_get(l->json, "policies"), i);

    CHECK_STR(json_get_str(p, "user", STR("?")), str_z(user));
    CHECK_STR(json_get_str(p, "bucket", STR("?")), str_z(bucket));
    CHECK_STR(json_get_str(p, "storage", STR("?")), STR("local"));
    CHECK(json_get_bool(p, "blocked", !blocked) == blocked);
}

TEST(api_manage, policies_that_are_set_are_listed)
{
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "POST /api/v1/users", "{\"name\":\"bob\",\"id\":\"id-of-bob\"}", 201);
    api_call(&l, "POST /api/v1/users/bob/route", "{\"storage\":\"local\"}", 204);
    api_call(&l, "POST /api/v1/buckets/pics/route", "{\"storage\":\"local\",\"user\":\"bob\"}",
             204);
    api_call(&l, "POST /api/v1/buckets/bad/route", "{\"storage\":\"local\",\"blocked\":true}", 204);
    api_call(&l, "GET /api/v1/policies", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "policies")), 3);
    check_policy(&l, 0, "", "bad", true);
    check_policy(&l, 1, "bob", "", false);
    check_policy(&l, 2, "bob", "pics", false);
    api_call(&l, "POST /api/v1/buckets/bad/route", "{\"storage\":\"local\",\"blocked\":false}",
             204);
    api_call(&l, "POST /api/v1/buckets/pics/route", "{\"storage\":\"\",\"user\":\"bob\"}", 204);
    api_call(&l, "DELETE /api/v1/users/bob", NULL, 204);
    api_call(&l, "GET /api/v1/policies", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "policies")), 1);
    check_policy(&l, 0, "", "", false);
    CHECK(str_find(l.answer.body, STR("id-of-bob")) >= 0);
    api_lab_stop(&l);
}
