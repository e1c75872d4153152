/* Sealed bodies: the stored form of bytes under a key. docs/encryption.md has the format and its
 * invariants (E1 to E7).
 *
 * A body is a salt and records of AES-256-GCM, each bound to its place, to its part and to being
 * the last or not, so any record can be opened alone, and damage, reordering and a missing end are
 * found. Whoever calls holds the data key; nothing here keeps it. One owner at a time. */
#ifndef OBJECT_SEALED_H
#define OBJECT_SEALED_H

#include "object/hasher.h"
#include "os/stream.h"

enum {
    SEALED_KEY_LEN = 32,
    SEALED_SALT_LEN = 32,
    SEALED_TAG_LEN = 16,
    SEALED_RECORD = 64 * 1024,                      /* plain bytes of all records but the last */
    SEALED_STORED = SEALED_RECORD + SEALED_TAG_LEN, /* the same, sealed */
};

struct sealed_key {
    unsigned char bytes[SEALED_KEY_LEN];
};

/* How many bytes are stored for this many; UINT64_MAX (not known) stays. */
uint64_t sealed_size(uint64_t plain);
/* How many records they are: at least one. */
uint64_t sealed_records(uint64_t plain);

/* Stands for the MD5 of plain bytes, and tells nothing of it without the key. */
void sealed_digest(const struct sealed_key *key, const unsigned char md5[MD5_LEN],
                   unsigned char out[MD5_LEN]);

/* --- records --- */

/* What seals, or opens, the records of one body or part. {0} is released. */
struct sealed_cipher {
    struct evp_cipher_ctx_st *ctx;
};

/* `part` is the number of a part, 0 for a body that is none. */
void sealed_cipher_init(struct sealed_cipher *c, const struct sealed_key *key,
                        const unsigned char salt[SEALED_SALT_LEN], uint32_t part);
void sealed_cipher_release(struct sealed_cipher *c);

/* Writes plain.len + SEALED_TAG_LEN bytes. */
void sealed_put(struct sealed_cipher *c, uint64_t index, bool last, struct str plain,
                unsigned char *out);
/* In place; `len` with the tag. ERR_CORRUPT: it is not that record under that key; what it holds is
 * then nothing to look at. */
int sealed_get(struct sealed_cipher *c, uint64_t index, bool last, unsigned char *record,
               size_t len, struct err *err) MUST_CHECK;

/* --- a body that is sealed as it is read --- */

struct sealer {
    struct reader reader; /* gives the stored form; close releases, `body` stays open */
    struct reader *body;
    uint64_t size; /* plain bytes read so far */
    struct sealed_cipher cipher;
    /* Records, each with one byte more that shows that it is not the last. They go around: while
     * one is read and sealed, those before it are hashed beside us (hasher.h, H2). */
    unsigned char *plains[HASH_PIECES + 1];
    unsigned char *plain;  /* the one being read */
    unsigned char *stored; /* the salt, or a record */
    size_t have;           /* in `plain` */
    struct str rest;       /* of `stored`: not yet given */
    uint64_t index;
    bool ended;
    struct hasher *hasher; /* NULL: the MD5 of the plain bytes is not wanted */
    bool streams;          /* `md5` is open: the body is longer than a record */
    struct hash_stream md5;
    unsigned char sum[MD5_LEN]; /* of a body that is not */
};

void sealer_init(struct sealer *s, struct reader *body, const struct sealed_key *key, uint32_t part,
                 struct hasher *hasher);
/* Of the plain bytes: once, after the body's end. */
void sealer_md5(struct sealer *s, unsigned char out[MD5_LEN]);
void sealer_release(struct sealer *s); /* {0} is fine */

#endif
