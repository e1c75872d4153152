/* Changes the policies. One script checks whether a replication or a switch relies on the present
 * policies, and makes the change. Then all policies are loaded again. */
#include "route/route_int.h"

#include "object/part_names.h"

#include <pthread.h>

extern const char lua_route_change[], lua_route_pin[];

enum { CHANGE, PIN };

static const struct script_row rows[] = {
    [CHANGE] = {"route_change", lua_route_change, 0},
    [PIN] = {"route_pin", lua_route_pin, 0},
};

static struct script scripts[ARRAY_SIZE(rows)];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void scripts_of_routes_init(void)
{
    scripts_init(scripts, rows, ARRAY_SIZE(rows));
}

/* --- refusals --- */

static int change_refuse(const struct reply *reply, struct err *err)
{
    struct str why = reply->items[0].str, bucket = reply->items[1].str;
    struct str storage = reply->items[2].str;

    if (str_eq(why, STR("switch")))
        return err_set(err, ERR_CONFLICT,
                       "bucket " STR_FMT " has a switch under way, which changes its route; end it "
                       "or give it up first",
                       STR_ARG(bucket));
    if (str_eq(why, STR("copies")))
        return err_set(err, ERR_CONFLICT,
                       "bucket " STR_FMT " has a copy on storage " STR_FMT
                       ", and without its policy clients could be led there: the policy stays as "
                       "long as the copy does",
                       STR_ARG(bucket), STR_ARG(storage));
    if (str_eq(why, STR("destination")))
        return err_set(err, ERR_CONFLICT,
                       "bucket " STR_FMT " on storage " STR_FMT " is the destination of a "
                       "replication; remove that first",
                       STR_ARG(bucket), STR_ARG(storage));
    return err_set(err, ERR_CONFLICT,
                   "%s" STR_FMT " is replicated from storage " STR_FMT ", and what is written "
                   "elsewhere would not be; switch, or remove the replication first",
                   bucket.len ? "bucket " : "what the user has", STR_ARG(bucket), STR_ARG(storage));
}

static int change_read_answer(const struct reply *reply, struct err *err)
{
    int code = reply_expect(reply, REPLY_ARRAY, err);

    if (code < 0)
        return code;
    if (reply->count == 1)
        return 0;
    return reply->count == 3 ? change_refuse(reply, err)
                             : err_set(err, ERR_TYPE, "the store answered no change of a route");
}

/* --- changing --- */

int routes_change(struct store *config, struct store_args args, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;

    pthread_once(&once, scripts_of_routes_init);
    struct script_run run = {.script = &scripts[CHANGE], .args = args};
    int code = script_eval(config, &arena, &reply, &run, err);
    if (code == 0)
        code = change_read_answer(reply, err);
    arena_release(&arena);
    return code;
}

int routes_pin(struct store *config, struct err *err)
{
    struct arena arena = {0};
    struct reply *reply;

    pthread_once(&once, scripts_of_routes_init);
    int code =
        script_eval(config, &arena, &reply, &(struct script_run){.script = &scripts[PIN]}, err);
    if (code == 0)
        code = reply_expect(reply, REPLY_INTEGER, err);
    arena_release(&arena);
    return code;
}

static struct str escaped(struct buf *out, struct str part)
{
    store_key_part(out, part);
    return buf_str(out);
}

static int need_storage(struct routes *r, struct str name, struct err *err)
{
    return routes_storage(r, name)
               ? 0
               : err_set(err, ERR_NOT_FOUND, "there is no storage " STR_FMT, STR_ARG(name));
}

/* Checks that a policy may lead to the storage. `at` is the local storage that has the user's
 * bucket of this name, or NULL. A policy that leads to a remote storage would hide that bucket. */
static int policy_check_target(struct routes *r, struct str storage, struct storage *at,
                               struct err *err)
{
    struct storage *target = routes_storage(r, storage);

    if (!target)
        return need_storage(r, storage, err);
    if (at && storage_can(target, STORAGE_FORWARDS))
        return err_set(err, ERR_CONFLICT,
                       "the bucket is on storage " STR_FMT ", and a policy does not move it",
                       STR_ARG(at->name));
    return 0;
}

/* Refuses the name of a shard, a part of a sharded bucket (docs/sharding.md). The map of its bucket
 * says where a shard is, and no policy may lead elsewhere. */
static int policy_check_name(struct str bucket, struct err *err)
{
    return bucket_name_is_part(bucket)
               ? err_set(err, ERR_INVALID, "the name " STR_FMT " is reserved for sharding",
                         STR_ARG(bucket))
               : 0;
}

int route_set(struct routes *r, struct str user, struct str bucket, struct str storage,
              struct err *err)
{
    struct storage *at, *otherwise = routes_main(r);
    struct buf user_part = {0}, bucket_part = {0};
    struct routes_view *view;
    int code;

    if (user.len == 0)
        return err_set(err, ERR_INVALID, "a routing policy needs a user");
    code = policy_check_name(bucket, err);
    if (code < 0)
        return code;
    code = routes_view_get(r, &view, err);
    if (code < 0)
        return code;
    at = bucket.len ? routes_local_of(r, view, bucket, user) : NULL;
    routes_view_put(r, view);
    if (storage.len)
        code = policy_check_target(r, storage, at, err);
    if (code < 0)
        return code;
    otherwise = at ? at : otherwise;
    const struct str args[] = {STR("route"), escaped(&user_part, user),
                               escaped(&bucket_part, bucket), storage,
                               otherwise ? otherwise->name : STR_EMPTY};
    code = routes_change(r->store, (struct store_args){args, ARRAY_SIZE(args)}, err);
    buf_release(&user_part);
    buf_release(&bucket_part);
    return code < 0 ? code : routes_load(r, err);
}

static int change_block(struct routes *r, struct str how, struct str storage, struct str bucket,
                        struct err *err)
{
    struct buf storage_part = {0}, bucket_part = {0};
    const struct str args[] = {how, escaped(&storage_part, storage), escaped(&bucket_part, bucket),
                               bucket};
    int code = routes_change(r->store, (struct store_args){args, ARRAY_SIZE(args)}, err);

    buf_release(&storage_part);
    buf_release(&bucket_part);
    return code;
}

int route_block(struct routes *r, struct str storage, struct str bucket, bool blocked,
                struct err *err)
{
    int code = need_storage(r, storage, err);

    if (code == 0 && bucket.len == 0)
        code = err_set(err, ERR_INVALID, "a block needs the name of a bucket");
    if (code == 0)
        code = policy_check_name(bucket, err);
    if (code == 0)
        code = change_block(r, blocked ? STR("block") : STR("unblock"), storage, bucket, err);
    return code < 0 ? code : routes_load(r, err);
}
