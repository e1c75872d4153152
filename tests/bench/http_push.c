/* Sends one large body again and again: the kernel copies it from the page cache, so that the
 * client costs as little as a client can.
 *
 *     bench_http_push [-c CONNECTIONS] [-t SECONDS] HOST PORT HEADS BODY
 *
 * HEADS: request heads as http_load.c reads them, one for each connection in turn; BODY: a file
 * that each of them is followed by. Prints ops, errors, bytes (of bodies), seconds. */
#include "load.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 256, ANSWER_MAX = 16 * 1024 };

struct push {
    struct sockaddr_in to;
    struct load_requests heads;
    int body;
    off_t size;
    uint64_t end_ns;
};

struct pusher {
    pthread_t thread;
    const struct push *push;
    size_t index;
    uint64_t ops, errors;
};

static int dial(const struct push *p)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&p->to, sizeof(p->to)) != 0)
        load_fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static bool send_body(const struct push *p, int fd)
{
    off_t at = 0;

    while (at < p->size)
        if (sendfile(fd, p->body, &at, (size_t)(p->size - at)) <= 0)
            return false;
    return true;
}

/* Answers to a PUT have no body that matters, but may have one. */
static bool read_answer(int fd)
{
    static _Thread_local char answer[ANSWER_MAX + 1];
    size_t have = 0;

    for (;;) {
        ssize_t n = recv(fd, answer + have, ANSWER_MAX - have, 0);
        if (n <= 0)
            return false;
        have += (size_t)n;
        answer[have] = '\0';
        char *end = strstr(answer, "\r\n\r\n");
        if (!end)
            continue;
        char *length = strcasestr(answer, "\r\ncontent-length:");
        size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
        if (have >= (size_t)(end + 4 - answer) + body)
            return strncmp(answer, "HTTP/1.1 20", 11) == 0;
    }
}

static void *push_on(void *arg)
{
    struct pusher *me = arg;
    const struct push *p = me->push;
    const struct load_request *head = &p->heads.items[me->index % p->heads.count];
    int fd = dial(p);

    while (load_now_ns() < p->end_ns && !me->errors) {
        bool ok = send(fd, head->bytes, head->len, MSG_NOSIGNAL | MSG_MORE) == (ssize_t)head->len &&
                  send_body(p, fd) && read_answer(fd);
        me->ops += ok;
        me->errors += !ok;
    }
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct pusher pushers[MAX_CONNECTIONS];
    struct push p = {0};
    size_t connections = 1;
    double seconds = 1;
    struct stat st;
    int opt;

    while ((opt = getopt(argc, argv, "c:t:")) != -1) {
        if (opt == 'c')
            connections = strtoul(optarg, NULL, 10);
        else if (opt == 't')
            seconds = atof(optarg);
        else
            return 2;
    }
    if (argc - optind != 4 || connections == 0 || connections > MAX_CONNECTIONS)
        return 2;
    p.to = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(argv[optind + 1])),
                                .sin_addr.s_addr = inet_addr(argv[optind])};
    load_requests_read(&p.heads, argv[optind + 2]);
    p.body = open(argv[optind + 3], O_RDONLY | O_CLOEXEC);
    if (p.body < 0 || fstat(p.body, &st) != 0)
        load_fail(argv[optind + 3]);
    p.size = st.st_size;
    uint64_t began = load_now_ns(), ops = 0, errors = 0;
    p.end_ns = began + (uint64_t)(seconds * 1e9);
    for (size_t i = 0; i < connections; i++) {
        pushers[i] = (struct pusher){.push = &p, .index = i};
        if (pthread_create(&pushers[i].thread, NULL, push_on, &pushers[i]) != 0)
            load_fail("pthread_create");
    }
    for (size_t i = 0; i < connections; i++) {
        pthread_join(pushers[i].thread, NULL);
        ops += pushers[i].ops;
        errors += pushers[i].errors;
    }
    printf("ops %llu\nerrors %llu\nbytes %llu\nseconds %.6f\n", (unsigned long long)ops,
           (unsigned long long)errors, (unsigned long long)ops * (unsigned long long)p.size,
           (double)(load_now_ns() - began) / 1e9);
    return errors != 0;
}
