/* The backup of one repository of a git server into a local storage, as a sync of the archive makes
 * it, and the bare limit of that work. For room_archive.py.
 *
 *     bench_archive sync DATA URL walk|hash    the first time a full bundle, later an append
 *     bench_archive limit DATA URL walk|hash   receive, SHA-1, MD5, inflate (walk), write: each
 * once
 *
 * DATA is a folder that nobody else uses. The figures are lines `name value`. */
#include "archive/bundle.h"
#include "archive/fetch.h"
#include "base/clock.h"
#include "http/client.h"
#include "object/local/local.h"
#include "object/overlay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 256 * 1024 };

struct backup {
    const char *data, *url;
    bool walk;
    struct client *client;
    struct git_remote *remote;
    struct db *db;
    struct storage *storage;
    struct bucket *bucket;
    struct arena arena;
    struct bundle_job job;
    struct bundle_result out;
};

static void backup_ok(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(2);
}

static void remote_begin(struct backup *b)
{
    struct git_remote_options o = {.url = b->url, .allow_private = true};
    struct fetch_fault fault;
    struct err err = {0};

    b->client = client_new(&(struct client_options){.user_agent = "git/weir", .direct = true});
    o.client = b->client;
    backup_ok(git_remote_open(&b->remote, &o, &fault, &err), &err);
}

static void remote_end(struct backup *b)
{
    git_remote_close(b->remote);
    client_free(b->client);
}

static void storage_begin(struct backup *b)
{
    char path[4096], folder[4096];
    struct bucket_info info = {.name = STR("github.com"), .owner = STR("owner")};
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/db", b->data);
    snprintf(folder, sizeof(folder), "%s/objects", b->data);
    struct db_options d = {.path = path, .cfs = local_cf_specs(), .cf_count = LOCAL_FAMILIES};
    backup_ok(db_open(&b->db, &d, &err), &err);
    struct local_options l = {.name = "local", .folder = folder, .db = b->db, .id = 1};
    backup_ok(local_open(&b->storage, &l, &err), &err);
    int code = storage_create_bucket(b->storage, &info, &err);
    backup_ok(code == ERR_EXISTS ? 0 : code, &err);
    backup_ok(storage_open_bucket(&b->bucket, b->storage, info.owner, info.name, &err), &err);
    b->arena = ARENA_INIT(0);
    b->job = (struct bundle_job){
        .bucket = b->bucket,
        .arena = &b->arena,
        .key = STR("a6/65/81/57/octocat/Hello-World.bundle"),
        .now_s = clock_wall_ms() / 1000,
        .fence = 1,
        .check = {.walk = b->walk,
                  .limits = {(uint64_t)64 << 30, (uint64_t)32 << 30, (uint64_t)64 << 30, 200}}};
}

static void storage_end(struct backup *b)
{
    arena_release(&b->arena);
    b->bucket->ops->unref(b->bucket);
    b->storage->ops->close(b->storage);
    db_close(b->db);
}

/* One request and one write. Returns whether tips are left for another one. */
static bool backup_round(struct backup *b)
{
    const struct git_refs *refs = git_remote_refs(b->remote);
    struct bundle_old old;
    struct bundle_wants w;
    struct fetch_fault fault;
    struct reader *pack = NULL;
    struct err err = {0};
    int code = bundle_open(&old, &b->job, &err);
    bool is_first = code == ERR_NOT_FOUND;

    backup_ok(is_first ? 0 : code, &err);
    bundle_wants_init(&w, is_first ? NULL : &old, refs, GIT_WANTS_MAX);
    if (w.fetch.want_count)
        backup_ok(git_remote_fetch(b->remote, &w.fetch, &pack, &fault, &err), &err);
    code = is_first ? bundle_put_full(&b->job, w.refs, pack, STR_EMPTY, &b->out, &err)
                    : bundle_append(&b->job, &old, w.refs, pack, &b->out, &err);
    backup_ok(code, &err);
    reader_close(pack);
    bool more = w.more;
    bundle_wants_release(&w);
    bundle_old_release(&old);
    return more;
}

static void backup_sync(struct backup *b)
{
    storage_begin(b);
    remote_begin(b);
    while (backup_round(b))
        ;
    printf("pack %" PRIu64 "\nsent %" PRIu64 "\ncopied %" PRIu64 "\nsize %" PRIu64 "\nobjects %u\n",
           b->out.pack_bytes, b->out.sent, b->out.copied, b->out.put.size, b->out.meta.objects);
    remote_end(b);
    storage_end(b);
}

/* --- the limit --- */

/* Inflates all entries of a pack in memory, and checks nothing but zlib's own checksum. */
static void limit_inflate(struct str pack)
{
    static unsigned char out[64 * 1024];
    struct inflate_state *s = xzalloc(sizeof(*s));
    const unsigned char *at = (const unsigned char *)pack.p + PACK_HEADER_LEN;
    const unsigned char *end = (const unsigned char *)pack.p + pack.len - 20;

    while (at < end) {
        unsigned type = *at >> 4 & 7;
        while (*at++ & 128)
            ;
        if (type == PACK_OFS_DELTA)
            while (*at++ & 128)
                ;
        isal_inflate_init(s);
        s->crc_flag = ISAL_ZLIB;
        s->next_in = (unsigned char *)(uintptr_t)at;
        s->avail_in = (uint32_t)size_min((size_t)(end - at), UINT32_MAX);
        do {
            s->next_out = out;
            s->avail_out = sizeof(out);
            if (isal_inflate(s) != ISAL_DECOMP_OK)
                exit(3);
        } while (s->block_state != ISAL_BLOCK_FINISH);
        at = s->next_in - s->read_in_length / 8;
    }
    free(s);
}

static void limit_write(const struct backup *b, struct str pack)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/limit", b->data);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    for (size_t at = 0; at < pack.len; at += PIECE) {
        struct str piece = str_head(str_skip(pack, at), PIECE);
        if (write(fd, piece.p, piece.len) != (ssize_t)piece.len)
            exit(3);
    }
    if (fdatasync(fd) < 0 || close(fd) < 0)
        exit(3);
}

static void backup_limit(struct backup *b)
{
    struct buf pack = BUF_INIT((size_t)4 << 30);
    struct digest_value sum;
    struct bundle_wants w;
    struct fetch_fault fault;
    struct reader *from = NULL;
    struct err err = {0};

    remote_begin(b);
    bundle_wants_init(&w, NULL, git_remote_refs(b->remote), GIT_WANTS_MAX);
    backup_ok(git_remote_fetch(b->remote, &w.fetch, &from, &fault, &err), &err);
    backup_ok(reader_read_all(from, &pack, &err), &err);
    reader_close(from);
    bundle_wants_release(&w);
    remote_end(b);
    digest_of(DIGEST_SHA1, buf_str(&pack), &sum);
    digest_of(DIGEST_MD5, buf_str(&pack), &sum);
    if (b->walk)
        limit_inflate(buf_str(&pack));
    limit_write(b, buf_str(&pack));
    printf("pack %zu\n", pack.len);
    buf_release(&pack);
}

int main(int argc, char **argv)
{
    struct backup b = {0};

    if (argc != 5)
        return 2;
    b.data = argv[2];
    b.url = argv[3];
    b.walk = strcmp(argv[4], "walk") == 0;
    if (strcmp(argv[1], "sync") == 0)
        backup_sync(&b);
    else
        backup_limit(&b);
    return 0;
}
