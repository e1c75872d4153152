/* The task of a restore to another git server (archive/restores.h). */
#include "archive/restores_int.h"

#include "archive/restore.h"
#include "archive/saved.h"
#include "base/clock.h"
#include "base/ids.h"
#include "os/file.h"
#include "room/services.h"

#include <inttypes.h>
#include <limits.h>

enum {
    RESTORE_NOTE_MS = 1000, /* progress within a bundle is written at most this often */
    RESTORE_PUSH_MS = 6 * MS_PER_HOUR,
};

struct restore_work {
    struct task_run *run;
    struct archive *archive;
    struct restore_wish wish;
    struct restore_progress p;
    uint64_t begun_ns, noted_ns; /* when this run of the task began; last written its progress */
    uint64_t begun_bytes;        /* p.bytes at that time */
    uint64_t now_bytes;          /* bytes of the present bundle that were read */
};

static bool work_stops(void *ctx)
{
    const struct restore_work *w = ctx;

    return task_ended(w->run);
}

/* --- progress --- */

static uint64_t work_rate(const struct restore_work *w)
{
    uint64_t ms = (clock_mono_ns() - w->begun_ns) / NS_PER_MS;

    return ms ? (w->p.bytes + w->now_bytes - w->begun_bytes) * MS_PER_S / ms : 0;
}

/* Writes the numbers to the store. `after` is the key of the bundle that was done last; empty: it
 * is not written. */
static int work_note(struct restore_work *w, struct str now, struct str after, struct err *err)
{
    struct arena a = ARENA_INIT(64 * KIB);
    const struct restore_progress *p = &w->p;
    const struct str pairs[] = {
        STR("state"),       str_z(restore_state_names[RESTORE_RUNNING]),
        STR("now"),         now,
        STR("total"),       arena_fmt(&a, "%" PRIu64, p->total),
        STR("total_bytes"), arena_fmt(&a, "%" PRIu64, p->total_bytes),
        STR("done"),        arena_fmt(&a, "%" PRIu64, p->done),
        STR("failed"),      arena_fmt(&a, "%" PRIu64, p->failed),
        STR("refs"),        arena_fmt(&a, "%" PRIu64, p->refs),
        STR("bytes"),       arena_fmt(&a, "%" PRIu64, p->bytes + w->now_bytes),
        STR("rate"),        arena_fmt(&a, "%" PRIu64, work_rate(w)),
        STR("error"),       p->error,
        STR("bytes_done"),  arena_fmt(&a, "%" PRIu64, p->bytes),
        STR("after"),       after};
    int code = restore_note(w->archive, p->id, pairs,
                            after.len ? ARRAY_SIZE(pairs) : ARRAY_SIZE(pairs) - 4, err);

    w->noted_ns = clock_mono_ns();
    arena_release(&a);
    return code;
}

static void work_progress(void *ctx, uint64_t bytes)
{
    struct restore_work *w = ctx;
    struct err err = {0};

    w->now_bytes = bytes;
    if (clock_mono_ns() - w->noted_ns < RESTORE_NOTE_MS * NS_PER_MS)
        return;
    if (work_note(w, w->p.now, STR_EMPTY, &err) < 0)
        log_debug(&w->run->log, "archive.restore", log_z("why", err.text));
}

/* --- one bundle --- */

static int work_check_time(const struct restore_work *w, const struct object_info *info,
                           struct err *err)
{
    struct bundle_meta meta;
    char first[CLOCK_ISO_LEN + 1];

    if (!w->wish.has_at || bundle_meta_read(&meta, info) < 0 || !meta.first_s ||
        w->wish.at_s >= meta.first_s)
        return 0;
    clock_iso(meta.first_s * MS_PER_S, first);
    return err_set(err, ERR_RANGE, "its first sync was at %s, after the time that was asked for",
                   first);
}

static int work_fetch(struct restore_work *w, struct saved *s, struct arena *a, const char *folder,
                      struct restore_result *out, struct err *err)
{
    struct restore_options o = {.folder = folder,
                                .has_at = w->wish.has_at,
                                .at_s = w->wish.at_s,
                                .progress = work_progress,
                                .stop = work_stops,
                                .ctx = w};
    struct shelf_body body = {0};
    int code = shelf_get(&s->shelf, a, s->job.key, NULL, &body, err);

    if (code == 0)
        code = work_check_time(w, &body.info, err);
    if (code == 0 && w->archive->scratch_max && body.len > w->archive->scratch_max)
        code = err_set(err, ERR_TOO_LARGE, "the bundle is larger than archive.scratch");
    if (code == 0)
        code = restore_bundle(out, body.body, &o, err);
    shelf_body_close(&body);
    return code;
}

static int work_push(struct restore_work *w, const char *folder, struct str name, struct err *err)
{
    const char *ca = w->archive->services->conf->archive.ca;
    struct buf url = BUF_INIT(2 * RESTORE_URL_MAX);
    struct restore_push p = {.folder = folder,
                             .credentials = w->wish.credentials,
                             .ca_file = *ca ? ca : NULL,
                             .timeout_ms = RESTORE_PUSH_MS,
                             .stop = work_stops,
                             .ctx = w};

    if (w->wish.name.len)
        buf_append_str(&url, w->wish.url);
    else
        restore_target_append(&url, w->wish.url, name);
    p.url = url.p;
    int code = buf_error(&url) < 0 ? err_code(err, ERR_NO_MEMORY) : restore_push(&p, err);
    buf_release(&url);
    return code;
}

/* Makes the repository in the scratch folder, pushes it, and removes it. */
static int work_bundle(struct restore_work *w, struct str name, struct err *err)
{
    struct arena a = ARENA_INIT(16 * MIB);
    char id[ID_HEX_LEN + 1];
    struct restore_result r = {0};
    struct err ignored = {0};
    struct saved s;
    int code = saved_open(&s, w->archive, &a, &w->wish.account, name, err);

    id_hex(id);
    const char *folder = arena_z(&a, arena_fmt(&a, "%s/restore-%s", w->archive->scratch, id));
    if (code == 0)
        code = work_fetch(w, &s, &a, folder, &r, err);
    if (code == 0 && r.refs)
        code = work_push(w, folder, name, err);
    /* What cannot be removed now is removed at the next start, because it is in scratch. */
    if (file_exists(folder) && dir_remove_tree(folder, &ignored) < 0)
        log_debug(&w->run->log, "archive.restore", log_z("why", ignored.text));
    saved_close(&s);
    w->p.refs += code == 0 ? r.refs : 0;
    arena_release(&a);
    return code;
}

/* Whether an error is one of the machine, the satellite or the store, so that another try of the
 * task may succeed. All others are those of the bundle or of the server that it is pushed to. */
static bool work_may_retry(int code)
{
    static const int codes[] = {ERR_UNAVAILABLE, ERR_OFFLINE,   ERR_TIMEOUT,  ERR_IO,
                                ERR_NO_SPACE,    ERR_NO_MEMORY, ERR_CANCELED, ERR_CLOSED};

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (code == codes[i])
            return true;
    return false;
}

/* Restores one bundle and notes the result. A bundle that fails does not stop the others. */
static int work_one(struct restore_work *w, struct str name, const struct object_info *info,
                    struct err *err)
{
    struct err one = {0};

    w->p.now = name;
    int code = work_note(w, name, STR_EMPTY, err);
    if (code < 0)
        return code;
    code = work_bundle(w, name, &one);
    w->now_bytes = 0;
    if (code < 0 && work_may_retry(code))
        return err_set(err, code, STR_FMT ": %s", STR_ARG(name), one.text);
    w->p.done += code == 0;
    w->p.failed += code < 0;
    w->p.bytes += info->size;
    if (code < 0) {
        w->p.error = arena_fmt(w->run->arena, STR_FMT ": %s", STR_ARG(name), one.text);
        log_warn(&w->run->log, "archive.restore_failed", log_s("bundle", name),
                 log_z("why", one.text));
    }
    return work_note(w, STR_EMPTY, info->key, err);
}

/* --- all bundles --- */

static struct str work_name(const struct restore_work *w, struct str key)
{
    struct str name = saved_name(key);

    return w->wish.all || !saved_is_copy(name) ? name : STR_EMPTY;
}

/* Calls fn for every bundle of the account behind the key `after`. */
static int work_each(struct restore_work *w, struct str after,
                     int (*fn)(struct restore_work *w, struct str name,
                               const struct object_info *info, struct err *err),
                     struct err *err)
{
    struct arena shelves = ARENA_INIT(MIB), a = {0};
    struct list_result page = {.more = true};
    struct buf next = {0};
    struct shelf shelf = {0};
    int code = shelf_open(&shelf, w->archive->satellites, &shelves, &w->wish.account, err);

    buf_append_str(&next, after);
    while (code == 0 && page.more) {
        struct list_options o = {.prefix = archive_folder(&w->wish.account, &a),
                                 .after = buf_str(&next),
                                 .limit = OBJECT_LIST_MAX};
        code = shelf_list(&shelf, &a, &o, &page, err);
        for (size_t i = 0; code == 0 && i < page.count; i++) {
            struct str name = work_name(w, page.entries[i].info.key);
            if (task_ended(w->run))
                code = err_code(err, ERR_CANCELED);
            else if (name.len)
                code = fn(w, name, &page.entries[i].info, err);
        }
        buf_reset(&next);
        buf_append_str(&next, page.next);
        arena_reset(&a);
    }
    shelf_close(&shelf);
    buf_release(&next);
    arena_release(&a);
    arena_release(&shelves);
    return code == ERR_NO_BUCKET ? 0 : code;
}

static int work_count(struct restore_work *w, struct str name, const struct object_info *info,
                      struct err *err)
{
    w->p.total++;
    w->p.total_bytes += info->size;
    return 0;
}

/* The bundle that the wish names. */
static int work_named(struct restore_work *w, struct err *err)
{
    struct object_info info = {0};
    struct saved s;
    int code = saved_open(&s, w->archive, w->run->arena, &w->wish.account, w->wish.name, err);

    if (code == 0)
        code = shelf_head(&s.shelf, w->run->arena, s.job.key, &info, err);
    saved_close(&s);
    if (code == ERR_NOT_FOUND || code == ERR_NO_BUCKET) {
        w->p.failed = 1;
        w->p.error = STR("there is no such bundle");
        return work_note(w, STR_EMPTY, STR("-"), err);
    }
    w->p.total = 1;
    w->p.total_bytes = info.size;
    return code < 0 ? code : work_one(w, w->wish.name, &info, err);
}

static int work_all(struct restore_work *w, struct str after, struct err *err)
{
    w->p.total = w->p.total_bytes = 0;
    int code = work_each(w, STR_EMPTY, work_count, err);

    if (code == 0)
        code = work_each(w, after, work_one, err);
    if (code == 0 && w->p.total == 0) {
        w->p.failed = 1;
        w->p.error = STR("the archive has no bundle of the account");
        code = work_note(w, STR_EMPTY, STR("-"), err);
    }
    return code;
}

/* --- the task --- */

/* Ends a run of the task that was stopped: somebody has canceled the restore, or the worker stops
 * and another one goes on. */
static int work_stopped(struct restore_work *w, struct err *err)
{
    struct restore_resume r;
    int code = restore_resume_read(w->archive, w->run->arena, w->p.id, &r, err);

    if (code == 0 && r.canceled)
        return restore_note_end(w->archive, w->p.id, RESTORE_CANCELED, err);
    return ERR_AGAIN;
}

static int work_end(struct restore_work *w, struct err *err)
{
    log_info(&w->run->log, "archive.restored", log_u("done", w->p.done),
             log_u("failed", w->p.failed), log_u("bytes", w->p.bytes));
    return restore_note_end(w->archive, w->p.id, w->p.failed ? RESTORE_FAILED : RESTORE_DONE, err);
}

int restores_handle(struct task_run *run, struct err *err)
{
    struct restore_work w = {.run = run, .archive = run->ctx};
    struct restore_resume r = {0};
    int code = restore_wish_read(w.archive, run->arena, run->task->payload, &w.wish, err);

    if (code < 0)
        return code;
    code = restore_resume_read(w.archive, run->arena, restore_id(run->arena, &w.wish), &r, err);
    if (code < 0)
        return code;
    w.p = r.at;
    w.p.bytes = w.begun_bytes = r.bytes_done;
    w.begun_ns = w.noted_ns = clock_mono_ns();
    if (r.canceled)
        code = ERR_CANCELED;
    /* The only bundle was done, and the worker was killed before it wrote the end. */
    else if (w.wish.name.len && r.after.len)
        code = 0;
    else
        code = w.wish.name.len ? work_named(&w, err) : work_all(&w, r.after, err);
    if (code == ERR_CANCELED)
        return work_stopped(&w, err);
    return code < 0 ? code : work_end(&w, err);
}
