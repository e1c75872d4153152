/* Certificates for tests, made on the spot with OpenSSL. */
#ifndef TESTS_UNIT_OS_CERTS_H
#define TESTS_UNIT_OS_CERTS_H

/* What a certificate says. Times are seconds from now. */
struct cert_options {
    const char *name; /* common name */
    const char *alt;  /* "DNS:localhost,IP:127.0.0.1", or NULL */
    long valid_from, valid_to;
};

/* Writes DIR/<stem>.pem and DIR/<stem>.key: self-signed, an authority of its own. Returns nothing:
 * a failure ends the test. */
void cert_write(const char *dir, const char *stem, const struct cert_options *o);

#endif
