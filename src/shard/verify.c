/* Compares a log with the shards. */
#include "shard/verify.h"

#include "shard/discover.h"
#include "shard/keys.h"
#include "shard/log.h"
#include "shard/names.h"

static const char *const verify_kinds[] = {
    [VERIFY_NO_MAP] = "no map", [VERIFY_MAP_MOVED] = "another map", [VERIFY_NO_BUCKET] = "missing",
    [VERIFY_STRAY] = "stray",   [VERIFY_GARBAGE] = "garbage",       [VERIFY_CLOSED] = "closed",
    [VERIFY_STATE] = "state",   [VERIFY_TROUBLE] = "trouble",
};

const char *verify_kind_text(enum verify_finding_kind k)
{
    return verify_kinds[k];
}

struct verify {
    struct shards *s;
    struct storage *home;
    struct str name;
    struct shard_map *map;
    struct bucket_info first; /* state of place 0 */
    struct arena a;
    verify_fn *fn;
    void *ctx;
};

static void verify_tell(struct verify *v, enum verify_finding_kind kind, struct str shard,
                        const char *text)
{
    struct verify_finding f = {.kind = kind, .shard = shard, .text = str_z(text)};

    v->fn(v->ctx, &f);
}

/* --- garbage --- */

/* Reports the keys that one place has in a window that it does not own. */
static int verify_window(struct verify *v, const struct shard_place *p, struct bucket *b,
                         const struct shard_window *w, struct err *err)
{
    struct verify_finding f = {
        .kind = VERIFY_GARBAGE, .shard = p->bucket, .window = *w, .text = STR("keys of others")};
    struct shard_keys walk;
    struct buf first = BUF_INIT(0);
    int code = 0;

    shard_keys_open(&walk, b, w->after);
    while (code == 0 && (code = shard_keys_next(&walk, err)) == 0 &&
           window_has(w, buf_str(&walk.key)))
        if (f.keys++ == 0)
            buf_append_str(&first, buf_str(&walk.key));
    if (f.keys) {
        f.key = buf_str(&first);
        for (size_t i = 0; i < p->unclean_count && !f.known; i++)
            f.known = window_has(&p->unclean[i], f.key);
        v->fn(v->ctx, &f);
    }
    shard_keys_close(&walk);
    buf_release(&first);
    return code == ERR_END ? 0 : code;
}

/* Searches a place for garbage, in each run of segments that other places own. */
static int verify_garbage(struct verify *v, const struct shard_place *p, struct bucket *b,
                          struct err *err)
{
    const struct shard_map *m = v->map;
    int code = 0;

    for (size_t i = 0; i < m->segment_count && code == 0;) {
        struct shard_window w = map_window(m, i);
        if (map_place_at(m, i++)->number == p->number)
            continue;
        while (i < m->segment_count && map_place_at(m, i)->number != p->number)
            w.upto = map_window(m, i++).upto;
        code = verify_window(v, p, b, &w, err);
    }
    return code;
}

/* --- places --- */

static int verify_state(struct verify *v, const struct shard_place *p, struct bucket *b,
                        struct err *err)
{
    struct bucket_info info;
    int code = b->ops->info(b, &v->a, &info, err);

    if (code == 0 && p->number == 0)
        v->first = info;
    else if (code == 0 &&
             (info.versions != v->first.versions || info.object_lock != v->first.object_lock))
        verify_tell(v, VERIFY_STATE, p->bucket,
                    "versions or object lock differ from those of the bucket");
    return code;
}

static int verify_place(struct verify *v, const struct shard_place *p, struct err *err)
{
    struct storage *at = v->home; /* every shard is on its bucket's storage */
    struct bucket *b = NULL;
    int code = at->ops->open_bucket(&b, at, v->map->owner, p->bucket, err);

    if (code == ERR_NO_BUCKET) {
        verify_tell(v, VERIFY_NO_BUCKET, p->bucket, "the shard's bucket does not exist");
        return 0;
    }
    if (code == 0)
        code = verify_state(v, p, b, err);
    if (code == 0)
        code = verify_garbage(v, p, b, err);
    if (b)
        b->ops->unref(b);
    return code;
}

/* Reports buckets that have the names of shards but are not in the map. `map` NULL: there is no
 * map. */
static int verify_strays(struct verify *v, struct err *err)
{
    struct found_shard *all = NULL;
    size_t count = 0;
    int code = discover_shards(v->home, &v->a, v->name, &all, &count, err);

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct shard_place *p = v->map ? map_place(v->map, all[i].number) : NULL;
        if (!p || !str_eq(p->bucket, all[i].name))
            verify_tell(v, VERIFY_STRAY, all[i].name, "no map names this bucket");
    }
    return code;
}

/* --- the log --- */

static int verify_log(struct verify *v, struct sharded *x, struct err *err)
{
    struct str log = shard_map_name(&v->a, v->name);
    struct shard_map *head = NULL;

    mutex_lock(&x->changes); /* needed because a rebuild changes x->log */
    int code = log_head(x->log, &head, err);
    mutex_unlock(&x->changes);
    v->map = table_map(x->table);
    if (code == ERR_NOT_FOUND || code == ERR_NO_BUCKET || code == ERR_CORRUPT) {
        verify_tell(v, VERIFY_NO_MAP, log,
                    "the log has no map; `weir shard rebuild --from-contents` makes one");
        return 0;
    }
    if (code == 0 && head->number > v->map->number)
        verify_tell(v, VERIFY_MAP_MOVED, log,
                    "the log has a newer map; `weir shard rebuild` reads it");
    else if (code == 0 && v->map->closed != SHARD_OPEN && !v->map->move.id.len)
        v->fn(v->ctx, &(struct verify_finding){.kind = VERIFY_CLOSED,
                                               .shard = v->map->bucket,
                                               .window = v->map->closed_window,
                                               .text = STR("a window is closed, and no move is "
                                                           "under way")});
    map_unref(head);
    return code;
}

int shard_verify(struct shards *s, struct storage *home, struct str name, verify_fn *fn, void *ctx,
                 struct err *err)
{
    struct verify v = {
        .s = s, .home = home, .name = name, .a = ARENA_INIT(0), .fn = fn, .ctx = ctx};
    struct sharded *x = shards_find(s, home, name);
    struct err why = {0};
    enum shards_state state = shards_state(s, home, name, &why);
    int code = 0;

    if (x)
        code = verify_log(&v, x, err);
    if (why.code < 0)
        verify_tell(&v, state == SHARDS_BROKEN ? VERIFY_NO_MAP : VERIFY_TROUBLE, name, why.text);
    for (size_t i = 0; v.map && i < v.map->place_count && code == 0; i++)
        code = verify_place(&v, &v.map->places[i], err);
    if (code == 0)
        code = verify_strays(&v, err);
    map_unref(v.map);
    sharded_unref(x);
    arena_release(&v.a);
    return code;
}
