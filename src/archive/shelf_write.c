/* The shelf of an account: writing. Every change checks the lock of the account before its first
 * byte and before its last one, and is announced to replication. If the bucket has a default
 * encryption, the object is encrypted (docs/archive.md, H3 to H5). */
#include "archive/shelf_int.h"

#include "base/clock.h"
#include "coord/lock.h"

static int shelf_check_lock(const struct shelf *s, struct err *err)
{
    return s->lock && !lock_held(s->lock)
               ? err_set(err, ERR_BUSY, "the lock of the account " STR_FMT "/" STR_FMT " was lost",
                         STR_ARG(s->account.host), STR_ARG(s->account.login))
               : 0;
}

int shelf_may(const struct shelf *s, const struct object_place *p, struct err *err)
{
    int code = shelf_check_lock(s, err);

    return code < 0 ? code : object_place_may(p, err);
}

int shelf_open_put(struct object_place *p, struct shelf *s, struct arena *a, struct str key,
                   struct err *err)
{
    int code = shelf_check_lock(s, err);

    if (code == 0 && !s->claimed)
        code = shelf_look(s, true, err);
    struct satellite_site site = shelf_site(s, SHELF_TO);
    return code < 0 ? code : satellite_site_open_put(p, s->satellites, a, &site, key, err);
}

static int shelf_end_write(struct shelf *s, struct object_place *p, int code, struct err *err)
{
    satellites_note(s->satellites, s->satellite, code);
    return object_place_end(p, code, err);
}

/* --- bodies --- */

/* The body of a change. It remembers its own errors. So when the body fails, for example because
 * the git server closed the connection, the error is not blamed on the satellite. */
struct shelf_source {
    struct reader reader;
    struct reader *inner; /* borrowed */
    bool failed;
};

static struct reader *source_inner(struct reader *r)
{
    return ((struct shelf_source *)r)->inner;
}

static int source_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct shelf_source *s = (struct shelf_source *)r;
    int code = reader_read(s->inner, to, len, got, err);

    s->failed = s->failed || code < 0;
    return code;
}

static bool source_as_file(struct reader *r, struct file_range *out)
{
    return reader_as_file(source_inner(r), out);
}

static bool source_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    return reader_as_socket(source_inner(r), fd, len);
}

static bool source_as_bytes(struct reader *r, struct str *out)
{
    return reader_as_bytes(source_inner(r), out);
}

static void source_skip(struct reader *r, uint64_t n)
{
    reader_skip(source_inner(r), n);
}

static const struct reader_ops source_ops = {.read = source_read,
                                             .as_file = source_as_file,
                                             .as_socket = source_as_socket,
                                             .as_bytes = source_as_bytes,
                                             .skip = source_skip};

static struct shelf_source source_of(struct reader *body)
{
    return (struct shelf_source){.reader = {&source_ops}, .inner = body};
}

/* Ends a change whose body was `from`. */
static int shelf_end_body(struct shelf *s, struct object_place *p, const struct shelf_source *from,
                          int code, struct err *err)
{
    return from->failed ? object_place_end(p, code, err) : shelf_end_write(s, p, code, err);
}

/* --- putting --- */

/* Checks the conditions of a change against an object that is still on the side that the slot
 * leaves. The side that gets the change checks the conditions against its own object. */
static int shelf_judge_other_side(struct shelf *s, struct arena *a, struct str key,
                                  const struct object_conditions *c, struct err *err)
{
    struct object_info info;
    struct err ignored = {0};

    if (s->claimed || !shelf_has(s, SHELF_FROM) || (!c->if_match.len && !c->if_none_match.len))
        return 0;
    int code = shelf_side_head(s, a, SHELF_FROM, key, &info, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    if (shelf_side_head(s, a, SHELF_TO, key, &info, &ignored) != ERR_NOT_FOUND)
        return 0;
    return c->if_none_match.len
               ? err_code(err, ERR_PRECONDITION)
               : err_set(err, ERR_BUSY, "the account is moving to satellite " STR_FMT,
                         STR_ARG(s->satellite));
}

/* State of the check that runs before a change becomes visible. */
struct shelf_proof {
    const struct shelf *shelf;
    const struct object_place *place;
    const struct put_options *o;
};

static int shelf_prove(void *ctx, struct object_meta *meta, struct err *err)
{
    struct shelf_proof *p = ctx;
    int code = p->o->verify ? p->o->verify(p->o->ctx, meta, err) : 0;

    return code < 0 ? code : shelf_may(p->shelf, p->place, err);
}

/* Checks that an object has followed its account. It has not if the satellite from which it moves
 * was drained and left the table meanwhile, because nothing leads there any more. */
static int shelf_followed(struct shelf *s, const struct satellite_site *from, struct str key,
                          struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct object_info info;
    int code = shelf_side_head(s, &a, SHELF_TO, key, &info, err);

    arena_release(&a);
    return code == ERR_NOT_FOUND
               ? err_set(err, ERR_BUSY,
                         "the satellite " STR_FMT " was drained while the object " STR_FMT
                         " was written; try again",
                         STR_ARG(from->name), STR_ARG(str_head(key, 255)))
               : code;
}

/* Called after an object was put on the site `on`. If the caller has no lock, the slot may have
 * moved away from there between the look at the table and the put, and the move may have ended
 * before the object was visible. Then the object follows the others of its account. */
static int shelf_follow(struct shelf *s, const struct satellite_site *on, struct str key,
                        struct err *err)
{
    int code = s->claimed ? 0 : shelf_look(s, false, err);

    if (code < 0 || s->claimed || str_eq(s->satellite, on->name))
        return code;
    struct shelf moving = *s;
    moving.leaves = on->name;
    moving.leaves_user = on->user;
    moving.claimed = true; /* so that the sides stay the same */
    code = shelf_move_object(&moving, key, err);
    return code < 0 ? code : shelf_followed(s, on, key, err);
}

int shelf_put(struct shelf *s, struct arena *a, struct str key, struct reader *body, uint64_t size,
              const struct put_options *o, struct put_result *out, struct err *err)
{
    struct object_place p;
    struct shelf_proof proof = {s, &p, o};
    struct shelf_source from = source_of(body);
    struct put_options own = *o;
    struct str match = o->conditions.if_match;

    BUG_ON(match.len && match.p[0] != '"');
    int code = shelf_open_put(&p, s, a, key, err);
    if (code < 0)
        return code;
    own.meta.owner = s->user;
    own.verify = shelf_prove;
    own.ctx = &proof;
    own.seal = object_place_seal_key;
    own.seal_ctx = &p;
    code = shelf_judge_other_side(s, a, key, &o->conditions, err);
    if (code == 0)
        code = object_place_seal(&p, &own.meta, err);
    struct satellite_site on = shelf_site(s, SHELF_TO);
    if (code == 0)
        code = p.bucket->ops->put(p.bucket, a, p.key, &from.reader, size, &own, out, err);
    code = shelf_end_body(s, &p, &from, code, err);
    return code < 0 ? code : shelf_follow(s, &on, key, err);
}

struct http_header shelf_mtime(struct arena *a, int64_t ms)
{
    return (struct http_header){
        STR("x-amz-meta-mtime"),
        arena_fmt(a, "%lld.%03lld", (long long)(ms / 1000), (long long)(ms % 1000))};
}

int shelf_put_bytes(struct shelf *s, struct arena *a, struct str key, struct str bytes,
                    const struct object_conditions *c, const char *type, int64_t mtime_ms,
                    struct put_result *out, struct err *err)
{
    struct http_header headers[2] = {{STR("content-type"), str_z(type)}};
    struct put_options o = {.meta = {.headers = headers, .header_count = 1}};
    struct put_result ignored;
    struct str_reader body;

    if (mtime_ms)
        headers[o.meta.header_count++] = shelf_mtime(a, mtime_ms);
    if (c)
        o.conditions = *c;
    str_reader_init(&body, bytes);
    return shelf_put(s, a, key, &body.reader, bytes.len, &o, out ? out : &ignored, err);
}

/* --- copying --- */

/* Lets the satellite copy the object. ERR_UNSUPPORTED: the satellite cannot do that, so the caller
 * must read the object and put it. */
static int shelf_copy_there(struct shelf *s, struct arena *a, struct str to,
                            const struct object_info *source, const struct put_options *o,
                            struct err *err)
{
    struct put_options own = *o;
    struct put_result result;
    struct object_place p;
    int code = shelf_open_put(&p, s, a, to, err);

    if (code < 0)
        return code;
    own.meta.owner = s->user;
    code = object_place_seal(&p, &own.meta, err);
    if (code == 0 && (own.meta.encryption.len || source->meta.encryption.len))
        code = ERR_UNSUPPORTED; /* the encryption key of the source is bound to the object's name */
    if (code == 0)
        code = shelf_judge_other_side(s, a, to, &o->conditions, err);
    if (code == 0)
        code = shelf_may(s, &p, err);
    if (code == 0)
        code = p.bucket->ops->copy(p.bucket, a, p.key, p.bucket, source, &own, &result, err);
    return shelf_end_write(s, &p, code, err);
}

static int shelf_copy_through(struct shelf *s, struct arena *a, struct str to,
                              const struct object_info *source, const struct put_options *o,
                              struct err *err)
{
    struct shelf_body body = {0};
    struct put_result result;
    int code = shelf_get_if(s, a, source, NULL, &body, err);

    if (code == 0)
        code = shelf_put(s, a, to, body.body, body.len, o, &result, err);
    else if (code == ERR_PRECONDITION)
        code = err_set(err, ERR_CONFLICT, "the object " STR_FMT " has changed",
                       STR_ARG(str_head(source->key, 255)));
    shelf_body_close(&body);
    return code;
}

int shelf_copy(struct shelf *s, struct arena *a, struct str to, struct str from,
               const struct object_info *source, const struct put_options *o, struct err *err)
{
    struct object_info is = *source;
    struct put_options own = {
        .meta = {.headers = source->meta.headers, .header_count = source->meta.header_count}};
    int code = ERR_UNSUPPORTED;

    is.key = from;
    if (!shelf_has(s, SHELF_FROM))
        code = shelf_copy_there(s, a, to, &is, o ? o : &own, err);
    return code == ERR_UNSUPPORTED ? shelf_copy_through(s, a, to, &is, o ? o : &own, err) : code;
}

/* --- removing --- */

int shelf_side_remove(struct shelf *s, struct arena *a, enum shelf_side side, struct str key,
                      const struct object_conditions *c, struct err *err)
{
    struct satellite_site site = shelf_site(s, side);
    struct remove_options o = {0};
    struct remove_result result;
    struct object_place p;
    int code = shelf_check_lock(s, err);

    if (code < 0 || !shelf_has(s, side))
        return code;
    if (c)
        o.conditions = *c;
    code = satellite_site_open(&p, s->satellites, a, &site, key, PLACE_REMOVE, err);
    if (code < 0)
        return code == ERR_NO_BUCKET ? 0 : code;
    code = shelf_may(s, &p, err);
    if (code == 0)
        code = p.bucket->ops->remove(p.bucket, a, p.key, &o, &result, err);
    return shelf_end_write(s, &p, code, err);
}

int shelf_remove(struct shelf *s, struct arena *a, struct str key,
                 const struct object_conditions *c, struct err *err)
{
    int code = s->claimed ? 0 : shelf_look(s, false, err);

    if (code == 0)
        code = shelf_side_remove(s, a, SHELF_TO, key, c, err);
    if (code == 0)
        code = shelf_side_remove(s, a, SHELF_FROM, key, c, err);
    return code;
}

/* --- uploads --- */

/* Opens the place of an upload that is under way. Sending a part does not change an object, so it
 * is not announced to replication. */
static int upload_open(struct object_place *p, struct shelf *s, struct arena *a, struct str key,
                       struct err *err)
{
    struct satellite_site site = shelf_site(s, SHELF_TO);
    int code = shelf_check_lock(s, err);

    return code < 0 ? code : satellite_site_open(p, s->satellites, a, &site, key, PLACE_READ, err);
}

int shelf_upload_begin(struct shelf *s, struct arena *a, struct str key,
                       const struct object_meta *meta, struct upload_info *out, struct err *err)
{
    struct upload_info made = {.key = key, .meta = *meta};
    struct object_place p;
    int code = s->claimed ? 0 : shelf_look(s, true, err);

    if (code == 0)
        code = upload_open(&p, s, a, key, err);
    if (code == ERR_NO_BUCKET) {
        code = satellites_make_bucket(s->satellites, s->satellite, s->bucket, NULL, err);
        if (code == 0)
            code = upload_open(&p, s, a, key, err);
    }
    if (code < 0)
        return code;
    made.meta.owner = s->user;
    code = object_place_seal(&p, &made.meta, err);
    if (code == 0)
        code = p.bucket->ops->upload_begin(p.bucket, a, p.key, &made.meta, &made.id, err);
    code = shelf_end_write(s, &p, code, err);
    if (code == 0)
        *out = made;
    return code;
}

int shelf_upload_part(struct shelf *s, struct arena *a, const struct upload_info *upload,
                      uint32_t number, struct reader *body, uint64_t size, struct upload_part *out,
                      struct err *err)
{
    struct object_place p;
    struct put_options o = {.seal = object_place_seal_key, .seal_ctx = &p};
    struct shelf_source from = source_of(body);
    int code = upload_open(&p, s, a, upload->key, err);

    if (code < 0)
        return code;
    code =
        p.bucket->ops->upload_part(p.bucket, a, upload, number, &from.reader, size, &o, out, err);
    return shelf_end_body(s, &p, &from, code, err);
}

int shelf_upload_part_copy(struct shelf *s, struct arena *a, const struct upload_info *upload,
                           uint32_t number, const struct object_info *source,
                           const struct object_range *range, struct upload_part *out,
                           struct err *err)
{
    struct object_place p;

    if (shelf_has(s, SHELF_FROM)) /* the source may be on the other side */
        return err_code(err, ERR_UNSUPPORTED);
    int code = upload_open(&p, s, a, upload->key, err);
    if (code < 0)
        return code;
    code = p.bucket->ops->upload_part_copy(p.bucket, a, upload, number, p.bucket, source, range,
                                           out, err);
    return shelf_end_write(s, &p, code, err);
}

int shelf_upload_finish(struct shelf *s, struct arena *a, const struct upload_info *upload,
                        const struct upload_part *parts, size_t count,
                        const struct object_conditions *c, struct put_result *out, struct err *err)
{
    struct object_place p;
    struct put_options o = {0};
    int code = shelf_open_put(&p, s, a, upload->key, err);

    if (code < 0)
        return code;
    if (c) {
        o.conditions = *c;
        code = shelf_judge_other_side(s, a, upload->key, c, err);
    }
    if (code == 0)
        code = shelf_may(s, &p, err);
    if (code == 0)
        code = p.bucket->ops->upload_finish(p.bucket, a, upload, parts, count, &o, out, err);
    return shelf_end_write(s, &p, code, err);
}

int shelf_upload_abort(struct shelf *s, const struct upload_info *upload, struct err *err)
{
    struct satellite_site site = shelf_site(s, SHELF_TO);
    struct arena a = {0};
    struct object_place p;
    /* The lock is not checked: an upload may be aborted even after the lock was lost. */
    int code = satellite_site_open(&p, s->satellites, &a, &site, upload->key, PLACE_READ, err);

    if (code == 0) {
        code = p.bucket->ops->upload_abort(p.bucket, upload, err);
        code = shelf_end_write(s, &p, code == ERR_NOT_FOUND ? 0 : code, err);
    }
    arena_release(&a);
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* Whether the upload belongs to the account and began early enough. */
static bool upload_is_old(const struct shelf *s, const struct upload_info *u, int64_t before_ms)
{
    struct archive_object o;

    return u->started_ms <= before_ms && archive_key_read(&o, u->key) == 0 &&
           str_eq(o.login, s->account.login);
}

static int abort_side(struct shelf *s, struct arena *a, enum shelf_side side, int64_t before_ms,
                      size_t *aborted, struct err *err)
{
    struct str folder = archive_folder(&s->account, a);
    struct list_options o = {.prefix = str_n(folder.p, folder.len - 1), .limit = OBJECT_LIST_MAX};
    struct satellite_site site = shelf_site(s, side);
    struct upload_list page = {.more = true};
    struct object_place p;
    int code = satellite_site_open(&p, s->satellites, a, &site, o.prefix, PLACE_READ, err);

    if (code < 0)
        return code == ERR_NO_BUCKET ? 0 : code;
    while (code == 0 && page.more) {
        code = p.bucket->ops->list_uploads(p.bucket, a, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++) {
            if (!upload_is_old(s, &page.uploads[i], before_ms))
                continue;
            code = p.bucket->ops->upload_abort(p.bucket, &page.uploads[i], err);
            code = code == ERR_NOT_FOUND ? 0 : code;
            *aborted += code == 0;
        }
        o.after = page.next_key;
        o.after_version = page.next_id;
    }
    return shelf_end_write(s, &p, code, err);
}

int shelf_abort_uploads(struct shelf *s, uint64_t older_than_ms, size_t *aborted, struct err *err)
{
    int64_t before_ms = clock_wall_ms() - (int64_t)older_than_ms;
    struct arena a = {0};
    size_t count = 0;
    int code = shelf_check_lock(s, err);

    for (int side = 0; side < SHELF_SIDES && code == 0; side++)
        if (shelf_has(s, (enum shelf_side)side))
            code = abort_side(s, &a, (enum shelf_side)side, before_ms, &count, err);
    if (aborted)
        *aborted = count;
    arena_release(&a);
    return code;
}
