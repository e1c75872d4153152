/* Finds the row of a request by matching its path against the rows' paths, segment by segment. */
#include "rest/rest_int.h"

enum segment_kind { LITERAL, ONE, REST }; /* a smaller number means a more exact kind */

struct segment {
    enum segment_kind kind;
    struct str text; /* the literal text, or the parameter's name */
};

/* Removes the next segment from the front of *rest and sets *out to it, without its leading slash.
 * Returns false at the end. */
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
        BUG_ON(rest->len); /* only the last segment may be "{name...}" */
        *out = (struct segment){REST, str_head(out->text, out->text.len - 3)};
    }
    return true;
}

static int segment_decode(struct str *out, struct arena *arena, struct str in, struct err *err)
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

static int segment_is(struct str raw, struct str literal, struct arena *arena, struct err *err)
{
    struct str text;
    int code = str_eq(raw, literal) ? 1 : segment_decode(&text, arena, raw, err);
    return code ? code : str_eq(text, literal);
}

/* Returns 1 and sets the parameters when the path matches the pattern, 0 when it does not, or an
 * error. */
static int path_fits(const char *pattern, struct str path, struct rest_path *params,
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
            code = segment_is(raw, s.text, arena, err);
            if (code <= 0)
                return code;
            continue;
        }
        BUG_ON(params->count == REST_PATH_MAX);
        if (s.kind == REST) {
            raw = str_skip(before, 1);
            path = STR_EMPTY;
        } else if (raw.len == 0) {
            return 0;
        }
        code = segment_decode(&params->value[params->count], arena, raw, err);
        if (code < 0)
            return code;
        params->name[params->count++] = s.text;
    }
    return path.len == 0;
}

/* Returns a negative number when pattern `a` is preferred to `b`, and 0 when neither is. The
 * patterns are compared segment by segment. At the first difference in kind, the pattern with the
 * more exact kind is preferred. */
static int path_order(const char *a, const char *b)
{
    struct str x = str_z(a), y = str_z(b);
    struct segment s, t;

    while (next_pattern(&x, &s) && next_pattern(&y, &t))
        if (s.kind != t.kind)
            return s.kind < t.kind ? -1 : 1;
    return 0;
}

/* Whether row `a` is preferred to `b`; both accept the method. */
static bool row_wins(const struct rest_row *a, const struct rest_row *b, enum http_method method)
{
    int order = path_order(a->path, b->path);

    return order < 0 || (order == 0 && a->method == method && b->method != method);
}

static bool row_takes(const struct rest_row *row, enum http_method method)
{
    return row->method == method || (row->method == HTTP_GET && method == HTTP_HEAD);
}

/* Finds the best row for the request in the table, if it is preferred to *best. Sets *exists to
 * true if a row has the path, whatever its method is. */
static int find_in_table(struct rest_match *best, const struct rest_table *table,
                         struct http_request *req, bool *exists, struct err *err)
{
    const struct http_head *head = http_request_head(req);

    for (const struct rest_row *row = table->rows; row < table->rows + table->count; row++) {
        struct rest_path found;
        int code = path_fits(row->path, head->path, &found, http_request_arena(req), err);

        if (code < 0)
            return code;
        *exists |= code > 0;
        if (code > 0 && row_takes(row, head->method) &&
            (!best->row || row_wins(row, best->row, head->method)))
            *best = (struct rest_match){row, table->ctx, table->dialect, found};
    }
    return 0;
}

const struct rest_dialect *rest_dialect_of(const struct rest_table *tables, size_t count,
                                           struct str path)
{
    for (size_t i = 0; i < count; i++) {
        const struct rest_dialect *d = tables[i].dialect;
        if (d && d->below && str_starts(path, str_z(d->below)))
            return d;
    }
    return NULL;
}

int rest_find(struct rest_match *out, const struct rest_table *tables, size_t count,
              struct http_request *req, struct err *err)
{
    struct rest_match best = {0};
    bool exists = false;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = find_in_table(&best, &tables[i], req, &exists, err);
    if (code < 0)
        return code;
    if (!best.row)
        return exists ? err_set(err, ERR_UNSUPPORTED, "this path has other methods")
                      : err_set(err, ERR_NOT_FOUND, "no such path");
    *out = best;
    return 0;
}

void rest_allowed(struct buf *out, const struct rest_table *tables, size_t count,
                  struct http_request *req)
{
    unsigned methods = 0;

    for (size_t i = 0; i < count; i++)
        for (const struct rest_row *row = tables[i].rows; row < tables[i].rows + tables[i].count;
             row++) {
            struct rest_path ignored;
            unsigned bit = 1u << row->method;
            if (methods & bit || path_fits(row->path, http_request_head(req)->path, &ignored,
                                           http_request_arena(req), NULL) <= 0)
                continue;
            buf_appendf(out, "%s%s", methods ? ", " : "", http_method_name(row->method));
            methods |= bit;
        }
}
