/* The key-value store under kill and loss of power (harness.h), on each driver in turn.
 *
 * Several threads make writes of several rows in two partitions, each with a check of a guard, and
 * report a write after kv_write() has returned. The process of the writers is killed. In every
 * second run the power fails too: under the embedded driver files lose what was not synced
 * (power.h); Redis (with appendfsync always) and PostgreSQL are killed and started again. Then
 *   1. every write that was reported is there (K4);
 *   2. no write is there in part, and each row has the bytes that it was given (K2);
 *   3. nothing is there that was not made, and the writes of a thread have no gaps;
 *   4. a scan gives exactly the rows that single reads give (K7).
 * Liars report a write before they make it. */
#include "base/hash.h"
#include "crash/harness.h"
#include "crash/kv_engines.h"
#include "os/thread.h"

#include <stdio.h>
#include <unistd.h>

enum { WRITERS = 6, ROWS = 4, MAX_VALUE_BYTES = 1500, RUNS_EACH = 2 };

struct report {
    uint32_t writer, sequence; /* the first sequence is 1 */
};

struct progress {
    uint32_t checked; /* writes before this one were checked in an earlier run */
    uint32_t told;    /* writes before this one were reported */
};

struct state {
    struct crash crash;
    unsigned runs;
    enum kv_engine engine; /* of this run */
    struct progress progress[KV_ENGINES][WRITERS];
};

struct writer {
    struct thread thread;
    struct kv *kv;
    uint32_t id, sequence;
    int pipe;
    bool lie;
};

/* --- rows --- */

static struct kv_name row_name(char key[32], uint32_t writer, uint32_t sequence, int row)
{
    int len = snprintf(key, 32, "%02u.%08u.%d", writer, sequence, row);

    return (struct kv_name){row % 2 ? STR("odd") : STR("even"), str_n(key, (size_t)len)};
}

/* Bytes that follow from the row's name: any mix of two rows shows. */
static void row_bytes(struct buf *out, struct str key)
{
    uint64_t h = hash_xxh3(key, 2);
    size_t len = h % MAX_VALUE_BYTES;

    buf_reset(out);
    buf_append_z(out, "");
    for (size_t i = 0; i < len; i += sizeof(h)) {
        h = h * 6364136223846793005u + 1442695040888963407u;
        buf_append(out, &h, sizeof(h));
    }
}

/* --- the child that writes --- */

static void write_once(struct writer *w)
{
    struct kv_change changes[ROWS + 1] = {{.what = KV_CHECK,
                                           .name = {STR("guard"), STR("guard")},
                                           .when = KV_SAME,
                                           .stamp = STR("open")}};
    struct buf values[ROWS] = {0};
    char keys[ROWS][32];
    struct err err = {0};

    for (int row = 0; row < ROWS; row++) {
        struct kv_name name = row_name(keys[row], w->id, w->sequence, row);
        row_bytes(&values[row], name.key);
        changes[row + 1] = (struct kv_change){.what = KV_PUT,
                                              .name = name,
                                              .value = buf_str(&values[row]),
                                              .when = row == 0 ? KV_ABSENT : KV_ALWAYS};
    }
    must(kv_write(w->kv, changes, ROWS + 1, NULL, &err), &err);
    for (int row = 0; row < ROWS; row++)
        buf_release(&values[row]);
}

static void tell(const struct writer *w)
{
    struct report report = {w->id, w->sequence};

    if (write(w->pipe, &report, sizeof(report)) != (ssize_t)sizeof(report))
        _exit(3);
}

static void writer_main(void *ctx)
{
    struct writer *w = ctx;

    for (;; w->sequence++) {
        if (w->lie)
            tell(w);
        write_once(w);
        if (!w->lie)
            tell(w);
    }
}

static void work(const struct crash *c, int pipe)
{
    const struct state *s = container_of(c, struct state, crash);
    struct writer writers[WRITERS] = {0};
    struct kv *kv = kv_engine_open(s->engine, c);
    struct err err = {0};

    must(kv_set(kv, (struct kv_name){STR("guard"), STR("guard")}, STR("open"), &err), &err);
    for (uint32_t i = 0; i < WRITERS; i++) {
        struct writer *w = &writers[i];
        *w = (struct writer){.kv = kv,
                             .id = i,
                             .sequence = s->progress[s->engine][i].checked,
                             .pipe = pipe,
                             .lie = c->lie};
        must(thread_start(&w->thread, "crash", 0, writer_main, w, &err), &err);
    }
    for (;;)
        pause();
}

/* --- the parent --- */

static bool hear(struct crash *c, int pipe)
{
    struct state *s = container_of(c, struct state, crash);
    struct report report;

    if (read(pipe, &report, sizeof(report)) != (ssize_t)sizeof(report) || report.writer >= WRITERS)
        return false;
    s->progress[s->engine][report.writer].told = report.sequence + 1;
    c->changes++;
    return true;
}

static void before(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    s->engine = c->lie ? KV_EMBEDDED : (enum kv_engine)(s->runs++ / RUNS_EACH % KV_ENGINES);
    kv_engine_start(s->engine, c);
}

static void after(struct crash *c, bool power)
{
    kv_engine_after(container_of(c, struct state, crash)->engine, c, power);
}

static void reset(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);

    s->runs = 0;
    for (int d = 0; d < KV_ENGINES; d++)
        for (int i = 0; i < WRITERS; i++)
            s->progress[d][i] = (struct progress){1, 1};
    kv_engines_reset();
}

/* --- the child that checks --- */

/* How many of the write's rows are there; -1 when one has other bytes. */
static int rows_there(struct kv *kv, uint32_t writer, uint32_t sequence)
{
    struct kv_name names[ROWS];
    struct kv_value values[ROWS];
    struct buf want = BUF_INIT(0);
    struct arena a = {0};
    struct err err = {0};
    char keys[ROWS][32];
    int found = 0;

    for (int row = 0; row < ROWS; row++)
        names[row] = row_name(keys[row], writer, sequence, row);
    must(kv_get_many(kv, NULL, &a, names, ROWS, values, &err), &err);
    for (int row = 0; row < ROWS && found >= 0; row++) {
        row_bytes(&want, names[row].key);
        if (kv_is_there(&values[row]))
            found = str_eq(values[row].bytes, buf_str(&want)) ? found + 1 : -1;
    }
    buf_release(&want);
    arena_release(&a);
    return found;
}

/* Walks the writes from the first unchecked one to one behind the last that can have begun. */
static bool check_writer(struct kv *kv, uint32_t writer, struct progress *p, bool quiet)
{
    uint32_t end = p->checked;
    const char *wrong = NULL;

    for (uint32_t n = p->checked; n <= p->told + 1 && !wrong; n++) {
        int rows = rows_there(kv, writer, n);
        if (rows == ROWS && end == n)
            end = n + 1;
        else if (rows == ROWS)
            wrong = "is there though an earlier one is not";
        else if (rows != 0)
            wrong = "is there in part";
        else if (n < p->told)
            wrong = "was reported and is gone";
        if (wrong && !quiet)
            printf("writer %u: write %u %s (%d of %d rows)\n", writer, n, wrong, rows, ROWS);
    }
    *p = (struct progress){end, end};
    return !wrong;
}

/* Counts the rows of a partition by a scan, which must be in order. */
static uint64_t count_rows(struct kv *kv, struct str partition, bool *ordered)
{
    struct buf last = BUF_INIT(0);
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};
    uint64_t rows = 0;
    int code;

    must(kv_scan_open(&scan, kv, NULL, partition, NULL, &err), &err);
    while ((code = kv_scan_next(scan, &key, &value, &err)) == 0) {
        *ordered = *ordered && str_cmp(buf_str(&last), key) < 0;
        buf_reset(&last);
        buf_append_str(&last, key);
        rows++;
    }
    if (code != ERR_END)
        must(code, &err);
    kv_scan_free(scan);
    buf_release(&last);
    return rows;
}

static bool check_scans(struct kv *kv, const struct progress *writers)
{
    uint64_t want = 0;
    bool good = true;

    for (int i = 0; i < WRITERS; i++)
        want += (uint64_t)(writers[i].checked - 1) * ROWS / 2;
    uint64_t even = count_rows(kv, STR("even"), &good), odd = count_rows(kv, STR("odd"), &good);
    if (good && even == want && odd == want)
        return true;
    printf("scans give %llu and %llu rows, not %llu each\n", (unsigned long long)even,
           (unsigned long long)odd, (unsigned long long)want);
    return false;
}

static bool check(struct crash *c)
{
    struct state *s = container_of(c, struct state, crash);
    struct progress *writers = s->progress[s->engine];
    struct kv *kv = kv_engine_open(s->engine, &s->crash);
    bool good = true;

    for (uint32_t i = 0; i < WRITERS; i++)
        good = check_writer(kv, i, &writers[i], c->lie) && good;
    return good && check_scans(kv, writers);
}

int main(int argc, char **argv)
{
    struct state *s = shared_memory(sizeof(*s));
    struct crash_test test = CRASH_TEST("kv_crash", s, .before = before, .after = after);

    kv_engines_init();
    int status = crash_main(argc, argv, &test);
    kv_engines_end();
    return status;
}
