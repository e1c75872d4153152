/* Commands on sorted sets, except ranges (cmd_zrange.c). */
#include "store/embedded_int.h"

#include <math.h>

enum zadd_flags {
    ZADD_NX = 1,
    ZADD_XX = 2,
    ZADD_GT = 4,
    ZADD_LT = 8,
    ZADD_CH = 16,
    ZADD_INCR = 32,
};

enum zadd_result { ZADD_NOTHING, ZADD_ADDED, ZADD_UPDATED, ZADD_SAME, ZADD_NAN };

static bool want_zset(struct call *c, struct object *o)
{
    return object_want(c, c->argv[1], TYPE_ZSET, o);
}

/* Returns the flags for ZADD's option words. *first is the index of the first argument after these
 * words, which is the first score. */
static unsigned zadd_parse_words(struct call *c, size_t *first)
{
    static const char *const words[] = {"nx", "xx", "gt", "lt", "ch", "incr"};
    unsigned flags = 0;

    for (*first = 2; *first < c->argc; ++*first) {
        unsigned flag = 0;
        for (size_t w = 0; w < ARRAY_SIZE(words); w++)
            if (arg_is(c, *first, words[w]))
                flag = 1u << w;
        if (!flag)
            break;
        flags |= flag;
    }
    return flags;
}

/* Checks ZADD's option words and the number of arguments after them. False: the call was answered
 * with an error. */
static bool check_words(struct call *c, unsigned flags, size_t first)
{
    size_t left = c->argc - first;
    bool nx = flags & ZADD_NX, gt = flags & ZADD_GT, lt = flags & ZADD_LT;
    const char *problem = NULL;

    if (left == 0 || left % 2)
        problem = "ERR syntax error";
    else if (nx && (flags & ZADD_XX))
        problem = "ERR XX and NX options at the same time are not compatible";
    else if ((gt && nx) || (lt && nx) || (gt && lt))
        problem = "ERR GT, LT, and/or NX options at the same time are not compatible";
    else if ((flags & ZADD_INCR) && left > 2)
        problem = "ERR INCR option supports a single increment-element pair";
    if (problem)
        answer_error(c, "%s", problem);
    return !problem;
}

/* Adds or changes one member, as ZADD does. *score is the score to set; with ZADD_INCR it is the
 * increment, and the resulting score replaces it. */
static enum zadd_result zset_add_one(struct call *c, struct object *o, struct str member,
                                     unsigned flags, double *score)
{
    double old;

    if (!zset_score(c, o, member, &old)) {
        if (flags & ZADD_XX)
            return ZADD_NOTHING;
        zset_put(c, o, member, NULL, *score);
        return ZADD_ADDED;
    }
    if (flags & ZADD_NX)
        return ZADD_NOTHING;
    if (flags & ZADD_INCR)
        *score += old;
    if (isnan(*score))
        return ZADD_NAN;
    if (((flags & ZADD_GT) && *score <= old) || ((flags & ZADD_LT) && *score >= old))
        return ZADD_NOTHING;
    if (*score == old)
        return ZADD_SAME;
    zset_put(c, o, member, &old, *score);
    return ZADD_UPDATED;
}

static void add_pairs(struct call *c, unsigned flags, size_t first, double *scores)
{
    struct object o;
    int64_t added = 0, updated = 0;
    enum zadd_result result = ZADD_NOTHING;

    if (!want_zset(c, &o))
        return;
    if (o.m.type == TYPE_NONE && !(flags & ZADD_XX))
        object_create(c, &o, TYPE_ZSET);
    for (size_t i = 0; o.m.type != TYPE_NONE && first + 2 * i < c->argc; i++) {
        result = zset_add_one(c, &o, c->argv[first + 2 * i + 1], flags, &scores[i]);
        added += result == ZADD_ADDED;
        updated += result == ZADD_UPDATED;
    }
    if (added)
        object_save(c, &o);
    if (result == ZADD_NAN)
        answer_error(c, "ERR resulting score is not a number (NaN)");
    else if (!(flags & ZADD_INCR))
        answer_int(c, flags & ZADD_CH ? added + updated : added);
    else if (result != ZADD_NOTHING)
        *c->reply = as_bulk(double_print(c->arena, scores[0]));
}

static void zset_add_pairs(struct call *c, unsigned flags, size_t first)
{
    size_t count = (c->argc - first) / 2;
    double *scores = arena_array(c->arena, count, sizeof(*scores));

    for (size_t i = 0; i < count; i++)
        if (!scores || !arg_double(c, first + 2 * i, &scores[i]))
            return;
    add_pairs(c, flags, first, scores);
}

void cmd_zadd(struct call *c)
{
    size_t first;
    unsigned flags = zadd_parse_words(c, &first);

    if (check_words(c, flags, first))
        zset_add_pairs(c, flags, first);
}

void cmd_zincrby(struct call *c)
{
    zset_add_pairs(c, ZADD_INCR, 2);
}

void cmd_zrem(struct call *c)
{
    struct object o;
    int64_t removed = 0;

    if (!want_zset(c, &o))
        return;
    for (size_t i = 2; i < c->argc && o.m.count; i++)
        removed += zset_remove(c, &o, c->argv[i]);
    if (removed)
        object_save(c, &o);
    answer_int(c, removed);
}

void cmd_zcard(struct call *c)
{
    struct object o;
    if (want_zset(c, &o))
        answer_int(c, (int64_t)o.m.count);
}

void cmd_zscore(struct call *c)
{
    struct object o;
    double score;

    if (want_zset(c, &o) && zset_score(c, &o, c->argv[2], &score))
        *c->reply = as_bulk(double_print(c->arena, score));
}

void cmd_zmscore(struct call *c)
{
    struct object o;
    double score;
    struct reply *items;

    if (!want_zset(c, &o))
        return;
    items = answer_array(c, c->argc - 2);
    for (size_t i = 2; items && i < c->argc; i++)
        if (zset_score(c, &o, c->argv[i], &score))
            items[i - 2] = as_bulk(double_print(c->arena, score));
}

/* Answers the member's rank: the number of members before it, counted from the lowest score or, if
 * `reverse`, from the highest. */
static void answer_rank(struct call *c, bool reverse)
{
    struct object o;
    struct version_range range;
    struct row self;
    struct walk w;
    double score;
    int64_t rank = 0;

    if (!want_zset(c, &o) || !zset_score(c, &o, c->argv[2], &score))
        return;
    row_hashed(&self, c->arena, ROW_ORDER, o.m.version, score_encode(score), c->argv[2]);
    version_range(&range, ROW_ORDER, o.m.version);
    walk_version(&w, c->run, &range, reverse);
    while (walk_next(&w) && !str_eq(w.key, self.key))
        rank++;
    walk_close(&w);
    answer_int(c, rank);
}

void cmd_zrank(struct call *c)
{
    answer_rank(c, false);
}

void cmd_zrevrank(struct call *c)
{
    answer_rank(c, true);
}

static void zset_pop(struct call *c, bool reverse)
{
    struct object o;
    struct version_range range;
    struct walk w;
    struct items items = {0};
    int64_t count = 1;

    if (c->argc > 3) {
        answer_syntax(c);
        return;
    }
    if ((c->argc == 3 && !arg_positive(c, 2, NULL, &count)) || !want_zset(c, &o))
        return;
    if (o.m.type == TYPE_ZSET && count) {
        version_range(&range, ROW_ORDER, o.m.version);
        walk_version(&w, c->run, &range, reverse);
        for (; count && walk_next(&w) && !c->arena->failed; count--) {
            items_push_copy(c, &items, member_of(w.key));
            items_push(c, &items, as_bulk(double_print(c->arena, zset_row_score(w.key))));
        }
        walk_close(&w);
        for (size_t i = 0; i < items.len; i += 2)
            zset_remove(c, &o, items.p[i].str);
        object_save(c, &o);
    }
    answer_items(c, &items);
}

void cmd_zpopmin(struct call *c)
{
    zset_pop(c, false);
}

void cmd_zpopmax(struct call *c)
{
    zset_pop(c, true);
}

void cmd_zscan(struct call *c)
{
    scan_members(c, TYPE_ZSET);
}

void cmd_zrandmember(struct call *c)
{
    answer_random(c, TYPE_ZSET, "withscores");
}
