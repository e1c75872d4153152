/* Reads a JSON text from beginning to end, without a tree (archive/scan.h). */
#include "archive/scan.h"
#include "base/hex.h"

#include <string.h>

enum { SCAN_REPLACEMENT = 0xfffd }; /* U+FFFD, the replacement character */

void scan_init(struct scan *s, struct str text)
{
    *s = (struct scan){.text = text};
}

void scan_fail(struct scan *s, const char *wrong)
{
    if (!s->wrong)
        s->wrong = wrong;
}

/* --- the text --- */

/* The next byte, or '\0' at the end of the text. A NUL in the text looks like the end, but JSON
 * allows it nowhere, so either is an error for the caller. */
static char scan_at(const struct scan *s)
{
    return s->at < s->text.len ? s->text.p[s->at] : '\0';
}

static char scan_blank(struct scan *s)
{
    while (s->at < s->text.len && memchr(" \t\r\n", s->text.p[s->at], 4))
        s->at++;
    return scan_at(s);
}

enum scan_type scan_peek(struct scan *s)
{
    if (s->wrong)
        return SCAN_NOTHING;
    char c = scan_blank(s);
    switch (c) {
    case '{':
        return SCAN_OBJECT;
    case '[':
        return SCAN_ARRAY;
    case '"':
        return SCAN_STRING;
    case 't':
        return SCAN_TRUE;
    case 'f':
        return SCAN_FALSE;
    case 'n':
        return SCAN_NULL;
    default:
        return c == '-' || (c >= '0' && c <= '9') ? SCAN_NUMBER : SCAN_NOTHING;
    }
}

/* --- objects and arrays --- */

void scan_open(struct scan *s, char brace)
{
    if (s->wrong)
        return;
    if (scan_blank(s) != brace) {
        scan_fail(s, brace == '{' ? "an object was expected" : "an array was expected");
        return;
    }
    if (s->depth == SCAN_DEPTH) {
        scan_fail(s, "too many levels");
        return;
    }
    s->at++;
    s->open[s->depth] = brace;
    s->first[s->depth++] = true;
}

/* Advances to the next item of the open object or array, past the comma before it. Returns false at
 * the end, and is then past the closing brace. */
static bool scan_next(struct scan *s, char brace, char end)
{
    if (s->wrong)
        return false;
    BUG_ON(s->depth == 0 || s->open[s->depth - 1] != brace);
    char c = scan_blank(s);
    bool first = s->first[s->depth - 1];
    s->first[s->depth - 1] = false;
    if (c == end) {
        s->at++;
        s->depth--;
        return false;
    }
    if (first)
        return true;
    if (c != ',') {
        scan_fail(s, "a comma was expected");
        return false;
    }
    s->at++;
    return true;
}

bool scan_more(struct scan *s)
{
    return scan_next(s, '[', ']');
}

/* --- strings --- */

/* Reads a string up to its closing quote. *inside is the text between the quotes; its escapes and
 * characters are not checked yet. Returns false when the text has no string here, which scan_fail()
 * has noted. */
static bool scan_quoted(struct scan *s, struct str *inside)
{
    if (s->wrong)
        return false;
    if (scan_blank(s) != '"') {
        scan_fail(s, "a string was expected");
        return false;
    }
    size_t begin = ++s->at;
    while (s->at < s->text.len && s->text.p[s->at] != '"') {
        if ((unsigned char)s->text.p[s->at] < 0x20) {
            scan_fail(s, "a control character in a string");
            return false;
        }
        s->at += s->text.p[s->at] == '\\' ? 2 : 1;
    }
    if (s->at >= s->text.len) {
        scan_fail(s, "a string does not end");
        return false;
    }
    *inside = str_n(s->text.p + begin, s->at - begin);
    s->at++;
    return true;
}

static int scan_hex4(struct str in)
{
    int value = 0;

    for (size_t i = 0; i < 4; i++) {
        int digit = i < in.len ? hex_digit(in.p[i]) : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static size_t scan_put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* Reads \uXXXX, or two of them that are a pair of surrogates. `in` begins behind the first 'u'.
 * Returns how many bytes of `in` were read, or 0 when they are malformed. JSON allows two escapes
 * that a string of weir cannot hold: U+0000, and a surrogate without its other half. Both are read
 * as U+FFFD. */
static size_t scan_unicode(struct str in, unsigned *out)
{
    int high = scan_hex4(in);

    if (high < 0)
        return 0;
    *out = high == 0 || (high >= 0xd800 && high <= 0xdfff) ? SCAN_REPLACEMENT : (unsigned)high;
    if (high < 0xd800 || high > 0xdbff)
        return 4;
    int low = in.len >= 10 && in.p[4] == '\\' && in.p[5] == 'u' ? scan_hex4(str_skip(in, 6)) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return 4;
    *out = 0x10000 + ((unsigned)(high - 0xd800) << 10) + (unsigned)(low - 0xdc00);
    return 10;
}

/* Removes the first character from *in and writes it without its escape, in at most 4 bytes.
 * Returns the number of bytes written, or 0 when the character is malformed. */
static size_t scan_unescape(struct str *in, char out[4])
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

    if (in->p[0] != '\\') {
        size_t len = str_utf8_len(*in);
        if (len > 0)
            memcpy(out, in->p, len);
        *in = str_skip(*in, len);
        return len;
    }
    char c = in->len > 1 ? in->p[1] : '\0';
    const char *known = c ? strchr(from, c) : NULL;
    unsigned code = 0;
    *in = str_skip(*in, 2);
    if (known) {
        out[0] = to[known - from];
        return 1;
    }
    size_t taken = c == 'u' ? scan_unicode(*in, &code) : 0;
    *in = str_skip(*in, taken);
    return taken ? scan_put_utf8(out, code) : 0;
}

/* Unescapes a string into `out`, which has room for `max` bytes. If `out` is NULL, the string is
 * only checked. Returns the length, or -1 when the string is malformed or does not fit. */
static ptrdiff_t scan_plain(struct scan *s, struct str inside, char *out, size_t max)
{
    size_t len = 0;

    while (inside.len) {
        char c[4];
        size_t n = scan_unescape(&inside, c);
        if (n == 0) {
            scan_fail(s, "a malformed character in a string");
            return -1;
        }
        if (out && n > max - len)
            return -1;
        if (out)
            memcpy(out + len, c, n);
        len += n;
    }
    return (ptrdiff_t)len;
}

void scan_string(struct scan *s, struct arena *a, size_t max, struct str *out)
{
    struct str inside;

    if (!scan_quoted(s, &inside))
        return;
    ptrdiff_t len = scan_plain(s, inside, NULL, 0);
    if (len < 0)
        return;
    char *text = (size_t)len <= max ? arena_alloc(a, (size_t)len + 1) : NULL;
    if (!text) {
        scan_fail(s, "a string is too long");
        return;
    }
    *out = str_n(text, (size_t)scan_plain(s, inside, text, (size_t)len));
}

bool scan_key(struct scan *s, char *key, size_t size)
{
    struct str inside;

    if (!scan_next(s, '{', '}') || !scan_quoted(s, &inside))
        return false;
    ptrdiff_t len = scan_plain(s, inside, key, size - 1);
    key[len < 0 ? 0 : len] = '\0';
    if (len < 0)
        scan_plain(s, inside, NULL, 0);
    if (!s->wrong && scan_blank(s) != ':')
        scan_fail(s, "a colon was expected");
    s->at++;
    return !s->wrong;
}

/* --- numbers and words --- */

static bool scan_digits(struct scan *s)
{
    size_t begin = s->at;

    while (scan_at(s) >= '0' && scan_at(s) <= '9')
        s->at++;
    return s->at > begin;
}

/* Skips a number. Returns false when it is malformed. */
static bool scan_over_number(struct scan *s)
{
    bool good = true;

    if (scan_at(s) == '-')
        s->at++;
    if (scan_at(s) == '0')
        s->at++;
    else
        good = scan_digits(s);
    if (good && scan_at(s) == '.') {
        s->at++;
        good = scan_digits(s);
    }
    if (good && (scan_at(s) == 'e' || scan_at(s) == 'E')) {
        s->at++;
        if (scan_at(s) == '+' || scan_at(s) == '-')
            s->at++;
        good = scan_digits(s);
    }
    return good;
}

void scan_integer(struct scan *s, int64_t *out)
{
    if (scan_peek(s) != SCAN_NUMBER) {
        scan_fail(s, "a number was expected");
        return;
    }
    size_t begin = s->at;
    if (!scan_over_number(s) || str_i64(str_n(s->text.p + begin, s->at - begin), out) < 0)
        scan_fail(s, "a number is not an integer, or too large");
}

static bool scan_word(struct scan *s, const char *word)
{
    struct str rest = str_skip(s->text, s->at);
    bool is = str_starts(rest, str_z(word));

    if (is)
        s->at += strlen(word);
    else
        scan_fail(s, "a malformed word");
    return is;
}

void scan_bool(struct scan *s, bool *out)
{
    enum scan_type type = scan_peek(s);

    if (type == SCAN_TRUE && scan_word(s, "true"))
        *out = true;
    else if (type == SCAN_FALSE && scan_word(s, "false"))
        *out = false;
    else
        scan_fail(s, "true or false was expected");
}

/* --- any value --- */

/* Skips a value that contains no other value. */
static void scan_skip_plain(struct scan *s, enum scan_type type)
{
    struct str inside;

    switch (type) {
    case SCAN_STRING:
        if (scan_quoted(s, &inside))
            scan_plain(s, inside, NULL, 0);
        break;
    case SCAN_NUMBER:
        if (!scan_over_number(s))
            scan_fail(s, "a malformed number");
        break;
    case SCAN_TRUE:
        scan_word(s, "true");
        break;
    case SCAN_FALSE:
        scan_word(s, "false");
        break;
    case SCAN_NULL:
        scan_word(s, "null");
        break;
    default:
        scan_fail(s, "a value was expected");
    }
}

/* Skips values until the depth is `depth` again. */
static void scan_skip_open(struct scan *s, unsigned depth)
{
    char key[2];

    while (!s->wrong && s->depth > depth) {
        bool is_array = s->open[s->depth - 1] == '[';
        if (!(is_array ? scan_more(s) : scan_key(s, key, sizeof(key))))
            continue;
        enum scan_type type = scan_peek(s);
        if (type == SCAN_OBJECT || type == SCAN_ARRAY)
            scan_open(s, type == SCAN_OBJECT ? '{' : '[');
        else
            scan_skip_plain(s, type);
    }
}

void scan_skip(struct scan *s, struct str *raw)
{
    enum scan_type type = scan_peek(s);
    size_t begin = s->at;
    unsigned depth = s->depth;

    if (s->wrong)
        return;
    if (type == SCAN_OBJECT || type == SCAN_ARRAY) {
        scan_open(s, type == SCAN_OBJECT ? '{' : '[');
        scan_skip_open(s, depth);
    } else {
        scan_skip_plain(s, type);
    }
    if (raw && !s->wrong)
        *raw = str_n(s->text.p + begin, s->at - begin);
}

int scan_end(struct scan *s, struct err *err)
{
    if (!s->wrong && s->depth)
        scan_fail(s, "an object or array was not read to its end");
    if (!s->wrong && (scan_blank(s) || s->at < s->text.len))
        scan_fail(s, "more text behind the value");
    if (s->wrong)
        return err_set(err, ERR_PARSE, "malformed JSON at byte %zu: %s", s->at, s->wrong);
    return 0;
}
