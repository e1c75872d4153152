/* The world of the simulation of sharding (shard_sim.c): a storage and a store that are slow, late,
 * forgetful and cut off, and what may be left out of the protocol. */
#ifndef TESTS_CRASH_SHARD_SIM_H
#define TESTS_CRASH_SHARD_SIM_H

#include "base/vec.h"
#include "coord/shards_memory.h"
#include "crash/sim.h"
#include "object/bucket.h"
#include "store/store.h"
#include "unit/shard/linear.h"

#include <stdio.h>

/* The rules, one of which a run may leave out to show that it is needed (docs/sharding.md). */
enum sim_rule {
    RULE_NONE,
    RULE_READS_CLOSED, /* H5: reads obey a closed window */
    RULE_READS_LEASE,  /* H6: reads need the lease */
    RULE_ABANDONED,    /* H9: a target of unknown state is abandoned */
    RULE_CONDITIONAL,  /* H2: entries are conditional */
    RULE_SILENT,       /* H7: who is silent is waited for */
    RULE_MEMORY,       /* H7: the store must have remembered the asker */
    RULE_LEAST,        /* H5: who has nothing of a bucket remembers the least number */
    RULE_SECOND_LOOK,  /* H12: the log is looked at after a read without a lease */
    SIM_RULES,
};

struct sim_process;

/* A request of a client, for the checker. */
struct sim_op {
    struct linear_op op;
    bool dropped; /* it changed nothing for certain, or its answer says nothing */
};

struct sim_world {
    enum sim_rule without;
    VEC(struct sim_process *) processes;
    VEC(struct sim_op) ops;
    uint64_t values, hand_overs, proved, lists;
    /* How many requests are reads and listings, and how many writes remove the key; of this run. */
    unsigned read_percent, remove_percent;
    struct sim_process *mover; /* has the lock of movers; NULL: nobody has it */
    bool calm;                 /* no more faults and moves: the end of the run */
    bool trace;
};
extern struct sim_world world;

/* Prints what happens, with the time, for a run that is looked at (--trace). */
#define sim_trace(...)                                                                             \
    do {                                                                                           \
        if (world.trace) {                                                                         \
            printf("%10.3f ", (double)(sim_now() - 3600 * NS_PER_S) / NS_PER_S);                   \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

/* --- the storage (shard_sim_storage.c) --- */

void storage_reset(void);
/* A bucket of the storage, made when it is first named. It implements get, put, remove and list. A
 * request may land late, and its answer may be lost: ERR_TIMEOUT. */
struct bucket *storage_bucket(struct str name);

/* Requests for an object with a number as its body. 0: absent. */
int storage_put(struct str bucket, struct str key, uint64_t value, bool only_new, struct err *err);
int storage_get(struct str bucket, struct str key, uint64_t *value, struct err *err);
int storage_remove(struct str bucket, struct str key, struct err *err);

/* Lists a bucket: the numbers of `count` keys as of one moment. */
int storage_list(struct str bucket, const struct str *keys, size_t count, uint64_t *values,
                 struct err *err);

/* --- the store (shard_sim_store.c) --- */

void store_reset(void);
void store_flush(void);   /* FLUSHALL */
void store_go_back(void); /* a failover to a replica that lags by up to some seconds */
/* What stands for the store in calls of coord/. */
struct store *store_handle(void);

/* --- processes (shard_sim_process.c) --- */

/* Makes the first map of the bucket, and starts the first processes and the faults. */
void world_begin(void *seed);
/* Whether the process of the calling task cannot reach the store. */
bool process_is_cut_off(void);

#endif
