/* Moves bytes from a reader to a plain socket: by sendfile from a file, by splice through a pipe
 * from a socket, otherwise by a copy. In the first two cases the bytes bypass the reader. If
 * something goes wrong there, because the file has become shorter, or the source has ended or
 * failed, reader_read() is called, which returns the right error. */
#include "http/upstream_int.h"
#include "base/clock.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sizes in bytes. A pipe of 256 KiB needs half the system calls of the default size, and the kernel
 * allows one user 256 such pipes. Below SPLICE_MIN, splicing costs more than copying. */
enum {
    COPY_SIZE = 64 * 1024,
    PIPE_SIZE = 256 * 1024,
    SPLICE_MIN = 64 * 1024,
    SENDFILE_MAX = 1024 * 1024,
};

void mover_init(struct mover *m, struct reader *from, int to, uint64_t timeout_ms)
{
    *m = (struct mover){.from = from, .to = to, .timeout_ms = timeout_ms, .pipe = {-1, -1}};
}

void mover_release(struct mover *m)
{
    fd_close(&m->pipe[0]);
    fd_close(&m->pipe[1]);
    free(m->copy);
    m->copy = NULL;
}

/* Waits for an event on one of `count` descriptors, at most for the mover's timeout. */
static int wait_any(struct mover *m, struct pollfd *fds, nfds_t count, struct err *err)
{
    uint64_t deadline = upstream_deadline(m->timeout_ms);

    for (;;) {
        uint64_t now = clock_mono_ns();
        int ms = now < deadline ? (int)((deadline - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
        int n = poll(fds, count, ms);
        if (n > 0)
            return 0;
        if (n == 0 && clock_mono_ns() >= deadline)
            return err_set(err, ERR_TIMEOUT, "no progress for %llu ms",
                           (unsigned long long)m->timeout_ms);
        if (n < 0 && errno != EINTR)
            return err_errno(err, errno, "waiting for a socket");
    }
}

/* Waits until `to` accepts more bytes. ERR_AGAIN: with `watch`, bytes can be read from `to`. */
static int wait_writable(struct mover *m, struct err *err)
{
    struct pollfd p = {.fd = m->to, .events = POLLOUT | (m->watch ? POLLIN : 0)};
    int rc = wait_any(m, &p, 1, err);

    if (rc == 0 && (p.revents & p.events & POLLIN))
        return ERR_AGAIN;
    return rc;
}

/* Waits until the source has bytes. ERR_AGAIN: with `watch`, bytes can be read from `to`. */
static int wait_readable(struct mover *m, int from, struct err *err)
{
    struct pollfd p[2] = {{.fd = from, .events = POLLIN}, {.fd = m->to, .events = POLLIN}};
    int rc = wait_any(m, p, m->watch ? 2 : 1, err);

    if (rc < 0)
        m->reader_failed = true;
    if (rc == 0 && p[0].revents == 0)
        return ERR_AGAIN;
    return rc;
}

/* Handles the result `n` of a send to `to`. Returns 0 when bytes were moved. It also returns 0 when
 * a signal has interrupted the send, or when the socket was full and this function has waited for
 * room; *moved stays 0 then, and the send must be tried again. Otherwise it returns an error. */
static int after_send(struct mover *m, ssize_t n, uint64_t *moved, struct err *err)
{
    if (n >= 0) {
        *moved = (uint64_t)n;
        return 0;
    }
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN)
        return wait_writable(m, err);
    return err_set(err, ERR_CLOSED, "sending: %s", strerrordesc_np(errno));
}

static int mover_send_pending(struct mover *m, uint64_t *moved, struct err *err)
{
    ssize_t n = send(m->to, m->pending.p, m->pending.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    int rc = after_send(m, n, moved, err);

    if (rc == 0)
        m->pending = str_skip(m->pending, *moved);
    return rc;
}

static int empty_pipe(struct mover *m, uint64_t *moved, struct err *err)
{
    ssize_t n =
        splice(m->pipe[0], NULL, m->to, NULL, m->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    int rc = after_send(m, n, moved, err);

    if (rc == 0)
        m->in_pipe -= *moved;
    return rc;
}

static int mover_copy_some(struct mover *m, uint64_t max, uint64_t *moved, bool *end,
                           struct err *err)
{
    size_t got = 0;

    if (!m->copy)
        m->copy = xrealloc(NULL, COPY_SIZE);
    int rc = reader_read(m->from, m->copy, max < COPY_SIZE ? (size_t)max : COPY_SIZE, &got, err);
    if (rc < 0) {
        m->reader_failed = true;
        return rc;
    }
    *end = got == 0;
    m->pending = str_n(m->copy, got);
    return got ? mover_send_pending(m, moved, err) : 0;
}

static int mover_send_file(struct mover *m, struct file_range range, uint64_t max, uint64_t *moved,
                           struct err *err)
{
    uint64_t len = range.len < max ? range.len : max;
    ssize_t n = sendfile(m->to, range.fd, &range.offset, size_min(len, SENDFILE_MAX));

    if (n == 0 || (n < 0 && (errno == EINVAL || errno == ENOSYS || errno == EIO))) {
        /* The file has become shorter, cannot be read, or does not support sendfile. */
        m->no_sendfile = true;
        return 0;
    }
    int rc = after_send(m, n, moved, err);
    if (rc == 0)
        reader_skip(m->from, *moved);
    return rc;
}

static bool mover_make_pipe(struct mover *m)
{
    if (m->pipe[0] >= 0)
        return true;
    if (pipe2(m->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        m->pipe[0] = m->pipe[1] = -1;
        return false;
    }
    fcntl(m->pipe[1], F_SETPIPE_SZ, PIPE_SIZE); /* the pipe stays smaller if the kernel refuses */
    return true;
}

/* Moves bytes from a socket into the pipe. *odd is true when splice did not work, so that
 * reader_read() must be called instead. */
static int fill_pipe(struct mover *m, int from, uint64_t len, bool *odd, struct err *err)
{
    ssize_t n = splice(from, NULL, m->pipe[1], NULL, len < PIPE_SIZE ? (size_t)len : PIPE_SIZE,
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    *odd = false;
    if (n > 0) {
        m->in_pipe = (size_t)n;
        reader_skip(m->from, (uint64_t)n);
        return 0;
    }
    if (n < 0 && errno == EAGAIN)
        return wait_readable(m, from, err);
    *odd = !(n < 0 && errno == EINTR);
    return 0;
}

/* Tries once to move bytes. When nothing was moved and *end is false, the caller tries again. */
static int try_step(struct mover *m, uint64_t max, uint64_t *moved, bool *end, struct err *err)
{
    struct file_range range;
    uint64_t len = 0;
    int from;

    if (m->pending.len)
        return mover_send_pending(m, moved, err);
    if (m->in_pipe)
        return empty_pipe(m, moved, err);
    if (!m->from || max == 0) {
        *end = true;
        return 0;
    }
    if (!m->no_sendfile && reader_as_file(m->from, &range) && range.len)
        return mover_send_file(m, range, max, moved, err);
    if (max >= SPLICE_MIN && reader_as_socket(m->from, &from, &len) && len >= SPLICE_MIN &&
        mover_make_pipe(m)) {
        bool odd;
        int rc = fill_pipe(m, from, len < max ? len : max, &odd, err);
        if (rc < 0 || !odd)
            return rc;
    }
    return mover_copy_some(m, max, moved, end, err);
}

int mover_step(struct mover *m, uint64_t max, uint64_t *moved, struct err *err)
{
    bool end = false;
    int rc = 0;

    *moved = 0;
    while (rc == 0 && *moved == 0 && !end)
        rc = try_step(m, max, moved, &end, err);
    return rc;
}

int stream_to_socket(struct reader *from, int fd, uint64_t len, uint64_t progress_timeout_ms,
                     uint64_t *sent, struct err *err)
{
    struct mover m;
    int rc = 0;

    *sent = 0;
    mover_init(&m, from, fd, progress_timeout_ms);
    while (*sent < len && rc == 0) {
        uint64_t moved;
        rc = mover_step(&m, len - *sent, &moved, err);
        if (rc == 0 && moved == 0)
            rc = err_set(err, ERR_CLOSED, "the stream ended %llu bytes early",
                         (unsigned long long)(len - *sent));
        *sent += moved;
    }
    mover_release(&m);
    return rc;
}
