/* The names of the lake: what is allowed, and what is refused. */
#include "lake/names.h"
#include "lake/lake.h"
#include "unit/test.h"

typedef int check_name_fn(struct str name, struct err *err);

static void expect_good(check_name_fn *check, const char *const *names)
{
    struct err err = {0};

    for (; *names; names++)
        if (check(str_z(*names), &err) < 0)
            test_fail(__FILE__, __LINE__, "'%s' is refused: %s", *names, err.text);
}

static void expect_bad(check_name_fn *check, const char *const *names)
{
    struct err err = {0};

    for (; *names; names++) {
        if (check(str_z(*names), &err) != ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' is not refused", *names);
        CHECK(err.text[0]);
    }
}

/* A name of so many letters. */
static struct str long_name(size_t len)
{
    static char text[2 * LAKE_PATH_MAX];

    memset(text, 'a', sizeof(text));
    return str_n(text, len);
}

static void expect_longest(check_name_fn *check, size_t max)
{
    struct err err = {0};

    CHECK_OK(check(long_name(max), &err));
    CHECK_ERR(check(long_name(max + 1), &err), ERR_INVALID);
}

TEST(lake_names, repositories_have_lower_case_letters_digits_and_dashes)
{
    expect_good(lake_check_repo,
                (const char *const[]){"abc", "a-b", "0ab", "a--", "weather-2026", NULL});
    expect_bad(lake_check_repo, (const char *const[]){"", "ab", "-ab", "Abc", "a_b", "a.b", "a b",
                                                      "a/b", "\xc3\xa4xy", NULL});
    expect_longest(lake_check_repo, 63);
}

TEST(lake_names, branches_are_words_with_dashes_and_dots_inside)
{
    expect_good(lake_check_branch, (const char *const[]){"main", "a", "_x", "7", "release-1.2",
                                                         "A.b.c", "feature-x_y", NULL});
    expect_bad(lake_check_branch,
               (const char *const[]){"", "-a", ".a", "a.", "a..b", "a/b", "a b", "a~1", "a^", "a@",
                                     "a$", "a:b", "\xc3\xa4", "a\n", NULL});
    expect_longest(lake_check_branch, LAKE_NAME_MAX);
}

TEST(lake_names, tags_are_like_those_of_git)
{
    expect_good(lake_check_tag, (const char *const[]){"v1", "v1.0", "-x", ".hidden", "a{b}",
                                                      "\xc3\xa4", "a.lock.b", NULL});
    expect_bad(lake_check_tag, (const char *const[]){"", "@", "a..b", "a/b", "a@{1}", "a b", "a\tb",
                                                     "a^", "a~", "a:", "a?", "a*", "a[", "a\\b",
                                                     "a$", "a.", "a.lock", "a\x7f", NULL});
    expect_longest(lake_check_tag, LAKE_NAME_MAX);
}

TEST(lake_names, paths_are_utf_8_of_1_to_1024_bytes)
{
    struct err err = {0};

    expect_good(lake_check_path,
                (const char *const[]){"a", "/", "a/b", "a//b/", " ", "\xc3\xa4", NULL});
    expect_bad(lake_check_path, (const char *const[]){"", "\xff", "a\xc3", NULL});
    expect_longest(lake_check_path, LAKE_PATH_MAX);
    CHECK_ERR(lake_check_path(STR("a\0b"), &err), ERR_INVALID);
}

TEST(lake_names, a_namespace_is_a_bucket_and_perhaps_a_prefix)
{
    struct str bucket, prefix;
    struct err err = {0};

    CHECK_OK(lake_check_space(STR("s3://b"), &bucket, &prefix, &err));
    CHECK_STR(bucket, STR("b"));
    CHECK_INT(prefix.len, 0);
    CHECK_OK(lake_check_space(STR("s3://b/x/y//"), &bucket, &prefix, &err));
    CHECK_STR(prefix, STR("x/y"));
    static const char *const bad[] = {"",          "s3:/b",  "s3://", "s3:///x",
                                      "s3://b//x", "gs://b", "b/x",   "s3://b/\xff"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_ERR(lake_check_space(str_z(bad[i]), &bucket, &prefix, &err), ERR_INVALID);
    CHECK_ERR(lake_check_space(STR("s3://b/x\0y"), &bucket, &prefix, &err), ERR_INVALID);
}

TEST(lake_names, messages_and_metadata_have_limits)
{
    struct str_pair pair = {STR("k"), long_name(LAKE_META_BYTES - 1)};
    struct str_pairs pairs = {&pair, 1};
    struct buf message = {0};
    struct err err = {0};

    CHECK_OK(lake_check_metadata(&pairs, &err));
    pair.value.len++;
    CHECK_ERR(lake_check_metadata(&pairs, &err), ERR_INVALID);
    for (size_t i = 0; i < LAKE_MESSAGE_MAX; i++)
        buf_append_char(&message, 'm');
    CHECK_OK(lake_check_message(buf_str(&message), &err));
    buf_append_char(&message, 'm');
    CHECK_ERR(lake_check_message(buf_str(&message), &err), ERR_INVALID);
    buf_release(&message);
}

TEST(lake_names, ids_are_lower_case_hex)
{
    char id[LAKE_ID_LEN + 2] = {0};

    memset(id, 'f', LAKE_ID_LEN);
    CHECK(lake_is_commit_id(str_z(id)));
    id[3] = 'F';
    CHECK(!lake_is_commit_id(str_z(id)));
    id[3] = '0';
    id[LAKE_ID_LEN] = '0';
    CHECK(!lake_is_commit_id(str_z(id)));
    CHECK(!lake_is_id_prefix(str_z(id)));
    CHECK(lake_is_id_prefix(STR("0a9f")));
    CHECK(!lake_is_id_prefix(STR("")));
    CHECK(!lake_is_id_prefix(STR("xyz")));
}
