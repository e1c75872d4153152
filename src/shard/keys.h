/* Walks over all keys of a bucket that have at least one version, delete marker or upload. */
#ifndef SHARD_KEYS_H
#define SHARD_KEYS_H

#include "object/bucket.h"

struct shard_keys {
    struct bucket *bucket; /* borrowed */
    struct arena objects_arena, uploads_arena;
    struct list_result objects;
    struct upload_list uploads;
    size_t object, upload; /* indexes of the next entries on the two pages */
    struct buf key;        /* the current key */
    int64_t modified_ms;   /* when the key's newest version was made; 0: it has only uploads */
    struct buf after;      /* the key at which the walk began */
};

/* Begins the walk at the first key after `after`. */
void shard_keys_open(struct shard_keys *w, struct bucket *b, struct str after);
void shard_keys_close(struct shard_keys *w);
/* Moves to the next key, which is then buf_str(&w->key). ERR_END: there are no more keys. */
int shard_keys_next(struct shard_keys *w, struct err *err) MUST_CHECK;

#endif
