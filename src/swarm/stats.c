/* The tracker's statistics: one table of numbers, written as HTML and as JSON. */
#include "swarm/stats.h"

#define NUMBER(member)             offsetof(struct tracker_stats, member)
#define REQUESTS(protocol, action) NUMBER(counts.requests[TRACKER_##protocol][ACTION_##action])

enum shown { ALWAYS, PUBLIC, PRIVATE, SHARED };

static const struct {
    const char *name; /* member in JSON */
    const char *text; /* text on the HTML page */
    size_t offset;
    enum shown shown;
} rows[] = {
    {"uptime_seconds", "Seconds since the start", NUMBER(uptime_s), ALWAYS},
    {"torrents", "Torrents", NUMBER(swarms.torrents), PUBLIC},
    {"torrents_added", "Torrents that were added", NUMBER(swarms.added), PUBLIC},
    {"seeders_ipv4", "Seeders, IPv4", NUMBER(swarms.seeders4), PUBLIC},
    {"leechers_ipv4", "Leechers, IPv4", NUMBER(swarms.leechers4), PUBLIC},
    {"seeders_ipv6", "Seeders, IPv6", NUMBER(swarms.seeders6), PUBLIC},
    {"leechers_ipv6", "Leechers, IPv6", NUMBER(swarms.leechers6), PUBLIC},
    {"snatches", "Downloads completed", NUMBER(swarms.snatches), PUBLIC},
    {"evicted", "Torrents displaced by others", NUMBER(swarms.evicted), PUBLIC},
    {"crowded", "Announces past the bound of an address", NUMBER(swarms.crowded), PUBLIC},
    {"memory_bytes", "Bytes of memory for them", NUMBER(swarms.bytes), PUBLIC},
    {"torrents", "Torrents", NUMBER(store.torrents), PRIVATE},
    {"users", "Users", NUMBER(store.users), PRIVATE},
    {"peers", "Peers", NUMBER(store.peers), PRIVATE},
    {"http_announces", "Announces over HTTP", REQUESTS(HTTP, ANNOUNCE), ALWAYS},
    {"http_scrapes", "Scrapes over HTTP", REQUESTS(HTTP, SCRAPE), ALWAYS},
    {"http_errors", "Failures over HTTP", REQUESTS(HTTP, ERROR), ALWAYS},
    {"udp_connects", "Connects over UDP", REQUESTS(UDP, CONNECT), ALWAYS},
    {"udp_announces", "Announces over UDP", REQUESTS(UDP, ANNOUNCE), ALWAYS},
    {"udp_scrapes", "Scrapes over UDP", REQUESTS(UDP, SCRAPE), ALWAYS},
    {"udp_errors", "Failures over UDP", REQUESTS(UDP, ERROR), ALWAYS},
    {"bad_connection_ids", "Bad connection ids", NUMBER(counts.bad_connection_ids), ALWAYS},
    {"banned", "Packets of addresses that are banned", NUMBER(counts.banned), ALWAYS},
    {"dropped", "Packets dropped", NUMBER(counts.dropped), ALWAYS},
    {"share_waiting", "Changes that wait for the store", NUMBER(share.waiting), SHARED},
    {"share_written", "Changes written to the store", NUMBER(share.written), SHARED},
    {"share_told", "Changes told to other trackers", NUMBER(share.told), SHARED},
    {"share_applied", "Changes of other trackers", NUMBER(share.applied), SHARED},
    {"share_dropped", "Changes not told", NUMBER(share.dropped), SHARED},
    {"share_refused", "Changes that the store refused", NUMBER(share.refused), SHARED},
    {"share_behind", "1 while the store cannot be asked", NUMBER(share.behind), SHARED},
};

static bool is_shown(enum shown shown, struct tracker *t, const struct tracker_stats *s)
{
    switch (shown) {
    case PUBLIC:
        return tracker_settings(t)->mode == TRACKER_PUBLIC;
    case PRIVATE:
        return tracker_settings(t)->mode == TRACKER_PRIVATE;
    case SHARED:
        return s->share.on;
    default:
        return true;
    }
}

static uint64_t stat_number(const struct tracker_stats *s, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)s + offset, sizeof(value));
    return value;
}

static struct str mode_name(struct tracker *t)
{
    return tracker_settings(t)->mode == TRACKER_PUBLIC ? STR("public") : STR("private");
}

void stats_members(struct json_out *w, struct tracker *t)
{
    struct tracker_stats stats;

    tracker_stats(t, &stats);
    json_out_member_str(w, "mode", mode_name(t));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (is_shown(rows[i].shown, t, &stats))
            json_out_member_u64(w, rows[i].name, stat_number(&stats, rows[i].offset));
    json_out_key(w, "failures");
    json_out_open(w, '{');
    for (int f = SWARM_NONE + 1; f < SWARM_FAILURE_COUNT; f++)
        json_out_member_u64(w, swarm_failure_text((enum swarm_failure)f), stats.counts.failures[f]);
    json_out_close(w, '}');
}

static void page_row(struct buf *out, const char *text, uint64_t value)
{
    buf_appendf(out, "<tr><td>%s</td><td align=\"right\">", text);
    buf_append_u64(out, value);
    buf_append_z(out, "</td></tr>\n");
}

void stats_page(struct buf *out, struct tracker *t)
{
    struct tracker_stats stats;

    tracker_stats(t, &stats);
    buf_appendf(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><title>weir tracker</title></head><body>"
                "\n<h1>weir tracker</h1>\n<p>" STR_FMT
                "; <a href=\"?json\">JSON</a></p>\n<table>\n",
                STR_ARG(mode_name(t)));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (is_shown(rows[i].shown, t, &stats))
            page_row(out, rows[i].text, stat_number(&stats, rows[i].offset));
    for (int f = SWARM_NONE + 1; f < SWARM_FAILURE_COUNT; f++)
        if (stats.counts.failures[f])
            page_row(out, swarm_failure_text((enum swarm_failure)f), stats.counts.failures[f]);
    buf_append_z(out, "</table>\n</body></html>\n");
}
