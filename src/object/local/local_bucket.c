/* Buckets of a local storage, and their documents. */
#include "object/local/local_int.h"
#include "base/clock.h"
#include "object/overlay.h"
#include "object/part_names.h"

#include <stdlib.h>

void local_bucket_init(struct local_bucket *b, struct local *l, struct str row,
                       const struct bucket_record *r)
{
    struct str name = str_skip(row, size_min(row.len, ROW_PREFIX_LEN));
    struct row usage;

    b->bucket = (struct bucket){&local_bucket_ops, name, &l->storage};
    b->local = l;
    atomic_init(&b->fence, atomic_load(&l->fences.number));
    b->id = r->id;
    b->logical = r->logical.id ? r->logical : (struct logical){r->id, name};
    b->row = row;
    memcpy(b->usage_row, row_id(&usage, l, TAG_USAGE, r->id).p, sizeof(b->usage_row));
}

int bucket_row_get(struct local_bucket *b, struct db_view *view, struct buf *row,
                   struct bucket_record *out, struct err *err)
{
    buf_reset(row);
    int code = db_get(view, b->local->rows, b->row, row, err);
    if (code == ERR_NOT_FOUND)
        return err_code(err, ERR_NO_BUCKET);
    if (code == 0)
        code = bucket_record_get(buf_str(row), out, err);
    if (code == 0 && out->id != b->id)
        return err_code(err, ERR_NO_BUCKET);
    return code == 0 ? fence_check(b, err) : code;
}

/* --- generations (docs/local-storage.md, L10) --- */

static int change_bucket(struct row_change *c, struct err *err)
{
    struct local *l = c->b->local;

    generation_begin(&l->generations, c->b->bucket.name);
    int code = change_apply(c, err);
    generation_end(&l->generations, c->b->bucket.name);
    return code;
}

/* --- opening buckets --- */

static int info_copy(const struct bucket_record *r, struct arena *a, struct str name,
                     struct bucket_info *out, struct err *err)
{
    *out = r->info;
    out->name = arena_str(a, name);
    out->owner = arena_str(a, r->info.owner);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

int local_bucket_info(struct bucket *bucket, struct arena *a, struct bucket_info *out,
                      struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct buf row = BUF_INIT(0);
    struct bucket_record r;
    int code = bucket_row_get(b, db_latest(b->local->db), &row, &r, err);

    if (code == 0)
        code = info_copy(&r, a, bucket->name, out, err);
    buf_release(&row);
    return code;
}

struct bucket *local_bucket_ref(struct bucket *bucket)
{
    atomic_fetch_add(&local_bucket_of(bucket)->refs, 1);
    return bucket;
}

void local_bucket_unref(struct bucket *bucket)
{
    if (bucket && atomic_fetch_sub(&local_bucket_of(bucket)->refs, 1) == 1)
        free(local_bucket_of(bucket));
}

static int info_check(const struct bucket_info *info, struct err *err)
{
    if (info->name.len == 0 || info->name.len > BUCKET_NAME_MAX)
        return err_set(err, ERR_INVALID, "a bucket's name has 1 to %d bytes", BUCKET_NAME_MAX);
    if (info->owner.len > OWNER_MAX)
        return err_set(err, ERR_INVALID, "an owner's id has at most %d bytes", OWNER_MAX);
    return 0;
}

static struct bucket *local_bucket_new(struct local *l, struct str row,
                                       const struct bucket_record *r)
{
    size_t len = row.len + r->logical.name.len;
    struct local_bucket *b = xcalloc(1, sizeof(*b) + len + 1);
    struct bucket_record kept = *r;

    memcpy(b->memory, row.p, row.len);
    if (r->logical.name.len) {
        memcpy(b->memory + row.len, r->logical.name.p, r->logical.name.len);
        kept.logical.name = str_n(b->memory + row.len, r->logical.name.len);
    }
    local_bucket_init(b, l, str_n(b->memory, row.len), &kept);
    atomic_init(&b->refs, 1);
    return &b->bucket;
}

int local_open_bucket(struct bucket **out, struct storage *s, struct str user, struct str name,
                      struct err *err)
{
    struct local *l = local_of(s);
    struct buf value = BUF_INIT(0);
    struct bucket_record r = {0};
    struct row row;

    if (name.len == 0 || name.len > BUCKET_NAME_MAX)
        return err_code(err, ERR_NO_BUCKET);
    struct str key = row_name(&row, l, TAG_BUCKET, name);
    int code = db_get(db_latest(l->db), l->rows, key, &value, err);
    if (code == 0)
        code = bucket_record_get(buf_str(&value), &r, err);
    if (code == 0) /* checked last, because an absent bucket is known without the disk */
        code = local_present(l, err);
    if (code == 0)
        *out = local_bucket_new(l, key, &r);
    buf_release(&value);
    return code == ERR_NOT_FOUND ? err_code(err, ERR_NO_BUCKET) : code;
}

/* --- making and removing buckets --- */

struct bucket_create {
    struct local *l;
    const struct bucket_info *info;
    struct local_bucket *logical; /* not NULL: a shard of that bucket is made */
    bool untapped;
    struct row_change change; /* its bucket does not exist yet */
    struct local_bucket shell;
};

static int create_row(struct bucket_create *c, struct bucket_record *r, struct err *err)
{
    struct local *l = c->l;
    struct tapped t = {
        .changes = CHANGE_BUCKET_MADE, .bucket = r->info.name, .owner = r->info.owner};
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = change_sequence(&c->change, &r->id, err);

    if (c->logical || bucket_name_is_part(r->info.name))
        folder_note_shards(c->l, c->change.tx);
    if (r->info.object_lock) /* object lock works only with versions */
        r->info.versions = VERSIONS_ON;
    if (r->info.created_ms == 0)
        r->info.created_ms = db_tx_now_ms(c->change.tx);
    bucket_record_put(&value, r);
    if (code == 0) {
        db_tx_put(c->change.tx, l->rows, row_name(&row, l, TAG_BUCKET, r->info.name),
                  buf_str(&value));
        db_tx_put(c->change.tx, l->rows, row_owned(&row, l, r->info.owner, r->info.name),
                  STR_EMPTY);
        code = change_keep(&c->change, &t, NULL, r->id, err);
    }
    buf_release(&value);
    return code;
}

/* Makes the row of a shard, with the present state of the logical bucket (L14). */
static int create_shard_row(struct bucket_create *c, struct bucket_record *r, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct bucket_record of;
    int code = bucket_row_get(c->logical, c->change.view, &value, &of, err);

    if (code == 0) {
        r->info = (struct bucket_info){.name = c->info->name,
                                       .owner = of.info.owner,
                                       .versions = of.info.versions,
                                       .object_lock = of.info.object_lock};
        r->logical = c->logical->logical;
        code = create_row(c, r, err);
    }
    buf_release(&value);
    return code;
}

static int create_run(struct db_tx *tx, void *ctx, struct err *err)
{
    struct bucket_create *c = ctx;
    struct bucket_record r = {.info = *c->info};
    struct buf value = BUF_INIT(0);
    struct row row;

    c->shell = (struct local_bucket){.local = c->l, .untapped = c->untapped};
    c->change = (struct row_change){.b = &c->shell, .tx = tx, .view = db_tx_view(tx)};
    int code = db_get(c->change.view, c->l->rows, row_name(&row, c->l, TAG_BUCKET, c->info->name),
                      &value, err);
    if (code == ERR_NOT_FOUND) {
        code = c->logical ? create_shard_row(c, &r, err) : create_row(c, &r, err);
    } else if (code == 0) {
        code = bucket_record_get(buf_str(&value), &r, err);
        if (code == 0)
            code = err_set(err, ERR_EXISTS, STR_FMT, STR_ARG(r.info.owner));
    }
    buf_release(&value);
    return code;
}

static int bucket_create(struct bucket_create *c, struct err *err)
{
    int code = info_check(c->info, err);

    if (code == 0)
        code = local_present(c->l, err);
    if (code < 0)
        return code;
    generation_begin(&c->l->generations, c->info->name);
    code = db_apply(c->l->db, DB_DURABLE, create_run, c, err);
    generation_end(&c->l->generations, c->info->name);
    change_end(&c->change, code);
    return code;
}

int bucket_make(struct local *l, const struct bucket_info *info, struct local_bucket *logical,
                bool untapped, struct err *err)
{
    struct bucket_create c = {.l = l, .info = info, .logical = logical, .untapped = untapped};

    return bucket_create(&c, err);
}

int local_create_bucket(struct storage *s, const struct bucket_info *info, struct err *err)
{
    return bucket_make(local_of(s), info, NULL, false, err);
}

int local_create_untapped(struct storage *s, const struct bucket_info *info, struct err *err)
{
    if (s->ops->create_bucket != local_create_bucket)
        return s->ops->create_bucket(s, info, err);
    return bucket_make(local_of(s), info, NULL, true, err);
}

/* Calls fn with every row of the bucket under the tag. Stops at the first error of fn. */
static int bucket_each_row(struct row_change *c, enum tag tag,
                           int (*fn)(struct row_change *, struct str), struct err *err)
{
    struct buf end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct str key, value;
    struct row row;

    struct str from = row_key(&row, c->b, tag, STR_EMPTY);
    db_prefix_end(from, &end);
    struct db_range range = {.from = from, .to = buf_str(&end)};
    int code = db_iter_open(&it, c->view, c->b->local->rows, &range, err);
    while (code == 0 && (code = db_iter_next(it, &key, &value, err)) == 0)
        code = fn(c, key);
    db_iter_close(it);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

static int not_empty(struct row_change *c, struct str row)
{
    (void)c, (void)row;
    return ERR_CONFLICT;
}

static int bucket_delete_row(struct row_change *c, struct str row)
{
    db_tx_delete(c->tx, c->b->local->rows, row);
    return 0;
}

static int bucket_remove_run(struct row_change *c, struct err *err)
{
    static const enum tag holders[] = {TAG_OBJECT, TAG_VERSION, TAG_UPLOAD};
    struct local *l = c->b->local;
    struct row row;
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(holders) && code == 0; i++)
        code = bucket_each_row(c, holders[i], not_empty, err);
    if (code == ERR_CONFLICT)
        return err_set(err, ERR_CONFLICT, "the bucket is not empty");
    if (code == 0)
        code = bucket_each_row(c, TAG_DOCUMENT, bucket_delete_row, err);
    if (code == 0)
        db_tx_delete(c->tx, l->rows, str_n(c->b->usage_row, ROW_BUCKET_LEN));
    if (code < 0)
        return code;
    db_tx_delete(c->tx, l->rows, c->b->row);
    db_tx_delete(c->tx, l->rows, row_owned(&row, l, c->bucket.info.owner, c->b->bucket.name));
    return change_keep(c, &(struct tapped){.changes = CHANGE_BUCKET_GONE}, NULL, 0, err);
}

int bucket_remove_opened(struct bucket *bucket, struct err *err)
{
    struct row_change c = {.b = local_bucket_of(bucket), .fn = bucket_remove_run, .frees = true};
    int code = change_bucket(&c, err);

    local_bucket_unref(bucket);
    return code;
}

/* The overlay (object/overlay.h) is asked after the bucket was opened. If the overlay takes the
 * bucket over later, it fences this reference (local_fence()), so the removal fails. */
int local_remove_bucket(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct bucket *bucket = NULL;
    int code = local_open_bucket(&bucket, s, user, name, err);

    if (code == 0 && storage_overlay_of(s, name)) {
        local_bucket_unref(bucket);
        return err_set(err, ERR_BUSY, "the bucket " STR_FMT " is being sharded", STR_ARG(name));
    }
    return code == 0 ? bucket_remove_opened(bucket, err) : code;
}

int local_remove_untapped(struct storage *s, struct str user, struct str name, struct err *err)
{
    struct bucket *bucket = NULL;
    int code;

    if (s->ops->remove_bucket != local_remove_bucket || storage_overlay_of(s, name))
        return storage_remove_bucket(s, user, name, err);
    code = local_open_bucket(&bucket, s, user, name, err);
    if (code == 0 && storage_overlay_of(s, name)) { /* the overlay has just taken the bucket over */
        local_bucket_unref(bucket);
        return storage_remove_bucket(s, user, name, err);
    }
    if (code != 0)
        return code;
    local_untap(bucket);
    return bucket_remove_opened(bucket, err);
}

/* --- listing buckets --- */

struct bucket_page {
    struct local *l;
    struct arena *a;
    struct str owner; /* empty: buckets of all owners */
    VEC(struct bucket_info) found;
};

static int page_add(struct bucket_page *p, struct str name, struct str value, struct err *err)
{
    struct bucket_record r;
    struct bucket_info info;
    int code = bucket_record_get(value, &r, err);

    if (code < 0 || (p->owner.len && !str_eq(p->owner, r.info.owner)))
        return code;
    code = info_copy(&r, p->a, name, &info, err);
    if (code == 0)
        vec_push(&p->found, info);
    return code;
}

/* Adds the bucket to the page. The name is from an owner's row, so the bucket may have been
 * removed. */
static int page_add_owned(struct bucket_page *p, struct str name, struct err *err)
{
    struct buf value = BUF_INIT(0);
    struct row row;
    int code = db_get(db_latest(p->l->db), p->l->rows, row_name(&row, p->l, TAG_BUCKET, name),
                      &value, err);

    if (code == 0)
        code = page_add(p, name, buf_str(&value), err);
    buf_release(&value);
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* Reads the owner's buckets after the name `after`, in the order of their names. The cost grows
 * with the owner's buckets, not with all buckets of the storage (docs/local-storage.md, L13). */
static int page_read(struct bucket_page *p, struct str after, size_t limit, struct err *err)
{
    struct local *l = p->l;
    struct str name = str_head(after, BUCKET_NAME_MAX), key, value;
    struct buf start = BUF_INIT(0), end = BUF_INIT(0);
    struct db_iter *it = NULL;
    struct row row;

    struct str prefix =
        p->owner.len ? row_owned(&row, l, p->owner, STR_EMPTY) : row_tag(&row, l, TAG_BUCKET);
    size_t prefix_len = prefix.len;
    buf_append_str(&start, prefix);
    buf_append_str(&start, name);
    if (after.len)
        buf_append_char(&start, '\0');
    db_prefix_end(prefix, &end);
    struct db_range range = {.from = buf_str(&start), .to = buf_str(&end)};
    int code = db_iter_open(&it, db_latest(l->db), l->rows, &range, err);
    while (code == 0 && p->found.len < limit && (code = db_iter_next(it, &key, &value, err)) == 0) {
        name = str_skip(key, prefix_len);
        code = p->owner.len ? page_add_owned(p, name, err) : page_add(p, name, value, err);
    }
    db_iter_close(it);
    buf_release(&start);
    buf_release(&end);
    return code == ERR_END ? 0 : code;
}

/* NOLINTNEXTLINE(readability-function-size): bucket.h gives the parameters */
int local_list_buckets(struct storage *s, struct arena *a, struct str owner, struct str after,
                       size_t limit, struct bucket_info **out, size_t *count, struct err *err)
{
    struct bucket_page p = {.l = local_of(s), .a = a, .owner = owner};
    struct bucket_info *infos = NULL;
    int code = owner.len > OWNER_MAX ? 0 : page_read(&p, after, limit, err);

    if (code == 0 && p.found.len) {
        infos = arena_array(a, p.found.len, sizeof(*infos));
        if (infos)
            memcpy(infos, p.found.items, p.found.len * sizeof(*infos));
        else
            code = err_code(err, ERR_NO_MEMORY);
    }
    if (code == 0) {
        *out = infos;
        *count = p.found.len;
    }
    vec_release(&p.found);
    return code;
}

/* --- setting documents and versions --- */

struct document_change {
    struct row_change change;
    struct str name, document;
};

static int document_name(const char *name, struct str *out, struct err *err)
{
    *out = str_z(name);
    if (out->len == 0 || out->len > DOCUMENT_NAME_MAX)
        return err_set(err, ERR_INVALID, "a document's name has 1 to %d bytes", DOCUMENT_NAME_MAX);
    return 0;
}

int local_get_document(struct bucket *bucket, struct arena *a, const char *name, struct str *out,
                       struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct db_view *latest = db_latest(b->local->db);
    struct buf value = BUF_INIT(0), bucket_row = BUF_INIT(0);
    struct bucket_record r;
    struct str document;
    struct row row;
    int code = document_name(name, &document, err);

    if (code == 0)
        code =
            db_get(latest, b->local->rows, row_key(&row, b, TAG_DOCUMENT, document), &value, err);
    if (code == 0) {
        *out = arena_str(a, buf_str(&value));
        code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    } else if (code == ERR_NOT_FOUND) {
        code = bucket_row_get(b, latest, &bucket_row, &r, err);
        code = code < 0 ? code : err_code(err, ERR_NOT_FOUND);
    }
    buf_release(&value);
    buf_release(&bucket_row);
    return code;
}

/* Notes in the bucket's row whether it has a "notification" document, so that no request has to
 * look for the document. */
static void set_notifies(struct row_change *c, bool on)
{
    struct bucket_record r = c->bucket;
    struct buf value = BUF_INIT(0);

    r.info.notifies = on;
    bucket_record_put(&value, &r);
    db_tx_put(c->tx, c->b->local->rows, c->b->row, buf_str(&value));
    buf_release(&value);
}

/* Whether the document differs from the stored one. */
static int document_differs(struct row_change *c, struct str row, struct str document, bool *out,
                            struct err *err)
{
    struct buf have = BUF_INIT(0);
    int code = db_get(c->view, c->b->local->rows, row, &have, err);

    *out = !str_eq(buf_str(&have), document);
    buf_release(&have);
    return code == ERR_NOT_FOUND ? 0 : code;
}

static int document_run(struct row_change *c, struct err *err)
{
    struct document_change *p = container_of(c, struct document_change, change);
    struct row row;
    struct str key = row_key(&row, c->b, TAG_DOCUMENT, p->name);
    bool differs;
    int code = document_differs(c, key, p->document, &differs, err);

    if (code < 0)
        return code;
    if (p->document.len)
        db_tx_put(c->tx, c->b->local->rows, key, p->document);
    else
        db_tx_delete(c->tx, c->b->local->rows, key);
    if (str_eq(p->name, STR("notification")) && c->bucket.info.notifies != (p->document.len > 0))
        set_notifies(c, p->document.len > 0);
    struct tapped t = {.changes = document_things(p->name), .document = p->name};
    return differs ? change_keep(c, &t, NULL, 0, err) : 0;
}

int local_set_document(struct bucket *b, const char *name, struct str document, struct err *err)
{
    struct document_change p = {.change = {.b = local_bucket_of(b), .fn = document_run},
                                .document = document};
    int code = document_name(name, &p.name, err);

    return code < 0 ? code : change_bucket(&p.change, err);
}

struct versions_change {
    struct row_change change;
    bool on;
    bool lock; /* turn object lock on instead of versions */
};

static int versions_run(struct row_change *c, struct err *err)
{
    struct versions_change *p = container_of(c, struct versions_change, change);
    struct bucket_record r = c->bucket;
    struct buf value = BUF_INIT(0);

    if (!p->on && r.info.object_lock)
        return err_set(err, ERR_CONFLICT, "a bucket with object lock keeps its versions");
    if (p->lock && r.info.versions != VERSIONS_ON)
        return err_set(err, ERR_CONFLICT, "object lock needs versions");
    r.info.versions = p->on ? VERSIONS_ON : VERSIONS_SUSPENDED;
    r.info.object_lock |= p->lock;
    bucket_record_put(&value, &r);
    db_tx_put(c->tx, c->b->local->rows, c->b->row, buf_str(&value));
    bool differs = !str_eq(buf_str(&value), buf_str(&c->bucket_row));
    buf_release(&value);
    return differs ? change_keep(c, &(struct tapped){.changes = THING_BUCKET}, NULL, 0, err) : 0;
}

int local_set_versions(struct bucket *b, bool on, struct err *err)
{
    struct versions_change p = {.change = {.b = local_bucket_of(b), .fn = versions_run}, .on = on};

    return change_bucket(&p.change, err);
}

int local_set_object_lock(struct bucket *b, struct err *err)
{
    struct versions_change p = {
        .change = {.b = local_bucket_of(b), .fn = versions_run}, .on = true, .lock = true};

    return change_bucket(&p.change, err);
}
