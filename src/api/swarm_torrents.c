/* Torrents of the tracker, and its numbers. */
#include "api/swarm.h"
#include "base/clock.h"
#include "base/hex.h"
#include "swarm/name.h"
#include "swarm/stats.h"

enum { COUNT_AT_ONCE = 64 };

static api_fn get_torrents, add_torrent, remove_torrent, get_stats;

SWARM_ROUTE(api_get_swarm_torrents, get_torrents, 200, .list = "torrents")
SWARM_ROUTE(api_post_swarm_torrent, add_torrent, 201, .takes_body = true)
SWARM_ROUTE(api_delete_swarm_torrent, remove_torrent, 204, .missing = "there is no such torrent")
SWARM_ROUTE(api_get_swarm_stats, get_stats, 200)

/* Of some torrents: from memory where it is answered from there. */
static int count_peers(struct api *api, const uint8_t *hashes, size_t count,
                       struct scrape_entry *out, struct err *err)
{
    struct service *s = api->swarm;
    struct swarms *swarms = s->tracker ? tracker_swarms(s->tracker) : NULL;

    memset(out, 0, count * sizeof(*out));
    if (!swarms)
        return cache_scrape(s->cache, hashes, count, out, err);
    swarms_scrape(swarms, hashes, count, out);
    return 0;
}

static void write_torrent(struct json_out *w, const struct torrent *t,
                          const struct scrape_entry *peers)
{
    char hash[2 * INFO_HASH_LEN + 1], at[CLOCK_ISO_LEN + 1];

    hex_write(hash, t->info_hash, INFO_HASH_LEN);
    hash[sizeof(hash) - 1] = 0;
    clock_iso(t->last_action * MS_PER_S, at);
    json_out_member_str(w, "info_hash", str_z(hash));
    json_out_member_u64(w, "id", t->id);
    json_out_member_bool(w, "active", t->active);
    json_out_member_u64(w, "seeders", peers->complete);
    json_out_member_u64(w, "leechers", peers->incomplete);
    json_out_member_u64(w, "snatches",
                        peers->downloaded > t->snatches ? peers->downloaded : t->snatches);
    json_out_member_f64(w, "up_multiplier", t->up_multiplier);
    json_out_member_f64(w, "down_multiplier", t->down_multiplier);
    json_out_member_str(w, "last_action", str_z(at));
}

struct torrent_list {
    struct api *api;
    struct json_out *w;
    size_t left;
    struct torrent held[COUNT_AT_ONCE]; /* those that are not written yet */
    size_t count;
};

static int write_held(struct torrent_list *list, struct err *err)
{
    uint8_t hashes[COUNT_AT_ONCE * INFO_HASH_LEN];
    struct scrape_entry peers[COUNT_AT_ONCE];
    int code;

    for (size_t i = 0; i < list->count; i++)
        memcpy(hashes + i * INFO_HASH_LEN, list->held[i].info_hash, INFO_HASH_LEN);
    code = list->count ? count_peers(list->api, hashes, list->count, peers, err) : 0;
    for (size_t i = 0; code == 0 && i < list->count; i++) {
        json_out_open(list->w, '{');
        write_torrent(list->w, &list->held[i], &peers[i]);
        json_out_close(list->w, '}');
    }
    list->count = 0;
    return code;
}

static int list_torrent(void *ctx, const struct torrent *t, struct err *err)
{
    struct torrent_list *list = ctx;

    if (list->left-- == 0)
        return ERR_END;
    list->held[list->count++] = *t;
    return list->count == COUNT_AT_ONCE ? write_held(list, err) : 0;
}

static int get_torrents(struct api_call *c, struct err *err)
{
    struct torrent_list list = {.api = c->api, .w = c->w};
    int code =
        api_query_number(c->req, "limit", SWARM_LIST_DEFAULT, SWARM_LIST_MAX, &list.left, err);

    if (code == 0)
        code = cache_each_torrent(c->cache, list_torrent, &list, err);
    if (code == 0 || code == ERR_END)
        code = write_held(&list, err);
    return code;
}

static int read_torrent(const json_t *object, struct torrent *out, struct err *err)
{
    static const char *const strings[] = {"torrent", NULL};
    int64_t id = json_get_i64(object, "id", 0);
    int code = api_check_strings(object, strings, err);

    *out = (struct torrent){.id = (uint64_t)id,
                            .active = true,
                            .up_multiplier = 1,
                            .down_multiplier = 1,
                            .last_action = clock_wall_ms() / MS_PER_S};
    if (code == 0 && id < 0)
        code = err_set(err, ERR_INVALID, "id is not below 0");
    if (code == 0)
        code = info_hash_parse(out->info_hash, json_get_str(object, "torrent", STR_EMPTY), err);
    if (code == 0)
        code = api_swarm_factor(object, "up_multiplier", &out->up_multiplier, err);
    if (code == 0)
        code = api_swarm_factor(object, "down_multiplier", &out->down_multiplier, err);
    return code;
}

static int add_torrent(struct api_call *c, struct err *err)
{
    struct scrape_entry peers = {0};
    struct torrent torrent;
    int code = read_torrent(c->body, &torrent, err);

    if (code == 0)
        code = cache_add_torrent(c->cache, &torrent, err);
    if (code == 0)
        code = count_peers(c->api, torrent.info_hash, 1, &peers, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "swarm.torrent_added", log_u("id", torrent.id));
    write_torrent(c->w, &torrent, &peers);
    return 0;
}

static int remove_torrent(struct api_call *c, struct err *err)
{
    uint8_t hash[INFO_HASH_LEN];
    int code = info_hash_parse(hash, route_param(c->params, "torrent"), err);

    if (code == 0)
        code = cache_withdraw_torrent(c->cache, hash, err);
    if (code == 0)
        log_info(http_request_log(c->req), "swarm.torrent_removed");
    return code;
}

static int get_stats(struct api_call *c, struct err *err)
{
    struct tracker *tracker = c->api->swarm->tracker;

    if (!tracker)
        return err_set(err, ERR_UNSUPPORTED, "this weir does not track");
    stats_members(c->w, tracker);
    return 0;
}
