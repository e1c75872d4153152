/* Histories of requests, and the check that each key behaved as one register: whether the requests
 * can be put into one order in which every answer is right, and in which each request takes effect
 * between its beginning and its end (linearizability). Since each key is checked by itself, a
 * listing is a read of every key that it covers.
 *
 * A value is a number that one write alone writes. A test gives each body it puts a number of its
 * own, and records which number it reads back.
 *
 * A request whose answer was lost may have taken effect at any time after its beginning, also after
 * the history's end, or never. A request that failed for sure is not recorded.
 *
 * Any thread may add to a history. */
#ifndef TESTS_UNIT_SHARD_LINEAR_H
#define TESTS_UNIT_SHARD_LINEAR_H

#include "base/buf.h"
#include "base/vec.h"
#include "os/thread.h"

#define LINEAR_ABSENT UINT64_C(0)      /* the value of a key without an object */
#define LINEAR_ANY    (UINT64_MAX - 1) /* a condition: any object, as in If-Match: * */
#define LINEAR_NO_END UINT64_MAX

enum linear_kind {
    LINEAR_READ,  /* a get, a head, or a listing: saw `value` */
    LINEAR_WRITE, /* a put of `value`, or a delete: LINEAR_ABSENT */
    LINEAR_SWAP,  /* a write on condition that the value was `expected` before */
};

enum linear_outcome {
    LINEAR_DONE,
    LINEAR_REFUSED, /* of a swap: its condition did not hold, and it changed nothing */
    LINEAR_UNKNOWN, /* the answer was lost */
};

struct linear_op {
    uint32_t key;
    enum linear_kind kind;
    enum linear_outcome outcome;
    uint64_t value;            /* neither LINEAR_ANY nor LINEAR_NO_END */
    uint64_t expected;         /* of a swap; a value, LINEAR_ABSENT or LINEAR_ANY */
    uint64_t begin_ns, end_ns; /* the end of an unknown outcome is not used */
};

struct linear {
    struct mutex lock;
    VEC(struct linear_op) ops;
};

void linear_init(struct linear *h);
void linear_release(struct linear *h);
void linear_add(struct linear *h, const struct linear_op *op);

enum linear_verdict {
    LINEAR_RIGHT,
    LINEAR_WRONG,
    LINEAR_TOO_HARD, /* the search was given up */
};

/* Keys have no object at the beginning. `why` gets a text for a person, unless the history is
 * right. No thread adds to the history meanwhile. */
enum linear_verdict linear_check(struct linear *h, struct buf *why);
/* The same for the requests of one key. */
enum linear_verdict linear_check_key(const struct linear_op *ops, size_t count, struct buf *why);

#endif
