/* This process: what it uses, and the supervisor's datagram; the rename that never replaces. */
#include "os/file.h"
#include "os/process.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

TEST(process, its_use_is_read)
{
    struct process_use use;

    process_use(&use);
    CHECK(use.rss_bytes > 100 * KIB);
    CHECK(use.files >= 3);
    CHECK(use.threads >= 1);
    CHECK(process_raise_files() >= use.files);
}

TEST(process, the_supervisor_gets_one_datagram)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char got[64];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", test_dir());
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    process_notify(STR("READY=1"));
    CHECK_INT(recv(fd, got, sizeof(got), 0), 7);
    CHECK_STR(str_n(got, 7), STR("READY=1"));
    close(fd);
    process_notify(STR("nobody listens"));
    setenv("NOTIFY_SOCKET", "not a socket", 1);
    process_notify(STR("nor here"));
}

TEST(file, a_rename_never_replaces)
{
    char one[128], two[128];
    struct err err = {0};

    snprintf(one, sizeof(one), "%s/one", test_dir());
    snprintf(two, sizeof(two), "%s/two", test_dir());
    CHECK_OK(dir_make(one, 0700, &err));
    CHECK_OK(dir_make(two, 0700, &err));
    CHECK_ERR(file_rename_new(one, two, &err), ERR_EXISTS);
    CHECK(file_exists(one));
    CHECK_OK(dir_remove_tree(two, &err));
    CHECK_OK(file_rename_new(one, two, &err));
    CHECK(!file_exists(one) && file_exists(two));
    CHECK_ERR(file_rename_new(one, two, &err), ERR_NOT_FOUND);
}

TEST(file, reading_stops_at_the_limit_even_when_the_file_never_ends)
{
    struct buf text = BUF_INIT(64 * KIB);
    struct err err = {0};

    CHECK_ERR(file_read("/dev/zero", &text, &err), ERR_TOO_LARGE);
    buf_release(&text);
}
