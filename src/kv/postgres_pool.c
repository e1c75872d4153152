/* Makes connections to PostgreSQL, and keeps a pool of them. */
#include "base/clock.h"
#include "base/ids.h"
#include "kv/postgres_int.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEFAULT_CONNECTIONS = 25,
    DEFAULT_TIMEOUT_MS = 5000,
    RETRY_FIRST_MS = 10,
    RETRY_DOUBLES = 7
};

/* --- one connection --- */

static void link_close(struct pg_link *link)
{
    PQfinish(link->conn);
    free(link);
}

/* Sets the session's limits, and makes sure that the server takes writes. */
static int link_begin(struct pg_link *link, uint64_t timeout_ms, uint64_t deadline_ns,
                      struct err *err)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)timeout_ms);
    struct pg_call call = {.sql = SQL_SESSION, .params = {str_n(text, (size_t)len)}};
    bool lost;
    int code = pg_link_run(link, &call, 1, deadline_ns, &lost, err);

    if (code == 0 && pg_bytes(call.result, 0, 0).p[0])
        code = err_set(err, ERR_UNAVAILABLE, "postgres: the server is a standby");
    pg_calls_clear(&call, 1);
    /* So far only the session's settings were sent, so no statement of a caller can have run
     * (K6). */
    return code == ERR_CLOSED || code == ERR_TIMEOUT
               ? err_wrap(err, ERR_UNAVAILABLE, "postgres: connecting")
               : code;
}

static int link_open(struct pg_link **out, const struct pg_pool *pool, uint64_t deadline_ns,
                     struct err *err)
{
    /* The url ("dbname") may override the keys before it. */
    const char *const keys[] = {"fallback_application_name", "target_session_attrs", "dbname",
                                NULL};
    const char *const values[] = {"weir", "read-write", pool->url, NULL};
    struct pg_link *link = xzalloc(sizeof(*link));

    list_init(&link->node);
    int code = pg_conn_open(&link->conn, keys, values, &(struct sock_limit){deadline_ns}, err);
    if (code == 0)
        BUG_ON(!PQenterPipelineMode(link->conn)); /* it fails only while statements run */
    if (code == 0)
        code = link_begin(link, pool->timeout_ns / NS_PER_MS, deadline_ns, err);
    if (code < 0)
        link_close(link);
    else
        *out = link;
    return code;
}

/* Whether an idle connection can still be used. Reading from it shows whether the server has closed
 * it. */
static bool link_is_alive(struct pg_link *link)
{
    return PQconsumeInput(link->conn) && PQstatus(link->conn) == CONNECTION_OK;
}

/* --- the pool --- */

int pg_pool_init(struct pg_pool *pool, const struct kv_postgres_options *o, struct err *err)
{
    int code = pg_url_check(o->url, "the url of the key-value store", err);

    if (code < 0)
        return code;
    pool->url = xstrdup(o->url);
    pool->timeout_ns = (o->timeout_ms ? o->timeout_ms : DEFAULT_TIMEOUT_MS) * NS_PER_MS;
    pool->max = o->max_connections ? o->max_connections : DEFAULT_CONNECTIONS;
    pool->log = o->log;
    mutex_init(&pool->lock, "kv.postgres");
    cond_init(&pool->freed);
    list_init(&pool->idle);
    return 0;
}

void pg_pool_release(struct pg_pool *pool)
{
    struct list *node;

    while ((node = list_shift(&pool->idle)))
        link_close(list_entry(node, struct pg_link, node));
    cond_release(&pool->freed);
    mutex_release(&pool->lock);
    secure_zero(pool->url, strlen(pool->url));
    free(pool->url);
}

/* Takes an idle connection. If there is none, reserves a place in the pool for a new connection,
 * and sets *out to NULL. */
static int pool_seat(struct pg_pool *pool, struct pg_link **out, uint64_t deadline_ns,
                     struct err *err)
{
    struct list *node = NULL;

    while (!(node = list_shift(&pool->idle)) && pool->open == pool->max)
        if (!cond_wait_until(&pool->freed, &pool->lock, deadline_ns))
            return err_set(err, ERR_BUSY, "postgres: all %zu connections are in use", pool->max);
    *out = node ? list_entry(node, struct pg_link, node) : NULL;
    if (node)
        return 0;
    if (pool->is_down && (pool->is_trying || clock_mono_ns() < pool->retry_ns))
        return err_set(err, pool->why.code, "%s", pool->why.text);
    pool->is_trying = pool->is_down;
    pool->open++;
    return 0;
}

static void pool_failed(struct pg_pool *pool, const struct err *err)
{
    uint64_t pause_ms = (uint64_t)RETRY_FIRST_MS << size_min(pool->failures, RETRY_DOUBLES);

    mutex_assert_held(&pool->lock);
    if (!pool->is_down)
        log_warn(pool->log, "kv.postgres.down", log_z("error", err->text));
    pool->is_down = true;
    pool->failures++;
    pool->why = *err;
    pool->retry_ns = clock_mono_ns() + (pause_ms - random_below(pause_ms / 2)) * NS_PER_MS;
    pool->open--;
    cond_signal(&pool->freed);
}

static void pool_connected(struct pg_pool *pool)
{
    mutex_assert_held(&pool->lock);
    if (pool->is_down)
        log_info(pool->log, "kv.postgres.up");
    pool->is_down = false;
    pool->failures = 0;
}

static int pool_connect(struct pg_pool *pool, struct pg_link **out, uint64_t deadline_ns,
                        struct err *err)
{
    struct err why = {0};
    int code = link_open(out, pool, deadline_ns, &why);

    mutex_lock(&pool->lock);
    pool->is_trying = false;
    if (code == 0)
        pool_connected(pool);
    else
        pool_failed(pool, &why);
    mutex_unlock(&pool->lock);
    return code < 0 ? err_set(err, code, "%s", why.text) : 0;
}

int pg_pool_take(struct pg_pool *pool, struct pg_link **out, uint64_t deadline_ns, struct err *err)
{
    for (;;) {
        mutex_lock(&pool->lock);
        int code = pool_seat(pool, out, deadline_ns, err);
        mutex_unlock(&pool->lock);
        if (code < 0)
            return code;
        if (!*out)
            return pool_connect(pool, out, deadline_ns, err);
        if (link_is_alive(*out))
            return 0;
        pg_pool_drop(pool, *out);
    }
}

void pg_pool_give(struct pg_pool *pool, struct pg_link *link)
{
    mutex_lock(&pool->lock);
    list_push_front(&pool->idle, &link->node);
    cond_signal(&pool->freed);
    mutex_unlock(&pool->lock);
}

void pg_pool_drop(struct pg_pool *pool, struct pg_link *link)
{
    link_close(link);
    mutex_lock(&pool->lock);
    pool->open--;
    cond_signal(&pool->freed);
    mutex_unlock(&pool->lock);
}
