/* The collector removes the rows of collections that were deleted (docs/store.md, invariant 3) and
 * collections that have expired (invariant 6). Each store has one collector, whose thread does a
 * round every second and whenever it is woken. */
#include "store/embedded_int.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "os/loop.h"

#include <stdlib.h>

enum {
    ROUND_MS = 1000,
    CHUNK = 256, /* garbage rows or expired keys that one change removes */
    CHUNK_ARENA = 8 * 1024 * 1024,
};

struct collector {
    struct embedded *e;
    struct mutex lock;
    struct cond changed;
    uint64_t asked, begun, done; /* numbers of the latest round asked for, begun, and done */
    /* The last round failed. Only the first failure in a row is logged. */
    bool failing;
    struct loop loop;
};

/* The keys of up to CHUNK garbage rows or expiry rows, in the arena. */
struct chunk {
    struct str keys[CHUNK];
    char types[CHUNK]; /* values of garbage rows: the types of the deleted collections */
    size_t count;
};

static int collector_read_chunk(struct embedded *e, struct arena *arena, struct str from,
                                struct str to, struct chunk *out)
{
    struct run run = {.e = e};
    struct walk w;
    int rc = db_snapshot(&run.view, e->db, NULL);

    if (rc < 0)
        return rc;
    out->count = 0;
    walk_open(&w, &run, from, to, false);
    while (out->count < CHUNK && !arena->failed && walk_next(&w)) {
        out->types[out->count] = w.value.len ? w.value.p[0] : 0;
        out->keys[out->count++] = arena_str(arena, w.key);
    }
    walk_close(&w);
    db_snapshot_free(run.view);
    return run.code < 0 ? run.code : arena_error(arena);
}

static int drop_tag(struct embedded *e, enum row_tag tag, uint64_t version)
{
    struct version_range range;

    version_range(&range, tag, version);
    return db_delete_range(e->db, e->cf, range.from.key, range.to.key, NULL);
}

static int drop_version(struct embedded *e, enum value_type type, uint64_t version)
{
    enum row_tag other, tag;
    int rc;

    if (type < TYPE_LIST || type > TYPE_HASH)
        return ERR_CORRUPT;
    tag = type_tag(type, &other);
    rc = drop_tag(e, tag, version);
    return rc == 0 && other ? drop_tag(e, other, version) : rc;
}

struct chunk_change {
    struct embedded *e;
    const struct chunk *chunk;
};

static int forget_garbage(struct db_tx *tx, void *ctx, struct err *err)
{
    struct chunk_change *change = ctx;

    for (size_t i = 0; i < change->chunk->count; i++)
        db_tx_delete(tx, change->e->cf, change->chunk->keys[i]);
    return 0;
}

/* Removes one chunk of garbage. 1: the chunk was full, so there may be more garbage. */
static int collector_drop_garbage(struct embedded *e, struct arena *arena, struct chunk *chunk)
{
    struct chunk_change change = {e, chunk};
    int rc = collector_read_chunk(e, arena, STR("g"), STR("h"), chunk);

    for (size_t i = 0; rc == 0 && i < chunk->count; i++)
        rc = drop_version(e, (enum value_type)chunk->types[i], be64_read(chunk->keys[i].p + 1));
    if (rc == 0 && chunk->count)
        rc = db_apply(e->db, e->durability, forget_garbage, &change, NULL);
    return rc < 0 ? rc : chunk->count == CHUNK;
}

/* Removes the expired keys of a chunk. Loading a key is enough, because object_load() removes an
 * expired key in a run that writes. An expiry row that does not fit its key is deleted. */
static int expire_change(struct db_tx *tx, void *ctx, struct err *err)
{
    struct chunk_change *change = ctx;
    struct embedded *e = change->e;
    struct run run = {.e = e, .tx = tx, .view = db_tx_view(tx), .err = err};
    struct arena arena = ARENA_INIT(CHUNK_ARENA);
    struct call c = {.run = &run, .arena = &arena};
    struct object o;

    run.now_ms = db_tx_now_ms(tx) + atomic_load(&e->clock_shift);
    for (size_t i = 0; i < change->chunk->count; i++) {
        struct str row = change->chunk->keys[i];
        if (!object_load(&c, member_of(row), &o))
            break;
        if (o.m.type <= TYPE_STRING || o.m.expire_ms != (int64_t)be64_read(row.p + 1))
            run_delete(&run, row);
    }
    if (arena.failed)
        run_fail(&run, ERR_NO_MEMORY);
    arena_release(&arena);
    buf_release(&run.row);
    return run.code;
}

static int collect_expired(struct embedded *e, struct arena *arena, struct chunk *chunk)
{
    struct chunk_change change = {e, chunk};
    struct row to;
    int64_t now_ms = clock_wall_ms() + atomic_load(&e->clock_shift);
    int rc;

    row_prefix(&to, ROW_EXPIRY, (uint64_t)now_ms + 1);
    rc = collector_read_chunk(e, arena, STR("x"), to.key, chunk);
    if (rc == 0 && chunk->count)
        rc = db_apply(e->db, e->durability, expire_change, &change, NULL);
    return rc < 0 ? rc : chunk->count == CHUNK;
}

typedef int collect_fn(struct embedded *e, struct arena *arena, struct chunk *chunk);

static int repeat(struct collector *c, collect_fn *fn)
{
    struct chunk *chunk = xcalloc(1, sizeof(*chunk));
    struct arena arena = ARENA_INIT(0);
    int rc = 1;

    while (rc == 1 && !loop_is_stopping(&c->loop)) {
        arena_reset(&arena);
        rc = fn(c->e, &arena, chunk);
    }
    arena_release(&arena);
    free(chunk);
    return rc;
}

/* Does one round of collecting. Expired keys come first, because removing them makes garbage. */
static void round_of(struct collector *c)
{
    int rc = repeat(c, collect_expired);

    if (rc >= 0)
        rc = repeat(c, collector_drop_garbage);
    if (rc < 0 && rc != ERR_SHUTDOWN && !c->failing)
        log_warn(c->e->log, "store.collector.failed", log_z("error", err_text(rc)));
    c->failing = rc < 0;
}

static struct loop_sleep collector_step(void *ctx)
{
    struct collector *c = ctx;

    mutex_lock(&c->lock);
    uint64_t round = ++c->begun;
    mutex_unlock(&c->lock);
    round_of(c);
    mutex_lock(&c->lock);
    c->done = round;
    bool again = c->asked > round;
    cond_broadcast(&c->changed);
    mutex_unlock(&c->lock);
    return loop_sleep_ms(again ? 0 : ROUND_MS);
}

int collector_new(struct collector **out, struct embedded *e, struct err *err)
{
    struct collector *c = xcalloc(1, sizeof(*c));
    int rc;

    c->e = e;
    mutex_init(&c->lock, "store.collector");
    cond_init(&c->changed);
    rc = loop_start(&c->loop, &(struct loop_options){"store-collector", collector_step, c}, err);
    if (rc < 0) {
        collector_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

void collector_free(struct collector *c)
{
    if (!c)
        return;
    loop_stop(&c->loop);
    cond_release(&c->changed);
    mutex_release(&c->lock);
    free(c);
}

void collector_wake(struct collector *c)
{
    mutex_lock(&c->lock);
    c->asked = c->begun + 1;
    loop_wake(&c->loop);
    mutex_unlock(&c->lock);
}

void collector_wait(struct collector *c)
{
    uint64_t round;

    mutex_lock(&c->lock);
    round = c->asked = c->begun + 1;
    loop_wake(&c->loop);
    while (c->done < round)
        cond_wait(&c->changed, &c->lock);
    mutex_unlock(&c->lock);
}
