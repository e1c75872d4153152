/* Opening and closing: folders, formats, families. */
#include "unit/db/dbtest.h"

#include "os/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int try_open(const char *path, struct err *err)
{
    struct db_cf_spec cf = {"a", NULL};
    struct db_options o = {.path = path, .cfs = &cf, .cf_count = 1};
    struct db *db = NULL;
    int code = db_open(&db, &o, err);

    if (code == 0)
        db_close(db);
    return code;
}

TEST(db, a_row_written_is_read_back_after_reopening)
{
    struct err err = {0};
    struct db *db = dbtest_open(dbtest_path("db"));

    CHECK_OK(db_put(db, db_cf(db, "a"), STR("k"), STR("v"), DB_DURABLE, &err));
    EXPECT_ROW(db, "a", "k", "v");
    EXPECT_ROW(db, "b", "k", NULL);
    db_close(db);

    db = dbtest_open(dbtest_path("db"));
    EXPECT_ROW(db, "a", "k", "v");
    db_close(db);
}

TEST(db, the_folder_is_made_with_its_parents_and_closed_to_others)
{
    struct stat st;

    db_close(dbtest_open(dbtest_path("deep/er/db")));
    CHECK_INT(stat(dbtest_path("deep/er/db"), &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
}

TEST(db, families_that_are_not_asked_for_keep_their_rows)
{
    struct db_cf_spec only_b = {"b", NULL};
    struct db_options o = {.path = dbtest_path("db"), .cfs = &only_b, .cf_count = 1};
    struct db *db = dbtest_open(o.path);
    struct err err = {0};

    dbtest_put(db, "a", "k", "v");
    db_close(db);
    CHECK_OK(db_open(&db, &o, &err));
    dbtest_put(db, "b", "k", "w");
    db_close(db);
    db = dbtest_open(o.path);
    EXPECT_ROW(db, "a", "k", "v");
    EXPECT_ROW(db, "b", "k", "w");
    db_close(db);
}

TEST(db, a_family_can_be_added_to_an_existing_folder)
{
    struct db_cf_spec cfs[] = {{"a", NULL}, {"new", NULL}};
    struct db_options o = {.path = dbtest_path("db"), .cfs = cfs, .cf_count = 2};
    struct db *db = dbtest_open(o.path);
    struct err err = {0};

    dbtest_put(db, "a", "k", "v");
    db_close(db);
    CHECK_OK(db_open(&db, &o, &err));
    dbtest_put(db, "new", "k", "w");
    EXPECT_ROW(db, "a", "k", "v");
    EXPECT_ROW(db, "new", "k", "w");
    db_close(db);
}

TEST(db, a_newer_format_is_refused_and_left_alone)
{
    struct err err = {0};
    struct buf text = BUF_INIT(0);

    db_close(dbtest_open(dbtest_path("db")));
    CHECK_OK(file_write_durable(dbtest_path("db/FORMAT"), STR("weir db 2\n"), 0600, &err));
    CHECK_ERR(try_open(dbtest_path("db"), &err), ERR_VERSION);
    CHECK(strstr(err.text, "newer weir"));
    CHECK_OK(file_read(dbtest_path("db/FORMAT"), &text, &err));
    CHECK_STR(buf_str(&text), STR("weir db 2\n"));
    buf_release(&text);
}

TEST(db, a_format_file_that_makes_no_sense_is_refused)
{
    static const char *const texts[] = {"",
                                        "weir db",
                                        "weir db \n",
                                        "weir db x\n",
                                        "weir db 1",
                                        "weir db 99999999999999999999\n",
                                        "something else\n"};
    struct err err = {0};

    db_close(dbtest_open(dbtest_path("db")));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK_OK(file_write_durable(dbtest_path("db/FORMAT"), str_z(texts[i]), 0600, &err));
        CHECK_ERR(try_open(dbtest_path("db"), &err), ERR_CORRUPT);
    }
}

TEST(db, a_database_without_a_format_file_is_not_ours)
{
    struct err err = {0};

    db_close(dbtest_open(dbtest_path("db")));
    CHECK_INT(unlink(dbtest_path("db/FORMAT")), 0);
    CHECK_ERR(try_open(dbtest_path("db"), &err), ERR_CORRUPT);
    CHECK(strstr(err.text, "FORMAT"));
}

TEST(db, a_folder_that_this_process_has_open_is_in_use)
{
    struct err err = {0};
    struct db *db = dbtest_open(dbtest_path("db"));

    CHECK_ERR(try_open(dbtest_path("db"), &err), ERR_IN_USE);
    CHECK(strstr(err.text, dbtest_path("db")));
    db_close(db);
    CHECK_OK(try_open(dbtest_path("db"), &err));
}

TEST(db, a_folder_that_another_process_has_open_is_in_use)
{
    struct err err = {0};
    int ready[2], status;
    char byte;
    pid_t pid;

    CHECK_INT(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct db *db = dbtest_open(dbtest_path("db"));
        CHECK_INT(write(ready[1], "x", 1), 1);
        pause();
        db_close(db);
        _exit(0);
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_ERR(try_open(dbtest_path("db"), &err), ERR_IN_USE);
    CHECK(strstr(err.text, dbtest_path("db")));
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_OK(try_open(dbtest_path("db"), &err));
}

TEST(db, a_damaged_manifest_is_reported_as_corrupt)
{
    struct err err = {0};

    db_close(dbtest_open(dbtest_path("db")));
    CHECK_OK(file_write_durable(dbtest_path("db/CURRENT"), STR("rubbish\n"), 0600, &err));
    CHECK_ERR(try_open(dbtest_path("db"), &err), ERR_CORRUPT);
}

/* The newest log by number. */
static void append_to_log(const char *folder, const char *bytes, size_t len)
{
    char path[512];

    for (int n = 999; n > 0; n--) {
        snprintf(path, sizeof(path), "%s/%06d.log", folder, n);
        int fd = open(path, O_WRONLY | O_APPEND);
        if (fd < 0)
            continue;
        CHECK_INT(write(fd, bytes, len), len);
        close(fd);
        return;
    }
    CHECK(!"no log found");
}

/* A process of its own that opens, puts a row unless key is NULL, and closes or just ends: then the
 * row is in the log only. */
static void session(const char *key, bool closes)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct err err = {0};
        struct db *db = dbtest_open(dbtest_path("db"));
        if (key)
            CHECK_OK(db_put(db, db_cf(db, "a"), str_z(key), STR("v"), DB_DURABLE, &err));
        if (closes)
            db_close(db);
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
}

/* What a crash of the machine leaves behind the last sync: part of a record, or rubbish. */
TEST(db, a_torn_end_of_the_log_is_dropped_and_nothing_before_it)
{
    static const char *const keys[] = {"k0", "k1", "k2"};
    char torn[100];

    memset(torn, 0x5a, sizeof(torn));
    torn[4] = 50; /* a record header's length, type "full": its checksum is wrong */
    torn[5] = 0;
    torn[6] = 1;
    for (size_t round = 0; round < ARRAY_SIZE(keys); round++) {
        session(keys[round], false);
        append_to_log(dbtest_path("db"), torn, round == 1 ? sizeof(torn) : 30);
    }
    struct db *db = dbtest_open(dbtest_path("db"));
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        EXPECT_ROW(db, "a", keys[i], "v");
    db_close(db);
}

static int count_logs(const char *folder)
{
    char path[512];
    int count = 0;

    for (int n = 1; n < 1000; n++) {
        snprintf(path, sizeof(path), "%s/%06d.log", folder, n);
        count += file_exists(path);
    }
    return count;
}

TEST(db, logs_do_not_pile_up_over_restarts)
{
    for (int i = 0; i < 5; i++) {
        session(i % 2 ? "k" : NULL, true);
        session("k", false);
    }
    session(NULL, true);
    CHECK(count_logs(dbtest_path("db")) <= 2);
}

TEST(db, much_unflushed_data_is_there_after_reopening)
{
    static char value[10000];
    char key[16];
    struct err err = {0};
    struct db *db = dbtest_open(dbtest_path("db"));

    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%05d", i);
        CHECK_OK(
            db_put(db, db_cf(db, "a"), str_z(key), str_n(value, sizeof(value)), DB_VOLATILE, &err));
    }
    db_close(db);
    db = dbtest_open(dbtest_path("db"));
    struct buf out = BUF_INIT(0);
    CHECK_OK(db_get(db_latest(db), db_cf(db, "a"), STR("00999"), &out, &err));
    CHECK_INT(out.len, sizeof(value));
    buf_release(&out);
    db_close(db);
}
