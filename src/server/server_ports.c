/* The ports, tried before anything is made or opened: a start that cannot listen leaves nothing. */
#include "server/server_int.h"
#include "os/file.h"

#include <errno.h>
#include <sys/socket.h>

static int try_udp(int *fd, const struct sock_addr *addr, struct err *err)
{
    char text[SOCK_ADDR_TEXT];
    int off = 0;

    sock_addr_text(addr, text);
    *fd = socket(addr->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0 && addr->sa.ss_family == AF_INET6)
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (*fd < 0 || bind(*fd, (const struct sockaddr *)&addr->sa, addr->len) < 0)
        return err_errno(err, errno, "listening on %s (UDP)", text);
    return 0;
}

/* Any port is free for who asks for no particular one, and the one that comes may be the one that
 * another key asks for. */
static bool is_any_port(const struct sock_addr *addr)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->sa;

    return (addr->sa.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port) == 0;
}

/* *fd: what holds the port, or -1. The file of a unix socket is left to its server. */
static int try_address(int *fd, const char *text, bool udp, struct err *err)
{
    struct sock_addr addr;
    int code = sock_addr_parse(&addr, str_z(text), err);

    if (code < 0 || addr.sa.ss_family == AF_UNIX)
        return code;
    code = udp ? try_udp(fd, &addr, err) : sock_listen(fd, &addr, 1, err);
    if (is_any_port(&addr))
        fd_close(fd);
    return code;
}

/* Each is held until all were tried, so that two keys with one port are found here. */
static int try_all(struct server *s, struct err *err)
{
    const struct conf *c = s->conf;
    const struct {
        const char *key, *address;
        unsigned role; /* 0: any */
        bool udp;
    } ports[] = {
        {"s3.listen", c->s3.listen, ROLE_GATEWAY, false},
        {"api.listen", c->api.listen, 0, false},
        {"tracker.http", c->tracker.http, ROLE_TRACKER, false},
        {"tracker.udp", c->tracker.udp, ROLE_TRACKER, true},
    };
    int fds[ARRAY_SIZE(ports)], code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
        fds[i] = -1;
        if (code < 0 || !*ports[i].address || (ports[i].role && !(s->roles & ports[i].role)))
            continue;
        code = try_address(&fds[i], ports[i].address, ports[i].udp, err);
        if (code < 0)
            server_name_key(s, ports[i].key, code, err);
    }
    for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
        fd_close(&fds[i]);
    s->ports_tried = code == 0;
    return code;
}

/* Where there is a folder it comes first: that another weir has it says more than that the other
 * has the ports too. */
int server_try_ports_first(struct server *s, struct err *err)
{
    return file_exists(s->conf->data) ? 0 : try_all(s, err);
}

int server_try_ports(struct server *s, struct err *err)
{
    return s->ports_tried ? 0 : try_all(s, err);
}
