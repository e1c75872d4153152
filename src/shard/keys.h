/* Walks over all keys of a bucket that have anything: a version, a delete marker, or an upload. */
#ifndef SHARD_KEYS_H
#define SHARD_KEYS_H

#include "object/bucket.h"

struct shard_keys {
    struct bucket *bucket; /* borrowed */
    struct arena objects_arena, uploads_arena;
    struct list_result objects;
    struct upload_list uploads;
    size_t object, upload; /* the next of the page */
    struct buf key;        /* the present key */
    int64_t modified_ms;   /* when its newest version was made; 0: it has only uploads */
    struct buf after;      /* the key at which the walk began */
};

/* Begins behind `after`. */
void shard_keys_open(struct shard_keys *w, struct bucket *b, struct str after);
void shard_keys_close(struct shard_keys *w);
/* Moves to the next key: buf_str(&w->key). ERR_END: there is none. */
int shard_keys_next(struct shard_keys *w, struct err *err) MUST_CHECK;

#endif
