/* Moves step by step: what they leave behind, and what a start finds after a kill at each step. */
#include "object/local/local_adopt.h"
#include "shard/move.h"

#include "base/clock.h"
#include "os/file.h"
#include "shard/names.h"
#include "unit/lake/steps.h"
#include "unit/shard/move_lab.h"

#include <stdio.h>

enum { WINDOW = 25 }; /* keys of a window, so that a move has several */

static struct buf dump_of(struct move_lab *l)
{
    struct buf out = BUF_INIT(16 * MIB);

    move_lab_dump(l, &out);
    return out;
}

static void expect_dump(struct move_lab *l, const struct buf *want)
{
    struct buf got = dump_of(l);

    CHECK_STR(buf_str(&got), buf_str(want));
    buf_release(&got);
}

/* --- what a move does --- */

TEST(shard_move, a_split_gives_the_upper_keys_to_a_new_shard_with_all_that_is_known_of_them)
{
    struct move_lab l;

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, true);
    struct buf want = dump_of(&l);
    move_lab_do(&l, SHARD_SPLIT, "e", WINDOW);
    move_lab_check(&l, "0 e 1");
    expect_dump(&l, &want);
    move_lab_do(&l, SHARD_SPLIT, "c", 1000);
    move_lab_check(&l, "0 c 2 e 1");
    expect_dump(&l, &want);
    buf_release(&want);
    move_lab_close(&l);
}

TEST(shard_move, at_full_speed_a_window_has_several_pages_of_keys)
{
    enum { KEYS = 1200 };
    struct move_lab l;
    struct arena a = {0};
    struct mover_stats stats;
    struct move_request q = {.kind = SHARD_SPLIT, .at = STR("k0100"), .hurry = true};
    char key[16];
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    struct bucket *plain = NULL;
    struct shard_map *m = table_map(l.sharded->table);
    CHECK_OK(move_open_place(l.sharded, m, 0, &plain, &err));
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "k%04d", i);
        lab_put(plain, &a, key, STR("x"));
        arena_reset(&a);
    }
    plain->ops->unref(plain);
    map_unref(m);
    CHECK_OK(mover_begin(l.mover, l.sharded, &q, &err));
    move_lab_run(&l, 1000);
    mover_stats(l.mover, &stats);
    CHECK_INT(stats.hand_overs, 1);
    CHECK_INT(stats.keys, KEYS - 101);
    move_lab_check(&l, "0 k0100 1");
    arena_release(&a);
    move_lab_close(&l);
}

TEST(shard_move, a_split_without_a_boundary_is_made_in_the_middle)
{
    struct move_lab l;

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    struct buf want = dump_of(&l);
    move_lab_do(&l, SHARD_SPLIT, NULL, 1000);
    move_lab_check(&l, "0 f/ 1");
    expect_dump(&l, &want);
    buf_release(&want);
    move_lab_close(&l);
}

TEST(shard_move, a_merge_takes_the_boundary_away)
{
    struct move_lab l;

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, true);
    struct buf want = dump_of(&l);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    move_lab_do(&l, SHARD_SPLIT, "g", 1000);
    move_lab_check(&l, "0 d 1 g 2");
    move_lab_do(&l, SHARD_MERGE, "d", WINDOW);
    move_lab_check(&l, "1 g 2"); /* place 0 had fewer objects */
    expect_dump(&l, &want);
    move_lab_do(&l, SHARD_MERGE, NULL, WINDOW);
    expect_dump(&l, &want);
    move_lab_check(&l, NULL);
    buf_release(&want);
    move_lab_close(&l);
}

TEST(shard_move, an_empty_range_is_split_without_moving_anything)
{
    struct move_lab l;
    struct mover_stats stats;

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    for (char at[] = "b"; at[0] < 'k'; at[0]++)
        move_lab_do(&l, SHARD_SPLIT, at, 1000);
    move_lab_check(&l, "0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j 9");
    mover_stats(l.mover, &stats);
    CHECK_INT(stats.keys, 0);
    CHECK_INT(stats.hand_overs, 9);
    move_lab_fill(&l, false);
    move_lab_check(&l, "0 b 1 c 2 d 3 e 4 f 5 g 6 h 7 i 8 j 9");
    move_lab_close(&l);
}

TEST(shard_move, a_disabled_bucket_is_plain_and_nothing_is_left_beside_it)
{
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, true);
    struct buf want = dump_of(&l);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    move_lab_do(&l, SHARD_SPLIT, "g", 1000);
    move_lab_do(&l, SHARD_MERGE, "d", 1000);
    move_lab_do(&l, SHARD_DISABLE, NULL, WINDOW);
    CHECK_INT(l.plain, 1);
    CHECK_INT(l.gone, 1);
    l.bucket->ops->unref(l.bucket);
    sharded_unref(l.sharded);
    l.sharded = NULL;
    CHECK_OK(l.home->ops->open_bucket(&l.bucket, l.home, STR_EMPTY, STR("photos"), &err));
    expect_dump(&l, &want);
    move_lab_check(&l, NULL);
    buf_release(&want);
    move_lab_close(&l);
}

TEST(shard_move, a_bucket_that_was_never_split_is_disabled_at_once)
{
    struct move_lab l;

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    move_lab_do(&l, SHARD_DISABLE, NULL, 1000);
    CHECK_INT(l.gone, 1);
    move_lab_close(&l);
}

/* --- requests that cannot be carried out --- */

static int begin_one(struct move_lab *l, enum shard_move_kind kind, const char *at, struct err *err)
{
    struct move_request q = {.kind = kind, .at = str_z(at)};

    return mover_begin(l->mover, l->sharded, &q, err);
}

TEST(shard_move, what_cannot_be_moved_is_refused_with_the_reason)
{
    struct move_lab l;
    char key[OBJECT_KEY_MAX + 2] = "";
    struct err err = {0};

    memset(key, 'x', OBJECT_KEY_MAX + 1);
    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    CHECK_ERR(begin_one(&l, SHARD_MERGE, "", &err), ERR_NOT_FOUND);
    move_lab_do(&l, SHARD_SPLIT, "m", 1000);
    CHECK_ERR(begin_one(&l, SHARD_SPLIT, "m", &err), ERR_EXISTS);
    CHECK_ERR(begin_one(&l, SHARD_MERGE, "n", &err), ERR_NOT_FOUND);
    CHECK_ERR(begin_one(&l, SHARD_SPLIT, key, &err), ERR_INVALID);
    CHECK_ERR(begin_one(&l, SHARD_MOVE, "", &err), ERR_UNSUPPORTED);
    move_lab_check(&l, "0 m 1");
    move_lab_close(&l);
}

TEST(shard_move, a_bucket_with_too_few_keys_is_not_split_in_the_middle_and_says_why)
{
    struct move_lab l;
    struct move_progress p;
    struct arena a = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    lab_put(l.bucket, &a, "one", STR("1"));
    move_lab_begin(&l, SHARD_SPLIT, NULL);
    move_work(l.mover, move_find(l.mover, l.sharded));
    mover_progress(l.mover, l.sharded, &a, &p);
    CHECK_INT(p.phase, MOVE_NONE);
    CHECK(p.error.len > 0);
    move_lab_check(&l, "0");
    arena_release(&a);
    move_lab_close(&l);
}

TEST(shard_move, a_second_mover_at_once_is_refused)
{
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    move_lab_begin(&l, SHARD_SPLIT, "e");
    CHECK_ERR(begin_one(&l, SHARD_SPLIT, "c", &err), ERR_BUSY);
    struct mover *second = mover_new(&(struct mover_options){0});
    struct move_request q = {.kind = SHARD_MERGE};
    CHECK_ERR(mover_begin(second, l.sharded, &q, &err), ERR_BUSY);
    move_lab_run(&l, WINDOW);
    move_lab_check(&l, "0 e 1");
    mover_free(second);
    move_lab_close(&l);
}

TEST(shard_move, two_movers_that_work_at_once_move_each_key_once)
{
    struct move_lab l;

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, true);
    struct buf want = dump_of(&l);
    move_lab_begin(&l, SHARD_SPLIT, "c");
    struct mover *second = mover_new(&(struct mover_options){0});
    move_take_over(second, l.sharded);
    struct move *r = move_find(second, l.sharded);
    while (r->phase != MOVE_NONE) {
        struct move *first = move_find(l.mover, l.sharded);
        first->limit = r->limit = 5;
        move_work(l.mover, first);
        move_work(second, r);
    }
    move_lab_run(&l, WINDOW);
    move_lab_check(&l, "0 c 1");
    expect_dump(&l, &want);
    buf_release(&want);
    mover_free(second);
    move_lab_close(&l);
}

TEST(shard_move, a_cancelled_move_stays_where_it_is)
{
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    struct buf want = dump_of(&l);
    CHECK_ERR(mover_cancel(l.mover, l.sharded, &err), ERR_NOT_FOUND);
    move_lab_begin(&l, SHARD_SPLIT, "c");
    struct move *r = move_find(l.mover, l.sharded);
    r->limit = 6;
    move_work(l.mover, r); /* counts */
    move_work(l.mover, r);
    CHECK_OK(mover_cancel(l.mover, l.sharded, &err));
    move_lab_check(&l, "0 c 1 c/05 0");
    expect_dump(&l, &want);
    buf_release(&want);
    move_lab_close(&l);
}

/* --- requests in the way --- */

TEST(shard_move, a_window_ends_below_the_key_of_a_long_request)
{
    struct move_lab l;
    struct pass p = {0};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    CHECK_OK(pass_take(l.sharded->table, STR("g/03"), PASS_WRITE, true, &p, &err));
    move_lab_begin(&l, SHARD_SPLIT, "e");
    struct move *r = move_find(l.mover, l.sharded);
    struct shard_map *m = NULL;
    do { /* at first the request is young, and the window is opened again */
        map_unref(m);
        move_work(l.mover, r);
        m = table_map(l.sharded->table);
    } while (m->segment_count < 2);
    CHECK_STR(m->segments[1].after, STR("e"));
    CHECK_STR(m->segments[2].after, STR("g/02"));
    map_unref(m);
    move_work(l.mover, r);
    CHECK(strstr(r->waits, "g/03") != NULL);
    pass_leave(&p);
    move_lab_run(&l, 1000);
    move_lab_check(&l, "0 e 1");
    move_lab_close(&l);
}

/* --- kills --- */

struct kill {
    struct move_lab *lab;
    const char *name;
};

static void take_image(void *ctx)
{
    struct kill *k = ctx;

    move_lab_image(k->lab, k->name);
}

/* A move, on a bucket that was split at "d" and "g". */
struct scenario {
    const char *name;
    enum shard_move_kind kind;
    const char *at;
    const char *const *steps;
};

static const char *const split_steps[] = {"shard.place",  "shard.close", "shard.adopt",
                                          "shard.commit", "shard.end",   NULL};
static const char *const merge_steps[] = {
    "shard.place", "shard.close", "shard.adopt", "shard.commit", "shard.end", "shard.clean", NULL};
static const char *const disable_steps[] = {"shard.place",  "shard.close", "shard.adopt",
                                            "shard.commit", "shard.end",   "shard.clean",
                                            "shard.unmap",  NULL};

static void prepare(struct move_lab *l)
{
    move_lab_open(l, "weir");
    move_lab_make(l, true);
    move_lab_fill(l, true);
    move_lab_do(l, SHARD_SPLIT, "d", 1000);
    move_lab_do(l, SHARD_SPLIT, "g", 1000);
}

/* What a start on the image finds: everything is there at once, and the move goes on to its end. */
static void expect_recovery(const struct buf *want)
{
    struct move_lab l;
    struct arena a = {0};

    move_lab_open(&l, "image");
    CHECK(l.bucket != NULL);
    expect_dump(&l, want);
    if (l.sharded) {
        struct shard_map *m = table_map(l.sharded->table);
        CHECK_INT(m->closed, SHARD_OPEN);
        map_unref(m);
        move_lab_run(&l, WINDOW);
    }
    if (l.gone) {
        struct err err = {0};
        l.bucket->ops->unref(l.bucket);
        sharded_unref(l.sharded);
        l.sharded = NULL;
        CHECK_OK(l.home->ops->open_bucket(&l.bucket, l.home, STR_EMPTY, STR("photos"), &err));
    }
    move_lab_check(&l, NULL);
    expect_dump(&l, want);
    lab_put(l.bucket, &a, "e/new", STR("new"));
    lab_expect(l.bucket, "e/new", STR_EMPTY, STR("new"));
    arena_release(&a);
    move_lab_close(&l);
}

static void kill_at(const struct scenario *x, const char *step, enum steps_when when, unsigned n)
{
    struct move_lab l;
    struct kill k = {&l, "image"};
    struct err err = {0};

    prepare(&l);
    struct buf want = dump_of(&l);
    steps_plan(when, step, n, take_image, &k);
    move_lab_do(&l, x->kind, x->at, WINDOW);
    bool happened = steps_happened();
    move_lab_close(&l);
    if (happened)
        expect_recovery(&want);
    else
        CHECK(n > 1); /* every step is there once */
    buf_release(&want);
    char dir[200];
    snprintf(dir, sizeof(dir), "%s/weir", test_dir());
    CHECK_OK(dir_remove_tree(dir, &err));
}

static void kill_everywhere(const struct scenario *x)
{
    for (const char *const *step = x->steps; *step; step++)
        for (unsigned n = 1; n <= 2; n++) {
            kill_at(x, *step, STEPS_BEFORE, n);
            kill_at(x, *step, STEPS_AFTER, n);
        }
}

TEST(shard_move, a_split_that_was_killed_at_any_step_is_whole_and_goes_on)
{
    kill_everywhere(&(struct scenario){"split", SHARD_SPLIT, "b", split_steps});
}

TEST(shard_move, a_merge_that_was_killed_at_any_step_is_whole_and_goes_on)
{
    kill_everywhere(&(struct scenario){"merge", SHARD_MERGE, "g", merge_steps});
}

TEST(shard_move, a_disabling_that_was_killed_at_any_step_is_whole_and_goes_on)
{
    kill_everywhere(&(struct scenario){"disable", SHARD_DISABLE, NULL, disable_steps});
}

/* --- garbage (H10) --- */

/* Puts an object into a shard past weir. */
static void plant(struct move_lab *l, uint32_t place, const char *key)
{
    struct shard_map *m = table_map(l->sharded->table);
    struct bucket *b = NULL;
    struct arena a = {0};
    struct err err = {0};

    CHECK_OK(move_open_place(l->sharded, m, place, &b, &err));
    lab_put(b, &a, key, STR("garbage"));
    b->ops->unref(b);
    map_unref(m);
    arena_release(&a);
}

TEST(shard_move, garbage_in_the_way_of_a_window_is_removed_before_it_is_closed)
{
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, true);
    struct buf want = dump_of(&l);
    move_lab_do(&l, SHARD_SPLIT, "c/", WINDOW);
    plant(&l, 0, "d/03");      /* shard 1 has this key */
    plant(&l, 0, "d/garbage"); /* and not this one */
    expect_dump(&l, &want);
    move_lab_do(&l, SHARD_DISABLE, NULL, WINDOW);
    l.bucket->ops->unref(l.bucket);
    sharded_unref(l.sharded);
    l.sharded = NULL;
    CHECK_OK(l.home->ops->open_bucket(&l.bucket, l.home, STR_EMPTY, STR("photos"), &err));
    expect_dump(&l, &want);
    move_lab_check(&l, NULL);
    buf_release(&want);
    move_lab_close(&l);
}

TEST(shard_move, garbage_does_not_come_back_when_an_empty_window_is_given_to_its_shard)
{
    struct move_lab l;

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "m", 1000);
    plant(&l, 0, "x");
    move_lab_do(&l, SHARD_MERGE, "m", 1000);
    lab_expect_list(l.bucket, &lab_everything, true, "");
    move_lab_check(&l, NULL);
    move_lab_close(&l);
}

TEST(shard_move, a_shard_that_goes_takes_its_garbage_with_it)
{
    struct move_lab l;
    struct arena a = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    struct buf want = dump_of(&l);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    move_lab_do(&l, SHARD_SPLIT, "i/", 1000);
    plant(&l, 2, "a/garbage");
    move_lab_do(&l, SHARD_MERGE, "i/", 1000);
    move_lab_check(&l, "0 d 1");
    expect_dump(&l, &want);
    arena_release(&a);
    buf_release(&want);
    move_lab_close(&l);
}

static void plant_and_take_image(void *ctx)
{
    struct kill *k = ctx;

    plant(k->lab, 0, "c/00");
    move_lab_image(k->lab, k->name);
}

TEST(shard_move, rows_that_cannot_go_back_keep_their_window_closed_and_nothing_else)
{
    struct move_lab l;
    struct kill k = {&l, "image"};
    struct arena a = {0};
    struct move_progress p;

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    struct buf want = dump_of(&l);
    move_lab_begin(&l, SHARD_SPLIT, "b/");
    steps_plan(STEPS_AFTER, "shard.adopt", 1, plant_and_take_image, &k);
    move_lab_run(&l, WINDOW);
    CHECK(steps_happened());
    move_lab_close(&l);
    move_lab_open(&l, "image");
    struct shard_map *m = table_map(l.sharded->table);
    CHECK_INT(m->closed, SHARD_CLOSED_ADOPT);
    lab_expect(l.bucket, "a/01", STR_EMPTY, lab_bytes(11, 1));
    struct move *r = move_find(l.mover, l.sharded);
    CHECK(r && r->phase == MOVE_MOVING);
    move_work(l.mover, r); /* counts */
    move_work(l.mover, r);
    mover_progress(l.mover, l.sharded, &a, &p);
    CHECK(p.error.len > 0);
    struct bucket *home = NULL;
    struct err err = {0};
    CHECK_OK(move_open_place(l.sharded, m, 0, &home, &err));
    lab_remove(home, &a, "c/00", STR_EMPTY);
    home->ops->unref(home);
    map_unref(m);
    r->error = (struct err){0};
    move_lab_run(&l, WINDOW);
    expect_dump(&l, &want);
    move_lab_check(&l, "0 b/ 1");
    arena_release(&a);
    buf_release(&want);
    move_lab_close(&l);
}

/* --- moves that give up --- */

/* Works until the move has ended, whenever its turns are due. */
static void work_to_the_end(struct move_lab *l, struct arena *a, struct move_progress *out)
{
    struct move *r;

    for (int i = 0; i < 200 && (r = move_find(l->mover, l->sharded)) && r->phase; i++)
        move_work(l->mover, r);
    mover_progress(l->mover, l->sharded, a, out);
    CHECK_INT(out->phase, MOVE_NONE);
}

static uint64_t number_of(struct move_lab *l)
{
    struct shard_map *m = table_map(l->sharded->table);
    uint64_t number = m->number;

    map_unref(m);
    return number;
}

TEST(shard_move, an_empty_window_with_a_long_request_is_not_closed_and_the_split_ends)
{
    struct move_lab l;
    struct pass p = {0};
    struct move_progress end;
    struct arena a = {0};
    char why[200] = "";
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    CHECK_OK(pass_take(l.sharded->table, STR("zzz/new"), PASS_WRITE, true, &p, &err));
    while (clock_mono_ns() - p.since_ns <= (uint64_t)MOVE_AGE_MS * NS_PER_MS)
        ;
    move_lab_begin(&l, SHARD_SPLIT, "zzz");
    struct move *r = move_find(l.mover, l.sharded);
    move_work(l.mover, r); /* counts */
    uint64_t number = number_of(&l);
    move_work(l.mover, r);
    CHECK_INT(number_of(&l), number); /* nothing was closed */
    CHECK(strstr(r->waits, "zzz/new") != NULL);
    work_to_the_end(&l, &a, &end);
    CHECK(strstr(end.error.p, "zzz/new") != NULL);
    CHECK(move_gave_up(l.mover, l.sharded, MS_PER_HOUR, why, sizeof(why)));
    CHECK(strstr(why, "zzz/new") != NULL);
    move_lab_check(&l, "0");
    pass_leave(&p);
    move_lab_do(&l, SHARD_SPLIT, "zzz", 1000); /* an order is carried out */
    CHECK(!move_gave_up(l.mover, l.sharded, MS_PER_HOUR, why, sizeof(why)));
    move_lab_check(&l, "0 zzz 2"); /* numbers are never used again */
    arena_release(&a);
    move_lab_close(&l);
}

TEST(shard_move, a_window_that_was_closed_in_vain_is_not_closed_again_at_once)
{
    struct move_lab l;
    struct pass p = {0};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    move_lab_begin(&l, SHARD_SPLIT, "e");
    struct move *r = move_find(l.mover, l.sharded);
    move_work(l.mover, r); /* counts */
    CHECK_OK(pass_take(l.sharded->table, STR("e/00"), PASS_WRITE, true, &p, &err));
    move_work(l.mover, r);
    CHECK(r->waits[0]);
    CHECK(r->due_ns > clock_mono_ns() + 5 * (uint64_t)MOVE_DRAIN_MS * NS_PER_MS);
    pass_leave(&p);
    move_lab_run(&l, 1000);
    move_lab_check(&l, "0 e 1");
    move_lab_close(&l);
}

/* Puts versions with 2 MB of headers each. */
static void put_large_versions(struct move_lab *l, const char *key, unsigned count)
{
    static char value[2000];
    static struct http_header headers[1000];
    struct put_options o = {.meta = {headers, ARRAY_SIZE(headers)}};
    struct shard_map *m = table_map(l->sharded->table);
    struct bucket *b = NULL;
    struct arena a = {0};
    struct err err = {0};

    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        headers[i] = (struct http_header){STR("x-amz-meta-a"), str_n(value, sizeof(value))};
    CHECK_OK(move_open_place(l->sharded, m, 0, &b, &err));
    for (unsigned i = 0; i < count; i++) {
        struct put_result out;
        struct str_reader r;
        str_reader_init(&r, STR("v"));
        CHECK_OK(b->ops->put(b, &a, str_z(key), &r.reader, 1, &o, &out, &err));
        arena_reset(&a);
    }
    b->ops->unref(b);
    map_unref(m);
    arena_release(&a);
}

TEST_TIMEOUT(shard_move, a_key_that_is_too_large_ends_the_move_below_it_without_being_closed, 120)
{
    struct move_lab l;
    struct move_progress end;
    struct arena a = {0};
    struct mover_stats stats;
    char why[200] = "";

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, false);
    put_large_versions(&l, "f/02", 27);
    move_lab_begin(&l, SHARD_SPLIT, "e/03");
    work_to_the_end(&l, &a, &end);
    CHECK(strstr(end.error.p, "f/02") != NULL);
    CHECK(move_gave_up(l.mover, l.sharded, MS_PER_HOUR, why, sizeof(why)));
    mover_stats(l.mover, &stats);
    CHECK_INT(stats.hand_overs, 1);
    move_lab_check(&l, "0 e/03 1 f/01 0");
    arena_release(&a);
    move_lab_close(&l);
}

/* --- what is known of a move that has ended --- */

TEST(shard_move, the_numbers_of_the_last_move_stay_until_the_bucket_is_plain)
{
    struct move_progress p;
    struct arena a = {0};
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", WINDOW);
    mover_progress(l.mover, l.sharded, &a, &p);
    CHECK_INT(p.phase, MOVE_NONE);
    CHECK_INT(p.last.kind, SHARD_SPLIT);
    CHECK_INT(p.last.keys_moved, 42); /* of d/00 to j/05 */
    CHECK(p.last.whole && p.last.ended_ms > 0);
    move_lab_begin(&l, SHARD_MERGE, "d");
    move_work(l.mover, move_find(l.mover, l.sharded));
    CHECK_OK(mover_cancel(l.mover, l.sharded, &err));
    mover_progress(l.mover, l.sharded, &a, &p);
    CHECK_INT(p.last.kind, SHARD_MERGE);
    CHECK(!p.last.whole);
    move_lab_do(&l, SHARD_DISABLE, NULL, 1000);
    mover_progress(l.mover, l.sharded, &a, &p);
    CHECK_INT(p.last.ended_ms, 0);
    arena_release(&a);
    move_lab_close(&l);
}

/* --- switches --- */

static void note_work(void *ctx)
{
    struct move_lab *l = ctx;

    CHECK(mover_works(l->mover, l->sharded));
    l->rests = true; /* a switch is announced while a window is being handed over */
}

TEST(shard_move, no_key_moves_while_the_bucket_is_being_switched)
{
    struct move_request q = {.kind = SHARD_SPLIT, .at = STR("d")};
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_fill(&l, false);
    struct buf want = dump_of(&l);
    l.rests = true;
    CHECK_ERR(mover_begin(l.mover, l.sharded, &q, &err), ERR_BUSY);
    CHECK(strstr(err.text, "switched"));
    CHECK(!mover_works(l.mover, l.sharded));
    move_lab_check(&l, "0");
    l.rests = false;
    CHECK_OK(mover_begin(l.mover, l.sharded, &q, &err));
    struct move *r = move_find(l.mover, l.sharded);
    r->at_work = true; /* as mover_take() sets it */
    r->limit = WINDOW;
    steps_plan(STEPS_BEFORE, "shard.adopt", 1, note_work, &l);
    move_work(l.mover, r); /* counts */
    move_work(l.mover, r);
    CHECK(steps_happened());
    uint64_t moved = r->keys_moved;
    for (int turn = 0; turn < 3; turn++) {
        move_work(l.mover, r);
        CHECK(strstr(r->waits, "switched"));
        CHECK_INT(r->keys_moved, moved);
    }
    r->at_work = false;
    CHECK(!mover_works(l.mover, l.sharded));
    l.rests = false;
    move_lab_run(&l, WINDOW);
    move_lab_check(&l, "0 d 1");
    expect_dump(&l, &want);
    buf_release(&want);
    move_lab_close(&l);
}

/* --- the state of all shards (H13) --- */

/* Checks that every shard has the state of the bucket itself, and returns that state. */
static struct bucket_info expect_one_state(struct move_lab *l)
{
    struct shard_map *m = table_map(l->sharded->table);
    struct bucket_info first = {0};
    struct arena a = {0};
    struct err err = {0};

    CHECK_INT(m->closed, SHARD_OPEN);
    for (size_t i = 0; i < m->place_count; i++) {
        struct bucket *b = NULL;
        struct bucket_info info;
        CHECK_OK(move_open_place(l->sharded, m, m->places[i].number, &b, &err));
        CHECK_OK(b->ops->info(b, &a, &info, &err));
        if (i == 0)
            first = info;
        CHECK_INT(info.versions, first.versions);
        CHECK_INT(info.object_lock, first.object_lock);
        b->ops->unref(b);
    }
    map_unref(m);
    arena_release(&a);
    first.name = first.owner = STR_EMPTY;
    return first;
}

/* A step of a change of the state, and whether the change is made when weir is killed there. */
struct state_kill {
    const char *step;
    enum steps_when when;
    unsigned n;
    bool made;
};

static const struct state_kill state_kills[] = {
    {"shard.changing", STEPS_BEFORE, 1, false}, {"shard.changing", STEPS_AFTER, 1, false},
    {"shard.state", STEPS_BEFORE, 1, false},    {"shard.state", STEPS_AFTER, 1, true},
    {"shard.state", STEPS_AFTER, 2, true},      {"shard.state", STEPS_AFTER, 3, true},
    {"shard.open", STEPS_BEFORE, 1, true},      {"shard.open", STEPS_AFTER, 1, true},
};

static void kill_change(const struct state_kill *x, bool lock)
{
    struct move_lab l;
    struct kill k = {&l, "image"};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    move_lab_do(&l, SHARD_SPLIT, "g", 1000);
    if (lock)
        CHECK_OK(l.bucket->ops->set_versions(l.bucket, true, &err));
    steps_plan(x->when, x->step, x->n, take_image, &k);
    if (lock)
        CHECK_OK(l.bucket->ops->set_object_lock(l.bucket, &err));
    else
        CHECK_OK(l.bucket->ops->set_versions(l.bucket, true, &err));
    CHECK(steps_happened());
    CHECK_INT(expect_one_state(&l).versions, VERSIONS_ON);
    move_lab_close(&l);
    move_lab_open(&l, "image");
    struct bucket_info found = expect_one_state(&l);
    CHECK_INT(found.versions, lock || x->made ? VERSIONS_ON : VERSIONS_NEVER);
    CHECK_INT(found.object_lock, lock && x->made);
    move_lab_check(&l, "0 d 1 g 2");
    move_lab_close(&l);
    char dir[200];
    snprintf(dir, sizeof(dir), "%s/weir", test_dir());
    CHECK_OK(dir_remove_tree(dir, &err));
}

TEST(shard_move, a_change_of_versions_or_lock_that_was_killed_is_brought_forward_on_all_shards)
{
    for (size_t i = 0; i < ARRAY_SIZE(state_kills); i++) {
        kill_change(&state_kills[i], false);
        kill_change(&state_kills[i], true);
    }
}

TEST(shard_move, versions_that_are_suspended_by_half_are_on_again)
{
    struct move_lab l;
    struct kill k = {&l, "image"};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    CHECK_OK(l.bucket->ops->set_versions(l.bucket, true, &err));
    steps_plan(STEPS_AFTER, "shard.state", 1, take_image, &k);
    CHECK_OK(l.bucket->ops->set_versions(l.bucket, false, &err));
    CHECK_INT(expect_one_state(&l).versions, VERSIONS_SUSPENDED);
    move_lab_close(&l);
    move_lab_open(&l, "image");
    CHECK_INT(expect_one_state(&l).versions, VERSIONS_ON);
    move_lab_close(&l);
}

TEST(shard_move, a_change_of_versions_that_a_shard_refuses_changes_no_shard)
{
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, true); /* with object lock */
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    CHECK_ERR(l.bucket->ops->set_versions(l.bucket, false, &err), ERR_CONFLICT);
    CHECK_INT(expect_one_state(&l).versions, VERSIONS_ON);
    struct shard_map *m = table_map(l.sharded->table);
    CHECK_OK(local_remove_shard(l.home, m->places[1].bucket, &err));
    uint64_t number = m->number;
    map_unref(m);
    CHECK_ERR(l.bucket->ops->set_versions(l.bucket, true, &err), ERR_CORRUPT);
    m = table_map(l.sharded->table);
    CHECK_INT(m->number, number); /* the missing shard is found before anything is closed */
    map_unref(m);
    move_lab_close(&l);
}

/* --- DeleteBucket --- */

TEST(shard_move, a_bucket_with_a_version_or_an_upload_in_any_shard_is_not_removed)
{
    static const char *const keys[] = {"a", "e", "z"};
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    move_lab_do(&l, SHARD_SPLIT, "g", 1000);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct arena a = {0};
        lab_put(l.bucket, &a, keys[i], STR("x"));
        CHECK_ERR(mover_remove(l.mover, l.sharded, STR("alice"), &err), ERR_CONFLICT);
        lab_remove(l.bucket, &a, keys[i], STR_EMPTY);
        struct upload_info u = lab_upload(l.bucket, &a, keys[i]);
        CHECK_ERR(mover_remove(l.mover, l.sharded, STR("alice"), &err), ERR_CONFLICT);
        CHECK_OK(l.bucket->ops->upload_abort(l.bucket, &u, &err));
        arena_release(&a);
    }
    move_lab_check(&l, "0 d 1 g 2");
    CHECK_OK(mover_remove(l.mover, l.sharded, STR("alice"), &err));
    CHECK_INT(l.gone, 1);
    move_lab_close(&l);
    move_lab_open(&l, "weir");
    CHECK(!l.bucket && !l.sharded);
    move_lab_check(&l, NULL);
    move_lab_close(&l);
}

TEST(shard_move, garbage_keeps_no_bucket_from_being_removed)
{
    struct move_lab l;
    struct arena a = {0};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    move_lab_do(&l, SHARD_SPLIT, "g", 1000);
    plant(&l, 0, "e");
    plant(&l, 0, "z");
    plant(&l, 1, "a");
    plant(&l, 2, "f");
    lab_put(l.bucket, &a, "f", STR("x"));
    CHECK_ERR(mover_remove(l.mover, l.sharded, STR("alice"), &err), ERR_CONFLICT);
    lab_remove(l.bucket, &a, "f", STR_EMPTY);
    CHECK_OK(mover_remove(l.mover, l.sharded, STR("alice"), &err));
    CHECK_INT(l.gone, 1);
    arena_release(&a);
    move_lab_close(&l);
    move_lab_open(&l, "weir");
    CHECK(!l.bucket && !l.sharded);
    move_lab_check(&l, NULL);
    move_lab_close(&l);
}

TEST(shard_move, an_object_that_is_put_while_the_bucket_is_being_closed_keeps_it)
{
    struct move_lab l;
    struct pass p = {0};
    struct arena a = {0};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    CHECK_OK(pass_take(l.sharded->table, STR("x"), PASS_WRITE, true, &p, &err));
    CHECK_ERR(mover_remove(l.mover, l.sharded, STR("alice"), &err), ERR_BUSY);
    pass_leave(&p);
    move_lab_check(&l, "0 d 1");
    lab_put(l.bucket, &a, "x", STR("x"));
    arena_release(&a);
    move_lab_close(&l);
}

TEST(shard_move, a_removal_that_was_killed_at_any_step_goes_on_or_leaves_the_bucket_as_it_was)
{
    static const struct {
        const char *step;
        enum steps_when when;
        bool stays;
    } rows[] = {
        {"shard.all", STEPS_BEFORE, true},      {"shard.all", STEPS_AFTER, true},
        {"shard.deleting", STEPS_BEFORE, true}, {"shard.deleting", STEPS_AFTER, false},
        {"shard.remove", STEPS_BEFORE, false},  {"shard.remove", STEPS_AFTER, false},
        {"shard.clean", STEPS_BEFORE, false},   {"shard.clean", STEPS_AFTER, false},
        {"shard.unmap", STEPS_BEFORE, false},   {"shard.unmap", STEPS_AFTER, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct move_lab l;
        struct kill k = {&l, "image"};
        struct err err = {0};
        char name[16];
        snprintf(name, sizeof(name), "weir-%zu", i);
        move_lab_open(&l, name);
        move_lab_make(&l, false);
        move_lab_do(&l, SHARD_SPLIT, "d", 1000);
        move_lab_do(&l, SHARD_SPLIT, "g", 1000);
        steps_plan(rows[i].when, rows[i].step, 1, take_image, &k);
        CHECK_OK(mover_remove(l.mover, l.sharded, STR("alice"), &err));
        CHECK(steps_happened());
        move_lab_close(&l);
        move_lab_open(&l, "image");
        CHECK_INT(l.bucket != NULL, rows[i].stays);
        if (rows[i].stays) {
            struct arena a = {0};
            lab_put(l.bucket, &a, "x", STR("x"));
            lab_expect(l.bucket, "x", STR_EMPTY, STR("x"));
            arena_release(&a);
        }
        move_lab_check(&l, rows[i].stays ? "0 d 1 g 2" : NULL);
        move_lab_close(&l);
    }
}

static struct str lab_shard_name(struct arena *a)
{
    return shard_bucket_name(a, STR("photos"), STR("abcd"), 9);
}

/* Makes a bucket that has the name of a shard and is none, so that it cannot be removed. */
static void make_stray(void *ctx)
{
    struct move_lab *l = ctx;
    struct arena a = {0};
    struct bucket_info info = {.name = lab_shard_name(&a), .owner = STR("alice")};
    struct err err = {0};

    CHECK_OK(l->home->ops->create_bucket(l->home, &info, &err));
    arena_release(&a);
}

/* Somebody else makes a bucket of the name, while a shard of the removed one cannot be removed. */
TEST(shard_move, a_removal_whose_cleaning_fails_spares_the_next_bucket_of_the_name)
{
    struct bucket_info info = {.name = STR("photos"), .owner = STR("bob")};
    struct bucket *anew = NULL;
    struct arena a = {0};
    struct move_lab l;
    struct move *r;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    steps_plan(STEPS_AFTER, "shard.remove", 1, make_stray, &l);
    CHECK_OK(mover_remove(l.mover, l.sharded, STR("alice"), &err));
    CHECK(steps_happened());
    CHECK_INT(l.gone, 0);
    CHECK_OK(l.home->ops->create_bucket(l.home, &info, &err));
    CHECK_OK(l.home->ops->open_bucket(&anew, l.home, STR_EMPTY, info.name, &err));
    lab_put(anew, &a, "bobs", STR("1"));
    move_lab_image(&l, "image");

    CHECK((r = move_find(l.mover, l.sharded)) != NULL);
    move_work(l.mover, r);
    CHECK_INT(l.gone, 0);
    CHECK_OK(l.home->ops->remove_bucket(l.home, STR_EMPTY, lab_shard_name(&a), &err));
    move_work(l.mover, r);
    CHECK_INT(l.gone, 1);
    CHECK_INT(r->phase, MOVE_NONE);
    lab_expect(anew, "bobs", STR_EMPTY, STR("1"));
    anew->ops->unref(anew);
    move_lab_close(&l);

    move_lab_open(&l, "image"); /* the stray is there */
    CHECK(!l.sharded && l.bucket);
    lab_expect(l.bucket, "bobs", STR_EMPTY, STR("1"));
    move_lab_close(&l);
    arena_release(&a);
}

/* Somebody has removed the bucket itself past the mover. */
TEST(shard_move, a_removal_of_a_bucket_that_is_gone_cleans_up)
{
    struct move_lab l;
    struct bucket *home = NULL;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    move_lab_do(&l, SHARD_SPLIT, "d", 1000);
    mutex_lock(&l.sharded->changes);
    struct shard_map *now = table_map(l.sharded->table), *deleting = map_draft(now);
    deleting->state = SHARD_DELETING;
    CHECK_OK(move_publish(l.sharded, deleting, "shard.deleting", &err));
    mutex_unlock(&l.sharded->changes);
    map_unref(now);
    CHECK_OK(sharded_open_home(l.sharded, &home, &err));
    CHECK_OK(local_remove_opened(home, &err));
    CHECK_ERR(mover_remove(l.mover, l.sharded, STR("alice"), &err), ERR_NO_BUCKET);
    CHECK_INT(l.gone, 1);
    move_lab_close(&l);
    move_lab_open(&l, "weir");
    move_lab_check(&l, NULL);
    move_lab_close(&l);
}

TEST(shard_move, a_removal_ends_the_move_that_is_under_way)
{
    struct move_lab l;
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, false);
    CHECK_OK(mover_start(l.mover, &err));
    move_lab_begin(&l, SHARD_SPLIT, "d");
    CHECK_OK(mover_remove(l.mover, l.sharded, STR("alice"), &err));
    CHECK(move_find(l.mover, l.sharded) == NULL);
    mover_stop(l.mover);
    move_lab_close(&l);
}

/* --- the thread --- */

TEST(shard_move, the_mover_s_thread_works_until_the_move_has_ended)
{
    struct move_lab l;
    struct move_progress p;
    struct arena a = {0};
    struct err err = {0};

    move_lab_open(&l, "weir");
    move_lab_make(&l, true);
    move_lab_fill(&l, true);
    struct buf want = dump_of(&l);
    CHECK_OK(mover_start(l.mover, &err));
    move_lab_begin(&l, SHARD_SPLIT, NULL);
    CHECK_OK(mover_wait(l.mover, l.sharded, clock_mono_ns() + 20 * NS_PER_S, &err));
    mover_progress(l.mover, l.sharded, &a, &p);
    CHECK_INT(p.phase, MOVE_NONE);
    move_lab_check(&l, NULL);
    expect_dump(&l, &want);
    mover_stop(l.mover);
    buf_release(&want);
    arena_release(&a);
    move_lab_close(&l);
}
