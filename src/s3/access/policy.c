/* Bucket policies: compiles their statements, and decides requests by them. */
#include "s3/access/policy.h"

#include "s3/access/policy_int.h"

enum { RESOURCE_MAX = 2048 /* bytes: the bucket's name, '/' and the key */ };

size_t json_one_or_more(const json_t *json)
{
    return json_is_array(json) ? json_array_size(json) : json != NULL;
}

const json_t *json_item(const json_t *json, size_t i)
{
    return json_is_array(json) ? json_array_get(json, i) : json;
}

struct str json_text(const json_t *json)
{
    return json_is_string(json) ? str_n(json_string_value(json), json_string_length(json))
                                : STR_EMPTY;
}

/* Sets the bits of all actions that a pattern such as "s3:Get*" matches. */
static int compile_action(struct statement *s, struct str text)
{
    char room[128];
    struct str rest = text;
    bool any = false;

    if (!str_eq(text, STR("*"))) {
        if (text.len <= 3 || text.len > sizeof(room) || !str_ieq(str_head(text, 3), STR("s3:")))
            return ERR_PARSE;
        rest = str_skip(text, 3);
    }
    for (size_t i = 0; i < rest.len; i++) {
        unsigned char c = (unsigned char)rest.p[i];
        room[i] = (char)(c == '*' ? PATTERN_ANY : c == '?' ? PATTERN_ONE : c);
    }
    for (size_t i = 0; i < S3_ACTIONS; i++)
        if (pattern_match(str_n(room, rest.len), str_z(s3_actions[i].name), true)) {
            s->actions[i / 64] |= UINT64_C(1) << (i % 64);
            any = true;
        }
    return any ? 0 : ERR_PARSE;
}

static int compile_actions(struct statement *s, const json_t *json, bool negated, struct err *err)
{
    size_t count = json_one_or_more(json);

    if (count == 0)
        return err_set(err, S3_MALFORMED_POLICY, "Policy has invalid action");
    for (size_t i = 0; i < count; i++) {
        struct str text = json_text(json_item(json, i));
        if (!text.p || compile_action(s, text) < 0)
            return err_set(err, S3_MALFORMED_POLICY, "Policy has invalid action");
    }
    for (size_t i = 0; negated && i < ARRAY_SIZE(s->actions); i++)
        s->actions[i] = ~s->actions[i];
    return 0;
}

/* Sets *rest to the part behind "arn:aws:s3:::", or to "*" when that is the whole text. Returns
 * false when the text is neither. */
static bool cut_resource(struct str text, struct str *rest)
{
    struct str fields[5];

    *rest = text;
    if (str_eq(text, STR("*")))
        return true;
    for (size_t i = 0; i < 5; i++)
        if (!str_cut(*rest, ':', &fields[i], rest))
            return false;
    return str_eq(fields[0], STR("arn")) && str_starts(fields[1], STR("aws")) &&
           str_eq(fields[2], STR("s3")) && fields[3].len == 0 && fields[4].len == 0 && rest->len;
}

/* Whether the pattern can match this bucket or an object in it. */
static bool is_of_bucket(const struct pattern *p, struct str bucket)
{
    struct str name, rest;

    str_cut(p->text, '/', &name, &rest);
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.p[i] == PATTERN_OPEN)
            return true;
    return pattern_match(name, bucket, false);
}

static int compile_resources(struct statement *s, struct arena *a, const json_t *json,
                             struct str bucket, unsigned flags, struct err *err)
{
    size_t count = json_one_or_more(json);

    s->resources = arena_array(a, count, sizeof(*s->resources));
    if (count > 0 && !s->resources)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++) {
        struct str text = json_text(json_item(json, i)), rest;
        struct pattern *p = &s->resources[s->resource_count++];
        int code =
            text.p && cut_resource(text, &rest) ? pattern_compile(p, a, rest, flags) : ERR_PARSE;
        if (code == ERR_NO_MEMORY)
            return err_code(err, code);
        if (code < 0 || !is_of_bucket(p, bucket))
            return err_set(err, S3_MALFORMED_POLICY, "Policy has invalid resource");
    }
    return count > 0 ? 0 : err_set(err, S3_MALFORMED_POLICY, "Policy has invalid resource");
}

static int check_fields(const json_t *json, const char *const *names, size_t count, struct err *err)
{
    for (void *it = json_object_iter((json_t *)json); it;
         it = json_object_iter_next((json_t *)json, it)) {
        const char *field = json_object_iter_key(it);
        size_t i = 0;
        while (i < count && strcmp(field, names[i]) != 0)
            i++;
        if (i == count)
            return err_set(err, S3_MALFORMED_POLICY, "Unknown field %.64s", field);
    }
    return 0;
}

/* Finds a field of the statement or its negation, such as Action or NotAction. The statement must
 * have exactly one of the two. */
static int pick(const json_t *json, const char *name, const char *negation, const json_t **out,
                bool *negated, struct err *err)
{
    const json_t *plain = json_object_get(json, name), *other = json_object_get(json, negation);

    if (!plain == !other)
        return err_set(err, S3_MALFORMED_POLICY,
                       plain ? "A statement has both %s and Not%s" : "Missing required field %s",
                       name, name);
    *negated = other != NULL;
    *out = plain ? plain : other;
    return 0;
}

static int compile_effect(struct statement *s, const json_t *json, struct err *err)
{
    struct str effect = json_get_str(json, "Effect", STR_EMPTY);
    const json_t *sid = json_object_get(json, "Sid");

    if (!json_object_get(json, "Effect"))
        return err_set(err, S3_MALFORMED_POLICY, "Missing required field Effect");
    if (sid && !json_is_string(sid))
        return err_set(err, S3_MALFORMED_POLICY, "Sid must be a string");
    if (!str_eq(effect, STR("Allow")) && !str_eq(effect, STR("Deny")))
        return err_set(err, S3_MALFORMED_POLICY, "Invalid effect");
    s->effect = str_eq(effect, STR("Allow")) ? POLICY_ALLOW : POLICY_DENY;
    return 0;
}

static int compile_who(struct statement *s, struct arena *a, const json_t *json, struct err *err)
{
    const json_t *member;
    int code = pick(json, "Principal", "NotPrincipal", &member, &s->not_principal, err);

    if (code < 0)
        return code;
    if (s->not_principal && s->effect == POLICY_ALLOW)
        return err_set(err, S3_MALFORMED_POLICY, "Allow with NotPrincipal is not allowed");
    return principals_compile(s, a, member, err);
}

static int compile_statement(struct statement *s, struct arena *a, const json_t *json,
                             struct str bucket, bool variables, struct err *err)
{
    static const char *const fields[] = {"Sid",          "Effect",      "Principal",
                                         "NotPrincipal", "Action",      "NotAction",
                                         "Resource",     "NotResource", "Condition"};
    unsigned flags = PATTERN_WILD | (variables ? PATTERN_VARIABLES : 0);
    const json_t *member, *condition = json_object_get(json, "Condition");
    bool negated = false;
    int code = json_is_object(json) ? check_fields(json, fields, ARRAY_SIZE(fields), err)
                                    : err_set(err, S3_MALFORMED_POLICY, "Invalid statement");

    if (code == 0)
        code = compile_effect(s, json, err);
    if (code == 0)
        code = compile_who(s, a, json, err);
    if (code == 0)
        code = pick(json, "Action", "NotAction", &member, &negated, err);
    if (code == 0)
        code = compile_actions(s, member, negated, err);
    if (code == 0)
        code = pick(json, "Resource", "NotResource", &member, &s->not_resource, err);
    if (code == 0)
        code = compile_resources(s, a, member, bucket, flags, err);
    if (code == 0 && condition)
        code = conditions_compile(&s->conditions, a, condition, variables, err);
    return code;
}

static int compile_head(struct policy *p, const json_t *json, struct err *err)
{
    static const char *const fields[] = {"Version", "Id", "Statement"};
    const json_t *version = json_object_get(json, "Version"), *id = json_object_get(json, "Id");
    struct str text = json_text(version);

    if (!json_is_object(json))
        return err_set(err, S3_MALFORMED_POLICY, "This policy contains invalid Json");
    if (version && !str_eq(text, STR("2012-10-17")) && !str_eq(text, STR("2008-10-17")))
        return err_set(err, S3_MALFORMED_POLICY, "The policy must contain a valid version string");
    if (id && !json_is_string(id))
        return err_set(err, S3_MALFORMED_POLICY, "Id must be a string");
    p->variables = str_eq(text, STR("2012-10-17"));
    return check_fields(json, fields, ARRAY_SIZE(fields), err);
}

static int compile_json(struct policy *p, struct arena *a, const json_t *json, struct str bucket,
                        struct err *err)
{
    const json_t *list = json_object_get(json, "Statement");
    int code = compile_head(p, json, err);

    if (code < 0)
        return code;
    p->count = json_one_or_more(list);
    p->statements = arena_array(a, p->count, sizeof(*p->statements));
    if (p->count == 0)
        return err_set(err, S3_MALFORMED_POLICY, "Missing required field Statement");
    if (!p->statements)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < p->count && code == 0; i++)
        code =
            compile_statement(&p->statements[i], a, json_item(list, i), bucket, p->variables, err);
    if (code == 0 && arena_error(a) < 0)
        code = err_code(err, ERR_NO_MEMORY);
    return code;
}

int policy_compile(struct policy **out, struct arena *a, struct str text, struct str bucket,
                   struct err *err)
{
    struct policy *p = arena_new(a, struct policy);
    json_t *json = NULL;
    int code;

    if (!p)
        return err_code(err, ERR_NO_MEMORY);
    if (text.len > POLICY_MAX_BYTES)
        return err_set(err, S3_MALFORMED_POLICY,
                       "Policy exceeds the maximum allowed document size.");
    if (json_read(&json, text, err) < 0)
        return err_set(err, S3_MALFORMED_POLICY, "This policy contains invalid Json");
    code = compile_json(p, a, json, bucket, err);
    json_decref(json);
    p->large = text.len > POLICY_FAST_BYTES;
    if (code == 0)
        *out = p;
    return code;
}

static int never_given(struct str key, struct err *err)
{
    return err_set(err, S3_MALFORMED_POLICY,
                   "No request has the policy variable " STR_FMT ", and it has no default",
                   STR_ARG(str_head(key, 128)));
}

static int check_patterns(const struct statement *s, struct err *err)
{
    struct str never = STR_EMPTY;

    for (size_t i = 0; i < s->resource_count && !never.len; i++)
        never = pattern_never(&s->resources[i]);
    for (const struct condition *c = s->conditions; c; c = c->next)
        for (size_t i = 0; i < c->count && !never.len; i++)
            never = pattern_never(&c->values[i].pattern);
    return never.len ? never_given(never, err) : 0;
}

int policy_check_keys(const struct policy *p, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < p->count && code == 0; i++) {
        const struct condition *never = conditions_never(p->statements[i].conditions);
        if (never)
            return err_set(err, S3_MALFORMED_POLICY,
                           "No request has the condition key %s" STR_FMT
                           ", so %s on it never holds",
                           policy_keys[never->key].name, STR_ARG(str_head(never->suffix, 128)),
                           never->op->name);
        code = check_patterns(&p->statements[i], err);
    }
    return code;
}

/* Whether the principal covers `who`. "Everybody" covers a service of weir only in a statement that
 * denies; a statement that allows must name the service. */
static bool principal_is(const struct principal *p, const struct policy_who *who, bool denies)
{
    switch (p->kind) {
    case PRINCIPAL_ANY:
        return denies || !who->service.len;
    case PRINCIPAL_ID:
        return who->id.len && str_eq(p->name, who->id);
    case PRINCIPAL_USER:
        return who->id.len && (p->account.len == 0 || str_eq(p->account, who->id)) &&
               (str_eq(p->name, who->id) || (who->name.len && str_eq(p->name, who->name)));
    case PRINCIPAL_SERVICE:
        return who->service.len && str_eq(p->name, who->service);
    default:
        return false;
    }
}

static bool is_about(const struct statement *s, const struct policy_who *who)
{
    for (size_t i = 0; i < s->principal_count; i++)
        if (principal_is(&s->principals[i], who, s->effect == POLICY_DENY))
            return !s->not_principal;
    return s->not_principal;
}

static bool covers(const struct statement *s, const struct policy_request *r, struct str resource)
{
    for (size_t i = 0; i < s->resource_count; i++) {
        struct str pattern;
        if (pattern_expand(&s->resources[i], r, &pattern) &&
            pattern_match(pattern, resource, false))
            return !s->not_resource;
    }
    return s->not_resource;
}

bool statement_has_action(const struct statement *s, enum s3_action action)
{
    return s->actions[action / 64] >> (action % 64) & 1;
}

bool statement_concerns(const struct statement *s, const struct policy_who *who,
                        enum s3_action action)
{
    return statement_has_action(s, action) && is_about(s, who);
}

static bool applies(const struct statement *s, const struct policy_request *r, struct str resource)
{
    return statement_concerns(s, &r->who, r->action) && covers(s, r, resource) &&
           conditions_hold(s->conditions, r, s->effect == POLICY_DENY);
}

bool policy_is_large(const struct policy *p)
{
    return p->large;
}

bool policy_may_allow(const struct policy *p, const struct policy_who *who, enum s3_action action)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct statement *s = &p->statements[i];
        if (s->effect == POLICY_ALLOW && statement_concerns(s, who, action))
            return true;
    }
    return false;
}

enum policy_effect policy_evaluate(const struct policy *p, const struct policy_request *r)
{
    enum policy_effect effect = POLICY_NONE;
    char room[RESOURCE_MAX];
    struct str resource = str_n(room, r->bucket.len + (r->key.len ? 1 + r->key.len : 0));

    if (r->bucket.len > RESOURCE_MAX || resource.len > RESOURCE_MAX)
        return POLICY_DENY;
    memcpy(room, r->bucket.p, r->bucket.len);
    if (r->key.len) {
        room[r->bucket.len] = '/';
        memcpy(room + r->bucket.len + 1, r->key.p, r->key.len);
    }
    for (size_t i = 0; i < p->count; i++) {
        const struct statement *s = &p->statements[i];
        if (effect == s->effect || !applies(s, r, resource))
            continue;
        effect = s->effect;
        if (effect == POLICY_DENY)
            return effect;
    }
    return arena_error(r->arena) < 0 ? POLICY_DENY : effect;
}

bool policy_is_public(const struct policy *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct statement *s = &p->statements[i];
        bool anyone = false;
        for (size_t k = 0; k < s->principal_count; k++)
            anyone |= s->principals[k].kind == PRINCIPAL_ANY;
        if (s->effect == POLICY_ALLOW && anyone && !conditions_limit_public(s->conditions))
            return true;
    }
    return false;
}
