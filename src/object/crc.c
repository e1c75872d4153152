/* CRC-64/NVME by folding, and polynomial arithmetic modulo a CRC's generator.
 *
 * Folding: 64 bytes of the message are held in four 128-bit registers. A register whose bytes come
 * D bits before the next bytes is multiplied by x^D modulo the generator and then added to the next
 * bytes. The product of two reflected 64-bit values is one bit short of a reflected 128-bit value,
 * so the constants are one power lower: x^(D+63) for the earlier half, x^(D-1) for the later one.
 * (Intel, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", 2009.) */
#include "object/crc.h"
#include "base/bytes.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { FOLD_BYTES = 64, FOLD_MIN = 2 * FOLD_BYTES };

/* Made once, by make_tables; constant after that. */
static uint64_t slices[8][256]; /* slices[n]: CRC of a byte that is followed by n zero bytes */
static struct {
    uint64_t lo, hi;
} fold_16, fold_64; /* constants to fold over 16 and over 64 bytes */
static bool has_multiply;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

uint64_t crc_multiply(uint64_t poly, unsigned bits, uint64_t a, uint64_t b)
{
    uint64_t product = 0;

    for (uint64_t m = UINT64_C(1) << (bits - 1); m; m >>= 1) {
        if (a & m)
            product ^= b;
        b = b & 1 ? (b >> 1) ^ poly : b >> 1;
    }
    return product;
}

uint64_t crc_power(uint64_t poly, unsigned bits, uint64_t n)
{
    uint64_t result = UINT64_C(1) << (bits - 1); /* x^0 */

    for (uint64_t square = result >> 1; n; n >>= 1) {
        if (n & 1)
            result = crc_multiply(poly, bits, result, square);
        square = crc_multiply(poly, bits, square, square);
    }
    return result;
}

/* Joins final values like plain remainders, because the all-ones start value and the final
 * inversion cancel out. x^(8 * len) is computed in two steps because 8 * len may not fit. */
uint64_t crc_combine(uint64_t poly, unsigned bits, uint64_t left, uint64_t right,
                     uint64_t right_len)
{
    uint64_t shift = crc_power(poly, bits, right_len);

    for (int i = 0; i < 3; i++)
        shift = crc_multiply(poly, bits, shift, shift);
    return crc_multiply(poly, bits, shift, left) ^ right;
}

static void make_tables(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ CRC64NVME_POLY : crc >> 1;
        slices[0][byte] = crc;
    }
    for (unsigned byte = 0; byte < 256; byte++)
        for (int i = 1; i < 8; i++)
            slices[i][byte] = slices[0][slices[i - 1][byte] & 0xff] ^ (slices[i - 1][byte] >> 8);
    fold_16.lo = crc_power(CRC64NVME_POLY, 64, 128 + 63);
    fold_16.hi = crc_power(CRC64NVME_POLY, 64, 128 - 1);
    fold_64.lo = crc_power(CRC64NVME_POLY, 64, 512 + 63);
    fold_64.hi = crc_power(CRC64NVME_POLY, 64, 512 - 1);
#if defined(__x86_64__)
    has_multiply = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

/* Continues the CRC by tables. `crc` and the result are the bare register, which the caller
 * inverts. */
static uint64_t by_table(uint64_t crc, const unsigned char *p, size_t len)
{
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word = crc ^ le64_read(p);
        crc = slices[7][word & 0xff] ^ slices[6][word >> 8 & 0xff] ^ slices[5][word >> 16 & 0xff] ^
              slices[4][word >> 24 & 0xff] ^ slices[3][word >> 32 & 0xff] ^
              slices[2][word >> 40 & 0xff] ^ slices[1][word >> 48 & 0xff] ^ slices[0][word >> 56];
    }
    while (len--)
        crc = slices[0][(crc ^ *p++) & 0xff] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
#define FOLDING __attribute__((target("pclmul,sse4.1")))

FOLDING static inline __m128i crc_load(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

FOLDING static inline __m128i fold(__m128i x, __m128i by, __m128i onto)
{
    __m128i early = _mm_clmulepi64_si128(x, by, 0x00), late = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(early, late), onto);
}

/* Continues the CRC by folding; the last bytes, fewer than 16, go through the tables. `len` is at
 * least FOLD_MIN. */
FOLDING static uint64_t by_multiply(uint64_t crc, const unsigned char *p, size_t len)
{
    const __m128i by_64 = _mm_set_epi64x((long long)fold_64.hi, (long long)fold_64.lo);
    const __m128i by_16 = _mm_set_epi64x((long long)fold_16.hi, (long long)fold_16.lo);
    __m128i x0 = _mm_xor_si128(crc_load(p), _mm_set_epi64x(0, (long long)crc)),
            x1 = crc_load(p + 16), x2 = crc_load(p + 32), x3 = crc_load(p + 48);
    unsigned char rest[16];

    for (p += FOLD_BYTES, len -= FOLD_BYTES; len >= FOLD_BYTES;
         p += FOLD_BYTES, len -= FOLD_BYTES) {
        x0 = fold(x0, by_64, crc_load(p));
        x1 = fold(x1, by_64, crc_load(p + 16));
        x2 = fold(x2, by_64, crc_load(p + 32));
        x3 = fold(x3, by_64, crc_load(p + 48));
    }
    x3 = fold(fold(fold(x0, by_16, x1), by_16, x2), by_16, x3);
    for (; len >= 16; p += 16, len -= 16)
        x3 = fold(x3, by_16, crc_load(p));
    _mm_storeu_si128((__m128i *)rest, x3);
    return by_table(by_table(0, rest, sizeof(rest)), p, len);
}
#else
static uint64_t by_multiply(uint64_t crc, const unsigned char *p, size_t len)
{
    return by_table(crc, p, len);
}
#endif

uint64_t crc64_nvme(uint64_t crc, struct str bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;

    pthread_once(&tables_once, make_tables);
    if (has_multiply && bytes.len >= FOLD_MIN)
        return ~by_multiply(~crc, p, bytes.len);
    return ~by_table(~crc, p, bytes.len);
}

uint64_t crc64_nvme_table(uint64_t crc, struct str bytes)
{
    pthread_once(&tables_once, make_tables);
    return ~by_table(~crc, (const unsigned char *)bytes.p, bytes.len);
}
