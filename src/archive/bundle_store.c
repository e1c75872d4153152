/* Puts a new bundle into its storage: in one put, or as an upload of parts.
 *
 * A storage that accepts bodies of any length gets one put. Other storages must know the length of
 * every request, and the length of a pack is not known before its end. For those, weir first
 * collects the first part in memory, or in a scratch file if many uploads run at once. If the
 * bundle ends within it, weir sends one put; otherwise this is the first part of an upload. An
 * upload is invisible until it is finished, and weir finishes it only after the whole body has
 * passed its checks. */
#include "archive/bundle_int.h"

#include "base/hex.h"
#include "os/file.h"
#include "os/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    /* Most bytes of a part that is collected before it is sent. A pack that is larger than the
     * allowed number of such parts cannot be stored. */
    STORE_PART_MAX = 64 * 1024 * 1024,
    STORE_COPIES_MAX = OBJECT_MAX_PARTS / 2,
};

/* --- metadata --- */

/* Adds the metadata that are known only when the body has ended. */
static void store_finish_meta(struct bundle_write *w)
{
    const struct bundle_body *b = &w->body;
    const struct bundle_pack *only = b->new ? b->new : b->old;

    hex_write(w->meta.pack_sum, b->trailer, b->trailer_len);
    if (w->meta.ref_deltas != REF_DELTAS_UNKNOWN || !only)
        return;
    if (b->new && b->new->objects && w->job->check.walk)
        w->meta.ref_deltas =
            only->result.by_type[PACK_REF_DELTA] ? REF_DELTAS_SOME : REF_DELTAS_NONE;
}

static int store_meta(struct bundle_write *w, struct object_meta *meta, struct err *err)
{
    struct http_header *headers = arena_array(w->job->arena, BUNDLE_HEADERS_MAX, sizeof(*headers));

    if (!headers)
        return err_code(err, ERR_NO_MEMORY);
    meta->headers = headers;
    meta->header_count = bundle_meta_headers(headers, w->job->arena, &w->meta);
    return arena_error(w->job->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Called when the whole body has passed its checks. The storage writes the metadata after this
 * call. */
static int store_verify(void *ctx, struct object_meta *meta, struct err *err)
{
    struct bundle_write *w = ctx;

    store_finish_meta(w);
    return store_meta(w, meta, err);
}

/* --- an upload of parts --- */

struct store_upload {
    struct bundle_write *w;
    struct bucket *bucket;
    struct upload_info info;
    struct upload_part *parts; /* array of OBJECT_MAX_PARTS */
    uint32_t count;
};

static int upload_open(struct store_upload *u, struct bundle_write *w, struct err *err)
{
    const struct bundle_job *job = w->job;
    struct object_meta meta = {0};

    *u = (struct store_upload){.w = w, .bucket = job->bucket, .info.key = job->key};
    int code = store_meta(w, &meta, err);
    if (code == 0)
        code =
            u->bucket->ops->upload_begin(u->bucket, job->arena, job->key, &meta, &u->info.id, err);
    if (code == 0)
        u->parts = xcalloc(OBJECT_MAX_PARTS, sizeof(*u->parts));
    return code;
}

static int upload_close(struct store_upload *u, int code, struct err *err)
{
    const struct bundle_job *job = u->w->job;
    struct put_options o = {.conditions = u->w->conditions};

    if (code == 0)
        code = u->bucket->ops->upload_finish(u->bucket, job->arena, &u->info, u->parts, u->count,
                                             &o, &u->w->out->put, err);
    if (code < 0 && u->info.id.len) /* if the abort fails too, the next sync aborts old uploads */
        u->bucket->ops->upload_abort(u->bucket, &u->info, NULL);
    free(u->parts);
    return code;
}

static int upload_room(const struct store_upload *u, struct err *err)
{
    return u->count < OBJECT_MAX_PARTS
               ? 0
               : err_set(err, ERR_TOO_LARGE, "the bundle needs more than %d parts",
                         OBJECT_MAX_PARTS);
}

/* Sends `size` bytes of the reader as the next part. UINT64_MAX: up to the reader's end. */
static int upload_send(struct store_upload *u, struct reader *from, uint64_t size, struct err *err)
{
    struct put_options plain = {0};
    int code = upload_room(u, err);

    if (code < 0)
        return code;
    code = u->bucket->ops->upload_part(u->bucket, u->w->job->arena, &u->info, u->count + 1, from,
                                       size, &plain, &u->parts[u->count], err);
    u->count += code == 0;
    return code;
}

/* Lets the storage copy a stretch of the old object. The same bytes are also read here, for the
 * hashes. */
static int upload_copy(struct store_upload *u, const struct object_info *old,
                       const struct bundle_stretch *s, struct err *err)
{
    struct object_range range = {RANGE_FROM_TO, s->first, s->first + s->len - 1};
    struct upload_part *part = &u->parts[u->count];
    unsigned char md5[MD5_LEN];
    char text[2 * MD5_LEN + 1];
    int code = upload_room(u, err);

    if (code == 0)
        code = bundle_body_pass(&u->w->body, s->len, md5, err);
    if (code < 0)
        return code;
    md5_hex(text, md5);
    *part = (struct upload_part){.etag = str_n(text, 2 * MD5_LEN)};
    code = u->bucket->ops->upload_part_copy(u->bucket, u->w->job->arena, &u->info, u->count + 1,
                                            u->bucket, old, &range, part, err);
    u->count += code == 0;
    u->w->out->copied += code == 0 ? s->len : 0;
    return code;
}

/* --- parts that are collected before they are sent --- */

/* Room for a part: memory, or a scratch file when the buffers of the process have no room left. */
struct store_room {
    const struct bundle_job *job;
    char *p; /* NULL: the part is in the file */
    int fd;
    size_t size, len; /* len: bytes of the part that is in the room */
    struct str_reader memory;
    struct file_reader file;
};

static int room_open(struct store_room *r, const struct bundle_job *job, size_t size,
                     struct err *err)
{
    *r = (struct store_room){.job = job, .fd = -1, .size = size};
    if (large_try(job->hold, size))
        r->p = xrealloc(NULL, size);
    else if (job->scratch)
        return scratch_file(&r->fd, job->scratch, err);
    else
        return err_code(err, ERR_NO_MEMORY);
    return 0;
}

static void room_close(struct store_room *r)
{
    if (r->p)
        large_give(r->job->hold, r->size);
    free(r->p);
    fd_close(&r->fd);
    r->p = NULL;
}

static int room_fill_file(struct store_room *r, struct reader *from, struct err *err)
{
    char piece[16 * 1024];
    size_t got = 1;
    int code = lseek(r->fd, 0, SEEK_SET) < 0 ? err_errno(err, errno, "a scratch file") : 0;

    while (code == 0 && got && r->len < r->size) {
        code = reader_read(from, piece, size_min(sizeof(piece), r->size - r->len), &got, err);
        if (code == 0)
            code = file_write_all(r->fd, piece, got, err);
        r->len += code == 0 ? got : 0;
    }
    file_reader_init(&r->file, (struct file_range){r->fd, 0, r->len}, false);
    return code;
}

/* Reads the next part. If r->len < r->size, the body has ended. */
static int room_fill(struct store_room *r, struct reader *from, struct err *err)
{
    size_t got = 1;
    int code = 0;

    r->len = 0;
    if (!r->p)
        return room_fill_file(r, from, err);
    for (; code == 0 && got && r->len < r->size; r->len += code == 0 ? got : 0)
        code = reader_read(from, r->p + r->len, r->size - r->len, &got, err);
    str_reader_init(&r->memory, str_n(r->p, r->len));
    return code;
}

static struct reader *room_reader(struct store_room *r)
{
    return r->p ? &r->memory.reader : &r->file.reader;
}

/* The size of the parts with which the largest pack fits into the allowed number of parts. */
static size_t upload_part_size(const struct store_upload *u)
{
    uint64_t part = u->w->sizes->part, most = u->w->job->check.limits.pack;

    while (part < STORE_PART_MAX && most / (OBJECT_MAX_PARTS - u->count) >= part)
        part *= 2;
    return (size_t)part;
}

/* Sends the rest of the body. */
static int upload_send_rest(struct store_upload *u, struct err *err)
{
    struct reader *from = &u->w->body.reader;
    struct store_room room;

    if (bucket_can(u->bucket, STORAGE_ANY_LENGTH))
        return upload_send(u, from, UINT64_MAX, err);
    int code = room_open(&room, u->w->job, upload_part_size(u), err);
    for (room.len = room.size; code == 0 && room.len == room.size;) {
        code = room_fill(&room, from, err);
        if (code == 0 && room.len)
            code = upload_send(u, room_reader(&room), room.len, err);
    }
    room_close(&room);
    return code;
}

/* --- whole bundles --- */

static int store_put(struct bundle_write *w, struct reader *from, uint64_t size, struct err *err)
{
    struct bucket *b = w->job->bucket;
    struct put_options o = {.conditions = w->conditions, .verify = store_verify, .ctx = w};
    int code = store_meta(w, &o.meta, err);

    return code < 0 ? code
                    : b->ops->put(b, w->job->arena, w->job->key, from, size, &o, &w->out->put, err);
}

/* Stores the body as an upload of parts. `lead` has the first bytes of the body, which were read
 * already; the function closes it. */
static int store_in_parts(struct bundle_write *w, struct store_room *lead, struct err *err)
{
    struct store_upload u;
    int code = upload_open(&u, w, err);

    if (code == 0)
        code = upload_send(&u, room_reader(lead), lead->len, err);
    room_close(lead);
    if (code == 0)
        code = upload_send_rest(&u, err);
    return upload_close(&u, code, err);
}

/* The first part has the header and the bytes that the next append sends again. If the header is
 * large, the first part has only its beginning. */
static int store_gathered(struct bundle_write *w, struct err *err)
{
    const struct bundle_sizes *z = w->sizes;
    uint64_t size = w->meta.pack_offset + PACK_HEADER_LEN + z->lead;
    struct store_room room;
    int code = room_open(&room, w->job, size < z->part * 2 ? size : z->part * 2, err);

    if (code == 0)
        code = room_fill(&room, &w->body.reader, err);
    if (code == 0 && room.len == room.size) {
        code = store_in_parts(w, &room, err);
    } else if (code == 0) {
        store_finish_meta(w);
        code = store_put(w, room_reader(&room), room.len, err);
    }
    room_close(&room);
    return code;
}

/* Fills the result once the storage has the bundle. */
static int store_result(struct bundle_write *w, int code)
{
    const struct bundle_body *b = &w->body;

    if (code < 0)
        return code;
    store_finish_meta(w);
    w->out->meta = w->meta;
    w->out->sent = b->given - w->out->copied;
    if (b->new) {
        w->out->pack_bytes = b->new->result.bytes;
        w->out->pack_objects = b->new->objects;
    }
    return 0;
}

int bundle_store(struct bundle_write *w, struct err *err)
{
    int code = bucket_can(w->job->bucket, STORAGE_ANY_LENGTH)
                   ? store_put(w, &w->body.reader, UINT64_MAX, err)
                   : store_gathered(w, err);

    return store_result(w, code);
}

int bundle_store_by_copies(struct bundle_write *w, const struct object_info *old,
                           const struct bundle_plan *plan, bool *cannot, struct err *err)
{
    struct limit_reader lead;
    struct store_upload u;

    *cannot = plan->copies.len == 0 || plan->copies.len > STORE_COPIES_MAX;
    if (*cannot)
        return err_code(err, ERR_UNSUPPORTED);
    int code = upload_open(&u, w, err);
    uint64_t size = w->meta.pack_offset + PACK_HEADER_LEN + plan->lead;
    limit_reader_init(&lead, &w->body.reader, size);
    if (code == 0)
        code = upload_send(&u, &lead.reader, size, err);
    for (size_t i = 0; i < plan->copies.len && code == 0; i++) {
        code = upload_copy(&u, old, &plan->copies.items[i], err);
        *cannot = code == ERR_UNSUPPORTED;
    }
    if (code == 0)
        code = upload_send_rest(&u, err);
    return store_result(w, upload_close(&u, code, err));
}
