/* A proxy that cuts connections. */
#include "unit/kv/cut_proxy.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/sock.h"
#include "unit/test.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { CUT_LOOK_MS = 10, CUT_SEND_S = 30 };

static void pair_close(struct cut_pair *pair)
{
    fd_close(&pair->client);
    fd_close(&pair->server);
}

static void proxy_accept(struct cut_proxy *p)
{
    int fd = accept(p->listener, NULL, NULL);
    struct err err = {0};

    for (size_t i = 0; i < CUT_PAIRS && fd >= 0; i++)
        if (p->pairs[i].client < 0) {
            p->pairs[i] = (struct cut_pair){.client = fd, .server = -1};
            fd = -1;
            /* A server that is down is a connection that is closed at once. */
            if (p->path[0] && sock_connect_unix(&p->pairs[i].server, p->path,
                                                clock_mono_ns() + CUT_SEND_S * NS_PER_S, &err) < 0)
                pair_close(&p->pairs[i]);
        }
    fd_close(&fd);
    p->met++;
}

/* Returns how many of the bytes belong to messages up to the first ReadyForQuery, that one
 * included. *ready: it ends there. */
static size_t pair_find_ready(struct cut_pair *pair, const char *bytes, size_t len, bool *ready)
{
    *ready = false;
    for (size_t i = 0; i < len; i++) {
        if (pair->rest > 0) {
            pair->rest--;
        } else {
            pair->head[pair->head_len++] = (unsigned char)bytes[i];
            if (pair->head_len < sizeof(pair->head))
                continue;
            pair->head_len = 0;
            pair->rest = be32_read(pair->head + 1) - 4;
        }
        if (pair->rest == 0 && pair->head_len == 0 && pair->head[0] == 'Z') {
            *ready = true;
            return i + 1;
        }
    }
    return len;
}

static bool proxy_send(int fd, const char *bytes, size_t len)
{
    struct err err = {0};

    return sock_send_all(fd, bytes, len, clock_mono_ns() + CUT_SEND_S * NS_PER_S, &err) == 0;
}

static void proxy_cut(struct cut_proxy *p, struct cut_pair *pair)
{
    p->moment = CUT_NOTHING;
    pair_close(pair);
}

/* Ends the answers alone. A client that still sends must not meet a reset: libpq then gives up the
 * answers that it has not read. */
static void proxy_cut_answers(struct cut_proxy *p, struct cut_pair *pair)
{
    p->moment = CUT_NOTHING;
    shutdown(pair->client, SHUT_WR);
    fd_close(&pair->server); /* the client's side is kept until the proxy stops */
}

static void proxy_pass_request(struct cut_proxy *p, struct cut_pair *pair)
{
    char bytes[65536];
    ssize_t got = read(pair->client, bytes, sizeof(bytes));

    if (got > 0 && p->moment == CUT_REQUEST)
        proxy_cut(p, pair);
    else if (got <= 0 || !proxy_send(pair->server, bytes, (size_t)got))
        pair_close(pair);
}

static void proxy_pass_answer(struct cut_proxy *p, struct cut_pair *pair)
{
    char bytes[65536];
    ssize_t got = read(pair->server, bytes, sizeof(bytes));
    /* Looked at once: a plan that is made when the client has this answer is for the next one. */
    int moment = p->moment;
    bool ready = false;

    if (got > 0 && moment == CUT_ANSWER) {
        proxy_cut(p, pair);
        return;
    }
    size_t len = got > 0 ? (size_t)got : 0, at = 0;
    while (got > 0 && at < len && !(ready && moment == CUT_BEHIND_READY))
        at += pair_find_ready(pair, bytes + at, len - at, &ready);
    if (got <= 0 || !proxy_send(pair->client, bytes, at))
        pair_close(pair);
    else if (ready && moment == CUT_BEHIND_READY)
        proxy_cut_answers(p, pair);
}

static void proxy_pass(struct cut_proxy *p, struct cut_pair *pair, const struct pollfd *fds)
{
    if (p->moment == CUT_HOLD) {
        p->asked = p->asked || (fds[0].revents && pair->client >= 0);
        return;
    }
    if (fds[0].revents && pair->client == fds[0].fd)
        proxy_pass_request(p, pair);
    if (fds[1].revents && pair->server == fds[1].fd)
        proxy_pass_answer(p, pair);
}

static void proxy_look(struct cut_proxy *p)
{
    struct pollfd fds[1 + 2 * CUT_PAIRS];
    bool holds = p->moment == CUT_HOLD;

    fds[0] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (size_t i = 0; i < CUT_PAIRS; i++) {
        bool passes = p->pairs[i].server >= 0;
        fds[1 + 2 * i] =
            (struct pollfd){passes && !(holds && p->asked) ? p->pairs[i].client : -1, POLLIN, 0};
        fds[2 + 2 * i] = (struct pollfd){passes && !holds ? p->pairs[i].server : -1, POLLIN, 0};
    }
    if (poll(fds, ARRAY_SIZE(fds), CUT_LOOK_MS) <= 0)
        return;
    if (fds[0].revents)
        proxy_accept(p);
    for (size_t i = 0; i < CUT_PAIRS; i++)
        proxy_pass(p, &p->pairs[i], &fds[1 + 2 * i]);
}

static void proxy_run(void *ctx)
{
    struct cut_proxy *p = ctx;

    while (!p->ends)
        proxy_look(p);
    for (size_t i = 0; i < CUT_PAIRS; i++)
        pair_close(&p->pairs[i]);
}

void cut_proxy_start(struct cut_proxy *p, const char *path)
{
    struct sock_addr addr;
    struct err err = {0};

    *p = (struct cut_proxy){.listener = -1};
    snprintf(p->path, sizeof(p->path), "%s", path ? path : "");
    for (size_t i = 0; i < CUT_PAIRS; i++)
        p->pairs[i] = (struct cut_pair){.client = -1, .server = -1};
    CHECK_OK(sock_addr_parse(&addr, STR("127.0.0.1:0"), &err));
    CHECK_OK(sock_listen(&p->listener, &addr, CUT_PAIRS, &err));
    CHECK_OK(sock_local(p->listener, &addr, &err));
    p->port = ntohs(((struct sockaddr_in *)&addr.sa)->sin_port);
    CHECK_OK(thread_start(&p->thread, "cut-proxy", 0, proxy_run, p, &err));
}

void cut_proxy_stop(struct cut_proxy *p)
{
    p->ends = true;
    thread_join(&p->thread);
    fd_close(&p->listener);
}

bool cut_proxy_was_cut(const struct cut_proxy *p)
{
    return p->moment == CUT_NOTHING;
}

void cut_proxy_start_postgres(struct cut_proxy *p, const char *url, char *out, size_t size)
{
    const char *query = strstr(url, "?host=");
    char host[100], path[128];
    int port = 0;

    CHECK(query && sscanf(query, "?host=%99[^&]&port=%d", host, &port) == 2);
    snprintf(path, sizeof(path), "%s/.s.PGSQL.%d", host, port);
    cut_proxy_start(p, path);
    snprintf(out, size, "%.*s?host=127.0.0.1&port=%d&sslmode=disable&gssencmode=disable",
             (int)(query - url), url, p->port);
}
