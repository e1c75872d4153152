/* Makes maps: the first map of a bucket, and drafts of the next map. */
#include "base/hex.h"
#include "base/ids.h"
#include "shard/map_int.h"

#include <stdlib.h>

static struct str map_random_hex(struct shard_map *m)
{
    unsigned char bytes[SHARD_BY_LEN / 2];
    char text[SHARD_BY_LEN];

    random_bytes(bytes, sizeof(bytes));
    hex_write(text, bytes, sizeof(bytes));
    return map_keep(m, str_n(text, sizeof(text)));
}

struct shard_map *map_first(struct str home, struct str bucket, struct str owner, struct str house,
                            struct str mark, uint64_t number)
{
    struct shard_map *m = map_new();
    struct shard_place *place = map_push_place(m);

    m->number = number;
    m->home = map_keep(m, home);
    m->bucket = map_keep(m, bucket);
    m->owner = map_keep(m, owner);
    m->house = map_keep(m, house);
    m->mark = map_keep(m, mark);
    m->by = map_random_hex(m);
    place->storage = m->home;
    place->bucket = m->bucket;
    map_push_segment(m);
    return m;
}

static void place_copy(struct shard_map *m, struct shard_place *to, const struct shard_place *from)
{
    *to = *from;
    to->storage = map_keep(m, from->storage);
    to->bucket = map_keep(m, from->bucket);
    to->unclean =
        arena_array(&map_body(m)->arena, size_max(from->unclean_count, 1), sizeof(*to->unclean));
    BUG_ON(!to->unclean);
    for (size_t i = 0; i < from->unclean_count; i++)
        to->unclean[i] = map_keep_window(m, &from->unclean[i]);
}

struct shard_map *map_draft(const struct shard_map *old)
{
    struct shard_map *m = map_new();

    *m = *old;
    m->places = NULL;
    m->segments = NULL;
    m->place_count = m->segment_count = 0;
    m->number = old->number + 1;
    m->home = map_keep(m, old->home);
    m->bucket = map_keep(m, old->bucket);
    m->owner = map_keep(m, old->owner);
    m->house = map_keep(m, old->house);
    m->mark = map_keep(m, old->mark);
    m->by = map_random_hex(m);
    m->move.id = map_keep(m, old->move.id);
    m->move.window = map_keep_window(m, &old->move.window);
    m->closed_window = map_keep_window(m, &old->closed_window);
    for (size_t i = 0; i < old->place_count; i++)
        place_copy(m, map_push_place(m), &old->places[i]);
    for (size_t i = 0; i < old->segment_count; i++) {
        struct shard_segment *segment = map_push_segment(m);
        segment->after = map_keep(m, old->segments[i].after);
        segment->place = old->segments[i].place;
    }
    return m;
}

/* --- places --- */

static struct shard_place *map_place_of(struct shard_map *m, uint32_t number)
{
    const struct shard_place *place = map_place(m, number);

    BUG_ON(!place);
    return &m->places[place - m->places];
}

void map_add_place(struct shard_map *m, uint32_t number, struct str storage, struct str bucket)
{
    BUG_ON(number <= m->last_number);
    struct shard_place *place = map_push_place(m);
    place->number = m->last_number = number;
    place->storage = map_keep(m, storage);
    place->bucket = map_keep(m, bucket);
}

void map_remove_place(struct shard_map *m, uint32_t number)
{
    size_t gone = (size_t)(map_place_of(m, number) - m->places);

    BUG_ON(gone == 0); /* place 0 is the bucket itself */
    for (size_t i = 0; i < m->segment_count; i++) {
        BUG_ON(m->segments[i].place == gone);
        if (m->segments[i].place > gone)
            m->segments[i].place--;
    }
    for (size_t i = gone; i + 1 < m->place_count; i++)
        m->places[i] = m->places[i + 1];
    m->place_count--;
}

/* --- unclean windows --- */

/* Joins the first two neighbouring unclean windows that have no key of the place between them. */
static void unclean_join_neighbours(struct shard_map *m, struct shard_place *place)
{
    for (size_t i = 0; i + 1 < place->unclean_count; i++) {
        struct shard_window gap = {place->unclean[i].upto, place->unclean[i + 1].after};
        bool owns = false;
        for (size_t s = map_segment_after(m, gap.after); s < m->segment_count && !owns; s++) {
            if (str_cmp(m->segments[s].after, gap.upto) >= 0)
                break;
            owns = map_place_at(m, s) == place;
        }
        if (owns)
            continue;
        place->unclean[i].upto = place->unclean[i + 1].upto;
        place->unclean_count--;
        for (size_t k = i + 1; k < place->unclean_count; k++)
            place->unclean[k] = place->unclean[k + 1];
        return;
    }
}

/* Adds the window to the sorted list. Windows that touch it become part of it. */
void map_set_unclean(struct shard_map *m, uint32_t number, const struct shard_window *w)
{
    struct shard_place *place = map_place_of(m, number);
    struct shard_window *list =
        arena_array(&map_body(m)->arena, place->unclean_count + 1, sizeof(*list));
    struct shard_window all = *w;
    size_t count = 0, i = 0;

    BUG_ON(!list);
    if (window_is_empty(w))
        return;
    while (i < place->unclean_count && place->unclean[i].upto.len &&
           str_cmp(place->unclean[i].upto, all.after) < 0)
        list[count++] = place->unclean[i++];
    for (; i < place->unclean_count &&
           (all.upto.len == 0 || str_cmp(place->unclean[i].after, all.upto) <= 0);
         i++) {
        if (str_cmp(place->unclean[i].after, all.after) < 0)
            all.after = place->unclean[i].after;
        if (window_compare_upto(place->unclean[i].upto, all.upto) > 0)
            all.upto = place->unclean[i].upto;
    }
    list[count++] = map_keep_window(m, &all);
    while (i < place->unclean_count)
        list[count++] = place->unclean[i++];
    place->unclean = list;
    place->unclean_count = count;
    if (count > SHARD_UNCLEAN_MAX)
        unclean_join_neighbours(m, place);
}

/* Removes the window from the list of unclean windows. An unclean window that contains it is cut in
 * two. */
void map_set_clean(struct shard_map *m, uint32_t number, const struct shard_window *w)
{
    struct shard_place *place = map_place_of(m, number);
    struct shard_window *list =
        arena_array(&map_body(m)->arena, place->unclean_count + 1, sizeof(*list));
    struct shard_window cut = map_keep_window(m, w);
    size_t count = 0;

    BUG_ON(!list);
    for (size_t i = 0; i < place->unclean_count; i++) {
        struct shard_window old = place->unclean[i];
        if (!window_overlaps(&old, &cut)) {
            list[count++] = old;
            continue;
        }
        if (str_cmp(old.after, cut.after) < 0)
            list[count++] = (struct shard_window){old.after, cut.after};
        if (window_compare_upto(old.upto, cut.upto) > 0)
            list[count++] = (struct shard_window){cut.upto, old.upto};
    }
    place->unclean = list;
    place->unclean_count = count;
}

/* --- segments --- */

/* Adds the segment that begins at `after`, unless the segment before it is on the same place. */
static void map_append(struct shard_map *m, struct str after, uint32_t place)
{
    if (m->segment_count && m->segments[m->segment_count - 1].place == place)
        return;
    *map_push_segment(m) = (struct shard_segment){after, place};
}

void map_give(struct shard_map *m, const struct shard_window *w, uint32_t to)
{
    struct shard_segment *old = m->segments;
    size_t old_count = m->segment_count;
    uint32_t place = (uint32_t)(map_place_of(m, to) - m->places);
    struct shard_window given = map_keep_window(m, w);

    if (window_is_empty(w))
        return;
    m->segments = NULL;
    m->segment_count = map_body(m)->segment_cap = 0;
    for (size_t i = 0; i < old_count; i++) {
        struct str begin = old[i].after;
        struct shard_window s = {begin, i + 1 < old_count ? old[i + 1].after : STR_EMPTY};
        if (str_cmp(begin, given.after) < 0)
            map_append(m, begin, old[i].place);
        if (window_overlaps(&s, &given))
            map_append(m, str_cmp(begin, given.after) < 0 ? given.after : begin, place);
        if (window_compare_upto(s.upto, given.upto) > 0)
            map_append(m, str_cmp(begin, given.upto) < 0 ? given.upto : begin, old[i].place);
    }
    free(old);
    map_set_clean(m, to, w);
}

/* --- closing and moving --- */

void map_close(struct shard_map *m, enum shard_closed how, const struct shard_window *w)
{
    bool whole = how == SHARD_CLOSED_DOCUMENTS || how == SHARD_CLOSED_ALL;

    BUG_ON(m->closed != SHARD_OPEN || how == SHARD_OPEN || whole != (w == NULL));
    m->closed = how;
    if (w)
        m->closed_window = map_keep_window(m, w);
}

void map_open(struct shard_map *m)
{
    m->closed = SHARD_OPEN;
    m->closed_window = (struct shard_window){0};
}

void map_begin_move(struct shard_map *m, enum shard_move_kind kind, uint32_t from, uint32_t to,
                    const struct shard_window *w)
{
    BUG_ON(m->move.id.len);
    m->move = (struct shard_move){map_random_hex(m), kind, from, to, map_keep_window(m, w)};
}

void map_end_move(struct shard_map *m)
{
    m->move = (struct shard_move){0};
}

void map_set_house(struct shard_map *m, struct str house)
{
    m->house = map_keep(m, house);
}
