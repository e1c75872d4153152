/* When a bucket is split or merged. plan.h has the rules. */
#include "shard/plan.h"

#include "base/clock.h"
#include "base/vec.h"
#include "shard/move_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PLAN_EVERY_MS = MS_PER_S,
    PLAN_SHARE = 5,          /* the thread works for at most a fifth of the time */
    PLAN_HALF_PERCENT = 40,  /* a split in the middle needs halves of at least this share */
    PLAN_MERGE_PERCENT = 50, /* two neighbours with less than this together are merged */
    PLAN_SAMPLE_PERCENT =
        50, /* a shard with more objects than this is sampled, to see later whether its keys grow */
    PLAN_GROWN_PERCENT = 120,   /* and sampled again at this multiple of the keys */
    PLAN_EARLY_PERCENT = 95,    /* a shard with more objects than this is split, if its keys grow */
    PLAN_AGAIN_PERCENT = 101,   /* and, if they do not grow, is checked again at this multiple */
    PLAN_REFUSED_PERCENT = 105, /* after no boundary was found, tried again at this multiple */
    PLAN_GROWING_PERCENT = 90,  /* the keys grow if this share of the new keys is at the end */
};

/* What the plan remembers of a shard. A *sample* is every n-th key of a segment, up to MOVE_SAMPLE
 * keys. */
struct watched {
    uint32_t place;
    uint64_t most;    /* greatest number of objects that this process has seen in the shard */
    uint64_t count;   /* number of keys at the last sample; 0: there was none */
    char *high;       /* owned: the 99th percentile of the keys at that sample */
    uint64_t checked; /* objects of the shard when its keys were last checked for growth */
    /* Objects of the shard when no good boundary was found, or when the shard was split above its
     * greatest key; 0: neither has happened. */
    uint64_t refused;
};

/* What the plan remembers of a bucket. */
struct watch {
    struct list node;
    struct storage *home;
    char *name; /* owned */
    bool seen;  /* found in the current round */
    enum shard_move_kind last;
    uint64_t last_ms; /* clock_mono_ms() time of the last move, of the kind `last`; 0: none */
    VEC(struct watched) places;
    char why[256];
};

struct plan {
    struct plan_options o;
    /* Held while one bucket is checked; class "shard.look". Guards the watches. */
    struct mutex looking;
    struct mutex lock; /* class "shard.plan"; guards `threshold`, `automatic` and every `why` */
    uint64_t threshold;
    bool automatic;
    struct list watches; /* changed under both locks, read under either */
    struct loop loop;
};

/* One check of a bucket. */
struct look {
    struct plan *plan;
    struct sharded *s;
    struct watch *watch;
    struct shard_map *map;
    struct shard_count *counts; /* in the order of map->places */
    uint64_t threshold;
    bool automatic;
    struct arena arena;
};

/* --- watches --- */

static struct watch *watch_find(struct plan *p, const struct sharded *s)
{
    list_each (&p->watches, struct watch, node, w)
        if (w->home == s->home && str_eq(str_z(w->name), s->name))
            return w;
    return NULL;
}

static struct watch *watch_of(struct plan *p, const struct sharded *s)
{
    struct watch *w = watch_find(p, s);

    if (w)
        return w;
    w = xcalloc(1, sizeof(*w));
    w->home = s->home;
    w->name = str_dup(s->name);
    mutex_lock(&p->lock);
    list_push(&p->watches, &w->node);
    mutex_unlock(&p->lock);
    return w;
}

static void watch_free(struct watch *w)
{
    vec_each (&w->places, struct watched *, x)
        free(x->high);
    vec_release(&w->places);
    free(w->name);
    free(w);
}

static struct watched *watched_of(struct watch *w, uint32_t place)
{
    vec_each (&w->places, struct watched *, x)
        if (x->place == place)
            return x;
    vec_push(&w->places, (struct watched){.place = place});
    return vec_last(&w->places);
}

static void look_say(struct look *l, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void look_say(struct look *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    mutex_lock(&l->plan->lock);
    vsnprintf(l->watch->why, sizeof(l->watch->why), fmt, ap);
    mutex_unlock(&l->plan->lock);
    va_end(ap);
}

/* --- counts --- */

int shard_counts(struct sharded *s, struct arena *a, struct shard_count **out, size_t *count,
                 struct err *err)
{
    struct shard_map *m = table_map(s->table);
    struct shard_count *counts = arena_array(a, m->place_count, sizeof(*counts));
    int code = counts ? 0 : err_code(err, ERR_NO_MEMORY);

    for (size_t i = 0; i < m->place_count && code == 0; i++) {
        struct bucket *b = NULL;
        counts[i].place = m->places[i].number;
        code = move_open_place(s, m, counts[i].place, &b, err);
        if (code == 0)
            code = s->place->usage(&b, 1, &counts[i].usage, err);
        if (b)
            b->ops->unref(b);
    }
    if (code == 0) {
        *out = counts;
        *count = m->place_count;
    }
    map_unref(m);
    return code;
}

static uint64_t percent_of(uint64_t n, uint64_t percent)
{
    return n / 100 * percent + n % 100 * percent / 100;
}

/* --- keys that grow --- */

/* Whether nearly all keys that are new since the last sample sort above the keys of that sample. */
static bool keys_grow(const struct watched *x, const struct place_sample *k)
{
    if (x->count == 0 || k->count <= x->count)
        return false;
    uint64_t above = sample_above(k, str_z(x->high));
    uint64_t before = x->count / 100; /* keys that were above the 99th percentile at that sample */
    return above > before && (above - before) * 100 >= (k->count - x->count) * PLAN_GROWING_PERCENT;
}

static void keys_remember(struct watched *x, const struct place_sample *k)
{
    if (k->key_count == 0)
        return;
    free(x->high);
    x->high = str_dup(k->keys[(k->key_count - 1) - (k->key_count - 1) / 100]);
    x->count = k->count;
}

/* Finds the greatest key of a segment. The search begins after the key `from`, which the segment
 * has. */
static int segment_last_key(struct look *l, size_t segment, struct str from, struct str *out,
                            struct err *err)
{
    struct shard_window w = map_window(l->map, segment);
    struct list_options o = {.after = from, .limit = OBJECT_LIST_MAX};
    struct list_result page = {.more = true};
    struct bucket *b = NULL;
    int code = move_open_place(l->s, l->map, map_place_at(l->map, segment)->number, &b, err);

    *out = from;
    while (code == 0 && page.more) {
        code = b->ops->list_versions(b, &l->arena, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++) {
            if (!window_has(&w, page.entries[i].info.key))
                page.more = false;
            else
                *out = page.entries[i].info.key;
        }
        o.after = page.next;
        o.after_version = page.next_version;
    }
    if (b)
        b->ops->unref(b);
    return code;
}

/* --- splits --- */

/* Returns the number of objects of the shard that has this segment. */
static uint64_t look_objects(const struct look *l, size_t segment)
{
    return l->counts[l->map->segments[segment].place].usage.objects;
}

/* Whether a move of this kind may begin: the last move of the opposite kind must be long enough
 * ago. */
static bool look_is_calm(struct look *l, enum shard_move_kind kind)
{
    const struct watch *w = l->watch;
    uint64_t calm = l->plan->o.calm_ms;

    return w->last_ms == 0 || w->last == kind || clock_mono_ms() - w->last_ms >= calm;
}

static int look_begin(struct look *l, enum shard_move_kind kind, struct str at, struct err *err)
{
    struct move_request q = {.kind = kind, .at = at};
    int code = mover_begin(l->plan->o.mover, l->s, &q, err);

    if (code < 0) {
        look_say(l, "the %s could not begin: %s", move_kind_text(kind), err->text);
        return code;
    }
    l->watch->last = kind;
    l->watch->last_ms = clock_mono_ms();
    return 0;
}

static void look_say_refused(struct look *l, const struct watched *x)
{
    look_say(l,
             "shard %u has more than %" PRIu64 " objects, but no boundary gives two halves with "
             "%" PRIu64 " keys",
             x->place, l->threshold, percent_of(l->threshold, PLAN_HALF_PERCENT));
}

/* Finds the boundary for a segment whose keys grow (plan.h says when they do): the greatest key.
 * Empty: the segment ends at that key already. */
static int look_find_end(struct look *l, size_t segment, const struct place_sample *k,
                         struct str *at, struct err *err)
{
    int code = segment_last_key(l, segment, k->keys[k->key_count - 1], at, err);

    if (code == 0 && str_eq(*at, map_window(l->map, segment).upto))
        *at = STR_EMPTY;
    return code;
}

/* Splits a segment above its greatest key if its keys grow. */
static int look_split_end(struct look *l, size_t segment, struct watched *x,
                          const struct place_sample *k, bool *begun, struct err *err)
{
    struct str at = STR_EMPTY;
    int code = keys_grow(x, k) ? look_find_end(l, segment, k, &at, err) : 0;

    if (code < 0 || at.len == 0)
        return code;
    x->refused = look_objects(l, segment); /* the shard keeps all its objects */
    code = look_begin(l, SHARD_SPLIT, at, err);
    *begun = code == 0;
    return code;
}

/* Splits a segment in the middle. */
static int look_split_middle(struct look *l, size_t segment, struct watched *x,
                             const struct place_sample *k, bool *begun, struct err *err)
{
    struct str at = boundary_of_sample(k->keys, k->key_count, &l->arena);
    uint64_t above = sample_above(k, at), least = percent_of(l->threshold, PLAN_HALF_PERCENT);

    if (at.len == 0 || above < least || k->count - above < least) {
        x->refused = look_objects(l, segment);
        look_say_refused(l, x);
        return 0;
    }
    int code = look_begin(l, SHARD_SPLIT, at, err);
    *begun = code == 0;
    return code;
}

/* Splits a segment whose shard has more objects than the threshold. */
static int look_split(struct look *l, size_t segment, struct watched *x, bool *begun,
                      struct err *err)
{
    struct place_sample k = {0};
    int code = move_sample(l->s, l->map, segment, MOVE_SAMPLE, &l->arena, &k, err);

    /* A split above the greatest key leaves the shard as large as it is, so it is only for a shard
     * that has no middle. */
    if (code == 0 && k.key_count)
        code = look_split_middle(l, segment, x, &k, begun, err);
    if (code == 0 && k.key_count && !*begun)
        code = look_split_end(l, segment, x, &k, begun, err);
    return code;
}

/* Splits a segment above its greatest key when the shard is nearly full and the keys grow. So the
 * shard never has more objects than the threshold. */
static int look_split_early(struct look *l, size_t segment, struct watched *x, bool *begun,
                            struct err *err)
{
    struct place_sample k = {0};
    uint64_t objects = look_objects(l, segment);

    if (!l->automatic || !look_is_calm(l, SHARD_SPLIT) ||
        objects < percent_of(x->checked, PLAN_AGAIN_PERCENT) ||
        objects < percent_of(x->refused, PLAN_REFUSED_PERCENT))
        return 0;
    x->checked = objects;
    int code = move_sample(l->s, l->map, segment, MOVE_SAMPLE, &l->arena, &k, err);
    return code < 0 || k.key_count == 0 ? code : look_split_end(l, segment, x, &k, begun, err);
}

/* Samples the keys of a shard that is filling up, so that a later check can tell whether they
 * grow. */
static int look_remember(struct look *l, size_t segment, struct watched *x, struct err *err)
{
    struct place_sample k = {0};
    uint64_t objects = look_objects(l, segment);

    if (objects < percent_of(l->threshold, PLAN_SAMPLE_PERCENT) ||
        objects < percent_of(x->count, PLAN_GROWN_PERCENT))
        return 0;
    int code = move_sample(l->s, l->map, segment, MOVE_SAMPLE, &l->arena, &k, err);
    if (code == 0)
        keys_remember(x, &k);
    return code;
}

static int look_at_segment(struct look *l, size_t segment, bool *begun, struct err *err)
{
    struct watched *x = watched_of(l->watch, map_place_at(l->map, segment)->number);
    uint64_t objects = look_objects(l, segment);

    if (objects <= percent_of(l->threshold, PLAN_EARLY_PERCENT))
        return look_remember(l, segment, x, err);
    if (objects <= l->threshold)
        return look_split_early(l, segment, x, begun, err);
    if (!l->automatic)
        look_say(l, "automatic splits are switched off");
    else if (!look_is_calm(l, SHARD_SPLIT))
        look_say(l, "shards of the bucket were merged a short time ago");
    else if (objects < percent_of(x->refused, PLAN_REFUSED_PERCENT))
        look_say_refused(l, x);
    else
        return look_split(l, segment, x, begun, err);
    return 0;
}

static int look_for_splits(struct look *l, bool *begun, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < l->map->segment_count && code == 0 && !*begun; i++)
        code = look_at_segment(l, i, begun, err);
    return code;
}

/* --- merges --- */

static size_t place_segments(const struct shard_map *m, size_t place)
{
    size_t n = 0;

    for (size_t i = 0; i < m->segment_count; i++)
        n += m->segments[i].place == place;
    return n;
}

/* Whether two neighbours have become so small that they are merged. Shards that were always small
 * are not merged, because somebody has made them on purpose. */
static bool look_may_merge(struct look *l, size_t left, size_t right)
{
    const struct shard_count *a = &l->counts[left], *b = &l->counts[right];
    uint64_t limit = percent_of(l->threshold, PLAN_MERGE_PERCENT);
    uint64_t most = watched_of(l->watch, a->place)->most;

    most += watched_of(l->watch, b->place)->most;
    return place_segments(l->map, left) == 1 && place_segments(l->map, right) == 1 &&
           a->usage.objects + b->usage.objects < limit && most >= limit;
}

static int look_for_merges(struct look *l, struct err *err)
{
    if (!l->automatic || !look_is_calm(l, SHARD_MERGE))
        return 0;
    for (size_t i = 1; i < l->map->segment_count; i++)
        if (look_may_merge(l, l->map->segments[i - 1].place, l->map->segments[i].place))
            return look_begin(l, SHARD_MERGE, l->map->segments[i].after, err);
    return 0;
}

/* --- checking a bucket --- */

/* Whether a move is under way; then nothing else begins. If the mover does not have the move yet,
 * it continues the move from now on. */
static bool look_is_moving(struct look *l)
{
    if (l->map->move.id.len == 0)
        return false;
    move_take_over(l->plan->o.mover, l->s);
    if (l->map->move.kind == SHARD_SPLIT || l->map->move.kind == SHARD_MERGE) {
        l->watch->last = l->map->move.kind;
        l->watch->last_ms = clock_mono_ms();
    }
    return true;
}

static int look_at_map(struct look *l, struct err *err)
{
    size_t count = 0;
    bool begun = false;
    int code = shard_counts(l->s, &l->arena, &l->counts, &count, err);

    if (code < 0 || count != l->map->place_count)
        return code; /* another map was installed meanwhile: the next round checks again */
    for (size_t i = 0; i < count; i++) {
        struct watched *x = watched_of(l->watch, l->counts[i].place);
        if (l->counts[i].usage.objects > x->most)
            x->most = l->counts[i].usage.objects;
    }
    code = look_for_splits(l, &begun, err);
    return code == 0 && !begun ? look_for_merges(l, err) : code;
}

int plan_look(struct plan *p, struct sharded *s, struct err *err)
{
    struct look l = {.plan = p, .s = s};
    char why[200];
    int code = 0;

    mutex_lock(&p->looking);
    l.watch = watch_of(p, s);
    l.watch->seen = true;
    l.map = table_map(s->table);
    mutex_lock(&p->lock);
    l.threshold = l.map->threshold ? l.map->threshold : p->threshold;
    l.automatic = p->automatic;
    l.watch->why[0] = 0;
    mutex_unlock(&p->lock);
    if (l.map->state == SHARD_ACTIVE && !look_is_moving(&l)) {
        if (move_gave_up(p->o.mover, s, p->o.calm_ms, why, sizeof(why)))
            look_say(&l, "%s", why);
        else
            code = look_at_map(&l, err);
    }
    map_unref(l.map);
    arena_release(&l.arena);
    mutex_unlock(&p->looking);
    return code;
}

struct str plan_why(struct plan *p, struct sharded *s, struct arena *a)
{
    mutex_lock(&p->lock);
    const struct watch *w = watch_find(p, s);
    struct str why = arena_str(a, str_z(w ? w->why : ""));
    mutex_unlock(&p->lock);
    return why;
}

/* --- the thread --- */

static void plan_look_at(void *ctx, struct sharded *s)
{
    struct plan *p = ctx;
    struct err err = {0};

    if (loop_is_stopping(&p->loop))
        return;
    if (plan_look(p, s, &err) < 0 && err.code != ERR_BUSY && err.code != ERR_CONFLICT &&
        err.code != ERR_NO_BUCKET)
        log_warn(p->o.log, "shard.not_looked_at", log_s("bucket", s->name),
                 log_z("error", err.text));
}

/* Drops the watches of buckets that were not found in this round. */
static void plan_forget(struct plan *p)
{
    mutex_lock(&p->looking);
    mutex_lock(&p->lock);
    list_each_safe (&p->watches, struct watch, node, w) {
        bool seen = w->seen;
        w->seen = false;
        if (seen)
            continue;
        list_remove(&w->node);
        watch_free(w);
    }
    mutex_unlock(&p->lock);
    mutex_unlock(&p->looking);
}

static struct loop_sleep plan_loop(void *ctx)
{
    struct plan *p = ctx;
    uint64_t began = clock_mono_ms();

    if (p->o.enable)
        p->o.enable(p->o.ctx);
    p->o.list(p->o.ctx, plan_look_at, p);
    if (!loop_is_stopping(&p->loop))
        plan_forget(p);
    /* Reading the keys of a large shard takes seconds. */
    uint64_t rest = (clock_mono_ms() - began) * (PLAN_SHARE - 1);
    return loop_sleep_ms(rest > p->o.every_ms ? rest : p->o.every_ms);
}

/* --- life --- */

struct plan *plan_new(const struct plan_options *o)
{
    struct plan *p = xcalloc(1, sizeof(*p));

    p->o = *o;
    p->threshold = o->threshold;
    p->automatic = o->automatic;
    if (p->o.every_ms == 0)
        p->o.every_ms = PLAN_EVERY_MS;
    if (p->o.calm_ms == 0)
        p->o.calm_ms = MS_PER_HOUR;
    mutex_init(&p->looking, "shard.look");
    mutex_init(&p->lock, "shard.plan");
    list_init(&p->watches);
    return p;
}

int plan_start(struct plan *p, struct err *err)
{
    return loop_start(
        &p->loop, &(struct loop_options){.name = "shard-plan", .step = plan_loop, .ctx = p}, err);
}

void plan_stop(struct plan *p)
{
    loop_stop(&p->loop);
}

void plan_free(struct plan *p)
{
    struct list *node;

    if (!p)
        return;
    while ((node = list_shift(&p->watches)))
        watch_free(list_entry(node, struct watch, node));
    mutex_release(&p->lock);
    mutex_release(&p->looking);
    free(p);
}

void plan_configure(struct plan *p, uint64_t threshold, bool automatic)
{
    mutex_lock(&p->lock);
    p->threshold = threshold;
    p->automatic = automatic;
    mutex_unlock(&p->lock);
    plan_wake(p);
}

void plan_wake(struct plan *p)
{
    loop_wake(&p->loop);
}
