/* Opening a key-value store of each driver for tests. */
#include "unit/kv/kv_lab.h"

#include "db/db.h"
#include "store/store.h"
#include "unit/kv/postgres_shared.h"

#include <stdio.h>

enum { TIMEOUT_MS = 30000 }; /* of a busy machine */

/* --- embedded --- */

static void open_embedded(struct kv_lab *lab)
{
    struct err err = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/kv", test_dir());
    struct db_options o = {.path = path, .cfs = kv_cf_spec(), .cf_count = 1};
    CHECK_OK(db_open(&lab->db, &o, &err));
    CHECK_OK(kv_open_embedded(&lab->kv, lab->db, NULL, &err));
}

static int open_embedded_second(struct kv **out, struct kv_lab *lab, struct err *err)
{
    return kv_open_embedded(out, lab->db, NULL, err);
}

static void close_embedded(struct kv_lab *lab)
{
    db_close(lab->db);
}

/* --- redis --- */

static void open_redis(struct kv_lab *lab)
{
    struct err err = {0};

    lab->redis.dir = test_dir();
    CHECK(redis_server_start(&lab->redis));
    CHECK_OK(store_open_redis(
        &lab->store,
        &(struct store_redis_options){.url = str_z(lab->redis.unix_url), .timeout_ms = TIMEOUT_MS},
        &err));
    CHECK_OK(kv_open_redis(&lab->kv, lab->store, NULL, &err));
}

static int open_redis_second(struct kv **out, struct kv_lab *lab, struct err *err)
{
    return kv_open_redis(out, lab->store, NULL, err);
}

static void close_redis(struct kv_lab *lab)
{
    store_close(lab->store);
    redis_server_kill(&lab->redis);
}

/* --- postgres --- */

static int open_postgres_second(struct kv **out, struct kv_lab *lab, struct err *err)
{
    struct kv_postgres_options o = {.url = lab->url, .timeout_ms = TIMEOUT_MS};

    return kv_open_postgres(out, &o, err);
}

/* Makes the tables of a key-value store. */
static void fill_postgres(const char *url)
{
    struct kv_lab lab = {.url = url};
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK_OK(open_postgres_second(&kv, &lab, &err));
    kv_close(kv);
}

const char *kv_lab_postgres_url(void)
{
    return postgres_shared_copy_url(fill_postgres);
}

static void open_postgres(struct kv_lab *lab)
{
    struct err err = {0};

    lab->url = kv_lab_postgres_url();
    CHECK_OK(open_postgres_second(&lab->kv, lab, &err));
}

static void close_postgres(struct kv_lab *lab)
{
    (void)lab;
    postgres_shared_drop();
}

/* --- all --- */

static const struct {
    void (*open)(struct kv_lab *lab);
    int (*open_second)(struct kv **out, struct kv_lab *lab, struct err *err);
    void (*close)(struct kv_lab *lab);
} drivers[KV_LAB_DRIVERS] = {
    [KV_LAB_EMBEDDED] = {open_embedded, open_embedded_second, close_embedded},
    [KV_LAB_REDIS] = {open_redis, open_redis_second, close_redis},
    [KV_LAB_POSTGRES] = {open_postgres, open_postgres_second, close_postgres},
};

void kv_lab_open(struct kv_lab *lab, enum kv_lab_driver driver)
{
    *lab = (struct kv_lab){.driver = driver};
    drivers[driver].open(lab);
}

struct kv *kv_lab_open_second(struct kv_lab *lab)
{
    struct kv *kv = NULL;
    struct err err = {0};

    CHECK_OK(drivers[lab->driver].open_second(&kv, lab, &err));
    return kv;
}

int kv_lab_try_second(struct kv_lab *lab, struct err *err)
{
    struct kv *kv = NULL;
    int code = drivers[lab->driver].open_second(&kv, lab, err);

    kv_close(kv);
    return code;
}

void kv_lab_close(struct kv_lab *lab)
{
    kv_close(lab->kv);
    drivers[lab->driver].close(lab);
    arena_release(&lab->arena);
}

void kv_lab_run(enum kv_lab_driver driver, void (*fn)(struct kv_lab *lab))
{
    struct kv_lab lab;

    kv_lab_open(&lab, driver);
    fn(&lab);
    kv_lab_close(&lab);
}

/* --- short forms --- */

static struct kv_name name_z(const char *partition, const char *key)
{
    return (struct kv_name){str_z(partition), str_z(key)};
}

void kv_lab_set(struct kv *kv, const char *partition, const char *key, const char *value)
{
    struct err err = {0};

    CHECK_OK(kv_set(kv, name_z(partition, key), str_z(value), &err));
}

void kv_lab_remove(struct kv *kv, const char *partition, const char *key)
{
    struct err err = {0};

    CHECK_OK(kv_remove(kv, name_z(partition, key), &err));
}

void kv_lab_expect(struct kv *kv, const char *partition, const char *key, const char *want)
{
    struct arena a = {0};
    struct kv_value value;
    struct err err = {0};
    int code = kv_get(kv, NULL, &a, name_z(partition, key), &value, &err);

    if (want) {
        CHECK_OK(code);
        CHECK_STR(value.bytes, str_z(want));
    } else {
        CHECK_ERR(code, ERR_NOT_FOUND);
    }
    arena_release(&a);
}

void kv_lab_expect_rest(struct kv_scan *scan, const char *want)
{
    struct buf keys = BUF_INIT(0);
    struct str key, value;
    struct err err = {0};
    int code;

    while ((code = kv_scan_next(scan, &key, &value, &err)) == 0) {
        if (keys.len > 0)
            buf_append_char(&keys, ' ');
        buf_append_str(&keys, key);
    }
    CHECK_ERR(code, ERR_END);
    CHECK_ERR(kv_scan_next(scan, &key, &value, &err), ERR_END);
    CHECK_STR(buf_str(&keys), str_z(want));
    buf_release(&keys);
}

void kv_lab_expect_keys(struct kv *kv, const char *partition, const struct kv_range *range,
                        const char *want)
{
    struct kv_scan *scan = NULL;
    struct err err = {0};

    CHECK_OK(kv_scan_open(&scan, kv, NULL, str_z(partition), range, &err));
    kv_lab_expect_rest(scan, want);
    kv_scan_free(scan);
}
