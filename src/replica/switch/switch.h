/* The tasks of switches (docs/replication.md, "Switch"): `api:switch_zero_downtime` and
 * `api:switch_w_downtime`. A task looks at the state of its switch and makes the steps whose time
 * has come. Each step is one script (coord/switch.h). Then the task is put back for a while without
 * using a try, until the switch is done or can go no further. So a task may run at any time and any
 * number of times. The lock `lks:<replication>` keeps two tasks from working on one bucket. */
#ifndef REPLICA_SWITCH_SWITCH_H
#define REPLICA_SWITCH_SWITCH_H

#include "coord/lock.h"
#include "coord/switch.h"
#include "coord/worker.h"
#include "object/bucket.h"

struct keyring;

#define SWITCH_LIVE_TYPE "api:switch_zero_downtime"
#define SWITCH_DOWN_TYPE "api:switch_w_downtime"

/* All members are borrowed. */
struct switcher {
    struct replications *replications;
    struct store *config;
    struct queue *queue;
    struct locks *locks;
    struct keyring *keys; /* keys of sealed objects, for the check; may be NULL */
    /* Returns the storage of this name; NULL: this process does not have the storage. */
    struct storage *(*find)(void *ctx, struct str name);
    /* Returns the main storage, where buckets that have no policy are. */
    struct str (*main)(void *ctx);
    /* The same as `settle` in struct tasks_options. */
    int (*settle)(void *ctx, struct storage *s, struct err *err);
    /* Returns whether keys of the bucket are moving between shards; NULL: they never are. */
    bool (*moves)(void *ctx, const struct storage *s, struct str bucket);
    /* Returns whether the store may have lost changes; NULL: the store never loses changes. */
    bool (*unsure)(void *ctx);
    uint64_t (*contact)(void *ctx); /* returns lease_contact(); NULL: there is no lease */
    void *ctx;
    int64_t poll_s; /* seconds between two runs of a task that waits; 0: 2 */
};

/* The ctx of both handlers is a struct switcher. */
task_fn switch_live_handle, switch_down_handle;

enum { SWITCH_UPLOADS_MAX = 1000 };
/* Sets *out to the first SWITCH_UPLOADS_MAX uploads, sorted by key, that are open in the bucket at
 * the storage. The list is in the arena, and is empty when there is no bucket. */
int switch_uploads(struct storage *s, struct arena *a, struct str user, struct str bucket,
                   struct upload_list *out, struct err *err) MUST_CHECK;
/* Returns the time until which the switch waits for uploads, by the store's clock (ms since 1970);
 * 0: it does not wait for uploads now. */
int64_t switch_uploads_until(const struct bucket_switch *s);

/* Makes the task of a switch, in the arena, for switch_plan(). */
struct task switch_task(struct arena *a, const struct replication_id *id, bool live);

#endif
