/* aws-chunked bodies: what a client sends when it signs, or sums up, a body as it streams.
 *
 *     8000;chunk-signature=<64 hex>\r\n        of CHUNKS and CHUNKS_TRAILER; else "8000\r\n"
 *     <bytes>\r\n
 *     0;chunk-signature=<64 hex>\r\n
 *     x-amz-checksum-crc32:<base64>\r\n        of the -TRAILER forms, as x-amz-trailer named them
 *     x-amz-trailer-signature:<64 hex>\r\n     of CHUNKS_TRAILER
 *     \r\n
 *
 * A reader over the raw body that gives the bytes. A chunk may be megabytes, so its bytes are given
 * out before its signature can be checked: whoever reads must take them as provisional until the
 * reader has ended without an error, and then nothing was forged, cut, added or reordered.
 *
 * Errors (codes of error.h): SignatureDoesNotMatch; IncompleteBody (it ends early, or its length is
 * not the decoded length that was announced, or something follows); InvalidChunkSizeError (a
 * malformed line before a chunk, or a size that passes the decoded length); MalformedTrailerError
 * (a malformed trailer, one not announced, one announced that is missing). After an error every
 * read gives the same error.
 *
 * Unlike AWS, chunks below 8 KiB are taken wherever they stand: some clients send them. */
#ifndef S3_GATEWAY_FRAMING_H
#define S3_GATEWAY_FRAMING_H

#include "os/stream.h"
#include "s3/access/auth.h"

struct digests;

enum {
    FRAMING_LINE_MAX = 1024,
    FRAMING_TRAILERS_MAX = 8,
    FRAMING_BUFFER = 4096,
};

struct framing_trailer {
    struct str name, value; /* name in lower case */
};

struct framing {
    struct reader reader; /* reader_close() is framing_release(); the inner one stays open */
    struct reader *inner;
    const struct identity *auth; /* borrowed: key and seed */
    int state;
    int failed;                         /* the code of the first error, or 0 */
    uint64_t chunk_left;                /* bytes of the current chunk still to come */
    uint64_t length_left;               /* of the decoded length */
    char signature[SIGN_HEX_LEN];       /* of the last chunk checked */
    char chunk_signature[SIGN_HEX_LEN]; /* that the current chunk claims */
    struct digests *digests;            /* SHA-256 of the current chunk; NULL: unsigned */
    struct str announced;               /* x-amz-trailer; borrowed */
    struct buf trailer_text;            /* "name:value\n" of each: what its signature covers */
    struct framing_trailer trailers[FRAMING_TRAILERS_MAX];
    size_t trailer_count;
    bool trailer_signed;
    size_t start, end; /* of what buffer holds */
    char buffer[FRAMING_BUFFER];
};

/* `auth->payload` must be one of the three streaming forms. `decoded_length`: of
 * x-amz-decoded-content-length. `announced`: x-amz-trailer, empty without; borrowed. */
void framing_init(struct framing *f, struct reader *inner, const struct identity *auth,
                  uint64_t decoded_length, struct str announced);
void framing_release(struct framing *f);

/* After the end: the trailer so named (lower case), or NULL p; borrowed. */
struct str framing_trailer(const struct framing *f, struct str name);

#endif
