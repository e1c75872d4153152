/* policy: what is said about all keys below a beginning is true for each of them. Random policies
 * are judged as a whole, and then key by key, user by user, with and without tags. */
#include "s3/access/policy_int.h"
#include "unit/test.h"

#include <stdio.h>

enum { POLICIES = 4000, REST_MAX = 3 };

static const struct policy_who users[] = {{{"bob", 3}, {"a", 1}, {0}}, {{"eve", 3}, {"b", 1}, {0}}};
static const char *const tags[] = {NULL, "1", "2"};

struct sender {
    struct str name, tag;
};

static bool sender_value(void *ctx, enum policy_key key, struct str suffix,
                         struct policy_values *out)
{
    struct sender *s = ctx;

    (void)suffix;
    out->items = key == POLICY_KEY_USER_NAME ? &s->name : &s->tag;
    out->count = 1;
    return key == POLICY_KEY_USER_NAME || (key == POLICY_KEY_EXISTING_OBJECT_TAG && s->tag.p);
}

static uint64_t state = 7;

static size_t pick(size_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % bound;
}

static void write_pattern(struct buf *out)
{
    static const char *const parts[] = {"a", "b", "/", "*", "?", "/", "*", "${aws:username}"};
    size_t count = 1 + pick(4);

    buf_append_z(out, "\"arn:aws:s3:::bkt/");
    for (size_t i = 0; i < count; i++)
        buf_append_z(out, parts[pick(ARRAY_SIZE(parts))]);
    buf_append_char(out, '"');
}

static void write_statement(struct buf *out)
{
    static const char *const who[] = {"\"*\"", "{\"AWS\":\"bob\"}", "{\"AWS\":\"eve\"}",
                                      "{\"AWS\":[\"bob\",\"eve\"]}"};
    static const char *const conditions[] = {
        "",
        "",
        "",
        "",
        ",\"Condition\":{\"StringEquals\":{\"s3:ExistingObjectTag/t\":\"1\"}}",
        ",\"Condition\":{\"StringNotEquals\":{\"s3:ExistingObjectTag/t\":\"1\"}}",
        ",\"Condition\":{\"StringEquals\":{\"aws:username\":\"a\"}}",
        ",\"Condition\":{\"StringNotEquals\":{\"aws:username\":\"a\"}}"};

    buf_appendf(out, "{\"Effect\":\"%s\",\"Principal\":%s,\"Action\":\"s3:GetObject\",\"%s\":[",
                pick(3) ? "Allow" : "Deny", who[pick(ARRAY_SIZE(who))],
                pick(4) ? "Resource" : "NotResource");
    write_pattern(out);
    if (pick(2)) {
        buf_append_char(out, ',');
        write_pattern(out);
    }
    buf_appendf(out, "]%s}", conditions[pick(ARRAY_SIZE(conditions))]);
}

static void write_policy(struct buf *out)
{
    size_t count = 1 + pick(4);

    buf_append_z(out, "{\"Version\":\"2012-10-17\",\"Statement\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_append_char(out, ',');
        write_statement(out);
    }
    buf_append_z(out, "]}");
}

static enum policy_effect decide(const struct policy *p, struct arena *a, size_t user, size_t tag,
                                 const char *key)
{
    struct sender s = {users[user].name, tags[tag] ? str_z(tags[tag]) : STR_EMPTY};
    struct policy_request r = {.who = users[user],
                               .action = S3_ACTION_GET_OBJECT,
                               .bucket = STR("bkt"),
                               .key = str_z(key),
                               .value = sender_value,
                               .ctx = &s,
                               .arena = a};

    return policy_evaluate(p, &r);
}

/* What was said about the keys of the refs a/ and b/, for one user. */
struct said {
    size_t all_a, all, no_more_denied, gives_nothing;
};

static struct said say(const struct policy *p, struct arena *a, size_t user)
{
    struct sender s = {users[user].name, STR_EMPTY};
    struct policy_request r = {.who = users[user],
                               .action = S3_ACTION_GET_OBJECT,
                               .bucket = STR("bkt"),
                               .value = sender_value,
                               .ctx = &s,
                               .arena = a};

    return (struct said){
        .all_a = policy_allows_below(p, &r, STR("a/")) &&
                 !policy_denies_beyond(p, &r, STR("a/"), STR_EMPTY),
        .all = policy_allows_below(p, &r, STR_EMPTY) &&
               !policy_denies_beyond(p, &r, STR_EMPTY, STR_EMPTY),
        .no_more_denied = !policy_denies_beyond(p, &r, STR("a/"), STR("b/")),
        .gives_nothing = !policy_gives_beyond(p, &r, STR("a/"), STR("b/")),
    };
}

static bool is_true_of(const struct policy *p, struct arena *a, size_t user,
                       const struct said *said, const char *rest)
{
    char key_a[8], key_b[8];
    bool is_true = true;

    snprintf(key_a, sizeof(key_a), "a/%s", rest);
    snprintf(key_b, sizeof(key_b), "b/%s", rest);
    for (size_t tag = 0; tag < ARRAY_SIZE(tags); tag++) {
        enum policy_effect at_a = decide(p, a, user, tag, key_a);
        enum policy_effect at_b = decide(p, a, user, tag, key_b);
        is_true &= !said->all_a || at_a == POLICY_ALLOW;
        is_true &= !said->all || (at_a == POLICY_ALLOW && at_b == POLICY_ALLOW);
        is_true &= !said->no_more_denied || at_a != POLICY_DENY || at_b == POLICY_DENY;
        is_true &= !said->gives_nothing || at_b != POLICY_ALLOW || at_a == POLICY_ALLOW;
    }
    return is_true;
}

/* Tries all rests of keys with up to REST_MAX characters of "ab/". */
static bool is_true_of_all(const struct policy *p, struct arena *a, size_t user,
                           const struct said *said)
{
    for (unsigned len = 0, count = 1; len <= REST_MAX; len++, count *= 3)
        for (unsigned number = 0; number < count; number++) {
            char rest[REST_MAX + 1] = "";
            for (unsigned i = 0, left = number; i < len; i++, left /= 3)
                rest[i] = "ab/"[left % 3];
            if (!is_true_of(p, a, user, said, rest))
                return false;
        }
    return true;
}

TEST(policy_below, what_is_said_about_all_keys_is_true_for_each_of_them)
{
    struct said times = {0};

    for (size_t i = 0; i < POLICIES; i++) {
        struct buf json = BUF_INIT(16 * KIB);
        struct arena a = {0};
        struct err err = {0};
        struct policy *p;
        write_policy(&json);
        CHECK_OK(policy_compile(&p, &a, buf_str(&json), STR("bkt"), &err));
        for (size_t user = 0; user < ARRAY_SIZE(users); user++) {
            struct said said = say(p, &a, user);
            bool is_true = is_true_of_all(p, &a, user, &said);
            if (!is_true)
                fprintf(stderr, "user %zu: %.*s\n", user, (int)json.len, json.p);
            CHECK(is_true);
            times.all_a += said.all_a;
            times.all += said.all;
            times.no_more_denied += said.no_more_denied;
            times.gives_nothing += said.gives_nothing;
        }
        arena_release(&a);
        buf_release(&json);
    }
    /* Policies whose answer is yes are not rare. */
    CHECK(times.all_a > POLICIES / 50);
    CHECK(times.all > POLICIES / 200);
    CHECK(times.no_more_denied > POLICIES / 2);
    CHECK(times.gives_nothing > POLICIES / 10);
}

/* --- examples --- */

static bool allows_below(const char *resource, const char *begin)
{
    struct arena a = {0};
    struct err err = {0};
    struct policy *p;
    struct str json = arena_fmt(&a,
                                "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\","
                                "\"Principal\":\"*\",\"Action\":\"s3:GetObject\",%s}]}",
                                resource);
    struct sender s = {STR("a"), STR_EMPTY};
    struct policy_request r = {.who = users[0],
                               .action = S3_ACTION_GET_OBJECT,
                               .bucket = STR("bkt"),
                               .value = sender_value,
                               .ctx = &s,
                               .arena = &a};

    CHECK_OK(policy_compile(&p, &a, json, STR("bkt"), &err));
    bool allows = policy_allows_below(p, &r, str_z(begin));
    arena_release(&a);
    return allows;
}

#define ON "\"Resource\":\"arn:aws:s3:::bkt/"

TEST(policy_below, only_a_rule_for_every_key_allows_all_keys)
{
    CHECK(allows_below(ON "*\"", ""));
    CHECK(allows_below("\"Resource\":\"*\"", ""));
    CHECK(allows_below("\"Resource\":[\"arn:aws:s3:::bkt/a\",\"arn:aws:s3:::bkt*\"]", ""));
    CHECK(!allows_below(ON "?/*\"", ""));
    CHECK(!allows_below(ON "?*\"", ""));
    CHECK(!allows_below(ON "a/*\"", ""));
    CHECK(!allows_below("\"NotResource\":\"arn:aws:s3:::bkt/a/*\"", ""));
    CHECK(allows_below("\"NotResource\":\"arn:aws:s3:::bkt\"", ""));
    CHECK(allows_below(ON "a/*\"", "a/"));
    CHECK(allows_below(ON "${aws:username}/*\"", "a/"));
    CHECK(!allows_below(ON "${aws:username}/*\"", "b/"));
    CHECK(!allows_below(ON "a/public/*\"", "a/"));
    CHECK(!allows_below(ON "*/\"", "a/"));
    CHECK(allows_below("\"NotResource\":\"arn:aws:s3:::bkt/b/*\"", "a/"));
    CHECK(!allows_below("\"NotResource\":\"arn:aws:s3:::bkt/a/secret/*\"", "a/"));
    CHECK(!allows_below(
        ON "*\",\"Condition\":{\"StringNotEquals\":{\"s3:ExistingObjectTag/t\":\"1\"}}", "a/"));
    CHECK(allows_below(ON "*\",\"Condition\":{\"StringEquals\":{\"aws:username\":\"a\"}}", "a/"));
    CHECK(!allows_below(ON "*\",\"Condition\":{\"StringEquals\":{\"aws:username\":\"b\"}}", "a/"));
}
