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

/* The keeper's life: it starts the server, waits for the end of the run, ends the server. */
static void keeper_main(pid_t run, const char *note)
{
    struct postgres_server server = {0};
    int run_fd = dup2((int)syscall(SYS_pidfd_open, run, 0), 3);
    struct pollfd ended = {.fd = run_fd, .events = POLLIN};

    alarm(0);
    close_range(4, ~0U, 0); /* the file of the lock among them */
    if (run_fd >= 0 && postgres_server_start(&server)) {
        note_write(note, server.url);
        while (poll(&ended, 1, -1) < 0 && errno == EINTR)
            ;
    } else {
        note_write(note, "");
    }
    unlink(note);
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

const char *postgres_shared_url(void)
{
    char statement[PATH_SIZE];

    shared_server(shared_admin);
    snprintf(shared_database, sizeof(shared_database), "test_%d", (int)getpid());
    snprintf(statement, sizeof(statement), "CREATE DATABASE %s", shared_database);
    CHECK(postgres_run(shared_admin, statement));
    const char *query = strchr(shared_admin, '?');
    snprintf(shared_url, sizeof(shared_url), "postgres://weir@/%s%s", shared_database, query);
    return shared_url;
}

void postgres_shared_drop(void)
{
    char statement[PATH_SIZE];

    snprintf(statement, sizeof(statement), "DROP DATABASE %s WITH (FORCE)", shared_database);
    CHECK(postgres_run(shared_admin, statement));
}
