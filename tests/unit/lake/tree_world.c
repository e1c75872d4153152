/* Trees over a place in memory. */
#include "unit/lake/tree_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static int world_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    struct world *w = ctx;
    struct timespec delay = {.tv_nsec = (long)w->delay_ms * 1000 * 1000};

    nanosleep(&delay, NULL);
    mutex_lock(&w->lock);
    struct world_file *f = map_get(&w->files, id);
    w->reads++;
    if (f)
        buf_append_str(out, buf_str(&f->bytes));
    mutex_unlock(&w->lock);
    return f ? 0 : err_code(err, ERR_NOT_FOUND);
}

void world_put(struct world *w, struct str id, struct str bytes)
{
    struct world_file *f = map_get(&w->files, id);

    if (!f) {
        f = xzalloc(sizeof(*f));
        CHECK_INT(id.len, LAKE_ID_LEN);
        memcpy(f->id, id.p, id.len);
        map_put(&w->files, str_z(f->id), f);
    }
    buf_reset(&f->bytes);
    buf_append_str(&f->bytes, bytes);
}

/* Whether thread_low_priority() was called on this thread. Linux has a priority for each thread. */
static bool world_thread_is_low(void)
{
    enum { LOW = 10 };

    return getpriority(PRIO_PROCESS, 0) >= LOW;
}

static int world_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    struct world *w = ctx;
    int code = 0;

    mutex_lock(&w->lock);
    w->low_writes += world_thread_is_low();
    if (w->fail_writes == 0)
        code = err_set(err, ERR_NO_SPACE, "the disk is full");
    else
        world_put(w, id, bytes);
    if (w->fail_writes > 0)
        w->fail_writes--;
    w->writes++;
    mutex_unlock(&w->lock);
    return code;
}

static int world_write_all(void *ctx, const struct node_bytes *files, size_t count, struct err *err)
{
    struct world *w = ctx;
    int code = 0;

    w->calls++;
    for (size_t i = 0; i < count && code == 0; i++)
        code = world_write(ctx, files[i].id, files[i].bytes, err);
    return code;
}

void world_write_together(struct world *w)
{
    w->store.place.write_all = world_write_all;
}

struct world_file *world_file(struct world *w, struct str id)
{
    return map_get(&w->files, id);
}

void world_open_with(struct world *w, const struct tree_cache_options *o)
{
    struct err err = {0};

    *w = (struct world){.fail_writes = -1};
    mutex_init(&w->lock, "test");
    map_init(&w->files);
    CHECK_OK(tree_cache_open(&w->cache, o, &err));
    w->store = (struct tree_store){
        .cache = w->cache,
        .place = {.read = world_read, .write = world_write, .ctx = w},
        .scope = STR("repo-1"),
    };
}

void world_open(struct world *w, size_t memory_bytes)
{
    struct tree_cache_options o = {.memory_bytes = memory_bytes};

    world_open_with(w, &o);
}

void world_forget(struct world *w)
{
    struct tree_cache_options o = {.memory_bytes = 1 << 20};
    struct err err = {0};

    tree_cache_close(w->cache);
    CHECK_OK(tree_cache_open(&w->cache, &o, &err));
    w->store.cache = w->cache;
}

void world_close(struct world *w)
{
    size_t cursor = 0;
    struct str key;
    void *value;

    tree_cache_close(w->cache);
    while (map_next(&w->files, &cursor, &key, &value)) {
        struct world_file *f = value;
        buf_release(&f->bytes);
        free(f);
    }
    map_release(&w->files);
    mutex_release(&w->lock);
}

/* --- sets --- */

struct str set_key(char room[64], unsigned n)
{
    int len = snprintf(room, 64, "folder-%02u/file-%04u", n / 40, n);
    return str_n(room, (size_t)len);
}

struct tree_record set_record(char room[SET_ROOM], unsigned n, uint32_t version)
{
    struct tree_record r = {.key = set_key(room, n)};

    for (int i = 0; i < LAKE_IDENTITY_LEN; i++) /* the same in all keys: only the version counts */
        room[64 + i] = (char)(version * 131 + (unsigned)i * 7);
    r.identity = str_n(room + 64, LAKE_IDENTITY_LEN);
    int len = snprintf(room + 128, SET_ROOM - 128, "data of %u in version %u", n, version);
    r.data = str_n(room + 128, (size_t)len);
    return r;
}

struct set_changes {
    const struct set *from, *to;
    unsigned at;
    char room[SET_ROOM];
};

static int set_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct set_changes *c = ctx;

    for (; c->at < SET_KEYS; c->at++) {
        uint32_t from = c->from ? c->from->versions[c->at] : 0, to = c->to->versions[c->at];
        if (from == to)
            continue;
        *out = set_record(c->room, c->at, to);
        if (to == 0)
            out->identity = out->data = STR_EMPTY;
        c->at++;
        return 0;
    }
    return ERR_END;
}

void set_apply(struct world *w, struct str base, const struct set *from, const struct set *to,
               struct tree_result *out)
{
    struct set_changes c = {.from = from, .to = to};
    struct tree_changes changes = {set_next, &c};
    struct err err = {0};

    CHECK_OK(tree_apply(&w->store, base, &changes, NULL, out, &err));
}

void set_build(struct world *w, const struct set *s, struct tree_result *out)
{
    set_apply(w, STR_EMPTY, NULL, s, out);
}

static void record_check(const struct tree_record *r, unsigned n, uint32_t version)
{
    char room[SET_ROOM];
    struct tree_record want = set_record(room, n, version);

    CHECK_STR(r->key, want.key);
    CHECK_STR(r->identity, want.identity);
    CHECK_STR(r->data, want.data);
}

static void set_check_iter(struct world *w, struct str root, const struct set *s, unsigned from)
{
    struct tree_iter *it;
    struct tree_record r;
    struct err err = {0};
    char room[64];

    CHECK_OK(tree_iter_open(&it, &w->store, root, &err));
    if (from)
        tree_iter_seek(it, set_key(room, from));
    for (unsigned n = from; n < SET_KEYS; n++)
        if (s->versions[n]) {
            CHECK_OK(tree_iter_next(it, &r, &err));
            record_check(&r, n, s->versions[n]);
        }
    CHECK_ERR(tree_iter_next(it, &r, &err), ERR_END);
    CHECK_ERR(tree_iter_next(it, &r, &err), ERR_END);
    tree_iter_close(it);
}

void set_check(struct world *w, struct str root, const struct set *s)
{
    struct arena a = ARENA_INIT(1 << 20);
    struct tree_record r;
    struct tree_stats stats;
    struct err err = {0};
    char room[64];

    set_check_iter(w, root, s, 0);
    for (unsigned from = 1; from < SET_KEYS; from += 97)
        set_check_iter(w, root, s, from);
    for (unsigned n = 0; n < SET_KEYS; n++) {
        int code = tree_get(&w->store, &a, root, set_key(room, n), &r, &err);
        CHECK_INT(code, s->versions[n] ? 0 : ERR_NOT_FOUND);
        if (code == 0)
            record_check(&r, n, s->versions[n]);
        arena_reset(&a);
    }
    CHECK_OK(tree_stats(&w->store, root, &stats, &err));
    CHECK_INT(stats.objects, set_count(s));
    arena_release(&a);
}

size_t set_count(const struct set *s)
{
    size_t count = 0;

    for (unsigned n = 0; n < SET_KEYS; n++)
        count += s->versions[n] != 0;
    return count;
}

uint32_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

void set_random(struct set *s, uint64_t *state, unsigned percent)
{
    for (unsigned n = 0; n < SET_KEYS; n++)
        s->versions[n] = random_next(state) % 100 < percent ? 1 + random_next(state) % 3 : 0;
}

/* Runs of neighbours change more often than single keys, and now and then a whole folder goes. */
void set_change(struct set *s, uint64_t *state, unsigned changes)
{
    while (changes--) {
        unsigned at = random_next(state) % SET_KEYS, run = 1;
        if (random_next(state) % 4 == 0)
            run = 1 + random_next(state) % 60;
        uint32_t version = random_next(state) % 3 ? 1 + random_next(state) % 5 : 0;
        for (unsigned n = at; n < at + run && n < SET_KEYS; n++)
            s->versions[n] = version;
    }
}

unsigned tree_seeds(unsigned usual)
{
    const char *text = getenv("TREE_SEEDS");
    uint64_t seeds;

    return text && str_u64(str_z(text), &seeds) == 0 ? (unsigned)seeds : usual;
}
