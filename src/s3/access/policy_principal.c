/* Parses the principals of policies, which say who a statement is about. */
#include "s3/access/policy_int.h"

static int principal_invalid(struct err *err)
{
    return err_set(err, S3_MALFORMED_POLICY, "Invalid principal in policy");
}

/* Parses "arn:aws:iam::ACCOUNT:root", "arn:aws:iam::ACCOUNT:user/PATH/NAME", or the ARN of a role
 * or session, which matches no user of weir. */
static int parse_arn(struct principal *out, struct str arn, struct err *err)
{
    struct str fields[5], rest = arn;

    for (size_t i = 0; i < 5; i++)
        if (!str_cut(rest, ':', &fields[i], &rest))
            return principal_invalid(err);
    if (!str_starts(fields[1], STR("aws")) || fields[3].len || rest.len == 0 ||
        (!str_eq(fields[2], STR("iam")) && !str_eq(fields[2], STR("sts"))))
        return principal_invalid(err);
    *out = (struct principal){PRINCIPAL_ROLE, fields[4], rest};
    if (str_eq(fields[2], STR("sts")))
        return 0;
    if (str_eq(rest, STR("root"))) {
        if (fields[4].len == 0)
            return principal_invalid(err);
        *out = (struct principal){PRINCIPAL_ID, fields[4], fields[4]};
    } else if (str_starts(rest, STR("user/"))) {
        while (str_cut(rest, '/', &out->name, &rest))
            ;
        if (out->name.len == 0)
            return principal_invalid(err);
        out->kind = PRINCIPAL_USER;
    } else if (!str_starts(rest, STR("role/"))) {
        return principal_invalid(err);
    }
    return 0;
}

static int parse_aws(struct principal *out, struct str text, struct err *err)
{
    if (str_eq(text, STR("*"))) {
        *out = (struct principal){.kind = PRINCIPAL_ANY};
        return 0;
    }
    if (text.len == 0 || str_chr(text, '*') >= 0 || str_chr(text, '?') >= 0)
        return principal_invalid(err);
    if (str_starts(text, STR("arn:")))
        return parse_arn(out, text, err);
    *out = (struct principal){PRINCIPAL_ID, STR_EMPTY, text};
    return 0;
}

static int parse_principal(struct principal *out, struct str kind, struct str text, struct err *err)
{
    if (str_eq(kind, STR("AWS")))
        return parse_aws(out, text, err);
    if (text.len == 0)
        return principal_invalid(err);
    if (str_eq(kind, STR("CanonicalUser")))
        *out = (struct principal){PRINCIPAL_ID, STR_EMPTY, text};
    else if (str_eq(kind, STR("Service")))
        *out = (struct principal){PRINCIPAL_SERVICE, STR_EMPTY, text};
    else if (str_eq(kind, STR("Federated")))
        *out = (struct principal){PRINCIPAL_FEDERATED, STR_EMPTY, text};
    else
        return principal_invalid(err);
    return 0;
}

static size_t count_all(const json_t *json)
{
    size_t count = 0;

    for (void *it = json_object_iter((json_t *)json); it;
         it = json_object_iter_next((json_t *)json, it))
        count += json_one_or_more(json_object_iter_value(it));
    return count;
}

static int compile_kind(struct statement *s, struct arena *a, struct str kind, const json_t *list,
                        struct err *err)
{
    size_t count = json_one_or_more(list);

    if (count == 0)
        return principal_invalid(err);
    for (size_t i = 0; i < count; i++) {
        struct str text = json_text(json_item(list, i));
        int code;
        if (!text.p)
            return principal_invalid(err);
        code = parse_principal(&s->principals[s->principal_count++], kind, arena_str(a, text), err);
        if (code < 0)
            return code;
    }
    return 0;
}

int principals_compile(struct statement *s, struct arena *a, const json_t *json, struct err *err)
{
    bool anyone = json_is_string(json) && str_eq(json_text(json), STR("*"));
    size_t count = anyone ? 1 : count_all(json);

    if (count == 0)
        return principal_invalid(err);
    s->principals = arena_array(a, count, sizeof(*s->principals));
    if (!s->principals)
        return err_code(err, ERR_NO_MEMORY);
    if (anyone) {
        s->principals[s->principal_count++].kind = PRINCIPAL_ANY;
        return 0;
    }
    for (void *it = json_object_iter((json_t *)json); it;
         it = json_object_iter_next((json_t *)json, it)) {
        int code =
            compile_kind(s, a, str_z(json_object_iter_key(it)), json_object_iter_value(it), err);
        if (code < 0)
            return code;
    }
    return arena_error(a) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int check_principal(const struct principal *p, bool allows, policy_find_fn *find, void *ctx,
                           struct err *err)
{
    int code = 0;

    if (p->kind == PRINCIPAL_ID || p->kind == PRINCIPAL_USER)
        code = find(ctx, p->account, p->name, p->kind == PRINCIPAL_USER, err);
    else if (p->kind == PRINCIPAL_ROLE)
        code = ERR_NOT_FOUND;
    if (code != ERR_NOT_FOUND)
        return code;
    bool elsewhere = p->kind == PRINCIPAL_ROLE || (p->kind == PRINCIPAL_ID && p->account.len);
    return allows && elsewhere ? 0 : principal_invalid(err);
}

int policy_check_principals(const struct policy *p, policy_find_fn *find, void *ctx,
                            struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < p->count && code == 0; i++) {
        const struct statement *s = &p->statements[i];
        for (size_t k = 0; k < s->principal_count && code == 0; k++)
            code = check_principal(&s->principals[k], s->effect == POLICY_ALLOW, find, ctx, err);
    }
    return code;
}
