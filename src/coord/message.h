/* A task as Asynq stores it: a message in protobuf's encoding (proto3). Asynq is the queue for Go
 * programs whose layout weir keeps (docs/queue.md). Fields that are not set are not written, and
 * unknown fields are skipped. No I/O. */
#ifndef COORD_MESSAGE_H
#define COORD_MESSAGE_H

#include "base/buf.h"
#include "coord/queue.h"

void message_write(struct buf *out, const struct task *t);
/* Reads a task's message. The task's strings point into `in`. ERR_PARSE: the message is malformed,
 * too large, or has no type or id. */
int message_read(struct task *out, struct str in, struct err *err) MUST_CHECK;

struct queue_weight;

struct server_info {
    struct str host, id;
    int pid, concurrency, active;
    const struct queue_weight *queues;
    size_t queue_count;
    const char *status;
    int64_t started_ms;
};
void server_message_write(struct buf *out, const struct server_info *s);
struct worker_info {
    struct str host, server_id;
    int pid;
    const struct task *task;
    int64_t started_ms, deadline_ms;
};
void worker_message_write(struct buf *out, const struct worker_info *w);

#endif
