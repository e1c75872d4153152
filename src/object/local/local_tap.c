/* The tap of a local storage: a row for every change that it wants, in the change's own commit
 * (L12). Keys are the storage's id and the change's number, so they stand in the order of the
 * commits. */
#include "object/local/local_int.h"

enum { TAP_KEY_LEN = 12 };

void local_set_tap(struct storage *s, const struct change_tap *tap)
{
    struct local *l = local_of(s);

    BUG_ON(tap && atomic_load(&l->tap));
    atomic_store(&l->tap, tap);
}

void local_untap(struct bucket *b)
{
    if (b->ops == &local_bucket_ops)
        local_bucket_of(b)->untapped = true;
}

static struct str tap_key(char out[TAP_KEY_LEN], const struct local *l, uint64_t number)
{
    for (int i = 0; i < 4; i++)
        out[i] = (char)(l->id >> (24 - 8 * i));
    for (int i = 0; i < 8; i++)
        out[4 + i] = (char)(number >> (56 - 8 * i));
    return str_n(out, TAP_KEY_LEN);
}

/* A durable change that writes is answered when all that ran before it are committed. */
int local_tap_settle(struct storage *s, struct err *err)
{
    struct local *l = local_of(s);
    char key[TAP_KEY_LEN];

    return db_delete(l->db, l->changes, tap_key(key, l, 0), DB_DURABLE, err);
}

static void put_row(struct change *c, const struct tapped *t)
{
    struct local *l = c->b->local;
    struct buf value = BUF_INIT(0);
    char key[TAP_KEY_LEN];

    tap_record_put(&value, t);
    db_tx_put(c->tx, l->changes, tap_key(key, l, t->number), buf_str(&value));
    buf_release(&value);
    c->tapped = t->number;
}

int change_keep(struct change *c, struct tapped *t, const struct object_record *r,
                uint64_t sequence, struct err *err)
{
    const struct change_tap *tap = atomic_load_explicit(&c->b->local->tap, memory_order_acquire);
    struct arena a = ARENA_INIT(ARENA_BLOCK);
    int code = 0;

    BUG_ON(c->tapped);
    if (!tap || c->b->untapped)
        return 0;
    if (!t->bucket.len) {
        t->bucket = c->b->bucket.name;
        t->owner = c->bucket.info.owner;
    }
    if (tap->may)
        code = tap->may(tap->ctx, err);
    if (code < 0 || !tap->wants(tap->ctx, t))
        return code;
    t->number = sequence;
    if (sequence == 0)
        code = change_sequence(c, &t->number, err);
    if (code == 0 && r && c->bucket.info.versions != VERSIONS_NEVER) {
        t->version = version_text(c->b, &a, c->key, r);
        code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    }
    if (code == 0)
        put_row(c, t);
    arena_release(&a);
    return code;
}

void change_tapped(const struct change *c)
{
    const struct change_tap *tap;

    if (c->tapped == 0)
        return;
    tap = atomic_load_explicit(&c->b->local->tap, memory_order_acquire);
    if (tap)
        tap->committed(tap->ctx, c->tapped);
}

/* --- reading --- */

/* The strings of a row, out of the iterator's memory. */
static int take_row(struct str key, struct str value, struct arena *a, struct tapped *out,
                    struct err *err)
{
    struct str kept = arena_str(a, value);
    int code = arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : tap_record_get(kept, out, err);

    if (code == 0 && key.len != TAP_KEY_LEN)
        code = err_set(err, ERR_CORRUPT, "the key of a change cannot be read");
    if (code == 0)
        out->number = row_u64(str_skip(key, 4));
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): what is asked for, and what comes back */
int local_tap_read(struct storage *s, struct arena *a, uint64_t after, size_t limit,
                   struct tapped **out, size_t *count, struct err *err)
{
    struct local *l = local_of(s);
    char from[TAP_KEY_LEN], to[TAP_KEY_LEN];
    struct db_range range = {tap_key(from, l, after + 1), tap_key(to, l, UINT64_MAX)};
    struct tapped *rows = arena_array(a, limit, sizeof(*rows));
    struct db_iter *it = NULL;
    struct str key, value;
    size_t found = 0;
    int code = rows ? db_iter_open(&it, db_latest(l->db), l->changes, &range, err)
                    : err_code(err, ERR_NO_MEMORY);

    while (code == 0 && found < limit && (code = db_iter_next(it, &key, &value, err)) == 0)
        code = take_row(key, value, a, &rows[found++], err);
    db_iter_close(it);
    if (code < 0 && code != ERR_END)
        return code;
    *out = rows;
    *count = found;
    return 0;
}

struct drop {
    struct local *l;
    const struct tapped *rows;
    size_t count;
};

static int drop_run(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct drop *d = ctx;
    char key[TAP_KEY_LEN];

    (void)err;
    for (size_t i = 0; i < d->count; i++)
        db_tx_delete(tx, d->l->changes, tap_key(key, d->l, d->rows[i].number));
    return 0;
}

int local_tap_drop(struct storage *s, const struct tapped *rows, size_t count, struct err *err)
{
    struct drop d = {local_of(s), rows, count};

    return db_apply(d.l->db, DB_VOLATILE, drop_run, &d, err);
}

int local_tap_drop_until(struct storage *s, uint64_t last, struct err *err)
{
    struct local *l = local_of(s);
    char from[TAP_KEY_LEN], to[TAP_KEY_LEN];

    return db_delete_range(l->db, l->changes, tap_key(from, l, 0), tap_key(to, l, last + 1), err);
}
