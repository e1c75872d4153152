/* Replications for tests. */
#include "unit/coord/replication_lab.h"

void repl_open(struct repl_lab *l, struct four *f)
{
    struct err err = {0};

    *l = (struct repl_lab){.f = f,
                           .app = f->stores[DB_APP],
                           .queue = f->stores[DB_QUEUE],
                           .config = f->stores[DB_CONFIG]};
    CHECK_OK(replications_open(
        &l->r,
        &(struct replications_options){.app = l->app, .queue = l->queue, .config = l->config},
        &err));
    l->tasks = queue_new(l->queue);
}

void repl_close(struct repl_lab *l)
{
    replications_close(l->r);
    queue_free(l->tasks);
    arena_release(&l->a);
}

struct replication_id repl_id(struct repl_lab *l, const char *words)
{
    struct str parts[5] = {0}, rest = str_z(words);

    for (int i = 0; i < 5 && str_token(&rest, " ", &parts[i]); i++)
        parts[i] = str_eq(parts[i], STR("-")) ? STR("") : arena_str(&l->a, parts[i]);
    return (struct replication_id){parts[0], parts[1], parts[2], parts[3], parts[4]};
}

int repl_try_add(struct repl_lab *l, const char *words, struct err *err)
{
    struct replication_new n = {.id = repl_id(l, words)};

    if (n.id.bucket.len)
        n.first = (struct task){.type = STR("bucket:create"),
                                .id = arena_fmt(&l->a, "cb:%s", words),
                                .queue = STR("events1")};
    return replication_add(l->r, &n, n.id.from, err);
}

void repl_add(struct repl_lab *l, const char *words)
{
    struct err err = {0};

    CHECK_OK(repl_try_add(l, words, &err));
}

void repl_remove(struct repl_lab *l, const char *words)
{
    struct replication_id id = repl_id(l, words);
    struct err err = {0};

    CHECK_OK(replication_remove(l->r, &id, &err));
}

struct replication_status repl_status(struct repl_lab *l, const char *words)
{
    struct replication_id id = repl_id(l, words);
    struct replication_status s = {0};
    struct err err = {0};

    CHECK_OK(replication_read(l->r, &l->a, &id, &s, &err));
    return s;
}

struct change repl_change(const char *storage, const char *bucket, const char *object)
{
    return (struct change){.thing = {THING_OBJECT, str_z(bucket), str_z(object), STR("")},
                           .place = {.storage = str_z(storage)},
                           .type = STR("object:sync")};
}

void repl_record(struct repl_lab *l, const char *storage, const char *bucket, const char *object)
{
    struct change c = repl_change(storage, bucket, object);
    struct err err = {0};

    CHECK_OK(replication_record(l->r, &(struct record){.changes = &c, .count = 1}, &err));
}

bool repl_take(struct repl_lab *l, const char *queue, struct task *out)
{
    struct str name = str_z(queue);
    struct err err = {0};
    int code = queue_take(l->tasks, &l->a, &name, 1, out, &err);

    if (code == ERR_NOT_FOUND)
        return false;
    CHECK_OK(code);
    return true;
}

size_t repl_drain(struct repl_lab *l, const char *queue)
{
    struct task t;
    struct err err = {0};
    size_t n = 0;

    for (; repl_take(l, queue, &t); n++)
        CHECK_OK(queue_done(l->tasks, &t, &err));
    return n;
}

size_t repl_from(struct repl_lab *l, const char *storage, const char *bucket)
{
    const struct replication *const *list;
    struct replication_view *view;
    struct err err = {0};

    CHECK_OK(replications_view(l->r, &view, &err));
    size_t n = replication_view_from(view, str_z(storage), str_z(bucket), &list);
    replication_view_unref(view);
    return n;
}
