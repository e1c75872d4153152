/* Amends objects: reads the entry, changes it, and stages it if no other write came between. */
#include "lake/amend.h"

#include "lake/keep.h"
#include "lake/lake_int.h"
#include "lake/read.h"

/* One try of an amendment. */
struct amend_try {
    const struct lake_amendment *m;
    struct lake_object found; /* the object as this try read it */
    bool is_late;             /* another write was faster */
};

static int amend_judge(void *ctx, struct str path, const struct lake_object *present,
                       struct err *err)
{
    struct amend_try *t = ctx;

    t->is_late = !present || !lake_object_is_same(present, &t->found);
    if (t->is_late)
        return err_set(err, ERR_BUSY, "other writes of the path were faster");
    return t->m->judge ? t->m->judge(t->m->ctx, path, present, err) : 0;
}

int lake_amend(struct lake *l, struct arena *a, const struct lake_repo *r, struct str branch,
               struct str path, const struct lake_amendment *m, struct err *err)
{
    uint64_t deadline = clock_mono_ms() + LAKE_DEADLINE_MS;
    struct amend_try t = {.m = m};
    struct lake_keep keep;
    int code;

    do {
        t.is_late = false;
        code = lake_keep_begin(&keep, l, a, r, err);
        if (code == 0)
            code = lake_stat(l, a, r, branch, path, &t.found, err);
        struct lake_entry entry = t.found.entry;
        if (code == 0)
            code = m->change(m->ctx, &entry, err);
        struct lake_put put = {path, &entry};
        struct lake_stage_options o = {.judge = amend_judge, .ctx = &t, .keep = &keep};
        if (code == 0)
            code = lake_stage(l, a, r, branch, &put, 1, &o, err);
    } while (code < 0 && t.is_late && clock_mono_ms() < deadline);
    return code;
}
