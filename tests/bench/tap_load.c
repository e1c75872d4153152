/* What the tap costs a local put: 4 KiB into a bucket that is replicated, and into one that is not,
 * in turn.
 *
 *     bench_tap DATA SECONDS THREADS ROUNDS
 *
 * DATA is an empty folder. Prints for each round the puts a second of both, and the CPU time of the
 * process for each put; then the medians' ratios. Nobody runs the tasks that are queued. */
#include "base/clock.h"
#include "load.h"
#include "os/thread.h"
#include "replica/tap/tap.h"
#include "route/route.h"
#include "unit/server_db.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { SIZE = 4096, OBJECTS = 1000, ROUNDS_MAX = 100, THREADS_MAX = 256 };

struct bench {
    struct db *db;
    struct store *stores[STORE_DATABASES];
    struct queue *queue;
    struct replications *replications;
    struct routes *routes;
    struct taps *taps;
    struct bucket *plain, *taken;
};

struct putter {
    struct thread thread;
    struct bucket *bucket;
    uint64_t until_ns, count;
    unsigned index;
};

struct round {
    double rate, cpu_us;
};

static void must(int code, const struct err *err)
{
    if (code < 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(2);
    }
}

static struct bucket *make_bucket(struct bench *b, const char *name)
{
    struct storage *s = routes_main(b->routes);
    struct bucket_info info = {.name = str_z(name), .owner = STR("alice")};
    struct bucket *out = NULL;
    struct err err = {0};

    must(s->ops->create_bucket(s, &info, &err), &err);
    must(s->ops->open_bucket(&out, s, STR_EMPTY, info.name, &err), &err);
    return out;
}

static void open_all(struct bench *b, const char *data)
{
    struct replication_new n = {
        .id = {STR("alice"), STR("taken"), STR("local"), STR("far"), STR("")}, .init_done = true};
    char folder[4096];
    struct local_options local = {.name = "local", .folder = folder};
    struct err err = {0};

    must(server_db_open(&b->db, data, &err), &err);
    for (int i = 0; i < STORE_DATABASES; i++)
        must(store_open_embedded(&b->stores[i], b->db, i, STORE_DURABLE, NULL, &err), &err);
    must(store_join(b->stores, STORE_DATABASES, &err), &err);
    b->queue = queue_new(b->stores[1]);
    struct replications_options o = {
        .app = b->stores[0], .queue = b->stores[1], .config = b->stores[3]};
    must(replications_open(&b->replications, &o, &err), &err);
    must(replication_add(b->replications, &n, STR("local"), &err), &err);
    snprintf(folder, sizeof(folder), "%s/objects", data);
    local.db = b->db;
    must(routes_open(&b->routes, b->stores[3], NULL, &err), &err);
    must(routes_open_local(b->routes, &local, &err), &err);
    b->plain = make_bucket(b, "plain");
    b->taken = make_bucket(b, "taken");
    struct taps_options t = {
        .replications = b->replications, .queue = b->queue, .routes = b->routes};
    must(taps_open(&b->taps, &t, &err), &err);
    while (taps_epoch(b->taps) < 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void close_all(struct bench *b)
{
    taps_close(b->taps);
    b->plain->ops->unref(b->plain);
    b->taken->ops->unref(b->taken);
    replications_close(b->replications);
    routes_close(b->routes);
    queue_free(b->queue);
    for (int i = 0; i < STORE_DATABASES; i++)
        store_close(b->stores[i]);
    db_close(b->db);
}

static void put_main(void *ctx)
{
    static const char body[SIZE];
    struct putter *p = ctx;
    struct arena a = ARENA_INIT(0);
    struct err err = {0};
    char key[64];

    while (clock_mono_ns() < p->until_ns) {
        struct put_options o = {0};
        struct put_result out;
        struct str_reader r;
        str_reader_init(&r, str_n(body, SIZE));
        snprintf(key, sizeof(key), "%u/%llu", p->index, (unsigned long long)(p->count++ % OBJECTS));
        must(p->bucket->ops->put(p->bucket, &a, str_z(key), &r.reader, SIZE, &o, &out, &err), &err);
        arena_reset(&a);
    }
    arena_release(&a);
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static struct round run_round(struct bucket *bucket, double seconds, unsigned threads)
{
    static struct putter putters[THREADS_MAX];
    uint64_t began = clock_mono_ns(), count = 0;
    double cpu = cpu_seconds();
    struct err err = {0};

    for (unsigned i = 0; i < threads; i++) {
        putters[i] = (struct putter){
            .bucket = bucket, .until_ns = began + (uint64_t)(seconds * 1e9), .index = i};
        must(thread_start(&putters[i].thread, "put", 0, put_main, &putters[i], &err), &err);
    }
    for (unsigned i = 0; i < threads; i++) {
        thread_join(&putters[i].thread);
        count += putters[i].count;
    }
    double took = (double)(clock_mono_ns() - began) / 1e9;
    return (struct round){(double)count / took, (cpu_seconds() - cpu) / (double)count * 1e6};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    double rates[ROUNDS_MAX], cpus[ROUNDS_MAX];
    struct bench b = {0};

    if (argc != 5)
        return 2;
    unsigned threads = (unsigned)strtoul(argv[3], NULL, 10);
    size_t rounds = strtoul(argv[4], NULL, 10);
    if (threads == 0 || threads > THREADS_MAX || rounds == 0 || rounds > ROUNDS_MAX)
        return 2;
    open_all(&b, argv[1]);
    for (size_t i = 0; i < rounds; i++) {
        struct round plain = run_round(b.plain, strtod(argv[2], NULL), threads);
        struct round taken = run_round(b.taken, strtod(argv[2], NULL), threads);
        printf("plain_rate %.0f\ntaken_rate %.0f\nplain_cpu_us %.1f\ntaken_cpu_us %.1f\n",
               plain.rate, taken.rate, plain.cpu_us, taken.cpu_us);
        rates[i] = taken.rate / plain.rate;
        cpus[i] = taken.cpu_us / plain.cpu_us;
    }
    printf("rate_ratio %.3f\ncpu_ratio %.3f\n", median(rates, rounds), median(cpus, rounds));
    close_all(&b);
    return 0;
}
