/* Child processes: starts a program, exchanges data with it, and ends it. No shell is involved. */
#ifndef OS_CHILD_H
#define OS_CHILD_H

#include "base/buf.h"
#include "base/err.h"
#include "os/stream.h"

#include <sys/types.h>

struct child {
    pid_t pid; /* 0: there is no child */
    int in;    /* write end of the child's stdin, or -1 */
    int out;   /* read end of the child's stdout, or -1 */
    int err;   /* read end of the child's stderr, or -1 */
};

/* Which of the child's descriptors are pipes to our process; the other descriptors are
 * /dev/null. */
enum child_flags { CHILD_STDIN = 1, CHILD_STDOUT = 2, CHILD_STDERR = 4 };

struct child_options {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
    const char *const *env;  /* exactly these "K=V"; NULL: our own environment without WEIR_* */
    const char *cwd;         /* working folder; NULL: our own */
    unsigned flags;
};

/* Starts a child with default signals and a process group of its own. The child inherits no
 * descriptors except its stdin, stdout and stderr. The kernel kills the child when the thread that
 * started it ends (PR_SET_PDEATHSIG), and therefore also when our process ends. So a long-lived
 * child must be started from a long-lived thread. ERR_NOT_FOUND: the program or cwd does not exist.
 * ERR_DENIED: the program may not be run. Our ends of the pipes are blocking descriptors and close
 * on exec. */
int child_start(struct child *out, const struct child_options *o, struct err *err) MUST_CHECK;

/* Waits until the child has ended. *status is the child's exit status (0 to 255), or 128 + the
 * number of the signal that ended it. After ERR_TIMEOUT the child still runs. The pipes stay open.
 */
int child_wait(struct child *c, int *status, uint64_t deadline_ns, struct err *err) MUST_CHECK;
/* Ends a child and closes the pipes. The function sends SIGTERM to the child's process group, waits
 * until the child has ended or the deadline has passed, sends SIGKILL to the group and reaps the
 * child. For a child that was reaped already or never started, it only closes the pipes. */
void child_end(struct child *c, uint64_t deadline_ns);

/* The bytes for the child's stdin, and the bufs that receive its stdout and stderr, each up to its
 * limit. If a buf is NULL, that output is dropped. */
struct child_io {
    struct str in;
    struct reader *more; /* further bytes for stdin, sent after `in`; NULL: none */
    struct buf *out, *err;
    bool cut; /* output past the limit of its buf is dropped, and not an error */
    /* Called several times a second; when it returns true, the child is killed. NULL: not
     * called. */
    bool (*stop)(void *ctx);
    void *ctx;
};

/* Starts a child, exchanges the data of `io` with it, and waits for its end. ERR_CANCELED: stop()
 * returned true. On this error, on ERR_TIMEOUT, on ERR_TOO_LARGE and on errors of the reader, the
 * child and all processes that it started are killed. `flags` of the options is ignored. */
int child_run(int *status, const struct child_options *o, const struct child_io *io,
              uint64_t deadline_ns, struct err *err) MUST_CHECK;

#endif
