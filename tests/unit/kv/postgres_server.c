/* Starting and ending a PostgreSQL of the tests' own. */
#include "unit/kv/postgres_server.h"

#include "base/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PATH_SIZE = 256,
    START_TRIES = 600,
    START_PAUSE_US = 50000,
    START_AGAIN = 20,
    FIRST_PORT = 10240
};

/* --- programs --- */

/* Debian keeps the server's programs in a folder of their version, outside of PATH. */
static void program_path(char out[PATH_SIZE], const char *name)
{
    glob_t found;

    snprintf(out, PATH_SIZE, "/usr/lib/postgresql/*/bin/%s", name);
    if (glob(out, 0, NULL, &found) == 0)
        snprintf(out, PATH_SIZE, "%s", found.gl_pathv[found.gl_pathc - 1]);
    else
        snprintf(out, PATH_SIZE, "%s", name);
    globfree(&found);
}

/* PostgreSQL refuses to run as root. */
static void become_postgres(void)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;

    if (user && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(126);
}

/* Starts a program as the server's user, with its output into the file. It dies with us. */
static pid_t spawn_as_postgres(const char *const *argv, const char *output)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    int log = open(output, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    setpgid(0, 0);
    become_postgres();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user clears it, so it comes behind */
    if (getppid() != parent || chdir("/") != 0)
        _exit(1);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

static void show_file(const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "r");

    while (f && fgets(line, sizeof(line), f))
        fputs(line, stderr);
    if (f)
        fclose(f);
}

static bool run_as_postgres(const char *const *argv, const char *output)
{
    int status = -1;
    pid_t pid = spawn_as_postgres(argv, output);

    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return true;
    fprintf(stderr, "%s failed with status %d:\n", argv[0], status);
    show_file(output);
    return false;
}

/* --- a server --- */

bool postgres_run(const char *url, const char *statement)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *r = PQstatus(conn) == CONNECTION_OK ? PQexec(conn, statement) : NULL;
    ExecStatusType status = PQresultStatus(r);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;

    if (!good)
        fprintf(stderr, "%s: %s\n", statement, PQerrorMessage(conn));
    PQclear(r);
    PQfinish(conn);
    return good;
}

static bool folder_make(struct postgres_server *s)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    char data[PATH_SIZE], log[PATH_SIZE], initdb[PATH_SIZE];
    const char *argv[] = {initdb,
                          "-D",
                          data,
                          "-U",
                          "weir",
                          "-A",
                          "trust",
                          "-N",
                          "-E",
                          "SQL_ASCII",
                          "--locale",
                          "C",
                          "--no-instructions",
                          NULL};

    if (s->dir[0])
        return true;
    /* tests/run.py removes a folder of this name whose process is gone. */
    snprintf(s->dir, sizeof(s->dir), "%s/weir-test-postgres-%06llx-%d",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (unsigned long long)random_below(1 << 24), (int)getpid());
    if (mkdir(s->dir, 0700) != 0 || (user && chown(s->dir, user->pw_uid, user->pw_gid) != 0))
        return false;
    snprintf(data, sizeof(data), "%s/data", s->dir);
    snprintf(log, sizeof(log), "%s/log", s->dir);
    program_path(initdb, "initdb");
    return run_as_postgres(argv, log);
}

static bool server_answers(struct postgres_server *s)
{
    for (int i = 0; i < START_TRIES; i++) {
        int status;
        if (PQping(s->url) == PQPING_OK)
            return true;
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        usleep(START_PAUSE_US);
    }
    return false;
}

bool postgres_server_start(struct postgres_server *s)
{
    char program[PATH_SIZE], data[PATH_SIZE], log[PATH_SIZE], port[16];
    const char *argv[] = {program,
                          "-D",
                          data,
                          "-k",
                          s->dir,
                          "-p",
                          port,
                          "-c",
                          "listen_addresses=",
                          "-c",
                          s->durable ? "fsync=on" : "fsync=off",
                          "-c",
                          "max_connections=300",
                          "-c",
                          "shared_buffers=32MB",
                          "-c",
                          "max_wal_size=256MB",
                          NULL};

    if (!s->port)
        s->port = FIRST_PORT + (int)random_below(20000);
    if (!folder_make(s))
        return false;
    snprintf(data, sizeof(data), "%s/data", s->dir);
    snprintf(log, sizeof(log), "%s/log", s->dir);
    snprintf(port, sizeof(port), "%d", s->port);
    snprintf(s->url, sizeof(s->url), "postgres://weir@/postgres?host=%s&port=%d", s->dir, s->port);
    program_path(program, "postgres");
    /* Children of a server that was killed keep its shared memory for a moment. */
    for (int i = 0; i < START_AGAIN; i++) {
        s->pid = spawn_as_postgres(argv, log);
        if (server_answers(s))
            return true;
        usleep(START_PAUSE_US);
    }
    fprintf(stderr, "postgres did not start:\n");
    show_file(log);
    postgres_server_kill(s);
    return false;
}

static void server_end(struct postgres_server *s, int signal)
{
    if (!s->pid)
        return;
    kill(s->pid, signal);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void postgres_server_kill(struct postgres_server *s)
{
    server_end(s, SIGKILL);
}

void postgres_server_stop(struct postgres_server *s)
{
    server_end(s, SIGINT);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void postgres_server_remove(struct postgres_server *s)
{
    server_end(s, SIGQUIT);
    if (s->dir[0])
        nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
