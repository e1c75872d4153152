/* The points at which the lake calls hooks before and after changes of refs. The lake does not know
 * how a hook works. lake/actions.h has the hooks of a running weir, which call the webhooks that a
 * repository's action files name. A lake may also have no hooks. */
#ifndef LAKE_HOOKS_H
#define LAKE_HOOKS_H

#include "lake/lake.h"

enum lake_event {
    LAKE_ON_PREPARE_COMMIT, /* before anything is sealed; this event has no hook after the change */
    LAKE_ON_COMMIT,
    LAKE_ON_MERGE,
    LAKE_ON_REVERT,
    LAKE_ON_CHERRY_PICK,
    LAKE_ON_CREATE_BRANCH,
    LAKE_ON_DELETE_BRANCH,
    LAKE_ON_CREATE_TAG,
    LAKE_ON_DELETE_TAG,
};

struct lake_hook_call {
    enum lake_event event;
    const struct lake_repo *repo;
    struct str ref;    /* the branch or the tag that changes */
    struct str source; /* the ref that is merged, reverted, picked or branched from; may be empty */
    /* The commit that is about to be published, or was published; its id is set. NULL: the event
     * makes no commit. Before the event the commit's record is not stored. If another commit wins
     * the race, the published commit has another parent and id, but the same tree. */
    const struct lake_commit *commit;
    /* before the event: the present head of the branch or tag; after the event: its new head */
    struct str commit_id;
    /* the turn of the change (lake/commit_queue.h); NULL: the change has none */
    struct commit_turn *turn;
};

struct lake_hooks {
    /* Runs before the change. ERR_PRECONDITION refuses the change; the error's text says why. A
     * commit calls this once for each tree that it is about to publish (docs/lake.md, C3). */
    int (*pre)(void *ctx, struct lake *l, struct arena *a, const struct lake_hook_call *c,
               struct err *err);
    /* Runs after the change and cannot undo it. It must not wait for an answer from another
     * host. */
    void (*post)(void *ctx, struct lake *l, const struct lake_hook_call *c);
    void *ctx;
};

/* These call the hooks of the lake. If the lake has no hooks or the repository is read-only,
 * nothing is called. */
int lake_hook_pre(struct lake *l, struct arena *a, const struct lake_hook_call *c,
                  struct err *err) MUST_CHECK;
void lake_hook_post(struct lake *l, const struct lake_hook_call *c);

#endif
