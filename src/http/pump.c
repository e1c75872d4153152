/* Sends the rest of a response, which is bytes in memory and then a file range, without ever
 * waiting for the peer. A small file is read into the buffer after the head, and one send takes
 * both; a large file is sent by sendfile.
 *
 * Reading a file may have to wait for a disk, and there are few fast workers. So a fast worker
 * reads only pages that are in memory (RWF_NOWAIT). Other pages are read on the blocking pool, one
 * piece at a time. Between two pieces no thread waits for the peer (docs/http.md [5]). */
#include "http/server_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sendfile.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { TURN = UNSENT_MAX }; /* bytes that are sent on one connection before others get a turn */

/* Whether the file is on tmpfs or ramfs, whose files are always in memory. Called when a file
 * system cannot tell which pages are in memory (EOPNOTSUPP). Any other such file system may be
 * slow. */
static bool is_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Reads like pread(). Without `may_wait` it returns ERR_AGAIN when it would have to wait for a
 * disk. *got = 0 at the end of the file. */
static int pump_read_file(int fd, void *to, size_t len, off_t at, bool may_wait, size_t *got)
{
    struct iovec part = {to, len};
    ssize_t n;

    *got = 0;
    do
        n = may_wait ? pread(fd, to, len, at) : preadv2(fd, &part, 1, at, RWF_NOWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && !may_wait && errno == EOPNOTSUPP && is_memory(fd))
        n = pread(fd, to, len, at);
    if (n < 0)
        return errno == EAGAIN || errno == EOPNOTSUPP ? ERR_AGAIN : ERR_IO;
    *got = (size_t)n;
    return 0;
}

static bool in_memory(const struct file_range *file, uint64_t len)
{
    char byte = 0;
    size_t got;

    return pump_read_file(file->fd, &byte, 1, file->offset, false, &got) == 0 &&
           pump_read_file(file->fd, &byte, 1, file->offset + (off_t)len - 1, false, &got) == 0;
}

/* Reads the next piece of the file into `out`. Returns PUMP_BROKEN when the file is shorter than
 * the Content-Length that was sent to the peer. */
static enum pump pump_load(struct http_request *req, bool may_read_disk)
{
    struct file_range *file = &req->file;
    size_t want = size_min(file->len, COPY_PIECE), got;
    char *to = buf_reserve(&req->out, want);
    int code;

    if (!to)
        return PUMP_BROKEN;
    code = pump_read_file(file->fd, to, want, file->offset, may_read_disk, &got);
    if (code == ERR_AGAIN)
        return PUMP_COLD;
    if (code < 0 || got == 0)
        return PUMP_BROKEN;
    buf_commit(&req->out, got);
    file->offset += (off_t)got;
    file->len -= got;
    req->sent += got;
    return PUMP_DONE;
}

static enum pump send_memory(struct http_request *req)
{
    while (req->out_at < req->out.len) {
        struct iovec part = {req->out.p + req->out_at, req->out.len - req->out_at};
        size_t sent;
        int code = conn_send_now(req->conn, &part, 1, req->file.len > 0, &sent);
        if (code < 0)
            return code == ERR_AGAIN ? PUMP_FULL : PUMP_BROKEN;
        req->out_at += sent;
    }
    buf_reset(&req->out);
    req->out_at = 0;
    return PUMP_DONE;
}

static enum pump send_range(struct http_request *req, bool may_read_disk)
{
    struct file_range *file = &req->file;
    size_t turn = size_min(file->len, TURN);

    if (!may_read_disk && !in_memory(file, turn))
        return PUMP_COLD;
    while (turn) {
        ssize_t n = sendfile(req->conn->fd, file->fd, &file->offset, turn);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return PUMP_FULL;
        if (n <= 0)
            return PUMP_BROKEN;
        conn_pushed(req->conn, (size_t)n);
        req->sent += (uint64_t)n;
        file->len -= (uint64_t)n;
        turn -= (size_t)n;
    }
    return file->len ? PUMP_TURN : PUMP_DONE;
}

/* Asks the kernel to read the pages of the next turn now, so that they are usually in memory by
 * then. */
static void read_ahead(const struct file_range *file)
{
    if (file->len)
        posix_fadvise(file->fd, file->offset, TURN, POSIX_FADV_WILLNEED);
}

enum pump pump_response(struct http_request *req, bool may_read_disk)
{
    enum pump result = PUMP_DONE;
    uint64_t turn = 0;

    if (req->conn->broken)
        return PUMP_BROKEN;
    if (!req->copy_file) {
        result = send_memory(req);
        if (result == PUMP_DONE && req->file.len)
            result = send_range(req, may_read_disk);
        if (may_read_disk && result != PUMP_BROKEN)
            read_ahead(&req->file);
        return result;
    }
    while (result == PUMP_DONE && (req->file.len || req->out_at < req->out.len)) {
        if (turn >= TURN)
            return PUMP_TURN;
        if (req->file.len && req->out.len - req->out_at < COPY_PIECE / 4)
            result = pump_load(req, may_read_disk);
        if (result == PUMP_DONE) {
            turn += req->out.len - req->out_at;
            result = send_memory(req);
        }
    }
    return result;
}
