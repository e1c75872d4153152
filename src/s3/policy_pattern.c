/* Patterns of policies: wildcards and variables, compiled to bytes that UTF-8 never has. */
#include "s3/policy_int.h"

static bool is_special(char c)
{
    return (unsigned char)c >= PATTERN_CLOSE;
}

/* A variable at the front of *in, behind its "${": ${*}, ${?} and ${$} stand for themselves. */
static int compile_variable(struct buf *out, struct str *in)
{
    struct str inside, name, fallback, suffix;
    enum policy_key key;
    bool has_fallback;

    if (!str_cut(*in, '}', &inside, in))
        return ERR_PARSE;
    if (inside.len == 1 && strchr("*?$", inside.p[0])) {
        buf_append_char(out, inside.p[0]);
        return 0;
    }
    has_fallback = str_cut(inside, ',', &name, &fallback);
    name = str_trim(name);
    fallback = str_trim(fallback);
    if (!policy_key_find(name, &key, &suffix))
        return ERR_PARSE;
    buf_append_char(out, (char)PATTERN_OPEN);
    buf_append_str(out, name);
    if (has_fallback) {
        if (fallback.len < 2 || fallback.p[0] != '\'' || fallback.p[fallback.len - 1] != '\'')
            return ERR_PARSE;
        buf_append_char(out, (char)PATTERN_DEFAULT);
        buf_append(out, fallback.p + 1, fallback.len - 2);
    }
    buf_append_char(out, (char)PATTERN_CLOSE);
    return 0;
}

int pattern_compile(struct pattern *out, struct arena *a, struct str text, unsigned flags)
{
    struct buf bytes = BUF_INIT(2 * POLICY_MAX_BYTES);
    struct pattern p = {0};
    int code = 0;

    while (text.len && code == 0) {
        char c = text.p[0];
        if ((flags & PATTERN_VARIABLES) && str_starts(text, STR("${"))) {
            text = str_skip(text, 2);
            code = compile_variable(&bytes, &text);
            continue;
        }
        if ((flags & PATTERN_WILD) && (c == '*' || c == '?')) {
            c = (char)(c == '*' ? PATTERN_ANY : PATTERN_ONE);
            p.wild = true;
        }
        buf_append_char(&bytes, c);
        text = str_skip(text, 1);
    }
    p.variables = bytes.len && memchr(bytes.p, PATTERN_OPEN, bytes.len) != NULL;
    p.text = arena_str(a, buf_str(&bytes));
    if (code == 0)
        code = buf_error(&bytes);
    buf_release(&bytes);
    if (code < 0)
        return code;
    *out = p;
    return arena_error(a);
}

/* The value of the variable that `name` (with its default) is; false when it has none. */
static bool variable_value(struct str name, const struct policy_request *r, struct str *out)
{
    struct str fallback, suffix;
    struct policy_values values = {0};
    enum policy_key key;
    bool has_fallback = str_cut(name, (char)PATTERN_DEFAULT, &name, &fallback);

    if (policy_key_find(name, &key, &suffix) && r->value(r->ctx, key, suffix, &values) &&
        values.count == 1) {
        *out = values.items[0];
        for (size_t i = 0; i < out->len; i++)
            if (is_special(out->p[i]))
                return false;
        return true;
    }
    *out = fallback;
    return has_fallback;
}

bool pattern_expand(const struct pattern *p, const struct policy_request *r, struct str *out)
{
    struct str rest = p->text, literal, name, value;
    struct buf bytes = BUF_INIT(64 * KIB);
    bool whole = true;

    if (!p->variables) {
        *out = p->text;
        return true;
    }
    while (whole && rest.len) {
        bool open = str_cut(rest, (char)PATTERN_OPEN, &literal, &rest);
        buf_append_str(&bytes, literal);
        if (!open)
            break;
        str_cut(rest, (char)PATTERN_CLOSE, &name, &rest);
        whole = variable_value(name, r, &value);
        if (whole)
            buf_append_str(&bytes, value);
    }
    if (bytes.failed)
        r->arena->failed = true;
    *out = arena_str(r->arena, buf_str(&bytes));
    buf_release(&bytes);
    return whole && !r->arena->failed;
}

struct str pattern_never(const struct pattern *p)
{
    struct str rest = p->text, literal, name, suffix;
    enum policy_key key;

    while (p->variables && str_cut(rest, (char)PATTERN_OPEN, &literal, &rest)) {
        str_cut(rest, (char)PATTERN_CLOSE, &name, &rest);
        if (str_chr(name, (char)PATTERN_DEFAULT) < 0 && policy_key_find(name, &key, &suffix) &&
            !policy_keys[key].is_given)
            return name;
    }
    return STR_EMPTY;
}

static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Only the last star is ever tried again, so the time is at most pattern times string. */
bool pattern_match(struct str p, struct str s, bool fold_case)
{
    struct str star = STR_EMPTY, at = STR_EMPTY;
    bool starred = false;

    while (s.len) {
        unsigned char c = p.len ? (unsigned char)p.p[0] : 0;
        if (p.len && c == PATTERN_ANY) {
            p = str_skip(p, 1);
            star = p, at = s, starred = true;
        } else if (p.len && c == PATTERN_ONE) {
            p = str_skip(p, 1);
            s = str_skip(s, size_max(1, str_utf8_len(s)));
        } else if (p.len && (p.p[0] == s.p[0] || (fold_case && folded(p.p[0]) == folded(s.p[0])))) {
            p = str_skip(p, 1);
            s = str_skip(s, 1);
        } else if (starred) {
            at = str_skip(at, 1);
            s = at, p = star;
        } else {
            return false;
        }
    }
    while (p.len && (unsigned char)p.p[0] == PATTERN_ANY)
        p = str_skip(p, 1);
    return p.len == 0;
}
