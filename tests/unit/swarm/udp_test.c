/* The UDP tracker on loopback: real packets on real sockets. That something is not answered is seen
 * by what is: packets of one socket are answered in their order. */
#include "base/clock.h"
#include "base/bytes.h"
#include "os/file.h"
#include "swarm/connid.h"
#include "swarm/udp.h"
#include "swarm/udp_packet.h"
#include "unit/swarm/cache_helpers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

struct service {
    struct four four;
    struct cache *cache;
    struct tracker *tracker;
    struct udp_server *udp;
    struct hash_key key;
    bool v6;
    int fd; /* a client's socket, and the id that it was given; -1: none */
    uint64_t id;
};

static int start_on(struct service *s, const char *listen, enum tracker_mode mode)
{
    struct tracker_options t;
    struct udp_options u = {.workers = 2, .key = "sixteen byte key", .waiting = 64};
    struct err err = {0};
    int code;

    *s = (struct service){.v6 = *listen == '[', .fd = -1};
    four_open_embedded(&s->four);
    s->cache = cache_on(&s->four);
    t = tracker_options_on(&s->four, s->cache);
    t.mode = mode;
    t.open = true;
    t.min_interval_s = t.interval_s;
    CHECK_OK(tracker_open(&s->tracker, &t, &err));
    CHECK_OK(sock_addr_parse(&u.listen, str_z(listen), &err));
    u.tracker = s->tracker;
    memcpy(&s->key, u.key, sizeof(s->key));
    code = udp_start(&s->udp, &u, &err);
    return code;
}

static void stop(struct service *s)
{
    fd_close(&s->fd);
    udp_stop(s->udp);
    tracker_close(s->tracker);
    cache_close(s->cache);
    four_close(&s->four);
}

static void start(struct service *s)
{
    CHECK_INT(start_on(s, "127.0.0.1:0", TRACKER_PUBLIC), 0);
}

/* On ::1, or on all addresses; false: the machine has no IPv6. */
static bool start6(struct service *s, const char *listen)
{
    if (start_on(s, listen, TRACKER_PUBLIC) == 0)
        return true;
    printf("no IPv6 here\n");
    stop(s);
    return false;
}

/* --- a client --- */

static int client_from(const char *host, const char *server, const struct service *s)
{
    struct timeval limit = {.tv_sec = 60};
    struct sock_addr from, to;
    struct err err = {0};
    char text[64];
    int fd;

    snprintf(text, sizeof(text), "%s:0", host);
    CHECK_OK(sock_addr_parse(&from, str_z(text), &err));
    snprintf(text, sizeof(text), "%s:%u", server, udp_port(s->udp));
    CHECK_OK(sock_addr_parse(&to, str_z(text), &err));
    fd = socket(from.sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    CHECK(bind(fd, (const struct sockaddr *)&from.sa, from.len) == 0);
    CHECK(connect(fd, (const struct sockaddr *)&to.sa, to.len) == 0);
    return fd;
}

static int client(const struct service *s)
{
    return s->v6 ? client_from("[::1]", "[::1]", s) : client_from("127.0.0.1", "127.0.0.1", s);
}

struct datagram {
    uint8_t p[2048];
    size_t len;
};

static uint32_t word(const struct datagram *r, size_t at)
{
    CHECK(at + 4 <= r->len);
    return be32_read(r->p + at);
}

static void send_packet(int fd, const void *p, size_t len)
{
    CHECK_INT(send(fd, p, len, 0), len);
}

static void receive(int fd, struct datagram *r)
{
    ssize_t n = recv(fd, r->p, sizeof(r->p), 0);

    CHECK(n >= 8);
    r->len = (size_t)n;
}

static uint64_t connect_id(int fd)
{
    static uint32_t transaction = 77;
    uint8_t p[16];
    struct datagram r;

    be64_write(p, 0x41727101980);
    be32_write(p + 8, UDP_CONNECT);
    be32_write(p + 12, ++transaction);
    send_packet(fd, p, sizeof(p));
    receive(fd, &r);
    CHECK_INT(r.len, 16);
    CHECK_INT(word(&r, 0), UDP_CONNECT);
    CHECK_INT(word(&r, 4), transaction);
    return be64_read(r.p + 8);
}

/* A client from here that is connected. */
static void meet(struct service *s)
{
    s->fd = client(s);
    s->id = connect_id(s->fd);
}

struct packet {
    uint8_t p[UDP_ANNOUNCE_LEN + 600];
    size_t len;
};

static void announce_packet(struct packet *k, uint64_t id, uint32_t transaction, char torrent)
{
    *k = (struct packet){.len = UDP_ANNOUNCE_LEN};
    be64_write(k->p, id);
    be32_write(k->p + 8, UDP_ANNOUNCE);
    be32_write(k->p + 12, transaction);
    memset(k->p + 16, torrent, INFO_HASH_LEN);
    memcpy(k->p + 36, peer_id_of(transaction), PEER_ID_LEN);
    be64_write(k->p + 64, 1000);
    be32_write(k->p + 80, EVENT_STARTED);
    be32_write(k->p + 92, (uint32_t)-1);
    k->p[96] = 0x1a;
    k->p[97] = (uint8_t)transaction;
}

static void announce_over(int fd, const struct packet *k, struct datagram *r)
{
    send_packet(fd, k->p, k->len);
    receive(fd, r);
    CHECK(memcmp(r->p + 4, k->p + 12, 4) == 0);
}

/* `count` leechers with ports of their own. */
static void fill(int fd, uint64_t id, char torrent, uint32_t count)
{
    struct packet k;
    struct datagram r;

    for (uint32_t i = 0; i < count; i++) {
        announce_packet(&k, id, i, torrent);
        k.p[96] = (uint8_t)(0x20 + i / 256);
        announce_over(fd, &k, &r);
        CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    }
}

/* --- what is answered --- */

TEST(udp, a_client_connects_announces_and_scrapes)
{
    struct service s;
    uint8_t scrape[16 + 2 * INFO_HASH_LEN];
    struct packet k;
    struct datagram r;

    start(&s);
    meet(&s);
    announce_packet(&k, s.id, 1, 'a');
    announce_over(s.fd, &k, &r);
    CHECK_INT(r.len, 20);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    CHECK_INT(word(&r, 8), 1800);
    CHECK_INT(word(&r, 12), 1);
    CHECK_INT(word(&r, 16), 0);
    announce_packet(&k, s.id, 2, 'a');
    be64_write(k.p + 64, 0);
    announce_over(s.fd, &k, &r);
    CHECK_INT(r.len, 26);
    CHECK_INT(word(&r, 12), 1);
    CHECK_INT(word(&r, 16), 1);
    CHECK(memcmp(r.p + 20, "\x7f\x00\x00\x01\x1a\x01", 6) == 0);
    be64_write(scrape, s.id);
    be32_write(scrape + 8, UDP_SCRAPE);
    be32_write(scrape + 12, 9);
    memset(scrape + 16, 'z', INFO_HASH_LEN); /* unknown: zeros */
    memset(scrape + 36, 'a', INFO_HASH_LEN);
    send_packet(s.fd, scrape, sizeof(scrape));
    receive(s.fd, &r);
    CHECK_INT(r.len, 8 + 2 * 12);
    CHECK_INT(word(&r, 8) + word(&r, 12) + word(&r, 16), 0);
    CHECK_INT(word(&r, 20), 1);
    CHECK_INT(word(&r, 24), 0);
    CHECK_INT(word(&r, 28), 1);
    stop(&s);
}

/* Scenario 5, over UDP. */
TEST(udp, snatch_once_on_udp_retransmit)
{
    struct tracker_counts counts;
    struct scrape_entry e;
    struct service s;
    struct packet k;
    struct datagram r;
    int fd;

    start(&s);
    fd = client(&s);
    announce_packet(&k, connect_id(fd), 1, 'a');
    announce_over(fd, &k, &r);
    be64_write(k.p + 64, 0);
    be32_write(k.p + 80, EVENT_COMPLETED);
    for (int i = 0; i < 3; i++)
        announce_over(fd, &k, &r);
    CHECK_INT(tracker_scrape(s.tracker, STR_EMPTY, hash_of('a'), 1, &e), SWARM_NONE);
    CHECK_INT(e.downloaded, 1);
    fd_close(&fd);
    udp_stop(s.udp);
    s.udp = NULL;
    tracker_counts(s.tracker, &counts);
    CHECK_INT(counts.requests[TRACKER_UDP][ACTION_ANNOUNCE], 4);
    CHECK_INT(counts.requests[TRACKER_UDP][ACTION_CONNECT], 1);
    stop(&s);
}

/* Scenario 25, over UDP, and the 1,472 bytes of U3. */
TEST(udp, numwant_matrix)
{
    static const struct {
        uint32_t numwant;
        size_t got;
    } rows[] = {{0, 50}, {(uint32_t)-1, 50}, {1, 1}, {100, 100}, {1000000, 200}};
    struct service s;
    struct packet k;
    struct datagram r;

    start(&s);
    meet(&s);
    fill(s.fd, s.id, 'a', 300);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        announce_packet(&k, s.id, 1, 'a');
        be32_write(k.p + 92, rows[i].numwant);
        announce_over(s.fd, &k, &r);
        CHECK_INT(r.len, 20 + 6 * rows[i].got);
        CHECK(r.len <= UDP_PAYLOAD4);
    }
    stop(&s);
}

TEST(udp, ports_that_are_not_allowed_are_refused)
{
    struct service s;
    struct packet k;
    struct datagram r;
    int fd;

    start(&s);
    fd = client(&s);
    announce_packet(&k, connect_id(fd), 1, 'a');
    k.p[96] = k.p[97] = 0;
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    k.p[97] = 80;
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    CHECK_STR(str_n(r.p + 8, r.len - 8), STR("port is not allowed"));
    fd_close(&fd);
    stop(&s);
}

/* Scenario 26: the ids that a client has, the server's clock, and who they were made for. */
TEST(udp, udp_connid_expiry_skew_other_ip)
{
    static const uint8_t here[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    int64_t now = clock_wall_ms();
    struct service s;
    struct packet k;
    struct datagram r;
    int fd, other;

    start(&s);
    fd = client(&s);
    other = client_from("127.0.0.2", "127.0.0.1", &s);
    announce_packet(&k, connid_make(&s.key, here, now - MS_PER_MINUTE), 1, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    announce_over(other, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    CHECK(r.len <= k.len);
    announce_packet(&k, connid_make(&s.key, here, now - 300000), 1, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    announce_packet(&k, connid_make(&s.key, here, now + 300000), 1, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    fd_close(&fd);
    fd_close(&other);
    stop(&s);
}

/* Redis was not there when they started: each began with a key of its own. */
TEST_TIMEOUT(udp, trackers_that_started_without_the_store_agree_on_a_key_when_it_is_there, 120)
{
    struct udp_options o = {.workers = 1, .key = "another key, own"};
    uint64_t until = clock_mono_ms() + 40000, id, early;
    struct service s, as_second;
    struct four redis = {0};
    struct err err = {0};
    struct packet k;
    struct datagram r;
    int fd, second;

    start(&s);
    four_open_redis(&redis);
    struct cache *cache = cache_on(&redis);
    redis_server_kill(&redis.server);
    udp_stop(s.udp);
    o.tracker = s.tracker;
    o.cache = cache;
    CHECK_OK(sock_addr_parse(&o.listen, STR("127.0.0.1:0"), &err));
    CHECK_OK(udp_start(&s.udp, &o, &err));
    as_second = s;
    memcpy(o.key, "yet another's key", 16);
    CHECK_OK(udp_start(&as_second.udp, &o, &err));
    fd = client(&s);
    second = client(&as_second);
    early = connect_id(fd);
    uint64_t early_second = connect_id(second);
    announce_packet(&k, early, 1, 'a');
    announce_over(second, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);

    CHECK(redis_server_start(&redis.server));
    do { /* seldom enough that nobody is banned */
        CHECK(clock_mono_ms() < until);
        usleep(700 * 1000);
        id = connect_id(fd);
        announce_packet(&k, id, 1, 'a');
        announce_over(second, &k, &r);
    } while (word(&r, 0) != UDP_ANNOUNCE);
    announce_packet(&k, early, 1, 'a'); /* what was given out is good for its time */
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    announce_packet(&k, early_second, 1, 'a');
    announce_over(second, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    fd_close(&fd);
    fd_close(&second);
    udp_stop(as_second.udp);
    stop(&s);
    cache_close(cache);
    four_close(&redis);
}

/* Scenario 27: an id of one server is taken by another with the same key. */
TEST(udp, udp_connid_shared_between_instances)
{
    struct udp_options o = {.workers = 1, .key = "sixteen byte key"};
    struct udp_server *second;
    struct err err = {0};
    struct service s, as_second;
    struct packet k;
    struct datagram r;
    uint64_t id;
    int fd;

    start(&s);
    o.tracker = s.tracker;
    CHECK_OK(sock_addr_parse(&o.listen, STR("127.0.0.1:0"), &err));
    CHECK_OK(udp_start(&second, &o, &err));
    fd = client(&s);
    id = connect_id(fd);
    fd_close(&fd);
    as_second = s;
    as_second.udp = second;
    fd = client(&as_second);
    announce_packet(&k, id, 1, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    fd_close(&fd);
    udp_stop(second);
    stop(&s);
}

TEST(udp, a_port_that_is_taken_is_an_error)
{
    struct udp_options o = {.workers = 1};
    struct udp_server *second;
    struct err err = {0};
    struct service s;
    char text[32];

    start(&s);
    o.tracker = s.tracker;
    snprintf(text, sizeof(text), "127.0.0.1:%u", udp_port(s.udp));
    CHECK_OK(sock_addr_parse(&o.listen, str_z(text), &err));
    CHECK_ERR(udp_start(&second, &o, &err), ERR_IN_USE);
    stop(&s);
}

/* Scenarios 30, 33, 34: nothing, or an error no larger than the request; and the server lives. */
TEST(udp, udp_short_and_garbage_fuzz)
{
    uint64_t random = 99;
    struct tracker_counts counts;
    struct service s;
    struct packet k;
    struct datagram r;

    start(&s);
    meet(&s);
    for (uint32_t i = 0; i < 400; i++) {
        announce_packet(&k, s.id, i, 'a');
        for (size_t j = 0; j < k.len; j++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            if (random >> 61 == 0)
                k.p[j] = (uint8_t)(random >> 33);
        }
        be64_write(k.p, s.id);
        be32_write(k.p + 8,
                   i % 2 ? 4 + i : UDP_ANNOUNCE); /* old and unknown actions; cut announces */
        send_packet(s.fd, k.p, i % 2 ? k.len : i % UDP_ANNOUNCE_LEN);
    }
    CHECK(connect_id(s.fd) != 0); /* the first reply: none of them had one */
    announce_packet(&k, s.id, 5, 'a');
    be32_write(k.p + 80, 17);
    announce_over(s.fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    CHECK(r.len <= k.len);
    tracker_counts(s.tracker, &counts);
    CHECK(counts.dropped >= 400);
    stop(&s);
}

/* Scenario 64: silence after many bad ids, but for who has a right one, or asks for one: somebody
 * may have forged the address. */
TEST(udp, flood_bad_connid_ban_expires)
{
    struct tracker_counts counts;
    struct service s;
    struct packet k;
    struct datagram r;
    uint64_t id;
    int fd, other;

    start(&s);
    fd = client_from("127.0.0.3", "127.0.0.1", &s);
    other = client(&s);
    id = connect_id(fd);
    announce_packet(&k, 42, 1, 'a');
    for (int i = 0; i < CONNID_BAD_MAX; i++) {
        announce_over(fd, &k, &r);
        CHECK_INT(word(&r, 0), UDP_ERROR);
        CHECK(r.len <= k.len);
    }
    for (int i = 0; i < 10; i++)
        send_packet(fd, k.p, k.len); /* no answer */
    announce_packet(&k, id, 2, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    CHECK(connect_id(other) != 0);
    announce_packet(&k, connect_id(fd), 3, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    fd_close(&fd);
    fd_close(&other);
    udp_stop(s.udp);
    s.udp = NULL;
    tracker_counts(s.tracker, &counts);
    CHECK_INT(counts.bad_connection_ids, CONNID_BAD_MAX + 10);
    CHECK_INT(counts.banned, 10);
    stop(&s);
}

/* Scenario 31. */
TEST(udp, udp_v6_18_byte_stride_and_mtu)
{
    struct service s;
    struct packet k;
    struct datagram r;

    if (!start6(&s, "[::1]:0"))
        return;
    meet(&s);
    fill(s.fd, s.id, 'a', 100);
    announce_packet(&k, s.id, 1, 'a');
    be32_write(k.p + 92, 200);
    announce_over(s.fd, &k, &r);
    CHECK_INT(r.len, 20 + 67 * 18);
    CHECK(r.len <= UDP_PAYLOAD6);
    for (size_t i = 0; i < 67; i++) {
        CHECK(memcmp(r.p + 20 + i * 18, in6addr_loopback.s6_addr, 16) == 0);
        CHECK_INT(r.p[20 + i * 18 + 16] & 0xfe, 0x20);
    }
    stop(&s);
}

/* Scenario 32: over IPv4 to a socket of IPv6 is IPv4, in ids, peers and replies. */
TEST(udp, udp_v4mapped_source)
{
    struct service s;
    struct packet k;
    struct datagram r;
    uint64_t id, id6;
    int fd, fd6;

    if (!start6(&s, "[::]:0"))
        return;
    fd6 = client(&s);
    fd = client_from("127.0.0.1", "127.0.0.1", &s);
    id = connect_id(fd);
    id6 = connect_id(fd6);
    CHECK(id != id6);
    fill(fd, id, 'a', 3);
    fill(fd6, id6, 'a', 2);
    announce_packet(&k, id, 77, 'a');
    announce_over(fd, &k, &r);
    CHECK_INT(r.len, 20 + 3 * 6);
    CHECK(memcmp(r.p + 20, "\x7f\x00\x00\x01", 4) == 0);
    announce_packet(&k, id6, 78, 'a');
    announce_over(fd6, &k, &r);
    CHECK_INT(r.len, 20 + 2 * 18);
    fd_close(&fd);
    fd_close(&fd6);
    stop(&s);
}

/* --- private mode --- */

static void add_url(struct packet *k, const char *url)
{
    size_t len = strlen(url);

    k->p[k->len++] = 2;
    k->p[k->len++] = (uint8_t)len;
    memcpy(k->p + k->len, url, len);
    k->len += len;
}

/* Scenarios 28 and 39: the passkey comes in the URL data, in one piece or several. */
TEST(udp, passkey_http_and_udp)
{
    struct service s;
    struct packet k;
    struct datagram r;

    CHECK_INT(start_on(&s, "127.0.0.1:0", TRACKER_PRIVATE), 0);
    add_user(s.cache, 'u', -1);
    add_torrent(s.cache, 't');
    meet(&s);
    announce_packet(&k, s.id, 1, 't');
    announce_over(s.fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    CHECK_STR(str_n(r.p + 8, r.len - 8), STR("passkey is invalid"));
    add_url(&k, "/uuuuuuuuuuuuuuuu");
    k.p[k.len++] = 1; /* NOP */
    add_url(&k, "uuuuuuuuuuuuuuuu/announce");
    announce_over(s.fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ANNOUNCE);
    CHECK_INT(word(&r, 12), 1);
    announce_packet(&k, s.id, 2, 't');
    add_url(&k, "/announce?passkey=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    announce_over(s.fd, &k, &r);
    CHECK_INT(word(&r, 0), UDP_ERROR);
    CHECK_STR(str_n(r.p + 8, r.len - 8), STR("user does not exist"));
    stop(&s);
}

TEST(udp, a_server_that_is_idle_stops_at_once)
{
    for (int i = 0; i < 5; i++) {
        struct service s;
        start(&s);
        stop(&s);
    }
}
