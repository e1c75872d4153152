/* Merges of branches that were merged into each other crosswise, so that they have several merge
 * bases. */
#include "lake/merge_base.h"
#include "unit/lake/hand.h"

#include <stdio.h>

/* Commits the content of two paths. */
static struct str put_two(struct hand *h, const char *branch, const char *f, const char *g)
{
    hand_put(h, branch, "f", f);
    hand_put(h, branch, "g", g);
    return hand_commit(h, branch, branch);
}

/* Makes P on main, which sets f, and Q on side, which sets g, and merges each into the other. Both
 * are bases of main and side then. */
static void cross(struct hand *h)
{
    put_two(h, "main", "0", "0");
    hand_branch(h, "side", "main");
    struct str p = put_two(h, "main", "1", "0");
    put_two(h, "side", "0", "1");
    hand_merge(h, "side", "main");
    hand_merge(h, arena_z(&h->arena, p), "side");
}

static void expect_two(struct hand *h, const char *ref, const char *f, const char *g)
{
    hand_expect(h, ref, "f", f);
    hand_expect(h, ref, "g", g);
}

LAKE_LAB_TEST(lake_criss_cross, a_value_that_was_put_back_stays)
{
    struct hand h = hand_of(lab);

    cross(&h);
    put_two(&h, "main", "0", "0"); /* f as Q has it, g as P has it */
    hand_put(&h, "side", "e", "");
    hand_commit(&h, "side", "more");
    hand_branch(&h, "copy", "side");
    hand_expect_diff_refs(&h, "main", "side", true, "+e");
    hand_expect_diff_refs(&h, "side", "main", true, "~f ~g");
    hand_merge(&h, "side", "main");
    expect_two(&h, "main", "0", "0");
    hand_merge(&h, "main~1", "copy");
    expect_two(&h, "copy", "0", "0");
    hand_expect_list(&h, "main", "e f g");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_criss_cross, a_change_behind_the_cross_is_no_conflict)
{
    struct hand h = hand_of(lab);

    cross(&h);
    put_two(&h, "main", "2", "1");
    put_two(&h, "side", "1", "2");
    hand_merge(&h, "side", "main");
    expect_two(&h, "main", "2", "2");
    hand_release(&h);
}

/* Makes two bases that conflict in f, whose merges decided differently: for main f is 1 or, when
 * `removes` is set, gone; for side it is 2. */
static void cross_conflict(struct hand *h, bool removes)
{
    struct lake_merge_options dest_wins = {.strategy = TREE_DEST_WINS};
    struct lake_conflicts conflicts;
    struct lake_commit c;

    put_two(h, "main", "0", "0");
    hand_branch(h, "side", "main");
    struct str p = put_two(h, "main", "1", "0"), q = put_two(h, "side", "2", "0");
    CHECK_INT(lake_merge(h->lake, &h->arena, &h->repo, q, STR("main"), &dest_wins, &c, &conflicts,
                         &h->err),
              0);
    CHECK_INT(lake_merge(h->lake, &h->arena, &h->repo, p, STR("side"), &dest_wins, &c, &conflicts,
                         &h->err),
              0);
    if (!removes)
        return;
    hand_remove(h, "main", "f");
    hand_commit(h, "main", "removed");
}

LAKE_LAB_TEST(lake_criss_cross, bases_that_conflict_let_both_sides_count_as_changed)
{
    struct hand h = hand_of(lab);

    cross_conflict(&h, false);
    hand_expect_diff_refs(&h, "main", "side", true, "!f");
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_CONFLICT);
    CHECK_INT(hand_try_merge(&h, "main", "side"), ERR_CONFLICT);
    expect_two(&h, "main", "1", "0");
    hand_put(&h, "side", "f", "1"); /* the same decision on both sides is no conflict */
    hand_commit(&h, "side", "agreed");
    hand_merge(&h, "side", "main");
    expect_two(&h, "main", "1", "0");
    hand_release(&h);
}

LAKE_LAB_TEST(lake_criss_cross, a_removal_against_another_decision_is_a_conflict)
{
    struct hand h = hand_of(lab);

    cross_conflict(&h, true);
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_CONFLICT);
    CHECK_INT(hand_try_merge(&h, "main", "side"), ERR_CONFLICT);
    hand_expect(&h, "main", "f", NULL);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_criss_cross, the_tree_of_the_bases_is_not_stored)
{
    struct hand h = hand_of(lab);

    cross(&h);
    put_two(&h, "main", "0", "0");
    put_two(&h, "side", "1", "2");
    size_t before = lake_lab_node_count(lab);
    hand_expect_diff_refs(&h, "main", "side", true, "!g");
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_CONFLICT);
    CHECK_INT(lake_lab_node_count(lab), before);
    hand_release(&h);
}

/* --- many merge bases --- */

/* What main and side make of a path that a merge base has set to 1; NULL: they remove it. */
struct decision {
    const char *main, *side;
};
static const struct decision decisions[] = {
    {"0", "1"}, {"1", "0"}, {"1", "1"},  {"0", "0"}, /* no conflict if the path was 0 before, too */
    {"2", "1"}, {"1", "2"}, {NULL, "1"}, {"1", NULL}, {"2", "2"}, {NULL, NULL},
};
enum { DECISIONS = ARRAY_SIZE(decisions), DECISIONS_WITHOUT_BASE = 4 };

struct many_bases {
    struct hand *hand;
    unsigned bases;
    unsigned paths; /* how many paths each base sets: the first ones of `decisions` */
};

static const char *many_path(const struct many_bases *m, unsigned base, unsigned path)
{
    return arena_fmt(&m->hand->arena, "%02u-%u", base, path).p;
}

static const char *many_branch(const struct many_bases *m, unsigned base)
{
    return arena_fmt(&m->hand->arena, "b%02u", base).p;
}

/* Sets every path of a base to the value. */
static void many_put(const struct many_bases *m, const char *branch, unsigned base,
                     const char *value)
{
    for (unsigned i = 0; i < m->paths; i++)
        hand_put(m->hand, branch, many_path(m, base, i), value);
}

/* Makes branches that set their paths from 0 to 1, and merges all of them into main and into side.
 * The heads of these branches are the merge bases of main and side then. The first one has the
 * highest generation. */
static void many_cross(const struct many_bases *m)
{
    struct hand *h = m->hand;

    for (unsigned i = 0; i < m->bases; i++)
        many_put(m, "main", i, "0");
    hand_commit(h, "main", "zeros");
    hand_branch(h, "side", "main");
    for (unsigned i = 0; i < m->bases; i++)
        hand_branch(h, many_branch(m, i), "main");
    for (unsigned i = 0; i < m->bases; i++) {
        many_put(m, many_branch(m, i), i, "1");
        hand_commit(h, many_branch(m, i), "ones");
    }
    hand_put(h, many_branch(m, 0), "other", "");
    hand_commit(h, many_branch(m, 0), "other");
    for (unsigned i = 0; i < m->bases; i++) {
        hand_merge(h, many_branch(m, i), "main");
        hand_merge(h, many_branch(m, m->bases - 1 - i), "side");
    }
}

static void many_decide(const struct many_bases *m, const char *branch)
{
    bool is_main = strcmp(branch, "main") == 0;

    for (unsigned i = 0; i < m->bases; i++)
        for (unsigned k = 0; k < m->paths; k++) {
            const char *value = is_main ? decisions[k].main : decisions[k].side;
            if (!value)
                hand_remove(m->hand, branch, many_path(m, i, k));
            else if (strcmp(value, "1") != 0)
                hand_put(m->hand, branch, many_path(m, i, k), value);
        }
    hand_commit(m->hand, branch, "decided");
}

/* The value of a merged path by the definition of a three-way merge. */
static const char *many_merged(const struct decision *d, const char *base)
{
    return d->main && strcmp(d->main, base) == 0 ? d->side : d->main;
}

/* Checks the merge in both directions. The first `known` bases count: their paths were 1 in the
 * base of the merge, and all other paths were 0. */
static void many_expect(const struct many_bases *m, unsigned known)
{
    struct hand *h = m->hand;

    hand_branch(h, "copy", "side");
    hand_merge(h, "side", "main");
    hand_merge(h, "main~1", "copy");
    for (unsigned i = 0; i < m->bases; i++)
        for (unsigned k = 0; k < m->paths; k++) {
            const char *want = many_merged(&decisions[k], i < known ? "1" : "0");
            hand_expect(h, "main", many_path(m, i, k), want);
            hand_expect(h, "copy", many_path(m, i, k), want);
        }
}

static size_t many_count(struct hand *h, bool *has_more)
{
    struct str left = hand_read_branch(h, "main").commit_id;
    struct merge_bases found;

    CHECK_INT(lake_merge_bases(h->lake, &h->arena, &h->repo, &left, 1,
                               hand_read_branch(h, "side").commit_id, &found, &h->err),
              0);
    *has_more = found.has_more;
    return found.count;
}

LAKE_LAB_TEST(lake_criss_cross, all_changes_of_three_bases_count)
{
    struct hand h = hand_of(lab);
    struct many_bases m = {&h, 3, DECISIONS};
    bool has_more;

    many_cross(&m);
    many_decide(&m, "main");
    many_decide(&m, "side");
    CHECK_INT(many_count(&h, &has_more), 3);
    CHECK(!has_more);
    many_expect(&m, 3);
    hand_release(&h);
}

/* docs/lake-trees.md, "Several merge bases": with too many bases, or too large ones, only the one
 * with the highest generation is used. */
static void expect_limit(struct lake_lab *lab, unsigned bases, unsigned known)
{
    struct hand h = hand_of(lab);
    struct many_bases m = {&h, bases, DECISIONS_WITHOUT_BASE};
    bool has_more;

    many_cross(&m);
    many_decide(&m, "main");
    many_decide(&m, "side");
    CHECK_INT(many_count(&h, &has_more), bases < MERGE_BASES_MAX ? bases : MERGE_BASES_MAX);
    CHECK_INT(has_more, bases > MERGE_BASES_MAX);
    many_expect(&m, known);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_criss_cross, sixteen_bases_are_merged)
{
    expect_limit(lab, MERGE_BASES_MAX, MERGE_BASES_MAX);
}

LAKE_LAB_TEST(lake_criss_cross, of_seventeen_bases_only_the_first_is_used)
{
    expect_limit(lab, MERGE_BASES_MAX + 1, 1);
}

LAKE_LAB_TEST(lake_criss_cross, of_bases_that_differ_too_much_only_the_first_is_used)
{
    lab->lake->base_bytes_max = 1;
    expect_limit(lab, 3, 1);
}

LAKE_LAB_TEST(lake_criss_cross, of_bases_with_seventeen_bases_only_the_first_is_used)
{
    struct hand h = hand_of(lab);
    struct many_bases m = {&h, MERGE_BASES_MAX + 1, 1};
    bool has_more;

    many_cross(&m);
    hand_put(&h, "side", "s", "1");
    hand_commit(&h, "side", "q");
    hand_put(&h, "main", "m", "0");
    hand_commit(&h, "main", "lower");
    hand_put(&h, "main", "m", "1");
    struct str p = hand_commit(&h, "main", "p");
    hand_merge(&h, "side", "main");
    hand_merge(&h, arena_z(&h.arena, p), "side");
    CHECK_INT(many_count(&h, &has_more), 2);
    CHECK(!has_more);
    hand_remove(&h, "main", "s");
    hand_commit(&h, "main", "removed");
    hand_put(&h, "side", "t", "1");
    hand_commit(&h, "side", "more");
    hand_merge(&h, "side", "main");
    hand_expect(&h, "main", "s", "1"); /* p has no s, so the removal is no change */
    hand_expect(&h, "main", "t", "1");
    hand_release(&h);
}

/* --- random histories against a model --- */

enum { PATHS = 4, COMMITS = 40, HISTORIES = 12, MARK = -1 };

struct model_commit {
    struct str id;
    uint64_t ancestors; /* a set of commits, with itself */
    int values[PATHS];  /* 0: the path is absent; MARK: bases conflict */
};

struct model {
    struct hand *hand;
    struct model_commit commits[COMMITS];
    unsigned count;
    unsigned heads[2];
    bool is_sure; /* no merge had more than two bases, whose order would matter */
    uint64_t random;
};

static const char *const branches[] = {"main", "side"};
static const char *const paths[] = {"p0", "p1", "p2", "p3"};

static unsigned model_random(struct model *m, unsigned below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->random >> 33) % below;
}

static void model_add(struct model *m, unsigned branch, const struct model_commit *c)
{
    unsigned at = m->count++;

    m->commits[at] = *c;
    m->commits[at].id = hand_read_branch(m->hand, branches[branch]).commit_id;
    m->commits[at].ancestors |= 1ull << at;
    m->heads[branch] = at;
}

/* The best common ancestors: those that are no ancestor of another one. */
static uint64_t model_bases(const struct model *m, uint64_t left, uint64_t right)
{
    uint64_t common = left & right, lower = 0;

    for (unsigned i = 0; i < m->count; i++)
        if (common >> i & 1)
            lower |= m->commits[i].ancestors & ~(1ull << i);
    return common & ~lower;
}

static int model_path(int base, int source, int dest)
{
    if (source == base || source == dest)
        return dest;
    return dest == base ? source : MARK;
}

/* The values of a merge over the bases of the two sets; a conflict is MARK. */
static void model_base(struct model *m, uint64_t left, uint64_t right, int out[PATHS])
{
    uint64_t bases = model_bases(m, left, right), seen = 0;
    int lower[PATHS];

    memset(out, 0, PATHS * sizeof(*out));
    m->is_sure = m->is_sure && __builtin_popcountll(bases) <= 2;
    for (unsigned i = 0; i < m->count; i++) {
        const struct model_commit *c = &m->commits[i];
        if (!(bases >> i & 1))
            continue;
        if (seen)
            model_base(m, seen, c->ancestors, lower);
        for (unsigned k = 0; k < PATHS; k++)
            out[k] = seen ? model_path(lower[k], c->values[k], out[k]) : c->values[k];
        seen |= c->ancestors;
    }
}

static void model_change(struct model *m, unsigned branch)
{
    struct model_commit c = m->commits[m->heads[branch]];
    unsigned path = model_random(m, PATHS);
    int value = (int)model_random(m, 3);
    char text[8];

    if (c.values[path] == value)
        return;
    snprintf(text, sizeof(text), "%d", value);
    if (value)
        hand_put(m->hand, branches[branch], paths[path], text);
    else
        hand_remove(m->hand, branches[branch], paths[path]);
    hand_commit(m->hand, branches[branch], "change");
    c.values[path] = value;
    model_add(m, branch, &c);
}

static void model_expect(struct model *m, unsigned branch)
{
    const struct model_commit *c = &m->commits[m->heads[branch]];
    char text[8];

    for (unsigned i = 0; i < PATHS; i++) {
        snprintf(text, sizeof(text), "%d", c->values[i]);
        hand_expect(m->hand, branches[branch], paths[i], c->values[i] ? text : NULL);
    }
}

/* Merges an earlier commit of the other branch. A conflict is decided by a strategy. */
static void model_merge(struct model *m, unsigned branch)
{
    struct model_commit c = m->commits[m->heads[branch]];
    unsigned at = model_random(m, 2) ? m->heads[!branch] : model_random(m, m->count);
    const struct model_commit *source = &m->commits[at];
    bool source_wins = model_random(m, 2), has_conflict = false;
    int base[PATHS];

    m->is_sure = true;
    model_base(m, source->ancestors, c.ancestors, base);
    for (unsigned i = 0; i < PATHS; i++) {
        int dest = c.values[i];
        c.values[i] = model_path(base[i], source->values[i], dest);
        has_conflict = has_conflict || c.values[i] == MARK;
        if (c.values[i] == MARK)
            c.values[i] = source_wins ? source->values[i] : dest;
    }
    if (!m->is_sure)
        return;
    struct lake_merge_options o = {0};
    struct lake_conflicts conflicts;
    struct lake_commit made;
    struct hand *h = m->hand;
    int code = lake_merge(h->lake, &h->arena, &h->repo, source->id, str_z(branches[branch]), &o,
                          &made, &conflicts, &h->err);
    CHECK_INT(code == ERR_CONFLICT, has_conflict);
    o.strategy = source_wins ? TREE_SOURCE_WINS : TREE_DEST_WINS;
    if (has_conflict)
        code = lake_merge(h->lake, &h->arena, &h->repo, source->id, str_z(branches[branch]), &o,
                          &made, &conflicts, &h->err);
    if (code == ERR_NOT_MODIFIED) {
        CHECK(memcmp(c.values, m->commits[m->heads[branch]].values, sizeof(c.values)) == 0);
        return;
    }
    CHECK_INT(code, 0);
    c.ancestors |= source->ancestors;
    model_add(m, branch, &c);
    model_expect(m, branch);
}

static void model_run(struct lake_lab *lab, uint64_t seed)
{
    struct hand h = hand_of(lab);
    struct model m = {.hand = &h, .random = seed};

    h.repo = lake_lab_repo(lab, arena_fmt(&h.arena, "history-%u", (unsigned)seed).p);
    hand_branch(&h, branches[1], branches[0]);
    model_add(&m, 0, &(struct model_commit){0});
    m.heads[1] = m.heads[0];
    for (unsigned i = 0; i < 3 * COMMITS && m.count < COMMITS; i++) {
        unsigned branch = model_random(&m, 2);
        if (model_random(&m, 5) < 3)
            model_change(&m, branch);
        else
            model_merge(&m, branch);
    }
    hand_release(&h);
}

LAKE_LAB_TEST(lake_criss_cross, random_histories_merge_as_the_model_does)
{
    for (uint64_t seed = 1; seed <= HISTORIES; seed++)
        model_run(lab, seed);
}
