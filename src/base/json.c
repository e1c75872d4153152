/* JSON: jansson reads it, code in this file writes it. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether the text nests deeper than JSON_MAX_DEPTH. The function counts brackets outside strings,
 * without parsing. Jansson's own limit of 2048 levels cannot be changed, so this lower limit is
 * checked before jansson starts. */
static bool too_deep(struct str text)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > JSON_MAX_DEPTH)
                return true;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return false;
}

/* Sets the error for a text that is not JSON. jansson's message ends with what it could not
 * read, which may be a secret, so it is left out. The name of a member that comes twice stays. */
static int set_malformed(const json_error_t *error, struct err *err)
{
    const char *near = strstr(error->text, " near '");
    bool twice = json_error_code(error) == json_error_duplicate_key;
    int len = (int)(near && !twice ? (size_t)(near - error->text) : strlen(error->text));

    return err_set(err, ERR_PARSE, "line %d, column %d: %.*s", error->line, error->column, len,
                   error->text);
}

int json_read(json_t **out, struct str text, struct err *err)
{
    json_error_t error;
    json_t *value;

    if (text.len > JSON_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE, "JSON of %zu bytes, at most %d are read", text.len,
                       JSON_MAX_BYTES);
    if (too_deep(text))
        return err_set(err, ERR_TOO_LARGE, "JSON nests deeper than %d levels", JSON_MAX_DEPTH);
    value = json_loadb(text.p ? text.p : "", text.len,
                       JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!value)
        return set_malformed(&error, err);
    *out = value;
    return 0;
}

struct str json_get_str(const json_t *object, const char *key, struct str fallback)
{
    const json_t *v = json_object_get(object, key);
    return json_is_string(v) ? str_n(json_string_value(v), json_string_length(v)) : fallback;
}

int64_t json_get_i64(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(object, key);
    return json_is_integer(v) ? (int64_t)json_integer_value(v) : fallback;
}

bool json_get_bool(const json_t *object, const char *key, bool fallback)
{
    const json_t *v = json_object_get(object, key);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static size_t escape_unicode(unsigned code, char out[JSON_ESCAPE_MAX])
{
    static const char hex[] = "0123456789abcdef";
    const char text[JSON_ESCAPE_MAX] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};

    memcpy(out, text, sizeof(text));
    return sizeof(text);
}

/* Returns the code point of the character at the front of `s`, for which str_utf8_is_control() is
 * true. */
static unsigned control_code(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    return p[0] < 0x80 ? p[0] : p[0] == 0xc2 ? p[1] : 0x2000u | (p[2] & 0x3f);
}

size_t json_escape(struct str *rest, char out[JSON_ESCAPE_MAX])
{
    static const char from[] = "\n\r\t\b\f\"\\", to[] = "nrtbf\"\\";
    struct str s = *rest;
    size_t n = str_utf8_len(s);
    const char *special = s.p[0] ? strchr(from, s.p[0]) : NULL;

    *rest = str_skip(s, n ? n : 1);
    if (special) {
        memcpy(out, (char[]){'\\', to[special - from]}, 2);
        return 2;
    }
    if (n == 0)
        return escape_unicode(0xfffd, out);
    if (str_utf8_is_control(s))
        return escape_unicode(control_code(s), out);
    memcpy(out, s.p, n);
    return n;
}

void json_out_init(struct json_out *w, struct buf *out)
{
    *w = (struct json_out){.out = out};
}

static void comma(struct json_out *w)
{
    if (w->comma)
        buf_append_char(w->out, ',');
    w->comma = true;
}

void json_out_open(struct json_out *w, char brace)
{
    comma(w);
    buf_append_char(w->out, brace);
    w->comma = false;
}

void json_out_close(struct json_out *w, char brace)
{
    buf_append_char(w->out, brace);
    w->comma = true;
}

/* Returns the length of the run of bytes at the front that need no escape. Most strings are one
 * such run, so one append writes them. */
static size_t plain_run(struct str s)
{
    size_t n = 0;
    while (n < s.len && s.p[n] >= 0x20 && s.p[n] < 0x7f && s.p[n] != '"' && s.p[n] != '\\')
        n++;
    return n;
}

static void in_string(struct buf *out, struct str s)
{
    char unit[JSON_ESCAPE_MAX];

    buf_append_char(out, '"');
    while (s.len) {
        size_t n = plain_run(s);
        buf_append(out, s.p, n);
        s = str_skip(s, n);
        if (s.len)
            buf_append(out, unit, json_escape(&s, unit));
    }
    buf_append_char(out, '"');
}

void json_out_key_str(struct json_out *w, struct str key)
{
    comma(w);
    in_string(w->out, key);
    buf_append_char(w->out, ':');
    w->comma = false;
}

void json_out_key(struct json_out *w, const char *key)
{
    json_out_key_str(w, str_z(key));
}

void json_out_str(struct json_out *w, struct str s)
{
    comma(w);
    in_string(w->out, s);
}

void json_out_u64(struct json_out *w, uint64_t v)
{
    comma(w);
    buf_append_u64(w->out, v);
}

void json_out_i64(struct json_out *w, int64_t v)
{
    comma(w);
    buf_append_i64(w->out, v);
}

/* Writes the shortest of 15, 16 and 17 digits that reads back as the same number; 17 digits always
 * do. A number without a fraction is written with ".0", so that a reader sees a real and not an
 * integer. */
void json_out_f64(struct json_out *w, double v)
{
    char text[40];

    if (!isfinite(v)) {
        json_out_null(w);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    comma(w);
    buf_append_z(w->out, text);
    if (!strpbrk(text, ".e"))
        buf_append_z(w->out, ".0");
}

void json_out_bool(struct json_out *w, bool v)
{
    comma(w);
    buf_append_z(w->out, v ? "true" : "false");
}

void json_out_null(struct json_out *w)
{
    comma(w);
    buf_append_z(w->out, "null");
}

void json_out_raw(struct json_out *w, struct str json)
{
    comma(w);
    buf_append_str(w->out, json);
}

void json_out_member_str(struct json_out *w, const char *key, struct str s)
{
    json_out_key(w, key);
    json_out_str(w, s);
}

void json_out_member_u64(struct json_out *w, const char *key, uint64_t v)
{
    json_out_key(w, key);
    json_out_u64(w, v);
}

void json_out_member_i64(struct json_out *w, const char *key, int64_t v)
{
    json_out_key(w, key);
    json_out_i64(w, v);
}

void json_out_member_f64(struct json_out *w, const char *key, double v)
{
    json_out_key(w, key);
    json_out_f64(w, v);
}

void json_out_member_bool(struct json_out *w, const char *key, bool v)
{
    json_out_key(w, key);
    json_out_bool(w, v);
}
