/* Tries to listen on all ports before anything is created or opened. So a start that cannot listen
 * leaves no files behind. */
#include "server/server_int.h"
#include "conf/keys.h"
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

/* Whether the port is 0, which means any free port. No socket keeps such a port while the other
 * ports are tried, because the kernel might choose a port that another key names. */
static bool is_any_port(const struct sock_addr *addr)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->sa;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->sa;

    return (addr->sa.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port) == 0;
}

/* Tries to listen on an address. *fd is the socket that keeps the port; -1: no socket keeps it. A
 * unix socket is not tried, because the server itself must make its file. */
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

struct port {
    const char *key;
    const char *role; /* the role that listens here; NULL: every role */
    bool udp;
    int fd; /* socket that keeps the port while the other ports are tried; -1: none */
};
typedef VEC(struct port) port_list;

static void list_ports(const struct server *s, port_list *out)
{
    vec_push(out, ((struct port){"s3.listen", "gateway", false, -1}));
    vec_push(out, ((struct port){"api.listen", NULL, false, -1}));
    vec_each (&s->rooms, const struct room_instance *, r)
        for (size_t i = 0; i < r->room->port_count; i++) {
            const struct room_port *p = &r->room->ports[i];
            vec_push(out, ((struct port){p->key, r->room->role, p->udp, -1}));
        }
}

static const char *address_of_key(const struct conf *c, const char *name)
{
    const struct conf_key *key = conf_key_find(str_z(name));
    const char *text;

    BUG_ON(!key || key->type != CONF_ADDRESS);
    memcpy(&text, (const char *)c + key->offset, sizeof(text));
    return text;
}

static int try_port(const struct services *s, struct port *p, struct err *err)
{
    const char *address = address_of_key(s->conf, p->key);

    if (!*address || (p->role && !services_has_role(s, p->role)))
        return 0;
    int code = try_address(&p->fd, address, p->udp, err);
    return code < 0 ? services_blame_key(s, p->key, code, err) : 0;
}

/* Tries all ports. Each stays open until all were tried, so that two keys with the same port are
 * noticed. */
static int try_all_ports(struct server *s, struct err *err)
{
    port_list ports = {0};
    int code = 0;

    list_ports(s, &ports);
    vec_each (&ports, struct port *, p)
        if (code == 0)
            code = try_port(&s->services, p, err);
    vec_each (&ports, struct port *, p)
        fd_close(&p->fd);
    vec_release(&ports);
    s->ports_tried = code == 0;
    return code;
}

/* Tries the ports only if there is no data folder yet. An existing folder must be locked before
 * that. If another weir uses the folder, it also uses the ports, and "another weir uses this
 * folder" is the better error. */
int server_try_ports_first(struct server *s, struct err *err)
{
    return file_exists(s->conf->data) ? 0 : try_all_ports(s, err);
}

int server_try_ports(struct server *s, struct err *err)
{
    return s->ports_tried ? 0 : try_all_ports(s, err);
}
