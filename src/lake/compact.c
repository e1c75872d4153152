/* Compaction. The uncommitted changes of a branch are rows under its tokens: the staging token,
 * which takes new rows, and the sealed tokens. Compaction merges the rows of all sealed tokens of a
 * branch into one new sealed token, when there are more than LAKE_SEALED_KEPT. */
#include "lake/change.h"

#include "base/list.h"
#include "base/log.h"

#include <stdlib.h>

/* most branches that wait to be compacted; when there is no room for a branch, a later write to it
 * asks again */
enum { COMPACTIONS_MAX = 64 };

struct compaction {
    struct list node;
    struct arena arena; /* memory of the names */
    struct lake_repo repo;
    struct str branch;
};

struct compactions {
    struct mutex lock; /* class "lake.compactions" */
    struct list waiting;
    size_t count;
};

struct compactions *compactions_new(void)
{
    struct compactions *c = xzalloc(sizeof(*c));

    mutex_init(&c->lock, "lake.compactions");
    list_init(&c->waiting);
    return c;
}

static void compaction_free(struct compaction *one)
{
    arena_release(&one->arena);
    free(one);
}

static struct compaction *compaction_take(struct compactions *c)
{
    struct compaction *one = NULL;

    mutex_lock(&c->lock);
    if (!list_empty(&c->waiting)) {
        one = container_of(c->waiting.next, struct compaction, node);
        list_remove(&one->node);
        c->count--;
    }
    mutex_unlock(&c->lock);
    return one;
}

void compactions_free(struct compactions *c)
{
    struct compaction *one;

    if (!c)
        return;
    while ((one = compaction_take(c)))
        compaction_free(one);
    mutex_release(&c->lock);
    free(c);
}

/* --- asking --- */

static struct compaction *compaction_new(const struct lake_repo *r, struct str branch)
{
    struct compaction *one = xzalloc(sizeof(*one));

    one->repo = (struct lake_repo){.id = arena_str(&one->arena, r->id),
                                   .token = arena_str(&one->arena, r->token),
                                   .partition = arena_str(&one->arena, r->partition),
                                   .space = arena_str(&one->arena, r->space),
                                   .owner = arena_str(&one->arena, r->owner)};
    one->branch = arena_str(&one->arena, branch);
    return one;
}

static bool compactions_have(struct compactions *c, const struct lake_repo *r, struct str branch)
{
    list_each (&c->waiting, struct compaction, node, one)
        if (str_eq(one->repo.partition, r->partition) && str_eq(one->branch, branch))
            return true;
    return false;
}

void lake_compact_ask(struct lake *l, const struct lake_repo *r, const struct lake_branch *b)
{
    struct compactions *c = l->compactions;

    if (b->sealed_count <= LAKE_SEALED_KEPT || commit_turn_is_taken(l->queue, r->partition, b->id))
        return;
    mutex_lock(&c->lock);
    bool is_new = c->count < COMPACTIONS_MAX && !compactions_have(c, r, b->id);
    if (is_new) {
        list_push(&c->waiting, &compaction_new(r, b->id)->node);
        c->count++;
    }
    mutex_unlock(&c->lock);
    if (is_new)
        lake_cleaner_wake(l);
}

/* --- compacting --- */

/* Puts the draft on the branch in the place of the sealed tokens from which it was made. */
static int compact_replace(struct lake *l, struct arena *a, const struct lake_repo *repo,
                           const struct lake_branch *b, struct lake_draft *d, struct err *err)
{
    struct branch_change c = branch_change_of(repo, b, "lake.compact");

    c.next.sealed = &d->token;
    c.next.sealed_count = d->count > 0;
    c.next.epoch++;
    c.draft = d;
    int code = branch_change_write(l, a, &c, NULL, err);
    if (code < 0)
        draft_give_up(d, l, a);
    else
        lake_cleaner_wake(l);
    return code;
}

int lake_compact(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
                 struct err *err)
{
    struct layers_options o = {.shows_tombstones = true};
    struct lake_draft draft = {0};
    struct layers *walk = NULL;
    struct lake_branch b;
    struct lake_repo repo;
    int code = lake_read_branch(l, NULL, a, r, branch, &repo, &b, err);

    if (code < 0 || b.sealed_count <= LAKE_SEALED_KEPT)
        return code;
    o.tokens = b.sealed;
    o.token_count = b.sealed_count;
    code = layers_open(&walk, l, &o, err);
    if (code == 0)
        code = draft_make(&draft, l, a, &repo, branch, walk, NULL, NULL, err);
    layers_close(walk);
    return code < 0 ? code : compact_replace(l, a, &repo, &b, &draft, err);
}

void lake_compact_work(struct lake *l)
{
    struct compaction *one;

    while (!loop_is_stopping(&l->cleaner) && (one = compaction_take(l->compactions))) {
        struct arena work = {0};
        struct err err = {0};
        int code = 0;

        if (!commit_turn_is_taken(l->queue, one->repo.partition, one->branch))
            code = lake_compact(l, &work, &one->repo, one->branch, &err);
        if (code < 0 && code != ERR_AGAIN && err_kind(code) == ERR_KIND_FAILURE)
            log_warn(l->o.log, "lake.compact.failed", log_s("repository", one->repo.id),
                     log_s("branch", one->branch), log_z("error", err.text));
        arena_release(&work);
        compaction_free(one);
    }
}
