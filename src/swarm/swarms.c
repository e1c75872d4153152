/* Swarms in memory: announces, scrapes, and the list of torrents. swarms_int.h describes the
 * structs. */
#include "base/hash.h"
#include "base/ids.h"
#include "swarm/swarms_int.h"
#include "swarm/trust.h"

#include <stdlib.h>

enum { TELL_S = 600 };

int swarms_new(struct swarms **out, const struct swarms_options *o, struct err *err)
{
    struct swarms *s;

    if (!o->peer_timeout_s || !o->max_torrents || !o->max_peers)
        return err_set(err, ERR_INVALID, "swarms need a timeout and bounds above 0");
    s = xcalloc(1, sizeof(*s));
    s->options = *o;
    random_bytes(&s->key, sizeof(s->key));
    s->unit_s = (o->peer_timeout_s + TIMEOUT_UNITS - 1) / TIMEOUT_UNITS;
    /* A peer's age is counted in whole units, so a peer may be up to one unit older than its age
     * says. The limit is therefore one unit lower, so that no peer past the timeout is ever given
     * out (M7). */
    s->limit = s->unit_s == 1 ? o->peer_timeout_s : o->peer_timeout_s / s->unit_s - 1;
    s->tell_units = (uint32_t)size_min(TELL_S, o->peer_timeout_s / 3) / s->unit_s;
    for (int i = 0; i < STRIPES; i++) {
        mutex_init(&s->stripes[i].lock, "swarms");
        s->stripes[i].table = &s->tables[i];
    }
    *out = s;
    return 0;
}

/* Drops all peers of a torrent that is about to be removed. */
static void entry_empty(struct swarms *s, struct stripe *stripe, struct torrent_entry *t)
{
    struct swarm w;

    swarm_begin(&w, s, stripe, t);
    swarm_clear(&w);
    swarm_end(&w);
}

void swarms_free(struct swarms *s)
{
    if (!s)
        return;
    for (int i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &s->stripes[i];
        for (uint32_t at = 0; at < table_slots(stripe); at++)
            if (table_at(stripe, at))
                entry_empty(s, stripe, table_at(stripe, at));
        table_release(stripe);
        mutex_release(&stripe->lock);
    }
    free(s);
}

void swarms_prefetch(const struct swarms *s, const uint8_t *info_hash)
{
    table_prefetch(s, info_hash);
}

static bool tracked(const struct swarms *s, const struct torrent_entry *t)
{
    return s->options.open || (t && t->flags & TORRENT_ADDED);
}

static bool room_for(const struct swarms *s, bool torrent)
{
    return atomic_load_explicit(&s->peers, memory_order_relaxed) < s->options.max_peers &&
           (!torrent ||
            atomic_load_explicit(&s->torrents, memory_order_relaxed) < s->options.max_torrents);
}

/* --- eviction (M4) --- */

enum { CANDIDATES = 64, CANDIDATES_ENOUGH = 16 };

struct victim {
    bool found;
    struct stripe *stripe;
    uint8_t hash[INFO_HASH_LEN];
    uint64_t weight;
};

static uint64_t peers_in(const struct torrent_entry *t)
{
    uint64_t n = 0;

    if (!(t->flags & TORRENT_BLOCKS))
        return t->count;
    for (int f = V4; f <= V6; f++)
        n += t->block[f] ? t->block[f]->count : 0;
    return n;
}

/* Returns the weight of a torrent; the lightest torrent is dropped first. A torrent with fewer
 * peers is lighter. If two torrents have equally many peers, a torrent that nobody has completed is
 * lighter. If that is equal too, the newer torrent is lighter, because in a flood of announces the
 * newest torrents belong to the flood. */
static uint64_t weight_of(const struct swarms *s, const struct torrent_entry *t)
{
    return peers_in(t) << 33 | (uint64_t)(t->snatches != 0) << 32 |
           units_ago(swarm_unit(s), t->oldest);
}

/* Looks at the next torrents of the stripe and puts the lightest into *v. Returns how many torrents
 * it looked at. When the bound of peers is reached, torrents without peers are skipped, because
 * dropping them would not help. */
static size_t look_for_victim(const struct swarms *s, struct stripe *stripe, struct victim *v)
{
    uint32_t slots = table_slots(stripe);
    bool with_peers = !room_for(s, false);
    size_t seen = 0;

    for (uint32_t i = 0; i < slots && seen < CANDIDATES_ENOUGH; i++) {
        stripe->evict_hand = stripe->evict_hand + 1 < slots ? stripe->evict_hand + 1 : 0;
        struct torrent_entry *t = table_at(stripe, stripe->evict_hand);
        if (!t || t->flags & TORRENT_ADDED || (with_peers && !peers_in(t)))
            continue;
        seen++;
        if (v->found && weight_of(s, t) >= v->weight)
            continue;
        *v = (struct victim){.found = true, .stripe = stripe, .weight = weight_of(s, t)};
        memcpy(v->hash, t->hash, INFO_HASH_LEN);
    }
    return seen;
}

static bool evict_victim(struct swarms *s, const struct victim *v)
{
    struct torrent_entry *t;

    mutex_lock(&v->stripe->lock);
    t = table_find(s, v->stripe, v->hash);
    if (t && !(t->flags & TORRENT_ADDED)) {
        entry_empty(s, v->stripe, t);
        table_remove(s, v->stripe, t);
        v->stripe->evicted++;
    } /* else another thread has dropped the torrent already */
    mutex_unlock(&v->stripe->lock);
    return true;
}

/* Drops the lightest of about 64 torrents; 16 are enough when the lightest has at most one peer.
 * False: there is no torrent that may be dropped. The caller holds no lock; this function locks one
 * stripe at a time. */
static bool evict_one(struct swarms *s)
{
    struct victim v = {.found = false};
    size_t seen = 0;

    for (int i = 0; i < STRIPES && seen < CANDIDATES; i++) {
        uint32_t hand = atomic_fetch_add_explicit(&s->evict_hand, 1, memory_order_relaxed);
        struct stripe *stripe = &s->stripes[hand % STRIPES];
        if (atomic_load_explicit(&stripe->table->count, memory_order_relaxed) <=
            atomic_load_explicit(&stripe->added, memory_order_relaxed))
            continue; /* all torrents of the stripe were added, so none may be dropped */
        mutex_lock(&stripe->lock);
        seen += look_for_victim(s, stripe, &v);
        mutex_unlock(&stripe->lock);
        if (seen >= CANDIDATES_ENOUGH && v.weight >> 33 <= 1)
            break;
    }
    return v.found && evict_victim(s, &v);
}

/* --- announces --- */

static enum family family_of(const struct announce *a)
{
    return a->addr.v6 ? V6 : V4;
}

static void compact_of(const struct peer_addr *addr, uint8_t out[COMPACT6_LEN])
{
    size_t ip = addr->v6 ? 16 : 4;

    memcpy(out, addr->ip, ip);
    memcpy(out + ip, addr->port, 2);
}

/* Makes the tag of a peer (struct peer_meta). The hash has no secret key, so that tags stay the
 * same over a restart. A client that forges another client's tag gains nothing: it is only not
 * counted. */
static uint16_t announce_tag(const struct announce *a)
{
    uint64_t key = hash_xxh3(a->key, 0);

    return (uint16_t)hash_xxh3(str_n(a->peer_id, PEER_ID_LEN), key);
}

/* An announce that is being handled: the swarm, and the client's place in it. */
struct visit {
    struct swarm w;
    const struct announce *a;
    enum family f;
    int64_t at; /* place of the client among its family's peers; -1: it is not in the swarm */
    uint8_t addr[COMPACT6_LEN];
};

static bool visit_was_seeder(const struct visit *v)
{
    return v->at >= 0 && v->at < v->w.of[v->f].seeders;
}

static void visit_snatched(struct visit *v)
{
    v->w.t->snatches++;
    v->w.stripe->snatches++;
}

static enum swarm_change visit_leave(struct visit *v)
{
    bool completed = v->at >= 0 && !visit_was_seeder(v) && v->a->left == 0;

    if (v->at < 0)
        return SWARM_CHANGE_NONE;
    swarm_drop(&v->w, v->f, (uint32_t)v->at);
    if (completed)
        visit_snatched(v);
    return completed ? SWARM_CHANGE_STOPPED_COMPLETED : SWARM_CHANGE_STOPPED;
}

static void visit_join(struct visit *v, uint32_t ago, bool seeder)
{
    uint32_t unit = v->w.now - ago;
    struct peer_meta meta = {
        .seen = (uint8_t)unit, .told = told_mark(unit), .tag = announce_tag(v->a)};

    if (!seeder && v->a->event == EVENT_PAUSED)
        meta.told |= PEER_PAUSED;
    swarm_put(&v->w, v->f, v->addr, meta, seeder);
}

static bool visit_told_lately(const struct visit *v, uint8_t told)
{
    uint32_t ago = (told_mark(v->w.now) - told) & TOLD_MASK;

    return 4 * ago <= v->w.s->tell_units;
}

static void set_told(struct peer_meta *m, uint32_t unit)
{
    m->told = (uint8_t)((m->told & ~TOLD_MASK) | told_mark(unit));
}

/* Refreshes a peer that is in the swarm. Returns what changed. */
static enum swarm_change visit_refresh(struct visit *v)
{
    bool seeder = v->a->left == 0, turns = seeder != visit_was_seeder(v);
    bool paused = !seeder && v->a->event == EVENT_PAUSED;
    uint32_t at = (uint32_t)v->at;
    struct peer_meta *m;
    bool repaused;

    if (turns)
        at = swarm_turn(&v->w, v->f, at);
    m = &v->w.of[v->f].meta[at];
    repaused = paused != ((m->told & PEER_PAUSED) != 0);
    swarm_pause(&v->w, v->f, at, paused);
    if (v->a->event == EVENT_STARTED) /* another client may use this address now */
        swarm_retag(&v->w, v->f, at, announce_tag(v->a));
    m->seen = (uint8_t)v->w.now;
    if (!turns && !repaused && visit_told_lately(v, m->told))
        return SWARM_CHANGE_NONE;
    set_told(m, v->w.now);
    if (turns && seeder) {
        visit_snatched(v);
        return SWARM_CHANGE_COMPLETED;
    }
    return seeder ? SWARM_CHANGE_SEEDER : SWARM_CHANGE_LEECHER;
}

/* Whether the address already has as many peers in the swarm as are allowed. Private networks are
 * exempt, because they are the operator's own. */
static bool visit_crowded(const struct visit *v)
{
    uint32_t max = v->w.s->options.max_per_address;

    return max && v->at < 0 && v->w.of[v->f].count >= max && !peer_addr_is_local(&v->a->addr) &&
           swarm_neighbours(&v->w, v->f, v->addr) >= max;
}

static enum swarm_change visit_enter(struct visit *v)
{
    if (v->a->event == EVENT_STOPPED)
        return visit_leave(v);
    if (v->at >= 0)
        return visit_refresh(v);
    if (visit_crowded(v)) {
        v->w.stripe->crowded++;
        return SWARM_CHANGE_NONE;
    }
    visit_join(v, 0, v->a->left == 0);
    return v->a->left == 0 ? SWARM_CHANGE_SEEDER : SWARM_CHANGE_LEECHER;
}

static void visit_begin(struct visit *v, struct swarms *s, struct stripe *stripe,
                        struct torrent_entry *t)
{
    swarm_begin(&v->w, s, stripe, t);
    t->touched = v->w.now;
    v->at = swarm_find(&v->w, v->f, v->addr);
}

/* Handles an announce under the stripe's lock. False: a bound is reached, and a torrent must be
 * dropped before the next try. */
static bool try_announce(struct swarms *s, struct stripe *stripe, struct visit *v,
                         struct announce_answer *out, enum swarm_change *change)
{
    struct torrent_entry *t = table_find(s, stripe, v->a->info_hash);
    int64_t at[FAMILIES] = {-1, -1};
    bool stops = v->a->event == EVENT_STOPPED;

    if (!tracked(s, t)) {
        out->failure = SWARM_TORRENT;
        return true;
    }
    if (!t && stops)
        return true;
    if (!t) {
        if (!room_for(s, true))
            return false;
        t = table_insert(s, stripe, v->a->info_hash);
    }
    visit_begin(v, s, stripe, t);
    if (v->at < 0 && !stops && !room_for(s, false)) {
        swarm_end(&v->w);
        return false;
    }
    at[v->f] = v->at;
    swarm_answer(&v->w, v->a, at, out);
    *change = visit_enter(v);
    out->complete = swarm_count(&v->w, true);
    out->incomplete = swarm_count(&v->w, false);
    out->downloaded = t->snatches;
    swarm_end(&v->w);
    return true;
}

enum swarm_change swarms_announce(struct swarms *s, const struct announce *a, uint32_t now_s,
                                  struct announce_answer *out)
{
    struct visit v = {.a = a, .f = family_of(a)};
    enum swarm_change change = SWARM_CHANGE_NONE;
    bool done;

    swarms_set_now(s, now_s);
    compact_of(&a->addr, v.addr);
    announce_answer_reset(out);
    struct stripe *stripe = swarms_stripe(s, a->info_hash);
    for (int tries = 0; tries < 3; tries++) {
        mutex_lock(&stripe->lock);
        done = try_announce(s, stripe, &v, out, &change);
        mutex_unlock(&stripe->lock);
        if (done)
            return change;
        if (!evict_one(s))
            break;
    }
    out->failure = SWARM_FULL;
    return SWARM_CHANGE_NONE;
}

/* --- changes of other trackers --- */

/* Whether the peer announced to this tracker later than `ago` units ago. */
static bool ours_is_newer(const struct visit *v, uint32_t ago)
{
    return v->at >= 0 && units_ago(v->w.now, v->w.of[v->f].meta[v->at].seen) < ago;
}

static void apply_refresh(struct visit *v, bool seeder, uint32_t ago)
{
    uint32_t at = (uint32_t)v->at;
    struct peer_meta *m;

    if (seeder != visit_was_seeder(v))
        at = swarm_turn(&v->w, v->f, at);
    swarm_pause(&v->w, v->f, at, !seeder && v->a->event == EVENT_PAUSED);
    m = &v->w.of[v->f].meta[at];
    m->seen = (uint8_t)(v->w.now - ago);
    set_told(m, v->w.now - ago);
}

static void apply_snatch(struct visit *v, enum swarm_change change)
{
    if (change == SWARM_CHANGE_COMPLETED || change == SWARM_CHANGE_STOPPED_COMPLETED)
        visit_snatched(v);
}

static void visit_apply(struct visit *v, enum swarm_change change, uint32_t ago)
{
    bool seeder = change == SWARM_CHANGE_SEEDER || change == SWARM_CHANGE_COMPLETED;

    apply_snatch(v, change);
    if (change == SWARM_CHANGE_STOPPED || change == SWARM_CHANGE_STOPPED_COMPLETED) {
        if (v->at >= 0)
            swarm_drop(&v->w, v->f, (uint32_t)v->at);
    } else if (v->at >= 0) {
        apply_refresh(v, seeder, ago);
    } else if (room_for(v->w.s, false) && !visit_crowded(v)) {
        visit_join(v, ago, seeder);
    }
}

/* Applies a change unless memory has newer data of the peer. `known_too`: a change is also applied
 * if it is from the same unit of time as the peer's last announce. */
static void apply_at(struct swarms *s, const struct announce *a, enum swarm_change change,
                     uint32_t seconds_ago, bool known_too)
{
    struct stripe *stripe = swarms_stripe(s, a->info_hash);
    struct visit v = {.a = a, .f = family_of(a)};
    uint32_t ago = seconds_ago / s->unit_s;
    bool joins = change == SWARM_CHANGE_SEEDER || change == SWARM_CHANGE_LEECHER ||
                 change == SWARM_CHANGE_COMPLETED;
    struct torrent_entry *t;

    if (change == SWARM_CHANGE_NONE || ago > s->limit)
        return;
    compact_of(&a->addr, v.addr);
    if (joins && !room_for(s, true))
        evict_one(s);
    mutex_lock(&stripe->lock);
    t = table_find(s, stripe, a->info_hash);
    if (!t && s->options.open && joins && room_for(s, true))
        t = table_insert(s, stripe, a->info_hash);
    if (t && tracked(s, t)) {
        visit_begin(&v, s, stripe, t);
        if (!ours_is_newer(&v, known_too ? ago : ago + 1))
            visit_apply(&v, change, ago);
        else
            apply_snatch(&v, change);
        swarm_end(&v.w);
    }
    mutex_unlock(&stripe->lock);
}

void swarms_apply(struct swarms *s, const struct announce *a, enum swarm_change change,
                  uint32_t now_s, uint32_t seconds_ago)
{
    swarms_set_now(s, now_s);
    apply_at(s, a, change, seconds_ago, true);
}

void swarms_take(struct swarms *s, const struct announce *a, uint32_t now_s, uint32_t seconds_ago)
{
    swarms_set_now(s, now_s);
    apply_at(s, a, a->left ? SWARM_CHANGE_LEECHER : SWARM_CHANGE_SEEDER, seconds_ago, false);
}

/* --- scrapes, lists, cleaning --- */

static void fill_scrape(const struct swarm *w, struct scrape_entry *out)
{
    uint32_t paused = w->of[V4].paused + w->of[V6].paused;

    *out = (struct scrape_entry){.known = true,
                                 .complete = swarm_count(w, true),
                                 .incomplete = swarm_count(w, false),
                                 .downloaded = w->t->snatches};
    /* A twin (struct peer_meta) is counted twice in `paused`, so `paused` may exceed `incomplete`.
     */
    out->downloaders = out->incomplete - (uint32_t)size_min(out->incomplete, paused);
}

void swarms_scrape(struct swarms *s, const uint8_t *hashes, size_t count, struct scrape_entry *out)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *hash = hashes + i * INFO_HASH_LEN;
        struct stripe *stripe = swarms_stripe(s, hash);
        struct torrent_entry *t;
        struct swarm w;

        out[i] = (struct scrape_entry){.known = false};
        mutex_lock(&stripe->lock);
        t = table_find(s, stripe, hash);
        if (t && tracked(s, t)) {
            swarm_begin(&w, s, stripe, t);
            fill_scrape(&w, &out[i]);
            swarm_end(&w);
        }
        mutex_unlock(&stripe->lock);
    }
}

void swarms_add(struct swarms *s, const uint8_t *info_hash, uint64_t snatches)
{
    struct stripe *stripe = swarms_stripe(s, info_hash);
    struct torrent_entry *t;

    if (!room_for(s, true))
        evict_one(s);
    mutex_lock(&stripe->lock);
    t = table_find(s, stripe, info_hash);
    if (!t)
        t = table_insert(s, stripe, info_hash);
    if (!(t->flags & TORRENT_ADDED))
        atomic_fetch_add_explicit(&stripe->added, 1, memory_order_relaxed);
    t->flags |= TORRENT_ADDED;
    if (t->snatches < snatches)
        t->snatches = (uint32_t)size_min(snatches, UINT32_MAX);
    mutex_unlock(&stripe->lock);
}

void swarms_remove(struct swarms *s, const uint8_t *info_hash)
{
    struct stripe *stripe = swarms_stripe(s, info_hash);
    struct torrent_entry *t;

    mutex_lock(&stripe->lock);
    t = table_find(s, stripe, info_hash);
    if (t) {
        if (t->flags & TORRENT_ADDED)
            atomic_fetch_sub_explicit(&stripe->added, 1, memory_order_relaxed);
        entry_empty(s, stripe, t);
        table_remove(s, stripe, t);
    }
    mutex_unlock(&stripe->lock);
}

/* Cleans the torrent in the slot: removes peers past the timeout, then the torrent if it has no
 * peers left and was not added. False: the torrent was removed, and another torrent may be in the
 * slot now. */
static bool clean_slot(struct swarms *s, struct stripe *stripe, uint32_t slot)
{
    struct torrent_entry *t = table_at(stripe, slot);
    struct swarm w;

    if (!t)
        return true;
    swarm_begin(&w, s, stripe, t);
    swarm_end(&w);
    if (!peers_in(t) && !(t->flags & TORRENT_ADDED)) {
        table_remove(s, stripe, t);
        return false;
    }
    return true;
}

void swarms_clean(struct swarms *s, uint32_t now_s)
{
    uint32_t hand = atomic_load_explicit(&s->clean_hand, memory_order_relaxed);
    struct stripe *stripe = &s->stripes[hand % STRIPES];

    swarms_set_now(s, now_s);
    mutex_lock(&stripe->lock);
    for (int i = 0; i < LOOK_SLOTS && stripe->hand < table_slots(stripe); i++)
        if (clean_slot(s, stripe, stripe->hand))
            stripe->hand++;
    if (stripe->hand >= table_slots(stripe)) {
        stripe->hand = 0;
        atomic_compare_exchange_strong_explicit(&s->clean_hand, &hand, hand + 1,
                                                memory_order_relaxed, memory_order_relaxed);
    }
    mutex_unlock(&stripe->lock);
}

void swarms_stats(struct swarms *s, struct swarms_stats *out)
{
    *out = (struct swarms_stats){.bytes = sizeof(*s)};
    for (int i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &s->stripes[i];
        mutex_lock(&stripe->lock);
        out->torrents += atomic_load_explicit(&stripe->table->count, memory_order_relaxed);
        out->added += atomic_load_explicit(&stripe->added, memory_order_relaxed);
        out->seeders4 += stripe->peers[V4][1];
        out->leechers4 += stripe->peers[V4][0];
        out->seeders6 += stripe->peers[V6][1];
        out->leechers6 += stripe->peers[V6][0];
        out->snatches += stripe->snatches;
        out->evicted += stripe->evicted;
        out->bytes += stripe->bytes;
        out->crowded += stripe->crowded;
        mutex_unlock(&stripe->lock);
    }
}
