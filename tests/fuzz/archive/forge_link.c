/* Link headers: the next URL lies inside the value, and URLs that are made of it stay on its
 * origin. */
#include "archive/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out = {0};
    struct str value = str_n(data, size), url;

    if (link_next(value, &url) == 0 && url.len) {
        BUG_ON(url.p < value.p || url.p + url.len > value.p + value.len);
        if (link_same_origin(url, url) && link_page_after(&out, url) == 0)
            BUG_ON(!link_same_origin(url, buf_str(&out)));
        buf_reset(&out);
    }
    if (link_redirect(&out, STR("https://a.example/x"), value) == 0 && size && data[0] == '/')
        BUG_ON(!link_same_origin(buf_str(&out), STR("https://a.example/")));
    buf_release(&out);
    return 0;
}
