/* Deltas of packs (gitformat-pack, "Deltified representation").
 *
 * A delta says how to make an object from another one, its base: two sizes, then instructions that
 * copy a range of the base or insert bytes of the delta. A delta may be hostile: its sizes may be
 * wrong, its ranges outside of the base, and its instructions cut short. Nothing here allocates. */
#ifndef ARCHIVE_DELTA_H
#define ARCHIVE_DELTA_H

#include "base/err.h"
#include "base/str.h"

struct delta_sizes {
    uint64_t base, result; /* bytes */
};

/* Reads the two sizes and removes them from the front of `delta`. ERR_PARSE: the delta does not
 * begin with sizes. */
int delta_sizes_read(struct delta_sizes *out, struct str *delta, struct err *err) MUST_CHECK;

/* A delta that is carried out step by step. */
struct delta_run {
    unsigned char *to; /* where the next byte goes */
    size_t left;       /* bytes that are still to be made */
    struct str base, delta;
};
/* Carries out instructions until at least `most` bytes are made, or the delta ends. *done is set
 * at the end. The errors are those of delta_apply(). */
int delta_run_some(struct delta_run *r, size_t most, bool *done, struct err *err) MUST_CHECK;

/* Carries out the instructions. `delta` begins behind its sizes, and `to` has `result` bytes.
 * ERR_PARSE: the delta does not fit the base or does not make exactly `result` bytes; `to` is then
 * partly written. */
int delta_apply(unsigned char *to, size_t result, struct str base, struct str delta,
                struct err *err) MUST_CHECK;

#endif
