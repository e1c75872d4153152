/* Copies an object by parts: several parts at a time, continued where an earlier try ended.
 *
 * Together with the upload, weir remembers which object the upload is for: the source's ETag, and a
 * hash of the meta. If these differ from the present source, the upload is aborted. All parts of a
 * remembered upload were read under If-Match with the ETag, so a part of the right number and size
 * has the right bytes. */
#include "copy/copy_int.h"

#include "base/hash.h"
#include "os/thread.h"

#include <stdlib.h>

enum { THREADS_MAX = 16, STACK_BYTES = 512 * 1024, LIST_PAGE = 1000 };

struct parts {
    struct copying *w;
    const struct copy_plan *plan;
    struct upload_info upload;
    struct upload_part *done; /* one entry for each part of the plan; number 0: not sent yet */

    struct mutex lock; /* lock class "copy"; guards the members below */
    size_t next;
    uint64_t moved;
    int code; /* error of the first part that failed; 0: none */
    struct err err;
};

/* --- the upload --- */

static uint64_t hash_more(uint64_t h, struct str s)
{
    return hash_xxh3(s, h * 31 + s.len);
}

static struct str carries(const struct parts *p)
{
    const struct copying *w = p->w;
    const struct object_meta *m = &w->put.meta;
    uint64_t h = hash_more(w->source.size, w->source.version);

    for (size_t i = 0; i < m->header_count; i++)
        h = hash_more(hash_more(h, m->headers[i].name), m->headers[i].value);
    h = hash_more(hash_more(hash_more(h, m->tags), m->storage_class), m->owner);
    h = hash_more(h, str_n(&m->retain_until_ms, sizeof(m->retain_until_ms)));
    for (size_t i = 0; i < p->plan->count; i++)
        h = hash_more(h, str_n(&p->plan->parts[i].size, sizeof(p->plan->parts[i].size)));
    return arena_fmt(w->a, STR_FMT " %016llx", STR_ARG(w->source.etag), (unsigned long long)h);
}

static int parts_remember(const struct parts *p, struct str value, struct err *err)
{
    const struct copy_memory *m = &p->w->o.memory;

    return m->set ? m->set(m->ctx, value, err) : 0;
}

/* Aborts and forgets the upload. If the abort fails, the storage's own rule for old uploads, if it
 * has one, removes the upload later. */
static void parts_abandon(struct parts *p)
{
    struct bucket *to = p->w->c->to;

    (void)to->ops->upload_abort(to, &p->upload, NULL);
    (void)parts_remember(p, STR_EMPTY, NULL);
}

static void take_part(struct parts *p, const struct upload_part *have)
{
    for (size_t i = 0; i < p->plan->count; i++)
        if (p->plan->parts[i].number == have->number && p->plan->parts[i].size == have->size)
            p->done[i] = *have;
}

static int find_parts(struct parts *p, struct err *err)
{
    struct bucket *to = p->w->c->to;
    struct part_list page = {.more = true};
    uint32_t after = 0;
    int code = 0;

    while (code == 0 && page.more) {
        code = to->ops->list_parts(to, p->w->a, &p->upload, after, LIST_PAGE, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++)
            take_part(p, &page.parts[i]);
        if (code == 0 && page.count)
            after = page.parts[page.count - 1].number;
        else
            page.more = false;
    }
    return code;
}

/* Looks for the upload of an earlier try, and sets *found to whether it can be continued. An upload
 * of sealed parts cannot be continued, because its key was not kept. */
static int parts_recall(struct parts *p, struct str carried, bool *found, struct err *err)
{
    const struct copy_memory *m = &p->w->o.memory;
    struct str value = STR_EMPTY;
    int code = m->get ? m->get(m->ctx, p->w->a, &value, err) : 0;

    *found = false;
    if (code < 0 || !value.len)
        return code;
    bool same = str_starts(value, carried) && value.len > carried.len + 1 &&
                value.p[carried.len] == ' ' && !p->w->sealed;
    str_cut(value, ' ', &(struct str){0}, &value);
    str_cut(value, ' ', &(struct str){0}, &p->upload.id);
    if (!same) {
        parts_abandon(p);
        return 0;
    }
    code = find_parts(p, err);
    *found = code == 0;
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int parts_begin(struct parts *p, struct err *err)
{
    struct copying *w = p->w;
    struct object_meta meta = w->put.meta;
    struct str carried = carries(p);
    bool found;
    int code = parts_recall(p, carried, &found, err);

    if (code < 0 || found)
        return code;
    meta.checksum = (struct object_checksum){0}; /* the parts have no checksums */
    code = w->c->to->ops->upload_begin(w->c->to, w->a, w->c->key, &meta, &p->upload.id, err);
    if (code < 0)
        return code;
    code = parts_remember(
        p, arena_fmt(w->a, STR_FMT " " STR_FMT, STR_ARG(carried), STR_ARG(p->upload.id)), err);
    if (code < 0) /* the upload was not remembered, so a later try could not find it */
        (void)w->c->to->ops->upload_abort(w->c->to, &p->upload, NULL);
    return code;
}

/* --- the parts of the upload --- */

static int send_part(struct parts *p, struct arena *a, size_t i, struct upload_part *out,
                     struct err *err)
{
    const struct copy_part *part = &p->plan->parts[i];
    struct object_range range = {
        .kind = RANGE_FROM_TO, .first = part->first, .last = part->first + part->size - 1};
    struct put_options o = {.seal = p->w->put.seal, .seal_ctx = p->w->put.seal_ctx};
    struct bucket *to = p->w->c->to;
    struct copy_body body = {0};
    struct str_reader nothing;
    struct reader *from = &nothing.reader;
    int code = copy_watch(p->w, 0, err);

    str_reader_init(&nothing, STR_EMPTY);
    if (code == 0 && part->size) {
        code = copy_open(&body, p->w, a, &range, err);
        from = &body.reader;
    }
    if (code < 0)
        return code;
    code = to->ops->upload_part(to, a, &p->upload, part->number, from, part->size, &o, out, err);
    if (part->size && code == 0 && body.since)
        code = copy_watch(p->w, body.since, err);
    reader_close(from);
    return copy_written(code, err); /* if the upload no longer exists, that is a conflict too */
}

/* Gives the next part to send. Returns false when no part is left or a part has failed. */
static bool next_part(struct parts *p, size_t *out)
{
    bool more = false;

    mutex_lock(&p->lock);
    while (p->next < p->plan->count && p->done[p->next].number)
        p->next++;
    if (p->code == 0 && p->next < p->plan->count) {
        *out = p->next++;
        more = true;
    }
    mutex_unlock(&p->lock);
    return more;
}

static void part_ended(struct parts *p, size_t i, const struct upload_part *part, int code,
                       const struct err *err)
{
    mutex_lock(&p->lock);
    if (code == 0) {
        p->done[i] = *part;
        p->done[i].etag = arena_str(p->w->a, part->etag);
        p->done[i].checksum = (struct object_checksum){0};
        p->moved += p->plan->parts[i].size;
    } else if (p->code == 0) {
        p->code = code;
        p->err = *err;
    }
    mutex_unlock(&p->lock);
}

static void send_parts(void *ctx)
{
    struct parts *p = ctx;
    struct arena a = ARENA_INIT(MIB);
    size_t i;

    while (next_part(p, &i)) {
        struct upload_part part = {0};
        struct err err = {0};
        int code = send_part(p, &a, i, &part, &err);
        if (code == 0 && part.etag.len == 0)
            code = err_set(&err, ERR_NO_MEMORY, "no room for a part's ETag");
        part_ended(p, i, &part, code, &err);
        arena_reset(&a);
    }
    arena_release(&a);
}

/* Sends all parts, from several threads. This thread sends parts too, and all of them if no other
 * thread can be started. */
static void send_all(struct parts *p)
{
    const struct copying *w = p->w;
    struct thread threads[THREADS_MAX] = {0};
    size_t count = w->source.size >= w->o.parallel_from
                       ? size_min(size_min(w->o.parallel, THREADS_MAX), p->plan->count)
                       : 1;

    for (size_t i = 1; i < count; i++)
        if (thread_start(&threads[i], "copy-part", STACK_BYTES, send_parts, p, NULL) < 0)
            break;
    send_parts(p);
    for (size_t i = 1; i < count; i++)
        thread_join(&threads[i]);
}

static int parts_finish(struct parts *p, struct err *err)
{
    struct copying *w = p->w;
    struct bucket *to = w->c->to;
    struct put_options o = {.conditions = w->put.conditions};
    struct put_result made = {0};
    int code = copy_watch(w, 0, err);

    if (code == 0)
        code =
            to->ops->upload_finish(to, w->a, &p->upload, p->done, p->plan->count, &o, &made, err);
    return code;
}

int copy_by_parts(struct copying *w, const struct copy_plan *plan, uint64_t *moved, struct err *err)
{
    struct parts p = {.w = w, .plan = plan, .upload.key = w->c->key};
    int code;

    p.done = arena_array(w->a, plan->count, sizeof(*p.done));
    if (!p.done)
        return err_code(err, ERR_NO_MEMORY);
    code = parts_begin(&p, err);
    if (code < 0)
        return code;
    mutex_init(&p.lock, "copy");
    send_all(&p);
    mutex_release(&p.lock);
    *moved = p.moved;
    if (p.code < 0 && err)
        *err = p.err;
    code = p.code < 0 ? p.code : parts_finish(&p, err);
    if (code == 0)
        (void)parts_remember(&p, STR_EMPTY, NULL);
    else if (code == ERR_CONFLICT || code == ERR_INVALID || code == ERR_NOT_FOUND ||
             !w->o.memory.set)
        parts_abandon(&p);
    return copy_written(code, err);
}
