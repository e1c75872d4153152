/* Imports: starts them, reports on them and cancels them. */
#include "lake/import_int.h"
#include "lake/names.h"
#include "lake/overlap.h"

#include "base/clock.h"
#include "base/ids.h"

enum { IMPORT_KEPT_MS = MS_PER_DAY };

/* --- checks --- */

/* Whether the source and the namespace of the repository overlap: one of them lies inside the
 * other. */
static bool import_overlaps(struct str source, const struct lake_repo *r, struct arena *a)
{
    struct str space = arena_fmt(a, STR_FMT "/", STR_ARG(r->space));

    return str_starts(source, space) || str_starts(space, source);
}

static int import_check_path(const struct lake_import_path *p, struct lake *l,
                             const struct lake_repo *r, struct arena *a, struct err *err)
{
    struct str bucket, key;

    if (!str_starts(p->source, STR("s3://")) || p->source.len > LAKE_PATH_MAX + LAKE_NAME_MAX ||
        !str_cut(str_skip(p->source, sizeof("s3://") - 1), '/', &bucket, &key) || bucket.len == 0 ||
        (p->is_object && key.len == 0))
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a source; write s3://BUCKET/%s",
                       STR_ARG(str_head(p->source, LAKE_NAME_MAX)),
                       p->is_object ? "KEY" : "PREFIX");
    if (import_overlaps(p->source, r, a))
        return err_set(err, ERR_INVALID,
                       "the source " STR_FMT " lies in the repository's own namespace",
                       STR_ARG(p->source));
    int code = lake_check_source(l, r, p->source, !p->is_object, err);
    if (code < 0)
        return code;
    return p->is_object || p->destination.len ? lake_check_path(p->destination, err) : 0;
}

static int import_check(const struct lake_import_options *o, struct lake *l,
                        const struct lake_repo *r, struct arena *a, struct err *err)
{
    int code = lake_check_branch(o->branch, err);

    if (code == 0 && (o->count == 0 || o->count > LAKE_IMPORT_PATHS_MAX))
        code = err_set(err, ERR_INVALID, "an import has 1 to %d paths", LAKE_IMPORT_PATHS_MAX);
    for (size_t i = 0; code == 0 && i < o->count; i++)
        code = import_check_path(&o->paths[i], l, r, a, err);
    if (code == 0)
        code = lake_check_message(o->message, err);
    if (code == 0)
        code = lake_check_metadata(&o->metadata, err);
    if (code == 0)
        code = lake_check_writable(r, o->force, err);
    return code;
}

/* --- old records --- */

/* Removes the records of imports that ended more than a day ago: clients can rely on a record only
 * for a day. A failure does not matter, because the next import tries again. */
static void import_forget_old(struct lake *l, struct arena *a, const struct lake_repo *r)
{
    static const char prefix[] = "imports/";
    struct kv_range range = {.prefix = STR(prefix)};
    struct kv_scan *scan = NULL;
    struct import_record *rec;
    struct err err = {0};
    struct str key, value;
    int code = kv_scan_open(&scan, l->kv, NULL, r->partition, &range, &err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, &err)) == 0) {
        struct str id = arena_str(a, str_skip(key, sizeof(prefix) - 1));
        if (import_record_load(l, a, r, id, &rec, &err) == 0 && rec->status.completed &&
            rec->status.updated_ms + IMPORT_KEPT_MS < clock_wall_ms())
            code = kv_remove(l->kv, import_key(a, r, id), &err);
    }
    kv_scan_free(scan);
}

/* --- the calls --- */

int lake_import_start(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_import_options *o, struct str *id, struct err *err)
{
    struct import_record *rec = arena_new(a, struct import_record);
    char text[ID_TIME_LEN + 1];
    struct lake_branch b;
    int code = rec ? import_check(o, l, r, a, err) : err_code(err, ERR_NO_MEMORY);

    if (code == 0)
        code = lake_branch_get(l, a, r, o->branch, &b, err);
    if (code < 0)
        return code;
    import_forget_old(l, a, r);
    id_time(text);
    *id = arena_lower(a, str_z(text));
    *rec = (struct import_record){.status = {.id = *id},
                                  .branch = o->branch,
                                  .message = o->message.len ? o->message : STR("Import objects"),
                                  .committer = o->committer,
                                  .user = o->user,
                                  .metadata = o->metadata,
                                  .force = o->force,
                                  .needs_objects = o->needs_objects,
                                  .path_count = o->count};
    memcpy(rec->paths, o->paths, o->count * sizeof(*o->paths));
    struct str value = import_record_encode(a, rec);
    return value.p ? lake_put_new(l, a, r, import_key(a, r, *id), value, err)
                   : err_set(err, ERR_TOO_LARGE, "the import has too many paths");
}

int lake_import_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                    struct lake_import_status *out, struct err *err)
{
    struct import_record *rec;
    int code = import_record_load(l, a, r, id, &rec, err);

    if (code < 0)
        return code;
    *out = rec->status;
    out->branch = rec->branch;
    return 0;
}

int lake_import_cancel(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                       struct err *err)
{
    struct import_record *rec;
    int code;

    do {
        code = import_record_load(l, a, r, id, &rec, err);
        if (code == 0 && rec->status.completed)
            return err_set(err, ERR_CONFLICT, "the import has ended");
        if (code < 0)
            return code;
        rec->status.completed = rec->status.canceled = true;
        rec->status.error = STR("Canceled");
        code = import_record_save(l, a, r, rec, err);
    } while (code == ERR_CONFLICT); /* the task has just written its progress: try again */
    return code;
}
