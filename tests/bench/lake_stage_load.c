/* Durable stages of objects by many threads, and the same rows written by hand.
 *
 *     bench_lake_stage TARGET lake|hand|sql SECONDS THREADS BATCH FOLDER
 *
 * TARGET is embedded:DIR, redis:URL or postgres:URL. "hand" writes the rows that a stage writes,
 * without a check: by db/, by a bare connection to Redis, by libpq. "sql" (PostgreSQL) is the way
 * of lakeFS before its key-value store: a transaction with a shared advisory lock of the branch, a
 * look at the branch, and the row. */
#include "lake_bench.h"
#include "load.h"

#include "db/db.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OBJECTS = 1000000, ROWS = 1024, REPLY_BYTES = 256 };

struct stage_bench {
    struct lake_bench lake; /* of "lake" */
    struct db *db;          /* of "hand" on db/ */
    struct db_cf *rows;
    const char *where; /* the target behind its kind */
    size_t batch;
};

/* What a thread has: its place in the numbers of objects, and a connection. */
struct stage_thread {
    struct arena arena;
    PGconn *pg;
    int fd;
};

static struct stage_thread *threads;
static struct str rows_made[ROWS]; /* values of rows, made before the load begins */

static void make_rows(struct arena *a)
{
    for (uint64_t n = 0; n < ROWS; n++)
        rows_made[n] = bench_row(a, n);
}

/* The value of a row that is written by hand: the peers need not make it. */
static struct str hand_row(uint64_t n)
{
    return rows_made[n % ROWS];
}

static uint64_t next_object(struct load_thread *t)
{
    return load_random(t) % OBJECTS;
}

/* --- the lake --- */

static bool stage_lake(struct load_thread *t)
{
    struct stage_bench *b = t->ctx;
    struct arena *a = &threads[t->index].arena;
    struct lake_put *puts = arena_array(a, b->batch, sizeof(*puts));
    uint64_t first = next_object(t);
    struct err err = {0};

    for (size_t i = 0; i < b->batch; i++)
        puts[i] = (struct lake_put){bench_path(a, first + i), bench_entry(a, first + i, t->ops)};
    int code = lake_stage(b->lake.lake, a, &b->lake.repo, STR("main"), puts, b->batch, NULL, &err);
    arena_reset(a);
    return code == 0;
}

/* --- by hand: db/ --- */

struct hand_rows {
    struct stage_bench *bench;
    struct str *keys, *values;
};

static int hand_apply(struct db_tx *tx, void *ctx, struct err *err)
{
    struct hand_rows *rows = ctx;

    for (size_t i = 0; i < rows->bench->batch; i++)
        db_tx_put(tx, rows->bench->rows, rows->keys[i], rows->values[i]);
    return 0;
}

static bool stage_db(struct load_thread *t)
{
    struct stage_bench *b = t->ctx;
    struct arena *a = &threads[t->index].arena;
    struct hand_rows rows = {b, arena_array(a, b->batch, sizeof(struct str)),
                             arena_array(a, b->batch, sizeof(struct str))};
    uint64_t first = next_object(t);

    for (size_t i = 0; i < b->batch; i++) {
        rows.keys[i] = arena_fmt(a, "bench-main:0123456789abcdef0123/key/" STR_FMT,
                                 STR_ARG(bench_path(a, first + i)));
        rows.values[i] = hand_row(first + i);
    }
    int code = db_apply(b->db, DB_DURABLE, hand_apply, &rows, NULL);
    arena_reset(a);
    return code == 0;
}

/* --- by hand: Redis --- */

static void redis_begin(struct load_thread *t)
{
    const struct stage_bench *b = t->ctx;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const char *path = strncmp(b->where, "unix://", 7) == 0 ? b->where + 7 : b->where;

    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    threads[t->index].fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(threads[t->index].fd, (struct sockaddr *)&addr, sizeof(addr)) != 0)
        load_fail("connect");
}

/* Waits for two replies that are numbers. */
static bool redis_replies(int fd)
{
    char reply[REPLY_BYTES];
    int lines = 0;

    while (lines < 2) {
        ssize_t got = read(fd, reply, sizeof(reply));
        if (got <= 0 || reply[0] == '-')
            return false;
        for (ssize_t i = 0; i < got; i++)
            lines += reply[i] == '\n';
    }
    return true;
}

static bool stage_redis(struct load_thread *t)
{
    struct arena *a = &threads[t->index].arena;
    uint64_t n = next_object(t);
    struct str key = arena_fmt(a, "key/" STR_FMT, STR_ARG(bench_path(a, n))), row = hand_row(n);
    struct str head =
        arena_fmt(a,
                  "*4\r\n$4\r\nZADD\r\n$9\r\nkv:hand:z\r\n$1\r\n0\r\n$%zu\r\n" STR_FMT
                  "\r\n*4\r\n$4\r\nHSET\r\n$9\r\nkv:hand:h\r\n$%zu\r\n" STR_FMT "\r\n$%zu\r\n",
                  key.len, STR_ARG(key), key.len, STR_ARG(key), row.len);
    struct buf request = {0};

    buf_append_str(&request, head);
    buf_append_str(&request, row);
    buf_append_z(&request, "\r\n");
    bool good = write(threads[t->index].fd, request.p, request.len) == (ssize_t)request.len &&
                redis_replies(threads[t->index].fd);
    buf_release(&request);
    arena_reset(a);
    return good;
}

/* --- by hand: PostgreSQL --- */

static bool pg_done(PGresult *r)
{
    ExecStatusType status = PQresultStatus(r);

    PQclear(r);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static void pg_begin(struct load_thread *t)
{
    const struct stage_bench *b = t->ctx;
    PGconn *pg = threads[t->index].pg = PQconnectdb(b->where);

    if (PQstatus(pg) != CONNECTION_OK ||
        !pg_done(PQprepare(pg, "put",
                           "INSERT INTO hand VALUES ($1, $2, $3) ON CONFLICT (token, key)"
                           " DO UPDATE SET value = excluded.value",
                           3, NULL)) ||
        !pg_done(PQprepare(pg, "lock", "SELECT pg_advisory_xact_lock_shared($1::int8)", 1, NULL)) ||
        !pg_done(PQprepare(pg, "branch",
                           "SELECT staging_token, commit_id, sealed_tokens FROM graveler_branches"
                           " WHERE repository_id = $1 AND id = $2",
                           2, NULL)) ||
        !pg_done(PQprepare(pg, "stage",
                           "INSERT INTO graveler_staging_kv (staging_token, key, identity, data)"
                           " VALUES ($1, $2, $3, $4) ON CONFLICT (staging_token, key) DO UPDATE SET"
                           " identity = excluded.identity, data = excluded.data",
                           4, NULL))) {
        fprintf(stderr, "%s", PQerrorMessage(pg));
        exit(2);
    }
}

static void pg_end(struct load_thread *t)
{
    PQfinish(threads[t->index].pg);
}

static bool pg_run(PGconn *pg, const char *name, int count, const struct str *values)
{
    const char *p[4];
    int lengths[4], formats[4];

    for (int i = 0; i < count; i++) {
        p[i] = values[i].p;
        lengths[i] = (int)values[i].len;
        formats[i] = i > 0;
    }
    return pg_done(PQexecPrepared(pg, name, count, p, lengths, formats, 0));
}

static bool stage_pg(struct load_thread *t)
{
    struct arena *a = &threads[t->index].arena;
    uint64_t n = next_object(t);
    struct str values[] = {STR("bench-main:0123456789abcdef0123"), bench_path(a, n), hand_row(n)};
    bool good = pg_run(threads[t->index].pg, "put", 3, values);

    arena_reset(a);
    return good;
}

static bool stage_sql(struct load_thread *t)
{
    struct arena *a = &threads[t->index].arena;
    PGconn *pg = threads[t->index].pg;
    uint64_t n = next_object(t);
    struct str row = hand_row(n);
    struct str lock[] = {STR("4711")}, branch[] = {STR("bench"), STR("main")};
    struct str values[] = {STR("bench-main:0123456789abcdef0123"), bench_path(a, n),
                           str_n(row.p, 32), row};
    bool good = pg_done(PQexec(pg, "BEGIN")) && pg_run(pg, "lock", 1, lock) &&
                pg_run(pg, "branch", 2, branch) && pg_run(pg, "stage", 4, values) &&
                pg_done(PQexec(pg, "COMMIT"));

    arena_reset(a);
    return good;
}

/* The tables of both ways. */
static void pg_set_up(const char *url)
{
    PGconn *pg = PQconnectdb(url);

    if (!pg_done(PQexec(
            pg, "SET client_min_messages = warning;"
                "CREATE TABLE IF NOT EXISTS hand (token text COLLATE \"C\", key bytea,"
                " value bytea NOT NULL, PRIMARY KEY (token, key));"
                "CREATE TABLE IF NOT EXISTS graveler_branches (repository_id text, id text,"
                " staging_token text NOT NULL, commit_id text, sealed_tokens text[],"
                " PRIMARY KEY (repository_id, id));"
                "CREATE TABLE IF NOT EXISTS graveler_staging_kv (staging_token text COLLATE \"C\","
                " key bytea, identity bytea NOT NULL, data bytea,"
                " PRIMARY KEY (staging_token, key));"
                "INSERT INTO graveler_branches VALUES"
                " ('bench', 'main', 'bench-main:0123456789abcdef0123') ON CONFLICT DO NOTHING"))) {
        fprintf(stderr, "%s", PQerrorMessage(pg));
        exit(2);
    }
    PQfinish(pg);
}

/* --- which --- */

static const struct contender {
    const char *way, *kind; /* kind NULL: any */
    void (*begin)(struct load_thread *t);
    void (*end)(struct load_thread *t);
    bool (*step)(struct load_thread *t);
} contenders[] = {
    {"lake", NULL, NULL, NULL, stage_lake},
    {"hand", "embedded", NULL, NULL, stage_db},
    {"hand", "redis", redis_begin, NULL, stage_redis},
    {"hand", "postgres", pg_begin, pg_end, stage_pg},
    {"sql", "postgres", pg_begin, pg_end, stage_sql},
};

static const struct contender *contender_find(const char *way, const char *target)
{
    for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
        const struct contender *c = &contenders[i];
        if (strcmp(c->way, way) == 0 &&
            (!c->kind || strncmp(c->kind, target, strlen(c->kind)) == 0))
            return c;
    }
    exit(2);
}

static void stage_open(struct stage_bench *b, const struct contender *c, const char *target,
                       const char *folder)
{
    static const struct db_cf_spec family = {.name = "kv"};
    struct err err = {0};

    b->where = strchr(target, ':') + 1;
    if (c->step == stage_lake) {
        lake_bench_open(&b->lake, target, folder);
    } else if (c->step == stage_db) {
        struct db_options o = {.path = b->where, .cfs = &family, .cf_count = 1};
        bench_must(db_open(&b->db, &o, &err), &err);
        b->rows = db_cf(b->db, family.name);
    } else if (c->begin == pg_begin) {
        pg_set_up(b->where);
    }
}

/* How many changes one sync served. */
static void stage_show_groups(struct db *db)
{
    struct db_stats stats = {0};

    if (db)
        db_stats(db, &stats);
    if (stats.syncs)
        printf("group %.1f\n", (double)stats.changes / (double)stats.syncs);
}

int main(int argc, char **argv)
{
    struct stage_bench b = {0};
    struct arena made = {0};

    if (argc != 7 || !strchr(argv[1], ':'))
        return 2;
    const struct contender *c = contender_find(argv[2], argv[1]);
    b.batch = (size_t)atoi(argv[5]);
    stage_open(&b, c, argv[1], argv[6]);
    struct load l = {.threads = atoi(argv[4]),
                     .seconds = atof(argv[3]),
                     .begin = c->begin,
                     .end = c->end,
                     .step = c->step,
                     .ctx = &b};
    make_rows(&made);
    threads = calloc((size_t)l.threads, sizeof(*threads));
    int status = load_run(&l);
    stage_show_groups(b.db ? b.db : b.lake.db);
    if (b.lake.lake)
        lake_bench_close(&b.lake);
    if (b.db)
        db_close(b.db);
    arena_release(&made);
    return status;
}
