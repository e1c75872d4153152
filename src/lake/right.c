/* Checks the rights of a repository's owner. */
#include "lake/right.h"

#include "lake/lake_int.h"

#include "base/clock.h"
#include "base/map.h"
#include "os/thread.h"
#include "route/users.h"
#include "s3/access/bucket_rules.h"
#include "s3/access/request_value.h"

#include <stdlib.h>

/* --- the question --- */

/* The facts that conditions of a policy may use when weir acts for a repository's owner. The owner
 * has made no request, so there are no facts of a request. */
struct right_question {
    struct request_facts facts;
    struct str tags;  /* tags of the object */
    struct str value; /* the value that the policy asked for last */
};

/* Whether the value of a policy's condition key is known without a request. */
static bool right_knows(enum policy_key key)
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

static bool right_condition(void *ctx, enum policy_key key, struct str suffix,
                            struct policy_values *out)
{
    struct right_question *q = ctx;

    q->value = STR_EMPTY;
    if (key == POLICY_KEY_EXISTING_OBJECT_TAG)
        q->value = request_tag_value(q->facts.arena, q->tags, suffix);
    else if (right_knows(key))
        q->value = request_value(&q->facts, key);
    *out = (struct policy_values){&q->value, 1};
    return q->value.p != NULL;
}

/* Fills the policy request for an action of the user. The policy request points to `q`, so `q` must
 * live as long. */
static struct policy_request right_ask(struct right_question *q, const struct user *user,
                                       const struct bucket_rules *rules, enum s3_action action,
                                       struct arena *a)
{
    *q = (struct right_question){.facts = {.user = user,
                                           .now_ms = clock_wall_ms(),
                                           .bucket_owner = rules->info.owner,
                                           .arena = a}};
    return (struct policy_request){.who = {.id = user->id, .name = user->name},
                                   .action = action,
                                   .bucket = rules->info.name,
                                   .value = right_condition,
                                   .knows = right_knows,
                                   .ctx = q,
                                   .arena = a};
}

/* Reads the record of the user. */
static int right_user(struct users *users, struct arena *a, struct str id, struct user *out,
                      struct err *err)
{
    *out = (struct user){.id = id};
    return users ? users_by_id(users, a, id, out, err) : 0;
}

/* --- objects --- */

int lake_right_read(const struct object_place *p, const struct object_info *info, bool *may,
                    struct err *err)
{
    struct bucket_rules rules;
    struct right_question q;
    struct user user;

    *may = bucket_can(p->bucket, STORAGE_CREDENTIALS);
    /* If users have credentials of their own on the storage, the storage has already checked the
     * right, because the object was opened with the owner's keys. */
    if (*may)
        return 0;
    int code = right_user(p->env.users, p->arena, p->user, &user, err);
    if (code == 0)
        code = bucket_rules_read(&rules, p->arena, p->bucket, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    struct policy_request ask = right_ask(&q, &user, &rules, S3_ACTION_GET_OBJECT, p->arena);
    ask.bucket = p->name;
    ask.key = p->key;
    q.tags = info->meta.tags;
    *may = user.admin || bucket_rules_allow(&rules, &ask, info);
    return 0;
}

/* --- namespaces --- */

int lake_right_judge_space(struct lake *l, struct arena *a, struct str user, struct bucket *b,
                           struct str begin, bool *may, struct err *err)
{
    static const enum s3_action uses[] = {S3_ACTION_GET_OBJECT, S3_ACTION_PUT_OBJECT,
                                          S3_ACTION_DELETE_OBJECT};
    struct bucket_rules rules;
    struct right_question q;
    struct user who;

    *may = bucket_can(b, STORAGE_CREDENTIALS);
    if (*may)
        return 0;
    int code = right_user(l->o.users, a, user, &who, err);
    if (code == 0)
        code = bucket_rules_read(&rules, a, b, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    *may = true;
    for (size_t i = 0; !who.admin && *may && i < ARRAY_SIZE(uses); i++) {
        struct policy_request ask = right_ask(&q, &who, &rules, uses[i], a);
        struct access_request r = bucket_rules_ask(&rules, &ask);
        *may = access_granted_below(&r, begin) && !access_denied_beyond(&r, begin, STR_EMPTY);
    }
    return 0;
}

/* --- answers in memory --- */

/* most answers in memory; if one more is added, all earlier ones are removed */
enum { RIGHTS_MAX = 10000 };

struct right_note {
    uint64_t until_ms; /* by clock_mono_ms() */
    bool may;
    size_t len;
    char partition[];
};

struct lake_rights {
    struct mutex lock; /* class "lake.rights" */
    struct map notes;  /* partition to struct right_note */
};

struct lake_rights *lake_rights_new(void)
{
    struct lake_rights *x = xzalloc(sizeof(*x));

    mutex_init(&x->lock, "lake.rights");
    map_init(&x->notes);
    return x;
}

/* Removes all answers. The caller has the lock, or no other thread can reach `x`. */
static void rights_forget_all(struct lake_rights *x)
{
    size_t cursor = 0;
    struct str partition;
    void *note;

    while (map_next(&x->notes, &cursor, &partition, &note)) {
        map_remove(&x->notes, partition);
        free(note);
    }
}

void lake_rights_free(struct lake_rights *x)
{
    if (!x)
        return;
    rights_forget_all(x);
    map_release(&x->notes);
    mutex_release(&x->lock);
    free(x);
}

/* Whether the answer for the partition is in memory and not too old. If so, sets *may to it. */
static bool rights_known(struct lake_rights *x, struct str partition, bool *may)
{
    mutex_lock(&x->lock);
    const struct right_note *n = map_get(&x->notes, partition);
    bool known = n && clock_mono_ms() < n->until_ms;
    if (known)
        *may = n->may;
    mutex_unlock(&x->lock);
    return known;
}

static void rights_note(struct lake_rights *x, struct str partition, bool may)
{
    mutex_lock(&x->lock);
    struct right_note *n = map_get(&x->notes, partition);
    if (!n) {
        if (x->notes.len >= RIGHTS_MAX)
            rights_forget_all(x);
        n = xzalloc(sizeof(*n) + partition.len);
        n->len = partition.len;
        memcpy(n->partition, partition.p, partition.len);
        map_put(&x->notes, str_n(n->partition, n->len), n);
    }
    n->may = may;
    n->until_ms = clock_mono_ms() + LAKE_RIGHT_MS;
    mutex_unlock(&x->lock);
}

int lake_right_check_space(const struct object_place *p, struct lake *l, const struct lake_repo *r,
                           struct str begin, struct err *err)
{
    bool may = false;
    int code = 0;

    if (!rights_known(l->rights, r->partition, &may)) {
        if (p->use == PLACE_READ_NOW)
            return ERR_AGAIN;
        code = lake_right_judge_space(l, p->arena, r->owner, p->bucket, begin, &may, err);
        if (code == 0)
            rights_note(l->rights, r->partition, may);
    }
    return code < 0 || may
               ? code
               : err_set(err, ERR_DENIED,
                         "the owner of the repository may not read, write and remove the objects "
                         "of its storage namespace " STR_FMT,
                         STR_ARG(str_head(r->space, 160)));
}
