/* Calls whose outcome is unknown (docs/kv.md, K6): ERR_TIMEOUT is a write that may have been made,
 * ERR_UNAVAILABLE one that was not, and neither is sent again. */
#include "kv/postgres_int.h"
#include "store/store.h"
#include "unit/kv/cut_proxy.h"
#include "unit/kv/kv_lab.h"
#include "unit/kv/postgres_server.h"
#include "unit/kv/postgres_shared.h"

#include <stdio.h>
#include <unistd.h>

/* A server that is well answers within the first, also on a busy machine. */
enum { PATIENT_MS = 30000, SHORT_MS = 1500, SILENT_MS = 4000 };

/* A write that fails with ERR_PRECONDITION when it is made twice, and reads a row behind itself. */
static int write_once(struct kv *kv, struct arena *a, const char *key, const char *behind)
{
    struct kv_change put = {KV_PUT, {STR("p"), str_z(key)}, STR("once"), KV_ABSENT, STR_EMPTY};
    struct kv_name name = {STR("q"), str_z(behind)};
    struct kv_value value;
    struct err err = {0};

    return kv_write_get(kv, &put, 1, NULL, a, &name, 1, &value, &err);
}

static int read_one(struct kv *kv)
{
    struct arena a = {0};
    struct kv_value value;
    struct err err = {0};
    int code = kv_get(kv, NULL, &a, KV_NAME("p", "there"), &value, &err);

    CHECK(code < 0 || str_eq(value.bytes, STR("here")));
    arena_release(&a);
    return code;
}

/* --- on every driver --- */

KV_LAB_TEST(kv, a_write_whose_row_behind_it_does_not_fit_was_made)
{
    struct arena small = ARENA_INIT(4 * KIB);
    char large[64 * KIB];
    struct err err = {0};

    memset(large, 'x', sizeof(large));
    CHECK_OK(kv_set(lab->kv, KV_NAME("q", "large"), str_n(large, sizeof(large)), &err));
    CHECK_ERR(write_once(lab->kv, &small, "k", "large"), ERR_TIMEOUT);
    kv_lab_expect(lab->kv, "p", "k", "once");
    CHECK_ERR(write_once(lab->kv, &lab->arena, "k", "large"), ERR_PRECONDITION);
    arena_release(&small);
}

/* --- through a proxy --- */

struct cut_lab {
    struct kv *kv; /* through the proxy, with one connection */
    struct cut_proxy proxy;
    struct arena arena;
    struct store *store;
    struct redis_server redis;
};

static void cut_close(struct cut_lab *l)
{
    kv_close(l->kv);
    store_close(l->store);
    cut_proxy_stop(&l->proxy);
    if (l->redis.pid)
        redis_server_kill(&l->redis);
    else
        postgres_shared_drop();
    arena_release(&l->arena);
}

static void cut_open_redis(struct cut_lab *l, uint64_t timeout_ms)
{
    char path[120], url[64];
    struct err err = {0};

    *l = (struct cut_lab){.redis = {.dir = test_dir()}};
    CHECK(redis_server_start(&l->redis));
    snprintf(path, sizeof(path), "%s/redis.sock", l->redis.dir);
    cut_proxy_start(&l->proxy, path);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", l->proxy.port);
    CHECK_OK(store_open_redis(&l->store,
                              &(struct store_redis_options){.url = str_z(url),
                                                            .timeout_ms = timeout_ms,
                                                            .max_connections = 1},
                              &err));
    CHECK_OK(kv_open_redis(&l->kv, l->store, NULL, &err));
    kv_lab_set(l->kv, "p", "there", "here");
}

static void cut_open_postgres(struct cut_lab *l, uint64_t timeout_ms)
{
    char url[512];
    struct kv_postgres_options o = {.url = url, .max_connections = 1, .timeout_ms = timeout_ms};
    struct err err = {0};

    *l = (struct cut_lab){0};
    cut_proxy_start_postgres(&l->proxy, kv_lab_postgres_url(), url, sizeof(url));
    CHECK_OK(kv_open_postgres(&l->kv, &o, &err));
    kv_lab_set(l->kv, "p", "there", "here");
}

/* Cuts the connection of a write; `is_made` says whether the server got the write. */
static void expect_unknown(struct cut_lab *l, enum cut_moment moment, const char *key, bool is_made)
{
    l->proxy.moment = moment;
    CHECK_ERR(write_once(l->kv, &l->arena, key, "behind"), ERR_TIMEOUT);
    CHECK(cut_proxy_was_cut(&l->proxy));
    if (is_made) {
        CHECK_SOON(write_once(l->kv, &l->arena, key, "behind") == ERR_PRECONDITION);
        kv_lab_expect(l->kv, "p", key, "once");
    } else {
        kv_lab_expect(l->kv, "p", key, NULL); /* it was not sent again */
        CHECK_INT(write_once(l->kv, &l->arena, key, "behind"), 0);
    }
}

TEST(kv_unknown, a_write_to_redis_whose_connection_is_cut_is_not_sent_again)
{
    struct cut_lab l;

    cut_open_redis(&l, PATIENT_MS);
    expect_unknown(&l, CUT_REQUEST, "a", false);
    expect_unknown(&l, CUT_ANSWER, "b", true);
    l.proxy.moment = CUT_ANSWER;
    CHECK_ERR(read_one(l.kv), ERR_UNAVAILABLE);
    CHECK(cut_proxy_was_cut(&l.proxy));
    CHECK_INT(read_one(l.kv), 0);
    cut_close(&l);
}

TEST(kv_unknown, a_write_to_postgres_whose_connection_is_cut_is_not_sent_again)
{
    struct cut_lab l;

    cut_open_postgres(&l, PATIENT_MS);
    expect_unknown(&l, CUT_REQUEST, "a", false);
    expect_unknown(&l, CUT_ANSWER, "b", true);
    expect_unknown(&l, CUT_BEHIND_READY, "c", true); /* only the read is missing */
    l.proxy.moment = CUT_ANSWER;
    CHECK_INT(read_one(l.kv), 0); /* a read is sent again */
    CHECK(cut_proxy_was_cut(&l.proxy));
    cut_close(&l);
}

/* The condition does not hold, and the answer to the read is lost: it is known that nothing was
 * changed. */
TEST(kv_unknown, a_condition_of_postgres_that_failed_is_told_though_the_read_is_lost)
{
    struct cut_lab l;

    cut_open_postgres(&l, PATIENT_MS);
    CHECK_INT(write_once(l.kv, &l.arena, "a", "behind"), 0);
    l.proxy.moment = CUT_BEHIND_READY;
    CHECK_ERR(write_once(l.kv, &l.arena, "a", "behind"), ERR_PRECONDITION);
    CHECK(cut_proxy_was_cut(&l.proxy));
    cut_close(&l);
}

/* A put behind a glance at the row p/there, which has the value "here". */
static int write_glanced(struct cut_lab *l, const char *stamp, const char *key)
{
    struct kv_change changes[] = {
        {.what = KV_GLANCE, .name = KV_NAME("p", "there"), .when = KV_SAME, .stamp = str_z(stamp)},
        {.what = KV_PUT, .name = {STR("p"), str_z(key)}, .value = STR("once")},
    };
    struct kv_name name = KV_NAME("q", "behind");
    struct kv_value value;
    struct err err = {0};

    return kv_write_get(l->kv, changes, 2, NULL, &l->arena, &name, 1, &value, &err);
}

static bool cut_lab_has(struct cut_lab *l, const char *key)
{
    struct kv_value value;
    struct err err = {0};

    return kv_get(l->kv, NULL, &l->arena, (struct kv_name){STR("p"), str_z(key)}, &value, &err) ==
           0;
}

/* The glance is a statement before the write's own, in the same transaction. */
TEST(kv_unknown, a_glance_of_postgres_is_judged_though_the_read_is_lost)
{
    struct cut_lab l;

    cut_open_postgres(&l, PATIENT_MS);
    l.proxy.moment = CUT_BEHIND_READY;
    CHECK_ERR(write_glanced(&l, "here", "a"), ERR_TIMEOUT);
    CHECK(cut_proxy_was_cut(&l.proxy));
    CHECK_SOON(cut_lab_has(&l, "a")); /* the server may still be about to commit */
    l.proxy.moment = CUT_BEHIND_READY;
    CHECK_ERR(write_glanced(&l, "gone", "b"), ERR_PRECONDITION);
    CHECK(cut_proxy_was_cut(&l.proxy));
    kv_lab_expect(l.kv, "p", "b", NULL);
    cut_close(&l);
}

/* A server that stops answering: a write may have been made; a read has changed nothing; and a call
 * for which there is no connection yet was not sent. */
static void expect_silence(struct cut_lab *l)
{
    l->proxy.moment = CUT_HOLD;
    CHECK_ERR(write_once(l->kv, &l->arena, "a", "behind"), ERR_TIMEOUT);
    CHECK_ERR(write_once(l->kv, &l->arena, "b", "behind"), ERR_UNAVAILABLE);
    l->proxy.moment = CUT_NOTHING;
    CHECK_SOON(read_one(l->kv) == 0);
    kv_lab_expect(l->kv, "p", "b", NULL);
    l->proxy.moment = CUT_HOLD;
    CHECK_ERR(read_one(l->kv), ERR_UNAVAILABLE);
    l->proxy.moment = CUT_NOTHING;
}

TEST(kv_unknown, a_redis_that_falls_silent)
{
    struct cut_lab l;

    cut_open_redis(&l, SHORT_MS);
    expect_silence(&l);
    cut_close(&l);
}

TEST(kv_unknown, a_postgres_that_falls_silent)
{
    struct cut_lab l;

    cut_open_postgres(&l, SHORT_MS);
    expect_silence(&l);
    cut_close(&l);
}

/* --- silence --- */

struct silent_call {
    struct cut_lab *lab;
    struct thread thread;
    _Atomic(bool) ended;
};

static void silent_call_run(void *ctx)
{
    struct silent_call *c = ctx;

    CHECK(read_one(c->lab->kv) <= 0);
    c->ended = true;
}

/* One call waits for the server; while it waits for it again, no other call waits. */
static void expect_refusals(struct cut_lab *l)
{
    struct silent_call asks = {.lab = l};
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};

    l->proxy.moment = CUT_HOLD;
    CHECK_ERR(read_one(l->kv), ERR_UNAVAILABLE);
    CHECK(l->kv->silence.is_silent);
    CHECK_OK(thread_start(&asks.thread, "asks", 0, silent_call_run, &asks, &err));
    CHECK_SOON(l->kv->silence.is_asked);
    for (int i = 0; i < 20; i++) {
        CHECK_ERR(read_one(l->kv), ERR_UNAVAILABLE);
        CHECK_ERR(write_once(l->kv, &l->arena, "a", "behind"), ERR_UNAVAILABLE);
        CHECK_ERR(kv_drop(l->kv, STR("p"), &err), ERR_UNAVAILABLE);
        CHECK_ERR(kv_probe(l->kv, &err), ERR_UNAVAILABLE);
        CHECK_OK(kv_scan_open(&scan, l->kv, NULL, STR("p"), NULL, &err));
        CHECK_ERR(kv_scan_next(scan, &key, &value, &err), ERR_UNAVAILABLE);
        kv_scan_free(scan);
    }
    CHECK(!asks.ended);
    l->proxy.moment = CUT_NOTHING;
    thread_join(&asks.thread);
    CHECK_SOON(read_one(l->kv) == 0);
    CHECK(!l->kv->silence.is_silent);
    kv_lab_expect(l->kv, "p", "a", NULL); /* what was refused was not sent */
}

TEST(kv_silence, a_redis_that_hangs_refuses_at_once_all_but_one)
{
    struct cut_lab l;

    cut_open_redis(&l, SILENT_MS);
    expect_refusals(&l);
    cut_close(&l);
}

TEST(kv_silence, a_postgres_that_hangs_refuses_at_once_all_but_one)
{
    struct cut_lab l;

    cut_open_postgres(&l, SILENT_MS);
    expect_refusals(&l);
    cut_close(&l);
}

struct slow_call {
    struct kv *kv;
    struct thread thread;
    _Atomic(bool) ended;
};

static void slow_call_run(void *ctx)
{
    struct slow_call *c = ctx;
    struct err err = {0};
    int code = kv_set(c->kv, KV_NAME("p", "locked"), STR("w"), &err);

    CHECK(code == ERR_TIMEOUT || code == ERR_BUSY);
    c->ended = true;
}

/* Another session locks one row; all others are read meanwhile. */
TEST(kv_silence, a_slow_call_beside_others_that_are_answered_is_no_silence)
{
    const char *url = kv_lab_postgres_url();
    struct kv_postgres_options o = {.url = url, .timeout_ms = SHORT_MS};
    struct slow_call slow = {0};
    struct err err = {0};

    CHECK_OK(kv_open_postgres(&slow.kv, &o, &err));
    kv_lab_set(slow.kv, "p", "there", "here");
    kv_lab_set(slow.kv, "p", "locked", "v");
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, "UPDATE kv SET value = 'x' WHERE key = 'locked'"));
    CHECK_OK(thread_start(&slow.thread, "slow", 0, slow_call_run, &slow, &err));
    while (!slow.ended)
        CHECK_INT(read_one(slow.kv), 0);
    CHECK(!slow.kv->silence.is_silent);
    thread_join(&slow.thread);
    PQfinish(other);
    kv_close(slow.kv);
    postgres_shared_drop();
}

/* --- errors of the server --- */

/* Redis holds a string where the row that is read should be. */
TEST(kv_unknown, a_write_to_redis_was_made_when_the_read_behind_it_fails)
{
    struct redis_server server = {.dir = test_dir()};
    struct store *store = NULL;
    struct kv *kv = NULL;
    struct arena a = {0};
    struct reply *reply;
    struct err err = {0};

    CHECK(redis_server_start(&server));
    CHECK_OK(store_open_redis(
        &store,
        &(struct store_redis_options){.url = str_z(server.unix_url), .timeout_ms = PATIENT_MS},
        &err));
    CHECK_OK(kv_open_redis(&kv, store, NULL, &err));
    CHECK_OK(store_call(store, &a, &reply, &err, STR("SET"), STR("kv:q:h"), STR("other")));
    CHECK_ERR(write_once(kv, &a, "k", "behind"), ERR_TIMEOUT);
    kv_lab_expect(kv, "p", "k", "once");
    kv_close(kv);
    store_close(store);
    redis_server_kill(&server);
    arena_release(&a);
}

/* A user whose reads of the row q/bad fail with the code of the server. */
static struct kv *postgres_with_bad_row(const char *url, const char *code)
{
    struct kv_postgres_options o = {.url = url, .timeout_ms = PATIENT_MS};
    char statement[1024], user_url[512];
    struct kv *kv = NULL;
    struct err err = {0};
    int id = (int)getpid();

    CHECK_OK(kv_open_postgres(&kv, &o, &err));
    kv_lab_set(kv, "q", "bad", "");
    kv_close(kv);
    snprintf(statement, sizeof(statement),
             "CREATE FUNCTION good(k bytea) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN"
             " IF k = 'bad' THEN RAISE 'a bad row' USING ERRCODE = '%s'; END IF; RETURN true;"
             " END $$; CREATE ROLE careful%d LOGIN;"
             "GRANT SELECT, INSERT, UPDATE, DELETE ON kv TO careful%d;"
             "ALTER TABLE kv ENABLE ROW LEVEL SECURITY;"
             "CREATE POLICY all_good ON kv USING (good(key))",
             code, id, id);
    CHECK(postgres_run(url, statement));
    snprintf(user_url, sizeof(user_url), "%s&user=careful%d", url, id);
    o.url = user_url;
    CHECK_OK(kv_open_postgres(&kv, &o, &err));
    return kv;
}

static void expect_made_unread(const char *code)
{
    const char *url = kv_lab_postgres_url();
    struct kv *kv = postgres_with_bad_row(url, code);
    char statement[128];
    struct arena a = {0};

    CHECK_ERR(write_once(kv, &a, "k", "bad"), ERR_TIMEOUT);
    kv_lab_expect(kv, "p", "k", "once");
    CHECK_ERR(write_once(kv, &a, "k", "bad"), ERR_PRECONDITION);
    CHECK_ERR(write_once(kv, &a, "bad", "fine"),
              str_eq(str_z(code), STR("40001")) ? ERR_BUSY : ERR_NO_SPACE); /* the write's own */
    kv_close(kv);
    snprintf(statement, sizeof(statement), "DROP OWNED BY careful%d; DROP ROLE careful%d",
             (int)getpid(), (int)getpid());
    CHECK(postgres_run(url, statement));
    postgres_shared_drop();
    arena_release(&a);
}

/* The server says that it undid a transaction, which is that of the read. */
TEST(kv_unknown, a_write_to_postgres_is_not_repeated_when_the_read_behind_it_is_undone)
{
    expect_made_unread("40001");
}

TEST(kv_unknown, a_write_to_postgres_was_made_when_the_read_behind_it_fails)
{
    expect_made_unread("53100"); /* the disk is full: by itself it means that nothing was changed */
}

/* An error in the place of the commit's answer: the outcome is not known, and the connection has
 * more answers than were asked for. */
TEST(kv_unknown, an_error_of_the_commit_is_unknown_and_reaches_nobody_else)
{
    const char *url = kv_lab_postgres_url();
    struct kv_postgres_options o = {.url = url, .max_connections = 1, .timeout_ms = PATIENT_MS};
    struct kv *kv = NULL;
    struct arena a = {0};
    struct err err = {0};
    char statement[640];

    CHECK_OK(kv_open_postgres(&kv, &o, &err));
    kv_lab_set(kv, "p", "there", "here");
    kv_lab_set(kv, "p", "late", "");
    snprintf(statement, sizeof(statement),
             "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF NEW.value = 'late' THEN RAISE 'too late'; END IF; RETURN NULL; END $$;"
             "CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON kv_%u DEFERRABLE INITIALLY"
             " DEFERRED FOR EACH ROW EXECUTE FUNCTION late()",
             sql_table_of(STR("p")));
    CHECK(postgres_run(url, statement));
    kv_lab_set(kv, "p", "late", "in time");
    for (int i = 0; i < 3; i++) {
        CHECK_ERR(kv_set(kv, KV_NAME("p", "late"), STR("late"), &err), ERR_TIMEOUT);
        CHECK_INT(read_one(kv), 0);
        kv_lab_expect(kv, "p", "late", "in time");
    }
    kv_close(kv);
    postgres_shared_drop();
    arena_release(&a);
}
