/* Runs dumps and restores of refs as tasks. */
#include "lake/refs_task.h"

#include "lake/lake_int.h"

#include "base/clock.h"
#include "base/ids.h"

enum { REFS_TASK_KEPT_MS = MS_PER_DAY };

#define REFS_TASKS "tasks"

/* --- records --- */

static const struct proto_field refs_task_fields[] = {
    PROTO_FIELD(1, PROTO_STR, struct lake_refs_task, id),
    PROTO_FIELD(2, PROTO_BOOL, struct lake_refs_task, done),
    PROTO_FIELD(3, PROTO_TIME, struct lake_refs_task, updated_ms),
    PROTO_FIELD(4, PROTO_U64, struct lake_refs_task, rows),
    PROTO_FIELD(5, PROTO_STR, struct lake_refs_task, error),
    PROTO_FIELD(100, PROTO_U32, struct lake_refs_task, kind),
    PROTO_FIELD(101, PROTO_STR, struct lake_refs_task, refs.commits),
    PROTO_FIELD(102, PROTO_STR, struct lake_refs_task, refs.tags),
    PROTO_FIELD(103, PROTO_STR, struct lake_refs_task, refs.branches),
    PROTO_FIELD(104, PROTO_BOOL, struct lake_refs_task, force),
    PROTO_FIELD(105, PROTO_STR, struct lake_refs_task, last_error),
    {0},
};

static struct kv_name refs_task_key(struct arena *a, const struct lake_repo *r, struct str id)
{
    return lake_key_in(a, r->partition, REFS_TASKS, id);
}

void lake_refs_task_write(struct buf *out, const struct lake_refs_task *t)
{
    proto_write(out, refs_task_fields, t);
}

int lake_refs_task_read(struct lake_refs_task *out, struct str record, struct err *err)
{
    *out = (struct lake_refs_task){0};
    return proto_read(out, refs_task_fields, NULL, record, NULL) < 0 ||
                   out->kind > LAKE_REFS_RESTORE
               ? err_set(err, ERR_CORRUPT, "the record of a task is damaged")
               : 0;
}

/* Encodes the record with the present time. */
static struct str refs_task_encode(struct arena *a, struct lake_refs_task *t)
{
    struct buf record = {0};

    t->updated_ms = clock_wall_ms();
    lake_refs_task_write(&record, t);
    struct str value = buf_error(&record) < 0 ? STR_EMPTY : arena_str(a, buf_str(&record));
    buf_release(&record);
    return value;
}

static int refs_task_load(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                          struct lake_refs_task *out, struct err *err)
{
    struct kv_value row;
    int code = lake_row_get(l, a, r, refs_task_key(a, r, id), "task not found", &row, err);

    if (code == 0)
        code = lake_refs_task_read(out, row.bytes, err);
    if (code == 0)
        out->stamp = row.stamp;
    return code;
}

/* Writes the record, on the condition that its row has not changed since it was read. */
static int refs_task_save(struct lake *l, struct arena *a, const struct lake_repo *r,
                          struct lake_refs_task *t, struct err *err)
{
    struct str value = refs_task_encode(a, t);

    if (!value.p)
        return err_code(err, ERR_NO_MEMORY);
    int code = lake_put_same(l, a, r, refs_task_key(a, r, t->id), value, t->stamp, err);
    if (code == ERR_PRECONDITION)
        return err_set(err, ERR_BUSY, "another process works on the task");
    t->stamp = value;
    return code;
}

/* Removes old records of tasks. Failures are ignored, because the next task will try again. */
static void refs_task_forget_old(struct lake *l, struct arena *a, const struct lake_repo *r)
{
    struct kv_range range = {.prefix = STR(REFS_TASKS "/")};
    struct kv_scan *scan = NULL;
    struct lake_refs_task old;
    struct err err = {0};
    struct str key, value;
    int code = kv_scan_open(&scan, l->kv, NULL, r->partition, &range, &err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, &err)) == 0)
        if (lake_refs_task_read(&old, value, &err) == 0 &&
            old.updated_ms + REFS_TASK_KEPT_MS < clock_wall_ms())
            code = kv_remove(l->kv, (struct kv_name){r->partition, arena_str(a, key)}, &err);
    kv_scan_free(scan);
}

int lake_refs_task_start(struct lake *l, struct arena *a, const struct lake_repo *r,
                         const struct lake_refs_task *wanted, struct str *id, struct err *err)
{
    struct lake_refs_task t = {.kind = wanted->kind, .refs = wanted->refs, .force = wanted->force};
    char text[ID_TIME_LEN + 1];

    refs_task_forget_old(l, a, r);
    id_time(text);
    *id = t.id = arena_lower(a, str_z(text));
    struct str value = refs_task_encode(a, &t);
    return value.p ? lake_put_new(l, a, r, refs_task_key(a, r, t.id), value, err)
                   : err_code(err, ERR_NO_MEMORY);
}

int lake_refs_task_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                       enum lake_refs_kind kind, struct str id, struct lake_refs_task *out,
                       struct err *err)
{
    int code = refs_task_load(l, a, r, id, out, err);

    return code == 0 && out->kind != kind ? err_set(err, ERR_NOT_FOUND, "task not found") : code;
}

/* --- work --- */

struct refs_work {
    struct lake *lake;
    const struct lake_repo *repo;
    struct lake_refs_task task;
    bool (*ended)(void *ctx);
    void *ctx;
    uint64_t note_ns; /* time of the next write of the progress, by clock_mono_ns() */
    /* The two arenas are used in turn to encode the record, because the last written record must be
     * kept until the next one is written. */
    struct arena notes[2];
    unsigned note; /* number of records that were written */
};

/* Writes the progress into the record, if it is time for that. Returns false when the work must
 * stop: the task was ended, another process has changed the record (ERR_BUSY), or the repository
 * was deleted (ERR_NOT_FOUND). Other failures do not matter, because the result of the task is
 * written at the end in any case. */
static bool refs_work_goes_on(void *ctx, uint64_t rows)
{
    struct refs_work *w = ctx;
    struct err ignored = {0};

    if (w->ended && w->ended(w->ctx))
        return false;
    w->task.rows = rows;
    if (clock_mono_ns() < w->note_ns)
        return true;
    w->note_ns = clock_mono_ns() + w->lake->refs_note_ms * NS_PER_MS;
    struct arena *a = &w->notes[w->note % ARRAY_SIZE(w->notes)];
    arena_reset(a);
    int code = refs_task_save(w->lake, a, w->repo, &w->task, &ignored);
    /* If the record was not written, the other arena still has the last written one. */
    w->note += code == 0;
    return code != ERR_BUSY && code != ERR_NOT_FOUND;
}

/* Makes the last write of a restore put the record of the ended task, on the condition that no
 * other process has changed it (docs/lake-moving.md, D14). */
static int refs_work_end(void *ctx, struct arena *a, uint64_t rows, struct kv_change *out,
                         struct err *err)
{
    struct refs_work *w = ctx;
    struct lake_refs_task done = w->task;

    done.done = true;
    done.rows = rows;
    struct str value = refs_task_encode(a, &done);
    if (!value.p)
        return err_code(err, ERR_NO_MEMORY);
    *out = (struct kv_change){KV_PUT, refs_task_key(a, w->repo, done.id), value, KV_SAME,
                              w->task.stamp};
    return 0;
}

/* Whether the task would fail in the same way if it were tried again. ERR_UNSUPPORTED: the storage
 * has no such request, or a file is encrypted with a key that weir does not have. A missing bucket
 * (ERR_UNAVAILABLE) is not final, because its route or its storage may come back. */
static bool refs_work_is_final(const struct lake_refs_task *t, int code)
{
    static const int final[] = {ERR_INVALID,   ERR_NOT_FOUND, ERR_DENIED,
                                ERR_TOO_LARGE, ERR_CORRUPT,   ERR_UNSUPPORTED};

    for (size_t i = 0; i < ARRAY_SIZE(final); i++)
        if (code == final[i])
            return true;
    /* A restore puts no object, so its ERR_CONFLICT means that the repository has other refs than
     * the dump (D11). A dump may get this code from a storage that is busy with the same key. */
    return code == ERR_CONFLICT && t->kind == LAKE_REFS_RESTORE;
}

static int refs_work_run(struct refs_work *w, struct arena *a, struct err *err)
{
    struct lake_progress p = {refs_work_goes_on, w, refs_work_end};

    return w->task.kind == LAKE_REFS_DUMP
               ? lake_dump(w->lake, a, w->repo, &p, &w->task.refs, err)
               : lake_restore(w->lake, w->repo, &w->task.refs, w->task.force, &p, err);
}

/* Makes one try, and writes into the record how it ended. A failure to write why a try failed does
 * not matter, because the next try writes its own error. */
static int refs_work_try(struct refs_work *w, struct arena *a, struct err *err)
{
    struct lake_refs_task *t = &w->task;
    struct err ignored = {0};

    t->last_error = STR_EMPTY;
    int code = refs_work_run(w, a, err);
    if (code == 0 && t->kind == LAKE_REFS_RESTORE) /* its last write has put the record */
        return 0;
    struct str error = code < 0 ? arena_str(a, str_z(err->text)) : STR_EMPTY;
    if (code == 0 || refs_work_is_final(t, code)) {
        t->done = true;
        t->error = error;
        return refs_task_save(w->lake, a, w->repo, t, err);
    }
    t->last_error = error;
    if (code != ERR_CANCELED && refs_task_save(w->lake, a, w->repo, t, &ignored) < 0)
        log_debug(w->lake->o.log, "lake.refs_error", log_z("error", err->text));
    return code;
}

int lake_refs_task_work(struct lake *l, const struct lake_repo *r, struct str id,
                        bool (*ended)(void *ctx), void *ctx, struct err *err)
{
    struct arena a = {0};
    struct refs_work w = {.lake = l, .repo = r, .ended = ended, .ctx = ctx};
    int code = refs_task_load(l, &a, r, id, &w.task, err);

    if (code == 0 && !w.task.done)
        code = refs_work_try(&w, &a, err);
    arena_release(&w.notes[0]);
    arena_release(&w.notes[1]);
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code; /* the task or its repository was removed */
}
