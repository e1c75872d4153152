/* One connection to Redis: opening with its login, whole sends, single replies. */
#include "store/redis_int.h"

#include "base/clock.h"
#include "os/file.h"
#include "os/sock.h"

#include <errno.h>
#include <stdlib.h>

static int connect_socket(struct redis_conn *c, const struct redis_target *t,
                          struct tls_context *tls, uint64_t deadline_ns, struct err *err)
{
    int rc;

    if (t->path)
        return sock_connect_unix(&c->fd, t->path, deadline_ns, err);
    rc = sock_connect(&c->fd, t->host, t->port, deadline_ns, err);
    if (rc < 0 || !tls)
        return rc;
    rc = tls_connect(&c->tls, tls, c->fd, t->host, deadline_ns, err);
    return rc < 0 ? err_wrap(err, rc, "%s:%u", t->host, t->port) : 0;
}

/* The greeting is one write: AUTH (first, the rest needs it), CLIENT SETNAME, SELECT. Database 0 is
 * where a connection begins: without SELECT a user that may not use it is no problem. */
static size_t write_greeting(struct buf *wire, const struct redis_target *t)
{
    struct str user = str_z(t->user ? t->user : "default"), password = str_z(t->password);
    struct buf number = {0};
    size_t count = 1;

    if (t->password) {
        struct str with_user[] = {STR("AUTH"), user, password};
        struct str plain[] = {STR("AUTH"), password};
        resp_write(wire, t->user ? with_user : plain, t->user ? 3 : 2);
        count++;
    }
    resp_write(wire, (struct str[]){STR("CLIENT"), STR("SETNAME"), STR("weir")}, 3);
    if (t->database) {
        buf_append_i64(&number, t->database);
        resp_write(wire, (struct str[]){STR("SELECT"), buf_str(&number)}, 2);
        count++;
    }
    buf_release(&number);
    return count;
}

/* What an error to one of the greeting's commands means. `last` is SELECT when there is one. */
static int greeting_error(const struct redis_target *t, struct str text, size_t i, size_t count,
                          struct err *err)
{
    bool is_auth = t->password && i == 0, is_select = t->database && i == count - 1;
    int code = redis_refusal(text);

    if (str_starts(text, STR("ERR max number of clients")))
        code = ERR_UNAVAILABLE;
    else if (is_auth)
        code = code ? code : ERR_DENIED;
    else if (is_select)
        code = code ? code : ERR_INVALID;
    else if (str_starts(text, STR("NOPERM")))
        code = 0; /* a user that may not name its connection works without */
    return code ? err_set(err, code, STR_FMT, STR_ARG(text)) : 0;
}

static int greet(struct redis_conn *c, const struct redis_target *t, uint64_t deadline_ns,
                 struct err *err)
{
    struct arena arena = ARENA_INIT(256 * KIB);
    struct buf wire = {0};
    struct reply *reply;
    size_t count = write_greeting(&wire, t);
    int rc = redis_conn_send(c, buf_str(&wire), deadline_ns, err);

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = redis_conn_receive(c, &arena, &reply, deadline_ns, err);
        if (rc == 0 && reply->type == REPLY_ERROR)
            rc = greeting_error(t, reply->str, i, count, err);
    }
    if (wire.p)
        secure_zero(wire.p, wire.len);
    buf_release(&wire);
    arena_release(&arena);
    return rc;
}

int redis_conn_open(struct redis_conn **out, const struct redis_target *t, struct tls_context *tls,
                    uint64_t deadline_ns, struct err *err)
{
    struct redis_conn *c = xcalloc(1, sizeof(*c));
    int rc;

    c->fd = -1;
    list_init(&c->node);
    resp_init(&c->resp);
    rc = connect_socket(c, t, tls, deadline_ns, err);
    if (rc == 0)
        rc = greet(c, t, deadline_ns, err);
    if (rc == 0) {
        *out = c;
        return 0;
    }
    redis_conn_close(c);
    if (rc != ERR_DENIED && rc != ERR_INVALID)
        rc = ERR_UNAVAILABLE; /* R1: no command was sent */
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
    if (c->tls) /* not a peek, yet whatever it reads ends the connection */
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

static int fill(struct redis_conn *c, uint64_t deadline_ns, struct err *err)
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
        rc = fill(c, deadline_ns, err);
        if (rc < 0)
            return rc;
    }
}
