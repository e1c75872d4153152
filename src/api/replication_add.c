/* Making a replication: everything that would keep it from working is found before it is made, and
 * told together with what to do. */
#include "api/owners.h"
#include "object/overlay.h"
#include "api/replications.h"
#include "object/bucket.h"
#include "replica/first.h"
#include "replica/notice_setup.h"
#include "replica/tap/tap.h"
#include "replica/tasks/tasks.h"
#include "route/resolve.h"
#include "s3/gateway/bucket_name.h"

enum { USER_LATER_S = 60 };

struct adding {
    struct api *api;
    struct arena *a;
    struct user user;
    struct storage *from, *to;
    struct replication_new n;
};

/* --- what was asked for --- */

static int read_user(struct adding *x, struct str name, struct err *err)
{
    const struct owner_of of = {.bucket = x->n.id.bucket, .prefer = x->n.id.from, .routed = true};
    struct str id = STR_EMPTY;
    int code;

    if (!name.len && !x->n.id.bucket.len)
        return err_set(err, ERR_INVALID, "name a bucket, or the user whose buckets are meant");
    code = api_user_id(x->api, x->a, name, &of, &id, err);
    if (code == 0)
        code = users_by_id(x->api->o.users, x->a, id, &x->user, err);
    if (code == 0)
        x->n.id.user = x->user.id;
    return code;
}

static int read_to_bucket(struct adding *x, struct err *err)
{
    struct replication_id *id = &x->n.id;
    struct err why = {0};

    if (!id->to_bucket.len)
        return 0;
    if (!id->bucket.len)
        return err_set(err, ERR_INVALID,
                       "all buckets of a user keep their names at the destination: to_bucket goes "
                       "with one bucket alone");
    if (bucket_name_check(id->to_bucket, &why) < 0)
        return err_set(err, ERR_INVALID, "'" STR_FMT "' is no name for a bucket",
                       STR_ARG(id->to_bucket));
    if (str_eq(id->to_bucket, id->bucket))
        id->to_bucket = STR_EMPTY;
    return 0;
}

static int read_priority(const json_t *object, int *out, struct err *err)
{
    const json_t *value = json_object_get(object, "priority");

    *out = (int)json_get_i64(object, "priority", 0);
    if (value && (!json_is_integer(value) || json_integer_value(value) < 0 ||
                  json_integer_value(value) > PRIORITY_MAX))
        return err_set(err, ERR_INVALID, "priority is a number from 0 to %d", PRIORITY_MAX);
    return 0;
}

/* Strings are copied: the object goes before the arena. */
static int read_wanted(struct adding *x, const json_t *object, struct err *err)
{
    static const char *const strings[] = {"user",      "bucket", "from", "to",
                                          "to_bucket", "notify", NULL};
    struct replication_id *id = &x->n.id;
    int code = api_check_strings(object, strings, err);

    if (code < 0)
        return code;
    id->bucket = arena_str(x->a, json_get_str(object, "bucket", STR_EMPTY));
    id->from = arena_str(x->a, json_get_str(object, "from", STR_EMPTY));
    id->to = arena_str(x->a, json_get_str(object, "to", STR_EMPTY));
    id->to_bucket = arena_str(x->a, json_get_str(object, "to_bucket", STR_EMPTY));
    x->n.agent_url = arena_str(x->a, json_get_str(object, "notify", STR_EMPTY));
    code = read_to_bucket(x, err);
    if (code == 0 && x->n.agent_url.len)
        code = notice_target_check(x->n.agent_url, err);
    if (code == 0)
        code = read_priority(object, &x->n.priority, err);
    if (code == 0)
        code = read_user(x, json_get_str(object, "user", STR_EMPTY), err);
    return code;
}

/* --- whether it would work --- */

static int no_storage(struct str name, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "there is no storage " STR_FMT "; weir storage list shows those that there are",
                   STR_ARG(name));
}

/* P1: the source is where the route leads. */
static int check_source(struct adding *x, struct err *err)
{
    struct replication_id *id = &x->n.id;
    int code = route_storage(x->api->o.routes, id->user, id->bucket, &x->from, err);

    if (code == ERR_DENIED)
        return err_set(err, ERR_CONFLICT,
                       "bucket " STR_FMT " is blocked where its route leads: it is the destination "
                       "of another replication, or weir bucket route --block did it",
                       STR_ARG(id->bucket));
    if (code < 0)
        return code;
    if (!id->from.len)
        id->from = arena_str(x->a, x->from->name);
    if (!routes_storage(x->api->o.routes, id->from))
        return no_storage(id->from, err);
    if (!str_eq(id->from, x->from->name))
        return err_set(err, ERR_CONFLICT,
                       "the route of %s" STR_FMT " leads to storage " STR_FMT ", not to " STR_FMT
                       ": a replication begins where clients write",
                       id->bucket.len ? "bucket " : "user ",
                       STR_ARG(id->bucket.len ? id->bucket : x->user.name), STR_ARG(x->from->name),
                       STR_ARG(id->from));
    return 0;
}

static int check_destination(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;

    if (!id->to.len)
        return err_set(err, ERR_INVALID, "name the storage to replicate to");
    x->to = routes_storage(x->api->o.routes, id->to);
    if (!x->to)
        return no_storage(id->to, err);
    if (x->to == x->from && !id->to_bucket.len)
        return err_set(err, ERR_INVALID,
                       "source and destination are both storage " STR_FMT
                       ": name another storage, or another bucket (to_bucket)",
                       STR_ARG(id->to));
    return 0;
}

static int check_notify(const struct adding *x, struct err *err)
{
    if (!x->n.agent_url.len)
        return 0;
    if (!x->n.id.bucket.len)
        return err_set(err, ERR_INVALID, "notify goes with one bucket alone");
    if (!storage_can(x->from, STORAGE_NOTIFIES))
        return err_set(err, ERR_INVALID,
                       "storage " STR_FMT " is weir's own: no change of it goes past weir, and it "
                       "need not notify",
                       STR_ARG(x->from->name));
    return 0;
}

static int check_credentials(struct adding *x, const struct storage *s, struct err *err)
{
    struct remote_entry e = {0};
    int code =
        storage_can(s, STORAGE_CREDENTIALS) ? api_find_remote(x->api, x->a, s->name, &e, err) : 0;

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

/* ERR_NO_BUCKET; *owner is empty where the storage does not say. */
static int look(struct adding *x, struct storage *s, struct str name, struct str *owner,
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

static int check_owner(const struct adding *x, struct str bucket, struct str owner,
                       const struct storage *s, struct err *err)
{
    if (!owner.len || str_eq(owner, x->user.id))
        return 0;
    return err_set(err, ERR_CONFLICT,
                   "bucket " STR_FMT " on storage " STR_FMT
                   " belongs to another user than " STR_FMT,
                   STR_ARG(bucket), STR_ARG(s->name), STR_ARG(x->user.name));
}

/* The owner's requests go to the source by now. A bucket that the owner has on a local storage may
 * stand before the policy (docs/forward.md, rule 2). */
static int check_present(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;
    struct route_ask ask = {.user = id->user, .bucket = id->bucket, .may_wait = true};
    struct target at;
    int code = route_resolve(x->api->o.routes, &ask, &at, err);

    if (code < 0)
        return code;
    if (at.kind == TARGET_NONE)
        code = err_code(err, ERR_NO_BUCKET);
    else if (at.storage != x->from)
        code = err_set(err, ERR_CONFLICT,
                       "the policy leads bucket " STR_FMT " to storage " STR_FMT
                       ", but user " STR_FMT " has one of that name on storage " STR_FMT
                       ", which clients use; weir bucket route " STR_FMT " STORAGE decides",
                       STR_ARG(id->bucket), STR_ARG(x->from->name), STR_ARG(x->user.name),
                       STR_ARG(at.storage->name), STR_ARG(id->bucket));
    target_release(&at);
    return code;
}

/* Nobody else is led to the destination by a policy for this bucket: it becomes a copy. */
static int check_others(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;
    struct route_policy *list;
    size_t count;
    int code = id->to_bucket.len ? 1 : route_list(x->api->o.routes, x->a, &list, &count, err);

    for (size_t i = 0; code == 0 && i < count; i++)
        if (!list[i].blocked && str_eq(list[i].bucket, id->bucket) &&
            str_eq(list[i].storage, id->to) && !str_eq(list[i].user, id->user))
            code = err_set(err, ERR_CONFLICT,
                           "a routing policy leads user " STR_FMT " to bucket " STR_FMT
                           " on storage " STR_FMT ", which is to be a copy; remove it first",
                           STR_ARG(list[i].user), STR_ARG(id->bucket), STR_ARG(id->to));
    return code < 0 ? code : 0;
}

static int check_buckets(struct adding *x, struct err *err)
{
    const struct replication_id *id = &x->n.id;
    struct str there = id->to_bucket.len ? id->to_bucket : id->bucket, owner;
    int code = look(x, x->from, id->bucket, &owner, err);

    if (code == ERR_NO_BUCKET)
        return err_set(err, ERR_NO_BUCKET,
                       "there is no bucket " STR_FMT " on storage " STR_FMT
                       ", where its route leads; weir bucket show " STR_FMT " tells where it is",
                       STR_ARG(id->bucket), STR_ARG(x->from->name), STR_ARG(id->bucket));
    if (code == 0)
        code = check_owner(x, id->bucket, owner, x->from, err);
    if (code == 0)
        code = check_present(x, err);
    if (code == 0)
        code = check_others(x, err);
    if (code == 0)
        code = look(x, x->to, there, &owner, err);
    if (code == 0)
        return check_owner(x, there, owner, x->to, err);
    return code == ERR_NO_BUCKET ? 0 : code;
}

/* --- adding --- */

static bool is_told_of(struct api *api, const struct replication *p)
{
    const struct replication *const *list;
    struct replication_view *view = NULL;
    bool found = false;

    if (replications_view(api->o.replications, &view, NULL) < 0)
        return true;
    size_t count = replication_view_from(view, p->id.from, p->id.bucket, &list);
    for (size_t i = 0; i < count; i++)
        found = found || str_eq(list[i]->agent_url, p->agent_url);
    replication_view_unref(view);
    return found;
}

void api_notify_undo(struct api *api, const struct replication *p)
{
    struct notice_setup s = {.storage = routes_storage(api->o.routes, p->id.from),
                             .bucket = p->id.bucket,
                             .user = p->id.user,
                             .target = p->agent_url};
    struct err err = {0};

    if (!p->agent_url.len || !storage_can(s.storage, STORAGE_NOTIFIES) || is_told_of(api, p))
        return;
    if (notice_setup_undo(&s, &err) < 0)
        log_warn(api->o.log, "replication.still_notified", log_s("bucket", p->id.bucket),
                 log_s("storage", p->id.from), log_z("error", err.text));
}

/* Before the replication is there, so that what goes past weir is told of or listed (P3). */
static int set_up_notify(struct adding *x, struct err *err)
{
    struct buf token = BUF_INIT(256);
    struct notice_setup s = {
        .storage = x->from, .bucket = x->n.id.bucket, .user = x->user.id, .target = x->n.agent_url};
    int code = 0;

    if (!x->n.agent_url.len)
        return 0;
    remotes_notify_token(x->api->o.remotes, x->from->name, &token);
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

static int add_bucket(struct adding *x, struct err *err)
{
    struct replication made = {.id = x->n.id, .agent_url = x->n.agent_url};
    int code = check_buckets(x, err);

    if (code == 0)
        code = set_up_notify(x, err);
    if (code < 0)
        return code;
    x->n.first = tasks_first(x->a, &x->n.id, x->n.priority);
    code = arena_error(x->a);
    if (code < 0)
        return err_code(err, code);
    code = replication_add(x->api->o.replications, &x->n, routes_main_name(x->api->o.routes), err);
    if (code < 0 && code != ERR_TIMEOUT) /* then it may be there */
        api_notify_undo(x->api, &made);
    return code;
}

/* Those that the user has already; new ones follow by the policy. What one cannot be replicated for
 * is told, and hinders no other. */
static int add_all(struct adding *x, struct json_out *w, struct err *err)
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
            int added = add_bucket(&one, &why);
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

/* A bucket that somebody makes who does not know the policy yet is found by a task, which waits for
 * all to know it. It is queued before, so that a crash leaves no bucket out, and runs at once
 * afterwards. */
static int add_policy(struct adding *x, struct err *err)
{
    struct task t = first_task_user(x->a, &x->n.id);
    struct queue *q = x->api->o.queue;
    int code = arena_error(x->a);

    code = code < 0 ? err_code(err, code) : queue_add(q, &t, USER_LATER_S, err);
    if (code < 0)
        return code;
    code = replication_add(x->api->o.replications, &x->n, routes_main_name(x->api->o.routes), err);
    if (code == 0)
        (void)!queue_run_now(q, t.queue, t.id, NULL);
    else if (code != ERR_TIMEOUT) /* then it may be there */
        (void)!queue_delete(q, t.queue, t.id, NULL);
    return code;
}

static int add(struct adding *x, struct json_out *w, struct err *err)
{
    int code = check_source(x, err);

    if (code == 0)
        code = check_destination(x, err);
    if (code == 0)
        code = check_notify(x, err);
    if (code == 0)
        code = check_credentials(x, x->from, err);
    if (code == 0)
        code = check_credentials(x, x->to, err);
    if (code == 0)
        code = taps_claim(x->api->taps, x->from, false, err);
    if (code == 0)
        code = taps_claim(x->api->taps, x->to, false, err);
    if (code < 0)
        return code;
    if (x->n.id.bucket.len) {
        code = add_bucket(x, err);
    } else if ((code = add_policy(x, err)) == 0) {
        json_out_key(w, "buckets");
        json_out_open(w, '[');
        code = add_all(x, w, err);
        json_out_close(w, ']');
    }
    if (code == 0) /* the routes that came with it; a load that fails is tried again by itself */
        (void)!routes_reload(x->api->o.routes, NULL);
    return code;
}

int api_post_replication(struct http_request *req, const struct route_params *params, void *ctx)
{
    struct adding x = {.api = ctx, .a = http_request_arena(req)};
    struct api_json j;
    struct err err = {0};
    json_t *object = NULL;
    int code;

    (void)params;
    if (!api_read_json(req, &object, &code))
        return code;
    code = api_replications_on(ctx, &err);
    if (code == 0)
        code = read_wanted(&x, object, &err);
    json_decref(object);
    api_json_begin(&j);
    if (code == 0)
        code = add(&x, &j.w, &err);
    if (code == 0)
        code =
            api_write_one(&j.w, ctx, x.a,
                          &(struct replication){
                              .id = x.n.id, .priority = x.n.priority, .agent_url = x.n.agent_url},
                          &err);
    if (code < 0) {
        api_json_drop(&j);
        return api_send_failure(req, code, &err);
    }
    log_info(http_request_log(req), "replication.added", log_s("user", x.n.id.user),
             log_s("bucket", x.n.id.bucket), log_s("from", x.n.id.from), log_s("to", x.n.id.to));
    return api_json_send(req, 201, &j);
}
