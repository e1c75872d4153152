/* A space over a local storage. */
#include "unit/object/fake_space.h"

#include "unit/object/fake_bucket.h"

/* --- names --- */

void fake_names_init(struct fake_names *n)
{
    *n = (struct fake_names){0};
    mutex_init(&n->lock, "fake names");
}

void fake_names_release(struct fake_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        buf_release(&n->names[i]);
    mutex_release(&n->lock);
}

/* Its index, or the count. */
static size_t fake_names_find(struct fake_names *n, struct str name)
{
    size_t i = 0;

    while (i < n->count && !str_eq(buf_str(&n->names[i]), name))
        i++;
    return i;
}

bool fake_names_has(struct fake_names *n, struct str name)
{
    mutex_lock(&n->lock);
    bool has = fake_names_find(n, name) < n->count;
    mutex_unlock(&n->lock);
    return has;
}

void fake_names_add(struct fake_names *n, struct str name)
{
    mutex_lock(&n->lock);
    BUG_ON(n->count == FAKE_NAMES_MAX);
    n->names[n->count] = (struct buf){0};
    buf_append_str(&n->names[n->count++], name);
    mutex_unlock(&n->lock);
}

void fake_names_remove(struct fake_names *n, struct str name)
{
    mutex_lock(&n->lock);
    size_t i = fake_names_find(n, name);
    if (i < n->count) {
        buf_release(&n->names[i]);
        n->names[i] = n->names[--n->count];
    }
    mutex_unlock(&n->lock);
}

/* --- the storage of the space --- */

static struct fake_space *space_of(struct storage *s)
{
    return container_of(s, struct fake_space, storage);
}

static int space_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err)
{
    struct fake_space *f = space_of(s);
    int code = f->under->ops->create_bucket(f->under, info, err);

    if (code == 0)
        fake_names_add(&f->names, info->name);
    return code;
}

static int space_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct fake_space *f = space_of(s);
    int code = f->under->ops->remove_bucket(f->under, user, name, err);

    if (code == 0)
        fake_names_remove(&f->names, name);
    return code;
}

static int space_open_bucket(struct bucket **out, struct storage *s, struct str user,
                             struct str name, struct err *err)
{
    struct fake_space *f = space_of(s);
    struct fake_parts parts = {.count = 1, .can = s->ops->can, .home = s};
    int code = f->under->ops->open_bucket(&parts.buckets[0], f->under, user, name, err);

    if (code == 0)
        *out = fake_bucket_new(name, &parts);
    return code;
}

static int space_list_buckets(struct storage *s, struct arena *a, struct str owner,
                              struct str after, size_t limit, struct bucket_info **out,
                              size_t *count, struct err *err)
{
    struct fake_space *f = space_of(s);

    return f->under->ops->list_buckets(f->under, a, owner, after, limit, out, count, err);
}

static int space_check(struct storage *s, struct err *err)
{
    struct fake_space *f = space_of(s);

    return f->under->ops->check(f->under, err);
}

static const struct storage_ops space_ops = {
    .kind = "fake space",
    .can = STORAGE_KEEPS_META | STORAGE_NULL_VERSION,
    .create_bucket = space_create_bucket,
    .remove_bucket = space_remove_bucket,
    .open_bucket = space_open_bucket,
    .list_buckets = space_list_buckets,
    .check = space_check,
};

static bool space_has(void *ctx, struct str name)
{
    struct fake_space *s = ctx;

    return fake_names_has(&s->names, name);
}

void fake_space_open(struct fake_space *s, struct storage *under)
{
    *s = (struct fake_space){
        .under = under,
        .storage = {.ops = &space_ops, .name = STR("space"), .generations = under->generations},
        .space = {.kind = "fake", .has = space_has, .ctx = s}};
    s->space.storage = &s->storage;
    fake_names_init(&s->names);
}

void fake_space_close(struct fake_space *s)
{
    fake_names_release(&s->names);
}
