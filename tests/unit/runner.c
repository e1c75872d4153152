/* Runs the registered tests: `unit_tests [-j N] [-t] [-v] [suite | suite.name | room/]...`. A name
 * that ends in a slash stands for all tests below tests/unit/NAME. N tests run at the same time
 * (2); -t prints how long each test took, -v prints the tests that passed, too. The folders of the
 * tests are made in TMPDIR, or in /tmp. */
#include "unit/test.h"

#include "base/clock.h"
#include "unit/db_templates.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT_SECONDS = 180, SKIPPED = 77, MAX_JOBS = 16, MAX_TESTS = 10000, PATH_BYTES = 128 };
enum { PAUSE_US = 2000, PATIENCE_MS = 50 * MS_PER_S };

struct job {
    pid_t pid;
    struct test *test;
    uint64_t began_ms;
    char dir[PATH_BYTES];
    char output[PATH_BYTES + 8];
};

static struct test *tests[MAX_TESTS];
static size_t test_count;
static struct job jobs[MAX_JOBS];
static int passed, failed, skipped;
static bool verbose, timed;
static char current_dir[PATH_BYTES];
static dev_t memory_device; /* where the tests' folders lie, if that is in memory; else 0 */

void test_register(struct test *t)
{
    BUG_ON(test_count == MAX_TESTS);
    tests[test_count++] = t;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    fflush(NULL);
    _exit(1);
}

bool test_waits(uint64_t *since)
{
    uint64_t now = clock_mono_ms();

    if (*since == 0)
        *since = now;
    usleep(PAUSE_US);
    return now - *since < PATIENCE_MS;
}

/* The database allocates megabytes ahead of its logs. A disk only takes note of that; in memory
 * each page is taken and cleared, which was a third of the time of all tests. So a test's folder in
 * memory refuses it. A file system that a test mounts itself, to fill it up, does not. RocksDB
 * calls fallocate, and programs with _FILE_OFFSET_BITS=64 call fallocate64 by that name in C. */
static int allocate(int fd, int mode, off_t offset, off_t bytes)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && st.st_dev == memory_device) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

int runner_fallocate(int fd, int mode, off_t offset, off_t bytes) __asm__("fallocate");
int runner_fallocate64(int fd, int mode, off_t offset, off_t bytes) __asm__("fallocate64");

int runner_fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    return allocate(fd, mode, offset, bytes);
}

int runner_fallocate64(int fd, int mode, off_t offset, off_t bytes)
{
    return allocate(fd, mode, offset, bytes);
}

const char *test_dir(void)
{
    return current_dir;
}

const char *test_need(const char *variable)
{
    const char *value = getenv(variable);
    if (!value || !*value) {
        fprintf(stderr, "needs %s\n", variable);
        _exit(SKIPPED);
    }
    return value;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void child(struct job *job)
{
    int fd = open(job->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
    memcpy(current_dir, job->dir, sizeof(current_dir));
    if (strstr(job->test->file, "/unit/db/"))
        db_templates_leave();
    alarm(job->test->seconds ? job->test->seconds : DEFAULT_SECONDS);
    job->test->fn();
    fflush(NULL);
    exit(0); /* not _exit: the leak checker runs at exit */
}

static const char *tests_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder ? folder : "/tmp";
}

static void find_memory_device(void)
{
    struct statfs fs;
    struct stat st;

    if (statfs(tests_folder(), &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
        stat(tests_folder(), &st) == 0)
        memory_device = st.st_dev;
}

static void start(struct job *job, struct test *t)
{
    snprintf(job->dir, sizeof(job->dir), "%s/weir-unit-XXXXXX", tests_folder());
    if (!mkdtemp(job->dir)) {
        perror("mkdtemp");
        exit(2);
    }
    memcpy(job->output, job->dir, sizeof(job->dir));
    memcpy(job->output + strlen(job->dir), ".out", 5);
    job->test = t;
    job->began_ms = clock_mono_ms();
    fflush(NULL);
    job->pid = fork();
    if (job->pid == 0)
        child(job);
}

static void show_output(const struct job *job)
{
    char line[4096];
    FILE *f = fopen(job->output, "r");
    while (f && fgets(line, sizeof(line), f))
        printf("    %s", line);
    if (f)
        fclose(f);
}

static double cpu_seconds(const struct rusage *used)
{
    return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
           (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / US_PER_S;
}

static void finish(struct job *job, int status, const struct rusage *used)
{
    bool skip = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;

    passed += ok;
    skipped += skip;
    failed += !ok && !skip;
    if (!ok || verbose)
        printf("%s %s.%s\n",
               ok     ? "ok  "
               : skip ? "skip"
                      : "FAIL",
               job->test->suite, job->test->name);
    if (!ok)
        show_output(job);
    if (WIFSIGNALED(status))
        printf("    %s\n",
               WTERMSIG(status) == SIGALRM ? "out of time" : strsignal(WTERMSIG(status)));
    if (timed)
        printf("took %.2f s, %.2f s of CPU: %s.%s\n",
               (double)(clock_mono_ms() - job->began_ms) / MS_PER_S, cpu_seconds(used),
               job->test->suite, job->test->name);
    nftw(job->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    unlink(job->output);
    job->pid = 0;
}

static void reap_one(void)
{
    int status;
    struct rusage used;
    pid_t pid = wait4(-1, &status, 0, &used);
    for (size_t i = 0; i < MAX_JOBS; i++)
        if (jobs[i].pid == pid && pid > 0)
            finish(&jobs[i], status, &used);
}

static struct job *free_job(size_t limit)
{
    for (;;) {
        for (size_t i = 0; i < limit; i++)
            if (!jobs[i].pid)
                return &jobs[i];
        reap_one();
    }
}

static bool is_named(const struct test *t, const char *name)
{
    char text[256];

    snprintf(text, sizeof(text), "/unit/%s", name);
    if (str_ends(str_z(name), STR("/")))
        return strstr(t->file, text) != NULL;
    snprintf(text, sizeof(text), "%s.%s", t->suite, t->name);
    return !strcmp(name, t->suite) || !strcmp(name, text);
}

static bool wanted(const struct test *t, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (is_named(t, names[i]))
            return true;
    return count == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct test *x = *(struct test *const *)a, *y = *(struct test *const *)b;
    int order = strcmp(x->suite, y->suite);
    return order ? order : strcmp(x->name, y->name);
}

int main(int argc, char **argv)
{
    size_t limit = 2;
    int opt;

    while ((opt = getopt(argc, argv, "j:tv")) != -1) {
        if (opt == 'j')
            limit = size_min(MAX_JOBS, size_max(1, strtoul(optarg, NULL, 10)));
        else if (opt == 't')
            timed = true;
        else if (opt == 'v')
            verbose = true;
        else
            return 2;
    }
    find_memory_device();
    db_templates_begin(tests_folder());
    qsort(tests, test_count, sizeof(*tests), by_name);
    for (size_t i = 0; i < test_count; i++)
        if (wanted(tests[i], argv + optind, argc - optind))
            start(free_job(limit), tests[i]);
    for (size_t i = 0; i < MAX_JOBS; i++)
        while (jobs[i].pid)
            reap_one();
    db_templates_end();
    if (passed + failed + skipped == 0)
        printf("no test matches; a suite's folder must be in the list of tests/meson.build\n");
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed || passed == 0;
}
