/* Verdicts of audits, and when audits are due. The end-to-end tests run git. */
#include "archive/audit.h"
#include "base/clock.h"
#include "unit/test.h"

#include <stdio.h>

TEST(archive_audit, a_verdict_is_read_back)
{
    struct audit_verdict v = {.etag = "abc-2",
                              .at_ms = 1700000000123,
                              .bytes = UINT64_C(5) << 32,
                              .objects = 7,
                              .doubles = 2,
                              .tidied_bytes = 9,
                              .words = "missing \"blob\"\n"};
    struct audit_verdict back;
    struct buf text = {0};
    struct err err = {0};

    audit_verdict_write(&text, &v);
    CHECK_OK(audit_verdict_read(&back, buf_str(&text), &err));
    CHECK_STR(str_z(back.etag), STR("abc-2"));
    CHECK_INT(back.at_ms, v.at_ms);
    CHECK(!back.ok);
    CHECK_INT(back.bytes, v.bytes);
    CHECK_INT(back.objects, 7);
    CHECK_INT(back.doubles, 2);
    CHECK_INT(back.tidied_bytes, 9);
    CHECK_STR(str_z(back.words), str_z(v.words));
    buf_release(&text);
}

TEST(archive_audit, a_damaged_verdict_is_refused)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"etag\":\"\",\"at\":\"2026-01-01T00:00:00Z\"}",
        "{\"etag\":\"x\",\"at\":\"now\",\"ok\":true,\"bytes\":1,\"objects\":1,\"doubles\":0,"
        "\"tidied_bytes\":0}",
        "{\"etag\":\"x\",\"at\":\"2026-01-01T00:00:00Z\",\"ok\":true,\"bytes\":-1,\"objects\":1,"
        "\"doubles\":0,\"tidied_bytes\":0}"};
    struct audit_verdict v;
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        CHECK_ERR(audit_verdict_read(&v, str_z(texts[i]), &err), ERR_CORRUPT);
}

TEST(archive_audit, each_week_another_hundredth_is_due)
{
    struct bundle_meta meta = {0};
    int64_t week = 7 * S_PER_DAY, now = 2900 * week + 5;
    int due = 0, both = 0;
    char name[64];

    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "github.com/user%d/repo", i);
        bool is = audit_is_due(str_z(name), &meta, 1, NULL, now) == AUDIT_AUDIT;
        bool next = audit_is_due(str_z(name), &meta, 1, NULL, now + week) == AUDIT_AUDIT;
        CHECK(is == (audit_is_due(str_z(name), &meta, 1, NULL, now + S_PER_DAY) == AUDIT_AUDIT));
        struct audit_verdict v = {.at_ms = now * MS_PER_S};
        CHECK_INT(audit_is_due(str_z(name), &meta, 1, &v, now), AUDIT_NOTHING);
        due += is;
        both += is && next;
    }
    CHECK(due > 120 && due < 300);
    CHECK(both < 20);
}

TEST(archive_audit, a_bundle_that_grew_is_tidied)
{
    struct bundle_meta meta = {.appends = AUDIT_APPENDS_MAX};
    struct audit_verdict v = {.at_ms = 1, .tidied_bytes = 1000};

    CHECK_INT(audit_is_due(STR("x"), &meta, 1, NULL, 5), AUDIT_TIDY);
    meta.appends = 3;
    CHECK_INT(audit_is_due(STR("x"), &meta, 1250, &v, 5), AUDIT_NOTHING);
    CHECK_INT(audit_is_due(STR("x"), &meta, 1251, &v, 5), AUDIT_TIDY);
    meta.appends = 0;
    CHECK_INT(audit_is_due(STR("x"), &meta, 5000, &v, 5), AUDIT_NOTHING);
    meta.ref_deltas = REF_DELTAS_SOME; /* nothing can be appended to it */
    CHECK_INT(audit_is_due(STR("x"), &meta, 1, &v, 5), AUDIT_TIDY);
}
