/* Makes the tasks that concern a replication as a whole (replica/first.h). */
#include "replica/first.h"
#include "base/ids.h"

static struct task replication_task(struct arena *a, const char *type, const char *prefix,
                                    const struct replication_id *r)
{
    const struct str parts[] = {r->user, r->bucket, r->from, r->to, r->to_bucket};
    const struct task_payload p = {.id = *r};
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX), id = BUF_INIT(TASK_PAYLOAD_MAX);

    task_payload_write(&payload, &p, PAYLOAD_BUCKET);
    buf_append_z(&id, prefix);
    for (size_t i = 0; i < ARRAY_SIZE(parts) && (parts[i].len || i + 1 < ARRAY_SIZE(parts)); i++) {
        buf_append_char(&id, ':');
        store_key_part(&id, parts[i]);
    }
    struct task t = {.type = str_z(type),
                     .payload = arena_str(a, buf_str(&payload)),
                     .id = arena_str(a, buf_str(&id))};
    buf_release(&payload);
    buf_release(&id);
    return t;
}

struct task first_task_resync(struct arena *a, const struct replication_id *id)
{
    struct task t = replication_task(a, "replication:resync", "resync", id);

    t.queue = STR("migrate_bucket_list_obj");
    return t;
}

struct task first_task_clean(struct arena *a, const struct replication_id *id)
{
    struct task t = replication_task(a, "replication:clean", "clean", id);

    t.queue = STR("api");
    return t;
}

struct task first_task_user(struct arena *a, const struct replication_id *id)
{
    struct task t = replication_task(a, USER_TYPE, "user", id);
    char random[ID_HEX_LEN + 1];

    id_hex(random);
    t.id = arena_str(a, str_z(random));
    t.queue = STR("api");
    return t;
}

bool first_same(const struct replication_id *a, const struct replication_id *b)
{
    return str_eq(a->user, b->user) && str_eq(a->bucket, b->bucket) && str_eq(a->from, b->from) &&
           str_eq(a->to, b->to) && str_eq(a->to_bucket, b->to_bucket);
}
