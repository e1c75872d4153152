/* What the tests of db/ share. */
#include "unit/db/dbtest.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

struct db *dbtest_open(const char *path)
{
    static const struct db_cf_spec cfs[] = {{.name = "a", .skips = true, .absent = true},
                                            {.name = "b"}};
    struct db_options o = {.path = path, .cfs = cfs, .cf_count = ARRAY_SIZE(cfs)};
    struct db *db = NULL;
    struct err err = {0};

    CHECK_OK(db_open(&db, &o, &err));
    return db;
}

const char *dbtest_path(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    return path;
}

void dbtest_put(struct db *db, const char *cf, const char *key, const char *value)
{
    struct err err = {0};

    CHECK_OK(db_put(db, db_cf(db, cf), str_z(key), str_z(value), DB_VOLATILE, &err));
}

void dbtest_expect(struct db_view *view, struct db_cf *cf, const char *key, const char *want)
{
    struct buf value = BUF_INIT(0);
    struct err err = {0};
    int code = db_get(view, cf, str_z(key), &value, &err);

    if (!want) {
        CHECK_ERR(code, ERR_NOT_FOUND);
    } else {
        CHECK_OK(code);
        CHECK_STR(buf_str(&value), str_z(want));
    }
    buf_release(&value);
}

void dbtest_expect_keys(struct db_view *view, struct db_cf *cf, const struct db_range *range,
                        const char *want)
{
    struct db_iter *it = NULL;
    struct buf keys = BUF_INIT(0);
    struct str key, value;
    struct err err = {0};
    int code;

    CHECK_OK(db_iter_open(&it, view, cf, range, &err));
    while ((code = db_iter_next(it, &key, &value, &err)) == 0) {
        if (keys.len > 0)
            buf_append_char(&keys, ' ');
        buf_append_str(&keys, key);
    }
    CHECK_ERR(code, ERR_END);
    CHECK_ERR(db_iter_next(it, &key, &value, &err), ERR_END);
    CHECK_STR(buf_str(&keys), str_z(want));
    db_iter_close(it);
    buf_release(&keys);
}

int dbtest_get_number(struct db_view *view, struct db_cf *cf, struct str key, uint64_t *out,
                      struct err *err)
{
    struct buf value = BUF_INIT(32);
    int code = db_get(view, cf, key, &value, err);

    *out = 0;
    if (code == 0)
        code = str_u64(buf_str(&value), out);
    buf_release(&value);
    return code == ERR_NOT_FOUND ? 0 : code;
}

void dbtest_put_number(struct db_tx *tx, struct db_cf *cf, struct str key, uint64_t n)
{
    struct buf text = BUF_INIT(32);

    buf_append_u64(&text, n);
    db_tx_put(tx, cf, key, buf_str(&text));
    buf_release(&text);
}

int dbtest_add_one(struct db_tx *tx, void *ctx, struct err *err)
{
    struct db_cf *cf = ctx;
    uint64_t n;
    int code = dbtest_get_number(db_tx_view(tx), cf, STR("n"), &n, err);

    if (code == 0)
        dbtest_put_number(tx, cf, STR("n"), n + 1);
    return code;
}

static void caller_main(void *ctx)
{
    struct caller *c = ctx;
    c->result = db_apply(c->db, c->durability, c->fn, c->ctx, &c->err);
    atomic_store(&c->answered, true);
}

void dbtest_call(struct caller *c)
{
    struct err err = {0};
    CHECK_OK(thread_start(&c->thread, "caller", 0, caller_main, c, &err));
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hold, fail;
    unsigned waiting, passes;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* In the place of the C library's, for RocksDB too. */
int fdatasync(int fd)
{
    bool fail;

    pthread_mutex_lock(&disk.lock);
    disk.waiting++;
    pthread_cond_broadcast(&disk.changed);
    while (disk.hold && disk.passes == 0)
        pthread_cond_wait(&disk.changed, &disk.lock);
    disk.waiting--;
    if (disk.hold)
        disk.passes--;
    fail = disk.fail;
    pthread_mutex_unlock(&disk.lock);
    errno = EIO;
    return fail ? -1 : (int)syscall(SYS_fdatasync, fd);
}

static void disk_set(bool hold, bool fail, unsigned passes)
{
    pthread_mutex_lock(&disk.lock);
    disk.hold = hold;
    disk.fail = fail;
    disk.passes = passes;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

void dbtest_sync_hold(void)
{
    disk_set(true, false, 0);
}

void dbtest_sync_await(void)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.waiting == 0 || disk.passes > 0)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

void dbtest_sync_pass(void)
{
    disk_set(true, false, 1);
}

void dbtest_sync_fail(void)
{
    disk_set(false, true, 0);
}

void dbtest_sync_release(void)
{
    disk_set(false, false, 0);
}
