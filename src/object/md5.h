/* MD5 (RFC 1321) of several bodies side by side, in the lanes of vector registers. MD5 is one long
 * chain of dependent operations: a core that has four, eight or sixteen chains at once does them in
 * nearly the time of one. OpenSSL does not give access to its state, and Debian has no multi-buffer
 * MD5.
 *
 * On some processors a single body gains from AVX-512 too: its three-way logic and rotate shorten
 * the chain by a fifth. On others the scalar kernel is nearly twice as fast (AMD EPYC: 980 MB/s
 * over 540). So the kernels are chosen once, by what the processor has, and the kernel for a single
 * body by a measurement of some microseconds. A struct md5 has one owner at a time. */
#ifndef OBJECT_MD5_H
#define OBJECT_MD5_H

#include "base/str.h"

enum { MD5_BLOCK = 64, MD5_LEN = 16, MD5_LANES = 16 };

struct md5 {
    uint32_t state[4];
    uint64_t bytes; /* length of the body so far */
    /* The last bytes, which do not fill a block and are not hashed yet. */
    unsigned char rest[MD5_BLOCK];
};

void md5_init(struct md5 *m);
void md5_update(struct md5 *m, struct str bytes);
void md5_final(struct md5 *m, unsigned char out[MD5_LEN]);
void md5_hex(char out[2 * MD5_LEN + 1], const unsigned char md5[MD5_LEN]); /* ends with a NUL */

/* The next whole blocks of one body. */
struct md5_lane {
    struct md5 *md5; /* its `rest` must be empty */
    const char *in;
    size_t blocks;
};

/* Hashes blocks of 1 to MD5_LANES bodies at once: of each body as many blocks as the shortest lane
 * has. Returns that number of blocks, and moves the lanes past them. */
size_t md5_side_by_side(struct md5_lane *lanes, size_t count);

/* For tests and measurements: md5_limit_kernels() forbids all kernels above `most`, and returns the
 * highest that was allowed before. */
enum md5_kernels { MD5_SCALAR, MD5_AVX2, MD5_AVX512 };
enum md5_kernels md5_limit_kernels(enum md5_kernels most);

#endif
