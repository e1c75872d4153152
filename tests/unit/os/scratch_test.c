/* Scratch files and memory leave nothing behind. */
#include "os/scratch.h"
#include "os/file.h"
#include "unit/test.h"

#include <dirent.h>
#include <unistd.h>

static size_t files_in(const char *folder)
{
    DIR *d = opendir(folder);
    size_t count = 0;

    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

TEST(scratch, a_file_has_no_name)
{
    struct err err = {0};
    char back[5];
    int fd = -1;

    CHECK_OK(scratch_file(&fd, test_dir(), &err));
    CHECK_INT(files_in(test_dir()), 0);
    CHECK_OK(file_write_all(fd, "hello", 5, &err));
    CHECK_OK(file_pread_full(fd, back, 5, 0, &err));
    CHECK_STR(str_n(back, 5), STR("hello"));
    fd_close(&fd);
    CHECK_ERR(scratch_file(&fd, "/nonexistent", &err), ERR_NOT_FOUND);
}

TEST(scratch, memory_of_every_size_can_be_written)
{
    static const size_t sizes[] = {0, 1, SCRATCH_HEAP_MAX, SCRATCH_HEAP_MAX + 1, 5000001};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct scratch_mem m = {0};
        struct err err = {0};
        CHECK_OK(scratch_mem_init(&m, test_dir(), sizes[i], &err));
        CHECK(m.p);
        memset(m.p, 7, sizes[i]);
        scratch_mem_drop(&m); /* the bytes are kept, wherever they are */
        for (size_t at = 0; at < sizes[i]; at += 4096)
            CHECK_INT(m.p[at], 7);
        CHECK_INT(files_in(test_dir()), 0);
        scratch_mem_release(&m);
        scratch_mem_release(&m);
    }
}
