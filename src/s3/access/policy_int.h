/* Compiled statements, conditions and patterns, shared by the files of policy. */
#ifndef S3_ACCESS_POLICY_INT_H
#define S3_ACCESS_POLICY_INT_H

#include "base/json.h"
#include "s3/access/policy.h"

/* --- patterns ---
 *
 * A pattern is a string in which bytes that UTF-8 never has stand for wildcards and variables. So
 * ordinary characters need no escapes and the value of a variable cannot act as a wildcard. */
enum pattern_byte {
    PATTERN_ANY = 0xff,     /* '*' */
    PATTERN_ONE = 0xfe,     /* '?' */
    PATTERN_OPEN = 0xfd,    /* begins a variable: OPEN name CLOSE */
    PATTERN_DEFAULT = 0xfc, /* a variable with a default: OPEN name DEFAULT text CLOSE */
    PATTERN_CLOSE = 0xfb,
};

struct pattern {
    struct str text;
    bool wild;      /* contains PATTERN_ANY or PATTERN_ONE */
    bool variables; /* contains PATTERN_OPEN */
};

enum pattern_flags { PATTERN_WILD = 1, PATTERN_VARIABLES = 2 };

/* Compiles a text. `flags` say whether wildcards and ${variables} are special. ERR_PARSE: a
 * variable is not closed or not known. */
int pattern_compile(struct pattern *out, struct arena *a, struct str text, unsigned flags);

/* Replaces the variables by their values. Returns false when a variable does not have exactly one
 * value, or when the arena is full; the arena remembers that it was full. */
bool pattern_expand(const struct pattern *p, const struct policy_request *r, struct str *out);

/* Returns a variable of the pattern that has no default and for which no request has a value; empty
 * when there is none. */
struct str pattern_never(const struct pattern *p);

/* Whether the expanded pattern matches `s`. PATTERN_ONE matches one character, or one byte where
 * `s` is not UTF-8. policy_pattern.c says how long this takes. A pattern with PATTERN_ONE never
 * matches a string over 64 KiB; with `fold_case` no pattern does. */
bool pattern_match(struct str pattern, struct str s, bool fold_case);

/* --- conditions --- */

enum condition_type {
    CONDITION_STRING,
    CONDITION_STRING_FOLDED,
    CONDITION_LIKE,
    CONDITION_NUMERIC,
    CONDITION_DATE,
    CONDITION_BOOL,
    CONDITION_IP,
    CONDITION_ARN,
    CONDITION_NULL,
};

enum condition_compare { COMPARE_EQ, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };
enum condition_set { SET_NONE, SET_ALL_VALUES, SET_ANY_VALUE };

struct condition_operator {
    const char *name;
    enum condition_type type;
    enum condition_compare compare;
    bool negated;
};

struct ip_range {
    unsigned char bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
    unsigned bits;           /* length of the prefix; at most 128 */
};

struct condition_value {
    struct pattern pattern; /* for strings and ARNs */
    double number;          /* for numbers, and for dates in milliseconds since 1970 */
    bool boolean;
    struct ip_range range;
};

struct condition {
    const struct condition_operator *op;
    enum condition_set set;
    bool if_exists;
    enum policy_key key;
    struct str suffix;
    struct condition_value *values;
    size_t count;
    struct condition *next;
};

/* Compiles the "Condition" of a statement to a list of conditions that must all hold. */
int conditions_compile(struct condition **out, struct arena *a, const json_t *json, bool variables,
                       struct err *err) MUST_CHECK;
/* Whether all conditions of the list hold. `unknown` is the result for a condition whose key
 * r->knows() does not know. */
bool conditions_hold(const struct condition *list, const struct policy_request *r, bool unknown);
/* Whether the conditions hold for some object. Conditions on keys "aws:..." without variables are
 * about the caller and the connection, and are evaluated. All other conditions are about the
 * object, and count as true. */
bool conditions_may_hold(const struct condition *list, const struct policy_request *r);
/* Whether the conditions hold for every object. Conditions about the object count as false. */
bool conditions_surely_hold(const struct condition *list, const struct policy_request *r);
/* Whether the conditions may depend on the tags of the object. */
bool conditions_ask_tags(const struct condition *list);

/* Returns the first condition that can never hold, because no request has its key; NULL when there
 * is none. */
const struct condition *conditions_never(const struct condition *list);

/* Whether a condition limits who may send the request, so that the statement is not public. */
bool conditions_limit_public(const struct condition *list);

/* --- policies --- */

enum principal_kind {
    PRINCIPAL_ANY,
    PRINCIPAL_ID,
    PRINCIPAL_USER,
    PRINCIPAL_SERVICE,
    PRINCIPAL_ROLE, /* weir has no roles: matches nobody */
    PRINCIPAL_FEDERATED
};

struct principal {
    enum principal_kind kind;
    struct str account; /* the account in the ARN, which is a user's id; may be empty */
    struct str name;
};

struct statement {
    enum policy_effect effect;
    bool not_principal, not_resource;
    uint64_t actions[(S3_ACTIONS + 63) / 64]; /* one bit for each action */
    struct principal *principals;
    struct pattern *resources; /* the parts behind "arn:aws:s3:::" */
    size_t principal_count, resource_count;
    struct condition *conditions;
};

struct policy {
    struct statement *statements;
    size_t count;
    bool variables; /* the policy's version is 2012-10-17, which has variables */
    bool large;     /* the policy's JSON has more than POLICY_FAST_BYTES */
};

/* Whether the statement is about the action of the user, on some resource and under some
 * conditions. */
bool statement_concerns(const struct statement *s, const struct policy_who *who,
                        enum s3_action action);
bool statement_has_action(const struct statement *s, enum s3_action action);

int principals_compile(struct statement *s, struct arena *a, const json_t *json,
                       struct err *err) MUST_CHECK;

/* A member of a policy may be one value or a list. json_one_or_more() returns the number of values
 * (0: no member); json_item() returns value `i`. */
size_t json_one_or_more(const json_t *json);
const json_t *json_item(const json_t *json, size_t i);
struct str json_text(const json_t *json); /* p is NULL if `json` is not a string */

#endif
