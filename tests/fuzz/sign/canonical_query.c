/* Canonical requests: the same whatever the order of the parameters, the same again when made from
 * themselves, and well-formed. */
#include "sign/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int canonical_of(struct buf *out, struct str path, struct str query)
{
    struct sign_request r = {STR("GET"), path, query, NULL, 0, STR("H")};

    buf_reset(out);
    return sign_canonical(out, &r, STR_EMPTY);
}

static struct str line(struct str text, int number)
{
    struct str head = STR_EMPTY;

    for (int i = 0; i <= number; i++)
        str_cut(text, '\n', &head, &text);
    return head;
}

static void reverse(struct buf *out, struct str query)
{
    size_t end = query.len;

    for (size_t i = query.len + 1; i-- > 0;) {
        if (i && query.p[i - 1] != '&')
            continue;
        if (out->len)
            buf_append_char(out, '&');
        buf_append_str(out, str_skip(str_head(query, end), i));
        end = i ? i - 1 : 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf first = BUF_INIT(0), again = BUF_INIT(0), turned = BUF_INIT(0);
    struct str path, query;

    if (size > HTTP_MAX_LINE)
        return 0;
    str_cut(str_n(data, size), '?', &path, &query);
    if (canonical_of(&first, path, query) == 0) {
        struct str text = buf_str(&first);
        BUG_ON(!str_eq(line(text, 0), STR("GET")) || !str_ends(text, STR("\n\n\nH")));
        BUG_ON(canonical_of(&again, line(text, 1), line(text, 2)) < 0);
        BUG_ON(!str_eq(buf_str(&again), text));
        reverse(&turned, query);
        BUG_ON(canonical_of(&again, path, buf_str(&turned)) < 0);
        BUG_ON(!str_eq(buf_str(&again), text));
    }
    buf_release(&first);
    buf_release(&again);
    buf_release(&turned);
    return 0;
}
