/* The path and the query of HTTP announces and scrapes. */
#include "swarm/query.h"
#include "unit/test.h"

#define HASH "%01%02%03%04%05%06%07%08%09%0a%0b%0c%0d%0e%0f%10%11%12%13%14"
#define ID   "-TR3000-abcdefghijkl"
#define OK   "info_hash=" HASH "&peer_id=" ID "&port=6881"

static struct announce_query q;

static const char *parse(const char *query)
{
    return query_announce(&q, str_z(query));
}

static bool is_wrong(const char *query, const char *word)
{
    const char *wrong = parse(query);

    return wrong && str_find(str_z(wrong), str_z(word)) >= 0;
}

/* --- the path --- */

TEST(swarm_query, every_form_of_a_passkey_is_found)
{
    static const struct {
        const char *path;
        enum query_action action;
        const char *passkey;
    } rows[] = {
        {"/announce", QUERY_ANNOUNCE, ""},
        {"/scrape", QUERY_SCRAPE, ""},
        {"/announce/", QUERY_ANNOUNCE, ""},
        {"/pk/announce", QUERY_ANNOUNCE, "pk"},
        {"/pk/scrape", QUERY_SCRAPE, "pk"},
        {"/announce/pk", QUERY_ANNOUNCE, "pk"},
        {"/scrape/pk", QUERY_SCRAPE, "pk"},
        {"/users/pk/announce", QUERY_ANNOUNCE, "pk"},
        {"/users/pk/scrape", QUERY_SCRAPE, "pk"},
        {"/", QUERY_OTHER, ""},
        {"", QUERY_OTHER, ""},
        {"/stats", QUERY_OTHER, ""},
        {"/others/pk/announce", QUERY_OTHER, ""},
        {"/users/pk/announce/x", QUERY_OTHER, ""},
        {"/pk/stats", QUERY_OTHER, ""},
    };
    struct str passkey;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_INT(query_path(str_z(rows[i].path), &passkey), rows[i].action);
        CHECK_STR(passkey, str_z(rows[i].passkey));
    }
}

TEST(swarm_query, the_passkey_of_url_data_is_in_the_path_or_the_query)
{
    CHECK_STR(query_passkey(STR("/pk/announce")), STR("pk"));
    CHECK_STR(query_passkey(STR("/announce?passkey=pk")), STR("pk"));
    CHECK_STR(query_passkey(STR("/announce?tok=a&PassKey=pk;x=y")), STR("pk"));
    CHECK_STR(query_passkey(STR("/a/announce?passkey=b")), STR("a"));
    CHECK_STR(query_passkey(STR("/announce?tok=a")), STR(""));
    CHECK_STR(query_passkey(STR("")), STR(""));
}

/* --- values --- */

TEST(swarm_query, percent_decode_matrix)
{
    static const uint8_t want[INFO_HASH_LEN] = {0xbe, 0xBE, '(', ')', '!', '~',  '*',
                                                '.',  '-',  '_', '+', ' ', 0x00, '+',
                                                '&',  ';',  '=', '%', 'C', '('};

    CHECK(!parse("info_hash=%be%BE()!~*.-_+%20%00%2b%26%3b%3D%25C(&peer_id=" ID "&port=1"));
    CHECK(memcmp(q.info_hash, want, sizeof(want)) == 0);
    CHECK(is_wrong("info_hash=%0&peer_id=" ID "&port=1", "escape"));
    CHECK(is_wrong("info_hash=%&peer_id=" ID "&port=1", "escape"));
    CHECK(is_wrong("info_hash=aaaaaaaaaaaaaaaaaaa%g0&peer_id=" ID "&port=1", "escape"));
    CHECK(is_wrong("info_hash=aaaaaaaaaaaaaaaaaaa%0g&peer_id=" ID "&port=1", "escape"));
    CHECK(is_wrong("peer_id=" ID "&port=1&info_hash=aaaaaaaaaaaaaaaaaaa%1", "escape"));
    CHECK(!parse("peer_id=" ID "&port=1&info_hash=aaaaaaaaaaaaaaaaaaa%1f"));
    CHECK_INT(q.info_hash[19], 0x1f);
}

TEST(swarm_query, an_info_hash_has_20_bytes)
{
    CHECK(is_wrong("info_hash=abc&peer_id=" ID "&port=1", "info_hash is not 20"));
    CHECK(is_wrong("info_hash=" HASH "x&peer_id=" ID "&port=1", "info_hash is not 20"));
    CHECK(is_wrong("info_hash=" HASH "&peer_id=" ID "x&port=1", "peer_id is not 20"));
    CHECK(is_wrong("peer_id=" ID "&port=1", "info_hash is missing"));
    CHECK(is_wrong("info_hash=" HASH "&port=1", "peer_id is missing"));
    CHECK(is_wrong("info_hash=" HASH "&peer_id=" ID, "port is missing"));
    CHECK(is_wrong("", "info_hash is missing"));
}

TEST(swarm_query, duplicate_info_hash_rejected)
{
    CHECK(is_wrong(OK "&info_hash=" HASH, "more than one"));
    CHECK(is_wrong(OK "&INFO_HASH=" HASH, "more than one"));
}

TEST(swarm_query, names_are_of_any_case_and_unknown_ones_are_skipped)
{
    CHECK(!parse("INFO_HASH=" HASH ";Peer_Id=" ID ";&&PORT=6881;corrupt=0&hide&azudp=1&=x&left=0"));
    CHECK_INT(q.port, 6881);
    CHECK_INT(q.left, 0);
    CHECK_INT(q.info_hash[19], 0x14);
    CHECK(memcmp(q.peer_id, ID, PEER_ID_LEN) == 0);
}

TEST(swarm_query, numbers_have_bounds)
{
    CHECK(is_wrong("info_hash=" HASH "&peer_id=" ID "&port=65536", "port"));
    CHECK(is_wrong("info_hash=" HASH "&peer_id=" ID "&port=-1", "port"));
    CHECK(is_wrong("info_hash=" HASH "&peer_id=" ID "&port=", "port"));
    CHECK(!parse(OK "&uploaded=18446744073709551615&downloaded=7"));
    CHECK(q.uploaded == UINT64_MAX && q.downloaded == 7);
    CHECK(is_wrong(OK "&uploaded=18446744073709551616", "uploaded"));
    CHECK(is_wrong(OK "&downloaded=-5", "downloaded"));
}

TEST(swarm_query, what_is_left_may_not_be_known)
{
    CHECK(!parse(OK));
    CHECK(q.left == QUERY_LEFT_UNKNOWN);
    CHECK(!parse(OK "&left=-1"));
    CHECK(q.left == QUERY_LEFT_UNKNOWN);
    CHECK(!parse(OK "&left=18446744073709551615"));
    CHECK(q.left == QUERY_LEFT_UNKNOWN);
    CHECK(!parse(OK "&left=16384"));
    CHECK_INT(q.left, 16384);
}

TEST(swarm_query, numwant_matrix)
{
    static const struct {
        const char *query;
        int32_t want;
    } rows[] = {
        {OK, NUMWANT_DEFAULT},
        {OK "&numwant=0", 0},
        {OK "&numwant=-1", NUMWANT_DEFAULT},
        {OK "&numwant=-900", NUMWANT_DEFAULT},
        {OK "&numwant=30", 30},
        {OK "&numwant=99999999999", INT32_MAX},
        {OK "&numwant=many", NUMWANT_DEFAULT},
        {OK "&numwant=", NUMWANT_DEFAULT},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK(!parse(rows[i].query));
        CHECK_INT(q.numwant, rows[i].want);
    }
}

TEST(swarm_query, events_are_a_fixed_set)
{
    CHECK(!parse(OK "&event=started"));
    CHECK_INT(q.event, EVENT_STARTED);
    CHECK(!parse(OK "&event=completed"));
    CHECK_INT(q.event, EVENT_COMPLETED);
    CHECK(!parse(OK "&event=stopped"));
    CHECK_INT(q.event, EVENT_STOPPED);
    CHECK(!parse(OK "&event=paused"));
    CHECK_INT(q.event, EVENT_PAUSED);
    CHECK(!parse(OK "&event="));
    CHECK_INT(q.event, EVENT_NONE);
    CHECK(is_wrong(OK "&event=dance", "event"));
}

TEST(swarm_query, compact_is_the_default)
{
    CHECK(!parse(OK));
    CHECK(q.compact && !q.no_peer_id);
    CHECK(!parse(OK "&compact=0&no_peer_id=1"));
    CHECK(!q.compact && q.no_peer_id);
}

TEST(swarm_query, texts_are_cut_to_their_room)
{
    CHECK(!parse(OK "&key=%00%ff&passkey=0123456789abcdef0123456789abcdef"
                    "&ip=192.0.2.1&ipv6=2001:db8::1"));
    CHECK_INT(q.key_len, 2);
    CHECK_INT(q.passkey_len, PASSKEY_LEN);
    CHECK_STR(str_z(q.ip[0]), STR("192.0.2.1"));
    CHECK_STR(str_z(q.ip[1]), STR(""));
    CHECK_STR(str_z(q.ip[2]), STR("2001:db8::1"));
    CHECK(!parse(OK "&key=0123456789012345678901234567890123456789"
                    "&passkey=0123456789abcdef0123456789abcdef0123456789abcdef"
                    "&ip=000000000000000000000000000000000000000000000000001"));
    CHECK_INT(q.key_len, QUERY_KEY_MAX);
    CHECK(q.passkey_len > PASSKEY_LEN); /* none */
    CHECK_STR(str_z(q.ip[0]), STR(""));
}

/* --- scrapes --- */

TEST(swarm_query, scrape_sorted_dedup_limit)
{
    uint8_t room[3 * INFO_HASH_LEN];
    struct scrape_query s = {.hashes = room, .max = 3};

    CHECK(!query_scrape(&s, STR("info_hash=bbbbbbbbbbbbbbbbbbbb&info_hash=aaaaaaaaaaaaaaaaaaaa&"
                                "Info_Hash=bbbbbbbbbbbbbbbbbbbb&passkey=pk")));
    CHECK_INT(s.count, 2);
    CHECK(room[0] == 'a' && room[INFO_HASH_LEN] == 'b');
    CHECK_STR(str_n(s.passkey, s.passkey_len), STR("pk"));
    CHECK(query_scrape(&s, STR("info_hash=aaaaaaaaaaaaaaaaaaaa&info_hash=aaaaaaaaaaaaaaaaaaaa&"
                               "info_hash=aaaaaaaaaaaaaaaaaaaa&info_hash=aaaaaaaaaaaaaaaaaaaa")));
    CHECK(query_scrape(&s, STR("info_hash=aaa")));
}

TEST(swarm_query, scrape_full_refused)
{
    uint8_t room[INFO_HASH_LEN];
    struct scrape_query s = {.hashes = room, .max = 1};
    const char *wrong = query_scrape(&s, STR(""));

    CHECK(wrong && strstr(wrong, "all torrents"));
}
