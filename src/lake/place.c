/* Places of the lake's objects in ordinary buckets. Before an object there is changed, the change
 * is announced to replication (docs/lake-s3.md, S6). */
#include "lake/place.h"
#include "lake/claim.h"
#include "lake/lake_int.h"
#include "lake/names.h"
#include "lake/right.h"

static struct place_env place_env_of(struct lake *l)
{
    return (struct place_env){.routes = l->o.routes,
                              .sides = l->o.sides,
                              .capture = l->o.capture,
                              .keys = l->o.keys,
                              .users = l->o.users};
}

int lake_place_open(struct object_place *out, struct lake *l, struct arena *a, struct str user,
                    struct str bucket, struct str key, enum place_use use, struct err *err)
{
    struct place_env env = place_env_of(l);

    return object_place_open(out, &env, a, (struct place_name){user, bucket, key}, use, err);
}

/* A namespace, split into its parts. */
struct place_space {
    struct lake *lake;
    const struct lake_repo *repo;
    struct str begin; /* the prefix that all of its keys have */
};

/* Joins the prefix of a namespace and a key below it. Each read of an object does this, so it is
 * done without a format. */
static struct str place_key_below(struct arena *a, struct str prefix, struct str key)
{
    size_t len = prefix.len + 1 + key.len;
    char *all = arena_alloc(a, len + 1);

    if (!all)
        return STR_EMPTY;
    memcpy(all, prefix.p, prefix.len);
    all[prefix.len] = '/';
    if (key.len)
        memcpy(all + prefix.len + 1, key.p, key.len);
    return str_n(all, len);
}

static int place_judge(void *ctx, const struct object_place *p, struct err *err)
{
    const struct place_space *s = ctx;

    return lake_right_check_space(p, s->lake, s->repo, s->begin, err);
}

int lake_place_open_below(struct object_place *out, struct lake *l, struct arena *a,
                          const struct lake_repo *r, struct str key, enum place_use use,
                          struct err *err)
{
    struct place_space space = {.lake = l, .repo = r};
    struct place_env env = place_env_of(l);
    struct str bucket, prefix;
    int code = lake_check_space(r->space, &bucket, &prefix, err);

    env.judge = place_judge;
    env.judge_ctx = &space;
    if (code == 0 && prefix.len) {
        key = place_key_below(a, prefix, key);
        space.begin = str_head(key, prefix.len + 1);
    }
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    if (code == 0 && use == PLACE_PUT)
        code = lake_claim_may_write(l, r, err);
    if (code == 0)
        code =
            object_place_open(out, &env, a, (struct place_name){r->owner, bucket, key}, use, err);
    /* The repository exists, so its bucket should exist, too. ERR_NO_BUCKET is changed to another
     * code here, because callers would understand it as a missing repository. */
    return code == ERR_NO_BUCKET
               ? err_set(err, ERR_UNAVAILABLE,
                         "the bucket " STR_FMT " of the repository's namespace is not there",
                         STR_ARG(bucket))
               : code;
}
