/* A sharded bucket "photos" in a folder, with a mover that the test's thread or a thread of its own
 * drives. A test takes an *image* of the folder while the mover is at a step: what a process would
 * find that starts after a kill there. */
#ifndef TESTS_UNIT_SHARD_MOVE_LAB_H
#define TESTS_UNIT_SHARD_MOVE_LAB_H

#include "route/route.h"
#include "shard/bucket.h"
#include "shard/move_int.h"
#include "unit/object/bucket_conformance.h"

struct move_lab {
    char dir[160];
    struct db *db;
    struct store *store;
    struct routes *routes;
    struct storage *home;
    struct mover *mover;
    struct sharded *sharded;  /* NULL: the bucket is plain, or is not there */
    struct bucket *bucket;    /* the sharded or plain bucket; NULL: it is not there */
    bool rests;               /* what the mover is told: the bucket is being switched */
    _Atomic(int) plain, gone; /* how often the mover has called these */
};

/* Opens the folder test_dir()/NAME. If it has the bucket, the bucket is served after a recovery. */
void move_lab_open(struct move_lab *l, const char *name);
void move_lab_close(struct move_lab *l);
/* Makes the bucket, and shards it. With versions and object lock if `versions`. */
void move_lab_make(struct move_lab *l, bool versions);
/* Copies the folder as it is on the disk now to test_dir()/NAME. Any thread may call this. */
void move_lab_image(struct move_lab *l, const char *name);

/* Begins a move. `at` NULL: none is given. */
void move_lab_begin(struct move_lab *l, enum shard_move_kind kind, const char *at);
/* Works until the bucket has no move; on this thread, and in windows of at most `limit` keys. */
void move_lab_run(struct move_lab *l, size_t limit);
void move_lab_do(struct move_lab *l, enum shard_move_kind kind, const char *at, size_t limit);

/* Appends a line for every version, marker, upload and part of the bucket, with all that is known
 * of it but where it is. */
void move_lab_dump(struct move_lab *l, struct buf *out);
/* Nothing is closed or moved, every shard has rows in its own segments alone, there are no other
 * shards, and the storage is whole. With `segments`, the map is cut like this: "0 m 1" says that
 * place 0 has the keys up to m, and place 1 the others. */
void move_lab_check(struct move_lab *l, const char *segments);

/* Puts a few hundred versions: tags, locks, markers, versions "null", uploads. */
void move_lab_fill(struct move_lab *l, bool versions);

#endif
