/* Counts changes that were answered to a client and are not recorded yet
 * (replica/tap/unrecorded.h). */
#include "replica/tap/unrecorded.h"
#include "base/clock.h"
#include "coord/gateways.h"
#include "replica/tap/tap_int.h"

#include <poll.h>

enum {
    OWN_MS = 1000,     /* longest wait until this process has recorded its changes, in ms */
    FOREIGN_MS = 5000, /* longest wait for another process, which reports once a second */
    POLL_MS = 100,
};

struct unrecorded_storage {
    struct str name;
    bool clear;
};

/* --- announced changes --- */

struct announced {
    struct str key; /* in the arena */
    uint64_t count;
};

static struct announced *announced_of(struct unrecorded *u, struct str storage, struct str bucket)
{
    struct str key = arena_fmt(&u->a, STR_FMT "\n" STR_FMT, STR_ARG(storage), STR_ARG(bucket));
    struct announced *one = map_get(&u->announced, key);

    if (!one)
        one = arena_new(&u->a, struct announced);
    if (!one || arena_error(&u->a) < 0)
        return NULL;
    if (!one->key.len) {
        one->key = key;
        map_put(&u->announced, one->key, one);
    }
    return one;
}

static bool count_one(void *ctx, const struct task_info *t, const struct intent *in)
{
    struct unrecorded *u = ctx;
    struct announced *one = NULL;

    if (map_get(&u->seen, t->task.id))
        return true;
    struct str id = arena_str(&u->a, t->task.id);
    if (arena_error(&u->a) == 0)
        map_put(&u->seen, id, u);
    if (!in->again) /* the change of an intent's second task is recorded already */
        one = announced_of(u, in->storage, in->what.bucket);
    if (one)
        one->count += in->what.key_count ? in->what.key_count : 1;
    return arena_error(&u->a) == 0;
}

static void count_noted(void *ctx, int slot, const struct journal_entry *e)
{
    struct announced *one = announced_of(ctx, e->storage, e->bucket);

    (void)slot;
    if (one)
        one->count++;
}

/* Counts the changes that have an intent. The journal is counted before the queue, because an entry
 * that leaves the journal meanwhile may have become a task in the queue. */
static int count_announced(struct unrecorded *u, struct err *err)
{
    if (u->o.taps && u->o.taps->journal)
        journal_each(u->o.taps->journal, count_noted, u);
    int code = intents_each(u->o.queue, count_one, u, err);

    return code == 0 && arena_error(&u->a) < 0 ? err_code(err, ERR_NO_MEMORY) : code;
}

/* --- changes of local storages --- */

/* Waits, for some seconds at most, until the process that has the storage says that everything up
 * to `began_ms` is recorded. s->clear is set to whether that process has said so. If no running
 * process has the storage, s->clear stays false. */
static int await_other(struct unrecorded *u, struct unrecorded_storage *s, struct err *err)
{
    struct store *config = u->o.config;
    int64_t settled_ms = 0, now_ms = 0;
    int code = gateways_settled(config, s->name, &settled_ms, &now_ms, err);

    if (u->began_ms == 0) {
        u->began_ms = now_ms;
        u->deadline_ns = clock_mono_ns() + FOREIGN_MS * NS_PER_MS;
    }
    while (code == 0 && settled_ms < u->began_ms && clock_mono_ns() < u->deadline_ns) {
        poll(NULL, 0, POLL_MS);
        code = gateways_settled(config, s->name, &settled_ms, &now_ms, err);
    }
    s->clear = settled_ms >= u->began_ms;
    return code;
}

static int ask_storage(struct unrecorded *u, struct str name, bool *clear, struct err *err)
{
    struct storage *storage = routes_storage(u->o.routes, name);
    int code = 0;

    if (storage && !taps_owns(u->o.taps, storage)) /* the name means another process's storage */
        storage = NULL;

    vec_each (&u->storages, struct unrecorded_storage **, s)
        if (str_eq((*s)->name, name)) {
            *clear = (*s)->clear;
            return 0;
        }
    struct unrecorded_storage *s = arena_new(&u->a, struct unrecorded_storage);
    if (!s)
        return err_code(err, ERR_NO_MEMORY);
    *s = (struct unrecorded_storage){arena_str(&u->a, name), true};
    if (storage && u->o.taps)
        s->clear = taps_await(u->o.taps, storage, u->deadline_ns, NULL) == 0;
    else if (!storage)
        code = await_other(u, s, err);
    if (code == 0)
        vec_push(&u->storages, s);
    *clear = s->clear;
    return code;
}

/* --- all changes --- */

int unrecorded_read(struct unrecorded *u, const struct unrecorded_options *o, struct err *err)
{
    *u = (struct unrecorded){
        .o = *o, .a = ARENA_INIT(0), .deadline_ns = clock_mono_ns() + OWN_MS * NS_PER_MS};
    map_init(&u->announced);
    map_init(&u->seen);
    int code = o->taps ? taps_await(o->taps, NULL, u->deadline_ns, err) : 0;
    if (code < 0 &&
        code != ERR_TIMEOUT) /* after a timeout the intents still exist, and are counted */
        return code;
    return count_announced(u, err);
}

int unrecorded_of(struct unrecorded *u, struct str storage, struct str bucket, uint64_t *out,
                  struct err *err)
{
    struct buf key = {0};
    bool clear = false;
    int code = ask_storage(u, storage, &clear, err);

    if (code < 0)
        return code;
    buf_appendf(&key, STR_FMT "\n" STR_FMT, STR_ARG(storage), STR_ARG(bucket));
    const struct announced *one = map_get(&u->announced, buf_str(&key));
    *out = (one ? one->count : 0) + !clear;
    buf_release(&key);
    return 0;
}

void unrecorded_release(struct unrecorded *u)
{
    vec_release(&u->storages);
    map_release(&u->announced);
    map_release(&u->seen);
    arena_release(&u->a);
}
