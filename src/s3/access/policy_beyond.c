/* Compares what a policy denies below two prefixes of keys.
 *
 * A call may make everything below one prefix reachable below another prefix; making a branch from
 * another branch is an example. Then a denial that names only the first prefix would be lost. When
 * a pattern is matched against a prefix, a part of the pattern is left over, which has to match the
 * rest of the key. Because of stars, a prefix may leave several such parts, which are called
 * *rests* here. If every rest that the first prefix leaves is also left by the second prefix, then
 * every key that is denied below the first prefix is denied below the second prefix too. Rests are
 * compared as texts: the comparison may find a difference where there is none, but it never misses
 * a difference. */
#include "base/vec.h"
#include "s3/access/policy_int.h"

/* The parts of a statement's patterns that a prefix of keys leaves over. */
struct rests {
    VEC(struct str) items;
};

/* Returns the number of bytes of the first character of `s`; 1 if it is not UTF-8. */
static size_t rest_char_len(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

    return len <= s.len && str_is_utf8(str_head(s, len)) ? len : 1;
}

/* Marks a place of the pattern, and the places behind it that can be reached by letting '*' match
 * nothing. */
static void rest_mark(bool *places, struct str pattern, size_t at)
{
    places[at] = true;
    while (at < pattern.len && (unsigned char)pattern.p[at] == PATTERN_ANY)
        places[++at] = true;
}

/* Moves all marks behind one more character of the prefix. */
static void rest_step(const bool *from, bool *to, struct str pattern, struct str c)
{
    for (size_t at = 0; at < pattern.len; at++) {
        unsigned char byte = (unsigned char)pattern.p[at];
        if (!from[at])
            continue;
        if (byte == PATTERN_ANY)
            rest_mark(to, pattern, at);
        else if (byte == PATTERN_ONE)
            rest_mark(to, pattern, at + 1);
        else if (str_starts(str_skip(pattern, at), c))
            rest_mark(to, pattern, at + c.len);
    }
}

/* Adds the parts of one pattern that the prefix leaves over. Returns false when there is no memory.
 */
static bool rests_add(struct rests *out, struct arena *a, struct str pattern, struct str begin)
{
    size_t size = pattern.len + 1;
    bool *now = arena_array(a, size, sizeof(*now)), *next = arena_array(a, size, sizeof(*next));

    if (!now || !next)
        return false;
    memset(now, 0, size);
    rest_mark(now, pattern, 0);
    while (begin.len) {
        struct str c = str_head(begin, rest_char_len(begin));
        bool *swap = now;
        memset(next, 0, size);
        rest_step(now, next, pattern, c);
        now = next;
        next = swap;
        begin = str_skip(begin, c.len);
    }
    for (size_t at = 0; at < size; at++)
        if (now[at])
            vec_push(&out->items, str_skip(pattern, at));
    return true;
}

static bool rests_fill(struct rests *out, const struct statement *s, const struct policy_request *r,
                       struct str begin)
{
    struct str pattern;

    for (size_t i = 0; i < s->resource_count; i++)
        if (pattern_expand(&s->resources[i], r, &pattern) &&
            !rests_add(out, r->arena, pattern, begin))
            return false;
    return arena_error(r->arena) == 0;
}

static bool is_everything(struct str rest)
{
    return rest.len == 1 && (unsigned char)rest.p[0] == PATTERN_ANY;
}

static bool rests_have(const struct rests *r, struct str wanted)
{
    vec_each (&r->items, const struct str *, rest)
        if (str_eq(*rest, wanted) || is_everything(*rest))
            return true;
    return false;
}

static bool rests_are_in(const struct rests *some, const struct rests *all)
{
    vec_each (&some->items, const struct str *, rest)
        if (!rests_have(all, *rest))
            return false;
    return true;
}

/* Whether the statement denies more below the prefix `from` than below the prefix `to`; if `to` is
 * empty, whether it denies anything below `from`. A statement with NotResource denies the keys that
 * none of its patterns match. */
static bool statement_is_beyond(const struct statement *s, const struct policy_request *r,
                                struct str from, struct str to)
{
    static const unsigned char any = PATTERN_ANY;
    struct rests here = {0}, there = {0};
    bool beyond = !rests_fill(&here, s, r, from) || (to.len && !rests_fill(&there, s, r, to));

    if (!beyond && s->not_resource)
        beyond = to.len ? !rests_are_in(&there, &here) : !rests_have(&here, str_n(&any, 1));
    else if (!beyond)
        beyond = !rests_are_in(&here, &there);
    vec_release(&here.items);
    vec_release(&there.items);
    return beyond;
}

bool policy_denies_beyond(const struct policy *p, const struct policy_request *r, struct str from,
                          struct str to)
{
    struct str here = arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(r->bucket), STR_ARG(from));
    struct str there =
        to.len ? arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(r->bucket), STR_ARG(to))
               : STR_EMPTY;

    for (size_t i = 0; i < p->count; i++) {
        const struct statement *s = &p->statements[i];
        if (s->effect == POLICY_DENY && statement_concerns(s, &r->who, r->action) &&
            conditions_may_hold(s->conditions, r) && statement_is_beyond(s, r, here, there))
            return true;
    }
    return arena_error(r->arena) < 0;
}
