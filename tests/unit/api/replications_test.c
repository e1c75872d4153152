/* The calls about replications. */
#include "replica/rest/rest.h"
#include "object/bucket.h"
#include "replica/first.h"
#include "route/route.h"
#include "unit/api/api_lab.h"

#include <stdio.h>

/* Storages local and disk2, and the bucket on the first; of the first administrator. */
static void start(struct api_lab *l, const char *bucket)
{
    struct bucket_info info = {.name = str_z(bucket), .owner = USER_ROOT};
    struct storage *s;
    struct err err = {0};
    char body[512];

    api_lab_start(l);
    s = routes_main(l->routes);
    CHECK_OK(s->ops->create_bucket(s, &info, &err));
    snprintf(body, sizeof(body), "{\"name\":\"disk2\",\"kind\":\"local\",\"folder\":\"%s/disk2\"}",
             test_dir());
    api_call(l, "POST /api/v1/storages", body, 201);
}

static const json_t *row(struct api_lab *l, size_t i)
{
    return json_array_get(json_object_get(l->json, "replications"), i);
}

static size_t rows(struct api_lab *l)
{
    api_call(l, "GET /api/v1/replications", NULL, 200);
    return json_array_size(json_object_get(l->json, "replications"));
}

TEST(api_replications, an_id_is_read_as_it_was_written)
{
    static const struct replication_id ids[] = {
        {{"u", 1}, {"bucket", 6}, {"a", 1}, {"b", 1}, {NULL, 0}},
        {{"u:%", 3}, {"b:k", 3}, {"a%3A", 4}, {":", 1}, {"x:y", 3}},
        {{"u", 1}, {NULL, 0}, {"a", 1}, {"b", 1}, {NULL, 0}},
    };
    static const char *const wrong[] = {
        "", "u", "u:b:c", "u:b:c:", ":b:c:d", "u:b::d", "u:b:c:d:e:f", "u:b:c%:d"};
    struct arena a = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        struct buf text = {0};
        struct replication_id got;
        replication_id_write(&text, &ids[i]);
        CHECK_OK(replication_id_read(&got, &a, buf_str(&text), &err));
        CHECK(first_same(&got, &ids[i]));
        buf_release(&text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct replication_id got;
        CHECK_INT(replication_id_read(&got, &a, str_z(wrong[i]), &err), ERR_NOT_FOUND);
    }
    arena_release(&a);
}

TEST(api_replications, one_is_added_with_its_first_task_and_listed)
{
    struct api_lab l;
    struct task_info info;
    struct err err = {0};

    start(&l, "photos");
    api_call(&l, "POST /api/v1/replications",
             "{\"bucket\":\"photos\",\"to\":\"disk2\",\"priority\":2}", 201);
    CHECK_STR(api_text(&l, "id"), STR("root:photos:local:disk2"));
    CHECK_STR(api_text(&l, "state"), STR("listing"));
    CHECK_OK(
        queue_task(l.queue, &l.arena, STR("events3"), STR("cb:local:disk2:photos"), &info, &err));
    CHECK_STR(info.task.type, STR("bucket:create"));
    CHECK_INT(rows(&l), 1);
    CHECK_STR(json_get_str(row(&l, 0), "user", STR("")), STR("root"));
    CHECK_INT(json_get_i64(row(&l, 0), "priority", -1), 2);
    api_call(&l, "GET /api/v1/replications?to=local", NULL, 200);
    CHECK_INT(json_array_size(json_object_get(l.json, "replications")), 0);
    api_call(&l, "GET /api/v1/replications?user=nobody", NULL, 404);
    api_call(&l, "POST /api/v1/replications", "{\"bucket\":\"photos\",\"to\":\"disk2\"}", 409);
    api_call(&l, "GET /api/v1/replications/root:photos:local:nowhere", NULL, 404);
    CHECK_STR(api_error_text(&l), STR("there is no replication root:photos:local:nowhere"));
    api_lab_stop(&l);
}

TEST(api_replications, what_cannot_work_is_refused)
{
    static const struct {
        const char *body;
        int status;
        const char *text;
    } cases[] = {
        {"{\"bucket\":\"photos\"}", 400, "to is required"},
        {"{\"to\":\"disk2\"}", 400, "name a bucket, or a user to replicate all of its buckets"},
        {"{\"bucket\":1,\"to\":\"disk2\"}", 400, "bucket must be a string"},
        {"{\"bucket\":\"photos\",\"to\":\"disk2\",\"priority\":-1}", 400,
         "priority must be 0 to 5"},
        {"{\"bucket\":\"photos\",\"to\":\"disk2\",\"priority\":\"1\"}", 400,
         "priority must be a whole number"},
        {"{\"bucket\":\"photos\",\"to\":\"x\"}", 404,
         "there is no storage x; weir storage list shows all storages"},
        {"{\"bucket\":\"photos\",\"to\":\"local\",\"to_bucket\":\"photos\"}", 400,
         "source and destination are both storage local; name another storage, or another bucket "
         "(to_bucket)"},
        {"{\"bucket\":\"photos\",\"user\":\"x\",\"to\":\"disk2\"}", 404, "there is no user x"},
        {"{\"bucket\":\"photos\",\"from\":\"disk2\",\"to\":\"local\"}", 409,
         "the route of bucket photos leads to storage local, not to disk2; a replication must "
         "begin where clients write"},
    };
    struct api_lab l;

    start(&l, "photos");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        api_call(&l, "POST /api/v1/replications", cases[i].body, cases[i].status);
        CHECK_STR(api_error_text(&l), str_z(cases[i].text));
    }
    CHECK_INT(rows(&l), 0);
    api_lab_stop(&l);
}

TEST(api_replications, a_users_policy_takes_the_buckets_that_are_there)
{
    struct api_lab l;

    start(&l, "photos");
    api_call(&l, "POST /api/v1/replications", "{\"user\":\"root\",\"to\":\"disk2\"}", 201);
    CHECK_STR(api_text(&l, "state"), STR("policy"));
    CHECK_INT(json_array_size(json_object_get(l.json, "buckets")), 1);
    CHECK_INT(rows(&l), 2);
    CHECK_STR(json_get_str(row(&l, 0), "id", STR("")), STR("root::local:disk2"));
    api_call(&l, "PUT /api/v1/replications/root::local:disk2/pause", NULL, 400);
    api_call(&l, "POST /api/v1/replications/root::local:disk2/resync", "{}", 400);
    api_call(&l, "DELETE /api/v1/replications/root::local:disk2?buckets=true", NULL, 204);
    CHECK_INT(rows(&l), 0);
    api_lab_stop(&l);
}

TEST(api_replications, one_is_paused_resumed_and_begun_again)
{
    struct api_lab l;
    struct task_info info;
    struct err err = {0};

    start(&l, "photos");
    api_call(&l, "POST /api/v1/replications", "{\"bucket\":\"photos\",\"to\":\"disk2\"}", 201);
    api_call(&l, "PUT /api/v1/replications/root:photos:local:disk2/pause", NULL, 204);
    api_call(&l, "GET /api/v1/replications/root:photos:local:disk2", NULL, 200);
    CHECK_STR(api_text(&l, "state"), STR("paused"));
    api_call(&l, "PUT /api/v1/replications/root:photos:local:disk2/resume", NULL, 204);
    api_call(&l, "POST /api/v1/replications/root:photos:local:disk2/resync", "{}", 204);
    CHECK_OK(queue_task(l.queue, &l.arena, STR("migrate_bucket_list_obj"),
                        STR("resync:root:photos:local:disk2"), &info, &err));
    CHECK_STR(info.task.type, STR("replication:resync"));
    api_call(&l, "POST /api/v1/replications/root:photos:local:none/resync", "{}", 404);
    api_lab_stop(&l);
}

TEST(api_replications, what_failed_is_named)
{
    static const char payload[] =
        "{\"Object\":{\"Bucket\":\"photos\",\"Name\":\"a: b\",\"Version\":\"\"},\"FromStorage\":"
        "\"local\",\"ToStorage\":\"disk2\",\"ToBucket\":null,\"User\":\"root\"}";
    const struct str name = STR("events1");
    struct api_lab l;
    struct task t;
    struct err err = {0};

    start(&l, "photos");
    for (int i = 0; i < 2; i++) { /* the second one is of another replication */
        struct task failed = {.type = STR("object:sync"),
                              .payload = i ? STR("{\"User\":\"root\"}") : str_z(payload),
                              .id = i ? STR("other") : STR("one"),
                              .queue = name};
        CHECK_OK(queue_add(l.queue, &failed, 0, &err));
        CHECK_OK(queue_take(l.queue, &l.arena, &name, 1, &t, &err));
        CHECK_OK(queue_archive(l.queue, &t, STR("it is too large"), &err));
    }
    api_call(&l, "POST /api/v1/replications", "{\"bucket\":\"photos\",\"to\":\"disk2\"}", 201);
    api_call(&l, "GET /api/v1/replications/root:photos:local:disk2", NULL, 200);
    const json_t *failed = json_object_get(l.json, "failed");
    CHECK_INT(json_array_size(failed), 1);
    const json_t *first = json_array_get(failed, 0);
    CHECK_STR(json_get_str(first, "object", STR("")), STR("a: b"));
    CHECK_STR(json_get_str(first, "error", STR("")), STR("it is too large"));
    CHECK_STR(json_get_str(first, "task", STR("")), STR("one"));
    CHECK(!json_get_bool(l.json, "failed_more", true));
    api_lab_stop(&l);
}

TEST(api_replications, a_removal_queues_the_cleaning)
{
    struct api_lab l;
    struct task_info info;
    struct err err = {0};

    start(&l, "photos");
    api_call(&l, "POST /api/v1/replications",
             "{\"bucket\":\"photos\",\"to\":\"disk2\",\"to_bucket\":\"copy\"}", 201);
    api_call(&l, "DELETE /api/v1/replications/root:photos:local:disk2:copy", NULL, 204);
    CHECK_INT(rows(&l), 0);
    CHECK_OK(queue_task(l.queue, &l.arena, STR("api"), STR("clean:root:photos:local:disk2:copy"),
                        &info, &err));
    CHECK_INT(info.state, TASK_PENDING);
    api_call(&l, "DELETE /api/v1/replications/root:photos:local:disk2:copy", NULL, 404);
    CHECK_OK(queue_task(l.queue, &l.arena, STR("api"), STR("clean:root:photos:local:disk2:copy"),
                        &info, &err));
    api_lab_stop(&l);
}
