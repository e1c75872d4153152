/* Listings: seeks in the index, at a cost that grows with the entries returned
 * (docs/local-storage.md, P6). */
#include "object/local/local_int.h"

/* The entries of a listing, in the arena. Their room is doubled when it is full. */
struct entries {
    struct arena *a;
    struct list_result *out;
    size_t room, limit;
    bool tags;
};

/* Adds an empty entry. NULL: the arena's limit is reached. */
static struct list_entry *entry_add(struct entries *e)
{
    struct list_result *out = e->out;

    if (out->count == e->room) {
        e->room = size_max(16, 2 * e->room);
        struct list_entry *more = arena_array(e->a, e->room, sizeof(*more));
        if (!more)
            return NULL;
        if (out->count)
            memcpy(more, out->entries, out->count * sizeof(*more));
        out->entries = more;
    }
    return &out->entries[out->count++];
}

static int add_prefix(struct entries *e, struct str prefix, struct err *err)
{
    struct list_entry *entry = entry_add(e);

    if (!entry)
        return err_code(err, ERR_NO_MEMORY);
    *entry = (struct list_entry){.is_prefix = true, .info.key = arena_str(e->a, prefix)};
    return arena_error(e->a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int add_object(struct entries *e, struct local_bucket *b, struct str key, struct str value,
                      bool is_latest, struct err *err)
{
    struct object_record r;
    int code = record_get(value, &r, err);

    if (code < 0)
        return code;
    struct list_entry *entry = entry_add(e);
    if (!entry)
        return err_code(err, ERR_NO_MEMORY);
    *entry = (struct list_entry){.info.is_latest = is_latest};
    entry->info.key = arena_str(e->a, key);
    entry->info.version = version_text(b, e->a, key, &r);
    code = record_info(&r, e->a, false, &entry->info, err);
    if (e->tags)
        entry->info.meta.tags = arena_str(e->a, r.meta.tags);
    return code;
}

struct str list_common(struct str key, const struct list_options *o)
{
    ptrdiff_t at;

    if (o->delimiter.len == 0 || key.len < o->prefix.len)
        return STR_EMPTY;
    at = str_find(str_skip(key, o->prefix.len), o->delimiter);
    return at < 0 ? STR_EMPTY : str_head(key, o->prefix.len + (size_t)at + o->delimiter.len);
}

/* Appends the key of the row where the listing begins: after `after`, or after all keys under
 * `after` if that is itself a common prefix. */
void list_start(struct buf *out, const struct local_bucket *b, enum tag tag,
                const struct list_options *o)
{
    struct str after = str_head(o->after, OBJECT_KEY_MAX), common;
    struct row row;

    if (after.len == 0) {
        buf_append_str(out, row_key(&row, b, tag, str_head(o->prefix, OBJECT_KEY_MAX)));
        return;
    }
    common = str_starts(after, o->prefix) ? list_common(after, o) : STR_EMPTY;
    if (common.len > 0 && common.len == after.len) {
        db_prefix_end(row_key(&row, b, tag, after), out);
        return;
    }
    buf_append_str(out, row_key(&row, b, tag, after));
    /* In rows of other tags, a NUL and more bytes follow the object's key. '\1' skips all rows of
     * the key `after`. */
    buf_append_char(out, tag == TAG_OBJECT ? '\0' : '\1');
}

static void seek_behind(struct db_iter *it, const struct local_bucket *b, enum tag tag,
                        struct str prefix)
{
    struct buf end = BUF_INIT(0);
    struct row row;

    db_prefix_end(row_key(&row, b, tag, prefix), &end);
    db_iter_seek(it, buf_str(&end));
    buf_release(&end);
}

static int result_end(struct list_result *out, struct arena *a, struct err *err)
{
    if (out->count > 0) {
        const struct list_entry *last = &out->entries[out->count - 1];
        out->next = last->info.key;
        out->next_version = last->info.version;
    }
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* An iterator over those rows of a bucket under one tag that may become entries. */
struct walk {
    struct db_iter *it;
    struct buf start, end, behind;
};

static int row_walk_open(struct walk *w, struct db_view *view, struct local_bucket *b, enum tag tag,
                         const struct list_options *o, struct err *err)
{
    struct row row;
    struct str prefix = row_key(&row, b, tag, str_head(o->prefix, OBJECT_KEY_MAX));

    buf_append_str(&w->start, prefix);
    db_prefix_end(prefix, &w->end);
    struct db_range range = {
        .from = buf_str(&w->start), .to = buf_str(&w->end), .skips = o->delimiter.len > 0};
    return db_iter_open(&w->it, view, b->local->rows, &range, err);
}

static void row_walk_close(struct walk *w)
{
    db_iter_close(w->it);
    buf_release(&w->start);
    buf_release(&w->end);
    buf_release(&w->behind);
}

static int row_walk_next(struct walk *w, struct local *l, struct str *key, struct str *value,
                         struct err *err)
{
    atomic_fetch_add_explicit(&l->list_steps, 1, memory_order_relaxed);
    return db_iter_next(w->it, key, value, err);
}

static int bucket_there(struct local_bucket *b, struct db_view *view, struct err *err)
{
    struct buf row = BUF_INIT(0);
    struct bucket_record r;
    int code = bucket_row_get(b, view, &row, &r, err);

    buf_release(&row);
    return code;
}

/* Moves past all objects with the prefix, and sets *key to the next object's key. row_walk_next()
 * then returns that object. */
static int walk_skip(struct walk *w, struct local_bucket *b, struct str prefix, struct str *key,
                     struct err *err)
{
    struct row row;

    atomic_fetch_add_explicit(&b->local->list_steps, 1, memory_order_relaxed);
    buf_reset(&w->behind);
    db_prefix_end(row_key(&row, b, TAG_OBJECT, prefix), &w->behind);
    int code = db_iter_skip(w->it, buf_str(&w->behind), key, err);
    if (code == 0)
        *key = str_skip(*key, ROW_BUCKET_LEN);
    return code;
}

/* Adds a common prefix, and the common prefixes that follow it, up to the next object or the end of
 * the page. */
static int list_prefixes(struct walk *w, struct local_bucket *b, const struct list_options *o,
                         struct entries *e, struct str common, struct err *err)
{
    struct str key;
    int code;

    while (common.len && e->out->count < e->limit) {
        code = add_prefix(e, common, err);
        if (code == 0)
            code = walk_skip(w, b, e->out->entries[e->out->count - 1].info.key, &key, err);
        if (code < 0)
            return code;
        common = list_common(key, o);
    }
    return 0;
}

static int list_objects(struct walk *w, struct local_bucket *b, const struct list_options *o,
                        struct entries *e, struct err *err)
{
    struct str row, value;
    int code;

    while ((code = row_walk_next(w, b->local, &row, &value, err)) == 0) {
        struct str key = str_skip(row, ROW_BUCKET_LEN), common = list_common(key, o);
        if (e->out->count == e->limit) {
            e->out->more = true;
            return 0;
        }
        code = common.len ? list_prefixes(w, b, o, e, common, err)
                          : add_object(e, b, key, value, true, err);
        if (code < 0)
            break;
    }
    return code == ERR_END ? 0 : code;
}

int local_list(struct bucket *bucket, struct arena *a, const struct list_options *o,
               struct list_result *out, struct err *err)
{
    struct local_bucket *b = local_bucket_of(bucket);
    struct db_view *latest = db_latest(b->local->db);
    struct entries e = {
        .a = a, .out = out, .limit = size_min(o->limit, OBJECT_LIST_MAX), .tags = o->tags};
    struct walk w = {0};
    struct buf start = BUF_INIT(0);
    int code = bucket_there(b, latest, err);

    *out = (struct list_result){0};
    if (code < 0 || e.limit == 0 || o->prefix.len > OBJECT_KEY_MAX)
        return code;
    code = row_walk_open(&w, latest, b, TAG_OBJECT, o, err);
    if (code == 0) {
        list_start(&start, b, TAG_OBJECT, o);
        db_iter_seek(w.it, buf_str(&start));
        code = list_objects(&w, b, o, &e, err);
    }
    row_walk_close(&w);
    buf_release(&start);
    if (code == 0)
        code = result_end(out, a, err);
    return fence_checked(b, code, err);
}

/* --- listing versions --- */

/* Two walks merged into one: for each key the row of TAG_OBJECT (walk `o`), then the rows of
 * TAG_VERSION (walk `v`). */
struct row_merge {
    struct local_bucket *b;
    struct walk o, v;
    struct str o_key, o_value, v_key, v_value; /* the next row of each walk; keys are object keys,
                                                  without the rest of the row's key */
    bool o_there, v_there;
    struct buf seen; /* the key of the last row that was added */
};

static int merge_next_o(struct row_merge *m, struct err *err)
{
    int code = row_walk_next(&m->o, m->b->local, &m->o_key, &m->o_value, err);

    m->o_there = code == 0;
    if (code == 0)
        m->o_key = str_skip(m->o_key, ROW_BUCKET_LEN);
    return code == ERR_END ? 0 : code;
}

static int merge_next_v(struct row_merge *m, struct err *err)
{
    int code = row_walk_next(&m->v, m->b->local, &m->v_key, &m->v_value, err);

    m->v_there = code == 0;
    if (code == 0 && m->v_key.len <= ROW_BUCKET_LEN + ROW_VERSION_TAIL)
        return err_set(err, ERR_CORRUPT, "the key of a version's row is too short");
    if (code == 0)
        m->v_key = str_skip(str_head(m->v_key, m->v_key.len - ROW_VERSION_TAIL), ROW_BUCKET_LEN);
    return code == ERR_END ? 0 : code;
}

static void merge_seek_behind(struct row_merge *m, struct str prefix)
{
    seek_behind(m->o.it, m->b, TAG_OBJECT, prefix);
    seek_behind(m->v.it, m->b, TAG_VERSION, prefix);
}

/* Begins both walks after the version `after_version` of the key `after`. */
static int merge_start(struct row_merge *m, struct db_view *view, const struct list_options *o,
                       struct err *err)
{
    struct buf start = BUF_INIT(0);
    struct stored at = {0};
    struct row row;
    int code = 0;

    list_start(&start, m->b, TAG_OBJECT, o);
    db_iter_seek(m->o.it, buf_str(&start));
    buf_reset(&start);
    if (o->after.len && o->after.len <= OBJECT_KEY_MAX && o->after_version.len) {
        code = stored_find(&at, view, m->b, o->after, o->after_version, err);
        uint64_t sequence = at.r.sequence;
        /* If the version was removed after the last page, its id still tells where it was. */
        if (code == ERR_NOT_FOUND && version_parse(m->b, o->after, o->after_version, &sequence))
            code = 0;
        if (code == 0) {
            buf_append_str(&start, row_version(&row, m->b, o->after, sequence - 1));
            buf_append_str(&m->seen, o->after);
        }
        if (code == ERR_NOT_FOUND)
            code = 0;
    }
    if (start.len == 0)
        list_start(&start, m->b, TAG_VERSION, o);
    db_iter_seek(m->v.it, buf_str(&start));
    stored_release(&at);
    buf_release(&start);
    return code;
}

/* Compares the next rows of the two walks. Adds the row with the smaller key, or the common prefix
 * of that key. */
static int merge_step(struct row_merge *m, const struct list_options *o, struct entries *e,
                      struct err *err)
{
    bool from_o = m->o_there && (!m->v_there || str_cmp(m->o_key, m->v_key) <= 0);
    struct str key = from_o ? m->o_key : m->v_key, common = list_common(key, o);
    int code;

    if (common.len) {
        code = add_prefix(e, common, err);
        if (code == 0)
            merge_seek_behind(m, e->out->entries[e->out->count - 1].info.key);
        if (code == 0)
            code = merge_next_o(m, err);
        return code == 0 ? merge_next_v(m, err) : code;
    }
    bool is_latest = from_o || !str_eq(key, buf_str(&m->seen));
    code = add_object(e, m->b, key, from_o ? m->o_value : m->v_value, is_latest, err);
    if (code < 0)
        return code;
    buf_reset(&m->seen);
    buf_append_str(&m->seen, key);
    return from_o ? merge_next_o(m, err) : merge_next_v(m, err);
}

static int merge_all(struct row_merge *m, const struct list_options *o, struct entries *e,
                     struct err *err)
{
    int code = merge_next_o(m, err);

    if (code == 0)
        code = merge_next_v(m, err);
    while (code == 0 && (m->o_there || m->v_there)) {
        if (e->out->count == e->limit) {
            e->out->more = true;
            return 0;
        }
        code = merge_step(m, o, e, err);
    }
    return code;
}

int local_list_versions(struct bucket *bucket, struct arena *a, const struct list_options *o,
                        struct list_result *out, struct err *err)
{
    struct row_merge m = {.b = local_bucket_of(bucket)};
    struct local *l = m.b->local;
    struct entries e = {
        .a = a, .out = out, .limit = size_min(o->limit, OBJECT_LIST_MAX), .tags = o->tags};
    struct db_view *view = NULL;
    int code = db_snapshot(&view, l->db, err); /* so that both walks see the same state */

    *out = (struct list_result){0};
    if (code < 0)
        return code;
    code = bucket_there(m.b, view, err);
    if (code == 0 && e.limit > 0 && o->prefix.len <= OBJECT_KEY_MAX) {
        code = row_walk_open(&m.o, view, m.b, TAG_OBJECT, o, err);
        if (code == 0)
            code = row_walk_open(&m.v, view, m.b, TAG_VERSION, o, err);
        if (code == 0)
            code = merge_start(&m, view, o, err);
        if (code == 0)
            code = merge_all(&m, o, &e, err);
        if (code == 0)
            code = result_end(out, a, err);
    }
    row_walk_close(&m.o);
    row_walk_close(&m.v);
    buf_release(&m.seen);
    db_snapshot_free(view);
    return fence_checked(m.b, code, err);
}
