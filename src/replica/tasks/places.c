/* Opens the buckets that tasks work on. Buckets of remote storages are kept open for some seconds,
 * because opening them costs a request. A local bucket is opened each time, because its handle
 * becomes invalid when the bucket is deleted. */
#include "replica/tasks/tasks_int.h"
#include "object/overlay.h"

#include "base/clock.h"

#include <stdlib.h>

void place_release(struct place_open *p)
{
    if (p->bucket)
        p->bucket->ops->unref(p->bucket);
    *p = (struct place_open){0};
}

static void place_forget(struct place_kept *k)
{
    place_release(&k->open);
    free(k->name);
    *k = (struct place_kept){0};
}

void places_release(struct tasks *t)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        place_forget(&t->kept[i]);
}

static bool place_is_of(const struct place_kept *k, const struct storage *s, struct str name)
{
    return k->storage == s && str_eq(str_n(k->name, k->len), name);
}

static bool place_find_kept(struct place_open *out, struct tasks *t, struct storage *s,
                            struct str name)
{
    uint64_t now = clock_mono_ms();
    bool found = false;

    mutex_lock(&t->lock);
    for (size_t i = 0; i < PLACES_MAX && !found; i++) {
        struct place_kept *k = &t->kept[i];
        if (!place_is_of(k, s, name) || k->until_ms < now)
            continue;
        *out = k->open;
        out->bucket = k->open.bucket->ops->ref(k->open.bucket);
        found = true;
    }
    mutex_unlock(&t->lock);
    return found;
}

static void place_keep(struct tasks *t, struct storage *s, struct str name,
                       const struct place_open *open)
{
    struct place_kept k = {.storage = s,
                           .name = str_dup(name),
                           .len = name.len,
                           .open = *open,
                           .until_ms = clock_mono_ms() + PLACE_LIFE_MS};

    k.open.bucket = open->bucket->ops->ref(open->bucket);
    mutex_lock(&t->lock);
    size_t at = t->next;
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (place_is_of(&t->kept[i], s, name))
            at = i;
    if (at == t->next)
        t->next = (t->next + 1) % PLACES_MAX;
    struct place_kept old = t->kept[at];
    t->kept[at] = k;
    mutex_unlock(&t->lock);
    place_forget(&old);
}

static int place_open_now(struct place_open *out, struct storage *s, struct str user,
                          struct str bucket, struct err *err)
{
    struct arena a = ARENA_INIT(MIB);
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, user, bucket, err);

    if (code == 0)
        code = b->ops->info(b, &a, &info, err);
    *out = (struct place_open){.bucket = b,
                               .versioned = info.versions == VERSIONS_ON,
                               .foreign = info.owner.len && !str_eq(info.owner, user)};
    if (code < 0)
        place_release(out);
    arena_release(&a);
    return code;
}

int place_open(struct place_open *out, struct tasks *t, struct storage *s, struct str user,
               struct str bucket, bool anew, struct err *err)
{
    struct buf name = {0};
    int code;

    if (storage_can(s, STORAGE_AT_HAND))
        return place_open_now(out, s, user, bucket, err);
    buf_append_str(&name, user);
    buf_append_char(&name, '\0');
    buf_append_str(&name, bucket);
    if (!anew && place_find_kept(out, t, s, buf_str(&name))) {
        buf_release(&name);
        return 0;
    }
    code = place_open_now(out, s, user, bucket, err);
    if (code == 0)
        place_keep(t, s, buf_str(&name), out);
    buf_release(&name);
    return code;
}
