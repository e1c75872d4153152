/* MD5 of large bodies, computed beside the threads that receive and write them.
 *
 * One thread hashes for all uploads. The waiting pieces of several bodies are hashed side by side
 * in the lanes of md5.h; a lone body is hashed at once, without waiting for other bodies. So one
 * upload is as fast as MD5 on one core, and many uploads together are faster than that.
 *
 *   H1  A stream's bytes are hashed in the order in which they were added.
 *   H2  A piece belongs to the hasher from hash_add() until HASH_PIECES later pieces were added, or
 *       hash_end() has returned. So a caller that uses HASH_PIECES + 1 buffers in turn never writes
 *       to a buffer in use.
 *   H3  In each turn the hasher hashes at most 64 KiB of each waiting body. A new body takes part
 *       in the next turn.
 *
 * Any thread may call these functions; a stream belongs to one thread. */
#ifndef OBJECT_HASHER_H
#define OBJECT_HASHER_H

#include "base/list.h"
#include "object/md5.h"
#include "os/thread.h"

enum { HASH_PIECES = 2 }; /* pieces of a stream that may wait to be hashed */

struct hasher;

int hasher_start(struct hasher **out, struct err *err) MUST_CHECK;
void hasher_stop(struct hasher *h); /* no stream may be open; `h` may be NULL */

/* One body that is hashed. The caller provides the memory, and uses it through these calls
 * alone. */
struct hash_stream {
    struct hasher *hasher;
    struct list node; /* in the list of streams that wait for the thread */
    struct md5 md5;
    struct str pieces[HASH_PIECES]; /* the pieces not hashed yet, in order */
    size_t count;
    bool awaited; /* the caller waits for `moved`, which says that a piece is done */
    struct cond moved;
};

void hash_begin(struct hash_stream *s, struct hasher *h);
/* Adds a piece to the body. Waits until there is room for it (H2, above). */
void hash_add(struct hash_stream *s, struct str piece);
/* Waits until all pieces are hashed, and stores the MD5 in `out`. Must be called also after a
 * failure; the result is not used then. */
void hash_end(struct hash_stream *s, unsigned char out[MD5_LEN]);

#endif
