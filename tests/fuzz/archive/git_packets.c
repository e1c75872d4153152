/* Packets and the side-band. The bytes come in pieces of a size that the first byte chooses. Pieces
 * of one byte give the same packets, and the bytes of the pack are those of band 1. */
#include "archive/pkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct slow {
    struct reader reader;
    struct str rest;
    size_t step;
};

static int slow_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct slow *s = (struct slow *)r;

    (void)err;
    *got = size_min(size_min(len, s->step), s->rest.len);
    if (*got)
        memcpy(to, s->rest.p, *got);
    s->rest = str_skip(s->rest, *got);
    return 0;
}

static const struct reader_ops slow_ops = {.read = slow_read};

/* Writes every packet as its kind and its bytes, and returns the code at the end. */
static int packets_read(struct buf *out, struct str text, size_t step)
{
    struct slow s = {{&slow_ops}, text, step};
    struct pkt_in in;
    struct pkt p;
    struct err err = {0};
    int code;

    pkt_in_init(&in, &s.reader);
    while ((code = pkt_read(&in, &p, &err)) == 0) {
        BUG_ON(p.data.len > 65516 || (p.kind != PKT_DATA && p.data.len));
        buf_append_char(out, (char)('0' + p.kind));
        buf_append_str(out, p.data);
    }
    BUG_ON(code != ERR_END && !err.text[0]);
    pkt_in_release(&in);
    return code;
}

static int band_read(struct buf *out, struct str text, size_t step)
{
    struct slow s = {{&slow_ops}, text, step};
    struct band_reader band;
    struct pkt_in in;
    struct err err = {0};
    char piece[4096];
    size_t got = 1;
    int code = 0;

    pkt_in_init(&in, &s.reader);
    band_reader_init(&band, &in, 60 * 1000);
    while (code == 0 && got) {
        code = reader_read(&band.reader, piece, sizeof(piece), &got, &err);
        if (code == 0)
            buf_append(out, piece, got);
    }
    BUG_ON(code < 0 && !err.text[0]);
    BUG_ON(out->len > text.len);
    pkt_in_release(&in);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    typedef int read_fn(struct buf * out, struct str text, size_t step);
    static read_fn *const reads[] = {packets_read, band_read};

    if (size == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
        struct buf one = {0}, other = {0};
        int first = reads[i](&one, str_n(data + 1, size - 1), 1);
        int second = reads[i](&other, str_n(data + 1, size - 1), (size_t)data[0] + 2);
        BUG_ON(first != second || !str_eq(buf_str(&one), buf_str(&other)));
        buf_release(&one);
        buf_release(&other);
    }
    return 0;
}
