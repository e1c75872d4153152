/* Every key after a scenario is one of the table in docs/replication.md, with its type. */
#include "coord/limit.h"
#include "coord/lock.h"
#include "unit/coord/replication_lab.h"

#include <fnmatch.h>

static struct known_key {
    int db;
    const char *pattern, *type;
    bool met;
} table[] = {
    {DB_QUEUE, "asynq:queues", "set", false},
    {DB_QUEUE, "asynq:{*}:t:*", "hash", false},
    {DB_QUEUE, "asynq:{*}:pending", "list", false},
    {DB_QUEUE, "asynq:{*}:active", "list", false},
    {DB_QUEUE, "asynq:{*}:scheduled", "zset", false},
    {DB_QUEUE, "asynq:{*}:retry", "zset", false},
    {DB_QUEUE, "asynq:{*}:archived", "zset", false},
    {DB_QUEUE, "asynq:{*}:lease", "zset", false},
    {DB_QUEUE, "asynq:{*}:processed", "string", false},
    {DB_QUEUE, "asynq:{*}:processed:20*-*-*", "string", false},
    {DB_QUEUE, "asynq:{*}:failed", "string", false},
    {DB_QUEUE, "asynq:{*}:failed:20*-*-*", "string", false},
    {DB_LOCK, "lk:backup:photos:a", "string", false},
    {DB_APP, "s:main:backup:photos", "string", false},
    {DB_APP, "photos:a", "hash", false},
    {DB_APP, "photos:a:t", "hash", false},
    {DB_APP, "photos:a:a", "hash", false},
    {DB_APP, "b:photos", "hash", false},
    {DB_APP, "b:photos:t", "hash", false},
    {DB_APP, "b:photos:a", "hash", false},
    {DB_APP, "w:tap:main", "string", false},
    {DB_APP, "w:rate:requests:main", "hash", false},
    {DB_CONFIG, "p:route_block:cold", "set", false},
    {DB_CONFIG, "p:route:u:photos", "string", false},
    {DB_CONFIG, "w:copies", "hash", false},
    {DB_CONFIG, "w:pins", "set", false},
    {DB_CONFIG, "p:repl:u", "zset", false},
    {DB_CONFIG, "p:repl:u:photos", "zset", false},
    {DB_CONFIG, "p:repl_st:u:photos:main:backup", "hash", false},
    {DB_CONFIG, "p:repl_st:u:photos:main:cold:archive", "hash", false},
    {DB_CONFIG, "w:config", "string", false},
    {DB_CONFIG, "w:epoch", "string", false},
    {DB_CONFIG, "w:epochs", "zset", false},
};

static void check_key(struct store *s, int db, struct str key)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};
    const char *name = arena_z(&a, key);
    struct known_key *found = NULL;

    CHECK_OK(store_call(s, &a, &reply, &err, STR("TYPE"), key));
    for (size_t i = 0; i < ARRAY_SIZE(table) && !found; i++)
        if (table[i].db == db && fnmatch(table[i].pattern, name, 0) == 0)
            found = &table[i];
    if (!found)
        test_fail(__FILE__, __LINE__, "database %d has a key %s", db, name);
    if (!str_eq(reply->str, str_z(found->type)))
        test_fail(__FILE__, __LINE__, "%s is a " STR_FMT ", not a %s", name, STR_ARG(reply->str),
                  found->type);
    found->met = true;
    arena_release(&a);
}

static void check_all(struct four *f)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    for (int db = 0; db < STORE_DATABASES; db++) {
        CHECK_OK(store_call(f->stores[db], &a, &reply, &err, STR("KEYS"), STR("*")));
        for (size_t i = 0; i < reply->count; i++)
            check_key(f->stores[db], db, reply->items[i].str);
    }
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (!table[i].met)
            test_fail(__FILE__, __LINE__, "no key %s", table[i].pattern);
    arena_release(&a);
}

static void record_each_kind(struct repl_lab *l)
{
    static const char *const types[] = {"object:sync",   "object:sync:tags", "object:sync:acl",
                                        "bucket:create", "bucket:sync:tags", "bucket:sync:acl"};
    struct change c[6];
    struct err err = {0};

    for (int i = 0; i < 6; i++) {
        enum thing_kind kind = 1 << i;
        c[i] = repl_change("main", "photos", kind & THINGS_OF_BUCKET ? "" : "a");
        c[i].thing.kind = kind;
        c[i].type = str_z(types[i]);
        c[i].row = 1;
    }
    CHECK_OK(replication_record(
        l->r, &(struct record){.changes = c, .count = 6, .log = STR("main"), .log_last = 1}, &err));
}

static void list_a_page(struct repl_lab *l)
{
    struct replication_id id = repl_id(l, "u photos main backup");
    struct task first, listing = {.type = STR("migrate:bucket:list_objects"),
                                  .id = STR("mgr:lo:main:backup:photos"),
                                  .queue = STR("migrate_bucket_list_obj")};
    struct listed item = {
        .task = {.type = STR("migrate:object:copy"), .queue = STR("migrate_obj_copy1")}};
    struct err err = {0};

    CHECK(repl_take(l, "events1", &first));
    CHECK_OK(replication_list(l->r, &id, &first, &listing, &err));
    CHECK(repl_take(l, "migrate_bucket_list_obj", &listing));
    CHECK_OK(replication_page(
        l->r,
        &(struct listed_page){
            .id = id, .task = &listing, .last = STR("a"), .items = &item, .count = 1},
        &err));
}

static void end_some(struct repl_lab *l)
{
    struct task t;
    struct err err = {0};

    CHECK_OK(queue_add(l->tasks, &(struct task){.type = STR("intent"), .queue = STR("intents")}, 60,
                       &err));
    CHECK(repl_take(l, "events1", &t));
    CHECK_OK(queue_done(l->tasks, &t, &err));
    CHECK(repl_take(l, "events1", &t));
    CHECK_OK(queue_retry(l->tasks, &t, 60, true, STR("later"), &err));
    CHECK(repl_take(l, "events1", &t));
    CHECK_OK(queue_archive(l->tasks, &t, STR("never"), &err));
    CHECK(repl_take(l, "events1", &t));
}

TEST_FOUR(replication_keys, are_those_of_the_table_with_its_types)
{
    struct locks *locks;
    struct lock *lock;
    struct repl_lab l;
    struct buf key = {0};
    uint64_t wait;
    struct err err = {0};

    repl_open(&l, f);
    repl_add(&l, "u - main backup");
    repl_add(&l, "u photos main backup");
    repl_add(&l, "u photos main cold archive");
    list_a_page(&l);
    record_each_kind(&l);
    end_some(&l);
    CHECK_OK(limit_take(l.app, STR("main"), LIMIT_REQUESTS, 5, 1, &wait, &err));
    CHECK_OK(locks_open(&locks, &(struct locks_options){.store = f->stores[DB_LOCK]}, &err));
    lock_key_object(&key, STR("backup"), STR("photos"), STR("a"));
    CHECK_OK(lock_take(&lock, locks, buf_str(&key), &err));
    check_all(f);
    lock_release(lock);
    locks_close(locks);
    buf_release(&key);
    repl_close(&l);
}
