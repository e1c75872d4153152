/* Which commits have expired: random histories beside a model in memory, in chunks of few commits,
 * and histories that are damaged. */
#include "lake/gc_int.h"
#include "unit/lake/tree_world.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMMITS = 2500, RULE_DEFAULT = 10, NEAR = 30, SEEDS = 8 };

/* A commit of a random history. */
struct past {
    char id[LAKE_ID_LEN + 1];
    int parent; /* index of the first parent, which is smaller; -1: none */
    int32_t generation;
    int age_days;
    int head_days; /* days of the rule of a branch that names the commit; -1: no branch does */
    bool is_leaf, is_reached, is_kept;
};

/* A run whose lists have this memory. */
struct bench {
    struct lake lake;
    struct gc_run run;
};

static void bench_init(struct bench *b, size_t bytes)
{
    *b = (struct bench){.lake.o = {.folder = test_dir(), .gc_bytes = bytes}};
    b->run.lake = &b->lake;
}

/* --- the model --- */

/* The ids sort in another order than the generations. */
static void past_id(char out[LAKE_ID_LEN + 1], uint64_t seed, unsigned n)
{
    uint64_t state = seed * 7919 + n;

    for (int i = 0; i < LAKE_ID_LEN; i += 8)
        snprintf(out + i, 9, "%08x", random_next(&state));
    snprintf(out + LAKE_ID_LEN - 8, 9, "%08x", n);
}

static void past_make(struct past *all, uint64_t seed)
{
    static const int days[] = {0, 3, 20, 60};
    uint64_t state = seed;

    for (int i = 0; i < COMMITS; i++) {
        struct past *p = &all[i];
        int near = i < NEAR ? i : NEAR;
        *p = (struct past){.parent = -1, .generation = 1, .head_days = -1, .is_leaf = true};
        past_id(p->id, seed, (unsigned)i);
        if (i > 0 && random_next(&state) % 50) {
            p->parent = i - 1 - (int)(random_next(&state) % (unsigned)near);
            /* A second parent can raise the generation. */
            p->generation = all[p->parent].generation + 1 + (int32_t)(random_next(&state) % 2);
            all[p->parent].is_leaf = false;
        }
        p->age_days = (int)(random_next(&state) % 100);
        if (random_next(&state) % 40 == 0)
            p->head_days = days[random_next(&state) % ARRAY_SIZE(days)];
    }
}

/* Carries out one walk. `keeps` says whether the commit at its beginning is kept. */
static void past_walk(struct past *all, int from, int days, bool keeps)
{
    for (int i = from; i >= 0; i = all[i].parent) {
        all[i].is_reached = true;
        all[i].is_kept |= keeps;
        keeps = all[i].age_days < days;
    }
}

static void past_judge(struct past *all)
{
    for (int i = 0; i < COMMITS; i++) {
        if (all[i].head_days >= 0)
            past_walk(all, i, all[i].head_days, true);
        else if (all[i].is_leaf)
            past_walk(all, i, RULE_DEFAULT, all[i].age_days < RULE_DEFAULT);
    }
}

/* --- the judge --- */

static struct lake_commit past_commit(const struct past *all, int i, struct str *parent)
{
    const struct past *p = &all[i];

    *parent = p->parent < 0 ? STR_EMPTY : str_z(all[p->parent].id);
    return (struct lake_commit){.id = str_z(p->id),
                                .parents = parent,
                                .parent_count = p->parent >= 0,
                                .version = 1,
                                .generation = p->generation,
                                /* half a day, so that no commit is exactly as old as a rule says */
                                .created_ms = clock_wall_ms() -
                                              (2 * (int64_t)p->age_days + 1) * (MS_PER_DAY / 2)};
}

static void past_feed(struct gc_judge *j, const struct past *all)
{
    struct err err = {0};

    for (int i = 0; i < COMMITS; i++) {
        struct str id = str_z(all[i].id), parent;
        struct lake_commit c = past_commit(all, i, &parent);
        if (all[i].is_leaf)
            CHECK_OK(gc_judge_start(j, id, GC_START_LEAF, RULE_DEFAULT, &err));
        if (all[i].head_days >= 0)
            CHECK_OK(gc_judge_start(j, id, GC_START_HEAD, (uint32_t)all[i].head_days, &err));
        CHECK_OK(gc_judge_add(j, &c, &err));
    }
}

static const struct past *past_find(const struct past *all, struct str id)
{
    unsigned n = 0;

    CHECK_INT(id.len, LAKE_ID_LEN);
    CHECK(sscanf(id.p + LAKE_ID_LEN - 8, "%8x", &n) == 1 && n < COMMITS);
    CHECK_STR(id, str_z(all[n].id));
    return &all[n];
}

static void check_history(uint64_t seed, size_t bytes)
{
    struct past *all = xcalloc(COMMITS, sizeof(*all));
    struct gc_sorter *expired = NULL;
    struct gc_judge *j = NULL;
    size_t want = 0, got = 0;
    struct bench b;
    struct err err = {0};
    struct str id;
    int code;

    bench_init(&b, bytes);
    past_make(all, seed);
    past_judge(all);
    for (int i = 0; i < COMMITS; i++)
        want += all[i].is_reached && !all[i].is_kept;
    CHECK_OK(gc_judge_open(&j, &b.run, &err));
    past_feed(j, all);
    CHECK_OK(gc_judge_run(j, &expired, &err));
    for (; (code = gc_sorter_next(expired, &id, &err)) == 0; got++) {
        const struct past *p = past_find(all, id);
        CHECK(p->is_reached && !p->is_kept);
    }
    CHECK_ERR(code, ERR_END);
    CHECK(want > COMMITS / 10 && want < COMMITS);
    CHECK_INT(got, want);
    gc_judge_close(j);
    free(all);
}

TEST(lake_gc_judge, random_histories_are_judged_as_by_single_walks)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        check_history(seed, 0);
        check_history(seed, 16 << 10); /* chunks of 64 commits, and lists on disk */
        check_history(seed, 1);        /* chunks of 4 commits */
    }
}

/* --- damage --- */

/* Judges the commits of the pair from the index `first` on. */
static int judge_pair(const struct past pair[2], int first, struct err *out)
{
    struct gc_sorter *expired = NULL;
    struct gc_judge *j = NULL;
    struct bench b;
    struct err err = {0};

    bench_init(&b, 0);
    CHECK_OK(gc_judge_open(&j, &b.run, &err));
    CHECK_OK(gc_judge_start(j, str_z(pair[1].id), GC_START_HEAD, 1, &err));
    for (int i = first; i < 2; i++) {
        struct str parent;
        struct lake_commit c = past_commit(pair, i, &parent);
        CHECK_OK(gc_judge_add(j, &c, &err));
    }
    int code = gc_judge_run(j, &expired, out);
    gc_judge_close(j);
    return code;
}

/* Nothing may be marked as expired then, because a walk that was not carried out could keep it. */
TEST(lake_gc_judge, a_missing_parent_and_a_wrong_generation_end_the_run)
{
    struct past pair[2] = {{.parent = -1, .generation = 1}, {.parent = 0, .generation = 2}};
    struct err err = {0};

    past_id(pair[0].id, 1, 0);
    past_id(pair[1].id, 1, 1);
    CHECK_OK(judge_pair(pair, 0, &err));
    CHECK_ERR(judge_pair(pair, 1, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), str_z(pair[0].id)) >= 0);
    pair[0].generation = 3; /* above that of its child */
    CHECK_ERR(judge_pair(pair, 0, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), str_z(pair[0].id)) >= 0);
}

TEST(lake_gc_judge, no_commits_and_no_starts_are_no_error)
{
    struct gc_sorter *expired = NULL;
    struct gc_judge *j = NULL;
    struct bench b;
    struct err err = {0};
    struct str id;

    bench_init(&b, 0);
    CHECK_OK(gc_judge_open(&j, &b.run, &err));
    CHECK_OK(gc_judge_start(j, STR_EMPTY, GC_START_HEAD, 1, &err)); /* a bare repository's head */
    CHECK_OK(gc_judge_run(j, &expired, &err));
    CHECK_ERR(gc_sorter_next(expired, &id, &err), ERR_END);
    gc_judge_close(j);
}
