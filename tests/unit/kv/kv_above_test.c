/* Conformance of every driver: what stands above the drivers (index scans, limit, dump). */
#include "base/clock.h"
#include "kv/dump.h"
#include "kv/index.h"
#include "kv/limiter.h"
#include "unit/kv/kv_lab.h"

/* --- typed rows --- */

/* A scan that begins at a key, and one that begins behind it. */
KV_LAB_TEST(kv, primary_iterator)
{
    struct buf behind = BUF_INIT(0);

    kv_lab_set(lab->kv, "p", "users/a", "1");
    kv_lab_set(lab->kv, "p", "users/b", "2");
    kv_lab_set(lab->kv, "p", "users/b0", "3");
    kv_lab_set(lab->kv, "p", "words/a", "4");
    kv_lab_expect_keys(lab->kv, "p",
                       &(struct kv_range){.prefix = STR("users/"), .from = STR("users/b")},
                       "users/b users/b0");
    kv_key_behind(&behind, STR("users/b"));
    kv_lab_expect_keys(lab->kv, "p",
                       &(struct kv_range){.prefix = STR("users/"), .from = buf_str(&behind)},
                       "users/b0");
    buf_release(&behind);
}

/* --- index scans --- */

/* An index row has "=" and the key of the primary row. */
static int index_decode(struct str *primary, struct str value, struct err *err)
{
    if (!str_starts(value, STR("=")))
        return err_set(err, ERR_CORRUPT, "an index row without '='");
    *primary = str_skip(value, 1);
    return 0;
}

static struct kv_index_scan *index_of(struct kv_lab *lab, struct str prefix)
{
    struct kv_index index = {STR("index"), STR("primary"), index_decode};
    struct kv_index_scan *scan = NULL;
    struct err err = {0};

    CHECK_OK(
        kv_index_open(&scan, lab->kv, NULL, &index, &(struct kv_range){.prefix = prefix}, &err));
    return scan;
}

static void expect_indexed(struct kv_index_scan *scan, const char *key, const char *value)
{
    struct str k, v;
    struct err err = {0};

    CHECK_OK(kv_index_next(scan, &k, &v, &err));
    CHECK_STR(k, str_z(key));
    CHECK_STR(v, str_z(value));
}

KV_LAB_TEST(kv, secondary_iterator)
{
    struct kv_index_scan *scan;
    struct str key, value;
    struct err err = {0};

    kv_lab_set(lab->kv, "primary", "a", "one");
    kv_lab_set(lab->kv, "primary", "b", "two");
    kv_lab_set(lab->kv, "index", "by/1", "=b");
    kv_lab_set(lab->kv, "index", "by/2", "=gone");
    kv_lab_set(lab->kv, "index", "by/3", "=gone too");
    kv_lab_set(lab->kv, "index", "by/4", "=a");
    kv_lab_set(lab->kv, "index", "other/1", "=a");
    scan = index_of(lab, STR("by/"));
    expect_indexed(scan, "b", "two");
    expect_indexed(scan, "a", "one");
    CHECK_ERR(kv_index_next(scan, &key, &value, &err), ERR_END);
    kv_index_free(scan);
}

KV_LAB_TEST(kv, secondary_iterator_tells_what_it_cannot_read)
{
    struct kv_index_scan *scan;
    struct str key, value;
    struct err err = {0};

    kv_lab_set(lab->kv, "index", "by/1", "no index row");
    scan = index_of(lab, STR(""));
    CHECK_ERR(kv_index_next(scan, &key, &value, &err), ERR_CORRUPT);
    kv_index_free(scan);
}

/* --- the limit --- */

KV_LAB_TEST(kv, store_limiter)
{
    enum { CALLS = 20, PER_SECOND = 100 };
    struct kv *limited;
    struct kv_scan *scan = NULL;
    struct err err = {0};
    uint64_t began = clock_mono_ms();

    kv_limiter_open(&limited, lab->kv, PER_SECOND);
    for (int i = 0; i < CALLS; i++)
        kv_lab_set(limited, "p", "k", "v");
    CHECK(clock_mono_ms() - began >= (CALLS - 1) * MS_PER_S / PER_SECOND);
    kv_lab_expect(lab->kv, "p", "k", "v");
    kv_lab_expect(limited, "p", "k", "v");
    CHECK_OK(kv_scan_open(&scan, limited, NULL, STR("p"), NULL, &err));
    kv_lab_expect_rest(scan, "k");
    kv_scan_free(scan);
    CHECK_OK(kv_drop(limited, STR("p"), &err));
    CHECK_OK(kv_probe(limited, &err));
    CHECK_INT(limited->can, lab->kv->can);
    kv_close(limited);
    kv_lab_expect(lab->kv, "p", "k", NULL);
}

KV_LAB_TEST(kv, store_limiter_of_zero_is_no_limit)
{
    struct kv *limited;

    kv_limiter_open(&limited, lab->kv, 0);
    for (int i = 0; i < 100; i++)
        kv_lab_expect(limited, "p", "k", NULL);
    kv_close(limited);
}

/* --- dump and load --- */

static int keep_line(void *ctx, struct str line, struct err *err)
{
    struct buf *all = ctx;

    (void)err;
    CHECK(str_chr(line, '\n') < 0);
    buf_append_str(all, line);
    buf_append_char(all, '\n');
    return 0;
}

KV_LAB_TEST(kv, dump_load)
{
    struct buf dump = BUF_INIT(0), again = BUF_INIT(0);
    struct str rest, line, odd = STR("\0\xff\"\\\n");
    struct err err = {0};

    kv_lab_set(lab->kv, "p", "a", "one");
    CHECK_OK(kv_set(lab->kv, KV_NAME("p", "none"), STR(""), &err));
    CHECK_OK(kv_set(lab->kv, (struct kv_name){STR("p"), odd}, odd, &err));
    kv_lab_set(lab->kv, "q", "b", "two");
    CHECK_OK(kv_dump(lab->kv, NULL, STR("p"), keep_line, &dump, &err));
    CHECK(str_find(buf_str(&dump), STR("{\"partition\":\"cA==\",\"key\":\"YQ==\","
                                       "\"value\":\"b25l\"}\n")) >= 0);
    CHECK_OK(kv_drop(lab->kv, STR("p"), &err));
    rest = buf_str(&dump);
    while (str_token(&rest, "\n", &line))
        CHECK_OK(kv_load_line(lab->kv, line, &err));
    CHECK_OK(kv_dump(lab->kv, NULL, STR("p"), keep_line, &again, &err));
    CHECK_STR(buf_str(&again), buf_str(&dump));
    kv_lab_expect(lab->kv, "p", "a", "one");
    kv_lab_expect(lab->kv, "p", "none", "");
    buf_release(&dump);
    buf_release(&again);
}

KV_LAB_TEST(kv, load_refuses_what_is_no_line_of_a_dump)
{
    static const char *const lines[] = {
        "",
        "{}",
        "[]",
        "{\"partition\":\"cA==\",\"key\":\"YQ==\"}",
        "{\"partition\":\"cA==\",\"key\":\"YQ==\",\"value\":\"!\"}",
        "{\"partition\":\"cA==\",\"key\":\"YQ==\",\"value\":3}",
    };
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        CHECK_ERR(kv_load_line(lab->kv, str_z(lines[i]), &err), ERR_PARSE);
    CHECK_ERR(
        kv_load_line(lab->kv, STR("{\"partition\":\"\",\"key\":\"YQ==\",\"value\":\"\"}"), &err),
        ERR_INVALID);
    kv_lab_expect_keys(lab->kv, "p", NULL, "");
}
