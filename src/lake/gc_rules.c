/* Reads and writes rules of retention. They are stored as lakeFS's message GarbageCollectionRules,
 * which has a default number of days and a map from branches to days. */
#include "lake/gc.h"
#include "lake/lake_int.h"
#include "lake/names.h"

#include <stdlib.h>

/* Numbers of the fields in the message. */
enum { RULES_DEFAULT = 1, RULES_BRANCH = 2, BRANCH_NAME = 1, BRANCH_DAYS = 2 };

static struct kv_name gc_rules_key(struct arena *a, const struct lake_repo *r)
{
    return lake_key_in(a, r->partition, "settings", STR("gc_rules"));
}

/* Returns false for a number that is too large, instead of cutting it: with another number of days
 * a collection could remove commits that are to be kept. */
static bool gc_rules_read_days(const struct proto_value *v, uint32_t *out)
{
    *out = (uint32_t)v->value;
    return v->wire == WIRE_VARINT && v->value <= LAKE_GC_DAYS_MAX;
}

static bool gc_rules_read_branch(struct str in, struct lake_gc_branch_rule *out)
{
    struct proto_value v;

    *out = (struct lake_gc_branch_rule){0};
    while (in.len) {
        if (!proto_take(&in, &v))
            return false;
        if (v.number == BRANCH_NAME && v.wire != WIRE_BYTES)
            return false;
        if (v.number == BRANCH_NAME)
            out->branch = v.bytes;
        if (v.number == BRANCH_DAYS && !gc_rules_read_days(&v, &out->days))
            return false;
    }
    return true;
}

/* Adds the rule that `in` encodes. The names of branches must ascend, so that each branch has only
 * one rule. */
static bool gc_rules_add_branch(struct lake_gc_rules *rules, struct str in)
{
    struct lake_gc_branch_rule *rule = &rules->branches[rules->count];

    if (rules->count == LAKE_GC_BRANCHES_MAX || !gc_rules_read_branch(in, rule) ||
        (rules->count && str_cmp(rule[-1].branch, rule->branch) >= 0))
        return false;
    rules->count++;
    return true;
}

int lake_gc_rules_read(struct lake_gc_rules *out, struct arena *a, struct str in, struct err *err)
{
    struct proto_value v;
    bool good = true;

    *out = (struct lake_gc_rules){.branches =
                                      arena_array(a, LAKE_GC_BRANCHES_MAX, sizeof(*out->branches))};
    if (!out->branches)
        return err_code(err, ERR_NO_MEMORY);
    while (in.len && good) {
        good = proto_take(&in, &v);
        if (good && v.number == RULES_DEFAULT)
            good = gc_rules_read_days(&v, &out->default_days);
        if (good && v.number == RULES_BRANCH)
            good = v.wire == WIRE_BYTES && gc_rules_add_branch(out, v.bytes);
    }
    return good ? 0 : err_set(err, ERR_CORRUPT, "the rules of collection are damaged");
}

int lake_gc_rules_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                      struct lake_gc_rules *out, struct err *err)
{
    struct kv_value row;
    int code =
        lake_row_get(l, a, r, gc_rules_key(a, r), "garbage collection rules not found", &row, err);

    return code < 0 ? code : lake_gc_rules_read(out, a, row.bytes, err);
}

static int gc_rules_check(const struct lake_gc_rules *rules, struct err *err)
{
    bool good = rules->default_days <= LAKE_GC_DAYS_MAX && rules->count <= LAKE_GC_BRANCHES_MAX;
    int code = 0;

    for (size_t i = 0; good && code == 0 && i < rules->count; i++) {
        code = lake_check_branch(rules->branches[i].branch, err);
        good = rules->branches[i].days <= LAKE_GC_DAYS_MAX;
        for (size_t k = 0; k < i && code == 0; k++)
            if (str_eq(rules->branches[k].branch, rules->branches[i].branch))
                code = err_set(err, ERR_INVALID, "there are two rules for " STR_FMT,
                               STR_ARG(rules->branches[i].branch));
    }
    return good ? code
                : err_set(err, ERR_INVALID,
                          "rules of collection have at most %d branches and %d days",
                          LAKE_GC_BRANCHES_MAX, LAKE_GC_DAYS_MAX);
}

static int gc_rule_order(const void *a, const void *b)
{
    const struct lake_gc_branch_rule *l = a, *r = b;

    return str_cmp(l->branch, r->branch);
}

struct str lake_gc_rules_write(struct arena *a, const struct lake_gc_rules *rules)
{
    struct lake_gc_branch_rule *sorted = arena_array(a, rules->count + 1, sizeof(*sorted));
    struct buf record = {0}, entry = {0};

    if (!sorted)
        return STR_EMPTY;
    if (rules->count)
        memcpy(sorted, rules->branches, rules->count * sizeof(*sorted));
    qsort(sorted, rules->count, sizeof(*sorted), gc_rule_order);
    proto_put_number(&record, RULES_DEFAULT, rules->default_days);
    for (size_t i = 0; i < rules->count; i++) {
        buf_reset(&entry);
        proto_put_bytes(&entry, BRANCH_NAME, sorted[i].branch);
        proto_put_number(&entry, BRANCH_DAYS, sorted[i].days);
        proto_put_bytes(&record, RULES_BRANCH, buf_str(&entry));
    }
    struct str value = record.len ? arena_str(a, buf_str(&record)) : STR("");
    buf_release(&record);
    buf_release(&entry);
    return value;
}

/* Puts the row of the rules, or removes it. */
static int gc_rules_write(struct lake *l, struct arena *a, const struct lake_repo *r,
                          struct str value, struct err *err)
{
    struct lake_repo now = *r;
    struct lake_tx tx;
    int code;

    do {
        lake_tx_init(&tx, a);
        lake_tx_check_repo(&tx, &now);
        if (value.p)
            lake_tx_put(&tx, gc_rules_key(a, r), value);
        else
            lake_tx_remove(&tx, gc_rules_key(a, r), KV_ALWAYS, STR_EMPTY);
        code = lake_tx_write(l, &tx, NULL, err);
        if (code != ERR_PRECONDITION)
            return code;
        code = lake_repo_again(l, a, r, &now, err);
    } while (code == 0);
    return code;
}

int lake_gc_rules_set(struct lake *l, struct arena *a, const struct lake_repo *r,
                      const struct lake_gc_rules *rules, struct err *err)
{
    int code = gc_rules_check(rules, err);

    if (code < 0)
        return code;
    struct str value = lake_gc_rules_write(a, rules);
    return value.p ? gc_rules_write(l, a, r, value, err) : err_code(err, ERR_NO_MEMORY);
}

int lake_gc_rules_delete(struct lake *l, struct arena *a, const struct lake_repo *r,
                         struct err *err)
{
    return gc_rules_write(l, a, r, STR_EMPTY, err);
}
