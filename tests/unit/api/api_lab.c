/* An API on a free port, and calls to it. */
#include "unit/api/api_lab.h"

#include "api/api_int.h"
#include "coord/worker.h"
#include "route/remotes.h"
#include "route/route.h"
#include "route/users.h"
#include "s3/notify/notify.h"
#include "unit/api/api_rows.h"
#include "unit/server_db.h"

#include <stdio.h>

static void open_parts(struct api_lab *l)
{
    struct err err = {0};
    char folder[256], key[256];

    snprintf(folder, sizeof(folder), "%s/objects", test_dir());
    snprintf(key, sizeof(key), "%s/secrets.key", test_dir());
    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    for (int i = 0; i < STORE_DATABASES; i++)
        CHECK_OK(store_open_embedded(&l->stores[i], l->db, i, STORE_DURABLE, NULL, &err));
    CHECK_OK(store_join(l->stores, STORE_DATABASES, &err));
    struct store *config = l->stores[3];
    l->queue = queue_new(l->stores[1]);
    CHECK_OK(replications_open(&l->replications,
                               &(struct replications_options){
                                   .app = l->stores[0], .queue = l->stores[1], .config = config},
                               &err));
    CHECK_OK(users_open(&l->users, config, key, NULL, &err));
    users_set_root(l->users, str_z(l->root.access_key), str_z(l->root.secret_key));
    CHECK_OK(routes_open(&l->routes, config, NULL, &err));
    struct local_options local = {
        .name = "local", .folder = folder, .db = l->db, .reserve_bytes = 1};
    CHECK_OK(routes_open_local(l->routes, &local, &err));
    CHECK_OK(remotes_open(&l->remotes, l->routes, config, key, NULL, &err));
    CHECK_OK(notify_open(&l->notify,
                         &(struct notify_options){.db = l->db, .config = config, .key_file = key},
                         &err));
}

void api_lab_start(struct api_lab *l)
{
    struct buf problems = {0};
    struct sock_addr address;
    struct err err = {0};
    char text[512], at[SOCK_ADDR_TEXT];
    static const struct queue_weight queues[] = {{"events1", 8}, {"events2", 12}};

    *l = (struct api_lab){.root = {"ROOTKEY", "root-secret-1234"}};
    snprintf(text, sizeof(text), "data: %s\napi:\n  listen: 127.0.0.1:0\n", test_dir());
    CHECK_OK(conf_load_text(&l->conf, "test.yaml", str_z(text), &problems));
    open_parts(l);
    ready_init(&l->ready);
    l->pool = pool_new("api", 4, 16, 0);
    l->services = (struct services){
        .conf = l->conf,
        .stores = {l->stores[0], l->stores[1], l->stores[2], l->stores[3], l->stores[4]},
        .queue = l->queue,
        .replications = l->replications,
        .users = l->users,
        .routes = l->routes,
        .remotes = l->remotes,
        .notify = l->notify,
        .pool = l->pool,
        .ready = &l->ready};
    l->replica.services = &l->services;
    l->swarm.services = &l->services;
    l->rooms[0] = (struct room_instance){&replica_room, &l->replica};
    l->rooms[1] = (struct room_instance){&swarm_room, &l->swarm};
    l->rooms[2] = (struct room_instance){&lake_room, &l->lake};
    CHECK_OK(api_start(&l->api,
                       &(struct api_options){.conf = l->conf,
                                             .db = l->db,
                                             .users = l->users,
                                             .routes = l->routes,
                                             .remotes = l->remotes,
                                             .notify = l->notify,
                                             .app = l->stores[0],
                                             .queue = l->queue,
                                             .queues = queues,
                                             .queue_count = ARRAY_SIZE(queues),
                                             .replications = l->replications,
                                             .services = &l->services,
                                             .rooms = l->rooms,
                                             .room_count = ARRAY_SIZE(l->rooms),
                                             .pool = l->pool,
                                             .ready = &l->ready,
                                             .admin = &l->root},
                       &err));
    api_address(l->api, &address);
    sock_addr_text(&address, at);
    snprintf(l->url, sizeof(l->url), "http://%s", at);
    l->client = client_new(&(struct client_options){.direct = true, .max_attempts = 1});
    buf_release(&problems);
}

void api_lab_stop(struct api_lab *l)
{
    client_free(l->client);
    api_stop(l->api, 0);
    api_free(l->api);
    pool_free(l->pool);
    ready_release(&l->ready);
    remotes_close(l->remotes);
    notify_close(l->notify);
    routes_close(l->routes);
    users_close(l->users);
    replications_close(l->replications);
    queue_free(l->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(l->stores[i]);
    db_close(l->db);
    json_decref(l->json);
    arena_release(&l->arena);
    conf_unref(l->conf);
}

static void authorize(struct buf *out, const char *keys)
{
    struct credentials c = {0};
    struct str access, secret;

    str_cut(str_z(keys), ':', &access, &secret);
    snprintf(c.access_key, sizeof(c.access_key), STR_FMT, STR_ARG(access));
    snprintf(c.secret_key, sizeof(c.secret_key), STR_FMT, STR_ARG(secret));
    credentials_basic(out, &c);
}

void api_call_as(struct api_lab *l, const char *keys, const char *request, const char *body,
                 int status)
{
    struct buf authorization = {0}, url = {0};
    struct str method, path;
    struct http_header headers[2] = {{STR("Content-Type"), STR("application/json")}};
    struct err err = {0};

    arena_reset(&l->arena);
    json_decref(l->json);
    l->json = NULL;
    str_cut(str_z(request), ' ', &method, &path);
    buf_appendf(&url, "%s" STR_FMT, l->url, STR_ARG(path));
    if (keys)
        authorize(&authorization, keys);
    headers[1] = (struct http_header){STR("Authorization"), buf_str(&authorization)};
    struct client_request r = {.method = arena_z(&l->arena, method),
                               .url = url.p,
                               .headers = headers,
                               .header_count = keys ? 2 : 1,
                               .body = body ? str_z(body) : STR_EMPTY,
                               .no_retry = true};
    CHECK_OK(client_call(l->client, &l->arena, &l->answer, &r, &err));
    if (l->answer.status != status)
        test_fail(__FILE__, __LINE__, "%s: %d " STR_FMT, request, l->answer.status,
                  STR_ARG(l->answer.body));
    if (l->answer.body.len && json_read(&l->json, l->answer.body, NULL) < 0)
        l->json = NULL;
    api_rows_check(l->api->tables, l->api->table_count, request, status, l->json);
    buf_release(&authorization);
    buf_release(&url);
}

void api_call(struct api_lab *l, const char *request, const char *body, int status)
{
    api_call_as(l, "ROOTKEY:root-secret-1234", request, body, status);
}

struct str api_text(struct api_lab *l, const char *member)
{
    return json_get_str(l->json, member, STR_EMPTY);
}

struct str api_error_code(struct api_lab *l)
{
    return json_get_str(json_object_get(l->json, "error"), "code", STR_EMPTY);
}

struct str api_error_text(struct api_lab *l)
{
    return json_get_str(json_object_get(l->json, "error"), "message", STR_EMPTY);
}
