/* Reads multipart/form-data (RFC 7578, RFC 2046 section 5.1) as it streams. */
#include "s3/gateway/form.h"
#include "meta/error.h"

#include <stdlib.h>

struct part_head {
    struct str name, filename, type;
    bool is_file;
};

/* Reads the next parameter of a header value: "; name=value" or "; name=\"quoted\"". Returns false
 * when there is no further parameter, or a malformed one. Browsers escape a quote in a name as %22
 * or \"; the caller undoes the latter when it copies the value. */
static bool next_parameter(struct str *rest, struct str *name, struct str *value)
{
    ptrdiff_t at = str_chr(*rest, ';');

    if (at < 0)
        return false;
    *rest = str_trim(str_skip(*rest, (size_t)at + 1));
    if (!str_cut(*rest, '=', name, rest))
        return false;
    *name = str_trim(*name);
    if (rest->len == 0 || rest->p[0] != '"') {
        at = str_chr(*rest, ';');
        *value = str_trim(str_head(*rest, at < 0 ? rest->len : (size_t)at));
        *rest = at < 0 ? STR_EMPTY : str_skip(*rest, (size_t)at);
        return true;
    }
    size_t n = 1;
    while (n < rest->len && rest->p[n] != '"')
        n += rest->p[n] == '\\' && n + 1 < rest->len ? 2 : 1;
    if (n >= rest->len)
        return false;
    *value = str_n(rest->p + 1, n - 1);
    *rest = str_skip(*rest, n + 1);
    return true;
}

static struct str form_unescape(struct arena *a, struct str quoted)
{
    char *copy = arena_z(a, quoted);
    size_t n = 0;

    for (size_t i = 0; copy && i < quoted.len; i++) {
        if (copy[i] == '\\' && i + 1 < quoted.len && (copy[i + 1] == '"' || copy[i + 1] == '\\'))
            i++;
        copy[n++] = copy[i];
    }
    return str_n(copy, n);
}

static bool is_boundary(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] > 0x7e)
            return false;
    return s.len > 0 && s.len <= FORM_BOUNDARY_MAX && s.p[s.len - 1] != ' ';
}

bool form_is_type(struct str content_type)
{
    struct str type;

    str_cut(content_type, ';', &type, &(struct str){0});
    return str_ieq(str_trim(type), STR("multipart/form-data"));
}

static int set_delimiter(struct form *f, struct str content_type, struct err *err)
{
    struct str rest = content_type, name, value;

    if (!form_is_type(content_type))
        return s3_fail(err, S3_REQUEST_IS_NOT_MULTI_PART_CONTENT);
    while (next_parameter(&rest, &name, &value)) {
        if (!str_ieq(name, STR("boundary")))
            continue;
        if (!is_boundary(value))
            break;
        memcpy(f->delimiter, "\r\n--", 4);
        memcpy(f->delimiter + 4, value.p, value.len);
        f->delimiter_len = value.len + 4;
        return 0;
    }
    return s3_fail(err, S3_MALFORMED_POST_REQUEST);
}

static struct str held(const struct form *f)
{
    return str_n(f->buffer + f->start, f->end - f->start);
}

/* Reads more of the body into the buffer, which has room. *got is 0 at the end of the body. */
static int form_fill(struct form *f, size_t *got, struct err *err)
{
    int code;

    if (f->start) {
        memmove(f->buffer, f->buffer + f->start, f->end - f->start);
        f->end -= f->start;
        f->start = 0;
    }
    BUG_ON(f->end == FORM_BUFFER);
    code = reader_read(f->body, f->buffer + f->end, FORM_BUFFER - f->end, got, err);
    if (code == 0)
        f->end += *got;
    return code;
}

/* Removes the text before `mark`, and `mark`, from the buffer. *out is the text, borrowed until the
 * buffer is filled again. `too_long` is the error for a text of more than `max` bytes. */
static int read_until(struct form *f, struct str mark, size_t max, enum s3_code too_long,
                      struct str *out, struct err *err)
{
    for (size_t seen = 0;;) {
        struct str all = held(f);
        ptrdiff_t found = str_find(str_skip(all, seen), mark);
        size_t at = found < 0 ? all.len : seen + (size_t)found, got;
        if (found >= 0 && at <= max) {
            *out = str_head(all, at);
            f->start += at + mark.len;
            return 0;
        }
        if (found >= 0 || all.len > max + mark.len)
            return s3_fail(err, too_long);
        seen = all.len < mark.len ? 0 : all.len - (mark.len - 1);
        int code = form_fill(f, &got, err);
        if (code < 0)
            return code;
        if (got == 0)
            return s3_fail(err, S3_MALFORMED_POST_REQUEST);
    }
}

static struct str delimiter(const struct form *f)
{
    return str_n(f->delimiter, f->delimiter_len);
}

/* Reads what follows a boundary: "\r\n" if another part comes, or "--" at the end of the form.
 * Blanks may come first. */
static int after_boundary(struct form *f, bool *last, struct err *err)
{
    struct str line = STR_EMPTY;
    size_t got = 1;
    int code = 0;

    while (code == 0 && got && held(f).len < 2)
        code = form_fill(f, &got, err);
    if (code < 0)
        return code;
    *last = str_starts(held(f), STR("--"));
    if (*last)
        return 0;
    code = read_until(f, STR("\r\n"), 64, S3_MALFORMED_POST_REQUEST, &line, err);
    if (code == 0 && str_trim(line).len)
        code = s3_fail(err, S3_MALFORMED_POST_REQUEST);
    return code;
}

static int parse_disposition(struct form *f, struct str value, struct part_head *out)
{
    struct str kind, rest = value, name, text;

    str_cut(value, ';', &kind, &(struct str){0});
    if (!str_ieq(str_trim(kind), STR("form-data")))
        return ERR_PARSE;
    while (next_parameter(&rest, &name, &text)) {
        if (str_ieq(name, STR("name")))
            out->name = form_unescape(f->arena, text);
        else if (str_ieq(name, STR("filename")))
            out->filename = form_unescape(f->arena, text);
    }
    out->is_file = str_ieq(out->name, str_z(f->part));
    return out->name.len ? 0 : ERR_PARSE;
}

static int read_part_head(struct form *f, struct part_head *out, struct err *err)
{
    struct str line = STR_EMPTY, name, value;
    bool disposed = false;
    size_t total = 0;

    *out = (struct part_head){0};
    for (;;) {
        int code = read_until(f, STR("\r\n"), FORM_HEAD_MAX, S3_MALFORMED_POST_REQUEST, &line, err);
        if (code < 0)
            return code;
        if (line.len == 0)
            break;
        total += line.len;
        if (total > FORM_HEAD_MAX || !str_cut(line, ':', &name, &value))
            return s3_fail(err, S3_MALFORMED_POST_REQUEST);
        if (str_ieq(name, STR("content-disposition"))) {
            if (disposed || parse_disposition(f, value, out) < 0)
                return s3_fail(err, S3_MALFORMED_POST_REQUEST);
            disposed = true;
        } else if (str_ieq(name, STR("content-type"))) {
            out->type = arena_str(f->arena, str_trim(value));
        }
    }
    return disposed ? 0 : s3_fail(err, S3_MALFORMED_POST_REQUEST);
}

static int form_read_field(struct form *f, const struct part_head *head, struct err *err)
{
    struct str value = STR_EMPTY;
    int code;

    if (f->field_count == FORM_FIELDS_MAX)
        return s3_fail(err, S3_MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR);
    code = read_until(f, delimiter(f), FORM_FIELD_MAX, S3_MAX_POST_PRE_DATA_LENGTH_EXCEEDED_ERROR,
                      &value, err);
    if (code < 0)
        return code;
    f->fields[f->field_count++] = (struct form_field){head->name, arena_str(f->arena, value)};
    return arena_error(f->arena) < 0 ? err_code(err, ERR_NO_MEMORY) : 0;
}

/* Returns the file's name without folders, because some browsers send the whole path. */
static struct str without_folders(struct str name)
{
    size_t at = name.len;

    while (at && name.p[at - 1] != '/' && name.p[at - 1] != '\\')
        at--;
    return str_skip(name, at);
}

/* Reads all fields up to the file. The first boundary is at the start of the body, or behind a
 * preamble and a line's end. */
static int form_read_fields(struct form *f, struct err *err)
{
    struct part_head head;
    struct str preamble;
    bool last;
    int code;

    memcpy(f->buffer, "\r\n", 2);
    f->end = 2;
    code = read_until(f, delimiter(f), FORM_HEAD_MAX, S3_MALFORMED_POST_REQUEST, &preamble, err);
    for (;;) {
        if (code < 0 || (code = after_boundary(f, &last, err)) < 0)
            return code;
        if (last)
            return s3_fail(err, S3_INCORRECT_NUMBER_OF_FILES_IN_POST_REQUEST);
        code = read_part_head(f, &head, err);
        if (code < 0)
            return code;
        if (head.is_file)
            break;
        code = form_read_field(f, &head, err);
    }
    f->filename = without_folders(head.filename);
    f->file_type = head.type;
    return 0;
}

/* Finds how many bytes at the front certainly belong to the file: all but those that could begin a
 * boundary. The bytes in the buffer are searched only once, however few of them are read at a
 * time. */
static void look_ahead(struct form *f, bool *at_boundary)
{
    struct str all = held(f);
    ptrdiff_t at = str_find(all, delimiter(f));

    *at_boundary = at == 0;
    f->known = at >= 0                      ? (size_t)at
               : all.len < f->delimiter_len ? 0
                                            : all.len - (f->delimiter_len - 1);
}

/* Reads the boundary behind the file. Without that boundary, the body was cut off. Fields that
 * follow are not read. */
static int end_file(struct form *f, struct err *err)
{
    bool last;
    int code;

    f->start += f->delimiter_len;
    code = after_boundary(f, &last, err);
    if (code < 0)
        return code;
    f->ended = true;
    return f->given < f->min ? s3_fail(err, S3_ENTITY_TOO_SMALL) : 0;
}

static int form_read_file(struct form *f, char *to, size_t len, size_t *got, struct err *err)
{
    bool at_boundary = false;
    size_t n;

    while (f->known == 0) {
        size_t more;
        look_ahead(f, &at_boundary);
        if (f->known || at_boundary)
            break;
        int code = form_fill(f, &more, err);
        if (code < 0)
            return code;
        if (more == 0)
            return s3_fail(err, S3_MALFORMED_POST_REQUEST);
    }
    if (at_boundary)
        return end_file(f, err);
    n = size_min(f->known, len);
    memcpy(to, f->buffer + f->start, n);
    f->start += n;
    f->known -= n;
    f->given += n;
    *got = n;
    return f->given > f->max ? s3_fail(err, S3_ENTITY_TOO_LARGE) : 0;
}

static int form_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct form *f = container_of(r, struct form, file);
    int code;

    *got = 0;
    if (f->failed)
        return err_set(err, f->failed, "the form was refused");
    if (f->ended || len == 0)
        return 0;
    code = form_read_file(f, to, len, got, err);
    if (code < 0) {
        f->failed = code;
        *got = 0;
    }
    return code;
}

static void close_reader(struct reader *r)
{
    form_close(container_of(r, struct form, file));
}

static const struct reader_ops form_ops = {.read = form_read, .close = close_reader};

int form_open(struct form *f, struct arena *arena, struct reader *body, struct str content_type,
              struct err *err)
{
    return form_open_part(f, arena, body, content_type, "file", err);
}

int form_open_part(struct form *f, struct arena *arena, struct reader *body,
                   struct str content_type, const char *part, struct err *err)
{
    int code;

    memset(f, 0, sizeof(*f));
    f->part = part;
    f->file.ops = &form_ops;
    f->body = body;
    f->arena = arena;
    f->max = UINT64_MAX;
    code = set_delimiter(f, content_type, err);
    if (code < 0)
        return code;
    f->buffer = xzalloc(FORM_BUFFER);
    code = form_read_fields(f, err);
    if (code < 0)
        form_close(f);
    return code;
}

void form_close(struct form *f)
{
    free(f->buffer);
    f->buffer = NULL;
    f->start = f->end = 0;
    f->ended = true;
}

struct str form_field(const struct form *f, const char *name)
{
    for (size_t i = 0; i < f->field_count; i++)
        if (str_ieq(f->fields[i].name, str_z(name)))
            return f->fields[i].value;
    return STR_EMPTY;
}
