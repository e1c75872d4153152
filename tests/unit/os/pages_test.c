/* Memory in whole pages: zeroed, and the system's again when it is freed. */
#include "os/pages.h"
#include "os/process.h"
#include "os/thread.h"
#include "unit/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 64, SIZE = 1024 * 1024 + 1 };

TEST(pages, are_zeroed_and_go_back_to_the_system)
{
    uint8_t *all[COUNT];
    struct process_use before, during, after;

    process_use(&before);
    for (int i = 0; i < COUNT; i++) {
        all[i] = pages_new(SIZE);
        CHECK(all[i][0] == 0 && all[i][SIZE - 1] == 0);
        memset(all[i], 1, SIZE);
    }
    process_use(&during);
    for (int i = 0; i < COUNT; i++)
        pages_free(all[i], SIZE);
    pages_free(NULL, SIZE);
    process_use(&after);
    CHECK(during.rss_bytes >= before.rss_bytes + COUNT / 2 * (uint64_t)SIZE);
    CHECK(after.rss_bytes + COUNT / 2 * (uint64_t)SIZE <= during.rss_bytes);
}

TEST(pages, of_a_file_outlive_their_mapping)
{
    char path[256];
    struct stat st;
    struct err err = {0};
    void *p = NULL;
    bool whole = true;

    snprintf(path, sizeof(path), "%s/mapped", test_dir());
    CHECK_OK(pages_map(&p, path, SIZE, &whole, &err));
    CHECK(!whole);
    CHECK(((char *)p)[SIZE - 1] == 0);
    memcpy(p, "hello", 5);
    pages_free(p, SIZE);
    CHECK_OK(pages_map(&p, path, SIZE, &whole, &err));
    CHECK(whole);
    CHECK(memcmp(p, "hello", 5) == 0);
    pages_free(p, SIZE);
    CHECK(stat(path, &st) == 0);
    CHECK_INT(st.st_size, SIZE);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(st.st_blocks * 512 >= SIZE, 1); /* no page is without room */
}

static void touch(void *p)
{
    memset(p, 1, SIZE);
}

/* As a disk that fails does: the page is not there when it is stored to. */
TEST(pages, of_a_file_that_the_disk_takes_back_end_the_process_with_a_word)
{
    char path[256], said[512] = "";
    int status = 0, ends[2];
    struct err err = {0};
    struct thread thread;
    char *p = NULL;
    bool whole;

    snprintf(path, sizeof(path), "%s/mapped", test_dir());
    CHECK_OK(pages_map((void **)&p, path, SIZE, &whole, &err));
    CHECK_STR(str_z(pages_file_at(p + SIZE - 1)), str_z(path));
    CHECK(pages_file_at(path) == NULL);
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        process_exit_on_bad_page(3);
        if (truncate(path, 0) == 0 && thread_start(&thread, "toucher", 0, touch, p, &err) == 0)
            thread_join(&thread);
        _exit(0);
    }
    close(ends[1]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(read(ends[0], said, sizeof(said) - 1) > 0);
    close(ends[0]);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 3);
    CHECK(strstr(said, path) != NULL);
    pages_free(p, SIZE);
    CHECK(pages_file_at(p) == NULL);
}

TEST(pages, of_a_file_that_cannot_be_made_are_refused)
{
    char path[256];
    struct err err = {0};
    void *p = NULL;
    bool whole = true;

    snprintf(path, sizeof(path), "%s/no/such/folder", test_dir());
    CHECK_ERR(pages_map(&p, path, SIZE, &whole, &err), ERR_NOT_FOUND);
}
