/* A load of UDP announces, connects and scrapes on a tracker at 127.0.0.1, every reply of which is
 * checked.
 *
 *     bench_swarm_load whitelist [torrents=N]           prints the infohashes, a line each
 *     bench_swarm_load fill|announce|mixed PORT [NAME=VALUE...]
 *
 * fill announces the peers from= to= once each; announce takes peers at random for ms=, with
 * connection ids that were fetched before; mixed is what clients do: a connect before each announce
 * or scrape (scrape=15 of a thousand), stops and completions (stop=20, complete=10), and ids that
 * are wrong (bad=5). Further: torrents=, peers=, numwant=, window= (requests outstanding at most,
 * small enough that no server's socket overflows), rate= (requests begun a second; as fast as
 * answers come when 0), v6=1 (a twentieth of the peers on ::1), self=1 (the server does not promise
 * to leave out the announcer), bare=1 (it is the echo of swarm_floor.c: the form alone is checked).
 *
 * One socket sends from thousands of loopback addresses (IP_PKTINFO), so that a server that spreads
 * by address does, and each has its own connection id.
 *
 * Prints ops (announces answered), connects, scrapes, wrong, missing, errors (both), seconds,
 * p50_us and p99_us of announces, peers (in all replies), refused and ignored (wrong ids). */
#include "load.h"
#include "swarm_world.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, REQUEST_MAX = 16 + WORLD_SCRAPE_MAX * WORLD_HASH, REPLY_MAX = 2048 };
enum { WINDOW_MAX = 4096, BAD_SOURCES = 60000, SHOWN = 5, LOST_MAX = 100 };
#define MAGIC        0x41727101980u
#define BAD_TID      0xbad00000u  /* and more: no slot waits for these */
#define LOST_NS      30000000000u /* a busy machine is late, and loses nothing on a loopback */
#define ID_NS        50000000000u /* BEP 15: a client may use an id for a minute */
#define NAP_NS       50000
#define WAIT_NS      10000000
#define SOCKET_BYTES (8 << 20)

/* Of requests of one family, sent together. */
struct out {
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    uint8_t bytes[BATCH][REQUEST_MAX];
    char control[BATCH][CMSG_SPACE(sizeof(struct in_pktinfo))];
    unsigned count;
};

struct in {
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH];
    uint8_t bytes[BATCH][REPLY_MAX];
};

struct lane {
    int fd; /* -1: not used */
    struct out out;
    struct in in;
};

/* A request that waits for its reply. */
struct slot {
    struct world_asked asked;
    uint64_t sent_ns;
    bool busy;
};

struct options {
    uint64_t torrents, peers, from, to, seconds_ms, rate, window, numwant;
    uint64_t scrape, stop, complete, bad, v6, self, bare;
};

struct counts {
    uint64_t announces, connects, scrapes, wrong, missing, peers, refused, bad;
};

struct gen {
    struct options o;
    struct world world;
    struct lane lanes[2]; /* IPv4, IPv6 */
    struct slot slots[WINDOW_MAX];
    uint16_t free[WINDOW_MAX];
    unsigned free_count;
    uint32_t turn;                   /* makes transaction ids differ */
    uint64_t ids[WORLD_SOURCES + 1]; /* as they came; the last is ::1's */
    uint64_t ids_ns;
    uint64_t next;  /* of fill, and of the connects before */
    uint64_t begun; /* requests, for the rate */
    struct load_thread random;
    struct counts counts;
    struct load_times times;
};

/* What the next request is about; false: there is none, for good. */
typedef bool next_fn(struct gen *g, struct world_asked *a);

static struct gen gen;

/* --- sockets --- */

static struct sockaddr_storage server_address(int family, uint16_t port, socklen_t *len)
{
    struct sockaddr_storage to = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to;

    if (family == AF_INET)
        *v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    else
        *v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};
    *len = family == AF_INET ? sizeof(*v4) : sizeof(*v6);
    return to;
}

static void out_init(struct out *out, struct sockaddr_storage *to, socklen_t len)
{
    for (int i = 0; i < BATCH; i++) {
        struct msghdr *m = &out->msgs[i].msg_hdr;
        out->iov[i].iov_base = out->bytes[i];
        *m = (struct msghdr){
            .msg_name = to, .msg_namelen = len, .msg_iov = &out->iov[i], .msg_iovlen = 1};
        if (to->ss_family != AF_INET)
            continue;
        m->msg_control = out->control[i];
        m->msg_controllen = sizeof(out->control[i]);
        struct cmsghdr *c = CMSG_FIRSTHDR(m);
        c->cmsg_level = IPPROTO_IP;
        c->cmsg_type = IP_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
    }
}

static void lane_open(struct lane *l, int family, uint16_t port)
{
    static struct sockaddr_storage to[2];
    struct sockaddr_storage *mine = &to[family == AF_INET6];
    int bytes = SOCKET_BYTES;
    socklen_t len;

    *mine = server_address(family, port, &len);
    l->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&any, len) != 0)
        load_fail("socket");
    if (setsockopt(l->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    out_init(&l->out, mine, len);
    for (int i = 0; i < BATCH; i++) {
        l->in.iov[i] = (struct iovec){l->in.bytes[i], REPLY_MAX};
        l->in.msgs[i].msg_hdr = (struct msghdr){.msg_iov = &l->in.iov[i], .msg_iovlen = 1};
    }
}

static void flush(struct lane *l)
{
    unsigned done = 0;

    while (done < l->out.count) {
        int n = sendmmsg(l->fd, l->out.msgs + done, l->out.count - done, 0);
        if (n > 0)
            done += (unsigned)n;
        else if (errno == EAGAIN || errno == ENOBUFS)
            poll(&(struct pollfd){.fd = l->fd, .events = POLLOUT}, 1, 10);
        else if (errno != EINTR)
            load_fail("sendmmsg");
    }
    l->out.count = 0;
}

/* Room for a request from this address (0 on IPv6); the caller sets its length. */
static uint8_t *add_request(struct lane *l, uint32_t ip, struct iovec **iov)
{
    if (l->out.count == BATCH)
        flush(l);
    unsigned i = l->out.count++;
    if (ip != 0) {
        struct in_pktinfo info = {.ipi_spec_dst.s_addr = ip};
        struct cmsghdr *control = CMSG_FIRSTHDR(&l->out.msgs[i].msg_hdr);
        if (control) /* there is room for one in each message */
            memcpy(CMSG_DATA(control), &info, sizeof(info));
    }
    *iov = &l->out.iov[i];
    return l->out.bytes[i];
}

/* --- requests --- */

static void put32(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, 8);
}

static size_t write_announce(const struct world *w, const struct world_asked *a, uint8_t *p)
{
    uint16_t port = world_port(w, a->peer);

    memset(p + 16, 0, 82);
    world_hash(p + 16, w->torrent_of[a->peer]);
    memcpy(p + 36, "-WB0001-", 8);
    put64(p + 48, a->peer);
    put64(p + 64, a->seeder ? 0 : 1 << 20);
    put32(p + 80, a->event);
    put32(p + 88, a->peer * 2654435761u);
    put32(p + 92, a->numwant);
    memcpy(p + 96, &port, 2);
    return 98;
}

static size_t write_scrape(const struct world *w, const struct world_asked *a, uint8_t *p)
{
    for (unsigned i = 0; i < a->hashes; i++)
        world_hash(p + 16 + (size_t)i * WORLD_HASH, (w->torrent_of[a->peer] + i) % w->torrents);
    return 16 + (size_t)a->hashes * WORLD_HASH;
}

static size_t source_of(const struct gen *g, uint32_t peer)
{
    return world_is_v6(&g->world, peer) ? WORLD_SOURCES : world_source(peer);
}

static void write_request(struct gen *g, const struct world_asked *a)
{
    bool v6 = world_is_v6(&g->world, a->peer);
    struct iovec *iov;
    uint8_t *p = add_request(&g->lanes[v6], v6 ? 0 : world_source_ip(world_source(a->peer)), &iov);

    memcpy(p, &g->ids[source_of(g, a->peer)], 8);
    put32(p + 8, a->kind);
    put32(p + 12, a->tid);
    iov->iov_len = 16;
    if (a->kind == WORLD_CONNECT)
        put64(p, MAGIC);
    else if (a->kind == WORLD_ANNOUNCE)
        iov->iov_len = write_announce(&g->world, a, p);
    else
        iov->iov_len = write_scrape(&g->world, a, p);
}

/* A valid announce under an id that nobody gave, from addresses that are used for nothing else: a
 * tracker may ban them. Silence and an error are right answers. */
static void write_bad(struct gen *g, const struct world_asked *a)
{
    uint64_t r = load_random(&g->random);
    struct iovec *iov;
    uint8_t *p = add_request(&g->lanes[0],
                             htonl(127u << 24 | 200u << 16 | (uint32_t)(r % BAD_SOURCES)), &iov);

    put64(p, r | 1);
    put32(p + 8, WORLD_ANNOUNCE);
    put32(p + 12, BAD_TID + (uint32_t)(g->counts.bad++ & 0xffff));
    iov->iov_len = write_announce(&g->world, a, p);
}

static void ask(struct gen *g, struct slot *s, uint64_t now)
{
    s->asked.tid = (g->turn++ << 12 & 0x7fffffffu) | (uint32_t)(s - g->slots);
    s->asked.bare = g->o.bare;
    s->asked.no_self = !g->o.self;
    s->sent_ns = now;
    write_request(g, &s->asked);
}

/* --- what is asked --- */

static bool next_connect(struct gen *g, struct world_asked *a)
{
    uint64_t n = g->next++;

    /* Any peer of that source will do; ::1's is the first on IPv6. */
    a->kind = WORLD_CONNECT;
    a->peer = n < WORLD_SOURCES ? (uint32_t)n : WORLD_V6_EVERY - 1;
    if (n < WORLD_SOURCES && world_is_v6(&g->world, a->peer))
        a->peer += WORLD_SOURCES;
    return n < WORLD_SOURCES + (g->o.v6 ? 1u : 0u);
}

static void announce(struct gen *g, struct world_asked *a, uint32_t peer, uint8_t event)
{
    *a = (struct world_asked){.kind = WORLD_ANNOUNCE, .peer = peer, .event = event};
    a->numwant = event == WORLD_STOPPED ? 0 : (uint8_t)g->o.numwant;
    a->seeder = g->world.seeder[peer];
}

static bool next_fill(struct gen *g, struct world_asked *a)
{
    if (g->next >= g->o.to)
        return false;
    announce(g, a, (uint32_t)g->next++, WORLD_STARTED);
    return true;
}

static uint32_t random_peer(struct gen *g)
{
    return (uint32_t)((load_random(&g->random) >> 32) * g->world.peers >> 32);
}

static bool next_announce(struct gen *g, struct world_asked *a)
{
    announce(g, a, random_peer(g), WORLD_NONE);
    return true;
}

/* The connect comes first; what it is for is decided when its reply is there. */
static bool next_mixed(struct gen *g, struct world_asked *a)
{
    *a = (struct world_asked){.kind = WORLD_CONNECT, .peer = random_peer(g)};
    return true;
}

/* A stopped peer comes back as one that begins anew, mostly as it was. */
static void after_connect(struct gen *g, struct world_asked *a)
{
    uint64_t dice = load_random(&g->random) >> 20, thousand = dice % 1000, peer = a->peer;
    uint64_t stop = g->o.stop, complete = stop + g->o.complete, scrape = complete + g->o.scrape;
    uint8_t *seeder = &g->world.seeder[peer];

    if (thousand >= complete && thousand < scrape) {
        a->kind = WORLD_SCRAPE;
        a->hashes = (uint8_t)(1 + dice / 1000 % WORLD_SCRAPE_MAX);
        return;
    }
    uint8_t event = thousand < stop       ? WORLD_STOPPED
                    : thousand < complete ? WORLD_COMPLETED
                                          : WORLD_NONE;
    if (event == WORLD_COMPLETED)
        *seeder = 1;
    announce(g, a, (uint32_t)peer, event);
    if (event == WORLD_STOPPED)
        *seeder = dice / 1000 % 4 != 0;
    if (dice / 4000 % 1000 < g->o.bad)
        write_bad(g, a);
}

/* --- replies --- */

static void complain(struct gen *g, const char *what, const struct world_asked *a, size_t len)
{
    if (g->counts.wrong++ < SHOWN)
        fprintf(stderr, "wrong reply: %s (kind %u, event %u, peer %u, %zu bytes)\n", what, a->kind,
                a->event, a->peer, len);
}

static void release(struct gen *g, struct slot *s)
{
    s->busy = false;
    g->free[g->free_count++] = (uint16_t)(s - g->slots);
}

static void take_bad(struct gen *g, const uint8_t *p, size_t len)
{
    static const struct world_asked bad = {.kind = WORLD_ANNOUNCE};

    if (!g->o.bare && (len < 8 || len > 98 || p[3] != 3))
        complain(g, "an id that nobody gave was taken", &bad, len);
    else
        g->counts.refused++;
}

static void answered(struct gen *g, struct slot *s, const uint8_t *p, size_t len, uint64_t now)
{
    switch (s->asked.kind) {
    case WORLD_CONNECT:
        g->counts.connects++;
        memcpy(&g->ids[source_of(g, s->asked.peer)], p + 8, 8);
        break;
    case WORLD_ANNOUNCE:
        g->counts.announces++;
        g->counts.peers += (len - 20) / (world_is_v6(&g->world, s->asked.peer) ? 18 : 6);
        load_times_add(&g->times, now - s->sent_ns);
        break;
    default:
        g->counts.scrapes++;
    }
}

static void take(struct gen *g, const uint8_t *p, size_t len, bool mixed)
{
    static const struct world_asked nothing;
    uint32_t tid = 0;
    uint64_t now = load_now_ns();

    if (len >= 8)
        memcpy(&tid, p + 4, 4);
    tid = be32toh(tid);
    if (tid >= BAD_TID && tid < BAD_TID + 0x10000) {
        take_bad(g, p, len);
        return;
    }
    struct slot *s = &g->slots[tid % WINDOW_MAX];
    if (!s->busy || s->asked.tid != tid) {
        complain(g, "nobody asked", &nothing, len);
        return;
    }
    const char *wrong = world_check(&g->world, &s->asked, p, len);
    if (wrong)
        complain(g, wrong, &s->asked, len);
    else
        answered(g, s, p, len, now);
    if (mixed && !wrong && s->asked.kind == WORLD_CONNECT) {
        after_connect(g, &s->asked);
        ask(g, s, now);
    } else {
        release(g, s);
    }
}

static unsigned receive(struct gen *g, struct lane *l, bool mixed)
{
    int n = recvmmsg(l->fd, l->in.msgs, BATCH, MSG_DONTWAIT, NULL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        load_fail("recvmmsg");
    for (int i = 0; i < n; i++)
        take(g, l->in.bytes[i], l->in.msgs[i].msg_len, mixed);
    return n > 0 ? (unsigned)n : 0;
}

/* --- the loop --- */

static void give_up(struct gen *g, uint64_t before)
{
    for (unsigned i = 0; i < g->o.window; i++) {
        if (!g->slots[i].busy || g->slots[i].sent_ns >= before)
            continue;
        g->counts.missing++;
        release(g, &g->slots[i]);
    }
    if (g->counts.missing >= LOST_MAX) {
        errno = ETIMEDOUT;
        load_fail("replies");
    }
}

/* How many may begin now: the free slots, in bursts (one by one the generator would wake for each
 * reply and take the server's core), or what the rate asks for. */
static unsigned may_begin(const struct gen *g, uint64_t began, uint64_t now)
{
    if (g->o.rate == 0)
        return g->free_count >= g->o.window / 4 ? g->free_count : 0;
    uint64_t due = (uint64_t)((double)(now - began) / 1e9 * (double)g->o.rate);
    uint64_t behind = due > g->begun ? due - g->begun : 0;
    return behind < g->free_count ? (unsigned)behind : g->free_count;
}

static bool begin(struct gen *g, next_fn *next, unsigned count, uint64_t now)
{
    while (count-- > 0) {
        struct world_asked a = {0};
        if (!next(g, &a))
            return false;
        struct slot *s = &g->slots[g->free[--g->free_count]];
        *s = (struct slot){.asked = a, .busy = true};
        ask(g, s, now);
        g->begun++;
    }
    return true;
}

/* Under a rate, until a reply is there or the next request is due. Else for a moment only: whoever
 * sends to a socket that is waited on pays for waking who waits, and no tracker does that for its
 * clients but on a loopback. */
static void wait_for_reply(struct gen *g)
{
    struct pollfd fds[2] = {{.fd = g->lanes[0].fd, .events = POLLIN},
                            {.fd = g->lanes[1].fd, .events = POLLIN}};

    if (g->o.rate == 0) {
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
        return;
    }
    uint64_t ns = 1000000000 / g->o.rate + 1;
    struct timespec limit = {0, (long)(ns < WAIT_NS ? ns : WAIT_NS)};
    ppoll(fds, 2, &limit, NULL);
}

/* Until `next` has no more or the time is over; then until the last reply is there. */
static double run(struct gen *g, next_fn *next, uint64_t for_ns)
{
    uint64_t began = load_now_ns(), looked = began;
    bool more = true;

    g->begun = 0;
    while (more || g->free_count < g->o.window) {
        uint64_t now = load_now_ns();
        if (more && for_ns && now - began >= for_ns)
            more = false;
        if (more)
            more = begin(g, next, may_begin(g, began, now), now);
        unsigned got = 0;
        for (int i = 0; i < 2 && g->lanes[i].fd >= 0; i++) {
            flush(&g->lanes[i]);
            got += receive(g, &g->lanes[i], next == next_mixed);
        }
        if (got == 0 && g->lanes[0].out.count + g->lanes[1].out.count == 0)
            wait_for_reply(g);
        if (now - looked > LOST_NS / 3) {
            give_up(g, now - LOST_NS);
            looked = now;
        }
    }
    return (double)(load_now_ns() - began) / 1e9;
}

/* A mode begins with an id for each source, and forgets what that cost. */
static void fetch_ids(struct gen *g)
{
    uint64_t rate = g->o.rate;

    g->next = 0;
    g->o.rate = 0;
    run(g, next_connect, 0);
    g->o.rate = rate;
    g->ids_ns = load_now_ns();
}

static bool ids_age(struct gen *g, struct world_asked *a, next_fn *next)
{
    return load_now_ns() - g->ids_ns < ID_NS && next(g, a);
}

static bool next_fill_young(struct gen *g, struct world_asked *a)
{
    return ids_age(g, a, next_fill);
}

static double fill(struct gen *g)
{
    double seconds = 0;

    for (uint64_t at = g->o.from; at < g->o.to; at = g->next) {
        fetch_ids(g);
        g->next = at;
        seconds += run(g, next_fill_young, 0);
    }
    return seconds;
}

/* --- main --- */

static int report(const struct gen *g, double seconds)
{
    const struct counts *c = &g->counts;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"ops", c->announces}, {"connects", c->connects}, {"scrapes", c->scrapes},
        {"wrong", c->wrong},   {"missing", c->missing},   {"errors", c->wrong + c->missing},
        {"peers", c->peers},   {"bad", c->bad},           {"refused", c->refused},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        printf("%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    printf("seconds %.6f\np50_us %.1f\np99_us %.1f\n", seconds, load_times_us(&g->times, .5),
           load_times_us(&g->times, .99));
    return c->wrong + c->missing != 0;
}

static void read_options(struct options *o, int argc, char **argv)
{
    const struct {
        const char *name;
        uint64_t *value, otherwise;
    } rows[] = {
        {"torrents", &o->torrents, 1000000},
        {"peers", &o->peers, 2000000},
        {"from", &o->from, 0},
        {"to", &o->to, 0},
        {"ms", &o->seconds_ms, 2000},
        {"rate", &o->rate, 0},
        {"window", &o->window, 192},
        {"numwant", &o->numwant, 30},
        {"scrape", &o->scrape, 15},
        {"stop", &o->stop, 20},
        {"complete", &o->complete, 10},
        {"bad", &o->bad, 5},
        {"v6", &o->v6, 0},
        {"self", &o->self, 0},
        {"bare", &o->bare, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        *rows[i].value = rows[i].otherwise;
    for (int k = 0; k < argc; k++) {
        size_t i = 0, len = strcspn(argv[k], "=");
        while (i < sizeof(rows) / sizeof(rows[0]) &&
               (strlen(rows[i].name) != len || strncmp(rows[i].name, argv[k], len) != 0))
            i++;
        if (i == sizeof(rows) / sizeof(rows[0]) || !argv[k][len])
            exit(2);
        *rows[i].value = strtoull(argv[k] + len + 1, NULL, 10);
    }
    if (o->to == 0)
        o->to = o->peers;
    if (o->window < 1 || o->window > WINDOW_MAX || o->torrents < 1 || o->peers < o->torrents ||
        o->peers > (uint64_t)WORLD_SOURCES * WORLD_PORTS || o->to > o->peers || o->numwant > 200)
        exit(2);
}

static int whitelist(const struct options *o)
{
    for (uint32_t t = 0; t < o->torrents; t++) {
        uint8_t hash[WORLD_HASH];
        world_hash(hash, t);
        for (int i = 0; i < WORLD_HASH; i++)
            printf("%02x", hash[i]);
        putchar('\n');
    }
    return fflush(stdout) != 0;
}

static void setup(struct gen *g, uint16_t port)
{
    world_init(&g->world, (uint32_t)g->o.torrents, (uint32_t)g->o.peers, g->o.v6);
    g->random.random = 88172645463325252u ^ load_now_ns();
    while (g->free_count < g->o.window) {
        g->free[g->free_count] = (uint16_t)g->free_count;
        g->free_count++;
    }
    lane_open(&g->lanes[0], AF_INET, port);
    g->lanes[1].fd = -1;
    if (g->o.v6)
        lane_open(&g->lanes[1], AF_INET6, port);
    prctl(PR_SET_TIMERSLACK, 1000);
}

static double measure(struct gen *g, const char *mode)
{
    next_fn *next = strcmp(mode, "mixed") == 0 ? next_mixed : next_announce;

    if (strcmp(mode, "fill") == 0)
        return fill(g);
    if (next == next_announce)
        fetch_ids(g);
    g->counts.connects = 0;
    return run(g, next, g->o.seconds_ms * 1000000);
}

int main(int argc, char **argv)
{
    static const char *const modes[] = {"fill", "announce", "mixed"};
    bool known = false;

    if (argc >= 2 && strcmp(argv[1], "whitelist") == 0) {
        read_options(&gen.o, argc - 2, argv + 2);
        return whitelist(&gen.o);
    }
    for (size_t i = 0; argc >= 3 && i < sizeof(modes) / sizeof(modes[0]); i++)
        known |= strcmp(argv[1], modes[i]) == 0;
    if (!known)
        return 2;
    read_options(&gen.o, argc - 3, argv + 3);
    setup(&gen, (uint16_t)atoi(argv[2]));
    double seconds = measure(&gen, argv[1]);
    int status = report(&gen, seconds);
    world_release(&gen.world);
    return status;
}
