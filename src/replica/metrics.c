/* Computes the metrics of replications. */
#include "replica/rest/rest.h"

/* Which numbers a metric shows: the sum over all replications, or those of one replication. */
enum { FROM_ALL, FROM_ONE };

enum { SHOWN_MAX = 100 }; /* most replications whose numbers are shown one by one */

struct all_numbers {
    uint64_t count, paused;
};

struct one_numbers {
    uint64_t objects, objects_done, objects_failed, bytes, bytes_done, lag;
};

#define REPLICATIONS(member) METRIC_ONE(FROM_ALL, struct all_numbers, member)
#define REPLICATION(member)  METRIC_ONE(FROM_ONE, struct one_numbers, member)

const struct metric replica_metrics[REPLICA_METRICS] = {
    {"weir_replications", METRIC_GAUGE, "Replications of buckets.", REPLICATIONS(count)},
    {"weir_replications_paused", METRIC_GAUGE, "Of these, paused ones.", REPLICATIONS(paused)},
    {"weir_replication_objects", METRIC_GAUGE,
     "Objects of the first copy, for administrators alone, as the following ones.",
     REPLICATION(objects)},
    {"weir_replication_objects_done", METRIC_GAUGE, "Of these, copied ones.",
     REPLICATION(objects_done)},
    {"weir_replication_objects_failed", METRIC_GAUGE, "Of these, given up ones.",
     REPLICATION(objects_failed)},
    {"weir_replication_bytes", METRIC_GAUGE, "Bytes of the first copy.", REPLICATION(bytes)},
    {"weir_replication_bytes_done", METRIC_GAUGE, "Of these, copied ones.",
     REPLICATION(bytes_done)},
    {"weir_replication_lag", METRIC_GAUGE, "Changes that have not reached the destination yet.",
     REPLICATION(lag)},
};

/* Adds the numbers of one replication. A replication that cannot be read now is left out. */
static void count_replication(struct replication_look *l, const struct replication_id *id,
                              struct metric_numbers *out)
{
    struct one_numbers *n = arena_new(l->a, struct one_numbers);
    struct replication_status s;
    struct buf text = {0};
    int64_t lag;

    if (!n || replication_look_at(l, id, &s, &lag, NULL) < 0)
        return;
    *n = (struct one_numbers){
        .objects = (uint64_t)s.listed,
        .objects_done = (uint64_t)s.done,
        .objects_failed = (uint64_t)s.failed,
        .bytes = (uint64_t)s.bytes_listed,
        .bytes_done = (uint64_t)s.bytes_done,
        .lag = (uint64_t)lag,
    };
    replication_id_write(&text, id);
    metric_numbers_add_labelled(out, FROM_ONE, "replication", arena_str(l->a, buf_str(&text)), n);
    buf_release(&text);
}

/* Counts all replications. For administrators the first SHOWN_MAX are also shown one by one. Other
 * users must not see them, because an id names a user and a bucket. */
void replica_count(void *state, struct metric_numbers *out)
{
    const struct replica_room *room = state;
    struct all_numbers *all = arena_new(out->arena, struct all_numbers);
    const struct replication *const *list;
    struct replication_view *view = NULL;
    struct replication_look look = {0};
    size_t shown = 0;

    if (!all || !room->services->replications ||
        replications_view(room->services->replications, &view, NULL) < 0)
        return;
    bool each = out->admin && replication_look_begin(&look, room, out->arena, NULL) == 0;
    size_t count = replication_view_all(view, &list);
    for (size_t i = 0; i < count; i++) {
        if (!list[i]->id.bucket.len || list[i]->archived)
            continue;
        all->count++;
        all->paused += list[i]->paused;
        if (each && shown++ < SHOWN_MAX)
            count_replication(&look, &list[i]->id, out);
    }
    if (out->admin)
        replication_look_end(&look);
    metric_numbers_add(out, FROM_ALL, all);
    replication_view_unref(view);
}
