/* One vector kernel of MD5. Included by md5.c once for each width, with these defined:
 *   KERNEL, TARGET   the function's name, and the instructions it may use
 *   LANES, V         bodies side by side, and a vector of as many 32-bit words
 *   COLUMN(at, i)    16 bytes at offset `at` of each of the bodies i, 4 + i, 8 + i, 12 + i
 *   SHUFFLE(op)      the interleaving instruction of this width
 *   ADD, SPREAD, ROTATE, F, G, H, I
 * A vector register is made of groups of 128 bits that are interleaved each by itself: four columns
 * become four words of all bodies. */

__attribute__((target(TARGET))) static void KERNEL(uint32_t state[4][LANES], const char *in[LANES],
                                                   size_t blocks)
{
    V s[4], x[16];

    memcpy(s, state, sizeof(s));
    for (size_t n = 0; n < blocks; n++) {
        V a = s[0], b = s[1], c = s[2], d = s[3];

        for (int i = 0; i < 4; i++) {
            size_t at = n * MD5_BLOCK + (size_t)i * 16;
            V c0 = COLUMN(at, 0), c1 = COLUMN(at, 1), c2 = COLUMN(at, 2), c3 = COLUMN(at, 3);
            V low0 = SHUFFLE(unpacklo_epi32)(c0, c1), low1 = SHUFFLE(unpacklo_epi32)(c2, c3);
            V high0 = SHUFFLE(unpackhi_epi32)(c0, c1), high1 = SHUFFLE(unpackhi_epi32)(c2, c3);
            x[4 * i] = SHUFFLE(unpacklo_epi64)(low0, low1);
            x[4 * i + 1] = SHUFFLE(unpackhi_epi64)(low0, low1);
            x[4 * i + 2] = SHUFFLE(unpacklo_epi64)(high0, high1);
            x[4 * i + 3] = SHUFFLE(unpackhi_epi64)(high0, high1);
        }
#define STEP(f, a, b, c, d, word, turn, number)                                                    \
    a = ADD(a, ADD(x[word], SPREAD((int)(number))));                                               \
    KEEP_ORDER(a);                                                                                 \
    a = ADD(a, f(b, c, d));                                                                        \
    a = ADD(ROTATE(a, turn), b);
#include "object/md5_steps.h"
#undef STEP
        s[0] = ADD(s[0], a);
        s[1] = ADD(s[1], b);
        s[2] = ADD(s[2], c);
        s[3] = ADD(s[3], d);
    }
    memcpy(state, s, sizeof(s));
}

#undef KERNEL
#undef TARGET
#undef LANES
#undef V
#undef COLUMN
#undef SHUFFLE
#undef ADD
#undef SPREAD
#undef ROTATE
#undef F
#undef G
#undef H
#undef I
