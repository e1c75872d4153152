/* Twins of the model test: branches and repositories that are deleted and made again under the same
 * name, while all threads write to them, commit, reset and read.
 *
 * Every thread writes one path of its own, `twin/<thread>`, with numbers that grow. No gate keeps
 * anybody out. So the model knows bounds, not values:
 *
 *   1. A number that was not begun is never seen.
 *   2. A write that was acknowledged before a deletion began is never seen once the deletion was
 *      acknowledged: what is made again shares nothing with what was deleted (L8).
 *   3. A write is seen, or a later one of its thread, if no loss (lake_model.h) overlapped or
 *      followed it (L1, L4).
 *   4. A twin that was made, and that no loss followed, is there.
 *
 * After a kill the twins are deleted, and nothing may be left of them. */
#include "crash/lake_worker.h"
#include "lake/delete.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *repo, *branch;
    bool is_repo; /* the repository is deleted, not the branch */
} twin_places[MODEL_TWINS] = {
    {"chaos", "twin-a", false}, {"chaos", "twin-b", false}, {"chaos-twin", "main", true}};

/* One twin during one operation. */
struct twin {
    struct lake *lake;
    struct arena *arena;
    struct model *all;
    struct model_twin *model;
    struct str repo_id, branch;
    struct lake_repo repo; /* as it was read for this operation */
    bool is_repo;
};

/* What is known before a twin is read. */
struct twin_view {
    uint32_t acked[MODEL_THREADS];
    uint64_t deleted_at;
    uint32_t made_at;
};

/* --- the model --- */

/* The number of losses; UINT32_MAX: one of them is under way. */
static uint32_t twin_losses(const struct model_twin *m)
{
    uint32_t ended = m->losses_ended, begun = m->losses_begun;

    return ended == begun ? begun : UINT32_MAX;
}

static void twin_look(struct twin_view *v, const struct model_twin *m)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        v->acked[i] = m->writes[i].acked;
    v->deleted_at = m->deleted_at;
    v->made_at = m->made_at;
}

/* NULL, or what is wrong with the number of one thread's path; 0: the path is absent. */
static const char *twin_judge_number(const struct model_twin *m, unsigned thread,
                                     const struct twin_view *v, uint32_t number)
{
    const struct twin_writes *w = &m->writes[thread];
    uint32_t acked = v->acked[thread];
    uint64_t ended = number <= w->begun ? (uint64_t)w->ended_at[number] : 0;

    if (number > w->begun)
        return "a twin has a number that nobody wrote";
    if (ended && ended < v->deleted_at)
        return "a twin has a write of the one that was deleted";
    if (acked > number && w->losses_at[acked] == m->losses_begun)
        return "a twin lost a write";
    return NULL;
}

/* --- reading --- */

static int twin_open(struct twin *t, struct chaos_lake *l, struct arena *a, unsigned number,
                     struct err *err)
{
    *t = (struct twin){.lake = l->lake,
                       .arena = a,
                       .all = l->model,
                       .model = &l->model->twins[number],
                       .repo_id = str_z(twin_places[number].repo),
                       .branch = str_z(twin_places[number].branch),
                       .is_repo = twin_places[number].is_repo};
    return lake_repo_get(t->lake, a, t->repo_id, &t->repo, err);
}

static int twin_list(struct twin *t, uint32_t numbers[MODEL_THREADS], struct err *err)
{
    struct lake_list_options o = {.prefix = STR("twin/"), .limit = LAKE_LIST_MAX};
    struct lake_objects page;
    int code = lake_list(t->lake, t->arena, &t->repo, t->branch, &o, &page, err);

    memset(numbers, 0, MODEL_THREADS * sizeof(*numbers));
    for (size_t i = 0; code == 0 && i < page.count; i++) {
        uint64_t thread, number;
        if (str_u64(str_skip(page.items[i].path, o.prefix.len), &thread) != 0 ||
            thread >= MODEL_THREADS || str_u64(page.items[i].entry.etag, &number) != 0)
            return err_set(err, ERR_CORRUPT, "twin path " STR_FMT, STR_ARG(page.items[i].path));
        numbers[thread] = (uint32_t)number;
    }
    return code;
}

/* Lists a twin that twin_open() has opened, with this code. *wrong (NULL: nothing) is what the
 * listing shows to be broken. */
static int twin_read(struct twin *t, int code, const struct twin_view *v, const char **wrong,
                     struct err *err)
{
    uint32_t numbers[MODEL_THREADS];

    *wrong = NULL;
    if (code == 0)
        code = twin_list(t, numbers, err);
    if (code == ERR_NOT_FOUND && v->made_at == t->model->losses_begun + 1)
        *wrong = "a twin is gone that nobody deleted";
    for (unsigned i = 0; code == 0 && !*wrong && i < MODEL_THREADS; i++)
        *wrong = twin_judge_number(t->model, i, v, numbers[i]);
    return code;
}

/* --- life --- */

static int twin_delete(struct twin *t, struct err *err)
{
    return t->is_repo ? lake_repo_delete(t->lake, t->arena, t->repo_id, false, false, err)
                      : lake_branch_delete(t->lake, t->arena, &t->repo, t->branch, false, err);
}

static void twin_note_partition(struct twin *t, const struct lake_repo *r)
{
    uint32_t i = t->all->partition_count++;

    if (i < MODEL_PARTITIONS)
        snprintf(t->all->partitions[i], MODEL_TOKEN_SIZE, STR_FMT, STR_ARG(r->partition));
}

static int twin_create(struct twin *t, struct err *err)
{
    struct lake_repo_options repo = {
        .id = t->repo_id, .space = STR("s3://data/twin"), .owner = STR("owner")};
    struct lake_branch_options branch = {.name = t->branch, .source = STR("main")};
    uint32_t losses = twin_losses(t->model);
    struct lake_branch made;
    int code = t->is_repo ? lake_repo_create(t->lake, t->arena, &repo, &t->repo, err)
                          : lake_branch_create(t->lake, t->arena, &t->repo, &branch, &made, err);

    if (code == 0 && t->is_repo)
        twin_note_partition(t, &t->repo);
    if (code == 0 && losses != UINT32_MAX)
        model_raise(&t->model->made_at, losses + 1);
    return code;
}

/* --- operations --- */

/* Other threads may delete or make the twin at any moment. */
static int twin_raced(struct worker *w, int code, const char *what, const struct err *err)
{
    if (code == ERR_NOT_FOUND || code == ERR_EXISTS)
        return code;
    return worker_raced(w, code, what, err);
}

static int twin_op_write(struct worker *w, struct twin *t, struct err *err)
{
    struct twin_writes *mine = &t->model->writes[w->id];
    uint32_t number = mine->begun + 1;
    struct lake_put put = {arena_fmt(&w->arena, "twin/%u", w->id), worker_entry(w, number)};

    if (number >= MODEL_TWIN_WRITES)
        return 0;
    mine->losses_at[number] = twin_losses(t->model);
    mine->begun = number;
    int code = lake_stage(t->lake, t->arena, &t->repo, t->branch, &put, 1, NULL, err);
    if (code < 0)
        return code;
    mine->ended_at[number] = ++t->all->clock;
    mine->acked = number;
    return 0;
}

static int twin_op_commit(struct worker *w, struct twin *t, struct err *err)
{
    struct lake_commit_options o = {.message = STR("twin"), .committer = STR("tester")};
    struct lake_commit c;

    return lake_commit(t->lake, t->arena, &t->repo, t->branch, &o, &c, err);
}

/* Makes the twin, or makes it again. */
static int twin_op_renew(struct worker *w, struct twin *t, struct err *err)
{
    uint64_t tick = ++t->all->clock, old = t->model->deleted_at;

    t->model->losses_begun++;
    int code = twin_delete(t, err);
    while (code == 0 && old < tick &&
           !atomic_compare_exchange_weak(&t->model->deleted_at, &old, tick))
        ;
    t->model->losses_ended++;
    t->all->made[MADE_DELETIONS] += code == 0;
    return code == 0 || code == ERR_NOT_FOUND ? twin_create(t, err) : code;
}

static int twin_op_reset(struct worker *w, struct twin *t, struct err *err)
{
    t->model->losses_begun++;
    int code =
        lake_reset(t->lake, t->arena, &t->repo, t->branch, LAKE_RESET_ALL, STR_EMPTY, false, err);
    t->model->losses_ended++;
    return code;
}

static int twin_op_hard_reset(struct worker *w, struct twin *t, struct err *err)
{
    struct str back = arena_fmt(t->arena, STR_FMT "~1", STR_ARG(t->branch));

    t->model->losses_begun++;
    int code = lake_hard_reset(t->lake, t->arena, &t->repo, t->branch, back, false, err);
    t->model->losses_ended++;
    return code;
}

static int twin_op_revert(struct worker *w, struct twin *t, struct err *err)
{
    struct lake_pick_options o = {.ref = t->branch, .committer = STR("tester")};
    struct lake_conflicts conflicts = {0};
    struct lake_commit c;

    t->model->losses_begun++;
    int code = lake_revert(t->lake, t->arena, &t->repo, t->branch, &o, &c, &conflicts, err);
    t->model->losses_ended++;
    return code;
}

/* Removes what deleted repositories have left, as several processes may do at the same time. */
static int twin_op_work(struct worker *w, struct twin *t, struct err *err)
{
    return lake_delete_work(t->lake, NULL, NULL, err);
}

static const struct {
    unsigned weight;
    const char *what;
    int (*fn)(struct worker *w, struct twin *t, struct err *err);
} twin_operations[] = {
    {30, "write to a twin", twin_op_write},          {10, "commit of a twin", twin_op_commit},
    {5, "renewal of a twin", twin_op_renew},         {3, "reset of a twin", twin_op_reset},
    {3, "hard reset of a twin", twin_op_hard_reset}, {2, "revert of a twin", twin_op_revert},
    {3, "work on deletions", twin_op_work},
};

static void twin_change(struct worker *w, struct twin *t, struct err *err)
{
    unsigned all = 0, chosen;
    size_t i = 0;

    for (size_t k = 0; k < ARRAY_SIZE(twin_operations); k++)
        all += twin_operations[k].weight;
    chosen = worker_random(w, all);
    for (; chosen >= twin_operations[i].weight; i++)
        chosen -= twin_operations[i].weight;
    if (twin_raced(w, twin_operations[i].fn(w, t, err), twin_operations[i].what, err) ==
        ERR_NOT_FOUND)
        twin_raced(w, twin_create(t, err), "creation of a twin", err);
}

void worker_twin(struct worker *w)
{
    struct twin_view view;
    struct err err = {0};
    const char *wrong;
    struct twin t;
    unsigned number = worker_random(w, MODEL_TWINS);

    twin_look(&view, &w->at->model->twins[number]);
    int code = twin_open(&t, w->at, &w->arena, number, &err);
    if (worker_random(w, 3) == 0) {
        twin_raced(w, twin_read(&t, code, &view, &wrong, &err), "listing of a twin", &err);
        if (wrong)
            worker_fail(w, wrong, &err);
        return;
    }
    if (code == 0)
        twin_change(w, &t, &err);
    else if (twin_raced(w, code, "repository of a twin", &err) == ERR_NOT_FOUND)
        twin_raced(w, twin_create(&t, &err), "creation of a twin", &err);
}

/* --- after a kill --- */

static const char *twin_check(struct chaos_lake *l, struct arena *a, unsigned number)
{
    struct twin_view view;
    struct err err = {0};
    const char *wrong;
    struct twin t;

    twin_look(&view, &l->model->twins[number]);
    int code = twin_open(&t, l, a, number, &err);
    if (code == 0 && t.is_repo)
        twin_note_partition(&t, &t.repo);
    int read = twin_read(&t, code, &view, &wrong, &err);
    if (wrong || (read < 0 && read != ERR_NOT_FOUND))
        return wrong ? wrong : "a twin cannot be read";
    code = code == 0 ? twin_delete(&t, &err) : code;
    return code < 0 && code != ERR_NOT_FOUND ? "a twin cannot be deleted" : NULL;
}

/* Nothing is left of deleted repositories once the work on them is done. */
static const char *twins_leave(struct chaos_lake *l)
{
    struct model *m = l->model;
    struct err err = {0};

    if (lake_delete_work(l->lake, NULL, NULL, &err) < 0)
        return "the work on deletions failed";
    if (!chaos_range_is_empty(l->kv, LAKE_PARTITION, STR("to-delete/")))
        return "the to-delete list does not become empty";
    for (uint32_t i = 0; i < m->partition_count && i < MODEL_PARTITIONS; i++)
        if (m->partitions[i][0] && !chaos_range_is_empty(l->kv, str_z(m->partitions[i]), STR_EMPTY))
            return "rows of a deleted repository are left over";
    return NULL;
}

bool twins_check(struct chaos_lake *l, struct arena *a, bool is_quiet)
{
    const char *wrong = NULL;

    for (unsigned i = 0; i < MODEL_TWINS && !wrong; i++)
        wrong = twin_check(l, a, i);
    if (!wrong)
        wrong = twins_leave(l);
    if (wrong && !is_quiet)
        printf("%s, twins: %s\n", l->kv->driver, wrong);
    memset(l->model->twins, 0, sizeof(l->model->twins));
    memset(l->model->partitions, 0, sizeof(l->model->partitions));
    l->model->partition_count = 0;
    return wrong == NULL;
}
