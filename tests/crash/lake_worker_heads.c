/* Operations of the model test on heads and names: commits, merges, changes of whole branches, tags
 * and branches. */
#include "crash/lake_worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { QUIET_US = 3000 };

/* --- commits --- */

void worker_note_commit(struct worker *w, unsigned branch, struct str id,
                        const struct model_range *r, bool is_whole)
{
    struct model *m = w->at->model;

    mutex_lock(&w->at->notes);
    uint32_t i = m->commit_count++;
    if (i < MODEL_COMMITS) {
        struct model_commit *c = &m->commits[i];
        c->range = *r;
        c->branch = branch;
        c->is_whole = is_whole;
        snprintf(c->id, sizeof(c->id), STR_FMT, STR_ARG(id));
    }
    mutex_unlock(&w->at->notes);
}

/* Commits, inside of the gate of heads. */
static void worker_commit_inside(struct worker *w, unsigned branch, const struct str *paths)
{
    struct lake_commit_options o = {.message = STR("chaos"),
                                    .committer = STR("tester"),
                                    .paths = paths,
                                    .path_count = paths ? 1 : 0};
    struct model_range range;
    struct lake_commit c;
    struct err err = {0};

    model_range_begin(w->at->model, branch, &range);
    for (unsigned i = 0; paths && i < MODEL_THREADS; i++)
        range.from[i] = i == w->id ? range.from[i] : 0;
    int code =
        lake_commit(w->at->lake, &w->arena, &w->repo, str_z(model_branches[branch]), &o, &c, &err);
    model_range_end(w->at->model, branch, &range);
    worker_raced(w, code, "commit", &err);
    if (code == 0 || code == ERR_NOT_MODIFIED)
        model_raise_floors(w->at->model, branch, &range);
    if (code == 0)
        worker_note_commit(w, branch, c.id, &range, paths == NULL);
}

void worker_commit_some(struct worker *w, unsigned branch, const struct str *prefix)
{
    struct model_gate *heads = &w->at->model->heads[branch];

    if (!gate_enter(heads))
        return;
    worker_commit_inside(w, branch, prefix);
    gate_leave(heads);
}

void worker_commit(struct worker *w)
{
    worker_commit_some(w, worker_random(w, MODEL_BRANCHES), NULL);
}

/* Commits the thread's own prefix alone. */
void worker_commit_own(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES);
    struct str prefix = arena_fmt(&w->arena, "%s/%u/", model_branches[branch], w->id);

    worker_commit_some(w, branch, &prefix);
}

/* --- merges --- */

static const char *const strategy_words[] = {[TREE_NO_STRATEGY] = "merge",
                                             [TREE_SOURCE_WINS] = "merge source",
                                             [TREE_DEST_WINS] = "merge dest"};

enum tree_strategy chaos_merge_strategy(struct str message)
{
    size_t i = ARRAY_SIZE(strategy_words);

    while (--i > TREE_NO_STRATEGY && !str_eq(message, str_z(strategy_words[i])))
        ;
    return (enum tree_strategy)i;
}

static void worker_merge_inside(struct worker *w, unsigned source, unsigned dest)
{
    enum tree_strategy strategy = (enum tree_strategy)worker_random(w, 3);
    struct lake_merge_options o = {.committer = STR("tester"),
                                   .message = str_z(strategy_words[strategy]),
                                   .strategy = strategy};
    struct lake_conflicts conflicts = {0};
    struct model_range range;
    struct lake_commit c;
    struct err err = {0};

    model_range_begin(w->at->model, dest, &range);
    int code = lake_merge(w->at->lake, &w->arena, &w->repo, str_z(model_branches[source]),
                          str_z(model_branches[dest]), &o, &c, &conflicts, &err);
    model_range_end(w->at->model, dest, &range);
    if (worker_raced(w, code, "merge", &err) < 0)
        return;
    worker_note_commit(w, dest, c.id, &range, true);
    w->at->model->made[MADE_MERGES]++;
}

/* Merges a branch into an earlier one. Writers leave the destination alone for a moment, as a merge
 * refuses a branch with changes. */
void worker_merge(struct worker *w)
{
    unsigned source = 1 + worker_random(w, MODEL_BRANCHES - 1), dest = worker_random(w, source);
    struct model *m = w->at->model;

    m->quiet[dest]++;
    usleep(QUIET_US);
    worker_commit_some(w, dest, NULL);
    if (gate_enter(&m->heads[dest])) {
        worker_merge_inside(w, source, dest);
        gate_leave(&m->heads[dest]);
    }
    m->quiet[dest]--;
}

/* --- changes of a whole branch --- */

/* Throws all staged changes away: the branch is then as its head. */
void worker_reset_all(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES);
    struct str name = str_z(model_branches[branch]);
    struct model *m = w->at->model;
    uint32_t floors[MODEL_THREADS];
    struct err err = {0};

    if (!model_whole_close(m, branch))
        return;
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        floors[i] = m->prefixes[branch][i].floor;
    model_whole_begin(m, branch);
    worker_must(
        w,
        lake_reset(w->at->lake, &w->arena, &w->repo, name, LAKE_RESET_ALL, STR_EMPTY, false, &err),
        "reset of a branch", &err);
    struct content seen = worker_content(w, name);
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        const struct model_prefix *p = &m->prefixes[branch][i];
        if (model_find(p, &seen.prefixes[branch][i], floors[i], p->acked) < 0)
            worker_fail(w, "the reset of a branch gave a state that no commit can have", NULL);
    }
    model_whole_end(m, branch, &seen);
    m->made[MADE_RESETS]++;
    model_whole_open(m, branch);
}

/* The whole branch is a commit now, which holds the newest states. */
static void whole_commit(struct worker *w, unsigned branch, const struct content *seen,
                         struct str id)
{
    struct model *m = w->at->model;
    struct model_range range;

    for (unsigned i = 0; i < MODEL_THREADS; i++)
        range.from[i] = range.to[i] = m->prefixes[branch][i].begun;
    model_whole_end(m, branch, seen);
    model_raise_floors(m, branch, &range);
    if (id.len)
        worker_note_commit(w, branch, id, &range, true);
}

/* A hard reset of a branch to its own head changes nothing but the epoch. */
void worker_hard_reset_same(struct worker *w)
{
    struct str name = str_z(model_branches[worker_random(w, MODEL_BRANCHES)]);
    struct err err = {0};

    worker_raced(w, lake_hard_reset(w->at->lake, &w->arena, &w->repo, name, name, false, &err),
                 "hard reset", &err);
}

/* Notes that the commit leaves the branch, or that it does not. */
static void commit_set_gone(struct worker *w, unsigned branch, struct str id, bool is_gone)
{
    struct model *m = w->at->model;

    mutex_lock(&w->at->notes);
    for (uint32_t i = 0; i < m->commit_count && i < MODEL_COMMITS; i++)
        if (m->commits[i].branch == branch && str_eq(str_z(m->commits[i].id), id))
            m->commits[i].is_gone = is_gone;
    mutex_unlock(&w->at->notes);
}

static struct lake_commit worker_head(struct worker *w, unsigned branch)
{
    struct lake_branch b;
    struct lake_commit c;
    struct err err = {0};

    worker_must(
        w,
        lake_branch_get(w->at->lake, &w->arena, &w->repo, str_z(model_branches[branch]), &b, &err),
        "branch", &err);
    worker_must(w, lake_commit_get(w->at->lake, &w->arena, &w->repo, b.commit_id, &c, &err),
                "commit", &err);
    return c;
}

/* Sets a branch back by one commit. No other head change of the branch is under way. */
static void hard_reset_inside(struct worker *w, unsigned branch)
{
    struct model *m = w->at->model;
    struct lake_commit head = worker_head(w, branch);
    struct str name = str_z(model_branches[branch]), back = lake_commit_first_parent(&head);
    struct err err = {0};

    if (back.len == 0 || str_eq(head.id, str_z(m->checked[branch])))
        return; /* the check after the kill begins there */
    commit_set_gone(w, branch, head.id, true);
    model_whole_begin(m, branch);
    int code = lake_hard_reset(w->at->lake, &w->arena, &w->repo, name,
                               arena_fmt(&w->arena, "%s~1", model_branches[branch]), false, &err);
    if (worker_raced(w, code, "hard reset", &err) < 0) {
        model_whole_end(m, branch, NULL);
        commit_set_gone(w, branch, head.id, false);
        return;
    }
    struct content seen = worker_content(w, name), want = worker_content(w, back);
    if (memcmp(&seen, &want, sizeof(seen)) != 0)
        worker_fail(w, "a hard reset gave another content than its commit has", NULL);
    whole_commit(w, branch, &seen, STR_EMPTY);
    m->made[MADE_SETS_BACK]++;
}

void worker_hard_reset_back(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES);
    struct model *m = w->at->model;

    if (!model_whole_close(m, branch))
        return;
    worker_commit_some(w, branch, NULL);
    if (gate_close(&m->heads[branch])) {
        hard_reset_inside(w, branch);
        gate_open(&m->heads[branch]);
    }
    model_whole_open(m, branch);
}

/* --- picked commits --- */

bool chaos_pick(struct chaos_lake *l, struct arena *a, const struct lake_repo *r,
                const struct lake_commit *c, bool is_revert, struct content *want, struct err *err)
{
    struct content picked, before = {0}, dest;
    struct lake_commit from;
    struct str id = str_skip(c->message, is_revert ? strlen(CHAOS_REVERT) : strlen(CHAOS_PICK));
    int code = lake_commit_get(l->lake, a, r, id, &from, err);

    if (code == 0)
        code = chaos_content(l, a, r, id, &picked, err);
    if (code == 0 && from.parent_count > 0)
        code = chaos_content(l, a, r, lake_commit_first_parent(&from), &before, err);
    if (code == 0)
        code = chaos_content(l, a, r, c->parents[0], &dest, err);
    return code == 0 && content_merge(want, is_revert ? &picked : &before,
                                      is_revert ? &before : &picked, &dest, TREE_NO_STRATEGY);
}

static void pick_inside(struct worker *w, unsigned branch, const struct lake_commit *picked,
                        bool is_revert)
{
    struct lake_pick_options o = {.ref = picked->id,
                                  .parent = picked->parent_count > 1 ? 1 : 0,
                                  .committer = STR("tester"),
                                  .message = arena_fmt(&w->arena, "%s" STR_FMT,
                                                       is_revert ? CHAOS_REVERT : CHAOS_PICK,
                                                       STR_ARG(picked->id))};
    struct lake_conflicts conflicts = {0};
    struct lake_commit c;
    struct content want;
    struct err err = {0};
    int (*const pick)(struct lake *, struct arena *, const struct lake_repo *, struct str,
                      const struct lake_pick_options *, struct lake_commit *,
                      struct lake_conflicts *, struct err *) =
        is_revert ? lake_revert : lake_cherry_pick;

    model_whole_begin(w->at->model, branch);
    int code = pick(w->at->lake, &w->arena, &w->repo, str_z(model_branches[branch]), &o, &c,
                    &conflicts, &err);
    if (worker_raced(w, code, is_revert ? "revert" : "cherry-pick", &err) < 0) {
        model_whole_end(w->at->model, branch, NULL);
        return;
    }
    struct content seen = worker_content(w, c.id);
    if (!chaos_pick(w->at, &w->arena, &w->repo, &c, is_revert, &want, &err) ||
        memcmp(&seen, &want, sizeof(seen)) != 0)
        worker_fail(w, "a revert or a cherry-pick has another result", &err);
    whole_commit(w, branch, &seen, c.id);
    w->at->model->made[is_revert ? MADE_REVERTS : MADE_PICKS]++;
}

/* Undoes or repeats the head of a branch, or the commit before it, on another one. */
static void worker_pick(struct worker *w, unsigned from, unsigned branch, bool is_revert)
{
    struct model *m = w->at->model;
    struct err err = {0};

    if (!model_whole_close(m, branch))
        return;
    worker_commit_some(w, branch, NULL);
    if (gate_enter(&m->heads[branch])) {
        struct lake_commit c = worker_head(w, from);
        if (c.parent_count > 0 && worker_random(w, 2))
            worker_must(w,
                        lake_commit_get(w->at->lake, &w->arena, &w->repo,
                                        lake_commit_first_parent(&c), &c, &err),
                        "commit", &err);
        pick_inside(w, branch, &c, is_revert);
        gate_leave(&m->heads[branch]);
    }
    model_whole_open(m, branch);
}

void worker_revert(struct worker *w)
{
    unsigned branch = worker_random(w, MODEL_BRANCHES);

    worker_pick(w, branch, branch, true);
}

/* Commits go the way of merges: to an earlier branch. */
void worker_cherry_pick(struct worker *w)
{
    unsigned from = 1 + worker_random(w, MODEL_BRANCHES - 1);

    worker_pick(w, from, worker_random(w, from), false);
}

/* --- names --- */

void worker_tag(struct worker *w)
{
    struct model *m = w->at->model;
    uint32_t i = m->tag_count++;
    struct lake_tag made;
    struct err err = {0};

    if (i >= MODEL_TAGS)
        return;
    struct model_tag *t = &m->tags[i];
    t->state = TAG_UNKNOWN;
    snprintf(t->name, sizeof(t->name), "tag-%u", ++m->last_name);
    worker_must(w,
                lake_tag_create(w->at->lake, &w->arena, &w->repo, str_z(t->name),
                                str_z(model_branches[worker_random(w, MODEL_BRANCHES)]), false,
                                &made, &err),
                "tag", &err);
    snprintf(t->id, sizeof(t->id), STR_FMT, STR_ARG(made.commit_id));
    t->state = TAG_MADE;
    if (worker_random(w, 2))
        return;
    t->state = TAG_UNKNOWN;
    worker_must(w, lake_tag_delete(w->at->lake, &w->arena, &w->repo, str_z(t->name), false, &err),
                "removal of a tag", &err);
    t->state = TAG_IS_REMOVED;
}

/* A new branch has the content of its commit; writes to it stay there; then it goes. */
void worker_fleeting(struct worker *w)
{
    struct model *m = w->at->model;
    struct lake_branch_options o = {.name = arena_fmt(&w->arena, "fleeting-%u", ++m->last_name),
                                    .source =
                                        str_z(model_branches[worker_random(w, MODEL_BRANCHES)])};
    struct lake_put put = {STR("count/0"), worker_entry(w, 7)};
    struct lake_branch b;
    struct err err = {0};
    struct lake *l = w->at->lake;
    struct arena *a = &w->arena;

    worker_must(w, lake_branch_create(l, a, &w->repo, &o, &b, &err), "branch", &err);
    struct content head = worker_content(w, b.commit_id), now = worker_content(w, o.name);
    if (memcmp(&head, &now, sizeof(now)) != 0)
        worker_fail(w, "a new branch differs from its commit", NULL);
    worker_must(w, lake_stage(l, a, &w->repo, o.name, &put, 1, NULL, &err), "stage", &err);
    worker_must(w, lake_branch_delete(l, a, &w->repo, o.name, false, &err), "deletion", &err);
    if (lake_branch_get(l, a, &w->repo, o.name, &b, &err) != ERR_NOT_FOUND)
        worker_fail(w, "a deleted branch is there", &err);
}
