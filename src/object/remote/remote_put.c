/* Writing objects: the body is streamed, with its end held back until the body is verified
 * (docs/remote-storage.md, M4).
 *
 * A body of known size is sent as it is read, except its last bytes. They are sent only when the
 * source has ended at the announced length and verify() has accepted the body. If the body is
 * refused, the connection is closed in the middle of the request, and no peer stores half a body.
 * Short bodies are read before they are sent. Bodies of unknown size, and those over S3's limit of
 * a PUT, are sent as parts of an upload, which nobody sees before it is finished. */
#include "object/held.h"
#include "object/remote/remote_int.h"

#include <stdlib.h>

enum {
    TAIL = 1024 /* this many bytes at a body's end are never spliced */
};

/* The arguments of one call of remote_put(). */
struct job {
    struct remote_bucket *b;
    struct arena *a;
    struct str key;
    struct reader *body;
    const struct put_options *o;
    struct put_result *out;
};

/* The state of the check that is made before the last bytes of a body are sent. */
struct proof {
    struct reader *from;
    const struct put_options *o;
    struct object_meta *meta;
};

/* --- holding back the end of a body --- */

static int body_has_ended(struct reader *from, struct err *err)
{
    size_t got = 0;
    char byte;
    int code = reader_read(from, &byte, 1, &got, err);

    if (code == 0 && got)
        code = err_set(err, ERR_INVALID, "the body is longer than announced");
    return code;
}

static int body_prove(void *ctx, struct err *err)
{
    struct proof *p = ctx;
    int code = body_has_ended(p->from, err);

    return code == 0 && p->o->verify ? p->o->verify(p->o->ctx, p->meta, err) : code;
}

static int send_held(struct ask *q, struct reader *body, uint64_t size, const struct put_options *o,
                     struct object_meta *meta, struct err *err)
{
    struct proof proof = {body, o, meta};
    struct held_reader held;

    held_reader_init(&held, body, size);
    held.prove = body_prove;
    held.ctx = &proof;
    held.unspliced = TAIL;
    held.any_file = !o->verify;
    ask_checksum(q, &meta->checksum);
    ask_body(q, &held.reader, size);
    int code = ask_send(q, err);
    if (code == 0 && held.left)
        code = err_set(err, ERR_PEER, "the storage answers before it has the body");
    return code;
}

/* --- sending short bodies --- */

static int send_gathered(struct ask *q, struct reader *body, size_t size,
                         const struct put_options *o, struct object_meta *meta, struct err *err)
{
    char *bytes = arena_alloc(&q->a, size + 1);
    int code = bytes ? reader_read_full(body, bytes, size, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = body_prove(&(struct proof){body, o, meta}, err);
    if (code < 0)
        return code;
    ask_checksum(q, &meta->checksum);
    ask_bytes(q, str_n(bytes, size));
    return ask_send(q, err);
}

int remote_send_body(struct ask *q, struct reader *body, uint64_t size, const struct put_options *o,
                     struct object_meta *meta, struct err *err)
{
    return size <= REMOTE_GATHER_MAX ? send_gathered(q, body, (size_t)size, o, meta, err)
                                     : send_held(q, body, size, o, meta, err);
}

/* --- putting an object in one request --- */

static void ask_put(struct ask *q, const struct job *j)
{
    const struct object_conditions *c = &j->o->conditions;

    ask_init_bucket(q, j->b, "PUT", j->key);
    ask_meta(q, &j->o->meta);
    ask_conditions(q, c);
    /* The first try may have made the object, and then the condition would fail when the request is
     * repeated. */
    q->request.idempotent = !c->if_match.len && !c->if_none_match.len;
}

static int read_put(const struct job *j, const struct ask *q, uint64_t size, struct err *err)
{
    struct arena *a = j->a;

    *j->out = (struct put_result){.etag = remote_etag(a, ask_answer(q, "ETag")),
                                  .version = arena_str(a, ask_answer(q, "x-amz-version-id")),
                                  .size = size};
    if (j->out->etag.len == 0)
        return err_set(err, ERR_PEER, "the storage answers without an ETag");
    return arena_error(a);
}

static int put_known(const struct job *j, uint64_t size, struct err *err)
{
    struct object_meta meta = j->o->meta;
    struct ask q;

    ask_put(&q, j);
    int code = remote_send_body(&q, j->body, size, j->o, &meta, err);
    if (code == 0)
        code = read_put(j, &q, size, err);
    ask_release(&q);
    return code;
}

/* --- putting an object as an upload of parts --- */

/* An upload that is under way. Its parts are sent one after another. */
struct parts {
    const struct job *j;
    struct upload_info upload;
    struct upload_part *list; /* array of OBJECT_MAX_PARTS */
    size_t count;
};

static int parts_add(struct parts *p, struct reader *body, uint64_t size, struct err *err)
{
    struct put_options plain = {0};

    if (p->count == OBJECT_MAX_PARTS)
        return err_set(err, ERR_TOO_LARGE, "the body is too large for %d parts", OBJECT_MAX_PARTS);
    int code = remote_upload_part(&p->j->b->bucket, p->j->a, &p->upload, (uint32_t)p->count + 1,
                                  body, size, &plain, &p->list[p->count], err);
    p->count += code == 0;
    return code;
}

/* Sends the parts of a body of known size. Each part is sent as it is read. */
static int add_known(struct parts *p, uint64_t size, struct err *err)
{
    struct reader *body = p->j->body;
    uint64_t part = p->j->b->remote->part_size;
    int code = 0;

    while (size / part >= OBJECT_MAX_PARTS)
        part *= 2;
    while (code == 0 && size) {
        struct limit_reader piece;
        uint64_t len = size < part ? size : part;
        limit_reader_init(&piece, body, len);
        code = parts_add(p, &piece.reader, len, err);
        size -= len;
    }
    return code < 0 ? code : body_has_ended(body, err);
}

/* Reads a piece into `room`. *len < REMOTE_PIECE: the piece is the last. */
static int body_read_piece(struct reader *body, char *room, size_t *len, struct err *err)
{
    size_t got = 1;
    int code = 0;

    for (*len = 0; code == 0 && got && *len < REMOTE_PIECE; *len += got)
        code = reader_read(body, room + *len, REMOTE_PIECE - *len, &got, err);
    return code;
}

/* Sends the parts of a body of unknown size. A part must announce its length, so each part is first
 * read into memory. The first part is in `room` already. */
static int add_unknown(struct parts *p, char *room, struct err *err)
{
    size_t len = REMOTE_PIECE;
    int code = 0;

    while (code == 0 && len) {
        struct str_reader piece;
        bool last = len < REMOTE_PIECE;
        str_reader_init(&piece, str_n(room, len));
        code = parts_add(p, &piece.reader, len, err);
        if (code < 0 || last)
            return code;
        code = body_read_piece(p->j->body, room, &len, err);
    }
    return code;
}

/* Puts the object as an upload of parts. `room` holds the first piece of a body of unknown size; it
 * is NULL for a body of known size. */
static int put_in_parts(const struct job *j, uint64_t size, char *room, struct err *err)
{
    struct bucket *b = &j->b->bucket;
    struct parts p = {.j = j, .upload.key = j->key};
    struct object_meta meta = j->o->meta;
    struct put_options finish = {.conditions = j->o->conditions};

    meta.checksum = (struct object_checksum){0}; /* each part has a checksum of its own */
    int code = remote_upload_begin(b, j->a, j->key, &meta, &p.upload.id, err);
    if (code < 0)
        return code;
    p.list = xcalloc(OBJECT_MAX_PARTS, sizeof(*p.list));
    code = room ? add_unknown(&p, room, err) : add_known(&p, size, err);
    if (code == 0 && j->o->verify)
        code = j->o->verify(j->o->ctx, &meta, err);
    if (code == 0)
        code = remote_upload_finish(b, j->a, &p.upload, p.list, p.count, &finish, j->out, err);
    if (code < 0) /* if the abort fails too, the peer's own rules for old uploads clean up */
        remote_upload_abort(b, &p.upload, NULL);
    free(p.list);
    return code;
}

static int put_gathered(const struct job *j, struct str bytes, struct err *err)
{
    struct object_meta meta = j->o->meta;
    struct ask q;
    int code = j->o->verify ? j->o->verify(j->o->ctx, &meta, err) : 0;

    if (code < 0)
        return code;
    ask_put(&q, j);
    ask_checksum(&q, &meta.checksum);
    ask_bytes(&q, bytes);
    code = ask_send(&q, err);
    if (code == 0)
        code = read_put(j, &q, bytes.len, err);
    ask_release(&q);
    return code;
}

static int put_unknown(const struct job *j, struct err *err)
{
    char *room = xrealloc(NULL, REMOTE_PIECE);
    size_t len = 0;
    int code = body_read_piece(j->body, room, &len, err);

    if (code == 0)
        code = len < REMOTE_PIECE ? put_gathered(j, str_n(room, len), err)
                                  : put_in_parts(j, UINT64_MAX, room, err);
    free(room);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int remote_put(struct bucket *bucket, struct arena *a, struct str key, struct reader *body,
               uint64_t size, const struct put_options *o, struct put_result *out, struct err *err)
{
    struct job j = {
        .b = remote_bucket_of(bucket), .a = a, .key = key, .body = body, .o = o, .out = out};
    int code = remote_key_check(key, err);

    if (code == 0)
        code = remote_meta_check(&o->meta, err);
    if (code < 0)
        return code;
    if (size == UINT64_MAX)
        return put_unknown(&j, err);
    return size > j.b->remote->put_max ? put_in_parts(&j, size, NULL, err)
                                       : put_known(&j, size, err);
}
