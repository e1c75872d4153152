/* The work of an import: the sources are listed and sorted, and one commit puts them below their
 * destinations (docs/lake-keeping.md, I1 to I4). */
#include "lake/gc_int.h"
#include "lake/head.h"
#include "lake/import_int.h"
#include "lake/names.h"
#include "lake/place.h"
#include "lake/read.h"

#include "base/clock.h"
#include "meta/envelope.h"

#include <stdlib.h>

struct import_work {
    struct lake *lake;
    const struct lake_repo *repo;
    struct arena *arena; /* lives as long as the work */
    struct import_record *record;
    /* Each string is the path, a NUL, and the encoded record of the object. */
    struct gc_sorter *objects;
    struct str *prefixes; /* the destinations that are replaced, sorted */
    size_t prefix_count;
    bool (*ended)(void *ctx);
    void *ctx;
    /* The record with the progress is encoded into these two arenas in turn, because the record
     * that was written last must live until the next one is written. */
    struct arena notes[2];
    unsigned note;
    /* The import's record with the commit that is about to be published. The publishing write puts
     * it. */
    struct kv_change outcome;
};

/* --- listing --- */

/* Refuses an object that can only be read with a customer's key (SSE-C). */
static int import_check_key(struct str bucket, const struct object_info *info, struct err *err)
{
    struct envelope e;

    if (info->meta.encryption.len == 0 || envelope_read(&e, info->meta.encryption, err) < 0 ||
        e.kind != SSE_C)
        return 0;
    return err_set(err, ERR_INVALID,
                   "the object s3://" STR_FMT "/" STR_FMT
                   " is encrypted with a customer's key (SSE-C) and cannot be imported",
                   STR_ARG(bucket), STR_ARG(str_head(info->key, 255)));
}

static int import_add(struct import_work *w, struct str path, struct str bucket,
                      const struct object_info *info, struct err *err)
{
    struct buf text = {0}, address = {0};
    int code = lake_check_path(path, err);

    if (code < 0)
        return err_wrap(err, ERR_INVALID, "the path of " STR_FMT, STR_ARG(info->key));
    code = import_check_key(bucket, info, err);
    if (code < 0)
        return code;
    buf_appendf(&address, "s3://" STR_FMT "/" STR_FMT, STR_ARG(bucket), STR_ARG(info->key));
    struct lake_entry e = {.address = buf_str(&address),
                           .address_type = LAKE_FULL,
                           .modified_ms = info->modified_ms,
                           .size = info->size,
                           .etag = info->etag};
    buf_append_str(&text, path);
    buf_append_char(&text, 0);
    lake_entry_write(&text, &e);
    code = buf_error(&text);
    code = code < 0 ? err_code(err, code) : gc_sorter_add(w->objects, buf_str(&text), err);
    w->record->status.ingested++;
    buf_release(&text);
    buf_release(&address);
    return code;
}

static int import_object(struct import_work *w, const struct lake_import_path *p, struct str bucket,
                         struct str key, struct err *err)
{
    struct get_result head = {0};
    struct arena a = {0};
    struct object_place place;
    int code = lake_place_open(&place, w->lake, &a, w->record->user, bucket, key, PLACE_READ, err);

    if (code == 0) {
        code = place.bucket->ops->head(place.bucket, &a, key, STR_EMPTY, NULL, &head, err);
        code = object_place_end(&place, code, err);
    }
    if (code == ERR_NOT_FOUND)
        err_set(err, code, "there is no object " STR_FMT, STR_ARG(p->source));
    head.info.key = key;
    if (code == 0)
        code = import_add(w, p->destination, bucket, &head.info, err);
    arena_release(&a);
    return code;
}

/* Writes the progress to the record, and finds out whether the import was canceled. */
static int import_note(struct import_work *w, struct err *err)
{
    if (w->ended && w->ended(w->ctx))
        return err_code(err, ERR_CANCELED);
    struct arena *a = &w->notes[w->note++ % ARRAY_SIZE(w->notes)];
    arena_reset(a);
    return import_record_save(w->lake, a, w->repo, w->record, err);
}

/* Finds out how the listed objects are encrypted, so that import_check_key() can refuse objects
 * with a customer's key (SSE-C); a listing does not say it. This is done only for storages that
 * keep bytes sealed by weir. From other storages an SSE-C object is imported, and reading it fails
 * later. */
static int import_look(struct object_place *p, struct arena *a, struct list_result *list,
                       struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < list->count; i++) {
        struct object_info *info = &list->entries[i].info;
        struct get_result head = {0};
        code = p->bucket->ops->head(p->bucket, a, info->key, STR_EMPTY, NULL, &head, err);
        info->meta.encryption = code == 0 ? head.info.meta.encryption : STR_EMPTY;
        code = code == ERR_NOT_FOUND ? 0 : code; /* the object was just removed */
    }
    return code;
}

static int import_page(struct import_work *w, const struct lake_import_path *p, struct str bucket,
                       struct list_options *o, struct arena *a, struct list_result *list,
                       struct err *err)
{
    struct object_place place;
    int code =
        lake_place_open(&place, w->lake, a, w->record->user, bucket, o->prefix, PLACE_LIST, err);

    if (code == 0) {
        code = object_place_list(&place, o, list, err);
        if (code == 0 && bucket_can(place.bucket, STORAGE_KEEPS_META))
            code = import_look(&place, a, list, err);
        code = object_place_end(&place, code, err);
    }
    for (size_t i = 0; code == 0 && i < list->count; i++) {
        const struct object_info *info = &list->entries[i].info;
        struct str rest = str_skip(info->key, o->prefix.len);
        struct str path = arena_fmt(a, STR_FMT STR_FMT, STR_ARG(p->destination), STR_ARG(rest));
        code = import_add(w, path, bucket, info, err);
    }
    return code;
}

static int import_prefix(struct import_work *w, const struct lake_import_path *p, struct str bucket,
                         struct str prefix, struct err *err)
{
    uint64_t before = w->record->status.ingested;
    struct buf after = {0};
    bool more = true;
    int code = 0;

    while (code == 0 && more) {
        struct list_options o = {
            .prefix = prefix, .after = buf_str(&after), .limit = OBJECT_LIST_MAX};
        struct list_result list = {0};
        struct arena a = {0};
        code = import_page(w, p, bucket, &o, &a, &list, err);
        if (code == 0)
            code = import_note(w, err);
        more = list.more;
        struct str next = arena_str(&a, list.next);
        buf_reset(&after);
        buf_append_str(&after, next);
        arena_release(&a);
    }
    buf_release(&after);
    if (code == 0 && w->record->needs_objects && w->record->status.ingested == before)
        code = err_set(err, ERR_INVALID, "no object begins with " STR_FMT "; nothing was changed",
                       STR_ARG(str_head(p->source, 255)));
    return code;
}

static int import_list(struct import_work *w, struct err *err)
{
    struct str bucket, key;
    int code = 0;

    w->record->status.ingested = 0;
    for (size_t i = 0; code == 0 && i < w->record->path_count; i++) {
        const struct lake_import_path *p = &w->record->paths[i];
        str_cut(str_skip(p->source, sizeof("s3://") - 1), '/', &bucket, &key);
        code = p->is_object ? import_object(w, p, bucket, key, err)
                            : import_prefix(w, p, bucket, key, err);
    }
    return code < 0 ? code : gc_sorter_sort(w->objects, err);
}

/* --- the changes of the tree --- */

/* The changes that an import makes to the tree of the head. They come from two streams, which are
 * both in the order of paths: the objects of the import are added, and the paths of the head below
 * a replaced prefix are removed. */
struct import_changes {
    struct import_work *work;
    struct arena arena;    /* memory of the present record */
    struct str path, data; /* the next object; path.p is NULL: there are no more */
    struct tree_iter *old;
    size_t prefix; /* index of the prefix whose old paths come next */
    struct str old_path;
    struct buf last; /* the path that was returned last */
    struct buf removed;
    unsigned char identity[LAKE_IDENTITY_LEN];
};

static int import_next_object(struct import_changes *c, struct err *err)
{
    struct str text;
    int code = gc_sorter_next(c->work->objects, &text, err);

    c->path = STR_EMPTY;
    if (code == 0)
        str_cut(text, 0, &c->path, &c->data);
    return code == ERR_END ? 0 : code;
}

/* Moves to the next path of the head that is below a replaced prefix. */
static int import_next_old(struct import_changes *c, struct err *err)
{
    const struct import_work *w = c->work;
    struct tree_record record;
    int code = 0;

    c->old_path = STR_EMPTY;
    while (code == 0 && c->old && c->prefix < w->prefix_count) {
        code = tree_iter_next(c->old, &record, err);
        if (code == 0 && str_starts(record.key, w->prefixes[c->prefix])) {
            c->old_path = record.key;
            return 0;
        }
        if (code == 0 && str_cmp(record.key, w->prefixes[c->prefix]) < 0)
            continue;
        if (++c->prefix < w->prefix_count)
            tree_iter_seek(c->old, w->prefixes[c->prefix]);
        code = code == ERR_END ? 0 : code;
    }
    return code;
}

/* Returns the present object of the stream, and skips all further objects with the same path. */
static int import_give_object(struct import_changes *c, struct tree_record *out, struct err *err)
{
    struct lake_entry e = {0};
    int code;

    buf_reset(&c->last);
    buf_append_str(&c->last, c->path);
    arena_reset(&c->arena);
    out->data = arena_str(&c->arena, c->data);
    code = lake_entry_read(&e, &c->arena, out->data, err);
    if (code < 0)
        return code;
    lake_entry_identity(c->identity, &e);
    out->key = buf_str(&c->last);
    out->identity = str_n(c->identity, LAKE_IDENTITY_LEN);
    do
        code = import_next_object(c, err);
    while (code == 0 && c->path.p && str_eq(c->path, buf_str(&c->last)));
    return code;
}

static int import_changes_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct import_changes *c = ctx;
    int code = 0;

    *out = (struct tree_record){0};
    if (!c->path.p && !c->old_path.p)
        return ERR_END;
    int order = !c->path.p ? 1 : !c->old_path.p ? -1 : str_cmp(c->path, c->old_path);
    if (order > 0) {
        buf_reset(&c->removed);
        buf_append_str(&c->removed, c->old_path);
        out->key = buf_str(&c->removed);
        return import_next_old(c, err);
    }
    if (order == 0)
        code = import_next_old(c, err);
    return code < 0 ? code : import_give_object(c, out, err);
}

static int import_apply(struct import_work *w, struct head_tree *base, struct tree_result *out,
                        struct err *err)
{
    struct import_changes c = {.work = w};
    struct tree_write_options o = {.writers = w->lake->o.writers};
    int code = gc_sorter_rewind(w->objects, err);

    if (code == 0 && base->root.len)
        code = tree_iter_open(&c.old, &base->store, base->root, err);
    if (code == 0 && c.old && w->prefix_count)
        tree_iter_seek(c.old, w->prefixes[0]);
    if (code == 0)
        code = import_next_object(&c, err);
    if (code == 0)
        code = import_next_old(&c, err);
    if (code == 0)
        code = tree_apply(&base->store, base->root, &(struct tree_changes){import_changes_next, &c},
                          &o, out, err);
    tree_iter_close(c.old);
    arena_release(&c.arena);
    buf_release(&c.last);
    buf_release(&c.removed);
    return code;
}

/* --- the commit --- */

/* Checks that this task still owns the import. ERR_CONFLICT: the record has changed, because the
 * import was canceled or another process carries it out. */
static int import_check_own(struct import_work *w, struct arena *a, struct err *err)
{
    struct kv_value row;
    int code =
        kv_get(w->lake->kv, NULL, a, import_key(a, w->repo, w->record->status.id), &row, err);

    if (code == 0 && !str_eq(row.stamp, w->record->stamp))
        code = err_set(err, ERR_CONFLICT, "the import was changed meanwhile");
    return code;
}

/* Makes the publishing write also put the import's record with its result, on the condition that
 * the record is as it was read (I1, I2). */
static int import_set_outcome(struct import_work *w, struct head_change *h,
                              const struct lake_commit *c, struct err *err)
{
    struct import_record done = *w->record;

    done.status.completed = true;
    done.status.commit_id = c->id;
    done.status.tree = c->tree;
    struct str value = import_record_encode(h->arena, &done);
    if (!value.p)
        return err_code(err, ERR_NO_MEMORY);
    w->outcome = (struct kv_change){KV_PUT, import_key(h->arena, w->repo, done.status.id), value,
                                    KV_SAME, w->record->stamp};
    h->also = &w->outcome;
    return 0;
}

static int import_make(void *ctx, struct head_change *h, struct lake_commit *out, struct err *err)
{
    struct import_work *w = ctx;
    struct tree_result result = {0};
    struct head_tree base;
    int code = import_check_own(w, h->arena, err);

    if (code < 0)
        return code;
    code = head_tree_open(&base, h->lake, h->arena, &h->repo, h->branch.commit_id, err);
    if (code == 0) {
        lake_tree_store_keep(&base.store, &h->keep);
        code = import_apply(w, &base, &result, err);
    }
    struct str tree = arena_str(h->arena, str_z(result.root));
    if (code == 0 && str_eq(tree, base.root))
        code = err_set(err, ERR_NOT_MODIFIED, "no changes");
    head_tree_release(&base, h->lake);
    if (code < 0)
        return code;
    *out = (struct lake_commit){.tree = tree,
                                .message = w->record->message,
                                .committer = w->record->committer,
                                .metadata = w->record->metadata};
    code = head_commit_finish(h->lake, h->arena, &h->repo, out, &h->branch.commit_id, 1, err);
    return code < 0 ? code : import_set_outcome(w, h, out, err);
}

static int import_path_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Finds the prefixes that are replaced. A prefix inside another one is left out. */
static int import_find_prefixes(struct import_work *w, struct err *err)
{
    const struct import_record *rec = w->record;
    size_t count = 0;

    w->prefixes = arena_array(w->arena, rec->path_count + 1, sizeof(*w->prefixes));
    if (!w->prefixes)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < rec->path_count; i++)
        if (!rec->paths[i].is_object)
            w->prefixes[count++] = rec->paths[i].destination;
    qsort(w->prefixes, count, sizeof(*w->prefixes), import_path_order);
    for (size_t i = 0; i < count; i++)
        if (w->prefix_count == 0 || !str_starts(w->prefixes[i], w->prefixes[w->prefix_count - 1]))
            w->prefixes[w->prefix_count++] = w->prefixes[i];
    return 0;
}

/* Writes how the import ended, unless the publishing write has done so. ERR_CONFLICT: the record
 * has changed, because the import was canceled. */
static int import_end(struct import_work *w, struct str error, struct err *err)
{
    w->record->status.completed = true;
    w->record->status.error = error;
    return import_record_save(w->lake, w->arena, w->repo, w->record, err);
}

/* Makes the commit. An import without changes has the head as its commit. */
static int import_commit(struct import_work *w, struct err *err)
{
    struct import_record *rec = w->record;
    struct head_change h = {.lake = w->lake,
                            .arena = w->arena,
                            .asked = w->repo,
                            .name = rec->branch,
                            .force = rec->force,
                            .make = import_make,
                            .ctx = w};
    struct lake_commit c = {0};
    int code = head_change_run(&h, &c, err);

    if (code != ERR_NOT_MODIFIED)
        return code;
    code = lake_commit_get(w->lake, w->arena, w->repo, h.branch.commit_id, &c, err);
    rec->status.commit_id = c.id;
    rec->status.tree = c.tree;
    return code < 0 ? code : import_end(w, STR_EMPTY, err);
}

/* Whether another try would fail in the same way. */
static bool import_is_final(int code)
{
    static const int final[] = {ERR_INVALID, ERR_NOT_FOUND, ERR_NO_BUCKET,   ERR_DENIED,
                                ERR_EXISTS,  ERR_TOO_LARGE, ERR_UNSUPPORTED, ERR_CORRUPT};

    for (size_t i = 0; i < ARRAY_SIZE(final); i++)
        if (code == final[i])
            return true;
    return false;
}

static int import_run(struct import_work *w, struct err *err)
{
    int code = gc_sorter_open(&w->objects, w->lake->o.folder, GC_SORT_BYTES, err);

    if (code == 0)
        code = import_list(w, err);
    if (code == 0)
        code = import_find_prefixes(w, err);
    if (code == 0)
        code = import_note(w, err);
    if (code == 0)
        code = import_commit(w, err);
    gc_sorter_close(w->objects);
    return code;
}

/* Ends this try, because others have changed the record: the import was canceled or has ended, or
 * another process works on it too. ERR_BUSY: the import has not ended. The other process may die,
 * so this task is tried again (I3). */
static int import_yield(struct import_work *w, struct err *err)
{
    struct import_record *now;
    int code = import_record_load(w->lake, w->arena, w->repo, w->record->status.id, &now, err);

    return code == 0 && !now->status.completed
               ? err_set(err, ERR_BUSY, "another process works on the import")
               : code;
}

/* Writes into the record why this try failed, so that the status shows it. A failure does not
 * matter: it means that the record has changed, or that the next try writes its own error. */
static void import_note_error(struct import_work *w, const struct err *why)
{
    struct err ignored = {0};

    w->record->status.last_error = arena_str(w->arena, str_z(why->text));
    if (import_record_save(w->lake, w->arena, w->repo, w->record, &ignored) < 0)
        log_debug(w->lake->o.log, "lake.import_error", log_z("error", why->text));
}

/* Makes one try, and writes to the record how it ended. */
static int import_try(struct import_work *w, struct err *err)
{
    w->record->status.last_error = STR_EMPTY;
    int code = import_run(w, err);

    if (import_is_final(code))
        code = import_end(w, arena_str(w->arena, str_z(err->text)), err);
    else if (code < 0 && code != ERR_CONFLICT && code != ERR_CANCELED)
        import_note_error(w, err);
    return code == ERR_CONFLICT ? import_yield(w, err) : code;
}

int lake_import_work(struct lake *l, const struct lake_repo *r, struct str id,
                     bool (*ended)(void *ctx), void *ctx, struct err *err)
{
    struct arena a = {0};
    struct import_work w = {.lake = l, .repo = r, .arena = &a, .ended = ended, .ctx = ctx};
    int code = import_record_load(l, &a, r, id, &w.record, err);

    if (code == 0 && !w.record->status.completed)
        code = import_try(&w, err);
    arena_release(&w.notes[0]);
    arena_release(&w.notes[1]);
    arena_release(&a);
    /* The record is gone with its repository. */
    return code == ERR_NOT_FOUND ? 0 : code;
}
