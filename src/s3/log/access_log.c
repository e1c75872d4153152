/* Gathers the access log's lines in memory, and runs the thread that writes them as rows and
 * delivers the rows as objects. */
#include "s3/log/access_log_int.h"

#include "base/clock.h"
#include "base/hash.h"
#include "object/local/local.h"

#include <stdlib.h>

enum { INTERVAL_MS = 5 * MS_PER_MINUTE, WAITING_MAX = 64 * MIB };

static loop_step_fn log_step;
static void log_answer_flushes(struct access_log *l);

int access_log_open(struct access_log **out, const struct access_log_options *o, struct err *err)
{
    struct access_log *l = xcalloc(1, sizeof(*l));
    int code;

    l->o = *o;
    l->o.region = o->region.len ? o->region : STR("us-east-1");
    l->o.interval_ms = o->interval_ms ? o->interval_ms : INTERVAL_MS;
    l->o.waiting_max = o->waiting_max ? o->waiting_max : WAITING_MAX;
    l->rows = db_cf(o->db, LOCAL_ACCESS_LOG);
    mutex_init(&l->lock, "access_log");
    cond_init(&l->flushed);
    code = log_rows_load(l, err);
    if (code == 0)
        code = loop_start(&l->loop, &(struct loop_options){"access-log", log_step, l}, err);
    if (code < 0)
        access_log_close(l);
    else
        *out = l;
    return code;
}

static void lines_free(struct log_lines *lines)
{
    free(lines->storage);
    free(lines->bucket);
    free(lines->owner);
    free(lines->config);
    buf_release(&lines->text);
    free(lines);
}

static void dropped(struct access_log *l, const char *why, struct str bucket, uint64_t records)
{
    atomic_fetch_add(&l->dropped, records);
    log_warn(l->o.log, "access_log.dropped", log_z("why", why), log_s("bucket", bucket),
             log_u("records", records));
}

/* Whether the source may have more rows (docs/bucket-logging.md, A6). If not, the lines' records
 * count as dropped; that is logged only once until the source's rows are delivered. */
static bool has_room(struct access_log *l, const struct log_lines *lines)
{
    struct buf name = BUF_INIT(0);

    log_rows_name(&name, str_z(lines->storage), str_z(lines->bucket));
    struct log_pending *p = log_pending_find(l, buf_str(&name));
    bool room = !p || p->bytes + lines->text.len <= l->o.waiting_max;
    if (!room && !p->full)
        dropped(l, "too much of the bucket's log waits", str_z(lines->bucket), lines->records);
    else if (!room)
        atomic_fetch_add(&l->dropped, lines->records);
    if (!room)
        p->full = true;
    buf_release(&name);
    return room;
}

/* Writes the lines in memory as rows. Lines that cannot be written are dropped: a full disk must
 * not fill memory too. */
static void log_drain(struct access_log *l)
{
    VEC(struct log_lines *) lines = {0};
    struct err err = {0};
    uint64_t records = 0, lost;
    size_t kept = 0;

    mutex_lock(&l->lock);
    lines.items = l->lines.items;
    lines.len = l->lines.len;
    l->lines.items = NULL;
    l->lines.len = l->lines.cap = 0;
    l->bytes = 0;
    lost = l->lost;
    l->lost = 0;
    mutex_unlock(&l->lock);
    if (lost)
        dropped(l, "memory is full", STR_EMPTY, lost);
    vec_each (&lines, struct log_lines **, it)
        if (has_room(l, *it))
            lines.items[kept++] = *it;
        else
            lines_free(*it);
    lines.len = kept;
    if (!lines.len) {
        vec_release(&lines);
        return;
    }
    int code = log_rows_write(l, lines.items, lines.len, &err);
    vec_each (&lines, struct log_lines **, it) {
        records += (*it)->records;
        lines_free(*it);
    }
    vec_release(&lines);
    if (code < 0) {
        atomic_fetch_add(&l->dropped, records);
        log_error(l->o.log, "access_log.not_kept", log_u("records", records),
                  log_z("error", err_name(code)), log_z("text", err.text));
    }
}

void access_log_close(struct access_log *l)
{
    if (!l)
        return;
    loop_stop(&l->loop);
    log_answer_flushes(l);
    vec_each (&l->pending, struct log_pending *, p)
        buf_release(&p->name);
    vec_release(&l->pending);
    vec_release(&l->flushes);
    cond_release(&l->flushed);
    mutex_release(&l->lock);
    free(l);
}

void access_log_stats(struct access_log *l, struct access_log_stats *out)
{
    *out = (struct access_log_stats){
        .records = atomic_load(&l->records),
        .delivered = atomic_load(&l->delivered),
        .objects = atomic_load(&l->objects),
        .failed = atomic_load(&l->failed),
        .dropped = atomic_load(&l->dropped),
    };
}

/* --- lines --- */

static struct log_lines *lines_find(struct access_log *l, const struct log_lines *wanted,
                                    const struct access_log_source *s)
{
    vec_each (&l->lines, struct log_lines **, it) {
        struct log_lines *have = *it;
        if (have->hash == wanted->hash && have->day == wanted->day &&
            str_eq(str_z(have->bucket), s->bucket->name) &&
            str_eq(str_z(have->storage), bucket_home(s->bucket)->name) &&
            str_eq(str_z(have->config), s->config) && str_eq(str_z(have->owner), s->owner))
            return have;
    }
    return NULL;
}

static struct log_lines *lines_new(const struct log_lines *wanted,
                                   const struct access_log_source *s)
{
    struct log_lines *lines = xcalloc(1, sizeof(*lines));

    *lines = *wanted;
    lines->storage = str_dup(bucket_home(s->bucket)->name);
    lines->bucket = str_dup(s->bucket->name);
    lines->owner = str_dup(s->owner);
    lines->config = str_dup(s->config);
    lines->text = BUF_INIT(LOG_MEMORY_MAX);
    return lines;
}

void access_log_append(struct access_log *l, const struct access_log_source *s, int64_t now_ms,
                       struct str line)
{
    bool by_event = str_find(s->config, STR("&f=e&")) >= 0;
    struct log_lines wanted = {.day = by_event ? now_ms / MS_PER_DAY : 0, .first_ms = now_ms};
    struct log_lines *lines;

    wanted.hash =
        hash_xxh3(s->config, hash_xxh3(s->bucket->name, (uintptr_t)bucket_home(s->bucket)));
    atomic_fetch_add(&l->records, 1);
    bool wakes = false;
    mutex_lock(&l->lock);
    bool full = l->bytes + line.len > LOG_MEMORY_MAX;
    l->lost += full;
    if (!full) {
        bool was_empty = l->lines.len == 0;
        bool was_below = l->bytes < LOG_DRAIN_BYTES;
        lines = lines_find(l, &wanted, s);
        if (!lines) {
            lines = lines_new(&wanted, s);
            vec_push(&l->lines, lines);
            l->bytes += sizeof(*lines) + s->config.len + s->owner.len + s->bucket->name.len;
        }
        buf_append_str(&lines->text, line);
        lines->records++;
        l->bytes += line.len;
        if (was_empty)
            l->drain_at_ms = clock_wall_ms() + LOG_DRAIN_MS;
        wakes = was_empty || (was_below && l->bytes >= LOG_DRAIN_BYTES);
    }
    mutex_unlock(&l->lock);
    if (wakes)
        loop_wake(&l->loop);
}

/* --- the thread --- */

static int64_t pending_due(const struct access_log *l, const struct log_pending *p)
{
    int64_t due = p->bytes >= LOG_OBJECT_BYTES ? 0 : p->oldest_ms + (int64_t)l->o.interval_ms;

    return due > p->not_before_ms ? due : p->not_before_ms;
}

/* Returns when the thread has work to do next, in ms since 1970; INT64_MAX: none is known. When the
 * wall clock was set back, times that are too far in the future are moved back. */
static int64_t next_due(struct access_log *l, int64_t now)
{
    int64_t due = INT64_MAX, interval = (int64_t)l->o.interval_ms;

    mutex_assert_held(&l->lock);
    if (l->flushes.len || l->bytes >= LOG_DRAIN_BYTES)
        return 0;
    if (l->lines.len)
        due = l->drain_at_ms < now + LOG_DRAIN_MS ? l->drain_at_ms : now;
    vec_each (&l->pending, struct log_pending *, p) {
        if (p->oldest_ms > now)
            p->oldest_ms = now;
        if (p->not_before_ms > now + interval)
            p->not_before_ms = now + interval;
        if (pending_due(l, p) < due)
            due = pending_due(l, p);
    }
    return due;
}

static void pending_forget(struct access_log *l, struct log_pending *p)
{
    buf_release(&p->name);
    vec_remove(&l->pending, (size_t)(p - l->pending.items));
}

/* Delivers the rows of a source. A failed delivery is tried again after an interval. */
static int pending_deliver(struct access_log *l, struct log_pending *p, struct buf *key,
                           struct err *err)
{
    int code = log_deliver(l, p, key, err);

    if (code == 0) {
        pending_forget(l, p);
        return 0;
    }
    if (code == ERR_SHUTDOWN)
        return err_code(err, code);
    p->not_before_ms = clock_wall_ms() + (int64_t)l->o.interval_ms;
    atomic_fetch_add(&l->failed, 1);
    return code;
}

static struct str bucket_of(const struct log_pending *p)
{
    struct str storage, bucket;

    str_cut(buf_str(&p->name), '\0', &storage, &bucket);
    return str_head(bucket, bucket.len ? bucket.len - 1 : 0);
}

static void deliver_due(struct access_log *l)
{
    int64_t now = clock_wall_ms();

    for (size_t i = l->pending.len; i-- > 0 && !loop_is_stopping(&l->loop);) {
        struct log_pending *p = &l->pending.items[i];
        struct buf key = BUF_INIT(0);
        struct err err = {0};
        if (pending_due(l, p) > now)
            continue;
        int code = pending_deliver(l, p, &key, &err);
        if (code < 0 && code != ERR_SHUTDOWN)
            log_warn(l->o.log, "access_log.failed", log_s("bucket", bucket_of(p)),
                     log_z("error", err_name(code)), log_z("text", err.text));
        buf_release(&key);
    }
}

static void deliver_asked(struct access_log *l, struct log_flush *f)
{
    struct log_pending *p = log_pending_find(l, f->name);
    int code = p ? pending_deliver(l, p, &f->key, &f->err) : 0;

    /* The flush has written an object, so it counts as a success. If records under another
     * configuration could not be delivered, they still wait, and the log reports the error when
     * their delivery is due. */
    if (f->key.len)
        code = 0;
    mutex_lock(&l->lock);
    f->code = code;
    f->done = true;
    cond_broadcast(&l->flushed);
    mutex_unlock(&l->lock);
}

static void log_answer_flushes(struct access_log *l)
{
    VEC(struct log_flush *) flushes = {0};

    /* Take the waiting flushes before the lines, so that the lines contain every record that was
     * made before a flush was asked for. */
    mutex_lock(&l->lock);
    vec_each (&l->flushes, struct log_flush **, f)
        vec_push(&flushes, *f);
    l->flushes.len = 0;
    mutex_unlock(&l->lock);
    log_drain(l);
    vec_each (&flushes, struct log_flush **, f)
        deliver_asked(l, *f);
    vec_release(&flushes);
}

static struct loop_sleep log_step(void *ctx)
{
    struct access_log *l = ctx;
    int64_t now = clock_wall_ms();

    mutex_lock(&l->lock);
    int64_t due = next_due(l, now);
    mutex_unlock(&l->lock);
    if (due == INT64_MAX)
        return loop_until_woken();
    if (due > now)
        return loop_sleep_ms((uint64_t)(due - now < LOG_LOOK_MS ? due - now : LOG_LOOK_MS));
    log_answer_flushes(l);
    deliver_due(l);
    return loop_again();
}

int access_log_flush(struct access_log *l, const struct bucket *b, struct arena *a, struct str *key,
                     struct err *err)
{
    struct buf name = BUF_INIT(0);
    struct log_flush f = {.key = BUF_INIT(0)}, *self = &f;

    log_rows_name(&name, bucket_home(b)->name, b->name);
    f.name = buf_str(&name);
    mutex_lock(&l->lock);
    vec_push(&l->flushes, self);
    mutex_unlock(&l->lock);
    loop_wake(&l->loop);
    mutex_lock(&l->lock);
    while (!f.done)
        cond_wait(&l->flushed, &l->lock);
    mutex_unlock(&l->lock);
    if (f.code < 0)
        *err = f.err;
    else
        *key = arena_str(a, buf_str(&f.key));
    buf_release(&f.key);
    buf_release(&name);
    return f.code < 0 ? f.code : arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}
