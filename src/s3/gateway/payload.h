/* The body of a request as a storage reads it: without its framing, measured, and checked at its
 * end against everything that the client claimed about it. Digests are computed in one pass and can
 * be asked for afterwards. If the storage computes the MD5 for the ETag, it is not computed here a
 * second time: payload_check_md5() checks the storage's result.
 *
 * A client may claim the body's length, its x-amz-content-sha256, its Content-MD5, and one
 * x-amz-checksum-<kind>, in the head or in a trailer. The bytes are provisional until the end
 * (framing.h): a storage calls payload_verify(), through the verify member of put_options, after
 * the last byte and before anything is visible.
 *
 * Any error of the raw body, also ERR_AGAIN, is the payload's error. Then the payload has to be
 * released, and begun anew with the body from its start.
 *
 * When no digest is needed, the payload of a plain socket can be read as that socket
 * (reader_as_socket).
 *
 * Errors (codes of error.h) of reading: those of framing.h; IncompleteBody; BadDigest;
 * XAmzContentSHA256Mismatch. Errors of payload_init: InvalidDigest (malformed Content-MD5),
 * BadDigest (malformed checksum), InvalidRequest (several checksums), MissingContentLength and
 * InvalidArgument (x-amz-decoded-content-length is missing or malformed). A payload has one owner
 * at a time. */
#ifndef S3_GATEWAY_PAYLOAD_H
#define S3_GATEWAY_PAYLOAD_H

#include "object/digest.h"
#include "object/md5.h"
#include "s3/gateway/framing.h"

struct payload_options {
    const struct identity *auth;       /* borrowed */
    const struct http_header *headers; /* headers of the request; borrowed */
    size_t header_count;
    uint64_t content_length; /* in bytes; UINT64_MAX: not known, because the body is chunked */
    unsigned also;           /* further digests to compute, as bits: 1 << DIGEST_* */
    /* x-amz-checksum-* in the head is a checksum of the object, not of this body, as in
     * CompleteMultipartUpload. */
    bool checksum_is_other;
    bool md5_elsewhere; /* the caller checks the Content-MD5, by payload_check_md5() */
    /* The checksum to make when the client claims none; DIGEST_MD5: none is made. */
    enum digest_kind otherwise;
};

struct payload {
    struct reader reader; /* its close() releases the payload, but does not close the raw body */
    struct reader *body;  /* the raw body, or &framing.reader */
    struct framing framing;
    bool framed;
    struct str trailer; /* the header x-amz-trailer */
    uint64_t length;    /* bytes of the body without framing; UINT64_MAX: not known */
    uint64_t read;
    /* The limit on the bytes of a body of unknown length; a longer body is EntityTooLarge. 0: no
     * limit. */
    uint64_t max;
    unsigned wanted; /* the digests that are computed, as bits */
    struct digests *digests;
    struct digest_value said[DIGEST_KINDS];
    struct digest_value computed[DIGEST_KINDS];
    bool has_hash; /* the client claimed an x-amz-content-sha256, which is in `hash` */
    struct digest_value hash;
    bool has_checksum, in_trailer;
    bool makes_checksum; /* no checksum was claimed, so one of the kind `otherwise` is made */
    bool md5_elsewhere;
    enum digest_kind checksum; /* the kind of the checksum that was claimed, or is made */
    int done; /* 0: not verified yet; 1: verified; negative: the error of verifying */
};

int payload_init(struct payload *p, struct reader *body, const struct payload_options *o,
                 struct err *err) MUST_CHECK;
void payload_release(struct payload *p);

/* Checks that the body has ended and that all claims hold. A second call returns the same
 * result. */
int payload_verify(struct payload *p, struct err *err) MUST_CHECK;

/* Compares the Content-MD5, if there is one, with the MD5 of the bytes. BadDigest: they differ. */
int payload_check_md5(const struct payload *p, const unsigned char md5[MD5_LEN],
                      struct err *err) MUST_CHECK;

/* Returns the digest of this kind, after the payload was verified; NULL: the digest was neither
 * claimed nor asked for. */
const struct digest_value *payload_digest(const struct payload *p, enum digest_kind kind);

#endif
