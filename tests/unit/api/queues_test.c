/* The calls about queues and tasks. */
#include "coord/queue.h"
#include "unit/api/api_lab.h"

static void add(struct api_lab *l, const char *id, const char *payload, int64_t delay_s)
{
    struct task t = {.type = STR("object:sync"),
                     .payload = str_z(payload),
                     .id = str_z(id),
                     .queue = STR("events1")};
    struct err err = {0};

    CHECK_OK(queue_add(l->queue, &t, delay_s, &err));
}

/* Takes the first one and gives it up. */
static void fail_one(struct api_lab *l, const char *why)
{
    const struct str name = STR("events1");
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    CHECK_OK(queue_take(l->queue, &a, &name, 1, &t, &err));
    CHECK_OK(queue_archive(l->queue, &t, str_z(why), &err));
    arena_release(&a);
}

static const json_t *row(struct api_lab *l, const char *list, size_t i)
{
    return json_array_get(json_object_get(l->json, list), i);
}

static size_t rows(struct api_lab *l, const char *list)
{
    return json_array_size(json_object_get(l->json, list));
}

TEST(api_queues, queues_are_counted_by_state)
{
    struct api_lab l;

    api_lab_start(&l);
    api_call(&l, "GET /api/v1/queues", NULL, 200);
    CHECK_INT(rows(&l, "queues"), 0);
    add(&l, "a", "{}", 0);
    add(&l, "b", "{}", 0);
    add(&l, "later", "{}", 3600);
    fail_one(&l, "no luck");
    api_call(&l, "GET /api/v1/queues", NULL, 200);
    const json_t *q = row(&l, "queues", 0);
    CHECK_STR(json_get_str(q, "name", STR("")), STR("events1"));
    CHECK_INT(json_get_i64(q, "pending", -1), 1);
    CHECK_INT(json_get_i64(q, "scheduled", -1), 1);
    CHECK_INT(json_get_i64(q, "archived", -1), 1);
    CHECK_INT(json_get_i64(q, "failed", -1), 1);
    CHECK(!json_get_bool(q, "paused", true));
    api_lab_stop(&l);
}

TEST(api_queues, tasks_are_shown_with_payload_error_and_time)
{
    struct api_lab l;

    api_lab_start(&l);
    add(&l, "bad", "not JSON", 0);
    fail_one(&l, "storage \"x\" is away");
    add(&l, "later", "{\"Bucket\":\"b\"}", 3600);
    api_call(&l, "GET /api/v1/queues/events1/tasks/later", NULL, 200);
    CHECK_STR(api_text(&l, "state"), STR("scheduled"));
    CHECK_STR(api_text(&l, "type"), STR("object:sync"));
    CHECK_STR(json_get_str(json_object_get(l.json, "payload"), "Bucket", STR("")), STR("b"));
    int64_t in = json_get_i64(l.json, "due_in_s", 0);
    CHECK(in > 3000 && in <= 3600);
    CHECK_INT(api_text(&l, "due").len, 24);
    api_call(&l, "GET /api/v1/queues/events1/tasks/bad", NULL, 200);
    CHECK_STR(api_text(&l, "state"), STR("archived"));
    CHECK_STR(api_text(&l, "error"), STR("storage \"x\" is away"));
    CHECK_STR(api_text(&l, "payload"), STR("not JSON"));
    api_call(&l, "GET /api/v1/queues/events1/tasks/none", NULL, 404);
    CHECK_STR(api_error_text(&l), STR("no task none in queue events1"));
    api_lab_stop(&l);
}

TEST(api_queues, tasks_come_in_pages_over_all_states)
{
    struct api_lab l;

    api_lab_start(&l);
    add(&l, "a", "{}", 0);
    add(&l, "b", "{}", 0);
    add(&l, "c", "{}", 0);
    add(&l, "d", "{}", 3600);
    add(&l, "e", "{}", 7200);
    fail_one(&l, "why"); /* a */
    api_call(&l, "GET /api/v1/queues/events1/tasks", NULL, 200);
    CHECK_INT(rows(&l, "tasks"), 5);
    api_call(&l, "GET /api/v1/queues/events1/tasks?after=1&limit=3", NULL, 200);
    CHECK_INT(rows(&l, "tasks"), 3);
    CHECK_STR(json_get_str(row(&l, "tasks", 0), "id", STR("")), STR("c"));
    CHECK_STR(json_get_str(row(&l, "tasks", 1), "id", STR("")), STR("d"));
    CHECK_STR(json_get_str(row(&l, "tasks", 2), "id", STR("")), STR("e"));
    CHECK_STR(api_text(&l, "next"), STR("4"));
    api_call(&l, "GET /api/v1/queues/events1/tasks?after=4", NULL, 200);
    CHECK_INT(rows(&l, "tasks"), 1);
    CHECK_STR(json_get_str(row(&l, "tasks", 0), "id", STR("")), STR("a"));
    api_call(&l, "GET /api/v1/queues/events1/tasks?state=scheduled", NULL, 200);
    CHECK_INT(rows(&l, "tasks"), 2);
    api_call(&l, "GET /api/v1/queues/events1/tasks?state=lost", NULL, 400);
    api_call(&l, "GET /api/v1/queues/events1/tasks?limit=1001", NULL, 400);
    CHECK_STR(api_error_text(&l), STR("limit must be 1 to 1000"));
    api_call(&l, "GET /api/v1/queues/events2/tasks", NULL, 200);
    api_call(&l, "GET /api/v1/queues/nothing/tasks", NULL, 404);
    CHECK_STR(api_error_text(&l), STR("there is no queue nothing"));
    api_lab_stop(&l);
}

TEST(api_queues, a_task_is_run_now_or_deleted_and_only_a_running_one_cancelled)
{
    const struct str name = STR("events1");
    struct api_lab l;
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    api_lab_start(&l);
    add(&l, "a", "{}", 3600);
    api_call(&l, "POST /api/v1/queues/events1/tasks/a/cancel", "{}", 409);
    CHECK_STR(api_error_text(&l), STR("task a is scheduled, not running; delete it instead"));
    api_call(&l, "POST /api/v1/queues/events1/tasks/a/run", "{}", 204);
    CHECK_OK(queue_take(l.queue, &a, &name, 1, &t, &err));
    api_call(&l, "POST /api/v1/queues/events1/tasks/a/cancel", "{}", 204);
    api_call(&l, "DELETE /api/v1/queues/events1/tasks/a", NULL, 409);
    CHECK_STR(api_error_text(&l), STR("task a is running"));
    CHECK_OK(queue_archive(l.queue, &t, STR("x"), &err));
    api_call(&l, "DELETE /api/v1/queues/events1/tasks/a", NULL, 204);
    api_call(&l, "DELETE /api/v1/queues/events1/tasks/a", NULL, 404);
    api_call(&l, "POST /api/v1/queues/events1/tasks/a/run", "{}", 404);
    arena_release(&a);
    api_lab_stop(&l);
}

TEST(api_queues, a_paused_queue_gives_no_tasks_until_it_is_resumed)
{
    const struct str name = STR("events1");
    struct api_lab l;
    struct arena a = {0};
    struct task t;
    struct err err = {0};

    api_lab_start(&l);
    api_call(&l, "PUT /api/v1/queues/events1/pause", NULL, 204);
    add(&l, "a", "{}", 0);
    CHECK_INT(queue_take(l.queue, &a, &name, 1, &t, &err), ERR_NOT_FOUND);
    api_call(&l, "GET /api/v1/queues", NULL, 200);
    CHECK(json_get_bool(row(&l, "queues", 0), "paused", false));
    api_call(&l, "PUT /api/v1/queues/events1/resume", NULL, 204);
    CHECK_OK(queue_take(l.queue, &a, &name, 1, &t, &err));
    api_call(&l, "PUT /api/v1/queues/nothing/pause", NULL, 404);
    arena_release(&a);
    api_lab_stop(&l);
}
