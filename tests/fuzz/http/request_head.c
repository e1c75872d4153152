/* Request heads: what is parsed lies inside the input, the smuggling rules hold, and bytes that
 * drip in give what bytes at once give. */
#include "http/wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(struct str s, struct str in)
{
    BUG_ON(s.len && (s.p < in.p || s.p + s.len > in.p + in.len));
}

static void check_fields(const struct http_head *h, struct str in)
{
    for (size_t i = 0; i < h->header_count; i++) {
        struct str name = h->headers[i].name, value = h->headers[i].value;
        inside(name, in);
        inside(value, in);
        BUG_ON(name.len == 0 || str_chr(name, ' ') >= 0 || str_chr(name, ':') >= 0);
        BUG_ON(str_chr(value, '\n') >= 0 || str_chr(value, '\r') >= 0 || str_chr(value, 0) >= 0);
        BUG_ON(!str_eq(value, str_trim(value)));
    }
}

static void check_head(const struct http_head *h, struct str in)
{
    BUG_ON(h->size > in.len || h->size > HTTP_MAX_HEAD);
    BUG_ON(memcmp(in.p + h->size - 4, "\r\n\r\n", 4) != 0);
    BUG_ON(h->chunked && (h->has_length || h->minor == 0));
    BUG_ON(h->minor > 0 && !http_header(h, "host").p);
    BUG_ON(h->has_length != (http_header(h, "content-length").p != NULL));
    BUG_ON(h->chunked != (http_header(h, "transfer-encoding").p != NULL));
    BUG_ON(h->path.len == 0 || (h->path.p[0] != '/' && h->method != HTTP_OPTIONS));
    inside(h->method_text, in);
    inside(h->target, in);
    inside(h->query, in);
    check_fields(h, in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_n(data, size);
    static struct http_head h, dripped;
    size_t seen = 0;
    int at_once = http_parse_request(&h, in, &seen, NULL), rc = ERR_AGAIN;

    if (at_once == 0)
        check_head(&h, in);
    seen = 0;
    for (size_t n = 0; n <= size && rc == ERR_AGAIN; n++)
        rc = http_parse_request(&dripped, str_head(in, n), &seen, NULL);
    BUG_ON((rc == 0) != (at_once == 0));
    BUG_ON(rc == 0 && (dripped.size != h.size || dripped.header_count != h.header_count));
    return 0;
}
