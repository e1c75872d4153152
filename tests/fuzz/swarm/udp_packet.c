/* udp_packet: whatever is read lies in the packet, URL data is bounded, and replies are no longer
 * than they may be. */
#include "swarm/query.h"
#include "swarm/udp_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(const uint8_t *p, size_t len, const uint8_t *data, size_t size)
{
    BUG_ON(p < data || p + len > data + size);
}

static void check_announce(const struct udp_request *r, const uint8_t *data, size_t size)
{
    struct str url = str_n(r->url, r->url_len), passkey;

    check_within(r->announce.info_hash, INFO_HASH_LEN, data, size);
    check_within(r->announce.peer_id, PEER_ID_LEN, data, size);
    check_within((const uint8_t *)r->announce.key.p, r->announce.key.len, data, size);
    BUG_ON(r->announce.numwant == 0);
    BUG_ON(r->announce.event > EVENT_PAUSED && r->failure == SWARM_NONE);
    BUG_ON(r->url_len > size - UDP_ANNOUNCE_LEN);
    if (r->url_len > UDP_URL_MAX)
        return;
    passkey = query_passkey(url);
    BUG_ON(passkey.len > url.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct udp_request r;
    uint8_t out[64];

    if (udp_read(&r, data, size) < 0)
        return 0;
    BUG_ON(size < UDP_CONNECT_LEN);
    if (r.action == UDP_ANNOUNCE)
        check_announce(&r, data, size);
    if (r.action == UDP_SCRAPE)
        check_within(r.hashes, r.hash_count * INFO_HASH_LEN, data, size);
    BUG_ON(udp_write_error(out, size_min(size, sizeof(out)), r.transaction, STR("no")) > size);
    return 0;
}
