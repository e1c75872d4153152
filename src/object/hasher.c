/* The thread that hashes for all uploads. In each turn it takes some pieces of all waiting streams.
 */
#include "object/hasher.h"

#include <stdlib.h>

enum { TURN = 64 * 1024, HASHER_STACK = 256 * 1024 };

struct hasher {
    struct mutex lock; /* lock class "local.hasher"; guards this struct and every stream's pieces */
    struct cond work;
    struct list waiting; /* streams with pieces; the stream that has waited longest is first */
    bool stop;
    struct thread thread;
};

/* The streams that are hashed in one turn, and the number of bytes that are hashed of each. */
struct turn {
    struct hash_stream *streams[MD5_LANES];
    size_t bytes[MD5_LANES];
    size_t count;
};

static void take_turn(struct hasher *h, struct turn *t)
{
    struct list *node;

    t->count = 0;
    while (t->count < MD5_LANES && (node = list_shift(&h->waiting)))
        t->streams[t->count++] = list_entry(node, struct hash_stream, node);
}

/* Hashes the pieces of a turn. Whole blocks of several streams are hashed side by side. A stream
 * with bytes that do not fill a block is hashed by itself. */
static void hash_turn(struct turn *t)
{
    struct md5_lane lanes[MD5_LANES];
    size_t count = 0;

    for (size_t i = 0; i < t->count; i++) {
        struct hash_stream *s = t->streams[i];
        struct str piece = str_head(s->pieces[0], TURN);
        if (s->md5.bytes % MD5_BLOCK == 0 && piece.len >= MD5_BLOCK)
            lanes[count++] = (struct md5_lane){&s->md5, piece.p, piece.len / MD5_BLOCK};
        else
            md5_update(&s->md5, piece);
        t->bytes[i] = piece.len;
    }
    size_t blocks = count ? md5_side_by_side(lanes, count) : 0;
    for (size_t i = 0, lane = 0; i < t->count && lane < count; i++)
        if (lanes[lane].md5 == &t->streams[i]->md5) {
            t->bytes[i] = blocks * MD5_BLOCK;
            lane++;
        }
}

static void end_turn(struct hasher *h, struct turn *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct hash_stream *s = t->streams[i];
        s->pieces[0] = str_skip(s->pieces[0], t->bytes[i]);
        if (s->pieces[0].len == 0) {
            s->count--;
            s->pieces[0] = s->pieces[1];
            if (s->awaited)
                cond_signal(&s->moved);
        }
        if (s->count)
            list_push(&h->waiting, &s->node);
    }
}

static void hasher_main(void *ctx)
{
    struct hasher *h = ctx;
    struct turn turn;

    mutex_lock(&h->lock);
    while (!h->stop) {
        take_turn(h, &turn);
        if (turn.count == 0) {
            cond_wait(&h->work, &h->lock);
            continue;
        }
        mutex_unlock(&h->lock);
        hash_turn(&turn);
        mutex_lock(&h->lock);
        end_turn(h, &turn);
    }
    mutex_unlock(&h->lock);
}

int hasher_start(struct hasher **out, struct err *err)
{
    struct hasher *h = xcalloc(1, sizeof(*h));

    mutex_init(&h->lock, "local.hasher");
    cond_init(&h->work);
    list_init(&h->waiting);
    int code = thread_start(&h->thread, "local-hasher", HASHER_STACK, hasher_main, h, err);
    if (code < 0)
        hasher_stop(h);
    else
        *out = h;
    return code;
}

void hasher_stop(struct hasher *h)
{
    if (!h)
        return;
    mutex_lock(&h->lock);
    BUG_ON(!list_empty(&h->waiting));
    h->stop = true;
    cond_signal(&h->work);
    mutex_unlock(&h->lock);
    thread_join(&h->thread);
    cond_release(&h->work);
    mutex_release(&h->lock);
    free(h);
}

/* --- functions for the threads that add pieces --- */

void hash_begin(struct hash_stream *s, struct hasher *h)
{
    *s = (struct hash_stream){.hasher = h};
    md5_init(&s->md5);
    cond_init(&s->moved);
}

static void wait_until_at_most(struct hash_stream *s, size_t count)
{
    s->awaited = true;
    while (s->count > count)
        cond_wait(&s->moved, &s->hasher->lock);
    s->awaited = false;
}

void hash_add(struct hash_stream *s, struct str piece)
{
    struct hasher *h = s->hasher;

    if (piece.len == 0)
        return;
    mutex_lock(&h->lock);
    wait_until_at_most(s, HASH_PIECES - 1);
    s->pieces[s->count++] = piece;
    if (s->count == 1) { /* else the stream is waiting already, or being hashed */
        list_push(&h->waiting, &s->node);
        cond_signal(&h->work);
    }
    mutex_unlock(&h->lock);
}

void hash_end(struct hash_stream *s, unsigned char out[MD5_LEN])
{
    mutex_lock(&s->hasher->lock);
    wait_until_at_most(s, 0);
    mutex_unlock(&s->hasher->lock);
    md5_final(&s->md5, out);
    cond_release(&s->moved);
}
