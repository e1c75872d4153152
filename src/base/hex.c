/* Bytes to hexadecimal digits and back. */
#include "base/hex.h"

void hex_write(char *out, const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < len; i++) {
        *out++ = digits[from[i] >> 4];
        *out++ = digits[from[i] & 15];
    }
}

enum { HEX_GOOD = 0x10, HEX_CAPITAL = 0x20 }; /* marks beside the value of a digit */
#define DIGIT(value)   (HEX_GOOD | (value))
#define CAPITAL(value) (HEX_GOOD | HEX_CAPITAL | (value))

/* The digits by their characters; 0: the character is no digit. A table, because signatures and ids
 * of nodes are read with every request. */
static const unsigned char hex_digits[256] = {
    ['0'] = DIGIT(0),    ['1'] = DIGIT(1),    ['2'] = DIGIT(2),    ['3'] = DIGIT(3),
    ['4'] = DIGIT(4),    ['5'] = DIGIT(5),    ['6'] = DIGIT(6),    ['7'] = DIGIT(7),
    ['8'] = DIGIT(8),    ['9'] = DIGIT(9),    ['a'] = DIGIT(10),   ['b'] = DIGIT(11),
    ['c'] = DIGIT(12),   ['d'] = DIGIT(13),   ['e'] = DIGIT(14),   ['f'] = DIGIT(15),
    ['A'] = CAPITAL(10), ['B'] = CAPITAL(11), ['C'] = CAPITAL(12), ['D'] = CAPITAL(13),
    ['E'] = CAPITAL(14), ['F'] = CAPITAL(15)};

/* Reads 2 * len digits. Returns false if a character is no digit. *capitals: one is a capital. */
static bool hex_read(const char *from, unsigned char *to, size_t len, bool *capitals)
{
    unsigned all = HEX_GOOD, any = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned high = hex_digits[(unsigned char)from[2 * i]];
        unsigned low = hex_digits[(unsigned char)from[2 * i + 1]];
        to[i] = (unsigned char)(high << 4 | (low & 15));
        all &= high & low;
        any |= high | low;
    }
    *capitals = any & HEX_CAPITAL;
    return all & HEX_GOOD;
}

bool hex_parse_any_case(struct str text, void *out, size_t len)
{
    bool capitals;

    return text.len / 2 == len && text.len % 2 == 0 && hex_read(text.p, out, len, &capitals);
}

bool hex_parse(struct str text, void *out, size_t len)
{
    bool capitals;

    return text.len / 2 == len && text.len % 2 == 0 && hex_read(text.p, out, len, &capitals) &&
           !capitals;
}
