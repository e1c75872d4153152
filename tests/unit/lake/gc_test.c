/* Collection: what it removes, what it keeps, and what happens beside it. */
#include "lake/change.h"
#include "unit/lake/gc_lab.h"
#include "unit/lake/steps.h"

#include "base/clock.h"
#include "lake/place.h"

/* --- bodies --- */

GC_PLACES_TEST(lake_gc, bodies_that_no_ref_names_are_removed)
{
    struct hand h = hand_of(lab);
    struct lake_entry old = gc_lab_put(&h, "main", "a", "one");
    struct lake_entry now = gc_lab_put(&h, "main", "a", "two");
    struct lake_entry removed = gc_lab_put(&h, "main", "b", "three");

    hand_remove(&h, "main", "b");
    struct lake_entry committed = gc_lab_put(&h, "main", "c", "four");
    gc_lab_commit(&h, "main", "first", 0);
    struct lake_entry staged = gc_lab_put(&h, "main", "d", "five");
    struct lake_gc_report report = gc_lab_collect(&h, false);
    CHECK_INT(report.bodies_dead, 2);
    CHECK_INT(report.bodies_removed, 2);
    CHECK_INT(report.bodies_dead_bytes, strlen("one") + strlen("three"));
    CHECK(!gc_lab_has_file(&h, old.address));
    CHECK(!gc_lab_has_file(&h, removed.address));
    CHECK(gc_lab_has_file(&h, now.address));
    CHECK(gc_lab_has_file(&h, committed.address));
    CHECK(gc_lab_has_file(&h, staged.address));
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 3);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, bodies_of_sealed_tokens_and_of_removed_objects_in_commits_stay)
{
    struct hand h = hand_of(lab);
    struct lake_repo repo;
    struct lake_branch b;
    struct err err = {0};

    gc_lab_put(&h, "main", "a", "one");
    struct str id = gc_lab_commit(&h, "main", "first", 0);
    hand_remove(&h, "main", "a");
    gc_lab_commit(&h, "main", "second", 0);
    gc_lab_put(&h, "main", "b", "two");
    CHECK_OK(lake_seal(h.lake, &h.arena, &h.repo, STR("main"), &repo, &b, &err));
    CHECK(b.sealed_count > 0);
    gc_lab_collect(&h, false);
    CHECK_INT(gc_lab_read_all(&h, id), 1);
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 1);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, files_within_the_grace_and_files_of_others_stay)
{
    struct hand h = hand_of(lab);

    gc_lab_put_file(&h, STR("data/hour/young"), STR("x"));
    gc_lab_put_file(&h, STR("mine.txt"), STR("x"));
    lab->lake->o.gc_grace_ms = MS_PER_HOUR;
    CHECK_INT(gc_lab_collect(&h, false).bodies_listed, 0);
    CHECK(gc_lab_has_file(&h, STR("data/hour/young")));
    lab->lake->o.gc_grace_ms = 1;
    CHECK_INT(gc_lab_collect(&h, false).bodies_removed, 1);
    CHECK(!gc_lab_has_file(&h, STR("data/hour/young")));
    CHECK(gc_lab_has_file(&h, STR("mine.txt")));
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, full_addresses_inside_the_namespace_count_and_others_are_never_touched)
{
    struct hand h = hand_of(lab);
    struct lake_repo other = lake_lab_repo(lab, "other");
    struct hand there = hand_of(lab);
    struct lake_entry inside = hand_entry(&h, "body"), outside = hand_entry(&h, "body");

    there.repo = other;
    gc_lab_put_file(&h, STR("data/hour/x"), STR("body"));
    gc_lab_put_file(&there, STR("data/hour/y"), STR("body"));
    inside.address = STR("s3://" LAKE_LAB_BUCKET "/repo/data/hour/x");
    outside.address = STR("s3://" LAKE_LAB_BUCKET "/other/data/hour/y");
    inside.address_type = outside.address_type = LAKE_FULL;
    CHECK_INT(gc_lab_stage(&h, "main", "in", &inside, NULL), 0);
    CHECK_INT(gc_lab_stage(&h, "main", "out", &outside, NULL), 0);
    gc_lab_collect(&h, false);
    CHECK(gc_lab_has_file(&h, STR("data/hour/x")));
    hand_remove(&h, "main", "in");
    hand_remove(&h, "main", "out");
    gc_lab_collect(&h, false);
    CHECK(!gc_lab_has_file(&h, STR("data/hour/x")));
    CHECK(gc_lab_has_file(&there, STR("data/hour/y")));
    hand_release(&there);
    hand_release(&h);
}

/* --- uploads --- */

static struct str begin_upload(struct hand *h, struct str key)
{
    struct object_meta meta = {.owner = STR(LAKE_LAB_OWNER)};
    struct object_place p;
    struct err err = {0};
    struct str id;

    CHECK_OK(lake_place_open_below(&p, h->lake, &h->arena, &h->repo, key, PLACE_READ, &err));
    CHECK_OK(object_place_end(
        &p, p.bucket->ops->upload_begin(p.bucket, &h->arena, p.key, &meta, &id, &err), &err));
    return id;
}

/* Puts the record of an upload to the branch. */
static void put_upload(struct hand *h, const char *branch, struct str address, struct str id)
{
    struct str name = arena_fmt(&h->arena, "%s/path", branch);
    struct buf key = {0}, record = {0};
    struct err err = {0};

    buf_append_str(&key, name);
    buf_append_char(&key, 0);
    buf_append_str(&key, id);
    proto_put_bytes(&record, 1, address);
    proto_put_bytes(&record, 2, id);
    proto_put_time(&record, 5, clock_wall_ms());
    CHECK_OK(kv_set(h->lake->kv,
                    lake_key_in(&h->arena, h->repo.partition, "uploads", buf_str(&key)),
                    buf_str(&record), &err));
    buf_release(&key);
    buf_release(&record);
}

static size_t count_uploads(struct hand *h)
{
    struct list_options o = {.limit = 100};
    struct upload_list list = {0};
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open_below(&p, h->lake, &h->arena, &h->repo, STR("x"), PLACE_READ, &err));
    CHECK_OK(object_place_end(&p, p.bucket->ops->list_uploads(p.bucket, &h->arena, &o, &list, &err),
                              &err));
    return list.count;
}

GC_PLACES_TEST(lake_gc, uploads_of_branches_stay_and_others_are_aborted)
{
    struct hand h = hand_of(lab);

    put_upload(&h, "main", STR("data/h/b"), begin_upload(&h, STR("data/h/b")));
    put_upload(&h, "gone", STR("data/h/c"), begin_upload(&h, STR("data/h/c")));
    begin_upload(&h, STR("data/h/a")); /* no record names it */
    begin_upload(&h, STR("elsewhere"));
    lab->lake->o.gc_grace_ms = MS_PER_HOUR;
    CHECK_INT(gc_lab_collect(&h, false).uploads_aborted, 0);
    lab->lake->o.gc_grace_ms = 1;
    CHECK_INT(gc_lab_collect(&h, true).uploads_aborted, 0);
    CHECK_INT(gc_lab_collect(&h, false).uploads_aborted, 2);
    CHECK_INT(count_uploads(&h), 2);
    CHECK_INT(gc_lab_collect(&h, false).uploads_aborted, 0);
    hand_release(&h);
}

/* Its parts were put together, and the process died before the object was staged. */
GC_PLACES_TEST(lake_gc, the_body_of_an_upload_that_can_be_finished_again_stays)
{
    struct hand h = hand_of(lab);

    gc_lab_put_file(&h, STR("data/h/made"), STR("body"));
    put_upload(&h, "main", STR("data/h/made"), STR("id"));
    CHECK_INT(gc_lab_collect(&h, false).bodies_dead, 0);
    CHECK(gc_lab_has_file(&h, STR("data/h/made")));
    hand_release(&h);
}

/* --- retention --- */

/* Three commits of main, 10 and 5 days old and of today, each with a body of its own. */
struct chain {
    struct str ids[3];
    struct lake_entry entries[3];
};

static void make_chain(struct hand *h, struct chain *c)
{
    static const int64_t days[] = {10, 5, 0};
    static const char *const contents[] = {"one", "two", "three"};

    for (size_t i = 0; i < ARRAY_SIZE(days); i++) {
        c->entries[i] = gc_lab_put(h, "main", "a", contents[i]);
        c->ids[i] = gc_lab_commit(h, "main", contents[i], days[i]);
    }
}

static int try_list(struct hand *h, struct str ref)
{
    struct lake_list_options o = {.limit = 10};
    struct lake_objects page;
    struct err err = {0};

    return lake_list(h->lake, &h->arena, &h->repo, ref, &o, &page, &err);
}

static int try_branch(struct hand *h, const char *name, struct str source)
{
    struct lake_branch_options o = {.name = str_z(name), .source = source};
    struct lake_branch b;

    h->err = (struct err){0};
    return lake_branch_create(h->lake, &h->arena, &h->repo, &o, &b, &h->err);
}

GC_PLACES_TEST(lake_gc, commits_past_their_retention_expire_for_good)
{
    struct hand h = hand_of(lab);
    struct lake_tag tag;
    struct chain c;
    struct err err = {0};

    make_chain(&h, &c);
    gc_lab_rules(&h, 7);
    CHECK_INT(gc_lab_collect(&h, false).commits_expired, 1); /* "Repository created" */
    CHECK_INT(gc_lab_read_all(&h, c.ids[0]), 1);             /* its child is 5 days old */
    gc_lab_rules(&h, 3);
    struct lake_gc_report report = gc_lab_collect(&h, false);
    CHECK_INT(report.commits_expired, 1);
    CHECK_INT(report.bodies_removed, 1);
    CHECK(!gc_lab_has_file(&h, c.entries[0].address));
    CHECK_INT(try_list(&h, c.ids[0]), ERR_GONE);
    CHECK_INT(try_list(&h, STR("main~2")), ERR_GONE);
    CHECK_INT(try_branch(&h, "late", c.ids[0]), ERR_GONE);
    CHECK_ERR(lake_tag_create(h.lake, &h.arena, &h.repo, STR("late"), c.ids[0], false, &tag, &err),
              ERR_GONE);
    CHECK_ERR(lake_hard_reset(h.lake, &h.arena, &h.repo, STR("main"), c.ids[0], true, &err),
              ERR_GONE);
    CHECK_INT(gc_lab_read_all(&h, c.ids[1]), 1);
    gc_lab_rules(&h, 100); /* longer rules do not bring it back */
    gc_lab_collect(&h, false);
    CHECK_INT(try_list(&h, c.ids[0]), ERR_GONE);
    gc_lab_read_refs(&h);
    hand_release(&h);
}

/* Makes the branch "side" and commits the entry there, always with the same id. */
static struct str commit_on_side(struct hand *h, const struct lake_entry *e, int64_t created_ms)
{
    struct lake_commit_options o = {
        .message = STR("side"), .committer = STR("tester"), .created_ms = created_ms};
    struct lake_commit c;
    struct err err = {0};

    CHECK_INT(try_branch(h, "side", STR("main")), 0);
    CHECK_INT(gc_lab_stage(h, "side", "b", e, NULL), 0);
    CHECK_OK(lake_commit(h->lake, &h->arena, &h->repo, STR("side"), &o, &c, &err));
    return c.id;
}

GC_LAB_TEST(lake_gc, an_expired_commit_that_is_made_again_lives_again)
{
    struct hand h = hand_of(lab);
    int64_t created_ms = clock_wall_ms() - (int64_t)30 * MS_PER_DAY;
    struct lake_entry e = gc_lab_put(&h, "main", "a", "one");
    struct err err = {0};

    gc_lab_commit(&h, "main", "1", 0);
    struct str id = commit_on_side(&h, &e, created_ms);
    CHECK_OK(lake_branch_delete(h.lake, &h.arena, &h.repo, STR("side"), false, &err));
    gc_lab_rules(&h, 7);
    gc_lab_collect(&h, false);
    CHECK_INT(try_list(&h, id), ERR_GONE);
    CHECK_STR(commit_on_side(&h, &e, created_ms), id);
    CHECK_INT(try_list(&h, id), 0);
    gc_lab_put(&h, "side", "c", "two");
    gc_lab_commit(&h, "side", "2", 0);
    CHECK_INT(gc_lab_read_all(&h, STR("side~1")), 2);
    gc_lab_collect(&h, false); /* its child is young */
    CHECK_INT(gc_lab_read_all(&h, STR("side~1")), 2);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, tags_and_branches_keep_old_commits_and_branch_rules_come_first)
{
    struct hand h = hand_of(lab);
    struct lake_gc_branch_rule rule = {STR("main"), 7};
    struct lake_tag tag;
    struct chain c;
    struct err err = {0};

    make_chain(&h, &c);
    CHECK_OK(lake_tag_create(h.lake, &h.arena, &h.repo, STR("old"), c.ids[0], false, &tag, &err));
    gc_lab_rules(&h, 0);
    CHECK_INT(gc_lab_collect(&h, false).bodies_removed, 1); /* that of the second commit */
    CHECK_INT(gc_lab_read_all(&h, STR("old")), 1);
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 1);
    CHECK_INT(try_list(&h, c.ids[1]), ERR_GONE);

    struct str four = (gc_lab_put(&h, "main", "a", "four"), gc_lab_commit(&h, "main", "4", 0));
    gc_lab_put(&h, "main", "a", "five");
    gc_lab_commit(&h, "main", "5", 0);
    CHECK_OK(
        lake_gc_rules_set(h.lake, &h.arena, &h.repo, &(struct lake_gc_rules){0, &rule, 1}, &err));
    gc_lab_collect(&h, false);
    CHECK_INT(gc_lab_read_all(&h, four), 1);
    hand_release(&h);
}

/* The default rule is for commits without a branch, and for branches without a rule. */
GC_LAB_TEST(lake_gc, a_branch_may_keep_its_history_for_fewer_days_than_the_default)
{
    struct hand h = hand_of(lab);
    struct lake_gc_branch_rule rule = {STR("main"), 3};
    struct chain c;
    struct err err = {0};

    make_chain(&h, &c);
    CHECK_OK(
        lake_gc_rules_set(h.lake, &h.arena, &h.repo, &(struct lake_gc_rules){100, &rule, 1}, &err));
    CHECK_INT(gc_lab_collect(&h, false).commits_expired, 2); /* the first, and "created" */
    CHECK_INT(try_list(&h, c.ids[0]), ERR_GONE);
    CHECK_INT(gc_lab_read_all(&h, c.ids[1]), 1); /* its child is the head, of today */
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 1);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, commits_without_a_branch_live_by_the_default_rule)
{
    struct hand h = hand_of(lab);
    struct err err = {0};

    CHECK_OK(try_branch(&h, "young", STR("main")));
    CHECK_OK(try_branch(&h, "old", STR("main")));
    gc_lab_put(&h, "young", "a", "young");
    struct str young = gc_lab_commit(&h, "young", "young", 1);
    struct lake_entry dead = gc_lab_put(&h, "old", "a", "old");
    struct str old = gc_lab_commit(&h, "old", "old", 5);
    CHECK_OK(lake_branch_delete(h.lake, &h.arena, &h.repo, STR("young"), false, &err));
    CHECK_OK(lake_branch_delete(h.lake, &h.arena, &h.repo, STR("old"), false, &err));
    gc_lab_collect(&h, false); /* without rules every commit is kept */
    CHECK_INT(gc_lab_read_all(&h, old), 1);
    gc_lab_rules(&h, 3);
    gc_lab_collect(&h, false);
    CHECK_INT(gc_lab_read_all(&h, young), 1);
    CHECK_INT(try_list(&h, old), ERR_GONE);
    CHECK(!gc_lab_has_file(&h, dead.address));
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, an_expired_merge_base_still_merges)
{
    struct hand h = hand_of(lab);
    struct lake_merge_options o = {.committer = STR("tester")};
    struct lake_conflicts conflicts;
    struct lake_commit c;
    struct err err = {0};

    gc_lab_put(&h, "main", "base", "base");
    struct str base = gc_lab_commit(&h, "main", "base", 9);
    CHECK_OK(try_branch(&h, "side", STR("main")));
    gc_lab_put(&h, "side", "side", "side");
    gc_lab_commit(&h, "side", "side", 8);
    gc_lab_put(&h, "main", "main", "main");
    gc_lab_commit(&h, "main", "main", 8);
    gc_lab_rules(&h, 1);
    gc_lab_collect(&h, false);
    CHECK_INT(try_list(&h, base), ERR_GONE);
    CHECK_OK(
        lake_merge(h.lake, &h.arena, &h.repo, STR("side"), STR("main"), &o, &c, &conflicts, &err));
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 3);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, rules_are_kept_as_they_were_set)
{
    struct lake_gc_branch_rule branches[] = {{STR("b"), 2}, {STR("a"), 0}};
    struct lake_gc_rules rules = {21, branches, 2}, got;
    struct err err = {0};

    CHECK_ERR(lake_gc_rules_get(lab->lake, &lab->arena, &lab->repo, &got, &err), ERR_NOT_FOUND);
    CHECK_OK(lake_gc_rules_set(lab->lake, &lab->arena, &lab->repo, &rules, &err));
    CHECK_OK(lake_gc_rules_get(lab->lake, &lab->arena, &lab->repo, &got, &err));
    CHECK_INT(got.default_days, 21);
    CHECK_INT(got.count, 2);
    CHECK_STR(got.branches[0].branch, STR("a"));
    CHECK_INT(got.branches[0].days, 0);
    CHECK_STR(got.branches[1].branch, STR("b"));
    CHECK_INT(got.branches[1].days, 2);
    branches[0].branch = STR("a");
    CHECK_ERR(lake_gc_rules_set(lab->lake, &lab->arena, &lab->repo, &rules, &err), ERR_INVALID);
    branches[0].branch = STR("bad name");
    CHECK_ERR(lake_gc_rules_set(lab->lake, &lab->arena, &lab->repo, &rules, &err), ERR_INVALID);
    CHECK_OK(lake_gc_rules_delete(lab->lake, &lab->arena, &lab->repo, &err));
    CHECK_ERR(lake_gc_rules_get(lab->lake, &lab->arena, &lab->repo, &got, &err), ERR_NOT_FOUND);
}

/* --- a run that only looks --- */

GC_PLACES_TEST(lake_gc, a_run_that_only_looks_changes_nothing)
{
    struct hand h = hand_of(lab);
    struct chain c;

    make_chain(&h, &c);
    gc_lab_put_file(&h, STR("data/hour/dead"), STR("dead"));
    gc_lab_rules(&h, 3);
    struct lake_gc_report report = gc_lab_collect(&h, true);
    CHECK(report.mark_only);
    CHECK_INT(report.commits_expired, 2);
    CHECK_INT(report.bodies_dead, 2);
    CHECK_INT(report.bodies_removed, 0);
    CHECK(gc_lab_has_file(&h, STR("data/hour/dead")));
    CHECK_INT(gc_lab_read_all(&h, c.ids[0]), 1);
    report = gc_lab_collect(&h, false);
    CHECK_INT(report.bodies_removed, 2);
    CHECK(!gc_lab_has_file(&h, STR("data/hour/dead")));
    hand_release(&h);
}

/* --- beside a run --- */

/* What happens at a step of the run. */
struct beside {
    struct hand *hand;
    struct chain *chain;
    struct lake_entry entry;
    struct lake_keep keep;
    int code;
};

static void beside_branch(void *ctx)
{
    struct beside *b = ctx;

    b->code = try_branch(b->hand, "late", b->chain->ids[0]);
}

/* The collector has found that the commit is to expire, and comes to write that down. */
GC_PLACES_TEST(lake_gc, a_branch_made_while_marking_keeps_its_commit)
{
    struct hand h = hand_of(lab);
    struct chain c;
    struct beside b = {.hand = &h, .chain = &c, .code = -1};

    make_chain(&h, &c);
    gc_lab_rules(&h, 3);
    steps_plan(STEPS_BEFORE, "lake.gc_mark", 2, beside_branch, &b);
    CHECK_INT(gc_lab_collect(&h, false).commits_expired, 1); /* "Repository created" */
    CHECK(steps_happened());
    CHECK_INT(b.code, 0);
    CHECK_INT(gc_lab_read_all(&h, STR("late")), 1);
    gc_lab_collect(&h, false); /* the mark is gone, and the branch is there */
    CHECK_INT(gc_lab_read_all(&h, STR("late")), 1);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, a_branch_that_comes_behind_the_mark_is_refused)
{
    struct hand h = hand_of(lab);
    struct chain c;
    struct beside b = {.hand = &h, .chain = &c};

    make_chain(&h, &c);
    gc_lab_rules(&h, 3);
    steps_plan(STEPS_BEFORE, "lake.gc_mark", 3, beside_branch,
               &b); /* before the marks are closed */
    gc_lab_collect(&h, false);
    CHECK(steps_happened());
    CHECK_INT(b.code, ERR_GONE);
    gc_lab_read_refs(&h);
    hand_release(&h);
}

static void beside_stage(void *ctx)
{
    struct beside *b = ctx;
    struct err err = {0};

    CHECK_OK(lake_keep_begin(&b->keep, b->hand->lake, &b->hand->arena, &b->hand->repo, &err));
    b->code = gc_lab_stage(b->hand, "main", "again", &b->entry, &b->keep);
}

GC_PLACES_TEST(lake_gc, a_body_that_gets_a_name_again_while_marking_is_kept)
{
    struct hand h = hand_of(lab);
    struct beside b = {.hand = &h, .code = -1};

    b.entry = gc_lab_put(&h, "main", "a", "one");
    hand_remove(&h, "main", "a");
    steps_plan(STEPS_BEFORE, "lake.gc_mark", 3, beside_stage, &b); /* it is on the list already */
    struct lake_gc_report report = gc_lab_collect(&h, false);
    CHECK(steps_happened());
    CHECK_INT(b.code, 0);
    CHECK_INT(report.bodies_dead, 1);
    CHECK_INT(report.bodies_removed, 0);
    CHECK_INT(gc_lab_read_all(&h, STR("main")), 1);
    CHECK_INT(gc_lab_collect(&h, false).bodies_dead, 0);
    hand_release(&h);
}

static void beside_check(void *ctx)
{
    struct beside *b = ctx;
    struct err err = {0};

    CHECK_OK(lake_keep_begin(&b->keep, b->hand->lake, &b->hand->arena, &b->hand->repo, &err));
    CHECK(b->keep.is_removing);
    CHECK_OK(lake_keep_check_file(&b->keep, &b->hand->repo, &b->entry, clock_wall_ms(), &err));
    b->code = lake_keep_check_file(&b->keep, &b->hand->repo, &b->entry, 1, &err);
}

GC_PLACES_TEST(lake_gc, an_old_body_without_a_name_is_refused_while_bodies_are_removed)
{
    struct hand h = hand_of(lab);
    struct beside b = {.hand = &h};

    b.entry = gc_lab_put(&h, "main", "a", "one");
    hand_remove(&h, "main", "a");
    steps_plan(STEPS_BEFORE, "lake.gc_remove", 1, beside_check, &b);
    gc_lab_collect(&h, false);
    CHECK(steps_happened());
    CHECK_INT(b.code, ERR_BUSY);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, a_state_that_was_read_before_the_run_is_refused)
{
    struct hand h = hand_of(lab);
    struct lake_keep keep;
    struct err err = {0};

    struct lake_entry e = gc_lab_put(&h, "main", "a", "one");
    CHECK_OK(lake_keep_begin(&keep, h.lake, &h.arena, &h.repo, &err));
    hand_remove(&h, "main", "a");
    gc_lab_collect(&h, false);
    CHECK(!gc_lab_has_file(&h, e.address));
    CHECK_INT(gc_lab_stage(&h, "main", "again", &e, &keep), ERR_BUSY);
    hand_expect_list(&h, "main", "");
    hand_release(&h);
}

static void beside_commit(void *ctx)
{
    struct beside *b = ctx;

    gc_lab_commit(b->hand, "main", "beside", 0);
    b->code = 0;
}

GC_PLACES_TEST(lake_gc, a_commit_beside_the_run_loses_nothing)
{
    for (unsigned n = 1; n <= 4; n++) {
        struct hand h = hand_of(lab);
        struct beside b = {.hand = &h, .code = -1};
        gc_lab_put(&h, "main", "a", arena_fmt(&h.arena, "content %u", n).p);
        gc_lab_put_file(&h, STR("data/hour/dead"), STR("dead"));
        gc_lab_rules(&h, 0);
        steps_plan(STEPS_BEFORE, "lake.gc_mark", n, beside_commit, &b);
        gc_lab_collect(&h, false);
        CHECK(steps_happened());
        CHECK_INT(b.code, 0);
        CHECK_INT(gc_lab_read_all(&h, STR("main")), 1);
        gc_lab_collect(&h, false);
        CHECK_INT(gc_lab_read_all(&h, STR("main")), 1);
        hand_release(&h);
    }
}

/* The tokens of the branch are rewritten into one and dropped, behind the collector's back. */
static void beside_compact(void *ctx)
{
    struct beside *b = ctx;
    struct hand *h = b->hand;
    struct err err = {0};

    int code;

    do { /* the cleaner may compact at the same time */
        code = lake_compact(h->lake, &h->arena, &h->repo, STR("main"), &err);
    } while (code == ERR_AGAIN);
    CHECK_INT(code, 0);
    for (int i = 0; i < 3; i++) { /* without fences a token is dropped twice */
        int64_t since = clock_wall_ms();
        CHECK_SOON(clock_wall_ms() > since + 3);
        CHECK_OK(lake_clean(h->lake, &err));
    }
    b->code = 0;
}

GC_PLACES_TEST(lake_gc, rows_that_move_to_another_token_are_found)
{
    struct hand h = hand_of(lab);
    struct beside b = {.hand = &h, .code = -1};
    struct lake_repo repo;
    struct lake_branch branch;
    struct err err = {0};

    for (unsigned i = 0; i < LAKE_SEALED_KEPT + 2; i++) {
        gc_lab_put(&h, "main", arena_fmt(&h.arena, "p%u", i).p, "body");
        CHECK_OK(lake_seal(h.lake, &h.arena, &h.repo, STR("main"), &repo, &branch, &err));
    }
    steps_plan(STEPS_BEFORE, "lake.gc_tokens", 1, beside_compact, &b);
    CHECK_INT(gc_lab_collect(&h, false).bodies_dead, 0);
    CHECK(steps_happened());
    CHECK_INT(b.code, 0);
    CHECK_INT(gc_lab_read_all(&h, STR("main")), LAKE_SEALED_KEPT + 2);
    hand_release(&h);
}

/* --- nodes --- */

static struct str node_key(struct hand *h, char digit)
{
    char id[LAKE_ID_LEN + 1];

    memset(id, digit, LAKE_ID_LEN);
    id[LAKE_ID_LEN] = 0;
    return arena_fmt(&h->arena, LAKE_NODES "/%s", id);
}

/* Nodes are two seconds old at least, because conditions compare whole seconds. */
static void wait_for_nodes(void)
{
    int64_t since = clock_wall_ms();

    CHECK_SOON(clock_wall_ms() > since + 2100);
}

struct remake {
    struct hand *hand;
    struct str key;
};

static void beside_remake(void *ctx)
{
    struct remake *r = ctx;

    gc_lab_put_file(r->hand, r->key, STR("content"));
}

GC_LAB_TEST(lake_gc, nodes_that_no_commit_names_are_removed_unless_they_are_made_again)
{
    struct hand h = hand_of(lab);
    struct remake r = {&h, node_key(&h, 'a')};

    gc_lab_put(&h, "main", "a", "one");
    gc_lab_commit(&h, "main", "first", 0);
    gc_lab_put_file(&h, node_key(&h, 'a'), STR("content"));
    gc_lab_put_file(&h, node_key(&h, 'b'), STR("content"));
    gc_lab_put_file(&h, STR(LAKE_NODES "/other.json"), STR("content"));
    wait_for_nodes();
    steps_plan(STEPS_BEFORE, "lake.gc_remove", 1, beside_remake, &r);
    struct lake_gc_report report = gc_lab_collect(&h, false);
    CHECK(steps_happened());
    CHECK_INT(report.nodes_dead, 2);
    CHECK_INT(report.nodes_removed, 1);
    CHECK(gc_lab_has_file(&h, node_key(&h, 'a')));
    CHECK(!gc_lab_has_file(&h, node_key(&h, 'b')));
    CHECK(gc_lab_has_file(&h, STR(LAKE_NODES "/other.json")));
    CHECK(gc_lab_has_file(&h, STR(LAKE_CLAIM)));
    gc_lab_read_refs(&h);
    hand_release(&h);
}

/* --- interruptions --- */

struct patience {
    unsigned left;
};

static bool patience_ends(void *ctx)
{
    struct patience *p = ctx;

    return p->left == 0 || --p->left == 0;
}

/* The run is stopped after every number of questions in turn, and always by another process. */
GC_PLACES_TEST(lake_gc, a_run_that_is_stopped_anywhere_goes_on)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct err err = {0};
    int code = ERR_CANCELED;
    unsigned stops = 0;
    struct lake_gc_report report;
    struct chain c;

    other.lake->o.folder = test_dir();
    other.lake->o.gc_grace_ms = 1;
    make_chain(&h, &c);
    for (int i = 0; i < 5; i++)
        gc_lab_put_file(&h, arena_fmt(&h.arena, "data/hour/dead%d", i), STR("dead"));
    gc_lab_rules(&h, 3);
    int64_t since = clock_wall_ms();
    CHECK_SOON(clock_wall_ms() > since + 5);
    CHECK_OK(lake_gc_ask(h.lake, &h.arena, &h.repo, false, &report, &err));
    for (unsigned patience = 1; code == ERR_CANCELED; patience++) {
        struct patience p = {patience};
        struct hand *worker = patience % 2 ? &h : &other;
        code = lake_gc_work(worker->lake, &h.repo, patience_ends, &p, &err);
        stops += code == ERR_CANCELED;
        gc_lab_read_refs(&h);
        CHECK(patience < 1000);
    }
    CHECK_OK(code);
    CHECK(stops > 5);
    CHECK_INT(gc_lab_count_files(&h, "data/"), 2);
    CHECK_INT(try_list(&h, c.ids[0]), ERR_GONE);
    CHECK_OK(lake_gc_report(h.lake, &h.arena, &h.repo, &report, &err));
    CHECK_INT(report.stage, LAKE_GC_DONE);
    hand_release(&other);
    hand_release(&h);
}

static void beside_take_over(void *ctx)
{
    struct hand *other = ctx;
    struct lake_gc_report report;

    CHECK_INT(gc_lab_try_collect(other, &report), 0);
    CHECK_INT(report.stage, LAKE_GC_DONE);
}

GC_PLACES_TEST(lake_gc, a_process_that_was_overtaken_stops)
{
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct lake_gc_report report;
    struct err err = {0};

    other.lake->o.folder = test_dir();
    other.lake->o.gc_grace_ms = 1;
    gc_lab_put(&h, "main", "a", "one");
    gc_lab_put_file(&h, STR("data/hour/dead"), STR("dead"));
    int64_t since = clock_wall_ms();
    CHECK_SOON(clock_wall_ms() > since + 5);
    CHECK_OK(lake_gc_ask(h.lake, &h.arena, &h.repo, false, &report, &err));
    steps_plan(STEPS_BEFORE, "lake.gc_mark", 3, beside_take_over, &other);
    CHECK_ERR(lake_gc_work(h.lake, &h.repo, NULL, NULL, &err), ERR_BUSY);
    CHECK(steps_happened());
    CHECK(!gc_lab_has_file(&h, STR("data/hour/dead")));
    gc_lab_read_refs(&h);
    hand_release(&other);
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, a_bare_repository_is_not_collected_before_its_refs_are_restored)
{
    struct lake_repo_options o = {.id = STR("bare"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space = STR("s3://" LAKE_LAB_BUCKET "/bare"),
                                  .bare = true};
    struct hand h = hand_of(lab);
    struct lake_gc_report report;
    struct err err = {0};

    CHECK_OK(lake_repo_create(h.lake, &h.arena, &o, &h.repo, &err));
    gc_lab_put_file(&h, STR("data/hour/old"), STR("old"));
    CHECK_ERR(lake_gc_ask(h.lake, &h.arena, &h.repo, false, &report, &err), ERR_BUSY);
    CHECK_OK(lake_gc_work(h.lake, &h.repo, NULL, NULL, &err));
    CHECK(gc_lab_has_file(&h, STR("data/hour/old")));
    CHECK_OK(lake_gc_allow(h.lake, &h.arena, &h.repo, &err));
    CHECK_OK(lake_gc_allow(h.lake, &h.arena, &h.repo, &err));
    gc_lab_collect(&h, false);
    CHECK(!gc_lab_has_file(&h, STR("data/hour/old")));
    hand_release(&h);
}

GC_PLACES_TEST(lake_gc, nothing_is_left_in_the_store_behind_a_run)
{
    struct hand h = hand_of(lab);
    struct chain c;
    struct beside b = {.hand = &h, .chain = &c};

    make_chain(&h, &c);
    gc_lab_put_file(&h, STR("data/hour/dead"), STR("dead"));
    size_t before = hand_count_rows(&h, h.repo.partition);
    gc_lab_rules(&h, 30);
    steps_plan(STEPS_AFTER, "lake.gc_mark", 1, beside_branch, &b);
    gc_lab_collect(&h, false);
    CHECK(steps_happened());
    /* New are the rules, the report and the branch. */
    CHECK_INT(hand_count_rows(&h, h.repo.partition), before + 3);
    hand_release(&h);
}

#define GC_LOST "00000000000000000000000000000000000000000000000000000000000000aa"

/* Puts a commit whose tree is not there, as a damaged store has it, and returns the row's name. */
static struct kv_name gc_put_damage(struct hand *h)
{
    struct lake_commit c = {.id = STR(GC_LOST), .tree = STR(GC_LOST), .generation = 1};
    struct buf record = {0};
    struct err err = {0};
    struct lake_tx tx;
    struct kv_name name = lake_key_commit(&h->arena, h->repo.partition, c.id);

    lake_commit_write(&record, &c);
    lake_tx_init(&tx, &h->arena);
    lake_tx_put(&tx, name, buf_str(&record));
    CHECK_OK(lake_tx_write(h->lake, &tx, NULL, &err));
    buf_release(&record);
    return name;
}

GC_LAB_TEST(lake_gc, the_report_says_why_a_try_failed)
{
    struct hand h = hand_of(lab);
    struct lake_repo old = h.repo;
    struct lake_gc_report report;
    struct err err = {0};
    struct kv_name damage = gc_put_damage(&h);

    old.stamp = STR("an earlier record"); /* a change of the record is no collection */
    CHECK_OK(lake_gc_ask(h.lake, &h.arena, &old, false, &report, &err));
    CHECK_ERR(lake_gc_work(h.lake, &h.repo, NULL, NULL, &err), ERR_CORRUPT);
    CHECK_OK(lake_gc_report(h.lake, &h.arena, &h.repo, &report, &err));
    CHECK(str_find(report.error, STR(GC_LOST)) >= 0);
    CHECK_INT(report.stage, LAKE_GC_MARKING);
    kv_lab_remove(h.lake->kv, damage.partition.p, damage.key.p);
    err = (struct err){0};
    CHECK_OK(lake_gc_work(h.lake, &h.repo, NULL, NULL, &err));
    CHECK_OK(lake_gc_report(h.lake, &h.arena, &h.repo, &report, &err));
    CHECK_INT(report.error.len, 0);
    CHECK_INT(report.stage, LAKE_GC_DONE);
    hand_release(&h);
}
