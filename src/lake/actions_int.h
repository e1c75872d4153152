/* Declarations that the files action*.c share. */
#ifndef LAKE_ACTIONS_INT_H
#define LAKE_ACTIONS_INT_H

#include "http/hosts.h"
#include "lake/action_file.h"
#include "lake/actions.h"
#include "lake/lake_int.h"
#include "os/thread.h"

enum {
    ACTION_OUTPUT_MAX = 4 << 10,
    ACTION_FILES_MAX = 100,
    ACTION_FILES_AT_ONCE = 16, /* action files of one event whose hooks run at the same time */
    ACTION_RUNS_KEPT = 1000,
};

/* The runs that wait for the answers of their webhooks. Their number is limited, because the
 * webhooks are on hosts that the repositories' owners chose (H9). */
struct action_seats {
    struct mutex lock; /* class "lake.hooks" */
    struct list taken; /* of struct action_seat */
    size_t max;        /* 0: any number */
};

struct lake_actions {
    struct lake_actions_options o;
    struct action_seats before, behind; /* runs of hooks before events, and of hooks after events */
    struct lake_hooks hooks;
    struct hosts hosts; /* hosts that may be called */
    _Atomic(bool) is_ending;
};

/* An event and its hooks. */
struct action_call {
    struct lake_actions *actions;
    struct lake *lake;
    struct arena *arena;
    const struct lake_repo *repo;
    bool is_pre;
    enum lake_event event;
    struct str ref, source, commit_id;
    const struct lake_commit *commit; /* the commit that the event makes; NULL: it makes none */
    /* turn of the change that waits for the hooks (lake/commit_queue.h); NULL: no change waits */
    struct commit_turn *turn;
};

/* --- events (action_event.c) --- */

/* Returns the event's name as action files write it; in the arena. */
struct str action_event_name(struct arena *a, enum lake_event event, bool is_pre);
bool action_event_is_tag(enum lake_event event);
/* Reads the action files that match the event from its tree. ERR_INVALID: the error's text names
 * the file that cannot be read. */
int action_find(struct action_call *c, struct action **out, size_t *count,
                struct err *err) MUST_CHECK;
/* Whether the event's tree has any action file. */
int action_any(struct action_call *c, bool *out, struct err *err) MUST_CHECK;

/* --- webhooks (action_send.c) --- */

/* Calls a webhook and fills out->output. ERR_PRECONDITION: the webhook refused the change or could
 * not be reached. */
int action_send(struct action_call *c, const struct action *act, const struct action_hook *h,
                struct lake_hook_run *out, struct err *err) MUST_CHECK;

/* --- records (action_record.c) --- */

/* Append the encoded record. */
void action_run_write(struct buf *out, const struct lake_run *run);
void action_hook_run_write(struct buf *out, const struct lake_hook_run *h);
/* Read an encoded record. Its strings point into `in`. ERR_CORRUPT: the bytes are not a record. */
int action_run_read(struct lake_run *out, struct str in, struct err *err) MUST_CHECK;
int action_hook_run_read(struct lake_hook_run *out, struct str in, struct err *err) MUST_CHECK;

void action_run_id(char out[32 + 1]);
int action_put_run(struct action_call *c, const struct lake_run *run, struct err *err) MUST_CHECK;
int action_put_hook_run(struct action_call *c, const struct lake_hook_run *h,
                        struct err *err) MUST_CHECK;
/* Removes the oldest runs, so that ACTION_RUNS_KEPT of them stay. */
int action_forget_runs(struct action_call *c, struct err *err) MUST_CHECK;

#endif
