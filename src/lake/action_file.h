/* Action files: YAML files in the folder `_lakefs_actions` of a repository say which webhooks are
 * called before and after changes. docs/lake-keeping.md ("Hooks") has the format.
 *
 * The reader is strict: unknown members, repeated keys, anchors and aliases are errors, so that a
 * mistake in a file is reported, and does not silently switch a hook off. No I/O; any thread. */
#ifndef LAKE_ACTION_FILE_H
#define LAKE_ACTION_FILE_H

#include "base/proto.h"

enum {
    ACTION_BYTES_MAX = 64 << 10, /* largest action file, in bytes */
    ACTION_NODES_MAX = 4096,     /* most YAML values in one file */
    ACTION_DEPTH_MAX = 16,
    ACTION_HOOKS_MAX = 64,
    ACTION_EVENTS_MAX = 32,
    ACTION_TIMEOUT_MS = 60 * 1000, /* time-out of a hook whose file does not set a time-out */
    ACTION_TIMEOUT_MAX_MS = 10 * 60 * 1000,
};

/* When a hook runs, depending on how the earlier hooks of the same action ended. */
enum action_when { ACTION_ON_SUCCESS, ACTION_ON_FAILURE, ACTION_ALWAYS, ACTION_NEVER };

struct action_hook {
    struct str id, type;
    enum action_when when;
    struct str url; /* address of the webhook; http or https */
    uint64_t timeout_ms;
    struct str_pairs headers, query; /* values may contain {{ ENV.NAME }} */
};

struct action_event {
    struct str name;      /* such as "pre-commit" */
    struct str *branches; /* patterns; none: every branch */
    size_t branch_count;
};

struct action {
    struct str name, description;
    struct action_event *events;
    size_t event_count;
    struct action_hook *hooks;
    size_t hook_count;
};

/* Parses an action file. All results are in the arena. ERR_INVALID: the error's text says what is
 * wrong, and on which line. */
int action_read(struct action *out, struct arena *a, struct str text, struct err *err) MUST_CHECK;

/* Whether the action runs for the event on the branch. An empty branch matches every pattern. */
bool action_matches(const struct action *act, struct str event, struct str branch);

/* Returns the value of an environment variable; NULL: the variable is not set. */
typedef const char *action_lookup_fn(void *ctx, const char *name);
/* Appends the text with every {{ ENV.NAME }} replaced. ERR_INVALID: a name does not begin with
 * LAKEFSACTION_, or `lookup` returns NULL for it. */
int action_expand(struct buf *out, struct str text, action_lookup_fn *lookup, void *ctx,
                  struct err *err) MUST_CHECK;

#endif
