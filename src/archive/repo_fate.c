/* Handles changed names: repositories that were renamed, and names that another repository uses
 * now. Also handles bundles that cannot be appended to (docs/archive.md, "When names change").
 * Saved data are never lost: a bundle is copied aside before a fresh one replaces it. */
#include "archive/repo_int.h"

#include "archive/schedule.h"
#include "base/clock.h"

/* --- the stored bundle --- */

int repo_open_bundle(struct repo_work *w, struct err *err)
{
    int code;

    if (w->has_old)
        bundle_old_release(&w->old);
    code = bundle_open(&w->old, &w->job, err);
    w->has_old = code == 0;
    if (w->has_old && w->old.meta.fence > SCHEDULE_FENCE_MAX) {
        log_warn(w->scope->archive->log, "archive.fence_ignored", log_s("key", w->job.key),
                 log_u("fence", w->old.meta.fence));
        /* No claim can have had this fence; the bundle's ETag still keeps writers apart. */
        w->old.meta.fence = 0;
    }
    return code;
}

/* Makes a part of a name from the time at which the object was written, such as the time in
 * `<repo>@<time>.bundle`. */
static struct str repo_time_mark(struct repo_work *w, const struct object_info *info,
                                 const char *why)
{
    struct bundle_meta meta;
    char at[CLOCK_BASIC_LEN + 1];
    bool known = bundle_meta_read(&meta, info) == 0 && meta.mtime_ms > 0;

    clock_basic(known ? meta.mtime_ms : info->modified_ms, at);
    return arena_fmt(w->arena, "%s%s", why, at);
}

/* Copies an object to a free key. Fails if the key exists, so that an object that was kept aside is
 * never replaced. */
static int repo_copy_new(struct repo_work *w, struct str to, const struct object_info *from,
                         struct err *err)
{
    struct put_options o = {
        .meta = {.headers = from->meta.headers, .header_count = from->meta.header_count},
        .conditions.if_none_match = STR("*"),
    };

    return shelf_copy(w->scope->shelf, w->arena, to, from->key, from, &o, err);
}

/* Whether one object is a copy of the other. A copy of an object with parts may have another ETag;
 * then the metadata are compared. They are enough even where pack-sum is missing (in a bundle that
 * was written as an upload), because no two writes have the same header, size, fence and time. */
static bool repo_is_copy(const struct object_info *there, const struct object_info *from)
{
    struct bundle_meta l, r;

    if (there->size != from->size)
        return false;
    return str_eq(there->etag, from->etag) ||
           (bundle_meta_read(&l, there) == 0 && bundle_meta_read(&r, from) == 0 &&
            l.header_sum[0] && strcmp(l.pack_sum, r.pack_sum) == 0 &&
            strcmp(l.header_sum, r.header_sum) == 0 && strcmp(l.source_id, r.source_id) == 0 &&
            l.objects == r.objects && l.fence == r.fence && l.mtime_ms == r.mtime_ms);
}

static struct str repo_aside_key(const struct repo_work *w, struct str name, struct str mark)
{
    return repo_key(
        w, ARCHIVE_EXTRA,
        arena_fmt(w->arena, STR_FMT "@" STR_FMT ".bundle", STR_ARG(name), STR_ARG(mark)));
}

/* Copies the stored bundle to `<repo>@<mark>.bundle`, unless an earlier try has made the copy. If
 * that key has a different object, the name of the copy includes the time too. */
static int repo_copy_aside(struct repo_work *w, struct str mark, const struct object_info *from,
                           struct str *to, struct err *err)
{
    enum { TRIES = 100 };
    struct str name = w->item->next.name;
    struct str timed = repo_time_mark(w, from, "-");
    struct object_info there;

    for (int i = 0; i < TRIES; i++) {
        struct str full =
            i == 0   ? mark
            : i == 1 ? arena_fmt(w->arena, STR_FMT STR_FMT, STR_ARG(mark), STR_ARG(timed))
                     : arena_fmt(w->arena, STR_FMT STR_FMT "-%d", STR_ARG(mark), STR_ARG(timed), i);
        *to = repo_aside_key(w, name, full);
        int code = shelf_head(w->scope->shelf, w->arena, *to, &there, err);
        if (code == ERR_NOT_FOUND) {
            code = repo_copy_new(w, *to, from, err);
            if (code != ERR_PRECONDITION)
                return code;
            /* another thread has made the copy meanwhile */
            code = shelf_head(w->scope->shelf, w->arena, *to, &there, err);
        }
        if (code < 0 || repo_is_copy(&there, from))
            return code;
    }
    return err_set(err, ERR_CONFLICT, "too many bundles are kept beside " STR_FMT, STR_ARG(name));
}

int repo_put_aside(struct repo_work *w, const char *why, struct str mark, struct err *err)
{
    struct object_info info;
    struct str to;
    int code = shelf_head(w->scope->shelf, w->arena, w->job.key, &info, err);

    if (w->has_old)
        bundle_old_release(&w->old);
    w->has_old = false;
    if (code < 0)
        return repo_fail_storage(w, "upload", code, err);
    info.key = w->job.key;
    if (mark.len == 0)
        mark = repo_time_mark(w, &info, why);
    code = repo_copy_aside(w, mark, &info, &to, err);
    if (code < 0)
        return repo_fail_storage(w, "upload", code, err);
    w->replaces = info.etag;
    log_info(w->scope->archive->log, "archive.bundle_put_aside", log_s("key", w->job.key),
             log_s("to", to));
    return 0;
}

/* --- renamed --- */

static bool repo_is_renamed(const struct repo_work *w)
{
    const struct record_repo *old = w->item->old;

    return old && !str_eq(old->name, w->item->next.name);
}

int repo_say_renamed(struct repo_work *w, struct str old_name, struct str now_is, struct err *err)
{
    struct err text = {0};

    err_set(&text, ERR_CONFLICT, "the repository is now " STR_FMT, STR_ARG(now_is));
    repo_fail(w, ARCHIVE_RENAMED, "list", ERR_CONFLICT, &text);
    return repo_error_put(w, old_name, err);
}

/* Copies the ZIP file to the new name. If there is none, the sync makes a new ZIP file. */
static int repo_take_zip(struct repo_work *w, struct err *err)
{
    struct str to = repo_key(w, ARCHIVE_ZIP, w->item->next.name);
    struct str from = repo_key(w, ARCHIVE_ZIP, w->item->old->name);
    struct object_info info;
    int code = shelf_head(w->scope->shelf, w->arena, from, &info, err);

    if (code == 0)
        code = shelf_copy(w->scope->shelf, w->arena, to, from, &info, NULL, err);
    if (code != ERR_NOT_FOUND && code != ERR_CONFLICT)
        return code;
    w->item->next.zip = STR_EMPTY;
    return 0;
}

/* Copies a bundle to the repository's new name. At the new name there must be no bundle, or only
 * the one that was put aside before (w->replaces). ERR_CONFLICT: the bundle has changed since
 * `info` was read. */
static int repo_take_bundle(struct repo_work *w, const struct object_info *info, struct err *err)
{
    struct put_options o = {
        .meta = {.headers = info->meta.headers, .header_count = info->meta.header_count}};

    if (w->replaces.len)
        o.conditions.if_match = arena_fmt(w->arena, "\"" STR_FMT "\"", STR_ARG(w->replaces));
    else
        o.conditions.if_none_match = STR("*");
    int code = shelf_copy(w->scope->shelf, w->arena, w->job.key, info->key, info, &o, err);
    if (code == ERR_PRECONDITION && w->replaces.len == 0)
        code = 0; /* another thread has stored a bundle there; it is checked when it is opened */
    if (code == 0)
        w->replaces = STR_EMPTY;
    return code;
}

/* Finds a bundle at `key`. *ours is set if the bundle belongs to this repository. If another
 * repository has taken the old name since, the bundle belongs to that one and must not be
 * copied. */
static int repo_find_ours(struct repo_work *w, struct str key, struct object_info *info, bool *ours,
                          struct err *err)
{
    struct bundle_meta meta;
    int code = shelf_head(w->scope->shelf, w->arena, key, info, err);

    info->key = key;
    *ours = code == 0 &&
            (bundle_meta_read(&meta, info) < 0 || str_eq(str_z(meta.source_id), w->job.source_id));
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* At the old name there is the bundle of another repository, or another thread is about to store
 * one. That thread first puts this repository's bundle aside, so the bundle that was put aside is
 * copied. */
static int repo_take_aside(struct repo_work *w, struct err *err)
{
    struct str key = repo_aside_key(w, w->item->old->name, w->job.source_id);
    struct object_info info;
    bool ours;

    w->item->next.zip = STR_EMPTY;
    if (str_eq(key, w->job.key)) /* the repository already uses the name of that copy */
        return 0;
    int code = repo_find_ours(w, key, &info, &ours, err);
    return code == 0 && ours ? repo_take_bundle(w, &info, err) : code;
}

static int repo_take_along(struct repo_work *w, struct str now_is, struct err *err)
{
    struct str key = repo_key(w, ARCHIVE_BUNDLE, w->item->old->name);
    struct object_info info;
    bool ours;
    int code = repo_find_ours(w, key, &info, &ours, err);

    if (code < 0 || !ours)
        return code < 0 ? code : repo_take_aside(w, err);
    /* The bundle is copied last: if this sync is killed before that, the next sync does all steps
     * again. */
    if (!w->item->old_name_taken)
        code = repo_say_renamed(w, w->item->old->name, now_is, err);
    if (code == 0)
        code = repo_take_zip(w, err);
    if (code == 0)
        code = repo_take_bundle(w, &info, err);
    return code == ERR_CONFLICT || code == ERR_NOT_FOUND ? repo_take_aside(w, err) : code;
}

/* Copies the bundle and the ZIP file of a renamed repository to the new name, so that nothing is
 * fetched again. The old objects stay. */
static int repo_rename(struct repo_work *w, struct err *err)
{
    struct str now_is = arena_fmt(w->arena, STR_FMT "/" STR_FMT, STR_ARG(w->scope->login),
                                  STR_ARG(w->item->next.name));
    int code = repo_take_along(w, now_is, err);

    if (code < 0)
        return repo_fail_storage(w, "upload", code, err);
    w->fault = (struct repo_fault){0};
    log_info(w->scope->archive->log, "archive.renamed", log_s("from", w->item->old->name),
             log_s("to", now_is));
    return 0;
}

/* --- before a sync --- */

/* Whether the stored bundle belongs to another repository, which had this name before. */
static bool repo_is_of_another(const struct repo_work *w)
{
    struct str source = str_z(w->old.meta.source_id);

    return w->old.has_meta && source.len && !str_eq(source, w->job.source_id);
}

/* The stored bundle belongs to another repository, which had this name before. Puts it aside. */
static int repo_oust(struct repo_work *w, struct err *err)
{
    struct str source = arena_str(w->arena, str_z(w->old.meta.source_id));

    w->item->next.extra = STR_EMPTY;
    if (!repo_is_renamed(w))
        w->item->next.zip = STR_EMPTY;
    return repo_put_aside(w, "", source, err);
}

int repo_settle(struct repo_work *w, struct err *err)
{
    int code = repo_open_bundle(w, err);
    bool ousted = code == 0 && repo_is_of_another(w);

    /* The options' state in the record describes objects under the old name. */
    if (repo_is_renamed(w))
        w->item->next.extra = STR_EMPTY;
    if (ousted && (code = repo_oust(w, err)) < 0)
        return code;
    if (repo_is_renamed(w) && (ousted || code == ERR_NOT_FOUND)) {
        code = repo_rename(w, err);
        if (code < 0)
            return code;
        /* No bundle was copied, so the stored bundle is still that of the other repository. */
        if (w->replaces.len)
            return 0;
        code = repo_open_bundle(w, err);
        if (code == 0 && repo_is_of_another(w))
            return repo_oust(w, err);
    }
    if (code == ERR_CORRUPT)
        return repo_put_aside(w, "damaged-", STR_EMPTY, err);
    if (code == ERR_TOO_LARGE) /* its header is past the limits of this weir */
        return repo_put_aside(w, "", STR_EMPTY, err);
    if (code < 0 && code != ERR_NOT_FOUND)
        return repo_fail_storage(w, "upload", code, err);
    return 0;
}
