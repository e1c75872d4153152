/* A room that exists only here. It brings one thing of every kind that a room can bring, and no
 * file outside this one knows it. */
#include "cli/program.h"
#include "coord/queue.h"
#include "http/client.h"
#include "replica/room.h"
#include "server/server.h"
#include "swarm/room.h"
#include "unit/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BAKE_TYPE  "bakery:bake"
#define OVEN_QUEUE "ovens"

/* What the room has done, over the life of the test: its state ends with the server. */
static struct {
    bool light;                /* its part has started and not stopped */
    bool light_at_work;        /* the part still ran when the last task did */
    struct services *services; /* that its part was given */
    long sold;                 /* by its command */
} seen;

/* --- the room --- */

struct bakery {
    _Atomic(uint64_t) loaves;
};

static int light_start(void *state, struct services *s, struct err *err)
{
    seen.light = true;
    seen.services = s;
    return 0;
}

static bool light_stop(void *state, struct services *s)
{
    seen.light = false;
    return true;
}

static int bake(struct task_run *run, struct err *err)
{
    struct bakery *b = run->ctx;

    seen.light_at_work = seen.light;
    atomic_fetch_add(&b->loaves, 1);
    return 0;
}

static void list_tasks(void *state, room_tasks *out)
{
    vec_push(out, ((struct task_handler){BAKE_TYPE, bake, state}));
}

static int get_loaves(struct rest_call *c, struct err *err)
{
    struct bakery *b = c->ctx;

    json_out_member_u64(c->w, "loaves", atomic_load(&b->loaves));
    return 0;
}

static int sell(struct invocation *inv)
{
    seen.sold += atol(inv->args.items[0]);
    return EXIT_DONE;
}

struct bakery_numbers {
    uint64_t loaves;
};

static void count_loaves(void *state, struct metric_numbers *out)
{
    struct bakery *b = state;
    struct bakery_numbers *n = arena_new(out->arena, struct bakery_numbers);

    n->loaves = atomic_load(&b->loaves);
    metric_numbers_add(out, 0, n);
}

static const struct room_part parts[] = {{ROOM_WORK, light_start, light_stop}};
static const struct queue_weight queues[] = {{OVEN_QUEUE, 3}};
static const struct rest_row rows[] = {
    {HTTP_GET, "/api/v1/bakery", REST_ADMIN, "The loaves that were baked.", get_loaves,
     .answer = REST_FIELDS({"loaves", "How many loaves.", REST_INTEGER})},
};
static const struct rest_table table = {.rows = rows, .count = ARRAY_SIZE(rows)};
static const struct rest_table *const tables[] = {&table, NULL};
static const struct command commands[] = {
    {.name = "bakery sell",
     .arguments = "LOAVES",
     .min_args = 1,
     .max_args = 1,
     .summary = "Sell loaves",
     .run = sell},
    {0},
};
static const struct command *const command_tables[] = {commands, NULL};
static const struct metric metrics[] = {
    {"weir_bakery_loaves_total", METRIC_COUNTER, "Loaves baked.",
     METRIC_ONE(0, struct bakery_numbers, loaves)},
};

static const struct room bakery_room = {
    .name = "bakery",
    .role = "baker",
    .state_size = sizeof(struct bakery),
    ROOM_ROWS(part, parts),
    ROOM_ROWS(queue, queues),
    .tasks = list_tasks,
    .routes = tables,
    .commands = command_tables,
    ROOM_ROWS(metric, metrics),
    .count = count_loaves,
};

static const struct room *const rooms[] = {&replica_room, &swarm_room, &bakery_room};

/* --- a server with it --- */

struct lab {
    struct server server;
    struct client *client;
    struct arena arena;
};

static void lab_start(struct lab *l, const char *only)
{
    struct buf problems = {0};
    struct conf *conf = NULL;
    struct err err = {0};
    char text[512];

    *l = (struct lab){0};
    snprintf(text, sizeof(text),
             "data: %s/data\napi:\n  listen: 127.0.0.1:0\ns3:\n  listen: off\ntracker:\n"
             "  http: off\n  udp: off\nlog:\n  level: error\n",
             test_dir());
    if (conf_load_text(&conf, "test.yaml", str_z(text), &problems) < 0)
        test_fail(__FILE__, __LINE__, "%s", problems.p);
    CHECK_OK(server_start(
        &l->server,
        &(struct server_options){
            .conf = conf, .rooms = rooms, .room_count = ARRAY_SIZE(rooms), .only = only},
        &err));
    l->client = client_new(&(struct client_options){.direct = true, .max_attempts = 1});
    buf_release(&problems);
}

static void lab_stop(struct lab *l)
{
    client_free(l->client);
    arena_release(&l->arena);
    server_stop(&l->server);
}

/* The body of the answer; `admin`: with the first administrator's keys. */
static struct str get(struct lab *l, const char *path, bool admin, int status)
{
    char url[SOCK_ADDR_TEXT + 128], at[SOCK_ADDR_TEXT];
    struct buf keys = {0};
    struct sock_addr address;
    struct client_response answer;
    struct err err = {0};

    api_address(l->server.api, &address);
    sock_addr_text(&address, at);
    snprintf(url, sizeof(url), "http://%s%s", at, path);
    credentials_basic(&keys, &l->server.admin);
    struct http_header header = {STR("Authorization"), buf_str(&keys)};
    struct client_request request = {
        .method = "GET", .url = url, .headers = &header, .header_count = admin, .no_retry = true};
    CHECK_OK(client_call(l->client, &l->arena, &answer, &request, &err));
    CHECK_INT(answer.status, status);
    buf_release(&keys);
    return answer.body;
}

static bool has(struct str text, const char *part)
{
    return str_find(text, str_z(part)) >= 0;
}

static void add_task(struct lab *l)
{
    struct task t = {.type = STR(BAKE_TYPE), .payload = STR("{}"), .queue = STR(OVEN_QUEUE)};
    struct err err = {0};

    CHECK_OK(queue_add(l->server.services.queue, &t, 0, &err));
}

/* --- tests --- */

TEST(room, a_part_starts_and_stops_with_the_server)
{
    struct lab l;

    lab_start(&l, NULL);
    CHECK(seen.light);
    CHECK(seen.services == &l.server.services);
    lab_stop(&l);
    CHECK(!seen.light);
}

TEST(room, a_task_is_run_from_the_rooms_own_queue)
{
    struct lab l;

    lab_start(&l, NULL);
    CHECK(has(get(&l, "/api/v1/queues/" OVEN_QUEUE "/tasks", true, 200), "\"tasks\""));
    add_task(&l);
    CHECK_SOON(has(get(&l, "/metrics", false, 200), "\nweir_bakery_loaves_total 1\n"));
    CHECK(seen.light_at_work);
    lab_stop(&l);
}

TEST(room, tasks_wait_in_a_process_that_is_no_worker)
{
    struct lab l;

    lab_start(&l, "gateway,baker");
    add_task(&l);
    CHECK(!l.server.worker);
    CHECK(has(get(&l, "/metrics", false, 200), "\nweir_bakery_loaves_total 0\n"));
    CHECK(services_has_role(seen.services, "baker"));
    CHECK(!services_has_role(seen.services, "tracker"));
    lab_stop(&l);
}

TEST(room, a_route_answers_administrators_alone)
{
    struct lab l;

    lab_start(&l, NULL);
    CHECK_STR(get(&l, "/api/v1/bakery", true, 200), STR("{\"loaves\":0}"));
    CHECK(has(get(&l, "/api/v1/bakery", false, 401), "\"unauthorized\""));
    CHECK(has(get(&l, "/api/v1", true, 200), "/api/v1/bakery"));
    lab_stop(&l);
}

TEST(room, a_command_and_a_role_are_of_the_command_line)
{
    const char *argv[] = {"weir", "bakery", "sell", "12", NULL};
    struct program p;
    bool role = false;

    program_init(&p, rooms, ARRAY_SIZE(rooms));
    CHECK(command_find(&p.table, STR("bakery sell")));
    CHECK_INT(cli_main(&p.table, 4, (char **)argv, (const char *const[]){NULL}), EXIT_DONE);
    CHECK_INT(seen.sold, 12);
    vec_each (&p.roles, const char **, r)
        role = role || (*r && str_eq(str_z(*r), STR("baker")));
    CHECK(role);
    program_release(&p);
}
