/* aws-chunked bodies: the form in which a client sends a body that it signs, or computes a checksum
 * of, as it streams.
 *
 *     8000;chunk-signature=<64 hex>\r\n        in CHUNKS and CHUNKS_TRAILER; else "8000\r\n"
 *     <bytes>\r\n
 *     0;chunk-signature=<64 hex>\r\n
 *     x-amz-checksum-crc32:<base64>\r\n        in the -TRAILER forms, as x-amz-trailer announced
 *     x-amz-trailer-signature:<64 hex>\r\n     in CHUNKS_TRAILER
 *     \r\n
 *
 * The framing is a reader over the raw body that gives the bytes without their frame. A chunk may
 * have megabytes, so its bytes are given out before its signature can be checked. The caller must
 * treat all bytes as provisional until the reader has ended without an error; then nothing was
 * forged, cut, added or reordered.
 *
 * Errors (codes of error.h): SignatureDoesNotMatch; IncompleteBody (the body ends early, its
 * length is not the announced decoded length, or something follows); InvalidChunkSizeError (a
 * malformed line before a chunk, or a size beyond the decoded length); MalformedTrailerError
 * (a trailer is malformed, was not announced, or was announced and is missing). After an error
 * every read gives the same error.
 *
 * Unlike AWS, chunks below 8 KiB are accepted everywhere, because some clients send them. */
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
    struct str name, value; /* the name is in lower case */
};

struct framing {
    struct reader reader; /* its close() is framing_release(), which leaves the inner reader open */
    struct reader *inner;
    const struct identity *auth; /* has the signing key and the first signature; borrowed */
    int state;
    int failed;                         /* code of the first error; 0: none yet */
    uint64_t chunk_left;                /* bytes of the current chunk still to come */
    uint64_t length_left;               /* bytes of the decoded length still to come */
    char signature[SIGN_HEX_LEN];       /* signature of the last chunk that was checked */
    char chunk_signature[SIGN_HEX_LEN]; /* signature that the current chunk claims */
    struct digests *digests; /* SHA-256 of the current chunk; NULL: chunks are not signed */
    struct str announced;    /* the header x-amz-trailer; borrowed */
    struct buf trailer_text; /* "name:value\n" of each trailer: the text that is signed */
    struct framing_trailer trailers[FRAMING_TRAILERS_MAX];
    size_t trailer_count;
    bool trailer_signed;
    size_t start, end; /* where the bytes in `buffer` that are not used yet start and end */
    char buffer[FRAMING_BUFFER];
};

/* Sets up the decoder over `inner`. `auth->payload` must be one of the three streaming forms.
 * `decoded_length` is the value of x-amz-decoded-content-length. `announced` is x-amz-trailer,
 * borrowed; empty: there are no trailers. */
void framing_init(struct framing *f, struct reader *inner, const struct identity *auth,
                  uint64_t decoded_length, struct str announced);
void framing_release(struct framing *f);

/* Returns the value of the trailer of this name (in lower case), once the body has ended; borrowed.
 * NULL p: there is none. */
struct str framing_trailer(const struct framing *f, struct str name);

#endif
