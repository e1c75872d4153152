/* Two lakes in one namespace, one of which has a copy of the records of the other: neither removes
 * a file, until somebody decides (docs/lake-keeping.md, "Two lakes in one namespace"). */
#include "db/db.h"
#include "kv/dump.h"
#include "lake/delete.h"
#include "lake/place.h"
#include "unit/lake/gc_lab.h"
#include "unit/lake/steps.h"

#include <stdio.h>

enum { EVERY_MS = 60000 }; /* longer than a test takes: a claim that changed does not settle */

/* --- a copy of the records --- */

/* A lake over a copy of the records of another one, as a weir that was started on a backup. */
struct copy {
    struct hand hand;
    struct db *db;
    struct kv *kv;
};

static int copy_line(void *ctx, struct str line, struct err *err)
{
    return kv_load_line(ctx, line, err);
}

static void copy_partition(struct kv *from, struct kv *to, struct str partition)
{
    struct err err = {0};

    CHECK_OK(kv_dump(from, NULL, partition, copy_line, to, &err));
}

static void copy_rows(struct hand *h, struct kv *to)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct lake_branch *branches;
    struct err err = {0};
    size_t count;
    bool more;

    copy_partition(h->lake->kv, to, LAKE_PARTITION);
    copy_partition(h->lake->kv, to, LAKE_CLEANUP);
    copy_partition(h->lake->kv, to, h->repo.partition);
    CHECK_OK(lake_branch_list(h->lake, &h->arena, &h->repo, &page, true, &branches, &count, &more,
                              &err));
    for (size_t i = 0; i < count; i++) {
        copy_partition(h->lake->kv, to, branches[i].staging);
        for (size_t k = 0; k < branches[i].sealed_count; k++)
            copy_partition(h->lake->kv, to, branches[i].sealed[k]);
    }
}

static void copy_open(struct copy *c, struct lake_lab *lab, struct hand *of)
{
    struct err err = {0};
    char path[256];

    *c = (struct copy){.hand = {.repo = of->repo}};
    snprintf(path, sizeof(path), "%s/copy", test_dir());
    struct db_options o = {.path = path, .cfs = kv_cf_spec(), .cf_count = 1};
    CHECK_OK(db_open(&c->db, &o, &err));
    CHECK_OK(kv_open_embedded(&c->kv, c->db, NULL, &err));
    copy_rows(of, c->kv);
    c->hand.lake = lake_lab_open_on(lab, c->kv);
    c->hand.lake->o.folder = test_dir();
    c->hand.lake->o.gc_grace_ms = 1;
}

static void copy_close(struct copy *c)
{
    lake_close(c->hand.lake);
    kv_close(c->kv);
    db_close(c->db);
    arena_release(&c->hand.arena);
}

/* --- short forms --- */

static int try_collect(struct hand *h)
{
    int64_t since = clock_wall_ms();
    struct lake_gc_report report;
    struct err err = {0};

    CHECK_SOON(clock_wall_ms() > since + 5);
    int code = lake_gc_ask(h->lake, &h->arena, &h->repo, false, &report, &err);
    CHECK(code == 0 || code == ERR_BUSY); /* an earlier run waits */
    h->err = (struct err){0};
    return lake_gc_work(h->lake, &h->repo, NULL, NULL, &h->err);
}

/* The collection must end at once, and its report must say why. */
static void expect_refused(struct hand *h, const char *why)
{
    struct lake_gc_report report;
    struct err err = {0};

    CHECK_INT(try_collect(h), ERR_IN_USE);
    CHECK_OK(lake_gc_report(h->lake, &h->arena, &h->repo, &report, &err));
    CHECK_INT(report.stage, LAKE_GC_FAILED);
    CHECK(str_find(report.error, str_z(why)) >= 0);
    CHECK_INT(lake_claims_refused(h->lake), 1);
}

static void take_claim(struct hand *h)
{
    struct err err = {0};

    CHECK_OK(lake_claim_take(h->lake, &h->repo, &err));
}

static struct str read_claim(struct hand *h)
{
    struct buf text = {0};
    struct object_place p;
    struct err err = {0};

    CHECK_OK(
        lake_place_open_below(&p, h->lake, &h->arena, &h->repo, STR(LAKE_CLAIM), PLACE_READ, &err));
    CHECK_OK(object_place_end(&p, object_place_read(&p, &text, NULL, &err), &err));
    struct str out = arena_str(&h->arena, buf_str(&text));
    buf_release(&text);
    return out;
}

static void put_claim(struct hand *h, struct str text)
{
    struct str bucket = STR(LAKE_LAB_BUCKET);
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open(&p, h->lake, &h->arena, h->repo.owner, bucket, STR("repo/" LAKE_CLAIM),
                             PLACE_PUT, &err));
    CHECK_OK(object_place_end(&p, object_place_put(&p, text, NULL, &err), &err));
}

static void remove_claim(struct hand *h)
{
    struct remove_result result;
    struct object_place p;
    struct err err = {0};

    CHECK_OK(lake_place_open_below(&p, h->lake, &h->arena, &h->repo, STR(LAKE_CLAIM), PLACE_REMOVE,
                                   &err));
    int code = p.bucket->ops->remove(p.bucket, &h->arena, p.key, &(struct remove_options){0},
                                     &result, &err);
    CHECK_OK(object_place_end(&p, code, &err));
}

/* A commit, and a body that nothing names. */
static void fill(struct hand *h)
{
    gc_lab_put(h, "main", "a", "a of the first commit");
    gc_lab_commit(h, "main", "first", 0);
    gc_lab_put(h, "main", "b", "overwritten");
    gc_lab_put(h, "main", "b", "b");
}

/* --- tests --- */

GC_PLACES_TEST(lake_claim, two_lakes_of_copied_records_remove_nothing)
{
    struct hand first = hand_of(lab);
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    first.lake->o.claim_every_ms = copy.hand.lake->o.claim_every_ms = EVERY_MS;
    gc_lab_put(&copy.hand, "main", "of-the-copy", "of the copy");
    gc_lab_commit(&copy.hand, "main", "second, in the copy", 0);
    gc_lab_put(&first, "main", "of-the-first", "of the first");
    gc_lab_commit(&first, "main", "second", 0);
    size_t files = gc_lab_count_files(&first, "data/"),
           nodes = gc_lab_count_files(&first, "_lakefs/");

    CHECK_INT(try_collect(&copy.hand), ERR_BUSY); /* the first one has not had time to object */
    expect_refused(&first, "another lake");
    expect_refused(&copy.hand, "weir lake gc claim lake://repo");
    CHECK_INT(gc_lab_count_files(&first, "data/"), files);
    CHECK_INT(gc_lab_count_files(&first, "_lakefs/"), nodes);
    CHECK_INT(gc_lab_read_all(&first, STR("main")), 3);
    CHECK_INT(gc_lab_read_all(&copy.hand, STR("main")), 3);
    copy_close(&copy);
    hand_release(&first);
}

/* --- the report of a run that waits (N4) --- */

static void expect_report(struct hand *h, enum lake_gc_stage stage, const char *error)
{
    struct lake_gc_report report;
    struct err err = {0};

    CHECK_OK(lake_gc_report(h->lake, &h->arena, &h->repo, &report, &err));
    CHECK_INT(report.stage, stage);
    if (*error)
        CHECK(str_find(report.error, str_z(error)) >= 0);
    else
        CHECK_STR(report.error, STR(""));
}

/* Stops the run when its removing has begun. */
static bool run_removes(void *ctx)
{
    struct lake_gc_report report;
    struct hand *h = ctx;
    struct err err = {0};

    CHECK_OK(lake_gc_report(h->lake, &h->arena, &h->repo, &report, &err));
    return report.stage == LAKE_GC_REMOVING;
}

/* A file is about to be removed. */
static void expect_no_wait(void *ctx)
{
    expect_report(ctx, LAKE_GC_REMOVING, "");
}

GC_PLACES_TEST(lake_claim, the_report_says_that_a_run_waits_until_it_goes_on)
{
    struct hand h = hand_of(lab);
    struct err err = {0};

    fill(&h);
    h.lake->o.claim_every_ms = MS_PER_HOUR;
    CHECK_INT(try_collect(&h), ERR_BUSY);
    expect_report(&h, LAKE_GC_ASKED, "changed lately");
    h.lake->o.claim_every_ms = 0;
    CHECK_ERR(lake_gc_work(h.lake, &h.repo, run_removes, &h, &err), ERR_CANCELED);
    expect_report(&h, LAKE_GC_REMOVING, "");
    h.lake->o.claim_every_ms = MS_PER_HOUR; /* as after a restart, which changes the claim */
    CHECK_ERR(lake_gc_work(h.lake, &h.repo, NULL, NULL, &err), ERR_BUSY);
    expect_report(&h, LAKE_GC_REMOVING, "changed lately");
    h.lake->o.claim_every_ms = 0;
    steps_plan(STEPS_BEFORE, "lake.gc_remove", 1, expect_no_wait, &h);
    CHECK_OK(lake_gc_work(h.lake, &h.repo, NULL, NULL, &err));
    CHECK(steps_happened());
    expect_report(&h, LAKE_GC_DONE, "");
    hand_release(&h);
}

GC_PLACES_TEST(lake_claim, a_lake_that_writes_again_is_noticed_also_if_the_other_was_idle)
{
    struct hand first = hand_of(lab);
    struct lake_claim_watch idle = {0};
    struct err err = {0};
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    gc_lab_put(&copy.hand, "main", "b",
               "b of the copy"); /* now the copy takes the old b for dead */
    CHECK_ERR(lake_claim_may_remove(first.lake, &first.repo, &idle, &err), ERR_IN_USE);
    expect_refused(&copy.hand, "another lake");
    CHECK_INT(gc_lab_read_all(&first, STR("main")), 2);
    copy_close(&copy);
    hand_release(&first);
}

GC_PLACES_TEST(lake_claim, the_lake_that_takes_the_claim_collects_and_the_other_does_not)
{
    struct hand first = hand_of(lab);
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    gc_lab_put(&copy.hand, "main", "of-the-copy", "of the copy");
    expect_refused(&first, "another lake");
    take_claim(&first);
    CHECK_INT(try_collect(&first), 0);
    CHECK_INT(gc_lab_count_files(&first, "data/"), 2); /* a and b */
    CHECK_INT(lake_claims_refused(first.lake), 0);
    expect_refused(&copy.hand, "another lake");
    expect_refused(&first, "another lake"); /* the copy has objected */
    take_claim(&copy.hand);
    expect_refused(&first, "another lake");
    CHECK_INT(gc_lab_read_all(&first, STR("main")), 2);
    copy_close(&copy);
    hand_release(&first);
}

GC_PLACES_TEST(lake_claim, records_that_were_put_back_are_older_than_the_claim)
{
    struct hand first = hand_of(lab);
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    struct hand later = hand_second(lab); /* the first lake after its next start */
    gc_lab_put(&later, "main", "c", "c");
    hand_release(&later); /* it does not run any more */
    expect_refused(&copy.hand, "a backup");
    take_claim(&copy.hand);
    CHECK_INT(try_collect(&copy.hand), 0);
    CHECK_INT(gc_lab_read_all(&copy.hand, STR("main")), 2);
    copy_close(&copy);
    hand_release(&first);
}

GC_PLACES_TEST(lake_claim, the_next_start_goes_on_without_being_told)
{
    struct hand first = hand_of(lab);

    fill(&first);
    struct hand later = hand_second(lab);
    later.lake->o.folder = test_dir();
    later.lake->o.gc_grace_ms = 1;
    CHECK_INT(try_collect(&later), 0);
    CHECK_INT(try_collect(&first), 0); /* both are processes of one lake */
    CHECK_INT(gc_lab_count_files(&first, "data/"), 2);
    hand_release(&later);
    hand_release(&first);
}

GC_PLACES_TEST(lake_claim, a_claim_without_a_life_gets_one)
{
    struct hand before = hand_of(lab);
    struct str old =
        arena_fmt(&before.arena, "weir repository " STR_FMT "\n", STR_ARG(before.repo.partition));
    struct copy copy;

    put_claim(&before, old);
    copy_open(&copy, lab, &before);
    struct hand h = hand_second(lab);
    h.lake->o.folder = test_dir();
    h.lake->o.gc_grace_ms = 1;
    fill(&h);
    CHECK(str_starts(read_claim(&h), old) && str_find(read_claim(&h), STR("\nlife ")) >= 0);
    CHECK_INT(try_collect(&h), 0);
    CHECK_INT(gc_lab_count_files(&h, "data/"), 2);
    expect_refused(&copy.hand, "another lake"); /* its records are from before */
    copy_close(&copy);
    hand_release(&h);
    hand_release(&before);
}

GC_PLACES_TEST(lake_claim, without_a_claim_nothing_is_removed_or_written)
{
    struct hand h = hand_of(lab);
    struct object_place p;
    struct err err = {0};

    fill(&h);
    remove_claim(&h);
    expect_refused(&h, "has no claim");
    CHECK_INT(gc_lab_count_files(&h, "data/"), 3);
    struct hand later = hand_second(lab);
    CHECK_ERR(lake_place_open_below(&p, later.lake, &later.arena, &later.repo, STR("data/x"),
                                    PLACE_PUT, &err),
              ERR_UNAVAILABLE);
    CHECK(strstr(err.text, "has no claim"));
    CHECK_ERR(lake_place_open_below(&p, h.lake, &h.arena, &h.repo, STR("data/x"), PLACE_PUT, &err),
              ERR_UNAVAILABLE); /* also the one that was there before */
    take_claim(&later);
    gc_lab_put_file(&later, STR("data/x"), STR("x"));
    CHECK_INT(try_collect(&h), 0);
    CHECK_INT(gc_lab_count_files(&h, "data/"), 2);
    hand_release(&later);
    hand_release(&h);
}

/* Something else is where the claim was: nothing is written or removed. */
static void expect_foreign(struct lake_lab *lab, struct str claim)
{
    struct hand h = hand_of(lab);
    struct object_place p;
    struct err err = {0};

    fill(&h);
    put_claim(&h, claim);
    expect_refused(&h, "another repository");
    struct hand later = hand_second(lab);
    CHECK_ERR(lake_place_open_below(&p, later.lake, &later.arena, &later.repo, STR("data/x"),
                                    PLACE_PUT, &err),
              ERR_UNAVAILABLE);
    CHECK_ERR(lake_claim_take(h.lake, &h.repo, &err), ERR_IN_USE);
    hand_release(&later);
    hand_release(&h);
}

GC_PLACES_TEST(lake_claim, the_claim_of_another_repository_stops_writes_and_removals)
{
    expect_foreign(lab, STR("weir repository other-0123456789abcdef\n"));
}

GC_PLACES_TEST(lake_claim, an_object_that_is_too_large_for_a_claim_stops_writes_and_removals)
{
    static char large[8 << 10];

    memset(large, 'a', sizeof(large));
    expect_foreign(lab, str_n(large, sizeof(large)));
}

/* --- a lake that appears while files are removed --- */

static void write_in_copy(void *ctx)
{
    struct copy *copy = ctx;

    gc_lab_put(&copy->hand, "main", "late", "late");
}

/* Two bodies are dead, and later than two seconds a node too. */
static void expect_stopped_at(struct lake_lab *lab, unsigned removal)
{
    struct hand first = hand_of(lab);
    struct str zeros = STR("00000000000000000000000000000000");
    struct copy copy;

    fill(&first);
    gc_lab_put_file(
        &first, arena_fmt(&first.arena, "_lakefs/" STR_FMT STR_FMT, STR_ARG(zeros), STR_ARG(zeros)),
        STR("a node that no commit leads to"));
    int64_t since = clock_wall_ms(); /* the node may be two seconds old only after its put */
    CHECK_SOON(clock_wall_ms() > since + 2100);
    gc_lab_put(&first, "main", "b", "b again");
    copy_open(&copy, lab, &first);
    first.lake->claim_ask_ms = 0;
    steps_plan(STEPS_BEFORE, "lake.gc_remove", removal, write_in_copy, &copy);
    expect_refused(&first, "another lake");
    CHECK(steps_happened());
    CHECK_INT(steps_count("lake.gc_remove"), removal);
    CHECK_INT(gc_lab_read_all(&first, STR("main")), 2);
    gc_lab_commit(&first, "main", "goes on", 0); /* no row of the list holds it up */
    copy_close(&copy);
    hand_release(&first);
}

GC_PLACES_TEST(lake_claim, a_lake_that_appears_stops_the_removal_of_bodies)
{
    expect_stopped_at(lab, 1);
}

GC_PLACES_TEST(lake_claim, a_lake_that_appears_stops_the_removal_of_nodes)
{
    expect_stopped_at(lab, 2);
}

/* --- purges and new repositories --- */

GC_PLACES_TEST(lake_claim, a_purge_waits_while_another_lake_uses_the_namespace)
{
    struct hand first = hand_of(lab);
    struct err err = {0};
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    gc_lab_put(&copy.hand, "main", "of-the-copy", "of the copy");
    CHECK_OK(lake_repo_delete(first.lake, &first.arena, first.repo.id, false, true, &err));
    CHECK_ERR(lake_delete_work(first.lake, NULL, NULL, &err), ERR_IN_USE);
    CHECK_INT(gc_lab_read_all(&copy.hand, STR("main")), 3);
    remove_claim(&copy.hand); /* the way out that the text and the docs name */
    CHECK_OK(lake_delete_work(first.lake, NULL, NULL, &err));
    CHECK_INT(gc_lab_read_all(&copy.hand, STR("main")), 3);
    copy_close(&copy);
    hand_release(&first);
}

GC_PLACES_TEST(lake_claim, a_deletion_without_purge_touches_no_file_and_does_not_wait)
{
    struct hand first = hand_of(lab);
    struct err err = {0};
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    gc_lab_put(&copy.hand, "main", "of-the-copy", "of the copy");
    CHECK_OK(lake_repo_delete(first.lake, &first.arena, first.repo.id, false, false, &err));
    CHECK_OK(lake_delete_work(first.lake, NULL, NULL, &err));
    CHECK_INT(gc_lab_read_all(&copy.hand, STR("main")), 3);
    copy_close(&copy);
    hand_release(&first);
}

/* The metric tells of repositories that are there, or are being deleted. */
GC_PLACES_TEST(lake_claim, the_refused_claim_of_a_repository_that_is_gone_is_not_counted)
{
    struct hand first = hand_of(lab);
    struct err err = {0};
    struct copy copy;

    fill(&first);
    copy_open(&copy, lab, &first);
    gc_lab_put(&copy.hand, "main", "of-the-copy", "of the copy");
    CHECK_OK(lake_repo_delete(first.lake, &first.arena, first.repo.id, false, false, &err));
    CHECK_OK(lake_delete_work(first.lake, NULL, NULL, &err));
    CHECK_INT(lake_claims_refused(first.lake), 1);
    first.lake->o.claim_every_ms = 10;
    CHECK_OK(lake_claims_start(first.lake, &err));
    CHECK_SOON(lake_claims_refused(first.lake) == 0);
    lake_claims_stop(first.lake);
    copy_close(&copy);
    hand_release(&first);
}

static int make_bare(struct lake *l, struct arena *a, struct err *err)
{
    struct lake_repo_options o = {.id = STR("again"),
                                  .owner = STR(LAKE_LAB_OWNER),
                                  .space = STR("s3://" LAKE_LAB_BUCKET "/repo"),
                                  .bare = true};
    struct lake_repo r;

    return lake_repo_create(l, a, &o, &r, err);
}

/* An emptied key-value store knows no repository, but that does not make its claims void. */
GC_PLACES_TEST(lake_claim, the_claim_of_another_lake_is_never_void)
{
    struct hand first = hand_of(lab);
    struct err err = {0};
    struct db *db;
    struct kv *kv;
    char path[256];

    fill(&first);
    snprintf(path, sizeof(path), "%s/empty", test_dir());
    struct db_options o = {.path = path, .cfs = kv_cf_spec(), .cf_count = 1};
    CHECK_OK(db_open(&db, &o, &err));
    CHECK_OK(kv_open_embedded(&kv, db, NULL, &err));
    struct lake *empty = lake_lab_open_on(lab, kv);
    empty->claim_fresh_ms = 0;
    CHECK_ERR(make_bare(empty, &first.arena, &err), ERR_IN_USE);
    CHECK(strstr(err.text, "another lake"));
    remove_claim(&first);
    CHECK_OK(make_bare(empty, &first.arena, &err));
    lake_close(empty);
    kv_close(kv);
    db_close(db);
    hand_release(&first);
}
