/* Compares and splits strings, and reads numbers from them. */
#include "base/str.h"
#include "base/clock.h"
#include "base/err.h"

#include <stdlib.h>

static unsigned char ascii_lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

/* Returns the eight bytes at `p` with ASCII capitals in lower case; other bytes stay as they are.
 * In the sums `from_a` and `past_z`, the top bit of each byte says whether its low seven bits reach
 * the bound. */
static uint64_t lower8(const char *p)
{
    const uint64_t each = 0x0101010101010101;
    uint64_t word, low, from_a, past_z;

    memcpy(&word, p, sizeof(word));
    low = word & 0x7f * each;
    from_a = low + (0x80 - 'A') * each;
    past_z = low + (0x80 - 'Z' - 1) * each;
    return word | ((from_a & ~past_z & ~word & 0x80 * each) >> 2);
}

int str_cmp(struct str a, struct str b)
{
    size_t n = size_min(a.len, b.len);
    int order = n ? memcmp(a.p, b.p, n) : 0;
    if (order)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/* Whether eight bytes are equal, ignoring case. Most names have the same case on both sides, so the
 * bytes are first compared unchanged. */
static bool same8(const char *a, const char *b)
{
    return memcmp(a, b, 8) == 0 || lower8(a) == lower8(b);
}

bool str_ieq_bytes(const char *a, const char *b, size_t len)
{
    if (len < 8) {
        for (size_t i = 0; i < len; i++)
            if (ascii_lower((unsigned char)a[i]) != ascii_lower((unsigned char)b[i]))
                return false;
        return true;
    }
    for (size_t i = 0; i + 8 < len; i += 8)
        if (!same8(a + i, b + i))
            return false;
    return same8(a + len - 8, b + len - 8); /* the last eight bytes; overlaps the step before */
}

struct str str_trim(struct str s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = str_skip(s, 1);
    while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

ptrdiff_t str_chr(struct str s, char c)
{
    const char *at = s.len ? memchr(s.p, c, s.len) : NULL;
    return at ? at - s.p : -1;
}

ptrdiff_t str_find(struct str s, struct str needle)
{
    const char *at;

    if (needle.len == 0)
        return 0;
    at = needle.len <= s.len ? memmem(s.p, s.len, needle.p, needle.len) : NULL;
    return at ? at - s.p : -1;
}

bool str_cut(struct str s, char sep, struct str *head, struct str *rest)
{
    ptrdiff_t at = str_chr(s, sep);
    *head = at < 0 ? s : str_head(s, (size_t)at);
    *rest = at < 0 ? STR_EMPTY : str_skip(s, (size_t)at + 1);
    return at >= 0;
}

bool str_token(struct str *rest, const char *seps, struct str *out)
{
    struct str s = *rest;
    size_t n = 0;

    while (s.len && s.p[0] && strchr(seps, s.p[0]))
        s = str_skip(s, 1);
    while (n < s.len && !(s.p[n] && strchr(seps, s.p[n])))
        n++;
    *rest = str_skip(s, n);
    *out = str_head(s, n);
    return n > 0;
}

/* Reads the digits at the front of *s and moves *s past them. */
static int digits(struct str *s, uint64_t *out)
{
    uint64_t v = 0;
    size_t n = 0;

    for (; n < s->len && s->p[n] >= '0' && s->p[n] <= '9'; n++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s->p[n] - '0'), &v))
            return ERR_PARSE;
    if (n == 0)
        return ERR_PARSE;
    *s = str_skip(*s, n);
    *out = v;
    return 0;
}

int str_u64(struct str s, uint64_t *out)
{
    uint64_t v;
    if (digits(&s, &v) < 0 || s.len)
        return ERR_PARSE;
    *out = v;
    return 0;
}

int str_i64(struct str s, int64_t *out)
{
    bool negative = s.len && s.p[0] == '-';
    uint64_t v, limit = (uint64_t)INT64_MAX + negative;

    if (str_u64(str_skip(s, negative), &v) < 0 || v > limit)
        return ERR_PARSE;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static int with_unit(struct str s, const struct unit *units, size_t count, uint64_t *out)
{
    uint64_t v;
    if (digits(&s, &v) < 0)
        return ERR_PARSE;
    for (size_t i = 0; i < count; i++) {
        if (!str_ieq(s, str_z(units[i].name)))
            continue;
        return __builtin_mul_overflow(v, units[i].factor, out) ? ERR_PARSE : 0;
    }
    return ERR_PARSE;
}

int str_size(struct str s, uint64_t *out)
{
    static const struct unit units[] = {
        {"", 1},      {"b", 1},         {"k", KIB},        {"kb", KIB},        {"kib", KIB},
        {"m", MIB},   {"mb", MIB},      {"mib", MIB},      {"g", GIB},         {"gb", GIB},
        {"gib", GIB}, {"t", KIB * GIB}, {"tb", KIB * GIB}, {"tib", KIB * GIB},
    };
    return with_unit(s, units, ARRAY_SIZE(units), out);
}

int str_duration_ms(struct str s, uint64_t *out)
{
    static const struct unit units[] = {
        {"ms", 1}, {"s", MS_PER_S}, {"m", MS_PER_MINUTE}, {"h", MS_PER_HOUR}, {"d", MS_PER_DAY},
    };
    return with_unit(s, units, ARRAY_SIZE(units), out);
}

bool str_eq_secret(struct str a, struct str b)
{
    unsigned char diff = a.len != b.len;

    if (diff)
        /* Compares `a` with itself, so that the time does not reveal whether the lengths are
         * equal. */
        b = a;
    for (size_t i = 0; i < a.len; i++)
        diff |= (unsigned char)(a.p[i] ^ b.p[i]);
    return diff == 0;
}

/* Returns the length in bytes of the UTF-8 sequence at p, of which n bytes are readable, or 0 when
 * it is malformed. Source: Unicode 15, table 3-7. */
static size_t utf8_sequence(const unsigned char *p, size_t n)
{
    static const struct {
        unsigned char lead_min, lead_max, second_min, second_max, len;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        if (p[0] < forms[i].lead_min || p[0] > forms[i].lead_max)
            continue;
        if (n < forms[i].len)
            return 0;
        if (forms[i].len > 1 && (p[1] < forms[i].second_min || p[1] > forms[i].second_max))
            return 0;
        for (size_t k = 2; k < forms[i].len; k++)
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].len;
    }
    return 0;
}

size_t str_utf8_len(struct str s)
{
    return s.len ? utf8_sequence((const unsigned char *)s.p, s.len) : 0;
}

bool str_utf8_is_control(struct str s)
{
    unsigned char c = s.len ? (unsigned char)s.p[0] : 'x';

    if (c < 0x20 || c == 0x7f)
        return true;
    if (c == 0xc2)
        return s.len > 1 && (unsigned char)s.p[1] < 0xa0;
    return str_starts(s, STR("\xe2\x80\xa8")) || str_starts(s, STR("\xe2\x80\xa9"));
}

/* Skips the ASCII characters at the beginning, eight at a time: most texts have no others. */
static struct str str_skip_ascii(struct str s)
{
    static const uint64_t others = 0x8080808080808080;
    uint64_t eight;
    size_t n = 0;

    for (; s.len - n >= sizeof(eight); n += sizeof(eight)) {
        memcpy(&eight, s.p + n, sizeof(eight));
        if (eight & others)
            break;
    }
    while (n < s.len && (unsigned char)s.p[n] < 0x80)
        n++;
    return str_skip(s, n);
}

bool str_is_utf8(struct str s)
{
    for (s = str_skip_ascii(s); s.len; s = str_skip_ascii(s)) {
        size_t n = str_utf8_len(s);
        if (n == 0)
            return false;
        s = str_skip(s, n);
    }
    return true;
}

char *str_dup(struct str s)
{
    char *copy = xzalloc(s.len + 1);
    if (s.len)
        memcpy(copy, s.p, s.len);
    return copy;
}
