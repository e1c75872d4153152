/* The metrics of the lake. */
#include "lake/bucket_int.h"
#include "lake/room.h"

enum { FROM_CACHE, FROM_SPACE };

struct space_stats {
    uint64_t repositories;
};

#define LAKE_CACHE(member) METRIC_ONE(FROM_CACHE, struct tree_cache_stats, member)

const struct metric lake_metrics[LAKE_METRICS] = {
    {"weir_lake_repositories", METRIC_GAUGE, "Repositories of the lake.",
     METRIC_ONE(FROM_SPACE, struct space_stats, repositories)},
    {"weir_lake_cache_hits_total", METRIC_COUNTER, "Reads of tree nodes that were in memory.",
     LAKE_CACHE(hits)},
    {"weir_lake_cache_misses_total", METRIC_COUNTER, "Reads of tree nodes that were not in memory.",
     LAKE_CACHE(misses)},
    {"weir_lake_cache_evicted_total", METRIC_COUNTER, "Tree nodes that left the memory for others.",
     LAKE_CACHE(evicted)},
    {"weir_lake_cache_memory_bytes", METRIC_GAUGE, "Memory of tree nodes that were read.",
     LAKE_CACHE(memory_bytes)},
    {"weir_lake_cache_disk_bytes", METRIC_GAUGE,
     "Tree nodes of remote storages in the data folder.", LAKE_CACHE(disk_bytes)},
};

void lake_count(void *state, struct metric_numbers *out)
{
    const struct lake_room *r = state;
    struct tree_cache_stats *cache = arena_new(out->arena, struct tree_cache_stats);
    struct space_stats *space = arena_new(out->arena, struct space_stats);

    if (!cache || !space)
        return;
    tree_cache_stats(r->lake->cache, cache);
    space->repositories = repo_names_count(&r->space->names);
    metric_numbers_add(out, FROM_CACHE, cache);
    metric_numbers_add(out, FROM_SPACE, space);
}
