/* Staging: writes and removals of paths on a branch, as rows of the branch's staging token
 * (docs/lake.md, K1 to K5). A *stage* is one call of lake_stage(), which may need several tries. A
 * *fenced* write checks the records of the repository and the branch; an unfenced one only glances
 * at them (kv/kv.h). */
#include "lake/change.h"
#include "lake/keep.h"
#include "lake/names.h"
#include "lake/read.h"

#include <stdlib.h>

/* In a fenced write, the index of the change that checks whether the collector's state is still the
 * same. */
enum { STAGE_KEEP_CHECK = 2 };

/* One change that is to be staged. */
struct stage_row {
    const struct lake_put *put;
    unsigned char identity[LAKE_IDENTITY_LEN];
    struct str value; /* the encoded row; for a removal the tombstone */
    /* the present state of the path; NULL: the write does not depend on the state */
    struct lake_path *path;
};

/* A stage that is under way. */
struct staging {
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *asked; /* the repository's record as the caller gave it */
    struct str name;               /* name of the branch */
    const struct lake_stage_options *o;
    struct stage_row *rows;
    size_t count;
    struct lake_path *paths; /* the paths whose present state must be read first (K2) */
    size_t path_count;
    bool frees;       /* all changes are removals */
    bool was_refused; /* the store refused an earlier try */
    bool has_strays;  /* an earlier try has put rows without a fence, perhaps too late (K4) */
    /* The records as they were read last. */
    struct lake_repo repo;
    struct lake_branch branch;
    size_t removed;
};

/* --- preparing, once --- */

static int stage_row_order(const void *a, const void *b)
{
    const struct stage_row *l = a, *r = b;
    int order = str_cmp(l->put->path, r->put->path);

    return order ? order : (l->put > r->put) - (l->put < r->put);
}

/* Sorts the rows by their paths, and keeps only the last change of each path. Most batches are
 * sorted already. */
static void stage_sort(struct staging *s)
{
    size_t kept = 0;
    bool is_sorted = true;

    for (size_t i = 1; i < s->count && is_sorted; i++)
        is_sorted = str_cmp(s->rows[i - 1].put->path, s->rows[i].put->path) < 0;
    if (is_sorted)
        return;
    qsort(s->rows, s->count, sizeof(*s->rows), stage_row_order);
    for (size_t i = 0; i < s->count; i++)
        if (i + 1 == s->count || !str_eq(s->rows[i].put->path, s->rows[i + 1].put->path))
            s->rows[kept++] = s->rows[i];
    s->count = kept;
}

/* Encodes the row of an entry. `work` is memory that is used again for each row. */
static int stage_encode(struct staging *s, struct stage_row *row, struct buf work[2],
                        struct err *err)
{
    const struct lake_entry *entry = row->put->entry;
    struct lake_staged staged = {0};

    buf_reset(&work[0]);
    buf_reset(&work[1]);
    if (entry) {
        lake_entry_identity(row->identity, entry);
        lake_entry_write(&work[0], entry);
        staged = (struct lake_staged){str_n(row->identity, LAKE_IDENTITY_LEN), buf_str(&work[0])};
    }
    lake_staged_write(&work[1], &staged);
    row->value = work[1].len ? arena_str(s->arena, buf_str(&work[1])) : STR("");
    int code = buf_error(&work[0]);
    if (code == 0)
        code = buf_error(&work[1]);
    if (code == 0)
        code = arena_error(s->arena);
    return code < 0 ? err_code(err, code) : 0;
}

/* Lists the paths whose present state must be read first, because a condition or a removal depends
 * on it. */
static int stage_note_paths(struct staging *s, struct err *err)
{
    s->frees = true;
    for (size_t i = 0; i < s->count; i++) {
        s->path_count += s->o->judge || !s->rows[i].put->entry;
        s->frees &= !s->rows[i].put->entry;
    }
    if (s->path_count == 0)
        return 0;
    s->paths = arena_array(s->arena, s->path_count, sizeof(*s->paths));
    if (!s->paths)
        return err_code(err, ERR_NO_MEMORY);
    struct lake_path *next = s->paths;
    for (size_t i = 0; i < s->count; i++) {
        const struct lake_put *put = s->rows[i].put;
        if (!s->o->judge && put->entry)
            continue;
        *next = (struct lake_path){.path = put->path, .asks_below = !put->entry};
        s->rows[i].path = next++;
    }
    return 0;
}

static int stage_prepare(struct staging *s, const struct lake_put *puts, size_t count,
                         struct err *err)
{
    struct buf work[2] = {BUF_INIT(KV_VALUE_MAX), BUF_INIT(KV_VALUE_MAX)};
    int code = 0;

    s->rows = arena_array(s->arena, count, sizeof(*s->rows));
    s->count = count;
    if (!s->rows)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count && code == 0; i++) {
        s->rows[i].put = &puts[i];
        code = lake_check_path(puts[i].path, err);
    }
    if (code == 0)
        stage_sort(s);
    for (size_t i = 0; i < s->count && code == 0; i++)
        code = stage_encode(s, &s->rows[i], work, err);
    buf_release(&work[0]);
    buf_release(&work[1]);
    return code < 0 ? code : stage_note_paths(s, err);
}

/* --- one try --- */

/* K1 without a round trip: takes the records of the repository and of the branch from the cache.
 * They may be old, so the write checks that both are unchanged.
 *
 * The rules of protection are not read. They allowed a stage when these records were cached, and a
 * change of the rules also changes the repository's record.
 *
 * The cache is not used for a write that needs more than these records (a write with a condition or
 * with `keep`), nor after the store has refused an earlier try. Returns false when the cache is not
 * used or lacks the records; the caller then reads them. */
static bool stage_recall(struct staging *s)
{
    if (s->was_refused || s->path_count > 0 || s->o->keep)
        return false;
    struct cached_branch *known = branch_cache_get(s->lake->branches, s->asked->partition, s->name);
    if (!known)
        return false;
    struct str repo = arena_str(s->arena, known->repo);
    struct str branch = arena_str(s->arena, known->branch.stamp);
    cached_branch_unref(known);
    if (!repo.len)
        return false;
    struct kv_value values[] = {{repo, repo}, {branch, branch}};
    return lake_decode_branch(s->arena, s->asked, values, &s->repo, &s->branch, NULL) == 0 &&
           lake_check_writable(&s->repo, s->o->force, NULL) == 0;
}

/* K1: reads the records of the repository and the branch, and the rules of protection, in one round
 * trip. The repository's record is read first, because a later change of the rules also changes
 * that record. */
static int stage_read(struct staging *s, struct err *err)
{
    struct arena *a = s->arena;
    struct kv_name names[] = {lake_key_repo(a, s->asked->id),
                              lake_key_branch(a, s->asked->partition, s->name),
                              lake_key_protection(a, s->asked->partition)};
    struct kv_value values[ARRAY_SIZE(names)];
    int code = kv_get_many(s->lake->kv, NULL, a, names, ARRAY_SIZE(names), values, err);

    if (code == 0)
        code = lake_decode_branch(a, s->asked, values, &s->repo, &s->branch, err);
    if (code == 0)
        code = lake_check_writable(&s->repo, s->o->force, err);
    if (code == 0)
        code = lake_judge_protection(&values[2], s->name, LAKE_PROTECT_STAGING, err);
    if (code == 0)
        branch_cache_put(s->lake->branches, s->asked->partition, &s->branch, s->repo.stamp,
                         STR_EMPTY);
    return code;
}

/* Whether the row was put by an earlier try of this stage, whose answer was lost. */
static int stage_is_own(struct staging *s, const struct stage_row *row, bool *is_own,
                        struct err *err)
{
    struct lake_entry present;

    *is_own = false;
    if (!s->was_refused || !row->put->entry || !row->path->is_there ||
        !str_eq(row->path->identity, str_n(row->identity, LAKE_IDENTITY_LEN)))
        return 0;
    int code = lake_entry_read(&present, s->arena, row->path->data, err);
    *is_own = code == 0 && str_eq(present.address, row->put->entry->address);
    return code;
}

static int stage_judge(struct staging *s, const struct stage_row *row, struct err *err)
{
    const struct lake_path *p = row->path;
    struct lake_object present;
    int code = 0;

    if (!p->is_there)
        return s->o->judge(s->o->ctx, p->path, NULL, err);
    code = lake_object_read(&present, s->arena, p->path, p->identity, p->data, err);
    return code < 0 ? code : s->o->judge(s->o->ctx, p->path, &present, err);
}

/* Adds the change of one row to the write (K3, K5). If the stage has a condition, the write also
 * checks that the staging token's row of this path is as it was read. */
static int stage_add(struct staging *s, struct lake_tx *tx, const struct stage_row *row,
                     struct err *err)
{
    const struct lake_path *p = row->path;
    struct kv_name name = lake_key_staged(s->arena, s->branch.staging, row->put->path);
    enum kv_when when = KV_ALWAYS;
    struct str stamp = STR_EMPTY;

    if (s->o->judge) {
        bool is_own;
        int code = stage_is_own(s, row, &is_own, err);
        if (code == 0 && !is_own)
            code = stage_judge(s, row, err);
        if (code < 0 || is_own)
            return code;
        when = kv_is_there(&p->staged) ? KV_SAME : KV_ABSENT;
        stamp = p->staged.stamp;
    }
    if (!row->put->entry) {
        if (!p->is_there)
            return 0;
        s->removed++;
        if (!p->is_below) {
            lake_tx_remove(tx, name, when, stamp);
            return 0;
        }
    }
    lake_tx_put_if(tx, name, row->value, when, stamp);
    if (s->o->keep && row->put->entry)
        lake_tx_keep_body(tx, &s->repo, s->o->keep, row->put->entry);
    return 0;
}

/* Writes the rows in one step (K3). The store refuses the write if the repository's record, the
 * branch, or a row with a condition has changed since it was read. */
static int stage_write_checked(struct staging *s, struct lake_tx *tx, struct err *err)
{
    size_t failed = 0;

    lake_step_begin("lake.stage");
    int code = lake_tx_write(s->lake, tx, &failed, err);
    lake_step_end("lake.stage");
    if (code == ERR_PRECONDITION && s->o->keep && failed == STAGE_KEEP_CHECK)
        return err_set(err, ERR_BUSY, "a collection began or ended meanwhile; try again");
    return code == ERR_PRECONDITION ? ERR_AGAIN : code;
}

/* K4: the write only glances at the records before it puts the rows, so it reads the branch again
 * after the put. If the token was sealed meanwhile, the rows came too late, and the next try puts
 * them into the new staging token. The late rows are removed when the old token is dropped for the
 * second time, but a commit that reads that token after the seal may include them. */
static int stage_write_unfenced(struct staging *s, struct lake_tx *tx, struct err *err)
{
    struct arena *a = s->arena;
    struct kv_name names[] = {lake_key_repo(a, s->repo.id),
                              lake_key_branch(a, s->repo.partition, s->name)};
    struct kv_value values[ARRAY_SIZE(names)];
    struct lake_branch now = {0};
    struct lake_repo repo;

    lake_step_begin("lake.stage");
    int code = lake_tx_write_get(s->lake, tx, names, ARRAY_SIZE(names), values, err);
    lake_step_end("lake.stage");
    if (code == ERR_PRECONDITION)
        return ERR_AGAIN;
    s->has_strays = true;
    if (code == 0)
        code = lake_decode_branch(a, &s->repo, values, &repo, &now, err);
    if (code < 0)
        return code;
    bool is_same =
        s->path_count ? str_eq(now.stamp, s->branch.stamp) : str_eq(now.staging, s->branch.staging);
    return is_same ? 0 : ERR_AGAIN;
}

/* Makes the write depend on the records of the repository and the branch. `how` chooses between a
 * check and a glance at each of them. */
static void stage_guard(struct staging *s, struct lake_tx *tx, enum kv_what how)
{
    lake_tx_look(tx, lake_key_repo(s->arena, s->repo.id), s->repo.stamp, how);
    lake_tx_look(tx, lake_key_branch(s->arena, s->repo.partition, s->name), s->branch.stamp, how);
}

/* Makes one try. ERR_AGAIN: the branch has changed, or a row of a path with a condition; the caller
 * tries again. */
static int stage_try(struct staging *s, struct err *err)
{
    bool is_fenced = (s->lake->kv->can & KV_FENCES) || s->path_count > 0 || s->o->keep;
    struct lake_tx tx;
    int code = stage_recall(s) ? 0 : stage_read(s, err);

    if (code == 0 && s->path_count)
        code =
            lake_read_paths(s->lake, s->arena, &s->repo, &s->branch, s->paths, s->path_count, err);
    lake_tx_init(&tx, s->arena);
    tx.frees = s->frees;
    s->removed = 0;
    stage_guard(s, &tx, is_fenced ? KV_CHECK : KV_GLANCE);
    if (s->o->keep)
        lake_tx_keep_state(&tx, &s->repo, s->o->keep);
    size_t checks = tx.count;
    for (size_t i = 0; i < s->count && code == 0; i++)
        code = stage_add(s, &tx, &s->rows[i], err);
    if (code < 0 || (tx.count == checks && !tx.failed))
        return code;
    return is_fenced ? stage_write_checked(s, &tx, err) : stage_write_unfenced(s, &tx, err);
}

int lake_stage(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               const struct lake_put *puts, size_t count, const struct lake_stage_options *o,
               struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    static const struct lake_stage_options none;
    struct staging s = {.lake = l, .arena = a, .asked = r, .name = branch, .o = o ? o : &none};
    int code = lake_check_branch(branch, err);

    if (code == 0 && count > LAKE_BATCH_MAX)
        code = err_set(err, ERR_INVALID, "a batch has at most %d paths", LAKE_BATCH_MAX);
    if (code == 0)
        code = stage_prepare(&s, puts, count, err);
    if (code < 0)
        return code;
    while ((code = stage_try(&s, err)) == ERR_AGAIN && clock_mono_ms() <= deadline)
        s.was_refused = true;
    if (s.o->may_be_there)
        *s.o->may_be_there = s.has_strays;
    if (code == ERR_AGAIN)
        return err_set(err, ERR_BUSY, "too many tries: the branch changed with every one");
    lake_compact_ask(l, &s.repo, &s.branch);
    if (code == 0 && s.o->removed)
        *s.o->removed = s.removed;
    return code;
}
