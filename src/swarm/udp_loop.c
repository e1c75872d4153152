/* A loop of the UDP tracker: it receives a batch of packets and sends a batch of replies.
 *
 * A batch is handled in phases: read and check the packets; prefetch the torrents; update them and
 * write the replies; send all replies. Each phase handles all packets of the batch before the next
 * phase begins, so the prefetched memory is loaded meanwhile. The clock is read once for each
 * batch.
 *
 * Loops are not bound to a processor. In a measurement an announce took 7 us when they were bound
 * and 6 us when not, because the kernel can wake a loop on a free processor instead of the
 * processor that is sending. */
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
    size_t len, reply; /* bytes of the packet and of its reply; reply 0: no reply */
    bool serve;        /* the connection id is right, so the request must be answered */
};

struct batch {
    struct udp_loop *loop;
    int64_t wall_ms;
    uint64_t now_s;
    uint64_t mono_ms;
    int count, lately; /* packets in this batch; packets so far in this millisecond */
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

/* Answers a connect request. The sender's address may be forged, so the reply is no longer than the
 * request (U1). A banned address gets an id too, because somebody else may have forged the address
 * to lock out its owner. */
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

/* Reads and checks a packet. A banned sender with a right id is served: a ban only suppresses error
 * replies. */
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

/* Shortens a reply that was too long for the path's MTU, so that it has fewer peers, or fewer
 * torrents of a scrape. False: sending failed for another reason, or the reply is short already. */
static bool shorten(struct iovec *reply)
{
    if (errno != EMSGSIZE || reply->iov_len <= REPLY_SHORT)
        return false;
    reply->iov_len = REPLY_SHORT;
    return true;
}

/* Sends the replies. A reply that cannot be sent (no route, a firewall) is skipped. */
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

/* Lets packets gather before they are received. Waking up costs as much as the work on a packet. So
 * when several small batches came within a millisecond, the loop sleeps for a moment (GATHER_NS).
 * Rare packets are served at once, and under full load the loop does not sleep. */
static void gather_batch(const struct batch *b)
{
    const struct timespec moment = {.tv_nsec = GATHER_NS};

    if (b->lately >= GATHER_FROM && b->count < GATHER_BELOW)
        (void)nanosleep(&moment, NULL);
}

/* Waits for a packet and receives all packets that have arrived. Returns their number; 0: none; -1:
 * the loop must end. */
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
        /* Wait, because the call would most likely fail again at once. */
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
