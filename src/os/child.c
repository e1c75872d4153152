/* Starts child processes with vfork and exec. fork would copy the page tables, which is slow in a
 * process with gigabytes mapped; vfork does not. Until exec the child shares the memory of our
 * process, so it only makes system calls. */
#include "os/child.h"
#include "base/clock.h"
#include "os/file.h"
#include "os/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_FREE_FD = 4 }; /* first descriptor after 0, 1, 2 and the failure pipe, which is 3 */

struct failure {
    int errnum;
    bool in_cwd; /* chdir failed, not exec */
};

/* Everything that the child needs, prepared before the fork. */
struct plan {
    const struct child_options *o;
    const char **env; /* owned; NULL: the caller gave the environment */
    int stdio[3];
    int failure_fd;
    pid_t parent;
};

/* Returns the environment of our process without the WEIR_* variables, because some of those are
 * secrets. The caller frees the array; the strings are borrowed. */
static const char **environment(void)
{
    size_t count = 0, kept = 0;
    const char **env;

    while (environ[count])
        count++;
    env = xcalloc(count + 1, sizeof(*env));
    for (size_t i = 0; i < count; i++)
        if (!str_starts(str_z(environ[i]), STR("WEIR_")))
            env[kept++] = environ[i];
    return env;
}

/* Moves a descriptor to a higher number, away from the numbers that the child's descriptors get. */
static int raise_fd(int *fd)
{
    int higher;

    if (*fd < 0 || *fd >= FIRST_FREE_FD)
        return *fd < 0 ? -1 : 0;
    higher = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    fd_close(fd);
    *fd = higher;
    return higher < 0 ? -1 : 0;
}

static int child_make_pipe(int *read_end, int *write_end, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(err, errno, "making a pipe");
    *read_end = fds[0];
    *write_end = fds[1];
    if (raise_fd(read_end) < 0 || raise_fd(write_end) < 0)
        return err_errno(err, errno, "making a pipe");
    return 0;
}

/* Sets all signals back to their defaults: our handlers do not exist in the program that exec
 * starts, and an ignored signal would stay ignored. All signals are blocked since before the fork,
 * so none of our handlers runs in the child. */
static void reset_signals(void)
{
    const struct sigaction fallback = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        sigaction(i, &fallback, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

NORETURN static void in_child(const struct plan *plan)
{
    const struct child_options *o = plan->o;
    struct failure failure = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->parent)
        _exit(127);
    setpgid(0, 0);
    for (int i = 0; i < 3; i++)
        dup2(plan->stdio[i], i);
    dup3(plan->failure_fd, 3, O_CLOEXEC);
    close_range(FIRST_FREE_FD, ~0u, 0);
    if (o->cwd && chdir(o->cwd) < 0) {
        failure.in_cwd = true;
    } else {
        reset_signals();
        execvpe(o->argv[0], (char *const *)o->argv,
                (char *const *)(o->env ? o->env : (const char *const *)plan->env));
    }
    failure.errnum = errno;
    if (write(3, &failure, sizeof(failure)) < 0)
        _exit(126);
    _exit(127);
}

/* Forks (by vfork) and runs the child. The function is not inlined: the child runs on our stack,
 * and in an inlined copy it could overwrite values that the caller keeps there. */
static __attribute__((noinline)) pid_t spawn(const struct plan *plan)
{
    sigset_t all, old;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0)
        in_child(plan); /* NOLINT(clang-analyzer-unix.Vfork): it makes system calls only */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return pid;
}

/* Reads the error that the child sends when exec fails. When exec succeeds, the child sends
 * nothing. */
static int exec_result(int fd, const struct child_options *o, struct err *err)
{
    struct failure failure;
    ssize_t n;

    do
        n = read(fd, &failure, sizeof(failure));
    while (n < 0 && errno == EINTR);
    if (n != sizeof(failure))
        return 0;
    if (failure.in_cwd)
        return err_errno(err, failure.errnum, "running %s in %s", o->argv[0], o->cwd);
    return err_errno(err, failure.errnum, "running %s", o->argv[0]);
}

static int make_stdio(struct plan *plan, struct child *c, struct err *err)
{
    int *const ours[3] = {&c->in, &c->out, &c->err};

    for (int i = 0; i < 3; i++) {
        int *child_end = &plan->stdio[i], code = 0;
        if (!(plan->o->flags & 1u << i)) {
            *child_end = open("/dev/null", O_RDWR | O_CLOEXEC);
            if (raise_fd(child_end) < 0)
                code = err_errno(err, errno, "opening /dev/null");
        } else if (i == 0) {
            code = child_make_pipe(child_end, ours[i], err);
        } else {
            code = child_make_pipe(ours[i], child_end, err);
        }
        if (code < 0)
            return code;
    }
    return 0;
}

static void close_pipes(struct child *c)
{
    fd_close(&c->in);
    fd_close(&c->out);
    fd_close(&c->err);
}

static void reap(pid_t pid, int *status)
{
    int raw = 0;

    while (waitpid(pid, &raw, 0) < 0 && errno == EINTR)
        ;
    *status = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
}

int child_start(struct child *out, const struct child_options *o, struct err *err)
{
    struct child c = {.in = -1, .out = -1, .err = -1};
    struct plan plan = {.o = o, .stdio = {-1, -1, -1}, .failure_fd = -1, .parent = getpid()};
    int failure_read = -1, code, status;

    if (!o->env)
        plan.env = environment();
    code = make_stdio(&plan, &c, err);
    if (code == 0)
        code = child_make_pipe(&failure_read, &plan.failure_fd, err);
    if (code < 0)
        goto out;
    c.pid = spawn(&plan);
    if (c.pid < 0) {
        code = err_errno(err, errno, "starting %s", o->argv[0]);
        goto out;
    }
    fd_close(&plan.failure_fd);
    code = exec_result(failure_read, o, err);
    if (code < 0)
        reap(c.pid, &status);
out:
    fd_close(&failure_read);
    fd_close(&plan.failure_fd);
    for (int i = 0; i < 3; i++)
        fd_close(&plan.stdio[i]);
    free(plan.env);
    if (code < 0)
        close_pipes(&c);
    else
        *out = c;
    return code;
}

/* Waits until the child has ended, without reaping it. So its process id is not given to another
 * process. */
static int wait_end(const struct child *c, uint64_t deadline_ns, struct err *err)
{
    int fd = pidfd_open(c->pid, 0), code;

    if (fd < 0)
        return err_errno(err, errno, "waiting for process %d", c->pid);
    code = sock_wait(fd, POLLIN, deadline_ns, err);
    fd_close(&fd);
    return code;
}

int child_wait(struct child *c, int *status, uint64_t deadline_ns, struct err *err)
{
    int code;

    BUG_ON(c->pid <= 0);
    code = wait_end(c, deadline_ns, err);
    if (code < 0)
        return code;
    reap(c->pid, status);
    c->pid = 0;
    return 0;
}

void child_end(struct child *c, uint64_t deadline_ns)
{
    int status;

    if (c->pid > 0) {
        kill(-c->pid, SIGTERM);
        close_pipes(c);
        if (wait_end(c, deadline_ns, NULL) < 0)
            kill(c->pid, SIGKILL);
        /* The child is not reaped yet, so its process group id cannot have been given to other
         * processes. */
        kill(-c->pid, SIGKILL);
        reap(c->pid, &status);
    }
    close_pipes(c);
    c->pid = 0;
}

/* An exchange of data with a child. Our process writes and reads at the same time, so that neither
 * process waits with a full pipe for the other. */
struct exchange {
    struct child *c;
    const struct child_io *io;
    struct str input; /* bytes not written yet */
    char *piece;      /* room for bytes of io->more; NULL: there are none, or no more */
};

enum { CHILD_PIECE = 64 * 1024, CHILD_ASK_MS = 100 };

/* Reads the next bytes for the child. */
static int refill(struct exchange *x, struct err *err)
{
    size_t got;
    int code = reader_read(x->io->more, x->piece, CHILD_PIECE, &got, err);

    if (code == 0)
        x->input = str_n(x->piece, got);
    return code;
}

static int feed(struct exchange *x, struct err *err)
{
    int code = x->input.len == 0 && x->piece ? refill(x, err) : 0;

    if (code < 0)
        return code;
    if (x->input.len == 0) {
        fd_close(&x->c->in);
        return 0;
    }
    ssize_t n = write(x->c->in, x->input.p, x->input.len);

    if (n < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
        return err_errno(err, errno, "writing to a process");
    if (n > 0)
        x->input = str_skip(x->input, (size_t)n);
    /* If the child does not read all of its input (as head and grep -q do), this is not a
     * failure. */
    if ((x->input.len == 0 && !x->piece) || (n < 0 && errno == EPIPE))
        fd_close(&x->c->in);
    return 0;
}

static int child_gather(int *fd, struct buf *to, bool cut, struct err *err)
{
    char piece[16 * KIB];
    ssize_t n = read(*fd, piece, sizeof(piece));

    BUG_ON(!to);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return err_errno(err, errno, "reading from a process");
    if (n == 0)
        fd_close(fd);
    if (n > 0 && cut)
        n = (ssize_t)size_min((size_t)n, (to->max ? to->max : BUF_DEFAULT_MAX) - to->len);
    if (n > 0)
        buf_append(to, piece, (size_t)n);
    if (buf_error(to) < 0)
        return err_set(err, ERR_TOO_LARGE, "a process wrote more than %zu bytes",
                       to->max ? to->max : BUF_DEFAULT_MAX);
    return 0;
}

static int exchange_step(struct exchange *x, uint64_t deadline_ns, struct err *err)
{
    struct pollfd p[3] = {{x->c->in, POLLOUT, 0}, {x->c->out, POLLIN, 0}, {x->c->err, POLLIN, 0}};
    uint64_t now = clock_mono_ns();
    uint64_t ms = now < deadline_ns ? (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    uint64_t most = x->io->stop ? CHILD_ASK_MS : 1 << 30;
    int code = 0, n = poll(p, 3, (int)size_min(ms, most));

    if (x->io->stop && x->io->stop(x->io->ctx))
        return err_code(err, ERR_CANCELED);
    if (n < 0 && errno != EINTR)
        return err_errno(err, errno, "waiting for a process");
    if (n == 0 && ms == 0)
        return err_code(err, ERR_TIMEOUT);
    if (n <= 0)
        return 0;
    if (p[0].revents)
        code = feed(x, err);
    if (code == 0 && p[1].revents)
        code = child_gather(&x->c->out, x->io->out, x->io->cut, err);
    if (code == 0 && p[2].revents)
        code = child_gather(&x->c->err, x->io->err, x->io->cut, err);
    return code;
}

/* Runs the exchange to its end. A write to a process that has ended must not end our process, so
 * SIGPIPE is blocked in this thread, and a SIGPIPE that we caused is removed again. */
static int exchange_all(struct exchange *x, uint64_t deadline_ns, struct err *err)
{
    const struct timespec at_once = {0};
    sigset_t pipe_set, old, pending;
    int code = 0;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
    while (code == 0 && (x->c->in >= 0 || x->c->out >= 0 || x->c->err >= 0))
        code = exchange_step(x, deadline_ns, err);
    if (!sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe_set, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code;
}

static void set_nonblocking(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Waits for the end of a child whose pipes are closed, and calls stop() meanwhile. */
static int child_await(struct child *c, const struct child_io *io, int *status,
                       uint64_t deadline_ns, struct err *err)
{
    for (;;) {
        uint64_t next = clock_mono_ns() + CHILD_ASK_MS * NS_PER_MS;
        bool is_last = !io->stop || next >= deadline_ns;
        int code = child_wait(c, status, is_last ? deadline_ns : next, err);
        if (code != ERR_TIMEOUT || is_last)
            return code;
        if (io->stop(io->ctx))
            return err_code(err, ERR_CANCELED);
    }
}

int child_run(int *status, const struct child_options *o, const struct child_io *io,
              uint64_t deadline_ns, struct err *err)
{
    struct child_options with_pipes = *o;
    struct child c = {.in = -1, .out = -1, .err = -1};
    struct exchange x = {&c, io, io->in, NULL};
    int code;

    with_pipes.flags = (io->in.len || io->more ? CHILD_STDIN : 0u) | (io->out ? CHILD_STDOUT : 0u) |
                       (io->err ? CHILD_STDERR : 0u);
    code = child_start(&c, &with_pipes, err);
    if (code < 0)
        return code;
    set_nonblocking(c.in);
    set_nonblocking(c.out);
    set_nonblocking(c.err);
    x.piece = io->more ? xrealloc(NULL, CHILD_PIECE) : NULL;
    code = exchange_all(&x, deadline_ns, err);
    free(x.piece);
    if (code == 0)
        code = child_await(&c, io, status, deadline_ns, err);
    if (code < 0)
        err_wrap(err, code, "%s", o->argv[0]);
    child_end(&c, 0);
    return code;
}
