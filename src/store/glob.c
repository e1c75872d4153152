/* Patterns of Redis's KEYS and SCAN MATCH: * ? [abc] [^a-z] \x. */
#include "store/embedded_int.h"

/* Whether a bracket expression matches the byte. *p begins after the '[' and ends at the last byte
 * of the expression (the ']' or the end). */
static bool class_match(struct str *p, unsigned char byte)
{
    bool negate = p->len && p->p[0] == '^', match = false;

    if (negate)
        *p = str_skip(*p, 1);
    for (; p->len && p->p[0] != ']'; *p = str_skip(*p, 1)) {
        unsigned char low = (unsigned char)p->p[0];
        if (low == '\\' && p->len >= 2) {
            *p = str_skip(*p, 1);
            match |= (unsigned char)p->p[0] == byte;
        } else if (p->len >= 3 && p->p[1] == '-') {
            unsigned char high = (unsigned char)p->p[2];
            if (low > high) {
                unsigned char swap = low;
                low = high, high = swap;
            }
            *p = str_skip(*p, 2);
            match |= byte >= low && byte <= high;
        } else {
            match |= low == byte;
        }
    }
    return match != negate;
}

/* Whether the first element of the pattern, which stands for one byte, matches the byte. Advances
 * *p past the element. */
static bool one_match(struct str *p, unsigned char byte)
{
    bool match;

    if (p->p[0] == '?') {
        match = true;
    } else if (p->p[0] == '[') {
        *p = str_skip(*p, 1);
        match = class_match(p, byte);
    } else {
        if (p->p[0] == '\\' && p->len >= 2)
            *p = str_skip(*p, 1);
        match = (unsigned char)p->p[0] == byte;
    }
    *p = str_skip(*p, 1);
    return match;
}

/* Whether the pattern matches all of `s`. After a mismatch only the last star is tried again, so
 * the time is at most the pattern's length times the string's. */
bool glob_match(struct str pattern, struct str s)
{
    struct str p = pattern, star = STR_EMPTY, at = STR_EMPTY;
    bool starred = false;

    while (s.len) {
        if (p.len && p.p[0] == '*') {
            p = str_skip(p, 1);
            star = p, at = s, starred = true;
        } else if (p.len && one_match(&p, (unsigned char)s.p[0])) {
            s = str_skip(s, 1);
        } else if (starred) {
            at = str_skip(at, 1);
            s = at, p = star;
        } else {
            return false;
        }
    }
    while (p.len && p.p[0] == '*')
        p = str_skip(p, 1);
    return p.len == 0;
}
