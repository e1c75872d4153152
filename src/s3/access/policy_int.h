/* Between the files of policy: compiled statements, conditions and patterns. */
#ifndef S3_ACCESS_POLICY_INT_H
#define S3_ACCESS_POLICY_INT_H

#include "base/json.h"
#include "s3/access/policy.h"

/* --- patterns ---
 *
 * A pattern is a string in which bytes that UTF-8 never has stand for what is special, so that
 * ordinary characters need no escapes and what a variable brings in cannot be special. */
enum pattern_byte {
    PATTERN_ANY = 0xff,     /* '*' */
    PATTERN_ONE = 0xfe,     /* ? */
    PATTERN_OPEN = 0xfd,    /* a variable: OPEN key suffix... */
    PATTERN_DEFAULT = 0xfc, /* OPEN name DEFAULT text CLOSE */
    PATTERN_CLOSE = 0xfb,
};

struct pattern {
    struct str text;
    bool wild;      /* has ANY or ONE */
    bool variables; /* has OPEN */
};

enum pattern_flags { PATTERN_WILD = 1, PATTERN_VARIABLES = 2 };

/* `flags`: which of wildcards and ${variables} are special. ERR_PARSE for a variable that is not
 * closed or not known. */
int pattern_compile(struct pattern *out, struct arena *a, struct str text, unsigned flags);

/* With its variables' values: false when a variable has none (or not one single one), or when the
 * arena is full, which the arena remembers. */
bool pattern_expand(const struct pattern *p, const struct policy_request *r, struct str *out);

/* A variable of it that no request has and that has no default; an empty string: there is none. */
struct str pattern_never(const struct pattern *p);

/* Of an expanded pattern; PATTERN_ONE is one character, or one byte of what is not UTF-8. Takes
 * time in proportion to the length of both (policy_pattern.c). A string past 64 KiB matches no '?'.
 */
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
    unsigned bits;           /* of 128 */
};

struct condition_value {
    struct pattern pattern; /* strings, ARNs */
    double number;          /* numbers; dates in milliseconds */
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

/* The "Condition" of a statement: a list of conditions that must all hold. */
int conditions_compile(struct condition **out, struct arena *a, const json_t *json, bool variables,
                       struct err *err) MUST_CHECK;
bool conditions_hold(const struct condition *list, const struct policy_request *r);

/* The first one that can never hold, as no request has its key; NULL: there is none. */
const struct condition *conditions_never(const struct condition *list);

/* Whether one of them fixes who may come. */
bool conditions_limit_public(const struct condition *list);

/* --- policies --- */

enum principal_kind {
    PRINCIPAL_ANY,
    PRINCIPAL_ID,
    PRINCIPAL_USER,
    PRINCIPAL_SERVICE,
    PRINCIPAL_ROLE, /* nobody here, as is: */
    PRINCIPAL_FEDERATED
};

struct principal {
    enum principal_kind kind;
    struct str account; /* USER: may be empty; ID: of an account's root */
    struct str name;
};

struct statement {
    enum policy_effect effect;
    bool not_principal, not_resource;
    uint64_t actions[(S3_ACTIONS + 63) / 64]; /* a bit for each */
    struct principal *principals;
    struct pattern *resources; /* behind "arn:aws:s3:::" */
    size_t principal_count, resource_count;
    struct condition *conditions;
};

struct policy {
    struct statement *statements;
    size_t count;
    bool variables; /* version 2012-10-17 */
    bool large;     /* its text has more than POLICY_FAST_BYTES */
};

int principals_compile(struct statement *s, struct arena *a, const json_t *json,
                       struct err *err) MUST_CHECK;

/* Strings of a member that is one or a list of them; at least one. NULL past the end. */
size_t json_one_or_more(const json_t *json);
const json_t *json_item(const json_t *json, size_t i);
struct str json_text(const json_t *json); /* of a string; else empty with NULL */

#endif
