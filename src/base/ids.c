/* Random bytes and ids. */
#include "base/ids.h"
#include "base/clock.h"
#include "base/hex.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>

void random_bytes(void *out, size_t len)
{
    char *p = out;
    while (len) {
        ssize_t n = getrandom(p, size_min(len, 256), 0);
        if (n < 0 && errno == EINTR)
            continue;
        BUG_ON(n <= 0);
        p += n;
        len -= (size_t)n;
    }
}

uint64_t random_u64(void)
{
    uint64_t v;
    random_bytes(&v, sizeof(v));
    return v;
}

/* Returns a random number of the generator splitmix64. Each thread has its own generator, seeded
 * with random bytes from the kernel. */
static uint64_t fast_u64(void)
{
    static _Thread_local uint64_t state;
    uint64_t z;

    if (!state)
        state = random_u64() | 1;
    z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t random_below(uint64_t bound)
{
    BUG_ON(bound == 0);
    return (uint64_t)((unsigned __int128)fast_u64() * bound >> 64);
}

void id_hex(char out[ID_HEX_LEN + 1])
{
    unsigned char bytes[ID_HEX_LEN / 2];

    random_bytes(bytes, sizeof(bytes));
    hex_write(out, bytes, sizeof(bytes));
    out[ID_HEX_LEN] = '\0';
}

void id_uuid(char out[ID_UUID_LEN + 1])
{
    static const unsigned char places[] = {0, 4,  6,
                                           8, 10, 16}; /* byte offsets of the groups of digits */
    unsigned char bytes[16];
    char *at = out;

    random_bytes(bytes, sizeof(bytes));
    bytes[6] = (bytes[6] & 0x0f) | 0x40; /* version 4, the random UUIDs */
    bytes[8] = (bytes[8] & 0x3f) | 0x80; /* the variant of RFC 4122 */
    for (size_t i = 0; i + 1 < sizeof(places); i++) {
        size_t len = places[i + 1] - places[i];
        hex_write(at, bytes + places[i], len);
        at += 2 * len;
        *at++ = '-';
    }
    out[ID_UUID_LEN] = '\0';
}

void id_time(char out[ID_TIME_LEN + 1])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    /* The time of the last id, which only grows: milliseconds << 16 | counter. */
    static _Atomic(uint64_t) last;
    uint64_t now = (uint64_t)clock_wall_ms() << 16, seen = atomic_load(&last), next,
             random = fast_u64();
    unsigned __int128 v;

    do
        next = now > seen ? now : seen + 1;
    while (!atomic_compare_exchange_weak(&last, &seen, next));
    v = (unsigned __int128)next << 64 | random;
    for (size_t i = ID_TIME_LEN; i-- > 0; v >>= 5)
        out[i] = digits[(unsigned)v & 31];
    out[ID_TIME_LEN] = '\0';
}

/* Writes `len` random letters. The alphabets have 32 and 64 letters, so a masked random byte
 * chooses each letter equally often. */
static void letters(char *out, size_t len, const char *alphabet, unsigned char mask)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte;
        random_bytes(&byte, 1);
        out[i] = alphabet[byte & mask];
    }
    out[len] = '\0';
}

void id_access_key(char *out, size_t len)
{
    letters(out, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 31);
}

void id_secret(char *out, size_t len)
{
    letters(out, len, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 63);
}
