/* Chooses peers for a client: suitable peers that are next to each other, from a random place
 * on. */
#include "base/ids.h"
#include "swarm/swarms_int.h"

/* All seeders, or all leechers, of one family: `count` peers from the place `from` on. */
struct run {
    const struct peers *p;
    uint32_t from, count;
    int64_t self; /* place of the client in the run; -1: it is not there */
};

static struct run peer_run(const struct peers *p, bool seeders, int64_t at)
{
    struct run r = {p, seeders ? 0 : p->seeders, seeders ? p->seeders : p->count - p->seeders, -1};

    if (at >= r.from && at < (int64_t)r.from + r.count)
        r.self = at - r.from;
    return r;
}

static uint32_t run_others(const struct run *r)
{
    return r->count - (r->self >= 0);
}

/* Copies `count` addresses from the place `start` on. After the last peer of the run the copy
 * continues with the first peer. */
static void copy_round(const struct run *r, uint32_t start, size_t count, uint8_t *to)
{
    size_t first = size_min(count, r->count - start), stride = r->p->stride;
    const uint8_t *base = r->p->addr + r->from * stride;

    memcpy(to, base + start * stride, first * stride);
    memcpy(to + first * stride, base, (count - first) * stride);
}

static void copy_peer_run(const struct run *r, size_t want, struct compact *out)
{
    uint8_t *to = out->at + out->count * r->p->stride;
    uint32_t start, before;

    want = size_min(want, run_others(r));
    if (!want)
        return;
    out->count += want;
    start = want < run_others(r) ? (uint32_t)random_below(r->count) : 0;
    /* `before` is the number of peers from `start` up to the client. */
    before = r->self < 0 ? r->count : (uint32_t)((r->self + r->count - start) % r->count);
    if (before >= want) {
        copy_round(r, start, want, to);
        return;
    }
    if (before)
        copy_round(r, start, before, to);
    copy_round(r, (uint32_t)(r->self + 1) % r->count, want - before, to + before * r->p->stride);
}

/* Returns how many peers suit the client. A seeder needs only leechers. */
static size_t fitting(const struct peers *p, const struct announce *a, int64_t at)
{
    struct run s = peer_run(p, true, at), l = peer_run(p, false, at);

    return run_others(&l) + (a->left || announce_maybe_link(a) ? run_others(&s) : 0);
}

static void copy_family(const struct peers *p, const struct announce *a, int64_t at, size_t want,
                        struct compact *out)
{
    struct run s = peer_run(p, true, at), l = peer_run(p, false, at);

    if (a->left)
        copy_peer_run(&s, want, out);
    copy_peer_run(&l, want - out->count, out);
    if (announce_maybe_link(a))
        copy_peer_run(&s, want - out->count, out);
}

static size_t swarm_wanted(const struct swarms_options *o, const struct announce *a)
{
    if (a->event == EVENT_STOPPED)
        return 0;
    return size_min(a->numwant < 0 ? o->numwant : (uint32_t)a->numwant, o->max_numwant);
}

void swarm_answer(const struct swarm *w, const struct announce *a, const int64_t at[FAMILIES],
                  struct announce_answer *out)
{
    size_t want = swarm_wanted(&w->s->options, a);
    size_t n4 = size_min(fitting(&w->of[V4], a, at[V4]), out->peers4.max);
    size_t n6 = size_min(fitting(&w->of[V6], a, at[V6]), out->peers6.max);

    out->peers4.count = out->peers6.count = 0;
    out->peers4.has_ids = out->peers6.has_ids = false;
    n4 = size_min(n4, want);
    /* IPv6 gets at least a quarter, if it has that many peers. */
    n6 = size_min(n6, size_max(want / 4, want - n4));
    n4 = size_min(n4, want - n6);
    if (n4)
        copy_family(&w->of[V4], a, at[V4], n4, &out->peers4);
    if (n6)
        copy_family(&w->of[V6], a, at[V6], n6, &out->peers6);
}
