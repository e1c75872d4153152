/* Conformance of every driver: single rows, conditions and arguments. */
#include "db/db.h"
#include "unit/kv/kv_lab.h"

#include <stdlib.h>

/* The cases of lakeFS's own suite for its key-value drivers, and the tests that have them here, in
 * the suites kv_embedded, kv_redis and kv_postgres:
 *   Driver_Open: kv.driver_open
 *   SetGet: kv.set_get
 *   SetIf:
 *     kv.set_if_set_first
 *     kv.set_if_fail_predicate_nil
 *     kv.set_if_predicate_empty_slice
 *     kv.set_if_update_if_exists
 *     kv.set_if_update_if_exists_negative
 *   Delete:
 *     kv.delete_exists
 *     kv.delete_non_exists
 *     kv.delete_partition
 *   Scan:
 *     kv.scan_full
 *     kv.scan_part
 *     kv.scan_deleted_last
 *     kv.scan_empty_batch
 *   MissingArgument: kv.missing_argument
 *   ScanPrefix: kv.scan_prefix
 *   DeleteWhileIterating: kv.delete_while_iterating
 *   DeleteWhileIteratingSamePrefix: kv.delete_while_iterating_same_prefix
 *   PartitionIterator: kv.partition_iterator
 *   PrimaryIterator: kv.primary_iterator
 *   SecondaryIterator: kv.secondary_iterator
 *   StoreLimiter: kv.store_limiter
 *   Dump, Load: kv.dump_load
 * ContextCancelled has no counterpart: a call of kv.h cannot be canceled (docs/kv.md). */

KV_LAB_TEST(kv, driver_open)
{
    static const char *const names[] = {"embedded", "redis", "postgres"};
    struct kv *second;

    CHECK_STR(str_z(lab->kv->driver), str_z(names[lab->driver]));
    kv_lab_expect(lab->kv, "kv-internal-metadata", "kv/schema/version", KV_SCHEMA_VERSION);
    kv_lab_set(lab->kv, "p", "k", "v");
    second = kv_lab_open_second(lab);
    kv_lab_expect(second, "p", "k", "v");
    kv_close(second);
}

KV_LAB_TEST(kv, driver_open_says_what_it_can)
{
    static const unsigned can[] = {KV_FENCES | KV_MOMENTS | KV_DROPS | KV_ALONE | KV_AT_HAND,
                                   KV_FENCES | KV_DROPS, 0};

    CHECK_INT(lab->kv->can, can[lab->driver]);
}

KV_LAB_TEST(kv, a_newer_schema_version_is_refused)
{
    struct kv_change newer = {.what = KV_PUT,
                              .name = KV_NAME("kv-internal-metadata", "kv/schema/version"),
                              .value = STR("4")};
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "k", "v");
    CHECK_OK(kv_write(lab->kv, &newer, 1, NULL, &err));
    CHECK_ERR(kv_lab_try_second(lab, &err), ERR_VERSION);
    kv_lab_expect(lab->kv, "p", "k", "v");
    newer.value = STR("soon");
    CHECK_OK(kv_write(lab->kv, &newer, 1, NULL, &err));
    CHECK_ERR(kv_lab_try_second(lab, &err), ERR_CORRUPT);
}

KV_LAB_TEST(kv, probe_says_that_writes_are_taken)
{
    struct err err = {0};

    CHECK_OK(kv_probe(lab->kv, &err));
    kv_lab_expect_keys(lab->kv, "kv-internal-metadata", NULL, "kv/schema/version");
}

KV_LAB_TEST(kv, set_get)
{
    struct kv_value value;
    struct err err = {0};

    CHECK_ERR(kv_get(lab->kv, NULL, &lab->arena, KV_NAME("p", "k"), &value, &err), ERR_NOT_FOUND);
    kv_lab_set(lab->kv, "p", "k", "one");
    kv_lab_expect(lab->kv, "p", "k", "one");
    kv_lab_set(lab->kv, "p", "k", "two");
    kv_lab_expect(lab->kv, "p", "k", "two");
    kv_lab_expect(lab->kv, "p", "k2", NULL);
    kv_lab_expect(lab->kv, "p2", "k", NULL);
}

KV_LAB_TEST(kv, set_get_any_bytes_of_any_size)
{
    struct str bytes = STR("\0\xff:%{}'\\\n\x80 \0");
    char *large = xzalloc(KV_VALUE_MAX);
    struct kv_name name = {str_n(large, KV_PARTITION_MAX), str_n(large, KV_KEY_MAX)};
    struct kv_value value;
    struct err err = {0};

    for (size_t i = 0; i < KV_VALUE_MAX; i++)
        large[i] = (char)(i * 7 + i / 256);
    CHECK_OK(kv_set(lab->kv, (struct kv_name){bytes, bytes}, bytes, &err));
    CHECK_OK(kv_get(lab->kv, NULL, &lab->arena, (struct kv_name){bytes, bytes}, &value, &err));
    CHECK_STR(value.bytes, bytes);
    CHECK_OK(kv_set(lab->kv, name, str_n(large, KV_VALUE_MAX), &err));
    CHECK_OK(kv_get(lab->kv, NULL, &lab->arena, name, &value, &err));
    CHECK(str_eq(value.bytes, str_n(large, KV_VALUE_MAX)));
    free(large);
}

KV_LAB_TEST(kv, a_value_of_no_bytes_is_a_value)
{
    struct kv_value value;
    struct err err = {0};

    CHECK_OK(kv_set(lab->kv, KV_NAME("p", "k"), STR(""), &err));
    CHECK_OK(kv_get(lab->kv, NULL, &lab->arena, KV_NAME("p", "k"), &value, &err));
    CHECK(kv_is_there(&value));
    CHECK_INT(value.bytes.len, 0);
    kv_lab_expect_keys(lab->kv, "p", NULL, "k");
    CHECK_OK(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("v"), &value.stamp, &err));
}

KV_LAB_TEST(kv, pairs_that_would_collide_by_joining_are_two_rows)
{
    static const char *const pairs[][2] = {
        {"a", "b/c"}, {"a/b", "c"}, {"a/", "b/c"}, {"a:h", "c"}, {"a", "h:c"}, {"a%3Ah", "c"},
        {"ab", "c"},  {"a", "bc"},  {"abc", "c"},  {"{a}", "c"}, {"a}", "{c"},
    };
    char value[2] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        value[0] = (char)('a' + i);
        kv_lab_set(lab->kv, pairs[i][0], pairs[i][1], value);
    }
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        value[0] = (char)('a' + i);
        kv_lab_expect(lab->kv, pairs[i][0], pairs[i][1], value);
    }
    kv_lab_expect_keys(lab->kv, "a", NULL, "b/c bc h:c");
    kv_lab_expect_keys(lab->kv, "ab", NULL, "c");
}

/* --- conditions --- */

KV_LAB_TEST(kv, set_if_set_first)
{
    struct err err = {0};

    CHECK_OK(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("one"), NULL, &err));
    kv_lab_expect(lab->kv, "p", "k", "one");
}

KV_LAB_TEST(kv, set_if_fail_predicate_nil)
{
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "k", "one");
    CHECK_ERR(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("two"), NULL, &err), ERR_PRECONDITION);
    kv_lab_expect(lab->kv, "p", "k", "one");
    CHECK_OK(kv_set(lab->kv, KV_NAME("p", "empty"), STR(""), &err));
    CHECK_ERR(kv_set_if(lab->kv, KV_NAME("p", "empty"), STR("two"), NULL, &err), ERR_PRECONDITION);
}

KV_LAB_TEST(kv, set_if_same)
{
    struct kv_value value;
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "k", "one");
    CHECK_OK(kv_get(lab->kv, NULL, &lab->arena, KV_NAME("p", "k"), &value, &err));
    CHECK_OK(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("two"), &value.stamp, &err));
    CHECK_ERR(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("three"), &value.stamp, &err),
              ERR_PRECONDITION);
    kv_lab_expect(lab->kv, "p", "k", "two");
    CHECK_ERR(kv_set_if(lab->kv, KV_NAME("p", "none"), STR("x"), &value.stamp, &err),
              ERR_PRECONDITION);
    kv_lab_expect(lab->kv, "p", "none", NULL);
}

/* A stamp of no bytes is compared with the empty value; it does not mean "absent". */
KV_LAB_TEST(kv, set_if_predicate_empty_slice)
{
    struct str none = STR("");
    struct err err = {0};

    CHECK_ERR(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("x"), &none, &err), ERR_PRECONDITION);
    kv_lab_set(lab->kv, "p", "k", "one");
    CHECK_ERR(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("x"), &none, &err), ERR_PRECONDITION);
    CHECK_OK(kv_set(lab->kv, KV_NAME("p", "k"), STR(""), &err));
    CHECK_OK(kv_set_if(lab->kv, KV_NAME("p", "k"), STR("x"), &none, &err));
    kv_lab_expect(lab->kv, "p", "k", "x");
}

KV_LAB_TEST(kv, set_if_update_if_exists)
{
    struct kv_change put = {
        .what = KV_PUT, .name = KV_NAME("p", "k"), .value = STR("two"), .when = KV_EXISTS};
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "k", "one");
    CHECK_OK(kv_write(lab->kv, &put, 1, NULL, &err));
    kv_lab_expect(lab->kv, "p", "k", "two");
}

KV_LAB_TEST(kv, set_if_update_if_exists_negative)
{
    struct kv_change put = {
        .what = KV_PUT, .name = KV_NAME("p", "k"), .value = STR("two"), .when = KV_EXISTS};
    struct err err = {0};

    CHECK_ERR(kv_write(lab->kv, &put, 1, NULL, &err), ERR_PRECONDITION);
    kv_lab_expect(lab->kv, "p", "k", NULL);
}

KV_LAB_TEST(kv, delete_exists)
{
    kv_lab_set(lab->kv, "p", "k", "one");
    kv_lab_set(lab->kv, "p", "l", "two");
    kv_lab_remove(lab->kv, "p", "k");
    kv_lab_expect(lab->kv, "p", "k", NULL);
    kv_lab_expect_keys(lab->kv, "p", NULL, "l");
    kv_lab_set(lab->kv, "p", "k", "again");
    kv_lab_expect(lab->kv, "p", "k", "again");
}

KV_LAB_TEST(kv, delete_non_exists)
{
    kv_lab_remove(lab->kv, "p", "k");
    kv_lab_set(lab->kv, "p", "k", "one");
    kv_lab_remove(lab->kv, "p", "k");
    kv_lab_remove(lab->kv, "p", "k");
}

KV_LAB_TEST(kv, delete_if)
{
    struct kv_change remove = {.what = KV_REMOVE, .name = KV_NAME("p", "k"), .when = KV_EXISTS};
    struct err err = {0};

    CHECK_ERR(kv_write(lab->kv, &remove, 1, NULL, &err), ERR_PRECONDITION);
    kv_lab_set(lab->kv, "p", "k", "one");
    remove.when = KV_SAME;
    remove.stamp = STR("other");
    CHECK_ERR(kv_write(lab->kv, &remove, 1, NULL, &err), ERR_PRECONDITION);
    kv_lab_expect(lab->kv, "p", "k", "one");
    remove.stamp = STR("one");
    CHECK_OK(kv_write(lab->kv, &remove, 1, NULL, &err));
    kv_lab_expect(lab->kv, "p", "k", NULL);
    kv_lab_set(lab->kv, "p", "k", "two");
    remove.when = KV_EXISTS;
    CHECK_OK(kv_write(lab->kv, &remove, 1, NULL, &err));
    kv_lab_expect_keys(lab->kv, "p", NULL, "");
}

KV_LAB_TEST(kv, delete_partition)
{
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "a", "1");
    kv_lab_set(lab->kv, "p", "b", "2");
    kv_lab_set(lab->kv, "p2", "a", "3");
    kv_lab_set(lab->kv, "o", "a", "4");
    CHECK_OK(kv_drop(lab->kv, STR("p"), &err));
    kv_lab_expect_keys(lab->kv, "p", NULL, "");
    kv_lab_expect(lab->kv, "p", "a", NULL);
    kv_lab_expect(lab->kv, "p2", "a", "3");
    kv_lab_expect(lab->kv, "o", "a", "4");
    CHECK_OK(kv_drop(lab->kv, STR("p"), &err));
    kv_lab_set(lab->kv, "p", "c", "5");
    kv_lab_expect_keys(lab->kv, "p", NULL, "c");
}

/* --- several rows --- */

KV_LAB_TEST(kv, many_rows_are_read_in_their_order)
{
    struct kv_name names[] = {KV_NAME("p", "b"), KV_NAME("q", "a"), KV_NAME("p", "none"),
                              KV_NAME("p", "a"), KV_NAME("p", "b")};
    struct kv_value values[ARRAY_SIZE(names)];
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "a", "1");
    kv_lab_set(lab->kv, "p", "b", "2");
    kv_lab_set(lab->kv, "q", "a", "3");
    CHECK_OK(kv_get_many(lab->kv, NULL, &lab->arena, names, ARRAY_SIZE(names), values, &err));
    CHECK_STR(values[0].bytes, STR("2"));
    CHECK_STR(values[1].bytes, STR("3"));
    CHECK(!kv_is_there(&values[2]));
    CHECK_STR(values[3].bytes, STR("1"));
    CHECK_STR(values[4].bytes, STR("2"));
    CHECK_OK(kv_get_many(lab->kv, NULL, &lab->arena, NULL, 0, NULL, &err));
}

KV_LAB_TEST(kv, a_write_of_many_changes_is_made_whole)
{
    struct kv_change changes[] = {
        {.what = KV_CHECK, .name = KV_NAME("p", "guard"), .when = KV_SAME, .stamp = STR("1")},
        {.what = KV_CHECK, .name = KV_NAME("q", "guard"), .when = KV_EXISTS},
        {.what = KV_PUT, .name = KV_NAME("p", "new"), .value = STR("n"), .when = KV_ABSENT},
        {.what = KV_PUT, .name = KV_NAME("p", "any"), .value = STR("a")},
        {.what = KV_PUT, .name = KV_NAME("p", "old"), .value = STR("b"), .when = KV_EXISTS},
        {.what = KV_PUT,
         .name = KV_NAME("a", "same"),
         .value = STR("c"),
         .when = KV_SAME,
         .stamp = STR("s")},
        {.what = KV_REMOVE, .name = KV_NAME("a", "gone")},
        {.what = KV_REMOVE, .name = KV_NAME("a", "never")},
    };
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "guard", "1");
    kv_lab_set(lab->kv, "q", "guard", "2");
    kv_lab_set(lab->kv, "p", "old", "o");
    kv_lab_set(lab->kv, "a", "same", "s");
    kv_lab_set(lab->kv, "a", "gone", "g");
    CHECK_OK(kv_write(lab->kv, changes, ARRAY_SIZE(changes), NULL, &err));
    kv_lab_expect(lab->kv, "p", "guard", "1");
    kv_lab_expect(lab->kv, "p", "new", "n");
    kv_lab_expect(lab->kv, "p", "any", "a");
    kv_lab_expect(lab->kv, "p", "old", "b");
    kv_lab_expect(lab->kv, "a", "same", "c");
    kv_lab_expect(lab->kv, "a", "gone", NULL);
}

/* Each condition fails in turn, and *failed is the first that does not hold, in the order of the
 * caller and not in that of the names. */
KV_LAB_TEST(kv, a_write_whose_condition_fails_changes_nothing)
{
    struct kv_change changes[] = {
        {.what = KV_PUT, .name = KV_NAME("z", "put"), .value = STR("x")},
        {.what = KV_CHECK, .name = KV_NAME("z", "same"), .when = KV_SAME, .stamp = STR("v")},
        {.what = KV_PUT, .name = KV_NAME("m", "none"), .value = STR("x"), .when = KV_ABSENT},
        {.what = KV_CHECK, .name = KV_NAME("a", "there"), .when = KV_EXISTS},
        {.what = KV_REMOVE, .name = KV_NAME("a", "same"), .when = KV_SAME, .stamp = STR("v")},
    };
    struct err err = {0};
    size_t failed;

    kv_lab_set(lab->kv, "z", "same", "v");
    kv_lab_set(lab->kv, "a", "there", "v");
    kv_lab_set(lab->kv, "a", "same", "v");
    kv_lab_set(lab->kv, "m", "none", "v");
    for (size_t first = 2; first <= 4; first++) {
        failed = 99;
        CHECK_ERR(kv_write(lab->kv, changes, ARRAY_SIZE(changes), &failed, &err), ERR_PRECONDITION);
        CHECK_INT(failed, first);
        kv_lab_expect(lab->kv, "z", "put", NULL);
        kv_lab_expect(lab->kv, "a", "same", first == 4 ? "w" : "v");
        if (first == 2) {
            kv_lab_remove(lab->kv, "m", "none");
            kv_lab_remove(lab->kv, "a", "there");
            kv_lab_expect(lab->kv, "m", "none", NULL);
        } else if (first == 3) {
            kv_lab_set(lab->kv, "a", "there", "v");
            kv_lab_set(lab->kv, "a", "same", "w");
        }
    }
    /* Now two conditions fail: the one with the smaller index counts. */
    kv_lab_set(lab->kv, "z", "same", "w");
    CHECK_ERR(kv_write(lab->kv, changes, ARRAY_SIZE(changes), &failed, &err), ERR_PRECONDITION);
    CHECK_INT(failed, 1);
}

/* A glance judges as a check does, before puts of one partition and before other changes. */
KV_LAB_TEST(kv, a_glance_that_fails_changes_nothing)
{
    struct kv_change changes[] = {
        {.what = KV_GLANCE, .name = KV_NAME("z", "first"), .when = KV_SAME, .stamp = STR("v")},
        {.what = KV_GLANCE, .name = KV_NAME("a", "second"), .when = KV_SAME, .stamp = STR("v")},
        {.what = KV_PUT, .name = KV_NAME("rows", "b"), .value = STR("x")},
        {.what = KV_PUT, .name = KV_NAME("rows", "a"), .value = STR("x")},
    };
    struct err err = {0};
    size_t failed = 99;

    for (int mixed = 0; mixed < 2; mixed++) {
        kv_lab_set(lab->kv, "z", "first", "v");
        CHECK_ERR(kv_write(lab->kv, changes, 4, &failed, &err), ERR_PRECONDITION);
        CHECK_INT(failed, 1);
        kv_lab_set(lab->kv, "a", "second", "v");
        kv_lab_set(lab->kv, "z", "first", "other");
        CHECK_ERR(kv_write(lab->kv, changes, 4, &failed, &err), ERR_PRECONDITION);
        CHECK_INT(failed, 0);
        kv_lab_expect_keys(lab->kv, "rows", NULL, "");
        kv_lab_set(lab->kv, "z", "first", "v");
        CHECK_OK(kv_write(lab->kv, changes, 4, &failed, &err));
        kv_lab_expect_keys(lab->kv, "rows", NULL, "a b");
        CHECK_OK(kv_write(lab->kv, changes, 1, NULL, &err));
        kv_lab_remove(lab->kv, "rows", "a");
        kv_lab_remove(lab->kv, "rows", "b");
        kv_lab_remove(lab->kv, "a", "second");
        changes[3].when = KV_ABSENT;
    }
}

KV_LAB_TEST(kv, a_write_reads_rows_after_its_changes)
{
    struct kv_change put = {.what = KV_PUT, .name = KV_NAME("p", "k"), .value = STR("v")};
    struct kv_name names[] = {KV_NAME("p", "k"), KV_NAME("p", "l")};
    struct kv_value values[2];
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "l", "w");
    CHECK_OK(kv_write_get(lab->kv, &put, 1, NULL, &lab->arena, names, 2, values, &err));
    CHECK_STR(values[0].bytes, STR("v"));
    CHECK_STR(values[1].bytes, STR("w"));
    put.when = KV_ABSENT;
    CHECK_ERR(kv_write_get(lab->kv, &put, 1, NULL, &lab->arena, names, 2, values, &err),
              ERR_PRECONDITION);
    CHECK_OK(kv_write_get(lab->kv, NULL, 0, NULL, &lab->arena, names + 1, 1, values, &err));
    CHECK_STR(values[0].bytes, STR("w"));
}

KV_LAB_TEST(kv, a_write_has_room_for_its_limit_of_changes)
{
    struct kv_change *changes = xcalloc(KV_CHANGES_MAX + 1, sizeof(*changes));
    char *keys = xzalloc((KV_CHANGES_MAX + 1) * 4);
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};
    size_t rows = 0;

    for (size_t i = 0; i <= KV_CHANGES_MAX; i++) {
        char *k = keys + 4 * i;
        k[0] = (char)('a' + i / 676), k[1] = (char)('a' + i / 26 % 26), k[2] = (char)('a' + i % 26);
        changes[i] = (struct kv_change){
            .what = KV_PUT, .name = {STR("p"), str_n(k, 3)}, .value = str_n(k, 3)};
    }
    CHECK_ERR(kv_write(lab->kv, changes, KV_CHANGES_MAX + 1, NULL, &err), ERR_INVALID);
    CHECK_OK(kv_write(lab->kv, changes, KV_CHANGES_MAX, NULL, &err));
    changes[0].when = KV_SAME; /* a driver may have another way for writes without conditions */
    changes[0].stamp = changes[0].value;
    CHECK_OK(kv_write(lab->kv, changes, KV_CHANGES_MAX, NULL, &err));
    CHECK_OK(kv_scan_open(&scan, lab->kv, NULL, STR("p"), NULL, &err));
    while (kv_scan_next(scan, &key, &value, &err) == 0) {
        CHECK_STR(key, changes[rows].name.key);
        CHECK_STR(value, changes[rows].value);
        rows++;
    }
    CHECK_INT(rows, KV_CHANGES_MAX);
    kv_scan_free(scan);
    free(changes);
    free(keys);
}

/* --- arguments --- */

static void expect_invalid(struct kv *kv, struct kv_change change)
{
    struct kv_change pair[2] = {{.what = KV_PUT, .name = KV_NAME("p", "k"), .value = STR("v")},
                                change};
    struct err err = {0};

    CHECK_ERR(kv_write(kv, pair, 2, NULL, &err), ERR_INVALID);
    kv_lab_expect(kv, "p", "k", NULL);
}

KV_LAB_TEST(kv, missing_argument)
{
    struct kv_name no_partition = {STR(""), STR("k")}, no_key = {STR("p"), STR("")};
    struct kv *kv = lab->kv;
    struct kv_value value;
    struct kv_scan *scan;
    struct err err = {0};

    CHECK_ERR(kv_get(kv, NULL, &lab->arena, no_partition, &value, &err), ERR_INVALID);
    CHECK_ERR(kv_get(kv, NULL, &lab->arena, no_key, &value, &err), ERR_INVALID);
    CHECK_ERR(kv_set(kv, no_partition, STR("v"), &err), ERR_INVALID);
    CHECK_ERR(kv_set(kv, no_key, STR("v"), &err), ERR_INVALID);
    CHECK_ERR(kv_set(kv, KV_NAME("p", "k"), STR_EMPTY, &err), ERR_INVALID);
    CHECK_ERR(kv_set_if(kv, no_partition, STR("v"), NULL, &err), ERR_INVALID);
    CHECK_ERR(kv_set_if(kv, no_key, STR("v"), NULL, &err), ERR_INVALID);
    CHECK_ERR(kv_set_if(kv, KV_NAME("p", "k"), STR_EMPTY, NULL, &err), ERR_INVALID);
    CHECK_ERR(kv_remove(kv, no_partition, &err), ERR_INVALID);
    CHECK_ERR(kv_remove(kv, no_key, &err), ERR_INVALID);
    CHECK_ERR(kv_scan_open(&scan, kv, NULL, STR(""), NULL, &err), ERR_INVALID);
    CHECK_ERR(kv_drop(kv, STR(""), &err), ERR_INVALID);
}

KV_LAB_TEST(kv, an_argument_past_its_limit_is_refused)
{
    struct str large = {xzalloc(KV_VALUE_MAX + 1), KV_VALUE_MAX + 1};
    struct kv_scan *scan;
    struct err err = {0};

    expect_invalid(lab->kv,
                   (struct kv_change){.what = KV_PUT,
                                      .name = {str_head(large, KV_PARTITION_MAX + 1), STR("k")},
                                      .value = STR("v")});
    expect_invalid(lab->kv, (struct kv_change){.what = KV_PUT,
                                               .name = {STR("p"), str_head(large, KV_KEY_MAX + 1)},
                                               .value = STR("v")});
    expect_invalid(lab->kv,
                   (struct kv_change){.what = KV_PUT, .name = KV_NAME("p", "l"), .value = large});
    CHECK_ERR(kv_scan_open(&scan, lab->kv, NULL, STR("p"),
                           &(struct kv_range){.prefix = str_head(large, KV_KEY_MAX + 1)}, &err),
              ERR_INVALID);
    free((char *)large.p);
}

KV_LAB_TEST(kv, a_write_past_its_limit_of_bytes_is_refused)
{
    enum { ROWS = KV_WRITE_MAX / KV_VALUE_MAX };
    struct str large = {xzalloc(KV_VALUE_MAX), KV_VALUE_MAX};
    struct kv_change changes[ROWS];
    char keys[ROWS];
    struct err err = {0};

    for (size_t i = 0; i < ROWS; i++) {
        keys[i] = (char)i;
        changes[i] = (struct kv_change){
            .what = KV_PUT, .name = {STR("p"), str_n(&keys[i], 1)}, .value = large};
    }
    CHECK_ERR(kv_write(lab->kv, changes, ROWS, NULL, &err), ERR_INVALID);
    CHECK_OK(kv_write(lab->kv, changes, ROWS - 1, NULL, &err));
    free((char *)large.p);
}

KV_LAB_TEST(kv, a_condition_that_no_driver_can_keep_is_refused)
{
    expect_invalid(lab->kv, (struct kv_change){.what = KV_CHECK, .name = KV_NAME("p", "l")});
    expect_invalid(lab->kv, (struct kv_change){
                                .what = KV_GLANCE, .name = KV_NAME("p", "l"), .when = KV_EXISTS});
    expect_invalid(lab->kv, (struct kv_change){
                                .what = KV_CHECK, .name = KV_NAME("p", "l"), .when = KV_ABSENT});
    expect_invalid(lab->kv, (struct kv_change){
                                .what = KV_REMOVE, .name = KV_NAME("p", "l"), .when = KV_ABSENT});
}

KV_LAB_TEST(kv, two_changes_of_one_name_are_refused)
{
    enum { ROWS = 100 };
    struct kv_change changes[ROWS];
    char keys[ROWS];
    struct err err = {0};

    expect_invalid(lab->kv, (struct kv_change){.what = KV_REMOVE, .name = KV_NAME("p", "k")});
    for (size_t i = 0; i < ROWS; i++) {
        keys[i] = (char)i;
        changes[i] = (struct kv_change){
            .what = KV_PUT, .name = {STR("p"), str_n(&keys[i], 1)}, .value = STR("v")};
    }
    keys[3] = keys[98];
    CHECK_ERR(kv_write(lab->kv, changes, ROWS, NULL, &err), ERR_INVALID);
    changes[3].name.partition = STR("q");
    CHECK_OK(kv_write(lab->kv, changes, ROWS, NULL, &err));
}

static uint64_t syncs_of(struct kv_lab *lab)
{
    struct db_stats stats = {0};

    if (lab->db)
        db_stats(lab->db, &stats);
    return stats.syncs;
}

KV_LAB_TEST(kv_write, a_change_that_is_durable_later_is_seen_at_once_and_judged)
{
    struct kv_name name = {STR("p"), STR("k")};
    struct kv_change put = {KV_PUT, name, STR("1"), KV_ABSENT, .later = true};
    struct kv_value got;
    struct err err = {0};
    size_t failed;

    uint64_t before = syncs_of(lab);
    CHECK_OK(kv_write(lab->kv, &put, 1, &failed, &err));
    CHECK_OK(kv_get(lab->kv, NULL, &lab->arena, name, &got, &err));
    CHECK_STR(got.bytes, STR("1"));
    CHECK_ERR(kv_write(lab->kv, &put, 1, &failed, &err), ERR_PRECONDITION);
    CHECK_INT(syncs_of(lab), before);
    CHECK_OK(
        kv_set_if(lab->kv, name, STR("2"), &got.stamp, &err)); /* this one waits for the disk */
    CHECK(!lab->db || syncs_of(lab) > before);
}
