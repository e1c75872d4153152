/* Range deletes, expiry, copies, numbers, and a full disk. */
#include "unit/db/dbtest.h"

#include "base/clock.h"
#include "db/db_int.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static const struct db_range all = {0};

static struct db *open_with_keys(void)
{
    struct db *db = dbtest_open(dbtest_path("db"));

    for (const char *p = "abcde"; *p; p++)
        dbtest_put(db, "a", (char[]){*p, '\0'}, "v");
    return db;
}

TEST(db_keep, a_range_delete_takes_its_rows_and_no_others)
{
    struct db *db = open_with_keys();
    struct db_cf *cf = db_cf(db, "a");
    struct err err = {0};

    dbtest_put(db, "b", "c", "v");
    CHECK_OK(db_delete_range(db, cf, STR("b"), STR("d"), &err));
    dbtest_expect_keys(db_latest(db), cf, &all, "a d e");
    EXPECT_ROW(db, "a", "b", NULL);
    EXPECT_ROW(db, "b", "c", "v");
    CHECK_OK(db_delete_range(db, cf, STR("e"), STR("a"), &err));
    CHECK_OK(db_delete_range(db, cf, STR("e"), STR("e"), &err));
    dbtest_expect_keys(db_latest(db), cf, &all, "a d e");
    db_close(db);
    db = dbtest_open(dbtest_path("db"));
    dbtest_expect_keys(db_latest(db), db_cf(db, "a"), &all, "a d e");
    db_close(db);
}

TEST(db_keep, a_range_delete_without_an_end_goes_to_the_last_row)
{
    struct db *db = open_with_keys();
    struct db_cf *cf = db_cf(db, "a");
    struct err err = {0};

    CHECK_OK(db_delete_range(db, cf, STR("c"), STR_EMPTY, &err));
    dbtest_expect_keys(db_latest(db), cf, &all, "a b");
    CHECK_OK(db_delete_range(db, cf, STR_EMPTY, STR_EMPTY, &err));
    dbtest_expect_keys(db_latest(db), cf, &all, "");
    CHECK_OK(db_delete_range(db, cf, STR_EMPTY, STR_EMPTY, &err));
    dbtest_put(db, "a", "c", "again");
    dbtest_expect_keys(db_latest(db), cf, &all, "c");
    db_close(db);
}

/* Here a value is the wall time at which its row expires. */
static bool expired(struct str key, struct str value, int64_t now_wall_ms)
{
    int64_t at;
    return str_i64(value, &at) == 0 && at <= now_wall_ms;
}

TEST(db_keep, compaction_drops_expired_rows_and_keeps_the_others)
{
    struct db_cf_spec cfs[] = {{"e", expired}, {"a", NULL}};
    struct db_options o = {.path = dbtest_path("db"), .cfs = cfs, .cf_count = 2};
    struct db *db = NULL;
    struct err err = {0};
    char later[32];

    CHECK_OK(db_open(&db, &o, &err));
    snprintf(later, sizeof(later), "%lld", (long long)clock_wall_ms() + MS_PER_HOUR);
    dbtest_put(db, "e", "old", "1000");
    dbtest_put(db, "e", "young", later);
    dbtest_put(db, "e", "none", "not a time");
    dbtest_put(db, "a", "old", "1000");
    for (int i = 0; i < 2; i++)
        rocksdb_compact_range_cf(db->rocks, db->cfs[i].handle, NULL, 0, NULL, 0);
    EXPECT_ROW(db, "e", "old", NULL);
    EXPECT_ROW(db, "e", "young", later);
    EXPECT_ROW(db, "e", "none", "not a time");
    EXPECT_ROW(db, "a", "old", "1000");
    db_close(db);
}

TEST(db_keep, a_checkpoint_opens_with_everything_up_to_it_and_nothing_after)
{
    struct db *db = open_with_keys(), *copy;
    struct err err = {0};
    struct stat st;
    char path[256];

    snprintf(path, sizeof(path), "%s/backups/1", test_dir());
    dbtest_put(db, "b", "k", "v");
    CHECK_OK(db_checkpoint(db, path, &err));
    dbtest_put(db, "a", "later", "v");
    CHECK_ERR(db_checkpoint(db, path, &err), ERR_EXISTS);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
    copy = dbtest_open(path);
    dbtest_expect_keys(db_latest(copy), db_cf(copy, "a"), &all, "a b c d e");
    EXPECT_ROW(copy, "b", "k", "v");
    dbtest_put(copy, "a", "own", "v");
    EXPECT_ROW(db, "a", "own", NULL);
    db_close(copy);
    CHECK(!file_exists(dbtest_path("backups/1.weir-partial")));
    db_close(db);
}

TEST(db_keep, a_checkpoint_into_what_a_crash_left_starts_anew)
{
    struct db *db = open_with_keys();
    struct err err = {0};

    CHECK_OK(dir_make(dbtest_path("copy.weir-partial/copy/rubbish"), 0700, &err));
    CHECK_OK(db_checkpoint(db, dbtest_path("copy"), &err));
    CHECK(!file_exists(dbtest_path("copy.weir-partial")));
    db_close(db);
    db_close(dbtest_open(dbtest_path("copy")));
}

struct writer {
    struct thread thread;
    struct db *db;
    _Atomic(bool) stop;
    _Atomic(uint64_t) count;
};

static int put_pair(struct db_tx *tx, void *ctx, struct err *err)
{
    struct writer *w = ctx;
    char key[32];

    snprintf(key, sizeof(key), "%08llu", (unsigned long long)atomic_load(&w->count));
    db_tx_put(tx, db_cf(w->db, "a"), str_z(key), STR("v"));
    db_tx_put(tx, db_cf(w->db, "b"), str_z(key), STR("v"));
    return 0;
}

static void writer_main(void *ctx)
{
    struct writer *w = ctx;
    struct err err = {0};

    while (!atomic_load(&w->stop)) {
        CHECK_OK(db_apply(w->db, DB_VOLATILE, put_pair, w, &err));
        atomic_fetch_add(&w->count, 1);
    }
}

static uint64_t count_rows(struct db *db, const char *cf)
{
    struct db_iter *it = NULL;
    struct str key, value;
    struct err err = {0};
    uint64_t n = 0;

    CHECK_OK(db_iter_open(&it, db_latest(db), db_cf(db, cf), &all, &err));
    while (db_iter_next(it, &key, &value, &err) == 0)
        n++;
    db_iter_close(it);
    return n;
}

TEST(db_keep, a_checkpoint_under_load_is_consistent_across_families)
{
    struct writer w = {.db = dbtest_open(dbtest_path("db"))};
    struct err err = {0};
    char path[256];

    CHECK_OK(thread_start(&w.thread, "writer", 0, writer_main, &w, &err));
    for (int i = 0; i < 3; i++) {
        uint64_t before = atomic_load(&w.count);
        while (atomic_load(&w.count) < before + 100)
            sched_yield();
        before = atomic_load(&w.count);
        snprintf(path, sizeof(path), "%s/copy%d", test_dir(), i);
        CHECK_OK(db_checkpoint(w.db, path, &err));
        struct db *copy = dbtest_open(path);
        CHECK_INT(count_rows(copy, "a"), count_rows(copy, "b"));
        CHECK(count_rows(copy, "a") >= before);
        db_close(copy);
    }
    atomic_store(&w.stop, true);
    thread_join(&w.thread);
    db_close(w.db);
}

TEST(db_keep, numbers_are_kept)
{
    struct db *db = open_with_keys();
    struct db_stats stats;

    db_stats(db, &stats);
    CHECK_INT(stats.changes, 5);
    CHECK_INT(stats.groups, 5);
    CHECK(stats.memory_bytes > 0);
    rocksdb_compact_range_cf(db->rocks, db_cf(db, "a")->handle, NULL, 0, NULL, 0);
    db_stats(db, &stats);
    CHECK(stats.disk_bytes > 0);
    db_close(db);
}

TEST(db_keep, messages_of_rocksdb_become_codes)
{
    static const struct {
        const char *message;
        int code;
    } rows[] = {
        {"IO error: No space left on device: While appending to file: x.log: No space left on "
         "device",
         ERR_NO_SPACE},
        {"IO error: While lock file: x/LOCK: Resource temporarily unavailable", ERR_IN_USE},
        {"IO error: lock hold by current process, acquire time 1", ERR_IN_USE},
        {"Corruption: block checksum mismatch", ERR_CORRUPT},
        {"IO error: While fsync: x: Input/output error", ERR_IO},
        {"something never seen", ERR_IO},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err err = {0};
        CHECK_INT(error_take(&err, strdup(rows[i].message), "doing", "x"), rows[i].code);
        CHECK(str_starts(str_z(err.text), STR("doing x: ")));
    }
}

/* A file system of our own, gone with this process. */
static void mount_small(const char *path, const char *options)
{
    struct err err = {0};

    CHECK_OK(dir_make(path, 0700, &err));
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", path, "tmpfs", 0, options) != 0) {
        fprintf(stderr, "cannot mount: %s\n", strerror(errno));
        _exit(SKIPPED);
    }
}

/* Rows of random bytes until the disk is full; returns how many were acknowledged. */
static int fill_up(struct db *db, int first, struct err *err)
{
    static char value[10000];
    unsigned seed = 1;
    char key[16];
    int code = 0, i;

    for (i = first; i < 20000; i++) {
        for (size_t k = 0; k < sizeof(value); k++)
            value[k] = (char)rand_r(&seed);
        snprintf(key, sizeof(key), "%05d", i);
        code = db_put(db, db_cf(db, "a"), str_z(key), str_n(value, sizeof(value)), DB_DURABLE, err);
        if (code != 0)
            break;
    }
    CHECK_ERR(code, ERR_NO_SPACE);
    return i;
}

static void expect_rows(struct db *db, int count)
{
    struct buf value = BUF_INIT(0);
    struct err err = {0};
    char key[16];

    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "%05d", i);
        buf_reset(&value);
        CHECK_OK(db_get(db_latest(db), db_cf(db, "a"), str_z(key), &value, &err));
        CHECK_INT(value.len, 10000);
    }
    snprintf(key, sizeof(key), "%05d", count);
    CHECK_ERR(db_get(db_latest(db), db_cf(db, "a"), str_z(key), &value, &err), ERR_NOT_FOUND);
    buf_release(&value);
}

static void survive_a_full_disk(size_t reserve_bytes)
{
    struct db_cf_spec cf = {"a", NULL};
    char path[256], ballast[256];
    struct db_options o = {.path = path, .cfs = &cf, .cf_count = 1, .reserve_bytes = reserve_bytes};
    struct db *db = NULL;
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/m/db", test_dir());
    snprintf(ballast, sizeof(ballast), "%s/m/ballast", test_dir());
    mount_small(dbtest_path("m"), "size=96m");
    int fd = open(ballast, O_CREAT | O_RDWR, 0600);
    CHECK_INT(posix_fallocate(fd, 0, 60 * (off_t)MIB), 0);

    CHECK_OK(db_open(&db, &o, &err));
    int count = fill_up(db, 0, &err);
    expect_rows(db, count);
    CHECK_INT(ftruncate(fd, 0), 0);
    /* RocksDB looks for room every five seconds when it was hit itself. */
    while (db_put(db, db_cf(db, "a"), STR("x"), STR("y"), DB_DURABLE, &err) == ERR_NO_SPACE)
        usleep(1000);
    EXPECT_ROW(db, "a", "x", "y");
    expect_rows(db, count);
    db_close(db);

    CHECK_OK(db_open(&db, &o, &err));
    expect_rows(db, count);
    EXPECT_ROW(db, "a", "x", "y");
    db_close(db);
    close(fd);
}

TEST(db_keep, a_full_disk_refuses_writes_by_the_reserve_and_recovers_when_space_is_freed)
{
    survive_a_full_disk(8 * MIB);
}

TEST(db_keep, a_disk_that_fills_up_under_rocksdb_itself_loses_nothing_and_recovers)
{
    survive_a_full_disk(1);
}

/* Takes what is free on the disk but for `leave` bytes. */
static void fill_disk(const char *file, uint64_t leave)
{
    static char zeros[64 * 1024];
    uint64_t available, total;
    struct err err = {0};
    int fd = open(file, O_CREAT | O_WRONLY | O_APPEND, 0600);

    CHECK(fd >= 0);
    for (;;) {
        CHECK_OK(file_free_space(dbtest_path("m"), &available, &total, &err));
        uint64_t len = available > leave ? available - leave : 0;
        if (len == 0 || write(fd, zeros, len < sizeof(zeros) ? len : sizeof(zeros)) <= 0)
            break;
    }
    close(fd);
}

static int put_as(struct db *db, enum db_durability d, const char *value)
{
    struct err err = {0};

    return db_put(db, db_cf(db, "a"), STR("k"), str_z(value), d, &err);
}

TEST(db_keep, urgent_changes_go_on_where_others_are_refused)
{
    struct db_cf_spec cf = {"a", NULL};
    char path[256], filler[256], ballast[300];
    struct db_options o = {.path = path, .cfs = &cf, .cf_count = 1, .reserve_bytes = 32 * MIB};
    struct db *db = NULL;
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/m/db", test_dir());
    snprintf(filler, sizeof(filler), "%s/m/filler", test_dir());
    snprintf(ballast, sizeof(ballast), "%s/ballast", path);
    mount_small(dbtest_path("m"), "size=128m");
    CHECK_OK(db_open(&db, &o, &err));
    CHECK_INT(put_as(db, DB_DURABLE, "1"), 0);
    CHECK(file_exists(ballast));

    fill_disk(filler, 20 * MIB);
    while (put_as(db, DB_DURABLE, "2") == 0) /* a look is good for 100 ms */
        usleep(1000);
    CHECK_INT(put_as(db, DB_DURABLE, "3"), ERR_NO_SPACE);
    CHECK_INT(put_as(db, DB_URGENT, "4"), 0);
    EXPECT_ROW(db, "a", "k", "4");
    CHECK(file_exists(ballast));

    fill_disk(filler, 0);
    CHECK_INT(put_as(db, DB_VOLATILE, "5"), ERR_NO_SPACE);
    CHECK(file_exists(ballast));
    CHECK_INT(put_as(db, DB_URGENT, "6"), 0);
    EXPECT_ROW(db, "a", "k", "6");
    CHECK(!file_exists(ballast));
    CHECK_INT(put_as(db, DB_DURABLE, "7"), ERR_NO_SPACE);

    CHECK(unlink(filler) == 0);
    CHECK_INT(put_as(db, DB_DURABLE, "8"), 0);
    CHECK(file_exists(ballast));
    db_close(db);
}

/* RocksDB would end the process. */
TEST(db_keep, a_disk_without_any_room_is_an_error_and_no_crash)
{
    struct db_cf_spec cf = {"a", NULL};
    char path[256], filler[256];
    struct db_options o = {.path = path, .cfs = &cf, .cf_count = 1, .reserve_bytes = 1};
    struct db *db = NULL;
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/m/db", test_dir());
    snprintf(filler, sizeof(filler), "%s/m/filler", test_dir());
    mount_small(dbtest_path("m"), "size=64m");
    CHECK_OK(db_open(&db, &o, &err));
    CHECK_INT(put_as(db, DB_DURABLE, "kept"), 0);
    fill_disk(filler, 0);
    db_close(db);
    db = NULL;
    fill_disk(filler, 0); /* room that the log had taken ahead */
    CHECK_ERR(db_open(&db, &o, &err), ERR_NO_SPACE);
    CHECK(strstr(err.text, "the disk is full"));
    CHECK(unlink(filler) == 0);
    CHECK_OK(db_open(&db, &o, &err));
    EXPECT_ROW(db, "a", "k", "kept");
    db_close(db);
}
