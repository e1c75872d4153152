/* A gateway on a free port, and signed requests to it. */
#include "unit/s3/gateway_lab.h"

#include "base/clock.h"
#include "s3/gateway/gateway_int.h"
#include "sign/sign.h"
#include "unit/server_db.h"
#include "unit/shard/sharded_home.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *id, *name, *access, *secret;
} people[] = {
    [ALICE] = {"alice-id", "alice", "AKIAALICE00000000001", "alice-secret-alice-secret"},
    [BOB] = {"bob-id", "bob", "AKIABOB0000000000001", "bob-secret-bob-secret-bob"},
};

static void add_users(struct gate *g, const char *dir)
{
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    char key_file[256];

    snprintf(key_file, sizeof(key_file), "%s/key", dir);
    CHECK_OK(users_open(&g->users, g->store, key_file, NULL, &err));
    for (size_t i = 0; i < ARRAY_SIZE(people); i++) {
        struct user_key key = {str_z(people[i].access), str_z(people[i].secret)};
        struct user added, wanted = {.id = str_z(people[i].id),
                                     .name = str_z(people[i].name),
                                     .keys = &key,
                                     .key_count = 1};
        CHECK_OK(users_add(g->users, &a, &wanted, &added, &err));
    }
    arena_release(&a);
}

void gate_notify(struct gate *g, const struct notify_options *limits)
{
    struct notify_options o = limits ? *limits : (struct notify_options){0};
    struct err err = {0};
    char key_file[256];

    notify_close(g->notify);
    snprintf(key_file, sizeof(key_file), "%s/key", g->dir);
    o.db = g->db;
    o.config = g->store;
    o.key_file = key_file;
    o.retry_ms = 10;
    o.direct = true;
    CHECK_OK(notify_open(&g->notify, &o, &err));
    if (g->gateway)
        g->gateway->o.notify = g->notify;
}

void gate_access_log(struct gate *g, uint64_t interval_ms, uint64_t waiting_max)
{
    struct access_log_options o = {.db = g->db,
                                   .routes = g->routes,
                                   .notify = g->notify,
                                   .interval_ms = interval_ms,
                                   .waiting_max = waiting_max};
    struct err err = {0};

    access_log_close(g->access_log);
    CHECK_OK(access_log_open(&g->access_log, &o, &err));
    if (g->gateway)
        g->gateway->o.access_log = g->access_log;
}

static const struct change_capture *capture, *first_capture;

void gate_set_capture(const struct change_capture *wanted)
{
    first_capture = wanted;
}

static bool gate_waits;

void gate_set_waits(bool waits)
{
    gate_waits = waits;
}

/* Serves a request on a thread that may wait. */
static int handle_waiting(struct http_request *req, void *ctx)
{
    return http_may_block(req) ? gateway_handle(req, ctx) : ERR_AGAIN;
}

void gate_start(struct gate *g)
{
    capture = first_capture;
    gate_start_in(g, test_dir());
    capture = NULL;
}

void gate_start_in(struct gate *g, const char *dir)
{
    struct err err = {0};
    char folder[256];

    *g = (struct gate){.dir = dir};
    snprintf(folder, sizeof(folder), "%s/objects", dir);
    CHECK_OK(server_db_open(&g->db, dir, &err));
    CHECK_OK(store_open_embedded(&g->store, g->db, 3, STORE_DURABLE, NULL, &err));
    CHECK_OK(routes_open(&g->routes, g->store, NULL, &err));
    struct local_options local = {.name = "local",
                                  .folder = folder,
                                  .db = g->db,
                                  .reserve_bytes = 1,
                                  .inline_max = 1000,
                                  .part_min = 100};
    CHECK_OK(routes_open_local(g->routes, &local, &err));
    add_users(g, dir);
    snprintf(g->key_file, sizeof(g->key_file), "%s/encryption.keys", dir);
    gate_notify(g, NULL);
    gate_access_log(g, 0, 0);
    g->gateway = gateway_new(&(struct gateway_options){.routes = g->routes,
                                                       .max_buckets = 20,
                                                       .users = g->users,
                                                       .domain = STR("s3.test"),
                                                       .website_domain = STR("web.test"),
                                                       .notify = g->notify,
                                                       .access_log = g->access_log,
                                                       .capture = capture,
                                                       .allow_v2 = true,
                                                       .key_file = g->key_file});
    lab_start(&g->lab,
              (struct http_server_options){.handler = gate_waits ? handle_waiting : gateway_handle,
                                           .ctx = g->gateway});
    g->fd = lab_dial(&g->lab);
}

void gate_stop_serving(struct gate *g)
{
    close(g->fd);
    buf_release(&g->raw);
    lab_end(&g->lab);
    gateway_free(g->gateway);
    access_log_close(g->access_log);
    notify_close(g->notify);
    users_close(g->users);
}

void gate_shard(struct gate *g)
{
    static const struct str bounds[] = {STR("a"),  STR("b/"),  STR("c"),   STR("f"),
                                        STR("k/"), STR("key"), STR("log"), STR("p")};
    static const uint32_t places[] = {3, 0, 1, 4, 2, 1, 0, 2, 4};

    g->shards = xzalloc(sizeof(*g->shards));
    sharded_home_open(g->shards, g->routes,
                      &(struct shard_layout){bounds, ARRAY_SIZE(bounds), places});
}

void gate_stop(struct gate *g)
{
    gate_stop_serving(g);
    if (g->shards)
        sharded_home_close(g->shards);
    free(g->shards);
    routes_close(g->routes);
    store_close(g->store);
    db_close(g->db);
}

struct user_key gate_key(enum who who)
{
    return (struct user_key){str_z(people[who].access), str_z(people[who].secret)};
}

struct wire {
    struct http_header headers[32];
    size_t count;
};

static void add_headers(struct wire *w, const char *text)
{
    struct str rest = str_z(text), line;

    while (str_token(&rest, "\n", &line)) {
        struct http_header *h = &w->headers[w->count++];
        BUG_ON(w->count > ARRAY_SIZE(w->headers));
        str_cut(line, ':', &h->name, &h->value);
        h->value = str_trim(h->value);
    }
}

static struct str hash_of(struct arena *a, struct str body)
{
    unsigned char hash[32];
    struct buf hex = BUF_INIT(0);

    SHA256((const unsigned char *)(body.p ? body.p : ""), body.len, hash);
    buf_append_hex(&hex, hash, sizeof(hash));
    struct str text = arena_str(a, buf_str(&hex));
    buf_release(&hex);
    return text;
}

static void sign(struct arena *a, struct wire *w, enum who who, const struct sign_request *wanted)
{
    struct sign_request r = *wanted;
    struct sign_credentials c = {.access_key = str_z(people[who].access),
                                 .secret = str_z(people[who].secret),
                                 .region = STR("us-east-1"),
                                 .service = STR("s3")};
    struct signed_headers made;

    r.headers = w->headers;
    r.header_count = w->count;
    CHECK_INT(sign_headers(&made, a, &r, &c, clock_wall_ms()), 0);
    w->headers[w->count++] = (struct http_header){STR("authorization"), made.authorization};
    w->headers[w->count++] = (struct http_header){STR("x-amz-date"), made.date};
    w->headers[w->count++] = (struct http_header){STR("x-amz-content-sha256"), made.content_sha256};
}

static void more(struct gate *g)
{
    char piece[65536];
    ssize_t n = recv(g->fd, piece, sizeof(piece), 0);

    CHECK(n > 0);
    buf_append(&g->raw, piece, (size_t)n);
}

/* Answers of the gateway always have a length. */
static void read_answer(struct gate *g, bool to_head)
{
    struct err err = {0};
    size_t seen = 0;
    int code;

    buf_reset(&g->raw);
    do {
        more(g);
        code = http_parse_response(&g->head, buf_str(&g->raw), &seen, &err);
    } while (code == ERR_AGAIN);
    CHECK_OK(code);
    size_t len = http_response_has_body(&g->head, to_head) ? g->head.content_length : 0;
    while (g->raw.len < g->head.size + len)
        more(g);
    seen = 0;
    CHECK_OK(http_parse_response(&g->head, buf_str(&g->raw), &seen, &err));
    g->body = str_skip(buf_str(&g->raw), g->head.size);
    CHECK_INT(g->body.len, len);
}

void gate_answer(struct gate *g)
{
    read_answer(g, false);
}

void gate_ask(struct gate *g, enum who who, const char *request, const char *headers,
              struct str body, int status)
{
    struct arena a = ARENA_INIT(0);
    struct buf out = BUF_INIT(0);
    struct wire w = {0};
    struct sign_request r = {.payload_hash = g->payload ? str_z(g->payload) : hash_of(&a, body)};
    struct str target;

    str_cut(str_z(request), ' ', &r.method, &target);
    str_cut(target, '?', &r.path, &r.query);
    add_headers(&w, headers && strstr(headers, "host:") ? headers : "host: 127.0.0.1");
    if (headers && !strstr(headers, "host:"))
        add_headers(&w, headers);
    if (who != NOBODY)
        sign(&a, &w, who, &r);
    buf_appendf(&out, "%s HTTP/1.1\r\nContent-Length: %zu\r\n", request, body.len);
    for (size_t i = 0; i < w.count; i++)
        buf_appendf(&out, STR_FMT ": " STR_FMT "\r\n", STR_ARG(w.headers[i].name),
                    STR_ARG(w.headers[i].value));
    buf_append_z(&out, "\r\n");
    buf_append_str(&out, body);
    lab_say(g->fd, buf_str(&out));
    read_answer(g, str_eq(r.method, STR("HEAD")));
    if (status && g->head.status != status)
        test_fail(__FILE__, __LINE__, "%s answers %d, not %d: " STR_FMT, request, g->head.status,
                  status, STR_ARG(g->body));
    if (!g->head.keep_alive) {
        close(g->fd);
        g->fd = lab_dial(&g->lab);
    }
    buf_release(&out);
    arena_release(&a);
}

void gate_presign(struct buf *out, enum who who, const char *request, const char *headers)
{
    struct sign_credentials by = {.access_key = str_z(people[who].access),
                                  .secret = str_z(people[who].secret),
                                  .region = STR("us-east-1"),
                                  .service = STR("s3")};
    struct sign_request r = {.payload_hash = STR(SIGN_UNSIGNED)};
    struct wire w = {0};
    struct str target;

    str_cut(str_z(request), ' ', &r.method, &target);
    str_cut(target, '?', &r.path, &r.query);
    add_headers(&w, "host: 127.0.0.1");
    if (headers)
        add_headers(&w, headers);
    r.headers = w.headers;
    r.header_count = w.count;
    buf_appendf(out, STR_FMT " " STR_FMT "?", STR_ARG(r.method), STR_ARG(r.path));
    CHECK_INT(sign_query(out, &r, &by, clock_wall_ms(), 60), 0);
}

void gate_do(struct gate *g, const char *request, int status)
{
    gate_ask(g, ALICE, request, NULL, STR_EMPTY, status);
}

struct str gate_element(struct gate *g, const char *name)
{
    struct str body = g->body;
    char open[64], end[64];

    snprintf(open, sizeof(open), "<%s>", name);
    snprintf(end, sizeof(end), "</%s>", name);
    ptrdiff_t from = str_find(body, str_z(open));
    if (from < 0)
        return STR_EMPTY;
    body = str_skip(body, (size_t)from + strlen(open));
    ptrdiff_t to = str_find(body, str_z(end));
    return to < 0 ? STR_EMPTY : str_head(body, (size_t)to);
}

bool gate_has(struct gate *g, const char *text)
{
    return str_find(g->body, str_z(text)) >= 0;
}

struct str gate_header(struct gate *g, const char *name)
{
    return http_header(&g->head, name);
}
