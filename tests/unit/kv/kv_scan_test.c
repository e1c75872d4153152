/* Conformance of every driver: scans, views and dropping. */
#include "unit/kv/kv_lab.h"

#include <stdio.h>

static void fill(struct kv *kv, const char *partition, const char *const *keys)
{
    for (; *keys; keys++)
        kv_lab_set(kv, partition, *keys, *keys);
}

static struct kv_scan *scan_of(struct kv *kv, struct kv_view *view, const char *partition,
                               struct kv_range range)
{
    struct kv_scan *scan = NULL;
    struct err err = {0};

    CHECK_OK(kv_scan_open(&scan, kv, view, str_z(partition), &range, &err));
    return scan;
}

static void expect_next(struct kv_scan *scan, const char *want)
{
    struct str key, value;
    struct err err = {0};

    CHECK_OK(kv_scan_next(scan, &key, &value, &err));
    CHECK_STR(key, str_z(want));
}

KV_LAB_TEST(kv, scan_full)
{
    fill(lab->kv, "p", (const char *[]){"c", "a", "b/1", "b", "B", "\x7f", "\xff", NULL});
    fill(lab->kv, "o", (const char *[]){"z", NULL});
    fill(lab->kv, "p2", (const char *[]){"a", NULL});
    kv_lab_expect_keys(lab->kv, "p", NULL, "B a b b/1 c \x7f \xff");
    kv_lab_expect_keys(lab->kv, "none", NULL, "");
}

KV_LAB_TEST(kv, scan_part)
{
    fill(lab->kv, "p", (const char *[]){"a", "b", "c", "d", NULL});
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.from = STR("b")}, "b c d");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.from = STR("bb")}, "c d");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.from = STR("e")}, "");
}

KV_LAB_TEST(kv, scan_deleted_last)
{
    fill(lab->kv, "p", (const char *[]){"a", "b", "c", NULL});
    kv_lab_remove(lab->kv, "p", "c");
    kv_lab_expect_keys(lab->kv, "p", NULL, "a b");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.first_page = 2}, "a b");
}

KV_LAB_TEST(kv, scan_empty_batch)
{
    fill(lab->kv, "p", (const char *[]){"a", "b", "c", "d", "e", NULL});
    for (size_t page = 0; page < 7; page++)
        kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.first_page = page}, "a b c d e");
}

KV_LAB_TEST(kv, scan_goes_over_many_pages)
{
    enum { ROWS = 2500, BATCH = 500 };
    struct kv_change changes[BATCH];
    char keys[BATCH][16];
    struct kv_scan *scan;
    struct str key, value;
    struct err err = {0};
    size_t rows = 0;

    for (size_t i = 0; i < ROWS; i++) {
        int len = snprintf(keys[i % BATCH], sizeof(keys[0]), "%06zu", i);
        changes[i % BATCH] =
            (struct kv_change){.what = KV_PUT,
                               .name = {STR("p"), str_n(keys[i % BATCH], (size_t)len)},
                               .value = str_n(keys[i % BATCH], (size_t)len)};
        if (i % BATCH == BATCH - 1)
            CHECK_OK(kv_write(lab->kv, changes, BATCH, NULL, &err));
    }
    scan = scan_of(lab->kv, NULL, "p", (struct kv_range){.first_page = 3});
    for (; kv_scan_next(scan, &key, &value, &err) == 0; rows++) {
        char want[16];
        snprintf(want, sizeof(want), "%06zu", rows);
        CHECK_STR(key, str_z(want));
        CHECK_STR(value, str_z(want));
    }
    CHECK_INT(rows, ROWS);
    kv_scan_free(scan);
}

/* A page of a driver is limited in bytes too. */
KV_LAB_TEST(kv, scan_of_large_values)
{
    enum { ROWS = 40 };
    struct buf large = BUF_INIT(0);
    struct kv_scan *scan;
    struct str key, value;
    struct err err = {0};
    size_t rows = 0;

    while (large.len < KV_VALUE_MAX)
        buf_append_z(&large, "16 bytes of text");
    for (unsigned i = 0; i < ROWS; i++) {
        unsigned char n = (unsigned char)i;
        CHECK_OK(kv_set(lab->kv, (struct kv_name){STR("p"), str_n(&n, 1)}, buf_str(&large), &err));
    }
    scan = scan_of(lab->kv, NULL, "p", (struct kv_range){0});
    for (; kv_scan_next(scan, &key, &value, &err) == 0; rows++) {
        CHECK_INT((unsigned char)key.p[0], rows);
        CHECK(str_eq(value, buf_str(&large)));
    }
    CHECK_INT(rows, ROWS);
    kv_scan_free(scan);
    buf_release(&large);
}

KV_LAB_TEST(kv, scan_prefix)
{
    fill(lab->kv, "p",
         (const char *[]){"a", "b", "b/1", "b/2", "b0", "c", "\xff", "\xff\xff", NULL});
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("b/")}, "b/1 b/2");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("b")}, "b b/1 b/2 b0");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("b/"), .from = STR("b/2")},
                       "b/2");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("b/"), .from = STR("a")},
                       "b/1 b/2");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("b/"), .from = STR("c")}, "");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("\xff")}, "\xff \xff\xff");
    kv_lab_expect_keys(lab->kv, "p", &(struct kv_range){.prefix = STR("x")}, "");
}

KV_LAB_TEST(kv, delete_while_iterating)
{
    struct kv_scan *scan;

    fill(lab->kv, "p", (const char *[]){"a", "b", "c", "d", NULL});
    fill(lab->kv, "q", (const char *[]){"a", "b", "c", "d", NULL});
    scan = scan_of(lab->kv, NULL, "p", (struct kv_range){.first_page = 1});
    expect_next(scan, "a");
    kv_lab_remove(lab->kv, "q", "b");
    expect_next(scan, "b");
    kv_lab_remove(lab->kv, "q", "c");
    kv_lab_expect_rest(scan, "c d");
    kv_scan_free(scan);
}

KV_LAB_TEST(kv, delete_while_iterating_same_prefix)
{
    static const char *const keys[] = {"k/a", "k/b", "k/c", "k/d", "k/e", NULL};
    struct kv_scan *scan;

    fill(lab->kv, "p", keys);
    scan = scan_of(lab->kv, NULL, "p", (struct kv_range){.prefix = STR("k/"), .first_page = 1});
    for (const char *const *key = keys; *key; key++) {
        expect_next(scan, *key);
        kv_lab_remove(lab->kv, "p", *key);
    }
    kv_lab_expect_rest(scan, "");
    kv_scan_free(scan);
    kv_lab_expect_keys(lab->kv, "p", NULL, "");
}

KV_LAB_TEST(kv, partition_iterator)
{
    struct kv_scan *scan;

    fill(lab->kv, "p", (const char *[]){"a", "b", "c", "d", NULL});
    scan = scan_of(lab->kv, NULL, "p", (struct kv_range){0});
    kv_scan_seek(scan, STR("c"));
    expect_next(scan, "c");
    kv_scan_seek(scan, STR("a"));
    expect_next(scan, "a");
    kv_scan_seek(scan, STR("bb"));
    kv_lab_expect_rest(scan, "c d");
    kv_scan_seek(scan, STR("d"));
    kv_lab_expect_rest(scan, "d");
    kv_scan_seek(scan, STR("e"));
    kv_lab_expect_rest(scan, "");
    kv_scan_seek(scan, STR(""));
    kv_lab_expect_rest(scan, "a b c d");
    kv_scan_free(scan);
}

KV_LAB_TEST(kv, partition_iterator_stays_inside_its_prefix)
{
    struct kv_scan *scan;

    fill(lab->kv, "p", (const char *[]){"a", "k/1", "k/2", "k/3", "z", NULL});
    scan = scan_of(lab->kv, NULL, "p",
                   (struct kv_range){.prefix = STR("k/"), .from = STR("k/3"), .first_page = 1});
    expect_next(scan, "k/3");
    kv_scan_seek(scan, STR("a"));
    expect_next(scan, "k/1");
    kv_scan_seek(scan, STR("k/2"));
    kv_lab_expect_rest(scan, "k/2 k/3");
    kv_scan_seek(scan, STR("l"));
    kv_lab_expect_rest(scan, "");
    kv_scan_free(scan);
}

KV_LAB_TEST(kv, a_closed_scan_gives_nothing)
{
    struct kv_scan *scan;
    struct str key, value;
    struct err err = {0};

    fill(lab->kv, "p", (const char *[]){"a", "b", NULL});
    scan = scan_of(lab->kv, NULL, "p", (struct kv_range){0});
    expect_next(scan, "a");
    kv_scan_close(scan);
    CHECK_ERR(kv_scan_next(scan, &key, &value, &err), ERR_CLOSED);
    kv_scan_seek(scan, STR("a"));
    CHECK_ERR(kv_scan_next(scan, &key, &value, &err), ERR_CLOSED);
    kv_scan_close(scan);
    kv_scan_free(scan);
}

KV_LAB_TEST(kv, a_view_shows_one_moment)
{
    struct kv_view *view = NULL;
    struct kv_value value;
    struct kv_scan *scan;
    struct err err = {0};

    fill(lab->kv, "p", (const char *[]){"a", "b", NULL});
    CHECK_OK(kv_view_open(&view, lab->kv, &err));
    kv_lab_set(lab->kv, "p", "a", "new");
    kv_lab_set(lab->kv, "p", "c", "c");
    CHECK_OK(kv_drop(lab->kv, STR("q"), &err));
    CHECK_OK(kv_get(lab->kv, view, &lab->arena, KV_NAME("p", "a"), &value, &err));
    bool moments = lab->kv->can & KV_MOMENTS;
    CHECK_STR(value.bytes, moments ? STR("a") : STR("new"));
    scan = scan_of(lab->kv, view, "p", (struct kv_range){0});
    kv_lab_expect_rest(scan, moments ? "a b" : "a b c");
    kv_scan_free(scan);
    kv_view_close(lab->kv, view);
    kv_lab_expect(lab->kv, "p", "a", "new");
}

KV_LAB_TEST(kv, drop_beside_scans)
{
    struct kv_view *view = NULL;
    struct kv_scan *dropped, *other;
    struct str key, value;
    struct err err = {0};
    int code;

    fill(lab->kv, "p", (const char *[]){"a", "b", "c", NULL});
    fill(lab->kv, "q", (const char *[]){"a", "b", "c", NULL});
    CHECK_OK(kv_view_open(&view, lab->kv, &err));
    dropped = scan_of(lab->kv, view, "p", (struct kv_range){.first_page = 1});
    other = scan_of(lab->kv, NULL, "q", (struct kv_range){.first_page = 1});
    expect_next(dropped, "a");
    expect_next(other, "a");
    CHECK_OK(kv_drop(lab->kv, STR("p"), &err));
    if (lab->kv->can & KV_MOMENTS) {
        kv_lab_expect_rest(dropped, "b c");
    } else {
        while ((code = kv_scan_next(dropped, &key, &value, &err)) == 0)
            CHECK_STR(key, value);
        CHECK_ERR(code, ERR_END);
    }
    kv_lab_expect_rest(other, "b c");
    kv_scan_free(dropped);
    kv_scan_free(other);
    kv_view_close(lab->kv, view);
    kv_lab_expect_keys(lab->kv, "p", NULL, "");
}
