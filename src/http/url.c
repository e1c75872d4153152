/* URLs (RFC 3986): percent-encoding, queries, and the parts of a URL. */
#include "base/hex.h"
#include "http/wire.h"

static const bool unreserved[256] = {
    ['-'] = 1,         ['.'] = 1,         ['_'] = 1,         ['~'] = 1,
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

int url_decode(struct buf *out, struct str in, bool plus_is_space)
{
    size_t run = 0, i = 0;

    while (i < in.len) {
        char c = in.p[i];
        if (c != '%' && !(c == '+' && plus_is_space)) {
            i++;
            continue;
        }
        buf_append(out, in.p + run, i - run);
        if (c == '+') {
            buf_append_char(out, ' ');
            run = ++i;
            continue;
        }
        int high = i + 1 < in.len ? hex_digit(in.p[i + 1]) : -1;
        int low = i + 2 < in.len ? hex_digit(in.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return ERR_PARSE;
        buf_append_char(out, (char)(high << 4 | low));
        run = i += 3;
    }
    if (in.len > run)
        buf_append(out, in.p + run, in.len - run);
    return buf_error(out);
}

void url_encode(struct buf *out, struct str in, bool keep_slash)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t run = 0;

    for (size_t i = 0; i < in.len; i++) {
        unsigned char c = (unsigned char)in.p[i];
        if (unreserved[c] || (c == '/' && keep_slash))
            continue;
        char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
        buf_append(out, in.p + run, i - run);
        buf_append(out, escape, sizeof(escape));
        run = i + 1;
    }
    if (in.len > run)
        buf_append(out, in.p + run, in.len - run);
}

bool url_query_next(struct str *rest, struct str *name, struct str *value)
{
    struct str pair;

    do {
        if (rest->len == 0)
            return false;
        str_cut(*rest, '&', &pair, rest);
    } while (pair.len == 0);
    str_cut(pair, '=', name, value);
    return true;
}

int url_query_take(struct str *rest, struct arena *a, const char *name, struct str *out)
{
    struct str found, value;
    struct buf text = BUF_INIT(0);

    if (!url_query_next(rest, &found, &value) || !str_eq(found, str_z(name)))
        return ERR_CORRUPT;
    int code = url_decode(&text, value, false);
    *out = arena_str(a, buf_str(&text));
    buf_release(&text);
    return code < 0 ? ERR_CORRUPT : arena_error(a);
}

/* Whether `s` is a scheme by RFC 3986: ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) */
static bool is_scheme(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i] | 0x20;
        bool letter = c >= 'a' && c <= 'z';
        bool other = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] && strchr("+-.", s.p[i]));
        if (!letter && (i == 0 || !other))
            return false;
    }
    return s.len > 0;
}

static bool url_is_host(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!unreserved[(unsigned char)s.p[i]] && !strchr("!$%&'()*+,;=", s.p[i]))
            return false;
    return true;
}

static bool is_ip_literal(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (hex_digit(s.p[i]) < 0 && s.p[i] != ':' && s.p[i] != '.')
            return false;
    return s.len > 0;
}

static int url_parse_host(struct url *out, struct str in, struct err *err)
{
    struct str port = STR_EMPTY;
    bool has_port;

    if (in.len && in.p[0] == '[') {
        struct str behind;
        bool closed = str_cut(str_skip(in, 1), ']', &out->host, &behind);
        if (!closed || !is_ip_literal(out->host) || (behind.len && behind.p[0] != ':'))
            return err_set(err, ERR_PARSE, "malformed address in brackets in a URL");
        has_port = behind.len > 0;
        port = str_skip(behind, 1);
    } else {
        has_port = str_cut(in, ':', &out->host, &port);
        if (!url_is_host(out->host))
            return err_set(err, ERR_PARSE, "malformed host in a URL");
    }
    if (!has_port)
        return 0;
    uint64_t number;
    if (out->host.len == 0 || str_u64(port, &number) < 0 || number == 0 || number > UINT16_MAX)
        return err_set(err, ERR_PARSE, "malformed port in a URL");
    out->port = (uint16_t)number;
    return 0;
}

int url_parse(struct url *out, struct str in, struct err *err)
{
    struct url url = {0};
    struct str rest, authority;

    for (size_t i = 0; i < in.len; i++)
        if ((unsigned char)in.p[i] <= 0x20 || (unsigned char)in.p[i] >= 0x7f || in.p[i] == '#')
            return err_set(err, ERR_PARSE, "a character that may not be in a URL");
    ptrdiff_t mark = str_find(in, STR("://"));
    url.scheme = str_head(in, mark < 0 ? 0 : (size_t)mark);
    if (!is_scheme(url.scheme))
        return err_set(err, ERR_PARSE, "a URL begins with scheme://");
    rest = str_skip(in, url.scheme.len + 3);

    size_t n = 0;
    while (n < rest.len && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    authority = str_head(rest, n);
    str_cut(str_skip(rest, n), '?', &url.path, &url.query);

    for (n = authority.len; n && authority.p[n - 1] != '@'; n--)
        ;
    if (n) {
        str_cut(str_head(authority, n - 1), ':', &url.user, &url.password);
        authority = str_skip(authority, n);
    }
    int rc = url_parse_host(&url, authority, err);
    if (rc == 0)
        *out = url;
    return rc;
}

uint16_t url_port(const struct url *u)
{
    if (u->port)
        return u->port;
    return str_ieq(u->scheme, STR("https")) ? 443 : 80;
}

bool url_same_origin(struct str a, struct str b)
{
    struct url x, y;

    if (url_parse(&x, a, NULL) < 0 || url_parse(&y, b, NULL) < 0)
        return false;
    return str_ieq(x.scheme, y.scheme) && str_ieq(x.host, y.host) && url_port(&x) == url_port(&y);
}
