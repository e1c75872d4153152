/* Checks the object that an entry names by its address: whether it is the object that the entry
 * describes, and whether the owner of the repository may read it (docs/security.md, "Repositories
 * of the lake"). */
#include "lake/address.h"
#include "lake/lake_int.h"

#include "base/clock.h"
#include "route/users.h"
#include "s3/access/bucket_rules.h"
#include "s3/access/request_value.h"

/* The facts by which a policy judges a read that weir makes for a repository's owner. There is no
 * request of the owner whose facts could be used. */
struct address_question {
    struct request_facts facts;
    struct str tags;  /* tags of the object */
    struct str value; /* the value that the policy asked for last */
};

/* Whether the value of the key is known without a request. */
static bool address_knows(enum policy_key key)
{
    switch (key) {
    case POLICY_KEY_CURRENT_TIME:
    case POLICY_KEY_EPOCH_TIME:
    case POLICY_KEY_EXISTING_OBJECT_TAG:
    case POLICY_KEY_PRINCIPAL_ACCOUNT:
    case POLICY_KEY_PRINCIPAL_ARN:
    case POLICY_KEY_PRINCIPAL_TYPE:
    case POLICY_KEY_RESOURCE_ACCOUNT:
    case POLICY_KEY_S3_RESOURCE_ACCOUNT:
    case POLICY_KEY_USER_ID:
    case POLICY_KEY_USER_NAME:
        return true;
    default:
        return false;
    }
}

static bool address_condition(void *ctx, enum policy_key key, struct str suffix,
                              struct policy_values *out)
{
    struct address_question *q = ctx;

    q->value = STR_EMPTY;
    if (key == POLICY_KEY_EXISTING_OBJECT_TAG)
        q->value = request_tag_value(q->facts.arena, q->tags, suffix);
    else if (address_knows(key))
        q->value = request_value(&q->facts, key);
    *out = (struct policy_values){&q->value, 1};
    return q->value.p != NULL;
}

/* Decides whether the user may read the object, by the same rules as the gateway's GetObject. */
static bool address_allows(const struct lake_place *p, const struct bucket_rules *rules,
                           const struct user *user, const struct object_info *info)
{
    struct address_question q = {.facts = {.user = user,
                                           .now_ms = clock_wall_ms(),
                                           .bucket_owner = rules->info.owner,
                                           .arena = p->arena},
                                 .tags = info->meta.tags};
    struct policy_request ask = {.who = {.id = user->id, .name = user->name},
                                 .action = S3_ACTION_GET_OBJECT,
                                 .bucket = p->name,
                                 .key = p->key,
                                 .value = address_condition,
                                 .knows = address_knows,
                                 .ctx = &q,
                                 .arena = p->arena};

    return user->admin || bucket_rules_allow(rules, &ask, info);
}

/* Reads the record of the user as whom the place was opened. */
static int address_user(const struct lake_place *p, struct user *out, struct err *err)
{
    *out = (struct user){.id = p->user};
    return p->lake->o.users ? users_by_id(p->lake->o.users, p->arena, p->user, out, err) : 0;
}

static int address_gone(const struct lake_entry *e, const char *why, struct err *err)
{
    return err_set(err, ERR_GONE, "the bytes at " STR_FMT " %s", STR_ARG(str_head(e->address, 255)),
                   why);
}

/* Checks that the repository's owner may read the object. If the storage has its own credentials
 * for each user, the object was opened with the owner's keys, so the storage itself has checked the
 * right. */
static int address_check_right(const struct lake_place *p, const struct lake_entry *e,
                               const struct object_info *info, struct err *err)
{
    struct bucket_rules rules;
    struct user user;

    if (bucket_can(p->bucket, STORAGE_CREDENTIALS))
        return 0;
    int code = address_user(p, &user, err);
    if (code == 0)
        code = bucket_rules_read(&rules, p->arena, p->bucket, err);
    if (code == 0 && address_allows(p, &rules, &user, info))
        return 0;
    return code < 0 && code != ERR_NOT_FOUND
               ? code
               : address_gone(e, "may not be read by the owner of the repository", err);
}

int lake_address_check(const struct lake_place *p, const struct lake_entry *e,
                       const struct object_info *info, struct err *err)
{
    bool outside = !lake_address_is_relative(e);
    int code = outside ? address_check_right(p, e, info, err) : 0;

    if (code < 0)
        return code;
    if (info->size != e->size || (outside && e->etag.len && !str_eq(e->etag, info->etag)))
        return address_gone(e, "have changed", err);
    return 0;
}
