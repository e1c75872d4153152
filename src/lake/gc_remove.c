/* Removing: the list of dead files, and the marks of a run (docs/lake-keeping.md, G8 and G9). */
#include "lake/files.h"
#include "lake/gc_int.h"
#include "lake/place.h"

#include "base/clock.h"

#include <stdlib.h>

/* --- rows of the list --- */

static const struct proto_field dead_fields[] = {
    PROTO_FIELD(1, PROTO_U64, struct gc_dead, size),
    PROTO_FIELD(2, PROTO_TIME, struct gc_dead, modified_ms),
    PROTO_FIELD(3, PROTO_TIME, struct gc_dead, taken_ms),
    {0},
};

static struct str dead_prefix(struct arena *a, const struct gc_run *g, const char *folder)
{
    return arena_fmt(a, GC_DEAD "/" STR_FMT "/%s", STR_ARG(g->state.run), folder);
}

struct kv_name gc_key_dead_in(struct arena *a, struct str partition, struct str run, struct str key)
{
    struct str name = arena_fmt(a, STR_FMT "/" STR_FMT, STR_ARG(run), STR_ARG(key));

    return lake_key_in(a, partition, GC_DEAD, name);
}

struct kv_name gc_key_dead(struct arena *a, const struct gc_run *g, struct str key)
{
    return gc_key_dead_in(a, g->repo->partition, g->state.run, key);
}

struct str gc_dead_write(struct arena *a, const struct gc_dead *d)
{
    struct buf record = {0};

    proto_write(&record, dead_fields, d);
    struct str value = record.len ? arena_str(a, buf_str(&record)) : STR("");
    buf_release(&record);
    return value;
}

int gc_dead_read(struct gc_dead *out, struct str record, struct err *err)
{
    *out = (struct gc_dead){0};
    return proto_read(out, dead_fields, NULL, record, NULL) < 0
               ? err_set(err, ERR_CORRUPT, "the list of dead files is damaged")
               : 0;
}

/* --- scanning and removing rows --- */

int gc_slice_read(struct gc_slice *out, struct gc_run *g, struct arena *a, struct str prefix,
                  struct str from, struct err *err)
{
    struct kv_range range = {.prefix = prefix, .from = from, .first_page = GC_SLICE};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, g->lake->kv, NULL, g->repo->partition, &range, err);

    out->count = 0;
    while (code == 0 && out->count < GC_SLICE &&
           (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        out->names[out->count] = (struct kv_name){g->repo->partition, arena_str(a, key)};
        out->values[out->count++] = arena_str(a, value);
    }
    kv_scan_free(scan);
    if (code == 0 || code == ERR_END)
        code = arena_error(a);
    return code < 0 ? err_code(err, code) : 0;
}

void gc_slice_next(const struct gc_slice *s, struct buf *from)
{
    if (s->count == 0)
        return;
    buf_reset(from);
    buf_append_str(from, s->names[s->count - 1].key);
    buf_append_char(from, 0);
}

/* Handles one slice. *more: there may be further rows. */
static int each_slice(struct gc_run *g, struct str prefix, gc_row_fn *fn, struct buf *from,
                      bool *more, struct err *err)
{
    struct gc_slice slice;
    struct arena a = {0};
    struct lake_tx tx;
    int code = gc_slice_read(&slice, g, &a, prefix, buf_str(from), err);

    lake_tx_init(&tx, &a);
    for (size_t i = 0; code == 0 && i < slice.count; i++) {
        code = gc_run_check(g, err);
        if (code == 0)
            code = fn(g, &tx, slice.names[i], slice.values[i], err);
    }
    if (code == 0 && tx.count)
        code = gc_run_write(g, &tx, err);
    gc_slice_next(&slice, from);
    *more = slice.count == GC_SLICE;
    arena_release(&a);
    return code;
}

int gc_each_row(struct gc_run *g, struct str prefix, gc_row_fn *fn, struct err *err)
{
    struct buf from = {0};
    bool more = true;
    int code = 0;

    while (code == 0 && more)
        code = each_slice(g, prefix, fn, &from, &more, err);
    buf_release(&from);
    return code;
}

/* --- bodies --- */

/* Removes a body and then its row. */
static int remove_body(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                       struct err *err)
{
    struct str key = str_skip(name.key, dead_prefix(tx->arena, g, "").len);
    int code = gc_run_ask_claim(g, err);

    if (code < 0)
        return code;
    lake_step_begin("lake.gc_remove");
    code = lake_files_remove(g->lake, g->repo, key, NULL, err);
    lake_step_end("lake.gc_remove");
    g->report.bodies_removed += code == 0;
    if (code == 0)
        lake_tx_remove(tx, name, KV_ALWAYS, STR_EMPTY);
    return code;
}

/* --- nodes --- */

/* The nodes of a slice that are being removed. */
struct node_removal {
    struct gc_run *run;
    struct arena arena;
    struct gc_slice slice;
    struct gc_dead dead[GC_SLICE];
    /* the storage checks the condition of a removal and removes the file in one atomic step */
    bool judges;
};

/* G18: writes into every row that the removal of its file has begun, so that no commit takes the
 * row off the list any more. ERR_AGAIN: a commit has just taken a row off the list, so the slice
 * must be read again. */
static int node_removal_take(struct node_removal *r, struct err *err)
{
    struct lake_tx tx;

    lake_tx_init(&tx, &r->arena);
    for (size_t i = 0; i < r->slice.count; i++) {
        struct gc_dead taken = r->dead[i];
        taken.taken_ms = clock_wall_ms();
        if (r->dead[i].taken_ms == 0)
            lake_tx_put_if(&tx, r->slice.names[i], gc_dead_write(&r->arena, &taken), KV_SAME,
                           r->slice.values[i]);
    }
    return tx.count ? gc_run_write(r->run, &tx, err) : 0;
}

static int node_removal_remove_file(struct node_removal *r, size_t i, struct err *err)
{
    struct gc_run *g = r->run;
    struct str key = str_skip(r->slice.names[i].key, dead_prefix(&r->arena, g, "").len);
    struct object_conditions c = {.if_modified_at_ms = r->dead[i].modified_ms};
    int code = gc_run_ask_claim(g, err);

    if (code < 0)
        return code;
    lake_step_begin("lake.gc_remove");
    code = lake_files_remove(g->lake, g->repo, key, r->judges ? &c : NULL, err);
    lake_step_end("lake.gc_remove");
    g->report.nodes_removed += code == 0;
    return code == ERR_PRECONDITION ? 0 : code; /* the node was put again */
}

/* Whether a removal that another process has begun may still reach the storage. */
static bool dead_is_fresh(const struct gc_run *g, const struct gc_dead *d)
{
    return d->taken_ms && d->taken_ms + (int64_t)g->lake->o.drop_again_ms > clock_wall_ms();
}

/* Removes the files of the slice, and then their rows. */
static int node_removal_run(struct node_removal *r, bool *waits, struct err *err)
{
    struct lake_tx tx;
    int code = 0;

    lake_tx_init(&tx, &r->arena);
    for (size_t i = 0; code == 0 && i < r->slice.count; i++) {
        code = gc_run_check(r->run, err);
        if (code == 0)
            code = node_removal_remove_file(r, i, err);
        if (dead_is_fresh(r->run, &r->dead[i]))
            *waits = true;
        else
            lake_tx_remove(&tx, r->slice.names[i], KV_ALWAYS, STR_EMPTY);
    }
    return code == 0 && tx.count ? gc_run_write(r->run, &tx, err) : code;
}

/* Handles one slice of nodes. ERR_AGAIN: the slice must be read again. */
static int node_removal_slice(struct node_removal *r, struct str prefix, struct buf *from,
                              bool *waits, struct err *err)
{
    int code = gc_slice_read(&r->slice, r->run, &r->arena, prefix, buf_str(from), err);

    for (size_t i = 0; code == 0 && i < r->slice.count; i++)
        code = gc_dead_read(&r->dead[i], r->slice.values[i], err);
    if (code == 0 && r->slice.count)
        code = gc_run_ask_claim(r->run, err);
    if (code == 0 && !r->judges)
        code = node_removal_take(r, err);
    if (code == 0)
        code = node_removal_run(r, waits, err);
    if (code == 0)
        gc_slice_next(&r->slice, from);
    return code;
}

/* Prepares the removal of nodes. Finds out whether the storage of the namespace checks the
 * condition of a removal in the same atomic step. */
static int node_removal_init(struct node_removal *r, struct gc_run *g, struct err *err)
{
    struct object_place p;

    r->run = g;
    int code = lake_place_open_below(&p, g->lake, &r->arena, g->repo, STR(LAKE_NODES "/"),
                                     PLACE_READ, err);
    if (code < 0)
        return code;
    r->judges = bucket_can(p.bucket, STORAGE_TELLS_CHANGES);
    return object_place_end(&p, 0, err);
}

static int remove_nodes(struct gc_run *g, struct err *err)
{
    struct node_removal *r = xzalloc(sizeof(*r));
    struct buf from = {0};
    bool waits = false, more = true;
    int code = 0;

    while (code == 0 && more) {
        code = node_removal_init(r, g, err);
        if (code == 0)
            code =
                node_removal_slice(r, dead_prefix(g->arena, g, LAKE_NODES "/"), &from, &waits, err);
        more = r->slice.count == GC_SLICE || code == ERR_AGAIN;
        code = code == ERR_AGAIN ? 0 : code;
        arena_release(&r->arena);
    }
    buf_release(&from);
    free(r);
    return code == 0 && waits ? err_set(err, ERR_BUSY,
                                        "nodes whose removal was interrupted are removed again "
                                        "later")
                              : code;
}

int gc_remove(struct gc_run *g, struct err *err)
{
    int code = gc_each_row(g, dead_prefix(g->arena, g, LAKE_BODIES "/"), remove_body, err);

    return code < 0 ? code : remove_nodes(g, err);
}

/* --- giving up --- */

static int abandon_row(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                       struct err *err)
{
    struct gc_dead dead;
    int code = gc_dead_read(&dead, value, err);

    if (code == 0 && dead_is_fresh(g, &dead))
        g->waits = true;
    else if (code == 0)
        lake_tx_remove(tx, name, KV_ALWAYS, STR_EMPTY);
    return code;
}

int gc_abandon(struct gc_run *g, struct err *err)
{
    int code = gc_each_row(g, STR(GC_DEAD "/"), abandon_row, err);

    if (code == 0 && g->waits)
        return err_set(err, ERR_BUSY, "the last removals of the run may still be under way");
    return code < 0 ? code : gc_remove_marks(g, err);
}

/* --- marks --- */

static int remove_row(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                      struct err *err)
{
    if (!str_eq(value, GC_EXPIRED)) /* the mark of an expired commit stays for ever */
        lake_tx_remove(tx, name, KV_ALWAYS, STR_EMPTY);
    return 0;
}

int gc_remove_marks(struct gc_run *g, struct err *err)
{
    int code = gc_each_row(g, STR(GC_KEPT_ROW "/"), remove_row, err);

    return code < 0 ? code : gc_each_row(g, STR(GC_COMMITS "/"), remove_row, err);
}

int gc_remove_old_lists(struct gc_run *g, struct err *err)
{
    return gc_each_row(g, STR(GC_DEAD "/"), remove_row, err);
}
