/* Finds which operation a request is: a row of the table. The operation must know every parameter
 * of the query, because an unknown parameter may be a sub-resource of a later version of S3. A
 * DELETE of such a sub-resource must not delete the bucket. */
#include "s3/gateway/gateway_int.h"

/* Sub-resources that S3 has but gateway_table.c does not. Even a read of such a sub-resource must
 * not count as the plain operation of its method. In the address of an object, sub-resources of
 * buckets mean nothing: there "?session=1" only makes another address for caches. */
static const struct {
    const char *name;
    bool of_objects; /* objects have this sub-resource too */
} strange[] = {
    {"accelerate", false},
    {"analytics", false},
    {"intelligent-tiering", false},
    {"inventory", false},
    {"metrics", false},
    {"select", true},
    {"metadataTable", false},
    {"session", false},
    {"renameObject", true},
    {"append", true},
    {"metadataConfiguration", false},
    {"metadataInventoryTable", false},
    {"metadataJournalTable", false},
    {"metadataAnnotationTable", false},
    {"annotation", true},
    {"annotations", true},
    {"abac", false},
    {"encryptionConfiguration", true},
};

/* Sub-resources that the table has only with certain methods. With any other method the answer is
 * MethodNotAllowed. */
static const char *const plain_refuses[] = {
    "acl",          "cors",        "policy",
    "policyStatus", "tagging",     "publicAccessBlock",
    "lifecycle",    "retention",   "legal-hold",
    "versioning",   "object-lock", "ownershipControls",
    "delete",       "uploads",     "location",
    "website",      "encryption",  "logging",
    "notification", "replication", "requestPayment",
    "torrent",      "attributes",  "restore",
};

/* Parameters that say which version, upload or part a request is about. They may be given only
 * once. */
static const char *const once[] = {"versionId", "uploadId", "partNumber"};

/* Parameters that every operation ignores: those of signatures of version 2, and headers that
 * botocore puts into the query. Parameters that begin with x- or response- are ignored too. */
static const char *const ignored[] = {
    "AWSAccessKeyId", "Signature", "Expires", "content-type", "content-md5",
};

/* Parameters that choose a part of a listing and its form. No client signs them by version 2, so a
 * request may have them although the signature does not cover them. Reads may have them without a
 * value. */
static const char *const list_takes[] = {
    "prefix",
    "delimiter",
    "marker",
    "max-keys",
    "encoding-type",
    "list-type",
    "continuation-token",
    "fetch-owner",
    "start-after",
    "key-marker",
    "version-id-marker",
    "upload-id-marker",
    "max-uploads",
    "part-number-marker",
    "max-parts",
    "allow-unordered",
    "max-buckets",
    "bucket-region",
};

/* Parameters that reads may have without a value, besides list_takes and sub-resources of the
 * table. */
static const char *const read_takes[] = {
    "versions", "versionId", "uploadId", "partNumber", "read-stats", "usage",
};

static bool is_any(struct str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(name, str_z(names[i])))
            return true;
    return false;
}

static bool call_reads(const struct call *c)
{
    enum http_method m = c->head->method;

    return m == HTTP_GET || m == HTTP_HEAD || m == HTTP_OPTIONS;
}

static bool names_any(const struct call *c, const char *const *names, size_t count)
{
    for (size_t i = 0; c->query_count && i < count; i++)
        if (call_param(c, names[i]).p)
            return true;
    return false;
}

/* Returns the sub-resource in the query that S3 has but gateway_table.c does not; NULL: none. */
static const char *strange_resource(const struct call *c)
{
    for (size_t i = 0; c->query_count && i < ARRAY_SIZE(strange); i++)
        if ((strange[i].of_objects || c->level != LEVEL_OBJECT) && call_param(c, strange[i].name).p)
            return strange[i].name;
    return NULL;
}

/* Does the parameter begin with x-, or is it in `ignored`? A parameter that begins with x- is a
 * client's note for the access log, as on AWS, or belongs to a signature, or is the operation's
 * name (x-id), which SDKs add. */
static bool is_note(struct str parameter)
{
    return str_ieq(str_head(parameter, 2), STR("x-")) ||
           is_any(parameter, ignored, ARRAY_SIZE(ignored));
}

bool call_ignores(struct str parameter)
{
    return is_note(parameter) || str_starts(parameter, STR("response-"));
}

/* Refuses a parameter that the signature does not cover (docs/signatures.md, A7). Names are
 * compared as they were sent: an encoded name ("%61cl") is not covered by the signature and still
 * names the sub-resource. */
int call_check_v2(const struct call *c, struct err *err)
{
    struct str rest = c->head->query, sent, value;

    for (size_t i = 0; i < c->query_count && url_query_next(&rest, &sent, &value); i++) {
        struct str name = c->query[i].name;
        if (name.len && !sign_v2_covers(sent) && !is_note(name) &&
            !is_any(name, list_takes, ARRAY_SIZE(list_takes)))
            return err_set(err, S3_ACCESS_DENIED,
                           "Signature version 2 does not cover the parameter " STR_FMT
                           ". Please use AWS4-HMAC-SHA256.",
                           STR_ARG(str_head(name, 64)));
    }
    return 0;
}

/* May a read have this parameter? The address of an object may have any parameter, because
 * clients add parameters to get another address for caches. */
static bool read_knows(const struct call *c, const struct call_param *p)
{
    return c->level == LEVEL_OBJECT || p->value.len > 0 ||
           is_any(p->name, list_takes, ARRAY_SIZE(list_takes)) ||
           is_any(p->name, read_takes, ARRAY_SIZE(read_takes)) ||
           is_any(p->name, plain_refuses, ARRAY_SIZE(plain_refuses));
}

static bool change_knows(const struct call *c, const struct call_param *p)
{
    if (c->op->query && str_eq(p->name, str_z(c->op->query)))
        return true;
    return c->op->takes && str_eq(p->name, str_z(c->op->takes));
}

/* Returns the first parameter that the operation c->op does not know; NULL: it knows them all. */
static const struct call_param *unknown_parameter(const struct call *c)
{
    bool reads = call_reads(c);

    for (size_t i = 0; i < c->query_count; i++) {
        const struct call_param *p = &c->query[i];
        if (p->name.len && !call_ignores(p->name) &&
            !(reads ? read_knows(c, p) : change_knows(c, p)))
            return p;
    }
    return NULL;
}

/* Returns the sub-resource of this name, in upper or lower case; NULL: there is none. */
static const char *resource_of(const struct call *c, struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(plain_refuses); i++)
        if (str_ieq(name, str_z(plain_refuses[i])))
            return plain_refuses[i];
    for (size_t i = 0; i < ARRAY_SIZE(strange); i++)
        if ((strange[i].of_objects || c->level != LEVEL_OBJECT) &&
            str_ieq(name, str_z(strange[i].name)))
            return strange[i].name;
    for (size_t i = 0; i < operation_count; i++)
        if (operations[i].level == c->level && operations[i].query &&
            str_ieq(name, str_z(operations[i].query)))
            return operations[i].query;
    return NULL;
}

static int check_repeated(const struct call *c, struct err *err)
{
    for (size_t i = 0; i < c->query_count; i++)
        for (size_t k = 0; k < i && is_any(c->query[i].name, once, ARRAY_SIZE(once)); k++)
            if (str_eq(c->query[i].name, c->query[k].name))
                return err_set(err, S3_INVALID_ARGUMENT, "The parameter " STR_FMT " is given twice",
                               STR_ARG(c->query[i].name));
    return 0;
}

/* Refuses a known parameter in another case of letters, because some servers ignore the case. */
static int check_spelling(struct str name, const char *right, struct err *err)
{
    if (!right || str_eq(name, str_z(right)))
        return 0;
    return err_set(err, S3_INVALID_ARGUMENT, "The parameter " STR_FMT " is spelled %s",
                   STR_ARG(name), right);
}

static const char *once_of(struct str name)
{
    for (size_t i = 0; i < ARRAY_SIZE(once); i++)
        if (str_ieq(name, str_z(once[i])))
            return once[i];
    return NULL;
}

static int check_resources(const struct call *c, struct err *err)
{
    const char *chosen = NULL;

    for (size_t i = 0; i < c->query_count; i++) {
        struct str name = c->query[i].name;
        const char *resource = resource_of(c, name);
        if (check_spelling(name, resource ? resource : once_of(name), err) < 0)
            return S3_INVALID_ARGUMENT;
        if (resource && chosen && strcmp(resource, chosen) != 0)
            return err_set(err, S3_INVALID_ARGUMENT, "Conflicting query string parameters: %s, %s",
                           chosen, resource);
        chosen = resource ? resource : chosen;
    }
    return 0;
}

/* Checks that the query cannot be read in two ways (docs/forward.md, F13). */
static int check_query(const struct call *c, struct err *err)
{
    int code = c->query_count > 1 ? check_repeated(c, err) : 0;

    return code < 0 || c->query_count == 0 || call_reads(c) ? code : check_resources(c, err);
}

static bool row_fits(const struct call *c, const struct operation *op)
{
    return op->method == c->head->method && op->level == c->level &&
           (!op->query || (c->query_count && call_param(c, op->query).p)) &&
           (!op->header || http_header(c->head, op->header).p);
}

/* Handles an unknown sub-resource. A storage that does not know it either ignores it and does the
 * plain operation. So for a request that changes something, two sets of changes are announced to
 * replication: those of the plain operation, and the most that such a request could change
 * (docs/forward.md, F11). A read with an unknown sub-resource is not an operation that weir knows.
 */
static void look_beyond(struct call *c)
{
    c->beyond = c->op && !call_reads(c);
    if (!c->beyond)
        c->op = NULL;
}

static int find_operation(struct call *c, struct err *err)
{
    const char *other = strange_resource(c);
    const struct call_param *unknown;

    for (size_t i = 0; i < operation_count && !c->op; i++)
        if (row_fits(c, &operations[i]))
            c->op = &operations[i];
    if (other) {
        look_beyond(c);
        return err_set(err, S3_NOT_IMPLEMENTED, "The sub-resource %s is not implemented", other);
    }
    if (c->op && !c->op->query && names_any(c, plain_refuses, ARRAY_SIZE(plain_refuses))) {
        look_beyond(c);
        return s3_fail(err, S3_METHOD_NOT_ALLOWED);
    }
    if (!c->op)
        return s3_fail(err, S3_METHOD_NOT_ALLOWED);
    unknown = unknown_parameter(c);
    c->beyond = unknown != NULL;
    if (!unknown)
        return 0;
    return err_set(err, S3_NOT_IMPLEMENTED, "The parameter " STR_FMT " of %s is not implemented",
                   STR_ARG(str_head(unknown->name, 64)), s3_operations[c->op->id].name);
}

int call_find_operation(struct call *c, struct err *err)
{
    int code = check_query(c, err);

    if (code < 0)
        return code;
    code = find_operation(c, err);
    if (code == 0 || !routes_any_remote(c->g->o.routes))
        return code;
    c->refusal = arena_new(c->a, struct err);
    if (!c->refusal)
        return err_code(err, ERR_NO_MEMORY);
    *c->refusal = *err;
    return 0;
}
