/* Headers of bundles: a header that reads is written back so that it reads the same, and its
 * history can be told at any time. */
#include "archive/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int header_of(struct bundle_header *h, struct str text)
{
    struct str_reader from;
    struct err err = {0};

    bundle_header_init(h, false);
    str_reader_init(&from, text);
    return bundle_header_read(h, &from.reader, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bundle_header h, again;
    struct buf one = {0}, two = {0};
    struct git_refs past;

    if (header_of(&h, str_n(data, size)) == 0) {
        bundle_header_write(&one, &h);
        BUG_ON(header_of(&again, buf_str(&one)) < 0);
        bundle_header_write(&two, &again);
        BUG_ON(!str_eq(buf_str(&one), buf_str(&two)));
        bundle_header_release(&again);
        git_refs_init(&past, h.refs.is_sha256);
        bundle_header_at(&past, &h, (int64_t)size);
        git_refs_release(&past);
    }
    bundle_header_release(&h);
    buf_release(&one);
    buf_release(&two);
    return 0;
}
