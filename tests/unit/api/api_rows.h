/* Compares answers of the API with the descriptions in its rows. */
#ifndef TESTS_UNIT_API_API_ROWS_H
#define TESTS_UNIT_API_API_ROWS_H

#include "rest/rest.h"

/* `request` is "GET /path?query". Fails the test when the answer has a member that its row does not
 * describe, lacks one that the row describes, or has one of another type; or when an error has
 * another form than the API's. */
void api_rows_check(const struct rest_table *tables, size_t count, const char *request, int status,
                    const json_t *answer);

#endif
