/* An HTTP client that asks for one file again and again over many connections and looks at nothing
 * but the status and the length: bodies are dropped in the kernel (MSG_TRUNC), so that it costs
 * next to nothing beside the server it measures.
 *
 *     bench_http_load [-c CONNECTIONS] [-t SECONDS] [-C] HOST PORT PATH
 *     bench_http_load [-c CONNECTIONS] [-t SECONDS] -f REQUESTS HOST PORT
 *
 * -C closes after each answer; -f takes its requests from a file (load.h), in turn. Every answer
 * that is not 200 with its whole body is an error. */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_MAX = 16 * 1024, DRAIN = 4 * 1024 * 1024 };

struct conn {
    int fd;
    bool in_body;
    size_t have;   /* bytes of the head (and perhaps of the body) in `head` */
    uint64_t left; /* bytes of the body still to come */
    uint64_t began;
    char head[HEAD_MAX + 1];
};

struct client {
    struct sockaddr_in to;
    struct load_requests asks;
    size_t next; /* of them */
    bool close_each;
    int epoll;
    struct load_times times;
    uint64_t requests, errors, bytes;
};

static void ask(struct client *c, struct conn *conn)
{
    conn->in_body = false;
    conn->have = 0;
    conn->began = conn->began ? conn->began : load_now_ns();
    const struct load_request *r = &c->asks.items[c->next++ % c->asks.count];
    if (send(conn->fd, r->bytes, r->len, MSG_NOSIGNAL) != (ssize_t)r->len)
        c->errors++;
}

static void conn_open(struct client *c, struct conn *conn)
{
    int one = 1;

    conn->began = load_now_ns();
    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0 || connect(conn->fd, (struct sockaddr *)&c->to, sizeof(c->to)) != 0)
        load_fail("connect");
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = conn};
    epoll_ctl(c->epoll, EPOLL_CTL_ADD, conn->fd, &e);
    ask(c, conn);
}

static void conn_again(struct client *c, struct conn *conn)
{
    close(conn->fd);
    conn_open(c, conn);
}

static void answered(struct client *c, struct conn *conn)
{
    load_times_add(&c->times, load_now_ns() - conn->began);
    c->requests++;
    conn->began = 0;
    if (c->close_each)
        conn_again(c, conn);
    else
        ask(c, conn);
}

/* True when the head is complete and good: then `left` is set. */
static int parse_head(struct conn *conn)
{
    conn->head[conn->have] = '\0';
    char *end = strstr(conn->head, "\r\n\r\n");
    if (!end)
        return conn->have < HEAD_MAX ? 0 : -1;
    char *length = strcasestr(conn->head, "\r\ncontent-length:");
    if (strncmp(conn->head, "HTTP/1.1 200", 12) != 0 || !length || length > end)
        return -1;
    uint64_t body = strtoull(length + 17, NULL, 10);
    size_t here = conn->have - (size_t)(end + 4 - conn->head);
    if (here > body)
        return -1;
    conn->left = body - here;
    conn->in_body = true;
    return 1;
}

/* 1: the answer is complete, 0: more to come, -1: it is wrong. */
static int receive(struct client *c, struct conn *conn)
{
    ssize_t n = conn->in_body
                    ? recv(conn->fd, NULL, conn->left < DRAIN ? conn->left : DRAIN,
                           MSG_TRUNC | MSG_DONTWAIT)
                    : recv(conn->fd, conn->head + conn->have, HEAD_MAX - conn->have, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    c->bytes += (uint64_t)n;
    if (conn->in_body) {
        conn->left -= (uint64_t)n;
    } else {
        conn->have += (size_t)n;
        int parsed = parse_head(conn);
        if (parsed <= 0)
            return parsed;
    }
    return conn->left == 0;
}

static void run(struct client *c, double seconds)
{
    struct epoll_event events[256];
    uint64_t end = load_now_ns() + (uint64_t)(seconds * 1e9);

    while (load_now_ns() < end) {
        int n = epoll_wait(c->epoll, events, 256, 100);
        for (int i = 0; i < n; i++) {
            struct conn *conn = events[i].data.ptr;
            int done = receive(c, conn);
            if (done > 0) {
                answered(c, conn);
            } else if (done < 0) {
                c->errors++;
                conn_again(c, conn);
            }
        }
    }
}

static void report(const struct client *c, double seconds)
{
    printf("ops %llu\nerrors %llu\nbytes %llu\nseconds %.6f\n", (unsigned long long)c->requests,
           (unsigned long long)c->errors, (unsigned long long)c->bytes, seconds);
    /* The last quantile is that of the slowest request. */
    printf("p50_us %.1f\np99_us %.1f\nmax_us %.1f\n", load_times_us(&c->times, .5),
           load_times_us(&c->times, .99), load_times_us(&c->times, 1 - 1e-12));
}

static void one_request(struct client *c, const char *host, const char *path)
{
    static struct load_request r;
    int len = asprintf(&r.bytes, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, host,
                       c->close_each ? "Connection: close\r\n" : "");

    if (len < 0)
        load_fail("asprintf");
    r.len = (size_t)len;
    c->asks = (struct load_requests){&r, 1};
}

int main(int argc, char **argv)
{
    static struct client c = {.epoll = -1};
    size_t connections = 1;
    double seconds = 1;
    int opt;

    while ((opt = getopt(argc, argv, "c:t:f:C")) != -1) {
        if (opt == 'c')
            connections = strtoul(optarg, NULL, 10);
        else if (opt == 't')
            seconds = atof(optarg);
        else if (opt == 'f')
            load_requests_read(&c.asks, optarg);
        else if (opt == 'C')
            c.close_each = true;
        else
            return 2;
    }
    if (argc - optind != (c.asks.count ? 2 : 3))
        return 2;
    c.to = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(argv[optind + 1])),
                                .sin_addr.s_addr = inet_addr(argv[optind])};
    if (!c.asks.count)
        one_request(&c, argv[optind], argv[optind + 2]);
    c.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct conn *conns = calloc(connections, sizeof(*conns));
    for (size_t i = 0; i < connections; i++)
        conn_open(&c, &conns[i]);
    uint64_t began = load_now_ns();
    run(&c, seconds);
    report(&c, (double)(load_now_ns() - began) / 1e9);
    free(conns);
    return c.errors != 0;
}
