/* The table of sharded buckets, and the overlay over it. */
#include "shard/shards.h"

#include "base/hash.h"
#include "base/vec.h"
#include "shard/bucket.h"

#include <stdlib.h>

enum { SHARDS_SLOTS = 1024 };

struct shards_entry {
    struct shards_entry *next; /* does not change once the entry is in its slot */
    struct storage *home;
    struct str name;
    _Atomic(int) state;      /* enum shards_state; changed under the lock */
    struct mutex lock;       /* guards the members below */
    struct sharded *sharded; /* a reference; set only in the state SHARDS_SERVED */
    struct sharded *leaving; /* a reference; set from shards_plain(), or from a removal, until
                                shards_gone() */
    struct err why;          /* what is wrong with the bucket; code 0: nothing */
    char memory[];
};

struct shards {
    struct overlay overlay;
    struct shards_options o;
    char *house;
    uint64_t seed;
    struct mutex adding; /* held to add an entry to a slot */
    /* Number of names that the overlay has. While it is 0, has() costs one load from memory. */
    _Atomic(size_t) any;
    _Atomic(struct shards_entry *) slots[SHARDS_SLOTS];
};

/* --- entries --- */

static struct shards_entry *shards_look_up(struct shards *s, const struct storage *home,
                                           struct str name)
{
    size_t slot = hash_xxh3(name, s->seed) % SHARDS_SLOTS;
    struct shards_entry *e = atomic_load_explicit(&s->slots[slot], memory_order_acquire);

    while (e && !(e->home == home && str_eq(e->name, name)))
        e = e->next;
    return e;
}

static struct shards_entry *shards_entry_of(struct shards *s, struct storage *home, struct str name)
{
    mutex_lock(&s->adding);
    struct shards_entry *e = shards_look_up(s, home, name);
    if (!e) {
        _Atomic(struct shards_entry *) *slot = &s->slots[hash_xxh3(name, s->seed) % SHARDS_SLOTS];
        e = xcalloc(1, sizeof(*e) + name.len + 1);
        memcpy(e->memory, name.p, name.len);
        e->name = str_n(e->memory, name.len);
        e->home = home;
        mutex_init(&e->lock, "shard.entry");
        e->next = atomic_load(slot);
        atomic_store_explicit(slot, e, memory_order_release);
    }
    mutex_unlock(&s->adding);
    return e;
}

/* Whether a bucket in this state is one of the overlay's logical buckets. */
static bool state_is_logical(enum shards_state state)
{
    return state != SHARDS_PLAIN && state != SHARDS_CLAIMED;
}

/* Sets the state. Called under the entry's lock. */
static void entry_state(struct shards *s, struct shards_entry *e, enum shards_state state)
{
    enum shards_state before = atomic_load(&e->state);

    if (!state_is_logical(before) && state_is_logical(state))
        atomic_fetch_add(&s->any, 1);
    atomic_store(&e->state, state);
    if (state_is_logical(before) && !state_is_logical(state))
        atomic_fetch_sub(&s->any, 1);
}

/* Changes an entry's state. The entry takes over the reference `x`, which may be NULL. */
static void entry_set(struct shards *s, struct shards_entry *e, enum shards_state state,
                      struct sharded *x, const struct err *why)
{
    mutex_lock(&e->lock);
    struct sharded *old = e->sharded, *left = e->leaving;
    e->sharded = x;
    e->leaving = NULL;
    e->why = why ? *why : (struct err){0};
    entry_state(s, e, state);
    mutex_unlock(&e->lock);
    sharded_unref(old);
    sharded_unref(left);
}

/* Changes an entry that serves `x` to a state in which it does not. Until shards_gone(), `x` is the
 * entry's member `leaving`. */
static void entry_leave(struct shards *s, struct shards_entry *e, const struct sharded *x,
                        enum shards_state state)
{
    mutex_lock(&e->lock);
    if (e->sharded == x) {
        e->leaving = e->sharded;
        e->sharded = NULL;
        e->why = (struct err){0};
        entry_state(s, e, state);
    }
    mutex_unlock(&e->lock);
}

/* Reads an entry: its state, a reference to the sharded bucket if it is served, and what is wrong
 * with the bucket. */
static enum shards_state entry_get(struct shards_entry *e, struct sharded **x, struct err *why)
{
    mutex_lock(&e->lock);
    enum shards_state state = atomic_load(&e->state);
    if (x)
        *x = state == SHARDS_SERVED ? sharded_ref(e->sharded) : NULL;
    if (why)
        *why = e->why;
    mutex_unlock(&e->lock);
    return state;
}

bool shards_claim(struct shards *s, struct storage *home, struct str name, struct err *before)
{
    struct shards_entry *e = shards_entry_of(s, home, name);

    mutex_lock(&e->lock);
    bool plain = atomic_load(&e->state) == SHARDS_PLAIN;
    if (plain)
        entry_state(s, e, SHARDS_CLAIMED);
    *before = e->why;
    mutex_unlock(&e->lock);
    return plain;
}

bool shards_recover(struct shards *s, struct storage *home, struct str name, struct err *before)
{
    struct shards_entry *e = shards_entry_of(s, home, name);

    mutex_lock(&e->lock);
    enum shards_state state = atomic_load(&e->state);
    bool claimed = state == SHARDS_PLAIN || state == SHARDS_BROKEN;
    if (claimed)
        entry_state(s, e, state == SHARDS_PLAIN ? SHARDS_CLAIMED : SHARDS_RECOVERING);
    *before = e->why;
    mutex_unlock(&e->lock);
    return claimed;
}

void shards_seal(struct shards *s, struct storage *home, struct str name)
{
    entry_set(s, shards_entry_of(s, home, name), SHARDS_SEALED, NULL, NULL);
}

void shards_serve(struct shards *s, struct sharded *x, const struct err *why)
{
    entry_set(s, shards_entry_of(s, x->home, x->name), SHARDS_SERVED, sharded_ref(x), why);
}

void shards_break(struct shards *s, struct storage *home, struct str name, const struct err *why)
{
    entry_set(s, shards_entry_of(s, home, name), SHARDS_BROKEN, NULL, why);
}

void shards_forget(struct shards *s, struct storage *home, struct str name, const struct err *why)
{
    entry_set(s, shards_entry_of(s, home, name), SHARDS_PLAIN, NULL, why);
}

void shards_plain(struct shards *s, struct sharded *x)
{
    entry_leave(s, shards_entry_of(s, x->home, x->name), x, SHARDS_CLAIMED);
}

void shards_gone(struct shards *s, struct sharded *x)
{
    struct shards_entry *e = shards_entry_of(s, x->home, x->name);

    mutex_lock(&e->lock);
    bool mine = e->sharded == x || e->leaving == x;
    if (mine) {
        e->sharded = e->leaving = NULL;
        e->why = (struct err){0};
        entry_state(s, e, SHARDS_PLAIN);
    }
    mutex_unlock(&e->lock);
    if (mine)
        sharded_unref(x);
}

void shards_note(struct shards *s, struct sharded *x, const struct err *why)
{
    struct shards_entry *e = shards_entry_of(s, x->home, x->name);

    mutex_lock(&e->lock);
    if (e->sharded == x)
        e->why = why ? *why : (struct err){0};
    mutex_unlock(&e->lock);
}

struct sharded *shards_find(struct shards *s, const struct storage *home, struct str name)
{
    struct shards_entry *e = shards_look_up(s, home, name);
    struct sharded *x = NULL;

    if (e)
        entry_get(e, &x, NULL);
    return x;
}

enum shards_state shards_state(struct shards *s, const struct storage *home, struct str name,
                               struct err *why)
{
    struct shards_entry *e = shards_look_up(s, home, name);

    return e ? entry_get(e, NULL, why) : SHARDS_PLAIN;
}

/* --- listing --- */

static int shards_by_name(const void *one, const void *two)
{
    const struct shards_item *a = one, *b = two;
    int order = str_cmp(a->name, b->name);

    return order ? order : str_cmp(a->home->name, b->home->name);
}

size_t shards_list(struct shards *s, struct shards_item **out)
{
    VEC(struct shards_item) all = {0};

    for (size_t i = 0; i < SHARDS_SLOTS; i++)
        for (struct shards_entry *e = atomic_load(&s->slots[i]); e; e = e->next) {
            struct shards_item item = {.home = e->home, .name = e->name};
            enum shards_state state = entry_get(e, &item.sharded, &item.why);
            item.plain = !state_is_logical(state);
            if (state == SHARDS_SERVED || state == SHARDS_BROKEN || state == SHARDS_RECOVERING ||
                (item.plain && item.why.code < 0))
                vec_push(&all, item);
        }
    if (all.len)
        qsort(all.items, all.len, sizeof(*all.items), shards_by_name);
    *out = all.items;
    return all.len;
}

void shards_list_free(struct shards_item *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sharded_unref(list[i].sharded);
    free(list);
}

/* --- the overlay --- */

static struct shards *shards_of(struct overlay *o)
{
    return container_of(o, struct shards, overlay);
}

static bool shards_has(struct overlay *o, const struct storage *home, struct str name)
{
    struct shards *s = shards_of(o);

    if (atomic_load_explicit(&s->any, memory_order_acquire) == 0)
        return false;
    struct shards_entry *e = shards_look_up(s, home, name);
    return e && state_is_logical(atomic_load_explicit(&e->state, memory_order_acquire));
}

/* Gets a reference to the sharded bucket, or the error with which a request to it fails. ERR_AGAIN:
 * the bucket has just become plain. */
static int shards_get(struct shards *s, struct storage *home, struct str name, struct sharded **out,
                      struct err *err)
{
    struct shards_entry *e = shards_look_up(s, home, name);
    struct err why = {0};

    switch (e ? entry_get(e, out, &why) : SHARDS_PLAIN) {
    case SHARDS_SERVED:
        return 0;
    case SHARDS_SEALED:
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being sharded", STR_ARG(name));
    case SHARDS_BROKEN:
    case SHARDS_RECOVERING:
        return err_set(err, why.code, "%s", why.text);
    case SHARDS_REMOVED:
        return err_code(err, ERR_NO_BUCKET);
    default:
        return ERR_AGAIN;
    }
}

static int shards_open_bucket(struct overlay *o, struct storage *home, struct str user,
                              struct str name, struct bucket **out, struct err *err)
{
    struct sharded *x = NULL;
    int code = shards_get(shards_of(o), home, name, &x, err);

    if (code == ERR_AGAIN)
        return home->ops->open_bucket(out, home, user, name, err);
    if (code < 0)
        return code;
    *out = sharded_bucket(x);
    sharded_unref(x);
    return 0;
}

static int shards_remove_bucket(struct overlay *o, struct storage *home, struct str user,
                                struct str name, struct err *err)
{
    struct shards *s = shards_of(o);
    struct sharded *x = NULL;
    int code = shards_get(s, home, name, &x, err);

    if (code == ERR_AGAIN)
        return home->ops->remove_bucket(home, user, name, err);
    if (code == 0 && !s->o.remove)
        code = err_set(err, ERR_UNSUPPORTED, "the bucket " STR_FMT " is sharded", STR_ARG(name));
    if (code == 0)
        code = s->o.remove(s->o.ctx, x, user, err);
    if (code == 0) /* the name stays in use until shards_gone(), unless that was called already */
        entry_leave(s, shards_look_up(s, home, name), x, SHARDS_REMOVED);
    sharded_unref(x);
    return code;
}

/* Makes a bucket. A name whose removed bucket still has shards cannot be used yet. */
static int shards_make_bucket(struct overlay *o, struct storage *home,
                              const struct bucket_info *info, struct err *err)
{
    struct bucket *there = NULL;
    struct err why = {0};
    int code = 0;

    if (shards_has(o, home, info->name)) {
        code = home->ops->open_bucket(&there, home, info->owner, info->name, err);
        if (code == ERR_NO_BUCKET) {
            shards_state(shards_of(o), home, info->name, &why);
            return why.code < 0 ? err_set(err, why.code, "%s", why.text)
                                : err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being deleted",
                                          STR_ARG(info->name));
        }
        if (code < 0)
            return code;
        there->ops->unref(there);
    }
    return home->ops->create_bucket(home, info, err);
}

/* storage_list_buckets() leaves out the shards. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are the interface's */
static int shards_list_buckets(struct overlay *o, struct storage *home, struct arena *a,
                               struct str owner, struct str after, size_t limit,
                               struct bucket_info **out, size_t *count, struct err *err)
{
    (void)o;
    return home->ops->list_buckets(home, a, owner, after, limit, out, count, err);
}

static const struct overlay_ops shards_overlay_ops = {.has = shards_has,
                                                      .open = shards_open_bucket,
                                                      .remove = shards_remove_bucket,
                                                      .make = shards_make_bucket,
                                                      .list = shards_list_buckets};

/* --- life --- */

struct shards *shards_new(const struct shards_options *o)
{
    struct shards *s = xcalloc(1, sizeof(*s));
    struct hash_key key;

    s->overlay.ops = &shards_overlay_ops;
    s->o = *o;
    s->house = str_dup(o->house);
    s->o.house = str_z(s->house);
    mutex_init(&s->adding, "shard.adding");
    hash_key_random(&key);
    s->seed = key.k0;
    return s;
}

void shards_free(struct shards *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < SHARDS_SLOTS; i++)
        for (struct shards_entry *e = atomic_load(&s->slots[i]), *next; e; e = next) {
            next = e->next;
            sharded_unref(e->sharded);
            sharded_unref(e->leaving);
            mutex_release(&e->lock);
            free(e);
        }
    mutex_release(&s->adding);
    free(s->house);
    free(s);
}

struct overlay *shards_overlay(struct shards *s)
{
    return &s->overlay;
}

const struct shards_options *shards_settings(const struct shards *s)
{
    return &s->o;
}
