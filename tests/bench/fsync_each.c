/* What durable writes cost when each pays its own fsync: the baseline of db/durable64_*.
 *
 *     bench_fsync_each FILE append|place SECONDS THREADS
 *
 * append: records go to the end of one growing file, as a log's do, each followed by fdatasync;
 * several threads take turns, for the order of a log is one. place: each thread rewrites its own
 * blocks of a file that is already allocated and calls fdatasync beside the others, so the kernel
 * may merge their flushes: the most that a file system gives without any grouping of ours. */
#include "load.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = LOAD_KEY + LOAD_VALUE, PLACE = 1024 * 1024 };

struct log_file {
    int fd;
    pthread_mutex_t lock;
};

static void make_record(char out[RECORD], struct load_thread *t)
{
    uint64_t n = load_random(t) % 1000000;
    load_key(out, "key", n);
    load_value(out + LOAD_KEY, n);
}

static bool append(struct load_thread *t)
{
    struct log_file *log = t->ctx;
    char record[RECORD];

    make_record(record, t);
    pthread_mutex_lock(&log->lock);
    bool ok = write(log->fd, record, RECORD) == RECORD && fdatasync(log->fd) == 0;
    pthread_mutex_unlock(&log->lock);
    return ok;
}

static bool place(struct load_thread *t)
{
    struct log_file *log = t->ctx;
    char record[RECORD];
    off_t at = (off_t)t->index * PLACE + (off_t)(t->ops * RECORD % (PLACE - RECORD));

    make_record(record, t);
    return pwrite(log->fd, record, RECORD, at) == RECORD && fdatasync(log->fd) == 0;
}

static void allocate(int fd, int threads)
{
    static char zero[PLACE];

    for (int i = 0; i < threads; i++)
        if (pwrite(fd, zero, PLACE, (off_t)i * PLACE) != PLACE)
            load_fail("pwrite");
    if (fsync(fd) != 0)
        load_fail("fsync");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    struct log_file log = {open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600),
                           PTHREAD_MUTEX_INITIALIZER};
    if (log.fd < 0)
        load_fail(argv[1]);
    struct load l = {.threads = atoi(argv[4]), .seconds = atof(argv[3]), .ctx = &log};
    l.step = strcmp(argv[2], "append") == 0 ? append : place;
    if (l.step == place)
        allocate(log.fd, l.threads);
    int status = load_run(&l);
    unlink(argv[1]);
    return status;
}
