/* Readers: the form in which the bodies of requests, answers and objects are passed on. A body is
 * never one whole buffer; it is a reader, from which the consumer reads bytes. If the bytes of a
 * reader come from a file range or a plain socket, the consumer can learn that. Then it may use
 * sendfile, copy_file_range or splice instead of copying the bytes through memory.
 *
 * A reader belongs to one thread at a time. */
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
    /* Reads up to `len` bytes into `to`; *got = 0 at the end. May block. */
    int (*read)(struct reader *r, void *to, size_t len, size_t *got, struct err *err);

    /* Returns true and sets *out when the rest of the body is a range of a regular file. After a
     * consumer has sent `n` bytes of that range itself, it calls skip(n). The function pointer may
     * be NULL. */
    bool (*as_file)(struct reader *r, struct file_range *out);

    /* Returns true when at least the next *len bytes come unchanged from the plain socket *fd.
     * Returns false for TLS, for a chunked body, and while bytes are buffered, which the consumer
     * reads first. After a consumer has spliced `n` bytes out of the socket, it calls skip(n). The
     * function pointer may be NULL. */
    bool (*as_socket)(struct reader *r, int *fd, uint64_t *len);

    /* Returns true and sets *out when the rest of the body is in memory. *out is borrowed until the
     * next call on the reader. After a consumer has used `n` of the bytes, it calls skip(n). The
     * function pointer may be NULL. */
    bool (*as_bytes)(struct reader *r, struct str *out);

    void (*skip)(struct reader *r, uint64_t n);

    /* Releases all that the reader holds. The function pointer may be NULL. */
    void (*close)(struct reader *r);
};

/* Embed this as the first member of a reader. */
struct reader {
    const struct reader_ops *ops;
};

int reader_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err) MUST_CHECK;
/* Reads exactly `len` bytes. ERR_CLOSED: the reader ended before that. */
int reader_read_full(struct reader *r, void *to, size_t len, struct err *err) MUST_CHECK;
/* Appends the rest of the body to `out`. ERR_TOO_LARGE: the rest does not fit within the buf's
 * limit. ERR_NO_MEMORY: there is no memory for the rest. */
int reader_read_all(struct reader *r, struct buf *out, struct err *err) MUST_CHECK;
/* Like reader_read_all(), but into an empty buf whose memory is charged to the budget as it grows.
 * Code that releases the buf gives out->cap bytes back to the budget. ERR_BUSY: the budget has too
 * little left, and the buf is empty again. */
int reader_read_within(struct reader *r, struct buf *out, struct budget *budget,
                       struct err *err) MUST_CHECK;
bool reader_as_file(struct reader *r, struct file_range *out);
bool reader_as_socket(struct reader *r, int *fd, uint64_t *len);
bool reader_as_bytes(struct reader *r, struct str *out);
void reader_skip(struct reader *r, uint64_t n);
void reader_close(struct reader *r); /* `r` may be NULL */

struct str_reader {
    struct reader reader;
    struct str rest; /* bytes not read yet; borrowed */
};
void str_reader_init(struct str_reader *r, struct str s);

struct file_reader {
    struct reader reader;
    struct file_range range; /* the part not read yet */
    bool owns_fd;
};
void file_reader_init(struct file_reader *r, struct file_range range, bool owns_fd);

/* A reader of at most the next `limit` bytes of another reader. Closing it does not close the other
 * reader. */
struct limit_reader {
    struct reader reader;
    struct reader *inner;
    uint64_t left;
};
void limit_reader_init(struct limit_reader *r, struct reader *inner, uint64_t limit);

#endif
