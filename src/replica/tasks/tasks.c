/* The parts that all tasks of replication share: reading the status, waiting for limits, taking the
 * lock, reading the version vectors, confirming. The codes P3 and S10 are those of
 * docs/replication.md. */
#include "replica/tasks/tasks_int.h"

#include "base/clock.h"
#include "object/local/local.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    KNOWN_S = 1, /* seconds until the gateways are asked again whether they know a replication */
    /* Number of short waits before that, because the gateways mostly know a replication within a
     * moment. */
    KNOWN_NAPS = 100,
    NAP_US = 10000,
    OUTSTANDING_MAX = 10000,
    LOCK_WAIT_MS = 200, /* wait for a lock; tasks of the same put often run at the same time */
    /* Longest sleep for a limit. If a limit of requests demands a longer wait, the task is put
     * back; for a limit of bytes the thread sleeps again. */
    NAP_MS = 1000,
    MEMORY_S = S_PER_DAY, /* seconds for which a later try can continue an upload */
};

static const struct {
    const char *type;
    task_fn *fn;
} table[] = {
    {"bucket:create", task_bucket_create},
    {"bucket:delete", task_bucket_delete},
    {"bucket:sync:tags", task_bucket_tags},
    {"bucket:sync:acl", task_bucket_acl},
    {"object:sync", task_object_sync},
    {"objects:sync", task_objects_sync},
    {"object:sync:tags", task_object_tags},
    {"object:sync:acl", task_object_acl},
    {"migrate:bucket:list_objects", task_list_objects},
    {"migrate:object:list_versions", task_list_versions},
    {"migrate:object:copy", task_object_copy},
    {"migrate:objects:copy", task_objects_copy},
    {"migrate:object:copy_versioned", task_object_copy},
    {UPLOAD_ABORT_TYPE, task_upload_abort},
    {CHECK_TYPE, task_check},
    {CHECK_FIX_TYPE, task_check_fix},
    {CHECK_FIX_OBJECT_TYPE, task_check_fix_object},
};
_Static_assert(ARRAY_SIZE(table) == TASKS_HANDLERS, "TASKS_HANDLERS counts the table");

/* Queues and their weights: live changes come before bulk work (docs/queue.md, "Queues"). */
const struct queue_weight tasks_queues[TASKS_QUEUES] = {
    {"api", 64},
    {"intents", 32},
    {"events6", 28},
    {"events5", 24},
    {"events4", 20},
    {"events3", 16},
    {"events2", 12},
    {"events1", 8},
    {"migrate_obj_copy6", 7},
    {"migrate_obj_copy5", 6},
    {"migrate_obj_copy4", 5},
    {"migrate_obj_copy3", 4},
    {"migrate_obj_copy2", 3},
    {"migrate_obj_copy1", 2},
    {"migrate_bucket_list_obj", 4},
    {"consistency_check", 2},
};

struct tasks *tasks_new(const struct tasks_options *o)
{
    struct tasks *t = xcalloc(1, sizeof(*t));

    t->o = *o;
    t->o.pause_retry_s = o->pause_retry_s ? o->pause_retry_s : PAUSED_S;
    t->o.outstanding_max = o->outstanding_max ? o->outstanding_max : OUTSTANDING_MAX;
    mutex_init(&t->lock, "places");
    return t;
}

void tasks_free(struct tasks *t)
{
    if (!t)
        return;
    places_release(t);
    mutex_release(&t->lock);
    free(t);
}

size_t tasks_handlers(struct tasks *t, struct task_handler out[TASKS_HANDLERS])
{
    for (size_t i = 0; i < TASKS_HANDLERS; i++)
        out[i] = (struct task_handler){table[i].type, table[i].fn, t};
    return TASKS_HANDLERS;
}

struct task tasks_first(struct arena *a, const struct replication_id *id, int priority)
{
    struct task_payload p = {.id = *id};
    struct buf text = BUF_INIT(TASK_PAYLOAD_MAX), name = {0};

    task_payload_write(&text, &p, PAYLOAD_BUCKET);
    buf_append_z(&name, "cb:");
    store_key_part(&name, id->from);
    buf_append_char(&name, ':');
    store_key_part(&name, id->to);
    buf_append_char(&name, ':');
    store_key_part(&name, id->bucket);
    if (id->to_bucket.len) {
        buf_append_char(&name, ':');
        store_key_part(&name, id->to_bucket);
    }
    struct task t = {.type = STR("bucket:create"),
                     .payload = arena_str(a, buf_str(&text)),
                     .id = arena_str(a, buf_str(&name)),
                     .queue = arena_fmt(a, "events%d", priority + 1)};
    buf_release(&text);
    buf_release(&name);
    return t;
}

/* --- limits --- */

static struct storage_limits job_limits(const struct job *j, struct str storage)
{
    struct storage_limits l = {0};

    if (j->t->o.limits)
        j->t->o.limits(j->t->o.ctx, storage, &l);
    return l;
}

int job_take(struct job *j, struct str storage, enum limit_kind kind, uint64_t wanted,
             struct err *err)
{
    struct storage_limits l = job_limits(j, storage);
    double rate = kind == LIMIT_REQUESTS ? l.requests_per_second : l.bytes_per_second;
    uint64_t wait = 1;
    int code = 0;

    while (rate > 0 && wanted && wait) {
        code = limit_take(j->t->o.app, storage, kind, rate, wanted, &wait, err);
        if (code < 0)
            return code;
        if (wait && (task_ended(j->run) || (j->lock && !lock_held(j->lock))))
            return err_set(err, ERR_CANCELED, "the task has ended");
        if (wait > NAP_MS && kind == LIMIT_REQUESTS) {
            j->run->put_back_s = (int64_t)(wait / 1000) + 1;
            return err_set(err, ERR_AGAIN, "the limit of the storage " STR_FMT, STR_ARG(storage));
        }
        if (wait)
            usleep((useconds_t)(wait < NAP_MS ? wait : NAP_MS) * 1000);
    }
    return 0;
}

/* Checks that no client has made a newer change at the destination. Such a change may not be
 * recorded yet, so this function waits until the change is recorded, and reads the version vector
 * again (S10). ERR_CONFLICT: there is a newer change. */
static int check_overtaken(struct job *j, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct place from = {.storage = j->p.id.from}, to = {.storage = j->p.id.to};
    struct thing thing = {.kind = THING_OBJECT, .bucket = j->p.id.bucket, .object = j->p.object};
    struct vector v = {0};
    int code = j->t->o.settle(j->t->o.ctx, j->to, err);

    if (code == 0)
        code = version_read(j->t->o.app, &a, &thing, &v, err);
    if (code == 0 && vector_at(&v, &to) > vector_at(&v, &from))
        code = err_set(err, ERR_CONFLICT, "the destination has a newer change");
    arena_release(&a);
    return code;
}

int job_watch(void *ctx, uint64_t bytes, struct err *err)
{
    struct job *j = ctx;
    int code = 0;

    if (task_ended(j->run))
        return err_set(err, ERR_CANCELED, "the task has ended");
    if (j->lock && !lock_held(j->lock))
        return err_set(err, ERR_CANCELED, "the lock was lost");
    if (bytes == 0 && j->moving && j->p.object.len)
        code = check_overtaken(j, err);
    if (code < 0)
        return code;
    code = job_take(j, j->p.id.from, LIMIT_BYTES, bytes, err);
    return code < 0 ? code : job_take(j, j->p.id.to, LIMIT_BYTES, bytes, err);
}

/* --- beginning and ending a job --- */

static int look_for_switch(struct job *j, struct err *err)
{
    struct replication_view *view = NULL;
    int code = j->t->o.settle ? replications_view(j->t->o.replications, &view, err) : 0;

    j->moving = view && replication_view_switch(view, j->p.id.to, j->p.id.bucket);
    replication_view_unref(view);
    return code;
}

static int job_read_status(struct job *j, struct err *err)
{
    int code = replication_read(j->t->o.replications, j->run->arena, &j->p.id, &j->status, err);

    if (code == ERR_NOT_FOUND)
        return ERR_END;
    if (code == 0 && j->status.paused) {
        j->run->put_back_s = j->t->o.pause_retry_s;
        return err_set(err, ERR_AGAIN, "the replication is paused");
    }
    return code;
}

int job_find(struct job *j, struct str name, struct storage **out, struct err *err)
{
    *out = j->t->o.find(j->t->o.ctx, name);
    if (*out)
        return 0;
    j->run->put_back_s = ELSEWHERE_S;
    return err_set(err, ERR_AGAIN, "the storage " STR_FMT " is not here", STR_ARG(name));
}

int job_begin(struct job *j, struct task_run *run, enum task_payload_kind kind, unsigned requests,
              struct err *err)
{
    *j = (struct job){.t = run->ctx, .run = run, .memory_key = BUF_INIT(16 * KIB)};
    int code = task_payload_read(&j->p, run->arena, run->task->payload, kind, err);

    if (j->p.object_count)
        requests *= (unsigned)j->p.object_count;
    if (code == 0)
        code = job_read_status(j, err);
    if (code == 0)
        code = look_for_switch(j, err);
    if (code == 0)
        code = job_find(j, j->p.id.from, &j->from, err);
    if (code == 0)
        code = job_find(j, j->p.id.to, &j->to, err);
    if (code == 0)
        code = job_take(j, j->p.id.from, LIMIT_REQUESTS, requests, err);
    if (code == 0)
        code = job_take(j, j->p.id.to, LIMIT_REQUESTS, requests, err);
    return code;
}

/* Ends the job. If the failure may pass, the task is put back for a while. If no other try can
 * succeed, the task is archived with the reason. */
int job_end(struct job *j, int code, struct err *err)
{
    place_release(&j->source);
    place_release(&j->destination);
    lock_release(j->lock);
    buf_release(&j->memory_key);
    if (code == ERR_END)
        return 0;
    if (code == ERR_CONFLICT || code == ERR_CANCELED || code == ERR_BUSY) {
        if (!j->run->put_back_s)
            j->run->put_back_s = BUSY_S;
        return ERR_AGAIN;
    }
    if (code == ERR_UNSUPPORTED) { /* no other try will succeed */
        err_wrap(err, ERR_UNSUPPORTED, "cannot be copied");
        return ERR_INVALID;
    }
    if (code == ERR_INVALID &&
        j->from) /* the payload is valid; the storage refused the copy, and may accept it later */
        return ERR_PEER;
    return code;
}

struct str job_to_bucket(const struct job *j)
{
    return j->p.id.to_bucket.len ? j->p.id.to_bucket : j->p.id.bucket;
}

static int job_take_lock(struct job *j, struct buf *key, struct err *err)
{
    int code = lock_wait(&j->lock, j->t->o.locks, buf_str(key), LOCK_WAIT_MS, err);

    buf_release(key);
    return code;
}

int job_lock_object(struct job *j, struct err *err)
{
    struct buf key = {0};

    lock_key_object(&key, j->p.id.to, job_to_bucket(j), j->p.object);
    return job_take_lock(j, &key, err);
}

int job_lock_bucket(struct job *j, struct err *err)
{
    struct buf key = {0};

    lock_key_bucket(&key, j->p.id.to, job_to_bucket(j));
    return job_take_lock(j, &key, err);
}

/* --- buckets --- */

int job_need_known(struct job *j, struct err *err)
{
    const struct tasks_options *o = &j->t->o;
    bool known = !o->is_known || o->is_known(o->ctx, &j->p.id);

    for (int i = 0; !known && i < KNOWN_NAPS && job_watch(j, 0, NULL) == 0; i++) {
        usleep(NAP_US);
        known = o->is_known(o->ctx, &j->p.id);
    }
    if (known)
        return 0;
    j->run->put_back_s = KNOWN_S;
    return err_set(err, ERR_AGAIN, "not every gateway knows the replication yet");
}

/* Makes the destination's bucket, once every gateway knows the replication. The bucket has the same
 * owner as the source's. A gateway that did not know that the new bucket is a copy would lead the
 * owner's requests to it (docs/forward.md, rule 2). */
static int make_bucket(struct job *j, struct err *err)
{
    struct bucket *from = j->source.bucket;
    struct bucket_info info = {0};
    int code = job_need_known(j, err);

    if (code == 0)
        code = from->ops->info(from, j->run->arena, &info, err);
    if (code < 0)
        return code;
    info = (struct bucket_info){.name = job_to_bucket(j),
                                .owner = j->p.id.user,
                                .versions =
                                    info.versions == VERSIONS_ON ? VERSIONS_ON : VERSIONS_NEVER,
                                .object_lock = info.object_lock};
    code = local_create_untapped(j->to, &info, err);
    return code == ERR_EXISTS ? 0 : code;
}

static int open_destination(struct job *j, bool anew, struct err *err)
{
    struct str user = j->p.id.user, name = job_to_bucket(j);
    int code = place_open(&j->destination, j->t, j->to, user, name, anew, err);

    if (code == ERR_NO_BUCKET) {
        code = make_bucket(j, err);
        if (code == 0)
            code = place_open(&j->destination, j->t, j->to, user, name, true, err);
        if (code == ERR_NO_BUCKET)
            code = err_set(err, ERR_CONFLICT, "the bucket at the destination went away");
    }
    if (code == 0)
        local_untap(j->destination.bucket); /* a worker's writes are not captured as changes */
    if (code == 0 && j->destination.foreign)
        code = err_set(err, ERR_DENIED, "the bucket " STR_FMT " on " STR_FMT " is another user's",
                       STR_ARG(name), STR_ARG(j->p.id.to));
    return code;
}

int job_open(struct job *j, bool anew, struct err *err)
{
    place_release(&j->source);
    place_release(&j->destination);
    int code = place_open(&j->source, j->t, j->from, j->p.id.user, j->p.id.bucket, anew, err);

    /* In this case the owner deleted the bucket, and another user made one of that name. The
     * objects of that user must not be copied. */
    if (code == 0 && j->source.foreign)
        code = err_set(err, ERR_DENIED, "the bucket " STR_FMT " on " STR_FMT " is another user's",
                       STR_ARG(j->p.id.bucket), STR_ARG(j->p.id.from));
    if (code == 0)
        code = open_destination(j, anew, err);
    if (code < 0) {
        place_release(&j->source);
        place_release(&j->destination);
    }
    return code;
}

/* --- options of copies --- */

static int memory_get(void *ctx, struct arena *a, struct str *out, struct err *err)
{
    struct job *j = ctx;
    struct reply *reply = NULL;
    int code = store_call(j->t->o.app, a, &reply, err, STR("GET"), buf_str(&j->memory_key));

    *out = code == 0 && reply->type == REPLY_BULK ? reply->str : STR_EMPTY;
    return code;
}

static int memory_write(struct job *j, struct str value, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    struct reply *reply = NULL;
    struct str key = buf_str(&j->memory_key), life = arena_fmt(&a, "%d", MEMORY_S);
    int code = value.len ? store_call(j->t->o.app, &a, &reply, err, STR("SET"), key, value,
                                      STR("EX"), life)
                         : store_call(j->t->o.app, &a, &reply, err, STR("DEL"), key);

    if (code == 0 && reply->type == REPLY_ERROR)
        code = err_set(err, ERR_INVALID, STR_FMT, STR_ARG(reply->str));
    arena_release(&a);
    return code;
}

/* Remembers the upload. The object's lock is held, so no other task writes this key of the
 * store. */
static int memory_set(void *ctx, struct str value, struct err *err)
{
    struct job *j = ctx;
    struct arena a = ARENA_INIT(64 * KIB);
    struct str before = STR_EMPTY;
    int code = memory_get(j, &a, &before, err);

    if (code == 0 && value.len)
        code = upload_watch(j, upload_of_memory(value), MEMORY_S, err);
    if (code == 0)
        code = memory_write(j, value, err);
    if (code == 0)
        upload_unwatch(j, upload_of_memory(before));
    arena_release(&a);
    return code;
}

static void name_memory(struct job *j)
{
    buf_reset(&j->memory_key);
    upload_memory_key(&j->memory_key, j->p.id.to, job_to_bucket(j), j->p.object);
}

struct copy job_copy(struct job *j)
{
    name_memory(j);
    j->copy = j->t->o.copy;
    j->copy.watch = job_watch;
    j->copy.ctx = j;
    j->copy.memory = (struct copy_memory){memory_get, memory_set, j};
    j->copy.keys = j->t->o.keys;
    j->copy.log = &j->run->log;
    return (struct copy){.from = j->source.bucket,
                         .to = j->destination.bucket,
                         .key = j->p.object,
                         .user = j->p.id.user,
                         .o = &j->copy};
}

struct copy_bucket job_copy_bucket(struct job *j)
{
    return (struct copy_bucket){
        .from = j->source.bucket, .to = j->destination.bucket, .log = &j->run->log};
}

/* --- version vectors --- */

/* Returns the lowest bit of a set. */
static unsigned set_lowest(unsigned set)
{
    return set & -set;
}

bool job_lacks(const struct job_things *t)
{
    return t->needed & set_lowest(t->kinds);
}

static size_t job_list_things(const struct job *j, unsigned kinds,
                              struct thing out[VERSION_THINGS_MAX])
{
    size_t count = 0;

    for (unsigned rest = kinds; rest; rest &= rest - 1) {
        BUG_ON(count == VERSION_THINGS_MAX);
        out[count++] = (struct thing){.kind = (enum thing_kind)set_lowest(rest),
                                      .bucket = j->p.id.bucket,
                                      .object = j->p.object,
                                      .version = j->p.version};
    }
    return count;
}

int job_needed(struct job *j, struct job_things *t, struct err *err)
{
    struct place from = {.storage = j->p.id.from},
                 to = {.storage = j->p.id.to, .bucket = j->p.id.to_bucket};
    struct version_places places = {&from, &to};
    struct version_pair pairs[VERSION_THINGS_MAX];
    struct thing things[VERSION_THINGS_MAX];

    size_t count = job_list_things(j, t->kinds, things);
    int code = version_read_pairs(j->t->o.app, j->run->arena, things, count, &places, pairs, err);
    if (code < 0)
        return code;
    t->needed = 0;
    for (size_t i = 0; i < count; i++) {
        t->numbers[i] = pairs[i].from;
        if (pairs[i].to == 0 || pairs[i].from > pairs[i].to)
            t->needed |= things[i].kind;
    }
    return 0;
}

int job_needed_many(struct job *j, const struct task_payload_object *objects, size_t count,
                    struct job_things *out, struct err *err)
{
    struct place from = {.storage = j->p.id.from},
                 to = {.storage = j->p.id.to, .bucket = j->p.id.to_bucket};
    struct version_places places = {&from, &to};
    struct version_pair pairs[PAYLOAD_OBJECTS_MAX];
    struct thing things[PAYLOAD_OBJECTS_MAX] = {0};

    BUG_ON(count > PAYLOAD_OBJECTS_MAX);
    for (size_t i = 0; i < count; i++)
        things[i] = (struct thing){THING_OBJECT, j->p.id.bucket, objects[i].name, STR_EMPTY};
    int code = version_read_pairs(j->t->o.app, j->run->arena, things, count, &places, pairs, err);
    for (size_t i = 0; code == 0 && i < count; i++) {
        out[i] = (struct job_things){.kinds = THINGS_OF_OBJECT, .needed = THINGS_OF_OBJECT};
        j->p.object = objects[i].name;
        if (pairs[i].from || pairs[i].to)
            code = job_needed(j, &out[i], err);
    }
    return code;
}

int job_confirm(struct job *j, const struct job_things *t, bool gone, struct err *err)
{
    struct place from = {.storage = j->p.id.from},
                 to = {.storage = j->p.id.to, .bucket = j->p.id.to_bucket};
    struct thing things[VERSION_THINGS_MAX];
    struct version_confirmation c = {.things = things,
                                     .numbers = t->numbers,
                                     .count = job_list_things(j, t->kinds, things),
                                     .source = &from,
                                     .destination = &to,
                                     .gone = gone,
                                     .locks = j->t->o.lock,
                                     .lock_key = lock_key(j->lock),
                                     .lock_token = lock_token(j->lock)};
    bool known = false;

    for (size_t i = 0; i < c.count; i++)
        known |= t->numbers[i] != 0;
    return known ? version_confirm(j->t->o.app, &c, err) : 0;
}
