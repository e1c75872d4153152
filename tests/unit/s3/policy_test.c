/* policy: what compiles, who is meant, what a resource and a condition match, what is public. */
#include "base/clock.h"
#include "s3/access/policy_int.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>

/* What the request under test has: at most four keys. */
struct facts {
    struct {
        enum policy_key key;
        const char *suffix;
        struct str values[3];
    } rows[4];
    size_t asked;
};

static bool value_of(void *ctx, enum policy_key key, struct str suffix, struct policy_values *out)
{
    struct facts *facts = ctx;

    facts->asked++;
    for (size_t i = 0; i < ARRAY_SIZE(facts->rows); i++) {
        if (!facts->rows[i].values[0].p || facts->rows[i].key != key ||
            !str_eq(suffix, str_z(facts->rows[i].suffix)))
            continue;
        out->items = facts->rows[i].values;
        for (out->count = 0; out->count < 3 && out->items[out->count].p;)
            out->count++;
        return true;
    }
    return false;
}

static int compile_code(const char *json)
{
    struct arena a = {0};
    struct err err = {0};
    struct policy *p;
    int code = policy_compile(&p, &a, str_z(json), STR("bkt"), &err);

    CHECK((code < 0) == (err.text[0] != '\0'));
    arena_release(&a);
    return code;
}

struct question {
    const char *user, *name;
    enum s3_action action;
    const char *key;
    struct facts facts;
};

static enum policy_effect ask(const char *json, struct question q)
{
    struct arena a = {0};
    struct err err = {0};
    struct policy *p;
    enum policy_effect effect;
    struct policy_request r = {.who = {str_z(q.user), str_z(q.name), STR_EMPTY},
                               .action = q.action,
                               .bucket = STR("bkt"),
                               .key = str_z(q.key),
                               .value = value_of,
                               .ctx = &q.facts,
                               .arena = &a};

    CHECK_OK(policy_compile(&p, &a, str_z(json), STR("bkt"), &err));
    effect = policy_evaluate(p, &r);
    arena_release(&a);
    return effect;
}

static bool is_public(const char *json)
{
    struct arena a = {0};
    struct err err = {0};
    struct policy *p;
    bool yes;

    CHECK_OK(policy_compile(&p, &a, str_z(json), STR("bkt"), &err));
    yes = policy_is_public(p);
    arena_release(&a);
    return yes;
}

#define POLICY(statements) "{\"Version\":\"2012-10-17\",\"Statement\":[" statements "]}"
#define STATEMENT(effect, principal, action, resource, more)                                       \
    "{\"Effect\":\"" effect "\",\"Principal\":" principal ",\"Action\":" action                    \
    ",\"Resource\":" resource more "}"
#define ANYONE  "{\"AWS\":\"*\"}"
#define OBJECTS "\"arn:aws:s3:::bkt/*\""
#define READ_IF(condition)                                                                         \
    POLICY(STATEMENT("Allow", "\"*\"", "\"s3:GetObject\"", OBJECTS, ",\"Condition\":" condition))
#define GET .action = S3_ACTION_GET_OBJECT, .key = "k"

static bool allowed_with(const char *json, struct facts facts)
{
    return ask(json, (struct question){GET, .facts = facts}) == POLICY_ALLOW;
}

#define FACT(k, ...)                                                                               \
    (struct facts)                                                                                 \
    {                                                                                              \
        .rows = { {POLICY_KEY_##k, "", {__VA_ARGS__}} }                                            \
    }
#define NO_FACT ((struct facts){0})

TEST(policy, a_statement_reaches_its_action_resource_and_principal_alone)
{
    const char *json = POLICY(STATEMENT("Allow", "{\"AWS\":[\"alice\"]}", "[\"s3:GetObject\"]",
                                        "[\"arn:aws:s3:::bkt/a/*\"]", ""));

    CHECK_INT(ask(json, (struct question){"alice", "", S3_ACTION_GET_OBJECT, "a/b"}), POLICY_ALLOW);
    CHECK_INT(ask(json, (struct question){"alice", "", S3_ACTION_PUT_OBJECT, "a/b"}), POLICY_NONE);
    CHECK_INT(ask(json, (struct question){"alice", "", S3_ACTION_GET_OBJECT, "b"}), POLICY_NONE);
    CHECK_INT(ask(json, (struct question){"bob", "", S3_ACTION_GET_OBJECT, "a/b"}), POLICY_NONE);
    CHECK_INT(ask(json, (struct question){"", "", S3_ACTION_GET_OBJECT, "a/b"}), POLICY_NONE);
}

TEST(policy, a_denial_wins_wherever_it_stands)
{
#define ALLOW_ALL STATEMENT("Allow", ANYONE, "\"s3:*\"", "[\"arn:aws:s3:::bkt\"," OBJECTS "]", "")
#define DENY_READ STATEMENT("Deny", ANYONE, "\"s3:Get*\"", OBJECTS, "")
    CHECK_INT(ask(POLICY(ALLOW_ALL "," DENY_READ), (struct question){GET}), POLICY_DENY);
    CHECK_INT(ask(POLICY(DENY_READ "," ALLOW_ALL), (struct question){GET}), POLICY_DENY);
    CHECK_INT(
        ask(POLICY(DENY_READ "," ALLOW_ALL), (struct question){.action = S3_ACTION_LIST_BUCKET}),
        POLICY_ALLOW);
}

TEST(policy, actions_may_have_wildcards_any_case_and_a_negation)
{
    const char *wild = POLICY(STATEMENT("Allow", "\"*\"", "\"S3:getobject?cl\"", OBJECTS, ""));
    const char *all = POLICY(STATEMENT("Allow", "\"*\"", "\"*\"", OBJECTS, ""));
    const char *but = "{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"NotAction\":"
                      "\"s3:Put*\",\"Resource\":" OBJECTS "}}";

    CHECK_INT(ask(wild, (struct question){.action = S3_ACTION_GET_OBJECT_ACL, .key = "k"}),
              POLICY_ALLOW);
    CHECK_INT(ask(wild, (struct question){GET}), POLICY_NONE);
    CHECK_INT(ask(all, (struct question){GET}), POLICY_ALLOW);
    CHECK_INT(ask(but, (struct question){GET}), POLICY_ALLOW);
    CHECK_INT(ask(but, (struct question){.action = S3_ACTION_PUT_OBJECT, .key = "k"}), POLICY_NONE);
}

TEST(policy, a_resource_of_objects_is_not_the_bucket_and_stars_cross_slashes)
{
    const char *objects = POLICY(STATEMENT("Allow", "\"*\"", "\"s3:*\"", OBJECTS, ""));
    const char *bucket =
        POLICY(STATEMENT("Allow", "\"*\"", "\"s3:*\"", "\"arn:aws:s3:::bkt\"", ""));
    const char *any = POLICY(STATEMENT("Allow", "\"*\"", "\"s3:*\"", "\"arn:aws:s3:::*\"", ""));
    const char *but = "{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"*\","
                      "\"NotResource\":\"arn:aws:s3:::bkt/private/?*\"}}";

    CHECK_INT(ask(objects, (struct question){.action = S3_ACTION_LIST_BUCKET}), POLICY_NONE);
    CHECK_INT(ask(objects, (struct question){GET}), POLICY_ALLOW);
    CHECK_INT(ask(bucket, (struct question){.action = S3_ACTION_LIST_BUCKET}), POLICY_ALLOW);
    CHECK_INT(ask(bucket, (struct question){GET}), POLICY_NONE);
    CHECK_INT(ask(any, (struct question){.action = S3_ACTION_GET_OBJECT, .key = "a/b/c"}),
              POLICY_ALLOW);
    CHECK_INT(ask(but, (struct question){.action = S3_ACTION_GET_OBJECT, .key = "private/a"}),
              POLICY_NONE);
    CHECK_INT(ask(but, (struct question){.action = S3_ACTION_GET_OBJECT, .key = "private/"}),
              POLICY_ALLOW);
}

TEST(policy, principals_are_ids_arns_names_or_everybody)
{
    static const struct {
        const char *principal, *user, *name;
        enum policy_effect effect;
    } rows[] = {
        {"\"*\"", "", "", POLICY_ALLOW},
        {ANYONE, "", "", POLICY_ALLOW},
        {"{\"AWS\":\"arn:aws:iam::u1:root\"}", "u1", "al", POLICY_ALLOW},
        {"{\"AWS\":\"arn:aws:iam::u1:root\"}", "u2", "al", POLICY_NONE},
        {"{\"AWS\":\"arn:aws:iam:::user/team/al\"}", "u1", "al", POLICY_ALLOW},
        {"{\"AWS\":\"arn:aws:iam:::user/u1\"}", "u1", "", POLICY_ALLOW},
        {"{\"AWS\":\"arn:aws:iam::u2:user/al\"}", "u1", "al", POLICY_NONE},
        {"{\"AWS\":\"arn:aws:iam::u1:role/al\"}", "u1", "al", POLICY_NONE},
        {"{\"CanonicalUser\":\"u1\"}", "u1", "al", POLICY_ALLOW},
        {"{\"AWS\":\"al\"}", "u1", "al", POLICY_NONE},
        {"{\"Service\":\"logging.s3.amazonaws.com\"}", "u1", "al", POLICY_NONE},
        {"{\"AWS\":\"u2\",\"CanonicalUser\":[\"u3\",\"u1\"]}", "u1", "al", POLICY_ALLOW},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf json = {0};
        buf_appendf(&json, POLICY(STATEMENT("Allow", "%s", "\"s3:GetObject\"", OBJECTS, "")),
                    rows[i].principal);
        CHECK_INT(ask(json.p, (struct question){rows[i].user, rows[i].name, GET}), rows[i].effect);
        buf_release(&json);
    }
}

TEST(policy, not_principal_denies_all_others_and_cannot_allow)
{
    const char *json = "{\"Statement\":{\"Effect\":\"Deny\",\"NotPrincipal\":{\"AWS\":\"alice\"},"
                       "\"Action\":\"s3:*\",\"Resource\":" OBJECTS "}}";

    CHECK_INT(ask(json, (struct question){"alice", "", GET}), POLICY_NONE);
    CHECK_INT(ask(json, (struct question){"bob", "", GET}), POLICY_DENY);
    CHECK_INT(ask(json, (struct question){"", "", GET}), POLICY_DENY);
    CHECK_INT(compile_code("{\"Statement\":{\"Effect\":\"Allow\",\"NotPrincipal\":{\"AWS\":"
                           "\"alice\"},\"Action\":\"s3:*\",\"Resource\":" OBJECTS "}}"),
              S3_MALFORMED_POLICY);
}

TEST(policy, strings_are_compared_as_their_operator_says)
{
#define STRING_IF(op, value) READ_IF("{\"" op "\":{\"aws:UserAgent\":\"" value "\"}}")
    CHECK(allowed_with(STRING_IF("StringEquals", "ab"), FACT(USER_AGENT, STR("ab"))));
    CHECK(!allowed_with(STRING_IF("StringEquals", "ab"), FACT(USER_AGENT, STR("aB"))));
    CHECK(!allowed_with(STRING_IF("StringEquals", "a*"), FACT(USER_AGENT, STR("ab"))));
    CHECK(allowed_with(STRING_IF("StringEqualsIgnoreCase", "ab"), FACT(USER_AGENT, STR("aB"))));
    CHECK(!allowed_with(STRING_IF("StringNotEquals", "ab"), FACT(USER_AGENT, STR("ab"))));
    CHECK(allowed_with(STRING_IF("StringNotEqualsIgnoreCase", "ab"), FACT(USER_AGENT, STR("x"))));
    CHECK(allowed_with(STRING_IF("StringLike", "a*c?"), FACT(USER_AGENT, STR("aBBcd"))));
    CHECK(!allowed_with(STRING_IF("StringLike", "a*c?"), FACT(USER_AGENT, STR("aBBc"))));
    CHECK(allowed_with(STRING_IF("StringLike", "?"), FACT(USER_AGENT, STR("\xc3\xbc"))));
    CHECK(!allowed_with(STRING_IF("StringNotLike", "a*"), FACT(USER_AGENT, STR("ab"))));
    CHECK(allowed_with(READ_IF("{\"StringEquals\":{\"AWS:useragent\":[\"x\",\"ab\"]}}"),
                       FACT(USER_AGENT, STR("ab"))));
    CHECK(!allowed_with(READ_IF("{\"StringNotEquals\":{\"aws:UserAgent\":[\"x\",\"ab\"]}}"),
                        FACT(USER_AGENT, STR("ab"))));
}

TEST(policy, an_absent_key_fails_a_plain_operator_and_passes_negations_and_if_exists)
{
    CHECK(!allowed_with(STRING_IF("StringEquals", "ab"), NO_FACT));
    CHECK(allowed_with(STRING_IF("StringEqualsIfExists", "ab"), NO_FACT));
    CHECK(!allowed_with(STRING_IF("StringEqualsIfExists", "ab"), FACT(USER_AGENT, STR("x"))));
    CHECK(allowed_with(STRING_IF("StringNotEquals", "ab"), NO_FACT));
    CHECK(allowed_with(READ_IF("{\"Null\":{\"aws:UserAgent\":\"true\"}}"), NO_FACT));
    CHECK(
        !allowed_with(READ_IF("{\"Null\":{\"aws:UserAgent\":true}}"), FACT(USER_AGENT, STR("x"))));
    CHECK(allowed_with(READ_IF("{\"Null\":{\"aws:UserAgent\":\"false\"}}"),
                       FACT(USER_AGENT, STR("x"))));
}

TEST(policy, numbers_dates_and_booleans_are_compared_by_value)
{
#define MAX_KEYS(op, value) READ_IF("{\"" op "\":{\"s3:max-keys\":" value "}}")
#define TIME_IF(op, value)  READ_IF("{\"" op "\":{\"aws:CurrentTime\":\"" value "\"}}")
    struct facts ten = FACT(MAX_KEYS, STR("10"));
    struct facts noon = FACT(CURRENT_TIME, STR("2024-02-03T12:00:00Z"));

    CHECK(allowed_with(MAX_KEYS("NumericEquals", "10"), ten));
    CHECK(allowed_with(MAX_KEYS("NumericEquals", "\"10.0\""), ten));
    CHECK(!allowed_with(MAX_KEYS("NumericNotEquals", "10"), ten));
    CHECK(!allowed_with(MAX_KEYS("NumericLessThan", "10"), ten));
    CHECK(allowed_with(MAX_KEYS("NumericLessThanEquals", "\"10\""), ten));
    CHECK(allowed_with(MAX_KEYS("NumericGreaterThan", "9"), ten));
    CHECK(allowed_with(MAX_KEYS("NumericGreaterThanEquals", "10"), ten));
    CHECK(!allowed_with(MAX_KEYS("NumericLessThan", "11"), FACT(MAX_KEYS, STR("ten"))));
    CHECK(allowed_with(TIME_IF("DateEquals", "2024-02-03T13:00:00+01:00"), noon));
    CHECK(allowed_with(TIME_IF("DateGreaterThan", "2024-02-03"), noon));
    CHECK(!allowed_with(TIME_IF("DateLessThan", "2024-02-03T12:00:00Z"), noon));
    CHECK(allowed_with(TIME_IF("DateLessThanEquals", "1706961600"), noon));
    CHECK(allowed_with(READ_IF("{\"Bool\":{\"aws:SecureTransport\":\"false\"}}"),
                       FACT(SECURE_TRANSPORT, STR("false"))));
    CHECK(!allowed_with(READ_IF("{\"Bool\":{\"aws:SecureTransport\":true}}"),
                        FACT(SECURE_TRANSPORT, STR("false"))));
}

TEST(policy, addresses_are_matched_by_their_range)
{
#define FROM(op, range) READ_IF("{\"" op "\":{\"aws:SourceIp\":\"" range "\"}}")
    CHECK(allowed_with(FROM("IpAddress", "10.1.2.0/23"), FACT(SOURCE_IP, STR("10.1.3.255"))));
    CHECK(!allowed_with(FROM("IpAddress", "10.1.2.0/23"), FACT(SOURCE_IP, STR("10.1.4.0"))));
    CHECK(allowed_with(FROM("IpAddress", "10.1.2.3"), FACT(SOURCE_IP, STR("10.1.2.3"))));
    CHECK(allowed_with(FROM("IpAddress", "10.1.2.3"), FACT(SOURCE_IP, STR("::ffff:10.1.2.3"))));
    CHECK(allowed_with(FROM("IpAddress", "0.0.0.0/0"), FACT(SOURCE_IP, STR("1.2.3.4"))));
    CHECK(!allowed_with(FROM("IpAddress", "0.0.0.0/0"), FACT(SOURCE_IP, STR("2001:db8::1"))));
    CHECK(allowed_with(FROM("IpAddress", "2001:db8::/33"), FACT(SOURCE_IP, STR("2001:db8:1::1"))));
    CHECK(!allowed_with(FROM("IpAddress", "2001:db8::/33"),
                        FACT(SOURCE_IP, STR("2001:db8:8000::1"))));
    CHECK(!allowed_with(FROM("NotIpAddress", "10.0.0.0/8"), FACT(SOURCE_IP, STR("10.9.9.9"))));
    CHECK(allowed_with(FROM("NotIpAddress", "10.0.0.0/8"), FACT(SOURCE_IP, STR("11.0.0.0"))));
}

TEST(policy, an_arn_is_matched_field_by_field)
{
#define ARN_IF(op, arn) READ_IF("{\"" op "\":{\"aws:SourceArn\":\"" arn "\"}}")
    struct facts arn = FACT(SOURCE_ARN, STR("arn:aws:s3:eu:u1:bkt:x"));

    CHECK(allowed_with(ARN_IF("ArnEquals", "arn:aws:s3:*:u?:bkt*"), arn));
    CHECK(allowed_with(ARN_IF("ArnLike", "arn:aws:s3:eu:u1:bkt:x"), arn));
    CHECK(!allowed_with(ARN_IF("ArnLike", "arn:aws:*:bkt:x"), arn));
    CHECK(!allowed_with(ARN_IF("ArnNotLike", "arn:aws:s3:*:*:*"), arn));
}

TEST(policy, sets_of_values_are_tested_for_all_or_any)
{
#define TAGS(op) READ_IF("{\"" op "\":{\"s3:RequestObjectTagKeys\":[\"a\",\"b\"]}}")
    struct facts both = FACT(REQUEST_OBJECT_TAG_KEYS, STR("a"), STR("b"));
    struct facts mixed = FACT(REQUEST_OBJECT_TAG_KEYS, STR("a"), STR("c"));
    struct facts other = FACT(REQUEST_OBJECT_TAG_KEYS, STR("c"), STR("d"));

    CHECK(allowed_with(TAGS("ForAllValues:StringEquals"), both));
    CHECK(!allowed_with(TAGS("ForAllValues:StringEquals"), mixed));
    CHECK(allowed_with(TAGS("ForAllValues:StringEquals"), NO_FACT));
    CHECK(allowed_with(TAGS("ForAnyValue:StringEquals"), mixed));
    CHECK(!allowed_with(TAGS("ForAnyValue:StringEquals"), other));
    CHECK(!allowed_with(TAGS("ForAnyValue:StringEquals"), NO_FACT));
    CHECK(allowed_with(TAGS("ForAnyValue:StringNotEquals"), mixed));
    CHECK(!allowed_with(TAGS("ForAllValues:StringNotEquals"), mixed));
    CHECK(allowed_with(TAGS("ForAllValues:StringNotEquals"), other));
}

TEST(policy, all_conditions_must_hold_and_tags_are_asked_by_name)
{
    const char *json = READ_IF("{\"StringEquals\":{\"s3:ExistingObjectTag/level\":\"public\","
                               "\"aws:UserAgent\":\"x\"}}");
    struct facts tag = {.rows = {{POLICY_KEY_EXISTING_OBJECT_TAG, "level", {STR("public")}},
                                 {POLICY_KEY_USER_AGENT, "", {STR("x")}}}};
    struct facts other = {.rows = {{POLICY_KEY_EXISTING_OBJECT_TAG, "lvl", {STR("public")}},
                                   {POLICY_KEY_USER_AGENT, "", {STR("x")}}}};

    CHECK(allowed_with(json, tag));
    CHECK(!allowed_with(json, other));
    CHECK(!allowed_with(json, FACT(USER_AGENT, STR("x"))));
}

TEST(policy, variables_are_the_requests_own_values_and_never_wildcards)
{
#define HOME                                                                                       \
    POLICY(STATEMENT("Allow", "\"*\"", "\"s3:*\"", "\"arn:aws:s3:::bkt/${aws:username}/*\"", ""))
    struct question own = {
        .action = S3_ACTION_GET_OBJECT, .key = "al/x", .facts = FACT(USER_NAME, STR("al"))};
    struct question star = own, none = own;
    const char *fallback = POLICY(STATEMENT("Allow", "\"*\"", "\"s3:*\"",
                                            "\"arn:aws:s3:::bkt/${aws:username, 'al'}/${*}\"", ""));

    star.facts = FACT(USER_NAME, STR("*"));
    none.facts = NO_FACT;
    CHECK_INT(ask(HOME, own), POLICY_ALLOW);
    CHECK_INT(ask(HOME, star), POLICY_NONE);
    CHECK_INT(ask(HOME, none), POLICY_NONE);
    star.facts = FACT(USER_NAME, STR("\xff"));
    CHECK_INT(ask(HOME, star), POLICY_NONE);
    none.key = "al/*";
    CHECK_INT(ask(fallback, none), POLICY_ALLOW);
    none.key = "al/x";
    CHECK_INT(ask(fallback, none), POLICY_NONE);
}

TEST(policy, the_old_version_has_no_variables)
{
    const char *old =
        "{\"Version\":\"2008-10-17\",\"Statement\":{\"Effect\":\"Allow\",\"Principal\""
        ":\"*\",\"Action\":\"*\",\"Resource\":\"arn:aws:s3:::bkt/${aws:username}\"}}";

    CHECK_INT(ask(old, (struct question){.action = S3_ACTION_GET_OBJECT, .key = "${aws:username}"}),
              POLICY_ALLOW);
}

TEST(policy, nothing_is_asked_that_no_statement_needs)
{
    struct arena a = {0};
    struct err err = {0};
    struct policy *p;
    struct facts facts = {0};
    struct policy_request r = {.action = S3_ACTION_PUT_OBJECT,
                               .bucket = STR("bkt"),
                               .key = STR("k"),
                               .value = value_of,
                               .ctx = &facts,
                               .arena = &a};

    CHECK_OK(policy_compile(&p, &a, str_z(STRING_IF("StringEquals", "x")), STR("bkt"), &err));
    CHECK_INT(policy_evaluate(p, &r), POLICY_NONE);
    CHECK_INT(facts.asked, 0);
    r.action = S3_ACTION_GET_OBJECT;
    CHECK_INT(policy_evaluate(p, &r), POLICY_NONE);
    CHECK_INT(facts.asked, 1);
    arena_release(&a);
}

TEST(policy, a_full_arena_denies)
{
    struct arena a = {0}, full = ARENA_INIT(1);
    struct err err = {0};
    struct policy *p;
    struct facts facts = FACT(USER_NAME, STR("al"));
    struct policy_request r = {.action = S3_ACTION_GET_OBJECT,
                               .bucket = STR("bkt"),
                               .key = STR("al/x"),
                               .value = value_of,
                               .ctx = &facts,
                               .arena = &full};

    CHECK_OK(policy_compile(&p, &a, str_z(HOME), STR("bkt"), &err));
    CHECK_INT(policy_evaluate(p, &r), POLICY_DENY);
    arena_release(&a);
    arena_release(&full);
}

TEST(policy, what_is_not_a_policy_of_this_bucket_is_malformed)
{
#define WITH(principal, action, resource, more)                                                    \
    POLICY(STATEMENT("Allow", principal, action, resource, more))
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"Statement\":[]}",
        "{\"Statement\":[1]}",
        "{\"Version\":\"2012-10-18\",\"Statement\":[]}",
        "{\"Id\":1,\"Statement\":[]}",
        "{\"Extra\":1,\"Statement\":[]}",
        POLICY("{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:*\"}"),
        POLICY("{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Resource\":" OBJECTS "}"),
        POLICY("{\"Effect\":\"Allow\",\"Action\":\"s3:*\",\"Resource\":" OBJECTS "}"),
        POLICY("{\"Principal\":\"*\",\"Action\":\"s3:*\",\"Resource\":" OBJECTS "}"),
        POLICY(STATEMENT("allow", "\"*\"", "\"s3:*\"", OBJECTS, "")),
        WITH("\"alice\"", "\"s3:*\"", OBJECTS, ""),
        WITH("{}", "\"s3:*\"", OBJECTS, ""),
        WITH("{\"AWS\":[]}", "\"s3:*\"", OBJECTS, ""),
        WITH("{\"AWS\":[1]}", "\"s3:*\"", OBJECTS, ""),
        WITH("{\"AWS\":\"ali*\"}", "\"s3:*\"", OBJECTS, ""),
        WITH("{\"AWS\":\"arn:aws:s3:::bkt\"}", "\"s3:*\"", OBJECTS, ""),
        WITH("{\"AWS\":\"arn:aws:iam::x:group/g\"}", "\"s3:*\"", OBJECTS, ""),
        WITH("{\"Nobody\":\"x\"}", "\"s3:*\"", OBJECTS, ""),
        WITH("\"*\"", "[]", OBJECTS, ""),
        WITH("\"*\"", "\"s3:Nothing\"", OBJECTS, ""),
        WITH("\"*\"", "\"ec2:*\"", OBJECTS, ""),
        WITH("\"*\"", "\"GetObject\"", OBJECTS, ""),
        WITH("\"*\"", "\"s3:*\"", "[]", ""),
        WITH("\"*\"", "\"s3:*\"", "\"bkt/*\"", ""),
        WITH("\"*\"", "\"s3:*\"", "\"arn:aws:s3:::other/*\"", ""),
        WITH("\"*\"", "\"s3:*\"", "\"arn:aws:s3:::bkt2\"", ""),
        WITH("\"*\"", "\"s3:*\"", "\"arn:aws:s3:eu::bkt\"", ""),
        WITH("\"*\"", "\"s3:*\"", "\"arn:aws:s3:::bkt/${aws:username\"", ""),
        WITH("\"*\"", "\"s3:*\"", "\"arn:aws:s3:::bkt/${no:key}\"", ""),
        WITH("\"*\"", "\"s3:*\"", OBJECTS, ",\"Sid\":1"),
        WITH("\"*\"", "\"s3:*\"", OBJECTS, ",\"NotAction\":\"s3:*\""),
        WITH("\"*\"", "\"s3:*\"", OBJECTS, ",\"Comment\":\"x\""),
        READ_IF("[]"),
        READ_IF("{\"StringIs\":{\"aws:UserAgent\":\"x\"}}"),
        READ_IF("{\"StringEquals\":{}}"),
        READ_IF("{\"StringEquals\":{\"aws:Nothing\":\"x\"}}"),
        READ_IF("{\"StringEquals\":{\"s3:ExistingObjectTag/\":\"x\"}}"),
        READ_IF("{\"StringEquals\":{\"aws:UserAgent\":[]}}"),
        READ_IF("{\"StringEquals\":{\"aws:UserAgent\":{}}}"),
        READ_IF("{\"NumericEquals\":{\"s3:max-keys\":\"ten\"}}"),
        READ_IF("{\"DateEquals\":{\"aws:CurrentTime\":\"today\"}}"),
        READ_IF("{\"Bool\":{\"aws:SecureTransport\":\"yes\"}}"),
        READ_IF("{\"IpAddress\":{\"aws:SourceIp\":\"10.0.0.0/33\"}}"),
        READ_IF("{\"IpAddress\":{\"aws:SourceIp\":\"ten\"}}"),
        READ_IF("{\"NullIfExists\":{\"aws:UserAgent\":\"true\"}}"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (compile_code(bad[i]) != S3_MALFORMED_POLICY)
            test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
}

TEST(policy, a_policy_has_20_kib_at_most)
{
    struct buf json = {0};

    buf_append_z(&json, WITH("\"*\"", "\"s3:*\"", OBJECTS, ""));
    while (json.len < POLICY_MAX_BYTES)
        buf_append_char(&json, ' ');
    CHECK_INT(compile_code(json.p), 0);
    buf_append_char(&json, ' ');
    CHECK_INT(compile_code(json.p), S3_MALFORMED_POLICY);
    buf_release(&json);
}

/* --- patterns --- */

static struct str character(struct str s)
{
    return str_head(s, size_max(1, str_utf8_len(s)));
}

/* What matching means, said as simply as can be. */
static bool matches(struct str p, struct str s)
{
    if (p.len == 0)
        return s.len == 0;
    if ((unsigned char)p.p[0] == PATTERN_ANY)
        return matches(str_skip(p, 1), s) || (s.len && matches(p, str_skip(s, character(s).len)));
    if (s.len == 0)
        return false;
    if ((unsigned char)p.p[0] == PATTERN_ONE)
        return matches(str_skip(p, 1), str_skip(s, character(s).len));
    return p.p[0] == s.p[0] && matches(str_skip(p, 1), str_skip(s, 1));
}

/* Of few characters, one of them of two bytes, so that there is much to match. */
static struct str random_text(char *room, unsigned max, bool is_pattern)
{
    static const char *const parts[] = {"a", "b", "\xc3\xa9", "\xff", "\xfe"};
    size_t n = (size_t)rand() % (max + 1), len = 0;

    for (size_t i = 0; i < n; i++) {
        const char *part = parts[rand() % (is_pattern ? 5 : 3)];
        memcpy(room + len, part, strlen(part));
        len += strlen(part);
    }
    return str_n(room, len);
}

TEST(policy_pattern, matches_as_its_definition_says)
{
    enum { TRIES = 200000 };
    char p_room[64], s_room[64];
    int matched = 0;

    srand(14);
    for (int i = 0; i < TRIES; i++) {
        struct str p = random_text(p_room, 8, true), s = random_text(s_room, 10, false);
        bool want = matches(p, s);
        if (pattern_match(p, s, false) != want)
            test_fail(__FILE__, __LINE__, "'" STR_FMT "' of '" STR_FMT "'", STR_ARG(p), STR_ARG(s));
        matched += want;
    }
    CHECK(matched > TRIES / 20);
}

static struct str repeated(char *room, const char *front, char c, size_t n, const char *end)
{
    size_t len = strlen(front);

    memcpy(room, front, len);
    memset(room + len, c, n);
    memcpy(room + len + n, end, strlen(end));
    return str_n(room, len + n + strlen(end));
}

TEST(policy_pattern, pieces_of_more_than_64_characters_match_over_their_blocks)
{
    static char p_room[1000], s_room[1000];

    for (size_t n = 60; n < 200; n++) {
        struct str s = repeated(s_room, "xx", 'a', n, "b");
        CHECK(pattern_match(repeated(p_room, "\xff\xfe", 'a', n, "b"), s, false));
        CHECK(pattern_match(repeated(p_room, "\xff\xfe", 'a', n, "\xff"), s, false));
        CHECK(pattern_match(repeated(p_room, "X\xfe", 'A', n, "B"), s, true));
        CHECK(!pattern_match(repeated(p_room, "\xff\xfe", 'a', n + 2, "b"), s, false));
        CHECK(!pattern_match(repeated(p_room, "\xff\xfe", 'a', n, "c"), s, false));
        CHECK(!pattern_match(repeated(p_room, "\xfe", 'a', n, "b"), s, false));
    }
}

/* The shortest of several runs, which other programs cannot make shorter. */
static uint64_t match_ns(struct str p, struct str s)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        uint64_t began = clock_mono_ns();
        CHECK(!pattern_match(p, s, false));
        best = size_min(best, clock_mono_ns() - began);
    }
    return best;
}

/* How long it takes to try each place of the string with each character of a piece. */
static uint64_t naive_ns(struct str piece, struct str s)
{
    uint64_t began = clock_mono_ns();
    size_t found = 0;

    for (size_t i = 0; i + piece.len <= s.len; i++) {
        size_t k = 0;
        while (k < piece.len &&
               ((unsigned char)piece.p[k] == PATTERN_ONE || piece.p[k] == s.p[i + k]))
            k++;
        found += k == piece.len;
    }
    CHECK_INT(found, 0);
    return clock_mono_ns() - began;
}

/* Eight times as much of both takes 64 times as long where each place is tried with each character.
 */
TEST(policy_pattern, hostile_patterns_take_time_in_proportion_to_their_length)
{
    enum { SHORT = 1000, TIMES = 8 };
    static const char *const fronts[] = {"\xff", "\xff\xff\xff"};
    static char p_room[20000], s_room[20000];

    for (size_t i = 0; i < ARRAY_SIZE(fronts); i++) {
        struct str s = repeated(s_room, "", 'a', SHORT, "");
        uint64_t one = match_ns(repeated(p_room, fronts[i], 'a', SHORT / 2, "b\xff"), s);
        s = repeated(s_room, "", 'a', TIMES * SHORT, "");
        uint64_t many = match_ns(repeated(p_room, fronts[i], 'a', TIMES * SHORT / 2, "b\xff"), s);
        CHECK(many < one * 3 * TIMES + 20000);
    }
    /* With question marks: far from the 12 million steps of 6,000 places times 2,000 characters. */
    struct str s = repeated(s_room, "", 'a', TIMES * SHORT, "");
    memcpy(p_room, "\xff\xfe", 2);
    for (size_t i = 0; i < 2 * SHORT; i++)
        p_room[2 + i] = i % 2 ? 'a' : (char)PATTERN_ONE;
    p_room[2 + 2 * SHORT] = 'b';
    p_room[3 + 2 * SHORT] = (char)PATTERN_ANY;
    CHECK(match_ns(str_n(p_room, 4 + 2 * SHORT), s) <
          naive_ns(str_n(p_room + 1, 2 + 2 * SHORT), s) / 2);
}

TEST(policy, one_that_cannot_allow_an_asker_anything_says_so)
{
    static const struct {
        const char *json, *user;
        bool may;
    } rows[] = {
        {POLICY(
             STATEMENT("Allow", "\"*\"", "\"s3:DeleteObject\"", "\"arn:aws:s3:::bkt/tmp/*\"", "")),
         "", true},
        {POLICY(STATEMENT("Allow", "\"*\"", "\"s3:Delete*\"", OBJECTS,
                          ",\"Condition\":{\"IpAddress\":{\"aws:SourceIp\":\"10.0.0.0/8\"}}")),
         "", true},
        {POLICY(STATEMENT("Allow", "\"*\"", "\"s3:GetObject\"", OBJECTS, "")), "", false},
        {POLICY(STATEMENT("Deny", "\"*\"", "\"s3:*\"", OBJECTS, "")), "", false},
        {POLICY(STATEMENT("Allow", "{\"AWS\":\"bob-id\"}", "\"s3:*\"", OBJECTS, "")), "", false},
        {POLICY(STATEMENT("Allow", "{\"AWS\":\"bob-id\"}", "\"s3:*\"", OBJECTS, "")), "bob-id",
         true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct arena a = {0};
        struct err err = {0};
        struct policy *p;
        struct policy_who who = {.id = str_z(rows[i].user)};
        CHECK_OK(policy_compile(&p, &a, str_z(rows[i].json), STR("bkt"), &err));
        CHECK_INT(policy_may_allow(p, &who, S3_ACTION_DELETE_OBJECT), rows[i].may);
        CHECK(!policy_is_large(p));
        arena_release(&a);
    }
}

/* --- what is denied below two beginnings of keys --- */

static struct policy_request beyond_request(struct arena *a, struct facts *facts)
{
    return (struct policy_request){.who = {STR("bob"), STR("Bob"), STR_EMPTY},
                                   .action = S3_ACTION_GET_OBJECT,
                                   .bucket = STR("bkt"),
                                   .value = value_of,
                                   .ctx = facts,
                                   .arena = a};
}

static bool is_beyond(const char *statement, const char *from, const char *to)
{
    struct arena a = {0};
    struct err err = {0};
    struct facts facts = {.rows = {{POLICY_KEY_USER_NAME, "", {STR("Bob")}}}};
    struct policy_request r = beyond_request(&a, &facts);
    struct policy *p;
    struct str json = arena_fmt(&a, "{\"Version\":\"2012-10-17\",\"Statement\":[%s]}", statement);

    CHECK_OK(policy_compile(&p, &a, json, STR("bkt"), &err));
    bool beyond = policy_denies_beyond(p, &r, str_z(from), str_z(to));
    arena_release(&a);
    return beyond;
}

#define DENY_BOB(resources)                                                                        \
    "{\"Effect\":\"Deny\",\"Principal\":{\"AWS\":\"bob\"},\"Action\":\"s3:GetObject\","            \
    "\"Resource\":[" resources "]}"
#define ARN "\"arn:aws:s3:::bkt/"

#define DENY_IF(condition)                                                                         \
    "{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"Resource\":" ARN               \
    "*\",\"Condition\":" condition "}"

TEST(policy, what_is_denied_below_a_beginning_depends_on_the_caller)
{
    CHECK(is_beyond(DENY_IF("{\"StringEquals\":{\"aws:username\":\"Bob\"}}"), "main/", ""));
    CHECK(!is_beyond(DENY_IF("{\"StringEquals\":{\"aws:username\":\"Eve\"}}"), "main/", ""));
    CHECK(!is_beyond(DENY_IF("{\"Bool\":{\"aws:SecureTransport\":\"false\"}}"), "main/", ""));
    CHECK(is_beyond(DENY_IF("{\"StringEquals\":{\"s3:ExistingObjectTag/a\":\"b\"}}"), "main/", ""));
    CHECK(!is_beyond(DENY_IF("{\"StringEquals\":{\"s3:ExistingObjectTag/a\":\"b\"}}"), "main/",
                     "dev/"));
}

TEST(policy, what_is_denied_below_one_beginning_may_not_be_below_another)
{
    static const struct {
        const char *statement, *from, *to;
        bool beyond;
    } cases[] = {
        {DENY_BOB(ARN "main/secret/*\""), "main/", "mine/", true},
        {DENY_BOB(ARN "main/secret/*\""), "main/", "", true},
        {DENY_BOB(ARN "main/secret/*\""), "main/", "main/", false},
        {DENY_BOB(ARN "main/secret/*\""), "mine/", "other/", false},
        {DENY_BOB(ARN "main/secret/*\""), "mine/", "", false},
        {DENY_BOB(ARN "*/secret/*\""), "main/", "mine/", false},
        {DENY_BOB(ARN "*/secret/*\""), "main/", "", true},
        {DENY_BOB(ARN "m*/secret/*\""), "main/", "mine/", false},
        {DENY_BOB(ARN "m*/secret/*\""), "main/", "other/", true},
        {DENY_BOB(ARN "ma?n/x\""), "main/", "maan/", false},
        {DENY_BOB(ARN "ma?n/x\""), "main/", "mine/", true},
        {DENY_BOB(ARN "m\u00e4?n/x\""), "m\u00e4\u00fcn/", "", true},
        {DENY_BOB(ARN "main/a\"," ARN "mine/a\""), "main/", "mine/", false},
        {DENY_BOB(ARN "main/a\"," ARN "mine/b\""), "main/", "mine/", true},
        {DENY_BOB(ARN "main/a\"," ARN "mine/*\""), "main/", "mine/", false},
        {DENY_BOB(ARN "main/${aws:username}/*\""), "main/Bob/", "", true},
        {DENY_BOB(ARN "main/${aws:username}/*\""), "main/Eve/", "", false},
        {"{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"Resource\":\"*\"}",
         "main/", "", false},
        {"{\"Effect\":\"Deny\",\"Principal\":{\"AWS\":\"eve\"},\"Action\":\"s3:*\",\"Resource\":\"*"
         "\"}",
         "main/", "", false},
        {"{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:PutObject\",\"Resource\":\"*\"}",
         "main/", "", false},
        {"{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"NotResource\":" ARN
         "main/*\"}",
         "main/", "", false},
        {"{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"NotResource\":" ARN
         "main/*\"}",
         "main/", "mine/", false},
        {"{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"NotResource\":" ARN
         "main/*\"}",
         "mine/", "main/", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (is_beyond(cases[i].statement, cases[i].from, cases[i].to) != cases[i].beyond)
            test_fail(__FILE__, __LINE__, "%s: '%s' '%s'", cases[i].statement, cases[i].from,
                      cases[i].to);
}

/* Whether some key below `from` is denied, and not the same key below `to`, of all keys that go on
 * with up to three letters. */
static bool beyond_by_trying(const struct policy *p, struct policy_request r, const char *from,
                             const char *to)
{
    static const char letters[] = "ab/";

    for (int n = 0; n < 40; n++) { /* 1 + 3 + 9 + 27 rests */
        char rest[4] = "", key[16];
        int len = n < 1 ? 0 : n < 4 ? 1 : n < 13 ? 2 : 3;
        for (int i = 0, left = n; i < len; i++, left /= 3)
            rest[i] = letters[left % 3];
        snprintf(key, sizeof(key), "%s%s", from, rest);
        r.key = str_z(key);
        if (policy_evaluate(p, &r) != POLICY_DENY)
            continue;
        snprintf(key, sizeof(key), "%s%s", to, rest);
        r.key = str_z(key);
        if (!*to || policy_evaluate(p, &r) != POLICY_DENY)
            return true;
    }
    return false;
}

TEST(policy, no_denial_below_a_beginning_is_missed)
{
    static const char *const begins[] = {"a/", "b/", "ab/"};
    static const char signs[] = "ab/*?";
    unsigned seed = 5;
    size_t found = 0;

    for (int round = 0; round < 3000; round++) {
        char pattern[2][8] = {"", ""};
        struct arena a = {0};
        struct err err = {0};
        struct facts facts = {0};
        struct policy_request r = beyond_request(&a, &facts);
        struct policy *p;
        for (int k = 0; k < 2; k++)
            for (int i = 0, len = 1 + rand_r(&seed) % 6; i < len; i++)
                pattern[k][i] = signs[rand_r(&seed) % 5];
        struct str json = arena_fmt(
            &a,
            "{\"Statement\":{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:*\",\"%s\":["
            "\"arn:aws:s3:::bkt/%s\",\"arn:aws:s3:::bkt/%s\"]}}",
            round % 3 ? "Resource" : "NotResource", pattern[0], pattern[1]);
        CHECK_OK(policy_compile(&p, &a, json, STR("bkt"), &err));
        const char *from = begins[rand_r(&seed) % 3];
        const char *to = round % 4 ? begins[rand_r(&seed) % 3] : "";
        bool beyond = beyond_by_trying(p, r, from, to);
        found += beyond;
        if (beyond && !policy_denies_beyond(p, &r, str_z(from), str_z(to)))
            test_fail(__FILE__, __LINE__, "%s %s: '%s' '%s'", pattern[0], pattern[1], from, to);
        arena_release(&a);
    }
    CHECK(found > 100);
}

TEST(policy, public_is_what_everybody_may_without_a_fixed_origin)
{
    CHECK(is_public(WITH("\"*\"", "\"s3:GetObject\"", OBJECTS, "")));
    CHECK(is_public(WITH(ANYONE, "\"s3:GetObject\"", OBJECTS, "")));
    CHECK(!is_public(WITH("{\"AWS\":\"arn:aws:iam::x:root\"}", "\"s3:*\"", OBJECTS, "")));
    CHECK(!is_public(POLICY(DENY_READ)));
    CHECK(!is_public(FROM("IpAddress", "10.0.0.0/32")));
    CHECK(!is_public(FROM("IpAddress", "10.0.0.0/8")));
    CHECK(is_public(FROM("IpAddress", "0.0.0.0/1")));
    CHECK(is_public(FROM("IpAddress", "2001::/16")));
    CHECK(!is_public(FROM("IpAddress", "2001:db8::/32")));
    CHECK(is_public(FROM("NotIpAddress", "10.0.0.0/8")));
    CHECK(is_public(FROM("IpAddressIfExists", "10.0.0.0/8")));
    CHECK(is_public(STRING_IF("StringEquals", "x")));
    CHECK(!is_public(READ_IF("{\"StringLike\":{\"aws:SourceVpc\":\"vpc-1\"}}")));
    CHECK(is_public(READ_IF("{\"StringLike\":{\"aws:SourceVpc\":\"vpc-*\"}}")));
    CHECK(is_public(READ_IF("{\"ForAllValues:StringEquals\":{\"aws:SourceVpc\":\"vpc-1\"}}")));
}
