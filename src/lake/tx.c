/* Collects changes of the lake's rows, and makes them in one atomic write. */
#include "lake/keep.h"
#include "lake/lake_int.h"

#include "base/clock.h"

void lake_tx_init(struct lake_tx *tx, struct arena *a)
{
    *tx = (struct lake_tx){.arena = a};
}

/* Returns a new place in the list of changes. NULL: there is no memory, or there are too many
 * changes; then the write will fail. */
static struct kv_change *tx_add(struct lake_tx *tx)
{
    if (tx->count == KV_CHANGES_MAX)
        tx->failed = true;
    if (tx->count == tx->room && !tx->failed) {
        size_t room = tx->room ? 2 * tx->room : 16;
        struct kv_change *more = arena_array(tx->arena, room, sizeof(*more));
        if (more && tx->count)
            memcpy(more, tx->changes, tx->count * sizeof(*more));
        tx->failed = !more;
        tx->changes = more;
        tx->room = room;
    }
    return tx->failed ? NULL : &tx->changes[tx->count++];
}

static void tx_change(struct lake_tx *tx, struct kv_change change)
{
    struct kv_change *at = tx_add(tx);

    if (!at)
        return;
    *at = change;
    at->frees = tx->frees;
    at->later = tx->later;
}

void lake_tx_put_if(struct lake_tx *tx, struct kv_name name, struct str value, enum kv_when when,
                    struct str stamp)
{
    tx_change(tx, (struct kv_change){KV_PUT, name, value, when, stamp});
}

void lake_tx_put(struct lake_tx *tx, struct kv_name name, struct str value)
{
    lake_tx_put_if(tx, name, value, KV_ALWAYS, STR_EMPTY);
}

void lake_tx_remove(struct lake_tx *tx, struct kv_name name, enum kv_when when, struct str stamp)
{
    tx_change(tx, (struct kv_change){KV_REMOVE, name, STR_EMPTY, when, stamp});
}

void lake_tx_look(struct lake_tx *tx, struct kv_name name, struct str stamp, enum kv_what how)
{
    tx_change(tx, (struct kv_change){how, name, STR_EMPTY, KV_SAME, stamp});
}

void lake_tx_check(struct lake_tx *tx, struct kv_name name, struct str stamp)
{
    lake_tx_look(tx, name, stamp, KV_CHECK);
}

void lake_tx_check_repo(struct lake_tx *tx, const struct lake_repo *r)
{
    lake_tx_check(tx, lake_key_repo(tx->arena, r->id), r->stamp);
}

struct str lake_tx_record(struct lake_tx *tx, struct buf *record)
{
    struct str value = arena_str(tx->arena, buf_str(record));

    if (buf_error(record) < 0)
        tx->failed = true;
    buf_release(record);
    return value.p ? value : STR("");
}

void lake_tx_put_repo(struct lake_tx *tx, const struct lake_repo *r)
{
    struct buf record = {0};

    lake_repo_write(&record, r);
    lake_tx_put_if(tx, lake_key_repo(tx->arena, r->id), lake_tx_record(tx, &record), KV_SAME,
                   r->stamp);
}

void lake_tx_put_branch(struct lake_tx *tx, const struct lake_repo *r, struct lake_branch *b)
{
    struct buf record = {0};

    b->revision++;
    lake_branch_write(&record, b);
    lake_tx_put_if(tx, lake_key_branch(tx->arena, r->partition, b->id), lake_tx_record(tx, &record),
                   KV_SAME, b->stamp);
}

void lake_tx_put_commit(struct lake_tx *tx, const struct lake_repo *r, const struct lake_commit *c)
{
    struct str first = lake_commit_first_parent(c);
    struct buf record = {0};

    lake_commit_write(&record, c);
    lake_tx_put(tx, lake_key_commit(tx->arena, r->partition, c->id), lake_tx_record(tx, &record));
    if (first.len)
        lake_tx_put(tx, lake_key_first(tx->arena, r->partition, first), STR(""));
}

void lake_tx_drop_token(struct lake_tx *tx, struct str token)
{
    bool frees = tx->frees;
    struct buf record = {0};

    proto_put_time(&record, 1, clock_wall_ms());
    tx->frees = true;
    lake_tx_put(tx, lake_key_cleanup(tx->arena, token), lake_tx_record(tx, &record));
    tx->frees = frees;
}

static int tx_check(const struct lake_tx *tx, struct err *err)
{
    return tx->failed || arena_error(tx->arena) < 0
               ? err_set(err, ERR_TOO_LARGE,
                         "the change has too many parts, or one that is too large")
               : 0;
}

/* Counts the write for the diagnosis (lake/notes.h), and returns `code`. */
static int tx_note(struct lake *l, const struct lake_tx *tx, uint64_t begun_ns, int code,
                   const struct err *err)
{
    struct str partition = tx->count ? tx->changes[tx->count - 1].name.partition : STR_EMPTY;

    lake_notes_add(l->notes, LAKE_NOTE_WRITE, partition, begun_ns, code, err);
    return code;
}

int lake_tx_write(struct lake *l, struct lake_tx *tx, size_t *failed, struct err *err)
{
    uint64_t begun_ns = clock_mono_ns();
    int code = tx_check(tx, err);

    if (code < 0)
        return code;
    code = kv_write(l->kv, tx->changes, tx->count, failed, err);
    return tx_note(l, tx, begun_ns, code, err);
}

int lake_tx_write_get(struct lake *l, struct lake_tx *tx, const struct kv_name *names, size_t count,
                      struct kv_value *out, struct err *err)
{
    uint64_t begun_ns = clock_mono_ns();
    int code = tx_check(tx, err);

    if (code < 0)
        return code;
    code = kv_write_get(l->kv, tx->changes, tx->count, NULL, tx->arena, names, count, out, err);
    return tx_note(l, tx, begun_ns, code, err);
}

/* Tries once to put the ref. ERR_AGAIN: the repository's record or the state of the collector has
 * changed; the caller tries again. */
static int put_ref_try(struct lake *l, struct arena *a, const struct lake_repo *r,
                       struct kv_name name, struct str record, struct str commit_id,
                       struct err *err)
{
    enum { REPO_CHECK, REF_PUT };
    struct lake_keep keep;
    struct lake_tx tx;
    size_t failed = 0;
    int code = commit_id.len ? lake_keep_begin(&keep, l, a, r, err) : 0;

    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_put_if(&tx, name, record, KV_ABSENT, STR_EMPTY);
    if (code == 0 && commit_id.len) {
        lake_tx_keep_state(&tx, r, &keep);
        code = lake_tx_keep_commit(&tx, l, r, &keep, commit_id, err);
    }
    if (code == 0)
        code = lake_tx_write(l, &tx, &failed, err);
    if (code != ERR_PRECONDITION)
        return code;
    return failed == REF_PUT ? err_code(err, ERR_EXISTS) : ERR_AGAIN;
}

int lake_put_ref(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                 struct str record, struct str commit_id, struct err *err)
{
    struct lake_repo now = *r;
    int code;

    while ((code = put_ref_try(l, a, &now, name, record, commit_id, err)) == ERR_AGAIN) {
        code = lake_repo_again(l, a, r, &now, err);
        if (code < 0)
            return code;
    }
    return code;
}

/* Makes one change of a row, together with the check of the repository's record. If only the record
 * has changed, and the repository still exists, the write is made again. */
static int row_change(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct kv_change *change, struct err *err)
{
    enum { REPO_CHECK };
    struct lake_repo now = *r;
    struct lake_tx tx;
    size_t failed = 0;
    int code = 0;

    while (code == 0) {
        lake_tx_init(&tx, a);
        lake_tx_check_repo(&tx, &now);
        tx_change(&tx, *change);
        code = lake_tx_write(l, &tx, &failed, err);
        if (code != ERR_PRECONDITION || failed != REPO_CHECK)
            return code;
        code = lake_repo_again(l, a, r, &now, err);
    }
    return code;
}

int lake_put_same(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                  struct str record, struct str stamp, struct err *err)
{
    return row_change(l, a, r, &(struct kv_change){KV_PUT, name, record, KV_SAME, stamp}, err);
}

int lake_row_remove(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                    struct err *err)
{
    return row_change(l, a, r, &(struct kv_change){KV_REMOVE, name}, err);
}

int lake_put_new(struct lake *l, struct arena *a, const struct lake_repo *r, struct kv_name name,
                 struct str record, struct err *err)
{
    return lake_put_ref(l, a, r, name, record, STR_EMPTY, err);
}
