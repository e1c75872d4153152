/* Seats limit how many threads of the blocking pool may wait for peers, how many of these for one
 * peer, and how many for unknown senders (docs/http.md, "Seats"). A handler takes a seat before it
 * first waits for its peer, and keeps it until it has returned. So no request loses its seat in the
 * middle of a body because other requests arrived. While a handler has a seat, the pool does not
 * count its thread as busy. */
#include "http/server_int.h"

/* The share of all seats that all addresses together may take, and the share that one address may
 * take: 16 means a sixteenth. */
static const struct {
    size_t all, address;
} shares[STANDINGS] = {
    [STRANGER] = {.all = 4, .address = 16},
    [KNOWN] = {.all = 1, .address = 2},
};

void seats_init(struct http_server *s)
{
    size_t seats = s->pool ? pool_aside_max(s->pool) : 0; /* without a pool no handler waits */

    for (size_t i = 0; i < STANDINGS; i++) {
        s->seats_of_all[i] = size_max(seats / shares[i].all, 1);
        s->seats_of_address[i] = size_max(seats / shares[i].address, 1);
    }
}

static bool seat_enter(_Atomic(size_t) *taken, size_t max)
{
    if (atomic_fetch_add_explicit(taken, 1, memory_order_relaxed) < max)
        return true;
    atomic_fetch_sub_explicit(taken, 1, memory_order_relaxed);
    return false;
}

static void seat_exit(_Atomic(size_t) *taken)
{
    atomic_fetch_sub_explicit(taken, 1, memory_order_relaxed);
}

int seat_take(struct http_request *req)
{
    struct http_server *s = req->conn->server;
    struct address *a = req->conn->address;
    enum standing as = req->standing;

    if (req->seated)
        return 0;
    bool for_address = !a || seat_enter(&a->seats[as], s->seats_of_address[as]);
    bool for_all = for_address && seat_enter(&s->seats_taken[as], s->seats_of_all[as]);
    req->seated = for_all && pool_step_aside(s->pool);
    req->seat = as;
    if (req->seated)
        return 0;
    if (for_all)
        seat_exit(&s->seats_taken[as]);
    if (for_address && a)
        seat_exit(&a->seats[as]);
    count(&counters_mine(s)->refused, 1);
    return ERR_BUSY;
}

void seat_leave(struct http_request *req)
{
    struct address *a = req->conn->address;

    if (!req->seated)
        return;
    req->seated = false;
    seat_exit(&req->conn->server->seats_taken[req->seat]);
    if (a)
        seat_exit(&a->seats[req->seat]);
}
