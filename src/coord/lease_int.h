/* Between the files of the lease. */
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
    VEC(struct lease_reader) readers; /* not changed after the start, as the next three */
    lease_epoch_fn *epoch;            /* NULL: the words have none */
    void *epoch_ctx;
    char id[ID_HEX_LEN + 1];    /* of this process, in its words */
    struct loop words, reader;  /* send the words; read what must be read before a lease */
    int64_t epoch_sent;         /* of `words` alone: the epoch of the last word; -2: no word yet */
    uint64_t word_ms;           /* of `words` alone: when it was sent, clock_mono_ms() */
    bool word_failed;           /* of `words` alone: the last one failed, which was logged */
    bool cut_off;               /* of the reading thread: it has logged that the lease is over */
    _Atomic(uint64_t) number;   /* of the present lease, or of the one that is to begin */
    _Atomic(uint64_t) until_ns; /* its end, clock_boot_ns(); 0: it has not begun */
    _Atomic(const char *) trouble; /* how the store refused the last word; NULL: it did not */

    struct mutex lock;       /* class "lease"; guards what follows, and changes of the two above */
    struct cond begun;       /* a lease has begun */
    uint64_t heard_until_ns; /* until then others wait for this process, clock_boot_ns(); 0: no word
                                was taken yet */
};

loop_step_fn lease_send_word;

#endif
