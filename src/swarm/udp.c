/* The UDP tracker: its sockets and threads. */
#include "base/clock.h"
#include "os/file.h"
#include "swarm/udp_int.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RECEIVE_BUFFER = 8 * 1024 * 1024, SEND_BUFFER = 2 * 1024 * 1024, WAITING_DEFAULT = 1024 };

/* --- sockets --- */

/* Opens a socket and binds it to `addr`. `shared`: other sockets may use the same port
 * (SO_REUSEPORT). */
static int open_udp_socket(int *fd, const struct sock_addr *addr, bool shared, struct err *err)
{
    int s = socket(addr->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, off = 0;
    int receive = RECEIVE_BUFFER, send = SEND_BUFFER, whole = IP_PMTUDISC_DO;
    char text[SOCK_ADDR_TEXT];

    sock_addr_text(addr, text);
    if (s < 0)
        return err_errno(err, errno, "making a socket for %s", text);
    if (addr->sa.ss_family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (shared)
        setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    /* SO_RCVBUFFORCE may exceed the system's limit, but needs a privilege. */
    if (setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &receive, sizeof(receive)) < 0)
        setsockopt(s, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive));
    setsockopt(s, SOL_SOCKET, SO_SNDBUF, &send, sizeof(send));
    /* Packets must not be fragmented. This also saves time, because the kernel need not choose an
     * IP id. A reply that is too long for the path is shortened and sent again (udp_loop.c). */
    setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof(whole));
    if (bind(s, (const struct sockaddr *)&addr->sa, addr->len) < 0) {
        int code = err_errno(err, errno, "listening on %s (UDP)", text);
        fd_close(&s);
        return code;
    }
    *fd = s;
    return 0;
}

static in_port_t *addr_port(struct sock_addr *addr)
{
    return addr->sa.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&addr->sa)->sin6_port
                                          : &((struct sockaddr_in *)&addr->sa)->sin_port;
}

/* Opens the sockets of all loops. A process of the same user that already has the port with
 * SO_REUSEPORT would get half of the packets. So the port is first opened without sharing, which
 * fails if it is in use. */
static int open_udp_sockets(struct udp_server *u, const struct sock_addr *listen, struct err *err)
{
    struct sock_addr addr = *listen;
    int probe = -1, code = 0;

    if (addr.sa.ss_family != AF_INET && addr.sa.ss_family != AF_INET6)
        return err_set(err, ERR_INVALID, "a tracker over UDP needs an address of IPv4 or IPv6");
    code = open_udp_socket(&probe, &addr, false, err);
    if (code == 0)
        code = sock_local(probe, &addr, err);
    fd_close(&probe);
    for (size_t i = 0; i < u->loop_count && code == 0; i++)
        code = open_udp_socket(&u->loops[i].fd, &addr, true, err);
    u->port = ntohs(*addr_port(&addr));
    return code;
}

/* --- threads --- */

static size_t processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (size_t)CPU_COUNT(&set);
}

int udp_start(struct udp_server **out, const struct udp_options *o, struct err *err)
{
    size_t count = o->workers ? o->workers : processors();
    struct udp_server *u = xcalloc(1, sizeof(*u) + count * sizeof(u->loops[0]));
    int code;

    u->tracker = o->tracker;
    u->log = o->log;
    u->bans = connid_bans_new();
    u->loop_count = count;
    for (size_t i = 0; i < count; i++)
        u->loops[i] = (struct udp_loop){.server = u, .fd = -1};
    if (tracker_waits(o->tracker))
        u->pool = pool_new("udp-wait", WAIT_THREADS, o->waiting ? o->waiting : WAITING_DEFAULT, 0);
    code = udp_key_start(u, o, err);
    if (code == 0)
        code = open_udp_sockets(u, &o->listen, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        char name[16];
        snprintf(name, sizeof(name), "udp-%u", (unsigned)i % 1000);
        code = thread_start(&u->loops[i].thread, name, 0, udp_loop_run, &u->loops[i], err);
    }
    if (code < 0) {
        udp_stop(u);
        return code;
    }
    *out = u;
    return 0;
}

void udp_stop(struct udp_server *u)
{
    if (!u)
        return;
    atomic_store(&u->stopping, true);
    udp_key_stop(u);
    /* shutdown() wakes loops that wait for a packet, although it returns an error because the
     * sockets are not connected. */
    for (size_t i = 0; i < u->loop_count; i++)
        if (u->loops[i].fd >= 0)
            shutdown(u->loops[i].fd, SHUT_RD);
    for (size_t i = 0; i < u->loop_count; i++)
        thread_join(&u->loops[i].thread);
    if (u->pool)
        pool_free(u->pool);
    for (size_t i = 0; i < u->loop_count; i++)
        fd_close(&u->loops[i].fd);
    connid_bans_free(u->bans);
    udp_key_release(u);
    free(u);
}

uint16_t udp_port(const struct udp_server *u)
{
    return u->port;
}
