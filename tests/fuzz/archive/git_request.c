/* Requests of git clients: whatever they say, the answer is packets, and the pack follows only when
 * every wanted id is in the header. The first byte says the version of the protocol. */
#include "archive/pkt.h"
#include "archive/serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID1 "1111111111111111111111111111111111111111"

static void check_packets(struct str answer)
{
    struct str_reader r;
    struct pkt_in in;
    struct pkt p;
    struct err err = {0};
    int code;

    str_reader_init(&r, answer);
    pkt_in_init(&in, &r.reader);
    while ((code = pkt_read(&in, &p, &err)) == 0)
        continue;
    BUG_ON(code != ERR_END);
    pkt_in_release(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct bundle_header h;
    struct serve_ask ask;
    struct str_reader r;
    struct buf out = {0};
    struct err err = {0};

    if (size == 0)
        return 0;
    bundle_header_init(&h, false);
    str_reader_init(&r, STR("# v2 git bundle\n" ID1 " HEAD\n" ID1 " refs/heads/main\n\n"));
    BUG_ON(bundle_header_read(&h, &r.reader, &err) < 0);
    str_reader_init(&r, str_n(data + 1, size - 1));
    if (serve_ask_read(&ask, &a, &r.reader, data[0] & 1, &h, &err) == 0) {
        bool pack = serve_answer(&out, &ask, &h);
        BUG_ON(pack && (ask.refusal || ask.wants == 0));
        check_packets(buf_str(&out));
    } else {
        BUG_ON(err.text[0] == '\0');
    }
    buf_release(&out);
    bundle_header_release(&h);
    arena_release(&a);
    return 0;
}
