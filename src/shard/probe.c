/* Tests whether a storage keeps the promises that a log of maps needs. */
#include "shard/enable.h"

#include "base/ids.h"

enum { PROBE_WRITERS = 32, PROBE_ROUNDS = 3, PROBE_STACK = 256 * 1024 };

struct probe {
    struct bucket *bucket;
    struct str key;
    _Atomic(int) won, lost, failed; /* won, lost: numbers of writers; failed: the first other
                                       error code */
};

static void probe_write(void *ctx)
{
    struct probe *p = ctx;
    struct arena a = ARENA_INIT(0);
    struct put_options o = {.conditions.if_none_match = STR("*")};
    struct put_result made;
    struct str_reader body;

    str_reader_init(&body, STR("probe"));
    int code =
        p->bucket->ops->put(p->bucket, &a, p->key, &body.reader, body.rest.len, &o, &made, NULL);
    if (code == 0)
        atomic_fetch_add(&p->won, 1);
    else if (code == ERR_PRECONDITION || code == ERR_CONFLICT)
        atomic_fetch_add(&p->lost, 1);
    else
        atomic_store(&p->failed, code);
    arena_release(&a);
}

/* Lets all writers write at once. */
static int probe_race(struct probe *p, struct err *err)
{
    struct thread writers[PROBE_WRITERS] = {0};
    int code = 0;

    for (size_t i = 0; i < PROBE_WRITERS && code == 0; i++)
        code = thread_start(&writers[i], "shard-probe", PROBE_STACK, probe_write, p, err);
    for (size_t i = 0; i < PROBE_WRITERS; i++)
        thread_join(&writers[i]);
    if (code == 0 && atomic_load(&p->failed))
        code = err_code(err, atomic_load(&p->failed));
    if (code == 0 && atomic_load(&p->won) != 1)
        code = err_set(err, ERR_UNSUPPORTED,
                       "%d of %d writers with If-None-Match: * have won, where one must win",
                       atomic_load(&p->won), PROBE_WRITERS);
    return code;
}

static int probe_list(struct probe *p, struct arena *a, struct err *err)
{
    struct list_options o = {.prefix = p->key, .limit = 2};
    struct list_result list = {0};
    int code = p->bucket->ops->list(p->bucket, a, &o, &list, err);

    if (code == 0 && list.count != 1)
        code = err_set(err, ERR_UNSUPPORTED, "a listing does not show what was just written");
    return code;
}

static int probe_round(struct bucket *b, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    unsigned char random[8];
    struct remove_result removed;

    random_bytes(random, sizeof(random));
    struct buf key = BUF_INIT(0);
    buf_append_z(&key, "probe/");
    buf_append_hex(&key, random, sizeof(random));
    struct probe p = {.bucket = b, .key = buf_str(&key)};
    int code = probe_race(&p, err);
    if (code == 0)
        code = probe_list(&p, &a, err);
    int cleaned =
        b->ops->remove(b, &a, p.key, &(struct remove_options){0}, &removed, code == 0 ? err : NULL);
    buf_release(&key);
    arena_release(&a);
    return code < 0 ? code : cleaned;
}

int shard_probe(struct bucket *b, struct err *err)
{
    int code = 0;

    for (int i = 0; i < PROBE_ROUNDS && code == 0; i++)
        code = probe_round(b, err);
    return code;
}
