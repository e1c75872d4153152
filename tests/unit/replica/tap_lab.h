/* A local storage and the four databases in one place, with taps, and a store that can be made to
 * fail. */
#ifndef TESTS_UNIT_REPLICA_TAP_LAB_H
#define TESTS_UNIT_REPLICA_TAP_LAB_H

#include "coord/lock.h"
#include "replica/tap/tap.h"
#include "route/resolve.h"
#include "unit/test.h"

/* How records fail. */
enum fault {
    FAULT_NONE,
    FAULT_REFUSE, /* the record is refused */
    FAULT_ANSWER, /* it is recorded, and the answer is lost */
    FAULT_MANY,   /* a record of more than one change is refused */
};

struct tap_lab {
    struct db *db;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct replications *replications;
    struct locks *locks;
    struct routes *routes;
    struct storage *local; /* "local" */
    struct storage far;    /* "far": looks like a remote one */
    struct lease *lease;
    struct taps *taps;
    struct bucket *box; /* alice's bucket on "local" */
    struct arena a;
    bool shared;      /* the next taps need a lease; lease_heard() stands for its words */
    const char *boot; /* of the next taps */
    bool journal;     /* the next taps have one */
};

void tap_lab_open(struct tap_lab *l);
void tap_lab_close(struct tap_lab *l);
void tap_lab_fault(enum fault fault);
size_t tap_lab_records(void);      /* attempts so far */
const char *tap_lab_journal(void); /* its path; until the next call */
void tap_lab_with_journal(struct tap_lab *l);
/* Opens the taps as a restart does. */
void tap_lab_taps_open(struct tap_lab *l);
void tap_lab_taps_close(struct tap_lab *l);

/* Makes a replication of alice's bucket to "other", and waits until the taps follow it. An empty
 * bucket: makes her user policy. */
void tap_lab_replicate(struct tap_lab *l, const char *from, const char *bucket);
void tap_lab_await_epoch(struct tap_lab *l);
void tap_lab_put(struct tap_lab *l, const char *key);

/* The number of tasks of the type in a state of a queue; "": of any type. */
size_t tap_lab_tasks(struct tap_lab *l, const char *queue, enum task_state state, const char *type);
/* Waits until there are so many; the test's own time limit bounds it. */
void tap_lab_await_tasks(struct tap_lab *l, const char *type, size_t count);
int64_t tap_lab_version(struct tap_lab *l, enum thing_kind kind, const char *bucket,
                        const char *key, const char *storage);
size_t tap_lab_rows(struct tap_lab *l);
void tap_lab_await_no_rows(struct tap_lab *l);

#endif
