/* When buckets are split and merged, and where. */
#include "shard/plan.h"

#include "base/clock.h"
#include "unit/shard/move_lab.h"

#include <stdio.h>

/* --- boundaries --- */

TEST(shard_plan, a_boundary_is_the_shortest_string_between_two_keys)
{
    static const struct {
        const char *below, *above, *want;
    } rows[] = {
        {"a", "b", "a"},
        {"apple", "banana", "b"},
        {"abc", "abd", "abc"},
        {"abcz", "abe", "abd"},
        {"abcz", "abd", "abcz"},
        {"abcazz", "abd", "abcb"},
        {"a", "a/b", "a/"},
        {"a", "ab", "a"},
        {"dir/x", "dor/y", "dor/"},
        {"dir/1", "dir/2", "dir/1"},
        {"p/a/1", "p/b/1", "p/b/"},
        {"x\xc3\xa4q", "x\xc3\xb6q", "x\xc3\xb6"},
    };
    struct arena a = {0};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_STR(boundary_between(str_z(rows[i].below), str_z(rows[i].above), &a),
                  str_z(rows[i].want));
    arena_release(&a);
}

TEST(shard_plan, a_boundary_separates_any_two_keys)
{
    static const char letters[] = "\x01/ab\xff";
    struct arena a = {0};
    uint64_t seed = 1;

    for (int round = 0; round < 100000; round++) {
        char text[2][8];
        struct str key[2];
        for (int k = 0; k < 2; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t len = 1 + (seed >> 60) % 6;
            for (size_t i = 0; i < len; i++)
                text[k][i] = letters[(seed >> (8 + 4 * i)) % (sizeof(letters) - 1)];
            key[k] = str_n(text[k], len);
        }
        int order = str_cmp(key[0], key[1]);
        if (order == 0)
            continue;
        struct str below = order < 0 ? key[0] : key[1], above = order < 0 ? key[1] : key[0];
        struct str s = boundary_between(below, above, &a);
        CHECK(s.len > 0 && str_cmp(below, s) <= 0 && str_cmp(s, above) < 0);
        arena_reset(&a);
    }
    arena_release(&a);
}

TEST(shard_plan, a_boundary_near_the_middle_that_ends_a_folder_is_preferred)
{
    struct arena a = {0};
    struct str keys[100];
    char text[100][16];

    for (int i = 0; i < 100; i++) {
        snprintf(text[i], sizeof(text[i]), "%s/%03d", i < 52 ? "left" : "right", i);
        keys[i] = str_z(text[i]);
    }
    CHECK_STR(boundary_of_sample(keys, 100, &a), STR("right/"));
    CHECK_STR(boundary_of_sample(keys, 2, &a), STR("left/000"));
    CHECK_INT(boundary_of_sample(keys, 1, &a).len, 0);
    arena_release(&a);
}

/* --- decisions --- */

struct plan_lab {
    struct move_lab l;
    struct plan *plan;
    struct arena a;
};

static void no_list(void *ctx, void (*each)(void *arg, struct sharded *s), void *arg)
{
    (void)ctx, (void)each, (void)arg;
}

static void plan_lab_open(struct plan_lab *p, uint64_t threshold, bool automatic)
{
    *p = (struct plan_lab){0};
    move_lab_open(&p->l, "weir");
    move_lab_make(&p->l, false);
    p->plan = plan_new(&(struct plan_options){.mover = p->l.mover,
                                              .list = no_list,
                                              .threshold = threshold,
                                              .automatic = automatic,
                                              .calm_ms = 1});
}

static void plan_lab_close(struct plan_lab *p)
{
    plan_free(p->plan);
    arena_release(&p->a);
    move_lab_close(&p->l);
}

static void put_keys(struct plan_lab *p, const char *format, int from, int to)
{
    char key[64];

    for (int i = from; i < to; i++) {
        snprintf(key, sizeof(key), "%s%04d", format, i);
        lab_put(p->l.bucket, &p->a, key, str_z(key));
    }
}

static void remove_keys(struct plan_lab *p, const char *format, int from, int to)
{
    char key[64];

    for (int i = from; i < to; i++) {
        snprintf(key, sizeof(key), "%s%04d", format, i);
        lab_remove(p->l.bucket, &p->a, key, STR_EMPTY);
    }
}

/* Looks, and does what the plan has begun. */
static void look(struct plan_lab *p)
{
    struct err err = {0};

    CHECK_OK(plan_look(p->plan, p->l.sharded, &err));
    if (move_find(p->l.mover, p->l.sharded))
        move_lab_run(&p->l, 1000);
}

static size_t segments(struct plan_lab *p)
{
    struct shard_map *m = table_map(p->l.sharded->table);
    size_t n = m->segment_count;

    map_unref(m);
    return n;
}

TEST(shard_plan, a_shard_is_split_above_the_threshold_and_not_at_it)
{
    struct plan_lab p;

    plan_lab_open(&p, 100, true);
    put_keys(&p, "k", 0, 100);
    look(&p);
    CHECK_INT(segments(&p), 1);
    put_keys(&p, "k", 100, 101);
    look(&p);
    CHECK_INT(segments(&p), 2);
    look(&p);
    CHECK_INT(segments(&p), 2);
    struct shard_count *counts;
    size_t count;
    struct err err = {0};
    CHECK_OK(shard_counts(p.l.sharded, &p.a, &counts, &count, &err));
    CHECK_INT(counts[0].usage.objects + counts[1].usage.objects, 101);
    CHECK(counts[0].usage.objects >= 45 && counts[0].usage.objects <= 56);
    plan_lab_close(&p);
}

TEST(shard_plan, keys_that_grow_are_split_without_moving_them)
{
    struct plan_lab p;
    struct mover_stats stats;

    plan_lab_open(&p, 100, true);
    for (int i = 0; i < 500; i += 10) {
        put_keys(&p, "2026/", i, i + 10);
        look(&p);
    }
    CHECK(segments(&p) >= 4);
    mover_stats(p.l.mover, &stats);
    CHECK_INT(stats.keys, 0);
    move_lab_check(&p.l, NULL);
    plan_lab_close(&p);
}

/* A split above the greatest key would leave the shard as large as it is. */
TEST(shard_plan, keys_that_grow_far_beyond_the_threshold_at_once_are_split_in_the_middle)
{
    struct plan_lab p;

    plan_lab_open(&p, 100, true);
    put_keys(&p, "2026/", 0, 80);
    look(&p);
    put_keys(&p, "2026/", 80, 500);
    for (int i = 0; i < 12; i++)
        look(&p);
    CHECK(segments(&p) >= 5);
    move_lab_check(&p.l, NULL);
    plan_lab_close(&p);
}

TEST(shard_plan, neighbours_that_have_shrunk_are_merged)
{
    struct plan_lab p;

    plan_lab_open(&p, 100, true);
    put_keys(&p, "k", 0, 101);
    look(&p);
    CHECK_INT(segments(&p), 2);
    remove_keys(&p, "k", 0, 50);
    look(&p);
    CHECK_INT(segments(&p), 2); /* 51 are left, and that is more than half of 100 */
    remove_keys(&p, "k", 50, 60);
    CHECK(test_waits(&(uint64_t){0})); /* longer than the calm of this plan */
    look(&p);
    CHECK_INT(segments(&p), 1);
    plan_lab_close(&p);
}

TEST(shard_plan, shards_that_were_made_for_objects_to_come_stay)
{
    struct plan_lab p;

    plan_lab_open(&p, 100, true);
    move_lab_do(&p.l, SHARD_SPLIT, "h", 1000);
    move_lab_do(&p.l, SHARD_SPLIT, "p", 1000);
    put_keys(&p, "i", 0, 10);
    look(&p);
    look(&p);
    CHECK_INT(segments(&p), 3);
    plan_lab_close(&p);
}

TEST(shard_plan, a_bucket_is_not_split_by_itself_when_that_is_switched_off_and_says_so)
{
    struct plan_lab p;

    plan_lab_open(&p, 10, false);
    put_keys(&p, "k", 0, 30);
    look(&p);
    CHECK_INT(segments(&p), 1);
    CHECK_STR(plan_why(p.plan, p.l.sharded, &p.a), STR("automatic splits are switched off"));
    plan_configure(p.plan, 10, true);
    look(&p);
    CHECK_INT(segments(&p), 2);
    CHECK_STR(plan_why(p.plan, p.l.sharded, &p.a), STR_EMPTY);
    plan_lab_close(&p);
}

TEST(shard_plan, a_move_that_nobody_works_on_is_taken_over)
{
    struct plan_lab p;
    struct err err = {0};

    plan_lab_open(&p, 1000, true);
    put_keys(&p, "k", 0, 30);
    mutex_lock(&p.l.sharded->changes);
    CHECK_OK(move_note_split(p.l.sharded, STR("k0010"), &err));
    mutex_unlock(&p.l.sharded->changes);
    look(&p);
    move_lab_check(&p.l, "0 k0010 1");
    plan_lab_close(&p);
}

TEST(shard_plan, a_move_that_has_given_up_is_not_begun_again_for_a_while)
{
    struct plan_lab p;
    struct move *r;
    struct err err = {0};

    plan_lab_open(&p, 100, true);
    plan_free(p.plan);
    p.plan = plan_new(&(struct plan_options){
        .mover = p.l.mover, .list = no_list, .threshold = 100, .automatic = true});
    put_keys(&p, "k", 0, 101);
    CHECK_OK(plan_look(p.plan, p.l.sharded, &err));
    struct pass pass = {0};
    CHECK_OK(pass_take_after(p.l.sharded->table, STR("k0010"), &pass, &err)); /* a slow listing */
    for (int i = 0; i < 400 && (r = move_find(p.l.mover, p.l.sharded)) && r->phase; i++)
        move_work(p.l.mover, r);
    CHECK(r && r->gave_up_ms);
    size_t before = segments(&p);
    pass_leave(&pass);
    CHECK_OK(plan_look(p.plan, p.l.sharded, &err));
    CHECK_INT(r->phase, MOVE_NONE);
    CHECK_INT(segments(&p), before);
    CHECK(plan_why(p.plan, p.l.sharded, &p.a).len > 0);
    r->gave_up_ms = clock_mono_ms() - MS_PER_HOUR - 1;
    CHECK_OK(plan_look(p.plan, p.l.sharded, &err));
    CHECK(r->phase != MOVE_NONE);
    plan_lab_close(&p);
}
