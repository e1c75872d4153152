/* The part of the server that is the BitTorrent tracker. */
#include "server/server_int.h"

#include <limits.h>

static uint32_t seconds(uint64_t ms)
{
    return (uint32_t)((ms + 999) / 1000);
}

static bool shares(const struct conf *c)
{
    return c->tracker.share == CONF_SHARE_ON ||
           (c->tracker.share == CONF_SHARE_AUTO && c->store.engine == CONF_ENGINE_REDIS);
}

static struct tracker_options tracker_options_of(const struct conf *c)
{
    return (struct tracker_options){
        .mode = c->tracker.mode == CONF_TRACKER_PRIVATE ? TRACKER_PRIVATE : TRACKER_PUBLIC,
        .open = c->tracker.open,
        .share = c->tracker.mode == CONF_TRACKER_PUBLIC && shares(c),
        .interval_s = seconds(c->tracker.interval_ms),
        .min_interval_s = seconds(c->tracker.min_interval_ms),
        .peer_timeout_s = seconds(c->tracker.peer_timeout_ms),
        .numwant = (uint32_t)c->tracker.numwant,
        .max_numwant = (uint32_t)c->tracker.max_numwant,
        .max_scrape = (uint32_t)c->tracker.max_scrape,
        .max_torrents = c->tracker.max_torrents,
        .max_peers = c->tracker.max_peers,
        .max_per_user = c->tracker.max_per_user,
        .max_per_address = (uint32_t)c->tracker.max_per_address,
        .approved_clients = c->tracker.approved_clients,
        .allow_low_ports = c->tracker.allow_low_ports,
        .snapshot_ms = c->tracker.snapshot_ms,
    };
}

static int listen_options(struct service_options *o, const struct conf *c, struct err *err)
{
    int code = 0;

    o->http_on = *c->tracker.http;
    o->udp_on = *c->tracker.udp;
    if (o->http_on)
        code = sock_addr_parse(&o->http.server.listen, str_z(c->tracker.http), err);
    if (code < 0)
        return err_wrap(err, code, "tracker.http");
    code = endpoint_options(&o->http.server, c, err);
    if (code < 0)
        return code;
    if (o->udp_on)
        code = sock_addr_parse(&o->udp.listen, str_z(c->tracker.udp), err);
    return code < 0 ? err_wrap(err, code, "tracker.udp") : 0;
}

static int check_tracker(void *ctx, struct err *err)
{
    return tracker_check(ctx, err);
}

int server_start_swarm(struct server *s, struct err *err)
{
    const struct conf *c = s->start;
    struct buf path = BUF_INIT(PATH_MAX);
    struct service_options o = {
        .store = s->stores[SWARM_DB],
        .prefix = str_z(c->tracker.prefix),
        .feed_max = c->tracker.feed_max,
        .log = &s->log,
        .tracks = s->roles & ROLE_TRACKER && (*c->tracker.http || *c->tracker.udp),
        .tracker = tracker_options_of(c),
        .http = {.server.pool = s->pool, .trusted = str_z(c->tracker.trusted)},
        .udp = {.workers = c->tracker.workers},
    };
    int code = listen_options(&o, c, err);

    buf_appendf(&path, "%s/swarm/peers", c->data);
    o.tracker.snapshot_path = path.p;
    if (code == 0)
        code = service_start(&s->swarm, &o, err);
    /* The tracker keeps the path. */
    s->swarm_path = buf_take(&path);
    if (code == 0 && s->swarm.tracker)
        ready_add(&s->ready, (struct ready_part){"tracker", check_tracker, s->swarm.tracker});
    if (code < 0)
        free(s->swarm_path);
    return code;
}

/* What still runs at the deadline holds the parts below. */
bool server_stop_swarm(struct server *s)
{
    if (!service_stop(&s->swarm, s->deadline_ns))
        return false;
    free(s->swarm_path);
    return true;
}

int server_reload_swarm(struct server *s, const struct conf *next, struct err *err)
{
    struct tracker_options o = tracker_options_of(next);
    int code = 0;

    if (s->swarm.http)
        code = swarm_http_trust(s->swarm.http, str_z(next->tracker.trusted), err);
    if (code < 0)
        return err_wrap(err, code, "tracker.trusted");
    if (s->swarm.tracker)
        tracker_change(s->swarm.tracker, &o);
    return 0;
}
