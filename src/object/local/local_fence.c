/* Fences: once a bucket is fenced, calls through references that were opened before fail.
 *
 * When a bucket becomes the first shard of a sharded bucket, other threads may still hold the plain
 * bucket, for as long as an upload lasts. Through it they would write keys that meanwhile moved to
 * another shard. So the bucket is *fenced*: each call through a reference that was opened before
 * fails with ERR_BUSY, unless it took effect before the fence. A change checks for the fence inside
 * its commit, and a read checks after it has read, so a fence that comes during the call is
 * noticed.
 *
 * Fences are numbered. An opened bucket stores the number that the storage's newest fence had at
 * that time. While that is still the newest fence, a check costs one load from memory. */
#include "object/local/local_int.h"

#include <stdlib.h>

struct fenced {
    uint32_t number; /* number of the bucket's latest fence */
    struct str name;
    char memory[];
};

void fences_init(struct fences *f)
{
    atomic_init(&f->number, 0);
    mutex_init(&f->lock, "local.fences");
    map_init(&f->names);
}

void fences_release(struct fences *f)
{
    struct str name;
    size_t cursor = 0;
    void *fenced;

    while (map_next(&f->names, &cursor, &name, &fenced))
        free(fenced);
    map_release(&f->names);
    mutex_release(&f->lock);
}

static struct fenced *fenced_find(struct fences *f, struct str name)
{
    struct fenced *found = map_get(&f->names, name);

    if (found)
        return found;
    found = xcalloc(1, sizeof(*found) + name.len + 1);
    memcpy(found->memory, name.p, name.len);
    found->name = str_n(found->memory, name.len);
    map_put(&f->names, found->name, found);
    return found;
}

void local_fence(struct storage *s, struct str bucket)
{
    struct local *l = local_of(s);

    generation_begin(&l->generations, bucket);
    mutex_lock(&l->fences.lock);
    uint32_t number = atomic_load(&l->fences.number) + 1;
    fenced_find(&l->fences, bucket)->number = number;
    atomic_store(&l->fences.number, number);
    mutex_unlock(&l->fences.lock);
    generation_end(&l->generations, bucket);
}

int fence_check(struct local_bucket *b, struct err *err)
{
    struct fences *f = &b->local->fences;
    uint32_t opened = atomic_load_explicit(&b->fence, memory_order_relaxed);
    uint32_t now = atomic_load(&f->number);

    if (opened == now)
        return 0;
    mutex_lock(&f->lock);
    const struct fenced *fenced = map_get(&f->names, b->bucket.name);
    bool is_fenced = fenced && fenced->number > opened;
    mutex_unlock(&f->lock);
    if (is_fenced)
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " was just sharded; ask again",
                       STR_ARG(b->bucket.name));
    atomic_store_explicit(&b->fence, now, memory_order_relaxed);
    return 0;
}

int fence_checked(struct local_bucket *b, int code, struct err *err)
{
    int fenced = code == 0 || code == ERR_NOT_FOUND ? fence_check(b, err) : 0;

    return fenced < 0 ? fenced : code;
}
