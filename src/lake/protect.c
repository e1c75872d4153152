/* Reads, writes and applies the rules of protected branches. They are stored as lakeFS's message
 * BranchProtectionRules, a map from patterns of branch names to lists of actions. */
#include "lake/lake_int.h"

#include "base/bytes.h"
#include "sign/hmac.h"

/* The numbers of the actions in the stored message. The bit of an action in enum lake_protect is 1
 * << number. */
enum { ACTION_STAGING_WRITE = 0, ACTION_COMMIT = 1, ACTION_COUNT };

/* Numbers of the message's fields. */
enum { RULES_ENTRY = 1, ENTRY_PATTERN = 1, ENTRY_ACTIONS = 2, ACTIONS_VALUE = 1 };

struct kv_name lake_key_protection(struct arena *a, struct str partition)
{
    return lake_key_in(a, partition, "settings", STR("protected_branches"));
}

bool lake_pattern_matches(struct str pattern, struct str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, star_at = 0;

    while (n < name.len) {
        if (p < pattern.len && pattern.p[p] == '*') {
            star = p++;
            star_at = n;
        } else if (p < pattern.len && (pattern.p[p] == '?' || pattern.p[p] == name.p[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) { /* let the last star match one more byte */
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

/* --- reading the rules --- */

static unsigned actions_bit(uint64_t number)
{
    return number < ACTION_COUNT ? 1u << number : 0;
}

/* Reads a list of actions as a set of enum lake_protect. The list may be packed, as protobuf calls
 * it, or not. */
static bool actions_read(struct str in, unsigned *out)
{
    struct proto_value v;
    uint64_t number;

    while (in.len) {
        if (!proto_take(&in, &v))
            return false;
        if (v.number != ACTIONS_VALUE)
            continue;
        if (v.wire != WIRE_VARINT && v.wire != WIRE_BYTES)
            return false;
        if (v.wire == WIRE_VARINT)
            *out |= actions_bit(v.value);
        while (v.bytes.len) {
            if (!varint_take(&v.bytes, &number))
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
        if (v.number != ENTRY_PATTERN && v.number != ENTRY_ACTIONS)
            continue;
        if (v.wire != WIRE_BYTES)
            return false;
        if (v.number == ENTRY_PATTERN)
            *pattern = v.bytes;
        else if (!actions_read(v.bytes, actions))
            return false;
    }
    return true;
}

/* A rule that cannot be read is an error. If the rule were skipped, changes that it forbids would
 * be allowed. */
int lake_protection_take(struct str *in, struct lake_protection_rule *out, struct err *err)
{
    struct proto_value v = {0};
    bool good = true;

    while (good && in->len && v.number != RULES_ENTRY)
        good = proto_take(in, &v);
    if (good && v.number != RULES_ENTRY)
        return ERR_END;
    return good && v.wire == WIRE_BYTES && rule_read(v.bytes, &out->pattern, &out->what)
               ? 0
               : err_set(err, ERR_CORRUPT, "the rules of protected branches are damaged");
}

int lake_judge_protection(const struct kv_value *rules, struct str branch, unsigned what,
                          struct err *err)
{
    struct str in = rules->bytes;
    struct lake_protection_rule rule;
    int code;

    while ((code = lake_protection_take(&in, &rule, err)) == 0)
        if ((rule.what & what) && lake_pattern_matches(rule.pattern, branch))
            return err_set(err, ERR_DENIED, "cannot write to protected branch");
    return code == ERR_END ? 0 : code;
}

static struct str rules_checksum(struct arena *a, const struct kv_value *row)
{
    unsigned char hash[SHA256_LEN];

    if (!kv_is_there(row))
        return STR_EMPTY;
    sha256(row->bytes, hash);
    return arena_hex(a, hash, sizeof(hash));
}

/* Reads the row of the rules. A missing row is no error. */
static int rules_load(struct lake *l, struct arena *a, const struct lake_repo *r,
                      struct kv_value *out, struct err *err)
{
    return lake_row_get(l, a, r, lake_key_protection(a, r->partition), NULL, out, err);
}

int lake_protection_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                        struct lake_protection *out, struct err *err)
{
    struct lake_protection_rule rule;
    struct kv_value row = {0};
    int code = rules_load(l, a, r, &row, err);
    struct str in = row.bytes;

    *out = (struct lake_protection){0};
    if (code < 0)
        return code;
    out->checksum = rules_checksum(a, &row);
    out->rules = arena_array(a, LAKE_RULES_MAX, sizeof(*out->rules));
    if (!out->rules)
        return err_code(err, ERR_NO_MEMORY);
    while ((code = lake_protection_take(&in, &rule, err)) == 0) {
        if (out->count == LAKE_RULES_MAX)
            return err_set(err, ERR_CORRUPT, "there are too many rules of protected branches");
        out->rules[out->count++] = rule;
    }
    return code == ERR_END ? 0 : code;
}

int lake_check_protection(struct lake *l, struct arena *a, const struct lake_repo *r,
                          struct str branch, unsigned what, struct err *err)
{
    struct kv_value rules;
    int code = rules_load(l, a, r, &rules, err);

    return code < 0 ? code : lake_judge_protection(&rules, branch, what, err);
}

/* --- writing the rules --- */

static int rules_check(const struct lake_protection *p, struct err *err)
{
    if (p->count > LAKE_RULES_MAX)
        return err_set(err, ERR_INVALID, "a repository has at most %d rules of protection",
                       LAKE_RULES_MAX);
    for (size_t i = 0; i < p->count; i++) {
        const struct lake_protection_rule *rule = &p->rules[i];
        if (rule->pattern.len == 0 || rule->pattern.len > LAKE_PATTERN_MAX ||
            !str_is_utf8(rule->pattern))
            return err_set(err, ERR_INVALID, "a pattern of branch names has 1 to %d bytes of UTF-8",
                           LAKE_PATTERN_MAX);
        if ((rule->what & (LAKE_PROTECT_STAGING | LAKE_PROTECT_COMMIT)) == 0)
            return err_set(err, ERR_INVALID, "the rule for " STR_FMT " protects nothing",
                           STR_ARG(rule->pattern));
        for (size_t k = 0; k < i; k++)
            if (str_eq(p->rules[k].pattern, rule->pattern))
                return err_set(err, ERR_INVALID, "there are two rules for " STR_FMT,
                               STR_ARG(rule->pattern));
    }
    return 0;
}

static void rule_write(struct buf *out, const struct lake_protection_rule *rule)
{
    struct buf list = {0}, entry = {0};

    for (unsigned i = 0; i < ACTION_COUNT; i++) /* a packed field: one byte for each number */
        if (rule->what & actions_bit(i))
            buf_append_char(&entry, (char)i);
    proto_put_bytes(&list, ACTIONS_VALUE, buf_str(&entry));
    buf_reset(&entry);
    proto_put_bytes(&entry, ENTRY_PATTERN, rule->pattern);
    proto_put_bytes(&entry, ENTRY_ACTIONS, buf_str(&list));
    proto_put_bytes(out, RULES_ENTRY, buf_str(&entry));
    buf_release(&list);
    buf_release(&entry);
}

void lake_protection_write(struct buf *out, const struct lake_protection *p)
{
    for (size_t i = 0; i < p->count; i++)
        rule_write(out, &p->rules[i]);
}

/* Encodes all rules into the arena. */
static int rules_encode(struct arena *a, const struct lake_protection *p, struct str *out,
                        struct err *err)
{
    struct buf record = BUF_INIT(KV_VALUE_MAX);

    lake_protection_write(&record, p);
    int code = buf_error(&record);
    *out = record.len ? arena_str(a, buf_str(&record)) : STR("");
    buf_release(&record);
    return code < 0 ? err_code(err, code) : 0;
}

/* Writes the rules and counts the change in the repository's record, in one step. So a write that
 * checks the repository's record notices a change of the rules, too. ERR_AGAIN: the record has
 * changed. */
static int rules_put(struct lake *l, struct arena *a, const struct lake_repo *r, struct str rules,
                     const struct str *if_match, struct err *err)
{
    enum { REPO_PUT, RULES_PUT };
    struct lake_repo now;
    struct kv_value row = {0};
    struct lake_tx tx;
    size_t failed = REPO_PUT;
    int code = lake_repo_again(l, a, r, &now, err);

    if (code == 0)
        code = rules_load(l, a, r, &row, err);
    if (code < 0)
        return code;
    if (if_match && !str_eq(*if_match, rules_checksum(a, &row)))
        return err_set(err, ERR_PRECONDITION, "the rules of protected branches have changed");
    now.rules++;
    lake_tx_init(&tx, a);
    lake_tx_put_repo(&tx, &now);
    lake_tx_put_if(&tx, lake_key_protection(a, r->partition), rules,
                   !if_match           ? KV_ALWAYS
                   : kv_is_there(&row) ? KV_SAME
                                       : KV_ABSENT,
                   row.stamp);
    code = lake_tx_write(l, &tx, &failed, err);
    if (code == ERR_PRECONDITION && failed == RULES_PUT)
        return err_set(err, code, "the rules of protected branches have changed");
    return code == ERR_PRECONDITION ? ERR_AGAIN : code;
}

int lake_protection_set(struct lake *l, struct arena *a, const struct lake_repo *r,
                        const struct lake_protection *p, const struct str *if_match,
                        struct err *err)
{
    struct str rules = STR_EMPTY;
    int code = rules_check(p, err);

    if (code == 0)
        code = rules_encode(a, p, &rules, err);
    if (code < 0)
        return code;
    while ((code = rules_put(l, a, r, rules, if_match, err)) == ERR_AGAIN) {
    }
    return code;
}
