/* Decides whether the log of a bucket may be delivered to another bucket. */
#include "s3/log/access_log.h"

#include "base/clock.h"
#include "route/resolve.h"
#include "s3/access/access.h"
#include "meta/encryption.h"
#include "s3/documents/lock.h"

#define SERVICE STR("logging.s3.amazonaws.com")

/* The context of condition_value(), which gives values for the conditions of the target's
 * policy. */
struct asking {
    const struct access_log_ask *ask;
    const struct bucket_info *target;
    struct arena *a;
    struct str value;
};

static struct str target_value(const struct asking *q, enum policy_key key)
{
    char time[CLOCK_ISO_LEN + 1];

    switch (key) {
    case POLICY_KEY_SOURCE_ARN:
        return arena_fmt(q->a, "arn:aws:s3:::" STR_FMT, STR_ARG(q->ask->bucket));
    case POLICY_KEY_SOURCE_ACCOUNT:
        return q->ask->owner;
    case POLICY_KEY_RESOURCE_ACCOUNT:
    case POLICY_KEY_S3_RESOURCE_ACCOUNT:
        return q->target->owner;
    case POLICY_KEY_PRINCIPAL_SERVICE_NAME:
        return SERVICE;
    case POLICY_KEY_SECURE_TRANSPORT:
    case POLICY_KEY_PRINCIPAL_IS_AWS_SERVICE:
    case POLICY_KEY_OBJECT_CREATION_OPERATION:
        return STR("true");
    case POLICY_KEY_VIA_AWS_SERVICE:
        return STR("false");
    case POLICY_KEY_CURRENT_TIME:
        clock_iso(clock_wall_ms(), time);
        return arena_str(q->a, str_z(time));
    case POLICY_KEY_EPOCH_TIME:
        return arena_fmt(q->a, "%lld", (long long)(clock_wall_ms() / MS_PER_S));
    default:
        return STR_EMPTY;
    }
}

static bool condition_value(void *ctx, enum policy_key key, struct str suffix,
                            struct policy_values *out)
{
    struct asking *q = ctx;

    (void)suffix;
    q->value = target_value(q, key);
    *out = (struct policy_values){&q->value, 1};
    return q->value.len > 0;
}

static int document(struct bucket *b, struct arena *a, const char *name, struct str *out,
                    struct err *err)
{
    int code = b->ops->get_document(b, a, name, out, err);

    if (code == ERR_NOT_FOUND) {
        *out = STR_EMPTY;
        return 0;
    }
    return code;
}

/* Asks the target's policy about the prefix, which Ceph's policies name, and about the object,
 * which policies of AWS name. *out is POLICY_DENY if the policy denies either one. */
static int ask_policy(struct access_log_target *t, struct arena *a,
                      const struct access_log_ask *ask, enum policy_effect *out, struct err *err)
{
    struct str keys[] = {ask->config->prefix, ask->key}, text;
    struct asking q = {.ask = ask, .target = &t->info, .a = a};
    struct policy_request r = {.who = {.service = SERVICE},
                               .action = S3_ACTION_PUT_OBJECT,
                               .bucket = t->info.name,
                               .value = condition_value,
                               .ctx = &q,
                               .arena = a};
    struct policy *policy;
    int code = document(t->bucket, a, "policy", &text, err);

    *out = POLICY_NONE;
    if (code < 0 || !text.len)
        return code;
    code = policy_compile(&policy, a, text, t->info.name, err);
    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(keys) && *out != POLICY_DENY; i++) {
        enum policy_effect effect = POLICY_NONE;
        r.key = keys[i];
        if (r.key.len)
            effect = policy_evaluate(policy, &r);
        if (effect != POLICY_NONE)
            *out = effect;
    }
    return code;
}

static int ask_list(struct access_log_target *t, struct arena *a, bool *out, struct err *err)
{
    struct str text;
    struct acl acl;
    int code = document(t->bucket, a, "acl", &text, err);

    *out = false;
    if (code < 0 || !text.len || !t->lists)
        return code;
    code = acl_decode(&acl, a, text, err);
    *out = code == 0 && acl_allows_log_delivery(&acl, ACL_WRITE | ACL_READ_ACP);
    return code;
}

static int check_access(struct access_log_target *t, struct arena *a,
                        const struct access_log_ask *ask, struct err *err)
{
    enum policy_effect effect = POLICY_NONE;
    bool listed = false;
    int code = ask_policy(t, a, ask, &effect, err);

    if (code == 0 && effect == POLICY_NONE && str_eq(ask->owner, t->info.owner))
        code = ask_list(t, a, &listed, err);
    if (code == 0 && effect != POLICY_ALLOW && !listed)
        code =
            err_set(err, S3_ACCESS_DENIED, "The target bucket does not allow the delivery of logs");
    return code;
}

static int check_retention(struct access_log_target *t, struct arena *a, struct err *err)
{
    struct lock_config config = {0};
    struct str text;
    int code = document(t->bucket, a, "object-lock", &text, err);

    if (code == 0 && text.len)
        code = lock_config_read(&config, a, text, err);
    if (code == 0 && (config.days || config.years))
        code = err_set(err, S3_INVALID_ARGUMENT,
                       "The target bucket for logging has a default retention");
    return code;
}

static int check_settings(struct access_log_target *t, struct arena *a,
                          const struct access_log_ask *ask, struct err *err)
{
    struct str text;
    int code = document(t->bucket, a, "logging", &text, err);

    if (code == 0 && ask->setting && text.len)
        return err_set(err, S3_INVALID_ARGUMENT, "The target bucket is itself logged");
    if (code == 0)
        code = document(t->bucket, a, "encryption", &text, err);
    if (code == 0 && text.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The target bucket for logging has a default encryption");
    if (code == 0)
        code = document(t->bucket, a, "requestPayment", &text, err);
    if (code == 0 && text.len)
        return err_set(err, S3_INVALID_ARGUMENT,
                       "Requesters pay for the target bucket for logging");
    return code < 0 ? code : check_retention(t, a, err);
}

static int read_ownership(struct access_log_target *t, struct arena *a, struct err *err)
{
    enum ownership ownership = OWNERSHIP_OBJECT_WRITER;
    struct str text;
    int code = document(t->bucket, a, "ownershipControls", &text, err);

    if (code == 0 && text.len)
        code = ownership_read(&ownership, a, text, err);
    t->lists = ownership != OWNERSHIP_BUCKET_OWNER_ENFORCED;
    return code;
}

static int target_check(struct access_log_target *t, struct arena *a,
                        const struct access_log_ask *ask, struct err *err)
{
    struct bucket *b = t->bucket;
    int code;

    if (!bucket_can(b, STORAGE_KEEPS_META))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The target bucket for logging is on a remote storage");
    if (str_eq(b->name, ask->bucket) && str_eq(bucket_home(b)->name, ask->storage))
        return err_set(err, S3_INVALID_ARGUMENT, "A bucket cannot be logged into itself");
    code = b->ops->info(b, a, &t->info, err);
    if (code == 0)
        code = read_ownership(t, a, err);
    if (code == 0)
        code = check_access(t, a, ask, err);
    return code < 0 ? code : check_settings(t, a, ask, err);
}

int access_log_target_open(struct access_log_target *out, struct arena *a,
                           const struct access_log_ask *ask, struct err *err)
{
    struct access_log_target t = {0};
    int code = route_bucket(ask->routes, ask->owner, ask->config->bucket, &t.bucket, err);

    if (code == ERR_NO_BUCKET)
        return err_set(err, S3_NO_SUCH_KEY, "The target bucket for logging does not exist");
    if (code < 0)
        return code;
    code = target_check(&t, a, ask, err);
    if (code < 0)
        t.bucket->ops->unref(t.bucket);
    else
        *out = t;
    return code;
}
