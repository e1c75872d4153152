/* Writes of the postgres driver: which statement makes which changes.
 *
 * - One change: one plain statement.
 * - Several puts without conditions: one INSERT.
 * - Glances, then such puts of one partition: one statement for each glance, then the INSERT.
 * - All other writes: the function weir_kv_write, with the changes sorted by name. There a glance
 *   is made as a check. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "kv/postgres_int.h"

#include <stdlib.h>
#include <time.h>

enum { KINDS = 4 * (KV_CHECK + 1), PAUSE_MAX_MS = 20, ARRAY_MAX = 64 << 20 };

/* Returns the kind of a change as weir_kv_write reads it. */
static int16_t kind_number(const struct kv_change *c)
{
    enum kv_what what = c->what == KV_GLANCE ? KV_CHECK : c->what;

    return (int16_t)(4 * (int)what + (int)c->when);
}

static enum sql_name single_sql(const struct kv_change *c)
{
    static const enum sql_name names[KINDS] = {
        [4 * KV_PUT + KV_ALWAYS] = SQL_PUT,          [4 * KV_PUT + KV_ABSENT] = SQL_PUT_ABSENT,
        [4 * KV_PUT + KV_EXISTS] = SQL_PUT_EXISTS,   [4 * KV_PUT + KV_SAME] = SQL_PUT_SAME,
        [4 * KV_REMOVE + KV_ALWAYS] = SQL_REMOVE,    [4 * KV_REMOVE + KV_EXISTS] = SQL_REMOVE,
        [4 * KV_REMOVE + KV_SAME] = SQL_REMOVE_SAME, [4 * KV_CHECK + KV_EXISTS] = SQL_CHECK_EXISTS,
        [4 * KV_CHECK + KV_SAME] = SQL_CHECK_SAME,
    };

    return names[kind_number(c)];
}

/* --- arrays in PostgreSQL's binary form --- */

static void append_be32(struct buf *out, uint32_t v)
{
    char bytes[4];

    be32_write(bytes, v);
    buf_append(out, bytes, sizeof(bytes));
}

static void array_begin(struct buf *out, Oid element, size_t count)
{
    buf_init(out, ARRAY_MAX);
    append_be32(out, 1); /* dimension */
    append_be32(out, 0); /* no NULLs */
    append_be32(out, element);
    append_be32(out, (uint32_t)count);
    append_be32(out, 1); /* index of the first element */
}

static void array_add(struct buf *out, struct str element)
{
    append_be32(out, (uint32_t)element.len);
    buf_append_str(out, element);
}

/* --- writes --- */

static int change_order(const void *a, const void *b)
{
    const struct kv_change *x = *(const struct kv_change *const *)a;
    const struct kv_change *y = *(const struct kv_change *const *)b;
    int order = str_cmp(x->name.partition, y->name.partition);

    return order ? order : str_cmp(x->name.key, y->name.key);
}

enum { KIND, PLACE, PARTITION, KEY, VALUE, STAMP, COLUMNS };

static void arrays_add(struct buf *arrays, const struct kv_change *c, size_t place)
{
    char kind[2], at[4];

    be16_write(kind, (uint16_t)kind_number(c));
    be32_write(at, (uint32_t)place);
    array_add(&arrays[KIND], str_n(kind, sizeof(kind)));
    array_add(&arrays[PLACE], str_n(at, sizeof(at)));
    array_add(&arrays[PARTITION], c->name.partition);
    array_add(&arrays[KEY], c->name.key);
    array_add(&arrays[VALUE], c->what == KV_PUT ? c->value : STR_EMPTY);
    array_add(&arrays[STAMP], c->when == KV_SAME ? c->stamp : STR_EMPTY);
}

/* Fills the arrays with the changes that follow the glances, in the order of their names. */
static void arrays_fill(struct pg_write *w)
{
    const struct kv_change *changes = w->changes + w->glances;
    size_t count = w->count - w->glances;
    static const Oid elements[COLUMNS] = {
        [KIND] = 21, [PLACE] = 23, [PARTITION] = 17, [KEY] = 17, [VALUE] = 17, [STAMP] = 17};
    const struct kv_change **sorted = xcalloc(count, sizeof(*sorted));

    for (size_t i = 0; i < count; i++)
        sorted[i] = &changes[i];
    qsort(sorted, count, sizeof(*sorted), change_order);
    for (size_t i = 0; i < COLUMNS; i++)
        array_begin(&w->arrays[i], elements[i], count);
    for (size_t i = 0; i < count; i++)
        arrays_add(w->arrays, sorted[i], (size_t)(sorted[i] - changes));
    free(sorted);
}

/* Returns the statement for several changes. */
static enum sql_name several_sql(const struct kv_change *changes, size_t count)
{
    bool one_partition = true;

    for (size_t i = 0; i < count; i++) {
        if (changes[i].what != KV_PUT || changes[i].when != KV_ALWAYS)
            return SQL_WRITE;
        one_partition =
            one_partition && str_eq(changes[i].name.partition, changes[0].name.partition);
    }
    return one_partition ? SQL_PUT_ROWS : SQL_PUT_MANY;
}

static void single_init(struct pg_call *call, const struct kv_change *c)
{
    size_t n = 2;

    call->sql = single_sql(c);
    call->params[0] = c->name.partition;
    call->params[1] = c->name.key;
    if (c->what == KV_PUT)
        call->params[n++] = c->value;
    if (c->when == KV_SAME)
        call->params[n] = c->stamp;
}

/* Returns the number of glances at the front, if all changes after them are puts without conditions
 * in one partition. Otherwise returns 0, and the glances are made as checks. */
static size_t glances_count(const struct kv_change *changes, size_t count)
{
    size_t glances = 0;

    while (glances < count && changes[glances].what == KV_GLANCE)
        glances++;
    bool puts_follow =
        glances < count && several_sql(changes + glances, count - glances) == SQL_PUT_ROWS;
    return puts_follow ? glances : 0;
}

void pg_write_init(struct pg_write *w, const struct kv_change *changes, size_t count)
{
    *w = (struct pg_write){
        .changes = changes, .count = count, .glances = glances_count(changes, count)};
}

static void glance_init(struct pg_call *call, const struct kv_change *c)
{
    *call =
        (struct pg_call){.sql = SQL_GLANCE, .params = {c->name.partition, c->name.key, c->stamp}};
}

void pg_write_fill(struct pg_write *w, struct pg_call *calls)
{
    const struct kv_change *changes = w->changes + w->glances;
    struct pg_call *call = &calls[w->glances];

    for (size_t i = 0; i < w->glances; i++)
        glance_init(&calls[i], &w->changes[i]);
    /* The write commits here, so that the reads after it also see what others committed
     * meanwhile. */
    call->ends = true;
    if (w->count == 1) {
        single_init(call, &changes[0]);
        return;
    }
    arrays_fill(w);
    call->sql = w->glances ? SQL_PUT_SEEN : several_sql(changes, w->count);
    size_t first = call->sql == SQL_WRITE ? KIND : PARTITION;
    size_t end = call->sql == SQL_WRITE ? COLUMNS : STAMP;
    for (size_t i = first; i < end; i++)
        call->params[i - first] = buf_str(&w->arrays[i]);
    if (call->sql == SQL_PUT_ROWS || call->sql == SQL_PUT_SEEN)
        call->params[0] = changes[0].name.partition;
}

void pg_write_release(struct pg_write *w)
{
    for (size_t i = 0; i < COLUMNS; i++)
        buf_release(&w->arrays[i]);
}

/* Returns the index of the first change whose condition did not hold; -1: all conditions held. */
static int64_t write_failed(const struct pg_write *w, const struct pg_call *calls)
{
    const struct pg_call *call = &calls[w->glances];

    for (size_t i = 0; i < w->glances; i++)
        if (!pg_bytes(calls[i].result, 0, 0).p[0])
            return (int64_t)i;
    if (call->sql == SQL_WRITE)
        return (int32_t)be32_read(pg_bytes(call->result, 0, 0).p);
    return w->count == 1 && w->changes[0].when != KV_ALWAYS && pg_changed(call->result) == 0 ? 0
                                                                                             : -1;
}

static int write_judge(const struct pg_write *w, const struct pg_call *calls, size_t *failed,
                       struct err *err)
{
    int64_t place = write_failed(w, calls);

    if (place < 0)
        return 0;
    *failed = (size_t)place;
    return err_code(err, ERR_PRECONDITION);
}

static void pause_a_little(void)
{
    uint64_t ns = NS_PER_MS + random_below(PAUSE_MAX_MS * NS_PER_MS);

    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

int pg_write_run(struct pg_write *w, struct pg_pool *pool, struct pg_call *calls, size_t count,
                 size_t *failed, struct err *err)
{
    uint64_t deadline_ns = clock_mono_ns() + pool->timeout_ns;
    const struct pg_call *write = &calls[w->glances];
    int code = 0;

    for (size_t i = 0; i < COLUMNS && code == 0; i++)
        code = buf_error(&w->arrays[i]);
    if (code < 0)
        return err_code(err, code);
    while ((code = pg_run(pool, calls, count, true, err)) == ERR_AGAIN && !write->made &&
           clock_mono_ns() < deadline_ns)
        pause_a_little();
    if (!write->made)
        return code == ERR_AGAIN ? err_wrap(err, ERR_BUSY, "other transactions were always faster")
                                 : code;
    int judged = write_judge(w, calls, failed, err);
    return judged == 0 && code < 0 ? kv_made_unread(err) : judged;
}
