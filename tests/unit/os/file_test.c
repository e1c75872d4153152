/* file: durable replacement, locks, folders. */
#include "os/file.h"
#include "base/clock.h"
#include "os/thread.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", test_dir(), name);
    return path;
}

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    size_t count = 0;

    CHECK(dir);
    while ((entry = readdir(dir)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

TEST(file, a_durable_write_is_read_back_with_its_mode)
{
    struct err err = {0};
    struct buf b = {0};
    struct stat st;

    umask(077);
    CHECK_OK(file_write_durable(path_of("a"), STR("one"), 0644, &err));
    CHECK_OK(file_write_durable(path_of("a"), STR("second"), 0640, &err));
    CHECK_OK(file_read(path_of("a"), &b, &err));
    CHECK_STR(buf_str(&b), STR("second"));
    CHECK_INT(stat(path_of("a"), &st), 0);
    CHECK_INT(st.st_mode & 0777, 0640);
    CHECK_OK(file_write_durable(path_of("a"), STR_EMPTY, 0600, &err));
    buf_reset(&b);
    CHECK_OK(file_read(path_of("a"), &b, &err));
    CHECK_INT(b.len, 0);
    CHECK_INT(entries(test_dir()), 1);
    buf_release(&b);
}

TEST(file, a_write_that_fails_leaves_nothing_behind)
{
    struct err err = {0};

    CHECK_ERR(file_write_durable(path_of("no/such/a"), STR("x"), 0600, &err), ERR_NOT_FOUND);
    CHECK_OK(dir_make(path_of("folder/inside"), 0700, &err));
    CHECK(file_write_durable(path_of("folder"), STR("x"), 0600, &err) < 0);
    CHECK_INT(entries(test_dir()), 1);
}

enum { SIZE = 200000 };

struct replacing {
    char path[256];
    _Atomic(bool) stop;
    size_t reads;
};

static void read_always(void *ctx)
{
    struct replacing *r = ctx;
    struct err err = {0};
    struct buf b = {0};

    do {
        buf_reset(&b);
        CHECK_OK(file_read(r->path, &b, &err));
        CHECK_INT(b.len, SIZE);
        for (size_t i = 1; i < b.len; i++)
            CHECK(b.p[i] == b.p[0]);
        r->reads++;
    } while (!atomic_load(&r->stop));
    buf_release(&b);
}

TEST(file, a_reader_beside_a_durable_write_sees_the_old_or_the_new)
{
    struct replacing r = {0};
    struct thread reader;
    struct err err = {0};
    struct buf content = {0};

    snprintf(r.path, sizeof(r.path), "%s/f", test_dir());
    memset(buf_reserve(&content, SIZE), 'a', SIZE);
    buf_commit(&content, SIZE);
    CHECK_OK(file_write_durable(r.path, buf_str(&content), 0600, &err));
    CHECK_OK(thread_start(&reader, "reader", 0, read_always, &r, &err));
    for (int i = 0; i < 20; i++) {
        memset(content.p, 'a' + i, SIZE);
        CHECK_OK(file_write_durable(r.path, buf_str(&content), 0600, &err));
    }
    atomic_store(&r.stop, true);
    thread_join(&reader);
    CHECK(r.reads > 0);
    buf_release(&content);
}

TEST(file, reading_is_limited_and_says_what_is_missing)
{
    struct err err = {0};
    struct buf b = BUF_INIT(3);

    CHECK_ERR(file_read(path_of("none"), &b, &err), ERR_NOT_FOUND);
    CHECK(strstr(err.text, "none"));
    CHECK_OK(file_write_durable(path_of("a"), STR("four"), 0600, &err));
    CHECK_ERR(file_read(path_of("a"), &b, &err), ERR_TOO_LARGE);
    CHECK(file_exists(path_of("a")) && !file_exists(path_of("none")));
    buf_release(&b);
}

TEST(file, whole_reads_and_writes_at_a_place)
{
    struct err err = {0};
    char got[4] = "";
    int fd = open(path_of("a"), O_RDWR | O_CREAT, 0600);

    CHECK(fd >= 0);
    CHECK_OK(file_write_all(fd, "0123456789", 10, &err));
    CHECK_OK(file_sync(fd, &err));
    CHECK_OK(file_pread_full(fd, got, 3, 7, &err));
    CHECK_STR(str_z(got), STR("789"));
    CHECK_ERR(file_pread_full(fd, got, 3, 8, &err), ERR_CORRUPT);
    fd_close(&fd);
    CHECK_INT(fd, -1);
    fd_close(&fd);
}

/* What a process of its own gets when it locks `path`; checks that the text names `pid`. */
static int lock_elsewhere(const char *path, pid_t pid)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct err err = {0};
        char number[16];
        int fd = -1, code = file_lock(&fd, path, &err);
        snprintf(number, sizeof(number), "%d", pid);
        _exit(code == ERR_IN_USE && !strstr(err.text, number) ? 99 : -code);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

TEST(file, a_lock_keeps_other_processes_out_until_closed)
{
    struct err err = {0};
    struct stat st;
    int fd = -1;

    CHECK_INT(lock_elsewhere(path_of("lock"), 0), 0); /* that process is gone, and its lock */
    CHECK_OK(file_lock(&fd, path_of("lock"), &err));
    CHECK_INT(stat(path_of("lock"), &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_ERR(lock_elsewhere(path_of("lock"), getpid()), ERR_IN_USE);
    fd_close(&fd);
    CHECK_INT(lock_elsewhere(path_of("lock"), 0), 0);
    CHECK_ERR(file_lock(&fd, path_of("no/such/lock"), &err), ERR_NOT_FOUND);
}

TEST(file, folders_are_made_with_their_parents)
{
    struct err err = {0};
    struct stat st;

    CHECK_OK(dir_make(path_of("a/b/c"), 0700, &err));
    CHECK_OK(dir_make(path_of("a/b/c"), 0700, &err));
    CHECK_INT(stat(path_of("a/b/c"), &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
    CHECK_OK(file_write_durable(path_of("a/file"), STR(""), 0600, &err));
    CHECK(dir_make(path_of("a/file"), 0700, &err) < 0);
    CHECK(dir_make(path_of("a/file/below"), 0700, &err) < 0);
    CHECK_OK(dir_sync(path_of("a"), &err));
    CHECK_ERR(dir_sync(path_of("none"), &err), ERR_NOT_FOUND);
}

TEST(file, removing_a_tree_does_not_follow_links)
{
    struct err err = {0};

    CHECK_OK(dir_make(path_of("outside"), 0700, &err));
    CHECK_OK(file_write_durable(path_of("outside/kept"), STR("x"), 0600, &err));
    CHECK_OK(dir_make(path_of("tree/deep/er"), 0700, &err));
    CHECK_OK(file_write_durable(path_of("tree/deep/file"), STR("x"), 0400, &err));
    CHECK_INT(symlink(path_of("outside"), path_of("tree/deep/link")), 0);
    CHECK_INT(symlink("nowhere", path_of("tree/dangling")), 0);
    CHECK_OK(dir_remove_tree(path_of("tree"), &err));
    CHECK(!file_exists(path_of("tree")));
    CHECK(file_exists(path_of("outside/kept")));
    CHECK_OK(dir_remove_tree(path_of("tree"), &err));
    CHECK_INT(symlink(path_of("outside"), path_of("link")), 0);
    CHECK_OK(dir_remove_tree(path_of("link"), &err));
    CHECK(file_exists(path_of("outside/kept")));
}

TEST(file, free_space_is_no_more_than_there_is)
{
    struct err err = {0};
    uint64_t available = 1, total = 0;

    CHECK_OK(file_free_space(test_dir(), &available, &total, &err));
    CHECK(total > 0 && available <= total);
    CHECK_ERR(file_free_space(path_of("none"), &available, &total, &err), ERR_NOT_FOUND);
}
