/* Declarations that lease.c and lease_word.c share. */
#ifndef COORD_LEASE_INT_H
#define COORD_LEASE_INT_H

#include "base/ids.h"
#include "base/vec.h"
#include "coord/installation.h"
#include "coord/lease.h"
#include "os/loop.h"

struct lease_reader {
    lease_read_fn *fn;
    void *ctx;
};

struct lease {
    struct lease_options o;
    /* This and the next three members do not change after the start. */
    VEC(struct lease_reader) readers;
    lease_epoch_fn *epoch; /* NULL: the words have no epoch */
    void *epoch_ctx;
    char id[ID_HEX_LEN + 1]; /* the process's id in its words */
    /* Two threads: the first sends the words, the second calls `readers`. */
    struct loop words, reader;
    int64_t epoch_sent; /* epoch of the last word; -2: no word yet; used by `words` alone */
    uint64_t word_ms;   /* when the last word was sent, clock_mono_ms(); used by `words` alone */
    bool word_failed;   /* the last word failed, which was logged; used by `words` alone */
    bool cut_off;       /* the lease's end was logged; used by `reader` alone */
    _Atomic(uint64_t) number;   /* number of the present lease, or of the next one to begin */
    _Atomic(uint64_t) until_ns; /* end of that lease by clock_boot_ns(); 0: it has not begun */
    /* Result of store_refusal() for the last word; NULL: not refused. */
    _Atomic(const char *) trouble;

    struct mutex
        lock; /* class "lease"; guards members below, and changes of `number`, `until_ns` */
    struct cond begun; /* signalled when a lease has begun */
    /* Time until which other processes wait for this process, by clock_boot_ns(). 0: the store has
     * accepted no word yet. */
    uint64_t heard_until_ns;
};

loop_step_fn lease_send_word;

#endif
