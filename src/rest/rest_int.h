/* Between the files of rest/. */
#ifndef REST_REST_INT_H
#define REST_REST_INT_H

#include "rest/rest.h"

/* A value that the row describes, as the request has it. */
struct rest_value {
    const struct rest_field *field;
    bool given;
    struct str text; /* STRING and TIME */
    int64_t integer;
    double number;
    bool truth;
    const json_t *json; /* arrays and objects; borrowed from the body */
};

/* Path and query into the call's values and its page. */
int rest_read(struct rest_call *c, const struct rest_path *path, struct err *err) MUST_CHECK;
/* The body likewise; then the values are complete. ERR_CLOSED, ERR_TIMEOUT: the peer is gone or too
 * slow. */
int rest_read_body(struct rest_call *c, struct err *err) MUST_CHECK;

#endif
