/* Protected branches: rules that refuse staged writes to a branch, or commits on it.
 *
 * The rules of a repository are one row, `settings/protected_branches`, in lakeFS's message
 * BranchProtectionRules. A rule has a pattern of branch names, in which `*` stands for any bytes
 * and `?` for one byte, and a set of enum lake_protect.
 *
 * A new rule is effective at once. The repository's record counts the changes of the rules. Every
 * change of a branch either reads the row of the rules, or checks that the repository's record is
 * still the same. */
#ifndef LAKE_PROTECT_H
#define LAKE_PROTECT_H

#include "lake/lake.h"

/* The kinds of changes that a rule refuses. The error is ERR_DENIED, "cannot write to protected
 * branch". */
enum lake_protect { LAKE_PROTECT_STAGING = 1, LAKE_PROTECT_COMMIT = 2 };

enum {
    LAKE_RULES_MAX = 1000,   /* most rules of a repository */
    LAKE_PATTERN_MAX = 1024, /* longest pattern, in bytes */
};

struct lake_protection_rule {
    struct str pattern;
    unsigned what; /* what the rule refuses: a set of enum lake_protect; never 0 */
};

struct lake_protection {
    struct lake_protection_rule *rules; /* no pattern occurs twice */
    size_t count;
    /* The SHA-256 of the stored row in hex, for If-Match; empty: there is no row. */
    struct str checksum;
};

/* Appends the encoded rules. */
void lake_protection_write(struct buf *out, const struct lake_protection *p);
/* Reads the next rule from the bytes of the row, and removes it from `in`. The pattern points into
 * these bytes. ERR_END: there are no more rules. ERR_CORRUPT: the bytes are damaged. */
int lake_protection_take(struct str *in, struct lake_protection_rule *out,
                         struct err *err) MUST_CHECK;

/* Reads the rules. A repository without the row has no rules. */
int lake_protection_get(struct lake *l, struct arena *a, const struct lake_repo *r,
                        struct lake_protection *out, struct err *err) MUST_CHECK;
/* Replaces the rules; p->checksum is not used. `if_match` is a condition: the checksum that the
 * stored rules must have, or an empty string if there must be no row; NULL: no condition.
 * ERR_PRECONDITION: the condition does not hold. ERR_INVALID: a pattern is empty, too long or
 * occurs twice, or a rule protects nothing. */
int lake_protection_set(struct lake *l, struct arena *a, const struct lake_repo *r,
                        const struct lake_protection *p, const struct str *if_match,
                        struct err *err) MUST_CHECK;

/* Whether a name matches a pattern: `*` stands for any bytes, `?` for any one byte. */
bool lake_pattern_matches(struct str pattern, struct str name);

/* --- checks of the lake's own operations --- */

/* Refuses the change `what` (a set of enum lake_protect) if a rule protects the branch from it. */
int lake_check_protection(struct lake *l, struct arena *a, const struct lake_repo *r,
                          struct str branch, unsigned what, struct err *err) MUST_CHECK;
/* The two steps of lake_check_protection(), for callers that read the row of the rules together
 * with other rows: the name of the row, and the check. */
struct kv_name lake_key_protection(struct arena *a, struct str partition);
int lake_judge_protection(const struct kv_value *rules, struct str branch, unsigned what,
                          struct err *err) MUST_CHECK;

#endif
