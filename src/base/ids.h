/* Random bytes and the ids made of them. Any thread. */
#ifndef BASE_IDS_H
#define BASE_IDS_H

#include "base/str.h"

/* Bytes from the kernel; the process ends when the kernel gives none. */
void random_bytes(void *out, size_t len);
uint64_t random_u64(void);

/* Uniform in [0, bound); bound > 0. Fast, not for secrets: jitter, sampling, choosing peers. */
uint64_t random_below(uint64_t bound);

enum { ID_HEX_LEN = 32, ID_TIME_LEN = 26 };

/* 128 random bits as 32 hex digits, terminated. */
void id_hex(char out[ID_HEX_LEN + 1]);

/* A ULID: 48 bits of milliseconds and 80 random bits in 26 characters (Crockford's base 32),
 * terminated. Ids that one process makes later sort behind its earlier ones. Request ids are such
 * ids. */
void id_time(char out[ID_TIME_LEN + 1]);

/* `len` characters and a NUL: from A-Z, 2-7 (access keys), or A-Z, a-z, 0-9, + and / (secrets). */
void id_access_key(char *out, size_t len);
void id_secret(char *out, size_t len);

#endif
