/* Races of the S3 front: an acknowledged object has its bytes, whoever was refused beside it. */
#include "lake/amend.h"
#include "lake/change.h"
#include "lake/lake_int.h"
#include "lake/protect.h"
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

/* --- a put without fences --- */

static void stray_commit_and_protect(void *ctx)
{
    struct front_lab *f = ctx;
    struct lake_protection_rule rule = {STR("main"), LAKE_PROTECT_STAGING};
    struct lake_protection rules = {.rules = &rule, .count = 1};
    struct err err = {0};

    front_lab_commit(f, "main");
    CHECK_OK(lake_protection_set(f->lake.lake, &f->lake.arena, &f->lake.repo, &rules, NULL, &err));
}

static void stray_seal(void *ctx)
{
    struct front_lab *f = ctx;
    struct lake_branch branch;
    struct lake_repo repo;
    struct err err = {0};

    CHECK_OK(
        lake_seal(f->lake.lake, &f->lake.arena, &f->lake.repo, STR("main"), &repo, &branch, &err));
    steps_plan(STEPS_AFTER, "lake.stage", 1, stray_commit_and_protect, f);
}

/* The token is sealed before the row is put, so the row is refused by the check (K3) or by the
 * glance (K4). The repeated put finds a branch that is protected meanwhile. */
FRONT_TEST(lake_front_race, a_put_behind_a_seal_that_is_then_refused_is_not_there)
{
    struct bucket *b = front_lab_bucket(f);
    struct put_options o = {0};
    struct put_result out = {0};
    struct str_reader body;
    struct err err = {0};

    lab_put(b, &f->lake.arena, "main/first", STR("1"));
    steps_plan(STEPS_BEFORE, "lake.stage", 1, stray_seal, f);
    str_reader_init(&body, STR("bytes"));
    CHECK_INT(b->ops->put(b, &f->lake.arena, STR("main/k"), &body.reader, 5, &o, &out, &err) < 0,
              1);
    CHECK(steps_happened());
    lab_expect(b, "main/k", STR_EMPTY, (struct str){0});
    b->ops->unref(b);
}

/* --- amending --- */

static struct lake_object amend_stat(struct front_lab *f)
{
    struct lake_object found;
    struct err err = {0};

    CHECK_OK(lake_stat(f->lake.lake, &f->lake.arena, &f->lake.repo, STR("main"), STR("k"), &found,
                       &err));
    return found;
}

static int amend_set_color(void *ctx, struct lake_entry *e, struct err *err)
{
    static struct str_pair color = {STR("color"), STR("red")};

    e->metadata = (struct str_pairs){&color, 1};
    return 0;
}

static int amend_color(struct front_lab *f, struct err *err)
{
    struct lake_amendment m = {.change = amend_set_color};

    return lake_amend(f->lake.lake, &f->lake.arena, &f->lake.repo, STR("main"), STR("k"), &m, err);
}

static void amend_meanwhile(void *ctx)
{
    struct err err = {0};

    CHECK_OK(amend_color(ctx, &err));
}

static void amend_put_meanwhile(void *ctx)
{
    struct bucket *b = front_lab_bucket(ctx);

    lab_put(b, &((struct front_lab *)ctx)->lake.arena, "main/k", STR("newer"));
    b->ops->unref(b);
}

static void amend_remove_meanwhile(void *ctx)
{
    struct bucket *b = front_lab_bucket(ctx);

    lab_remove(b, &((struct front_lab *)ctx)->lake.arena, "main/k", STR_EMPTY);
    b->ops->unref(b);
}

FRONT_TEST(lake_front_race, new_metadata_does_not_bring_old_bytes_back)
{
    struct bucket *b = front_lab_bucket(f);
    struct err err = {0};

    lab_put(b, &f->lake.arena, "main/k", STR("old"));
    steps_plan(STEPS_BEFORE, "lake.stage", 1, amend_put_meanwhile, f);
    CHECK_OK(amend_color(f, &err));
    CHECK(steps_happened());
    lab_expect(b, "main/k", STR_EMPTY, STR("newer"));
    CHECK_INT(amend_stat(f).entry.metadata.count, 1);
    b->ops->unref(b);
}

FRONT_TEST(lake_front_race, new_tags_do_not_undo_new_metadata)
{
    struct bucket *b = front_lab_bucket(f);
    struct object_meta meta = {.tags = STR("a=b")};
    struct err err = {0};

    lab_put(b, &f->lake.arena, "main/k", STR("body"));
    steps_plan(STEPS_BEFORE, "lake.stage", 1, amend_meanwhile, f);
    CHECK_OK(b->ops->set_meta(b, &f->lake.arena, STR("main/k"), STR_EMPTY, META_TAGS, &meta, NULL,
                              &err));
    CHECK(steps_happened());
    CHECK_STR(amend_stat(f).entry.tags, STR("a=b"));
    CHECK_INT(amend_stat(f).entry.metadata.count, 1);
    b->ops->unref(b);
}

FRONT_TEST(lake_front_race, an_object_that_is_removed_meanwhile_is_not_amended)
{
    struct bucket *b = front_lab_bucket(f);
    struct err err = {0};

    lab_put(b, &f->lake.arena, "main/k", STR("body"));
    steps_plan(STEPS_BEFORE, "lake.stage", 1, amend_remove_meanwhile, f);
    CHECK_INT(amend_color(f, &err), ERR_NOT_FOUND);
    CHECK(steps_happened());
    lab_expect(b, "main/k", STR_EMPTY, (struct str){0});
    b->ops->unref(b);
}
