/* The reader and writer of RESP2. One state machine reads lines, strings and nested arrays, without
 * recursion and without a second copy of the tree. */
#include "store/resp.h"

void resp_init(struct resp *r)
{
    *r = (struct resp){.line = BUF_INIT(RESP_MAX_LINE)};
}

void resp_release(struct resp *r)
{
    buf_release(&r->line);
}

void resp_begin(struct resp *r, struct arena *arena)
{
    r->arena = arena;
    r->root = r->slot = NULL;
    r->depth = 0;
    r->bulk = NULL;
    buf_reset(&r->line);
}

/* Called when the value in r->slot is complete: moves r->slot to the place of the next value. True:
 * the whole reply is complete. */
static bool resp_advance(struct resp *r)
{
    while (r->depth) {
        struct resp_level *top = &r->levels[r->depth - 1];
        if (++top->next < top->array->count) {
            r->slot = &top->array->items[top->next];
            return false;
        }
        r->depth--;
    }
    return true;
}

/* Reads the length that follows '$' or '*'. -1 means nil; other negative numbers are errors. */
static int parse_length(struct str digits, int64_t *out, struct err *err)
{
    if (str_i64(digits, out) < 0 || *out < -1)
        return err_set(err, ERR_PARSE, "a length in a reply is not a number");
    return 0;
}

/* Begins a string. 1: the value is complete (nil). 0: its bytes follow. */
static int begin_bulk(struct resp *r, struct str digits, struct err *err)
{
    int64_t len;
    int rc = parse_length(digits, &len, err);

    if (rc < 0)
        return rc;
    if (len < 0) {
        r->slot->type = REPLY_NIL;
        return 1;
    }
    if (len > RESP_MAX_BULK)
        return err_set(err, ERR_TOO_LARGE, "a string of %lld bytes in a reply", (long long)len);
    r->bulk_size = (size_t)len + 2;
    r->bulk_done = 0;
    r->bulk = arena_alloc(r->arena, r->bulk_size);
    if (!r->bulk)
        return err_set(err, ERR_NO_MEMORY, "a string of %lld bytes in a reply is past the limit",
                       (long long)len);
    return 0;
}

static int begin_array(struct resp *r, struct str digits, struct err *err)
{
    struct reply *slot = r->slot;
    int64_t count;
    int rc = parse_length(digits, &count, err);

    if (rc < 0)
        return rc;
    slot->type = count < 0 ? REPLY_NIL : REPLY_ARRAY;
    if (count <= 0)
        return 1;
    if (r->depth == RESP_MAX_DEPTH)
        return err_set(err, ERR_TOO_LARGE, "a reply is nested deeper than %d", RESP_MAX_DEPTH);
    slot->items = arena_array(r->arena, (size_t)count, sizeof(*slot->items));
    if (!slot->items)
        return err_set(err, ERR_NO_MEMORY, "an array of %lld in a reply is past the limit",
                       (long long)count);
    slot->count = (size_t)count;
    r->levels[r->depth++] = (struct resp_level){.array = slot};
    r->slot = &slot->items[0];
    return 0;
}

static int resp_take_text(struct resp *r, enum reply_type type, struct str text, struct err *err)
{
    r->slot->type = type;
    r->slot->str = arena_str(r->arena, text);
    if (arena_error(r->arena) < 0)
        return err_code(err, ERR_NO_MEMORY);
    return 1;
}

/* Reads one line, given without its CRLF. 1: the value in r->slot is complete. 0: more follows. */
static int take_line(struct resp *r, struct str line, struct err *err)
{
    struct str rest = str_skip(line, 1);

    switch (line.len ? line.p[0] : 0) {
    case '+':
        return resp_take_text(r, REPLY_STATUS, rest, err);
    case '-':
        return resp_take_text(r, REPLY_ERROR, rest, err);
    case ':':
        r->slot->type = REPLY_INTEGER;
        if (str_i64(rest, &r->slot->integer) < 0)
            return err_set(err, ERR_PARSE, "an integer in a reply is not a number");
        return 1;
    case '$':
        return begin_bulk(r, rest, err);
    case '*':
        return begin_array(r, rest, err);
    }
    return err_set(err, ERR_PARSE, "a reply of an unknown type");
}

/* Takes a line from *in. If earlier calls got the beginning of the line, it is joined with that. 1:
 * *line is set. 0: the end of the line has not come yet. */
static int next_line(struct resp *r, struct str *in, struct str *line, struct err *err)
{
    ptrdiff_t end = str_chr(*in, '\n');
    struct str part = str_head(*in, end < 0 ? in->len : (size_t)end + 1);

    if (r->line.len + part.len > RESP_MAX_LINE)
        return err_set(err, ERR_TOO_LARGE, "a line of a reply is longer than %d", RESP_MAX_LINE);
    *in = str_skip(*in, part.len);
    if (end < 0 || r->line.len)
        buf_append_str(&r->line, part);
    if (end < 0)
        return 0;
    *line = r->line.len ? buf_str(&r->line) : part;
    if (!str_ends(*line, STR("\r\n")))
        return err_set(err, ERR_PARSE, "a line of a reply does not end with CRLF");
    line->len -= 2;
    if (str_chr(*line, '\r') >= 0)
        return err_set(err, ERR_PARSE, "a carriage return inside a line of a reply");
    return 1;
}

static int read_bulk(struct resp *r, struct str *in, struct err *err)
{
    size_t n = size_min(in->len, r->bulk_size - r->bulk_done), len = r->bulk_size - 2;

    if (n)
        memcpy(r->bulk + r->bulk_done, in->p, n);
    r->bulk_done += n;
    *in = str_skip(*in, n);
    if (r->bulk_done < r->bulk_size)
        return 0;
    if (memcmp(r->bulk + len, "\r\n", 2) != 0)
        return err_set(err, ERR_PARSE, "a string in a reply does not end with CRLF");
    r->bulk[len] = 0;
    r->slot->type = REPLY_BULK;
    r->slot->str = str_n(r->bulk, len);
    r->bulk = NULL;
    return 1;
}

static int read_value_line(struct resp *r, struct str *in, struct err *err)
{
    struct str line;
    int rc = next_line(r, in, &line, err);

    if (rc <= 0)
        return rc;
    rc = take_line(r, line, err);
    buf_reset(&r->line);
    return rc;
}

int resp_read(struct resp *r, struct str in, size_t *used, struct reply **out, struct err *err)
{
    struct str rest = in;
    int rc = 0;

    if (!r->root) {
        r->root = r->slot = arena_new(r->arena, struct reply);
        if (!r->root)
            return err_code(err, ERR_NO_MEMORY);
    }
    while (rest.len) {
        rc = r->bulk ? read_bulk(r, &rest, err) : read_value_line(r, &rest, err);
        *used = in.len - rest.len;
        if (rc < 0)
            return rc;
        if (rc && resp_advance(r)) {
            *out = r->root;
            r->root = NULL;
            return 0;
        }
    }
    *used = in.len;
    return ERR_AGAIN;
}

static void write_header(struct buf *out, char type, size_t n)
{
    buf_append_char(out, type);
    buf_append_u64(out, n);
    buf_append(out, "\r\n", 2);
}

void resp_write(struct buf *out, const struct str *argv, size_t argc)
{
    write_header(out, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        write_header(out, '$', argv[i].len);
        buf_append_str(out, argv[i]);
        buf_append(out, "\r\n", 2);
    }
}
