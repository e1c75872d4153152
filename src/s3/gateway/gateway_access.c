/* Decides about access, from the bucket's facts and the request. */
#include "s3/gateway/gateway_int.h"

/* Does the request fulfil "requester pays"? In a bucket whose requesters pay, anonymous requests
 * are refused, and so are requests that do not declare that the user pays. weir charges nobody, but
 * a client that works here also works on S3. */
static bool pays(struct call *c, const struct call_target *t)
{
    struct str said = http_header(c->head, "x-amz-request-payer");

    if (!t->requester_pays || str_eq(c->user_id, t->info.owner))
        return true;
    if (!said.len) /* a presigned address has the declaration in the query */
        said = call_param(c, "x-amz-request-payer");
    if (!c->user || !str_ieq(said, STR("requester")))
        return false;
    c->charged = true;
    return true;
}

static struct access_request access_request_of(struct call *c, const struct call_target *t,
                                               enum s3_action action, struct str key)
{
    struct access_request r = {
        .ask = {.action = action,
                .bucket = t->info.name,
                .key = s3_actions[action].on == S3_ON_OBJECT ? key : STR_EMPTY,
                .value = call_condition_value,
                .ctx = c,
                .arena = c->a},
        .bucket_owner = t->info.owner,
        .policy = t->policy,
        .policy_binds_owner = t->policy_binds_owner,
        .bucket_acl = t->acl,
        .block = t->block,
        .ownership = t->ownership,
    };

    c->judged = t;
    if (c->user)
        r.ask.who = (struct policy_who){.id = c->user->id, .name = c->user->name};
    return r;
}

enum s3_action call_action(const struct call *c)
{
    const struct s3_operation_row *row = &s3_operations[c->op->id];

    return c->version.len ? row->version_action : row->action;
}

bool call_may(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object)
{
    struct access_request r = access_request_of(c, t, action, key);
    struct err ignored = {0};
    struct acl acl = {0};

    if (target_is_foreign(&t->at) || (c->user && c->user->admin))
        return true;
    if (!pays(c, t))
        return false;
    c->object = object;
    if (object) {
        r.object_owner = object->meta.owner;
        int code = ERR_NOT_FOUND;
        if (object->meta.acl.len)
            code = acl_decode(&acl, c->a, object->meta.acl, &ignored);
        else if (object->meta.owner.len)
            code = acl_canned(&acl, c->a, STR("private"),
                              &(struct acl_subject){object->meta.owner, t->info.owner}, &ignored);
        if (code == 0)
            r.object_acl = &acl;
    }
    bool allowed = access_allowed(&r);
    if (allowed && t->logging.len &&
        !c->acl_required) { /* the access log says whether an access list was needed */
        r.bucket_acl = r.object_acl = NULL;
        c->acl_required = !access_allowed(&r);
    }
    c->object = NULL;
    return allowed;
}

bool call_may_ever(struct call *c, struct call_target *t, enum s3_action action)
{
    struct access_request r = access_request_of(c, t, action, STR_EMPTY);

    return target_is_foreign(&t->at) || (c->user && c->user->admin) ||
           (pays(c, t) && access_possible(&r));
}

bool call_anyone_may(struct call *c, enum s3_action action, const struct object_info *object)
{
    const struct user *user = c->user;
    enum auth_kind kind = c->auth.kind;
    bool acl_required = c->acl_required;

    call_be(c, NULL);
    c->auth.kind = AUTH_ANONYMOUS;
    bool may = call_may(c, &c->target, action, c->key, object);
    call_be(c, user);
    c->auth.kind = kind;
    c->acl_required = acl_required;
    return may;
}

int call_need(struct call *c, struct call_target *t, enum s3_action action, struct str key,
              const struct object_info *object, struct err *err)
{
    return call_may(c, t, action, key, object) ? 0 : s3_fail(err, S3_ACCESS_DENIED);
}

/* Checks that the user may set something that comes with a new object, such as tags. Users to
 * whom the bucket's access list gives the right to write own what they write. They need no further
 * right for the tags, but the policy may deny the action. */
static int need_with_write(struct call *c, enum s3_action action, struct err *err)
{
    struct call_target *t = &c->target;
    struct access_request r = access_request_of(c, t, action, c->key);
    bool by_list = t->acl && t->ownership != OWNERSHIP_BUCKET_OWNER_ENFORCED &&
                   acl_allows(t->acl, c->user_id, ACL_WRITE, t->block.ignore_acls);

    return by_list && !access_denied(&r) ? 0 : call_need(c, t, action, c->key, NULL, err);
}

int call_need_tagging(struct call *c, struct err *err)
{
    return need_with_write(c, S3_ACTION_PUT_OBJECT_TAGGING, err);
}

int call_need_acl(struct call *c, const struct acl *acl, struct err *err)
{
    struct call_target *t = &c->target;
    struct access_request r = access_request_of(c, t, S3_ACTION_PUT_OBJECT_ACL, c->key);

    if (acl_is_between(acl, t->info.owner) && !access_denied(&r))
        return 0;
    return need_with_write(c, S3_ACTION_PUT_OBJECT_ACL, err);
}

int call_absent(struct call *c, struct call_target *t, struct str key, bool version,
                struct err *err)
{
    c->absent_key = key;
    bool may = call_may(c, t, S3_ACTION_LIST_BUCKET, STR_EMPTY, NULL);
    c->absent_key = STR_EMPTY;
    if (!may)
        return s3_fail(err, S3_ACCESS_DENIED);
    return s3_fail(err, version ? S3_NO_SUCH_VERSION : S3_NO_SUCH_KEY);
}

int call_object(struct call *c, struct get_result *out, struct err *err)
{
    static const struct object_conditions none;
    struct bucket *b = c->target.bucket;
    enum s3_action action = call_action(c);
    int code = b->ops->head(b, c->a, c->key, c->version, &none, out, err);
    int may = call_need(c, &c->target, action, c->key, code == 0 ? &out->info : NULL, err);

    if (code == ERR_NOT_FOUND && !(out->info.is_marker && c->version.len))
        return call_absent(c, &c->target, c->key, c->version.len > 0, err);
    if (may < 0)
        return may;
    if (code == ERR_NOT_FOUND)
        return s3_fail(err, S3_METHOD_NOT_ALLOWED);
    return code == 0 && c->op->flags & OP_XML ? call_read_body(c, err) : code;
}

/* --- users in access lists --- */

static bool find_user(void *ctx, bool by_email, struct str name, struct str *id,
                      struct str *display_name)
{
    struct call *c = ctx;
    struct err ignored = {0};
    struct user user;
    int code = by_email ? users_by_email(c->g->o.users, c->a, name, &user, &ignored)
                        : users_by_id(c->g->o.users, c->a, name, &user, &ignored);

    if (code < 0)
        return false;
    *id = user.id;
    *display_name = user.display_name.len ? user.display_name : user.name;
    return true;
}

struct acl_users call_acl_users(struct call *c)
{
    return (struct acl_users){find_user, c};
}
