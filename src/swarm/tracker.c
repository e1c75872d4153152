/* Handles announces and scrapes in both modes, and holds the settings. */
#include "swarm/tracker.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "swarm/share.h"
#include "swarm/tracker_int.h"

enum {
    VARIATION = 5, /* the interval varies by up to this many percent */
    LOW_PORTS = 1024,
    FALLBACK_WAITING = 100000
};

static const struct settings *settings_of(const struct tracker *t)
{
    return atomic_load_explicit(&t->settings, memory_order_acquire);
}

const struct tracker_options *tracker_settings(const struct tracker *t)
{
    return &settings_of(t)->o;
}

static void install_settings(struct tracker *t, const struct tracker_options *o)
{
    struct settings *next = xcalloc(1, sizeof(*next));

    next->o = *o;
    next->older = atomic_load_explicit(&t->settings, memory_order_relaxed);
    atomic_store_explicit(&t->settings, next, memory_order_release);
}

void tracker_change(struct tracker *t, const struct tracker_options *o)
{
    struct tracker_options next = *tracker_settings(t);

    next.interval_s = o->interval_s;
    next.min_interval_s = o->min_interval_s;
    next.numwant = o->numwant;
    next.max_numwant = o->max_numwant;
    next.max_scrape = o->max_scrape;
    next.approved_clients = o->approved_clients;
    next.allow_low_ports = o->allow_low_ports;
    install_settings(t, &next);
}

/* --- opening --- */

static uint32_t share_now(void *ctx)
{
    return tracker_now(ctx);
}

static int open_share(struct tracker *t, const struct tracker_options *o, struct err *err)
{
    struct share_options options = {
        .cache = o->cache,
        .store = o->store,
        .swarms = t->swarms,
        .now = share_now,
        .ctx = t,
        .peer_timeout_s = o->peer_timeout_s,
        .max_waiting = o->max_waiting ? o->max_waiting : FALLBACK_WAITING,
        .max_torrents = o->open ? o->max_torrents : 0,
        .max_peers = o->max_peers,
        .log = o->log,
    };

    return share_open(&t->share, &options, err);
}

static int load_snapshot(struct tracker *t, const char *path, struct err *err)
{
    int code = swarms_load(t->swarms, path, tracker_now(t), err);

    if (code == ERR_NOT_FOUND)
        return 0;
    /* Clients announce again soon, so it is better to start without the snapshot than not at all.
     */
    if (code == ERR_CORRUPT) {
        log_error(t->log, "tracker.snapshot_damaged", log_z("path", path),
                  log_z("error", err->text));
        return 0;
    }
    return code;
}

static int open_public(struct tracker *t, const struct tracker_options *o, struct err *err)
{
    struct swarms_options options = {
        .open = o->open,
        .max_torrents = o->max_torrents,
        .max_peers = o->max_peers,
        .max_per_address = o->max_per_address,
        .peer_timeout_s = o->peer_timeout_s,
        .numwant = o->numwant,
        .max_numwant = INT32_MAX, /* the tracker applies its own bound, which a reload can change */
        .log = o->log,
    };
    int code = swarms_new(&t->swarms, &options, err);

    if (code == 0)
        code = lists_start(t, err);
    if (code == 0 && o->share)
        code = open_share(t, o, err);
    if (code == 0 && !o->share && o->snapshot_path)
        code = load_snapshot(t, o->snapshot_path, err);
    return code;
}

int tracker_open(struct tracker **out, const struct tracker_options *o, struct err *err)
{
    struct tracker *t = xcalloc(1, sizeof(*t));
    int code = 0;

    t->mode = o->mode;
    t->log = o->log;
    t->cache = o->cache;
    t->store = o->store;
    t->counts = count_slots_new();
    t->started_ms = clock_mono_ms();
    mutex_init(&t->lists.lock, "tracker");
    mutex_init(&t->lists.clients_lock, "tracker.clients");
    install_settings(t, o);
    tracker_tick(t);
    if (t->mode == TRACKER_PUBLIC)
        code = open_public(t, o, err);
    if (code == 0)
        code = tracker_threads_start(t, err);
    if (code < 0) {
        tracker_close(t);
        return code;
    }
    *out = t;
    return 0;
}

void tracker_close(struct tracker *t)
{
    struct settings *next;

    if (!t)
        return;
    lists_end(t);
    tracker_threads_stop(t);
    if (t->share)
        share_close(t->share);
    if (t->swarms && atomic_load(&t->listed))
        tracker_save(t);
    swarms_free(t->swarms);
    lists_release(t);
    for (struct settings *s = atomic_load(&t->settings); s; s = next) {
        next = s->older;
        free(s);
    }
    free(t->counts);
    free(t);
}

bool tracker_waits(const struct tracker *t)
{
    return t->mode == TRACKER_PRIVATE;
}

struct swarms *tracker_swarms(struct tracker *t)
{
    return t->swarms;
}

uint32_t tracker_now(const struct tracker *t)
{
    return atomic_load_explicit(&t->now_s, memory_order_relaxed);
}

int tracker_check(struct tracker *t, struct err *err)
{
    if (t->mode == TRACKER_PUBLIC && !atomic_load(&t->listed))
        return err_set(err, ERR_UNAVAILABLE, "the list of torrents could not be loaded yet");
    return 0;
}

/* --- announce --- */

/* Checks whether an announce must be refused for a reason that does not depend on the torrent. */
static enum swarm_failure announce_refusal(struct tracker *t, const struct tracker_options *o,
                                           const struct announce *a)
{
    unsigned port = be16_read(a->addr.port);

    if (store_may_serve(t->store, NULL) < 0)
        return SWARM_UNAVAILABLE;
    if (port == 0 || (port < LOW_PORTS && !o->allow_low_ports))
        return SWARM_PORT;
    if (t->mode == TRACKER_PRIVATE)
        return a->passkey.len == PASSKEY_LEN ? SWARM_NONE : SWARM_PASSKEY;
    if (o->approved_clients && !lists_approve(t, a->peer_id))
        return atomic_load(&t->listed) ? SWARM_CLIENT : SWARM_UNAVAILABLE;
    return SWARM_NONE;
}

static uint32_t vary_interval(uint32_t interval_s, const struct announce *a)
{
    uint64_t seed = hash_xxh3(str_n(a->info_hash, INFO_HASH_LEN), 0);
    uint64_t hash = hash_xxh3(str_n(a->peer_id, PEER_ID_LEN), seed);
    uint32_t span = interval_s * VARIATION / 100;

    return span ? interval_s - span + (uint32_t)(hash % (2 * (uint64_t)span + 1)) : interval_s;
}

static void ask_memory(struct tracker *t, const struct announce *a, struct announce_answer *out)
{
    enum swarm_change change = swarms_announce(t->swarms, a, tracker_now(t), out);

    if (t->share && change != SWARM_CHANGE_NONE && out->failure == SWARM_NONE)
        share_change(t->share, a, change);
    /* Until the list of torrents has been loaded, a torrent that is not in memory may be in the
     * list. */
    if (out->failure == SWARM_TORRENT && !atomic_load_explicit(&t->listed, memory_order_relaxed))
        out->failure = SWARM_UNAVAILABLE;
}

/* Logs one line when the store begins to fail and one when it answers again, so that clients cannot
 * fill the log. */
static void note_store(struct tracker *t, int code, const struct err *err)
{
    bool fails = code < 0;

    if (atomic_load_explicit(&t->store_fails, memory_order_relaxed) == fails ||
        atomic_exchange(&t->store_fails, fails) == fails)
        return;
    if (fails)
        log_warn(t->log, "tracker.store_failed", log_z("code", err_name(code)),
                 log_z("error", err->text));
    else
        log_info(t->log, "tracker.store_back");
}

static void ask_store(struct tracker *t, const struct announce *a, struct announce_answer *out)
{
    struct err err = {0};
    int code = cache_announce(t->cache, a, out, &err);

    note_store(t, code, &err);
    if (code < 0)
        out->failure = SWARM_UNAVAILABLE;
}

void tracker_announce(struct tracker *t, const struct announce *a, struct announce_answer *out)
{
    const struct tracker_options *o = tracker_settings(t);
    struct announce asked = *a;
    enum swarm_failure refusal = announce_refusal(t, o, a);

    if (asked.numwant < 0)
        asked.numwant = (int32_t)o->numwant;
    if (asked.numwant > (int32_t)o->max_numwant)
        asked.numwant = (int32_t)o->max_numwant;
    if (asked.event == EVENT_STOPPED)
        asked.numwant = 0;
    if (refusal != SWARM_NONE) {
        announce_answer_reset(out);
        out->failure = refusal;
    } else if (t->swarms) {
        ask_memory(t, &asked, out);
    } else {
        ask_store(t, &asked, out);
    }
    if (out->failure != SWARM_NONE) {
        tracker_count_failure(t, out->failure);
        return;
    }
    out->min_interval_s = o->min_interval_s;
    out->interval_s = vary_interval(o->interval_s, a);
    if (out->interval_s < o->min_interval_s)
        out->interval_s = o->min_interval_s;
}

/* --- scrape --- */

static enum swarm_failure scrape_store(struct tracker *t, struct str passkey, const uint8_t *hashes,
                                       size_t count, struct scrape_entry *out)
{
    struct swarm_user user;
    struct err err = {0};
    int code;

    if (passkey.len != PASSKEY_LEN)
        return SWARM_PASSKEY;
    code = cache_find_user(t->cache, passkey, &user, &err);
    if (code == ERR_NOT_FOUND)
        return SWARM_USER;
    secure_zero(&user, sizeof(user));
    if (code == 0)
        code = cache_scrape(t->cache, hashes, count, out, &err);
    note_store(t, code, &err);
    return code < 0 ? SWARM_UNAVAILABLE : SWARM_NONE;
}

enum swarm_failure tracker_scrape(struct tracker *t, struct str passkey, const uint8_t *hashes,
                                  size_t count, struct scrape_entry *out)
{
    enum swarm_failure failure = SWARM_NONE;

    if (store_may_serve(t->store, NULL) < 0)
        failure = SWARM_UNAVAILABLE;
    else if (count > tracker_settings(t)->max_scrape)
        failure = SWARM_MALFORMED;
    else if (t->swarms)
        swarms_scrape(t->swarms, hashes, count, out);
    else
        failure = scrape_store(t, passkey, hashes, count, out);
    if (failure != SWARM_NONE)
        tracker_count_failure(t, failure);
    return failure;
}
