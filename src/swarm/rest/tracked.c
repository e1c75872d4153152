/* Routes: torrents of the tracker, and its statistics. */
#include "swarm/rest/rest.h"
#include "base/clock.h"
#include "base/hex.h"
#include "swarm/name.h"
#include "swarm/stats.h"

enum { COUNT_AT_ONCE = 64 };

static rest_fn swarm_torrent_list, swarm_torrent_add, swarm_torrent_remove, swarm_stats;

/* A torrent as it is shown, and a torrent that is to be added. */
struct tracked_view {
    char info_hash[2 * INFO_HASH_LEN + 1];
    struct torrent torrent;
    uint64_t seeders, leechers, snatches;
    int64_t last_action_ms;
};
struct tracked_form {
    struct str torrent;
    uint64_t id;
    double up_multiplier, down_multiplier;
};

static const struct rest_field swarm_torrent_fields[] = {
    {"info_hash", "The info hash, in hexadecimal digits.",
     REST_CHARS(struct tracked_view, info_hash)},
    {"id", "The torrent's id.", REST_INTEGER, REST_AT(struct tracked_view, torrent.id)},
    {"active", "Is it served?", REST_BOOLEAN, REST_AT(struct tracked_view, torrent.active)},
    {"seeders", "Peers that have everything.", REST_INTEGER, REST_AT(struct tracked_view, seeders)},
    {"leechers", "Peers that do not.", REST_INTEGER, REST_AT(struct tracked_view, leechers)},
    {"snatches", "Downloads that were completed.", REST_INTEGER,
     REST_AT(struct tracked_view, snatches)},
    {"up_multiplier", "Uploads are credited times this.", REST_NUMBER,
     REST_AT(struct tracked_view, torrent.up_multiplier)},
    {"down_multiplier", "Downloads are charged times this.", REST_NUMBER,
     REST_AT(struct tracked_view, torrent.down_multiplier)},
    {"last_action", "When a peer last announced it.", REST_TIME,
     REST_AT(struct tracked_view, last_action_ms)},
    {0},
};

static const struct rest_row swarm_torrent_rows[] = {
    {HTTP_GET, "/api/v1/swarm/stats", REST_ADMIN,
     "The tracker in numbers; which numbers there are depends on its mode.", swarm_stats,
     .answer = REST_FIELDS(
         {"mode", "The tracker's mode."},
         {"failures", "How many requests failed, for each reason.", REST_OBJECT,
          .members = REST_FIELDS({"*", "Requests that failed for this reason.", REST_INTEGER})},
         {"*", "A number of the tracker.", REST_INTEGER})},
    {HTTP_GET, "/api/v1/swarm/torrents", REST_ADMIN, "Torrents that were added, in no order.",
     swarm_torrent_list, .list = "torrents", .by_place = true, .page_usual = SWARM_PAGE_USUAL,
     .page_max = SWARM_PAGE_MAX, .item = sizeof(struct tracked_view),
     .items = swarm_torrent_fields},
    {HTTP_POST, "/api/v1/swarm/torrents", REST_ADMIN,
     "Add a torrent; one that is known gets the multipliers.", swarm_torrent_add, .status = 201,
     .in = sizeof(struct tracked_form), .out = sizeof(struct tracked_view),
     .body =
         REST_FIELDS({"torrent", "40 or 64 hexadecimal digits, or a magnet link.", .required = true,
                      REST_AT(struct tracked_form, torrent)},
                     {"id", "The torrent's id; the next free number when left out.", REST_INTEGER,
                      .min = 0, .max = SWARM_ID_MAX, REST_AT(struct tracked_form, id)},
                     {"up_multiplier", "Uploads are credited times this; 1 when left out.",
                      REST_NUMBER, .usual = 1, REST_AT(struct tracked_form, up_multiplier)},
                     {"down_multiplier", "Downloads are charged times this; 1 when left out.",
                      REST_NUMBER, .usual = 1, REST_AT(struct tracked_form, down_multiplier)}),
     .answer = swarm_torrent_fields},
    {HTTP_DELETE, "/api/v1/swarm/torrents/{torrent}", REST_ADMIN,
     "Remove the torrent and all of its peers.", swarm_torrent_remove, .status = 204,
     .in_path = REST_FIELDS({"torrent", "40 or 64 hexadecimal digits, or a magnet link."}),
     .missing = "there is no such torrent"},
};
const struct rest_table swarm_tracked_routes = {REST_ROWS(swarm_torrent_rows)};

/* Fills in how many peers some torrents have: from memory if this tracker answers announces from
 * memory, else from the store. */
static int swarm_count_peers(const struct swarm_room *room, const uint8_t *hashes, size_t count,
                             struct scrape_entry *out, struct err *err)
{
    const struct service *s = &room->service;
    struct swarms *swarms = s->tracker ? tracker_swarms(s->tracker) : NULL;

    memset(out, 0, count * sizeof(*out));
    if (!swarms)
        return cache_scrape(s->cache, hashes, count, out, err);
    swarms_scrape(swarms, hashes, count, out);
    return 0;
}

static struct tracked_view tracked_view(const struct torrent *t, const struct scrape_entry *peers)
{
    struct tracked_view v = {
        .torrent = *t,
        .seeders = peers->complete,
        .leechers = peers->incomplete,
        .snatches = peers->downloaded > t->snatches ? peers->downloaded : t->snatches,
        .last_action_ms = t->last_action * MS_PER_S,
    };

    hex_write(v.info_hash, t->info_hash, INFO_HASH_LEN);
    v.info_hash[sizeof(v.info_hash) - 1] = 0;
    return v;
}

struct torrent_list {
    struct rest_call *c;
    struct torrent held[COUNT_AT_ONCE]; /* torrents of the page that are not written yet */
    size_t count;
};

static int torrent_list_flush(struct torrent_list *list, struct err *err)
{
    uint8_t hashes[COUNT_AT_ONCE * INFO_HASH_LEN];
    struct scrape_entry peers[COUNT_AT_ONCE];
    int code;

    for (size_t i = 0; i < list->count; i++)
        memcpy(hashes + i * INFO_HASH_LEN, list->held[i].info_hash, INFO_HASH_LEN);
    code = list->count ? swarm_count_peers(list->c->ctx, hashes, list->count, peers, err) : 0;
    for (size_t i = 0; code == 0 && i < list->count; i++) {
        struct tracked_view view = tracked_view(&list->held[i], &peers[i]);
        json_out_open(list->c->w, '{');
        rest_fields_write(list->c->w, swarm_torrent_fields, &view);
        json_out_close(list->c->w, '}');
    }
    list->count = 0;
    return code;
}

static int torrent_list_add(void *ctx, const struct torrent *t, struct err *err)
{
    struct torrent_list *list = ctx;

    if (rest_takes(list->c, STR_EMPTY))
        list->held[list->count++] = *t;
    if (rest_full(list->c))
        return ERR_END;
    return list->count == COUNT_AT_ONCE ? torrent_list_flush(list, err) : 0;
}

static int swarm_torrent_list(struct rest_call *c, struct err *err)
{
    struct torrent_list list = {.c = c};
    int code = cache_each_torrent(swarm_models(c), torrent_list_add, &list, err);

    return code == 0 || code == ERR_END ? torrent_list_flush(&list, err) : code;
}

static int swarm_torrent_read(struct torrent *out, const struct tracked_form *in, struct err *err)
{
    *out = (struct torrent){.id = in->id,
                            .active = true,
                            .up_multiplier = in->up_multiplier,
                            .down_multiplier = in->down_multiplier,
                            .last_action = clock_wall_ms() / MS_PER_S};
    return info_hash_parse(out->info_hash, in->torrent, err);
}

static int swarm_torrent_add(struct rest_call *c, struct err *err)
{
    struct scrape_entry peers = {0};
    struct torrent torrent;
    int code = swarm_torrent_read(&torrent, rest_in(c, struct tracked_form), err);

    if (code == 0)
        code = cache_add_torrent(swarm_models(c), &torrent, err);
    if (code == 0)
        code = swarm_count_peers(c->ctx, torrent.info_hash, 1, &peers, err);
    if (code < 0)
        return code;
    log_info(http_request_log(c->req), "swarm.torrent_added", log_u("id", torrent.id));
    struct tracked_view view = tracked_view(&torrent, &peers);
    return rest_give(c, &view);
}

static int swarm_torrent_remove(struct rest_call *c, struct err *err)
{
    uint8_t hash[INFO_HASH_LEN];
    int code = info_hash_parse(hash, rest_text(c, "torrent"), err);

    if (code == 0)
        code = cache_withdraw_torrent(swarm_models(c), hash, err);
    if (code == 0)
        log_info(http_request_log(c->req), "swarm.torrent_removed");
    return code;
}

static int swarm_stats(struct rest_call *c, struct err *err)
{
    const struct swarm_room *room = c->ctx;

    if (!room->service.tracker)
        return err_set(err, ERR_UNSUPPORTED,
                       "this weir has the tracker's data, but does not track");
    stats_members(c->w, room->service.tracker);
    return 0;
}
