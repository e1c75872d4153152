/* Runs a migration on a thread of its own. */
#include "lake/mover.h"

#include "base/vec.h"
#include "os/thread.h"

#include <stdlib.h>

/* A repository of the migration; its strings are on the heap. */
struct mover_repo {
    struct lake_migrate_repo told;
    char *id, *error;
};

struct lake_mover {
    struct lake *lake;
    struct thread thread;
    _Atomic(bool) stops;
    char *url, *owner; /* used by the thread while it runs */

    struct mutex lock; /* class "lake.mover"; guards the members below */
    bool is_running;
    uint64_t rows;
    VEC(struct mover_repo) repos;
    struct lake_migrate_totals totals;
    char *error;
};

struct lake_mover *lake_mover_new(struct lake *l)
{
    struct lake_mover *m = xzalloc(sizeof(*m));

    m->lake = l;
    mutex_init(&m->lock, "lake.mover");
    return m;
}

static void mover_forget(struct lake_mover *m)
{
    vec_each (&m->repos, struct mover_repo *, r) {
        free(r->id);
        free(r->error);
    }
    m->repos.len = 0;
    free(m->error);
    m->error = NULL;
    m->rows = 0;
    m->totals = (struct lake_migrate_totals){0};
}

void lake_mover_stop(struct lake_mover *m)
{
    m->stops = true;
}

void lake_mover_free(struct lake_mover *m)
{
    if (!m)
        return;
    lake_mover_stop(m);
    thread_join(&m->thread);
    mover_forget(m);
    vec_release(&m->repos);
    mutex_release(&m->lock);
    free(m);
}

/* --- the thread --- */

static bool mover_goes_on(void *ctx, uint64_t rows)
{
    struct lake_mover *m = ctx;

    mutex_lock(&m->lock);
    m->rows = rows;
    mutex_unlock(&m->lock);
    return !m->stops;
}

/* Records the new state of a repository. Repositories are moved one after the other, so the report
 * is about the last repository of the list, or about a new one. */
static void mover_told(void *ctx, const struct lake_migrate_repo *r)
{
    struct lake_mover *m = ctx;

    mutex_lock(&m->lock);
    if (!m->repos.len || !str_eq(str_z(vec_last(&m->repos)->id), r->id))
        vec_push(&m->repos, ((struct mover_repo){.id = str_dup(r->id)}));
    struct mover_repo *last = vec_last(&m->repos);
    free(last->error);
    last->told = *r;
    last->error = r->error.len ? str_dup(r->error) : NULL;
    last->told.id = last->told.error = STR_EMPTY;
    mutex_unlock(&m->lock);
}

static void mover_free_url(struct lake_mover *m)
{
    secure_zero(m->url, strlen(m->url));
    free(m->url);
    free(m->owner);
    m->url = m->owner = NULL;
}

static void mover_run(void *ctx)
{
    struct lake_mover *m = ctx;
    struct lake_progress progress = {mover_goes_on, m};
    struct lake_migrate_options o = {.url = m->url,
                                     .owner = str_z(m->owner),
                                     .progress = &progress,
                                     .canceled = &m->stops,
                                     .told = mover_told,
                                     .ctx = m};
    struct lake_migrate_totals totals;
    struct err err = {0};
    int code = lake_migrate(m->lake, &o, &totals, &err);

    mover_free_url(m);
    mutex_lock(&m->lock);
    m->totals = totals;
    m->error = code < 0 ? xstrdup(err.text) : NULL;
    m->is_running = false;
    mutex_unlock(&m->lock);
}

/* Marks the mover as busy. Returns false if a migration is running already. */
static bool mover_enter(struct lake_mover *m)
{
    mutex_lock(&m->lock);
    bool entered = !m->is_running;
    if (entered) {
        mover_forget(m);
        m->stops = false;
    }
    m->is_running = true;
    mutex_unlock(&m->lock);
    return entered;
}

int lake_mover_start(struct lake_mover *m, struct str url, struct str owner, struct err *err)
{
    if (!mover_enter(m))
        return err_set(err, ERR_BUSY, "a migration is under way");
    thread_join(&m->thread); /* the thread of the last migration has ended already */
    m->thread = (struct thread){0};
    m->url = str_dup(url);
    m->owner = str_dup(owner);
    int code = thread_start(&m->thread, "lake-mover", 0, mover_run, m, err);
    if (code < 0) {
        mover_free_url(m);
        mutex_lock(&m->lock);
        m->is_running = false;
        mutex_unlock(&m->lock);
    }
    return code;
}

/* --- the status --- */

static void mover_copy(const struct lake_mover *m, struct arena *a, struct lake_mover_status *out)
{
    *out = (struct lake_mover_status){.is_running = m->is_running,
                                      .rows = m->rows,
                                      .error = arena_str(a, str_z(m->error)),
                                      .totals = m->totals};
    out->repos = arena_array(a, m->repos.len + 1, sizeof(*out->repos));
    if (!out->repos)
        return;
    vec_each (&m->repos, struct mover_repo *, r) {
        struct lake_migrate_repo *copy = &out->repos[out->count++];
        *copy = r->told;
        copy->id = arena_str(a, str_z(r->id));
        copy->error = arena_str(a, str_z(r->error));
    }
}

int lake_mover_status(struct lake_mover *m, struct arena *a, struct lake_mover_status *out,
                      struct err *err)
{
    mutex_lock(&m->lock);
    mover_copy(m, a, out);
    mutex_unlock(&m->lock);
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}
