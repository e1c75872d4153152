/* The ports, tried before anything is made or opened: a start that cannot listen leaves nothing. */
#include "cli/server_int.h"
#include "os/file.h"

#include <errno.h>
#include <sys/socket.h>

static int try_tcp(const struct sock_addr *addr, struct err *err)
{
    int fd = -1, code = sock_listen(&fd, addr, 1, err);

    fd_close(&fd);
    return code;
}

static int try_udp(const struct sock_addr *addr, struct err *err)
{
    char text[SOCK_ADDR_TEXT];
    int fd = socket(addr->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), off = 0, code = 0;

    sock_addr_text(addr, text);
    if (fd >= 0 && addr->sa.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr->sa, addr->len) < 0)
        code = err_errno(err, errno, "listening on %s (UDP)", text);
    fd_close(&fd);
    return code;
}

/* The file of a unix socket is left to its server. */
static int try_address(const char *text, bool udp, struct err *err)
{
    struct sock_addr addr;
    int code = sock_addr_parse(&addr, str_z(text), err);

    if (code < 0 || addr.sa.ss_family == AF_UNIX)
        return code;
    return udp ? try_udp(&addr, err) : try_tcp(&addr, err);
}

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

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
        if (!*ports[i].address || (ports[i].role && !(s->roles & ports[i].role)))
            continue;
        int code = try_address(ports[i].address, ports[i].udp, err);
        if (code < 0)
            return server_name_key(s, ports[i].key, code, err);
    }
    s->ports_tried = true;
    return 0;
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
