/* Response heads: parts lie inside the input, framing is unambiguous, dripping makes no difference.
 */
#include "http/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(const struct http_head *h, struct str in)
{
    BUG_ON(h->size > in.len || h->size > HTTP_MAX_HEAD);
    BUG_ON(h->status < 100 || h->status > 599);
    BUG_ON(h->chunked && (h->has_length || h->minor == 0));
    BUG_ON(h->reason.p < in.p || h->reason.p + h->reason.len > in.p + h->size);
    for (size_t i = 0; i < h->header_count; i++) {
        struct http_header f = h->headers[i];
        BUG_ON(f.name.len == 0 || f.name.p < in.p || f.name.p + f.name.len > in.p + h->size);
        BUG_ON(f.value.p < in.p || f.value.p + f.value.len > in.p + h->size);
        BUG_ON(str_chr(f.value, '\n') >= 0 || str_chr(f.value, 0) >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = str_n(data, size);
    static struct http_head h, dripped;
    size_t seen = 0;
    int at_once = http_parse_response(&h, in, &seen, NULL), rc = ERR_AGAIN;

    if (at_once == 0)
        check_head(&h, in);
    seen = 0;
    for (size_t n = 0; n <= size && rc == ERR_AGAIN; n++)
        rc = http_parse_response(&dripped, str_head(in, n), &seen, NULL);
    BUG_ON((rc == 0) != (at_once == 0));
    BUG_ON(rc == 0 && (dripped.size != h.size || dripped.status != h.status));
    return 0;
}
