/* Matching a path against a table of patterns, segment by segment. */
#include "http/route.h"

enum kind { LITERAL, ONE, REST }; /* in the order in which they win */

struct segment {
    enum kind kind;
    struct str text; /* literal, or the parameter's name */
};

/* The next segment of a path or pattern without its leading slash; false at the end. */
static bool next_segment(struct str *rest, struct str *out)
{
    size_t n = 1;

    if (rest->len == 0 || rest->p[0] != '/')
        return false;
    while (n < rest->len && rest->p[n] != '/')
        n++;
    *out = str_n(rest->p + 1, n - 1);
    *rest = str_skip(*rest, n);
    return true;
}

static bool next_pattern(struct str *rest, struct segment *out)
{
    struct str text;

    if (!next_segment(rest, &text))
        return false;
    *out = (struct segment){LITERAL, text};
    if (!str_starts(text, STR("{")) || !str_ends(text, STR("}")))
        return true;
    *out = (struct segment){ONE, str_n(text.p + 1, text.len - 2)};
    if (str_ends(out->text, STR("..."))) {
        BUG_ON(rest->len); /* only a last segment may take the rest */
        *out = (struct segment){REST, str_head(out->text, out->text.len - 3)};
    }
    return true;
}

static int decode(struct str *out, struct arena *arena, struct str in, struct err *err)
{
    struct buf text = BUF_INIT(HTTP_MAX_LINE);
    int code = 0;

    *out = in;
    if (str_chr(in, '%') < 0)
        return 0;
    if (url_decode(&text, in, false) < 0 || memchr(text.p, '\0', text.len))
        code = err_set(err, ERR_PARSE, "a bad escape in the path");
    else
        *out = arena_str(arena, buf_str(&text));
    buf_release(&text);
    return code < 0 ? code : arena_error(arena);
}

static int is_literal(struct str raw, struct str literal, struct arena *arena, struct err *err)
{
    struct str text;
    int code = str_eq(raw, literal) ? 1 : decode(&text, arena, raw, err);
    return code ? code : str_eq(text, literal);
}

/* 1 and the parameters when the path fits, 0 when not, or an error. */
static int fits(const char *pattern, struct str path, struct route_params *params,
                struct arena *arena, struct err *err)
{
    struct str rest = str_z(pattern), raw;
    struct segment s;

    params->count = 0;
    while (next_pattern(&rest, &s)) {
        struct str before = path;
        int code = next_segment(&path, &raw);

        if (code == 0)
            return 0;
        if (s.kind == LITERAL) {
            code = is_literal(raw, s.text, arena, err);
            if (code <= 0)
                return code;
            continue;
        }
        BUG_ON(params->count == HTTP_MAX_PARAMS);
        if (s.kind == REST) {
            raw = str_skip(before, 1);
            path = STR_EMPTY;
        } else if (raw.len == 0) {
            return 0;
        }
        code = decode(&params->value[params->count], arena, raw, err);
        if (code < 0)
            return code;
        params->name[params->count++] = s.text;
    }
    return path.len == 0;
}

/* Does pattern a win over b? Where they differ first, the more exact segment does. */
static bool wins(const char *a, const char *b)
{
    struct str x = str_z(a), y = str_z(b);
    struct segment s, t;

    while (next_pattern(&x, &s) && next_pattern(&y, &t))
        if (s.kind != t.kind)
            return s.kind < t.kind;
    return false;
}

static bool takes(const struct route *row, enum http_method method)
{
    return row->method == method || (row->method == HTTP_GET && method == HTTP_HEAD);
}

int route_match(const struct route **out, struct route_params *params, const struct route *table,
                size_t count, struct http_request *req, struct err *err)
{
    const struct http_head *head = http_request_head(req);
    const struct route *best = NULL;
    bool exists = false;

    for (const struct route *row = table; row < table + count; row++) {
        struct route_params found;
        int code = fits(row->pattern, head->path, &found, http_request_arena(req), err);

        if (code < 0)
            return code;
        exists |= code > 0;
        if (code > 0 && takes(row, head->method) && (!best || wins(row->pattern, best->pattern))) {
            best = row;
            *params = found;
        }
    }
    if (!best)
        return exists ? err_set(err, ERR_UNSUPPORTED, "this path has other methods")
                      : err_set(err, ERR_NOT_FOUND, "no such path");
    *out = best;
    return 0;
}

struct str route_param(const struct route_params *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (str_eq(params->name[i], str_z(name)))
            return params->value[i];
    return STR_EMPTY;
}
