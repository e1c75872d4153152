/* Conditions of requests (struct object_conditions), judged against the current state of an object.
 * The functions do no I/O, and any thread may call them. */
#ifndef OBJECT_CONDITION_H
#define OBJECT_CONDITION_H

#include "object/bucket.h"

/* The facts about an object by which conditions are judged. */
struct condition_state {
    bool there; /* false: there is no such object, and the other members are not used */
    struct str etag;
    int64_t modified_ms;
    uint64_t size;
};

/* Judges the conditions of a read (RFC 9110 section 13.2.2) of an object that is there. `c` may be
 * NULL. ERR_PRECONDITION, ERR_NOT_MODIFIED: a condition does not hold. */
int conditions_judge_read(const struct object_conditions *c, const struct condition_state *s,
                          struct err *err) MUST_CHECK;
/* Judges the conditions of a write. ERR_PRECONDITION: a condition does not hold. ERR_NOT_FOUND:
 * there is no object that If-Match could match. */
int conditions_judge_write(const struct object_conditions *c, const struct condition_state *s,
                           struct err *err) MUST_CHECK;
/* Judges the conditions of a removal of an object that is there. */
int conditions_judge_removal(const struct object_conditions *c, const struct condition_state *s,
                             struct err *err) MUST_CHECK;
/* Whether `c` has any condition that conditions_judge_removal() checks. */
bool conditions_given(const struct object_conditions *c);

#endif
