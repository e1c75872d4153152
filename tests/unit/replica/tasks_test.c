/* The tasks of replication, run by a worker over both engines of the store. */
#include "replica/tasks/tasks.h"

#include "base/clock.h"
#include "coord/switch.h"
#include "coord/payload.h"
#include "meta/envelope.h"
#include "unit/replica/sides.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"
#include "unit/store/redis_test.h"

#include <sched.h>
#include <stdio.h>

/* Two storages, "one" and "two", and all that a worker needs. */
struct rig {
    struct four *f;
    struct sides s;
    struct storage *two;
    struct replications *r;
    struct queue *q;
    struct locks *locks;
    struct tasks *tasks;
    struct worker *w;
    struct replication_id id;
    double requests_per_second, bytes_per_second; /* limits of each storage; 0: none */
    int settled; /* how often a worker has waited for changes to be recorded */
};

/* How many copies may be missing before a listing waits, for ten seconds. */
static uint64_t outstanding_max = 100;

static struct storage *find(void *ctx, struct str name)
{
    struct rig *rig = ctx;

    if (str_eq(name, STR("one")))
        return rig->s.from->storage;
    return str_eq(name, STR("two")) ? rig->two : NULL;
}

static void limits(void *ctx, struct str storage, struct storage_limits *out)
{
    const struct rig *rig = ctx;

    *out = (struct storage_limits){rig->requests_per_second, rig->bytes_per_second};
}

/* What a client has written to the destination without a record is recorded at the first wait. */
static int settle(void *ctx, struct storage *s, struct err *err)
{
    struct rig *rig = ctx;
    struct change c = {.thing = {THING_OBJECT, STR("box"), STR("k"), STR_EMPTY},
                       .place = {STR("two"), STR_EMPTY},
                       .type = STR("object:sync")};

    CHECK(s == rig->two);
    return rig->settled++
               ? 0
               : replication_record(rig->r, &(struct record){.changes = &c, .count = 1}, err);
}

static void rig_work(struct rig *rig)
{
    struct task_handler handlers[TASKS_HANDLERS];
    struct worker_options o = {.queue = rig->q,
                               .queues = tasks_queues,
                               .queue_count = TASKS_QUEUES,
                               .handlers = handlers,
                               .handler_count = tasks_handlers(rig->tasks, handlers),
                               .threads = 4,
                               .grace_ms = 1};
    struct err err = {0};

    CHECK_OK(worker_start(&rig->w, &o, &err));
}

/* The destination has no bucket yet. */
static void rig_open_kind(struct rig *rig, struct four *f, enum side_kind to)
{
    *rig =
        (struct rig){.f = f, .id = {STR("owner"), STR("box"), STR("one"), STR("two"), STR_EMPTY}};
    struct store **d = f->stores;
    struct replications_options r = {
        .app = d[DB_APP], .queue = d[DB_QUEUE], .config = d[DB_CONFIG]};
    struct locks_options l = {.store = d[DB_LOCK]};
    struct err err = {0};

    sides_open(&rig->s, SIDE_LOCAL, to);
    struct storage *two = rig->two = rig->s.to->storage;
    CHECK_OK(two->ops->remove_bucket(two, STR("owner"), STR("box"), &err));
    CHECK_OK(replications_open(&rig->r, &r, &err));
    CHECK_OK(locks_open(&rig->locks, &l, &err));
    rig->q = queue_new(d[DB_QUEUE]);
    struct tasks_options t = {.replications = rig->r,
                              .app = d[DB_APP],
                              .lock = d[DB_LOCK],
                              .locks = rig->locks,
                              .queue = rig->q,
                              .find = find,
                              .limits = limits,
                              .settle = settle,
                              .ctx = rig,
                              .outstanding_max = outstanding_max};
    rig->tasks = tasks_new(&t);
}

static void rig_open(struct rig *rig, struct four *f)
{
    rig_open_kind(rig, f, SIDE_LOCAL);
}

static void rig_close(struct rig *rig)
{
    worker_stop(rig->w);
    tasks_free(rig->tasks);
    queue_free(rig->q);
    locks_close(rig->locks);
    replications_close(rig->r);
    sides_close(&rig->s);
}

/* A new handle of the destination's bucket, instead of the one that is gone. */
static void rig_reopen(struct rig *rig)
{
    struct str name = rig->id.to_bucket.len ? rig->id.to_bucket : STR("box");
    struct err err = {0};

    rig->s.to->ops->unref(rig->s.to);
    CHECK_OK(rig->two->ops->open_bucket(&rig->s.to, rig->two, STR("owner"), name, &err));
}

static void rig_add(struct rig *rig)
{
    struct replication_new n = {.id = rig->id, .first = tasks_first(&rig->s.a, &rig->id, 0)};
    struct err err = {0};

    CHECK_OK(replication_add(rig->r, &n, STR("one"), &err));
}

static struct replication_status rig_status(struct rig *rig)
{
    struct arena a = ARENA_INIT(0);
    struct replication_status s;
    struct err err = {0};

    CHECK_OK(replication_read(rig->r, &a, &rig->id, &s, &err));
    s.agent_url = STR_EMPTY;
    arena_release(&a);
    return s;
}

/* Wait; the test's own time limit bounds them. */
static void await_copied(struct rig *rig)
{
    struct replication_status s;

    do
        s = rig_status(rig);
    while (!replication_init_done(&s));
}

static void await_events(struct rig *rig, int64_t events)
{
    struct replication_status s;

    do
        s = rig_status(rig);
    while (s.events < events || s.events_done < s.events);
}

/* By the store's clock, in ms. */
static int64_t store_now(struct rig *rig)
{
    struct arena a = ARENA_INIT(0);
    struct reply *reply;
    struct err err = {0};
    uint64_t seconds = 0, micros = 0;

    CHECK_OK(store_call(rig->f->stores[DB_APP], &a, &reply, &err, STR("TIME")));
    CHECK_INT(reply->count, 2);
    CHECK_OK(str_u64(reply->items[0].str, &seconds));
    CHECK_OK(str_u64(reply->items[1].str, &micros));
    arena_release(&a);
    return (int64_t)(seconds * MS_PER_S + micros / US_PER_MS);
}

static void await_put_back(struct rig *rig)
{
    struct worker_stats stats;

    do
        worker_stats(rig->w, &stats);
    while (stats.put_back == 0);
}

static void record(struct rig *rig, enum thing_kind kind, const char *type, const char *key)
{
    struct change c = {.thing = {kind, STR("box"), str_z(key), STR_EMPTY},
                       .place = {STR("one"), STR_EMPTY},
                       .type = str_z(type)};
    struct record r = {.changes = &c, .count = 1};
    struct err err = {0};

    CHECK_OK(replication_record(rig->r, &r, &err));
}

static int64_t number_at(struct rig *rig, const char *key, const char *storage)
{
    struct arena a = ARENA_INIT(0);
    struct thing thing = {THING_OBJECT, STR("box"), str_z(key), STR_EMPTY};
    struct place place = {str_z(storage), STR_EMPTY};
    struct vector v;
    struct err err = {0};

    CHECK_OK(version_read(rig->f->stores[DB_APP], &a, &thing, &v, &err));
    int64_t number = vector_at(&v, &place);
    arena_release(&a);
    return number;
}

TEST_FOUR(tasks, the_initial_copy_brings_everything)
{
    static const char *const keys[] = {"a",        "a:t",  "b/",  "b/c",      "b/c/d",
                                       "b/c/e%41", "b//x", "c d", "\xc3\xbc", "z/z/z/z"};
    struct rig rig;
    uint64_t bytes = 0;

    rig_open(&rig, f);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        lab_put(rig.s.from, &rig.s.a, keys[i], str_z(keys[i]));
        bytes += strlen(keys[i]);
    }
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        sides_expect_same(&rig.s, keys[i]);
    struct replication_status s = rig_status(&rig);
    CHECK_INT(s.listed, ARRAY_SIZE(keys));
    CHECK_INT(s.done, ARRAY_SIZE(keys));
    CHECK_INT(s.failed, 0);
    CHECK_INT(s.bytes_listed, bytes);
    CHECK_INT(s.bytes_done, bytes);
    rig_close(&rig);
}

/* Small objects go together; one that another worker has goes by itself, and each counts once. */
TEST_FOUR(tasks, of_objects_that_go_together_one_that_is_locked_holds_up_nobody)
{
    struct rig rig;
    struct lock *held;
    struct err err = {0};

    rig_open(&rig, f);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%02d", i);
        lab_put(rig.s.from, &rig.s.a, key, STR("x"));
    }
    CHECK_OK(lock_take(&held, rig.locks, STR("lk:two:box:k42"), &err));
    rig_work(&rig);
    rig_add(&rig);
    while (rig_status(&rig).done < 99)
        ;
    check_reply(f->stores[DB_QUEUE],
                "HGET asynq:{migrate_obj_copy1}:t:mgr:co:one:two:box:k42 state", "\"scheduled\"");
    lock_release(held);
    await_copied(&rig);
    rig_reopen(&rig);
    sides_expect_same(&rig.s, "k42");
    sides_expect_same(&rig.s, "k99");
    struct replication_status s = rig_status(&rig);
    CHECK_INT(s.listed, 100);
    CHECK_INT(s.done, 100);
    CHECK_INT(s.bytes_listed, 100);
    CHECK_INT(s.bytes_done, 100);
    CHECK_INT(s.failed, 0);
    check_reply(f->stores[DB_LOCK], "DBSIZE", "0");
    rig_close(&rig);
}

TEST_FOUR(tasks, an_empty_bucket_counts_as_done)
{
    struct rig rig;

    rig_open(&rig, f);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    CHECK_INT(rig_status(&rig).listed, 0);
    rig_close(&rig);
}

TEST_FOUR(tasks, changes_follow_and_are_confirmed)
{
    struct rig rig;
    struct object_meta tags = {.tags = STR("a=1")};
    struct err err = {0};

    rig_open(&rig, f);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);

    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    record(&rig, THING_OBJECT, "object:sync", "k");
    await_events(&rig, 1);
    sides_expect_same(&rig.s, "k");
    CHECK_INT(number_at(&rig, "k", "one"), 1);
    CHECK_INT(number_at(&rig, "k", "two"), 1);

    CHECK_OK(rig.s.from->ops->set_meta(rig.s.from, &rig.s.a, STR("k"), STR_EMPTY, META_TAGS, &tags,
                                       NULL, &err));
    record(&rig, THING_OBJECT_TAGS, "object:sync:tags", "k");
    record(&rig, THING_OBJECT_ACL, "object:sync:acl", "k");
    await_events(&rig, 3);
    sides_expect_same(&rig.s, "k");

    lab_remove(rig.s.from, &rig.s.a, "k", STR_EMPTY);
    record(&rig, THING_OBJECT, "object:sync", "k");
    await_events(&rig, 4);
    lab_expect(rig.s.to, "k", STR_EMPTY, (struct str){0});
    CHECK_INT(number_at(&rig, "k", "two"), 2);
    rig_close(&rig);
}

TEST_FOUR(tasks, tags_of_an_object_that_is_not_there_yet_bring_it)
{
    struct rig rig;

    rig_open(&rig, f);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    record(&rig, THING_OBJECT_TAGS, "object:sync:tags", "k");
    await_events(&rig, 1);
    sides_expect_same(&rig.s, "k");
    rig_close(&rig);
}

/* The store loses all vectors and tasks, and objects are changed meanwhile. */
static void lose_data(struct rig *rig)
{
    struct reply *reply;
    struct err err = {0};

    worker_stop(rig->w);
    rig->w = NULL;
    record(rig, THING_OBJECT, "object:sync", "k1");
    CHECK_OK(store_call(rig->f->stores[DB_APP], &rig->s.a, &reply, &err, STR("FLUSHDB")));
    CHECK_OK(store_call(rig->f->stores[DB_QUEUE], &rig->s.a, &reply, &err, STR("FLUSHDB")));
    CHECK(rig_status(rig).events > rig_status(rig).events_done);
}

static void resync(struct rig *rig)
{
    struct task first = tasks_first(&rig->s.a, &rig->id, 0);
    struct err err = {0};

    CHECK_OK(replication_resync(rig->r, &rig->id, &first, false, &err));
    rig_work(rig);
    await_copied(rig);
    struct replication_status s = rig_status(rig);
    CHECK_INT(s.events, 0);
    CHECK_INT(s.events_done, 0);
    CHECK_INT(s.done, s.listed);
}

TEST_FOUR(tasks, a_resync_repairs_what_was_lost_on_both_sides)
{
    struct rig rig;
    char key[32];

    outstanding_max = 2000; /* no listing is to wait */
    rig_open(&rig, f);
    for (int i = 0; i < 1500; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        lab_put(rig.s.from, &rig.s.a, key, STR("x"));
    }
    lab_put(rig.s.from, &rig.s.a, "dir/a", STR("x"));
    lab_put(rig.s.from, &rig.s.a, "zoo/b/c", STR("x"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lose_data(&rig);
    lab_remove(rig.s.from, &rig.s.a, "k17", STR_EMPTY);
    lab_remove(rig.s.from, &rig.s.a, "k999", STR_EMPTY);
    lab_remove(rig.s.from, &rig.s.a, "dir/a", STR_EMPTY);
    lab_remove(rig.s.from, &rig.s.a, "zoo/b/c", STR_EMPTY);
    lab_put(rig.s.from, &rig.s.a, "k5", STR("another"));
    lab_put(rig.s.to, &rig.s.a, "stranger", STR("x"));
    resync(&rig);
    CHECK_INT(rig_status(&rig).listed, 1498 + 5);
    lab_expect(rig.s.to, "k17", STR_EMPTY, (struct str){0});
    lab_expect(rig.s.to, "k999", STR_EMPTY, (struct str){0});
    lab_expect(rig.s.to, "dir/a", STR_EMPTY, (struct str){0});
    lab_expect(rig.s.to, "zoo/b/c", STR_EMPTY, (struct str){0});
    lab_expect(rig.s.to, "stranger", STR_EMPTY, (struct str){0});
    sides_expect_same(&rig.s, "k5");
    sides_expect_same(&rig.s, "k1499");
    /* events count from nothing, and those that follow are seen */
    lab_put(rig.s.from, &rig.s.a, "k17", STR("again"));
    record(&rig, THING_OBJECT, "object:sync", "k17");
    await_events(&rig, 1);
    sides_expect_same(&rig.s, "k17");
    rig_close(&rig);
}

TEST_FOUR(tasks, a_resync_of_versions_removes_what_the_source_has_not)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f);
    CHECK_OK(rig.s.from->ops->set_versions(rig.s.from, true, &err));
    lab_put(rig.s.from, &rig.s.a, "a", STR("1"));
    struct put_result gone = lab_put(rig.s.from, &rig.s.a, "b", STR("1"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lose_data(&rig);
    lab_remove(rig.s.from, &rig.s.a, "b", gone.version);
    lab_put(rig.s.from, &rig.s.a, "a", STR("2"));
    resync(&rig);
    lab_expect_list(rig.s.to, &lab_everything, true, "a* a");
    rig_close(&rig);
}

/* Objects that the bucket had before it became a destination stay. */
TEST_FOUR(tasks, a_resync_leaves_what_a_bucket_of_another_name_had_before)
{
    struct rig rig;

    rig_open(&rig, f);
    rig.id.to_bucket = STR("copy");
    struct bucket *copy = lab_bucket(rig.two, "copy");
    lab_put(copy, &rig.s.a, "before", STR("x"));
    int64_t put_ms = sides_head(&rig.s, copy, "before").modified_ms;
    while (store_now(&rig) <= put_ms)
        ;
    lab_put(rig.s.from, &rig.s.a, "k", STR("x"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    lose_data(&rig);
    lab_remove(rig.s.from, &rig.s.a, "k", STR_EMPTY);
    resync(&rig);
    lab_expect(copy, "before", STR_EMPTY, STR("x"));
    lab_expect(copy, "k", STR_EMPTY, (struct str){0});
    copy->ops->unref(copy);
    rig_close(&rig);
}

TEST_FOUR(tasks, what_the_vector_says_is_there_is_not_looked_at)
{
    struct rig rig;
    struct thing thing = {THING_OBJECT, STR("box"), STR("k"), STR_EMPTY};
    struct place two = {STR("two"), STR_EMPTY};
    struct err err = {0};

    rig_open(&rig, f);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    worker_stop(rig.w);
    lab_put(rig.s.from, &rig.s.a, "k", STR("older"));
    lab_put(rig.s.to, &rig.s.a, "k", STR("newer"));
    record(&rig, THING_OBJECT, "object:sync", "k");
    CHECK_OK(version_bump(f->stores[DB_APP], &thing, &two, NULL, &err));
    rig_work(&rig);
    await_events(&rig, 1);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("newer"));
    rig_close(&rig);
}

TEST_FOUR(tasks, a_deleted_bucket_is_deleted_there)
{
    struct rig rig;
    struct storage *one, *two;
    struct bucket *b = NULL;
    struct err err = {0};

    rig_open(&rig, f);
    one = rig.s.locals[0];
    two = rig.s.locals[1];
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    /* a deletion that was recorded, and whose bucket is gone before its task runs */
    lab_remove(rig.s.from, &rig.s.a, "k", STR_EMPTY);
    CHECK_OK(one->ops->remove_bucket(one, STR("owner"), STR("box"), &err));
    record(&rig, THING_OBJECT, "object:sync", "k");
    record(&rig, THING_BUCKET, "bucket:delete", "");
    await_events(&rig, 2);
    CHECK_ERR(two->ops->open_bucket(&b, two, STR("owner"), STR("box"), &err), ERR_NO_BUCKET);
    rig_close(&rig);
}

static void add_policy(struct rig *rig, int priority)
{
    struct replication_new n = {.id = rig->id, .priority = priority};
    struct err err = {0};

    n.id.bucket = STR_EMPTY;
    CHECK_OK(replication_add(rig->r, &n, STR("one"), &err));
}

/* Waits until the command answers this; the test's own time limit bounds it. */
static void await_reply(struct store *s, const char *line, const char *want)
{
    const char *got;

    do {
        CHECK_INT(ask(s, line, &got), 0);
    } while (strcmp(got, want) != 0);
}

static void delete_source(struct rig *rig)
{
    struct storage *one = rig->s.locals[0];
    struct err err = {0};

    CHECK_OK(one->ops->remove_bucket(one, STR("owner"), STR("box"), &err));
    record(rig, THING_BUCKET, "bucket:delete", "");
}

/* P7 */
TEST_FOUR(tasks, the_replication_of_a_deleted_bucket_goes_if_a_policy_would_make_it_again)
{
    struct rig rig;
    struct storage *two;
    struct bucket *b = NULL;
    struct err err = {0};

    rig_open(&rig, f);
    two = rig.s.locals[1];
    add_policy(&rig, 0);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    delete_source(&rig);
    await_reply(f->stores[DB_CONFIG], "EXISTS p:repl_st:owner:box:one:two", "0");
    check_reply(f->stores[DB_CONFIG], "EXISTS p:repl:owner:box", "0");
    check_reply(f->stores[DB_CONFIG], "ZRANGE p:repl:owner 0 -1", "[\"one:two\"]");
    CHECK_ERR(two->ops->open_bucket(&b, two, STR("owner"), STR("box"), &err), ERR_NO_BUCKET);
    rig_close(&rig);
}

/* Nobody recorded the deletion, as the replication was not there yet. */
TEST_FOUR(tasks, the_replication_of_a_bucket_that_was_gone_before_it_was_copied_goes)
{
    struct rig rig;
    struct storage *one;
    struct err err = {0};

    rig_open(&rig, f);
    one = rig.s.locals[0];
    add_policy(&rig, 0);
    CHECK_OK(one->ops->remove_bucket(one, STR("owner"), STR("box"), &err));
    rig_add(&rig);
    record(&rig, THING_BUCKET, "bucket:create", "");
    rig_work(&rig);
    await_reply(f->stores[DB_CONFIG], "EXISTS p:repl_st:owner:box:one:two", "0");
    rig_close(&rig);
}

TEST_FOUR(tasks, the_replication_of_a_deleted_bucket_stays_if_no_policy_would_make_it_again)
{
    struct rig rig;

    rig_open(&rig, f);
    add_policy(&rig, 3); /* of another priority */
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    delete_source(&rig);
    await_events(&rig, 1);
    check_reply(f->stores[DB_CONFIG], "EXISTS p:repl_st:owner:box:one:two", "1");
    rig_close(&rig);
}

/* V4: nobody recorded what was changed between a removal and a new beginning. */
TEST_FOUR(tasks, what_one_of_before_has_left_in_the_vectors_is_not_believed)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f);
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    record(&rig, THING_OBJECT, "object:sync", "k");
    await_events(&rig, 1);
    CHECK_INT(number_at(&rig, "k", "two"), 1);
    CHECK_OK(replication_remove(rig.r, &rig.id, &err));
    lab_put(rig.s.from, &rig.s.a, "k", STR("changed"));
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("changed"));
    rig_close(&rig);
}

/* Tasks of objects that find no bucket leave it to bucket:delete, which finds one again. */
TEST_FOUR(tasks, what_a_deleted_bucket_left_goes_though_the_bucket_was_made_again)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f);
    struct storage *one = rig.s.locals[0];
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    lab_put(rig.s.from, &rig.s.a, "again", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lab_put(rig.s.to, &rig.s.a, "theirs", STR("x")); /* nobody recorded anything of it */
    lab_remove(rig.s.from, &rig.s.a, "k", STR_EMPTY);
    lab_remove(rig.s.from, &rig.s.a, "again", STR_EMPTY);
    CHECK_OK(one->ops->remove_bucket(one, STR("owner"), STR("box"), &err));
    record(&rig, THING_OBJECT, "object:sync", "k");
    record(&rig, THING_OBJECT, "object:sync", "again");
    await_events(&rig, 2);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("one"));

    struct bucket *made = lab_bucket(one, "box");
    lab_put(made, &rig.s.a, "again", STR("two"));
    record(&rig, THING_BUCKET, "bucket:create", "");
    await_events(&rig, 3);
    record(&rig, THING_BUCKET, "bucket:delete", "");
    await_events(&rig, 4);
    lab_expect(rig.s.to, "k", STR_EMPTY, (struct str){0});
    lab_expect(rig.s.to, "again", STR_EMPTY, STR("two"));
    lab_expect(rig.s.to, "theirs", STR_EMPTY, STR("x"));
    made->ops->unref(made);
    rig_close(&rig);
}

static bool is_there(struct rig *rig, const char *key)
{
    struct bucket *to = rig->s.to;
    struct get_result got;
    struct err err = {0};
    int code = to->ops->head(to, &rig->s.a, str_z(key), STR_EMPTY, NULL, &got, &err);

    CHECK(code == 0 || code == ERR_NOT_FOUND);
    return code == 0;
}

/* The deletion waits for the lock of one object when the bucket is made again. */
TEST_FOUR(tasks, a_copy_into_a_bucket_that_is_being_emptied_stays)
{
    struct rig rig;
    struct err err = {0};
    struct buf key = {0};
    struct lock *lock;

    rig_open(&rig, f);
    struct storage *one = rig.s.locals[0];
    lab_put(rig.s.from, &rig.s.a, "a", STR("one"));
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lab_remove(rig.s.from, &rig.s.a, "a", STR_EMPTY);
    lab_remove(rig.s.from, &rig.s.a, "k", STR_EMPTY);
    CHECK_OK(one->ops->remove_bucket(one, STR("owner"), STR("box"), &err));
    lock_key_object(&key, STR("two"), STR("box"), STR("k"));
    CHECK_OK(lock_take(&lock, rig.locks, buf_str(&key), &err));
    record(&rig, THING_BUCKET, "bucket:delete", "");
    while (is_there(&rig, "a"))
        sched_yield();

    struct bucket *made = lab_bucket(one, "box");
    lab_put(made, &rig.s.a, "k", STR("two"));
    lab_put(rig.s.to, &rig.s.a, "k", STR("two")); /* the copy that has the lock */
    lock_release(lock);
    await_events(&rig, 1);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("two"));
    made->ops->unref(made);
    buf_release(&key);
    rig_close(&rig);
}

TEST_FOUR(tasks, nothing_happens_for_a_replication_that_is_gone)
{
    struct rig rig;
    struct arena a = ARENA_INIT(0);
    struct task_payload p = {.object = STR("k")};
    struct buf text = {0};
    struct err err = {0};

    rig_open(&rig, f);
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    p.id = rig.id;
    task_payload_write(&text, &p, PAYLOAD_OBJECT);
    struct task t = {.type = STR("object:sync"),
                     .id = STR("late"),
                     .queue = STR("events1"),
                     .payload = buf_str(&text)};
    CHECK_OK(queue_add(rig.q, &t, 0, &err));
    rig_work(&rig);
    struct worker_stats stats;
    do
        worker_stats(rig.w, &stats);
    while (stats.done == 0);
    struct bucket *b = NULL;
    struct storage *two = rig.s.locals[1];
    CHECK_ERR(two->ops->open_bucket(&b, two, STR("owner"), STR("box"), &err), ERR_NO_BUCKET);
    buf_release(&text);
    arena_release(&a);
    rig_close(&rig);
}

TEST_FOUR(tasks, versions_follow_where_both_keep_them)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f);
    CHECK_OK(rig.s.from->ops->set_versions(rig.s.from, true, &err));
    lab_put(rig.s.from, &rig.s.a, "d/k", STR("one"));
    lab_put(rig.s.from, &rig.s.a, "d/k", STR("two"));
    lab_put(rig.s.from, &rig.s.a, "gone", STR("x"));
    lab_remove(rig.s.from, &rig.s.a, "gone", STR_EMPTY);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lab_expect_list(rig.s.to, &lab_everything, true, "d/k* d/k gone!* gone");
    CHECK_INT(rig_status(&rig).done, 2);
    lab_put(rig.s.from, &rig.s.a, "d/k", STR("three"));
    record(&rig, THING_OBJECT, "object:sync", "d/k");
    await_events(&rig, 1);
    lab_expect_list(rig.s.to, &lab_everything, true, "d/k* d/k d/k gone!* gone");
    rig_close(&rig);
}

TEST_FOUR(tasks, a_paused_replication_waits)
{
    struct rig rig;
    struct bucket *b = NULL;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};

    rig_open(&rig, f);
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    rig_add(&rig);
    CHECK_OK(replication_pause(rig.r, &rig.id, true, &err));
    rig_work(&rig);
    await_put_back(&rig);
    CHECK_ERR(rig.two->ops->open_bucket(&b, rig.two, STR("owner"), STR("box"), &err),
              ERR_NO_BUCKET);
    CHECK_OK(replication_pause(rig.r, &rig.id, false, &err));
    CHECK_OK(queue_run_now(rig.q, STR("events1"), tasks_first(&a, &rig.id, 0).id, &err));
    await_copied(&rig);
    rig_reopen(&rig);
    sides_expect_same(&rig.s, "k");
    arena_release(&a);
    rig_close(&rig);
}

TEST_FOUR(tasks, a_bucket_of_another_name)
{
    struct rig rig;

    rig_open(&rig, f);
    rig.id.to_bucket = STR("other");
    lab_put(rig.s.from, &rig.s.a, "a/k", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    sides_expect_same(&rig.s, "a/k");
    lab_put(rig.s.from, &rig.s.a, "a/k", STR("two"));
    record(&rig, THING_OBJECT, "object:sync", "a/k");
    await_events(&rig, 1);
    sides_expect_same(&rig.s, "a/k");
    rig_close(&rig);
}

TEST_FOUR(tasks, a_destination_that_was_deleted_under_us_is_made_again)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f);
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    CHECK_OK(rig.two->ops->remove_bucket(rig.two, STR("owner"), STR("box"), &err));
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    record(&rig, THING_OBJECT, "object:sync", "k");
    await_events(&rig, 1);
    rig_reopen(&rig);
    sides_expect_same(&rig.s, "k");
    rig_close(&rig);
}

TEST_FOUR(tasks, a_bucket_of_another_user_is_not_written_to)
{
    struct rig rig;
    struct bucket_info theirs = {.name = STR("box"), .owner = STR("you")};
    struct worker_stats stats;
    struct err err = {0};

    rig_open(&rig, f);
    CHECK_OK(rig.two->ops->create_bucket(rig.two, &theirs, &err));
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    do
        worker_stats(rig.w, &stats);
    while (stats.failed == 0);
    rig_reopen(&rig);
    lab_expect_list(rig.s.to, &lab_everything, false, "");
    rig_close(&rig);
}

TEST_FOUR(tasks, a_listing_waits_while_its_copies_lag)
{
    struct rig rig;
    struct err err = {0};

    rig_open(&rig, f);
    for (int i = 0; i < OBJECT_LIST_MAX + 1; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%04d", i);
        lab_put(rig.s.from, &rig.s.a, key, STR(""));
    }
    CHECK_OK(queue_pause(rig.q, STR("migrate_obj_copy1"), true, &err));
    rig_work(&rig);
    rig_add(&rig);
    await_put_back(&rig);
    CHECK_INT(rig_status(&rig).listed, OBJECT_LIST_MAX);
    CHECK_OK(queue_pause(rig.q, STR("migrate_obj_copy1"), false, &err));
    while (rig_status(&rig).done < OBJECT_LIST_MAX)
        ;
    /* may have come due by itself */
    int code =
        queue_run_now(rig.q, STR("migrate_bucket_list_obj"), STR("mgr:lo:one:two:box:"), &err);
    CHECK(code == 0 || code == ERR_NOT_FOUND || code == ERR_CONFLICT);
    await_copied(&rig);
    CHECK_INT(rig_status(&rig).done, OBJECT_LIST_MAX + 1);
    rig_close(&rig);
}

TEST_FOUR(tasks, a_limit_puts_tasks_back_and_uses_no_try)
{
    struct rig rig;

    rig_open(&rig, f);
    rig.requests_per_second = 0.001;
    rig_work(&rig);
    rig_add(&rig); /* it uses up the allowance */
    do
        record(&rig, THING_OBJECT, "object:sync", "k");
    while (rig_status(&rig).events == 0);
    await_put_back(&rig);
    CHECK_INT(rig_status(&rig).failed, 0);
    struct worker_stats stats;
    worker_stats(rig.w, &stats);
    CHECK_INT(stats.failed, 0);
    rig_close(&rig);
}

/* A copy takes two requests of each storage. So the requests that were made need that much time,
 * less a second's worth that is there at first, and what the last task owes. */
TEST_FOUR(tasks, two_workers_keep_a_limit_together)
{
    enum { OBJECTS = 128, RATE = 60, EACH = 2, OWED = EACH * 32 };
    struct rig rig, other;
    char key[16];

    rig_open(&rig, f);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        lab_put(rig.s.from, &rig.s.a, key, STR("x"));
    }
    rig.requests_per_second = RATE;
    other = rig;
    other.tasks = tasks_new(&(struct tasks_options){.replications = rig.r,
                                                    .app = f->stores[DB_APP],
                                                    .lock = f->stores[DB_LOCK],
                                                    .locks = rig.locks,
                                                    .find = find,
                                                    .limits = limits,
                                                    .ctx = &rig});
    int64_t began = store_now(&rig);
    rig_work(&rig);
    rig_work(&other);
    rig_add(&rig);
    await_copied(&rig);
    int64_t taken_ms = store_now(&rig) - began;
    CHECK_INT(rig_status(&rig).done, OBJECTS);
    CHECK(RATE + OWED + taken_ms * RATE / 1000 >= OBJECTS * EACH);
    worker_stop(other.w);
    tasks_free(other.tasks);
    rig_close(&rig);
}

static int seal_with(void *ctx, const struct object_meta *meta, struct put_seal *out,
                     struct err *err)
{
    *out = (struct put_seal){.key = {{1, 2, 3}}};
    return 0;
}

/* With a customer's key. */
static void put_sealed(struct rig *rig, const char *key)
{
    struct envelope e = {.kind = SSE_C};
    struct envelope_place at = {STR("box"), str_z(key)};
    struct sealed_key k = {{1, 2, 3}};
    struct buf bytes = BUF_INIT(ENVELOPE_MAX);
    struct put_options o = {.seal = seal_with};
    struct put_result out;
    struct str_reader r;
    struct bucket *b = rig->s.from;
    struct err err = {0};

    envelope_seal(&bytes, &e, &at, &k, &k);
    o.meta.encryption = buf_str(&bytes);
    str_reader_init(&r, STR("body"));
    CHECK_OK(b->ops->put(b, &rig->s.a, str_z(key), &r.reader, 4, &o, &out, &err));
    buf_release(&bytes);
}

TEST_FOUR(tasks, what_cannot_be_copied_is_archived_by_name_and_holds_up_nobody)
{
    struct rig rig;
    struct arena a = ARENA_INIT(0);
    struct task_info *found;
    size_t count;
    struct err err = {0};

    rig_open(&rig, f);
    put_sealed(&rig, "secret");
    lab_put(rig.s.from, &rig.s.a, "k", STR("one"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    lab_expect_list(rig.s.to, &lab_everything, false, "k");
    CHECK_INT(rig_status(&rig).failed, 1);
    struct queue_page page = {STR("migrate_obj_copy1"), TASK_ARCHIVED, 0, 10};
    CHECK_OK(queue_tasks(rig.q, &a, &page, &found, &count, &err));
    CHECK_INT(count, 1);
    CHECK_STR(found[0].task.id, STR("mgr:co:one:two:box:secret"));
    CHECK(str_find(found[0].task.error, STR("a customer's key")) >= 0);
    arena_release(&a);
    rig_close(&rig);
}

TEST(tasks, embedded_to_a_remote_storage)
{
    static const char *const keys[] = {"a", "b/c", "b/d", "x y%"};
    struct four f = {0};
    struct rig rig;

    four_open_embedded(&f);
    rig_open_kind(&rig, &f, SIDE_REMOTE);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        lab_put(rig.s.from, &rig.s.a, keys[i], lab_bytes(100000, i));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        sides_expect_same(&rig.s, keys[i]);
    lab_remove(rig.s.from, &rig.s.a, "b/c", STR_EMPTY);
    record(&rig, THING_OBJECT, "object:sync", "b/c");
    await_events(&rig, 1);
    lab_expect(rig.s.to, "b/c", STR_EMPTY, (struct str){0});
    rig_close(&rig);
    four_close(&f);
}

/* --- keys that are none --- */

TEST_FOUR(tasks, a_key_that_is_not_utf8_fails_by_a_name_and_holds_nothing_up)
{
    struct queue_page page = {STR("migrate_obj_copy1"), TASK_ARCHIVED, 0, 10};
    struct task_info *list;
    struct rig rig;
    struct err err = {0};
    size_t count = 0;

    rig_open(&rig, f);
    lab_put(rig.s.from, &rig.s.a, "fine", STR("x"));
    lab_put(rig.s.from, &rig.s.a, "odd\xff", STR("x"));
    lab_put(rig.s.from, &rig.s.a, "\xfe/below", STR("x"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    struct replication_status s = rig_status(&rig);
    CHECK_INT(s.listed, 3);
    CHECK_INT(s.done, 1);
    CHECK_INT(s.failed, 2);
    CHECK_OK(queue_tasks(rig.q, &rig.s.a, &page, &list, &count, &err));
    CHECK_INT(count, 2);
    for (size_t i = 0; i < count; i++) {
        struct task *t = &list[i].task;
        CHECK(memmem(t->error.p, t->error.len, "not UTF-8", 9));
        CHECK(memmem(t->payload.p, t->payload.len, "odd%FF", 6) ||
              memmem(t->payload.p, t->payload.len, "%FE/", 4));
    }
    rig_close(&rig);
}

/* --- uploads that are left --- */

static size_t uploads_there(struct rig *rig)
{
    struct list_options o = {.limit = 10};
    struct arena a = ARENA_INIT(0);
    struct upload_list page = {0};
    struct err err = {0};

    CHECK_OK(rig->s.to->ops->list_uploads(rig->s.to, &a, &o, &page, &err));
    size_t count = page.count;
    arena_release(&a);
    return count;
}

static size_t aborts_scheduled(struct rig *rig, struct task_info **out)
{
    struct queue_page page = {UPLOAD_ABORT_QUEUE, TASK_SCHEDULED, 0, 10};
    struct err err = {0};
    size_t count = 0;

    CHECK_OK(queue_tasks(rig->q, &rig->s.a, &page, out, &count, &err));
    return count;
}

/* A copy by parts that was broken off, of an object that was put whole. */
static void leave_upload(struct rig *rig)
{
    char body[401] = "";

    memset(body, 'x', 400);
    rig_add(rig);
    rig_work(rig);
    await_copied(rig);
    rig_reopen(rig);
    rig->bytes_per_second = 1; /* a part is let through, the next waits */
    lab_put(rig->s.from, &rig->s.a, "large", str_z(body));
    record(rig, THING_OBJECT, "object:sync", "large");
    while (uploads_there(rig) == 0)
        ;
    worker_stop(rig->w);
    rig->w = NULL;
    rig->bytes_per_second = 0;
}

static void rig_open_parts(struct rig *rig, struct four *f)
{
    rig_open(rig, f);
    tasks_free(rig->tasks);
    rig->tasks = tasks_new(
        &(struct tasks_options){.replications = rig->r,
                                .app = f->stores[DB_APP],
                                .lock = f->stores[DB_LOCK],
                                .locks = rig->locks,
                                .queue = rig->q,
                                .find = find,
                                .limits = limits,
                                .ctx = rig,
                                .copy = {.whole_max = SIDE_PART_MIN, .part_size = SIDE_PART_MIN}});
}

TEST_FOUR(tasks, an_upload_that_no_copy_goes_on_with_is_aborted_and_a_clients_is_not)
{
    struct arena a = ARENA_INIT(0);
    struct object_meta meta = {0};
    struct task_info *list;
    struct str client;
    struct rig rig;
    struct err err = {0};

    rig_open_parts(&rig, f);
    leave_upload(&rig);
    CHECK_OK(rig.s.to->ops->upload_begin(rig.s.to, &a, STR("large"), &meta, &client, &err));
    CHECK_INT(uploads_there(&rig), 2);
    CHECK_INT(aborts_scheduled(&rig, &list), 1);
    CHECK_OK(
        queue_delete(rig.q, STR("events1"), STR("object:sync|owner:box:one:two|box:large"), &err));
    check_reply(f->stores[DB_APP], "DEL w:copy:two:box:large", "1"); /* as after a day */
    CHECK_OK(queue_run_now(rig.q, UPLOAD_ABORT_QUEUE, list[0].task.id, &err));
    rig_work(&rig);
    while (uploads_there(&rig) != 1)
        ;
    CHECK_OK(rig.s.to->ops->upload_abort(
        rig.s.to, &(struct upload_info){.key = STR("large"), .id = client}, &err));
    arena_release(&a);
    rig_close(&rig);
}

TEST_FOUR(tasks, an_upload_that_a_copy_may_go_on_with_stays_and_is_finished)
{
    struct task_info *list;
    struct rig rig;
    struct err err = {0};

    rig_open_parts(&rig, f);
    leave_upload(&rig);
    CHECK_OK(queue_pause(rig.q, STR("events1"), true, &err));
    CHECK_INT(aborts_scheduled(&rig, &list), 1);
    CHECK_OK(queue_run_now(rig.q, UPLOAD_ABORT_QUEUE, list[0].task.id, &err));
    rig_work(&rig);
    await_put_back(&rig);
    CHECK_INT(uploads_there(&rig), 1);
    CHECK_OK(queue_pause(rig.q, STR("events1"), false, &err));
    await_events(&rig, 1);
    CHECK_INT(sides_head(&rig.s, rig.s.to, "large").size, 400);
    CHECK_INT(uploads_there(&rig), 0);
    CHECK_INT(aborts_scheduled(&rig, &list), 0);
    rig_close(&rig);
}

static void rig_switch(struct rig *rig)
{
    struct switch_options o = {.multipart_ttl_ns = 3600000000000};
    struct task t = {.type = STR("x"), .id = STR("x"), .queue = STR("other")};
    struct bucket_switch s;
    struct err err = {0};

    CHECK_OK(switch_plan(rig->r, &rig->id, &o, &t, STR("one"), &err));
    CHECK_OK(switch_read(rig->r, &rig->s.a, rig->id.user, rig->id.bucket, &s, &err));
    CHECK_OK(switch_begin(rig->r, &s, STR("one"), &err));
}

/* S10: an older change of the old storage does not overwrite what a client wrote to the new one and
 * is not recorded yet. */
TEST_FOUR(tasks, during_a_switch_a_worker_does_not_overtake_a_client)
{
    struct rig rig;

    rig_open(&rig, f);
    lab_put(rig.s.from, &rig.s.a, "k", STR("first"));
    rig_work(&rig);
    rig_add(&rig);
    await_copied(&rig);
    rig_reopen(&rig);
    worker_stop(rig.w);
    rig_switch(&rig);
    CHECK_INT(rig.settled, 0); /* without a switch nobody waits */
    lab_put(rig.s.from, &rig.s.a, "k", STR("late"));
    record(&rig, THING_OBJECT, "object:sync", "k");
    lab_put(rig.s.to, &rig.s.a, "k", STR("newer"));
    rig_work(&rig);
    await_events(&rig, 1);
    CHECK(rig.settled > 0);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("newer"));
    lab_put(rig.s.from, &rig.s.a, "k", STR("last")); /* the end of an upload */
    record(&rig, THING_OBJECT, "object:sync", "k");
    await_events(&rig, 2);
    lab_expect(rig.s.to, "k", STR_EMPTY, STR("last"));
    rig_close(&rig);
}
