/* Starting and stopping the tracker. */
#include "swarm/service.h"
#include "base/ids.h"
#include "swarm/cache.h"

enum { UDP_WAITING = 4096 };

static int open_cache(struct service *s, const struct service_options *o, struct err *err)
{
    struct cache_options options = {
        .store = o->store,
        .prefix = o->prefix,
        .feed = true,
        .feed_max = o->feed_max,
        .peer_timeout_s = o->tracker.peer_timeout_s,
        .max_peers = o->tracker.max_peers,
        .max_per_user = o->tracker.max_per_user,
        .max_numwant = INT32_MAX, /* the tracker applies its own bound, which a reload can change */
    };
    int code = cache_open(&s->cache, &options, err);

    return code < 0 ? err_wrap(err, code, "tracker") : 0;
}

static int open_tracker(struct service *s, const struct service_options *o, struct err *err)
{
    struct tracker_options options = o->tracker;
    int code;

    options.cache = s->cache;
    options.store = o->store;
    options.prefix = o->prefix;
    options.log = o->log;
    code = tracker_open(&s->tracker, &options, err);
    return code < 0 ? err_wrap(err, code, "tracker") : 0;
}

static int open_http(struct service *s, const struct service_options *o, struct err *err)
{
    struct swarm_http_options options = o->http;
    int code;

    options.tracker = s->tracker;
    options.server.log = o->log;
    code = swarm_http_start(&s->http, &options, err);
    return code < 0 ? err_wrap(err, code, code == ERR_INVALID ? "tracker.trusted" : "tracker.http")
                    : 0;
}

/* Chooses the key for connection ids. If the store does not answer, the tracker starts with a key
 * of its own. */
static void choose_key(struct service *s, const struct service_options *o, uint8_t key[16])
{
    struct err err = {0};

    random_bytes(key, 16);
    if (cache_shared_key(s->cache, key, &err) < 0)
        log_warn(o->log, "tracker.own_key", log_z("error", err.text),
                 log_z("why", "other trackers do not take its connection ids until it answers"));
}

static int open_udp(struct service *s, const struct service_options *o, struct err *err)
{
    struct udp_options options = o->udp;
    int code;

    options.tracker = s->tracker;
    options.cache = s->cache;
    options.waiting = options.waiting ? options.waiting : UDP_WAITING;
    options.log = o->log;
    choose_key(s, o, options.key);
    code = udp_start(&s->udp, &options, err);
    secure_zero(options.key, sizeof(options.key));
    return code < 0 ? err_wrap(err, code, "tracker.udp") : 0;
}

int service_start(struct service *s, const struct service_options *o, struct err *err)
{
    int code;

    *s = (struct service){0};
    code = open_cache(s, o, err);
    if (code == 0 && o->tracks)
        code = open_tracker(s, o, err);
    if (code == 0 && o->tracks && o->http_on)
        code = open_http(s, o, err);
    if (code == 0 && o->tracks && o->udp_on)
        code = open_udp(s, o, err);
    if (code < 0)
        (void)service_stop(s, 0);
    return code;
}

bool service_stop(struct service *s, uint64_t deadline_ns)
{
    if (s->udp)
        udp_stop(s->udp);
    s->udp = NULL;
    if (s->http && !swarm_http_stop(s->http, deadline_ns))
        return false;
    swarm_http_free(s->http);
    tracker_close(s->tracker);
    cache_close(s->cache);
    *s = (struct service){0};
    return true;
}
