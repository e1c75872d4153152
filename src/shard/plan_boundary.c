/* Chooses the boundary of a split, by comparing keys only. */
#include "shard/plan.h"

/* The part of the sample, in percent, from which the boundary is chosen. */
enum { BOUNDARY_FROM = 45, BOUNDARY_TO = 55 };

static size_t common_length(struct str a, struct str b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.p[n] == b.p[n])
        n++;
    return n;
}

/* Returns the first `len` bytes of the string, with the last of them raised by one. */
static struct str raised(struct str s, size_t len, struct arena *a)
{
    char *copy = arena_z(a, str_n(s.p, len));

    if (copy)
        copy[len - 1]++;
    return copy ? str_n(copy, len) : STR_EMPTY;
}

/* Returns the shortest string s with below <= s < above, compared as bytes. `common` is the index
 * of the first byte in which `below` and `above` differ. */
static struct str shortest_between(struct str below, struct str above, size_t common,
                                   struct arena *a)
{
    if (below.len <= common + 1 && above.len <= common + 1)
        return below;
    if (below.len == common)
        return below;
    if (above.len > common + 1)
        return str_n(above.p, common + 1);
    for (size_t len = common + 1; len < below.len; len++) {
        unsigned char last = (unsigned char)below.p[len - 1];
        unsigned char limit = len == common + 1 ? (unsigned char)above.p[common] : UINT8_MAX;
        if (last + 1 < limit || (len > common + 1 && last < UINT8_MAX))
            return raised(below, len, a);
    }
    return below;
}

struct str boundary_between(struct str below, struct str above, struct arena *a)
{
    size_t common = common_length(below, above);

    for (size_t i = common; i + 1 < above.len; i++)
        if (above.p[i] == '/')
            return arena_str(a, str_n(above.p, i + 1));
    struct str s = shortest_between(below, above, common, a);
    /* People see the boundary, so it must not end inside a UTF-8 character. */
    return arena_str(a, str_is_utf8(s) ? s : below);
}

static bool boundary_is_better(struct str s, struct str best)
{
    bool slash = str_ends(s, STR("/")), best_slash = str_ends(best, STR("/"));

    if (best.len == 0 || slash != best_slash)
        return best.len == 0 || slash;
    return s.len < best.len;
}

struct str boundary_of_sample(const struct str *keys, size_t count, struct arena *a)
{
    size_t middle = count / 2;
    size_t reach = size_max(1, count * (BOUNDARY_TO - BOUNDARY_FROM) / 200);
    struct str best = STR_EMPTY;

    if (count < 2)
        return STR_EMPTY;
    for (size_t step = 0; step < 2 * reach; step++) { /* from the middle outwards */
        size_t i = step % 2 ? middle + (step + 1) / 2 : middle - step / 2;
        if (i == 0 || i >= count || str_cmp(keys[i - 1], keys[i]) >= 0)
            continue;
        struct str s = boundary_between(keys[i - 1], keys[i], a);
        if (boundary_is_better(s, best))
            best = s;
    }
    return best;
}
