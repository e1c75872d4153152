/* The REST API of lakeFS, /api/v1, on the API port, where weir's own API is, too. docs/lake-rest.md
 * lists the calls, the rights that they need, and the differences from lakeFS.
 *
 * Each file of this folder has a table of routes at its top, with one *row* for each operation of
 * the published API. An operation that weir does not serve has a row, too, which answers 501 with a
 * reason. The tables have the dialect `lake_dialect` (rest/rest.h): any user of weir may call,
 * errors are {"message": "..."}, and lists have lakeFS's form of pages. */
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
    /* These keys are derived from the key file of the data folder. All processes that share a
     * key-value store have the same key file. */
    struct hmac_key token_key; /* signs the tokens of POST /auth/login */
    struct hmac_key link_key;  /* signs the addresses that clients upload to */
};

/* Prepares the state of the API; `lake` and `services` are borrowed. */
int lake_web_open(struct lake_web *w, struct lake *lake, const struct services *services,
                  struct err *err) MUST_CHECK;
void lake_web_close(struct lake_web *w); /* overwrites the keys in memory */

/* The tables of all routes; the array ends with NULL. The ctx of the tables is the state of the
 * lake's room. */
extern const struct rest_table *const lake_routes[];
extern const struct rest_dialect lake_dialect;

#endif
