/* Tasks for several objects: small objects of an initial copy, and objects whose changes were
 * recorded at once. The store is asked once for all of them. An object that fails gets a task of
 * its own, so it does not hold up the other objects, is tried again alone, and is reported by name.
 * The codes C1 and S10 are those of docs/replication.md. */
#include "replica/tasks/tasks_int.h"

enum {
    REQUESTS_EACH = 2,
    AGAIN_S = 2, /* seconds until an object that failed is tried again alone */
};

struct objects_run {
    struct job j;
    struct lock *locks[PAYLOAD_OBJECTS_MAX];
    struct job_things things[PAYLOAD_OBJECTS_MAX];
    struct listed failed[PAYLOAD_OBJECTS_MAX];
    size_t failed_count, done;
    uint64_t done_bytes;
    bool look;   /* a switch is under way, so task_payload_object.absent is not relied on */
    bool events; /* true: objects that changed; false: objects of an initial copy */
};
_Static_assert((int)PAYLOAD_OBJECTS_MAX <= (int)LOCKS_MAX, "all are locked at once");

/* Takes the locks of all objects in one step (C1). */
static int objects_lock(struct objects_run *r, struct err *err)
{
    struct str keys[PAYLOAD_OBJECTS_MAX];
    const struct task_payload *p = &r->j.p;
    struct arena *a = r->j.run->arena;

    for (size_t i = 0; i < p->object_count; i++) {
        struct buf key = {0};
        lock_key_object(&key, p->id.to, job_to_bucket(&r->j), p->objects[i].name);
        keys[i] = arena_str(a, buf_str(&key));
        buf_release(&key);
    }
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return lock_take_many(r->locks, r->j.t->o.locks, keys, p->object_count, err);
}

/* Copies one object if the destination needs it. ERR_BUSY: another worker has its lock. */
static int objects_bring(struct objects_run *r, size_t i, struct err *err)
{
    struct job *j = &r->j;
    const struct task_payload_object *object = &j->p.objects[i];

    if (!r->locks[i])
        return ERR_BUSY;
    j->p.object = object->name;
    j->lock = r->locks[i];
    int code = job_bring_object(j, &r->things[i], object->absent && !r->look, err);
    j->lock = NULL;
    return code;
}

/* Sets *out to the task that the object would have got if it had been recorded or listed alone. */
static int object_task(struct objects_run *r, const struct task_payload_object *object,
                       struct task *out, struct err *err)
{
    struct job *j = &r->j;
    struct arena *a = j->run->arena;
    struct task_payload p = {.id = j->p.id, .object = object->name};
    struct thing thing = {THING_OBJECT, j->p.id.bucket, object->name, STR_EMPTY};
    struct buf text = BUF_INIT(TASK_PAYLOAD_MAX);

    if (!r->events) {
        *out = task_of_copy(a, &j->p.id, object, j->run->task->queue);
        return 0;
    }
    task_payload_write(&text, &p, PAYLOAD_OBJECT);
    *out = (struct task){.type = STR("object:sync"),
                         .queue = j->run->task->queue,
                         .payload = arena_str(a, buf_str(&text))};
    buf_release(&text);
    return replication_event_id(a, &p.id, out->type, &thing, &out->id, err);
}

static int objects_bring_all(struct objects_run *r, struct err *err)
{
    struct job *j = &r->j;

    for (size_t i = 0; i < j->p.object_count; i++) {
        const struct task_payload_object *object = &j->p.objects[i];
        struct err why = {0};
        int code = objects_bring(r, i, &why);
        if (task_ended(j->run))
            return err_set(err, ERR_CANCELED, "the task has ended");
        if (code == 0) {
            r->done++;
            r->done_bytes += object->size;
            continue;
        }
        struct listed *failed = &r->failed[r->failed_count++];
        failed->bytes = object->size;
        code = object_task(r, object, &failed->task, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* Gives each object that failed a task of its own, which reports why it fails. */
static int objects_hand_over(struct objects_run *r, struct err *err)
{
    struct job *j = &r->j;
    struct listed_split s = {.id = j->p.id,
                             .task = j->run->task,
                             .bytes = r->done_bytes,
                             .objects = r->done,
                             .failed = r->failed,
                             .count = r->failed_count,
                             .delay_s = AGAIN_S};

    if (r->failed_count == 0)
        return 0;
    int code = replication_split(j->t->o.replications, &s, err);
    if (code == 0)
        j->run->done = true;
    return code;
}

/* Sets `look` to whether a switch is under way. During a switch the destination may lack an object
 * because a client has just deleted it (S10). */
static int objects_check_switch(struct objects_run *r, struct err *err)
{
    struct replication_view *view = NULL;
    int code = replications_view(r->j.t->o.replications, &view, err);

    if (code == 0)
        r->look = replication_view_switch(view, r->j.p.id.from, r->j.p.id.bucket);
    replication_view_unref(view);
    return code;
}

static int objects_run_all(struct objects_run *r, struct task_run *run, struct err *err)
{
    struct job *j = &r->j;
    int code = job_begin(j, run, PAYLOAD_COPIES, REQUESTS_EACH, err);

    if (code == 0)
        code = objects_check_switch(r, err);
    if (code == 0)
        code = objects_lock(r, err);
    if (code == 0)
        code = job_needed_many(j, j->p.objects, j->p.object_count, r->things, err);
    if (code == 0)
        code = job_open(j, false, err);
    if (code == 0)
        code = objects_bring_all(r, err);
    if (code == ERR_NO_BUCKET) /* the task bucket:delete handles a source without the bucket */
        code = ERR_END;
    lock_release_many(r->locks, j->p.object_count);
    return code < 0 ? code : objects_hand_over(r, err);
}

static int objects_run_task(struct task_run *run, bool events, struct err *err)
{
    struct objects_run *r = arena_alloc(run->arena, sizeof(*r));

    if (!r)
        return err_code(err, ERR_NO_MEMORY);
    *r = (struct objects_run){.events = events};
    int code = objects_run_all(r, run, err);
    return job_end(&r->j, code, err);
}

int task_objects_copy(struct task_run *run, struct err *err)
{
    return objects_run_task(run, false, err);
}

int task_objects_sync(struct task_run *run, struct err *err)
{
    return objects_run_task(run, true, err);
}
