/* Jobs: each job makes one node file from a draft, and writes it. Jobs start in the order in which
 * they are made, and a parent's job is made after the jobs of its children. So a job waits only for
 * jobs that started before it, and the oldest running job never waits.
 *
 * The first jobs of a builder make their files on the caller's thread, because handing a small node
 * to another thread costs more than encoding it. If the place can write several files in one call,
 * these jobs are held until the tree is complete, and their files are then written in one call. If
 * the builder makes more nodes, the pool of threads writes them instead. */
#include "lake/tree_build.h"

#include "lake/split.h"

enum {
    JOBS_DEFAULT = 16,
    JOB_MEMORY = 512 << 10, /* most memory of a job that is kept for the next builder, in bytes */
};

static unsigned jobs_max(const struct tree_builder *b)
{
    return b->options && b->options->writers ? b->options->writers : JOBS_DEFAULT;
}

struct tree_job *tree_job_new(struct tree_builder *b, unsigned level)
{
    mutex_lock(&b->lock);
    struct list *node = list_shift(&b->idle);
    mutex_unlock(&b->lock);
    struct tree_job *j =
        node ? list_entry(node, struct tree_job, idle) : cache_job_take(b->store->cache);

    if (!j) {
        j = xzalloc(sizeof(*j));
        node_encoder_init(&j->encoder);
    }
    if (!node)
        list_init(&j->idle);
    j->builder = b;
    j->is_encoded = false;
    node_draft_reset(&j->draft, level, split_target(b->store, level));
    j->children.len = 0;
    j->known_count = 0;
    j->promise = xzalloc(sizeof(*j->promise));
    return j;
}

void tree_job_free(struct tree_job *j)
{
    node_encoder_release(&j->encoder);
    node_draft_release(&j->draft);
    vec_release(&j->children);
    free(j);
}

static void job_free_promises(struct tree_job *j)
{
    vec_each (&j->children, struct job_child *, child)
        free(child->promise);
    j->children.len = 0;
}

void tree_job_drop(struct tree_job *j)
{
    if (!j)
        return;
    job_free_promises(j);
    free(j->promise);
    tree_job_free(j);
}

/* Waits for the ids of the children, and stores them in the draft. Returns the builder's error, if
 * there is one. */
static int job_resolve(struct tree_job *j)
{
    struct tree_builder *b = j->builder;

    mutex_lock(&b->lock);
    vec_each (&j->children, struct job_child *, child) {
        while (!child->promise->kept && b->code == 0)
            cond_wait(&b->changed, &b->lock);
        if (b->code)
            break;
        memcpy(j->draft.raw.p + child->id_at, child->promise->id.bytes, NODE_ID_LEN);
    }
    int code = b->code;
    mutex_unlock(&b->lock);
    return code;
}

static bool job_is_known(const struct tree_job *j)
{
    for (unsigned i = 0; i < j->known_count; i++)
        if (node_id_eq(&j->known[i], &j->encoder.id))
            return true;
    return false;
}

static void job_keep_promise(struct tree_job *j)
{
    struct tree_builder *b = j->builder;

    mutex_lock(&b->lock);
    j->promise->id = j->encoder.id;
    j->promise->kept = true;
    j->promise = NULL; /* from now on the parent's job may free it */
    cond_broadcast(&b->changed);
    mutex_unlock(&b->lock);
}

static int job_write(struct tree_job *j, struct err *err)
{
    struct tree_store *t = j->builder->store;
    char text[LAKE_ID_LEN + 1];

    node_id_text(text, &j->encoder.id);
    int code = t->place.write(t->place.ctx, str_z(text), buf_str(&j->encoder.file), err);
    if (code == 0)
        cache_written(t, &j->encoder.id, j->draft.level, buf_str(&j->encoder.file));
    return code;
}

/* Makes the node's file, and tells the node's id to the parent's job. */
static int job_encode(struct tree_job *j, struct err *err)
{
    int code = job_resolve(j);

    if (code == 0)
        code = node_encode(&j->encoder, &j->draft, err);
    if (code == 0)
        job_keep_promise(j);
    j->is_encoded = code == 0;
    return code;
}

static void job_end(struct tree_job *j, int code, const struct err *err, bool written)
{
    struct tree_builder *b = j->builder;

    mutex_lock(&b->lock);
    if (code && b->code == 0) {
        b->code = code;
        b->err = *err;
    }
    b->written += written;
    list_push(code ? &b->failed : &b->idle, &j->idle);
    /* Other threads wait for an error, for the end of all jobs, or until they may start another
     * job. They are woken only if one of these has happened. */
    bool matters = code || b->running == 1 || b->running >= jobs_max(b);
    b->running--;
    if (matters)
        cond_broadcast(&b->changed);
    mutex_unlock(&b->lock);
}

static void job_run(struct tree_job *j)
{
    struct err err = {0};
    bool written = false;
    int code = j->is_encoded ? 0 : job_encode(j, &err);

    if (code == 0 && !job_is_known(j)) {
        code = job_write(j, &err);
        written = code == 0;
    }
    if (code == 0)
        /* This job knows the ids of all children, so their promises are not needed any more. */
        job_free_promises(j);
    job_end(j, code, &err, written);
}

static void job_run_on_pool(void *ctx)
{
    thread_low_priority();
    job_run(ctx);
}

/* --- starting and holding --- */

static void jobs_await_room(struct tree_builder *b)
{
    mutex_lock(&b->lock);
    while (b->running >= jobs_max(b))
        cond_wait(&b->changed, &b->lock);
    b->running++;
    mutex_unlock(&b->lock);
}

static int jobs_error(struct tree_builder *b, struct err *err)
{
    mutex_lock(&b->lock);
    int code = b->code ? err_set(err, b->code, "%s", b->err.text) : 0;
    mutex_unlock(&b->lock);
    return code;
}

static void job_submit(struct tree_job *j)
{
    j->pool = (struct pool_job){.fn = job_run_on_pool, .ctx = j};
    if (pool_submit(cache_pool(j->builder->store->cache), &j->pool) < 0)
        job_run(j);
}

/* Hands the held jobs to the pool of threads. */
static void jobs_unhold(struct tree_builder *b)
{
    for (unsigned i = 0; i < b->held_count; i++) {
        jobs_await_room(b);
        job_submit(b->held[i]);
    }
    b->held_count = 0;
}

int tree_job_start(struct tree_job *j, bool is_last, struct err *err)
{
    struct tree_builder *b = j->builder;
    /* If encoding fails here, job_run() encodes again and reports the error. */
    struct err ignored = {0};
    bool is_early = b->started++ < BUILD_HELD;

    if (!is_early)
        jobs_unhold(b);
    bool is_made = is_early && job_encode(j, &ignored) == 0;
    bool is_needed = is_made && !job_is_known(j);
    if (is_needed && b->store->place.write_all) {
        b->held[b->held_count++] = j;
        return jobs_error(b, err);
    }
    jobs_await_room(b);
    if (is_last || !b->options || (is_early && !is_needed))
        job_run(j);
    else
        job_submit(j);
    return jobs_error(b, err);
}

/* Writes the files of the held jobs in one call. */
static int held_write(struct tree_builder *b, struct err *err)
{
    struct tree_store *t = b->store;
    struct node_bytes files[BUILD_HELD];
    char names[BUILD_HELD][LAKE_ID_LEN + 1];

    for (unsigned i = 0; i < b->held_count; i++) {
        node_id_text(names[i], &b->held[i]->encoder.id);
        files[i] = (struct node_bytes){str_z(names[i]), buf_str(&b->held[i]->encoder.file)};
    }
    int code = t->place.write_all(t->place.ctx, files, b->held_count, err);
    for (unsigned i = 0; i < b->held_count && code == 0; i++)
        cache_written(t, &b->held[i]->encoder.id, b->held[i]->draft.level, files[i].bytes);
    return code;
}

/* Ends the held jobs. `code` 0: their files were written. Otherwise it is their error. */
static void held_end(struct tree_builder *b, int code, const struct err *err)
{
    for (unsigned i = 0; i < b->held_count; i++) {
        if (code == 0)
            job_free_promises(b->held[i]);
        jobs_await_room(b);
        job_end(b->held[i], code, err, code == 0);
    }
    b->held_count = 0;
}

void tree_jobs_give_up(struct tree_builder *b)
{
    held_end(b, ERR_CLOSED, &(struct err){0});
}

int tree_jobs_wait(struct tree_builder *b, struct err *err)
{
    struct err own = {0};
    int code = b->held_count ? jobs_error(b, &own) : 0;

    if (code == 0 && b->held_count)
        code = held_write(b, &own);
    held_end(b, code, &own);
    mutex_lock(&b->lock);
    while (b->running)
        cond_wait(&b->changed, &b->lock);
    mutex_unlock(&b->lock);
    return jobs_error(b, err);
}

void tree_jobs_release(struct tree_builder *b)
{
    list_splice(&b->idle, &b->failed);
    list_each_safe (&b->idle, struct tree_job, idle, j) {
        bool is_small = j->draft.raw.cap + j->draft.packed.cap + j->encoder.file.cap <= JOB_MEMORY;
        job_free_promises(j);
        list_remove(&j->idle);
        if (!is_small || !cache_job_give(b->store->cache, j))
            tree_job_free(j);
    }
}
