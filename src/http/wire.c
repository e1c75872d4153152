/* Parses request and response heads by RFC 9112, strictly and in one pass. A head is parsed only
 * when all of it has arrived.
 *
 * To find the end of the head, the parser first checks whether the bytes received end in an empty
 * line, which is the usual case and costs nothing. Otherwise it searches for the empty line. Each
 * byte is searched only once, however many calls there are, because *seen counts the bytes that
 * were searched. */
#include "http/wire_int.h"
#include "base/bytes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { MAX_METHOD = 32 };

/* The parser's position, and facts that can be checked only when all header fields are known. */
struct parse {
    struct http_head *head;
    const char *p, *end;
    struct str authority; /* host and port of a target in absolute form; else empty */
    struct str host;
    unsigned host_count, length_count, encoding_count;
    bool close, keep;
};

typedef int field_fn(struct parse *s, struct str value, struct err *err);
static field_fn on_connection, on_content_length, on_expect, on_host, on_transfer_encoding;

/* The header fields that concern the framing and the connection. A field's index in this table is
 * the length of its name; no two names have the same length. */
static const struct {
    struct str name;
    field_fn *fn;
} special_fields[] = {
    [4] = {{"host", 4}, on_host},
    [6] = {{"expect", 6}, on_expect},
    [10] = {{"connection", 10}, on_connection},
    [14] = {{"content-length", 14}, on_content_length},
    [17] = {{"transfer-encoding", 17}, on_transfer_encoding},
};

const bool http_token_char[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

/* The characters that Host and an authority may have: those that RFC 3986 allows in reg-name, IP
 * literals and the port. */
static const bool host_char[256] = {
    ['!'] = 1, ['$'] = 1,         ['%'] = 1,         ['&'] = 1,         ['\''] = 1, ['('] = 1,
    [')'] = 1, ['*'] = 1,         ['+'] = 1,         [','] = 1,         ['-'] = 1,  ['.'] = 1,
    [':'] = 1, [';'] = 1,         ['='] = 1,         ['['] = 1,         [']'] = 1,  ['_'] = 1,
    ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Returns a word in which the high bit of each byte is set if that byte of `x` is below `n` (at
 * most 128). Only the lowest such byte is certain; the bits of higher bytes may be wrong. */
static inline uint64_t bytes_below(uint64_t x, unsigned n)
{
    return (x - EACH_BYTE(n)) & ~x & EACH_BYTE(0x80);
}

/* Returns the address of the first byte that is below `least`, or DEL, or (with only_ascii) above
 * DEL; returns `end` when there is none. The function compares 16 or 8 bytes at a time, because
 * every byte of a head passes through this function. */
static inline const char *scan(const char *p, const char *end, unsigned char least, bool only_ascii)
{
#ifdef __SSE2__
    const __m128i most = _mm_set1_epi8((char)(least - 1)), del = _mm_set1_epi8(0x7f);
    for (; end - p >= 16; p += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)p);
        __m128i hits =
            _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(x, most), x), _mm_cmpeq_epi8(x, del));
        int hit = _mm_movemask_epi8(only_ascii ? _mm_or_si128(hits, x) : hits);
        if (hit)
            return p + __builtin_ctz((unsigned)hit);
    }
#endif
    for (; end - p >= 8; p += 8) {
        uint64_t x = le64_read(p);
        uint64_t hit = bytes_below(x, least) | bytes_below(x ^ EACH_BYTE(0x7f), 1);
        if (only_ascii)
            hit |= x & EACH_BYTE(0x80);
        if (hit)
            return p + __builtin_ctzll(hit) / 8;
    }
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < least || c == 0x7f || (only_ascii && c > 0x7f))
            break;
    }
    return p;
}

bool http_field_is_valid(struct str name, struct str value)
{
    size_t i = 0;

    while (i < name.len && http_token_char[(unsigned char)name.p[i]])
        i++;
    if (name.len == 0 || i < name.len)
        return false;
    if (value.len == 0)
        return true;
    const char *p = value.p, *end = p + value.len;
    while ((p = scan(p, end, 0x20, false)) < end && *p == '\t')
        p++;
    return p == end;
}

/* Searches for the empty line that ends the head, from *seen on. 0: found. ERR_AGAIN: more bytes
 * are needed. A bare LF is an error, and so are bytes that are not HTTP, such as TLS sent to a
 * plain port. So their sender gets an answer at once instead of waiting in vain. */
static int find_end(struct str in, size_t *seen, struct err *err)
{
    if (in.len >= 4 && memcmp(in.p + in.len - 4, "\r\n\r\n", 4) == 0)
        return 0;
    size_t limit = size_min(in.len, HTTP_MAX_HEAD);
    while (*seen < limit) {
        const char *lf = memchr(in.p + *seen, '\n', limit - *seen);
        if (!lf) {
            *seen = limit;
            break;
        }
        size_t at = (size_t)(lf - in.p);
        if (at == 0 || in.p[at - 1] != '\r')
            return err_set(err, ERR_PARSE, "a line ends without CR");
        *seen = at + 1;
        if (at >= 3 && in.p[at - 2] == '\n')
            return 0;
    }
    if (in.len >= HTTP_MAX_HEAD)
        return err_set(err, ERR_TOO_LARGE, "the head is larger than %d bytes", HTTP_MAX_HEAD);
    if (in.len && in.p[0] != '\r' && !http_token_char[(unsigned char)in.p[0]])
        return err_set(err, ERR_PARSE, "not HTTP");
    return ERR_AGAIN;
}

/* Steps over the CRLF at s->p, which must end the line that starts at `begin`. */
static inline int line_end(struct parse *s, const char *begin, const char *what, struct err *err)
{
    if (s->end - s->p < 2 || s->p[0] != '\r' || s->p[1] != '\n')
        return err_set(err, ERR_PARSE, "a character that may not be in %s", what);
    if (s->p - begin > HTTP_MAX_LINE)
        return err_set(err, ERR_TOO_LARGE, "%s is longer than %d bytes", what, HTTP_MAX_LINE);
    s->p += 2;
    return 0;
}

static bool all_of(struct str s, const bool table[256])
{
    for (size_t i = 0; i < s.len; i++)
        if (!table[(unsigned char)s.p[i]])
            return false;
    return true;
}

static int on_host(struct parse *s, struct str value, struct err *err)
{
    if (s->host_count++)
        return err_set(err, ERR_PARSE, "more than one Host");
    if (!all_of(value, host_char))
        return err_set(err, ERR_PARSE, "malformed Host");
    s->host = value;
    return 0;
}

static int on_expect(struct parse *s, struct str value, struct err *err)
{
    if (s->head->minor > 0 && str_ieq(value, STR("100-continue")))
        s->head->expect_continue = true; /* ignored in HTTP/1.0 (RFC 9110 section 10.1.1) */
    return 0;
}

static int on_connection(struct parse *s, struct str value, struct err *err)
{
    while (value.len) {
        struct str option;
        str_cut(value, ',', &option, &value);
        option = str_trim(option);
        s->close |= str_ieq(option, STR("close"));
        s->keep |= str_ieq(option, STR("keep-alive"));
    }
    return 0;
}

static int on_content_length(struct parse *s, struct str value, struct err *err)
{
    if (s->length_count++)
        return err_set(err, ERR_PARSE, "more than one Content-Length");
    if (str_u64(value, &s->head->content_length) < 0)
        return err_set(err, ERR_PARSE, "malformed Content-Length");
    s->head->has_length = true;
    return 0;
}

static int on_transfer_encoding(struct parse *s, struct str value, struct err *err)
{
    if (s->encoding_count++)
        return err_set(err, ERR_PARSE, "more than one Transfer-Encoding");
    if (s->head->minor == 0)
        return err_set(err, ERR_PARSE, "Transfer-Encoding in HTTP/1.0");
    if (!str_ieq(value, STR("chunked")))
        return err_set(err, ERR_UNSUPPORTED, "a Transfer-Encoding other than chunked");
    s->head->chunked = true;
    return 0;
}

static int special_field(struct parse *s, const struct http_header *h, struct err *err)
{
    size_t n = h->name.len;

    if (n >= ARRAY_SIZE(special_fields) || !special_fields[n].fn ||
        !str_ieq(h->name, special_fields[n].name))
        return 0;
    return special_fields[n].fn(s, h->value, err);
}

/* Parses one "name: value" line. A line that continues the one before it (RFC 9112 section 5.2,
 * obs-fold) is refused, because a name does not begin with a blank. */
static int parse_field(struct parse *s, struct err *err)
{
    const char *begin = s->p, *p = begin;

    while (p < s->end && http_token_char[(unsigned char)*p])
        p++;
    if (p == begin || p == s->end || *p != ':')
        return err_set(err, ERR_PARSE, "malformed header name");
    if (s->head->header_count == HTTP_MAX_HEADERS)
        return err_set(err, ERR_TOO_LARGE, "more than %d headers", HTTP_MAX_HEADERS);
    struct http_header *h = &s->head->headers[s->head->header_count];
    h->name = str_n(begin, (size_t)(p - begin));
    const char *value = ++p;
    while ((p = scan(p, s->end, 0x20, false)) < s->end && *p == '\t')
        p++;
    h->value = str_trim(str_n(value, (size_t)(p - value)));
    s->p = p;
    int rc = line_end(s, begin, "a header", err);
    if (rc < 0)
        return rc;
    s->head->header_count++;
    return special_field(s, h, err);
}

/* Parses the fields and the empty line behind them, and checks the rules that concern several
 * fields. */
static int fields(struct parse *s, struct str in, struct err *err)
{
    struct http_head *head = s->head;

    while (s->p < s->end && *s->p != '\r') {
        int rc = parse_field(s, err);
        if (rc < 0)
            return rc;
    }
    int rc = line_end(s, s->p, "an empty line", err);
    if (rc < 0)
        return rc;
    head->size = (size_t)(s->p - in.p);
    if (head->size > HTTP_MAX_HEAD)
        return err_set(err, ERR_TOO_LARGE, "the head is larger than %d bytes", HTTP_MAX_HEAD);
    if (head->chunked && head->has_length)
        return err_set(err, ERR_PARSE, "both Content-Length and Transfer-Encoding");
    head->keep_alive = !s->close && (head->minor > 0 || s->keep);
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Parses "HTTP/1.0" or "HTTP/1.1"; everything else is refused. */
static int version(struct parse *s, struct err *err)
{
    if (s->end - s->p < 8 || memcmp(s->p, "HTTP/", 5) != 0 || !is_digit(s->p[5]) ||
        s->p[6] != '.' || !is_digit(s->p[7]))
        return err_set(err, ERR_PARSE, "malformed HTTP version");
    if (s->p[5] != '1' || s->p[7] > '1')
        return err_set(err, ERR_VERSION, "neither HTTP/1.0 nor HTTP/1.1");
    s->head->minor = s->p[7] - '0';
    s->p += 8;
    return 0;
}

static int method(struct parse *s, struct err *err)
{
    const char *begin = s->p;

    while (s->p < s->end && http_token_char[(unsigned char)*s->p])
        s->p++;
    struct str text = str_n(begin, (size_t)(s->p - begin));
    if (text.len == 0 || text.len > MAX_METHOD || s->p == s->end || *s->p++ != ' ')
        return err_set(err, ERR_PARSE, "malformed method");
    s->head->method_text = text;
    s->head->method = http_method(text);
    return 0;
}

/* Splits a target in absolute form: the authority goes to s->authority, the path and query to
 * *rest. */
static int absolute_target(struct parse *s, struct str target, struct str *rest, struct err *err)
{
    ptrdiff_t colon = str_chr(target, ':');
    struct str scheme = str_head(target, colon < 0 ? 0 : (size_t)colon);

    if (!str_ieq(scheme, STR("http")) && !str_ieq(scheme, STR("https")))
        return err_set(err, ERR_PARSE, "malformed request target");
    *rest = str_skip(target, scheme.len);
    if (!str_starts(*rest, STR("://")))
        return err_set(err, ERR_PARSE, "malformed request target");
    *rest = str_skip(*rest, 3);
    size_t n = 0;
    while (n < rest->len && host_char[(unsigned char)rest->p[n]])
        n++;
    if (n == 0 || (n < rest->len && rest->p[n] != '/' && rest->p[n] != '?'))
        return err_set(err, ERR_PARSE, "malformed authority in the request target");
    s->authority = str_head(*rest, n);
    *rest = str_skip(*rest, n);
    return 0;
}

static int target(struct parse *s, struct err *err)
{
    struct http_head *head = s->head;
    const char *begin = s->p;

    s->p = scan(begin, s->end, 0x21, true);
    head->target = str_n(begin, (size_t)(s->p - begin));
    if (head->target.len == 0 || s->p == s->end || *s->p++ != ' ' ||
        str_chr(head->target, '#') >= 0)
        return err_set(err, ERR_PARSE, "malformed request target");
    struct str rest = head->target;
    if (rest.p[0] == '*') {
        if (rest.len > 1 || head->method != HTTP_OPTIONS)
            return err_set(err, ERR_PARSE, "malformed request target");
    } else if (rest.p[0] != '/') {
        int rc = absolute_target(s, head->target, &rest, err);
        if (rc < 0)
            return rc;
    }
    str_cut(rest, '?', &head->path, &head->query);
    if (head->path.len == 0)
        head->path = STR("/");
    return 0;
}

static int request_line(struct parse *s, struct err *err)
{
    /* One empty line before a request is ignored (RFC 9112 section 2.2). */
    if (s->end - s->p >= 2 && s->p[0] == '\r' && s->p[1] == '\n')
        s->p += 2;
    const char *begin = s->p;
    int rc = method(s, err);
    if (rc == 0)
        rc = target(s, err);
    if (rc == 0)
        rc = version(s, err);
    if (rc == 0)
        rc = line_end(s, begin, "the request line", err);
    return rc;
}

static int host_rules(const struct parse *s, struct err *err)
{
    if (s->host_count == 0 && s->head->minor > 0)
        return err_set(err, ERR_PARSE, "no Host");
    /* RFC 9112 section 3.2.2 lets the host in the target override Host. We refuse a request in
     * which the two differ. */
    if (s->authority.len && s->host_count && !str_ieq(s->authority, s->host))
        return err_set(err, ERR_PARSE, "Host is not the target's host");
    return 0;
}

static int parse_status_line(struct parse *s, struct err *err)
{
    const char *begin = s->p;
    int rc = version(s, err);
    if (rc < 0)
        return rc;
    const char *p = s->p;
    uint64_t status;
    if (s->end - p < 5 || *p != ' ' || str_u64(str_n(p + 1, 3), &status) < 0 || status < 100 ||
        status > 599 || (p[4] != ' ' && p[4] != '\r'))
        return err_set(err, ERR_PARSE, "malformed status line");
    s->head->status = (int)status;
    p += 4 + (p[4] == ' '); /* a peer that sends no reason often omits the blank before it too */
    const char *reason = p;
    while ((p = scan(p, s->end, 0x20, false)) < s->end && *p == '\t')
        p++;
    s->head->reason = str_n(reason, (size_t)(p - reason));
    s->p = p;
    return line_end(s, begin, "the status line", err);
}

/* Zeroes the head except for the array of headers, whose 3 kB need not be zeroed. */
static void head_clear(struct http_head *h)
{
    memset(h, 0, offsetof(struct http_head, headers));
    memset(&h->header_count, 0, sizeof(*h) - offsetof(struct http_head, header_count));
}

int http_parse_request(struct http_head *out, struct str in, size_t *seen, struct err *err)
{
    int rc = find_end(in, seen, err);
    if (rc < 0)
        return rc;
    struct parse s = {.head = out, .p = in.p, .end = in.p + in.len};
    head_clear(out);
    rc = request_line(&s, err);
    if (rc == 0)
        rc = fields(&s, in, err);
    if (rc == 0)
        rc = host_rules(&s, err);
    return rc;
}

int http_parse_response(struct http_head *out, struct str in, size_t *seen, struct err *err)
{
    int rc = find_end(in, seen, err);
    if (rc < 0)
        return rc;
    struct parse s = {.head = out, .p = in.p, .end = in.p + in.len};
    head_clear(out);
    rc = parse_status_line(&s, err);
    if (rc == 0)
        rc = fields(&s, in, err);
    /* In a response, both of these errors mean that the response is malformed. */
    if (rc == ERR_VERSION || rc == ERR_UNSUPPORTED)
        rc = err_wrap(err, ERR_PARSE, "the response");
    return rc;
}

bool http_response_has_body(const struct http_head *head, bool to_head_request)
{
    return !to_head_request && head->status >= 200 && head->status != 204 && head->status != 304;
}

const struct http_header *http_header_next(const struct http_head *head, const char *name,
                                           const struct http_header *after)
{
    const struct http_header *end = head->headers + head->header_count;
    struct str wanted = str_z(name);

    for (const struct http_header *h = after ? after + 1 : head->headers; h < end; h++)
        if (str_ieq(h->name, wanted))
            return h;
    return NULL;
}

struct str http_header_among(const struct http_header *headers, size_t count, const char *name)
{
    struct str wanted = str_z(name);

    for (size_t i = 0; i < count; i++)
        if (str_ieq(headers[i].name, wanted))
            return headers[i].value;
    return STR_EMPTY;
}

struct str http_header(const struct http_head *head, const char *name)
{
    return http_header_among(head->headers, head->header_count, name);
}

bool http_list_has(struct str list, struct str token)
{
    struct str item;
    while (list.len) {
        str_cut(list, ',', &item, &list);
        if (str_ieq(str_trim(item), token))
            return true;
    }
    return false;
}
