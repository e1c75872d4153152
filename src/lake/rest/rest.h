/* The REST API of lakeFS, /api/v1, beside weir's own on the API port. docs/lake-rest.md lists the
 * calls, the rights that they need and the differences from lakeFS.
 *
 * Each file of this folder has a table of routes at its top, with one row for each operation of the
 * published API. An operation that weir does not serve has a row too, which answers 501 with a
 * reason. The tables have the dialect `lake_dialect` (rest/rest.h): any user of weir may call,
 * errors are {"message": "..."}, and lists have lakeFS's pages. */
#ifndef LAKE_REST_REST_H
#define LAKE_REST_REST_H

#include "lake/lake.h"
#include "rest/guesses.h"
#include "rest/rest.h"
#include "room/services.h"
#include "sign/hmac.h"

/* The state of the REST API. */
struct lake_web {
    struct lake *lake;
    const struct services *services;
    struct guesses guesses;
    /* Keys that are derived from the key file of the data folder, which all weirs of one store
     * share. */
    struct hmac_key token_key; /* signs the tokens of POST /auth/login */
    struct hmac_key link_key;  /* signs the addresses that clients upload to */
};

/* Prepares the API; `lake` and `services` are borrowed. */
int lake_web_open(struct lake_web *w, struct lake *lake, const struct services *services,
                  struct err *err) MUST_CHECK;
void lake_web_close(struct lake_web *w); /* overwrites the keys */

/* The tables of all routes; the array ends with NULL. Their ctx is the room's state. */
extern const struct rest_table *const lake_routes[];
extern const struct rest_dialect lake_dialect;

#endif
