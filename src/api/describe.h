/* Descriptions of the API, written from the tables of routes of api/ and of the rooms: the OpenAPI
 * document and docs/api.md. */
#ifndef API_DESCRIBE_H
#define API_DESCRIBE_H

#include "command/command.h"
#include "rest/openapi.h"

#include <stdio.h>

struct room;

/* The tables of api/, each in the group that it has in the descriptions. */
extern const struct rest_group api_own_groups[];
extern const size_t api_own_group_count;

/* Appends the OpenAPI document of all calls of weir's own, in api/ and in these rooms. */
void api_openapi(struct buf *out, const struct room *const *rooms, size_t count);

/* Write the OpenAPI document and docs/api.md. The rooms are those of the table. */
void api_write_openapi(const struct command_table *table, FILE *out);
void api_write_page(const struct command_table *table, FILE *out);

#endif
