/* aws-chunked bodies: however the input is split, the same bytes and the same verdict; a signed
 * body is never taken. The first byte says how to split, the second which form and how long. */
#include "meta/error.h"
#include "s3/gateway/framing.h"
#include "unit/slow_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int decode(struct buf *out, struct str in, size_t step, const struct identity *auth,
                  uint64_t length)
{
    struct slow_reader slow = {{&slow_ops}, in, step};
    struct framing f;
    int code;

    framing_init(&f, &slow.reader, auth, length, STR("x-amz-checksum-crc32, b"));
    code = reader_read_all(&f.reader, out, NULL);
    if (code == 0 && auth->payload == AUTH_PAYLOAD_UNSIGNED_TRAILER)
        BUG_ON(out->len != length || !framing_trailer(&f, STR("b")).p);
    framing_release(&f);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct identity auth = {.scope = {STR("20130524"), STR("r"), STR("s3")}};
    struct buf whole = BUF_INIT(0), split = BUF_INIT(0);

    if (size < 2)
        return 0;
    struct str in = str_n(data + 2, size - 2);
    auth.payload = AUTH_PAYLOAD_CHUNKS + data[1] % 3;
    int code = decode(&whole, in, size, &auth, data[1] / 3);
    BUG_ON(code != decode(&split, in, data[0] % 64 + 1u, &auth, data[1] / 3));
    BUG_ON(code == 0 && !str_eq(buf_str(&whole), buf_str(&split)));
    BUG_ON(code == 0 && auth.payload != AUTH_PAYLOAD_UNSIGNED_TRAILER);
    buf_release(&whole);
    buf_release(&split);
    return 0;
}
