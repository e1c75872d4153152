/* Buckets of forges: each forge has one of its own (docs/archive.md, F10). */
#include "archive/forge_int.h"
#include "archive/forges.h"
#include "archive/names.h"

#include "base/map.h"

#include <stdlib.h>

/* --- whose a bucket is --- */

struct str forges_bucket_owner(struct forges *f, struct arena *a, struct str bucket,
                               struct str host)
{
    struct str owner = STR_EMPTY;

    mutex_lock(&f->lock);
    for (size_t i = 0; i < f->fixed.len + f->stored.len && !owner.len; i++) {
        const struct forge_entry *e =
            i < f->fixed.len ? f->fixed.items[i] : f->stored.items[i - f->fixed.len];
        if (str_eq(e->forge.bucket, bucket) && !str_ieq(e->forge.host, host) &&
            forges_get_locked(f, e->forge.host) == e)
            owner = arena_str(a, e->forge.host);
    }
    mutex_unlock(&f->lock);
    return owner;
}

int forges_check_bucket(struct forges *f, struct arena *a, struct str host, struct str bucket,
                        struct err *err)
{
    struct str owner = forges_bucket_owner(f, a, bucket, host);

    return owner.len ? err_set(err, ERR_CONFLICT,
                               "the bucket " STR_FMT " is that of the forge " STR_FMT
                               ": choose another bucket for the forge " STR_FMT,
                               STR_ARG(bucket), STR_ARG(owner), STR_ARG(host))
                     : 0;
}

int forges_bucket(struct forges *f, struct arena *a, struct str host, struct str *out,
                  struct err *err)
{
    struct forge_entry *e = forges_get(f, host);

    *out = e ? arena_str(a, e->forge.bucket) : archive_host_bucket(host, a);
    int code = e ? 0 : forges_check_bucket(f, a, host, *out, err);
    forge_entry_unref(e);
    return code == 0 && arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

/* --- entries of the store --- */

/* Orders github.com first, because it replaces the built-in forge, and the others by host. */
static int bucket_order(const void *a, const void *b)
{
    struct str x = (*(struct forge_entry *const *)a)->forge.host;
    struct str y = (*(struct forge_entry *const *)b)->forge.host;
    bool first = str_eq(x, STR("github.com")), second = str_eq(y, STR("github.com"));

    return first || second ? second - first : str_cmp(x, y);
}

/* Gives the bucket to the entry, or marks the entry if another one has the bucket. */
static void bucket_claim(struct forges *f, struct map *owners, struct forge_entry *e)
{
    const struct forge_entry *owner = map_get(owners, e->forge.bucket);

    e->shares_bucket = owner != NULL;
    if (!owner)
        map_put(owners, e->forge.bucket, e);
    else
        log_error(f->log, "archive.forge_bucket", log_s("host", e->forge.host),
                  log_s("bucket", e->forge.bucket), log_s("of", owner->forge.host));
}

void forges_mark_buckets(struct forges *f, struct forge_entry **stored, size_t count)
{
    struct map owners;
    struct forge_entry *built_in = NULL;

    map_init(&owners);
    if (count)
        qsort(stored, count, sizeof(stored[0]), bucket_order);
    for (size_t i = 0; i < f->fixed.len; i++) {
        struct forge_entry *e = f->fixed.items[i];
        if (e->forge.source == FORGE_BUILT_IN)
            built_in = e;
        else
            map_put(&owners, e->forge.bucket, e);
    }
    /* github.com comes first: of the store if it is there, and otherwise the built-in one. */
    size_t i = 0;
    if (built_in && count && str_eq(stored[0]->forge.host, STR("github.com")))
        bucket_claim(f, &owners, stored[i++]);
    if (built_in && (i == 0 || stored[0]->shares_bucket))
        map_put(&owners, built_in->forge.bucket, built_in);
    for (; i < count; i++) {
        const struct forge_entry *fixed =
            forge_entry_among(f->fixed.items, f->fixed.len, stored[i]->forge.host);
        if (!fixed || fixed == built_in)
            bucket_claim(f, &owners, stored[i]);
    }
    map_release(&owners);
}
