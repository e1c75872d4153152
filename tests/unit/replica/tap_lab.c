/* The parts of a weir that taps need. */
#include "unit/replica/tap_lab.h"
#include "unit/object/bucket_conformance.h"
#include "unit/server_db.h"

#include <sched.h>
#include <stdatomic.h>

static _Atomic(enum fault) fault;
static _Atomic(size_t) records;

static int record(struct replications *r, const struct record *rec, struct err *err)
{
    enum fault now = atomic_load(&fault);

    atomic_fetch_add(&records, 1);
    if (now == FAULT_REFUSE)
        return err_set(err, ERR_UNAVAILABLE, "so it was told");
    if (now == FAULT_MANY && rec->count > 1)
        return err_set(err, ERR_NO_MEMORY, "so it was told");
    int code = replication_record(r, rec, err);
    return code == 0 && now == FAULT_ANSWER ? err_set(err, ERR_TIMEOUT, "so it was told") : code;
}

static struct task first(struct arena *a, const struct replication_id *id, int priority)
{
    (void)id;
    return (struct task){
        .type = STR("first"), .id = STR("first"), .queue = arena_fmt(a, "events%d", priority + 1)};
}

static int forward(struct storage *s, const struct forward_request *r, struct exchange **out,
                   struct err *err)
{
    (void)s, (void)r, (void)out;
    return err_code(err, ERR_UNSUPPORTED);
}

void tap_lab_fault(enum fault wanted)
{
    atomic_store(&fault, wanted);
}

size_t tap_lab_records(void)
{
    return atomic_load(&records);
}

const char *tap_lab_journal(void)
{
    static _Thread_local char path[256];

    snprintf(path, sizeof(path), "%s/intents", test_dir());
    return path;
}

void tap_lab_with_journal(struct tap_lab *l)
{
    tap_lab_taps_close(l);
    l->journal = true;
    tap_lab_taps_open(l);
}

static int read_replications(void *ctx, struct err *err)
{
    return replications_refresh(ctx, err);
}

static int read_routes(void *ctx, struct err *err)
{
    return routes_reload(ctx, err);
}

void tap_lab_taps_open(struct tap_lab *l)
{
    l->lease = lease_new(&(struct lease_options){.config = l->stores[3], .needed = l->shared});
    lease_read_first(l->lease, read_replications, l->replications);
    lease_read_first(l->lease, read_routes, l->routes);
    struct taps_options o = {.replications = l->replications,
                             .queue = l->queue,
                             .first = first,
                             .locks = l->locks,
                             .routes = l->routes,
                             .config = l->stores[3],
                             .boot = str_z(l->boot),
                             .journal = l->journal ? tap_lab_journal() : NULL,
                             .lease = l->lease,
                             .postpone_ms = 50,
                             .record = record};
    struct err err = {0};

    CHECK_OK(taps_open(&l->taps, &o, &err));
    CHECK_OK(lease_start(l->lease, &err));
}

void tap_lab_taps_close(struct tap_lab *l)
{
    lease_stop(l->lease);
    taps_close(l->taps);
    lease_free(l->lease);
    l->taps = NULL;
    l->lease = NULL;
}

static void open_stores(struct tap_lab *l)
{
    struct err err = {0};

    CHECK_OK(server_db_open(&l->db, test_dir(), &err));
    for (int i = 0; i < STORE_DATABASES; i++)
        CHECK_OK(store_open_embedded(&l->stores[i], l->db, i, STORE_DURABLE, NULL, &err));
    CHECK_OK(store_join(l->stores, STORE_DATABASES, &err));
    l->queue = queue_new(l->stores[1]);
    struct replications_options o = {
        .app = l->stores[0], .queue = l->stores[1], .config = l->stores[3]};
    CHECK_OK(replications_open(&l->replications, &o, &err));
    CHECK_OK(locks_open(&l->locks, &(struct locks_options){.store = l->stores[2]}, &err));
}

void tap_lab_open(struct tap_lab *l)
{
    static const struct storage_ops far_ops = {
        .kind = "remote", .can = STORAGE_FORWARDS, .forward = forward};
    struct bucket_info info = {.name = STR("box"), .owner = STR("alice")};
    char folder[256];
    struct local_options local = {.name = "local", .folder = folder, .reserve_bytes = 1};
    struct err err = {0};

    *l = (struct tap_lab){
        .a = ARENA_INIT(0), .far = {.ops = &far_ops, .name = STR("far")}, .boot = "first"};
    tap_lab_fault(FAULT_NONE);
    open_stores(l);
    snprintf(folder, sizeof(folder), "%s/objects", test_dir());
    local.db = l->db;
    CHECK_OK(routes_open(&l->routes, l->stores[3], NULL, &err));
    CHECK_OK(routes_open_local(l->routes, &local, &err));
    l->local = routes_main(l->routes);
    CHECK_OK(l->local->ops->create_bucket(l->local, &info, &err));
    CHECK_OK(l->local->ops->open_bucket(&l->box, l->local, STR_EMPTY, info.name, &err));
    tap_lab_taps_open(l);
}

void tap_lab_close(struct tap_lab *l)
{
    tap_lab_taps_close(l);
    l->box->ops->unref(l->box);
    replications_close(l->replications);
    routes_close(l->routes);
    queue_free(l->queue);
    locks_close(l->locks);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(l->stores[i]);
    db_close(l->db);
    arena_release(&l->a);
}

void tap_lab_await_epoch(struct tap_lab *l)
{
    struct replication_view *view = NULL;
    struct err err = {0};

    CHECK_OK(replications_view(l->replications, &view, &err));
    while (taps_epoch(l->taps) < replication_view_epoch(view))
        sched_yield();
    replication_view_unref(view);
}

void tap_lab_replicate(struct tap_lab *l, const char *from, const char *bucket)
{
    struct replication_new n = {
        .id = {STR("alice"), str_z(bucket), str_z(from), STR("other"), STR_EMPTY},
        .init_done = *bucket};
    struct err err = {0};

    CHECK_OK(replication_add(l->replications, &n, str_z(from), &err));
    tap_lab_await_epoch(l);
}

void tap_lab_put(struct tap_lab *l, const char *key)
{
    lab_put(l->box, &l->a, key, STR("hello"));
}

size_t tap_lab_tasks(struct tap_lab *l, const char *queue, enum task_state state, const char *type)
{
    struct queue_page page = {.queue = str_z(queue), .state = state, .limit = 1000};
    struct arena a = ARENA_INIT(0); /* it is asked again and again */
    struct task_info *found = NULL;
    size_t count = 0, matching = 0;
    struct err err = {0};
    int code = queue_tasks(l->queue, &a, &page, &found, &count, &err);

    CHECK_OK(code == ERR_NOT_FOUND ? 0 : code);
    for (size_t i = 0; i < count; i++)
        matching += !*type || str_eq(found[i].task.type, str_z(type));
    arena_release(&a);
    return matching;
}

void tap_lab_await_tasks(struct tap_lab *l, const char *type, size_t count)
{
    while (tap_lab_tasks(l, "events1", TASK_PENDING, type) != count)
        sched_yield();
}

int64_t tap_lab_version(struct tap_lab *l, enum thing_kind kind, const char *bucket,
                        const char *key, const char *storage)
{
    struct thing thing = {.kind = kind, .bucket = str_z(bucket), .object = str_z(key)};
    struct place place = {.storage = str_z(storage)};
    struct arena a = ARENA_INIT(0);
    struct vector v;
    struct err err = {0};

    CHECK_OK(version_read(l->stores[0], &a, &thing, &v, &err));
    int64_t number = vector_at(&v, &place);
    arena_release(&a);
    return number;
}

size_t tap_lab_rows(struct tap_lab *l)
{
    struct arena a = ARENA_INIT(0);
    struct tapped *rows;
    size_t count = 0;
    struct err err = {0};

    CHECK_OK(local_tap_read(l->local, &a, 0, 1000, &rows, &count, &err));
    arena_release(&a);
    return count;
}

void tap_lab_await_no_rows(struct tap_lab *l)
{
    while (tap_lab_rows(l) > 0)
        sched_yield();
}
