/* child: exit codes, pipes without deadlock, deadlines, and nothing left over. */
#include "os/child.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/thread.h"
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t soon(void)
{
    return clock_mono_ns() + 30 * NS_PER_S;
}

static struct child_options sh(const char *script, const char **argv)
{
    argv[0] = "sh", argv[1] = "-c", argv[2] = script, argv[3] = NULL;
    return (struct child_options){.argv = argv};
}

/* The exit status of a shell script. */
static int status_of(const char *script)
{
    const char *argv[4];
    struct child_options o = sh(script, argv);
    struct err err = {0};
    int status = -1;

    CHECK_OK(child_run(&status, &o, &(struct child_io){0}, soon(), &err));
    return status;
}

static void check_output(const struct child_options *o, const char *want)
{
    struct err err = {0};
    struct buf out = {0};
    int status = -1;

    CHECK_OK(child_run(&status, o, &(struct child_io){.out = &out}, soon(), &err));
    CHECK_STR(buf_str(&out), str_z(want));
    CHECK_INT(status, 0);
    buf_release(&out);
}

TEST(child, our_own_settings_are_not_passed_on)
{
    setenv("WEIR_SECRET_KEY", "secret", 1);
    setenv("OTHER", "kept", 1);
    CHECK_INT(status_of("test -z \"$WEIR_SECRET_KEY\" -a \"$OTHER\" = kept"), 0);
}

TEST(child, exit_codes_and_signals_come_back)
{
    CHECK_INT(status_of("exit 0"), 0);
    CHECK_INT(status_of("exit 7"), 7);
    CHECK_INT(status_of("exit 255"), 255);
    CHECK_INT(status_of("kill -9 $$"), 128 + SIGKILL);
    CHECK_INT(status_of("kill -TERM $$"), 128 + SIGTERM);
}

TEST(child, a_program_that_cannot_be_run_is_an_error_here)
{
    struct err err = {0};
    struct child c;
    char path[256];
    const char *argv[] = {"weir-has-no-such-program", NULL};
    struct child_options o = {.argv = argv};

    CHECK_ERR(child_start(&c, &o, &err), ERR_NOT_FOUND);
    CHECK(strstr(err.text, "weir-has-no-such-program"));
    snprintf(path, sizeof(path), "%s/plain", test_dir());
    CHECK_OK(file_write_durable(path, STR("text"), 0600, &err));
    argv[0] = path;
    CHECK_ERR(child_start(&c, &o, &err), ERR_DENIED);
    argv[0] = "true";
    o.cwd = "/weir/has/no/such/folder";
    CHECK_ERR(child_start(&c, &o, &err), ERR_NOT_FOUND);
    CHECK(strstr(err.text, "/weir/has/no/such/folder"));
}

TEST(child, folder_and_environment_are_those_asked_for)
{
    const char *env[] = {"A=1", "B=two words", NULL};
    const char *argv[4];
    struct child_options o = sh("pwd; echo \"$A $B $HOME\"", argv);

    o.cwd = "/";
    o.env = env;
    check_output(&o, "/\n1 two words \n");
    setenv("TEST_WORD", "ours", 1);
    o = sh("echo $TEST_WORD", argv);
    check_output(&o, "ours\n");
}

TEST(child, large_input_and_output_pass_without_a_deadlock)
{
    enum { SIZE = 3 * 1024 * 1024 };
    const char *argv[4];
    struct child_options o = sh("tee /dev/stderr", argv);
    struct buf in = {0}, out = {0}, errout = {0};
    struct err err = {0};
    int status = -1;

    memset(buf_reserve(&in, SIZE), 'x', SIZE);
    buf_commit(&in, SIZE);
    CHECK_OK(child_run(&status, &o,
                       &(struct child_io){.in = buf_str(&in), .out = &out, .err = &errout}, soon(),
                       &err));
    CHECK_INT(status, 0);
    CHECK(str_eq(buf_str(&out), buf_str(&in)));
    CHECK(str_eq(buf_str(&errout), buf_str(&in)));
    buf_release(&in);
    buf_release(&out);
    buf_release(&errout);
}

TEST(child, one_that_does_not_read_its_input_has_not_failed)
{
    const char *argv[4];
    struct child_options o = sh("exec <&-; echo ready", argv);
    struct buf in = {0}, out = {0};
    struct err err = {0};
    sigset_t pending;
    int status = -1;

    memset(buf_reserve(&in, MIB), 'x', MIB);
    buf_commit(&in, MIB);
    CHECK_OK(
        child_run(&status, &o, &(struct child_io){.in = buf_str(&in), .out = &out}, soon(), &err));
    CHECK_INT(status, 0);
    CHECK_STR(buf_str(&out), STR("ready\n"));
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE));
    buf_release(&in);
    buf_release(&out);
}

TEST(child, too_much_output_or_time_ends_it)
{
    const char *argv[4];
    struct child_options o = sh("yes", argv);
    struct buf out = BUF_INIT(1000);
    struct err err = {0};
    int status = -1;

    CHECK_ERR(child_run(&status, &o, &(struct child_io){.out = &out}, soon(), &err), ERR_TOO_LARGE);
    buf_reset(&out);
    o = sh("sleep 1000", argv);
    CHECK_ERR(
        child_run(&status, &o, &(struct child_io){.out = &out}, clock_mono_ns() + 10000000, &err),
        ERR_TIMEOUT);
    CHECK(strstr(err.text, "sh: "));
    CHECK_ERR(child_run(&status, &o, &(struct child_io){0}, clock_mono_ns() + 10000000, &err),
              ERR_TIMEOUT);
    buf_release(&out);
}

TEST(child, input_comes_from_a_reader_behind_the_text)
{
    const char *argv[4];
    struct child_options o = sh("cat", argv);
    struct buf more = {0}, out = {0};
    struct str_reader r;
    struct err err = {0};
    int status = -1;

    for (int i = 0; i < 300000; i++)
        buf_append_char(&more, (char)('a' + i % 26));
    str_reader_init(&r, buf_str(&more));
    CHECK_OK(child_run(&status, &o,
                       &(struct child_io){.in = STR("first"), .more = &r.reader, .out = &out},
                       soon(), &err));
    CHECK_INT(status, 0);
    CHECK_INT(out.len, 300005);
    CHECK_STR(str_head(buf_str(&out), 8), STR("firstabc"));
    CHECK_STR(str_skip(buf_str(&out), 5), buf_str(&more));
    buf_release(&more);
    buf_release(&out);
}

TEST(child, output_past_the_limit_can_be_dropped)
{
    const char *argv[4];
    struct child_options o = sh("yes | head -c 200000; echo end >&2", argv);
    struct buf out = BUF_INIT(1000), said = BUF_INIT(2);
    struct err err = {0};
    int status = -1;

    CHECK_OK(child_run(&status, &o, &(struct child_io){.out = &out, .err = &said, .cut = true},
                       soon(), &err));
    CHECK_INT(status, 0);
    CHECK_INT(out.len, 1000);
    CHECK_STR(buf_str(&said), STR("en"));
    buf_release(&out);
    buf_release(&said);
}

static bool third_time(void *ctx)
{
    return ++*(int *)ctx == 3;
}

TEST(child, one_that_must_stop_is_ended)
{
    static const char *const scripts[] = {"sleep 1000", "exec >&- 2>&-; sleep 1000"};

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        const char *argv[4];
        struct child_options o = sh(scripts[i], argv);
        struct buf out = {0};
        struct err err = {0};
        int status = -1, asked = 0;
        CHECK_ERR(child_run(&status, &o,
                            &(struct child_io){.out = &out, .stop = third_time, .ctx = &asked},
                            soon(), &err),
                  ERR_CANCELED);
        CHECK_INT(asked, 3);
        buf_release(&out);
    }
}

TEST(child, waiting_past_the_deadline_leaves_it_running)
{
    const char *argv[] = {"sleep", "1000", NULL};
    struct child_options o = {.argv = argv};
    struct err err = {0};
    struct child c;
    int status;
    pid_t pid;

    CHECK_OK(child_start(&c, &o, &err));
    CHECK_ERR(child_wait(&c, &status, clock_mono_ns() + NS_PER_MS, &err), ERR_TIMEOUT);
    CHECK_INT(kill(c.pid, 0), 0);
    pid = c.pid;
    child_end(&c, soon());
    CHECK_INT(c.pid, 0);
    CHECK_INT(kill(pid, 0), -1);
    CHECK_INT(errno, ESRCH);
    child_end(&c, soon());
}

TEST(child, ending_takes_those_that_ignore_sigterm_and_what_they_started)
{
    const char *argv[4];
    struct child_options o = sh("trap '' TERM; sleep 1000 & echo ready; wait; wait", argv);
    struct err err = {0};
    struct child c;
    char text[6];
    int out;

    o.flags = CHILD_STDOUT;
    CHECK_OK(child_start(&c, &o, &err));
    CHECK_INT(read(c.out, text, 6), 6);
    out = dup(c.out);
    child_end(&c, clock_mono_ns() + NS_PER_MS);
    /* The end of the pipe is seen when the last process that could write to it is gone. */
    CHECK_INT(read(out, text, 1), 0);
    close(out);
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

TEST(child, no_descriptor_leaks_in_either_direction)
{
    const char *argv[4];
    struct child_options o = sh("ls /proc/self/fd | wc -l", argv), bad = {.argv = argv};
    struct err err = {0};
    struct child c;
    int fd = open("/dev/null", O_RDONLY), before, high = fcntl(fd, F_DUPFD, 100);

    CHECK(fd >= 0 && high >= 100);
    before = open_descriptors();
    for (int i = 0; i < 10; i++)
        check_output(&o, "4\n"); /* three, and the folder that ls reads */
    argv[0] = "weir-has-no-such-program";
    for (int i = 0; i < 10; i++)
        CHECK_ERR(child_start(&c, &bad, &err), ERR_NOT_FOUND);
    CHECK_INT(open_descriptors(), before);
    close(fd);
    close(high);
}

TEST(child, works_when_our_own_stdio_is_closed)
{
    const char *argv[] = {"cat", NULL};
    struct child_options o = {.argv = argv};
    struct err err = {0};
    struct buf out = {0};
    int status = -1, saved = dup(2);

    close(0);
    close(1);
    close(2);
    status =
        child_run(&status, &o, &(struct child_io){.in = STR("through"), .out = &out}, soon(), &err);
    dup2(saved, 2);
    close(saved);
    CHECK_INT(status, 0);
    CHECK_STR(buf_str(&out), STR("through"));
    buf_release(&out);
}

static void run_masks(void *ctx)
{
    /* Without signals 32 and 33, which are the C library's own and cannot be set. */
    const char *argv[] = {"sed", "-nE", "s/^(Sig(Blk|Ign):\t.{7})[01][08](.{7})$/\\100\\3/p",
                          "/proc/self/status", NULL};
    struct child_options o = {.argv = argv};

    (void)ctx;
    check_output(&o, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(child, signals_are_as_new_whatever_ours_are)
{
    struct thread t;
    struct err err = {0};

    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(thread_start(&t, "child", 0, run_masks, NULL, &err));
    thread_join(&t);
}

static void start_sleep(void *ctx)
{
    const char *argv[] = {"sleep", "1000", NULL};
    struct child_options o = {.argv = argv};
    struct err err = {0};
    CHECK_OK(child_start(ctx, &o, &err));
}

TEST(child, is_killed_when_the_thread_that_started_it_ends)
{
    struct thread t;
    struct err err = {0};
    struct child c;
    int status;

    CHECK_OK(thread_start(&t, "child", 0, start_sleep, &c, &err));
    thread_join(&t);
    CHECK_OK(child_wait(&c, &status, soon(), &err));
    CHECK_INT(status, 128 + SIGKILL);
    child_end(&c, soon());
}
