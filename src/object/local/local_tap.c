/* Reports a change inside its commit: to the note that came with the request, and to the tap, which
 * gets a row for every change that it wants (docs/local-storage.md, L12). The rows of a tap are a
 * row log (db/row_log.h): the storage's id is the log's prefix, and the change's number is the
 * row's place in the log. */
#include "base/bytes.h"
#include "db/row_log.h"
#include "object/local/local_int.h"

#include <stdlib.h>

enum { TAP_ID_LEN = 4, TAP_PLACE_LEN = 8 };

void local_set_tap(struct storage *s, const struct change_tap *tap)
{
    struct local *l = local_of(s);

    BUG_ON(tap && atomic_load(&l->tap));
    atomic_store(&l->tap, tap);
}

void local_bucket_untap(struct bucket *b)
{
    local_bucket_of(b)->untapped = true;
}

void local_untap(struct bucket *b)
{
    if (b->ops->untap)
        b->ops->untap(b);
}

static struct str tap_place(char out[TAP_PLACE_LEN], uint64_t number)
{
    be64_write(out, number);
    return str_n(out, TAP_PLACE_LEN);
}

static struct row_log tap_log(const struct local *l, char id[TAP_ID_LEN])
{
    be32_write(id, l->id);
    return (struct row_log){l->db, l->changes, str_n(id, TAP_ID_LEN)};
}

int local_tap_settle(struct storage *s, struct err *err)
{
    char id[TAP_ID_LEN];
    struct row_log log = tap_log(local_of(s), id);

    return row_log_settle(&log, err);
}

/* --- telling --- */

struct change_outbox {
    struct outbox outbox;
    struct row_change *c;
};

static void outbox_put_row(struct outbox *o, struct str prefix, struct str place, struct str value)
{
    struct row_change *c = container_of(o, struct change_outbox, outbox)->c;
    struct row_log log = {c->b->local->db, c->b->local->outbox, prefix};

    row_log_put(&log, c->tx, place, value);
}

static int tell_note(struct row_change *c, const struct change_note *note, unsigned changes,
                     const struct object_record *r, struct err *err)
{
    struct change_outbox out = {{outbox_put_row}, c};
    struct change_fact fact = {.changes = changes, .etag = r->etag, .size = r->size};
    struct arena a = ARENA_INIT(ARENA_BLOCK);
    int code = 0;

    fact.storage = c->b->local->id;
    fact.sequence = r->sequence;
    fact.time_ms = db_tx_now_ms(c->tx);
    if (!(changes & (CHANGE_PUT | CHANGE_MARKER))) /* `r` has the sequence of an earlier change */
        code = change_sequence(c, &fact.sequence, err);
    if (c->bucket.info.versions != VERSIONS_NEVER)
        fact.version = version_text(c->b, &a, c->key, r);
    if (code == 0)
        note->tell(note->ctx, &fact, &out.outbox);
    arena_release(&a);
    return code;
}

static void tap_put_row(struct row_change *c, const struct tapped *t)
{
    char id[TAP_ID_LEN], bytes[TAP_PLACE_LEN];
    struct row_log log = tap_log(c->b->local, id);
    struct str place = tap_place(bytes, t->number);
    struct buf value = BUF_INIT(0);

    tap_record_put(&value, t);
    row_log_put(&log, c->tx, place, buf_str(&value));
    buf_release(&value);
    c->tapped = t->number;
}

int change_keep(struct row_change *c, struct tapped *t, const struct object_record *r,
                uint64_t sequence, struct err *err)
{
    const struct change_tap *tap = atomic_load_explicit(&c->b->local->tap, memory_order_acquire);
    struct arena a = ARENA_INIT(ARENA_BLOCK);
    bool wanted = false;

    BUG_ON(c->tapped);
    if (!tap || c->b->untapped)
        return 0;
    /* A change of the bucket itself is reported once, for the logical bucket; the shards only get
     * the same change. */
    if (bucket_is_shard(c->b) && !t->key.len)
        return 0;
    if (!t->bucket.len) {
        t->bucket = c->b->logical.name;
        t->owner = c->bucket.info.owner;
    }
    int code = tap->wants(tap->ctx, t, &wanted, err);
    if (code < 0 || !wanted)
        return code;
    t->number = sequence;
    if (sequence == 0)
        code = change_sequence(c, &t->number, err);
    if (code == 0 && r && c->bucket.info.versions != VERSIONS_NEVER) {
        t->version = version_text(c->b, &a, c->key, r);
        code = arena_error(&a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
    }
    if (code == 0)
        tap_put_row(c, t);
    arena_release(&a);
    return code;
}

int change_tell(struct row_change *c, const struct change_note *note, unsigned changes,
                const struct object_record *r, struct err *err)
{
    struct tapped t = {.changes = changes, .key = c->key, .set = c->set, .size = r->size};
    bool made = changes & (CHANGE_PUT | CHANGE_MARKER);
    int code = note ? tell_note(c, note, changes, r, err) : 0;

    return code < 0 ? code : change_keep(c, &t, r, made ? r->sequence : 0, err);
}

/* --- reading the tap's rows --- */

static int tap_read_row(struct tapped *out, const struct logged_row *row, struct err *err)
{
    int code = tap_record_get(row->value, out, err);

    if (code == 0 && row->place.len != TAP_PLACE_LEN)
        code = err_set(err, ERR_CORRUPT, "the key of a change cannot be read");
    if (code == 0)
        out->number = row_u64(row->place);
    return code;
}

/* NOLINTNEXTLINE(readability-function-size): local.h gives the parameters */
int local_tap_read(struct storage *s, struct arena *a, uint64_t after, size_t limit,
                   struct tapped **out, size_t *count, struct err *err)
{
    char id[TAP_ID_LEN], from[TAP_PLACE_LEN];
    struct row_log log = tap_log(local_of(s), id);
    struct row_log_span span = {.from = tap_place(from, after + 1), .limit = limit};
    struct logged_row *rows = arena_array(a, limit, sizeof(*rows));
    struct tapped *changes = arena_array(a, limit, sizeof(*changes));
    size_t found = 0;
    int code = rows && changes ? row_log_read(&log, a, &span, rows, &found, err)
                               : err_code(err, ERR_NO_MEMORY);

    for (size_t i = 0; i < found && code == 0; i++)
        code = tap_read_row(&changes[i], &rows[i], err);
    if (code < 0)
        return code;
    *out = changes;
    *count = found;
    return 0;
}

int local_tap_drop(struct storage *s, const struct tapped *rows, size_t count, struct err *err)
{
    char id[TAP_ID_LEN], (*bytes)[TAP_PLACE_LEN] = xzalloc(count * sizeof(*bytes) + 1);
    struct row_log log = tap_log(local_of(s), id);
    struct str *places = xzalloc(count * sizeof(*places) + 1);

    for (size_t i = 0; i < count; i++)
        places[i] = tap_place(bytes[i], rows[i].number);
    int code = row_log_drop(&log, places, count, err);
    free(places);
    free(bytes);
    return code;
}

int local_tap_drop_until(struct storage *s, uint64_t last, struct err *err)
{
    char id[TAP_ID_LEN], to[TAP_PLACE_LEN];
    struct row_log log = tap_log(local_of(s), id);

    return row_log_drop_before(&log, tap_place(to, last + 1), err);
}
