/* Gives existing buckets the replications that a user's policy asks for. For a new policy these are
 * all buckets of the user. It may also be one bucket that was deleted, which ended its replication,
 * and then made again (docs/replication.md, P7). */
#include "replica/first.h"
#include "object/overlay.h"
#include "replica/tap/tap_int.h"

enum {
    KNOWN_S = 1,
    /* Seconds until a task is tried again when this worker does not have the storage. */
    ELSEWHERE_S = 2,
};

static int user_task_read(struct replication_id *out, const json_t *payload, struct err *err)
{
    *out = (struct replication_id){
        .user = json_get_str(payload, "User", STR_EMPTY),
        .from = json_get_str(payload, "FromStorage", STR_EMPTY),
        .to = json_get_str(payload, "ToStorage", STR_EMPTY),
    };
    return out->user.len && out->from.len && out->to.len
               ? 0
               : err_set(err, ERR_INVALID, "the task names no policy");
}

/* Sets *found to whether the policy still exists. The view is new enough to tell, because every
 * process knows the policy by now, including this one. */
static int find_policy(struct taps *t, const struct replication_id *id, bool *found,
                       struct err *err)
{
    const struct replication *const *all;
    struct replication_view *view = NULL;
    int code = replications_view(t->o.replications, &view, err);

    *found = false;
    for (size_t i = 0, n = code < 0 ? 0 : replication_view_user(view, id->user, id->from, &all);
         i < n; i++)
        *found |= str_eq(all[i]->id.to, id->to);
    replication_view_unref(view);
    return code;
}

static int replicate_one(struct taps *t, struct task_run *run, const struct replication_id *id,
                         struct storage *s, struct err *err)
{
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, id->user, id->bucket, err);

    if (code == 0)
        code = b->ops->info(b, run->arena, &info, err);
    if (b)
        b->ops->unref(b);
    if (code == ERR_NO_BUCKET || (code == 0 && info.owner.len && !str_eq(info.owner, id->user)))
        return 0;
    return code < 0 ? code : changes_new_bucket(t, run->arena, id->from, id->bucket, id->user, err);
}

static int replicate_all(struct taps *t, struct task_run *run, const struct replication_id *id,
                         struct storage *s, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct str after = STR_EMPTY;
    struct bucket_info *list;
    size_t count = OBJECT_LIST_MAX;
    int code = 0;

    while (code == 0 && count == OBJECT_LIST_MAX) {
        code = storage_list_buckets(s, &a, id->user, after, OBJECT_LIST_MAX, &list, &count, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            after = list[i].name;
            code = task_ended(run)
                       ? err_set(err, ERR_SHUTDOWN, "broken off")
                       : changes_new_bucket(t, run->arena, id->from, after, id->user, err);
        }
    }
    arena_release(&a);
    return code;
}

static int user_task_replicate(struct taps *t, struct task_run *run,
                               const struct replication_id *id, struct err *err)
{
    struct storage *s = routes_storage(t->o.routes, id->from);

    if (!s || !taps_owns(t, s)) {
        run->put_back_s = ELSEWHERE_S;
        return err_set(err, ERR_AGAIN, "there is no storage " STR_FMT " here", STR_ARG(id->from));
    }
    return id->bucket.len ? replicate_one(t, run, id, s, err) : replicate_all(t, run, id, s, err);
}

int taps_user_run(struct task_run *run, struct err *err)
{
    struct taps *t = run->ctx;
    struct replication_id id;
    json_t *payload = NULL;
    bool known = false, found = false;
    int code = json_read(&payload, run->task->payload, err);

    if (code == 0)
        code = user_task_read(&id, payload, err);
    struct str bucket = json_get_str(payload, "Bucket", STR_EMPTY);
    uint64_t contact = lease_contact(t->o.lease);
    if (code == 0)
        code = replication_is_known(t->o.replications, &id, &known, err);
    if (code == 0 && (!known || !contact || lease_contact(t->o.lease) != contact)) {
        run->put_back_s = KNOWN_S;
        code = err_set(err, ERR_AGAIN, "not every gateway knows the policy yet");
    }
    if (code == 0)
        code = find_policy(t, &id, &found, err);
    if (code == 0 && found)
        code = user_task_replicate(t, run,
                                   &(struct replication_id){id.user, bucket, id.from, id.to}, err);
    json_decref(payload);
    return code;
}
