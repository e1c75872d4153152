/* Packets of the UDP tracker protocol. */
#include "swarm/udp_packet.h"
#include "base/bytes.h"
#include "base/err.h"

#define PROTOCOL_ID 0x41727101980

/* Offsets of fields in requests. */
enum {
    AT_ACTION = 8,
    AT_TRANSACTION = 12,
    AT_HASH = 16,
    AT_PEER_ID = 36,
    AT_DOWNLOADED = 56,
    AT_LEFT = 64,
    AT_UPLOADED = 72,
    AT_EVENT = 80,
    AT_KEY = 88,
    AT_NUMWANT = 92,
    AT_PORT = 96
};

enum { OPTION_END, OPTION_NOP, OPTION_URL };

static void add_url(struct udp_request *out, const uint8_t *p, size_t len)
{
    if (out->url_len + len <= UDP_URL_MAX)
        memcpy(out->url + out->url_len, p, len);
    out->url_len += len;
}

/* Reads the options of an announce (BEP 41). */
static void read_udp_options(struct udp_request *out, const uint8_t *p, size_t len)
{
    while (len && *p != OPTION_END) {
        size_t step = 1;
        if (*p != OPTION_NOP) {
            if (len < 2 || len < 2U + p[1])
                return;
            step = 2U + p[1];
            if (*p == OPTION_URL)
                add_url(out, p + 2, p[1]);
        }
        p += step;
        len -= step;
    }
}

static int read_udp_announce(struct udp_request *out, const uint8_t *p, size_t len)
{
    struct announce *a = &out->announce;
    uint32_t event;

    if (len < UDP_ANNOUNCE_LEN)
        return ERR_PARSE;
    event = be32_read(p + AT_EVENT);
    *a = (struct announce){.info_hash = p + AT_HASH,
                           .peer_id = p + AT_PEER_ID,
                           .downloaded = be64_read(p + AT_DOWNLOADED),
                           .left = be64_read(p + AT_LEFT),
                           .uploaded = be64_read(p + AT_UPLOADED),
                           .event = (enum announce_event)event,
                           .key = str_n(p + AT_KEY, 4),
                           .numwant = (int32_t)be32_read(p + AT_NUMWANT)};
    memcpy(a->addr.port, p + AT_PORT, 2);
    if (a->numwant == 0) /* clients without a preference send 0 */
        a->numwant = NUMWANT_DEFAULT;
    if (event > EVENT_PAUSED) /* 4 is not in BEP 15; clients that send it mean "paused" */
        out->failure = SWARM_MALFORMED;
    read_udp_options(out, p + UDP_ANNOUNCE_LEN, len - UDP_ANNOUNCE_LEN);
    return 0;
}

int udp_read(struct udp_request *out, const uint8_t *p, size_t len)
{
    uint32_t action;

    if (len < UDP_CONNECT_LEN)
        return ERR_PARSE;
    action = be32_read(p + AT_ACTION);
    out->action = (enum udp_action)action;
    out->transaction = be32_read(p + AT_TRANSACTION);
    out->connection_id = be64_read(p);
    out->failure = SWARM_NONE;
    out->url_len = 0;
    switch (action) {
    case UDP_CONNECT:
        return out->connection_id == PROTOCOL_ID ? 0 : ERR_PARSE;
    case UDP_ANNOUNCE:
        return read_udp_announce(out, p, len);
    case UDP_SCRAPE:
        out->hashes = p + AT_HASH;
        out->hash_count = (len - AT_HASH) / INFO_HASH_LEN;
        return out->hash_count ? 0 : ERR_PARSE;
    default:
        return ERR_PARSE;
    }
}

static void write_udp_head(uint8_t *out, enum udp_action action, uint32_t transaction)
{
    be32_write(out, action);
    be32_write(out + 4, transaction);
}

size_t udp_write_connect(uint8_t *out, uint32_t transaction, uint64_t connection_id)
{
    write_udp_head(out, UDP_CONNECT, transaction);
    be64_write(out + 8, connection_id);
    return UDP_CONNECT_LEN;
}

size_t udp_write_announce(uint8_t *out, uint32_t transaction, const struct announce_answer *a,
                          bool v6)
{
    write_udp_head(out, UDP_ANNOUNCE, transaction);
    be32_write(out + 8, a->interval_s);
    be32_write(out + 12, a->incomplete);
    be32_write(out + 16, a->complete);
    return UDP_ANNOUNCE_HEAD +
           (v6 ? a->peers6.count * COMPACT6_LEN : a->peers4.count * COMPACT4_LEN);
}

size_t udp_write_scrape(uint8_t *out, uint32_t transaction, const struct scrape_entry *entries,
                        size_t count)
{
    uint8_t *p = out + UDP_SCRAPE_HEAD;

    write_udp_head(out, UDP_SCRAPE, transaction);
    for (size_t i = 0; i < count; i++, p += UDP_SCRAPE_ENTRY) {
        be32_write(p, entries[i].complete);
        be32_write(p + 4, entries[i].downloaded);
        be32_write(p + 8, entries[i].incomplete);
    }
    return (size_t)(p - out);
}

size_t udp_write_error(uint8_t *out, size_t max, uint32_t transaction, struct str text)
{
    if (max < UDP_ERROR_HEAD)
        return 0;
    text = str_head(text, max - UDP_ERROR_HEAD);
    write_udp_head(out, UDP_ERROR, transaction);
    memcpy(out + UDP_ERROR_HEAD, text.p, text.len);
    return UDP_ERROR_HEAD + text.len;
}
