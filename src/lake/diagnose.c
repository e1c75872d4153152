/* Writes the diagnosis of a lake. */
#include "lake/diagnose.h"
#include "lake/claim.h"
#include "lake/gc.h"

#include "lake/iter.h"
#include "lake/lake_int.h"
#include "lake/notes.h"
#include "lake/tar.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdatomic.h>

enum {
    DIAGNOSE_KINDS_MAX = 32,
    DIAGNOSE_KIND_LEN = 32,
    DIAGNOSE_NOTE_EVERY = 10000, /* rows between two reports of the progress */
};

/* A file of the archive under construction: a JSON array of objects. */
struct diagnose_file {
    struct buf text;
    struct json_out w;
};

struct diagnosis {
    struct lake *lake;
    const struct lake_diagnose_options *options;
    uint64_t rows;
    struct diagnose_file partitions, branches, trees, collections, errors;
};

static void file_begin(struct diagnose_file *f)
{
    f->text = BUF_INIT(LAKE_DIAGNOSIS_MAX);
    json_out_init(&f->w, &f->text);
    json_out_open(&f->w, '[');
}

/* Ends the file and puts it into the archive. */
static void file_end(struct diagnose_file *f, struct buf *tar, const char *name)
{
    json_out_close(&f->w, ']');
    buf_append_char(&f->text, '\n');
    if (buf_error(&f->text) < 0)
        tar->failed = true;
    else
        tar_add(tar, name, buf_str(&f->text), clock_wall_ms() / MS_PER_S);
    buf_release(&f->text);
}

/* Adds an error to errors.json. Only a part of the diagnosis has failed, and the rest goes on. */
static void diagnose_error(struct diagnosis *d, struct str where, const struct err *err)
{
    struct json_out *w = &d->errors.w;

    json_out_open(w, '{');
    json_out_member_str(w, "where", where);
    json_out_member_str(w, "error", str_z(err->text));
    json_out_close(w, '}');
}

/* --- rows of partitions --- */

/* The rows of one entity, which are those whose keys begin with "<kind>/": their number and
 * bytes. */
struct diagnose_entity {
    char kind[DIAGNOSE_KIND_LEN];
    uint64_t rows, bytes;
};

struct diagnose_count {
    struct diagnose_entity entities[DIAGNOSE_KINDS_MAX];
    size_t count;
};

/* Returns the entity of a key. When the array is full, further entities are counted in its last
 * one. */
static struct diagnose_entity *count_entity(struct diagnose_count *c, struct str key)
{
    struct str kind = STR_EMPTY, rest;

    if (!str_cut(key, '/', &kind, &rest))
        kind = STR_EMPTY;
    kind = str_head(kind, DIAGNOSE_KIND_LEN - 1);
    for (size_t i = 0; i < c->count; i++)
        if (str_eq(str_z(c->entities[i].kind), kind))
            return &c->entities[i];
    if (c->count < DIAGNOSE_KINDS_MAX)
        c->count++;
    struct diagnose_entity *e = &c->entities[c->count - 1];
    if (!e->rows && kind.p)
        memcpy(e->kind, kind.p, kind.len);
    return e;
}

static int diagnose_count_rows(struct diagnosis *d, struct str partition, struct diagnose_count *c,
                               struct err *err)
{
    struct kv_scan *scan = NULL;
    struct str key, value;
    int code = kv_scan_open(&scan, d->lake->kv, NULL, partition, &(struct kv_range){0}, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &value, err)) == 0) {
        struct diagnose_entity *e = count_entity(c, key);
        e->rows++;
        e->bytes += key.len + value.len;
        if (++d->rows % DIAGNOSE_NOTE_EVERY == 0)
            code = lake_progress_note(d->options->progress, d->rows, err);
    }
    kv_scan_free(scan);
    return code == ERR_END ? 0 : code;
}

static int diagnose_partition(struct diagnosis *d, struct str partition, struct err *err)
{
    struct diagnose_count c = {0};
    struct json_out *w = &d->partitions.w;
    int code = diagnose_count_rows(d, partition, &c, err);

    for (size_t i = 0; i < c.count; i++) {
        json_out_open(w, '{');
        json_out_member_str(w, "partition", partition);
        json_out_member_str(w, "entity", str_z(c.entities[i].kind));
        json_out_member_u64(w, "rows", c.entities[i].rows);
        json_out_member_u64(w, "bytes", c.entities[i].bytes);
        json_out_close(w, '}');
    }
    return code;
}

/* --- branches --- */

static int count_token(struct diagnosis *d, struct str token, struct diagnose_entity *sum,
                       struct err *err)
{
    struct diagnose_count c = {0};
    int code = diagnose_count_rows(d, token, &c, err);

    for (size_t i = 0; i < c.count; i++) {
        sum->rows += c.entities[i].rows;
        sum->bytes += c.entities[i].bytes;
    }
    return code;
}

static int diagnose_branch(struct diagnosis *d, const struct lake_repo *r,
                           const struct lake_branch *b, struct err *err)
{
    struct diagnose_entity staged = {0}, sealed = {0};
    struct json_out *w = &d->branches.w;
    int code = count_token(d, b->staging, &staged, err);

    for (size_t i = 0; code == 0 && i < b->sealed_count; i++)
        code = count_token(d, b->sealed[i], &sealed, err);
    json_out_open(w, '{');
    json_out_member_str(w, "repository", r->id);
    json_out_member_str(w, "branch", b->id);
    json_out_member_bool(w, "hidden", b->hidden);
    json_out_member_u64(w, "revision", b->revision);
    json_out_member_u64(w, "staged_rows", staged.rows);
    json_out_member_u64(w, "staged_bytes", staged.bytes);
    json_out_member_u64(w, "sealed_tokens", b->sealed_count);
    json_out_member_u64(w, "sealed_rows", sealed.rows);
    json_out_member_u64(w, "sealed_bytes", sealed.bytes);
    json_out_close(w, '}');
    return code;
}

static int diagnose_branches(struct diagnosis *d, const struct lake_repo *r, struct err *err)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    int code = lake_iter_branches(&it, d->lake, r, true, err);

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0)
        code = diagnose_branch(d, r, item.branch, err);
    lake_iter_free(it);
    return code == ERR_END ? 0 : code;
}

/* --- trees --- */

enum { DIAGNOSE_LEVELS = 16 };

struct diagnose_level {
    uint64_t nodes, foreign;
};

static int diagnose_node(void *ctx, const struct node_visit *v, struct err *err)
{
    struct diagnose_level *levels = ctx;

    BUG_ON(v->level >= DIAGNOSE_LEVELS);
    levels[v->level].nodes++;
    levels[v->level].foreign += v->foreign;
    return 0;
}

static void diagnose_write_tree(struct diagnosis *d, const struct lake_repo *r,
                                const struct diagnose_level *levels, uint64_t objects)
{
    struct json_out *w = &d->trees.w;

    for (unsigned i = 0; i < DIAGNOSE_LEVELS && levels[i].nodes; i++) {
        json_out_open(w, '{');
        json_out_member_str(w, "repository", r->id);
        json_out_member_str(w, "branch", r->default_branch);
        json_out_member_u64(w, "level", i);
        json_out_member_u64(w, "nodes", levels[i].nodes);
        json_out_member_u64(w, "nodes_of_lakefs", levels[i].foreign);
        json_out_member_u64(w, "objects", objects);
        json_out_close(w, '}');
    }
}

/* Counts the nodes of the tree of the default branch's head. */
static int diagnose_tree(struct diagnosis *d, const struct lake_repo *r, struct str tree,
                         struct err *err)
{
    struct diagnose_level levels[DIAGNOSE_LEVELS] = {0};
    struct tree_stats stats = {0};
    struct tree_store store;
    int code = lake_tree_store(d->lake, r, &store, err);

    if (code < 0)
        return code;
    code = tree_stats(&store, tree, &stats, err);
    if (code == 0)
        code = tree_walk(&store, tree, NULL, diagnose_node, levels, err);
    lake_tree_store_release(d->lake, &store);
    if (code == 0)
        diagnose_write_tree(d, r, levels, stats.objects);
    return code;
}

static int diagnose_head(struct diagnosis *d, const struct lake_repo *r, struct err *err)
{
    struct arena a = {0};
    struct lake_branch b;
    struct lake_commit c = {0};
    int code = lake_branch_get(d->lake, &a, r, r->default_branch, &b, err);

    if (code == 0 && b.commit_id.len)
        code = lake_commit_get(d->lake, &a, r, b.commit_id, &c, err);
    if (code == 0 && c.tree.len)
        code = diagnose_tree(d, r, c.tree, err);
    arena_release(&a);
    return code;
}

/* --- collections --- */

static int diagnose_collection(struct diagnosis *d, const struct lake_repo *r, struct err *err)
{
    struct json_out *w = &d->collections.w;
    struct lake_gc_report report = {0};
    struct arena a = {0};
    int code = lake_gc_report(d->lake, &a, r, &report, err);

    json_out_open(w, '{');
    json_out_member_str(w, "repository", r->id);
    json_out_member_bool(w, "claim_refused", lake_claim_was_refused(d->lake, r->partition));
    json_out_member_str(w, "run", report.run);
    json_out_member_bool(w, "failed", report.stage == LAKE_GC_FAILED);
    json_out_member_str(w, "error", report.error);
    json_out_close(w, '}');
    arena_release(&a);
    return code;
}

/* --- repositories --- */

typedef int diagnose_part_fn(struct diagnosis *d, const struct lake_repo *r, struct err *err);

static int diagnose_rows(struct diagnosis *d, const struct lake_repo *r, struct err *err)
{
    return diagnose_partition(d, r->partition, err);
}

/* Whether the error ends the whole diagnosis. */
static bool diagnose_ends(int code)
{
    return code == ERR_CANCELED || code == ERR_TOO_LARGE;
}

static int diagnose_repo(struct diagnosis *d, const struct lake_repo *r, struct err *err)
{
    static diagnose_part_fn *const parts[] = {diagnose_rows, diagnose_branches, diagnose_head,
                                              diagnose_collection};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        struct err why = {0};
        int code = parts[i](d, r, &why);
        if (diagnose_ends(code))
            return err_set(err, code, "%s", why.text);
        if (code < 0)
            diagnose_error(d, r->id, &why);
    }
    return 0;
}

static int diagnose_repos(struct diagnosis *d, uint64_t *count, struct err *err)
{
    struct lake_iter *it = NULL;
    struct lake_item item;
    int code = lake_iter_repos(&it, d->lake, err);

    while (code == 0 && (code = lake_iter_next(it, &item, err)) == 0) {
        ++*count;
        code = diagnose_repo(d, item.repo, err);
    }
    lake_iter_free(it);
    return code == ERR_END ? 0 : code;
}

/* Counts the rows of the partitions that belong to no repository. */
static int diagnose_shared(struct diagnosis *d, struct err *err)
{
    static const char *const shared[] = {"graveler", "cleanup-tokens", "actions", "multiparts",
                                         "lake-migrate"};
    int code = 0;

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(shared); i++)
        code = diagnose_partition(d, str_z(shared[i]), err);
    return code;
}

/* --- operations --- */

static void diagnose_operations(struct diagnosis *d, struct buf *tar)
{
    struct lake_note_count counts[LAKE_NOTE_KINDS];
    struct diagnose_file f;

    lake_notes_count(d->lake->notes, counts);
    file_begin(&f);
    for (size_t i = 0; i < LAKE_NOTE_KINDS; i++) {
        json_out_open(&f.w, '{');
        json_out_member_str(&f.w, "operation", str_z(lake_note_names[i]));
        json_out_member_u64(&f.w, "count", counts[i].count);
        json_out_member_u64(&f.w, "failed", counts[i].failed);
        json_out_member_u64(&f.w, "total_ms", counts[i].total_ns / NS_PER_MS);
        json_out_member_u64(&f.w, "slowest_ms", counts[i].slowest_ns / NS_PER_MS);
        json_out_close(&f.w, '}');
    }
    file_end(&f, tar, "operations.json");
}

static void diagnose_events(struct diagnosis *d, struct buf *tar)
{
    struct lake_note *notes;
    struct diagnose_file f;
    struct arena a = {0};
    char time[CLOCK_ISO_LEN + 1];
    size_t count = lake_notes_list(d->lake->notes, &a, &notes);

    file_begin(&f);
    for (size_t i = 0; i < count; i++) {
        clock_iso(notes[i].ended_ms, time);
        json_out_open(&f.w, '{');
        json_out_member_str(&f.w, "time", str_z(time));
        json_out_member_str(&f.w, "operation", str_z(lake_note_names[notes[i].kind]));
        json_out_member_str(&f.w, "of", str_z(notes[i].what));
        json_out_member_u64(&f.w, "took_ms", notes[i].took_ns / NS_PER_MS);
        json_out_member_str(&f.w, "error", str_z(notes[i].error));
        json_out_close(&f.w, '}');
    }
    file_end(&f, tar, "events.json");
    arena_release(&a);
}

/* --- the archive --- */

static void diagnose_about(struct diagnosis *d, uint64_t repositories, struct buf *tar)
{
    struct tree_cache_stats cache;
    struct diagnose_file f;
    char time[CLOCK_ISO_LEN + 1];

    tree_cache_stats(d->lake->cache, &cache);
    clock_iso(clock_wall_ms(), time);
    file_begin(&f);
    json_out_open(&f.w, '{');
    json_out_member_str(&f.w, "version", str_z(d->options->version));
    json_out_member_str(&f.w, "time", str_z(time));
    json_out_member_str(&f.w, "kv", str_z(d->lake->kv->driver));
    const char *warning = atomic_load(&d->lake->kv->warning);
    json_out_member_str(&f.w, "kv_warning", warning ? str_z(warning) : STR_EMPTY);
    json_out_member_u64(&f.w, "users", d->options->users);
    json_out_member_u64(&f.w, "repositories", repositories);
    json_out_member_u64(&f.w, "cache_hits", cache.hits);
    json_out_member_u64(&f.w, "cache_misses", cache.misses);
    json_out_member_u64(&f.w, "cache_bytes", cache.memory_bytes);
    json_out_close(&f.w, '}');
    file_end(&f, tar, "about.json");
}

int lake_diagnose(struct lake *l, const struct lake_diagnose_options *o, struct buf *out,
                  struct err *err)
{
    struct diagnosis d = {.lake = l, .options = o};
    uint64_t repositories = 0;

    file_begin(&d.partitions);
    file_begin(&d.branches);
    file_begin(&d.trees);
    file_begin(&d.collections);
    file_begin(&d.errors);
    int code = diagnose_shared(&d, err);
    if (code == 0)
        code = diagnose_repos(&d, &repositories, err);
    diagnose_about(&d, repositories, out);
    file_end(&d.partitions, out, "partitions.json");
    file_end(&d.branches, out, "branches.json");
    file_end(&d.trees, out, "trees.json");
    file_end(&d.collections, out, "collections.json");
    diagnose_operations(&d, out);
    diagnose_events(&d, out);
    file_end(&d.errors, out, "errors.json");
    tar_end(out);
    if (code == 0 && (out->failed || out->len > LAKE_DIAGNOSIS_MAX))
        code = err_set(err, ERR_TOO_LARGE, "the lake has too many branches for one archive");
    return code;
}
