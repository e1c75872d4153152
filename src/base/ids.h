/* Random bytes and the ids made of them. Any thread may call these functions. */
#ifndef BASE_IDS_H
#define BASE_IDS_H

#include "base/str.h"

/* These functions return random bytes from the kernel. The process ends when the kernel gives
 * none. */
void random_bytes(void *out, size_t len);
uint64_t random_u64(void);

/* Returns a random number, uniform in [0, bound); bound > 0. The function is fast, but not fit for
 * secrets; use it for jitter, sampling and choosing peers. */
uint64_t random_below(uint64_t bound);

enum { ID_HEX_LEN = 32, ID_TIME_LEN = 26, ID_UUID_LEN = 36 };

/* Writes 128 random bits as 32 hex digits and a NUL. */
void id_hex(char out[ID_HEX_LEN + 1]);

/* Writes a random UUID (version 4), such as 8c5f3e0a-1b2c-4d3e-9f80-112233445566, and a NUL. */
void id_uuid(char out[ID_UUID_LEN + 1]);

/* Writes a ULID, 48 bits of milliseconds and 80 random bits in 26 characters (Crockford's base 32),
 * and a NUL. Ids of one process sort in the order in which they were made. Request ids are ULIDs.
 */
void id_time(char out[ID_TIME_LEN + 1]);

/* These functions write `len` random characters and a NUL. Access keys consist of A-Z and 2-7,
 * secrets of A-Z, a-z, 0-9, + and /. */
void id_access_key(char *out, size_t len);
void id_secret(char *out, size_t len);

#endif
