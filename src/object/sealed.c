/* Records of AES-256-GCM, and a reader that makes them. */
#include "object/sealed.h"
#include "base/ids.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

enum { NONCE_LEN = 12 };

uint64_t sealed_records(uint64_t plain)
{
    return plain ? (plain - 1) / SEALED_RECORD + 1 : 1;
}

uint64_t sealed_size(uint64_t plain)
{
    if (plain == UINT64_MAX)
        return plain;
    return SEALED_SALT_LEN + plain + sealed_records(plain) * SEALED_TAG_LEN;
}

/* --- sealing and opening records --- */

/* Derives the key for one body. The salt makes the key random (docs/encryption.md, E2); the part
 * number makes it useless for any other part. */
static void derive(const struct sealed_key *key, const unsigned char salt[SEALED_SALT_LEN],
                   uint32_t part, unsigned char out[SEALED_KEY_LEN])
{
    static const char label[] = "weir sealed 1";
    unsigned char text[sizeof(label) - 1 + SEALED_SALT_LEN + 4];
    unsigned char *p = text;

    memcpy(p, label, sizeof(label) - 1);
    p += sizeof(label) - 1;
    memcpy(p, salt, SEALED_SALT_LEN);
    p += SEALED_SALT_LEN;
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(part >> (24 - 8 * i));
    BUG_ON(!HMAC(EVP_sha256(), key->bytes, SEALED_KEY_LEN, text, sizeof(text), out, NULL));
}

void sealed_digest(const struct sealed_key *key, const unsigned char md5[MD5_LEN],
                   unsigned char out[MD5_LEN])
{
    static const char label[] = "weir etag 1";
    unsigned char text[sizeof(label) - 1 + MD5_LEN], all[32];

    memcpy(text, label, sizeof(label) - 1);
    memcpy(text + sizeof(label) - 1, md5, MD5_LEN);
    BUG_ON(!HMAC(EVP_sha256(), key->bytes, SEALED_KEY_LEN, text, sizeof(text), all, NULL));
    memcpy(out, all, MD5_LEN);
}

void sealed_cipher_init(struct sealed_cipher *c, const struct sealed_key *key,
                        const unsigned char salt[SEALED_SALT_LEN], uint32_t part)
{
    unsigned char own[SEALED_KEY_LEN];

    derive(key, salt, part, own);
    c->ctx = EVP_CIPHER_CTX_new();
    BUG_ON(!c->ctx || EVP_CipherInit_ex(c->ctx, EVP_aes_256_gcm(), NULL, own, NULL, 1) != 1);
    secure_zero(own, sizeof(own));
}

void sealed_cipher_release(struct sealed_cipher *c)
{
    EVP_CIPHER_CTX_free(c->ctx); /* overwrites the key */
    c->ctx = NULL;
}

static void cipher_place(struct sealed_cipher *c, uint64_t index, bool last, int encrypt)
{
    unsigned char nonce[NONCE_LEN] = {0};

    for (int i = 0; i < 8; i++)
        nonce[i] = (unsigned char)(index >> (56 - 8 * i));
    nonce[NONCE_LEN - 1] = last;
    BUG_ON(EVP_CipherInit_ex(c->ctx, NULL, NULL, NULL, nonce, encrypt) != 1);
}

void sealed_put(struct sealed_cipher *c, uint64_t index, bool last, struct str plain,
                unsigned char *out)
{
    int len = 0;

    BUG_ON(plain.len > SEALED_RECORD);
    cipher_place(c, index, last, 1);
    if (plain.len)
        BUG_ON(EVP_CipherUpdate(c->ctx, out, &len, (const unsigned char *)plain.p,
                                (int)plain.len) != 1);
    BUG_ON(EVP_CipherFinal_ex(c->ctx, out + plain.len, &len) != 1);
    BUG_ON(EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_GCM_GET_TAG, SEALED_TAG_LEN, out + plain.len) != 1);
}

int sealed_get(struct sealed_cipher *c, uint64_t index, bool last, unsigned char *record,
               size_t len, struct err *err)
{
    int got = 0;

    if (len < SEALED_TAG_LEN || len > SEALED_STORED)
        return err_set(err, ERR_CORRUPT, "a sealed record cannot be %zu bytes long", len);
    len -= SEALED_TAG_LEN;
    cipher_place(c, index, last, 0);
    bool good =
        EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_GCM_SET_TAG, SEALED_TAG_LEN, record + len) == 1;
    if (len)
        good = good && EVP_CipherUpdate(c->ctx, record, &got, record, (int)len) == 1;
    if (!good || EVP_CipherFinal_ex(c->ctx, record + len, &got) != 1)
        return err_set(err, ERR_CORRUPT,
                       "record %llu of a sealed body is damaged, or sealed with another key",
                       (unsigned long long)index);
    return 0;
}

/* --- the reader that seals a body --- */

/* Reads the plain bytes of a whole record and one byte more, or up to the end of the body. */
static int sealer_fill(struct sealer *s, struct err *err)
{
    size_t got = 1;
    int code = 0;

    while (code == 0 && got > 0 && s->have <= SEALED_RECORD) {
        code = reader_read(s->body, s->plain + s->have, SEALED_RECORD + 1 - s->have, &got, err);
        if (code < 0)
            break;
        s->have += got;
        s->size += got;
    }
    return code;
}

static void hash_record(struct sealer *s, struct str record)
{
    struct md5 md5;

    if (s->ended && s->index == 0) {
        md5_init(&md5);
        md5_update(&md5, record);
        md5_final(&md5, s->sum);
        return;
    }
    if (!s->streams)
        hash_begin(&s->md5, s->hasher);
    s->streams = true;
    hash_add(&s->md5, record);
}

/* Makes the byte that was read after this record the first byte of the next record. */
static void next_plain(struct sealer *s, size_t len)
{
    unsigned char **next = &s->plains[s->index % ARRAY_SIZE(s->plains)];

    if (!*next)
        *next = xzalloc(SEALED_RECORD + 1);
    (*next)[0] = s->plain[len];
    s->plain = *next;
}

static int next_record(struct sealer *s, struct err *err)
{
    int code = sealer_fill(s, err);
    size_t len = size_min(s->have, SEALED_RECORD);

    if (code < 0)
        return code;
    s->ended = s->have <= SEALED_RECORD;
    if (s->hasher)
        hash_record(s, str_n(s->plain, len));
    sealed_put(&s->cipher, s->index++, s->ended, str_n(s->plain, len), s->stored);
    s->rest = str_n(s->stored, len + SEALED_TAG_LEN);
    s->have -= len;
    if (!s->ended)
        next_plain(s, len);
    return 0;
}

static int sealer_read(struct reader *base, void *to, size_t len, size_t *got, struct err *err)
{
    struct sealer *s = container_of(base, struct sealer, reader);
    int code = 0;

    *got = 0;
    if (s->rest.len == 0 && !s->ended)
        code = next_record(s, err);
    if (code < 0 || s->rest.len == 0)
        return code;
    *got = size_min(len, s->rest.len);
    memcpy(to, s->rest.p, *got);
    s->rest = str_skip(s->rest, *got);
    return 0;
}

static void sealer_close(struct reader *base)
{
    sealer_release(container_of(base, struct sealer, reader));
}

void sealer_init(struct sealer *s, struct reader *body, const struct sealed_key *key, uint32_t part,
                 struct hasher *hasher)
{
    static const struct reader_ops ops = {.read = sealer_read, .close = sealer_close};

    *s = (struct sealer){.reader = {&ops}, .body = body, .hasher = hasher};
    s->plain = s->plains[0] = xzalloc(SEALED_RECORD + 1);
    s->stored = xzalloc(SEALED_STORED);
    random_bytes(s->stored, SEALED_SALT_LEN);
    sealed_cipher_init(&s->cipher, key, s->stored, part);
    s->rest = str_n(s->stored, SEALED_SALT_LEN);
}

void sealer_md5(struct sealer *s, unsigned char out[MD5_LEN])
{
    if (s->streams)
        hash_end(&s->md5, s->sum);
    s->streams = false;
    memcpy(out, s->sum, MD5_LEN);
}

void sealer_release(struct sealer *s)
{
    sealed_cipher_release(&s->cipher);
    if (s->streams)
        hash_end(&s->md5, s->sum);
    s->streams = false;
    for (size_t i = 0; i < ARRAY_SIZE(s->plains); i++) {
        free(s->plains[i]);
        s->plains[i] = NULL;
    }
    free(s->stored);
    s->plain = s->stored = NULL;
    s->rest = STR_EMPTY;
    s->ended = true;
}
