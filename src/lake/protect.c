/* Protected branches: rules that refuse writes to a branch, or commits to it. The rules are
 * lakeFS's message BranchProtectionRules: a map from patterns of branch names to lists of actions.
 */
#include "lake/lake_int.h"

/* The numbers of the actions in the message; bits of enum lake_protect are 1 << number. */
enum { ACTION_STAGING_WRITE = 0, ACTION_COMMIT = 1, ACTION_COUNT };

/* The numbers of fields. */
enum { RULES_ENTRY = 1, ENTRY_PATTERN = 1, ENTRY_ACTIONS = 2, ACTIONS_VALUE = 1 };

struct kv_name lake_key_protection(struct arena *a, struct str partition)
{
    return lake_key_in(a, partition, "settings", STR("protected_branches"));
}

/* Whether a name matches a pattern: `*` stands for any bytes, `?` for any one byte. */
static bool pattern_matches(struct str pattern, struct str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, star_at = 0;

    while (n < name.len) {
        if (p < pattern.len && pattern.p[p] == '*') {
            star = p++;
            star_at = n;
        } else if (p < pattern.len && (pattern.p[p] == '?' || pattern.p[p] == name.p[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) { /* the star takes one byte more */
            p = star + 1;
            n = ++star_at;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.p[p] == '*')
        p++;
    return p == pattern.len;
}

/* Takes a varint off the front, for packed numbers. */
static bool actions_take_packed(struct str *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; in->len && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)in->p[0];
        *in = str_skip(*in, 1);
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static unsigned actions_bit(uint64_t number)
{
    return number < ACTION_COUNT ? 1u << number : 0;
}

/* Reads a list of actions, packed or not, as a set of enum lake_protect. */
static bool actions_read(struct str in, unsigned *out)
{
    struct proto_value v;
    uint64_t number;

    while (in.len) {
        if (!proto_take(&in, &v))
            return false;
        if (v.number != ACTIONS_VALUE)
            continue;
        if (v.wire == WIRE_VARINT)
            *out |= actions_bit(v.value);
        while (v.wire == WIRE_BYTES && v.bytes.len) {
            if (!actions_take_packed(&v.bytes, &number))
                return false;
            *out |= actions_bit(number);
        }
    }
    return true;
}

/* Reads one rule: a pattern and its actions. */
static bool rule_read(struct str in, struct str *pattern, unsigned *actions)
{
    struct proto_value v;

    *pattern = STR_EMPTY;
    *actions = 0;
    while (in.len) {
        if (!proto_take(&in, &v))
            return false;
        if (v.number == ENTRY_PATTERN && v.wire == WIRE_BYTES)
            *pattern = v.bytes;
        if (v.number == ENTRY_ACTIONS && v.wire == WIRE_BYTES && !actions_read(v.bytes, actions))
            return false;
    }
    return true;
}

int lake_judge_protection(const struct kv_value *rules, struct str branch, unsigned what,
                          struct err *err)
{
    struct str in = rules->bytes, pattern;
    struct proto_value v;
    unsigned actions;

    while (in.len) {
        if (!proto_take(&in, &v))
            return err_set(err, ERR_CORRUPT, "the rules of protected branches are damaged");
        if (v.number != RULES_ENTRY || v.wire != WIRE_BYTES)
            continue;
        if (!rule_read(v.bytes, &pattern, &actions))
            return err_set(err, ERR_CORRUPT, "the rules of protected branches are damaged");
        if ((actions & what) && pattern_matches(pattern, branch))
            return err_set(err, ERR_DENIED, "cannot write to protected branch");
    }
    return 0;
}

int lake_check_protection(struct lake *l, struct arena *a, const struct lake_repo *r,
                          struct str branch, unsigned what, struct err *err)
{
    struct kv_name name = lake_key_protection(a, r->partition);
    struct kv_value rules;
    int code = kv_get_many(l->kv, NULL, a, &name, 1, &rules, err);

    return code < 0 ? code : lake_judge_protection(&rules, branch, what, err);
}
