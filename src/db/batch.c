/* The pending state, that is, the rows that changes have written and that RocksDB does not have
 * yet: how changes write them into a batch and read them from it, and how a batch is written to
 * RocksDB. W1 to W11 are invariants of docs/db.md. */
#include "db/db_int.h"

#include "base/clock.h"
#include "base/hash.h"

enum {
    BATCH_MAX_MEMBERS = 1024,
    /* A batch of this size is full: later changes go into the next batch. */
    BATCH_MAX_BYTES = 4 * 1024 * 1024,
    /* Every rollback indexes all rows of the batch again. A batch counts as full when its rollbacks
     * have indexed this many rows. */
    BATCH_MAX_UNDONE = 64 * 1024,
    /* A batch that grew larger than this frees its memory when it is reset. */
    BATCH_KEEP_BYTES = 256 * 1024,
    CHANGE_MAX_BYTES = 64 * 1024 * 1024,
    /* About how many bytes a row takes in the log in addition to its key and value. */
    ROW_OVERHEAD_BYTES = 16,
};

/* The position of a key's bit in a filter. */
struct bit {
    size_t word;
    uint64_t mask;
};

static struct bit key_bit(struct str key)
{
    uint64_t h = hash_xxh3(key, 0) % FILTER_BITS;
    return (struct bit){h / 64, (uint64_t)1 << (h % 64)};
}

static bool batch_filter_has(const struct batch *b, enum filter f, struct bit bit)
{
    return b->filters[f][bit.word] & bit.mask;
}

static void batch_filter_add(struct batch *b, enum filter f, struct bit bit)
{
    b->filters[f][bit.word] |= bit.mask;
    b->filled[f] = true;
}

static void undo(struct db_tx *tx)
{
    struct batch *b = tx->into;
    char *message = NULL;

    rocksdb_writebatch_wi_rollback_to_save_point(b->rows, &message);
    BUG_ON(message);
    b->count = (size_t)rocksdb_writebatch_wi_count(b->rows);
    b->undone += b->count;
    tx->wrote = false;
}

int tx_run(struct db_tx *tx, db_change_fn *fn, void *ctx, struct err *err)
{
    _Atomic(const void *) *runner = &tx->db->group.runner;

    tx->now_ms = clock_wall_ms();
    tx->view = (struct db_view){.db = tx->db, .tx = tx, .read = tx->db->read};
    atomic_store_explicit(runner, (const void *)pthread_self(), memory_order_relaxed);
    int code = fn(tx, ctx, err);
    atomic_store_explicit(runner, NULL, memory_order_relaxed);
    BUG_ON(tx->iterators > 0);
    if (code == 0 && tx->too_large)
        code = err_set(err, ERR_TOO_LARGE, "one change may not write more than %d MiB",
                       (int)(CHANGE_MAX_BYTES / MIB));
    if (code == 0 && tx->wrote && !tx->urgent)
        code = space_admit(tx->db, err);
    if (code != 0 && tx->wrote)
        undo(tx);
    return code;
}

struct db_view *db_tx_view(struct db_tx *tx)
{
    return &tx->view;
}

int64_t db_tx_now_ms(struct db_tx *tx)
{
    return tx->now_ms;
}

/* Counts a write of this change. Returns false when the change has reached its limit and may write
 * no more. */
static bool tx_write(struct db_tx *tx, struct db_cf *cf, struct str key, size_t bytes)
{
    struct batch *b = tx->into, *below = tx->below;
    struct bit bit = key_bit(key);

    if (tx->too_large || bytes > CHANGE_MAX_BYTES - tx->bytes) {
        tx->too_large = true;
        return false;
    }
    if (!tx->wrote)
        rocksdb_writebatch_wi_set_save_point(b->rows);
    tx->wrote = true;
    tx->bytes += bytes;
    b->bytes += bytes + ROW_OVERHEAD_BYTES;
    b->count++;
    batch_filter_add(b, FILTER_WRITTEN, bit);
    vec_push(&b->hashes, rows_hash(tx->db->rows, cf, key));
    if (below && (below->read_all || batch_filter_has(below, FILTER_READ, bit) ||
                  batch_filter_has(below, FILTER_WRITTEN, bit)))
        tx->crossed_below = true;
    return true;
}

void db_tx_put(struct db_tx *tx, struct db_cf *cf, struct str key, struct str value)
{
    if (!tx_write(tx, cf, key, key.len + value.len))
        return;
    if (cf->gaps)
        gaps_write(cf->gaps, tx->into->slot, key, GAPS_PUT);
    rocksdb_writebatch_wi_put_cf(tx->into->rows, cf->handle, key.p, key.len, value.p, value.len);
}

void db_tx_delete(struct db_tx *tx, struct db_cf *cf, struct str key)
{
    if (!tx_write(tx, cf, key, key.len))
        return;
    batch_filter_add(tx->into, FILTER_DELETED, key_bit(key));
    if (cf->gaps)
        gaps_write(cf->gaps, tx->into->slot, key, GAPS_DELETE);
    rocksdb_writebatch_wi_delete_cf(tx->into->rows, cf->handle, key.p, key.len);
}

static unsigned saw(struct db_tx *tx, unsigned where)
{
    tx->saw_into = tx->saw_into || where & TX_INTO;
    tx->saw_below = tx->saw_below || where & TX_BELOW;
    return where;
}

unsigned tx_look(struct db_tx *tx, struct str key)
{
    struct bit bit = key_bit(key);
    unsigned where = 0;

    batch_filter_add(tx->into, FILTER_READ, bit);
    if (batch_filter_has(tx->into, FILTER_WRITTEN, bit))
        where |= TX_INTO;
    if (tx->below && batch_filter_has(tx->below, FILTER_WRITTEN, bit))
        where |= TX_BELOW;
    return saw(tx, where);
}

unsigned tx_look_all(struct db_tx *tx)
{
    unsigned where = 0;

    tx->into->read_all = true;
    if (tx->into->count > 0)
        where |= TX_INTO;
    if (tx->below && tx->below->count > 0)
        where |= TX_BELOW;
    return saw(tx, where);
}

bool tx_may_have_deleted(const struct db_tx *tx, struct str key)
{
    return batch_filter_has(tx->into, FILTER_DELETED, key_bit(key));
}

bool batch_full(const struct batch *b)
{
    return b->bytes >= BATCH_MAX_BYTES || b->undone >= BATCH_MAX_UNDONE ||
           b->member_count >= BATCH_MAX_MEMBERS;
}

void batch_settled(struct db *db, const struct batch *b)
{
    for (size_t i = 0; i < db->cf_asked; i++)
        if (db->cfs[i].gaps)
            gaps_settled(db->cfs[i].gaps, b->slot);
}

static int write_rows(struct db *db, struct batch *b, enum db_durability d, struct err *err)
{
    struct group *g = &db->group;
    char *message = NULL;

    if (b->count == 0)
        return 0;
    int code = db_failed(db, err);
    if (code == 0)
        code = space_check(db, b->bytes, d, err);
    if (code != 0)
        return code;
    rows_write_begin(db->rows, b->hashes.items, b->hashes.len);
    rocksdb_write_writebatch_wi(db->rocks, d == DB_DURABLE ? g->durable : g->fast_write, b->rows,
                                &message);
    rows_write_end(db->rows, b->hashes.items, b->hashes.len);
    if (message)
        return failure_take(db, err, message, "writing to");
    headroom_keep(db, b->bytes);
    atomic_fetch_add_explicit(&g->groups, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&g->syncs, d == DB_DURABLE, memory_order_relaxed);
    return 0;
}

int batch_write(struct db *db, struct batch *b, enum db_durability d, struct err *err)
{
    int code = write_rows(db, b, d, err);

    batch_settled(db, b);
    return code;
}

void batch_init(struct batch *b)
{
    list_init(&b->members);
    b->rows = rocksdb_writebatch_wi_create(0, 1);
}

void batch_release(struct batch *b)
{
    BUG_ON(!list_empty(&b->members));
    rocksdb_writebatch_wi_destroy(b->rows);
    vec_release(&b->hashes);
}

void batch_reset(struct batch *b)
{
    if (b->bytes > BATCH_KEEP_BYTES) {
        batch_release(b);
        batch_init(b);
    } else if (b->bytes > 0) {
        rocksdb_writebatch_wi_clear(b->rows);
    }
    b->count = b->bytes = b->undone = b->hashes.len = 0;
    b->member_count = b->succeeded = 0;
    b->waker = NULL;
    b->read_all = false;
    for (size_t f = 0; f < FILTER_COUNT; f++) {
        if (b->filled[f])
            memset(b->filters[f], 0, sizeof(b->filters[f]));
        b->filled[f] = false;
    }
}

struct row {
    struct db_cf *cf;
    struct str key, value;
};

static int row_put_change(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct row *row = ctx;
    db_tx_put(tx, row->cf, row->key, row->value);
    return 0;
}

static int row_delete_change(struct db_tx *tx, void *ctx, struct err *err)
{
    const struct row *row = ctx;
    db_tx_delete(tx, row->cf, row->key);
    return 0;
}

int db_put(struct db *db, struct db_cf *cf, struct str key, struct str value, enum db_durability d,
           struct err *err)
{
    return db_apply(db, d, row_put_change, &(struct row){cf, key, value}, err);
}

int db_delete(struct db *db, struct db_cf *cf, struct str key, enum db_durability d,
              struct err *err)
{
    return db_apply(db, d, row_delete_change, &(struct row){cf, key, STR_EMPTY}, err);
}
