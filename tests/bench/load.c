/* Threads, latencies and data for the load programs. */
#include "load.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct runner {
    const struct load *load;
    struct load_thread state;
    pthread_t id;
    pthread_barrier_t *start;
    atomic_bool *stop;
};

const char load_script_read[] = "local state = redis.call('HGET', KEYS[1], ARGV[1])\n"
                                "if not state then return redis.error_reply('no state') end\n"
                                "if redis.call('EXISTS', KEYS[2]) == 0 then return false end\n"
                                "return redis.call('GET', KEYS[2])\n";

const char load_script_write[] = "local version = redis.call('HINCRBY', KEYS[1], 'version', 1)\n"
                                 "redis.call('HSET', KEYS[1], 'state', ARGV[1])\n"
                                 "redis.call('SET', KEYS[2], ARGV[2])\n"
                                 "return version\n";

void load_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(2);
}

uint64_t load_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned bucket(uint64_t ns)
{
    if (ns < LOAD_SPLIT)
        return (unsigned)ns;
    unsigned log = 63u - (unsigned)__builtin_clzll(ns);
    return (log - 4) * LOAD_SPLIT + (unsigned)((ns >> (log - 5)) & (LOAD_SPLIT - 1));
}

/* The lower edge of a bucket. */
static uint64_t bucket_ns(unsigned b)
{
    if (b < LOAD_SPLIT)
        return b;
    return (uint64_t)(LOAD_SPLIT + b % LOAD_SPLIT) << (b / LOAD_SPLIT - 1);
}

void load_times_add(struct load_times *t, uint64_t ns)
{
    t->count[bucket(ns)]++;
    t->total++;
}

double load_times_us(const struct load_times *t, double quantile)
{
    uint64_t wanted = (uint64_t)(quantile * (double)t->total), seen = 0;

    for (unsigned b = 0; b < LOAD_BUCKETS; b++)
        if ((seen += t->count[b]) > wanted)
            return (double)bucket_ns(b) / 1000;
    return 0;
}

uint64_t load_random(struct load_thread *t)
{
    /* xorshift64*, Vigna 2014 */
    t->random ^= t->random >> 12;
    t->random ^= t->random << 25;
    t->random ^= t->random >> 27;
    return t->random * 2685821657736338717u;
}

static void *run_thread(void *arg)
{
    struct runner *r = arg;
    const struct load *l = r->load;
    struct load_thread *t = &r->state;

    if (l->begin)
        l->begin(t);
    pthread_barrier_wait(r->start);
    for (uint64_t now = load_now_ns(), after; !atomic_load(r->stop); now = after) {
        bool ok = l->step(t);
        after = load_now_ns();
        load_times_add(&t->times, after - now);
        t->ops++;
        t->errors += !ok;
    }
    if (l->end)
        l->end(t);
    return NULL;
}

static int report(const struct runner *runners, int threads, double seconds)
{
    static struct load_times times;
    uint64_t ops = 0, errors = 0;

    for (int i = 0; i < threads; i++) {
        const struct load_thread *t = &runners[i].state;
        ops += t->ops;
        errors += t->errors;
        times.total += t->times.total;
        for (unsigned b = 0; b < LOAD_BUCKETS; b++)
            times.count[b] += t->times.count[b];
    }
    printf("ops %llu\nerrors %llu\nseconds %.6f\np50_us %.1f\np99_us %.1f\n",
           (unsigned long long)ops, (unsigned long long)errors, seconds, load_times_us(&times, .5),
           load_times_us(&times, .99));
    return errors != 0;
}

int load_run(const struct load *l)
{
    struct runner *runners = calloc((size_t)l->threads, sizeof(*runners));
    pthread_barrier_t start;
    atomic_bool stop = false;

    pthread_barrier_init(&start, NULL, (unsigned)l->threads + 1);
    for (int i = 0; i < l->threads; i++) {
        runners[i] = (struct runner){.load = l, .start = &start, .stop = &stop};
        runners[i].state.index = i;
        runners[i].state.ctx = l->ctx;
        runners[i].state.random = 88172645463325252u + (uint64_t)i * 0x9e3779b97f4a7c15u;
        if (pthread_create(&runners[i].id, NULL, run_thread, &runners[i]) != 0)
            load_fail("pthread_create");
    }
    pthread_barrier_wait(&start);
    uint64_t began = load_now_ns();
    struct timespec wait = {(time_t)l->seconds,
                            (long)((l->seconds - (double)(time_t)l->seconds) * 1e9)};
    nanosleep(&wait, NULL);
    atomic_store(&stop, true);
    double seconds = (double)(load_now_ns() - began) / 1e9;
    for (int i = 0; i < l->threads; i++)
        pthread_join(runners[i].id, NULL);
    pthread_barrier_destroy(&start);
    int status = report(runners, l->threads, seconds);
    free(runners);
    return status;
}

/* Written by hand: beside an embedded read of a microsecond, printf would be seen. */
void load_key(char out[LOAD_KEY], const char *kind, uint64_t n)
{
    memset(out, 'k', LOAD_KEY);
    memcpy(out, "bench:", 6);
    char *p = stpcpy(out + 6, kind);
    *p++ = ':';
    for (int i = 11; i >= 0; i--, n /= 10)
        p[i] = (char)('0' + n % 10);
    p[12] = ':';
}

void load_value(char out[LOAD_VALUE], uint64_t n)
{
    static const char begin[] = "{\"bucket\":\"photos\",\"etag\":\"";
    uint64_t x = n + 1;

    memset(out, ' ', LOAD_VALUE);
    memcpy(out, begin, sizeof(begin) - 1);
    for (size_t at = sizeof(begin) - 1; at + 8 <= LOAD_VALUE; at += 8) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t letters = 0x4040404040404040u | (x >> 8 & 0x1f1f1f1f1f1f1f1fu);
        memcpy(out + at, &letters, 8);
    }
}

void load_requests_read(struct load_requests *out, const char *path)
{
    FILE *f = fopen(path, "re");
    size_t len;

    *out = (struct load_requests){0};
    if (!f)
        load_fail(path);
    while (fscanf(f, "%zu", &len) == 1 && fgetc(f) == '\n') {
        struct load_request r = {malloc(len + 1), len};
        out->items = realloc(out->items, (out->count + 1) * sizeof(r));
        if (!r.bytes || !out->items || fread(r.bytes, 1, len, f) != len)
            load_fail(path);
        out->items[out->count++] = r;
    }
    fclose(f);
    if (out->count == 0)
        load_fail(path);
}

void load_requests_release(struct load_requests *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->items[i].bytes);
    free(r->items);
}
