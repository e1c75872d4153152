/* Payloads of replication's tasks: whatever comes is refused, or keeps the limits and reads back
 * the same when it is written. The first byte says of which kind. */
#include "object/bucket.h"
#include "coord/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_limits(const struct task_payload *p, enum task_payload_kind kind)
{
    BUG_ON(!p->id.user.len || !p->id.from.len || !p->id.to.len || !p->id.bucket.len);
    BUG_ON(p->object.len > OBJECT_KEY_MAX || p->prefix.len > OBJECT_KEY_MAX);
    BUG_ON((kind == PAYLOAD_OBJECT || kind == PAYLOAD_COPY) && !p->object.len);
}

static void check_same(const struct task_payload *p, const struct task_payload *q)
{
    BUG_ON(!str_eq(p->id.user, q->id.user) || !str_eq(p->id.bucket, q->id.bucket));
    BUG_ON(!str_eq(p->id.from, q->id.from) || !str_eq(p->id.to, q->id.to));
    BUG_ON(!str_eq(p->id.to_bucket, q->id.to_bucket) || !str_eq(p->object, q->object));
    BUG_ON(!str_eq(p->version, q->version) || !str_eq(p->prefix, q->prefix));
    BUG_ON(p->size != q->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT(MIB);
    struct buf text = BUF_INIT(TASK_PAYLOAD_MAX);
    struct task_payload p, again;

    if (size < 1)
        return 0;
    enum task_payload_kind kind = (enum task_payload_kind)(data[0] % PAYLOAD_KINDS);
    if (task_payload_read(&p, &a, str_n(data + 1, size - 1), kind, NULL) == 0) {
        check_limits(&p, kind);
        task_payload_write(&text, &p, kind);
        BUG_ON(buf_error(&text) < 0);
        BUG_ON(task_payload_read(&again, &a, buf_str(&text), kind, NULL) < 0);
        check_same(&p, &again);
    }
    buf_release(&text);
    arena_release(&a);
    return 0;
}
