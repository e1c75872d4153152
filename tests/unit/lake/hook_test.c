/* Hooks before and behind each event. */
#include "unit/lake/hand.h"
#include "unit/lake/steps.h"

#include "lake/change.h"
#include "lake/hooks.h"

struct watching {
    struct lake_hooks hooks;
    unsigned pre[16], post[16];
    int answer;       /* of calls before an event that makes a commit */
    bool refuses_all; /* `answer` is for all events */
    struct str last_id;
    struct arena arena;
};

static int watch_pre(void *ctx, struct lake *l, struct arena *a, const struct lake_hook_call *c,
                     struct err *err)
{
    struct watching *w = ctx;

    w->pre[c->event]++;
    if (!c->commit)
        return w->refuses_all ? err_set(err, w->answer, "a hook refused") : 0;
    w->last_id = arena_str(&w->arena, c->commit->id);
    return w->answer < 0 ? err_set(err, w->answer, "a hook refused") : 0;
}

static void watch_post(void *ctx, struct lake *l, const struct lake_hook_call *c)
{
    ((struct watching *)ctx)->post[c->event]++;
}

static void watch(struct watching *w, struct hand *h)
{
    w->hooks = (struct lake_hooks){watch_pre, watch_post, w};
    h->lake->o.hooks = &w->hooks;
}

static void unwatch(struct watching *w, struct hand *h)
{
    h->lake->o.hooks = NULL;
    arena_release(&w->arena);
}

LAKE_LAB_TEST(lake_hook, a_commit_that_a_hook_refuses_leaves_the_branch_as_it_was)
{
    struct hand h = hand_of(lab);
    struct watching w = {.answer = ERR_PRECONDITION};

    watch(&w, &h);
    hand_put(&h, "main", "a", "a1");
    CHECK_INT(hand_try_commit(&h, "main", "x"), ERR_PRECONDITION);
    CHECK_STR(str_z(h.err.text), STR("a hook refused"));
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    hand_expect(&h, "main", "a", "a1");
    CHECK_INT(w.post[LAKE_ON_COMMIT], 0);
    w.answer = 0;
    struct str id = hand_commit(&h, "main", "x");
    CHECK_STR(w.last_id, id);
    CHECK_INT(w.pre[LAKE_ON_PREPARE_COMMIT], 2);
    CHECK_INT(w.pre[LAKE_ON_COMMIT], 2);
    CHECK_INT(w.post[LAKE_ON_COMMIT], 1);
    unwatch(&w, &h);
    hand_release(&h);
}

static void seal_again(void *ctx)
{
    struct hand *other = ctx;
    struct lake_branch b;
    struct lake_repo repo;

    hand_put(other, "main", "late", "l");
    CHECK_INT(
        lake_seal(other->lake, &other->arena, &other->repo, STR("main"), &repo, &b, &other->err),
        0);
}

/* C3: R1 keeps the tree, so the hooks are not asked again. */
LAKE_LAB_TEST(lake_hook, hooks_run_once_for_each_tree)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct watching w = {0};

    watch(&w, &h);
    hand_put(&h, "main", "a", "a1");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, seal_again, &other);
    hand_commit(&h, "main", "x");
    CHECK(steps_happened());
    CHECK_INT(steps_count("lake.publish"), 2);
    CHECK_INT(w.pre[LAKE_ON_COMMIT], 1);
    CHECK_INT(w.post[LAKE_ON_COMMIT], 1);
    hand_expect_list(&h, "main@", "a");
    hand_expect_list(&h, "main", "a late");
    unwatch(&w, &h);
    hand_release(&other);
    hand_release(&h);
}

static void other_resets_all(void *ctx)
{
    struct hand *o = ctx;

    CHECK_INT(lake_reset(o->lake, &o->arena, &o->repo, STR("main"), LAKE_RESET_PATH, STR("b"),
                         false, &o->err),
              0);
}

/* C3: R4 builds another tree, which the hooks have not seen. */
LAKE_LAB_TEST(lake_hook, another_tree_is_asked_for_again)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct watching w = {0};

    watch(&w, &h);
    hand_put(&h, "main", "a", "a1");
    hand_put(&h, "main", "b", "b1");
    steps_plan(STEPS_BEFORE, "lake.publish", 1, other_resets_all, &other);
    hand_commit(&h, "main", "x");
    CHECK(steps_happened());
    CHECK_INT(w.pre[LAKE_ON_COMMIT], 2);
    hand_expect_list(&h, "main@", "a");
    unwatch(&w, &h);
    hand_release(&other);
    hand_release(&h);
}

static void expect_calls(const struct watching *w, enum lake_event event, unsigned pre,
                         unsigned post)
{
    CHECK_INT(w->pre[event], pre);
    CHECK_INT(w->post[event], post);
}

LAKE_LAB_TEST(lake_hook, each_event_calls_before_and_behind)
{
    struct hand h = hand_of(lab);
    struct watching w = {0};
    struct lake_pick_options pick = {.ref = STR("main")};
    struct lake_conflicts conflicts;
    struct lake_commit c;
    struct lake_tag tag;

    watch(&w, &h);
    hand_branch(&h, "side", "main");
    expect_calls(&w, LAKE_ON_CREATE_BRANCH, 1, 1);
    hand_put(&h, "side", "s", "s");
    hand_commit(&h, "side", "side");
    expect_calls(&w, LAKE_ON_PREPARE_COMMIT, 1, 0);
    expect_calls(&w, LAKE_ON_COMMIT, 1, 1);
    CHECK_INT(lake_cherry_pick(h.lake, &h.arena, &h.repo, STR("main"),
                               &(struct lake_pick_options){.ref = STR("side")}, &c, &conflicts,
                               &h.err),
              0);
    expect_calls(&w, LAKE_ON_CHERRY_PICK, 1, 1);
    CHECK_INT(lake_revert(h.lake, &h.arena, &h.repo, STR("main"), &pick, &c, &conflicts, &h.err),
              0);
    expect_calls(&w, LAKE_ON_REVERT, 1, 1);
    hand_merge(&h, "side", "main");
    expect_calls(&w, LAKE_ON_MERGE, 1, 1);
    CHECK_INT(
        lake_tag_create(h.lake, &h.arena, &h.repo, STR("v1"), STR("main"), false, &tag, &h.err), 0);
    expect_calls(&w, LAKE_ON_CREATE_TAG, 1, 1);
    CHECK_INT(lake_tag_delete(h.lake, &h.arena, &h.repo, STR("v1"), false, &h.err), 0);
    expect_calls(&w, LAKE_ON_DELETE_TAG, 1, 1);
    CHECK_INT(lake_branch_delete(h.lake, &h.arena, &h.repo, STR("side"), false, &h.err), 0);
    expect_calls(&w, LAKE_ON_DELETE_BRANCH, 1, 1);
    unwatch(&w, &h);
    hand_release(&h);
}

LAKE_LAB_TEST(lake_hook, a_refusal_leaves_every_ref_as_it_was)
{
    struct hand h = hand_of(lab);
    struct watching w = {.answer = ERR_PRECONDITION, .refuses_all = true};
    struct lake_branch_options o = {.name = STR("new"), .source = STR("main")};
    struct lake_conflicts conflicts;
    struct lake_pick_options pick = {.ref = STR("side")};
    struct lake_branch b;
    struct lake_commit c;
    struct lake_tag tag;
    struct str head;

    hand_branch(&h, "side", "main");
    hand_put(&h, "side", "s", "s");
    hand_commit(&h, "side", "side");
    CHECK_INT(
        lake_tag_create(h.lake, &h.arena, &h.repo, STR("v1"), STR("main"), false, &tag, &h.err), 0);
    head = hand_read_branch(&h, "main").commit_id;
    watch(&w, &h);
    CHECK_INT(hand_try_merge(&h, "side", "main"), ERR_PRECONDITION);
    CHECK_INT(
        lake_cherry_pick(h.lake, &h.arena, &h.repo, STR("main"), &pick, &c, &conflicts, &h.err),
        ERR_PRECONDITION);
    CHECK_INT(lake_revert(h.lake, &h.arena, &h.repo, STR("side"), &pick, &c, &conflicts, &h.err),
              ERR_PRECONDITION);
    CHECK_INT(lake_branch_create(h.lake, &h.arena, &h.repo, &o, &b, &h.err), ERR_PRECONDITION);
    CHECK_INT(lake_branch_delete(h.lake, &h.arena, &h.repo, STR("side"), false, &h.err),
              ERR_PRECONDITION);
    CHECK_INT(
        lake_tag_create(h.lake, &h.arena, &h.repo, STR("v2"), STR("main"), false, &tag, &h.err),
        ERR_PRECONDITION);
    CHECK_INT(lake_tag_delete(h.lake, &h.arena, &h.repo, STR("v1"), false, &h.err),
              ERR_PRECONDITION);
    unwatch(&w, &h);
    CHECK_STR(hand_read_branch(&h, "main").commit_id, head);
    hand_expect_list(&h, "side", "s");
    CHECK_INT(lake_tag_get(h.lake, &h.arena, &h.repo, STR("v1"), &tag, &h.err), 0);
    CHECK_INT(lake_tag_get(h.lake, &h.arena, &h.repo, STR("v2"), &tag, &h.err), ERR_NOT_FOUND);
    CHECK_INT(lake_branch_get(h.lake, &h.arena, &h.repo, STR("new"), &b, &h.err), ERR_NOT_FOUND);
    hand_release(&h);
}
