/* Conditions of policies: the table of operators, the compiler of values, and the decision whether
 * a condition holds. */
#include "s3/access/policy_int.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>

static const struct condition_operator operators[] = {
    {"StringEquals", CONDITION_STRING, COMPARE_EQ, false},
    {"StringNotEquals", CONDITION_STRING, COMPARE_EQ, true},
    {"StringEqualsIgnoreCase", CONDITION_STRING_FOLDED, COMPARE_EQ, false},
    {"StringNotEqualsIgnoreCase", CONDITION_STRING_FOLDED, COMPARE_EQ, true},
    {"StringLike", CONDITION_LIKE, COMPARE_EQ, false},
    {"StringNotLike", CONDITION_LIKE, COMPARE_EQ, true},
    {"NumericEquals", CONDITION_NUMERIC, COMPARE_EQ, false},
    {"NumericNotEquals", CONDITION_NUMERIC, COMPARE_EQ, true},
    {"NumericLessThan", CONDITION_NUMERIC, COMPARE_LT, false},
    {"NumericLessThanEquals", CONDITION_NUMERIC, COMPARE_LE, false},
    {"NumericGreaterThan", CONDITION_NUMERIC, COMPARE_GT, false},
    {"NumericGreaterThanEquals", CONDITION_NUMERIC, COMPARE_GE, false},
    {"DateEquals", CONDITION_DATE, COMPARE_EQ, false},
    {"DateNotEquals", CONDITION_DATE, COMPARE_EQ, true},
    {"DateLessThan", CONDITION_DATE, COMPARE_LT, false},
    {"DateLessThanEquals", CONDITION_DATE, COMPARE_LE, false},
    {"DateGreaterThan", CONDITION_DATE, COMPARE_GT, false},
    {"DateGreaterThanEquals", CONDITION_DATE, COMPARE_GE, false},
    {"Bool", CONDITION_BOOL, COMPARE_EQ, false},
    {"IpAddress", CONDITION_IP, COMPARE_EQ, false},
    {"NotIpAddress", CONDITION_IP, COMPARE_EQ, true},
    {"ArnEquals", CONDITION_ARN, COMPARE_EQ, false},
    {"ArnNotEquals", CONDITION_ARN, COMPARE_EQ, true},
    {"ArnLike", CONDITION_ARN, COMPARE_EQ, false},
    {"ArnNotLike", CONDITION_ARN, COMPARE_EQ, true},
    {"Null", CONDITION_NULL, COMPARE_EQ, false},
};

static bool condition_parse_number(struct str s, double *out)
{
    char text[64], *end;

    if (s.len == 0 || s.len >= sizeof(text))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == '\0' || !strchr("0123456789.+-eE", s.p[i]))
            return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

/* Parses ISO 8601, a date alone, or seconds since 1970; *out is in milliseconds since 1970. */
static bool condition_parse_date(struct str s, double *out)
{
    char text[32];
    int64_t ms;

    if (s.len == strlen("2006-01-02") && s.p[4] == '-') {
        memcpy(text, s.p, s.len);
        memcpy(text + s.len, "T00:00:00Z", 10);
        s = str_n(text, s.len + 10);
    }
    if (clock_parse_iso(s, &ms) == 0) {
        *out = (double)ms;
        return true;
    }
    if (!condition_parse_number(s, out))
        return false;
    *out *= MS_PER_S;
    return true;
}

static bool condition_parse_bool(struct str s, bool *out)
{
    *out = str_ieq(s, STR("true"));
    return *out || str_ieq(s, STR("false"));
}

static bool condition_parse_address(struct str s, unsigned char out[16], unsigned *bits)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];

    if (s.len == 0 || s.len >= sizeof(text) || memchr(s.p, '\0', s.len))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    if (inet_pton(AF_INET, text, out + 12) == 1) {
        memcpy(out, mapped, sizeof(mapped));
        *bits = 32;
        return true;
    }
    *bits = 128;
    return inet_pton(AF_INET6, text, out) == 1;
}

static bool parse_range(struct str s, struct ip_range *out)
{
    struct str address, length;
    bool has_length = str_cut(s, '/', &address, &length);
    uint64_t given;
    unsigned bits;

    if (!condition_parse_address(address, out->bytes, &bits))
        return false;
    given = bits;
    if (has_length && (str_u64(length, &given) < 0 || given > bits))
        return false;
    out->bits = 128 - bits + (unsigned)given;
    return true;
}

static bool range_has(const struct ip_range *range, const unsigned char address[16])
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    unsigned char mask = (unsigned char)(0xff00 >> rest);

    return memcmp(range->bytes, address, whole) == 0 &&
           (rest == 0 || ((range->bytes[whole] ^ address[whole]) & mask) == 0);
}

static int compile_pattern(struct condition_value *out, struct arena *a, struct str text,
                           enum condition_type type, bool variables)
{
    unsigned flags = variables ? PATTERN_VARIABLES : 0;

    if (type == CONDITION_LIKE || type == CONDITION_ARN)
        flags |= PATTERN_WILD;
    return pattern_compile(&out->pattern, a, text, flags);
}

static int compile_value(struct condition_value *out, struct arena *a, struct str text,
                         enum condition_type type, bool variables)
{
    bool good;

    switch (type) {
    case CONDITION_NUMERIC:
        good = condition_parse_number(text, &out->number);
        break;
    case CONDITION_DATE:
        good = condition_parse_date(text, &out->number);
        break;
    case CONDITION_BOOL:
    case CONDITION_NULL:
        good = condition_parse_bool(text, &out->boolean);
        break;
    case CONDITION_IP:
        good = parse_range(text, &out->range);
        break;
    default:
        return compile_pattern(out, a, text, type, variables);
    }
    return good ? 0 : ERR_PARSE;
}

/* Returns a string, integer or boolean of JSON as text. `room` is the buffer for a number's
 * digits. */
static struct str scalar_text(const json_t *json, char room[32])
{
    if (json_is_string(json))
        return json_text(json);
    if (json_is_boolean(json))
        return json_is_true(json) ? STR("true") : STR("false");
    if (json_is_integer(json)) {
        struct buf digits = BUF_INIT(31);
        buf_append_i64(&digits, json_integer_value(json));
        memcpy(room, digits.p, digits.len);
        struct str s = str_n(room, digits.len);
        buf_release(&digits);
        return s;
    }
    return STR_EMPTY;
}

static int compile_values(struct condition *c, struct arena *a, const json_t *json, bool variables,
                          struct err *err)
{
    c->count = json_one_or_more(json);
    c->values = arena_array(a, c->count, sizeof(*c->values));
    if (c->count == 0)
        return err_set(err, S3_MALFORMED_POLICY, "Condition key without a value");
    if (!c->values)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < c->count; i++) {
        char room[32];
        struct str text = scalar_text(json_item(json, i), room);
        if (c->key == POLICY_KEY_X_AMZ_COPY_SOURCE && str_starts(text, STR("/")))
            /* In a request the value of this key is "bucket/key", without a slash in front. */
            text = str_skip(text, 1);
        int code =
            text.p ? compile_value(&c->values[i], a, text, c->op->type, variables) : ERR_PARSE;
        if (code == ERR_NO_MEMORY)
            return err_code(err, code);
        if (code < 0)
            return err_set(err, S3_MALFORMED_POLICY, "Invalid value for operator %s", c->op->name);
    }
    return 0;
}

static int parse_operator(struct condition *c, struct str name, struct err *err)
{
    struct str all = STR("ForAllValues:"), any = STR("ForAnyValue:"), exists = STR("IfExists");

    if (str_starts(name, all)) {
        c->set = SET_ALL_VALUES;
        name = str_skip(name, all.len);
    } else if (str_starts(name, any)) {
        c->set = SET_ANY_VALUE;
        name = str_skip(name, any.len);
    }
    if (str_ends(name, exists)) {
        c->if_exists = true;
        name = str_head(name, name.len - exists.len);
    }
    for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
        if (str_eq(name, str_z(operators[i].name)))
            c->op = &operators[i];
    if (!c->op || (c->op->type == CONDITION_NULL && (c->if_exists || c->set)))
        return err_set(err, S3_MALFORMED_POLICY, "Invalid Condition type : %.*s",
                       (int)size_min(name.len, 64), name.p ? name.p : "");
    return 0;
}

/* Compiles all keys under one operator, and puts the conditions in front of *list. `like` has the
 * operator. */
static int compile_operator(struct condition **list, struct arena *a, const struct condition *like,
                            const json_t *keys, bool variables, struct err *err)
{
    for (void *it = json_object_iter((json_t *)keys); it;
         it = json_object_iter_next((json_t *)keys, it)) {
        struct str name = str_z(json_object_iter_key(it));
        struct condition *c = arena_new(a, struct condition);
        int code;
        if (!c)
            return err_code(err, ERR_NO_MEMORY);
        *c = *like;
        if (!policy_key_find(name, &c->key, &c->suffix))
            return err_set(err, S3_MALFORMED_POLICY, "Policy has an invalid condition key");
        c->suffix = arena_str(a, c->suffix);
        code = compile_values(c, a, json_object_iter_value(it), variables, err);
        if (code < 0)
            return code;
        c->next = *list;
        *list = c;
    }
    return 0;
}

int conditions_compile(struct condition **out, struct arena *a, const json_t *json, bool variables,
                       struct err *err)
{
    if (!json_is_object(json))
        return err_set(err, S3_MALFORMED_POLICY, "Condition must be an object");
    for (void *it = json_object_iter((json_t *)json); it;
         it = json_object_iter_next((json_t *)json, it)) {
        struct condition like = {0};
        const json_t *keys = json_object_iter_value(it);
        int code = parse_operator(&like, str_z(json_object_iter_key(it)), err);
        if (code < 0)
            return code;
        if (!json_is_object(keys) || json_object_size(keys) == 0)
            return err_set(err, S3_MALFORMED_POLICY, "Condition operator without a key");
        code = compile_operator(out, a, &like, keys, variables, err);
        if (code < 0)
            return code;
    }
    return 0;
}

static bool condition_compare_numbers(double a, double b, enum condition_compare how)
{
    switch (how) {
    case COMPARE_LT:
        return a < b;
    case COMPARE_LE:
        return a <= b;
    case COMPARE_GT:
        return a > b;
    case COMPARE_GE:
        return a >= b;
    default:
        return a == b;
    }
}

/* Matches ARNs field by field, so that a wildcard does not match a colon, except in the last of the
 * six fields. */
static bool arn_match(struct str pattern, struct str arn)
{
    for (int field = 0; field < 5; field++) {
        struct str p, s;
        if (!str_cut(pattern, ':', &p, &pattern) || !str_cut(arn, ':', &s, &arn))
            return false;
        if (!pattern_match(p, s, false))
            return false;
    }
    return pattern_match(pattern, arn, false);
}

static bool text_matches(const struct condition *c, const struct condition_value *v, struct str s,
                         const struct policy_request *r)
{
    struct str pattern;

    if (!pattern_expand(&v->pattern, r, &pattern))
        return false;
    if (c->op->type == CONDITION_ARN)
        return arn_match(pattern, s);
    return pattern_match(pattern, s, c->op->type == CONDITION_STRING_FOLDED);
}

static bool value_matches(const struct condition *c, const struct condition_value *v, struct str s,
                          const struct policy_request *r)
{
    unsigned char address[16];
    unsigned bits;
    double number;
    bool boolean;

    switch (c->op->type) {
    case CONDITION_NUMERIC:
        return condition_parse_number(s, &number) &&
               condition_compare_numbers(number, v->number, c->op->compare);
    case CONDITION_DATE:
        return condition_parse_date(s, &number) &&
               condition_compare_numbers(number, v->number, c->op->compare);
    case CONDITION_BOOL:
        return condition_parse_bool(s, &boolean) && boolean == v->boolean;
    case CONDITION_IP:
        return condition_parse_address(s, address, &bits) && range_has(&v->range, address);
    default:
        return text_matches(c, v, s, r);
    }
}

/* Whether the condition holds for one value of the request. The value is compared with all values
 * of the policy. One match is enough; for a negated operator none may match. */
static bool one_holds(const struct condition *c, struct str s, const struct policy_request *r)
{
    for (size_t i = 0; i < c->count; i++)
        if (value_matches(c, &c->values[i], s, r))
            return !c->op->negated;
    return c->op->negated;
}

static bool holds_without_value(const struct condition *c)
{
    if (c->set != SET_NONE)
        return c->set == SET_ALL_VALUES || c->if_exists;
    return c->if_exists || c->op->negated;
}

static bool null_holds(const struct condition *c, bool absent)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->values[i].boolean == absent)
            return true;
    return false;
}

const struct condition *conditions_never(const struct condition *list)
{
    for (; list; list = list->next) {
        bool holds =
            list->op->type == CONDITION_NULL ? null_holds(list, true) : holds_without_value(list);
        if (!policy_keys[list->key].is_given && !holds)
            return list;
    }
    return NULL;
}

static bool condition_holds(const struct condition *c, const struct policy_request *r)
{
    struct policy_values have = {0};
    bool present = r->value(r->ctx, c->key, c->suffix, &have) && have.count > 0;
    /* Without a quantifier, a negated operator must hold for each of the request's values. */
    bool all = c->set == SET_ALL_VALUES || (c->set == SET_NONE && c->op->negated);

    if (c->op->type == CONDITION_NULL)
        return null_holds(c, !present);
    if (!present)
        return holds_without_value(c);
    for (size_t i = 0; i < have.count; i++)
        if (one_holds(c, have.items[i], r) != all)
            return !all;
    return all;
}

bool conditions_hold(const struct condition *list, const struct policy_request *r, bool unknown)
{
    for (; list; list = list->next) {
        bool known = !r->knows || r->knows(list->key);
        if (known ? !condition_holds(list, r) : !unknown)
            return false;
    }
    return true;
}

/* Whether the condition is about the caller and the connection alone. A condition with a variable
 * may also be about the object: ${s3:ExistingObjectTag/owner} is such a variable. */
static bool condition_is_of_caller(const struct condition *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->values[i].pattern.variables)
            return false;
    return str_starts(str_z(policy_keys[c->key].name), STR("aws:"));
}

bool conditions_may_hold(const struct condition *list, const struct policy_request *r)
{
    for (; list; list = list->next)
        if (condition_is_of_caller(list) && !condition_holds(list, r))
            return false;
    return true;
}

bool conditions_surely_hold(const struct condition *list, const struct policy_request *r)
{
    for (; list; list = list->next)
        if (!condition_is_of_caller(list) || !condition_holds(list, r))
            return false;
    return true;
}

bool conditions_ask_tags(const struct condition *list)
{
    for (; list; list = list->next) {
        if (list->key == POLICY_KEY_EXISTING_OBJECT_TAG)
            return true;
        for (size_t i = 0; i < list->count; i++)
            if (list->values[i].pattern.variables)
                return true;
    }
    return false;
}

/* Whether the range limits who may send requests: S3 treats ranges wider than /8 of IPv4 and /32 of
 * IPv6 as public. */
static bool range_is_narrow(const struct ip_range *range)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool v4 = range->bits >= 96 && memcmp(range->bytes, mapped, sizeof(mapped)) == 0;

    return range->bits >= (v4 ? 96 + 8 : 32);
}

static bool value_is_fixed(const struct condition *c, const struct condition_value *v)
{
    if (c->op->type == CONDITION_IP)
        return range_is_narrow(&v->range);
    /* Every client can send anonymous requests, so this value limits nobody. */
    if (str_ieq(v->pattern.text, STR(POLICY_ANONYMOUS)))
        return false;
    return !v->pattern.wild && !v->pattern.variables;
}

static bool condition_limits_public(const struct condition *c)
{
    bool by_text = c->op->type <= CONDITION_LIKE || c->op->type == CONDITION_ARN;

    if (!policy_keys[c->key].limits_public || c->op->negated || c->if_exists ||
        c->set == SET_ALL_VALUES || (!by_text && c->op->type != CONDITION_IP))
        return false;
    for (size_t i = 0; i < c->count; i++)
        if (!value_is_fixed(c, &c->values[i]))
            return false;
    return true;
}

bool conditions_limit_public(const struct condition *list)
{
    for (; list; list = list->next)
        if (condition_limits_public(list))
            return true;
    return false;
}
