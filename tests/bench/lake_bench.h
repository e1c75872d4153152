/* What the load programs of the lake share: a lake over a key-value store, with nodes as files of a
 * folder, and objects of the size that data tables have. */
#ifndef TESTS_BENCH_LAKE_BENCH_H
#define TESTS_BENCH_LAKE_BENCH_H

#include "lake/lake_int.h"

struct lake_bench {
    struct db *db;       /* embedded */
    struct store *store; /* redis */
    struct kv *kv;
    struct lake *lake;
    struct lake_repo repo;
    struct arena arena; /* of the repository's record */
    char nodes[256];    /* the folder of nodes */
};

/* Ends the program with the text of the error. */
void bench_must(int code, const struct err *err);

/* Opens `target`, which is embedded:FOLDER, redis:URL or postgres:URL, and the repository "bench",
 * which is made when it is absent. `folder` is for nodes. */
void lake_bench_open(struct lake_bench *b, const char *target, const char *folder);
void lake_bench_close(struct lake_bench *b);

/* Time and CPU of the process since span_begin(). The end prints them as figures that begin with
 * `name`; the CPU also for each of `ops` operations. */
struct span {
    uint64_t began_ns;
    double cpu;
};
struct span span_begin(void);
void span_end(const struct span *s, const char *name, uint64_t ops);

/* Object n: its path, its entry, and the bytes of its staged row. `version` makes another content.
 * In the arena. */
struct str bench_path(struct arena *a, uint64_t n);
const struct lake_entry *bench_entry(struct arena *a, uint64_t n, uint64_t version);
struct str bench_row(struct arena *a, uint64_t n);

#endif
