/* MD5 of large bodies, computed beside the threads that receive and write them.
 *
 * One thread hashes for all. What several bodies have waiting goes side by side through the lanes
 * of md5.h; a lone one goes by itself and at once: nobody is ever waited for. So one upload is as
 * fast as MD5 is on one core, and many are not held to one core's MD5.
 *
 *   H1  a stream's bytes are hashed in the order in which they were added;
 *   H2  a piece belongs to the hasher from hash_add() until HASH_PIECES later ones were added, or
 *       hash_end() returned: whoever goes around HASH_PIECES + 1 buffers never writes to one in
 * use; H3  the hasher takes what waits at the moment, and at most a turn of it before it looks
 * again: a body that comes joins within a turn.
 *
 * Any thread; a stream belongs to one. */
#ifndef OBJECT_HASHER_H
#define OBJECT_HASHER_H

#include "base/list.h"
#include "object/md5.h"
#include "os/thread.h"

enum { HASH_PIECES = 2 }; /* of a stream, given and not yet hashed */

struct hasher;

int hasher_start(struct hasher **out, struct err *err) MUST_CHECK;
void hasher_stop(struct hasher *h); /* no stream is open; NULL is fine */

/* A body. Its storage is the caller's, who only touches it through these calls. */
struct hash_stream {
    struct hasher *hasher;
    struct list node; /* among those that wait for the thread */
    struct md5 md5;
    struct str pieces[HASH_PIECES]; /* the first is being hashed */
    size_t count;
    bool awaited; /* the caller waits for `moved` */
    struct cond moved;
};

void hash_begin(struct hash_stream *s, struct hasher *h);
/* Waits until there is room for the piece (H2). */
void hash_add(struct hash_stream *s, struct str piece);
/* Waits for all that was added. Always called, also after a failure (then the result is not used).
 */
void hash_end(struct hash_stream *s, unsigned char out[MD5_LEN]);

#endif
