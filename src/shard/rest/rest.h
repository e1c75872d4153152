/* Shared by the files of sharding's routes. */
#ifndef SHARD_REST_REST_H
#define SHARD_REST_REST_H

#include "shard/room.h"

/* The functions of the routes in rest.c. Those that show buckets and move keys are in shards.c, the
 * others in verify.c. */
rest_fn shard_list_run, shard_enable_run, shard_show_run, shard_disable_run, shard_split_run,
    shard_merge_run, shard_cancel_run, shard_verify_run, shard_rebuild_run;

/* Finds the storage of the bucket that the path or the body names. If the call names a storage, it
 * is that one, else the only local storage that has the bucket. ERR_NO_BUCKET: no storage has it.
 * ERR_INVALID: several storages have it. */
int shard_rest_home(const struct rest_call *c, struct storage **home, struct err *err) MUST_CHECK;
/* Gets the sharded bucket; *out is a reference. ERR_NOT_FOUND: the bucket is not sharded. */
int shard_rest_bucket(const struct rest_call *c, struct sharded **out, struct err *err) MUST_CHECK;

/* Writes a member whose value is a key. A key that is not UTF-8 is percent-encoded; boundaries may
 * be such keys. */
void shard_rest_key(struct json_out *w, const char *name, struct str key);

#endif
