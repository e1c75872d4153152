/* Counters and statistics of the tracker. */
#include "base/clock.h"
#include "swarm/share.h"
#include "swarm/tracker_int.h"

struct count_slot *count_slots_new(void)
{
    size_t size = COUNT_SLOTS * sizeof(struct count_slot);
    struct count_slot *slots = aligned_alloc(COUNT_LINE, size);

    BUG_ON(!slots);
    memset(slots, 0, size);
    return slots;
}

/* Returns the counters of the calling thread. With more threads than slots several threads share a
 * slot. */
static struct count_slot *count_slot_of(struct tracker *t)
{
    static _Atomic(unsigned) threads;
    static _Thread_local unsigned mine;

    if (!mine)
        mine = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % COUNT_SLOTS + 1;
    return &t->counts[mine - 1];
}

static void count_add(_Atomic(uint64_t) *to, uint64_t n)
{
    if (n)
        atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void tracker_count(struct tracker *t, enum tracker_protocol p, enum tracker_action a, uint64_t n)
{
    count_add(&count_slot_of(t)->requests[p][a], n);
}

void tracker_count_drops(struct tracker *t, uint64_t bad_ids, uint64_t banned, uint64_t dropped)
{
    struct count_slot *slot = count_slot_of(t);

    count_add(&slot->bad_connection_ids, bad_ids);
    count_add(&slot->banned, banned);
    count_add(&slot->dropped, dropped);
}

void tracker_count_failure(struct tracker *t, enum swarm_failure f)
{
    count_add(&count_slot_of(t)->failures[f], 1);
}

static uint64_t count_get(const _Atomic(uint64_t) *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

void tracker_counts(struct tracker *t, struct tracker_counts *out)
{
    *out = (struct tracker_counts){0};
    for (size_t i = 0; i < COUNT_SLOTS; i++) {
        const struct count_slot *slot = &t->counts[i];
        for (int p = 0; p < TRACKER_PROTOCOLS; p++)
            for (int a = 0; a < TRACKER_ACTIONS; a++)
                out->requests[p][a] += count_get(&slot->requests[p][a]);
        for (int f = 0; f < SWARM_FAILURE_COUNT; f++)
            out->failures[f] += count_get(&slot->failures[f]);
        out->bad_connection_ids += count_get(&slot->bad_connection_ids);
        out->banned += count_get(&slot->banned);
        out->dropped += count_get(&slot->dropped);
    }
}

/* --- all statistics --- */

/* Reads the store's numbers, which are the sizes of three indexes (docs/swarm.md). */
static void count_store(struct tracker *t, struct tracker_stats *out)
{
    static const struct {
        struct str command;
        const char *key;
        size_t offset;
    } rows[] = {
        {{"HLEN", 4}, "torrent_ids", offsetof(struct tracker_stats, store.torrents)},
        {{"HLEN", 4}, "user_ids", offsetof(struct tracker_stats, store.users)},
        {{"ZCARD", 5}, "expiry", offsetof(struct tracker_stats, store.peers)},
    };
    struct arena a = {0};
    struct store_args commands[ARRAY_SIZE(rows)];
    struct str words[ARRAY_SIZE(rows)][2];
    struct reply *reply = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        words[i][0] = rows[i].command;
        words[i][1] =
            arena_fmt(&a, STR_FMT "%s", STR_ARG(tracker_settings(t)->prefix), rows[i].key);
        commands[i] = (struct store_args){words[i], 2};
    }
    if (store_pipeline(t->store, &a, &reply, commands, ARRAY_SIZE(rows), NULL) == 0)
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
            if (reply->items[i].type == REPLY_INTEGER)
                *(uint64_t *)((char *)out + rows[i].offset) = (uint64_t)reply->items[i].integer;
    arena_release(&a);
}

static void count_share(struct tracker *t, struct tracker_stats *out)
{
    struct share_stats s;

    share_stats(t->share, &s);
    out->share.on = 1;
    out->share.waiting = s.waiting;
    out->share.written = s.written;
    out->share.told = s.told;
    out->share.applied = s.applied;
    out->share.dropped = s.dropped;
    out->share.refused = s.refused;
    out->share.behind = s.behind;
}

void tracker_stats(struct tracker *t, struct tracker_stats *out)
{
    *out = (struct tracker_stats){0};
    tracker_counts(t, &out->counts);
    out->uptime_s = (clock_mono_ms() - t->started_ms) / MS_PER_S;
    out->reaped = count_get(&t->reaped);
    if (t->swarms)
        swarms_stats(t->swarms, &out->swarms);
    else
        count_store(t, out);
    if (t->share)
        count_share(t, out);
}
