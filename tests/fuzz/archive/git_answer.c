/* Answers of git servers. The first byte says which message is read, and by how many bytes at a
 * time; reading by single bytes must give the same. */
#include "archive/advert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct slow {
    struct reader reader;
    struct str rest;
    size_t step;
};

static int slow_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct slow *s = (struct slow *)r;

    *got = size_min(size_min(len, s->step), s->rest.len);
    if (*got)
        memcpy(to, s->rest.p, *got);
    s->rest = str_skip(s->rest, *got);
    return 0;
}

/* Returns the code, and what was read as text in `out`. */
static int answer_read(struct buf *out, struct str text, size_t step, unsigned kind)
{
    static const struct reader_ops ops = {.read = slow_read};
    static const unsigned char id[GIT_ID_MAX];
    struct slow s = {{&ops}, text, step};
    struct git_fetch f = {id, 1, id, 1, kind >> 2 & 1};
    struct git_advert v = {.is_v2 = kind >> 1 & 1};
    struct band_reader band;
    struct git_refs refs;
    struct pkt_in in;
    struct err err = {0};
    int code;

    pkt_in_init(&in, &s.reader);
    git_refs_init(&refs, kind >> 3 & 1);
    if (kind & 1) {
        code = git_fetch_begin(&in, &v, &f, &err);
        band_reader_init(&band, &in, 0);
        if (code == 0)
            code = reader_read_all(&band.reader, out, &err);
    } else {
        code = v.is_v2 ? git_ls_refs_read(&refs, &in, &err) : git_advert_read(&v, &in, &refs, &err);
    }
    BUG_ON(code < 0 && err.text[0] == '\0');
    if (code == 0 && !(kind & 1)) {
        char digest[GIT_DIGEST_LEN + 1];
        git_refs_digest(digest, &refs);
        buf_append_z(out, digest);
    }
    git_refs_release(&refs);
    pkt_in_release(&in);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf one = {0}, other = {0};

    if (size == 0)
        return 0;
    struct str text = str_n(data + 1, size - 1);
    int code = answer_read(&one, text, 1 + data[0] / 16, data[0] % 16);
    BUG_ON(code != answer_read(&other, text, 1 << 20, data[0] % 16));
    BUG_ON(!str_eq(buf_str(&one), buf_str(&other)));
    buf_release(&one);
    buf_release(&other);
    return 0;
}
