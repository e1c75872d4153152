/* server: many clients doing everything at once, each checking that every answer is its own. */
#include "base/ids.h"
#include "os/file.h"
#include "unit/http/server_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 6, STEPS = 120, FILE_SIZE = 300000 };

struct client {
    struct lab *lab;
    struct thread thread;
    unsigned number;
    int fd;
    struct answer a;
    char *bytes; /* FILE_SIZE of them */
    struct str file;
};

static void read_own(struct client *c, struct str want)
{
    lab_read(c->fd, &c->a, false);
    CHECK_INT(c->a.status, 200);
    CHECK(c->a.whole && str_eq(buf_str(&c->a.body), want));
}

static void get_pipelined(struct client *c, unsigned step)
{
    char want[64];
    int count = 1 + (int)random_below(8);

    for (int i = 0; i < count; i++)
        lab_sayf(c->fd, "GET /target?%u.%u.%d HTTP/1.1\r\nHost: a\r\n\r\n", c->number, step, i);
    for (int i = 0; i < count; i++) {
        snprintf(want, sizeof(want), "/target?%u.%u.%d", c->number, step, i);
        read_own(c, str_z(want));
    }
}

static struct str some_bytes(struct client *c)
{
    size_t len = random_below(4) ? random_below(8000) : random_below(FILE_SIZE);
    memset(c->bytes, 'a' + (int)random_below(26), len);
    return str_n(c->bytes, len);
}

static void put(struct client *c, unsigned step)
{
    struct str body = some_bytes(c);

    lab_sayf(c->fd, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", body.len);
    lab_say(c->fd, body);
    read_own(c, body);
}

/* The echo goes on while the body comes: what fits both sockets, so that nobody waits for ever. */
static void put_streamed(struct client *c, unsigned step)
{
    struct str body = str_head(some_bytes(c), 30000);

    lab_sayf(c->fd, "PUT /echo-reader HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
             body.len);
    lab_say(c->fd, body);
    read_own(c, body);
}

static void put_chunked(struct client *c, unsigned step)
{
    struct str body = some_bytes(c);
    size_t half = body.len / 2;

    if (body.len < 2)
        return;
    lab_sayf(c->fd, "PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
             half);
    lab_say(c->fd, str_head(body, half));
    lab_sayf(c->fd, "\r\n%zx\r\n", body.len - half);
    lab_say(c->fd, str_skip(body, half));
    lab_say(c->fd, STR("\r\n0\r\n\r\n"));
    read_own(c, body);
}

static void get_file(struct client *c, unsigned step)
{
    lab_say(c->fd, STR("GET /file HTTP/1.1\r\nHost: a\r\n\r\n"));
    read_own(c, c->file);
}

static void new_connection(struct client *c)
{
    close(c->fd);
    buf_reset(&c->a.bytes);
    c->fd = lab_dial(c->lab);
}

static void go_away(struct client *c, unsigned step)
{
    static const char *const words[] = {
        "GET /la",
        "GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /file HTTP/1.1\r\nHost: a\r\n\r\nGET /file HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc",
        "PUT /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    };
    char piece[1000];

    lab_say(c->fd, str_z(words[step % ARRAY_SIZE(words)]));
    if (step % 3 == 0)
        (void)!recv(c->fd, piece, sizeof(piece), MSG_DONTWAIT);
    new_connection(c);
}

static void refused_upload(struct client *c, unsigned step)
{
    lab_say(c->fd, STR("PUT /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"));
    lab_say(c->fd, str_n(c->bytes, 200000));
    lab_read(c->fd, &c->a, false);
    CHECK_INT(c->a.status, 403);
    new_connection(c);
}

static void run_client(void *ctx)
{
    static void (*const acts[])(struct client * c, unsigned step) = {
        get_pipelined, get_pipelined, put,     put_streamed,
        put_chunked,   get_file,      go_away, refused_upload,
    };
    struct client *c = ctx;

    c->fd = lab_dial(c->lab);
    for (unsigned step = 0; step < STEPS; step++)
        acts[random_below(ARRAY_SIZE(acts))](c, step);
    close(c->fd);
}

TEST(server_stress, every_answer_belongs_to_its_request)
{
    struct lab lab = {.file = lab_make_file("f", FILE_SIZE)};
    struct client clients[CLIENTS] = {0};
    struct buf file = BUF_INIT(0);
    struct err err = {0};

    CHECK_OK(file_read(lab.file, &file, &err));
    lab_start(&lab, (struct http_server_options){0});
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.lab = &lab, .number = i, .file = buf_str(&file)};
        clients[i].bytes = calloc(1, FILE_SIZE);
        CHECK_OK(thread_start(&clients[i].thread, "client", 0, run_client, &clients[i], &err));
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        thread_join(&clients[i].thread);
        answer_release(&clients[i].a);
        free(clients[i].bytes);
    }
    LAB_UNTIL(lab_stats(&lab).connections == 0);
    LAB_UNTIL(pool_stats(lab.pool).busy == 0);
    CHECK_INT(lab_stats(&lab).status[5], 0);
    buf_release(&file);
    lab_end(&lab);
}
