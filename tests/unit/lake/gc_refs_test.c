/* References to a commit that a collection is about to let expire: made in time, each kind of them
 * keeps the commit's bodies; behind the mark, each is refused. */
#include "unit/lake/gc_lab.h"
#include "unit/lake/steps.h"

/* A repository whose main has three commits, 10 and 5 days old and of today, each with a body of
 * its own. The first expires after 3 days. `side` is at the repository's first commit, `second` at
 * the second one of main. */
struct aging {
    struct hand hand;
    struct str first;
    struct lake_entry body; /* of the first commit */
    int code;               /* of the reference */
    int (*refer)(struct aging *a);
};

static struct aging aging_make(struct lake_lab *lab, const char *name)
{
    struct aging a = {.hand = hand_of(lab), .code = -1};
    struct hand *h = &a.hand;

    h->repo = lake_lab_repo(lab, name);
    hand_branch(h, "side", "main");
    a.body = gc_lab_put(h, "main", "a", "one");
    a.first = gc_lab_commit(h, "main", "one", 10);
    gc_lab_put(h, "main", "a", "two");
    gc_lab_commit(h, "main", "two", 5);
    hand_branch(h, "second", "main");
    gc_lab_put(h, "main", "a", "three");
    gc_lab_commit(h, "main", "three", 0);
    gc_lab_rules(h, 3);
    return a;
}

/* --- kinds of references --- */

static int refer_branch(struct aging *a)
{
    struct lake_branch_options o = {.name = STR("late"), .source = a->first};
    struct lake_branch b;
    struct hand *h = &a->hand;

    return lake_branch_create(h->lake, &h->arena, &h->repo, &o, &b, &h->err);
}

static int refer_tag(struct aging *a)
{
    struct hand *h = &a->hand;
    struct lake_tag t;

    return lake_tag_create(h->lake, &h->arena, &h->repo, STR("late"), a->first, false, &t, &h->err);
}

static int refer_hard_reset(struct aging *a)
{
    struct hand *h = &a->hand;

    return lake_hard_reset(h->lake, &h->arena, &h->repo, STR("side"), a->first, false, &h->err);
}

static int refer_merge(struct aging *a)
{
    struct lake_merge_options o = {.committer = STR("tester")};
    struct lake_conflicts conflicts;
    struct lake_commit c;
    struct hand *h = &a->hand;

    return lake_merge(h->lake, &h->arena, &h->repo, a->first, STR("side"), &o, &c, &conflicts,
                      &h->err);
}

static int refer_cherry_pick(struct aging *a)
{
    struct lake_pick_options o = {.ref = a->first, .committer = STR("tester")};
    struct lake_conflicts conflicts;
    struct lake_commit c;
    struct hand *h = &a->hand;

    return lake_cherry_pick(h->lake, &h->arena, &h->repo, STR("side"), &o, &c, &conflicts, &h->err);
}

/* Undoing the second commit brings the body of the first one back. */
static int refer_revert(struct aging *a)
{
    struct lake_pick_options o = {.ref = STR("second"), .committer = STR("tester")};
    struct lake_conflicts conflicts;
    struct lake_commit c;
    struct hand *h = &a->hand;

    return lake_revert(h->lake, &h->arena, &h->repo, STR("second"), &o, &c, &conflicts, &h->err);
}

static const struct {
    const char *name, *ref; /* `ref` has the body then */
    int (*refer)(struct aging *a);
} kinds[] = {
    {"branch", "late", refer_branch},           {"tag", "late", refer_tag},
    {"hard-reset", "side", refer_hard_reset},   {"merge", "side", refer_merge},
    {"cherry-pick", "side", refer_cherry_pick}, {"revert", "second", refer_revert},
};

static void refer(void *ctx)
{
    struct aging *a = ctx;

    a->hand.err = (struct err){0};
    a->code = a->refer(a);
}

/* Collects; the reference is made when the run comes to the n-th of its marks. */
static void collect_beside(struct aging *a, size_t kind, unsigned n)
{
    a->refer = kinds[kind].refer;
    steps_plan(STEPS_BEFORE, "lake.gc_mark", n, refer, a);
    gc_lab_collect(&a->hand, false);
    CHECK(steps_happened());
}

/* --- tests --- */

/* The collector has found that the commit is to expire, and comes to write that down. */
GC_PLACES_TEST(lake_gc_refs, each_kind_of_reference_made_while_marking_keeps_the_bodies)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct aging a = aging_make(lab, kinds[i].name);
        collect_beside(&a, i, 2);
        if (a.code < 0)
            test_fail(__FILE__, __LINE__, "%s: %s", kinds[i].name, a.hand.err.text);
        for (int turn = 0; turn < 2; turn++) { /* the mark is gone then, and the reference stays */
            CHECK(gc_lab_has_file(&a.hand, a.body.address));
            hand_expect(&a.hand, kinds[i].ref, "a", "one");
            gc_lab_read_refs(&a.hand);
            gc_lab_collect(&a.hand, false);
        }
        hand_release(&a.hand);
    }
}

GC_PLACES_TEST(lake_gc_refs, each_kind_of_reference_that_comes_behind_the_mark_is_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct aging a = aging_make(lab, kinds[i].name);
        collect_beside(&a, i, 3);
        if (a.code != ERR_GONE)
            test_fail(__FILE__, __LINE__, "%s: %s %s", kinds[i].name, err_name(a.code),
                      a.hand.err.text);
        CHECK(!gc_lab_has_file(&a.hand, a.body.address));
        gc_lab_read_refs(&a.hand);
        hand_release(&a.hand);
    }
}
