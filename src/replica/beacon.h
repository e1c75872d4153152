/* Tells the other processes, again and again, which epoch of the policies this one holds
 * (docs/replication.md, "Epochs"; coord/gateways.h), and looks whether the store is the known one
 * (coord/installation.h). */
#ifndef REPLICA_BEACON_H
#define REPLICA_BEACON_H

#include "base/log.h"
#include "coord/installation.h"
#include "coord/replication.h"

struct beacon;

struct beacon_options {
    struct store *config; /* borrowed, as the next */
    struct installation *installation;
    /* What every change here follows from now on; -1: none yet. Asked often. NULL, as what follows:
     * replication is off, and the word says only that the process lives. */
    int64_t (*epoch)(void *ctx);
    /* The store has taken the word that was sent at `sent_ns` (clock_boot_ns()). */
    void (*told)(void *ctx, uint64_t sent_ns);
    /* It has not taken it. */
    void (*not_told)(void *ctx, const struct err *why);
    void *ctx;
    const struct log *log;
};
/* Has a thread. */
int beacon_start(struct beacon **out, const struct beacon_options *o, struct err *err) MUST_CHECK;
void beacon_stop(struct beacon *b); /* nobody waits for this process any more; NULL is fine */

#endif
