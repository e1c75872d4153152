/* The agreement of processes on the maps of sharded buckets (shard/agree.h). */
#include "shard/agree.h"
#include "base/clock.h"
#include "base/vec.h"
#include "coord/gateways.h"
#include "os/loop.h"
#include "shard/log.h"

#include <stdlib.h>

enum {
    LOOK_MS = 1000,    /* between two looks when nothing is awaited */
    LOOK_SOON_MS = 20, /* while a request keeps this process from holding a map */
    ASK_FIRST_MS = 5,  /* between the first two questions of agree_await(); doubles each time */
    ASK_MOST_MS = 100,
    LOOK_ARENA_MAX = 64 * 1024 * 1024,
};

/* What this process knows and has said about one bucket. */
struct agree_bucket {
    struct list node;
    struct str storage, name; /* allocated */
    struct sharded *sharded;  /* a reference; NULL: this process does not serve the bucket */
    uint64_t least;           /* the greatest map that this process has said to hold */
    /* What was told last: the number, whether a request was named, and since when the store has
     * remembered this process at that time. After a loss all is told again. */
    uint64_t told, told_since_ns;
    bool told_busy;
};

struct agree {
    struct agree_options o;
    char *process;
    struct loop loop;
    struct store_subscription *news;
    struct mutex looking; /* class "shard.looking"; held during agree_look() */
    /* Class "shard.agree"; taken under `looking`. Guards the list and the members of its buckets,
     * except told*, which `looking` guards. Buckets stay in the list. */
    struct mutex lock;
    struct list buckets;
};

/* --- buckets --- */

static struct agree_bucket *agree_find(struct agree *a, struct str storage, struct str name)
{
    list_each (&a->buckets, struct agree_bucket, node, b)
        if (str_eq(b->name, name) && str_eq(b->storage, storage))
            return b;
    return NULL;
}

static struct agree_bucket *agree_bucket_of(struct agree *a, struct str storage, struct str name)
{
    struct agree_bucket *b = agree_find(a, storage, name);

    if (b)
        return b;
    b = xcalloc(1, sizeof(*b));
    b->storage = str_n(str_dup(storage), storage.len);
    b->name = str_n(str_dup(name), name.len);
    list_push(&a->buckets, &b->node);
    return b;
}

/* Tells the store of the map, so that other processes learn of it. They also learn of it when the
 * store is told by the next agree_look(). */
static void agree_published(void *ctx, struct sharded *s, const struct shard_map *m)
{
    struct agree *a = ctx;
    struct buf text = BUF_INIT(SHARD_ENTRY_TEXT_MAX);
    struct shard_entry e = {s->home->name, s->name, s->owner, m->number, STR_EMPTY};
    struct err err = {0};
    uint64_t newest = 0;

    map_write(m, &text);
    if (buf_error(&text) == 0)
        e.text = buf_str(&text);
    if (shard_entry_publish(a->o.config, &e, &newest, &err) < 0)
        log_info(a->o.log, "shard.not_published", log_s("bucket", s->name),
                 log_z("error", err.text));
    buf_release(&text);
}

/* Installs the newest map of the log. */
static int agree_install_head(struct sharded *s, struct err *err)
{
    struct shard_map *head = NULL;
    int code = log_head(s->log, &head, err);

    if (code < 0)
        return code;
    table_install(s->table, head);
    map_unref(head);
    return 0;
}

int agree_add(struct agree *a, struct sharded *s, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    int code = 0;

    mutex_lock(&a->lock);
    struct agree_bucket *b = agree_bucket_of(a, s->home->name, s->name);
    if (m->number < b->least) {
        code = err_code(err, ERR_AGAIN);
    } else {
        BUG_ON(b->sharded);
        b->sharded = sharded_ref(s);
        s->published = agree_published;
        s->published_ctx = a;
    }
    mutex_unlock(&a->lock);
    map_unref(m);
    /* The process may have lost its lease, and got it back, since it read this map. Then nobody has
     * waited for it, and it has not read the log again, because it did not serve the bucket (H3).
     */
    if (code == 0 && (code = agree_install_head(s, err)) < 0)
        agree_remove(a, s);
    return code;
}

void agree_remove(struct agree *a, struct sharded *s)
{
    mutex_lock(&a->lock);
    struct agree_bucket *b = agree_find(a, s->home->name, s->name);
    bool mine = b && b->sharded == s;
    if (mine) {
        b->sharded = NULL;
        s->published = NULL;
    }
    mutex_unlock(&a->lock);
    if (mine)
        sharded_unref(s);
}

/* Returns a reference to what this process serves of the bucket; NULL: nothing. Then it never
 * serves the bucket under a map below `number` any more. */
static struct sharded *agree_serving(struct agree *a, struct agree_bucket *b, uint64_t number)
{
    mutex_lock(&a->lock);
    struct sharded *s = b->sharded ? sharded_ref(b->sharded) : NULL;
    if (!s && number > b->least)
        b->least = number;
    mutex_unlock(&a->lock);
    return s;
}

/* --- reading maps --- */

/* Installs the map as the store has it. ERR_NOT_FOUND, ERR_CORRUPT and others: the store does not
 * have it, and the log has to be read. */
static int agree_install_entry(struct agree *a, struct sharded *s, struct err *err)
{
    struct arena arena = ARENA_INIT(LOOK_ARENA_MAX);
    struct shard_entry e = {0};
    struct shard_map *m = NULL;
    int code = shard_entry_read(a->o.config, &arena, s->home->name, s->name, &e, err);

    if (code == 0)
        code = map_parse(&m, e.text, err);
    if (code == 0 && m->number == e.number && m->id == s->id && str_eq(m->bucket, s->name))
        table_install(s->table, m);
    map_unref(m);
    arena_release(&arena);
    return code;
}

static uint64_t agree_number(struct sharded *s)
{
    struct shard_map *m = table_map(s->table);
    uint64_t number = m->number;

    map_unref(m);
    return number;
}

/* Installs the bucket's map `number`, or a newer one. */
static int agree_catch_up(struct agree *a, struct sharded *s, uint64_t number, struct err *err)
{
    struct err ignored = {0};

    if (agree_number(s) >= number)
        return 0;
    (void)!agree_install_entry(a, s, &ignored);
    return agree_number(s) >= number ? 0 : agree_install_head(s, err);
}

int agree_read_heads(void *ctx, struct err *err)
{
    struct agree *a = ctx;
    VEC(struct sharded *) all = {0};
    int code = 0;

    mutex_lock(&a->lock);
    list_each (&a->buckets, struct agree_bucket, node, b)
        if (b->sharded)
            vec_push(&all, sharded_ref(b->sharded));
    mutex_unlock(&a->lock);
    for (size_t i = 0; i < all.len; i++) {
        if (code == 0)
            code = agree_install_head(all.items[i], err);
        sharded_unref(all.items[i]);
    }
    vec_release(&all);
    return code;
}

/* --- saying which map this process holds; under `looking` --- */

static int agree_tell(struct agree *a, struct agree_bucket *b, uint64_t number, struct str busy,
                      struct err *err)
{
    struct shards_memory memory;
    struct shard_hold h = {b->storage, b->name, str_z(a->process), number, busy};

    a->o.memory(a->o.ctx, &memory);
    if (b->told == number && b->told_busy == (busy.len > 0) && b->told_since_ns == memory.since_ns)
        return 0;
    int code = shard_hold_tell(a->o.config, &h, err);
    if (code == 0) {
        b->told = number;
        b->told_busy = busy.len > 0;
        b->told_since_ns = memory.since_ns;
    }
    return code;
}

/* Says which map of a served bucket this process holds. *waits: a request keeps it from holding the
 * newest one. */
static int agree_tell_served(struct agree *a, struct agree_bucket *b, struct sharded *s,
                             bool *waits, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    struct arena arena = {0};
    struct str busy = STR_EMPTY;

    if (!table_drained(s->table, m->number)) {
        struct shard_window all = {0};
        *waits = true;
        busy = table_smallest_busy(s->table, m->closed == SHARD_OPEN ? &all : &m->closed_window, 0,
                                   &arena);
    }
    int code = *waits && busy.len == 0 ? 0 : agree_tell(a, b, m->number, busy, err);
    arena_release(&arena);
    map_unref(m);
    return code;
}

static int agree_look_at(struct agree *a, struct agree_bucket *b, uint64_t number, bool *waits,
                         struct err *err)
{
    struct sharded *s = agree_serving(a, b, number);
    bool mine = false;

    if (!s)
        return number ? agree_tell(a, b, number, STR_EMPTY, err) : 0;
    /* Without an entry in the store, only the log says which map is the newest. */
    int code = number ? agree_catch_up(a, s, number, err) : agree_install_head(s, err);
    if (code == 0 && agree_number(s) > number) {
        struct shard_map *m = table_map(s->table);
        agree_published(a, s, m);
        map_unref(m);
    }
    if (code == 0)
        code = agree_tell_served(a, b, s, &mine, err);
    *waits |= mine;
    sharded_unref(s);
    return code;
}

static uint64_t agree_entry_of(const struct shard_entry *all, size_t count,
                               const struct agree_bucket *b)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(all[i].bucket, b->name) && str_eq(all[i].storage, b->storage))
            return all[i].number;
    return 0;
}

bool agree_look(struct agree *a, struct err *err)
{
    struct arena arena = ARENA_INIT(LOOK_ARENA_MAX);
    VEC(struct agree_bucket *) buckets = {0};
    struct shard_entry *all = NULL;
    size_t count = 0;
    bool waits = false;

    mutex_lock(&a->looking);
    int code = shard_entry_numbers(a->o.config, &arena, &all, &count, err);
    mutex_lock(&a->lock);
    for (size_t i = 0; code == 0 && i < count; i++)
        agree_bucket_of(a, all[i].storage, all[i].bucket);
    list_each (&a->buckets, struct agree_bucket, node, b)
        vec_push(&buckets, b);
    mutex_unlock(&a->lock);
    /* A failure for one bucket does not keep the others from being looked at. */
    for (size_t i = 0; code == 0 && i < buckets.len; i++) {
        struct agree_bucket *b = buckets.items[i];
        if (agree_look_at(a, b, agree_entry_of(all, count, b), &waits, err) < 0)
            log_info(a->o.log, "shard.not_told", log_s("bucket", b->name),
                     log_z("error", err->text));
    }
    mutex_unlock(&a->looking);
    vec_release(&buckets);
    arena_release(&arena);
    return waits;
}

/* --- waiting for everybody --- */

/* Asks once. 0: every process holds the map. ERR_BUSY: not yet. */
static int agree_ask(struct agree *a, struct sharded *s, uint64_t number, struct arena *arena,
                     struct str *busy, struct err *err)
{
    struct shards_memory memory;
    enum shard_held held = HOLD_WAITS;

    a->o.memory(a->o.ctx, &memory);
    if (!shards_memory_holds(&memory, clock_boot_ns()))
        return err_set(err, ERR_BUSY, "the store has not remembered this process for %d s",
                       SHARDS_FORGOTTEN_MS / MS_PER_S);
    struct shard_hold_question q = {s->home->name,     s->name,      number,
                                    str_z(a->process), &memory.word, GATEWAY_LIFE_S};
    int code = shard_hold_ask(a->o.config, arena, &q, &held, busy, err);
    if (code == 0 && held != HOLD_ALL)
        code = err_set(err, ERR_BUSY, "another process does not hold the newest map yet");
    return code;
}

int agree_await(struct agree *a, struct sharded *s, uint64_t number, uint64_t deadline_ns,
                struct arena *arena, struct str *busy, struct err *err)
{
    uint64_t pause_ms = ASK_FIRST_MS;
    struct err ignored = {0};
    int code = ERR_BUSY;

    *busy = STR_EMPTY;
    for (;;) {
        agree_look(a, &ignored); /* this process counts too */
        if (agree_number(s) != number)
            return err_set(err, ERR_CONFLICT, "the map was changed by another process");
        code = agree_ask(a, s, number, arena, busy, err);
        uint64_t now = clock_mono_ns();
        if (code == 0 || now >= deadline_ns)
            break;
        /* Ends early when there is a newer map. */
        table_await(s->table, number, now + pause_ms * NS_PER_MS);
        pause_ms = size_min(pause_ms * 2, ASK_MOST_MS);
    }
    return code == 0 ? 0 : err_code(err, ERR_BUSY);
}

/* --- the thread --- */

static void agree_message(void *ctx, struct str channel, struct str message)
{
    struct agree *a = ctx;

    loop_wake(&a->loop);
}

static struct loop_sleep agree_step(void *ctx)
{
    struct agree *a = ctx;
    struct err err = {0};

    return loop_sleep_ms(agree_look(a, &err) ? LOOK_SOON_MS : LOOK_MS);
}

int agree_start(struct agree *a, struct err *err)
{
    struct loop_options loop = {.name = "shard-agree", .step = agree_step, .ctx = a};
    int code = loop_start(&a->loop, &loop, err);

    if (code == 0)
        code = store_subscribe(&a->news, a->o.config, SHARDS_CHANNEL, agree_message, a, err);
    if (code < 0)
        agree_stop(a);
    return code;
}

void agree_stop(struct agree *a)
{
    store_unsubscribe(a->news);
    a->news = NULL;
    loop_stop(&a->loop);
}

struct agree *agree_new(const struct agree_options *o)
{
    struct agree *a = xcalloc(1, sizeof(*a));

    a->o = *o;
    a->process = str_dup(o->process);
    mutex_init(&a->looking, "shard.looking");
    mutex_init(&a->lock, "shard.agree");
    list_init(&a->buckets);
    return a;
}

void agree_free(struct agree *a)
{
    if (!a)
        return;
    list_each_safe (&a->buckets, struct agree_bucket, node, b) {
        list_remove(&b->node);
        sharded_unref(b->sharded);
        free((char *)b->storage.p);
        free((char *)b->name.p);
        free(b);
    }
    mutex_release(&a->lock);
    mutex_release(&a->looking);
    free(a->process);
    free(a);
}
