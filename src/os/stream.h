/* Readers and writers: how bodies flow. A body is never a buffer; it is a reader that the consumer
 * pulls. A reader that is really a file range or a plain socket says so, and the consumer may then
 * use sendfile, copy_file_range or splice instead of copying through memory.
 *
 * A reader or writer belongs to one thread at a time. */
#ifndef OS_STREAM_H
#define OS_STREAM_H

#include "base/budget.h"
#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

struct reader;

struct file_range {
    int fd; /* borrowed */
    off_t offset;
    uint64_t len;
};

struct reader_ops {
    /* Reads up to `len` bytes into `to`; *got = 0: the end. May block. */
    int (*read)(struct reader *r, void *to, size_t len, size_t *got, struct err *err);

    /* True when the rest of the body is a range of a regular file: *range. May be NULL. A consumer
     * that has sent `n` bytes of that range itself calls skip(n). */
    bool (*as_file)(struct reader *r, struct file_range *out);

    /* The next `*len` bytes (at least) come unchanged from this plain socket with nothing buffered
     * in front; false when not (TLS, chunked, buffered bytes: read those first). May be NULL.
     * After splicing `n` bytes out of it the consumer calls skip(n). */
    bool (*as_socket)(struct reader *r, int *fd, uint64_t *len);

    /* What is left is exactly these bytes in memory, borrowed until the next call on the reader;
     * false when it is not. May be NULL. After using `n` of them the consumer calls skip(n). */
    bool (*as_bytes)(struct reader *r, struct str *out);

    void (*skip)(struct reader *r, uint64_t n);

    /* Releases all that the reader holds. May be NULL. */
    void (*close)(struct reader *r);
};

/* Embed as the first member. */
struct reader {
    const struct reader_ops *ops;
};

int reader_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err) MUST_CHECK;
/* Reads exactly `len` bytes, or ERR_CLOSED when the reader ends early. */
int reader_read_full(struct reader *r, void *to, size_t len, struct err *err) MUST_CHECK;
/* Appends the rest of the body; ERR_TOO_LARGE past the buf's limit, ERR_NO_MEMORY. */
int reader_read_all(struct reader *r, struct buf *out, struct err *err) MUST_CHECK;
/* As reader_read_all(), into an empty buf whose memory the budget pays for as it grows: whoever
 * releases the buf gives out->cap bytes back to the budget. ERR_BUSY: the budget has nothing left;
 * then the buf is empty. */
int reader_read_within(struct reader *r, struct buf *out, struct budget *budget,
                       struct err *err) MUST_CHECK;
bool reader_as_file(struct reader *r, struct file_range *out);
bool reader_as_socket(struct reader *r, int *fd, uint64_t *len);
bool reader_as_bytes(struct reader *r, struct str *out);
void reader_skip(struct reader *r, uint64_t n);
void reader_close(struct reader *r); /* NULL is fine */

struct str_reader {
    struct reader reader;
    struct str rest; /* borrowed */
};
void str_reader_init(struct str_reader *r, struct str s);

struct file_reader {
    struct reader reader;
    struct file_range range; /* what is left */
    bool owns_fd;
};
void file_reader_init(struct file_reader *r, struct file_range range, bool owns_fd);

/* Passes through at most `limit` bytes, then ends. */
struct limit_reader {
    struct reader reader;
    struct reader *inner;
    uint64_t left;
};
void limit_reader_init(struct limit_reader *r, struct reader *inner, uint64_t limit);

#endif
