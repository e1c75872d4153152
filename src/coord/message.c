/* Reads and writes tasks as Asynq's messages in protobuf's encoding. */
#include "coord/message.h"
#include "base/bytes.h"
#include "base/proto.h"

#include "coord/worker.h"

enum { MESSAGE_MAX = 128 * 1024 };

/* --- writing --- */

void message_write(struct buf *out, const struct task *t)
{
    proto_put_bytes(out, 1, t->type);
    proto_put_bytes(out, 2, t->payload);
    proto_put_bytes(out, 3, t->id);
    proto_put_bytes(out, 4, t->queue);
    proto_put_number(out, 5, t->retry_max);
    proto_put_number(out, 6, t->retried);
    proto_put_bytes(out, 7, t->error);
    proto_put_number(out, 8, t->timeout_s);
    proto_put_number(out, 9, t->deadline_s);
    proto_put_bytes(out, 10, t->unique_key);
    proto_put_number(out, 11, t->last_failed_s);
    proto_put_number(out, 12, t->retention_s);
    proto_put_number(out, 13, t->completed_s);
}

static void message_put_queues(struct buf *out, const struct server_info *s)
{
    struct buf entry = {0};

    for (size_t i = 0; i < s->queue_count; i++) {
        buf_reset(&entry);
        proto_put_bytes(&entry, 1, str_z(s->queues[i].name));
        proto_put_number(&entry, 2, s->queues[i].weight);
        proto_put_bytes(out, 5, buf_str(&entry));
    }
    buf_release(&entry);
}

void server_message_write(struct buf *out, const struct server_info *s)
{
    proto_put_bytes(out, 1, s->host);
    proto_put_number(out, 2, s->pid);
    proto_put_bytes(out, 3, s->id);
    proto_put_number(out, 4, s->concurrency);
    message_put_queues(out, s);
    proto_put_bytes(out, 7, str_z(s->status));
    proto_put_time(out, 8, s->started_ms);
    proto_put_number(out, 9, s->active);
}

void worker_message_write(struct buf *out, const struct worker_info *w)
{
    proto_put_bytes(out, 1, w->host);
    proto_put_number(out, 2, w->pid);
    proto_put_bytes(out, 3, w->server_id);
    proto_put_bytes(out, 4, w->task->id);
    proto_put_bytes(out, 5, w->task->type);
    proto_put_bytes(out, 6, w->task->payload);
    proto_put_bytes(out, 7, w->task->queue);
    proto_put_time(out, 8, w->started_ms);
    proto_put_time(out, 9, w->deadline_ms);
}

/* --- reading --- */

/* The member of struct task that a field is read into. The field's type says which of these
 * pointers is set; the other two are NULL. */
struct message_slot {
    struct str *bytes;
    int64_t *number;
    int *small;
};

static struct message_slot message_slot_of(struct task *t, unsigned number)
{
    switch (number) {
    case 1:
        return (struct message_slot){.bytes = &t->type};
    case 2:
        return (struct message_slot){.bytes = &t->payload};
    case 3:
        return (struct message_slot){.bytes = &t->id};
    case 4:
        return (struct message_slot){.bytes = &t->queue};
    case 5:
        return (struct message_slot){.small = &t->retry_max};
    case 6:
        return (struct message_slot){.small = &t->retried};
    case 7:
        return (struct message_slot){.bytes = &t->error};
    case 8:
        return (struct message_slot){.number = &t->timeout_s};
    case 9:
        return (struct message_slot){.number = &t->deadline_s};
    case 10:
        return (struct message_slot){.bytes = &t->unique_key};
    case 11:
        return (struct message_slot){.number = &t->last_failed_s};
    case 12:
        return (struct message_slot){.number = &t->retention_s};
    case 13:
        return (struct message_slot){.number = &t->completed_s};
    default:
        return (struct message_slot){0};
    }
}

static bool message_set_field(struct task *t, const struct proto_value *f)
{
    struct message_slot to = message_slot_of(t, f->number);

    if (to.bytes && f->wire == WIRE_BYTES)
        *to.bytes = f->bytes;
    else if (to.number && f->wire == WIRE_VARINT)
        *to.number = (int64_t)f->value;
    else if (to.small && f->wire == WIRE_VARINT)
        *to.small = (int)(int32_t)(uint32_t)f->value;
    else
        return !to.bytes && !to.number && !to.small;
    return true;
}

int message_read(struct task *out, struct str in, struct err *err)
{
    struct proto_value f;

    *out = (struct task){0};
    if (in.len > MESSAGE_MAX)
        return err_set(err, ERR_PARSE, "a task's message of %zu bytes", in.len);
    while (in.len)
        if (!proto_take(&in, &f) || !message_set_field(out, &f))
            return err_set(err, ERR_PARSE, "a task's message is malformed");
    if (out->type.len == 0 || out->id.len == 0)
        return err_set(err, ERR_PARSE, "a task's message without type or id");
    return 0;
}
