/* Copies one object: compares both sides, then moves the bytes (copy/copy.h). */
#include "copy/copy_int.h"

#include "copy/same.h"

#define WHOLE_MAX ((uint64_t)5 * GIB)
#define PART_SIZE ((uint64_t)64 * MIB)
enum { PARALLEL = 4 };

/* --- bodies --- */

int copy_watch(const struct copying *w, uint64_t bytes, struct err *err)
{
    return w->o.watch ? w->o.watch(w->o.ctx, bytes, err) : 0;
}

static int source_body_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct copy_body *b = container_of(r, struct copy_body, reader);
    int code = 0;

    *got = 0;
    if (b->since >= COPY_STEP) {
        code = copy_watch(b->w, b->since, err);
        b->since = 0;
    }
    if (code == 0)
        code = reader_read(b->from, to, size_min(len, COPY_STEP), got, err);
    b->since += *got;
    return code;
}

/* Gives the body as a range of a file. Returns false after each COPY_STEP bytes, so that the next
 * bytes go through read(), which calls the watch function. */
static bool body_as_file(struct reader *r, struct file_range *out)
{
    struct copy_body *b = container_of(r, struct copy_body, reader);

    return b->since < COPY_STEP && reader_as_file(b->from, out);
}

static bool source_body_as_socket(struct reader *r, int *fd, uint64_t *len)
{
    struct copy_body *b = container_of(r, struct copy_body, reader);

    return b->since < COPY_STEP && reader_as_socket(b->from, fd, len);
}

static void source_body_skip(struct reader *r, uint64_t n)
{
    struct copy_body *b = container_of(r, struct copy_body, reader);

    reader_skip(b->from, n);
    b->since += n;
}

static void source_body_close(struct reader *r)
{
    reader_close(container_of(r, struct copy_body, reader)->from);
}

static const struct reader_ops body_ops = {
    .read = source_body_read,
    .as_file = body_as_file,
    .as_socket = source_body_as_socket,
    .skip = source_body_skip,
    .close = source_body_close,
};

int copy_open(struct copy_body *body, const struct copying *w, struct arena *a,
              const struct object_range *range, struct err *err)
{
    struct bucket *from = w->c->from;
    struct get_result got = {0};
    int code = from->ops->get(from, a, w->c->key, w->c->version, &w->source_is, range, &got, err);

    if (code == ERR_PRECONDITION || code == ERR_NOT_FOUND || code == ERR_RANGE)
        return err_set(err, ERR_CONFLICT, "the source changed while it was copied");
    if (code == 0 && got.unlock)
        code = w->sealed ? got.unlock(got.body, &w->source_key, err)
                         : err_set(err, ERR_CONFLICT, "the source was sealed meanwhile");
    if (code < 0) {
        reader_close(got.body);
        return code;
    }
    *body = (struct copy_body){.reader.ops = &body_ops, .from = got.body, .w = w};
    return 0;
}

/* --- looking at both sides --- */

static struct str etag_quoted(struct arena *a, struct str etag)
{
    return arena_fmt(a, "\"" STR_FMT "\"", STR_ARG(etag));
}

/* Stores the state of the source from which this copy is made. If the source changes after that,
 * the copy fails with ERR_CONFLICT. */
static void set_source(struct copying *w, const struct object_info *info)
{
    w->source = *info;
    if (bucket_can(w->c->from, STORAGE_KEEPS_META) && !info->meta.acl.len)
        w->source.is_private = true;
    w->source_is.if_match = etag_quoted(w->a, info->etag);
}

static int look_source(struct copying *w, struct err *err)
{
    struct bucket *from = w->c->from;
    struct get_result got;
    int code = from->ops->head(from, w->a, w->c->key, w->c->version, NULL, &got, err);

    if (code == 0)
        set_source(w, &got.info);
    return code;
}

static int look_destination(struct copying *w, struct err *err)
{
    struct bucket *to = w->c->to;
    int code = to->ops->head(to, w->a, w->c->key, STR_EMPTY, NULL, &w->there, err);

    w->found = code == 0;
    return code == ERR_NOT_FOUND ? 0 : code;
}

static void copying_init(struct copying *w, struct arena *a, const struct copy *c)
{
    *w = (struct copying){.c = c, .a = a};
    if (c->o)
        w->o = *c->o;
    w->o.whole_max = w->o.whole_max ? w->o.whole_max : WHOLE_MAX;
    w->o.part_size = w->o.part_size ? w->o.part_size : PART_SIZE;
    w->o.parallel_from = w->o.parallel_from ? w->o.parallel_from : PART_SIZE;
    w->o.parallel = w->o.parallel ? w->o.parallel : PARALLEL;
    w->bare_etags = c->to->storage && atomic_load(&c->to->storage->bare_etags);
}

/* --- moving the bytes --- */

int copy_written(int code, struct err *err)
{
    if (code == ERR_PRECONDITION || code == ERR_NOT_FOUND)
        return err_set(err, ERR_CONFLICT, "the destination changed while it was copied to");
    return code;
}

static int put_whole(struct copying *w, uint64_t *moved, struct err *err)
{
    struct bucket *to = w->c->to;
    struct copy_body body;
    struct put_result made;
    int code = copy_open(&body, w, w->a, NULL, err);

    if (code < 0)
        return code;
    code = to->ops->put(to, w->a, w->c->key, &body.reader, w->source.size, &w->put, &made, err);
    reader_close(&body.reader);
    if (code == 0)
        *moved = w->source.size;
    if (code == 0 && body.since) /* the copy is made; this call only reports the last bytes */
        code = copy_watch(w, body.since, err);
    return copy_written(code, err);
}

/* Lets the storage make the copy if both buckets are on it, so that no bytes move. Objects made of
 * parts are not copied in this way, because on some storages the copy would have another ETag.
 * ERR_UNSUPPORTED: the caller must copy the bytes. */
static int copy_within(struct copying *w, struct err *err)
{
    struct bucket *from = w->c->from, *to = w->c->to;
    struct put_result made;

    if (!from->storage || from->storage != to->storage || w->source.part_count || w->sealed)
        return ERR_UNSUPPORTED;
    return copy_written(to->ops->copy(to, w->a, w->c->key, from, &w->source, &w->put, &made, err),
                        err);
}

static int copy_move(struct copying *w, uint64_t *moved, struct err *err)
{
    struct copy_plan plan = {0};
    int code = copy_watch(w, 0, err);

    if (code == 0)
        code = copy_within(w, err);
    if (code != ERR_UNSUPPORTED)
        return code;
    code = copy_plan(&plan, w, err);
    if (code < 0)
        return code;
    return plan.count ? copy_by_parts(w, &plan, moved, err) : put_whole(w, moved, err);
}

/* Fills w->put with all metadata and conditions that the destination has not refused yet. */
static void copy_prepare(struct copying *w)
{
    const struct object_meta *from = &w->source.meta;
    struct object_meta *meta = &w->put.meta;
    struct object_conditions *c = &w->put.conditions;

    meta->headers = from->headers;
    meta->header_count = from->header_count;
    meta->tags = from->tags;
    meta->owner = w->c->user;
    if (from->checksum.type == CHECKSUM_FULL_OBJECT)
        meta->checksum = from->checksum;
    meta->storage_class = w->no_extras ? STR_EMPTY : from->storage_class;
    meta->retain_until_ms = w->no_extras ? 0 : from->retain_until_ms;
    meta->retain_compliance = !w->no_extras && from->retain_compliance;
    meta->legal_hold = !w->no_extras && from->legal_hold;
    *c = (struct object_conditions){0};
    if (!w->no_conditions && w->found)
        c->if_match = w->bare_etags ? w->there.info.etag : etag_quoted(w->a, w->there.info.etag);
    else if (!w->no_conditions)
        c->if_none_match = STR("*");
}

static bool has_extras(const struct object_meta *m)
{
    return m->storage_class.len || m->retain_until_ms || m->legal_hold;
}

/* Returns whether the destination said that its object has changed although it has not. Such a
 * destination understands conditions in another way (docs/replication.md, C3). */
static bool refused_for_nothing(struct copying *w)
{
    struct str seen = w->there.info.etag;

    return w->put.conditions.if_match.len && look_destination(w, NULL) == 0 && w->found &&
           str_eq(w->there.info.etag, seen);
}

/* Returns whether the destination has refused something that the copy can do without (conditions,
 * storage class and retention, own parts). If so, the next try leaves it out. */
static bool can_do_with_less(struct copying *w, int code, const struct err *err)
{
    if (code == ERR_CONFLICT && refused_for_nothing(w)) {
        w->no_conditions = w->bare_etags;
        w->bare_etags = true;
        return true;
    }
    if (code == ERR_INVALID && !w->no_own_parts && strcmp(err->text, "EntityTooSmall") == 0) {
        w->no_own_parts = true;
        return true;
    }
    if (code == ERR_UNSUPPORTED && !w->no_conditions) {
        w->no_conditions = true;
        return true;
    }
    if ((code == ERR_UNSUPPORTED || code == ERR_INVALID) && !w->no_extras &&
        has_extras(&w->source.meta)) {
        log_warn(w->o.log, "replica.class_or_lock_left_out", log_s("bucket", w->c->to->name),
                 log_s("key", w->c->key), log_z("error", err->text));
        w->no_extras = true;
        return true;
    }
    return false;
}

/* Leaves out retention and legal hold if the destination has no object lock. */
static int copy_check_lock(struct copying *w, struct err *err)
{
    struct object_meta *m = &w->source.meta;
    bool can = true;
    int code = 0;

    if (m->retain_until_ms || m->legal_hold)
        code = copy_can_lock(w->c->to, w->a, &can, err);
    if (code < 0 || can)
        return code;
    log_warn(w->o.log, "replica.lock_left_out", log_s("bucket", w->c->to->name),
             log_s("key", w->c->key));
    m->retain_until_ms = 0;
    m->legal_hold = false;
    return 0;
}

static int copy_transfer(struct copying *w, uint64_t *moved, struct err *err)
{
    struct err own = {0}, *e = err ? err : &own;
    int code = copy_check_lock(w, e);

    if (code < 0)
        return code;
    do {
        copy_prepare(w);
        code = copy_move(w, moved, e);
    } while (code < 0 && can_do_with_less(w, code, e));
    if (code == 0 && w->bare_etags && !w->no_conditions && w->found && w->c->to->storage)
        atomic_store(&w->c->to->storage->bare_etags, true);
    return code;
}

/* --- copying an object that the destination does not have --- */

/* Returns whether one GET and one PUT are enough for the copy. */
static bool source_is_plain(const struct copying *w, const struct get_result *got)
{
    const struct object_info *i = &got->info;

    return !i->part_count && i->size <= w->o.whole_max && !i->meta.encryption.len && !got->unlock &&
           !i->meta.retain_until_ms && !i->meta.legal_hold;
}

static int put_absent(struct copying *w, struct reader *from, struct err *err)
{
    struct copy_body body = {.reader.ops = &body_ops, .from = from, .w = w};
    struct bucket *to = w->c->to;
    struct put_result made;

    copy_prepare(w);
    int code = to->ops->put(to, w->a, w->c->key, &body.reader, w->source.size, &w->put, &made, err);
    if (code == 0 && body.since) /* the copy is made; this call only reports the last bytes */
        code = copy_watch(w, body.since, err);
    return code;
}

/* Copies by one request to each side. *done false: nothing was copied, and the caller must first
 * read the state of the destination. That is the case after any error of the destination. */
static int bring_absent(struct copying *w, struct copy_result *out, bool *done, struct err *err)
{
    struct bucket *from = w->c->from;
    struct get_result got = {0};
    int code = copy_watch(w, 0, err);

    *done = false;
    if (code < 0 || (from->storage && from->storage == w->c->to->storage))
        return code;
    code = from->ops->get(from, w->a, w->c->key, w->c->version, NULL, NULL, &got, err);
    if (code == 0 && source_is_plain(w, &got)) {
        struct err refusal = {0};
        set_source(w, &got.info);
        *done = put_absent(w, got.body, &refusal) == 0;
    }
    reader_close(got.body);
    if (*done)
        *out = (struct copy_result){COPY_MADE, w->source, .bytes = w->source.size};
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int copy_bring(struct copy_result *out, struct arena *a, const struct copy *c, bool compare,
                      struct err *err)
{
    struct copying w;
    bool done = false;
    int code = 0;

    *out = (struct copy_result){.outcome = COPY_ABSENT};
    copying_init(&w, a, c);
    if (c->absent && compare)
        code = bring_absent(&w, out, &done, err);
    if (code < 0 || done)
        return code;
    code = look_source(&w, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    out->source = w.source;
    code = look_destination(&w, err);
    if (code < 0)
        return code;
    out->outcome = COPY_SAME;
    out->other_tags = !same_tags(w.source.meta.tags, w.there.info.meta.tags);
    if (compare && w.found && same_object(&w.source, &w.there.info))
        return 0;
    out->outcome = COPY_MADE;
    code = copy_seal_prepare(&w, err);
    if (code == 0)
        code = copy_transfer(&w, &out->bytes, err);
    copy_seal_release(&w);
    return code < 0 ? code : arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int copy_object(struct copy_result *out, struct arena *a, const struct copy *c, struct err *err)
{
    return copy_bring(out, a, c, true, err);
}

int copy_anew(struct copy_result *out, struct arena *a, const struct copy *c, struct err *err)
{
    return copy_bring(out, a, c, false, err);
}

/* --- removing --- */

static int remove_there(struct copying *w, struct err *err)
{
    struct bucket *to = w->c->to;
    struct remove_options o = {.conditions.if_match = etag_quoted(w->a, w->there.info.etag)};
    struct remove_result removed;
    int code = copy_watch(w, 0, err);

    if (code == 0)
        code = to->ops->remove(to, w->a, w->c->key, &o, &removed, err);
    if (code != ERR_UNSUPPORTED)
        return copy_written(code, err);
    o.conditions = (struct object_conditions){0};
    return to->ops->remove(to, w->a, w->c->key, &o, &removed, err);
}

int copy_removal(struct copy_result *out, struct arena *a, const struct copy *c, struct err *err)
{
    struct copying w;
    int code;

    *out = (struct copy_result){.outcome = COPY_SAME};
    copying_init(&w, a, c);
    code = look_source(&w, err);
    if (code == 0)
        out->source = w.source;
    if (code != ERR_NOT_FOUND)
        return code;
    code = look_destination(&w, err);
    if (code == ERR_NO_BUCKET)
        code = 0;
    out->outcome = COPY_ABSENT;
    if (code == 0 && w.found) {
        code = remove_there(&w, err);
        out->outcome = COPY_REMOVED;
    }
    return code;
}
