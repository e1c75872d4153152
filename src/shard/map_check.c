/* Checks the invariants of a map. */
#include "object/bucket.h"
#include "shard/map_int.h"
#include "shard/names.h"

static int check_broken(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPT, "the map breaks a rule: %s", what);
}

static bool check_is_hex(struct str s, size_t len)
{
    if (s.len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    return true;
}

static bool check_is_mark(struct str s)
{
    if (s.len != SHARD_MARK_LEN)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '2' && s.p[i] <= '7')))
            return false;
    return true;
}

static bool check_is_window(const struct shard_window *w)
{
    return !window_is_empty(w) && w->after.len <= OBJECT_KEY_MAX && w->upto.len <= OBJECT_KEY_MAX;
}

static int check_head(const struct shard_map *m, struct err *err)
{
    if (m->number == 0 || m->number > INT64_MAX)
        return check_broken(err, "the number is between 1 and 2^63 - 1");
    if (m->home.len == 0 || m->bucket.len == 0)
        return check_broken(err, "home and bucket have names");
    if (m->id == 0)
        return check_broken(err, "the bucket has an id");
    if (!check_is_hex(m->by, SHARD_BY_LEN))
        return check_broken(err, "the writer's mark is 16 hexadecimal digits");
    if (!check_is_mark(m->mark))
        return check_broken(err, "the mark is four characters of a-z2-7");
    if (m->threshold > INT64_MAX)
        return check_broken(err, "the threshold is at most 2^63 - 1");
    if (m->state > SHARD_PLAIN || m->closed > SHARD_CLOSED_ALL || m->move.kind > SHARD_DISABLE)
        return check_broken(err, "state, closing and move have a known kind");
    return 0;
}

static int check_places(const struct shard_map *m, struct err *err)
{
    const struct shard_place *first = m->places;

    if (m->place_count == 0 || m->place_count > SHARD_PLACES_MAX)
        return check_broken(err, "there are 1 to 10,000 shards");
    if (first->number != 0 || !str_eq(first->storage, m->home) || !str_eq(first->bucket, m->bucket))
        return check_broken(err, "shard 0 is the bucket itself");
    for (size_t i = 1; i < m->place_count; i++) {
        const struct shard_place *p = &m->places[i];
        struct str mark;
        uint32_t number;
        if (p->number <= p[-1].number)
            return check_broken(err, "shards are sorted by their numbers");
        if (p->storage.len == 0)
            return check_broken(err, "each shard has a storage");
        if (!shard_name_parse(p->bucket, m->bucket, &mark, &number) || number != p->number)
            return check_broken(err, "each shard has the name of a shard of this bucket");
    }
    if (m->last_number > SHARD_NUMBER_MAX || m->places[m->place_count - 1].number > m->last_number)
        return check_broken(err, "no shard has a number above the greatest one");
    return 0;
}

static int check_segments(const struct shard_map *m, struct err *err)
{
    if (m->segment_count == 0 || m->segment_count > SHARD_SEGMENTS_MAX)
        return check_broken(err, "there are 1 to 20,000 segments");
    if (m->segments[0].after.len)
        return check_broken(err, "the first segment begins at the empty string");
    for (size_t i = 0; i < m->segment_count; i++) {
        const struct shard_segment *s = &m->segments[i];
        if (s->place >= m->place_count)
            return check_broken(err, "each segment is on a shard");
        if (s->after.len > OBJECT_KEY_MAX)
            return check_broken(err, "keys have at most 1,024 bytes");
        if (i && str_cmp(s[-1].after, s->after) >= 0)
            return check_broken(err, "segments are sorted by their beginnings");
        if (i && s[-1].place == s->place)
            return check_broken(err, "neighbouring segments are on different shards");
    }
    return 0;
}

/* Whether the place owns at least one key of the window. */
static bool check_owns(const struct shard_map *m, const struct shard_place *p,
                       const struct shard_window *w)
{
    for (size_t i = map_segment_after(m, w->after); i < m->segment_count; i++) {
        struct shard_window s = map_window(m, i);
        if (!window_overlaps(&s, w))
            return false;
        if (map_place_at(m, i) == p)
            return true;
    }
    return false;
}

static int check_unclean(const struct shard_map *m, const struct shard_place *p, struct err *err)
{
    if (p->unclean_count > SHARD_UNCLEAN_MAX)
        return check_broken(err, "a shard has at most 1,024 unclean windows");
    for (size_t i = 0; i < p->unclean_count; i++) {
        const struct shard_window *w = &p->unclean[i];
        if (!check_is_window(w))
            return check_broken(err, "an unclean window is not empty");
        if (i && (w[-1].upto.len == 0 || str_cmp(w[-1].upto, w->after) > 0))
            return check_broken(err, "unclean windows are sorted and do not overlap");
        if (check_owns(m, p, w))
            return check_broken(err, "no shard owns keys of its unclean windows");
    }
    return 0;
}

static int check_move(const struct shard_map *m, struct err *err)
{
    const struct shard_move *move = &m->move;

    if (move->id.len == 0) {
        if (move->kind || move->from || move->to || move->window.after.len || move->window.upto.len)
            return check_broken(err, "a move has an id");
        return 0;
    }
    if (!check_is_hex(move->id, SHARD_BY_LEN))
        return check_broken(err, "a move's id is 16 hexadecimal digits");
    if (!map_place(m, move->from) || !map_place(m, move->to) || move->from == move->to)
        return check_broken(err, "a move is between two shards");
    if (!check_is_window(&move->window))
        return check_broken(err, "a move's window is not empty");
    return 0;
}

static int check_closed(const struct shard_map *m, struct err *err)
{
    bool window = m->closed == SHARD_CLOSED_COPY || m->closed == SHARD_CLOSED_ADOPT ||
                  m->closed == SHARD_CLOSED_NONE;

    if (window && !check_is_window(&m->closed_window))
        return check_broken(err, "the closed window is not empty");
    if (!window && (m->closed_window.after.len || m->closed_window.upto.len))
        return check_broken(err, "only a closed window has bounds");
    if (m->state == SHARD_PLAIN && (m->segment_count > 1 || m->segments[0].place != 0))
        return check_broken(err, "a plain bucket has all its keys itself");
    return 0;
}

int map_check(const struct shard_map *m, struct err *err)
{
    int code = check_head(m, err);

    if (code == 0)
        code = check_places(m, err);
    if (code == 0)
        code = check_segments(m, err);
    for (size_t i = 0; i < m->place_count && code == 0; i++)
        code = check_unclean(m, &m->places[i], err);
    if (code == 0)
        code = check_move(m, err);
    if (code == 0)
        code = check_closed(m, err);
    return code;
}
