/* Answers one request over UDP. In private mode this happens on threads that may wait for the
 * store. */
#include "swarm/query.h"
#include "swarm/udp_int.h"

#include <errno.h>
#include <stdlib.h>

void udp_from(struct udp_from *out, const struct sockaddr_storage *sa)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)sa;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

    memset(out, 0, sizeof(*out));
    if (sa->ss_family == AF_INET) {
        out->addr[10] = out->addr[11] = 0xff;
        memcpy(out->addr + 12, &in4->sin_addr, 4);
    } else {
        memcpy(out->addr, &in6->sin6_addr, 16);
        out->v6 = !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
    }
    memcpy(out->host, out->addr, out->v6 ? 8 : 16);
}

static struct str passkey_of(const struct udp_request *r)
{
    if (!r->url_len || r->url_len > UDP_URL_MAX)
        return STR_EMPTY;
    return query_passkey(str_n(r->url, r->url_len));
}

static size_t serve_announce(struct udp_server *u, struct udp_request *r,
                             const struct udp_from *from, uint8_t *out, enum swarm_failure *failure)
{
    struct announce *a = &r->announce;
    const struct compact none = {0};
    const struct compact room = {.at = out + UDP_ANNOUNCE_HEAD,
                                 .max = from->v6
                                            ? (UDP_PAYLOAD6 - UDP_ANNOUNCE_HEAD) / COMPACT6_LEN
                                            : (UDP_PAYLOAD4 - UDP_ANNOUNCE_HEAD) / COMPACT4_LEN};

    a->addr.v6 = from->v6;
    if (from->v6)
        memcpy(a->addr.ip, from->addr, 16);
    else
        memcpy(a->addr.ip, from->addr + 12, 4);
    a->passkey = passkey_of(r);
    struct announce_answer answer = {.peers4 = from->v6 ? none : room,
                                     .peers6 = from->v6 ? room : none};
    tracker_announce(u->tracker, a, &answer);
    *failure = answer.failure;
    return udp_write_announce(out, r->transaction, &answer, from->v6);
}

static size_t serve_scrape(struct udp_server *u, struct udp_request *r, uint8_t *out,
                           enum swarm_failure *failure)
{
    enum { MAX = (UDP_PAYLOAD6 - UDP_SCRAPE_HEAD) / UDP_SCRAPE_ENTRY };
    struct scrape_entry entries[MAX];
    size_t count = size_min(size_min(r->hash_count, MAX), tracker_settings(u->tracker)->max_scrape);

    *failure = tracker_scrape(u->tracker, STR_EMPTY, r->hashes, count, entries);
    return *failure ? 0 : udp_write_scrape(out, r->transaction, entries, count);
}

size_t udp_serve(struct udp_server *u, struct udp_request *r, const struct udp_from *from,
                 size_t len, uint8_t *out, bool *failed)
{
    enum swarm_failure failure = r->failure;
    size_t reply = 0;

    if (!failure && r->action == UDP_ANNOUNCE)
        reply = serve_announce(u, r, from, out, &failure);
    else if (!failure)
        reply = serve_scrape(u, r, out, &failure);
    *failed = failure != SWARM_NONE;
    if (failure)
        reply = udp_write_error(out, len, r->transaction, str_z(swarm_failure_text(failure)));
    return reply;
}

/* --- requests that wait (U5) --- */

struct waiting {
    struct pool_job job;
    struct udp_server *server;
    int fd;
    struct sockaddr_storage to;
    socklen_t to_len;
    size_t len;
    uint8_t packet[];
};

static void serve_waiting(void *ctx)
{
    struct waiting *w = ctx;
    const struct sockaddr *to = (const struct sockaddr *)&w->to;
    uint8_t out[UDP_PAYLOAD4];
    struct udp_request r;
    struct udp_from from;
    bool failed;
    size_t len;

    udp_from(&from, &w->to);
    if (udp_read(&r, w->packet, w->len) == 0) {
        len = udp_serve(w->server, &r, &from, w->len, out, &failed);
        if (failed)
            tracker_count(w->server->tracker, TRACKER_UDP, ACTION_ERROR, 1);
        if (len && sendto(w->fd, out, len, 0, to, w->to_len) < 0 && errno == EMSGSIZE)
            sendto(w->fd, out, size_min(len, REPLY_SHORT), 0, to, w->to_len);
    }
    free(w);
}

bool udp_hand_over(struct udp_loop *l, const void *packet, size_t len, const struct msghdr *to)
{
    struct waiting *w = xzalloc(sizeof(*w) + len);

    *w = (struct waiting){.server = l->server, .fd = l->fd, .len = len};
    w->job = (struct pool_job){.fn = serve_waiting, .ctx = w};
    w->to_len = (socklen_t)size_min(to->msg_namelen, sizeof(w->to));
    memcpy(&w->to, to->msg_name, w->to_len);
    memcpy(w->packet, packet, len);
    if (pool_submit(l->server->pool, &w->job) == 0)
        return true;
    free(w);
    return false;
}
