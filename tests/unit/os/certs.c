/* Self-signed certificates on P-256, so that making one takes no time. */
#include "unit/os/certs.h"
#include "unit/test.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    CHECK(extension && X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static FILE *create(const char *dir, const char *stem, const char *suffix)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s.%s", dir, stem, suffix);
    f = fopen(path, "w");
    CHECK(f);
    return f;
}

void cert_write(const char *dir, const char *stem, const struct cert_options *o)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_NAME *name = X509_get_subject_name(cert);
    FILE *pem = create(dir, stem, "pem"), *key_file = create(dir, stem, "key");

    CHECK(key && X509_set_version(cert, 2) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), o->valid_from);
    X509_gmtime_adj(X509_getm_notAfter(cert), o->valid_to);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)o->name, -1, -1, 0);
    X509_set_issuer_name(cert, name);
    add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
    if (o->alt)
        add_extension(cert, NID_subject_alt_name, o->alt);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    CHECK(PEM_write_X509(pem, cert) == 1);
    CHECK(PEM_write_PrivateKey(key_file, key, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(pem);
    fclose(key_file);
    X509_free(cert);
    EVP_PKEY_free(key);
}
