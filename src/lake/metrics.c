/* Computes the metrics of the lake. */
#include "lake/bucket_int.h"
#include "lake/claim.h"
#include "lake/room.h"

enum { FROM_CACHE, FROM_SPACE, FROM_GC, FROM_CLAIMS };

struct space_stats {
    uint64_t repositories;
};

struct claim_stats {
    uint64_t refused;
};

#define LAKE_CACHE(member) METRIC_ONE(FROM_CACHE, struct tree_cache_stats, member)
#define LAKE_GC(member)    METRIC_ONE(FROM_GC, struct lake_gc_stats, member)

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
    {"weir_lake_collections_running", METRIC_GAUGE, "Garbage collections under way.",
     LAKE_GC(running)},
    {"weir_lake_collections_total", METRIC_COUNTER, "Garbage collections that have ended.",
     LAKE_GC(runs)},
    {"weir_lake_collections_failed_total", METRIC_COUNTER,
     "Tries of garbage collections that failed.", LAKE_GC(failures)},
    {"weir_lake_collections_refused_total", METRIC_COUNTER,
     "Garbage collections that ended because another lake may use the namespace.",
     LAKE_GC(refused)},
    {"weir_lake_claims_refused", METRIC_GAUGE,
     "Repositories whose files are not removed, because another lake may use the namespace.",
     METRIC_ONE(FROM_CLAIMS, struct claim_stats, refused)},
    {"weir_lake_collected_bodies_total", METRIC_COUNTER,
     "Bodies of objects that collections removed.", LAKE_GC(bodies)},
    {"weir_lake_collected_nodes_total", METRIC_COUNTER, "Tree nodes that collections removed.",
     LAKE_GC(nodes)},
    {"weir_lake_collected_uploads_total", METRIC_COUNTER,
     "Uploads in parts that collections aborted.", LAKE_GC(uploads)},
    {"weir_lake_collected_bytes_total", METRIC_COUNTER, "Bytes that collections removed.",
     LAKE_GC(bytes)},
};

void lake_count(void *state, struct metric_numbers *out)
{
    struct lake_room *r = state;
    struct tree_cache_stats *cache = arena_new(out->arena, struct tree_cache_stats);
    struct space_stats *space = arena_new(out->arena, struct space_stats);
    struct claim_stats *claims = arena_new(out->arena, struct claim_stats);
    struct lake_gc_stats *gc = arena_new(out->arena, struct lake_gc_stats);

    if (!cache || !space || !claims || !gc)
        return;
    claims->refused = lake_claims_refused(r->lake);
    metric_numbers_add(out, FROM_CLAIMS, claims);
    tree_cache_stats(r->lake->cache, cache);
    space->repositories = repo_names_count(&r->space->names);
    *gc = lake_tasks_gc_stats(&r->tasks);
    metric_numbers_add(out, FROM_GC, gc);
    metric_numbers_add(out, FROM_CACHE, cache);
    metric_numbers_add(out, FROM_SPACE, space);
}
