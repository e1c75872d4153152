/* POST /notify/<storage>: who may, and what is answered. */
#include "api/api_int.h"
#include "unit/api/api_lab.h"

#include <stdio.h>

#define RECORD(bucket, key)                                                                        \
    "{\"eventName\":\"ObjectCreated:Put\",\"s3\":{\"bucket\":{\"name\":\"" bucket "\"},"           \
    "\"object\":{\"key\":\"" key "\"}}}"

struct teller {
    struct api_lab l;
    char token[128], with_query[256];
};

/* A bucket "box" of the remote storage "far" is replicated to the local one. */
static void start(struct teller *t)
{
    struct replication_new n = {
        .id = {STR("root"), STR("box"), STR("far"), STR("local"), STR_EMPTY}};
    struct err err = {0};

    api_lab_start(&t->l);
    api_call(&t->l, "POST /api/v1/storages",
             "{\"name\":\"far\",\"kind\":\"remote\",\"url\":\"http://127.0.0.1:1\"}", 201);
    CHECK_OK(replication_add(t->l.replications, &n, STR("far"), &err));
    api_call(&t->l, "GET /api/v1/storages/far/notify", NULL, 200);
    CHECK_STR(api_text(&t->l, "path"), STR("/notify/far"));
    snprintf(t->token, sizeof(t->token), STR_FMT, STR_ARG(api_text(&t->l, "token")));
    snprintf(t->with_query, sizeof(t->with_query), "POST /notify/far?token=%s", t->token);
}

static int64_t events(struct teller *t)
{
    api_call(&t->l, "GET /api/v1/replications/root:box:far:local", NULL, 200);
    return json_get_i64(t->l.json, "events", -1);
}

TEST(api_notify, a_storage_shows_its_token_and_nobody_else_is_heard)
{
    static const char body[] = "{\"Records\":[" RECORD("box", "k") "]}";
    struct teller t;
    char text[256];

    start(&t);
    CHECK_INT(strlen(t.token), 64);
    api_call_as(&t.l, NULL, "POST /notify/far", body, 401);
    api_call_as(&t.l, NULL, "POST /notify/far?token=", body, 401);
    api_call_as(&t.l, NULL, "POST /notify/far?token=0", body, 401);
    api_call(&t.l, "POST /notify/far", body, 401); /* an administrator's keys are no token */
    snprintf(text, sizeof(text), "POST /notify/local?token=%s", t.token);
    api_call_as(&t.l, NULL, text, body, 401);
    CHECK_INT(events(&t), 0);
    api_call_as(&t.l, NULL, t.with_query, body, 200);
    CHECK_INT(json_get_i64(t.l.json, "recorded", -1), 1);
    CHECK_INT(events(&t), 1);
    snprintf(text, sizeof(text), "anybody:%s", t.token);
    api_call_as(&t.l, text, "POST /notify/far", body, 200);
    api_call_as(&t.l, text, "POST /notify/far?token=0", body, 200);
    for (size_t i = 0; i < GUESSES_BUCKETS; i++)
        atomic_store(&t.l.api->auth.guesses.full_at[i], UINT64_MAX / 2);
    api_call_as(&t.l, NULL, t.with_query, body, 429);
    api_lab_stop(&t.l);
}

TEST(api_notify, what_is_not_replicated_is_taken_and_left_out)
{
    struct teller t;

    start(&t);
    api_call_as(&t.l, NULL, t.with_query,
                "{\"Records\":[" RECORD("other", "k") "," RECORD("box", "k") ",{}]}", 200);
    CHECK_INT(json_get_i64(t.l.json, "records", -1), 3);
    CHECK_INT(json_get_i64(t.l.json, "recorded", -1), 1);
    api_call_as(&t.l, NULL, t.with_query, "{\"Event\":\"s3:TestEvent\"}", 200);
    CHECK_INT(json_get_i64(t.l.json, "records", -1), 0);
    api_lab_stop(&t.l);
}

TEST(api_notify, what_cannot_be_read_is_refused)
{
    struct teller t;
    char *large = xcalloc(1, 1100 * 1024);

    start(&t);
    memset(large, ' ', 1100 * 1024 - 1);
    api_call_as(&t.l, NULL, t.with_query, "{\"Records\":7}", 400);
    api_call_as(&t.l, NULL, t.with_query, "{", 400);
    api_call_as(&t.l, NULL, t.with_query, large, 413);
    api_call_as(&t.l, NULL, "GET /notify/far", NULL, 405);
    api_call(&t.l, "GET /api/v1/storages/nowhere/notify", NULL, 404);
    CHECK_INT(events(&t), 0);
    free(large);
    api_lab_stop(&t.l);
}

TEST(api_notify, notify_goes_with_a_bucket_of_a_remote_storage_and_an_address)
{
    struct teller t;

    start(&t);
    api_call(&t.l, "POST /api/v1/replications",
             "{\"bucket\":\"box\",\"user\":\"root\",\"to\":\"local\",\"notify\":\"here\"}", 400);
    CHECK(memmem(api_error_text(&t.l).p, api_error_text(&t.l).len, "ARN", 3));
    api_call(&t.l, "POST /api/v1/replications",
             "{\"user\":\"root\",\"to\":\"far\",\"notify\":\"http://x\"}", 400);
    api_call(&t.l, "POST /api/v1/replications",
             "{\"bucket\":\"own\",\"user\":\"root\",\"to\":\"far\",\"notify\":\"http://x\"}", 400);
    CHECK(memmem(api_error_text(&t.l).p, api_error_text(&t.l).len, "weir's own", 10));
    api_lab_stop(&t.l);
}
