/* Commits that are added by their records. */
#include "lake/commit_record.h"

#include "unit/lake/gc_lab.h"
#include "unit/lake/steps.h"

/* A child of main's head with this tree. */
static struct lake_commit record_of(struct hand *h, const char *message, struct str tree)
{
    struct str *parent = arena_array(&h->arena, 1, sizeof(*parent));
    char id[LAKE_ID_LEN + 1];
    struct lake_commit head;
    struct err err = {0};

    *parent = hand_read_branch(h, "main").commit_id;
    CHECK_OK(lake_commit_get(h->lake, &h->arena, &h->repo, *parent, &head, &err));
    struct lake_commit c = {.committer = STR("tester"),
                            .message = str_z(message),
                            .tree = tree,
                            .created_ms = 1000,
                            .version = 1,
                            .generation = head.generation + 1,
                            .parents = parent,
                            .parent_count = 1};
    lake_commit_id(id, &c);
    c.id = arena_str(&h->arena, str_z(id));
    return c;
}

static struct str record_head_tree(struct hand *h)
{
    struct lake_commit head;
    struct err err = {0};

    CHECK_OK(lake_commit_get(h->lake, &h->arena, &h->repo, hand_read_branch(h, "main").commit_id,
                             &head, &err));
    return head.tree;
}

GC_LAB_TEST(lake_commit_record, the_tree_must_be_there)
{
    struct hand h = hand_of(lab);
    struct err err = {0};

    gc_lab_put(&h, "main", "a", "one");
    hand_commit(&h, "main", "one");
    struct lake_commit lost = record_of(
        &h, "lost", STR("00000000000000000000000000000000000000000000000000000000000000aa"));
    CHECK_ERR(lake_commit_add_record(h.lake, &h.arena, &h.repo, &lost, false, &err), ERR_INVALID);
    struct lake_commit good = record_of(&h, "good", record_head_tree(&h));
    CHECK_OK(lake_commit_add_record(h.lake, &h.arena, &h.repo, &good, false, &err));
    CHECK_ERR(lake_commit_add_record(h.lake, &h.arena, &h.repo, &good, false, &err), ERR_EXISTS);
    struct lake_commit empty = record_of(&h, "empty", STR_EMPTY);
    CHECK_OK(lake_commit_add_record(h.lake, &h.arena, &h.repo, &empty, false, &err));
    CHECK_INT(gc_lab_collect(&h, false).stage, LAKE_GC_DONE);
    hand_release(&h);
}

static void record_add_beside(void *ctx)
{
    struct hand *h = ctx;
    struct err err = {0};
    struct lake_commit c = record_of(h, "beside", record_head_tree(h));

    CHECK_ERR(lake_commit_add_record(h->lake, &h->arena, &h->repo, &c, false, &err), ERR_BUSY);
}

GC_LAB_TEST(lake_commit_record, a_collection_that_is_under_way_refuses_old_trees)
{
    struct hand h = hand_of(lab);

    gc_lab_put(&h, "main", "a", "one");
    hand_commit(&h, "main", "one");
    steps_plan(STEPS_BEFORE, "lake.gc_mark", 2, record_add_beside, &h);
    CHECK_INT(gc_lab_collect(&h, false).stage, LAKE_GC_DONE);
    CHECK(steps_happened());
    hand_release(&h);
}

GC_LAB_TEST(lake_commit_record, a_repository_whose_record_has_changed_is_read_again)
{
    struct hand h = hand_of(lab);
    struct lake_repo old = h.repo;
    struct err err = {0};
    struct lake_commit c = record_of(&h, "late", STR_EMPTY);

    old.stamp = STR("an earlier record");
    CHECK_OK(lake_commit_add_record(h.lake, &h.arena, &old, &c, false, &err));
    old.token = STR("of another repository");
    c = record_of(&h, "later", STR_EMPTY);
    CHECK_ERR(lake_commit_add_record(h.lake, &h.arena, &old, &c, false, &err), ERR_NOT_FOUND);
    hand_release(&h);
}
