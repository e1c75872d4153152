/* Commits of many objects: beside the limit, beside writers, and of one object.
 *
 *     bench_lake_commit DIR OBJECTS SECONDS THREADS [one_commit]
 *
 * With `one_commit` only commits of one object are measured, behind a commit of all.
 *
 * The limit is a scan of the same rows that packs them by zstd, hashes them by SHA-256 and writes
 * them to files. Threads stage and commit one object each, on one branch and on branches of their
 * own. Writers stage objects of their own while a commit runs: first as fast as they can,
 * then, for the latencies, at half of the rate that they reach without a commit. */
#include "lake_bench.h"
#include "load.h"

#include "base/clock.h"
#include "os/file.h"
#include "os/thread.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum {
    FILLERS = 4,
    LIMIT_BLOCK = 128 << 10,
    SINGLES = 50,
    BRANCHES = 200,
    LOOKUPS = 50000,
    COMMITTERS = 8,        /* threads that commit at the same time */
    PARALLEL_COMMITS = 25, /* of each */
    WRITERS_MAX = 256,
};

struct commit_bench {
    struct lake_bench lake;
    const char *folder;
    uint64_t objects, version;
    double seconds;
    unsigned writer_count;
};

/* --- staging everything --- */

struct filler {
    struct thread thread;
    struct commit_bench *bench;
    unsigned number;
};

static void filler_main(void *ctx)
{
    struct filler *f = ctx;
    struct commit_bench *b = f->bench;
    struct lake_put puts[LAKE_BATCH_MAX];
    struct arena a = {0};
    struct err err = {0};

    for (uint64_t at = (uint64_t)f->number * LAKE_BATCH_MAX; at < b->objects;
         at += (uint64_t)FILLERS * LAKE_BATCH_MAX) {
        size_t count = size_min(LAKE_BATCH_MAX, (size_t)(b->objects - at));
        for (size_t i = 0; i < count; i++)
            puts[i] =
                (struct lake_put){bench_path(&a, at + i), bench_entry(&a, at + i, b->version)};
        bench_must(
            lake_stage(b->lake.lake, &a, &b->lake.repo, STR("main"), puts, count, NULL, &err),
            &err);
        arena_reset(&a);
    }
    arena_release(&a);
}

/* Stages another version of all objects. */
static void fill(struct commit_bench *b)
{
    struct filler fillers[FILLERS] = {0};
    struct err err = {0};

    b->version += 2;
    for (unsigned i = 0; i < FILLERS; i++) {
        fillers[i].bench = b;
        fillers[i].number = i;
        bench_must(thread_start(&fillers[i].thread, "fill", 0, filler_main, &fillers[i], &err),
                   &err);
    }
    for (unsigned i = 0; i < FILLERS; i++)
        thread_join(&fillers[i].thread);
}

/* --- the limit --- */

static void limit_write(struct commit_bench *b, struct buf *rows, ZSTD_CCtx *zstd)
{
    static char packed[2 * LIMIT_BLOCK];
    unsigned char id[32];
    char path[512];
    struct err err = {0};
    int at = snprintf(path, sizeof(path), "%s/limit/", b->folder);

    EVP_Digest(rows->p, rows->len, id, NULL, EVP_sha256(), NULL);
    size_t len = ZSTD_compressCCtx(zstd, packed, sizeof(packed), rows->p, rows->len, 1);
    for (int i = 0; i < 32; i++)
        at += snprintf(path + at, sizeof(path) - (size_t)at, "%02x", id[i]);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bench_must(fd < 0 ? ERR_IO : file_write_all(fd, packed, len, &err), &err);
    fd_close(&fd);
    buf_reset(rows);
}

static void run_limit(struct commit_bench *b)
{
    struct buf rows = {0};
    struct kv_scan *scan = NULL;
    struct lake_branch branch;
    struct str key, value;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    char folder[300];
    struct err err = {0};

    snprintf(folder, sizeof(folder), "%s/limit", b->folder);
    bench_must(dir_make(folder, 0700, &err), &err);
    bench_must(
        lake_branch_get(b->lake.lake, &b->lake.arena, &b->lake.repo, STR("main"), &branch, &err),
        &err);
    struct span s = span_begin();
    bench_must(kv_scan_open(&scan, b->lake.kv, NULL, branch.staging, NULL, &err), &err);
    while (kv_scan_next(scan, &key, &value, &err) == 0) {
        buf_append_str(&rows, key);
        buf_append_str(&rows, value);
        if (rows.len > LIMIT_BLOCK - 1024)
            limit_write(b, &rows, zstd);
    }
    limit_write(b, &rows, zstd);
    span_end(&s, "limit", b->objects);
    kv_scan_free(scan);
    ZSTD_freeCCtx(zstd);
    buf_release(&rows);
}

/* --- commits --- */

static void commit_main(struct commit_bench *b, struct arena *a)
{
    struct lake_commit_options o = {.message = STR("bench"), .committer = STR("bench")};
    struct lake_commit c;
    struct err err = {0};

    bench_must(lake_commit(b->lake.lake, a, &b->lake.repo, STR("main"), &o, &c, &err), &err);
}

static void run_commit(struct commit_bench *b, const char *name)
{
    struct arena a = {0};
    struct span s = span_begin();

    commit_main(b, &a);
    span_end(&s, name, b->objects);
    arena_release(&a);
}

/* Drops the tokens of earlier commits, so that the cleaner does not work beside what is timed. */
static void settle(struct commit_bench *b)
{
    struct err err = {0};

    bench_must(lake_clean(b->lake.lake, &err), &err);
}

/* Stages and commits one object again and again. The drops of the tokens count too. */
static void run_singles(struct commit_bench *b)
{
    struct arena a = {0};
    struct err err = {0};
    struct span s = span_begin();

    for (uint64_t i = 0; i < SINGLES; i++) {
        uint64_t n = i * 7919 * 104729 % b->objects;
        struct lake_put put = {bench_path(&a, n), bench_entry(&a, n, 1000 + i)};
        bench_must(lake_stage(b->lake.lake, &a, &b->lake.repo, STR("main"), &put, 1, NULL, &err),
                   &err);
        commit_main(b, &a);
        arena_reset(&a);
    }
    settle(b);
    span_end(&s, "one_commit", SINGLES);
    arena_release(&a);
}

/* --- parallel commits --- */

struct committer {
    struct thread thread;
    struct commit_bench *bench;
    struct str branch;
    unsigned number;
};

static void committer_main(void *ctx)
{
    struct committer *c = ctx;
    struct commit_bench *b = c->bench;
    struct lake_commit_options o = {.message = STR("bench"), .committer = STR("bench")};
    struct arena a = {0};
    struct err err = {0};

    for (uint64_t i = 0; i < PARALLEL_COMMITS; i++) {
        uint64_t n = (i * COMMITTERS + c->number) * 7919 * 104729 % b->objects;
        struct lake_put put = {bench_path(&a, n), bench_entry(&a, n, 5000 + i)};
        struct lake_commit made;
        bench_must(lake_stage(b->lake.lake, &a, &b->lake.repo, c->branch, &put, 1, NULL, &err),
                   &err);
        int code = lake_commit(b->lake.lake, &a, &b->lake.repo, c->branch, &o, &made, &err);
        bench_must(code == ERR_NOT_MODIFIED ? 0 : code, &err); /* another commit took the change */
        arena_reset(&a);
    }
    arena_release(&a);
}

/* Threads that stage and commit one object again and again, on one branch or each on its own. */
static void run_committers(struct commit_bench *b, const char *name, unsigned branches)
{
    struct committer all[COMMITTERS] = {0};
    struct arena a = {0};
    struct err err = {0};

    for (unsigned i = 0; i < branches; i++) {
        struct lake_branch_options o = {.name = arena_fmt(&a, "%s-%u", name, i),
                                        .source = STR("main")};
        struct lake_branch made;
        bench_must(lake_branch_create(b->lake.lake, &a, &b->lake.repo, &o, &made, &err), &err);
    }
    struct span s = span_begin();
    for (unsigned i = 0; i < COMMITTERS; i++) {
        all[i] = (struct committer){
            .bench = b, .branch = arena_fmt(&a, "%s-%u", name, i % branches), .number = i};
        bench_must(thread_start(&all[i].thread, "committer", 0, committer_main, &all[i], &err),
                   &err);
    }
    for (unsigned i = 0; i < COMMITTERS; i++)
        thread_join(&all[i].thread);
    span_end(&s, name, (uint64_t)COMMITTERS * PARALLEL_COMMITS);
    arena_release(&a);
}

static void run_branches(struct commit_bench *b)
{
    struct arena a = {0};
    struct err err = {0};
    struct span s = span_begin();

    for (int i = 0; i < BRANCHES; i++) {
        struct lake_branch_options o = {.name = arena_fmt(&a, "branch-%d", i),
                                        .source = STR("main")};
        struct lake_branch made;
        bench_must(lake_branch_create(b->lake.lake, &a, &b->lake.repo, &o, &made, &err), &err);
        arena_reset(&a);
    }
    span_end(&s, "branch", BRANCHES);
    arena_release(&a);
}

static void run_lookups(struct commit_bench *b)
{
    struct arena a = {0};
    struct lake_branch branch;
    struct lake_object found;
    struct err err = {0};
    uint64_t x = 1;

    bench_must(
        lake_branch_get(b->lake.lake, &b->lake.arena, &b->lake.repo, STR("main"), &branch, &err),
        &err);
    struct span s = span_begin();
    for (int i = 0; i < LOOKUPS; i++, x = x * 6364136223846793005u + 1442695040888963407u) {
        bench_must(lake_stat(b->lake.lake, &a, &b->lake.repo, branch.commit_id,
                             bench_path(&a, (x >> 20) % b->objects), &found, &err),
                   &err);
        arena_reset(&a);
    }
    span_end(&s, "lookup", LOOKUPS);
    arena_release(&a);
}

/* --- writers beside a commit --- */

struct writers {
    struct commit_bench *bench;
    _Atomic(bool) stop;
    uint64_t pause_ns; /* between the stages of one writer; 0: as fast as it can */
};

struct bench_writer {
    struct thread thread;
    struct writers *all;
    unsigned number;
    uint64_t ops;
    struct load_times times;
};

static void writer_pause(uint64_t until_ns)
{
    uint64_t now = clock_mono_ns();

    if (now < until_ns)
        usleep((useconds_t)((until_ns - now) / 1000));
}

static void writer_main(void *ctx)
{
    struct bench_writer *w = ctx;
    struct commit_bench *b = w->all->bench;
    uint64_t next = clock_mono_ns() + w->all->pause_ns * w->number / b->writer_count;
    struct arena a = {0};
    struct err err = {0};

    while (!w->all->stop) {
        struct lake_put put = {arena_fmt(&a, "live/%u/%u", w->number, (unsigned)(w->ops % 1000)),
                               bench_entry(&a, w->ops, w->number)};
        writer_pause(next);
        uint64_t began = clock_mono_ns();
        bench_must(lake_stage(b->lake.lake, &a, &b->lake.repo, STR("main"), &put, 1, NULL, &err),
                   &err);
        load_times_add(&w->times, clock_mono_ns() - began);
        next = w->all->pause_ns ? next + w->all->pause_ns : 0;
        w->ops++;
        arena_reset(&a);
    }
    arena_release(&a);
}

/* Runs writers beside a commit, or (without) for some seconds. Returns stages a second. */
static double run_writers(struct commit_bench *b, const char *name, double rate, bool commits)
{
    static struct bench_writer all[WRITERS_MAX];
    static struct load_times times;
    struct writers w = {.bench = b,
                        .pause_ns = rate > 0 ? (uint64_t)(1e9 * b->writer_count / rate) : 0};
    struct err err = {0};
    uint64_t began = clock_mono_ns(), ops = 0;

    memset(&times, 0, sizeof(times));
    for (unsigned i = 0; i < b->writer_count; i++) {
        all[i] = (struct bench_writer){.all = &w, .number = i};
        bench_must(thread_start(&all[i].thread, "writer", 0, writer_main, &all[i], &err), &err);
    }
    if (commits)
        run_commit(b, "long_commit");
    else
        usleep((useconds_t)(b->seconds * 1e6));
    double seconds = (double)(clock_mono_ns() - began) / 1e9;
    w.stop = true;
    for (unsigned i = 0; i < b->writer_count; i++) {
        thread_join(&all[i].thread);
        ops += all[i].ops;
        for (size_t k = 0; k < LOAD_BUCKETS; k++)
            times.count[k] += all[i].times.count[k];
        times.total += all[i].times.total;
    }
    printf("%s_rate %.1f\n%s_p50_us %.1f\n%s_p99_us %.1f\n", name, (double)ops / seconds, name,
           load_times_us(&times, 0.5), name, load_times_us(&times, 0.99));
    fflush(stdout);
    return (double)ops / seconds;
}

/* Writers without a commit, then writers beside one. Both come behind a fill, so that the database
 * has as many rows to merge in the background. Returns the rate without a commit. */
static double run_pair(struct commit_bench *b, const char *alone, const char *beside, double rate)
{
    fill(b);
    double reached = run_writers(b, alone, rate, false);
    fill(b);
    run_writers(b, beside, rate, true);
    return reached;
}

/* What is measured behind the commits of one object. */
static void run_rest(struct commit_bench *b)
{
    run_committers(b, "commits_one_branch", 1);
    run_committers(b, "commits_eight_branches", COMMITTERS);
    settle(b);
    run_branches(b);
    run_lookups(b);
    double rate = run_pair(b, "alone", "beside", 0);
    run_pair(b, "half_alone", "half_beside", rate / 2);
}

int main(int argc, char **argv)
{
    struct commit_bench b = {0};
    char target[512];

    if (argc < 5 || argc > 6 || str_u64(str_z(argv[2]), &b.objects) || b.objects < LAKE_BATCH_MAX)
        return 2;
    bool is_all = argc == 5;
    if (!is_all && strcmp(argv[5], "one_commit") != 0)
        return 2;
    b.folder = argv[1];
    b.seconds = atof(argv[3]);
    b.writer_count = (unsigned)atoi(argv[4]);
    if (b.writer_count < 1 || b.writer_count > WRITERS_MAX)
        return 2;
    snprintf(target, sizeof(target), "embedded:%s/kv", b.folder);
    lake_bench_open(&b.lake, target, b.folder);
    struct span s = span_begin();
    fill(&b);
    span_end(&s, "fill", b.objects);
    if (is_all)
        run_limit(&b);
    run_commit(&b, "commit");
    settle(&b);
    run_singles(&b);
    if (is_all)
        run_rest(&b);
    lake_bench_close(&b.lake);
    return 0;
}
