/* Handles headers that came as query parameters. A program that presigns an address may put x-amz-*
 * headers into its query instead of naming them in X-Amz-SignedHeaders, so that users of the
 * address need not send them. SDKs do that by default and call it hoisting. Such parameters are
 * signed with the query and mean the same as the headers. Two parameters of weir's own stand for
 * conditions: x-weir-if-none-match for If-None-Match, for addresses that can be written to once,
 * and x-weir-if-match for If-Match, for addresses that read only the object with this ETag. */
#include "s3/gateway/gateway_int.h"

/* Parameters of a presigned request's signature itself. */
static const struct str presigned[] = {
    STR("X-Amz-Algorithm"),      STR("X-Amz-Credential"),     STR("X-Amz-Date"),
    STR("X-Amz-Expires"),        STR("X-Amz-SignedHeaders"),  STR("X-Amz-Signature"),
    STR("X-Amz-Security-Token"), STR("X-Amz-Content-Sha256"),
};

/* The parameters by which auth.c recognizes a presigned request. */
static const struct str shows[] = {
    STR("X-Amz-Algorithm"),
    STR("X-Amz-Credential"),
    STR("X-Amz-Signature"),
};

static bool is_of_signature(struct str parameter)
{
    for (size_t i = 0; i < ARRAY_SIZE(presigned); i++)
        if (str_ieq(parameter, presigned[i]))
            return true;
    return false;
}

/* Parameters of weir's own, and the headers that they stand for. */
static const struct {
    struct str parameter, header;
} conditions[] = {
    {STR("x-weir-if-match"), STR("if-match")},
    {STR("x-weir-if-none-match"), STR("if-none-match")},
};

/* Returns the name of the header that a parameter stands for; its `p` is NULL when the parameter
 * stands for none. */
static struct str hoisted_name(struct str parameter)
{
    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
        if (str_ieq(parameter, conditions[i].parameter))
            return conditions[i].header;
    return str_ieq(str_head(parameter, 6), STR("x-amz-")) ? parameter : STR_EMPTY;
}

bool call_hoists(const struct call *c, struct str parameter)
{
    return c->hoists && !is_of_signature(parameter) && hoisted_name(parameter).p;
}

/* Whether the request is presigned with signature version 4, by the same test as in auth.c. As
 * there, names are not decoded: "%58-Amz-Algorithm" does not count. Signature version 2 does not
 * cover x-amz-* parameters, so they cannot stand for headers there. A preflight has no hoisted
 * headers, and the query of a request to a website is not parsed. */
static bool is_presigned(const struct call *c)
{
    struct str rest = c->head->query, name, value;

    if (c->head->method == HTTP_OPTIONS || !c->query_count)
        return false;
    while (url_query_next(&rest, &name, &value))
        for (size_t i = 0; i < ARRAY_SIZE(shows); i++)
            if (str_eq(name, shows[i]))
                return true;
    return false;
}

/* Is the parameter the checksum of an empty body, or the name of its algorithm? SDKs that presign
 * an upload before they have its body put both into the query, and S3 ignores them. Any other
 * checksum counts. */
static bool is_of_nothing(struct call *c, const struct call_param *p)
{
    struct digest_value sum = {0};
    enum digest_kind kind;

    if (str_ieq(p->name, STR("x-amz-sdk-checksum-algorithm")))
        return true;
    if (!checksum_by_header(p->name, &kind))
        return false;
    digest_of(kind, STR(""), &sum);
    return str_eq(p->value, digest_text(c->a, &sum));
}

static int hoist(struct http_head *to, const struct call_param *p, struct err *err)
{
    struct str there = STR_EMPTY, name = hoisted_name(p->name), value = str_trim(p->value);

    if (!http_field_is_valid(name, value))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "The parameter \"" STR_FMT "\" stands for a header and cannot be one.",
                       STR_ARG(str_head(p->name, 64)));
    for (size_t i = 0; i < to->header_count && !there.p; i++)
        if (str_ieq(to->headers[i].name, name))
            there = to->headers[i].value;
    if (there.p)
        return str_eq(there, value)
                   ? 0
                   : err_set(err, S3_INVALID_REQUEST,
                             "The values of " STR_FMT " in the query and in the header differ.",
                             STR_ARG(str_head(name, 64)));
    if (to->header_count == HTTP_MAX_HEADERS)
        return err_set(err, S3_INVALID_REQUEST, "The request has too many headers.");
    to->headers[to->header_count++] = (struct http_header){name, value};
    return 0;
}

int call_hoist(struct call *c, struct err *err)
{
    struct http_head *head = NULL;
    int code = 0;

    c->hoists = is_presigned(c);
    for (size_t i = 0; i < c->query_count && code == 0; i++) {
        if (!call_hoists(c, c->query[i].name) || is_of_nothing(c, &c->query[i]))
            continue;
        if (!head) {
            head = arena_new(c->a, struct http_head);
            if (!head)
                return err_code(err, ERR_NO_MEMORY);
            *head = *c->head;
            c->head = head;
        }
        code = hoist(head, &c->query[i], err);
    }
    return code;
}
