/* The peers of one torrent: in the torrent's entry, or in a block for each address family. */
#include "base/ids.h"
#include "os/pages.h"
#include "swarm/swarms_int.h"

#include <stdlib.h>

/* --- blocks. Their capacities are even, so that the parts behind the addresses are aligned --- */

static size_t stride_of(enum family f)
{
    return f == V6 ? COMPACT6_LEN : COMPACT4_LEN;
}

static size_t index_width(uint32_t cap)
{
    return cap < UINT16_MAX ? 2 : 4;
}

static uint32_t index_slots(uint32_t cap)
{
    return cap < INDEX_FROM ? 0 : cap + cap / 4;
}

static size_t block_size(enum family f, uint32_t cap)
{
    return sizeof(struct block) + cap * (stride_of(f) + sizeof(struct peer_meta)) +
           index_slots(cap) * index_width(cap);
}

/* Blocks of at least this many bytes get pages of their own (os/pages.h). A block moves when it
 * grows, and large blocks would leave gaps in the heap that nothing else fits into. With two
 * hundred peers in each torrent the gaps were a fifth of all memory. */
enum { PAGES_FROM = 128 * 1024 };

static struct block *peer_block_new(enum family f, uint32_t cap)
{
    size_t size = block_size(f, cap);

    return size < PAGES_FROM ? xcalloc(1, size) : pages_new(size);
}

static void peer_block_free(enum family f, struct block *b)
{
    size_t size = b ? block_size(f, b->cap) : 0;

    if (size < PAGES_FROM)
        free(b);
    else
        pages_free(b, size);
}

static void view_block(struct peers *p, struct block *b)
{
    p->block = b;
    p->cap = b->cap;
    p->addr = b->bytes;
    p->meta = (struct peer_meta *)(void *)(b->bytes + b->cap * p->stride);
}

/* --- the index: finds the place of a peer by its address --- */

static uint8_t *index_of(const struct peers *p)
{
    return (uint8_t *)(p->meta + p->cap);
}

static uint32_t index_get(const struct peers *p, uint32_t slot)
{
    uint8_t *at = index_of(p);

    return index_width(p->cap) == 2 ? ((uint16_t *)(void *)at)[slot]
                                    : ((uint32_t *)(void *)at)[slot];
}

static void index_set(const struct peers *p, uint32_t slot, uint32_t v)
{
    uint8_t *at = index_of(p);

    if (index_width(p->cap) == 2)
        ((uint16_t *)(void *)at)[slot] = (uint16_t)v;
    else
        ((uint32_t *)(void *)at)[slot] = v;
}

static uint32_t index_home(const struct swarms *s, const struct peers *p, const uint8_t *addr)
{
    uint8_t words[20] = {0};

    memcpy(words, addr, p->stride);
    return (uint32_t)((uint64_t)words_hash(&s->key, words).a * p->block->slots >> 32);
}

static uint32_t index_next(const struct peers *p, uint32_t slot)
{
    return slot + 1 == p->block->slots ? 0 : slot + 1;
}

static bool peers_indexed(const struct peers *p)
{
    return p->block && p->block->slots;
}

/* Returns the slot of the index that has the peer at the place `at`. The peer must be in the index.
 */
static uint32_t index_slot(const struct swarms *s, const struct peers *p, uint32_t at)
{
    uint32_t slot = index_home(s, p, p->addr + at * p->stride);

    while (index_get(p, slot) != at + 1)
        slot = index_next(p, slot);
    return slot;
}

static void index_add(const struct swarms *s, const struct peers *p, uint32_t at)
{
    uint32_t slot;

    if (!peers_indexed(p))
        return;
    slot = index_home(s, p, p->addr + at * p->stride);
    while (index_get(p, slot))
        slot = index_next(p, slot);
    index_set(p, slot, at + 1);
}

/* Removes the peer at the place `at` from the index. As in close_gap() of swarms_table.c, index
 * entries behind the gap move up. */
static void index_remove(const struct swarms *s, const struct peers *p, uint32_t at)
{
    uint32_t gap, slots, v;

    if (!peers_indexed(p))
        return;
    slots = p->block->slots;
    gap = index_slot(s, p, at);
    for (uint32_t i = index_next(p, gap); (v = index_get(p, i)); i = index_next(p, i)) {
        uint32_t home = index_home(s, p, p->addr + (v - 1) * p->stride);
        uint32_t from_home = i >= home ? i - home : i + slots - home;
        uint32_t from_gap = i >= gap ? i - gap : i + slots - gap;
        if (from_home < from_gap)
            continue;
        index_set(p, gap, v);
        gap = i;
    }
    index_set(p, gap, 0);
}

/* --- places in the arrays --- */

static void move_peer(const struct swarms *s, struct peers *p, uint32_t from, uint32_t to)
{
    if (from == to)
        return;
    if (peers_indexed(p))
        index_set(p, index_slot(s, p, from), to + 1);
    memcpy(p->addr + to * p->stride, p->addr + from * p->stride, p->stride);
    p->meta[to] = p->meta[from];
}

static void swap_peers(const struct swarms *s, struct peers *p, uint32_t a, uint32_t b)
{
    struct peer_meta meta = p->meta[a];
    uint8_t addr[COMPACT6_LEN];

    if (a == b)
        return;
    if (peers_indexed(p)) {
        uint32_t slot_a = index_slot(s, p, a), slot_b = index_slot(s, p, b);
        index_set(p, slot_a, b + 1);
        index_set(p, slot_b, a + 1);
    }
    memcpy(addr, p->addr + a * p->stride, p->stride);
    memcpy(p->addr + a * p->stride, p->addr + b * p->stride, p->stride);
    memcpy(p->addr + b * p->stride, addr, p->stride);
    p->meta[a] = p->meta[b];
    p->meta[b] = meta;
}

/* Moves the peers of a family into a new block for `cap` peers. The peers may be in the torrent's
 * entry, so the entry is overwritten last. */
static void rebuild_block(struct swarm *w, enum family f, uint32_t cap)
{
    struct peers old = w->of[f], *p = &w->of[f];
    struct block *b = peer_block_new(f, cap);

    b->cap = cap;
    b->slots = index_slots(cap);
    if (old.block)
        memcpy(b->twins, old.block->twins, sizeof(b->twins));
    view_block(p, b);
    if (old.count) {
        memcpy(p->addr, old.addr, old.count * p->stride);
        memcpy(p->meta, old.meta, old.count * sizeof(*p->meta));
    }
    for (uint32_t i = 0; i < old.count; i++)
        index_add(w->s, p, i);
    w->stripe->bytes += block_size(f, cap);
    if (old.block)
        w->stripe->bytes -= block_size(f, old.cap);
    peer_block_free(f, old.block);
    w->t->block[f] = b;
}

static void to_blocks(struct swarm *w)
{
    struct peers *p = &w->of[V4];
    struct peers few = *p;
    uint8_t addr[sizeof(w->t->few.addr)];
    struct peer_meta meta[FEW_PEERS];

    memcpy(addr, w->t->few.addr, sizeof(addr));
    memcpy(meta, w->t->few.meta, sizeof(meta));
    w->t->flags |= TORRENT_BLOCKS;
    w->t->block[V4] = w->t->block[V6] = NULL;
    p->addr = addr;
    p->meta = meta;
    if (few.count)
        rebuild_block(w, V4, FEW_PEERS * 2);
    else
        *p = (struct peers){.stride = p->stride};
}

/* Returns the capacity for a block with `count` peers: a quarter more, or an eighth more in a large
 * swarm. */
static uint32_t cap_for(uint32_t count)
{
    uint32_t more = count < 64 ? count / 4 : count / 8;

    return (count + (more < 2 ? 2 : more) + 1) & ~1U;
}

static void make_peer_room(struct swarm *w, enum family f)
{
    if (!(w->t->flags & TORRENT_BLOCKS) && (f == V6 || w->of[V4].count == FEW_PEERS))
        to_blocks(w);
    if (w->of[f].count == w->of[f].cap)
        rebuild_block(w, f, cap_for(w->of[f].count));
}

static void drop_block(struct swarm *w, enum family f)
{
    struct peers *p = &w->of[f];

    if (p->block)
        w->stripe->bytes -= block_size(f, p->cap);
    peer_block_free(f, p->block);
    *p = (struct peers){.stride = p->stride};
    w->t->block[f] = NULL;
}

static void view_few(struct swarm *w)
{
    struct torrent_entry *t = w->t;
    struct peers *p = &w->of[V4];

    *p = (struct peers){.addr = t->few.addr,
                        .meta = t->few.meta,
                        .stride = COMPACT4_LEN,
                        .cap = FEW_PEERS,
                        .count = t->count,
                        .seeders = t->seeders};
    for (uint32_t i = 0; i < p->count; i++)
        p->paused += (p->meta[i].told & PEER_PAUSED) != 0;
}

static void to_few(struct swarm *w)
{
    struct peers old = w->of[V4];
    struct torrent_entry *t = w->t;

    if (old.block)
        w->stripe->bytes -= block_size(V4, old.cap);
    drop_block(w, V6);
    t->flags &= (uint8_t)~TORRENT_BLOCKS;
    t->count = (uint8_t)old.count;
    t->seeders = (uint8_t)old.seeders;
    if (old.count) {
        memcpy(t->few.addr, old.addr, old.count * COMPACT4_LEN);
        memcpy(t->few.meta, old.meta, old.count * sizeof(*old.meta));
    }
    peer_block_free(V4, old.block);
    view_few(w);
}

/* --- twins: a client with a peer of IPv4 and of IPv6 is counted once, under IPv4 --- */

static bool tag_there(const struct peers *p, uint16_t tag)
{
    bool there = false;

    for (uint32_t i = 0; i < p->count; i++)
        there |= p->meta[i].tag == tag;
    return there;
}

static void mark_twins(struct swarm *w, uint16_t tag, bool twin)
{
    struct peers *p = &w->of[V6];

    for (uint32_t i = 0; i < p->count; i++) {
        struct peer_meta *m = &p->meta[i];
        if (m->tag != tag || ((m->told & PEER_TWIN) != 0) == twin)
            continue;
        m->told ^= PEER_TWIN;
        p->block->twins[i < p->seeders] += twin ? 1 : UINT32_MAX;
    }
}

static void tag_came(struct swarm *w, enum family f, uint16_t tag)
{
    if (w->of[V6].count && w->of[V4].count && w->of[V4].count <= TWIN_PEERS_MAX &&
        (f == V4 || tag_there(&w->of[V4], tag)))
        mark_twins(w, tag, true);
}

static void tag_went(struct swarm *w, enum family f, uint16_t tag)
{
    if (f == V4 && w->of[V6].count && !tag_there(&w->of[V4], tag))
        mark_twins(w, tag, false);
}

/* Removes the mark of an IPv6 peer that it is a twin. Called before the peer is dropped, turns from
 * leecher to seeder or back, or changes its tag. */
static void leave_twins(struct peers *p, uint32_t at)
{
    if (!(p->meta[at].told & PEER_TWIN))
        return;
    p->meta[at].told &= (uint8_t)~PEER_TWIN;
    p->block->twins[at < p->seeders]--;
}

/* --- changing a swarm --- */

static void count_swarm_peers(struct swarm *w, enum family f, bool seeder, int by)
{
    w->stripe->peers[f][seeder] += (uint64_t)by;
    atomic_fetch_add_explicit(&w->s->peers, (uint64_t)by, memory_order_relaxed);
}

/* Counts the peers of an address among `count` peers from the place `from` on. After the last peer
 * the count continues with the first peer. */
static uint32_t same_host(const struct peers *p, const uint8_t *addr, uint32_t from, uint32_t count)
{
    size_t host = p->stride == COMPACT6_LEN ? 8 : 4;
    uint32_t met = 0;

    for (uint32_t i = 0; i < count; i++, from++) {
        from = from == p->count ? 0 : from;
        met += memcmp(p->addr + from * p->stride, addr, host) == 0;
    }
    return met;
}

/* In a large swarm only some peers are checked. Peers of one address that joined at the same time
 * are next to each other. So many short runs of peers give a better estimate than one long run. */
uint64_t swarm_neighbours(const struct swarm *w, enum family f, const uint8_t *addr)
{
    const struct peers *p = &w->of[f];
    uint64_t met = 0;

    if (p->count <= CROWD_LOOK)
        return same_host(p, addr, 0, p->count);
    for (int i = 0; i < CROWD_LOOK / CROWD_STRETCH; i++)
        met += same_host(p, addr, (uint32_t)random_below(p->count), CROWD_STRETCH);
    return met * p->count / CROWD_LOOK;
}

void swarm_put(struct swarm *w, enum family f, const uint8_t *addr, struct peer_meta meta,
               bool seeder)
{
    struct peers *p = &w->of[f];
    uint32_t at;

    make_peer_room(w, f);
    at = p->count;
    if (seeder) {
        at = p->seeders++;
        move_peer(w->s, p, at, p->count);
    }
    p->count++;
    p->paused += (meta.told & PEER_PAUSED) != 0;
    memcpy(p->addr + at * p->stride, addr, p->stride);
    p->meta[at] = meta;
    index_add(w->s, p, at);
    count_swarm_peers(w, f, seeder, 1);
    if (units_ago(w->now, meta.seen) > units_ago(w->now, w->t->oldest))
        w->t->oldest = meta.seen;
    tag_came(w, f, meta.tag);
}

void swarm_drop(struct swarm *w, enum family f, uint32_t at)
{
    struct peers *p = &w->of[f];
    bool seeder = at < p->seeders;
    uint16_t tag = p->meta[at].tag;

    if (f == V6)
        leave_twins(p, at);
    p->paused -= (p->meta[at].told & PEER_PAUSED) != 0;
    index_remove(w->s, p, at);
    if (seeder) {
        move_peer(w->s, p, --p->seeders, at);
        at = p->seeders;
    }
    move_peer(w->s, p, --p->count, at);
    count_swarm_peers(w, f, seeder, -1);
    tag_went(w, f, tag);
}

uint32_t swarm_turn(struct swarm *w, enum family f, uint32_t at)
{
    struct peers *p = &w->of[f];
    bool seeder = at < p->seeders, twin = p->meta[at].told & PEER_TWIN;
    uint32_t to = seeder ? p->seeders - 1 : p->seeders;

    if (twin)
        leave_twins(p, at);
    swap_peers(w->s, p, at, to);
    p->seeders += seeder ? UINT32_MAX : 1;
    if (twin) {
        p->meta[to].told |= PEER_TWIN;
        p->block->twins[!seeder]++;
    }
    count_swarm_peers(w, f, seeder, -1);
    count_swarm_peers(w, f, !seeder, 1);
    return to;
}

void swarm_pause(struct swarm *w, enum family f, uint32_t at, bool paused)
{
    struct peer_meta *m = &w->of[f].meta[at];

    if (((m->told & PEER_PAUSED) != 0) == paused)
        return;
    m->told ^= PEER_PAUSED;
    w->of[f].paused += paused ? 1 : UINT32_MAX;
}

void swarm_retag(struct swarm *w, enum family f, uint32_t at, uint16_t tag)
{
    struct peers *p = &w->of[f];
    uint16_t old = p->meta[at].tag;

    if (old == tag)
        return;
    if (f == V6)
        leave_twins(p, at);
    p->meta[at].tag = tag;
    tag_went(w, f, old);
    tag_came(w, f, tag);
}

void swarm_clear(struct swarm *w)
{
    for (int f = V4; f <= V6; f++) {
        struct peers *p = &w->of[f];
        count_swarm_peers(w, f, true, -(int)p->seeders);
        count_swarm_peers(w, f, false, -(int)(p->count - p->seeders));
        p->count = p->seeders = p->paused = 0;
    }
    if (w->t->flags & TORRENT_BLOCKS)
        to_few(w);
}

/* Drops peers past the timeout. The loop goes backwards, because swarm_drop() fills the gap with
 * peers from behind the gap. */
static void trim_swarm(struct swarm *w)
{
    uint32_t oldest = 0;

    for (int f = V4; f <= V6; f++) {
        struct peers *p = &w->of[f];
        for (uint32_t i = p->count; i-- > 0;) {
            uint32_t ago = units_ago(w->now, p->meta[i].seen);
            if (ago > w->s->limit)
                swarm_drop(w, f, i);
            else if (ago > oldest)
                oldest = ago;
        }
    }
    w->t->oldest = (uint8_t)(w->now - oldest);
}

void swarm_begin(struct swarm *w, struct swarms *s, struct stripe *stripe, struct torrent_entry *t)
{
    *w = (struct swarm){.s = s, .stripe = stripe, .t = t, .now = swarm_unit(s)};
    if (w->now < t->touched) /* another thread has read the clock a little later */
        w->now = t->touched;
    w->of[V4].stride = COMPACT4_LEN;
    w->of[V6].stride = COMPACT6_LEN;
    if (!(t->flags & TORRENT_BLOCKS))
        view_few(w);
    else
        for (int f = V4; f <= V6; f++)
            if (t->block[f]) {
                view_block(&w->of[f], t->block[f]);
                w->of[f].count = t->block[f]->count;
                w->of[f].seeders = t->block[f]->seeders;
                w->of[f].paused = t->block[f]->paused;
            }
    if (w->now - t->touched > s->limit) {
        swarm_clear(w);
        t->oldest = (uint8_t)w->now;
    } else if (units_ago(w->now, t->oldest) > s->limit) {
        trim_swarm(w);
    }
}

void swarm_end(struct swarm *w)
{
    if (!(w->t->flags & TORRENT_BLOCKS)) {
        w->t->count = (uint8_t)w->of[V4].count;
        w->t->seeders = (uint8_t)w->of[V4].seeders;
        return;
    }
    if (!w->of[V6].count && w->of[V4].count < FEW_PEERS) {
        to_few(w);
        return;
    }
    for (int f = V4; f <= V6; f++) {
        struct peers *p = &w->of[f];
        if (!p->block)
            continue;
        if (!p->count) {
            drop_block(w, f);
            continue;
        }
        if (p->cap > 8 && p->count < p->cap / 2)
            rebuild_block(w, f, cap_for(p->count));
        p->block->count = p->count;
        p->block->seeders = p->seeders;
        p->block->paused = p->paused;
    }
}

/* --- finding a peer --- */

static int64_t look_through4(const struct peers *p, const uint8_t *addr)
{
    uint32_t ip;
    uint16_t port;

    memcpy(&ip, addr, 4);
    memcpy(&port, addr + 4, 2);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t other;
        uint16_t other_port;
        memcpy(&other, p->addr + (size_t)i * COMPACT4_LEN, 4);
        memcpy(&other_port, p->addr + (size_t)i * COMPACT4_LEN + 4, 2);
        if (other == ip && other_port == port)
            return i;
    }
    return -1;
}

int64_t swarm_find(const struct swarm *w, enum family f, const uint8_t *addr)
{
    const struct peers *p = &w->of[f];
    uint32_t v;

    if (peers_indexed(p)) {
        for (uint32_t i = index_home(w->s, p, addr); (v = index_get(p, i)); i = index_next(p, i))
            if (memcmp(p->addr + (v - 1) * p->stride, addr, p->stride) == 0)
                return v - 1;
        return -1;
    }
    if (f == V4)
        return look_through4(p, addr);
    for (uint32_t i = 0; i < p->count; i++)
        if (memcmp(p->addr + i * p->stride, addr, p->stride) == 0)
            return i;
    return -1;
}
