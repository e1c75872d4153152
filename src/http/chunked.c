/* Decodes chunked bodies (RFC 9112 section 7.1). Sizes and line ends are read byte by byte, and the
 * bytes of the body in longer runs. */
#include "base/hex.h"
#include "http/wire_int.h"

/* Limits in bytes: of one size line with its extensions, and of all trailers together. */
enum { MAX_SIZE_LINE = 256, MAX_TRAILERS = HTTP_MAX_HEAD };

enum state {
    SIZE_FIRST, /* before the first digit of a size */
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST, /* before a trailer's name, or the last empty line */
    TRAILER_NAME,
    TRAILER_BLANK, /* between the colon and the value */
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
};

static int bad(struct err *err, const char *what)
{
    return err_set(err, ERR_PARSE, "%s", what);
}

static int size_byte(struct http_chunked *c, char byte, struct err *err)
{
    int digit = hex_digit(byte);

    if (++c->line > MAX_SIZE_LINE)
        return err_set(err, ERR_TOO_LARGE, "a chunk's size line is longer than %d bytes",
                       MAX_SIZE_LINE);
    if (c->state == EXTENSION) {
        if (byte == '\r')
            c->state = SIZE_LF;
        else if (!http_value_char((unsigned char)byte))
            return bad(err, "a control character in a chunk extension");
        return 0;
    }
    if (digit >= 0) {
        if (c->left >> 60)
            return bad(err, "a chunk's size overflows");
        c->left = c->left << 4 | (unsigned)digit;
        c->state = SIZE;
        return 0;
    }
    if (c->state == SIZE_FIRST || (byte != '\r' && byte != ';'))
        return bad(err, "malformed chunk size");
    c->state = byte == '\r' ? SIZE_LF : EXTENSION;
    return 0;
}

/* Checks that `byte` is the wanted byte, and changes to the state `next`. */
static int expect(struct http_chunked *c, char byte, char wanted, enum state next, struct err *err)
{
    if (byte != wanted)
        return bad(err, "a line of the chunked framing does not end in CRLF");
    c->state = next;
    c->line = 0;
    return 0;
}

static void trailers_keep(struct buf *trailers, const void *p, size_t len)
{
    if (trailers)
        buf_append(trailers, p, len);
}

/* Ends a trailer line. Blanks behind the value do not belong to it and are removed. */
static void end_trailer(struct buf *trailers)
{
    if (!trailers || trailers->failed)
        return;
    while (trailers->len &&
           (trailers->p[trailers->len - 1] == ' ' || trailers->p[trailers->len - 1] == '\t'))
        trailers->len--;
    buf_append_z(trailers, "\r\n");
}

static int trailer_name_byte(struct http_chunked *c, char byte, struct buf *trailers,
                             struct err *err)
{
    bool first = c->state == TRAILER_FIRST;

    if (first && byte == '\r') {
        c->state = END_LF;
        return 0;
    }
    if (!first && byte == ':')
        c->state = TRAILER_BLANK;
    else if (http_token_char[(unsigned char)byte])
        c->state = TRAILER_NAME;
    else
        return bad(err, "malformed trailer name");
    trailers_keep(trailers, &byte, 1);
    return 0;
}

static int trailer_byte(struct http_chunked *c, char byte, struct buf *trailers, struct err *err)
{
    if (++c->trailer_bytes > MAX_TRAILERS || ++c->line > HTTP_MAX_LINE)
        return err_set(err, ERR_TOO_LARGE, "the trailers are too large");
    if (c->state == TRAILER_FIRST || c->state == TRAILER_NAME)
        return trailer_name_byte(c, byte, trailers, err);
    if (byte == '\r') {
        c->state = TRAILER_LF;
        end_trailer(trailers);
        return 0;
    }
    if (!http_value_char((unsigned char)byte))
        return bad(err, "a control character in a trailer");
    if (c->state == TRAILER_BLANK) {
        if (byte == ' ' || byte == '\t')
            return 0;
        c->state = TRAILER_VALUE;
        trailers_keep(trailers, " ", 1);
    }
    trailers_keep(trailers, &byte, 1);
    return 0;
}

static int framing_byte(struct http_chunked *c, char byte, struct buf *trailers, struct err *err)
{
    switch ((enum state)c->state) {
    case SIZE_FIRST:
    case SIZE:
    case EXTENSION:
        return size_byte(c, byte, err);
    case SIZE_LF:
        return expect(c, byte, '\n', c->left ? DATA : TRAILER_FIRST, err);
    case DATA_CR:
        return expect(c, byte, '\r', DATA_LF, err);
    case DATA_LF:
        return expect(c, byte, '\n', SIZE_FIRST, err);
    case TRAILER_FIRST:
    case TRAILER_NAME:
    case TRAILER_BLANK:
    case TRAILER_VALUE:
        return trailer_byte(c, byte, trailers, err);
    case TRAILER_LF:
        return expect(c, byte, '\n', TRAILER_FIRST, err);
    case END_LF:
        c->done = byte == '\n';
        return expect(c, byte, '\n', END_LF, err);
    case DATA:
        break;
    }
    BUG_ON(true);
}

int http_chunked_next(struct http_chunked *c, struct str in, struct str *body, size_t *used,
                      struct buf *trailers, struct err *err)
{
    size_t at = 0;

    *body = STR_EMPTY;
    while (at < in.len && !c->done && c->state != DATA) {
        int rc = framing_byte(c, in.p[at++], trailers, err);
        if (rc < 0)
            return rc;
    }
    if (trailers && trailers->failed)
        return err_set(err, ERR_TOO_LARGE, "the trailers are too large");
    if (c->state == DATA && at < in.len) {
        size_t n = in.len - at < c->left ? in.len - at : (size_t)c->left;
        *body = str_n(in.p + at, n);
        at += n;
        c->left -= n;
        if (c->left == 0)
            c->state = DATA_CR;
    }
    *used = at;
    return 0;
}

uint64_t http_chunked_run(const struct http_chunked *c)
{
    return c->state == DATA ? c->left : 0;
}
