/* Seals secrets with AES-256-GCM of OpenSSL, and reads the key file. */
#include "route/seal.h"
#include "base/hex.h"
#include "base/ids.h"
#include "os/file.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { NONCE_LEN = 12, TAG_LEN = 16, SEALED_MAX = NONCE_LEN + SEAL_PLAIN_MAX + TAG_LEN };

/* --- the key file --- */

static int seal_make_key(struct seal_key *out, const char *path, struct err *err)
{
    random_bytes(out->bytes, sizeof(out->bytes));
    return file_write_durable(path, str_n(out->bytes, sizeof(out->bytes)), 0600, err);
}

static int seal_read_key(struct seal_key *out, const char *path, struct err *err)
{
    struct buf text = BUF_INIT(4096);
    struct stat st;
    int code = file_read(path, &text, err);

    if (code == 0 && stat(path, &st) == 0 && (st.st_mode & 077))
        code = err_set(err, ERR_DENIED,
                       "%s may be read by others than its owner; make it mode 0600", path);
    if (code == ERR_TOO_LARGE || (code == 0 && text.len != SEAL_KEY_LEN))
        code = err_set(err, ERR_CORRUPT, "%s is not a key file: it does not hold %d bytes", path,
                       SEAL_KEY_LEN);
    if (code == 0)
        memcpy(out->bytes, text.p, SEAL_KEY_LEN);
    if (text.p)
        secure_zero(text.p, text.cap);
    buf_release(&text);
    return code;
}

int seal_key_open(struct seal_key *out, const char *path, bool *made, struct err *err)
{
    int code = seal_read_key(out, path, err);

    *made = code == ERR_NOT_FOUND;
    return *made ? seal_make_key(out, path, err) : code;
}

void seal_key_release(struct seal_key *key)
{
    secure_zero(key, sizeof(*key));
}

/* --- sealing --- */

/* Encrypts `plain`. `out` has room for NONCE_LEN + plain.len + TAG_LEN bytes. */
static void close_up(const struct seal_key *key, struct str owner, struct str plain,
                     unsigned char *out)
{
    unsigned char *text = out + NONCE_LEN;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    int len = 0;

    BUG_ON(!c || owner.len == 0 || plain.len == 0 || plain.len > INT_MAX);
    random_bytes(out, NONCE_LEN);
    BUG_ON(EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key->bytes, out) != 1);
    BUG_ON(EVP_EncryptUpdate(c, NULL, &len, (const unsigned char *)owner.p, (int)owner.len) != 1);
    BUG_ON(EVP_EncryptUpdate(c, text, &len, (const unsigned char *)plain.p, (int)plain.len) != 1);
    BUG_ON(EVP_EncryptFinal_ex(c, text + plain.len, &len) != 1);
    BUG_ON(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_LEN, text + plain.len) != 1);
    EVP_CIPHER_CTX_free(c);
}

/* Decrypts `sealed`, which has more than NONCE_LEN + TAG_LEN bytes. `out` has room for the bytes
 * between nonce and tag. Returns false when `sealed` was changed, or was sealed with another key or
 * for another owner. */
static bool open_up(const struct seal_key *key, struct str owner, struct str sealed,
                    unsigned char *out)
{
    const unsigned char *bytes = (const unsigned char *)sealed.p;
    size_t len = sealed.len - NONCE_LEN - TAG_LEN;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    int got = 0;

    BUG_ON(!c || EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key->bytes, bytes) != 1);
    bool good =
        EVP_DecryptUpdate(c, NULL, &got, (const unsigned char *)owner.p, (int)owner.len) == 1 &&
        EVP_DecryptUpdate(c, out, &got, bytes + NONCE_LEN, (int)len) == 1 &&
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_LEN,
                            (void *)(bytes + sealed.len - TAG_LEN)) == 1 &&
        EVP_DecryptFinal_ex(c, out + len, &got) == 1;
    EVP_CIPHER_CTX_free(c);
    return good;
}

void seal(const struct seal_key *key, struct str owner, struct str plain, struct buf *out)
{
    unsigned char sealed[SEALED_MAX];

    BUG_ON(plain.len > SEAL_PLAIN_MAX);
    close_up(key, owner, plain, sealed);
    buf_append_hex(out, sealed, NONCE_LEN + plain.len + TAG_LEN);
}

int unseal(const struct seal_key *key, struct str owner, struct str sealed, struct buf *out)
{
    unsigned char bytes[SEALED_MAX], plain[SEAL_PLAIN_MAX];
    size_t all = sealed.len / 2;

    if (all > SEALED_MAX || all <= NONCE_LEN + TAG_LEN || owner.len == 0 ||
        !hex_parse(sealed, bytes, all))
        return ERR_CORRUPT;
    bool good = open_up(key, owner, str_n(bytes, all), plain);
    if (good)
        buf_append(out, plain, all - NONCE_LEN - TAG_LEN);
    secure_zero(plain, sizeof(plain));
    return good ? 0 : ERR_CORRUPT;
}

void seal_whole(const struct seal_key *key, struct str owner, struct str plain, struct buf *out)
{
    size_t all = NONCE_LEN + plain.len + TAG_LEN;
    unsigned char *sealed = xzalloc(all);

    close_up(key, owner, plain, sealed);
    buf_append(out, sealed, all);
    free(sealed);
}

int unseal_whole(const struct seal_key *key, struct str owner, struct str sealed, struct buf *out)
{
    if (sealed.len <= NONCE_LEN + TAG_LEN || sealed.len > INT_MAX || owner.len == 0)
        return ERR_CORRUPT;
    size_t len = sealed.len - NONCE_LEN - TAG_LEN;
    unsigned char *plain = xzalloc(len);
    bool good = open_up(key, owner, sealed, plain);
    if (good)
        buf_append(out, plain, len);
    secure_zero(plain, len);
    free(plain);
    return good ? 0 : ERR_CORRUPT;
}
