/* Checks the policy of a POST form: who signed it, and whether the form fulfils it. */
#include "base/clock.h"
#include "base/json.h"
#include "sign/base64.h"
#include "meta/error.h"
#include "s3/gateway/form.h"

/* A check of a form, with the fields that conditions have named so far. */
struct check {
    struct form *f;
    struct str bucket;
    bool covered[FORM_FIELDS_MAX];
    bool bucket_covered;
    struct err *err;
};

struct condition {
    bool starts_with; /* the field must start with the value; false: it must be equal */
    struct str name, value;
};

static int form_policy_invalid(struct err *err, const char *what)
{
    return err_set(err, S3_INVALID_POLICY_DOCUMENT, "Invalid Policy: %s", what);
}

static int missing(struct err *err, const char *name)
{
    return err_set(err, S3_INVALID_ARGUMENT,
                   "Bucket POST must contain a field named '%s'.  If it is specified, please check "
                   "the order of the fields.",
                   name);
}

static bool form_condition_holds(const struct condition *c, struct str value)
{
    return c->starts_with ? str_starts(value, c->value) : str_eq(value, c->value);
}

/* Checks that the condition holds for each field with the condition's name. A missing field counts
 * as empty. */
static int condition_apply(struct check *check, const struct condition *c)
{
    bool found = false, ok = true;

    if (str_ieq(c->name, STR("bucket"))) {
        check->bucket_covered = found = true;
        ok = form_condition_holds(c, check->bucket);
    }
    for (size_t i = 0; i < check->f->field_count; i++) {
        if (!str_ieq(check->f->fields[i].name, c->name))
            continue;
        found = check->covered[i] = true;
        ok = ok && form_condition_holds(c, check->f->fields[i].value);
    }
    if (!c->starts_with && str_ieq(c->name, STR("x-amz-date")))
        check->f->date_is_signed = true;
    if (found ? ok : form_condition_holds(c, STR_EMPTY))
        return 0;
    return err_set(check->err, S3_ACCESS_DENIED,
                   "Invalid according to Policy: Policy Condition failed: [\"%s\", \"$" STR_FMT
                   "\", \"" STR_FMT "\"]",
                   c->starts_with ? "starts-with" : "eq", STR_ARG(str_head(c->name, 100)),
                   STR_ARG(str_head(c->value, 200)));
}

static struct str form_policy_text(const json_t *value)
{
    return str_n(json_string_value(value), json_string_length(value));
}

/* Applies a condition such as {"acl": "private"}. */
static int simple_condition(struct check *check, json_t *object)
{
    const char *name;
    json_t *value;
    int code = 0;

    if (json_object_size(object) != 1)
        return form_policy_invalid(check->err,
                                   "Invalid Simple-Condition: Simple-Conditions must have exactly "
                                   "one property specified.");
    json_object_foreach(object, name, value)
    {
        struct condition c = {false, str_z(name), form_policy_text(value)};
        code = json_is_string(value)
                   ? condition_apply(check, &c)
                   : form_policy_invalid(check->err, "Invalid Simple-Condition: value must "
                                                     "be a string.");
    }
    return code;
}

static bool form_policy_number(const json_t *value, uint64_t *out)
{
    if (json_is_string(value))
        return str_u64(form_policy_text(value), out) == 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* Applies a condition such as ["content-length-range", 1, 1024]. If there are several such
 * conditions, the file must fulfil all of them. */
static int length_range(struct check *check, const json_t *list)
{
    uint64_t min, max;

    if (json_array_size(list) != 3 || !form_policy_number(json_array_get(list, 1), &min) ||
        !form_policy_number(json_array_get(list, 2), &max) || min > max)
        return form_policy_invalid(
            check->err, "Invalid Condition: content-length-range needs a least and a most.");
    check->f->min = min > check->f->min ? min : check->f->min;
    check->f->max = max < check->f->max ? max : check->f->max;
    return 0;
}

/* Applies a condition such as ["eq", "$acl", "private"]. */
static int list_condition(struct check *check, const json_t *list)
{
    const json_t *field = json_array_get(list, 1), *value = json_array_get(list, 2);
    struct str operation = form_policy_text(json_array_get(list, 0));
    struct condition c = {.name = form_policy_text(field), .value = form_policy_text(value)};

    if (str_ieq(operation, STR("content-length-range")))
        return length_range(check, list);
    c.starts_with = str_ieq(operation, STR("starts-with"));
    if (!c.starts_with && !str_ieq(operation, STR("eq")))
        return form_policy_invalid(check->err, "Invalid Condition: unknown operation.");
    if (json_array_size(list) != 3 || !json_is_string(field) || !json_is_string(value) ||
        !str_starts(c.name, STR("$")))
        return form_policy_invalid(
            check->err, "Invalid Condition: an operation needs a field, with '$', and a value.");
    c.name = str_skip(c.name, 1);
    return condition_apply(check, &c);
}

static int check_conditions(struct check *check, json_t *list)
{
    json_t *condition;
    size_t i;
    int code = 0;

    if (!json_is_array(list))
        return form_policy_invalid(check->err, "Policy missing conditions.");
    json_array_foreach(list, i, condition)
    {
        code = json_is_object(condition)  ? simple_condition(check, condition)
               : json_is_array(condition) ? list_condition(check, condition)
                                          : form_policy_invalid(check->err, "Invalid Condition.");
        if (code < 0)
            break;
    }
    return code;
}

static int check_expiration(const json_t *policy, int64_t now_ms, struct err *err)
{
    struct str text = json_get_str(policy, "expiration", STR_EMPTY);
    int64_t until;

    if (!text.len)
        return form_policy_invalid(err, "Policy missing expiration.");
    if (clock_parse_iso(text, &until) < 0)
        return err_set(err, S3_INVALID_POLICY_DOCUMENT,
                       "Invalid Policy: Invalid 'expiration' value: '" STR_FMT "'",
                       STR_ARG(str_head(text, 100)));
    if (until <= now_ms)
        return err_set(err, S3_ACCESS_DENIED, "Invalid according to Policy: Policy expired.");
    return 0;
}

/* Is `name` a field that no condition has to name? Such fields are the policy, the fields of its
 * signature, and fields that are ignored. */
static bool is_exempt(struct str name)
{
    static const struct str exempt[] = {STR("policy"), STR("signature"), STR("x-amz-signature"),
                                        STR("awsaccesskeyid"), STR("file")};

    for (size_t i = 0; i < ARRAY_SIZE(exempt); i++)
        if (str_ieq(name, exempt[i]))
            return true;
    /* Checksums are exempt because they never allow more than the policy does. */
    return str_ieq(str_head(name, 9), STR("x-ignore-")) ||
           str_ieq(str_head(name, 15), STR("x-amz-checksum-"));
}

static int check_coverage(const struct check *check)
{
    struct str extra = check->bucket_covered ? STR_EMPTY : STR("bucket");

    for (size_t i = 0; i < check->f->field_count && !extra.len; i++)
        if (!check->covered[i] && !is_exempt(check->f->fields[i].name))
            extra = check->f->fields[i].name;
    if (!extra.len)
        return 0;
    return err_set(check->err, S3_ACCESS_DENIED,
                   "Invalid according to Policy: Extra input fields: " STR_FMT,
                   STR_ARG(str_head(extra, 200)));
}

int form_check_policy(struct form *f, struct str document, const struct form_options *o,
                      struct err *err)
{
    struct check check = {.f = f, .bucket = o->bucket, .err = err};
    json_t *policy = NULL;
    int code;

    if (json_read(&policy, document, NULL) < 0)
        return form_policy_invalid(err, "Invalid JSON.");
    if (!json_is_object(policy))
        code = form_policy_invalid(err, "Invalid JSON.");
    else
        code = check_expiration(policy, o->now_ms, err);
    if (code == 0)
        code = check_conditions(&check, json_object_get(policy, "conditions"));
    if (code == 0)
        code = check_coverage(&check);
    json_decref(policy);
    return code;
}

static int match_v4(const struct form *f, const struct form_options *o,
                    const struct auth_credential *credential, struct str secret, struct err *err)
{
    struct sign_key key;
    char wanted[SIGN_HEX_LEN];

    sign_keys_get(o->auth->keys, &key, secret, &credential->scope);
    sign_hex(wanted, &key, form_field(f, "policy"));
    secure_zero(&key, sizeof(key));
    if (!str_eq_secret(str_n(wanted, sizeof(wanted)), form_field(f, "x-amz-signature")))
        return s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
    return 0;
}

static int check_v4(struct form_result *out, const struct form *f, const struct form_options *o,
                    struct err *err)
{
    static const char *const needed[] = {"x-amz-algorithm", "x-amz-credential", "x-amz-date",
                                         "x-amz-signature"};
    struct auth_credential credential;
    struct auth_key key;
    int code;

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (!form_field(f, needed[i]).len)
            return missing(err, needed[i]);
    if (!str_eq(form_field(f, "x-amz-algorithm"), STR(SIGN_ALGORITHM)))
        return err_set(err, S3_INVALID_ARGUMENT,
                       "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"");
    if (auth_parse_credential(&credential, form_field(f, "x-amz-credential")) < 0 ||
        !str_eq(credential.scope.service, STR("s3")) ||
        !str_eq(credential.end, STR("aws4_request")) ||
        !str_eq(credential.scope.date, str_head(form_field(f, "x-amz-date"), SIGN_DATE_LEN)))
        return err_set(
            err, S3_INVALID_ARGUMENT,
            "Error parsing the X-Amz-Credential parameter; the Credential is mal-formed; "
            "expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".");
    code = auth_find(&key, o->auth, credential.access_key, err);
    if (code == 0)
        code = match_v4(f, o, &credential, str_n(key.secret, key.secret_len), err);
    secure_zero(key.secret, sizeof(key.secret));
    out->kind = AUTH_V4_HEADER;
    out->access_key = credential.access_key;
    out->user = key.user;
    return code;
}

static int check_v2(struct form_result *out, const struct form *f, const struct form_options *o,
                    struct err *err)
{
    struct buf wanted = BUF_INIT(0);
    struct auth_key key;
    int code;

    out->kind = AUTH_V2_HEADER;
    out->access_key = form_field(f, "AWSAccessKeyId");
    if (!out->access_key.len)
        return missing(err, "AWSAccessKeyId");
    if (!form_field(f, "signature").len)
        return missing(err, "signature");
    if (!o->auth->allow_v2)
        return err_set(err, S3_INVALID_REQUEST,
                       "The authorization mechanism you have provided is not supported. Please use "
                       "AWS4-HMAC-SHA256.");
    code = auth_find(&key, o->auth, out->access_key, err);
    if (code == 0) {
        sign_v2(&wanted, str_n(key.secret, key.secret_len), form_field(f, "policy"));
        if (!str_eq_secret(buf_str(&wanted), form_field(f, "signature")))
            code = s3_fail(err, S3_SIGNATURE_DOES_NOT_MATCH);
    }
    secure_zero(key.secret, sizeof(key.secret));
    out->user = key.user;
    buf_release(&wanted);
    return code;
}

/* Replaces "${filename}" in every field that is not exempt. */
static int expand(struct form *f, struct err *err)
{
    const struct str variable = STR("${filename}");

    for (size_t i = 0; i < f->field_count; i++) {
        struct buf b = BUF_INIT(FORM_FIELD_MAX);
        struct str rest = f->fields[i].value;
        ptrdiff_t at = is_exempt(f->fields[i].name) ? -1 : str_find(rest, variable);
        if (at < 0)
            continue;
        for (; at >= 0; at = str_find(rest, variable)) {
            buf_append(&b, rest.p, (size_t)at);
            buf_append_str(&b, f->filename);
            rest = str_skip(rest, (size_t)at + variable.len);
        }
        buf_append_str(&b, rest);
        f->fields[i].value = arena_str(f->arena, buf_str(&b));
        bool failed = b.failed;
        buf_release(&b);
        if (failed)
            return s3_fail(err, S3_MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR);
    }
    return arena_error(f->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

static int check_signed(struct form_result *out, struct form *f, const struct form_options *o,
                        struct err *err)
{
    struct buf document = BUF_INIT(FORM_FIELD_MAX);
    bool v4 = form_field(f, "x-amz-signature").len || form_field(f, "x-amz-algorithm").len ||
              form_field(f, "x-amz-credential").len;
    int code = v4 ? check_v4(out, f, o, err) : check_v2(out, f, o, err);

    if (code == 0 && base64_decode(&document, form_field(f, "policy")) < 0)
        code = form_policy_invalid(err, "Invalid base64.");
    if (code == 0)
        code = form_check_policy(f, buf_str(&document), o, err);
    buf_release(&document);
    /* If no condition names x-amz-date, the field is not signed: anybody could change it to any
     * time on the day of the signature's scope. */
    if (!v4 || !f->date_is_signed ||
        clock_parse_basic(form_field(f, "x-amz-date"), &out->signed_ms) < 0)
        out->signed_ms = 0;
    return code;
}

int form_check(struct form_result *out, struct form *f, const struct form_options *o,
               struct err *err)
{
    struct form_result result = {0};
    int code = expand(f, err);

    if (code < 0)
        return code;
    result.key = form_field(f, "key");
    if (!result.key.len)
        return s3_fail(err, S3_USER_KEY_MUST_BE_SPECIFIED);
    if (form_field(f, "policy").len)
        code = check_signed(&result, f, o, err);
    else if (form_field(f, "signature").len || form_field(f, "x-amz-signature").len)
        code = missing(err, "policy");
    if (code < 0)
        return code;
    result.success_status = form_field(f, "success_action_status");
    result.success_redirect = form_field(f, "success_action_redirect");
    if (!result.success_redirect.len)
        result.success_redirect = form_field(f, "redirect");
    *out = result;
    return 0;
}
