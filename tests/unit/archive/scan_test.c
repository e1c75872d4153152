/* JSON that is read without a tree: values by name, limits, and malformed texts. */
#include "archive/scan.h"
#include "base/json.h"
#include "unit/test.h"

static int skip(const char *text)
{
    struct scan s;
    struct err err = {0};

    scan_init(&s, str_z(text));
    scan_skip(&s, NULL);
    return scan_end(&s, &err);
}

TEST(archive_scan, values_are_found_by_their_names)
{
    static const char text[] = " [ {\"id\": 7, \"x\": [1, {\"id\": 9}], \"name\":\"a\\u00e9\\n\"},"
                               "{\"ok\":true,\"id\":-3} ] ";
    struct arena a = {0};
    struct scan s;
    struct err err = {0};
    struct str name = STR_EMPTY;
    int64_t ids = 0, id;
    bool ok = false;
    char key[8];

    scan_init(&s, str_z(text));
    scan_open(&s, '[');
    while (scan_more(&s)) {
        scan_open(&s, '{');
        while (scan_key(&s, key, sizeof(key))) {
            if (strcmp(key, "id") == 0) {
                scan_integer(&s, &id);
                ids = ids * 10 + id;
            } else if (strcmp(key, "name") == 0) {
                scan_string(&s, &a, 100, &name);
            } else if (strcmp(key, "ok") == 0) {
                scan_bool(&s, &ok);
            } else {
                scan_skip(&s, NULL);
            }
        }
    }
    CHECK_OK(scan_end(&s, &err));
    CHECK_INT(ids, 67);
    CHECK_STR(name, STR("a\xc3\xa9\n"));
    CHECK(ok);
    arena_release(&a);
}

TEST(archive_scan, malformed_texts_are_refused)
{
    static const char *const bad[] = {
        "",         "[",         "]",           "[1,]",       "[,1]",
        "[1 2]",    "{\"a\"}",   "{\"a\":}",    "{\"a\":1,}", "{a:1}",
        "{1:2}",    "nul",       "truefalse",   "01",         "-",
        "1.",       "1e",        ".5",          "\"\\x\"",    "\"a",
        "\"\\",     "\"\\u12\"", "\"\\u00g0\"", "\"\\u\"",    "\"\\ud83d\\u12\"",
        "\"\xff\"", "\"\n\"",    "[1] 2",       "[1]]",       "+1",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (skip(bad[i]) != ERR_PARSE)
            test_fail(__FILE__, __LINE__, "'%s' was accepted", bad[i]);
    CHECK_INT(skip("{\"a\":[null,true,false,-1.5e+3,\"\\ud83d\\ude00\"],\"b\":{}}"), 0);
}

/* One such text in an issue must not make the whole list malformed. */
TEST(archive_scan, escapes_that_are_no_characters_stay_as_they_came)
{
    struct str text =
        STR("{\"id\\u0000\":1,\"a\":\"x\\u0000\\ud83dy\\udc00\\ud800\\ud83d\\ude00\"}");
    struct arena a = {0};
    struct scan s;
    struct err err = {0};
    struct str raw = STR_EMPTY, plain = STR_EMPTY;
    char key[8];

    scan_init(&s, text);
    scan_skip(&s, &raw);
    CHECK_OK(scan_end(&s, &err));
    CHECK_STR(raw, text);
    scan_init(&s, text);
    scan_open(&s, '{');
    CHECK(scan_key(&s, key, sizeof(key)));
    CHECK_STR(str_z(key), STR("id\xef\xbf\xbd")); /* this is not the key "id" */
    scan_skip(&s, NULL);
    CHECK(scan_key(&s, key, sizeof(key)));
    scan_string(&s, &a, 100, &plain);
    CHECK(!scan_key(&s, key, sizeof(key)));
    CHECK_OK(scan_end(&s, &err));
    CHECK_STR(plain, STR("x\xef\xbf\xbd\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"));
    arena_release(&a);
}

TEST(archive_scan, depth_and_lengths_are_limited)
{
    struct buf deep = {0};
    struct arena a = {0};
    struct scan s;
    struct err err = {0};
    struct str text = STR_EMPTY;

    for (int i = 0; i < SCAN_DEPTH; i++)
        buf_append_char(&deep, '[');
    for (int i = 0; i < SCAN_DEPTH; i++)
        buf_append_char(&deep, ']');
    CHECK_INT(skip(deep.p), 0);
    buf_reset(&deep);
    for (int i = 0; i <= SCAN_DEPTH; i++)
        buf_append_char(&deep, '[');
    CHECK_INT(skip(deep.p), ERR_PARSE);
    buf_release(&deep);
    scan_init(&s, STR("\"12345\""));
    scan_string(&s, &a, 4, &text);
    CHECK_INT(scan_end(&s, &err), ERR_PARSE);
    CHECK_INT(text.len, 0);
    arena_release(&a);
}

TEST(archive_scan, long_keys_are_skipped_as_unknown_ones)
{
    struct scan s;
    struct err err = {0};
    char key[4] = "x";

    scan_init(&s, STR("{\"abcdef\":1}"));
    scan_open(&s, '{');
    CHECK(scan_key(&s, key, sizeof(key)));
    CHECK_STR(str_z(key), STR(""));
    scan_skip(&s, NULL);
    CHECK(!scan_key(&s, key, sizeof(key)));
    CHECK_OK(scan_end(&s, &err));
}
