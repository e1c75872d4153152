/* Which bucket is where: storages by name, and the seed's routing policies (configDB, keys
 * p:route:<user>, p:route:<user>:<bucket>, set p:route_block:<storage>), variable parts escaped by
 * store_key_part(). Order: bucket policy, else user policy, else the main storage; a blocked bucket
 * is refused. Held in memory and refreshed by published messages; finding never waits. Any thread.
 */
#ifndef ROUTE_ROUTE_H
#define ROUTE_ROUTE_H

#include "base/log.h"
#include "object/bucket.h"

struct routes;
struct store;

int routes_open(struct routes **out, struct store *config, const struct log *log,
                struct err *err) MUST_CHECK;
void routes_close(struct routes *r); /* closes the storages too */

/* Takes the storage. The first one added is the main storage unless routes_set_main() says
 * otherwise. */
int routes_add_storage(struct routes *r, struct storage *s, struct err *err) MUST_CHECK;
int routes_set_main(struct routes *r, struct str name, struct err *err) MUST_CHECK;
struct storage *routes_storage(struct routes *r, struct str name); /* borrowed; NULL when unknown */
size_t routes_storages(struct routes *r, struct storage **out, size_t max);

/* The storage that a user's bucket is on, or would be made on. ERR_DENIED: blocked there.
 * ERR_NOT_FOUND: a policy names a storage that is not there. */
int route_storage(struct routes *r, struct str user, struct str bucket, struct storage **out,
                  struct err *err) MUST_CHECK;

/* Opens it where its owner's route says: `user` is who asks; a bucket of another owner is found too
 * (the caller decides about access). A reference: bucket->ops->unref. ERR_NO_BUCKET. */
int route_bucket(struct routes *r, struct str user, struct str bucket, struct bucket **out,
                 struct err *err) MUST_CHECK;

/* Policies; durable. An empty bucket: the user's policy. An empty storage removes it. */
int route_set(struct routes *r, struct str user, struct str bucket, struct str storage,
              struct err *err) MUST_CHECK;
int route_block(struct routes *r, struct str storage, struct str bucket, bool blocked,
                struct err *err) MUST_CHECK;

#endif
