/* The least that a client of Redis can do: a prepared request out, the reply's length checked. What
 * Redis reaches with it is Redis's own speed, not some library's.
 *
 *     bench_redis_raw SOCKET OPERATION SECONDS THREADS CONNECTIONS KEYS
 *
 * Each thread drives CONNECTIONS connections, one request outstanding on each: one connection by
 * blocking calls, several by epoll. The operation "fill" writes the data that the others read. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE = 4096, READY = 256 };

struct message {
    char p[MESSAGE];
    size_t len;
};

struct conn {
    int fd;
    struct message reply;
};

struct bench;
struct worker {
    const struct bench *bench;
    struct conn *conns;
    int epoll;
    struct epoll_event ready[READY];
    int ready_count;
    bool started;
};

typedef void request_fn(struct message *m, const struct bench *b, uint64_t n);

struct bench {
    const char *socket;
    uint64_t keys;
    int connections;
    request_fn *request;
    char sha[2][41]; /* of the reading and the writing script */
};

static void arg(struct message *m, const void *p, size_t len)
{
    m->len += (size_t)snprintf(m->p + m->len, MESSAGE - m->len, "$%zu\r\n", len);
    memcpy(m->p + m->len, p, len);
    memcpy(m->p + m->len + len, "\r\n", 2);
    m->len += len + 2;
}

static void arg_z(struct message *m, const char *z)
{
    arg(m, z, strlen(z));
}

static void arg_key(struct message *m, const char *kind, uint64_t n)
{
    char key[LOAD_KEY];
    load_key(key, kind, n);
    arg(m, key, LOAD_KEY);
}

static void arg_value(struct message *m, uint64_t n)
{
    char value[LOAD_VALUE];
    load_value(value, n);
    arg(m, value, LOAD_VALUE);
}

static void command(struct message *m, int argc, const char *name)
{
    m->len = (size_t)snprintf(m->p, MESSAGE, "*%d\r\n", argc);
    arg_z(m, name);
}

static void request_set(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 3, "SET");
    arg_key(m, "string", n % b->keys);
    arg_value(m, n);
}

static void request_get(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 2, "GET");
    arg_key(m, "string", n % b->keys);
}

static void arg_field(struct message *m, uint64_t n)
{
    char field[16];
    snprintf(field, sizeof(field), "field%u", (unsigned)(n % LOAD_FIELDS));
    arg_z(m, field);
}

static void request_hget(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 3, "HGET");
    arg_key(m, "hash", n / LOAD_FIELDS % (b->keys / LOAD_FIELDS));
    arg_field(m, n);
}

static void request_hset(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 4, "HSET");
    arg_key(m, "hash", n / LOAD_FIELDS % (b->keys / LOAD_FIELDS));
    arg_field(m, n);
    arg_value(m, n);
}

static void request_hincrby(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 4, "HINCRBY");
    arg_key(m, "hash", n % (b->keys / LOAD_FIELDS));
    arg_z(m, "count");
    arg_z(m, "1");
}

static void request_script_read(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 6, "EVALSHA");
    arg_z(m, b->sha[0]);
    arg_z(m, "2");
    arg_key(m, "hash", n / LOAD_FIELDS % (b->keys / LOAD_FIELDS));
    arg_key(m, "string", n % b->keys);
    arg_field(m, n);
}

static void request_script_write(struct message *m, const struct bench *b, uint64_t n)
{
    command(m, 7, "EVALSHA");
    arg_z(m, b->sha[1]);
    arg_z(m, "2");
    arg_key(m, "hash", n / LOAD_FIELDS % (b->keys / LOAD_FIELDS));
    arg_key(m, "string", n % b->keys);
    arg_field(m, n);
    arg_value(m, n);
}

static const struct {
    const char *name;
    request_fn *request;
} operations[] = {
    {"set", request_set},
    {"get", request_get},
    {"hget", request_hget},
    {"hincrby", request_hincrby},
    {"script_read", request_script_read},
    {"script_write", request_script_write},
};

static int connect_to(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        load_fail(path);
    return fd;
}

static bool send_request(int fd, const struct message *m)
{
    return send(fd, m->p, m->len, MSG_NOSIGNAL) == (ssize_t)m->len;
}

/* The length of the reply that is in `m`, or 0 when it is not whole yet. Arrays are not asked for.
 */
static size_t reply_len(const struct message *m)
{
    const char *line = memchr(m->p, '\n', m->len);
    if (!line)
        return 0;
    size_t len = (size_t)(line + 1 - m->p);
    if (m->p[0] == '$' && m->p[1] != '-')
        len += strtoul(m->p + 1, NULL, 10) + 2;
    return len <= m->len ? len : 0;
}

static bool read_reply(struct conn *c)
{
    c->reply.len = 0;
    do {
        ssize_t n = recv(c->fd, c->reply.p + c->reply.len, MESSAGE - c->reply.len, 0);
        if (n <= 0)
            load_fail("recv");
        c->reply.len += (size_t)n;
    } while (reply_len(&c->reply) == 0);
    return c->reply.p[0] != '-' && reply_len(&c->reply) == c->reply.len &&
           strncmp(c->reply.p, "$-1", 3) != 0;
}

static bool ask_next(struct load_thread *t, const struct bench *b, int fd)
{
    struct message m;
    b->request(&m, b, load_random(t));
    return send_request(fd, &m);
}

static void begin(struct load_thread *t)
{
    const struct bench *b = t->ctx;
    struct worker *w = calloc(1, sizeof(*w));

    w->bench = b;
    w->conns = calloc((size_t)b->connections, sizeof(*w->conns));
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < b->connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &w->conns[i]};
        w->conns[i].fd = connect_to(b->socket);
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->conns[i].fd, &e);
    }
    t->ctx = w;
}

static bool step_one(struct load_thread *t)
{
    struct worker *w = t->ctx;
    return ask_next(t, w->bench, w->conns[0].fd) && read_reply(&w->conns[0]);
}

static bool step_many(struct load_thread *t)
{
    struct worker *w = t->ctx;
    bool ok = true;

    if (!w->started)
        for (int i = 0; i < w->bench->connections; i++)
            ok &= ask_next(t, w->bench, w->conns[i].fd);
    w->started = true;
    while (w->ready_count == 0) {
        w->ready_count = epoll_wait(w->epoll, w->ready, READY, -1);
        if (w->ready_count < 0 && errno != EINTR)
            load_fail("epoll_wait");
    }
    struct conn *c = w->ready[--w->ready_count].data.ptr;
    return ok && read_reply(c) && ask_next(t, w->bench, c->fd);
}

static void end(struct load_thread *t)
{
    struct worker *w = t->ctx;

    for (int i = 0; i < w->bench->connections; i++)
        close(w->conns[i].fd);
    close(w->epoll);
    free(w->conns);
    free(w);
}

static void load_script(struct conn *c, const char *source, char sha[41])
{
    struct message m;

    command(&m, 3, "SCRIPT");
    arg_z(&m, "LOAD");
    arg_z(&m, source);
    if (!send_request(c->fd, &m) || !read_reply(c) || reply_len(&c->reply) != 47)
        load_fail("SCRIPT LOAD");
    memcpy(sha, c->reply.p + 5, 40);
}

static bool fill(struct conn *c, const struct bench *b)
{
    struct message m;

    for (uint64_t n = 0; n < b->keys; n++) {
        request_set(&m, b, n);
        if (!send_request(c->fd, &m) || !read_reply(c))
            return false;
        request_hset(&m, b, n);
        if (!send_request(c->fd, &m) || !read_reply(c))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    struct bench b = {.socket = argv[1], .connections = atoi(argv[5])};
    b.keys = strtoull(argv[6], NULL, 10);
    struct conn c = {.fd = connect_to(b.socket)};
    if (strcmp(argv[2], "fill") == 0)
        return fill(&c, &b) ? 0 : 1;
    load_script(&c, load_script_read, b.sha[0]);
    load_script(&c, load_script_write, b.sha[1]);
    close(c.fd);
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (strcmp(argv[2], operations[i].name) == 0)
            b.request = operations[i].request;
    if (!b.request || b.connections < 1)
        return 2;
    struct load l = {.threads = atoi(argv[4]), .seconds = atof(argv[3]), .ctx = &b};
    l.begin = begin;
    l.end = end;
    l.step = b.connections == 1 ? step_one : step_many;
    return load_run(&l);
}
