/* CRCs as polynomials: CRC-64/NVME itself, and the arithmetic that joins CRCs of parts.
 *
 * All CRCs here are reflected, as S3's are: the top bit of a `bits` wide value is the coefficient
 * of x^0. `poly` is the reflected generator without its leading term. Any thread may call. */
#ifndef OBJECT_CRC_H
#define OBJECT_CRC_H

#include "base/str.h"

#define CRC32_POLY     UINT64_C(0xedb88320)
#define CRC32C_POLY    UINT64_C(0x82f63b78)
#define CRC64NVME_POLY UINT64_C(0x9a6c9329ac4bc9b5)

/* Continues `crc` over more bytes; the first call has a crc of 0. Uses carry-less multiplication
 * where the processor has it, else tables. */
uint64_t crc64_nvme(uint64_t crc, struct str bytes);
/* As crc64_nvme(), but by tables alone; tests compare the two. */
uint64_t crc64_nvme_table(uint64_t crc, struct str bytes);

/* Compute a * b mod poly, and x^n mod poly. */
uint64_t crc_multiply(uint64_t poly, unsigned bits, uint64_t a, uint64_t b);
uint64_t crc_power(uint64_t poly, unsigned bits, uint64_t n);

/* Joins two CRCs: returns the CRC of the bytes of `left` followed by the bytes of `right`.
 * `right_len` is the number of bytes of `right`. The function is for CRCs whose register starts
 * with all ones and is inverted at the end. */
uint64_t crc_combine(uint64_t poly, unsigned bits, uint64_t left, uint64_t right,
                     uint64_t right_len);

#endif
