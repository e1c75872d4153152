/* Runs long work on trees at low priority. */
#include "lake/tree_build.h"

/* Most steps that run on the caller's own thread; they take some ten milliseconds. A commit of few
 * changes needs fewer steps, and so no other thread. */
enum { STEPS_HERE = 10000 };

struct long_work {
    tree_step_fn *step;
    void *ctx;
    struct err *err;
    int code;
};

static void long_work_run(void *ctx)
{
    struct long_work *w = ctx;

    while (w->code == 0)
        w->code = w->step(w->ctx, w->err);
}

static void long_work_run_low(void *ctx)
{
    thread_low_priority();
    long_work_run(ctx);
}

int tree_work(tree_step_fn *step, void *ctx, struct err *err)
{
    struct long_work w = {.step = step, .ctx = ctx, .err = err};
    struct thread thread = {0};

    for (int i = 0; i < STEPS_HERE && w.code == 0; i++)
        w.code = step(ctx, err);
    if (w.code == 0 && thread_start(&thread, "lake-build", 0, long_work_run_low, &w, NULL) == 0)
        thread_join(&thread);
    else
        long_work_run(&w);
    return w.code == ERR_END ? 0 : w.code;
}
