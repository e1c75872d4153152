/* Packets of the UDP protocol, byte by byte; connection ids; bans. */
#include "swarm/connid.h"
#include "base/clock.h"
#include "swarm/query.h"
#include "swarm/udp_packet.h"
#include "unit/test.h"

static size_t unhex(uint8_t *out, const char *hex)
{
    size_t n = 0;

    for (; *hex; hex++) {
        static const char digits[] = "0123456789abcdef";
        const char *high = strchr(digits, *hex), *low;
        if (*hex == ' ')
            continue;
        low = strchr(digits, *++hex);
        CHECK(high && low);
        out[n++] = (uint8_t)((high - digits) << 4 | (low - digits));
    }
    return n;
}

static void check_bytes(const uint8_t *got, size_t len, const char *hex)
{
    uint8_t want[256];

    CHECK_INT(unhex(want, hex), len);
    CHECK(memcmp(got, want, len) == 0);
}

/* An announce as BEP 15 has it; `tail` behind byte 98. */
static size_t announce_packet(uint8_t *out, const char *tail)
{
    static const char *const fields = "0102030405060708 00000001 01020304 "
                                      "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3 "
                                      "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3 "
                                      "0000000000000011 0000000000000022 0000000000000033 "
                                      "00000002 7f000001 deadbeef ffffffff 1ae1";
    size_t n = unhex(out, fields);

    CHECK_INT(n, UDP_ANNOUNCE_LEN);
    return n + unhex(out + n, tail);
}

TEST(udp_packet, the_worked_bytes_of_connect)
{
    uint8_t p[64], out[64];
    struct udp_request r;

    CHECK_INT(udp_read(&r, p, unhex(p, "0000041727101980 00000000 01020304")), 0);
    CHECK_INT(r.action, UDP_CONNECT);
    CHECK_INT(r.transaction, 0x01020304);
    check_bytes(out, udp_write_connect(out, r.transaction, 0x1122334455667788),
                "00000000 01020304 1122334455667788");
    CHECK_ERR(udp_read(&r, p, unhex(p, "0000041727101981 00000000 01020304")), ERR_PARSE);
    CHECK_ERR(udp_read(&r, p, unhex(p, "0000041727101980 00000000 010203")), ERR_PARSE);
    CHECK_INT(udp_read(&r, p, unhex(p, "0000041727101980 00000000 01020304 ff")), 0);
}

TEST(udp_packet, the_worked_bytes_of_an_announce)
{
    uint8_t p[256], out[64];
    struct udp_request r;
    struct announce_answer a = {.interval_s = 1800, .incomplete = 1, .complete = 2};

    CHECK_INT(udp_read(&r, p, announce_packet(p, "")), 0);
    CHECK_INT(r.action, UDP_ANNOUNCE);
    CHECK_INT(r.connection_id, 0x0102030405060708);
    CHECK(r.announce.info_hash == p + 16 && r.announce.peer_id == p + 36);
    CHECK_INT(r.announce.downloaded, 0x11);
    CHECK_INT(r.announce.left, 0x22);
    CHECK_INT(r.announce.uploaded, 0x33);
    CHECK_INT(r.announce.event, EVENT_STARTED);
    CHECK_INT(r.announce.numwant, -1);
    CHECK_STR(r.announce.key, STR("\xde\xad\xbe\xef"));
    CHECK(r.announce.addr.port[0] == 0x1a && r.announce.addr.port[1] == 0xe1);
    CHECK_INT(r.url_len, 0);
    unhex(out + UDP_ANNOUNCE_HEAD, "0a000001 1ae1");
    a.peers4 = (struct compact){.at = out + UDP_ANNOUNCE_HEAD, .count = 1};
    check_bytes(out, udp_write_announce(out, 0x01020304, &a, false),
                "00000001 01020304 00000708 00000001 00000002 0a000001 1ae1");
}

TEST(udp_packet, numwant_of_nothing_is_the_default)
{
    uint8_t p[256];
    struct udp_request r;
    size_t len = announce_packet(p, "");

    memset(p + 92, 0, 4);
    CHECK_INT(udp_read(&r, p, len), 0);
    CHECK_INT(r.announce.numwant, NUMWANT_DEFAULT);
    p[95] = 7;
    CHECK_INT(udp_read(&r, p, len), 0);
    CHECK_INT(r.announce.numwant, 7);
}

TEST(udp_packet, an_event_that_there_is_not_is_a_failure)
{
    uint8_t p[256];
    struct udp_request r;
    size_t len = announce_packet(p, "");

    p[83] = EVENT_PAUSED;
    CHECK_INT(udp_read(&r, p, len), 0);
    CHECK_INT(r.failure, SWARM_NONE);
    p[83] = 5;
    CHECK_INT(udp_read(&r, p, len), 0);
    CHECK_INT(r.failure, SWARM_MALFORMED);
}

/* Scenario 29. */
TEST(udp_packet, udp_100_byte_announce)
{
    uint8_t p[256];
    struct udp_request r;

    CHECK_INT(udp_read(&r, p, announce_packet(p, "0000")), 0);
    CHECK_INT(r.url_len, 0);
    CHECK_ERR(udp_read(&r, p, 97), ERR_PARSE);
}

/* Scenario 28. */
TEST(udp_packet, udp_bep41_split_urldata_unknown_option)
{
    static const struct {
        const char *tail;
        struct str url;
    } rows[] = {
        {"02 11 2f616e6e6f756e63653f746f6b3d616263", STR("/announce?tok=abc")},
        {"01 02 03 2f616e 01 01 02 02 6e6f 00 02 01 78", STR("/anno")},
        {"09 03 010203 02 02 2f61 ff 00 02 01 6e", STR("/an")},
        {"02 00 02 01 2f", STR("/")},
        {"02 05 2f61", STR_EMPTY},       /* cut */
        {"02 01 2f 02", STR("/")},       /* cut after its first byte */
        {"02 01 2f 07 09 11", STR("/")}, /* an unknown one that is cut */
        {"00 02 01 2f", STR_EMPTY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t p[256];
        struct udp_request r;
        CHECK_INT(udp_read(&r, p, announce_packet(p, rows[i].tail)), 0);
        CHECK_STR(str_n(r.url, r.url_len), rows[i].url);
    }
}

TEST(udp_packet, url_data_beyond_the_bound_is_counted_and_not_kept)
{
    uint8_t p[UDP_ANNOUNCE_LEN + 5 * 257];
    struct udp_request r;
    size_t len = announce_packet(p, "");

    for (int i = 0; i < 5; i++, len += 257) {
        p[len] = 2;
        p[len + 1] = 255;
        memset(p + len + 2, 'a', 255);
    }
    CHECK_INT(udp_read(&r, p, len), 0);
    CHECK_INT(r.url_len, 5 * 255);
}

TEST(udp_packet, passkeys_are_found_in_url_data_in_all_forms)
{
    static const struct str pk = STR("0123456789abcdef0123456789abcdef");

    CHECK_STR(query_passkey(STR("/0123456789abcdef0123456789abcdef/announce")), pk);
    CHECK_STR(query_passkey(STR("/announce/0123456789abcdef0123456789abcdef")), pk);
    CHECK_STR(query_passkey(STR("/users/0123456789abcdef0123456789abcdef/announce")), pk);
    CHECK_STR(query_passkey(STR("/announce?passkey=0123456789abcdef0123456789abcdef")), pk);
}

TEST(udp_packet, scrapes_have_whole_hashes_and_answers_keep_their_order)
{
    struct scrape_entry e[2] = {{true, 1, 2, 3, 2}, {false, 0, 0, 0, 0}};
    uint8_t p[128] = {0}, out[64];
    struct udp_request r;

    unhex(p, "0102030405060708 00000002 0a0b0c0d");
    CHECK_ERR(udp_read(&r, p, 16), ERR_PARSE);
    CHECK_ERR(udp_read(&r, p, 35), ERR_PARSE);
    CHECK_INT(udp_read(&r, p, 16 + 20 * 2 + 19), 0);
    CHECK_INT(r.hash_count, 2);
    CHECK(r.hashes == p + 16);
    check_bytes(out, udp_write_scrape(out, 0x0a0b0c0d, e, 2),
                "00000002 0a0b0c0d 00000001 00000003 00000002 00000000 00000000 00000000");
}

/* Scenario 34. */
TEST(udp_packet, old_action4_ignored_or_served)
{
    uint8_t p[256] = {0};
    struct udp_request r;

    announce_packet(p, "000000000000000000000000");
    for (int action = 3; action < 256; action++) {
        p[11] = (uint8_t)action;
        CHECK_ERR(udp_read(&r, p, 110), ERR_PARSE);
    }
}

/* Scenario 33, of the writer. */
TEST(udp_packet, udp_error_not_larger_than_request)
{
    uint8_t out[64];

    for (size_t max = 0; max < 40; max++) {
        size_t len = udp_write_error(out, max, 1, STR("torrent does not exist"));
        CHECK(len <= max);
        CHECK_INT(len, max < 8 ? 0 : size_min(max, 30));
    }
    check_bytes(out, udp_write_error(out, 11, 0x01020304, STR("hello")),
                "00000003 01020304 68656c");
}

/* --- connection ids --- */

static const struct hash_key key = {0x0123456789abcdef, 0xfedcba9876543210};
static const uint8_t here[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static const uint8_t there[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2};
static const uint8_t here6[16] = {0xfe, 0x80, [15] = 1};

/* Scenario 26. */
TEST(connid, udp_connid_expiry_skew_other_ip)
{
    const int64_t made_at[] = {1700000000000, 1700000007999, 1700000004000};

    for (size_t i = 0; i < ARRAY_SIZE(made_at); i++) {
        int64_t at = made_at[i];
        uint64_t id = connid_make(&key, here, at);
        CHECK(connid_check(&key, here, at, id));
        CHECK(connid_check(&key, here, at + 120000, id));
        CHECK(!connid_check(&key, here, at + 128000, id));
        CHECK(!connid_check(&key, here, at + 256 * 8000, id)); /* its byte of time comes round */
        CHECK(connid_check(&key, here, at - 8000, id));        /* a clock that is behind */
        CHECK(!connid_check(&key, here, at - MS_PER_MINUTE, id));
        CHECK(!connid_check(&key, there, at, id));
        CHECK(!connid_check(&key, here6, at, id));
        CHECK(connid_check(&key, here6, at, connid_make(&key, here6, at)));
        for (int bit = 0; bit < 64; bit++)
            CHECK(!connid_check(&key, here, at, id ^ 1ULL << bit));
    }
}

/* Scenario 27. */
TEST(connid, udp_connid_shared_between_instances)
{
    struct hash_key same = key, other = {key.k0, key.k1 + 1};
    uint64_t id = connid_make(&key, here, 1700000000000);

    CHECK(connid_check(&same, here, 1700000001000, id));
    CHECK(!connid_check(&other, here, 1700000001000, id));
}

/* Scenario 64. */
TEST(connid, flood_bad_connid_ban_expires)
{
    struct connid_bans *b = connid_bans_new();

    for (int i = 0; i < CONNID_BAD_MAX - 1; i++)
        connid_bans_bad(b, here, 5000);
    CHECK(!connid_banned(b, here, 5000));
    connid_bans_bad(b, here, 5000);
    CHECK(connid_banned(b, here, 5000));
    CHECK(!connid_banned(b, there, 5000));
    CHECK(connid_banned(b, here, 5000 + CONNID_BAN_S - 8));
    CHECK(!connid_banned(b, here, 5000 + CONNID_BAN_S));
    connid_bans_bad(b, here, 5000 + CONNID_BAN_S); /* from the beginning */
    CHECK(!connid_banned(b, here, 5000 + CONNID_BAN_S));
    connid_bans_free(b);
}

TEST(connid, few_bad_ids_over_a_long_time_are_no_ban)
{
    struct connid_bans *b = connid_bans_new();

    for (uint64_t i = 0; i < 1000; i++)
        connid_bans_bad(b, here, 5000 + i * 10);
    CHECK(!connid_banned(b, here, 5000 + 10000));
    connid_bans_free(b);
}

TEST(connid, a_flood_from_forged_addresses_bans_nobody_and_frees_nobody)
{
    struct connid_bans *b = connid_bans_new();
    uint8_t host[16] = {[10] = 0xff, 0xff};
    uint32_t banned = 0;

    for (int i = 0; i < CONNID_BAD_MAX; i++)
        connid_bans_bad(b, here6, 5000);
    for (uint32_t i = 0; i < 1000000; i++) {
        uint32_t forged = i * 2654435761U;
        memcpy(host + 12, &forged, 4);
        connid_bans_bad(b, host, 5000);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t forged = i * 2654435761U;
        memcpy(host + 12, &forged, 4);
        banned += connid_banned(b, host, 5000);
    }
    CHECK_INT(banned, 0);
    CHECK(connid_banned(b, here6, 5000));
    connid_bans_free(b);
}
