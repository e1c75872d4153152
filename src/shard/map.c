/* Maps: making and releasing them, and looking things up in a map. map_edit.c changes drafts,
 * map_check.c checks the invariants, and map_text.c reads and writes the stored form. */
#include "shard/map_int.h"
#include "base/vec.h"

enum { MAP_ARENA_MAX = 1024 * 1024 * 1024 };

/* --- windows --- */

int window_compare_upto(struct str a, struct str b)
{
    if (a.len == 0 || b.len == 0)
        return (a.len == 0) - (b.len == 0);
    return str_cmp(a, b);
}

bool window_has(const struct shard_window *w, struct str key)
{
    return str_cmp(key, w->after) > 0 && (w->upto.len == 0 || str_cmp(key, w->upto) <= 0);
}

bool window_is_empty(const struct shard_window *w)
{
    return w->upto.len > 0 && str_cmp(w->after, w->upto) >= 0;
}

bool window_overlaps(const struct shard_window *a, const struct shard_window *b)
{
    return !window_is_empty(a) && !window_is_empty(b) &&
           (a->upto.len == 0 || str_cmp(b->after, a->upto) < 0) &&
           (b->upto.len == 0 || str_cmp(a->after, b->upto) < 0);
}

/* --- life --- */

struct shard_map *map_new(void)
{
    struct map_body *body = xzalloc(sizeof(*body));

    atomic_init(&body->refs, 1);
    arena_init(&body->arena, MAP_ARENA_MAX);
    return &body->map;
}

struct str map_keep(struct shard_map *m, struct str s)
{
    struct str kept = arena_str(&map_body(m)->arena, s);

    BUG_ON(kept.len != s.len);
    return kept;
}

struct shard_window map_keep_window(struct shard_map *m, const struct shard_window *w)
{
    return (struct shard_window){map_keep(m, w->after), map_keep(m, w->upto)};
}

struct shard_place *map_push_place(struct shard_map *m)
{
    struct map_body *body = map_body(m);

    m->places = vec_grown(m->places, &body->place_cap, m->place_count + 1, sizeof(*m->places));
    m->places[m->place_count] = (struct shard_place){0};
    return &m->places[m->place_count++];
}

struct shard_segment *map_push_segment(struct shard_map *m)
{
    struct map_body *body = map_body(m);

    m->segments =
        vec_grown(m->segments, &body->segment_cap, m->segment_count + 1, sizeof(*m->segments));
    m->segments[m->segment_count] = (struct shard_segment){0};
    return &m->segments[m->segment_count++];
}

struct shard_map *map_ref(struct shard_map *m)
{
    atomic_fetch_add_explicit(&map_body(m)->refs, 1, memory_order_relaxed);
    return m;
}

void map_unref(struct shard_map *m)
{
    if (!m || atomic_fetch_sub_explicit(&map_body(m)->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_release(&map_body(m)->arena);
    free(m->places);
    free(m->segments);
    free(map_body(m));
}

/* --- asking --- */

/* Returns how many segments begin below the key or, if `at` is true, at the key. */
static size_t map_segments_before(const struct shard_map *m, struct str key, bool at)
{
    size_t low = 0, high = m->segment_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(m->segments[middle].after, key) < (at ? 1 : 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t map_segment_of(const struct shard_map *m, struct str key)
{
    size_t before = map_segments_before(m, key, false);

    return before ? before - 1 : 0; /* 0 only for the empty string, which is no key */
}

size_t map_segment_after(const struct shard_map *m, struct str after)
{
    return map_segments_before(m, after, true) - 1; /* the first segment begins at "" */
}

struct shard_window map_window(const struct shard_map *m, size_t segment)
{
    bool last = segment + 1 == m->segment_count;

    return (struct shard_window){m->segments[segment].after,
                                 last ? STR_EMPTY : m->segments[segment + 1].after};
}

const struct shard_place *map_place(const struct shard_map *m, uint32_t number)
{
    size_t low = 0, high = m->place_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->places[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->place_count && m->places[low].number == number ? &m->places[low] : NULL;
}

bool map_is_on(const struct shard_map *m, const struct shard_window *w, uint32_t number)
{
    if (window_is_empty(w))
        return true;
    for (size_t i = map_segment_after(m, w->after); i < m->segment_count; i++) {
        if (i > 0 && w->upto.len && str_cmp(m->segments[i].after, w->upto) >= 0)
            break;
        if (map_place_at(m, i)->number != number)
            return false;
    }
    return true;
}

bool map_is_clean(const struct shard_map *m, const struct shard_window *w, uint32_t number)
{
    const struct shard_place *place = map_place(m, number);

    for (size_t i = 0; place && i < place->unclean_count; i++)
        if (window_overlaps(&place->unclean[i], w))
            return false;
    return true;
}

bool map_closes(const struct shard_map *m, struct str key)
{
    if (m->closed == SHARD_OPEN || m->closed == SHARD_CLOSED_DOCUMENTS)
        return false;
    return m->closed == SHARD_CLOSED_ALL || window_has(&m->closed_window, key);
}

bool map_closes_window(const struct shard_map *m, const struct shard_window *w)
{
    if (m->closed == SHARD_OPEN || m->closed == SHARD_CLOSED_DOCUMENTS)
        return false;
    return m->closed == SHARD_CLOSED_ALL || window_overlaps(&m->closed_window, w);
}
