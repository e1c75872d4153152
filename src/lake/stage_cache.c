/* The records of branches that stages read last. */
#include "lake/stage_cache.h"

#include "base/buf.h"
#include "base/hash.h"
#include "os/thread.h"

#include <stdlib.h>

/* Two branches that share a slot displace each other. The longest records are not kept. */
enum { STAGE_SLOTS = 256, STAGE_BYTES_MAX = 4096 };

struct stage_slot {
    struct mutex lock;            /* class "lake.stages"; guards the members below */
    struct buf bytes;             /* partition, name, the repository's record, the branch's */
    size_t partition, name, repo; /* lengths of the first three; `partition` is 0: empty */
};

struct stage_cache {
    struct stage_slot slots[STAGE_SLOTS];
};

struct stage_cache *stage_cache_new(void)
{
    struct stage_cache *c = xzalloc(sizeof(*c));

    for (size_t i = 0; i < STAGE_SLOTS; i++)
        mutex_init(&c->slots[i].lock, "lake.stages");
    return c;
}

void stage_cache_free(struct stage_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < STAGE_SLOTS; i++) {
        buf_release(&c->slots[i].bytes);
        mutex_release(&c->slots[i].lock);
    }
    free(c);
}

static struct stage_slot *stage_slot_of(struct stage_cache *c, struct str partition,
                                        struct str name)
{
    return &c->slots[hash_xxh3(name, hash_xxh3(partition, 0)) % STAGE_SLOTS];
}

/* Called under the lock. */
static bool stage_slot_has(const struct stage_slot *s, struct str partition, struct str name)
{
    return s->partition > 0 && str_eq(str_n(s->bytes.p, s->partition), partition) &&
           str_eq(str_n(s->bytes.p + s->partition, s->name), name);
}

bool stage_cache_get(struct stage_cache *c, struct arena *a, struct str partition, struct str name,
                     struct stage_records *out)
{
    struct stage_slot *s = stage_slot_of(c, partition, name);
    struct str both = STR_EMPTY;
    size_t repo = 0;

    mutex_lock(&s->lock);
    if (stage_slot_has(s, partition, name)) {
        both = arena_str(a, str_skip(buf_str(&s->bytes), s->partition + s->name));
        repo = s->repo;
    }
    mutex_unlock(&s->lock);
    if (!both.p)
        return false;
    *out = (struct stage_records){str_head(both, repo), str_skip(both, repo)};
    return true;
}

void stage_cache_put(struct stage_cache *c, struct str partition, struct str name,
                     const struct stage_records *r)
{
    struct stage_slot *s = stage_slot_of(c, partition, name);

    if (partition.len + name.len + r->repo.len + r->branch.len > STAGE_BYTES_MAX)
        return;
    mutex_lock(&s->lock);
    buf_reset(&s->bytes);
    buf_append_str(&s->bytes, partition);
    buf_append_str(&s->bytes, name);
    buf_append_str(&s->bytes, r->repo);
    buf_append_str(&s->bytes, r->branch);
    s->partition = buf_error(&s->bytes) == 0 ? partition.len : 0;
    s->name = name.len;
    s->repo = r->repo.len;
    mutex_unlock(&s->lock);
}

void stage_cache_forget(struct stage_cache *c, struct str partition, struct str name)
{
    struct stage_slot *s = stage_slot_of(c, partition, name);

    mutex_lock(&s->lock);
    if (stage_slot_has(s, partition, name))
        s->partition = 0;
    mutex_unlock(&s->lock);
}
