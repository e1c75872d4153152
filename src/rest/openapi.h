/* The OpenAPI document (version 3.0.3) of weir's own calls, written from the tables of rows. The
 * rows of a table with a dialect are left out, because another program describes them. */
#ifndef REST_OPENAPI_H
#define REST_OPENAPI_H

#include "rest/rest.h"

/* Tables whose calls have the same tag in the document: a room, or a part of the API. */
struct rest_group {
    const char *name, *doc;
    const struct rest_table *const *tables; /* ended by NULL */
};

/* Appends the document: one line of JSON. */
void rest_openapi(struct buf *out, const struct rest_group *groups, size_t count);

/* Appends the operationId of a row, which is its method and path in one word: getUsersByName for
 * GET /api/v1/users/{name}. No two of weir's own rows have the same id; a test checks that. */
void rest_operation_id(struct buf *out, const struct rest_row *row);
/* Returns who may call a row, in one word. */
const char *rest_who(const struct rest_row *row);
/* The query parameters of a list of weir's own: `after` and `limit`. */
const struct rest_field *rest_paging(void);
/* Removes the first parameter, "{name}" or "{name...}", from the front of *path, with the text
 * before it. Returns the parameter's name; an empty one when there is no parameter. */
struct str rest_next_parameter(struct str *path);
/* Returns the field of a parameter of the row's path. NULL: the row does not have it. */
const struct rest_field *rest_path_field(const struct rest_row *row, struct str name);

/* The schema of a request is about what weir accepts, and that of an answer about what it sends. */
enum rest_side { REST_REQUEST, REST_ANSWER };

/* Writes the schema of one field as a JSON object. */
void rest_schema(struct json_out *w, const struct rest_field *f, enum rest_side side);
/* Writes the schema of an object with these members, and no others, as a JSON object. If `list` is
 * not NULL, the object also has the member `list`, an array of objects whose schema is `items`, and
 * the member `next`. */
void rest_object_schema(struct json_out *w, const struct rest_field *members, const char *list,
                        struct str items, enum rest_side side);
#endif
