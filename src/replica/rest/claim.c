/* The REST route that claims the name of a local storage for its folder (coord/claim.h). */
#include "replica/rest/rest.h"
#include "object/bucket.h"
#include "replica/tap/tap.h"
#include "route/route.h"

static rest_fn storage_claim;

static const struct rest_row claim_rows[] = {
    {HTTP_POST, "/api/v1/storages/{name}/claim", REST_ADMIN,
     "Make the name of a local storage mean this weir's folder in all replications of the store. "
     "For a folder that took the place of another one.",
     storage_claim, .status = 204, .needs = replica_needs,
     .in_path = REST_FIELDS({"name", "The storage's name."})},
};
const struct rest_table replica_claim_routes = {REST_ROWS(claim_rows)};

static int storage_claim(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct str name = rest_text(c, "name");
    struct storage *s = routes_storage(room->services->routes, name);
    int code =
        storage_can(s, STORAGE_FOLDER)
            ? taps_claim(room->taps, s, true, err)
            : err_set(err, ERR_NOT_FOUND, "this weir has no local storage " STR_FMT, STR_ARG(name));

    if (code == 0)
        log_warn(http_request_log(c->req), "storage.claimed", log_s("storage", name));
    return code;
}
