/* One connection to Redis: opening it with a login, sending, and receiving single replies. */
#include "store/redis_int.h"

#include "base/clock.h"
#include "os/file.h"
#include "os/sock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The commands of a greeting (struct greeting). */
enum greeting_step { GREET_AUTH, GREET_NAME, GREET_SELECT, GREET_ROLE, GREETING_STEPS };

/* The first commands of a connection, sent in one write; steps[] says which command each reply is
 * for. */
struct greeting {
    struct buf wire;
    enum greeting_step steps[GREETING_STEPS];
    size_t count;
};

static int find_address(struct redis_conn *c, const struct redis_endpoint *e,
                        struct redis_address *out, uint64_t deadline_ns, struct err *err)
{
    if (e->master)
        return redis_master_find(e->master, deadline_ns, out, &c->generation, err);
    snprintf(out->host, sizeof(out->host), "%s", e->target->host);
    out->port = e->target->port;
    return 0;
}

static int connect_socket(struct redis_conn *c, const struct redis_endpoint *e,
                          const struct redis_address *a, uint64_t deadline_ns, struct err *err)
{
    int rc = sock_connect(&c->fd, a->host, a->port, deadline_ns, err);

    if (rc < 0 || !e->tls)
        return rc;
    rc = tls_connect(&c->tls, e->tls, c->fd, a->host, deadline_ns, err);
    return rc < 0 ? err_wrap(err, rc, "%s:%u", a->host, a->port) : 0;
}

static void greeting_add(struct greeting *g, enum greeting_step step, const struct str *argv,
                         size_t argc)
{
    resp_write(&g->wire, argv, argc);
    g->steps[g->count++] = step;
}

/* Writes the greeting. AUTH comes first, because the other commands need it. Database 0 needs no
 * SELECT, because a connection begins there. So a user without the right to SELECT can use database
 * 0. */
static void greeting_write(struct greeting *g, const struct redis_endpoint *e)
{
    const struct redis_target *t = e->target;
    struct buf number = {0};

    if (t->password) {
        struct str with_user[] = {STR("AUTH"), str_z(t->user), str_z(t->password)};
        struct str plain[] = {STR("AUTH"), str_z(t->password)};
        greeting_add(g, GREET_AUTH, t->user ? with_user : plain, t->user ? 3 : 2);
    }
    greeting_add(g, GREET_NAME, (struct str[]){STR("CLIENT"), STR("SETNAME"), STR("weir")}, 3);
    if (t->database) {
        buf_append_i64(&number, t->database);
        greeting_add(g, GREET_SELECT, (struct str[]){STR("SELECT"), buf_str(&number)}, 2);
    }
    if (e->master)
        greeting_add(g, GREET_ROLE, (struct str[]){STR("ROLE")}, 1);
    buf_release(&number);
}

/* Returns the code for an error reply to a command of the greeting; 0: the error is harmless. */
static int greeting_error(const struct redis_target *t, enum greeting_step step, struct str text,
                          struct err *err)
{
    static const int otherwise[GREETING_STEPS] = {
        [GREET_AUTH] = ERR_DENIED, [GREET_SELECT] = ERR_INVALID, [GREET_ROLE] = ERR_UNAVAILABLE};
    int code = redis_refusal(text);
    /* A refused login is harmless if t->try_login: a server that does need a login refuses the next
     * command. A user that may not name its connection works without a name. */
    bool harmless = (step == GREET_AUTH && t->try_login) ||
                    (step == GREET_NAME && str_starts(text, STR("NOPERM")));

    if (str_starts(text, STR("ERR max number of clients")))
        code = ERR_UNAVAILABLE;
    else if (harmless)
        code = 0;
    else if (!code)
        code = otherwise[step];
    return code ? err_set(err, code, STR_FMT, STR_ARG(text)) : 0;
}

/* Checks by the reply of ROLE that the server is a master (docs/store-redis.md, M1). The reply is
 * an array that begins with "master", "slave" or "sentinel". */
static int check_role(const struct reply *r, struct err *err)
{
    if (r->type != REPLY_ARRAY || r->count == 0 || r->items[0].type != REPLY_BULK)
        return err_set(err, ERR_UNAVAILABLE, "ROLE is answered by something else");
    if (!str_eq(r->items[0].str, STR("master")))
        return err_set(err, ERR_UNAVAILABLE, "the server is not a master but a " STR_FMT,
                       STR_ARG(r->items[0].str));
    return 0;
}

static int redis_conn_greet(struct redis_conn *c, const struct redis_endpoint *e,
                            uint64_t deadline_ns, struct err *err)
{
    struct arena arena = ARENA_INIT(256 * KIB);
    struct greeting g = {0};
    struct reply *reply;
    int rc;

    greeting_write(&g, e);
    rc = redis_conn_send(c, buf_str(&g.wire), deadline_ns, err);
    for (size_t i = 0; i < g.count && rc == 0; i++) {
        rc = redis_conn_receive(c, &arena, &reply, deadline_ns, err);
        if (rc == 0 && reply->type == REPLY_ERROR)
            rc = greeting_error(e->target, g.steps[i], reply->str, err);
        else if (rc == 0 && g.steps[i] == GREET_ROLE)
            rc = check_role(reply, err);
    }
    if (g.wire.p)
        secure_zero(g.wire.p, g.wire.len);
    buf_release(&g.wire);
    arena_release(&arena);
    return rc;
}

static void add_address(struct err *err, const struct redis_address *a)
{
    struct err said = err ? *err : (struct err){0};

    err_set(err, said.code, "%s (%s:%u)", said.text, a->host, a->port);
}

/* Connects over the network. The outcome is reported to the master's thread, which then asks the
 * sentinels if need be. */
static int open_network(struct redis_conn *c, const struct redis_endpoint *e, uint64_t deadline_ns,
                        struct err *err)
{
    struct redis_address address;
    int rc = find_address(c, e, &address, deadline_ns, err);

    if (rc < 0)
        return rc;
    rc = connect_socket(c, e, &address, deadline_ns, err);
    if (rc == 0) {
        rc = redis_conn_greet(c, e, deadline_ns, err);
        /* The address is put after Redis's words: store_refusal() expects these right after "redis:
         * ". */
        if (rc < 0 && e->master)
            add_address(err, &address);
    }
    if (e->master && rc < 0)
        redis_master_failed(e->master, c->generation);
    else if (e->master)
        redis_master_works(e->master, c->generation);
    return rc;
}

static int open_unix(struct redis_conn *c, const struct redis_endpoint *e, uint64_t deadline_ns,
                     struct err *err)
{
    int rc = sock_connect_unix(&c->fd, e->target->path, deadline_ns, err);

    return rc < 0 ? rc : redis_conn_greet(c, e, deadline_ns, err);
}

int redis_conn_open(struct redis_conn **out, const struct redis_endpoint *e, uint64_t deadline_ns,
                    struct err *err)
{
    struct redis_conn *c = xcalloc(1, sizeof(*c));
    int rc;

    c->fd = -1;
    list_init(&c->node);
    resp_init(&c->resp);
    rc = e->target->path ? open_unix(c, e, deadline_ns, err) : open_network(c, e, deadline_ns, err);
    if (rc == 0) {
        *out = c;
        return 0;
    }
    redis_conn_close(c);
    if (rc != ERR_DENIED && rc != ERR_INVALID)
        rc = ERR_UNAVAILABLE; /* no caller's command was sent (docs/store-redis.md, R1) */
    return err_wrap(err, rc, "redis");
}

void redis_conn_close(struct redis_conn *c)
{
    if (!c)
        return;
    tls_close(c->tls);
    fd_close(&c->fd);
    resp_release(&c->resp);
    free(c);
}

bool redis_conn_is_quiet(struct redis_conn *c)
{
    char byte;
    size_t got;

    if (redis_conn_has_input(c))
        return false;
    /* Unlike the recv() below, this read consumes a byte. That is harmless, because a connection on
     * which bytes arrive that nobody asked for is closed anyway. */
    if (c->tls)
        return tls_recv_now(c->tls, &byte, 1, &got, NULL) == ERR_AGAIN;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool redis_conn_has_input(const struct redis_conn *c)
{
    return c->from < c->to || (c->tls && tls_pending(c->tls));
}

int redis_conn_send(struct redis_conn *c, struct str wire, uint64_t deadline_ns, struct err *err)
{
    int rc = c->tls ? tls_send_all(c->tls, wire.p, wire.len, deadline_ns, err)
                    : sock_send_all(c->fd, wire.p, wire.len, deadline_ns, err);

    return rc < 0 && rc != ERR_TIMEOUT ? err_wrap(err, ERR_CLOSED, "sending to redis") : rc;
}

static int redis_conn_fill(struct redis_conn *c, uint64_t deadline_ns, struct err *err)
{
    size_t got = 0;
    int rc = c->tls ? tls_recv(c->tls, c->in, sizeof(c->in), &got, deadline_ns, err)
                    : sock_recv(c->fd, c->in, sizeof(c->in), &got, deadline_ns, err);

    if (rc == ERR_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "redis did not answer in time");
    if (rc < 0)
        return err_wrap(err, ERR_CLOSED, "receiving from redis");
    if (got == 0)
        return err_set(err, ERR_CLOSED, "redis closed the connection");
    c->from = 0;
    c->to = got;
    return 0;
}

int redis_conn_receive(struct redis_conn *c, struct arena *arena, struct reply **out,
                       uint64_t deadline_ns, struct err *err)
{
    resp_begin(&c->resp, arena);
    for (;;) {
        size_t used = 0;
        int rc = ERR_AGAIN;
        if (c->from < c->to)
            rc = resp_read(&c->resp, str_n(c->in + c->from, c->to - c->from), &used, out, err);
        c->from += used;
        if (rc == ERR_PARSE)
            return err_wrap(err, ERR_PEER, "redis");
        if (rc == ERR_TOO_LARGE)
            return err_wrap(err, ERR_NO_MEMORY, "redis");
        if (rc != ERR_AGAIN)
            return rc;
        rc = redis_conn_fill(c, deadline_ns, err);
        if (rc < 0)
            return rc;
    }
}
