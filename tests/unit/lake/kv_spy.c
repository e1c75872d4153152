/* A spy between a lake and its key-value store. */
#include "unit/lake/kv_spy.h"
#include "unit/test.h"

static struct {
    const struct kv_ops *real;
    struct kv_ops ops;
} spy;

/* Each thread has its own plan, so the cleaner's calls do not count. */
static _Thread_local struct {
    bool is_planned, is_inside, happened, refuses;
    enum kv_spy_call call;
    unsigned n;
    void (*fn)(void *ctx); /* NULL: `answer` */
    void *ctx;
    int answer;
} spy_plan;

/* Whether the plan is for this call. */
static bool spy_comes(enum kv_spy_call call)
{
    if (!spy_plan.is_planned || spy_plan.is_inside || spy_plan.call != call || --spy_plan.n > 0)
        return false;
    spy_plan.is_planned = false;
    spy_plan.happened = true;
    if (!spy_plan.fn)
        return true;
    spy_plan.is_inside = true;
    spy_plan.fn(spy_plan.ctx);
    spy_plan.is_inside = false;
    return false;
}

static int spy_get(struct kv *kv, struct kv_view *view, struct arena *a,
                   const struct kv_name *names, size_t count, struct kv_value *out, struct err *err)
{
    spy_comes(KV_SPY_GET);
    return spy.real->get(kv, view, a, names, count, out, err);
}

static int spy_write(struct kv *kv, const struct kv_change *changes, size_t count, size_t *failed,
                     struct arena *a, const struct kv_name *names, size_t name_count,
                     struct kv_value *out, struct err *err)
{
    bool answers = spy_comes(KV_SPY_WRITE);
    if (answers && spy_plan.refuses)
        return err_code(err, spy_plan.answer);
    int code = spy.real->write(kv, changes, count, failed, a, names, name_count, out, err);

    return answers && code == 0 ? err_code(err, spy_plan.answer) : code;
}

static int spy_scan_open(struct kv_scan **out, struct kv *kv, struct kv_view *view,
                         struct str partition, const struct kv_range *range, struct err *err)
{
    spy_comes(KV_SPY_SCAN);
    return spy.real->scan_open(out, kv, view, partition, range, err);
}

/* The cleaner's thread must not see the change half done. */
static void spy_set(struct lake *l, const struct kv_ops *ops)
{
    struct err err = {0};

    loop_stop(&l->cleaner);
    l->kv->ops = ops;
    CHECK_OK(lake_cleaner_start(l, &err));
}

void kv_spy_begin(struct lake *l)
{
    spy.real = l->kv->ops;
    spy.ops = *l->kv->ops;
    spy.ops.get = spy_get;
    spy.ops.write = spy_write;
    spy.ops.scan_open = spy_scan_open;
    spy_set(l, &spy.ops);
}

void kv_spy_end(struct lake *l)
{
    spy_set(l, spy.real);
}

void kv_spy_plan(enum kv_spy_call call, unsigned n, void (*fn)(void *ctx), void *ctx)
{
    spy_plan.is_planned = true;
    spy_plan.happened = spy_plan.refuses = false;
    spy_plan.call = call;
    spy_plan.n = n;
    spy_plan.fn = fn;
    spy_plan.ctx = ctx;
}

void kv_spy_answer(unsigned n, int code)
{
    kv_spy_plan(KV_SPY_WRITE, n, NULL, NULL);
    spy_plan.answer = code;
}

void kv_spy_refuse(unsigned n, int code)
{
    kv_spy_answer(n, code);
    spy_plan.refuses = true;
}

bool kv_spy_happened(void)
{
    spy_plan.is_planned = false;
    return spy_plan.happened;
}
