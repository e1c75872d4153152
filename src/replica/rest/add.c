/* Adds replications. Any reason that would prevent a replication from working is found before it is
 * added, and the error says what to do. */
#include "room/owners.h"
#include "route/space.h"
#include "object/overlay.h"
#include "object/part_names.h"
#include "replica/rest/rest.h"
#include "object/bucket.h"
#include "replica/first.h"
#include "replica/notice_setup.h"
#include "replica/tap/tap.h"
#include "replica/tasks/tasks.h"
#include "route/remotes.h"
#include "route/resolve.h"
#include "s3/gateway/bucket_name.h"

enum { USER_LATER_S = 60 };

static rest_fn replication_add_call;

static const struct rest_row replication_add_rows[] = {
    {HTTP_POST, "/api/v1/replications", REST_ADMIN,
     "Replicate a bucket to another storage; or, with a user and without a bucket, all buckets "
     "that "
     "the user has or will have.",
     replication_add_call, .status = 201, .needs = replica_needs,
     .body = REST_FIELDS(
         {"bucket", "The bucket; left out: all buckets of the user."},
         {"user", "The user; left out: the owner of the bucket."},
         {"from", "The storage to replicate from; left out: where the bucket's route leads."},
         {"to", "The storage to replicate to.", .required = true, .min = 1},
         {"to_bucket", "The bucket there; left out: one of the same name."},
         {"priority", "Changes of a higher priority are copied sooner.", REST_INTEGER, .min = 0,
          .max = PRIORITY_MAX},
         {"notify", "Make the source report changes that go past weir: the address of this API as "
                    "the source reaches it, or the ARN of a target that the source has."}),
     .answer = REST_FIELDS(REPLICATION_FIELDS,
                           {"buckets", "Of a user's policy: the buckets that the user has now.",
                            REST_OBJECTS, .sometimes = true,
                            .members = REST_FIELDS({"bucket", "The bucket."},
                                                   {"added", "Is it replicated?", REST_BOOLEAN},
                                                   {"error", "Why it is not; empty: it is."})})},
};
const struct rest_table replica_add_routes = {REST_ROWS(replication_add_rows)};

struct adding {
    const struct replica_room *room;
    struct arena *a;
    struct user user;
    struct storage *from, *to;
    struct replication_new n;
};

/* --- reading the request --- */

static int adding_read_user(struct adding *x, struct str name, struct err *err)
{
    const struct owner_of of = {.bucket = x->n.id.bucket, .prefer = x->n.id.from, .routed = true};
    struct str id = STR_EMPTY;
    int code;

    if (!name.len && !x->n.id.bucket.len)
        return err_set(err, ERR_INVALID,
                       "name a bucket, or a user to replicate all of its buckets");
    code = owners_user_id(x->room->services, x->a, name, &of, &id, err);
    if (code == 0)
        code = users_by_id(x->room->services->users, x->a, id, &x->user, err);
    if (code == 0)
        x->n.id.user = x->user.id;
    return code;
}

static int adding_read_to_bucket(struct adding *x, struct err *err)
{
    struct replication_id *id = &x->n.id;
    struct err why = {0};

    if (!id->to_bucket.len)
        return 0;
    if (!id->bucket.len)
        return err_set(err, ERR_INVALID,
                       "to_bucket needs a bucket: all buckets of a user keep their names at the "
                       "destination");
    if (bucket_name_check(id->to_bucket, &why) < 0)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is not a valid bucket name",
                       STR_ARG(id->to_bucket));
    if (str_eq(id->to_bucket, id->bucket))
        id->to_bucket = STR_EMPTY;
    return 0;
}

/* Some services allow bucket names of one letter. The keys of such a bucket in the store would look
 * like keys of something else (docs/replication.md, "Keys"), so it is refused. A shard is refused
 * too, because it is replicated with the bucket that it is a part of. */
static int adding_check_name(struct str bucket, struct err *err)
{
    if (bucket_name_is_part(bucket))
        return err_set(err, ERR_NO_BUCKET, "there is no bucket " STR_FMT, STR_ARG(bucket));
    return bucket.len == 1 ? err_set(err, ERR_INVALID,
                                     "the bucket '" STR_FMT "' cannot be replicated: its name has "
                                     "one letter; copy it to a bucket with a longer name",
                                     STR_ARG(bucket))
                           : 0;
}

/* Checks that source and destination are buckets of storages, not of a space (route/space.h). */
static int adding_check_space(const struct adding *x, struct str bucket, struct err *err)
{
    const struct bucket_space *space = routes_space_of(x->room->services->routes, bucket);

    return bucket.len && space
               ? err_set(err, ERR_INVALID,
                         STR_FMT " is a repository of the %s, which cannot be "
                                 "replicated itself; replicate its storage namespace",
                         STR_ARG(bucket), space->kind)
               : 0;
}

static int adding_read(struct adding *x, const struct rest_call *c, struct err *err)
{
    struct replication_id *id = &x->n.id;

    id->bucket = rest_text(c, "bucket");
    id->from = rest_text(c, "from");
    id->to = rest_text(c, "to");
    id->to_bucket = rest_text(c, "to_bucket");
    x->n.agent_url = rest_text(c, "notify");
    x->n.priority = (int)rest_integer(c, "priority");
    int code = adding_read_to_bucket(x, err);
    if (code == 0)
        code = adding_check_name(id->bucket, err);
    if (code == 0)
        code = adding_check_space(x, id->bucket, err);
    if (code == 0)
        code = adding_check_space(x, id->to_bucket, err);
    if (code == 0 && x->n.agent_url.len)
        code = notice_target_check(x->n.agent_url, err);
    if (code == 0)
        code = adding_read_user(x, rest_text(c, "user"), err);
    return code;
}

/* --- checking that the replication would work --- */

static int adding_no_storage(struct str name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "there is no storage " STR_FMT "; weir storage list shows all storages",
                   STR_ARG(name));
}

/* Checks that the source is the storage to which the bucket's route leads (docs/replication.md,
 * P1). */
static int adding_check_source(struct adding *x, struct err *err)
{
    struct replication_id *id = &x->n.id;
    int code = route_storage(x->room->services->routes, id->user, id->bucket, &x->from, err);

    if (code == ERR_DENIED)
        return err_set(err, ERR_CONFLICT,
                       "bucket " STR_FMT " is blocked where its route leads: it is the destination "
                       "of another replication, or was blocked by weir bucket route --block",
                       STR_ARG(id->bucket));
    if (code < 0)
        return code;
    if (!id->from.len)
        id->from = arena_str(x->a, x->from->name);
    if (!routes_storage(x->room->services->routes, id->from))
        return adding_no_storage(id->from, err);
    if (!str_eq(id->from, x->from->name))
        return err_set(err, ERR_CONFLICT,
                       "the route of %s" STR_FMT " leads to storage " STR_FMT ", not to " STR_FMT
                       "; a replication must begin where clients write",
                       id->bucket.len ? "bucket " : "user ",
                       STR_ARG(id->bucket.len ? id->bucket : x->user.name), STR_ARG(x->from->name),
                       STR_ARG(id->from));
    return 0;
}

static int adding_check_destination(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;

    x->to = routes_storage(x->room->services->routes, id->to);
    if (!x->to)
        return adding_no_storage(id->to, err);
    if (x->to == x->from && !id->to_bucket.len)
        return err_set(err, ERR_INVALID,
                       "source and destination are both storage " STR_FMT
                       "; name another storage, or another bucket (to_bucket)",
                       STR_ARG(id->to));
    return 0;
}

static int adding_check_notify(const struct adding *x, struct err *err)
{
    if (!x->n.agent_url.len)
        return 0;
    if (!x->n.id.bucket.len)
        return err_set(err, ERR_INVALID, "notify needs a bucket");
    if (!storage_can(x->from, STORAGE_NOTIFIES))
        return err_set(err, ERR_INVALID,
                       "storage " STR_FMT
                       " is weir's own: no change goes past weir, so it needs no "
                       "notify",
                       STR_ARG(x->from->name));
    return 0;
}

static int adding_check_keys(struct adding *x, const struct storage *s, struct err *err)
{
    struct remote_entry e = {0};
    int code = storage_can(s, STORAGE_CREDENTIALS)
                   ? services_find_remote(x->room->services, x->a, s->name, &e, err)
                   : 0;

    if (code < 0 || !storage_can(s, STORAGE_CREDENTIALS))
        return code;
    for (size_t i = 0; i < e.user_count; i++)
        if (str_eq(e.users[i], x->user.id))
            return 0;
    return err_set(err, ERR_INVALID,
                   "user " STR_FMT " has no keys on storage " STR_FMT "; weir storage key " STR_FMT
                   " " STR_FMT " --access-key KEY --secret-key SECRET sets them",
                   STR_ARG(x->user.name), STR_ARG(s->name), STR_ARG(s->name),
                   STR_ARG(x->user.name));
}

/* Sets *owner to the bucket's owner; empty: the storage does not say who the owner is.
 * ERR_NO_BUCKET: there is no such bucket. */
static int adding_look(struct adding *x, struct storage *s, struct str name, struct str *owner,
                       struct err *err)
{
    struct bucket_info info = {0};
    struct bucket *b = NULL;
    int code = storage_open_bucket(&b, s, x->user.id, name, err);

    if (code == 0)
        code = b->ops->info(b, x->a, &info, err);
    if (b)
        b->ops->unref(b);
    *owner = info.owner;
    if (code < 0 && code != ERR_NO_BUCKET)
        return err_wrap(err, code,
                        "storage " STR_FMT " cannot be asked for bucket " STR_FMT
                        " with the keys of user " STR_FMT,
                        STR_ARG(s->name), STR_ARG(name), STR_ARG(x->user.name));
    return code;
}

static int adding_check_owner(const struct adding *x, struct str bucket, struct str owner,
                              const struct storage *s, struct err *err)
{
    if (!owner.len || str_eq(owner, x->user.id))
        return 0;
    return err_set(err, ERR_CONFLICT,
                   "bucket " STR_FMT " on storage " STR_FMT
                   " belongs to a user other than " STR_FMT,
                   STR_ARG(bucket), STR_ARG(s->name), STR_ARG(x->user.name));
}

/* Checks that the owner's requests reach the source. They would not reach it if the owner had a
 * bucket of the same name on a local storage, because requests go to that bucket, whatever the
 * policy says (docs/forward.md, rule 2). */
static int adding_check_present(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;
    struct route_ask ask = {.user = id->user, .bucket = id->bucket, .may_wait = true};
    struct target at;
    int code = route_resolve(x->room->services->routes, &ask, &at, err);

    if (code < 0)
        return code;
    if (at.kind == TARGET_NONE)
        code = err_code(err, ERR_NO_BUCKET);
    else if (at.storage != x->from)
        code = err_set(err, ERR_CONFLICT,
                       "the policy leads bucket " STR_FMT " to storage " STR_FMT
                       ", but user " STR_FMT " has a bucket of that name on storage " STR_FMT
                       ", which clients use; choose with weir bucket route " STR_FMT " STORAGE",
                       STR_ARG(id->bucket), STR_ARG(x->from->name), STR_ARG(x->user.name),
                       STR_ARG(at.storage->name), STR_ARG(id->bucket));
    target_release(&at);
    return code;
}

/* Checks that no policy leads another user's requests to the destination, which becomes a copy that
 * no client may use. */
static int adding_check_others(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;
    struct route_policy *list;
    size_t count;
    int code =
        id->to_bucket.len ? 1 : route_list(x->room->services->routes, x->a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (!list[i].blocked && str_eq(list[i].bucket, id->bucket) &&
            str_eq(list[i].storage, id->to) && !str_eq(list[i].user, id->user))
            code = err_set(err, ERR_CONFLICT,
                           "a routing policy leads user " STR_FMT " to bucket " STR_FMT
                           " on storage " STR_FMT ", which is to be a copy; remove it first",
                           STR_ARG(list[i].user), STR_ARG(id->bucket), STR_ARG(id->to));
    return code < 0 ? code : 0;
}

static int adding_check_buckets(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;
    struct str there = id->to_bucket.len ? id->to_bucket : id->bucket, owner;
    int code = adding_look(x, x->from, id->bucket, &owner, err);

    if (code == ERR_NO_BUCKET)
        return err_set(err, ERR_NO_BUCKET,
                       "there is no bucket " STR_FMT " on storage " STR_FMT
                       ", where its route leads; weir bucket show " STR_FMT " shows where it is",
                       STR_ARG(id->bucket), STR_ARG(x->from->name), STR_ARG(id->bucket));
    if (code == 0)
        code = adding_check_owner(x, id->bucket, owner, x->from, err);
    if (code == 0)
        code = adding_check_present(x, err);
    if (code == 0)
        code = adding_check_others(x, err);
    if (code == 0)
        code = adding_look(x, x->to, there, &owner, err);
    if (code == 0)
        return adding_check_owner(x, there, owner, x->to, err);
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* --- adding --- */

static bool is_still_notified(const struct replica_room *room, const struct replication *p)
{
    const struct replication *const *list;
    struct replication_view *view = NULL;
    bool found = false;

    if (replications_view(room->services->replications, &view, NULL) < 0)
        return true;
    size_t count = replication_view_from(view, p->id.from, p->id.bucket, &list);
    for (size_t i = 0; i < count; i++)
        found = found || str_eq(list[i]->agent_url, p->agent_url);
    replication_view_unref(view);
    return found;
}

void replication_end_notices(const struct replica_room *room, const struct replication *p)
{
    struct notice_setup s = {.storage = routes_storage(room->services->routes, p->id.from),
                             .bucket = p->id.bucket,
                             .user = p->id.user,
                             .target = p->agent_url};
    struct err err = {0};

    if (!p->agent_url.len || !storage_can(s.storage, STORAGE_NOTIFIES) ||
        is_still_notified(room, p))
        return;
    if (notice_setup_undo(&s, &err) < 0)
        log_warn(room->services->log, "replication.still_notified", log_s("bucket", p->id.bucket),
                 log_s("storage", p->id.from), log_z("error", err.text));
}

/* Makes the source report changes that bypass weir. This is done before the replication is added,
 * so that each such change is either reported or listed (docs/replication.md, P3). */
static int adding_set_up_notify(struct adding *x, struct err *err)
{
    struct buf token = BUF_INIT(256);
    struct notice_setup s = {
        .storage = x->from, .bucket = x->n.id.bucket, .user = x->user.id, .target = x->n.agent_url};
    int code = 0;

    if (!x->n.agent_url.len)
        return 0;
    remotes_notify_token(x->room->services->remotes, x->from->name, &token);
    s.token = buf_str(&token);
    code = notice_setup(&s, err);
    secure_zero(token.p, token.cap);
    buf_release(&token);
    return code < 0
               ? err_wrap(err, code,
                          "storage " STR_FMT " cannot be made to notify of bucket " STR_FMT
                          " with the keys of user " STR_FMT,
                          STR_ARG(x->from->name), STR_ARG(x->n.id.bucket), STR_ARG(x->user.name))
               : 0;
}

static int adding_add_bucket(struct adding *x, struct err *err)
{
    struct replication made = {.id = x->n.id, .agent_url = x->n.agent_url};
    int code = adding_check_buckets(x, err);

    if (code == 0)
        code = adding_set_up_notify(x, err);
    if (code < 0)
        return code;
    x->n.first = tasks_first(x->a, &x->n.id, x->n.priority);
    code = arena_error(x->a);
    if (code < 0)
        return err_code(err, code);
    code = replication_add(x->room->services->replications, &x->n,
                           routes_main_name(x->room->services->routes), err);
    if (code < 0 && code != ERR_TIMEOUT) /* a timed-out add may have worked */
        replication_end_notices(x->room, &made);
    return code;
}

/* Adds replications for the buckets that the user has. The policy covers buckets that are made
 * later. If a bucket cannot be replicated, the answer says why, and the replications of the other
 * buckets are still added. */
static int adding_add_all(struct adding *x, struct json_out *w, struct err *err)
{
    struct storage *s = x->from;
    struct str after = STR_EMPTY;
    struct bucket_info *list;
    size_t count = OBJECT_LIST_MAX;
    int code = 0;

    while (code == 0 && count == OBJECT_LIST_MAX) {
        code =
            storage_list_buckets(s, x->a, x->user.id, after, OBJECT_LIST_MAX, &list, &count, err);
        for (size_t i = 0; code == 0 && i < count; i++) {
            struct adding one = *x;
            struct err why = {0};
            after = one.n.id.bucket = list[i].name;
            int added = adding_add_bucket(&one, &why);
            if (added == ERR_UNAVAILABLE || added == ERR_NO_MEMORY)
                return err_set(err, added, "%s", why.text);
            json_out_open(w, '{');
            json_out_member_str(w, "bucket", list[i].name);
            json_out_member_bool(w, "added", added == 0);
            json_out_member_str(w, "error", str_z(added < 0 ? why.text : ""));
            json_out_close(w, '}');
        }
    }
    return code;
}

/* Adds the user's policy, and a task. A gateway that does not know the policy yet may make a bucket
 * meanwhile. The task waits until every gateway knows the policy, and then looks for such buckets.
 * The task is queued before the policy is added, so that a crash leaves no bucket out. */
static int adding_add_policy(struct adding *x, struct err *err)
{
    struct task t = first_task_user(x->a, &x->n.id);
    struct queue *q = x->room->services->queue;
    int code = arena_error(x->a);

    code = code < 0 ? err_code(err, code) : queue_add(q, &t, USER_LATER_S, err);
    if (code < 0)
        return code;
    code = replication_add(x->room->services->replications, &x->n,
                           routes_main_name(x->room->services->routes), err);
    if (code == 0)
        (void)!queue_run_now(q, t.queue, t.id, NULL);
    else if (code != ERR_TIMEOUT) /* a timed-out add may have worked */
        (void)!queue_delete(q, t.queue, t.id, NULL);
    return code;
}

static int adding_add(struct adding *x, struct json_out *w, struct err *err)
{
    int code = adding_check_source(x, err);

    if (code == 0)
        code = adding_check_destination(x, err);
    if (code == 0)
        code = adding_check_notify(x, err);
    if (code == 0)
        code = adding_check_keys(x, x->from, err);
    if (code == 0)
        code = adding_check_keys(x, x->to, err);
    if (code == 0)
        code = taps_claim(x->room->taps, x->from, false, err);
    if (code == 0)
        code = taps_claim(x->room->taps, x->to, false, err);
    if (code < 0)
        return code;
    if (x->n.id.bucket.len) {
        code = adding_add_bucket(x, err);
    } else if ((code = adding_add_policy(x, err)) == 0) {
        json_out_key(w, "buckets");
        json_out_open(w, '[');
        code = adding_add_all(x, w, err);
        json_out_close(w, ']');
    }
    /* Reads the routes that the replication has set. If this fails, the routes are read again later
     * by themselves. */
    if (code == 0)
        (void)!routes_reload(x->room->services->routes, NULL);
    return code;
}

static int replication_add_call(struct rest_call *c, struct err *err)
{
    struct adding x = {.room = c->ctx, .a = c->arena};
    int code = adding_read(&x, c, err);

    if (code == 0)
        code = adding_add(&x, c->w, err);
    if (code == 0)
        code = replication_write_one(c->w, c->ctx, c->arena,
                                     &(struct replication){.id = x.n.id,
                                                           .priority = x.n.priority,
                                                           .agent_url = x.n.agent_url},
                                     err);
    if (code == 0)
        log_info(http_request_log(c->req), "replication.added", log_s("user", x.n.id.user),
                 log_s("bucket", x.n.id.bucket), log_s("from", x.n.id.from),
                 log_s("to", x.n.id.to));
    return code;
}
