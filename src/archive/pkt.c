/* Packets of git's protocol, and the side-band. */
#include "archive/pkt.h"

#include "base/clock.h"
#include "base/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGITS = 4 };

void pkt_in_init(struct pkt_in *in, struct reader *from)
{
    *in = (struct pkt_in){.from = from, .bytes = xzalloc(PKT_BUFFER)};
}

void pkt_in_release(struct pkt_in *in)
{
    free(in->bytes);
    *in = (struct pkt_in){0};
}

/* Reads until `need` bytes are in the buffer. ERR_END: the stream ended before. */
static int pkt_fill(struct pkt_in *in, size_t need, struct err *err)
{
    size_t got;

    if (in->end - in->at >= need)
        return 0;
    if (in->at + need > PKT_BUFFER) {
        memmove(in->bytes, in->bytes + in->at, in->end - in->at);
        in->end -= in->at;
        in->at = 0;
    }
    while (in->end - in->at < need) {
        int code = reader_read(in->from, in->bytes + in->end, PKT_BUFFER - in->end, &got, err);
        if (code < 0)
            return code;
        if (got == 0)
            return ERR_END;
        in->end += got;
    }
    return 0;
}

static int pkt_length(const char *digits, size_t *out, struct err *err)
{
    *out = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        int digit = hex_digit(digits[i]);
        if (digit < 0)
            return err_set(err, ERR_PARSE,
                           "the answer is not git's protocol: a packet has no length");
        *out = *out * 16 + (size_t)digit;
    }
    if (*out == 3 || *out > PKT_MAX)
        return err_set(err, ERR_PARSE, "the answer has a packet of %zu bytes", *out);
    return 0;
}

int pkt_read(struct pkt_in *in, struct pkt *out, struct err *err)
{
    static const enum pkt_kind marks[] = {PKT_FLUSH, PKT_DELIM, PKT_RESPONSE_END};
    size_t len = 0;
    int code = pkt_fill(in, DIGITS, err);

    if (code == ERR_END && in->end != in->at)
        return err_set(err, ERR_CLOSED, "the answer ended inside a packet");
    if (code == 0)
        code = pkt_length(in->bytes + in->at, &len, err);
    if (code < 0)
        return code;
    if (len < ARRAY_SIZE(marks)) {
        *out = (struct pkt){.kind = marks[len]};
        in->at += DIGITS;
        return 0;
    }
    code = pkt_fill(in, len, err);
    if (code < 0)
        return code == ERR_END ? err_set(err, ERR_CLOSED, "the answer ended inside a packet")
                               : code;
    *out = (struct pkt){PKT_DATA, str_n(in->bytes + in->at + DIGITS, len - DIGITS)};
    in->at += len;
    return 0;
}

void pkt_unread(struct pkt_in *in, const struct pkt *p)
{
    in->at -= DIGITS + p->data.len;
}

void peer_words(struct buf *out, struct str words)
{
    words = str_head(words, BAND_TEXT_MAX);
    while (words.len && (words.p[words.len - 1] == '\n' || words.p[words.len - 1] == '\r'))
        words.len--;
    while (words.len) {
        size_t len = str_utf8_len(words);
        if (len == 0)
            buf_append_char(out, '?');
        else if (str_utf8_is_control(words))
            buf_append_char(out, ' ');
        else
            buf_append_str(out, str_head(words, len));
        words = str_skip(words, size_max(len, 1));
    }
}

static int pkt_refusal(struct str words, struct err *err)
{
    struct buf text = BUF_INIT(2 * BAND_TEXT_MAX);

    peer_words(&text, words);
    int code = err_set(err, ERR_PEER, PEER_SAYS STR_FMT, STR_ARG(buf_str(&text)));
    buf_release(&text);
    return code;
}

int pkt_read_line(struct pkt_in *in, struct str *line, enum pkt_kind *mark, struct err *err)
{
    struct pkt p;
    int code = pkt_read(in, &p, err);

    if (code == ERR_END)
        return err_set(err, ERR_CLOSED, "the answer ended before its last packet");
    if (code < 0)
        return code;
    if (mark)
        *mark = p.kind;
    if (p.kind != PKT_DATA)
        return ERR_END;
    if (p.data.len && p.data.p[p.data.len - 1] == '\n')
        p.data.len--;
    if (str_starts(p.data, STR("ERR ")))
        return pkt_refusal(str_skip(p.data, 4), err);
    *line = p.data;
    return 0;
}

void pkt_line(struct buf *out, const char *fmt, ...)
{
    size_t at = out->len;
    char digits[DIGITS + 1];
    va_list ap;

    buf_append(out, "0000", DIGITS);
    va_start(ap, fmt);
    buf_vappendf(out, fmt, ap);
    va_end(ap);
    buf_append_char(out, '\n');
    if (buf_error(out) < 0)
        return;
    BUG_ON(out->len - at > PKT_MAX);
    snprintf(digits, sizeof(digits), "%04zx", out->len - at);
    memcpy(out->p + at, digits, DIGITS);
}

void pkt_mark(struct buf *out, enum pkt_kind kind)
{
    static const char *const marks[] = {
        [PKT_FLUSH] = "0000", [PKT_DELIM] = "0001", [PKT_RESPONSE_END] = "0002"};

    buf_append_z(out, marks[kind]);
}

/* --- side-band --- */

static int band_progress(struct band_reader *r, struct str words, struct err *err)
{
    r->progress += words.len;
    return r->progress <= BAND_PROGRESS_MAX
               ? 0
               : err_set(err, ERR_TOO_LARGE, "the git server sends words without end");
}

/* Reads one packet. ERR_END: it was the flush. */
static int band_next(struct band_reader *r, struct err *err)
{
    struct pkt p;
    int code = pkt_read(r->in, &p, err);

    if (code == ERR_END)
        return err_set(err, ERR_CLOSED, "the pack ended before its last packet");
    if (code < 0)
        return code;
    if (p.kind == PKT_FLUSH) {
        r->ended = true;
        return ERR_END;
    }
    if (p.kind != PKT_DATA || p.data.len == 0)
        return err_set(err, ERR_PARSE, "the pack has a packet without a band");
    struct str payload = str_skip(p.data, 1);
    switch (p.data.p[0]) {
    case 1:
        r->rest = payload;
        return 0;
    case 2:
        return band_progress(r, payload, err);
    case 3:
        return pkt_refusal(payload, err);
    default:
        if (str_starts(p.data, STR("ERR ")))
            return pkt_refusal(str_skip(p.data, 4), err);
        return err_set(err, ERR_PARSE, "the pack has a packet of band %d",
                       (unsigned char)p.data.p[0]);
    }
}

static int band_check_idle(struct band_reader *r, struct err *err)
{
    if (r->idle_max_ms && clock_mono_ms() - r->idle_since_ms > r->idle_max_ms)
        return err_set(err, ERR_TIMEOUT,
                       "the git server sent no byte of the pack for %" PRIu64 " s",
                       r->idle_max_ms / MS_PER_S);
    return 0;
}

static int band_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct band_reader *r = (struct band_reader *)reader;
    int code = 0;

    *got = 0;
    while (r->rest.len == 0 && !r->ended && code == 0) {
        code = band_next(r, err);
        if (code == 0)
            code = r->rest.len ? 0 : band_check_idle(r, err);
    }
    if (code < 0 && code != ERR_END)
        return code;
    *got = size_min(len, r->rest.len);
    if (*got) {
        memcpy(to, r->rest.p, *got);
        r->rest = str_skip(r->rest, *got);
        r->idle_since_ms = r->idle_max_ms ? clock_mono_ms() : 0;
    }
    return 0;
}

void band_reader_init(struct band_reader *r, struct pkt_in *in, uint64_t idle_max_ms)
{
    static const struct reader_ops ops = {.read = band_read};

    *r = (struct band_reader){
        .reader = {&ops}, .in = in, .idle_max_ms = idle_max_ms, .idle_since_ms = clock_mono_ms()};
}
