/* Judges all keys below a prefix, and compares what a policy says below two prefixes.
 *
 * A call may make everything below one prefix reachable below another prefix; making a branch from
 * another branch is an example. Then a denial that names only the first prefix would be lost. When
 * a pattern is matched against a prefix, a part of the pattern is left over, which has to match the
 * rest of the key. Because of stars, a prefix may leave several such parts, which are called
 * *rests* here. If every rest that the first prefix leaves is also left by the second prefix, then
 * every key that is denied below the first prefix is denied below the second prefix too. Rests are
 * compared as texts: the comparison may find a difference where there is none, but it never misses
 * a difference.
 *
 * Such a call also gives objects to other users than its caller. A comparison that must hold for
 * every user (policy_gives_beyond()) does not know the values of variables: it keeps them as text,
 * and finds a difference where a prefix would have to be compared with a variable. */
#include "base/vec.h"
#include "s3/access/policy_int.h"

/* The parts of a statement's patterns that a prefix of keys leaves over. */
struct rests {
    VEC(struct str) items;
    bool is_unclear; /* a pattern may leave more rests than these, or fewer */
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

/* Moves all marks over one character. Returns false at a variable, whose value is not known. */
static bool rest_step(const bool *from, bool *to, struct str pattern, struct str c)
{
    for (size_t at = 0; at < pattern.len; at++) {
        unsigned char byte = (unsigned char)pattern.p[at];
        if (!from[at])
            continue;
        if (byte == PATTERN_OPEN)
            return false;
        if (byte == PATTERN_ANY)
            rest_mark(to, pattern, at);
        else if (byte == PATTERN_ONE)
            rest_mark(to, pattern, at + 1);
        else if (str_starts(str_skip(pattern, at), c))
            rest_mark(to, pattern, at + c.len);
    }
    return true;
}

/* Adds the rests of one pattern. */
static void rests_add(struct rests *out, struct arena *a, struct str pattern, struct str begin)
{
    size_t size = pattern.len + 1;
    bool *now = arena_array(a, size, sizeof(*now)), *next = arena_array(a, size, sizeof(*next));

    if (!now || !next) {
        out->is_unclear = true;
        return;
    }
    memset(now, 0, size);
    rest_mark(now, pattern, 0);
    while (begin.len && !out->is_unclear) {
        struct str c = str_head(begin, rest_char_len(begin));
        bool *swap = now;
        memset(next, 0, size);
        out->is_unclear = !rest_step(now, next, pattern, c);
        now = next;
        next = swap;
        begin = str_skip(begin, c.len);
    }
    for (size_t at = 0; at < size; at++)
        if (now[at])
            vec_push(&out->items, str_skip(pattern, at));
}

/* Adds the rests of a statement's patterns, for the user who asks. */
static void rests_fill(struct rests *out, const struct statement *s, const struct policy_request *r,
                       struct str begin)
{
    struct str pattern;

    for (size_t i = 0; i < s->resource_count; i++)
        if (pattern_expand(&s->resources[i], r, &pattern))
            rests_add(out, r->arena, pattern, begin);
        else /* a variable of the pattern has no value before the object is known */
            out->is_unclear = true;
}

/* Adds the rests of a statement's patterns, for every user. */
static void rests_fill_for_all(struct rests *out, const struct statement *s, struct arena *a,
                               struct str begin)
{
    for (size_t i = 0; i < s->resource_count; i++)
        rests_add(out, a, s->resources[i].text, begin);
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

static struct str policy_prefix(const struct policy_request *r, struct str begin)
{
    return arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(r->bucket), STR_ARG(begin));
}

/* Whether every key below the prefix is matched. */
static bool rests_match_all(const struct rests *r)
{
    static const unsigned char any = PATTERN_ANY;

    return !r->is_unclear && rests_have(r, str_n(&any, 1));
}

/* --- what is denied --- */

/* Whether the statement denies more below `from` than below `to`; with an empty `to`, whether it
 * denies anything below `from`. With NotResource it denies the keys that no pattern matches. */
static bool statement_is_beyond(const struct statement *s, const struct policy_request *r,
                                struct str from, struct str to)
{
    struct rests here = {0}, there = {0};
    bool beyond;

    rests_fill(&here, s, r, from);
    if (to.len)
        rests_fill(&there, s, r, to);
    if (here.is_unclear || there.is_unclear)
        beyond = true;
    else if (s->not_resource)
        beyond = to.len ? !rests_are_in(&there, &here) : !rests_match_all(&here);
    else
        beyond = !rests_are_in(&here, &there);
    vec_release(&here.items);
    vec_release(&there.items);
    return beyond;
}

bool policy_denies_beyond(const struct policy *p, const struct policy_request *r, struct str from,
                          struct str to)
{
    struct str here = policy_prefix(r, from);
    struct str there = to.len ? policy_prefix(r, to) : STR_EMPTY;

    for (size_t i = 0; i < p->count; i++) {
        const struct statement *s = &p->statements[i];
        if (s->effect == POLICY_DENY && statement_concerns(s, &r->who, r->action) &&
            conditions_may_hold(s->conditions, r) && statement_is_beyond(s, r, here, there))
            return true;
    }
    return arena_error(r->arena) < 0;
}

/* --- what is allowed --- */

/* Whether the statement's resources are all keys below the prefix. */
static bool statement_has_all(const struct statement *s, const struct policy_request *r,
                              struct str begin)
{
    struct rests rests = {0};

    rests_fill(&rests, s, r, begin);
    bool all =
        s->not_resource ? !rests.is_unclear && rests.items.len == 0 : rests_match_all(&rests);
    vec_release(&rests.items);
    return all;
}

bool policy_allows_below(const struct policy *p, const struct policy_request *r, struct str begin)
{
    struct str prefix = policy_prefix(r, begin);
    bool all = false;

    for (size_t i = 0; i < p->count && !all; i++) {
        const struct statement *s = &p->statements[i];
        all = s->effect == POLICY_ALLOW && statement_concerns(s, &r->who, r->action) &&
              conditions_surely_hold(s->conditions, r) && statement_has_all(s, r, prefix);
    }
    return all && arena_error(r->arena) == 0;
}

/* --- what anybody gets --- */

/* Whether `t` allows the action to the same users as `s`, under no condition. */
static bool statement_is_alike(const struct statement *t, const struct statement *s)
{
    if (t->conditions || t->not_resource || t->effect != s->effect ||
        t->not_principal != s->not_principal || t->principal_count != s->principal_count)
        return false;
    for (size_t i = 0; i < s->principal_count; i++)
        if (t->principals[i].kind != s->principals[i].kind ||
            !str_eq(t->principals[i].account, s->principals[i].account) ||
            !str_eq(t->principals[i].name, s->principals[i].name))
            return false;
    return true;
}

/* Whether a statement treats some key below `to` better than the same key below `from`: it denies
 * less, or allows more. A statement that allows more below `to` does no harm if another statement
 * allows the same below `from`. */
static bool statement_gives_beyond(const struct policy *p, const struct statement *s,
                                   const struct policy_request *r, struct str from, struct str to)
{
    struct rests here = {0}, there = {0};
    bool allows = s->effect == POLICY_ALLOW && !s->not_resource;

    rests_fill_for_all(&here, s, r->arena, from);
    rests_fill_for_all(&there, s, r->arena, to);
    for (size_t i = 0; allows && i < p->count; i++)
        if (statement_has_action(&p->statements[i], r->action) &&
            statement_is_alike(&p->statements[i], s))
            rests_fill_for_all(&here, &p->statements[i], r->arena, from);
    bool may_grow = (s->effect == POLICY_ALLOW) != s->not_resource;
    bool beyond = here.is_unclear || there.is_unclear ||
                  !(may_grow ? rests_are_in(&there, &here) : rests_are_in(&here, &there));
    vec_release(&here.items);
    vec_release(&there.items);
    return beyond;
}

bool policy_gives_beyond(const struct policy *p, const struct policy_request *r, struct str from,
                         struct str to)
{
    struct str here = policy_prefix(r, from), there = policy_prefix(r, to);

    for (size_t i = 0; i < p->count; i++)
        if (statement_has_action(&p->statements[i], r->action) &&
            statement_gives_beyond(p, &p->statements[i], r, here, there))
            return true;
    return arena_error(r->arena) < 0;
}

bool policy_asks_tags(const struct policy *p, enum s3_action action)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct statement *s = &p->statements[i];
        if (!statement_has_action(s, action))
            continue;
        if (conditions_ask_tags(s->conditions))
            return true;
        for (size_t k = 0; k < s->resource_count; k++)
            if (s->resources[k].variables)
                return true;
    }
    return false;
}
