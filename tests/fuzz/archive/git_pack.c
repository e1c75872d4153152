/* Packs: pieces of any size give the same verdict. The trailer of an input is made right, so that
 * the walk is what judges. The first byte says the size of the pieces and the kind of ids. */
#include "archive/pack.h"
#include "base/buf.h"
#include "object/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int pack_verdict(struct str pack, size_t step, bool is_sha256, struct pack_result *out)
{
    struct pack_options o = {
        .is_sha256 = is_sha256, .walk = true, .limits = {1 << 20, 1 << 22, 1 << 20, 200}};
    struct pack_check *p = pack_check_new(&o);
    struct err err = {0};
    int code = 0;

    for (; pack.len && code == 0; pack = str_skip(pack, step))
        code = pack_check_add(p, str_head(pack, step), &err);
    if (code == 0)
        code = pack_check_end(p, out, &err);
    BUG_ON(code < 0 && err.text[0] == '\0');
    pack_check_free(p);
    return code;
}

static bool pack_results_are_equal(const struct pack_result *a, const struct pack_result *b)
{
    return a->objects == b->objects && a->bytes == b->bytes && a->trailer_len == b->trailer_len &&
           memcmp(a->trailer, b->trailer, sizeof(a->trailer)) == 0 &&
           memcmp(a->by_type, b->by_type, sizeof(a->by_type)) == 0 && a->inflated == b->inflated;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pack_result one = {0}, other = {0};
    struct digest_value sum;
    struct buf pack = {0};

    if (size == 0)
        return 0;
    bool is_sha256 = data[0] & 1;
    buf_append(&pack, data + 1, size - 1);
    digest_of(is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, buf_str(&pack), &sum);
    buf_append(&pack, sum.bytes, sum.len);
    int code = pack_verdict(buf_str(&pack), 1 + data[0] / 2, is_sha256, &one);
    int again = pack_verdict(buf_str(&pack), 1 << 20, is_sha256, &other);
    BUG_ON((code == 0) != (again == 0) || !pack_results_are_equal(&one, &other));
    buf_release(&pack);
    return 0;
}
