/* Making and removing shards, and moving rows of objects from one bucket to another
 * (docs/local-storage.md, "Shards"). */
#include "object/local/local_adopt.h"

#include "base/bytes.h"
#include "object/local/local_int.h"

#include <stdlib.h>

/* A call ends with the key at which the moved rows reach this number of bytes. So no change is too
 * large for the database or delays other changes for long. */
static const size_t ADOPT_BYTES = 8 * MIB;

int local_bucket_id(struct bucket *b, uint64_t *out, struct err *err)
{
    if (b->ops != &local_bucket_ops)
        return err_set(err, ERR_INVALID, "the bucket " STR_FMT " is not in a folder",
                       STR_ARG(b->name));
    *out = local_bucket_of(b)->logical.id;
    return 0;
}

/* --- making and removing shards --- */

int local_make_shard(struct bucket *logical, struct str name, struct err *err)
{
    struct local_bucket *of = local_bucket_of(logical);
    struct bucket_info info = {.name = name};

    return bucket_make(of->local, &info, of, true, err);
}

int local_remove_shard(struct storage *s, struct str name, struct err *err)
{
    struct bucket *b = NULL;
    int code = local_open_bucket(&b, s, STR_EMPTY, name, err);

    if (code < 0)
        return code;
    if (bucket_is_shard(local_bucket_of(b)))
        return bucket_remove_opened(b, err);
    local_bucket_unref(b);
    return err_set(err, ERR_INVALID, "the bucket " STR_FMT " is not a shard", STR_ARG(name));
}

int local_remove_opened(struct bucket *b, struct err *err)
{
    return bucket_remove_opened(b, err);
}

/* --- adopting --- */

struct adopt_change {
    struct row_change change; /* the change of the bucket that gets the rows */
    struct row_change source; /* for the bucket that had the rows: changes only its usage counts */
    struct key_window window;
    size_t limit;
    bool announced; /* generation_begin() was called, so the target's row may change */
    size_t keys, bytes;
    bool more;
    struct buf last; /* the last key that was moved */
};

/* Makes the target keep versions, and have object lock, if the source does: a bucket that never
 * kept versions must not have rows of older versions (L3, L14). */
static int adopt_state(struct adopt_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    const struct bucket_info *from = &p->source.bucket.info;
    struct bucket_record r = c->bucket;
    struct buf value = BUF_INIT(0);

    r.info.object_lock |= from->object_lock;
    if (r.info.versions == VERSIONS_NEVER)
        r.info.versions = from->versions;
    if (r.info.object_lock)
        r.info.versions = VERSIONS_ON;
    if (r.info.versions == c->bucket.info.versions &&
        r.info.object_lock == c->bucket.info.object_lock)
        return 0;
    if (!p->announced)
        return err_code(err, ERR_AGAIN);
    bucket_record_put(&value, &r);
    db_tx_put(c->tx, c->b->local->rows, c->b->row, buf_str(&value));
    buf_release(&value);
    return 0;
}

/* Moves a row: its value stays as it is (L4), and in its key only the bucket's id changes. */
static int adopt_row(void *ctx, enum tag tag, struct str from, struct str value, struct err *err)
{
    struct adopt_change *p = ctx;
    struct local *l = p->change.b->local;
    struct object_record r;
    struct row to;

    BUG_ON(from.len > sizeof(to.bytes));
    memcpy(to.bytes, from.p, from.len);
    to.len = from.len;
    be_write((unsigned char *)to.bytes + ROW_PREFIX_LEN, p->change.b->id, 8);
    db_tx_put(p->change.tx, l->rows, row_str(&to), value);
    db_tx_delete(p->change.tx, l->rows, from);
    p->bytes += 2 * from.len + value.len;
    (void)err;
    if (tag != TAG_OBJECT && tag != TAG_VERSION)
        return 0;
    if (record_get(value, &r, NULL) < 0)
        return 0; /* a record that cannot be read is not counted */
    record_count(&p->change.counted, &r, tag == TAG_OBJECT, 1);
    record_count(&p->source.counted, &r, tag == TAG_OBJECT, -1);
    return 0;
}

static int adopt_keys(struct adopt_change *p, struct keys *from, struct err *err)
{
    struct str key;
    int code = 0;

    while (code == 0 && (p->more = keys_peek(from, &key)) && p->keys < p->limit &&
           p->bytes < ADOPT_BYTES) {
        buf_reset(&p->last);
        buf_append_str(&p->last, key);
        code = keys_take(from, buf_str(&p->last), adopt_row, p, err);
        p->keys++;
    }
    return code;
}

/* Moves the rows of the keys. ERR_CONFLICT: the target already has a row between the first and the
 * last of these keys. The target's rows are opened for reading before any row is written, so the
 * moved rows are not among them. */
static int adopt_window(struct adopt_change *p, struct err *err)
{
    struct row_change *c = &p->change;
    struct key_window rest = {.upto = p->window.upto, .with_after = true};
    struct keys from, to = {0};
    struct str key;
    int code = keys_open(&from, c->view, p->source.b, &p->window, err);

    p->more = code == 0 && keys_peek(&from, &rest.after);
    if (p->more)
        code = keys_open(&to, c->view, c->b, &rest, err);
    if (code == 0)
        code = adopt_keys(p, &from, err);
    if (code == 0 && p->keys > 0 && keys_peek(&to, &key) && str_cmp(key, buf_str(&p->last)) <= 0)
        code = err_set(err, ERR_CONFLICT, "the bucket " STR_FMT " has rows in the window",
                       STR_ARG(c->b->bucket.name));
    keys_close(&from);
    keys_close(&to);
    return code;
}

static int adopt_run(struct row_change *c, struct err *err)
{
    struct adopt_change *p = container_of(c, struct adopt_change, change);
    struct row_change *source = &p->source;

    p->keys = p->bytes = 0;
    buf_reset(&p->last);
    source->tx = c->tx;
    source->view = c->view;
    source->counted = (struct bucket_usage){0};
    int code = bucket_row_get(source->b, c->view, &source->bucket_row, &source->bucket, err);
    if (code == 0)
        code = adopt_window(p, err);
    if (code == 0 && p->keys > 0)
        code = adopt_state(p, err);
    return code < 0 ? code : change_count_end(source, err);
}

static int adopt_apply(struct adopt_change *p, struct err *err)
{
    struct local_bucket *to = p->change.b;
    int code = change_apply(&p->change, err);

    if (code != ERR_AGAIN)
        return code;
    p->announced = true;
    generation_begin(&to->local->generations, to->bucket.name);
    code = change_apply(&p->change, err);
    generation_end(&to->local->generations, to->bucket.name);
    return code;
}

static int adopt_check(const struct local_bucket *to, const struct local_bucket *from,
                       struct err *err)
{
    if (to->local != from->local)
        return err_set(err, ERR_INVALID, "the buckets are on two storages");
    if (to->id == from->id || to->logical.id != from->logical.id)
        return err_set(err, ERR_INVALID, "the buckets are no two shards of one bucket");
    return 0;
}

/* NOLINTNEXTLINE(readability-function-size): local_adopt.h gives the parameters */
int local_adopt(struct bucket *to, struct bucket *from, struct str after, struct str upto,
                size_t limit, struct arena *a, struct str *last, bool *more, struct err *err)
{
    struct adopt_change p = {.change = {.b = local_bucket_of(to), .later = true, .fn = adopt_run},
                             .source = {.b = local_bucket_of(from)},
                             .window = {after, upto},
                             .limit = size_min(limit, LOCAL_ADOPT_MAX)};
    int code = adopt_check(p.change.b, p.source.b, err);

    if (code == 0)
        code = adopt_apply(&p, err);
    struct str moved = code == 0 ? arena_str(a, buf_str(&p.last)) : STR_EMPTY;
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0) {
        *last = moved;
        *more = p.more;
    }
    buf_release(&p.last);
    buf_release(&p.source.bucket_row);
    return code;
}

/* --- counting --- */

/* A sample of keys: every `stride`th key in the order of the keys. When the sample is full, every
 * second key of it is dropped, and the stride is doubled. */
struct sample {
    size_t limit;
    uint64_t count, stride;
    VEC(char *) keys; /* owned */
};

static void sample_thin(struct sample *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->keys.len; i++) {
        if (i % 2)
            s->keys.items[kept++] = s->keys.items[i];
        else
            free(s->keys.items[i]);
    }
    s->keys.len = kept;
    s->stride *= 2;
}

static void sample_add(struct sample *s, struct str key)
{
    s->count++;
    if (s->limit == 0 || s->count % s->stride)
        return;
    if (s->keys.len == s->limit)
        sample_thin(s);
    if (s->count % s->stride == 0)
        vec_push(&s->keys, str_dup(key));
}

static int sample_window(struct sample *s, struct local_bucket *b, const struct key_window *w,
                         struct err *err)
{
    struct db_view *view = NULL;
    struct buf key = BUF_INIT(0);
    struct keys k;
    struct str next;
    int code = db_snapshot(&view, b->local->db, err);

    if (code < 0)
        return code;
    code = keys_open(&k, view, b, w, err);
    while (code == 0 && keys_peek(&k, &next)) {
        buf_reset(&key);
        buf_append_str(&key, next);
        sample_add(s, buf_str(&key));
        code = keys_take(&k, buf_str(&key), NULL, NULL, err);
    }
    keys_close(&k);
    db_snapshot_free(view);
    buf_release(&key);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): local_adopt.h gives the parameters */
int local_sample_keys(struct bucket *bucket, struct str after, struct str upto, size_t samples,
                      struct arena *a, uint64_t *count, struct str **sample, size_t *sample_count,
                      struct err *err)
{
    struct sample s = {.limit = samples, .stride = 1};
    int code = sample_window(&s, local_bucket_of(bucket), &(struct key_window){after, upto}, err);
    struct str *keys = code == 0 ? arena_array(a, s.keys.len + 1, sizeof(*keys)) : NULL;

    for (size_t i = 0; i < s.keys.len && keys; i++)
        keys[i] = arena_str(a, str_z(s.keys.items[i]));
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0) {
        *count = s.count;
        *sample = keys;
        *sample_count = s.keys.len;
    }
    vec_each (&s.keys, char **, key)
        free(*key);
    vec_release(&s.keys);
    return code;
}

int local_usage_of(struct bucket *const *buckets, size_t count, struct bucket_usage *out,
                   struct err *err)
{
    struct bucket_usage sum = {0}, one;
    struct db_view *view = NULL;
    int code = count ? db_snapshot(&view, local_bucket_of(buckets[0])->local->db, err) : 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = usage_get(local_bucket_of(buckets[i]), view, &one, err);
        if (code < 0)
            break;
        sum.objects += one.objects;
        sum.bytes += one.bytes;
        sum.old_versions += one.old_versions;
        sum.old_bytes += one.old_bytes;
    }
    db_snapshot_free(view);
    if (code == 0)
        *out = sum;
    return code;
}
