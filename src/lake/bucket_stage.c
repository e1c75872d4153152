/* Stages the changes that S3 requests make, with their conditions (docs/lake-s3.md, S4) and guards
 * (struct object_guard). If a change is refused, its body is removed. */
#include "lake/amend.h"
#include "lake/body.h"
#include "lake/bucket_int.h"
#include "lake/keep.h"
#include "meta/error.h"
#include "object/condition.h"

static int change_judge_guard(struct bucket_change *c, struct str path,
                              const struct lake_object *present, struct err *err)
{
    struct object_info info;

    if (!present)
        return err_code(err, ERR_NOT_FOUND);
    int code = lake_entry_info(&present->entry, c->a, path, false, &info, err);
    return code < 0 ? code : c->guard->fn(c->guard->ctx, &info, err);
}

static int change_judge_conditions(struct bucket_change *c, bool removes,
                                   const struct lake_object *present, struct err *err)
{
    struct condition_state state = {.there = present != NULL};

    if (present) {
        state.etag = present->entry.etag;
        state.modified_ms = present->entry.modified_ms;
        state.size = present->entry.size;
    }
    if (!removes)
        return conditions_judge_write(c->conditions, &state, err);
    /* Removing an object that is not there succeeds, whatever the conditions are. */
    return present ? conditions_judge_removal(c->conditions, &state, err) : 0;
}

static int change_judge_all(void *ctx, bool removes, struct str path,
                            const struct lake_object *present, struct err *err)
{
    struct bucket_change *c = ctx;
    int code = 0;

    c->is_made = c->own.len && present && str_eq(present->entry.address, c->own);
    if (c->is_made) /* the change was made by an earlier try: see change_stage() */
        return err_code(err, ERR_CONFLICT);
    if (c->guard)
        code = change_judge_guard(c, path, present, err);
    if (code == 0 && c->conditions)
        code = change_judge_conditions(c, removes, present, err);
    c->refused = code;
    return code;
}

static int change_judge_put(void *ctx, struct str path, const struct lake_object *present,
                            struct err *err)
{
    return change_judge_all(ctx, false, path, present, err);
}

static int change_judge_removal(void *ctx, struct str path, const struct lake_object *present,
                                struct err *err)
{
    return change_judge_all(ctx, true, path, present, err);
}

/* Drops empty conditions and an empty guard. Returns whether anything is left to check. */
static bool change_is_judged(struct bucket_change *c)
{
    if (c->conditions && !conditions_given(c->conditions))
        c->conditions = NULL;
    if (c->guard && !c->guard->fn)
        c->guard = NULL;
    return c->conditions || c->guard;
}

/* Stages the entry. `entry` NULL: removes the path. */
static int change_stage(struct bucket_change *c, const struct lake_entry *entry, struct err *err)
{
    struct lake_put put = {c->at.path, entry};
    struct lake_stage_options o = {.ctx = c, .keep = c->keep, .may_be_there = &c->may_be_there};

    if (change_is_judged(c))
        o.judge = entry ? change_judge_put : change_judge_removal;
    int code = lake_stage(c->b->lake, c->a, &c->b->repo, c->at.ref, &put, 1, &o, err);
    return c->is_made ? 0 : code;
}

/* Translates the error of a stage to S3's code. */
static int change_failed(const struct bucket_change *c, int code, struct err *err)
{
    if (code == 0 || c->refused == code)
        return code;
    if (code == ERR_NOT_FOUND) /* the branch or the repository was deleted after it was checked */
        return err_code(err, ERR_NO_BUCKET);
    return lake_bucket_refused(code, err);
}

static int change_done(struct bucket_change *c, const struct lake_entry *entry, int code,
                       struct put_result *out, struct err *err)
{
    if (code < 0)
        return change_failed(c, code, err);
    *out = (struct put_result){
        .etag = entry->etag, .modified_ms = entry->modified_ms, .size = entry->size};
    return 0;
}

int bucket_change_put(struct bucket_change *c, const struct lake_entry *entry,
                      struct put_result *out, struct err *err)
{
    return change_done(c, entry, change_stage(c, entry, err), out, err);
}

int bucket_change_finish(struct bucket_change *c, const struct lake_entry *entry,
                         struct put_result *out, struct err *err)
{
    int code = change_stage(c, entry, err);

    if (lake_body_is_free(code, c->may_be_there))
        lake_body_remove(c->b->lake, c->a, &c->b->repo, entry);
    return change_done(c, entry, code, out, err);
}

/* --- removing --- */

static int change_check_removal(struct bucket_change *c, const struct remove_options *o,
                                struct err *err)
{
    if (lake_bucket_check_version(o->version, err) < 0)
        return err_set(err, S3_NOT_IMPLEMENTED,
                       "A repository has no versions that could be removed one by one");
    return lake_bucket_check_write(c->b, c->a, &c->at, err);
}

int lake_bucket_remove(struct bucket *bucket, struct arena *a, struct str key,
                       const struct remove_options *o, struct remove_result *out, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct bucket_change c = {.b = b,
                              .a = a,
                              .at = lake_bucket_at(b, key),
                              .conditions = &o->conditions,
                              .guard = &o->guard};

    *out = (struct remove_result){0};
    /* Spark removes the "folder" of a branch. No object has that name, so there is nothing to
     * remove. */
    if (c.at.path.len == 0 && b->ref.len == 0)
        return 0;
    int code = change_check_removal(&c, o, err);
    return code < 0 ? code : change_failed(&c, change_stage(&c, NULL, err), err);
}

/* --- tags --- */

/* The tags that an object gets, and the conditions of the change. */
struct tag_change {
    struct bucket_change c;
    struct str tags;
};

static int tag_change_set(void *ctx, struct lake_entry *e, struct err *err)
{
    e->tags = ((struct tag_change *)ctx)->tags;
    return 0;
}

static int tag_change_judge(void *ctx, struct str path, const struct lake_object *present,
                            struct err *err)
{
    return change_judge_all(&((struct tag_change *)ctx)->c, false, path, present, err);
}

int lake_bucket_set_meta(struct bucket *bucket, struct arena *a, struct str key, struct str version,
                         enum meta_set set, const struct object_meta *meta,
                         const struct meta_options *o, struct err *err)
{
    struct lake_bucket *b = lake_bucket_of(bucket);
    struct tag_change t = {
        .c = {.b = b, .a = a, .at = lake_bucket_at(b, key), .guard = o ? &o->guard : NULL},
        .tags = meta->tags};
    struct lake_amendment m = {.change = tag_change_set, .ctx = &t};
    int code = lake_bucket_check_version(version, err);

    if (code == 0 && set != META_TAGS)
        code = err_set(err, S3_NOT_IMPLEMENTED,
                       "Of an object in a repository only the tags can be changed");
    if (code == 0)
        code = lake_bucket_check_write(b, a, &t.c.at, err);
    if (code < 0)
        return code;
    if (change_is_judged(&t.c))
        m.judge = tag_change_judge;
    code = lake_amend(b->lake, a, &b->repo, t.c.at.ref, t.c.at.path, &m, err);
    return code == ERR_NOT_FOUND ? code : change_failed(&t.c, code, err);
}
