/* Aborts uploads that a copy began and nobody finished, because its task was archived or deleted,
 * or its replication was removed. With each upload a task is scheduled that aborts the upload when
 * no copy can continue it any more. Other uploads are never aborted, because they may be a
 * client's. */
#include "replica/tasks/tasks_int.h"
#include "base/clock.h"
#include "object/overlay.h"

#include "base/json.h"

enum {
    BUSY_UPLOAD_S = 60, /* seconds until the next check of an upload whose object is locked */
    /* Seconds until the next check of an upload that a copy may continue. */
    REMEMBERED_S = S_PER_HOUR,
    UPLOAD_LATER_S = 60, /* the task runs this many seconds after the key `w:copy:…` has expired */
    ID_MAX_BYTES = 32 * 1024, /* most bytes of a task's id */
};

/* An upload that a copy may have left behind. */
struct left {
    struct str user, storage, bucket, object, upload;
};

void upload_memory_key(struct buf *out, struct str storage, struct str bucket, struct str object)
{
    buf_append_z(out, "w:copy:");
    store_key_part(out, storage);
    buf_append_char(out, ':');
    store_key_part(out, bucket);
    buf_append_char(out, ':');
    store_key_part(out, object);
}

/* Returns the id of the upload in a value of the key `w:copy:…`: "<etag> <hash> <upload>"
 * (copy_parts.c). */
struct str upload_of_memory(struct str value)
{
    struct str head, upload = STR_EMPTY;

    str_cut(value, ' ', &head, &value);
    str_cut(value, ' ', &head, &upload);
    return upload;
}

/* --- the task --- */

static void write_id(struct buf *out, const struct left *l)
{
    const struct str parts[] = {l->storage, l->bucket, l->object, l->upload};

    buf_append_z(out, "abort");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        buf_append_char(out, ':');
        store_key_part(out, parts[i]);
    }
}

static struct left left_of(const struct job *j, struct str upload)
{
    return (struct left){j->p.id.user, j->p.id.to, job_to_bucket(j), j->p.object, upload};
}

int upload_watch(const struct job *j, struct str upload, int64_t memory_s, struct err *err)
{
    struct left l = left_of(j, upload);
    struct buf payload = BUF_INIT(TASK_PAYLOAD_MAX), id = BUF_INIT(ID_MAX_BYTES);
    struct json_out w;

    if (!j->t->o.queue)
        return 0;
    json_out_init(&w, &payload);
    json_out_open(&w, '{');
    json_out_member_str(&w, "User", l.user);
    json_out_member_str(&w, "Storage", l.storage);
    json_out_member_str(&w, "Bucket", l.bucket);
    json_out_member_str(&w, "Name", l.object);
    json_out_member_str(&w, "UploadID", l.upload);
    json_out_close(&w, '}');
    write_id(&id, &l);
    struct task t = {.type = STR(UPLOAD_ABORT_TYPE),
                     .payload = buf_str(&payload),
                     .id = buf_str(&id),
                     .queue = UPLOAD_ABORT_QUEUE};
    int code = buf_error(&payload) < 0 ? buf_error(&payload) : buf_error(&id);
    if (code == 0)
        code = queue_add(j->t->o.queue, &t, memory_s + UPLOAD_LATER_S, err);
    buf_release(&payload);
    buf_release(&id);
    return code == ERR_EXISTS ? 0 : code;
}

/* Deletes the upload's task. A failure does no harm, because the task then finds nothing to
 * abort. */
void upload_unwatch(const struct job *j, struct str upload)
{
    struct left l = left_of(j, upload);
    struct buf id = BUF_INIT(ID_MAX_BYTES);

    write_id(&id, &l);
    if (j->t->o.queue && upload.len)
        (void)!queue_delete(j->t->o.queue, UPLOAD_ABORT_QUEUE, buf_str(&id), NULL);
    buf_release(&id);
}

/* --- the handler of the task --- */

static int read_left(struct left *out, struct arena *a, struct str text, struct err *err)
{
    struct {
        const char *name;
        struct str *to;
    } members[] = {{"User", &out->user},
                   {"Storage", &out->storage},
                   {"Bucket", &out->bucket},
                   {"Name", &out->object},
                   {"UploadID", &out->upload}};
    json_t *payload = NULL;
    int code = json_read(&payload, text, err) < 0 ? ERR_INVALID : 0;

    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        *members[i].to = arena_str(a, json_get_str(payload, members[i].name, STR_EMPTY));
        if (!members[i].to->len)
            code = ERR_INVALID;
    }
    json_decref(payload);
    return code < 0 ? err_set(err, code, "the payload names no upload") : 0;
}

/* Checks that no copy remembers the upload. ERR_AGAIN: a copy remembers it, and may continue it.
 * The caller holds the object's lock. */
static int check_forgotten(struct tasks *t, struct task_run *run, const struct left *l,
                           struct err *err)
{
    struct buf key = BUF_INIT(ID_MAX_BYTES);
    struct reply *reply = NULL;

    upload_memory_key(&key, l->storage, l->bucket, l->object);
    int code = store_call(t->o.app, run->arena, &reply, err, STR("GET"), buf_str(&key));
    buf_release(&key);
    if (code < 0 || reply->type != REPLY_BULK || !str_eq(upload_of_memory(reply->str), l->upload))
        return code;
    run->put_back_s = REMEMBERED_S;
    return err_set(err, ERR_AGAIN, "a copy may go on with the upload");
}

static int abort_upload(struct storage *s, const struct left *l, struct err *err)
{
    struct upload_info upload = {.key = l->object, .id = l->upload};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, l->user, l->bucket, err);

    if (code == 0)
        code = b->ops->upload_abort(b, &upload, err);
    if (b)
        b->ops->unref(b);
    return code == ERR_NO_BUCKET || code == ERR_NOT_FOUND ? 0 : code;
}

static int abort_locked(struct task_run *run, const struct left *l, struct storage *s,
                        struct err *err)
{
    struct tasks *t = run->ctx;
    struct lock *lock = NULL;
    struct buf key = {0};

    lock_key_object(&key, l->storage, l->bucket, l->object);
    int code = lock_take(&lock, t->o.locks, buf_str(&key), err);
    buf_release(&key);
    if (code == ERR_BUSY) {
        run->put_back_s = BUSY_UPLOAD_S;
        return ERR_AGAIN;
    }
    if (code == 0)
        code = check_forgotten(t, run, l, err);
    if (code == 0)
        code = abort_upload(s, l, err);
    lock_release(lock);
    return code;
}

int task_upload_abort(struct task_run *run, struct err *err)
{
    struct tasks *t = run->ctx;
    struct left l = {0};
    int code = read_left(&l, run->arena, run->task->payload, err);

    if (code < 0)
        return code;
    struct storage *s = t->o.find(t->o.ctx, l.storage);
    if (!s) {
        run->put_back_s = ELSEWHERE_S;
        return err_set(err, ERR_AGAIN, "the storage " STR_FMT " is not here", STR_ARG(l.storage));
    }
    code = abort_locked(run, &l, s, err);
    return code == ERR_INVALID ? ERR_PEER : code;
}
