/* The archive's schedule with many accounts, and its rebuild from a local storage.
 *
 *     bench_archive_schedule STORE fill USERS              tracks u0, u1, … of github.com
 *     bench_archive_schedule STORE lock FROM COUNT         locks COUNT of them by hand
 *     bench_archive_schedule STORE claim CLAIMS            p50 of PING and of a claim, us
 *     bench_archive_schedule STORE records DATA USERS      writes the records of USERS accounts
 *     bench_archive_schedule STORE list DATA               lists their keys, slot by slot
 *     bench_archive_schedule STORE rebuild DATA            rebuilds all slots into the store
 *
 * STORE is the URL of a Redis, without "redis:". DATA is a folder for a local storage. */
#include "archive/rebuild.h"
#include "db/db.h"
#include "load.h"
#include "object/local/local_int.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_THREADS = 2 };

struct bench {
    struct store *store;
    struct schedule *s;
    struct slots table;
    struct db *db;
    struct storage *storage;
    struct bucket *bucket;
    struct rebuild *rebuild;
    _Atomic(unsigned) slot;
    _Atomic(uint64_t) seen;
    bool rebuilds;
};

static void must(int code, const struct err *err)
{
    if (code < 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(2);
    }
}

static void open_store(struct bench *b, const char *url)
{
    const struct str names[] = {STR("asia-east-1"), STR("europe-west-1"), STR("us-central-1")};
    struct err err = {0};

    must(store_open_redis(&b->store,
                          &(struct store_redis_options){.url = str_z(url), .timeout_ms = 60000},
                          &err),
         &err);
    must(schedule_open(&b->s, &(struct schedule_options){.app = b->store, .lock_ms = 60000}, &err),
         &err);
    must(slots_first(&b->table, names, ARRAY_SIZE(names), &err), &err);
    must(schedule_map(b->s, &b->table, &err), &err);
}

static struct archive_account user(struct arena *a, uint64_t n)
{
    struct archive_account c;
    struct err err = {0};

    must(archive_account_read(&c, a, arena_fmt(a, "github.com/u%llu", (unsigned long long)n), &err),
         &err);
    return c;
}

/* --- claims --- */

static void fill(struct bench *b, uint64_t users)
{
    struct schedule_loaded batch[SCHEDULE_BATCH_MAX];
    struct arena a = {0};
    struct err err = {0};

    for (uint64_t i = 0; i < users;) {
        size_t n = 0;
        arena_reset(&a);
        for (; n < SCHEDULE_BATCH_MAX && i < users; i++)
            batch[n++] = (struct schedule_loaded){user(&a, i), (int64_t)i};
        must(schedule_load(b->s, batch, n, &err), &err);
    }
    arena_release(&a);
}

static void lock_by_hand(struct bench *b, uint64_t from, uint64_t count)
{
    struct arena a = {0};
    struct reply *r;
    struct err err = {0};

    for (uint64_t i = from; i < from + count; i++) {
        arena_reset(&a);
        must(store_call(b->store, &a, &r, &err, STR("SET"),
                        arena_fmt(&a, "lock:u%llu", (unsigned long long)i), STR("1"), STR("EX"),
                        STR("100000"), STR("NX")),
             &err);
    }
    arena_release(&a);
}

/* Claims and ends until `claims` were made; pings in between. Accounts that are locked are met
 * before the measured claims begin. */
static void claim(struct bench *b, uint64_t claims)
{
    const struct schedule_set sets[] = {{STR("github.com"), str_z(b->table.names[0])},
                                        {STR("github.com"), str_z(b->table.names[1])},
                                        {STR("github.com"), str_z(b->table.names[2])}};
    const struct schedule_ask ask = {sets, ARRAY_SIZE(sets), 1000, 1};
    struct load_times *times = calloc(2, sizeof(*times));
    struct arena a = {0};
    struct err err = {0};

    for (uint64_t done = 0, warm = 0; done < claims;) {
        struct schedule_claim c;
        uint64_t wait, began = load_now_ns();
        size_t count;
        arena_reset(&a);
        must(schedule_claim(b->s, &a, &ask, &c, &count, &wait, &err), &err);
        uint64_t ended = load_now_ns();
        if (count == 0)
            continue;
        if (warm++ > 100) {
            load_times_add(&times[0], ended - began);
            done++;
        }
        must(schedule_end_full(&c, &err), &err);
        began = load_now_ns();
        must(store_ping(b->store, &err), &err);
        load_times_add(&times[1], load_now_ns() - began);
    }
    printf("claim_us %.2f\nping_us %.2f\n", load_times_us(&times[0], 0.5),
           load_times_us(&times[1], 0.5));
    arena_release(&a);
    free(times);
}

/* --- the rebuild --- */

static void open_storage(struct bench *b, const char *data)
{
    char path[4096], folder[4096];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", data);
    snprintf(folder, sizeof(folder), "%s/objects", data);
    struct db_options o = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct local_options l = {.name = "local", .folder = folder, .id = 1};
    must(db_open(&b->db, &o, &err), &err);
    l.db = b->db;
    must(local_open(&b->storage, &l, &err), &err);
    struct bucket_info info = {.name = STR("github.com"), .owner = STR("archive")};
    int code = b->storage->ops->create_bucket(b->storage, &info, &err);
    must(code == ERR_EXISTS ? 0 : code, &err);
    must(b->storage->ops->open_bucket(&b->bucket, b->storage, STR("archive"), STR("github.com"),
                                      &err),
         &err);
}

static void close_storage(struct bench *b)
{
    b->bucket->ops->unref(b->bucket);
    b->storage->ops->close(b->storage);
    db_close(b->db);
}

struct record_writer {
    struct bench *b;
    uint64_t from, step, users;
    struct thread thread;
};

static void write_records(void *ctx)
{
    struct record_writer *w = ctx;
    struct arena a = {0};
    struct err err = {0};

    for (uint64_t i = w->from; i < w->users; i += w->step) {
        struct archive_account c;
        struct put_options o = {0};
        struct put_result out;
        struct str_reader body;
        arena_reset(&a);
        c = user(&a, i);
        str_reader_init(&body, STR("{}\n"));
        must(w->b->bucket->ops->put(w->b->bucket, &a,
                                    archive_key(&c, &a, ARCHIVE_RECORD, STR_EMPTY), &body.reader, 3,
                                    &o, &out, &err),
             &err);
    }
    arena_release(&a);
}

static void records(struct bench *b, uint64_t users)
{
    enum { WRITERS = 64 };
    static struct record_writer writers[WRITERS];
    struct err err = {0};

    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct record_writer){b, i, WRITERS, users, {0}};
        must(thread_start(&writers[i].thread, "writer", 0, write_records, &writers[i], &err), &err);
    }
    for (size_t i = 0; i < WRITERS; i++)
        thread_join(&writers[i].thread);
}

static int list_page(void *ctx, struct arena *a, const struct schedule_set *where,
                     const struct list_options *o, struct list_result *out, struct err *err)
{
    struct bench *b = ctx;

    return b->bucket->ops->list(b->bucket, a, o, out, err);
}

static int hosts(void *ctx, struct arena *a, struct str **out, size_t *count, struct err *err)
{
    *out = arena_array(a, 1, sizeof(**out));
    (*out)[0] = STR("github.com");
    *count = 1;
    return 0;
}

static void table(void *ctx, struct slots *out)
{
    *out = ((struct bench *)ctx)->table;
}

static uint64_t list_slot(struct bench *b, unsigned slot)
{
    struct arena a = {0};
    struct buf after = {0};
    struct list_result page = {.more = true};
    uint64_t seen = 0;
    struct err err = {0};

    while (page.more) {
        arena_reset(&a);
        struct list_options o = {.prefix = arena_fmt(&a, "%02x/", slot),
                                 .after = buf_str(&after),
                                 .limit = OBJECT_LIST_MAX};
        page = (struct list_result){0};
        must(list_page(b, &a, NULL, &o, &page, &err), &err);
        seen += page.count;
        buf_reset(&after);
        buf_append_str(&after, page.next);
    }
    buf_release(&after);
    arena_release(&a);
    return seen;
}

static void slots_run(void *ctx)
{
    struct bench *b = ctx;

    for (unsigned slot; (slot = atomic_fetch_add(&b->slot, 1)) < SLOT_COUNT;) {
        uint64_t n = 0;
        struct err err = {0};
        if (b->rebuilds)
            must(rebuild_slot(b->rebuild, slot, NULL, &n, &err), &err);
        else
            n = list_slot(b, slot);
        atomic_fetch_add(&b->seen, n);
    }
}

/* All slots, by as many threads in either case. */
static void each_slot(struct bench *b, bool rebuilds)
{
    struct thread threads[LIST_THREADS] = {0};
    struct rebuild_options o = {
        .schedule = b->s, .list = list_page, .hosts = hosts, .table = table, .ctx = b};
    struct err err = {0};

    b->rebuilds = rebuilds;
    must(rebuild_open(&b->rebuild, &o, &err), &err);
    uint64_t began = load_now_ns();
    for (size_t i = 0; i < LIST_THREADS; i++)
        must(thread_start(&threads[i], "slots", 0, slots_run, b, &err), &err);
    for (size_t i = 0; i < LIST_THREADS; i++)
        thread_join(&threads[i]);
    printf("seconds %.4f\nseen %llu\n", (double)(load_now_ns() - began) / 1e9,
           (unsigned long long)atomic_load(&b->seen));
    rebuild_close(b->rebuild);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "bench_archive_schedule STORE OPERATION ...\n");
        return 2;
    }
    struct bench *b = calloc(1, sizeof(*b));
    const char *op = argv[2];
    open_store(b, argv[1]);
    if (strcmp(op, "fill") == 0) {
        fill(b, strtoull(argv[3], NULL, 10));
    } else if (strcmp(op, "lock") == 0 && argc > 4) {
        lock_by_hand(b, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    } else if (strcmp(op, "claim") == 0) {
        claim(b, strtoull(argv[3], NULL, 10));
    } else {
        open_storage(b, argv[3]);
        if (strcmp(op, "records") == 0 && argc > 4)
            records(b, strtoull(argv[4], NULL, 10));
        else
            each_slot(b, strcmp(op, "rebuild") == 0);
        close_storage(b);
    }
    schedule_close(b->s);
    store_close(b->store);
    free(b);
    return 0;
}
