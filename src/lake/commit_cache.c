/* Caches commits that were read recently. */
#include "lake/commit_cache.h"

#include "base/map.h"
#include "lake/record.h"
#include "os/thread.h"

#include <stdlib.h>

struct cached_commit {
    struct list node;
    struct str key, record; /* both in `bytes` */
    struct str tree;        /* in `record`; p NULL: the record is damaged */
    char bytes[];
};

enum { CACHED_KEY_MAX = 1024 };

struct commit_cache {
    struct mutex lock; /* class "lake.commits"; guards the members below */
    struct map by_key;
    struct list used; /* link in the list of use; the most recently used is last */
    size_t bytes, max_bytes;
};

struct commit_cache *commit_cache_new(size_t max_bytes)
{
    struct commit_cache *c = xzalloc(sizeof(*c));

    mutex_init(&c->lock, "lake.commits");
    map_init(&c->by_key);
    list_init(&c->used);
    c->max_bytes = max_bytes;
    return c;
}

static size_t cached_size(const struct cached_commit *e)
{
    return sizeof(*e) + e->key.len + e->record.len;
}

static void cached_drop(struct commit_cache *c, struct cached_commit *e)
{
    list_remove(&e->node);
    map_remove(&c->by_key, e->key);
    c->bytes -= cached_size(e);
    free(e);
}

void commit_cache_free(struct commit_cache *c)
{
    if (!c)
        return;
    list_each_safe (&c->used, struct cached_commit, node, e)
        cached_drop(c, e);
    map_release(&c->by_key);
    mutex_release(&c->lock);
    free(c);
}

/* Writes the key of a commit to `to`: the partition, '/' and the id. A partition has no '/', so no
 * two commits have the same key. Returns an empty string if the key is too long to be cached. */
static struct str cached_key(char to[CACHED_KEY_MAX], struct str partition, struct str id)
{
    size_t len = partition.len + 1 + id.len;

    if (len > CACHED_KEY_MAX || partition.len == 0 || id.len == 0)
        return STR_EMPTY;
    memcpy(to, partition.p, partition.len);
    to[partition.len] = '/';
    memcpy(to + partition.len + 1, id.p, id.len);
    return str_n(to, len);
}

/* Finds the commit and makes it the most recently used one; NULL: the cache does not have it. The
 * caller has the lock. */
static struct cached_commit *cached_use(struct commit_cache *c, struct str partition, struct str id)
{
    char text[CACHED_KEY_MAX];
    struct cached_commit *e = map_get(&c->by_key, cached_key(text, partition, id));

    mutex_assert_held(&c->lock);
    if (e) {
        list_remove(&e->node);
        list_push(&c->used, &e->node);
    }
    return e;
}

bool commit_cache_has(struct commit_cache *c, struct str partition, struct str id)
{
    mutex_lock(&c->lock);
    bool has = cached_use(c, partition, id) != NULL;
    mutex_unlock(&c->lock);
    return has;
}

bool commit_cache_get(struct commit_cache *c, struct arena *a, struct str partition, struct str id,
                      struct str *record)
{
    mutex_lock(&c->lock);
    const struct cached_commit *e = cached_use(c, partition, id);
    *record = e ? arena_str(a, e->record) : STR_EMPTY;
    mutex_unlock(&c->lock);
    return record->p != NULL;
}

bool commit_cache_tree(struct commit_cache *c, struct arena *a, struct str partition, struct str id,
                       struct str *tree)
{
    mutex_lock(&c->lock);
    const struct cached_commit *e = cached_use(c, partition, id);
    *tree = e && e->tree.p ? arena_str(a, e->tree) : STR_EMPTY;
    mutex_unlock(&c->lock);
    return tree->p != NULL;
}

static struct cached_commit *cached_new(struct str key, struct str record)
{
    struct cached_commit *e = xzalloc(sizeof(*e) + key.len + record.len);

    memcpy(e->bytes, key.p, key.len);
    memcpy(e->bytes + key.len, record.p, record.len);
    e->key = str_n(e->bytes, key.len);
    e->record = str_n(e->bytes + key.len, record.len);
    if (lake_commit_read_tree(&e->tree, e->record, NULL) < 0)
        e->tree = STR_EMPTY;
    return e;
}

void commit_cache_put(struct commit_cache *c, struct str partition, struct str id,
                      struct str record)
{
    char text[CACHED_KEY_MAX];
    struct str key = cached_key(text, partition, id);

    if (key.len == 0 || record.len == 0 || record.len > c->max_bytes / 4)
        return;
    struct cached_commit *e = cached_new(key, record);
    mutex_lock(&c->lock);
    struct cached_commit *old = map_get(&c->by_key, key);
    if (old)
        cached_drop(c, old);
    map_put(&c->by_key, e->key, e);
    list_push(&c->used, &e->node);
    c->bytes += cached_size(e);
    while (c->bytes > c->max_bytes)
        cached_drop(c, list_entry(c->used.next, struct cached_commit, node));
    mutex_unlock(&c->lock);
}

size_t commit_cache_bytes(struct commit_cache *c)
{
    mutex_lock(&c->lock);
    size_t bytes = c->bytes;
    mutex_unlock(&c->lock);
    return bytes;
}
