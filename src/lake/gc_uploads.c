/* The collector and uploads in parts: bodies that upload records name are live, and uploads that no
 * branch can receive any more are aborted. */
#include "lake/files.h"
#include "lake/gc_int.h"
#include "lake/place.h"
#include "lake/upload.h"

#define UPLOADS_KIND "uploads/"

/* --- records --- */

typedef int upload_row_fn(struct gc_run *g, void *ctx, struct str key, struct str value,
                          const struct lake_upload *u, struct err *err);

/* Calls fn() for the record of every upload. */
static int uploads_each(struct gc_run *g, upload_row_fn *fn, void *ctx, struct err *err)
{
    struct kv_range range = {.prefix = STR(UPLOADS_KIND)};
    struct kv_scan *scan = NULL;
    struct lake_upload u;
    struct str key, value;
    int code = kv_scan_open(&scan, g->lake->kv, NULL, g->repo->partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        code = gc_run_check(g, err);
        if (code == 0)
            code = lake_upload_decode(&u, value, err);
        if (code == 0)
            code = fn(g, ctx, key, value, &u, err);
    }
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

/* Marks the body of an upload as live. The parts of an unfinished upload may already be joined to a
 * body, and the client can finish the upload at any time. An upload that was finished before the
 * cutoff needs no mark: if its object still exists, a token or a commit names the body. */
static int upload_mark(struct gc_run *g, void *ctx, struct str key, struct str value,
                       const struct lake_upload *u, struct err *err)
{
    return u->finished_ms == 0 || u->finished_ms >= g->state.cutoff_ms
               ? gc_sorter_add(g->live, u->address, err)
               : 0;
}

int gc_mark_uploads(struct gc_run *g, struct err *err)
{
    return uploads_each(g, upload_mark, NULL, err);
}

/* --- uploads that nobody can finish --- */

/* Adds the upload to the sorter as "<address> NUL <id>". The sorter then gives uploads in the order
 * in which the bucket lists them. */
static int upload_note(struct gc_sorter *s, struct str address, struct str id, struct err *err)
{
    struct buf text = {0};

    buf_append_str(&text, address);
    buf_append_char(&text, 0);
    buf_append_str(&text, id);
    int code = gc_sorter_add(s, buf_str(&text), err);
    buf_release(&text);
    return code;
}

static int upload_has_branch(struct gc_run *g, struct str key, bool *out, struct err *err)
{
    struct arena a = {0};
    struct str branch, path;
    struct kv_value row;

    str_cut(str_skip(key, sizeof(UPLOADS_KIND) - 1), '/', &branch, &path);
    struct kv_name name = lake_key_branch(&a, g->repo->partition, branch);
    int code = kv_get_many(g->lake->kv, NULL, &a, &name, 1, &row, err);
    *out = code == 0 && kv_is_there(&row);
    arena_release(&a);
    return code;
}

/* If the upload may still be finished, adds it to the sorter `ctx`. Otherwise removes its
 * record. */
static int upload_judge(struct gc_run *g, void *ctx, struct str key, struct str value,
                        const struct lake_upload *u, struct err *err)
{
    bool is_live = u->finished_ms == 0 && u->started_ms >= g->state.cutoff_ms;
    struct arena a = {0};
    struct lake_tx tx;
    int code = 0;

    /* A finished upload has no parts any more, and lake_uploads_sweep() removes its record. */
    if (u->finished_ms)
        return 0;
    if (!is_live)
        code = upload_has_branch(g, key, &is_live, err);
    if (code == 0 && is_live)
        return upload_note(ctx, u->address, u->data_id, err);
    lake_tx_init(&tx, &a);
    lake_tx_remove(&tx, (struct kv_name){g->repo->partition, arena_str(&a, key)}, KV_SAME,
                   arena_str(&a, value));
    if (code == 0)
        code = gc_run_write(g, &tx, err);
    arena_release(&a);
    return code == ERR_AGAIN ? 0 : code; /* the upload has just been finished */
}

/* Whether the upload may still be finished. `live` has such uploads, sorted like the bucket's
 * listing; `skip` is the length of the namespace's prefix in keys. */
static int upload_is_live(struct gc_sorter *live, size_t skip, const struct upload_info *u,
                          bool *out, struct err *err)
{
    struct buf text = {0};

    buf_append_str(&text, str_skip(u->key, skip));
    buf_append_char(&text, 0);
    buf_append_str(&text, u->id);
    int code = gc_sorter_has(live, buf_str(&text), out, err);
    buf_release(&text);
    return code;
}

static int uploads_abort_page(struct gc_run *g, struct gc_sorter *live, struct object_place *p,
                              const struct upload_list *list, struct err *err)
{
    size_t skip = p->key.len - (sizeof(LAKE_BODIES "/") - 1);
    int code = 0;

    for (size_t i = 0; code == 0 && i < list->count; i++) {
        const struct upload_info *u = &list->uploads[i];
        bool is_live = false;
        code = gc_run_check(g, err);
        if (code == 0)
            code = upload_is_live(live, skip, u, &is_live, err);
        if (code < 0 || is_live || u->started_ms >= g->state.cutoff_ms)
            continue;
        code = gc_run_ask_claim(g, err);
        if (code < 0)
            break;
        code = p->bucket->ops->upload_abort(p->bucket, u, err);
        g->report.uploads_aborted += code == 0;
        code = code == ERR_NOT_FOUND ? 0 : code;
    }
    return code;
}

static int uploads_abort(struct gc_run *g, struct gc_sorter *live, struct err *err)
{
    struct buf after = {0}, after_id = {0};
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        struct arena a = {0};
        struct upload_list list = {0};
        struct object_place p;
        code =
            lake_place_open_below(&p, g->lake, &a, g->repo, STR(LAKE_BODIES "/"), PLACE_READ, err);
        if (code == 0) {
            struct list_options o = {.prefix = p.key,
                                     .after = buf_str(&after),
                                     .after_version = buf_str(&after_id),
                                     .limit = OBJECT_LIST_MAX};
            code = p.bucket->ops->list_uploads(p.bucket, &a, &o, &list, err);
            if (code == 0)
                code = uploads_abort_page(g, live, &p, &list, err);
            code = object_place_end(&p, code, err);
        }
        more = list.more;
        buf_reset(&after);
        buf_reset(&after_id);
        buf_append_str(&after, list.next_key);
        buf_append_str(&after_id, list.next_id);
        arena_release(&a);
    }
    buf_release(&after);
    buf_release(&after_id);
    return code;
}

int gc_remove_uploads(struct gc_run *g, struct err *err)
{
    struct gc_sorter *live = NULL;
    int code = gc_run_sorter(g, &live, GC_SORT_BYTES, err);

    if (code == 0)
        code = uploads_each(g, upload_judge, live, err);
    if (code == 0)
        code = gc_sorter_sort(live, err);
    if (code == 0)
        code = uploads_abort(g, live, err);
    gc_sorter_close(live);
    return code;
}
