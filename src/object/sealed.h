/* Sealed bodies: the form in which encrypted bytes are stored. docs/encryption.md has the format
 * and its invariants (E1 to E7).
 *
 * A sealed body is a salt and a sequence of records of AES-256-GCM. The encryption of each record
 * covers its index, its part, and whether it is the last. So any record can be opened alone, and
 * damage, reordering and a missing end are detected. The caller holds the data key; these functions
 * do not keep it. Each struct has one owner at a time. */
#ifndef OBJECT_SEALED_H
#define OBJECT_SEALED_H

#include "object/hasher.h"
#include "os/stream.h"

enum {
    SEALED_KEY_LEN = 32,
    SEALED_SALT_LEN = 32,
    SEALED_TAG_LEN = 16,
    SEALED_RECORD = 64 * 1024,                      /* plain bytes of each record but the last */
    SEALED_STORED = SEALED_RECORD + SEALED_TAG_LEN, /* bytes of such a record once it is sealed */
};

struct sealed_key {
    unsigned char bytes[SEALED_KEY_LEN];
};

/* Returns the stored size of a body of this plain size, in bytes. UINT64_MAX (not known) gives
 * UINT64_MAX. */
uint64_t sealed_size(uint64_t plain);
/* Returns the number of records of a body of this plain size; at least one. */
uint64_t sealed_records(uint64_t plain);

/* Makes an ETag to use in place of the MD5 of the plain bytes. The ETag reveals nothing to a reader
 * who does not have the key. */
void sealed_digest(const struct sealed_key *key, const unsigned char md5[MD5_LEN],
                   unsigned char out[MD5_LEN]);

/* --- sealing and opening records --- */

/* A cipher that seals or opens the records of one body or part. A struct of zeroes counts as
 * released. */
struct sealed_cipher {
    struct evp_cipher_ctx_st *ctx;
};

/* Prepares `c` for the records of the part with the number `part`, or of a whole body (0). */
void sealed_cipher_init(struct sealed_cipher *c, const struct sealed_key *key,
                        const unsigned char salt[SEALED_SALT_LEN], uint32_t part);
void sealed_cipher_release(struct sealed_cipher *c);

/* Seals one record: writes plain.len + SEALED_TAG_LEN bytes to `out`. */
void sealed_put(struct sealed_cipher *c, uint64_t index, bool last, struct str plain,
                unsigned char *out);
/* Opens a record in place; `len` includes the tag. ERR_CORRUPT: the bytes are not the record with
 * this index under this key, and must not be used. */
int sealed_get(struct sealed_cipher *c, uint64_t index, bool last, unsigned char *record,
               size_t len, struct err *err) MUST_CHECK;

/* --- a body that is sealed as it is read --- */

struct sealer {
    struct reader reader; /* reads the sealed bytes; its close leaves `body` open */
    struct reader *body;
    uint64_t size; /* plain bytes read so far */
    struct sealed_cipher cipher;
    /* Buffers for a record and one byte more, which shows that the record is not the last. They are
     * used in turn: while one buffer is filled and sealed, the hasher's thread hashes the bytes in
     * the earlier buffers (hasher.h, H2). */
    unsigned char *plains[HASH_PIECES + 1];
    unsigned char *plain;  /* the record that is being read */
    unsigned char *stored; /* the salt, or a record */
    size_t have;           /* bytes in `plain` */
    struct str rest;       /* the bytes of `stored` that were not read yet */
    uint64_t index;
    bool ended;
    struct hasher *hasher; /* NULL: the MD5 of the plain bytes is not wanted */
    bool streams;          /* `md5` is open: the body is longer than a record */
    struct hash_stream md5;
    unsigned char sum[MD5_LEN]; /* MD5 of a body that fits one record */
};

void sealer_init(struct sealer *s, struct reader *body, const struct sealed_key *key, uint32_t part,
                 struct hasher *hasher);
/* Stores the MD5 of the plain bytes in `out`. Call it once, after the body's end. */
void sealer_md5(struct sealer *s, unsigned char out[MD5_LEN]);
void sealer_release(struct sealer *s); /* a struct of zeroes is fine */

#endif
