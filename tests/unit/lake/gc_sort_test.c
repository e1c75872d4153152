/* Sorting on disk, for the collector. */
#include "lake/gc_int.h"
#include "unit/test.h"

#include "base/ids.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXTS = 60000, TEXT_LEN = 64, ASKED = 3000 };

static char texts[TEXTS][TEXT_LEN];

static int order(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void check_sorted(size_t memory, size_t count, uint64_t different)
{
    struct gc_sorter *s = NULL;
    struct err err = {0};
    struct str text;

    CHECK_OK(gc_sorter_open(&s, test_dir(), memory, &err));
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], TEXT_LEN, "data/%llu", (unsigned long long)random_below(different));
        CHECK_OK(gc_sorter_add(s, str_z(texts[i]), &err));
    }
    CHECK_OK(gc_sorter_sort(s, &err));
    qsort(texts, count, TEXT_LEN, order);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(texts[i], texts[i - 1]) == 0)
            continue;
        CHECK_OK(gc_sorter_next(s, &text, &err));
        CHECK_STR(text, str_z(texts[i]));
    }
    CHECK_ERR(gc_sorter_next(s, &text, &err), ERR_END);
    gc_sorter_close(s);
}

TEST(lake_gc_sort, strings_come_back_sorted_and_once)
{
    check_sorted(GC_SORT_BYTES, 0, 1);
    check_sorted(GC_SORT_BYTES, 1, 1);
    check_sorted(GC_SORT_BYTES, TEXTS, 1000000000);
    check_sorted(GC_SORT_BYTES, TEXTS, 100);
}

TEST(lake_gc_sort, runs_on_disk_are_merged_also_when_they_are_many)
{
    check_sorted(64 << 10, TEXTS, 1000000000); /* some runs */
    check_sorted(8 << 10, TEXTS, 1000000000);  /* more than GC_SORT_RUNS */
    check_sorted(8 << 10, TEXTS, 3000);
}

TEST(lake_gc_sort, a_string_that_is_too_long_is_refused)
{
    static char longest[GC_STRING_MAX + 1];
    struct gc_sorter *s = NULL;
    struct err err = {0};
    struct str text;

    memset(longest, 'x', sizeof(longest));
    CHECK_OK(gc_sorter_open(&s, test_dir(), 1, &err));
    CHECK_ERR(gc_sorter_add(s, str_n(longest, sizeof(longest)), &err), ERR_TOO_LARGE);
    for (int i = 0; i < 50; i++) {
        longest[0] = (char)('a' + i % 25);
        CHECK_OK(gc_sorter_add(s, str_n(longest, GC_STRING_MAX), &err));
    }
    CHECK_OK(gc_sorter_sort(s, &err));
    for (int i = 0; i < 25; i++) {
        CHECK_OK(gc_sorter_next(s, &text, &err));
        CHECK_INT(text.len, GC_STRING_MAX);
        CHECK_INT(text.p[0], 'a' + i);
    }
    CHECK_ERR(gc_sorter_next(s, &text, &err), ERR_END);
    gc_sorter_close(s);
}

/* Asks for every number in ascending order; the sorter has the even ones. */
static void check_has(size_t memory)
{
    struct gc_sorter *s = NULL;
    struct err err = {0};
    bool has;

    CHECK_OK(gc_sorter_open(&s, test_dir(), memory, &err));
    for (int i = ASKED; i-- > 0;) {
        snprintf(texts[0], TEXT_LEN, "%06d", 2 * i);
        CHECK_OK(gc_sorter_add(s, str_z(texts[0]), &err));
    }
    CHECK_OK(gc_sorter_sort(s, &err));
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 2 * ASKED + 3; i++)
            for (int again = 0; again < 2; again++) {
                snprintf(texts[0], TEXT_LEN, "%06d", i);
                CHECK_OK(gc_sorter_has(s, str_z(texts[0]), &has, &err));
                CHECK(has == (i % 2 == 0 && i < 2 * ASKED));
            }
        CHECK_OK(gc_sorter_rewind(s, &err));
    }
    gc_sorter_close(s);
}

TEST(lake_gc_sort, a_sorter_knows_what_was_added)
{
    check_has(GC_SORT_BYTES);
    check_has(1);
}
