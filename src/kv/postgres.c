/* The postgres driver: a table of (partition, key, value) in PostgreSQL, by libpq. docs/kv.md,
 * "postgres", says which statement does what. */
#include "base/bytes.h"
#include "kv/paged.h"
#include "kv/postgres_int.h"

#include <stdlib.h>

enum { WRITE_FLIGHTS = 4 }; /* most writes with the same checks that are sent at the same time */

struct postgres_kv {
    struct kv kv;
    struct pg_pool pool;
};

static struct pg_pool *pool_of(struct kv *kv)
{
    return &container_of(kv, struct postgres_kv, kv)->pool;
}

/* --- reading --- */

static int postgres_view_open(struct kv_view **out, struct kv *kv, struct err *err)
{
    *out = NULL; /* reads show the newest state */
    return 0;
}

static void postgres_view_close(struct kv *kv, struct kv_view *view)
{
    BUG_ON(view);
}

static void call_get(struct pg_call *out, const struct kv_name *name)
{
    *out = (struct pg_call){.sql = SQL_GET, .params = {name->partition, name->key}};
}

static int values_copy(struct kv_value *out, const struct pg_call *calls, size_t count,
                       struct arena *a, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct kv_value){0};
        if (PQntuples(calls[i].result) == 0)
            continue;
        out[i].bytes = out[i].stamp = arena_str(a, pg_bytes(calls[i].result, 0, 0));
        if (!out[i].bytes.p)
            return err_code(err, ERR_NO_MEMORY);
    }
    return 0;
}

static int postgres_get(struct kv *kv, struct kv_view *view, struct arena *a,
                        const struct kv_name *names, size_t count, struct kv_value *out,
                        struct err *err)
{
    struct pg_call *calls = xcalloc(count, sizeof(*calls));

    for (size_t i = 0; i < count; i++)
        call_get(&calls[i], &names[i]);
    int code = pg_run(pool_of(kv), calls, count, false, err);
    if (code == 0)
        code = values_copy(out, calls, count, a, err);
    pg_calls_clear(calls, count);
    free(calls);
    return code;
}

static int page_copy(struct page *out, const PGresult *r, const struct page_range *range,
                     struct err *err)
{
    size_t bytes = 0;

    out->count = (size_t)PQntuples(r);
    out->rows = arena_array(&out->arena, out->count + 1, sizeof(*out->rows));
    for (size_t i = 0; i < out->count && out->rows; i++) {
        out->rows[i].key = arena_str(&out->arena, pg_bytes(r, (int)i, 0));
        out->rows[i].value = arena_str(&out->arena, pg_bytes(r, (int)i, 1));
        bytes += out->rows[i].value.len;
    }
    out->last = out->count < range->rows && bytes < PAGE_BYTES;
    int code = arena_error(&out->arena);
    return code < 0 ? err_code(err, code) : 0;
}

static int postgres_page(struct page *out, struct kv *kv, const struct page_range *range,
                         struct err *err)
{
    char rows[8], bytes[8];
    struct pg_call call = {.sql = range->to.len ? SQL_PAGE_TO : SQL_PAGE,
                           .params = {range->partition, range->from, str_n(rows, sizeof(rows)),
                                      str_n(bytes, sizeof(bytes)), range->to}};

    be64_write(rows, range->rows);
    be64_write(bytes, PAGE_BYTES);
    int code = pg_run(pool_of(kv), &call, 1, false, err);
    if (code == 0)
        code = page_copy(out, call.result, range, err);
    pg_calls_clear(&call, 1);
    return code;
}

static int postgres_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                              struct str partition, const struct kv_range *range, struct err *err)
{
    return paged_open(out, kv, postgres_page, partition, range);
}

/* --- writing --- */

static int postgres_write(struct kv *kv, const struct kv_change *changes, size_t count,
                          size_t *failed, struct arena *a, const struct kv_name *names,
                          size_t name_count, struct kv_value *out, struct err *err)
{
    struct pg_write w;

    pg_write_init(&w, changes, count);
    size_t first = pg_write_calls(&w), all = first + name_count;
    struct pg_call *calls = xcalloc(all, sizeof(*calls));
    pg_write_fill(&w, calls);
    for (size_t i = 0; i < name_count; i++)
        call_get(&calls[first + i], &names[i]);
    int code = pg_write_run(&w, pool_of(kv), calls, all, failed, err);
    if (code == 0 && values_copy(out, calls + first, name_count, a, err) < 0)
        code = kv_made_unread(err);
    pg_calls_clear(calls, all);
    pg_write_release(&w);
    free(calls);
    return code;
}

/* Removes up to 10,000 rows from the key `from` on, and sets `from` to the key from which the next
 * call continues. *more: rows may be left. */
static int drop_slice(struct pg_pool *pool, struct str partition, struct buf *from, bool *more,
                      struct err *err)
{
    struct pg_call bound = {.sql = SQL_DROP_BOUND, .params = {partition, buf_str(from)}};
    int code = pg_run(pool, &bound, 1, false, err);

    if (code < 0)
        return code;
    *more = PQntuples(bound.result) > 0;
    struct str last = *more ? pg_bytes(bound.result, 0, 0) : STR_EMPTY;
    struct pg_call remove = {.sql = *more ? SQL_DROP_TO : SQL_DROP_REST,
                             .params = {partition, buf_str(from), last}};
    code = pg_run(pool, &remove, 1, true, err);
    buf_reset(from);
    kv_key_behind(from, last);
    pg_calls_clear(&bound, 1);
    pg_calls_clear(&remove, 1);
    return code;
}

static int postgres_drop(struct kv *kv, struct str partition, struct err *err)
{
    struct buf from = BUF_INIT(0);
    bool more = true;
    int code = 0;

    while (code == 0 && more)
        code = drop_slice(pool_of(kv), partition, &from, &more, err);
    buf_release(&from);
    return code == ERR_AGAIN ? err_wrap(err, ERR_BUSY, "dropping a partition") : code;
}

/* --- opening --- */

static int run_once(struct pg_pool *pool, enum sql_name sql, struct err *err)
{
    struct pg_call call = {.sql = sql};
    int code = pg_run(pool, &call, 1, true, err);

    pg_calls_clear(&call, 1);
    return code == ERR_AGAIN ? err_wrap(err, ERR_BUSY, "preparing the database") : code;
}

static int make_function(struct pg_pool *pool, struct err *err)
{
    struct pg_call call = {.sql = SQL_FUNCTION_TEXT};
    int code = pg_run(pool, &call, 1, false, err);
    bool same = code == 0 && PQntuples(call.result) == 1 &&
                str_eq(pg_bytes(call.result, 0, 0), str_z(sql_function_body));

    pg_calls_clear(&call, 1);
    return code < 0 || same ? code : run_once(pool, SQL_FUNCTION, err);
}

/* Finds out whether the server keeps rows in the same tables as sql_table_of() computes, and
 * whether this user may use these tables directly. */
static int compare_layout(struct pg_pool *pool, struct err *err)
{
    static const struct str samples[] = {STR("graveler"), STR("kv-internal-metadata"),
                                         STR("repo-main:00000000-0000-4000-8000-000000000000")};
    struct pg_call calls[ARRAY_SIZE(samples)];
    char tables[ARRAY_SIZE(samples)][4];
    bool same = true;

    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        be32_write(tables[i], sql_table_of(samples[i]));
        calls[i] = (struct pg_call){.sql = SQL_LAYOUT, .params = {str_n(tables[i], 4), samples[i]}};
    }
    int code = pg_run(pool, calls, ARRAY_SIZE(calls), false, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        same = same && pg_bytes(calls[i].result, 0, 0).p[0];
    atomic_store_explicit(&pool->routes, same, memory_order_relaxed);
    pg_calls_clear(calls, ARRAY_SIZE(calls));
    return 0;
}

/* Makes the tables and, as the last step, the function. Nothing is made in a database that a newer
 * program or lakeFS has written. (lakeFS's table has the same name.) */
static int postgres_prepare(struct kv *kv, struct err *err)
{
    struct pg_pool *pool = pool_of(kv);
    int code = run_once(pool, SQL_TABLES, err);

    if (code == 0)
        code = compare_layout(pool, err);
    if (code == 0)
        code = kv_schema_check(kv, err);
    return code < 0 ? code : make_function(pool, err);
}

static int postgres_probe(struct kv *kv, struct err *err)
{
    struct pg_call call = {.sql = SQL_PROBE};
    int code = pg_run(pool_of(kv), &call, 1, false, err);

    if (code == 0 && pg_bytes(call.result, 0, 0).p[0])
        code = err_set(err, ERR_UNAVAILABLE, "postgres: the server takes no writes");
    pg_calls_clear(&call, 1);
    return code;
}

static int postgres_ask(struct kv *kv, struct err *err)
{
    struct pg_call call = {.sql = SQL_PROBE};
    int code = pg_run(pool_of(kv), &call, 1, false, err);

    pg_calls_clear(&call, 1);
    return code;
}

static void postgres_close(struct kv *kv)
{
    struct postgres_kv *p = container_of(kv, struct postgres_kv, kv);

    kv_groups_free(kv->groups);
    pg_pool_release(&p->pool);
    free(p);
}

static const struct kv_ops postgres_ops = {
    .prepare = postgres_prepare,
    .view_open = postgres_view_open,
    .view_close = postgres_view_close,
    .get = postgres_get,
    .write = postgres_write,
    .scan_open = postgres_scan_open,
    .scan_next = paged_next,
    .scan_seek = paged_seek,
    .scan_close = paged_close,
    .scan_free = paged_free,
    .drop = postgres_drop,
    .probe = postgres_probe,
    .ask = postgres_ask,
    .close = postgres_close,
};

int kv_open_postgres(struct kv **out, const struct kv_postgres_options *o, struct err *err)
{
    struct postgres_kv *p = xzalloc(sizeof(*p));
    int code = pg_pool_init(&p->pool, o, err);

    if (code < 0) {
        free(p);
        return code;
    }
    p->kv.ops = &postgres_ops;
    p->kv.driver = "postgres";
    p->kv.timeout_ns = p->pool.timeout_ns;
    p->kv.groups = kv_groups_new(WRITE_FLIGHTS);
    return kv_opened(out, &p->kv, o->log, err);
}
