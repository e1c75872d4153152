/* Measures db/: `db_bench [FOLDER]`, one line `name value` each; units are in the names. */
#include "base/clock.h"
#include "base/vec.h"
#include "db/db.h"
#include "os/file.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FAMILIES = 6, HOT_KEYS = 100 * 1000, THREADS = 64, VALUE_BYTES = 200, RECORD_BYTES = 264 };

static const uint64_t run_ns = 1000ull * 1000 * 1000;

struct bench {
    struct db *db;
    struct db_cf *cf;
    int fd; /* of the plain file that the one-fsync-each writers append to */
    enum db_durability durability;
    uint64_t deadline;
};

struct worker {
    struct thread thread;
    struct bench *bench;
    uint64_t id, count;
    VEC(uint32_t) times_ns;
};

static void must(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "db_bench: %s %s\n", err_name(code), err->text);
    _exit(1);
}

static struct db *open_db(const char *path, size_t cache_bytes)
{
    static const struct db_cf_spec cfs[FAMILIES] = {{"app", NULL},  {"queue", NULL},
                                                    {"lock", NULL}, {"config", NULL},
                                                    {"kv", NULL},   {"index", NULL}};
    struct db_options o = {
        .path = path, .cfs = cfs, .cf_count = FAMILIES, .cache_bytes = cache_bytes};
    struct db *db = NULL;
    struct err err = {0};

    must(db_open(&db, &o, &err), &err);
    return db;
}

static struct str key_of(char out[65], uint64_t n)
{
    int len = snprintf(out, 65, "%064llx", (unsigned long long)(n * 0x9e3779b97f4a7c15u));
    return str_n(out, (size_t)len);
}

static void put_once(struct worker *w)
{
    char key[65], value[VALUE_BYTES] = {0};
    struct err err = {0};
    struct bench *b = w->bench;

    must(db_put(b->db, b->cf, key_of(key, (w->id << 32) + w->count), str_n(value, sizeof(value)),
                b->durability, &err),
         &err);
}

static int increment(struct db_tx *tx, void *ctx, struct err *err)
{
    struct worker *w = ctx;
    char key[65], text[32];
    struct buf value = BUF_INIT(0);
    uint64_t n = 0;
    struct str k = key_of(key, w->id + ((uint64_t)1 << 61));
    int code = db_get(db_tx_view(tx), w->bench->cf, k, &value, err);

    if (code == 0)
        code = str_u64(buf_str(&value), &n);
    buf_release(&value);
    if (code != 0 && code != ERR_NOT_FOUND)
        return code;
    int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)n + 1);
    db_tx_put(tx, w->bench->cf, k, str_n(text, (size_t)len));
    return 0;
}

static void increment_once(struct worker *w)
{
    struct err err = {0};
    must(db_apply(w->bench->db, w->bench->durability, increment, w, &err), &err);
}

/* What a store without group commit does: each write has its own sync. */
static void append_once(struct worker *w)
{
    static _Atomic(uint64_t) at;
    char record[RECORD_BYTES] = {0};
    off_t offset = (off_t)(atomic_fetch_add(&at, 1) * RECORD_BYTES);

    if (pwrite(w->bench->fd, record, sizeof(record), offset) != (ssize_t)sizeof(record) ||
        fdatasync(w->bench->fd) != 0) {
        perror("db_bench: append");
        exit(1);
    }
}

static void (*step)(struct worker *);

static void work(void *ctx)
{
    struct worker *w = ctx;
    uint64_t now = clock_mono_ns();

    while (now < w->bench->deadline) {
        step(w);
        uint64_t then = clock_mono_ns();
        vec_push(&w->times_ns, (uint32_t)(then - now));
        now = then;
        w->count++;
    }
}

static int by_time(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *name, struct worker *workers, int threads, double seconds)
{
    VEC(uint32_t) all = {0};

    for (int i = 0; i < threads; i++) {
        vec_each (&workers[i].times_ns, uint32_t *, t)
            vec_push(&all, *t);
        vec_release(&workers[i].times_ns);
    }
    BUG_ON(all.len == 0);
    size_t half = all.len / 2, late = all.len * 99 / 100;
    qsort(all.items, all.len, sizeof(all.items[0]), by_time);
    printf("%s_per_s %.0f\n", name, (double)all.len / seconds);
    printf("%s_p50_us %.1f\n", name, all.items[half] / 1e3);
    printf("%s_p99_us %.1f\n", name, all.items[late] / 1e3);
    fflush(stdout);
    vec_release(&all);
}

static void run(struct bench *b, const char *name, int threads, void (*fn)(struct worker *))
{
    struct worker workers[THREADS] = {0};
    struct db_stats before, after;
    struct err err = {0};
    uint64_t began = clock_mono_ns();

    db_stats(b->db, &before);
    step = fn;
    b->deadline = began + run_ns;
    for (int i = 0; i < threads; i++) {
        workers[i].bench = b;
        workers[i].id = (uint64_t)i;
        must(thread_start(&workers[i].thread, "bench", 0, work, &workers[i], &err), &err);
    }
    for (int i = 0; i < threads; i++)
        thread_join(&workers[i].thread);
    report(name, workers, threads, (double)(clock_mono_ns() - began) / 1e9);
    db_stats(b->db, &after);
    if (after.groups > before.groups)
        printf("%s_changes_per_group %.1f\n", name,
               (double)(after.changes - before.changes) / (double)(after.groups - before.groups));
}

/* Twice over all keys in a scattered order; the first round fills the cache. */
static void gets(struct bench *b, const char *name)
{
    struct buf value = BUF_INIT(0);
    struct err err = {0};
    char key[65];
    uint64_t began = 0;

    for (int round = 0; round < 2; round++) {
        began = clock_mono_ns();
        for (uint64_t i = 0; i < HOT_KEYS; i++) {
            buf_reset(&value);
            struct str k = key_of(key, (i * 7919) % HOT_KEYS + ((uint64_t)1 << 60));
            must(db_get(db_latest(b->db), b->cf, k, &value, &err), &err);
        }
    }
    printf("%s_ns %.0f\n", name, (double)(clock_mono_ns() - began) / HOT_KEYS);
    buf_release(&value);
}

static int fill_some(struct db_tx *tx, void *ctx, struct err *err)
{
    struct worker *w = ctx;
    char key[65], value[VALUE_BYTES] = {0};

    for (int i = 0; i < 1000; i++, w->count++)
        db_tx_put(tx, w->bench->cf, key_of(key, w->count + ((uint64_t)1 << 60)),
                  str_n(value, sizeof(value)));
    return 0;
}

/* Rows in table files (closing writes them out), a cache that holds them all or not. */
static void measure_gets(const char *path)
{
    struct bench b = {.db = open_db(path, 0)};
    struct worker w = {.bench = &b};
    struct err err = {0};

    b.cf = db_cf(b.db, "app");
    while (w.count < HOT_KEYS)
        must(db_apply(b.db, DB_VOLATILE, fill_some, &w, &err), &err);
    db_close(b.db);
    b.db = open_db(path, 64 * MIB);
    b.cf = db_cf(b.db, "app");
    gets(&b, "get_hot");
    db_close(b.db);
    b.db = open_db(path, 0);
    b.cf = db_cf(b.db, "app");
    gets(&b, "get_default_cache");
    db_close(b.db);
}

static double rss_mib(void)
{
    struct buf text = BUF_INIT(0);
    struct err err = {0};
    double kib = 0;

    must(file_read("/proc/self/status", &text, &err), &err);
    const char *line = strstr(text.p, "VmRSS:");
    if (line)
        kib = strtod(line + 6, NULL);
    buf_release(&text);
    return kib / 1024;
}

static struct db *measure_open(const char *path)
{
    double before = rss_mib();
    uint64_t began = clock_mono_ns();
    struct db *db = open_db(path, 0);

    printf("open_new_ms %.1f\n", (double)(clock_mono_ns() - began) / 1e6);
    printf("rss_idle_mib %.1f\nrss_idle_added_mib %.1f\n", rss_mib(), rss_mib() - before);
    db_close(db);
    began = clock_mono_ns();
    db = open_db(path, 0);
    printf("open_existing_ms %.1f\n", (double)(clock_mono_ns() - began) / 1e6);
    return db;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/db_bench.XXXXXX", *root = argc > 1 ? argv[1] : mkdtemp(folder);
    struct buf path = BUF_INIT(0), plain = BUF_INIT(0);
    struct bench b = {0};
    struct err err = {0};

    buf_appendf(&path, "%s/db", root);
    buf_appendf(&plain, "%s/plain", root);
    must(dir_make(root, 0700, &err), &err);
    b.db = measure_open(path.p);
    b.cf = db_cf(b.db, "app");
    b.fd = open(plain.p, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

    run(&b, "put_durable_1", 1, put_once);
    run(&b, "fsync_each_1", 1, append_once);
    run(&b, "put_durable_64", THREADS, put_once);
    run(&b, "fsync_each_64", THREADS, append_once);
    run(&b, "increment_durable_64", THREADS, increment_once);
    b.durability = DB_VOLATILE;
    run(&b, "put_volatile_1", 1, put_once);
    run(&b, "put_volatile_64", THREADS, put_once);
    close(b.fd);
    uint64_t began = clock_mono_ns();
    db_close(b.db);
    printf("close_used_ms %.1f\n", (double)(clock_mono_ns() - began) / 1e6);
    began = clock_mono_ns();
    b.db = open_db(path.p, 0);
    printf("open_used_ms %.1f\n", (double)(clock_mono_ns() - began) / 1e6);
    db_close(b.db);
    buf_append_z(&path, ".gets");
    measure_gets(path.p);
    must(dir_remove_tree(root, &err), &err);
    buf_release(&path);
    buf_release(&plain);
    return 0;
}
