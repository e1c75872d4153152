/* policy: whatever compiles can be asked, within the arena, with the same answer twice. The first
 * byte chooses the request. */
#include "s3/access/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool value_of(void *ctx, enum policy_key key, struct str suffix, struct policy_values *out)
{
    static const struct str texts[] = {
        STR("a"),       STR("10"),     STR("10.1.2.3"), STR("2024-02-03T12:00:00Z"),
        STR("true"),    STR("b/*"),    STR("\xff\xfe"), STR("arn:aws:s3:::bkt/x"),
        STR("2001::1"), STR("public"), STR(""),         STR("id=alice"),
    };
    unsigned mix = *(const unsigned *)ctx + (unsigned)key + (unsigned)suffix.len;

    out->items = &texts[mix % (ARRAY_SIZE(texts) - 2)];
    out->count = mix % 3;
    return mix % 5 != 0;
}

static void check_answer(const struct policy *p, struct arena *a, unsigned choice)
{
    struct policy_request r = {.action = (enum s3_action)(choice % S3_ACTIONS),
                               .bucket = STR("bkt"),
                               .key = choice & 1 ? STR("a/b\xc3\xbc") : STR_EMPTY,
                               .value = value_of,
                               .ctx = &choice,
                               .arena = a};
    enum policy_effect effect;

    if (choice & 2)
        r.who = (struct policy_who){STR("alice"), STR("al"), STR_EMPTY};
    effect = policy_evaluate(p, &r);
    BUG_ON(effect != policy_evaluate(p, &r));
    BUG_ON(effect != POLICY_NONE && effect != POLICY_ALLOW && effect != POLICY_DENY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = ARENA_INIT(4 * MIB);
    struct err err = {0};
    struct policy *p = NULL;
    int code;

    if (size == 0)
        return 0;
    code = policy_compile(&p, &a, str_n(data + 1, size - 1), STR("bkt"), &err);
    BUG_ON((code == 0) != (p != NULL));
    BUG_ON(code < 0 && err.text[0] == '\0');
    BUG_ON(code < 0 && code != S3_MALFORMED_POLICY && code != ERR_NO_MEMORY);
    if (code == 0) {
        (void)policy_is_public(p);
        for (unsigned i = 0; i < 16; i++)
            check_answer(p, &a, data[0] + i * 17);
    }
    arena_release(&a);
    return 0;
}
