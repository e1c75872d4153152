/* Ranges of sorted sets by rank, score and member: reading, counting, removing. */
#include "store/embedded_int.h"
#include "base/bytes.h"

#include <math.h>
#include <stdlib.h>

enum by { BY_RANK, BY_SCORE, BY_LEX };

/* One end of a range of members in byte order (BY_LEX). */
struct lex_bound {
    enum { LEX_MIN, LEX_MEMBER, LEX_MAX } kind;
    struct str member;
    bool exclusive;
};

struct zrange {
    enum by by;
    bool reverse, with_scores;
    int64_t start, stop; /* first and last rank, for BY_RANK */
    double min, max;     /* the bounds, for BY_SCORE */
    bool min_exclusive, max_exclusive;
    struct lex_bound low, high;
    int64_t offset, limit; /* the two numbers of LIMIT; limit < 0: no limit */
};

/* A visitor of the members of a range: `fn` is called for each member, with the key of its order
 * row, and returns false to end the walk. */
struct visitor {
    bool (*fn)(struct visitor *v, struct call *c, struct str row_key);
    struct items items; /* the members found, each followed by its score if with_scores */
    int64_t count;
    bool with_scores;
};

/* --- parsing the bounds of a range --- */

/* Reads one bound of a range by score; '(' before the number makes it exclusive. The function uses
 * strtod(), as Redis does here: an empty text is 0, and text after the number is an error. False:
 * the call was answered with an error. */
static bool parse_score_bound(struct call *c, struct str s, double *out, bool *exclusive)
{
    char *end, *text;

    *exclusive = s.len && s.p[0] == '(';
    text = arena_z(c->arena, str_skip(s, *exclusive));
    if (!text)
        return false;
    *out = strtod(text, &end);
    if (*end == '\0' && !isnan(*out))
        return true;
    answer_error(c, "ERR min or max is not a float");
    return false;
}

static bool parse_scores(struct call *c, struct str min, struct str max, struct zrange *r)
{
    return parse_score_bound(c, min, &r->min, &r->min_exclusive) &&
           parse_score_bound(c, max, &r->max, &r->max_exclusive);
}

static bool parse_lex_bound(struct call *c, struct str s, struct lex_bound *out)
{
    char first = s.len ? s.p[0] : '\0';

    *out = (struct lex_bound){0};
    if (s.len == 1 && first == '-') {
        out->kind = LEX_MIN;
    } else if (s.len == 1 && first == '+') {
        out->kind = LEX_MAX;
    } else if (first == '[' || first == '(') {
        out->kind = LEX_MEMBER;
        out->member = str_skip(s, 1);
        out->exclusive = first == '(';
    } else {
        answer_error(c, "ERR min or max not valid string range item");
        return false;
    }
    return true;
}

static bool parse_lexes(struct call *c, struct str min, struct str max, struct zrange *r)
{
    return parse_lex_bound(c, min, &r->low) && parse_lex_bound(c, max, &r->high);
}

static bool parse_bounds(struct call *c, struct zrange *r)
{
    bool swap = r->reverse && r->by != BY_RANK; /* in reverse, the greater end comes first */
    struct str min = c->argv[swap ? 3 : 2], max = c->argv[swap ? 2 : 3];

    if (r->by == BY_SCORE)
        return parse_scores(c, min, max, r);
    if (r->by == BY_LEX)
        return parse_lexes(c, min, max, r);
    return arg_int(c, 2, &r->start) && arg_int(c, 3, &r->stop);
}

static bool score_low_ok(const struct zrange *r, double score)
{
    return r->min_exclusive ? score > r->min : score >= r->min;
}

static bool score_high_ok(const struct zrange *r, double score)
{
    return r->max_exclusive ? score < r->max : score <= r->max;
}

static bool lex_low_ok(const struct lex_bound *b, struct str member)
{
    int order = b->kind == LEX_MEMBER ? str_cmp(member, b->member) : b->kind == LEX_MIN ? 1 : -1;
    return b->exclusive ? order > 0 : order >= 0;
}

static bool lex_high_ok(const struct lex_bound *b, struct str member)
{
    int order = b->kind == LEX_MEMBER ? str_cmp(member, b->member) : b->kind == LEX_MAX ? -1 : 1;
    return b->exclusive ? order < 0 : order <= 0;
}

/* --- walking over a range --- */

static bool low_ok(const struct zrange *r, struct str row_key)
{
    return r->by == BY_SCORE ? score_low_ok(r, zset_row_score(row_key))
                             : lex_low_ok(&r->low, member_of(row_key));
}

static bool high_ok(const struct zrange *r, struct str row_key)
{
    return r->by == BY_SCORE ? score_high_ok(r, zset_row_score(row_key))
                             : lex_high_ok(&r->high, member_of(row_key));
}

/* Returns the encoded score of the first member. A range by member only makes sense in a set whose
 * members all have this score. */
static uint64_t common_score(struct call *c, const struct object *o)
{
    struct version_range range;
    struct walk w;
    uint64_t bits = 0;

    version_range(&range, ROW_ORDER, o->m.version);
    walk_version(&w, c->run, &range, false);
    if (walk_next(&w))
        bits = be64_read(w.key.p + ROW_PREFIX);
    walk_close(&w);
    return bits;
}

/* Sets *from and *to, the rows at which a walk over a range by score or member begins and ends.
 * Every member of the range is between them; other members may be too, so the walk checks each
 * member. */
static void narrow(struct call *c, const struct object *o, const struct zrange *r, struct row *from,
                   struct row *to)
{
    uint64_t bits;

    row_prefix(from, ROW_ORDER, o->m.version);
    row_prefix(to, ROW_ORDER, o->m.version + 1);
    if (r->by == BY_SCORE) {
        row_position(from, ROW_ORDER, o->m.version, score_encode(r->min));
        bits = score_encode(r->max);
        if (bits < UINT64_MAX)
            row_position(to, ROW_ORDER, o->m.version, bits + 1);
    } else if (r->low.kind == LEX_MEMBER) {
        row_hashed(from, c->arena, ROW_ORDER, o->m.version, common_score(c, o), r->low.member);
    }
}

static void visit_bounded(struct call *c, const struct object *o, const struct zrange *r,
                          struct visitor *v)
{
    struct row from, to;
    struct walk w;
    int64_t skip = r->offset, left = r->limit;

    narrow(c, o, r, &from, &to);
    if (str_cmp(from.key, to.key) >= 0 || r->offset < 0)
        return;
    walk_open(&w, c->run, from.key, to.key, r->reverse);
    while (left != 0 && walk_next(&w) && !c->arena->failed) {
        bool low = low_ok(r, w.key), high = high_ok(r, w.key);
        if (r->reverse ? !low : !high)
            break;
        if (!low || !high || skip-- > 0)
            continue;
        if (!v->fn(v, c, w.key))
            break;
        left--;
    }
    walk_close(&w);
}

static void visit_ranks(struct call *c, const struct object *o, const struct zrange *r,
                        struct visitor *v)
{
    struct version_range range;
    struct walk w;
    int64_t start = r->start, stop = r->stop;

    if (!range_normalize(&start, &stop, o->m.count))
        return;
    version_range(&range, ROW_ORDER, o->m.version);
    walk_version(&w, c->run, &range, r->reverse);
    for (int64_t i = 0; i <= stop && walk_next(&w) && !c->arena->failed; i++)
        if (i >= start && !v->fn(v, c, w.key))
            break;
    walk_close(&w);
}

static void visit(struct call *c, const struct object *o, const struct zrange *r, struct visitor *v)
{
    if (o->m.type == TYPE_NONE)
        return;
    if (r->by == BY_RANK)
        visit_ranks(c, o, r, v);
    else
        visit_bounded(c, o, r, v);
}

static bool visit_collect(struct visitor *v, struct call *c, struct str row_key)
{
    items_push_copy(c, &v->items, member_of(row_key));
    if (v->with_scores)
        items_push(c, &v->items, as_bulk(double_print(c->arena, zset_row_score(row_key))));
    return true;
}

static bool visit_count(struct visitor *v, struct call *c, struct str row_key)
{
    v->count++;
    return true;
}

/* --- commands that answer a range --- */

/* Reads the option words that follow the bounds. `any`: the command is ZRANGE, which also has words
 * for the kind of range and the direction. False: the call was answered with an error. */
static bool zrange_parse_words(struct call *c, bool any, struct zrange *r)
{
    r->limit = -1;
    for (size_t i = 4; i < c->argc; i++) {
        if (arg_is(c, i, "withscores")) {
            r->with_scores = true;
        } else if (arg_is(c, i, "limit") && i + 2 < c->argc) {
            if (!arg_int(c, i + 1, &r->offset) || !arg_int(c, i + 2, &r->limit))
                return false;
            i += 2;
        } else if (any && !r->reverse && arg_is(c, i, "rev")) {
            r->reverse = true;
        } else if (any && r->by == BY_RANK && arg_is(c, i, "bylex")) {
            r->by = BY_LEX;
        } else if (any && r->by == BY_RANK && arg_is(c, i, "byscore")) {
            r->by = BY_SCORE;
        } else {
            answer_syntax(c);
            return false;
        }
    }
    if (r->limit != -1 && r->by == BY_RANK) {
        answer_error(c, "ERR syntax error, LIMIT is only supported in combination with either "
                        "BYSCORE or BYLEX");
        return false;
    }
    if (r->with_scores && r->by == BY_LEX) {
        answer_error(c, "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        return false;
    }
    return true;
}

static void answer_range(struct call *c, bool any, struct zrange r)
{
    struct object o;
    struct visitor v = {.fn = visit_collect};

    if (!zrange_parse_words(c, any, &r) || !parse_bounds(c, &r) ||
        !object_want(c, c->argv[1], TYPE_ZSET, &o))
        return;
    v.with_scores = r.with_scores;
    visit(c, &o, &r, &v);
    answer_items(c, &v.items);
}

void cmd_zrange(struct call *c)
{
    answer_range(c, true, (struct zrange){0});
}

void cmd_zrevrange(struct call *c)
{
    answer_range(c, false, (struct zrange){.reverse = true});
}

void cmd_zrangebyscore(struct call *c)
{
    answer_range(c, false, (struct zrange){.by = BY_SCORE});
}

void cmd_zrevrangebyscore(struct call *c)
{
    answer_range(c, false, (struct zrange){.by = BY_SCORE, .reverse = true});
}

void cmd_zrangebylex(struct call *c)
{
    answer_range(c, false, (struct zrange){.by = BY_LEX});
}

void cmd_zrevrangebylex(struct call *c)
{
    answer_range(c, false, (struct zrange){.by = BY_LEX, .reverse = true});
}

/* --- commands that count or remove a range --- */

static void answer_count(struct call *c, enum by by)
{
    struct zrange r = {.by = by, .limit = -1};
    struct visitor v = {.fn = visit_count};
    struct object o;

    if (!parse_bounds(c, &r) || !object_want(c, c->argv[1], TYPE_ZSET, &o))
        return;
    visit(c, &o, &r, &v);
    answer_int(c, v.count);
}

void cmd_zcount(struct call *c)
{
    answer_count(c, BY_SCORE);
}

void cmd_zlexcount(struct call *c)
{
    answer_count(c, BY_LEX);
}

static void remove_range(struct call *c, enum by by)
{
    struct zrange r = {.by = by, .limit = -1};
    struct visitor v = {.fn = visit_collect};
    struct object o;

    if (!parse_bounds(c, &r) || !object_want(c, c->argv[1], TYPE_ZSET, &o))
        return;
    visit(c, &o, &r, &v);
    if (v.items.len && v.items.len == o.m.count) {
        object_drop(c, &o);
    } else {
        for (size_t i = 0; i < v.items.len; i++)
            zset_remove(c, &o, v.items.p[i].str);
        if (v.items.len)
            object_save(c, &o);
    }
    answer_int(c, (int64_t)v.items.len);
}

void cmd_zremrangebyrank(struct call *c)
{
    remove_range(c, BY_RANK);
}

void cmd_zremrangebyscore(struct call *c)
{
    remove_range(c, BY_SCORE);
}

void cmd_zremrangebylex(struct call *c)
{
    remove_range(c, BY_LEX);
}
