/* Wraps data keys in envelopes, and opens them. */
#include "meta/envelope.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "sign/hmac.h"

#include <openssl/evp.h>

enum {
    FORMAT = 1,
    WRAPPED_LEN = SEALED_KEY_LEN + SEALED_TAG_LEN,
    FLAG_BUCKET_KEY = 1,
};

static const char letters[] = {[SSE_C] = 'c', [SSE_S3] = 's', [SSE_KMS] = 'k'};

/* Makes the key for one wrapping. The salt makes the key unique, so the nonce may be constant. */
static void envelope_wrapping_key(const struct sealed_key *with, enum sse_kind kind,
                                  const unsigned char salt[SEALED_SALT_LEN], struct sealed_key *out)
{
    static const char label[] = "weir wrap 1";
    char text[sizeof(label) + SEALED_SALT_LEN];

    memcpy(text, label, sizeof(label) - 1);
    text[sizeof(label) - 1] = letters[kind];
    memcpy(text + sizeof(label), salt, SEALED_SALT_LEN);
    hmac_sha256(str_n(with->bytes, SEALED_KEY_LEN), str_n(text, sizeof(text)), out->bytes);
}

static EVP_CIPHER_CTX *cipher(const struct sealed_key *with, const struct envelope *e,
                              const unsigned char *salt, const struct envelope_place *at,
                              int encrypt)
{
    static const unsigned char nonce[12];
    const struct str bound[] = {e->head, at->bucket, {"", 1}, at->key};
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    struct sealed_key key;
    int len = 0;

    envelope_wrapping_key(with, e->kind, salt, &key);
    BUG_ON(!c || EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key.bytes, nonce, encrypt) != 1);
    secure_zero(&key, sizeof(key));
    for (size_t i = 0; i < ARRAY_SIZE(bound); i++)
        if (bound[i].len)
            BUG_ON(EVP_CipherUpdate(c, NULL, &len, (const unsigned char *)bound[i].p,
                                    (int)bound[i].len) != 1);
    return c;
}

static void envelope_put_head(struct buf *out, const struct envelope *e)
{
    BUG_ON(e->kind == SSE_NONE || e->name.len > 255 || e->id.len > 255 ||
           e->context.len > ENVELOPE_CONTEXT_MAX);
    buf_append_char(out, FORMAT);
    buf_append_char(out, letters[e->kind]);
    buf_append_char(out, e->bucket_key ? FLAG_BUCKET_KEY : 0);
    buf_append_char(out, (char)e->name.len);
    buf_append_str(out, e->name);
    buf_append_char(out, (char)e->id.len);
    buf_append_str(out, e->id);
    buf_append_be16(out, (uint16_t)e->context.len);
    buf_append_str(out, e->context);
}

void envelope_seal(struct buf *out, const struct envelope *e, const struct envelope_place *at,
                   const struct sealed_key *with, const struct sealed_key *data)
{
    unsigned char salt[SEALED_SALT_LEN], wrapped[WRAPPED_LEN];
    struct buf head = BUF_INIT(ENVELOPE_MAX);
    struct envelope own = *e;
    int len = 0;

    envelope_put_head(&head, e);
    own.head = buf_str(&head);
    random_bytes(salt, sizeof(salt));
    EVP_CIPHER_CTX *c = cipher(with, &own, salt, at, 1);
    BUG_ON(EVP_CipherUpdate(c, wrapped, &len, data->bytes, SEALED_KEY_LEN) != 1 ||
           EVP_CipherFinal_ex(c, wrapped + SEALED_KEY_LEN, &len) != 1 ||
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, SEALED_TAG_LEN, wrapped + SEALED_KEY_LEN) !=
               1);
    EVP_CIPHER_CTX_free(c);
    buf_append_str(out, own.head);
    buf_append(out, salt, sizeof(salt));
    buf_append(out, wrapped, sizeof(wrapped));
    buf_release(&head);
}

/* --- reading an envelope --- */

static bool envelope_take(struct str *rest, size_t len, struct str *out)
{
    if (len > rest->len)
        return false;
    *out = str_head(*rest, len);
    *rest = str_skip(*rest, len);
    return true;
}

static bool envelope_take_text(struct str *rest, size_t length_bytes, struct str *out)
{
    struct str len = STR_EMPTY;

    return envelope_take(rest, length_bytes, &len) &&
           envelope_take(rest, be_read(len.p, len.len), out);
}

static bool envelope_read_head(struct envelope *e, struct str *rest)
{
    struct str fixed = STR_EMPTY;

    if (!envelope_take(rest, 3, &fixed) || fixed.p[0] != FORMAT ||
        (unsigned char)fixed.p[2] > FLAG_BUCKET_KEY)
        return false;
    for (int kind = SSE_C; kind <= SSE_KMS; kind++)
        if (letters[kind] == fixed.p[1])
            e->kind = (enum sse_kind)kind;
    e->bucket_key = fixed.p[2] & FLAG_BUCKET_KEY;
    return e->kind != SSE_NONE && envelope_take_text(rest, 1, &e->name) &&
           envelope_take_text(rest, 1, &e->id) && envelope_take_text(rest, 2, &e->context) &&
           e->context.len <= ENVELOPE_CONTEXT_MAX && (e->kind == SSE_C) == (e->name.len == 0) &&
           (e->kind == SSE_C) == (e->id.len == 0);
}

int envelope_read(struct envelope *out, struct str bytes, struct err *err)
{
    struct str rest = bytes, salt = STR_EMPTY, wrapped = STR_EMPTY;

    *out = (struct envelope){0};
    if (!envelope_read_head(out, &rest))
        return err_set(err, ERR_CORRUPT, "the envelope of an encrypted object cannot be read");
    out->head = str_head(bytes, bytes.len - rest.len);
    if (!envelope_take(&rest, SEALED_SALT_LEN, &salt) ||
        !envelope_take(&rest, WRAPPED_LEN, &wrapped) || rest.len)
        return err_set(err, ERR_CORRUPT, "the envelope of an encrypted object cannot be read");
    out->salt = (const unsigned char *)salt.p;
    out->wrapped = (const unsigned char *)wrapped.p;
    return 0;
}

int envelope_open(const struct envelope *e, const struct envelope_place *at,
                  const struct sealed_key *with, struct sealed_key *data)
{
    unsigned char tag[SEALED_TAG_LEN];
    EVP_CIPHER_CTX *c = cipher(with, e, e->salt, at, 0);
    int len = 0;

    memcpy(tag, e->wrapped + SEALED_KEY_LEN, sizeof(tag));
    bool good = EVP_CipherUpdate(c, data->bytes, &len, e->wrapped, SEALED_KEY_LEN) == 1 &&
                EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, SEALED_TAG_LEN, tag) == 1 &&
                EVP_CipherFinal_ex(c, data->bytes + SEALED_KEY_LEN, &len) == 1;
    EVP_CIPHER_CTX_free(c);
    if (!good)
        secure_zero(data, sizeof(*data));
    return good ? 0 : ERR_DENIED;
}
