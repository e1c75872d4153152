/* MD5: padding and lengths, a scalar kernel, and vector kernels for several bodies at once. */
#include "object/md5.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hex.h"

#include <pthread.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef void kernel_fn(struct md5_lane *lanes, size_t count, size_t blocks);

/* --- the scalar kernel: one body, one word at a time --- */

/* G's two halves have no bit in common, so + may replace |. That makes the chain of dependent
 * operations shorter. */
#define F(b, c, d)   (d ^ (b & (c ^ d)))
#define G(b, c, d)   (d & b) + (~d & c)
#define H(b, c, d)   (b ^ c ^ d)
#define I(b, c, d)   (c ^ (b | ~d))
#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))

static void scalar(struct md5_lane *lanes, size_t count, size_t blocks)
{
    (void)count;
    uint32_t *s = lanes->md5->state;
    const char *in = lanes->in;

    for (; blocks; blocks--, in += MD5_BLOCK) {
        uint32_t a = s[0], b = s[1], c = s[2], d = s[3];
#define STEP(f, a, b, c, d, word, turn, number)                                                    \
    a += le32_read(in + 4 * (word)) + (number);                                                    \
    a += f(b, c, d);                                                                               \
    a = ROTATE(a, turn) + b;
#include "object/md5_steps.inc"
#undef STEP
        s[0] += a;
        s[1] += b;
        s[2] += c;
        s[3] += d;
    }
}

#undef F
#undef G
#undef H
#undef I
#undef ROTATE

/* --- vector kernels: several bodies at once --- */

#ifdef __x86_64__

/* Keeps the compiler from changing the order of additions. The first sum in `a` does not depend on
 * the previous step, so the processor computes it early, and the chain of steps is shorter. */
#define KEEP_ORDER(a) __asm__("" : "+v"(a))

static inline __m128i load128(const char *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

#define KERNEL avx2_8
#define TARGET "avx2"
#define LANES  8
#define V      __m256i
#define COLUMN(at, i)                                                                              \
    _mm256_inserti128_si256(_mm256_castsi128_si256(load128(in[i] + (at))),                         \
                            load128(in[4 + (i)] + (at)), 1)
#define SHUFFLE(op)  _mm256_##op
#define ADD          _mm256_add_epi32
#define SPREAD       _mm256_set1_epi32
#define ROTATE(x, n) _mm256_or_si256(_mm256_slli_epi32(x, n), _mm256_srli_epi32(x, 32 - (n)))
#define F(b, c, d)   _mm256_xor_si256(d, _mm256_and_si256(b, _mm256_xor_si256(c, d)))
#define G(b, c, d)   _mm256_xor_si256(c, _mm256_and_si256(d, _mm256_xor_si256(b, c)))
#define H(b, c, d)   _mm256_xor_si256(b, _mm256_xor_si256(c, d))
#define I(b, c, d)                                                                                 \
    _mm256_xor_si256(c, _mm256_or_si256(b, _mm256_xor_si256(d, _mm256_set1_epi32(-1))))
#include "object/md5_kernel.inc"

/* The constants are truth tables of three inputs: F 0xca, G 0xe4, H 0x96, I 0x39. */
#define KERNEL        avx512_4
#define TARGET        "avx512f,avx512vl"
#define LANES         4
#define V             __m128i
#define COLUMN(at, i) load128(in[i] + (at))
#define SHUFFLE(op)   _mm_##op
#define ADD           _mm_add_epi32
#define SPREAD        _mm_set1_epi32
#define ROTATE(x, n)  _mm_rol_epi32(x, n)
#define F(b, c, d)    _mm_ternarylogic_epi32(b, c, d, 0xca)
#define G(b, c, d)    _mm_ternarylogic_epi32(b, c, d, 0xe4)
#define H(b, c, d)    _mm_ternarylogic_epi32(b, c, d, 0x96)
#define I(b, c, d)    _mm_ternarylogic_epi32(b, c, d, 0x39)
#include "object/md5_kernel.inc"

#define KERNEL avx512_8
#define TARGET "avx512f,avx512vl"
#define LANES  8
#define V      __m256i
#define COLUMN(at, i)                                                                              \
    _mm256_inserti128_si256(_mm256_castsi128_si256(load128(in[i] + (at))),                         \
                            load128(in[4 + (i)] + (at)), 1)
#define SHUFFLE(op)  _mm256_##op
#define ADD          _mm256_add_epi32
#define SPREAD       _mm256_set1_epi32
#define ROTATE(x, n) _mm256_rol_epi32(x, n)
#define F(b, c, d)   _mm256_ternarylogic_epi32(b, c, d, 0xca)
#define G(b, c, d)   _mm256_ternarylogic_epi32(b, c, d, 0xe4)
#define H(b, c, d)   _mm256_ternarylogic_epi32(b, c, d, 0x96)
#define I(b, c, d)   _mm256_ternarylogic_epi32(b, c, d, 0x39)
#include "object/md5_kernel.inc"

__attribute__((target("avx512f"))) static inline __m512i column512(const char **in, size_t at)
{
    __m512i v = _mm512_castsi128_si512(load128(in[0] + at));
    v = _mm512_inserti32x4(v, load128(in[4] + at), 1);
    v = _mm512_inserti32x4(v, load128(in[8] + at), 2);
    return _mm512_inserti32x4(v, load128(in[12] + at), 3);
}

#define KERNEL        avx512_16
#define TARGET        "avx512f,avx512vl"
#define LANES         16
#define V             __m512i
#define COLUMN(at, i) column512(in + (i), at)
#define SHUFFLE(op)   _mm512_##op
#define ADD           _mm512_add_epi32
#define SPREAD        _mm512_set1_epi32
#define ROTATE(x, n)  _mm512_rol_epi32(x, n)
#define F(b, c, d)    _mm512_ternarylogic_epi32(b, c, d, 0xca)
#define G(b, c, d)    _mm512_ternarylogic_epi32(b, c, d, 0xe4)
#define H(b, c, d)    _mm512_ternarylogic_epi32(b, c, d, 0x96)
#define I(b, c, d)    _mm512_ternarylogic_epi32(b, c, d, 0x39)
#include "object/md5_kernel.inc"

/* Defines a function that hashes blocks of up to `width` bodies. Lanes without a body repeat the
 * first body, and their results are dropped. */
#define DEFINE_LANES(name, kernel, width)                                                          \
    static void name(struct md5_lane *lanes, size_t count, size_t blocks)                          \
    {                                                                                              \
        _Alignas(64) uint32_t state[4][width];                                                     \
        const char *in[width];                                                                     \
                                                                                                   \
        for (size_t i = 0; i < (width); i++) {                                                     \
            const struct md5_lane *lane = &lanes[i < count ? i : 0];                               \
            in[i] = lane->in;                                                                      \
            for (int word = 0; word < 4; word++)                                                   \
                state[word][i] = lane->md5->state[word];                                           \
        }                                                                                          \
        kernel(state, in, blocks);                                                                 \
        for (size_t i = 0; i < count; i++)                                                         \
            for (int word = 0; word < 4; word++)                                                   \
                lanes[i].md5->state[word] = state[word][i];                                        \
    }

DEFINE_LANES(avx2_lanes_8, avx2_8, 8)
DEFINE_LANES(avx512_lanes_4, avx512_4, 4)
DEFINE_LANES(avx512_lanes_8, avx512_8, 8)
DEFINE_LANES(avx512_lanes_16, avx512_16, 16)

#endif

/* --- choosing a kernel --- */

struct choice {
    size_t lanes; /* number of bodies that fn hashes at once; more bodies take several calls */
    kernel_fn *fn;
};

/* The functions of each kind of kernel, those with fewer lanes first. The first function that has a
 * lane for every body is used. If no function has so many lanes, the last function is called
 * several times. */
static const struct choice choices[][5] = {
    [MD5_SCALAR] = {{1, scalar}},
#ifdef __x86_64__
    [MD5_AVX2] = {{1, scalar}, {8, avx2_lanes_8}},
    [MD5_AVX512] = {{1, scalar}, {4, avx512_lanes_4}, {8, avx512_lanes_8}, {16, avx512_lanes_16}},
#endif
};

/* Both are set once, by md5_kernel_find(); only tests lower `best`. */
static enum md5_kernels best;
/* A single body is hashed faster by the vector kernel with the fewest lanes than by scalar(). */
static bool vectors_suit_one;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef __x86_64__

/* Returns the least time of some runs with one body, in ns. A run takes a few microseconds. */
static uint64_t kernel_time(const struct choice *c)
{
    enum { RUNS = 6, BLOCKS = 64 };
    static const char zeros[BLOCKS * MD5_BLOCK];
    struct md5 md5;
    uint64_t least = UINT64_MAX;

    md5_init(&md5);
    for (int i = 0; i < RUNS; i++) {
        uint64_t began_ns = clock_mono_ns();
        c->fn(&(struct md5_lane){&md5, zeros, BLOCKS}, 1, BLOCKS);
        uint64_t took_ns = clock_mono_ns() - began_ns;
        if (took_ns < least)
            least = took_ns;
    }
    return least;
}

#endif

static void md5_kernel_find(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        best = MD5_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
        best = MD5_AVX512;
        vectors_suit_one =
            kernel_time(&choices[MD5_AVX512][1]) < kernel_time(&choices[MD5_AVX512][0]);
    }
#endif
}

enum md5_kernels md5_limit_kernels(enum md5_kernels most)
{
    pthread_once(&once, md5_kernel_find);
    enum md5_kernels found = best;
    if (most < best)
        best = most;
    return found;
}

static void md5_run(struct md5_lane *lanes, size_t count, size_t blocks)
{
    const struct choice *c = choices[best];

    if (best == MD5_AVX512 && vectors_suit_one)
        c++;
    while (c->lanes < count && c[1].fn)
        c++;
    for (size_t at = 0; at < count; at += c->lanes)
        c->fn(lanes + at, size_min(count - at, c->lanes), blocks);
}

size_t md5_side_by_side(struct md5_lane *lanes, size_t count)
{
    size_t blocks = lanes[0].blocks;

    BUG_ON(count == 0 || count > MD5_LANES);
    for (size_t i = 1; i < count; i++)
        blocks = size_min(blocks, lanes[i].blocks);
    pthread_once(&once, md5_kernel_find);
    md5_run(lanes, count, blocks);
    for (size_t i = 0; i < count; i++) {
        BUG_ON(lanes[i].md5->bytes % MD5_BLOCK);
        lanes[i].md5->bytes += blocks * MD5_BLOCK;
        lanes[i].in += blocks * MD5_BLOCK;
        lanes[i].blocks -= blocks;
    }
    return blocks;
}

/* --- hashing one body --- */

void md5_init(struct md5 *m)
{
    *m = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

static void one_block(struct md5 *m)
{
    m->bytes -= MD5_BLOCK; /* md5_side_by_side() counts these bytes again */
    md5_side_by_side(&(struct md5_lane){m, (const char *)m->rest, 1}, 1);
}

void md5_update(struct md5 *m, struct str bytes)
{
    size_t used = m->bytes % MD5_BLOCK, room = MD5_BLOCK - used;

    if (used && bytes.len) {
        size_t n = size_min(room, bytes.len);
        memcpy(m->rest + used, bytes.p, n);
        m->bytes += n;
        bytes = str_skip(bytes, n);
        if (n == room)
            one_block(m);
    }
    if (bytes.len >= MD5_BLOCK) {
        size_t blocks = bytes.len / MD5_BLOCK;
        md5_side_by_side(&(struct md5_lane){m, bytes.p, blocks}, 1);
        bytes = str_skip(bytes, blocks * MD5_BLOCK);
    }
    if (bytes.len) {
        memcpy(m->rest, bytes.p, bytes.len);
        m->bytes += bytes.len;
    }
}

void md5_final(struct md5 *m, unsigned char out[MD5_LEN])
{
    static const char padding[MD5_BLOCK] = {(char)0x80};
    char bits[8];
    size_t used = m->bytes % MD5_BLOCK;

    le64_write(bits, m->bytes * 8);
    md5_update(m, str_n(padding, used < 56 ? 56 - used : 120 - used));
    md5_update(m, str_n(bits, sizeof(bits)));
    for (size_t i = 0; i < 4; i++)
        le32_write(out + 4 * i, m->state[i]);
}

void md5_hex(char out[2 * MD5_LEN + 1], const unsigned char md5[MD5_LEN])
{
    hex_write(out, md5, MD5_LEN);
    out[2 * MD5_LEN] = '\0';
}
