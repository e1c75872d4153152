/* Blobs: the files of a local storage. A file is made before its row; L7 and L8 in
 * docs/local-storage.md say why no file is lost. */
#include "object/local/local_int.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SPACE_EVERY = 64,   /* blocks between two checks of the free space */
    WRITEOUT_EVERY = 8, /* blocks after which the kernel is asked to write them to disk */
    BLOCKS = HASH_PIECES + 1,
};

static const uint64_t COUNTER_MASK = ((uint64_t)1 << COUNTER_BITS) - 1;
static const uint64_t BYTES_BIT = (uint64_t)1 << (COUNTER_BITS - 1);

/* A body that is being written to a row or a file. A large body uses several blocks in turn: while
 * one block is read and written, the hasher works on the earlier blocks (object/hasher.h, H2). */
struct writing {
    struct local *l;
    int fd;
    struct buf path;
    bool wants_md5;
    bool streams; /* `md5` is open: the body is longer than a block */
    struct hash_stream md5;
    struct buf blocks[BLOCKS];
    struct buf *block; /* bytes that were read and not yet written */
    /* Bytes to read at once: a whole block, or one byte more than a small body of known size
     * has. */
    size_t room;
    uint64_t count; /* number of blocks written */
};

static uint32_t epoch_of(uint64_t id)
{
    return (uint32_t)(id >> COUNTER_BITS);
}

static uint64_t blob_folder_number(uint64_t id)
{
    return (id & COUNTER_MASK) >> BLOB_FOLDER_BITS;
}

static void blob_folder_path(struct buf *out, const struct local *l, uint64_t id)
{
    buf_appendf(out, "%s/blobs/%06x/%07llx", l->folder, epoch_of(id),
                (unsigned long long)blob_folder_number(id));
}

void blob_path(struct buf *out, const struct local *l, uint64_t id)
{
    blob_folder_path(out, l, id);
    buf_appendf(out, "/%016llx", (unsigned long long)id);
}

uint64_t blob_bytes_id(struct local *l)
{
    return (uint64_t)l->epoch << COUNTER_BITS | BYTES_BIT | atomic_fetch_add(&l->next_bytes, 1);
}

uint64_t blob_checksum(uint64_t sum, struct str block)
{
    return hash_xxh3(block, sum);
}

int blob_space(struct local *l, uint64_t need, struct err *err)
{
    uint64_t free_bytes, total;
    int code = file_free_space(l->folder, &free_bytes, &total, err);

    if (code < 0)
        return code;
    if (free_bytes < l->reserve_bytes || free_bytes - l->reserve_bytes < need)
        return err_set(err, ERR_NO_SPACE, "%s has %llu bytes free, of which %llu are kept",
                       l->folder, (unsigned long long)free_bytes,
                       (unsigned long long)l->reserve_bytes);
    return 0;
}

static int sync_parent(const struct buf *path, struct err *err)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path->p, '/');
    size_t len = (size_t)(slash - path->p);

    BUG_ON(len >= sizeof(parent));
    memcpy(parent, path->p, len);
    parent[len] = '\0';
    return dir_sync(parent, err);
}

/* Makes the blob's folder durable before a row can name a file in it (docs/local-storage.md, L7).
 * No lock is needed: a thread that does not know whether the folder is durable syncs the folder
 * itself. */
static int blob_folder_make(struct local *l, uint64_t id, struct err *err)
{
    uint64_t synced = atomic_load(&l->blob_folders_synced), folder = blob_folder_number(id);
    struct buf path = BUF_INIT(PATH_MAX);
    int code;

    if (folder < synced)
        return 0;
    blob_folder_path(&path, l, id);
    code = buf_error(&path) < 0 ? err_set(err, ERR_TOO_LARGE, "%s is too long a path", l->folder)
                                : dir_make(path.p, 0700, err);
    if (code == 0)
        code = sync_parent(&path, err);
    if (code == 0 && synced == 0) {
        buf_reset(&path);
        buf_appendf(&path, "%s/blobs", l->folder);
        code = dir_sync(path.p, err);
    }
    /* Folders may be made out of order, so the mark moves only past the folder that this thread
     * made durable. */
    if (code == 0 && folder == synced)
        atomic_compare_exchange_strong(&l->blob_folders_synced, &synced, folder + 1);
    buf_release(&path);
    return code;
}

static int writing_begin(struct writing *w, uint64_t *id, struct err *err)
{
    struct local *l = w->l;
    uint64_t counter = atomic_fetch_add(&l->next_file, 1);

    BUG_ON(counter >= BYTES_BIT);
    uint64_t made = (uint64_t)l->epoch << COUNTER_BITS | counter;
    int code = blob_folder_make(l, made, err);
    if (code < 0)
        return code;
    blob_path(&w->path, l, made);
    w->fd = open(w->path.p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->fd < 0)
        return err_errno(err, errno, "creating %s", w->path.p);
    *id = made;
    return 0;
}

/* Reports an error of the disk itself (ERR_IO) as trouble of the storage (local_trouble()); other
 * errors are not reported. Returns `code`. */
static int noted(struct local *l, int code, const struct err *err)
{
    if (code == ERR_IO)
        trouble_note(l, err);
    return code;
}

static int write_block(struct writing *w, struct blob *out, struct str block, struct err *err)
{
    int code = 0;

    if (w->streams)
        hash_add(&w->md5, block);
    if (w->count % SPACE_EVERY == SPACE_EVERY - 1)
        code = blob_space(w->l, 0, err);
    if (code == 0)
        code = noted(w->l, file_write_all(w->fd, block.p, block.len, err), err);
    if (code < 0)
        return code;
    out->checksum = blob_checksum(out->checksum, block);
    out->size += block.len;
    if (++w->count % WRITEOUT_EVERY == 0) /* a hint; the sync at the end makes the file durable */
        (void)sync_file_range(w->fd, (off_t)(out->size - (uint64_t)WRITEOUT_EVERY * BLOB_BLOCK),
                              (off_t)WRITEOUT_EVERY * BLOB_BLOCK, SYNC_FILE_RANGE_WRITE);
    return 0;
}

/* Reads up to `room` bytes into the next block. */
static int fill_block(struct writing *w, struct reader *body, struct err *err)
{
    struct buf *block = &w->blocks[w->streams ? w->count % BLOCKS : 0];
    size_t got = 1;
    int code = 0;

    w->block = block;
    buf_reset(block);
    char *to = buf_reserve(block, w->room);
    if (!to)
        return err_code(err, ERR_NO_MEMORY);
    while (code == 0 && got > 0 && block->len < w->room) {
        code = reader_read(body, to + block->len, w->room - block->len, &got, err);
        if (code == 0)
            buf_commit(block, got);
    }
    return code;
}

static int size_check(const struct blob_source *from, uint64_t got, bool ended, struct err *err)
{
    if (from->size == UINT64_MAX || (got <= from->size && !(ended && got < from->size)))
        return 0;
    if (got > from->size)
        return err_set(err, ERR_INVALID, "the body is longer than it was said to be");
    return err_set(err, ERR_CLOSED, "the body ended %llu bytes early",
                   (unsigned long long)(from->size - got));
}

static void md5_of_bytes(struct str bytes, struct blob *out)
{
    struct md5 md5;

    md5_init(&md5);
    md5_update(&md5, bytes);
    md5_final(&md5, out->md5);
    md5_hex(out->etag, out->md5);
}

/* Writes blocks until the body's end. The first block has been read already. */
static int write_blocks(struct writing *w, const struct blob_source *from, struct blob *out,
                        struct err *err)
{
    bool ended = false;
    int code = 0;

    while (code == 0 && !ended) {
        ended = w->block->len < w->room;
        code = size_check(from, out->size + w->block->len, ended, err);
        if (code == 0 && w->block->len > 0)
            code = write_block(w, out, buf_str(w->block), err);
        if (code == 0 && !ended)
            code = fill_block(w, from->body, err);
    }
    return code;
}

/* Writes the body to a new, durable file. The first block has been read already. */
static int blob_write_file(struct writing *w, const struct blob_source *from, struct blob *out,
                           struct err *err)
{
    bool one_block = w->block->len < w->room;
    int code = noted(w->l, writing_begin(w, &out->id, err), err);

    if (code == 0 && w->wants_md5 && one_block)
        md5_of_bytes(buf_str(w->block), out);
    w->streams = code == 0 && w->wants_md5 && !one_block;
    if (w->streams)
        hash_begin(&w->md5, w->l->hasher);
    if (code == 0)
        code = write_blocks(w, from, out, err);
    if (code == 0 && !from->later)
        code = noted(w->l, file_sync(w->fd, err), err);
    if (w->streams) {
        hash_end(&w->md5, out->md5);
        md5_hex(out->etag, out->md5);
    }
    if (code == 0 && !from->later)
        code = noted(w->l, sync_parent(&w->path, err), err);
    if (code == 0 && from->later) {
        (void)sync_file_range(w->fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* a hint */
        out->fd = w->fd;
        w->fd = -1;
    }
    return code;
}

int blob_sync_file(struct local *l, struct blob *blob, struct err *err)
{
    int code = noted(l, file_sync(blob->fd, err), err);

    fd_close(&blob->fd);
    return code;
}

int blob_sync_folder(struct local *l, uint64_t id, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);

    blob_path(&path, l, id);
    int code = noted(l, sync_parent(&path, err), err);
    buf_release(&path);
    return code;
}

bool blob_is_beside(uint64_t id, uint64_t other)
{
    return epoch_of(id) == epoch_of(other) && blob_folder_number(id) == blob_folder_number(other);
}

/* Moves the block with a small body to *small, which the caller will write as a row. All of the
 * body has been read. */
static int keep_small(struct writing *w, const struct blob_source *from, struct blob *out,
                      struct buf *small, struct err *err)
{
    struct str body = buf_str(w->block);
    int code = size_check(from, body.len, true, err);

    if (code < 0)
        return code;
    if (body.len)
        out->bytes_id = blob_bytes_id(w->l);
    if (w->wants_md5)
        md5_of_bytes(body, out);
    out->size = body.len;
    out->checksum = hash_xxh3(body, 0);
    *small = *w->block;
    *w->block = (struct buf){0};
    return 0;
}

int blob_write(struct local *l, const struct blob_source *from, struct blob *out, struct buf *small,
               struct err *err)
{
    struct writing w = {
        .l = l, .fd = -1, .path = BUF_INIT(PATH_MAX), .wants_md5 = from->md5, .room = BLOB_BLOCK};
    int code = blob_space(l, from->size == UINT64_MAX ? 0 : from->size, err);

    *out = (struct blob){.fd = -1};
    if (code < 0)
        return code;
    BUG_ON(from->inline_max >= BLOB_BLOCK);
    if (from->size <= from->inline_max && from->inline_max > 0)
        w.room = from->size + 1; /* one more byte shows a body that is too long */
    code = fill_block(&w, from->body, err);
    if (code == 0 && w.room <= from->inline_max + 1 && w.block->len == w.room)
        code = size_check(from, w.block->len, true, err);
    else if (code == 0 && w.block->len <= from->inline_max && from->inline_max > 0)
        code = keep_small(&w, from, out, small, err);
    else if (code == 0)
        code = blob_write_file(&w, from, out, err);
    fd_close(&w.fd);
    if (code < 0 && out->id)
        blob_discard(l, out->id);
    for (int i = 0; i < BLOCKS; i++)
        buf_release(&w.blocks[i]);
    buf_release(&w.path);
    return code;
}

int blob_take(struct local *l, const struct blob_source *from, const struct blob_target *to,
              struct blob *out, struct buf *small, struct err *err)
{
    bool seals = to->meta->encryption.len > 0;
    int code =
        seals ? blob_seal(l, from, to, out, small, err) : blob_write(l, from, out, small, err);

    if (!seals)
        out->plain = out->size;
    if (code == 0 && to->o->md5)
        memcpy(to->o->md5, out->md5, MD5_LEN);
    return code;
}

/* Removes the file and syncs the removal. Otherwise a loss of power could bring the file back after
 * its epoch was closed (docs/local-storage.md, L8). */
void blob_discard(struct local *l, uint64_t id)
{
    struct buf path = BUF_INIT(PATH_MAX);

    blob_path(&path, l, id);
    if ((unlink(path.p) < 0 && errno != ENOENT) || sync_parent(&path, NULL) < 0)
        atomic_store(&l->leaked, true);
    buf_release(&path);
}

void blob_unused(struct local *l, const struct row_change *c, uint64_t id)
{
    if (id == 0)
        return;
    if (!c->tx || c->refused) {
        blob_discard(l, id);
        return;
    }
    mutex_lock(&l->collector.lock);
    vec_push(&l->collector.doubtful, id);
    mutex_unlock(&l->collector.lock);
    collector_ask(l);
}

int blob_open(int *fd, const struct local *l, uint64_t id, struct err *err)
{
    struct buf path = BUF_INIT(PATH_MAX);
    int code = 0;

    blob_path(&path, l, id);
    *fd = open(path.p, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        code = err_errno(err, errno, "opening %s", path.p);
    buf_release(&path);
    return code;
}

int blob_digest(struct reader *from, struct digests *d, struct err *err)
{
    char *block = xzalloc(BLOB_BLOCK);
    size_t got = 1;
    int code = 0;

    while (code == 0 && got > 0) {
        code = reader_read(from, block, BLOB_BLOCK, &got, err);
        if (code == 0)
            digests_update(d, str_n(block, got));
    }
    free(block);
    return code;
}
