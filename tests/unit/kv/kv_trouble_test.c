/* Bad days of the drivers: servers that are unfit, down, stopped and back again. */
#include "base/clock.h"
#include "base/ids.h"
#include "kv/postgres_int.h"
#include "store/store.h"
#include "unit/kv/kv_lab.h"
#include "unit/kv/postgres_server.h"
#include "unit/kv/postgres_shared.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A server that is well answers within the first, also on a busy machine; a call that waits for the
 * time-out takes longer than AT_ONCE_MS. */
enum { TIMEOUT_MS = 30000, AT_ONCE_MS = 10000, SHORT_MS = 3000 };

/* --- redis --- */

static struct store *store_on(const char *url, uint64_t timeout_ms)
{
    struct store *store = NULL;
    struct err err = {0};

    CHECK_OK(store_open_redis(
        &store, &(struct store_redis_options){.url = str_z(url), .timeout_ms = timeout_ms}, &err));
    return store;
}

static void expect_unfit(const char *const *arguments, const char *why)
{
    struct redis_server server = {.dir = test_dir(), .extra = arguments};
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK(redis_server_start(&server));
    struct store *store = store_on(server.unix_url, TIMEOUT_MS);
    CHECK_ERR(kv_open_redis(&kv, store, NULL, &err), ERR_UNSUPPORTED);
    CHECK(strstr(err.text, why));
    store_close(store);
    redis_server_kill(&server);
}

TEST(kv_trouble, a_redis_cluster_is_refused)
{
    expect_unfit((const char *[]){"--cluster-enabled", "yes", NULL}, "cluster");
}

TEST(kv_trouble, a_redis_that_evicts_is_refused)
{
    expect_unfit((const char *[]){"--maxmemory-policy", "allkeys-lru", NULL}, "allkeys-lru");
    expect_unfit((const char *[]){"--maxmemory-policy", "volatile-ttl", NULL}, "volatile-ttl");
}

TEST(kv_trouble, a_redis_that_begins_to_evict_is_not_ready)
{
    struct redis_server server = {.dir = test_dir()};
    struct arena a = {0};
    struct reply *reply;
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK(redis_server_start(&server));
    struct store *store = store_on(server.unix_url, TIMEOUT_MS);
    CHECK_OK(kv_open_redis(&kv, store, NULL, &err));
    CHECK_OK(kv_probe(kv, &err));
    CHECK_OK(store_call(store, &a, &reply, &err, STR("CONFIG"), STR("SET"), STR("maxmemory-policy"),
                        STR("allkeys-random")));
    CHECK_ERR(kv_probe(kv, &err), ERR_UNSUPPORTED);
    arena_release(&a);
    kv_close(kv);
    store_close(store);
    redis_server_kill(&server);
}

/* Every call fails at once, and none says that a row is absent. */
static void expect_down(struct kv *kv)
{
    struct kv_change changes[] = {
        {.what = KV_PUT, .name = KV_NAME("p", "k"), .value = STR("lost")},
        {.what = KV_PUT, .name = KV_NAME("p", "l"), .value = STR("lost"), .when = KV_ABSENT},
    };
    struct kv_scan *scan = NULL;
    struct kv_value value;
    struct arena a = {0};
    struct str key, bytes;
    struct err err = {0};
    uint64_t began = clock_mono_ms();

    CHECK_ERR(kv_get(kv, NULL, &a, KV_NAME("p", "k"), &value, &err), ERR_UNAVAILABLE);
    CHECK_ERR(kv_set(kv, KV_NAME("p", "k"), STR("lost"), &err), ERR_UNAVAILABLE);
    CHECK_ERR(kv_write(kv, changes, 2, NULL, &err), ERR_UNAVAILABLE);
    CHECK_ERR(kv_remove(kv, KV_NAME("p", "k"), &err), ERR_UNAVAILABLE);
    CHECK_ERR(kv_drop(kv, STR("p"), &err), ERR_UNAVAILABLE);
    CHECK_ERR(kv_probe(kv, &err), ERR_UNAVAILABLE);
    int code = kv_scan_open(&scan, kv, NULL, STR("p"), NULL, &err);
    if (code == 0)
        code = kv_scan_next(scan, &key, &bytes, &err);
    CHECK_ERR(code, ERR_UNAVAILABLE);
    kv_scan_free(scan);
    CHECK(clock_mono_ms() - began < AT_ONCE_MS);
    arena_release(&a);
}

static bool is_back(struct kv *kv)
{
    struct err err = {0};

    return kv_probe(kv, &err) == 0;
}

TEST(kv_trouble, a_redis_that_is_down_fails_at_once_and_is_back_later)
{
    struct redis_server server = {
        .dir = test_dir(),
        .extra = (const char *[]){"--appendonly", "yes", "--appendfsync", "always", NULL}};
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK(redis_server_start(&server));
    struct store *store = store_on(server.unix_url, TIMEOUT_MS);
    CHECK_OK(kv_open_redis(&kv, store, NULL, &err));
    kv_lab_set(kv, "p", "k", "v");
    redis_server_kill(&server);
    expect_down(kv);
    CHECK(redis_server_start(&server));
    CHECK_SOON(is_back(kv));
    kv_lab_expect(kv, "p", "k", "v");
    kv_lab_expect_keys(kv, "p", NULL, "k");
    kv_close(kv);
    store_close(store);
    redis_server_kill(&server);
}

TEST(kv_trouble, a_kv_on_a_redis_that_is_down_is_opened_and_checks_it_later)
{
    struct redis_server server = {.dir = test_dir()};
    struct kv *kv = NULL;
    struct err err = {0};
    struct arena a = {0};
    struct kv_value value;

    CHECK(redis_server_start(&server));
    redis_server_kill(&server);
    struct store *store = store_on(server.unix_url, TIMEOUT_MS);
    CHECK_OK(kv_open_redis(&kv, store, NULL, &err));
    expect_down(kv);
    server.extra = (const char *[]){"--maxmemory-policy", "allkeys-lru", NULL};
    CHECK(redis_server_start(&server));
    CHECK_SOON(kv_get(kv, NULL, &a, KV_NAME("p", "k"), &value, &err) == ERR_UNSUPPORTED);
    redis_server_kill(&server);
    server.extra = NULL;
    CHECK(redis_server_start(&server));
    CHECK_SOON(is_back(kv));
    kv_lab_expect(kv, "kv-internal-metadata", "kv/schema/version", KV_SCHEMA_VERSION);
    arena_release(&a);
    kv_close(kv);
    store_close(store);
    redis_server_kill(&server);
}

/* A server that does not answer: the write may have run. */
TEST(kv_trouble, a_redis_that_hangs_is_a_timeout)
{
    struct redis_server server = {.dir = test_dir()};
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK(redis_server_start(&server));
    struct store *store = store_on(server.unix_url, SHORT_MS);
    CHECK_OK(kv_open_redis(&kv, store, NULL, &err));
    kv_lab_set(kv, "p", "k", "v");
    redis_server_signal(&server, SIGSTOP);
    CHECK_ERR(kv_set(kv, KV_NAME("p", "k"), STR("w"), &err), ERR_TIMEOUT);
    redis_server_signal(&server, SIGCONT);
    CHECK_SOON(is_back(kv));
    kv_close(kv);
    store_close(store);
    redis_server_kill(&server);
}

/* --- postgres --- */

static struct kv *postgres_on(const char *url, size_t connections, uint64_t timeout_ms)
{
    struct kv_postgres_options o = {
        .url = url, .max_connections = connections, .timeout_ms = timeout_ms};
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK_OK(kv_open_postgres(&kv, &o, &err));
    return kv;
}

TEST(kv_trouble, a_postgres_that_is_down_fails_at_once_and_is_back_later)
{
    struct postgres_server server = {.durable = true};

    CHECK(postgres_server_start(&server));
    struct kv *kv = postgres_on(server.url, 0, TIMEOUT_MS);
    kv_lab_set(kv, "p", "k", "v");
    postgres_server_stop(&server);
    expect_down(kv);
    CHECK(postgres_server_start(&server));
    CHECK_SOON(is_back(kv));
    kv_lab_expect(kv, "p", "k", "v");
    postgres_server_kill(&server);
    CHECK_SOON(!is_back(kv)); /* its children end when they notice */
    expect_down(kv);
    CHECK(postgres_server_start(&server));
    CHECK_SOON(is_back(kv));
    kv_lab_expect(kv, "p", "k", "v");
    kv_lab_expect(kv, "p", "l", NULL);
    kv_close(kv);
    postgres_server_remove(&server);
}

TEST(kv_trouble, a_kv_on_a_postgres_that_is_down_is_opened_and_works_later)
{
    struct postgres_server server = {0};

    CHECK(postgres_server_start(&server));
    postgres_server_stop(&server);
    struct kv *kv = postgres_on(server.url, 0, TIMEOUT_MS);
    expect_down(kv);
    CHECK(postgres_server_start(&server));
    CHECK_SOON(is_back(kv));
    kv_lab_set(kv, "p", "k", "v");
    kv_lab_expect(kv, "p", "k", "v");
    kv_close(kv);
    postgres_server_remove(&server);
}

TEST(kv_trouble, a_postgres_that_hangs_is_a_timeout)
{
    struct postgres_server server = {0};
    struct err err = {0};

    CHECK(postgres_server_start(&server));
    struct kv *kv = postgres_on(server.url, 1, SHORT_MS);
    kv_lab_set(kv, "p", "k", "v");
    /* The row is locked by another session, so the write waits. */
    PGconn *other = PQconnectdb(server.url);
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, "UPDATE kv SET value = 'x' WHERE key = 'k'"));
    int code = kv_set(kv, KV_NAME("p", "k"), STR("w"), &err);
    CHECK(code == ERR_TIMEOUT || code == ERR_BUSY);
    PQclear(PQexec(other, "ROLLBACK"));
    CHECK_SOON(is_back(kv));
    if (code == ERR_BUSY)
        kv_lab_expect(kv, "p", "k", "v");
    /* A connection that the server ends between two calls is not noticed by the caller. */
    CHECK(postgres_run(server.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                   " WHERE application_name = 'weir'"));
    CHECK_SOON(kv_set(kv, KV_NAME("p", "k"), STR("w"), &err) == 0);
    kv_lab_expect(kv, "p", "k", "w");
    PQfinish(other);
    kv_close(kv);
    postgres_server_remove(&server);
}

TEST(kv_trouble, no_message_of_postgres_has_the_password)
{
    static const char *const urls[] = {
        "postgres://weir:hidden%zz@h/db",
        "postgres://weir:hidden@h:port/db",
        "postgres://weir@h/db?password=hidden&nonsense=1",
        "nonsense hidden",
        "postgres://weir:hidden@/nowhere?host=/nowhere",
    };

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct kv_postgres_options o = {.url = urls[i], .timeout_ms = 1000};
        struct kv *kv = NULL;
        struct err err = {0};
        int code = kv_open_postgres(&kv, &o, &err);
        if (code == 0)
            CHECK_ERR(kv_probe(kv, &err), ERR_UNAVAILABLE);
        CHECK(err.text[0] && !strstr(err.text, "hidden"));
        kv_close(kv);
    }
}

/* The tables and the function are there, and the user may not make any. */
TEST(kv_trouble, a_postgres_user_without_rights_to_create_can_use_what_is_there)
{
    char statement[256], user_url[512];
    const char *url = postgres_shared_url();
    struct kv *kv = postgres_on(url, 0, 0);
    struct err err = {0};

    kv_lab_set(kv, "p", "k", "v");
    kv_close(kv);
    snprintf(statement, sizeof(statement),
             "CREATE ROLE plain%d LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON kv TO plain%d",
             (int)getpid(), (int)getpid());
    CHECK(postgres_run(url, statement));
    snprintf(user_url, sizeof(user_url), "%s&user=plain%d", url, (int)getpid());
    kv = postgres_on(user_url, 0, 0);
    kv_lab_expect(kv, "p", "k", "v");
    kv_lab_set(kv, "p", "k", "w");
    kv_lab_expect_keys(kv, "p", NULL, "k");
    kv_close(kv);
    snprintf(statement, sizeof(statement), "REVOKE ALL ON kv FROM plain%d", (int)getpid());
    CHECK(postgres_run(url, statement));
    struct kv_postgres_options o = {.url = user_url};
    CHECK_ERR(kv_open_postgres(&kv, &o, &err), ERR_DENIED);
    snprintf(statement, sizeof(statement), "DROP ROLE plain%d", (int)getpid());
    CHECK(postgres_run(url, statement));
    postgres_shared_drop();
}

/* The table of a partition, as weir computes it, is the one that the server uses. */
TEST(kv_trouble, a_partition_is_in_the_table_where_postgres_looks_for_it)
{
    struct buf statement = BUF_INIT(0);
    const char *url = postgres_shared_url();
    char bytes[KV_PARTITION_MAX];

    struct kv *kv = postgres_on(url, 0, 0);
    kv_lab_set(kv, "p", "k", "v");
    CHECK(postgres_run(url, "SELECT 1 / (count(*) = 1)::int FROM pg_stat_activity"
                            " WHERE application_name = 'weir' AND query LIKE 'INSERT INTO kv\\_%'"
                            " AND datname = current_database()"));
    kv_close(kv);
    buf_append_z(&statement, "SELECT 1 / every(satisfies_hash_partition('kv'::regclass, 100, t, p))"
                             "::int FROM (VALUES ");
    for (size_t len = 1; len <= sizeof(bytes); len += len < 64 ? 1 : 61) {
        random_bytes(bytes, len);
        buf_appendf(&statement, "%s(%u, '\\x", len > 1 ? ", " : "",
                    sql_table_of(str_n(bytes, len)));
        buf_append_hex(&statement, bytes, len);
        buf_append_z(&statement, "'::bytea)");
    }
    buf_append_z(&statement, ") AS v(t, p)");
    CHECK(postgres_run(url, statement.p));
    buf_release(&statement);
    postgres_shared_drop();
}

/* A live lakeFS: its table has the name of ours, and version 4. Nothing is changed there. */
TEST(kv_trouble, a_database_of_lakefs_is_refused_and_not_changed)
{
    const char *url = postgres_shared_url();
    struct kv_postgres_options o = {.url = url};
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK(postgres_run(
        url, "CREATE TABLE kv (partition_key bytea NOT NULL, key bytea NOT NULL, value bytea NOT "
             "NULL, PRIMARY KEY (partition_key, key)) PARTITION BY HASH (partition_key);"
             "CREATE TABLE kv_0 PARTITION OF kv FOR VALUES WITH (MODULUS 1, REMAINDER 0);"
             "INSERT INTO kv VALUES ('kv-internal-metadata', 'kv/schema/version', '4')"));
    CHECK_ERR(kv_open_postgres(&kv, &o, &err), ERR_VERSION);
    /* A division by zero fails the statement. */
    CHECK(postgres_run(url, "SELECT 1 / (count(*) = 0)::int FROM pg_proc"
                            " WHERE proname = 'weir_kv_write'"));
    CHECK(postgres_run(url, "SELECT 1 / (count(*) = 1)::int FROM kv"));
    postgres_shared_drop();
}

/* --- the store that was known --- */

static const char *known_path(void)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/kv.known", test_dir());
    return path;
}

KV_LAB_TEST(kv_known, the_same_store_is_known_again_and_an_empty_one_is_refused)
{
    struct kv *second = NULL;
    struct err err = {0};

    CHECK_OK(kv_know(lab->kv, known_path(), &err));
    kv_lab_set(lab->kv, "p", "k", "v");
    CHECK_OK(kv_probe(lab->kv, &err));
    second = kv_lab_open_second(lab);
    CHECK_OK(kv_know(second, known_path(), &err));
    CHECK_OK(kv_drop(lab->kv, STR("kv-internal-metadata"), &err)); /* the store loses its rows */
    CHECK_OK(kv_drop(lab->kv, STR("p"), &err));
    CHECK_ERR(kv_probe(lab->kv, &err), ERR_STORE);
    CHECK(strstr(err.text, "is empty") && strstr(err.text, known_path()));
    kv_close(second);
    second = kv_lab_open_second(lab);
    CHECK_ERR(kv_know(second, known_path(), &err), ERR_STORE);
    struct kv_value value;
    CHECK_ERR(kv_get(second, NULL, &lab->arena, KV_NAME("p", "k"), &value, &err), ERR_STORE);
    CHECK_INT(remove(known_path()), 0); /* somebody decides to begin anew */
    CHECK_ERR(kv_get(second, NULL, &lab->arena, KV_NAME("p", "k"), &value, &err), ERR_NOT_FOUND);
    kv_close(second);
}

KV_LAB_TEST(kv_known, another_store_is_refused)
{
    struct err err = {0};

    CHECK_OK(kv_know(lab->kv, known_path(), &err));
    kv_lab_set(lab->kv, "kv-internal-metadata", "kv/store/id", "0123456789abcdef0123456789abcdef");
    CHECK_ERR(kv_probe(lab->kv, &err), ERR_STORE);
    CHECK(strstr(err.text, "another one"));
}

/* K5: the folder of the file is missing, which says nothing about rows. */
KV_LAB_TEST(kv_known, a_file_that_cannot_be_written_makes_no_row_absent)
{
    struct kv *second = kv_lab_open_second(lab);
    struct kv_value value;
    struct err err = {0};
    char path[256];

    kv_lab_set(lab->kv, "p", "k", "v");
    snprintf(path, sizeof(path), "%s/none/kv.known", test_dir());
    CHECK_ERR(kv_know(second, path, &err), ERR_UNAVAILABLE);
    CHECK_ERR(kv_get(second, NULL, &lab->arena, KV_NAME("p", "k"), &value, &err), ERR_UNAVAILABLE);
    kv_close(second);
}

TEST(kv_trouble, a_redis_without_an_append_only_file_is_named)
{
    struct redis_server server = {.dir = test_dir(),
                                  .extra = (const char *[]){"--appendonly", "no", NULL}};
    struct kv *kv = NULL;
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    CHECK(redis_server_start(&server));
    struct store *store = store_on(server.unix_url, TIMEOUT_MS);
    CHECK_OK(kv_open_redis(&kv, store, NULL, &err));
    CHECK(kv->warning && strstr(kv->warning, "appendonly yes"));
    CHECK_OK(store_call(store, &a, &reply, &err, STR("CONFIG"), STR("SET"), STR("appendonly"),
                        STR("yes")));
    CHECK_OK(kv_probe(kv, &err));
    CHECK(!kv->warning);
    arena_release(&a);
    kv_close(kv);
    store_close(store);
    redis_server_kill(&server);
}
