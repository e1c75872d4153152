/* What the load programs share: threads that repeat one operation for a while, counted and timed,
 * and the data they work on, which is the same for every contender.
 *
 * Each program prints lines of "name value"; tests/bench/run.py reads them. */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- time and latencies --- */

uint64_t load_now_ns(void);

/* Latencies by powers of two, each split in 32: 3 % of error at any size. */
enum { LOAD_SPLIT = 32, LOAD_BUCKETS = 64 * LOAD_SPLIT };
struct load_times {
    uint64_t count[LOAD_BUCKETS];
    uint64_t total;
};
void load_times_add(struct load_times *t, uint64_t ns);
double load_times_us(const struct load_times *t, double quantile);

/* --- threads --- */

struct load_thread {
    int index;
    void *ctx;       /* the program's */
    uint64_t random; /* state of load_random() */
    uint64_t ops, errors;
    struct load_times times;
};

struct load {
    int threads;
    double seconds;
    /* Once in each thread, before all of them start together and after they end; may be NULL. */
    void (*begin)(struct load_thread *t);
    void (*end)(struct load_thread *t);
    bool (*step)(struct load_thread *t); /* one operation; false counts an error */
    void *ctx;
};

uint64_t load_random(struct load_thread *t);
/* Runs and prints ops, errors, seconds, p50_us, p99_us. Returns the exit status: 1 when any
 * operation failed. */
int load_run(const struct load *l);

/* --- data: keys of 64 bytes, values of 200 --- */

enum { LOAD_KEY = 64, LOAD_VALUE = 200, LOAD_FIELDS = 8 };
void load_key(char out[LOAD_KEY], const char *kind, uint64_t n);
void load_value(char out[LOAD_VALUE], uint64_t n);

/* The two scripts: what a request does in one step. KEYS: a hash and a string. */
extern const char load_script_read[];
extern const char load_script_write[];

/* --- requests that were made before: "<length>\n<bytes>" again and again --- */

struct load_request {
    char *bytes;
    size_t len;
};

struct load_requests {
    struct load_request *items;
    size_t count;
};
void load_requests_read(struct load_requests *out, const char *path);
void load_requests_release(struct load_requests *r);

void load_fail(const char *what) __attribute__((noreturn)); /* with errno; exit status 2 */

#endif
