/* bucket_name: the rules of names and keys. */
#include "s3/gateway/bucket_name.h"
#include "unit/test.h"

static int check(const char *name)
{
    struct err err = {0};
    return bucket_name_check(str_z(name), &err);
}

TEST(bucket_name, ordinary_names_are_taken)
{
    static const char *const good[] = {
        "abc",         "my-bucket",
        "my.bucket.2", "0-9",
        "a--b",        "1.2.3",
        "1.2.3.4.5",   "192.168.5.x",
        "1234.1.1.1",  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK_INT(check(good[i]), 0);
}

TEST(bucket_name, names_that_dns_could_not_carry_are_refused)
{
    static const char *const bad[] = {
        "",
        "a",
        "ab",
        "Abc",
        "foo_bar",
        "foo-",
        "-foo",
        ".foo",
        "foo.",
        "foo..b",
        "foo.-b",
        "foo-.b",
        "1.2.3.4",
        "foo bar",
        "foo/bar",
        "f\xc3\xbcx",
        "255.255.255.255",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_INT(check(bad[i]), S3_INVALID_BUCKET_NAME);
}

TEST(bucket_name, names_that_s3_keeps_for_itself_are_refused)
{
    static const char *const bad[] = {"xn--abc",     "sthree-abc",   "amzn-s3-demo-x",
                                      "abc-s3alias", "abc--ol-s3",   "abc.mrap",
                                      "abc--x-s3",   "abc--table-s3"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_INT(check(bad[i]), S3_INVALID_BUCKET_NAME);
}

TEST(bucket_name, a_name_that_is_asked_for_may_be_of_another_service)
{
    static const char *const good[] = {"a", "Old_Bucket.-", "...", ".x", "..x", "_", "1.2.3.4"};
    static const char *const bad[] = {"",    ".",   "..",   "a/b",      "a%b", "a:b", "::a",
                                      "a b", "a+b", "a\\b", "\xc3\xbc", ":",   ":.",  "a\n"};
    struct err err = {0};
    struct str name;
    char longest[257];

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CHECK_OK(bucket_name_read(&name, str_z(good[i]), &err));
        CHECK_STR(name, str_z(good[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_INT(bucket_name_read(&name, str_z(bad[i]), &err), S3_INVALID_BUCKET_NAME);
    CHECK_INT(bucket_name_read(&name, STR("a\0b"), &err), S3_INVALID_BUCKET_NAME);
    CHECK_OK(bucket_name_read(&name, STR(":a.b"), &err)); /* Ceph's, of no tenant */
    CHECK_STR(name, STR("a.b"));
    memset(longest, 'x', sizeof(longest));
    CHECK_OK(bucket_name_read(&name, str_n(longest, 255), &err));
    CHECK_INT(bucket_name_read(&name, str_n(longest, 256), &err), S3_INVALID_BUCKET_NAME);
}

TEST(bucket_name, a_key_is_any_utf8_of_1_to_1024_bytes_without_nul)
{
    struct err err = {0};
    char key[1025];

    memset(key, 'k', sizeof(key));
    CHECK_OK(object_key_check(str_n(key, 1024), NULL, STR("box"), &err));
    CHECK_INT(object_key_check(str_n(key, 1025), NULL, STR("box"), &err), S3_KEY_TOO_LONG_ERROR);
    CHECK_INT(object_key_check(STR(""), NULL, STR("box"), &err), S3_INVALID_ARGUMENT);
    CHECK_OK(object_key_check(STR("../a//b\x01\n?&\xc3\xbc"), NULL, STR("box"), &err));
    CHECK_INT(object_key_check(STR("a\0b"), NULL, STR("box"), &err), S3_INVALID_URI);
    CHECK_INT(object_key_check(STR("\xae\x8a-"), NULL, STR("box"), &err), S3_INVALID_URI);
}
