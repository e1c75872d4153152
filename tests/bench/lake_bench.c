/* A lake for load programs. */
#include "lake_bench.h"

#include "base/clock.h"
#include "base/hash.h"
#include "db/db.h"
#include "os/file.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { FOLDER_OBJECTS = 1000, CACHE_BYTES = 64 << 20, NODES_AT_ONCE = 16 };

void bench_must(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s: %s\n", err_name(code), err->text);
    exit(2);
}

/* --- timing --- */

static double cpu_now(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct span span_begin(void)
{
    return (struct span){clock_mono_ns(), cpu_now()};
}

void span_end(const struct span *s, const char *name, uint64_t ops)
{
    double seconds = (double)(clock_mono_ns() - s->began_ns) / 1e9, cpu = cpu_now() - s->cpu;

    printf("%s_seconds %.4f\n%s_cpu %.4f\n%s_cpu_us %.3f\n", name, seconds, name, cpu, name,
           cpu * 1e6 / (double)ops);
    fflush(stdout);
}

/* --- nodes --- */

static void bench_node_path(char out[512], const struct lake_bench *b, struct str id)
{
    snprintf(out, 512, "%s/" STR_FMT, b->nodes, STR_ARG(id));
}

static int bench_node_read(void *ctx, struct str id, struct buf *out, struct err *err)
{
    char path[512];
    struct stat st;

    bench_node_path(path, ctx, id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, errno, "%s", path);
    char *to = buf_reserve(out, (size_t)st.st_size);
    int code =
        to ? file_pread_full(fd, to, (size_t)st.st_size, 0, err) : err_code(err, ERR_NO_MEMORY);
    if (code == 0)
        buf_commit(out, (size_t)st.st_size);
    fd_close(&fd);
    return code;
}

/* Opens a new file and writes it, as a local storage does it: at its place. The kernel begins to
 * write it to the disk. *fd -1: there is such a file already, which others may use and which must
 * never be half written, so a durable file has taken its place. */
static int bench_node_begin(int *fd, const char *path, struct str bytes, struct err *err)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0 && errno == EEXIST)
        return file_write_durable(path, bytes, 0600, err);
    if (*fd < 0)
        return err_errno(err, errno, "%s", path);
    int code = file_write_all(*fd, bytes.p, bytes.len, err);
    if (code == 0)
        (void)sync_file_range(*fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    return code;
}

/* Files are synced one behind the other, and then their folder once. */
static int bench_node_write_all(void *ctx, const struct node_bytes *files, size_t count,
                                struct err *err)
{
    const struct lake_bench *b = ctx;
    int fds[NODES_AT_ONCE], code = 0;
    char path[512];

    bench_must(count <= NODES_AT_ONCE ? 0 : ERR_TOO_LARGE, err);
    for (size_t i = 0; i < count; i++) {
        fds[i] = -1;
        bench_node_path(path, b, files[i].id);
        if (code == 0)
            code = bench_node_begin(&fds[i], path, files[i].bytes, err);
    }
    for (size_t i = 0; i < count; i++) {
        if (code == 0 && fds[i] >= 0)
            code = file_sync(fds[i], err);
        fd_close(&fds[i]);
    }
    return code < 0 ? code : dir_sync(b->nodes, err);
}

static int bench_node_write(void *ctx, struct str id, struct str bytes, struct err *err)
{
    return bench_node_write_all(ctx, &(struct node_bytes){id, bytes}, 1, err);
}

static int bench_place(void *ctx, const struct lake_repo *r, struct node_place *out,
                       struct err *err)
{
    *out = (struct node_place){.read = bench_node_read,
                               .write = bench_node_write,
                               .write_all = bench_node_write_all,
                               .ctx = ctx};
    return 0;
}

/* --- opening --- */

static void bench_open_kv(struct lake_bench *b, struct str kind, const char *where)
{
    struct err err = {0};

    if (str_eq(kind, STR("embedded"))) {
        struct db_options o = {.path = where, .cfs = kv_cf_spec(), .cf_count = 1};
        bench_must(db_open(&b->db, &o, &err), &err);
        bench_must(kv_open_embedded(&b->kv, b->db, NULL, &err), &err);
    } else if (str_eq(kind, STR("redis"))) {
        struct store_redis_options o = {.url = str_z(where)};
        bench_must(store_open_redis(&b->store, &o, &err), &err);
        bench_must(kv_open_redis(&b->kv, b->store, NULL, &err), &err);
    } else {
        struct kv_postgres_options o = {.url = where};
        bench_must(kv_open_postgres(&b->kv, &o, &err), &err);
    }
}

void lake_bench_open(struct lake_bench *b, const char *target, const char *folder)
{
    struct lake_options o = {.place = bench_place,
                             .place_ctx = b,
                             .cache = {.memory_bytes = CACHE_BYTES},
                             .drop_again_ms = 600000};
    struct lake_repo_options repo = {
        .id = STR("bench"), .space = STR("s3://data/bench"), .owner = STR("owner")};
    const char *colon = strchr(target, ':');
    struct err err = {0};

    *b = (struct lake_bench){0};
    snprintf(b->nodes, sizeof(b->nodes), "%s/nodes", folder);
    bench_must(dir_make(b->nodes, 0700, &err), &err);
    bench_must(colon ? 0 : err_set(&err, ERR_INVALID, "'%s' is not a target", target), &err);
    bench_open_kv(b, str_n(target, (size_t)(colon - target)), colon + 1);
    o.kv = b->kv;
    bench_must(lake_open(&b->lake, &o, &err), &err);
    int code = lake_repo_get(b->lake, &b->arena, repo.id, &b->repo, &err);
    if (code == ERR_NOT_FOUND)
        code = lake_repo_create(b->lake, &b->arena, &repo, &b->repo, &err);
    bench_must(code, &err);
}

void lake_bench_close(struct lake_bench *b)
{
    lake_close(b->lake);
    kv_close(b->kv);
    if (b->store)
        store_close(b->store);
    if (b->db)
        db_close(b->db);
    arena_release(&b->arena);
}

/* --- objects --- */

struct str bench_path(struct arena *a, uint64_t n)
{
    return arena_fmt(a, "table/date=%04u/part-%09u.parquet", (unsigned)(n / FOLDER_OBJECTS),
                     (unsigned)n);
}

const struct lake_entry *bench_entry(struct arena *a, uint64_t n, uint64_t version)
{
    struct lake_entry *e = arena_new(a, struct lake_entry);
    uint64_t x[2] = {hash_xxh3(str_n(&n, sizeof(n)), version),
                     hash_xxh3(str_n(&n, sizeof(n)), version + 1)};

    *e = (struct lake_entry){
        .address = arena_fmt(a, "data/gk3d0hs9/01JD%022llx", (unsigned long long)(x[0] ^ x[1])),
        .address_type = LAKE_RELATIVE,
        .modified_ms = 1700000000000,
        .size = 65536,
        .etag = arena_hex(a, x, sizeof(x)),
        .content_type = STR("application/octet-stream")};
    return e;
}

struct str bench_row(struct arena *a, uint64_t n)
{
    const struct lake_entry *e = bench_entry(a, n, 0);
    unsigned char identity[LAKE_IDENTITY_LEN];
    struct buf data = {0}, row = {0};

    lake_entry_identity(identity, e);
    lake_entry_write(&data, e);
    lake_staged_write(&row,
                      &(struct lake_staged){str_n(identity, sizeof(identity)), buf_str(&data)});
    struct str out = arena_str(a, buf_str(&row));
    buf_release(&data);
    buf_release(&row);
    return out;
}
