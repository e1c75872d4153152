/* Trees of the lake on a folder of files: build, lookups, a change of one object, diff and merge of
 * many changes; and the limit, which is the same rows hashed, packed and written by hand.
 *
 *     bench_lake_tree DIR OBJECTS
 */
#include "base/clock.h"
#include "base/hash.h"
#include "lake/tree.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

enum {
    FOLDER = 1000,    /* objects in a folder */
    CHANGED = 10,     /* folders that diff and merge find changed */
    LOOKUPS = 200000, /* lookups that are timed */
    SINGLES = 200,    /* changes of one object that are timed */
    REPEATS = 50,     /* diffs and merges that are timed: one takes a few milliseconds */
    LIMIT_BLOCK = 128 << 10,
};

static void must(int code, const struct err *err)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", err_name(code), err->text);
        exit(1);
    }
}

/* --- the rows --- */

struct rows {
    uint64_t at, end;
    uint64_t version;
    char key[64], identity[LAKE_IDENTITY_LEN], data[192];
};

static void digits(char *to, int count, uint64_t v)
{
    while (count-- > 0) {
        to[count] = (char)('0' + v % 10);
        v /= 10;
    }
}

/* A path, an identity and an entry of about the size that objects have: an address and an ETag in
 * random digits, and fields that are alike. */
static void row_make(struct rows *r, uint64_t n, struct tree_record *out)
{
    static const char hex[] = "0123456789abcdef";
    uint64_t x = hash_xxh3(str_n(&n, sizeof(n)), r->version);

    memcpy(r->key, "table/date=0000/part-000000000.parquet", 38);
    digits(r->key + 11, 4, n / FOLDER);
    digits(r->key + 21, 9, n);
    for (size_t i = 0; i < sizeof(r->identity); i += 8, x = x * 6364136223846793005u + 1)
        memcpy(r->identity + i, &x, 8);
    memcpy(r->data,
           "\x0a\x2c"
           "data/gk3d0hs9/01JD0000000000000000000000"
           "\x12\x06\x08\xd0\xb2\xd2",
           48);
    memcpy(r->data + 48, "\x18\x80\x80\x04\x22\x20", 6);
    for (int i = 0; i < 10; i++)
        r->data[30 + i] = hex[x >> (4 * i) & 15];
    for (int i = 0; i < 32; i++, x = i % 16 ? x : x * 6364136223846793005u + 1)
        r->data[54 + i] = hex[x >> (60 - 4 * (i % 16)) & 15];
    memcpy(r->data + 86,
           "\x30\x01\x3a\x18"
           "application/octet-stream",
           28);
    *out = (struct tree_record){str_n(r->key, 38), str_n(r->identity, sizeof(r->identity)),
                                str_n(r->data, 114)};
}

static int row_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct rows *r = ctx;

    if (r->at >= r->end)
        return ERR_END;
    row_make(r, r->at++, out);
    return 0;
}

/* --- the place --- */

static uint64_t reads;                  /* of files, by the one thread that looks up */
static _Atomic(uint64_t) written_bytes; /* of files, by all threads */

static int place_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    char path[4096];

    reads++;
    snprintf(path, sizeof(path), "%s/" STR_FMT, (const char *)ctx, STR_ARG(id));
    return file_read(path, out, err);
}

static int write_file(const char *folder, struct str name, struct str bytes, struct err *err)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/" STR_FMT, folder, STR_ARG(name));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    int code = file_write_all(fd, bytes.p, bytes.len, err);
    fd_close(&fd);
    return code;
}

static int place_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    atomic_fetch_add(&written_bytes, bytes.len);
    return write_file(ctx, id, bytes, err);
}

/* --- timing --- */

struct span {
    uint64_t began_ns;
    double cpu;
};

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static struct span span_begin(void)
{
    return (struct span){clock_mono_ns(), cpu_seconds()};
}

static void span_end(const struct span *s, const char *name, uint64_t ops)
{
    double seconds = (double)(clock_mono_ns() - s->began_ns) / 1e9, cpu = cpu_seconds() - s->cpu;

    printf("%s_seconds %.4f\n%s_cpu %.4f\n%s_cpu_us %.3f\n", name, seconds, name, cpu, name,
           cpu * 1e6 / (double)ops);
    fflush(stdout);
}

/* --- what is measured --- */

static void limit_flush(const char *folder, struct buf *rows, ZSTD_CCtx *zstd, EVP_MD_CTX *sha)
{
    static char packed[2 * LIMIT_BLOCK];
    unsigned char id[32];
    char name[65];
    struct err err = {0};

    EVP_DigestInit_ex(sha, EVP_sha256(), NULL);
    EVP_DigestUpdate(sha, rows->p, rows->len);
    EVP_DigestFinal_ex(sha, id, NULL);
    size_t len = ZSTD_compressCCtx(zstd, packed, sizeof(packed), rows->p, rows->len, 1);
    for (int i = 0; i < 32; i++)
        snprintf(name + 2 * i, 3, "%02x", id[i]);
    must(write_file(folder, str_z(name), str_n(packed, len), &err), &err);
    buf_reset(rows);
}

static void run_limit(const char *folder, uint64_t objects)
{
    struct rows r = {.end = objects};
    struct buf rows = {0};
    struct tree_record row;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    EVP_MD_CTX *sha = EVP_MD_CTX_new();
    struct span s = span_begin();

    while (row_next(&r, &row, NULL) == 0) {
        buf_append_str(&rows, row.key);
        buf_append_str(&rows, row.identity);
        buf_append_str(&rows, row.data);
        if (rows.len > LIMIT_BLOCK - 512)
            limit_flush(folder, &rows, zstd, sha);
    }
    limit_flush(folder, &rows, zstd, sha);
    span_end(&s, "limit", objects);
    EVP_MD_CTX_free(sha);
    ZSTD_freeCCtx(zstd);
    buf_release(&rows);
}

static void apply_rows(struct tree_store *t, const char *base, uint64_t from, uint64_t to,
                       uint64_t version, struct tree_result *out)
{
    struct tree_write_options o = {0};
    struct rows r = {.at = from, .end = to, .version = version};
    struct tree_changes changes = {row_next, &r};
    struct err err = {0};

    must(tree_apply(t, str_z(base), &changes, &o, out, &err), &err);
}

static void run_lookups(struct tree_store *t, const char *root, uint64_t objects)
{
    struct arena a = ARENA_INIT(0);
    struct rows r = {0};
    struct tree_record want, got;
    struct err err = {0};
    uint64_t x = 1, reads_before = 0;
    struct span s = {0};

    for (int i = -LOOKUPS / 10; i < LOOKUPS;
         i++, x = x * 6364136223846793005u + 1442695040888963407u) {
        if (i == 0) {
            s = span_begin();
            reads_before = reads;
        }
        row_make(&r, (x >> 20) % objects, &want);
        must(tree_get(t, &a, str_z(root), want.key, &got, &err), &err);
        arena_reset(&a);
    }
    span_end(&s, "lookup", LOOKUPS);
    printf("lookup_reads %.3f\n", (double)(reads - reads_before) / LOOKUPS);
    arena_release(&a);
}

static void run_singles(struct tree_store *t, const char *root, uint64_t objects)
{
    struct tree_result r;
    uint64_t x = 9, nodes = 0;
    struct span s = span_begin();

    for (int i = 0; i < SINGLES; i++, x = x * 6364136223846793005u + 1442695040888963407u) {
        uint64_t at = (x >> 20) % objects;
        apply_rows(t, root, at, at + 1, 1000 + (uint64_t)i, &r);
        nodes += r.nodes;
    }
    span_end(&s, "single", SINGLES);
    printf("single_nodes %.2f\n", (double)nodes / SINGLES);
}

static void run_diff(struct tree_store *t, const char *left, const char *right)
{
    struct tree_diff *d;
    struct tree_difference difference;
    struct err err = {0};
    uint64_t count = 0;
    struct span s = span_begin();

    for (int i = 0; i < REPEATS; i++) {
        must(tree_diff_open(&d, t, str_z(left), str_z(right), STR_EMPTY, &err), &err);
        while (tree_diff_next(d, &difference, &err) == 0)
            count++;
        tree_diff_close(d);
    }
    span_end(&s, "diff", count);
    printf("differences %llu\n", (unsigned long long)count / REPEATS);
}

static void run_merge(struct tree_store *t, const char *base, const char *source, const char *dest)
{
    struct tree_merge m = {.base = str_z(base), .source = str_z(source), .dest = str_z(dest)};
    struct tree_write_options o = {0};
    struct tree_result r;
    struct err err = {0};
    struct span s = span_begin();

    for (int i = 0; i < REPEATS; i++)
        must(tree_merge(t, &m, &o, &r, &err), &err);
    span_end(&s, "merge", REPEATS * CHANGED * FOLDER);
    printf("merge_nodes %llu\n", (unsigned long long)r.nodes);
}

static void run_list(struct tree_store *t, const char *root, uint64_t objects)
{
    struct tree_iter *it;
    struct tree_record r;
    struct err err = {0};
    struct span s = span_begin();

    must(tree_iter_open(&it, t, str_z(root), &err), &err);
    while (tree_iter_next(it, &r, &err) == 0)
        ;
    tree_iter_close(it);
    span_end(&s, "list", objects);
}

/* Changes ten folders, one by one at equal distances from `first` on. */
static void change_folders(struct tree_store *t, const char *base, uint64_t first, uint64_t objects,
                           struct tree_result *out)
{
    *out = (struct tree_result){0};
    snprintf(out->root, sizeof(out->root), "%s", base);
    for (uint64_t i = 0; i < CHANGED; i++) {
        uint64_t folder = first + i * (objects / FOLDER / CHANGED);
        apply_rows(t, out->root, folder * FOLDER, (folder + 1) * FOLDER, 5 + first, out);
    }
}

int main(int argc, char **argv)
{
    struct tree_cache_options o = {.memory_bytes = 64 * MIB};
    struct tree_result base, left, right;
    struct tree_cache *cache;
    struct err err = {0};
    uint64_t objects;

    if (argc != 3 || str_u64(str_z(argv[2]), &objects) || objects < 2 * CHANGED * FOLDER)
        return 2;
    must(tree_cache_open(&cache, &o, &err), &err);
    struct tree_store t = {.cache = cache,
                           .place = {.read = place_read, .write = place_write, .ctx = argv[1]},
                           .scope = STR("bench")};
    run_limit(argv[1], objects);
    struct span s = span_begin();
    apply_rows(&t, "", 0, objects, 0, &base);
    span_end(&s, "build", objects);
    printf("build_nodes %llu\nbuild_bytes %llu\n", (unsigned long long)base.nodes,
           (unsigned long long)atomic_load(&written_bytes));
    run_list(&t, base.root, objects);
    run_lookups(&t, base.root, objects);
    run_singles(&t, base.root, objects);
    change_folders(&t, base.root, 1, objects, &left);
    change_folders(&t, base.root, 50, objects, &right);
    run_diff(&t, base.root, left.root);
    run_merge(&t, base.root, left.root, right.root);
    tree_cache_close(cache);
    return 0;
}
