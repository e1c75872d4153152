/* Lists uploads in parts, and removes the records of finished uploads. */
#include "lake/layers.h"
#include "lake/upload.h"

#include "base/clock.h"

#define UPLOADS "uploads"

struct uploads_walk {
    struct lake_bucket *b;
    struct arena *a;
    const struct list_options *o;
    /* "<ref>/" if the bucket is one ref of a repository, otherwise empty. Names of rows have this
     * beginning, but keys of S3 clients do not. */
    struct str start;
    struct kv_scan *scan;
    struct upload_list *out;
};

static size_t uploads_limit(const struct list_options *o)
{
    return size_min(o->limit, OBJECT_LIST_MAX);
}

/* Returns the beginning of the names of rows whose S3 key begins with `key`. */
static struct str uploads_row(struct uploads_walk *w, struct str key)
{
    struct str whole = arena_fmt(w->a, STR_FMT STR_FMT, STR_ARG(w->start), STR_ARG(key));

    return lake_key_in(w->a, w->b->repo.partition, UPLOADS, whole).key;
}

/* Returns the common prefix that a listing shows instead of the key; empty: it shows the key
 * itself. */
static struct str uploads_common(const struct list_options *o, struct str key)
{
    ptrdiff_t at = o->delimiter.len ? str_find(str_skip(key, o->prefix.len), o->delimiter) : -1;

    return at < 0 ? STR_EMPTY : str_head(key, o->prefix.len + (size_t)at + o->delimiter.len);
}

/* Moves the scan to the first row after the marker with which the page before ended. The marker is
 * one upload of a key; or a key, which stands for all its uploads; or a common prefix, which stands
 * for all its keys. */
static void uploads_walk_start(struct uploads_walk *w)
{
    const struct list_options *o = w->o;
    struct str row;

    if (o->after.len == 0)
        return;
    if (o->after_version.len) {
        struct kv_name name = lake_upload_name(w->b, w->a, o->after, o->after_version);
        /* The row begins after the NUL that lake_key_in() has put behind the key. */
        row = str_n(name.key.p, name.key.len + (name.key.p != NULL));
    } else {
        bool folded =
            str_starts(o->after, o->prefix) && str_eq(uploads_common(o, o->after), o->after);
        row = uploads_row(w, o->after);
        if (!folded) /* rows of a key are named "<key> NUL <id>" */
            row = arena_fmt(w->a, STR_FMT "\x01", STR_ARG(row));
        else if (!layers_behind(w->a, row, &row))
            return;
    }
    if (arena_error(w->a) == 0)
        kv_scan_seek(w->scan, row);
}

static int uploads_add(struct uploads_walk *w, struct str key, struct str id,
                       const struct lake_upload *u, struct err *err)
{
    struct upload_list *out = w->out;
    struct upload_info *info = &out->uploads[out->count++];
    int code = lake_upload_info(u, w->a, key, id, info, err);

    out->next_key = info->key;
    out->next_id = info->id;
    return code;
}

static void uploads_add_prefix(struct uploads_walk *w, struct str prefix)
{
    struct upload_list *out = w->out;
    struct str behind;

    out->next_key = out->prefixes[out->prefix_count++] = arena_str(w->a, prefix);
    out->next_id = STR_EMPTY;
    if (layers_behind(w->a, uploads_row(w, prefix), &behind))
        kv_scan_seek(w->scan, behind);
}

/* Finds the next upload that is not finished yet. */
static int uploads_next(struct uploads_walk *w, struct str *key, struct str *id,
                        struct lake_upload *u, struct err *err)
{
    struct str row, value;
    int code;

    do {
        code = kv_scan_next(w->scan, &row, &value, err);
        if (code == 0 && !lake_upload_split(str_skip(row, sizeof(UPLOADS)), key, id))
            code = err_set(err, ERR_CORRUPT, "the name of an upload's record is damaged");
        if (code == 0)
            code = lake_upload_decode(u, value, err);
    } while (code == 0 && u->finished_ms);
    if (code == 0)
        *key = str_skip(*key, w->start.len);
    return code;
}

static int uploads_walk_fill(struct uploads_walk *w, struct err *err)
{
    struct upload_list *out = w->out;
    struct lake_upload u;
    struct str key, id;
    int code;

    while ((code = uploads_next(w, &key, &id, &u, err)) == 0) {
        if (out->count + out->prefix_count == uploads_limit(w->o)) {
            out->more = true;
            return 0;
        }
        struct str common = uploads_common(w->o, key);
        if (common.len)
            uploads_add_prefix(w, common);
        else
            code = uploads_add(w, key, id, &u, err);
        if (code == 0 && arena_error(w->a) < 0)
            code = err_code(err, ERR_NO_MEMORY);
        if (code < 0)
            return code;
    }
    return code == ERR_END ? 0 : code;
}

int lake_upload_list(struct bucket *bucket, struct arena *a, const struct list_options *o,
                     struct upload_list *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct uploads_walk w = {.b = b, .a = a, .o = o, .out = out};
    size_t limit = uploads_limit(o);

    *out = (struct upload_list){.uploads = arena_array(a, limit + 1, sizeof(*out->uploads)),
                                .prefixes = arena_array(a, limit + 1, sizeof(*out->prefixes))};
    if (b->ref.len)
        w.start = arena_fmt(a, STR_FMT "/", STR_ARG(b->ref));
    struct kv_range range = {.prefix = uploads_row(&w, o->prefix)};
    if (arena_error(a) < 0)
        return err_code(err, ERR_NO_MEMORY);
    int code = kv_scan_open(&w.scan, b->lake->kv, NULL, b->repo.partition, &range, err);
    if (code == 0) {
        uploads_walk_start(&w);
        code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : uploads_walk_fill(&w, err);
    }
    kv_scan_free(w.scan);
    return code < 0 ? code : lake_bucket_check_there(b, a, err);
}

/* --- sweeping --- */

static int uploads_sweep_repo(struct lake_space *s, const struct lake_repo *r, struct err *err)
{
    struct kv_range range = {.prefix = STR(UPLOADS "/")};
    int64_t oldest = clock_wall_ms() - LAKE_UPLOAD_KEPT_MS;
    struct kv_scan *scan = NULL;
    struct lake_upload u;
    struct str row, value;
    int code = kv_scan_open(&scan, s->lake->kv, NULL, r->partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &row, &value, err)) == 0) {
        code = lake_upload_decode(&u, value, err);
        if (code == 0 && u.finished_ms && u.finished_ms < oldest)
            code = kv_remove(s->lake->kv, (struct kv_name){r->partition, row}, err);
    }
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

void lake_uploads_sweep(struct lake_space *s)
{
    struct lake_page page = {.limit = LAKE_LIST_MAX};
    struct arena a = {0};
    struct err err = {0};
    bool more = true;
    int code = 0;

    while (code == 0 && more && !loop_is_stopping(&s->loop)) {
        struct lake_repo *repos;
        size_t count = 0;
        code = lake_repo_list(s->lake, &a, &page, &repos, &count, &more, &err);
        for (size_t i = 0; code == 0 && i < count; i++)
            code = uploads_sweep_repo(s, &repos[i], &err);
        if (code == 0 && count)
            page.after = repos[count - 1].id;
    }
    if (code < 0)
        log_warn(s->o.log, "lake.uploads_not_swept", log_z("error", err.text));
    arena_release(&a);
}
