/* Chunked bodies: however the input is split, the same body, trailers, length and verdict. The
 * first byte says how. */
#include "http/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
    struct buf body, trailers;
    size_t used;
    int rc; /* ERR_AGAIN: wants more */
};

static void decode(struct result *r, struct str in, size_t step)
{
    struct http_chunked c = {0};

    *r = (struct result){.rc = ERR_AGAIN, .trailers.max = HTTP_MAX_HEAD};
    while (r->used < in.len && !c.done) {
        struct str rest = str_head(str_skip(in, r->used), step), piece;
        size_t n;
        int rc = http_chunked_next(&c, rest, &piece, &n, &r->trailers, NULL);
        if (rc < 0) {
            r->rc = rc;
            return;
        }
        BUG_ON(n == 0 || n > rest.len);
        BUG_ON(piece.len && (piece.p < rest.p || piece.p + piece.len != rest.p + n));
        buf_append_str(&r->body, piece);
        r->used += n;
    }
    if (c.done)
        r->rc = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct result whole, split;

    if (size == 0)
        return 0;
    struct str in = str_n(data + 1, size - 1);
    decode(&whole, in, in.len);
    decode(&split, in, data[0] % 32 + 1u);
    BUG_ON(whole.rc != split.rc);
    BUG_ON(whole.rc == 0 && whole.used != split.used);
    BUG_ON(whole.rc == 0 && !str_eq(buf_str(&whole.trailers), buf_str(&split.trailers)));
    BUG_ON((whole.rc == 0 || whole.rc == ERR_AGAIN) &&
           !str_eq(buf_str(&whole.body), buf_str(&split.body)));
    buf_release(&whole.body);
    buf_release(&whole.trailers);
    buf_release(&split.body);
    buf_release(&split.trailers);
    return 0;
}
