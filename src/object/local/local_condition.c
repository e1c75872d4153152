/* Conditions of requests, judged against a record of the local storage. */
#include "object/condition.h"
#include "object/local/local_int.h"

static struct condition_state state_of_record(const struct object_record *r)
{
    return (struct condition_state){
        .there = r->sequence > 0, .etag = r->etag, .modified_ms = r->modified_ms, .size = r->size};
}

int condition_read(const struct object_conditions *c, const struct object_record *r,
                   struct err *err)
{
    struct condition_state s = state_of_record(r);

    return conditions_judge_read(c, &s, err);
}

int condition_write(const struct object_conditions *c, const struct object_record *r,
                    struct err *err)
{
    struct condition_state s = state_of_record(r);

    return conditions_judge_write(c, &s, err);
}

int condition_remove(const struct object_conditions *c, const struct object_record *r,
                     struct err *err)
{
    struct condition_state s = state_of_record(r);

    return conditions_judge_removal(c, &s, err);
}
