/* The part of the server that makes torrents of objects. */
#include "server/server_int.h"

#include <limits.h>

enum { COLLECT_MS = 3600 * 1000 };

static struct storage *find_storage(void *ctx, struct str name)
{
    struct server *s = ctx;

    return routes_storage(s->routes, name);
}

/* "": off. */
static int read_address(struct sock_addr *out, const char *text, struct err *err)
{
    return *text ? sock_addr_parse(out, str_z(text), err) : 0;
}

static int open_torrents(struct server *s, struct err *err)
{
    const struct conf *c = s->start;
    struct torrents_options o = {
        .store = s->stores[SWARM_DB],
        .prefix = str_z(c->tracker.prefix),
        .queue = s->queue,
        .keys = s->torrent_keys,
        .find = find_storage,
        .find_ctx = s,
        .tracker_url = str_z(c->tracker.url),
        .is_private = c->tracker.mode == CONF_TRACKER_PRIVATE,
        .at_once = c->tracker.hash_at_once,
        .collect_ms = s->roles & ROLE_WORKER ? COLLECT_MS : 0,
        .log = &s->log,
    };
    int code = read_address(&o.http, c->tracker.http, err);

    if (code == 0)
        code = read_address(&o.udp, c->tracker.udp, err);
    return code < 0 ? code : torrents_open(&s->torrents, &o, err);
}

/* Where no tracker is named there is nothing for a torrent to name. The tracker itself may run in
 * another process: they meet in the store. */
int server_start_torrents(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);

    if (!*s->start->tracker.http && !*s->start->tracker.udp)
        return 0;
    buf_appendf(&path, "%s/encryption.keys", s->start->data);
    s->torrent_keys = keyring_new(path.p);
    buf_release(&path);
    int code = open_torrents(s, err);
    if (code < 0)
        keyring_free(s->torrent_keys);
    return code < 0 ? err_wrap(err, code, "torrents") : 0;
}

/* A port of 0 is another by now. */
static void set_port(struct sock_addr *addr, uint16_t port)
{
    if (addr->sa.ss_family == AF_INET)
        ((struct sockaddr_in *)&addr->sa)->sin_port = htons(port);
    else if (addr->sa.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&addr->sa)->sin6_port = htons(port);
}

int server_place_torrents(struct server *s, struct err *err)
{
    struct sock_addr http, udp = {0};
    int code = 0;

    if (!s->torrents)
        return 0;
    if (s->swarm.http)
        http_server_address(swarm_http_server(s->swarm.http), &http);
    if (s->swarm.udp) {
        code = read_address(&udp, s->start->tracker.udp, err);
        set_port(&udp, udp_port(s->swarm.udp));
    }
    torrents_listen(s->torrents, s->swarm.http ? &http : NULL, s->swarm.udp ? &udp : NULL);
    return code;
}

void server_stop_torrents(struct server *s)
{
    torrents_close(s->torrents);
    keyring_free(s->torrent_keys);
}
