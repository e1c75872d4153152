/* Removing: the list of dead files, and the marks of a run. */
#include "lake/files.h"
#include "lake/gc_int.h"
#include "lake/place.h"

enum { REMOVE_SLICE = 100 };

/* --- rows of the list --- */

static const struct proto_field dead_fields[] = {
    PROTO_FIELD(1, PROTO_U64, struct gc_dead, size),
    PROTO_FIELD(2, PROTO_TIME, struct gc_dead, modified_ms),
    {0},
};

static struct str dead_prefix(struct arena *a, const struct gc_run *g)
{
    return arena_fmt(a, GC_DEAD "/" STR_FMT "/", STR_ARG(g->state.run));
}

struct kv_name gc_key_dead(struct arena *a, const struct gc_run *g, struct str key)
{
    struct str name = arena_fmt(a, STR_FMT "/" STR_FMT, STR_ARG(g->state.run), STR_ARG(key));

    return lake_key_in(a, g->repo->partition, GC_DEAD, name);
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

int gc_files_judge(struct gc_run *g, bool *out, struct err *err)
{
    struct arena a = {0};
    struct lake_place p;
    int code =
        lake_place_open_below(&p, g->lake, &a, g->repo, STR(LAKE_NODES "/"), LAKE_PLACE_READ, err);

    *out = false;
    if (code == 0) {
        *out = bucket_can(p.bucket, STORAGE_TELLS_CHANGES);
        code = lake_place_end(&p, 0, err);
    }
    arena_release(&a);
    return code;
}

/* --- scanning and removing rows --- */

/* Reads up to REMOVE_SLICE rows whose keys begin with `prefix`; keys and values are in the arena.
 */
static int remove_slice(struct gc_run *g, struct arena *a, struct str prefix, struct str from,
                        struct kv_name *names, struct str *values, size_t *count, struct err *err)
{
    struct kv_range range = {.prefix = prefix, .from = from, .first_page = REMOVE_SLICE};
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, g->lake->kv, NULL, g->repo->partition, &range, err);

    *count = 0;
    while (code == 0 && *count < REMOVE_SLICE &&
           (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        names[*count] = (struct kv_name){g->repo->partition, arena_str(a, key)};
        values[(*count)++] = arena_str(a, value);
    }
    kv_scan_free(scan);
    if (code == 0 || code == ERR_END)
        code = arena_error(a);
    return code < 0 ? err_code(err, code) : 0;
}

/* What is done with a slice of rows: fn() adds changes to the write. */
typedef int remove_fn(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                      struct err *err);

/* Calls fn() for every row whose key begins with `prefix`, and writes the changes of each slice. */
static int remove_each(struct gc_run *g, struct str prefix, remove_fn *fn, struct err *err)
{
    struct buf from = {0};
    size_t count = REMOVE_SLICE;
    int code = 0;

    while (code == 0 && count == REMOVE_SLICE) {
        struct kv_name names[REMOVE_SLICE];
        struct str values[REMOVE_SLICE];
        struct arena a = {0};
        struct lake_tx tx;
        lake_tx_init(&tx, &a);
        code = remove_slice(g, &a, prefix, buf_str(&from), names, values, &count, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            code = gc_run_check(g, err);
            if (code == 0)
                code = fn(g, &tx, names[i], values[i], err);
        }
        if (code == 0 && tx.count)
            code = gc_run_write(g, &tx, err);
        buf_reset(&from);
        if (count) { /* the smallest key behind the last one has a NUL at its end */
            buf_append_str(&from, names[count - 1].key);
            buf_append_char(&from, 0);
        }
        arena_release(&a);
    }
    buf_release(&from);
    return code;
}

/* --- bodies that are kept --- */

static int exclude_row(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                       struct err *err)
{
    struct str key = str_skip(name.key, sizeof(GC_KEPT_ROW "/") - 1);

    lake_tx_remove(tx, gc_key_dead(tx->arena, g, key), KV_ALWAYS, STR_EMPTY);
    return 0;
}

int gc_exclude(struct gc_run *g, struct err *err)
{
    return remove_each(g, STR(GC_KEPT_ROW "/"), exclude_row, err);
}

/* --- files --- */

/* Removes a file and then its row. A file that was put again since it was listed stays. */
static int remove_file(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                       struct err *err)
{
    struct str key = str_skip(name.key, dead_prefix(tx->arena, g).len);
    struct object_conditions c = {0};
    struct gc_dead d;
    bool is_node = str_starts(key, STR(LAKE_NODES "/"));
    int code = gc_dead_read(&d, value, err);

    if (is_node)
        c.if_modified_at_ms = d.modified_ms;
    lake_step_begin("lake.gc_remove");
    if (code == 0)
        code = lake_files_remove(g->lake, g->repo, key, is_node ? &c : NULL, err);
    lake_step_end("lake.gc_remove");
    if (code == 0) {
        g->report.nodes_removed += is_node;
        g->report.bodies_removed += !is_node;
    }
    if (code == 0 || code == ERR_PRECONDITION) {
        lake_tx_remove(tx, name, KV_ALWAYS, STR_EMPTY);
        code = 0;
    }
    return code;
}

int gc_remove(struct gc_run *g, struct err *err)
{
    return remove_each(g, dead_prefix(g->arena, g), remove_file, err);
}

/* --- marks --- */

static int remove_row(struct gc_run *g, struct lake_tx *tx, struct kv_name name, struct str value,
                      struct err *err)
{
    if (!str_eq(value, GC_EXPIRED)) /* an expired commit is expired for ever */
        lake_tx_remove(tx, name, KV_ALWAYS, STR_EMPTY);
    return 0;
}

int gc_remove_marks(struct gc_run *g, struct err *err)
{
    int code = remove_each(g, STR(GC_KEPT_ROW "/"), remove_row, err);

    return code < 0 ? code : remove_each(g, STR(GC_COMMITS "/"), remove_row, err);
}

int gc_remove_old_lists(struct gc_run *g, struct err *err)
{
    return remove_each(g, STR(GC_DEAD "/"), remove_row, err);
}
