/* How a move begins: finds the boundary, and makes the map that has the move. */
#include "shard/move_int.h"
#include "shard/names.h"
#include "shard/plan.h"

enum { NAME_TRIES = 16 }; /* most numbers to skip because a killed mover has left their shards */

/* Gets the newest map for a new move: nothing may be closed in it, and it must not have a move. */
static int note_begin(struct sharded *s, struct shard_map **out, struct err *err)
{
    int code = move_open_map(s, out, err);

    if (code < 0 || (*out)->move.id.len == 0)
        return code;
    map_unref(*out);
    *out = NULL;
    return err_set(err, ERR_BUSY, "another move of the bucket is under way");
}

/* --- splits --- */

static int split_check(const struct shard_map *m, struct str at, struct err *err)
{
    if (at.len == 0 || at.len > OBJECT_KEY_MAX)
        return err_set(err, ERR_INVALID, "a boundary has 1 to %d bytes", OBJECT_KEY_MAX);
    if (str_eq(m->segments[map_segment_after(m, at)].after, at))
        return err_set(err, ERR_EXISTS, "there is a boundary at " STR_FMT " already", STR_ARG(at));
    if (m->segment_count >= SHARD_SEGMENTS_MAX - 2 || m->place_count >= SHARD_PLACES_MAX ||
        m->last_number >= SHARD_NUMBER_MAX - NAME_TRIES)
        return err_set(err, ERR_TOO_LARGE, "the bucket has too many shards");
    return 0;
}

/* Makes the bucket of a new shard. Skips numbers whose name is in use. */
static int split_make_shard(struct sharded *s, const struct shard_map *m, struct arena *a,
                            uint32_t *number, struct str *name, struct err *err)
{
    struct bucket *logical = NULL;
    int code = move_open_place(s, m, 0, &logical, err);

    if (code < 0)
        return code;
    *number = m->last_number;
    do {
        ++*number;
        *name = shard_bucket_name(a, s->name, m->mark, *number);
        code = s->place->make_shard(logical, *name, err);
    } while (code == ERR_EXISTS && *number < m->last_number + NAME_TRIES);
    logical->ops->unref(logical);
    return code;
}

static int split_publish(struct sharded *s, const struct shard_map *m, struct str at,
                         struct err *err)
{
    size_t segment = map_segment_after(m, at);
    struct shard_window w = {at, map_window(m, segment).upto};
    struct arena a = {0};
    uint32_t number;
    struct str name;

    shard_step_begin("shard.place");
    int code = split_make_shard(s, m, &a, &number, &name, err);
    if (code == 0) {
        struct shard_map *draft = map_draft(m);
        map_add_place(draft, number, m->home, name);
        map_begin_move(draft, SHARD_SPLIT, map_place_at(m, segment)->number, number, &w);
        code = sharded_publish(s, draft, err);
        map_unref(draft);
        if (code < 0 && code != ERR_TIMEOUT && code != ERR_CONFLICT) {
            struct err ignored = {0};
            /* If the removal fails, move_tidy() removes the shard at the next start. */
            (void)!s->place->remove_shard(s->home, name, &ignored);
        }
    }
    if (code == 0)
        shard_step_end("shard.place");
    arena_release(&a);
    return code;
}

int move_note_split(struct sharded *s, struct str at, struct err *err)
{
    struct shard_map *m = NULL;
    int code = note_begin(s, &m, err);

    if (code == 0)
        code = split_check(m, at, err);
    if (code == 0)
        code = split_publish(s, m, at, err);
    map_unref(m);
    return code;
}

/* Counts the keys of a window of the place with this number, and takes a sample of them. */
/* NOLINTNEXTLINE(readability-function-size): the parameters are those of sample() */
static int window_sample(struct sharded *s, const struct shard_map *m, uint32_t number,
                         const struct shard_window *w, size_t samples, struct arena *a,
                         struct place_sample *out, struct err *err)
{
    struct bucket *b = NULL;
    int code = move_open_place(s, m, number, &b, err);

    if (code < 0)
        return code;
    code = s->place->sample(b, w, samples, a, out, err);
    b->ops->unref(b);
    return code;
}

int move_sample(struct sharded *s, const struct shard_map *m, size_t segment, size_t samples,
                struct arena *a, struct place_sample *out, struct err *err)
{
    struct shard_window w = map_window(m, segment);

    return window_sample(s, m, map_place_at(m, segment)->number, &w, samples, a, out, err);
}

uint64_t sample_above(const struct place_sample *x, struct str at)
{
    size_t above = 0;

    for (size_t i = 0; i < x->key_count; i++)
        above += str_cmp(x->keys[i], at) > 0;
    return x->key_count ? x->count * above / x->key_count : 0;
}

int move_find_median(struct sharded *s, struct arena *a, struct str *at, uint64_t *keys,
                     struct err *err)
{
    struct shard_map *m = table_map(s->table);
    struct place_sample most = {0};
    int code = 0;

    for (size_t i = 0; i < m->segment_count && code == 0; i++) {
        struct place_sample x = {0};
        code = move_sample(s, m, i, MOVE_SAMPLE, a, &x, err);
        if (x.count > most.count)
            most = x;
    }
    map_unref(m);
    if (code < 0)
        return code;
    *at = boundary_of_sample(most.keys, most.key_count, a);
    *keys = sample_above(&most, *at);
    if (at->len == 0)
        return err_set(err, ERR_NOT_FOUND, "no shard of the bucket has two keys to split");
    return arena_error(a);
}

int move_count(struct sharded *s, uint64_t *keys, struct err *err)
{
    struct shard_map *m = table_map(s->table);
    struct arena a = {0};
    uint64_t sum = 0;
    int code = 0;

    for (size_t i = 0; i < m->segment_count && code == 0 && m->move.id.len; i++) {
        struct shard_window w = map_window(m, i);
        struct place_sample x = {0};
        uint32_t number = map_place_at(m, i)->number;
        if (!window_overlaps(&w, &m->move.window) || number == m->move.to)
            continue;
        /* The window begins inside the first segment of the split, so only the keys above `after`
         * count. */
        if (str_cmp(w.after, m->move.window.after) < 0)
            w.after = m->move.window.after;
        code = window_sample(s, m, number, &w, 0, &a, &x, err);
        sum += x.count;
    }
    map_unref(m);
    arena_release(&a);
    if (code == 0)
        *keys = sum;
    return code;
}

/* --- merges --- */

/* Counts the objects of the shards of two neighbouring segments. */
static int merge_counts(struct sharded *s, const struct shard_map *m, size_t right,
                        struct bucket_usage out[2], struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < 2 && code == 0; i++) {
        struct bucket *b = NULL;
        code = move_open_place(s, m, map_place_at(m, right - 1 + i)->number, &b, err);
        if (code == 0)
            code = s->place->usage(&b, 1, &out[i], err);
        if (b)
            b->ops->unref(b);
    }
    return code;
}

/* Finds the segment whose beginning is removed by the merge: the segment that begins at the
 * boundary `at`. If `at` is empty, takes the two neighbours with the fewest objects, and of these
 * the right one. *counts is the number of objects of both. */
static int merge_find(struct sharded *s, const struct shard_map *m, struct str at, size_t *right,
                      struct bucket_usage counts[2], struct err *err)
{
    uint64_t fewest = UINT64_MAX;
    int code = 0;

    *right = 0;
    for (size_t i = 1; i < m->segment_count && code == 0; i++) {
        struct bucket_usage two[2] = {{0}};
        if (at.len && !str_eq(m->segments[i].after, at))
            continue;
        code = merge_counts(s, m, i, two, err);
        if (code < 0 || two[0].objects + two[1].objects >= fewest)
            continue;
        fewest = two[0].objects + two[1].objects;
        *right = i;
        memcpy(counts, two, sizeof(two));
    }
    if (code == 0 && *right == 0)
        code = at.len ? err_set(err, ERR_NOT_FOUND, "there is no boundary at " STR_FMT, STR_ARG(at))
                      : err_set(err, ERR_NOT_FOUND, "the bucket has one segment");
    return code;
}

int move_note_merge(struct sharded *s, struct str at, struct err *err)
{
    struct bucket_usage counts[2] = {{0}};
    struct shard_map *m = NULL;
    size_t right = 0;
    int code = note_begin(s, &m, err);

    if (code == 0)
        code = merge_find(s, m, at, &right, counts, err);
    if (code == 0) {
        bool leftwards = counts[1].objects <= counts[0].objects;
        size_t from = leftwards ? right : right - 1, to = leftwards ? right - 1 : right;
        struct shard_window w = map_window(m, from);
        struct shard_map *draft = map_draft(m);
        map_begin_move(draft, SHARD_MERGE, map_place_at(m, from)->number,
                       map_place_at(m, to)->number, &w);
        code = move_publish(s, draft, "shard.place", err);
    }
    map_unref(m);
    return code;
}

/* --- the way back to a plain bucket --- */

int move_note_disable(struct sharded *s, struct err *err)
{
    struct shard_map *m = NULL;
    int code = note_begin(s, &m, err);

    if (code < 0)
        return code;
    uint32_t from = 0;
    for (size_t i = 0; i < m->segment_count && from == 0; i++)
        from = map_place_at(m, i)->number;
    if (from == 0) {
        code = ERR_END;
    } else {
        struct shard_map *draft = map_draft(m);
        map_begin_move(draft, SHARD_DISABLE, from, 0, &(struct shard_window){STR_EMPTY, STR_EMPTY});
        code = move_publish(s, draft, "shard.place", err);
    }
    map_unref(m);
    return code;
}
