/* HMAC and SHA-256 against the published examples, and against OpenSSL's own at every length. */
#include "sign/hmac.h"
#include "unit/test.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

static void check_hex(const unsigned char *got, size_t len, const char *want)
{
    struct buf hex = BUF_INIT(0);

    buf_append_hex(&hex, got, len);
    CHECK_STR(buf_str(&hex), str_z(want));
    buf_release(&hex);
}

TEST(hmac, the_published_examples)
{
    static const struct {
        char byte; /* of which the key is, or 0: `key` */
        size_t len;
        const char *key, *text, *sha256, *sha1;
    } examples[] = {
        /* RFC 4231 section 4.3, RFC 2202 section 3, number 2 */
        {0, 4, "Jefe", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
         "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"},
        /* RFC 4231 section 4.2, RFC 2202 section 3, number 1 */
        {0x0b, 20, NULL, "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
         "b617318655057264e28bc0b6fb378c8ef146be00"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        char key[64];
        unsigned char mac[HMAC_SHA256_LEN];
        if (examples[i].key)
            memcpy(key, examples[i].key, examples[i].len);
        else
            memset(key, examples[i].byte, examples[i].len);
        hmac_sha256(str_n(key, examples[i].len), str_z(examples[i].text), mac);
        check_hex(mac, HMAC_SHA256_LEN, examples[i].sha256);
        hmac_sha1(str_n(key, examples[i].len), str_z(examples[i].text), mac);
        check_hex(mac, HMAC_SHA1_LEN, examples[i].sha1);
    }
}

TEST(hmac, every_length_of_key_and_text_is_as_openssl_has_it)
{
    char bytes[200];
    unsigned char got[HMAC_SHA256_LEN], want[EVP_MAX_MD_SIZE];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + 1);
    for (size_t key = 0; key < 140; key += key < 60 || key > 70 ? 7 : 1) {
        for (size_t len = 0; len < sizeof(bytes); len++) {
            CHECK(HMAC(EVP_sha256(), bytes, (int)key, (unsigned char *)bytes, len, want, NULL));
            hmac_sha256(str_n(bytes, key), str_n(bytes, len), got);
            CHECK(memcmp(got, want, HMAC_SHA256_LEN) == 0);
            CHECK(HMAC(EVP_sha1(), bytes, (int)key, (unsigned char *)bytes, len, want, NULL));
            hmac_sha1(str_n(bytes, key), str_n(bytes, len), got);
            CHECK(memcmp(got, want, HMAC_SHA1_LEN) == 0);
        }
    }
}

TEST(hmac, a_key_made_ready_serves_many_texts)
{
    struct hmac_key key;
    unsigned char got[HMAC_SHA256_LEN], want[HMAC_SHA256_LEN];
    const struct str texts[] = {STR(""), STR("a"), STR("AWS4-HMAC-SHA256"), STR_EMPTY};

    hmac_key_init(&key, STR("secret"));
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        hmac_sha256_by(&key, texts[i], got);
        hmac_sha256(STR("secret"), texts[i], want);
        CHECK(memcmp(got, want, sizeof(got)) == 0);
    }
}

TEST(hmac, sha256_of_nothing_and_of_a_block)
{
    static const char block[64];
    unsigned char got[SHA256_LEN], want[SHA256_LEN];

    sha256(STR_EMPTY, got);
    check_hex(got, SHA256_LEN, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256(str_n(block, sizeof(block)), got);
    SHA256((const unsigned char *)block, sizeof(block), want);
    CHECK(memcmp(got, want, sizeof(got)) == 0);
}
