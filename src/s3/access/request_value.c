/* Finds the values of condition keys that every HTTP request has. */
#include "s3/access/request_value.h"

#include "base/clock.h"
#include "meta/tagging.h"

static struct str time_value(const struct request_facts *f, enum policy_key key)
{
    char text[CLOCK_ISO_LEN + 1];

    if (key == POLICY_KEY_EPOCH_TIME)
        return arena_fmt(f->arena, "%lld", (long long)(f->now_ms / MS_PER_S));
    clock_iso(f->now_ms, text);
    return arena_str(f->arena, str_z(text));
}

static struct str secure_value(const struct request_facts *f, enum policy_key key)
{
    (void)key;
    return http_request_is_tls(f->http) ? STR("true") : STR("false");
}

/* Returns the version of TLS as policies write it: "1.3", where OpenSSL says "TLSv1.3". */
static struct str tls_value(const struct request_facts *f, enum policy_key key)
{
    struct str version = str_z(http_request_tls_version(f->http)), prefix = STR("TLSv");

    (void)key;
    return str_starts(version, prefix) ? str_skip(version, prefix.len) : STR_EMPTY;
}

static struct str address_value(const struct request_facts *f, enum policy_key key)
{
    char text[SOCK_ADDR_TEXT];

    (void)key;
    sock_addr_host(http_request_peer(f->http), text);
    return arena_str(f->arena, str_z(text));
}

static struct str client_value(const struct request_facts *f, enum policy_key key)
{
    return http_header(http_request_head(f->http),
                       key == POLICY_KEY_REFERER ? "referer" : "user-agent");
}

static struct str region_value(const struct request_facts *f, enum policy_key key)
{
    (void)key;
    return f->region;
}

/* Answers that no AWS service sent the request: no service of weir sends requests in the name of a
 * user. */
static struct str service_value(const struct request_facts *f, enum policy_key key)
{
    return key == POLICY_KEY_VIA_AWS_SERVICE || f->user ? STR("false") : STR_EMPTY;
}

static struct str owner_value(const struct request_facts *f, enum policy_key key)
{
    (void)key;
    return f->bucket_owner;
}

static struct str sender_value(const struct request_facts *f, enum policy_key key)
{
    const struct user *user = f->user;

    switch (key) {
    case POLICY_KEY_PRINCIPAL_TYPE:
        return user ? STR("User") : STR("Anonymous");
    case POLICY_KEY_PRINCIPAL_ARN:
        return user ? arena_fmt(f->arena, "arn:aws:iam::" STR_FMT ":user/" STR_FMT,
                                STR_ARG(user->id), STR_ARG(user->name))
                    : STR_EMPTY;
    case POLICY_KEY_USER_NAME:
        return user ? user->name : STR_EMPTY;
    default: /* user id and account: in weir, each user is an account */
        return user ? user->id : STR(POLICY_ANONYMOUS);
    }
}

static struct str (*const request_values[POLICY_KEYS])(const struct request_facts *f,
                                                       enum policy_key key) = {
    [POLICY_KEY_CURRENT_TIME] = time_value,
    [POLICY_KEY_EPOCH_TIME] = time_value,
    [POLICY_KEY_PRINCIPAL_ACCOUNT] = sender_value,
    [POLICY_KEY_PRINCIPAL_ARN] = sender_value,
    [POLICY_KEY_PRINCIPAL_IS_AWS_SERVICE] = service_value,
    [POLICY_KEY_PRINCIPAL_TYPE] = sender_value,
    [POLICY_KEY_REFERER] = client_value,
    [POLICY_KEY_REQUESTED_REGION] = region_value,
    [POLICY_KEY_RESOURCE_ACCOUNT] = owner_value,
    [POLICY_KEY_S3_RESOURCE_ACCOUNT] = owner_value,
    [POLICY_KEY_SECURE_TRANSPORT] = secure_value,
    [POLICY_KEY_SOURCE_IP] = address_value,
    [POLICY_KEY_TLS_VERSION] = tls_value,
    [POLICY_KEY_USER_AGENT] = client_value,
    [POLICY_KEY_USER_ID] = sender_value,
    [POLICY_KEY_USER_NAME] = sender_value,
    [POLICY_KEY_VIA_AWS_SERVICE] = service_value,
};

struct str request_value(const struct request_facts *f, enum policy_key key)
{
    return request_values[key] ? request_values[key](f, key) : STR_EMPTY;
}

struct str request_tag_value(struct arena *a, struct str tags, struct str name)
{
    struct tag_set set;
    struct err ignored = {0};
    struct str value = STR_EMPTY;

    if (tagging_parse(&set, a, tags, TAGS_OF_OBJECT, &ignored) == 0 &&
        tagging_find(&set, name, &value) && !value.p)
        value = STR("");
    return value;
}
