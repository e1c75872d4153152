/* Finds which of the storages that weir serves itself has a bucket of a given name. */
#include "route/route_int.h"
#include "object/generation.h"
#include "object/overlay.h"

/* Returns whether the bucket belongs to this user. An empty owner stands for everybody. */
static bool bucket_is_of(struct bucket *b, struct str owner)
{
    struct arena arena = {0};
    struct bucket_info info = {0};
    bool is =
        owner.len == 0 || (b->ops->info(b, &arena, &info, NULL) == 0 && str_eq(info.owner, owner));

    arena_release(&arena);
    return is;
}

/* Returns the sum of the bucket's generations on all these storages (object/bucket.h); 0: one of
 * the storages gives no generation. */
static uint64_t generation_sum(struct storage *const *all, size_t count, struct str bucket)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t one = 0;
        if (storage_can(all[i], STORAGE_FORWARDS))
            continue;
        if (!storage_overlay_of(all[i], bucket))
            one = generation_get(all[i]->generations, bucket);
        if (one == 0)
            return 0;
        sum += one;
    }
    return sum;
}

/* Returns the hash that the bucket's slot holds if no local storage has the bucket (route_int.h,
 * ROUTES_ABSENT). 0: `generation` is 0, so nothing can be remembered about the bucket. */
static uint64_t absent_tag(const struct routes *r, const struct routes_view *view,
                           struct str bucket, uint64_t generation)
{
    struct hash_key key = {r->absent_key.k0 ^ view->serial, r->absent_key.k1 ^ generation};

    return generation ? hash_sip(&key, bucket) : 0;
}

static _Atomic(uint64_t) *absent_slot(struct routes *r, struct str bucket)
{
    return &r->absent[hash_xxh3(bucket, r->absent_key.k0) % ROUTES_ABSENT];
}

struct storage *routes_local_of(struct routes *r, const struct routes_view *view, struct str bucket,
                                struct str owner)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = routes_storages(r, all, ARRAY_SIZE(all));
    uint64_t tag = absent_tag(r, view, bucket, generation_sum(all, count, bucket));
    _Atomic(uint64_t) *slot = absent_slot(r, bucket);
    struct storage *found = NULL;
    bool absent = true;

    if (tag && atomic_load_explicit(slot, memory_order_relaxed) == tag)
        return NULL;
    for (size_t i = 0; i < count && !found; i++) {
        struct bucket *b = NULL;
        if (storage_can(all[i], STORAGE_FORWARDS) || routes_copy_of(view, all[i], bucket))
            continue;
        int code = storage_open_bucket(&b, all[i], owner, bucket, NULL);
        absent &= code == ERR_NO_BUCKET;
        /* If the disk of a bucket is not there, its owner is not known. Requests for the bucket
         * must not go to another storage, so the bucket counts as found. */
        if (code == ERR_OFFLINE || (code == 0 && bucket_is_of(b, owner)))
            found = all[i];
        if (code == 0)
            b->ops->unref(b);
    }
    if (absent && tag)
        atomic_store_explicit(slot, tag, memory_order_relaxed);
    return found;
}

struct storage *routes_local_copy(struct routes *r, const struct routes_view *view,
                                  struct str bucket)
{
    struct storage *all[ROUTES_STORAGES_MAX];
    size_t count = view->copies.len ? routes_storages(r, all, ARRAY_SIZE(all)) : 0;

    for (size_t i = 0; i < count; i++)
        if (!storage_can(all[i], STORAGE_FORWARDS) && routes_copy_of(view, all[i], bucket))
            return all[i];
    return NULL;
}
