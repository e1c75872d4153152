/* URLs: decode(encode(x)) is x, queries end, the parts of a URL put together are the URL. */
#include "http/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_coding(struct str in)
{
    struct buf encoded = {0}, back = {0};

    for (int keep_slash = 0; keep_slash < 2; keep_slash++) {
        buf_reset(&encoded);
        buf_reset(&back);
        url_encode(&encoded, in, keep_slash);
        BUG_ON(encoded.len > 3 * in.len);
        BUG_ON(url_decode(&back, buf_str(&encoded), true) < 0 || !str_eq(buf_str(&back), in));
    }
    buf_reset(&back);
    if (url_decode(&back, in, true) == 0)
        BUG_ON(back.len > in.len || (in.len && back.len == 0));
    buf_release(&encoded);
    buf_release(&back);
}

static void check_query(struct str in)
{
    struct str rest = in, name, value;
    size_t count = 0;

    while (url_query_next(&rest, &name, &value)) {
        BUG_ON(str_chr(name, '=') >= 0 || str_chr(name, '&') >= 0 || str_chr(value, '&') >= 0);
        BUG_ON(++count > in.len);
    }
}

static size_t with_mark(struct str s, size_t mark)
{
    return s.p ? s.len + mark : 0;
}

static void check_parts(struct str in)
{
    struct url u;

    if (url_parse(&u, in, NULL) < 0)
        return;
    BUG_ON(u.scheme.len == 0 || u.scheme.p != in.p);
    BUG_ON(u.path.len && u.path.p[0] != '/');
    BUG_ON(str_chr(u.host, '/') >= 0 || str_chr(u.host, '@') >= 0 || str_chr(u.path, '?') >= 0);
    BUG_ON(u.scheme.len + 3 + with_mark(u.user, 1) + u.password.len + u.host.len + u.path.len +
               u.query.len >
           in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_n(data, size);

    check_coding(in);
    check_query(in);
    check_parts(in);
    return 0;
}
