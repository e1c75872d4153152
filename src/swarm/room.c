/* The parts of the swarm room, in the order of their start:
 * - "torrents" runs in every process, because the API and any gateway may be asked for the torrent
 *   of an object. A worker hashes large objects.
 * - "tracker" opens the tracker's models in the store (cache.h) in every process. With the role
 *   "tracker" it also starts the tracker and its endpoints.
 * - "place" tells the torrents where the tracker listens, because the tracker's ports are known
 *   only after its start. */
#include "swarm/room.h"

#include "base/clock.h"
#include "http/endpoint.h"
#include "meta/keyring.h"
#include "route/route.h"
#include "swarm/trust.h"

#include <limits.h>

enum { COLLECT_MS = MS_PER_HOUR };

/* --- torrents --- */

static struct storage *find_any_storage(void *ctx, struct str name)
{
    const struct swarm_room *r = ctx;

    return routes_storage(r->services->routes, name);
}

/* Reads an address from the configuration. An empty text leaves *out as it is. */
static int read_tracker_address(struct sock_addr *out, const char *text, struct err *err)
{
    return *text ? sock_addr_parse(out, str_z(text), err) : 0;
}

static int open_room_torrents(struct swarm_room *r, struct err *err)
{
    const struct services *s = r->services;
    const struct conf *c = s->conf;
    struct torrents_options o = {
        .store = s->stores[SWARM_DB],
        .prefix = str_z(c->tracker.prefix),
        .queue = s->queue,
        .keys = r->keys,
        .find = find_any_storage,
        .find_ctx = r,
        .tracker_url = str_z(c->tracker.url),
        .is_private = c->tracker.mode == CONF_TRACKER_PRIVATE,
        .at_once = c->tracker.hash_at_once,
        .collect_ms = services_has_role(s, "worker") ? COLLECT_MS : 0,
        .log = s->log,
    };
    int code = read_tracker_address(&o.http, c->tracker.http, err);

    if (code == 0)
        code = read_tracker_address(&o.udp, c->tracker.udp, err);
    return code < 0 ? code : torrents_open(&r->torrents, &o, err);
}

/* Starts the torrents of objects. A torrent names a tracker, so without a tracker in the
 * configuration there are no torrents. The tracker may run in another process that uses the same
 * store. */
static int torrents_start(void *state, struct services *s, struct err *err)
{
    struct swarm_room *r = state;
    struct buf path = BUF_INIT(PATH_MAX);

    r->services = s;
    if (!*s->conf->tracker.http && !*s->conf->tracker.udp)
        return 0;
    services_path(s, "encryption.keys", &path);
    r->keys = keyring_new(path.p);
    buf_release(&path);
    int code = open_room_torrents(r, err);
    if (code < 0) {
        keyring_free(r->keys);
        return err_wrap(err, code, "torrents");
    }
    s->hooks.torrents = torrents_of_objects(r->torrents);
    return 0;
}

static bool torrents_stop(void *state, struct services *s)
{
    struct swarm_room *r = state;

    s->hooks.torrents = NULL;
    torrents_close(r->torrents);
    keyring_free(r->keys);
    return true;
}

static void list_swarm_tasks(void *state, room_tasks *out)
{
    struct swarm_room *r = state;

    if (r->torrents)
        vec_push(out, ((struct task_handler){TORRENT_TASK_TYPE, torrents_handle, r->torrents}));
}

/* --- the tracker --- */

static uint32_t whole_seconds(uint64_t ms)
{
    return (uint32_t)((ms + MS_PER_S - 1) / MS_PER_S);
}

static bool shares_peers(const struct conf *c)
{
    return c->tracker.share == CONF_SHARE_ON ||
           (c->tracker.share == CONF_SHARE_AUTO && c->store.engine == CONF_ENGINE_REDIS);
}

static struct tracker_options tracker_options_of(const struct conf *c)
{
    return (struct tracker_options){
        .mode = c->tracker.mode == CONF_TRACKER_PRIVATE ? TRACKER_PRIVATE : TRACKER_PUBLIC,
        .open = c->tracker.open,
        .share = c->tracker.mode == CONF_TRACKER_PUBLIC && shares_peers(c),
        .interval_s = whole_seconds(c->tracker.interval_ms),
        .min_interval_s = whole_seconds(c->tracker.min_interval_ms),
        .peer_timeout_s = whole_seconds(c->tracker.peer_timeout_ms),
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

static int tracker_listen_options(struct service_options *o, const struct conf *c, struct err *err)
{
    int code;

    o->http_on = *c->tracker.http;
    o->udp_on = *c->tracker.udp;
    code = read_tracker_address(&o->http.server.listen, c->tracker.http, err);
    if (code < 0)
        return err_wrap(err, code, "tracker.http");
    code = endpoint_options(&o->http.server, c, err);
    if (code < 0)
        return code;
    code = read_tracker_address(&o->udp.listen, c->tracker.udp, err);
    return code < 0 ? err_wrap(err, code, "tracker.udp") : 0;
}

static int check_tracker_ready(void *ctx, struct err *err)
{
    return tracker_check(ctx, err);
}

static struct http_server *tracker_http_server(const struct swarm_room *r)
{
    return r->service.http ? swarm_http_server(r->service.http) : NULL;
}

static int tracker_start(void *state, struct services *s, struct err *err)
{
    struct swarm_room *r = state;
    const struct conf *c = s->conf;
    struct buf path = BUF_INIT(PATH_MAX);
    struct service_options o = {
        .store = s->stores[SWARM_DB],
        .prefix = str_z(c->tracker.prefix),
        .feed_max = c->tracker.feed_max,
        .log = s->log,
        .tracks = services_has_role(s, "tracker") && (*c->tracker.http || *c->tracker.udp),
        .tracker = tracker_options_of(c),
        .http = {.server.pool = s->pool, .trusted = str_z(c->tracker.trusted)},
        .udp = {.workers = c->tracker.workers},
    };
    int code = tracker_listen_options(&o, c, err);

    services_path(s, "swarm/peers", &path);
    r->snapshot = buf_take(&path);
    o.tracker.snapshot_path = r->snapshot;
    if (code == 0)
        code = service_start(&r->service, &o, err);
    if (code < 0) {
        free(r->snapshot);
        return code;
    }
    if (r->service.tracker)
        ready_add(s->ready,
                  (struct ready_part){"tracker", check_tracker_ready, r->service.tracker});
    if (r->service.http)
        services_add_server(s, "tracker", tracker_http_server(r));
    return 0;
}

static bool tracker_stop(void *state, struct services *s)
{
    struct swarm_room *r = state;

    services_remove_server(s, tracker_http_server(r));
    if (!service_stop(&r->service, s->deadline_ns))
        return false;
    free(r->snapshot);
    return true;
}

/* --- where the tracker listens --- */

static void set_address_port(struct sock_addr *addr, uint16_t port)
{
    if (addr->sa.ss_family == AF_INET)
        ((struct sockaddr_in *)&addr->sa)->sin_port = htons(port);
    else if (addr->sa.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&addr->sa)->sin6_port = htons(port);
}

/* Returns the address of the UDP tracker. If the configuration has port 0, the result has the port
 * that the kernel chose. */
static int tracker_udp_address(const struct swarm_room *r, struct sock_addr *out, struct err *err)
{
    int code = read_tracker_address(out, r->services->conf->tracker.udp, err);

    if (code == 0)
        set_address_port(out, udp_port(r->service.udp));
    return code;
}

static int place_start(void *state, struct services *s, struct err *err)
{
    struct swarm_room *r = state;
    struct sock_addr http, udp = {0};
    int code = 0;

    if (!r->torrents)
        return 0;
    if (r->service.http)
        http_server_address(tracker_http_server(r), &http);
    if (r->service.udp)
        code = tracker_udp_address(r, &udp, err);
    torrents_listen(r->torrents, r->service.http ? &http : NULL, r->service.udp ? &udp : NULL);
    return code;
}

static void greet_tracker(void *state, FILE *out)
{
    const struct swarm_room *r = state;
    char address[SOCK_ADDR_TEXT];
    struct sock_addr listen = {0};

    if (r->service.http) {
        http_server_address(tracker_http_server(r), &listen);
        sock_addr_text(&listen, address);
        if (str_starts(str_z(address), STR("unix:")))
            fprintf(out, "  tracker %s\n", address);
        else
            fprintf(out, "  tracker http://%s/announce\n", address);
    }
    if (r->service.udp && tracker_udp_address(r, &listen, NULL) == 0) {
        sock_addr_text(&listen, address);
        fprintf(out, "  tracker udp://%s\n", address);
    }
}

/* --- reload --- */

static int check_tracker_reload(void *state, const struct conf *next, struct err *err)
{
    const struct swarm_room *r = state;
    struct trust trust;
    int code = r->service.http ? trust_parse(&trust, str_z(next->tracker.trusted), err) : 0;

    return code < 0 ? err_wrap(err, code, "tracker.trusted") : 0;
}

static void reload_tracker(void *state, const struct conf *next)
{
    struct swarm_room *r = state;
    struct tracker_options o = tracker_options_of(next);

    /* check_tracker_reload() has parsed the networks, so this cannot fail. */
    if (r->service.http)
        BUG_ON(swarm_http_trust(r->service.http, str_z(next->tracker.trusted), NULL) < 0);
    if (r->service.tracker)
        tracker_change(r->service.tracker, &o);
}

/* --- the room --- */

static const struct room_part swarm_parts[] = {
    {ROOM_WORK, torrents_start, torrents_stop},
    {ROOM_LISTEN, tracker_start, tracker_stop},
    {ROOM_LISTEN, place_start, NULL},
};

static const struct room_port swarm_ports[] = {
    {"tracker.http", false},
    {"tracker.udp", true},
};

static const struct queue_weight swarm_queues[] = {
    {TORRENT_QUEUE, TORRENT_QUEUE_WEIGHT},
};

static const struct rest_table *const swarm_routes[] = {
    &swarm_object_routes, &swarm_user_routes, &swarm_tracked_routes, &swarm_feed_routes, NULL};

static const struct command *const swarm_command_tables[] = {torrent_commands, swarm_commands,
                                                             NULL};

const struct room swarm_room = {
    .name = "swarm",
    .role = "tracker",
    .state_size = sizeof(struct swarm_room),
    ROOM_ROWS(part, swarm_parts),
    ROOM_ROWS(port, swarm_ports),
    ROOM_ROWS(queue, swarm_queues),
    .tasks = list_swarm_tasks,
    .routes = swarm_routes,
    .commands = swarm_command_tables,
    ROOM_ROWS(metric, swarm_metrics),
    .count = swarm_count,
    .check = check_tracker_reload,
    .reload = reload_tracker,
    .greet = greet_tracker,
};
