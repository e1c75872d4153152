/* Races of the S3 front: an acknowledged object has its bytes, whoever was refused beside it. */
#include "unit/lake/front_lab.h"
#include "unit/lake/steps.h"

/* --- finishing an upload in parts --- */

/* An upload of "main/k" with one part, which somebody finishes while something else happens. */
struct finish_race {
    struct front_lab *f;
    struct bucket *b;
    struct upload_info upload;
    struct upload_part part;
    int code; /* of the inner call */
};

static struct finish_race finish_race_of(struct front_lab *f)
{
    struct finish_race r = {.f = f, .b = front_lab_bucket(f)};

    r.upload = lab_upload(r.b, &f->lake.arena, "main/k");
    r.part = lab_part(r.b, &f->lake.arena, &r.upload, 1, STR("the parts"));
    return r;
}

static int finish_race_run(struct finish_race *r, bool if_absent, struct err *err)
{
    struct put_options o = {0};
    struct put_result out = {0};

    if (if_absent)
        o.conditions.if_none_match = STR("*");
    return r->b->ops->upload_finish(r->b, &r->f->lake.arena, &r->upload, &r->part, 1, &o, &out,
                                    err);
}

static void finish_race_check(struct finish_race *r, const char *body)
{
    lab_expect(r->b, "main/k", STR_EMPTY, str_z(body));
}

static void finish_race_inner(void *ctx)
{
    struct finish_race *r = ctx;
    struct err err = {0};

    r->code = finish_race_run(r, true, &err);
}

static void finish_race_put(void *ctx)
{
    struct finish_race *r = ctx;

    lab_put(r->b, &r->f->lake.arena, "main/k", STR("other"));
}

FRONT_TEST(lake_front_race, two_that_finish_one_upload_both_succeed)
{
    struct finish_race r = finish_race_of(f);
    struct err err = {0};

    steps_plan(STEPS_BEFORE, "lake.stage", 1, finish_race_inner, &r);
    CHECK_OK(finish_race_run(&r, true, &err));
    CHECK(steps_happened());
    CHECK_INT(r.code, 0);
    finish_race_check(&r, "the parts");
    r.b->ops->unref(r.b);
}

FRONT_TEST(lake_front_race, an_upload_that_was_refused_can_be_finished_again)
{
    struct finish_race r = finish_race_of(f);
    struct err err = {0};

    steps_plan(STEPS_BEFORE, "lake.stage", 1, finish_race_put, &r);
    CHECK_INT(finish_race_run(&r, true, &err), ERR_PRECONDITION);
    CHECK(steps_happened());
    finish_race_check(&r, "other");
    CHECK_OK(finish_race_run(&r, false, &err));
    finish_race_check(&r, "the parts");
    r.b->ops->unref(r.b);
}
