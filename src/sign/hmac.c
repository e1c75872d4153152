/* HMAC and SHA-256 by OpenSSL: fetched once per process, one context per thread and kind, begun
 * anew for each use. That halves the cost against a context per call. */
#include "sign/hmac.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdlib.h>

enum hmac_kind { HMAC_KIND_SHA256, HMAC_KIND_SHA1, HMAC_KINDS };

struct contexts {
    EVP_MAC_CTX *of[HMAC_KINDS];
    EVP_MD_CTX *sha256;
};

static const char *const names[HMAC_KINDS] = {"SHA256", "SHA1"};

/* Set once, by start; constant after that. */
static EVP_MAC *algorithm;
static EVP_MD *sha256_algorithm;
static pthread_key_t contexts_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void destroy(void *kept)
{
    struct contexts *c = kept;

    for (int kind = 0; kind < HMAC_KINDS; kind++)
        EVP_MAC_CTX_free(c->of[kind]);
    EVP_MD_CTX_free(c->sha256);
    free(c);
}

static void start(void)
{
    algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
    sha256_algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    BUG_ON(!algorithm || !sha256_algorithm);
    BUG_ON(pthread_key_create(&contexts_key, destroy) != 0);
}

static struct contexts *contexts(void)
{
    struct contexts *c;

    pthread_once(&once, start);
    c = pthread_getspecific(contexts_key);
    if (!c) {
        c = xcalloc(1, sizeof(*c));
        BUG_ON(pthread_setspecific(contexts_key, c) != 0);
    }
    return c;
}

void sha256(struct str bytes, unsigned char out[SHA256_LEN])
{
    struct contexts *c = contexts();

    if (!c->sha256)
        c->sha256 = EVP_MD_CTX_new();
    BUG_ON(!c->sha256 || !EVP_DigestInit_ex2(c->sha256, sha256_algorithm, NULL));
    BUG_ON(!EVP_DigestUpdate(c->sha256, bytes.p, bytes.len));
    BUG_ON(!EVP_DigestFinal_ex(c->sha256, out, NULL));
}

static EVP_MAC_CTX *context(enum hmac_kind kind)
{
    struct contexts *c = contexts();

    if (!c->of[kind]) {
        OSSL_PARAM params[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)names[kind],
                                             0),
            OSSL_PARAM_construct_end(),
        };
        c->of[kind] = EVP_MAC_CTX_new(algorithm);
        BUG_ON(!c->of[kind] || !EVP_MAC_CTX_set_params(c->of[kind], params));
    }
    return c->of[kind];
}

static void compute(enum hmac_kind kind, struct str key, struct str bytes, unsigned char *out,
                    size_t size)
{
    EVP_MAC_CTX *c = context(kind);
    size_t len;

    /* A NULL key would mean "the key of the last use". */
    BUG_ON(!EVP_MAC_init(c, (const unsigned char *)(key.len ? key.p : ""), key.len, NULL));
    BUG_ON(!EVP_MAC_update(c, (const unsigned char *)bytes.p, bytes.len));
    BUG_ON(!EVP_MAC_final(c, out, &len, size) || len != size);
}

void hmac_sha256(struct str key, struct str bytes, unsigned char out[HMAC_SHA256_LEN])
{
    compute(HMAC_KIND_SHA256, key, bytes, out, HMAC_SHA256_LEN);
}

void hmac_sha1(struct str key, struct str bytes, unsigned char out[HMAC_SHA1_LEN])
{
    compute(HMAC_KIND_SHA1, key, bytes, out, HMAC_SHA1_LEN);
}
