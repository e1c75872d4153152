/* Messages of tasks: never crashes, what is read lies inside the input, and what was read is
 * written to something that reads the same. */
#include "coord/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct str in, struct str part)
{
    BUG_ON(part.len && (part.p < in.p || part.p + part.len > in.p + in.len));
}

static void check_same(const struct task *a, const struct task *b)
{
    BUG_ON(!str_eq(a->type, b->type) || !str_eq(a->payload, b->payload) || !str_eq(a->id, b->id));
    BUG_ON(!str_eq(a->queue, b->queue) || !str_eq(a->error, b->error));
    BUG_ON(!str_eq(a->unique_key, b->unique_key));
    BUG_ON(a->retry_max != b->retry_max || a->retried != b->retried);
    BUG_ON(a->timeout_s != b->timeout_s || a->deadline_s != b->deadline_s);
    BUG_ON(a->last_failed_s != b->last_failed_s || a->retention_s != b->retention_s);
    BUG_ON(a->completed_s != b->completed_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_n((const char *)data, size);
    struct buf again = {0};
    struct task t, back;
    struct err err = {0};

    if (message_read(&t, in, &err) < 0)
        return 0;
    check_inside(in, t.type);
    check_inside(in, t.payload);
    check_inside(in, t.id);
    message_write(&again, &t);
    BUG_ON(message_read(&back, buf_str(&again), &err) < 0);
    check_same(&t, &back);
    buf_release(&again);
    return 0;
}
