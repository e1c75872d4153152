/* Finds the values of the keys in policy conditions. The value of a key is the value that the
 * operation will use, not the value that the request spelled out (docs/s3-documents.md, "Condition
 * keys"). */
#include "s3/gateway/gateway_int.h"

#include "base/clock.h"
#include "s3/access/request_value.h"
#include "s3/documents/lock.h"
#include "meta/tagging.h"

enum { LIST_MAX = 1000 };

/* A question for the value of one condition key. */
struct question {
    enum policy_key key;
    struct str suffix; /* the last part of a key such as "s3:ExistingObjectTag/<suffix>" */
    const char *name;  /* name of the header or parameter that has the value */
    unsigned on;       /* a set of enum acts: the operations that use the header */
};

/* Kinds of operations that use a header. For other operations the header has no value. Otherwise a
 * PUT could pass for a copy by naming a source that it does not read. */
enum acts {
    ON_NEW = 1,    /* operations that make an object, or begin an upload */
    ON_COPY = 2,   /* operations that copy a whole object */
    ON_SOURCE = 4, /* operations that read another object */
    ON_LIST = 8,   /* operations that set an access control list, besides ON_NEW */
    ON_BOUND = 16, /* operations that may have a condition on the existing object */
};

static const struct {
    enum s3_operation operation;
    unsigned acts;
} acting[] = {
    {S3_OP_PutObject, ON_NEW | ON_BOUND},
    {S3_OP_PostObject, ON_NEW},
    {S3_OP_CopyObject, ON_NEW | ON_COPY | ON_SOURCE | ON_BOUND},
    {S3_OP_CreateMultipartUpload, ON_NEW},
    {S3_OP_UploadPartCopy, ON_SOURCE},
    {S3_OP_CompleteMultipartUpload, ON_BOUND},
    {S3_OP_DeleteObject, ON_BOUND},
    {S3_OP_PutObjectAcl, ON_LIST},
    {S3_OP_PutBucketAcl, ON_LIST},
};

static bool acts(const struct call *c, unsigned on)
{
    for (size_t i = 0; c->op && i < ARRAY_SIZE(acting); i++)
        if (acting[i].operation == c->op->id)
            return acting[i].acts & on;
    return false;
}

static bool is_operation(const struct call *c, enum s3_operation id)
{
    return c->op && c->op->id == id;
}

/* --- the request as a whole, and who sent it --- */

static struct str of_request(struct call *c, const struct question *q)
{
    struct request_facts f = {
        c->http, c->user, c->now_ms, c->g->region, c->judged ? c->judged->info.owner : STR_EMPTY,
        c->a};

    return request_value(&f, q->key);
}

/* Returns the header as the client sent it. c->head cannot be used here, because in it the fields
 * of a form stand for headers. */
static struct str condition_client_header(struct call *c, const struct question *q)
{
    return http_header(http_request_head(c->http), q->name);
}

/* --- the signature --- */

static bool is_version_2(const struct call *c)
{
    return c->auth.kind == AUTH_V2_HEADER || c->auth.kind == AUTH_V2_QUERY;
}

static struct str signature_version(struct call *c, const struct question *q)
{
    (void)q;
    if (c->auth.kind == AUTH_ANONYMOUS)
        return STR_EMPTY;
    return is_version_2(c) ? STR("AWS") : STR("AWS4-HMAC-SHA256");
}

static struct str auth_type(struct call *c, const struct question *q)
{
    (void)q;
    if (c->auth.kind == AUTH_ANONYMOUS)
        return STR_EMPTY;
    if (is_operation(c, S3_OP_PostObject))
        return STR("POST");
    return c->auth.kind == AUTH_V4_QUERY || c->auth.kind == AUTH_V2_QUERY ? STR("REST-QUERY-STRING")
                                                                          : STR("REST-HEADER");
}

/* Returns the signature's age in milliseconds. A signature without a time counts as made in 1970,
 * so that a policy that denies old signatures also denies those of unknown age. */
static struct str signature_age(struct call *c, const struct question *q)
{
    int64_t age = c->now_ms - c->auth.signed_ms;

    (void)q;
    if (c->auth.kind == AUTH_ANONYMOUS)
        return STR_EMPTY;
    return arena_fmt(c->a, "%lld", (long long)(age > 0 ? age : 0));
}

/* Returns the signed hash of the body, else the header as it was sent. The file of a form is never
 * signed. */
static struct str content_sha256(struct call *c, const struct question *q)
{
    bool form = is_operation(c, S3_OP_PostObject);

    if (c->auth.payload_hash.len)
        return c->auth.payload_hash;
    if (form)
        return c->auth.kind == AUTH_ANONYMOUS ? STR_EMPTY : STR(SIGN_UNSIGNED);
    return condition_client_header(c, q);
}

/* --- headers and parameters --- */

/* Returns the header's value, if the operation uses the header. Operations ignore an empty header,
 * so an empty header has no value. */
static struct str acted_header(struct call *c, const struct question *q)
{
    struct str value = acts(c, q->on) ? http_header(c->head, q->name) : STR_EMPTY;

    return value.len ? value : STR_EMPTY;
}

static struct str bound_to(struct call *c, const struct question *q)
{
    if (!c->item)
        return acted_header(c, q);
    return q->key == POLICY_KEY_IF_MATCH && c->item->if_match.len ? c->item->if_match : STR_EMPTY;
}

static struct str condition_version(struct call *c, const struct question *q)
{
    struct str version = c->item ? c->item->version : c->version;

    (void)q;
    return version.len ? version : STR_EMPTY;
}

static struct str parameter(struct call *c, const struct question *q)
{
    return q->key == POLICY_KEY_PREFIX && c->absent_key.p ? c->absent_key : call_param(c, q->name);
}

/* Returns the limit on the entries of the listing, which the request need not have given. */
static struct str max_keys(struct call *c, const struct question *q)
{
    struct err ignored = {0};
    uint64_t number;

    if (!is_operation(c, S3_OP_ListObjects) && !is_operation(c, S3_OP_ListObjectsV2) &&
        !is_operation(c, S3_OP_ListObjectVersions))
        return STR_EMPTY;
    if (call_number(c, q->name, LIST_MAX, LIST_MAX, &number, &ignored) < 0)
        return call_param(c, q->name); /* not a number: the operation will refuse it */
    return arena_fmt(c->a, "%llu", (unsigned long long)number);
}

/* Returns "bucket/key" of the source, as the copy reads it. */
static struct str source_name(struct call *c, const struct question *q)
{
    struct copy_source s = {0};
    struct err ignored = {0};

    if (!acts(c, q->on) || copy_source_parse(c, &s, &ignored) < 0)
        return STR_EMPTY;
    return arena_fmt(c->a, STR_FMT "/" STR_FMT, STR_ARG(s.bucket), STR_ARG(s.key));
}

/* Returns the encryption that is asked for. For a part, and for the end of an upload, it is the
 * encryption that was asked for when the upload was begun. */
static struct str encryption(struct call *c, const struct question *q)
{
    struct str value = encrypt_policy_value(c, q->key);

    return value.p ? value : acted_header(c, q);
}

static struct str creation(struct call *c, const struct question *q)
{
    (void)q;
    if (is_operation(c, S3_OP_CreateMultipartUpload) || is_operation(c, S3_OP_UploadPart) ||
        is_operation(c, S3_OP_UploadPartCopy))
        return STR("false");
    return acts(c, ON_NEW) || is_operation(c, S3_OP_CompleteMultipartUpload) ? STR("true")
                                                                             : STR_EMPTY;
}

/* --- values from documents in the body ---
 *
 * The body is read when a statement asks for such a value (docs/gateway.md, G1). A document that
 * cannot be read has no value here; the operation refuses it once access is decided. */

/* Reads the body, unless the user would be refused whatever the document says. */
static int read_for_condition(struct call *c)
{
    enum s3_action action = call_action(c);
    struct err ignored = {0};

    return call_may_ever(c, &c->target, action) ? call_read_body(c, &ignored) : ERR_DENIED;
}

static struct str ownership_set(struct call *c, const struct question *q)
{
    struct err ignored = {0};
    enum ownership ownership;

    (void)q;
    if (!is_operation(c, S3_OP_PutBucketOwnershipControls) || read_for_condition(c) < 0 ||
        ownership_read(&ownership, c->a, c->body, &ignored) < 0)
        return STR_EMPTY;
    return str_z(ownership_name(ownership));
}

static int condition_read_lock(struct call *c, struct lock_headers *out)
{
    struct err ignored = {0};
    int code = 0;

    if (acts(c, ON_NEW))
        return lock_headers_read(out, c->head, c->now_ms, &ignored);
    out->has_retention = is_operation(c, S3_OP_PutObjectRetention);
    out->has_hold = is_operation(c, S3_OP_PutObjectLegalHold);
    if (out->has_retention || out->has_hold)
        code = read_for_condition(c);
    if (code == 0 && out->has_retention)
        code = lock_retention_read(&out->retention, c->a, c->body, c->now_ms, &ignored);
    if (code == 0 && out->has_hold)
        code = lock_hold_read(&out->hold, c->a, c->body, &ignored);
    return code;
}

/* Returns the number of days until `until_ms`. The number is rounded up, so that a request for ten
 * days that was made a moment ago counts as ten. */
static struct str remaining_days(struct call *c, int64_t until_ms)
{
    int64_t left = until_ms > c->now_ms ? until_ms - c->now_ms : 0;

    return arena_fmt(c->a, "%lld", (long long)((left + MS_PER_DAY - 1) / MS_PER_DAY));
}

static struct str lock_value(struct call *c, const struct question *q)
{
    struct lock_headers lock = {0};
    char text[CLOCK_ISO_LEN + 1];

    if (condition_read_lock(c, &lock) < 0)
        return STR_EMPTY;
    if (q->key == POLICY_KEY_OBJECT_LOCK_LEGAL_HOLD)
        return !lock.has_hold ? STR_EMPTY : lock.hold ? STR("ON") : STR("OFF");
    if (!lock.has_retention)
        return STR_EMPTY;
    if (q->key == POLICY_KEY_OBJECT_LOCK_REMAINING_RETENTION_DAYS)
        return remaining_days(c, lock.retention.until_ms);
    if (!lock.retention.until_ms) /* the request removes the retention */
        return STR_EMPTY;
    if (q->key == POLICY_KEY_OBJECT_LOCK_MODE)
        return str_z(lock_mode_name(lock.retention.compliance));
    clock_iso(lock.retention.until_ms, text);
    return arena_str(c->a, str_z(text));
}

/* --- tags --- */

static void read_new_tags(struct call *c)
{
    struct err ignored = {0};
    struct tag_set set;

    if (c->new_tags.p)
        return;
    c->new_tags = STR("");
    if (read_for_condition(c) == 0 &&
        tagging_read(&set, c->a, c->body, TAGS_OF_OBJECT, &ignored) == 0)
        c->new_tags = tagging_text(c->a, &set);
}

/* Do the new object's tags come from the header? A copy without the directive REPLACE gets its
 * source's tags instead, which are in c->new_tags as soon as they are known. */
static bool is_header_of_tags(const struct call *c)
{
    return acts(c, ON_NEW) &&
           (!acts(c, ON_COPY) ||
            str_eq(http_header(c->head, "x-amz-tagging-directive"), STR("REPLACE")));
}

/* Returns the tags that the request sets, in the form of x-amz-tagging. */
static struct str request_tags(struct call *c)
{
    if (is_operation(c, S3_OP_PutObjectTagging))
        read_new_tags(c);
    if (c->new_tags.p)
        return c->new_tags;
    return is_header_of_tags(c) ? http_header(c->head, "x-amz-tagging") : STR_EMPTY;
}

static struct str request_tag(struct call *c, const struct question *q)
{
    return request_tag_value(c->a, request_tags(c), q->suffix);
}

static struct str existing_tag(struct call *c, const struct question *q)
{
    return c->object ? request_tag_value(c->a, c->object->meta.tags, q->suffix) : STR_EMPTY;
}

static bool request_tag_keys(struct call *c, struct policy_values *out)
{
    struct str tags = request_tags(c);
    struct err ignored = {0};
    struct tag_set set;

    if (!tags.len || tagging_parse(&set, c->a, tags, TAGS_OF_OBJECT, &ignored) < 0)
        return false;
    struct str *keys = arena_array(c->a, set.count + 1, sizeof(*keys));
    for (size_t i = 0; keys && i < set.count; i++)
        keys[i] = set.tags[i].key;
    *out = (struct policy_values){keys, keys ? set.count : 0};
    return out->count > 0;
}

/* --- the table of keys --- */

static const struct {
    struct str (*fn)(struct call *c, const struct question *q);
    const char *name;
    unsigned on;
} values[POLICY_KEYS] = {
    [POLICY_KEY_CURRENT_TIME] = {of_request},
    [POLICY_KEY_EPOCH_TIME] = {of_request},
    [POLICY_KEY_PRINCIPAL_ACCOUNT] = {of_request},
    [POLICY_KEY_PRINCIPAL_ARN] = {of_request},
    [POLICY_KEY_PRINCIPAL_IS_AWS_SERVICE] = {of_request},
    [POLICY_KEY_PRINCIPAL_TYPE] = {of_request},
    [POLICY_KEY_REFERER] = {of_request},
    [POLICY_KEY_REQUESTED_REGION] = {of_request},
    [POLICY_KEY_RESOURCE_ACCOUNT] = {of_request},
    [POLICY_KEY_SECURE_TRANSPORT] = {of_request},
    [POLICY_KEY_SOURCE_IP] = {of_request},
    [POLICY_KEY_USER_AGENT] = {of_request},
    [POLICY_KEY_USER_ID] = {of_request},
    [POLICY_KEY_USER_NAME] = {of_request},
    [POLICY_KEY_VIA_AWS_SERVICE] = {of_request},
    [POLICY_KEY_AUTH_TYPE] = {auth_type},
    [POLICY_KEY_DELIMITER] = {parameter, "delimiter"},
    [POLICY_KEY_EXISTING_OBJECT_TAG] = {existing_tag},
    [POLICY_KEY_IF_MATCH] = {bound_to, "if-match", ON_BOUND},
    [POLICY_KEY_IF_NONE_MATCH] = {bound_to, "if-none-match", ON_BOUND},
    [POLICY_KEY_MAX_KEYS] = {max_keys, "max-keys"},
    [POLICY_KEY_OBJECT_CREATION_OPERATION] = {creation},
    [POLICY_KEY_OBJECT_LOCK_LEGAL_HOLD] = {lock_value},
    [POLICY_KEY_OBJECT_LOCK_MODE] = {lock_value},
    [POLICY_KEY_OBJECT_LOCK_REMAINING_RETENTION_DAYS] = {lock_value},
    [POLICY_KEY_OBJECT_LOCK_RETAIN_UNTIL_DATE] = {lock_value},
    [POLICY_KEY_PREFIX] = {parameter, "prefix"},
    [POLICY_KEY_REQUEST_OBJECT_TAG] = {request_tag},
    [POLICY_KEY_S3_RESOURCE_ACCOUNT] = {of_request},
    [POLICY_KEY_SIGNATURE_AGE] = {signature_age},
    [POLICY_KEY_SIGNATURE_VERSION] = {signature_version},
    [POLICY_KEY_TLS_VERSION] = {of_request},
    [POLICY_KEY_VERSION_ID] = {condition_version},
    [POLICY_KEY_X_AMZ_ACL] = {acted_header, "x-amz-acl", ON_NEW | ON_LIST},
    [POLICY_KEY_X_AMZ_CONTENT_SHA256] = {content_sha256, "x-amz-content-sha256"},
    [POLICY_KEY_X_AMZ_COPY_SOURCE] = {source_name, NULL, ON_SOURCE},
    [POLICY_KEY_X_AMZ_GRANT_FULL_CONTROL] = {acted_header, "x-amz-grant-full-control",
                                             ON_NEW | ON_LIST},
    [POLICY_KEY_X_AMZ_GRANT_READ] = {acted_header, "x-amz-grant-read", ON_NEW | ON_LIST},
    [POLICY_KEY_X_AMZ_GRANT_READ_ACP] = {acted_header, "x-amz-grant-read-acp", ON_NEW | ON_LIST},
    [POLICY_KEY_X_AMZ_GRANT_WRITE] = {acted_header, "x-amz-grant-write", ON_NEW | ON_LIST},
    [POLICY_KEY_X_AMZ_GRANT_WRITE_ACP] = {acted_header, "x-amz-grant-write-acp", ON_NEW | ON_LIST},
    [POLICY_KEY_X_AMZ_METADATA_DIRECTIVE] = {acted_header, "x-amz-metadata-directive", ON_COPY},
    [POLICY_KEY_X_AMZ_OBJECT_OWNERSHIP] = {ownership_set},
    [POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION] = {encryption, "x-amz-server-side-encryption",
                                                 ON_NEW},
    [POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION_AWS_KMS_KEY_ID] =
        {encryption, "x-amz-server-side-encryption-aws-kms-key-id", ON_NEW},
    [POLICY_KEY_X_AMZ_SERVER_SIDE_ENCRYPTION_CUSTOMER_ALGORITHM] =
        {encryption, "x-amz-server-side-encryption-customer-algorithm", ON_NEW},
    [POLICY_KEY_X_AMZ_STORAGE_CLASS] = {acted_header, "x-amz-storage-class", ON_NEW},
    [POLICY_KEY_X_AMZ_WEBSITE_REDIRECT_LOCATION] = {acted_header, "x-amz-website-redirect-location",
                                                    ON_NEW},
};

bool call_condition_value(void *ctx, enum policy_key key, struct str suffix,
                          struct policy_values *out)
{
    struct call *c = ctx;
    struct question q = {key, suffix, values[key].name, values[key].on};

    if (key == POLICY_KEY_REQUEST_OBJECT_TAG_KEYS)
        return request_tag_keys(c, out);
    c->value = values[key].fn ? values[key].fn(c, &q) : STR_EMPTY;
    *out = (struct policy_values){&c->value, 1};
    return c->value.p != NULL;
}
