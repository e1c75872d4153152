/* Finds out how many changes a replication's destination lacks, including changes that were
 * answered but are not recorded yet. */
#include "replica/rest/rest.h"
#include "coord/installation.h"

int replication_look_begin(struct replication_look *l, const struct replica_room *room,
                           struct arena *a, struct err *err)
{
    *l = (struct replication_look){.room = room, .a = a};
    return unrecorded_read(
        &l->unrecorded,
        &(struct unrecorded_options){.taps = room->taps,
                                     .routes = room->services->routes,
                                     .queue = room->services->queue,
                                     .config = room->services->stores[CONFIG_DB]},
        err);
}

/* Reads the changes that are not recorded, and then the status. In this order the status counts the
 * changes that are recorded between the two reads. */
int replication_look_at(struct replication_look *l, const struct replication_id *id,
                        struct replication_status *out, int64_t *lag, struct err *err)
{
    uint64_t more = 0;
    int code = unrecorded_of(&l->unrecorded, id->from, id->bucket, &more, err);

    if (code == 0)
        code = replication_read(l->room->services->replications, l->a, id, out, err);
    if (code < 0)
        return code;
    *lag = out->events > out->events_done ? out->events - out->events_done : 0;
    if (!out->archived) /* an archived replication gets no new changes */
        *lag += (int64_t)more;
    /* The installation is asked after the status was read, so that changes that the store has lost
     * since then are noticed too (docs/store-redis.md, I4). */
    if (*lag == 0 && !out->archived && installation_is_unsure(l->room->services->installation))
        *lag = 1;
    return 0;
}

void replication_look_end(struct replication_look *l)
{
    unrecorded_release(&l->unrecorded);
}
