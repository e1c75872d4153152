/* Rounds: collections that begin by themselves. */
#include "unit/lake/gc_lab.h"

#include "base/clock.h"

/* The worker of a test: it notes for which repositories runs were begun, and carries them out. */
struct round_worker {
    struct lake *lake;
    struct buf begun; /* names, each with a blank behind */
    bool is_asleep;   /* nothing is carried out */
};

static int worker_begin(void *ctx, const struct lake_repo *r, struct err *err)
{
    struct round_worker *w = ctx;

    buf_append_str(&w->begun, r->id);
    buf_append_char(&w->begun, ' ');
    return w->is_asleep ? 0 : lake_gc_work(w->lake, r, NULL, NULL, err);
}

static uint64_t round_step_once(struct round_worker *w, uint64_t every_ms)
{
    struct lake_gc_round_options o = {every_ms, worker_begin, w};
    uint64_t wait_ms = 0;
    struct err err = {0};

    CHECK_OK(lake_gc_round(w->lake, &o, &wait_ms, &err));
    return wait_ms;
}

/* Takes steps until the round has ended. */
static uint64_t round_finish(struct round_worker *w, uint64_t every_ms)
{
    uint64_t wait_ms = 0;

    for (int i = 0; i < 100 && wait_ms <= MS_PER_S; i++)
        wait_ms = round_step_once(w, every_ms);
    return wait_ms;
}

static struct hand with_rules(struct lake_lab *lab, const char *name)
{
    struct hand h = hand_of(lab);

    h.repo = lake_lab_repo(lab, name);
    gc_lab_rules(&h, 0);
    gc_lab_put_file(&h, STR("data/hour/dead"), STR("dead"));
    return h;
}

static void wait_for_grace(void)
{
    int64_t since = clock_wall_ms();

    CHECK_SOON(clock_wall_ms() > since + 5);
}

GC_LAB_TEST(lake_gc_round, repositories_with_rules_are_collected_one_after_the_other)
{
    struct round_worker w = {.lake = lab->lake};
    struct hand plain = hand_of(lab), b = with_rules(lab, "bbb"), a = with_rules(lab, "aaa");

    gc_lab_put_file(&plain, STR("data/hour/dead"), STR("dead"));
    wait_for_grace();
    uint64_t wait_ms = round_finish(&w, MS_PER_HOUR);
    CHECK(wait_ms > MS_PER_HOUR - MS_PER_MINUTE && wait_ms <= MS_PER_HOUR);
    CHECK_STR(buf_str(&w.begun), STR("aaa bbb "));
    CHECK(!gc_lab_has_file(&a, STR("data/hour/dead")));
    CHECK(!gc_lab_has_file(&b, STR("data/hour/dead")));
    CHECK(gc_lab_has_file(&plain, STR("data/hour/dead"))); /* it has no rules */
    round_finish(&w, MS_PER_HOUR);
    CHECK_STR(buf_str(&w.begun), STR("aaa bbb ")); /* the next round is not due yet */
    wait_for_grace();
    CHECK(round_step_once(&w, 1) < MS_PER_S);
    round_finish(&w, MS_PER_HOUR);
    CHECK_STR(buf_str(&w.begun), STR("aaa bbb aaa bbb "));
    buf_release(&w.begun);
    hand_release(&plain);
    hand_release(&a);
    hand_release(&b);
}

GC_LAB_TEST(lake_gc_round, a_turn_waits_for_its_run_and_two_processes_share_the_round)
{
    struct hand second = hand_second(lab), a = with_rules(lab, "aaa"), b = with_rules(lab, "bbb");
    struct round_worker one = {.lake = lab->lake, .is_asleep = true},
                        two = {.lake = second.lake, .is_asleep = true};
    struct lake_gc_report report;
    struct err err = {0};

    second.lake->o.folder = test_dir();
    second.lake->o.gc_grace_ms = 1;
    wait_for_grace();
    for (int i = 0; i < 5; i++) { /* nobody carries the run of "aaa" out */
        round_step_once(&one, MS_PER_HOUR);
        round_step_once(&two, MS_PER_HOUR);
    }
    CHECK(str_find(buf_str(&one.begun), STR("bbb")) < 0);
    CHECK(str_find(buf_str(&two.begun), STR("bbb")) < 0);
    CHECK_OK(lake_gc_report(lab->lake, &lab->arena, &a.repo, &report, &err));
    CHECK_INT(report.stage, LAKE_GC_ASKED);
    two.is_asleep = false; /* the first process has died */
    round_finish(&two, MS_PER_HOUR);
    CHECK(!gc_lab_has_file(&a, STR("data/hour/dead")));
    CHECK(!gc_lab_has_file(&b, STR("data/hour/dead")));
    buf_release(&one.begun);
    buf_release(&two.begun);
    hand_release(&a);
    hand_release(&b);
    hand_release(&second);
}

GC_LAB_TEST(lake_gc_round, a_repository_that_goes_or_cannot_be_collected_holds_up_nobody)
{
    struct round_worker w = {.lake = lab->lake, .is_asleep = true};
    struct lake_repo_options bare = {.id = STR("abare"),
                                     .owner = STR(LAKE_LAB_OWNER),
                                     .space = STR("s3://" LAKE_LAB_BUCKET "/abare"),
                                     .bare = true};
    struct hand h = hand_of(lab), a = with_rules(lab, "aaa"), b = with_rules(lab, "bbb");
    struct err err = {0};

    CHECK_OK(lake_repo_create(lab->lake, &h.arena, &bare, &h.repo, &err));
    gc_lab_rules(&h, 0); /* its refs are being restored */
    wait_for_grace();
    for (int i = 0; i < 3; i++)
        round_step_once(&w, MS_PER_HOUR);
    CHECK_STR(str_head(buf_str(&w.begun), 4), STR("aaa "));
    CHECK_OK(lake_repo_delete(lab->lake, &lab->arena, STR("aaa"), false, false, &err));
    w.is_asleep = false;
    CHECK(round_finish(&w, MS_PER_HOUR) > MS_PER_MINUTE);
    CHECK(!gc_lab_has_file(&b, STR("data/hour/dead")));
    buf_release(&w.begun);
    hand_release(&h);
    hand_release(&a);
    hand_release(&b);
}
