/* Hooks of repositories: webhooks that are called before and after changes of branches and tags
 * (lake/hooks.h). Action files say which webhooks (lake/action_file.h).
 *
 * An event uses the action files of the tree that it is about: the tree of the commit that is made,
 * or of the commit that the branch or the tag points to. The hooks before an event run while the
 * caller waits, and any failure refuses the change with ERR_PRECONDITION. The hooks after an event
 * run as a task on the queue.
 *
 * All hooks that one event calls form a *run*. The partition `actions` has a row for each run,
 * "<partition>/runs/<run>", and a row for each hook of a run, "<partition>/tasks/<run>/<hook run>".
 * Here <partition> is the partition of the repository. The newest run comes first. */
#ifndef LAKE_ACTIONS_H
#define LAKE_ACTIONS_H

#include "lake/hooks.h"

struct queue;
struct lake_actions;

struct lake_actions_options {
    /* gets the tasks of hooks that run after events; NULL: such hooks are not run. Borrowed */
    struct queue *queue;
    const char *(*lookup)(const char *name); /* values of variables; NULL: the environment */
    struct str hosts;     /* lake.hooks.hosts: hosts that may be called (http/hosts.h); borrowed */
    struct str variables; /* lake.hooks.variables, checked; borrowed */
    /* How many events may wait for their hooks at the same time: before_max for hooks that run
     * before an event, behind_max for hooks that run after an event. Events in repositories of one
     * owner may be at most a quarter of each number, but at least one. 0: any number. */
    size_t before_max, behind_max;
    const struct log *log;
};
/* ERR_INVALID: an item of the list is neither LAKEFSACTION_NAME nor LAKEFSACTION_NAME@HOST. */
int lake_actions_check_variables(struct str list, struct err *err) MUST_CHECK;
/* ERR_INVALID: `hosts` is not a list of hosts. */
int lake_actions_new(struct lake_actions **out, const struct lake_actions_options *o,
                     struct err *err) MUST_CHECK;
void lake_actions_free(struct lake_actions *x); /* NULL is fine; no call may be running */
/* The interface for lake_options.hooks; it lives as long as `x`. */
const struct lake_hooks *lake_actions_hooks(struct lake_actions *x);
/* Ends the waits of running calls for other hosts, so that the calls return soon. */
void lake_actions_abort(struct lake_actions *x);

/* Runs the hooks after an event, which a task's payload describes. The outcome is in the record of
 * the run. ERR_INVALID: the payload is malformed. ERR_BUSY: too many hooks run; nothing was done.
 */
int lake_actions_work(struct lake_actions *x, struct lake *l, struct str payload,
                      struct err *err) MUST_CHECK;

/* --- records --- */

struct lake_run {
    struct str id, event, branch, commit_id;
    int64_t started_ms, ended_ms;
    bool passed;
};
struct lake_hook_run {
    struct str id, run, hook, action;
    int64_t started_ms, ended_ms;
    bool passed, skipped;
    struct str output; /* the request and its answer, without secrets; at most 4 KiB */
};

/* Which runs are listed. If a member is empty, any value matches. */
struct lake_run_filter {
    struct str branch, commit_id;
};

/* Lists runs, the newest first, beginning after the run `page->after`. Only runs that match
 * `filter` are listed. */
int lake_run_list(struct lake *l, struct arena *a, const struct lake_repo *r,
                  const struct lake_page *page, const struct lake_run_filter *filter,
                  struct lake_run **out, size_t *count, bool *more, struct err *err) MUST_CHECK;
int lake_run_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str id,
                 struct lake_run *out, struct err *err) MUST_CHECK;
int lake_hook_run_list(struct lake *l, struct arena *a, const struct lake_repo *r, struct str run,
                       const struct lake_page *page, struct lake_hook_run **out, size_t *count,
                       bool *more, struct err *err) MUST_CHECK;
int lake_hook_run_get(struct lake *l, struct arena *a, const struct lake_repo *r, struct str run,
                      struct str id, struct lake_hook_run *out, struct err *err) MUST_CHECK;

#endif
