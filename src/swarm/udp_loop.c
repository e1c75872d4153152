/* A loop of the UDP tracker: a batch of packets in, a batch of replies out.
 *
 * The work on a batch goes in phases over all of its packets, so that what the next phase reads is
 * on its way from memory meanwhile: read and check; bring the torrents, then update and write the
 * replies where they are sent from; send all at once. The clock is read once a batch.
 *
 * Loops are not bound to a processor. Measured: bound, an announce costs 7 us, else 6, because the
 * kernel wakes a loop that it may move beside whoever sends, not behind it. */
#include "base/clock.h"
#include "swarm/udp_int.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum { GATHER_FROM = 4, GATHER_BELOW = BATCH / 4, GATHER_NS = 300 * NS_PER_US };

struct counts {
    uint64_t actions[TRACKER_ACTIONS];
    uint64_t bad, banned, dropped;
};

/* One packet of a batch. */
struct turn {
    struct udp_from from;
    struct udp_request request;
    size_t len, reply; /* reply 0: none */
    bool serve;        /* its connection id is right */
};

struct batch {
    struct udp_loop *loop;
    int64_t wall_ms;
    uint64_t now_s;
    uint64_t mono_ms;
    int count, lately; /* packets of this batch, and of this millisecond so far */
    struct counts counts;
    struct mmsghdr in[BATCH], out[BATCH];
    struct iovec in_at[BATCH], out_at[BATCH];
    struct sockaddr_storage names[BATCH];
    struct turn turns[BATCH];
    uint8_t packets[BATCH][PACKET_MAX], replies[BATCH][PACKET_MAX];
};

static bool source_port_is_0(const struct sockaddr_storage *sa)
{
    return sa->ss_family == AF_INET6 ? !((const struct sockaddr_in6 *)sa)->sin6_port
                                     : !((const struct sockaddr_in *)sa)->sin_port;
}

/* Nothing is known of the sender yet (U1): replies are no longer than what came. Who is banned gets
 * an id too: the wrong ones may be of somebody who forged the address to lock its owner out. */
static void connect_to(struct batch *b, struct turn *t, uint8_t *out)
{
    b->counts.actions[ACTION_CONNECT]++;
    t->reply = udp_write_connect(out, t->request.transaction,
                                 udp_make_id(b->loop->server, t->from.addr, b->wall_ms));
}

static void refuse_id(struct batch *b, struct turn *t, uint8_t *out)
{
    struct udp_server *u = b->loop->server;

    b->counts.bad++;
    if (connid_banned(u->bans, t->from.host, b->now_s)) {
        b->counts.banned++;
        return;
    }
    connid_bans_bad(u->bans, t->from.host, b->now_s);
    b->counts.actions[ACTION_ERROR]++;
    t->reply =
        udp_write_error(out, t->len, t->request.transaction, STR("connection id is not valid"));
}

/* Who is banned and has a right id is served: a ban only silences the errors. */
static void look_at(struct batch *b, int i)
{
    struct udp_server *u = b->loop->server;
    struct turn *t = &b->turns[i];

    t->reply = 0;
    t->serve = false;
    t->len = b->in[i].msg_len;
    if (source_port_is_0(&b->names[i]) || udp_read(&t->request, b->packets[i], t->len) < 0) {
        b->counts.dropped++;
        return;
    }
    udp_from(&t->from, &b->names[i]);
    if (t->request.action == UDP_CONNECT) {
        connect_to(b, t, b->replies[i]);
        return;
    }
    t->serve = udp_check_id(u, t->from.addr, b->wall_ms, t->request.connection_id);
    if (!t->serve)
        refuse_id(b, t, b->replies[i]);
}

static void serve_packet(struct batch *b, int i)
{
    struct udp_server *u = b->loop->server;
    struct turn *t = &b->turns[i];
    bool failed = false;

    b->counts.actions[t->request.action == UDP_ANNOUNCE ? ACTION_ANNOUNCE : ACTION_SCRAPE]++;
    if (u->pool && !t->request.failure) {
        b->counts.dropped += !udp_hand_over(b->loop, b->packets[i], t->len, &b->in[i].msg_hdr);
        return;
    }
    t->reply = udp_serve(u, &t->request, &t->from, t->len, b->replies[i], &failed);
    b->counts.actions[ACTION_ERROR] += failed;
}

static int gather_replies(struct batch *b, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        struct msghdr *to = &b->out[count].msg_hdr;
        if (!b->turns[i].reply)
            continue;
        b->out_at[count] = (struct iovec){b->replies[i], b->turns[i].reply};
        to->msg_name = &b->names[i];
        to->msg_namelen = b->in[i].msg_hdr.msg_namelen;
        to->msg_iov = &b->out_at[count++];
        to->msg_iovlen = 1;
    }
    return count;
}

/* On a path with a small MTU: fewer peers, or fewer torrents of a scrape. */
static bool shorten(struct iovec *reply)
{
    if (errno != EMSGSIZE || reply->iov_len <= REPLY_SHORT)
        return false;
    reply->iov_len = REPLY_SHORT;
    return true;
}

/* One that cannot be sent (no route, a firewall) is passed over. */
static void send_replies(struct batch *b, int count)
{
    for (int sent = 0; sent < count;) {
        int n = sendmmsg(b->loop->fd, b->out + sent, (unsigned)(count - sent), 0);
        if (n < 0 && (errno == EINTR || shorten(&b->out_at[sent])))
            continue;
        if (n <= 0)
            b->counts.dropped++;
        sent += n > 0 ? n : 1;
    }
}

static void flush_counts(struct batch *b)
{
    struct tracker *t = b->loop->server->tracker;

    for (int a = 0; a < TRACKER_ACTIONS; a++)
        if (b->counts.actions[a])
            tracker_count(t, TRACKER_UDP, (enum tracker_action)a, b->counts.actions[a]);
    if (b->counts.bad || b->counts.banned || b->counts.dropped)
        tracker_count_drops(t, b->counts.bad, b->counts.banned, b->counts.dropped);
    b->counts = (struct counts){0};
}

static void work_batch(struct batch *b, int n)
{
    struct swarms *swarms = tracker_swarms(b->loop->server->tracker);
    uint64_t now_ms = clock_mono_ms();

    b->wall_ms = clock_wall_ms();
    b->lately = now_ms == b->mono_ms ? b->lately + n : n;
    b->mono_ms = now_ms;
    b->now_s = now_ms / MS_PER_S;
    b->count = n;
    for (int i = 0; i < n; i++)
        look_at(b, i);
    for (int i = 0; i < n && swarms; i++)
        if (b->turns[i].serve && b->turns[i].request.action == UDP_ANNOUNCE)
            swarms_prefetch(swarms, b->turns[i].request.announce.info_hash);
    for (int i = 0; i < n; i++)
        if (b->turns[i].serve)
            serve_packet(b, i);
    send_replies(b, gather_replies(b, n));
    flush_counts(b);
}

/* Being woken costs as much as the work on a packet, so when several came within a millisecond, in
 * small batches, the next are gathered for a moment. Those that come now and then are served at
 * once, and under full load nobody sleeps. */
static void gather_batch(const struct batch *b)
{
    const struct timespec moment = {.tv_nsec = GATHER_NS};

    if (b->lately >= GATHER_FROM && b->count < GATHER_BELOW)
        (void)nanosleep(&moment, NULL);
}

/* Waits for one packet, takes as many as are there; 0: none, -1: the end. */
static int receive_batch(struct batch *b)
{
    struct udp_server *u = b->loop->server;
    int n;

    gather_batch(b);
    for (int i = 0; i < BATCH; i++)
        b->in[i].msg_hdr.msg_namelen = sizeof(b->names[i]);
    n = recvmmsg(b->loop->fd, b->in, BATCH, MSG_WAITFORONE, NULL);
    if (atomic_load_explicit(&u->stopping, memory_order_relaxed))
        return -1;
    if (n < 0 && errno != EINTR) {
        struct err err = {0};
        err_errno(&err, errno, "receiving");
        log_warn(u->log, "tracker.udp_failed", log_z("error", err.text));
        /* Not at once again: what failed would most likely fail again. */
        (void)poll(NULL, 0, 100);
    }
    return n < 0 ? 0 : n;
}

void udp_loop_run(void *ctx)
{
    struct udp_loop *l = ctx;
    struct batch *b = xcalloc(1, sizeof(*b));
    int n;

    b->loop = l;
    for (int i = 0; i < BATCH; i++) {
        b->in_at[i] = (struct iovec){b->packets[i], PACKET_MAX};
        b->in[i].msg_hdr =
            (struct msghdr){.msg_name = &b->names[i], .msg_iov = &b->in_at[i], .msg_iovlen = 1};
    }
    while ((n = receive_batch(b)) >= 0)
        if (n > 0)
            work_batch(b, n);
    free(b);
}
