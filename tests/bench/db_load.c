/* Writes and reads of single rows through db/.
 *
 *     bench_db DIR durable|volatile|get SECONDS THREADS KEYS
 */
#include "base/buf.h"
#include "db/db.h"
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct db_cf_spec families[] = {{"bench", NULL}};

struct bench {
    struct db *db;
    struct db_cf *cf;
    uint64_t keys;
    enum db_durability durability;
};

static bool put(struct load_thread *t)
{
    const struct bench *b = t->ctx;
    char k[LOAD_KEY], v[LOAD_VALUE];
    uint64_t n = load_random(t);

    load_key(k, "string", n % b->keys);
    load_value(v, n);
    return db_put(b->db, b->cf, str_n(k, LOAD_KEY), str_n(v, LOAD_VALUE), b->durability, NULL) == 0;
}

static bool get(struct load_thread *t)
{
    const struct bench *b = t->ctx;
    struct buf value = {0};
    char k[LOAD_KEY];

    load_key(k, "string", load_random(t) % b->keys);
    int code = db_get(db_latest(b->db), b->cf, str_n(k, LOAD_KEY), &value, NULL);
    buf_release(&value);
    return code == 0;
}

static int fill(const struct bench *b)
{
    char k[LOAD_KEY], v[LOAD_VALUE];
    int code = 0;

    for (uint64_t n = 0; n < b->keys && code == 0; n++) {
        load_key(k, "string", n);
        load_value(v, n);
        code = db_put(b->db, b->cf, str_n(k, LOAD_KEY), str_n(v, LOAD_VALUE), DB_VOLATILE, NULL);
    }
    return code;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct err err = {0};

    if (argc != 6)
        return 2;
    b.keys = strtoull(argv[5], NULL, 10);
    b.durability = strcmp(argv[2], "durable") == 0 ? DB_DURABLE : DB_VOLATILE;
    struct db_options o = {.path = argv[1], .cfs = families, .cf_count = 1};
    if (db_open(&b.db, &o, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    b.cf = db_cf(b.db, "bench");
    struct load l = {.threads = atoi(argv[4]), .seconds = atof(argv[3]), .ctx = &b};
    l.step = strcmp(argv[2], "get") == 0 ? get : put;
    int status = l.step == get && fill(&b) < 0 ? 2 : load_run(&l);
    struct db_stats stats;
    db_stats(b.db, &stats);
    if (stats.groups)
        printf("group %.1f\n", (double)stats.changes / (double)stats.groups);
    db_close(b.db);
    return status;
}
