/* Hashes objects, during a request or in a task, and removes records of objects that no longer
 * exist. */
#include "swarm/torrents_int.h"
#include "object/overlay.h"

#include "base/clock.h"
#include "base/json.h"
#include "object/digest.h"
#include "meta/envelope.h"
#include "meta/error.h"

#include <stdlib.h>

enum { FLIGHT_WAIT_MS = MS_PER_MINUTE, PROGRESS_MS = 1000 };

/* --- one object --- */

static int unlock_body(struct torrents *t, struct bucket *b, struct get_result *got,
                       struct err *err)
{
    struct envelope_place at = {b->name, got->info.key};
    struct ring_key with = {0};
    struct sealed_key data = {0};
    struct envelope e;
    int code = 0;

    if (!got->unlock)
        return 0;
    code = envelope_read(&e, got->info.meta.encryption, err);
    if (code == 0 && (e.kind == SSE_C || !t->o.keys))
        code = err_set(err, ERR_UNSUPPORTED, "it is encrypted with a key that is not kept here");
    if (code == 0)
        code = keyring_find(t->o.keys, e.name, e.id, true, &with, err);
    if (code == 0 && envelope_open(&e, &at, &with.key, &data) < 0)
        code = err_set(err, ERR_CORRUPT, "its key does not open");
    if (code == 0)
        code = got->unlock(got->body, &data, err);
    secure_zero(&with, sizeof(with));
    secure_zero(&data, sizeof(data));
    return code;
}

struct hashing_task {
    struct torrents *t;
    const struct torrent_job *job;
    uint64_t told_ms;
};

static int hash_progress(void *ctx, uint64_t done, struct err *err)
{
    struct hashing_task *h = ctx;
    uint64_t now = clock_mono_ms();

    if (h->job->run && task_ended(h->job->run))
        return err_code(err, ERR_CANCELED);
    if (now - h->told_ms < PROGRESS_MS)
        return 0;
    h->told_ms = now;
    return record_progress(h->t, h->job->member, done, err);
}

/* Returns the version id to give to the storage. On a remote storage an object without versioning
 * has no version id. */
static struct str version_to_ask(const struct bucket *b, struct str version)
{
    bool nameless = str_eq(version, STR("null")) && !bucket_can(b, STORAGE_NULL_VERSION);

    return nameless ? STR_EMPTY : version;
}

static int open_body(struct torrents *t, struct arena *a, const struct torrent_job *job,
                     struct get_result *got, struct err *err)
{
    const struct object_info *info = job->info;
    struct bucket *b = job->bucket;
    struct object_conditions is_it = {.if_match =
                                          arena_fmt(a, "\"" STR_FMT "\"", STR_ARG(info->etag))};
    struct object_range all = {.kind = RANGE_ALL};
    struct str version = version_to_ask(b, info->version);
    int code = b->ops->get(b, a, info->key, version, &is_it, &all, got, err);

    if (code == ERR_PRECONDITION || code == ERR_NOT_FOUND || code == ERR_NO_BUCKET)
        return err_set(err, ERR_CONFLICT, "it was replaced or removed meanwhile");
    if (code == 0 && (!str_eq(got->info.etag, info->etag) || got->info.size != info->size))
        return err_set(err, ERR_CONFLICT, "it was replaced meanwhile");
    got->info.key = info->key;
    return code < 0 ? code : unlock_body(t, b, got, err);
}

int torrents_hash(struct torrents *t, const struct torrent_job *job, struct err *err)
{
    struct arena a = ARENA_INIT(TORRENT_ARENA_MAX);
    struct hashing_task h = {t, job, clock_mono_ms()};
    struct pieces_plan plan = {.size = job->info->size, .progress = hash_progress, .ctx = &h};
    struct get_result got = {0};
    struct pieces p = {0};
    int code = open_body(t, &a, job, &got, err);

    if (code == 0)
        code = pieces_hash(&p, got.body, &plan, err);
    reader_close(got.body);
    if (code == 0)
        code = record_keep(t, &a, job->member, job->info->etag, &p, err);
    pieces_release(&p);
    arena_release(&a);
    return code;
}

/* --- hashing during a request: one request hashes the object, and other requests wait for it (O3)
 * --- */

/* A request that is hashing an object. */
struct flight {
    struct list node;
    /* The record's name. Borrowed from the request; valid while the flight is in the list. */
    struct str member;
};

static struct flight *flight_find(struct torrents *t, struct str member)
{
    list_each (&t->flights, struct flight, node, f)
        if (str_eq(f->member, member))
            return f;
    return NULL;
}

/* Registers the caller as the request that hashes the object and sets *mine. If another request is
 * hashing it, waits until that request has ended, and clears *mine. */
static int flight_enter(struct torrents *t, struct flight *own, bool *mine, struct err *err)
{
    uint64_t deadline = clock_mono_ns() + FLIGHT_WAIT_MS * NS_PER_MS;
    int code = 0;

    mutex_lock(&t->lock);
    *mine = !flight_find(t, own->member);
    if (*mine && (t->flight_count == FLIGHTS_MAX || t->stop))
        code = err_set(err, S3_SLOW_DOWN, "Other torrents are being made. Please try again.");
    if (*mine && code == 0) {
        list_push(&t->flights, &own->node);
        t->flight_count++;
    }
    while (!*mine && code == 0 && flight_find(t, own->member))
        if (!cond_wait_until(&t->changed, &t->lock, deadline))
            code = err_set(err, S3_SLOW_DOWN, "The torrent is being made. Please try again.");
    mutex_unlock(&t->lock);
    return code;
}

static void flight_leave(struct torrents *t, struct flight *own)
{
    mutex_lock(&t->lock);
    list_remove(&own->node);
    t->flight_count--;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->lock);
}

static int hash_at_once(struct torrents *t, const struct torrent_job *job, struct err *err)
{
    struct flight own = {.member = job->member};
    bool mine = false;
    int code = flight_enter(t, &own, &mine, err);

    if (code < 0 || !mine)
        return code;
    code = torrents_hash(t, job, err);
    flight_leave(t, &own);
    return code;
}

/* --- as a task --- */

static struct str hash_task_id(struct arena *a, struct str member, struct str etag)
{
    struct str text = arena_fmt(a, STR_FMT " " STR_FMT, STR_ARG(member), STR_ARG(etag));
    struct digest_value value;

    digest_of(DIGEST_SHA1, text, &value);
    return arena_fmt(a, "torrent-" STR_FMT, STR_ARG(arena_hex(a, value.bytes, value.len)));
}

static int add_hash_task(struct torrents *t, struct arena *a, struct str member,
                         const struct object_info *info, struct err *err)
{
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX);
    struct json_out w;

    json_out_init(&w, &payload);
    json_out_open(&w, '{');
    json_out_member_str(&w, "Torrent", member);
    json_out_member_str(&w, "ETag", info->etag);
    json_out_member_u64(&w, "Size", info->size);
    json_out_close(&w, '}');
    struct task task = {.type = STR(TORRENT_TASK_TYPE),
                        .queue = STR(TORRENT_QUEUE),
                        .payload = buf_str(&payload),
                        .id = hash_task_id(a, member, info->etag)};
    int code = queue_add(t->o.queue, &task, 0, err);
    buf_release(&payload);
    return code == ERR_EXISTS ? 0 : code;
}

/* Adds a task that hashes the object, and returns S3_SLOW_DOWN. The record is written first, so
 * that the task finds it. If the task is lost, the next request for the torrent adds it again. */
static int hash_later(struct torrents *t, struct str member, const struct object_info *info,
                      struct err *err)
{
    struct arena a = {0};
    struct torrent_record r = {0};
    int code = record_read(t, &a, member, false, &r, err);

    if (code == ERR_NOT_FOUND || (code == 0 && !str_eq(r.etag, info->etag)))
        code = record_begin(t, &a, member, info, err);
    if (code == 0)
        code = add_hash_task(t, &a, member, info, err);
    if (code == 0)
        code =
            err_set(err, S3_SLOW_DOWN,
                    "The torrent is being made: %llu of %llu bytes are hashed. Please try again "
                    "later.",
                    (unsigned long long)record_done(t, &a, member), (unsigned long long)info->size);
    arena_release(&a);
    return code;
}

int torrents_ensure(struct torrents *t, const struct torrent_job *job, struct err *err)
{
    return job->info->size <= t->o.at_once ? hash_at_once(t, job, err)
                                           : hash_later(t, job->member, job->info, err);
}

void torrents_cancel(struct torrents *t, struct str member, struct str etag)
{
    struct arena a = {0};
    struct err ignored = {0};
    struct str id = hash_task_id(&a, member, etag);

    int code = queue_delete(t->o.queue, STR(TORRENT_QUEUE), id, &ignored);

    if (code == ERR_CONFLICT)
        code = queue_cancel(t->o.queue, id, &ignored);
    if (code < 0 && code != ERR_NOT_FOUND) /* a running task also ends when its record is missing */
        log_debug(t->o.log, "torrents.cancel_failed", log_z("error", ignored.text));
    arena_release(&a);
}

/* Opens the bucket as anonymous users see it: requests to a remote storage are not signed (O2). */
static int open_torrent_bucket(struct torrents *t, const struct torrent_id *id, struct bucket **out,
                               struct err *err)
{
    struct storage *s = t->o.find(t->o.find_ctx, id->storage);

    if (!s)
        return err_set(err, ERR_UNAVAILABLE, "there is no storage " STR_FMT, STR_ARG(id->storage));
    return storage_open_bucket(out, s, STR_EMPTY, id->bucket, err);
}

/* Removes the record if it still has this ETag, because the object with this ETag no longer
 * exists. */
static int drop_placeholder(struct torrents *t, struct arena *a, struct str member, struct str etag,
                            struct err *err)
{
    struct torrent_record r;
    int code = record_read(t, a, member, false, &r, err);

    if (code == ERR_NOT_FOUND)
        return 0;
    return code < 0 || !str_eq(r.etag, etag) ? code : record_remove(t, a, member, &r, err);
}

static int run_hash_task(struct torrents *t, struct task_run *run, struct str member,
                         const struct object_info *info, struct err *err)
{
    struct torrent_id id;
    struct object_info version = *info;
    struct bucket *b = NULL;
    int code = torrent_member_parse(&id, run->arena, member, err);

    if (code < 0)
        return ERR_INVALID;
    version.key = id.key;
    version.version = id.version;
    code = open_torrent_bucket(t, &id, &b, err);
    if (code == 0)
        code = torrents_hash(t, &(struct torrent_job){b, member, &version, run}, err);
    if (b)
        b->ops->unref(b);
    return code == ERR_CONFLICT || code == ERR_NO_BUCKET
               ? drop_placeholder(t, run->arena, member, info->etag, err)
               : code;
}

int torrents_handle(struct task_run *run, struct err *err)
{
    struct torrents *t = run->ctx;
    struct torrent_record r;
    json_t *root = NULL;
    int code = json_read(&root, run->task->payload, err);

    if (code < 0)
        return ERR_INVALID;
    struct str member = arena_str(run->arena, json_get_str(root, "Torrent", STR_EMPTY));
    struct object_info info = {.etag = arena_str(run->arena, json_get_str(root, "ETag", STR_EMPTY)),
                               .size = (uint64_t)json_get_i64(root, "Size", 0)};
    json_decref(root);
    if (!member.len || !info.etag.len)
        return err_set(err, ERR_INVALID, "the payload lacks a part");
    code = record_read(t, run->arena, member, false, &r, err);
    if (code == ERR_NOT_FOUND) /* the record was removed */
        return 0;
    if (code < 0 || r.ready || !str_eq(r.etag, info.etag))
        return code;
    return run_hash_task(t, run, member, &info, err);
}

/* --- outdated records (O6) --- */

/* Asks the storage whether the object of a record is still the same. 1: the object was removed or
 * has changed. 0: it is the same. A negative code: the storage did not answer. */
static int is_stale(struct torrents *t, struct arena *a, const struct torrent_id *id,
                    const struct torrent_record *r, struct err *err)
{
    static const struct object_conditions none;
    struct get_result got = {0};
    struct bucket *b = NULL;
    int code = open_torrent_bucket(t, id, &b, err);

    if (code == 0 && b) {
        struct str version = version_to_ask(b, id->version);
        code = b->ops->head(b, a, id->key, version, &none, &got, err);
    }
    if (b)
        b->ops->unref(b);
    if (code == ERR_NOT_FOUND || code == ERR_NO_BUCKET)
        return 1;
    return code < 0 ? code : !str_eq(got.info.etag, r->etag) || got.info.size != r->size;
}

static int collect_one(struct torrents *t, struct str member, size_t *gone, struct err *err)
{
    struct arena a = ARENA_INIT(TORRENT_ARENA_MAX);
    struct torrent_record r;
    struct torrent_id id;
    int code = torrent_member_parse(&id, &a, member, err);

    if (code == 0)
        code = record_read(t, &a, member, false, &r, err);
    int stale = code == 0 ? is_stale(t, &a, &id, &r, err) : 0;
    if (stale > 0) {
        torrents_cancel(t, member, r.etag);
        code = record_remove(t, &a, member, &r, err);
        *gone += code == 0;
    }
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code; /* the record was removed meanwhile */
}

static bool is_stopping(struct torrents *t)
{
    mutex_lock(&t->lock);
    bool stop = t->stop;
    mutex_unlock(&t->lock);
    return stop;
}

int torrents_collect(struct torrents *t, size_t *gone, struct err *err)
{
    struct arena a = {0};
    struct buf after = BUF_INIT(16 * KIB);
    struct reply *page;
    size_t removed = 0;
    int code = 0;

    do {
        arena_reset(&a);
        code = record_members(t, &a, buf_str(&after), TORRENTS_PAGE, &page, err);
        for (size_t i = 0; code == 0 && i < page->count && !is_stopping(t); i++)
            code = collect_one(t, page->items[i].str, &removed, err);
        buf_reset(&after);
        if (code == 0 && page->count)
            buf_append_str(&after, page->items[page->count - 1].str);
    } while (code == 0 && page->count == TORRENTS_PAGE && !is_stopping(t));
    arena_release(&a);
    buf_release(&after);
    if (gone)
        *gone = removed;
    return code;
}

struct loop_sleep torrents_collector(void *ctx)
{
    struct torrents *t = ctx;
    struct err err = {0};
    size_t gone = 0;
    int code = torrents_collect(t, &gone, &err);

    if (code < 0)
        log_warn(t->o.log, "torrents.collect_failed", log_z("error", err.text));
    else if (gone)
        log_info(t->o.log, "torrents.collected", log_u("torrents", gone));
    return loop_sleep_ms(t->o.collect_ms);
}
