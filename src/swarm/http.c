/* HTTP requests to the tracker. */
#include "swarm/http.h"
#include "base/bytes.h"
#include "swarm/answer.h"
#include "swarm/query.h"
#include "swarm/stats.h"
#include "swarm/trust.h"

/* The trusted networks (tracker.trusted). Requests read them without a lock, so replaced networks
 * live until the server is freed. */
struct trusted {
    struct trust trust;
    struct trusted *older;
};

struct swarm_http {
    struct http_server *server;
    struct tracker *tracker;
    _Atomic(struct trusted *) trusted;
};

enum { MAX_FORWARDED = 4096 };

static http_handler_fn swarm_http_handle;
static struct str swarm_log_path(const struct http_head *head);

int swarm_http_trust(struct swarm_http *h, struct str trusted, struct err *err)
{
    struct trusted *next = xcalloc(1, sizeof(*next));
    int code = trust_parse(&next->trust, trusted, err);

    if (code < 0) {
        free(next);
        return code;
    }
    next->older = atomic_load_explicit(&h->trusted, memory_order_relaxed);
    atomic_store_explicit(&h->trusted, next, memory_order_release);
    return 0;
}

int swarm_http_start(struct swarm_http **out, const struct swarm_http_options *o, struct err *err)
{
    struct swarm_http *h = xcalloc(1, sizeof(*h));
    struct http_server_options server = o->server;
    int code = swarm_http_trust(h, o->trusted, err);

    h->tracker = o->tracker;
    server.name = "tracker";
    server.handler = swarm_http_handle;
    server.ctx = h;
    server.log_path = swarm_log_path;
    server.max_body = 4096; /* in bytes; the tracker's requests need no body */
    if (code == 0)
        code = http_server_start(&h->server, &server, err);
    if (code < 0) {
        swarm_http_free(h);
        return code;
    }
    *out = h;
    return 0;
}

struct http_server *swarm_http_server(struct swarm_http *h)
{
    return h->server;
}

bool swarm_http_stop(struct swarm_http *h, uint64_t deadline_ns)
{
    return http_server_stop(h->server, deadline_ns);
}

void swarm_http_free(struct swarm_http *h)
{
    struct trusted *next;

    if (!h)
        return;
    if (h->server)
        http_server_free(h->server);
    for (struct trusted *t = atomic_load(&h->trusted); t; t = next) {
        next = t->older;
        free(t);
    }
    free(h);
}

static const struct trust *trust_of(struct swarm_http *h)
{
    return &atomic_load_explicit(&h->trusted, memory_order_acquire)->trust;
}

/* --- answers --- */

/* Sends an answer or a failure. The status is always 200, because clients do not read the body of
 * any other status. */
static int send_bencode(struct http_request *req, struct buf *body)
{
    int code = http_send_text(req, 200, STR("text/plain"), buf_str(body));

    buf_release(body);
    return code;
}

static int send_failure(struct swarm_http *h, struct http_request *req, enum swarm_failure failure,
                        const char *words)
{
    struct buf body = BUF_INIT(4096);

    tracker_count(h->tracker, TRACKER_HTTP, ACTION_ERROR, 1);
    answer_failure(&body, failure, words);
    return send_bencode(req, &body);
}

static int send_malformed(struct swarm_http *h, struct http_request *req, const char *words)
{
    tracker_count_failure(h->tracker, SWARM_MALFORMED);
    return send_failure(h, req, SWARM_MALFORMED, words);
}

/* --- where the client is --- */

/* Joins all header lines X-Forwarded-For into one list. */
static struct str forwarded_for(struct http_request *req)
{
    static const char name[] = "X-Forwarded-For";
    const struct http_head *head = http_request_head(req);
    const struct http_header *line = http_header_next(head, name, NULL);
    struct str all = line ? line->value : STR_EMPTY;

    while (line && (line = http_header_next(head, name, line)) != NULL)
        all = arena_fmt(http_request_arena(req), STR_FMT "," STR_FMT, STR_ARG(all),
                        STR_ARG(line->value));
    /* If the list is too long, its right end is used, because the nearest proxies wrote that
     * end. */
    return all.len > MAX_FORWARDED ? str_skip(all, all.len - MAX_FORWARDED) : all;
}

/* Replaces *addr by the address in the client's query (ip, ipv4 or ipv6), but only if the client is
 * in tracker.trusted: other clients could enter somebody else's address as a peer. */
static void take_told_address(const struct trust *trust, const struct announce_query *q,
                              struct peer_addr *addr)
{
    struct peer_addr said;

    if (!trust_has(trust, addr))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(q->ip); i++)
        if (peer_addr_parse(&said, str_z(q->ip[i])) && peer_addr_is_host(&said)) {
            *addr = said;
            return;
        }
}

/* --- announce --- */

static size_t peers_wanted(const struct tracker_options *o, const struct announce_query *q)
{
    size_t n = q->numwant < 0 ? o->numwant : (size_t)q->numwant;

    return q->event == EVENT_STOPPED ? 0 : size_min(n, o->max_numwant);
}

static int give_room(struct http_request *req, struct announce_answer *answer, size_t n,
                     bool with_ids)
{
    struct arena *a = http_request_arena(req);
    struct compact *both[] = {&answer->peers4, &answer->peers6};
    static const size_t sizes[] = {COMPACT4_LEN, COMPACT6_LEN};

    *answer = (struct announce_answer){0};
    for (size_t i = 0; n && i < ARRAY_SIZE(both); i++) {
        both[i]->at = arena_array(a, n, sizes[i]);
        both[i]->max = n;
        if (with_ids)
            both[i]->ids = arena_array(a, n, PEER_ID_LEN);
    }
    return arena_error(a);
}

static int send_announce_answer(struct swarm_http *h, struct http_request *req,
                                const struct announce *a, const struct announce_query *q,
                                const struct peer_addr *external)
{
    struct announce_answer out;
    struct answer_form form = {q->compact, q->no_peer_id, external};
    struct buf body = BUF_INIT(256 * KIB);
    size_t n = peers_wanted(tracker_settings(h->tracker), q);
    int code = give_room(req, &out, n, !q->compact && !q->no_peer_id);

    if (code < 0)
        return code;
    tracker_count(h->tracker, TRACKER_HTTP, ACTION_ANNOUNCE, 1);
    tracker_announce(h->tracker, a, &out);
    if (out.failure != SWARM_NONE)
        return send_failure(h, req, out.failure, NULL);
    answer_announce(&body, &out, &form);
    return send_bencode(req, &body);
}

static int http_announce(struct swarm_http *h, struct http_request *req, struct str passkey)
{
    struct announce_query q;
    const char *wrong = query_announce(&q, http_request_head(req)->query);
    struct peer_addr external = {0};
    struct announce a = {
        .info_hash = q.info_hash,
        .peer_id = q.peer_id,
        .uploaded = q.uploaded,
        .downloaded = q.downloaded,
        .left = q.left,
        .event = q.event,
        .numwant = q.numwant,
        .key = str_n(q.key, q.key_len),
        .passkey = passkey.len ? passkey : str_n(q.passkey, q.passkey_len),
    };

    if (wrong)
        return send_malformed(h, req, wrong);
    if (!trust_client(trust_of(h), http_request_peer(req), forwarded_for(req), &external))
        return send_malformed(h, req, "the proxy does not say where the client is");
    a.addr = external;
    if (q.has_ip)
        take_told_address(trust_of(h), &q, &a.addr);
    be16_write(a.addr.port, (uint16_t)q.port);
    return send_announce_answer(h, req, &a, &q, &external);
}

/* --- scrape --- */

static int http_scrape(struct swarm_http *h, struct http_request *req, struct str passkey)
{
    const struct tracker_options *o = tracker_settings(h->tracker);
    struct arena *arena = http_request_arena(req);
    struct scrape_query q = {.hashes = arena_array(arena, o->max_scrape, INFO_HASH_LEN),
                             .max = o->max_scrape};
    struct scrape_entry *entries = arena_array(arena, o->max_scrape, sizeof(*entries));
    struct buf body = BUF_INIT(256 * KIB);
    enum swarm_failure failure;
    const char *wrong;

    if (arena_error(arena) < 0)
        return ERR_NO_MEMORY;
    wrong = query_scrape(&q, http_request_head(req)->query);
    if (wrong)
        return send_malformed(h, req, wrong);
    tracker_count(h->tracker, TRACKER_HTTP, ACTION_SCRAPE, 1);
    failure = tracker_scrape(h->tracker, passkey.len ? passkey : str_n(q.passkey, q.passkey_len),
                             q.hashes, q.count, entries);
    if (failure != SWARM_NONE)
        return send_failure(h, req, failure, NULL);
    answer_scrape(&body, q.hashes, entries, q.count, o->min_interval_s);
    return send_bencode(req, &body);
}

/* --- pages --- */

static int send_stats(struct swarm_http *h, struct http_request *req)
{
    bool json = str_starts(http_request_head(req)->query, STR("json"));
    struct buf body = BUF_INIT(64 * KIB);
    struct json_out w;
    int code;

    if (json) {
        json_out_init(&w, &body);
        json_out_open(&w, '{');
        stats_members(&w, h->tracker);
        json_out_close(&w, '}');
    } else {
        stats_page(&body, h->tracker);
    }
    code = http_send_text(
        req, 200, json ? STR("application/json") : STR("text/html; charset=utf-8"), buf_str(&body));
    buf_release(&body);
    return code;
}

static int send_check(struct swarm_http *h, struct http_request *req)
{
    (void)h;
    return http_send_text(req, 200, STR("text/plain"), STR("STILL-ALIVE\n"));
}

static const struct {
    struct str path;
    int (*send)(struct swarm_http *h, struct http_request *req);
} pages[] = {
    {{"/stats", 6}, send_stats},
    {{"/check", 6}, send_check},
};

/* Returns the path to log. A path may contain a passkey, even a misspelled one, so unknown paths
 * are not logged. */
static struct str swarm_log_path(const struct http_head *head)
{
    struct str passkey;
    enum query_action action = query_path(head->path, &passkey);

    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        if (str_eq(head->path, pages[i].path))
            return head->path;
    return action == QUERY_ANNOUNCE ? STR("/announce")
           : action == QUERY_SCRAPE ? STR("/scrape")
                                    : STR("?");
}

static int send_swarm_page(struct swarm_http *h, struct http_request *req)
{
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        if (str_eq(http_request_head(req)->path, pages[i].path))
            return pages[i].send(h, req);
    return http_send_text(req, 404, STR("text/plain"),
                          STR("a BitTorrent tracker: /announce, /scrape, /stats\n"));
}

static int swarm_http_handle(struct http_request *req, void *ctx)
{
    struct swarm_http *h = ctx;
    const struct http_head *head = http_request_head(req);
    struct str passkey;
    enum query_action action = query_path(head->path, &passkey);

    if (head->method != HTTP_GET && head->method != HTTP_HEAD)
        return http_send_text(req, 405, STR("text/plain"), STR("only GET is taken\n"));
    if (tracker_waits(h->tracker) && !http_may_block(req))
        return ERR_AGAIN;
    if (action == QUERY_ANNOUNCE)
        return http_announce(h, req, passkey);
    if (action == QUERY_SCRAPE)
        return http_scrape(h, req, passkey);
    return send_swarm_page(h, req);
}
