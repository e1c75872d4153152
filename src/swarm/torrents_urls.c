/* Makes the announce URLs that torrents contain. */
#include "swarm/torrents_int.h"

#include "http/wire.h"

static uint16_t announce_port(const struct sock_addr *addr)
{
    if (addr->sa.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&addr->sa)->sin_port);
    if (addr->sa.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&addr->sa)->sin6_port);
    return 0; /* a unix socket has no port */
}

/* Returns the tracker's host for its URLs. If the tracker listens on all addresses, this is the
 * host that the client used to reach us. */
static struct str announce_host(struct arena *a, const struct sock_addr *addr, struct str asked)
{
    char text[SOCK_ADDR_TEXT];

    sock_addr_host(addr, text);
    struct str own = str_z(text);
    if (str_eq(own, STR("0.0.0.0")) || str_eq(own, STR("::")) || own.len == 0)
        own = asked.len ? asked : STR("127.0.0.1");
    if (str_chr(own, ':') >= 0 && own.p[0] != '[')
        return arena_fmt(a, "[" STR_FMT "]", STR_ARG(own));
    return arena_str(a, own);
}

/* Makes the path "/announce", or with a passkey "/<passkey>/announce" (docs/swarm.md). */
static struct str announce_path(struct arena *a, struct str passkey)
{
    return passkey.len ? arena_fmt(a, "/" STR_FMT "/announce", STR_ARG(passkey)) : STR("/announce");
}

static struct str announce_url(struct arena *a, const char *scheme, const struct sock_addr *addr,
                               struct str host)
{
    struct str name = announce_host(a, addr, host);

    return arena_fmt(a, "%s://" STR_FMT ":%u", scheme, STR_ARG(name), announce_port(addr));
}

size_t torrent_announces(const struct torrents *t, struct arena *a, struct str host,
                         struct str passkey, struct str out[TORRENT_ANNOUNCES_MAX])
{
    const struct sock_addr *http = &t->o.http, *udp = &t->o.udp;
    struct str path = announce_path(a, passkey), base = t->o.tracker_url;
    struct url url = {0};
    size_t count = 0;

    if (base.len && url_parse(&url, base, NULL) == 0) {
        bool v6 = str_chr(url.host, ':') >= 0;
        host = arena_fmt(a, v6 ? "[" STR_FMT "]" : STR_FMT, STR_ARG(url.host));
    }
    while (base.len && base.p[base.len - 1] == '/')
        base.len--;
    if (http->len && !base.len && announce_port(http))
        base = announce_url(a, "http", http, host);
    if (http->len && base.len)
        out[count++] = arena_fmt(a, STR_FMT STR_FMT, STR_ARG(base), STR_ARG(path));
    if (udp->len && announce_port(udp)) {
        struct str name = t->o.tracker_url.len ? host : announce_host(a, udp, host);
        out[count++] = arena_fmt(a, "udp://" STR_FMT ":%u" STR_FMT, STR_ARG(name),
                                 announce_port(udp), STR_ARG(path));
    }
    return count;
}
