/* Servers of key-value stores that crash programs kill. */
#include "crash/kv_engines.h"

#include "crash/power.h"
#include "db/db.h"
#include "store/store.h"
#include "unit/kv/postgres_server.h"
#include "unit/store/redis_server.h"

#include <stdio.h>
#include <unistd.h>

enum { TIMEOUT_MS = 30000 }; /* of a busy machine */

static struct redis_server redis;
static struct postgres_server postgres = {.durable = true};
static char redis_folder[80];

/* --- opening --- */

static struct kv *open_on_db(const struct crash *c)
{
    struct db_options o = {
        .path = c->folder, .cfs = kv_cf_spec(), .cf_count = 1, .memtable_bytes = MIB};
    struct db *db = NULL;
    struct kv *kv = NULL;
    struct err err = {0};

    must(db_open(&db, &o, &err), &err);
    must(kv_open_embedded(&kv, db, NULL, &err), &err);
    return kv;
}

static struct kv *open_on_redis(const struct crash *c)
{
    struct store_redis_options o = {.url = str_z(redis.unix_url), .timeout_ms = TIMEOUT_MS};
    struct store *store = NULL;
    struct kv *kv = NULL;
    struct err err = {0};

    (void)c;
    must(store_open_redis(&store, &o, &err), &err);
    must(kv_open_redis(&kv, store, NULL, &err), &err);
    return kv;
}

static struct kv *open_on_postgres(const struct crash *c)
{
    struct kv_postgres_options o = {.url = postgres.url, .timeout_ms = TIMEOUT_MS};
    struct kv *kv = NULL;
    struct err err = {0};

    (void)c;
    must(kv_open_postgres(&kv, &o, &err), &err);
    return kv;
}

struct kv *kv_engine_open(enum kv_engine engine, const struct crash *c)
{
    static struct kv *(*const opens[])(const struct crash *c) = {open_on_db, open_on_redis,
                                                                 open_on_postgres};

    return opens[engine](c);
}

/* --- servers --- */

/* Starts the server unless it runs. */
static void start_server(enum kv_engine engine, const struct crash *c)
{
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    struct err err = {0};
    bool good = true;

    if (engine == KV_REDIS && !redis.pid) {
        snprintf(redis_folder, sizeof(redis_folder), "%s", c->folder);
        redis.dir = redis_folder;
        redis.extra = durable;
        good = redis_server_start(&redis);
    } else if (engine == KV_POSTGRES && !postgres.pid) {
        good = postgres_server_start(&postgres);
    }
    must(good ? 0 : err_set(&err, ERR_UNAVAILABLE, "a server did not start"), &err);
}

void kv_engine_start(enum kv_engine engine, const struct crash *c)
{
    if (engine == KV_EMBEDDED)
        power_on(c->folder);
    else
        start_server(engine, c);
}

static bool redis_has_other_clients(struct store *store)
{
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    must(store_call(store, &a, &reply, &err, STR("INFO"), STR("clients")), &err);
    bool others = str_find(reply->str, STR("connected_clients:1\r")) < 0;
    arena_release(&a);
    return others;
}

static void settle(enum kv_engine engine)
{
    struct store_redis_options o = {.url = str_z(redis.unix_url)};
    struct store *store = NULL;
    struct err err = {0};

    if (engine == KV_REDIS) {
        must(store_open_redis(&store, &o, &err), &err);
        while (redis_has_other_clients(store))
            usleep(1000);
        store_close(store);
    } else if (engine == KV_POSTGRES) {
        (void)postgres_run(postgres.url,
                           "DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_stat_activity"
                           " WHERE application_name = 'weir') LOOP PERFORM pg_sleep(0.005);"
                           " PERFORM pg_stat_clear_snapshot(); END LOOP; END $$");
    }
}

void kv_engine_after(enum kv_engine engine, struct crash *c, bool power)
{
    if (!power) {
        settle(engine);
        return;
    }
    if (engine == KV_EMBEDDED)
        power_loss(c, c->folder);
    else if (engine == KV_REDIS)
        redis_server_kill(&redis);
    else
        postgres_server_kill(&postgres);
    start_server(engine, c);
}

void kv_engines_reset(void)
{
    power_reset();
}

void kv_engines_init(void)
{
    power_init();
}

void kv_engines_end(void)
{
    redis_server_kill(&redis);
    postgres_server_remove(&postgres);
}
