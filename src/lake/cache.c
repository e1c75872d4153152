/* The tree cache in memory: a hash table in stripes, which are parts with a lock each. A *slot* of
 * the table holds one open node or one decoded block, and is found by its key. The total memory is
 * bounded, and the least recently used slots of each stripe are dropped first. Blocks may take an
 * eighth of the memory: a missing node costs a read, a missing block only its decoding.
 *
 * All look-ups in one tree use the same few slots. So a use writes as little as possible: memory
 * that one processor writes costs the next processor more than the look-up itself. */
#include "lake/cache.h"

#include "lake/tree_build.h"

#include "base/hash.h"
#include "base/ids.h"
#include "base/list.h"
#include "os/thread.h"

#include <zstd.h>

enum {
    CACHE_STRIPES = 16,
    CACHE_CHAINS = 1024,   /* hash chains of a stripe */
    CACHE_DECODERS = 16,   /* idle decompressors that are kept */
    CACHE_JOBS = 4,        /* idle jobs that are kept, about as many as a small commit uses */
    CACHE_WRITERS = 32,    /* threads that write nodes */
    CACHE_BLOCK_SHARE = 8, /* decoded blocks may take one part in this many of the memory */
    CACHE_KEY_MAX = 1 + NODE_ID_LEN + 512,
};

enum slot_state { SLOT_LOADING, SLOT_READY, SLOT_FAILED };

struct cache_slot {
    struct cache_slot *next; /* next slot of the hash chain */
    struct list use;         /* link in the stripe's list, the newest last; only when ready */
    uint64_t hash;
    /* The users, and the table while it has the slot. Users are added under the stripe's lock. */
    _Atomic(unsigned) refs;
    _Atomic(uint64_t) asked; /* for cache_node_asked(): one bit for each block, modulo 64 */
    enum slot_state state;
    struct err *err;               /* why loading failed */
    const struct cache_kind *kind; /* how to free the value */
    void *value;
    size_t bytes;
    size_t key_len;
    char key[];
};

enum cache_sort { CACHE_NODES, CACHE_BLOCKS, CACHE_SORTS };

/* The functions for one sort of values in the cache: nodes or blocks. */
struct cache_kind {
    enum cache_sort sort;
    int (*load)(void *ctx, void **value, size_t *bytes, struct err *err);
    void (*free)(void *value);
    bool reads; /* load() reads a file, so it may wait */
};

struct cache_stripe {
    struct mutex lock; /* class "lake.cache" */
    uint64_t hits, misses, evicted;
    struct list use[CACHE_SORTS];
    struct cond loaded;
    struct cache_slot *chains[CACHE_CHAINS];
};

struct tree_cache {
    struct cache_stripe stripes[CACHE_STRIPES];
    uint64_t seed;
    size_t max;
    _Atomic(size_t) bytes[CACHE_SORTS];
    _Atomic(unsigned) hand;   /* the stripe that drops a slot next */
    _Atomic(uint64_t) serial; /* serial number of the node that was opened last */
    struct cache_disk *disk;  /* NULL: none */
    struct pool *pool;
    struct mutex decoder_lock; /* class "lake.decoders"; guards `decoders` and `jobs` */
    VEC(void *) decoders;
    VEC(struct tree_job *) jobs; /* idle jobs */
};

int tree_cache_open(struct tree_cache **out, const struct tree_cache_options *o, struct err *err)
{
    struct tree_cache *c = xzalloc(sizeof(*c));
    int code = 0;

    c->seed = random_u64();
    c->max = o->memory_bytes;
    mutex_init(&c->decoder_lock, "lake.decoders");
    for (int i = 0; i < CACHE_STRIPES; i++) {
        mutex_init(&c->stripes[i].lock, "lake.cache");
        cond_init(&c->stripes[i].loaded);
        for (int sort = 0; sort < CACHE_SORTS; sort++)
            list_init(&c->stripes[i].use[sort]);
    }
    c->pool = pool_new("lake-nodes", CACHE_WRITERS, SIZE_MAX / 2, 0);
    if (o->folder && o->disk_bytes)
        code = cache_disk_open(&c->disk, o->folder, o->disk_bytes, o->log, err);
    if (code) {
        tree_cache_close(c);
        return code;
    }
    *out = c;
    return 0;
}

static void slot_free(struct cache_slot *s)
{
    if (s->value)
        s->kind->free(s->value);
    free(s->err);
    free(s);
}

static struct cache_stripe *stripe_of(struct tree_cache *c, uint64_t hash)
{
    return &c->stripes[hash % CACHE_STRIPES];
}

static struct cache_slot **chain_of(struct cache_stripe *s, uint64_t hash)
{
    return &s->chains[hash / CACHE_STRIPES % CACHE_CHAINS];
}

/* Removes the slot from the table. The caller has the lock. Returns true when no user holds the
 * slot. */
static bool slot_forget(struct tree_cache *c, struct cache_stripe *stripe, struct cache_slot *s)
{
    struct cache_slot **at = chain_of(stripe, s->hash);

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->state == SLOT_READY) {
        list_remove(&s->use);
        atomic_fetch_sub(&c->bytes[s->kind->sort], s->bytes);
    }
    return atomic_fetch_sub(&s->refs, 1) == 1;
}

static void stripe_empty(struct tree_cache *c, struct cache_stripe *s, enum cache_sort sort)
{
    list_each_safe (&s->use[sort], struct cache_slot, use, slot) {
        BUG_ON(atomic_load(&slot->refs) != 1);
        slot_forget(c, s, slot);
        slot_free(slot);
    }
}

static size_t cache_bytes(struct tree_cache *c)
{
    return atomic_load(&c->bytes[CACHE_NODES]) + atomic_load(&c->bytes[CACHE_BLOCKS]);
}

void tree_cache_close(struct tree_cache *c)
{
    if (!c)
        return;
    pool_stop(c->pool, UINT64_MAX);
    pool_free(c->pool);
    for (int i = 0; i < CACHE_STRIPES; i++) {
        struct cache_stripe *s = &c->stripes[i];
        stripe_empty(c, s, CACHE_NODES);
        stripe_empty(c, s, CACHE_BLOCKS);
        mutex_release(&s->lock);
        cond_release(&s->loaded);
    }
    cache_disk_close(c->disk);
    vec_each (&c->decoders, void **, zstd)
        ZSTD_freeDCtx(*zstd);
    vec_release(&c->decoders);
    vec_each (&c->jobs, struct tree_job **, job)
        tree_job_free(*job);
    vec_release(&c->jobs);
    mutex_release(&c->decoder_lock);
    free(c);
}

struct pool *cache_pool(struct tree_cache *c)
{
    return c->pool;
}

void tree_cache_stats(struct tree_cache *c, struct tree_cache_stats *out)
{
    *out = (struct tree_cache_stats){.memory_bytes = cache_bytes(c)};
    for (int i = 0; i < CACHE_STRIPES; i++) {
        struct cache_stripe *s = &c->stripes[i];
        mutex_lock(&s->lock);
        out->hits += s->hits;
        out->misses += s->misses;
        out->evicted += s->evicted;
        mutex_unlock(&s->lock);
    }
    if (c->disk)
        out->disk_bytes = cache_disk_bytes(c->disk);
}

/* --- decompressors --- */

void *cache_zstd_take(struct tree_cache *c)
{
    void *zstd = NULL;

    mutex_lock(&c->decoder_lock);
    if (c->decoders.len)
        zstd = vec_pop(&c->decoders);
    mutex_unlock(&c->decoder_lock);
    if (!zstd)
        zstd = ZSTD_createDCtx();
    BUG_ON(!zstd);
    return zstd;
}

void cache_zstd_give(struct tree_cache *c, void *zstd)
{
    mutex_lock(&c->decoder_lock);
    if (c->decoders.len < CACHE_DECODERS) {
        vec_push(&c->decoders, zstd);
        zstd = NULL;
    }
    mutex_unlock(&c->decoder_lock);
    ZSTD_freeDCtx(zstd);
}

/* --- jobs --- */

struct tree_job *cache_job_take(struct tree_cache *c)
{
    mutex_lock(&c->decoder_lock);
    struct tree_job *j = c->jobs.len ? vec_pop(&c->jobs) : NULL;
    mutex_unlock(&c->decoder_lock);
    return j;
}

bool cache_job_give(struct tree_cache *c, struct tree_job *j)
{
    mutex_lock(&c->decoder_lock);
    bool keeps = c->jobs.len < CACHE_JOBS;
    if (keeps)
        vec_push(&c->jobs, j);
    mutex_unlock(&c->decoder_lock);
    return keeps;
}

/* --- slots --- */

/* Returns which sort of slot is dropped next: that of a block, or that of a node. */
static enum cache_sort cache_giver(struct tree_cache *c)
{
    size_t blocks = atomic_load(&c->bytes[CACHE_BLOCKS]);
    bool no_nodes = atomic_load(&c->bytes[CACHE_NODES]) == 0;

    return blocks && (no_nodes || blocks > c->max / CACHE_BLOCK_SHARE) ? CACHE_BLOCKS : CACHE_NODES;
}

/* Drops the oldest slot of one stripe after another until the memory is within its bound. A slot
 * that is in use also leaves the table; its last user frees its memory. */
static void cache_make_room(struct tree_cache *c)
{
    while (cache_bytes(c) > c->max) {
        unsigned hand = atomic_fetch_add(&c->hand, 1);
        struct cache_stripe *stripe = &c->stripes[hand % CACHE_STRIPES];
        struct list *use = &stripe->use[cache_giver(c)];
        struct cache_slot *oldest = NULL;
        mutex_lock(&stripe->lock);
        if (!list_empty(use)) {
            oldest = list_entry(use->next, struct cache_slot, use);
            stripe->evicted++;
            if (!slot_forget(c, stripe, oldest))
                oldest = NULL;
        }
        mutex_unlock(&stripe->lock);
        if (oldest)
            slot_free(oldest);
    }
}

static struct cache_slot *slot_find(struct cache_stripe *stripe, uint64_t hash, struct str key)
{
    struct cache_slot *s = *chain_of(stripe, hash);

    while (s && (s->hash != hash || !str_eq(str_n(s->key, s->key_len), key)))
        s = s->next;
    return s;
}

/* Adds a slot that is being loaded. The caller has the lock; both the table and the caller hold
 * the slot. */
static struct cache_slot *slot_add(struct cache_stripe *stripe, uint64_t hash, struct str key,
                                   const struct cache_kind *kind)
{
    struct cache_slot *s = xzalloc(sizeof(*s) + key.len), **chain = chain_of(stripe, hash);

    s->hash = hash;
    s->kind = kind;
    atomic_init(&s->refs, 2);
    s->key_len = key.len;
    memcpy(s->key, key.p, key.len);
    list_init(&s->use);
    s->next = *chain;
    *chain = s;
    return s;
}

void cache_release(struct cache_slot **hold)
{
    struct cache_slot *s = *hold;

    *hold = NULL;
    if (s && atomic_fetch_sub(&s->refs, 1) == 1)
        slot_free(s);
}

/* Loads the value of a slot that the caller added, and wakes all threads that wait for it. */
static int slot_load(struct tree_cache *c, struct cache_slot *s, void *ctx, struct err *err)
{
    struct cache_stripe *stripe = stripe_of(c, s->hash);
    struct err own = {0};
    void *value = NULL;
    size_t bytes = 0;
    int code = s->kind->load(ctx, &value, &bytes, &own);

    mutex_lock(&stripe->lock);
    if (code == 0) {
        s->value = value;
        s->bytes = bytes + sizeof(*s) + s->key_len;
        s->state = SLOT_READY;
        list_push(&stripe->use[s->kind->sort], &s->use);
        atomic_fetch_add(&c->bytes[s->kind->sort], s->bytes);
    } else {
        s->err = xzalloc(sizeof(*s->err));
        *s->err = own;
        s->err->code = code;
        slot_forget(c, stripe, s);
        s->state = SLOT_FAILED;
    }
    cond_broadcast(&stripe->loaded);
    mutex_unlock(&stripe->lock);
    if (code)
        return err_set(err, code, "%s", own.text);
    cache_make_room(c);
    return 0;
}

/* Whether a caller would have to wait for the value: another thread is loading it, or loading it
 * reads a file. A value that is only computed needs no waiting. */
static bool slot_waits(const struct cache_slot *s, const struct cache_kind *kind)
{
    return s ? s->state == SLOT_LOADING : kind->reads;
}

/* Makes the slot the newest of its stripe. A slot that has left the table stays out: it is in no
 * list when its loading failed, or when it was dropped while its user waited for the load. The
 * caller has the lock. */
static void slot_renew(struct cache_stripe *stripe, struct cache_slot *s)
{
    struct list *use = &stripe->use[s->kind->sort];

    if (list_empty(&s->use) || use->prev == &s->use)
        return;
    list_remove(&s->use);
    list_push(use, &s->use);
}

/* Finds the value of the key, or loads it. If several callers ask at the same time, one loads and
 * the others wait. ERR_AGAIN: `now` is set, and the caller would have to wait. */
static int slot_get(struct cache_slot **out, struct tree_cache *c, struct str key,
                    const struct cache_kind *kind, void *ctx, bool now, struct err *err)
{
    uint64_t hash = hash_xxh3(key, c->seed);
    struct cache_stripe *stripe = stripe_of(c, hash);
    int code = 0;

    *out = NULL;
    mutex_lock(&stripe->lock);
    struct cache_slot *s = slot_find(stripe, hash, key);
    bool found = s != NULL;
    if (now && slot_waits(s, kind)) {
        mutex_unlock(&stripe->lock);
        return ERR_AGAIN;
    }
    if (found) {
        stripe->hits++;
        atomic_fetch_add(&s->refs, 1);
        while (s->state == SLOT_LOADING)
            cond_wait(&stripe->loaded, &stripe->lock);
        slot_renew(stripe, s);
    } else {
        stripe->misses++;
        s = slot_add(stripe, hash, key, kind);
    }
    mutex_unlock(&stripe->lock);
    if (!found)
        code = slot_load(c, s, ctx, err);
    else if (s->state == SLOT_FAILED)
        code = err_set(err, s->err->code, "%s", s->err->text);
    if (code)
        cache_release(&s);
    *out = s;
    return code;
}

/* --- nodes --- */

struct node_load {
    struct tree_store *store;
    const struct node_id *id;
    struct str file; /* the bytes of the file if the caller has them; otherwise the file is read */
};

static struct str node_cache_key(char room[CACHE_KEY_MAX], struct str scope,
                                 const struct node_id *id)
{
    size_t len = size_min(scope.len, CACHE_KEY_MAX - NODE_ID_LEN - 1);

    room[0] = 'n';
    memcpy(room + 1, id->bytes, NODE_ID_LEN);
    if (len)
        memcpy(room + 1 + NODE_ID_LEN, scope.p, len);
    return str_n(room, 1 + NODE_ID_LEN + len);
}

/* Reads the file from its storage. A missing file is ERR_CORRUPT, because a commit or another node
 * refers to it. */
static int node_file_read(const struct node_load *l, struct buf *out, struct err *err)
{
    const struct node_place *place = &l->store->place;
    char text[LAKE_ID_LEN + 1];

    node_id_text(text, l->id);
    int code = place->read(place->ctx, str_z(text), out, err);
    if (code == ERR_NOT_FOUND)
        return node_corrupt(l->id, "is gone", err);
    if (code == 0 && (code = buf_error(out)))
        return node_corrupt(l->id, "is too large", err);
    return code;
}

/* Reads the file of a node on a remote storage: from the disk cache, or else from the storage, and
 * then puts it into the disk cache. */
static int node_file_read_far(const struct node_load *l, struct buf *out, struct err *err)
{
    struct cache_disk *disk = l->store->cache->disk;
    char name[CACHE_NAME_LEN + 1];

    cache_disk_name(name, l->store->scope, l->id);
    if (cache_disk_get(disk, name, out))
        return 0;
    int code = node_file_read(l, out, err);
    if (code == 0)
        cache_disk_put(disk, name, buf_str(out));
    return code;
}

static int node_load_file(const struct node_load *l, struct buf *out, struct err *err)
{
    if (l->file.len) {
        buf_append_str(out, l->file);
        return 0;
    }
    if (l->store->place.is_far && l->store->cache->disk)
        return node_file_read_far(l, out, err);
    return node_file_read(l, out, err);
}

static int node_load(void *ctx, void **value, size_t *bytes, struct err *err)
{
    const struct node_load *l = ctx;
    struct tree_cache *c = l->store->cache;
    struct buf file = BUF_INIT(NODE_FILE_MAX);
    struct node *n = NULL;
    int code = node_load_file(l, &file, err);

    if (code == 0) {
        void *zstd = cache_zstd_take(c);
        code = node_open(&n, l->id, &file, zstd, err);
        cache_zstd_give(c, zstd);
    }
    buf_release(&file);
    if (code)
        return code;
    n->serial = atomic_fetch_add(&c->serial, 1);
    *value = n;
    *bytes = node_memory(n);
    return 0;
}

static void node_unload(void *value)
{
    node_free(value);
}

static const struct cache_kind node_kind = {CACHE_NODES, node_load, node_unload, true};

int cache_node(struct tree_store *t, const struct node_id *id, struct cache_slot **hold,
               const struct node **out, struct err *err)
{
    struct node_load load = {t, id, STR_EMPTY};
    char room[CACHE_KEY_MAX];
    struct str key = node_cache_key(room, t->scope, id);
    int code = slot_get(hold, t->cache, key, &node_kind, &load, t->now, err);

    if (code == 0)
        *out = (*hold)->value;
    return code;
}

bool cache_node_asked(struct cache_slot *node, size_t block)
{
    /* The bits only advise, so they need no order. */
    uint64_t bit = UINT64_C(1) << block % 64;

    return atomic_load_explicit(&node->asked, memory_order_relaxed) & bit ||
           atomic_fetch_or_explicit(&node->asked, bit, memory_order_relaxed) & bit;
}

void cache_written(struct tree_store *t, const struct node_id *id, unsigned level, struct str file)
{
    struct node_load load = {t, id, file};
    struct cache_slot *hold = NULL;
    char room[CACHE_KEY_MAX], name[CACHE_NAME_LEN + 1];
    struct str key = node_cache_key(room, t->scope, id);

    if (t->place.is_far && t->cache->disk) {
        cache_disk_name(name, t->scope, id);
        cache_disk_put(t->cache->disk, name, file);
    }
    if (level > 0 && slot_get(&hold, t->cache, key, &node_kind, &load, false, NULL) == 0)
        cache_release(&hold);
}

/* --- blocks --- */

struct block_load {
    struct tree_cache *cache;
    const struct node *node;
    size_t block;
};

static int block_load(void *ctx, void **value, size_t *bytes, struct err *err)
{
    const struct block_load *l = ctx;
    struct buf *raw = xzalloc(sizeof(*raw));
    void *zstd = cache_zstd_take(l->cache);

    /* All blocks get buffers of one size, so that the heap can use the memory of a dropped block
     * again. */
    buf_reserve(raw, NODE_BLOCK);
    int code = node_block_read(l->node, l->block, zstd, raw, err);

    cache_zstd_give(l->cache, zstd);
    if (code) {
        buf_release(raw);
        free(raw);
        return code;
    }
    *value = raw;
    *bytes = sizeof(*raw) + raw->cap;
    return 0;
}

static void block_unload(void *value)
{
    struct buf *raw = value;

    buf_release(raw);
    free(raw);
}

static const struct cache_kind block_kind = {CACHE_BLOCKS, block_load, block_unload, false};

enum { BLOCK_CACHE_KEY = 17 };

static struct str block_cache_key(char room[BLOCK_CACHE_KEY], const struct node *n, size_t block)
{
    room[0] = 'b';
    le64_write(room + 1, n->serial);
    le64_write(room + 9, block);
    return str_n(room, BLOCK_CACHE_KEY);
}

int cache_block(struct tree_store *t, const struct node *n, size_t block, struct cache_slot **hold,
                struct str *out, struct err *err)
{
    struct block_load load = {t->cache, n, block};
    char room[BLOCK_CACHE_KEY];
    struct str key = block_cache_key(room, n, block);
    int code = slot_get(hold, t->cache, key, &block_kind, &load, t->now, err);

    if (code == 0)
        *out = buf_str((*hold)->value);
    return code;
}

bool cache_block_peek(struct tree_cache *c, const struct node *n, size_t block,
                      struct cache_slot **hold, struct str *out)
{
    char room[BLOCK_CACHE_KEY];
    struct str key = block_cache_key(room, n, block);
    uint64_t hash = hash_xxh3(key, c->seed);
    struct cache_stripe *stripe = stripe_of(c, hash);

    mutex_lock(&stripe->lock);
    struct cache_slot *s = slot_find(stripe, hash, key);
    if (s && s->state == SLOT_READY)
        atomic_fetch_add(&s->refs, 1);
    else
        s = NULL;
    mutex_unlock(&stripe->lock);
    *hold = s;
    if (s)
        *out = buf_str(s->value);
    return s != NULL;
}
