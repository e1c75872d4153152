/* Dumps refs: writes the rows of a repository as the records of three trees. */
#include "lake/dump.h"

#include "lake/id_set.h"
#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/manifest.h"
#include "lake/names.h"

#include "base/vec.h"

enum { DUMP_NOTE_EVERY = 1000 }; /* rows between two reports of the progress */

struct dump {
    struct lake *lake;
    const struct lake_repo *repo;
    struct kv_view *view;
    struct tree_store store;
    struct lake_keep keep; /* the state of the collector before the first node was put */
    const struct lake_progress *progress;
    uint64_t rows;
    struct id_set *chosen; /* the commits of the dump; NULL: all commits */
};

struct dump_rows;

/* One kind of rows, "<kind>/<id>". */
struct dump_kind {
    const char *kind;
    /* Fills the identity and the data of a record from a row. ERR_AGAIN: the row is left out of the
     * dump. */
    int (*read)(struct dump_rows *rows, struct str record, struct tree_record *out,
                struct err *err);
};

/* A scan of rows that gives the records of a tree. */
struct dump_rows {
    struct dump *dump;
    const struct dump_kind *kind;
    struct kv_scan *scan;
    struct arena arena; /* memory of the present row */
    struct buf data;
};

/* --- rows --- */

/* Checks the ids of a commit that was read: its own and those of its parents. */
static int dump_check_ids(struct str id, const struct lake_commit *c, struct err *err)
{
    if (!lake_is_commit_id(id))
        return err_set(err, ERR_CORRUPT, "a commit has the malformed id '" STR_FMT "'",
                       STR_ARG(str_head(id, LAKE_ID_LEN)));
    for (size_t i = 0; i < c->parent_count; i++)
        if (!lake_is_commit_id(c->parents[i]))
            return err_set(err, ERR_CORRUPT, "commit " STR_FMT " has a malformed parent",
                           STR_ARG(id));
    return 0;
}

static int dump_read_commit(struct dump_rows *rows, struct str record, struct tree_record *out,
                            struct err *err)
{
    const struct id_set *chosen = rows->dump->chosen;
    struct lake_commit c;

    if (chosen && !id_set_has(chosen, out->key))
        return ERR_AGAIN;
    int code = lake_commit_read(&c, &rows->arena, record, err);
    if (code < 0)
        return err_wrap(err, code, "commit " STR_FMT, STR_ARG(str_head(out->key, LAKE_ID_LEN)));
    code = dump_check_ids(out->key, &c, err);
    if (code < 0)
        return code;
    out->identity = out->key;
    out->data = record;
    return 0;
}

/* Sets the identity of a ref's record from its commit. A ref without a commit gets another
 * identity, because a record with an empty identity would be a removal. */
static void dump_identify(struct tree_record *out, struct str commit_id)
{
    out->identity = commit_id.len ? commit_id : out->key;
}

static int dump_read_tag(struct dump_rows *rows, struct str record, struct tree_record *out,
                         struct err *err)
{
    struct lake_tag tag;
    int code = lake_tag_read(&tag, record, err);

    if (code < 0)
        return code;
    dump_identify(out, tag.commit_id);
    out->data = record;
    return 0;
}

/* Fills a branch's record without its tokens, which are not dumped. */
static int dump_read_branch(struct dump_rows *rows, struct str record, struct tree_record *out,
                            struct err *err)
{
    struct lake_branch b;
    int code = lake_branch_read(&b, &rows->arena, record, err);

    if (code < 0)
        return code;
    struct lake_branch kept = {.id = b.id, .commit_id = b.commit_id, .hidden = b.hidden};
    buf_reset(&rows->data);
    lake_branch_write(&rows->data, &kept);
    dump_identify(out, b.commit_id);
    out->data = buf_str(&rows->data);
    return buf_error(&rows->data);
}

static const struct dump_kind dump_commits = {"commits", dump_read_commit};
static const struct dump_kind dump_tags = {"tags", dump_read_tag};
static const struct dump_kind dump_branches = {"branches", dump_read_branch};

static int dump_rows_next(void *ctx, struct tree_record *out, struct err *err)
{
    struct dump_rows *rows = ctx;
    struct dump *d = rows->dump;
    struct str key, record;
    int code;

    do {
        arena_reset(&rows->arena);
        code = kv_scan_next(rows->scan, &key, &record, err);
        if (code == 0) {
            out->key = str_skip(key, strlen(rows->kind->kind) + 1);
            code = rows->kind->read(rows, record, out, err);
        }
    } while (code == ERR_AGAIN);
    if (code == 0 && ++d->rows % DUMP_NOTE_EVERY == 0)
        code = lake_progress_note(d->progress, d->rows, err);
    return code;
}

static int dump_rows_open(struct dump_rows *rows, struct dump *d, const struct dump_kind *kind,
                          struct err *err)
{
    struct lake_page all = {.limit = LAKE_LIST_MAX};

    *rows = (struct dump_rows){.dump = d, .kind = kind};
    return lake_rows_open(&rows->scan, d->lake, d->view, &rows->arena, d->repo->partition,
                          kind->kind, &all, err);
}

static void dump_rows_close(struct dump_rows *rows)
{
    kv_scan_free(rows->scan);
    arena_release(&rows->arena);
    buf_release(&rows->data);
}

/* Writes the tree of one kind of rows; its id is in the arena. */
static int dump_tree(struct dump *d, struct arena *a, const struct dump_kind *kind, struct str *id,
                     struct err *err)
{
    struct dump_rows rows;
    struct tree_changes changes = {dump_rows_next, &rows};
    struct tree_write_options o = {.writers = d->lake->o.writers};
    struct tree_result result;
    int code = dump_rows_open(&rows, d, kind, err);

    if (code == 0)
        code = tree_apply(&d->store, STR_EMPTY, &changes, &o, &result, err);
    dump_rows_close(&rows);
    if (code == 0)
        *id = arena_str(a, str_z(result.root));
    return code;
}

/* --- choosing commits in a store without moments --- */

/* Chooses the commits of the dump when the store has no moments (D1 of docs/lake-moving.md). A scan
 * may then see a commit and miss its parent, when both were made while it ran. So the ancestors of
 * all commits that the scan saw are added: each was written before its child, so it exists by now.
 * The refs of the dump were read before the scan, so the scan sees their commits. */

static int choose_scanned(struct dump *d, struct err *err)
{
    struct dump_rows rows;
    struct tree_record record;
    struct id_set *chosen = d->chosen;
    int code = dump_rows_open(&rows, d, &dump_commits, err);

    d->chosen = NULL; /* the scan returns every commit */
    while (code == 0 && (code = dump_rows_next(&rows, &record, err)) == 0)
        id_set_add(chosen, record.key);
    dump_rows_close(&rows);
    d->chosen = chosen;
    return code == ERR_END ? 0 : code;
}

/* Adds the ancestors of a commit that are not chosen yet. */
static int choose_ancestors(struct dump *d, struct arena *a, const struct lake_commit *c,
                            struct err *err)
{
    VEC(struct str) open = {0};
    struct lake_commit next = *c;
    int code = 0;

    for (;;) {
        for (size_t i = 0; i < next.parent_count && code == 0; i++)
            if (id_set_add(d->chosen, next.parents[i]))
                vec_push(&open, next.parents[i]);
        if (!open.len || code < 0)
            break;
        struct str id = vec_pop(&open);
        next.parent_count = 0;
        code = lake_commit_get(d->lake, a, d->repo, id, &next, err);
        if (code == 0)
            code = dump_check_ids(id, &next, err);
        else if (code == ERR_NOT_FOUND)
            code =
                err_set(err, ERR_CORRUPT, "commit " STR_FMT ", a parent, is missing", STR_ARG(id));
    }
    vec_release(&open);
    return code;
}

static int choose_missing(struct dump *d, struct err *err)
{
    struct dump_rows rows;
    struct tree_record record;
    struct arena a = {0};
    int code = dump_rows_open(&rows, d, &dump_commits, err);

    while (code == 0 && (code = dump_rows_next(&rows, &record, err)) == 0) {
        struct lake_commit c;
        arena_reset(&a);
        code = lake_commit_read(&c, &a, record.data, err);
        if (code == 0)
            code = choose_ancestors(d, &a, &c, err);
    }
    dump_rows_close(&rows);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

static int dump_choose(struct dump *d, struct err *err)
{
    int code = choose_scanned(d, err);

    if (code == 0)
        code = choose_missing(d, err);
    d->rows = 0;
    return code;
}

/* --- the dump --- */

/* Writes the three trees. Branches and tags are read before the commits that they name. */
static int dump_trees(struct dump *d, struct arena *a, struct lake_refs *out, struct err *err)
{
    struct id_set chosen = {0};
    int code = dump_tree(d, a, &dump_branches, &out->branches, err);

    if (code == 0)
        code = dump_tree(d, a, &dump_tags, &out->tags, err);
    if (code == 0 && !(d->lake->kv->can & KV_MOMENTS)) {
        d->chosen = &chosen;
        code = dump_choose(d, err);
    }
    if (code == 0)
        code = dump_tree(d, a, &dump_commits, &out->commits, err);
    d->chosen = NULL;
    id_set_release(&chosen);
    return code;
}

/* Writes the trees and then the manifest. d->keep has the state of the garbage collector from
 * before the first node was put; dump_try() checks afterwards that no collection has removed the
 * nodes since (lake_keep_covers()). */
static int dump_write(struct dump *d, struct arena *a, struct lake_refs *out, struct err *err)
{
    int code = lake_tree_store(d->lake, d->repo, &d->store, err);

    if (code < 0)
        return code;
    lake_tree_store_keep(&d->store, &d->keep);
    code = kv_view_open(&d->view, d->lake->kv, err);
    if (code == 0)
        code = dump_trees(d, a, out, err);
    kv_view_close(d->lake->kv, d->view);
    lake_tree_store_release(d->lake, &d->store);
    return code < 0 ? code : lake_manifest_write(d->lake, d->repo, out, err);
}

/* Tries to dump once. ERR_AGAIN: a collection began meanwhile and may have removed nodes of the
 * trees before the manifest named them, so the dump must be made again (docs/lake-keeping.md,
 * G17). */
static int dump_try(struct dump *d, struct arena *a, struct lake_refs *out, struct err *err)
{
    struct lake_keep now = {0};
    int code = lake_keep_begin(&d->keep, d->lake, a, d->repo, err);

    if (code == 0)
        code = dump_write(d, a, out, err);
    if (code == 0)
        code = lake_keep_begin(&now, d->lake, a, d->repo, err);
    return code == 0 && !lake_keep_covers(&d->keep, &now) ? ERR_AGAIN : code;
}

int lake_dump(struct lake *l, struct arena *a, const struct lake_repo *r,
              const struct lake_progress *p, struct lake_refs *out, struct err *err)
{
    int code = ERR_AGAIN;
    uint64_t rows = 0;

    for (int i = 0; i < LAKE_HEAD_TRIES && code == ERR_AGAIN; i++) {
        struct dump d = {.lake = l, .repo = r, .progress = p};
        code = dump_try(&d, a, out, err);
        rows = d.rows;
    }
    if (code == ERR_AGAIN)
        code = err_set(err, ERR_BUSY, "a collection is under way; try again later");
    return code < 0 ? code : lake_progress_note(p, rows, err);
}
