/* Types and functions that the files of rest/ share. */
#ifndef REST_REST_INT_H
#define REST_REST_INT_H

#include "rest/rest.h"

/* A value of the request that the row describes. */
struct rest_value {
    const struct rest_field *field;
    bool given;
    struct str text; /* value of a STRING or TIME */
    int64_t integer;
    double number;
    bool truth;
    const json_t *json; /* value of an array or object; borrowed from the body */
};

/* The dialect of weir's own calls. */
extern const struct rest_dialect rest_own;

/* Reads path and query into the call's values and its page. */
int rest_read(struct rest_call *c, const struct rest_path *path, struct err *err) MUST_CHECK;
/* Reads the body into the call's values, and checks that all required values are there. ERR_CLOSED:
 * the peer closed the connection. ERR_TIMEOUT: the peer is too slow. */
int rest_read_body(struct rest_call *c, struct err *err) MUST_CHECK;

#endif
