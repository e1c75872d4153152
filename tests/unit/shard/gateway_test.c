/* The gateway over a sharded bucket whose keys are closed and opened. */
#include "unit/s3/gateway_lab.h"
#include "unit/shard/sharded_home.h"

#include <unistd.h>

struct served {
    struct gate g;
    struct sharded *s;
};

/* A gateway with the bucket "box", on several shards. */
static void served_open(struct served *v)
{
    gate_start(&v->g);
    gate_shard(&v->g);
    gate_do(&v->g, "PUT /box", 200);
    v->s = sharded_home_find(v->g.shards, STR("box"));
    CHECK(v->s != NULL);
}

/* Closes the keys above `after`, up to `upto`; NULL: opens them. */
static void served_close(struct served *v, const char *after, const char *upto)
{
    struct shard_map *now = sharded_home_map(v->s), *next = map_draft(now);
    struct shard_window w = {str_z(after), str_z(upto)};

    if (after)
        map_close(next, SHARD_CLOSED_COPY, &w);
    else
        map_open(next);
    map_unref(now);
    sharded_home_install(v->s, next);
}

/* Sends the request on a connection of its own, which it returns. */
static int served_send(struct served *v, const char *request)
{
    struct buf signed_request = BUF_INIT(0);

    gate_presign(&signed_request, ALICE, request, NULL);
    buf_append_z(&signed_request, " HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n");
    int fd = lab_dial(&v->g.lab);
    lab_say(fd, buf_str(&signed_request));
    buf_release(&signed_request);
    return fd;
}

static void served_answer(int fd, int status, const char *body)
{
    struct answer a = {0};

    lab_read(fd, &a, false);
    CHECK_INT(a.status, status);
    if (body)
        CHECK_STR(buf_str(&a.body), str_z(body));
    answer_release(&a);
    close(fd);
}

TEST(shard_gateway, a_request_for_a_closed_key_waits_and_disturbs_no_other)
{
    struct served v;
    int get, list;

    served_open(&v);
    gate_ask(&v.g, ALICE, "PUT /box/d", NULL, STR("closed"), 200);
    gate_ask(&v.g, ALICE, "PUT /box/x", NULL, STR("open"), 200);
    served_close(&v, "c", "e");
    get = served_send(&v, "GET /box/d");
    list = served_send(&v, "GET /box?list-type=2");
    CHECK_SOON(table_waiting(v.s->table) == 2);
    gate_do(&v.g, "GET /box/x", 200);
    CHECK_STR(v.g.body, STR("open"));
    gate_do(&v.g, "HEAD /box", 200);
    gate_do(&v.g, "GET /box?list-type=2&prefix=x", 200);
    served_close(&v, NULL, NULL);
    served_answer(get, 200, "closed");
    served_answer(list, 200, NULL);
    gate_stop(&v.g);
}

TEST(shard_gateway, a_key_that_stays_closed_is_slow_down)
{
    struct served v;

    served_open(&v);
    table_set_times(v.s->table, 1, 1000);
    served_close(&v, "c", "e");
    gate_do(&v.g, "GET /box/d", 503);
    GATE_ERROR(&v.g, "SlowDown");
    gate_ask(&v.g, ALICE, "PUT /box/d", NULL, STR("x"), 503);
    gate_do(&v.g, "GET /box?list-type=2", 503);
    served_close(&v, NULL, NULL);
    gate_do(&v.g, "GET /box/d", 404);
    gate_stop(&v.g);
}
