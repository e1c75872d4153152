/* Starts the parts for the data folder, the first administrator's keys, and the database. */
#include "server/server_int.h"
#include "base/clock.h"
#include "kv/kv.h"
#include "object/local/local.h"
#include "os/file.h"
#include "os/process.h"

/* --- the data folder --- */

int server_start_folder(struct server *s, struct err *err)
{
    struct buf path = BUF_INIT(8192);
    int code = dir_make(s->conf->data, 0700, err);

    buf_appendf(&path, "%s/lock", s->conf->data);
    if (code == 0)
        code = file_lock(&s->lock_fd, path.p, err);
    if (code == ERR_IN_USE)
        code = err_wrap(err, code, "the data folder %s is in use", s->conf->data);
    else if (code < 0)
        code = err_wrap(err, code, "the data folder %s cannot be used", s->conf->data);
    buf_release(&path);
    return code;
}

void server_stop_folder(struct server *s)
{
    fd_close(&s->lock_fd);
}

/* --- credentials --- */

int server_start_credentials(struct server *s, struct err *err)
{
    int code = credentials_find(&s->admin, s->conf, err);

    if (code != ERR_NOT_FOUND)
        return code;
    credentials_make(&s->admin);
    s->new_credentials = true;
    return 0;
}

int server_keep_credentials(struct server *s, struct err *err)
{
    return credentials_keep(&s->admin, s->conf->data, err);
}

void server_stop_credentials(struct server *s)
{
    credentials_release(&s->admin);
}

/* --- the database --- */

static int check_db_now(void *ctx, struct err *err)
{
    return db_failed(ctx, err);
}

/* Wakes the main thread, which then checks the database (cli/serve.c). */
static void on_db_failed(void *ctx)
{
    (void)ctx;
    process_wake();
}

/* Checks that the database accepts writes, by writing a row that nobody reads. */
static int check_db(void *ctx, struct err *err)
{
    struct db *db = ctx;
    int64_t now = clock_wall_ms();

    return db_put(db, db_cf(db, "server"), STR("ready"), str_n(&now, sizeof(now)), DB_DURABLE, err);
}

int server_start_db(struct server *s, struct err *err)
{
    struct db_cf_spec families[STORE_DATABASES + LOCAL_FAMILIES + 2];
    struct buf path = BUF_INIT(8192);
    struct db_options options = {
        .cfs = families,
        .cf_count = ARRAY_SIZE(families),
        .cache_bytes = s->conf->db.cache,
        .memtable_bytes = s->conf->db.memtable,
        .log = &s->log,
        .failed = on_db_failed,
    };
    int code;

    memcpy(families, store_cf_specs(), STORE_DATABASES * sizeof(families[0]));
    memcpy(families + STORE_DATABASES, local_cf_specs(), LOCAL_FAMILIES * sizeof(families[0]));
    families[STORE_DATABASES + LOCAL_FAMILIES] = (struct db_cf_spec){.name = "server"};
    families[STORE_DATABASES + LOCAL_FAMILIES + 1] = *kv_cf_spec();
    buf_appendf(&path, "%s/db", s->conf->data);
    options.path = path.p;
    code = db_open(&s->db, &options, err);
    if (code == 0)
        ready_add(&s->ready, (struct ready_part){"db", check_db, s->db, check_db_now});
    buf_release(&path);
    return code;
}

void server_stop_db(struct server *s)
{
    db_close(s->db);
}
