/* Reads the header Link, and compares origins. */
#include "archive/link.h"

#include "http/wire.h"

/* --- Link --- */

/* Reads `<url>` at the beginning of *rest and removes it from *rest. Returns false when *rest does
 * not begin with such a URL. */
static bool link_take_url(struct str *rest, struct str *url)
{
    *rest = str_trim(*rest);
    if (!rest->len || rest->p[0] != '<' || !str_cut(str_skip(*rest, 1), '>', url, rest))
        return false;
    return true;
}

/* Reads the value of a parameter at the beginning of *rest and removes it from *rest. The value is
 * a quoted string, or a token. Returns false when *rest begins with neither. */
static bool link_take_value(struct str *rest, struct str *value)
{
    size_t n = 0;

    *rest = str_trim(*rest);
    if (rest->len && rest->p[0] == '"')
        return str_cut(str_skip(*rest, 1), '"', value, rest);
    while (n < rest->len && !strchr(";, \t", rest->p[n]))
        n++;
    *value = str_head(*rest, n);
    *rest = str_skip(*rest, n);
    return n > 0;
}

/* Reads `; name[=value]` at the beginning of *rest and removes it from *rest. Returns 1, 0 if there
 * is no parameter, or ERR_PARSE. */
static int link_take_parameter(struct str *rest, struct str *name, struct str *value)
{
    size_t n = 0;

    *rest = str_trim(*rest);
    if (!rest->len || rest->p[0] != ';')
        return 0;
    *rest = str_trim(str_skip(*rest, 1));
    while (n < rest->len && !strchr("=;, \t", rest->p[n]))
        n++;
    *name = str_head(*rest, n);
    *value = STR_EMPTY;
    *rest = str_trim(str_skip(*rest, n));
    if (!rest->len || rest->p[0] != '=')
        return n > 0 || !rest->len ? 1 : ERR_PARSE;
    *rest = str_skip(*rest, 1);
    return n > 0 && link_take_value(rest, value) ? 1 : ERR_PARSE;
}

/* Whether a relation is one of those in rel="a b". */
static bool link_has_relation(struct str list, struct str relation)
{
    struct str word;

    while (str_token(&list, " \t", &word))
        if (str_ieq(word, relation))
            return true;
    return false;
}

int link_next(struct str value, struct str *out)
{
    struct str rest = value, url, name, text;

    *out = STR_EMPTY;
    while (str_trim(rest).len) {
        bool is_next = false;
        int more;
        if (!link_take_url(&rest, &url))
            return ERR_PARSE;
        while ((more = link_take_parameter(&rest, &name, &text)) > 0)
            is_next |= str_ieq(name, STR("rel")) && link_has_relation(text, STR("next"));
        if (more < 0)
            return more;
        if (is_next && !out->len)
            *out = url;
        rest = str_trim(rest);
        if (rest.len && rest.p[0] != ',')
            return ERR_PARSE;
        rest = str_skip(rest, 1);
    }
    return 0;
}

/* --- origins --- */

static uint16_t link_port(const struct url *u)
{
    if (u->port)
        return u->port;
    return str_ieq(u->scheme, STR("https")) ? 443 : 80;
}

static bool link_read_url(struct url *out, struct str text)
{
    return url_parse(out, text, NULL) == 0 && out->host.len && !out->user.len &&
           !out->password.len &&
           (str_ieq(out->scheme, STR("https")) || str_ieq(out->scheme, STR("http")));
}

bool link_same_origin(struct str a, struct str b)
{
    struct url one, two;

    return link_read_url(&one, a) && link_read_url(&two, b) && str_ieq(one.scheme, two.scheme) &&
           str_ieq(one.host, two.host) && link_port(&one) == link_port(&two);
}

/* --- URLs made of others --- */

int link_page_after(struct buf *out, struct str url)
{
    struct str head, query, name, value;
    uint64_t page = 1;
    bool first = true;

    str_cut(url, '?', &head, &query);
    buf_append_str(out, head);
    while (url_query_next(&query, &name, &value)) {
        if (str_eq(name, STR("page"))) {
            if (str_u64(value, &page) < 0 || page > UINT32_MAX)
                return ERR_PARSE;
            continue;
        }
        buf_appendf(out, "%c" STR_FMT "=" STR_FMT, first ? '?' : '&', STR_ARG(name),
                    STR_ARG(value));
        first = false;
    }
    buf_appendf(out, "%cpage=%llu", first ? '?' : '&', (unsigned long long)page + 1);
    return buf_error(out);
}

int link_redirect(struct buf *out, struct str base, struct str location)
{
    struct url url;

    if (link_read_url(&url, location)) {
        buf_append_str(out, location);
        return buf_error(out);
    }
    if (!location.len || location.p[0] != '/' || str_starts(location, STR("//")) ||
        !link_read_url(&url, base))
        return ERR_PARSE;
    ptrdiff_t mark = str_find(base, STR("://"));
    struct str rest = str_skip(base, (size_t)mark + 3);
    size_t host = 0;
    while (host < rest.len && rest.p[host] != '/' && rest.p[host] != '?')
        host++;
    size_t before = out->len;
    buf_append_str(out, str_head(base, (size_t)mark + 3 + host));
    buf_append_str(out, location);
    if (buf_error(out) < 0)
        return buf_error(out);
    return link_read_url(&url, str_skip(buf_str(out), before)) ? 0 : ERR_PARSE;
}
