/* Credentials: made, kept, found again. */
#include "conf/credentials.h"
#include "os/file.h"
#include "unit/test.h"

#include <stdio.h>
#include <sys/stat.h>

static struct conf *conf_in_test_dir(const char *more)
{
    struct buf yaml = {0}, problems = {0};
    struct conf *c = NULL;

    buf_appendf(&yaml, "data: %s\n%s", test_dir(), more);
    if (conf_load_text(&c, "test", buf_str(&yaml), &problems) < 0)
        test_fail(__FILE__, __LINE__, "%s", problems.p);
    buf_release(&yaml);
    buf_release(&problems);
    return c;
}

static const char *file_path(void)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/credentials", test_dir());
    return path;
}

TEST(credentials, made_ones_are_kept_and_found_again)
{
    struct conf *conf = conf_in_test_dir("");
    struct credentials made = {0}, found = {0};
    struct err err = {0};
    struct stat st;

    CHECK_ERR(credentials_find(&found, conf, &err), ERR_NOT_FOUND);
    credentials_make(&made);
    CHECK_INT(strlen(made.access_key), CREDENTIALS_ACCESS_LEN);
    CHECK_INT(strlen(made.secret_key), CREDENTIALS_SECRET_LEN);
    CHECK_OK(credentials_keep(&made, test_dir(), &err));
    CHECK_INT(stat(file_path(), &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_OK(credentials_find(&found, conf, &err));
    CHECK(memcmp(&made, &found, sizeof(made)) == 0);
    conf_unref(conf);
}

TEST(credentials, keeping_the_same_again_does_not_touch_the_file)
{
    struct credentials made = {0};
    struct err err = {0};
    struct stat before, after;

    credentials_make(&made);
    CHECK_OK(credentials_keep(&made, test_dir(), &err));
    CHECK_INT(stat(file_path(), &before), 0);
    CHECK_OK(credentials_keep(&made, test_dir(), &err));
    CHECK_INT(stat(file_path(), &after), 0);
    CHECK_INT(before.st_ino, after.st_ino);
    credentials_make(&made);
    CHECK_OK(credentials_keep(&made, test_dir(), &err));
    CHECK_INT(stat(file_path(), &after), 0);
    CHECK(before.st_ino != after.st_ino);
}

TEST(credentials, the_configuration_wins_over_the_file)
{
    struct conf *conf = conf_in_test_dir("access_key: admin\nsecret_key: a=b c and more\n");
    struct credentials made = {0}, found = {0};
    struct err err = {0};

    credentials_make(&made);
    CHECK_OK(credentials_keep(&made, test_dir(), &err));
    CHECK_OK(credentials_find(&found, conf, &err));
    CHECK_STR(str_z(found.access_key), STR("admin"));
    CHECK_STR(str_z(found.secret_key), STR("a=b c and more"));
    CHECK_OK(credentials_keep(&found, test_dir(), &err));
    conf_unref(conf);
    conf = conf_in_test_dir("");
    CHECK_OK(credentials_find(&made, conf, &err));
    CHECK(memcmp(&made, &found, sizeof(made)) == 0);
    conf_unref(conf);
}

TEST(credentials, a_damaged_file_is_told_and_never_replaced_by_itself)
{
    struct conf *conf = conf_in_test_dir("");
    struct credentials found = {0};
    struct err err = {0};

    CHECK_OK(file_write_durable(file_path(), STR("access_key=only\n"), 0600, &err));
    CHECK_ERR(credentials_find(&found, conf, &err), ERR_CORRUPT);
    CHECK(str_find(str_z(err.text), str_z(file_path())) >= 0);
    CHECK_INT(found.access_key[0], 0);
    conf_unref(conf);
}
