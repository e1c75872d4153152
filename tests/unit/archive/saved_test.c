/* Names of saved bundles. */
#include "archive/saved.h"
#include "unit/test.h"

static struct archive_account octocat(struct arena *a)
{
    struct archive_account c;
    struct err err = {0};

    CHECK_OK(archive_account_make(&c, a, STR("github.com"), STR("octocat"), &err));
    return c;
}

TEST(archive_saved, every_bundle_of_an_account_has_a_name_that_leads_to_its_key)
{
    static const char *const names[] = {"Hello-World",
                                        "a.bundle",
                                        "Hello-World@wiki",
                                        "Hello-World@1296269",
                                        "Hello-World@20260131T030000Z",
                                        "Hello-World@1296269-20260131T030000Z-2",
                                        "Hello-World@damaged-20260131T030000Z",
                                        "Hello-World@moved-1700000000000",
                                        "Hello-World@wiki@20260131T030000Z",
                                        "@gists/abc123",
                                        "@gists/abc123@20260131T030000Z"};
    struct arena a = {0};
    struct archive_account c = octocat(&a);

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct str key = saved_key(&c, &a, str_z(names[i]));
        CHECK(saved_name_ok(str_z(names[i])));
        CHECK(str_ends(key, STR(".bundle")));
        CHECK_STR(saved_name(key), str_z(names[i]));
    }
    arena_release(&a);
}

TEST(archive_saved, what_is_no_bundle_has_no_name)
{
    static const char *const keys[] = {"Hello-World.zip",
                                       "Hello-World.error",
                                       "Hello-World@audit.json",
                                       "Hello-World@issues.ndjson",
                                       "Hello-World@assets/7/a.bundle",
                                       "Hello-World@lfs/ab/cd/abcd",
                                       "@gists/abc123.audit.json",
                                       "@gists/a/b.bundle",
                                       "Hello-World@.bundle",
                                       "@.bundle",
                                       "@wiki.bundle",
                                       "Hello-World@..bundle"};
    struct arena a = {0};
    struct archive_account c = octocat(&a);
    struct str folder = archive_folder(&c, &a);

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        CHECK_STR(saved_name(arena_fmt(&a, STR_FMT "%s", STR_ARG(folder), keys[i])), STR_EMPTY);
    CHECK_STR(saved_name(STR("x/Hello-World.bundle")), STR_EMPTY);
    arena_release(&a);
}

TEST(archive_saved, a_name_cannot_leave_the_folder_of_its_account)
{
    static const char *const names[] = {
        "",      ".",       "..",        "a/b",        "@",         "@wiki",     "a@",  "a@..",
        "a@b/c", "@gists/", "@gists/..", "@gists/a/b", "@gists/a@", "@gists/@a", "x@@y"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        CHECK(!saved_name_ok(str_z(names[i])));
}

TEST(archive_saved, copies_and_repositories_are_told_from_the_others)
{
    static const struct kind {
        const char *name;
        bool is_copy, is_repo;
    } kinds[] = {
        {"Hello-World", false, true},
        {"damaged-goods", false, true},
        {"Hello-World@1296269", false, true},
        {"moved-in@20260131T030000Z", false, true},
        {"Hello-World@damaged-20260131T030000Z", true, true},
        {"Hello-World@1296269@moved-17", true, true},
        {"Hello-World@wiki", false, false},
        {"Hello-World@wiki@moved-17", true, false},
        {"@gists/damaged-1", false, false},
        {"@gists/abc@damaged-1", true, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        CHECK_INT(saved_is_copy(str_z(kinds[i].name)), kinds[i].is_copy);
        CHECK_INT(saved_is_repo(str_z(kinds[i].name)), kinds[i].is_repo);
    }
}

TEST(archive_saved, a_verdict_stands_beside_its_bundle)
{
    struct arena a = {0};
    struct archive_account c = octocat(&a);

    CHECK_STR(saved_verdict_key(&c, &a, STR("x")), STR("a6/65/81/57/octocat/x@audit.json"));
    CHECK_STR(saved_verdict_key(&c, &a, STR("x@wiki")),
              STR("a6/65/81/57/octocat/x@wiki.audit.json"));
    CHECK_STR(saved_verdict_key(&c, &a, STR("@gists/abc")),
              STR("a6/65/81/57/octocat/@gists/abc.audit.json"));
    CHECK(saved_is_verdict(saved_verdict_key(&c, &a, STR("x"))));
    CHECK(saved_is_verdict(saved_verdict_key(&c, &a, STR("x@wiki@20260131T030000Z"))));
    CHECK(saved_is_verdict(saved_verdict_key(&c, &a, STR("@gists/abc"))));
    CHECK(!saved_is_verdict(STR("a6/65/81/57/octocat/x@assets/7/a@audit.json")));
    CHECK(!saved_is_verdict(STR("a6/65/81/57/octocat/x@assets/7/b.audit.json")));
    CHECK(!saved_is_verdict(STR("a6/65/81/57/octocat/x@issues.ndjson")));
    arena_release(&a);
}
