/* Imports: objects of other buckets become entries of a branch, by one commit. */
#include "lake/import_int.h"
#include "unit/lake/gc_lab.h"

#include "base/clock.h"
#include "lake/place.h"
#include "object/overlay.h"
#include "route/route.h"
#include "unit/lake/steps.h"

#define SOURCE "source"

static void make_source(struct lake_lab *lab)
{
    struct bucket_info info = {.name = STR(SOURCE), .owner = STR(LAKE_LAB_OWNER)};
    struct err err = {0};

    CHECK_OK(storage_create_bucket(lab->storage, &info, &err));
    if (lab->far)
        CHECK_OK(route_set(lab->routes, info.owner, info.name, lab->storage->name, &err));
}

static void put_source(struct hand *h, const char *key, const char *content)
{
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open(&p, h->lake, &h->arena, STR(LAKE_LAB_OWNER), STR(SOURCE), str_z(key),
                             PLACE_PUT, &err));
    CHECK_OK(object_place_end(&p, object_place_put(&p, str_z(content), NULL, &err), &err));
}

static struct lake_import_options import_options_of(const struct lake_import_path *paths,
                                                    size_t count)
{
    return (struct lake_import_options){.branch = STR("main"),
                                        .paths = paths,
                                        .count = count,
                                        .committer = STR("tester"),
                                        .message = STR("imported"),
                                        .user = STR(LAKE_LAB_OWNER)};
}

static int try_start(struct hand *h, const struct lake_import_path *paths, size_t count,
                     struct str *id)
{
    struct lake_import_options o = import_options_of(paths, count);

    h->err = (struct err){0};
    return lake_import_start(h->lake, &h->arena, &h->repo, &o, id, &h->err);
}

static struct lake_import_status work(struct hand *h, struct str id)
{
    struct lake_import_status status;
    struct err err = {0};

    CHECK_OK(lake_import_work(h->lake, &h->repo, id, NULL, NULL, &err));
    CHECK_OK(lake_import_get(h->lake, &h->arena, &h->repo, id, &status, &err));
    return status;
}

static struct lake_import_status import(struct hand *h, const struct lake_import_path *paths,
                                        size_t count)
{
    struct str id;

    CHECK_INT(try_start(h, paths, count, &id), 0);
    return work(h, id);
}

GC_PLACES_TEST(lake_import, prefixes_are_replaced_and_objects_are_added_in_one_commit)
{
    struct lake_import_path paths[] = {
        {false, STR("s3://" SOURCE "/in/"), STR("to/")},
        {true, STR("s3://" SOURCE "/one.txt"), STR("zz/copy.txt")},
    };
    struct hand h = hand_of(lab);
    struct lake_object o;
    struct err err = {0};

    make_source(lab);
    put_source(&h, "in/a", "a");
    put_source(&h, "in/b/c", "bc");
    put_source(&h, "inside", "not below the prefix");
    put_source(&h, "one.txt", "one");
    hand_put(&h, "main", "before", "x");
    hand_put(&h, "main", "to/a", "old");
    hand_put(&h, "main", "to/old", "old");
    hand_put(&h, "main", "toast", "x");
    hand_put(&h, "main", "zz/other", "x");
    hand_commit(&h, "main", "first");
    struct lake_import_status status = import(&h, paths, 2);
    CHECK_STR(status.error, STR(""));
    CHECK(status.completed);
    CHECK_INT(status.ingested, 3);
    CHECK_STR(status.commit_id, hand_read_branch(&h, "main").commit_id);
    hand_expect_list(&h, "main", "before to/a to/b/c toast zz/copy.txt zz/other");
    CHECK_STR(hand_history(&h, "main"), STR("imported|first|Repository created"));
    CHECK_OK(lake_stat(h.lake, &h.arena, &h.repo, STR("main"), STR("to/b/c"), &o, &err));
    CHECK_STR(o.entry.address, STR("s3://" SOURCE "/in/b/c"));
    CHECK_INT(o.entry.address_type, LAKE_FULL);
    CHECK_INT(o.entry.size, 2);
    status = import(&h, paths, 2); /* the same again: its commit is the head */
    CHECK_STR(status.commit_id, hand_read_branch(&h, "main").commit_id);
    CHECK_STR(hand_history(&h, "main"), STR("imported|first|Repository created"));
    hand_release(&h);
}

GC_LAB_TEST(lake_import, the_whole_branch_can_be_replaced_and_destinations_may_overlap)
{
    struct lake_import_path paths[] = {
        {false, STR("s3://" SOURCE "/two/"), STR("x/")},
        {false, STR("s3://" SOURCE "/one/"), STR_EMPTY},
    };
    struct hand h = hand_of(lab);

    make_source(lab);
    put_source(&h, "one/a", "a");
    put_source(&h, "one/x/b", "b");
    put_source(&h, "two/b", "b of two");
    put_source(&h, "two/c", "c");
    hand_put(&h, "main", "old", "x");
    hand_put(&h, "main", "x/old", "x");
    hand_commit(&h, "main", "first");
    CHECK_INT(import(&h, paths, 2).ingested, 4);
    hand_expect_list(&h, "main", "a x/b x/c");
    hand_release(&h);
}

GC_LAB_TEST(lake_import, an_empty_source_empties_its_destination)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/nothing/"), STR("to/")};
    struct hand h = hand_of(lab);

    make_source(lab);
    hand_put(&h, "main", "to/a", "x");
    hand_put(&h, "main", "zz", "x");
    hand_commit(&h, "main", "first");
    CHECK_STR(import(&h, &path, 1).error, STR(""));
    hand_expect_list(&h, "main", "zz");
    hand_release(&h);
}

GC_LAB_TEST(lake_import, an_empty_source_is_an_error_when_objects_are_needed)
{
    struct lake_import_path paths[] = {
        {false, STR("s3://" SOURCE "/in/"), STR("in/")},
        {false, STR("s3://" SOURCE "/nothing/"), STR("to/")},
    };
    struct lake_import_options o = import_options_of(paths, ARRAY_SIZE(paths));
    struct hand h = hand_of(lab);
    struct err err = {0};
    struct str id;

    make_source(lab);
    put_source(&h, "in/a", "a");
    hand_put(&h, "main", "to/a", "x");
    hand_commit(&h, "main", "first");
    o.needs_objects = true;
    CHECK_OK(lake_import_start(h.lake, &h.arena, &h.repo, &o, &id, &err));
    CHECK_STR(work(&h, id).error,
              STR("no object begins with s3://" SOURCE "/nothing/; nothing was changed"));
    hand_expect_list(&h, "main", "to/a");
    hand_release(&h);
}

GC_PLACES_TEST(lake_import, many_objects_are_listed_page_by_page)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("to/")};
    struct hand h = hand_of(lab);

    make_source(lab);
    for (int i = 0; i < OBJECT_LIST_MAX + 5; i++)
        put_source(&h, arena_fmt(&h.arena, "k%05d", i).p, "x");
    CHECK_INT(import(&h, &path, 1).ingested, OBJECT_LIST_MAX + 5);
    hand_release(&h);
}

GC_LAB_TEST(lake_import, bad_sources_are_refused)
{
    static const struct lake_import_path bad[] = {
        {false, {"http://x/y", 10}, {"to/", 3}},
        {false, {"s3:///x", 7}, {"to/", 3}},
        {true, {"s3://source/", 12}, {"to", 2}},
        {false, {"s3://lake-data/repo/", 20}, {"to/", 3}},
        {false, {"s3://lake-data/repo/data/", 25}, {"to/", 3}},
        {false, {"s3://lake-data/", 15}, {"to/", 3}},
        {true, {"s3://source/x", 13}, {"", 0}},
    };
    struct hand h = hand_of(lab);
    struct str id;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_INT(try_start(&h, &bad[i], 1, &id), ERR_INVALID);
    CHECK_INT(try_start(&h, bad, 0, &id), ERR_INVALID);
    hand_release(&h);
}

GC_PLACES_TEST(lake_import, an_import_that_cannot_be_says_why_and_changes_nothing)
{
    struct lake_import_path absent = {true, STR("s3://" SOURCE "/absent"), STR("a")};
    struct lake_import_path bucket = {false, STR("s3://no-such-bucket/"), STR("a/")};
    struct lake_import_path good = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab);

    make_source(lab);
    put_source(&h, "x", "x");
    struct lake_import_status status = import(&h, &absent, 1);
    CHECK(status.completed && status.error.len);
    status = import(&h, &bucket, 1);
    CHECK(status.completed && status.error.len);
    hand_put(&h, "main", "staged", "x"); /* a dirty branch */
    status = import(&h, &good, 1);
    CHECK(status.completed);
    CHECK(str_find(status.error, STR("uncommitted changes")) >= 0);
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    hand_release(&h);
}

GC_LAB_TEST(lake_import, a_canceled_import_commits_nothing)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab);
    struct lake_import_status status;
    struct err err = {0};
    struct str id;

    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &id), 0);
    CHECK_OK(lake_import_cancel(h.lake, &h.arena, &h.repo, id, &err));
    CHECK_ERR(lake_import_cancel(h.lake, &h.arena, &h.repo, id, &err), ERR_CONFLICT);
    status = work(&h, id);
    CHECK(status.completed && status.canceled);
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    CHECK_ERR(lake_import_cancel(h.lake, &h.arena, &h.repo, STR("unknown"), &err), ERR_NOT_FOUND);
    hand_release(&h);
}

struct interruption {
    struct hand *hand;
    struct str id;
    int code; /* of the interruption */
};

static void cancel_now(void *ctx)
{
    struct interruption *i = ctx;
    struct err err = {0};

    CHECK_OK(lake_import_cancel(i->hand->lake, &i->hand->arena, &i->hand->repo, i->id, &err));
}

/* The cancel comes when the tree is made, and was answered, so no commit may appear. */
GC_LAB_TEST(lake_import, a_cancel_that_comes_before_the_publish_wins)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct interruption i = {.hand = &other};

    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
    steps_plan(STEPS_BEFORE, "lake.publish", 1, cancel_now, &i);
    struct lake_import_status status = work(&h, i.id);
    CHECK(steps_happened());
    CHECK(status.completed && status.canceled);
    CHECK_STR(status.commit_id, STR(""));
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    hand_expect_list(&h, "main", "");
    hand_release(&other);
    hand_release(&h);
}

static void cancel_too_late(void *ctx)
{
    struct interruption *i = ctx;
    struct err err = {0};

    CHECK_ERR(lake_import_cancel(i->hand->lake, &i->hand->arena, &i->hand->repo, i->id, &err),
              ERR_CONFLICT);
}

/* The result is in the publishing write, so a cancel behind it finds that the import has ended. */
GC_LAB_TEST(lake_import, a_cancel_that_comes_behind_the_publish_is_refused)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct interruption i = {.hand = &other};

    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
    steps_plan(STEPS_AFTER, "lake.publish", 1, cancel_too_late, &i);
    struct lake_import_status status = work(&h, i.id);
    CHECK(steps_happened());
    CHECK(status.completed && !status.canceled);
    CHECK_STR(status.error, STR(""));
    CHECK_STR(status.commit_id, hand_read_branch(&h, "main").commit_id);
    hand_expect_list(&h, "main", "a/x");
    hand_release(&other);
    hand_release(&h);
}

static void try_cancel(void *ctx)
{
    struct interruption *i = ctx;
    struct err err = {0};

    i->code = lake_import_cancel(i->hand->lake, &i->hand->arena, &i->hand->repo, i->id, &err);
}

/* A cancel that runs freely beside the work: either it was answered and there is no commit, or it
 * was refused and the commit is there. */
GC_LAB_TEST(lake_import, of_a_cancel_and_a_commit_exactly_one_happens)
{
    enum { ROUNDS = 20 };
    struct hand h = hand_of(lab), other = hand_second(lab);

    make_source(lab);
    put_source(&h, "x", "x");
    for (int round = 0; round < ROUNDS; round++) {
        struct lake_import_path path = {false, STR("s3://" SOURCE "/"),
                                        arena_fmt(&h.arena, "a%d/", round)};
        struct interruption i = {.hand = &other};
        struct str before = hand_read_branch(&h, "main").commit_id;
        struct thread thread = {0};
        struct err err = {0};

        CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
        CHECK_OK(thread_start(&thread, "cancel", 0, try_cancel, &i, &err));
        struct lake_import_status status = work(&h, i.id);
        thread_join(&thread);
        CHECK(i.code == 0 || i.code == ERR_CONFLICT);
        CHECK(status.completed);
        CHECK_INT(status.canceled, i.code == 0);
        CHECK_STR(hand_read_branch(&h, "main").commit_id, i.code ? status.commit_id : before);
    }
    hand_release(&other);
    hand_release(&h);
}

static void commit_and_repeat(void *ctx)
{
    struct interruption *i = ctx;

    hand_put(i->hand, "main", "a/x", "changed behind the import");
    hand_commit(i->hand, "main", "behind");
    CHECK_STR(work(i->hand, i->id).error, STR(""));
}

static bool second_look(void *ctx)
{
    return ++*(int *)ctx > 1;
}

/* Another process begins with the import, notes its progress, and ends before it has made it. Its
 * note differs from the note of the first process only by its time, in ms. */
static void begin_as_well(void *ctx)
{
    struct interruption *i = ctx;
    struct err err = {0};
    int64_t began = clock_wall_ms();
    int looks = 0;

    CHECK_SOON(clock_wall_ms() != began);
    CHECK_ERR(lake_import_work(i->hand->lake, &i->hand->repo, i->id, second_look, &looks, &err),
              ERR_CANCELED);
}

/* Two processes have the task, and each spoils the work of the other. The task must not count as
 * done before the import has ended. */
GC_LAB_TEST(lake_import, an_import_that_two_processes_work_on_is_made_in_the_end)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct interruption i = {.hand = &other};
    struct lake_import_status status;
    struct err err = {0};

    other.lake->o.folder = h.lake->o.folder; /* to sort in */
    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
    steps_plan(STEPS_BEFORE, "lake.publish", 1, begin_as_well, &i);
    CHECK_ERR(lake_import_work(h.lake, &h.repo, i.id, NULL, NULL, &err), ERR_BUSY);
    CHECK(steps_happened());
    CHECK_OK(lake_import_get(h.lake, &h.arena, &h.repo, i.id, &status, &err));
    CHECK(!status.completed);
    CHECK_STR(hand_history(&h, "main"), STR("Repository created"));
    status = work(&h, i.id);
    CHECK(status.completed && !status.canceled);
    CHECK_STR(hand_history(&h, "main"), STR("imported|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

static void commit_between(void *ctx)
{
    struct interruption *i = ctx;

    hand_put(i->hand, "main", "a/x", "changed between");
    hand_put(i->hand, "main", "a/y", "new between");
    hand_put(i->hand, "main", "other", "other");
    hand_commit(i->hand, "main", "between");
}

/* An import is made at the moment of its publish: commits that came since it began are below its
 * commit, with all that they changed outside of the destinations (I4). */
GC_LAB_TEST(lake_import, commits_between_the_beginning_and_the_publish_are_kept)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct interruption i = {.hand = &other};

    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
    steps_plan(STEPS_BEFORE, "lake.publish", 1, commit_between, &i);
    CHECK_STR(work(&h, i.id).error, STR(""));
    CHECK(steps_happened());
    CHECK_STR(hand_history(&h, "main"), STR("imported|between|Repository created"));
    hand_expect_list(&h, "main", "a/x other");
    hand_expect_list(&h, "main~1", "a/x a/y other");
    hand_release(&other);
    hand_release(&h);
}

/* A task whose process died behind the publish is carried out again by another process. */
GC_LAB_TEST(lake_import, an_import_that_is_repeated_undoes_no_later_commit)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct interruption i = {.hand = &other};

    other.lake->o.folder = h.lake->o.folder; /* to sort in */
    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
    steps_plan(STEPS_AFTER, "lake.publish", 1, commit_and_repeat, &i);
    struct lake_import_status status = work(&h, i.id);
    CHECK(steps_happened());
    CHECK(status.completed && !status.canceled);
    CHECK_STR(hand_history(&h, "main"), STR("behind|imported|Repository created"));
    work(&h, i.id);
    CHECK_STR(hand_history(&h, "main"), STR("behind|imported|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

static void commit_other(void *ctx)
{
    struct interruption *i = ctx;

    hand_put(i->hand, "main", "other", "x");
    hand_commit(i->hand, "main", "other");
}

GC_LAB_TEST(lake_import, an_import_that_loses_its_race_is_built_again)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab), other = hand_second(lab);
    struct interruption i = {.hand = &other};

    make_source(lab);
    put_source(&h, "x", "x");
    put_source(&h, "y", "y");
    CHECK_INT(try_start(&h, &path, 1, &i.id), 0);
    steps_plan(STEPS_BEFORE, "lake.publish", 1, commit_other, &i);
    CHECK_STR(work(&h, i.id).error, STR(""));
    CHECK(steps_happened());
    hand_expect_list(&h, "main", "a/x a/y other");
    CHECK_STR(hand_history(&h, "main"), STR("imported|other|Repository created"));
    hand_release(&other);
    hand_release(&h);
}

GC_LAB_TEST(lake_import, imported_bodies_are_never_collected)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab);
    struct object_place p;
    struct err err = {0};
    struct buf bytes = {0};

    make_source(lab);
    put_source(&h, "data/x", "x");
    import(&h, &path, 1);
    hand_remove(&h, "main", "a/data/x");
    hand_commit(&h, "main", "removed");
    gc_lab_rules(&h, 0);
    gc_lab_collect(&h, false);
    CHECK_OK(lake_place_open(&p, h.lake, &h.arena, STR(LAKE_LAB_OWNER), STR(SOURCE), STR("data/x"),
                             PLACE_READ, &err));
    CHECK_OK(object_place_end(&p, object_place_read(&p, &bytes, NULL, &err), &err));
    buf_release(&bytes);
    hand_release(&h);
}

/* --- old records --- */

/* Makes the record of an import two days older. Of a field that is there twice the last counts. */
static void make_old(struct hand *h, struct str id)
{
    struct import_record *rec;
    struct buf value = {0};
    struct err err = {0};

    CHECK_OK(import_record_load(h->lake, &h->arena, &h->repo, id, &rec, &err));
    buf_append_str(&value, import_record_encode(&h->arena, rec));
    proto_put_time(&value, 3, clock_wall_ms() - 2 * (int64_t)MS_PER_DAY);
    CHECK_OK(kv_set(h->lake->kv, import_key(&h->arena, &h->repo, id), buf_str(&value), &err));
    buf_release(&value);
}

static int try_get(struct hand *h, struct str id)
{
    struct lake_import_status status;
    struct err err = {0};

    return lake_import_get(h->lake, &h->arena, &h->repo, id, &status, &err);
}

GC_LAB_TEST(lake_import, records_go_a_day_after_their_imports_ended)
{
    struct lake_import_path path = {false, STR("s3://" SOURCE "/"), STR("a/")};
    struct hand h = hand_of(lab);
    struct str ended, young, waiting, next;

    make_source(lab);
    put_source(&h, "x", "x");
    CHECK_INT(try_start(&h, &path, 1, &ended), 0);
    work(&h, ended);
    CHECK_INT(try_start(&h, &path, 1, &young), 0);
    work(&h, young);
    CHECK_INT(try_start(&h, &path, 1, &waiting), 0); /* its task has not begun */
    make_old(&h, ended);
    make_old(&h, waiting);
    CHECK_INT(try_get(&h, ended), 0);
    CHECK_INT(try_start(&h, &path, 1, &next), 0);
    CHECK_INT(try_get(&h, ended), ERR_NOT_FOUND);
    CHECK_INT(try_get(&h, young), 0);
    CHECK(work(&h, waiting).completed);
    hand_release(&h);
}

/* --- one tree by every history --- */

enum { SAME_OBJECTS = 1000 }; /* they have several leaves */

/* Stages the objects from number `from` on, each `step`-th of them, in one call. */
static void stage_same(struct hand *h, const char *branch, const struct lake_objects *all,
                       size_t from, size_t step)
{
    struct lake_put puts[SAME_OBJECTS];
    size_t count = 0;
    struct err err = {0};

    for (size_t i = from; i < all->count; i += step)
        puts[count++] = (struct lake_put){all->items[i].path, &all->items[i].entry};
    CHECK_OK(lake_stage(h->lake, &h->arena, &h->repo, str_z(branch), puts, count, NULL, &err));
}

static void commit_with_detours(struct hand *h, const char *branch, const struct lake_objects *all)
{
    for (size_t i = 0; i < 4; i++) {
        hand_put(h, branch, "in/007", "another content"); /* is replaced by the fourth commit */
        hand_put(h, branch, "in/5", "d");                 /* in the middle, and at the end */
        hand_put(h, branch, "in/detour", "d");
        stage_same(h, branch, all, i, 4);
        hand_commit(h, branch, "there");
        hand_remove(h, branch, "in/5");
        hand_remove(h, branch, "in/detour");
        hand_commit(h, branch, "and back");
    }
}

static struct str tree_of(struct hand *h, const char *branch)
{
    struct lake_commit c;
    struct err err = {0};

    CHECK_OK(lake_commit_get(h->lake, &h->arena, &h->repo, hand_read_branch(h, branch).commit_id,
                             &c, &err));
    return c.tree;
}

static int note_leaf(void *ctx, const struct node_visit *v, struct err *err)
{
    *(unsigned *)ctx += v->level == 0;
    return 0;
}

static unsigned count_leaves(struct hand *h, struct str root)
{
    struct tree_store store;
    struct err err = {0};
    unsigned leaves = 0;

    CHECK_OK(lake_tree_store(h->lake, &h->repo, &store, &err));
    CHECK_OK(tree_walk(&store, root, NULL, note_leaf, &leaves, &err));
    lake_tree_store_release(h->lake, &store);
    return leaves;
}

GC_LAB_TEST(lake_import, the_same_entries_by_four_histories_have_one_id)
{
    static const char *const branches[] = {"at-once", "detours", "left", "right"};
    struct lake_import_path paths[] = {{false, STR("s3://" SOURCE "/in/"), STR("in/")}};
    struct lake_list_options all = {.limit = LAKE_LIST_MAX};
    struct hand h = hand_of(lab);
    struct lake_objects page;
    struct err err = {0};

    make_source(lab);
    for (int i = 0; i < SAME_OBJECTS; i++)
        put_source(&h, arena_fmt(&h.arena, "in/%03d", i).p, i % 3 ? "content" : "");
    for (size_t i = 0; i < ARRAY_SIZE(branches); i++)
        hand_branch(&h, branches[i], "main");
    import(&h, paths, 1);
    CHECK_OK(lake_list(h.lake, &h.arena, &h.repo, STR("main"), &all, &page, &err));
    CHECK_INT(page.count, SAME_OBJECTS);
    stage_same(&h, "at-once", &page, 0, 1);
    hand_commit(&h, "at-once", "all");
    commit_with_detours(&h, "detours", &page);
    stage_same(&h, "left", &page, 0, 2);
    hand_commit(&h, "left", "even");
    stage_same(&h, "right", &page, 1, 2);
    hand_commit(&h, "right", "odd");
    hand_merge(&h, "right", "left");
    CHECK(count_leaves(&h, tree_of(&h, "main")) > 1);
    for (size_t i = 0; i < 3; i++)
        CHECK_STR(tree_of(&h, branches[i]), tree_of(&h, "main"));
    hand_release(&h);
}
