/* Generations of commits that come from elsewhere. */
#include "lake/lineage.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMMITS = 6 };

struct family {
    struct lake_commit commits[COMMITS];
    char ids[COMMITS][LAKE_ID_LEN + 1];
    struct str parents[COMMITS][2];
    char messages[COMMITS][16];
};

/* Makes commit `n` with these parents; -1: none. */
static void family_add(struct family *f, int n, int32_t version, int first, int second)
{
    struct lake_commit *c = &f->commits[n];

    snprintf(f->messages[n], sizeof(f->messages[n]), "commit %d", n);
    *c = (struct lake_commit){.committer = STR("tester"),
                              .message = str_z(f->messages[n]),
                              .created_ms = 1000,
                              .parents = f->parents[n],
                              .version = version};
    if (first >= 0)
        f->parents[n][c->parent_count++] = f->commits[first].id;
    if (second >= 0)
        f->parents[n][c->parent_count++] = f->commits[second].id;
    lake_commit_id(f->ids[n], c);
    c->id = str_z(f->ids[n]);
}

/* 0 - 1 - 2 - 3 - 5, and 0 - 4 - 5: the longest way counts. */
static void family_make(struct family *f)
{
    family_add(f, 0, 1, -1, -1);
    family_add(f, 1, 1, 0, -1);
    family_add(f, 2, 1, 1, -1);
    family_add(f, 3, 0, 2, -1);
    family_add(f, 4, 1, 0, -1);
    family_add(f, 5, 0, 3, 4); /* version 0: the first parent is 4 */
}

static int family_order(const void *a, const void *b)
{
    const struct lake_commit *x = *(const struct lake_commit *const *)a;
    const struct lake_commit *y = *(const struct lake_commit *const *)b;

    return str_cmp(x->id, y->id);
}

/* Adds all commits but `without`, in the order of their ids. */
static int family_lineage(struct family *f, struct lineage *g, int without, struct err *err)
{
    struct lake_commit *sorted[COMMITS];
    int code = 0;

    for (int n = 0; n < COMMITS; n++)
        sorted[n] = &f->commits[n];
    qsort(sorted, COMMITS, sizeof(*sorted), family_order);
    for (int n = 0; code == 0 && n < COMMITS; n++)
        if (sorted[n] != (without < 0 ? NULL : &f->commits[without]))
            code = lineage_add(g, sorted[n], err);
    return code < 0 ? code : lineage_settle(g, err);
}

TEST(lake_lineage, a_generation_is_one_more_than_the_greatest_of_the_parents)
{
    static const int want[COMMITS] = {1, 2, 3, 4, 2, 5};
    static const bool first[COMMITS] = {true, true, true, false, true, false};
    struct family f;
    struct lineage g = {0};
    struct err err = {0};

    family_make(&f);
    CHECK_OK(family_lineage(&f, &g, -1, &err));
    for (int n = 0; n < COMMITS; n++) {
        const struct lineage_commit *c = lineage_find(&g, f.commits[n].id);
        CHECK(c);
        CHECK_INT(c->generation, want[n]);
        CHECK_INT(c->is_first, first[n]);
    }
    CHECK(!lineage_find(&g, STR("main")));
    CHECK(!lineage_find(&g, STR_EMPTY));
    lineage_release(&g);
}

TEST(lake_lineage, a_missing_parent_is_refused)
{
    struct family f;
    struct err err = {0};

    family_make(&f);
    for (int n = 0; n < COMMITS - 1; n++) {
        struct lineage g = {0};
        CHECK_ERR(family_lineage(&f, &g, n, &err), ERR_INVALID);
        lineage_release(&g);
    }
}

TEST(lake_lineage, a_commit_that_is_not_what_its_id_says_is_refused)
{
    struct family f;
    struct lineage g = {0};
    struct err err = {0};

    family_make(&f);
    f.commits[2].message = STR("another message");
    CHECK_ERR(lineage_add(&g, &f.commits[2], &err), ERR_INVALID);
    CHECK(str_find(str_z(err.text), f.commits[2].id) >= 0);
    f.commits[1].version = 7;
    CHECK_ERR(lineage_add(&g, &f.commits[1], &err), ERR_INVALID);
    lineage_release(&g);
}

TEST(lake_lineage, ids_must_ascend)
{
    struct family f;
    struct lineage g = {0};
    struct err err = {0};

    family_make(&f);
    CHECK_OK(lineage_add(&g, &f.commits[0], &err));
    CHECK_ERR(lineage_add(&g, &f.commits[0], &err), ERR_INVALID);
    lineage_release(&g);
}

/* Far more commits in one line than a stack of calls could hold. */
TEST(lake_lineage, a_long_line_of_commits_is_settled)
{
    enum { LINE = 50000 };
    struct lake_commit *line = xcalloc(LINE, sizeof(*line)),
                       **sorted = xcalloc(LINE, sizeof(*sorted));
    char(*ids)[LAKE_ID_LEN + 1] = xcalloc(LINE, sizeof(*ids));
    struct str *parents = xcalloc(LINE, sizeof(*parents));
    struct lineage g = {0};
    struct err err = {0};

    for (int n = 0; n < LINE; n++) {
        parents[n] = n ? line[n - 1].id : STR_EMPTY;
        line[n] = (struct lake_commit){
            .created_ms = 1000 * n, .version = 1, .parents = &parents[n], .parent_count = n > 0};
        lake_commit_id(ids[n], &line[n]);
        line[n].id = str_z(ids[n]);
        sorted[n] = &line[n];
    }
    qsort(sorted, LINE, sizeof(*sorted), family_order);
    for (int n = 0; n < LINE; n++)
        CHECK_OK(lineage_add(&g, sorted[n], &err));
    CHECK_OK(lineage_settle(&g, &err));
    for (int n = 0; n < LINE; n += 997)
        CHECK_INT(lineage_find(&g, line[n].id)->generation, n + 1);
    lineage_release(&g);
    free(line);
    free(sorted);
    free(ids);
    free(parents);
}
