/* Opens sealed objects with the keys of the key file, and seals them again at the destination. */
#include "copy/copy_int.h"

#include "base/ids.h"
#include "meta/encryption.h"
#include "meta/keyring.h"

int copy_unseal(struct envelope *e, struct keyring *keys, struct bucket *b,
                const struct object_info *info, struct sealed_key *out, struct err *err)
{
    struct envelope_place at = {b->name, info->key};
    struct ring_key with = {0};
    int code = envelope_read(e, info->meta.encryption, err);

    if (code == 0 && e->kind == SSE_C)
        code = err_set(err, ERR_UNSUPPORTED,
                       "it is encrypted with a customer's key, which is not kept");
    if (code == 0 && !keys)
        code = err_set(err, ERR_UNSUPPORTED, "it is encrypted, and there is no key file here");
    if (code == 0)
        code = keyring_find(keys, e->name, e->id, true, &with, err);
    if (code == 0 && envelope_open(e, &at, &with.key, out) < 0)
        code = err_set(err, ERR_CORRUPT, "its key does not open with " STR_FMT " " STR_FMT,
                       STR_ARG(e->name), STR_ARG(e->id));
    secure_zero(&with, sizeof(with));
    return code;
}

static int seal_open_source(struct copying *w, struct envelope *e, struct err *err)
{
    struct object_info source = w->source;

    source.key = w->c->key;
    return copy_unseal(e, w->o.keys, w->c->from, &source, &w->source_key, err);
}

static int seal_with(void *ctx, const struct object_meta *meta, struct put_seal *out,
                     struct err *err)
{
    const struct copying *w = ctx;

    (void)meta;
    (void)err;
    *out = (struct put_seal){w->key, w->hide_md5};
    return 0;
}

/* Prepares to seal the copy in this process, under a new data key. That key is wrapped with the
 * same named key as the source's. */
static int seal_here(struct copying *w, const struct envelope *e, struct err *err)
{
    struct envelope_place at = {w->c->to->name, w->c->key};
    struct envelope own = *e;
    struct buf bytes = BUF_INIT(ENVELOPE_MAX);
    struct ring_key with = {0};
    int code = keyring_current(w->o.keys, e->name, false, &with, err);

    if (code < 0)
        return code;
    random_bytes(w->key.bytes, sizeof(w->key.bytes));
    own.id = str_z(with.id);
    envelope_seal(&bytes, &own, &at, &with.key, &w->key);
    secure_zero(&with, sizeof(with));
    w->put.meta.encryption = arena_str(w->a, buf_str(&bytes));
    w->put.seal = seal_with;
    w->put.seal_ctx = w;
    w->hide_md5 = e->kind != SSE_S3;
    /* The copy keeps the source's ETag, so that both can be compared. */
    if (w->hide_md5 && !w->source.part_count)
        w->put.etag = w->source.etag;
    buf_release(&bytes);
    return w->put.meta.encryption.len ? 0 : err_code(err, ERR_NO_MEMORY);
}

/* Asks a storage that cannot keep sealed bytes to encrypt the copy by itself. */
static int seal_there(struct copying *w, const struct envelope *e, struct err *err)
{
    struct object_meta *meta = &w->source.meta;
    struct http_header *headers = arena_array(w->a, meta->header_count + 1, sizeof(*headers));

    if (!headers)
        return err_code(err, ERR_NO_MEMORY);
    if (meta->header_count)
        memcpy(headers, meta->headers, meta->header_count * sizeof(*headers));
    headers[meta->header_count] =
        (struct http_header){STR("x-amz-server-side-encryption"), str_z(sse_algorithm(e->kind))};
    meta->headers = headers;
    meta->header_count++;
    return 0;
}

int copy_seal_prepare(struct copying *w, struct err *err)
{
    struct envelope e = {0};

    if (!w->source.meta.encryption.len)
        return 0;
    int code = seal_open_source(w, &e, err);
    w->sealed = code == 0;
    if (code < 0)
        return code;
    return bucket_can(w->c->to, STORAGE_KEEPS_META) ? seal_here(w, &e, err)
                                                    : seal_there(w, &e, err);
}

void copy_seal_release(struct copying *w)
{
    secure_zero(&w->source_key, sizeof(w->source_key));
    secure_zero(&w->key, sizeof(w->key));
}
