/* The metrics of sharding. */
#include "shard/room.h"

enum { FROM_TABLE, FROM_MOVER };

struct table_numbers {
    uint64_t buckets, broken, shards, segments, moving, waits, refusals;
};

#define OF_TABLE(member) METRIC_ONE(FROM_TABLE, struct table_numbers, member)
#define OF_MOVER(member) METRIC_ONE(FROM_MOVER, struct mover_stats, member)

const struct metric shard_metrics[SHARD_METRICS] = {
    {"weir_shard_buckets", METRIC_GAUGE, "Sharded buckets.", OF_TABLE(buckets)},
    {"weir_shard_broken", METRIC_GAUGE, "Sharded buckets whose map cannot be used.",
     OF_TABLE(broken)},
    {"weir_shard_shards", METRIC_GAUGE, "Shards of all sharded buckets.", OF_TABLE(shards)},
    {"weir_shard_segments", METRIC_GAUGE, "Segments in the maps of all sharded buckets.",
     OF_TABLE(segments)},
    {"weir_shard_moving", METRIC_GAUGE, "Sharded buckets whose keys are being moved.",
     OF_TABLE(moving)},
    {"weir_shard_waits_total", METRIC_COUNTER, "Requests that have waited for a closed key.",
     OF_TABLE(waits)},
    {"weir_shard_refusals_total", METRIC_COUNTER,
     "Requests that were refused because their key stayed closed.", OF_TABLE(refusals)},
    {"weir_shard_moves_total", METRIC_COUNTER, "Moves that have ended.", OF_MOVER(moves)},
    {"weir_shard_hand_overs_total", METRIC_COUNTER, "Windows that were handed over.",
     OF_MOVER(hand_overs)},
    {"weir_shard_keys_moved_total", METRIC_COUNTER, "Keys that were moved.", OF_MOVER(keys)},
    {"weir_shard_reopened_total", METRIC_COUNTER,
     "Windows that were opened again because requests did not end.", OF_MOVER(reopened)},
    {"weir_shard_longest_closed_seconds", METRIC_GAUGE,
     "The longest time that a window was closed.", OF_MOVER(longest_closed_ms), .divisor = 1000},
};

void shard_count(void *state, struct metric_numbers *out)
{
    const struct shard_room *r = state;
    struct table_numbers *n = arena_new(out->arena, struct table_numbers);
    struct mover_stats *m = arena_new(out->arena, struct mover_stats);
    struct shards_item *list;

    if (!n || !m)
        return;
    *n = (struct table_numbers){0};
    size_t count = shards_list(r->shards, &list);
    for (size_t i = 0; i < count; i++) {
        if (!list[i].sharded) {
            n->broken += !list[i].plain;
            continue;
        }
        struct shard_map *map = table_map(list[i].sharded->table);
        uint64_t waits, refusals;
        table_waits(list[i].sharded->table, &waits, &refusals);
        n->waits += waits;
        n->refusals += refusals;
        n->buckets++;
        n->shards += map->place_count;
        n->segments += map->segment_count;
        n->moving += map->move.id.len > 0;
        map_unref(map);
    }
    shards_list_free(list, count);
    mover_stats(r->mover, m);
    metric_numbers_add(out, FROM_TABLE, n);
    metric_numbers_add(out, FROM_MOVER, m);
}
