/* A borrowed run of bytes: pointer and length, passed by value. It is not NUL-terminated and may
 * hold any byte. The empty string may have a NULL pointer. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/base.h"

#include <string.h>

struct str {
    const char *p;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_EMPTY    ((struct str){NULL, 0})
#define STR_FMT      "%.*s"
#define STR_ARG(s)   (int)(s).len, ((s).p ? (s).p : "")

static inline struct str str_n(const void *p, size_t len)
{
    return (struct str){p, len};
}

static inline struct str str_z(const char *z) /* NULL is the empty string */
{
    return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a length above 0 has a pointer */
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

bool str_ieq_bytes(const char *a, const char *b, size_t len);
/* Whether two strings are equal, ignoring ASCII case. Most names that differ have different
 * lengths, so the lengths are compared here without a function call. */
static inline bool str_ieq(struct str a, struct str b)
{
    return a.len == b.len && str_ieq_bytes(a.p, b.p, a.len);
}

static inline bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_n(s.p, prefix.len), prefix);
}

static inline bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_n(s.p + s.len - suffix.len, suffix.len), suffix);
}

/* Returns the rest after the first `n` bytes, or the empty string when there are fewer. */
static inline struct str str_skip(struct str s, size_t n)
{
    n = size_min(n, s.len);
    return s.p ? str_n(s.p + n, s.len - n) : s;
}

static inline struct str str_head(struct str s, size_t n)
{
    return str_n(s.p, size_min(n, s.len));
}

int str_cmp(struct str a, struct str b); /* by byte values; a prefix comes before longer strings */
struct str str_trim(struct str s);       /* removes spaces and tabs at both ends */

/* These functions return the index of the first `c` or the first `needle`, or -1. */
ptrdiff_t str_chr(struct str s, char c);
ptrdiff_t str_find(struct str s, struct str needle);

/* Splits `s` at the first `sep`: *head is the part before it, *rest the part after it. If there is
 * no separator, the function returns false, *head is the whole string, and *rest is empty. `head`
 * and `rest` may be &s. */
bool str_cut(struct str s, char sep, struct str *head, struct str *rest);

/* Removes the next non-empty token from *rest; any byte of `seps` separates tokens. Returns false
 * at the end. */
bool str_token(struct str *rest, const char *seps, struct str *out);

/* These functions read a string that is one decimal integer. They return ERR_PARSE for anything
 * else: a blank, a sign (except '-' for i64), or a number that is too large. */
int str_u64(struct str s, uint64_t *out) MUST_CHECK;
int str_i64(struct str s, int64_t *out) MUST_CHECK;

/* str_size reads "64k", "10MiB" or "1g" as bytes, in powers of 1024. str_duration_ms reads
 * "1500ms", "30s", "5m", "1h" or "2d" as milliseconds. */
int str_size(struct str s, uint64_t *out) MUST_CHECK;
int str_duration_ms(struct str s, uint64_t *out) MUST_CHECK;

/* Compares secrets: the time of the comparison does not depend on where the secrets differ. */
bool str_eq_secret(struct str a, struct str b);

/* Whether the string is well-formed UTF-8 (no surrogates, no over-long forms). */
bool str_is_utf8(struct str s);
/* Returns the length in bytes of the UTF-8 character at the front, or 0 when it is malformed. */
size_t str_utf8_len(struct str s);
/* Whether the UTF-8 character at the front is a control character: C0, DEL, C1, U+2028 or U+2029.
 */
bool str_utf8_is_control(struct str s);

/* Returns a NUL-terminated copy on the heap, which the caller frees. */
char *str_dup(struct str s);

#endif
