/* What no tracker on this kernel can beat: UDP requests received and answered in batches, with
 * replies of a tracker's size that say nothing.
 *
 *     bench_swarm_floor WORKERS PEERS
 *
 * Prints "listening PORT"; ends by a signal. PEERS addresses are in each announce's reply, as many
 * as a tracker gives on the average. */
#include "load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 64, REQUEST = 512, REPLY = 2048, PEERS_MAX = 200 };
enum { CONNECT, ANNOUNCE, SCRAPE };
#define SOCKET_BYTES (8 << 20)

struct batch {
    struct mmsghdr in[BATCH], out[BATCH];
    struct iovec in_iov[BATCH], out_iov[BATCH];
    struct sockaddr_in from[BATCH];
    uint8_t request[BATCH][REQUEST], reply[BATCH][REPLY];
};

static size_t peers;

static int listen_on(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t len = sizeof(at);
    int one = 1, bytes = SOCKET_BYTES, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        load_fail("socket");
    *port = ntohs(at.sin_port);
    return fd;
}

static size_t answer(const uint8_t *request, size_t len, uint8_t *reply)
{
    if (len < 16)
        return 0;
    memcpy(reply, request + 8, 8);
    if (request[11] == CONNECT)
        return 16;
    return request[11] == ANNOUNCE ? 20 + 6 * peers : 8 + (len - 16) / 20 * 12;
}

static void *serve(void *arg)
{
    int fd = *(int *)arg;
    struct batch *b = calloc(1, sizeof(*b));

    for (int i = 0; i < BATCH; i++) {
        b->in_iov[i] = (struct iovec){b->request[i], REQUEST};
        b->out_iov[i].iov_base = b->reply[i];
        b->in[i].msg_hdr =
            (struct msghdr){.msg_name = &b->from[i], .msg_iov = &b->in_iov[i], .msg_iovlen = 1};
        b->out[i].msg_hdr = (struct msghdr){.msg_name = &b->from[i],
                                            .msg_namelen = sizeof(b->from[i]),
                                            .msg_iov = &b->out_iov[i],
                                            .msg_iovlen = 1};
    }
    for (;;) {
        for (int i = 0; i < BATCH; i++)
            b->in[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
        int n = recvmmsg(fd, b->in, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < n; i++)
            b->out_iov[i].iov_len = answer(b->request[i], b->in[i].msg_len, b->reply[i]);
        for (int done = 0; done < n;) {
            int sent = sendmmsg(fd, b->out + done, (unsigned)(n - done), 0);
            if (sent < 1)
                load_fail("sendmmsg");
            done += sent;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int workers = argc == 3 ? atoi(argv[1]) : 0;
    uint16_t port = 0;

    peers = argc == 3 ? strtoul(argv[2], NULL, 10) : PEERS_MAX + 1;
    if (workers < 1 || peers > PEERS_MAX)
        return 2;
    int *fds = calloc((size_t)workers, sizeof(*fds));
    pthread_t thread;
    for (int i = 0; i < workers; i++)
        fds[i] = listen_on(&port);
    for (int i = 0; i < workers; i++)
        if (pthread_create(&thread, NULL, serve, &fds[i]) != 0)
            load_fail("pthread_create");
    printf("listening %u\n", port);
    fflush(stdout);
    pthread_join(thread, NULL);
    return 0;
}
