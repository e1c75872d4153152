/* Builds a tree from left to right. The caller adds records, and whole nodes of other trees, which
 * are taken over by id without being read. The same records always give the same nodes
 * (docs/lake-trees.md, T2).
 *
 * The records of a node are collected in memory, in a *draft*. When the node has ended, a *job*
 * hashes, packs and writes it, on the caller's thread or on the cache's threads, which have a low
 * priority. A node's id is known only after its job has hashed it, so the job of a parent waits for
 * the ids of its children. An id that is not known yet is a *promise*. The number of drafts and
 * jobs is bounded (T6).
 *
 * A builder belongs to one thread at a time. */
#ifndef LAKE_TREE_BUILD_H
#define LAKE_TREE_BUILD_H

#include "base/list.h"
#include "lake/tree_spine.h"
#include "os/thread.h"

struct tree_job;
struct tree_promise; /* an id that a job will fill in */

struct build_level {
    /* the node that is being filled; NULL: the next record of this level begins a node */
    struct tree_job *open;
    /* The number of nodes of the level, without the open node; the builder only needs to know
     * whether it is 0, 1 or more. So a node that is taken over on a higher level adds two here,
     * instead of the real number of nodes below it. */
    uint64_t nodes;
    struct node_id id; /* id of the level's first node */
    /* will have the id of the first node; NULL: `id` has it; owned by the job of the parent */
    struct tree_promise *promise;
};

enum {
    BUILD_SOURCES = 2,
    /* so many jobs of a builder, the first ones, make their files on the caller's thread */
    BUILD_HELD = 16,
};

struct tree_builder {
    struct tree_store *store;
    const struct tree_write_options *options; /* NULL: jobs run on the caller's thread */
    /* Existing trees from which the builder takes nodes. A new node that equals one of their nodes
     * is not written. */
    const struct tree_spine *sources[BUILD_SOURCES];
    struct build_level levels[NODE_LEVEL_MAX + 1];
    uint64_t started; /* number of jobs that were started so far */
    /* Held jobs: jobs that have made their files, but wait with writing until the tree is complete.
     * All of them are then written in one call. If the builder starts more than BUILD_HELD jobs,
     * the pool of threads writes them instead. */
    struct tree_job *held[BUILD_HELD];
    unsigned held_count;

    struct mutex lock;   /* class "lake.build"; guards the members below */
    struct cond changed; /* a promise got its id, or a job has ended */
    unsigned running;
    struct list idle; /* jobs that can be used again */
    /* jobs that have failed; they are kept until all jobs have ended, because other jobs may still
     * use their promises */
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
/* Whether the node can be taken over by id, which must give the same tree as adding its records one
 * by one. `is_last`: nothing will be added after the node. */
bool tree_builder_can_take(const struct tree_builder *b, const struct tree_item *item,
                           bool is_last);
/* Adds a spine's item (tree_spine.h): a record, or a node that is taken over by id. */
int tree_builder_item(struct tree_builder *b, const struct tree_item *item,
                      struct err *err) MUST_CHECK;
/* Adds the spine's item, and moves the spine to the next item. If the item is a node that cannot be
 * taken over by id, only enters the node and adds nothing. */
int tree_builder_take(struct tree_builder *b, struct tree_spine *s, bool is_last,
                      struct err *err) MUST_CHECK;
/* Ends the open nodes, waits until every node is durable, and sets `root` to the id of the root; ""
 * if there are no records. */
int tree_builder_finish(struct tree_builder *b, char root[LAKE_ID_LEN + 1],
                        struct err *err) MUST_CHECK;

/* --- long work (tree_long.c) --- */

/* Makes one step of the work. 0: there is more to do. ERR_END: the work is done. */
typedef int tree_step_fn(void *ctx, struct err *err);
/* Makes steps until the work is done or fails. The first steps run on the caller's thread. If there
 * are many, the rest runs on a thread of low priority, for which the caller waits. So when
 * processors are scarce, callers that stage objects are served first. */
int tree_work(tree_step_fn *step, void *ctx, struct err *err) MUST_CHECK;

/* --- jobs (tree_job.c) --- */

struct tree_job {
    struct pool_job pool;
    struct list idle;
    struct tree_builder *builder;
    struct node_draft draft;
    struct node_encoder encoder;
    struct tree_promise *promise; /* gets the id of the node */
    VEC(struct job_child {
        size_t id_at; /* offset in the draft at which the child's id is stored */
        struct tree_promise *promise;
    })
    children;
    struct node_id known[BUILD_SOURCES];
    unsigned known_count;
    bool is_encoded; /* the encoder has the finished file */
};

struct tree_promise {
    bool kept;
    struct node_id id;
};

/* Returns a job with an empty draft. */
struct tree_job *tree_job_new(struct tree_builder *b, unsigned level);
/* Starts the job. It runs on this thread or on another one; or it makes its file here and holds it
 * until tree_jobs_wait() writes it. `is_last`: the job is not given to another thread, because the
 * caller would only wait for that thread. Returns the first error of all jobs so far. */
int tree_job_start(struct tree_job *j, bool is_last, struct err *err) MUST_CHECK;
void tree_job_drop(struct tree_job *j); /* discards a job that was not started; NULL is fine */
/* Writes the files of the held jobs, and waits until all jobs have ended. Returns the first
 * error. */
int tree_jobs_wait(struct tree_builder *b, struct err *err) MUST_CHECK;
void tree_jobs_give_up(struct tree_builder *b); /* discards the files of the held jobs */
void tree_jobs_release(struct tree_builder *b); /* frees or caches all jobs; they have ended */
void tree_job_free(struct tree_job *j);         /* frees a job that is in no builder */

#endif
