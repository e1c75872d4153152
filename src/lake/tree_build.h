/* Builds a tree from left to right: from records, and from whole nodes of other trees that are
 * taken over by id. The same records always give the same nodes (docs/lake-trees.md, T2).
 *
 * Drafts of nodes are filled on the caller's thread. They are hashed, packed and written by jobs:
 * on the cache's threads, which have a low priority, or on the caller's thread. A node's id is
 * known only when its job has run, so the job of a parent waits for the ids of its children. The
 * number of drafts and jobs is bounded (T6).
 *
 * A builder belongs to one thread at a time. */
#ifndef LAKE_TREE_BUILD_H
#define LAKE_TREE_BUILD_H

#include "base/list.h"
#include "lake/tree_spine.h"
#include "os/thread.h"

struct tree_job;
struct tree_promise; /* an id that a job will set */

struct build_level {
    /* the node that is being filled; NULL: the next record of this level begins a node */
    struct tree_job *open;
    /* The number of nodes of the level, without the open one. Nodes below a node that was taken
     * over are not counted; if there are any, the number is at least two. */
    uint64_t nodes;
    struct node_id id;            /* id of the first node */
    struct tree_promise *promise; /* NULL: `id` is set; owned by the job of the parent */
};

enum {
    BUILD_SOURCES = 2,
    /* number of first jobs of a builder that make their files on the caller's thread */
    BUILD_HELD = 16,
};

struct tree_builder {
    struct tree_store *store;
    const struct tree_write_options *options; /* NULL: jobs run on the caller's thread */
    /* Trees that exist: a new node that equals one of their nodes is not written. */
    const struct tree_spine *sources[BUILD_SOURCES];
    struct build_level levels[NODE_LEVEL_MAX + 1];
    uint64_t started; /* number of jobs that were started so far */
    /* Held jobs: their files are made, and will be written in one call, unless the builder makes
     * more than BUILD_HELD jobs. */
    struct tree_job *held[BUILD_HELD];
    unsigned held_count;

    struct mutex lock;   /* class "lake.build"; guards what follows */
    struct cond changed; /* a promise got its id, or a job has ended */
    unsigned running;
    struct list idle; /* jobs that can be used again */
    /* jobs that failed; they are kept until all jobs have ended, because other jobs may use their
     * promises */
    struct list failed;
    uint64_t written;
    int code; /* the first error */
    struct err err;
};

void tree_builder_init(struct tree_builder *b, struct tree_store *t,
                       const struct tree_write_options *o);
void tree_builder_release(struct tree_builder *b); /* waits for jobs */

/* Adds a record, whose key is greater than all keys so far. */
int tree_builder_record(struct tree_builder *b, const struct tree_record *r,
                        struct err *err) MUST_CHECK;
/* Whether the node can be taken over by id, that is, gives the same tree as its records would.
 * `is_last` says that nothing will be added after it. */
bool tree_builder_can_take(const struct tree_builder *b, const struct tree_item *item,
                           bool is_last);
/* Adds the item of a spine: a record, or a node that is taken over. */
int tree_builder_item(struct tree_builder *b, const struct tree_item *item,
                      struct err *err) MUST_CHECK;
/* Adds the spine's item, and moves the spine to the next item. If the item is a node that cannot be
 * taken over, the spine enters the node instead, and nothing is added. */
int tree_builder_take(struct tree_builder *b, struct tree_spine *s, bool is_last,
                      struct err *err) MUST_CHECK;
/* Ends the open nodes, waits until every node is durable, and sets `root`; "" if there are no
 * records. */
int tree_builder_finish(struct tree_builder *b, char root[LAKE_ID_LEN + 1],
                        struct err *err) MUST_CHECK;

/* --- long work (tree_long.c) --- */

/* Makes one step of the work. 0: there is more to do. ERR_END: the work is done. */
typedef int tree_step_fn(void *ctx, struct err *err);
/* Makes steps until the work is done or fails. The first steps run on the caller's thread. If there
 * are many, the rest runs on a thread of low priority, for which the caller waits. So callers that
 * stage objects are served first when processors are scarce. */
int tree_work(tree_step_fn *step, void *ctx, struct err *err) MUST_CHECK;

/* --- jobs (tree_job.c) --- */

struct tree_job {
    struct pool_job pool;
    struct list idle;
    struct tree_builder *builder;
    struct node_draft draft;
    struct node_encoder encoder;
    struct tree_promise *promise; /* gets the id */
    VEC(struct job_child {
        size_t id_at; /* offset in the draft at which the id is put */
        struct tree_promise *promise;
    })
    children;
    struct node_id known[BUILD_SOURCES];
    unsigned known_count;
    bool is_encoded; /* the file is made */
};

struct tree_promise {
    bool kept;
    struct node_id id;
};

/* Returns a job with an empty draft. */
struct tree_job *tree_job_new(struct tree_builder *b, unsigned level);
/* Runs the job: on this thread, on another one, or makes its file here and holds the file until
 * tree_jobs_wait(). `is_last`: the job is not given to another thread, because the caller would
 * only wait for it. Returns the first error of all jobs so far. */
int tree_job_start(struct tree_job *j, bool is_last, struct err *err) MUST_CHECK;
void tree_job_drop(struct tree_job *j); /* gives up a job that was not started; NULL is fine */
/* Writes the files that are held, and waits for all jobs. Returns the first error. */
int tree_jobs_wait(struct tree_builder *b, struct err *err) MUST_CHECK;
void tree_jobs_give_up(struct tree_builder *b); /* does not write the files that are held */
void tree_jobs_release(struct tree_builder *b); /* frees or caches all jobs, which have ended */
void tree_job_free(struct tree_job *j);         /* frees a job that belongs to no builder */

#endif
