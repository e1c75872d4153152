/* A local storage without a wire in front of it.
 *
 *     bench_local DATA fill BUCKET OWNER KEYS          empty objects d<0..999>/k<number>, as fast
 * as can be bench_local DATA put|get SIZE INLINE SECONDS THREADS     bodies of SIZE, in rows up to
 * INLINE
 *
 * DATA is a data folder of weir's that nobody uses: "db" and "objects" in it. */
#include "base/arena.h"
#include "load.h"
#include "object/local/local_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDERS = 1000, OBJECTS = 1000, CHANGE_KEYS = 1000 };

struct bench {
    struct db *db;
    struct storage *storage;
    struct bucket *bucket;
    char *body;
    size_t size;
    uint64_t keys, next; /* to be filled in; filled in */
};

static void fail(const struct err *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(2);
}

static void open_all(struct bench *b, const char *data, size_t inline_max)
{
    char path[4096], folder[4096];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", data);
    snprintf(folder, sizeof(folder), "%s/objects", data);
    struct db_options o = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    struct local_options l = {.name = "local", .folder = folder, .id = 1, .inline_max = inline_max};
    if (db_open(&b->db, &o, &err) < 0)
        fail(&err);
    l.db = b->db;
    if (local_open(&b->storage, &l, &err) < 0)
        fail(&err);
}

static void close_all(struct bench *b)
{
    b->bucket->ops->unref(b->bucket);
    b->storage->ops->close(b->storage);
    db_close(b->db);
    free(b->body);
}

static void open_bucket(struct bench *b, const char *name, const char *owner)
{
    struct bucket_info info = {.name = str_z(name), .owner = str_z(owner)};
    struct err err = {0};
    int code = b->storage->ops->create_bucket(b->storage, &info, &err);

    if (code < 0 && code != ERR_EXISTS)
        fail(&err);
    if (b->storage->ops->open_bucket(&b->bucket, b->storage, str_z(owner), str_z(name), &err) < 0)
        fail(&err);
}

static bool put_body(struct bench *b, const char *key, size_t len)
{
    struct arena a = ARENA_INIT(0);
    struct put_options o = {0};
    struct put_result out;
    struct str_reader body;

    str_reader_init(&body, str_n(b->body, len));
    int code = b->bucket->ops->put(b->bucket, &a, str_z(key), &body.reader, len, &o, &out, NULL);
    arena_release(&a);
    return code == 0;
}

static bool put(struct load_thread *t)
{
    struct bench *b = t->ctx;
    char key[64];

    snprintf(key, sizeof(key), "object-%llu", (unsigned long long)(load_random(t) % OBJECTS));
    return put_body(b, key, b->size);
}

static bool get(struct load_thread *t)
{
    static const struct object_conditions none;
    static const struct object_range all;
    struct bench *b = t->ctx;
    struct arena a = ARENA_INIT(0);
    struct get_result got = {0};
    struct buf bytes = BUF_INIT(0);
    char key[64];

    snprintf(key, sizeof(key), "object-%llu", (unsigned long long)(load_random(t) % OBJECTS));
    int code = b->bucket->ops->get(b->bucket, &a, str_z(key), STR_EMPTY, &none, &all, &got, NULL);
    if (code == 0)
        code = reader_read_all(got.body, &bytes, NULL);
    reader_close(got.body);
    bool whole = code == 0 && bytes.len == b->size;
    buf_release(&bytes);
    arena_release(&a);
    return whole;
}

static int sizes(struct bench *b, char **argv, bool reads)
{
    struct load l = {
        .threads = atoi(argv[3]), .seconds = atof(argv[2]), .step = reads ? get : put, .ctx = b};
    char key[64];

    b->size = strtoul(argv[0], NULL, 10);
    b->body = malloc(b->size + 1);
    for (size_t i = 0; i < b->size; i++)
        b->body[i] = (char)(i * i >> 5);
    open_bucket(b, "sizes", "root");
    for (int i = 0; reads && i < OBJECTS; i++) {
        snprintf(key, sizeof(key), "object-%d", i);
        if (!put_body(b, key, b->size))
            return 2;
    }
    return load_run(&l);
}

/* One change: rows as puts of empty bodies leave them, by way of none of the puts, which would each
 * wait for a sync. Keys come in an order of their own, as clients write them. */
static int fill_some(struct db_tx *tx, void *ctx, struct err *err)
{
    struct bench *b = ctx;
    struct object_record r = {.is_null = true, .etag = STR("d41d8cd98f00b204e9800998ecf8427e")};
    struct buf record = BUF_INIT(0);
    struct row row;
    char key[64];

    for (int i = 0; i < CHANGE_KEYS && b->next < b->keys; i++) {
        uint64_t at = b->next++ * 7919 % b->keys; /* a prime that divides no power of ten */
        snprintf(key, sizeof(key), "d%03llu/k%08llu", (unsigned long long)(at % FOLDERS),
                 (unsigned long long)at);
        r.modified_ms = db_tx_now_ms(tx);
        r.sequence = (uint64_t)r.modified_ms * 1000 + b->next;
        buf_reset(&record);
        record_put(&record, &r);
        db_tx_put(tx, local_of(b->storage)->rows,
                  row_key(&row, local_bucket_of(b->bucket), TAG_OBJECT, str_z(key)),
                  buf_str(&record));
    }
    buf_release(&record);
    return 0;
}

static int fill(struct bench *b, char **argv)
{
    struct err err = {0};

    open_bucket(b, argv[0], argv[1]);
    b->keys = strtoull(argv[2], NULL, 10);
    uint64_t began = load_now_ns();
    while (b->next < b->keys)
        if (db_apply(b->db, DB_VOLATILE, fill_some, b, &err) < 0)
            fail(&err);
    printf("ops %llu\nseconds %.3f\n", (unsigned long long)b->keys,
           (double)(load_now_ns() - began) / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    int status = 2;

    if (argc == 6 && strcmp(argv[2], "fill") == 0) {
        open_all(&b, argv[1], 0);
        status = fill(&b, argv + 3);
    } else if (argc == 7) {
        open_all(&b, argv[1], strtoul(argv[4], NULL, 10));
        char *rest[] = {argv[3], NULL, argv[5], argv[6]};
        status = sizes(&b, rest, strcmp(argv[2], "get") == 0);
    } else {
        return 2;
    }
    close_all(&b);
    return status;
}
