/* The bodies of requests and answers of the git server. */
#include "archive/serve.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAME_HEAD = 5, GUNZIP_IN = 16 * 1024 };

/* --- the pack in packets --- */

static int frame_fill(struct serve_pack *p, struct err *err)
{
    size_t len = (size_t)(p->left < SERVE_FRAME ? p->left : SERVE_FRAME);
    size_t head = p->is_plain ? 0 : FRAME_HEAD;

    p->at = 0;
    if (len == 0) {
        p->ended = true;
        p->len = p->is_plain ? 0 : 4;
        memcpy(p->frame, "0000", 4);
        return 0;
    }
    if (!p->is_plain) {
        char digits[FRAME_HEAD + 1];
        snprintf(digits, sizeof(digits), "%04zx\1", len + FRAME_HEAD);
        memcpy(p->frame, digits, FRAME_HEAD);
    }
    int code = reader_read_full(p->inner, p->frame + head, len, err);
    if (code < 0)
        return code;
    p->left -= len;
    p->len = head + len;
    return 0;
}

static int serve_pack_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct serve_pack *p = container_of(r, struct serve_pack, reader);

    *got = 0;
    if (p->at == p->len && !p->ended) {
        int code = frame_fill(p, err);
        if (code < 0)
            return code;
    }
    *got = size_min(len, p->len - p->at);
    memcpy(to, p->frame + p->at, *got);
    p->at += *got;
    return 0;
}

void serve_pack_init(struct serve_pack *p, struct reader *inner, uint64_t len, bool is_plain)
{
    static const struct reader_ops ops = {.read = serve_pack_read};

    *p = (struct serve_pack){.reader = {&ops},
                             .inner = inner,
                             .left = len,
                             .is_plain = is_plain,
                             .frame = xrealloc(NULL, FRAME_HEAD + SERVE_FRAME)};
}

void serve_pack_release(struct serve_pack *p)
{
    free(p->frame);
    *p = (struct serve_pack){0};
}

uint64_t serve_pack_size(const struct serve_pack *p)
{
    uint64_t frames = (p->left + SERVE_FRAME - 1) / SERVE_FRAME;

    return p->left + (p->is_plain ? 0 : frames * FRAME_HEAD + 4);
}

/* --- gzip --- */

static int gunzip_fill(struct gunzip_reader *r, struct err *err)
{
    size_t got;
    int code = reader_read(r->inner, r->in, GUNZIP_IN, &got, err);

    if (code == 0 && got == 0)
        return err_set(err, ERR_CLOSED, "the gzip stream ended too early");
    r->state->next_in = r->in;
    r->state->avail_in = (uint32_t)(code == 0 ? got : 0);
    return code;
}

static int gunzip_read(struct reader *reader, void *to, size_t len, size_t *got, struct err *err)
{
    struct gunzip_reader *r = container_of(reader, struct gunzip_reader, reader);
    struct inflate_state *s = r->state;
    int code = 0;

    *got = 0;
    s->next_out = to;
    s->avail_out = (uint32_t)size_min(len, UINT32_MAX);
    uint32_t room = s->avail_out;
    while (code == 0 && room && s->avail_out == room && s->block_state != ISAL_BLOCK_FINISH) {
        if (s->avail_in == 0)
            code = gunzip_fill(r, err);
        if (code == 0 && isal_inflate(s) != ISAL_DECOMP_OK)
            code = err_set(err, ERR_PARSE, "the body is not a gzip stream");
    }
    if (code < 0)
        return code;
    *got = room - s->avail_out;
    if (*got > r->left)
        return err_set(err, ERR_TOO_LARGE, "the body is too large");
    r->left -= *got;
    return 0;
}

void gunzip_reader_init(struct gunzip_reader *r, struct reader *inner, uint64_t max)
{
    static const struct reader_ops ops = {.read = gunzip_read};

    *r = (struct gunzip_reader){.reader = {&ops},
                                .inner = inner,
                                .state = xzalloc(sizeof(struct inflate_state)),
                                .in = xrealloc(NULL, GUNZIP_IN),
                                .left = max};
    isal_inflate_init(r->state);
    r->state->crc_flag = ISAL_GZIP;
}

void gunzip_reader_release(struct gunzip_reader *r)
{
    free(r->state);
    free(r->in);
    *r = (struct gunzip_reader){0};
}
