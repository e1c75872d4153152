/* A sharded bucket as a `struct bucket`: references to it, its state and usage, and how its other
 * operations find the shard that they call. */
#include "shard/bucket_int.h"

#include "object/overlay.h"
#include "shard/state.h"

#include <stdlib.h>

/* --- life --- */

struct bucket *sharded_bucket(struct sharded *s)
{
    struct sharded_bucket *b = xcalloc(1, sizeof(*b));

    b->sharded = sharded_ref(s);
    atomic_init(&b->refs, 1);
    /* A request for a closed key waits, so the bucket does not have STORAGE_AT_HAND. It has
     * head_now() and get_now() instead. */
    b->bucket =
        (struct bucket){.ops = &sharded_bucket_ops,
                        .name = s->name,
                        .home = s->home,
                        .can = (s->home->ops->can & ~(unsigned)STORAGE_AT_HAND) | STORAGE_PARTS};
    return &b->bucket;
}

static struct bucket *sharded_bucket_ref(struct bucket *b)
{
    atomic_fetch_add(&sharded_bucket_of(b)->refs, 1);
    return b;
}

static void sharded_bucket_unref(struct bucket *bucket)
{
    struct sharded_bucket *b = bucket ? sharded_bucket_of(bucket) : NULL;

    if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    sharded_unref(b->sharded);
    free(b);
}

static void sharded_untap(struct bucket *b)
{
    sharded_bucket_of(b)->untapped = true;
}

/* --- opening shards --- */

static void shard_opened(const struct sharded_bucket *b, struct bucket *shard)
{
    if (b->untapped)
        place_hide(shard);
}

int shard_open_home(struct sharded_bucket *b, struct bucket **out, struct err *err)
{
    int code = sharded_open_home(b->sharded, out, err);

    if (code == 0)
        shard_opened(b, *out);
    return code;
}

/* Returns ERR_NO_BUCKET if the bucket itself was removed, else `code`. */
static int shard_missing(struct sharded_bucket *b, int code, struct err *err)
{
    struct bucket *home = NULL;
    struct err ignored = {0};

    if (shard_open_home(b, &home, &ignored) == ERR_NO_BUCKET)
        return err_code(err, ERR_NO_BUCKET);
    if (home)
        home->ops->unref(home);
    return code;
}

int shard_open(struct sharded_bucket *b, const struct shard_place *p, struct bucket **out,
               struct err *err)
{
    int code;

    if (p->number == 0)
        return shard_open_home(b, out, err);
    code = sharded_open_place(b->sharded, p, out, err);
    if (code == 0)
        shard_opened(b, *out);
    return code == ERR_CORRUPT ? shard_missing(b, code, err) : code;
}

static enum shard_state sharded_state(struct sharded *s)
{
    struct shard_map *m = table_map(s->table);
    enum shard_state state = m->state;

    map_unref(m);
    return state;
}

/* Checks that `now`, the bucket that has the name now, is still this bucket, made plain or sharded
 * again. ERR_NO_BUCKET: this bucket was removed, and `now` is another bucket with its name. */
static int anew_check(const struct sharded *s, struct bucket *now, struct err *err)
{
    uint64_t id = 0;
    int code = 0;

    if (bucket_is_sharded(now))
        id = sharded_bucket_of(now)->sharded->id;
    else
        code = place_id(now, &id, err);
    if (code == 0 && id != s->id)
        code = err_code(err, ERR_NO_BUCKET);
    return code;
}

int shard_open_anew(struct sharded_bucket *b, int code, struct bucket **out, struct err *err)
{
    struct sharded *s = b->sharded;
    struct bucket *now = NULL;

    if (code == ERR_CONFLICT)
        return shard_missing(b, code, err);
    if (code != ERR_NO_BUCKET || sharded_state(s) != SHARD_PLAIN)
        return code;
    code = storage_open_bucket(&now, s->home, s->owner, s->name, err);
    if (code < 0)
        return code;
    if (bucket_is_sharded(now) && sharded_bucket_of(now)->sharded == s)
        code = err_set(err, ERR_BUSY, "the bucket is about to be a plain bucket again");
    else
        code = anew_check(s, now, err);
    if (code < 0) {
        now->ops->unref(now);
        return code;
    }
    shard_opened(b, now);
    *out = now;
    return 0;
}

/* --- calls of one shard --- */

/* Opens the shard that the pass names. If no pass was given (`code` says why), the function opens
 * the bucket that has the name now, if that bucket is plain or was sharded again. */
static int shard_call_open(struct shard_call *c, struct sharded_bucket *b, int code,
                           struct err *err)
{
    if (code == 0)
        return shard_open(b, pass_place(&c->pass), &c->shard, err);
    code = shard_open_anew(b, code, &c->shard, err);
    c->plain = code == 0;
    return code;
}

int shard_call_begin(struct shard_call *c, struct sharded_bucket *b, struct str key,
                     enum pass_use use, bool may_wait, struct err *err)
{
    *c = (struct shard_call){0};
    return shard_call_open(c, b, pass_take(b->sharded->table, key, use, may_wait, &c->pass, err),
                           err);
}

int shard_call_begin_after(struct shard_call *c, struct sharded_bucket *b, struct str after,
                           struct err *err)
{
    *c = (struct shard_call){0};
    int code = shard_call_open(c, b, pass_take_after(b->sharded->table, after, &c->pass, err), err);
    c->window = c->plain ? (struct shard_window){after, STR_EMPTY} : c->pass.window;
    return code;
}

void shard_call_end(struct shard_call *c)
{
    if (c->shard)
        c->shard->ops->unref(c->shard);
    c->shard = NULL;
    pass_leave(&c->pass);
}

/* --- state of the bucket --- */

static int sharded_info(struct bucket *bucket, struct arena *a, struct bucket_info *out,
                        struct err *err)
{
    struct bucket *home = NULL;
    int code = shard_open_home(sharded_bucket_of(bucket), &home, err);

    if (code < 0)
        return code;
    code = home->ops->info(home, a, out, err);
    home->ops->unref(home);
    return code;
}

static int sharded_get_document(struct bucket *bucket, struct arena *a, const char *name,
                                struct str *out, struct err *err)
{
    struct bucket *home = NULL;
    int code = shard_open_home(sharded_bucket_of(bucket), &home, err);

    if (code < 0)
        return code;
    code = home->ops->get_document(home, a, name, out, err);
    home->ops->unref(home);
    return code;
}

static int sharded_set_document(struct bucket *bucket, const char *name, struct str document,
                                struct err *err)
{
    struct bucket *home = NULL;
    int code = shard_open_home(sharded_bucket_of(bucket), &home, err);

    if (code < 0)
        return code;
    code = home->ops->set_document(home, name, document, err);
    home->ops->unref(home);
    return code;
}

/* Changes the state of the bucket that has the name now, when this one is not sharded any more. */
static int plain_change(struct sharded_bucket *b, const struct state_change *c, struct err *err)
{
    struct bucket *now = NULL;
    int code = shard_open_anew(b, ERR_NO_BUCKET, &now, err);

    if (code < 0)
        return code;
    code = state_change_one(c, now, err);
    now->ops->unref(now);
    return code;
}

/* Changes the state of all shards, or of the plain bucket that the bucket is by now. */
static int sharded_change(struct sharded_bucket *b, const struct state_change *c, struct err *err)
{
    struct state_change change = *c;
    struct sharded *s = b->sharded;
    int code;

    change.untapped = b->untapped;
    mutex_lock(&s->changes);
    enum shard_state state = sharded_state(s);
    if (state == SHARD_ACTIVE)
        code = state_change(s, &change, err);
    else
        code = state == SHARD_PLAIN ? ERR_NO_BUCKET
                                    : err_set(err, ERR_CONFLICT, "the bucket is being removed");
    mutex_unlock(&s->changes);
    if (code == ERR_CORRUPT || state == SHARD_DELETING)
        return shard_missing(b, code, err);
    return state == SHARD_PLAIN ? plain_change(b, &change, err) : code;
}

static int sharded_set_versions(struct bucket *b, bool on, struct err *err)
{
    return sharded_change(sharded_bucket_of(b), &(struct state_change){.on = on}, err);
}

static int sharded_set_object_lock(struct bucket *b, struct err *err)
{
    return sharded_change(sharded_bucket_of(b), &(struct state_change){.lock = true}, err);
}

/* --- usage --- */

static int shards_sum(struct bucket *const *shards, size_t count, struct bucket_usage *out,
                      struct err *err)
{
    int code = 0;

    *out = (struct bucket_usage){0};
    for (size_t i = 0; i < count && code == 0; i++) {
        struct bucket_usage one = {0};
        code = shards[i]->ops->usage
                   ? shards[i]->ops->usage(shards[i], &one, err)
                   : err_set(err, ERR_UNSUPPORTED, "a shard's usage is not known");
        out->objects += one.objects;
        out->bytes += one.bytes;
        out->old_versions += one.old_versions;
        out->old_bytes += one.old_bytes;
    }
    return code;
}

/* Sums the usage of the map's shards. If all of them are on one storage, the sum is of one moment,
 * so that an object that moves from shard to shard is counted once. */
static int places_usage(struct sharded_bucket *b, const struct shard_map *m,
                        struct bucket_usage *out, struct err *err)
{
    struct bucket **shards = xcalloc(m->place_count, sizeof(struct bucket *));
    bool together = true;
    size_t count = 0;
    int code = 0;

    while (count < m->place_count && code == 0) {
        code = shard_open(b, &m->places[count], &shards[count], err);
        if (code == 0)
            together &= shards[count++]->storage == shards[0]->storage;
    }
    const struct place_ops *place = together && count ? place_of(shards[0]->storage) : NULL;
    if (code == 0)
        code = place ? place->usage(shards, count, out, err) : shards_sum(shards, count, out, err);
    for (size_t i = 0; i < count; i++)
        shards[i]->ops->unref(shards[i]);
    free(shards);
    return code;
}

/* Sums the usage of the shards of one map. Meanwhile objects may move to a shard that is not in
 * that map. The newest map then names that shard, so the sum is made again. */
static int sharded_usage(struct bucket *bucket, struct bucket_usage *out, struct err *err)
{
    struct sharded_bucket *b = sharded_bucket_of(bucket);
    struct shard_map *now = table_map(b->sharded->table), *before = NULL;
    int code;

    do {
        map_unref(before);
        before = now;
        code = places_usage(b, before, out, err);
        now = table_map(b->sharded->table);
    } while (now->last_number != before->last_number ||
             (code < 0 && now->number != before->number));
    map_unref(before);
    map_unref(now);
    return code;
}

const struct bucket_ops sharded_bucket_ops = {
    .info = sharded_info,
    .usage = sharded_usage,
    .head = sharded_head,
    .get = sharded_get,
    .head_now = sharded_head_now,
    .get_now = sharded_get_now,
    .put = sharded_put,
    .copy = sharded_copy,
    .remove = sharded_remove,
    .list = sharded_list,
    .list_versions = sharded_list_versions,
    .set_meta = sharded_set_meta,
    .upload_begin = sharded_upload_begin,
    .upload_part = sharded_upload_part,
    .upload_part_copy = sharded_upload_part_copy,
    .upload_finish = sharded_upload_finish,
    .upload_abort = sharded_upload_abort,
    .list_parts = sharded_list_parts,
    .object_parts = sharded_object_parts,
    .list_uploads = sharded_list_uploads,
    .get_document = sharded_get_document,
    .set_document = sharded_set_document,
    .set_versions = sharded_set_versions,
    .set_object_lock = sharded_set_object_lock,
    .lend = sharded_lend,
    .untap = sharded_untap,
    .ref = sharded_bucket_ref,
    .unref = sharded_bucket_unref,
};
