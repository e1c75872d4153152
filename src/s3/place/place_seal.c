/* Encryption of objects that other parts of weir keep in buckets: new objects get the default
 * encryption of their bucket, and objects that are encrypted with weir's own keys are made readable
 * (docs/encryption.md). */
#include "s3/place/place.h"

#include "base/ids.h"
#include "meta/encryption.h"
#include "meta/keyring.h"

static struct envelope_place seal_place(const struct object_place *p)
{
    return (struct envelope_place){p->name, p->key};
}

/* Decrypts the data key of an envelope. */
static int seal_open(const struct object_place *p, struct str bytes, struct envelope *e,
                     struct sealed_key *out, struct err *err)
{
    struct envelope_place at = seal_place(p);
    struct ring_key with = {0};
    int code = envelope_read(e, bytes, err);

    if (code == 0 && e->kind == SSE_C)
        code = err_set(err, ERR_UNSUPPORTED,
                       "the object " STR_FMT " of bucket " STR_FMT
                       " is encrypted with a customer's key (SSE-C), which weir does not have",
                       STR_ARG(str_head(p->key, 255)), STR_ARG(p->name));
    if (code == 0 && !p->env.keys)
        code = err_set(err, ERR_UNSUPPORTED,
                       "the object " STR_FMT " of bucket " STR_FMT
                       " is encrypted, and there is no key file here",
                       STR_ARG(str_head(p->key, 255)), STR_ARG(p->name));
    if (code == 0)
        code = keyring_find(p->env.keys, e->name, e->id, p->use != PLACE_READ_NOW, &with, err);
    if (code == 0 && envelope_open(e, &at, &with.key, out) < 0)
        code = err_set(err, ERR_CORRUPT, "an object's key does not open with " STR_FMT " " STR_FMT,
                       STR_ARG(e->name), STR_ARG(e->id));
    secure_zero(&with, sizeof(with));
    return code;
}

/* --- reading --- */

int object_place_unlock(const struct object_place *p, struct get_result *got, struct err *err)
{
    struct sealed_key data = {0};
    struct envelope e;

    if (!got->unlock)
        return 0;
    if (p->use == PLACE_READ_NOW && !got->at_hand)
        return ERR_AGAIN;
    int code = seal_open(p, got->info.meta.encryption, &e, &data, err);
    if (code == 0)
        code = got->unlock(got->body, &data, err);
    secure_zero(&data, sizeof(data));
    return code;
}

/* --- writing --- */

int object_place_seal_key(void *ctx, const struct object_meta *meta, struct put_seal *out,
                          struct err *err)
{
    struct envelope e;
    int code = seal_open(ctx, meta->encryption, &e, &out->key, err);

    out->hide_md5 = code == 0 && e.kind != SSE_S3;
    return code;
}

/* Fills the default encryption of the bucket; its kind is SSE_NONE if the bucket has none. A
 * storage that cannot store sealed bytes encrypts by itself. */
static int seal_asked(struct object_place *p, struct sse_asked *out, struct err *err)
{
    struct str text = STR_EMPTY;

    *out = (struct sse_asked){0};
    if (!p->env.keys || !bucket_can(p->bucket, STORAGE_KEEPS_META))
        return 0;
    int code = p->bucket->ops->get_document(p->bucket, p->arena, "encryption", &text, err);
    if (code < 0 || text.len == 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    return sse_default_read(out, p->arena, text, err) < 0
               ? err_set(err, ERR_CORRUPT,
                         "the encryption document of bucket " STR_FMT " cannot be read",
                         STR_ARG(p->name))
               : 0;
}

int object_place_seal(struct object_place *p, struct object_meta *meta, struct err *err)
{
    struct envelope_place at = seal_place(p);
    struct buf bytes = BUF_INIT(ENVELOPE_MAX);
    struct sealed_key data;
    struct ring_key with = {0};
    struct sse_asked asked;
    int code = seal_asked(p, &asked, err);

    if (code < 0 || asked.kind == SSE_NONE)
        return code;
    struct envelope e = {.kind = asked.kind,
                         .bucket_key = asked.bucket_key,
                         .name = asked.kind == SSE_S3 ? KEYRING_MASTER
                                 : asked.key_id.len   ? asked.key_id
                                                      : KEYRING_DEFAULT};
    code = keyring_current(p->env.keys, e.name, asked.kind == SSE_S3, &with, err);
    if (code < 0)
        return code;
    random_bytes(data.bytes, sizeof(data.bytes));
    e.id = str_z(with.id);
    envelope_seal(&bytes, &e, &at, &with.key, &data);
    secure_zero(&with, sizeof(with));
    secure_zero(&data, sizeof(data));
    meta->encryption = arena_str(p->arena, buf_str(&bytes));
    buf_release(&bytes);
    return meta->encryption.len ? 0 : err_code(err, ERR_NO_MEMORY);
}
