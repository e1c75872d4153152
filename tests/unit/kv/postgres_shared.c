/* One PostgreSQL for all tests of a run. */
#include "unit/kv/postgres_shared.h"

#include "unit/kv/postgres_server.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 256 };

/* --- the keeper --- */

/* Tells the tests of this run where the server is: its URL is the content of this file. */
static void note_path(char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "/tmp/weir-postgres-run-%d", (int)getppid());
}

static void note_write(const char *path, const char *url)
{
    char next[PATH_SIZE + 8];
    FILE *f;

    snprintf(next, sizeof(next), "%s.new", path);
    f = fopen(next, "w");
    if (f) {
        fputs(url, f);
        fclose(f);
        (void)!rename(next, path);
    }
}

/* The file says whether the database that tests copy was made, and is the lock for that. */
static void copied_path(char out[PATH_SIZE + 16], const char *note)
{
    snprintf(out, PATH_SIZE + 16, "%s.copied", note);
}

static void copied_forget(const char *note)
{
    char path[PATH_SIZE + 16];

    copied_path(path, note);
    unlink(path);
}

/* The keeper's life: it starts the server, waits for the end of the run, ends the server. */
static void keeper_main(pid_t run, const char *note)
{
    struct postgres_server server = {0};
    int run_fd = dup2((int)syscall(SYS_pidfd_open, run, 0), 3);
    struct pollfd ended = {.fd = run_fd, .events = POLLIN};

    alarm(0);
    close_range(4, ~0U, 0); /* the file of the lock among them */
    copied_forget(note);    /* of an earlier run with the same number */
    if (run_fd >= 0 && postgres_server_start(&server)) {
        note_write(note, server.url);
        while (poll(&ended, 1, -1) < 0 && errno == EINTR)
            ;
    } else {
        note_write(note, "");
    }
    unlink(note);
    copied_forget(note);
    postgres_server_remove(&server);
    _exit(0);
}

static void keeper_start(const char *note)
{
    pid_t run = getppid(), pid = fork();

    if (pid == 0) {
        setsid();
        if (fork() == 0)
            keeper_main(run, note);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static bool note_read(const char *path, char out[PATH_SIZE])
{
    FILE *f = fopen(path, "r");
    bool found = f != NULL;

    out[0] = 0;
    if (f && !fgets(out, PATH_SIZE, f))
        out[0] = 0;
    if (f)
        fclose(f);
    return found;
}

/* The URL of the run's server, which the first caller starts. */
static void shared_server(char out[PATH_SIZE])
{
    char note[PATH_SIZE], lock[PATH_SIZE + 8];
    uint64_t since = 0;

    note_path(note);
    snprintf(lock, sizeof(lock), "%s.lock", note);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    if (!note_read(note, out))
        keeper_start(note);
    while (!note_read(note, out))
        CHECK(test_waits(&since));
    CHECK(out[0]); /* the server could not be started */
    unlink(lock);
    close(fd);
}

/* --- the tests --- */

static char shared_admin[PATH_SIZE], shared_database[32], shared_url[2 * PATH_SIZE];

/* Makes the database of this test as a copy of `from`. */
static const char *shared_make(const char *from)
{
    char statement[PATH_SIZE];

    snprintf(shared_database, sizeof(shared_database), "test_%d", (int)getpid());
    snprintf(statement, sizeof(statement), "CREATE DATABASE %s TEMPLATE %s", shared_database, from);
    CHECK(postgres_run(shared_admin, statement));
    const char *query = strchr(shared_admin, '?');
    snprintf(shared_url, sizeof(shared_url), "postgres://weir@/%s%s", shared_database, query);
    return shared_url;
}

const char *postgres_shared_url(void)
{
    shared_server(shared_admin);
    return shared_make("template1");
}

/* Makes the database that is copied. It has its name as soon as it is whole. */
static void copied_make(void (*fill)(const char *url))
{
    char url[2 * PATH_SIZE];

    CHECK(postgres_run(shared_admin, "DROP DATABASE IF EXISTS copied_later"));
    CHECK(postgres_run(shared_admin, "CREATE DATABASE copied_later"));
    snprintf(url, sizeof(url), "postgres://weir@/copied_later%s", strchr(shared_admin, '?'));
    fill(url);
    CHECK(postgres_run(url, "TRUNCATE kv"));
    CHECK(postgres_run(shared_admin, "ALTER DATABASE copied_later RENAME TO copied"));
}

const char *postgres_shared_copy_url(void (*fill)(const char *url))
{
    char note[PATH_SIZE], lock[PATH_SIZE + 16];

    shared_server(shared_admin);
    note_path(note);
    copied_path(lock, note);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
    if (lseek(fd, 0, SEEK_END) == 0) {
        copied_make(fill);
        CHECK_INT(write(fd, "made\n", 5), 5);
    }
    close(fd);
    return shared_make("copied");
}

void postgres_shared_drop(void)
{
    char statement[PATH_SIZE];

    snprintf(statement, sizeof(statement), "DROP DATABASE %s WITH (FORCE)", shared_database);
    CHECK(postgres_run(shared_admin, statement));
}
