/* Restores refs from a dump (docs/lake-moving.md): the records in the dump's trees become rows of a
 * bare repository.
 *
 * Every tree is read twice: first to check the whole dump, and then to write its rows (D3). A
 * repository is bare until it has its default branch, so that branch is written last. The same
 * write allows collections (D5). A restore that was stopped before this write begins again from the
 * start. */
#include "lake/dump.h"

#include "lake/gc_int.h"
#include "lake/lineage.h"
#include "lake/names.h"

/* Most rows, and most bytes, of one write. */
enum { RESTORE_BATCH = 1000, RESTORE_BATCH_BYTES = 8 << 20 };

/* Most branches and tags whose trees are checked (D12), and most unreadable ones that the error
 * names. */
enum { RESTORE_HEADS_MAX = 10000, RESTORE_LOST_NAMED = 10 };

struct restore {
    struct lake *lake;
    struct lake_repo repo; /* the repository's record, which is read again when it has changed */
    struct arena arena;    /* memory of the record */
    struct tree_store store;
    const struct lake_refs *refs;
    const struct lake_progress *progress;
    uint64_t rows;
    struct lineage lineage;
    bool force;
    size_t heads;     /* number of branches and tags whose trees were checked */
    size_t lost;      /* number of those whose trees cannot be read */
    struct buf named; /* names of the first branches and tags that count in `lost` */
    bool has_default; /* the dump has the repository's default branch */
    struct arena batch;
    struct lake_tx tx;
};

/* --- reading the trees --- */

/* Calls fn() for each record of the tree. The arena is emptied before each call. */
static int restore_each(struct restore *s, struct str root,
                        int (*fn)(struct restore *s, struct arena *a, const struct tree_record *r,
                                  struct err *err),
                        struct err *err)
{
    struct tree_iter *it = NULL;
    struct tree_record record;
    struct arena a = {0};
    int code = tree_iter_open(&it, &s->store, root, err);

    while (code == 0 && (code = tree_iter_next(it, &record, err)) == 0) {
        arena_reset(&a);
        code = fn(s, &a, &record, err);
    }
    tree_iter_close(it);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

/* Checks that the id in a record is the same as the record's key. */
static int restore_check_key(struct str key, struct str id, const char *kind, struct err *err)
{
    return str_eq(key, id)
               ? 0
               : err_set(err, ERR_INVALID, "the dump has the %s " STR_FMT " under another name",
                         kind, STR_ARG(str_head(id, LAKE_NAME_MAX)));
}

static int restore_read_commit(struct lake_commit *out, struct arena *a,
                               const struct tree_record *r, struct err *err)
{
    int code = lake_commit_read(out, a, r->data, err);

    return code < 0 ? code : restore_check_key(r->key, out->id, "commit", err);
}

/* --- checking --- */

static int restore_check_commit(struct restore *s, struct arena *a, const struct tree_record *r,
                                struct err *err)
{
    struct lake_commit c;
    int code = restore_read_commit(&c, a, r, err);

    if (code == 0 && c.tree.len && !lake_is_commit_id(c.tree))
        code =
            err_set(err, ERR_INVALID, "the commit " STR_FMT " has no id of a tree", STR_ARG(c.id));
    return code < 0 ? code : lineage_add(&s->lineage, &c, err);
}

/* Reads the root of the commit's tree. ERR_CORRUPT: the root cannot be read. */
static int restore_read_root(struct restore *s, struct arena *a, struct str commit_id,
                             struct err *err)
{
    struct tree_record record;
    struct tree_stats stats;
    struct lake_commit c = {0};
    int code = tree_get(&s->store, a, s->refs->commits, commit_id, &record, err);

    if (code == 0)
        code = lake_commit_read(&c, a, record.data, err);
    return code < 0 || !c.tree.len ? code : tree_stats(&s->store, c.tree, &stats, err);
}

/* Reads the root of the tree of a branch or a tag. If the root cannot be read, adds the branch or
 * tag to `lost` and `named` (D12). */
static int restore_check_tree(struct restore *s, struct arena *a, const char *kind, struct str name,
                              struct str commit_id, struct err *err)
{
    if (s->force || s->heads == RESTORE_HEADS_MAX)
        return 0;
    int code = ++s->heads % 100 == 0 ? lake_progress_note(s->progress, s->rows, err) : 0;
    if (code == 0)
        code = restore_read_root(s, a, commit_id, err);
    if (code != ERR_CORRUPT)
        return code;
    if (s->lost++ < RESTORE_LOST_NAMED)
        buf_appendf(&s->named, "%s%s " STR_FMT, s->named.len ? ", " : "", kind, STR_ARG(name));
    return 0;
}

static int restore_check_head(struct restore *s, struct arena *a, const char *kind, struct str name,
                              struct str commit_id, struct err *err)
{
    if (!commit_id.len)
        return 0;
    if (!lineage_find(&s->lineage, commit_id))
        return err_set(err, ERR_INVALID,
                       "the %s " STR_FMT " leads to a commit that is not in the dump", kind,
                       STR_ARG(name));
    return restore_check_tree(s, a, kind, name, commit_id, err);
}

static int restore_check_lost(const struct restore *s, struct err *err)
{
    return s->lost == 0
               ? 0
               : err_set(err, ERR_INVALID,
                         "%zu branches and tags cannot be read, because files of their trees are "
                         "missing or damaged in the namespace: " STR_FMT
                         "%s; copy these files, or restore with force",
                         s->lost, STR_ARG(buf_str(&s->named)),
                         s->lost > RESTORE_LOST_NAMED ? " and others" : "");
}

static int restore_check_tag(struct restore *s, struct arena *a, const struct tree_record *r,
                             struct err *err)
{
    struct lake_tag tag;
    int code = lake_tag_read(&tag, r->data, err);

    if (code == 0)
        code = restore_check_key(r->key, tag.id, "tag", err);
    if (code == 0)
        code = lake_check_tag(tag.id, err);
    return code < 0 ? code : restore_check_head(s, a, "tag", tag.id, tag.commit_id, err);
}

static int restore_check_branch(struct restore *s, struct arena *a, const struct tree_record *r,
                                struct err *err)
{
    struct lake_branch b;
    int code = lake_branch_read(&b, a, r->data, err);

    if (code == 0)
        code = restore_check_key(r->key, b.id, "branch", err);
    if (code == 0)
        code = lake_check_branch(b.id, err);
    if (code == 0)
        code = restore_check_head(s, a, "branch", b.id, b.commit_id, err);
    s->has_default = s->has_default || str_eq(r->key, s->repo.default_branch);
    return code;
}

static int restore_check_dump(struct restore *s, struct err *err)
{
    int code = restore_each(s, s->refs->commits, restore_check_commit, err);

    if (code == 0)
        code = lineage_settle(&s->lineage, err);
    if (code == 0)
        code = restore_each(s, s->refs->tags, restore_check_tag, err);
    if (code == 0)
        code = restore_each(s, s->refs->branches, restore_check_branch, err);
    if (code == 0 && !s->has_default)
        code = err_set(err, ERR_INVALID,
                       "the dump has no branch " STR_FMT
                       ", which is the repository's default branch; make the bare repository with "
                       "a default branch that the dump has",
                       STR_ARG(s->repo.default_branch));
    return code < 0 ? code : restore_check_lost(s, err);
}

/* Checks that the repository is bare. A repository is bare while it has no default branch; that
 * branch cannot be deleted once it exists. */
static int restore_check_bare(struct restore *s, struct err *err)
{
    struct kv_name name = lake_key_branch(&s->arena, s->repo.partition, s->repo.default_branch);
    struct kv_value row = {0};
    int code = kv_get_many(s->lake->kv, NULL, &s->arena, &name, 1, &row, err);

    return code == 0 && kv_is_there(&row)
               ? err_set(err, ERR_INVALID, "the repository is not bare: it has the branch " STR_FMT,
                         STR_ARG(s->repo.default_branch))
               : code;
}

/* --- rows that are there already --- */

static int restore_read_ref(struct str kind, struct arena *a, struct str record,
                            struct lake_branch *out, struct err *err)
{
    struct lake_tag tag;

    if (str_eq(kind, STR("branches/")))
        return lake_branch_read(out, a, record, err);
    int code = lake_tag_read(&tag, record, err);
    *out = (struct lake_branch){.commit_id = tag.commit_id};
    return code;
}

static int restore_mixed(struct str kind, struct str name, struct err *err)
{
    return err_set(err, ERR_CONFLICT,
                   "the bare repository has " STR_FMT STR_FMT ", which is not as in this dump; "
                   "delete it, or restore into a new bare repository",
                   STR_ARG(kind), STR_ARG(name));
}

/* Checks that the stored row of a branch or a tag has the same content as the record of the
 * dump. */
static int restore_compare(struct str kind, struct str name, struct arena *a, struct str row,
                           struct str record, struct err *err)
{
    struct lake_branch here = {0}, dumped = {0};
    int code = restore_read_ref(kind, a, row, &here, err);

    if (code == 0)
        code = restore_read_ref(kind, a, record, &dumped, err);
    if (code < 0)
        return code;
    return str_eq(here.commit_id, dumped.commit_id) && here.hidden == dumped.hidden
               ? 0
               : restore_mixed(kind, name, err);
}

/* Checks that the dump has every branch or every tag (`kind`) that is stored in the repository
 * (D11). */
static int restore_check_rows(struct restore *s, struct str kind, struct str root, struct err *err)
{
    struct kv_range range = {.prefix = kind};
    struct kv_scan *scan = NULL;
    struct tree_record record;
    struct str key, row;
    struct arena a = {0};
    int code = kv_scan_open(&scan, s->lake->kv, NULL, s->repo.partition, &range, err);

    while (code == 0 && (code = kv_scan_next(scan, &key, &row, err)) == 0) {
        struct str name = str_skip(key, kind.len);
        arena_reset(&a);
        code = root.len ? tree_get(&s->store, &a, root, name, &record, err) : ERR_NOT_FOUND;
        if (code == ERR_NOT_FOUND)
            code = restore_mixed(kind, name, err);
        if (code == 0)
            code = restore_compare(kind, name, &a, row, record.data, err);
    }
    kv_scan_free(scan);
    arena_release(&a);
    return code == ERR_END ? 0 : code;
}

static int restore_check_present(struct restore *s, struct err *err)
{
    int code = restore_check_rows(s, STR("tags/"), s->refs->tags, err);

    return code < 0 ? code : restore_check_rows(s, STR("branches/"), s->refs->branches, err);
}

/* --- writing --- */

static void restore_batch_begin(struct restore *s)
{
    arena_reset(&s->batch);
    lake_tx_init(&s->tx, &s->batch);
    lake_tx_check_repo(&s->tx, &s->repo);
}

/* Reads the repository's record again, because a write has found that it was changed. */
static int restore_repo_again(struct restore *s, struct err *err)
{
    struct lake_repo old = s->repo;

    return lake_repo_again(s->lake, &s->arena, &old, &s->repo, err);
}

/* Compares the row that a change of the write would put with the stored row. */
static int restore_compare_change(struct restore *s, const struct kv_change *change, struct str row,
                                  struct err *err)
{
    struct str kind, name;

    str_cut(change->name.key, '/', &kind, &name);
    kind.len++; /* include the slash */
    return restore_compare(kind, name, &s->batch, row, change->value, err);
}

/* Removes from the write those rows that an earlier try has already put. */
static int restore_skip_present(struct restore *s, struct err *err)
{
    struct kv_name *names = arena_array(&s->batch, s->tx.count, sizeof(*names));
    struct kv_value *rows = arena_array(&s->batch, s->tx.count, sizeof(*rows));
    size_t kept = 0;

    if (!names || !rows)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < s->tx.count; i++)
        names[i] = s->tx.changes[i].name;
    int code = kv_get_many(s->lake->kv, NULL, &s->batch, names, s->tx.count, rows, err);
    for (size_t i = 0; code == 0 && i < s->tx.count; i++)
        if (s->tx.changes[i].when != KV_ABSENT || !kv_is_there(&rows[i]))
            s->tx.changes[kept++] = s->tx.changes[i];
        else
            code = restore_compare_change(s, &s->tx.changes[i], rows[i].bytes, err);
    if (code == 0)
        s->tx.count = kept;
    return code;
}

/* Prepares the next try of a write. The store has refused the change with the index `failed`.
 * Returns ERR_AGAIN. */
static int restore_batch_again(struct restore *s, size_t failed, struct err *err)
{
    int code = failed == 0 ? restore_repo_again(s, err) : restore_skip_present(s, err);

    s->tx.changes[0].stamp = s->repo.stamp;
    return code < 0 ? code : ERR_AGAIN;
}

/* Writes the changes that were collected. */
static int restore_batch_write(struct restore *s, struct err *err)
{
    size_t failed = 0;
    int code = ERR_AGAIN;

    lake_step_begin("lake.restore_row");
    while (code == ERR_AGAIN) {
        code = lake_tx_write(s->lake, &s->tx, &failed, err);
        if (code == ERR_PRECONDITION)
            code = restore_batch_again(s, failed, err);
    }
    lake_step_end("lake.restore_row");
    if (code == 0)
        code = lake_progress_note(s->progress, s->rows, err);
    restore_batch_begin(s);
    return code;
}

static int restore_row_end(struct restore *s, struct err *err)
{
    s->rows++;
    return s->tx.count < RESTORE_BATCH && s->batch.used < RESTORE_BATCH_BYTES
               ? 0
               : restore_batch_write(s, err);
}

/* Adds a commit to the write. A commit never changes, so putting it twice does no harm. If the
 * commit is the first parent of other commits, adds its first-parent mark (docs/lake.md, "Records")
 * too. The mark is put here, and not with each child, so that it is put only once. */
static int restore_put_commit(struct restore *s, struct arena *a, const struct tree_record *r,
                              struct err *err)
{
    struct lake_commit c;
    struct buf record = {0};
    int code = restore_read_commit(&c, a, r, err);

    if (code < 0)
        return code;
    const struct lineage_commit *known = lineage_find(&s->lineage, c.id);
    if (!known)
        return err_set(err, ERR_CORRUPT, "the dump has changed while it was read");
    c.generation = known->generation;
    lake_commit_write(&record, &c);
    lake_tx_put(&s->tx, lake_key_commit(&s->batch, s->repo.partition, c.id),
                lake_tx_record(&s->tx, &record));
    if (known->is_first)
        lake_tx_put(&s->tx, lake_key_first(&s->batch, s->repo.partition, c.id), STR(""));
    return restore_row_end(s, err);
}

static int restore_put_tag(struct restore *s, struct arena *a, const struct tree_record *r,
                           struct err *err)
{
    struct lake_tag tag;
    struct buf record = {0};
    int code = lake_tag_read(&tag, r->data, err);

    if (code < 0)
        return code;
    lake_tag_write(&record, &tag);
    lake_tx_put_if(&s->tx, lake_key_tag(&s->batch, s->repo.partition, tag.id),
                   lake_tx_record(&s->tx, &record), KV_ABSENT, STR_EMPTY);
    return restore_row_end(s, err);
}

/* Adds the row of a branch to the write, with a new staging token. */
static void restore_add_branch(struct restore *s, const struct lake_branch *from)
{
    struct lake_branch b = {.id = from->id,
                            .commit_id = from->commit_id,
                            .hidden = from->hidden,
                            .revision = 1,
                            .epoch = lake_new_epoch()};
    struct buf record = {0};

    b.staging = lake_new_token(&s->batch, &s->repo, b.id);
    lake_branch_write(&record, &b);
    lake_tx_put_if(&s->tx, lake_key_branch(&s->batch, s->repo.partition, b.id),
                   lake_tx_record(&s->tx, &record), KV_ABSENT, STR_EMPTY);
}

static int restore_put_branch(struct restore *s, struct arena *a, const struct tree_record *r,
                              struct err *err)
{
    struct lake_branch b;
    int code = 0;

    if (str_eq(r->key, s->repo.default_branch))
        return 0;
    code = lake_branch_read(&b, a, r->data, err);
    if (code < 0)
        return code;
    restore_add_branch(s, &b);
    return restore_row_end(s, err);
}

/* Adds the put that records the end of the restore. */
static int restore_add_end(struct restore *s, struct err *err)
{
    struct kv_change end;
    int code = s->progress->end(s->progress->ctx, &s->batch, s->rows + 1, &end, err);

    if (code == 0)
        lake_tx_put_if(&s->tx, end.name, end.value, end.when, end.stamp);
    return code;
}

/* Puts the default branch, allows collections and records the end of the restore, in one step.
 * ERR_AGAIN: the repository's record or the state of the collector has changed. ERR_BUSY: another
 * process has changed the caller's record. */
static int restore_try_default(struct restore *s, const struct lake_branch *b, struct err *err)
{
    enum { REPO_CHECK, END_PUT };
    bool has_end = s->progress && s->progress->end;
    struct gc_state state, next;
    size_t failed = 0;
    int code = gc_state_load(s->lake, &s->batch, &s->repo, &state, err);

    if (code == 0 && has_end)
        code = restore_add_end(s, err);
    if (code < 0)
        return code;
    restore_add_branch(s, b);
    next = state;
    next.phase = GC_IDLE;
    if (state.phase == GC_HELD)
        gc_state_change(&s->tx, &s->repo, &state, &next);
    lake_step_begin("lake.restore_row");
    code = lake_tx_write(s->lake, &s->tx, &failed, err);
    lake_step_end("lake.restore_row");
    restore_batch_begin(s);
    if (code != ERR_PRECONDITION)
        return code;
    return has_end && failed == END_PUT
               ? err_set(err, ERR_BUSY, "another process works on the restore")
               : ERR_AGAIN;
}

static int restore_put_default(struct restore *s, struct err *err)
{
    struct tree_record record;
    struct arena a = {0};
    struct lake_branch b;
    int code = tree_get(&s->store, &a, s->refs->branches, s->repo.default_branch, &record, err);

    if (code == 0)
        code = lake_branch_read(&b, &a, record.data, err);
    while (code == 0 && (code = restore_try_default(s, &b, err)) == ERR_AGAIN) {
        code = restore_repo_again(s, err);
        if (code == 0) /* another restore may have ended first */
            code = restore_check_bare(s, err);
        restore_batch_begin(s);
    }
    arena_release(&a);
    /* The restore is complete, so its caller can stop it no more. */
    return code;
}

static int restore_write_dump(struct restore *s, struct err *err)
{
    restore_batch_begin(s);
    int code = restore_each(s, s->refs->commits, restore_put_commit, err);
    if (code == 0)
        code = restore_batch_write(s, err);
    if (code == 0)
        code = restore_each(s, s->refs->tags, restore_put_tag, err);
    if (code == 0)
        code = restore_each(s, s->refs->branches, restore_put_branch, err);
    if (code == 0)
        code = restore_batch_write(s, err);
    return code < 0 ? code : restore_put_default(s, err);
}

/* --- the restore --- */

static int restore_run(struct restore *s, struct err *err)
{
    int code = lake_check_writable(&s->repo, s->force, err);

    if (code == 0)
        code = restore_check_bare(s, err);
    if (code == 0)
        code = restore_check_dump(s, err);
    if (code == 0)
        code = restore_check_present(s, err);
    return code < 0 ? code : restore_write_dump(s, err);
}

int lake_restore(struct lake *l, const struct lake_repo *r, const struct lake_refs *refs,
                 bool force, const struct lake_progress *p, struct err *err)
{
    struct restore s = {.lake = l, .repo = *r, .refs = refs, .progress = p, .force = force};
    int code = lake_tree_store(l, r, &s.store, err);

    if (code < 0)
        return code;
    code = restore_run(&s, err);
    buf_release(&s.named);
    lineage_release(&s.lineage);
    lake_tree_store_release(l, &s.store);
    arena_release(&s.batch);
    arena_release(&s.arena);
    return code;
}
