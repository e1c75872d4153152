/* Reads and changes the state of a repository's collector, and adds the checks and marks of
 * writers. */
#include "lake/address.h"
#include "lake/change.h"
#include "lake/gc_int.h"

#include "base/clock.h"

static const struct proto_field state_fields[] = {
    PROTO_FIELD(1, PROTO_U32, struct gc_state, phase),
    PROTO_FIELD(2, PROTO_U64, struct gc_state, number),
    PROTO_FIELD(3, PROTO_STR, struct gc_state, run),
    PROTO_FIELD(4, PROTO_TIME, struct gc_state, cutoff_ms),
    PROTO_FIELD(5, PROTO_BOOL, struct gc_state, mark_only),
    {0},
};

struct kv_name gc_key_state(struct arena *a, struct str partition)
{
    return lake_key_in(a, partition, "gc", STR("state"));
}

struct str gc_state_write(struct arena *a, const struct gc_state *s)
{
    struct buf record = {0};

    proto_write(&record, state_fields, s);
    struct str value = arena_str(a, buf_str(&record));
    buf_release(&record);
    return value;
}

struct str gc_state_new(struct arena *a, enum gc_phase phase)
{
    return gc_state_write(a, &(struct gc_state){.phase = phase, .number = 1});
}

int gc_state_read(struct gc_state *out, const struct kv_value *row, struct err *err)
{
    *out = (struct gc_state){0};
    if (proto_read(out, state_fields, NULL, row->bytes, NULL) < 0 || out->phase > GC_HELD)
        return err_set(err, ERR_CORRUPT, "the state of the collection is damaged");
    out->stamp = row->stamp;
    return 0;
}

/* Makes the row; another process may do so at the same time. */
static int state_make(struct lake *l, struct arena *a, const struct lake_repo *r, struct err *err)
{
    struct lake_tx tx;
    size_t failed;

    lake_tx_init(&tx, a);
    lake_tx_check_repo(&tx, r);
    lake_tx_put_if(&tx, gc_key_state(a, r->partition), gc_state_new(a, GC_IDLE), KV_ABSENT,
                   STR_EMPTY);
    int code = lake_tx_write(l, &tx, &failed, err);
    return code == ERR_PRECONDITION && failed > 0 ? 0 : code;
}

int gc_state_load(struct lake *l, struct arena *a, const struct lake_repo *r, struct gc_state *out,
                  struct err *err)
{
    struct kv_name name = gc_key_state(a, r->partition);
    struct lake_repo now = *r;
    struct kv_value value;
    int code;

    while ((code = kv_get(l->kv, NULL, a, name, &value, err)) == ERR_NOT_FOUND) {
        code = state_make(l, a, &now, err);
        if (code == ERR_PRECONDITION)
            code = lake_repo_again(l, a, r, &now, err);
        if (code < 0)
            return code;
    }
    return code < 0 ? code : gc_state_read(out, &value, err);
}

void gc_state_change(struct lake_tx *tx, const struct lake_repo *r, struct gc_state *from,
                     const struct gc_state *to)
{
    struct gc_state next = *to;

    next.number = from->number + 1;
    next.stamp = gc_state_write(tx->arena, &next);
    lake_tx_put_if(tx, gc_key_state(tx->arena, r->partition), next.stamp, KV_SAME, from->stamp);
    *from = next;
}

/* --- checks and marks of writers (docs/lake-keeping.md, G11, G14 and G16) --- */

int lake_keep_begin(struct lake_keep *out, struct lake *l, struct arena *a,
                    const struct lake_repo *r, struct err *err)
{
    struct gc_state state;
    int code = gc_state_load(l, a, r, &state, err);

    if (code == 0)
        *out = (struct lake_keep){
            .stamp = state.stamp,
            .is_marking = state.phase == GC_MARKING,
            .is_removing = state.phase == GC_CLOSED || state.phase == GC_REMOVING,
            .is_idle = state.phase == GC_IDLE || state.phase == GC_HELD,
            .cutoff_ms = state.cutoff_ms,
            .number = state.number,
            .run = state.run,
        };
    return code;
}

void lake_tx_keep_state(struct lake_tx *tx, const struct lake_repo *r, const struct lake_keep *keep)
{
    lake_tx_check(tx, gc_key_state(tx->arena, r->partition), keep->stamp);
}

static struct kv_name keep_commit_key(struct arena *a, const struct lake_repo *r, struct str id)
{
    return lake_key_in(a, r->partition, GC_COMMITS, id);
}

static int keep_load_mark(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                          struct kv_value *mark, struct err *err)
{
    struct kv_name name = keep_commit_key(a, r, id);

    return kv_get_many(l->kv, NULL, a, &name, 1, mark, err);
}

static int keep_read_mark(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                          struct kv_value *mark, struct err *err)
{
    int code = keep_load_mark(l, a, r, id, mark, err);

    return code == 0 && str_eq(mark->bytes, GC_EXPIRED)
               ? err_set(err, ERR_GONE, "commit " STR_FMT " has expired and was collected",
                         STR_ARG(id))
               : code;
}

/* Adds the mark that keeps a commit. A mark that exists already is of the same run, because a run
 * removes its marks before it ends. */
static void tx_mark_kept(struct lake_tx *tx, const struct lake_repo *r,
                         const struct lake_keep *keep, struct str id, const struct kv_value *mark)
{
    if (keep->is_marking && !kv_is_there(mark))
        lake_tx_put_if(tx, keep_commit_key(tx->arena, r, id), GC_KEPT, KV_ABSENT, STR_EMPTY);
}

int lake_tx_keep_commit(struct lake_tx *tx, struct lake *l, const struct lake_repo *r,
                        const struct lake_keep *keep, struct str id, struct err *err)
{
    struct kv_value mark;
    int code = id.len ? keep_read_mark(l, tx->arena, r, id, &mark, err) : 0;

    if (code == 0 && id.len)
        tx_mark_kept(tx, r, keep, id, &mark);
    return code;
}

/* An expired commit cannot become live again during a run, because the run may already have listed
 * the commit's bodies as dead. While no run is under way, the only mark that the commit may have
 * says that it has expired. It is removed without being read, because reading would cost every
 * commit a round trip. The write checks the state, so no run begins before it is made. */
int lake_tx_keep_new(struct lake_tx *tx, struct lake *l, const struct lake_repo *r,
                     const struct lake_keep *keep, struct str id, struct err *err)
{
    struct kv_value mark;

    if (keep->is_idle) {
        lake_tx_remove(tx, keep_commit_key(tx->arena, r, id), KV_ALWAYS, STR_EMPTY);
        return 0;
    }
    int code = keep_load_mark(l, tx->arena, r, id, &mark, err);
    if (code == 0 && str_eq(mark.bytes, GC_EXPIRED))
        return err_set(err, ERR_BUSY,
                       "a collection is under way, and commit " STR_FMT
                       " has expired; try again later",
                       STR_ARG(id));
    if (code == 0)
        tx_mark_kept(tx, r, keep, id, &mark);
    return code;
}

/* Whether the write already has a change of this row. Several entries may have the same body, but a
 * write may have only one change of a row. */
static bool keep_is_noted(const struct lake_tx *tx, const struct kv_name *name)
{
    for (size_t i = 0; i < tx->count; i++)
        if (str_eq(tx->changes[i].name.key, name->key))
            return true;
    return false;
}

void lake_tx_keep_body(struct lake_tx *tx, const struct lake_repo *r, const struct lake_keep *keep,
                       const struct lake_entry *e)
{
    struct str key;

    if (!keep->is_marking || !lake_entry_below(r, e, &key))
        return;
    struct kv_name name = lake_key_in(tx->arena, r->partition, GC_KEPT_ROW, key);
    if (!keep_is_noted(tx, &name))
        lake_tx_put(tx, name, STR(""));
}

/* --- nodes --- */

/* Tries once to take the node off the list of dead files. ERR_BUSY: the file is being removed, or
 * the row has just changed; the caller waits and tries again. */
static int keep_try_node(const struct lake_keep *keep, struct lake *l, struct arena *a,
                         const struct lake_repo *r, struct str id, struct err *err)
{
    struct str key = arena_fmt(a, LAKE_NODES "/" STR_FMT, STR_ARG(id));
    struct kv_name name = gc_key_dead_in(a, r->partition, keep->run, key);
    struct gc_dead dead = {0};
    struct kv_value row;
    struct lake_tx tx;
    size_t failed = 0;
    int code = kv_get(l->kv, NULL, a, name, &row, err);

    if (code == 0)
        code = gc_dead_read(&dead, row.bytes, err);
    if (code < 0)
        /* the node was never on the list, or has been removed from it */
        return code == ERR_NOT_FOUND ? 0 : code;
    if (dead.taken_ms)
        return err_set(err, ERR_BUSY, "a collection is removing node " STR_FMT "; try again later",
                       STR_ARG(id));
    lake_tx_init(&tx, a);
    lake_tx_keep_state(&tx, r, keep);
    lake_tx_remove(&tx, name, KV_SAME, row.stamp);
    code = lake_tx_write(l, &tx, &failed, err);
    return code != ERR_PRECONDITION ? code : failed == 0 ? ERR_AGAIN : err_code(err, ERR_BUSY);
}

int lake_keep_node(const struct lake_keep *keep, struct lake *l, const struct lake_repo *r,
                   struct str id, struct err *err)
{
    uint64_t deadline_ms = clock_mono_ms() + l->node_wait_ms;
    int code = keep->is_removing ? ERR_BUSY : 0;

    while (code == ERR_BUSY) {
        struct arena a = {0};
        code = keep_try_node(keep, l, &a, r, id, err);
        arena_release(&a);
        if (code == ERR_BUSY && clock_mono_ms() > deadline_ms)
            return code;
        if (code == ERR_BUSY)
            lake_pause_short();
    }
    return code;
}

/* Nodes that were put while a run was marking may be on that run's list of dead files. They are
 * safe only if the tree is published before the run stops marking, so the state must be the same.
 * From every other state the collector may have moved on by one step. A run that has only begun has
 * removed nothing yet. A run that is removing, or has just ended, does not have these nodes on its
 * list. */
bool lake_keep_covers(const struct lake_keep *old, const struct lake_keep *now)
{
    return now->number == old->number || (now->number == old->number + 1 && !old->is_marking);
}

bool lake_entry_below(const struct lake_repo *r, const struct lake_entry *e, struct str *key)
{
    *key = e->address;
    if (lake_address_is_relative(e))
        return true;
    *key = str_skip(e->address, r->space.len + 1);
    return str_starts(e->address, r->space) && e->address.len > r->space.len + 1 &&
           e->address.p[r->space.len] == '/';
}

int lake_keep_check_file(const struct lake_keep *keep, const struct lake_repo *r,
                         const struct lake_entry *e, int64_t modified_ms, struct err *err)
{
    struct str key;

    return keep->is_removing && modified_ms < keep->cutoff_ms && lake_entry_below(r, e, &key)
               ? err_set(err, ERR_BUSY, "a collection is removing old files; try again later")
               : 0;
}

int lake_check_expired(struct lake *l, struct arena *a, const struct lake_repo *r,
                       const struct lake_ref *ref, struct err *err)
{
    struct kv_value mark;
    bool is_head = ref->kind == LAKE_BRANCH && str_eq(ref->commit_id, ref->branch.commit_id);

    return ref->commit_id.len && !is_head ? keep_read_mark(l, a, r, ref->commit_id, &mark, err) : 0;
}
