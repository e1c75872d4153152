/* Types and functions that the files of rest/ share. */
#ifndef REST_REST_INT_H
#define REST_REST_INT_H

#include "rest/rest.h"

/* A value of the request that the row describes. */
struct rest_value {
    const struct rest_field *field;
    bool given;
    struct str text; /* value of a STRING, TIME or DURATION */
    int64_t integer; /* value of an INTEGER; of a TIME or DURATION, in milliseconds */
    double number;
    bool truth;
    const json_t *json; /* value of an array or object; borrowed from the body */
};

size_t rest_field_count(const struct rest_field *fields);
/* The value of a field that the request does not have. */
struct rest_value rest_value_absent(const struct rest_field *f);
/* These functions check a value and read it into *v, whose `field` is set. */
int rest_value_from_text(struct rest_value *v, struct str text, enum rest_manner manner,
                         struct err *err) MUST_CHECK;
int rest_value_from_json(struct rest_value *v, const json_t *json, enum rest_manner manner,
                         struct err *err) MUST_CHECK;
/* Reads the members of an object. `values` has a value for each field, in their order. `what` is
 * the beginning of rest_unknown()'s message. */
int rest_values_from_json(struct rest_value *values, const struct rest_field *fields,
                          const json_t *object, const char *what, enum rest_manner manner,
                          struct err *err) MUST_CHECK;
/* Refuses a name that none of the arrays of fields has. The message is "<what> "<name>"", where
 * `what` is such as "this call takes no member", and ends with the nearest name that there is. */
int rest_unknown(const struct rest_field *const *fields, size_t count, const char *what,
                 struct str name, struct err *err) MUST_CHECK;
/* Stores the values that have places in the struct *out. */
int rest_values_store(void *out, const struct rest_value *values, size_t count, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* The dialect of weir's own calls. */
extern const struct rest_dialect rest_own;

/* Reads path and query into the call's values and its page. */
int rest_read(struct rest_call *c, const struct rest_path *path, struct err *err) MUST_CHECK;
/* Reads the body into the call's values, and checks that all required values are there. ERR_CLOSED:
 * the peer closed the connection. ERR_TIMEOUT: the peer is too slow. */
int rest_read_body(struct rest_call *c, struct err *err) MUST_CHECK;

#endif
