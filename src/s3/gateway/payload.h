/* The body of a request as a storage should read it: deframed, measured, and checked at its end
 * against everything that the client said of it. Digests are computed in one pass and can be asked
 * for afterwards. Where the storage computes the MD5 anyhow, for the ETag, it is not computed here:
 * payload_check_md5() compares what the storage found.
 *
 * What a client may say: its length; x-amz-content-sha256; Content-MD5; one x-amz-checksum-<kind>,
 * in the head or in a trailer. The bytes are provisional until the end (framing.h): a storage calls
 * payload_verify() after the last byte and before anything is visible, which is what the verify
 * member of put_options is for.
 *
 * Any error of the raw body ends it too, ERR_AGAIN included: release it, and begin anew with the
 * body from its start.
 *
 * When nothing is to be hashed, a plain socket shows through (reader_as_socket).
 *
 * Errors (codes of error.h) of reading: those of framing.h; IncompleteBody; BadDigest;
 * XAmzContentSHA256Mismatch. Of payload_init: InvalidDigest (Content-MD5 that is none), BadDigest
 * (a checksum that is none), InvalidRequest (several of them), MissingContentLength and
 * InvalidArgument (x-amz-decoded-content-length missing, malformed). One owner at a time. */
#ifndef S3_GATEWAY_PAYLOAD_H
#define S3_GATEWAY_PAYLOAD_H

#include "object/digest.h"
#include "object/md5.h"
#include "s3/gateway/framing.h"

struct payload_options {
    const struct identity *auth;       /* borrowed */
    const struct http_header *headers; /* of the request; borrowed */
    size_t header_count;
    uint64_t content_length; /* UINT64_MAX: chunked, not known */
    unsigned also;           /* digests wanted beside those to be checked: 1 << DIGEST_* */
    bool checksum_is_other;  /* x-amz-checksum-* in the head is not this body's, but the object's
                              * (CompleteMultipartUpload) */
    bool md5_elsewhere;      /* Content-MD5 is left to payload_check_md5() */
    /* The checksum to make when the client says none; DIGEST_MD5: none either. */
    enum digest_kind otherwise;
};

struct payload {
    struct reader reader; /* close releases; the raw body stays open */
    struct reader *body;  /* the raw one, or &framing.reader */
    struct framing framing;
    bool framed;
    struct str trailer; /* x-amz-trailer */
    uint64_t length;    /* of the bytes without framing; UINT64_MAX: not known */
    uint64_t read;
    uint64_t max;    /* of a length that is not known: EntityTooLarge; 0: none */
    unsigned wanted; /* digests computed */
    struct digests *digests;
    struct digest_value said[DIGEST_KINDS];
    struct digest_value computed[DIGEST_KINDS];
    bool has_hash; /* x-amz-content-sha256 was said, beside an x-amz-checksum-sha256 maybe */
    struct digest_value hash;
    bool has_checksum, in_trailer;
    bool makes_checksum; /* none was said, so it is of the kind `otherwise` */
    bool md5_elsewhere;
    enum digest_kind checksum; /* the x-amz-checksum-<kind> that was said, or is made */
    int done;                  /* 0: no; 1: verified; negative: the error */
};

int payload_init(struct payload *p, struct reader *body, const struct payload_options *o,
                 struct err *err) MUST_CHECK;
void payload_release(struct payload *p);

/* Reads what is left, which must be nothing, and checks. Called again: the same answer. */
int payload_verify(struct payload *p, struct err *err) MUST_CHECK;

/* Content-MD5, if there is one, against the MD5 that the bytes were found to have. BadDigest. */
int payload_check_md5(const struct payload *p, const unsigned char md5[MD5_LEN],
                      struct err *err) MUST_CHECK;

/* After it was verified, of a kind that was said or wanted also; else NULL. */
const struct digest_value *payload_digest(const struct payload *p, enum digest_kind kind);

#endif
