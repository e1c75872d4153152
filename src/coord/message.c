/* Reads and writes tasks as Asynq's messages in protobuf's encoding. */
#include "coord/message.h"
#include "base/bytes.h"
#include "base/clock.h"

#include "coord/worker.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum { MESSAGE_MAX = 128 * 1024 };

/* --- writing --- */

static void message_put_number(struct buf *out, unsigned field, int64_t v)
{
    if (v == 0)
        return;
    varint_append(out, field << 3 | WIRE_VARINT);
    varint_append(out, (uint64_t)v);
}

static void message_put_bytes(struct buf *out, unsigned field, struct str s)
{
    if (s.len == 0)
        return;
    varint_append(out, field << 3 | WIRE_BYTES);
    varint_append(out, s.len);
    buf_append_str(out, s);
}

/* Appends a google.protobuf.Timestamp. */
static void message_put_time(struct buf *out, unsigned field, int64_t ms)
{
    struct buf inner = {0};

    if (ms == 0)
        return;
    message_put_number(&inner, 1, ms / MS_PER_S);
    message_put_number(&inner, 2, ms % 1000 * 1000000);
    message_put_bytes(out, field, buf_str(&inner));
    buf_release(&inner);
}

void message_write(struct buf *out, const struct task *t)
{
    message_put_bytes(out, 1, t->type);
    message_put_bytes(out, 2, t->payload);
    message_put_bytes(out, 3, t->id);
    message_put_bytes(out, 4, t->queue);
    message_put_number(out, 5, t->retry_max);
    message_put_number(out, 6, t->retried);
    message_put_bytes(out, 7, t->error);
    message_put_number(out, 8, t->timeout_s);
    message_put_number(out, 9, t->deadline_s);
    message_put_bytes(out, 10, t->unique_key);
    message_put_number(out, 11, t->last_failed_s);
    message_put_number(out, 12, t->retention_s);
    message_put_number(out, 13, t->completed_s);
}

static void message_put_queues(struct buf *out, const struct server_info *s)
{
    struct buf entry = {0};

    for (size_t i = 0; i < s->queue_count; i++) {
        buf_reset(&entry);
        message_put_bytes(&entry, 1, str_z(s->queues[i].name));
        message_put_number(&entry, 2, s->queues[i].weight);
        message_put_bytes(out, 5, buf_str(&entry));
    }
    buf_release(&entry);
}

void server_message_write(struct buf *out, const struct server_info *s)
{
    message_put_bytes(out, 1, s->host);
    message_put_number(out, 2, s->pid);
    message_put_bytes(out, 3, s->id);
    message_put_number(out, 4, s->concurrency);
    message_put_queues(out, s);
    message_put_bytes(out, 7, str_z(s->status));
    message_put_time(out, 8, s->started_ms);
    message_put_number(out, 9, s->active);
}

void worker_message_write(struct buf *out, const struct worker_info *w)
{
    message_put_bytes(out, 1, w->host);
    message_put_number(out, 2, w->pid);
    message_put_bytes(out, 3, w->server_id);
    message_put_bytes(out, 4, w->task->id);
    message_put_bytes(out, 5, w->task->type);
    message_put_bytes(out, 6, w->task->payload);
    message_put_bytes(out, 7, w->task->queue);
    message_put_time(out, 8, w->started_ms);
    message_put_time(out, 9, w->deadline_ms);
}

/* --- reading --- */

struct message_field {
    unsigned number;
    enum wire wire;
    uint64_t value;
    struct str bytes;
};

static bool message_take_length(struct str *in, uint64_t len, struct str *out)
{
    if (len > in->len)
        return false;
    *out = str_n(in->p, (size_t)len);
    *in = str_skip(*in, (size_t)len);
    return true;
}

static bool message_take_field(struct str *in, struct message_field *f)
{
    uint64_t tag;

    *f = (struct message_field){0};
    if (!varint_take(in, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return false;
    f->number = (unsigned)(tag >> 3);
    f->wire = (enum wire)(tag & 7);
    switch (f->wire) {
    case WIRE_VARINT:
        return varint_take(in, &f->value);
    case WIRE_BYTES:
        return varint_take(in, &f->value) && message_take_length(in, f->value, &f->bytes);
    case WIRE_FIXED64:
        return message_take_length(in, 8, &f->bytes);
    case WIRE_FIXED32:
        return message_take_length(in, 4, &f->bytes);
    }
    return false;
}

/* The member of struct task that a field is read into. Its type says which of these pointers is
 * set; the other two are NULL. */
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

static bool message_set_field(struct task *t, const struct message_field *f)
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
    struct message_field f;

    *out = (struct task){0};
    if (in.len > MESSAGE_MAX)
        return err_set(err, ERR_PARSE, "a task's message of %zu bytes", in.len);
    while (in.len)
        if (!message_take_field(&in, &f) || !message_set_field(out, &f))
            return err_set(err, ERR_PARSE, "a task's message is malformed");
    if (out->type.len == 0 || out->id.len == 0)
        return err_set(err, ERR_PARSE, "a task's message without type or id");
    return 0;
}
