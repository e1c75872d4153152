/* The bytes of a new bundle as one stream. */
#include "archive/bundle_int.h"

#include "base/bytes.h"

#include <stdlib.h>

enum { PACK_BUFFER = 128 * 1024 };

/* --- one pack --- */

static int pack_fault(const struct bundle_pack *p, int code, struct err *err)
{
    return p->is_old && code < 0 ? err_wrap(err, ERR_CORRUPT, "the stored bundle is damaged")
                                 : code;
}

int bundle_read_pack_head(unsigned char head[PACK_HEADER_LEN], struct reader *from, struct err *err)
{
    size_t have = 0, got = 1;
    int code = 0;

    for (; code == 0 && got && have < PACK_HEADER_LEN; have += got)
        code = reader_read(from, head + have, PACK_HEADER_LEN - have, &got, err);
    return code == 0 && got == 0 ? ERR_END : code;
}

int bundle_pack_open(struct bundle_pack *p, struct reader *from, const struct pack_options *o,
                     bool is_old, struct err *err)
{
    unsigned char head[PACK_HEADER_LEN];

    *p = (struct bundle_pack){.from = from, .is_old = is_old, .hash_len = git_id_len(o->is_sha256)};
    int code = bundle_read_pack_head(head, from, err);
    if (code == ERR_END)
        code = err_set(err, is_old ? ERR_CORRUPT : ERR_PARSE, "the pack ends in its header");
    if (code < 0)
        return code;
    p->check = pack_check_new(o);
    p->bytes = xrealloc(NULL, PACK_BUFFER);
    p->objects = be32_read(head + 8);
    return pack_fault(p, pack_check_add(p->check, str_n(head, sizeof(head)), err), err);
}

void bundle_pack_release(struct bundle_pack *p)
{
    pack_check_free(p->check);
    free(p->bytes);
    *p = (struct bundle_pack){0};
}

static int pack_end(struct bundle_pack *p, struct err *err)
{
    int code = pack_fault(p, pack_check_end(p->check, &p->result, err), err);

    /* Frees its filter before the check of the next pack allocates one. */
    pack_check_free(p->check);
    p->check = NULL;
    p->ended = true;
    return code;
}

/* Reads more bytes behind those in the buffer. The last bytes in the buffer may be the trailer. */
static int pack_fill(struct bundle_pack *p, struct err *err)
{
    size_t got = 0;

    memmove(p->bytes, p->bytes + p->at, p->end - p->at);
    p->end -= p->at;
    p->at = 0;
    int code = reader_read(p->from, p->bytes + p->end, PACK_BUFFER - p->end, &got, err);
    if (code < 0)
        return code;
    if (got == 0)
        return pack_end(p, err);
    code = pack_fault(p, pack_check_add(p->check, str_n(p->bytes + p->end, got), err), err);
    p->end += got;
    return code;
}

/* Reads bytes of the entries. *got = 0: the entries have ended, and the trailer is right. */
static int bundle_pack_read(struct bundle_pack *p, void *to, size_t len, size_t *got,
                            struct err *err)
{
    int code = 0;

    while (code == 0 && !p->ended && p->end - p->at <= p->hash_len)
        code = pack_fill(p, err);
    *got = code < 0 || p->ended ? 0 : size_min(len, p->end - p->at - p->hash_len);
    memcpy(to, p->bytes + p->at, *got);
    p->at += *got;
    return code;
}

/* --- the stream --- */

static int body_trailer(struct bundle_body *b, struct err *err)
{
    const struct bundle_pack *only = b->new ? b->new : b->old;
    struct digest_value value;

    if (b->old && b->new && b->old->objects && b->new->objects &&
        (b->old->result.by_type[PACK_REF_DELTA] || b->new->result.by_type[PACK_REF_DELTA]))
        return err_set(err, ERR_UNSUPPORTED, "a pack with deltas by id cannot be joined");
    b->trailer_len = git_id_len(b->is_sha256);
    if (b->sum) {
        digests_final(b->sum, b->is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1, &value);
        memcpy(b->trailer, value.bytes, b->trailer_len);
    } else if (only) {
        memcpy(b->trailer, only->result.trailer, b->trailer_len);
    }
    return 0;
}

static int body_read_pack(struct bundle_body *b, struct bundle_pack *p, void *to, size_t len,
                          size_t *got, struct err *err)
{
    if (!p || p->ended)
        return 0;
    int code = bundle_pack_read(p, to, len, got, err);
    if (b->sum)
        digests_update(b->sum, str_n(to, *got));
    return code;
}

static int body_read(struct reader *r, void *to, size_t len, size_t *got, struct err *err)
{
    struct bundle_body *b = container_of(r, struct bundle_body, reader);
    int code = 0;

    *got = 0;
    if (!b->head_ended)
        code = reader_read(&b->head->reader, to, len, got, err);
    b->head_ended |= code == 0 && *got == 0;
    if (code == 0 && *got == 0)
        code = body_read_pack(b, b->old, to, len, got, err);
    if (code == 0 && *got == 0)
        code = body_read_pack(b, b->new, to, len, got, err);
    if (code == 0 && *got == 0 && b->trailer_len == 0)
        code = body_trailer(b, err);
    if (code == 0 && *got == 0) {
        *got = size_min(len, b->trailer_len - b->trailer_at);
        memcpy(to, b->trailer + b->trailer_at, *got);
        b->trailer_at += *got;
    }
    b->given += *got;
    return code;
}

static const struct reader_ops body_ops = {.read = body_read};

void bundle_body_init(struct bundle_body *b, struct header_text *head, bool is_sha256,
                      struct bundle_pack *old, struct bundle_pack *new)
{
    *b = (struct bundle_body){
        .reader = {&body_ops}, .head = head, .old = old, .new = new, .is_sha256 = is_sha256};
    header_text_rewind(head);
    if (!old != !new)
        return;
    b->sum = digests_new(1u << (is_sha256 ? DIGEST_SHA256 : DIGEST_SHA1));
    digests_update(b->sum, head->tail);
}

void bundle_body_release(struct bundle_body *b)
{
    digests_free(b->sum);
    *b = (struct bundle_body){0};
}

int bundle_body_pass(struct bundle_body *b, uint64_t len, unsigned char md5[MD5_LEN],
                     struct err *err)
{
    char *room = xrealloc(NULL, PACK_BUFFER);
    struct md5 sum;
    int code = 0;

    md5_init(&sum);
    while (code == 0 && len) {
        size_t got = 0;
        code =
            body_read(&b->reader, room, len < PACK_BUFFER ? (size_t)len : PACK_BUFFER, &got, err);
        if (code == 0 && got == 0)
            code = err_set(err, ERR_CORRUPT, "the stored bundle is shorter than it was");
        md5_update(&sum, str_n(room, got));
        len -= got;
    }
    md5_final(&sum, md5);
    free(room);
    return code;
}
